//! A tamper-evident, encrypted, compressed audit log for systems that handle personal data.
//!
//! [`Log`] appends, from many threads, at the speed of the store that is watched. [`Reader`] answers a [`Query`] from
//! the blocks that it can concern, proves the answer to whoever has the log's public key, and follows the log as it
//! grows. [`Verify`] checks a whole log with public keys alone; [`Export`] writes it out.
//!
//! `docs/format.md` specifies every byte, `docs/threat-model.md` says what an attacker can and cannot do.

#![warn(clippy::print_stderr, clippy::print_stdout)]

mod checkpoint;
mod commit;
pub mod config;
mod configure;
pub mod control;
mod disclosed;
mod engine;
mod epochs;
mod erase;
pub mod event;
mod export;
pub mod finding;
mod follow;
mod frame;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod grant;
mod index;
mod info;
mod init;
pub mod keys;
mod log;
mod minimise;
mod options;
mod prove;
mod pseudonyms;
mod query;
mod read;
mod reader;
mod record;
mod recover;
mod restore;
pub mod seal;
pub mod segment;
mod stage;
mod telemetry;
mod verify;
mod withheld;

pub use bulla_crypto::environment;
pub use bulla_proof::checkpoint::VerifierKey;
pub use bulla_proof::commitment::LogId;
pub use bulla_proof::hash::Hash;
pub use bulla_proof::note::SignedNote;
pub use bulla_proof::order;
pub use bulla_proof::proof;
pub use bulla_proof::{Entry, EntryError};
pub use bulla_store as store;
pub use bulla_store::{Error, ErrorKind, Result};
pub use bulla_text as text;
pub use bulla_vault as vault;
pub use configure::{Configure, Configured};
pub use disclosed::{Disclosed, Opened, open_proof};
pub use epochs::{Epoch, epochs};
pub use erase::{Erasure, ErasureOrder, Hold, holds};
pub use event::ExportRecord;
pub use export::{Export, Exported, Unopened};
pub use finding::{Finding, FindingKind, Severity};
pub use follow::{Follow, Followed, Polled};
pub use grant::{Grant, Granted, MAX_GRANT};
pub use info::{Info, info, info_of};
pub use init::{Created, Init};
pub use keys::pseudonym::Pseudonym;
pub use log::{BatchError, Log, Producer, Receipt, Step, default_keys};
pub use options::{Durability, Options, Profile, Setting, SettingSource, parse_plugin_timeout};
pub use prove::Proven;
pub use pseudonyms::Pseudonyms;
pub use query::Query;
pub use reader::{Delivery, Matches, ReadReport, Reader};
pub use record::record_export;
pub use recover::Recovery;
pub use restore::{Restore, Restored};
pub use telemetry::{Queues, Stages, Telemetry, Waits};
pub use verify::{Progress, Report, Verify};
pub use withheld::{Withheld, WithheldEntries};

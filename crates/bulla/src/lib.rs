//! A tamper-evident, encrypted, compressed audit log for systems that handle personal data.
//!
//! [`Log`] appends, from many threads, at the speed of the store that is watched. [`Reader`] answers a [`Query`] from
//! the blocks that it can concern, proves the answer to whoever has the log's public key, and follows the log as it
//! grows. [`Verify`] checks a whole log with public keys alone; [`Export`] writes it out.
//!
//! `docs/format.md` specifies every byte, `docs/threat-model.md` says what an attacker can and cannot do.
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests look at disks and clocks"))]
#![warn(clippy::print_stderr, clippy::print_stdout)]

mod admin;
pub mod control;
mod erase;
mod fields;
mod format;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod index;
pub mod keys;
mod log;
pub mod mirror;
mod read;
mod scan;
pub mod socket;
mod witness;
mod write;

pub use admin::configure::{Configure, Configured, PathChange, PathOutcome};
pub use admin::init::{Created, Init};
pub use admin::restore::{CutErasure, Extent, Outlook, Restore, Restored};
pub use bulla_crypto::environment;
pub use bulla_proof::checkpoint::{VerifierKey, open_checkpoint};
pub use bulla_proof::commitment::LogId;
pub use bulla_proof::hash::{Hash, HashId};
pub use bulla_proof::hold_order;
pub use bulla_proof::key_order;
pub use bulla_proof::log_key::LogKey;
pub use bulla_proof::note::SignedNote;
pub use bulla_proof::order;
pub use bulla_proof::policy;
pub use bulla_proof::policy::Policy;
pub use bulla_proof::proof;
pub use bulla_proof::{Entry, EntryError};
pub use bulla_store as store;
pub use bulla_store::{Effect, Error, ErrorKind, Result};
pub use bulla_text as text;
pub use erase::{
    Erasure, ErasureKeyChange, ErasureOrder, Hold, HoldDifference, HoldOrder, HoldUnderWay, KnownAgain,
    ReleaseOrder, ResumedErasure,
};
pub use fields::filter::{FieldFilters, NotAsLogged, NumberField, TextField, TextFilter};
pub use format::event::ExportRecord;
pub use format::options::{
    Durability, OnFailure, Options, Profile, Setting, SettingPlace, SettingSource, format_age, parse_age,
    parse_plugin_timeout, parse_size,
};
pub use format::sources::SourceId;
pub use format::sources::table::SourceState;
pub use format::{config, event, segment};
pub use keys::pseudonym::Pseudonym;
pub use keys::{default_keys, named_keys, require_named_keys};
pub use log::record::record_export;
#[doc(hidden)]
pub use log::{Answered, Posted, Question, SteppedWitnesses};
pub use log::{
    BatchError, Closing, Held, Log, PersonalChanges, PersonalRecords, PersonalRecordsRead, Place, Producer,
    Producers, Receipt, Source, Step, Watch,
};
pub use read::epochs::{Epoch, epochs, epochs_of};
pub use read::erasure_preview::{
    Certified, EntriesGoing, ErasedBefore, ErasurePreview, FirstMet, NotSure, OtherSubject, PreviewedSubject,
};
pub use read::events::LoggedEvent;
pub use read::export::{Export, Exported, Unopened};
pub use read::follow::{Follow, Followed, Polled};
pub use read::given::Progress;
pub use read::grant::{Grant, Granted, MAX_GRANT};
pub use read::holds::{HeldSubjects, holds};
pub use read::info::{Info, WitnessInfo, info, info_of, lost_frames_of};
pub use read::opened_proof::{CheckedProof, Disclosed, Opened, check_proof, open_proof};
pub use read::pins::{PinReport, pinned_frames};
pub use read::prove::Proven;
pub use read::pseudonyms::Pseudonyms;
pub use read::reader::Reader;
pub use read::reading::{Delivery, ReadReport};
pub use read::rekor::anchor_of_answer;
pub use read::select::{Kept, Matches};
pub use read::sources::{sources, sources_of};
pub use read::standing::{AskedSubject, AskedSubjects, Standing};
pub use read::verify::{Report, Verify, WitnessReport, WitnessSeen};
pub use scan::finding;
pub use scan::finding::{Finding, FindingKind, Severity};
pub use scan::lost::LostFrames;
pub use scan::paths::{join_paths, open_log};
pub use scan::query::Query;
pub use scan::redaction::{RedactedEntries, Redaction};
pub use scan::unread_events::UnreadEvents;
pub use write::engine::refuse_other_keys;
pub use write::kept_pin::Pinned;
pub use write::recover::Recovery;
pub use write::telemetry::{Queues, Stages, Telemetry, Waits, WitnessTelemetry};

/// The vault of a log, for whoever reads the log. What writes to it and erases from it is [`Log`], which has every erasure
/// ordered and recorded.
pub mod vault {
    pub use bulla_vault::{
        AgeRoot, ReplicaState, Root, RootFile, RootKey, Settings, Subject, SubjectKey, VaultReader,
    };
}

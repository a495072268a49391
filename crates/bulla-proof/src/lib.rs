//! What an auditor of a Bulla log compiles: entries and their rows, units, commitments, the tree, tiles, checkpoints
//! and proofs. No keys but the secrets that a proof discloses, and no cipher to use them; no input or output, no
//! unsafe code.
//!
//! `docs/format.md` is the specification of every byte here.
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests look at disks and clocks"))]
#![forbid(unsafe_code)]

pub mod add_checkpoint;
mod cbor;
pub mod checkpoint;
pub mod commitment;
pub mod consistency;
pub mod cose;
pub mod cosignature;
pub mod entry;
pub mod group;
pub mod hash;
mod hex;
pub mod hold_order;
pub mod key_order;
pub mod log_key;
pub mod multiproof;
pub mod note;
pub mod order;
pub mod policy;
pub mod proof;
pub mod tile;
pub mod tree;
pub mod unit;
pub mod varint;

pub use checkpoint::{Checkpoint, open_checkpoint, sign_checkpoint};
pub use commitment::{Commitment, CommitmentError, FrameKind, LogId};
pub use cose::{CoseCheckpoint, CoseError};
pub use cosignature::{Cosignature, CosignatureAlgorithm, CosignerKey};
pub use entry::{Entry, EntryError};
pub use group::{GroupKey, GroupSecret};
pub use hash::{Hash, HashId, Sha256, sha256};
pub use hold_order::{HoldAct, HoldNote, HoldNoteError};
pub use key_order::{KeyOrder, KeyOrderError};
pub use log_key::LogKey;
pub use multiproof::TreeProofError;
pub use note::{NoteError, NoteSignature, SignedNote, VerifierKey};
pub use order::{Order, OrderError};
pub use policy::{Judgement, Policy, PolicyError, PolicyLog, PolicyRefusal, PolicyWitness};
pub use proof::{
    ConsistencyProof, DisclosedEntry, DisclosedFrame, DisclosedGroup, DisclosedUnit, EventProof, Proof,
    ProofError, ProofFile, Receipt, UnitContent,
};
pub use tile::{TileBuilder, TileError, TileId, TilePath};
pub use tree::Frontier;
pub use unit::{block_root, row_unit};

//! Why a proof file is refused.

use super::DISCLOSURE_VERSION;
use crate::commitment::{CommitmentError, FrameKind};
use crate::cose::CoseError;
use crate::entry::EntryError;
use crate::multiproof::TreeProofError;
use crate::note::NoteError;
use crate::policy::PolicyRefusal;
use std::fmt;

/// Why a proof file is refused, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProofError {
    /// The first line is none of the known ones.
    Kind,
    /// No empty line, and no checkpoint after it.
    NoCheckpoint,
    /// A line, counted from 1, is not what has to stand there.
    #[allow(missing_docs)]
    Line { number: usize, expected: &'static str },
    /// The checkpoint is malformed, not signed by the key, or of another origin than the key's.
    Checkpoint(NoteError),
    /// So is the older checkpoint.
    OldCheckpoint(NoteError),
    /// The policy does not believe the checkpoint.
    Policy(PolicyRefusal),
    /// The older checkpoint of a proof of consistency is not signed as a policy asks for.
    OldPolicy(PolicyRefusal),
    /// The two checkpoints are of different origins.
    Origins,
    /// The line `extra` discloses nothing.
    NoDisclosure,
    /// The disclosure is of another version.
    Version(u8),
    /// The disclosure goes on for so many bytes after the last frame.
    LeftOver(usize),
    /// What is disclosed of a frame is malformed or does not hold.
    #[allow(missing_docs)]
    Frame { frame: u64, problem: FrameProblem },
    /// A unit is malformed: which of those that are disclosed of the frame, counted from 0.
    #[allow(missing_docs)]
    Unit { frame: u64, unit: usize, problem: UnitProblem },
    /// A common item is malformed: which of those that are disclosed of the frame, counted from 0.
    #[allow(missing_docs)]
    Item { frame: u64, item: usize, problem: UnitProblem },
    /// The frames are not in the tree, or the trees do not agree.
    Tree(TreeProofError),
    /// A receipt is malformed, not signed by the key, or of another origin than the key's.
    Receipt(CoseError),
    /// It proves something else than entries.
    NotOfEntries,
    /// A receipt is to be believed by a policy that asks for witnesses, or of the log for a signature of ML-DSA-44.
    ReceiptPolicy,
}

/// What is wrong with a frame of a proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrameProblem {
    /// The disclosure ends inside it.
    Truncated,
    /// Its number of units is not in its shortest form.
    NotMinimal,
    /// It has no valid commitment.
    Commitment(CommitmentError),
    /// Its commitment has this number, not that of its `index` line.
    Number(u64),
    /// The checkpoint's tree ends before it.
    #[allow(missing_docs)]
    NotInTree { size: u64 },
    /// It is no block.
    Kind(FrameKind),
    /// It does not come after the frame before it.
    Order,
    /// It is of another log than the frame before it.
    OtherLog,
    /// It is hashed otherwise than the frame before it.
    OtherHash,
    /// Its entries do not come after those of the frame before it.
    Entries,
    /// It discloses this many units: none, or more than it has.
    Units(u64),
    /// It has, or discloses, this many common items: more than a block may have, more than it has, or some without a secret that they
    /// would be for.
    Items(u64),
    /// Its units do not make a tree.
    Tree(TreeProofError),
    /// Its units do not have the root that its commitment states.
    Root,
    /// It is not of an event.
    NoEvent(FrameKind),
    /// Its body does not have the digest that its commitment states.
    Body,
}

/// What is wrong with a disclosed unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnitProblem {
    /// The disclosure ends inside it.
    Truncated,
    /// An integer is not in its shortest form.
    NotMinimal,
    /// Its position is past the block's last.
    Position,
    /// There is no such kind of unit.
    Kind(u8),
    /// An entry is not of the frame's.
    Entry,
    /// Its first entry does not come after that of the unit before it.
    Order,
    /// A row is not canonical.
    Row(EntryError),
    /// These cannot be a group's personal fields: one is unknown, or the data subjects are not among them.
    Personal(u16),
    /// The group has this many entries: none, or more than the frame.
    Entries(u64),
    /// The shared row of this entry has a personal field.
    NotShared(u64),
    /// The group has this many data subjects: none, or more than an entry may name.
    Subjects(u64),
    /// A data subject's number is past the last.
    Subject,
    /// The group's ciphertext has this many bytes, fewer than any has.
    Ciphertext(u64),
    /// Whether the group's secret is disclosed is neither 0 nor 1.
    Opened(u8),
    /// One of its entries is in a unit before it.
    Repeated,
    /// The disclosed secret is not the one that the group commits to.
    Secret,
    /// The time of this entry is not within what the frame's commitment says.
    Time(u64),
}

/// What is wrong inside a frame whose number the reader knows.
pub(super) enum At {
    Frame(FrameProblem),
    Unit { unit: usize, problem: UnitProblem },
    Item { item: usize, problem: UnitProblem },
}

impl At {
    pub(super) fn of_frame(self, frame: u64) -> ProofError {
        match self {
            At::Frame(problem) => ProofError::Frame { frame, problem },
            At::Unit { unit, problem } => ProofError::Unit { frame, unit, problem },
            At::Item { item, problem } => ProofError::Item { frame, item, problem },
        }
    }
}

impl From<FrameProblem> for At {
    fn from(problem: FrameProblem) -> Self {
        At::Frame(problem)
    }
}

impl fmt::Display for ProofError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind => write!(f, "the first line is not one that a proof begins with"),
            Self::NoCheckpoint => write!(f, "no empty line, and no checkpoint after it"),
            Self::Line { number, expected } => write!(f, "line {number} is not {expected}"),
            Self::Checkpoint(error) => write!(f, "the checkpoint: {error}"),
            Self::Policy(refusal) => write!(f, "the checkpoint: {refusal}"),
            Self::OldPolicy(refusal) => write!(f, "the older checkpoint: {refusal}"),
            Self::OldCheckpoint(error) => write!(f, "the older checkpoint: {error}"),
            Self::Origins => write!(f, "the two checkpoints are of different logs"),
            Self::NoDisclosure => write!(f, "the proof discloses nothing"),
            Self::Version(version) => {
                write!(f, "the disclosure has version {version}; this program reads {DISCLOSURE_VERSION}")
            }
            Self::LeftOver(length) => write!(f, "the disclosure has {length} bytes after its last frame"),
            Self::Frame { frame, problem } => write!(f, "frame {frame}: {problem}"),
            Self::Unit { frame, unit, problem } => write!(f, "frame {frame}, unit {unit}: {problem}"),
            Self::Item { frame, item, problem } => write!(f, "frame {frame}, common item {item}: {problem}"),
            Self::Tree(error) => write!(f, "{error}"),
            Self::Receipt(error) => write!(f, "the receipt: {error}"),
            Self::NotOfEntries => write!(f, "it is no proof of entries"),
            Self::ReceiptPolicy => write!(
                f,
                "it is a receipt in COSE, which no witness cosigns and the log's Ed25519 key alone signs: name that key, or a policy that has it and \
                 asks for no witness"
            ),
        }
    }
}

impl fmt::Display for FrameProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => write!(f, "the disclosure ends inside it"),
            Self::NotMinimal => write!(f, "its number of units is not in its shortest form"),
            Self::Commitment(error) => write!(f, "{error}"),
            Self::Number(number) => write!(f, "its commitment is of frame {number}"),
            Self::NotInTree { size } => write!(f, "the checkpoint covers {size} frames only"),
            Self::Kind(kind) => write!(f, "it is not a block, but of kind {kind}"),
            Self::Order => write!(f, "it does not come after the frame before it"),
            Self::OtherLog => write!(f, "it is of another log than the frame before it"),
            Self::OtherHash => write!(f, "it is hashed otherwise than the frame before it"),
            Self::Entries => write!(f, "its entries do not come after those of the frame before it"),
            Self::Units(units) => write!(f, "it discloses {units} units, none or more than it has"),
            Self::Items(items) => {
                write!(
                    f,
                    "it has or discloses {items} common items, more than there can be or than a disclosed secret is for"
                )
            }
            Self::Tree(error) => write!(f, "{error}"),
            Self::Root => write!(f, "what is disclosed does not have the root that was committed to"),
            Self::NoEvent(kind) => write!(f, "it is of kind {kind:?}, not an event"),
            Self::Body => write!(f, "the event does not have the digest that was committed to"),
        }
    }
}

impl fmt::Display for UnitProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => write!(f, "the disclosure ends inside it"),
            Self::NotMinimal => write!(f, "an integer is not in its shortest form"),
            Self::Position => write!(f, "its position is past the block's last"),
            Self::Kind(kind) => write!(f, "it has the unknown kind {kind}"),
            Self::Entry => write!(f, "an entry is not one of the frame's"),
            Self::Order => write!(f, "its first entry does not come after that of the unit before it"),
            Self::Row(error) => write!(f, "{error}"),
            Self::Personal(fields) => write!(f, "{fields:#06x} cannot be the personal fields of a group"),
            Self::Entries(count) => {
                write!(f, "it is a group of {count} entries, none or more than the frame has")
            }
            Self::NotShared(entry) => write!(f, "the shared row of entry {entry} has a personal field"),
            Self::Subjects(count) => write!(f, "it is a group of {count} data subjects, none or too many"),
            Self::Subject => write!(f, "a data subject's number is past the last"),
            Self::Ciphertext(length) => {
                write!(f, "its ciphertext has {length} bytes, fewer than any has")
            }
            Self::Opened(tag) => {
                write!(f, "it says {tag} where 1 says that its secret follows, and 0 that not")
            }
            Self::Repeated => write!(f, "one of its entries is in a unit before it"),
            Self::Secret => {
                write!(f, "the secret that is disclosed is not the one that the group commits to")
            }
            Self::Time(entry) => {
                write!(f, "the time of entry {entry} is not within those that its frame's commitment states")
            }
        }
    }
}

impl std::error::Error for ProofError {}
impl std::error::Error for FrameProblem {}
impl std::error::Error for UnitProblem {}

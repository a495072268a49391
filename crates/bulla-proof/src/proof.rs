//! Proof files: what proves something about a log to whoever has the log's key, and nothing else of it.
//!
//! [`Proof`] discloses entries and proves that the log holds them: built on
//! [C2SP tlog-proof](https://c2sp.org/tlog-proof), and such a file where the entries lie in one frame.
//! [`ConsistencyProof`] proves that one signed tree of a log begins with another, [`EventProof`] that something happened
//! to the log, such as an erasure. [`Receipt`] is a [`Proof`] in the form of RFC 9942, which is no text. [`ProofFile`] is any of them, as a reader finds it. `docs/format.md`, "Proofs", has the byte maps, and says what a proof does not prove.
//!
//! A file is parsed, then verified; only what verified gives anything away:
//!
//! ```
//! # fn check(file: &[u8], key: &bulla_proof::VerifierKey) -> Result<(), bulla_proof::ProofError> {
//! let proof = bulla_proof::Proof::parse(file)?;
//! for (number, entry) in proof.verify(Some(key))?.entries() {
//!     println!("{number}: {} at {:?}", entry.operation, entry.time);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! **Invariants:** a file has one spelling, so that rendering what was parsed gives the file again; parsing and
//! verifying take memory and work in proportion to the file's length, whatever it claims.

mod anchor;
mod consistency;
mod cursor;
mod disclosure;
mod error;
mod event;
mod receipt;
mod text;
mod unit;

pub use anchor::{ANCHOR_HEADER, Anchor, Anchored, Envelope, PAYLOAD_TYPE};
pub use consistency::{ConsistencyProof, Consistent};
pub use disclosure::DisclosedFrame;
pub use error::{FrameProblem, ProofError, UnitProblem};
pub use event::{CheckedEvent, EventProof};
pub use receipt::Receipt;
pub use unit::{DisclosedEntry, DisclosedGroup, DisclosedItem, DisclosedUnit, UnitContent};

use crate::checkpoint::{Checkpoint, SignedNote, open_checkpoint, parse_size};
use crate::commitment::Commitment;
use crate::entry::Entry;
use crate::hash::Hash;
use crate::multiproof;
use crate::note::{NoteError, VerifierKey};
use crate::policy::Policy;
use crate::tree::LogNodes;
use disclosure::Disclosure;
use text::Lines;

/// The first line of a proof of entries that lie in one frame.
pub const PROOF_HEADER: &str = "c2sp.org/tlog-proof@v1";
/// The first line of a proof of entries that lie in several frames.
pub const MULTI_PROOF_HEADER: &str = "bulla-multi-proof-v1";
/// The first line of a proof of consistency.
pub const CONSISTENCY_HEADER: &str = "bulla-consistency-v1";
/// The first line of a proof of an event.
pub const EVENT_HEADER: &str = "bulla-event-v1";

/// The version of the binary form in which a proof discloses units.
pub const DISCLOSURE_VERSION: u8 = 1;

/// A file that proves something about a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProofFile {
    /// That it holds some entries.
    Entries(Proof),
    /// That it grew from a smaller one.
    Consistency(ConsistencyProof),
    /// That something happened to it: the certificate of an erasure.
    Event(EventProof),
    /// That it holds some entries, as a receipt of RFC 9942.
    Receipt(Receipt),
}

impl ProofFile {
    /// Reads a file of any kind.
    ///
    /// # Errors
    /// [`ProofError::Kind`] where its first line is of none; otherwise as [`Proof::parse`],
    /// [`ConsistencyProof::parse`], [`EventProof::parse`] and [`Receipt::parse`].
    pub fn parse(file: &[u8]) -> Result<Self, ProofError> {
        if Receipt::is_one(file) {
            return Receipt::parse(file).map(ProofFile::Receipt);
        }
        match Lines::first(file) {
            Some(CONSISTENCY_HEADER) => ConsistencyProof::parse(file).map(ProofFile::Consistency),
            Some(EVENT_HEADER) => EventProof::parse(file).map(ProofFile::Event),
            _ => Proof::parse(file).map(ProofFile::Entries),
        }
    }

    /// Checks a proof of entries in either form, as [`Proof::verify`] and [`Receipt::verify`] do.
    ///
    /// # Errors
    /// [`ProofError::NotOfEntries`] where it is a proof of something else; otherwise what does not hold.
    pub fn verify_entries(&self, key: Option<&VerifierKey>) -> Result<Checked<'_>, ProofError> {
        match self {
            ProofFile::Entries(proof) => proof.verify(key),
            ProofFile::Receipt(receipt) => receipt.verify(key),
            ProofFile::Consistency(_) | ProofFile::Event(_) => Err(ProofError::NotOfEntries),
        }
    }

    /// The same for whoever goes by a policy, as [`Proof::verify_by`] and [`Receipt::verify_by`] do.
    ///
    /// # Errors
    /// As these, and as [`ProofFile::verify_entries`].
    pub fn verify_entries_by(&self, policy: &Policy) -> Result<Checked<'_>, ProofError> {
        match self {
            ProofFile::Entries(proof) => proof.verify_by(policy),
            ProofFile::Receipt(receipt) => receipt.verify_by(policy),
            ProofFile::Consistency(_) | ProofFile::Event(_) => Err(ProofError::NotOfEntries),
        }
    }

    /// The checkpoint that a file of proof is made under, as a signed note, which stands at its end; of consistency the newer one. None
    /// of a receipt, and of what is no such file. Nothing is checked.
    pub fn note_in(file: &[u8]) -> Option<&[u8]> {
        if Receipt::is_one(file) { None } else { Lines::split(file).ok().map(|(_, note)| note) }
    }
}

/// A proof that a log holds some entries, as it is read: nothing of it holds before [`Proof::verify`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    frames: Vec<DisclosedFrame>,
    tree_nodes: Vec<Hash>,
    checkpoint: Checkpoint,
    note: Vec<u8>,
    /// Of the file.
    length: usize,
}

impl Proof {
    /// The proof that the tree signed by `note` holds the units of `frames`, which ascend. `tree_nodes` prove those
    /// frames' leaves in it: [`multiproof::prove`] gives them, or [`multiproof::places`] tells which they are.
    ///
    /// # Errors
    /// Where the parts do not make a proof that verifies: no file is made that a reader refuses. Only the signature
    /// is not looked at.
    pub fn new(note: &[u8], tree_nodes: Vec<Hash>, frames: Vec<DisclosedFrame>) -> Result<Self, ProofError> {
        let checkpoint = read_checkpoint(note)?;
        let mut proof = Proof { frames, tree_nodes, checkpoint, note: note.to_vec(), length: 0 };
        let file = proof.render();
        proof.length = file.len();
        let read = Proof::parse(file.as_bytes())?;
        read.verify(None)?;
        debug_assert_eq!(read, proof, "a file tells what it was made of");
        Ok(read)
    }

    /// Reads a file: its form, and what can be told without hashing.
    ///
    /// # Errors
    /// Where it is not one of [`Proof::render`]'s, and where.
    pub fn parse(file: &[u8]) -> Result<Self, ProofError> {
        let several = match Lines::first(file) {
            Some(PROOF_HEADER) => false,
            Some(MULTI_PROOF_HEADER) => true,
            _ => return Err(ProofError::Kind),
        };
        let (mut lines, note) = Lines::split(file)?;
        let checkpoint = read_checkpoint(note)?;
        let extra = lines.expect("`extra` and base64", |line| text::decode(line.strip_prefix("extra ")?))?;
        let mut disclosure = Disclosure::open(&extra)?;
        let mut frames = disclosure.room(several);
        let index = |line: &str| parse_size(line.strip_prefix("index ")?);
        loop {
            let number = match frames.len() {
                0 => lines.expect("`index` and a frame's number", index)?,
                1 if several => lines.expect("a second `index` and a frame's number", index)?,
                1 => break,
                _ => match lines.take(index) {
                    Some(number) => number,
                    None => break,
                },
            };
            let frame = disclosure
                .frame(number, frames.last(), checkpoint.size)
                .map_err(|error| error.of_frame(number))?;
            frames.push(frame);
        }
        disclosure.close()?;
        let tree_nodes = lines.hashes()?;
        Ok(Proof { frames, tree_nodes, checkpoint, note: note.to_vec(), length: file.len() })
    }

    /// The file.
    pub fn render(&self) -> String {
        let mut file = String::new();
        file.push_str(if self.frames.len() == 1 { PROOF_HEADER } else { MULTI_PROOF_HEADER });
        file.push_str("\nextra ");
        file.push_str(&text::encode(&disclosure::encode(&self.frames)));
        for frame in &self.frames {
            file.push_str(&format!("\nindex {}", frame.commitment().frame));
        }
        file.push('\n');
        text::finish(&mut file, &self.tree_nodes, &self.note);
        file
    }

    /// Checks that the disclosed entries are units of their blocks, the blocks frames of the tree, and the tree the
    /// one whose head the checkpoint states; that disclosed secrets are those of their groups; and, given the log's
    /// `key`, that the log signed the tree. Without a key, anybody can have made all of it.
    ///
    /// # Errors
    /// The first of these that does not hold, and in which frame.
    pub fn verify(&self, key: Option<&VerifierKey>) -> Result<Checked<'_>, ProofError> {
        if let Some(key) = key {
            open_checkpoint(&self.note, key).map_err(ProofError::Checkpoint)?;
        }
        self.check(key.is_some())
    }

    /// The same, by a policy: a log that it names has to have signed the tree, and witnesses to have cosigned that, as it asks for.
    ///
    /// # Errors
    /// As [`Proof::verify`], and [`ProofError::Policy`].
    pub fn verify_by(&self, policy: &Policy) -> Result<Checked<'_>, ProofError> {
        policy.open(&self.note).map_err(ProofError::Policy)?;
        self.check(true)
    }

    fn check(&self, anchored: bool) -> Result<Checked<'_>, ProofError> {
        for frame in &self.frames {
            frame.verify().map_err(|at| at.of_frame(frame.commitment().frame))?;
        }
        let leaves: Vec<(u64, Hash)> =
            self.frames.iter().map(|frame| (frame.commitment().frame, frame.commitment().leaf())).collect();
        let root = multiproof::root(self.checkpoint.size, &leaves, &self.tree_nodes, &LogNodes);
        if root.map_err(ProofError::Tree)? != self.checkpoint.root {
            return Err(ProofError::Tree(multiproof::TreeProofError::Root));
        }
        let Proof { frames, checkpoint, length, .. } = self;
        Ok(Checked { frames, checkpoint, length: *length, anchored })
    }
}

/// A proof that holds: what it discloses.
#[derive(Clone, Copy, Debug)]
pub struct Checked<'a> {
    frames: &'a [DisclosedFrame],
    checkpoint: &'a Checkpoint,
    /// Of the file.
    length: usize,
    anchored: bool,
}

impl<'a> Checked<'a> {
    /// Whether a key or a policy was given, and the log's signature verified by it. Otherwise the proof only agrees with itself.
    pub fn anchored(&self) -> bool {
        self.anchored
    }

    /// The origin that the checkpoint states.
    pub fn origin(&self) -> &'a str {
        &self.checkpoint.origin
    }

    /// The number of frames in the tree.
    pub fn tree_size(&self) -> u64 {
        self.checkpoint.size
    }

    /// The root of the tree.
    pub fn root(&self) -> Hash {
        self.checkpoint.root
    }

    /// How many frames the disclosed entries lie in.
    pub fn frames(&self) -> usize {
        self.frames.len()
    }

    /// How many units are disclosed.
    pub fn units(&self) -> usize {
        self.each_unit().count()
    }

    fn each_unit(&self) -> impl Iterator<Item = &'a DisclosedUnit> + use<'a> {
        self.frames.iter().flat_map(DisclosedFrame::units)
    }

    /// The commitments of those frames, ascending.
    pub fn commitments(&self) -> impl Iterator<Item = &'a Commitment> + use<'a> {
        self.frames.iter().map(DisclosedFrame::commitment)
    }

    /// How many entries the disclosed units have: those of rows, and of groups whether they can be opened or not.
    pub fn entry_count(&self) -> usize {
        self.each_unit().map(|unit| unit.entries().len()).sum()
    }

    /// The length of the file in bytes, for whoever opens groups and has to set a limit.
    pub fn file_length(&self) -> usize {
        self.length
    }

    /// What is disclosed, frame by frame.
    pub fn disclosed(&self) -> &'a [DisclosedFrame] {
        self.frames
    }

    /// The disclosed entries that are in no group, with their numbers in the log, ascending.
    pub fn entries(&self) -> impl Iterator<Item = (u64, Entry<'a>)> + use<'a> {
        let rows = self.each_unit().filter(|unit| unit.group().is_none());
        rows.flat_map(DisclosedUnit::entries).map(parsed)
    }

    /// The disclosed groups, in the order of their first entries.
    pub fn groups(&self) -> impl Iterator<Item = CheckedGroup<'a>> + use<'a> {
        self.each_unit().filter_map(DisclosedUnit::group).map(|group| CheckedGroup { group })
    }
}

/// A group that a proof discloses. To open it takes a cipher, which is not here.
#[derive(Clone, Copy, Debug)]
pub struct CheckedGroup<'a> {
    group: &'a DisclosedGroup,
}

impl<'a> CheckedGroup<'a> {
    /// The entries with their numbers in the log, ascending, without their personal fields.
    pub fn shared_entries(&self) -> impl ExactSizeIterator<Item = (u64, Entry<'a>)> + use<'a> {
        self.group.entries.iter().map(parsed)
    }

    /// The numbers of the data subjects, ascending. Who they are, only the host knows that wrote the log.
    pub fn subjects(&self) -> &'a [u64] {
        &self.group.subjects
    }

    /// Presence bits of the personal fields.
    pub fn personal(&self) -> u16 {
        self.group.personal
    }

    /// Whether the secret is disclosed that opens the group; it was found to be the group's.
    pub fn has_secret(&self) -> bool {
        self.group.secret.is_some()
    }
}

fn parsed(entry: &DisclosedEntry) -> (u64, Entry<'_>) {
    (entry.number, Entry::decode(&entry.row).expect("parsing has read every row"))
}

fn read_checkpoint(note: &[u8]) -> Result<Checkpoint, ProofError> {
    read_note(note).map_err(ProofError::Checkpoint)
}

fn read_note(note: &[u8]) -> Result<Checkpoint, NoteError> {
    Checkpoint::parse(SignedNote::parse(note)?.text)
}

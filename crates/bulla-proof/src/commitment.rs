//! The commitment: the public description of a frame, and the entry of the log's tree.
//!
//! `docs/format.md`, "Commitments", is the specification. The encoding is 152 bytes, integers little-endian:
//!
//! | Offset | Size | Field |
//! |---|---|---|
//! | 0 | 1 | version of the encoding, 1 |
//! | 1 | 1 | kind: 1 block, 2 epoch, 3 event, 4 gap |
//! | 2 | 1 | codec: 0 plain body, 1 columns; a block has 1, all else 0 |
//! | 3 | 1 | hash of the block's own tree, a [`HashId`] |
//! | 4 | 1 | the block's decoded content takes at most 2^this bytes; zero unless block |
//! | 5 | 3 | length of the sources section at the end of the body, in bytes; 0 where there is none |
//! | 8 | 16 | log id |
//! | 24 | 8 | frame number |
//! | 32 | 8 | number of the first entry |
//! | 40 | 8 | entries; at least 1 in a block or a gap, and at most 2^21, else none |
//! | 48 | 8 | earliest time, signed, in whole seconds since the Unix epoch |
//! | 56 | 8 | latest time, likewise |
//! | 64 | 8 | epoch: the frame number of the epoch frame whose key seals this; its own for an epoch frame |
//! | 72 | 8 | units of the block; zero unless block |
//! | 80 | 32 | root of the block's own tree; zero unless block |
//! | 112 | 8 | length of the body, in bytes; zero of a gap |
//! | 120 | 32 | SHA-256 of the body as stored |
//!
//! **Invariant:** a commitment has exactly one encoding, and [`Commitment::decode`] refuses every other bytes.

use crate::hash::{Hash, HashId};
use crate::hex;
use crate::tree;
use std::fmt;
use std::str::FromStr;

/// The version of the encoding that this crate writes, and the newest that it reads.
pub const VERSION: u8 = 1;
/// The most that [`Commitment::content_log2`] may be: 32 MiB of decoded content, the least power of two that holds a row
/// of every field at its limit. Writers' full blocks hold little more than 16 MiB.
pub const MAX_CONTENT_LOG2: u8 = 25;
/// The longest body, in bytes: 512 MiB.
pub const MAX_BODY: u64 = 1 << 29;
/// The longest sources section, in bytes: what 24 bits count.
pub const MAX_SOURCES: u32 = (1 << 24) - 1;
/// The shortest sources section, in bytes: one byte and a tag.
pub const MIN_SOURCES: u32 = 17;
/// The least that an entry takes of a block's decoded content, in bytes: the shortest row (presence, time and an
/// operation of one byte) and 4 bytes of overhead.
pub const MIN_ENTRY_CONTENT: u64 = 16;
/// The most entries that a frame has. A gap stands for a block that could not be sealed, so it has no more than one.
pub const MAX_ENTRIES: u64 = (1 << MAX_CONTENT_LOG2) / MIN_ENTRY_CONTENT;
/// The codec of a body that is stored as it is: epochs, events, gaps.
pub const CODEC_PLAIN: u8 = 0;
/// The codec of a block's columns, version 1.
pub const CODEC_COLUMNS: u8 = 1;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FrameKind {
    /// Entries.
    Block = 1,
    /// The beginning of an epoch: its wrapped key.
    Epoch = 2,
    /// Something that happened to the log itself.
    Event = 3,
    /// Entry numbers that were given out and whose entries were lost.
    Gap = 4,
}

impl FrameKind {
    /// The kind numbered `kind`.
    pub const fn from_u8(kind: u8) -> Option<FrameKind> {
        match kind {
            1 => Some(FrameKind::Block),
            2 => Some(FrameKind::Epoch),
            3 => Some(FrameKind::Event),
            4 => Some(FrameKind::Gap),
            _ => None,
        }
    }

    /// The name of the kind.
    pub const fn name(self) -> &'static str {
        match self {
            FrameKind::Block => "block",
            FrameKind::Epoch => "epoch",
            FrameKind::Event => "event",
            FrameKind::Gap => "gap",
        }
    }
}

impl fmt::Display for FrameKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What tells a log from every other: 16 random bytes, chosen when it is made. Shown as lowercase hex.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogId(pub [u8; 16]);

impl LogId {
    /// The bytes of the id.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// Reads 32 lowercase hex digits.
    pub fn parse(text: &str) -> Option<LogId> {
        hex::parse(text).map(LogId)
    }
}

impl fmt::Display for LogId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex::write(&self.0, f)
    }
}

impl fmt::Debug for LogId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex::write(&self.0, f)
    }
}

impl FromStr for LogId {
    type Err = CommitmentError;

    fn from_str(text: &str) -> Result<Self, CommitmentError> {
        LogId::parse(text).ok_or(CommitmentError::LogId)
    }
}

/// The public description of a frame. It holds no personal data and nothing secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commitment {
    /// What the frame is.
    pub kind: FrameKind,
    /// How the body is encoded: [`CODEC_COLUMNS`] in a block, else [`CODEC_PLAIN`].
    pub codec: u8,
    /// The hash function of the block's own tree.
    pub hash: HashId,
    /// The block's decoded content (its canonical rows, with 4 bytes each of overhead) takes at most two to the
    /// power of this many bytes. At most [`MAX_CONTENT_LOG2`]; zero unless block.
    pub content_log2: u8,
    /// The length of the sources section with which the body ends, in bytes: from [`MIN_SOURCES`] to [`MAX_SOURCES`], and less than the
    /// body; zero where there is none, and unless block.
    pub sources_length: u32,
    /// The log that the frame belongs to.
    pub log_id: LogId,
    /// The number of the frame, which is its leaf's index in the log's tree.
    pub frame: u64,
    /// The number of the first entry; in a frame without entries, of the next one to come.
    pub first_entry: u64,
    /// How many entries the frame holds, or in a gap how many it stands for.
    pub entries: u64,
    /// Of a block the time of its earliest entry, as [`whole_second`] has it; of any other frame when it was made, in whole
    /// seconds since the Unix epoch.
    pub earliest: i64,
    /// Of a block the time of its latest entry; of any other frame the same as `earliest`.
    pub latest: i64,
    /// The frame number of the epoch frame whose key seals this one.
    pub epoch: u64,
    /// How many units the block's own tree has; zero unless block.
    pub units: u64,
    /// The root of the block's own tree ([`crate::unit::block_root`]); [`Hash::ZERO`] unless block.
    pub root: Hash,
    /// The length of the body as stored, in bytes. At most [`MAX_BODY`].
    pub body_length: u64,
    /// SHA-256 of the body as stored.
    pub body_digest: Hash,
}

impl Commitment {
    /// The length of the encoding, in bytes.
    pub const LENGTH: usize = 152;
    /// The length of the encoding before the body's digest, in bytes.
    pub const ADDITIONAL_DATA_LENGTH: usize = 120;

    /// The canonical encoding. It does not check the rules that [`Commitment::decode`] does: see
    /// [`Commitment::check`].
    pub fn encode(&self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        bytes[0] = VERSION;
        bytes[1] = self.kind as u8;
        bytes[2] = self.codec;
        bytes[3] = self.hash as u8;
        bytes[4] = self.content_log2;
        bytes[5..8].copy_from_slice(&self.sources_length.to_le_bytes()[..3]);
        bytes[8..24].copy_from_slice(&self.log_id.0);
        bytes[24..32].copy_from_slice(&self.frame.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.first_entry.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.entries.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.earliest.to_le_bytes());
        bytes[56..64].copy_from_slice(&self.latest.to_le_bytes());
        bytes[64..72].copy_from_slice(&self.epoch.to_le_bytes());
        bytes[72..80].copy_from_slice(&self.units.to_le_bytes());
        bytes[80..112].copy_from_slice(&self.root.0);
        bytes[112..120].copy_from_slice(&self.body_length.to_le_bytes());
        bytes[120..152].copy_from_slice(&self.body_digest.0);
        bytes
    }

    /// Reads an encoding.
    ///
    /// # Errors
    /// [`CommitmentError::NewerVersion`] for an encoding of a later version of the format, whatever its length;
    /// otherwise the first rule that the bytes break.
    pub fn decode(bytes: &[u8]) -> Result<Commitment, CommitmentError> {
        match bytes.first() {
            Some(&version) if version > VERSION => return Err(CommitmentError::NewerVersion(version)),
            Some(0) => return Err(CommitmentError::NoVersion),
            _ => {}
        }
        let encoding: &[u8; Self::LENGTH] =
            bytes.try_into().map_err(|_| CommitmentError::Length(bytes.len()))?;
        let commitment = Commitment {
            kind: FrameKind::from_u8(encoding[1]).ok_or(CommitmentError::Kind(encoding[1]))?,
            codec: encoding[2],
            hash: HashId::from_u8(encoding[3]).ok_or(CommitmentError::HashId(encoding[3]))?,
            content_log2: encoding[4],
            sources_length: u32::from_le_bytes([encoding[5], encoding[6], encoding[7], 0]),
            log_id: LogId(take(encoding, 8)),
            frame: u64::from_le_bytes(take(encoding, 24)),
            first_entry: u64::from_le_bytes(take(encoding, 32)),
            entries: u64::from_le_bytes(take(encoding, 40)),
            earliest: i64::from_le_bytes(take(encoding, 48)),
            latest: i64::from_le_bytes(take(encoding, 56)),
            epoch: u64::from_le_bytes(take(encoding, 64)),
            units: u64::from_le_bytes(take(encoding, 72)),
            root: Hash(take(encoding, 80)),
            body_length: u64::from_le_bytes(take(encoding, 112)),
            body_digest: Hash(take(encoding, 120)),
        };
        commitment.check()?;
        Ok(commitment)
    }

    /// Checks the rules that hold for every commitment: what [`Commitment::decode`] refuses, and what a writer
    /// asserts before it encodes.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn check(&self) -> Result<(), CommitmentError> {
        let block = self.kind == FrameKind::Block;
        let rules = [
            (
                self.codec == if block { CODEC_COLUMNS } else { CODEC_PLAIN },
                CommitmentError::Codec(self.codec),
            ),
            (
                self.content_log2 <= if block { MAX_CONTENT_LOG2 } else { 0 },
                CommitmentError::ContentSize(self.content_log2),
            ),
            (self.frame < u64::MAX, CommitmentError::FrameOverflow),
            (self.entries_fit(), CommitmentError::Entries(self.entries)),
            (self.first_entry.checked_add(self.entries).is_some(), CommitmentError::EntryOverflow),
            (self.times_fit(), CommitmentError::Times),
            (self.epoch_fits(), CommitmentError::Epoch),
            (self.units_fit(), CommitmentError::Units(self.units)),
            (block || self.root == Hash::ZERO, CommitmentError::Root),
            (self.body_length <= self.longest_body(), CommitmentError::BodyLength(self.body_length)),
            (self.sources_fit(), CommitmentError::Sources(self.sources_length)),
        ];
        rules.into_iter().try_for_each(|(holds, error)| if holds { Ok(()) } else { Err(error) })
    }

    /// The encoding up to the body's digest: what the body's encryption authenticates with it.
    pub fn additional_data(&self) -> [u8; Self::ADDITIONAL_DATA_LENGTH] {
        take(&self.encode(), 0)
    }

    /// The length of the body before its sources section, in bytes: what the epoch's key encrypts.
    pub fn sealed_length(&self) -> u64 {
        self.body_length.saturating_sub(self.sources_length.into())
    }

    /// The leaf in the log's tree: SHA-256(0x00 ‖ encoding), as RFC 6962, section 2.1, says.
    pub fn leaf(&self) -> Hash {
        tree::leaf_hash(&self.encode())
    }

    fn entries_fit(&self) -> bool {
        match self.kind {
            FrameKind::Block => {
                let content = 1_u64.checked_shl(self.content_log2.into()).unwrap_or(0);
                (1..=content / MIN_ENTRY_CONTENT).contains(&self.entries)
            }
            FrameKind::Gap => (1..=MAX_ENTRIES).contains(&self.entries),
            FrameKind::Epoch | FrameKind::Event => self.entries == 0,
        }
    }

    fn times_fit(&self) -> bool {
        match self.kind {
            FrameKind::Block => self.earliest <= self.latest,
            FrameKind::Epoch | FrameKind::Event | FrameKind::Gap => self.earliest == self.latest,
        }
    }

    fn epoch_fits(&self) -> bool {
        match self.kind {
            FrameKind::Epoch => self.epoch == self.frame,
            FrameKind::Block | FrameKind::Event | FrameKind::Gap => self.epoch < self.frame,
        }
    }

    fn longest_body(&self) -> u64 {
        match self.kind {
            FrameKind::Block | FrameKind::Epoch | FrameKind::Event => MAX_BODY,
            FrameKind::Gap => 0,
        }
    }

    fn sources_fit(&self) -> bool {
        let block = self.kind == FrameKind::Block;
        let length = self.sources_length;
        length == 0
            || block && (MIN_SOURCES..=MAX_SOURCES).contains(&length) && u64::from(length) < self.body_length
    }

    fn units_fit(&self) -> bool {
        match self.kind {
            FrameKind::Block => (1..=self.entries).contains(&self.units),
            FrameKind::Epoch | FrameKind::Event | FrameKind::Gap => self.units == 0,
        }
    }
}

/// The whole second since the Unix epoch that a time of an entry, in nanoseconds, lies in: what commitments tell of it.
pub fn whole_second(nanoseconds: i64) -> i64 {
    nanoseconds.div_euclid(1_000_000_000)
}

/// The `M` bytes at `offset`, which the callers above keep within the `N`.
fn take<const N: usize, const M: usize>(bytes: &[u8; N], offset: usize) -> [u8; M] {
    std::array::from_fn(|index| bytes[offset + index])
}

/// Why bytes are not a commitment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitmentError {
    /// It is not [`Commitment::LENGTH`] bytes long, but this many.
    Length(usize),
    /// Its version is zero.
    NoVersion,
    /// A later version of Bulla wrote it.
    NewerVersion(u8),
    /// No frame is of this kind.
    Kind(u8),
    /// The kind of frame has no such codec.
    Codec(u8),
    /// There is no such hash function.
    HashId(u8),
    /// The declared size of the content is past the limit, or there is one where there is no content.
    ContentSize(u8),
    /// No frame follows this one's number.
    FrameOverflow,
    /// The kind of frame has no such number of entries, or its declared content cannot hold them.
    Entries(u64),
    /// The entries run past the last entry number.
    EntryOverflow,
    /// The earliest time is after the latest, or another one in a frame that is no block.
    Times,
    /// The epoch does not precede the frame, or an epoch frame names another.
    Epoch,
    /// A block has no unit or more units than entries, or another kind of frame has some.
    Units(u64),
    /// A frame that is not a block has a root.
    Root,
    /// The body is longer than [`MAX_BODY`], or a gap has one.
    BodyLength(u64),
    /// The sources section is too short or too long to be one, not shorter than the body, or in a frame that is no block.
    Sources(u32),
    /// A log id is not 32 lowercase hex digits.
    LogId,
}

impl fmt::Display for CommitmentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length(length) => {
                write!(f, "the commitment has {length} bytes, not {}", Commitment::LENGTH)
            }
            Self::NoVersion => write!(f, "the commitment has no version"),
            Self::NewerVersion(version) => {
                write!(f, "the commitment has version {version}; this program reads up to {VERSION}")
            }
            Self::Kind(kind) => write!(f, "the commitment has the unknown frame kind {kind}"),
            Self::Codec(codec) => {
                write!(f, "the commitment has codec {codec}, which its kind of frame has not")
            }
            Self::HashId(id) => write!(f, "the commitment has the unknown hash {id}"),
            Self::ContentSize(log2) => {
                write!(
                    f,
                    "the commitment declares 2^{log2} bytes of content, which its kind of frame has not"
                )
            }
            Self::FrameOverflow => write!(f, "the commitment has a frame number that none can follow"),
            Self::Entries(entries) => {
                write!(f, "the commitment has {entries} entries, which its kind of frame or its size has not")
            }
            Self::EntryOverflow => write!(f, "the commitment has entries past the last entry number"),
            Self::Times => write!(f, "the commitment has an earliest time that its latest cannot have"),
            Self::Epoch => write!(f, "the commitment names an epoch that its frame cannot have"),
            Self::Units(units) => write!(f, "the commitment has {units} units, which its entries have not"),
            Self::Root => write!(f, "the commitment has a root but is not of a block"),
            Self::BodyLength(length) => {
                write!(f, "the commitment has a body of {length} bytes, more than its kind of frame has")
            }
            Self::Sources(length) => {
                write!(
                    f,
                    "the commitment has a sources section of {length} bytes, which its frame or its body has not"
                )
            }
            Self::LogId => write!(f, "the log id is not 32 lowercase hex digits"),
        }
    }
}

impl std::error::Error for CommitmentError {}

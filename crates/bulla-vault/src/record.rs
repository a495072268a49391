//! The records: what the vault is, and how far it has come. All of them are there from the beginning.
//!
//! ```text
//! 1: "bullaVM5" ‖ log id (16) ‖ generation u64 ‖ next number u64 ‖ indexed: 16 times u64 ‖ follows: size u64, root (32)
//!    ‖ next index bucket u32 ‖ unfollowed u64, where something is ‖ given up: so many times, at most 64: id (16), ascending ‖ CRC-32C
//! 2: "bullaVE3" ‖ state u8: 0 none, 1 intended, 2 erased ‖ three zeros ‖ count u32 ‖ SHA-256 of what was written down of it (32)
//!    ‖ so many numbers u64 ‖ CRC-32C
//! 3: none
//! 4: "bullaVC2" ‖ count u64 ‖ random (8) ‖ CRC-32C
//! 5: "bullaVS2" ‖ so many times: first u64 ‖ end u64; ascending ‖ CRC-32C
//! ```
//!
//! Little-endian; behind each the seal of [`Keys::vouch`]. The checksum is for whoever has no keys yet: the first record says which
//! generation's they are. In that one is whatever an older vault could be made to look newer with: a record is authentic by itself,
//! and what it says of the numbers given and of the frames followed is of one state.

use super::index::Half;
use super::keys::{Keys, SEAL};
use super::table::Table;
use super::transaction::{ReadTransaction, WriteTransaction};
use super::transaction_error::{TransactionError, damaged};
use bulla_crypto::environment::Random;
use bulla_crypto::group::{Followed, PartId};
use bulla_proof::commitment::LogId;
use bulla_proof::hash::Hash;
use bulla_proof::tree::TreeHead;
use bulla_store::{Error, ErrorKind, Result};
use std::collections::BTreeSet;
use std::ops::Range;

/// What the vault is, and how far it has come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Meta {
    pub(super) log: LogId,
    pub(super) generation: u64,
    /// The number that the next new subject gets; no row has it or a greater one.
    pub(super) next_number: u64,
    /// Whom the index leads to.
    pub(super) indexed: Indexed,
    /// The log's frames whose erasures the vault has followed, and whose numbers are all below the next one.
    pub(super) follows: TreeHead,
    /// As [`Followed::unfollowed`], of these frames.
    pub(super) unfollowed: Option<u64>,
    /// As [`super::Vault::given_up`].
    pub(super) given_up: BTreeSet<PartId>,
    /// The id that the next new index bucket gets; none in use has it or a greater one.
    pub(super) next_bucket: u32,
}

/// Whom the index leads to: of each sixteenth of the pseudonyms, by their first four bits, below which number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Indexed(pub(super) [u64; SIXTEENTHS]);

impl Indexed {
    /// Everybody below a number, whoever that is.
    pub(super) fn up_to(number: u64) -> Self {
        Indexed([number; SIXTEENTHS])
    }

    /// Whether the index leads to whoever has this number, with a pseudonym that begins so.
    pub(super) fn has(&self, number: u64, half: Half) -> bool {
        number < self.0[sixteenth(half)]
    }

    /// Everybody below this number is one whom the index leads to.
    pub(super) fn least(&self) -> u64 {
        self.0.into_iter().min().unwrap_or_default()
    }
}

/// Which sixteenth a pseudonym that begins so belongs to.
pub(super) fn sixteenth(half: Half) -> usize {
    usize::from(half[0] >> 4)
}

/// Identifies the last transaction. Two copies of one vault with the same value have the same content.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Changes {
    /// How many transactions there were.
    pub(super) count: u64,
    /// Random bytes, drawn anew in each transaction. They tell apart two copies that went on separately and had equally many.
    pub(super) tag: [u8; 8],
}

/// An erasure that nobody has confirmed yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Erasing {
    pub(super) numbers: Vec<u64>,
    pub(super) erased: bool,
    /// As [`super::Unconfirmed::written`].
    pub(super) written: Hash,
}

/// The numbers that nobody has though the log tells of no erasure: the vault went on above them, or what told of the erasure is lost.
/// From the first of each pair to before the second; ascending, and no number twice.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Skipped(pub(super) Vec<(u64, u64)>);

/// Into so many parts the pseudonyms are divided for the index to take people in.
pub(super) const SIXTEENTHS: usize = 16;
/// The most subjects that one erasure takes.
pub const MAX_ERASED: usize = 4096;
/// The most parts of the log that the vault knows to be given up.
pub(super) const MAX_GIVEN_UP: usize = 64;
/// The most ranges of numbers that were skipped: a record of a mebibyte.
pub(super) const MAX_SKIPPED: usize = 1 << 16;

/// A record's id in the database.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Record {
    Vault = 1,
    Erasing = 2,
    Changes = 4,
    Skipped = 5,
}

/// What a record says, until keys vouch for it.
pub(super) struct Peeked<T> {
    pub(super) content: T,
    record: Record,
    row: Vec<u8>,
}

impl<T> Peeked<T> {
    /// What the record says, and the keys vouch for.
    pub(super) fn vouched(self, keys: &Keys) -> Result<T, TransactionError> {
        match keys.vouched(Table::Records, self.record as u64, &self.row) {
            Some(_) => Ok(self.content),
            None => Err(self.record.damaged()),
        }
    }
}

const META_MAGIC: &[u8; 8] = b"bullaVM5";
const META_LENGTH: usize = 8 + 16 + 8 + 8 + 8 * SIXTEENTHS + 8 + 32 + 4;
const CHANGES_MAGIC: &[u8; 8] = b"bullaVC2";
const ERASING_MAGIC: &[u8; 8] = b"bullaVE3";
const SKIPPED_MAGIC: &[u8; 8] = b"bullaVS2";

impl Record {
    fn damaged(self) -> TransactionError {
        damaged(format!("its record {self:?}"))
    }

    /// A record, of which nobody has vouched yet but its checksum.
    fn peek<T>(
        self,
        txn: &ReadTransaction<'_>,
        decode: impl Fn(&[u8]) -> Option<T>,
    ) -> Result<Option<Peeked<T>>, TransactionError> {
        let Some(row) = txn.get(Table::Records, self as u64)? else { return Ok(None) };
        let content = row.split_last_chunk::<SEAL>().and_then(|(content, _)| decode(content));
        Ok(Some(Peeked { content: content.ok_or_else(|| self.damaged())?, record: self, row }))
    }

    fn read<T>(
        self,
        txn: &ReadTransaction<'_>,
        keys: &Keys,
        decode: impl Fn(&[u8]) -> Option<T>,
    ) -> Result<T, TransactionError> {
        self.peek(txn, decode)?.ok_or_else(|| self.damaged())?.vouched(keys)
    }

    fn write(
        self,
        txn: &mut WriteTransaction<'_>,
        keys: &Keys,
        content: Vec<u8>,
    ) -> Result<(), TransactionError> {
        txn.put(Table::Records, self as u64, &keys.vouch(Table::Records, self as u64, content))
    }
}

/// Writes all records of a new vault. From here on it is one.
pub(super) fn begin(txn: &mut WriteTransaction<'_>, keys: &Keys) -> Result<(), TransactionError> {
    Erasing::clear(txn, keys)?;
    Changes::default().write(txn, keys)?;
    Skipped::default().write(txn, keys)?;
    Meta {
        log: keys.log,
        generation: keys.generation,
        next_number: 0,
        indexed: Indexed::up_to(0),
        follows: TreeHead::empty(),
        unfollowed: None,
        given_up: BTreeSet::new(),
        next_bucket: 1,
    }
    .write(txn, keys)
}

/// That those records are there, and vouched for, which a transaction does not read unless it needs them. Whoever took one away could
/// otherwise wait until somebody does.
///
/// # Errors
/// Where one is missing or damaged.
pub(super) fn require_others(txn: &ReadTransaction<'_>, keys: &Keys) -> Result<(), TransactionError> {
    Changes::read(txn, keys)?;
    Skipped::read(txn, keys).map(|_| ())
}

impl Meta {
    /// Reads it without keys; `None` in a vault whose making was cut short.
    pub(super) fn peek(txn: &ReadTransaction<'_>) -> Result<Option<Peeked<Self>>, TransactionError> {
        Record::Vault.peek(txn, Self::decode)
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let content = checked(bytes)?;
        let [magic, log @ ..] = content.as_chunks::<8>().0 else { return None };
        let (content, rest) = content.split_at_checked(META_LENGTH)?;
        // Eight bytes more than ids are is what says that something is unfollowed.
        let (unfollowed, ids) = rest.split_at(rest.len() % 16);
        let unfollowed = match unfollowed {
            [] => None,
            number => Some(u64::from_le_bytes(number.try_into().ok()?)),
        };
        let ids = ids.as_chunks::<16>().0;
        if ids.len() > MAX_GIVEN_UP || !ids.is_sorted_by(|one, next| one < next) {
            return None;
        }
        let given_up = ids.iter().map(|id| PartId(*id)).collect();
        let [low, high, generation, next_number, log @ ..] = log else { return None };
        let (indexed, [size, ..]) = log.split_first_chunk::<SIXTEENTHS>()? else { return None };
        let (root, next_bucket) = content[META_LENGTH - 36..].split_first_chunk::<32>()?;
        let (next_number, size) = (u64::from_le_bytes(*next_number), u64::from_le_bytes(*size));
        let indexed = Indexed(indexed.map(u64::from_le_bytes));
        let is_followed = |frame: &u64| *frame < size || *frame == Followed::NOWHERE;
        if magic != META_MAGIC
            || indexed.0.iter().any(|end| *end > next_number)
            || !unfollowed.iter().all(is_followed)
        {
            return None;
        }
        let mut id = [0; 16];
        id[..8].copy_from_slice(low);
        id[8..].copy_from_slice(high);
        Some(Meta {
            log: LogId(id),
            generation: u64::from_le_bytes(*generation),
            next_number,
            indexed,
            follows: TreeHead { size, root: Hash(*root) },
            unfollowed,
            given_up,
            next_bucket: u32::from_le_bytes(next_bucket.try_into().ok()?),
        })
    }

    /// Has it follow another tree. Where that ends before an event that was passed over, the log is one that has it nowhere any more.
    pub(super) fn follow(&mut self, head: TreeHead) {
        self.follows = head;
        self.unfollowed =
            self.unfollowed.map(|frame| if frame < head.size { frame } else { Followed::NOWHERE });
    }

    /// Takes these parts for ones that the log gave up, and that are seen to.
    ///
    /// # Errors
    /// `Refused` where they come to more than there can be.
    pub(super) fn give_up(&mut self, ids: &BTreeSet<PartId>) -> Result<()> {
        self.given_up.extend(ids);
        match self.given_up.len() <= MAX_GIVEN_UP {
            true => Ok(()),
            false => {
                let message = format!(
                    "a vault can follow a log of which {MAX_GIVEN_UP} parts were given up, and this would be more"
                );
                Err(Error::new(ErrorKind::Refused, message))
            }
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(META_LENGTH + 8 + 16 * self.given_up.len() + 4 + SEAL);
        bytes.extend_from_slice(META_MAGIC);
        bytes.extend_from_slice(&self.log.0);
        bytes.extend_from_slice(&self.generation.to_le_bytes());
        bytes.extend_from_slice(&self.next_number.to_le_bytes());
        bytes.extend(self.indexed.0.into_iter().flat_map(u64::to_le_bytes));
        bytes.extend_from_slice(&self.follows.size.to_le_bytes());
        bytes.extend_from_slice(&self.follows.root.0);
        bytes.extend_from_slice(&self.next_bucket.to_le_bytes());
        bytes.extend(self.unfollowed.into_iter().flat_map(u64::to_le_bytes));
        bytes.extend(self.given_up.iter().flat_map(|PartId(id)| id));
        with_check(bytes)
    }

    pub(super) fn write(&self, txn: &mut WriteTransaction<'_>, keys: &Keys) -> Result<(), TransactionError> {
        Record::Vault.write(txn, keys, self.encode())
    }
}

impl Changes {
    /// Reads it without keys.
    pub(super) fn peek(txn: &ReadTransaction<'_>) -> Result<Self, TransactionError> {
        let peeked = Record::Changes.peek(txn, Self::decode)?.ok_or_else(|| Record::Changes.damaged())?;
        Ok(peeked.content)
    }

    pub(super) fn read(txn: &ReadTransaction<'_>, keys: &Keys) -> Result<Self, TransactionError> {
        Record::Changes.read(txn, keys, Self::decode)
    }

    /// The value that identifies the next transaction.
    ///
    /// # Errors
    /// Where there is no randomness.
    pub(super) fn next(self, random: &dyn Random) -> Result<Self> {
        let mut tag = [0; 8];
        random.fill(&mut tag)?;
        Ok(Changes { count: self.count.saturating_add(1), tag })
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let ([magic, count, tag], []) = checked(bytes)?.as_chunks::<8>() else { return None };
        (magic == CHANGES_MAGIC).then_some(Changes { count: u64::from_le_bytes(*count), tag: *tag })
    }

    pub(super) fn encode(self) -> Vec<u8> {
        with_check([&CHANGES_MAGIC[..], &self.count.to_le_bytes(), &self.tag].concat())
    }

    pub(super) fn write(self, txn: &mut WriteTransaction<'_>, keys: &Keys) -> Result<(), TransactionError> {
        Record::Changes.write(txn, keys, self.encode())
    }
}

impl Erasing {
    /// The erasure, if there is one, of a vault that gave the numbers below `next_number`.
    pub(super) fn read(
        txn: &ReadTransaction<'_>,
        keys: &Keys,
        next_number: u64,
    ) -> Result<Option<Self>, TransactionError> {
        let erasing = Record::Erasing.read(txn, keys, Self::decode)?;
        let last = erasing.as_ref().and_then(|erasing| erasing.numbers.last());
        match last.is_some_and(|&last| last >= next_number) {
            true => Err(Record::Erasing.damaged()),
            false => Ok(erasing),
        }
    }

    /// The erasure, if there is one; `None` where the bytes are not that record.
    pub(super) fn decode(bytes: &[u8]) -> Option<Option<Self>> {
        let (head, numbers) = checked(bytes)?.split_at_checked(16)?;
        let (written, numbers) = numbers.split_first_chunk()?;
        let (numbers, []) = numbers.as_chunks::<8>() else { return None };
        let count = u32::from_le_bytes(head[12..].try_into().ok()?);
        let sound = head[..8] == *ERASING_MAGIC && head[9..12] == [0; 3] && numbers.len() == count as usize;
        let sound = sound && numbers.len() <= MAX_ERASED;
        let numbers = numbers.iter().map(|number| u64::from_le_bytes(*number));
        let sound = sound && numbers.clone().is_sorted_by(|one, next| one < next);
        let written = Hash(*written);
        let erasing = match head[8] {
            0 if count == 0 && written == Hash::ZERO => None,
            state @ 1..=2 if count > 0 => {
                Some(Erasing { numbers: numbers.collect(), erased: state == 2, written })
            }
            _ => return None,
        };
        sound.then_some(erasing)
    }

    pub(super) fn encode(erasing: Option<&Self>) -> Vec<u8> {
        let (state, written, numbers) = match erasing {
            None => (0, Hash::ZERO, &[][..]),
            Some(erasing) => (1 + u8::from(erasing.erased), erasing.written, &erasing.numbers[..]),
        };
        let count = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
        let mut bytes = Vec::with_capacity(20 + Hash::LENGTH + 8 * numbers.len() + SEAL);
        bytes.extend_from_slice(ERASING_MAGIC);
        bytes.extend_from_slice(&[state, 0, 0, 0]);
        bytes.extend_from_slice(&count.to_le_bytes());
        bytes.extend_from_slice(written.as_bytes());
        bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        with_check(bytes)
    }

    pub(super) fn write(&self, txn: &mut WriteTransaction<'_>, keys: &Keys) -> Result<(), TransactionError> {
        Record::Erasing.write(txn, keys, Self::encode(Some(self)))
    }

    pub(super) fn clear(txn: &mut WriteTransaction<'_>, keys: &Keys) -> Result<(), TransactionError> {
        Record::Erasing.write(txn, keys, Self::encode(None))
    }

    /// Whether `number` is being erased, and therefore must not be given out.
    pub(super) fn holds_back(&self, number: u64) -> bool {
        !self.erased && self.numbers.contains(&number)
    }
}

impl Skipped {
    pub(super) fn read(txn: &ReadTransaction<'_>, keys: &Keys) -> Result<Self, TransactionError> {
        Record::Skipped.read(txn, keys, Self::decode)
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (magic, ranges) = checked(bytes)?.split_first_chunk::<8>()?;
        let (ranges, []) = ranges.as_chunks::<16>() else { return None };
        if ranges.len() > MAX_SKIPPED {
            return None;
        }
        let mut before = 0;
        let ranges = ranges.iter().map(|range| {
            let ([first, end], _) = range.as_chunks::<8>() else { return None };
            let (first, end) = (u64::from_le_bytes(*first), u64::from_le_bytes(*end));
            let ascends = before <= first && first < end;
            before = end;
            ascends.then_some((first, end))
        });
        let ranges = ranges.collect::<Option<Vec<_>>>()?;
        (magic == SKIPPED_MAGIC).then_some(Skipped(ranges))
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(12 + 16 * self.0.len() + SEAL);
        bytes.extend_from_slice(SKIPPED_MAGIC);
        let numbers = self.0.iter().flat_map(|(first, end)| [*first, *end]);
        bytes.extend(numbers.flat_map(u64::to_le_bytes));
        with_check(bytes)
    }

    pub(super) fn write(&self, txn: &mut WriteTransaction<'_>, keys: &Keys) -> Result<(), TransactionError> {
        Record::Skipped.write(txn, keys, self.encode())
    }

    pub(super) fn into_ranges(self) -> Vec<Range<u64>> {
        self.0.into_iter().map(|(first, end)| first..end).collect()
    }

    /// Adds the numbers from `first` to before `end`, which are above all that it has.
    ///
    /// # Errors
    /// `Refused` where it has as many ranges as it can.
    pub(super) fn add(&mut self, first: u64, end: u64) -> Result<()> {
        match self.0.last_mut() {
            Some((_, last)) if *last == first => *last = end,
            _ => self.0.push((first, end)),
        }
        self.require_room()
    }

    /// Adds the numbers of `others`, wherever they lie.
    ///
    /// # Errors
    /// `Refused` where that comes to more ranges than it can have.
    pub(super) fn insert(&mut self, others: &Self) -> Result<()> {
        let mut both = [&self.0[..], &others.0].concat();
        both.sort_unstable();
        self.0.clear();
        for (first, end) in both {
            match self.0.last_mut() {
                Some((_, last)) if first <= *last => *last = end.max(*last),
                _ => self.0.push((first, end)),
            }
        }
        self.require_room()
    }

    /// Takes a number out, if it is there.
    ///
    /// # Errors
    /// `Refused` where that divides a range, and there are as many as there can be.
    pub(super) fn remove(&mut self, number: u64) -> Result<()> {
        let Some((at, (first, end))) = self.range_of(number) else { return Ok(()) };
        let rest = [(first, number), (number + 1, end)];
        self.0.splice(at..=at, rest.into_iter().filter(|(first, end)| first < end));
        self.require_room()
    }

    fn require_room(&self) -> Result<()> {
        if self.0.len() <= MAX_SKIPPED {
            return Ok(());
        }
        let message = format!(
            "a vault can leave out {MAX_SKIPPED} ranges of numbers, and this would be more: go on with a newer copy of the vault, or, \
             where the log is the older one, of the log"
        );
        Err(Error::new(ErrorKind::Refused, message))
    }

    /// The range that a number is in, and where in the list that is.
    fn range_of(&self, number: u64) -> Option<(usize, (u64, u64))> {
        let at = self.0.partition_point(|(_, end)| *end <= number);
        let range = self.0.get(at).filter(|(first, _)| *first <= number)?;
        Some((at, *range))
    }

    /// Where the numbers end that were skipped with this one, if it was.
    pub(super) fn end_of(&self, number: u64) -> Option<u64> {
        self.range_of(number).map(|(_, (_, end))| end)
    }

    /// Whether all numbers from `first` to before `end` were skipped.
    pub(super) fn covers(&self, first: u64, end: u64) -> bool {
        let mut from = first;
        while from < end {
            let Some(next) = self.end_of(from) else { return false };
            from = next;
        }
        true
    }
}

pub(super) fn with_check(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
    bytes
}

fn checked(bytes: &[u8]) -> Option<&[u8]> {
    let (content, check) = bytes.split_last_chunk::<4>()?;
    (crc32c::crc32c(content) == u32::from_le_bytes(*check)).then_some(content)
}

//! The binary form of a disclosure, as units are taken off its front.
//!
//! **Invariant:** room is made for no more than the bytes that are left can fill.

use super::error::UnitProblem;
use super::unit::{DisclosedEntry, DisclosedGroup, DisclosedItem, DisclosedUnit, UnitContent};
use crate::commitment::Commitment;
use crate::entry::{Entry, Field, MAX_SUBJECTS, PRESENCE, RawRow};
use crate::group::GroupSecret;
use crate::hash::Hash;
use crate::unit::{KIND_GROUP, KIND_ROW, SALT_LENGTH};
use crate::varint::{self, VarintError};

/// The least that an entry takes: number, length, and the shortest row.
const MIN_ENTRY: usize = 1 + 1 + 12;
/// The least that a unit takes: position, kind, salt, and an entry.
pub(super) const MIN_UNIT: usize = 1 + 1 + SALT_LENGTH + MIN_ENTRY;
/// The least that a common item takes: position, salt, length, and what kind it is with a byte.
pub(super) const MIN_ITEM: usize = 1 + SALT_LENGTH + 1 + 2;
/// The least that a group's ciphertext has: how it is written.
const MIN_CIPHERTEXT: usize = 1;

/// What is left of a disclosure.
pub(super) struct Cursor<'a> {
    pub(super) rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// Takes the next unit of the block that `commitment` is of, which follows `before`.
    pub(super) fn unit(
        &mut self,
        commitment: &Commitment,
        before: Option<&DisclosedUnit>,
    ) -> Result<DisclosedUnit, UnitProblem> {
        let least = before.map_or(0, |before| before.position + 1);
        let position = self.ascending(least, commitment.units, UnitProblem::Position)?;
        let [kind] = self.array()?;
        if !matches!(kind, KIND_ROW | KIND_GROUP) {
            return Err(UnitProblem::Kind(kind));
        }
        let salt = self.array()?;
        let content = match kind {
            KIND_ROW => UnitContent::Row(self.row(commitment)?),
            _ => UnitContent::Group(Box::new(self.group(commitment)?)),
        };
        let unit = DisclosedUnit { position, salt, content };
        if before.is_some_and(|before| before.first_entry() >= unit.first_entry()) {
            return Err(UnitProblem::Order);
        }
        Ok(unit)
    }

    /// Takes the next common item, whose position is from `least` on and below `count`.
    pub(super) fn item(&mut self, least: u64, count: u64) -> Result<DisclosedItem, UnitProblem> {
        let position = self.ascending(least, count, UnitProblem::Position)?;
        let salt = self.array()?;
        let length = self.varint()?;
        Ok(DisclosedItem { position, salt, bytes: self.bytes(length)?.to_vec() })
    }

    fn row(&mut self, commitment: &Commitment) -> Result<DisclosedEntry, UnitProblem> {
        let entry = self.entry(commitment, commitment.first_entry)?;
        Entry::decode(&entry.row).map_err(UnitProblem::Row)?;
        Ok(entry)
    }

    fn group(&mut self, commitment: &Commitment) -> Result<DisclosedGroup, UnitProblem> {
        let personal = u16::from_le_bytes(self.array()?);
        if personal & !PRESENCE != 0 || personal & Field::Subject.bit() == 0 {
            return Err(UnitProblem::Personal(personal));
        }
        let entries = self.shared_entries(commitment, personal)?;
        let subjects = self.subjects()?;
        let length = self.varint()?;
        if length < MIN_CIPHERTEXT as u64 {
            return Err(UnitProblem::Ciphertext(length));
        }
        let ciphertext = self.bytes(length)?.to_vec();
        let commitment = Hash(self.array()?);
        let secret = match self.array()? {
            [0] => None,
            [1] => Some(GroupSecret::new(self.array()?)),
            [other] => return Err(UnitProblem::Opened(other)),
        };
        Ok(DisclosedGroup { personal, entries, subjects, ciphertext, commitment, secret })
    }

    fn shared_entries(
        &mut self,
        commitment: &Commitment,
        personal: u16,
    ) -> Result<Vec<DisclosedEntry>, UnitProblem> {
        let count = self.varint()?;
        if !(1..=commitment.entries).contains(&count) {
            return Err(UnitProblem::Entries(count));
        }
        let mut entries = Vec::with_capacity(self.room(count, MIN_ENTRY)?);
        let mut least = commitment.first_entry;
        for _ in 0..count {
            let entry = self.entry(commitment, least)?;
            Entry::decode(&entry.row).map_err(UnitProblem::Row)?;
            let presence = RawRow::parse(&entry.row).map_err(UnitProblem::Row)?.presence;
            if presence & personal != 0 {
                return Err(UnitProblem::NotShared(entry.number));
            }
            // A commitment's entries do not run past the last number.
            least = entry.number + 1;
            entries.push(entry);
        }
        Ok(entries)
    }

    /// Takes an entry's number, which is `least` or more, and its row.
    fn entry(&mut self, commitment: &Commitment, least: u64) -> Result<DisclosedEntry, UnitProblem> {
        // A commitment's entries do not run past the last number.
        let end = commitment.first_entry + commitment.entries;
        let number = self.ascending(least, end, UnitProblem::Entry)?;
        let length = self.varint()?;
        Ok(DisclosedEntry { number, row: self.bytes(length)?.to_vec() })
    }

    fn subjects(&mut self) -> Result<Vec<u64>, UnitProblem> {
        let count = self.varint()?;
        if !(1..=MAX_SUBJECTS as u64).contains(&count) {
            return Err(UnitProblem::Subjects(count));
        }
        let mut subjects = Vec::with_capacity(self.room(count, 1)?);
        let mut least = Some(0_u64);
        for _ in 0..count {
            let distance = self.varint()?;
            let subject = least.and_then(|least| least.checked_add(distance)).ok_or(UnitProblem::Subject)?;
            least = subject.checked_add(1);
            subjects.push(subject);
        }
        Ok(subjects)
    }

    /// Takes a number from `least` on, told by its distance from it; `past` where it is not below `end`.
    fn ascending(&mut self, least: u64, end: u64, past: UnitProblem) -> Result<u64, UnitProblem> {
        least.checked_add(self.varint()?).filter(|&number| number < end).ok_or(past)
    }

    /// So many things of at least `least` bytes each, if they can be there.
    pub(super) fn room(&self, count: u64, least: usize) -> Result<usize, UnitProblem> {
        let count = usize::try_from(count).ok().filter(|&count| count <= self.rest.len() / least);
        count.ok_or(UnitProblem::Truncated)
    }

    fn bytes(&mut self, length: u64) -> Result<&'a [u8], UnitProblem> {
        let length = usize::try_from(length).map_err(|_| UnitProblem::Truncated)?;
        self.take(length).ok_or(UnitProblem::Truncated)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], UnitProblem> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(UnitProblem::Truncated)?;
        self.rest = rest;
        Ok(*bytes)
    }

    fn varint(&mut self) -> Result<u64, UnitProblem> {
        varint::take(&mut self.rest).map_err(|error| match error {
            VarintError::Truncated => UnitProblem::Truncated,
            VarintError::NotMinimal => UnitProblem::NotMinimal,
        })
    }

    /// Takes so many bytes, if there are.
    pub(super) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(bytes)
    }
}

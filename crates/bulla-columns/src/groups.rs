//! Personal groups in a block: which entries are in which, and what the block keeps of each.
//!
//! ```text
//! behind the number of entries:  varint groups | u16 personal fields | integer column: each entry's group, or 0
//! behind the columns:            integer columns of each group's count of subjects, of those, of ciphertext lengths
//!                                | key commitments | ciphertexts
//! ```
//!
//! Without groups that is one zero. Nothing here has a key: what a group's ciphertext holds, `Encoder::encode_group`
//! writes and `Decoder::decode_group` reads.

use super::blob::{BlobDecoder, BlobEncoder};
use super::error::Fault;
use super::input::{Budget, Input};
use super::numbers::{NumberDecoder, NumberEncoder};
use bulla_proof::entry::{Field, MAX_SUBJECTS, PRESENCE};
use bulla_proof::hash::Hash;
use bulla_proof::unit::GroupContent;
use bulla_proof::varint;
use std::ops::Range;

/// The fields of an entry that are about its subjects, unless the log says otherwise.
pub const PERSONAL: u16 = Field::Location.bit()
    | Field::Client.bit()
    | Field::Actor.bit()
    | Field::Stream.bit()
    | Field::Payload.bit()
    | Field::Subject.bit();

/// Which rows of a block are in which group.
#[derive(Clone, Copy, Debug)]
pub struct Partition<'a> {
    /// The group of each row, or 0 where it is in none. Groups are numbered from 1 in the order of their first rows. Empty
    /// without groups.
    pub member: &'a [u64],
    /// How many groups there are.
    pub groups: usize,
    /// Presence bits of the fields that a group's rows have in the group.
    pub personal: u16,
}

impl Partition<'_> {
    /// No groups at all.
    pub const NONE: Partition<'static> = Partition { member: &[], groups: 0, personal: 0 };

    pub(super) fn is_empty(&self) -> bool {
        self.groups == 0
    }

    pub(super) fn is_grouped(&self, row: usize) -> bool {
        self.groups > 0 && self.member[row] > 0
    }

    /// The fields of which there is a column of the rows in no group, and none of all rows.
    pub(super) fn personal(&self) -> u16 {
        if self.is_empty() { 0 } else { self.personal }
    }

    /// Appends what stands behind the number of entries.
    pub(super) fn write(&self, numbers: &mut NumberEncoder, blobs: &mut BlobEncoder, out: &mut Vec<u8>) {
        varint::push(self.groups as u64, out);
        if !self.is_empty() {
            out.extend_from_slice(&self.personal.to_le_bytes());
            numbers.encode(self.member, blobs, out);
        }
    }
}

/// The groups of one block, as far as they can be read without a key. Used again, it keeps its memory.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    pub(super) personal: u16,
    /// As in [`Partition`].
    member: Vec<u64>,
    counts: Vec<u64>,
    subjects: Vec<u64>,
    lengths: Vec<u64>,
    commitments: Vec<Hash>,
    ciphertexts: Vec<u8>,
    /// By group, where its subjects and its ciphertext end.
    ends: Vec<(usize, usize)>,
}

impl Groups {
    /// Forgets the groups of the last block, and begins those of one whose entries have the `personal` fields in their group.
    pub fn begin(&mut self, personal: u16) {
        self.clear();
        self.personal = personal;
    }

    fn clear(&mut self) {
        let Groups { personal, member, counts, subjects, lengths, commitments, ciphertexts, ends } = self;
        *personal = 0;
        [member, counts, subjects, lengths].into_iter().for_each(Vec::clear);
        commitments.clear();
        ciphertexts.clear();
        ends.clear();
    }

    /// Adds a group; `encode` appends its text, which is to be encrypted where it lies ([`Groups::text_mut`]).
    ///
    /// # Errors
    /// What `encode` fails with.
    pub fn push<E>(
        &mut self,
        subjects: &[u64],
        commitment: Hash,
        encode: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let start = self.ciphertexts.len();
        encode(&mut self.ciphertexts)?;
        self.counts.push(subjects.len() as u64);
        self.subjects.extend_from_slice(subjects);
        self.lengths.push((self.ciphertexts.len() - start) as u64);
        self.commitments.push(commitment);
        self.ends.push((self.subjects.len(), self.ciphertexts.len()));
        Ok(())
    }

    /// A group's text, to be encrypted.
    ///
    /// # Panics
    /// When there is no such group.
    pub fn text_mut(&mut self, group: usize) -> &mut [u8] {
        let (_, text) = self.ranges(group);
        &mut self.ciphertexts[text]
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The fields that entries in a group have in the group's ciphertext.
    pub fn personal(&self) -> u16 {
        self.personal
    }

    /// The group of a row, from 0 on.
    pub fn of_row(&self, row: usize) -> Option<usize> {
        usize::try_from(self.member.get(row)?.checked_sub(1)?).ok()
    }

    /// What a group's unit hashes of it.
    ///
    /// # Panics
    /// When there is no such group.
    pub fn content(&self, group: usize) -> GroupContent<'_> {
        let (subjects, ciphertext) = self.ranges(group);
        GroupContent {
            personal: self.personal,
            subjects: &self.subjects[subjects],
            ciphertext: &self.ciphertexts[ciphertext],
            commitment: &self.commitments[group],
        }
    }

    fn ranges(&self, group: usize) -> (Range<usize>, Range<usize>) {
        let (subjects, ciphertext) = if group == 0 { (0, 0) } else { self.ends[group - 1] };
        (subjects..self.ends[group].0, ciphertext..self.ends[group].1)
    }

    /// Appends what stands behind the columns.
    pub(super) fn write(&self, numbers: &mut NumberEncoder, blobs: &mut BlobEncoder, out: &mut Vec<u8>) {
        for column in [&self.counts, &self.subjects, &self.lengths] {
            numbers.encode(column, blobs, out);
        }
        self.commitments.iter().for_each(|commitment| out.extend_from_slice(commitment.as_bytes()));
        out.extend_from_slice(&self.ciphertexts);
    }

    /// Reads what [`Partition::write`] wrote of a block of `entries`, replacing what was here.
    pub(super) fn read(
        &mut self,
        input: &mut Input<'_>,
        entries: usize,
        numbers: &mut NumberDecoder,
        blobs: &mut BlobDecoder,
    ) -> Result<(), Fault> {
        self.clear();
        let count = input.count(0, entries)?;
        if count == 0 {
            return Ok(());
        }
        self.personal = u16::from_le_bytes([input.byte()?, input.byte()?]);
        if self.personal & !PRESENCE != 0 || self.personal & Field::Subject.bit() == 0 {
            return Err(Fault::Form);
        }
        numbers.decode(input, entries, blobs, &mut self.member)?;
        let mut met = 0;
        for &group in &self.member {
            if group > met + 1 {
                return Err(Fault::Groups);
            }
            met = met.max(group);
        }
        // Says how many groups there are; `read_contents` fills in where each ends.
        self.ends.resize(count, (0, 0));
        if met == count as u64 { Ok(()) } else { Err(Fault::Groups) }
    }

    /// Reads what [`Groups::write`] wrote, of the groups that [`Groups::read`] found. `budget` bounds how many subjects
    /// there are, but nothing is taken from it: a subject is paid for where its name stands, in its group.
    pub(super) fn read_contents(
        &mut self,
        input: &mut Input<'_>,
        budget: &Budget,
        numbers: &mut NumberDecoder,
        blobs: &mut BlobDecoder,
    ) -> Result<(), Fault> {
        let count = self.ends.len();
        let total =
            |lengths: &[u64]| usize::try_from(lengths.iter().sum::<u64>()).map_err(|_| Fault::TooLarge);
        numbers.decode(input, count, blobs, &mut self.counts)?;
        if !self.counts.iter().all(|count| (1..=MAX_SUBJECTS as u64).contains(count)) {
            return Err(Fault::Range);
        }
        let subjects = total(&self.counts)?;
        if !budget.affords_values(subjects) {
            return Err(Fault::TooLarge);
        }
        numbers.decode(input, subjects, blobs, &mut self.subjects)?;
        numbers.decode(input, count, blobs, &mut self.lengths)?;
        let most = input.rest.len() as u64;
        if !self.lengths.iter().all(|length| (1..=most).contains(length)) {
            return Err(Fault::Range);
        }
        let commitments = input.bytes(count.checked_mul(Hash::LENGTH).ok_or(Fault::TooLarge)?)?;
        self.commitments.extend(commitments.as_chunks().0.iter().map(|bytes| Hash(*bytes)));
        self.ciphertexts.extend_from_slice(input.bytes(total(&self.lengths)?)?);
        let (mut subjects, mut ciphertext) = (0, 0);
        for (end, (&count, &length)) in self.ends.iter_mut().zip(self.counts.iter().zip(&self.lengths)) {
            let first = subjects;
            // `total` has shown that both sums fit.
            subjects += usize::try_from(count).map_err(|_| Fault::TooLarge)?;
            ciphertext += usize::try_from(length).map_err(|_| Fault::TooLarge)?;
            if !self.subjects[first..subjects].is_sorted_by(|one, next| one < next) {
                return Err(Fault::Groups);
            }
            *end = (subjects, ciphertext);
        }
        Ok(())
    }
}

//! A unit that is disclosed: a row, or a group of rows whose personal fields stay encrypted unless its secret is told.

use super::error::UnitProblem;
use crate::commitment::{Commitment, whole_second};
use crate::entry::RawRow;
use crate::group::GroupSecret;
use crate::hash::{Hash, HashId};
use crate::unit::{
    CODEC_GROUP, CODEC_ROW, GroupContent, KIND_GROUP, KIND_ROW, SALT_LENGTH, group_unit, row_unit,
};
use crate::varint;

/// One unit that is disclosed: everything it hashes, and where that stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisclosedUnit {
    /// The unit's position in its block's tree.
    pub position: u64,
    /// The unit's salt.
    pub salt: [u8; SALT_LENGTH],
    /// What it is of.
    pub content: UnitContent,
}

/// A common item of a block that is disclosed: a word or a shape that a disclosed group refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisclosedItem {
    /// Its position among the block's common items.
    pub position: u64,
    /// The salt of its leaf.
    pub salt: [u8; SALT_LENGTH],
    /// The item, with what kind it is.
    pub bytes: Vec<u8>,
}

/// What a disclosed unit is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnitContent {
    /// One entry, whole.
    Row(DisclosedEntry),
    /// The entries of one set of data subjects.
    Group(Box<DisclosedGroup>),
}

/// An entry of a disclosed unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisclosedEntry {
    /// Its number in the log.
    pub number: u64,
    /// Its canonical row; of a group's, the shared row: without the personal fields.
    pub row: Vec<u8>,
}

/// A disclosed group: what its unit hashes, and perhaps what opens it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisclosedGroup {
    /// Presence bits of the personal fields, which the ciphertext holds.
    pub personal: u16,
    /// The entries, ascending.
    pub entries: Vec<DisclosedEntry>,
    /// The numbers of the data subjects, ascending.
    pub subjects: Vec<u64>,
    /// The personal fields of all entries, encrypted.
    pub ciphertext: Vec<u8>,
    /// The commitment to the key of that ciphertext.
    pub commitment: Hash,
    /// What opens the ciphertext, where that is disclosed too.
    pub secret: Option<GroupSecret>,
}

impl DisclosedUnit {
    /// The unit's entries: one, or its group's.
    pub fn entries(&self) -> &[DisclosedEntry] {
        match &self.content {
            UnitContent::Row(entry) => std::slice::from_ref(entry),
            UnitContent::Group(group) => &group.entries,
        }
    }

    /// The unit's group, where it is one.
    pub fn group(&self) -> Option<&DisclosedGroup> {
        match &self.content {
            UnitContent::Row(_) => None,
            UnitContent::Group(group) => Some(group),
        }
    }

    /// The number of the first entry. Parsing has seen that there is one.
    pub(super) fn first_entry(&self) -> u64 {
        self.entries().first().map_or(0, |entry| entry.number)
    }

    /// The unit's hash; `scratch` is memory to be used again.
    pub(super) fn hash(&self, hash: HashId, scratch: &mut Vec<u8>) -> Hash {
        match &self.content {
            UnitContent::Row(entry) => row_unit(hash, &self.salt, CODEC_ROW, entry.number, &entry.row),
            UnitContent::Group(group) => {
                let entries = group.entries.iter().map(|entry| (entry.number, &entry.row[..]));
                group_unit(hash, &self.salt, entries, &group.content(), scratch)
            }
        }
    }

    /// Checks what holds of a unit by itself, once its block has it: the times of its entries, which are never personal, and the
    /// secret of its group.
    pub(super) fn verify(&self, commitment: &Commitment) -> Result<(), UnitProblem> {
        let times = commitment.earliest..=commitment.latest;
        for entry in self.entries() {
            let row = RawRow::parse(&entry.row).map_err(UnitProblem::Row)?;
            if !times.contains(&whole_second(row.time)) {
                return Err(UnitProblem::Time(entry.number));
            }
        }
        match self.group().is_none_or(DisclosedGroup::secret_fits) {
            true => Ok(()),
            false => Err(UnitProblem::Secret),
        }
    }

    /// Appends the binary form but for the position. Numbers out of order wrap, and are refused by whoever reads them.
    pub(super) fn push(&self, commitment: &Commitment, out: &mut Vec<u8>) {
        match &self.content {
            UnitContent::Row(entry) => {
                out.extend_from_slice(&[KIND_ROW, CODEC_ROW]);
                out.extend_from_slice(&self.salt);
                varint::push(entry.number.wrapping_sub(commitment.first_entry), out);
                push_bytes(&entry.row, out);
            }
            UnitContent::Group(group) => {
                out.extend_from_slice(&[KIND_GROUP, CODEC_GROUP]);
                out.extend_from_slice(&self.salt);
                group.push(commitment.first_entry, out);
            }
        }
    }
}

impl DisclosedGroup {
    /// What the group's unit hashes beside its entries.
    pub fn content(&self) -> GroupContent<'_> {
        GroupContent {
            personal: self.personal,
            subjects: &self.subjects,
            ciphertext: &self.ciphertext,
            commitment: &self.commitment,
        }
    }

    /// Whether the secret, if one is disclosed, is the one that the group commits to.
    pub(super) fn secret_fits(&self) -> bool {
        self.secret.as_ref().is_none_or(|secret| secret.key().commitment == self.commitment)
    }

    fn push(&self, first_entry: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.personal.to_le_bytes());
        varint::push(self.entries.len() as u64, out);
        let mut next = first_entry;
        for entry in &self.entries {
            push_ascending(entry.number, &mut next, out);
            push_bytes(&entry.row, out);
        }
        varint::push(self.subjects.len() as u64, out);
        let mut next = 0;
        self.subjects.iter().for_each(|&subject| push_ascending(subject, &mut next, out));
        push_bytes(&self.ciphertext, out);
        out.extend_from_slice(self.commitment.as_bytes());
        out.push(u8::from(self.secret.is_some()));
        self.secret.iter().for_each(|secret| out.extend_from_slice(secret.as_bytes()));
    }
}

/// Appends how far `number` is from `next`, the least that it may be, and sets that to the least after it.
pub(super) fn push_ascending(number: u64, next: &mut u64, out: &mut Vec<u8>) {
    varint::push(number.wrapping_sub(*next), out);
    *next = number.wrapping_add(1);
}

pub(super) fn push_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    varint::push(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

//! A unit that is disclosed: a row, or a group of rows whose personal fields stay encrypted unless its secret is told.

use super::error::UnitProblem;
use crate::commitment::{Commitment, whole_second};
use crate::entry::RawRow;
use crate::group::GroupSecret;
use crate::hash::{Hash, HashId};
use crate::unit::{GroupContent, SALT_LENGTH, group_message, group_unit, row_head, row_unit};

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

    /// The unit's hash, in the block whose first entry has that number; `scratch` is memory to be used again.
    pub(super) fn hash(&self, hash: HashId, first_entry: u64, scratch: &mut Vec<u8>) -> Hash {
        match &self.content {
            UnitContent::Row(entry) => row_unit(hash, &self.salt, entry.place(first_entry), &entry.row),
            UnitContent::Group(group) => {
                group_unit(hash, &self.salt, group.hashed(first_entry), &group.content(), scratch)
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

    /// Appends the binary form but for the position: what is hashed, and of a group the secret. Numbers out of order wrap, and are
    /// refused by whoever reads them.
    pub(super) fn push(&self, commitment: &Commitment, out: &mut Vec<u8>) {
        match &self.content {
            UnitContent::Row(entry) => {
                row_head(&self.salt, entry.place(commitment.first_entry), entry.row.len(), out);
                out.extend_from_slice(&entry.row);
            }
            UnitContent::Group(group) => {
                group_message(&self.salt, group.hashed(commitment.first_entry), &group.content(), out);
                out.push(u8::from(group.secret.is_some()));
                group.secret.iter().for_each(|secret| out.extend_from_slice(secret.as_bytes()));
            }
        }
    }
}

impl DisclosedEntry {
    /// Its place in the block whose first entry has that number.
    fn place(&self, first_entry: u64) -> u64 {
        self.number.wrapping_sub(first_entry)
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

    /// The places of its entries in the block whose first entry has that number, and their rows.
    fn hashed(&self, first_entry: u64) -> impl ExactSizeIterator<Item = (u64, &[u8])> {
        self.entries.iter().map(move |entry| (entry.place(first_entry), &entry.row[..]))
    }

    /// Whether the secret, if one is disclosed, is the one that the group commits to.
    pub(super) fn secret_fits(&self) -> bool {
        self.secret.as_ref().is_none_or(|secret| secret.key().commitment == self.commitment)
    }
}

//! Personal groups when a block is sealed or opened: which rows are in which, their ciphertexts, and the block's units.
//!
//! A block has one group for each set of data subjects, so that no two groups of it have the same key.

use super::sealed::LogIdentity;
use bulla_columns::account::Task;
use bulla_columns::{Encoder, Groups, Items, PERSONAL, Partition};
use bulla_crypto::environment::{Cipher, apply_key_stream};
use bulla_crypto::group::{GroupKey, GroupSecret};
use bulla_crypto::hashing::BulkHasher;
use bulla_crypto::yielding;
use bulla_proof::EntryError;
use bulla_proof::entry::RawRow;
use bulla_proof::hash::Hash;
use bulla_proof::unit::{self, GroupContent};
use bulla_store::{Error, Result};
use foldhash::fast::RandomState;
use smallvec::SmallVec;
use std::collections::HashSet;

/// Which entries of a block form which group, and the keys of the groups: what sealing is given.
pub(crate) struct Grouping {
    /// The group of each row, or 0 where it is in none. Groups are numbered from 1 in the order of their first rows.
    pub(crate) member: Vec<u64>,
    /// By group.
    pub(crate) sets: Vec<SubjectSet>,
    /// Presence bits of the fields that are encrypted for the group.
    pub(crate) personal: u16,
    /// In how many groups what they have in common has to occur, or 0.
    pub(crate) common: u32,
}

/// The data subjects of one group.
pub(crate) struct SubjectSet {
    /// Their numbers, ascending, each once. Most have one.
    pub(crate) numbers: SmallVec<[u64; 1]>,
    pub(crate) key: GroupKey,
}

impl Grouping {
    /// No entry is in a group.
    pub(crate) const NONE: Grouping =
        Grouping { member: Vec::new(), sets: Vec::new(), personal: PERSONAL, common: 0 };

    pub(crate) fn partition(&self) -> Partition<'_> {
        Partition { member: &self.member, groups: self.sets.len(), personal: self.personal }
    }

    /// Of each group whether it counts for what is common: no two that do have a data subject in common. All of one person do, and of
    /// the others those in their order that have nobody in common with one that does.
    fn counted(&self) -> Vec<bool> {
        let mut counted = self.sets.iter().map(|set| set.numbers.len() == 1).collect::<Vec<_>>();
        if !counted.contains(&false) {
            return counted;
        }
        let singles = self.sets.iter().filter(|set| set.numbers.len() == 1);
        let mut met = singles.map(|set| set.numbers[0]).collect::<HashSet<u64, RandomState>>();
        for (counted, set) in counted.iter_mut().zip(&self.sets) {
            if !*counted && set.numbers.iter().all(|number| !met.contains(number)) {
                met.extend(&set.numbers);
                *counted = true;
            }
        }
        counted
    }
}

/// The rows of each group. Used again, it keeps its memory.
#[derive(Default)]
pub(crate) struct Members {
    /// All rows that are in a group, group by group.
    rows: Vec<u32>,
    /// Where each group's end.
    ends: Vec<usize>,
}

impl Members {
    /// Sorts `entries` rows by their group, which `of_row` gives, into `groups` groups.
    pub(crate) fn fill(&mut self, entries: usize, groups: usize, of_row: impl Fn(usize) -> Option<usize>) {
        let Members { rows, ends } = self;
        ends.clear();
        ends.resize(groups, 0);
        if groups == 0 {
            return rows.clear();
        }
        (0..entries).filter_map(&of_row).for_each(|group| ends[group] += 1);
        let mut sum = 0;
        for end in ends.iter_mut() {
            sum += std::mem::replace(end, sum);
        }
        rows.clear();
        rows.resize(sum, 0);
        for (row, number) in (0..entries).zip(0_u32..) {
            if let Some(group) = of_row(row) {
                rows[ends[group]] = number;
                ends[group] += 1;
            }
        }
    }

    /// How many rows are in any group.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The rows of a group, ascending.
    ///
    /// # Panics
    /// When there is no such group.
    pub(crate) fn of(&self, group: usize) -> &[u32] {
        let start = if group == 0 { 0 } else { self.ends[group - 1] };
        &self.rows[start..self.ends[group]]
    }
}

/// Encrypts the personal fields of each group's rows.
///
/// # Errors
/// Where a row is none, or the cipher refuses.
pub(crate) fn encrypt(
    grouping: &Grouping,
    rows: &[&[u8]],
    members: &Members,
    encoder: &mut Encoder,
    cipher: &dyn Cipher,
    groups: &mut Groups,
) -> Result<()> {
    groups.begin(grouping.personal);
    let of_group = |group: usize| {
        yielding::point_of_loop(group);
        members.of(group).iter().map(|&row| rows[row as usize])
    };
    let no_row = |error: EntryError| Error::invalid(error.to_string());
    let all = (0..).zip(grouping.counted()).map(|(group, counted)| (of_group(group), counted));
    encoder.survey_groups(all, members.len(), grouping.personal, grouping.common).map_err(no_row)?;
    for (group, set) in grouping.sets.iter().enumerate() {
        let encode = |text: &mut Vec<u8>| encoder.encode_group(of_group(group), grouping.personal, text);
        groups.push(&set.numbers, set.key.commitment, encode).map_err(no_row)?;
    }
    encoder.account().turn_to(Some(Task::Encrypt));
    for (group, set) in grouping.sets.iter().enumerate() {
        yielding::point_of_loop(group);
        cipher.seal_group(&set.key.key, groups.text_mut(group))?;
    }
    encoder.account().turn_to(Some(Task::Encode));
    Ok(())
}

/// The plaintext of a group, decrypted from what [`encrypt`] made.
///
/// Every reader comes through here: the secret is the one that the group commits to before a byte is decrypted. That the ciphertext is what it
/// was, the hash of the group's unit has told.
///
/// # Errors
/// Where the secret is not the group's.
#[expect(clippy::disallowed_methods, reason = "the one place at which groups are decrypted")]
pub(crate) fn decrypt(secret: &GroupSecret, content: &GroupContent<'_>) -> Result<Vec<u8>, &'static str> {
    let key = secret.key();
    if key.commitment != *content.commitment {
        return Err("a group is not under the key that it commits to");
    }
    let mut text = content.ciphertext.to_vec();
    apply_key_stream(&key.key, &mut text);
    Ok(text)
}

/// Appends the row of an entry, from its shared row and its personal one.
///
/// # Errors
/// Where they are none.
pub(crate) fn merge(shared: &[u8], personal: &[u8], out: &mut Vec<u8>) -> Result<(), EntryError> {
    let (shared, personal) = (RawRow::parse(shared)?, RawRow::parse_personal(personal)?);
    shared.or(&personal).write(u16::MAX, out);
    Ok(())
}

/// A block as its units see it.
pub(crate) struct Leaves<'a, R, G> {
    pub(crate) identity: LogIdentity,
    pub(crate) entries: usize,
    pub(crate) salts: &'a [u8],
    /// Of each row its bytes, without personal fields where it is in a group.
    pub(crate) row: R,
    /// Of each row its group.
    pub(crate) group: G,
    pub(crate) members: &'a Members,
    pub(crate) groups: &'a Groups,
    pub(crate) items: &'a Items,
}

impl<'a, R: Fn(usize) -> &'a [u8], G: Fn(usize) -> Option<usize>> Leaves<'a, R, G> {
    /// The leaves, in place of what `leaves` held: units, a row's, or a group's in the place of its first row; and behind them the
    /// common items.
    pub(crate) fn hash(&self, hasher: &mut BulkHasher, leaves: &mut Vec<Hash>) {
        leaves.clear();
        let mut salts = self.salts.as_chunks().0.iter();
        let mut items = (0..).zip(self.items.iter());
        let (mut rows, mut met) = (0..self.entries, 0);
        let next = |beginning: &mut Vec<u8>| {
            yielding::point_of_loop(rows.start);
            // A group stands where its first row does; its other rows come with that.
            let row = rows.find(|&row| (self.group)(row).is_none_or(|group| group >= met));
            let salt = salts.next()?;
            let Some(row) = row else {
                let (position, item) = items.next()?;
                beginning.extend_from_slice(&unit::item_head(salt, position));
                return Some(item);
            };
            let Some(group) = (self.group)(row) else {
                let bytes = (self.row)(row);
                unit::row_head(salt, row as u64, bytes.len(), beginning);
                return Some(bytes);
            };
            met += 1;
            let entries =
                self.members.of(group).iter().map(|&row| (u64::from(row), (self.row)(row as usize)));
            unit::group_message(salt, entries, &self.groups.content(group), beginning);
            Some(&[])
        };
        hasher.each(self.identity.hash, next, leaves);
    }
}

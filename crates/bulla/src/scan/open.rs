//! From a located frame to its rows: digest, decryption, decoding, units.

pub(crate) mod names;

use crate::format::config::LogConfig;
use crate::format::groups::{Leaves, Members, decrypt, merge};
use crate::format::sealed::LogIdentity;
use crate::scan::erasures::Erasures;
use crate::scan::finding::FindingKind;
use crate::scan::located::{Unreadable, Verified};
use crate::scan::redaction::Redaction;
use bulla_columns::{Decoder, Groups, Items, Rows};
use bulla_crypto::environment::{AesGcm, Cipher};
use bulla_crypto::epoch::EpochKeys;
use bulla_crypto::group::{BlockContext, GroupKeys, GroupSecret};
use bulla_crypto::hashing::BulkHasher;
use bulla_proof::commitment::{Commitment, FrameKind, whole_second};
use bulla_proof::entry::RawRow;
use bulla_proof::hash::Hash;
use bulla_proof::unit::SALT_LENGTH;
use bulla_store::{Error, Result};
use foldhash::fast::RandomState;
use names::{Named, Names};
use std::collections::HashSet;
use std::mem::take;
use std::ops::Range;

/// Opens blocks one after the other, reusing its working memory.
#[derive(Default)]
pub(crate) struct BlockOpener {
    decoder: Decoder,
    /// As the units hash them: of entries in groups without their personal fields.
    rows: Rows,
    /// The personal rows of one group, and those of all that were opened, one after the other.
    pieces: Rows,
    personal: Vec<u8>,
    /// With the personal fields of the groups that were opened, once that was asked for.
    whole: Rows,
    members: Members,
    /// Of each group what opened it, if its personal fields are in `whole`, or else why they are not.
    secrets: Vec<Result<GroupSecret, Redaction>>,
    salts: Vec<u8>,
    hasher: BulkHasher,
    leaves: Vec<Hash>,
}

/// What blocks of a log may have that not every log has.
#[derive(Clone, Copy)]
pub(crate) struct Asks {
    groups: bool,
    /// Data subjects of entries that are in no group.
    ungrouped: bool,
    items: bool,
}

impl Asks {
    /// All of it: for who does not know whether `[log]` is the log's.
    pub(crate) const ALL: Asks = Asks { groups: true, ungrouped: true, items: true };

    /// What `[log]` says. It never changes.
    pub(crate) fn of(config: &LogConfig) -> Self {
        Asks { groups: config.erasure, ungrouped: !config.erasure, items: config.common.is_some() }
    }
}

/// Which groups of a block to open.
pub(crate) struct Opening<'a> {
    pub(crate) keys: &'a dyn GroupKeys,
    pub(crate) erasures: &'a Erasures<'a>,
    /// Whether to open the group of the data subjects with these numbers.
    pub(crate) asked: &'a (dyn Fn(&[u64]) -> bool + Sync),
    /// With what the names in groups are compared, where they are.
    pub(crate) names: Option<&'a Names<'a>>,
}

impl Opening<'_> {
    /// The secrets of groups, or why they are not there.
    fn secrets(
        &self,
        place: BlockContext<'_>,
        groups: &[&[u64]],
    ) -> Result<Vec<Result<GroupSecret, Redaction>>> {
        let erased = self.erasures.are_erased(groups);
        if self.erasures.withholds() {
            let why = |erased| Err(if erased { Redaction::Erased } else { Redaction::CannotTell });
            return Ok(erased.into_iter().map(why).collect());
        }
        let left = groups.iter().zip(&erased).filter(|(_, erased)| !**erased);
        let left = left.map(|(group, _)| *group).collect::<Vec<_>>();
        let found = self.keys.secrets(place, &left)?;
        let missing = left.iter().zip(&found).filter(|(_, found)| found.is_none());
        let missing = missing.map(|(group, _)| *group).collect::<Vec<_>>();
        let mut why = match missing.is_empty() {
            true => Vec::new(),
            false => self.erasures.why(&missing, self.keys)?,
        }
        .into_iter();
        let mut found = found.into_iter();
        let outcome = |erased: bool| match erased {
            true => Err(Redaction::Erased),
            false => found.next().flatten().ok_or_else(|| why.next().unwrap_or(Redaction::NotGiven)),
        };
        Ok(erased.into_iter().map(outcome).collect())
    }
}

impl BlockOpener {
    /// Decrypts and decodes a block, and compares its times with its commitment's. Its groups are not opened.
    pub(crate) fn open(&mut self, verified: Verified<'_>, keys: &EpochKeys) -> Result<(), Unreadable> {
        let commitment = verified.commitment();
        assert_eq!(commitment.kind, FrameKind::Block, "only blocks are opened");

        let additional = commitment.additional_data();
        let mut body = verified.into_body();
        // What follows is for the writing host alone: the digest covered it, and that is all that a reader asks of it.
        body.truncate(usize::try_from(commitment.sealed_length()).unwrap_or(usize::MAX));
        AesGcm
            .open(keys.body(), commitment.frame, &additional, &mut body)
            .map_err(|_| invalid("the body does not decrypt under its epoch's key".to_owned()))?;
        // Both are bounded by the commitment's own rules.
        let entries = usize::try_from(commitment.entries).unwrap_or(usize::MAX);
        let (earliest, latest) = self
            .decoder
            .decode(&body, entries, 1 << commitment.content_log2, &mut self.rows)
            .map_err(|error| invalid(format!("the block does not decode: {error}")))?;
        // Queries by time pass over blocks by these, and the root says nothing of them.
        if (whole_second(earliest), whole_second(latest)) != (commitment.earliest, commitment.latest) {
            return Err(mismatch("the block's entries do not have the times in its commitment"));
        }
        let groups = self.decoder.groups();
        let mut sets = HashSet::with_capacity_and_hasher(groups.len(), RandomState::default());
        // Their keys would be the same, and the nonce is.
        if !(0..groups.len()).all(|group| sets.insert(groups.content(group).subjects)) {
            return Err(invalid("two groups of the block are of the same data subjects".to_owned()));
        }
        self.members.fill(entries, groups.len(), |row| groups.of_row(row));
        self.whole.clear();
        self.secrets.clear();
        self.secrets.resize(groups.len(), Err(Redaction::NotGiven));
        Ok(())
    }

    /// Opens those groups of the block opened last whose keys are there.
    ///
    /// # Errors
    /// The outer one where keys cannot be looked up, the inner one where a group is not what its block says.
    pub(crate) fn open_groups(
        &mut self,
        commitment: &Commitment,
        epoch: &EpochKeys,
        opening: &Opening<'_>,
    ) -> Result<Result<(), Unreadable>> {
        let place =
            BlockContext { log: commitment.log_id, epoch_random: epoch.random(), frame: commitment.frame };
        let mut places = vec![None; if self.secrets.is_empty() { 0 } else { self.rows.len() }];
        let mut left = self.decoder.left();
        self.personal.clear();
        let groups = self.decoder.groups();
        let asked = |group: &usize| (opening.asked)(groups.content(*group).subjects);
        let asked = (0..self.secrets.len()).filter(asked).collect::<Vec<_>>();
        let sets = asked.iter().map(|&group| groups.content(group).subjects).collect::<Vec<_>>();
        let secrets = opening.secrets(place, &sets)?;
        let mut named = Vec::new();
        for (group, secret) in asked.into_iter().zip(secrets) {
            let secret = match secret {
                Ok(secret) => secret,
                withheld => {
                    self.secrets[group] = withheld;
                    continue;
                }
            };
            let content = self.decoder.groups().content(group);
            let (fields, rows) = (content.personal, self.members.of(group));
            let text = match decrypt(&secret, &content) {
                Ok(text) => text,
                Err(detail) => return Ok(Err(invalid(detail.to_owned()))),
            };
            let BlockOpener { decoder, pieces, .. } = self;
            if let Err(error) = decoder.decode_group(&text, rows.len(), fields, &mut left, pieces) {
                return Ok(Err(invalid(format!("a group of the block does not decode: {error}"))));
            }
            let numbers = self.decoder.groups().content(group).subjects;
            let Some(names) = names::of_group(self.pieces.iter(), numbers.len()) else {
                let detail = "entries of a group of the block are of other data subjects than the group is";
                return Ok(Err(invalid(detail.to_owned())));
            };
            if opening.names.is_some() {
                let names = names.into_iter().map(str::to_owned).collect();
                named.push(Named { numbers: numbers.to_vec(), names });
            }
            for (&row, piece) in rows.iter().zip(self.pieces.iter()) {
                places[row as usize] = Some(self.personal.len()..self.personal.len() + piece.len());
                self.personal.extend_from_slice(piece);
            }
            self.secrets[group] = Ok(secret);
        }
        if let Some(names) = opening.names
            && !names.fit(&named)?
        {
            let detail = "a group of the block is under the keys of other data subjects than it names";
            return Ok(Err(invalid(detail.to_owned())));
        }
        Ok(self.merge(&places))
    }

    /// Puts shared and personal fields together, of which each row has some where `places` says.
    fn merge(&mut self, places: &[Option<Range<usize>>]) -> Result<(), Unreadable> {
        self.whole.clear();
        for (shared, place) in self.rows.iter().zip(places) {
            let Some(place) = place else {
                self.whole.push(|out| out.extend_from_slice(shared));
                continue;
            };
            // Both were written by the decoder.
            self.whole
                .push(|out| merge(shared, &self.personal[place.clone()], out))
                .map_err(|error| invalid(format!("an entry of a group: {error}")))?;
        }
        Ok(())
    }

    /// The rows of the block opened last, with the personal fields of the groups that were opened.
    pub(crate) fn rows(&self) -> &Rows {
        if self.whole.len() == self.rows.len() && !self.secrets.is_empty() { &self.whole } else { &self.rows }
    }

    /// Why personal fields of a row are not in it, where its group was not opened. Of one that nobody asked for, that its
    /// key was not given.
    pub(crate) fn withheld(&self, row: usize) -> Option<Redaction> {
        self.secrets[self.decoder.groups().of_row(row)?].as_ref().err().copied()
    }

    /// The positions of the common items that these groups refer to, ascending. One that was not opened refers to none that anybody
    /// could tell.
    ///
    /// # Errors
    /// None, of groups that were opened.
    pub(crate) fn items_of(&self, groups: &[usize]) -> Result<Vec<usize>> {
        let (mut decoder, mut pieces) = (Decoder::new(), Rows::default());
        decoder.set_items(self.items().clone());
        for &group in groups {
            let Ok(secret) = &self.secrets[group] else { continue };
            let content = self.decoder.groups().content(group);
            let (fields, entries) = (content.personal, self.members.of(group).len());
            let text = decrypt(secret, &content).map_err(Error::tampered)?;
            let mut left = self.decoder.left();
            decoder
                .decode_group(&text, entries, fields, &mut left, &mut pieces)
                .map_err(|error| Error::tampered(error.to_string()))?;
        }
        Ok(decoder.used_items().collect())
    }

    /// The rows of a group, ascending.
    ///
    /// # Panics
    /// When there is no such group.
    pub(crate) fn rows_of(&self, group: usize) -> &[u32] {
        self.members.of(group)
    }

    /// What opened a group, if it was opened.
    ///
    /// # Panics
    /// When there is no such group.
    pub(crate) fn secret(&self, group: usize) -> Option<&GroupSecret> {
        self.secrets[group].as_ref().ok()
    }

    /// The groups of the block opened last.
    pub(crate) fn groups(&self) -> &Groups {
        self.decoder.groups()
    }

    /// The rows as units hash them.
    pub(crate) fn shared_rows(&self) -> &Rows {
        &self.rows
    }

    /// The common items of the block opened last.
    pub(crate) fn items(&self) -> &Items {
        self.decoder.items()
    }

    /// That the block opened last has groups and common items only in a log that asks for some, and names data subjects outside of
    /// groups only in one without erasure.
    pub(crate) fn check_asked(&self, asks: Asks) -> Result<(), Unreadable> {
        if !asks.groups && !self.secrets.is_empty() {
            return Err(invalid(
                "the block has groups of data subjects, and [log] has no erasure".to_owned(),
            ));
        }
        if !asks.ungrouped && self.names_somebody_ungrouped() {
            // Their keys could be destroyed, and this would still be read.
            return Err(invalid(
                "an entry of the block names data subjects and is in no group of theirs, and [log] has erasure"
                    .to_owned(),
            ));
        }
        match asks.items || self.items().is_empty() {
            true => Ok(()),
            false => Err(invalid("the block has common items, and [log] asks for none".to_owned())),
        }
    }

    fn names_somebody_ungrouped(&self) -> bool {
        let groups = self.decoder.groups();
        let mut ungrouped = self.rows.iter().zip(0..).filter(|(_, row)| groups.of_row(*row).is_none());
        ungrouped.any(|(row, _)| {
            RawRow::subjects_of(row).is_ok_and(|named| named.is_some_and(|mut names| names.next().is_some()))
        })
    }

    /// The leaves of the block opened last, units and behind them common items, and their salts, which
    /// [`BlockOpener::check_units`] has derived.
    pub(crate) fn leaves(&self, commitment: &Commitment) -> (Vec<Hash>, &[[u8; SALT_LENGTH]]) {
        let mut leaves = Vec::with_capacity(self.salts.len() / SALT_LENGTH);
        self.hash_leaves(commitment, &mut BulkHasher::default(), &mut leaves);
        (leaves, self.salts.as_chunks().0)
    }

    fn hash_leaves(&self, commitment: &Commitment, hasher: &mut BulkHasher, leaves: &mut Vec<Hash>) {
        let groups = self.decoder.groups();
        let block = Leaves {
            identity: LogIdentity { log: commitment.log_id, hash: commitment.hash },
            entries: self.rows.len(),
            salts: &self.salts,
            row: |row| &self.rows[row],
            group: |row| groups.of_row(row),
            members: &self.members,
            groups,
            items: self.items(),
        };
        block.hash(hasher, leaves);
    }

    /// Whether the units of the block opened last have the root in its commitment.
    pub(crate) fn check_units(
        &mut self,
        commitment: &Commitment,
        keys: &EpochKeys,
    ) -> Result<(), Unreadable> {
        let units = self.rows.len() - self.members.len() + self.secrets.len();
        let items = self.items().len();
        if keys.salts(commitment.frame, units, items, &mut self.salts).is_err() {
            return Err(mismatch("the salts could not be derived"));
        }
        let (mut hasher, mut hashes) = (take(&mut self.hasher), take(&mut self.leaves));
        self.hash_leaves(commitment, &mut hasher, &mut hashes);
        let root = hasher.block_root(commitment.hash, &mut hashes, items);
        (self.hasher, self.leaves) = (hasher, hashes);
        match root == commitment.root && commitment.units == units as u64 {
            true => Ok(()),
            false => Err(mismatch("the block's entries do not have the root in its commitment")),
        }
    }
}

fn invalid(detail: String) -> Unreadable {
    Unreadable { kind: FindingKind::BlockInvalid, detail }
}

/// A block that is not what its commitment says.
fn mismatch(detail: &str) -> Unreadable {
    Unreadable { kind: FindingKind::UnitsMismatch, detail: detail.to_owned() }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) mod world;

//! A block with groups as a writer seals it, and a register of its data subjects: for tests of what reads one.
// The helpers of tests are tests too, which Clippy's own exception does not see.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation)]

use super::{BlockOpener, Opening, Unreadable, Verified};
use crate::format::groups::Grouping;
use crate::format::sealed::{FrameNumbers, LogIdentity, Sealed};
use crate::format::segment::SegmentName;
use crate::scan::erasures::{Erased, Erasures};
use crate::scan::located::Located;
use crate::write::engine::grouping::group;
use crate::write::seal::BlockSealer;
use bulla_columns::Compression;
use bulla_columns::account::Account;
use bulla_crypto::environment::{AesGcm, Cipher};
use bulla_crypto::epoch::{EpochKeys, EpochSecret};
use bulla_crypto::group::{BlockContext, Followed, GroupKeys, GroupSecret, Subjects, Whose};
use bulla_proof::Entry;
use bulla_proof::commitment::{Commitment, LogId};
use bulla_proof::hash::{HashId, sha256};
use bulla_store::Result;
use bulla_store::{Store, StoreFile};
use bulla_testkit::Memory;
use bulla_vault::{Subject, SubjectKey};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

/// FrameNumbers in the order in which subjects are met, and keys that follow from the names.
#[derive(Default)]
pub(crate) struct Register {
    names: Mutex<Vec<String>>,
    pub(crate) erased: BTreeSet<String>,
}

impl Register {
    fn key(name: &str) -> SubjectKey {
        SubjectKey::from(sha256(&[name.as_bytes()]).0)
    }
}

impl Subjects for Register {
    fn resolve(&self, subjects: &[&str]) -> Result<Vec<Subject>> {
        let mut names = self.names.lock().unwrap();
        let mut number = |name: &str| {
            names.iter().position(|known| known == name).unwrap_or_else(|| {
                names.push(name.to_owned());
                names.len() - 1
            })
        };
        // The later ones first, so that the numbers are not in the order of the entries.
        let numbers =
            subjects.iter().rev().map(|name| (*name, number(name))).collect::<BTreeMap<&str, usize>>();
        Ok(subjects
            .iter()
            .map(|name| Subject { number: numbers[name] as u64, key: Self::key(name) })
            .collect())
    }

    fn next_number(&self) -> Result<u64> {
        Ok(0)
    }

    fn require_at_least(&self, _: u64) -> Result<()> {
        Ok(())
    }
}

impl GroupKeys for Register {
    fn number(&self, subject: &str) -> Result<Option<u64>> {
        Ok(self.names.lock().unwrap().iter().position(|name| name == subject).map(|number| number as u64))
    }

    fn secrets(&self, place: BlockContext<'_>, groups: &[&[u64]]) -> Result<Vec<Option<GroupSecret>>> {
        groups.iter().map(|subjects| self.secret(place, subjects)).collect()
    }

    fn is_complete(&self) -> bool {
        true
    }

    fn erased_up_to(&self) -> Result<Followed> {
        Ok(Followed::NOTHING)
    }

    fn whose(&self, asked: &[(&[u64], &str)]) -> Result<Option<Vec<Whose>>> {
        let whose = |(numbers, name): &(&[u64], &str)| match self.number(name)? {
            Some(number) if numbers.contains(&number) => Ok(Whose::Number(number)),
            _ => Ok(Whose::Others),
        };
        asked.iter().map(whose).collect::<Result<Vec<_>>>().map(Some)
    }
}

impl Register {
    fn secret(&self, place: BlockContext<'_>, subjects: &[u64]) -> Result<Option<GroupSecret>> {
        let names = self.names.lock().unwrap();
        let names = subjects.iter().map(|&number| names[number as usize].clone()).collect::<Vec<_>>();
        if names.iter().any(|name| self.erased.contains(name)) {
            return Ok(None);
        }
        let keys = names.iter().map(|name| Self::key(name)).collect::<Vec<_>>();
        place.secret(subjects.iter().copied().zip(&keys)).map(Some)
    }
}

pub(crate) fn rows(count: u64) -> Vec<Vec<u8>> {
    let row = |number: u64| {
        let location = format!("user_{}/{number}", number % 7);
        let names = [format!("user_{}", number * number % 7), format!("user_{}", number % 5)];
        let mut entry = Entry::new("read", &location).time(number.cast_signed()).payload("what was read");
        entry.subjects = match number % 4 {
            0 => None,
            1 => Some(Default::default()),
            2 => Some([&names[0][..]].into_iter().collect()),
            // Twice the same, or in either order.
            _ => Some(names.iter().map(|name| &name[..]).collect()),
        };
        let entry = if number.is_multiple_of(3) { entry.status(200).stream("s") } else { entry };
        let mut row = vec![0; entry.measure().unwrap()];
        entry.encode(0, &mut row);
        row
    };
    (0..count).map(row).collect()
}

pub(crate) struct World {
    pub(crate) rows: Vec<Vec<u8>>,
    pub(crate) register: Register,
    pub(crate) keys: EpochKeys,
    pub(crate) sealed: Sealed,
}

/// Nobody was erased.
pub(crate) fn nobody() -> Erasures<'static> {
    Erasures::new(Erased::default(), |_| Ok(Erased::default()))
}

pub(crate) const LOG: LogId = LogId([7; 16]);

impl World {
    pub(crate) fn new(count: u64) -> Self {
        Self::of(rows(count))
    }

    pub(crate) fn of(rows: Vec<Vec<u8>>) -> Self {
        Self::compressed(rows, Compression::FAST)
    }

    pub(crate) fn compressed(rows: Vec<Vec<u8>>, compression: Compression) -> Self {
        let keys = EpochKeys::derive(&EpochSecret::from([1; 32]), [2; 32], LOG, 5).unwrap();
        let register = Register::default();
        let sealed = Self::seal(&rows, &register, &keys, compression);
        World { rows, register, keys, sealed }
    }

    pub(crate) fn seal(
        rows: &[Vec<u8>],
        register: &Register,
        keys: &EpochKeys,
        compression: Compression,
    ) -> Sealed {
        Self::seal_grouped(rows, register, keys, compression, |_| ())
    }

    /// Seals the block by another grouping, which `change` makes of the right one.
    pub(crate) fn regroup(&mut self, change: impl FnOnce(&mut Grouping)) {
        self.sealed = Self::seal_grouped(&self.rows, &self.register, &self.keys, Compression::FAST, change);
    }

    fn seal_grouped(
        rows: &[Vec<u8>],
        register: &Register,
        keys: &EpochKeys,
        compression: Compression,
        change: impl FnOnce(&mut Grouping),
    ) -> Sealed {
        let views = rows.iter().map(Vec::as_slice).collect::<Vec<_>>();
        let place = BlockContext { log: LOG, epoch_random: keys.random(), frame: 9 };
        let mut grouping = group(&views, place, register).unwrap();
        grouping.common = 2;
        change(&mut grouping);
        let identity = LogIdentity { log: LOG, hash: HashId::Sha256 };
        let numbers = FrameNumbers { frame: 9, first_entry: 100, epoch: 5 };
        let mut sealer = BlockSealer::new(compression, Account::default());
        sealer.seal(identity, numbers, keys, &AesGcm, &views, &grouping, None).unwrap()
    }

    pub(crate) fn open(&self) -> (BlockOpener, Commitment) {
        let mut opener = BlockOpener::default();
        let opened = self.try_open(&mut opener);
        opened.map_err(|error| error.detail).unwrap();
        (opener, self.sealed.commitment.clone())
    }

    pub(crate) fn try_open(&self, opener: &mut BlockOpener) -> Result<(), Unreadable> {
        let commitment = self.sealed.commitment.clone();
        let segment = SegmentName { first: 0, generation: 0 };
        let file: Arc<dyn StoreFile> = Arc::from(Memory::new().create("segment").unwrap());
        let frame = Located {
            commitment: commitment.clone(),
            segment,
            file,
            offset: 0,
            keys: None,
            foreign: false,
            epoch_random: None,
        };
        let verified = Verified::assumed(&frame, self.sealed.body.clone());
        opener.open(verified, &self.keys)?;
        opener.check_units(&commitment, &self.keys)
    }

    /// As if it had been signed with other times: the body is encrypted for that commitment.
    pub(crate) fn sign_times(&mut self, earliest: i64, latest: i64) {
        let Sealed { commitment, body, .. } = &mut self.sealed;
        AesGcm.open(self.keys.body(), commitment.frame, &commitment.additional_data(), body).unwrap();
        (commitment.earliest, commitment.latest) = (earliest, latest);
        AesGcm.seal(self.keys.body(), commitment.frame, &commitment.additional_data(), body).unwrap();
    }

    pub(crate) fn open_groups(&self, subject: Option<u64>) -> BlockOpener {
        let (mut opener, commitment) = self.open();
        let erasures = nobody();
        let asked = |subjects: &[u64]| subject.is_none_or(|subject| subjects.contains(&subject));
        let opening = Opening { keys: &self.register, erasures: &erasures, asked: &asked, names: None };
        let opened = opener.open_groups(&commitment, &self.keys, &opening).unwrap();
        opened.map_err(|error| error.detail).unwrap();
        opener
    }

    pub(crate) fn subjects(&self, row: usize) -> Vec<String> {
        let subjects = Entry::decode(&self.rows[row]).unwrap().subjects.unwrap_or_default();
        subjects.iter().map(|subject| (*subject).to_owned()).collect()
    }
}

//! A full check: every row opens, and the index leads to every row and to nothing else.

use std::collections::HashSet;

use super::damage::Damage;
use super::gone::Gone;
use super::index::{self, Bucket, Entry, IndexCipher};
use super::rows::{self, Person, RowOpener};
use super::snapshot::Snapshot;
use super::table::Table;
use super::transaction_error::TransactionError;
use super::{Shared, Vault};
use bulla_store::Result;

/// What a check found.
#[derive(Debug)]
pub struct Checked {
    /// How many people there are.
    pub people: u64,
    /// What is damaged, the first thousand of it.
    pub damage: Vec<Damage>,
    /// How much more there is.
    pub more: u64,
}

const MAX_DAMAGE: usize = 1000;
/// Progress is told after each so many people and entries.
const STRIDE: u64 = 65_536;

impl Vault {
    /// Checks the whole vault. `erased` says of a number whether the log tells that its key was destroyed; `progress` is
    /// called now and then with how many people and entries were looked at.
    ///
    /// The log of changes is not cut meanwhile, and so grows where much is written.
    ///
    /// # Errors
    /// Where the vault cannot be read.
    pub fn check(&self, erased: &dyn Fn(u64) -> bool, progress: &dyn Fn(u64)) -> Result<Checked> {
        self.check_owner()?;
        self.shared.check(erased, progress)
    }
}

impl Shared {
    fn check(&self, erased: &dyn Fn(u64) -> bool, progress: &dyn Fn(u64)) -> Result<Checked> {
        self.snapshot(|snapshot| {
            let (gone, opener) = (Gone::read(snapshot, &erased)?, RowOpener::new(snapshot.keys));
            let mut checking =
                Checking { snapshot, gone, opener, progress, done: 0, found: Vec::new(), more: 0 };
            let people = checking.rows()?;
            checking.index()?;
            Ok(Checked { people, damage: checking.found, more: checking.more })
        })
    }
}

struct Checking<'c> {
    snapshot: &'c Snapshot<'c>,
    gone: Gone<'c, &'c dyn Fn(u64) -> bool>,
    opener: RowOpener<'c>,
    progress: &'c dyn Fn(u64),
    done: u64,
    found: Vec<Damage>,
    more: u64,
}

impl Checking<'_> {
    fn rows(&mut self) -> Result<u64, TransactionError> {
        let Snapshot { txn, meta, .. } = self.snapshot;
        let (mut people, mut next) = (0, 0);
        txn.all(Table::Rows, |id, bytes| {
            self.missing(next, id)?;
            next = id + 1;
            people += self.row(id, bytes)?;
            Ok(())
        })?;
        if meta.next_number > 0 {
            self.missing(next, rows::row_of(meta.next_number - 1) + 1)?;
        }
        Ok(people)
    }

    /// Tells of the rows from `first` to before `end`, none of which is there.
    fn missing(&mut self, first: u64, end: u64) -> Result<(), TransactionError> {
        let Snapshot { txn, keys, meta, .. } = self.snapshot;
        if first >= end || !rows::are_due(txn, keys, meta, first, end)? {
            return Ok(());
        }
        for id in first..end {
            if rows::are_due(txn, keys, meta, id, id + 1)? {
                self.find(Damage::Missing(id));
            }
        }
        Ok(())
    }

    /// Looks at a row, and says how many people are in it.
    fn row(&mut self, id: u64, bytes: &[u8]) -> Result<u64, TransactionError> {
        let Snapshot { txn, keys, meta, .. } = self.snapshot;
        let (first, mut people) = (rows::first_of(id), 0);
        let Some(row) = self.opener.open(id, bytes)? else {
            self.find(Damage::Row(id));
            return Ok(0);
        };
        for number in first..rows::first_of(id + 1) {
            let Some(pseudonym) = row.pseudonym(number) else {
                if number < meta.next_number && !self.gone.has(number) {
                    self.find(Damage::Unexplained(number));
                }
                continue;
            };
            people += 1;
            self.step();
            if number >= meta.next_number {
                self.find(Damage::Beyond(number));
            }
            if !meta.indexed.has(number, pseudonym.half()) {
                continue;
            }
            match index::find(txn, keys, pseudonym) {
                Ok(found) if found.contains(&number) => {}
                // That its row does not open is told of its bucket.
                Err(TransactionError::Stale(_)) => {}
                Err(error) => return Err(error),
                Ok(_) => self.find(Damage::Unindexed(number)),
            }
        }
        Ok(people)
    }

    fn index(&mut self) -> Result<(), TransactionError> {
        let Snapshot { txn, keys, .. } = self.snapshot;
        let mut ids = HashSet::new();
        for bucket in Bucket::all(txn, keys)? {
            ids.insert(bucket.id);
            let cipher = index::cipher(keys, bucket.id)?;
            for place in 0..=u8::MAX {
                match cipher.read(txn, place) {
                    Ok(entries) => self.entries(bucket, &cipher, place, &entries)?,
                    Err(TransactionError::Stale(_)) => self.find(Damage::Bucket(bucket.id)),
                    Err(error) => return Err(error),
                }
            }
        }
        txn.all(Table::Index, |id, _| {
            let bucket = u32::try_from(id / index::ROWS as u64);
            if !bucket.is_ok_and(|bucket| ids.contains(&bucket)) {
                self.find(Damage::Foreign(id));
            }
            Ok(())
        })
    }

    fn entries(
        &mut self,
        bucket: Bucket,
        cipher: &IndexCipher,
        place: u8,
        entries: &[Entry],
    ) -> Result<(), TransactionError> {
        let Snapshot { txn, keys, meta, .. } = self.snapshot;
        for entry in entries {
            self.step();
            let here = u32::from(bucket.start)..bucket.end;
            if !here.contains(&u32::from(entry.prefix())) || cipher.place(entry.half) != place {
                self.find(Damage::Entry(bucket.id));
            }
            let number = u64::from(entry.number);
            match rows::get(txn, keys, meta, number) {
                Ok(Some(Person { pseudonym, .. }))
                    if pseudonym.half() == entry.half && meta.indexed.has(number, entry.half) => {}
                // This was told already: its row is missing, or does not open.
                Err(TransactionError::Stale(_) | TransactionError::Damaged(_)) => {}
                Err(error) => return Err(error),
                Ok(_) => self.find(Damage::Misled(number)),
            }
        }
        Ok(())
    }

    fn step(&mut self) {
        self.done += 1;
        if self.done.is_multiple_of(STRIDE) {
            (self.progress)(self.done);
        }
    }

    fn find(&mut self, damage: Damage) {
        match self.found.len() < MAX_DAMAGE {
            true => self.found.push(damage),
            false => self.more += 1,
        }
    }
}

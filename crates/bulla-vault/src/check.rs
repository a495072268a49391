//! A full check: every row opens, and the index leads to every row and to nothing else.

use std::collections::HashMap;
use std::fmt;

use super::index::{self, Bucket, Entry};
use super::keys::row_bucket;
use super::rows::{self, RowCipher};
use super::snapshot::Snapshot;
use super::transaction_error::TransactionError;
use super::{Shared, Vault};
use bulla_store::Result;

/// What a check found.
#[derive(Debug)]
pub struct Checked {
    /// How many rows there are.
    pub rows: u64,
    /// What is damaged, the first thousand of it.
    pub damage: Vec<Damage>,
    /// How much more there is.
    pub more: u64,
}

/// Something that is damaged. Nothing but a backup mends it; an erasure in the same bucket is refused until then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Damage {
    /// The row of this number does not open: the key is lost.
    Row(u64),
    /// There is a row of this number, although the number was not given out yet.
    Beyond(u64),
    /// Nothing leads to the row of this number: the person would get another one.
    Unindexed(u64),
    /// The index leads to this number, where that person's row is not.
    Misled(u64),
    /// An entry of this index bucket is none, or belongs elsewhere.
    Entry(u32),
    /// This index bucket has more or fewer entries than it says.
    Count(u32),
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Damage::Row(number) => write!(f, "row {number} does not open"),
            Damage::Beyond(number) => write!(f, "row {number} is beyond the last number that was given"),
            Damage::Unindexed(number) => write!(f, "the index does not lead to row {number}"),
            Damage::Misled(number) => {
                write!(f, "the index leads to row {number}, which is not that person's")
            }
            Damage::Entry(bucket) => {
                write!(f, "index bucket {bucket} has an entry that does not belong there")
            }
            Damage::Count(bucket) => {
                write!(f, "index bucket {bucket} does not have as many entries as it says")
            }
        }
    }
}

const MAX_DAMAGE: usize = 1000;
/// Progress is told after each so many rows and entries.
const STRIDE: u64 = 65_536;

impl Vault {
    /// Checks the whole vault. `progress` is called now and then with how many rows and entries were looked at.
    ///
    /// The database does not reuse pages meanwhile, and so grows where much is written.
    ///
    /// # Errors
    /// Where the vault cannot be read.
    pub fn check(&self, progress: &dyn Fn(u64)) -> Result<Checked> {
        self.check_owner()?;
        self.shared.check(progress)
    }
}

impl Shared {
    fn check(&self, progress: &dyn Fn(u64)) -> Result<Checked> {
        self.snapshot(|snapshot| {
            let mut checking = Checking { snapshot, progress, done: 0, found: Vec::new(), more: 0 };
            let rows = checking.rows()?;
            checking.index()?;
            Ok(Checked { rows, damage: checking.found, more: checking.more })
        })
    }
}

struct Checking<'c> {
    snapshot: &'c Snapshot<'c>,
    progress: &'c dyn Fn(u64),
    done: u64,
    found: Vec<Damage>,
    more: u64,
}

impl Checking<'_> {
    fn rows(&mut self) -> Result<u64, TransactionError> {
        let Snapshot { tables, txn, keys, meta, .. } = self.snapshot;
        let mut rows = 0;
        // Neighbouring rows share a key, so its cipher is made once for them.
        let mut cipher = None;
        for entry in tables.rows.iter(txn)? {
            let (key, bytes) = entry?;
            let number = rows::parse_number(key)?;
            rows += 1;
            self.step();
            if number >= meta.next_number {
                self.find(Damage::Beyond(number));
            }
            let bucket = row_bucket(number);
            if cipher.as_ref().is_none_or(|(of, _)| *of != bucket) {
                let made = keys.row(number).map(|key| RowCipher::new(key, keys.log)).transpose()?;
                cipher = Some((bucket, made));
            }
            let opened = cipher.as_ref().and_then(|(_, cipher)| cipher.as_ref()?.open(number, bytes));
            let Some(row) = opened else {
                self.find(Damage::Row(number));
                continue;
            };
            if index::find(tables, txn, keys, row.pseudonym)? != Some(number) {
                self.find(Damage::Unindexed(number));
            }
        }
        Ok(rows)
    }

    fn index(&mut self) -> Result<(), TransactionError> {
        let Snapshot { tables, txn, keys, .. } = self.snapshot;
        let mut counts = HashMap::new();
        for bucket in Bucket::all(tables, txn)? {
            counts.insert(bucket.id, (bucket.entries, 0_u32, index::cipher(keys, bucket.id)?));
        }
        for entry in tables.index.iter(txn)? {
            let (key, value) = entry?;
            self.step();
            let id = key.split_first_chunk::<4>().map_or(u32::MAX, |(id, _)| u32::from_be_bytes(*id));
            let Some((_, count, cipher)) = counts.get_mut(&id) else {
                self.find(Damage::Entry(id));
                continue;
            };
            *count += 1;
            match cipher.open(key, value) {
                Ok(entry) if Bucket::of(tables, txn, entry.pseudonym.prefix())?.id == id => {
                    self.entry(entry)?
                }
                _ => self.find(Damage::Entry(id)),
            }
        }
        let wrong = counts.into_iter().filter(|(_, (entries, count, _))| entries != count);
        wrong.for_each(|(id, _)| self.find(Damage::Count(id)));
        Ok(())
    }

    fn entry(&mut self, entry: Entry) -> Result<(), TransactionError> {
        let Snapshot { tables, txn, keys, .. } = self.snapshot;
        match rows::get(tables, txn, keys, entry.number) {
            Ok(Some(row)) if row.pseudonym == entry.pseudonym => {}
            // This was told already: its row does not open.
            Err(TransactionError::Stale(_)) => {}
            Err(error) => return Err(error),
            Ok(_) => self.find(Damage::Misled(entry.number)),
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

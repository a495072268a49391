//! People whom the index does not lead to yet.
//!
//! To put each of them into the index as they come would read and write a row of it, and mostly a page of the file, for everyone. So
//! their own rows alone tell of them at first, and the index takes them in together, once they are so many that several share its
//! rows: as a log-structured merge tree does (O'Neil et al., 1996). It does so for a sixteenth of the pseudonyms at a time, so that
//! nobody waits for all.
//!
//! - Whom the index leads to [`Meta::indexed`] says.
//! - Everybody else is found by reading the rows from the first number on that it does not lead to. A process keeps what it read, and
//!   next time reads on from there.
//! - An erasure has the index take in everybody first. So nobody was erased of the numbers from [`Indexed::least`] on, and within a
//!   generation people are only added to them.
//!
//! [`Indexed::least`]: super::record::Indexed::least

use hashbrown::HashTable;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use super::index::{Entry, Half};
use super::keys::Keys;
use super::record::Meta;
use super::rows;
use super::transaction::ReadTransaction;
use super::transaction_error::TransactionError;

/// Those of one state of the database, by the first half of their pseudonyms.
#[derive(Clone, Default)]
pub(super) struct Unindexed {
    generation: u64,
    /// The numbers of which it has everybody, also those whom the index leads to.
    numbers: Range<u64>,
    people: HashTable<Entry>,
    /// Why somebody may be missing, if the rows of these numbers could not be read to their end.
    broken: Option<String>,
}

impl Unindexed {
    /// Those of the state of the database that `meta` is of, which is committed, and maybe of a later one. `kept` is what the process has of another state; it has them
    /// afterwards.
    ///
    /// # Errors
    /// Where the database cannot be read. That rows are damaged is no error until somebody is not found elsewhere: [`Unindexed::require_all`].
    pub(super) fn of(
        kept: &Mutex<Arc<Self>>,
        txn: &ReadTransaction<'_>,
        keys: &Keys,
        meta: &Meta,
    ) -> Result<Arc<Self>, TransactionError> {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if meta.indexed.least() == meta.next_number {
            *kept = Arc::default();
        }
        if kept.has_all(meta) {
            return Ok(kept.clone());
        }
        // What cannot be read to its end is read again by whoever comes next.
        let mut read = std::mem::take(&mut *kept);
        Arc::make_mut(&mut read).read_on(txn, keys, meta)?;
        if read.broken.is_none() {
            *kept = read.clone();
        }
        Ok(read)
    }

    fn has_all(&self, meta: &Meta) -> bool {
        meta.indexed.least() == meta.next_number || self.goes_on(meta) && self.numbers.end >= meta.next_number
    }

    /// Whether it is of the same generation, and misses nobody from the first number on that the index does not lead to.
    fn goes_on(&self, meta: &Meta) -> bool {
        self.generation == meta.generation && self.numbers.contains(&meta.indexed.least())
    }

    fn read_on(
        &mut self,
        txn: &ReadTransaction<'_>,
        keys: &Keys,
        meta: &Meta,
    ) -> Result<(), TransactionError> {
        let first = meta.indexed.least();
        if !self.goes_on(meta) {
            *self = Unindexed { generation: meta.generation, numbers: first..first, ..Unindexed::default() };
        } else if self.numbers.start < first {
            self.people.retain(|entry| u64::from(entry.number) >= first);
            self.numbers.start = first;
        }
        let (from, people) = (self.numbers.end, &mut self.people);
        let read = rows::each_from(txn, keys, meta, from, |number, pseudonym| {
            let entry = Entry::of(number, pseudonym);
            people.insert_unique(hash(entry.half), entry, |entry| hash(entry.half));
        });
        match read {
            Ok(()) => self.numbers.end = meta.next_number,
            Err(TransactionError::Stale(why) | TransactionError::Damaged(why)) => self.broken = Some(why),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// The numbers of those whose pseudonym begins so, in the state that `meta` is of: mostly one or none. It may have people of a later one.
    pub(super) fn find(&self, half: Half, meta: &Meta) -> impl Iterator<Item = u64> {
        let alike = self.people.iter_hash(hash(half)).filter(move |entry| entry.half == half);
        let given = meta.next_number;
        alike.map(|entry| u64::from(entry.number)).filter(move |number| *number < given)
    }

    /// That nobody is missing.
    ///
    /// # Errors
    /// Where a row is damaged or missing.
    pub(super) fn require_all(&self) -> Result<(), TransactionError> {
        match &self.broken {
            None => Ok(()),
            Some(why) => Err(TransactionError::Stale(why.clone())),
        }
    }

    /// Those whom the index does not lead to, by what `meta` says of it.
    pub(super) fn entries(&self, meta: &Meta) -> impl Iterator<Item = Entry> {
        self.people.iter().copied().filter(|entry| !meta.indexed.has(u64::from(entry.number), entry.half))
    }
}

/// A pseudonym is as good as a random number to whoever has not got its key.
fn hash(half: Half) -> u64 {
    u64::from_le_bytes(half)
}

//! A write transaction that can remember what it wrote, so that the same can be written to replicas.
//!
//! Everything the vault writes goes through here. To run the same work on a replica would not do: it draws random bytes, and would
//! write something else there.

use heed::{PutFlags, RwTxn};
use std::ops::{Bound, Deref};

use super::tables::{TableName, Tables};
use super::transaction_error::TransactionError;

/// A transaction that writes.
pub(super) struct WriteTransaction<'t> {
    tables: &'t Tables,
    txn: RwTxn<'t>,
    journal: Option<Journal>,
}

/// What a transaction wrote, in that order.
#[derive(Default)]
pub(super) struct Journal {
    steps: Vec<Step>,
    bytes: usize,
}

enum Step {
    Put(TableName, Box<[u8]>, Box<[u8]>),
    Delete(TableName, Box<[u8]>),
    /// From the first key to before the second.
    DeleteRange(TableName, Box<[u8]>, Box<[u8]>),
}

/// The longest journal, in bytes. A transaction that wrote more (an erasure of thousands in a vault of millions) is not
/// kept in memory: replicas are copied after it.
const LONGEST: usize = if cfg!(test) { 2 << 20 } else { 64 << 20 };
/// What a step takes besides its bytes.
const STEP: usize = size_of::<Step>();

impl<'t> WriteTransaction<'t> {
    pub(super) fn new(tables: &'t Tables, txn: RwTxn<'t>) -> Self {
        WriteTransaction { tables, txn, journal: None }
    }

    /// Remembers from here on what is written.
    pub(super) fn keep_journal(&mut self) {
        self.journal = Some(Journal::default());
    }

    /// What was written since; `None` where nobody asked, or it is too much to be kept.
    pub(super) fn take_journal(&mut self) -> Option<Journal> {
        self.journal.take().filter(|journal| journal.bytes <= LONGEST)
    }

    pub(super) fn put(&mut self, part: TableName, key: &[u8], value: &[u8]) -> Result<(), TransactionError> {
        self.tables.named(part).put(&mut self.txn, key, value)?;
        self.note(key.len() + value.len(), || Step::Put(part, key.into(), value.into()));
        Ok(())
    }

    /// Puts in a key that is above all others.
    ///
    /// # Errors
    /// `KeyExist` where it is not.
    pub(super) fn append(&mut self, part: TableName, key: &[u8], value: &[u8]) -> heed::Result<()> {
        self.tables.named(part).put_with_flags(&mut self.txn, PutFlags::APPEND, key, value)?;
        self.note(key.len() + value.len(), || Step::Put(part, key.into(), value.into()));
        Ok(())
    }

    pub(super) fn delete(&mut self, part: TableName, key: &[u8]) -> Result<(), TransactionError> {
        self.tables.named(part).delete(&mut self.txn, key)?;
        self.note(key.len(), || Step::Delete(part, key.into()));
        Ok(())
    }

    /// Deletes the keys from `first` to before `end`.
    pub(super) fn delete_range(
        &mut self,
        part: TableName,
        first: &[u8],
        end: &[u8],
    ) -> Result<(), TransactionError> {
        let range = (Bound::Included(first), Bound::Excluded(end));
        self.tables.named(part).delete_range(&mut self.txn, &range)?;
        self.note(first.len() + end.len(), || Step::DeleteRange(part, first.into(), end.into()));
        Ok(())
    }

    pub(super) fn commit(self) -> Result<(), TransactionError> {
        Ok(self.txn.commit()?)
    }

    fn note(&mut self, bytes: usize, step: impl FnOnce() -> Step) {
        let Some(journal) = &mut self.journal else { return };
        journal.bytes = journal.bytes.saturating_add(bytes + STEP);
        match journal.bytes <= LONGEST {
            true => journal.steps.push(step()),
            false => journal.steps = Vec::new(),
        }
    }
}

/// Gives the transaction for reading alone, so that nothing can be written that is not remembered.
impl<'t> Deref for WriteTransaction<'t> {
    type Target = RwTxn<'t>;

    fn deref(&self) -> &RwTxn<'t> {
        &self.txn
    }
}

impl Journal {
    /// Writes to another database what the journal says was written.
    pub(super) fn write(&self, txn: &mut WriteTransaction<'_>) -> Result<(), TransactionError> {
        self.steps.iter().try_for_each(|step| match step {
            Step::Put(part, key, value) => txn.put(*part, key, value),
            Step::Delete(part, key) => txn.delete(*part, key),
            Step::DeleteRange(part, first, end) => txn.delete_range(*part, first, end),
        })
    }
}

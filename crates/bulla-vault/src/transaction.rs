//! Reading and writing a state of the database. Everything the vault reads or writes in it goes through here.
//!
//! A write transaction can remember what it wrote, so that the same can be written to replicas. To run the same work on a replica
//! would not do: it draws random bytes, and would write something else there.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};
use std::ops::{Deref, RangeInclusive};

use super::table::Table;
use super::transaction_error::{TransactionError, damaged};

/// A state of the database that others do not change.
pub(super) struct ReadTransaction<'t> {
    connection: &'t Connection,
}

/// A transaction that writes.
pub(super) struct WriteTransaction<'t> {
    read: ReadTransaction<'t>,
    journal: Option<Journal>,
}

/// What a transaction wrote, in that order.
#[derive(Default)]
pub(super) struct Journal {
    steps: Vec<Step>,
    bytes: usize,
}

enum Step {
    Put(Table, u64, Box<[u8]>),
    DeleteRange(Table, RangeInclusive<u64>),
}

/// The longest journal, in bytes. A transaction that wrote more (an erasure of thousands in a vault of millions) is not
/// kept in memory: replicas are copied after it.
const LONGEST: usize = if cfg!(test) { 1 << 19 } else { 64 << 20 };
/// As many bytes of rows are read at a time.
const PIECE: usize = if cfg!(test) { 1 << 10 } else { 1 << 20 };
/// What a step takes besides its bytes.
const STEP: usize = size_of::<Step>();
/// The greatest id of a row.
pub(super) const MAX_ID: u64 = i64::MAX as u64;

impl<'t> ReadTransaction<'t> {
    /// What `connection`, which is in a transaction, reads.
    pub(super) fn new(connection: &'t Connection) -> Self {
        ReadTransaction { connection }
    }

    /// The row with that id.
    pub(super) fn get(&self, table: Table, id: u64) -> Result<Option<Vec<u8>>, TransactionError> {
        let mut statement = self.connection.prepare_cached(table.get())?;
        let mut rows = statement.query([number(id)])?;
        rows.next()?.map(|row| Ok(bytes(row, 0)?.to_vec())).transpose()
    }

    /// The row with the greatest id that is not above `id`.
    pub(super) fn floor(&self, table: Table, id: u64) -> Result<Option<(u64, Vec<u8>)>, TransactionError> {
        let mut statement = self.connection.prepare_cached(table.floor())?;
        let mut rows = statement.query([number(id)])?;
        rows.next()?.map(|row| Ok((identity(row)?, bytes(row, 1)?.to_vec()))).transpose()
    }

    /// The row with the greatest id.
    pub(super) fn last(&self, table: Table) -> Result<Option<(u64, Vec<u8>)>, TransactionError> {
        self.floor(table, MAX_ID)
    }

    /// Shows `each` the rows of `range` in the order of their ids.
    ///
    /// # Errors
    /// What `each` says, which ends it.
    pub(super) fn range(
        &self,
        table: Table,
        range: RangeInclusive<u64>,
        mut each: impl FnMut(u64, &[u8]) -> Result<(), TransactionError>,
    ) -> Result<(), TransactionError> {
        let mut statement = self.connection.prepare_cached(table.range())?;
        let mut rows = statement.query([number(*range.start()), number(*range.end())])?;
        let mut least = *range.start();
        while let Some(row) = rows.next()? {
            each(in_order(table, &mut least, row)?, bytes(row, 1)?)?;
        }
        Ok(())
    }

    /// The rows of a table from an id on, in their order: all, or as many as have some [`PIECE`] bytes.
    pub(super) fn some(&self, table: Table, from: u64) -> Result<Vec<(u64, Vec<u8>)>, TransactionError> {
        let mut statement = self.connection.prepare_cached(table.range())?;
        let mut found = statement.query([number(from), number(MAX_ID)])?;
        let (mut rows, mut size, mut least) = (Vec::new(), 0, from);
        while let Some(row) = found.next()? {
            let (id, bytes) = (in_order(table, &mut least, row)?, bytes(row, 1)?);
            rows.push((id, bytes.to_vec()));
            size += bytes.len();
            if size >= PIECE {
                break;
            }
        }
        Ok(rows)
    }

    /// Shows `each` all rows of a table.
    ///
    /// # Errors
    /// As [`ReadTransaction::range`].
    pub(super) fn all(
        &self,
        table: Table,
        each: impl FnMut(u64, &[u8]) -> Result<(), TransactionError>,
    ) -> Result<(), TransactionError> {
        self.range(table, 0..=MAX_ID, each)
    }
}

impl<'t> WriteTransaction<'t> {
    /// What `connection`, which is in a transaction that writes, writes.
    pub(super) fn new(connection: &'t Connection) -> Self {
        WriteTransaction { read: ReadTransaction::new(connection), journal: None }
    }

    /// Remembers from here on what is written.
    pub(super) fn keep_journal(&mut self) {
        self.journal = Some(Journal::default());
    }

    /// What was written since; `None` where nobody asked, or it is too much to be kept.
    pub(super) fn take_journal(&mut self) -> Option<Journal> {
        self.journal.take().filter(|journal| journal.bytes <= LONGEST)
    }

    /// Puts a row in, in place of the one with the same id.
    pub(super) fn put(&mut self, table: Table, id: u64, row: &[u8]) -> Result<(), TransactionError> {
        let mut statement = self.read.connection.prepare_cached(table.put())?;
        statement.execute((number(id), row))?;
        self.note(row.len(), || Step::Put(table, id, row.into()));
        Ok(())
    }

    /// Deletes the rows whose ids are in `range`.
    pub(super) fn delete_range(
        &mut self,
        table: Table,
        range: RangeInclusive<u64>,
    ) -> Result<(), TransactionError> {
        let mut statement = self.read.connection.prepare_cached(table.delete_range())?;
        statement.execute([number(*range.start()), number(*range.end())])?;
        self.note(0, || Step::DeleteRange(table, range));
        Ok(())
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
    type Target = ReadTransaction<'t>;

    fn deref(&self) -> &ReadTransaction<'t> {
        &self.read
    }
}

impl Journal {
    /// Writes to another database what the journal says was written.
    pub(super) fn write(&self, txn: &mut WriteTransaction<'_>) -> Result<(), TransactionError> {
        self.steps.iter().try_for_each(|step| match step {
            Step::Put(table, id, row) => txn.put(*table, *id, row),
            Step::DeleteRange(table, range) => txn.delete_range(*table, range.clone()),
        })
    }
}

/// An id as SQLite has it. Ids that are greater are never in use, so that none can be taken for another.
fn number(id: u64) -> i64 {
    i64::try_from(id).unwrap_or(i64::MAX)
}

/// The id of a row of a table, of which the next one has none below `least`: a page that leads back to an earlier one would make
/// it endless.
fn in_order(table: Table, least: &mut u64, row: &Row<'_>) -> Result<u64, TransactionError> {
    let id = identity(row)?;
    if id < *least {
        return Err(damaged(format!("the table `{}` is not in order", table.name())));
    }
    *least = id + 1;
    Ok(id)
}

fn identity(row: &Row<'_>) -> Result<u64, TransactionError> {
    u64::try_from(row.get::<_, i64>(0)?).map_err(|_| damaged("a row has a negative id"))
}

fn bytes<'r>(row: &'r Row<'_>, column: usize) -> Result<&'r [u8], TransactionError> {
    match row.get_ref(column)? {
        ValueRef::Blob(bytes) => Ok(bytes),
        other => Err(damaged(format!("a row holds {} instead of bytes", other.data_type()))),
    }
}

//! In what a replica differs from its vault, and that what the vault has may be copied over it.
//!
//! The replica may be the last good copy. So nothing of the vault takes the place of what is there before it was authenticated:
//! - each row of the vault that differs opens, or is vouched for;
//! - none is missing there that the replica has and the vault has to have;
//! - where both have come equally far, nobody is in the replica's row who is not in the vault's: under one key people are only added
//!   to a row, so the vault's would be older than the rest.
//!
//! What is the same in both is not looked at: a copy changes nothing of it. Where there is no replica yet, everything is.

use std::collections::HashSet;

use super::damage::Damage;
use super::database::Database;
use super::index::{self, Bucket, IndexCipher};
use super::original::Original;
use super::record::Skipped;
use super::rows::{self, RowOpener};
use super::table::{TABLES, Table};
use super::transaction_error::{TransactionError, damaged};

/// Whether a replica has the rows of the vault, byte for byte. `is_level` says whether it has come as far. Nobody writes to
/// either meanwhile.
///
/// # Errors
/// `OfVault` where what it has otherwise is damaged or missing; where the replica is damaged; where one of them cannot
/// be read.
pub(super) fn is_same(
    original: &Original<'_>,
    replica: &Database,
    is_level: bool,
) -> Result<bool, TransactionError> {
    let vault = original.database;
    let mut authenticating = Authenticating::begin(original, is_level).map_err(|error| of(vault, error))?;
    let mut is_same = true;
    for table in TABLES {
        let (mut ours, mut theirs) = (Rows::of(vault, table), Rows::of(replica, table));
        let mut next = (ours.next().map_err(|error| of(vault, error))?, theirs.next()?);
        loop {
            let id = match &next {
                (None, None) => break,
                (Some((id, _)), None) | (None, Some((id, _))) => *id,
                (Some((ours, _)), Some((theirs, _))) => *ours.min(theirs),
            };
            let our = next.0.take_if(|(found, _)| *found == id).map(|(_, row)| row);
            let their = next.1.take_if(|(found, _)| *found == id).map(|(_, row)| row);
            if our != their {
                is_same = false;
                let authentic = authenticating.row(table, id, our.as_deref(), their.as_deref());
                authentic.map_err(|error| of(vault, error))?;
            }
            if our.is_some() {
                next.0 = ours.next().map_err(|error| of(vault, error))?;
            }
            if their.is_some() {
                next.1 = theirs.next()?;
            }
        }
    }
    Ok(is_same)
}

/// That the vault may be copied to where there is no replica yet: every row opens, or is vouched for, and none is missing.
///
/// # Errors
/// `OfVault` where it is damaged, or cannot be read.
pub(super) fn require_whole(original: &Original<'_>) -> Result<(), TransactionError> {
    let Original { database, keys, mark, .. } = original;
    let whole = database.read(|txn| {
        rows::each(txn, keys, &mark.meta, |_, _| Ok(()))?;
        for bucket in Bucket::all(txn, keys)? {
            index::cipher(keys, bucket.id)?.count(txn)?;
        }
        txn.all(Table::Records, |id, row| match keys.vouched(Table::Records, id, row) {
            Some(_) => Ok(()),
            None => Err(unvouched(Table::Records, id)),
        })
    });
    whole.map_err(|error| of(database, error))
}

/// An error about the vault is told as such: it is not the replica that is damaged.
fn of(vault: &Database, error: TransactionError) -> TransactionError {
    TransactionError::OfVault(vault.explain(error))
}

fn unvouched(table: Table, id: u64) -> TransactionError {
    damaged(match table {
        Table::Buckets => format!("its index bucket from prefix {id}"),
        _ => format!("its record {id}"),
    })
}

/// The rows of a table one after the other, of which a piece is in memory.
struct Rows<'d> {
    database: &'d Database,
    table: Table,
    /// The id from which on there may be more.
    next: Option<u64>,
    piece: std::vec::IntoIter<(u64, Vec<u8>)>,
}

impl<'d> Rows<'d> {
    fn of(database: &'d Database, table: Table) -> Self {
        Rows { database, table, next: Some(0), piece: Vec::new().into_iter() }
    }

    fn next(&mut self) -> Result<Option<(u64, Vec<u8>)>, TransactionError> {
        if let Some(row) = self.piece.next() {
            return Ok(Some(row));
        }
        let Some(from) = self.next else { return Ok(None) };
        let piece = self.database.read(|txn| txn.some(self.table, from))?;
        self.next = piece.last().and_then(|(id, _)| id.checked_add(1));
        self.piece = piece.into_iter();
        Ok(self.piece.next())
    }
}

/// Authenticates rows of the vault that a replica has otherwise.
struct Authenticating<'o> {
    original: &'o Original<'o>,
    is_level: bool,
    skipped: Skipped,
    rows: RowOpener<'o>,
    /// The ids of the index buckets that are in use.
    buckets: HashSet<u32>,
    /// That of the last index bucket that was asked for.
    index: Option<(u32, IndexCipher)>,
}

impl<'o> Authenticating<'o> {
    fn begin(original: &'o Original<'o>, is_level: bool) -> Result<Self, TransactionError> {
        let Original { database, keys, .. } = original;
        let read = database.read(|txn| Ok((Skipped::read(txn, keys)?, Bucket::all(txn, keys)?)));
        let (skipped, buckets) = read?;
        let buckets = buckets.into_iter().map(|bucket| bucket.id).collect();
        Ok(Authenticating { original, is_level, skipped, rows: RowOpener::new(keys), buckets, index: None })
    }

    /// That a row of the vault may take the place of the replica's.
    fn row(
        &mut self,
        table: Table,
        id: u64,
        our: Option<&[u8]>,
        their: Option<&[u8]>,
    ) -> Result<(), TransactionError> {
        // What there is to be older of where the replica is behind, its own row does not tell.
        let their = their.filter(|_| self.is_level);
        match (table, our) {
            (Table::Rows, Some(our)) => self.people(id, our, their),
            (Table::Rows, None) if self.is_due(id) => Err(damaged(Damage::Missing(id).to_string())),
            (Table::Index, our) => self.entries(id, our, their),
            (Table::Records | Table::Buckets, Some(our)) => {
                let vouched = self.original.keys.vouched(table, id, our);
                vouched.map(drop).ok_or_else(|| unvouched(table, id))
            }
            // Of these opening has seen that none is missing.
            (Table::Records | Table::Buckets | Table::Rows, None) => Ok(()),
        }
    }

    fn people(&mut self, id: u64, our: &[u8], their: Option<&[u8]>) -> Result<(), TransactionError> {
        let row = self.rows.open(id, our)?.ok_or_else(|| damaged(rows::broken(id)))?;
        let Some(their) = their else { return Ok(()) };
        match self.rows.open(id, their)? {
            Some(their) if their.people().any(|(place, _)| row.person(place).is_none()) => {
                Err(damaged(format!("its row {id} is older than the rest")))
            }
            _ => Ok(()),
        }
    }

    /// Whether a row of people has to be there.
    fn is_due(&self, id: u64) -> bool {
        let given = self.original.mark.meta.next_number;
        let last = given.checked_sub(1).map(rows::row_of);
        if last.is_none_or(|last| id > last) {
            return false;
        }
        !self.skipped.covers(rows::first_of(id), rows::first_of(id + 1).min(given))
    }

    fn entries(&mut self, id: u64, our: Option<&[u8]>, their: Option<&[u8]>) -> Result<(), TransactionError> {
        let (bucket, place) = index::place_of(id);
        let Some(bucket) = bucket.filter(|bucket| self.buckets.contains(bucket)) else {
            // One that was in use before, in the replica alone.
            let Some(_) = our else { return Ok(()) };
            return Err(damaged(Damage::Foreign(id).to_string()));
        };
        if self.index.as_ref().is_none_or(|(of, _)| *of != bucket) {
            self.index = Some((bucket, index::cipher(&self.original.keys, bucket)?));
        }
        let Some((_, cipher)) = &self.index else { return Ok(()) };
        let opened = our.and_then(|our| cipher.open(place, our));
        let entries = opened.ok_or_else(|| damaged(cipher.broken(place)))?;
        let theirs = their.and_then(|their| cipher.open(place, their)).unwrap_or_default();
        match theirs.iter().all(|entry| entries.binary_search(entry).is_ok()) {
            true => Ok(()),
            false => Err(damaged(format!("its row {place} of index bucket {bucket} is older than the rest"))),
        }
    }
}

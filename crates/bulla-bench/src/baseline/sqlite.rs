//! The schemes of the log integrity benchmark on SQLite, with SHA3-256: A appends only; B adds a hash for each 100 logs; C
//! keeps a Merkle tree, every node a row, which each insert updates up to the root.
//!
//! All are given the best that SQLite offers: prepared statements, a write-ahead log, and a transaction, which is synced,
//! for each 100 logs, where one for each log would take a sync each.

use super::merkle::{self, Edge, Hash};
use crate::knobs::{Amount, Knobs};
use crate::measure::{self, Watch, figure};
use crate::outcome::{Failure, Outcome};
use bulla_workload::Workload;
use rusqlite::{Connection, Transaction};
use serde::{Deserialize, Serialize};
use sha3::{Digest, Sha3_256};
use std::path::Path;
use std::time::Instant;

/// Logs of a transaction, and of a hash of scheme B.
const GROUP: usize = 100;
/// Logs that are verified, one by one.
const VERIFIED: u64 = 1000;
/// Logs that are appended where no number is given: the most that was published.
pub(crate) const LOGS: u64 = 50_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Scheme {
    A,
    B,
    C,
}

impl Scheme {
    fn tables(self) -> &'static str {
        match self {
            Scheme::A => {
                "CREATE TABLE IF NOT EXISTS log (number INTEGER PRIMARY KEY, time INTEGER, line BLOB);"
            }
            Scheme::B => {
                "CREATE TABLE IF NOT EXISTS log (number INTEGER PRIMARY KEY, time INTEGER, line BLOB);
                 CREATE TABLE IF NOT EXISTS hash (number INTEGER PRIMARY KEY, hash BLOB);"
            }
            Scheme::C => {
                "CREATE TABLE IF NOT EXISTS log (number INTEGER PRIMARY KEY, time INTEGER, line BLOB);
                 CREATE TABLE IF NOT EXISTS node
                     (level INTEGER, place INTEGER, hash BLOB, PRIMARY KEY (level, place)) WITHOUT ROWID;"
            }
        }
    }
}

/// How many logs a run of this benchmark appends.
pub(crate) fn logs(knobs: &Knobs) -> u64 {
    match knobs.amount() {
        Amount::Entries(entries) => entries,
        Amount::Time(_) => LOGS,
    }
}

pub(crate) fn run(scheme: Scheme, knobs: &Knobs, place: &Path) -> Result<Outcome, Failure> {
    let path = place.join("log.sqlite");
    let lines = lines(knobs);
    let watch = Watch::start();
    let mut connection = open(&path, scheme)?;
    append(&mut connection, scheme, &lines)?;
    connection.close().map_err(|(_, error)| error)?;
    let passed = watch.stop();

    let mut outcome = Outcome::default();
    let count = lines.len() as f64;
    outcome.set(figure::ENTRIES, count);
    outcome.set(figure::SECONDS, passed.time.as_secs_f64());
    outcome.set(figure::RATE, count / passed.time.as_secs_f64());
    outcome.set(figure::CPU, passed.cpu.as_nanos() as f64 / count);
    outcome.set(figure::DISK, measure::files(place)?.0 as f64 / count);
    outcome.set("append_ms_per_log", passed.time.as_secs_f64() * 1e3 / count);
    if scheme != Scheme::A {
        let (checked, start) = (VERIFIED.min(lines.len() as u64), Instant::now());
        verify(&open(&path, scheme)?, scheme, lines.len() as u64, checked)?;
        outcome.set("verify_ms_per_log", start.elapsed().as_secs_f64() * 1e3 / checked as f64);
    }
    Ok(outcome)
}

fn lines(knobs: &Knobs) -> Vec<(i64, Vec<u8>)> {
    let mut generator = Workload::Integrity.generator(knobs.seed, 0);
    let mut line = || {
        let entry = generator.next_entry();
        (entry.time.unwrap_or_default(), entry.payload.unwrap_or_default().to_vec())
    };
    (0..logs(knobs)).map(|_| line()).collect()
}

fn open(path: &Path, scheme: Scheme) -> Result<Connection, Failure> {
    let connection = Connection::open(path)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.execute_batch(scheme.tables())?;
    Ok(connection)
}

fn append(connection: &mut Connection, scheme: Scheme, lines: &[(i64, Vec<u8>)]) -> Result<(), Failure> {
    let mut edge = Edge::default();
    let mut number = 0;
    for group in lines.chunks(GROUP) {
        let transaction = connection.transaction()?;
        append_group(&transaction, number, group)?;
        match scheme {
            Scheme::A => {}
            Scheme::B => {
                let hash = hash_group(group.iter().map(|(_, line)| line.as_slice()));
                transaction.execute("INSERT INTO hash VALUES (?1, ?2)", (number / GROUP as u64, hash))?;
            }
            Scheme::C => append_leaves(&transaction, number, group, &mut edge)?,
        }
        transaction.commit()?;
        number += group.len() as u64;
    }
    Ok(())
}

fn append_group(transaction: &Transaction<'_>, first: u64, group: &[(i64, Vec<u8>)]) -> Result<(), Failure> {
    let mut insert = transaction.prepare("INSERT INTO log VALUES (?1, ?2, ?3)")?;
    for (number, (time, line)) in (first..).zip(group) {
        insert.execute((number, time, line))?;
    }
    Ok(())
}

fn append_leaves(
    transaction: &Transaction<'_>,
    first: u64,
    group: &[(i64, Vec<u8>)],
    edge: &mut Edge,
) -> Result<(), Failure> {
    let mut store = transaction.prepare("INSERT OR REPLACE INTO node VALUES (?1, ?2, ?3)")?;
    for (number, (_, line)) in (first..).zip(group) {
        edge.add(number, merkle::leaf(line), |level, place, hash| {
            store.execute((level, place, hash))?;
            Ok(())
        })?;
    }
    Ok(())
}

/// Verifies so many of the logs, each by itself.
fn verify(connection: &Connection, scheme: Scheme, logs: u64, checked: u64) -> Result<(), Failure> {
    let mut numbers = (0..checked).map(|index| index * logs / checked);
    match scheme {
        Scheme::A => Ok(()),
        Scheme::B => numbers.try_for_each(|number| verify_group(connection, number)),
        Scheme::C => {
            let root = root(connection, logs)?;
            numbers.try_for_each(|number| verify_path(connection, number, logs, &root))
        }
    }
}

/// Checks the hash of the group that a log is in.
fn verify_group(connection: &Connection, number: u64) -> Result<(), Failure> {
    let (group, first) = (number / GROUP as u64, number - number % GROUP as u64);
    let mut lines = connection.prepare_cached("SELECT line FROM log WHERE number BETWEEN ?1 AND ?2")?;
    let lines = lines
        .query_map((first, first + GROUP as u64 - 1), |row| row.get::<_, Vec<u8>>(0))?
        .collect::<Result<Vec<_>, _>>()?;
    let mut stored = connection.prepare_cached("SELECT hash FROM hash WHERE number = ?1")?;
    let stored = stored.query_row([group], |row| row.get::<_, Hash>(0))?;
    verified(number, hash_group(lines.iter().map(Vec::as_slice)) == stored)
}

/// Climbs from a log to the root.
fn verify_path(connection: &Connection, number: u64, logs: u64, root: &Hash) -> Result<(), Failure> {
    let mut line = connection.prepare_cached("SELECT line FROM log WHERE number = ?1")?;
    let line = line.query_row([number], |row| row.get::<_, Vec<u8>>(0))?;
    let mut nodes = connection.prepare_cached("SELECT hash FROM node WHERE level = ?1 AND place = ?2")?;
    verified(number, merkle::climb(number, merkle::leaf(&line), logs, &mut nodes)? == *root)
}

fn root(connection: &Connection, logs: u64) -> Result<Hash, Failure> {
    let query = "SELECT hash FROM node WHERE level = ?1 AND place = 0";
    Ok(connection.query_row(query, [merkle::height(logs - 1)], |row| row.get(0))?)
}

fn verified(number: u64, holds: bool) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(format!("log {number} does not verify").into()) }
}

fn hash_group<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Hash {
    let mut hasher = Sha3_256::new();
    for line in lines {
        hasher.update((line.len() as u64).to_le_bytes());
        hasher.update(line);
    }
    hasher.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knobs::tests::knobs;

    fn database(scheme: Scheme, place: &Path) -> Connection {
        let mut connection = open(&place.join("log.sqlite"), scheme).unwrap();
        append(&mut connection, scheme, &lines(&knobs(1234))).unwrap();
        connection
    }

    /// None where there is no such table.
    fn count(connection: &Connection, table: &str) -> u64 {
        let query = format!("SELECT count(*) FROM {table}");
        connection.query_row(&query, [], |row| row.get(0)).unwrap_or_default()
    }

    #[test]
    fn each_scheme_stores_what_it_says() {
        // Leaves, and on each level above half as many, rounded up.
        let nodes = 1234 + 617 + 309 + 155 + 78 + 39 + 20 + 10 + 5 + 3 + 2 + 1;
        for (scheme, hashes, nodes) in [(Scheme::A, 0, 0), (Scheme::B, 13, 0), (Scheme::C, 0, nodes)] {
            let place = tempfile::tempdir().unwrap();
            let connection = database(scheme, place.path());
            assert_eq!(
                ["log", "hash", "node"].map(|table| count(&connection, table)),
                [1234, hashes, nodes],
                "{scheme:?}"
            );
        }
    }

    #[test]
    fn a_log_that_was_altered_does_not_verify() {
        for scheme in [Scheme::B, Scheme::C] {
            let place = tempfile::tempdir().unwrap();
            let connection = database(scheme, place.path());
            verify(&connection, scheme, 1234, 1234).unwrap();
            connection.execute("UPDATE log SET line = 'other' WHERE number = 1233", []).unwrap();
            assert!(verify(&connection, scheme, 1234, 1234).is_err(), "{scheme:?}");
        }
    }
}

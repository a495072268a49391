//! Rows that were dropped, set aside as files that the log's recipients can read: the setting `error_path`.
//!
//! A file is an age file of JSON lines, as `bulla append` reads them. What is not in a file is counted all the same: where the directory
//! takes none, where its files have the size that they may have, and where more rows come than a buffer holds until they are written.
//!
//! Invariants:
//! - nobody waits for the directory but who writes files to it: rows are taken, and those in files counted, under a mutex that is held for
//!   moments;
//! - of an outage those rows are counted that were dropped in it and are in files.

use super::super::Engine;
use crate::format::config::LogConfig;
use crate::scan::paths::open_path;
use crate::write::stage::queue::OutageNumber;
use bulla_crypto::environment::Environment;
use bulla_proof::Entry;
use bulla_store::{Error, Result, Store};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of rows that wait to be written, at most.
const MOST_HELD: usize = 8 << 20;
/// Before each row, its length.
const PREFIX: usize = 4;

/// See the module.
pub(in super::super) struct SetAside {
    store: Arc<dyn Store>,
    /// Bytes of files at most.
    limit: u64,
    rows: Mutex<Rows>,
    /// Held while a file is written.
    files: Mutex<Files>,
}

#[derive(Default)]
struct Rows {
    waiting: Waiting,
    /// Those that are in files.
    written: OfOutage,
}

/// Rows that are not in a file yet.
#[derive(Default)]
struct Waiting {
    rows: Vec<u8>,
    entries: u64,
    of: OfOutage,
}

/// How many rows there are of the newest outage of which there is any.
#[derive(Clone, Copy, Default)]
struct OfOutage {
    outage: OutageNumber,
    entries: u64,
}

impl OfOutage {
    /// Adds rows. Those of an outage before are not counted any more: its event has its number.
    fn add(&mut self, rows: OfOutage) {
        if rows.outage > self.outage {
            *self = rows;
        } else if rows.outage == self.outage {
            self.entries += rows.entries;
        }
    }
}

#[derive(Default)]
struct Files {
    /// Bytes of the log's files in the directory, and the second in which they were counted: who takes some away makes room.
    counted: Option<(i64, u64)>,
    /// The number of the next file of this second.
    number: u64,
    /// What was said of a failure last, if nothing was written since.
    told: Option<String>,
}

impl SetAside {
    /// In this directory, which need not be there.
    pub(in super::super) fn new(path: &Path, limit: u64, environment: &Environment) -> Self {
        let store = open_path(path, environment);
        SetAside { store, limit, rows: Mutex::default(), files: Mutex::default() }
    }

    fn rows(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a row of so many bytes that was dropped in this outage, unless there is no room for it.
    pub(crate) fn take(&self, outage: OutageNumber, length: usize, encode: &dyn Fn(&mut [u8])) {
        let mut rows = self.rows();
        let waiting = &mut rows.waiting;
        let start = waiting.rows.len();
        if start + PREFIX + length > MOST_HELD {
            return;
        }
        waiting.rows.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
        waiting.rows.resize(start + PREFIX + length, 0);
        encode(&mut waiting.rows[start + PREFIX..]);
        waiting.entries += 1;
        waiting.of.add(OfOutage { outage, entries: 1 });
    }

    /// How many entries that were dropped in this outage, the last one, are in files.
    pub(super) fn written(&self, outage: OutageNumber) -> u64 {
        let written = self.rows().written;
        if written.outage == outage { written.entries } else { 0 }
    }
}

/// What a file's name begins with.
fn prefix(config: &LogConfig) -> String {
    format!("{}-", config.id)
}

/// Rows as lines.
fn lines(rows: &[u8]) -> Vec<u8> {
    let mut lines = Vec::with_capacity(rows.len() * 2);
    let mut rest = rows;
    while let Some((length, behind)) = rest.split_first_chunk::<PREFIX>() {
        let Some((row, behind)) = behind.split_at_checked(u32::from_le_bytes(*length) as usize) else {
            break;
        };
        if let Ok(entry) = Entry::decode(row) {
            bulla_text::jsonl::write_unnumbered(&entry, &mut lines);
        }
        rest = behind;
    }
    lines
}

impl Engine {
    /// Writes the rows that wait for it to a file, where they are to be set aside. That takes as long as the directory likes.
    pub(crate) fn set_rows_aside(&self) {
        let Some(aside) = &self.dropping.set_aside else { return };
        let mut files = aside.files.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = std::mem::take(&mut aside.rows().waiting);
        if waiting.entries == 0 {
            return;
        }
        match self.write_file(aside, &mut files, &waiting.rows) {
            Ok(()) => {
                aside.rows().written.add(waiting.of);
                files.told = None;
                crate::write::telemetry::count(&self.meter.set_aside, waiting.entries);
            }
            Err(error) => {
                let what = format!("what is dropped is not set aside, only counted: {error}");
                if files.told.as_ref() != Some(&what) {
                    self.tell_of_paths(&what);
                }
                files.told = Some(what);
            }
        }
    }

    fn write_file(&self, aside: &SetAside, files: &mut Files, rows: &[u8]) -> Result<()> {
        let store = &*aside.store;
        let config = self.config();
        let failed = |name: &str, error| Error::io(format!("writing {}", store.describe(name)), error);
        let now = self.seconds();
        let there = match files.counted {
            Some((second, bytes)) if second == now => bytes,
            _ => {
                bulla_store::require_own(store)?;
                store.create_directory("").map_err(|error| failed("", error))?;
                count(store, &prefix(&config))?
            }
        };
        files.counted = Some((now, there));
        let limit = self.tuning.plugin_timeout;
        let file = self.environment.key_wrap.encrypt(&config.recipients, &lines(rows), limit)?;
        let bytes = there.saturating_add(file.len() as u64);
        if bytes > aside.limit {
            return Err(Error::unavailable(format!(
                "{} would have more than the {} bytes of `error_path_size`",
                store.describe(""),
                aside.limit
            )));
        }
        loop {
            let name = format!("{}{:020}-{:06}.jsonl.age", prefix(&config), now, files.number);
            files.number += 1;
            match bulla_store::write_new(store, &name, &file) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(&name, error)),
                Ok(()) => break,
            }
        }
        files.counted = Some((now, bytes));
        Ok(())
    }
}

/// The bytes of the files there whose names begin so. One that is taken away meanwhile has none.
fn count(store: &dyn Store, prefix: &str) -> Result<u64> {
    let failed = |error| Error::io(format!("reading {}", store.describe("")), error);
    let items = store.list("").map_err(failed)?;
    let names = items.iter().map(|item| &item.name).filter(|name| name.starts_with(prefix));
    let lengths = names.map(|name| match store.open(name).and_then(|file| file.length()) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
        length => length.map_err(failed),
    });
    lengths.sum()
}

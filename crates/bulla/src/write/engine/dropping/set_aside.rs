//! Rows that were dropped, set aside as files that the log's recipients can read: the setting `error_path`.
//!
//! A file is an age file of JSON lines, as `bulla append` reads them. What is not in a file is counted all the same: where the directory
//! takes none, where its files have the size that they may have, and where more rows come than a buffer holds until they are written.

use super::super::Engine;
use crate::format::config::LogConfig;
use crate::scan::paths::open_path;
use bulla_crypto::environment::Environment;
use bulla_proof::Entry;
use bulla_store::{Error, Result, Store};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of rows that wait to be written, at most.
const MOST_HELD: usize = 8 << 20;
/// Before each row, its length.
const PREFIX: usize = 4;

/// See the module.
pub(in super::super) struct SetAside {
    store: Arc<dyn Store>,
    /// Bytes of files at most.
    limit: u64,
    held: Mutex<Held>,
    written: Mutex<Written>,
}

#[derive(Default)]
struct Held {
    rows: Vec<u8>,
    entries: u64,
}

#[derive(Default)]
struct Written {
    /// Bytes of the log's files in the directory, once they were counted.
    bytes: Option<u64>,
    /// The number of the next file of this second.
    number: u64,
    /// Entries that are in files and that no event tells of yet.
    entries: u64,
    /// What was said of a failure last.
    told: Option<String>,
}

impl SetAside {
    /// In this directory, which need not be there.
    pub(in super::super) fn new(path: &Path, limit: u64, environment: &Environment) -> Self {
        let store = open_path(path, environment);
        SetAside { store, limit, held: Mutex::default(), written: Mutex::default() }
    }

    /// Takes a row of so many bytes, unless there is no room for it.
    pub(crate) fn take(&self, length: usize, encode: &dyn Fn(&mut [u8])) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let start = held.rows.len();
        if start + PREFIX + length > MOST_HELD {
            return;
        }
        held.rows.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
        held.rows.resize(start + PREFIX + length, 0);
        encode(&mut held.rows[start + PREFIX..]);
        held.entries += 1;
    }

    /// How many entries were written to files since this was asked last.
    pub(super) fn take_count(&self) -> u64 {
        std::mem::take(&mut self.written.lock().unwrap_or_else(PoisonError::into_inner).entries)
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
    /// Writes the rows that wait for it to a file, where they are to be set aside.
    pub(crate) fn set_rows_aside(&self) {
        let Some(aside) = &self.dropping.set_aside else { return };
        let mut written = aside.written.lock().unwrap_or_else(PoisonError::into_inner);
        let held = std::mem::take(&mut *aside.held.lock().unwrap_or_else(PoisonError::into_inner));
        if held.entries == 0 {
            return;
        }
        match self.write_file(aside, &mut written, &held) {
            Ok(()) => {
                written.entries += held.entries;
                crate::write::telemetry::count(&self.meter.set_aside, held.entries);
            }
            Err(error) => {
                let what = format!("what is dropped is not set aside, only counted: {error}");
                if written.told.as_ref() != Some(&what) {
                    self.tell_of_paths(&what);
                }
                written.told = Some(what);
            }
        }
    }

    fn write_file(&self, aside: &SetAside, written: &mut Written, held: &Held) -> Result<()> {
        let store = &*aside.store;
        let config = self.config();
        let failed = |name: &str, error| Error::io(format!("writing {}", store.describe(name)), error);
        let there = match written.bytes {
            Some(bytes) => bytes,
            None => {
                bulla_store::require_own(store)?;
                store.create_directory("").map_err(|error| failed("", error))?;
                count(store, &prefix(&config))?
            }
        };
        written.bytes = Some(there);
        let limit = self.tuning.plugin_timeout;
        let file = self.environment.key_wrap.encrypt(&config.recipients, &lines(&held.rows), limit)?;
        let bytes = there.saturating_add(file.len() as u64);
        if bytes > aside.limit {
            return Err(Error::unavailable(format!(
                "{} would have more than the {} bytes of `error_path_size`",
                store.describe(""),
                aside.limit
            )));
        }
        loop {
            let name = format!("{}{:020}-{:06}.jsonl.age", prefix(&config), self.seconds(), written.number);
            written.number += 1;
            match bulla_store::write_new(store, &name, &file) {
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(&name, error)),
                Ok(()) => break,
            }
        }
        written.bytes = Some(bytes);
        Ok(())
    }
}

/// The bytes of the files there whose names begin so.
fn count(store: &dyn Store, prefix: &str) -> Result<u64> {
    let failed = |error| Error::io(format!("reading {}", store.describe("")), error);
    let items = store.list("").map_err(failed)?;
    let lengths = items.iter().filter(|item| item.name.starts_with(prefix));
    lengths.map(|item| store.open(&item.name).and_then(|file| file.length()).map_err(failed)).sum()
}

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation)]

mod cache;
mod crash;
mod damage;
mod database;
mod erase;
mod files;
mod replica;
mod replica_crash;
mod resolve;
mod sweep;
mod traces;
mod unexplained;
mod unindexed;
mod vectors;
mod whole;

use super::*;
use bulla_crypto::environment::SystemRandom;
use bulla_crypto::group::PartId;
use bulla_proof::hash::Hash;
use bulla_proof::tree::TreeHead;
use bulla_store::{FileSystem, Store};
use bulla_testkit::fault::Faults;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use tempfile::TempDir;

const LOG: LogId = LogId([0x5a; 16]);

/// Of so many ways in which a disk may keep a crash that one whose turn it is at this point; all where a sweep is in full,
/// as `make sweep` has it.
fn in_turn(ways: std::ops::RangeInclusive<u64>, point: u64) -> Vec<u64> {
    match std::env::var_os("BULLA_SWEEP") {
        Some(_) => ways.collect(),
        None => vec![ways.start() + point % (ways.end() - ways.start() + 1)],
    }
}

/// A place for a vault.
struct World {
    place: TempDir,
    settings: Settings,
}

impl World {
    /// An empty vault.
    fn new() -> Self {
        Self::with(Settings::default())
    }

    fn with(settings: Settings) -> Self {
        let world = World { place: tempfile::tempdir().unwrap(), settings };
        Vault::create(world.path(), LOG, &world.settings).unwrap();
        world
    }

    fn path(&self) -> &Path {
        self.place.path()
    }

    fn open(&self) -> Vault {
        self.try_open().unwrap()
    }

    fn try_open(&self) -> Result<Vault> {
        Vault::open(self.path(), LOG, Access::Write, &self.settings)
    }

    /// What opening says that must not succeed.
    fn refusal(&self) -> (ErrorKind, String) {
        let error = self.try_open().expect_err("it is refused");
        (error.kind(), error.to_string())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }
}

/// Random bytes of the system, all of which are kept.
#[derive(Default)]
struct Recorder(Mutex<Vec<Vec<u8>>>);

impl Random for Recorder {
    fn fill(&self, bytes: &mut [u8]) -> Result<()> {
        SystemRandom.fill(bytes)?;
        self.0.lock().unwrap().push(bytes.to_vec());
        Ok(())
    }
}

impl Recorder {
    fn secrets(&self) -> Vec<[u8; 32]> {
        // Keys of many people are drawn together. What is longer only overwrites.
        let made = self.0.lock().unwrap();
        let of_keys = made.iter().filter(|bytes| bytes.len() < 1 << 16 && bytes.len() % 32 == 0);
        of_keys.flat_map(|bytes| bytes.as_chunks().0).copied().collect()
    }
}

fn number(vault: &Vault, subject: &str) -> u64 {
    vault.resolve(&[subject]).unwrap()[0].number
}

fn key(vault: &Vault, subject: &str) -> [u8; 32] {
    *vault.find(subject).unwrap().unwrap().key.bytes()
}

/// Resolves `prefix0` and so on, all at once.
fn fill(vault: &Vault, prefix: &str, count: usize) -> Vec<Subject> {
    let names = (0..count).map(|index| format!("{prefix}{index}")).collect::<Vec<_>>();
    vault.resolve(&names.iter().map(String::as_str).collect::<Vec<_>>()).unwrap()
}

/// What a vault or a replica in a directory holds: its tables, and its roots.
type Kept = (Vec<Vec<(u64, Vec<u8>)>>, Vec<(String, Vec<u8>)>);

fn kept(directory: &Path, roots: &dyn Store) -> Kept {
    // What is open is left alone.
    let place = tempfile::tempdir().unwrap();
    copy(&directory.join("vault"), place.path());
    let database = Database::open(place.path()).map_err(|error| error.into_error("kept")).unwrap();
    let read = database.read(|txn| {
        let mut tables = Vec::new();
        for table in table::TABLES {
            let mut rows = Vec::new();
            txn.all(table, |id, row| {
                rows.push((id, row.to_vec()));
                Ok(())
            })?;
            tables.push(rows);
        }
        Ok(tables)
    });
    let items = roots.list("roots").unwrap().into_iter();
    let file = |name: String| {
        let bytes = bulla_store::read_small(roots, &format!("roots/{name}"), 1 << 20).unwrap();
        (name, bytes)
    };
    (read.map_err(|error| error.into_error("kept")).unwrap(), items.map(|item| file(item.name)).collect())
}

/// All steps of an erasure but the last, as the engine takes them.
fn erase(vault: &Vault, subjects: &[&str]) -> Result<Option<Erased>> {
    vault.begin_erasure(subjects)?.map(|erasure| erasure.commit()?.destroy()).transpose()
}

/// The same by numbers.
fn erase_numbers(vault: &Vault, numbers: &[u64]) -> Result<Option<Erased>> {
    vault.begin_erasure_of(numbers)?.map(|erasure| erasure.commit()?.destroy()).transpose()
}

/// The head of some tree of so many frames.
/// Leaves out the numbers of whom nothing tells but `erased`.
fn leave_out(vault: &Vault, erased: &dyn Fn(u64) -> bool) -> Result<()> {
    vault.mark_given_up(&BTreeSet::new(), false, Some(erased))
}

/// The ids of so many parts of the log.
fn parts(count: u8) -> BTreeSet<PartId> {
    (0..count).map(|part| PartId([part; 16])).collect()
}

fn head(size: u64) -> TreeHead {
    TreeHead { size, root: Hash([size as u8; 32]) }
}

fn assert_sound(vault: &Vault) {
    let checked = vault.check(&|_| true, &|_| ()).unwrap();
    assert_eq!((checked.damage, checked.more), (Vec::new(), 0));
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for item in std::fs::read_dir(from).unwrap() {
        let item = item.unwrap();
        let to = to.join(item.file_name());
        match item.file_type().unwrap().is_dir() {
            true => copy(&item.path(), &to),
            false => drop(std::fs::copy(item.path(), to).unwrap()),
        }
    }
}

//! A pin binds a log to what it was, also where log and keys are put back together; it only advances, whoever does it.

mod misfits;
mod moving;
mod verified;

use crate::erase::world::copy_into;
use bulla::store::FileSystem;
use bulla::{Entry, Init, Log, Options, Report, Severity, VerifierKey, Verify, default_keys};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A log, its keys, and the directory elsewhere in which its pin lies.
pub(crate) struct World {
    pub(crate) place: TempDir,
    pub(crate) directory: PathBuf,
    pub(crate) pin: PathBuf,
    pub(crate) key: VerifierKey,
}

impl World {
    pub(crate) fn new() -> World {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("audit");
        let key = Init::default().origin("example.com/audit").create(&directory).unwrap().verifier_key;
        let elsewhere = place.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        World { pin: elsewhere.join("audit.pin"), place, directory, key }
    }

    pub(crate) fn options(&self) -> Options {
        Options::default().memory(64 << 20).writers(1).pin(&self.pin).retries(0)
    }

    pub(crate) fn open(&self) -> bulla::Result<Log> {
        Log::open(&self.directory, self.options())
    }

    /// Appends so many entries and closes the log.
    pub(crate) fn append(&self, entries: u64) {
        append(&self.open().unwrap(), entries);
    }

    /// The log and its keys as they are now.
    pub(crate) fn backup(&self) -> TempDir {
        let backup = tempfile::tempdir().unwrap();
        for from in [&self.directory, &default_keys(&self.directory)] {
            copy_into(from, &backup.path().join(from.file_name().unwrap()));
        }
        backup
    }

    /// Puts both back.
    pub(crate) fn put_back(&self, backup: &Path) {
        for to in [&self.directory, &default_keys(&self.directory)] {
            fs::remove_dir_all(to).unwrap();
            copy_into(&backup.join(to.file_name().unwrap()), to);
        }
    }

    pub(crate) fn pinned(&self) -> String {
        fs::read_to_string(&self.pin).unwrap()
    }

    pub(crate) fn checkpoint(&self) -> String {
        fs::read_to_string(self.directory.join("checkpoint")).unwrap()
    }

    /// A verification with all that is at hand.
    pub(crate) fn verify(&self) -> Verify {
        let keys = default_keys(&self.directory);
        let seal_key = fs::read_to_string(keys.join("seal.key")).unwrap();
        let state = fs::read(keys.join("seal.state")).unwrap();
        let verify = Verify::open(&self.directory).unwrap().key(self.key.clone());
        verify.seal_key(&seal_key).unwrap().seal_state(&state).unwrap()
    }

    /// All files of the log, its keys and its pin, but what is passing.
    pub(crate) fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        collect(self.place.path(), &mut files);
        files
    }

    /// That nothing was changed since.
    pub(crate) fn is_as(&self, before: &BTreeMap<PathBuf, Vec<u8>>, what: &str) {
        let now = self.files();
        let paths = now.keys().chain(before.keys());
        let changed = paths.filter(|path| now.get(*path) != before.get(*path)).collect::<BTreeSet<_>>();
        assert!(changed.is_empty(), "{what}: {changed:?}");
    }

    pub(crate) fn settings(&self) -> Options {
        bulla::keys::settings::load(&FileSystem::new(default_keys(&self.directory))).unwrap()
    }
}

/// Whether it is a lock, or what is left of looking into the vault.
fn passing(path: &Path) -> bool {
    let name = path.to_string_lossy();
    [".lock", ".db-shm", ".db-wal"].iter().any(|end| name.ends_with(end))
}

fn collect(directory: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for item in fs::read_dir(directory).unwrap() {
        let path = item.unwrap().path();
        match path.is_dir() {
            true => collect(&path, files),
            false if passing(&path) => {}
            false => drop(files.insert(path.clone(), fs::read(&path).unwrap_or_default())),
        }
    }
}

pub(crate) fn append(log: &Log, entries: u64) {
    let mut producer = log.producer().unwrap();
    for index in 0..entries {
        producer.append(&Entry::new("read", &format!("item {index}"))).unwrap();
        producer.flush().unwrap().durable().unwrap();
    }
}

/// The size that a checkpoint says.
pub(crate) fn size(note: &str) -> u64 {
    note.lines().nth(1).unwrap().parse().unwrap()
}

/// The kinds of the violations that were found.
pub(crate) fn violations(report: &Report) -> BTreeSet<&'static str> {
    let violations = report.findings.iter().filter(|finding| finding.severity == Severity::Violation);
    violations.map(|finding| finding.kind.name()).collect()
}

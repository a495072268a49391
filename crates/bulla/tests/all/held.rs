//! The directories of a log are held while it is open: what is put in their place is neither read nor written, and the log
//! fails. Nor is what a symbolic link below them leads to.

mod links;
mod replaced;

use bulla::store::FileSystem;
use bulla::{Durability, Init, Log, Options, Result, Verify};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// Not within a test's patience.
const NEVER: Duration = Duration::from_secs(3600);

/// A log `audit` with its keys in `audit.keys`, and nothing else.
struct Place {
    directory: TempDir,
}

impl Place {
    fn new(init: Init) -> Self {
        let place = Place { directory: tempfile::tempdir().unwrap() };
        init.create(place.path("audit")).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The log, to be stepped.
    fn open_stepped(&self, durability: Durability) -> Log {
        let store = |name| Arc::new(FileSystem::new(self.path(name)));
        let options = options().durability(durability);
        Log::open_stepped(store("audit"), store("audit.keys"), options, Default::default()).unwrap()
    }

    fn rename(&self, from: &str, to: &str) {
        fs::rename(self.path(from), self.path(to)).unwrap();
    }

    fn copy(&self, from: &str, to: &str) {
        let copied = Command::new("cp").arg("-a").args([self.path(from), self.path(to)]).status().unwrap();
        assert!(copied.success());
    }

    /// How many entries a log has, whose seals and tree hold.
    #[track_caller]
    fn verified(&self, name: &str, keys: &str) -> u64 {
        let seal_key = fs::read_to_string(self.path(keys).join("seal.key")).unwrap();
        let verify = Verify::open(self.path(name)).unwrap().seal_key(&seal_key).unwrap();
        let report = verify.run().unwrap();
        assert!(report.ok, "{name}: {:#?}", report.findings);
        report.entries
    }
}

/// No checkpoint comes by itself, and no failure is waited for.
fn options() -> Options {
    Options::default().checkpoint_interval(NEVER).retries(1).retry_delay(Duration::ZERO).writers(1)
}

/// All that is below a directory: files with their content, links with where they point to.
fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_symlink() {
                let target = fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes();
                found.insert(path, target);
            } else if path.is_dir() {
                found.insert(path.clone(), Vec::new());
                directories.push(path);
            } else {
                // A socket has none.
                let content = if path.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
                found.insert(path, content);
            }
        }
    }
    found
}

/// The message of an error that says that the environment failed.
#[track_caller]
fn unavailable<T: std::fmt::Debug>(result: Result<T>) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), bulla::ErrorKind::Unavailable, "{error}");
    error.to_string()
}

//! A medium that fails to give back what is on it: that says nothing of what was written, and is never told as if it did.

use crate::workshop::{Operation, Watch, Watched, Workshop};
use bulla::environment::Environment;
use bulla::{Entry, ErrorKind, Log, Options, Severity, Verify};
use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex};

/// What the kernel says of a sector that cannot be read.
const EIO: i32 = 5;

/// Tells which files are read, and fails to read one of them.
#[derive(Debug, Default)]
struct Unreadable {
    file: Option<String>,
    read: Mutex<BTreeSet<String>>,
}

impl Watch for Unreadable {
    fn before(&self, _: Operation, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn before_read(&self, path: &str) -> io::Result<()> {
        self.read.lock().unwrap().insert(path.to_owned());
        match self.file.as_deref() == Some(path) {
            true => Err(io::Error::from_raw_os_error(EIO)),
            false => Ok(()),
        }
    }
}

/// A log of some sessions.
fn workshop() -> Workshop {
    let workshop = Workshop::new();
    for session in 0..3 {
        let log = workshop.open(Options::default());
        let mut producer = log.producer().unwrap();
        for number in 0..10 {
            producer.append(&Entry::new("write", &format!("{session}/{number}"))).unwrap();
            producer.flush().unwrap().durable().unwrap();
        }
        drop(producer);
        log.close().unwrap();
    }
    workshop
}

fn open(workshop: &Workshop, watch: Arc<Unreadable>) -> bulla::Result<()> {
    let (store, keys) = workshop.watched(watch);
    Log::open_stores(store, keys, Options::default(), Environment::default())?.close()
}

fn verify(workshop: &Workshop, watch: Arc<Unreadable>) -> bulla::Result<()> {
    let report =
        Verify::open_store(Arc::new(Watched { store: Arc::new(workshop.store.clone()), watch }))?.run()?;
    let violations = report.findings.iter().filter(|finding| finding.severity == Severity::Violation);
    assert_eq!(violations.collect::<Vec<_>>(), Vec::<&bulla::Finding>::new());
    Ok(())
}

#[test]
fn a_file_that_cannot_be_read_is_no_violation_but_the_environments_failure() {
    for (what, run) in [("opening", open as fn(&_, _) -> _), ("verifying", verify)] {
        let workshop = workshop();
        let all = Arc::new(Unreadable::default());
        run(&workshop, all.clone()).unwrap();
        let files = all.read.lock().unwrap().clone();
        for part in ["bulla.toml", "checkpoint", "segments/", "tile/0/", "tile/entries/"] {
            assert!(files.iter().any(|file| file.starts_with(part)), "{what} reads no {part}: {files:?}");
        }
        let mut failed = 0;
        for file in &files {
            let watch = Arc::new(Unreadable { file: Some(file.clone()), ..Unreadable::default() });
            // Where it can do without, it does.
            if let Err(error) = run(&workshop, watch) {
                assert_eq!(error.kind(), ErrorKind::Unavailable, "{what}, {file}: {error}");
                assert_eq!(error.io_error().and_then(io::Error::raw_os_error), Some(EIO), "{what}: {error}");
                assert!(error.to_string().contains(file), "{what}, {file}: {error}");
                failed += 1;
            }
        }
        assert!(failed > 4, "{what}: {failed} of {files:?}");
        verify(&workshop, Arc::default()).unwrap();
    }
}

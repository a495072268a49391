//! What other processes ask of a log at work.

mod at_hand;
mod changes;
mod clients;
mod groups;

use bulla::control::Client;
use bulla::keys::recipients::IdentityFile;
use bulla::{Entry, Init, Log, Options, Query, Reader, Verify, default_keys};
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

/// A log that is read without a vault.
fn plain() -> Init {
    Init::default().erasure(false)
}

/// A log in a directory of its own.
struct Place {
    root: TempDir,
}

impl Place {
    fn new(init: Init) -> Self {
        let place = Place { root: tempfile::tempdir().unwrap() };
        init.create(place.audit()).unwrap();
        place
    }

    fn audit(&self) -> PathBuf {
        self.root.path().join("audit")
    }

    fn keys(&self) -> PathBuf {
        default_keys(&self.audit())
    }

    fn open(&self) -> Log {
        let log = Log::open(self.audit(), Options::default().memory(64 << 20).writers(2)).unwrap();
        assert!(log.control_failure().is_none(), "{:?}", log.control_failure());
        log
    }

    fn client(&self) -> Client {
        Client::connect(self.keys()).unwrap().unwrap()
    }

    fn reader(&self, identity: &str) -> Reader {
        Reader::open(self.audit()).unwrap().identity(Arc::new(IdentityFile::parse(identity).unwrap()))
    }

    /// The identity that the log was made with.
    fn owner(&self) -> String {
        std::fs::read_to_string(self.keys().join("identity.age")).unwrap()
    }

    /// How many of these entries an identity reads; `None` where it does not open some of them.
    fn read(&self, identity: &str, first: u64, last: u64) -> Option<u64> {
        let query = Query { first_entry: Some(first), last_entry: Some(last), ..Query::new() };
        let mut count = 0;
        let read = self.reader(identity).for_each(&query, |_, _| {
            count += 1;
            Ok(())
        });
        match read {
            Ok(_) => Some(count),
            Err(error) if error.kind() == bulla::ErrorKind::NoKey => None,
            Err(error) => panic!("{error}"),
        }
    }

    #[track_caller]
    fn verifies(&self) {
        let report = Verify::open(self.audit()).unwrap().run().unwrap();
        assert!(report.ok && report.findings.is_empty(), "{:?}", report.findings);
    }
}

/// Appends so many entries, and has them durable.
fn append(log: &Log, count: u64) {
    let mut producer = log.producer().unwrap();
    for number in 0..count {
        let (location, subject) = (format!("place {number}"), format!("user_{}", number % 50));
        producer.append(&Entry::new("read", &location).subject(&subject)).unwrap();
    }
    producer.flush().unwrap().durable().unwrap();
}

//! A log with erasure on the file system, and who orders what.

use crate::helpers::{hold_order, release_order};
use bulla::environment::Environment;
use bulla::event::Event;
use bulla::keys::recipients::IdentityFile;
use bulla::keys::signing::SigningKey;
use bulla::{
    Configure, Entry, ErasureOrder, HoldOrder, Init, Log, Options, Producer, Query, Reader, ReleaseOrder,
    Report, VerifierKey, Verify, default_keys,
};
use bulla_proof::LogId;
use bulla_proof::hash::{Hash, sha256};
use bulla_vault::{Access, Erasure, Settings, Vault};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) struct World {
    pub(crate) directory: PathBuf,
    pub(crate) key: VerifierKey,
    pub(crate) id: LogId,
    pub(crate) _place: tempfile::TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::made(Init::default().erasure(true))
    }

    pub(crate) fn made(init: Init) -> Self {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("audit");
        let created = init.create(&directory).unwrap();
        World { directory, key: created.verifier_key, id: created.id, _place: place }
    }

    /// The same log in another place, as it is now.
    pub(crate) fn copied(&self) -> Self {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("audit");
        copy_into(&self.directory, &directory);
        copy_into(&self.keys(), &default_keys(&directory));
        World { directory, key: self.key.clone(), id: self.id, _place: place }
    }

    /// What the events under the checkpoint say, with their frames.
    pub(crate) fn events(&self) -> Vec<(u64, Event)> {
        let size = bulla::info(&self.directory).unwrap().tree_size;
        let event = |frame: u64| {
            let proof = self.reader().prove_event(frame).ok()?;
            let event = Event::decode(proof.verify(None).unwrap().event()).unwrap();
            Some((frame, event))
        };
        (0..size).filter_map(event).collect()
    }

    pub(crate) fn keys(&self) -> PathBuf {
        default_keys(&self.directory)
    }

    /// Gives the vault a replica, and says where.
    pub(crate) fn with_replica(&self) -> PathBuf {
        let replica = self.directory.with_file_name("replica");
        std::fs::create_dir(&replica).unwrap();
        let path = replica.to_str().unwrap();
        Configure::default().set("vault_replicas", path).unwrap().apply(&self.directory).unwrap();
        replica
    }

    /// Whose the entry with this number is: somebody's of fifty, and of every tenth somebody's else too.
    pub(crate) fn subjects(number: u64) -> Vec<String> {
        let one = format!("user_{}", number % 50);
        match number % 10 {
            0 => vec![one, format!("user_{}", number / 10 % 50)],
            _ => vec![one],
        }
    }

    pub(crate) fn put(producer: &mut Producer, number: u64) {
        let location = format!("place {number}");
        let subjects = Self::subjects(number);
        let mut entry = Entry::new("read", &location);
        entry.subjects = Some(subjects.iter().map(String::as_str).collect());
        producer.append(&entry).unwrap();
    }

    pub(crate) fn append(&self, range: Range<u64>) {
        let log = Log::open(&self.directory, Options::default()).unwrap();
        let mut producer = log.producer().unwrap();
        range.for_each(|number| Self::put(&mut producer, number));
        drop(producer);
        log.close().unwrap();
    }

    pub(crate) fn order(&self, subjects: &[&str]) -> ErasureOrder {
        self.order_for(subjects, None)
    }

    pub(crate) fn order_for(&self, subjects: &[&str], reason: Option<&str>) -> ErasureOrder {
        let key = std::fs::read_to_string(self.keys().join("erasure.key")).unwrap();
        let key = SigningKey::parse(&key).unwrap();
        ErasureOrder::give(&key, self.id, subjects, reason, &Environment::default()).unwrap()
    }

    pub(crate) fn hold(&self, subject: &str, by: &str, reason: &str) -> HoldOrder {
        hold_order(&self.directory, subject, by, reason).unwrap()
    }

    pub(crate) fn release(&self, subject: &str, by: &str) -> ReleaseOrder {
        release_order(&self.directory, subject, by)
    }

    pub(crate) fn vault(&self, access: Access) -> Vault {
        Vault::open(&self.keys(), self.id, access, &Settings::default()).unwrap()
    }

    /// Begins to erase them, with what is written down in `erasure.pending`, if anything is.
    pub(crate) fn begin_erasure<'v>(&self, vault: &'v Vault, numbers: &[u64]) -> Erasure<'v> {
        let written = std::fs::read(self.keys().join("erasure.pending"));
        let written = written.map_or(Hash::ZERO, |bytes| sha256(&[&bytes]));
        vault.begin_written_erasure(numbers, written).unwrap().unwrap()
    }

    pub(crate) fn identity(&self) -> Arc<IdentityFile> {
        let identity = std::fs::read_to_string(self.keys().join("identity.age")).unwrap();
        Arc::new(IdentityFile::parse(&identity).unwrap())
    }

    /// Somebody's who cannot read this log.
    pub(crate) fn stranger() -> Arc<IdentityFile> {
        let (identity, _) = bulla::keys::identities::generate();
        Arc::new(IdentityFile::parse(&identity).unwrap())
    }

    pub(crate) fn reader(&self) -> Reader {
        self.reader_of(&self.directory)
    }

    /// A reader of a copy of the log, with the vault as it is now.
    pub(crate) fn reader_of(&self, directory: &Path) -> Reader {
        let vault = Arc::new(self.vault(Access::Read));
        Reader::open(directory).unwrap().key(self.key.clone()).identity(self.identity()).group_keys(vault)
    }

    /// The numbers of the entries that come out whole, and of those without their personal fields.
    pub(crate) fn entries(&self) -> (Vec<u64>, Vec<u64>) {
        let (mut whole, mut withheld) = (Vec::new(), Vec::new());
        let read = self.reader().for_each(&Query::new(), |number, entry| {
            let Some(location) = entry.location else {
                assert!(entry.subjects.is_none() && entry.payload.is_none());
                withheld.push(number);
                return Ok(());
            };
            assert_eq!(location, format!("place {number}").as_bytes());
            assert_eq!(entry.subjects.as_deref().unwrap_or_default(), Self::subjects(number));
            whole.push(number);
            Ok(())
        });
        assert_eq!(read.unwrap().entries, (whole.len() + withheld.len()) as u64);
        (whole, withheld)
    }

    pub(crate) fn verified(&self) -> Report {
        let vault = Arc::new(self.vault(Access::Read));
        let verify = Verify::open(&self.directory).unwrap().key(self.key.clone());
        verify.identity(self.identity()).group_keys(vault).run().unwrap()
    }
}

/// A copy of a directory, which is removed when dropped.
pub(crate) fn copy(directory: &Path) -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    copy_into(directory, place.path());
    place
}

pub(crate) fn copy_into(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for item in std::fs::read_dir(from).unwrap() {
        let item = item.unwrap();
        let to = to.join(item.file_name());
        let kind = item.file_type().unwrap();
        if kind.is_dir() {
            copy_into(&item.path(), &to);
        } else if kind.is_file() {
            std::fs::copy(item.path(), to).unwrap();
        }
    }
}

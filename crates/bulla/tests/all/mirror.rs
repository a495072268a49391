//! A mirror verifies at every instant, wherever it is stopped; it takes up what the log's key has signed, and nothing else; it never goes
//! back, and never to another history.

mod beside;
mod crash;
mod lines;
mod places;
mod source;
mod wire;

use crate::erase::world::copy_into;
use crate::pin::violations;
use crate::policy::{cosign, witness};
use bulla::mirror::{Mirror, Shipped};
use bulla::policy::Policy;
use bulla::store::{FileSystem, Store};
use bulla::{Configure, Entry, ErrorKind, Init, Log, Options, Report, VerifierKey, Verify, default_keys};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// A log at work that is to be mirrored, and what it was at earlier times.
pub(crate) struct Source {
    place: TempDir,
    pub(crate) directory: PathBuf,
    pub(crate) key: VerifierKey,
    /// What the log asks of witnesses.
    policy: Option<Policy>,
}

impl Source {
    pub(crate) fn new() -> Source {
        Source::made(Init::default(), None)
    }

    /// One that asks two witnesses, both of which have to cosign. Nobody is where it asks: see [`Source::cosign`].
    pub(crate) fn asking() -> Source {
        let lines = [1, 2].map(|seed| format!("witness W{seed} {} http://127.0.0.1:1\n", witness(seed).1));
        let text = format!("{}group G all W1 W2\nquorum G\n", lines.concat());
        Source::made(Init::default().witness_policy(&text), Some(text.parse().unwrap()))
    }

    fn made(init: Init, policy: Option<Policy>) -> Source {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("audit");
        let key = init.origin("example.com/audit").create(&directory).unwrap().verifier_key;
        Source { place, directory, key, policy }
    }

    /// Has both witnesses have cosigned the checkpoint, as the log's writer keeps that; in `checkpoint` too where `published`.
    pub(crate) fn cosign(&self, published: bool) {
        let bare = fs::read_to_string(self.directory.join("checkpoint")).unwrap();
        let cosigned = self.directory.join("cosigned");
        fs::create_dir_all(&cosigned).unwrap();
        for seed in [1, 2] {
            let name = format!("{:08x}", witness(seed).1.key_id());
            fs::write(cosigned.join(name), cosign(&bare, &[seed])).unwrap();
        }
        let all = cosign(&bare, &[1, 2]);
        fs::write(self.directory.join("checkpoint.witnessed"), &all).unwrap();
        if published {
            fs::write(self.directory.join("checkpoint"), &all).unwrap();
        }
    }

    fn options() -> Options {
        Options::default().memory(64 << 20).writers(1).checkpoint_interval(Duration::from_secs(3600))
    }

    pub(crate) fn open(&self) -> Log {
        Log::open(&self.directory, Self::options()).unwrap()
    }

    /// Appends so many entries, each in a frame of its own, and closes the log.
    pub(crate) fn append(&self, entries: u64) {
        let log = self.open();
        append(&log, entries);
        log.close().unwrap();
    }

    /// A copy of the log as it is now, under a name of its own; with its keys, so that it can be written to.
    pub(crate) fn copied(&self, name: &str) -> PathBuf {
        let to = self.place.path().join(name);
        copy_into(&self.directory, &to);
        copy_into(&default_keys(&self.directory), &default_keys(&to));
        to
    }

    /// The log as a machine finds it that loses its power while entries follow the checkpoint; opened again, and gone on with.
    fn crash_and_recover(&mut self) {
        let log = self.open();
        append(&log, 3);
        log.flush().unwrap();
        append(&log, 4);
        let crashed = self.copied("crashed");
        drop(log);
        self.directory = crashed;
        let log = self.open();
        assert_eq!(log.recovery().frames, 4, "they are adopted into another segment");
        append(&log, 2);
        log.close().unwrap();
    }

    /// A log with all that a mirror may meet: several segments and epochs, one that begins with a copy, bytes that count for nothing,
    /// a changed `[log]`, and a tree of more than one tile.
    pub(crate) fn eventful() -> (Source, PathBuf) {
        Source::new().become_eventful()
    }

    /// The same of a log whose witnesses have cosigned the checkpoint of the earlier time, which says so itself and has no other file of it,
    /// and one between that and the newest.
    pub(crate) fn witnessed() -> (Source, PathBuf) {
        Source::asking().become_eventful()
    }

    fn become_eventful(mut self) -> (Source, PathBuf) {
        self.append(5);
        self.crash_and_recover();
        self.append(220);
        if self.policy.is_some() {
            self.cosign(true);
        }
        let earlier = self.copied("earlier");
        if self.policy.is_some() {
            fs::remove_file(earlier.join("checkpoint.witnessed")).unwrap();
            fs::remove_dir_all(earlier.join("cosigned")).unwrap();
        }
        let hour = Some(Duration::from_secs(3600));
        Configure::default().heartbeat(hour).unwrap().apply(&self.directory).unwrap();
        self.append(20);
        if self.policy.is_some() {
            self.cosign(false);
        }
        self.crash_and_recover_again();
        (self, earlier)
    }

    fn crash_and_recover_again(&mut self) {
        let log = self.open();
        append(&log, 4);
        let crashed = self.copied("crashed again");
        drop(log);
        self.directory = crashed;
        self.append(1);
    }

    pub(crate) fn verify(&self, directory: &Path) -> Verify {
        Verify::open(directory).unwrap().key(self.key.clone())
    }

    /// With the seal key and the state of the writing host, too.
    pub(crate) fn verify_seals(&self, directory: &Path) -> Verify {
        let keys = default_keys(&self.directory);
        let seal_key = fs::read_to_string(keys.join("seal.key")).unwrap();
        let state = fs::read(keys.join("seal.state")).unwrap();
        self.verify(directory).seal_key(&seal_key).unwrap().seal_state(&state).unwrap()
    }

    pub(crate) fn mirror(&self, to: &Path) -> bulla::Result<Mirror> {
        Mirror::open(&self.directory, to, Some(self.key.clone()))
    }

    /// Ships what there is.
    pub(crate) fn ship(&self, to: &Path) -> bulla::Result<Shipped> {
        self.mirror(to)?.poll(|_| {})
    }
}

pub(crate) fn append(log: &Log, entries: u64) {
    let mut producer = log.producer().unwrap();
    for index in 0..entries {
        producer.append(&Entry::new("read", &format!("item {index}")).subject("user_1")).unwrap();
        producer.flush().unwrap().durable().unwrap();
    }
}

/// That a log verifies without any violation.
pub(crate) fn is_sound(report: &Report, what: &str) {
    assert!(report.ok && report.anchored, "{what}: {:?}", report.findings);
}

/// That two directories have the same checkpoint and configuration, and the same head in COSE.
fn are_of_one_time(one: &Path, other: &Path) {
    for name in ["checkpoint", "bulla.toml", "checkpoint.cose"] {
        assert_eq!(fs::read(one.join(name)).unwrap(), fs::read(other.join(name)).unwrap(), "{name}");
    }
}

#[test]
fn a_mirror_is_the_log_and_verifies_as_it_does() {
    let (source, _) = Source::eventful();
    let place = tempfile::tempdir().unwrap();
    let to = place.path().join("copy");
    let shipped = source.ship(&to).unwrap();
    let (own, copy) = (source.verify_seals(&source.directory), source.verify_seals(&to).strict(true));
    let (own, copy) = (own.run().unwrap(), copy.run().unwrap());
    is_sound(&copy, "the mirror");
    assert!(copy.findings.is_empty(), "it has nothing that counts for nothing: {:?}", copy.findings);
    assert!(own.findings.iter().any(|finding| finding.kind.name() == "abandoned"), "{:?}", own.findings);
    assert_eq!((copy.tree_size, copy.entries, copy.root), (own.tree_size, own.entries, own.root));
    assert_eq!((shipped.frames, shipped.entries), (own.tree_size, own.entries));
    assert_eq!((shipped.signed_time, shipped.behind.frames), (own.signed_time, 0));
    are_of_one_time(&source.directory, &to);
    assert!(own.tree_size > 256, "one tile is full");
    let again = source.ship(&to).unwrap();
    assert!(!again.advanced, "there is nothing new");
    assert_eq!(
        (again.frames, again.entries, again.signed_time),
        (shipped.frames, shipped.entries, shipped.signed_time)
    );
}

#[test]
fn each_checkpoint_of_a_log_at_work_arrives_and_verifies() {
    let source = Source::new();
    let place = tempfile::tempdir().unwrap();
    let to = place.path().join("copy");
    let mut mirror = source.mirror(&to).unwrap();
    assert!(mirror.poll(|_| {}).unwrap().advanced, "an empty log is one, too");
    is_sound(&source.verify(&to).run().unwrap(), "an empty log");
    let log = source.open();
    for round in 0..40 {
        append(&log, round % 11);
        if round % 13 == 5 {
            log.rotate().unwrap();
        }
        log.flush().unwrap();
        let mut behind = Vec::new();
        let shipped = mirror.poll(|shipped| behind.push(shipped.behind)).unwrap();
        if shipped.advanced {
            let (first, last) = (behind[0], behind[behind.len() - 1]);
            assert!(
                first.frames > 0 && first.entries == round % 11 && first.bytes > first.frames * 200,
                "{first:?}"
            );
            assert_eq!((last.frames, last.entries, last.bytes), (0, 0, 0));
        }
        are_of_one_time(&source.directory, &to);
        let report = source.verify(&to).run().unwrap();
        is_sound(&report, "while it is mirrored");
        assert!(report.findings.is_empty(), "{:?}", report.findings);
    }
    log.close().unwrap();
    mirror.poll(|_| {}).unwrap();
    drop(mirror);
    let report = source.verify_seals(&to).strict(true).run().unwrap();
    assert!(report.ok && report.findings.is_empty(), "{:?}", report.findings);
}

#[test]
fn what_no_checkpoint_covers_is_not_shipped() {
    let source = Source::new();
    let place = tempfile::tempdir().unwrap();
    let to = place.path().join("copy");
    let log = source.open();
    append(&log, 3);
    log.flush().unwrap();
    append(&log, 4);
    source.ship(&to).unwrap();
    let report = source.verify(&to).strict(true).run().unwrap();
    assert!(report.ok && report.findings.is_empty(), "{:?}", report.findings);
    assert_eq!(report.entries, 3);
    drop(log);
}

#[test]
fn keys_vault_and_index_stay_where_they_are() {
    let (source, _) = Source::eventful();
    assert!(source.directory.join("index").is_dir());
    let place = tempfile::tempdir().unwrap();
    let to = place.path().join("copy");
    source.ship(&to).unwrap();
    let mut names = fs::read_dir(&to)
        .unwrap()
        .map(|item| item.unwrap().file_name().into_string().unwrap())
        .collect::<Vec<_>>();
    names.sort();
    assert_eq!(names, ["LOCK", "bulla.toml", "checkpoint", "checkpoint.cose", "segments", "tile"]);
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1, "nothing is written beside it");
}

#[test]
fn a_mirror_of_a_mirror_is_one() {
    let (source, _) = Source::eventful();
    let place = tempfile::tempdir().unwrap();
    let (first, second) = (place.path().join("first"), place.path().join("second"));
    source.ship(&first).unwrap();
    Mirror::open(&first, &second, None).unwrap().poll(|_| {}).unwrap();
    is_sound(&source.verify_seals(&second).strict(true).run().unwrap(), "the second");
    are_of_one_time(&source.directory, &second);
}

#[test]
fn a_mirror_with_the_keys_is_gone_on_with_as_the_log() {
    let (source, _) = Source::eventful();
    let place = tempfile::tempdir().unwrap();
    let to = place.path().join("copy");
    source.ship(&to).unwrap();
    copy_into(&default_keys(&source.directory), &default_keys(&to));
    let log = Log::open(&to, Source::options()).unwrap();
    append(&log, 5);
    log.close().unwrap();
    is_sound(&source.verify(&to).run().unwrap(), "gone on with");
    // The mirror of the log that was left behind is not taken back by it.
    let refused = source.ship(&to).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Tampered);
    assert!(refused.to_string().contains("violation pin-mismatch"), "{refused}");
}

#[test]
fn settings_follow_without_a_new_checkpoint() {
    let source = Source::new();
    source.append(2);
    let place = tempfile::tempdir().unwrap();
    let to = place.path().join("copy");
    let mut mirror = source.mirror(&to).unwrap();
    mirror.poll(|_| {}).unwrap();
    Configure::default().set("compression", "9").unwrap().apply(&source.directory).unwrap();
    assert!(!mirror.poll(|_| {}).unwrap().advanced);
    are_of_one_time(&source.directory, &to);
    is_sound(&source.verify(&to).run().unwrap(), "with other settings");
}

#[test]
fn signatures_of_others_follow_and_are_not_given_up() {
    let source = Source::new();
    source.append(2);
    let place = tempfile::tempdir().unwrap();
    let to = place.path().join("copy");
    let mut mirror = source.mirror(&to).unwrap();
    mirror.poll(|_| {}).unwrap();
    let (own, copy) = (source.directory.join("checkpoint"), to.join("checkpoint"));
    let alone = fs::read_to_string(&own).unwrap();
    // Of a witness, whose key nobody here knows.
    let cosigned = format!("{alone}\u{2014} witness.example.com/w {}=\n", "A".repeat(95));
    fs::write(&own, &cosigned).unwrap();
    assert!(!mirror.poll(|_| {}).unwrap().advanced);
    assert_eq!(fs::read_to_string(&copy).unwrap(), cosigned);
    is_sound(&source.verify(&to).run().unwrap(), "with another signature");
    fs::write(&own, &alone).unwrap();
    mirror.poll(|_| {}).unwrap();
    assert_eq!(fs::read_to_string(&copy).unwrap(), cosigned);
    drop(mirror);
    assert!(!source.ship(&to).unwrap().advanced, "nor by the next one");
    assert_eq!(fs::read_to_string(&copy).unwrap(), cosigned);
}

/// A store of the file system.
pub(crate) fn files(directory: &Path) -> Arc<dyn Store> {
    Arc::new(FileSystem::new(directory))
}

/// The violations that a verification of `directory` finds.
pub(crate) fn found(source: &Source, directory: &Path) -> Vec<&'static str> {
    violations(&source.verify(directory).run().unwrap()).into_iter().collect()
}

//! A policy says which logs are believed, and who has to have seen how much of them: the newest checkpoint, or one that is kept
//! because its witnesses have cosigned it. What follows that is signed and not witnessed.

use bulla::policy::Policy;
use bulla::{Entry, FindingKind, Init, Log, Options, Query, Reader, Report, Severity, Verify};
use bulla_proof::note::NoteSignature;
use bulla_proof::{CosignerKey, SignedNote, VerifierKey};
use ed25519_dalek::{Signer as _, SigningKey};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const KEPT: &str = "checkpoint.witnessed";

struct World {
    place: tempfile::TempDir,
    directory: PathBuf,
    key: VerifierKey,
}

impl World {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("audit");
        let made = Init::default().origin("example.com/audit").erasure(false).create(&directory).unwrap();
        World { place, directory, key: made.verifier_key }
    }

    /// Appends, each entry to a block of its own.
    fn append(&self, entries: u64) {
        append(&Log::open(&self.directory, Options::default()).unwrap(), entries);
    }

    /// Two witnesses, both of which the quorum needs.
    fn policy(&self) -> Policy {
        let lines = [1, 2].map(|seed| format!("witness W{seed} {}\n", witness(seed).1));
        format!("log {}\n{}group G all W1 W2\nquorum G\n", self.key, lines.concat()).parse().unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// The checkpoint, cosigned by those of the witnesses.
    fn cosigned(&self, seeds: &[u8]) -> String {
        cosign(&fs::read_to_string(self.path("checkpoint")).unwrap(), seeds)
    }

    fn verify(&self, policy: &Policy) -> Report {
        Verify::open(&self.directory).unwrap().policy(policy.clone()).run().unwrap()
    }
}

fn append(log: &Log, entries: u64) {
    let mut producer = log.producer().unwrap();
    for number in 0..entries {
        producer.append(&Entry::new("read", format!("key{number}").as_str())).unwrap();
        producer.flush().unwrap().durable().unwrap();
    }
    log.flush().unwrap();
}

pub(crate) fn witness(seed: u8) -> (SigningKey, CosignerKey) {
    let secret = SigningKey::from_bytes(&[seed; 32]);
    let key = CosignerKey::ed25519(format!("w{seed}.example"), secret.verifying_key().to_bytes()).unwrap();
    (secret, key)
}

pub(crate) fn cosign(note: &str, seeds: &[u8]) -> String {
    let mut note = note.to_owned();
    for seed in seeds {
        let (secret, key) = witness(*seed);
        let parsed = SignedNote::parse(note.as_bytes()).unwrap();
        let time = 1_700_000_000 + u64::from(*seed);
        let line =
            key.signature_line(time, &secret.sign(&key.message(parsed.text, time).unwrap()).to_bytes());
        let mut parsed = parsed.clone();
        NoteSignature::parse_lines(&line).unwrap().into_iter().for_each(|line| parsed.keep(line).unwrap());
        note = parsed.to_string();
    }
    note
}

fn kinds(report: &Report, severity: Severity) -> Vec<FindingKind> {
    let of = report.findings.iter().filter(|finding| finding.severity == severity);
    of.map(|finding| finding.kind).collect()
}

fn violations(report: &Report) -> Vec<FindingKind> {
    kinds(report, Severity::Violation)
}

#[test]
fn a_checkpoint_is_believed_once_its_witnesses_have_cosigned_it() {
    let world = World::new();
    world.append(3);
    let policy = world.policy();
    let report = world.verify(&policy);
    assert_eq!(violations(&report), [FindingKind::Unwitnessed]);
    assert!(!report.ok && report.anchored && report.witnessed.is_none());
    let unsigned = world.cosigned(&[]);
    for seeds in [&[1][..], &[2], &[3], &[1, 3]] {
        fs::write(world.path("checkpoint"), cosign(&unsigned, seeds)).unwrap();
        assert_eq!(violations(&world.verify(&policy)), [FindingKind::Unwitnessed], "{seeds:?}");
    }
    let detail = |report: &Report| report.findings[0].detail.clone();
    fs::write(world.path("checkpoint"), cosign(&unsigned, &[1, 2])).unwrap();
    let report = world.verify(&policy);
    assert!(report.ok && report.anchored, "{:?}", report.findings);
    let witnessed = report.witnessed.unwrap();
    assert_eq!(witnessed.frames, report.tree_size);
    let seen: Vec<_> = witnessed.witnesses.iter().map(|seen| (&seen.name[..], seen.time)).collect();
    assert_eq!(seen, [("W1", Some(1_700_000_001)), ("W2", Some(1_700_000_002))]);

    // The lines of witnesses change nothing for whoever goes by the key, and none for whoever opens the log.
    assert!(Verify::open(&world.directory).unwrap().key(world.key.clone()).run().unwrap().ok);
    world.append(1);
    let report = world.verify(&policy);
    assert_eq!(violations(&report), [FindingKind::Unwitnessed]);
    assert!(detail(&report).contains("2 of the 2 of `G`"), "{}", detail(&report));
}

#[test]
fn what_follows_the_kept_checkpoint_is_not_witnessed_yet() {
    let world = World::new();
    world.append(3);
    fs::write(world.path(KEPT), world.cosigned(&[1, 2])).unwrap();
    let policy = world.policy();
    let frames = world.verify(&policy).tree_size;
    world.append(2);
    let report = world.verify(&policy);
    assert!(report.ok, "{:?}", report.findings);
    assert_eq!(report.witnessed.as_ref().unwrap().frames, frames);
    let tail = &report.findings[0];
    assert_eq!((tail.kind, tail.severity), (FindingKind::UnwitnessedTail, Severity::Notice));
    assert_eq!((tail.frame, tail.last_frame), (Some(frames), Some(report.tree_size - 1)));
    let strict = Verify::open(&world.directory).unwrap().policy(policy.clone()).strict(true).run().unwrap();
    assert_eq!(violations(&strict), [FindingKind::Unwitnessed]);

    // It counts only where it is what it has to be, and says why not.
    let whole = fs::read_to_string(world.path(KEPT)).unwrap();
    let without_log = whole.replace("\u{2014} example.com/audit", "\u{2014} example.com/other");
    for kept in [&whole.replace("w2.example", "w3.example"), &without_log, "no note", ""] {
        fs::write(world.path(KEPT), kept).unwrap();
        assert_eq!(violations(&world.verify(&policy)), [FindingKind::Unwitnessed], "{kept}");
    }
    fs::write(world.path(KEPT), vec![b'x'; 2 << 20]).unwrap();
    assert_eq!(violations(&world.verify(&policy)), [FindingKind::Unwitnessed]);
}

/// Whoever has the log's key writes a second history: the witnesses have seen the first.
#[test]
fn another_history_than_the_one_that_was_witnessed_is_found() {
    let world = World::new();
    let (earlier, of_keys) = (world.place.path().join("earlier"), world.place.path().join("earlier.keys"));
    let keys = bulla::default_keys(&world.directory);
    copy(&world.directory, &earlier);
    copy(&keys, &of_keys);
    world.append(3);
    let kept = world.cosigned(&[1, 2]);
    let report = world.verify(&world.policy());
    assert_eq!(violations(&report), [FindingKind::Unwitnessed]);

    fs::remove_dir_all(&world.directory).unwrap();
    fs::remove_dir_all(&keys).unwrap();
    copy(&earlier, &world.directory);
    copy(&of_keys, &keys);
    world.append(4);
    fs::write(world.path(KEPT), &kept).unwrap();
    let report = world.verify(&world.policy());
    assert_eq!(violations(&report), [FindingKind::WitnessMismatch]);
    let reader = Reader::open(&world.directory).unwrap().policy(world.policy());
    let error = reader.identity(identity(&world)).follow(&Query::new()).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("the witnesses have seen"), "{error}");

    // And where the log was put back to an earlier time.
    fs::remove_dir_all(&world.directory).unwrap();
    copy(&earlier, &world.directory);
    fs::write(world.path(KEPT), &kept).unwrap();
    assert_eq!(violations(&world.verify(&world.policy())), [FindingKind::WitnessMismatch]);
    // With what its checkpoint was cosigned with then, too.
    fs::write(world.path("checkpoint"), world.cosigned(&[1, 2])).unwrap();
    assert_eq!(violations(&world.verify(&world.policy())), [FindingKind::WitnessMismatch]);
    fs::remove_file(world.path(KEPT)).unwrap();
    assert!(world.verify(&world.policy()).ok);
}

/// Whoever puts log and keys back to an earlier time, and leaves what was witnessed since, has a log that nobody can open for writing.
#[test]
fn a_log_that_does_not_go_on_from_what_was_witnessed_is_not_opened_for_writing() {
    let world = World::new();
    world.append(2);
    let (earlier, of_keys) = (world.place.path().join("earlier"), world.place.path().join("earlier.keys"));
    let keys = bulla::default_keys(&world.directory);
    copy(&world.directory, &earlier);
    copy(&keys, &of_keys);
    let put_back = || {
        fs::remove_dir_all(&world.directory).unwrap();
        fs::remove_dir_all(&keys).unwrap();
        copy(&earlier, &world.directory);
        copy(&of_keys, &keys);
    };
    let open = || Log::open(&world.directory, Options::default()).map(|log| log.close().unwrap());
    let refused = |why: &str| {
        let error = open().unwrap_err();
        assert_eq!(error.kind(), bulla::ErrorKind::Tampered, "{error}");
        assert!(error.to_string().contains(KEPT) && error.to_string().contains(why), "{error}");
    };
    world.append(3);
    let kept = world.cosigned(&[1, 2]);
    fs::write(world.path(KEPT), &kept).unwrap();
    open().unwrap();

    put_back();
    fs::write(world.path(KEPT), &kept).unwrap();
    refused("an older copy of the log was put in its place");
    // That the log's key has signed it is what counts; who cosigned it, nobody has to know here.
    fs::write(world.path(KEPT), kept.replace("w2.example", "w3.example")).unwrap();
    refused("an older copy of the log was put in its place");
    // What that key has not signed says nothing.
    for other in [&kept.replace("\u{2014} example.com/audit", "\u{2014} example.com/other"), "no note", ""] {
        put_back();
        fs::write(world.path(KEPT), other).unwrap();
        open().unwrap();
    }

    // A second history that is longer by now.
    put_back();
    world.append(9);
    open().unwrap();
    fs::write(world.path(KEPT), &kept).unwrap();
    refused("the log was rewritten since, or has a second history");
    assert!(
        fs::read_to_string(world.path(KEPT)).unwrap() == kept,
        "nothing is written to a log that is refused"
    );
}

/// What a writer that was killed has not signed counts, too: it was witnessed before.
#[test]
fn frames_that_are_adopted_are_compared_with_what_was_witnessed() {
    let world = World::new();
    world.append(2);
    let keys = bulla::default_keys(&world.directory);
    let earlier = ["checkpoint", "seal.state"]
        .map(|name| fs::read(world.path(name)).or_else(|_| fs::read(keys.join(name))).unwrap());
    world.append(3);
    let kept = world.cosigned(&[1, 2]);
    fs::write(world.path(KEPT), &kept).unwrap();
    fs::write(world.path("checkpoint"), &earlier[0]).unwrap();
    fs::write(keys.join("seal.state"), &earlier[1]).unwrap();
    let log = Log::open(&world.directory, Options::default()).unwrap();
    assert!(log.recovery().frames > 0);
    log.close().unwrap();
    let report = world.verify(&world.policy());
    assert!(report.ok, "{:?}", report.findings);
}

#[test]
fn a_witness_whose_signature_does_not_hold_is_told() {
    let world = World::new();
    world.append(1);
    let sound = world.cosigned(&[1, 2]);
    let (_, key) = witness(2);
    let lie = key.signature_line(5, &[7; 64]);
    let text = sound.rsplit_once("\n\n").unwrap().0;
    let log_line = sound.lines().find(|line| line.starts_with("\u{2014} example.com/audit")).unwrap();
    fs::write(world.path("checkpoint"), format!("{text}\n\n{log_line}\n{lie}")).unwrap();
    let report = world.verify(&world.policy());
    assert_eq!(violations(&report), [FindingKind::CosignatureInvalid]);
    assert!(report.findings[0].detail.contains("`W2`"), "{}", report.findings[0].detail);
}

#[test]
fn a_policy_of_other_logs_does_not_believe_this_one() {
    let (world, other) = (World::new(), World::new());
    world.append(1);
    let of_other: Policy = format!("log {}\nquorum none\n", other.key).parse().unwrap();
    let report = world.verify(&of_other);
    assert_eq!(violations(&report), [FindingKind::KeyMismatch]);
    assert!(!report.anchored);
    let both: Policy = format!("log {}\nlog {}\nquorum none\n", other.key, world.key).parse().unwrap();
    let report = world.verify(&both);
    assert!(report.ok && report.anchored);
    // One that names no log does not say whose it is.
    let none: Policy = "quorum none\n".parse().unwrap();
    let report = world.verify(&none);
    assert!(report.ok && !report.anchored);
}

#[test]
fn who_follows_by_a_policy_takes_for_pending_what_is_not_witnessed() {
    let world = World::new();
    let log = Log::open(&world.directory, Options::default()).unwrap();
    append(&log, 2);
    fs::write(world.path(KEPT), world.cosigned(&[1, 2])).unwrap();
    append(&log, 1);
    let reader = Reader::open(&world.directory).unwrap().identity(identity(&world)).policy(world.policy());
    let mut follow = reader.follow(&Query::new()).unwrap();
    let mut poll = || {
        let mut seen = Vec::new();
        let polled = follow.poll(|followed| {
            seen.push((followed.number, followed.pending));
            Ok(())
        });
        (seen, polled.unwrap().covered)
    };
    assert_eq!(poll(), (vec![(0, false), (1, false), (2, true)], 2));
    append(&log, 1);
    assert_eq!(poll(), (vec![(3, true)], 2));
    fs::write(world.path(KEPT), world.cosigned(&[1, 2])).unwrap();
    assert_eq!(poll(), (vec![], 4));

    // And whoever wants nothing that is not.
    append(&log, 1);
    let mut only = reader.follow(&Query::new()).unwrap().signed_only(true);
    let mut seen = Vec::new();
    only.poll(|followed| {
        seen.push((followed.number, followed.pending));
        Ok(())
    })
    .unwrap();
    assert_eq!(seen, [0, 1, 2, 3].map(|number| (number, false)));
}

#[test]
fn the_kept_checkpoint_is_no_file_that_nobody_knows() {
    let world = World::new();
    world.append(1);
    fs::write(world.path(KEPT), world.cosigned(&[1])).unwrap();
    let report = Verify::open(&world.directory).unwrap().run().unwrap();
    assert_eq!(report.findings, []);
}

fn identity(world: &World) -> Arc<bulla::keys::recipients::IdentityFile> {
    let path = bulla::default_keys(&world.directory).join("identity.age");
    let text = fs::read_to_string(path).unwrap();
    Arc::new(bulla::keys::recipients::IdentityFile::parse(&text).unwrap())
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for item in fs::read_dir(from).unwrap() {
        let item = item.unwrap();
        let to = to.join(item.file_name());
        if item.file_type().unwrap().is_dir() {
            copy(&item.path(), &to);
        } else {
            fs::copy(item.path(), to).unwrap();
        }
    }
}

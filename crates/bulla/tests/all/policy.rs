//! A policy says which logs are believed, and who has to have seen how much of them: the newest checkpoint, or one that is kept
//! because its witnesses have cosigned it. What follows that is signed and not witnessed.

mod second_history;

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
    cosign_at(note, seeds, 1_700_000_000)
}

/// Each of them at its number behind `time`.
pub(crate) fn cosign_at(note: &str, seeds: &[u8], time: u64) -> String {
    let mut note = note.to_owned();
    for seed in seeds {
        let (secret, key) = witness(*seed);
        let parsed = SignedNote::parse(note.as_bytes()).unwrap();
        let time = time + u64::from(*seed);
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
    assert_eq!(witnessed.frames, Some(report.tree_size));
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
    assert_eq!(report.witnessed.as_ref().unwrap().frames, Some(frames));
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

/// A proof is made by these files together, so what is found of the log goes by them as well.
#[test]
fn what_each_witness_has_cosigned_counts_beside_the_kept_checkpoint() {
    let world = World::new();
    world.append(3);
    let policy = world.policy();
    fs::write(world.path(KEPT), world.cosigned(&[1, 2])).unwrap();
    let older = world.verify(&policy).tree_size;
    world.append(2);
    fs::create_dir_all(world.path("cosigned")).unwrap();
    let own = |seed: u8| world.path(&format!("cosigned/{:08x}", witness(seed).1.key_id()));
    let unsigned = world.cosigned(&[]);
    let frames = || world.verify(&policy).witnessed.unwrap().frames;
    fs::write(own(1), world.cosigned(&[1])).unwrap();
    assert_eq!(frames(), Some(older));
    // Each has a file of its own, or its line is in the newest one; the kept one is older, or is not there.
    for (lines, files) in [(&[][..], &[1, 2][..]), (&[1], &[2]), (&[2], &[1])] {
        for seed in [1, 2] {
            fs::remove_file(own(seed)).ok();
        }
        files.iter().for_each(|&seed| fs::write(own(seed), world.cosigned(&[seed])).unwrap());
        let newest = cosign(&unsigned, lines);
        for has_kept in [true, false] {
            if !has_kept {
                fs::rename(world.path(KEPT), world.place.path().join("kept")).unwrap();
            }
            fs::write(world.path("checkpoint"), &newest).unwrap();
            let report = world.verify(&policy);
            assert!(report.findings.is_empty(), "{lines:?}, {has_kept}: {:?}", report.findings);
            assert_eq!(report.witnessed.unwrap().frames, Some(report.tree_size), "{lines:?}, {has_kept}");
            let reader = Reader::open(&world.directory).unwrap().policy(policy.clone());
            let proven = reader.identity(identity(&world)).prove(&Query::new()).unwrap();
            assert_eq!(proven.tree_size, report.tree_size, "{lines:?}, {has_kept}");
            if !has_kept {
                fs::rename(world.place.path().join("kept"), world.path(KEPT)).unwrap();
            }
            fs::write(world.path("checkpoint"), &unsigned).unwrap();
        }
    }
    // What is no file there is none.
    fs::remove_file(own(1)).unwrap();
    fs::create_dir(own(1)).unwrap();
    assert_eq!(frames(), Some(older));
}

/// As a backup beside a writer is made: the checkpoint was copied first, and the rest after more of it was witnessed.
#[test]
fn of_a_copy_with_an_older_checkpoint_than_was_witnessed_the_checkpoint_counts_where_the_frames_go_on_from_it()
 {
    let world = World::new();
    let (earlier, of_keys) = (world.place.path().join("earlier"), world.place.path().join("earlier.keys"));
    let keys = bulla::default_keys(&world.directory);
    world.append(1);
    copy(&world.directory, &earlier);
    copy(&keys, &of_keys);
    world.append(3);
    let held = fs::read(world.path("checkpoint")).unwrap();
    let frames = world.verify(&"quorum none\n".parse().unwrap()).tree_size;
    world.append(4);
    let kept = world.cosigned(&[1, 2]);
    let witnessed = world.verify(&"quorum none\n".parse().unwrap()).tree_size;
    fs::write(world.path(KEPT), &kept).unwrap();
    fs::write(world.path("checkpoint"), &held).unwrap();
    let report = world.verify(&world.policy());
    assert!(report.ok, "{:?}", report.findings);
    assert_eq!((report.tree_size, report.witnessed.unwrap().frames), (frames, Some(witnessed)));
    let reader = || Reader::open(&world.directory).unwrap().policy(world.policy()).identity(identity(&world));
    let mut seen = Vec::new();
    let at_hand = reader();
    let mut follow = at_hand.follow(&Query::new()).unwrap().signed_only(true);
    follow
        .poll(|followed| {
            seen.push(followed.number);
            Ok(())
        })
        .unwrap();
    assert_eq!(seen, [0, 1, 2, 3], "what the checkpoint covers, and no more");

    // Where the log ends before, or somebody's checkpoint of another history is put beside it, it does not.
    fs::remove_dir_all(&world.directory).unwrap();
    fs::remove_dir_all(&keys).unwrap();
    copy(&earlier, &world.directory);
    copy(&of_keys, &keys);
    fs::write(world.path(KEPT), &kept).unwrap();
    let report = world.verify(&world.policy());
    assert_eq!(violations(&report), [FindingKind::WitnessMismatch]);
    let detail =
        &report.findings.iter().find(|finding| finding.severity == Severity::Violation).unwrap().detail;
    assert!(detail.contains("put back to an earlier time"), "{detail}");
    assert!(reader().follow(&Query::new()).is_err());
    fs::remove_file(world.path(KEPT)).unwrap();
    world.append(2);
    let of_other = fs::read(world.path("checkpoint")).unwrap();
    world.append(9);
    fs::write(world.path("checkpoint"), of_other).unwrap();
    fs::write(world.path(KEPT), &kept).unwrap();
    assert_eq!(violations(&world.verify(&world.policy())), [FindingKind::WitnessMismatch]);
    assert!(reader().follow(&Query::new()).is_err());
}

/// What nobody has cosigned moves no pin of an auditor, and is not new for ever.
#[test]
fn a_pin_goes_as_far_as_the_witnesses_and_their_silence_is_told() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("audit");
    let init = Init::default().origin("example.com/audit").erasure(false);
    let init = init.heartbeat(std::time::Duration::from_secs(60));
    let key = init.create(&directory).unwrap().verifier_key;
    let world = World { place, directory, key };
    world.append(2);
    fs::write(world.path(KEPT), world.cosigned(&[1, 2])).unwrap();
    let (policy, pin) = (world.policy(), world.place.path().join("audit.pin"));
    let frames = world.verify(&policy).tree_size;
    world.append(3);
    let verify = || Verify::open(&world.directory).unwrap().policy(policy.clone()).pin(&pin);
    for _ in 0..2 {
        let report = verify().run().unwrap();
        assert!(report.ok, "{:?}", report.findings);
        assert_eq!(report.pin.unwrap().frames, Some(frames));
    }
    // By the log's own word it would go further.
    let report = Verify::open(&world.directory).unwrap().key(world.key.clone()).pin(&pin).run().unwrap();
    assert_eq!(report.pin.unwrap().frames, Some(report.tree_size));
    // And it never goes back.
    assert_eq!(verify().run().unwrap().pin.unwrap().frames, Some(report.tree_size));

    let hour = std::time::Duration::from_secs(3600);
    let stale = verify().newer_than(hour).run().unwrap();
    assert_eq!(violations(&stale), [FindingKind::Stale]);
    let detail = &stale.findings.iter().find(|finding| finding.kind == FindingKind::Stale).unwrap().detail;
    assert!(detail.contains("the policy asks for"), "{detail}");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let note = world.cosigned(&[]);
    for (time, ok) in [(now - 60, true), (now - 2 * 3600, false), (now + 2 * 3600, false)] {
        fs::write(world.path(KEPT), cosign_at(&note, &[1, 2], time)).unwrap();
        assert_eq!(verify().newer_than(hour).run().unwrap().ok, ok, "{time} at {now}");
        assert!(verify().run().unwrap().ok, "{time} at {now}");
    }
    // One that is new does not stand for two.
    fs::write(world.path(KEPT), cosign(&cosign_at(&note, &[1], now), &[2])).unwrap();
    assert_eq!(violations(&verify().newer_than(hour).run().unwrap()), [FindingKind::Stale]);
}

/// A log's own keys: each has to have signed, wherever one of its checkpoints is read.
#[test]
fn each_key_of_a_log_has_to_have_signed_its_checkpoints() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("audit");
    let init = Init::default().origin("example.com/audit").erasure(false).ml_dsa(true);
    let created = init.create(&directory).unwrap();
    let (key, ml_dsa) = (created.verifier_key, created.ml_dsa_key.unwrap());
    let world = World { place, directory, key };
    world.append(2);
    let (policy, pin) = (world.policy(), world.place.path().join("audit.pin"));
    let whole = world.cosigned(&[]);
    // The lines are those of Ed25519 and of ML-DSA-44, in this order.
    let lines: Vec<_> = whole.split_inclusive('\n').collect();
    let without = lines[..lines.len() - 1].concat();
    let mut flipped = whole.clone().into_bytes();
    let at = flipped.len() - 100;
    flipped[at] = if flipped[at] == b'A' { b'B' } else { b'A' };
    let flipped = String::from_utf8(flipped).unwrap();

    for kept in [&without, &flipped] {
        fs::write(world.path(KEPT), cosign(kept, &[1, 2])).unwrap();
        let report = world.verify(&policy);
        assert_eq!(violations(&report), [FindingKind::Unwitnessed]);
        assert!(report.findings[0].detail.contains("ML-DSA-44"), "{}", report.findings[0].detail);
    }
    fs::write(world.path(KEPT), cosign(&whole, &[1, 2])).unwrap();
    assert!(world.verify(&policy).ok);
    fs::remove_file(world.path(KEPT)).unwrap();

    fs::write(&pin, &without).unwrap();
    let pinned = Verify::open(&world.directory).unwrap().key(world.key.clone()).pin(&pin).run().unwrap();
    assert_eq!(violations(&pinned), [FindingKind::PinMismatch]);

    for damaged in [&without, &flipped] {
        fs::write(world.path("checkpoint"), damaged).unwrap();
        let report = Verify::open(&world.directory).unwrap().run().unwrap();
        assert_eq!(violations(&report), [FindingKind::CheckpointDamaged]);
        let error = Log::open(&world.directory, Options::default()).map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), bulla::ErrorKind::Tampered, "{error}");
        assert!(error.to_string().contains("ML-DSA-44"), "{error}");
        assert_eq!(&fs::read_to_string(world.path("checkpoint")).unwrap(), damaged, "the evidence stays");
    }
    fs::write(world.path("checkpoint"), &whole).unwrap();

    // And with neither is the log a witness of itself.
    let own: Policy = format!("log {}\nwitness own {ml_dsa}\nquorum own\n", world.key).parse().unwrap();
    let report = world.verify(&own);
    assert_eq!(violations(&report), [FindingKind::Unwitnessed]);
    assert!(report.findings[0].detail.contains("the log's own name"), "{}", report.findings[0].detail);
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
    assert!(error.to_string().contains("frames are not those that checkpoint.witnessed is of"), "{error}");

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
    // Who is not asked for has witnessed nothing that anybody asked for, whether or not there is a cosignature.
    let unasked = format!("log {}\nwitness W {}\nquorum none\n", world.key, witness(1).1);
    for seeds in [&[][..], &[1]] {
        fs::write(world.path("checkpoint"), world.cosigned(seeds)).unwrap();
        let witnessed = world.verify(&unasked.parse().unwrap()).witnessed.unwrap();
        assert_eq!((witnessed.frames, witnessed.witnesses[0].time.is_some()), (None, !seeds.is_empty()));
    }
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

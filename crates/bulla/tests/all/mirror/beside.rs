//! The tree head as COSE and the cosignatures of witnesses follow a log to its mirror: what is signed, of the mirror's own tree, and newer.

use super::{Source, append, found, is_sound};
use crate::policy::{cosign, witness};
use bulla::mirror::Mirror;
use bulla::{ErrorKind, Log, Query, Reader, Verify, default_keys, proof::ProofFile};
use std::fs;
use std::path::{Path, PathBuf};

/// All files beside the checkpoint of a log that [`Source::asking`] makes.
fn names() -> Vec<String> {
    let cosigned = [1, 2].map(|seed| format!("cosigned/{:08x}", witness(seed).1.key_id()));
    ["checkpoint.cose", "checkpoint.witnessed"].map(str::to_owned).into_iter().chain(cosigned).collect()
}

/// What stands in each of them.
fn beside(directory: &Path) -> Vec<Option<Vec<u8>>> {
    names().iter().map(|name| fs::read(directory.join(name)).ok()).collect()
}

/// A log whose newest checkpoint is cosigned, and a mirror of it.
pub(super) fn mirrored() -> (Source, tempfile::TempDir, PathBuf) {
    let source = Source::asking();
    source.append(5);
    source.cosign(true);
    let place = tempfile::tempdir().unwrap();
    let to = place.path().join("copy");
    source.ship(&to).unwrap();
    (source, place, to)
}

#[track_caller]
pub(super) fn is_witnessed(source: &Source, directory: &Path) {
    let verify = source.verify(directory).policy(source.policy.clone().unwrap());
    is_sound(&verify.run().unwrap(), "by the policy");
}

/// A copy of the log that has gone on by itself: a second history under its key, with its own cosignatures.
fn second_history(source: &Source) -> Source {
    let other = Source::asking();
    let directory = source.copied("other");
    let other = Source { directory, key: source.key.clone(), policy: source.policy.clone(), ..other };
    let log = Log::open(&other.directory, Source::options()).unwrap();
    append(&log, 2);
    log.close().unwrap();
    other.cosign(true);
    other
}

#[test]
fn a_mirror_at_rest_has_what_lies_beside_the_checkpoint_and_proves_and_verifies_by_it() {
    let (source, _place, to) = mirrored();
    assert!(beside(&to).iter().all(Option::is_some));
    for round in 0..3 {
        assert_eq!(beside(&to), beside(&source.directory));
        is_witnessed(&source, &to);
        let keys = default_keys(&source.directory);
        let reader = Reader::open_with_keys(&to, keys).unwrap().key(source.key.clone());
        let receipt = reader.prove_as_receipt(&Query::new().subject("user_1")).unwrap().file;
        let Ok(ProofFile::Receipt(receipt)) = ProofFile::parse(&receipt) else { panic!("no receipt") };
        receipt.verify(Some(&source.key)).unwrap();
        source.append(round);
        // In the second round the checkpoint itself says nothing of its witnesses yet.
        source.cosign(round != 1);
        source.ship(&to).unwrap();
    }
}

#[test]
fn what_comes_to_lie_beside_a_checkpoint_later_arrives_without_a_new_one() {
    let source = Source::asking();
    source.append(5);
    let cose = source.directory.join("checkpoint.cose");
    let later = fs::read(&cose).unwrap();
    fs::remove_file(&cose).unwrap();
    let place = tempfile::tempdir().unwrap();
    let to = place.path().join("copy");
    let mut mirror = source.mirror(&to).unwrap();
    mirror.poll(|_| {}).unwrap();
    assert!(beside(&to).iter().all(Option::is_none));
    fs::write(&cose, later).unwrap();
    source.cosign(false);
    assert!(!mirror.poll(|_| {}).unwrap().advanced);
    assert_eq!(beside(&to), beside(&source.directory));
    is_witnessed(&source, &to);
}

#[test]
fn nothing_beside_a_checkpoint_is_given_up_for_what_says_less() {
    let (source, _place, to) = mirrored();
    let old = beside(&source.directory);
    source.append(3);
    source.cosign(true);
    source.ship(&to).unwrap();
    let new = beside(&to);
    assert!(old.iter().zip(&new).all(|(old, new)| old != new));
    for (name, content) in names().iter().zip(&old) {
        fs::write(source.directory.join(name), content.as_ref().unwrap()).unwrap();
    }
    // Of the quorum one is missing.
    let bare = fs::read_to_string(source.directory.join("checkpoint")).unwrap();
    fs::write(source.directory.join("checkpoint.witnessed"), cosign(&bare, &[])).unwrap();
    source.ship(&to).unwrap();
    assert_eq!(beside(&to), new);
    names().iter().for_each(|name| fs::remove_file(source.directory.join(name)).unwrap());
    source.ship(&to).unwrap();
    assert_eq!(beside(&to), new);
}

#[test]
fn what_no_witness_has_signed_is_left_where_it_is() {
    let (source, _place, to) = mirrored();
    let before = beside(&to);
    let log = source.open();
    append(&log, 2);
    log.flush().unwrap();
    let bare = fs::read_to_string(source.directory.join("checkpoint")).unwrap();
    // Of another checkpoint, by somebody whom the policy does not name, and by nobody.
    let earlier = String::from_utf8(before[1].clone().unwrap()).unwrap();
    let moved = earlier.split_once("\n\n").unwrap().1.lines().skip(1).map(|line| format!("{line}\n"));
    let moved = format!("{bare}{}", moved.collect::<String>());
    let own = cosign(&bare, &[1, 2]);
    let lie = format!("{bare}{}", witness(1).1.signature_line(5, &[7; 64]));
    for false_note in [moved, cosign(&bare, &[3, 4]), lie, bare.clone(), own.replace("audit\n", "audi\n")] {
        for name in &names()[1..] {
            fs::write(source.directory.join(name), &false_note).unwrap();
        }
        source.ship(&to).unwrap();
        assert_eq!(beside(&to)[1..], before[1..], "{false_note}");
        is_witnessed(&source, &to);
    }
    // In the checkpoint itself such a line would have whoever goes by the policy refuse all of it.
    let true_line = cosign(&bare, &[2]);
    let lie = format!("{true_line}{}", witness(1).1.signature_line(5, &[7; 64]));
    fs::write(source.directory.join("checkpoint"), lie).unwrap();
    source.ship(&to).unwrap();
    assert_eq!(fs::read_to_string(to.join("checkpoint")).unwrap(), true_line);
    drop(log);
}

#[test]
fn another_history_beside_the_checkpoint_is_told_and_not_taken_up() {
    for (name, kind) in [
        ("checkpoint.cose", "cose-mismatch"),
        ("checkpoint.witnessed", "witness-mismatch"),
        (&names()[2], "witness-mismatch"),
    ] {
        let (source, _place, to) = mirrored();
        let other = second_history(&source);
        source.append(2);
        source.append(2);
        source.cosign(true);
        fs::copy(other.directory.join(name), source.directory.join(name)).unwrap();
        for _ in 0..2 {
            let error = source.ship(&to).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Tampered, "{error}");
            assert!(error.to_string().contains(&format!("the source: violation {kind}")), "{error}");
            assert_eq!(found(&source, &to), Vec::<&str>::new(), "{name}");
        }
    }
}

#[test]
fn what_is_damaged_beside_the_checkpoint_of_a_mirror_is_replaced_but_no_second_history() {
    let (source, _place, to) = mirrored();
    let whole = beside(&to);
    for (name, content) in names().iter().zip(&whole) {
        let content = content.clone().unwrap();
        for at in [3, content.len() / 2, content.len() - 3] {
            let mut damaged = content.clone();
            damaged[at] ^= 1;
            fs::write(to.join(name), damaged).unwrap();
            source.ship(&to).unwrap();
            assert_eq!(beside(&to), whole, "{name} at {at}");
        }
    }
    let other = second_history(&source);
    source.append(2);
    source.append(2);
    source.cosign(true);
    source.ship(&to).unwrap();
    let whole = beside(&to);
    for (name, content) in names().iter().zip(whole) {
        let evidence = fs::read(other.directory.join(name)).unwrap();
        fs::write(to.join(name), &evidence).unwrap();
        let error = source.ship(&to).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Tampered);
        assert!(error.to_string().contains("the destination: violation"), "{error}");
        assert_eq!(fs::read(to.join(name)).unwrap(), evidence, "it is evidence");
        fs::write(to.join(name), content.unwrap()).unwrap();
    }
    is_witnessed(&source, &to);
}

#[test]
fn a_mirror_of_a_mirror_has_it_too() {
    let (source, place, to) = mirrored();
    let second = place.path().join("second");
    Mirror::open(&to, &second, None).unwrap().poll(|_| {}).unwrap();
    assert_eq!(beside(&second), beside(&source.directory));
    is_sound(
        &Verify::open(&second).unwrap().key(source.key.clone()).strict(true).run().unwrap(),
        "the second",
    );
}

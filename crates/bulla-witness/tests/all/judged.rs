//! What a witness answers, by C2SP tlog-witness.

use crate::world::{Log, ORIGIN, World, cosigned};
use bulla_proof::CosignatureAlgorithm::{Ed25519, MlDsa44};
use bulla_proof::hash::{Hash, sha256};
use bulla_store::ErrorKind;
use bulla_witness::SIZE_TYPE;
use bulla_witness::request::Request;
use std::sync::Arc;

#[test]
fn each_tree_that_goes_on_from_the_one_before_is_cosigned() {
    for algorithm in [Ed25519, MlDsa44] {
        let (world, key) = World::begun(algorithm);
        let log = Log::new(ORIGIN, 0, 300);
        let witness = world.open(&[&log]).unwrap();
        assert_eq!(witness.logs(), [(ORIGIN.to_owned(), None)]);
        let mut old = 0;
        // The last one is asked for again: the same tree, at another time.
        for (at, size) in [0, 1, 2, 7, 8, 255, 256, 257, 300, 300].into_iter().enumerate() {
            let time = 1_700_000_000 + at as i64;
            world.clock.set(time);
            let answer = witness.add_checkpoint(&log.request(old, size));
            assert_eq!(cosigned(&answer, &key, &log.note(size)), time as u64);
            assert_eq!(witness.logs(), [(ORIGIN.to_owned(), Some(size as u64))]);
            old = size;
        }
        // A clock that is put back a little makes no later tree older.
        world.clock.set(1_700_000_009 - 60);
        let answer = witness.add_checkpoint(&log.request(300, 300));
        assert_eq!(cosigned(&answer, &key, &log.note(300)), 1_700_000_009);
        assert_eq!(*world.told.lock().unwrap(), [""; 0]);
    }
}

/// A time that is yet to come by the witness's clock is not signed again and again: it is false, or the clock is.
#[test]
fn nothing_is_cosigned_of_a_log_whose_newest_cosignature_is_of_a_time_to_come() {
    let (world, key) = World::begun(Ed25519);
    let (log, mut other) = (Log::new(ORIGIN, 0, 9), Log::new("example.com/other", 0, 3));
    other.key = bulla_crypto::signing::SigningKey::from_seed("example.com/other", &[5; 32]).unwrap();
    let now = 1_700_000_000;
    world.clock.set(now + 2_592_000);
    let witness = world.open(&[&log, &other]).unwrap();
    cosigned(&witness.add_checkpoint(&log.request(0, 5)), &key, &log.note(5));
    world.clock.set(now);
    for _ in 0..3 {
        let answer = witness.add_checkpoint(&log.request(5, 7));
        assert_eq!(answer.status, 500);
        assert!(answer.body.contains("clock"), "{}", answer.body);
    }
    let file = format!("logs/{}", sha256(&[ORIGIN.as_bytes()]));
    let told = world.told.lock().unwrap().clone();
    let [line] = &told[..] else { panic!("it is told once: {told:?}") };
    assert!(line.contains("2592000 s behind") && line.contains(&file), "{line}");
    assert_eq!(witness.logs()[0].1, Some(5), "nothing is kept of it");
    // A second history is told all the same, and another log is cosigned.
    assert_eq!(witness.add_checkpoint(&Log::new(ORIGIN, 1, 9).request(5, 7)).status, 422);
    assert_eq!(cosigned(&witness.add_checkpoint(&other.request(0, 3)), &key, &other.note(3)), now as u64);
    world.clock.set(now + 2_592_000 - 60);
    cosigned(&witness.add_checkpoint(&log.request(5, 6)), &key, &log.note(6));
    drop(witness);

    // What the documentation has the operator do who knows that the clock is right now.
    world.clock.set(now);
    let kept = String::from_utf8(bulla_store::read_small(&*world.state, &file, 1 << 20).unwrap()).unwrap();
    let set_right = kept.replacen(&format!("\ntime {}\n", now + 2_592_000), &format!("\ntime {now}\n"), 1);
    assert_ne!(set_right, kept);
    bulla_store::replace(&*world.state, &file, set_right.as_bytes()).unwrap();
    let witness = world.open(&[&log, &other]).unwrap();
    assert_eq!(witness.add_checkpoint(&log.request(0, 7)).body, "6\n", "it has forgotten nothing");
    assert_eq!(cosigned(&witness.add_checkpoint(&log.request(6, 7)), &key, &log.note(7)), now as u64);
}

#[test]
fn another_old_size_than_the_witness_has_is_answered_with_its_own() {
    let (world, key) = World::begun(Ed25519);
    let log = Log::new(ORIGIN, 0, 9);
    let witness = world.open(&[&log]).unwrap();
    assert_eq!(witness.add_checkpoint(&log.request(2, 5)).status, 409, "it has seen nothing yet");
    witness.add_checkpoint(&log.request(0, 5));
    for old in [0, 4, 6] {
        let answer = witness.add_checkpoint(&log.request(old, 9));
        assert_eq!((answer.status, answer.content_type, &answer.body[..]), (409, SIZE_TYPE, "5\n"));
    }
    // An older tree that is right, too: the witness does not go back.
    assert_eq!(witness.add_checkpoint(&log.request(3, 4)).body, "5\n");
    cosigned(&witness.add_checkpoint(&log.request(5, 9)), &key, &log.note(9));
}

#[test]
fn another_history_is_never_cosigned() {
    for seen in [1, 4, 6, 8] {
        let (world, _) = World::begun(Ed25519);
        let (log, other) = (Log::new(ORIGIN, 0, 20), Log::new(ORIGIN, 1, 20));
        let witness = world.open(&[&log]).unwrap();
        assert_eq!(witness.add_checkpoint(&log.request(0, seen)).status, 200);
        // Longer, of the same size, shorter; and as if the witness had seen nothing.
        for (old, size, status) in
            [(seen, 20, 422), (seen, seen + 1, 422), (seen, seen, 422), (seen - 1, seen, 409), (0, 20, 409)]
        {
            let answer = witness.add_checkpoint(&other.request(old, size));
            assert_eq!(answer.status, status, "{old} to {size} after {seen}: {}", answer.body);
        }
        assert_eq!(witness.add_checkpoint(&log.request(seen, 20)).status, 200, "its own history goes on");
        let told = world.told.lock().unwrap();
        assert!(told[0].contains("nothing shows that its tree of 20 leaves begins with"), "{told:?}");
        let next = format!("nothing shows that its tree of {} leaves begins with", seen + 1);
        assert!(told[1].contains(&next), "each tree is told of: {told:?}");
        assert!(told[2].contains("two histories"), "{told:?}");
        assert_eq!(told.len(), 3, "{told:?}");
        // What shows it is kept: two checkpoints of one size, each signed by the log.
        let kept = world
            .state
            .list("")
            .unwrap()
            .into_iter()
            .find(|item| item.name.starts_with("conflict-"))
            .unwrap();
        let kept = bulla_store::read_small(&*world.state, &kept.name, 1 << 20).unwrap();
        assert_eq!(String::from_utf8(kept).unwrap(), other.note(seen));
    }
}

#[test]
fn a_proof_that_does_not_hold_is_refused() {
    let (world, _) = World::begun(Ed25519);
    let log = Log::new(ORIGIN, 0, 20);
    let witness = world.open(&[&log]).unwrap();
    let note = log.note(20);
    let with = |old_size, proof: Vec<Hash>| {
        let request = Request { old_size, proof, note: note.as_bytes() }.render();
        witness.add_checkpoint(request.as_bytes()).status
    };
    assert_eq!(with(0, vec![log.leaves[0]]), 422, "nothing is to be proved from the empty tree");
    let empty = log.signed(0, log.root(20));
    let request = Request { old_size: 0, proof: Vec::new(), note: empty.as_bytes() }.render();
    assert_eq!(witness.add_checkpoint(request.as_bytes()).status, 422, "the empty tree has one root");
    assert_eq!(witness.add_checkpoint(&log.request(0, 7)).status, 200);
    let proof = bulla_proof::consistency::prove_consistency(&log.leaves, 7).unwrap();
    assert_eq!(with(7, Vec::new()), 422);
    assert_eq!(with(7, proof[1..].to_vec()), 422);
    assert_eq!(with(7, [&proof[..], &proof[..1]].concat()), 422);
    for at in 0..proof.len() {
        let mut changed = proof.clone();
        changed[at].0[31] ^= 1;
        assert_eq!(with(7, changed), 422);
    }
    assert_eq!(with(21, Vec::new()), 400, "the old tree is the larger one");
    assert_eq!(with(7, proof), 200);
}

#[test]
fn only_configured_logs_are_cosigned_and_only_with_their_signature() {
    let (world, key) = World::begun(Ed25519);
    let (log, unknown) = (Log::new(ORIGIN, 0, 3), Log::new("example.com/other", 0, 3));
    let witness = world.open(&[&log]).unwrap();
    assert_eq!(witness.add_checkpoint(&unknown.request(0, 3)).status, 404);
    let text = String::from_utf8(log.request(0, 3)).unwrap();
    // Signed by nobody that is known, and by the known key wrongly.
    let line = text.rfind('\u{2014}').unwrap();
    let unsigned = format!("{}\u{2014} {ORIGIN} AAAAAAAA\n", &text[..line]);
    assert_eq!(witness.add_checkpoint(unsigned.as_bytes()).status, 403);
    let other_root = log.request(0, 2);
    let other_root = String::from_utf8(other_root).unwrap();
    let forged = format!("{}{}", &other_root[..other_root.rfind('\u{2014}').unwrap()], &text[line..]);
    assert_eq!(witness.add_checkpoint(forged.as_bytes()).status, 403);
    for malformed in ["", "old 0\n\n", "old 0\n\nexample.com/log\n", "\n"] {
        assert_eq!(witness.add_checkpoint(malformed.as_bytes()).status, 400, "{malformed:?}");
    }
    assert_eq!(witness.add_checkpoint(&vec![b'a'; 70_000]).status, 400);
    // Signatures of others are passed over, and not kept.
    let more = format!("{text}\u{2014} someone.example AAAAAAAA\n");
    cosigned(&witness.add_checkpoint(more.as_bytes()), &key, &log.note(3));
    let kept = world.state.list("logs").unwrap();
    let kept = bulla_store::read_small(&*world.state, &format!("logs/{}", kept[0].name), 1 << 20).unwrap();
    assert!(!String::from_utf8(kept).unwrap().contains("someone"));
}

/// Whoever has a sound log's checkpoints can send them with proofs that do not hold: that is refused, and what it has the witness tell
/// hides no other history.
#[test]
fn a_wrong_proof_about_a_sound_log_hides_no_other_history() {
    let (world, _) = World::begun(Ed25519);
    let (log, other) = (Log::new(ORIGIN, 0, 150), Log::new(ORIGIN, 1, 150));
    let witness = world.open(&[&log]).unwrap();
    let told = || std::mem::take(&mut *world.told.lock().unwrap());
    let wrong = |old_size, of: &Log, size| {
        let note = of.note(size);
        let request = Request { old_size, proof: vec![of.leaves[0]], note: note.as_bytes() }.render();
        witness.add_checkpoint(request.as_bytes()).status
    };
    assert_eq!(wrong(0, &log, 5), 422);
    assert_eq!(witness.add_checkpoint(&log.request(0, 5)).status, 200);
    assert_eq!(wrong(5, &log, 5), 422, "what was cosigned, and a proof of nothing");
    assert_eq!(told(), [""; 0], "nothing of that speaks of another tree than the log's");
    for _ in 0..3 {
        assert_eq!(wrong(5, &log, 6), 422);
    }
    let lines = told();
    assert!(lines.len() == 1 && lines[0].contains(&log.root(6).to_base64()), "{lines:?}");
    assert_eq!(witness.add_checkpoint(&other.request(5, 6)).status, 422);
    let lines = told();
    assert!(lines.len() == 1 && lines[0].contains(&other.root(6).to_base64()), "{lines:?}");
    assert_eq!(witness.add_checkpoint(&other.request(5, 5)).status, 422);
    assert!(told()[0].contains("two histories"));
    // However many there are, no journal is filled with them.
    for size in 7..150 {
        wrong(5, &log, size);
    }
    let lines = told();
    assert_eq!(lines.len(), 98, "100 of this log in all, and that there are more: {:?}", lines.last());
    assert!(lines[97].contains("over 100 trees that `example.com/log` signed were refused"), "{}", lines[97]);
    // Another kind is told all the same, and later each tree again.
    witness.add_checkpoint(&other.request(5, 5));
    assert_eq!(told(), [""; 0], "that was told");
    world.clock.set(1_700_000_600);
    wrong(5, &log, 149);
    let lines = told();
    assert!(lines.len() == 1 && lines[0].contains("its tree of 149 leaves"), "{lines:?}");
}

/// Whoever sends the same request again and again fills no journal, and neither does whoever makes up logs.
#[test]
fn what_is_refused_again_and_again_is_told_now_and_then() {
    let (world, _) = World::begun(Ed25519);
    let (log, other) = (Log::new(ORIGIN, 0, 9), Log::new(ORIGIN, 1, 9));
    let witness = world.open(&[&log]).unwrap();
    let told = || std::mem::take(&mut *world.told.lock().unwrap());
    witness.add_checkpoint(&log.request(0, 5));
    let conflict = other.request(5, 5);
    for _ in 0..50 {
        assert_eq!(witness.add_checkpoint(&conflict).status, 422);
    }
    let lines = told();
    assert!(lines.len() == 1 && lines[0].contains("two histories"), "{lines:?}");
    world.clock.set(1_700_000_599);
    witness.add_checkpoint(&conflict);
    assert_eq!(told(), [""; 0]);
    world.clock.set(1_700_000_600);
    witness.add_checkpoint(&conflict);
    let lines = told();
    assert!(lines.len() == 1 && lines[0].contains("50 more such requests"), "{lines:?}");
    // Another kind of refusal is told all the same.
    assert_eq!(witness.add_checkpoint(&other.request(5, 9)).status, 422);
    assert!(told()[0].contains("nothing shows"));

    for number in 0..150 {
        let unknown = Log::new(&format!("example.com/{number}"), 0, 1);
        for _ in 0..2 {
            assert_eq!(witness.add_checkpoint(&unknown.request(0, 1)).status, 404);
        }
    }
    let lines = told();
    assert!(lines[0].contains("`example.com/0` asked") && lines[0].contains("`logs`"), "{}", lines[0]);
    assert_eq!(lines.len(), 101);
    assert!(lines[100].contains("over 100 logs asked"), "{}", lines[100]);
    let long = Log::new(&"x".repeat(200), 0, 1);
    world.clock.set(1_700_002_000);
    drop(witness);
    let witness = world.open(&[&log]).unwrap();
    witness.add_checkpoint(&long.request(0, 1));
    let lines = told();
    assert!(lines[0].len() < 250 && lines[0].contains('\u{2026}'), "{}", lines[0]);
}

#[test]
fn logs_are_added_and_left_out_while_it_runs() {
    let (world, key) = World::begun(Ed25519);
    let (log, mut added) = (Log::new(ORIGIN, 0, 9), Log::new("example.com/added", 0, 3));
    added.key = bulla_crypto::signing::SigningKey::from_seed("example.com/added", &[5; 32]).unwrap();
    let witness = world.open(&[&log]).unwrap();
    cosigned(&witness.add_checkpoint(&log.request(0, 5)), &key, &log.note(5));
    assert_eq!(witness.add_checkpoint(&added.request(0, 3)).status, 404);
    witness.set_logs(vec![log.vkey(), added.vkey()]).unwrap();
    cosigned(&witness.add_checkpoint(&added.request(0, 3)), &key, &added.note(3));
    // What is wrong changes nothing.
    let mut other = Log::new(ORIGIN, 0, 9);
    other.key = bulla_crypto::signing::SigningKey::from_seed(ORIGIN, &[4; 32]).unwrap();
    for logs in [vec![], vec![other.vkey()], vec![log.vkey(), log.vkey()]] {
        witness.set_logs(logs).unwrap_err();
    }
    cosigned(&witness.add_checkpoint(&log.request(5, 6)), &key, &log.note(6));
    witness.set_logs(vec![added.vkey()]).unwrap();
    assert_eq!(witness.add_checkpoint(&log.request(6, 9)).status, 404);
    // And what was seen of it is not forgotten.
    witness.set_logs(vec![log.vkey()]).unwrap();
    assert_eq!(witness.add_checkpoint(&log.request(0, 9)).body, "6\n");
}

#[test]
fn keys_of_logs_are_given_once_and_there_is_one() {
    let (world, _) = World::begun(Ed25519);
    let log = Log::new(ORIGIN, 0, 3);
    assert_eq!(world.open(&[]).unwrap_err().kind(), ErrorKind::Invalid);
    let twice = world.open(&[&log, &log]).unwrap_err();
    assert!(twice.to_string().contains("given twice"), "{twice}");
}

#[test]
fn of_many_at_once_no_two_are_cosigned_that_do_not_go_on_from_each_other() {
    let (world, _) = World::begun(Ed25519);
    let histories: Vec<_> = (0..4).map(|history| Log::new(ORIGIN, history, 40)).collect();
    let witness = Arc::new(world.open(&[&histories[0]]).unwrap());
    let cosigned: Vec<Vec<(u8, usize)>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0_u8..4)
            .map(|history| {
                let (witness, log) = (&witness, &histories[history as usize]);
                scope.spawn(move || {
                    let mut cosigned = Vec::new();
                    let mut old = 0;
                    for size in 1..=40 {
                        match witness.add_checkpoint(&log.request(old, size)) {
                            answer if answer.status == 200 => {
                                cosigned.push((history, size));
                                old = size;
                            }
                            answer if answer.status == 409 => {
                                old = answer.body.trim_end().parse::<usize>().unwrap().min(size);
                            }
                            answer => assert_eq!(answer.status, 422),
                        }
                    }
                    cosigned
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let of: Vec<_> = cosigned.iter().filter(|of| !of.is_empty()).collect();
    assert_eq!(of.len(), 1, "one history alone is cosigned: {cosigned:?}");
}

//! Numbers and keys.

use super::index::{self, Bucket, SPLIT_ABOVE};
use super::pseudonym::Pseudonym;
use super::transaction_error::TransactionError;
use super::*;
use bulla_crypto::group::{Missing, Whose};
use std::collections::{BTreeSet, HashMap};
use std::sync::Barrier;

#[test]
fn a_subject_keeps_its_number_and_key() {
    let world = World::new();
    let vault = world.open();
    let first = vault.resolve(&["alice", "bob", "alice", "carol"]).unwrap();
    assert_eq!(first.iter().map(|subject| subject.number).collect::<Vec<_>>(), [0, 1, 0, 2]);
    assert_eq!(first[0].key.bytes(), first[2].key.bytes());
    assert_ne!(first[0].key.bytes(), first[1].key.bytes());
    assert_eq!(vault.next_number().unwrap(), 3);
    assert!(vault.find("dave").unwrap().is_none());
    assert_eq!(vault.next_number().unwrap(), 3, "looking for somebody adds nobody");
    assert!(vault.key(3).unwrap().is_none());
    assert_sound(&vault);

    drop(vault);
    let vault = world.open();
    for (subject, was) in [("alice", &first[0]), ("bob", &first[1]), ("carol", &first[3])] {
        assert_eq!(number(&vault, subject), was.number);
        assert_eq!(key(&vault, subject), *was.key.bytes());
        assert_eq!(vault.key(was.number).unwrap().unwrap().bytes(), was.key.bytes());
    }
    assert_eq!(number(&vault, "dave"), 3);
}

/// Many who are new, some who are known, and some twice, in one transaction in which buckets of the index are halved more than once.
#[test]
fn many_at_once_get_numbers_in_their_order() {
    let world = World::new();
    let vault = world.open();
    let known = fill(&vault, "s", 100);
    drop(vault);
    // Nothing is cached.
    let vault = world.open();
    let names = (50..40_000).map(|index| format!("s{index}")).collect::<Vec<_>>();
    let asked = names.iter().chain(&names[..100]).map(String::as_str).collect::<Vec<_>>();
    let found = vault.resolve(&asked).unwrap();
    let numbers = found.iter().map(|subject| subject.number);
    assert!(numbers.eq((50..40_000).chain(50..150)));
    assert!(found.iter().zip(&known[50..]).all(|(found, known)| found.key.bytes() == known.key.bytes()));
    let buckets = vault.shared.snapshot(|it| Bucket::all(it.txn, it.keys)).unwrap();
    assert!(buckets.len() >= 4, "{} buckets", buckets.len());
    let crowded = vault.shared.snapshot(|it| {
        let rows = |bucket: &Bucket| {
            let cipher = index::cipher(it.keys, bucket.id)?;
            (0..=u8::MAX).map(|place| Ok(cipher.read(it.txn, place)?.len())).collect::<Result<Vec<_>, _>>()
        };
        buckets.iter().map(rows).collect::<Result<Vec<_>, TransactionError>>()
    });
    assert!(crowded.unwrap().concat().iter().all(|entries| *entries <= SPLIT_ABOVE));
    assert_sound(&vault);
    drop(vault);
    let vault = world.open();
    for place in [0, 99, 39_949] {
        assert_eq!(key(&vault, asked[place]), *found[place].key.bytes());
    }
}

#[test]
fn whose_a_number_is_can_be_asked_by_name() {
    let world = World::new();
    let vault = world.open();
    vault.resolve(&["alice", "bob", "carol"]).unwrap();
    let whose = |numbers: &[u64], name| vault.whose(&[(numbers, name)]).unwrap()[0];
    assert_eq!(whose(&[0, 1, 2], "bob"), Whose::Number(1));
    for (numbers, name) in [(&[0, 2][..], "bob"), (&[0, 1, 2], "Bob"), (&[], "bob")] {
        assert_eq!(whose(numbers, name), Whose::Others, "{numbers:?} {name}");
    }
    // A number that nobody has may have been that person's.
    for number in [3, u64::MAX] {
        assert_eq!(whose(&[0, number], "bob"), Whose::Gone);
    }
    let erasure = vault.begin_erasure(&["bob"]).unwrap().unwrap();
    assert_eq!((whose(&[0, 1], "bob"), whose(&[0], "alice")), (Whose::Gone, Whose::Number(0)));
    vault.confirm(erasure.commit().unwrap().destroy().unwrap().numbers()).unwrap();
    assert_eq!((whose(&[0, 1], "bob"), whose(&[0, 2], "bob")), (Whose::Gone, Whose::Others));
}

#[test]
fn texts_that_differ_at_all_are_different_subjects() {
    let world = World::new();
    let vault = world.open();
    let texts = ["", "a", "A", "a ", "\0", "a\0", "ä", "a\u{308}"];
    let found = vault.resolve(&texts).unwrap();
    let numbers = found.iter().map(|subject| subject.number).collect::<BTreeSet<_>>();
    assert_eq!(numbers.len(), texts.len());
    let long = "x".repeat(65_536);
    assert_eq!(number(&vault, &long), number(&vault, &long));
}

#[test]
fn what_was_given_out_is_found_with_any_cache() {
    for cache in [0, 1, 7, 1000] {
        let world = World::with(Settings { cache, ..Settings::default() });
        let vault = world.open();
        let found = fill(&vault, "s", 100);
        let again = fill(&vault, "s", 100);
        assert!(found.iter().zip(&again).all(|(one, two)| one.number == two.number));
        assert!(found.iter().zip(&again).all(|(one, two)| one.key.bytes() == two.key.bytes()));
        assert!(vault.shared.cache.len() <= cache);
    }
}

/// More than one bucket of rows, of the index, and more keys than are made at once.
#[test]
fn buckets_come_as_they_are_needed() {
    let world = World::new();
    let vault = world.open();
    let mut all = Vec::new();
    for part in 0..10 {
        all.extend(fill(&vault, &format!("part {part} "), 2500));
    }
    assert_sound(&vault);
    let buckets = vault.shared.snapshot(|it| index::Bucket::all(it.txn, it.keys)).unwrap();
    let starts = buckets.iter().map(|bucket| bucket.start).collect::<BTreeSet<_>>();
    assert!(buckets.len() >= 3 && starts.len() == buckets.len(), "{}", buckets.len());
    let entries = |bucket: &index::Bucket| {
        let count = |it: &snapshot::Snapshot<'_>| {
            let cipher = index::cipher(it.keys, bucket.id)?;
            (0..=u8::MAX).try_fold(0, |sum, place| Ok(sum + cipher.read(it.txn, place)?.len()))
        };
        vault.shared.snapshot(count).unwrap()
    };
    let entries = buckets.iter().map(entries).collect::<Vec<_>>();
    // Of so many people each is one, to whoever sees what an erasure has left.
    assert!(entries.iter().all(|count| (3000..13_000).contains(count)), "{entries:?}");
    assert_eq!(entries.iter().sum::<usize>(), 25_000);
    drop(vault);

    let vault = world.open();
    assert_sound(&vault);
    for part in 0..10 {
        let again = fill(&vault, &format!("part {part} "), 2500);
        let before = &all[part * 2500..][..2500];
        assert!(again.iter().zip(before).all(|(one, two)| one.key.bytes() == two.key.bytes()));
    }
}

/// What a person takes on the disk, as they come a few at a time: 100 bytes at most, with all files.
#[test]
fn a_person_takes_few_bytes() {
    const PEOPLE: usize = 8192;
    let world = World::new();
    let vault = world.open();
    (0..PEOPLE).step_by(128).for_each(|from| drop(fill(&vault, &format!("{from}/"), 128)));
    drop(vault);
    let files = ["vault", "roots"].map(|name| std::fs::read_dir(world.file(name)).unwrap());
    let bytes = files.into_iter().flatten().map(|file| file.unwrap().metadata().unwrap().len()).sum::<u64>();
    assert!(bytes <= 100 * PEOPLE as u64, "{bytes}");
}

/// Row keys are made 64 at a time; the one after those is there when it is needed.
#[test]
fn numbers_can_be_skipped_but_not_beyond_all_bounds() {
    let world = World::new();
    let vault = world.open();
    let next = (keys::AHEAD as u64 + 3) << keys::ROWS_LOG2;
    vault.skip_to(next).unwrap();
    vault.skip_to(5).unwrap();
    assert_eq!(number(&vault, "alice"), next);
    assert!(vault.shared.keys().rows.len() > keys::AHEAD as usize);
    let error = vault.skip_to(1 << 40).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    drop(vault);
    let vault = world.open();
    assert_eq!(vault.find("alice").unwrap().unwrap().number, next);
    assert_sound(&vault);
}

#[test]
fn a_vault_older_than_the_log_is_refused() {
    let world = World::new();
    let vault = world.open();
    fill(&vault, "s", 3);
    vault.require_at_least(3).unwrap();
    let error = vault.require_at_least(4).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    let text = error.to_string();
    assert!(text.contains("has given 3 numbers, the log knows 4; restore the newest"), "{text}");
}

/// Threads that meet the same people at the same time.
#[test]
fn threads_agree() {
    const THREADS: usize = 8;
    let world = World::with(Settings { cache: 500, ..Settings::default() });
    let vault = world.open();
    let barrier = Barrier::new(THREADS);
    let found = std::thread::scope(|scope| {
        let work = |thread: usize| {
            barrier.wait();
            let mut found = HashMap::new();
            for round in 0..60 {
                let names =
                    (0..40).map(|index| format!("s{}", (thread * 7 + round * 31 + index * 13) % 2000));
                let names = names.collect::<Vec<_>>();
                let subjects = vault.resolve(&names.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
                for (name, subject) in names.into_iter().zip(subjects) {
                    let pair = (subject.number, *subject.key.bytes());
                    assert_eq!(*found.entry(name).or_insert(pair), pair);
                }
            }
            found
        };
        let threads = (0..THREADS).map(|thread| scope.spawn(move || work(thread)));
        let threads = threads.collect::<Vec<_>>();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    let mut all = HashMap::new();
    for (name, pair) in found.into_iter().flatten() {
        assert_eq!(*all.entry(name).or_insert(pair), pair);
    }
    let numbers = all.values().map(|pair| pair.0).collect::<BTreeSet<_>>();
    assert_eq!(numbers.len(), all.len());
    assert_eq!(numbers.last().copied(), Some(all.len() as u64 - 1), "numbers have no holes");
    assert_sound(&vault);
}

#[test]
fn no_vault_is_made_in_the_place_of_one_that_this_process_has_open() {
    let world = World::new();
    let vault = world.open();
    std::fs::remove_dir_all(world.path().join("vault")).unwrap();
    let create = || Vault::create(world.path(), LOG, &world.settings);
    let error = create().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.to_string().contains("close the log, and every producer"), "{error}");
    drop(vault);
    create().unwrap();
}

#[test]
fn handles_of_a_process_share_one_vault() {
    let world = World::new();
    let writer = world.open();
    let error = world.try_open().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    let error = Vault::create(world.path(), LOG, &world.settings).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    let reader = Vault::open(world.path(), LOG, Access::Read, &world.settings).unwrap();
    assert!(reader.find("alice").unwrap().is_none());
    let alice = number(&writer, "alice");
    assert_eq!(reader.find("alice").unwrap().unwrap().number, alice);
    for refused in [
        reader.resolve(&["bob"]).err(),
        reader.begin_erasure(&["alice"]).err(),
        reader.confirm(&[0]).err(),
        reader.skip_to(9).err(),
    ] {
        assert_eq!(refused.unwrap().kind(), ErrorKind::Refused);
    }
    let error = Vault::open(world.path(), LogId([1; 16]), Access::Read, &world.settings).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    drop(writer);
    let writer = world.open();
    assert_eq!(number(&writer, "alice"), alice);
}

/// Threads that meet somebody new while another one's transaction is under way are served by the next, all of them.
#[test]
fn new_subjects_of_several_threads_take_one_transaction() {
    const THREADS: usize = 6;
    let world = World::new();
    let vault = world.open();
    fill(&vault, "s", 3);
    // One of the threads asks for somebody whom the vault does not give out, and alone is refused.
    let _erasure = vault.begin_erasure(&["s1"]).unwrap().unwrap();
    for erased in [false, true] {
        let count = || vault.shared.snapshot(|it| record::Changes::read(it.txn, it.keys)).unwrap().count;
        let before = count();
        let turn = vault.shared.arrivals.turn();
        let found = std::thread::scope(|scope| {
            let vault = &vault;
            let resolve = |thread: usize| {
                let own = format!("{erased} {thread}");
                scope.spawn(move || {
                    // With the name of another one's, too.
                    let names = [own.as_str(), "both", "s0", if erased && thread == 2 { "s1" } else { "s2" }];
                    let pseudonym = |name: &str| Pseudonym::of(name, LOG, &vault.shared.keys().pseudonym);
                    vault.shared.add(names.map(pseudonym).to_vec())
                })
            };
            let threads = (0..THREADS).map(resolve).collect::<Vec<_>>();
            while vault.shared.arrivals.count() < THREADS {
                std::thread::yield_now();
            }
            drop(turn);
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        if erased {
            let refused = found.iter().map(|found| found.as_ref().err().map(Error::kind)).collect::<Vec<_>>();
            assert!((0..THREADS).all(|thread| refused[thread] == (thread == 2).then_some(ErrorKind::Erased)));
            continue;
        }
        assert_eq!(count(), before + 1, "one transaction for all");
        let found = found.into_iter().map(|found| found.unwrap().1).collect::<Vec<_>>();
        let own = found.iter().map(|found| found[0].number).collect::<BTreeSet<_>>();
        assert_eq!(own.len(), THREADS);
        assert!(
            found
                .iter()
                .all(|of| of[1].number == found[0][1].number && of[2].number == 0 && of[3].number == 2)
        );
    }
    assert_eq!(vault.next_number().unwrap(), 3 + 2 * THREADS as u64);
}

#[test]
fn who_has_no_key_is_told_in_parts_and_without_whose_erasure_is_at_work() {
    let world = World::new();
    let vault = world.open();
    let all = |vault: &Vault| {
        let (mut found, mut from, mut parts) = (Vec::new(), Some(0), 0);
        while let Some(next) = from {
            let Missing { numbers, more, given, frames, .. } = vault.missing(next).unwrap();
            assert_eq!((given, frames), (vault.next_number().unwrap(), vault.follows().unwrap().size));
            assert!(more.is_none_or(|more| more > next), "{more:?}");
            found.extend(numbers.into_iter().flatten());
            (from, parts) = (more, parts + 1);
        }
        (found, parts)
    };
    assert_eq!(all(&vault), (vec![], 1));
    fill(&vault, "a", 100);
    let (found, parts) = all(&vault);
    assert!(found.is_empty() && parts > 1, "{parts}");
    let numbers = [3, 15, 16, 17, 99];
    let erasure = vault.begin_erasure_of(&numbers).unwrap().unwrap();
    assert_eq!(all(&vault).0, [0; 0], "nobody is gone yet");
    assert_eq!(vault.missing(u64::MAX).unwrap().erasing, [0; 0]);
    let erased = erasure.commit().unwrap().destroy().unwrap();
    assert_eq!(all(&vault).0, [0; 0], "the log may not tell of them yet");
    vault.confirm(erased.numbers()).unwrap();
    assert_eq!(all(&vault).0, numbers);
    vault.skip_to(5000).unwrap();
    fill(&vault, "b", 10);
    vault.skip_to(5020).unwrap();
    let expected = || numbers.into_iter().chain(100..5000).chain(5010..5020);
    assert!(all(&vault).0.into_iter().eq(expected()));
    let reader = Vault::open(world.path(), LOG, Access::Read, &world.settings).unwrap();
    assert!(all(&reader).0.into_iter().eq(expected()));
}

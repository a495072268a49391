//! Erasing, without crashes.

use super::*;
use bulla_proof::hash::Hash;
use std::sync::atomic::AtomicU64;

#[test]
fn who_is_erased_is_gone_and_may_come_back_as_somebody_new() {
    let world = World::new();
    let vault = world.open();
    let people = fill(&vault, "s", 20);
    let (number, key) = (people[7].number, *people[7].key.bytes());

    let erasure = vault.begin_erasure(&["s7", "nobody"]).unwrap().unwrap();
    assert_eq!(erasure.numbers(), [number]);
    erasure.withdraw().unwrap();
    // What was written down of it is kept, and nothing else goes on with it.
    let written = Hash([7; 32]);
    let erasure = vault.begin_written_erasure(&[number], written).unwrap().unwrap();
    assert_eq!(vault.begin_erasure(&["s7"]).err().unwrap().kind(), ErrorKind::Refused);
    // Held back, and refused by name, number, and list.
    for refused in [vault.resolve(&["s1", "s7"]).err(), vault.find("s7").err(), vault.key(number).err()] {
        assert_eq!(refused.unwrap().kind(), ErrorKind::Erased);
    }
    vault.resolve(&["s1"]).unwrap();
    let committed = erasure.commit().unwrap();
    assert_eq!(committed.numbers(), [number]);
    assert!(vault.key(number).unwrap().is_none());
    assert!(world.file("roots/0.root").exists());
    let erased = committed.destroy().unwrap();
    assert_eq!((erased.numbers(), erased.generation()), (&[number][..], 1));
    assert_eq!(vault.generation().unwrap(), 1);
    assert_eq!(roots(&world), ["1.keys", "1.root"]);

    assert!(vault.find("s7").unwrap().is_none());
    let unconfirmed = vault.unconfirmed().unwrap().unwrap();
    assert_eq!(unconfirmed, Unconfirmed { numbers: vec![number], erased: true, written });
    assert_eq!(vault.begin_erasure(&["s1"]).err().unwrap().kind(), ErrorKind::Refused);
    assert_eq!(vault.confirm(&[number + 1]).unwrap_err().kind(), ErrorKind::Refused);
    vault.confirm(&[number]).unwrap();
    vault.confirm(&[number]).unwrap();
    assert!(vault.unconfirmed().unwrap().is_none());

    let again = &vault.resolve(&["s7"]).unwrap()[0];
    assert_eq!(again.number, 20, "a number is given once");
    assert_ne!(*again.key.bytes(), key);
    for (index, subject) in people.iter().enumerate().filter(|(index, _)| *index != 7) {
        assert_eq!(super::key(&vault, &format!("s{index}")), *subject.key.bytes());
    }
    assert_sound(&vault);
}

/// Somebody slow, who looked before the erasure and comes back after it.
#[test]
fn what_was_found_before_an_erasure_is_not_cached_after_it() {
    let world = World::new();
    let vault = world.open();
    let found = vault.resolve(&["alice", "bob"]).unwrap();
    let tags = ["alice", "bob"].map(|subject| vault.shared.cache.tag(subject));
    let tagged = tags.into_iter().zip(found).collect::<Vec<_>>();
    erase(&vault, &["alice"]).unwrap().unwrap();
    vault.shared.cache.clear();
    assert!(!vault.shared.admit(0, &tagged).unwrap());
    assert_eq!(vault.shared.cache.len(), 0);
    assert!(vault.shared.admit(1, &tagged[1..]).unwrap());
    assert_eq!(vault.shared.cache.len(), 1);
}

/// A root that was not destroyed when it should have been is, at the latest, when the erasure is confirmed.
#[test]
fn what_is_confirmed_is_destroyed() {
    let world = World::new();
    let vault = world.open();
    number(&vault, "alice");
    drop(vault.begin_erasure(&["alice"]).unwrap().unwrap().commit().unwrap());
    assert_eq!(roots(&world).len(), 4);
    vault.confirm(&[0]).unwrap();
    assert_eq!(roots(&world), ["1.keys", "1.root"]);
}

#[test]
fn nobody_is_erased_where_nobody_is_known() {
    let world = World::new();
    let vault = world.open();
    number(&vault, "alice");
    assert!(vault.begin_erasure(&["bob"]).unwrap().is_none());
    assert!(erase(&vault, &[]).unwrap().is_none());
    assert!(erase_numbers(&vault, &[1, 1 << 60]).unwrap().is_none());
    assert_eq!(vault.generation().unwrap(), 0);
    assert!(vault.unconfirmed().unwrap().is_none());
}

#[test]
fn an_erasure_can_be_taken_back_until_it_is_committed() {
    let world = World::new();
    let vault = world.open();
    let alice = vault.resolve(&["alice"]).unwrap().remove(0);
    vault.begin_erasure(&["alice"]).unwrap().unwrap().withdraw().unwrap();
    assert_eq!(key(&vault, "alice"), *alice.key.bytes());
    assert_eq!(number(&vault, "alice"), alice.number);
    assert!(vault.unconfirmed().unwrap().is_none());
    assert!(vault.resume_erasure().unwrap().is_none());
    // Begun twice is begun once; and what was begun is not withdrawn by being dropped.
    drop(vault.begin_erasure(&["alice"]).unwrap());
    drop(vault.begin_erasure(&["alice"]).unwrap());
    let resumed = vault.resume_erasure().unwrap().unwrap();
    resumed.commit().unwrap().destroy().unwrap();
    assert!(vault.find("alice").unwrap().is_none());
}

/// Several at once, of several buckets, some twice, some gone already.
#[test]
fn many_are_erased_in_one_generation() {
    let world = World::new();
    let vault = world.open();
    let people = fill(&vault, "s", 20_000);
    let gone = (0..20_000).step_by(61).map(|index| people[index].number).collect::<Vec<_>>();
    let twice = [&gone[..], &gone[..40], &[1 << 50]].concat();
    let erased = erase_numbers(&vault, &twice).unwrap().unwrap();
    assert_eq!(erased.numbers(), gone);
    assert_eq!(vault.generation().unwrap(), 1);
    assert_sound(&vault);
    for (index, subject) in people.iter().enumerate() {
        let found = vault.find(&format!("s{index}")).unwrap().map(|found| *found.key.bytes());
        assert_eq!(found.is_none(), gone.contains(&subject.number));
        assert!(found.is_none_or(|key| key == *subject.key.bytes()));
    }
    let many = (0..5000).collect::<Vec<_>>();
    vault.confirm(&gone).unwrap();
    assert_eq!(vault.begin_erasure_of(&many).err().unwrap().kind(), ErrorKind::Invalid);
}

/// A backup brings back who was erased since; the log's numbers are enough to erase them again.
#[test]
fn what_a_backup_brings_back_is_erased_again_by_number() {
    let world = World::new();
    let vault = world.open();
    let people = fill(&vault, "s", 10);
    drop(vault);
    let backup = World { place: tempfile::tempdir().unwrap(), settings: world.settings.clone() };
    copy(world.path(), backup.path());

    let vault = world.open();
    let erased = erase(&vault, &["s3", "s5"]).unwrap().unwrap();
    vault.confirm(erased.numbers()).unwrap();
    let next = vault.next_number().unwrap();
    drop(vault);

    let restored = backup.open();
    restored.require_at_least(next).unwrap();
    assert_eq!(key(&restored, "s3"), *people[3].key.bytes());
    let again = erase_numbers(&restored, erased.numbers()).unwrap().unwrap();
    assert_eq!(again.numbers(), erased.numbers());
    restored.confirm(again.numbers()).unwrap();
    assert!(erase_numbers(&restored, erased.numbers()).unwrap().is_none(), "once is enough");
    assert!(restored.find("s3").unwrap().is_none() && restored.find("s5").unwrap().is_none());
    assert_sound(&restored);
}

/// Whoever resolves while people are erased never gets a number after it was erased.
#[test]
fn nobody_gets_what_is_erased() {
    let world = World::with(Settings { cache: 64, ..Settings::default() });
    let vault = world.open();
    fill(&vault, "s", 50);
    // Numbers below it are gone.
    let gone = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let readers = (0..4).map(|thread| {
            let (vault, gone) = (&vault, &gone);
            scope.spawn(move || {
                let mut refused = 0;
                while gone.load(Ordering::SeqCst) < u64::MAX {
                    for index in 0..50 {
                        let below = gone.load(Ordering::SeqCst);
                        if below == u64::MAX {
                            break;
                        }
                        match vault.resolve(&[&format!("s{}", (index * 7 + thread) % 50)]) {
                            Ok(found) => assert!(found[0].number >= below, "{} {below}", found[0].number),
                            Err(error) => {
                                assert_eq!(error.kind(), ErrorKind::Erased, "{error}");
                                refused += 1;
                            }
                        }
                    }
                }
                refused
            })
        });
        let readers = readers.collect::<Vec<_>>();
        for number in 0..40 {
            // Each number that was ever given, in its order, so that everybody below is gone.
            if let Some(erased) = erase_numbers(&vault, &[number]).unwrap() {
                vault.confirm(erased.numbers()).unwrap();
            }
            gone.store(number + 1, Ordering::SeqCst);
        }
        gone.store(u64::MAX, Ordering::SeqCst);
        let refused = readers.into_iter().map(|reader| reader.join().unwrap()).sum::<u32>();
        assert!(refused > 0, "nobody was ever held back");
    });
    assert_sound(&vault);
}

fn roots(world: &World) -> Vec<String> {
    let store = FileSystem::new(world.file("roots"));
    store.list("").unwrap().into_iter().map(|item| item.name).collect()
}

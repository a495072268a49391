//! What was taught is known, and what holds no longer is not.

use crate::subject::{Learned, Span, Unkept};
use proptest::prelude::*;
use std::collections::HashMap;

/// What one client did alone at this time.
fn at(time: u64) -> Span {
    Span { came: time, answered: time, connection: 1 }
}

#[test]
fn what_was_taught_last_is_known() {
    let learned = Learned::new(1 << 20);
    assert_eq!(learned.lookup(0, b"key1"), None);
    assert!(!learned.teach(0, b"key1", "ada", at(1)) && !learned.teach(0, b"key1", "bob", at(1)));
    assert_eq!(learned.lookup(0, b"key1").as_deref(), Some("bob"));
    assert_eq!(learned.lookup(1, b"key1"), None, "of another database nothing was said");
    assert_eq!(format!("{learned:?}"), "Learned(1 keys)", "keys and subjects are not shown");
}

#[test]
fn who_is_erased_is_known_of_no_key() {
    let learned = Learned::new(1 << 20);
    for key in 0..10_u8 {
        learned.teach(u32::from(key % 3), &[key], if key % 2 == 0 { "ada" } else { "bob" }, at(1));
    }
    assert_eq!(learned.forget_subject("ada"), 5);
    assert_eq!(learned.forget_subject("ada"), 0);
    let mut left = Vec::new();
    learned.for_each(&mut |_, key, subject| left.push((key[0], subject.to_owned())));
    left.sort();
    assert_eq!(left, [1, 3, 5, 7, 9].map(|key| (key, "bob".to_owned())));
}

#[test]
fn it_has_room_for_what_it_was_given_and_counts_what_goes() {
    let learned = Learned::new(64 << 10);
    learned.teach(0, b"asked for", "ada", at(1));
    for key in 0..10_000_u32 {
        learned.teach(0, &key.to_be_bytes(), "bob", at(1));
        assert_eq!(learned.lookup(0, b"asked for").as_deref(), Some("ada"), "what is asked for stays");
    }
    assert!((200..1000).contains(&learned.count()), "{learned:?}");
    assert_eq!(learned.count() + learned.dropped(), 10_001);
    assert_eq!(learned.lookup(0, &9_999_u32.to_be_bytes()).as_deref(), Some("bob"));
    let dropped = learned.dropped();
    learned.teach(0, b"asked for", &"x".repeat(32 << 10), at(1));
    assert_eq!(
        learned.lookup(0, b"asked for"),
        None,
        "what fits nowhere is not kept, nor is what it was before"
    );
    assert_eq!(learned.dropped(), dropped + 1);
}

#[test]
fn a_key_that_is_gone_is_forgotten_unless_it_was_taught_since() {
    let learned = Learned::new(1 << 20);
    for key in [b"a", b"b", b"c"] {
        learned.teach(0, key, "ada", at(11));
    }
    learned.teach(0, b"b", "ada", at(21));
    learned.copy((0, b"c"), (0, b"d"), at(21));
    let others = |came| Span { came, answered: came, connection: 99 };
    for key in [b"a", b"b", b"d"] {
        learned.forget_gone(0, key, others(15));
    }
    assert_eq!(learned.lookup(0, b"a"), None);
    assert_eq!(learned.lookup(0, b"b").as_deref(), Some("ada"), "another command made it anew");
    assert_eq!(learned.lookup(0, b"d").as_deref(), Some("ada"), "it was made since");
    // Replies of one connection have an order, however its commands came.
    learned.forget_gone(0, b"d", Span { came: 15, ..at(21) });
    assert_eq!(learned.lookup(0, b"d"), None);
}

#[test]
fn who_keeps_it_is_told_each_change_once_and_nothing_that_has_passed() {
    let learned = Learned::new(1 << 20);
    learned.teach(0, b"before", "ada", at(1));
    assert!(learned.unkept().is_none(), "nobody asked for changes");
    learned.begin_keeping();
    let all = learned.unkept().unwrap();
    assert!(all.all && all.known.len() == 1 && *all.known[0].subject == *"ada");
    learned.teach(0, b"before", "ada", at(2));
    assert!(learned.lookup(0, b"before").is_some() && learned.unkept().is_none(), "that is no change");
    learned.teach(0, b"key", "bob", at(2));
    learned.teach(0, b"passing", "bob", at(2));
    learned.forget_key(0, b"passing", at(2));
    let Unkept { all, known, forgotten } = learned.unkept().unwrap();
    assert!(!all && known.len() == 1 && &*known[0].key == b"key");
    assert!(!forgotten.contains(&known[0].lesson));
    // What could not be kept yet is told again, unless it has passed.
    learned.keep_later(known.clone());
    assert_eq!(learned.unkept().unwrap().known, known);
    learned.keep_later(known.clone());
    learned.teach(0, b"key", "ada", at(3));
    let next = learned.unkept().unwrap();
    assert_eq!(next.forgotten, [known[0].lesson]);
    assert!(next.known.len() == 1 && *next.known[0].subject == *"ada");
    let mut both = [known, next.known.clone()].concat();
    learned.retain_known(&mut both);
    assert_eq!(both, next.known);
    learned.forget_subject("nobody");
    assert!(learned.unkept().is_none());
    learned.forget_subject("ada");
    let erased = learned.unkept().unwrap();
    assert!(erased.all && erased.known.is_empty());
}

#[derive(Clone, Debug)]
enum Step {
    Teach(u32, u8, u8),
    Lookup(u32, u8),
    ForgetKey(u32, u8),
    ForgetSubject(u8),
    ForgetDatabase(u32),
    ForgetAll,
    Rename((u32, u8), (u32, u8)),
    Copy((u32, u8), (u32, u8)),
    Swap(u32, u32),
}

fn step() -> impl Strategy<Value = Step> {
    let place = || (0_u32..3, 0_u8..6);
    prop_oneof![
        6 => (place(), 0_u8..3).prop_map(|((database, key), subject)| Step::Teach(database, key, subject)),
        3 => place().prop_map(|(database, key)| Step::Lookup(database, key)),
        2 => place().prop_map(|(database, key)| Step::ForgetKey(database, key)),
        1 => (0_u8..3).prop_map(Step::ForgetSubject),
        1 => (0_u32..3).prop_map(Step::ForgetDatabase),
        1 => Just(Step::ForgetAll),
        3 => (place(), place()).prop_map(|(from, to)| Step::Rename(from, to)),
        3 => (place(), place()).prop_map(|(from, to)| Step::Copy(from, to)),
        2 => (0_u32..3, 0_u32..3).prop_map(|(one, other)| Step::Swap(one, other)),
    ]
}

/// Does a step to both. What is told of a key on the way is what the map has of it.
fn carry_out(step: Step, learned: &Learned, model: &mut HashMap<(u32, u8), u8>) {
    match step {
        Step::Teach(database, key, subject) => {
            learned.teach(database, &[key], &subject.to_string(), at(1));
            model.insert((database, key), subject);
        }
        Step::Lookup(database, key) => {
            let told = learned.lookup(database, &[key]);
            let known = model.get(&(database, key)).map(u8::to_string);
            assert!(told == known || (told.is_none() && learned.dropped() > 0));
        }
        Step::ForgetKey(database, key) => {
            learned.forget_key(database, &[key], at(1));
            model.remove(&(database, key));
        }
        Step::ForgetSubject(subject) => {
            learned.forget_subject(&subject.to_string());
            model.retain(|_, known| *known != subject);
        }
        Step::ForgetDatabase(database) => {
            learned.forget_database(database, at(1));
            model.retain(|(known, _), _| *known != database);
        }
        Step::ForgetAll => {
            learned.forget_all(at(1));
            model.clear();
        }
        Step::Rename(from, to) => {
            learned.copy((from.0, &[from.1]), (to.0, &[to.1]), at(1));
            if from != to {
                learned.forget_key(from.0, &[from.1], at(1));
            }
            let known = model.remove(&from);
            model.remove(&to);
            model.extend(known.map(|known| (to, known)));
        }
        Step::Copy(from, to) => {
            learned.copy((from.0, &[from.1]), (to.0, &[to.1]), at(1));
            let known = model.get(&from).copied();
            model.remove(&to);
            model.extend(known.map(|known| (to, known)));
        }
        Step::Swap(one, other) => {
            learned.swap_databases(one, other, at(1));
            let swapped = |database| match database {
                it if it == one => other,
                it if it == other => one,
                it => it,
            };
            let keys = std::mem::take(model).into_iter();
            model.extend(keys.map(|((database, key), known)| ((swapped(database), key), known)));
        }
    }
}

/// Does to what is kept, by its lesson, what has changed.
fn keep(learned: &Learned, kept: &mut HashMap<u64, (u32, Vec<u8>, String)>) {
    let Some(Unkept { all, known, forgotten }) = learned.unkept() else { return };
    if all {
        kept.clear();
    }
    for it in known {
        assert!(kept.insert(it.lesson, (it.database, it.key.to_vec(), it.subject.to_string())).is_none());
    }
    forgotten.iter().for_each(|lesson| drop(kept.remove(lesson)));
}

proptest! {
    /// Against one plain map; with room for a few keys only, what is known is what that map has, or nothing.
    #[test]
    fn it_knows_what_a_plain_map_knows(
        steps in proptest::collection::vec(step(), 0..60),
        room in prop_oneof![Just(700_usize), Just(1 << 20)],
    ) {
        let learned = Learned::new(room);
        learned.begin_keeping();
        let (mut model, mut kept) = (HashMap::new(), HashMap::new());
        for (number, step) in steps.into_iter().enumerate() {
            carry_out(step, &learned, &mut model);
            if number % 3 == 0 {
                keep(&learned, &mut kept);
            }
            let mut there = 0;
            learned.for_each(&mut |database, key, subject| {
                there += 1;
                assert_eq!(model.get(&(database, key[0])).map(u8::to_string).as_deref(), Some(subject));
            });
            prop_assert_eq!(learned.count(), there);
            prop_assert!(learned.dropped() > 0 || learned.count() == model.len() as u64);
        }
        keep(&learned, &mut kept);
        let mut known = Vec::new();
        learned.for_each(&mut |database, key, subject| known.push((database, key.to_vec(), subject.to_owned())));
        known.sort();
        let mut kept = kept.into_values().collect::<Vec<_>>();
        kept.sort();
        prop_assert_eq!(kept, known, "what is kept is what is known");
    }
}

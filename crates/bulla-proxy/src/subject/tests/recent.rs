//! What two clients do to one key at the same time: nobody knows what was last, and nothing is told that may not be so.

use crate::subject::{Learned, Span};
use proptest::prelude::*;
use std::collections::HashMap;

fn span(came: u64, answered: u64, connection: u64) -> Span {
    Span { came, answered, connection }
}

/// Has a key taught by a command, and settles it as whoever records the command does.
fn teach(learned: &Learned, key: (u32, &[u8]), subject: &str, span: Span) {
    if learned.teach(key.0, key.1, subject, span) {
        assert_eq!(
            learned.lookup(key.0, key.1).as_deref(),
            Some(subject),
            "its own entry is of whom it says"
        );
        learned.forget_contested(key.0, key.1, span);
    }
}

fn copy(learned: &Learned, from: (u32, &[u8]), to: (u32, &[u8]), span: Span) {
    if learned.copy(from, to, span) {
        learned.forget_contested(to.0, to.1, span);
    }
}

#[test]
fn a_key_that_two_clients_change_at_once_is_nobodys_until_one_changes_it_alone() {
    let change = |learned: &Learned, teaches: bool, span| match teaches {
        true => teach(learned, (0, b"key"), "ada", span),
        false => learned.forget_key(0, b"key", span),
    };
    for first_teaches in [true, false] {
        let learned = Learned::new(1 << 20);
        change(&learned, first_teaches, span(10, 20, 1));
        change(&learned, !first_teaches, span(15, 25, 2));
        assert_eq!(learned.lookup(0, b"key"), None);
        // Neither of both is alone with what is still under way.
        teach(&learned, (0, b"key"), "ada", span(16, 26, 1));
        assert_eq!(learned.lookup(0, b"key"), None);
        teach(&learned, (0, b"key"), "bob", span(27, 28, 2));
        assert_eq!(learned.lookup(0, b"key").as_deref(), Some("bob"));
    }
}

#[test]
fn what_one_client_sends_at_once_and_what_two_say_alike_is_known() {
    let learned = Learned::new(1 << 20);
    learned.forget_key(0, b"key", span(10, 20, 1));
    teach(&learned, (0, b"key"), "ada", span(10, 20, 1));
    assert_eq!(learned.lookup(0, b"key").as_deref(), Some("ada"));
    teach(&learned, (0, b"key"), "ada", span(21, 25, 1));
    teach(&learned, (0, b"key"), "ada", span(22, 26, 2));
    assert_eq!(learned.lookup(0, b"key").as_deref(), Some("ada"));
    learned.forget_all(span(30, 40, 1));
    teach(&learned, (0, b"key"), "ada", span(30, 40, 1));
    teach(&learned, (0, b"other"), "ada", span(30, 40, 2));
    assert_eq!(learned.lookup(0, b"key").as_deref(), Some("ada"));
    assert_eq!(learned.lookup(0, b"other"), None);
}

#[test]
fn however_much_changes_at_once_nothing_is_taken_to_be_alone_that_is_not() {
    let learned = Learned::new(1 << 20);
    learned.forget_key(0, b"key", span(10, 20, 1));
    for key in 0..100_000_u32 {
        learned.forget_key(0, &key.to_be_bytes(), span(10, 20, 1));
    }
    teach(&learned, (0, b"key"), "ada", span(15, 25, 2));
    assert_eq!(learned.lookup(0, b"key"), None);
    teach(&learned, (0, b"key"), "ada", span(26, 27, 2));
    assert_eq!(learned.lookup(0, b"key").as_deref(), Some("ada"));
}

type Place = (u32, u8);

#[derive(Clone, Debug)]
enum Step {
    Teach(Place, u8),
    WriteOver(Place),
    Delete(Place),
    Rename(Place, Place),
    Copy(Place, Place),
    FlushDatabase(u32),
    FlushAll,
    Swap(u32, u32),
}

fn step() -> impl Strategy<Value = Step> {
    let place = || (0_u32..2, 0_u8..3);
    prop_oneof![
        6 => (place(), 0_u8..3).prop_map(|(place, subject)| Step::Teach(place, subject)),
        1 => place().prop_map(Step::WriteOver),
        4 => place().prop_map(Step::Delete),
        3 => (place(), place()).prop_map(|(from, to)| Step::Rename(from, to)),
        3 => (place(), place()).prop_map(|(from, to)| Step::Copy(from, to)),
        1 => (0_u32..2).prop_map(Step::FlushDatabase),
        1 => Just(Step::FlushAll),
        1 => (0_u32..2, 0_u32..2).prop_map(|(one, other)| Step::Swap(one, other)),
    ]
}

/// The keys of a server, and whose data each is, if its value says so.
type Keys = HashMap<Place, Option<u8>>;

/// Has the server do a step. Whether it could.
fn serve(step: &Step, keys: &mut Keys) -> bool {
    match *step {
        Step::Teach(place, subject) => drop(keys.insert(place, Some(subject))),
        Step::WriteOver(place) => drop(keys.insert(place, None)),
        Step::Delete(place) => drop(keys.remove(&place)),
        Step::Rename(from, to) => match keys.remove(&from) {
            Some(value) => drop(keys.insert(to, value)),
            None => return false,
        },
        Step::Copy(from, to) => match keys.get(&from).copied() {
            Some(value) => drop(keys.insert(to, value)),
            None => return false,
        },
        Step::FlushDatabase(database) => keys.retain(|place, _| place.0 != database),
        Step::FlushAll => keys.clear(),
        Step::Swap(one, other) => {
            let swapped = |it| {
                if it == one {
                    other
                } else if it == other {
                    one
                } else {
                    it
                }
            };
            *keys = keys.drain().map(|((database, key), value)| ((swapped(database), key), value)).collect();
        }
    }
    true
}

/// Tells of a step that the server did.
fn tell(step: &Step, span: Span, learned: &Learned) {
    match *step {
        Step::Teach(place, subject) => teach(learned, (place.0, &[place.1]), &subject.to_string(), span),
        Step::WriteOver(place) | Step::Delete(place) => learned.forget_key(place.0, &[place.1], span),
        Step::Rename(from, to) if from != to => {
            copy(learned, (from.0, &[from.1]), (to.0, &[to.1]), span);
            learned.forget_key(from.0, &[from.1], span);
        }
        Step::Rename(..) => {}
        Step::Copy(from, to) => copy(learned, (from.0, &[from.1]), (to.0, &[to.1]), span),
        Step::FlushDatabase(database) => learned.forget_database(database, span),
        Step::FlushAll => learned.forget_all(span),
        Step::Swap(one, other) => learned.swap_databases(one, other, span),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]
    /// Whatever several clients do, and however long commands and replies are on their way: what is known is so.
    #[test]
    fn what_is_known_is_what_the_server_did_last(
        steps in proptest::collection::vec((step(), 0_u64..3, 0_u64..40, 0_u64..40), 1..40),
    ) {
        let (mut keys, learned) = (Keys::new(), Learned::new(1 << 20));
        let mut done = Vec::new();
        for (number, (step, connection, before, after)) in (0..).zip(steps) {
            let time = 100 + 10 * number;
            let mut span = span(time - before, time + after, connection);
            // What comes on one connection is done, and answered, in its order.
            for (other, _) in done.iter().filter(|(other, _): &&(Span, Step)| other.connection == connection) {
                span.came = span.came.max(other.came);
                span.answered = span.answered.max(other.answered);
            }
            if serve(&step, &mut keys) {
                done.push((span, step));
            }
        }
        // Of the replies of one connection the first is told first.
        done.sort_by_key(|(span, _)| span.answered);
        done.iter().for_each(|(span, step)| tell(step, *span, &learned));
        learned.for_each(&mut |database, key, subject| {
            let value = keys.get(&(database, key[0])).copied().flatten();
            assert_eq!(value.map(|it| it.to_string()).as_deref(), Some(subject), "{done:?}");
        });
    }
}

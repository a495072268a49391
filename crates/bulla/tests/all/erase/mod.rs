//! Erasing data subjects: what is gone, what stays, and what happens when it is cut short.

mod another_vault;
mod copies;
mod everybody;
mod held_meanwhile;
mod hold_orders;
mod holds;
mod lost_seal_state;
mod malformed;
mod older_log;
mod older_pages;
mod order;
mod personal;
mod preview;
mod pseudonyms;
mod rekey;
mod replica;
mod restore_stops;
mod restored;
mod seal_state_ahead;
mod states;
mod stops;
mod swapped;
pub(crate) mod world;

use bulla::event::{Event, Remains};
use bulla::proof::{EventProof, ProofFile};
use bulla::{ErrorKind, Log, Options};
use world::World;

#[test]
fn an_erased_data_subject_is_gone_and_everybody_else_is_there() {
    let world = World::new();
    world.append(0..500);
    let log = Log::open(&world.directory, Options::default()).unwrap();
    let erasure = log.erase(&world.order(&["user_7"])).unwrap();
    assert_eq!((erasure.numbers.len(), erasure.unknown.len(), erasure.before), (1, 0, false));
    log.close().unwrap();
    let (whole, withheld) = world.entries();
    // Every tenth entry is of two people, and falls with either.
    let of_them = |number: &u64| World::subjects(*number).contains(&"user_7".to_owned());
    assert_eq!(withheld, (0..500).filter(of_them).collect::<Vec<_>>());
    assert_eq!(whole, (0..500).filter(|number| !of_them(number)).collect::<Vec<_>>());
    assert!(world.verified().ok);
}

#[test]
fn an_erasure_goes_on_beside_appending_and_loses_nothing() {
    let world = World::new();
    let log = Log::open(&world.directory, Options::default()).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let (appended, erased) = std::thread::scope(|scope| {
        let appending = scope.spawn(|| {
            let mut producer = log.producer().unwrap();
            let mut number = 0;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) || number < 2000 {
                World::put(&mut producer, number);
                number += 1;
                if number % 100 == 0 {
                    producer.flush().unwrap().durable().unwrap();
                }
            }
            number
        });
        let mut erased = Vec::new();
        for _ in 0..4 {
            for subject in ["user_3", "user_4"] {
                loop {
                    match log.erase(&world.order(&[subject])) {
                        Ok(erasure) => break erased.extend(erasure.numbers),
                        // Nobody of that name was sealed since the last time.
                        Err(error) => assert_eq!(error.kind(), ErrorKind::Refused, "{error}"),
                    }
                }
            }
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        (appending.join().unwrap(), erased)
    });
    log.close().unwrap();
    assert_eq!(erased.len(), 8);
    let distinct = erased.iter().collect::<std::collections::BTreeSet<_>>();
    assert_eq!(distinct.len(), 8, "a person who is back has another number");
    let (mut whole, withheld) = world.entries();
    assert!(
        !withheld.is_empty()
            && withheld.iter().all(|number| {
                let subjects = World::subjects(*number);
                subjects.contains(&"user_3".to_owned()) || subjects.contains(&"user_4".to_owned())
            })
    );
    whole.extend(withheld);
    whole.sort_unstable();
    assert_eq!(whole, (0..appended).collect::<Vec<_>>());
    assert!(world.verified().ok);
}

#[test]
fn an_erasure_has_a_certificate() {
    let world = World::new();
    world.append(0..100);
    let log = Log::open(&world.directory, Options::default()).unwrap();
    let order = world.order_for(&["user_7", "nobody"], Some("request of 2026-03-01"));
    let erasure = log.erase(&order).unwrap();
    assert_eq!(erasure.unknown, ["nobody"]);
    let file = world.reader().prove_event(erasure.frame).unwrap().render();
    let ProofFile::Event(certificate) = ProofFile::parse(file.as_bytes()).unwrap() else { panic!("{file}") };
    let checked = certificate.verify(Some(&world.key)).unwrap();
    assert_eq!(checked.commitment().frame, erasure.frame);
    let Event::Erased { numbers, carried_out, order: note, remains } =
        Event::decode(checked.event()).unwrap()
    else {
        panic!("another event")
    };
    assert_eq!(carried_out, [0], "of the two names the first, and not the one that nobody knew");
    assert_eq!((numbers, &note[..], remains), (erasure.numbers, order.note(), Remains::all(true)));
    assert!(note.contains("\nreason request of 2026-03-01\n") && !note.contains("user_7"), "{note}");

    log.close().unwrap();
    let before = world.reader().prove_event(erasure.frame - 1).unwrap_err();
    assert_eq!(before.kind(), ErrorKind::Refused, "{before}");
    let other = World::new();
    assert!(EventProof::parse(file.as_bytes()).unwrap().verify(Some(&other.key)).is_err());
}

#[test]
fn the_same_order_is_carried_out_once() {
    let world = World::new();
    world.append(0..100);
    let order = world.order(&["nobody", "user_7"]);
    let log = Log::open(&world.directory, Options::default()).unwrap();
    let erasure = log.erase(&order).unwrap();
    log.close().unwrap();
    // The person is back.
    world.append(100..200);
    let log = Log::open(&world.directory, Options::default()).unwrap();
    let again = log.erase(&order).unwrap();
    assert_eq!((again.before, again.frame, again.numbers), (true, erasure.frame, erasure.numbers));
    assert_eq!((erasure.unknown, again.unknown), (vec!["nobody".to_owned()], vec!["nobody".to_owned()]));
    log.close().unwrap();
    let (_, withheld) = world.entries();
    assert!(withheld.iter().all(|number| *number < 100) && !withheld.is_empty());
}

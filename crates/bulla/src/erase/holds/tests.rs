use super::*;
use crate::admin::init::Init;
use crate::erase::hold_order::{HoldOrder, ReleaseOrder};
use crate::erase::signed_with::CountingKey;
use crate::format::config;
use bulla_crypto::environment::Environment;
use bulla_crypto::signing::SigningKey;
use bulla_proof::commitment::LogId;
use bulla_store::FileSystem;
use std::path::PathBuf;

/// A log without entries, and who may order.
struct World {
    config: LogConfig,
    key: SigningKey,
    keys: PathBuf,
    _place: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("audit");
        Init::default().create(&directory).unwrap();
        let keys = place.path().join("audit.keys");
        let key = std::fs::read_to_string(keys.join("erasure.key")).unwrap();
        let (config, _) = config::load(&FileSystem::new(&directory)).unwrap();
        World { config, key: SigningKey::parse(&key).unwrap(), keys, _place: place }
    }

    fn order_by(&self, key: &SigningKey, log: LogId, by: &str) -> HoldOrder {
        HoldOrder::give(key, log, "somebody", (by, "why"), &Environment::default()).unwrap()
    }

    fn hold(&self, number: u64, by: &str, frame: Option<u64>) -> Hold {
        let order = self.order_by(&self.key, self.config.id, by);
        Hold { number, frame, ..hold_of(&order) }
    }

    fn release(&self, hold: &Hold) -> String {
        let order =
            ReleaseOrder::give(&self.key, self.config.id, &hold.order, ("a", "b"), &Environment::default());
        order.unwrap().note().to_owned()
    }

    fn take(&self, told: &mut ToldHolds, frame: u64, event: &Event) -> Option<String> {
        let keys = self.config.erasure_key.clone().map(|key| CountingKey { key, is_trusted: true });
        told.take(self.config.id, keys.as_slice(), (frame, 9), event)
    }

    fn told(&self, events: &[(u64, Event)]) -> ToldHolds {
        let mut told = ToldHolds::default();
        for (frame, event) in events {
            assert_eq!(self.take(&mut told, *frame, event), None);
        }
        told
    }

    /// What is objected to each of these events, which come one after the other.
    fn objections(&self, events: &[(u64, Event)]) -> (Vec<String>, ToldHolds) {
        let mut told = ToldHolds::default();
        let each =
            events.iter().map(|(frame, event)| self.take(&mut told, *frame, event).unwrap_or_default());
        (each.collect(), told)
    }

    fn check(&self, holds: &Holds) -> std::result::Result<(), String> {
        holds.check(&FileSystem::new(&self.keys), &self.config, None).map_err(|error| error.to_string())
    }
}

fn hold_of(order: &HoldOrder) -> Hold {
    Hold {
        number: 7,
        by: order.by().to_owned(),
        reason: order.reason().to_owned(),
        since: 5,
        frame: None,
        order: order.note().to_owned(),
        salts: Some(order.salts().clone()),
        release: None,
    }
}

fn held(frame: u64, hold: &Hold) -> (u64, Event) {
    (frame, Event::Held { number: hold.number, order: hold.order.clone() })
}

fn released(frame: u64, number: u64, held: u64, order: &str) -> (u64, Event) {
    (frame, Event::Released { number, held, order: order.to_owned() })
}

fn follow(holds: &mut Holds, told: &ToldHolds) -> Vec<HoldDifference> {
    holds.follow(told, |frame| Ok(format!("the order in frame {frame}"))).unwrap()
}

#[test]
fn what_was_about_to_be_told_and_was_is_no_difference() {
    let world = World::new();
    let [a, b] = [("a", None), ("b", None)].map(|(by, frame)| world.hold(7, by, frame));
    let mut holds = Holds { told: 0, holds: vec![a.clone()] };
    assert_eq!(holds.untold(), Some((0, held(0, &a).1)));
    let first = world.told(&[held(3, &a)]);
    assert_eq!(follow(&mut holds, &first), []);
    assert_eq!((holds.holds[0].frame, holds.told, holds.untold()), (Some(3), 4, None));
    // Another one holds, too, and the first is released.
    assert!(holds.add(b.clone()).unwrap());
    holds.was_told(1, 5);
    let release = world.release(&a);
    holds.release(&order_digest(&a.order), &release).unwrap();
    assert_eq!(world.check(&holds), Ok(()));
    assert_eq!(holds.untold(), Some((0, released(0, 7, 3, &release).1)));
    let all = world.told(&[held(3, &a), held(5, &b), released(8, 7, 3, &release)]);
    assert_eq!(follow(&mut holds, &all), []);
    assert_eq!((holds.told, holds.holds), (9, vec![Hold { frame: Some(5), ..b }]));
}

#[test]
fn where_the_file_differs_the_log_counts_and_the_difference_is_told() {
    let world = World::new();
    let [seven, eight, nine] = [7, 8, 9].map(|number| world.hold(number, "legal", None));
    let log = world.told(&[
        held(3, &seven),
        held(4, &eight),
        released(5, 8, 4, &world.release(&eight)),
        held(6, &nine),
    ]);
    // The file was deleted.
    let mut holds = Holds::default();
    let missing = [(7, 3), (9, 6)].map(|(number, frame)| HoldDifference::Missing { number, frame });
    assert_eq!(follow(&mut holds, &log), missing);
    let made_up = holds.holds.iter().map(|hold| (hold.number, hold.frame, &hold.order[..]));
    assert_eq!(
        made_up.collect::<Vec<_>>(),
        [(7, Some(3), "the order in frame 3"), (9, Some(6), "the order in frame 6")]
    );
    assert!(holds.refuse(&[9]).unwrap_err().to_string().contains("unknown (frame 6)"));
    // It has what it has now, and no difference any more.
    let order_in = |frame| Ok(if frame == 3 { &seven } else { &nine }.order.clone());
    let mut holds = Holds::default();
    holds.follow(&log, order_in).unwrap();
    assert_eq!((follow(&mut holds, &log), holds.untold(), world.check(&holds)), (vec![], None, Ok(())));
    // An older file, and one that names frames in which there is no such thing.
    let at = |hold: &Hold, frame| Hold { frame: Some(frame), ..hold.clone() };
    let mut holds = Holds { told: 5, holds: vec![at(&seven, 3), at(&eight, 4)] };
    let expected = vec![
        HoldDifference::Released { number: 8, frame: 4 },
        HoldDifference::Missing { number: 9, frame: 6 },
    ];
    assert_eq!(follow(&mut holds, &log), expected);
    // One that was about to be told, and was released since.
    let mut holds = Holds { told: 0, holds: vec![at(&seven, 3), eight.clone(), at(&nine, 6)] };
    assert_eq!(follow(&mut holds, &log), [HoldDifference::Released { number: 8, frame: 4 }]);
    let other = world.hold(1, "legal", Some(3));
    let mut holds = Holds { told: 7, holds: vec![other.clone(), at(&nine, 6)] };
    let expected =
        vec![HoldDifference::Untold { number: 1, frame: 3 }, HoldDifference::Missing { number: 7, frame: 3 }];
    assert_eq!(follow(&mut holds, &log), expected);
    assert_eq!(holds.untold(), Some((0, held(0, &other).1)), "whoever is in the file is held");
    // The same number in the same frame, by another order: that is another hold.
    let mut holds = Holds { told: 7, holds: vec![world.hold(7, "legal", Some(3)), at(&nine, 6)] };
    assert_eq!(follow(&mut holds, &log).len(), 2);
}

#[test]
fn a_hold_or_a_release_that_nobody_ordered_so_is_objected_to_and_releases_nobody() {
    let world = World::new();
    let [seven, eight] = [7, 8].map(|number| world.hold(number, "legal", None));
    let stranger = SigningKey::from_seed("example.com/erasure", &zeroize::Zeroizing::new([1; 32])).unwrap();
    let by_stranger = hold_of(&world.order_by(&stranger, world.config.id, "legal"));
    let elsewhere = hold_of(&world.order_by(&world.key, LogId([1; 16]), "legal"));
    let not_signed = "its order does not hold";
    for (order, said) in [
        (&by_stranger.order[..], not_signed),
        (&elsewhere.order, "it is for another log"),
        (&world.release(&seven), "it is to hold where it has to be to release"),
        ("an order", not_signed),
        ("", not_signed),
    ] {
        let event = (3, Event::Held { number: 7, order: order.to_owned() });
        let (said_of, told) = world.objections(&[event]);
        assert!(said_of[0].contains(said), "{order}: {said_of:?}");
        assert_eq!(told.held_of(&[7]), [(7, 3)], "who is held is held, by whatever order");
    }
    let (mine, theirs) = (world.release(&seven), world.release(&eight));
    let other_hold = "about another hold than that of frame 3";
    let no_hold = "tells of no hold that was not released before";
    for (number, held_in, order, said) in [
        (7, 3, &theirs, other_hold),
        (8, 3, &mine, other_hold),
        (8, 3, &theirs, other_hold),
        (7, 2, &mine, "frame 2 tells of no hold"),
        (7, 5, &mine, no_hold),
        (7, 3, &seven.order, "it is to hold where it has to be to release"),
        (7, 3, &"an order".to_owned(), not_signed),
    ] {
        let (said_of, told) =
            world.objections(&[held(3, &seven), held(4, &eight), released(5, number, held_in, order)]);
        assert!(said_of[..2].iter().all(String::is_empty) && !said_of[2].is_empty(), "{said_of:?}");
        assert!(said_of[2].contains(said) || order == &seven.order, "{said}: {said_of:?}");
        assert_eq!(told.held_of(&[7, 8]), [(7, 3), (8, 4)]);
    }
    // Once, and whatever other signatures stand beneath it.
    let again = mine.clone() + "\u{2014} somebody AAAAAAAA\n";
    let (said, told) = world.objections(&[
        held(3, &seven),
        released(4, 7, 3, &mine),
        held(5, &seven),
        released(6, 7, 5, &again),
        released(7, 7, 5, &world.release(&seven)),
    ]);
    assert_eq!((&said[0][..], &said[1][..], &said[4][..]), ("", "", ""), "{said:?}");
    assert!(said[2..4].iter().all(|said| said.contains("carried out before")), "{said:?}");
    assert_eq!(told.held_of(&[7]), [], "even a hold that nobody ordered can be released");
    // Whichever of several keys signed it, if that one is trusted.
    let of = |key: &SigningKey, is_trusted| CountingKey { key: key.verifier().clone(), is_trusted };
    let (mine, untrusted, other) = (of(&world.key, true), of(&world.key, false), of(&stranger, true));
    let by =
        |keys: &[CountingKey]| ToldHolds::default().take(world.config.id, keys, (3, 9), &held(3, &seven).1);
    assert!(by(&[]).unwrap().contains("no key"));
    assert_eq!(by(&[other.clone(), mine.clone()]), None);
    assert_eq!(by(&[mine, other.clone()]), None);
    assert!(by(std::slice::from_ref(&other)).unwrap().contains("does not hold"));
    assert!(by(&[untrusted.clone(), other]).unwrap().contains("none of the erasure keys that were given"));
    // A release by a key that is not trusted releases nobody.
    let mut told = world.told(&[held(3, &seven)]);
    let release = released(4, 7, 3, &world.release(&seven)).1;
    assert!(told.take(world.config.id, &[untrusted], (4, 9), &release).is_some());
    assert_eq!(told.held_of(&[7]), [(7, 3)]);
}

#[test]
fn what_may_be_lost_is_not_held_against_a_release() {
    let world = World::new();
    let seven = world.hold(7, "legal", None);
    let mut told = ToldHolds::default();
    told.lose(4);
    assert_eq!(world.take(&mut told, 5, &released(5, 7, 3, &world.release(&seven)).1), None);
    assert!(world.take(&mut told, 6, &released(6, 7, 4, &world.release(&seven)).1).is_some());
    assert!(world.take(&mut told, 7, &released(7, 7, 3, "an order").1).is_some());
}

#[test]
fn a_file_that_would_have_the_log_tell_what_nobody_ordered_is_damaged() {
    let world = World::new();
    let stranger = SigningKey::from_seed("example.com/erasure", &zeroize::Zeroizing::new([1; 32])).unwrap();
    let good = world.hold(7, "legal", None);
    let by_stranger = hold_of(&world.order_by(&stranger, world.config.id, "legal"));
    let elsewhere = hold_of(&world.order_by(&world.key, LogId([1; 16]), "legal"));
    let other = world.hold(8, "legal", None);
    let told = Hold { frame: Some(3), ..good.clone() };
    let releasing = |release: &str| Hold { release: Some(release.to_owned()), ..told.clone() };
    let check = |holds: &[&Hold]| {
        world.check(&Holds { told: 0, holds: holds.iter().map(|it| (*it).clone()).collect() })
    };
    assert_eq!(check(&[&good, &other, &releasing(&world.release(&told))].map(|it| it)[..2]), Ok(()));
    assert_eq!(check(&[&releasing(&world.release(&told))]), Ok(()));
    // What the log tells of it has with what that is worth.
    assert_eq!(check(&[&Hold { order: "an order".to_owned(), salts: None, ..told.clone() }]), Ok(()));
    for (holds, said) in [
        (&[&by_stranger][..], "it has to be signed with"),
        (&[&elsewhere], "for another log"),
        (&[&Hold { order: world.release(&good), ..good.clone() }], "it is to hold where"),
        (&[&good, &told], "it is there twice"),
        (&[&Hold { by: "sales".to_owned(), ..told.clone() }], "by somebody else"),
        (&[&Hold { reason: "whim".to_owned(), ..good.clone() }], "for another reason"),
        (&[&releasing(&world.release(&other))], "about another hold"),
        (&[&releasing("an order")], "the order to release data subject 7"),
    ] {
        let error = check(holds).unwrap_err();
        assert!(error.contains("holds is damaged") && error.contains(said), "{said}: {error}");
    }
}

#[test]
fn a_hold_of_which_a_lost_frame_told_stays_in_the_file_until_it_is_released() {
    let world = World::new();
    let [seven, eight, nine] =
        [(7, 4), (8, 5), (9, 2)].map(|(number, frame)| world.hold(number, "legal", Some(frame)));
    let untold = world.hold(6, "legal", Some(7));
    let all = || Holds { told: 6, holds: vec![seven.clone(), eight.clone(), untold.clone()] };
    let mut told = ToldHolds::without(vec![4..6, 11..12]);
    assert_eq!(world.take(&mut told, 2, &held(2, &nine).1), None);
    let mut holds = all();
    // What is at hand counts as ever: a hold that the file lacks, and one of which no frame told.
    let differences = follow(&mut holds, &told);
    let [HoldDifference::Untold { number: 6, frame: 7 }, HoldDifference::Missing { number: 9, frame: 2 }] =
        differences[..]
    else {
        panic!("{differences:?}")
    };
    assert_eq!(holds.holds[..2], [seven.clone(), eight.clone()]);
    assert!(holds.holds[3].reason.ends_with("frames are lost that may have told of its release"));
    for number in [7, 8, 9] {
        holds.refuse(&[number]).unwrap_err();
    }
    // By the order that it was held by, and on that number, it is released.
    let release = world.release(&seven);
    for (number, frame) in [(8, 5), (7, 5), (8, 4)] {
        let mut told = told.clone();
        world.take(&mut told, 9, &released(9, number, frame, &release).1);
        let mut holds = all();
        follow(&mut holds, &told);
        assert_eq!(holds.holds[..2], [seven.clone(), eight.clone()], "{number} {frame}");
    }
    assert_eq!(world.take(&mut told, 9, &released(9, 7, 4, &release).1), None);
    let mut holds = all();
    assert_eq!(follow(&mut holds, &told)[0], HoldDifference::Released { number: 7, frame: 4 });
    assert_eq!(holds.holds[0], eight);
    // What was about to be told and was is no difference.
    let mut holds = all();
    holds.holds[0].release = Some(release);
    assert_eq!(follow(&mut holds, &told)[0], HoldDifference::Untold { number: 6, frame: 7 });
    assert_eq!(holds.holds[0], eight);
}

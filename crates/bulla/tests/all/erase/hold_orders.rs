//! Nobody is held or released unnoticed but by whoever has the log's erasure key.

use super::world::World;
use crate::damage::image::Image;
use crate::damage::layout::{HEAD, Layout, SEAL};
use crate::damage::world::{in_tree, signed};
use crate::second_reader::second_reader;
use bulla::environment::Environment;
use bulla::event::Event;
use bulla::keys::signing::SigningKey;
use bulla::store::FileSystem;
use bulla::{
    Configure, ErasureKeyChange, ErasureOrder, ErrorKind, FindingKind, HoldDifference, HoldOrder, Log, LogId,
    Options, Reader, ReleaseOrder, Report,
};
use bulla_proof::commitment::Commitment;
use bulla_proof::hash::sha256;
use bulla_proof::hold_order::HoldNote;
use bulla_vault::Access;
use std::fs;

fn open(world: &World) -> Log {
    Log::open(&world.directory, Options::default()).unwrap()
}

/// The log's erasure key.
fn key(world: &World) -> SigningKey {
    SigningKey::parse(&fs::read_to_string(world.keys().join("erasure.key")).unwrap()).unwrap()
}

/// A key by the same name, and not that one.
fn other_key(world: &World) -> SigningKey {
    SigningKey::from_seed(key(world).verifier().name(), &zeroize::Zeroizing::new([1; 32])).unwrap()
}

fn hold_with(key: &SigningKey, log: LogId, subject: &str) -> HoldOrder {
    HoldOrder::give(key, log, subject, ("legal", "case 4711"), &Environment::default()).unwrap()
}

fn release_with(key: &SigningKey, log: LogId, hold: &str) -> ReleaseOrder {
    ReleaseOrder::give(key, log, hold, ("legal", "it is closed"), &Environment::default()).unwrap()
}

/// The frames of findings of this kind. Whoever lists the events, and another implementation, finds the same.
fn found(world: &World, kind: FindingKind) -> Vec<u64> {
    let report: Report = world.verified();
    let all = report.findings.iter();
    let found = all.filter(|finding| finding.kind == kind).map(|finding| finding.frame.unwrap()).collect();
    let mut objections = Vec::new();
    let events = Reader::open(&world.directory).unwrap().events(|logged| {
        objections.extend(logged.objection.as_ref().map(|_| logged.frame));
        Ok(())
    });
    events.unwrap();
    let mut told = report.findings.iter().filter_map(|finding| finding.frame).collect::<Vec<_>>();
    told.dedup();
    assert_eq!(objections, told, "{report:?}");
    let output = second_reader(&world.key).arg(&world.directory).output().expect("python3 is there");
    let said = String::from_utf8_lossy(&output.stdout);
    for finding in &report.findings {
        let line = said.lines().find(|line| line.contains(finding.kind.name()));
        assert!(line.is_some(), "{}: {said}", finding.kind);
    }
    assert_eq!(output.status.success(), report.ok, "{said}");
    found
}

#[test]
fn only_who_has_the_erasure_key_can_have_somebody_held_or_released() {
    let world = World::new();
    world.append(0..60);
    let (mine, other) = (key(&world), other_key(&world));
    let log = open(&world);
    let refused = |result: bulla::Result<()>, said: &str| {
        let error = result.unwrap_err();
        assert!(error.kind() == ErrorKind::Refused && error.to_string().contains(said), "{said}: {error}");
    };
    let hold = |order: &HoldOrder| log.hold(order).map(drop);
    refused(hold(&hold_with(&other, world.id, "user_7")), "it has to be signed with");
    refused(hold(&hold_with(&mine, LogId([1; 16]), "user_7")), "for another log");
    // Signed for somebody, and carried to somebody else; and the same of who and why.
    for (name, value) in [("subject", "user_8"), ("by", "sales"), ("reason", "a whim")] {
        let order = world.hold("user_7", "legal", "case 4711").render();
        let mut file = serde_json::from_str::<serde_json::Value>(&order).unwrap();
        file[name] = value.into();
        refused(hold(&HoldOrder::parse(&file.to_string()).unwrap()), "something else than what it says");
    }
    assert!(world.verified().ok && bulla::holds(&world.directory, world.keys()).unwrap().holds.is_empty());

    let order = world.hold("user_7", "legal", "case 4711");
    assert!(log.hold(&order).unwrap());
    assert!(!log.hold(&order).unwrap(), "it is so already");
    let release = |order: &ReleaseOrder| log.release(order);
    refused(release(&release_with(&other, world.id, order.note())), "it has to be signed with");
    refused(release(&release_with(&mine, LogId([1; 16]), order.note())), "for another log");
    refused(
        release(&release_with(&mine, world.id, world.hold("user_7", "legal", "x").note())),
        "no such hold",
    );
    let good = release_with(&mine, world.id, order.note());
    let mut file = serde_json::from_str::<serde_json::Value>(&good.render()).unwrap();
    file["reason"] = "a whim".into();
    refused(release(&ReleaseOrder::parse(&file.to_string()).unwrap()), "something else than what it says");
    release(&good).unwrap();
    refused(release(&good), "no such hold");
    // An order is good for one hold.
    refused(hold(&order), "carried out before");
    assert!(log.hold(&world.hold("user_7", "legal", "case 4711")).unwrap());
    log.close().unwrap();
    assert_eq!(found(&world, FindingKind::HoldUnordered), [] as [u64; 0]);
}

/// What is in the event names nobody; with what the key directory keeps it can be shown whom and what it is about.
#[test]
fn the_note_in_the_log_names_nobody_and_is_shown_by_what_the_key_directory_keeps() {
    let world = World::new();
    world.append(0..60);
    let log = open(&world);
    let order = world.hold("user_7", "legal", "case 4711");
    log.hold(&order).unwrap();
    log.close().unwrap();
    let events = world.events();
    let (_, Event::Held { order: note, .. }) = &events[0] else { panic!("{events:?}") };
    assert_eq!(note, order.note());
    for secret in ["user_7", "legal", "case 4711"] {
        assert!(!note.contains(secret), "{note}");
    }
    let file = fs::read_to_string(world.keys().join("holds")).unwrap();
    assert!(!file.contains("user_7"), "an erasure could not reach a name in it: {file}");
    let file = serde_json::from_str::<serde_json::Value>(&file).unwrap();
    let hold = &file["holds"][0];
    let kept = serde_json::json!({
        "order": hold["order"], "subject": "user_7", "by": hold["by"], "reason": hold["reason"], "salts": hold["salts"],
    });
    let kept = HoldOrder::parse(&kept.to_string()).unwrap();
    assert!(kept == order && kept.check(key(&world).verifier(), world.id).is_ok());
}

/// Who has the host, and not the erasure key, can have the log say what they like.
#[test]
fn a_release_of_another_hold_or_by_an_order_that_was_used_is_found_and_releases_nobody() {
    let world = World::new();
    world.append(0..60);
    let [seven, eight] =
        ["user_7", "user_8"].map(|name| world.vault(Access::Read).find(name).unwrap().unwrap().number);
    let log = open(&world);
    let (of_seven, of_eight) =
        (world.hold("user_7", "legal", "case 4711"), world.hold("user_8", "legal", "case 4712"));
    for order in [&of_seven, &of_eight] {
        log.hold(order).unwrap();
    }
    log.release(&world.release("user_8", "legal")).unwrap();
    log.close().unwrap();
    let frames = world.events().iter().map(|(frame, _)| *frame).collect::<Vec<_>>();
    let Event::Released { order: used, .. } = world.events()[2].1.clone() else { panic!("it is released") };
    assert_eq!(found(&world, FindingKind::HoldUnordered), [] as [u64; 0]);
    let record = |event: Event| {
        let log = open(&world);
        log.record(event).unwrap();
        log.close().unwrap();
        world.events().last().unwrap().0
    };
    let mut unordered = Vec::new();
    // By the order that released somebody else; again; and of a hold that the log does not tell of.
    let stranger = release_with(&key(&world), world.id, "no hold").note().to_owned();
    for (number, held, order) in [
        (seven, frames[0], &used),
        (eight, frames[1], &used),
        (seven, frames[0], &stranger),
        (seven, 0, &stranger),
    ] {
        unordered.push(record(Event::Released { number, held, order: order.clone() }));
        assert_eq!(found(&world, FindingKind::HoldUnordered), unordered);
    }
    // The host still has them held, and so do readers.
    let list = bulla::holds(&world.directory, world.keys()).unwrap();
    assert_eq!((list.holds.len(), list.holds[0].number, &list.differences[..]), (1, seven, &[][..]));
    let log = open(&world);
    assert_eq!(log.erase(&world.order(&["user_7"])).unwrap_err().kind(), ErrorKind::Refused);
    log.close().unwrap();
    let order = world.order(&["user_7"]).note().to_owned();
    let erased = Event::Erased { numbers: vec![seven], carried_out: vec![0], order, remains: Vec::new() };
    let erased = record(erased);
    assert_eq!(found(&world, FindingKind::ErasedWhileHeld), [erased]);
    // A hold by an order that was used is found as well, and holds all the same.
    unordered.push(record(Event::Held { number: eight, order: of_seven.note().to_owned() }));
    assert_eq!(found(&world, FindingKind::HoldUnordered), unordered);
    let log = open(&world);
    assert!(
        matches!(log.hold_differences(), [HoldDifference::Missing { .. }]),
        "{:?}",
        log.hold_differences()
    );
    assert_eq!(log.erase(&world.order(&["user_8"])).unwrap_err().kind(), ErrorKind::Refused);
    log.close().unwrap();
}

/// A log with a hold and its release, of which the words of one event are others, as whoever has its signing key can make it; and the
/// frame of that event.
fn told_in(place: usize, change: impl Fn(&str, &World) -> String) -> (World, u64) {
    let world = World::new();
    world.append(0..60);
    let log = open(&world);
    log.hold(&world.hold("user_7", "legal", "case 4711")).unwrap();
    log.release(&world.release("user_7", "legal")).unwrap();
    log.close().unwrap();
    let event = changed(&world, place, |text| change(text, &world));
    (world, event)
}

/// Has the words of one event be others. Returns its frame.
fn changed(world: &World, place: usize, change: impl Fn(&str) -> String) -> u64 {
    let event = world.events()[place].0;
    let image = Image::of_store(&FileSystem::new(&world.directory));
    let layout = Layout::of(&image);
    let frame = layout.frame(event);
    let path = format!("segments/{}", frame.segment);
    let mut content = image.get(&path).to_vec();
    let (head, body) = (frame.offset + 24..frame.offset + HEAD, frame.offset + HEAD..frame.end() - SEAL);
    let text = change(std::str::from_utf8(&content[body.clone()]).unwrap());
    content[body.clone()].copy_from_slice(text.as_bytes());
    let mut commitment = Commitment::decode(&content[head.clone()]).unwrap();
    commitment.body_digest = sha256(&[&content[body]]);
    content[head].copy_from_slice(&commitment.encode());
    let image = in_tree(image.with(&path, content), layout.size, event, &commitment.encode());
    let signing = fs::read_to_string(world.keys().join("signing.key")).unwrap();
    let signing = SigningKey::parse(&signing).unwrap();
    signed(image, layout.size, &world.key, &signing).write_to(&world.directory);
    event
}

/// What is in an event, signed by another key, for another log.
fn signed_anew(text: &str, key: &SigningKey, log: Option<LogId>) -> String {
    let mut event = serde_json::from_str::<Event>(text).unwrap();
    let (Event::Held { order, .. } | Event::Released { order, .. }) = &mut event else { panic!("{event:?}") };
    let note = bulla::SignedNote::parse(order.as_bytes()).unwrap();
    let note = HoldNote::parse(note.text).unwrap();
    let note = HoldNote { log: log.unwrap_or(note.log), ..note };
    *order = note.sign(key.verifier(), |text| key.sign(text));
    serde_json::to_string(&event).unwrap()
}

/// Who is held in a log that was altered, for whoever has no seal state, which is of another history than that.
fn held(world: &World) -> bulla::Result<bulla::HeldSubjects> {
    fs::remove_file(world.keys().join("seal.state")).unwrap();
    bulla::holds(&world.directory, world.keys())
}

#[test]
fn a_hold_or_a_release_that_is_signed_with_another_key_or_for_another_log_is_found() {
    for place in [0, 1] {
        for what in ["key", "log", "note"] {
            let (world, event) = told_in(place, |text, world| match what {
                "key" => signed_anew(text, &other_key(world), None),
                "log" => signed_anew(text, &key(world), Some(LogId([1; 16]))),
                _ => text.replace("bulla-hold-order-v1", "bulla-hold-order-v2"),
            });
            let found = found(&world, FindingKind::HoldUnordered);
            // What is released by the digest of an order that is another now is not that.
            let also = (place == 0 && what != "key").then(|| event + 1);
            assert_eq!(found, [event].into_iter().chain(also).collect::<Vec<_>>(), "{place} {what}");
            let list = held(&world).unwrap();
            assert_eq!(
                list.holds.len(),
                usize::from(place == 1 || what != "key"),
                "{place} {what}: {list:?}"
            );
        }
    }
}

#[test]
fn a_hold_without_an_order_is_no_event() {
    for place in [0, 1] {
        let (world, event) = told_in(place, |text, _| text.replace("\"order\":", "\"other\":"));
        let report = world.verified();
        let invalid = |it: &&bulla::Finding| it.kind == FindingKind::EventInvalid;
        let invalid = report.findings.iter().find(invalid).and_then(|finding| finding.frame);
        assert_eq!(invalid, Some(event), "{report:?}");
        assert_eq!(held(&world).unwrap_err().kind(), ErrorKind::Tampered);
    }
}

/// Whoever writes in the key directory cannot have the log tell what nobody ordered.
#[test]
fn a_file_of_holds_that_nobody_ordered_is_damaged_and_the_log_is_not_told_of_it() {
    let world = World::new();
    world.append(0..60);
    let log = open(&world);
    log.hold(&world.hold("user_7", "legal", "case 4711")).unwrap();
    log.close().unwrap();
    let path = world.keys().join("holds");
    let file = serde_json::from_str::<serde_json::Value>(&fs::read_to_string(&path).unwrap()).unwrap();
    let stranger = hold_with(&other_key(&world), world.id, "user_8");
    let release = release_with(&other_key(&world), world.id, file["holds"][0]["order"].as_str().unwrap());
    let changes = [
        ("order", stranger.note().into(), true),
        ("release", release.note().into(), false),
        ("by", "sales".into(), false),
        // The order was carried out, for somebody else.
        ("number", 1_000.into(), true),
    ];
    for (name, value, untold) in changes {
        let mut file = file.clone();
        let hold = &mut file["holds"][0];
        hold[name] = value;
        if untold {
            hold["frame"] = serde_json::Value::Null;
        }
        fs::write(&path, file.to_string()).unwrap();
        let before = world.events().len();
        let log = open(&world);
        let [HoldDifference::Unreadable(why)] = log.hold_differences() else {
            panic!("{:?}", log.hold_differences())
        };
        assert!(why.contains("holds is damaged"), "{why}");
        let error = log.erase(&world.order(&["user_9"])).unwrap_err();
        assert!(
            error.kind() == ErrorKind::Unavailable && error.to_string().contains("is damaged"),
            "{error}"
        );
        log.close().unwrap();
        assert_eq!(world.events().len(), before, "{name}");
        assert!(bulla::holds(&world.directory, world.keys()).is_err(), "{name}");
    }
}

fn rekey(world: &World, log: &Log, from: &SigningKey, to: &SigningKey) {
    let change = ErasureKeyChange::give(from, world.id, to.verifier(), &Environment::default()).unwrap();
    log.configure(&Configure::default().erasure_key(change).unwrap()).unwrap();
}

#[test]
fn a_hold_of_the_key_before_stands_and_is_released_with_the_key_that_counts_by_then() {
    let world = World::new();
    world.append(0..60);
    let (one, two) = (key(&world), other_key(&world));
    let log = open(&world);
    let hold = hold_with(&one, world.id, "user_7");
    log.hold(&hold).unwrap();
    log.hold(&hold_with(&one, world.id, "user_8")).unwrap();
    rekey(&world, &log, &one, &two);
    let refused = |result: bulla::Result<()>| {
        let error = result.unwrap_err();
        assert!(error.kind() == ErrorKind::Refused, "{error}");
        assert!(error.to_string().contains("it has to be signed with"), "{error}");
    };
    refused(log.release(&release_with(&one, world.id, hold.note())));
    refused(log.hold(&hold_with(&one, world.id, "user_9")).map(drop));
    log.release(&release_with(&two, world.id, hold.note())).unwrap();
    let erase = |subject: &str| {
        let order = ErasureOrder::give(&two, world.id, &[subject], None, &Environment::default()).unwrap();
        log.erase(&order).map(|erasure| erasure.frame)
    };
    assert!(erase("user_8").unwrap_err().to_string().contains("held by legal"));
    let erased = erase("user_7").unwrap();
    log.close().unwrap();
    assert_eq!(found(&world, FindingKind::HoldUnordered), [] as [u64; 0]);
    assert!(world.verified().ok);
    // As it would be where the release was ordered with the key that was replaced.
    let released = changed(&world, 3, |text| signed_anew(text, &one, None));
    assert_eq!(found(&world, FindingKind::HoldUnordered), [released]);
    assert_eq!(found(&world, FindingKind::ErasedWhileHeld), [erased]);
    let list = held(&world).unwrap();
    assert_eq!(list.holds.len(), 2, "{list:?}");
    // And where the first hold was ordered with the key that came only later: it holds all the same.
    let held = changed(&world, 0, |text| signed_anew(text, &two, None));
    assert_eq!(found(&world, FindingKind::HoldUnordered), [held, released]);
}

#[test]
fn what_the_key_before_ordered_is_told_before_that_key_is_replaced() {
    let world = World::new();
    world.append(0..60);
    let (one, two) = (key(&world), other_key(&world));
    let log = open(&world);
    let order = serde_json::from_str::<serde_json::Value>(&world.hold("user_7", "legal", "why").render());
    let mut hold = order.unwrap();
    let number = world.vault(Access::Read).find("user_7").unwrap().unwrap().number;
    hold.as_object_mut().unwrap().remove("subject");
    (hold["number"], hold["since"], hold["frame"]) = (number.into(), 0.into(), serde_json::Value::Null);
    // As a hold leaves it that was cut short.
    let file = serde_json::json!({ "told": 0, "holds": [hold] });
    fs::write(world.keys().join("holds"), file.to_string()).unwrap();
    rekey(&world, &log, &one, &two);
    log.close().unwrap();
    let kinds = world.events().iter().map(|(_, event)| event.kind()).collect::<Vec<_>>();
    assert_eq!(kinds, ["held", "rekeyed"]);
    assert_eq!(found(&world, FindingKind::HoldUnordered), [] as [u64; 0]);
    assert_eq!(bulla::holds(&world.directory, world.keys()).unwrap().differences, []);
}

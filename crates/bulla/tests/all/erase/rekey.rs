//! Changing the key that orders erasures: what was ordered with the key before stays good, what is ordered with it afterwards is
//! not carried out, and nobody takes it over unnoticed.

use super::stops::{self, Stop};
use super::world::World;
use crate::helpers::in_full;
use bulla::environment::Environment;
use bulla::event::Event;
use bulla::keys::signing::SigningKey;
use bulla::{
    Configure, Configured, Effect, ErasureKeyChange, ErasureOrder, Error, ErrorKind, FindingKind, Init, Log,
    Options, Report, Result, Severity, VerifierKey, Verify,
};
use bulla_proof::LogId;
use bulla_vault::Access;
use std::sync::atomic::Ordering;

/// A key of this number; the same each time.
fn key(number: u8) -> SigningKey {
    SigningKey::from_seed("example.com/erasure", &[number; 32]).unwrap()
}

/// The key that the log was made with.
fn first(world: &World) -> SigningKey {
    SigningKey::parse(&std::fs::read_to_string(world.keys().join("erasure.key")).unwrap()).unwrap()
}

fn ordered(world: &World, from: &SigningKey, to: &SigningKey) -> Configure {
    let change = ErasureKeyChange::give(from, world.id, to.verifier(), &Environment::default()).unwrap();
    Configure::default().erasure_key(change).unwrap()
}

fn unordered(to: &SigningKey) -> Configure {
    Configure::default().erasure_key(ErasureKeyChange::unordered(to.verifier())).unwrap()
}

fn order(world: &World, key: &SigningKey, subject: &str) -> ErasureOrder {
    ErasureOrder::give(key, world.id, &[subject], None, &Environment::default()).unwrap()
}

/// Erases somebody of a log that is opened for it.
fn erase(world: &World, key: &SigningKey, subject: &str) -> Result<u64> {
    let log = Log::open(&world.directory, Options::default()).unwrap();
    let erased = log.erase(&order(world, key, subject));
    log.close().unwrap();
    erased.map(|erasure| erasure.frame)
}

fn refused(error: &Error, why: &str) {
    assert!(error.kind() == ErrorKind::Refused && error.to_string().contains(why), "{error}");
}

/// What a verification with public data finds, which knows these keys.
fn verified(world: &World, known: &[&SigningKey]) -> Report {
    let verify = Verify::open(&world.directory).unwrap().key(world.key.clone());
    known.iter().fold(verify, |verify, key| verify.erasure_key(key.verifier().clone())).run().unwrap()
}

fn found(report: &Report) -> Vec<(FindingKind, Severity)> {
    report.findings.iter().map(|finding| (finding.kind, finding.severity)).collect()
}

/// The kinds of what was found, where all of it are violations.
fn violations(report: &Report) -> Vec<FindingKind> {
    assert!(
        !report.ok && found(report).iter().all(|(_, severity)| *severity == Severity::Violation),
        "{report:?}"
    );
    report.findings.iter().map(|finding| finding.kind).collect()
}

/// An event's kind, whether it was done, and whether something is wrong with it.
type Told = (&'static str, Option<bool>, bool);

/// Of each event about the erasure key, or an erasure, whether it was done and whether something is wrong with it, to somebody who
/// knows these keys; and what is wrong with the keys.
fn told_of(world: &World, known: &[&SigningKey]) -> (Vec<Told>, Option<String>) {
    let mut told = Vec::new();
    let reader = known.iter().fold(world.reader(), |reader, key| reader.erasure_key(key.verifier().clone()));
    let events = reader.events(|logged| {
        let kind = logged.event.as_ref().unwrap().kind();
        if ["rekeyed", "erased"].contains(&kind) {
            told.push((kind, logged.done, logged.is_violation()));
        }
        Ok(())
    });
    (told, events.err().map(|error| error.to_string()))
}

/// The same, of keys with which nothing is wrong.
fn told(world: &World, known: &[&SigningKey]) -> Vec<Told> {
    let (told, mismatch) = told_of(world, known);
    assert_eq!(mismatch, None);
    told
}

#[test]
fn erasures_are_ordered_with_the_key_of_their_time_and_stay_good() {
    let world = World::new();
    world.append(0..60);
    let (one, two, three) = (first(&world), key(2), key(3));
    erase(&world, &one, "user_1").unwrap();
    let changed = ordered(&world, &one, &two).apply(&world.directory).unwrap();
    assert_eq!((changed.changed, &changed.keys[..]), (true, &["erasure_key".to_owned()][..]));
    refused(&erase(&world, &one, "user_2").unwrap_err(), "has to be signed with");
    erase(&world, &two, "user_2").unwrap();
    // Recipients are changed between, which is no change of the key.
    let recipient = bulla::keys::identities::generate().1;
    Configure::default().add_recipients([recipient]).unwrap().apply(&world.directory).unwrap();
    erase(&world, &two, "user_3").unwrap();
    // Of a log at work, too.
    let log = Log::open(&world.directory, Options::default()).unwrap();
    let live = log.configure(&ordered(&world, &two, &three)).unwrap();
    assert!(live.live && live.changed, "{live:?}");
    refused(&log.erase(&order(&world, &two, "user_4")).unwrap_err(), "has to be signed with");
    log.erase(&order(&world, &three, "user_4")).unwrap();
    log.close().unwrap();
    assert_eq!(bulla::info(&world.directory).unwrap().erasure_key.as_ref(), Some(three.verifier()));

    let erased = ("erased", None, false);
    let rekeyed = ("rekeyed", Some(true), false);
    // The first key hands over to the others.
    for known in [&[][..], &[&one], &[&one, &three], &[&three, &two, &one]] {
        assert_eq!(told(&world, known), [erased, rekeyed, erased, erased, rekeyed, erased]);
        let report = verified(&world, known);
        assert!(report.ok && report.findings.is_empty(), "{report:?}");
    }
    assert!(world.verified().ok);
    // A later one says nothing of who was before it.
    assert_eq!(violations(&verified(&world, &[&two])), [FindingKind::ErasureUnordered]);
    let (unordered, rekeyed_so) = (("erased", None, true), ("rekeyed", Some(true), true));
    assert_eq!(told(&world, &[&two]), [unordered, rekeyed, erased, erased, rekeyed, erased]);
    let later = verified(&world, &[&three]);
    let (of_order, of_key) = (FindingKind::ErasureUnordered, FindingKind::ErasureKeyUnordered);
    assert_eq!(violations(&later), [of_order, of_key, of_order, of_order]);
    assert!(later.findings[1].detail.contains("neither among those given nor handed over to by one of them"));
    assert!(later.findings[0].detail.contains("none of the erasure keys that were given"), "{later:?}");
    assert_eq!(told(&world, &[&three]), [unordered, rekeyed_so, unordered, unordered, rekeyed, erased]);

    let stranger = verified(&world, &[&key(9)]);
    let mismatches = stranger
        .findings
        .iter()
        .filter(|finding| finding.kind == FindingKind::KeyMismatch)
        .collect::<Vec<_>>();
    assert!(!stranger.ok && mismatches.len() == 2, "{stranger:?}");
    let (events, mismatch) = told_of(&world, &[&key(9)]);
    let mismatch = mismatch.unwrap();
    assert!(mismatches.iter().all(|finding| mismatch.contains(&finding.detail)), "{mismatch}");
    assert!(events.len() == 6 && events.iter().all(|(_, _, is_violation)| *is_violation), "{events:?}");
    // One that the log does not have is said, whoever else is known.
    assert_eq!(violations(&verified(&world, &[&one, &key(9)])), [FindingKind::KeyMismatch]);
    assert!(told_of(&world, &[&one, &key(9)]).1.unwrap().contains("none that the log has or had"));
    // It is so already: an order that was carried out changes nothing when it is given again.
    let Configured { changed, log, .. } = ordered(&world, &two, &three).apply(&world.directory).unwrap();
    assert!(!changed && log.is_none());
}

#[test]
fn an_order_for_another_key_is_for_its_log_its_keys_and_good_once() {
    let world = World::new();
    world.append(0..10);
    let (one, two, three) = (first(&world), key(2), key(3));
    let environment = Environment::default();
    let apply = |change: ErasureKeyChange| {
        Configure::default().erasure_key(change).unwrap().apply(&world.directory).map(drop)
    };
    let give = |from: &SigningKey, log, to: &SigningKey| {
        ErasureKeyChange::give(from, log, to.verifier(), &environment).unwrap()
    };
    refused(&apply(give(&one, LogId([7; 16]), &two)).unwrap_err(), "for the log");
    refused(&apply(give(&two, world.id, &three)).unwrap_err(), "has to be signed with");
    let note = give(&one, world.id, &two).note().to_owned();
    assert_eq!(ErasureKeyChange::parse(&note).unwrap().note(), note);
    for at in 0..note.len() {
        let mut changed = note.clone().into_bytes();
        changed[at] ^= 1;
        let Ok(text) = String::from_utf8(changed) else { continue };
        assert_eq!(ErasureKeyChange::parse(&text).unwrap_err().kind(), ErrorKind::Invalid, "{text}");
    }
    assert!(ErasureKeyChange::give(&one, world.id, one.verifier(), &environment).is_err());
    // By itself, and as a command line has it not at all.
    let both = ordered(&world, &one, &two).set("log.heartbeat", "1m").unwrap().apply(&world.directory);
    assert!(both.unwrap_err().to_string().contains("changed by itself"));
    let plain = Configure::default().set("log.erasure_key", &two.verifier().to_string()).unwrap_err();
    assert!(plain.kind() == ErrorKind::Invalid && plain.to_string().contains("by an order"), "{plain}");
    assert!(Configure::default().unset("log.erasure_key").is_err());
    assert_eq!(told(&world, &[]), []);

    let back = apply(give(&one, world.id, &two)).and_then(|()| apply(give(&two, world.id, &one)));
    refused(&back.unwrap_err(), "never comes back");
    apply(give(&two, world.id, &three)).unwrap();
    refused(&apply(ErasureKeyChange::unordered(two.verifier())).unwrap_err(), "never comes back");
    // A name makes no other key of it: neither of one that was replaced, nor of the one that counts.
    let renamed =
        |key: &SigningKey| VerifierKey::new("example.com/officer", *key.verifier().public_key()).unwrap();
    for (key, why) in [(&one, "never comes back"), (&two, "never comes back"), (&three, "under another name")]
    {
        refused(&apply(ErasureKeyChange::unordered(&renamed(key))).unwrap_err(), why);
    }
    assert!(ErasureKeyChange::give(&three, world.id, &renamed(&three), &environment).is_err());
    let order = ErasureKeyChange::give(&three, world.id, &renamed(&one), &environment).unwrap();
    refused(&apply(order).unwrap_err(), "never comes back");
    assert!(verified(&world, &[]).ok);

    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("audit");
    Init::default().erasure(false).create(&directory).unwrap();
    refused(&unordered(&two).apply(&directory).unwrap_err(), "no `erasure_key`");
}

#[test]
fn a_key_that_is_lost_is_changed_and_who_verifies_says_whether_that_is_right() {
    let world = World::new();
    world.append(0..60);
    let (one, two, three) = (first(&world), key(2), key(3));
    erase(&world, &one, "user_1").unwrap();
    unordered(&two).apply(&world.directory).unwrap();
    erase(&world, &two, "user_2").unwrap();
    ordered(&world, &two, &three).apply(&world.directory).unwrap();
    erase(&world, &three, "user_3").unwrap();
    let (of_order, of_key) = (FindingKind::ErasureUnordered, FindingKind::ErasureKeyUnordered);
    let report = verified(&world, &[]);
    assert_eq!(violations(&report), [of_key]);
    assert!(report.findings[0].detail.contains("--erasure-key"), "{report:?}");
    assert!(told(&world, &[]).contains(&("rekeyed", Some(true), true)));
    // With both keys it is a notice, and the second hands over to the third.
    for known in [&[&one, &two][..], &[&one, &two, &three]] {
        let report = verified(&world, known);
        assert_eq!((report.ok, found(&report)), (true, vec![(of_key, Severity::Notice)]));
        assert!(told(&world, known).iter().all(|(_, _, is_violation)| !is_violation));
    }
    // What the lost key ordered is vouched for by itself alone.
    let report = verified(&world, &[&two]);
    let (wrong, right) = (Severity::Violation, Severity::Notice);
    assert_eq!((report.ok, found(&report)), (false, vec![(of_order, wrong), (of_key, right)]));
    // The key of before vouches for nothing that came after it, and a later one for no change before its own.
    let of_present = FindingKind::KeyMismatch;
    let report = verified(&world, &[&one]);
    assert_eq!(violations(&report), [of_key, of_order, of_key, of_order, of_present]);
    assert!(told_of(&world, &[&one]).1.unwrap().contains("none that one of them handed over to"));
    assert_eq!(violations(&verified(&world, &[&three])), [of_order, of_key, of_order]);
    // A query is answered all the same.
    assert!(!world.entries().0.is_empty());
}

/// A host that has had another key than the officer's count, and hands over to that one in the end.
#[test]
fn what_a_key_ordered_that_hands_over_to_the_known_one_is_found() {
    let world = World::new();
    world.append(0..60);
    let (evil, known) = (first(&world), key(2));
    let log = Log::open(&world.directory, Options::default()).unwrap();
    log.hold(&world.hold("user_1", "legal", "case 4711")).unwrap();
    log.close().unwrap();
    let log = Log::open(&world.directory, Options::default()).unwrap();
    log.release(&world.release("user_1", "legal")).unwrap();
    log.erase(&order(&world, &evil, "user_1")).unwrap();
    log.configure(&ordered(&world, &evil, &known)).unwrap();
    log.erase(&order(&world, &known, "user_2")).unwrap();
    log.close().unwrap();
    let (of_hold, of_order) = (FindingKind::HoldUnordered, FindingKind::ErasureUnordered);
    // The release releases nobody.
    let expected = [of_hold, of_hold, of_order, FindingKind::ErasedWhileHeld];
    assert_eq!(violations(&verified(&world, &[&known])), expected);
    let (erased, rekeyed) = (("erased", None, false), ("rekeyed", Some(true), false));
    assert_eq!(told(&world, &[&known]), [("erased", None, true), rekeyed, erased]);
    // To somebody who takes the log's word nothing is wrong, nor to somebody who says that both counted.
    for given in [&[][..], &[&evil], &[&evil, &known]] {
        assert!(verified(&world, given).findings.is_empty());
    }
}

#[test]
fn a_known_key_vouches_for_no_unordered_change_before_its_own() {
    let world = World::new();
    world.append(0..60);
    let (one, two, three) = (first(&world), key(2), key(3));
    unordered(&two).apply(&world.directory).unwrap();
    erase(&world, &two, "user_2").unwrap();
    unordered(&three).apply(&world.directory).unwrap();
    let of_key = |severity| (FindingKind::ErasureKeyUnordered, severity);
    let (wrong, right) = (Severity::Violation, Severity::Notice);
    let report = verified(&world, &[&three]);
    assert_eq!(found(&report), [of_key(wrong), (FindingKind::ErasureUnordered, wrong), of_key(right)]);
    let changed = |is_violation| ("rekeyed", Some(true), is_violation);
    assert_eq!(told(&world, &[&three]), [changed(true), ("erased", None, true), changed(false)]);
    for known in [&[&two, &three][..], &[&one, &two, &three]] {
        let report = verified(&world, known);
        assert_eq!((report.ok, found(&report)), (true, vec![of_key(right), of_key(right)]));
    }
}

/// An order says whom, once: whoever has the present key and signs an order of before anew has nobody erased a second time.
#[test]
fn an_order_of_the_key_before_that_is_signed_anew_is_the_same_order() {
    let world = World::new();
    world.append(0..60);
    let (one, two) = (first(&world), key(2));
    let given = order(&world, &one, "user_7");
    let log = Log::open(&world.directory, Options::default()).unwrap();
    let erasure = log.erase(&given).unwrap();
    log.configure(&ordered(&world, &one, &two)).unwrap();
    let (text, _) = given.note().split_once("\n\n").unwrap();
    let text = format!("{text}\n");
    let parsed = bulla::order::Order::parse(&text).unwrap();
    let note = parsed.sign(two.verifier(), |text| two.sign(text)).unwrap();
    let file = given
        .render()
        .replace(&serde_json::to_string(given.note()).unwrap(), &serde_json::to_string(&note).unwrap());
    let again = log.erase(&ErasureOrder::parse(&file).unwrap()).unwrap();
    assert_eq!((again.before, again.frame), (true, erasure.frame));
    log.close().unwrap();
}

/// A change that was stopped after so many operations, or was not: whether the log has the new key, and tells of the change without
/// having it.
fn stopped_after(operations: i64, is_live: bool, made: &World) -> Option<(bool, bool)> {
    let (world, one, two) = (made.copied(), first(made), key(2));
    let change = ordered(&world, &one, &two);
    let stop = Stop::after(if is_live { i64::MAX } else { operations });
    let changed = if is_live {
        let log = stops::open(&world, &stop).unwrap();
        log.flush().unwrap();
        stop.0.store(operations, Ordering::SeqCst);
        let changed = log.configure(&change);
        drop(log);
        changed
    } else {
        let (log, keys) = stops::stores(&world, &stop);
        change.apply_in(log, keys, &Environment::default())
    };
    let what = format!("{operations}, {is_live}: {changed:?}");
    let is_new = bulla::info(&world.directory).unwrap().erasure_key.as_ref() == Some(two.verifier());
    let effect = changed.as_ref().map_err(Error::effect);
    match effect {
        Ok(_) | Err(Some(Effect::Done)) => assert!(is_new, "{what}"),
        Err(None) => assert!(!is_new, "{what}"),
        Err(Some(Effect::Unknown)) => {}
    }
    // Before anybody opens it: nothing is wrong with it, whichever it is.
    for known in [&[][..], &[&one]] {
        assert!(verified(&world, known).ok, "{what}");
        told(&world, known);
    }
    // The new key is told to be the log's, as soon as it is; and not to have ordered what was done before.
    let found = found(&verified(&world, &[&two]));
    let has = |kind| found.contains(&(kind, Severity::Violation));
    assert_eq!(has(FindingKind::KeyMismatch), !is_new, "{what}: {found:?}");
    assert_eq!(told_of(&world, &[&two]).1.is_some(), !is_new, "{what}");
    assert!(has(FindingKind::ErasureUnordered), "{what}: {found:?}");
    let (counts, other) = if is_new { (&two, &one) } else { (&one, &two) };
    refused(&erase(&world, other, "user_2").unwrap_err(), "has to be signed with");
    erase(&world, counts, "user_2").unwrap();
    assert!(world.verified().ok, "{what}");
    let rekeyed = told(&world, &[]).into_iter().filter(|(kind, ..)| *kind == "rekeyed").collect::<Vec<_>>();
    let done = rekeyed.iter().filter(|(_, done, _)| *done == Some(true)).count();
    assert_eq!(done, usize::from(is_new), "{what}: {rekeyed:?}");
    stop.stopped().then_some((is_new, !is_new && !rekeyed.is_empty()))
}

#[test]
fn a_change_of_the_erasure_key_that_stops_anywhere_is_done_or_is_not_and_the_log_says_which() {
    let made = World::new();
    made.append(0..60);
    erase(&made, &first(&made), "user_1").unwrap();
    for (is_live, step) in [(false, 17), (true, 5)] {
        let step = if in_full() { 1 } else { step };
        let outcomes = (0..).step_by(step).map_while(|operations| stopped_after(operations, is_live, &made));
        let outcomes = outcomes.collect::<Vec<_>>();
        for outcome in [(false, false), (false, true), (true, false)] {
            let count = outcomes.iter().filter(|found| **found == outcome).count();
            assert!(count > 0, "{is_live}: {outcome:?} of {}", outcomes.len());
        }
    }
}

#[test]
fn erasures_beside_changes_of_the_key_are_each_in_an_epoch_of_theirs() {
    let world = World::new();
    world.append(0..60);
    let keys = [first(&world), key(2), key(3), key(4), key(5)];
    let log = Log::open(&world.directory, Options::default()).unwrap();
    std::thread::scope(|scope| {
        let erasing = scope.spawn(|| {
            for subject in 0..20 {
                let subject = format!("user_{subject}");
                // Whichever counts by then.
                let mut keys = keys.iter().cycle();
                while let Err(error) = log.erase(&order(&world, keys.next().unwrap(), &subject)) {
                    refused(&error, "has to be signed with");
                }
            }
        });
        for pair in keys.windows(2) {
            log.configure(&ordered(&world, &pair[0], &pair[1])).unwrap();
        }
        erasing.join().unwrap();
    });
    log.close().unwrap();
    let report = world.verified();
    assert!(report.ok && report.findings.is_empty(), "{report:?}");
    assert_eq!(told(&world, &[]).len(), 24);
}

#[test]
fn an_erasure_that_was_put_back_and_ordered_with_a_key_of_before_is_withdrawn() {
    let world = World::new();
    world.append(0..60);
    let (one, two) = (first(&world), key(2));
    let pending = serde_json::json!({
        "numbers": [world.vault(Access::Read).find("user_7").unwrap().unwrap().number],
        "carried_out": [0],
        "order": order(&world, &one, "user_7").note(),
    });
    ordered(&world, &one, &two).apply(&world.directory).unwrap();
    let number = pending["numbers"][0].as_u64().unwrap();
    std::fs::write(world.keys().join("erasure.pending"), pending.to_string()).unwrap();
    drop(world.begin_erasure(&world.vault(Access::Write), &[number]));
    let log = Log::open(&world.directory, Options::default()).unwrap();
    let withdrawn = log.resumed_erasure().unwrap().to_string();
    assert!(withdrawn.contains("is withdrawn") && withdrawn.contains("the order in it"), "{withdrawn}");
    log.close().unwrap();
    assert!(world.vault(Access::Read).find("user_7").unwrap().is_some());
    assert!(!world.events().iter().any(|(_, event)| matches!(event, Event::Erased { .. })));
    assert!(world.verified().ok);
}

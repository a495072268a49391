//! Who may order an erasure, and what an order is.

use super::world::World;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bulla::environment::Environment;
use bulla::event::Event;
use bulla::keys::signing::SigningKey;
use bulla::{ErasureOrder, ErrorKind, FindingKind, Init, Log, Options, Reader};
use bulla_proof::order::{ORDER_SALT_LENGTH, Order, ordered_subject};
use ed25519_dalek::Signer as _;
use serde_json::json;

#[test]
fn only_the_erasure_key_of_the_log_orders() {
    let (world, other) = (World::new(), World::new());
    world.append(0..60);
    let key_of = |name: &str| {
        let key = std::fs::read_to_string(world.keys().join(name)).unwrap();
        SigningKey::parse(&key).unwrap()
    };
    let environment = Environment::default();
    let give = |key: &SigningKey, log| ErasureOrder::give(key, log, &["user_7"], None, &environment).unwrap();
    let signing = give(&key_of("signing.key"), world.id);
    let of_other = other.order(&["user_7"]);
    let for_other = give(&key_of("erasure.key"), other.id);
    // The note of one order, and the names of another.
    let text = world.order(&["user_7"]).render().replace("user_7", "user_8");
    let about_another = ErasureOrder::parse(&text).unwrap();
    let log = Log::open(&world.directory, Options::default()).unwrap();
    for order in [signing, of_other, for_other, about_another] {
        let error = log.erase(&order).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        assert!(error.to_string().starts_with("the order to erase: "), "{error}");
    }
    log.close().unwrap();
    assert!(world.entries().1.is_empty());
}

#[test]
fn an_order_that_was_written_to_a_file_is_the_same() {
    let world = World::new();
    let order = world.order_for(&["user_7", "Zoë \u{1f5dd} \"quoted\""], Some("a \"reason\""));
    assert!(ErasureOrder::parse(&order.render()).unwrap() == order);
    assert_eq!(format!("{order:?}"), "ErasureOrder { subjects: 2, .. }");
    for text in ["", "{}", "{\"order\":\"\",\"subjects\":[{\"subject\":\"a\",\"salt\":\"AAAA\"}]}", "secret"]
    {
        let error = ErasureOrder::parse(text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}

#[test]
fn orders_that_break_a_limit_are_not_given() {
    let world = World::new();
    let key = std::fs::read_to_string(world.keys().join("erasure.key")).unwrap();
    let key = SigningKey::parse(&key).unwrap();
    let long = "r".repeat(1025);
    let many = (0..4097).map(|number| number.to_string()).collect::<Vec<_>>();
    let many = many.iter().map(String::as_str).collect::<Vec<_>>();
    let cases: [(&[&str], Option<&str>); 6] = [
        (&[], None),
        (&many, None),
        (&["a", "b", "a"], None),
        (&["a"], Some("")),
        (&["a"], Some("two\nlines")),
        (&["a"], Some(&long)),
    ];
    for (subjects, reason) in cases {
        let error =
            ErasureOrder::give(&key, world.id, subjects, reason, &Environment::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    }
    assert!(ErasureOrder::give(&key, world.id, &many[..4096], Some("r"), &Environment::default()).is_ok());
}

#[test]
fn the_key_need_not_be_on_the_host() {
    let place = tempfile::tempdir().unwrap();
    let elsewhere = World::new();
    let key = std::fs::read_to_string(elsewhere.keys().join("erasure.key")).unwrap();
    let key = SigningKey::parse(&key).unwrap();
    let directory = place.path().join("audit");
    let created =
        Init::default().erasure(true).erasure_key(key.verifier().clone()).create(&directory).unwrap();
    assert!(!created.made_erasure_key && !place.path().join("audit.keys/erasure.key").exists());
    let world = World { directory, key: created.verifier_key, id: created.id, _place: place };
    world.append(0..60);
    let order = ErasureOrder::give(&key, world.id, &["user_7"], None, &Environment::default()).unwrap();
    let log = Log::open(&world.directory, Options::default()).unwrap();
    assert_eq!(log.erase(&order).unwrap().numbers.len(), 1);
    log.close().unwrap();
}

#[test]
fn nobody_unknown_is_erased_and_nothing_of_a_log_without_erasure() {
    let world = World::new();
    world.append(0..60);
    let log = Log::open(&world.directory, Options::default()).unwrap();
    let error = log.erase(&world.order(&["nobody"])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(error.to_string().contains("knows nobody of that name"), "{error}");
    log.close().unwrap();

    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("audit");
    Init::default().erasure(false).create(&directory).unwrap();
    let log = Log::open(&directory, Options::default()).unwrap();
    let error = log.erase(&world.order(&["user_7"])).unwrap_err();
    assert!(error.kind() == ErrorKind::Refused && error.to_string().contains("erasure = \"off\""), "{error}");
    log.close().unwrap();
}

/// Who has the host can destroy keys and write what it likes; verification looks for an order.
#[test]
fn an_erasure_that_nobody_ordered_is_found() {
    let world = World::new();
    world.append(0..60);
    let (one, two) = (world.order(&["user_7"]), world.order(&["user_8", "user_9"]));
    let erased = |numbers: &[u64], carried_out: &[u32], order: &str| Event::Erased {
        numbers: numbers.to_vec(),
        carried_out: carried_out.to_vec(),
        order: order.to_owned(),
        remains: Vec::new(),
    };
    let unordered = |events: &[Event]| {
        let log = Log::open(&world.directory, Options::default()).unwrap();
        events.iter().for_each(|event| log.record(event.clone()).unwrap());
        log.close().unwrap();
        let report = world.verified();
        assert!(
            report.findings.iter().all(|finding| finding.kind == FindingKind::ErasureUnordered),
            "{report:?}"
        );
        let mut objections = 0;
        let reader = Reader::open(&world.directory).unwrap();
        let listed = reader.events(|logged| {
            objections += usize::from(logged.objection.is_some());
            assert!(logged.order.is_some() && logged.is_violation() == logged.objection.is_some());
            Ok(())
        });
        listed.unwrap();
        assert_eq!(objections, report.findings.len(), "whoever lists the events is told the same");
        objections
    };
    // As many as were ordered, once; told of again; and fewer, of whom the others were unknown.
    assert_eq!(unordered(&[erased(&[7], &[0], one.note()), erased(&[7], &[0], one.note())]), 0);
    assert_eq!(unordered(&[erased(&[8], &[1], two.note())]), 0);
    assert_eq!(unordered(&[erased(&[9], &[0], one.note())]), 1);
    assert_eq!(unordered(&[erased(&[8, 9], &[0, 1], two.note())]), 2);
    // A signature of somebody else's beneath it makes no other order of it.
    assert_eq!(unordered(&[erased(&[9], &[0], &countersigned(one.note()))]), 3);
    // By the other name of it: that would be a certificate for somebody who was not erased.
    assert_eq!(unordered(&[erased(&[8], &[0], two.note())]), 4);
}

/// What nobody ordered no program can have the log say, whatever verification would make of it.
#[test]
fn a_program_records_no_event_that_the_log_did_not_make() {
    let world = World::new();
    world.append(0..60);
    let (one, other) = (world.order(&["user_7"]), World::new().order(&["user_7"]));
    let erased = |numbers: &[u64], carried_out: &[u32], order: &str| Event::Erased {
        numbers: numbers.to_vec(),
        carried_out: carried_out.to_vec(),
        order: order.to_owned(),
        remains: Vec::new(),
    };
    let log = Log::open(&world.directory, Options::default()).unwrap();
    for event in [
        erased(&[1], &[0], "an order"),
        erased(&[1], &[0], other.note()),
        erased(&[1, 2], &[0], one.note()),
        erased(&[1], &[1], one.note()),
        erased(&[], &[0], one.note()),
        erased(&[2, 1], &[0], one.note()),
        Event::Held { number: 1, order: "an order".to_owned() },
        Event::Held { number: 1, order: one.note().to_owned() },
        Event::Exported(bulla::ExportRecord::new(1, &bulla::Query::new(), "jsonl")),
    ] {
        let error = log.record(event).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    }
    log.close().unwrap();
    assert!(world.verified().ok && world.entries().1.is_empty());
}

/// The note with another signature, which anybody can put there.
fn countersigned(note: &str) -> String {
    note.to_owned() + "\u{2014} somebody AAAAAAAA\n"
}

#[test]
fn an_order_with_another_signature_is_the_same_order() {
    let world = World::new();
    world.append(0..60);
    let order = world.order(&["user_7"]);
    let mut file = serde_json::from_str::<serde_json::Value>(&order.render()).unwrap();
    file["order"] = countersigned(order.note()).into();
    let again = ErasureOrder::parse(&file.to_string()).unwrap();
    let log = Log::open(&world.directory, Options::default()).unwrap();
    let first = log.erase(&order).unwrap();
    log.close().unwrap();
    // The person is back.
    world.append(60..120);
    let log = Log::open(&world.directory, Options::default()).unwrap();
    let second = log.erase(&again).unwrap();
    assert!(second.before && second.frame == first.frame, "{second:?}");
    log.close().unwrap();
}

#[test]
fn whom_an_order_names_twice_is_erased_once() {
    let world = World::new();
    world.append(0..60);
    let key = std::fs::read_to_string(world.keys().join("erasure.key")).unwrap();
    let seed = BASE64_STANDARD.decode(key.trim_end().splitn(5, '+').last().unwrap()).unwrap();
    let signer = ed25519_dalek::SigningKey::from_bytes(seed[1..].try_into().unwrap());
    let key = SigningKey::parse(&key).unwrap();
    let salts = [[1; ORDER_SALT_LENGTH], [2; ORDER_SALT_LENGTH]];
    let ordered = Order {
        log: world.id,
        seconds: 1,
        reason: None,
        subjects: salts.iter().map(|salt| ordered_subject(salt, "user_7")).collect(),
    };
    let note = ordered.sign(key.verifier(), |text| signer.sign(text).to_bytes()).unwrap();
    let subjects = salts.map(|salt| json!({ "subject": "user_7", "salt": BASE64_STANDARD.encode(salt) }));
    let file = json!({ "order": note, "subjects": subjects });
    let order = ErasureOrder::parse(&file.to_string()).unwrap();
    let log = Log::open(&world.directory, Options::default()).unwrap();
    assert_eq!(log.erase(&order).unwrap().numbers.len(), 1);
    log.close().unwrap();
    assert!(world.verified().ok);
}

//! Changing the key that orders erasures, by the command.

use crate::keys::at_a_terminal;
use crate::support::{Place, Ran, arguments, bulla, command, eventually, exit, finish, lines, parse_lines};
use serde_json::Value;
use std::ffi::OsString;
use std::process::Stdio;

/// A log of ten people, and where keys and orders lie.
struct World {
    place: Place,
}

impl World {
    fn new() -> Self {
        let place = Place::new();
        place.append(&[], &lines(0..100)).exits(exit::DONE);
        World { place }
    }

    fn file(&self, name: &str) -> String {
        self.place.path(name).into_os_string().into_string().unwrap()
    }

    /// Makes an erasure key in a file, and says which one it is.
    fn make(&self, name: &str) -> String {
        let ran = self.place.run("keys", &["new-erasure-key", "-o", &self.file(name)]).exits(exit::DONE);
        ran.out.trim_end().to_owned()
    }

    fn set(&self, key: &str, more: &[&str]) -> Ran {
        self.place.run("config", &[&["set", "log.erasure_key", key], more].concat())
    }

    /// Makes an order for another key, away from the log.
    fn order(&self, from: &str, to: &str, name: &str) -> String {
        let id = self.place.info("id").as_str().unwrap().to_owned();
        let more =
            ["--log", &id, "--new-erasure-key", to, "--authority", from, "-o", &self.file(name), "--json"];
        let mut words = arguments!["order"];
        words.extend(more.map(OsString::from));
        let told = bulla(words).exits(exit::DONE).json();
        assert_eq!((&told["new_erasure_key"], &told["output"]), (&to.into(), &self.file(name).into()));
        self.file(name)
    }

    fn erase(&self, subject: &str, authority: &str, certificate: &str) -> Ran {
        let certificate = self.file(certificate);
        self.place.run("erase", &["--subject", subject, "--authority", authority, "-o", &certificate])
    }

    fn check(&self, certificate: &str, key: &str) -> Ran {
        bulla(arguments!["check", self.file(certificate), "--erasure-key", key])
    }

    /// Proves the change of the key that is the so-manieth of the log.
    fn prove_change(&self, at: usize, certificate: &str) {
        let changes = parse_lines(&self.place.run("events", &["--json", "--kind", "rekeyed"]).out);
        let frame = changes[at]["frame"].to_string();
        let file = self.file(certificate);
        let _ = std::fs::remove_file(&file);
        self.place.run("prove", &["--event", &frame, "-o", &file]).exits(exit::DONE);
    }

    fn events(&self, known: &[&String], code: i32) -> Vec<Value> {
        let known = given(known);
        parse_lines(&self.place.run("events", &[&["--json"], &known[..]].concat()).exits(code).out)
    }

    fn verify(&self, more: &[&str]) -> (i32, Vec<Value>) {
        let ran = self.place.run("verify", &[&["--public", "--json"], more].concat());
        (ran.code, ran.json()["findings"].as_array().unwrap().clone())
    }

    fn present(&self) -> String {
        self.place.run("config", &["get", "log.erasure_key"]).exits(exit::DONE).out.trim_end().to_owned()
    }
}

/// The options that name these keys.
fn given<'a>(keys: &[&'a String]) -> Vec<&'a str> {
    keys.iter().flat_map(|key| ["--erasure-key", key]).collect()
}

fn kinds(findings: &[Value]) -> Vec<&str> {
    findings.iter().map(|finding| finding["kind"].as_str().unwrap()).collect()
}

#[test]
fn the_key_is_changed_with_the_one_before_or_by_an_order_and_certificates_stay_good() {
    let world = World::new();
    let first = world.present();
    let former = world.place.keys("erasure.key").into_os_string().into_string().unwrap();
    world.erase("s1", &former, "1.cert").exits(exit::DONE);
    let (two, three) = (world.make("two.key"), world.make("three.key"));
    assert!(two.contains("/erasure+") && two != three);

    // With the key before, which lies in the key directory.
    let ran = world.set(&two, &[]).exits(exit::DONE);
    assert!(
        ran.out.contains("orders to erase, to hold and to release are signed with this key from now on"),
        "{ran:?}"
    );
    assert_eq!(world.present(), two);
    assert_eq!(world.place.info("erasure_key"), Value::from(&two[..]));
    let ran = world.erase("s2", &former, "2.cert").exits(exit::REFUSED);
    assert!(ran.err.contains(&format!("has to be signed with {two}")), "{ran:?}");
    world.erase("s2", &world.file("two.key"), "2.cert").exits(exit::DONE);

    // By an order, which has nothing confidential.
    let order = world.order(&world.file("two.key"), &three, "rekey.order");
    world.set(&two, &["--authority", &order]).exits(exit::USAGE);
    let told = world.set(&three, &["--authority", &order, "--json"]).exits(exit::DONE).json();
    assert_eq!((&told["changed"], &told["recorded"]), (&true.into(), &true.into()));
    let told = world.set(&three, &["--authority", &order, "--json"]).exits(exit::DONE).json();
    assert_eq!(told["changed"], false, "it is so already");
    world.erase("s3", &world.file("three.key"), "3.cert").exits(exit::DONE);

    for (certificate, key) in [("1.cert", &first), ("2.cert", &two), ("3.cert", &three)] {
        world.check(certificate, key).exits(exit::DONE);
        for other in [&first, &two, &three].into_iter().filter(|other| *other != key) {
            world.check(certificate, other).exits(exit::VIOLATION);
        }
    }
    // Of each change a proof says who ordered it.
    let proven = |at: usize| world.prove_change(at, "change.cert");
    proven(1);
    let told = world.check("change.cert", &two).exits(exit::DONE).out;
    assert!(told.contains(&format!("signed by {two}\n")) && told.contains(&three), "{told}");
    let told = bulla(arguments!["check", world.file("change.cert"), "--order", &order]).exits(exit::DONE).out;
    assert!(told.contains(&format!("signed by {two}; --erasure-key checks")), "{told}");
    for other in [&first, &three] {
        let ran = world.check("change.cert", other).exits(exit::VIOLATION);
        assert!(ran.err.contains("its order is signed with"), "{ran:?}");
    }
    proven(0);
    world.check("change.cert", &first).exits(exit::DONE);
    bulla(arguments!["check", world.file("change.cert"), "--order", &order]).exits(exit::VIOLATION);
    // The first key hands over to the others; a later one says nothing of who was before it.
    for known in [&[][..], &[&first], &[&three, &first]] {
        assert_eq!(world.verify(&given(known)), (exit::DONE, vec![]));
    }
    let (code, findings) = world.verify(&given(&[&two]));
    assert_eq!((code, kinds(&findings)), (exit::VIOLATION, vec!["erasure-unordered"]));
    let shown = |known: &[&String]| world.place.run("verify", &given(known)).exits(exit::DONE).out;
    assert!(shown(&[]).contains("\norders     by the log's own word for its erasure keys; --erasure-key"));
    assert!(shown(&[&first]).contains("\norders     checked with the erasure keys that were given\n"));
    let events =
        parse_lines(&world.place.run("events", &["--json", "--kind", "rekeyed"]).exits(exit::DONE).out);
    let of = |event: &Value| [&event["from"], &event["to"], &event["done"]].map(Value::to_string);
    let expected = [[&first, &two], [&two, &three]]
        .map(|[from, to]| [format!("\"{from}\""), format!("\"{to}\""), "true".to_owned()]);
    assert_eq!(events.iter().map(of).collect::<Vec<_>>(), expected);
    let listed = world.place.run("events", &[]).exits(exit::DONE).out;
    assert!(
        listed.contains(&format!("rekeyed     the erasure key changed, from {first} to {two}")),
        "{listed}"
    );
}

#[test]
fn a_lost_key_is_changed_without_an_order_and_told_of_until_the_new_one_is_known() {
    let world = World::new();
    let two = world.make("two.key");
    std::fs::remove_file(world.place.keys("erasure.key")).unwrap();
    let ran = world.set(&two, &[]).exits(exit::REFUSED);
    assert!(ran.err.contains("--lost"), "{ran:?}");
    world.set(&two, &["--lost", "--authority", "x"]).exits(exit::USAGE);
    let first = world.present();
    let ran = world.set(&two, &["--lost", "--json"]).exits(exit::DONE);
    assert_eq!(ran.json()["changed"], true, "one object");
    world.prove_change(0, "change.cert");
    let told = bulla(arguments!["check", world.file("change.cert")]).exits(exit::DONE).out;
    assert!(told.contains("no order: whoever verifies has to know the new key"), "{told}");
    let checked = world.check("change.cert", &two).exits(exit::VIOLATION);
    assert!(checked.err.contains("it has no order"), "{checked:?}");
    for said in
        ["erasure-key-unordered", &format!("--erasure-key {two}"), &format!("the key before, {first}")]
    {
        assert!(ran.err.contains(said), "{said}: {ran:?}");
    }
    assert!(world.set(&two, &["--lost"]).exits(exit::DONE).err.is_empty(), "it is so already");
    world.erase("s1", &world.file("two.key"), "1.cert").exits(exit::DONE);
    let (code, findings) = world.verify(&[]);
    assert_eq!((code, findings.len()), (exit::VIOLATION, 1));
    assert_eq!(
        (&findings[0]["kind"], &findings[0]["severity"]),
        (&"erasure-key-unordered".into(), &"violation".into())
    );
    let (code, findings) = world.verify(&["--erasure-key", &two]);
    assert_eq!((code, &findings[0]["severity"]), (exit::DONE, &"notice".into()));
    let ran = world.place.run("events", &["--json"]).exits(exit::VIOLATION);
    assert!(
        parse_lines(&ran.out)[0]["detail"].as_str().unwrap().contains("nobody with the key before"),
        "{ran:?}"
    );
    let (code, findings) = world.verify(&given(&[&first, &two]));
    assert_eq!(
        (code, kinds(&findings), &findings[0]["severity"]),
        (exit::DONE, vec!["erasure-key-unordered"], &"notice".into())
    );
    world.events(&[&two], exit::DONE);
    // Another log's key.
    let other = World::new().present();
    let (code, findings) = world.verify(&given(&[&other]));
    let mismatch = "key-mismatch";
    assert_eq!(code, exit::VIOLATION);
    assert_eq!(kinds(&findings), ["erasure-key-unordered", "erasure-unordered", mismatch, mismatch]);
    let events = world.events(&[&other], exit::VIOLATION);
    let error = events.last().unwrap()["error"].as_str().unwrap();
    let unknown = format!("the erasure key that was given, {other}, is none that the log has or had");
    assert!(events.len() == 3 && error.contains(&unknown), "{events:?}");
    assert!(world.place.run("events", &given(&[&other])).exits(exit::VIOLATION).err.contains(&unknown));
}

/// What a host could try: its own key counts first, and hands over to the officer's.
#[test]
fn what_another_key_ordered_before_it_handed_over_to_the_known_one_is_found() {
    let world = World::new();
    let evil = world.place.keys("erasure.key").into_os_string().into_string().unwrap();
    world.erase("s1", &evil, "1.cert").exits(exit::DONE);
    let known = world.make("known.key");
    world.set(&known, &[]).exits(exit::DONE);
    world.erase("s2", &world.file("known.key"), "2.cert").exits(exit::DONE);
    assert_eq!(world.verify(&[]).0, exit::DONE);
    let (code, findings) = world.verify(&given(&[&known]));
    assert_eq!((code, kinds(&findings)), (exit::VIOLATION, vec!["erasure-unordered"]));
    let detail = findings[0]["detail"].as_str().unwrap();
    assert!(
        detail.contains("none of the erasure keys that were given") && detail.contains("--erasure-key, too")
    );
    let events = world.events(&[&known], exit::VIOLATION);
    let [first, rekeyed, second] = &events[..] else { panic!("{events:?}") };
    assert_eq!((&first["ordered"]["ok"], &first["ordered"]["detail"]), (&false.into(), &detail.into()));
    assert_eq!((&rekeyed["detail"], &second["ordered"]["ok"]), (&Value::Null, &true.into()));
}

#[test]
fn at_a_terminal_the_key_is_not_changed_without_an_order_unless_the_answer_is_yes() {
    let world = World::new();
    let (first, two) = (world.present(), world.make("two.key"));
    let prompt = "To go on, type yes: ";
    let asked = |more: &[&str], answers: &[(&str, &str)]| {
        let words = [&["set", "log.erasure_key", &two, "--lost"], more].concat();
        at_a_terminal(&[], &world.place.arguments("config", &words), answers).0
    };
    let ran = asked(&[], &[(prompt, "no\n")]).exits(exit::REFUSED);
    assert!(
        ran.out.contains("every verification will find a violation") && world.present() == first,
        "{ran:?}"
    );
    asked(&[], &[(prompt, "\u{3}")]).exits(exit::INTERRUPTED);
    assert_eq!(world.present(), first);
    asked(&[], &[(prompt, "yes\n")]).exits(exit::DONE);
    assert_eq!(world.present(), two);
    // It is so already, so that nobody is asked; nor is anybody who has said so beforehand.
    assert!(!asked(&[], &[]).exits(exit::DONE).out.contains(prompt));
    let three = world.make("three.key");
    let words = world.place.arguments("config", &["set", "log.erasure_key", &three, "--lost", "--yes"]);
    assert!(!at_a_terminal(&[], &words, &[]).0.exits(exit::DONE).out.contains(prompt));
    world.set(&first, &["--yes"]).exits(exit::USAGE);
}

#[test]
fn what_is_no_change_of_the_erasure_key_is_refused_and_said() {
    let world = World::new();
    let (two, three) = (world.make("two.key"), world.make("three.key"));
    let refused = |ran: Ran, code: i32, why: &str| {
        let ran = ran.exits(code);
        assert!(ran.err.contains(why) && ran.out.is_empty(), "{ran:?}");
    };
    refused(world.set("no key", &[]), exit::USAGE, "no key");
    refused(
        world.set(&two, &["--authority", &world.file("three.key")]),
        exit::REFUSED,
        "has to be signed with",
    );
    let order = world.order(&world.file("two.key"), &three, "foreign.order");
    refused(world.set(&three, &["--authority", &order]), exit::REFUSED, "has to be signed with");
    let text = world.place.write("text", b"hello");
    refused(
        world.set(&two, &["--authority", &text]),
        exit::USAGE,
        "neither the log's erasure key nor an order",
    );
    refused(world.place.run("config", &["set", "linger", "5 ms", "--lost"]), exit::USAGE, "log.erasure_key");
    refused(
        world.place.run("config", &["set", "log.erasure_key", &two, "linger", "5 ms"]),
        exit::USAGE,
        "changed by an order",
    );
    refused(world.place.run("config", &["unset", "log.erasure_key"]), exit::USAGE, "cannot be unset");
    refused(world.place.run("keys", &["new-erasure-key"]), exit::USAGE, "-o FILE");
    let existing = world.file("two.key");
    refused(world.place.run("keys", &["new-erasure-key", "-o", &existing]), exit::REFUSED, "exists");
    let off = Place::empty();
    bulla(arguments!["init", off.audit(), "--erasure", "off"]).exits(exit::DONE);
    let nothing = "erasure = \"off\"`: nothing of it can be erased";
    let for_nothing = world.file("nothing.key");
    refused(off.run("keys", &["new-erasure-key", "-o", &for_nothing]), exit::REFUSED, nothing);
    assert!(!std::path::Path::new(&for_nothing).exists());
    refused(off.run("config", &["set", "log.erasure_key", &two]), exit::REFUSED, nothing);
    for action in ["add", "release"] {
        let whom = ["--subject", "s1", "--by", "legal", "--reason", "why"];
        refused(off.run("hold", &[&[action], &whom[..]].concat()), exit::REFUSED, nothing);
    }
    assert_eq!(world.verify(&[]), (exit::DONE, vec![]));
    assert!(world.place.run("events", &["--kind", "rekeyed"]).exits(exit::DONE).out.is_empty());
}

#[test]
fn the_key_of_the_logs_own_host_does_not_come_to_order_erasures() {
    let world = World::new();
    let info = |name: &str| world.place.info(name).as_str().unwrap().to_owned();
    let (vkey, origin, id, first) = (info("vkey"), info("origin"), info("id"), world.present());
    let own = "is the log's own key or has its name";
    let refused = |ran: Ran| assert!(ran.exits(exit::USAGE).err.contains(own));
    for how in [&[][..], &["--lost", "--yes"]] {
        refused(world.set(&vkey, how));
    }
    let order = |id: &str, authority: &std::path::Path, more: &[&str]| {
        let out = world.file("own.order");
        bulla(
            [&["order", "--log", id, "-o", &out, "--authority", authority.to_str().unwrap()], more].concat(),
        )
    };
    let (signing, erasure) = (world.place.keys("signing.key"), world.place.keys("erasure.key"));
    let another = "0".repeat(32);
    // By its name, which an origin of the log's id has, or else that of the erasure key.
    for (id, authority) in [(&id, &erasure), (&id, &signing), (&another, &erasure)] {
        refused(order(id, authority, &["--new-erasure-key", &vkey]));
    }
    assert!(!world.place.path("own.order").exists());
    let elsewhere = world.file("elsewhere");
    refused(bulla(["init", &elsewhere, "--origin", &origin, "--erasure-key", &vkey]));
    assert!(!world.place.path("elsewhere").exists() && world.present() == first);
    // A key of another name may be one that was made elsewhere.
    let ran = order(&id, &signing, &["--subject", "s1"]).exits(exit::DONE);
    assert!(
        ran.err.contains(&vkey) && ran.err.contains("is not named as `bulla` names erasure keys"),
        "{ran:?}"
    );
    std::fs::remove_file(world.file("own.order")).unwrap();
    assert!(order(&id, &erasure, &["--subject", "s1"]).exits(exit::DONE).err.is_empty());
}

#[test]
fn a_writer_at_work_changes_the_key_and_goes_on() {
    let world = World::new();
    let two = world.make("two.key");
    let mut writer = command(world.place.arguments("append", &[])).stdin(Stdio::piped()).spawn().unwrap();
    eventually("the writer listens", || world.place.info("writer").is_u64());
    let ran = world.set(&two, &[]).exits(exit::DONE);
    assert!(ran.out.contains("changed, and recorded"), "{ran:?}");
    let former = world.place.keys("erasure.key").into_os_string().into_string().unwrap();
    world.erase("s1", &former, "1.cert").exits(exit::REFUSED);
    world.erase("s1", &world.file("two.key"), "1.cert").exits(exit::DONE);
    drop(writer.stdin.take());
    finish(writer).exits(exit::DONE);
    assert_eq!(world.verify(&given(&[&two])), (exit::DONE, vec![]));
}

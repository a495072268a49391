use super::*;
use bulla_proof::commitment::LogId;
use proptest::prelude::*;

const LOG: LogId = LogId([3; 16]);

fn compiled(rules: &[(&str, &str)]) -> CompiledRules {
    let mut fields = FieldRules::default();
    rules.iter().try_for_each(|(field, rule)| fields.set(field, rule)).unwrap();
    CompiledRules::new(&fields, Some(&PseudonymKey::new([7; 32], LOG))).unwrap()
}

/// The row of what is left, and whether an address was none.
fn row(compiled: &CompiledRules, entry: &Entry<'_>) -> (Vec<u8>, bool) {
    let mut replacements = Replacements::default();
    let reduced = compiled.apply(entry, &mut replacements);
    let mut row = vec![0; reduced.measure().unwrap()];
    reduced.encode(5, &mut row);
    (row, reduced.not_address)
}

/// The row of the entry as it is.
fn encoded(entry: &Entry<'_>) -> Vec<u8> {
    let mut row = vec![0; entry.measure().unwrap()];
    entry.encode(5, &mut row);
    row
}

fn full() -> Entry<'static> {
    let entry = Entry::new("read", b"/user?token=1").time(7).subject("a").subject("b").subject("c");
    let entry = entry.controller("controller").processor("processor").purpose("purpose").actor("actor");
    let entry = entry.client("192.0.2.17:80").stream("stream").status(1).duration(2).size(3).flags(4);
    entry.payload("payload")
}

#[test]
fn each_rule_changes_its_field_and_no_other() {
    fn changed(rule: (&str, &str), change: impl FnOnce(&mut Entry<'_>)) {
        let mut expected = full();
        change(&mut expected);
        assert_eq!(row(&compiled(&[rule]), &full()), (encoded(&expected), false), "{rule:?}");
    }
    changed(("location", "drop"), |entry| entry.location = None);
    changed(("location", "strip-query"), |entry| entry.location = Some(b"/user"));
    changed(("controller", "drop"), |entry| entry.controller = None);
    changed(("processor", "drop"), |entry| entry.processor = None);
    changed(("purpose", "drop"), |entry| entry.purpose = None);
    changed(("actor", "drop"), |entry| entry.actor = None);
    changed(("client", "drop"), |entry| entry.client = None);
    changed(("client", "truncate-ip:16/48"), |entry| entry.client = Some("192.0.0.0"));
    changed(("stream", "drop"), |entry| entry.stream = None);
    changed(("status", "drop"), |entry| entry.status = None);
    changed(("duration", "drop"), |entry| entry.duration = None);
    changed(("size", "drop"), |entry| entry.size = None);
    changed(("flags", "drop"), |entry| entry.flags = None);
    changed(("payload", "drop"), |entry| entry.payload = None);
    changed(("payload", "cap:3"), |entry| entry.payload = Some(b"pay"));
}

#[test]
fn each_name_gets_the_pseudonym_of_its_own_field() {
    let fields = ["location", "controller", "processor", "purpose", "actor", "client", "stream"];
    let rules = compiled(&fields.map(|field| (field, "pseudonymise")));
    let entry = Entry { location: Some(b"same"), ..full() };
    let entry = entry.controller("same").processor("same").purpose("same").actor("same");
    let entry = entry.client("same").stream("same");
    let (row, not_address) = row(&rules, &entry);
    let entry = Entry::decode(&row).unwrap();
    let location = std::str::from_utf8(entry.location.unwrap()).unwrap();
    let mut names =
        [entry.controller, entry.processor, entry.purpose, entry.actor, entry.client, entry.stream]
            .map(Option::unwrap)
            .to_vec();
    names.push(location);
    for (field, name) in ["controller", "processor", "purpose", "actor", "client", "stream", "location"]
        .into_iter()
        .zip(&names)
    {
        assert!(name.starts_with("p-") && name.len() == 34, "{field}: {name}");
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!((names.len(), not_address), (7, false));
}

#[test]
fn what_is_absent_stays_absent_and_what_is_empty_is_a_value() {
    let all = compiled(&[
        ("location", "pseudonymise"),
        ("actor", "pseudonymise"),
        ("client", "truncate-ip:24/48"),
        ("payload", "cap:1"),
    ]);
    let absent = Entry { operation: "read", time: Some(1), ..Entry::default() };
    assert_eq!(row(&all, &absent), (encoded(&absent), false));
    let empty =
        Entry { location: Some(b""), actor: Some(""), client: Some(""), payload: Some(b""), ..absent };
    let (bytes, not_address) = row(&all, &empty);
    let left = Entry::decode(&bytes).unwrap();
    assert_eq!((left.client, left.payload, not_address), (None, Some(&b""[..]), true));
    assert_eq!((left.location.unwrap().len(), left.actor.unwrap().len()), (34, 34));
}

#[test]
fn a_client_that_is_no_address_is_dropped_and_told() {
    let rules = compiled(&[("client", "truncate-ip:24/48")]);
    for (client, expected, told) in [
        ("host.example.com", None, true),
        ("192.0.2.17", Some("192.0.2.0"), false),
        ("::1", Some("::"), false),
    ] {
        let entry = full().client(client);
        let (bytes, not_address) = row(&rules, &entry);
        assert_eq!((Entry::decode(&bytes).unwrap().client, not_address), (expected, told));
    }
    let dropped = row(&compiled(&[("client", "drop")]), &full().client("host.example.com"));
    assert!(!dropped.1, "that is what the rule is for");
}

/// A rule of each kind, or none, for each field.
fn rules() -> impl Strategy<Value = Vec<(&'static str, &'static str)>> {
    let name = || prop::sample::select(vec!["keep", "drop", "pseudonymise"]);
    let number = || prop::sample::select(vec!["keep", "drop"]);
    let names = (name(), name(), name(), name(), name());
    let numbers = (number(), number(), number(), number());
    let others = (
        prop::sample::select(vec!["keep", "drop", "pseudonymise", "strip-query"]),
        prop::sample::select(vec!["keep", "drop", "pseudonymise", "truncate-ip:24/48", "truncate-ip:8/32"]),
        prop::sample::select(vec!["keep", "drop", "cap:1", "cap:10"]),
    );
    (names, numbers, others).prop_map(|(names, numbers, others)| {
        vec![
            ("controller", names.0),
            ("processor", names.1),
            ("purpose", names.2),
            ("actor", names.3),
            ("stream", names.4),
            ("status", numbers.0),
            ("duration", numbers.1),
            ("size", numbers.2),
            ("flags", numbers.3),
            ("location", others.0),
            ("client", others.1),
            ("payload", others.2),
        ]
    })
}

/// What the texts of an entry are made of.
#[derive(Clone, Debug)]
struct Texts {
    names: [Option<String>; 6],
    location: Option<Vec<u8>>,
    payload: Option<Vec<u8>>,
    numbers: [Option<u32>; 4],
    subjects: Vec<String>,
}

fn texts() -> impl Strategy<Value = Texts> {
    let name = || prop::option::of(prop_oneof!["[a-z]{0,9}", "\\PC{0,40}", Just("x".repeat(65536))]);
    let client =
        prop::option::of(prop_oneof!["[0-9]{1,3}(\\.[0-9]{1,3}){3}", "[0-9a-f:]{2,30}", "\\PC{0,20}"]);
    let bytes = || prop::option::of(prop::collection::vec(any::<u8>(), 0..40));
    let names = (name(), name(), name(), name(), client, name());
    let numbers = (any::<Option<u32>>(), any::<Option<u32>>(), any::<Option<u32>>(), any::<Option<u32>>());
    let subjects = prop::collection::vec("[a-z]{0,4}", 0..6);
    (names, bytes(), bytes(), numbers, subjects).prop_map(|(names, location, payload, numbers, subjects)| {
        Texts { names: names.into(), location, payload, numbers: numbers.into(), subjects }
    })
}

impl Texts {
    fn entry(&self) -> Entry<'_> {
        let [controller, processor, purpose, actor, client, stream] =
            self.names.each_ref().map(Option::as_deref);
        let [status, duration, size, flags] = self.numbers;
        let entry = Entry {
            time: Some(11),
            operation: "read",
            subjects: None,
            location: self.location.as_deref(),
            controller,
            processor,
            purpose,
            actor,
            client,
            stream,
            status,
            duration: duration.map(u64::from),
            size: size.map(u64::from),
            flags,
            payload: self.payload.as_deref(),
        };
        self.subjects.iter().fold(entry, |entry, subject| entry.subject(subject))
    }
}

/// A field's value as bytes.
fn value(entry: &Entry<'_>, field: &str) -> Option<Vec<u8>> {
    let text = |value: Option<&str>| value.map(|value| value.as_bytes().to_vec());
    let number = |value: Option<u64>| value.map(|value| value.to_le_bytes().to_vec());
    match field {
        "location" => entry.location.map(<[u8]>::to_vec),
        "payload" => entry.payload.map(<[u8]>::to_vec),
        "controller" => text(entry.controller),
        "processor" => text(entry.processor),
        "purpose" => text(entry.purpose),
        "actor" => text(entry.actor),
        "client" => text(entry.client),
        "stream" => text(entry.stream),
        "status" => number(entry.status.map(u64::from)),
        "duration" => number(entry.duration),
        "size" => number(entry.size),
        "flags" => number(entry.flags.map(u64::from)),
        _ => panic!("no field {field}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Every field is what its rule says, whatever the others' rules are.
    #[test]
    fn each_field_is_as_its_own_rule_says(rules in rules(), texts in texts()) {
        let entry = texts.entry();
        let (bytes, not_address) = row(&compiled(&rules), &entry);
        let left = Entry::decode(&bytes).unwrap();
        prop_assert_eq!(left.subjects.as_deref(), entry.subjects.as_deref());
        prop_assert_eq!((left.time, left.operation), (entry.time, entry.operation));
        for (field, rule) in &rules {
            let (before, after) = (value(&entry, field), value(&left, field));
            match *rule {
                "keep" => prop_assert_eq!(before, after),
                "drop" => prop_assert_eq!(after, None),
                "pseudonymise" => {
                    prop_assert_eq!(before.is_some(), after.is_some());
                    prop_assert!(after.is_none_or(|after| after.starts_with(b"p-") && after.len() == 34));
                }
                "strip-query" => {
                    prop_assert!(after.is_none_or(|after| !after.contains(&b'?') && !after.contains(&b'#')));
                }
                rule => match rule.split_once(':').unwrap() {
                    ("cap", limit) => {
                        prop_assert_eq!(before.is_some(), after.is_some());
                        prop_assert!(after.is_none_or(|after| after.len() <= limit.parse().unwrap()));
                    }
                    _ => {
                        prop_assert_eq!(not_address, before.is_some() && after.is_none());
                        let address = after.map(|after| String::from_utf8(after).unwrap());
                        prop_assert!(address.is_none_or(|it| it.parse::<std::net::IpAddr>().is_ok()));
                    }
                },
            }
        }
    }

    /// What was reduced by rules is not changed by the same ones again; a pseudonym is, since it is a name like any other.
    #[test]
    fn once_is_enough(rules in rules(), texts in texts()) {
        let entry = texts.entry();
        let kept = |(field, rule): (&'static str, &'static str)| {
            (field, if rule == "pseudonymise" { "keep" } else { rule })
        };
        let rules = compiled(&rules.into_iter().map(kept).collect::<Vec<_>>());
        let (once, _) = row(&rules, &entry);
        let (twice, not_address) = row(&rules, &Entry::decode(&once).unwrap());
        prop_assert_eq!((once, false), (twice, not_address));
    }
}

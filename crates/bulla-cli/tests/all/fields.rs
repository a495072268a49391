//! Rules for fields, as the command sets, shows and follows them.

use crate::support::{Place, Ran, arguments, bulla, exit, parse_lines};
use serde_json::{Value, json};

fn made(rules: &[&str]) -> Place {
    let place = Place::empty();
    let options = rules.iter().flat_map(|rule| ["--field", rule]).collect::<Vec<_>>();
    place.run("init", &options).exits(exit::DONE);
    place
}

fn config(place: &Place, more: &[&str]) -> Ran {
    place.run("config", more)
}

/// All that the digest of `[log]` is of.
fn log_part(place: &Place) -> String {
    let text = std::fs::read_to_string(place.audit().join("bulla.toml")).unwrap();
    text.split("\n[settings]\n").next().unwrap().to_owned()
}

#[test]
fn what_was_chosen_at_init_is_shown_and_followed() {
    let place = made(&["client=truncate-ip:16/32", "location=strip-query", "flags=drop", "purpose=keep"]);
    assert_eq!(
        place.info("fields"),
        json!({ "client": "truncate-ip:16/32", "location": "strip-query", "flags": "drop" })
    );
    let shown = place.run("info", &[]).exits(exit::DONE).out;
    let table = "field       client    truncate-ip:16/32\n\
                 field       flags     drop\n\
                 field       location  strip-query\n";
    assert!(shown.contains(table), "{shown}");
    assert!(!place.keys("pseudonym.key").exists());

    let line = r#"{"operation":"read","location":"/a?b=c","client":"[2001:db8:77::1%eth0]:443","flags":7,"status":0}"#;
    let ran = place.append(&[], format!("{line}\n").as_bytes()).exits(exit::DONE);
    assert_eq!(ran.err, "");
    let entry = place.entries().remove(0);
    assert_eq!((&entry["location"], &entry["client"]), (&json!("/a"), &json!("2001:db8::")));
    assert_eq!((entry.get("flags"), &entry["status"]), (None, &json!(0)));
    place.run("verify", &[]).exits(exit::DONE);
}

#[test]
fn a_log_without_rules_says_so_to_a_program_and_has_no_table() {
    let place = Place::new();
    assert_eq!(place.info("fields"), json!({}));
    assert!(!place.run("info", &[]).exits(exit::DONE).out.contains("field "));
    assert!(!log_part(&place).contains("fields"));
}

#[test]
fn rules_that_make_no_sense_are_refused_and_nothing_is_made() {
    for (rule, said) in [
        ("client", "it is not FIELD=RULE"),
        ("operation=drop", "`operation` is always kept"),
        ("subject=pseudonymise", "`subject` is always kept"),
        ("time=drop", "`time` is always kept"),
        ("status=pseudonymise", "`keep` or `drop`"),
        ("client=truncate-ip:30/48", "/24, /16 or /8"),
        ("payload=cap:0", "from 1 to 16777216"),
        ("clinet=drop", "an entry has no field `clinet`"),
    ] {
        let place = Place::empty();
        let ran = place.run("init", &["--field", rule]).exits(exit::USAGE);
        assert!(ran.err.contains(said) && ran.out.is_empty(), "{rule}: {ran:?}");
        assert!(!place.audit().exists() && !place.path("audit.keys").exists());
        if let Some((field, rule)) = rule.split_once('=') {
            let place = Place::new();
            let before = log_part(&place);
            let ran = config(&place, &["set", &format!("log.fields.{field}"), rule]).exits(exit::USAGE);
            assert!(ran.err.contains(said), "{ran:?}");
            assert_eq!(log_part(&place), before);
        }
    }
    let twice = Place::empty().run("init", &["--field", "client=drop", "--field", "client=keep"]);
    assert!(twice.exits(exit::USAGE).err.contains("two rules"));
    let place = Place::new();
    for arguments in [&["set", "log.fields", "drop"][..], &["unset", "log.fields"], &["get", "log.fields"]] {
        assert!(config(&place, arguments).exits(exit::USAGE).err.contains("log.fields.client"));
    }
    for arguments in [&["unset", "log.fields.clinet"][..], &["get", "log.fields.clinet"]] {
        assert!(config(&place, arguments).exits(exit::USAGE).err.contains("no field `clinet`"));
    }
}

#[test]
fn rules_come_and_go_with_a_command_and_are_recorded() {
    let place = Place::new();
    let append = |name: &str| {
        let line = json!({ "operation": "read", "location": format!("/{name}?x"), "actor": name });
        place.append(&[], format!("{line}\n").as_bytes()).exits(exit::DONE);
    };
    let before = log_part(&place);
    let get = |field: &str| config(&place, &["get", &format!("log.fields.{field}")]).exits(exit::DONE).out;
    append("a");
    let both = ["set", "log.fields.actor", "pseudonymise", "log.fields.location", "strip-query"];
    let ran = config(&place, &both).exits(exit::DONE);
    assert!(ran.out.contains("recorded") && ran.out.contains("before stays as it is"), "{ran:?}");
    assert!(!ran.out.contains("recipients"), "{ran:?}");
    append("b");
    append("b");
    let again = config(&place, &[&both[..], &["--json"]].concat()).exits(exit::DONE).json();
    assert_eq!(again, json!({ "changed": false, "recorded": false, "live": false }));
    assert_eq!(
        (get("actor"), get("location"), get("client")),
        ("pseudonymise\n".to_owned(), "strip-query\n".to_owned(), "keep\n".to_owned())
    );
    let shown = config(&place, &["--json"]).exits(exit::DONE).json();
    assert_eq!(shown["log.fields.actor"], json!({ "value": "pseudonymise", "source": "file" }));
    let ran = config(&place, &["unset", "log.fields.location", "--json"]).exits(exit::DONE).json();
    assert_eq!(ran["recorded"], true);
    append("c");
    config(&place, &["set", "log.fields.actor", "keep"]).exits(exit::DONE);
    append("d");
    assert_eq!(log_part(&place), before, "no trace is left");
    config(&place, &["set", "log.fields.actor", "pseudonymise"]).exits(exit::DONE);
    append("b");

    let entries = place.entries();
    let values = |name: &str| entries.iter().map(|entry| entry[name].clone()).collect::<Vec<Value>>();
    assert_eq!(values("location"), ["/a?x", "/b", "/b", "/c?x", "/d?x", "/b?x"]);
    let actors = values("actor");
    assert_eq!((&actors[0], &actors[4]), (&json!("a"), &json!("d")));
    let pseudonym =
        |value: &Value| value.as_str().is_some_and(|text| text.len() == 34 && text.starts_with("p-"));
    assert!(pseudonym(&actors[1]) && pseudonym(&actors[3]), "{actors:?}");
    assert_eq!(actors[1], actors[2]);
    assert_ne!(actors[1], actors[3]);
    assert_eq!(actors[1], actors[5], "the key stays, though the rule was gone");
    place.run("verify", &[]).exits(exit::DONE);
}

#[test]
fn the_key_of_pseudonyms_is_made_told_of_and_missed_where_there_is_no_vault() {
    let place = Place::empty();
    let options = ["--erasure", "off", "--field", "actor=pseudonymise"];
    let made = place.run("init", &[&options[..], &["--json"]].concat()).exits(exit::DONE).json();
    let key = place.keys("pseudonym.key");
    assert_eq!(made["pseudonym_key"], key.to_str().unwrap());
    let content = std::fs::read_to_string(&key).unwrap();
    assert!(content.starts_with("bulla-pseudonym-key-v1 "), "{content}");
    let secret = content.split_whitespace().nth(2).unwrap().to_owned();
    let mut other = arguments!["init", place.path("other")];
    other.extend(options.map(std::ffi::OsString::from));
    let text = bulla(other).exits(exit::DONE).out;
    assert!(text.contains("pseudonym.key") && text.contains("guess"), "{text}");

    let line = b"{\"operation\":\"login\",\"actor\":\"alice\"}\n";
    place.append(&[], line).exits(exit::DONE);
    for shown in [place.run("info", &[]).out, config(&place, &[]).out, place.run("export", &[]).out] {
        assert!(!shown.contains(&secret));
    }
    std::fs::remove_file(&key).unwrap();
    let frames = place.info("tree_size");
    let ran = place.append(&[], line).exits(exit::REFUSED);
    assert!(ran.err.contains("pseudonym.key is missing"), "{ran:?}");
    assert_eq!(place.info("tree_size"), frames, "nothing was begun");
    place.run("verify", &[]).exits(exit::DONE);

    // Another change makes no other key in passing; without the rule it goes on, and with it there is a new one.
    config(&place, &["set", "log.fields.client", "drop"]).exits(exit::DONE);
    assert!(!key.exists());
    config(&place, &["unset", "log.fields.actor"]).exits(exit::DONE);
    place.append(&[], line).exits(exit::DONE);
    config(&place, &["set", "log.fields.actor", "pseudonymise"]).exits(exit::DONE);
    place.append(&[], line).exits(exit::DONE);
    let actors = place.entries().iter().map(|entry| entry["actor"].clone()).collect::<Vec<_>>();
    assert_eq!(actors[1], "alice");
    assert_ne!(actors[0], actors[2]);

    std::fs::write(&key, content.replace(' ', "")).unwrap();
    let ran = place.append(&[], line).exits(exit::ENVIRONMENT);
    assert!(ran.err.contains("is not a pseudonym key") && !ran.err.contains(&secret), "{ran:?}");
}

#[test]
fn with_a_vault_the_key_of_pseudonyms_comes_from_that() {
    let place = Place::empty();
    let made = place.run("init", &["--field", "actor=pseudonymise", "--json"]).exits(exit::DONE).json();
    assert_eq!(made.get("pseudonym_key"), None);
    config(&place, &["set", "log.fields.actor", "keep"]).exits(exit::DONE);
    config(&place, &["set", "log.fields.actor", "pseudonymise"]).exits(exit::DONE);
    place.append(&[], b"{\"operation\":\"login\",\"actor\":\"alice\"}\n").exits(exit::DONE);
    assert!(!place.keys("pseudonym.key").exists());
    let text = bulla(arguments!["init", place.path("other"), "--field", "actor=pseudonymise"]).out;
    assert!(text.contains("the key of pseudonyms") && !text.contains("pseudonym.key"), "{text}");
}

#[test]
fn clients_that_are_no_addresses_are_dropped_counted_and_told() {
    let place = made(&["client=truncate-ip:24/48"]);
    let lines = ["198.51.100.7", "host.example.com", "10.0.0.1, 10.0.0.2", "::ffff:198.51.100.7"]
        .map(|client| format!("{}\n", json!({ "operation": "read", "client": client })));
    let ran = place.append(&[], lines.concat().as_bytes()).exits(exit::DONE);
    assert!(ran.err.contains("2 values of `client` were no addresses"), "{ran:?}");
    let clients = place.entries().iter().map(|entry| entry.get("client").cloned()).collect::<Vec<_>>();
    assert_eq!(clients, [Some(json!("198.51.100.0")), None, None, Some(json!("198.51.100.0"))]);
    assert_eq!(place.append(&[], lines[0].as_bytes()).exits(exit::DONE).err, "");
}

#[test]
fn the_subject_is_whole_whatever_becomes_of_the_field_that_names_it() {
    let place = made(&["client=truncate-ip:24/48", "payload=drop"]);
    let line = b"198.51.100.7 - - [21/Nov/2026:10:00:00 +0000] \"GET /a HTTP/1.1\" 200 5 \"-\" \"agent\"\n";
    place.append(&["--format", "combined", "--subject-from", "client"], line).exits(exit::DONE);
    let entry = place.entries().remove(0);
    assert_eq!((&entry["client"], &entry["subject"]), (&json!("198.51.100.0"), &json!("198.51.100.7")));
    assert_eq!(entry.get("payload"), None);
    let found = place.run("export", &["--subject", "198.51.100.7"]).exits(exit::DONE).out;
    assert_eq!(parse_lines(&found).len(), 1);
}

#[test]
fn a_filter_for_what_a_rule_never_logs_says_so_and_what_to_filter_for() {
    let place =
        made(&["actor=pseudonymise", "client=truncate-ip:24/48", "location=strip-query", "purpose=drop"]);
    let line = json!({
        "operation": "read", "subject": "s", "actor": "alice", "client": "192.0.2.7", "location": "/a?b", "purpose": "p",
    });
    place.append(&[], format!("{line}\n").as_bytes()).exits(exit::DONE);
    let out = place.path("out").into_os_string().into_string().unwrap();
    let (_, recipient) = bulla::keys::identities::generate();
    let alice = place.run("pseudonym", &["actor", "alice"]).exits(exit::DONE).out[..34].to_owned();
    for (field, plain, said, logged) in [
        (
            "actor",
            "alice",
            "pseudonymise, is a pseudonym in its place: filter for what `bulla pseudonym DIR actor NAME` prints",
            &*alice,
        ),
        (
            "client",
            "192.0.2.7",
            "truncate-ip:24/48, is an address's network: filter for 192.0.2.0",
            "192.0.2.0",
        ),
        ("location", "/a?b", "strip-query, is what comes before `?` and `#`: filter for that", "/a"),
    ] {
        let said = format!("of `{field}` what is logged under its rule, {said}\n");
        let option = format!("--{field}");
        let run = |command: &str, value: &str, more: &[&str]| {
            place.run(command, &[&[&*option, value], more].concat())
        };
        let ran = run("export", plain, &[]).exits(exit::DONE);
        assert!(ran.out.is_empty() && ran.err.starts_with(&format!("0 entries\n{said}")), "{ran:?}");
        let ran = run("tail", plain, &["--entries", "0..0"]).exits(exit::DONE);
        assert_eq!(ran.err, format!("{said}0 entries\n"));
        for (command, more) in [("prove", &[][..]), ("grant", &["--recipient", &recipient])] {
            let ran = run(command, plain, &[more, &["-o", &out]].concat()).exits(exit::REFUSED);
            assert!(ran.err.starts_with(&said), "{command}: {ran:?}");
        }
        // What is logged is found, and nothing is said of rules; either of two is enough.
        for more in [&[][..], &[&option, plain]] {
            let ran = run("export", logged, more).exits(exit::DONE);
            assert!(ran.out.lines().count() == 1 && !ran.err.contains("rule"), "{ran:?}");
        }
    }
    let ran = place.run("export", &["--purpose", "p"]).exits(exit::DONE);
    assert!(ran.err.contains("of `purpose` what is logged under its rule, drop, is nothing"), "{ran:?}");
}

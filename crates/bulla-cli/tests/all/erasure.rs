//! Logs with erasure: what is personal, with the vault, without it, and of whom was erased.

use crate::support::{Place, Ran, arguments, bulla, copy, exit, lines, parse_lines};
use bulla::environment::Environment;
use bulla::event::Event;
use bulla::keys::signing::SigningKey;
use bulla::{ErasureOrder, Log, Options};
use bulla_vault::{Access, Settings, Vault};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// A log of a hundred entries of ten people.
fn filled() -> Place {
    let place = Place::new();
    // One block, however slow the machine.
    place.run("config", &["set", "linger", "10 s"]).exits(exit::DONE);
    place.append(&[], &lines(0..100)).exits(exit::DONE);
    place
}

fn vault(place: &Place) -> Vault {
    let id = bulla::info(place.audit()).unwrap().id;
    Vault::open(&place.path("audit.keys"), id, Access::Write, &Settings::default()).unwrap()
}

/// The log records that these were erased.
fn record(place: &Place, numbers: &[u64]) {
    let log = Log::open(place.audit(), Options::default()).unwrap();
    let key = SigningKey::parse(&fs::read_to_string(place.keys("erasure.key")).unwrap()).unwrap();
    let id = bulla::info(place.audit()).unwrap().id;
    let names = ["one", "two", "three"][..numbers.len()].to_vec();
    let order = ErasureOrder::give(&key, id, &names, None, &Environment::default()).unwrap();
    let order = order.note().to_owned();
    let (numbers, carried_out) = (numbers.to_vec(), (0..).take(numbers.len()).collect());
    log.record(Event::Erased { numbers, carried_out, order, remains: Vec::new() }).unwrap();
    log.close().unwrap();
}

fn withheld(lines: &[Value], why: &str) -> usize {
    lines.iter().filter(|line| line["withheld"] == why && line["location"].is_null()).count()
}

#[test]
fn without_the_vault_nothing_personal_is_read_and_what_to_do_is_said() {
    let place = filled();
    fs::rename(place.keys("vault"), place.path("vault")).unwrap();
    for command in [&["export"][..], &["export", "--salvage"], &["prove", "--entry", "1"], &["tail"]] {
        let ran = place.run(command[0], &command[1..]).exits(exit::REFUSED);
        assert!(ran.err.contains("--keys") && ran.err.contains("--withhold-personal"), "{ran:?}");
        assert_eq!(ran.out, "");
    }
    let ran = place.run("export", &["--withhold-personal"]).exits(exit::DONE);
    let entries = parse_lines(&ran.out);
    assert_eq!((entries.len(), withheld(&entries, "not-given")), (100, 100));
    assert!(entries.iter().all(|entry| entry["operation"] == "read" && entry["subject"].is_null()));
    assert_eq!(ran.err, "100 entries came without personal fields: their keys were not given\n");
    let ran = place.run("tail", &["--withhold-personal", "--entries", "0..99"]).exits(exit::DONE);
    assert_eq!(parse_lines(&ran.out), entries);

    let verified = place.run("verify", &[]).exits(exit::DONE);
    assert!(verified.out.contains("personal groups were not opened: no vault is at hand"), "{verified:?}");
    let checked = place.run("verify", &["--json"]).exits(exit::DONE).json()["checked"].clone();
    assert_eq!(checked, serde_json::json!(["public", "seals", "blocks"]));
    let file = place.path("a.proof");
    place
        .run("prove", &["--withhold-personal", "--with-others", "--entry", "1", "-o", file.to_str().unwrap()])
        .exits(exit::DONE);
    let ran = bulla(arguments!["check", file]).exits(exit::DONE);
    let disclosed = parse_lines(&ran.out);
    assert_eq!(withheld(&disclosed, "not-given"), disclosed.len());

    // What is withheld cannot be asked for.
    for filter in [["--subject", "s1"], ["--stream", "default"]] {
        for command in
            [&["export"][..], &["export", "--salvage"], &["prove"], &["tail", "--entries", "0..99"]]
        {
            let options = [&command[1..], &["--withhold-personal"], &filter].concat();
            let ran = place.run(command[0], &options).exits(exit::USAGE);
            assert!(ran.err.contains("--withhold-personal withholds") && ran.out.is_empty(), "{ran:?}");
        }
    }

    // The vault is found where it is said to be.
    let keys = place.path("audit.keys");
    fs::rename(place.path("vault"), place.keys("vault")).unwrap();
    fs::rename(&keys, place.path("elsewhere")).unwrap();
    let elsewhere = place.path("elsewhere");
    let ran = place.run("export", &["--keys", elsewhere.to_str().unwrap()]).exits(exit::DONE);
    assert!(parse_lines(&ran.out).iter().all(|entry| entry["withheld"].is_null()), "{ran:?}");
    assert_eq!(ran.err, "");
}

#[test]
fn a_vault_that_is_not_this_logs_or_not_whole_is_refused_with_its_own_reason() {
    let (place, other) = (filled(), filled());
    let [vault, roots] = ["vault", "roots"].map(|name| place.keys(name));
    let away = |path: &Path| path.with_extension("away");
    fs::rename(&vault, away(&vault)).unwrap();
    fs::rename(&roots, away(&roots)).unwrap();
    let fails = |code: i32, why: &str| {
        let ran = place.run("export", &[]).exits(code);
        assert!(ran.err.contains(why) && ran.out.is_empty(), "{ran:?}");
    };
    let copy = |from: &Path, to: &Path| {
        fs::create_dir(to).unwrap();
        for file in fs::read_dir(from).unwrap() {
            let file = file.unwrap();
            fs::copy(file.path(), to.join(file.file_name())).unwrap();
        }
    };
    copy(&other.keys("vault"), &vault);
    copy(&other.keys("roots"), &roots);
    fails(exit::REFUSED, "the vault of another log");
    let ran = place.run("verify", &[]).exits(exit::REFUSED);
    assert!(ran.err.contains("the vault of another log") && ran.err.contains("--public"), "{ran:?}");
    place.run("verify", &["--public"]).exits(exit::DONE);

    fs::remove_dir_all(&vault).unwrap();
    copy(&away(&vault), &vault);
    fs::remove_dir_all(&roots).unwrap();
    fs::create_dir(&roots).unwrap();
    fails(exit::REFUSED, "root");
    place.run("verify", &[]).exits(exit::REFUSED);
}

#[test]
fn who_was_erased_is_told_from_whose_key_is_lost() {
    let place = filled();
    let vault = vault(&place);
    let number = vault.find("s3").unwrap().unwrap().number;
    let erased = vault.begin_erasure(&["s3"]).unwrap().unwrap().commit().unwrap().destroy().unwrap();
    let ran = place.run("export", &[]).exits(exit::REFUSED);
    assert!(ran.err.contains("try again in a moment") && ran.out.is_empty(), "{ran:?}");

    // The vault lets go of it, and the log knows nothing.
    vault.confirm(erased.numbers()).unwrap();
    drop(vault);
    let all = |code: i32, why: &str| -> (Vec<Value>, Ran) {
        let ran = place.run("export", &[]).exits(code);
        let entries = parse_lines(&ran.out);
        assert_eq!((entries.len(), withheld(&entries, why)), (100, 10), "{ran:?}");
        (entries, ran)
    };
    let (_, ran) = all(exit::VIOLATION, "key-lost");
    assert!(ran.err.contains("10 entries came without personal fields: keys are lost"), "{ran:?}");
    let ran = place.run("export", &["--subject", "s3"]).exits(exit::VIOLATION);
    assert!(ran.err.contains("10 entries may match and cannot be opened: keys are lost"), "{ran:?}");
    let report = place.run("verify", &["--json"]).exits(exit::VIOLATION).json();
    assert_eq!((&report["findings"][0]["kind"], &report["erased"]), (&"key-lost".into(), &0.into()));
    assert_eq!(report["findings"][0]["entries"], serde_json::json!([3, 93]));

    record(&place, &[number]);
    let (entries, ran) = all(exit::DONE, "erased");
    assert!(!place.run("export", &["--subject", "s3"]).exits(exit::DONE).err.contains("may match"));
    assert_eq!(ran.err, "10 entries came without personal fields: erased\n");
    let others = entries.iter().filter(|entry| entry["entry"].as_u64().unwrap() % 10 != 3);
    assert!(others.clone().all(|entry| entry["withheld"].is_null() && entry["location"].is_string()));
    assert_eq!(others.count(), 90);
    let report = place.run("verify", &["--json"]).exits(exit::DONE).json();
    assert_eq!((&report["findings"], &report["erased"]), (&serde_json::json!([]), &10.into()));
    let ran = place.run("export", &["--subject", "s3"]).exits(exit::DONE);
    assert_eq!(ran.out, "");
    let csv = place.run("export", &["--format", "csv"]).exits(exit::DONE).out;
    let ends = |end: &str| csv.lines().skip(1).filter(|line| line.ends_with(end)).count();
    assert_eq!((ends(",,,,erased"), ends(",")), (10, 90), "{csv}");
    let ran = place.run("tail", &["--entries", "0..99"]).exits(exit::DONE);
    assert_eq!(parse_lines(&ran.out), entries);
    let salvaged = place.run("export", &["--salvage"]).exits(exit::DONE);
    assert_eq!(parse_lines(&salvaged.out), entries);

    // What comes of the same person now is another subject's.
    place.append(&[], &lines(3..4)).exits(exit::DONE);
    assert_eq!(parse_lines(&place.run("export", &["--subject", "s3"]).exits(exit::DONE).out).len(), 1);
}

/// A log whose vault is as it was before its last seven entries, which are bob's: his key is lost.
fn with_an_older_vault() -> Place {
    let place = filled();
    let older = place.path("older");
    fs::create_dir(&older).unwrap();
    for name in ["vault", "roots"] {
        copy(&place.keys(name), &older.join(name));
    }
    let line =
        |number: usize| format!("{{\"operation\":\"read\",\"location\":\"{number}\",\"subject\":\"bob\"}}\n");
    place.append(&[], (0..7).map(line).collect::<String>().as_bytes()).exits(exit::DONE);
    place.run("export", &["--subject", "nobody"]).exits(exit::DONE);
    for name in ["vault", "roots"] {
        fs::remove_dir_all(place.keys(name)).unwrap();
        copy(&older.join(name), &place.keys(name));
    }
    place
}

#[test]
fn an_older_vault_never_makes_entries_look_like_none() {
    let place = with_an_older_vault();
    let told = |ran: &Ran| {
        assert!(ran.err.contains("7 entries may match and cannot be opened: keys are lost"), "{ran:?}");
        assert!(ran.err.contains("Restore the vault from a backup"), "{ran:?}");
    };
    for (subject, found) in [("bob", 0), ("nobody", 0), ("s3", 10)] {
        for command in [
            &["export"][..],
            &["export", "--salvage"],
            &["export", "--format", "csv"],
            &["tail", "--entries", "0..106"],
        ] {
            let ran = place.run(command[0], &[&command[1..], &["--subject", subject]].concat());
            let ran = ran.exits(exit::VIOLATION);
            told(&ran);
            let header = usize::from(command.contains(&"csv"));
            assert_eq!(ran.out.lines().count(), found + header, "{subject}, {command:?}: {ran:?}");
        }
        let file = place.path("a.proof");
        let ran = place.run("prove", &["--subject", subject, "-o", file.to_str().unwrap()]);
        assert_eq!(file.exists(), found > 0);
        match found {
            0 => {
                assert!(ran.exits(exit::VIOLATION).err.contains("7 of its entries may, and cannot be opened"))
            }
            _ => told(&ran.exits(exit::VIOLATION)),
        }
    }
    let ran = place.run("export", &["--subject", "bob", "--salvage"]).exits(exit::VIOLATION);
    let last = ran.err.lines().last().unwrap();
    assert_eq!(
        last,
        "left out: up to 7 entries that may match, whose keys are lost; no damage was found, seals were not looked at"
    );
    // What asks for nothing personal finds them, as ever.
    let ran = place.run("export", &["--entries", "100..106"]).exits(exit::VIOLATION);
    assert_eq!(withheld(&parse_lines(&ran.out), "key-lost"), 7);
}

#[test]
fn whatever_gives_entries_out_counts_those_whose_keys_are_lost_and_ends_with_exit_1() {
    let place = with_an_older_vault();
    let (_, recipient) = bulla::keys::identities::generate();
    let file = place.path("file");
    let into_file = ["-o", file.to_str().unwrap(), "--with-others"];
    let grant = ["--recipient", &recipient, into_file[0], into_file[1]];
    for (command, options, what) in [
        ("export", &[][..], "came without personal fields"),
        ("tail", &[], "came without personal fields"),
        ("prove", &into_file, "proven without personal fields"),
        ("grant", &grant, "not granted"),
    ] {
        let of = |entries| place.run(command, &[options, &["--entries", entries]].concat());
        let ran = of("90..106").exits(exit::VIOLATION);
        let told = format!("7 entries {what}: keys are lost that the log does not say were erased");
        assert!(ran.err.contains(&told), "{command}: {ran:?}");
        assert!(!of("0..99").exits(exit::DONE).err.contains("lost"), "{command}");
    }
    fs::remove_file(&file).unwrap();
    let ran = place.run("grant", &[&grant[..], &["--entries", "100.."]].concat()).exits(exit::VIOLATION);
    assert!(ran.err.contains("7 of its entries meet that, and cannot be opened: keys are lost"), "{ran:?}");
    assert!(!file.exists());
}

#[test]
fn a_log_has_erasure_from_the_first_or_never() {
    let place = filled();
    let get = |place: &Place| place.run("config", &["get", "log.erasure"]).exits(exit::DONE).out;
    let file = |place: &Place| fs::read_to_string(place.audit().join("bulla.toml")).unwrap();
    assert_eq!((place.info("erasure"), get(&place)), (true.into(), "on\n".to_owned()));
    assert!(file(&place).contains("\nerasure = \"on\"\n"));
    let ran = place.run("config", &["set", "log.erasure", "off"]).exits(exit::REFUSED);
    assert!(ran.err.contains("never changes"), "{ran:?}");

    let without = Place::empty();
    let made = bulla(arguments!["init", without.audit(), "--erasure", "off", "--json"]).exits(exit::DONE);
    assert_eq!(made.json()["erasure"], false);
    assert!(!without.keys("vault").exists());
    without.append(&[], &lines(0..10)).exits(exit::DONE);
    assert_eq!((without.info("erasure"), get(&without)), (false.into(), "off\n".to_owned()));
    assert!(file(&without).contains("\nerasure = \"off\"\n"));
    assert_eq!(without.entries().len(), 10);
    bulla(arguments!["init", place.path("other"), "--erasure", "maybe"]).exits(exit::USAGE);
}

/// Changes a bit of the body of the event `erased` in the log's one segment.
fn damage_the_erasure(place: &Place) {
    let segment = fs::read_dir(place.path("audit/segments")).unwrap().next().unwrap().unwrap().path();
    let mut bytes = fs::read(&segment).unwrap();
    let told = b"\"erased\"";
    let at = bytes.windows(told.len()).rposition(|window| window == told).unwrap();
    bytes[at + 1] ^= 1;
    fs::write(segment, bytes).unwrap();
}

#[test]
fn where_an_erasure_may_stand_in_a_damaged_event_nobody_is_given_out_whom_an_older_vault_has() {
    let place = filled();
    let older = place.path("older");
    fs::create_dir(&older).unwrap();
    for name in ["vault", "roots"] {
        copy(&place.keys(name), &older.join(name));
    }
    place.run("erase", &["--subject", "s3", "--yes"]).exits(exit::DONE);
    damage_the_erasure(&place);
    let untold = "whether they were erased cannot be told: frame 3, which is an event or may be one, is damaged or missing";
    let told_nothing_false = |ran: &Ran| {
        assert!(ran.err.contains(untold) && ran.err.contains("and not the vault"), "{ran:?}");
        assert!(!ran.err.contains("Restore the vault") && !ran.err.contains("keys are lost"), "{ran:?}");
    };

    // The vault follows the event: what it has may be given out, and of what it lacks nobody can tell why.
    let ran = place.run("export", &["--salvage"]).exits(exit::VIOLATION);
    let entries = parse_lines(&ran.out);
    assert_eq!((entries.len(), withheld(&entries, "cannot-tell")), (100, 10), "{ran:?}");
    told_nothing_false(&ran);
    let ran = place.run("export", &["--salvage", "--subject", "s3"]).exits(exit::VIOLATION);
    assert_eq!(ran.out, "");
    told_nothing_false(&ran);
    let key_lost = |report: &Value| {
        let found = report["findings"].as_array().unwrap().clone();
        found.into_iter().find(|finding| finding["kind"] == "key-lost")
    };
    let report = place.run("verify", &["--json"]).exits(exit::VIOLATION).json();
    assert_eq!(report["erased"], Value::Null);
    let detail = key_lost(&report).unwrap()["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("cannot be told: frame 3") && detail.contains("not the vault"), "{detail}");

    // One from before the erasure has the key that was destroyed.
    for name in ["vault", "roots"] {
        fs::remove_dir_all(place.keys(name)).unwrap();
        copy(&older.join(name), &place.keys(name));
    }
    let ran = place.run("export", &["--salvage"]).exits(exit::VIOLATION);
    let entries = parse_lines(&ran.out);
    assert_eq!((entries.len(), withheld(&entries, "cannot-tell")), (100, 100), "{ran:?}");
    told_nothing_false(&ran);
    for subject in ["s3", "s4"] {
        let ran = place.run("export", &["--salvage", "--subject", subject]).exits(exit::VIOLATION);
        assert_eq!(ran.out, "");
        told_nothing_false(&ran);
        assert!(ran.err.contains(&format!("data subject `{subject}` may be known or not")), "{ran:?}");
    }
    let report = place.run("verify", &["--json"]).exits(exit::VIOLATION).json();
    assert_eq!((key_lost(&report), &report["erased"]), (None, &Value::Null));
}

/// The erasure is in the part of the log that is not there: an older vault would bring back whoever was erased.
#[test]
fn a_log_that_is_older_than_its_vault_is_to_be_brought_back_and_not_the_vault() {
    let place = Place::new();
    place.append(&[], &lines(0..20)).exits(exit::DONE);
    let older = place.path("older");
    copy(&place.audit(), &older);
    place.run("erase", &["--subject", "s7", "--yes"]).exits(exit::DONE);
    fs::rename(place.audit(), place.path("newer")).unwrap();
    fs::rename(&older, place.audit()).unwrap();
    // With that every reader but a salvage refuses the log.
    fs::remove_file(place.keys("seal.state")).unwrap();
    let file = place.path("made").into_os_string().into_string().unwrap();
    let recipient = place.info("recipients")[0].as_str().unwrap().to_owned();
    for (command, more) in [
        ("export", &[][..]),
        ("export", &["--subject", "s7"]),
        ("export", &["--salvage"]),
        ("export", &["--entry", "7"]),
        ("prove", &["--subject", "s7", "-o", &file]),
        ("prove", &["--entry", "7", "--with-others", "-o", &file]),
        ("grant", &["--subject", "s7", "--recipient", &recipient, "-o", &file]),
        ("grant", &["--entry", "7", "--recipient", &recipient, "-o", &file]),
        ("tail", &["--subject", "s7", "--entries", "0..19"]),
    ] {
        let ran = place.run(command, more).exits(exit::VIOLATION);
        drop(fs::remove_file(&file));
        let said = "the vault has followed more frames than the log has";
        assert!(ran.err.contains(said), "{command} {more:?}: {ran:?}");
        assert!(ran.err.contains("Bring back the log"), "{command} {more:?}: {ran:?}");
        assert!(!ran.err.contains("Restore the vault"), "{command} {more:?}: {ran:?}");
    }
}

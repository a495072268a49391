use crate::support::{Place, arguments, bulla, exit, lines};
use bulla::{Log, Options};

fn filled() -> Place {
    let place = Place::new();
    place.append(&[], &lines(0..1000)).exits(exit::DONE);
    place
}

#[test]
fn every_level_says_what_it_checked_and_no_more() {
    let place = filled();
    let checked = |more: &[&str]| {
        let out = place.run("verify", more).exits(exit::DONE).out;
        out.lines().find_map(|line| line.strip_prefix("checked    ")).unwrap().to_owned()
    };
    assert_eq!(checked(&[]), "public data, seals and every block");
    assert_eq!(checked(&["--public"]), "public data alone");
    std::fs::rename(place.keys("seal.key"), place.path("seal.key")).unwrap();
    assert_eq!(checked(&[]), "public data and every block; no seals");
    std::fs::rename(place.keys("identity.age"), place.path("identity.age")).unwrap();
    assert_eq!(checked(&[]), "public data alone");
    let (seal_key, identity) = (place.path("seal.key"), place.path("identity.age"));
    assert_eq!(
        checked(&["--seal-key", seal_key.to_str().unwrap()]),
        "public data and seals; no block was opened"
    );
    assert_eq!(checked(&["--identity", identity.to_str().unwrap()]), "public data and every block; no seals");
}

#[test]
fn without_a_key_it_is_self_consistent_and_nobodys() {
    let place = filled();
    let ran = place.run("verify", &[]).exits(exit::DONE);
    assert!(ran.out.contains("self-consistent") && ran.out.contains("whose log"), "{ran:?}");
    let key = place.verifier_key();
    let file = place.write("vkey", format!("# of the log\n{key}\n").as_bytes());
    for given in [&key, &file] {
        let ran = place.run("verify", &["--key", given]).exits(exit::DONE);
        assert!(ran.out.contains(&format!("this is the log of {key}")), "{ran:?}");
        assert!(!ran.out.contains("self-consistent"), "{ran:?}");
    }
}

#[test]
fn json_has_the_keys_of_the_contract_and_no_others() {
    let place = filled();
    let report = place.run("verify", &["--json"]).exits(exit::DONE).json();
    let keys = report.as_object().unwrap().keys().map(String::as_str).collect::<Vec<_>>();
    assert_eq!(
        keys,
        [
            "anchored",
            "blocks",
            "checked",
            "entries",
            "erased",
            "findings",
            "ok",
            "pending",
            "pin",
            "root",
            "signed_time",
            "tree_size",
            "witnessed"
        ]
    );
    let signed = report["signed_time"].as_str().unwrap();
    assert!(signed.len() == 20 && signed.ends_with('Z'), "{signed}");
    assert_eq!(report["signed_time"], place.info("signed_time"));
    let ran = place.run("verify", &[]).exits(exit::DONE);
    assert!(ran.out.contains(&format!("signed     {signed}\n")), "{ran:?}");
    assert!(place.run("info", &[]).exits(exit::DONE).out.contains(&format!("signed      {signed}\n")));
    assert_eq!((&report["ok"], &report["anchored"]), (&true.into(), &false.into()));
    assert_eq!((&report["entries"], &report["findings"]), (&1000.into(), &serde_json::json!([])));
    assert_eq!(report["root"], place.info("root"));
    let checkpoint = std::fs::read_to_string(place.audit().join("checkpoint")).unwrap();
    assert_eq!(report["root"], checkpoint.lines().nth(2).unwrap());

    let key = place.verifier_key();
    assert_eq!(place.run("verify", &["--json", "--key", &key]).exits(exit::DONE).json()["anchored"], true);
}

#[test]
fn damage_is_found_at_every_level_and_named() {
    let place = filled();
    place.damage(0.9);
    for level in [&["--json"][..], &["--json", "--public"]] {
        let report = place.run("verify", level).exits(exit::VIOLATION).json();
        assert_eq!(report["ok"], false, "{report}");
        let finding = &report["findings"][0];
        assert_eq!(finding["severity"], "violation", "{report}");
        assert_eq!(finding["segment"], place.segment().file_name().unwrap().to_str().unwrap(), "{report}");
        assert!(finding["offset"].is_u64() && finding["frame"].is_u64(), "{report}");
        let entry = |index: usize| finding["entries"][index].as_u64().unwrap();
        assert!(entry(0) <= entry(1) && entry(1) < 1000, "{report}");
        assert!(finding["kind"].is_string() && finding["detail"].is_string(), "{report}");
    }
    let ran = place.run("verify", &[]).exits(exit::VIOLATION);
    assert!(ran.out.contains("NOT what was written") && ran.out.contains(", entries "), "{ran:?}");
}

#[test]
fn another_logs_key_or_checkpoint_is_a_violation() {
    let (place, other) = (filled(), Place::new());
    let ran = place.run("verify", &["--key", &other.verifier_key(), "--json"]).exits(exit::VIOLATION).json();
    assert_eq!((&ran["anchored"], &ran["findings"][0]["kind"]), (&false.into(), &"key-mismatch".into()));
    // Seal keys bind as that key does.
    let another = other.keys("seal.key").into_os_string().into_string().unwrap();
    let policy = place.write("policy", format!("log {}\nquorum none\n", other.verifier_key()).as_bytes());
    let key = other.verifier_key();
    for more in [["--key", &key], ["--seal-key", &another], ["--policy", &policy]] {
        let ran = place.run("verify", &more).exits(exit::VIOLATION);
        assert!(ran.out.starts_with("result     not the log that was asked for: 1 violation\n"), "{ran:?}");
        assert!(ran.out.contains("violation key-mismatch: "), "{ran:?}");
    }
    let ran = place.run("verify", &["--seal-key", &another, "--json"]).exits(exit::VIOLATION).json();
    assert_eq!(ran["findings"][0]["kind"], "key-mismatch", "{ran}");
    std::fs::copy(other.audit().join("checkpoint"), place.audit().join("checkpoint")).unwrap();
    place.run("verify", &["--public"]).exits(exit::VIOLATION);
}

#[test]
fn an_edited_configuration_is_a_violation() {
    let place = filled();
    let file = place.audit().join("bulla.toml");
    std::fs::write(&file, "[log]\nversion = 1\n").unwrap();
    let ran = place.run("verify", &["--json"]).exits(exit::VIOLATION).json();
    assert_eq!(ran["findings"][0]["kind"], "config-damaged");
}

#[test]
fn keys_that_are_none_are_told() {
    let (place, other) = (filled(), Place::new());
    let file = place.write("none", b"not a key\n");
    let told = |more: &[&str], code: i32, name: &str| {
        let ran = place.run("verify", more).exits(code);
        assert!(ran.err.contains(name), "{more:?} do not name {name}: {ran:?}");
    };
    told(&["--key", &file], exit::USAGE, &file);
    told(&["--key", "no-such-key"], exit::USAGE, "no-such-key");
    told(&["--seal-key", &file], exit::USAGE, &file);
    told(&["--identity", &file], exit::USAGE, &file);
    told(&["--public", "--identity", &file], exit::USAGE, "--identity");
    told(&["--identity", "no-such-file"], exit::REFUSED, "no-such-file");
    told(&["--seal-key", "no-such-file"], exit::REFUSED, "no-such-file");
    let another = other.keys("identity.age").into_os_string().into_string().unwrap();
    // It is an identity; what it does not open is the log.
    told(&["--identity", &another], exit::REFUSED, "not a recipient");
}

#[test]
fn a_key_that_is_none_is_told_by_the_name_of_its_option() {
    let place = filled();
    let [out, key] = [place.path("out"), place.keys("erasure.key")].map(|it| it.to_str().unwrap().to_owned());
    place.run("hold", &["add", "--subject", "s1", "--by", "b", "--reason", "r"]).exits(exit::DONE);
    let frame = (place.info("tree_size").as_u64().unwrap() - 1).to_string();
    place.run("prove", &["--event", &frame, "-o", &out]).exits(exit::DONE);
    let id = place.info("id").as_str().unwrap().to_owned();
    let audit = place.audit().to_str().unwrap().to_owned();
    let elsewhere = place.path("elsewhere").to_str().unwrap().to_owned();
    for (words, option) in [
        (&["verify", &audit][..], "--key"),
        (&["verify", &audit], "--erasure-key"),
        (&["events", &audit], "--key"),
        (&["events", &audit], "--erasure-key"),
        (&["export", &audit], "--key"),
        (&["tail", &audit], "--key"),
        (&["prove", &audit, "--entry", "0"], "--key"),
        (&["check", &out], "--key"),
        (&["check", &out], "--erasure-key"),
        (&["init", &elsewhere], "--erasure-key"),
        (&["order", "--log", &id, "--authority", &key, "-o", "never"], "--new-erasure-key"),
    ] {
        let ran = bulla([words, &[option, "x"]].concat()).exits(exit::USAGE);
        let said =
            format!("bulla: {option}: `x` is neither a public key (NAME+ID+KEY) nor a file that holds one\n");
        assert_eq!(ran.err, said, "{words:?}");
    }
}

#[test]
fn a_signing_key_that_is_none_is_told_by_who_writes() {
    let place = filled();
    let signing = place.keys("signing.key");
    let whole = std::fs::read_to_string(&signing).unwrap();
    let cut = &whole[..whole.len() / 2];
    for damaged in ["", "not a key\n", cut] {
        std::fs::write(&signing, damaged).unwrap();
        let ran = place.append(&[], &lines(0..1)).exits(exit::ENVIRONMENT);
        assert!(ran.err.contains(signing.to_str().unwrap()), "{ran:?}");
        assert!(!ran.err.contains(cut), "a secret is printed");
        // Who reads needs no such key.
        place.run("verify", &[]).exits(exit::DONE);
    }
    std::fs::write(&signing, whole).unwrap();
    place.append(&[], &lines(0..1)).exits(exit::DONE);
}

#[test]
fn a_writer_at_work_is_no_finding() {
    let place = filled();
    let log = Log::open(place.audit(), Options::default()).unwrap();
    let mut producer = log.producer().unwrap();
    producer.append(&bulla::Entry::new("read", "x")).unwrap();
    producer.flush().unwrap().durable().unwrap();
    assert_eq!(place.run("verify", &["--json"]).exits(exit::DONE).json()["ok"], true);
    drop(producer);
    log.close().unwrap();
}

/// Bytes behind what is signed: a notice to whoever has no keys, and a violation to whoever has.
#[test]
fn what_is_not_signed_is_a_notice_and_keys_bind_it() {
    let place = filled();
    let segment = place.segment();
    let whole = std::fs::read(&segment).unwrap();
    let with = |more: &[u8]| std::fs::write(&segment, [&whole[..], more].concat()).unwrap();
    // As a writer leaves it that was killed: the beginning of a frame.
    with(&whole[..100]);
    for level in [&["--json"][..], &["--json", "--public"]] {
        let report = place.run("verify", level).exits(exit::DONE).json();
        assert_eq!(report["ok"], true, "{report}");
        let finding = &report["findings"][0];
        assert_eq!(
            (&finding["kind"], &finding["severity"]),
            (&"unsigned-tail".into(), &"notice".into()),
            "{report}"
        );
        assert_eq!(finding["offset"], whole.len(), "{report}");
        let last = report["tree_size"].as_u64().unwrap() - 1;
        let said = format!("verified up to frame {last}; 100 bytes after it are not signed yet");
        assert!(finding["detail"].as_str().unwrap().starts_with(&said), "{report}");
    }
    let ran = place.run("verify", &[]).exits(exit::DONE);
    assert!(ran.out.contains("notice unsigned-tail in ") && ran.out.contains("not signed yet"), "{ran:?}");
    let report = place.run("verify", &["--strict", "--json"]).exits(exit::VIOLATION).json();
    assert_eq!(report["findings"][0]["kind"], "unclosed", "{report}");
    assert_eq!(place.entries().len(), 1000);
    // Whoever reads a part is told of it as whoever reads everything.
    let (out, path) = (place.path("out.parquet"), place.path("out.parquet").display().to_string());
    for query in [
        &[][..],
        &["--subject", "s7"],
        &["--subject", "nobody"],
        &["--entries", "0..10", "--format", "csv"],
        &["--operation", "read", "--format", "parquet", "-o", &path],
    ] {
        let ran = place.run("export", query).exits(exit::DONE);
        let said = segment.file_name().unwrap().to_str().unwrap();
        for said in ["notice unsigned-tail", said, "100 bytes after it are not signed yet"] {
            assert!(ran.err.contains(said), "{query:?}: {said}: {ran:?}");
        }
    }
    std::fs::remove_file(out).unwrap();
    let info = place.run("info", &["--json"]).exits(exit::DONE);
    assert!(info.err.contains("100 bytes follow the checkpoint and are not signed"), "{info:?}");
    assert_eq!(info.json()["unsigned_bytes"], 100);
    // A segment of its own counts as well, and one that a writer is at not at all.
    let second = segment.with_file_name("00000000000000099999.seg");
    std::fs::write(&second, [1; 50]).unwrap();
    assert_eq!(place.info("unsigned_bytes"), 150);
    std::fs::remove_file(second).unwrap();
    with(b"");
    let ran = place.run("export", &["--subject", "s7"]).exits(exit::DONE);
    assert!(!ran.err.contains("unsigned"), "{ran:?}");
    assert_eq!(place.info("unsigned_bytes"), 0);
    let log = Log::open(place.audit(), Options::default()).unwrap();
    let info = place.run("info", &["--json"]).exits(exit::DONE);
    assert!(info.err.is_empty() && info.json()["unsigned_bytes"].is_null(), "{info:?}");
    log.close().unwrap();
    let whole = std::fs::read(&segment).unwrap();
    let with = |more: &[u8]| std::fs::write(&segment, [&whole[..], more].concat()).unwrap();
    // Nothing that a crash leaves.
    with(b"garbage");
    place.run("verify", &["--public"]).exits(exit::DONE);
    for keys in [true, false] {
        let report = place.run("verify", &["--json"]).exits(exit::VIOLATION).json();
        assert_eq!(report["findings"][0]["kind"], "tail-damaged", "{report}");
        if keys {
            // What the writing host knows is enough.
            std::fs::remove_file(place.keys("seal.key")).unwrap();
        }
    }
    // An older copy, beside the key directory of the newer log.
    with(b"");
    place.run("verify", &["--strict"]).exits(exit::DONE);
    let older = std::fs::read(place.audit().join("checkpoint")).unwrap();
    place.append(&[], &lines(0..10)).exits(exit::DONE);
    with(b"");
    std::fs::write(place.audit().join("checkpoint"), older).unwrap();
    place.run("verify", &["--public", "--strict"]).exits(exit::DONE);
    let report = place.run("verify", &["--json"]).exits(exit::VIOLATION).json();
    assert_eq!(report["findings"][0]["kind"], "frames-missing", "{report}");
}

#[test]
fn how_new_a_log_is_can_be_asked_where_it_promises_a_heartbeat() {
    let place = Place::empty();
    bulla(arguments!["init", place.audit(), "--heartbeat", "1m"]).exits(exit::DONE);
    assert_eq!(place.info("heartbeat"), "60 s");
    // Nothing is signed yet.
    let report = place.run("verify", &["--newer-than", "10m", "--json"]).exits(exit::VIOLATION).json();
    assert_eq!(report["findings"][0]["kind"], "stale", "{report}");
    place.append(&[], &lines(0..10)).exits(exit::DONE);
    for age in ["10m", "10 min", "1 h", "90 min", "90min"] {
        place.run("verify", &["--newer-than", age]).exits(exit::DONE);
    }
    let refused = place.run("verify", &["--newer-than", "30s"]).exits(exit::USAGE);
    assert!(refused.err.contains("every 60 s"), "{refused:?}");
    place.run("verify", &["--newer-than", "soon"]).exits(exit::USAGE);
    let refused = place.run("verify", &["--newer-than", "1h30m"]).exits(exit::USAGE);
    assert!(
        refused.err.contains("one whole number and one of ns, us, ms, s, m (or min), h, d, such as 90m"),
        "{refused:?}"
    );
    place.run("config", &["unset", "log.heartbeat"]).exits(exit::DONE);
    let refused = place.run("verify", &["--newer-than", "10m"]).exits(exit::USAGE);
    assert!(refused.err.contains("promises no heartbeat"), "{refused:?}");
    let ran = place.run("config", &["set", "log.heartbeat", "2 min"]).exits(exit::DONE);
    assert!(ran.out.contains("recorded in the log"), "{ran:?}");
    assert_eq!(place.run("config", &["get", "log.heartbeat"]).exits(exit::DONE).out, "120 s\n");
    place.run("verify", &["--newer-than", "10m"]).exits(exit::DONE);
}

/// Whatever reads the log, it refuses one whose `[log]` was edited, before it answers anything.
#[test]
fn an_edited_log_table_is_refused_by_every_command_that_reads() {
    let place = filled();
    let file = place.audit().join("bulla.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let key = place.verifier_key();
    std::fs::write(&file, text.replace("erasure = \"on\"", "erasure = \"off\"")).unwrap();
    let commands: [&[&str]; 9] = [
        &["export", "--key", &key, "--subject", "s1"],
        &["export", "--key", &key, "--operation", "read", "--withhold-personal"],
        &["export"],
        &["prove", "--subject", "s1"],
        &["prove", "--entry", "1"],
        &["tail", "--entries", "0..1"],
        &["info"],
        &["verify"],
        &["verify", "--public"],
    ];
    for vault in [true, false] {
        for words in commands {
            let ran = place.run(words[0], &words[1..]).exits(exit::VIOLATION);
            assert!(format!("{}{}", ran.out, ran.err).contains("config-mismatch"), "{words:?}: {ran:?}");
            assert!(words[0] == "verify" || ran.out.is_empty(), "{words:?}: {ran:?}");
        }
        if vault {
            std::fs::rename(place.keys("vault"), place.path("vault")).unwrap();
        }
    }
}

#[test]
fn help_fits_a_screen_and_shows_an_example() {
    let commands = [
        "init",
        "append",
        "verify",
        "export",
        "info",
        "events",
        "prove",
        "grant",
        "check",
        "tail",
        "pseudonym",
        "generate",
        "config",
        "keys",
        "erase",
        "order",
        "hold",
        "restore",
        "sources",
        "maps",
        "schema",
        "completions",
        "man",
    ];
    for subcommand in std::iter::once("").chain(commands) {
        let arguments = [subcommand, "--help"].into_iter().filter(|argument| !argument.is_empty());
        let help = bulla(arguments).exits(exit::DONE).out;
        assert!(help.contains("Example:\n  bulla ") || help.contains("Examples:\n  bulla "), "{help}");
        // Whatever gets into a log gets there by `append`; and the command itself lists all others.
        let most = match subcommand {
            "append" => 60,
            "" => 48,
            _ => 40,
        };
        assert!(help.lines().count() <= most, "{subcommand}: {} lines", help.lines().count());
        // An example that is too long for the line is wrapped, and what is on the next one would be a command of its own.
        let (_, examples) = help.rsplit_once("Example").unwrap();
        let lines = examples.lines().take_while(|line| !line.is_empty()).collect::<Vec<_>>();
        let goes_on = |pair: &[&str]| pair[0].ends_with('\\') || pair[1].starts_with("  bulla ");
        assert!(lines.windows(2).all(goes_on), "{subcommand}: {examples}");
    }
}

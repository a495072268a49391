use crate::support::{Mount, Place, arguments, bulla, exit, lines, may_mount};
use bulla::{Configure, Log, Options};

const RECIPIENT: &str = "age1a37dpy8amjrxz7sc0jj3j4ys3mtqp9m9tmcan64s6g0w6qq20pnqvxphr3";

fn config(place: &Place, more: &[&str]) -> crate::support::Ran {
    place.run("config", more)
}

fn get(place: &Place, key: &str) -> String {
    let out = config(place, &["get", key]).exits(exit::DONE).out;
    out.strip_suffix('\n').unwrap().to_owned()
}

fn text(place: &Place) -> String {
    std::fs::read_to_string(place.audit().join("bulla.toml")).unwrap()
}

#[test]
fn it_shows_every_key_its_value_and_where_that_comes_from() {
    let place = Place::new();
    config(&place, &["set", "linger", "20 ms"]).exits(exit::DONE);
    config(&place, &["set", "writers", "2"]).exits(exit::DONE);
    let shown = config(&place, &[]).exits(exit::DONE).out;
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let line = |key: &str| words(shown.lines().find(|line| words(line)[0] == key).unwrap());
    assert_eq!(line("linger"), ["linger", "file", "20", "ms"]);
    assert_eq!(line("vault_replicas"), ["vault_replicas", "default", "none"]);
    assert_eq!(line("memory"), ["memory", "default", "192", "MiB"]);
    assert_eq!(line("log.vkey"), ["log.vkey", "file", &place.verifier_key()]);
    let columns = |line: &str| (line.find(" file ").or(line.find(" default ")), line.len() > 28);
    assert!(shown.lines().all(|line| columns(line) == columns(shown.lines().next().unwrap())), "{shown}");

    let all = config(&place, &["--json"]).exits(exit::DONE).json();
    assert_eq!(all.as_object().unwrap().len(), 11 + 19);
    assert_eq!(line("pin"), ["pin", "default", "none"]);
    assert_eq!(line("error_path"), ["error_path", "default", "none"]);
    assert_eq!(all["writers"], serde_json::json!({ "value": "2", "source": "file" }));
    assert_eq!(all["durability"], serde_json::json!({ "value": "group", "source": "default" }));
    assert_eq!(all["log.recipients"]["value"], place.info("recipients"));
    for (key, shown) in all.as_object().unwrap() {
        assert_eq!(config(&place, &["get", key, "--json"]).exits(exit::DONE).json(), *shown);
    }
    assert_eq!(get(&place, "log.origin"), place.info("origin").as_str().unwrap());
    assert_eq!(get(&place, "segment_size"), "1 GiB");
}

#[test]
fn settings_of_two_files_are_refused_in_one_command_which_says_what_is_kept_where() {
    let place = Place::new();
    let before = text(&place);
    let mixed = [
        &["set", "linger", "20 ms", "writers", "2"][..],
        &["set", "log.fields.client", "drop", "durability", "os"],
        &["set", "log.heartbeat", "1m", "linger", "20 ms"],
        &["set", "log.recipients", RECIPIENT, "linger", "20 ms"],
        &["unset", "retries", "memory"],
    ];
    for words in mixed {
        let ran = config(&place, words).exits(exit::USAGE);
        let named = words[1..].iter().filter(|word| Configure::default().unset(word).is_ok());
        let named = named.map(|name| format!("`{name}`"));
        for told in named.chain(["settings.toml", "bulla.toml", "Nothing was changed"].map(str::to_owned)) {
            assert!(ran.err.contains(&told), "{told}: {ran:?}");
        }
        assert!(text(&place) == before && !place.keys("settings.toml").exists(), "{words:?}");
    }
}

#[test]
fn a_setting_that_is_moved_is_changed_alone() {
    let place = Place::new();
    let moved = text(&place) + "linger = \"3 ms\"\n";
    std::fs::write(place.audit().join("bulla.toml"), &moved).unwrap();
    let ran = config(&place, &["set", "append_timeout", "7 s", "linger", "7 ms"]).exits(exit::USAGE);
    for told in ["bulla.toml, and belongs in", "set or unset `linger` alone first, and then `append_timeout`"]
    {
        assert!(ran.err.contains(told), "{told}: {ran:?}");
    }
    assert!(text(&place) == moved && !place.keys("settings.toml").exists());
    config(&place, &["set", "linger", "7 ms"]).exits(exit::DONE);
    config(&place, &["set", "append_timeout", "7 s", "linger", "8 ms"]).exits(exit::DONE);
    assert_eq!((get(&place, "append_timeout"), get(&place, "linger")), ("7 s".to_owned(), "8 ms".to_owned()));
}

#[test]
fn a_file_of_settings_that_is_empty_is_filled_and_one_that_cannot_be_is_named() {
    let place = Place::new();
    std::fs::write(place.keys("settings.toml"), "").unwrap();
    config(&place, &["set", "linger", "20 ms"]).exits(exit::DONE);
    assert_eq!(get(&place, "linger"), "20 ms");
    for unended in ["# by hand", "[settings"] {
        std::fs::write(place.keys("settings.toml"), unended).unwrap();
        let ran = config(&place, &["set", "linger", "20 ms"]).exits(exit::ENVIRONMENT);
        assert!(ran.err.contains("settings.toml: ") && !ran.err.contains("bulla.toml"), "{ran:?}");
    }
}

#[test]
fn settings_are_set_and_unset_and_nothing_else_of_the_file_changes() {
    let place = Place::new();
    let before = text(&place);
    for all in [&["set", "memory", "128MiB", "durability", "interval 100 ms"][..], &["set", "retries", "4"]] {
        let set = config(&place, all).exits(exit::DONE);
        assert!(set.out.contains("next time") && set.err.is_empty(), "{set:?}");
    }
    assert_eq!(text(&place), format!("{before}retries = 4\n"));
    let host = || std::fs::read_to_string(place.keys("settings.toml")).unwrap();
    assert!(
        host().ends_with("[settings]\nmemory = \"128MiB\"\ndurability = \"interval 100 ms\"\n"),
        "{}",
        host()
    );
    assert_eq!((get(&place, "memory"), get(&place, "retries")), ("128 MiB".to_owned(), "4".to_owned()));
    let again = config(&place, &["set", "memory", "128MiB", "--json"]).exits(exit::DONE).json();
    assert_eq!(again, serde_json::json!({ "changed": false, "recorded": false, "live": false }));
    for unset in [&["unset", "memory", "durability", "--json"][..], &["unset", "retries", "--json"]] {
        assert_eq!(config(&place, unset).exits(exit::DONE).json()["changed"], true);
    }
    assert_eq!(text(&place), before);
    assert!(host().ends_with("[settings]\n"), "{}", host());
    place.append(&[], &lines(0..10)).exits(exit::DONE);
    place.run("verify", &[]).exits(exit::DONE);
}

#[test]
fn what_is_no_key_or_no_value_is_told_and_changes_nothing() {
    let place = Place::new();
    let before = text(&place);
    let named_twice = format!("`{RECIPIENT}` is named twice");
    for (arguments, code, said) in [
        (&["set", "lingr", "5 ms"][..], exit::USAGE, "did you mean `linger`?"),
        (&["get", "recipients"], exit::USAGE, "did you mean `log.recipients`?"),
        (&["get", "colour"], exit::USAGE, "lists them all"),
        (&["unset", "memroy"], exit::USAGE, "did you mean `memory`?"),
        (&["set", "writers", "four"], exit::USAGE, "not a whole number"),
        (&["set", "writers", "0"], exit::USAGE, "it may be from 1 to 256"),
        (&["set", "block_size", "16 MiB", "writers", "100"], exit::USAGE, "too little for 100 writers"),
        (
            &["set", "linger", "5"],
            exit::USAGE,
            "`linger`: `5` is not a duration: one whole number and one of ns, us,",
        ),
        (
            &["set", "log.heartbeat", "1h30m"],
            exit::USAGE,
            "`1h30m` is not a duration: one whole number and one of",
        ),
        (&["set", "log.erasure_key", "x"], exit::USAGE, "log.erasure_key: `x` is neither a public key"),
        (&["set", "linger"], exit::USAGE, "takes a value"),
        (&["set"], exit::USAGE, "a key and a value"),
        (&["get"], exit::USAGE, "one key"),
        (&["unset"], exit::USAGE, "takes a key"),
        (&["put", "linger", "5 ms"], exit::USAGE, "invalid value 'put'"),
        (&["set", "log.recipients", "age1nobody"], exit::USAGE, "not an age recipient"),
        (&["set", "log.recipients", ""], exit::USAGE, "nobody could read"),
        (
            &["set", "linger", "5 ms", "writers", "2", "linger", "5 ms"],
            exit::USAGE,
            "`linger` is given twice",
        ),
        (&["unset", "linger", "linger"], exit::USAGE, "`linger` is given twice"),
        (&["set", "log.recipients", &format!("{RECIPIENT}, {RECIPIENT}")], exit::USAGE, &named_twice),
        (
            &["set", "log.recipients", RECIPIENT, "log.recipients", RECIPIENT],
            exit::USAGE,
            "`log.recipients` is given twice",
        ),
        (&["set", "log.id", "00"], exit::REFUSED, "every frame"),
        (&["set", "log.origin", "me"], exit::REFUSED, "never changes"),
        (&["unset", "log.vkey"], exit::REFUSED, "never changes"),
    ] {
        let ran = config(&place, arguments).exits(code);
        assert!(ran.err.contains(said) && ran.out.is_empty(), "{arguments:?}: {ran:?}");
        assert_eq!(text(&place), before);
    }
    config(&Place::empty(), &[]).exits(exit::ENVIRONMENT);
    config(&Place::empty(), &["set", "linger", "5 ms"]).exits(exit::ENVIRONMENT);
}

#[test]
fn new_recipients_are_recorded_and_read_what_comes_after() {
    let (place, other) = (Place::new(), Place::new());
    place.append(&[], &lines(0..10)).exits(exit::DONE);
    let recipient = get(&other, "log.recipients");
    let ran = config(&place, &["set", "log.recipients", &recipient]).exits(exit::DONE);
    assert!(ran.out.contains("recorded"), "{ran:?}");
    assert_eq!(get(&place, "log.recipients"), recipient);
    place.append(&[], &lines(10..30)).exits(exit::DONE);
    place.run("verify", &["--public"]).exits(exit::DONE);

    let identity = other.keys("identity.age").to_str().unwrap().to_owned();
    let ran = place.run("export", &["--identity", &identity]).exits(exit::REFUSED);
    assert!(ran.err.contains("does not open epoch 0 of") && ran.out.is_empty(), "{ran:?}");
    let ran = place.run("export", &[]).exits(exit::REFUSED);
    assert!(ran.err.contains("does not open epoch"), "{ran:?}");
    let both = place.write(
        "both",
        &[place.keys("identity.age"), other.keys("identity.age")]
            .map(|path| std::fs::read(path).unwrap())
            .concat(),
    );
    assert_eq!(place.run("export", &["--identity", &both]).exits(exit::DONE).out.lines().count(), 30);
    place.run("verify", &["--identity", &both]).exits(exit::DONE);

    let again = config(&place, &["set", "log.recipients", &recipient, "--json"]).exits(exit::DONE).json();
    assert_eq!(again["changed"], false);
    let two = config(&place, &["set", "log.recipients", &format!("{recipient}, {RECIPIENT}"), "--json"]);
    assert_eq!(
        two.exits(exit::DONE).json(),
        serde_json::json!({ "changed": true, "recorded": true, "live": false })
    );
    assert_eq!(get(&place, "log.recipients"), format!("{recipient},{RECIPIENT}"));
    assert_eq!(config(&place, &[]).exits(exit::DONE).out.lines().count(), 11 + 1 + 19);
}

/// Whoever can write to the log's directory could have put it there.
#[test]
fn what_a_promise_rests_on_is_refused_in_the_logs_file_and_moved_by_setting_it() {
    let place = Place::new();
    let (before, disk) = (text(&place), place.path("disk"));
    std::fs::create_dir(&disk).unwrap();
    let words = format!("durability = \"os\"\nvault_replicas = [\"{}\"]\n", disk.display());
    std::fs::write(place.audit().join("bulla.toml"), format!("{before}{words}")).unwrap();
    for ran in [
        place.append(&[], &lines(0..10)),
        place.run("erase", &["--subject", "s7"]),
        place.run("hold", &["add", "--subject", "s7", "--by", "a", "--reason", "b"]),
        place.run("keys", &["rotate"]),
        place.run("restore", &[]),
    ] {
        let ran = ran.exits(exit::REFUSED);
        for told in ["`durability`, `vault_replicas`", "settings.toml", "config DIR set durability"] {
            assert!(ran.err.contains(told), "{told}: {ran:?}");
        }
    }
    // What is shown is what counts, and that there is more.
    let shown = config(&place, &["get", "vault_replicas"]).exits(exit::DONE);
    assert!(shown.out == "\n" && shown.err.contains("belongs in"), "{shown:?}");
    assert_eq!(place.info("vault_replicas"), serde_json::json!([]));
    assert_eq!(std::fs::read_dir(&disk).unwrap().count(), 0, "nothing was copied");
    config(&place, &["set", "durability", "group"]).exits(exit::DONE);
    config(&place, &["unset", "vault_replicas"]).exits(exit::DONE);
    assert_eq!(text(&place), before);
    assert_eq!(get(&place, "durability"), "group");
    place.append(&[], &lines(0..10)).exits(exit::DONE);
    assert_eq!(std::fs::read_dir(&disk).unwrap().count(), 0);
}

/// Else the first outage would tell of it, and what is dropped then is in no file.
#[test]
fn an_error_path_that_is_no_directory_is_refused_when_it_is_set() {
    let place = Place::new();
    let file = place.write("file", b"");
    let inside = format!("{file}/errors");
    for value in [&file, &inside] {
        let ran = config(&place, &["set", "error_path", value]).exits(exit::ENVIRONMENT);
        assert!(ran.err.contains("it is no directory: name one"), "{ran:?}");
        assert!(!place.keys("settings.toml").exists());
    }
    let nowhere = place.path("errors").into_os_string().into_string().unwrap();
    config(&place, &["set", "error_path", &nowhere]).exits(exit::DONE);
}

/// What is said of it is a part of a sentence, which goes on behind it.
#[test]
fn what_is_wrong_with_a_file_of_settings_is_said_in_one_line() {
    let place = Place::new();
    std::fs::write(place.keys("settings.toml"), "[settings]\nbackup_paths = [\n  x\n").unwrap();
    let ran = place.append(&[], b"").exits(exit::ENVIRONMENT);
    assert!(
        ran.err.contains("settings.toml: line 3, column 4, `x`: ") && !ran.err.contains("\\n"),
        "{ran:?}"
    );
    std::fs::remove_file(place.keys("settings.toml")).unwrap();
    // That part of the file is read by itself.
    let lines = text(&place).lines().count();
    std::fs::write(place.audit().join("bulla.toml"), text(&place) + "linger = 5 x\n").unwrap();
    let ran = place.append(&[], b"").exits(exit::VIOLATION);
    assert!(ran.err.contains(&format!("bulla.toml: line {}, column ", lines + 1)), "{ran:?}");
}

/// What opening the log would refuse is not set, so that nobody finds out when the next writer starts.
#[test]
fn replicas_that_opening_would_refuse_are_not_set_beside_a_writer_or_without_one() {
    let place = Place::new();
    let name = |name: &str| place.path(name).into_os_string().into_string().unwrap();
    let (first, link, file) = (name("first"), name("link"), place.write("file", b""));
    std::fs::create_dir(&first).unwrap();
    std::os::unix::fs::symlink(&first, &link).unwrap();
    std::fs::create_dir(place.keys("replica")).unwrap();
    let refused = [
        (format!("{first},{first}"), exit::REFUSED, "named twice"),
        (format!("{first},{link}"), exit::REFUSED, "named twice"),
        (format!("{first}/../first,{first}"), exit::REFUSED, "named twice"),
        (format!("{first},{}", name("audit")), exit::REFUSED, "in the log's directory"),
        (name("audit/segments"), exit::REFUSED, "in the log's directory"),
        (name("audit.keys"), exit::REFUSED, "in the key directory"),
        (name("audit.keys/replica"), exit::REFUSED, "in the key directory"),
        (name("nowhere"), exit::ENVIRONMENT, "there is no such directory: mount it"),
        (file, exit::ENVIRONMENT, "it is no directory: name one"),
    ];
    let settings = place.keys("settings.toml");
    let refuses = || {
        for (value, code, told) in &refused {
            let ran = config(&place, &["set", "vault_replicas", value]).exits(*code);
            assert!(ran.err.contains(told) && !settings.exists(), "{value}: {ran:?}");
        }
    };
    refuses();
    let log = Log::open(place.audit(), Options::default()).unwrap();
    refuses();
    log.close().unwrap();
    // Opening goes by the same.
    for (value, code, told) in &refused {
        let places = value.split(',').map(|place| format!("{place:?}")).collect::<Vec<_>>().join(", ");
        std::fs::write(&settings, format!("[settings]\nvault_replicas = [{places}]\n")).unwrap();
        let ran = place.append(&[], b"").exits(*code);
        assert!(ran.err.contains(told), "{value}: {ran:?}");
    }
    assert_eq!(std::fs::read_dir(&first).unwrap().count(), 0, "nothing was made there");
    // A disk that is not mounted is in the way of no other setting.
    config(&place, &["unset", "vault_replicas"]).exits(exit::DONE);
    config(&place, &["set", "vault_replicas", &first]).exits(exit::DONE);
    std::fs::remove_dir(&first).unwrap();
    config(&place, &["set", "linger", "20 ms"]).exits(exit::DONE);
    let without = Place::empty();
    crate::support::bulla(arguments!["init", without.audit(), "--erasure", "off"]).exits(exit::DONE);
    std::fs::create_dir(&first).unwrap();
    let ran = config(&without, &["set", "vault_replicas", &first]).exits(exit::USAGE);
    assert!(ran.err.contains("no vault"), "{ran:?}");
}

#[test]
fn beside_a_writer_settings_change_for_the_next_one_and_rules_do_not() {
    let place = Place::new();
    let log = Log::open(place.audit(), Options::default()).unwrap();
    let ran = config(&place, &["set", "linger", "20 ms"]).exits(exit::DONE);
    assert!(ran.err.contains("a writer has the log open"), "{ran:?}");
    let ran = config(&place, &["set", "log.fields.client", "drop"]).exits(exit::REFUSED);
    assert!(ran.err.contains("stop it first"), "{ran:?}");
    assert_eq!(config(&place, &["set", "linger", "30 ms", "--json"]).exits(exit::DONE).json()["live"], true);
    log.close().unwrap();
    assert_eq!(get(&place, "linger"), "30 ms");
    place.run("verify", &[]).exits(exit::DONE);
}

#[test]
fn what_no_promise_rests_on_needs_no_keys_and_all_else_does() {
    let place = Place::new();
    std::fs::rename(place.path("audit.keys"), place.path("elsewhere")).unwrap();
    config(&place, &["set", "writers", "2"]).exits(exit::DONE);
    let ran = config(&place, &["set", "linger", "20 ms"]).exits(exit::ENVIRONMENT);
    assert!(ran.err.contains("settings.toml"), "{ran:?}");
    // What is not known is not shown as if it were.
    let shown = config(&place, &[]).exits(exit::DONE);
    assert!(shown.out.contains("writers") && !shown.out.contains("durability"), "{shown:?}");
    assert!(shown.err.contains("are not shown"), "{shown:?}");
    let ran = config(&place, &["get", "durability"]).exits(exit::ENVIRONMENT);
    assert!(ran.err.contains("kept with the keys"), "{ran:?}");
    assert_eq!(place.info("vault_replicas"), serde_json::Value::Null);
    let ran = config(&place, &["set", "log.recipients", RECIPIENT]).exits(exit::ENVIRONMENT);
    assert!(ran.err.contains("audit.keys"), "{ran:?}");
    let elsewhere = place.path("elsewhere");
    let keys = ["--keys", elsewhere.to_str().unwrap()];
    config(&place, &[&["set", "log.recipients", RECIPIENT], &keys[..]].concat()).exits(exit::DONE);
    place.run("verify", &["--public"]).exits(exit::DONE);
}

#[test]
fn a_directory_that_cannot_be_written_is_told() {
    if !may_mount("config::a_directory_that_cannot_be_written_is_told") {
        return;
    }
    let place = Place::empty();
    let disk = place.path("disk");
    let mount = Mount::new(&disk, "size=4m");
    let audit = disk.join("audit");
    bulla(arguments!["init", audit]).exits(exit::DONE);
    mount.make_read_only();
    for value in [["linger", "20 ms"], ["log.recipients", RECIPIENT]] {
        let ran = bulla(arguments!["config", audit, "set", value[0], value[1]]).exits(exit::ENVIRONMENT);
        assert!(ran.err.contains("Read-only file system"), "{ran:?}");
    }
    bulla(arguments!["config", audit]).exits(exit::DONE);
    drop(mount);
}

#[test]
fn a_link_is_neither_read_nor_replaced_by_a_file() {
    let place = Place::new();
    let (file, elsewhere) = (place.audit().join("bulla.toml"), place.path("elsewhere.toml"));
    std::fs::rename(&file, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &file).unwrap();
    let before = text(&place);
    for change in
        [&["set", "linger", "20 ms"][..], &["unset", "linger"], &["set", "log.recipients", RECIPIENT]]
    {
        let ran = config(&place, change).exits(exit::ENVIRONMENT);
        assert!(ran.err.contains("`bulla.toml` is a symbolic link"), "{ran:?}");
        assert!(file.is_symlink());
        assert_eq!(text(&place), before);
    }
    place.run("verify", &[]).exits(exit::ENVIRONMENT);
}

#[test]
fn an_edit_behind_its_back_is_not_made_good_by_it() {
    let place = Place::new();
    let edited = text(&place).replacen("[log]", "# mine\n[log]", 1);
    std::fs::write(place.audit().join("bulla.toml"), &edited).unwrap();
    let ran = config(&place, &["set", "log.recipients", RECIPIENT]).exits(exit::REFUSED);
    assert!(ran.err.contains("was edited"), "{ran:?}");
    assert_eq!(text(&place), edited);
    place.run("config", &["get", "log.recipients"]).exits(exit::DONE);
}

/// What the file says is told, and that it is not what the log was written with.
#[test]
fn an_edit_of_a_log_that_has_entries_is_told() {
    let place = Place::new();
    place.append(&[], &lines(0..3)).exits(exit::DONE);
    std::fs::write(place.audit().join("bulla.toml"), text(&place).replacen("[log]", "# mine\n[log]", 1))
        .unwrap();
    for arguments in [&[][..], &["--json"], &["get", "log.recipients"], &["get", "log.fields.client"]] {
        let ran = config(&place, arguments).exits(exit::VIOLATION);
        assert!(!ran.out.is_empty() && ran.err.contains("config-mismatch"), "{ran:?}");
    }
}

#[test]
fn help_fits_a_screen() {
    let help = bulla(["config", "--help"]).exits(exit::DONE).out;
    assert!(help.lines().count() <= 30 && help.lines().all(|line| line.len() <= 100), "{help}");
    assert!(help.contains("Example:"), "{help}");
}

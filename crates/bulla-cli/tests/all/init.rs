use crate::support::{Place, arguments, bulla, command, exit, finish, lines};
use std::os::unix::fs::PermissionsExt;

const RECIPIENT: &str = "age1a37dpy8amjrxz7sc0jj3j4ys3mtqp9m9tmcan64s6g0w6qq20pnqvxphr3";

#[test]
fn it_says_what_was_made_where_and_what_belongs_elsewhere() {
    let place = Place::empty();
    let ran = bulla(arguments!["init", place.audit(), "--origin", "example.com/audit"]).exits(exit::DONE);
    for said in ["example.com/audit+", "seal.key", "identity.age", "elsewhere", "reads every entry"] {
        assert!(ran.out.contains(said), "{said}: {}", ran.out);
    }
    assert!(ran.out.lines().any(|line| line.trim() == place.verifier_key()), "{}", ran.out);
    assert!(place.keys("seal.key").exists() && place.keys("identity.age").exists());
    let mode = |name: &str| place.path(name).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("audit.keys"), mode("audit.keys/signing.key")), (0o700, 0o600));
}

#[test]
fn json_is_one_object_with_all_there_is_to_keep() {
    let place = Place::empty();
    let made = bulla(arguments!["init", place.audit(), "--json"]).exits(exit::DONE).json();
    assert_eq!(made["vkey"], place.info("vkey"));
    assert_eq!(made["origin"], place.info("origin"));
    assert_eq!(made["seal_key"].as_str().unwrap(), place.keys("seal.key").to_str().unwrap());
    assert_eq!(made["identity"].as_str().unwrap(), place.keys("identity.age").to_str().unwrap());
}

#[test]
fn with_recipients_no_identity_is_made() {
    let place = Place::empty();
    let ran = bulla(arguments!["init", place.audit(), "--recipient", RECIPIENT, "--recipient", RECIPIENT]);
    assert!(ran.exits(exit::DONE).out.contains("this host cannot"));
    assert!(!place.keys("identity.age").exists());
    assert_eq!(place.info("recipients")[0], RECIPIENT);
}

#[test]
fn keys_lie_where_they_are_asked_to_and_every_command_finds_them() {
    let place = Place::empty();
    let keys = place.path("elsewhere");
    let with_keys = |subcommand: &str| bulla(arguments![subcommand, place.audit(), "--keys", keys]);
    with_keys("init").exits(exit::DONE);
    assert!(keys.join("signing.key").exists() && !place.path("audit.keys").exists());
    let ran = crate::support::bulla_with(
        arguments!["append", place.audit(), "--keys", keys],
        b"{\"operation\":\"read\"}\n",
    );
    ran.exits(exit::DONE);
    assert!(with_keys("verify").exits(exit::DONE).out.contains("seals and every block"));
    assert_eq!(with_keys("export").exits(exit::DONE).out.lines().count(), 1);
    with_keys("info").exits(exit::DONE);
    place.run("export", &[]).exits(exit::REFUSED);
}

#[test]
fn keys_inside_the_log_are_a_mistake() {
    let place = Place::empty();
    let ran = bulla(arguments!["init", place.audit(), "--keys", place.audit().join("keys")]);
    assert!(ran.exits(exit::USAGE).err.contains("is inside"));
    assert!(!place.audit().exists());
}

#[test]
fn a_directory_named_by_a_dot_gets_its_keys_beside_it() {
    let place = Place::empty();
    std::fs::create_dir(place.audit()).unwrap();
    let here = |arguments: &[&str]| {
        finish(command(arguments).current_dir(place.audit()).spawn().unwrap()).exits(exit::DONE)
    };
    here(&["init", "."]);
    assert!(place.keys("signing.key").exists());
    here(&["verify", "."]);
}

#[test]
fn what_exists_is_left_alone() {
    let place = Place::new();
    let key = place.verifier_key();
    let ran = place.run("init", &[]).exits(exit::REFUSED);
    assert!(ran.err.contains("exists and is not empty"), "{ran:?}");
    assert_eq!(place.verifier_key(), key);
}

/// What was there before stays.
#[test]
fn what_fails_leaves_nothing_behind_that_it_made() {
    let place = Place::empty();
    let names = || {
        let mut names = std::fs::read_dir(place.path("")).unwrap().map(|item| item.unwrap().file_name());
        names.by_ref().collect::<std::collections::BTreeSet<_>>()
    };
    std::os::unix::fs::symlink("missing/too", place.path("leads nowhere")).unwrap();
    std::fs::create_dir(place.path("empty")).unwrap();
    let before = names();
    let deep = place.path("a/b/audit");
    // The last one is longer than a vault's database can be named: it fails when keys are there already.
    let long = ["x"; 3].map(|name| name.repeat(200)).join("/");
    for (audit, keys) in [
        (place.path("leads nowhere"), place.path("c/keys")),
        (deep.clone(), place.path("leads nowhere")),
        (deep.clone(), place.path("a").join(&long)),
        (place.path("empty"), place.path(&long)),
        (deep, place.path("empty").join(&long)),
    ] {
        let ran = bulla(arguments!["init", audit, "--keys", keys]).exits(exit::ENVIRONMENT);
        assert!(!ran.err.is_empty());
        assert_eq!(names(), before, "{} {}", audit.display(), keys.display());
        assert_eq!(std::fs::read_dir(place.path("empty")).unwrap().count(), 0, "{ran:?}");
    }
    bulla(arguments!["init", place.path("empty")]).exits(exit::DONE);
}

#[test]
fn what_an_init_that_was_killed_has_left_is_told_with_what_to_do() {
    let refused = |place: &Place, said: &[&str]| {
        let ran = place.run("init", &[]).exits(exit::REFUSED);
        assert!(said.iter().all(|said| ran.err.contains(said)), "{said:?}: {}", ran.err);
        ran.err
    };
    // Killed before the log was one: what it left is said of both directories at once, and of the one that is left.
    let place = Place::new();
    let config = place.audit().join("bulla.toml");
    std::fs::remove_file(&config).unwrap();
    let said = ["audit exists and is not empty: it has `LOCK`", "no `bulla.toml`", "cut short", "remove it"];
    let of_keys = ["audit.keys exists and is not empty: it has", "`identity.age`", "`vault`", "cut short"];
    let of_keys = [&of_keys[..], &["where no log was made with them, remove it"]].concat();
    refused(&place, &[&said[..], &of_keys].concat());
    std::fs::remove_dir_all(place.audit()).unwrap();
    refused(&place, &of_keys);
    std::fs::remove_dir_all(place.path("audit.keys")).unwrap();
    place.run("init", &[]).exits(exit::DONE);

    // Of a log that has lost its configuration nobody says that it can be removed.
    place.append(&[], &lines(0..3)).exits(exit::DONE);
    std::fs::remove_file(&config).unwrap();
    let err = refused(&place, &["`segments`", "no `bulla.toml`", "restore that file"]);
    assert!(!err.contains("remove"), "{err}");
    std::fs::remove_dir_all(place.audit()).unwrap();
    std::fs::create_dir(place.audit()).unwrap();
    std::fs::write(place.audit().join("notes"), b"").unwrap();
    let err = refused(&place, &["exists and is not empty: name a directory"]);
    assert!(!err.contains("cut short"), "{err}");
}

#[test]
fn a_recipient_or_an_origin_that_is_none_is_told() {
    for (option, value) in [("--recipient", "age1nobody"), ("--origin", ""), ("--origin", "two words")] {
        let place = Place::empty();
        let ran = place.run("init", &[option, value]).exits(exit::USAGE);
        assert!(!ran.err.is_empty());
        assert!(!place.audit().exists(), "{option} {value}");
    }
}

fn edit(place: &Place, from: &str, to: &str) {
    let path = place.audit().join("bulla.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{text}");
    std::fs::write(path, text.replacen(from, to, 1)).unwrap();
}

#[test]
fn what_a_log_is_besides_stands_in_it_and_stays() {
    let place = Place::empty();
    let made = arguments![
        "init",
        place.audit(),
        "--hash",
        "sha3-256",
        "--extra",
        "x-team=Pay \"roll\"",
        "--extra",
        "x-ümlaut=1=2"
    ];
    bulla(made).exits(exit::DONE);
    place.append(&[], &lines(0..3)).exits(exit::DONE);
    assert_eq!(place.info("hash"), "sha3-256");
    let extra = serde_json::json!({ "x-team": "Pay \"roll\"", "x-ümlaut": "1=2" });
    assert_eq!(place.info("extra"), extra);
    let changed = bulla(arguments!["config", place.audit(), "set", "log.recipients", RECIPIENT]);
    changed.exits(exit::DONE);
    place.append(&[], &lines(0..3)).exits(exit::DONE);
    assert_eq!((place.info("extra"), place.info("recipients")), (extra, serde_json::json!([RECIPIENT])));
    assert_eq!(place.info("entries"), 6);
    assert_eq!(place.run("config", &["get", "log.x-team"]).out, "Pay \"roll\"\n");
    let verified = || place.run("verify", &["--public"]);
    verified().exits(exit::DONE);

    // It is hashed as everything else is.
    edit(&place, "Pay", "Hay");
    verified().exits(exit::VIOLATION);
}

#[test]
fn a_key_of_ones_own_is_named_so_that_no_later_version_takes_it_for_another() {
    for (extra, said) in [
        ("team=payroll", "`team`"),
        ("x-=1", "`x-`"),
        ("x-team", "it is not NAME=VALUE"),
        ("X-Team=1", "`X-Team`"),
    ] {
        let place = Place::empty();
        let ran = bulla(arguments!["init", place.audit(), "--extra", extra]).exits(exit::USAGE);
        assert!(ran.err.contains(said), "{extra}: {}", ran.err);
        assert!(!place.audit().exists() && !place.path("audit.keys").exists(), "{extra}");
    }
    let place = Place::empty();
    let ran = bulla(arguments!["init", place.audit(), "--extra", "x-a=1", "--extra", "x-a=2"]);
    assert!(ran.exits(exit::USAGE).err.contains("`x-a` is given twice"));
    let ran = bulla(arguments!["init", place.audit(), "--hash", "md5"]).exits(exit::USAGE);
    assert!(ran.err.contains("sha3-256"), "{}", ran.err);
}

#[test]
fn an_edited_configuration_of_an_empty_log_is_found_by_what_the_writing_host_knows() {
    let place = Place::new();
    let verify = |more: &[&str]| place.run("verify", more);
    verify(&["--strict"]).exits(exit::DONE);
    edit(&place, "erasure = \"on\"", "erasure = \"off\"");
    let ran = verify(&[]).exits(exit::VIOLATION);
    assert!(
        ran.out.contains("config-mismatch") && ran.out.contains("as the seal state has it"),
        "{}",
        ran.out
    );
    // Who has the log alone cannot know.
    verify(&["--public"]).exits(exit::DONE);
}

/// Runs a command at a terminal; what it shows there.
fn at_a_terminal(arguments: &[&str]) -> (i32, String) {
    const RUN: &str = "import os, pty, sys\nos.environ['TERM'] = 'xterm'\nsys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";
    let mut command = std::process::Command::new("python3");
    command.args(["-c", RUN, env!("CARGO_BIN_EXE_bulla")]).args(arguments);
    let output = command.stdin(std::process::Stdio::null()).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn the_seal_key_is_shown_at_a_terminal_and_nowhere_else() {
    let place = Place::empty();
    let directory = place.path("audit").into_os_string().into_string().unwrap();
    let ran = bulla(["init", &directory, "--show-seal-key"]).exits(exit::USAGE);
    assert!(ran.err.contains("standard output is no terminal; nothing was made"), "{}", ran.err);
    assert!(!place.path("audit").exists() && !place.path("audit.keys").exists());

    let (code, shown) = at_a_terminal(&["init", &directory, "--show-seal-key"]);
    let key = std::fs::read_to_string(place.path("audit.keys/seal.key")).unwrap();
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains(key.trim_end()), "{shown}");
    // Two modules a character: the code is as high as it is wide, with its border.
    let rows =
        shown.lines().filter(|line| line.contains(['\u{2580}', '\u{2584}', '\u{2588}'])).collect::<Vec<_>>();
    // Black on white, whatever the terminal's own colours are.
    let rows = rows
        .iter()
        .map(|row| row.strip_prefix("\x1b[30;107m")?.trim_end_matches('\r').strip_suffix("\x1b[0m"));
    let rows = rows.collect::<Option<Vec<_>>>().expect("each row sets its colours, and no other");
    let width = rows[1].chars().count();
    assert!(rows.len() == width.div_ceil(2) && (40..=80).contains(&width), "{} rows of {width}", rows.len());

    let again = place.path("other").into_os_string().into_string().unwrap();
    let (code, shown) = at_a_terminal(&["init", &again]);
    let key = std::fs::read_to_string(place.path("other.keys/seal.key")).unwrap();
    assert!(code == 0 && !shown.contains(key.split(' ').next_back().unwrap().trim_end()), "{shown}");
}

//! What the environment does to the command: each failure has its own message, and the exit code 4.

use crate::support::{
    Mount, Place, Ran, arguments, bulla, bulla_with, command, command_under, exit, finish, incompressible,
    lines, may_mount, parse_lines, signal,
};
use bulla::{Log, Options};
use rustix::process::Signal;

#[test]
fn a_full_disk_is_told_and_costs_nothing_that_was_committed() {
    if !may_mount("environment::a_full_disk_is_told_and_costs_nothing_that_was_committed") {
        return;
    }
    let place = Place::empty();
    let disk = place.path("disk");
    let mount = Mount::new(&disk, "size=12m");
    let (audit, keys) = (disk.join("audit"), place.path("keys"));
    let run = |subcommand: &str, more: &[&str]| {
        let mut all = arguments![subcommand, audit, "--keys", keys];
        all.extend(more.iter().map(std::ffi::OsString::from));
        bulla(all)
    };
    run("init", &[]).exits(exit::DONE);
    // The log gets 4 MiB. Once the filler is gone there is room for the copy that recovery makes of all that was not
    // signed, which is nearly all of it.
    std::fs::write(disk.join("filler"), vec![0; 8 << 20]).unwrap();

    let input = incompressible(1000);
    let ran =
        bulla_with(arguments!["append", audit, "--keys", keys, "--json"], &input).exits(exit::ENVIRONMENT);
    assert!(ran.err.contains("No space left on device"), "{ran:?}");
    let committed = ran.json()["committed"].as_u64().unwrap();
    assert!(ran.err.contains(&format!("at least {committed} of them")), "{ran:?}");
    assert!(committed > 0 && committed < 1000, "{committed}");

    std::fs::remove_file(disk.join("filler")).unwrap();
    bulla_with(arguments!["append", audit, "--keys", keys], b"").exits(exit::DONE);
    run("verify", &[]).exits(exit::DONE);
    let entries = parse_lines(&run("export", &[]).exits(exit::DONE).out);
    assert!(entries.len() as u64 >= committed, "{} of {committed}", entries.len());
    for (line, entry) in input.split(|&byte| byte == b'\n').zip(&entries) {
        let line = serde_json::from_slice::<serde_json::Value>(line).unwrap();
        assert_eq!(line["payload"], entry["payload"]);
    }
    drop(mount);
}

/// A log that drops entries does not have its writer wait for a disk either: at the end of the input it fails as another one would.
/// One that is to wait does, until it is told to end.
#[test]
fn the_end_of_the_input_in_an_outage_ends_a_log_that_drops_and_no_log_that_waits() {
    const TEST: &str =
        "environment::the_end_of_the_input_in_an_outage_ends_a_log_that_drops_and_no_log_that_waits";
    if !may_mount(TEST) {
        return;
    }
    for on_failure in ["drop", "block"] {
        let place = Place::empty();
        let disk = place.path("disk");
        let mount = Mount::new(&disk, "size=4m");
        let (audit, keys) = (disk.join("audit"), place.path("keys"));
        let run = |subcommand: &str, more: &[&str], input: &[u8]| {
            let mut all = arguments![subcommand, audit, "--keys", keys];
            all.extend(more.iter().map(std::ffi::OsString::from));
            bulla_with(all, input)
        };
        run("init", &[], b"").exits(exit::DONE);
        run("append", &[], &lines(0..10)).exits(exit::DONE);
        run("config", &["set", "on_failure", on_failure], b"").exits(exit::DONE);
        let mut filler = std::fs::File::create(disk.join("filler")).unwrap();
        while std::io::Write::write_all(&mut filler, &[0; 4096]).is_ok() {}
        // Room to open the log, and not for what is appended.
        filler.set_len(filler.metadata().unwrap().len() - (256 << 10)).unwrap();
        let input = place.write("input", &incompressible(100));
        // How much goes into the room that is left is its own affair.
        let is_short = |ran: &Ran| ran.json()["committed"].as_u64().unwrap() < 100;
        let mut child =
            command(arguments!["append", audit, "--keys", keys, "--json", input]).spawn().unwrap();
        if on_failure == "block" {
            let mut err = std::io::BufReader::new(child.stderr.take().unwrap());
            let mut told = String::new();
            std::io::BufRead::read_line(&mut err, &mut told).unwrap();
            assert!(told.contains("waiting, and trying again") && told.contains("No space left"), "{told}");
            signal(&child, Signal::TERM);
            let ran = finish(child);
            assert!(ran.code == exit::ENVIRONMENT && is_short(&ran), "{ran:?}");
        } else {
            let ran = finish(child).exits(exit::ENVIRONMENT);
            assert!(ran.err.contains("No space left on device"), "{ran:?}");
            assert!(is_short(&ran) && ran.json()["interrupted"] == false, "{ran:?}");
        }
        drop(filler);
        std::fs::remove_file(disk.join("filler")).unwrap();
        run("append", &[], &lines(10..20)).exits(exit::DONE);
        run("verify", &[], b"").exits(exit::DONE);
        drop(mount);
    }
}

/// A reader of the vault makes a file beside it: what that is for is said, and what to do.
#[test]
fn a_reader_that_finds_the_disk_of_the_keys_full_is_told_why_it_needs_room() {
    if !may_mount("environment::a_reader_that_finds_the_disk_of_the_keys_full_is_told_why_it_needs_room") {
        return;
    }
    let place = Place::empty();
    let disk = place.path("disk");
    let mount = Mount::new(&disk, "size=4m");
    let run = |subcommand: &str, keys: &std::path::Path, input: &[u8]| {
        bulla_with(arguments![subcommand, place.audit(), "--keys", keys], input)
    };
    let keys = disk.join("keys");
    run("init", &keys, b"").exits(exit::DONE);
    run("append", &keys, &lines(0..10)).exits(exit::DONE);
    let mut filler = std::fs::File::create(disk.join("filler")).unwrap();
    while std::io::Write::write_all(&mut filler, &[0; 4096]).is_ok() {}
    for subcommand in ["verify", "export"] {
        let ran = run(subcommand, &keys, b"").exits(exit::ENVIRONMENT);
        for told in ["disk is full", "to read too", "vault.db-shm", "make room, or copy the key directory"] {
            assert!(ran.err.contains(told), "{told}: {ran:?}");
        }
    }
    // As it says.
    let copied = place.path("copied");
    crate::support::copy(&keys, &copied);
    let ran = run("export", &copied, b"").exits(exit::DONE);
    assert_eq!(parse_lines(&ran.out).len(), 10);
    drop(mount);
}

/// However few files a process may have open: what cannot be opened for that is said to be so.
#[test]
fn a_limit_on_open_files_is_named() {
    let place = Place::new();
    place.append(&[], &lines(0..10)).exits(exit::DONE);
    let mut refused = 0;
    for limit in 6..32 {
        for subcommand in ["verify", "export", "append"] {
            let limited = format!("ulimit -n {limit}; exec \"$0\" \"$@\"");
            let child = command_under(&["sh", "-c", &limited], &place.arguments(subcommand, &[])).spawn();
            let ran = finish(child.unwrap());
            if ran.code == exit::DONE {
                continue;
            }
            refused += 1;
            let told = ["Too many open files", "`ulimit -n`"].iter().any(|told| ran.err.contains(told));
            assert!(ran.code == exit::ENVIRONMENT && told, "{subcommand} with {limit}: {ran:?}");
        }
    }
    assert!(refused > 0, "a few are too few");
    place.run("verify", &[]).exits(exit::DONE);
}

#[test]
fn a_full_disk_at_init_is_told() {
    if !may_mount("environment::a_full_disk_at_init_is_told") {
        return;
    }
    let place = Place::empty();
    let disk = place.path("disk");
    let mount = Mount::new(&disk, "nr_inodes=3");
    let ran = bulla(arguments!["init", disk.join("audit")]).exits(exit::ENVIRONMENT);
    assert!(ran.err.contains("No space left on device"), "{ran:?}");
    drop(mount);
}

#[test]
fn a_read_only_mount_is_read_and_not_written() {
    if !may_mount("environment::a_read_only_mount_is_read_and_not_written") {
        return;
    }
    let place = Place::empty();
    let disk = place.path("disk");
    let mount = Mount::new(&disk, "size=8m");
    let audit = disk.join("audit");
    bulla(arguments!["init", audit]).exits(exit::DONE);
    bulla_with(arguments!["append", audit], &lines(0..100)).exits(exit::DONE);
    mount.make_read_only();
    let ran = bulla_with(arguments!["append", audit], &lines(100..200)).exits(exit::ENVIRONMENT);
    assert!(ran.err.contains("Read-only file system"), "{ran:?}");
    bulla(arguments!["verify", audit]).exits(exit::DONE);
    bulla(arguments!["info", audit]).exits(exit::DONE);
    assert_eq!(bulla(arguments!["export", audit]).exits(exit::DONE).out.lines().count(), 100);
    drop(mount);
}

#[test]
fn a_missing_directory_is_no_log() {
    let place = Place::empty();
    for subcommand in ["append", "verify", "export", "info"] {
        let ran = place.run(subcommand, &[]).exits(exit::ENVIRONMENT);
        assert!(ran.err.contains("is not a log") && ran.err.contains("bulla init"), "{ran:?}");
    }
    assert!(!place.audit().exists(), "no command but init makes anything");
}

#[test]
fn what_is_no_log_is_told_from_a_log_that_lacks_a_file() {
    let place = Place::new();
    place.append(&[], &lines(0..1)).exits(exit::DONE);
    std::fs::remove_file(place.audit().join("bulla.toml")).unwrap();
    let info = |name: &str, code| bulla(arguments!["info", place.path(name)]).exits(code).err;
    let told = info("audit", exit::VIOLATION);
    assert!(told.contains("audit has the segments of a log, and no bulla.toml"), "{told}");
    assert!(told.contains("restore that file from a copy"), "{told}");
    // What an `init` that was killed can leave.
    std::fs::remove_dir_all(place.audit().join("segments")).unwrap();
    std::fs::create_dir(place.path("empty")).unwrap();
    place.write("file", b"");
    for (name, why) in [
        ("audit", "it has no bulla.toml"),
        ("empty", "it has no bulla.toml"),
        ("nowhere", "there is no such directory"),
        ("file", "it is no directory"),
    ] {
        let told = info(name, exit::ENVIRONMENT);
        assert!(told.contains(&format!("{name} is not a log ({why}); `bulla init DIR` makes one")), "{told}");
    }
}

#[test]
fn a_named_file_that_is_not_there_is_a_missing_key_where_it_is_one_and_else_the_environment() {
    let place = Place::new();
    place.append(&[], &lines(0..10)).exits(exit::DONE);
    let path = |name: &str| place.path(name).into_os_string().into_string().unwrap();
    let [none, out, audit, certificate] = ["none", "out", "audit", "certificate"].map(path);
    place.run("hold", &["add", "--subject", "s1", "--by", "b", "--reason", "r"]).exits(exit::DONE);
    let info = place.run("info", &["--json"]).exits(exit::DONE).json();
    let frame = (info["tree_size"].as_u64().unwrap() - 1).to_string();
    place.run("prove", &["--event", &frame, "-o", &certificate]).exits(exit::DONE);
    let (id, vkey) = (info["id"].as_str().unwrap(), info["erasure_key"].as_str().unwrap());
    place
        .run(
            "keys",
            &["new-identity", "-o", &path("locked"), "--passphrase-file", &place.write("word", b"w")],
        )
        .exits(exit::DONE);
    let key = place.keys("erasure.key").into_os_string().into_string().unwrap();
    let pseudonym = "p-4c75c78bd0a93d68e641ad76bf0246d7";
    place.run("config", &["set", "log.fields.actor", "pseudonymise"]).exits(exit::DONE);
    for (words, code) in [
        (&["verify", &audit, "--identity", &none][..], exit::REFUSED),
        (&["verify", &audit, "--seal-key", &none], exit::REFUSED),
        (&["export", &audit, "--identity", &none], exit::REFUSED),
        (&["export", &audit, "--identity", &path("locked"), "--passphrase-file", &none], exit::REFUSED),
        (&["export", &audit, "--grant", &none], exit::REFUSED),
        (&["tail", &audit, "--grant", &none, "--entries", "0..0"], exit::REFUSED),
        (&["prove", &audit, "--entry", "0", "--grant", &none], exit::REFUSED),
        (&["keys", &audit, "list", "--identity", &none], exit::REFUSED),
        (&["restore", &audit, "--seal-key", &none], exit::REFUSED),
        (&["erase", &audit, "--subject", "s2", "--authority", &none], exit::REFUSED),
        (&["hold", &audit, "add", "--authority", &none], exit::REFUSED),
        (&["config", &audit, "set", "log.erasure_key", vkey, "--authority", &none], exit::REFUSED),
        (&["order", "--log", id, "--subject", "s2", "--authority", &none, "-o", &out], exit::REFUSED),
        (
            &[
                "order",
                "--log",
                id,
                "--release",
                &none,
                "--by",
                "b",
                "--reason",
                "r",
                "--authority",
                &key,
                "-o",
                &out,
            ],
            exit::ENVIRONMENT,
        ),
        (&["append", &audit, &none], exit::ENVIRONMENT),
        (&["check", &none], exit::ENVIRONMENT),
        (&["check", &certificate, "--order", &none], exit::ENVIRONMENT),
        (&["prove", &audit, "--consistency", &none, "-o", &out], exit::ENVIRONMENT),
        (&["keys", &audit, "add-recipient", "--recipients-file", &none], exit::ENVIRONMENT),
        (&["pseudonym", &audit, "actor", "--resolve", pseudonym, &none], exit::ENVIRONMENT),
        (&["verify", &audit, "--keys", &none], exit::REFUSED),
        (&["info", &audit, "--keys", &none], exit::REFUSED),
        (&["events", &audit, "--keys", &none], exit::REFUSED),
        (&["append", &audit, "--keys", &none], exit::REFUSED),
        (&["export", &audit, "--keys", &none], exit::REFUSED),
        (&["tail", &audit, "--entries", "0..0", "--keys", &none], exit::REFUSED),
        (&["prove", &audit, "--entry", "0", "-o", &out, "--keys", &none], exit::REFUSED),
        (&["grant", &audit, "--recipient", "age1x", "-o", &out, "--keys", &none], exit::REFUSED),
        (&["restore", &audit, "--keys", &none], exit::REFUSED),
        (&["erase", &audit, "--subject", "s2", "--keys", &none], exit::REFUSED),
        (&["hold", &audit, "list", "--keys", &none], exit::REFUSED),
        (&["keys", &audit, "list", "--keys", &none], exit::REFUSED),
        (&["pseudonym", &audit, "actor", "a", "--keys", &none], exit::REFUSED),
        (&["config", &audit, "set", "linger", "1 s", "--keys", &none], exit::REFUSED),
        (&["verify", &audit, "--keys", &key], exit::ENVIRONMENT),
        (&["verify", &audit, "--key", &none], exit::USAGE),
        (&["verify", &audit, "--erasure-key", &none], exit::USAGE),
    ] {
        let ran = bulla(words).exits(code);
        assert!(ran.err.contains(&none) || ran.err.contains(&key), "{words:?}: {ran:?}");
    }
    place.run("verify", &["--keys", place.path("audit.keys").to_str().unwrap()]).exits(exit::DONE);
}

#[test]
fn the_keys_of_another_log_are_neither_changed_nor_told_of_as_this_ones() {
    let (place, other) = (Place::new(), Place::new());
    let keys = other.path("audit.keys").into_os_string().into_string().unwrap();
    other.run("config", &["set", "linger", "20 ms"]).exits(exit::DONE);
    let before = std::fs::read(other.keys("settings.toml")).unwrap();
    for words in [
        &["config", "set", "linger", "31ms"][..],
        &["config", "set", "log.heartbeat", "2 h"],
        &["keys", "list"],
        &["keys", "rotate"],
        &["hold", "list"],
        &["hold", "add", "--subject", "s", "--by", "b", "--reason", "r"],
    ] {
        let ran = place.run(words[0], &[&words[1..], &["--keys", &keys]].concat()).exits(exit::REFUSED);
        assert!(ran.err.contains(&format!("{keys}/signing.key is not the key of ")), "{words:?}: {ran:?}");
    }
    assert_eq!(std::fs::read(other.keys("settings.toml")).unwrap(), before);
}

#[test]
fn missing_keys_are_named() {
    let place = Place::new();
    std::fs::rename(place.path("audit.keys"), place.path("gone")).unwrap();
    let ran = place.append(&[], &lines(0..1)).exits(exit::ENVIRONMENT);
    assert!(ran.err.contains("there is no directory") && ran.err.contains("audit.keys"), "{ran:?}");
    place.run("verify", &["--public"]).exits(exit::DONE);
}

#[test]
fn a_second_writer_is_refused() {
    let place = Place::new();
    let log = Log::open(place.audit(), Options::default()).unwrap();
    let ran = place.append(&[], &lines(0..1)).exits(exit::ENVIRONMENT);
    assert!(ran.err.contains("another writer"), "{ran:?}");
    log.close().unwrap();
    place.append(&[], &lines(0..1)).exits(exit::DONE);
}

#[test]
fn a_newer_format_version_is_no_damage() {
    let place = Place::new();
    let file = place.audit().join("bulla.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("version = 1", "version = 2")).unwrap();
    for subcommand in ["append", "verify", "export", "info"] {
        let ran = place.run(subcommand, &[]).exits(exit::ENVIRONMENT);
        assert!(ran.err.contains("format version 2"), "{ran:?}");
    }
    std::fs::write(&file, text.replace("version = 1", "version = 0")).unwrap();
    let ran = place.run("verify", &[]).exits(exit::VIOLATION);
    assert!(ran.out.contains("the first format has 1") && !ran.out.contains("newer"), "{ran:?}");
}

#[test]
fn a_setting_of_the_logs_file_that_is_out_of_its_bounds_is_damage_to_whoever_writes_it() {
    let place = Place::new();
    place.append(&[], &lines(0..10)).exits(exit::DONE);
    let file = place.audit().join("bulla.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    for (name, value) in [("writers", "0"), ("compression", "20"), ("retry_delay", "\"2 h\"")] {
        std::fs::write(&file, format!("{text}{name} = {value}\n")).unwrap();
        for ran in [
            place.append(&[], b""),
            place.run("keys", &["rotate"]),
            place.run("hold", &["add", "--subject", "s7", "--by", "a", "--reason", "b"]),
            place.run("erase", &["--subject", "s7"]),
            place.run("restore", &[]),
        ] {
            let ran = ran.exits(exit::VIOLATION);
            assert!(ran.err.contains(&format!("bulla.toml: `{name}` is ")), "{name}: {ran:?}");
        }
        place.run("verify", &[]).exits(exit::DONE);
        place.run("config", &["unset", name]).exits(exit::DONE);
        place.append(&[], b"").exits(exit::DONE);
    }
    // Each is within its bounds, and they do not fit together: nothing says that the file is at fault.
    std::fs::write(&file, format!("{text}writers = 256\nblock_size = \"16 MiB\"\n")).unwrap();
    place.append(&[], b"").exits(exit::USAGE);
}

#[test]
fn a_full_standard_output_is_told() {
    let place = Place::new();
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    for subcommand in ["verify", "info"] {
        let ran = command(place.arguments(subcommand, &[])).stdout(full()).spawn().unwrap();
        let ran = finish(ran).exits(exit::ENVIRONMENT);
        assert!(ran.err.contains("standard output"), "{ran:?}");
    }
}

#[test]
fn a_log_cut_short_is_not_continued() {
    let place = Place::new();
    place.append(&[], &lines(0..1000)).exits(exit::DONE);
    let segment = std::fs::OpenOptions::new().write(true).open(place.segment()).unwrap();
    segment.set_len(segment.metadata().unwrap().len() / 2).unwrap();
    let ran = place.append(&[], &lines(0..1)).exits(exit::VIOLATION);
    assert!(ran.err.contains("bulla verify"), "{ran:?}");
}

/// Its disk is full, or takes nothing: the log is none the worse, until it is to be opened with that replica.
#[test]
fn a_full_disk_under_a_replica_of_the_vault() {
    if !may_mount("environment::a_full_disk_under_a_replica_of_the_vault") {
        return;
    }
    let place = Place::new();
    let disk = place.path("disk");
    let mount = Mount::new(&disk, "size=300k");
    place.run("config", &["set", "vault_replicas", disk.to_str().unwrap()]).exits(exit::DONE);
    place.append(&[], &lines(0..10)).exits(exit::DONE);
    let line = |number| format!("{{\"operation\":\"read\",\"subject\":\"person {number}\"}}\n");
    let ran = place.append(&[], (0..8000).map(line).collect::<String>().as_bytes()).exits(exit::DONE);
    assert!(ran.err.contains("a replica of the vault, was left out: "), "{ran:?}");
    assert_eq!(place.entries().len(), 8010);
    let ran = place.append(&[], &lines(10..20)).exits(exit::ENVIRONMENT);
    assert!(ran.err.contains("a replica of the vault"), "{ran:?}");
    std::fs::remove_file(disk.join("vault/vault.db")).unwrap();
    mount.make_read_only();
    let ran = place.append(&[], &lines(10..20)).exits(exit::ENVIRONMENT);
    assert!(ran.err.contains("Read-only file system"), "{ran:?}");
    place.run("config", &["unset", "vault_replicas"]).exits(exit::DONE);
    place.append(&[], &lines(10..20)).exits(exit::DONE);
}

/// A lock that could not be taken, or let go of, once: it is opened anew, and nothing that was accepted is given up for it.
#[test]
fn a_lock_of_the_vault_that_fails_once_costs_no_more_than_a_wait() {
    let place = Place::new();
    place.append(&[], &lines(0..10)).exits(exit::DONE);
    let mut taken = 10;
    for (file, when) in
        ["vault.db-shm", "vault.db"].iter().flat_map(|file| (1..=4).map(move |when| (file, when)))
    {
        let path = place.keys("vault").join(file);
        let fails = format!("inject=fcntl:error=EIO:when={when}");
        let strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", &fails, "-P", path.to_str().unwrap()];
        let input = place.write("input", &lines(taken..taken + 10));
        let child = command_under(&strace, &place.arguments("append", &[&input])).spawn();
        let ran = finish(child.expect("this test needs strace: `apt-get install strace`"));
        match ran.code {
            exit::DONE => taken += 10,
            _ => {
                let ran = ran.exits(exit::ENVIRONMENT);
                assert!(ran.err.contains("no entry was accepted"), "{file} {when}: {ran:?}");
                assert!(ran.err.contains("while locking or unlocking: "), "{file} {when}: {ran:?}");
            }
        }
    }
    assert_eq!(place.entries().len(), usize::try_from(taken).unwrap());
    place.run("verify", &[]).exits(exit::DONE);
}

/// Whatever has struck the vault: exit 4, with the file's name and what to do, and a replica in its place has everybody.
#[test]
fn a_damaged_vault_is_named_and_its_replica_takes_its_place() {
    let place = Place::new();
    let replica = place.path("replica");
    std::fs::create_dir(&replica).unwrap();
    place.run("config", &["set", "vault_replicas", replica.to_str().unwrap()]).exits(exit::DONE);
    place.append(&[], &lines(0..20)).exits(exit::DONE);
    let before = place.run("export", &[]).exits(exit::DONE).out;
    let file = place.keys("vault/vault.db");
    let whole = std::fs::read(&file).unwrap();
    let pages = whole.len() / 4096;
    // The head, then every page of it: some nobody asks for, since all of it is looked at by no command.
    let mut damages = vec![b"no database".repeat(500), whole[..whole.len() / 2].to_vec()];
    damages.extend((0..pages).step_by(2).map(|page| {
        let mut bytes = whole.clone();
        bytes[page * 4096..][..4096].fill(0x55);
        bytes
    }));
    let mut named = 0;
    for damaged in &damages {
        std::fs::write(&file, damaged).unwrap();
        let ran = place.run("export", &[]);
        if ran.code == exit::DONE {
            assert_eq!(ran.out, before);
            continue;
        }
        named += 1;
        let ran = ran.exits(exit::ENVIRONMENT);
        assert!(ran.err.contains("vault.db is damaged ("), "{ran:?}");
        assert!(ran.err.contains("from a replica"), "{ran:?}");
    }
    assert!(named > 2, "{named} of {}", damages.len());
    std::fs::write(&file, &damages[0]).unwrap();
    let ran = place.append(&[], &lines(20..30)).exits(exit::ENVIRONMENT);
    assert!(ran.err.contains("vault.db is damaged ("), "{ran:?}");
    for name in ["vault", "roots"] {
        std::fs::remove_dir_all(place.keys(name)).unwrap();
        std::fs::rename(replica.join(name), place.keys(name)).unwrap();
    }
    assert_eq!(place.run("export", &[]).exits(exit::DONE).out, before);
    place.append(&[], &lines(20..30)).exits(exit::DONE);
    assert_eq!(place.entries().len(), 30);
}

/// Of a limit on processes, say: those that there are do the work, and no reader ends by a panic.
#[test]
fn readers_do_with_the_threads_that_the_system_starts() {
    let place = Place::new();
    place.append(&[], &incompressible(300)).exits(exit::DONE);
    let out = place.path("out");
    let to_file = ["-o", out.to_str().unwrap()];
    let readers = [
        vec!["verify"],
        vec!["export"],
        [&["export", "--salvage"][..], &to_file].concat(),
        [&["export", "--format", "parquet"][..], &to_file].concat(),
    ];
    for words in readers {
        let arguments = place.arguments(words[0], &words[1..]);
        let exported = || {
            let exported = std::fs::read(&out).ok();
            exported.inspect(|_| std::fs::remove_file(&out).unwrap())
        };
        let whole = (bulla(arguments.clone()).exits(exit::DONE).out, exported());
        let mut done = 0;
        for first_refused in 1..=4 {
            let fails = format!("inject=clone,clone3:error=EAGAIN:when={first_refused}+");
            let strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", &fails];
            let child = command_under(&strace, &arguments).spawn();
            let ran = finish(child.expect("this test needs strace: `apt-get install strace`"));
            if ran.code == exit::DONE {
                assert!((ran.out, exported()) == whole, "{words:?} {first_refused}: {}", ran.err);
                done += 1;
                continue;
            }
            // The thread that removes an unfinished file at a signal, which what makes one cannot do without.
            let ran = ran.exits(exit::ENVIRONMENT);
            assert!(words.contains(&"-o"), "{words:?} {first_refused}: {ran:?}");
            for told in ["listening for signals", "`ulimit -u`"] {
                assert!(ran.err.contains(told), "{words:?} {first_refused}: {ran:?}");
            }
        }
        assert!(done >= 3, "{words:?}: {done}");
    }
}

#[test]
fn a_writer_that_gets_no_thread_says_what_to_look_at() {
    let place = Place::new();
    let input = place.write("input", &lines(0..10));
    let mut told = 0;
    for first_refused in 1..=6 {
        let fails = format!("inject=clone,clone3:error=EAGAIN:when={first_refused}+");
        let strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", &fails];
        let child = command_under(&strace, &place.arguments("append", &["--json", &input])).spawn();
        let ran = finish(child.expect("this test needs strace: `apt-get install strace`"));
        let ran = ran.exits(exit::ENVIRONMENT);
        assert!(ran.err.contains("`ulimit -u`") && ran.err.contains("no entry was accepted"), "{ran:?}");
        told += usize::from(ran.err.contains("starting "));
        ran.json();
    }
    assert!(told > 3, "{told}");
    place.append(&[&input], b"").exits(exit::DONE);
}

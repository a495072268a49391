//! A disk that takes every write and fails every sync: nothing on it is durable, and nothing of it is called so.

use crate::support::{
    Place, Ran, arguments, command, command_under, copy, exit, finish, incompressible, lines,
};
use bulla_testkit::unsynced;
use std::ffi::OsString;
use std::path::PathBuf;

#[test]
fn nothing_is_called_committed_where_every_sync_fails() {
    for durability in ["interval 60 min", "interval 1 ms", "group", "os"] {
        // A segment with one entry is larger than 4 KiB. Where no sync at all succeeds, some modes find that out at opening.
        for (most, opens) in [(4096, true), (-1, false)] {
            let place = Place::empty();
            place.run("init", &["--erasure", "off"]).exits(exit::DONE);
            place.run("config", &["set", "durability", durability]).exits(exit::DONE);
            let input = place.write("input", &incompressible(100));
            let mut append = command(place.arguments("append", &["--json", &input]));
            append.env("LD_PRELOAD", unsynced(&place.path(""), most));
            let ran = finish(append.spawn().unwrap()).exits(exit::ENVIRONMENT);
            assert!(ran.err.contains("Input/output error"), "{durability}: {ran:?}");
            assert!(ran.err.ends_with("\nno line is durable\n"), "{durability}: {ran:?}");
            let told = ran.json();
            for count in ["committed", "durable_prefix", "refused"] {
                assert_eq!(told[count], 0, "{durability}: {told}");
            }
            assert_eq!(told["up_to"]["line"], 0, "{durability}: {told}");
            assert!(!opens || told["accepted"].as_u64() > Some(0), "{durability}: {told}");
            // The system did not die, so that it has what was written: opening makes of that what it can.
            place.append(&[], b"").exits(exit::DONE);
            place.run("verify", &[]).exits(exit::DONE);
            assert!(place.entries().len() <= 100);
        }
    }
}

/// Runs the command where those syncs of these files fail that `which` says: `3` for the third alone, `3+` for it and all after it.
fn without_syncs(which: &str, files: &[PathBuf], arguments: &[OsString]) -> Ran {
    let fails = format!("inject=fsync,fdatasync:error=EIO:when={which}");
    let mut strace = vec!["strace", "-f", "-qq", "-o", "/dev/null", "-e", &fails];
    files.iter().for_each(|file| strace.extend(["-P", file.to_str().unwrap()]));
    let child = command_under(&strace, arguments).spawn();
    finish(child.expect("this test needs strace: `apt-get install strace`"))
}

/// Whichever sync of its database fails: nobody takes for damage what only has to be done again.
#[test]
fn a_vault_that_cannot_be_synced_while_it_is_made_is_no_damaged_one() {
    let made = |place: &Place, new_vault: bool| match new_vault {
        false => arguments!["init", place.audit()].to_vec(),
        true => {
            let identity = place.keys("identity.age");
            arguments!["restore", place.audit(), "--new-vault", "--identity", identity].to_vec()
        }
    };
    for new_vault in [false, true] {
        let mut failed = 0;
        loop {
            let place = Place::empty();
            if new_vault {
                place.run("init", &[]).exits(exit::DONE);
                place.append(&[], &lines(0..3)).exits(exit::DONE);
                for name in ["vault", "roots"] {
                    std::fs::remove_dir_all(place.keys(name)).unwrap();
                }
            }
            let files =
                ["vault.db", "vault.db-journal", "vault.db-wal"].map(|name| place.keys("vault").join(name));
            let arguments = made(&place, new_vault);
            let ran = without_syncs(&(failed + 1).to_string(), &files, &arguments);
            if ran.code == exit::DONE {
                break;
            }
            failed += 1;
            let ran = ran.exits(exit::ENVIRONMENT);
            let told = ["vault.db", "while syncing", "then try again"];
            assert!(told.iter().all(|told| ran.err.contains(told)), "{failed}: {ran:?}");
            assert!(!ran.err.contains("damaged"), "{failed}: {ran:?}");
            finish(command(&arguments).spawn().unwrap()).exits(exit::DONE);
            place.append(&[], &lines(3..5)).exits(exit::DONE);
            // A new vault has no keys of those before.
            let new = ["--entries", if new_vault { "3..4" } else { "0..1" }];
            assert_eq!(place.run("export", &new).exits(exit::DONE).out.lines().count(), 2);
        }
        assert!(failed >= 3, "{failed} syncs");
    }
}

/// Whatever sync of the vault is the first that fails. Whoever ordered it has to know that it is not off.
#[test]
fn an_erasure_that_opening_the_log_finishes_is_said_to_be_begun_perhaps() {
    let made = Place::new();
    made.append(&[], &lines(0..2)).exits(exit::DONE);
    let told = [
        "whether an erasure was begun, or carried out (",
        "an erasure was begun, and neither finished (",
        "are erased, and the log may not tell of it yet: ",
    ];
    let mut seen = [0; 3];
    for first in 3..=7 {
        let place = Place::empty();
        for name in ["audit", "audit.keys"] {
            copy(&made.path(name), &place.path(name));
        }
        let (syncs, which) = (place.keys("vault").join("vault.db-wal"), format!("{first}+"));
        let ran = without_syncs(&which, &[syncs], &place.arguments("erase", &["--subject", "s0"]));
        let opened = place.append(&[], b"").exits(exit::DONE);
        if ran.code == exit::DONE || !opened.err.contains("is finished") {
            continue;
        }
        let says = told.iter().position(|told| ran.err.contains(told));
        seen[says.unwrap_or_else(|| panic!("{first}: {ran:?}"))] += 1;
    }
    assert!(seen[0] > 0, "{seen:?}");
}

//! A disk that takes every write and fails every sync: nothing on it is durable, and nothing of it is called so.

use crate::support::{Place, command, command_under, copy, exit, finish, incompressible, lines};
use bulla_testkit::unsynced;

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
        let fails = format!("inject=fsync,fdatasync:error=EIO:when={first}+");
        let syncs = place.keys("vault").join("vault.db-wal");
        let strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", &fails, "-P", syncs.to_str().unwrap()];
        let child = command_under(&strace, &place.arguments("erase", &["--subject", "s0"])).spawn();
        let ran = finish(child.expect("this test needs strace: `apt-get install strace`"));
        let opened = place.append(&[], b"").exits(exit::DONE);
        if ran.code == exit::DONE || !opened.err.contains("is finished") {
            continue;
        }
        let says = told.iter().position(|told| ran.err.contains(told));
        seen[says.unwrap_or_else(|| panic!("{first}: {ran:?}"))] += 1;
    }
    assert!(seen[0] > 0, "{seen:?}");
}

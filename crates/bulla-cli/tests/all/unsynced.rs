//! A disk that takes every write and fails every sync: nothing on it is durable, and nothing of it is called so.

use crate::support::{Place, command, exit, finish, incompressible};
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

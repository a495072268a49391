//! `grant`: what an auditor without the vault reads with one, and what not.

use crate::support::{Place, Ran, arguments, bulla, exit, lines, parse_lines};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// A log of the owner and an auditor, who has a copy of it and an identity.
struct World {
    place: Place,
    recipient: String,
}

impl World {
    fn new() -> Self {
        let place = Place::empty();
        let identity = |name: &str| {
            let (text, recipient) = bulla::keys::identities::generate();
            place.write(name, text.as_bytes());
            recipient
        };
        let (owner, recipient) = (identity("owner"), identity("auditor"));
        bulla(arguments!["init", place.audit(), "--recipient", owner, "--recipient", recipient])
            .exits(exit::DONE);
        let place = place.keep_together();
        place.append(&[], &lines(0..60)).exits(exit::DONE);
        place.append(&[], &lines(60..100)).exits(exit::DONE);
        World { place, recipient }
    }

    fn grant(&self, filter: &[&str]) -> Ran {
        let (owner, file) = (self.place.path("owner"), self.file());
        let common = ["--recipient", &self.recipient, "--identity", owner.to_str().unwrap(), "-o", &file];
        self.place.run("grant", &[&common, filter].concat())
    }

    fn file(&self) -> String {
        self.place.path("a.grant").into_os_string().into_string().unwrap()
    }

    /// Runs a command in the auditor's copy, where there are no keys.
    fn audit(&self, subcommand: &str, more: &[&str]) -> Ran {
        let copy = self.place.path("copy");
        if copy.exists() {
            fs::remove_dir_all(&copy).unwrap();
        }
        let copied = std::process::Command::new("cp").arg("-r").arg(self.place.audit()).arg(&copy).status();
        assert!(copied.unwrap().success());
        let mut arguments = arguments![subcommand, copy, "--identity", self.place.path("auditor")];
        arguments.extend(more.iter().map(std::ffi::OsString::from));
        bulla(arguments)
    }

    /// What the auditor exports with the grant.
    fn export(&self, filter: &[&str]) -> Vec<Value> {
        let ran = self.audit("export", &[&["--grant", &self.file()], filter].concat()).exits(exit::DONE);
        parse_lines(&ran.out)
    }

    /// What the owner exports.
    fn owned(&self) -> Vec<Value> {
        let owner = self.place.path("owner");
        let ran = self.place.run("export", &["--identity", owner.to_str().unwrap()]).exits(exit::DONE);
        parse_lines(&ran.out)
    }
}

fn is_withheld(entry: &Value, why: &str) -> bool {
    entry["withheld"] == why && entry["location"].is_null() && entry["subject"].is_null()
}

#[test]
fn an_auditor_reads_what_was_granted_and_of_the_rest_what_is_shared() {
    let world = World::new();
    let ran = world.grant(&["--subject", "s3"]).exits(exit::DONE);
    assert_eq!(ran.err, "grants 10 entries in 2 groups; read 2 of 2 blocks\n");
    assert_eq!(fs::metadata(world.file()).unwrap().permissions().mode() & 0o777, 0o600);
    let owned = world.owned();
    let (seen, by_subject) = (world.export(&[]), world.export(&["--subject", "s3"]));
    for (entry, owned) in seen.iter().zip(&owned) {
        match owned["subject"] == "s3" {
            true => assert_eq!(entry, owned),
            false => assert!(is_withheld(entry, "not-given"), "{entry}"),
        }
    }
    assert_eq!((seen.len(), by_subject.len()), (100, 10));
    assert!(world.export(&["--subject", "s4"]).is_empty());

    // A proof, too.
    let proof = world.place.path("a.proof");
    let options = ["--grant", &world.file(), "--subject", "s3", "-o", proof.to_str().unwrap()];
    world.audit("prove", &options).exits(exit::DONE);
    assert_eq!(parse_lines(&bulla(arguments!["check", proof]).exits(exit::DONE).out), by_subject);

    // Of an entry, its group.
    let ran = world.grant(&["--entry", "64"]).exits(exit::DONE);
    let besides = "(3 were not asked for, but are of the same data subjects)";
    assert_eq!(ran.err, format!("grants 4 entries in 1 group {besides}; read 1 of 2 blocks\n"));
    let readable = world.export(&[]).into_iter().filter(|entry| entry["withheld"].is_null());
    assert_eq!(readable.map(|entry| entry["entry"].as_u64().unwrap()).collect::<Vec<_>>(), [64, 74, 84, 94]);
}

#[test]
fn what_was_erased_after_the_grant_is_not_read_with_it() {
    let world = World::new();
    world.grant(&["--operation", "read"]).exits(exit::DONE);
    assert!(world.export(&[]).iter().all(|entry| entry["withheld"].is_null()));
    world.place.run("erase", &["--subject", "s0"]).exits(exit::DONE);
    for entry in world.export(&[]) {
        let erased = entry["entry"].as_u64().unwrap() % 10 == 0;
        assert_eq!(is_withheld(&entry, "erased"), erased, "{entry}");
        assert_eq!(entry["withheld"].is_null(), !erased);
    }
    // Nor is it granted again.
    let ran = world.grant(&["--operation", "read"]).exits(exit::DONE);
    assert!(
        ran.err.starts_with("grants 90 entries in ")
            && ran.err.ends_with("\n10 entries not granted: erased\n"),
        "{ran:?}"
    );
    let ran = world.grant(&["--entry", "0"]).exits(exit::REFUSED);
    assert!(ran.err.contains("nothing to grant"), "{ran:?}");
}

#[test]
fn a_grant_is_for_its_log_and_its_recipients() {
    let (world, other) = (World::new(), World::new());
    world.grant(&["--subject", "s1"]).exits(exit::DONE);
    let file = world.file();
    let refused = |world: &World, code: i32, why: &str| {
        let ran = world.audit("export", &["--grant", &file]).exits(code);
        assert!(ran.err.contains(why) && ran.out.is_empty(), "{ran:?}");
    };
    refused(&other, exit::REFUSED, "not one of its recipients");
    fs::copy(world.place.path("auditor"), other.place.path("auditor")).unwrap();
    refused(&other, exit::REFUSED, "for another log");
    let mut content = fs::read(&file).unwrap();
    let last = content.len() - 1;
    content[last] ^= 1;
    fs::write(&file, content).unwrap();
    refused(&world, exit::VIOLATION, "not a sound age file");
    for other in [&b""[..], b"no grant\n"] {
        fs::write(&file, other).unwrap();
        refused(&world, exit::USAGE, "it is no grant");
    }

    world.grant(&[]).exits(exit::USAGE);
    let ran = world.grant(&["--subject", "nobody"]).exits(exit::REFUSED);
    assert!(ran.err.contains("nothing to grant"), "{ran:?}");
    let owner = world.place.path("owner");
    let options = ["--identity", owner.to_str().unwrap(), "--subject", "s1", "-o", &file];
    let ran = world.place.run("grant", &options).exits(exit::USAGE);
    assert!(ran.err.contains("--recipient"), "{ran:?}");
    fs::remove_dir_all(world.place.keys("vault")).unwrap();
    world.grant(&["--subject", "s1"]).exits(exit::REFUSED);
}

#[test]
fn other_peoples_tools_open_a_grant_and_find_no_more_in_it_than_it_says() {
    let world = World::new();
    world.grant(&["--subject", "s3"]).exits(exit::DONE);
    let mut age = std::process::Command::new("age");
    age.args(["--decrypt", "--identity"]).arg(world.place.path("auditor")).arg(world.file());
    let opened = age.output().expect("the `age` command is missing; `make test` installs it");
    assert!(opened.status.success(), "{opened:?}");
    // Magic, version, log and size; one name and its number; two groups of that number, in frames that follow each other
    // or lie an epoch apart, and their secrets.
    assert_eq!(opened.stdout.len(), 4 + 1 + 16 + 8 + (1 + 1 + 2 + 1) + (1 + 2 * (3 + 32)));
    assert_eq!(&opened.stdout[..5], b"BulG\x01");
    assert_eq!(&opened.stdout[29..34], b"\x01\x02s3\x03");

    // What they make is another file, and accuses nobody.
    let text = world.place.write("text", b"no grant");
    let mut age = std::process::Command::new("age");
    age.args(["--encrypt", "--recipient", &world.recipient, "--output", &world.file(), &text]);
    assert!(age.status().unwrap().success());
    let ran = world.audit("export", &["--grant", &world.file()]).exits(exit::USAGE);
    assert!(ran.err.contains("and no grant") && ran.out.is_empty(), "{ran:?}");
}

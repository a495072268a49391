//! `bulla restore` tells what it comes to, in words and in JSON, before it changes anything.

use crate::support::{Place, command, copy, exit, finish, lines};

/// A log whose key directory is from before an entry and an erasure.
fn with_older_keys() -> Place {
    let place = Place::new();
    // What is appended at once is one block, however slow the machine.
    place.run("config", &["set", "linger", "10 s"]).exits(exit::DONE);
    place.append(&[], &lines(0..2)).exits(exit::DONE);
    copy(&place.path("audit.keys"), &place.path("older"));
    place.append(&[], &lines(2..3)).exits(exit::DONE);
    place.run("erase", &["--subject", "s0", "--reason", "asked"]).exits(exit::DONE);
    std::fs::rename(place.path("audit.keys"), place.path("newest")).unwrap();
    std::fs::rename(place.path("older"), place.path("audit.keys")).unwrap();
    place
}

#[test]
fn a_dry_run_tells_the_same_as_the_restore_and_changes_nothing() {
    let place = with_older_keys();
    let state = || std::fs::read(place.keys("seal.state")).unwrap();
    let (before, checkpoint) = (state(), std::fs::read(place.audit().join("checkpoint")).unwrap());
    let looked = place.run("restore", &["--dry-run", "--json"]).exits(exit::DONE).json();
    let words = place.run("restore", &["--dry-run"]).exits(exit::DONE);
    assert_eq!((state(), std::fs::read(place.audit().join("checkpoint")).unwrap()), (before, checkpoint));
    assert!(!place.keys("restoring").exists());
    place.append(&[], b"").exits(exit::REFUSED);
    let mut told = place.run("restore", &["--json"]).exits(exit::DONE).json();
    assert_eq!(told["done"], true);
    told["done"] = false.into();
    assert_eq!(told, looked);
    assert_eq!((&told["erased"], &told["lost"]), (&serde_json::json!([0]), &serde_json::json!(1)));
    assert_eq!((&told["makes_seal_state"], &told["needed"]), (&false.into(), &true.into()));
    for (of, frames, entries) in [("known", 2, 2), ("log", 6, 3)] {
        assert_eq!((&told[of]["frames"], &told[of]["entries"]), (&frames.into(), &entries.into()), "{told}");
        assert!(words.out.contains(&format!("{frames} frames with {entries} entries")), "{words:?}");
        let time = told[of]["time"].as_str().unwrap();
        assert!(words.out.contains(time), "{words:?}");
    }
    assert!(words.out.contains("by number: 0\n") && words.out.contains("data subjects: 1\n"), "{words:?}");
    place.append(&[], &lines(3..4)).exits(exit::DONE);

    // Now there is nothing to take up.
    let size = place.info("tree_size");
    for words in [&["--json"][..], &["--json", "--dry-run"]] {
        let told = place.run("restore", words).exits(exit::DONE).json();
        assert_eq!((&told["needed"], &told["done"]), (&false.into(), &(words.len() == 1).into()), "{told}");
    }
    let ran = place.run("restore", &[]).exits(exit::DONE);
    assert!(ran.out.ends_with(
        "seal.state is there, and no vault is older than the log\nwhether the vault is whole was not looked at: `bulla verify` tells\n"
    ), "{ran:?}");
    assert_eq!(place.info("tree_size"), size);
    // Nor does it say that anything was taken up where it cannot be told.
    for words in [&[][..], &["--json"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let child = command(place.arguments("restore", words)).stdout(full).spawn().unwrap();
        let ran = finish(child).exits(exit::ENVIRONMENT);
        assert!(ran.err.starts_with("bulla: writing to standard output: "), "{ran:?}");
    }
    let refused = place.run("restore", &["--new-vault"]).exits(exit::REFUSED);
    assert!(refused.err.contains("vault is there"), "{refused:?}");
}

#[test]
fn what_a_restore_refuses_it_refuses_before_it_tells_anything() {
    let place = Place::new();
    place.append(&[], &lines(0..1)).exits(exit::DONE);
    copy(&place.audit(), &place.path("older"));
    place.append(&[], &lines(1..2)).exits(exit::DONE);
    std::fs::remove_dir_all(place.audit()).unwrap();
    copy(&place.path("older"), &place.audit());
    let ran = place.run("restore", &[]).exits(exit::VIOLATION);
    assert!(ran.out.is_empty() && ran.err.contains("an older copy was restored"), "{ran:?}");
}

/// Of a log of which a part was given up: nothing but the vault is older, and it lacks nobody.
#[test]
fn an_older_vault_is_told_of_where_there_is_nothing_else_to_take_up() {
    let place = Place::new();
    let put = |from: &std::path::Path, to: &std::path::Path| {
        std::fs::remove_dir_all(to).unwrap();
        copy(from, to);
    };
    place.append(&[], &lines(0..1)).exits(exit::DONE);
    copy(&place.audit(), &place.path("older"));
    for name in ["vault", "roots"] {
        copy(&place.keys(name), &place.path(name));
    }
    place.append(&[], &lines(0..1)).exits(exit::DONE);
    put(&place.path("older"), &place.audit());
    let seal_key = place.keys("seal.key").into_os_string().into_string().unwrap();
    place.run("restore", &["--older-log", "--seal-key", &seal_key]).exits(exit::DONE);
    for name in ["vault", "roots"] {
        put(&place.path(name), &place.keys(name));
    }

    let looked = place.run("restore", &["--dry-run"]).exits(exit::DONE);
    assert!(looked.out.contains("Bring the newest vault first"), "{looked:?}");
    assert!(!looked.out.contains("needs to be restored"), "{looked:?}");
    let refused = place.run("restore", &[]).exits(exit::REFUSED);
    assert!(refused.out == looked.out && refused.err.contains("say `--older-vault`"), "{refused:?}");
    let told = place.run("restore", &["--older-vault"]).exits(exit::DONE);
    assert!(told.out.contains(&looked.out) && told.out.contains("taken up"), "{told:?}");
}

/// A copy of the part that was given up is put back: it has nothing of what came in its place, and nothing tells how much that is.
#[test]
fn what_may_be_lost_beyond_what_is_counted_is_said() {
    let place = Place::new();
    let put = |name: &str| {
        std::fs::remove_dir_all(place.audit()).unwrap();
        copy(&place.path(name), &place.audit());
    };
    let seal_key = place.keys("seal.key").into_os_string().into_string().unwrap();
    let give_up = |more: &[&str]| {
        place
            .run("restore", &[&["--older-log", "--seal-key", &seal_key][..], more].concat())
            .exits(exit::DONE)
    };
    place.append(&[], &lines(0..2)).exits(exit::DONE);
    copy(&place.audit(), &place.path("shorter"));
    place.append(&[], &lines(2..4)).exits(exit::DONE);
    copy(&place.audit(), &place.path("longer"));
    place.append(&[], &lines(4..6)).exits(exit::DONE);
    put("shorter");
    let told = give_up(&["--json"]).json();
    assert_eq!(told["may_lose_more"], false, "{told}");
    for number in 6..12 {
        place.append(&[], &lines(number..number + 1)).exits(exit::DONE);
    }
    put("longer");
    let (told, said) = (give_up(&["--dry-run", "--json"]).json(), give_up(&["--dry-run"]).out);
    assert_eq!(told["may_lose_more"], true, "{told}");
    let at_least = format!("the keys knew of at least {} frames more", told["lost_frames"]);
    assert!(said.contains(&at_least) && said.contains("nothing of what came in its place"), "{said}");
    give_up(&[]);
    place.run("verify", &[]).exits(exit::DONE);
}

/// The newest copy of a log of which a part was given up is found after all, and put in the place of what was gone on with.
#[test]
fn no_command_answers_from_the_history_that_was_given_up() {
    let place = Place::new();
    let put = |name: &str| {
        std::fs::remove_dir_all(place.audit()).unwrap();
        copy(&place.path(name), &place.audit());
    };
    let text = |name: &str| place.path(name).into_os_string().into_string().unwrap();
    place.append(&[], &lines(0..2)).exits(exit::DONE);
    copy(&place.audit(), &place.path("older"));
    (2..12).for_each(|number| drop(place.append(&[], &lines(number..number + 1)).exits(exit::DONE)));
    copy(&place.audit(), &place.path("newest"));
    put("older");
    std::fs::rename(place.keys("seal.key"), place.path("seal.key")).unwrap();
    std::fs::remove_file(place.keys("seal.state")).unwrap();
    place.run("restore", &["--seal-key", &text("seal.key"), "--older-log"]).exits(exit::DONE);
    place.append(&[], &lines(20..21)).exits(exit::DONE);
    copy(&place.audit(), &place.path("log"));

    put("newest");
    let (mirror, proof) = (text("mirror"), text("proof"));
    for (command, more) in [
        ("events", &[][..]),
        ("events", &["--kind", "erased"]),
        ("hold", &["list"]),
        ("keys", &["list"]),
        ("sources", &[]),
        ("export", &["--withhold-personal"]),
        ("tail", &["--withhold-personal", "--from", "yesterday"]),
        ("prove", &["--entry", "0", "-o", &proof]),
        ("mirror", &[&mirror, "--once"]),
    ] {
        let ran = place.run(command, more).exits(exit::ENVIRONMENT);
        assert!(ran.err.contains("audit holds another history of the log than "), "{command}: {ran:?}");
        assert!(ran.err.contains("docs/operating.md, \"Two histories\""), "{command}: {ran:?}");
        assert_eq!(ran.out, "", "{command}: {ran:?}");
    }
    let info = place.run("info", &[]).exits(exit::DONE);
    assert!(info.out.contains("audit holds another history of the log than "), "{info:?}");
    let verified = place.run("verify", &[]).exits(exit::VIOLATION);
    assert!(verified.out.contains("violation root-mismatch"), "{verified:?}");
    let ran = place.run("append", &["/dev/null"]).exits(exit::VIOLATION);
    assert!(ran.err.contains("audit holds another history of the log than "), "{ran:?}");
    assert!(ran.err.contains("keep this one aside") && !ran.err.contains("older copy"), "{ran:?}");
    put("log");
    place.append(&[], &lines(21..22)).exits(exit::DONE);
    place.run("events", &[]).exits(exit::DONE);
}

#[test]
fn a_log_without_erasure_gets_its_seal_state_back_without_an_identity() {
    let place = Place::empty();
    crate::support::bulla(crate::support::arguments!["init", place.audit(), "--erasure", "off"])
        .exits(exit::DONE);
    place.append(&[], &lines(0..2)).exits(exit::DONE);
    let nothing_to_do = place.run("restore", &[]).exits(exit::DONE);
    assert!(nothing_to_do.out.contains("nothing needs to be restored"), "{nothing_to_do:?}");
    let state = std::fs::read(place.keys("seal.state")).unwrap();
    std::fs::remove_file(place.keys("seal.state")).unwrap();
    std::fs::rename(place.keys("seal.key"), place.path("seal.key")).unwrap();
    std::fs::rename(place.keys("identity.age"), place.path("identity.age")).unwrap();
    let missing = place.run("restore", &[]).exits(exit::REFUSED);
    assert!(missing.err.contains("--seal-key"), "{missing:?}");
    let key = place.path("seal.key").into_os_string().into_string().unwrap();
    // It has no keys of anybody, of which something could be told.
    copy(&place.audit(), &place.path("older"));
    copy(&place.path("audit.keys"), &place.path("lost"));
    std::fs::write(place.keys("seal.state"), state).unwrap();
    place.append(&[], &lines(2..3)).exits(exit::DONE);
    std::fs::remove_dir_all(place.path("older").join("segments")).unwrap();
    copy(&place.audit().join("segments"), &place.path("older").join("segments"));
    copy(&place.path("older"), &place.path("unsigned"));
    copy(&place.path("lost"), &place.path("unsigned.keys"));
    for (words, lines) in [(&["--dry-run"][..], 3), (&[], 4)] {
        let given = [&["restore", "unsigned", "--seal-key", "seal.key"], words].concat();
        let child = command(&given).current_dir(place.path("")).spawn().unwrap();
        let ran = finish(child).exits(exit::DONE);
        assert!(ran.out.contains("\n1 more entry is not signed yet, and is kept\n"), "{ran:?}");
        assert!(!ran.out.contains("keys"), "{ran:?}");
        assert_eq!(ran.out.lines().count(), lines, "{ran:?}");
    }
    std::fs::remove_file(place.keys("seal.state")).unwrap();
    let told = place.run("restore", &["--seal-key", &key, "--json"]).exits(exit::DONE).json();
    assert_eq!((&told["makes_seal_state"], &told["lost"]), (&true.into(), &0.into()));
    place.append(&[], &lines(3..4)).exits(exit::DONE);
    place.run("verify", &["--strict", "--seal-key", &key]).exits(exit::DONE);
}

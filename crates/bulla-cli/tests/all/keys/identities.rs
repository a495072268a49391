use super::{at_a_terminal, new_identity};
use crate::support::{Place, Ran, arguments, bulla, command, exit, finish, lines};
use std::process::Command;

const PASSPHRASE: &str = "correct horse battery";

/// A log with ten entries for an identity that is under a passphrase, and that identity's file.
fn protected() -> (Place, String, String) {
    let place = Place::empty();
    let file = place.write("passphrase", format!("{PASSPHRASE}\n").as_bytes());
    let path = place.path("officer.age").into_os_string().into_string().unwrap();
    let made =
        place.run("keys", &["new-identity", "-o", &path, "--passphrase-file", &file]).exits(exit::DONE);
    bulla(arguments!["init", place.audit(), "--recipient", made.out.trim_end()]).exits(exit::DONE);
    place.append(&[], &lines(0..10)).exits(exit::DONE);
    (place, path, file)
}

#[test]
fn a_passphrase_comes_from_a_file_or_from_the_one_that_the_environment_names() {
    let (place, path, file) = protected();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("-----BEGIN AGE ENCRYPTED FILE-----") && !text.contains("SECRET"), "{text}");
    for subcommand in
        [&["export"][..], &["verify"], &["prove", "--entry", "3"], &["tail", "--entries", "0..9"]]
    {
        let more = [&subcommand[1..], &["--identity", &path, "--passphrase-file", &file]].concat();
        let ran = place.run(subcommand[0], &more).exits(exit::DONE);
        assert!(!ran.out.is_empty(), "{ran:?}");
    }
    let list = ["list", "--identity", &path, "--passphrase-file", &file];
    assert!(place.run("keys", &list).exits(exit::DONE).out.contains("opened by"));
    let mut by_environment = command(place.arguments("export", &["--identity", &path]));
    by_environment.env("BULLA_PASSPHRASE_FILE", &file);
    assert_eq!(finish(by_environment.spawn().unwrap()).exits(exit::DONE).out.lines().count(), 10);
    // The option goes first.
    let wrong = place.write("wrong", b"incorrect horse");
    let mut both = command(place.arguments("export", &["--identity", &path, "--passphrase-file", &file]));
    both.env("BULLA_PASSPHRASE_FILE", &wrong);
    finish(both.spawn().unwrap()).exits(exit::DONE);
}

#[test]
fn a_wrong_passphrase_and_a_missing_one_are_told() {
    let (place, path, _) = protected();
    let wrong = place.write("wrong", b"incorrect horse");
    let empty = place.write("empty", b"\n");
    let export = |more: &[&str]| {
        let arguments = place.arguments("export", &[&["--identity", &path], more].concat());
        // In a session of its own there is no terminal to ask at.
        let mut alone = Command::new("setsid");
        alone
            .args(["--wait", env!("CARGO_BIN_EXE_bulla")])
            .args(arguments)
            .env_remove("BULLA_PASSPHRASE_FILE");
        Ran::from(alone.stdin(std::process::Stdio::null()).output().unwrap())
    };
    let ran = export(&["--passphrase-file", &wrong]).exits(exit::REFUSED);
    assert!(ran.err.contains("officer.age: the passphrase is wrong"), "{ran:?}");
    assert!(!ran.err.contains("incorrect"), "{ran:?}");
    export(&["--passphrase-file", &empty]).exits(exit::USAGE);
    export(&["--passphrase-file", "/nowhere"]).exits(exit::REFUSED);
    let ran = export(&[]).exits(exit::REFUSED);
    assert!(ran.err.contains("no terminal to ask at"), "{ran:?}");
}

#[test]
fn at_a_terminal_it_is_asked_for_and_not_shown() {
    let (place, path, _) = protected();
    let export = place.arguments("export", &["--identity", &path]);
    let (ran, echo) = at_a_terminal(&[], &export, &[("officer.age: ", "correct horse battery\n")]);
    assert_eq!(ran.out.lines().filter(|line| line.contains("key/")).count(), 10, "{ran:?}");
    assert!(ran.code == exit::DONE && echo && !ran.out.contains("battery"), "{ran:?}");

    let (ran, echo) = at_a_terminal(&[], &export, &[("officer.age: ", "correct h\u{3}")]);
    assert!(ran.code == exit::INTERRUPTED && echo, "{ran:?}");
    assert!(ran.out.contains("bulla: interrupted: nothing was done"), "{ran:?}");

    let new = place.path("new.age");
    let make = place.arguments("keys", &["new-identity", "--passphrase", "-o", new.to_str().unwrap()]);
    let (ran, _) = at_a_terminal(&[], &make, &[("identity: ", "one\n"), ("again: ", "other\n")]);
    assert!(ran.code == exit::USAGE && !new.exists(), "{ran:?}");
    let (ran, _) = at_a_terminal(&[], &make, &[("identity: ", "one\n"), ("again: ", "one\n")]);
    assert!(ran.code == exit::DONE && ran.out.contains("age1"), "{ran:?}");
    assert!(std::fs::read_to_string(&new).unwrap().starts_with("-----BEGIN AGE"));
}

/// Somebody else's tool reads what `new-identity` makes, and the other way round.
#[test]
fn the_age_command_knows_these_files() {
    let place = Place::empty();
    let (path, recipient) = new_identity(&place, "new.age");
    let age = |arguments: &[&str]| {
        let ran = Command::new("age-keygen").args(arguments).output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
        String::from_utf8(ran.stdout).unwrap()
    };
    assert_eq!(age(&["-y", &path]).trim_end(), recipient);
    let theirs = place.write("theirs.age", age(&[]).as_bytes());
    let theirs_recipient = age(&["-y", &theirs]);
    bulla(arguments!["init", place.audit(), "--recipient", theirs_recipient.trim_end()]).exits(exit::DONE);
    place.append(&[], &lines(0..10)).exits(exit::DONE);
    let ran = place.run("export", &["--identity", &theirs]).exits(exit::DONE);
    assert_eq!(ran.out.lines().count(), 10);
}

#[test]
fn a_file_that_is_no_identity_is_told() {
    let place = Place::new();
    place.append(&[], &lines(0..10)).exits(exit::DONE);
    for (content, code, said) in [
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blb\n", exit::USAGE, "SSH key"),
        ("age-encryption.org/v1\n-> X25519 AAAA\n", exit::USAGE, "not a sound age file"),
        ("secret secret", exit::USAGE, "line 1 is not an age identity"),
    ] {
        let path = place.write("identity", content.as_bytes());
        let passphrase = place.write("passphrase", b"x");
        let ran = place.run("export", &["--identity", &path, "--passphrase-file", &passphrase]).exits(code);
        assert!(ran.err.contains(said) && !ran.err.contains("secret secret"), "{ran:?}");
    }
}

use crate::support::{Place, arguments, bulla, command, exit, finish};
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

#[test]
fn a_recipient_or_an_origin_that_is_none_is_told() {
    for (option, value) in [("--recipient", "age1nobody"), ("--origin", ""), ("--origin", "two words")] {
        let place = Place::empty();
        let ran = place.run("init", &[option, value]).exits(exit::USAGE);
        assert!(!ran.err.is_empty());
        assert!(!place.audit().exists(), "{option} {value}");
    }
}

use super::new_identity;
use crate::support::{Place, arguments, bulla, exit, lines};
use bulla::{Log, Options};
use serde_json::json;
use std::os::unix::fs::PermissionsExt;

fn keys(place: &Place, more: &[&str]) -> crate::support::Ran {
    place.run("keys", more)
}

fn exported(place: &Place, identity: &str, more: &[&str]) -> crate::support::Ran {
    place.run("export", &[&["--identity", identity], more].concat())
}

#[test]
fn a_new_identity_is_a_file_of_its_owner_and_printed_nowhere() {
    let place = Place::empty();
    let (path, recipient) = new_identity(&place, "new.age");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(
        text.starts_with(&format!("# public key: {recipient}\nAGE-SECRET-KEY-1")),
        "its form is age-keygen's"
    );
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let again = keys(&place, &["new-identity", "-o", &path]).exits(exit::REFUSED);
    assert!(again.err.contains("it is left as it is") && again.out.is_empty(), "{again:?}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);

    let other = place.path("other.age").into_os_string().into_string().unwrap();
    let made = keys(&place, &["new-identity", "-o", &other, "--json"]).exits(exit::DONE).json();
    assert!(made["recipient"].as_str().unwrap().starts_with("age1") && made["identity"] == json!(other));
    keys(&place, &["new-identity", "-o", "/nowhere/x"]).exits(exit::ENVIRONMENT);
}

#[test]
fn recipients_come_and_go_and_each_reads_what_was_for_them() {
    let place = Place::new();
    let owner = place.keys("identity.age").to_str().unwrap().to_owned();
    let (one, first) = new_identity(&place, "one.age");
    let (two, second) = new_identity(&place, "two.age");
    place.append(&[], &lines(0..10)).exits(exit::DONE);
    let file = place.write("ours.txt", format!("# ours\n{second}\n").as_bytes());
    let added = keys(&place, &["add-recipient", &first, "--recipients-file", &file]).exits(exit::DONE);
    assert!(added.out.contains("recorded"), "{added:?}");
    place.append(&[], &lines(10..20)).exits(exit::DONE);
    let again = keys(&place, &["add-recipient", &first, "--json"]).exits(exit::DONE).json();
    assert_eq!(again, json!({ "changed": false, "recorded": false }));
    let removed = keys(&place, &["remove-recipient", &first]).exits(exit::DONE);
    assert!(removed.out.contains("stays readable to whoever was removed"), "{removed:?}");
    place.append(&[], &lines(20..30)).exits(exit::DONE);

    assert_eq!(exported(&place, &owner, &[]).exits(exit::DONE).out.lines().count(), 30);
    assert_eq!(exported(&place, &one, &["--entries", "10..19"]).exits(exit::DONE).out.lines().count(), 10);
    assert_eq!(exported(&place, &two, &["--entries", "10..29"]).exits(exit::DONE).out.lines().count(), 20);
    for (identity, entries) in [(&one, "0..9"), (&two, "0..9"), (&one, "20..29")] {
        exported(&place, identity, &["--entries", entries]).exits(exit::REFUSED);
    }
    let both = exported(&place, &one, &["--identity", &owner]).exits(exit::DONE);
    assert_eq!(both.out.lines().count(), 30);
    let verified = place.run("verify", &["--identity", &two, "--identity", &owner]).exits(exit::DONE);
    assert!(verified.out.contains("every block"), "{verified:?}");
}

#[test]
fn what_cannot_be_changed_is_refused_and_changes_nothing() {
    let place = Place::new();
    let owner = place.info("recipients")[0].as_str().unwrap().to_owned();
    let (path, stranger) = new_identity(&place, "stranger.age");
    let secret = std::fs::read_to_string(&path).unwrap().lines().last().unwrap().to_owned();
    let empty = place.write("empty.txt", b"# nobody\n");
    let wrong = place.write("wrong.txt", format!("{stranger}\nssh-rsa AAAA\n").as_bytes());
    for (arguments, code, said) in [
        (&["remove-recipient", &owner][..], exit::REFUSED, "until there is another"),
        (&["remove-recipient", &stranger], exit::REFUSED, "is no recipient of this log"),
        (&["remove-recipient"], exit::USAGE, "name a recipient"),
        (&["add-recipient"], exit::USAGE, "name a recipient"),
        (&["add-recipient", "age1nobody"], exit::USAGE, "is not an age recipient"),
        (&["add-recipient", &secret], exit::USAGE, "is the key itself"),
        (&["add-recipient", "ssh-ed25519 AAAA me@here"], exit::USAGE, "SSH keys are no recipients"),
        (&["add-recipient", "--recipients-file", &empty], exit::USAGE, "holds no age recipient"),
        (&["add-recipient", "--recipients-file", &wrong], exit::USAGE, "wrong.txt: line 2: SSH keys"),
        (&["add-recipient", "--recipients-file", "/nowhere"], exit::ENVIRONMENT, "/nowhere"),
        (&["rotate", &stranger], exit::USAGE, "take recipients"),
        (&["list", "-o", "x"], exit::USAGE, "only `new-identity`"),
        (&["add-recipient", &stranger, "--passphrase"], exit::USAGE, "only `new-identity`"),
        (&["new-identity"], exit::USAGE, "takes -o FILE"),
        (&["new-key"], exit::USAGE, "invalid value 'new-key'"),
        (&[], exit::USAGE, "ACTION"),
    ] {
        let ran = keys(&place, arguments).exits(code);
        assert!(ran.err.contains(said) && ran.out.is_empty(), "{arguments:?}: {ran:?}");
        assert!(!ran.err.contains(&secret[20..40]), "{ran:?}");
        assert_eq!(place.info("recipients"), json!([owner]));
    }
    keys(&Place::empty(), &["list"]).exits(exit::ENVIRONMENT);
}

#[test]
fn the_list_says_what_can_be_known() {
    let place = Place::new();
    let owner = place.keys("identity.age").to_str().unwrap().to_owned();
    let (one, first) = new_identity(&place, "one.age");
    place.append(&[], &lines(0..10)).exits(exit::DONE);
    keys(&place, &["rotate"]).exits(exit::DONE);
    keys(&place, &["add-recipient", &first]).exits(exit::DONE);
    place.append(&[], &lines(10..20)).exits(exit::DONE);

    let list =
        keys(&place, &["list", "--identity", &one, "--identity", &owner, "--json"]).exits(exit::DONE).json();
    assert_eq!(list["vkey"], place.info("vkey"));
    assert_eq!(list["recipients"], place.info("recipients"));
    assert_eq!(list["identity_here"], json!(owner));
    let epochs = list["epochs"].as_array().unwrap();
    assert_eq!(epochs.len(), 2, "those of one recipient, those of two: {list}");
    let known = |range: &serde_json::Value| (range["stanzas"].clone(), range["opened_by"].clone());
    assert_eq!(known(&epochs[0]), (json!(1), json!([owner])));
    assert_eq!(known(&epochs[1]), (json!(2), json!([one, owner])));
    assert_eq!((&epochs[0]["first"], &epochs[0]["count"]), (&json!(0), &json!(2)), "an append, a rotation");
    assert_eq!((&epochs[1]["first_entry"], &epochs[1]["count"]), (&json!(10), &json!(3)));

    let text = keys(&place, &["list"]).exits(exit::DONE).out;
    assert!(text.contains("this host can read its past") && text.contains("2 stanzas"), "{text}");
    assert!(!text.contains("opened by") && !text.contains("SECRET"), "{text}");
    std::fs::rename(place.keys("identity.age"), place.path("elsewhere")).unwrap();
    let text = keys(&place, &["list", "--identity", &one]).exits(exit::DONE).out;
    assert!(text.contains("none in the key directory"), "{text}");
    assert!(text.contains("opened by none of the identities"), "{text}");
    let text = keys(&place, &["list", "--json"]).exits(exit::DONE).json();
    assert_eq!(text["identity_here"], json!(null));
}

#[test]
fn rotation_is_an_epoch_and_nothing_else() {
    let place = Place::new();
    place.append(&[], &lines(0..10)).exits(exit::DONE);
    let count = || keys(&place, &["list", "--json"]).exits(exit::DONE).json()["epochs"][0]["count"].clone();
    let (before, tree) = (count(), place.info("tree_size").as_u64().unwrap());
    let rotated = keys(&place, &["rotate", "--json"]).exits(exit::DONE).json();
    assert_eq!(rotated["epoch"], json!(tree), "its frame comes next");
    assert_eq!((before, count()), (json!(1), json!(2)));
    assert_eq!(place.info("tree_size").as_u64().unwrap(), tree + 1);
    place.run("verify", &[]).exits(exit::DONE);
    assert_eq!(place.entries().len(), 10);
}

#[test]
fn a_writer_that_does_not_listen_is_told_of() {
    let place = Place::new();
    let (_, stranger) = new_identity(&place, "stranger.age");
    let log = Log::open(place.audit(), Options::default()).unwrap();
    std::fs::remove_file(place.keys("control.sock")).unwrap();
    // At the same time, since each waits a while for it.
    let commands = [&["rotate"][..], &["add-recipient", &stranger]];
    std::thread::scope(|scope| {
        for arguments in commands {
            let place = &place;
            scope.spawn(move || {
                let ran = keys(place, arguments).exits(exit::ENVIRONMENT);
                assert!(
                    ran.err.contains("another writer has") && ran.err.contains("stop it first"),
                    "{ran:?}"
                );
            });
        }
    });
    keys(&place, &["list"]).exits(exit::DONE);
    log.close().unwrap();
    keys(&place, &["rotate"]).exits(exit::DONE);
}

#[test]
fn a_log_is_made_for_recipients_of_a_file() {
    let place = Place::empty();
    let (one, first) = new_identity(&place, "one.age");
    let (_, second) = new_identity(&place, "two.age");
    let file = place.write("ours.txt", format!("# ours\n\n{second}\n").as_bytes());
    let made = bulla(arguments!["init", place.audit(), "--recipient", first, "--recipients-file", file]);
    assert!(made.exits(exit::DONE).out.contains("this host cannot"));
    assert_eq!(place.info("recipients"), json!([first, second]));
    assert!(!place.keys("identity.age").exists());
    place.append(&[], &lines(0..10)).exits(exit::DONE);
    assert_eq!(exported(&place, &one, &[]).exits(exit::DONE).out.lines().count(), 10);

    let empty = place.write("empty.txt", b"# nobody\n");
    let refused =
        bulla(arguments!["init", place.path("other"), "--recipients-file", empty]).exits(exit::USAGE);
    assert!(refused.err.contains("holds no age recipient"), "{refused:?}");
    assert!(!place.path("other").exists());
}

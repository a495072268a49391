//! `prove` and `check`: what one side makes of a log, and the other checks with a key alone.

use crate::support::{Place, Ran, arguments, bulla, bulla_with, command, exit, finish, lines, parse_lines};
use bulla_testkit::second_reader;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// A log of several blocks in two epochs.
fn filled() -> Place {
    fill(Place::new())
}

fn fill(place: Place) -> Place {
    place.append(&[], &lines(0..3000)).exits(exit::DONE);
    place.append(&[], &lines(3000..5000)).exits(exit::DONE);
    place
}

fn prove(place: &Place, what: &[&str]) -> String {
    let file = place.path("a.proof").into_os_string().into_string().unwrap();
    let others = if what.contains(&"--consistency") { &[][..] } else { &["--with-others"] };
    place.run("prove", &[what, &["-o", &file], others].concat()).exits(exit::DONE);
    file
}

/// Checks on a machine that has nothing but the file and the key.
fn check(file: &str, more: &[&str]) -> Ran {
    let elsewhere = Place::empty();
    std::fs::copy(file, elsewhere.path("file")).unwrap();
    let mut arguments = arguments!["check", elsewhere.path("file")];
    arguments.extend(more.iter().map(std::ffi::OsString::from));
    bulla(arguments)
}

#[test]
fn entries_that_were_not_asked_for_go_out_only_where_that_is_said() {
    let place = Place::new().keep_together();
    place.append(&[], &lines(0..40)).exits(exit::DONE);
    let file = place.path("entry.proof");
    let options = |more: &[&'static str]| [&["--entry", "17", "-o", "entry.proof"][..], more].concat();
    let run = |more: &[&'static str]| {
        let mut arguments = arguments!["prove", place.audit()];
        arguments.extend(options(more).iter().map(std::ffi::OsString::from));
        finish(command(arguments).current_dir(place.path("")).spawn().unwrap())
    };
    let subject = place.entries()[17]["subject"].clone();
    let entries = place.entries();
    let of_them = entries.iter().filter(|entry| entry["subject"] == subject && entry["entry"] != 17);
    let others = of_them.map(|entry| entry["entry"].to_string()).collect::<Vec<_>>();
    assert!(others.len() > 1);
    let ran = run(&[]).exits(exit::USAGE);
    let told = format!("disclose {} entries that were not asked for", others.len());
    assert!(ran.err.contains(&told) && ran.err.contains("--with-others"), "{}", ran.err);
    assert!(ran.err.contains(&others.join(", ")), "{}", ran.err);
    assert!(!file.exists());

    let ran = run(&["--with-others"]).exits(exit::DONE);
    assert!(ran.err.contains(&format!("({} were not asked for", others.len())), "{}", ran.err);
    let checked = check(file.to_str().unwrap(), &["--key", &place.verifier_key()]).exits(exit::DONE);
    assert_eq!(checked.out.lines().count(), 1 + others.len());
    // Who asks for all of a person's entries has nobody else's disclosed.
    prove(&place, &["--subject", subject.as_str().unwrap()]);
}

/// How `check` tells so many entries in so many units.
fn disclosed(entries: u64, units: u64) -> String {
    let units = if units == 1 { "1 unit".to_owned() } else { format!("{units} units") };
    match entries {
        1 => format!("discloses 1 entry, which is {units} of "),
        more => format!("discloses {more} entries, which are {units} of "),
    }
}

#[test]
fn a_proof_discloses_what_an_export_prints_and_another_implementation_agrees() {
    let place = Place::empty();
    bulla(arguments!["init", place.audit(), "--erasure", "off"]).exits(exit::DONE);
    let place = fill(place);
    let key = place.verifier_key();
    for (what, units) in [
        (&["--entry", "0"][..], 1),
        (&["--entry", "4999"], 1),
        (&["--entries", "2990..3010"], 21),
        (&["--subject", "s7"], 500),
        (&["--subject", "s7", "--entries", "4000.."], 100),
        (&["--operation", "read"], 5000),
    ] {
        let file = prove(&place, what);
        let ran = check(&file, &["--key", &key]).exits(exit::DONE);
        let filter = match what {
            ["--entry", number] => vec!["--entries", number],
            what => what.to_vec(),
        };
        assert_eq!(ran.out, place.run("export", &filter).exits(exit::DONE).out, "{what:?}");
        assert!(ran.err.contains(&disclosed(units, units)), "{ran:?}");
        assert!(ran.err.ends_with(&format!("ok: signed by {key}\n")), "{ran:?}");

        let json = check(&file, &["--key", &key, "--json"]).exits(exit::DONE).json();
        assert_eq!(
            (&json["ok"], &json["anchored"], &json["units"]),
            (&true.into(), &true.into(), &units.into())
        );
        assert_eq!(json["entries"].as_array().unwrap(), &parse_lines(&ran.out));

        let theirs = second_reader("check").args([&file, "--vkey", &key]).output().unwrap();
        let theirs = Ran::from(theirs).exits(0);
        assert_eq!(theirs.out, ran.out, "{what:?}");
    }
}

/// In a log with erasure what is proven is groups: whoever is shown one entry is shown the others of the same people.
#[test]
fn a_proof_discloses_the_groups_of_what_an_export_prints() {
    let place = filled();
    let key = place.verifier_key();
    for what in
        [&["--entry", "0"][..], &["--entries", "2990..3010"], &["--subject", "s7"], &["--operation", "read"]]
    {
        let file = prove(&place, what);
        let ran = check(&file, &["--key", &key]).exits(exit::DONE);
        let theirs = second_reader("check").args([&file, "--vkey", &key]).output().unwrap();
        assert_eq!(Ran::from(theirs).exits(0).out, ran.out, "{what:?}");

        let exported = parse_lines(&place.run("export", what).exits(exit::DONE).out);
        let disclosed = parse_lines(&ran.out);
        assert!(exported.iter().all(|entry| disclosed.contains(entry)), "{what:?}");
        let of_same = |entry: &&Value| exported.iter().any(|asked| asked["subject"] == entry["subject"]);
        assert_eq!(disclosed.iter().filter(of_same).count(), disclosed.len());
        assert!(ran.err.starts_with(&format!("discloses {} entries", disclosed.len())), "{ran:?}");
        let more = disclosed.len() - exported.len();
        // A person's entries are their groups; those of a few numbers are not.
        assert_eq!(more > 0, matches!(what, ["--entry" | "--entries", _]), "{what:?}: {more}");
    }
}

/// Proofs of groups, which another implementation made.
#[test]
fn groups_are_opened_or_their_entries_marked_and_what_does_not_open_is_refused() {
    let vectors = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/proof/groups.json");
    let vectors: serde_json::Value = serde_json::from_slice(&std::fs::read(vectors).unwrap()).unwrap();
    let key = vectors["vkey"].as_str().unwrap();
    let place = Place::empty();
    let write =
        |vector: &serde_json::Value| place.write("a.proof", vector["file"].as_str().unwrap().as_bytes());
    let mut marked = 0;
    for vector in vectors["proofs"].as_array().unwrap() {
        let (file, opened) = (write(vector), vector["opened"].as_array().unwrap());
        let ran = check(&file, &["--key", key]).exits(exit::DONE);
        let theirs = second_reader("check").args([&file, "--vkey", key]).output().unwrap();
        assert_eq!(ran.out, Ran::from(theirs).exits(0).out, "{}", vector["name"]);

        let (units, withheld) = (&vector["units"], opened.iter().filter(|entry| entry[2] == true).count());
        let entries = opened.len() as u64;
        assert!(ran.err.contains(&disclosed(entries, units.as_u64().unwrap())), "{ran:?}");
        let told = format!("of {withheld} of them the personal fields are withheld");
        assert_eq!(ran.err.contains(&told), withheld > 0, "{ran:?}");
        let lines = parse_lines(&ran.out);
        for (line, entry) in lines.iter().zip(opened) {
            assert_eq!((&line["entry"], line["withheld"] == "not-given"), (&entry[0], entry[2] == true));
        }
        let json = check(&file, &["--key", key, "--json"]).exits(exit::DONE).json();
        assert_eq!((&json["units"], &json["withheld"]), (units, &withheld.into()));
        assert_eq!(json["entries"].as_array().unwrap(), &lines);
        marked += withheld;
    }
    assert!(marked > 5);
    for vector in ["refused", "unopened"].iter().flat_map(|list| vectors[list].as_array().unwrap()) {
        for more in [&["--key", key][..], &["--key", key, "--json"]] {
            let ran = check(&write(vector), more).exits(exit::VIOLATION);
            assert!(ran.err.starts_with("bulla: "), "{}: {ran:?}", vector["name"]);
            match more.contains(&"--json") {
                true => assert!(ran.json()["error"].is_string(), "{}: {ran:?}", vector["name"]),
                false => assert!(ran.out.is_empty(), "{}: {ran:?}", vector["name"]),
            }
        }
    }
}

/// The ciphertexts open under the secrets that are disclosed; only that the groups commit to others is wrong. Decrypted first, they would be printed.
#[test]
fn a_secret_is_compared_with_the_commitment_before_anything_is_decrypted() {
    let vectors = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/proof/groups.json");
    let vectors: serde_json::Value = serde_json::from_slice(&std::fs::read(vectors).unwrap()).unwrap();
    let key = vectors["vkey"].as_str().unwrap();
    let place = Place::empty();
    for (group, word) in [("a group in columns", "user_1/"), ("a group of records", "ann/123456")] {
        let write = |list: &str, whether: &str| {
            let name = format!("{group} under a secret that it {whether} commit to");
            let vector = vectors[list].as_array().unwrap().iter().find(|vector| vector["name"] == *name);
            place.write("a.proof", vector.unwrap()["file"].as_str().unwrap().as_bytes())
        };
        let sound = check(&write("proofs", "does"), &["--key", key]).exits(exit::DONE);
        assert!(sound.out.contains(word), "{sound:?}");
        for more in [&["--key", key][..], &[], &["--json"]] {
            let ran = check(&write("refused", "does not"), more).exits(exit::VIOLATION);
            assert!(ran.err.contains("is not the one that the group commits to"), "{ran:?}");
            assert!(!ran.out.contains(word) && !ran.err.contains(word), "{ran:?}");
            assert_eq!(ran.out.is_empty(), !more.contains(&"--json"), "{ran:?}");
        }
    }
}

#[test]
fn without_a_key_a_proof_only_agrees_with_itself_and_with_another_it_does_not_hold() {
    let place = filled();
    let file = prove(&place, &["--entry", "7"]);
    let ran = check(&file, &[]).exits(exit::DONE);
    assert!(ran.err.contains("self-consistent; without --key nobody can say whose log it is"), "{ran:?}");
    assert_eq!(check(&file, &["--json"]).exits(exit::DONE).json()["anchored"], false);
    let other = Place::new().verifier_key();
    let ran = check(&file, &["--key", &other]).exits(exit::VIOLATION);
    assert_eq!(ran.out, "");
}

#[test]
fn what_is_altered_is_refused_and_says_why() {
    let place = filled();
    let key = place.verifier_key();
    let file = prove(&place, &["--entry", "7"]);
    let proof = std::fs::read(&file).unwrap();
    let line_end = proof.iter().position(|&byte| byte == b'\n').unwrap();
    for at in (0..proof.len()).step_by(37) {
        let mut altered = proof.clone();
        altered[at] ^= 1;
        let path = place.write("altered", &altered);
        // With another first line it is a proof no more than any file.
        let is_proof = altered.starts_with(&proof[..=line_end]);
        let ran = check(&path, &["--key", &key]).exits(if is_proof { exit::VIOLATION } else { exit::USAGE });
        assert!(ran.err.starts_with("bulla: ") && ran.out.is_empty(), "{at}: {ran:?}");
    }
    bulla(["check", "/does/not/exist"]).exits(exit::ENVIRONMENT);
}

#[test]
fn what_is_no_proof_at_all_is_another_file_and_no_violation() {
    let place = filled();
    // The last has no end.
    for file in [&place.write("empty", b""), &place.write("text", b"hello\n"), "/dev/null", "/dev/zero"] {
        let ran = bulla(["check", file, "--json"]).exits(exit::USAGE);
        let said =
            format!("{file} is no proof or certificate, as `bulla prove` and `bulla erase -o` write them: ");
        assert!(ran.json()["error"].as_str().unwrap().starts_with(&said), "{ran:?}");
    }
}

#[test]
fn what_else_a_log_has_is_named_with_the_command_for_it() {
    let place = filled();
    let of_log = |name: &str| place.audit().join(name).into_os_string().into_string().unwrap();
    let (anchor, _) = crate::anchor::anchored(&place);
    for (file, what, command) in [
        (of_log(""), "a log, or a copy of one", "bulla verify DIR"),
        (of_log("segments"), "a directory", "name the file of a proof"),
        (of_log("checkpoint"), "a checkpoint, the tree head", "bulla verify DIR"),
        (of_log("checkpoint.cose"), "a checkpoint in COSE", "bulla verify DIR"),
        (anchor, "an anchor", "bulla anchor DIR --check FILE"),
    ] {
        let ran = bulla(["check", &file]).exits(exit::USAGE);
        assert!(ran.err.contains(&format!("no proof or certificate, but {what}")), "{ran:?}");
        assert!(ran.err.contains(command), "{ran:?}");
    }
}

#[test]
fn nothing_is_proven_that_is_not_there() {
    let place = filled();
    for what in [&["--entry", "5000"][..], &["--subject", "nobody"]] {
        let file = place.path("none");
        let ran = place.run("prove", &[what, &["-o", file.to_str().unwrap()]].concat()).exits(exit::REFUSED);
        assert!(ran.err.contains("no entry"), "{ran:?}");
        assert!(!file.exists());
    }
    place.run("prove", &[]).exits(exit::USAGE);
    place.run("prove", &["--entry", "1", "--consistency", "x"]).exits(exit::USAGE);
    std::fs::remove_file(place.keys("identity.age")).unwrap();
    place.run("prove", &["--entry", "1"]).exits(exit::REFUSED);
    place.damage(0.5);
}

/// A file may open to 256 times its length, or to the longest row.
#[test]
fn no_file_is_written_that_nobody_would_open() {
    let place = Place::new();
    let payload = "a".repeat(1 << 20);
    let line = format!("{{\"operation\":\"read\",\"subject\":\"ada\",\"payload\":\"{payload}\"}}\n");
    place.append(&[], line.repeat(24).as_bytes()).exits(exit::DONE);
    let file = place.path("a.proof");
    let ran = place.run("prove", &["--subject", "ada", "-o", file.to_str().unwrap()]).exits(exit::REFUSED);
    assert!(ran.err.contains("whoever checks one trusts it with 21496088") && !file.exists(), "{}", ran.err);
    let proof = prove(&place, &["--entries", "0..12"]);
    check(&proof, &["--key", &place.verifier_key()]).exits(exit::DONE);
}

#[test]
fn a_log_that_is_damaged_there_proves_nothing() {
    // One block, so that what is damaged has to be read.
    let place = Place::new().keep_together();
    place.append(&[], &lines(0..3000)).exits(exit::DONE);
    place.damage(0.5);
    place.run("prove", &["--subject", "s1"]).exits(exit::VIOLATION);
}

#[test]
fn a_proof_is_read_from_standard_input_as_well() {
    let place = filled();
    let key = place.verifier_key();
    let file = prove(&place, &["--subject", "s7"]);
    let proof = std::fs::read(&file).unwrap();
    let ran = bulla_with(["check", "-", "--key", &key], &proof).exits(exit::DONE);
    let other = check(&file, &["--key", &key]);
    assert_eq!((ran.out, ran.err), (other.out, other.err));
    bulla_with(["check", "-"], &proof[..proof.len() - 1]).exits(exit::VIOLATION);
    let ran = bulla_with(["check", "-"], b"").exits(exit::USAGE);
    assert!(ran.err.contains("standard input"), "{ran:?}");
}

fn keep(place: &Place, name: &str) -> String {
    place.write(name, &std::fs::read(place.audit().join("checkpoint")).unwrap())
}

#[test]
fn that_a_log_only_grew_is_proven_with_public_data_alone() {
    let place = Place::new();
    let key = place.verifier_key();
    let empty = keep(&place, "empty");
    place.append(&[], &lines(0..100)).exits(exit::DONE);
    let earlier = keep(&place, "earlier");
    place.append(&[], &lines(100..200)).exits(exit::DONE);
    let now = keep(&place, "now");
    std::fs::remove_file(place.keys("identity.age")).unwrap();
    for old in [&empty, &earlier, &now] {
        let file = prove(&place, &["--consistency", old]);
        let ran = check(&file, &["--key", &key]).exits(exit::DONE);
        assert!(ran.err.contains("begins with the tree of size"), "{ran:?}");
        let json = check(&file, &["--key", &key, "--json"]).exits(exit::DONE).json();
        assert_eq!(json["tree_size"], place.info("tree_size"));
        let theirs = second_reader("check").args([&file, "--vkey", &key]).output().unwrap();
        Ran::from(theirs).exits(0);
    }
    let other = Place::new();
    place.run("prove", &["--consistency", &keep(&other, "foreign")]).exits(exit::USAGE);
    place.run("prove", &["--consistency", &place.write("no checkpoint", b"hello")]).exits(exit::USAGE);
    place.run("prove", &["--consistency", "/does/not/exist"]).exits(exit::ENVIRONMENT);
}

#[test]
fn a_log_that_was_put_back_does_not_begin_with_what_it_had() {
    let place = Place::new();
    place.append(&[], &lines(0..100)).exits(exit::DONE);
    let copy = place.path("copy");
    let copied =
        Command::new("cp").args(["-r".as_ref(), place.audit().as_os_str(), copy.as_os_str()]).status();
    assert!(copied.unwrap().success());
    place.append(&[], &lines(100..200)).exits(exit::DONE);
    let later = keep(&place, "later");
    let ran = bulla(arguments!["prove", copy, "--consistency", later]).exits(exit::VIOLATION);
    assert!(ran.err.contains("the log was cut"), "{ran:?}");
    assert!(Path::new(&later).exists());
}

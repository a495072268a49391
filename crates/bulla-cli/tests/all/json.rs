//! `--json`: each command that has something to tell a program tells it so, and why it failed.

use crate::support::{Place, arguments, bulla, exit, lines};
use serde_json::{Value, json};

/// The names of all commands but those that have nothing to say in JSON, as the command lists them itself.
fn commands() -> Vec<String> {
    let help = bulla(["--help"]).exits(exit::DONE).out;
    let listed =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // The explanations of some go on in lines that are further in.
    let named = listed.filter(|line| !line.starts_with("   "));
    let names = named.map(|line| line.split_whitespace().next().unwrap().to_owned());
    names.filter(|name| !["completions", "man", "help"].contains(&name.as_str())).collect()
}

#[test]
fn every_command_that_fails_says_why_in_an_object() {
    let place = Place::empty();
    let nowhere = place.path("nowhere");
    let file = place.path("file");
    let common = ["-o", file.to_str().unwrap()];
    let key = place.write("erasure.key", b"no key");
    let names = commands();
    assert!(names.len() > 15, "{names:?}");
    for name in names {
        // A directory that is not there is what `init` wants.
        let directory = if name == "init" { place.path("") } else { nowhere.clone() };
        let more: &[&str] = match name.as_str() {
            "keys" | "hold" => &["list"],
            "pseudonym" => &["actor", "alice"],
            "prove" => &[&common[..], &["--entry", "0"]].concat(),
            "grant" => &[&common[..], &["--subject", "s0", "--recipient", "age1"]].concat(),
            "export" => &common,
            "erase" => &["--subject", "s0"],
            "order" => &[
                &common[..],
                &["--log", "0123456789abcdef0123456789abcdef", "--subject", "s0", "--authority", &key],
            ]
            .concat(),
            "generate" => &["web"],
            _ => &[],
        };
        let mut words = arguments![&name];
        if !["order", "generate"].contains(&name.as_str()) {
            words.push(directory.into());
        }
        words.extend(more.iter().map(std::ffi::OsString::from));
        let plain = bulla(&words);
        assert!(plain.code != 0 && plain.out.is_empty(), "{name}: {plain:?}");
        words.push("--json".into());
        let ran = bulla(&words).exits(plain.code);
        let error = ran.json()["error"].as_str().map(str::to_owned);
        let error = error.unwrap_or_else(|| panic!("{name}: {ran:?}"));
        assert!(ran.err.contains(error.lines().next().unwrap()), "{name}: {ran:?}");
        // So too where the command line is none.
        words.push("--no-such-option".into());
        let ran = bulla(&words).exits(exit::USAGE);
        assert!(ran.json()["error"].is_string(), "{name}: {ran:?}");
    }
}

/// A log of forty entries of ten data subjects, four each, in one block.
fn filled() -> Place {
    let place = Place::new().keep_together();
    place.append(&[], &lines(0..40)).exits(exit::DONE);
    place
}

fn nothing_withheld() -> Value {
    json!({ "erased": 0, "key-lost": 0, "not-given": 0, "cannot-tell": 0 })
}

#[test]
fn a_proof_is_told_of_with_what_it_discloses_besides() {
    let place = filled();
    let file = place.path("a.proof").into_os_string().into_string().unwrap();
    let prove = |more: &[&str]| place.run("prove", &[more, &["-o", &file, "--json"]].concat());
    let ran = prove(&["--entry", "17"]).exits(exit::USAGE);
    assert!(ran.json()["error"].as_str().unwrap().contains("would disclose 3 entries"), "{ran:?}");
    let ran = prove(&["--entry", "17", "--with-others"]).exits(exit::DONE);
    let (tree_size, root) = (place.info("tree_size"), place.info("root"));
    let expected = json!({
        "proves": "entries", "output": file, "units": 1, "entries": 4, "others": [7, 27, 37], "without_personal": 0,
        "withheld": nothing_withheld(), "undecided": 0, "blocks_read": 1, "blocks": 1, "tree_size": tree_size,
        "root": root, "unsigned": false, "unwitnessed": null,
    });
    assert_eq!(ran.json(), expected);
    place.run("erase", &["--subject", "s7"]).exits(exit::DONE);
    let told = prove(&["--entry", "17", "--with-others"]).exits(exit::DONE).json();
    assert_eq!((&told["without_personal"], &told["withheld"]["erased"]), (&4.into(), &1.into()));
    let frame = place.info("tree_size").as_u64().unwrap() - 1;
    let told = prove(&["--event", &frame.to_string()]).exits(exit::DONE).json();
    assert_eq!(told, json!({ "proves": "event", "output": file, "frame": frame, "unwitnessed": null }));
    let old = place.write("old", &std::fs::read(place.audit().join("checkpoint")).unwrap());
    let told = prove(&["--consistency", &old]).exits(exit::DONE).json();
    assert_eq!(told, json!({ "proves": "consistency", "output": file, "unwitnessed": null }));
    // The proof itself would go there.
    place.run("prove", &["--entry", "17", "--json"]).exits(exit::USAGE);
    let ran = place.run("prove", &["--entry", "17", "--json", "-o", "-"]).exits(exit::USAGE);
    assert!(ran.json()["error"].as_str().unwrap().contains("-o FILE"), "{ran:?}");
}

#[test]
fn a_grant_and_an_order_are_told_of() {
    let place = filled();
    let (_, recipient) = bulla::keys::identities::generate();
    let file = place.path("a.grant").into_os_string().into_string().unwrap();
    let grant = |output: &str| {
        place.run("grant", &["--recipient", &recipient, "--entry", "17", "-o", output, "--json"])
    };
    let expected = json!({
        "output": file, "groups": 1, "entries": 4, "asked": 1, "withheld": nothing_withheld(), "undecided": 0,
        "blocks_read": 1, "blocks": 1, "tree_size": place.info("tree_size"), "root": place.info("root"),
        "unsigned": false,
    });
    assert_eq!(grant(&file).exits(exit::DONE).json(), expected);
    grant("-").exits(exit::USAGE);

    let (order, key) = (place.path("order.json"), place.keys("erasure.key"));
    let id = place.info("id").as_str().unwrap().to_owned();
    let subjects = ["--subject", "s1", "--subject", "s2", "--json"];
    let mut words = arguments!["order", "--log", id, "--authority", key, "-o", &order];
    words.extend(subjects.map(std::ffi::OsString::from));
    let told = json!({ "kind": "erasure", "output": order, "subjects": 2 });
    assert_eq!(bulla(words).exits(exit::DONE).json(), told);
}

#[test]
fn workloads_are_described_to_a_program() {
    let told = bulla(["generate", "--describe", "--json"]).exits(exit::DONE).json();
    let workloads = told["workloads"].as_array().unwrap();
    assert_eq!((workloads.len(), &workloads[0]["workload"]), (9, &"gdpr".into()));
    for workload in workloads {
        assert!(workload["entropy"].as_f64().unwrap() < workload["text"].as_f64().unwrap(), "{workload}");
    }
}

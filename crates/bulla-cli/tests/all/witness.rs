//! `bulla witness`, and logs that ask one.

use crate::support::{Place, arguments, bulla, command, copy, eventually, exit, finish, not_tested, signal};
use rustix::process::Signal;
use serde_json::Value;
use std::ffi::OsString;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command};

const UNIT: &str = include_str!("../../../../packaging/bulla-witness.service");

/// A witness in a place of its own.
pub(crate) struct Cosigner {
    place: Place,
    name: String,
    pub(crate) address: SocketAddr,
    pub(crate) vkey: String,
}

impl Cosigner {
    pub(crate) fn new(algorithm: &str) -> Self {
        Cosigner::named(algorithm, "w.example/1")
    }

    pub(crate) fn named(algorithm: &str, name: &str) -> Self {
        let place = Place::empty();
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut witness = Cosigner { place, name: name.to_owned(), address, vkey: String::new() };
        witness.configure(algorithm, "");
        let began = bulla(arguments!["witness", "--new", witness.config(), "--json"]).exits(exit::DONE);
        witness.vkey = began.json()["vkey"].as_str().unwrap().to_owned();
        witness
    }

    fn config(&self) -> std::path::PathBuf {
        self.place.path("witness.toml")
    }

    pub(crate) fn configure(&self, algorithm: &str, log: &str) {
        let [keys, state] = ["keys", "state"].map(|name| self.place.path(name));
        let logs = if log.is_empty() { String::new() } else { format!("{log:?}") };
        let text = format!(
            "name = {:?}\nalgorithm = {algorithm:?}\nkeys = {keys:?}\nstate = {state:?}\nlisten = \"{}\"\nlogs = [{logs}]\n",
            self.name, self.address
        );
        self.place.write("witness.toml", text.as_bytes());
    }

    pub(crate) fn start(&self) -> Child {
        let child = command(arguments!["witness", self.config(), "--json"]).spawn().unwrap();
        eventually("it listens", || TcpStream::connect(self.address).is_ok());
        child
    }

    /// The policy of a log that asks it.
    pub(crate) fn policy(&self, place: &Place) -> String {
        place.write(
            "policy.txt",
            format!("witness w {} http://{}\nquorum w\n", self.vkey, self.address).as_bytes(),
        )
    }
}

/// Has all printed in JSON that is told of witnesses.
pub(crate) fn look(mut see: impl FnMut(&[OsString], &str)) {
    let cosigner = Cosigner::new("ed25519");
    let place = Place::empty();
    place.run("init", &["--witness-policy", &cosigner.policy(&place)]).exits(exit::DONE);
    cosigner.configure("ed25519", &place.verifier_key());
    let words = arguments!["witness", cosigner.config(), "--json"];
    let child = cosigner.start();
    let mut run = |command: &str, more: &[&str]| {
        let words = place.arguments(command, &[&["--json"], more].concat());
        see(&words, &bulla(&words).exits(exit::DONE).out);
    };
    run("append", &["--stats", "/dev/null"]);
    run("info", &[]);
    signal(&child, Signal::TERM);
    see(&words, &finish(child).exits(exit::DONE).out);
    // What nobody has cosigned is proven all the same.
    place.append(&[], b"{\"operation\":\"read\"}\n").exits(exit::DONE);
    let out = place.path("out").into_os_string().into_string().unwrap();
    let words = place.arguments("prove", &["--json", "--entry", "0", "-o", &out]);
    see(&words, &bulla(&words).exits(exit::DONE).out);
}

pub(crate) fn info(log: &Path) -> Value {
    bulla(arguments!["info", log, "--json"]).exits(exit::DONE).json()
}

fn frames(place: &Place) -> Value {
    let info = info(&place.audit());
    assert_eq!(info["witnesses"].as_array().unwrap().len(), 1);
    info["witnesses"][0]["frames"].clone()
}

#[test]
fn a_witness_that_is_killed_goes_on_and_cosigns_no_second_history() {
    let cosigner = Cosigner::new("ml-dsa-44");
    let place = Place::empty();
    let policy = cosigner.policy(&place);
    place.run("init", &["--witness-policy", &policy]).exits(exit::DONE);
    cosigner.configure("ml-dsa-44", &place.verifier_key());
    for _ in 0..3 {
        let child = cosigner.start();
        place.append(&[], b"{\"operation\":\"x\"}\n").exits(exit::DONE);
        assert_eq!(
            frames(&place),
            info(&place.audit())["tree_size"],
            "closing waits for a witness that answers"
        );
        signal(&child, Signal::KILL);
        child.wait_with_output().unwrap();
    }
    let (log, keys) = (place.audit(), place.path("audit.keys"));
    copy(&log, &place.path("copy"));
    copy(&keys, &place.path("copy.keys"));
    let child = cosigner.start();
    place.append(&[], b"{\"operation\":\"x\"}\n").exits(exit::DONE);
    let seen = info(&place.audit())["tree_size"].as_u64().unwrap();
    // The copy goes on by itself: until it is longer it was put back, and then it is another history.
    for why in ["was put back to an earlier time", "two histories"] {
        let told = loop {
            let ran = bulla(arguments!["append", place.path("copy"), "/dev/null"]).exits(exit::DONE);
            match ran.err.contains(why) {
                true => break ran.err,
                false => {
                    assert!(info(&place.path("copy"))["tree_size"].as_u64().unwrap() <= seen, "{}", ran.err)
                }
            }
        };
        assert!(told.contains("the witness `w`"), "{told}");
        assert!(told.contains("refuses this log"), "at its end, too: {told}");
        // And after the writer has ended.
        let refusal = &info(&place.path("copy"))["witnesses"][0]["refusal"];
        assert!(refusal["why"].as_str().unwrap().contains("put back"), "since when, and why then: {refusal}");
        let text = bulla(arguments!["info", place.path("copy")]).exits(exit::DONE).out;
        assert!(text.contains("REFUSES the log since"), "{text}");
        while why.contains("put back") && info(&place.path("copy"))["tree_size"].as_u64().unwrap() <= seen {
            bulla(arguments!["append", place.path("copy"), "/dev/null"]).exits(exit::DONE);
        }
    }
    signal(&child, Signal::TERM);
    let ended = finish(child).exits(exit::DONE);
    assert_eq!(ended.json()["logs"][0]["frames"], seen);
    assert!(ended.err.contains("a checkpoint that"), "{}", ended.err);
}

/// Beside a writer the newest checkpoint is cosigned by nobody yet: a proof is made under the newest one that is.
#[test]
fn a_proof_is_made_under_the_newest_checkpoint_that_is_witnessed() {
    let cosigner = Cosigner::new("ml-dsa-44");
    let place = Place::empty();
    let policy = cosigner.policy(&place);
    place.run("init", &["--witness-policy", &policy]).exits(exit::DONE);
    cosigner.configure("ml-dsa-44", &place.verifier_key());
    let key = place.verifier_key();
    let file = place.path("a.proof").into_os_string().into_string().unwrap();
    let entry = |number: &str, more: &[&str]| {
        place.run("prove", &[&["--entry", number, "--json", "-o", &file][..], more].concat())
    };
    let by_policy = ["--policy", &policy, "--key", &key];
    let check = |exits: i32| bulla([&["check", &file][..], &by_policy].concat()).exits(exits);

    // Before anybody has cosigned anything.
    place.append(&[], b"{\"operation\":\"x\"}\n").exits(exit::DONE);
    let refused = entry("0", &by_policy).exits(exit::REFUSED);
    assert!(refused.err.contains("the policy's quorum is not met of any checkpoint"), "{}", refused.err);
    let told = entry("0", &[]).exits(exit::DONE);
    assert!(told.err.contains("not witnessed yet") && told.err.contains("none is so far"), "{}", told.err);

    let child = cosigner.start();
    place.append(&[], b"{\"operation\":\"x\"}\n").exits(exit::DONE);
    signal(&child, Signal::TERM);
    finish(child).exits(exit::DONE);
    let seen = frames(&place);
    let old = place.path("old").into_os_string().into_string().unwrap();
    place.append(&[], b"{\"operation\":\"x\"}\n").exits(exit::DONE);
    std::fs::copy(place.audit().join("checkpoint"), &old).unwrap();
    place.append(&[], b"{\"operation\":\"x\"}\n").exits(exit::DONE);
    let signed = info(&place.audit())["tree_size"].clone();
    assert_ne!(seen, signed);
    for more in [&by_policy[..], &[]] {
        let ran = entry("1", more).exits(exit::DONE);
        assert_eq!((&ran.json()["tree_size"], &ran.json()["unwitnessed"]), (&seen, &Value::Null), "{more:?}");
        check(exit::DONE);
    }
    // What they have not seen is refused by how far they are, or told.
    let refused = entry("3", &by_policy).exits(exit::REFUSED);
    let far = format!("the policy's witnesses have cosigned {seen} of the {signed} that are signed");
    assert!(refused.err.contains(&far), "{}", refused.err);
    assert!(
        refused.err.contains("try again once they have more, or prove without the policy"),
        "{}",
        refused.err
    );
    let ran = entry("3", &[]).exits(exit::DONE);
    assert_eq!(ran.json()["tree_size"], signed);
    let told = ran.json()["unwitnessed"].as_str().unwrap().to_owned();
    assert!(ran.err.contains(&told) && told.contains(&format!("covers {seen} frames")), "{}", ran.err);
    check(exit::VIOLATION);
    bulla(["check", &file, "--key", &key]).exits(exit::DONE);

    let grown = ["--consistency", &old, "-o", &file];
    let refused = place.run("prove", &[&grown[..], &by_policy].concat()).exits(exit::REFUSED);
    assert!(refused.err.contains(&far), "{}", refused.err);
    let told = place.run("prove", &grown).exits(exit::DONE);
    assert!(told.err.contains("not witnessed yet"), "{}", told.err);
    let refused = entry("1", &[&by_policy[..], &["--format", "cose"]].concat()).exits(exit::USAGE);
    assert!(refused.err.contains("no witness cosigns a receipt"), "{}", refused.err);
    entry("1", &["--key", &key, "--format", "cose"]).exits(exit::DONE);
    assert!(check(exit::USAGE).err.contains("the log's Ed25519 key alone signs"));

    // What one witness has cosigned counts where the policy asks for no more, whatever became of the rest.
    std::fs::remove_file(place.audit().join("checkpoint.witnessed")).unwrap();
    assert_eq!(entry("1", &by_policy).exits(exit::DONE).json()["tree_size"], seen);
    // And nobody is shown that they have seen another log.
    let kept = std::fs::read_dir(place.audit().join("cosigned")).unwrap().next().unwrap().unwrap().path();
    let note = std::fs::read_to_string(&kept).unwrap();
    std::fs::write(&kept, note.replace("\u{2014} w.example", "\u{2014} v.example")).unwrap();
    entry("1", &by_policy).exits(exit::REFUSED);
}

/// Whatever takes the key of a log takes either of its keys, or says why not.
#[test]
fn a_key_of_ml_dsa_is_taken_wherever_the_other_one_is() {
    let (place, other) = (Place::empty(), Place::empty());
    let key = |place: &Place| {
        let made =
            place.run("init", &["--json", "--ml-dsa", "--origin", "example.com/log"]).exits(exit::DONE);
        made.json()["vkey_ml_dsa"].as_str().unwrap().to_owned()
    };
    let (own, stranger) = (key(&place), key(&other));
    place.append(&[], b"{\"operation\":\"x\",\"subject\":\"ada\"}\n").exits(exit::DONE);
    let file = place.path("out").into_os_string().into_string().unwrap();
    let (_, recipient) = bulla::keys::identities::generate();
    let commands: [(&str, &[&str]); 6] = [
        ("export", &[]),
        ("export", &["--entry", "0"]),
        ("events", &[]),
        ("prove", &["--entry", "0", "-o", &file]),
        ("prove", &["--entry", "0", "--format", "cose", "-o", &file]),
        ("grant", &["--entry", "0", "--recipient", &recipient, "-o", &file]),
    ];
    let named = place.write("own.vkey", format!("# the log's\n{own}\n").as_bytes());
    for (command, more) in commands {
        for key in [&own, &named] {
            place.run(command, &[more, &["--key", key]].concat()).exits(exit::DONE);
        }
        let refused = place.run(command, &[more, &["--key", &stranger]].concat()).exits(exit::VIOLATION);
        assert!(refused.err.contains("key-mismatch"), "{command}: {}", refused.err);
        let none = place.run(command, &[more, &["--key", "example.com/log+00000000+AAAA"]].concat());
        assert!(none.exits(exit::USAGE).err.contains("--key"), "{command}");
    }
    place.run("prove", &["--entry", "0", "-o", &file]).exits(exit::DONE);
    bulla(["check", &file, "--key", &own]).exits(exit::DONE);
    bulla(["check", &file, "--key", &stranger]).exits(exit::VIOLATION);
    let copy = place.path("copy").into_os_string().into_string().unwrap();
    for (command, more) in
        [("mirror", &[&copy[..]][..]), ("anchor", &["--check", &file, "--rekor-key", &place.verifier_key()])]
    {
        let refused = place.run(command, &[more, &["--key", &own]].concat()).exits(exit::USAGE);
        assert!(refused.err.contains("name the log's Ed25519 key"), "{command}: {}", refused.err);
    }
}

#[test]
fn a_witness_that_does_not_answer_is_told_when_the_log_is_closed() {
    let place = Place::empty();
    let cosigner = Cosigner::new("ed25519");
    // It takes connections, and says nothing.
    let stalled = TcpListener::bind(cosigner.address).unwrap();
    place.run("init", &["--witness-policy", &cosigner.policy(&place)]).exits(exit::DONE);
    let ran = place.append(&[], b"{\"operation\":\"x\"}\n").exits(exit::DONE);
    assert!(
        ran.err.contains("the witness `w`") && ran.err.contains("has not answered within 5 s"),
        "{}",
        ran.err
    );
    assert!(!ran.err.contains("refuses this log"), "{}", ran.err);
    drop(stalled);
}

/// What is merely not witnessed, or not as new as asked, is not said to be something else than was written; and a key that is named beside a
/// policy takes nothing from that.
#[test]
fn what_a_policy_lacks_is_said_as_that() {
    let (place, other) = (Place::new(), Place::new());
    place.append(&[], b"{\"operation\":\"x\"}\n").exits(exit::DONE);
    let (key, of_other) = (place.verifier_key(), other.verifier_key());
    let cosigner = Cosigner::new("ed25519");
    let file = |name: &str, text: String| place.write(name, text.as_bytes());
    let policy = file("policy", format!("log {key}\nwitness w {}\nquorum w\n", cosigner.vkey));
    let verify = |more: &[&str]| place.run("verify", &[&["--public"], more].concat());
    let ran = verify(&["--policy", &policy]).exits(exit::VIOLATION);
    assert!(ran.out.starts_with("result     not witnessed as asked: 1 violation\n"), "{}", ran.out);
    let ran = verify(&["--policy", &policy, "--key", &of_other]).exits(exit::VIOLATION);
    assert!(ran.out.contains(&format!("not signed by the key that was given, {of_other}")), "{}", ran.out);
    let none = file("none", format!("log {of_other}\nquorum none\n"));
    verify(&["--policy", &none, "--key", &key]).exits(exit::VIOLATION);
    let proof = place.path("grown.proof");
    let checkpoint = place.audit().join("checkpoint");
    place
        .run("prove", &["--consistency", checkpoint.to_str().unwrap(), "-o", proof.to_str().unwrap()])
        .exits(exit::DONE);
    bulla(arguments!["check", &proof, "--key", &key]).exits(exit::DONE);
    bulla(arguments!["check", &proof, "--key", &key, "--policy", &none]).exits(exit::VIOLATION);
    let both = file("both", format!("log {of_other}\nlog {key}\nquorum none\n"));
    bulla(arguments!["check", &proof, "--key", &key, "--policy", &both]).exits(exit::DONE);
}

/// Witnesses that a policy knows and does not ask for have cosigned nothing by that.
#[test]
fn what_no_policy_asks_to_be_witnessed_is_not_said_to_be() {
    let place = Place::new();
    place.append(&[], b"{\"operation\":\"x\"}\n").exits(exit::DONE);
    let (key, cosigner) = (place.verifier_key(), Cosigner::new("ed25519"));
    let policy = format!("log {key}\nwitness w {}\nquorum none\n", cosigner.vkey);
    let policy = place.write("policy", policy.as_bytes());
    let proof = place.path("entry.proof").into_os_string().into_string().unwrap();
    let by_policy = ["--entry", "0", "--policy", &policy, "-o", &proof];
    let proven = place.run("prove", &by_policy).exits(exit::DONE);
    let checked = bulla(["check", &proof, "--policy", &policy]).exits(exit::DONE);
    let verified = place.run("verify", &["--policy", &policy]).exits(exit::DONE);
    let followed = place.run("tail", &["--entries", "0..0", "--policy", &policy]).exits(exit::DONE);
    assert!(checked.err.contains(&format!("ok: signed by {key}\n")), "{}", checked.err);
    for told in [&proven.err, &checked.err, &followed.err] {
        assert!(!told.contains("witness"), "{told}");
    }
    let row = verified.out.lines().find(|line| line.starts_with("witnessed")).unwrap();
    assert_eq!(row, "witnessed  not asked for; w: not");
    let json = place.run("verify", &["--json", "--policy", &policy]).exits(exit::DONE).json();
    assert_eq!(json["witnessed"]["frames"], Value::Null);
}

/// As the text of the same proof is, but for what no receipt has.
#[test]
fn a_receipt_is_checked_by_a_policy_that_has_its_key_among_others() {
    let (place, other) = (Place::new(), Place::new());
    place.append(&[], b"{\"operation\":\"x\"}\n").exits(exit::DONE);
    let (key, of_other) = (place.verifier_key(), other.verifier_key());
    let proof = place.path("entry.cose").into_os_string().into_string().unwrap();
    place.run("prove", &["--entry", "0", "--format", "cose", "-o", &proof]).exits(exit::DONE);
    let check = |text: String| bulla(["check", &proof, "--policy", &place.write("policy", text.as_bytes())]);
    let told = check(format!("log {key}\nlog {of_other}\nquorum none\n")).exits(exit::DONE).err;
    assert!(told.contains("a receipt in COSE") && told.contains("ok: signed by one of the 2 logs"), "{told}");
    let told = check(format!("log {of_other}\nquorum none\n")).exits(exit::VIOLATION).err;
    assert!(told.contains("the policy names no log"), "{told}");
    let cosigner = Cosigner::new("ed25519");
    let asked = check(format!("log {key}\nwitness w {}\nquorum w\n", cosigner.vkey)).exits(exit::USAGE);
    assert!(asked.err.contains("no witness cosigns"), "{}", asked.err);
}

#[test]
fn a_witness_whose_state_is_lost_or_older_does_not_start() {
    let cosigner = Cosigner::new("ed25519");
    let place = Place::empty();
    place.run("init", &["--witness-policy", &cosigner.policy(&place)]).exits(exit::DONE);
    cosigner.configure("ed25519", &place.verifier_key());
    let state = cosigner.place.path("state");
    let run = |times: usize| {
        let child = cosigner.start();
        (0..times).for_each(|_| drop(place.append(&[], b"{\"operation\":\"x\"}\n").exits(exit::DONE)));
        signal(&child, Signal::TERM);
        finish(child).exits(exit::DONE);
    };
    run(1);
    copy(&state, &cosigner.place.path("older"));
    run(1);
    std::fs::rename(&state, cosigner.place.path("newest")).unwrap();
    let lost = bulla(arguments!["witness", cosigner.config()]).exits(exit::REFUSED);
    assert!(lost.err.contains("is not in") && lost.err.contains("put back the newest"), "{}", lost.err);
    std::fs::rename(cosigner.place.path("older"), &state).unwrap();
    let older = bulla(arguments!["witness", cosigner.config()]).exits(exit::REFUSED);
    let size = info(&place.audit())["tree_size"].as_u64().unwrap();
    assert!(older.err.contains(&format!("the tree of {size} leaves")), "{}", older.err);
    bulla(arguments!["witness", "--new", cosigner.config()]).exits(exit::REFUSED);
    std::fs::remove_dir_all(&state).unwrap();
    std::fs::rename(cosigner.place.path("newest"), &state).unwrap();
    run(1);
}

#[test]
fn witnesses_are_named_changed_and_taken_away_by_config() {
    let mut cosigner = Cosigner::new("ed25519");
    // A port of root's, so that no other test's server gets it.
    cosigner.address.set_port(1);
    let place = Place::new();
    assert!(info(&place.audit()).get("witnesses").is_none());
    let policy = cosigner.policy(&place);
    place.run("config", &["set", "log.witness_policy", &policy]).exits(exit::DONE);
    let text = std::fs::read_to_string(&policy).unwrap();
    assert_eq!(
        place.run("config", &["get", "log.witness_policy"]).exits(exit::DONE).out,
        format!("{text}\n")
    );
    let again = place.run("config", &["set", "log.witness_policy", &policy]).exits(exit::DONE);
    assert!(again.out.contains("nothing to change"), "{}", again.out);
    // Nobody listens there: that is told, and stops nothing.
    let ran = place.append(&[], b"{\"operation\":\"x\"}\n").exits(exit::DONE);
    assert!(ran.err.contains("the witness `w` (http://127.0.0.1"), "{}", ran.err);
    assert!(place.run("info", &[]).exits(exit::DONE).out.contains("w  has cosigned nothing yet"));
    place.run("verify", &[]).exits(exit::DONE);
    place.run("config", &["unset", "log.witness_policy"]).exits(exit::DONE);
    assert!(info(&place.audit()).get("witnesses").is_none());
    let quiet = place.append(&[], b"{\"operation\":\"x\"}\n").exits(exit::DONE);
    assert!(!quiet.err.contains("witness"), "{}", quiet.err);
    let none = place.write("none.txt", b"quorum none\n");
    let refused = place.run("config", &["set", "log.witness_policy", &none]).exits(exit::USAGE);
    assert!(refused.err.contains("has a URL"), "{}", refused.err);
}

#[test]
fn a_configuration_that_is_none_is_refused_with_what_is_wrong() {
    let place = Place::empty();
    let example = bulla(["witness", "--example"]).exits(exit::DONE).out;
    let (keys, state) = (place.path("keys"), place.path("state"));
    let right = example
        .replace("/var/lib/bulla-witness/keys", keys.to_str().unwrap())
        .replace("/var/lib/bulla-witness/state", state.to_str().unwrap());
    let file = place.path("witness.toml");
    for (text, why) in [
        (right.replace("name =", "nome ="), "nome"),
        (right.replace("ed25519", "rsa"), "rsa"),
        (right.replace("127.0.0.1:6962", "nowhere"), "invalid socket address"),
        (right.replace("/keys\"", "/state\""), "one directory"),
        (right.replace("/keys\"", "/state/keys\""), "one is in the other"),
    ] {
        std::fs::write(&file, &text).unwrap();
        let ran = bulla(arguments!["witness", "--new", &file]).exits(exit::USAGE);
        assert!(ran.err.contains(why), "{why}: {}", ran.err);
    }
    std::fs::write(&file, &right).unwrap();
    let began = bulla(arguments!["witness", "--new", &file, "--json"]).exits(exit::DONE);
    let ran = bulla(arguments!["witness", &file]).exits(exit::USAGE);
    let named = file.to_str().unwrap();
    assert!(ran.err.contains(named) && ran.err.contains("`logs` is empty"), "{}", ran.err);
    assert!(
        ran.err.contains(began.json()["vkey"].as_str().unwrap()),
        "its own key is shown again: {}",
        ran.err
    );
    std::fs::write(&file, right.replace("logs = []", "logs = [\"x\"]")).unwrap();
    let ran = bulla(arguments!["witness", &file]).exits(exit::USAGE);
    assert!(ran.err.contains("`logs`: \"x\""), "{}", ran.err);
    let log = Place::new().verifier_key();
    let of_log = right.replace("logs = []", &format!("logs = [{log:?}]"));
    for (changed, why) in [
        (of_log.replace("\"ed25519\"", "\"ml-dsa-44\""), "`algorithm` is \"ml-dsa-44\""),
        (of_log.replace("com/w1", "com/w2"), "`name` is"),
    ] {
        std::fs::write(&file, changed).unwrap();
        let ran = bulla(arguments!["witness", &file]).exits(exit::USAGE);
        assert!(ran.err.contains(why), "{}", ran.err);
    }
    // What is wrong with the TOML is one line, which says where.
    std::fs::write(&file, right.replace("listen =", "listens =")).unwrap();
    let ran = bulla(arguments!["witness", &file]).exits(exit::USAGE);
    let line = 1 + right.lines().position(|line| line.starts_with("listen =")).unwrap();
    assert!(ran.err.contains(&format!("line {line}: unknown field `listens`")), "{}", ran.err);
    assert!(!ran.err.contains("\\n"), "{}", ran.err);
}

/// With all of it uncommented, the example is a configuration that has every key.
#[test]
fn the_example_is_one_with_tls_too() {
    let place = Place::empty();
    let whole: String = bulla(["witness", "--example"]).exits(exit::DONE).out;
    let uncommented = |line: &str| match line.strip_prefix("# ") {
        Some(rest) if rest.starts_with('[') || rest.contains(" = \"/") => rest.to_owned(),
        _ => line.to_owned(),
    };
    let text = whole.lines().map(uncommented).collect::<Vec<_>>().join("\n");
    assert!(text.contains("\n[tls]\ncertificate"), "{text}");
    let (keys, state) = (place.path("keys"), place.path("state"));
    let text = text
        .replace("/var/lib/bulla-witness/keys", keys.to_str().unwrap())
        .replace("/var/lib/bulla-witness/state", state.to_str().unwrap());
    let file = place.write("witness.toml", text.as_bytes());
    bulla(["witness", "--new", &file]).exits(exit::DONE);
    let log = Place::new().verifier_key();
    place.write("witness.toml", text.replace("logs = []", &format!("logs = [{log:?}]")).as_bytes());
    // It comes as far as the certificate, which is not there.
    let ran = bulla(["witness", &file]).exits(exit::ENVIRONMENT);
    assert!(ran.err.contains("/etc/bulla/witness.crt"), "{}", ran.err);
}

#[test]
fn logs_are_read_anew_at_sighup() {
    let cosigner = Cosigner::new("ed25519");
    let (first, second) = (Place::empty(), Place::empty());
    for place in [&first, &second] {
        place.run("init", &["--witness-policy", &cosigner.policy(place)]).exits(exit::DONE);
    }
    cosigner.configure("ed25519", &first.verifier_key());
    let child = cosigner.start();
    let append = |place: &Place| place.append(&[], b"{\"operation\":\"x\"}\n").exits(exit::DONE);
    append(&first);
    assert!(append(&second).err.contains("404"));
    let one = std::fs::read_to_string(cosigner.config()).unwrap();
    let both = one.replace("logs = [", &format!("logs = [{:?}, ", second.verifier_key()));
    std::fs::write(cosigner.config(), &both).unwrap();
    signal(&child, Signal::HUP);
    eventually("the second log is cosigned", || {
        append(&second);
        !frames(&second).is_null()
    });
    // What is wrong leaves the logs as they are.
    std::fs::write(cosigner.config(), "logs = [").unwrap();
    signal(&child, Signal::HUP);
    append(&first);
    assert_eq!(frames(&first), info(&first.audit())["tree_size"]);
    signal(&child, Signal::TERM);
    let ended = finish(child).exits(exit::DONE);
    assert!(ended.err.contains("cosigns for 2 logs"), "{}", ended.err);
}

#[test]
fn the_service_is_one_that_systemd_knows_and_may_do_little() {
    let place = Place::empty();
    let file = place.path("bulla-witness.service");
    std::fs::write(&file, UNIT.replace("/usr/bin/bulla", env!("CARGO_BIN_EXE_bulla"))).unwrap();
    let ask = |words: &[&str]| Command::new("systemd-analyze").args(words).arg(&file).output();
    let Ok(verified) = ask(&["verify", "--man=no"]) else {
        return not_tested("what systemd says of the service", "systemd-analyze is not here");
    };
    let told = String::from_utf8_lossy(&verified.stderr);
    assert!(verified.status.success() && !told.contains("bulla-witness.service"), "{told}");
}

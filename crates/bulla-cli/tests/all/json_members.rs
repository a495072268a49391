//! What commands print in JSON is what `docs/json.md` says: each object that any test has printed is held against its tables, and one
//! test has every member printed that they have.

use crate::support::{Place, Ran, bulla, bulla_with, exit};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::sync::LazyLock;

static DOCUMENT: LazyLock<Document> =
    LazyLock::new(|| Document::parse(include_str!("../../../../docs/json.md")));

/// The tables, by the anchors of their headings.
struct Document(BTreeMap<String, Vec<Member>>);

/// A row.
struct Member {
    name: String,
    types: Vec<Type>,
    /// Whether it is in every object.
    always: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum Type {
    Null,
    String,
    Time,
    Number,
    Fraction,
    Boolean,
    /// One that is not looked into.
    Object,
    /// One that has a table of its own.
    Table(String),
    List(Box<Type>),
    /// An object of which the names are any.
    Names(Box<Type>),
}

impl Document {
    fn parse(text: &str) -> Self {
        let mut tables = BTreeMap::<String, Vec<Member>>::new();
        let mut heading = String::new();
        for line in text.lines() {
            if let Some(title) = line.strip_prefix('#') {
                heading = anchor(title.trim_start_matches('#').trim());
                assert!(!tables.contains_key(&heading), "{heading} is there twice");
            } else if let Some(row) = line.strip_prefix("| `") {
                tables.entry(heading.clone()).or_default().push(Member::parse(row));
            }
        }
        Document(tables)
    }

    fn table(&self, anchor: &str) -> &[Member] {
        self.0.get(anchor).unwrap_or_else(|| panic!("docs/json.md has no table `{anchor}`"))
    }

    /// Holds an object against the table; gives each member that it has, with the anchor of its table, to `seen`.
    fn check(
        &self,
        anchor: &str,
        object: &Map<String, Value>,
        seen: &mut dyn FnMut(&str, &str),
    ) -> Result<(), String> {
        let table = self.table(anchor);
        for missing in table.iter().filter(|member| member.always && !member.is_any()) {
            if !object.contains_key(&missing.name) {
                return Err(format!("{anchor}: `{}` is always there, says the document", missing.name));
            }
        }
        for (name, value) in object {
            let is_it = |member: &&Member| member.name == *name || member.is_any();
            let member = table.iter().find(is_it).ok_or(format!("{anchor}: `{name}` is in no table"))?;
            seen(anchor, &member.name);
            let mut tried = member.types.iter().map(|of| self.check_type(of, value, seen));
            if !tried.any(|checked| checked == Ok(true)) {
                // Told by the one that it almost is.
                let tried = member.types.iter().map(|of| self.check_type(of, value, &mut |_, _| ()));
                let why = tried.filter_map(Result::err).next().unwrap_or_default();
                return Err(format!("{anchor}: `{name}` is {value}, and not {:?} {why}", member.types));
            }
        }
        Ok(())
    }

    /// Whether a value is of a type; an error where it is an object that differs from its table.
    fn check_type(&self, of: &Type, value: &Value, seen: &mut dyn FnMut(&str, &str)) -> Result<bool, String> {
        Ok(match (of, value) {
            (Type::Null, Value::Null)
            | (Type::String, Value::String(_))
            | (Type::Boolean, Value::Bool(_))
            | (Type::Object, Value::Object(_)) => true,
            (Type::Time, Value::String(time)) => bulla::text::time::parse_time(time).is_ok(),
            (Type::Number, Value::Number(number)) => number.is_u64(),
            (Type::Fraction, Value::Number(number)) => number.is_f64(),
            (Type::Table(anchor), Value::Object(object)) => {
                self.check(anchor, object, seen).map(|()| true)?
            }
            (Type::List(of), Value::Array(values)) => self.check_all(of, values.iter(), seen)?,
            (Type::Names(of), Value::Object(object)) => self.check_all(of, object.values(), seen)?,
            _ => false,
        })
    }

    fn check_all<'a>(
        &self,
        of: &Type,
        mut values: impl Iterator<Item = &'a Value>,
        seen: &mut dyn FnMut(&str, &str),
    ) -> Result<bool, String> {
        values.try_fold(true, |all, value| Ok(all && self.check_type(of, value, seen)?))
    }
}

impl Member {
    fn parse(row: &str) -> Self {
        let (name, cells) = row.split_once('`').unwrap();
        let cells = cells.split('|').map(str::trim).collect::<Vec<_>>();
        let [_, types, absent, _, ""] = cells[..] else { panic!("a row of four cells: {row}") };
        let types = types.split(", ").flat_map(|types| types.split(" or ")).map(Type::parse).collect();
        Member { name: name.to_owned(), types, always: absent.is_empty() }
    }

    fn is_any(&self) -> bool {
        self.name.chars().all(|c| c.is_ascii_uppercase())
    }
}

impl Type {
    fn parse(text: &str) -> Self {
        if let Some((_, anchor)) = text.strip_prefix('[').and_then(|link| link.split_once("](#")) {
            return Type::Table(anchor.strip_suffix(')').unwrap().to_owned());
        }
        for (prefix, of) in [("list of ", Type::List as fn(_) -> _), ("object of ", Type::Names)] {
            if let Some(inner) = text.strip_prefix(prefix) {
                return of(Box::new(Type::parse(inner.strip_suffix('s').unwrap_or(inner))));
            }
        }
        match text {
            "null" => Type::Null,
            "string" => Type::String,
            "time" => Type::Time,
            "number" => Type::Number,
            "fraction" => Type::Fraction,
            "boolean" => Type::Boolean,
            "object" => Type::Object,
            other => panic!("`{other}` is no type"),
        }
    }
}

/// The anchor of a heading, as sites that show Markdown make it.
fn anchor(title: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || "-_ ".contains(*c);
    title.to_lowercase().chars().filter(kept).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Which table the objects are held against that a command prints.
fn table_of(words: &[impl AsRef<OsStr>]) -> Option<String> {
    let words = words.iter().map(|word| word.as_ref().to_string_lossy()).collect::<Vec<_>>();
    let has = |word: &str| words.iter().any(|it| it == word);
    let action = |all: &[(&str, &str)]| {
        all.iter().find(|(name, _)| has(name)).map(|(_, heading)| (*heading).to_owned())
    };
    let changes = "keys-add-recipient-and-remove-recipient";
    match &**words.first()? {
        "keys" => action(&[
            ("list", "keys-list"),
            ("add-recipient", changes),
            ("remove-recipient", changes),
            ("rotate", "keys-rotate"),
            ("new-identity", "keys-new-identity"),
            ("new-erasure-key", "keys-new-erasure-key"),
        ]),
        "hold" => action(&[
            ("list", "hold-list"),
            ("add", "hold-add-and-release"),
            ("release", "hold-add-and-release"),
        ]),
        "config" => {
            let of = action(&[
                ("get", "config-get"),
                ("set", "config-set-and-unset"),
                ("unset", "config-set-and-unset"),
            ]);
            of.or(Some("config".to_owned()))
        }
        "append" if has("--try") => Some("append---try".to_owned()),
        "erase" if has("--again") => Some("erase---again".to_owned()),
        "generate" if has("--describe") => Some("generate---describe".to_owned()),
        "proxy" if has("--dry-run") => Some("proxy---dry-run".to_owned()),
        "generate" | "tail" => Some("an-entry".to_owned()),
        command => Some(command.to_owned()),
    }
}

/// Holds what a command printed against the document, where it was asked for JSON.
pub(crate) fn check(words: &[impl AsRef<OsStr>], out: &str) {
    check_and_see(words, out, &mut |_, _| ());
}

fn check_and_see(words: &[impl AsRef<OsStr>], out: &str, seen: &mut dyn FnMut(&str, &str)) {
    if !words.iter().any(|word| word.as_ref() == "--json") {
        return;
    }
    // It prints a JSON Schema, which says itself what it has.
    if words[0].as_ref() == "schema" {
        return;
    }
    for line in out.lines().filter(|line| line.starts_with('{')) {
        let object = serde_json::from_str::<Map<String, Value>>(line).unwrap();
        let is_failure = object.len() == 1 && object.contains_key("error");
        let table = match is_failure {
            true => "every-command".to_owned(),
            false => table_of(words).unwrap_or_else(|| panic!("it prints no object: {line}")),
        };
        if let Err(why) = DOCUMENT.check(&table, &object, seen) {
            let words = words.iter().map(AsRef::as_ref).collect::<Vec<_>>();
            panic!("docs/json.md does not say what {words:?} printed: {why}\n{line}");
        }
    }
}

/// What takes more than a command line to have printed, and what that is.
const NOT_PRINTED: [(&str, &str, &str); 19] = [
    ("a-replica", "failure", "a medium that fails under a writer"),
    ("events", "reason", "a medium that fails under a writer"),
    ("config-set-and-unset", "error", "something that fails after a change"),
    ("keys-add-recipient-and-remove-recipient", "error", "something that fails after a change"),
    ("erase---again", "error", "a medium that fails between two orders"),
    ("proxy", "error", "a medium that fails under a writer"),
    ("an-order-that-was-carried-out", "detail", "a writer that does what nobody ordered"),
    ("a-witness", "refusal", "a witness that has cosigned another history"),
    ("a-refusal", "time", "a witness that has cosigned another history"),
    ("a-refusal", "frames", "a witness that has cosigned another history"),
    ("a-refusal", "why", "a witness that has cosigned another history"),
    ("dropping", "entries", "a log that drops while nothing takes it"),
    ("dropping", "since", "a log that drops while nothing takes it"),
    ("dropping", "over", "a log that drops while nothing takes it"),
    ("events", "exact", "a log that has dropped"),
    ("events", "id", "a log of which a part was given up"),
    ("events", "known", "a log of which a part was given up"),
    ("events", "producers", "a log that has dropped"),
    ("events", "set_aside", "a log that has dropped"),
];

/// Members that were printed.
#[derive(Default)]
struct Seen(BTreeSet<(String, String)>);

impl Seen {
    /// Runs a command, which prints some.
    fn run(&mut self, place: &Place, command: &str, more: &[&str]) -> Ran {
        self.run_with(place, command, more, b"")
    }

    fn run_with(&mut self, place: &Place, command: &str, more: &[&str], input: &[u8]) -> Ran {
        self.bulla(place.arguments(command, &[more, &["--json"]].concat()), input)
    }

    fn bulla(&mut self, words: Vec<OsString>, input: &[u8]) -> Ran {
        let ran = if input.is_empty() { bulla(&words) } else { bulla_with(&words, input) };
        self.look(&words, &ran.out);
        ran
    }

    /// Looks at what a command printed.
    fn look(&mut self, words: &[OsString], out: &str) {
        check_and_see(words, out, &mut |table, member| {
            self.0.insert((table.to_owned(), member.to_owned()));
        });
    }
}

/// An entry with all fields, of two data subjects, and one with bytes that are no text.
const ENTRIES: &[u8] = br#"{"time":"2026-01-02T03:04:05.06Z","operation":"write","location":"a/b","subject":["ada","bob"],"controller":"c","processor":"p","purpose":"w","actor":"x","client":"::1","stream":"s","status":200,"duration":5,"size":6,"flags":7,"payload":"{}"}
{"operation":"write","location_base64":"/w==","subject":"ada","payload_base64":"/w=="}
{"operation":"read","location":"z","subject":"carl"}
nonsense
"#;

const BECAUSE: [&str; 4] = ["--by", "legal", "--reason", "case 4711"];

fn path(place: &Place, name: &str) -> String {
    place.path(name).into_os_string().into_string().unwrap()
}

/// A command that takes no log.
fn words(command: &str, more: &[&str]) -> Vec<OsString> {
    [&[command], more, &["--json"]].concat().iter().map(OsString::from).collect()
}

#[test]
fn each_member_of_the_document_is_printed_by_some_command() {
    let mut seen = Seen::default();
    let place = Place::empty();
    seen.run(&place, "info", &[]).exits(exit::ENVIRONMENT);
    seen.run(&place, "init", &["--extra", "x-team=audit", "--field", "payload=cap:9000"]).exits(exit::DONE);
    let log = seen.run(&place, "info", &[]).exits(exit::DONE).json();
    look_at_what_is_appended(&mut seen, &place);
    look_at_sources(&mut seen);
    look_at_keys_and_settings(&mut seen, &place);
    look_at_a_writer_at_work(&mut seen, &place);
    look_at_what_is_read(&mut seen, &place);
    look_at_a_pin(&mut seen);
    crate::witness::look(|words, out| seen.look(words, out));
    look_at_a_mirror(&mut seen);
    crate::paths::look(|words, out| seen.look(words, out));
    crate::lost_path::look(|words, out| seen.look(words, out));
    look_at_a_policy(&mut seen);
    let new_key = look_at_erasures(&mut seen, &place, log["id"].as_str().unwrap());
    look_at_changes_that_are_amiss(&mut seen, &place, &new_key);
    look_at_pseudonyms(&mut seen);
    seen.bulla(words("generate", &["--describe"]), b"").exits(exit::DONE);
    #[cfg(feature = "proxy")]
    {
        seen.look(&words("proxy", &[]), &crate::proxy::serve(&Place::new()).out);
        crate::proxy::dry_run(&Place::empty(), |words, out| seen.look(words, out));
    }

    let all = DOCUMENT
        .0
        .iter()
        .flat_map(|(table, members)| members.iter().map(|member| (table.clone(), member.name.clone())));
    let excused =
        |table: &str, member: &str| NOT_PRINTED.iter().any(|(of, name, _)| (*of, *name) == (table, member));
    let never = all.filter(|member| !seen.0.contains(member)).filter(|(table, name)| !excused(table, name));
    assert_eq!(never.collect::<Vec<_>>(), [], "nothing printed these members of docs/json.md");
    for (table, member, why) in NOT_PRINTED {
        assert!(!seen.0.contains(&(table.to_owned(), member.to_owned())), "{table}: {member}: {why}?");
    }
}

fn look_at_a_pin(seen: &mut Seen) {
    let (place, pins) = (Place::new(), Place::empty());
    let pin = pins.path("audit.pin").into_os_string().into_string().unwrap();
    seen.run(&place, "append", &["--pin", &pin, "/dev/null"]).exits(exit::DONE);
    seen.run(&place, "info", &[]).exits(exit::DONE);
    seen.run(&place, "verify", &["--pin", &pin]).exits(exit::DONE);
}

fn look_at_a_mirror(seen: &mut Seen) {
    let place = Place::new();
    seen.run(&place, "mirror", &[&path(&place, "copy"), "--once"]).exits(exit::DONE);
}

/// Of a log with two keys, either of which says whose it is.
fn look_at_a_policy(seen: &mut Seen) {
    let place = Place::empty();
    let made =
        seen.run(&place, "init", &["--ml-dsa", "--origin", "example.com/log"]).exits(exit::DONE).json();
    let known = seen.run(&place, "info", &[]).exits(exit::DONE).json();
    seen.run_with(&place, "append", &[], b"{\"operation\":\"read\"}\n").exits(exit::DONE);
    for name in ["vkey", "vkey_ml_dsa"] {
        assert_eq!(made[name], known[name]);
        let key = made[name].as_str().unwrap();
        let verified = seen.run(&place, "verify", &["--key", key]).exits(exit::DONE).json();
        assert_eq!(verified["anchored"], true);
        let policy = place.write("policy", format!("log {key}\nquorum none\n").as_bytes());
        let verified = place.run("verify", &["--json", "--policy", &policy]).exits(exit::DONE);
        assert_eq!(verified.json()["anchored"], true);
    }
    // Another log's key of the same name is not this one's.
    let other = Place::empty();
    let other =
        other.run("init", &["--json", "--ml-dsa", "--origin", "example.com/log"]).exits(exit::DONE).json();
    let key = other["vkey_ml_dsa"].as_str().unwrap();
    let ran = place.run("verify", &["--json", "--key", key]).exits(exit::VIOLATION).json();
    assert_eq!(ran["findings"][0]["kind"], "key-mismatch");

    let vectors = include_str!("../../../../vectors/witness/cosignatures.json");
    let witness = serde_json::from_str::<Value>(vectors).unwrap()[0]["vkey"].as_str().unwrap().to_owned();
    let policy = |quorum: &str| {
        let text = format!("witness W {witness}\nquorum {quorum}\n");
        place.write("policy", text.as_bytes())
    };
    let key = made["vkey"].as_str().unwrap();
    let ran =
        seen.run(&place, "verify", &["--policy", &policy("none"), "--key", key]).exits(exit::DONE).json();
    assert_eq!(ran["witnessed"]["witnesses"], json!([{"name": "W", "cosigned": false, "time": null}]));
    assert_eq!(ran["witnessed"]["frames"], Value::Null);
    let ran =
        seen.run(&place, "verify", &["--policy", &policy("W"), "--key", key]).exits(exit::VIOLATION).json();
    assert_eq!((&ran["findings"][0]["kind"], &ran["witnessed"]), (&json!("unwitnessed"), &Value::Null));
    // Whose it is, a policy without a log does not say; and what is none is told by its line.
    let ran = place.run("verify", &["--policy", &policy("none")]).exits(exit::USAGE);
    assert!(ran.err.contains("names no log"), "{ran:?}");
    let ran = place.run("verify", &["--policy", &policy("V")]).exits(exit::USAGE);
    assert!(ran.err.contains("line 2: there is no witness or group `V` above"), "{ran:?}");
}

fn look_at_what_is_appended(seen: &mut Seen, place: &Place) {
    place.run("config", &["set", "linger", "1 h"]).exits(exit::DONE);
    seen.run(place, "append", &["/nowhere"]).exits(exit::ENVIRONMENT);
    seen.run_with(place, "append", &["--stats"], ENTRIES).exits(exit::SOME_REFUSED);
    seen.run(place, "verify", &[]).exits(exit::DONE);
    let elsewhere = Place::new();
    seen.look(
        &elsewhere.arguments("append", &["--listen", "--json"]),
        &crate::listening::listen(&elsewhere).out,
    );
}

/// What other programs wrote, tried and followed, and what the log has of it.
fn look_at_sources(seen: &mut Seen) {
    let place = Place::new();
    let try_map = |seen: &mut Seen, text: &str, exit: i32| {
        let log = place.write("tried.log", text.as_bytes());
        let map = "format = \"json\"\non_unparsed = \"raw\"\noperation = \"{/did}\"\nstatus = \"{/status}\"\npayload = \"{rest}\"\n";
        let map = place.write("tried.toml", map.as_bytes());
        seen.run(&place, "append", &["--try", "--map", &map, &log]).exits(exit);
        let map = place
            .write("strict.toml", b"format = \"json\"\noperation = \"{/did}\"\nstatus = \"{/status}\"\n");
        seen.run(&place, "append", &["--try", "--map", &map, &log]);
    };
    try_map(seen, "{\"did\":\"read\",\"status\":200}\n{\"status\":-1}\n", exit::DONE);
    seen.run_with(&place, "append", &["--try"], ENTRIES).exits(exit::SOME_REFUSED);

    let log = place.write("app.log", ENTRIES);
    seen.run(&place, "append", &["--follow", "--once", &log]).exits(exit::SOME_REFUSED);
    seen.run_with(&place, "append", &["--source", "shop"], ENTRIES).exits(exit::SOME_REFUSED);
    fs::rename(&log, path(&place, "app.log.1")).unwrap();
    seen.run(&place, "sources", &[]).exits(exit::DONE);
    seen.bulla(words("maps", &[]), b"").exits(exit::DONE);
    seen.bulla(words("maps", &["sshd"]), b"").exits(exit::DONE);
}

fn look_at_keys_and_settings(seen: &mut Seen, place: &Place) {
    fs::write(place.keys("witness.refusals"), "damaged").unwrap();
    seen.run(place, "info", &[]).exits(exit::DONE);
    fs::remove_file(place.keys("witness.refusals")).unwrap();
    let replica = path(place, "replica");
    fs::create_dir(&replica).unwrap();
    seen.run(place, "config", &["set", "vault_replicas", &replica]).exits(exit::DONE);
    seen.run(place, "config", &["set", "checkpoint_interval", "1 h"]).exits(exit::DONE);
    seen.run(place, "config", &[]).exits(exit::DONE);
    seen.run(place, "config", &["get", "log.recipients"]).exits(exit::DONE);
    let made =
        seen.run(place, "keys", &["new-identity", "-o", &path(place, "officer.age")]).exits(exit::DONE);
    seen.run(place, "keys", &["add-recipient", made.json()["recipient"].as_str().unwrap()]).exits(exit::DONE);
    seen.run(place, "keys", &["rotate"]).exits(exit::DONE);
    let identity = place.keys("identity.age");
    seen.run(place, "keys", &["list", "--identity", identity.to_str().unwrap()]).exits(exit::DONE);
}

/// What it has written and not signed yet, and what it says of itself.
fn look_at_a_writer_at_work(seen: &mut Seen, place: &Place) {
    use std::io::{BufRead, BufReader, Write};
    let words = place.arguments("append", &["--acks"]);
    let mut writer = crate::support::command(&words).stdin(std::process::Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(writer.stdout.take().unwrap()).lines();
    // As much as a block takes at most: it waits for no company then.
    writer.stdin.as_mut().unwrap().write_all(&crate::support::incompressible(300)).unwrap();
    told.next().unwrap().unwrap();
    seen.run(place, "info", &[]).exits(exit::DONE);
    let words = place.arguments("tail", &["--json", "--entries", "3.."]);
    let mut tail = crate::support::command(&words).spawn().unwrap();
    let line = BufReader::new(tail.stdout.take().unwrap()).lines().next().unwrap().unwrap();
    tail.kill().unwrap();
    tail.wait().unwrap();
    seen.look(&words, &line);
    drop(writer.stdin.take());
    assert!(writer.wait().unwrap().success());
    place.run("config", &["unset", "vault_replicas"]).exits(exit::DONE);
}

fn look_at_what_is_read(seen: &mut Seen, place: &Place) {
    let out = &path(place, "out");
    seen.run(place, "export", &["--entries", "0..1", "--record", "-o", out]).exits(exit::DONE);
    seen.run(place, "export", &["--subject", "nobody", "-o", out]).exits(exit::DONE);
    seen.run(place, "prove", &["--entries", "0..2", "-o", out]).exits(exit::DONE);
    seen.bulla(words("check", &[out]), b"").exits(exit::DONE);
    fs::copy(place.audit().join("checkpoint"), path(place, "old")).unwrap();
    seen.run(place, "prove", &["--consistency", &path(place, "old"), "-o", out]).exits(exit::DONE);
    seen.bulla(words("check", &[out]), b"").exits(exit::DONE);
    let (anchor, rekor) = crate::anchor::anchored(place);
    seen.run(place, "anchor", &["--check", &anchor, "--rekor-key", &rekor]).exits(exit::DONE);
    let (_, recipient) = bulla::keys::identities::generate();
    seen.run(place, "grant", &["--recipient", &recipient, "--entry", "0", "-o", out]).exits(exit::DONE);
    seen.run(place, "restore", &["--dry-run"]).exits(exit::DONE);
}

/// Gives a key that may be the log's next one, which is ordered.
fn look_at_erasures(seen: &mut Seen, place: &Place, id: &str) -> String {
    let authority = place.keys("erasure.key").into_os_string().into_string().unwrap();
    let order = |seen: &mut Seen, name: &str, more: &[&str]| {
        let given = ["--log", id, "--authority", &authority, "-o", &path(place, name)];
        seen.bulla(words("order", &[&given[..], more].concat()), b"").exits(exit::DONE);
        path(place, name)
    };
    let hold = order(seen, "hold.json", &[&["--hold", "--subject", "bob"], &BECAUSE[..]].concat());
    seen.run(place, "hold", &["add", "--authority", &hold]).exits(exit::DONE);
    let frame = |place: &Place| (place.info("tree_size").as_u64().unwrap() - 1).to_string();
    let certificate = &path(place, "certificate");
    place.run("prove", &["--event", &frame(place), "-o", certificate]).exits(exit::DONE);
    seen.bulla(words("check", &[certificate, "--order", &hold]), b"").exits(exit::DONE);
    seen.run(place, "hold", &["list", "--subject", "bob", "--subject", "nobody"]).exits(exit::DONE);

    seen.run(place, "erase", &["--subject", "bob"]).exits(exit::REFUSED);
    seen.run(place, "erase", &["--subject", "ada", "--dry-run"]).exits(exit::DONE);
    let kept = &path(place, "kept.json");
    let erase = ["--subject", "ada", "--subject", "nobody", "--keep-order", kept, "-o", certificate];
    seen.run(place, "erase", &erase).exits(exit::SOME_REFUSED);
    seen.bulla(words("check", &[certificate, "--order", kept]), b"").exits(exit::DONE);
    seen.run(place, "prove", &["--event", &frame(place), "-o", certificate]).exits(exit::DONE);
    place.append(&[], br#"{"operation":"read","subject":"ada"}"#).exits(exit::DONE);
    seen.run(place, "erase", &erase[..6]).exits(exit::SOME_REFUSED);
    // Orders and frames are told apart by seconds: this one is of a later second than carl's entry.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let again = order(seen, "again.json", &["--subject", "carl"]);
    seen.run(place, "erase", &["--again", kept, &again, "--dry-run"]).exits(exit::SOME_REFUSED);
    let words = place.arguments("tail", &["--json", "--entries", "0..0"]);
    seen.look(&words, &bulla(&words).exits(exit::DONE).out);

    let close = &["--release", &hold, "--by", "legal", "--reason", "closed"];
    let release = order(seen, "release.json", close);
    seen.run(place, "hold", &["release", "--authority", &release]).exits(exit::DONE);
    let new_key = seen.run(place, "keys", &["new-erasure-key", "-o", &path(place, "new.key")]).json();
    let new_key = new_key["erasure_key"].as_str().unwrap();
    order(seen, "key.json", &["--new-erasure-key", new_key]);
    new_key.to_owned()
}

/// Bytes that a crash left, a change of the erasure key that nobody ordered, and damage.
fn look_at_changes_that_are_amiss(seen: &mut Seen, place: &Place, new_key: &str) {
    use std::io::Write;
    let segments = || {
        let segments = fs::read_dir(place.audit().join("segments")).unwrap();
        segments.map(|segment| segment.unwrap().path()).collect::<BTreeSet<_>>()
    };
    let last = segments().pop_last().unwrap();
    fs::OpenOptions::new().append(true).open(last).unwrap().write_all(&[1; 100]).unwrap();
    place.append(&[], b"").exits(exit::DONE);
    seen.run(place, "config", &["set", "log.erasure_key", new_key, "--lost"]).exits(exit::DONE);
    seen.run(place, "events", &[]).exits(exit::VIOLATION);
    let segment = segments().pop_first().unwrap();
    fs::OpenOptions::new().write(true).open(&segment).unwrap().set_len(1000).unwrap();
    seen.run(place, "verify", &["--public"]).exits(exit::VIOLATION);
}

fn look_at_pseudonyms(seen: &mut Seen) {
    use std::os::unix::ffi::OsStringExt;
    let place = Place::empty();
    let init = ["--erasure", "off", "--field", "location=pseudonymise"];
    seen.run(&place, "init", &init).exits(exit::DONE);
    let mut words = place.arguments("pseudonym", &["location", "a", "--json"]);
    words.push(OsString::from_vec(vec![0xff]));
    seen.bulla(words, b"").exits(exit::DONE);
}

#[test]
fn what_differs_from_the_tables_is_told() {
    let text = "# A\n| `n` | number | | x |\n| `s` | time or null | sometimes | x |\n| `l` | list of [rows](#b-c) | sometimes | x |\n\
                ## B `C`\n| `t` | string | | x |\n";
    let document = Document::parse(text);
    let check = |object: Value| {
        let mut seen = Vec::new();
        let checked = document.check("a", object.as_object().unwrap(), &mut |table, member| {
            seen.push(format!("{table}.{member}"));
        });
        checked.map(|()| seen.join(" "))
    };
    let fits = json!({ "n": 1, "s": "2026-01-02T03:04:05Z", "l": [{ "t": "x" }] });
    assert_eq!(check(fits).unwrap(), "a.l b-c.t a.n a.s");
    assert_eq!(check(json!({ "n": 1, "s": null, "l": [] })).unwrap(), "a.l a.n a.s");
    for (object, said) in [
        (json!({ "s": null }), "`n` is always there"),
        (json!({ "n": null }), "`n` is null"),
        (json!({ "n": "1" }), "`n` is \"1\""),
        (json!({ "n": 1, "s": "yesterday" }), "`s` is \"yesterday\""),
        (json!({ "n": 1, "x": 1 }), "`x` is in no table"),
        (json!({ "n": 1, "l": [{ "t": "x", "u": 1 }] }), "b-c: `u` is in no table"),
        (json!({ "n": 1, "l": ["x"] }), "`l` is [\"x\"]"),
    ] {
        let why = check(object.clone()).unwrap_err();
        assert!(why.contains(said), "{object}: {why}");
    }
}

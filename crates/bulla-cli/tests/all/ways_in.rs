//! What other programs write, and what is said of it before it goes in: `--format`, `--map`, `--try`, `maps` and `schema`.

use crate::support::{Place, bulla, exit, workspace};
use bulla_testkit::second_readers_python;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::process::Stdio;

/// A map that refuses what it does not know.
const SHOP: &str = r#"format = "json"
time = "{/at}"
operation = "{/did}"
subject = "{/customer}"
duration = { from = "{/took_ms}", unit = "ms" }
payload = "{rest}"
"#;

#[test]
fn a_map_of_ones_own_makes_entries_and_tells_what_it_refuses_with_its_line() {
    let place = Place::new();
    let map = place.write("shop.toml", SHOP.as_bytes());
    let log = place.write(
        "shop.log",
        b"{\"at\":\"2026-11-26T10:00:00Z\",\"did\":\"read\",\"customer\":42,\"took_ms\":1.5,\"more\":[1]}\n\
          {\"at\":\"yesterday\",\"did\":\"secret\"}\n",
    );
    let ran = place.append(&["--map", &map, &log], b"").exits(exit::SOME_REFUSED);
    let reason = format!("`time` is in none of the formats that the map has for it (map {map}, line 2)");
    assert_eq!(ran.err, format!("{log}:2: {reason}\n"));
    let expected = json!({
        "entry": 0, "time": "2026-11-26T10:00:00Z", "operation": "read", "subject": "42", "duration": 1_500_000,
        "payload": "{\"more\":[1]}",
    });
    assert_eq!(place.entries(), [expected]);
}

#[test]
fn trying_shows_what_would_go_in_and_touches_no_log() {
    let place = Place::empty();
    let map = place.write("shop.toml", SHOP.as_bytes());
    let line = "{\"did\":\"read\",\"customer\":\"ada\\u001b\",\"took_ms\":\"long\"}\n";
    let log = place.write("shop.log", line.repeat(11).as_bytes());
    let ran = place.run("append", &["--try", "--map", &map, &log]).exits(exit::SOME_REFUSED);
    let expected = format!(
        "{log}:1\n\
         time       line 2    - (the record has none)\n\
         operation  line 3    read\n\
         subject    line 4    ada\\u{{1b}}\n\
         duration   line 5    ! "
    );
    assert!(ran.out.starts_with(&expected), "{}", ran.out);
    assert!(ran.out.contains("\nrefused: `duration` "), "{}", ran.out);
    assert!(ran.out.ends_with("\n0 would go in, 10 would be refused; nothing was appended\n"), "{}", ran.out);
    assert!(!place.audit().exists());
    // Of what goes in as it is, it is said why.
    let log = place.write("other.log", b"no access log\n");
    let ran = place.run("append", &["--try", "--map", "common", &log]).exits(exit::DONE);
    let expected = format!("{log}:1\ngoes in unparsed: the time is not DD/Mon/YYYY:HH:MM:SS \u{b1}HHMM\n\n");
    assert!(ran.out.starts_with(&expected), "{}", ran.out);
    // What options say is shown, too.
    let options = ["--try", "--format", "combined", "--subject-from", "client", "--stream", "web"];
    let log = workspace().join("vectors/access/access.log");
    let tried = place.run("append", &[&options[..], &["--json", log.to_str().unwrap()]].concat());
    let entry = &tried.exits(exit::DONE).json()["records"][0]["entry"];
    assert_eq!((&entry["subject"], &entry["stream"]), (&entry["client"], &json!("web")));
}

#[test]
fn what_is_compressed_and_what_spans_lines_has_its_place() {
    let place = Place::new();
    let text = b"\xef\xbb\xbfname,what\n1,\"a\nb\"\n2,\"c\n3,d\n";
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text).unwrap();
    let log = place.write("a.csv.gz", &gzip.finish().unwrap());
    let map = b"format = \"csv\"\noperation = \"{/name}\"\npayload = \"{/what}\"\n";
    let map = place.write("a.toml", map);
    let ran = place.append(&["--map", &map, &log], b"").exits(exit::SOME_REFUSED);
    // The quote that is not closed costs its record.
    assert!(ran.err.starts_with(&format!("{log}:4: ")), "{}", ran.err);
    assert!(
        ran.out.ends_with(&format!("every line up to {log}:5 is durable or was refused\n")),
        "{}",
        ran.out
    );
    assert_eq!(place.entries()[0]["payload"], "a\nb");
}

#[test]
fn a_map_or_a_zone_that_is_none_is_told_before_anything_is_taken() {
    let place = Place::new();
    let wrong = place.write("wrong.toml", b"format = \"json\"\noperation = \"read\"\nsubjekt = \"{/id}\"\n");
    let binary = place.write("binary.toml", b"\xff\xfe");
    let large = place.write("large.toml", &vec![b'#'; (1 << 20) + 1]);
    for (options, said, code) in [
        (
            &["--map", &wrong][..],
            "wrong.toml:3:1: there is no key `subjekt`; did you mean `subject`?",
            exit::USAGE,
        ),
        (&["--map", &binary], "reading the map", exit::ENVIRONMENT),
        (&["--map", &large], "has more than 1048576 bytes: it is no map", exit::USAGE),
        (&["--map", "./nowhere.toml"], "reading the map ./nowhere.toml: No such file", exit::ENVIRONMENT),
        (
            &["--map", "ngnix"],
            "there is no map `ngnix`; did you mean `nginx`? `bulla maps` lists",
            exit::USAGE,
        ),
        (&["--map", "nope"], "there is no map `nope`: `bulla maps` lists those that there are", exit::USAGE),
        (&["--map", "syslog", "--zone", "Mars"], "Mars, by --zone, is no time zone", exit::USAGE),
        (&["--format", "json", "--zone", "UTC"], "--zone is for a map that says `local`", exit::USAGE),
        (&["--source", ""], "--source", exit::USAGE),
    ] {
        let ran = place.append(options, b"{}").exits(code);
        assert!(ran.err.contains(said), "{options:?}: {}", ran.err);
    }
    assert_eq!(place.info("entries"), 0);
}

#[test]
fn on_a_terminal_values_end_with_their_lines_and_elsewhere_they_are_whole() {
    let place = Place::new();
    let value = "y".repeat(400);
    let log = place.write("log", format!("{{\"operation\":\"x\",\"payload\":\"{value}\"}}\n").as_bytes());
    let whole = place.append(&["--try", &log], b"").exits(exit::DONE);
    assert!(whole.out.contains(&format!("payload    {value}\n")), "{}", whole.out);
    // What gives a program a terminal; each Linux has it (util-linux).
    let tried = format!("stty cols 60 && exec {} append . --try {log}", env!("CARGO_BIN_EXE_bulla"));
    let ran = std::process::Command::new("script").args(["-qec", &tried, "/dev/null"]).output().unwrap();
    let out = String::from_utf8(ran.stdout).unwrap();
    let line = format!("payload    {}… (400 bytes)", "y".repeat(36));
    assert!(ran.status.success() && out.lines().any(|shown| shown.trim_end() == line), "{out}");
}

/// `--format` refuses what does not fit it, whichever it is; the ready map of the same name may take it in.
#[test]
fn what_fits_no_format_is_refused_by_each_and_taken_by_maps_that_say_so() {
    let place = Place::new();
    for format in ["combined", "common", "apache-error", "syslog"] {
        place.append(&["--format", format], b"nonsense\n").exits(exit::SOME_REFUSED);
    }
    assert_eq!(place.info("entries"), 0);
    for map in ["combined", "common", "apache-error"] {
        place.append(&["--map", map], b"nonsense\n").exits(exit::DONE);
    }
    assert_eq!(place.info("entries"), 3);
}

#[test]
fn clocks_without_a_zone_are_the_machine_s_or_those_that_are_named() {
    let place = Place::new();
    let line = b"<38>Jan  6 12:00:00 sshd[12]: hello\n";
    let appended = |zone: Option<&str>, options: &[&str]| {
        let words = place.arguments("append", &[&["--format", "syslog"], options].concat());
        let mut command = crate::support::command(words);
        command.stdin(Stdio::piped()).env_remove("TZ");
        zone.map(|zone| command.env("TZ", zone));
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(line).unwrap();
        crate::support::finish(child)
    };
    appended(Some("Asia/Tokyo"), &[]).exits(exit::DONE);
    appended(Some("Asia/Tokyo"), &["--zone", "-01:30"]).exits(exit::DONE);
    let ran = appended(Some("nowhere at all"), &[]).exits(exit::USAGE);
    assert!(ran.err.contains("nowhere at all, by TZ, is no time zone"), "{}", ran.err);
    let hours: Vec<_> =
        place.entries().iter().map(|entry| entry["time"].as_str().unwrap()[10..].to_owned()).collect();
    assert_eq!(hours, ["T03:00:00Z", "T13:30:00Z"]);
}

#[test]
fn each_ready_map_is_listed_and_printed_as_it_is_and_can_be_named() {
    let listed = bulla(["maps", "--json"]).exits(exit::DONE).json();
    let names: BTreeSet<_> =
        listed["maps"].as_array().unwrap().iter().map(|map| map["name"].as_str().unwrap()).collect();
    for wanted in [
        "nginx",
        "apache",
        "sshd",
        "sudo",
        "postgresql",
        "mysql-audit",
        "kubernetes-audit",
        "aws-cloudtrail",
        "ocsf",
        "ecs",
        "opentelemetry",
    ] {
        assert!(names.contains(wanted), "{wanted}");
    }
    let text = bulla(["maps"]).exits(exit::DONE).out;
    assert_eq!(text.lines().count(), names.len());
    let place = Place::new();
    for name in names {
        let toml = bulla(["maps", name]).exits(exit::DONE).out;
        assert_eq!(
            toml,
            fs::read_to_string(workspace().join(format!("crates/bulla-ingest/maps/{name}.toml"))).unwrap()
        );
        place.append(&["--map", name], b"").exits(exit::DONE);
        place.append(&["--map", &place.write("copy.toml", toml.as_bytes())], b"").exits(exit::DONE);
    }
    let ran = bulla(["maps", "sshdd"]).exits(exit::USAGE);
    assert!(ran.err.contains("did you mean `sshd`?"), "{}", ran.err);
}

/// Which of these lines a JSON Schema lets pass, by somebody else's validator.
fn valid(schema: &str, lines: &[&str]) -> Vec<bool> {
    let script = "import json, jsonschema, sys\n\
        schema, lines = json.load(sys.stdin)\n\
        jsonschema.Draft202012Validator.check_schema(schema)\n\
        validator = jsonschema.Draft202012Validator(schema)\n\
        def valid(line):\n \
            try:\n  return validator.is_valid(json.loads(line))\n \
            except ValueError:\n  return False\n\
        print(json.dumps([valid(line) for line in lines]))";
    let mut python = second_readers_python();
    let mut child = python
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let schema: Value = serde_json::from_str(schema).unwrap();
    child.stdin.take().unwrap().write_all(json!([schema, lines]).to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_schema_lets_pass_what_is_an_entry_and_refuses_what_it_can() {
    let schema = bulla(["schema"]).exits(exit::DONE).out;
    let examples = crate::input::examples("jsonl");
    assert_eq!(valid(&schema, &examples), vec![true; examples.len()]);

    let refusals = crate::input::refusals("What is refused");
    let lines: Vec<_> = refusals.iter().map(|(line, _)| line.as_str()).collect();
    // Of what lines are as text, of calendars and of bytes a schema says nothing.
    let beyond =
        ["is given twice", "RFC 3339 time", "leap second", "UTF-8", "without a fraction", "line is longer"];
    for ((line, reason), valid) in refusals.iter().zip(valid(&schema, &lines)) {
        let is_beyond = beyond.iter().any(|beyond| reason.contains(beyond));
        assert!(!valid || is_beyond, "{}: {reason}", &line[..line.len().min(200)]);
    }

    let properties = serde_json::from_str::<Value>(&schema).unwrap()["properties"].clone();
    let names: Vec<_> = properties.as_object().unwrap().keys().map(String::as_str).collect();
    let mut members = crate::input::members();
    members.sort_unstable();
    assert_eq!(names, members);
}

//! `bulla events`: what a log tells of itself.

use crate::support::{Place, Ran, arguments, bulla, exit, lines, parse_lines};
use serde_json::{Value, json};

/// A log of ten people with an event of most kinds.
fn filled() -> Place {
    let place = Place::new();
    place.append(&[], &lines(0..100)).exits(exit::DONE);
    let hold = ["--subject", "s1", "--by", "legal", "--reason", "case 1"];
    place.run("hold", &[&["add"], &hold[..]].concat()).exits(exit::DONE);
    place.run("hold", &[&["release"], &hold[..]].concat()).exits(exit::DONE);
    let out = place.path("out").into_os_string().into_string().unwrap();
    place.run("export", &["--subject", "s2", "--status", "200", "--record", "-o", &out]).exits(exit::DONE);
    place.run("export", &["--record", "-o", &out]).exits(exit::DONE);
    place.run("config", &["set", "log.fields.client", "drop"]).exits(exit::DONE);
    place.run("erase", &["--subject", "s3", "--reason", "request 7"]).exits(exit::DONE);
    place
}

fn told(place: &Place, more: &[&str]) -> Vec<Value> {
    parse_lines(&place.run("events", &[&["--json"], more].concat()).exits(exit::DONE).out)
}

fn kinds(told: &[Value]) -> Vec<&str> {
    told.iter().map(|event| event["event"].as_str().unwrap()).collect()
}

#[test]
fn events_tell_who_was_held_erased_and_shown_to_whom_and_what_was_changed() {
    let place = filled();
    let all = told(&place, &[]);
    assert_eq!(kinds(&all), ["held", "released", "exported", "exported", "configured", "erased"]);
    let frame = |event: &Value| event["frame"].as_u64().unwrap();
    assert!(all.windows(2).all(|pair| frame(&pair[0]) < frame(&pair[1])), "{all:?}");
    assert_eq!(all[0]["number"], all[1]["number"]);
    assert_eq!(all[1]["held"], all[0]["frame"]);
    assert_eq!(all[2]["filters"], json!(["subject", "status"]));
    assert_eq!((&all[3]["filters"], &all[3]["entries"]), (&json!([]), &json!(100)));
    assert_eq!((&all[4]["changed"], &all[4]["done"]), (&json!(["fields.client"]), &json!(true)));
    for hold in &all[..2] {
        assert!(hold["order"].as_str().unwrap().starts_with("bulla-hold-order-v1\n"), "{hold}");
        let ordered = &hold["ordered"];
        assert_eq!((&ordered["ok"], &ordered["reason"]), (&json!(true), &json!(null)), "why is confidential");
        assert!(ordered["time"].is_string(), "{ordered}");
    }
    let ordered = &all[5]["ordered"];
    assert_eq!((&ordered["ok"], &ordered["reason"]), (&json!(true), &json!("request 7")), "{ordered}");
    assert_eq!(all[5]["numbers"].as_array().unwrap().len(), 1);

    // The same for a person, in columns.
    let text = place.run("events", &[]).exits(exit::DONE).out;
    let starts =
        text.lines().map(|line| line.find(" 20").unwrap()).collect::<std::collections::BTreeSet<_>>();
    assert_eq!((starts.len(), text.lines().count()), (1, 6), "{text}");
    for (line, said) in text.lines().zip([
        "held        data subject ",
        "; ordered 20",
        "0 entries as jsonl, by subject, status",
        "100 entries as jsonl, everything",
        "configured  fields.client changed",
        ", request 7",
    ]) {
        assert!(line.contains(said), "{line} has no {said}");
    }
    assert!(!text.contains("but ") && !text.contains("s3"), "{text}");

    // Public data is enough, and the key that was asked for counts.
    let key = place.verifier_key();
    std::fs::rename(place.path("audit.keys"), place.path("elsewhere")).unwrap();
    assert_eq!(told(&place, &["--key", &key]), all);
    place.run("events", &["--key", &Place::new().verifier_key()]).exits(exit::VIOLATION);
}

#[test]
fn events_are_chosen_by_kind_and_time() {
    let place = filled();
    assert_eq!(kinds(&told(&place, &["--kind", "held", "--kind", "erased"])), ["held", "erased"]);
    assert_eq!(told(&place, &["--from", "yesterday"]).len(), 6);
    assert_eq!(told(&place, &["--from", "2026-01-01", "--to", "tomorrow", "--kind", "exported"]).len(), 2);
    for nothing in [&["--to", "2020-01-01"][..], &["--kind", "abandoned"], &["--kind", "heartbeat"]] {
        let ran = place.run("events", nothing).exits(exit::DONE);
        assert_eq!((&*ran.out, &*ran.err), ("", "0 events\n"));
    }
    place.run("events", &["--kind", "nonsense"]).exits(exit::USAGE);
    place.run("events", &["--from", "nonsense"]).exits(exit::USAGE);
    bulla(arguments!["events", place.path("nowhere")]).exits(exit::ENVIRONMENT);
}

#[test]
fn events_of_a_damaged_log_are_refused_where_it_is_damaged() {
    let place = filled();
    let before = place.run("events", &[]).exits(exit::DONE).out;
    let (segments, mut damaged) = (place.audit().join("segments"), 0);
    for segment in std::fs::read_dir(segments).unwrap() {
        let path = segment.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        let needle = b"{\"event\":\"exported\"";
        if let Some(at) = bytes.windows(needle.len()).position(|window| window == needle) {
            bytes[at + 20] ^= 1;
            std::fs::write(&path, bytes).unwrap();
            damaged += 1;
            break;
        }
    }
    assert_eq!(damaged, 1);
    let Ran { out, err, .. } = place.run("events", &[]).exits(exit::VIOLATION);
    assert!(before.starts_with(&out) && !out.contains("exported") && !err.is_empty(), "{out}{err}");
    std::fs::write(place.audit().join("checkpoint"), "nothing\n").unwrap();
    let ran = place.run("events", &[]).exits(exit::VIOLATION);
    assert_eq!(ran.out, "", "{ran:?}");
}

use crate::support::{Place, Ran, bulla, command, exit, finish, parse_lines};
use std::io::Read;

const WORKLOADS: [&str; 8] =
    ["gdpr", "gdpr-50", "json", "web", "web-subjects", "web-adversarial", "integrity", "slow"];

fn generate(workload: &str, more: &[&str]) -> Ran {
    bulla([&["generate", workload], more].concat())
}

#[test]
fn append_takes_what_generate_prints_and_export_gives_it_back() {
    for workload in WORKLOADS {
        let place = Place::new();
        let generated = generate(workload, &["--entries", "500"]).exits(exit::DONE);
        assert_eq!(generated.err, "");
        let ran = place.append(&[], generated.out.as_bytes()).exits(exit::DONE);
        assert!(ran.out.starts_with("500 accepted, 0 refused, 500 committed\n"), "{workload}: {ran:?}");
        let mut entries = place.entries();
        for (number, entry) in entries.iter_mut().enumerate() {
            assert_eq!(entry.as_object_mut().unwrap().remove("entry").unwrap(), number);
        }
        assert_eq!(entries, parse_lines(&generated.out), "{workload}");
    }
}

#[test]
fn the_same_seed_prints_the_same() {
    let out = |more: &[&str]| generate("web", more).exits(exit::DONE).out;
    let first = out(&["--entries", "5000"]);
    assert_eq!(first.lines().count(), 5000);
    assert_eq!(first, out(&["--seed", "1", "--entries", "5000"]));
    assert!(first.starts_with(&out(&["--entries", "10"])), "a shorter run is the beginning of a longer one");
    assert_ne!(first, out(&["--entries", "5000", "--seed", "2"]));
    assert_eq!(out(&["--entries", "0"]), "");
}

#[test]
fn a_table_describes_the_workloads() {
    let table = bulla(["generate", "--describe"]).exits(exit::DONE).out;
    let lines = table.lines().collect::<Vec<_>>();
    for (workload, line) in WORKLOADS.iter().zip(&lines[1..]) {
        let mut words = line.split_whitespace();
        assert_eq!(words.next(), Some(*workload));
        let [entropy, text] = std::array::from_fn(|_| words.next().unwrap().parse::<f64>().unwrap());
        assert!(0.0 < entropy && entropy < text, "{line}");
    }
    assert!(lines.iter().all(|line| line.len() <= 100), "{table}");
    assert!(lines[4].contains(" 8.91 "), "{table}");
}

#[test]
fn what_is_missing_or_unknown_is_said() {
    let refused = |arguments: &[&str], said: &str| {
        let ran = bulla([&["generate"], arguments].concat()).exits(exit::USAGE);
        assert!(ran.err.contains(said) && ran.out.is_empty(), "{ran:?}");
    };
    refused(&[], "<WORKLOAD>");
    refused(&["web"], "--entries");
    refused(&["wbe", "--entries", "1"], "web-subjects");
    refused(&["web", "--entries=-1"], "--entries");
    refused(&["web", "--entries", "1", "--describe"], "--describe");
}

#[test]
fn a_closed_output_pipe_is_no_error() {
    let mut child = command(["generate", "gdpr", "--entries", "18446744073709551615"]).spawn().unwrap();
    let mut first = [0; 9];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    assert_eq!(&first, b"{\"time\":\"");
    let ran = finish(child).exits(exit::DONE);
    assert_eq!(ran.err, "");
}

#[test]
fn a_full_disk_is_an_error() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let ran = command(["generate", "web", "--entries", "1"]).stdout(full).spawn().unwrap();
    let ran = finish(ran).exits(exit::ENVIRONMENT);
    assert!(ran.err.contains("No space left"), "{ran:?}");
}

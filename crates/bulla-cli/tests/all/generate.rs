use crate::support::{Place, Ran, bulla, command, exit, finish, parse_lines};
use std::io::{Read, Write};
use std::process::{Command, Stdio};

const WORKLOADS: [&str; 9] =
    ["gdpr", "gdpr-50", "json", "web", "web-subjects", "web-adversarial", "integrity", "slow", "tenants"];

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
        let generated = parse_lines(&generated.out);
        for (number, (entry, generated)) in entries.iter_mut().zip(&generated).enumerate() {
            let members = entry.as_object_mut().unwrap();
            assert_eq!(members.remove("entry").unwrap(), number);
            if generated.get("time").is_none() {
                assert!(members.remove("time").is_some(), "when it was appended");
            }
        }
        assert_eq!(entries, generated, "{workload}");
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

/// What `tenants` is held against: the bytes that another tool makes of its lines.
#[test]
fn gzip_makes_of_the_lines_of_tenants_what_it_is_said_to() {
    let lines = generate("tenants", &["--entries", "100000"]).exits(exit::DONE).out;
    let mut gzip = Command::new("gzip");
    let mut gzip = gzip.arg("-1").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = gzip.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()).unwrap());
    let compressed = gzip.wait_with_output().unwrap().stdout;
    writer.join().unwrap();
    let each = compressed.len() as f64 / 100_000.0;
    assert!((21.5..22.1).contains(&each), "{each} bytes an entry");
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

//! Ready maps on records as the programs' own documents show them, with the entry that comes of each.
//!
//! In `ready/NAME.txt` a record's lines begin with `< `, and after them stands `> ` and the entry, or `! ` and the reason.

use super::*;
use std::collections::BTreeSet;

macro_rules! examples {
    ($($name:literal,)*) => { [$(($name, include_str!(concat!("ready/", $name, ".txt")))),*] };
}

const EXAMPLES: [(&str, &str); 24] = examples! {
    "apache",
    "apache-error",
    "audit",
    "aws-cloudtrail",
    "combined",
    "common",
    "csv",
    "ecs",
    "journal-export",
    "journal-json",
    "json",
    "kubernetes-audit",
    "logfmt",
    "mysql-audit",
    "nginx",
    "nginx-error",
    "ocsf",
    "opentelemetry",
    "postgresql",
    "raw",
    "redis-monitor",
    "sshd",
    "sudo",
    "syslog",
};

#[test]
fn ready_maps_make_the_entries_that_are_expected_of_real_records() {
    let mut wrong = String::new();
    for (name, text) in EXAMPLES {
        let map = Map::ready(name).unwrap_or_else(|| panic!("{name} is a ready map"));
        let (records, expected) = read(text);
        assert_eq!(records.len(), expected.len(), "{name}: each record has what is expected of it");
        for ((record, made), expected) in records.iter().zip(made(&map, &records)).zip(expected) {
            if made != expected {
                let record = String::from_utf8_lossy(record);
                wrong += &format!(
                    "{name}\n< {}\n{made}\nbut expected\n{expected}\n\n",
                    record.replace('\n', "\n< ")
                );
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Records and what is expected of them.
fn read(text: &str) -> (Vec<Vec<u8>>, Vec<String>) {
    let (mut records, mut expected) = (Vec::new(), Vec::new());
    let mut is_within = false;
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match line.strip_prefix("< ").or(line.strip_prefix('<')) {
            Some(line) if is_within => {
                let record: &mut Vec<u8> = records.last_mut().unwrap();
                record.push(b'\n');
                record.extend_from_slice(line.as_bytes());
            }
            Some(line) => {
                records.push(line.as_bytes().to_vec());
                is_within = true;
            }
            None => {
                expected.push(line.to_owned());
                is_within = false;
            }
        }
    }
    (records, expected)
}

#[test]
fn every_ready_map_says_what_it_is_of_and_has_examples() {
    let ready = Map::list_ready().iter().map(|ready| ready.name).collect::<BTreeSet<_>>();
    assert_eq!(ready, EXAMPLES.iter().map(|(name, _)| *name).collect());
    assert_eq!(ready.len(), Map::list_ready().len(), "no name is there twice");
    for Ready { name, description, toml } in Map::list_ready() {
        assert_eq!(Map::ready(name).unwrap().name(), *name);
        assert!(!description.is_empty() && description.len() <= 80, "{name}");
        let comment = toml.lines().take_while(|line| line.starts_with('#')).collect::<Vec<_>>().join(" ");
        assert!(
            comment.contains("Data subjects: ") && comment.to_lowercase().contains("not known: "),
            "{name}"
        );
    }
    assert!(Map::ready("nothing").is_none());
    for format in Format::ALL {
        let map = Map::for_format(format);
        assert_eq!(map.format(), format);
        assert_eq!(
            map.unparsed(b"nonsense", &Context { now: NOW }),
            None,
            "{format}: what does not fit is refused"
        );
    }
}

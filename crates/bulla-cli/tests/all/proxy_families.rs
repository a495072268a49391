//! `docs/proxy.md`: which commands leave no entry, of all that a running redis-server has.

use crate::proxied::Proxied;
use crate::proxy_document::{DOCUMENT, quoted};
use crate::proxy_oracle::reply;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufReader, Read, Write};
use std::net::Shutdown;

/// The rows of what is not covered that are about commands without entries.
const ROWS: [&str; 4] = ["| channels (", "| connection (", "| transactions (", "| the server ("];

/// Commands that have to be written in another way than with as many ones as they have to have arguments.
const WRITTEN: [(&str, &str); 12] = [
    ("debug", "DEBUG SLEEP 0"),
    ("eval", "EVAL x 1 k"),
    ("failover", "FAILOVER ABORT"),
    ("geosearch", "GEOSEARCH k FROMMEMBER m BYRADIUS 1 km"),
    ("memory|usage", "MEMORY USAGE k"),
    ("migrate", "MIGRATE 127.0.0.1 1 k 0 10"),
    ("replicaof", "REPLICAOF NO ONE"),
    ("shutdown", "SHUTDOWN ABORT"),
    ("slaveof", "SLAVEOF NO ONE"),
    ("sort", "SORT k"),
    ("xread", "XREAD STREAMS k 0"),
    ("xreadgroup", "XREADGROUP GROUP g c STREAMS k >"),
];

/// All commands of a server, and subcommands of those that have some, each as it is sent.
fn commands(table: &Value, into: &mut BTreeMap<String, String>) {
    for command in table.as_array().unwrap() {
        match command.get(9).and_then(Value::as_array) {
            Some(of_it) if !of_it.is_empty() => commands(&command[9], into),
            _ => {
                let name = command[0].as_str().unwrap();
                let words = name.split('|').count();
                let arity = command[1].as_str().unwrap().trim_start_matches('-').parse::<usize>().unwrap();
                let written = WRITTEN.iter().find(|(known, _)| *known == name);
                let written = written.map_or_else(
                    || name.replace('|', " ") + &" 1".repeat(arity.saturating_sub(words)),
                    |(_, written)| (*written).to_owned(),
                );
                into.insert(name.to_owned(), written);
            }
        }
    }
}

#[test]
fn the_commands_that_leave_no_entry_are_those_that_the_document_names() {
    let record = ["scripts", "patterns", "whole", "undescribed", "too_many", "administrative"];
    let policy = record.map(|key| format!("{key} = \"record\"\n")).concat();
    let proxied = Proxied::start("claims = [\"default\"]", &format!("[policy]\n{policy}"));
    let mut server = BufReader::new(proxied.around());
    server.get_mut().write_all(b"COMMAND\r\n").unwrap();
    let mut all = BTreeMap::new();
    commands(&reply(&mut server), &mut all);
    assert!(all.len() > 300, "{}", all.len());
    for (name, written) in &all {
        // Each of them has a connection, and is the purpose of its entries.
        let mut client = proxied.connect();
        client.write_all(format!("BULLA.PURPOSE {name}\r\n{written}\r\n").as_bytes()).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut replies = Vec::new();
        // A server closes some without a reply.
        let _ = client.read_to_end(&mut replies);
        assert!(replies.starts_with(b"+OK\r\n"), "{name}: {}", String::from_utf8_lossy(&replies));
    }
    let entries = proxied.entries();
    let recorded = entries.iter().filter_map(|(entry, _)| entry["purpose"].as_str()).collect::<BTreeSet<_>>();
    let none = all.keys().map(String::as_str).filter(|name| !recorded.contains(name));
    let none = none.map(|name| name.replace('|', " ").to_uppercase()).collect::<BTreeSet<_>>();

    let section = DOCUMENT.split("\n## What is not covered\n").nth(1).expect("the document has the section");
    let rows = ROWS.map(|row| section.lines().find(|line| line.starts_with(row)).expect(row));
    let named = rows.into_iter().flat_map(quoted).collect::<BTreeSet<_>>();
    let is_named = |name: &String| {
        let (container, sub) = name.split_once(' ').unwrap_or((name, ""));
        named.contains(name) || named.contains(container) || sub == "HELP" && named.contains(sub)
    };
    let unnamed = none.iter().filter(|name| !is_named(name)).collect::<Vec<_>>();
    assert!(unnamed.is_empty(), "these leave no entry, and the document does not say so: {unnamed:?}");
    let leaves_some = |named: &&String| {
        let of_it = format!("{named} ");
        let mut its = all.keys().map(|name| name.replace('|', " ").to_uppercase());
        its.any(|name| (name == **named || name.starts_with(&of_it)) && !none.contains(&name))
    };
    let recorded = named.iter().filter(leaves_some).collect::<Vec<_>>();
    assert!(
        recorded.is_empty(),
        "these leave entries, and the document says that they leave none: {recorded:?}"
    );
}

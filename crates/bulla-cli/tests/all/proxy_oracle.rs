//! The entries of a running proxy, held against the keys that the server itself names (`COMMAND GETKEYSANDFLAGS`): of each command of
//! `docs/proxy.md`, alone, in a transaction, in another database; and of a thousand connections.

use crate::proxied::Proxied;
use crate::proxy_document::rows;
use crate::support::not_tested;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;

/// Of each key whether it is read, and whether it is changed.
type Uses = BTreeMap<String, (bool, bool)>;

/// Where entries differ from what the server says of the command, and why.
const DIFFERS: [(&str, &str); 4] = [
    ("GETEX a", "without an option it changes nothing"),
    ("KEYS *", "the reply names the keys"),
    ("RANDOMKEY", "the reply names the key"),
    ("SCAN 0", "the reply names the keys"),
];

/// One reply of a server.
pub(crate) fn reply(from: &mut impl BufRead) -> Value {
    let mut line = String::new();
    from.read_line(&mut line).unwrap();
    let (kind, text) = line.trim_end().split_at(1);
    match kind {
        "*" => (0..text.parse::<i64>().unwrap()).map(|_| reply(from)).collect(),
        "$" => {
            let mut bytes = vec![0; text.parse::<usize>().unwrap() + 2];
            from.read_exact(&mut bytes).unwrap();
            String::from_utf8_lossy(&bytes).trim_end().into()
        }
        "-" => json!({ "error": text }),
        _ => text.into(),
    }
}

/// The keys of a command, as the server says.
fn by_server(server: &mut BufReader<UnixStream>, command: &str) -> Uses {
    server.get_mut().write_all(format!("COMMAND GETKEYSANDFLAGS {command}\r\n").as_bytes()).unwrap();
    let keys = reply(server);
    let keys = keys.as_array().into_iter().flatten();
    let mut uses = Uses::new();
    for key in keys {
        let has = |words: &[&str]| words.iter().any(|word| key[1].as_array().unwrap().contains(&json!(word)));
        let used = uses.entry(key[0].as_str().unwrap().to_owned()).or_default();
        used.0 |= has(&["RO", "access"]);
        used.1 |= !has(&["RO"]) && has(&["update", "insert", "delete"]);
    }
    uses
}

#[test]
fn every_key_has_its_entries_alone_in_transactions_and_in_another_database() {
    let proxied = Proxied::start(
        "",
        "[policy]\nscripts = \"record\"\npatterns = \"record\"\n[[rules]]\nkey = \"{subject}*\"",
    );
    let mut server = BufReader::new(proxied.around());
    // What ends the connection's transaction, or begins one, cannot stand in another.
    let alone = |commands: &[String]| commands.iter().any(|it| it == "MULTI" || it.starts_with("WATCH"));
    let rows = rows().into_iter().map(|(commands, _)| commands).filter(|commands| !alone(commands));
    let rows = rows.collect::<Vec<_>>();
    let mut expected = Vec::new();
    let mut sent = String::new();
    for (database, before, after) in
        [(0, "PING", "PING"), (0, "MULTI", "EXEC"), (3, "SELECT 3", "PING"), (3, "SELECT 3\r\nMULTI", "EXEC")]
    {
        for commands in &rows {
            let _ = write!(sent, "CLIENT SETNAME row-{}\r\nSELECT 0\r\n", expected.len());
            let _ = write!(sent, "{before}\r\n{}\r\n{after}\r\n", commands.join("\r\n"));
            expected.push((database, commands.clone()));
        }
    }
    proxied.quit_after(&sent);
    let expected = expected.into_iter().map(|(database, commands)| {
        let mut uses = Uses::new();
        for (key, used) in commands.iter().flat_map(|command| by_server(&mut server, command)) {
            let both = uses.entry(key).or_default();
            *both = (both.0 || used.0, both.1 || used.1);
        }
        (database, commands, uses)
    });
    let expected = expected.collect::<Vec<_>>();

    let mut found = vec![(Uses::new(), BTreeSet::new()); expected.len()];
    for (entry, payload) in proxied.entries() {
        let number = payload["claimed_name"].as_str().and_then(|name| name.strip_prefix("row-"));
        let (uses, databases) = &mut found[number.unwrap().parse::<usize>().unwrap()];
        let Some(key) = entry["location"].as_str() else { continue };
        assert_eq!(entry["subject"], key, "each key is its own subject's");
        let used = uses.entry(key.to_owned()).or_default();
        *if entry["operation"] == "read" { &mut used.0 } else { &mut used.1 } = true;
        databases.insert(payload["database"].as_u64().unwrap());
    }
    let mut different = BTreeMap::new();
    for ((database, commands, uses), (found, databases)) in expected.iter().zip(&found) {
        let moves = commands.iter().any(|it| it.starts_with("MOVE"));
        assert!(moves || databases.iter().all(|it| it == database), "{commands:?}: {databases:?}");
        if uses != found {
            let why = format!("{found:?}, and the server says {uses:?}");
            different.insert(commands.join(", "), why);
        }
    }
    let known = DIFFERS.map(|(command, _)| command);
    assert!(different.keys().eq(&known), "{different:#?}");
}

#[test]
fn a_thousand_connections_have_the_entries_of_each() {
    const CONNECTIONS: u64 = 1000;
    // A connection has a descriptor here, and two in the proxy, which inherits the limit.
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let wanted = 4 * CONNECTIONS;
    if maximum.is_some_and(|maximum| maximum < wanted) {
        return not_tested("a thousand connections at once", "fewer files may be open");
    }
    let current = getrlimit(Resource::Nofile).current;
    if current.is_some_and(|current| current < wanted) {
        setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }).unwrap();
    }
    let proxied = Proxied::start("", "[[rules]]\nkey = \"user:{subject}*\"");
    let mut clients = (0..CONNECTIONS).map(|_| proxied.connect()).collect::<Vec<_>>();
    // Everybody is there before anybody is answered to the end.
    for (number, client) in clients.iter_mut().enumerate() {
        let key = format!("user:{number}");
        let lines = format!("SET {key} v\r\nGET {key}\r\nMULTI\r\nINCR {key}:n\r\nEXEC\r\nLPUSH {key} x\r\n");
        client.write_all(lines.as_bytes()).unwrap();
    }
    let mut addresses = BTreeMap::new();
    for (number, client) in clients.iter_mut().enumerate() {
        client.write_all(b"QUIT\r\n").unwrap();
        addresses.insert(number.to_string(), client.local_addr().unwrap().to_string());
        let mut replies = String::new();
        client.read_to_string(&mut replies).unwrap();
        assert!(replies.contains("$1\r\nv\r\n") && replies.contains("-WRONGTYPE"), "{replies}");
    }
    let mut found = BTreeMap::<String, Vec<String>>::new();
    for (entry, _) in proxied.entries() {
        let subject = entry["subject"].as_str().unwrap();
        assert_eq!(entry["client"], *addresses[subject]);
        let told = format!("{} {}", entry["operation"].as_str().unwrap(), entry["status"]);
        found.entry(subject.to_owned()).or_default().push(told);
    }
    assert_eq!(found.len() as u64, CONNECTIONS);
    for (subject, told) in found {
        assert_eq!(told, ["write 0", "read 0", "read 0", "write 0", "write 1"], "{subject}");
    }
}

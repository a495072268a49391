//! A proxy that is killed while clients write: what its mode promises of the entries is so.

use crate::proxied::{Proxied, exported};
use crate::support::exit;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::sync::mpsc;

const CLIENTS: usize = 4;
/// So many replies come before it is killed.
const REPLIES: usize = 300;

/// Kills a proxy of this mode under load. The keys of which a client was told that they were written, those that the server has, and those that
/// the log has entries of, with the stage that the entry says.
fn kill(mode: &str) -> (BTreeSet<String>, BTreeSet<String>, BTreeSet<(String, String)>) {
    let mut proxied = Proxied::start(&format!("mode = \"{mode}\""), "[[rules]]\nkey = \"user:{subject}*\"");
    let (sender, replies) = mpsc::channel();
    let clients = (0..CLIENTS).map(|number| {
        let (mut client, sender) = (proxied.connect(), sender.clone());
        std::thread::spawn(move || {
            for count in 0.. {
                let key = format!("user:{}:{number}-{count}", count % 10);
                let mut reply = [0; 5];
                let sent = client.write_all(format!("SET {key} v\r\n").as_bytes());
                if sent.and_then(|()| client.read_exact(&mut reply)).is_err() {
                    break;
                }
                assert_eq!(&reply, b"+OK\r\n");
                sender.send(key).unwrap();
            }
        })
    });
    let clients = clients.collect::<Vec<_>>();
    drop(sender);
    let mut told = replies.iter().take(REPLIES).collect::<BTreeSet<_>>();
    proxied.kill();
    told.extend(replies);
    clients.into_iter().for_each(|client| client.join().unwrap());
    let mut server = proxied.around();
    server.write_all(b"KEYS *\r\nQUIT\r\n").unwrap();
    let mut stored = String::new();
    server.read_to_string(&mut stored).unwrap();
    let stored = stored.lines().filter(|line| line.starts_with("user:")).map(str::to_owned).collect();
    // Whoever opens the log takes over what is whole of it.
    proxied.place.append(&[], b"").exits(exit::DONE);
    let entries = exported(&proxied.place).into_iter().map(|(entry, payload)| {
        let stage = payload["stage"].as_str().unwrap_or("over");
        (entry["location"].as_str().unwrap().to_owned(), stage.to_owned())
    });
    (told, stored, entries.collect())
}

#[test]
fn before_reply_nobody_was_told_a_result_that_the_log_has_not() {
    let (told, stored, entries) = kill("before-reply");
    assert!(told.len() >= REPLIES && told.is_subset(&stored));
    let missing = told.iter().filter(|key| !entries.contains(&((*key).clone(), "over".to_owned())));
    assert_eq!(missing.collect::<Vec<_>>(), Vec::<&String>::new());
}

#[test]
fn before_send_the_server_has_nothing_that_the_log_has_no_intent_of() {
    let (told, stored, entries) = kill("before-send");
    assert!(told.len() >= REPLIES && told.is_subset(&stored));
    let missing = stored.iter().filter(|key| !entries.contains(&((*key).clone(), "intended".to_owned())));
    assert_eq!(missing.collect::<Vec<_>>(), Vec::<&String>::new());
}

#[test]
fn at_once_every_entry_is_of_what_was_done() {
    let (told, stored, entries) = kill("async");
    assert!(told.len() >= REPLIES && told.is_subset(&stored));
    assert!(entries.iter().all(|(key, stage)| stage == "over" && stored.contains(key)));
}

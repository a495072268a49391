//! What must hold of the table of commands: beside a server's own answers, and of each parser by known answers.

mod hostile;
mod oracle;
mod outcomes;
mod parsers;
mod tables;
mod tree;

use super::{Access, CommandTable, Effect, KeyUse, Unknowable};
use crate::fuzzing::ALL;
use crate::resp::{Arguments, Digest, Limits, Replies, Reply, Requests, write_command};
use crate::world::{Connection, Server};

fn encode(words: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_command(&words.iter().map(AsRef::as_ref).collect::<Vec<_>>(), &mut bytes);
    bytes
}

fn parse(
    words: &[impl AsRef<[u8]>],
    limits: Limits,
    keep: impl Fn(&Arguments, u64, u64) -> (usize, Digest),
) -> Arguments {
    let mut requests = Requests::new(limits, [0; 32]);
    let progress = requests.next(&encode(words), keep).unwrap();
    assert!(progress.complete);
    requests.arguments().clone()
}

/// A command of which everything was kept.
fn arguments(words: &[impl AsRef<[u8]>]) -> Arguments {
    parse(words, ALL, |_, _, length| (usize::try_from(length).unwrap(), Digest::None))
}

/// The words of a line; `""` is an empty one.
fn words(line: &str) -> Vec<&str> {
    line.split(' ').map(|word| if word == "\"\"" { "" } else { word }).collect()
}

/// A server, and a connection to it.
fn server() -> (Server, Connection) {
    let server = Server::start();
    let connection = server.connect();
    (server, connection)
}

fn ask(client: &mut Connection, words: &[impl AsRef<[u8]>]) -> Reply {
    client.ask(&encode(words))
}

fn reply(bytes: &[u8]) -> Reply {
    reply_within(bytes, ALL)
}

fn reply_within(bytes: &[u8], limits: Limits) -> Reply {
    let mut replies = Replies::new(limits);
    assert!(replies.next(bytes).unwrap().complete);
    replies.reply().clone()
}

/// Its keys as `1r 2w`, those in databases that it names as `1c@3`, and why there may be more.
fn told(effect: &Effect) -> String {
    let mut told: Vec<String> = effect.keys.iter().map(one).collect();
    told.extend(effect.unknowable.map(|why| {
        match why {
            Unknowable::Script => "script",
            Unknowable::Pattern => "pattern",
            Unknowable::Whole => "whole",
            Unknowable::Undescribed => "undescribed",
            Unknowable::TooMany => "too many",
        }
        .to_owned()
    }));
    told.join(" ")
}

fn one(used: &KeyUse) -> String {
    let database = used.database.map(|number| format!("@{number}")).unwrap_or_default();
    format!("{}{}{database}", used.argument, letter(used.access))
}

fn letter(access: Access) -> char {
    match access {
        Access::Create => 'c',
        Access::Read => 'r',
        Access::Write => 'w',
        Access::Update => 'u',
        Access::Delete => 'd',
    }
}

fn effect(line: &str) -> Effect {
    CommandTable::pinned().effect(&arguments(&words(line)))
}

//! What would be recorded of the commands of a capture of `MONITOR`, by a configuration and with no server: `--dry-run`.
//!
//! A capture has no replies. So every command counts as carried out, nothing is told of errors and of what a reply makes more exact
//! (`write` stays `write`), and who a client is does not stand there either. A server leaves out of it what only administrators
//! may do. What a script or a function called is in it, but never passes a proxy: it is told as [`Fate::Unseen`]. Keys that are too
//! long for an entry have another digest than they would have in a log.

mod show;
#[cfg(test)]
mod tests;

pub use show::table;

use crate::command::{Class, CommandTable, Effect, Unknowable};
use crate::config::Config;
use crate::counters::RefusedCommand;
use crate::monitor::{Client, Monitor, MonitorError, Seen};
use crate::recorder::learning;
use crate::resp::{Arguments, Requests};
use crate::session::{CarriedOut, Context};
use crate::subject::{Answer, Key, Learned, Rules, Span, Whose};
use serde::Serialize;
use std::collections::VecDeque;
use std::io::{self, BufRead};

/// What would become of a command, or an entry that there would be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The line of the capture, from 1 on.
    pub line: u64,
    /// When the server got the command.
    #[serde(serialize_with = "show::time")]
    pub time: u64,
    /// From whom, as the capture says.
    pub client: String,
    /// The database in which the key lies; without a key that of the client.
    pub database: u32,
    /// The command in small letters; as the client wrote it, where the table does not have it.
    pub command: String,
    /// The entry's word for what is done; of what would be refused, the one of the entry that there would be otherwise.
    pub operation: String,
    /// The key in the form that it has in entries; none where no key is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// Whose data it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Who says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mapping: Option<Mapping>,
    /// What would become of it.
    pub fate: Fate,
    /// The key of the configuration that would have it refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused_by: Option<String>,
}

/// Who says whose data a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mapping {
    /// A rule.
    Rule,
    /// `default_subject`.
    Default,
    /// Nobody: its entry would have no subject.
    Unmapped,
    /// Nobody, for the key is longer than what would be kept of it.
    Undecided,
}

/// What would become of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// It would be recorded.
    Recorded,
    /// It would be answered with an error, and not be carried out.
    Refused,
    /// It is a script's or a function's own: no proxy sees it.
    Unseen,
}

/// How many there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Commands of clients.
    pub commands: u64,
    /// Of these, such that touch no data: nothing is recorded of them.
    pub without_data: u64,
    /// Of these, such that would be refused.
    pub refused: u64,
    /// Commands that scripts and functions called.
    pub unseen: u64,
    /// Entries; of a command whose reply names keys one, where there would be one a key.
    pub entries: u64,
    /// Of these, such with a key of which nobody says whose data it is.
    pub unmapped: u64,
    /// Lines that say no command.
    pub unreadable: u64,
}

/// Reads a capture row by row. Memory is bounded by its longest line and by what the configuration has for what is learned.
pub struct DryRun<'a> {
    monitor: Monitor<'a>,
    proxy: Proxy,
    requests: Requests,
    rows: VecDeque<Row>,
    tally: Tally,
}

/// What a proxy with the configuration knows.
struct Proxy {
    context: Context,
    rules: Rules,
    learned: Learned,
}

impl<'a> DryRun<'a> {
    /// Of a capture, by a configuration and the commands of Redis 7.0.
    pub fn new(config: &Config, capture: &'a mut dyn BufRead) -> Self {
        let key = [0; 32];
        let context = Context::new(config, CommandTable::pinned(), key);
        DryRun {
            monitor: Monitor::new(capture),
            requests: Requests::new(context.request_limits(), key),
            proxy: Proxy {
                context,
                rules: Rules::new(config.rules.clone(), config.default_subject.clone(), key),
                learned: Learned::new(config.limits.learned),
            },
            rows: VecDeque::new(),
            tally: Tally::default(),
        }
    }

    /// The next row; `None` at the end.
    ///
    /// # Errors
    /// What cannot be read; in the inner result a line that says no command, behind which it goes on.
    pub fn next_row(&mut self) -> io::Result<Option<Result<Row, MonitorError>>> {
        loop {
            if let Some(row) = self.rows.pop_front() {
                return Ok(Some(Ok(row)));
            }
            match self.monitor.next_command()? {
                None => return Ok(None),
                Some(Err(error)) => {
                    self.tally.unreadable += 1;
                    return Ok(Some(Err(error)));
                }
                Some(Ok(seen)) => self.command(&seen),
            }
        }
    }

    /// What there was in the lines that are read by now.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    fn command(&mut self, seen: &Seen) {
        let Self { proxy, requests, .. } = self;
        let context = &proxy.context;
        let whole =
            requests.next(&seen.request(), |so_far, index, length| context.keep(so_far, index, length));
        // A line says one command with one argument at least, and the most that it has room for is far fewer than there may be.
        if !whole.is_ok_and(|progress| progress.complete) {
            return;
        }
        let arguments = requests.arguments();
        let time = i64::try_from(seen.time / 1_000_000).unwrap_or(i64::MAX);
        let effect = context.table.effect(arguments);
        let effect = effect.between(|| (time, time));
        let rows = proxy.rows(self.monitor.line(), seen, arguments, &effect);
        let tally = &mut self.tally;
        if seen.client == Client::Script {
            tally.unseen += 1;
        } else {
            tally.commands += 1;
            tally.without_data += u64::from(rows.is_empty());
            tally.refused += u64::from(rows.iter().any(|row| row.fate == Fate::Refused));
        }
        let recorded = rows.iter().filter(|row| row.fate == Fate::Recorded);
        tally.entries += recorded.clone().count() as u64;
        let nobodys = |row: &&Row| matches!(row.mapping, Some(Mapping::Unmapped | Mapping::Undecided));
        tally.unmapped += recorded.filter(nobodys).count() as u64;
        self.rows.extend(rows);
    }
}

impl Proxy {
    fn rows(&self, line: u64, seen: &Seen, arguments: &Arguments, effect: &Effect) -> Vec<Row> {
        let command = match self.context.table.name(effect.command) {
            Some(name) => name.to_owned(),
            None => String::from_utf8_lossy(arguments.get(0).unwrap_or_default()).to_lowercase(),
        };
        let unseen = seen.client == Client::Script;
        let row = |operation: &str| Row {
            line,
            time: seen.time,
            client: match &seen.client {
                Client::Tcp(address) => address.clone(),
                Client::Unix(path) => format!("unix:{path}"),
                Client::Script => "lua".to_owned(),
            },
            database: seen.database,
            command: command.clone(),
            operation: operation.to_owned(),
            location: None,
            subject: None,
            mapping: None,
            fate: if unseen { Fate::Unseen } else { Fate::Recorded },
            refused_by: None,
        };
        if let Some(why) = self.context.policy.refusal(effect).filter(|_| !unseen) {
            let by = format!("policy.{}", why.name());
            let operation =
                if why == RefusedCommand::Administrative { "administer" } else { unknown(effect) };
            return vec![Row { fate: Fate::Refused, refused_by: Some(by), ..row(operation) }];
        }
        // A capture has commands in the order in which they were carried out.
        let carried_out = CarriedOut {
            command: &command,
            arguments,
            effect,
            database: seen.database,
            answer: DONE,
            created: false,
            leaves_none: true,
            span: Span { came: line, answered: line, connection: 0 },
        };
        let contested = !unseen && learning::learn(&self.rules, &self.learned, &carried_out).contested;
        let mut rows = Vec::new();
        for used in &effect.keys {
            let (Some(key), Some(argument)) =
                (arguments.get(used.argument), arguments.argument(used.argument))
            else {
                continue;
            };
            let database = used.database.unwrap_or(seen.database);
            let known = Key { bytes: key, whole: arguments.is_whole(used.argument) };
            let (subject, mapping) = match self.rules.whose(database, known, &self.learned) {
                Whose::Subject(subject) => (Some(subject.into_owned()), Mapping::Rule),
                Whose::Default(subject) => (Some(subject.to_owned()), Mapping::Default),
                Whose::Unmapped => (None, Mapping::Unmapped),
                Whose::Undecided => (None, Mapping::Undecided),
            };
            let location = self.rules.location(key, argument.length, argument.digest.as_ref());
            rows.push(Row {
                database,
                location: Some(location.into_owned()),
                subject,
                mapping: Some(mapping),
                ..row(used.access.word())
            });
        }
        if effect.unknowable.is_some() {
            rows.push(row(unknown(effect)));
        }
        if effect.administrative {
            rows.push(row("administer"));
        }
        if effect.class == Class::Listing {
            rows.push(row("list"));
        }
        if !unseen {
            learning::forget(&self.learned, &carried_out, contested);
        }
        rows
    }
}

/// The word of an entry that says that nobody knows which keys a command used.
fn unknown(effect: &Effect) -> &'static str {
    if effect.unknowable == Some(Unknowable::Script) { "execute" } else { "access" }
}

/// The answer of a server that did what it was asked for.
const DONE: Answer = Answer::Integer(1);

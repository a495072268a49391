//! GDPRbench's roles, carried out by one client: how long each takes, and whether the log says afterwards what the client did.
//!
//! A condition on metadata is answered as GDPRbench's own client of Redis does it: all keys are asked for, and all fields of each; the
//! records of which it is so are what counts. The reads of one condition are sent a few hundred at once. The client keeps whose data each
//! key is, by what it wrote itself, and counts the entries that each person has to have.

use super::client::{Client, Reply};
use super::figure;
use super::server::Server;
use super::setup::Setup;
use super::way::{Route, Way};
use crate::outcome::{Failure, Outcome};
use bulla_workload::gdprbench::{Condition, DATA, Gdprbench, METADATA, Operation, Record, Role};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::Instant;

/// Commands that are sent before their replies are waited for.
const WINDOW: usize = 256;
/// What the field with the data subject is called.
const SUBJECT: &str = "USR";

/// A role, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Asking(pub(crate) Role);

impl From<Asking> for String {
    fn from(asking: Asking) -> String {
        asking.0.name().to_owned()
    }
}

impl TryFrom<String> for Asking {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let found = Role::ALL.into_iter().find(|role| role.name() == name);
        found.map(Asking).ok_or_else(|| format!("there is no role `{name}`"))
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Asked {
    pub(crate) role: Asking,
    pub(crate) way: Way,
    /// Records that are there when the role begins.
    pub(crate) records: u32,
    pub(crate) operations: u64,
    pub(crate) seed: u64,
    pub(crate) setup: Setup,
}

pub(crate) fn run(asked: &Asked, place: &Path) -> Result<Outcome, Failure> {
    let Asked { role, way, records, operations, seed, setup } = asked;
    setup.apply()?;
    let server = Server::start(place)?;
    let route = Route::open(*way, &server, setup, place)?;
    let mut generator = Gdprbench::new(role.0, *seed, *records);
    let mut store = Store::new(Client::connect(route.port())?);

    let start = Instant::now();
    let mut left = *records as usize;
    while left > 0 {
        let count = left.min(WINDOW / 2);
        store.create((0..count).map(|_| generator.next_record()))?;
        left -= count;
    }
    let loaded = start.elapsed();
    let before = store.commands;
    let start = Instant::now();
    for _ in 0..*operations {
        store.carry_out(generator.next_operation())?;
    }
    let taken = start.elapsed().as_secs_f64();

    let mut outcome = Outcome::default();
    outcome.set("load_seconds", loaded.as_secs_f64());
    outcome.set(figure::COMPLETION, taken);
    outcome.set("operations_per_second", *operations as f64 / taken);
    outcome.set(figure::COMMANDS, (store.commands - before) as f64);
    outcome.set("subjects", store.entries.keys().flatten().count() as f64);
    let entries = store.entries.values().sum();
    if let Some(ended) = route.close(entries, &mut outcome)? {
        compare(&ended.subjects()?, &store.entries)?;
    }
    Ok(outcome)
}

/// That the log has, of everybody and of nobody, as many entries as there have to be.
fn compare(
    logged: &BTreeMap<Option<String>, u64>,
    expected: &BTreeMap<Option<String>, u64>,
) -> Result<(), Failure> {
    let of = |counts: &BTreeMap<_, _>, subject: &Option<String>| counts.get(subject).copied().unwrap_or(0);
    let mut different = logged
        .keys()
        .chain(expected.keys())
        .filter(|subject| of(logged, subject) != of(expected, subject))
        .map(|subject| {
            let who = subject.as_deref().unwrap_or("nobody");
            let (logged, expected) = (of(logged, subject), of(expected, subject));
            format!("of {who} the log has {logged} entries, and there have to be {expected}")
        });
    different.next().map_or(Ok(()), |first| Err(first.into()))
}

/// The store, and what the log has to have of it.
struct Store {
    client: Client,
    commands: u64,
    /// Whose data a key is.
    owners: HashMap<String, String>,
    /// Of each data subject, and of nobody.
    entries: BTreeMap<Option<String>, u64>,
}

impl Store {
    fn new(client: Client) -> Self {
        Store { client, commands: 0, owners: HashMap::new(), entries: BTreeMap::new() }
    }

    fn carry_out(&mut self, operation: Operation) -> Result<(), Failure> {
        match operation {
            Operation::Create(record) => self.create([record]),
            Operation::DeleteBy(condition) => {
                let keys = self.having(&condition)?;
                self.for_each(&keys, |store, key| {
                    store.on_key(key, &["DEL", key]);
                    store.owners.remove(key);
                })
            }
            Operation::ChangeBy(condition, to) => {
                let keys = self.having(&condition)?;
                self.for_each(&keys, |store, key| store.on_key(key, &["HSET", key, to.field, &to.value]))
            }
            Operation::ReadBy(condition) => self.having(&condition).map(drop),
            Operation::ReadData(key) => self.one(&key, &["HGET", &key, DATA]),
            Operation::ReadMetadata(key) => {
                let mut command = vec!["HMGET", &key];
                command.extend(METADATA);
                self.one(&key, &command)
            }
            Operation::ChangeData(key, data) => self.one(&key, &["HSET", &key, DATA, &data]),
            Operation::ChangeMetadata(key, to) => self.one(&key, &["HSET", &key, to.field, &to.value]),
            Operation::Delete(key) => {
                self.one(&key, &["DEL", &key])?;
                self.owners.remove(&key);
                Ok(())
            }
            Operation::ReadLogs => {
                self.push(&["SLOWLOG", "GET", "128"]);
                self.count(None);
                self.client.receive().map(drop)
            }
            Operation::VerifyDeletion(key) => self.one(&key, &["EXISTS", &key]),
        }
    }

    fn create(&mut self, records: impl IntoIterator<Item = Record>) -> Result<(), Failure> {
        let mut sent = 0;
        for Record { key, fields, time_to_live } in records {
            if let Some((_, subject)) = fields.iter().find(|(field, _)| *field == SUBJECT) {
                self.owners.insert(key.clone(), subject.clone());
            }
            let mut command = vec!["HSET", &key];
            command.extend(fields.iter().flat_map(|(field, value)| [*field, value.as_str()]));
            self.on_key(&key, &command);
            self.on_key(&key, &["EXPIRE", &key, &time_to_live.to_string()]);
            sent += 2;
        }
        self.receive(sent)
    }

    /// The keys of all records of which something is so.
    fn having(&mut self, condition: &Condition) -> Result<Vec<String>, Failure> {
        self.push(&["KEYS", "key*"]);
        let keys = texts(self.client.receive()?)?;
        for key in &keys {
            self.count(self.owners.get(key).cloned());
        }
        let mut found = Vec::new();
        for window in keys.chunks(WINDOW) {
            window.iter().for_each(|key| self.on_key(key, &["HGETALL", key]));
            for key in window {
                let fields = texts(self.client.receive()?)?;
                let is = |pair: &[String]| pair[0] == condition.field && pair[1] == condition.value;
                if fields.chunks_exact(2).any(is) {
                    found.push(key.clone());
                }
            }
        }
        Ok(found)
    }

    /// Sends a command for each key, of which `send` does, and waits for the replies.
    fn for_each(&mut self, keys: &[String], mut send: impl FnMut(&mut Self, &str)) -> Result<(), Failure> {
        for window in keys.chunks(WINDOW) {
            window.iter().for_each(|key| send(self, key));
            self.receive(window.len())?;
        }
        Ok(())
    }

    /// Carries out a command that uses one key.
    fn one(&mut self, key: &str, command: &[&str]) -> Result<(), Failure> {
        self.on_key(key, command);
        self.receive(1)
    }

    /// Has a command sent that uses one key, and so leaves one entry.
    fn on_key(&mut self, key: &str, command: &[&str]) {
        self.push(command);
        self.count(self.owners.get(key).cloned());
    }

    fn push(&mut self, command: &[&str]) {
        self.client.push(command);
        self.commands += 1;
    }

    fn receive(&mut self, count: usize) -> Result<(), Failure> {
        (0..count).try_for_each(|_| self.client.receive().map(drop))
    }

    fn count(&mut self, subject: Option<String>) {
        *self.entries.entry(subject).or_default() += 1;
    }
}

fn texts(reply: Reply) -> Result<Vec<String>, Failure> {
    let text = |item| match item {
        Reply::Bytes(bytes) => Ok(String::from_utf8(bytes)?),
        other => Err(format!("{other:?} is no text").into()),
    };
    match reply {
        Reply::Items(items) => items.into_iter().map(text).collect(),
        other => Err(format!("{other:?} is no list").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_has_one_entry_too_few_or_of_somebody_else_is_told() {
        let counts = |of: &[(Option<&str>, u64)]| {
            of.iter().map(|(who, count)| (who.map(str::to_owned), *count)).collect::<BTreeMap<_, _>>()
        };
        let expected = counts(&[(Some("usr1"), 3), (None, 1)]);
        compare(&expected, &expected).unwrap();
        for (logged, said) in [
            (
                counts(&[(Some("usr1"), 2), (None, 1)]),
                "of usr1 the log has 2 entries, and there have to be 3",
            ),
            (counts(&[(Some("usr1"), 3)]), "of nobody the log has 0 entries, and there have to be 1"),
            (
                counts(&[(Some("usr1"), 3), (Some("usr2"), 1), (None, 1)]),
                "of usr2 the log has 1 entries, and there have to be 0",
            ),
        ] {
            assert_eq!(compare(&logged, &expected).unwrap_err().to_string(), said);
        }
    }
}

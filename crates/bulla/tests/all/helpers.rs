//! What tests of several places need.

use bulla::control::SubjectKeys;
use bulla::environment::Environment;
use bulla::keys::signing::SigningKey;
use bulla::{HoldOrder, LogId, Reader, ReleaseOrder, default_keys};
pub(crate) use bulla_testkit::Rng;
use bulla_testkit::fault::Fault;
pub(crate) use bulla_testkit::sweep::{in_full, in_turn, one_in};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

/// Whether `fault` can strike the operation of this line of a trace.
pub(crate) fn strikes(fault: Fault, line: &str) -> bool {
    let operation = line.split(' ').nth(1).unwrap_or_default();
    let name = ["Create", "Rename", "Remove", "CreateDirectory", "RemoveDirectory"].contains(&operation);
    match fault {
        Fault::WriteFails | Fault::WritePersistsButFails | Fault::WriteTearsAndFails => operation == "Write",
        Fault::SyncFails | Fault::SyncPersistsButFails => operation.starts_with("Sync"),
        Fault::NameFails | Fault::NamePersistsButFails => name,
        Fault::NoSpace => ["Write", "Create", "CreateDirectory"].contains(&operation),
    }
}

/// Says that something was not tested, where the harness does not keep it to itself.
pub(crate) fn not_tested(what: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "not tested: {what}: {why}");
}

/// What starts a program as the first process of a namespace of its own; `None` where this user may not make one.
pub(crate) fn own_processes() -> Option<Command> {
    let ways: [&[&str]; 2] = [&["--pid", "--fork"], &["--user", "--map-root-user", "--pid", "--fork"]];
    ways.into_iter().find_map(|words| {
        let started = Command::new("unshare").args(words).arg("true").output();
        let mut command = Command::new("unshare");
        command.args(words);
        started.is_ok_and(|output| output.status.success()).then_some(command)
    })
}

/// Raises a flag when dropped: whoever waits for it does not hang where a test fails.
pub(crate) struct Stop<'a>(pub(crate) &'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The methods of a `Store` that nobody writes through.
macro_rules! refuse_writes {
    () => {
        $crate::helpers::refuse_writes!(@
            create(path: &str) -> Box<dyn bulla::store::StoreFile>;
            open_write(path: &str) -> Box<dyn bulla::store::StoreFile>;
            rename(from: &str, to: &str) -> ();
            remove(path: &str) -> ();
            create_directory(path: &str) -> ();
            remove_directory(path: &str) -> ();
            sync_directory(path: &str) -> ();
            lock(path: &str) -> Box<dyn bulla::store::Lock>;
        );
    };
    (@ $($name:ident($($argument:ident: &str),+) -> $returned:ty;)+) => {
        $(
            fn $name(&self, $($argument: &str),+) -> std::io::Result<$returned> {
                $(let _ = $argument;)+
                Err(std::io::ErrorKind::ReadOnlyFilesystem.into())
            }
        )+
    };
}
pub(crate) use refuse_writes;

/// An order to hold somebody of the log in this directory, with the erasure key that lies beside it.
pub(crate) fn hold_order(
    directory: &Path,
    subject: &str,
    by: &str,
    reason: &str,
) -> bulla::Result<HoldOrder> {
    let (key, log) = erasure_key(directory);
    HoldOrder::give(&key, log, subject, (by, reason), &Environment::default())
}

/// An order to release what somebody holds there; where they hold nothing, one that is about nothing.
pub(crate) fn release_order(directory: &Path, subject: &str, by: &str) -> ReleaseOrder {
    let (keys, (key, log)) = (default_keys(directory), erasure_key(directory));
    let names = Arc::new(SubjectKeys::in_directory(&keys, log).unwrap());
    let asked = Reader::open(directory).unwrap().group_keys(names).numbers_of(&[subject]).unwrap();
    let number = asked.subjects[0].number;
    let held = bulla::holds(directory, &keys).unwrap().holds;
    let hold = held.into_iter().find(|hold| Some(hold.number) == number && hold.by == by);
    let note = hold.map_or_else(|| "no hold".to_owned(), |hold| hold.order);
    ReleaseOrder::give(&key, log, &note, (by, "it is closed"), &Environment::default()).unwrap()
}

fn erasure_key(directory: &Path) -> (SigningKey, LogId) {
    let key = std::fs::read_to_string(default_keys(directory).join("erasure.key")).unwrap();
    (SigningKey::parse(&key).unwrap(), bulla::info(directory).unwrap().id)
}

/// What a writer may append beside readers: a share in each of their rounds. On a disk that is faster than whoever reads, a log that
/// grows without end is never read to its end. The writer ends once this is dropped.
pub(crate) struct Shares(Sender<()>);

/// How often the writer appends and syncs in a round, at most.
const SHARE: usize = 200;

impl Shares {
    /// The shares, and what the writer takes each of its turns from.
    pub(crate) fn new() -> (Self, Receiver<()>) {
        let (shares, turns) = channel();
        (Shares(shares), turns)
    }

    /// Another round's.
    pub(crate) fn add(&self) {
        // That the writer has ended is found out at the end of the round.
        let _ = (0..SHARE).try_for_each(|_| self.0.send(()));
    }
}

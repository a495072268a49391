//! A simulated machine: a disk, locks, a counter of operations, and what is to go wrong.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::io;

use super::Fault;
use super::disk::{Change, Disk};
use super::random::Random;

#[derive(Default)]
pub(super) struct Machine {
    pub(super) disk: Disk,
    pub(super) locks: BTreeSet<String>,
    pub(super) control: Control,
    pub(super) trace: Vec<String>,
    operations: u64,
    stopped: bool,
}

/// What is to go wrong.
#[derive(Default)]
pub(super) struct Control {
    pub(super) stop_at: Option<u64>,
    /// Each strikes once, at the first operation from its number on that it can.
    pub(super) once: Vec<(u64, Fault)>,
    pub(super) lasting: Vec<Lasting>,
    pub(super) space: Option<u64>,
}

/// Strikes every operation from `number` on, at or below a path.
pub(super) struct Lasting {
    pub(super) number: u64,
    pub(super) below: String,
    pub(super) fault: Fault,
}

/// An operation that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Create,
    Write,
    Extend,
    Cut,
    Sync,
    SyncDirectory,
    Rename,
    Remove,
    CreateDirectory,
    RemoveDirectory,
}

/// What becomes of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Proceed,
    Stop,
    Fail(Fault),
}

impl Machine {
    pub(super) fn operations(&self) -> u64 {
        self.operations
    }

    pub(super) fn stopped(&self) -> bool {
        self.stopped
    }

    pub(super) fn heal(&mut self) {
        self.control = Control { stop_at: self.control.stop_at, ..Control::default() };
    }

    pub(super) fn crash(&self, seed: u64) -> Machine {
        let (disk, style) = self.disk.after_power_cut(seed, self.operations);
        Machine { disk, trace: vec![style], ..Machine::default() }
    }

    pub(super) fn kill(&self) -> Machine {
        Machine { disk: self.disk.clone(), trace: vec!["the process died".to_owned()], ..Machine::default() }
    }

    /// Fails where the machine stopped.
    pub(super) fn running(&self) -> io::Result<()> {
        if self.stopped { Err(stopped()) } else { Ok(()) }
    }

    /// Counts an operation and says what becomes of it.
    pub(super) fn begin(
        &mut self,
        operation: Operation,
        path: &str,
        detail: impl Display,
    ) -> io::Result<Verdict> {
        self.running()?;
        let number = self.operations;
        self.operations += 1;
        let verdict = if self.control.stop_at.is_some_and(|stop| number >= stop) {
            self.stopped = true;
            Verdict::Stop
        } else {
            self.control.strike(operation, number, path).map_or(Verdict::Proceed, Verdict::Fail)
        };
        let outcome = match verdict {
            Verdict::Proceed => String::new(),
            Verdict::Stop => ": the machine stopped".to_owned(),
            Verdict::Fail(fault) => format!(": {fault:?}"),
        };
        self.trace.push(format!("{number} {operation:?} {path}{detail}{outcome}"));
        Ok(verdict)
    }

    /// A name operation: all or nothing.
    pub(super) fn name_operation<T>(
        &mut self,
        operation: Operation,
        path: &str,
        detail: impl Display,
        change: impl FnOnce(&mut Disk) -> io::Result<T>,
    ) -> io::Result<T> {
        match self.begin(operation, path, detail)? {
            Verdict::Proceed => change(&mut self.disk),
            Verdict::Fail(fault @ Fault::NamePersistsButFails) => {
                change(&mut self.disk)?;
                Err(fault.error())
            }
            Verdict::Fail(fault) => Err(fault.error()),
            Verdict::Stop => Err(stopped()),
        }
    }

    pub(super) fn write(
        &mut self,
        path: &str,
        file: usize,
        offset: u64,
        mut data: Vec<u8>,
    ) -> io::Result<()> {
        let verdict =
            self.begin(Operation::Write, path, format_args!(" at {offset}, {} bytes", data.len()))?;
        let mut random = Random::new(self.operations);
        let part = random.below(data.len().max(1));
        let (mut kept, mut error) = match verdict {
            Verdict::Proceed => (data.len(), None),
            Verdict::Stop => ([0, part, data.len()][random.below(3)], Some(stopped())),
            Verdict::Fail(fault @ Fault::WritePersistsButFails) => (data.len(), Some(fault.error())),
            Verdict::Fail(fault @ (Fault::WriteTearsAndFails | Fault::NoSpace)) => {
                (part, Some(fault.error()))
            }
            Verdict::Fail(fault) => (0, Some(fault.error())),
        };
        let fits = self.room(file).saturating_sub(offset);
        if fits < kept as u64 {
            kept = usize::try_from(fits).unwrap_or(kept);
            error = error.or_else(|| Some(Fault::NoSpace.error()));
        }
        if kept > 0 {
            data.truncate(kept);
            self.disk.change(file, Change::Write { offset, data })?;
        }
        error.map_or(Ok(()), Err)
    }

    pub(super) fn set_length(&mut self, path: &str, file: usize, length: u64) -> io::Result<()> {
        let extends = length > self.disk.files[file].cached.len() as u64;
        let operation = if extends { Operation::Extend } else { Operation::Cut };
        let error = match self.begin(operation, path, format_args!(" to {length}"))? {
            Verdict::Proceed => None,
            Verdict::Fail(fault @ Fault::WritePersistsButFails) => Some(fault.error()),
            Verdict::Fail(fault) => return Err(fault.error()),
            Verdict::Stop => return Err(stopped()),
        };
        if extends && length > self.room(file) {
            return Err(Fault::NoSpace.error());
        }
        self.disk.change(file, Change::SetLength(length))?;
        error.map_or(Ok(()), Err)
    }

    pub(super) fn sync(&mut self, path: &str, file: usize) -> io::Result<()> {
        match self.begin(Operation::Sync, path, "")? {
            Verdict::Proceed => self.disk.sync(file),
            Verdict::Fail(fault @ Fault::SyncPersistsButFails) => {
                self.disk.sync(file)?;
                Err(fault.error())
            }
            Verdict::Fail(fault) => {
                self.disk.give_up(file);
                Err(fault.error())
            }
            Verdict::Stop => Err(stopped()),
        }
    }

    pub(super) fn sync_directory(&mut self, path: &str) -> io::Result<()> {
        let verdict = self.begin(Operation::SyncDirectory, path, "")?;
        let directory = self.disk.directory(path)?;
        match verdict {
            Verdict::Proceed => {
                self.disk.sync_directory(directory);
                Ok(())
            }
            Verdict::Fail(fault @ Fault::SyncPersistsButFails) => {
                self.disk.sync_directory(directory);
                Err(fault.error())
            }
            Verdict::Fail(fault) => Err(fault.error()),
            Verdict::Stop => Err(stopped()),
        }
    }

    /// How long a file may become.
    fn room(&self, file: usize) -> u64 {
        self.control.space.map_or(u64::MAX, |limit| self.disk.longest(file, limit))
    }
}

impl Control {
    fn strike(&mut self, operation: Operation, number: u64, path: &str) -> Option<Fault> {
        let strikes = |from: u64, fault: Fault| from <= number && fault.strikes(operation);
        if let Some(index) = self.once.iter().position(|&(from, fault)| strikes(from, fault)) {
            return Some(self.once.remove(index).1);
        }
        let mut lasting = self.lasting.iter();
        lasting.find(|one| strikes(one.number, one.fault) && is_below(path, &one.below)).map(|one| one.fault)
    }
}

impl Fault {
    fn strikes(self, operation: Operation) -> bool {
        use Operation::{
            Create, CreateDirectory, Cut, Extend, Remove, RemoveDirectory, Rename, Sync, SyncDirectory, Write,
        };
        match self {
            Fault::WriteFails | Fault::WritePersistsButFails => matches!(operation, Write | Extend | Cut),
            Fault::WriteTearsAndFails => operation == Write,
            Fault::SyncFails | Fault::SyncPersistsButFails => matches!(operation, Sync | SyncDirectory),
            Fault::NameFails | Fault::NamePersistsButFails => {
                matches!(operation, Create | Rename | Remove | CreateDirectory | RemoveDirectory)
            }
            Fault::NoSpace => matches!(operation, Write | Extend | Create | CreateDirectory),
        }
    }

    fn error(self) -> io::Error {
        let kind = match self {
            Fault::NoSpace => io::ErrorKind::StorageFull,
            _ => io::ErrorKind::Other,
        };
        io::Error::new(kind, format!("an injected fault: {self:?}"))
    }
}

pub(super) fn stopped() -> io::Error {
    io::Error::other("the machine stopped")
}

fn is_below(path: &str, directory: &str) -> bool {
    match path.strip_prefix(directory) {
        Some(rest) => directory.is_empty() || rest.is_empty() || rest.starts_with('/'),
        None => false,
    }
}

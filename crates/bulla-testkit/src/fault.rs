//! A simulated machine for crash tests: it loses at a power cut what was not synced, and fails on request.
//!
//! ```
//! use bulla_store::{Store, replace};
//! use bulla_testkit::fault::Faults;
//!
//! let machine = Faults::new();
//! let store = machine.store("audit");
//! store.create_directory("").unwrap();
//! replace(&store, "checkpoint", b"old").unwrap();
//! let before = machine.operations();
//!
//! // The second operation from here does not happen, and nothing after it.
//! machine.stop_at(before + 1);
//! assert!(replace(&store, "checkpoint", b"new").is_err());
//!
//! // What a disk could hold then. The store is rebuilt on the new machine.
//! for seed in 0..64 {
//!     let machine = machine.crash(seed);
//!     assert_eq!(machine.read("audit/checkpoint").unwrap(), b"old", "{:#?}", machine.trace());
//! }
//! ```
//!
//! # The model
//!
//! A file has *cached* content, which reads see, and *durable* content with the list of changes made since it was last
//! synced. A directory has cached and durable names likewise. `sync` makes the content and the length of a file
//! durable and says nothing about its name; `sync_directory` makes the names in one directory durable and says nothing
//! about what they name. At a power cut any of the other changes survive, in any order, and writes may be torn:
//!
//! - of a file, any subset of the changes; of a torn write a prefix or any set of its 512-byte sectors, the rest
//!   being what was there, or zeros where the file grew;
//! - of the directories, any subset of the changes to names, in order. A rename inside one directory survives whole or
//!   not at all, with the file that it named, even if the creation of that file did not. A rename into another
//!   directory is durable by halves until both are synced: with only the old one synced the file may be lost. What is
//!   inconsistent after other losses (a creation where the old name still is) is skipped.
//!
//! `create_directory` of a store's own directory is durable at once, as in [`FileSystem`](bulla_store::FileSystem).
//!
//! # Counting
//!
//! Operations that change or sync something are counted from 0 over all stores of one machine, whether they succeed or
//! not: so [`Faults::operations`] is also the number of the next one. They are `create`, `write_at`, `set_length`,
//! `sync`, `rename`, `remove`, `create_directory`, `remove_directory`, `sync_directory`, and `lock` where it creates the
//! file. All is deterministic: the same operations and the same seed give the same machine.

mod crash;
mod disk;
mod machine;
mod random;
mod stored;
#[cfg(test)]
mod tests;

use std::fmt::{self, Debug};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use machine::{Lasting, Machine};

pub use stored::FaultStore;

/// A simulated machine: its disk, and what is to go wrong with it. Clones are handles on the same machine.
#[derive(Clone, Default)]
pub struct Faults {
    machine: Arc<Mutex<Machine>>,
}

/// What goes wrong with an operation.
///
/// A *write* is `write_at` or `set_length`; a *name operation* is `create`, `rename`, `remove`, `create_directory` or
/// `remove_directory`; a *sync* is `sync` or `sync_directory`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A write changes nothing and fails.
    WriteFails,
    /// A write does all that it should, and fails. It is as little synced as one that succeeds.
    WritePersistsButFails,
    /// A `write_at` writes a part, possibly nothing, and fails.
    WriteTearsAndFails,
    /// A sync fails. The un-synced changes of a file will never be durable, although reads see them until the power
    /// is cut and later syncs succeed; those of a directory stay un-synced, and a later sync may make them durable.
    SyncFails,
    /// A sync does what it should, and fails.
    SyncPersistsButFails,
    /// A name operation changes nothing and fails.
    NameFails,
    /// A name operation does what it should, and fails.
    NamePersistsButFails,
    /// `StorageFull`: a `write_at` writes a part; a `set_length` that extends, a `create` and a `create_directory`
    /// change nothing.
    NoSpace,
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 8] = [
        Fault::WriteFails,
        Fault::WritePersistsButFails,
        Fault::WriteTearsAndFails,
        Fault::SyncFails,
        Fault::SyncPersistsButFails,
        Fault::NameFails,
        Fault::NamePersistsButFails,
        Fault::NoSpace,
    ];
}

impl Faults {
    /// A machine with an empty disk.
    pub fn new() -> Faults {
        Faults::default()
    }

    /// The store in the directory `prefix` of this machine, the whole disk if it is empty. The directory exists once
    /// `create_directory` was called for it or for something in it.
    pub fn store(&self, prefix: &str) -> FaultStore {
        FaultStore::new(self.clone(), prefix)
    }

    /// How many operations there were: the number of the next one.
    pub fn operations(&self) -> u64 {
        self.machine().operations()
    }

    /// The machine stops at operation `number`, or at the next one if there were more already. That operation does not
    /// happen, but for a write that may happen in part, and everything from there on fails, reads too.
    pub fn stop_at(&self, number: u64) {
        self.machine().control.stop_at = Some(number);
    }

    /// Whether the machine stopped.
    pub fn stopped(&self) -> bool {
        self.machine().stopped()
    }

    /// The first operation from `number` on that `fault` can strike fails so, once.
    pub fn fail_at(&self, number: u64, fault: Fault) {
        self.machine().control.once.push((number, fault));
    }

    /// Every operation from `number` on that `fault` can strike fails so, until [`heal`](Self::heal).
    pub fn fail_from(&self, number: u64, fault: Fault) {
        self.machine().control.lasting.push(Lasting { number, below: String::new(), fault });
    }

    /// Every operation from now on, on `path` or what is below it, that `fault` can strike fails so, until
    /// [`heal`](Self::heal): one of several disks that fails. The path is that of the machine, with the prefix.
    pub fn fail_below(&self, path: &str, fault: Fault) {
        self.machine().control.lasting.push(Lasting { number: 0, below: path.to_owned(), fault });
    }

    /// The files of the machine may hold so many bytes; a write past it writes what fits, and fails with
    /// `StorageFull`.
    pub fn limit_space(&self, bytes: u64) {
        self.machine().control.space = Some(bytes);
    }

    /// Withdraws every fault that is still to come, and the limit of space. Content that a failed sync gave up stays
    /// lost, and a machine that stopped stays so.
    pub fn heal(&self) {
        self.machine().heal();
    }

    /// What a disk could hold after a power cut now, as a new machine without faults; this one is unchanged.
    ///
    /// `seed % 8` chooses the style, so that eight seeds in a row reach the extremes:
    /// 0: nothing un-synced survives. 1: everything. 2: all names, no content. 3: all content, no names.
    /// 4: all names, and of content the lengths only: zeros. 5: the last change of each file, and of the names.
    /// 6: the names up to some point, and each file in a style of its own. 7: random subsets of everything.
    pub fn crash(&self, seed: u64) -> Faults {
        Faults::of(self.machine().crash(seed))
    }

    /// The death of the process only, as a new machine without faults; this one is unchanged. What was un-synced is
    /// still there, still un-synced, and can be lost when the power of the new machine is cut.
    pub fn kill(&self) -> Faults {
        Faults::of(self.machine().kill())
    }

    /// What happened, an operation a line, for a person.
    pub fn trace(&self) -> Vec<String> {
        self.machine().trace.clone()
    }
}

/// Direct access to the disk, for tests of damage. It is not counted, works on a stopped machine, and takes paths of
/// the machine, which begin with the prefix of their store.
impl Faults {
    /// The content of a file as reads see it.
    pub fn read(&self, path: &str) -> Option<Vec<u8>> {
        self.machine().disk.content(path)
    }

    /// Gives a file this content, durably, and makes it and its directories durable if need be.
    ///
    /// # Panics
    /// If `path` cannot be a file.
    pub fn overwrite(&self, path: &str, content: &[u8]) {
        let done = self.machine().disk.overwrite(path, content);
        assert!(done.is_ok(), "{path:?} cannot be overwritten: {done:?}");
    }

    /// Removes a file, durably; false where there is none.
    pub fn remove_file(&self, path: &str) -> bool {
        self.machine().disk.destroy(path)
    }

    /// The paths of all files, sorted.
    pub fn files(&self) -> Vec<String> {
        self.machine().disk.paths()
    }
}

impl Faults {
    fn of(machine: Machine) -> Faults {
        Faults { machine: Arc::new(Mutex::new(machine)) }
    }

    fn machine(&self) -> MutexGuard<'_, Machine> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Debug for Faults {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let machine = self.machine();
        let mut debug = formatter.debug_struct("Faults");
        debug.field("operations", &machine.operations()).field("stopped", &machine.stopped());
        debug.finish_non_exhaustive()
    }
}

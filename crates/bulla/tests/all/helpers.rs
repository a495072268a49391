//! What tests of several places need.

pub(crate) use bulla_testkit::Rng;
use bulla_testkit::fault::Fault;
pub(crate) use bulla_testkit::sweep::{in_full, in_turn};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

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

//! What tests of several places need.

use bulla::store::fault::Fault;
use std::sync::atomic::{AtomicBool, Ordering};

/// SplitMix64.
#[derive(Clone)]
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(crate) fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len() as u64) as usize]
    }
}

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

/// Whether sweeps are to be in full, as `make sweep` has them. Without it a change is held against each damaged byte at the
/// level that finds it, and against each crash point once.
pub(crate) fn in_full() -> bool {
    std::env::var_os("BULLA_SWEEP").is_some()
}

/// Of the ways in which something can be tried: all of them, or that one whose turn it is at this point.
pub(crate) fn in_turn<T: Copy>(ways: &[T], point: u64) -> Vec<T> {
    if in_full() { ways.to_vec() } else { vec![ways[(point % ways.len() as u64) as usize]] }
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
            lock(path: &str) -> Box<dyn std::fmt::Debug + Send + Sync>;
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

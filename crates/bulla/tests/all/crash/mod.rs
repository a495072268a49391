//! What a log keeps through crashes, faults and tampering.
//!
//! A scenario ([`scenario`]) runs a whole life of a log, stepped, on a simulated machine that loses at a power cut
//! what was not synced. It is repeated with a crash, or a fault, at every operation it has; what is left is examined
//! ([`world`]). Everything follows from seeds: a failure prints what it takes to run it again.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation)]

mod configure;
mod faults;
mod kill;
mod pin;
mod points;
mod scenario;
mod settings;
mod tamper;
pub(crate) mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs `check` on every item, on all processors, and fails with the first failure that is found.
pub(crate) fn for_each<T: Sync>(items: &[T], check: impl Fn(&T) -> Result<(), String> + Sync) {
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    let work = || {
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            let outcome = catch_unwind(AssertUnwindSafe(|| check(item)));
            let failure = match outcome {
                Ok(Ok(())) => continue,
                Ok(Err(failure)) => failure,
                Err(panic) => match panic.downcast_ref::<String>() {
                    Some(message) => format!("panicked: {message}"),
                    None => "panicked, see above".to_owned(),
                },
            };
            let index = next.fetch_add(if all() { 0 } else { items.len() }, Ordering::Relaxed);
            failures.lock().expect("no panic while it is held").push((index, failure));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let mut failures = failures.into_inner().expect("no panic while it is held");
    failures.sort();
    let count = failures.len();
    if let Some((_, first)) = failures.first() {
        panic!("{count} of {} failed; one of them:\n{first}", items.len());
    }
}

/// Whether to go on after a failure, to see how many there are.
fn all() -> bool {
    std::env::var_os("BULLA_CRASH_ALL").is_some()
}

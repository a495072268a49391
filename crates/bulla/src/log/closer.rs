//! Closing by a thread of its own, in the place of one that everybody waits for ([`crate::write::telling`]), and the exit of the process, which
//! waits for such threads.
//!
//! Invariants:
//! - a process knows of its own threads alone: a forked child begins with none, and waits for no lock that its parent had;
//! - a thread is in the list before anybody learns that it was started, so that an exit behind that waits for it.
#![allow(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "a thread in the place of one that cannot wait")]

use crate::write::telling;
use bulla_store::{Error, Result, process};
use std::ffi::c_int;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// The threads of one process that close something.
struct Closers {
    owner: u32,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// Those of the process that asked last; null before anybody did.
static CLOSERS: AtomicPtr<Closers> = AtomicPtr::new(ptr::null_mut());

// SAFETY: `atexit` is declared as POSIX has it. It may be called at any time, and keeps nothing but the function.
unsafe extern "C" {
    /// Has the C library call a function when the process exits: when `main` returns, and by `exit`. 0, or it has no memory for that.
    safe fn atexit(call: extern "C" fn()) -> c_int;
}

impl Closers {
    /// Those of this process, if it has any.
    fn here() -> Option<&'static Self> {
        // SAFETY: it is null, or came from a box that is never freed.
        let closers = unsafe { CLOSERS.load(Ordering::Acquire).as_ref() };
        closers.filter(|closers| closers.owner == process::id())
    }

    /// Those of this process, of which the exit knows from now on.
    fn make() -> Result<&'static Self> {
        let before = CLOSERS.load(Ordering::Acquire);
        if let Some(here) = Self::here() {
            return Ok(here);
        }
        if atexit(wait_for_all) != 0 {
            return Err(Error::unavailable(
                "there is no memory to have the exit of the process wait until the log is closed",
            ));
        }
        let made = Box::into_raw(Box::new(Closers { owner: process::id(), threads: Mutex::default() }));
        if CLOSERS.compare_exchange(before, made, Ordering::AcqRel, Ordering::Acquire).is_err() {
            // SAFETY: it came from a box, and nobody else has it, since another thread's is kept.
            drop(unsafe { Box::from_raw(made) });
        }
        Ok(Self::here().expect("this process has just made it"))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Has a thread of its own close something. An exit of the process that begins behind this waits until it is closed.
///
/// # Errors
/// `Unavailable` where no thread can be started: nothing is closed then, and `close` is dropped.
pub(crate) fn close_elsewhere(close: impl FnOnce() + Send + 'static) -> Result<()> {
    let closers = Closers::make()?;
    let mut threads = closers.lock();
    threads.retain(|thread| !thread.is_finished());
    let thread = std::thread::Builder::new().name("bulla-closer".to_owned()).spawn(close);
    threads.push(thread.map_err(|error| {
        Error::unavailable(format!("starting the thread that closes in the place of this one: {error}"))
    })?);
    Ok(())
}

/// What the C library calls at exit. A thread that everybody waits for is not kept by it: what it would wait for waits for that thread.
extern "C" fn wait_for_all() {
    if telling::is_telling() {
        return;
    }
    let Some(closers) = Closers::here() else { return };
    loop {
        let Some(thread) = closers.lock().pop() else { return };
        drop(thread.join());
    }
}

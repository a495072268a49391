//! SIGINT, SIGTERM and SIGHUP, which end a command in order; SIGXFSZ, which ends none.
//!
//! `append` drains before it ends: it asks [`Interrupt`] between lines, and waits on it beside its input; what further signals
//! do, it says itself ([`Interrupt::on_each`]). What only reads has nothing to drain: a second signal ends it at once, or the
//! first ([`exit_at_once`], and [`exit_after`] where there is a file to remove, which takes a thread). What changes something
//! holds the first signal back until the change is made and told ([`finish_first`]); until it begins with that, a signal ends it, too
//! ([`exit_for_now`]).

use crate::exit::{Exit, Failure};
use crate::output::tell_failure;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use std::io::{self, IsTerminal, Read};
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What ends a command in order. SIGHUP too, unless whoever started it has that ignored, as `nohup` does.
fn signals() -> impl Iterator<Item = i32> + Clone {
    [SIGINT, SIGTERM].into_iter().chain((!is_ignored(SIGHUP)).then_some(SIGHUP))
}

/// From now on a file that may grow no more (`ulimit -f`) is an error to whoever writes it, as a full disk is, and does not end the
/// process. A handler that does nothing, and not that the signal is ignored: plugins would inherit that.
pub(crate) fn outlive_file_size_limit() -> Result<(), Failure> {
    let nobody_looks = Arc::new(AtomicBool::new(false));
    let registered = signal_hook::flag::register(SIGXFSZ, nobody_looks);
    registered.map(drop).map_err(|error| failed(&error))
}

/// Whether a signal is ignored, as the kernel tells it.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Whether the command was told to stop.
#[derive(Debug)]
pub(crate) struct Interrupt {
    raised: Arc<AtomicBool>,
    /// Has a byte to read once a signal came.
    woken: UnixStream,
}

impl Interrupt {
    /// From now on the first signal is noted here, and a second one ends the process.
    pub(crate) fn install() -> Result<Self, Failure> {
        let raised = Arc::new(AtomicBool::new(false));
        Self::note_in(raised.clone(), &raised, signals())
    }

    /// Notes signals in `raised`; each ends the process where `ends` is set.
    fn note_in(
        raised: Arc<AtomicBool>,
        ends: &Arc<AtomicBool>,
        signals: impl Iterator<Item = i32> + Clone,
    ) -> Result<Self, Failure> {
        for signal in signals.clone() {
            // In this order: the flag that the first signal sets must not end the process at once.
            signal_hook::flag::register_conditional_shutdown(signal, Exit::Interrupted as i32, ends.clone())
                .and_then(|_| signal_hook::flag::register(signal, raised.clone()))
                .map_err(|error| failed(&error))?;
        }
        Ok(Interrupt { raised, woken: wake_up(signals).map_err(|error| failed(&error))? })
    }

    /// From now on the first signal is noted here, and `act` deals with each, in a thread of its own. Once that sets the flag
    /// that it is given, a further signal ends the process.
    pub(crate) fn on_each(act: impl FnMut(&AtomicBool) + Send + 'static) -> Result<Self, Failure> {
        Self::on_each_of(signals(), act)
    }

    /// The same of SIGINT and SIGTERM alone: for who does something else at SIGHUP ([`on_hang_up`]).
    pub(crate) fn on_each_but_hang_up(
        act: impl FnMut(&AtomicBool) + Send + 'static,
    ) -> Result<Self, Failure> {
        Self::on_each_of([SIGINT, SIGTERM].into_iter(), act)
    }

    fn on_each_of(
        signals: impl Iterator<Item = i32> + Clone,
        mut act: impl FnMut(&AtomicBool) + Send + 'static,
    ) -> Result<Self, Failure> {
        let ends = Arc::new(AtomicBool::new(false));
        let interrupt = Self::note_in(Arc::default(), &ends, signals.clone())?;
        let mut woken = wake_up(signals).map_err(|error| failed(&error))?;
        let wait = move || {
            while woken.read_exact(&mut [0]).is_ok() {
                act(&ends);
            }
        };
        let thread = std::thread::Builder::new().name("bulla-signals".to_owned()).spawn(wait);
        thread.map_err(|error| failed(&error))?;
        Ok(interrupt)
    }

    pub(crate) fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Relaxed)
    }

    /// Waits for `time`, or until a signal comes.
    pub(crate) fn wait(&self, time: Duration) {
        // Woken too early, the caller looks too early: no harm.
        let _ = poll(&mut [PollFd::new(&self.woken, PollFlags::IN)], Some(&timespec(time)));
    }

    /// Waits for `time`, or until a signal comes or nobody reads any more what is written to `output`, a pipe or a socket; returns whether
    /// that is so.
    pub(crate) fn wait_or_closed(&self, output: BorrowedFd<'_>, time: Duration) -> bool {
        let mut all =
            [PollFd::from_borrowed_fd(output, PollFlags::empty()), PollFd::new(&self.woken, PollFlags::IN)];
        // Woken too early, the caller looks too early: no harm.
        let polled = poll(&mut all, Some(&timespec(time)));
        polled.is_ok() && all[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
    }

    /// Waits for `time`, or until a signal comes or one of `sources` has something to read.
    pub(crate) fn wait_or_readable<'a>(
        &'a self,
        sources: impl Iterator<Item = BorrowedFd<'a>>,
        time: Duration,
    ) {
        let sources = sources.map(|source| PollFd::from_borrowed_fd(source, PollFlags::IN));
        let mut all: Vec<_> = sources.chain([PollFd::new(&self.woken, PollFlags::IN)]).collect();
        let _ = poll(&mut all, Some(&timespec(time)));
    }

    /// Waits until `source` has something to read, or has ended.
    ///
    /// # Errors
    /// `Interrupted` where a signal came first.
    pub(crate) fn wait_readable(&self, source: BorrowedFd<'_>) -> io::Result<()> {
        loop {
            if self.is_raised() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let mut sources =
                [PollFd::from_borrowed_fd(source, PollFlags::IN), PollFd::new(&self.woken, PollFlags::IN)];
            match poll(&mut sources, None) {
                Ok(_) if !sources[0].revents().is_empty() => return Ok(()),
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(time.subsec_nanos()),
    }
}

/// From now on SIGHUP ends nothing, and `act` deals with each, in a thread of its own.
pub(crate) fn on_hang_up(mut act: impl FnMut() + Send + 'static) -> Result<(), Failure> {
    let mut woken = wake_up([SIGHUP].into_iter()).map_err(|error| failed(&error))?;
    let wait = move || {
        while woken.read_exact(&mut [0]).is_ok() {
            act();
        }
    };
    let thread = std::thread::Builder::new().name("bulla-hang-up".to_owned()).spawn(wait);
    thread.map(drop).map_err(|error| failed(&error))
}

/// From now on a signal ends the process.
pub(crate) fn exit_at_once() -> Result<(), Failure> {
    let ends = Arc::new(AtomicBool::new(true));
    signals().try_for_each(|signal| {
        let exit = Exit::Interrupted as i32;
        let registered = signal_hook::flag::register_conditional_shutdown(signal, exit, ends.clone());
        registered.map(drop).map_err(|error| failed(&error))
    })
}

/// What whoever interrupts a command before it begins is told.
pub(crate) const NOTHING_DONE: &str = "interrupted: nothing was done";

/// Until the guard that is given is dropped, a signal ends the process, which says that nothing was done.
pub(crate) fn exit_for_now(json: bool) -> Result<ForNow, Failure> {
    exit_meanwhile(json, NOTHING_DONE)
}

/// Until the guard that is given is dropped, a signal ends the process, which says this.
pub(crate) fn exit_meanwhile(json: bool, what: &'static str) -> Result<ForNow, Failure> {
    let mut woken = wake_up(signals()).map_err(|error| failed(&error))?;
    let begun = Arc::new(Mutex::new(false));
    let of_signals = begun.clone();
    let wait = move || {
        let signalled = woken.read_exact(&mut [0]).is_ok();
        // Held to the end: nothing is begun after this is said.
        let begun = of_signals.lock().unwrap_or_else(PoisonError::into_inner);
        if *begun || !signalled {
            return;
        }
        if io::stderr().is_terminal() {
            // After a question, and what was typed there.
            note!("");
        }
        tell_failure(&Failure::new(Exit::Interrupted, what), json);
        std::process::exit(Exit::Interrupted as i32);
    };
    let thread = std::thread::Builder::new().name("bulla-before".to_owned()).spawn(wait);
    thread.map_err(|error| failed(&error))?;
    Ok(ForNow(begun))
}

/// While it lives, a signal ends the process.
pub(crate) struct ForNow(Arc<Mutex<bool>>);

impl Drop for ForNow {
    fn drop(&mut self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }
}

/// Whether a signal came before the work was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Came {
    InTime,
    TooLate,
}

/// From now on a signal runs `clean_up` and ends the process; where that finds that it came too late, the command ends
/// as it would have without it, unless another one comes.
pub(crate) fn exit_after(clean_up: impl FnOnce() -> Came + Send + 'static) -> Result<(), Failure> {
    let mut woken = wake_up(signals()).map_err(|error| failed(&error))?;
    let wait = move || {
        let mut signalled = || woken.read_exact(&mut [0]).is_ok();
        if signalled() && (clean_up() == Came::InTime || signalled()) {
            std::process::exit(Exit::Interrupted as i32);
        }
    };
    let thread = std::thread::Builder::new().name("bulla-signals".to_owned()).spawn(wait);
    thread.map(drop).map_err(|error| failed(&error))
}

/// From now on the first signal is held back: what was begun is finished, and told. The second one runs `clean_up` and ends the
/// process, which says that it may have been done all the same, and how to `find_out`; another one ends it at once.
pub(crate) fn finish_first(
    json: bool,
    find_out: impl Into<String>,
    mut clean_up: impl FnMut() + Send + 'static,
) -> Result<(), Failure> {
    let message =
        format!("interrupted before it was known whether it is done: it may be; {} tells", find_out.into());
    let mut is_first = true;
    let act = move |ends: &AtomicBool| {
        if std::mem::take(&mut is_first) {
            note!("interrupted: what was begun is finished first; another signal ends that");
            return;
        }
        ends.store(true, Ordering::Relaxed);
        clean_up();
        // Held to the end: nothing else is told after this.
        let _only = io::stdout().lock();
        tell_failure(&Failure::new(Exit::Interrupted, message.clone()), json);
        std::process::exit(Exit::Interrupted as i32);
    };
    Interrupt::on_each(act).map(drop)
}

/// A stream that has a byte to read for every one of these signals.
fn wake_up(signals: impl Iterator<Item = i32>) -> io::Result<UnixStream> {
    let (read, write) = UnixStream::pair()?;
    for signal in signals {
        signal_hook::low_level::pipe::register(signal, write.try_clone()?)?;
    }
    Ok(read)
}

fn failed(error: &io::Error) -> Failure {
    no_room("listening for signals", error)
}

/// That the system gave no thread or pipe for `what`.
pub(crate) fn no_room(what: &str, error: &io::Error) -> Failure {
    let message =
        format!("{what}: {error}; look at the limits on threads and open files (`ulimit -u`, `ulimit -n`)");
    Failure::new(Exit::Environment, message)
}

//! [`Shared`]: what is sent over a connection, and what comes back.
//!
//! Invariants:
//! - batches are acknowledged in the order in which they are sent, so that one number says which are;
//! - a message that was begun is sent to its end, before the next one: what a wait left over is kept;
//! - `staged` is locked before `state` where both are;
//! - behind the failure nothing is staged any more, since nobody sends what lingers then: it is looked at for each entry, without `state`;
//! - whoever has `staged` locked may wait for acknowledgements, so the thread that reads them waits for no lock of it.

use super::acknowledged::{Failure, NotDurable, State, error_of};
use super::greeted::Greeted;
use super::lock;
use crate::control::link::Link;
use crate::format::json;
use crate::socket::messages::Messages;
use crate::socket::wire::Acknowledgement;
use crate::write::telling;
use bulla_store::{Error, ErrorKind, Result};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::net::{SendFlags, Shutdown, send, shutdown};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// What was appended is sent after so long, flushed or not.
const LINGER: Duration = Duration::from_millis(20);

/// What a producer, its receipts and its thread share.
pub(super) struct Shared {
    pub(super) link: Link,
    pub(super) path: PathBuf,
    /// Batches that may be under way.
    window: u64,
    pub(super) staged: Mutex<Staged>,
    pub(super) state: Mutex<State>,
    /// That of `state`.
    failure: Arc<Failure>,
    changed: Condvar,
    /// Has the thread look at what is staged.
    pub(super) wake: OwnedFd,
}

/// What was appended and is not sent.
#[derive(Default)]
pub(super) struct Staged {
    /// The next batch, with room for its length before it.
    pub(super) next: Vec<u8>,
    /// Batches that were begun to be sent.
    pub(super) batches: u64,
    /// What is being sent, and how far that is.
    sending: Vec<u8>,
    sent: usize,
    pub(super) is_closed: bool,
}

impl Shared {
    pub(super) fn start(greeted: Greeted, path: &Path) -> Result<Arc<Self>> {
        let failed = |error| Error::io("starting a producer", error);
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let state = State::default();
        let shared = Arc::new(Shared {
            link: greeted.link,
            path: path.to_owned(),
            window: greeted.greeting.window as u64,
            staged: Mutex::default(),
            failure: state.failure.clone(),
            state: Mutex::new(state),
            changed: Condvar::new(),
            wake: wake.map_err(|error| failed(error.into()))?,
        });
        let (of_thread, messages) = (shared.clone(), greeted.messages);
        let thread = std::thread::Builder::new().name("bulla-remote".to_owned());
        thread.spawn(move || of_thread.follow(messages)).map_err(failed)?;
        Ok(shared)
    }

    /// Whether nothing more will be known of what was appended, nor told: all of a producer that was let go of is durable or refused, or the connection has
    /// ended. What of it is not durable goes to `not_durable` then. Of one that is in use nobody waits to find out: whoever asks may be
    /// what its thread tells of a receipt.
    pub(super) fn has_settled(&self, not_durable: &mut NotDurable) -> bool {
        let staged = match self.staged.try_lock() {
            Err(TryLockError::WouldBlock) => return false,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Ok(staged) => staged,
        };
        let state = lock(&self.state);
        if state.is_telling || !state.tells.is_empty() {
            return false;
        }
        let is_acknowledged = staged.next.is_empty() && state.acknowledged == staged.batches;
        let failed = match self.failure.get() {
            failure if is_acknowledged && (staged.is_closed || failure.is_some()) => Ok(()),
            Some(failure) => Err(error_of(failure)),
            None => return false,
        };
        not_durable.add(failed, state.refused(0, u64::MAX));
        // One that was let go of while the log took nothing has not said that nothing more comes.
        let _ = shutdown(self.link.socket(), Shutdown::Write);
        true
    }

    /// Reads what is acknowledged until the connection ends, and sends what has lingered.
    fn follow(&self, mut messages: Messages) {
        let mut lingers = None::<Instant>;
        let ended = loop {
            let left = lingers.map(|until| until.saturating_duration_since(Instant::now()));
            let timeout = left.and_then(|left| Timespec::try_from(left).ok());
            let mut polled =
                vec![PollFd::new(self.link.socket(), PollFlags::IN), PollFd::new(&self.wake, PollFlags::IN)];
            polled.extend(self.link.listener().map(|listener| PollFd::new(listener, PollFlags::IN)));
            // Where polling fails, reading fails after it.
            let _ = poll(&mut polled, timeout.as_ref());
            let is_ready = |at: usize| polled.get(at).is_some_and(|polled| !polled.revents().is_empty());
            let (readable, woken, gone) = (is_ready(0), is_ready(1), is_ready(2));
            if woken {
                let _ = rustix::io::read(&self.wake, &mut [0; 8]);
                lingers = lingers.or_else(|| Some(Instant::now() + LINGER));
            }
            if readable && let Err(error) = self.read(&mut messages) {
                break error;
            }
            if gone
                && !readable
                && let Err(error) = self.link.check_listener()
            {
                break Some(error);
            }
            if lingers.is_some_and(|until| until <= Instant::now()) {
                // Whoever has it locked may wait for what only this thread reads; what is left then, or cannot be sent now, waits for the next time.
                let rest = match self.staged.try_lock() {
                    Err(TryLockError::WouldBlock) => true,
                    Err(TryLockError::Poisoned(poisoned)) => self.send_now(&mut poisoned.into_inner()),
                    Ok(mut staged) => self.send_now(&mut staged),
                };
                lingers = rest.then(|| Instant::now() + LINGER);
            }
        };
        let message = match ended {
            Some(error) => {
                format!("the connection to {} failed: {error}; connect again", self.path.display())
            }
            None => format!(
                "the connection to {} ended: the log there was closed, or its process is gone; connect again",
                self.path.display()
            ),
        };
        // Where the log has given its reason, that stays.
        let _ = self.failure.set((ErrorKind::Closed, message));
        self.tell();
    }

    /// Sends what can be sent without waiting, and tells whether something is left.
    fn send_now(&self, staged: &mut Staged) -> bool {
        let sent = self.send_all(staged, Some(Instant::now()));
        sent.is_err_and(|error| error.kind() == ErrorKind::Timeout)
    }

    /// Takes what was acknowledged.
    ///
    /// # Errors
    /// Where the connection has ended, with the reason if there is one.
    fn read(&self, messages: &mut Messages) -> Result<(), Option<io::Error>> {
        match messages.fill(&self.link, Some(Instant::now())) {
            Ok(true) => {}
            Ok(false) => return Err(None),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => return Ok(()),
            Err(error) => return Err(Some(error)),
        }
        while let Some(body) = messages.take().map_err(Some)? {
            let acknowledgement = json::object::<Acknowledgement>(body).map_err(|_| {
                Some(io::Error::new(io::ErrorKind::InvalidData, "what came is no acknowledgement"))
            })?;
            lock(&self.state).take(acknowledgement);
        }
        self.tell();
        Ok(())
    }

    /// That the connection has not ended, as far as its thread knows.
    ///
    /// # Errors
    /// Why it has.
    pub(super) fn check_connected(&self) -> Result<()> {
        self.failure.get().map_or(Ok(()), |failure| Err(error_of(failure)))
    }

    /// Tells whoever waits for what is known now.
    fn tell(&self) {
        let mut state = lock(&self.state);
        let mut known = Vec::new();
        let mut waiting = std::mem::take(&mut state.tells);
        waiting.retain_mut(|tell| match state.outcome(tell.from, tell.to) {
            None => true,
            Some(outcome) => {
                let tell = std::mem::replace(&mut tell.tell, Box::new(|_| ()));
                known.push((tell, outcome));
                false
            }
        });
        state.tells = waiting;
        state.is_telling = true;
        drop(state);
        let _telling = Telling(self);
        self.changed.notify_all();
        known.into_iter().for_each(|(tell, outcome)| telling::tell(|| tell(outcome)));
    }

    /// Waits until the connection's thread has told of all receipts, of each of which something is known.
    pub(super) fn wait_until_told(&self) {
        let mut state = lock(&self.state);
        while state.is_telling || !state.tells.is_empty() {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until it is known what came of all batches up to `to`; false where `deadline` came first.
    ///
    /// # Errors
    /// Why nothing more will be known of them.
    pub(super) fn wait(&self, to: u64, deadline: Option<Instant>) -> Result<bool> {
        let mut state = lock(&self.state);
        while state.acknowledged < to {
            self.check_connected()?;
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(false);
            }
            telling::check_may_wait()?;
            state = match left {
                Some(left) => {
                    self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
        Ok(true)
    }

    /// Sends all that is staged.
    ///
    /// # Errors
    /// `Timeout` where `deadline` comes first: the rest is kept. The failure, where the connection has ended.
    pub(super) fn send_all(&self, staged: &mut Staged, deadline: Option<Instant>) -> Result<()> {
        self.send_rest(staged, deadline)?;
        if staged.next.is_empty() {
            return Ok(());
        }
        // The window is full: one has to be acknowledged before the next is sent.
        if !self.wait((staged.batches + 1).saturating_sub(self.window), deadline)? {
            return Err(slow());
        }
        let length = u32::try_from(staged.next.len() - 4)
            .expect("a batch is as long as one entry can be, and little more");
        staged.next[..4].copy_from_slice(&length.to_le_bytes());
        std::mem::swap(&mut staged.next, &mut staged.sending);
        staged.next.clear();
        staged.sent = 0;
        staged.batches += 1;
        self.send_rest(staged, deadline)
    }

    fn send_rest(&self, staged: &mut Staged, deadline: Option<Instant>) -> Result<()> {
        while staged.sent < staged.sending.len() {
            let rest = &staged.sending[staged.sent..];
            match send(self.link.socket(), rest, SendFlags::NOSIGNAL) {
                Ok(count) => staged.sent += count,
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::WOULDBLOCK) => match self.link.wait(PollFlags::OUT, deadline) {
                    Ok(()) => {}
                    Err(error) if error.kind() == io::ErrorKind::TimedOut => return Err(slow()),
                    Err(error) => return Err(self.ended(&error)),
                },
                Err(error) => return Err(self.ended(&error.into())),
            }
        }
        Ok(())
    }

    /// Why the connection has ended: the log's reason, where it gave one.
    fn ended(&self, error: &io::Error) -> Error {
        let path = self.path.display();
        match self.wait(u64::MAX, Instant::now().checked_add(Duration::from_secs(1))) {
            Err(failure) => failure,
            Ok(_) => Error::new(
                ErrorKind::Closed,
                format!("the connection to {path} failed: {error}; connect again"),
            ),
        }
    }
}

/// That the connection's thread tells somebody. Where that panics the connection has ended, and nobody is left to tell of the others.
struct Telling<'a>(&'a Shared);

impl Drop for Telling<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.is_telling = false;
        let mut untold = Vec::new();
        if std::thread::panicking() {
            let message = format!(
                "the connection to {} ended: whoever was told of a receipt panicked; connect again",
                self.0.path.display()
            );
            let _ = self.0.failure.set((ErrorKind::Unavailable, message));
            untold = std::mem::take(&mut state.tells);
        }
        drop(state);
        self.0.changed.notify_all();
        // What they hold may be a producer, which goes by the state as it is let go of.
        drop(untold);
    }
}

fn slow() -> Error {
    Error::new(ErrorKind::Timeout, "the log took nothing more in time: it is slower than what is appended")
}

//! [`Connection`]: a process that appends to the log which another process has open.
//!
//! A producer has a connection of its own, and a thread that reads what is acknowledged, and sends what has lingered.
//!
//! Invariants:
//! - batches are acknowledged in the order in which they are sent, so that one number says which are;
//! - a message that was begun is sent to its end, before the next one: what a wait left over is kept;
//! - `staged` is locked before `state` where both are;
//! - whoever has `staged` locked may wait for acknowledgements, so the thread that reads them waits for no lock of it.
#![expect(clippy::disallowed_methods, reason = "a thread for each connection, and how long one may wait")]

use super::messages::Messages;
use super::wire::{Acknowledgement, Form, Greeting, VERSION};
use super::{PATIENCE, listener};
use crate::control::link::Link;
use crate::log::{BatchError, closer};
use crate::write::telling;
use bulla_crypto::environment::Environment;
use bulla_proof::Entry;
use bulla_store::{Error, ErrorKind, Result, process};
use bulla_text::msgpack;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::net::{SendFlags, Shutdown, send, shutdown};
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// A batch of so many bytes is sent without waiting for more.
const FULL: usize = 64 << 10;
/// What was appended is sent after so long, flushed or not.
const LINGER: Duration = Duration::from_millis(20);
/// How long appending and flushing wait for the log, unless it is said otherwise.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The longest message that is read.
const LONGEST: usize = 64 << 10;
/// Batches of which some entries were refused and that are remembered one by one.
const REMEMBERED: usize = 64;
/// A length, and the byte that says what a batch is written in.
const HEAD: usize = 5;

/// A log that another process has open and listens for ([`super::Listen`]).
///
/// It belongs to the process that opened it: a forked child opens its own.
pub struct Connection {
    path: PathBuf,
    origin: String,
    timeout: Duration,
    owner: u32,
    /// Made to see whether somebody listens: the first producer's.
    first: Mutex<Option<Greeted>>,
    producers: Mutex<Vec<Arc<Shared>>>,
}

/// A connection on which the server has said who it is.
struct Greeted {
    link: Link,
    messages: Messages,
    greeting: Greeting,
}

impl Greeted {
    fn connect(path: &Path) -> Result<Self> {
        let failed = |error| Error::io(format!("connecting to {}", path.display()), error);
        let link = Link::new(listener::connect(path)?, None);
        let mut messages = Messages::new(LONGEST);
        let deadline = Instant::now() + PATIENCE;
        while !messages.is_next_here() {
            if !messages.fill(&link, Some(deadline)).map_err(failed)? {
                return Err(failed(io::ErrorKind::UnexpectedEof.into()));
            }
        }
        let body = messages.take().map_err(failed)?.unwrap_or_default();
        let greeting = serde_json::from_slice::<Greeting>(body).map_err(|_| strange(path))?;
        if let Some(failure) = greeting.error {
            return Err(failure.into_error());
        }
        if greeting.version != VERSION || greeting.window == 0 {
            return Err(strange(path));
        }
        Ok(Greeted { link, messages, greeting })
    }
}

fn strange(path: &Path) -> Error {
    Error::unavailable(format!(
        "{}: what listens there is no log, or of another version of Bulla",
        path.display()
    ))
}

impl Connection {
    /// Connects to the log that listens at `path`.
    ///
    /// # Errors
    /// `Unavailable` where nobody listens there, this user may not connect, or there are as many clients as there may be.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref().to_owned();
        let first = Greeted::connect(&path)?;
        Ok(Connection {
            path,
            origin: first.greeting.origin.clone(),
            timeout: TIMEOUT,
            owner: process::id(),
            first: Mutex::new(Some(first)),
            producers: Mutex::default(),
        })
    }

    /// How long appending and flushing wait for the log at most (default 10 s).
    pub fn append_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The log's origin.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// A new producer, for one thread.
    ///
    /// # Errors
    /// As [`Connection::open`].
    pub fn producer(&self) -> Result<RemoteProducer> {
        check_owner(self.owner)?;
        let first = lock(&self.first).take();
        let greeted = first.map_or_else(|| Greeted::connect(&self.path), Ok)?;
        let shared = Shared::start(greeted, &self.path)?;
        let mut producers = lock(&self.producers);
        producers.retain(|producer| !producer.is_settled());
        producers.push(shared.clone());
        let environment = Environment::default();
        Ok(RemoteProducer { shared, environment, timeout: self.timeout, covered: 0, owner: self.owner })
    }

    /// Waits until everything that any producer has appended is durable. Producers that are left can append no more.
    ///
    /// # Errors
    /// What kept anything from being durable: `Invalid` where entries were refused of which no receipt told, `Closed` where the connection
    /// ended. `Invalid` where what is told of a receipt calls this: a thread of its own then closes the connection, and the exit of the
    /// process waits until it has.
    pub fn close(self) -> Result<()> {
        check_owner(self.owner)?;
        if telling::is_telling() {
            closer::close_elsewhere(move || drop(self.close_here()))?;
            return Err(Error::invalid(
                "what is told of a receipt cannot wait until the connection is closed: a thread of its own closes it, and nobody learns of its errors",
            ));
        }
        self.close_here()
    }

    fn close_here(self) -> Result<()> {
        let producers = std::mem::take(&mut *lock(&self.producers));
        let results = producers.iter().map(|producer| {
            let mut staged = lock(&producer.staged);
            let sent = producer.send_all(&mut staged, Instant::now().checked_add(self.timeout));
            staged.is_closed = true;
            let to = staged.batches;
            drop(staged);
            let waited = sent.and_then(|()| producer.wait(to, None).map(drop));
            let _ = shutdown(producer.link.socket(), Shutdown::Write);
            waited.and_then(|()| lock(&producer.state).refusal(0, u64::MAX).map_or(Ok(()), Err))
        });
        // All of them are waited for, whatever became of one.
        results.collect::<Vec<_>>().into_iter().collect()
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Connection({:?}, {:?})", self.path, self.origin)
    }
}

/// What a producer, its receipts and its thread share.
struct Shared {
    link: Link,
    path: PathBuf,
    /// Batches that may be under way.
    window: u64,
    staged: Mutex<Staged>,
    state: Mutex<State>,
    changed: Condvar,
    /// Has the thread look at what is staged.
    wake: OwnedFd,
}

/// What was appended and is not sent.
#[derive(Default)]
struct Staged {
    /// The next batch, with room for its length before it.
    next: Vec<u8>,
    /// Batches that were begun to be sent.
    batches: u64,
    /// What is being sent, and how far that is.
    sending: Vec<u8>,
    sent: usize,
    is_closed: bool,
}

/// What the log has said.
#[derive(Default)]
struct State {
    acknowledged: u64,
    /// Why nothing more will be.
    failure: Option<(ErrorKind, String)>,
    refused: Vec<RefusedBatches>,
    tells: Vec<Tell>,
}

/// Batches from the first to the last of which so many entries were refused, and why the first was.
struct RefusedBatches {
    first: u64,
    last: u64,
    entries: u64,
    reason: String,
}

struct Tell {
    from: u64,
    to: u64,
    tell: Box<dyn FnOnce(Result<()>) + Send>,
}

impl State {
    /// What is to be said of batches behind `from` up to `to`, of which entries were refused.
    fn refusal(&self, from: u64, to: u64) -> Option<Error> {
        let mut those =
            self.refused.iter().filter(|refused| refused.last > from && refused.first <= to).peekable();
        let reason = those.peek()?.reason.clone();
        let entries = those.map(|refused| refused.entries).sum::<u64>();
        let text = if entries == 1 { "an entry was".to_owned() } else { format!("{entries} entries were") };
        Some(Error::invalid(format!("{text} refused, the others are durable: {reason}")))
    }

    /// What came of the batches behind `from` up to `to`, where that is known.
    fn outcome(&self, from: u64, to: u64) -> Option<Result<()>> {
        if self.acknowledged >= to {
            return Some(self.refusal(from, to).map_or(Ok(()), Err));
        }
        self.failure.as_ref().map(|(kind, message)| Err(Error::new(*kind, message.clone())))
    }

    fn take(&mut self, acknowledgement: Acknowledgement) {
        if let Some(failure) = acknowledgement.error {
            let error = failure.into_error();
            self.failure.get_or_insert((error.kind(), error.to_string()));
            return;
        }
        self.acknowledged = acknowledgement.batch;
        if acknowledgement.refused > 0 {
            let (first, entries) = (acknowledgement.batch, acknowledgement.refused);
            let reason =
                acknowledgement.reasons.into_iter().next().map_or(String::new(), |first| first.reason);
            self.refused.push(RefusedBatches { first, last: first, entries, reason });
            if self.refused.len() > REMEMBERED {
                // Whoever asks of one of these is told of both: of neither would not be true.
                let second = self.refused.remove(1);
                self.refused[0].last = second.last;
                self.refused[0].entries += second.entries;
            }
        }
    }
}

impl Shared {
    fn start(greeted: Greeted, path: &Path) -> Result<Arc<Self>> {
        let failed = |error| Error::io("starting a producer", error);
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let shared = Arc::new(Shared {
            link: greeted.link,
            path: path.to_owned(),
            window: greeted.greeting.window as u64,
            staged: Mutex::default(),
            state: Mutex::default(),
            changed: Condvar::new(),
            wake: wake.map_err(|error| failed(error.into()))?,
        });
        let (of_thread, messages) = (shared.clone(), greeted.messages);
        let thread = std::thread::Builder::new().name("bulla-remote".to_owned());
        thread.spawn(move || of_thread.follow(messages)).map_err(failed)?;
        Ok(shared)
    }

    /// Whether all that was sent is known to be durable, or nothing more will be known. Of one that is in use nobody waits to find out: whoever
    /// asks may be what its thread tells of a receipt.
    fn is_settled(&self) -> bool {
        let staged = match self.staged.try_lock() {
            Err(TryLockError::WouldBlock) => return false,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Ok(staged) => staged,
        };
        let state = lock(&self.state);
        state.failure.is_some() || (staged.is_closed && state.acknowledged == staged.batches)
    }

    /// Reads what is acknowledged until the connection ends, and sends what has lingered.
    fn follow(&self, mut messages: Messages) {
        let mut lingers = None::<Instant>;
        let ended = loop {
            let left = lingers.map(|until| until.saturating_duration_since(Instant::now()));
            let timeout = left.and_then(|left| Timespec::try_from(left).ok());
            let mut polled =
                [PollFd::new(self.link.socket(), PollFlags::IN), PollFd::new(&self.wake, PollFlags::IN)];
            // Where polling fails, reading fails after it.
            let _ = poll(&mut polled, timeout.as_ref());
            let (readable, woken) = (!polled[0].revents().is_empty(), !polled[1].revents().is_empty());
            if woken {
                let _ = rustix::io::read(&self.wake, &mut [0; 8]);
                lingers = lingers.or_else(|| Some(Instant::now() + LINGER));
            }
            if readable && let Err(error) = self.read(&mut messages) {
                break error;
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
                "the connection to {} ended: the log there was closed; connect again",
                self.path.display()
            ),
        };
        lock(&self.state).failure.get_or_insert((ErrorKind::Closed, message));
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
            let acknowledgement = serde_json::from_slice::<Acknowledgement>(body).map_err(|_| {
                Some(io::Error::new(io::ErrorKind::InvalidData, "what came is no acknowledgement"))
            })?;
            lock(&self.state).take(acknowledgement);
        }
        self.tell();
        Ok(())
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
        drop(state);
        self.changed.notify_all();
        known.into_iter().for_each(|(tell, outcome)| telling::tell(|| tell(outcome)));
    }

    /// Waits until it is known what came of all batches up to `to`; false where `deadline` came first.
    ///
    /// # Errors
    /// Why nothing more will be known of them.
    fn wait(&self, to: u64, deadline: Option<Instant>) -> Result<bool> {
        let mut state = lock(&self.state);
        while state.acknowledged < to {
            if let Some(failure) = state.failure.as_ref() {
                return Err(Error::new(failure.0, failure.1.clone()));
            }
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
    fn send_all(&self, staged: &mut Staged, deadline: Option<Instant>) -> Result<()> {
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

fn slow() -> Error {
    Error::new(ErrorKind::Timeout, "the log took nothing more in time: it is slower than what is appended")
}

/// One thread's way into a log that another process has open. Its entries keep their order.
pub struct RemoteProducer {
    shared: Arc<Shared>,
    environment: Environment,
    timeout: Duration,
    /// The batch up to which receipts were given.
    covered: u64,
    owner: u32,
}

impl RemoteProducer {
    /// Stages an entry, and sends what is staged once that is much. Its time is that of appending, where it has none.
    ///
    /// # Errors
    /// `Invalid` where a field breaks a limit, `Timeout` where the log took nothing for as long as may be waited, `Closed` or the log's
    /// failure where the connection has ended. The entry is then not staged; nothing else is affected.
    pub fn append(&mut self, entry: &Entry<'_>) -> Result<()> {
        check_owner(self.owner)?;
        measure(entry)?;
        self.stage(entry, self.environment.clock.now(), self.timeout)
    }

    /// As [`RemoteProducer::append`], but never waits: `Timeout` at once where the log has not taken what was staged before.
    ///
    /// # Errors
    /// As [`RemoteProducer::append`].
    pub fn try_append(&mut self, entry: &Entry<'_>) -> Result<()> {
        check_owner(self.owner)?;
        measure(entry)?;
        self.stage(entry, self.environment.clock.now(), Duration::ZERO)
    }

    /// Stages entries one after the other, at one time where they have none.
    ///
    /// # Errors
    /// As [`RemoteProducer::append`], with how many were staged before. A broken limit is found before any is staged.
    pub fn append_batch(&mut self, entries: &[Entry<'_>]) -> Result<(), BatchError> {
        check_owner(self.owner).map_err(|error| BatchError { staged: 0, error })?;
        for (index, entry) in entries.iter().enumerate() {
            measure(entry).map_err(|error| {
                let error =
                    Error::invalid(format!("entry {index} of the batch: {error}; none of it was staged"));
                BatchError { staged: 0, error }
            })?;
        }
        let time = self.environment.clock.now();
        for (staged, entry) in entries.iter().enumerate() {
            self.stage(entry, time, self.timeout).map_err(|error| BatchError { staged, error })?;
        }
        Ok(())
    }

    /// Sends all that this producer has appended.
    ///
    /// # Errors
    /// `Timeout` where the log took nothing for as long as may be waited: nothing is lost, and flushing again goes on. `Closed` or the
    /// log's failure where the connection has ended.
    pub fn flush(&mut self) -> Result<RemoteReceipt> {
        check_owner(self.owner)?;
        let mut staged = lock(&self.shared.staged);
        self.shared.send_all(&mut staged, Instant::now().checked_add(self.timeout))?;
        let to = staged.batches;
        let from = std::mem::replace(&mut self.covered, to);
        Ok(RemoteReceipt { shared: self.shared.clone(), from, to, owner: self.owner })
    }

    fn stage(&mut self, entry: &Entry<'_>, time: i64, timeout: Duration) -> Result<()> {
        let mut staged = lock(&self.shared.staged);
        if staged.is_closed {
            return Err(Error::new(ErrorKind::Closed, "the connection is closed"));
        }
        if staged.next.len() >= FULL {
            self.shared.send_all(&mut staged, Instant::now().checked_add(timeout))?;
        }
        let is_first = staged.next.is_empty();
        if is_first {
            // Before the first entry of a batch: later it is found out when the batch is sent.
            if let Some((kind, message)) = &lock(&self.shared.state).failure {
                return Err(Error::new(*kind, message.clone()));
            }
            staged.next.extend_from_slice(&[0; HEAD - 1]);
            staged.next.push(Form::MessagePack.byte());
        }
        msgpack::write_entry(entry, entry.time.or(Some(time)), &mut staged.next);
        if staged.next.len() >= FULL {
            match self.shared.send_all(&mut staged, Some(Instant::now())) {
                // It stays staged, and whoever appends next waits.
                Err(error) if error.kind() == ErrorKind::Timeout => {}
                // The next one is told.
                sent => drop(sent),
            }
        }
        if is_first {
            // One of a few that can fail: it counts to 2^64.
            let _ = rustix::io::write(&self.shared.wake, &1_u64.to_ne_bytes());
        }
        Ok(())
    }
}

impl Drop for RemoteProducer {
    fn drop(&mut self) {
        if self.owner != process::id() {
            return;
        }
        let mut staged = lock(&self.shared.staged);
        // What cannot be sent now, `Connection::close` says.
        let sent = self.shared.send_all(&mut staged, Instant::now().checked_add(self.timeout));
        staged.is_closed = true;
        if sent.is_ok() {
            let _ = shutdown(self.shared.link.socket(), Shutdown::Write);
        }
    }
}

impl fmt::Debug for RemoteProducer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RemoteProducer({:?})", self.shared.path)
    }
}

/// What [`RemoteProducer::flush`] covered, and how far it has come.
#[derive(Clone)]
#[must_use = "a receipt says nothing until it is asked"]
pub struct RemoteReceipt {
    shared: Arc<Shared>,
    from: u64,
    to: u64,
    owner: u32,
}

impl RemoteReceipt {
    /// Waits until the entries are durable, as [`crate::Receipt::durable`] does.
    ///
    /// # Errors
    /// `Invalid` where the log refused some, the others being durable; the failure that keeps them from being known to be.
    pub fn durable(&self) -> Result<()> {
        self.wait(None).map(drop)
    }

    /// As [`RemoteReceipt::durable`], for `timeout` at most; false when that was too short.
    ///
    /// # Errors
    /// As [`RemoteReceipt::durable`].
    pub fn durable_within(&self, timeout: Duration) -> Result<bool> {
        self.wait(Instant::now().checked_add(timeout))
    }

    /// Has `tell` called once, with what [`RemoteReceipt::durable`] would return: by this thread where that is known already, else by the
    /// connection's, which goes on when `tell` returns.
    ///
    /// # Errors
    /// `Closed` in a forked child; `tell` is not called then.
    pub fn when_durable(&self, tell: impl FnOnce(Result<()>) + Send + 'static) -> Result<()> {
        check_owner(self.owner)?;
        let mut state = lock(&self.shared.state);
        match state.outcome(self.from, self.to) {
            Some(outcome) => {
                drop(state);
                telling::tell(|| tell(outcome));
            }
            None => state.tells.push(Tell { from: self.from, to: self.to, tell: Box::new(tell) }),
        }
        Ok(())
    }

    fn wait(&self, deadline: Option<Instant>) -> Result<bool> {
        check_owner(self.owner)?;
        if !self.shared.wait(self.to, deadline)? {
            return Ok(false);
        }
        lock(&self.shared.state).refusal(self.from, self.to).map_or(Ok(true), Err)
    }
}

impl fmt::Debug for RemoteReceipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RemoteReceipt({}..={})", self.from + 1, self.to)
    }
}

/// Of a thread that panicked what it locked is whole: nothing that runs under a lock can panic within a change.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn measure(entry: &Entry<'_>) -> Result<()> {
    entry.measure().map(drop).map_err(|error| Error::invalid(error.to_string()))
}

/// Refuses a handle that came along into a forked child, whose connection is its parent's.
fn check_owner(owner: u32) -> Result<()> {
    match owner == process::id() {
        true => Ok(()),
        false => Err(Error::new(
            ErrorKind::Closed,
            "the connection belongs to the process that opened it, not to its child: connect again there",
        )),
    }
}

//! [`Connection`]: a process that appends to the log which another process has open.
//!
//! A producer has a connection of its own, and a thread that reads what is acknowledged, and sends what has lingered.
#![expect(clippy::disallowed_methods, reason = "a thread for each connection, and how long one may wait")]

mod acknowledged;
mod greeted;
mod producer;
mod receipt;
mod shared;

pub use producer::RemoteProducer;
pub use receipt::RemoteReceipt;

use super::PATIENCE;
use crate::log::closer;
use crate::write::telling;
use acknowledged::NotDurable;
use bulla_crypto::environment::Environment;
use bulla_store::{Error, ErrorKind, Result, process};
use greeted::Greeted;
use rustix::net::{Shutdown, shutdown};
use shared::Shared;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long appending and flushing wait for the log, unless it is said otherwise.
const TIMEOUT: Duration = Duration::from_secs(10);

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
    /// What is not durable of those that are not among `producers` any more.
    not_durable: Mutex<NotDurable>,
}

impl Connection {
    /// Connects to the log that listens at `path`.
    ///
    /// # Errors
    /// `Unavailable` where nobody listens there, this user may not connect, or there are as many clients as there may be.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_within(path, PATIENCE)
    }

    /// The same, where whoever listens has to greet within `timeout`, or within a second, if that is longer; no longer than [`Connection::open`] waits.
    ///
    /// # Errors
    /// As [`Connection::open`].
    pub fn open_within(path: impl AsRef<Path>, timeout: Duration) -> Result<Self> {
        let path = path.as_ref().to_owned();
        let first = Greeted::connect(&path, timeout)?;
        Ok(Connection {
            path,
            origin: first.greeting.origin.clone(),
            timeout: TIMEOUT,
            owner: process::id(),
            first: Mutex::new(Some(first)),
            producers: Mutex::default(),
            not_durable: Mutex::default(),
        })
    }

    /// How long appending, flushing and connecting again wait for the log at most (default 10 s).
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
    /// As [`Connection::open`]. `Refused` where another log listens there by now.
    pub fn producer(&self) -> Result<RemoteProducer> {
        check_owner(self.owner)?;
        // The log may have ended since: there is nothing that it would say by itself.
        let first = lock(&self.first).take().filter(|first| first.link.is_idle());
        let greeted = first.map_or_else(|| Greeted::connect(&self.path, self.timeout), Ok)?;
        let origin = &greeted.greeting.origin;
        if *origin != self.origin {
            return Err(Error::new(
                ErrorKind::Refused,
                format!(
                    "{}: the log {origin} listens there by now, and this connection is one to {}: connect anew where that is meant",
                    self.path.display(),
                    self.origin
                ),
            ));
        }
        let shared = Shared::start(greeted, &self.path)?;
        let mut producers = lock(&self.producers);
        let mut not_durable = lock(&self.not_durable);
        producers.retain(|producer| !producer.has_settled(&mut not_durable));
        drop(not_durable);
        producers.push(shared.clone());
        let environment = Environment::default();
        Ok(RemoteProducer { shared, environment, timeout: self.timeout, covered: 0, owner: self.owner })
    }

    /// Waits until everything that any producer has appended is durable, and whoever asked is told so of each receipt. Producers that are left can
    /// append no more.
    ///
    /// # Errors
    /// What kept anything that any producer of this connection ever appended from being durable, whether or not a receipt told of it: `Closed`
    /// where a producer's connection ended before all was acknowledged; where none did, `Invalid` where entries were refused. `Invalid` where what is told of a receipt calls this: a thread of its own then closes the connection, and the exit of the
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
        let mut not_durable = std::mem::take(&mut *lock(&self.not_durable));
        // All of them are waited for, whatever became of one.
        for producer in &producers {
            let mut staged = lock(&producer.staged);
            let sent = producer.send_all(&mut staged, Instant::now().checked_add(self.timeout));
            staged.is_closed = true;
            let to = staged.batches;
            drop(staged);
            let waited = sent.and_then(|()| producer.wait(to, None).map(drop));
            if waited.is_ok() || producer.check_connected().is_err() {
                producer.wait_until_told();
            }
            let _ = shutdown(producer.link.socket(), Shutdown::Write);
            let refused = lock(&producer.state).refused(0, u64::MAX);
            not_durable.add(waited, refused);
        }
        not_durable.into_result()
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Connection({:?}, {:?})", self.path, self.origin)
    }
}

/// Of a thread that panicked what it locked is whole: nothing that runs under a lock can panic within a change.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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

//! [`RemoteProducer`].

use super::receipt::RemoteReceipt;
use super::shared::{Shared, Staged};
use super::{check_owner, lock};
use crate::log::BatchError;
use crate::socket::wire::Form;
use crate::write::telling;
use bulla_crypto::environment::Environment;
use bulla_proof::Entry;
use bulla_store::{Error, ErrorKind, Result, process};
use bulla_text::msgpack;
use rustix::net::{Shutdown, shutdown};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A batch of so many bytes is sent without waiting for more.
const FULL: usize = 64 << 10;
/// A length, and the byte that says what a batch is written in.
const HEAD: usize = 5;

/// One thread's way into a log that another process has open. Its entries keep their order.
pub struct RemoteProducer {
    pub(super) shared: Arc<Shared>,
    pub(super) environment: Environment,
    pub(super) timeout: Duration,
    /// The batch up to which receipts were given.
    pub(super) covered: u64,
    pub(super) owner: u32,
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
    /// log's failure where the connection has ended, and `Closed` where it was closed.
    pub fn flush(&mut self) -> Result<RemoteReceipt> {
        check_owner(self.owner)?;
        let mut staged = lock(&self.shared.staged);
        check_open(&staged)?;
        self.shared.send_all(&mut staged, deadline(self.timeout))?;
        let to = staged.batches;
        let from = std::mem::replace(&mut self.covered, to);
        Ok(RemoteReceipt { shared: self.shared.clone(), from, to, owner: self.owner })
    }

    fn stage(&mut self, entry: &Entry<'_>, time: i64, timeout: Duration) -> Result<()> {
        let mut staged = lock(&self.shared.staged);
        check_open(&staged)?;
        // Nobody sends what lingers behind the end of the connection.
        self.shared.check_connected()?;
        if staged.next.len() >= FULL {
            self.shared.send_all(&mut staged, deadline(timeout))?;
        }
        let is_first = staged.next.is_empty();
        if is_first {
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
        let sent = self.shared.send_all(&mut staged, deadline(self.timeout));
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

/// Until when the log is waited for: not at all by whoever is told of a receipt, for whom the thread waits that reads acknowledgements.
fn deadline(timeout: Duration) -> Option<Instant> {
    let timeout = if telling::is_telling() { Duration::ZERO } else { timeout };
    Instant::now().checked_add(timeout)
}

fn check_open(staged: &Staged) -> Result<()> {
    match staged.is_closed {
        false => Ok(()),
        true => Err(Error::new(ErrorKind::Closed, "the connection is closed")),
    }
}

fn measure(entry: &Entry<'_>) -> Result<()> {
    entry.measure().map(drop).map_err(|error| Error::invalid(error.to_string()))
}

//! [`Producer`].

use super::source::{Place, Source};
use super::{Receipt, check_owner};
use crate::fields::{CompiledRules, Replacements};
use crate::write::engine::Engine;
use crate::write::stage::buffer::{StagedPlace, Writer, overhead};
use crate::write::stage::queue::{NoSpace, OutageNumber, ProducerId, StagedPosition, Wait};
use crate::write::telemetry::count;
use crate::write::telling;
use bulla_proof::Entry;
use bulla_store::process;
use bulla_store::{Error, ErrorKind, Result};
use std::fmt::{self, Debug};
use std::sync::Arc;
use std::time::Duration;

/// One thread's way into the log. Its entries keep their order.
pub struct Producer {
    engine: Arc<Engine>,
    minimise: Option<Arc<CompiledRules>>,
    /// Values that the rules dropped and that are not yet counted where all producers' are.
    not_addresses: u64,
    id: ProducerId,
    writer: Option<Writer>,
    /// The position up to which receipts were given.
    covered: StagedPosition,
    /// Entries that were dropped since the last receipt was given.
    dropped: u64,
    owner: u32,
}

/// Why a batch was not staged whole.
#[derive(Debug)]
#[non_exhaustive]
pub struct BatchError {
    /// How many of its entries, from the first, were staged all the same.
    pub staged: usize,
    /// Why the next one was not.
    pub error: Error,
}

impl fmt::Display for BatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "entry {} of the batch: {}", self.staged, self.error)
    }
}

impl std::error::Error for BatchError {}

impl Producer {
    /// A new one, of the log of this process.
    pub(super) fn of(
        engine: &Arc<Engine>,
        minimise: Option<&Arc<CompiledRules>>,
        owner: u32,
    ) -> Result<Self> {
        let (id, covered) = engine.staging.register().ok_or_else(|| {
            let most = engine.tuning.buffers / 2;
            Error::invalid(format!("there are {most} producers already; raise `memory` for more"))
        })?;
        let (engine, minimise) = (engine.clone(), minimise.cloned());
        Ok(Producer { engine, minimise, not_addresses: 0, id, writer: None, covered, dropped: 0, owner })
    }

    /// Stages an entry: copies what the log's rules leave of it into this producer's buffer. Waits up to
    /// `append_timeout` for memory, but where what is told of a receipt calls this, which never waits; where the log drops entries instead ([`OnFailure::Drop`](crate::OnFailure::Drop)), and this one is,
    /// the receipt says so ([`Receipt::dropped`]).
    ///
    /// # Errors
    /// `Invalid` where a field breaks a limit, `Timeout` where memory stayed full, `Closed` or the failure where
    /// nothing can be appended any more. The entry is then not staged; nothing else is affected.
    #[inline]
    pub fn append(&mut self, entry: &Entry<'_>) -> Result<()> {
        check_owner(self.owner)?;
        let time = self.time_of(entry);
        self.stage(entry, time, None, |engine| Wait::lasting(engine.tuning.append_timeout))
    }

    /// Stages an entry as [`Producer::append`] does, with where the record stood that it is of: the block that has the entry says so,
    /// in the same frame. So what [`Log::sources`](super::Log::sources) says the log holds, after whatever stop, is exactly what
    /// entries in it are of.
    ///
    /// An entry that is not staged records nothing. Let the next range of the source begin where the last one that was staged ended:
    /// then ranges meet, and what lies between two of them was lost.
    ///
    /// # Errors
    /// As [`Producer::append`]; `Invalid` where the range is empty or the source another log's, `Refused` where the source has ended,
    /// or the log has more than 4,096 ranges of it that do not meet, or a million of all its sources and of this one more than 16.
    #[inline]
    pub fn append_from(&mut self, entry: &Entry<'_>, source: &Source, place: &Place) -> Result<()> {
        check_owner(self.owner)?;
        let place = source.staged(place, &self.engine)?;
        let time = self.time_of(entry);
        self.stage(entry, time, Some(&place), |engine| Wait::lasting(engine.tuning.append_timeout))
    }

    /// Stages an entry as [`Producer::append_from`] does, but never waits.
    ///
    /// # Errors
    /// As [`Producer::append_from`]; `Timeout` at once where there is no memory.
    #[inline]
    pub fn try_append_from(&mut self, entry: &Entry<'_>, source: &Source, place: &Place) -> Result<()> {
        check_owner(self.owner)?;
        let place = source.staged(place, &self.engine)?;
        let time = self.time_of(entry);
        self.stage(entry, time, Some(&place), |_| Wait::Never)
    }

    /// How long [`Producer::append`] waits for memory, at most.
    pub fn append_timeout(&self) -> Duration {
        self.engine.tuning.append_timeout
    }

    /// Stages an entry as [`Producer::append`] does, but never waits.
    ///
    /// # Errors
    /// As [`Producer::append`]; `Timeout` at once where there is no memory.
    #[inline]
    pub fn try_append(&mut self, entry: &Entry<'_>) -> Result<()> {
        check_owner(self.owner)?;
        let time = self.time_of(entry);
        self.stage(entry, time, None, |_| Wait::Never)
    }

    /// Stages entries one after the other, at one time where they have none.
    ///
    /// # Errors
    /// As [`Producer::append`], with how many were staged before. A broken limit is found before any is staged.
    pub fn append_batch(&mut self, entries: &[Entry<'_>]) -> Result<(), BatchError> {
        check_owner(self.owner).map_err(|error| BatchError { staged: 0, error })?;
        for (index, entry) in entries.iter().enumerate() {
            measure(entry).map_err(|error| {
                self.count_refused();
                let error =
                    Error::invalid(format!("entry {index} of the batch: {error}; none of it was staged"));
                BatchError { staged: 0, error }
            })?;
        }
        let time = self.engine.environment.clock.now();
        let wait = Wait::lasting(self.engine.tuning.append_timeout);
        for (staged, entry) in entries.iter().enumerate() {
            self.stage(entry, time, None, |_| wait).map_err(|error| BatchError { staged, error })?;
        }
        Ok(())
    }

    /// Queues everything that this producer has appended, to be sealed without waiting for more.
    ///
    /// # Errors
    /// `Closed` or the failure where nothing can be committed any more.
    pub fn flush(&mut self) -> Result<Receipt> {
        check_owner(self.owner)?;
        self.count_dropped();
        let to = self.engine.staging.flush(self.id).map_err(|refusal| self.refusal(&refusal))?;
        let from = std::mem::replace(&mut self.covered, to);
        let dropped = std::mem::take(&mut self.dropped);
        Ok(Receipt { engine: self.engine.clone(), from, to, dropped, owner: self.owner })
    }

    #[inline]
    fn time_of(&self, entry: &Entry<'_>) -> i64 {
        entry.time.unwrap_or_else(|| self.engine.environment.clock.now())
    }

    /// Stages an entry that keeps the limits, or what the rules leave of it. The limits are the entry's, whatever of it
    /// is logged.
    #[inline]
    fn stage(
        &mut self,
        entry: &Entry<'_>,
        time: i64,
        place: Option<&StagedPlace>,
        wait: impl FnOnce(&Engine) -> Wait,
    ) -> Result<()> {
        let length = measure(entry).inspect_err(|_| self.count_refused())?;
        let Some(minimise) = &self.minimise else {
            return self.put(length, place, |row| entry.encode(time, row), wait);
        };
        let mut scratch = Replacements::default();
        let minimised = minimise.apply(entry, &mut scratch);
        let length = minimised.measure().map_err(|error| Error::invalid(error.to_string()))?;
        self.put(length, place, |row| minimised.encode(time, row), wait)?;
        self.not_addresses += u64::from(minimised.not_address);
        Ok(())
    }

    #[inline]
    fn put(
        &mut self,
        length: usize,
        place: Option<&StagedPlace>,
        encode: impl Fn(&mut [u8]),
        wait: impl FnOnce(&Engine) -> Wait,
    ) -> Result<()> {
        if self.push(length, place, &encode) {
            return Ok(());
        }
        // What the log has staged it may only write once whoever is told of a receipt returns.
        let wait = if telling::is_telling() { Wait::Never } else { wait(&self.engine) };
        self.put_slowly(length, place, &encode, wait)
    }

    #[inline]
    fn push(&mut self, length: usize, place: Option<&StagedPlace>, encode: impl FnOnce(&mut [u8])) -> bool {
        self.writer.as_mut().is_some_and(|writer| writer.push(length, place, encode))
    }

    /// Exchanges a full buffer for an empty one, and goes on in that: once a buffer.
    #[cold]
    fn put_slowly(
        &mut self,
        length: usize,
        place: Option<&StagedPlace>,
        encode: &dyn Fn(&mut [u8]),
        wait: Wait,
    ) -> Result<()> {
        self.count_dropped();
        // What is of a source is still there: it may wait.
        let may_drop = place.is_none();
        if length + overhead(place) > self.engine.tuning.buffer_size {
            return match self.engine.staging.push_large(self.id, length, place, encode, wait, may_drop) {
                Err(NoSpace::Dropped(outage)) => self.drop_entry(outage, length, encode),
                pushed => pushed.map_err(|refusal| self.refusal(&refusal)),
            };
        }
        loop {
            match self.engine.staging.exchange(self.id, self.writer.take(), wait, may_drop) {
                Ok(writer) => self.writer = Some(writer),
                Err(NoSpace::Dropped(outage)) => return self.drop_entry(outage, length, encode),
                Err(refusal) => return Err(self.refusal(&refusal)),
            }
            // The row fits an empty buffer, unless that was closed meanwhile: the next exchange says so then.
            if self.push(length, place, encode) {
                return Ok(());
            }
        }
    }

    /// Counts an entry that was dropped, and has it set aside where the log does that.
    #[cold]
    #[expect(clippy::unnecessary_wraps, reason = "whoever appends is told nothing: the receipt says so")]
    fn drop_entry(&mut self, outage: OutageNumber, length: usize, encode: &dyn Fn(&mut [u8])) -> Result<()> {
        self.dropped += 1;
        count(&self.engine.meter.dropped, 1);
        self.engine.set_aside(outage, length, encode);
        Ok(())
    }

    #[cold]
    fn count_refused(&self) {
        count(&self.engine.meter.refused, 1);
    }

    fn count_dropped(&mut self) {
        if let Some(minimise) = &self.minimise {
            minimise.count_not_addresses(std::mem::take(&mut self.not_addresses));
        }
    }

    fn refusal(&self, refusal: &NoSpace) -> Error {
        match refusal {
            NoSpace::Timeout => {
                count(&self.engine.meter.timeouts, 1);
                Error::new(ErrorKind::Timeout, "the memory for staged entries is full")
            }
            NoSpace::Dropped(_) => {
                Error::unavailable("nothing takes what the log writes: the entry was dropped")
            }
            NoSpace::Closed => Error::new(ErrorKind::Closed, "the log is closed"),
            NoSpace::Failed => {
                let failure = self.engine.progress.failure();
                failure.unwrap_or_else(|| Error::unavailable("the log takes no more entries"))
            }
        }
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        if self.owner == process::id() {
            self.count_dropped();
            self.engine.staging.retire(self.id, self.writer.take());
        }
    }
}

impl Debug for Producer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Producer({:?})", self.id)
    }
}

#[inline]
fn measure(entry: &Entry<'_>) -> Result<usize> {
    entry.measure().map_err(|error| Error::invalid(error.to_string()))
}

//! A producer: a way into a log.

use crate::arrow::{self, Batches};
use crate::entry::{Refusal, Values};
use crate::error::{invalid, raise, raise_batch, with_staged};
use crate::given::not_iterated;
use crate::owner::not_pickled;
use crate::pending::Pending;
use crate::receipt::Receipt;
use crate::shared::Shared;
use crate::way::Way;
use bulla::{BatchError, Entry, Error, ErrorKind};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Entries that are staged at a time, of dicts.
const DICTS: usize = 512;

/// The same of a table's rows.
const ROWS: usize = 1024;

/// A way into a log. Its entries keep their order; threads that share one take turns. `Log.producer` and
/// `Connection.producer` make it. In a `with` block it is closed at the end.
#[pyclass(frozen, module = "bulla_audit")]
pub(crate) struct Producer {
    /// Nothing of Python runs while this is locked, and whoever waits for it is detached.
    way: Mutex<Option<Way>>,
    log: Arc<Shared>,
    /// The log or connection in Python, which is not closed while somebody has a producer of it.
    _kept: Py<PyAny>,
}

impl Producer {
    /// A producer of a log, which is `kept` in Python while there is one.
    pub(crate) fn new(py: Python<'_>, log: Arc<Shared>, kept: Py<PyAny>) -> PyResult<Self> {
        Ok(Producer { way: Mutex::new(Some(log.way(py)?)), log, _kept: kept })
    }

    fn lock(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, Option<Way>>> {
        self.log.owner.check(py)?;
        Ok(self.way.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner))
    }

    /// Calls something that may wait.
    fn with<T: Send>(&self, py: Python<'_>, call: impl FnOnce(&mut Way) -> T + Send) -> PyResult<T> {
        let mut locked = self.lock(py)?;
        let called = locked.as_mut().map(|way| py.detach(|| call(way)));
        drop(locked);
        called.ok_or_else(|| raise(py, &closed()))
    }

    /// Stages entries behind the `staged` ones of a batch.
    fn stage(&self, py: Python<'_>, entries: &[Entry<'_>], staged: usize) -> PyResult<()> {
        let failed = |mut error: BatchError| {
            error.staged += staged;
            raise_batch(py, &error)
        };
        self.with(py, |way| way.append_batch(entries))
            .map_err(|error| with_staged(py, error, staged))?
            .map_err(failed)
    }

    fn append_dicts(&self, py: Python<'_>, entries: &Bound<'_, PyAny>) -> PyResult<usize> {
        let (mut values, mut staged) = (Values::default(), 0);
        let refused =
            |refusal: Refusal, place, staged| with_staged(py, refusal.raise(py, Some(place)), staged);
        let stage = |values: &mut Values<'_>, staged: &mut usize| -> PyResult<()> {
            let made =
                values.entries().map_err(|(place, refusal)| refused(refusal, *staged + place, *staged))?;
            self.stage(py, &made, *staged)?;
            drop(made);
            *staged += values.len();
            values.clear();
            Ok(())
        };
        let unfit = || {
            let takes = "an iterable of dicts, or have Arrow's C stream or array interface";
            invalid(py, format!("`entries` has to be {takes}"))
        };
        let each = entries.try_iter().map_err(|error| not_iterated(py, error, unfit));
        for entry in each.map_err(|error| with_staged(py, error, 0))? {
            let entry = entry.map_err(|error| with_staged(py, error, staged))?;
            let place = staged + values.len();
            values.take_dict(&entry).map_err(|refusal| refused(refusal, place, staged))?;
            if values.len() == DICTS {
                stage(&mut values, &mut staged)?;
            }
        }
        stage(&mut values, &mut staged)?;
        Ok(staged)
    }

    fn append_table(&self, py: Python<'_>, mut batches: Batches) -> PyResult<usize> {
        let mut staged = 0;
        loop {
            // What makes the batches may be Python's again.
            let batch = match py.detach(|| batches.next()) {
                None => return Ok(staged),
                Some(batch) => batch.and_then(arrow::checked).map_err(|error| {
                    with_staged(py, invalid(py, format!("the table cannot be read: {error}")), staged)
                })?,
            };
            for first in (0..batch.num_rows()).step_by(ROWS) {
                let window = batch.slice(first, ROWS.min(batch.num_rows() - first));
                let entries = py.detach(|| arrow::entries(&window, staged));
                let entries = entries.map_err(|error| with_staged(py, raise(py, &error), staged))?;
                self.stage(py, &entries, staged)?;
                staged += entries.len();
            }
        }
    }
}

fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the producer was closed")
}

#[pymethods]
impl Producer {
    /// Stages an entry: copies it. It is durable a little later by itself; `flush` gives a receipt that says when.
    ///
    /// `None` is absent, which is neither empty nor 0. `operation` says what was done, `location` what it was done to, and
    /// `subject`, a name or up to 64, whose data that is. `duration` is in nanoseconds, `size` in bytes; both have at most
    /// 64 bits, `status` and `flags` 32. `time` is a `datetime` with a time zone or nanoseconds since 1970, by default now.
    ///
    /// Where the memory for entries is full it waits for `append_timeout` at most, while other threads go on.
    ///
    /// Raises `Invalid` where a field is of a wrong type or breaks a limit, `Timeout` where the memory stayed full,
    /// `Closed` where this or the log was closed, or the failure that keeps the log from taking more. The entry is not
    /// staged then.
    #[pyo3(signature = (
        operation, location=None, *, subject=None, controller=None, processor=None, purpose=None, actor=None,
        client=None, stream=None, status=None, duration=None, size=None, flags=None, payload=None, time=None,
    ))]
    #[expect(clippy::too_many_arguments, reason = "an entry has as many fields")]
    fn append<'py>(
        &self,
        py: Python<'py>,
        operation: Bound<'py, PyAny>,
        location: Option<Bound<'py, PyAny>>,
        subject: Option<Bound<'py, PyAny>>,
        controller: Option<Bound<'py, PyAny>>,
        processor: Option<Bound<'py, PyAny>>,
        purpose: Option<Bound<'py, PyAny>>,
        actor: Option<Bound<'py, PyAny>>,
        client: Option<Bound<'py, PyAny>>,
        stream: Option<Bound<'py, PyAny>>,
        status: Option<Bound<'py, PyAny>>,
        duration: Option<Bound<'py, PyAny>>,
        size: Option<Bound<'py, PyAny>>,
        flags: Option<Bound<'py, PyAny>>,
        payload: Option<Bound<'py, PyAny>>,
        time: Option<Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        let mut values = Values::default();
        let fields = [
            Some(operation),
            location,
            subject,
            controller,
            processor,
            purpose,
            actor,
            client,
            stream,
            status,
            duration,
            size,
            flags,
            payload,
            time,
        ];
        values.take_fields(fields).map_err(|refusal| refusal.raise(py, None))?;
        let entries = values.entries().map_err(|(_, refusal)| refusal.raise(py, None))?;
        let Some(entry) = entries.first() else { return Ok(()) };
        let tried = self.lock(py)?.as_mut().map(|way| way.try_append(entry));
        match tried.ok_or_else(|| raise(py, &closed()))? {
            Err(error) if error.kind() == ErrorKind::Timeout => {}
            appended => return appended.map_err(|error| raise(py, &error)),
        }
        // Other threads of Python go on while this one waits.
        self.with(py, |way| way.append(entry))?.map_err(|error| raise(py, &error))
    }

    /// Stages many entries, and returns how many: an iterable of dicts (`Entry`), or whatever has Arrow's C stream or
    /// array interface, an entry a row.
    ///
    /// Raises what `append` does, `Invalid` by the place of the entry and the name of its field; `error.staged` says how
    /// many entries were staged, from the first on.
    fn append_batch(&self, py: Python<'_>, entries: &Bound<'_, PyAny>) -> PyResult<usize> {
        match arrow::batches(entries)? {
            Some(batches) => self.append_table(py, batches),
            None => self.append_dicts(py, entries),
        }
    }

    /// Whether this or its log was closed, or it belongs to the process that this one was forked off from.
    #[getter]
    fn closed(&self, py: Python<'_>) -> bool {
        self.log.is_closed() || self.lock(py).is_ok_and(|way| way.is_none())
    }

    /// Has everything that this producer has appended written without waiting for more, and returns a `Receipt` of what it
    /// was given since the flush before.
    ///
    /// Raises `Closed` where this or the log was closed, or the failure that keeps the log from writing; of a connection
    /// also `Timeout`.
    fn flush(&self, py: Python<'_>) -> PyResult<Receipt> {
        let receipt = self.with(py, Way::flush)?.map_err(|error| raise(py, &error))?;
        Ok(Receipt::new(receipt))
    }

    /// Closes it. What it has appended is written all the same; of a connection it is sent, for `append_timeout` at most,
    /// and what becomes of it `Connection.close` says. What is closed stays so; in a forked child this does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if !self.log.owner.is_here() {
            return Ok(());
        }
        let way = self.lock(py)?.take();
        // One of another process's log sends what it has.
        py.detach(|| drop(way));
        Ok(())
    }

    /// This, which is closed at the block's end.
    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    /// Closes this.
    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) -> PyResult<()> {
        self.close(py)
    }

    /// Raises `TypeError`: nothing of a log can be sent to another process.
    fn __reduce__(&self) -> PyResult<()> {
        Err(not_pickled("producer"))
    }

    fn __repr__(&self) -> String {
        // Somebody who has it locked uses it.
        let closed = self.log.is_closed() || self.way.try_lock().is_ok_and(|way| way.is_none());
        let state = if closed { "closed" } else { "open" };
        format!("<bulla_audit.Producer: {state}, {}>", self.log.name)
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        let way = self.way.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if self.log.owner.is_here() {
            Python::try_attach(|py| {
                // A receipt of it may be told of by this thread.
                let _pending = Pending::take(py);
                py.detach(|| drop(way));
            });
        } else {
            // A forked child leaves alone what its parent has.
            std::mem::forget(way);
        }
    }
}

//! A producer: a way into a log.

use crate::arrow;
use crate::entry::{Refusal, Values};
use crate::error::{raise, raise_batch};
use crate::log::{Shared, not_pickled};
use crate::receipt::{Receipt, Receipted};
use bulla::socket::RemoteProducer;
use bulla::{BatchError, Entry, Error, ErrorKind};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Entries that are staged at a time.
const AT_ONCE: usize = 512;

/// Where a producer appends.
pub(crate) enum Way {
    Here(bulla::Producer),
    Elsewhere(RemoteProducer),
}

impl Way {
    fn append(&mut self, entry: &Entry<'_>) -> bulla::Result<()> {
        match self {
            Way::Here(producer) => producer.append(entry),
            Way::Elsewhere(producer) => producer.append(entry),
        }
    }

    fn try_append(&mut self, entry: &Entry<'_>) -> bulla::Result<()> {
        match self {
            Way::Here(producer) => producer.try_append(entry),
            Way::Elsewhere(producer) => producer.try_append(entry),
        }
    }

    fn append_batch(&mut self, entries: &[Entry<'_>]) -> Result<(), BatchError> {
        match self {
            Way::Here(producer) => producer.append_batch(entries),
            Way::Elsewhere(producer) => producer.append_batch(entries),
        }
    }

    fn flush(&mut self) -> bulla::Result<Receipted> {
        Ok(match self {
            Way::Here(producer) => Receipted::Here(producer.flush()?),
            Way::Elsewhere(producer) => Receipted::Elsewhere(producer.flush()?),
        })
    }
}

/// A way into a log. Its entries keep their order; threads that share one take turns.
#[pyclass(frozen, module = "bulla_audit")]
pub(crate) struct Producer {
    /// Nothing of Python runs while this is locked, and whoever waits for it is detached.
    way: Mutex<Option<Way>>,
    log: Arc<Shared>,
    /// The log or connection in Python, which is not closed while somebody has a producer of it.
    _kept: Py<PyAny>,
}

impl Producer {
    pub(crate) fn new(way: Way, log: Arc<Shared>, kept: Py<PyAny>) -> Self {
        Producer { way: Mutex::new(Some(way)), log, _kept: kept }
    }

    fn lock(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, Option<Way>>> {
        self.log.owner.check(py)?;
        Ok(self.way.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner))
    }

    /// Calls something that may wait.
    fn with<T: Send>(&self, py: Python<'_>, call: impl FnOnce(&mut Way) -> T + Send) -> PyResult<T> {
        let mut locked = self.lock(py)?;
        let way = locked.as_mut().ok_or_else(|| raise(py, &closed()))?;
        Ok(py.detach(|| call(way)))
    }

    /// Stages entries behind the `staged` ones of a batch.
    pub(crate) fn stage(&self, py: Python<'_>, entries: &[Entry<'_>], staged: usize) -> PyResult<()> {
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
        for entry in entries.try_iter()? {
            let entry = entry.map_err(|error| with_staged(py, error, staged))?;
            let place = staged + values.len();
            values.take_dict(&entry).map_err(|refusal| refused(refusal, place, staged))?;
            if values.len() == AT_ONCE {
                stage(&mut values, &mut staged)?;
            }
        }
        stage(&mut values, &mut staged)?;
        Ok(staged)
    }
}

fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the producer was closed")
}

/// The error of a batch, which says how many of its entries were staged. What is no exception of this module's may have no place for it.
pub(crate) fn with_staged(py: Python<'_>, error: PyErr, staged: usize) -> PyErr {
    let _ = error.value(py).setattr("staged", staged);
    error
}

#[pymethods]
impl Producer {
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
        {
            let mut locked = self.lock(py)?;
            let way = locked.as_mut().ok_or_else(|| raise(py, &closed()))?;
            match way.try_append(entry) {
                Err(error) if error.kind() == ErrorKind::Timeout => {}
                appended => return appended.map_err(|error| raise(py, &error)),
            }
        }
        // Other threads of Python go on while this one waits.
        self.with(py, |way| way.append(entry))?.map_err(|error| raise(py, &error))
    }

    fn append_batch(&self, py: Python<'_>, entries: &Bound<'_, PyAny>) -> PyResult<usize> {
        match arrow::batches(entries)? {
            Some(batches) => arrow::append(py, self, batches),
            None => self.append_dicts(py, entries),
        }
    }

    #[getter]
    fn closed(&self, py: Python<'_>) -> bool {
        self.log.is_closed(py) || self.lock(py).is_ok_and(|way| way.is_none())
    }

    fn flush(&self, py: Python<'_>) -> PyResult<Receipt> {
        let receipt = self.with(py, Way::flush)?.map_err(|error| raise(py, &error))?;
        Ok(Receipt::new(receipt))
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let way = self.lock(py)?.take();
        // One of another process's log sends what it has.
        py.detach(|| drop(way));
        Ok(())
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) -> PyResult<()> {
        self.close(py)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(not_pickled("producer"))
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        let way = self.way.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        Python::try_attach(|py| py.detach(|| drop(way)));
    }
}

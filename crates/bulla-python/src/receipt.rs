//! A receipt: what a flush covered, and how far it has come.
#![expect(clippy::disallowed_methods, reason = "how long a caller may wait")]

use crate::error::{Raise, invalid, raise};
use crate::log::{not_pickled, seconds};
use bulla::socket::RemoteReceipt;
use pyo3::prelude::*;
use std::time::{Duration, Instant};

/// How long it is waited before signals are looked after, such as that of an interrupt.
const SLICE: Duration = Duration::from_millis(100);

#[derive(Clone)]
pub(crate) enum Receipted {
    Here(bulla::Receipt),
    Elsewhere(RemoteReceipt),
}

/// What a flush covered, and how far it has come. Any thread may use it.
#[pyclass(frozen, module = "bulla_audit")]
pub(crate) struct Receipt(Receipted);

impl Receipt {
    pub(crate) fn new(receipted: Receipted) -> Self {
        Receipt(receipted)
    }

    fn within(&self, timeout: Duration) -> bulla::Result<bool> {
        match &self.0 {
            Receipted::Here(receipt) => receipt.durable_within(timeout),
            Receipted::Elsewhere(receipt) => receipt.durable_within(timeout),
        }
    }
}

#[pymethods]
impl Receipt {
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        let timeout = timeout.map(|timeout| seconds(py, timeout)).transpose()?;
        // One that is too far away to be told never comes.
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let slice = left.map_or(SLICE, |left| left.min(SLICE));
            if py.detach(|| self.within(slice)).raise(py)? {
                return Ok(true);
            }
            py.check_signals()?;
            if left.is_some_and(|left| left <= slice) {
                return Ok(false);
            }
        }
    }

    fn checkpointed(&self, py: Python<'_>) -> PyResult<()> {
        match &self.0 {
            Receipted::Here(receipt) => py.detach(|| receipt.checkpointed()).raise(py),
            Receipted::Elsewhere(_) => Err(invalid(
                py,
                "another process has this log open, and signs it: wait for the entries to be durable",
            )),
        }
    }

    fn durable<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("bulla_audit._durable")?.getattr("durable")?.call1((slf,))
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(not_pickled("receipt"))
    }

    fn notify(&self, py: Python<'_>, told: Py<PyAny>) -> PyResult<()> {
        let tell = move |outcome: bulla::Result<()>| {
            // Of an interpreter that is ending nobody is told any more.
            Python::try_attach(|py| {
                let error = outcome.err().map(|error| raise(py, &error).into_value(py));
                if let Err(error) = told.call1(py, (error,)) {
                    error.write_unraisable(py, Some(told.bind(py)));
                }
            });
        };
        py.detach(|| match &self.0 {
            Receipted::Here(receipt) => receipt.when_durable(tell),
            Receipted::Elsewhere(receipt) => receipt.when_durable(tell),
        })
        .raise(py)
    }
}

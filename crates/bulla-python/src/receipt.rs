//! A receipt: what a flush covered, and how far it has come.
#![expect(clippy::disallowed_methods, reason = "how long a caller may wait")]

use crate::error::{Raise, invalid, raise};
use crate::owner::not_pickled;
use bulla::socket::RemoteReceipt;
use pyo3::prelude::*;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// How long it is waited before signals are looked after, such as that of an interrupt.
const SLICE: Duration = Duration::from_millis(100);

thread_local! {
    static IS_TELLING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is telling somebody of a receipt: its log waits for it meanwhile, so it must not wait for a log.
pub(crate) fn is_telling() -> bool {
    IS_TELLING.get()
}

#[derive(Clone)]
pub(crate) enum Receipted {
    Here(bulla::Receipt),
    Elsewhere(RemoteReceipt),
}

/// A time to wait.
pub(crate) fn seconds(py: Python<'_>, seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| invalid(py, "a timeout has to be a number of seconds, 0 or more"))
}

/// What a flush covered, and how far it has come. Any thread may use it. `Producer.flush` gives it.
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
    /// Waits until the entries are durable: a crash takes them no more. `timeout` is in seconds; without one it waits as
    /// long as it takes. Returns whether they are durable, so `False` where the time was too short.
    ///
    /// Readers find them a little later: `checkpointed`.
    ///
    /// Raises what keeps them from being durable, `Invalid` where the log refused some that came through a connection,
    /// `Closed` in a forked child. A signal's handler is run while it waits, so Ctrl-C ends the wait.
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

    /// Waits until a signed checkpoint covers the entries, so that readers find them and they can be proven, and has the
    /// log sign one at once.
    ///
    /// Raises what keeps them from that, and `Invalid` of a connection, whose log another process signs.
    fn checkpointed(&self, py: Python<'_>) -> PyResult<()> {
        match &self.0 {
            Receipted::Here(receipt) => py.detach(|| receipt.checkpointed()).raise(py),
            Receipted::Elsewhere(_) => Err(invalid(
                py,
                "another process has this log open, and signs it: wait for the entries to be durable",
            )),
        }
    }

    /// What asyncio can wait for: an `asyncio.Future` of the running loop, which is done with `None` once the entries are
    /// durable, or has the exception that `wait` would raise. Cancelling it ends the wait and nothing else.
    ///
    /// Raises `RuntimeError` where no loop runs.
    fn durable<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("bulla_audit._durable")?.getattr("durable")?.call1((slf,))
    }

    /// Raises `TypeError`: nothing of a log can be sent to another process.
    fn __reduce__(&self) -> PyResult<()> {
        Err(not_pickled("receipt"))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let state = match py.detach(|| self.within(Duration::ZERO)) {
            Ok(true) => "durable".to_owned(),
            Ok(false) => "not durable yet".to_owned(),
            Err(error) => format!("{:?}", error.kind()),
        };
        format!("<bulla_audit.Receipt: {state}>")
    }

    /// Calls `told` once with `None` when the entries are durable, or with the exception that `wait` would raise: at once
    /// where that is known already, else in a thread of the log, which goes on when `told` returns. What it raises is
    /// given to `sys.unraisablehook`.
    ///
    /// Nothing that `told` does may wait for the log: that is refused with `Invalid`, and closing the log is left to a
    /// thread of its own.
    ///
    /// Raises `Closed` in a forked child, and `Invalid` where `told` cannot be called.
    fn notify(&self, py: Python<'_>, told: Py<PyAny>) -> PyResult<()> {
        if !told.bind(py).is_callable() {
            return Err(invalid(py, "`told` has to be callable"));
        }
        let tell = move |outcome: bulla::Result<()>| {
            // Of an interpreter that is ending nobody is told any more.
            Python::try_attach(|py| {
                let error = outcome.err().map(|error| raise(py, &error).into_value(py));
                let before = IS_TELLING.replace(true);
                if let Err(error) = told.call1(py, (error,)) {
                    error.write_unraisable(py, Some(told.bind(py)));
                }
                drop(told);
                IS_TELLING.set(before);
            });
        };
        py.detach(|| match &self.0 {
            Receipted::Here(receipt) => receipt.when_durable(tell),
            Receipted::Elsewhere(receipt) => receipt.when_durable(tell),
        })
        .raise(py)
    }
}

//! What a call fails with: an exception for each kind of error.

use bulla::{BatchError, Error, ErrorKind};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// The module that defines them, in Python: some have two bases.
const MODULE: &str = "bulla_audit._errors";

/// All of the module's, which this one exports, too.
pub(crate) const NAMES: [&str; 11] = [
    "Error",
    "Invalid",
    "Timeout",
    "Closed",
    "Locked",
    "Unavailable",
    "Tampered",
    "Erased",
    "NoKey",
    "Refused",
    "QueryWarning",
];

fn name(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Invalid => "Invalid",
        ErrorKind::Timeout => "Timeout",
        ErrorKind::Closed => "Closed",
        ErrorKind::Locked => "Locked",
        ErrorKind::Tampered => "Tampered",
        ErrorKind::Erased => "Erased",
        ErrorKind::NoKey => "NoKey",
        ErrorKind::Refused => "Refused",
        _ => "Unavailable",
    }
}

/// The exception of an error.
pub(crate) fn raise(py: Python<'_>, error: &Error) -> PyErr {
    let message = match error.kind() {
        ErrorKind::Locked => format!(
            "{error}; where that process listens (`bulla append --listen`, `Log.listen`), `bulla_audit.connect` reaches it"
        ),
        _ => error.to_string(),
    };
    let class = py.import(MODULE).and_then(|module| module.getattr(name(error.kind())));
    match class.and_then(|class| Ok(class.cast_into::<PyType>()?)) {
        Ok(class) => PyErr::from_type(class, message),
        Err(error) => error,
    }
}

/// The exception of what kept a batch from being staged, which says in `staged` how many of it were, from the first on.
pub(crate) fn raise_batch(py: Python<'_>, BatchError { staged, error, .. }: &BatchError) -> PyErr {
    let raised = raise(py, error);
    match raised.value(py).setattr("staged", *staged) {
        Ok(()) => raised,
        Err(error) => error,
    }
}

/// Bad input.
pub(crate) fn invalid(py: Python<'_>, message: impl Into<String>) -> PyErr {
    raise(py, &Error::invalid(message.into()))
}

/// Warns of what a query cannot tell.
pub(crate) fn warn(py: Python<'_>, message: &str) -> PyResult<()> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let class = CLASS.import(py, MODULE, "QueryWarning")?;
    let message = std::ffi::CString::new(message.replace('\0', "\u{fffd}"))?;
    PyErr::warn(py, class, &message, 1)
}

pub(crate) trait Raise<T> {
    /// The same, with the exception of its error.
    fn raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> Raise<T> for bulla::Result<T> {
    fn raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| raise(py, &error))
    }
}

/// The error of a batch, which says how many of its entries were staged. What is no exception of this module's may have no place for it.
pub(crate) fn with_staged(py: Python<'_>, error: PyErr, staged: usize) -> PyErr {
    let _ = error.value(py).setattr("staged", staged);
    error
}

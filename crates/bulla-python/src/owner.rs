//! Whose something is: a process's own, and no child's that was forked off.

use crate::error::Raise;
use bulla::store::process;
use bulla::{Error, ErrorKind, Result};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// The process that made something. A forked child has a copy of it that must not be used, and that another thread of the parent may
/// have had locked.
#[derive(Clone, Copy)]
pub(crate) struct Owner(u32);

impl Owner {
    /// This process.
    pub(crate) fn new() -> Self {
        Owner(process::id())
    }

    /// Whether this process is it.
    pub(crate) fn is_here(self) -> bool {
        self.0 == process::id()
    }

    /// Refuses what came along into a forked child.
    pub(crate) fn check(self, py: Python<'_>) -> PyResult<()> {
        self.require().raise(py)
    }

    /// The same without Python.
    pub(crate) fn require(self) -> Result<()> {
        match self.is_here() {
            true => Ok(()),
            false => Err(Error::new(
                ErrorKind::Closed,
                "this belongs to the process that opened it, not to its child: use bulla_audit.connect there, or open it anew to read",
            )),
        }
    }
}

/// What cannot be sent to another process.
pub(crate) fn not_pickled(what: &str) -> PyErr {
    PyTypeError::new_err(format!(
        "a {what} belongs to the process that opened it and cannot be pickled: in another one use bulla_audit.connect, or open it anew to read"
    ))
}

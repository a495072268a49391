//! The Bulla audit log for programs in Python: the compiled half of the package `bulla_audit`, whose other half is `python/`.
//! `docs/python.md` is the reference.
//!
//! Invariants:
//! - whatever may wait (for memory, the medium, another process, a lock) is done detached from the interpreter, so that other threads of
//!   Python go on, and threads of the log that have something to tell Python can;
//! - what Python gives is held while it is used, and copied by the producer, as from anywhere else;
//! - what came along into a forked child is refused before anything of it is locked.

mod arrow;
mod entry;
mod error;
mod evidence;
mod given;
mod log;
mod owner;
mod pending;
mod producer;
mod query;
mod read;
mod receipt;
mod shared;
mod stream;
mod way;

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;

/// The module `bulla_audit._native`.
#[pymodule(name = "_native", gil_used = true)]
fn native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    refuse_subinterpreter()?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    let errors = module.py().import("bulla_audit._errors")?;
    for name in error::NAMES {
        module.add(name, errors.getattr(name)?)?;
    }
    module.add_function(wrap_pyfunction!(log::create, module)?)?;
    module.add_function(wrap_pyfunction!(log::connect, module)?)?;
    module.add_function(wrap_pyfunction!(shared::close_all, module)?)?;
    module.add_function(wrap_pyfunction!(shared::parent_listens_at, module)?)?;
    module.add_function(wrap_pyfunction!(evidence::check, module)?)?;
    module.add_function(wrap_pyfunction!(evidence::verify, module)?)?;
    module.add_function(wrap_pyfunction!(evidence::erase, module)?)?;
    module.add_class::<log::Log>()?;
    module.add_class::<log::Connection>()?;
    module.add_class::<producer::Producer>()?;
    module.add_class::<receipt::Receipt>()?;
    module.add_class::<read::Reader>()?;
    module.add_class::<read::Entries>()?;
    module.add_class::<evidence::Checked>()?;
    module.add_class::<evidence::Finding>()?;
    module.add_class::<evidence::Report>()?;
    module.add_class::<evidence::Erasure>()
}

/// Only the first interpreter of a process has the number 0. The log's threads tell receipts to that one.
#[allow(unsafe_code, reason = "what tells interpreters apart is Python's C interface")]
fn refuse_subinterpreter() -> PyResult<()> {
    // SAFETY: this thread is attached to an interpreter, which is asked for its number.
    match unsafe { pyo3::ffi::PyInterpreterState_GetID(pyo3::ffi::PyInterpreterState_Get()) } {
        0 => Ok(()),
        _ => Err(PyImportError::new_err(
            "bulla_audit works in the main interpreter of a process alone, and this is another: use a thread or a process",
        )),
    }
}

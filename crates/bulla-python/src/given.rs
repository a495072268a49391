//! Arguments that are texts, paths, or several of them, and numbers: what is none is `Invalid`, by the argument's name.

use crate::error::invalid;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use std::path::PathBuf;

/// A text.
pub(crate) fn text(name: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    let wrong = |what: &str| invalid(value.py(), format!("`{name}` {what}"));
    let text = value.cast::<PyString>().map_err(|_| wrong("has to be a str"))?;
    text.to_str().map(str::to_owned).map_err(|_| wrong("has surrogates, which UTF-8 has not"))
}

/// A text, where one was given.
pub(crate) fn optional_text(name: &str, value: Option<&Bound<'_, PyAny>>) -> PyResult<Option<String>> {
    value.map(|value| text(name, value)).transpose()
}

/// Texts, of which one may stand alone.
pub(crate) fn texts(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    each(name, value, "a str or an iterable of them", |value| {
        value.is_instance_of::<PyString>().then(|| text(name, value))
    })
}

/// Paths, of which one may stand alone.
pub(crate) fn paths(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<PathBuf>> {
    each(name, value, "a path or an iterable of them", |value| value.extract::<PathBuf>().ok().map(Ok))
}

/// What `one` makes of a value, or of each of several; what it makes nothing of is refused.
fn each<'py, T>(
    name: &str,
    value: &Bound<'py, PyAny>,
    takes: &str,
    one: impl Fn(&Bound<'py, PyAny>) -> Option<PyResult<T>>,
) -> PyResult<Vec<T>> {
    let unfit = || invalid(value.py(), format!("`{name}` has to be {takes}"));
    if let Some(alone) = one(value) {
        return Ok(vec![alone?]);
    }
    if value.is_instance_of::<PyBytes>() {
        return Err(unfit());
    }
    let values = value.try_iter().map_err(|error| not_iterated(value.py(), error, unfit))?;
    values.map(|value| one(&value?).ok_or_else(unfit)?).collect()
}

/// What going through the values of something failed with: `unfit` where it has none, as a `TypeError` says, and else what it has raised
/// itself.
pub(crate) fn not_iterated<E: From<PyErr>>(py: Python<'_>, error: PyErr, unfit: impl FnOnce() -> E) -> E {
    match error.is_instance_of::<PyTypeError>(py) {
        true => unfit(),
        false => error.into(),
    }
}

/// A number that is within what its type has.
pub(crate) fn number<T: TryFrom<i64>>(py: Python<'_>, name: &str, value: i64) -> PyResult<T> {
    T::try_from(value).map_err(|_| invalid(py, format!("`{name}` is out of range")))
}

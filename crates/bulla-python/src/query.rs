//! What is asked for, as keyword arguments.

use crate::entry::{bytes, number, time};
use crate::error::invalid;
use bulla::{NumberField, Query, TextField};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyRange, PyString};
use std::ops::RangeInclusive;

/// The query of these conditions; of several values for a field an entry meets one, of several fields all.
pub(crate) fn query(py: Python<'_>, conditions: Option<&Bound<'_, PyDict>>) -> PyResult<Query> {
    let mut query = Query::new();
    for (name, value) in conditions.into_iter().flatten() {
        if value.is_none() {
            continue;
        }
        let name = name.extract::<String>()?;
        let at = |time: Option<i64>| {
            time.ok_or_else(|| {
                let takes = "a datetime with a time zone or whole nanoseconds since 1970";
                invalid(py, format!("`{name}` has to be {takes}"))
            })
        };
        query = match &name[..] {
            "start" => query.from(at(time(&value))?),
            "end" => query.to(at(time(&value))?),
            "entries" => query.entries(numbers(&name, &value)?),
            "prefix" => begins_with(query, &value)?,
            _ => is(query, &name, &value)?,
        };
    }
    Ok(query)
}

fn is(mut query: Query, name: &str, value: &Bound<'_, PyAny>) -> PyResult<Query> {
    let py = value.py();
    if let Some(field) = TextField::named(name) {
        for value in each(value)? {
            query = query.is(field, text(name, &value)?);
        }
        return Ok(query);
    }
    let field = NumberField::all().find(|field| field.name() == name).ok_or_else(|| {
        let texts = TextField::all().map(TextField::name);
        let fields = texts.chain(NumberField::all().map(NumberField::name)).collect::<Vec<_>>().join(", ");
        invalid(
            py,
            format!("there is no condition `{name}`; there are {fields}, prefix, start, end and entries"),
        )
    })?;
    if value.is_instance_of::<PyRange>() {
        return Ok(query.numbers(field, numbers(name, value)?));
    }
    for value in each(value)? {
        query = query.numbers(field, numbers(name, &value)?);
    }
    Ok(query)
}

fn begins_with(mut query: Query, prefixes: &Bound<'_, PyAny>) -> PyResult<Query> {
    let py = prefixes.py();
    let prefixes = prefixes
        .cast::<PyDict>()
        .map_err(|_| invalid(py, "`prefix` has to be a dict of fields and what they begin with"))?;
    // What has the values may run anything, which may change the dict.
    for (name, value) in prefixes.iter().collect::<Vec<_>>() {
        let name = name.extract::<String>()?;
        let field = TextField::named(&name).ok_or_else(|| {
            let fields = TextField::all().map(TextField::name).collect::<Vec<_>>().join(", ");
            invalid(py, format!("`prefix` has `{name}`, which is no field of texts; these are {fields}"))
        })?;
        for value in each(&value)? {
            query = query.begins_with(field, text(&name, &value)?);
        }
    }
    Ok(query)
}

/// The values of a condition: one, or each of several.
fn each<'py>(value: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    if value.is_instance_of::<PyString>() || value.is_instance_of::<PyBytes>() {
        return Ok(vec![value.clone()]);
    }
    match value.try_iter() {
        Ok(values) => {
            let values = values.collect::<PyResult<Vec<_>>>()?;
            match values.is_empty() {
                // Nothing would meet it, which nobody means.
                true => Err(invalid(value.py(), "a condition has an empty list of values: leave it out")),
                false => Ok(values),
            }
        }
        Err(_) => Ok(vec![value.clone()]),
    }
}

fn text(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let text = bytes(value).map(<[u8]>::to_vec);
    text.ok_or_else(|| {
        let why = match value.is_instance_of::<PyString>() {
            true => "has surrogates, which UTF-8 has not",
            false => "has to be a str, bytes, or several of them",
        };
        invalid(value.py(), format!("`{name}` {why}"))
    })
}

/// A number, or those of a range.
fn numbers(name: &str, value: &Bound<'_, PyAny>) -> PyResult<RangeInclusive<u64>> {
    let unfit = || {
        let takes = "a number, a range with a step of 1 that has any, or several of them";
        invalid(value.py(), format!("`{name}` has to be {takes}"))
    };
    let Ok(range) = value.cast::<PyRange>() else {
        let number = number::<u64>(value).ok_or_else(unfit)?;
        return Ok(number..=number);
    };
    // An end of 2^64, which is not included, is no number of 64 bits.
    let last = number::<u64>(&range.getattr("stop")?.sub(1)?);
    let first = number::<u64>(&range.getattr("start")?);
    match (first, last) {
        (Some(first), Some(last)) if range.getattr("step")?.eq(1)? && first <= last => Ok(first..=last),
        _ => Err(unfit()),
    }
}

//! Arrow's C data interface: arrays of others are entries to append, and what a query gives are arrays for others, neither copied on
//! the way. <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>
#![allow(unsafe_code, reason = "a boundary to C takes what C points to")]

use crate::error::invalid;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{Array, RecordBatch, RecordBatchIterator, RecordBatchReader, StructArray};
use arrow_schema::{ArrowError, DataType};
use bulla::{Entry, Error};
use bulla_arrow::Rows;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};
use std::ffi::CStr;

const STREAM: &CStr = c"arrow_array_stream";
const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";

/// Record batches of somebody else, if it has any.
pub(crate) type Batches = Box<dyn RecordBatchReader + Send>;

/// The record batches of whatever has Arrow's C stream or array interface; `None` of anything else.
pub(crate) fn batches(table: &Bound<'_, PyAny>) -> PyResult<Option<Batches>> {
    let batches = taken(table)?;
    // Some rows of a data frame have their numbers as a column, which no field is.
    let schema = batches.as_ref().map(|batches| batches.schema());
    if let Some(index) = schema.iter().flat_map(|schema| schema.fields()).find(|field| is_index(field.name()))
    {
        let message = format!(
            "`{}` is the index of a data frame and no field: leave it out by reset_index(drop=True)",
            index.name()
        );
        return Err(invalid(table.py(), message));
    }
    Ok(batches)
}

/// Whether pandas gives an index without a name this one.
fn is_index(name: &str) -> bool {
    name.starts_with("__index_level_")
}

fn taken(table: &Bound<'_, PyAny>) -> PyResult<Option<Batches>> {
    let py = table.py();
    let failed = |error: ArrowError| invalid(py, format!("the table cannot be read: {error}"));
    if let Some(stream) = table.getattr_opt(intern!(py, "__arrow_c_stream__"))? {
        let capsule = stream.call0()?.cast_into::<PyCapsule>()?;
        let stream = capsule.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
        // SAFETY: a capsule of this name has such a stream, which is taken from it, and marked as taken.
        let reader = unsafe { RecordBatchStreamReader::from_raw(stream.as_ptr()) };
        return Ok(Some(Box::new(reader.map_err(failed)?)));
    }
    let Some(array) = table.getattr_opt(intern!(py, "__arrow_c_array__"))? else { return Ok(None) };
    let capsules = array.call0()?.cast_into::<PyTuple>()?;
    let capsule = |place: usize| PyResult::Ok(capsules.get_item(place)?.cast_into::<PyCapsule>()?);
    let (schema, array) = (capsule(0)?, capsule(1)?);
    let schema = schema.pointer_checked(Some(SCHEMA))?.cast::<FFI_ArrowSchema>();
    let array = array.pointer_checked(Some(ARRAY))?.cast::<FFI_ArrowArray>();
    // SAFETY: capsules of these names have a schema, and an array of it.
    let is_taken = unsafe { array.as_ref().is_released() || schema.as_ref().release().is_none() };
    if is_taken {
        return Err(invalid(
            py,
            "the array was taken already: whoever has Arrow's array interface gives a new one each time",
        ));
    }
    // SAFETY: as above; they are taken from them, and marked as taken.
    let data = unsafe {
        let schema = FFI_ArrowSchema::from_raw(schema.as_ptr());
        from_ffi(FFI_ArrowArray::from_raw(array.as_ptr()), &schema)
    };
    let data = data.map_err(failed)?;
    if !matches!(data.data_type(), DataType::Struct(_)) || data.null_count() > 0 {
        return Err(invalid(py, "the array is no record batch: give one, or a table"));
    }
    let batch = RecordBatch::from(StructArray::from(data));
    let schema = batch.schema();
    Ok(Some(Box::new(RecordBatchIterator::new([Ok(batch)], schema))))
}

/// A batch whose texts are UTF-8, which no C interface promises.
pub(crate) fn checked(batch: RecordBatch) -> Result<RecordBatch, ArrowError> {
    batch.columns().iter().try_for_each(|column| column.to_data().validate_full())?;
    Ok(batch)
}

/// The entries of a table's rows from row `first` on, each within the limits of one.
pub(crate) fn entries(window: &RecordBatch, first: usize) -> bulla::Result<Vec<Entry<'_>>> {
    let entries = Rows::new(window, first).entries()?;
    for (row, entry) in entries.iter().enumerate() {
        entry.measure().map_err(|error| Error::invalid(format!("row {}: {error}", first + row)))?;
    }
    Ok(entries)
}

/// The capsule of a stream.
pub(crate) fn capsule(py: Python<'_>, batches: Batches) -> PyResult<Bound<'_, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(batches), STREAM)
}

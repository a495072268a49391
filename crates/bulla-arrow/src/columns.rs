//! What a query gives, as arrays.

use arrow_array::builder::{
    BinaryBuilder, Int64Builder, ListBuilder, StringBuilder, TimestampMicrosecondBuilder,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use bulla::text::text_or_bytes;
use bulla::{Entry, Error, Matches, Redaction, Result};
use std::sync::Arc;

/// The columns, in their order. Whoever reads Parquet at its defaults reads them: integers are signed, since Iceberg and Spark have
/// no others, and times are in microseconds, of which Spark and Iceberg make times; what goes beyond either stands in a column of
/// its own. `label` is the type of those that have few values, often repeated; [`Columns`] has texts there ([`DataType::Utf8`]).
pub fn schema(label: &DataType) -> Schema {
    let label = || label.clone();
    Schema::new(vec![
        Field::new("entry", DataType::Int64, false),
        Field::new("time", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), false),
        Field::new("time_nanoseconds", DataType::Int64, false),
        Field::new("operation", label(), false),
        Field::new("location", DataType::Utf8, true),
        Field::new_list("subject", subject(), true),
        Field::new("controller", label(), true),
        Field::new("processor", label(), true),
        Field::new("purpose", label(), true),
        Field::new("actor", label(), true),
        Field::new("client", label(), true),
        Field::new("stream", label(), true),
        Field::new("status", DataType::Int64, true),
        Field::new("duration", DataType::Int64, true),
        Field::new("size", DataType::Int64, true),
        Field::new("flags", DataType::Int64, true),
        Field::new("payload", DataType::Utf8, true),
        Field::new("location_bytes", DataType::Binary, true),
        Field::new("payload_bytes", DataType::Binary, true),
        Field::new("duration_digits", DataType::Utf8, true),
        Field::new("size_digits", DataType::Utf8, true),
        Field::new("withheld", label(), true),
    ])
}

fn subject() -> Field {
    Field::new("element", DataType::Utf8, false)
}

/// The entries of one block that a query asks for, an array for each column.
pub struct Columns {
    /// How many entries.
    pub rows: usize,
    /// The arrays, in the order of [`schema`].
    pub arrays: Vec<ArrayRef>,
}

impl Columns {
    /// The arrays of these entries.
    ///
    /// # Errors
    /// `Invalid` where an entry's number is beyond what a signed integer has.
    pub fn of(matches: &Matches<'_>) -> Result<Self> {
        let mut builders = Builders::new();
        for (number, entry) in matches.iter() {
            builders.push(number, &entry, matches.withheld(number))?;
        }
        Ok(Columns { rows: matches.len(), arrays: builders.finish() })
    }

    /// The memory that the arrays take, in bytes.
    pub fn bytes(&self) -> usize {
        self.arrays.iter().map(Array::get_array_memory_size).sum()
    }
}

struct Builders {
    entry: Int64Builder,
    time: TimestampMicrosecondBuilder,
    time_nanoseconds: Int64Builder,
    operation: StringBuilder,
    location: StringBuilder,
    subject: ListBuilder<StringBuilder>,
    /// Controller, processor, purpose, actor, client, stream.
    labels: [StringBuilder; 6],
    /// Status, duration, size, flags.
    numbers: [Int64Builder; 4],
    payload: StringBuilder,
    location_bytes: BinaryBuilder,
    payload_bytes: BinaryBuilder,
    /// Of duration and size what does not fit their columns.
    digits: [StringBuilder; 2],
    withheld: StringBuilder,
}

impl Builders {
    fn new() -> Self {
        Builders {
            entry: Int64Builder::new(),
            time: TimestampMicrosecondBuilder::new().with_timezone("UTC"),
            time_nanoseconds: Int64Builder::new(),
            operation: StringBuilder::new(),
            location: StringBuilder::new(),
            subject: ListBuilder::new(StringBuilder::new()).with_field(subject()),
            labels: Default::default(),
            numbers: Default::default(),
            payload: StringBuilder::new(),
            location_bytes: BinaryBuilder::new(),
            payload_bytes: BinaryBuilder::new(),
            digits: Default::default(),
            withheld: StringBuilder::new(),
        }
    }

    /// # Errors
    /// `Invalid` where the entry's number is beyond what a signed integer has.
    fn push(&mut self, number: u64, entry: &Entry<'_>, withheld: Option<Redaction>) -> Result<()> {
        let signed = i64::try_from(number);
        self.entry.append_value(signed.map_err(|_| {
            Error::invalid(format!(
                "the column `entry` has no room for entry number {number}: export it as JSON lines"
            ))
        })?);
        // An entry that was read has one.
        let time = entry.time.unwrap_or_default();
        self.time.append_value(time.div_euclid(1_000));
        self.time_nanoseconds.append_value(time);
        self.operation.append_value(entry.operation);
        for subject in entry.subjects.iter().flatten() {
            self.subject.values().append_value(subject);
        }
        self.subject.append(entry.subjects.is_some());
        let labels =
            [entry.controller, entry.processor, entry.purpose, entry.actor, entry.client, entry.stream];
        for (builder, label) in self.labels.iter_mut().zip(labels) {
            builder.append_option(label);
        }
        let wide = [entry.duration, entry.size];
        let [duration, size] = wide.map(|number| number.and_then(|number| i64::try_from(number).ok()));
        let numbers = [entry.status.map(i64::from), duration, size, entry.flags.map(i64::from)];
        for (builder, number) in self.numbers.iter_mut().zip(numbers) {
            builder.append_option(number);
        }
        for (builder, number) in self.digits.iter_mut().zip(wide) {
            builder.append_option(
                number.filter(|number| *number > i64::MAX as u64).map(|number| number.to_string()),
            );
        }
        let (text, bytes) = text_or_bytes(entry.location);
        self.location.append_option(text);
        self.location_bytes.append_option(bytes);
        let (text, bytes) = text_or_bytes(entry.payload);
        self.payload.append_option(text);
        self.payload_bytes.append_option(bytes);
        self.withheld.append_option(withheld.map(Redaction::name));
        Ok(())
    }

    /// The arrays, in the order of [`schema`].
    fn finish(mut self) -> Vec<ArrayRef> {
        let mut arrays: Vec<ArrayRef> = vec![
            Arc::new(self.entry.finish()),
            Arc::new(self.time.finish()),
            Arc::new(self.time_nanoseconds.finish()),
            Arc::new(self.operation.finish()),
            Arc::new(self.location.finish()),
            Arc::new(self.subject.finish()),
        ];
        arrays.extend(self.labels.iter_mut().map(|label| Arc::new(label.finish()) as ArrayRef));
        arrays.extend(self.numbers.iter_mut().map(|numbers| Arc::new(numbers.finish()) as ArrayRef));
        arrays.extend([
            Arc::new(self.payload.finish()) as ArrayRef,
            Arc::new(self.location_bytes.finish()),
            Arc::new(self.payload_bytes.finish()),
        ]);
        arrays.extend(self.digits.iter_mut().map(|digits| Arc::new(digits.finish()) as ArrayRef));
        arrays.push(Arc::new(self.withheld.finish()));
        arrays
    }
}

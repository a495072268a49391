//! Entries as Parquet, for data frames and databases.
//!
//! A block becomes Arrow arrays on the thread that opened it. Those of many blocks make a row group, whose columns
//! are encoded and compressed on several threads, so memory holds one row group and a few blocks at a time.
//! `docs/operating.md`, "Exports", has the columns.

use super::text_or_bytes;
use arrow_array::builder::{
    BinaryBuilder, Int64Builder, ListBuilder, StringBuilder, TimestampMicrosecondBuilder,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use bulla::{Entry, Error, Exported, Matches, Redaction};
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves,
};
use parquet::arrow::{ArrowSchemaConverter, add_encoded_arrow_schema_to_metadata};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnPath;
use std::cmp::Reverse;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// The most rows of a row group.
const MOST_ROWS: usize = 128 * 1024;
/// The most memory that the arrays of a row group take, but for a block that takes more by itself.
const MOST_BYTES: usize = 64 << 20;

/// Runs `export` into `out`. `about` is what the file says of itself, as keys and values.
pub(super) fn run(
    export: bulla::Export,
    out: &mut (dyn Write + Send),
    about: impl FnOnce(&Exported) -> Vec<(&'static str, String)>,
) -> bulla::Result<Exported> {
    let mut groups = RowGroups::new(out);
    let exported = export.run_with(Columns::of, |columns| groups.add(columns?).map_err(failed))?;
    groups.finish(about(&exported)).map_err(failed)?;
    Ok(exported)
}

fn failed(error: ParquetError) -> Error {
    let error = match error {
        ParquetError::External(source) => {
            source.downcast::<io::Error>().map_or_else(io::Error::other, |error| *error)
        }
        error => io::Error::other(error),
    };
    Error::io("writing the export", error)
}

/// The columns, in their order. Whoever reads Parquet at its defaults reads them: integers are signed, since Iceberg and Spark have
/// no others, and times are in microseconds, of which Spark and Iceberg make times; what goes beyond either stands in a column of
/// its own.
fn schema() -> Schema {
    // Few values, often repeated: a data frame has each of them once.
    let label = || DataType::Dictionary(DataType::Int32.into(), DataType::Utf8.into());
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

/// The entries of one block, an array for each column.
struct Columns {
    rows: usize,
    arrays: Vec<ArrayRef>,
}

impl Columns {
    fn of(matches: &Matches<'_>) -> bulla::Result<Self> {
        let mut builders = Builders::new();
        for (number, entry) in matches.iter() {
            builders.push(number, &entry, matches.withheld(number))?;
        }
        Ok(Columns { rows: matches.len(), arrays: builders.finish() })
    }

    fn bytes(&self) -> usize {
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
    fn push(&mut self, number: u64, entry: &Entry<'_>, withheld: Option<Redaction>) -> bulla::Result<()> {
        let signed = i64::try_from(number);
        self.entry.append_value(signed.map_err(|_| {
            Error::invalid(format!("Parquet has no room for entry number {number}: export it as JSON lines"))
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

/// A Parquet file as it grows.
struct RowGroups<'a> {
    /// Where the file goes, until there is something to write: a log that is refused leaves nothing there.
    out: Option<&'a mut (dyn Write + Send)>,
    file: Option<File<'a>>,
    /// The row group that is being filled.
    group: Vec<Columns>,
    rows: usize,
    bytes: usize,
}

impl<'a> RowGroups<'a> {
    fn new(out: &'a mut (dyn Write + Send)) -> Self {
        RowGroups { out: Some(out), file: None, group: Vec::new(), rows: 0, bytes: 0 }
    }

    fn add(&mut self, columns: Columns) -> Result<()> {
        if columns.rows == 0 {
            return Ok(());
        }
        let bytes = columns.bytes();
        if self.rows + columns.rows > MOST_ROWS || self.bytes + bytes > MOST_BYTES {
            self.end_group()?;
        }
        self.rows += columns.rows;
        self.bytes += bytes;
        self.group.push(columns);
        Ok(())
    }

    fn end_group(&mut self) -> Result<()> {
        let group = std::mem::take(&mut self.group);
        (self.rows, self.bytes) = (0, 0);
        if group.is_empty() { Ok(()) } else { self.file()?.write_group(&group) }
    }

    fn finish(mut self, about: Vec<(&'static str, String)>) -> Result<()> {
        self.end_group()?;
        self.file()?;
        let Some(File { mut writer, .. }) = self.file else { return Ok(()) };
        for (key, value) in about {
            writer.append_key_value_metadata(KeyValue::new(key.to_owned(), value));
        }
        writer.close().map(drop)
    }

    fn file(&mut self) -> Result<&mut File<'a>> {
        if let Some(out) = self.out.take() {
            self.file = Some(File::begin(out)?);
        }
        self.file.as_mut().ok_or_else(|| ParquetError::General("the file could not be begun".to_owned()))
    }
}

struct File<'a> {
    schema: SchemaRef,
    writer: SerializedFileWriter<&'a mut (dyn Write + Send)>,
    columns: ArrowRowGroupWriterFactory,
    threads: usize,
}

impl<'a> File<'a> {
    fn begin(out: &'a mut (dyn Write + Send)) -> Result<Self> {
        let schema = Arc::new(schema());
        let mut properties = WriterProperties::builder()
            .set_created_by(concat!("bulla ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?));
        // Each is near the one before.
        for column in ["entry", "time", "time_nanoseconds"] {
            properties = properties
                .set_column_dictionary_enabled(ColumnPath::from(column), false)
                .set_column_encoding(ColumnPath::from(column), Encoding::DELTA_BINARY_PACKED);
        }
        let mut properties = properties.build();
        add_encoded_arrow_schema_to_metadata(&schema, &mut properties);
        let root = ArrowSchemaConverter::new().convert(&schema)?.root_schema_ptr();
        let writer = SerializedFileWriter::new(out, root, Arc::new(properties))?;
        let columns = ArrowRowGroupWriterFactory::new(&writer, schema.clone());
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(File { schema, writer, columns, threads })
    }

    fn write_group(&mut self, group: &[Columns]) -> Result<()> {
        let writers = self.columns.create_column_writers(self.writer.flushed_row_groups().len())?;
        let chunks = encode(&self.schema, writers, group, self.threads)?;
        let mut row_group = self.writer.next_row_group()?;
        for chunk in chunks {
            chunk.append_to_row_group(&mut row_group)?;
        }
        row_group.close().map(drop)
    }
}

/// Encodes the columns of a row group, on several threads.
fn encode(
    schema: &Schema,
    writers: Vec<ArrowColumnWriter>,
    group: &[Columns],
    threads: usize,
) -> Result<Vec<ArrowColumnChunk>> {
    let size = |column: usize| {
        group.iter().map(|columns| columns.arrays[column].get_array_memory_size()).sum::<usize>()
    };
    let mut jobs = writers.into_iter().enumerate().collect::<Vec<_>>();
    // The largest first, so that none is left to one thread in the end.
    jobs.sort_by_key(|(column, _)| Reverse(size(*column)));
    let jobs = Mutex::new(jobs.into_iter());
    let work = || -> Result<Vec<(usize, ArrowColumnChunk)>> {
        let mut encoded = Vec::new();
        loop {
            let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((column, mut writer)) = job else { return Ok(encoded) };
            for columns in group {
                for leaf in compute_leaves(schema.field(column), &columns.arrays[column])? {
                    writer.write(&leaf)?;
                }
            }
            encoded.push((column, writer.close()?));
        }
    };
    let mut encoded = std::thread::scope(|scope| -> Result<Vec<_>> {
        // This thread alone encodes all of them where the system starts no other.
        let start =
            |_| std::thread::Builder::new().name("bulla-encoder".to_owned()).spawn_scoped(scope, work).ok();
        let others = (1..threads).map_while(start).collect::<Vec<_>>();
        let mut encoded = work()?;
        for other in others {
            let panicked = |_| ParquetError::General("an encoding thread panicked".to_owned());
            encoded.extend(other.join().map_err(panicked)??);
        }
        Ok(encoded)
    })?;
    encoded.sort_by_key(|(column, _)| *column);
    Ok(encoded.into_iter().map(|(_, chunk)| chunk).collect())
}

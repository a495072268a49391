//! Entries as Parquet, for data frames and databases.
//!
//! A block becomes Arrow arrays on the thread that opened it. Those of many blocks make a row group, whose columns
//! are encoded and compressed on several threads, so memory holds one row group and a few blocks at a time.
//! `docs/operating.md`, "Exports", has the columns.

use arrow_array::Array;
use arrow_schema::{DataType, Schema, SchemaRef};
use bulla::{Error, Exported};
use bulla_arrow::{Columns, schema};
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
        // A data frame has each label once.
        let label = DataType::Dictionary(DataType::Int32.into(), DataType::Utf8.into());
        let schema = Arc::new(schema(&label));
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

//! Takes a record apart.
//!
//! [`docs/formats.md`](https://docs.rs/crate/bulla-ingest/latest/source/docs/formats.md) has each format's members, what is refused and examples.
//! What a record holds stays as it was written but for quotes and escapes that the format itself puts around it: times are text, and no
//! number is rounded that was not a fraction.

pub mod access;
mod apache_error;
mod clock;
mod csv;
mod journal;
mod json;
mod logfmt;
mod postgres;
mod redis;
mod scan;
mod syslog;
#[cfg(test)]
mod tests;

use crate::framing::{FramingKind, Multiline};
use crate::{Refusal, Value};
use access::Layout;
use std::fmt;
use std::str::FromStr;

/// A format of another program's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Whole records.
    Raw,
    /// JSON objects of any shape.
    Json,
    /// The *combined* access log of Apache and nginx.
    Combined,
    /// The *common* access log.
    Common,
    /// Apache's error log.
    ApacheError,
    /// Syslog, RFC 5424 and RFC 3164, from the network or as a daemon writes it to files.
    Syslog,
    /// `journalctl -o json`.
    JournalJson,
    /// `journalctl -o export`.
    JournalExport,
    /// `name=value` pairs.
    Logfmt,
    /// Columns with a header.
    Csv,
    /// What Redis and Valkey answer to `MONITOR`.
    RedisMonitor,
    /// PostgreSQL's `csvlog`, with pgaudit's messages.
    PostgresCsv,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 12] = [
        Format::Raw,
        Format::Json,
        Format::Combined,
        Format::Common,
        Format::ApacheError,
        Format::Syslog,
        Format::JournalJson,
        Format::JournalExport,
        Format::Logfmt,
        Format::Csv,
        Format::RedisMonitor,
        Format::PostgresCsv,
    ];

    /// The name by which it is asked for.
    pub fn name(self) -> &'static str {
        match self {
            Format::Raw => "raw",
            Format::Json => "json",
            Format::Combined => "combined",
            Format::Common => "common",
            Format::ApacheError => "apache-error",
            Format::Syslog => "syslog",
            Format::JournalJson => "journal-json",
            Format::JournalExport => "journal-export",
            Format::Logfmt => "logfmt",
            Format::Csv => "csv",
            Format::RedisMonitor => "redis-monitor",
            Format::PostgresCsv => "postgres-csv",
        }
    }

    /// What it is, in a line for a person.
    pub fn description(self) -> &'static str {
        match self {
            Format::Raw => "any lines, taken whole",
            Format::Json => "JSON objects of any shape, one a line",
            Format::Combined => "access log of Apache and nginx, `combined`",
            Format::Common => "access log of Apache and others, `common`",
            Format::ApacheError => "error log of Apache",
            Format::Syslog => "syslog of RFC 5424 and 3164, from the network or a file",
            Format::JournalJson => "journald, as `journalctl -o json` prints it",
            Format::JournalExport => "journald, as `journalctl -o export` prints it",
            Format::Logfmt => "`name=value` pairs",
            Format::Csv => "columns, named by the first line",
            Format::RedisMonitor => "what Redis and Valkey answer to MONITOR",
            Format::PostgresCsv => "PostgreSQL's csvlog, pgaudit's messages taken apart",
        }
    }

    /// The members that a record may have, where the format says so and not each record, as docs/formats.md has them.
    pub fn members(self) -> Option<Vec<&'static str>> {
        Some(match self {
            Format::Raw => vec!["record"],
            Format::Combined => [&access::MEMBERS[..], &access::COMBINED_MEMBERS].concat(),
            Format::Common => access::MEMBERS.to_vec(),
            Format::ApacheError => apache_error::MEMBERS.to_vec(),
            Format::Syslog => syslog::MEMBERS.to_vec(),
            Format::RedisMonitor => redis::MEMBERS.to_vec(),
            Format::PostgresCsv => postgres::members().collect(),
            Format::Json | Format::JournalJson | Format::JournalExport | Format::Logfmt | Format::Csv => {
                return None;
            }
        })
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// There is no format of this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownFormat;

impl fmt::Display for UnknownFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a format; the formats are {}", Format::ALL.map(Format::name).join(", "))
    }
}

impl std::error::Error for UnknownFormat {}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        Format::ALL.into_iter().find(|format| format.name() == name).ok_or(UnknownFormat)
    }
}

/// What a format can be told.
#[derive(Clone, Debug)]
pub struct FormatOptions {
    /// Which lines are one record, where records are lines: all formats but `csv`, `postgres-csv` and `journal-export`, which say so
    /// themselves.
    pub multiline: Option<Multiline>,
    /// What stands between two columns of `csv`, in ASCII; not a quote or a line end.
    pub delimiter: u8,
    /// The names of the columns of a `csv` without a header.
    pub columns: Option<Vec<String>>,
}

impl Default for FormatOptions {
    fn default() -> Self {
        FormatOptions { multiline: None, delimiter: b',', columns: None }
    }
}

/// A record, taken apart.
#[derive(Debug, PartialEq)]
pub enum Parsed<'a> {
    /// Its members, an object.
    Fields(Value<'a>),
    /// Nothing was done that could be an entry: it names the columns of what follows, or is the `OK` with which `MONITOR` begins.
    Header,
}

/// Takes the records of one source apart.
#[derive(Debug)]
pub struct Parser {
    format: Format,
    multiline: Option<Multiline>,
    csv: csv::Columns,
}

impl Parser {
    /// A parser of a source at its beginning.
    pub fn new(format: Format, options: &FormatOptions) -> Self {
        Parser {
            format,
            multiline: options.multiline.clone(),
            csv: csv::Columns::new(options.delimiter, options.columns.clone()),
        }
    }

    /// How the records of the format are told apart.
    pub fn framing(&self) -> FramingKind {
        match (self.format, &self.multiline) {
            (Format::Csv, _) => FramingKind::Csv { delimiter: self.csv.delimiter() },
            (Format::PostgresCsv, _) => FramingKind::Csv { delimiter: b',' },
            (Format::JournalExport, _) => FramingKind::Export,
            (_, Some(rule)) => FramingKind::Multiline(rule.clone()),
            (Format::Syslog, None) => FramingKind::OctetCounted,
            (_, None) => FramingKind::Lines,
        }
    }

    /// Whether the first record names the columns: a reader that begins in the middle gives that record first.
    pub fn has_header(&self) -> bool {
        self.format == Format::Csv && self.csv.has_header()
    }

    /// Takes a record apart. One `\r` at its end does not matter, nor does a byte order mark of UTF-8 at its beginning.
    ///
    /// ```
    /// use bulla_ingest::format::{Format, FormatOptions, Parsed, Parser};
    /// use bulla_ingest::Value;
    /// let mut parser = Parser::new(Format::Logfmt, &FormatOptions::default());
    /// let Parsed::Fields(fields) = parser.parse(br#"level=info msg="a b""#)? else { unreachable!() };
    /// assert_eq!(fields.get("msg"), Some(&Value::text("a b")));
    /// # Ok::<(), bulla_ingest::Refusal>(())
    /// ```
    ///
    /// # Errors
    /// Where the record is not of the format.
    pub fn parse<'a>(&mut self, record: &'a [u8]) -> Result<Parsed<'a>, Refusal> {
        if self.format == Format::JournalExport {
            return journal::export(record).map(Parsed::Fields);
        }
        let record = content(record)?;
        Ok(Parsed::Fields(match self.format {
            Format::Raw => Value::Object(vec![("record".into(), Value::from_bytes(record))]),
            Format::Json => json::parse(record)?,
            Format::Combined => access::parse(record, Layout::Combined)?.value(),
            Format::Common => access::parse(record, Layout::Common)?.value(),
            Format::ApacheError => apache_error::parse(record)?,
            Format::Syslog => syslog::parse(record)?,
            Format::JournalJson => journal::json(record)?,
            Format::JournalExport => unreachable!("it was parsed before"),
            Format::Logfmt => logfmt::parse(record)?,
            Format::Csv => return self.csv.parse(record),
            Format::RedisMonitor => return redis::parse(record),
            Format::PostgresCsv => postgres::parse(record)?,
        }))
    }
}

/// A record without the `\r` of a line end of Windows, and without a byte order mark.
fn content(record: &[u8]) -> Result<&[u8], Refusal> {
    let record = record.strip_prefix("\u{feff}".as_bytes()).unwrap_or(record);
    let record = record.strip_suffix(b"\r").unwrap_or(record);
    match record.trim_ascii_start() {
        [] => Err(Refusal::new("the line is empty")),
        _ => Ok(record),
    }
}

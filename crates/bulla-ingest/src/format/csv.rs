use super::Parsed;
use crate::framing::Quotes;
use crate::value::Members;
use crate::{Refusal, Value};
use csv_core::{ReadFieldResult, Reader, ReaderBuilder, Terminator};
use std::borrow::Cow;
use std::fmt;

/// The most columns of a record.
pub(super) const MAX_COLUMNS: usize = 16_384;

/// Columns by their names.
pub(super) struct Columns {
    delimiter: u8,
    reader: Reader,
    /// Absent until the header was read.
    names: Option<Vec<String>>,
    has_header: bool,
}

impl fmt::Debug for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Columns").field("names", &self.names).finish_non_exhaustive()
    }
}

impl Columns {
    pub(super) fn new(delimiter: u8, names: Option<Vec<String>>) -> Self {
        let has_header = names.is_none();
        Columns { delimiter, reader: reader(delimiter), names, has_header }
    }

    pub(super) fn delimiter(&self) -> u8 {
        self.delimiter
    }

    pub(super) fn has_header(&self) -> bool {
        self.has_header
    }

    pub(super) fn parse<'a>(&mut self, record: &'a [u8]) -> Result<Parsed<'a>, Refusal> {
        let fields = split(&mut self.reader, record, self.delimiter)?;
        let Some(names) = &self.names else {
            self.names = Some(header(fields)?);
            return Ok(Parsed::Header);
        };
        if fields.len() != names.len() {
            let (fields, names) = (fields.len(), names.len());
            return Err(Refusal::new(format!("there are {fields} columns, and the header names {names}")));
        }
        let members = names.iter().zip(fields);
        let members = members.map(|(name, field)| (Cow::Owned(name.clone()), field.into_value()));
        Ok(Parsed::Fields(Value::Object(members.collect())))
    }
}

/// The names of columns, each another one.
fn header(fields: Vec<Field<'_>>) -> Result<Vec<String>, Refusal> {
    let mut seen = Members::default();
    let mut names = Vec::with_capacity(fields.len());
    for (number, field) in (1..).zip(fields) {
        let name = match field.into_value() {
            Value::Text(name) if !name.is_empty() => name.into_owned(),
            _ => return Err(Refusal::new(format!("the header has no name for column {number}"))),
        };
        if !seen.add_new(Cow::Owned(name.clone()), Value::Null) {
            return Err(Refusal::new(format!("the header has the name of column {number} twice")));
        }
        names.push(name);
    }
    Ok(names)
}

/// A column of a record.
pub(super) struct Field<'a> {
    pub(super) content: Cow<'a, [u8]>,
    /// Whether it stood between quotes.
    pub(super) is_quoted: bool,
}

impl<'a> Field<'a> {
    pub(super) fn into_value(self) -> Value<'a> {
        match self.content {
            Cow::Borrowed(bytes) => Value::from_bytes(bytes),
            Cow::Owned(bytes) => Value::from_vec(bytes),
        }
    }
}

pub(super) fn reader(delimiter: u8) -> Reader {
    // A line end is one `\n`, as it is for who cut the record out of its source.
    ReaderBuilder::new().delimiter(delimiter).terminator(Terminator::Any(b'\n')).build()
}

/// The columns of one record, borrowed where they stand in it as they are.
pub(super) fn split<'a>(
    reader: &mut Reader,
    record: &'a [u8],
    delimiter: u8,
) -> Result<Vec<Field<'a>>, Refusal> {
    check(record, delimiter)?;
    reader.reset();
    let (mut fields, mut rest) = (Vec::with_capacity(32), record);
    let mut out = vec![0; 256.min(record.len() + 1)];
    loop {
        let (start, mut written) = (rest, 0);
        let is_last = loop {
            let (result, read, more) = reader.read_field(rest, &mut out[written..]);
            written += more;
            let at_end = rest.is_empty();
            rest = &rest[read..];
            match result {
                ReadFieldResult::OutputFull => out.resize(2 * out.len(), 0),
                // Nothing follows: the reader is told so by being given nothing.
                ReadFieldResult::InputEmpty if !at_end => {}
                ReadFieldResult::Field { record_end } => break record_end,
                ReadFieldResult::InputEmpty | ReadFieldResult::End => return Ok(fields),
            }
        };
        let (is_quoted, begins) = (start.starts_with(b"\""), usize::from(start.starts_with(b"\"")));
        let there = start.get(begins..begins + written).filter(|there| *there == &out[..written]);
        let content = there.map_or_else(|| Cow::Owned(out[..written].to_vec()), Cow::Borrowed);
        fields.push(Field { content, is_quoted });
        if fields.len() > MAX_COLUMNS {
            return Err(Refusal::new(format!("there are more than {MAX_COLUMNS} columns")));
        }
        if is_last {
            return Ok(fields);
        }
    }
}

/// That it is one record, whole.
fn check(record: &[u8], delimiter: u8) -> Result<(), Refusal> {
    let mut quotes = Quotes::Start;
    for (place, &byte) in record.iter().enumerate() {
        if byte == b'\n' && quotes != Quotes::Inside {
            return Err(Refusal::at("there is more than one record: a line ends", place));
        }
        quotes = quotes.after(byte, delimiter);
    }
    match quotes {
        Quotes::Inside => Err(Refusal::new("a column has no closing quote")),
        _ => Ok(()),
    }
}

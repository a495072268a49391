//! The entry, one record of one operation, and its canonical row: the bytes that a row's unit hashes.
//!
//! `docs/format.md`, "Rows", is the byte map. An entry has exactly one row and a row exactly one entry:
//! [`Entry::decode`] refuses every other spelling.

use crate::varint;
use smallvec::SmallVec;
use std::fmt;

/// The longest string field, in bytes.
pub const MAX_STRING: usize = 64 * 1024;
/// The longest payload, in bytes.
pub const MAX_PAYLOAD: usize = 16 * 1024 * 1024;
/// The most data subjects one entry names.
pub const MAX_SUBJECTS: usize = 64;
/// The longest row, in bytes: every field at its limit.
pub const MAX_ROW: usize = MAX_PAYLOAD + (MAX_SUBJECTS + 8) * (MAX_STRING + 3) + 64;

/// A field's place in the presence bits. Fields that are shared within a block come first,
/// fields that may be personal after them, in the order of their bytes in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Field {
    Controller = 0,
    Processor = 1,
    Purpose = 2,
    Status = 3,
    Duration = 4,
    Size = 5,
    Flags = 6,
    Location = 7,
    Client = 8,
    Actor = 9,
    Stream = 10,
    Payload = 11,
    Subject = 12,
}

impl Field {
    /// The presence bit of the field.
    pub const fn bit(self) -> u16 {
        1 << self as u8
    }
}

/// A row begins with its presence bits and its time, in so many bytes.
const HEAD: usize = 10;

/// The presence bits that may be set.
pub const PRESENCE: u16 = (1 << 13) - 1;

/// One record of one operation on somebody's data.
///
/// Absent (`None`), zero and empty are three different things and come back as they went in.
///
/// ```
/// let entry = bulla_proof::Entry::new("read", "user_42/email").subject("user_42").purpose("support");
/// let mut row = vec![0; entry.measure().unwrap()];
/// entry.encode(1_700_000_000_000_000_000, &mut row);
/// assert_eq!(bulla_proof::Entry::decode(&row).unwrap().purpose, Some("support"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Nanoseconds since the Unix epoch, UTC; assigned at append when absent.
    pub time: Option<i64>,
    /// What was done: `create`, `read`, `update`, `delete`, or any verb of the source. Never empty.
    pub operation: &'a str,
    /// What was touched: a key, path or URL.
    pub location: Option<&'a [u8]>,
    /// Whose data: the data subjects.
    pub subjects: Option<SmallVec<[&'a str; 2]>>,
    /// The GDPR controller.
    pub controller: Option<&'a str>,
    /// The GDPR processor.
    pub processor: Option<&'a str>,
    /// Why.
    pub purpose: Option<&'a str>,
    /// The authenticated principal that did it.
    pub actor: Option<&'a str>,
    /// The network address it came from.
    pub client: Option<&'a str>,
    /// A label; readers take an absent one for `default`.
    pub stream: Option<&'a str>,
    /// The source's outcome code.
    pub status: Option<u32>,
    /// How long it took, in nanoseconds.
    pub duration: Option<u64>,
    /// Bytes touched.
    pub size: Option<u64>,
    /// Free bits.
    pub flags: Option<u32>,
    /// Anything else.
    pub payload: Option<&'a [u8]>,
}

impl<'a> Entry<'a> {
    /// An entry of `operation` on `location`, all else absent.
    pub fn new(operation: &'a str, location: &'a (impl AsRef<[u8]> + ?Sized)) -> Self {
        Entry { operation, location: Some(location.as_ref()), ..Entry::default() }
    }

    /// Sets the time, in nanoseconds since the Unix epoch.
    pub fn time(mut self, nanoseconds: i64) -> Self {
        self.time = Some(nanoseconds);
        self
    }

    /// Adds a data subject.
    pub fn subject(mut self, subject: &'a str) -> Self {
        self.subjects.get_or_insert_default().push(subject);
        self
    }

    /// Sets the GDPR controller.
    pub fn controller(mut self, controller: &'a str) -> Self {
        self.controller = Some(controller);
        self
    }

    /// Sets the GDPR processor.
    pub fn processor(mut self, processor: &'a str) -> Self {
        self.processor = Some(processor);
        self
    }

    /// Sets the purpose.
    pub fn purpose(mut self, purpose: &'a str) -> Self {
        self.purpose = Some(purpose);
        self
    }

    /// Sets the authenticated principal.
    pub fn actor(mut self, actor: &'a str) -> Self {
        self.actor = Some(actor);
        self
    }

    /// Sets the network address.
    pub fn client(mut self, client: &'a str) -> Self {
        self.client = Some(client);
        self
    }

    /// Sets the stream's label.
    pub fn stream(mut self, stream: &'a str) -> Self {
        self.stream = Some(stream);
        self
    }

    /// Sets the outcome code.
    pub fn status(mut self, status: u32) -> Self {
        self.status = Some(status);
        self
    }

    /// Sets the duration, in nanoseconds.
    pub fn duration(mut self, nanoseconds: u64) -> Self {
        self.duration = Some(nanoseconds);
        self
    }

    /// Sets the number of bytes touched.
    pub fn size(mut self, bytes: u64) -> Self {
        self.size = Some(bytes);
        self
    }

    /// Sets the free bits.
    pub fn flags(mut self, flags: u32) -> Self {
        self.flags = Some(flags);
        self
    }

    /// Sets the payload.
    pub fn payload(mut self, payload: &'a (impl AsRef<[u8]> + ?Sized)) -> Self {
        self.payload = Some(payload.as_ref());
        self
    }

    /// The stream that the entry belongs to: `default` when it names none.
    pub fn stream_or_default(&self) -> &'a str {
        self.stream.unwrap_or("default")
    }

    /// The length of the entry's row in bytes.
    ///
    /// # Errors
    /// The first field that breaks a limit.
    pub fn measure(&self) -> Result<usize, EntryError> {
        self.measure_with(self.subjects.as_deref())
    }

    /// As [`Entry::measure`], with these data subjects and not its own: an entry that is made from another one, field
    /// by field, need not copy the list.
    ///
    /// # Errors
    /// As [`Entry::measure`].
    pub fn measure_with(&self, subjects: Option<&[&str]>) -> Result<usize, EntryError> {
        if self.operation.is_empty() {
            return Err(EntryError::NoOperation);
        }
        let mut length = 2 + 8 + string_length("operation", self.operation.len())?;
        for (name, value) in [
            ("controller", self.controller.map(str::len)),
            ("processor", self.processor.map(str::len)),
            ("purpose", self.purpose.map(str::len)),
            ("location", self.location.map(<[u8]>::len)),
            ("client", self.client.map(str::len)),
            ("actor", self.actor.map(str::len)),
            ("stream", self.stream.map(str::len)),
        ] {
            if let Some(value) = value {
                length += string_length(name, value)?;
            }
        }
        for value in [self.status.map(u64::from), self.duration, self.size, self.flags.map(u64::from)] {
            length += value.map_or(0, varint::length);
        }
        if let Some(payload) = self.payload {
            if payload.len() > MAX_PAYLOAD {
                return Err(EntryError::TooLong { field: "payload", limit: MAX_PAYLOAD });
            }
            length += varint::length(payload.len() as u64) + payload.len();
        }
        if let Some(subjects) = subjects {
            if subjects.len() > MAX_SUBJECTS {
                return Err(EntryError::TooManySubjects);
            }
            length += varint::length(subjects.len() as u64);
            for subject in subjects {
                length += string_length("subject", subject.len())?;
            }
        }
        Ok(length)
    }

    /// Writes the entry's row into `row`, with `time` where the entry has none.
    ///
    /// # Panics
    /// When `row` is not exactly as long as [`Entry::measure`] says.
    pub fn encode(&self, time: i64, row: &mut [u8]) {
        self.encode_with(self.subjects.as_deref(), time, row);
    }

    /// As [`Entry::encode`], with these data subjects and not its own.
    ///
    /// # Panics
    /// When `row` is not exactly as long as [`Entry::measure_with`] says.
    pub fn encode_with(&self, subjects: Option<&[&str]>, time: i64, row: &mut [u8]) {
        let mut row = Cursor { rest: row };
        let mut presence = 0;
        let mut mark = |field: Field, present: bool| presence |= field.bit() * u16::from(present);
        mark(Field::Controller, self.controller.is_some());
        mark(Field::Processor, self.processor.is_some());
        mark(Field::Purpose, self.purpose.is_some());
        mark(Field::Status, self.status.is_some());
        mark(Field::Duration, self.duration.is_some());
        mark(Field::Size, self.size.is_some());
        mark(Field::Flags, self.flags.is_some());
        mark(Field::Location, self.location.is_some());
        mark(Field::Client, self.client.is_some());
        mark(Field::Actor, self.actor.is_some());
        mark(Field::Stream, self.stream.is_some());
        mark(Field::Payload, self.payload.is_some());
        mark(Field::Subject, subjects.is_some());
        row.bytes(&presence.to_le_bytes());
        row.bytes(&self.time.unwrap_or(time).to_le_bytes());
        row.string(self.operation.as_bytes());
        for value in [self.controller, self.processor, self.purpose].into_iter().flatten() {
            row.string(value.as_bytes());
        }
        for value in [self.status.map(u64::from), self.duration, self.size, self.flags.map(u64::from)] {
            value.into_iter().for_each(|value| row.varint(value));
        }
        let personal = [
            self.location,
            self.client.map(str::as_bytes),
            self.actor.map(str::as_bytes),
            self.stream.map(str::as_bytes),
            self.payload,
        ];
        for value in personal.into_iter().flatten() {
            row.string(value);
        }
        if let Some(subjects) = subjects {
            row.varint(subjects.len() as u64);
            for subject in subjects {
                row.string(subject.as_bytes());
            }
        }
        assert!(row.rest.is_empty(), "the row is longer than the entry");
    }

    /// Reads a row back.
    ///
    /// # Errors
    /// Where the bytes are not a canonical row, or a field breaks a limit.
    pub fn decode(row: &'a [u8]) -> Result<Self, EntryError> {
        let fields = RawRow::parse(row)?;
        let text = |name: &'static str, value: Option<&'a [u8]>| {
            value
                .map(|value| std::str::from_utf8(value).map_err(|_| EntryError::NotText { field: name }))
                .transpose()
        };
        let status = fields.status.map(u32::try_from).transpose();
        let flags = fields.flags.map(u32::try_from).transpose();
        let entry = Entry {
            time: Some(fields.time),
            operation: text("operation", Some(fields.operation))?.unwrap_or_default(),
            location: fields.location,
            subjects: fields
                .subjects
                .map(|subjects| {
                    subjects
                        .map(|subject| text("subject", Some(subject)).map(Option::unwrap_or_default))
                        .collect()
                })
                .transpose()?,
            controller: text("controller", fields.controller)?,
            processor: text("processor", fields.processor)?,
            purpose: text("purpose", fields.purpose)?,
            actor: text("actor", fields.actor)?,
            client: text("client", fields.client)?,
            stream: text("stream", fields.stream)?,
            status: status.map_err(|_| EntryError::TooLarge { field: "status" })?,
            duration: fields.duration,
            size: fields.size,
            flags: flags.map_err(|_| EntryError::TooLarge { field: "flags" })?,
            payload: fields.payload,
        };
        entry.measure()?;
        Ok(entry)
    }
}

/// A row cut into its fields, without looking inside them: what the block encoder transposes.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct RawRow<'a> {
    pub presence: u16,
    pub time: i64,
    pub operation: &'a [u8],
    pub controller: Option<&'a [u8]>,
    pub processor: Option<&'a [u8]>,
    pub purpose: Option<&'a [u8]>,
    pub status: Option<u64>,
    pub duration: Option<u64>,
    pub size: Option<u64>,
    pub flags: Option<u64>,
    pub location: Option<&'a [u8]>,
    pub client: Option<&'a [u8]>,
    pub actor: Option<&'a [u8]>,
    pub stream: Option<&'a [u8]>,
    pub payload: Option<&'a [u8]>,
    pub subjects: Option<Strings<'a>>,
}

impl<'a> RawRow<'a> {
    /// Cuts a row into its fields. Text is not checked to be UTF-8, nor integers to fit 32 bits.
    ///
    /// # Errors
    /// Where a length runs past the row, a varint is not minimal, or bytes are left over.
    #[inline]
    pub fn parse(row: &'a [u8]) -> Result<Self, EntryError> {
        let (head, mut rest) = row.split_first_chunk::<HEAD>().ok_or(EntryError::Truncated)?;
        let presence = u16::from_le_bytes([head[0], head[1]]);
        let time = i64::from_le_bytes(head[2..10].try_into().map_err(|_| EntryError::Truncated)?);
        let operation = take_string(&mut rest)?;
        Self::fields(presence, time, operation, rest)
    }

    #[inline]
    fn fields(presence: u16, time: i64, operation: &'a [u8], mut rest: &'a [u8]) -> Result<Self, EntryError> {
        if presence & !PRESENCE != 0 {
            return Err(EntryError::UnknownField);
        }
        let has = |field: Field| presence & field.bit() != 0;
        let mut string = |field| has(field).then(|| take_string(&mut rest)).transpose();
        let controller = string(Field::Controller)?;
        let processor = string(Field::Processor)?;
        let purpose = string(Field::Purpose)?;
        let mut number = |field| has(field).then(|| take_varint(&mut rest)).transpose();
        let status = number(Field::Status)?;
        let duration = number(Field::Duration)?;
        let size = number(Field::Size)?;
        let flags = number(Field::Flags)?;
        let mut string = |field| has(field).then(|| take_string(&mut rest)).transpose();
        let location = string(Field::Location)?;
        let client = string(Field::Client)?;
        let actor = string(Field::Actor)?;
        let stream = string(Field::Stream)?;
        let payload = string(Field::Payload)?;
        let subjects = has(Field::Subject).then(|| take_strings(&mut rest)).transpose()?;
        if !rest.is_empty() {
            return Err(EntryError::LeftOver);
        }
        Ok(RawRow {
            presence,
            time,
            operation,
            controller,
            processor,
            purpose,
            status,
            duration,
            size,
            flags,
            location,
            client,
            actor,
            stream,
            payload,
            subjects,
        })
    }

    /// The presence bits of a row that was not cut; 0 of what is shorter than they are.
    #[inline]
    pub fn presence_of(row: &[u8]) -> u16 {
        row.first_chunk().map_or(0, |bytes| u16::from_le_bytes(*bytes))
    }

    /// The data subjects of a row that was not cut. Nothing else is looked at: what is behind them, nor any text.
    ///
    /// # Errors
    /// As [`RawRow::parse`], as far as they are looked for.
    pub fn subjects_of(row: &'a [u8]) -> Result<Option<Strings<'a>>, EntryError> {
        let presence = Self::presence_of(row);
        if presence & Field::Subject.bit() == 0 {
            return Ok(None);
        }
        let before = |first: Field, behind: Field| presence & (behind.bit() - first.bit());
        let mut rest = row.get(HEAD..).ok_or(EntryError::Truncated)?;
        // The first string is the operation.
        for _ in 0..=before(Field::Controller, Field::Status).count_ones() {
            take_string(&mut rest)?;
        }
        for _ in 0..before(Field::Status, Field::Location).count_ones() {
            take_varint(&mut rest)?;
        }
        for _ in 0..before(Field::Location, Field::Subject).count_ones() {
            take_string(&mut rest)?;
        }
        take_strings(&mut rest).map(Some)
    }

    /// Cuts a personal row, one without time and operation, into its fields. Both are empty in what comes out.
    ///
    /// # Errors
    /// As [`RawRow::parse`].
    pub fn parse_personal(row: &'a [u8]) -> Result<Self, EntryError> {
        let (presence, rest) = row.split_first_chunk().ok_or(EntryError::Truncated)?;
        Self::fields(u16::from_le_bytes(*presence), 0, &[], rest)
    }

    /// The row with the fields that it has, and those that `other` has besides.
    pub fn or(&self, other: &Self) -> Self {
        RawRow {
            presence: self.presence | other.presence,
            time: self.time,
            operation: self.operation,
            controller: self.controller.or(other.controller),
            processor: self.processor.or(other.processor),
            purpose: self.purpose.or(other.purpose),
            status: self.status.or(other.status),
            duration: self.duration.or(other.duration),
            size: self.size.or(other.size),
            flags: self.flags.or(other.flags),
            location: self.location.or(other.location),
            client: self.client.or(other.client),
            actor: self.actor.or(other.actor),
            stream: self.stream.or(other.stream),
            payload: self.payload.or(other.payload),
            subjects: self.subjects.or(other.subjects),
        }
    }

    /// Appends the canonical row of the fields in `kept`, which are presence bits.
    pub fn write(&self, kept: u16, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.presence & kept).to_le_bytes());
        out.extend_from_slice(&self.time.to_le_bytes());
        let string = |out: &mut Vec<u8>, value: &[u8]| {
            varint::push(value.len() as u64, out);
            out.extend_from_slice(value);
        };
        string(out, self.operation);
        let keeps = |field: Field| kept & field.bit() != 0;
        for (field, value) in [
            (Field::Controller, self.controller),
            (Field::Processor, self.processor),
            (Field::Purpose, self.purpose),
        ] {
            value.filter(|_| keeps(field)).into_iter().for_each(|value| string(out, value));
        }
        for (field, value) in [
            (Field::Status, self.status),
            (Field::Duration, self.duration),
            (Field::Size, self.size),
            (Field::Flags, self.flags),
        ] {
            value.filter(|_| keeps(field)).into_iter().for_each(|value| varint::push(value, out));
        }
        for (field, value) in [
            (Field::Location, self.location),
            (Field::Client, self.client),
            (Field::Actor, self.actor),
            (Field::Stream, self.stream),
            (Field::Payload, self.payload),
        ] {
            value.filter(|_| keeps(field)).into_iter().for_each(|value| string(out, value));
        }
        if let Some(subjects) = self.subjects.filter(|_| keeps(Field::Subject)) {
            varint::push(subjects.len() as u64, out);
            subjects.for_each(|subject| string(out, subject));
        }
    }
}

/// The strings of a row's list, which [`RawRow::parse`] has checked to be there.
#[derive(Clone, Copy, Debug)]
pub struct Strings<'a> {
    count: usize,
    rest: &'a [u8],
}

impl<'a> Iterator for Strings<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        self.count = self.count.checked_sub(1)?;
        take_string(&mut self.rest).ok()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.count, Some(self.count))
    }
}

impl ExactSizeIterator for Strings<'_> {}

/// Why an entry is refused, or a row is not one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum EntryError {
    NoOperation,
    TooLong { field: &'static str, limit: usize },
    TooManySubjects,
    NotText { field: &'static str },
    TooLarge { field: &'static str },
    Truncated,
    UnknownField,
    LeftOver,
    NotMinimal,
}

impl fmt::Display for EntryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoOperation => write!(f, "`operation` is missing or empty"),
            Self::TooLong { field, limit } => write!(f, "`{field}` is longer than {limit} bytes"),
            Self::TooManySubjects => write!(f, "`subject` names more than {MAX_SUBJECTS} data subjects"),
            Self::NotText { field } => write!(f, "`{field}` is not UTF-8"),
            Self::TooLarge { field } => write!(f, "`{field}` does not fit 32 bits"),
            Self::Truncated => write!(f, "the row ends inside a field"),
            Self::UnknownField => write!(f, "the row has an unknown field"),
            Self::LeftOver => write!(f, "the row has bytes after its last field"),
            Self::NotMinimal => write!(f, "the row has an integer that is not in its shortest form"),
        }
    }
}

impl std::error::Error for EntryError {}

struct Cursor<'a> {
    rest: &'a mut [u8],
}

impl Cursor<'_> {
    #[inline]
    fn bytes(&mut self, bytes: &[u8]) {
        let (head, rest) = std::mem::take(&mut self.rest).split_at_mut(bytes.len());
        head.copy_from_slice(bytes);
        self.rest = rest;
    }

    #[inline]
    fn varint(&mut self, value: u64) {
        varint::encode(value, |byte| self.bytes(&[byte]));
    }

    #[inline]
    fn string(&mut self, bytes: &[u8]) {
        self.varint(bytes.len() as u64);
        self.bytes(bytes);
    }
}

#[inline]
fn string_length(field: &'static str, length: usize) -> Result<usize, EntryError> {
    if length > MAX_STRING {
        return Err(EntryError::TooLong { field, limit: MAX_STRING });
    }
    Ok(varint::length(length as u64) + length)
}

#[inline]
fn take_varint(rest: &mut &[u8]) -> Result<u64, EntryError> {
    varint::take(rest).map_err(|error| match error {
        varint::VarintError::Truncated => EntryError::Truncated,
        varint::VarintError::NotMinimal => EntryError::NotMinimal,
    })
}

/// Takes a list of strings, each of which is there.
#[inline]
fn take_strings<'a>(rest: &mut &'a [u8]) -> Result<Strings<'a>, EntryError> {
    let count = usize::try_from(take_varint(rest)?).unwrap_or(usize::MAX);
    if count > MAX_SUBJECTS {
        return Err(EntryError::TooManySubjects);
    }
    let strings = Strings { count, rest };
    for _ in 0..count {
        take_string(rest)?;
    }
    Ok(strings)
}

#[inline]
fn take_string<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], EntryError> {
    let length = usize::try_from(take_varint(rest)?).map_err(|_| EntryError::Truncated)?;
    let (string, tail) = rest.split_at_checked(length).ok_or(EntryError::Truncated)?;
    *rest = tail;
    Ok(string)
}

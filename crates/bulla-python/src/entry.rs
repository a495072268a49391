//! Entries as Python has them: dicts.

use crate::error::invalid;
use crate::given::not_iterated;
use bulla::text::{LineError, text_or_bytes};
use bulla::{Entry, Redaction};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyDict, PyList, PyString, PyType};

/// A field of an entry.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Field {
    Operation,
    Location,
    Subject,
    Controller,
    Processor,
    Purpose,
    Actor,
    Client,
    Stream,
    Status,
    Duration,
    Size,
    Flags,
    Payload,
    Time,
    /// A list of data subjects, who come behind it.
    Subjects,
}

const TEXT: &str = "a str";
const BYTES: &str = "a str or bytes";
const SUBJECT: &str = "a str or an iterable of at most 64 of them";
const WHOLE_32: &str = "a whole number from 0 to 4294967295";
const WHOLE_64: &str = "a whole number from 0 to 18446744073709551615";
const TIME: &str =
    "a datetime with a time zone or whole nanoseconds since 1970, between the years 1677 and 2262";

/// The fields by their names, with what each takes.
const FIELDS: [(&str, Field, &str); 15] = [
    ("operation", Field::Operation, TEXT),
    ("location", Field::Location, BYTES),
    ("subject", Field::Subject, SUBJECT),
    ("controller", Field::Controller, TEXT),
    ("processor", Field::Processor, TEXT),
    ("purpose", Field::Purpose, TEXT),
    ("actor", Field::Actor, TEXT),
    ("client", Field::Client, TEXT),
    ("stream", Field::Stream, TEXT),
    ("status", Field::Status, WHOLE_32),
    ("duration", Field::Duration, WHOLE_64),
    ("size", Field::Size, WHOLE_64),
    ("flags", Field::Flags, WHOLE_32),
    ("payload", Field::Payload, BYTES),
    ("time", Field::Time, TIME),
];

/// The most data subjects of an entry.
const MAX_SUBJECTS: usize = 64;

/// The values of entries, which are held until the entries were staged: what has them may change meanwhile.
#[derive(Default)]
pub(crate) struct Values<'py> {
    values: Vec<(Field, Bound<'py, PyAny>)>,
    /// Where the values of each entry end.
    ends: Vec<usize>,
}

impl<'py> Values<'py> {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn clear(&mut self) {
        self.values.clear();
        self.ends.clear();
    }

    /// Takes the fields of an entry, in the order of [`Field`].
    pub(crate) fn take_fields<const N: usize>(
        &mut self,
        fields: [Option<Bound<'py, PyAny>>; N],
    ) -> Result<(), Refusal> {
        for ((_, field, _), value) in FIELDS.iter().zip(fields) {
            if let Some(value) = value {
                self.take(*field, value)?;
            }
        }
        self.ends.push(self.values.len());
        Ok(())
    }

    /// Takes the fields of an entry that is a dict.
    pub(crate) fn take_dict(&mut self, entry: &Bound<'py, PyAny>) -> Result<(), Refusal> {
        let Ok(entry) = entry.cast::<PyDict>() else {
            return Err(Refusal::Said("it has to be a dict of the fields of an entry".to_owned()));
        };
        // An iterable of data subjects may run anything, which may change the dict: it is taken once that was gone through.
        let mut subjects = None;
        for (name, value) in entry {
            match field_named(&name)? {
                Field::Subject => subjects = Some(value),
                field => self.take(field, value)?,
            }
        }
        if let Some(subjects) = subjects {
            self.take(Field::Subject, subjects)?;
        }
        self.ends.push(self.values.len());
        Ok(())
    }

    fn take(&mut self, field: Field, value: Bound<'py, PyAny>) -> Result<(), Refusal> {
        if value.is_none() {
            return Ok(());
        }
        if field != Field::Subject || value.is_instance_of::<PyString>() {
            self.values.push((field, value));
            return Ok(());
        }
        if value.is_instance_of::<PyBytes>() {
            return Err(unfit(field));
        }
        let subjects = value
            .try_iter()
            .map_err(|error| not_iterated(value.py(), error, || unfit_value(field, &value)))?;
        self.values.push((Field::Subjects, value));
        for (place, subject) in subjects.enumerate() {
            if place == MAX_SUBJECTS {
                return Err(unfit(field));
            }
            self.values.push((Field::Subject, subject.map_err(Refusal::Raised)?));
        }
        Ok(())
    }

    /// The entries, each within the limits of one.
    ///
    /// # Errors
    /// Which is none, and why.
    pub(crate) fn entries(&self) -> Result<Vec<Entry<'_>>, (usize, Refusal)> {
        let mut entries = Vec::with_capacity(self.len());
        let mut start = 0;
        for (place, end) in self.ends.iter().enumerate() {
            entries.push(entry_of(&self.values[start..*end]).map_err(|refusal| (place, refusal))?);
            start = *end;
        }
        Ok(entries)
    }
}

/// Why something is no entry.
pub(crate) enum Refusal {
    Said(String),
    /// What Python raised when it was looked at.
    Raised(PyErr),
}

impl From<PyErr> for Refusal {
    fn from(error: PyErr) -> Self {
        Refusal::Raised(error)
    }
}

impl Refusal {
    /// The exception, for an entry by its place in a batch or for the only one.
    pub(crate) fn raise(self, py: Python<'_>, place: Option<usize>) -> PyErr {
        match (self, place) {
            (Refusal::Raised(error), _) => error,
            (Refusal::Said(why), None) => invalid(py, why),
            (Refusal::Said(why), Some(place)) => invalid(py, format!("entry {place} of the batch: {why}")),
        }
    }
}

/// That a field takes something else.
fn unfit(field: Field) -> Refusal {
    let field = if field == Field::Subjects { Field::Subject } else { field };
    let said = FIELDS.iter().find(|(_, known, _)| *known == field);
    Refusal::Said(said.map_or_else(String::new, |(name, _, takes)| format!("`{name}` has to be {takes}")))
}

/// The same of a value, of which a `str` may be made: numbers of people, as databases and routes have them, are no texts.
fn unfit_value(field: Field, value: &Bound<'_, PyAny>) -> Refusal {
    match unfit(field) {
        Refusal::Said(why) if takes_text(field) && !value.is_instance_of::<PyBytes>() => {
            Refusal::Said(format!("{why}: of what is none give str(…)"))
        }
        other => other,
    }
}

/// Whether a field takes a `str`.
fn takes_text(field: Field) -> bool {
    let numbers = [Field::Status, Field::Duration, Field::Size, Field::Flags, Field::Time];
    !numbers.contains(&field)
}

/// That a `str` is no text: UTF-8 has no surrogates, which Python has for bytes of a file's name that are none.
fn surrogates(field: Field) -> Refusal {
    let name = FIELDS.iter().find(|(_, known, _)| *known == field).map_or("", |(name, ..)| name);
    let way_out = match field {
        Field::Location | Field::Payload => ": give it as bytes, such as those of os.fsencode",
        _ => "",
    };
    Refusal::Said(format!("`{name}` has surrogates, which UTF-8 has not{way_out}"))
}

/// The names as Python interns them: those of a dict in a program are the same objects.
fn names(py: Python<'_>) -> &[Py<PyString>] {
    static NAMES: PyOnceLock<Vec<Py<PyString>>> = PyOnceLock::new();
    NAMES.get_or_init(py, || FIELDS.iter().map(|(name, ..)| PyString::intern(py, name).unbind()).collect())
}

fn field_named(name: &Bound<'_, PyAny>) -> Result<Field, Refusal> {
    let interned = names(name.py());
    if let Some(place) = interned.iter().position(|known| name.is(known)) {
        return Ok(FIELDS[place].1);
    }
    let text = name.cast::<PyString>().ok().and_then(|name| name.to_str().ok());
    let text = text.ok_or_else(|| Refusal::Said("the name of a field has to be a str".to_owned()))?;
    let known = FIELDS.iter().find(|(known, ..)| *known == text);
    known.map(|(_, field, _)| *field).ok_or_else(|| Refusal::Said(LineError::unknown_field(text).to_string()))
}

fn entry_of<'a>(values: &'a [(Field, Bound<'_, PyAny>)]) -> Result<Entry<'a>, Refusal> {
    let mut entry = Entry::default();
    for (field, value) in values {
        set(&mut entry, *field, value).ok_or_else(|| match value.is_instance_of::<PyString>() {
            true if takes_text(*field) => surrogates(*field),
            _ => unfit_value(*field, value),
        })?;
    }
    entry.measure().map_err(|error| Refusal::Said(error.to_string()))?;
    Ok(entry)
}

/// Sets a field; `None` where it takes something else.
fn set<'a>(entry: &mut Entry<'a>, field: Field, value: &'a Bound<'_, PyAny>) -> Option<()> {
    match field {
        Field::Operation => entry.operation = text(value)?,
        Field::Location => entry.location = Some(bytes(value)?),
        Field::Subject => entry.subjects.get_or_insert_default().push(text(value)?),
        Field::Subjects => drop(entry.subjects.get_or_insert_default()),
        Field::Controller => entry.controller = Some(text(value)?),
        Field::Processor => entry.processor = Some(text(value)?),
        Field::Purpose => entry.purpose = Some(text(value)?),
        Field::Actor => entry.actor = Some(text(value)?),
        Field::Client => entry.client = Some(text(value)?),
        Field::Stream => entry.stream = Some(text(value)?),
        Field::Status => entry.status = Some(number(value)?),
        Field::Duration => entry.duration = Some(number(value)?),
        Field::Size => entry.size = Some(number(value)?),
        Field::Flags => entry.flags = Some(number(value)?),
        Field::Payload => entry.payload = Some(bytes(value)?),
        Field::Time => entry.time = Some(time(value)?),
    }
    Some(())
}

fn text<'a>(value: &'a Bound<'_, PyAny>) -> Option<&'a str> {
    value.cast::<PyString>().ok()?.to_str().ok()
}

/// Text as UTF-8, or bytes as they are.
pub(crate) fn bytes<'a>(value: &'a Bound<'_, PyAny>) -> Option<&'a [u8]> {
    match value.cast::<PyBytes>() {
        Ok(bytes) => Some(bytes.as_bytes()),
        Err(_) => text(value).map(str::as_bytes),
    }
}

/// A number, which a truth value is not.
pub(crate) fn number<'py, T: for<'a> FromPyObject<'a, 'py>>(value: &Bound<'py, PyAny>) -> Option<T> {
    if value.is_instance_of::<PyBool>() { None } else { value.extract().ok() }
}

/// A time in nanoseconds since the Unix epoch: what is a number already, or a `datetime` (pandas' too, to its nanosecond) with a time zone.
pub(crate) fn time(value: &Bound<'_, PyAny>) -> Option<i64> {
    static DATETIME: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let py = value.py();
    let datetime = DATETIME.import(py, "datetime", "datetime").ok()?;
    if !value.is_instance(datetime).ok()? {
        return number(value);
    }
    // One without a time zone cannot be subtracted from one that has one.
    let since = value.sub(epoch(py).ok()?).ok()?;
    let part = |name| since.getattr(name).ok()?.extract::<i64>().ok();
    let (days, seconds) = (part(intern!(py, "days"))?, part(intern!(py, "seconds"))?);
    let microseconds = part(intern!(py, "microseconds"))?;
    let nanoseconds = part(intern!(py, "nanoseconds")).unwrap_or_default();
    let seconds = days.checked_mul(86_400)?.checked_add(seconds)?;
    // What is below 1677 in whole seconds may not be so with what is behind them.
    let total = i128::from(seconds) * 1_000_000_000 + i128::from(microseconds * 1_000 + nanoseconds);
    i64::try_from(total).ok()
}

/// 1970 in UTC.
fn epoch(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static EPOCH: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let made = EPOCH.get_or_try_init(py, || {
        let module = py.import("datetime")?;
        let utc = module.getattr("timezone")?.getattr("utc")?;
        PyResult::Ok(module.getattr("datetime")?.call1((1970, 1, 1, 0, 0, 0, 0, utc))?.unbind())
    });
    made.map(|epoch| epoch.bind(py))
}

/// An entry as it is read: a dict that `append_batch` takes, too, but for its number and what is said of it.
pub(crate) fn to_dict<'py>(
    py: Python<'py>,
    number: u64,
    entry: &Entry<'_>,
    withheld: Option<Redaction>,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item(intern!(py, "entry"), number)?;
    if let Some(time) = entry.time {
        dict.set_item(intern!(py, "time"), time)?;
    }
    dict.set_item(intern!(py, "operation"), entry.operation)?;
    set_bytes(&dict, intern!(py, "location"), entry.location)?;
    if let Some(subjects) = &entry.subjects {
        dict.set_item(intern!(py, "subject"), PyList::new(py, subjects)?)?;
    }
    let texts = [
        (intern!(py, "controller"), entry.controller),
        (intern!(py, "processor"), entry.processor),
        (intern!(py, "purpose"), entry.purpose),
        (intern!(py, "actor"), entry.actor),
        (intern!(py, "client"), entry.client),
        (intern!(py, "stream"), entry.stream),
    ];
    for (name, text) in texts.into_iter().filter_map(|(name, text)| Some((name, text?))) {
        dict.set_item(name, text)?;
    }
    let numbers = [
        (intern!(py, "status"), entry.status.map(u64::from)),
        (intern!(py, "duration"), entry.duration),
        (intern!(py, "size"), entry.size),
        (intern!(py, "flags"), entry.flags.map(u64::from)),
    ];
    for (name, number) in numbers.into_iter().filter_map(|(name, number)| Some((name, number?))) {
        dict.set_item(name, number)?;
    }
    set_bytes(&dict, intern!(py, "payload"), entry.payload)?;
    if let Some(withheld) = withheld {
        dict.set_item(intern!(py, "withheld"), withheld.name())?;
    }
    Ok(dict)
}

fn set_bytes(dict: &Bound<'_, PyDict>, name: &Bound<'_, PyString>, value: Option<&[u8]>) -> PyResult<()> {
    match text_or_bytes(value) {
        (Some(text), _) => dict.set_item(name, text),
        (_, Some(bytes)) => dict.set_item(name, PyBytes::new(dict.py(), bytes)),
        _ => Ok(()),
    }
}

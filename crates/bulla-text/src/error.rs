use super::field;
use bulla_proof::EntryError;
use std::fmt;

/// Why a line is refused, for the person who can mend it.
///
/// The message names fields and byte columns (from 1) and what was expected; it never repeats a value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LineError {
    /// Nothing but white space.
    Empty,
    /// The line is longer than the reader holds; see [`lines`](super::lines).
    TooLong {
        /// The most bytes of a line that the reader holds.
        limit: usize,
    },
    /// JSON, but not an object.
    NotAnObject,
    /// Not JSON.
    Syntax {
        /// The byte at which the JSON ends to make sense.
        column: usize,
        /// The field that was being read.
        field: Option<&'static str>,
        /// What is wrong there.
        problem: String,
    },
    /// No such field.
    UnknownField {
        /// Its name; absent when it does not look like a name, for it may then be anything.
        name: Option<String>,
        /// The byte at which the name ends; 0 where there are no columns.
        column: usize,
    },
    /// A field is given a second time.
    Duplicate {
        /// The field.
        field: &'static str,
    },
    /// A value of another type, form or range than the field takes.
    Value {
        /// The field.
        field: &'static str,
        /// What it takes.
        expected: &'static str,
    },
    /// The field is given both as text and in base64.
    BothForms {
        /// The field.
        field: &'static str,
    },
    /// A part of an access-log line is not what the format has there.
    Part {
        /// What is wrong.
        problem: &'static str,
    },
    /// The entry breaks a limit.
    Limit(EntryError),
}

impl LineError {
    /// What is said of this name, which is none of a field.
    pub fn unknown_field(name: &str) -> Self {
        LineError::UnknownField { name: field::presentable(name), column: 0 }
    }
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(f, "the line is empty"),
            Self::TooLong { limit } => write!(f, "the line is longer than {limit} bytes"),
            Self::NotAnObject => write!(f, "the line is not a JSON object"),
            Self::Syntax { column, field: Some(field), problem } => {
                write!(f, "the line is not JSON at column {column}, in `{field}`: {problem}")
            }
            Self::Syntax { column, field: None, problem } => {
                write!(f, "the line is not JSON at column {column}: {problem}")
            }
            Self::UnknownField { name: Some(name), .. } if name == "entry" => {
                write!(f, "`entry` is assigned by the log and cannot be given")
            }
            Self::UnknownField { name: Some(name), column } => {
                write!(f, "`{name}` is not a field; the fields are {}", field::names(*column > 0))
            }
            Self::UnknownField { name: None, column: 0 } => {
                write!(f, "a name in the entry is not a field; the fields are {}", field::names(false))
            }
            Self::UnknownField { name: None, column } => write!(
                f,
                "the name that ends at column {column} is not a field; the fields are {}",
                field::names(true)
            ),
            Self::Duplicate { field } => write!(f, "`{field}` is given twice"),
            Self::Value { field, expected } => write!(f, "`{field}` must be {expected}"),
            Self::BothForms { field } => write!(f, "`{field}` and `{field}_base64` are both given"),
            Self::Part { problem } => f.write_str(problem),
            Self::Limit(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for LineError {}

impl From<EntryError> for LineError {
    fn from(error: EntryError) -> Self {
        Self::Limit(error)
    }
}

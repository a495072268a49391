//! The values of a row, one after the other.

use crate::FIELDS;
use bulla_proof::entry::{Field, RawRow, Strings};

/// A value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    String(&'a [u8]),
    Number(u64),
}

/// The values that a row has of these fields, each with the place of its field among all; a list of data subjects is none.
pub(super) fn values<'a>(row: &RawRow<'a>, fields: u16) -> impl Iterator<Item = (usize, Value<'a>)> {
    let row = *row;
    let all = FIELDS.iter().enumerate().filter(move |(_, (field, ..))| fields & field.bit() != 0);
    all.filter_map(move |(index, (field, ..))| Some((index, value(&row, *field)?)))
}

fn value<'a>(row: &RawRow<'a>, field: Field) -> Option<Value<'a>> {
    let string = match field {
        Field::Controller => row.controller,
        Field::Processor => row.processor,
        Field::Purpose => row.purpose,
        Field::Status => return row.status.map(Value::Number),
        Field::Duration => return row.duration.map(Value::Number),
        Field::Size => return row.size.map(Value::Number),
        Field::Flags => return row.flags.map(Value::Number),
        Field::Location => row.location,
        Field::Client => row.client,
        Field::Actor => row.actor,
        Field::Stream => row.stream,
        Field::Payload => row.payload,
        Field::Subject => None,
    };
    string.map(Value::String)
}

/// What the rows of a group had last: of each field its string, and of the data subjects their list.
#[derive(Default)]
pub(super) struct Before<'a> {
    strings: [Option<&'a [u8]>; FIELDS.len()],
    subjects: Option<Strings<'a>>,
}

impl<'a> Before<'a> {
    /// Whether a field had this string before; from here on it has.
    pub(super) fn had(&mut self, field: usize, string: &'a [u8]) -> bool {
        self.strings[field].replace(string) == Some(string)
    }

    /// Whether there was a list of data subjects before.
    pub(super) fn has_subjects(&self) -> bool {
        self.subjects.is_some()
    }

    /// Whether the list before was the same; from here on it is.
    pub(super) fn had_subjects(&mut self, list: Strings<'a>) -> bool {
        self.subjects.replace(list).is_some_and(|before| before.len() == list.len() && before.eq(list))
    }
}

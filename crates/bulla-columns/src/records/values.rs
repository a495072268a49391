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
#[inline]
pub(super) fn values<'r, 'a>(
    row: &'r RawRow<'a>,
    fields: u16,
) -> impl Iterator<Item = (usize, Value<'a>)> + use<'r, 'a> {
    let mut rest = row.presence & fields & !Field::Subject.bit();
    std::iter::from_fn(move || {
        while rest != 0 {
            let index = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            if let Some(value) = value(row, FIELDS[index].0) {
                return Some((index, value));
            }
        }
        None
    })
}

#[inline]
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

/// The data subjects of a row, as far as they are of its group's fields.
pub(super) struct Subjects<'a> {
    pub(super) list: Option<Strings<'a>>,
    /// Whether a row before had some.
    pub(super) are_others: bool,
    /// Whether the last such row had the same.
    pub(super) is_same: bool,
}

impl<'a> Subjects<'a> {
    /// The name that may stand in the row's strings.
    pub(super) fn first(&self) -> Option<&'a [u8]> {
        self.list.and_then(|mut list| list.next())
    }
}

impl<'a> Before<'a> {
    /// Whether a field had this string before; from here on it has.
    #[inline]
    pub(super) fn had(&mut self, field: usize, string: &'a [u8]) -> bool {
        self.strings[field].replace(string) == Some(string)
    }

    /// The data subjects of the next row.
    pub(super) fn of_subjects(&mut self, row: &RawRow<'a>, personal: u16) -> Subjects<'a> {
        let list = row.subjects.filter(|_| personal & Field::Subject.bit() != 0);
        let before = self.subjects;
        self.subjects = list.or(before);
        let is_same = matches!((before, list), (Some(before), Some(list)) if before.len() == list.len() && before.eq(list));
        Subjects { list, are_others: before.is_some(), is_same }
    }
}

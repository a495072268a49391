//! The values by which a block's index finds entries.

use bulla_proof::entry::Field;

/// A kind of value by which entries are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Searched {
    /// The operation, which every entry has.
    Operation = 0,
    /// The processor.
    Processor = 1,
    /// The stream.
    Stream = 2,
    /// A data subject of an entry without a group, by name.
    Subject = 3,
    /// A data subject of a group, by number.
    Number = 4,
    /// That there are groups, whose personal fields are not indexed.
    Grouped = 5,
}

impl Searched {
    /// The kind that an optional field's values are of, if entries are found by them.
    pub fn of(field: Field) -> Option<Self> {
        match field {
            Field::Processor => Some(Searched::Processor),
            Field::Stream => Some(Searched::Stream),
            Field::Subject => Some(Searched::Subject),
            _ => None,
        }
    }
}

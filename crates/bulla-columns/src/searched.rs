//! What entries are found by.

use bulla_proof::entry::Field;

/// What entries are found by.
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
    /// What an optional field of an entry is found by.
    pub fn of(field: Field) -> Option<Self> {
        match field {
            Field::Processor => Some(Searched::Processor),
            Field::Stream => Some(Searched::Stream),
            Field::Subject => Some(Searched::Subject),
            _ => None,
        }
    }
}

//! What can be damaged in a vault, in words.

use std::fmt;

use super::rows;

/// Something that is damaged. Nothing but a replica or a backup mends it; an erasure in the same bucket is refused until then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Damage {
    /// This row of sixteen numbers does not open: their keys are lost.
    Row(u64),
    /// This row of sixteen numbers is not there, although some of them were given.
    Missing(u64),
    /// Somebody has this number, although it was not given out yet.
    Beyond(u64),
    /// Nobody has this number, and nothing says that they were erased: the row may be older than the rest.
    Unexplained(u64),
    /// Nothing leads to this number: the person would get another one.
    Unindexed(u64),
    /// The index leads to this number, which is not that person's.
    Misled(u64),
    /// This index bucket has an entry that belongs elsewhere.
    Entry(u32),
    /// This index bucket has a row that is missing, or does not open.
    Bucket(u32),
    /// There is a row of the index that belongs to no bucket.
    Foreign(u64),
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Damage::Row(id) => f.write_str(&rows::broken(*id)),
            Damage::Missing(id) => write!(f, "its row {id} is missing"),
            Damage::Beyond(number) => write!(f, "number {number} is beyond the last that was given"),
            Damage::Unexplained(number) => write!(
                f,
                "nobody has number {number}, and nothing says that they were erased: its row {} may be older than the rest",
                rows::row_of(*number)
            ),
            Damage::Unindexed(number) => write!(f, "its index does not lead to number {number}"),
            Damage::Misled(number) => {
                write!(f, "its index leads to number {number}, which is not that person's")
            }
            Damage::Entry(bucket) => {
                write!(f, "its index bucket {bucket} has an entry that does not belong there")
            }
            Damage::Bucket(bucket) => {
                write!(f, "its index bucket {bucket} has a row that is missing or does not open")
            }
            Damage::Foreign(id) => write!(f, "its row {id} of the index belongs to no bucket"),
        }
    }
}

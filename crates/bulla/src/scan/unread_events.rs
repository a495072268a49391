//! Which frames keep it from being known what all events of a log tell.

use std::fmt;

/// The frames of a damaged log that are events, or may be, and cannot be read: what they told is not known, that somebody was erased
/// among it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnreadEvents {
    /// The first of them, by its number.
    pub first: u64,
    /// The last of them, or the greatest number where nobody can tell whether there are any. Between both may be frames that can be read.
    pub last: u64,
}

impl UnreadEvents {
    /// Of all these frames.
    pub(crate) fn of(first: u64, last: u64) -> Self {
        UnreadEvents { first, last }
    }

    /// Of all from this frame on, if there are any.
    pub(crate) fn from(first: u64) -> Self {
        UnreadEvents { first, last: u64::MAX }
    }

    /// These, and others where there are any.
    pub(crate) fn and(self, others: Option<Self>) -> Self {
        others.map_or(self, |others| Self::of(self.first.min(others.first), self.last.max(others.last)))
    }
}

impl fmt::Display for UnreadEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            UnreadEvents { first, last } if first == last => {
                write!(f, "frame {first}, which is an event or may be one, is damaged or missing")
            }
            UnreadEvents { first, last: u64::MAX } => {
                write!(f, "frames from {first} on may be missing, and may be events")
            }
            UnreadEvents { first, last } => {
                write!(f, "frames from {first} to {last}, which are events or may be, are damaged or missing")
            }
        }
    }
}

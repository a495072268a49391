use bulla_proof::EntryError;
use std::borrow::Cow;
use std::fmt;

/// Why a record is refused, for the person who can mend it.
///
/// It names the part of the record, or the byte column (from 1), and what was expected there; it never repeats a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(Cow<'static, str>);

impl Refusal {
    /// A reason in words, which must not hold anything of the record but names of its parts.
    pub fn new(reason: impl Into<Cow<'static, str>>) -> Self {
        Refusal(reason.into())
    }

    /// A reason and the byte of the record, from 0, at which it holds.
    pub(crate) fn at(reason: &str, place: usize) -> Self {
        Refusal(format!("{reason} at column {}", place + 1).into())
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}

impl From<EntryError> for Refusal {
    fn from(error: EntryError) -> Self {
        Refusal::new(error.to_string())
    }
}

//! What becomes of a log where nothing takes what is written.

use serde::{Deserialize, Deserializer, de};

/// What becomes of a log where no path takes what is written, after all attempts; and where anything else that it has to write, or a
/// plugin, has failed as often.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnFailure {
    /// It fails: it refuses everything, and has to be opened again.
    #[default]
    Refuse,
    /// It goes on trying until it is closed. Whoever appends waits for memory, for `append_timeout` at most each time.
    Block,
    /// It goes on trying as with `Block`, and nobody waits: once it has tried as often as `retries` says, entries for which there is no
    /// memory are dropped and counted, until something takes what is written again. An event in the log then says how many they were,
    /// before any later entry. Entries of a [source](crate::Source) are not dropped: those wait as with `Block`, since their
    /// source still has them.
    Drop,
}

impl OnFailure {
    /// All of them, by their names in settings.
    pub const ALL: [(&str, OnFailure); 3] =
        [("refuse", OnFailure::Refuse), ("block", OnFailure::Block), ("drop", OnFailure::Drop)];

    /// Whether it goes on trying until it is closed.
    pub(crate) fn goes_on(self) -> bool {
        self != OnFailure::Refuse
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().find(|(name, _)| *name == text).map(|(_, on_failure)| *on_failure)
    }

    pub(super) fn name(self) -> &'static str {
        Self::ALL[self as usize].0
    }
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(source: D) -> Result<Option<OnFailure>, D::Error> {
    let text = String::deserialize(source)?;
    let on_failure = OnFailure::parse(&text);
    on_failure
        .map(Some)
        .ok_or_else(|| de::Error::custom(format!("`{text}` is none of \"refuse\", \"block\", \"drop\"")))
}

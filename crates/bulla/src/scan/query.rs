//! Which entries somebody asks for.

use bulla_proof::Entry;
use bulla_proof::commitment::{Commitment, FrameKind, whole_second};

/// Which entries are asked for: those that meet everything that is set.
///
/// ```
/// use bulla::Query;
/// let touched = Query::new().processor("mailer").from(1_700_000_000_000_000_000);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// One of the data subjects.
    pub subject: Option<String>,
    /// The stream; `default` matches entries that name none.
    pub stream: Option<String>,
    /// The operation.
    pub operation: Option<String>,
    /// The processor.
    pub processor: Option<String>,
    /// The earliest time, in nanoseconds since the Unix epoch.
    pub from: Option<i64>,
    /// The first time that is too late.
    pub to: Option<i64>,
    /// The number of the first entry.
    pub first_entry: Option<u64>,
    /// The number of the last entry.
    pub last_entry: Option<u64>,
}

impl Query {
    /// All entries.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only entries that concern this data subject.
    pub fn subject(mut self, subject: impl Into<String>) -> Self {
        self.subject = Some(subject.into());
        self
    }

    /// Only entries of this stream; those that name none are of `default`.
    pub fn stream(mut self, stream: impl Into<String>) -> Self {
        self.stream = Some(stream.into());
        self
    }

    /// Only entries of this operation.
    pub fn operation(mut self, operation: impl Into<String>) -> Self {
        self.operation = Some(operation.into());
        self
    }

    /// Only entries of this processor.
    pub fn processor(mut self, processor: impl Into<String>) -> Self {
        self.processor = Some(processor.into());
        self
    }

    /// Only entries at this time or later, in nanoseconds since the Unix epoch.
    pub fn from(mut self, time: i64) -> Self {
        self.from = Some(time);
        self
    }

    /// Only entries before this time.
    pub fn to(mut self, time: i64) -> Self {
        self.to = Some(time);
        self
    }

    /// Only entries with these numbers.
    pub fn entries(mut self, numbers: std::ops::RangeInclusive<u64>) -> Self {
        (self.first_entry, self.last_entry) = (Some(*numbers.start()), Some(*numbers.end()));
        self
    }

    /// Whether anything is left out.
    pub fn is_narrow(&self) -> bool {
        *self != Query::default()
    }

    /// Whether entry `number` meets it.
    pub fn matches(&self, number: u64, entry: &Entry<'_>) -> bool {
        let concerns = |subject: &String| {
            entry.subjects.as_ref().is_some_and(|subjects| subjects.iter().any(|one| one == subject))
        };
        self.may_match(number, entry)
            && is(&self.stream, Some(entry.stream_or_default()))
            && self.subject.as_ref().is_none_or(concerns)
    }

    /// Whether entry `number`, of which no more than the shared fields is known, may meet it.
    pub(crate) fn may_match(&self, number: u64, entry: &Entry<'_>) -> bool {
        let time = entry.time.unwrap_or_default();
        self.from.is_none_or(|from| time >= from)
            && self.to.is_none_or(|to| time < to)
            && self.first_entry.is_none_or(|first| number >= first)
            && self.last_entry.is_none_or(|last| number <= last)
            && is(&self.operation, Some(entry.operation))
            && is(&self.processor, entry.processor)
    }

    /// Which of `count` entries from `first` on have numbers that are asked for: the first and the last of them.
    pub(crate) fn clip(&self, first: u64, count: u64) -> Option<(u64, u64)> {
        let last = first.saturating_add(count.checked_sub(1)?);
        let first = first.max(self.first_entry.unwrap_or(0));
        let last = last.min(self.last_entry.unwrap_or(u64::MAX));
        (first <= last).then_some((first, last))
    }

    /// Whether an entry of which no more than the shared fields is known can be said to meet it.
    pub(crate) fn asks_nothing_personal(&self) -> bool {
        self.subject.is_none() && self.stream.is_none()
    }

    /// Whether a frame with this commitment can hold anything that meets it: as far as the public times and numbers
    /// tell.
    pub(crate) fn admits(&self, commitment: &Commitment) -> bool {
        commitment.kind == FrameKind::Block
            && self.from.is_none_or(|from| commitment.latest >= whole_second(from))
            && self.to.is_none_or(|to| {
                to.checked_sub(1).is_some_and(|last| commitment.earliest <= whole_second(last))
            })
            && self.clip(commitment.first_entry, commitment.entries).is_some()
    }
}

fn is(wanted: &Option<String>, value: Option<&str>) -> bool {
    wanted.as_deref().is_none_or(|wanted| value == Some(wanted))
}

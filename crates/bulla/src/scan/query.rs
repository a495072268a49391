//! Which entries somebody asks for.

use crate::fields::filter::{FieldFilters, NumberField, TextField, TextFilter};
use bulla_columns::PERSONAL;
use bulla_proof::Entry;
use bulla_proof::commitment::{Commitment, FrameKind, whole_second};

/// Which entries are asked for: those that meet everything that is set. Of a field that is asked for several times they meet
/// one of what is asked.
///
/// ```
/// use bulla::{NumberField, Query, TextField};
/// let touched = Query::new().processor("mailer").from(1_700_000_000_000_000_000);
/// let refused = Query::new().actor("ada").actor("bob").numbers(NumberField::Status, 400..=499);
/// let below = Query::new().begins_with(TextField::Location, "user_42/");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// What is asked of the entries' fields.
    pub fields: FieldFilters,
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

    /// Only entries of which this field is these bytes, or is as asked otherwise.
    pub fn is(mut self, field: TextField, value: impl Into<Vec<u8>>) -> Self {
        self.fields.add_text(field, TextFilter::Is(value.into()));
        self
    }

    /// Only entries of which this field begins with these bytes, or is as asked otherwise.
    pub fn begins_with(mut self, field: TextField, prefix: impl Into<Vec<u8>>) -> Self {
        self.fields.add_text(field, TextFilter::BeginsWith(prefix.into()));
        self
    }

    /// Only entries of which this field is one of these numbers, or is as asked otherwise.
    pub fn numbers(mut self, field: NumberField, numbers: std::ops::RangeInclusive<u64>) -> Self {
        self.fields.add_numbers(field, numbers);
        self
    }

    /// Only entries that concern this data subject.
    pub fn subject(self, subject: impl Into<String>) -> Self {
        self.is(TextField::Subject, subject.into())
    }

    /// Only entries of this stream; those that name none are of `default`.
    pub fn stream(self, stream: impl Into<String>) -> Self {
        self.is(TextField::Stream, stream.into())
    }

    /// Only entries of this operation.
    pub fn operation(self, operation: impl Into<String>) -> Self {
        self.is(TextField::Operation, operation.into())
    }

    /// Only entries of this processor.
    pub fn processor(self, processor: impl Into<String>) -> Self {
        self.is(TextField::Processor, processor.into())
    }

    /// Only entries of this controller.
    pub fn controller(self, controller: impl Into<String>) -> Self {
        self.is(TextField::Controller, controller.into())
    }

    /// Only entries for this purpose.
    pub fn purpose(self, purpose: impl Into<String>) -> Self {
        self.is(TextField::Purpose, purpose.into())
    }

    /// Only entries by this actor.
    pub fn actor(self, actor: impl Into<String>) -> Self {
        self.is(TextField::Actor, actor.into())
    }

    /// Only entries from this client.
    pub fn client(self, client: impl Into<String>) -> Self {
        self.is(TextField::Client, client.into())
    }

    /// Only entries at this location.
    pub fn location(self, location: impl Into<Vec<u8>>) -> Self {
        self.is(TextField::Location, location)
    }

    /// Only entries with this status.
    pub fn status(self, status: u32) -> Self {
        self.numbers(NumberField::Status, status.into()..=status.into())
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
        self.may_match(number, entry, 0)
    }

    /// Whether entry `number` may meet it, of which the fields with the presence bits `unknown` are not known.
    pub(crate) fn may_match(&self, number: u64, entry: &Entry<'_>, unknown: u16) -> bool {
        let time = entry.time.unwrap_or_default();
        self.from.is_none_or(|from| time >= from)
            && self.to.is_none_or(|to| time < to)
            && self.first_entry.is_none_or(|first| number >= first)
            && self.last_entry.is_none_or(|last| number <= last)
            && self.fields.are_met(entry, unknown)
    }

    /// Which of `count` entries from `first` on have numbers that are asked for: the first and the last of them.
    pub(crate) fn clip(&self, first: u64, count: u64) -> Option<(u64, u64)> {
        let last = first.saturating_add(count.checked_sub(1)?);
        let first = first.max(self.first_entry.unwrap_or(0));
        let last = last.min(self.last_entry.unwrap_or(u64::MAX));
        (first <= last).then_some((first, last))
    }

    /// Whether it asks for anything that is personal of an entry with data subjects: of one whose group does not open, nobody
    /// can tell whether it meets that.
    pub fn asks_for_personal(&self) -> bool {
        self.fields.ask_for(PERSONAL)
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

//! Entries that are made before a run and appended again and again, so that making them takes nothing of the time.
//!
//! A cycle's times follow those of the cycle before, and streams go on, so that only what was drawn at random repeats:
//! farther apart than the largest block reaches.

use crate::statistics::whole;
use bulla_proof::Entry;
use bulla_workload::{Workload, gdpr, text};
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use smallvec::smallvec;
use std::hash::BuildHasher;
use std::ops::Range;

/// Bytes of rows that are held for a producer, unless that would be more than [`MOST_ENTRIES`]: eight of the largest blocks.
const HELD_BYTES: usize = 128 << 20;
const MOST_ENTRIES: u64 = 1 << 20;
/// Entries whose lengths speak for those of their workload.
const SAMPLE: u64 = 4096;

/// Entries of one workload for several producers.
pub(crate) struct Arena {
    /// Every text once, but for payloads; whatever has to be text is in `text`.
    text: String,
    bytes: Vec<u8>,
    records: Vec<Record>,
    producers: Vec<Range<usize>>,
    /// The streams of the workload, which change with the number of an entry.
    streams: Vec<String>,
    lengths: Lengths,
}

/// What an entry takes on average, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lengths {
    /// As a row: the logical bytes.
    pub(crate) row: f64,
    /// As a line of text, but for the digits of its number.
    text: f64,
}

impl Lengths {
    /// The bytes of an average line of a text of so many entries.
    pub(crate) fn text_of(self, entries: u64) -> f64 {
        self.text + f64::from((entries / 2).max(1).ilog10() + 1)
    }

    /// Of the entries of a workload, from a sample.
    pub(crate) fn of(workload: Workload, seed: u64) -> Self {
        let mut generator = workload.generator(seed, 0);
        let mut sum = Lengths::default();
        for _ in 0..SAMPLE {
            sum.add(&generator.next_entry());
        }
        sum.over(SAMPLE)
    }

    fn add(&mut self, entry: &Entry<'_>) {
        self.row += entry.measure().unwrap_or_default() as f64;
        self.text += (text::length(entry, 0) - 1) as f64;
    }

    fn over(self, entries: u64) -> Self {
        Lengths { row: self.row / entries as f64, text: self.text / entries as f64 }
    }
}

/// Where a text begins and how long it is.
#[derive(Clone, Copy)]
struct Span {
    start: u32,
    length: u32,
}

impl Span {
    fn of(self, held: &[u8]) -> &[u8] {
        &held[self.start as usize..][..self.length as usize]
    }
}

#[derive(Clone, Copy)]
struct Record {
    time: Option<i64>,
    operation: Span,
    location: Option<Span>,
    subject: Option<Span>,
    controller: Option<Span>,
    processor: Option<Span>,
    purpose: Option<Span>,
    actor: Option<Span>,
    client: Option<Span>,
    payload: Option<Span>,
    status: Option<u32>,
    flags: Option<u32>,
    duration: Option<u64>,
    size: Option<u64>,
}

impl Arena {
    /// The entries of `producers` producers, each of which appends at most `entries`.
    pub(crate) fn of(workload: Workload, seed: u64, producers: u32, entries: Option<u64>) -> Self {
        let row = Lengths::of(workload, seed).row;
        let most = whole(HELD_BYTES as f64 / row);
        let held = most.min(MOST_ENTRIES).min(entries.unwrap_or(u64::MAX)).max(1);
        let mut arena = Arena {
            text: String::new(),
            bytes: Vec::new(),
            records: Vec::new(),
            producers: Vec::new(),
            streams: streams(workload),
            lengths: Lengths::default(),
        };
        let mut known = Known::default();
        for producer in 0..producers {
            let mut generator = workload.generator(seed, producer);
            let first = arena.records.len();
            for _ in 0..held {
                arena.hold(&generator.next_entry(), &mut known);
            }
            arena.producers.push(first..arena.records.len());
        }
        arena.lengths = arena.lengths.over(arena.records.len() as u64);
        arena.bytes.shrink_to_fit();
        arena.records.shrink_to_fit();
        arena
    }

    pub(crate) fn lengths(&self) -> Lengths {
        self.lengths
    }

    /// How many are held, for all producers.
    pub(crate) fn entries(&self) -> u64 {
        self.records.len() as u64
    }

    /// What it takes of memory.
    pub(crate) fn size(&self) -> u64 {
        (self.text.capacity() + self.bytes.capacity() + self.records.capacity() * size_of::<Record>()) as u64
    }

    /// The entries of one producer, without end.
    pub(crate) fn cursor(&self, producer: u32) -> Cursor<'_> {
        let records = &self.records[self.producers[producer as usize].clone()];
        let time = |record: Option<&Record>| record.and_then(|record| record.time);
        let taken = time(records.last()).zip(time(records.first())).map(|(last, first)| last - first);
        let cycle = taken.map_or(0, |taken| taken + 1000);
        let stream = (64 * producer as usize).checked_rem(self.streams.len()).unwrap_or_default();
        Cursor { arena: self, records, next: 0, passed: 0, cycle, stream, left_in_stream: gdpr::BATCH }
    }

    fn hold(&mut self, entry: &Entry<'_>, known: &mut Known) {
        self.lengths.add(entry);
        let text = &mut self.text;
        let mut of_text = |value: &str| {
            known.text.find(text.as_bytes(), value.as_bytes()).unwrap_or_else(|| {
                text.push_str(value);
                known.text.add(text.as_bytes(), place(text.len(), value.len()))
            })
        };
        let operation = of_text(entry.operation);
        let subject = entry.subjects.as_deref().and_then(<[_]>::first).map(|subject| of_text(subject));
        let mut optional = |value: Option<&str>| value.map(&mut of_text);
        let (controller, processor) = (optional(entry.controller), optional(entry.processor));
        let (purpose, actor, client) =
            (optional(entry.purpose), optional(entry.actor), optional(entry.client));
        let bytes = &mut self.bytes;
        let location = entry.location.map(|value| {
            known.bytes.find(bytes, value).unwrap_or_else(|| {
                bytes.extend_from_slice(value);
                known.bytes.add(bytes, place(bytes.len(), value.len()))
            })
        });
        let payload = entry.payload.map(|value| {
            bytes.extend_from_slice(value);
            place(bytes.len(), value.len())
        });
        self.records.push(Record {
            time: entry.time,
            operation,
            location,
            subject,
            controller,
            processor,
            purpose,
            actor,
            client,
            payload,
            status: entry.status,
            flags: entry.flags,
            duration: entry.duration,
            size: entry.size,
        });
    }

    #[inline]
    fn text(&self, place: Span) -> &str {
        &self.text[place.start as usize..][..place.length as usize]
    }

    #[inline]
    fn bytes(&self, place: Span) -> &[u8] {
        place.of(&self.bytes)
    }
}

/// Texts that were met while an arena is filled.
#[derive(Default)]
struct Known {
    text: Interned,
    bytes: Interned,
}

/// Where texts lie. It has none of its own: a million of them, freed, would be memory that seems to be Bulla's.
#[derive(Default)]
struct Interned {
    table: HashTable<Span>,
    hash: FixedState,
}

impl Interned {
    fn find(&self, held: &[u8], value: &[u8]) -> Option<Span> {
        self.table.find(self.hash.hash_one(value), |place| place.of(held) == value).copied()
    }

    /// Adds the text at `new`, which is none of those that are there.
    fn add(&mut self, held: &[u8], new: Span) -> Span {
        let hash = |place: &Span| self.hash.hash_one(place.of(held));
        *self.table.insert_unique(hash(&new), new, hash).get()
    }
}

/// # Panics
/// Where an arena grows beyond 4 GiB, which no number of producers does that the command line takes.
fn place(end: usize, length: usize) -> Span {
    let narrow = |value: usize| u32::try_from(value).expect("an arena is smaller than 4 GiB");
    Span { start: narrow(end - length), length: narrow(length) }
}

fn streams(workload: Workload) -> Vec<String> {
    match workload {
        Workload::Gdpr | Workload::Gdpr50 => {
            (0..gdpr::STREAMS).map(|number| format!("stream_{number}")).collect()
        }
        _ => Vec::new(),
    }
}

/// The place in an arena of a producer that reads from it.
pub(crate) struct Cursor<'a> {
    arena: &'a Arena,
    records: &'a [Record],
    next: usize,
    /// The time that the cycles before took, and that one takes.
    passed: i64,
    cycle: i64,
    stream: usize,
    left_in_stream: u32,
}

impl<'a> Cursor<'a> {
    /// The next entry.
    #[inline]
    pub(crate) fn next_entry(&mut self) -> Entry<'_> {
        if self.next == self.records.len() {
            self.next = 0;
            self.passed += self.cycle;
        }
        let (arena, record) = (self.arena, &self.records[self.next]);
        self.next += 1;
        let text = |place: Option<Span>| place.map(|place| arena.text(place));
        Entry {
            time: record.time.map(|time| time + self.passed),
            operation: arena.text(record.operation),
            location: record.location.map(|place| arena.bytes(place)),
            subjects: record.subject.map(|subject| smallvec![arena.text(subject)]),
            controller: text(record.controller),
            processor: text(record.processor),
            purpose: text(record.purpose),
            actor: text(record.actor),
            client: text(record.client),
            stream: self.stream(),
            status: record.status,
            duration: record.duration,
            size: record.size,
            flags: record.flags,
            payload: record.payload.map(|place| arena.bytes(place)),
        }
    }

    #[inline]
    fn stream(&mut self) -> Option<&'a str> {
        let streams = &self.arena.streams;
        if self.left_in_stream == 0 {
            self.left_in_stream = gdpr::BATCH;
            self.stream = (self.stream + 1).checked_rem(streams.len()).unwrap_or_default();
        }
        self.left_in_stream -= 1;
        streams.get(self.stream).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_what_was_made() {
        for workload in Workload::ALL {
            let arena = Arena::of(workload, 7, 2, Some(5000));
            for producer in 0..2 {
                let (mut generator, mut held) = (workload.generator(7, producer), arena.cursor(producer));
                for number in 0..5000 {
                    assert_eq!(held.next_entry(), generator.next_entry(), "{workload}, {number}");
                }
            }
        }
    }

    #[test]
    fn cycles_repeat_all_but_time_and_stream() {
        let arena = Arena::of(Workload::Gdpr, 1, 1, Some(300));
        let mut cursor = arena.cursor(0);
        let mut next = || {
            let entry = cursor.next_entry();
            (entry.time, entry.stream.unwrap().to_owned(), entry.payload.unwrap().to_vec())
        };
        let entries = (0..10_000).map(|_| next()).collect::<Vec<_>>();
        assert!(entries.is_sorted_by_key(|(time, ..)| *time));
        assert!(entries[300].0 > entries[299].0 && entries[300].2 == entries[0].2);
        let streams = [0, 4095, 4096, 8192].map(|at| entries[at].1.as_str());
        assert_eq!(streams, ["stream_0", "stream_0", "stream_1", "stream_2"]);
    }

    #[test]
    fn lengths_are_those_of_the_entries() {
        let arena = Arena::of(Workload::Web, 1, 1, Some(1000));
        let mut cursor = arena.cursor(0);
        let (mut rows, mut lines) = (0, 0);
        for number in 0..1000 {
            let entry = cursor.next_entry();
            rows += entry.measure().unwrap();
            lines += text::length(&entry, number);
        }
        assert!((arena.lengths().row - rows as f64 / 1000.0).abs() < 1e-9);
        assert!((arena.lengths().text_of(1000) / (lines as f64 / 1000.0) - 1.0).abs() < 0.01);
    }
}

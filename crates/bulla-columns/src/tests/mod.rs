//! What must hold of the codec as a whole.
#![allow(clippy::cast_possible_truncation, reason = "test data is small")]

mod forms;
mod groups;
mod hostile;
mod records;
mod round_trip;
mod vectors;

use super::{Compression, DecodeError, Decoder, Encoder, ROW_OVERHEAD, Rows, padme};
use bulla_proof::Entry;
use bulla_proof::entry::{MAX_PAYLOAD, MAX_STRING};

fn row(entry: &Entry<'_>) -> Vec<u8> {
    let mut row = vec![0; entry.measure().unwrap()];
    entry.encode(0, &mut row);
    row
}

/// The unpadded plaintext.
fn encode(rows: &[Vec<u8>], level: i32) -> Vec<u8> {
    let rows: Vec<&[u8]> = rows.iter().map(Vec::as_slice).collect();
    let mut plaintext = Vec::new();
    Encoder::new(Compression::new(level).unwrap()).encode(&rows, &mut plaintext).unwrap();
    plaintext
}

fn pad(mut plaintext: Vec<u8>) -> Vec<u8> {
    plaintext.resize(padme(plaintext.len()), 0);
    plaintext
}

fn decode(plaintext: &[u8], entries: usize, limit: usize) -> Result<Rows, DecodeError> {
    let mut rows = Rows::default();
    Decoder::new().decode(plaintext, entries, limit, &mut rows).map(|_| rows)
}

/// What the rows count towards the content limit.
fn content(rows: &[Vec<u8>]) -> usize {
    rows.iter().map(|row| row.len() + ROW_OVERHEAD).sum()
}

/// A small generator of numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % limit
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.below(256).to_le_bytes()[0]).collect()
    }
}

/// Rows that use all fields, in ways that differ.
fn mixed_rows(count: usize) -> Vec<Vec<u8>> {
    let mut random = Random(count as u64);
    (0..count)
        .map(|index| {
            let location = format!("/{}/page_{}", random.below(7), random.below(50));
            let client = format!("10.0.{}.{}", random.below(256), random.below(256));
            let subjects: Vec<String> =
                (0..random.below(4)).map(|_| format!("user_{}", random.below(90))).collect();
            let id = format!("{:016x}", random.below(u64::MAX));
            let mut entry = Entry::new(["read", "write", "löschen"][index % 3], &location)
                .time(1_700_000_000_000_000_000 + index as i64 * 1_000_000)
                .client(&client);
            if index % 2 == 0 {
                entry = entry.controller("shop").processor(["a", ""][index / 2 % 2]).status(200).actor(&id);
            }
            if index % 5 == 0 {
                entry = entry.purpose("support").duration(random.below(1 << 40)).stream("s").flags(7);
            }
            entry = subjects.iter().fold(entry, |entry, subject| entry.subject(subject));
            if index % 11 == 0 {
                entry.subjects = Some(Default::default());
                entry.location = None;
            }
            row(&if index % 3 == 0 { entry.size(random.below(5000)).payload(&id) } else { entry })
        })
        .collect()
}

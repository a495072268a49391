//! What the fuzz targets `block` and `records` run. Not part of a library: there are no entry points but in tests and under a fuzzer.

use crate::input::Input;
use crate::{Compression, DecodeError, Decoder, Encoder, Items, Rows, padme};
use bulla_proof::Entry;
use bulla_proof::entry::{Field, RawRow};

/// The most that the rows of a block may take.
const LIMIT: usize = 1 << 20;

/// The plaintext of a block. The first two bytes choose how many entries it is said to have.
pub fn block(bytes: &[u8]) {
    let Some((count, plaintext)) = bytes.split_first_chunk::<2>() else { return };
    let entries = usize::from(u16::from_le_bytes(*count));
    let mut rows = Rows::default();
    let mut decoder = Decoder::new();
    if decoder.decode(plaintext, entries, LIMIT, &mut rows).is_err() {
        return;
    }
    assert_eq!(rows.len(), entries);
    assert!(rows.iter().map(|row| row.len() + 4).sum::<usize>() <= LIMIT);
    let mut again = Vec::new();
    let list = rows.iter().collect::<Vec<_>>();
    Encoder::new(Compression::NONE).encode(&list, &mut again).expect("decoded rows are rows");
    again.resize(padme(again.len()), 0);
    let mut decoded = Rows::default();
    Decoder::new().decode(&again, entries, LIMIT, &mut decoded).expect("what was encoded decodes");
    assert!(rows.iter().eq(decoded.iter()), "rows come out as they went in");
    rows.iter().for_each(row);
    for group in 0..decoder.groups().len() {
        personal_rows(&mut decoder, group, entries);
    }
}

/// A group of the block that was decoded last, as if it were not encrypted.
fn personal_rows(decoder: &mut Decoder, group: usize, entries: usize) {
    let content = decoder.groups().content(group);
    let text = content.ciphertext.to_vec();
    let (personal, mut left) = (content.personal, decoder.left());
    let count = (0..entries).filter(|&row| decoder.groups().of_row(row) == Some(group)).count();
    assert!(count > 0, "a group has an entry");
    let mut pieces = Rows::default();
    if decoder.decode_group(&text, count, personal, &mut left, &mut pieces).is_ok() {
        assert_eq!(pieces.len(), count);
        assert!(
            pieces.iter().all(|piece| RawRow::parse_personal(piece).is_ok()),
            "what was decoded is a row"
        );
    }
}

/// A group as records, by itself: how many entries, which fields are personal (u16), how many common items and each behind its length
/// (u16), then the records. In a block the length and the padding stand in the way of whatever is put in or taken out.
pub fn records(bytes: &[u8]) {
    let Some(alone) = Alone::parse(bytes) else { return };
    let Ok(items) = alone.items(|_| true) else { return };
    let (mut decoder, mut left, mut pieces) = (Decoder::new(), LIMIT, Rows::default());
    decoder.set_items(items);
    if decoder.decode_group(alone.text, alone.entries, alone.personal, &mut left, &mut pieces).is_err() {
        assert!(pieces.is_empty() && left == LIMIT, "what does not decode gives nothing and takes nothing");
        return;
    }
    let length = pieces.iter().map(|piece| piece.len() - 2).sum::<usize>();
    assert_eq!((pieces.len(), length), (alone.entries, LIMIT - left), "what is paid for is what there is");
    let used = decoder.used_items().collect::<Vec<_>>();
    let only = alone.decode(|position| used.contains(&position));
    let only = only.expect("a group needs no other items than those that it refers to");
    assert!(pieces.iter().eq(only.iter()), "and is the same with those alone");
    for &lacking in &used {
        assert!(alone.decode(|position| position != lacking).is_none(), "a group needs each of them");
    }
    let rows = pieces.iter().map(whole).collect::<Vec<_>>();
    rows.iter().for_each(|bytes| row(bytes));
    write_again(&rows, alone.personal, &pieces);
}

/// A group that is in no block.
struct Alone<'a> {
    entries: usize,
    personal: u16,
    items: Vec<&'a [u8]>,
    text: &'a [u8],
}

impl<'a> Alone<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (&[entries, low, high, count], rest) = bytes.split_first_chunk()?;
        let personal = u16::from_le_bytes([low, high]) & ((1 << 13) - 1) | Field::Subject.bit();
        let mut input = Input { rest };
        let items = (0..count).map(|_| {
            let length = input.bytes(2).ok()?.try_into().ok()?;
            input.bytes(u16::from_le_bytes(length).into()).ok()
        });
        let items = items.collect::<Option<Vec<_>>>()?;
        Some(Alone { entries: usize::from(entries).max(1), personal, items, text: input.rest })
    }

    /// The common items at some positions.
    fn items(&self, some: impl Fn(usize) -> bool) -> Result<Items, DecodeError> {
        let items = self.items.iter().enumerate().filter(|(position, _)| some(*position));
        Items::some(self.items.len() as u64, items.map(|(position, item)| (position as u64, *item)))
    }

    /// The group's personal rows, read with these items.
    fn decode(&self, some: impl Fn(usize) -> bool) -> Option<Rows> {
        let (mut decoder, mut left, mut rows) = (Decoder::new(), LIMIT, Rows::default());
        decoder.set_items(self.items(some).expect("some of the items are items"));
        let read = decoder.decode_group(self.text, self.entries, self.personal, &mut left, &mut rows);
        read.is_ok().then_some(rows)
    }
}

/// The row of an entry that has only personal fields.
fn whole(piece: &[u8]) -> Vec<u8> {
    let piece = RawRow::parse_personal(piece).expect("what was decoded is a row");
    let mut out = Vec::new();
    RawRow { time: 0, operation: b"x", ..piece }.write(u16::MAX, &mut out);
    out
}

/// The rows of a group, written and read again, where nothing is common and where all is that it has twice.
fn write_again(rows: &[Vec<u8>], personal: u16, pieces: &Rows) {
    let views = || rows.iter().map(Vec::as_slice);
    for least in [0, 2] {
        let mut encoder = Encoder::new(Compression::NONE);
        let twice = [(views(), true), (views(), true)].into_iter();
        encoder.survey_groups(twice, 2 * rows.len(), personal, least).expect("decoded rows are rows");
        let mut text = Vec::new();
        encoder.encode_group(views(), personal, &mut text).expect("decoded rows are rows");
        let (mut decoder, mut left, mut again) = (Decoder::new(), LIMIT, Rows::default());
        decoder.set_items(encoder.items().clone());
        let read = decoder.decode_group(&text, rows.len(), personal, &mut left, &mut again);
        read.expect("what was written can be read");
        assert!(pieces.iter().eq(again.iter()), "records come out as they went in");
    }
}

/// A canonical row.
fn row(bytes: &[u8]) {
    if let Ok(entry) = Entry::decode(bytes) {
        let mut again = vec![0; entry.measure().expect("a decoded entry is within its limits")];
        entry.encode(0, &mut again);
        assert_eq!(again, bytes, "a row has one spelling");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulla_testkit::corpus::seeds;

    #[test]
    fn the_targets_hold_on_their_corpus_and_close_to_it() {
        bulla_testkit::corpus::check(&[("block", super::block), ("records", super::records)]);
    }

    /// Seeds of a form that is no more lead a fuzzer to nothing but its first refusal.
    #[test]
    fn what_the_corpus_has_for_sound_is_of_the_form_that_is_read() {
        for (prefix, sound) in [("sound-", true), ("refused-", false)] {
            for (name, seed) in seeds("records", prefix) {
                let read = Alone::parse(&seed).unwrap().decode(|_| true);
                assert_eq!(read.is_some(), sound, "{name}");
            }
        }
        for (name, seed) in
            ["encoded-", "decoded-", "groups-"].into_iter().flat_map(|prefix| seeds("block", prefix))
        {
            let (count, plaintext) = seed.split_first_chunk::<2>().unwrap();
            let entries = usize::from(u16::from_le_bytes(*count));
            let read = Decoder::new().decode(plaintext, entries, LIMIT, &mut Rows::default());
            assert!(read.is_ok(), "{name}: {read:?}");
        }
    }
}

//! Blocks with personal groups: shared rows in the block, personal rows in the groups, and nothing lost between them.

use super::vectors::{cases, hex, number, unhex};
use super::*;
use crate::{Fault, Groups, PERSONAL, Partition};
use bulla_proof::entry::{Field, RawRow};
use bulla_proof::hash::Hash;
use serde_json::{Value, json};

/// A block whose groups are not encrypted.
struct Block {
    rows: Vec<Vec<u8>>,
    member: Vec<u64>,
    groups: usize,
    personal: u16,
    /// As records, with what is common to so many groups, or in columns.
    common: Option<u32>,
}

impl Block {
    /// Mixed rows, of which about one in four is in no group.
    fn random(count: usize, groups: u64, personal: u16) -> Self {
        let mut random = Random(count as u64 + groups);
        let mut names = Vec::new();
        let mut member = |_| {
            let name = random.below(groups + groups / 4 + 1);
            if name >= groups {
                return 0;
            }
            let known = names.iter().position(|known| *known == name);
            known.unwrap_or_else(|| {
                names.push(name);
                names.len() - 1
            }) as u64
                + 1
        };
        let member = (0..count).map(&mut member).collect();
        Block { rows: mixed_rows(count), member, groups: names.len(), personal, common: None }
    }

    fn rows_of(&self, group: u64) -> impl Iterator<Item = &[u8]> + Clone {
        self.rows
            .iter()
            .zip(&self.member)
            .filter(move |(_, member)| **member == group + 1)
            .map(|(row, _)| &row[..])
    }

    fn plaintext(&self, level: i32) -> Vec<u8> {
        let mut encoder = Encoder::new(Compression::new(level).unwrap());
        let views: Vec<&[u8]> = self.rows.iter().map(Vec::as_slice).collect();
        let partition = Partition { member: &self.member, groups: self.groups, personal: self.personal };
        let mut out = Vec::new();
        encoder.encode_and_tell(&views, &partition, &mut out, |_, _| {}).unwrap();
        if let Some(least) = self.common {
            let groups = (0..self.groups as u64).map(|group| (self.rows_of(group), true));
            encoder.survey_groups(groups, views.len(), self.personal, least).unwrap();
        }
        let mut groups = Groups::default();
        for group in 0..self.groups as u64 {
            let subjects = [group, group + 1_000_000];
            groups
                .push(&subjects, Hash([group as u8; 32]), |out| {
                    let rows = self.rows_of(group);
                    match self.common {
                        Some(_) => encoder.encode_group(rows, self.personal, out),
                        None => encoder.encode_group_in_columns(rows, self.personal, out),
                    }
                })
                .unwrap();
        }
        encoder.end_groups(&groups, &mut out);
        pad(out)
    }

    fn shared(&self) -> Vec<Vec<u8>> {
        let cut = |(row, &member): (&Vec<u8>, &u64)| match member {
            0 => row.clone(),
            _ => {
                let mut shared = Vec::new();
                RawRow::parse(row).unwrap().write(!self.personal, &mut shared);
                shared
            }
        };
        self.rows.iter().zip(&self.member).map(cut).collect()
    }
}

fn masks() -> [u16; 3] {
    let subject = Field::Subject.bit();
    [PERSONAL, subject, subject | Field::Status.bit() | Field::Purpose.bit() | Field::Size.bit()]
}

#[test]
fn shared_and_personal_rows_make_the_rows_again() {
    let (mut decoder, mut rows, mut pieces) = (Decoder::new(), Rows::default(), Rows::default());
    for personal in masks() {
        for (count, groups) in [(1, 1), (2, 1), (9, 3), (300, 40), (700, 700), (64, 0)] {
            for common in [None, Some(0), Some(2), Some(8)] {
                let block = Block { common, ..Block::random(count, groups, personal) };
                come_back(&block, &mut decoder, &mut rows, &mut pieces);
            }
        }
    }
}

fn come_back(block: &Block, decoder: &mut Decoder, rows: &mut Rows, pieces: &mut Rows) {
    let (count, personal) = (block.rows.len(), block.personal);
    let plaintext = block.plaintext(1);
    decoder.decode(&plaintext, count, content(&block.rows), rows).unwrap();
    assert!(rows.iter().eq(block.shared().iter().map(Vec::as_slice)), "{count} {}", block.groups);
    assert_eq!(decoder.groups().len(), block.groups);
    let mut left = decoder.left();
    for group in 0..block.groups {
        let content = decoder.groups().content(group);
        assert_eq!(content.subjects, [group as u64, group as u64 + 1_000_000]);
        assert_eq!(*content.commitment, Hash([group as u8; 32]));
        let text = content.ciphertext.to_vec();
        let of_group = block.rows_of(group as u64).collect::<Vec<_>>();
        decoder.decode_group(&text, of_group.len(), personal, &mut left, pieces).unwrap();
        let shared = (0..count).filter(|&row| decoder.groups().of_row(row) == Some(group));
        for ((shared, piece), row) in shared.zip(pieces.iter()).zip(of_group) {
            let shared = RawRow::parse(&rows[shared]).unwrap();
            let mut whole = Vec::new();
            shared.or(&RawRow::parse_personal(piece).unwrap()).write(u16::MAX, &mut whole);
            assert_eq!(whole, row);
        }
    }
}

#[test]
fn a_row_of_nothing_but_subjects_fits_what_it_counts() {
    let names = [""; 64];
    let entry = Entry {
        operation: "x",
        time: Some(0),
        subjects: Some(names.into_iter().collect()),
        ..Entry::default()
    };
    let rows = vec![row(&entry)];
    let mut encoder = Encoder::new(Compression::NONE);
    let mut out = Vec::new();
    let partition = Partition { member: &[1], groups: 1, personal: PERSONAL };
    encoder.encode_and_tell(&[&rows[0]], &partition, &mut out, |_, _| {}).unwrap();
    let mut groups = Groups::default();
    let numbers = (0..64).collect::<Vec<_>>();
    let encode = |text: &mut Vec<u8>| {
        encoder.encode_group([&rows[0][..]].into_iter(), PERSONAL, text)?;
        Ok::<(), bulla_proof::EntryError>(())
    };
    groups.push(&numbers, Hash::ZERO, encode).unwrap();
    encoder.end_groups(&groups, &mut out);
    let (mut decoder, mut back, mut pieces) = (Decoder::new(), Rows::default(), Rows::default());
    decoder.decode(&pad(out), 1, content(&rows), &mut back).unwrap();
    let text = decoder.groups().content(0).ciphertext.to_vec();
    let mut left = decoder.left();
    decoder.decode_group(&text, 1, PERSONAL, &mut left, &mut pieces).unwrap();
}

#[test]
fn what_a_group_holds_depends_on_its_rows_alone() {
    let block = Block::random(90, 7, PERSONAL);
    let texts = |block: &Block| {
        let (mut decoder, mut rows) = (Decoder::new(), Rows::default());
        decoder.decode(&block.plaintext(3), block.rows.len(), 1 << 20, &mut rows).unwrap();
        let texts = (0..block.groups).map(|group| decoder.groups().content(group).ciphertext.to_vec());
        texts.collect::<Vec<_>>()
    };
    let mut other = Block::random(90, 7, PERSONAL);
    for (row, &member) in other.rows.iter_mut().zip(&other.member) {
        if member != 3 {
            *row = super::row(&Entry::new("other", "somewhere else entirely").time(1).payload(b"other"));
        }
    }
    assert_eq!(texts(&block)[2], texts(&other)[2]);
    assert_ne!(texts(&block)[1], texts(&other)[1]);
}

#[test]
fn no_personal_field_of_a_grouped_row_is_in_the_block() {
    let rows = (0..40)
        .map(|index| {
            let entry = Entry::new("read", "a-secret-place").time(index).subject("somebody");
            row(&entry.client("10.9.8.7").actor("an-actor").stream("a-stream").payload("a-payload"))
        })
        .collect();
    let block = Block {
        rows,
        member: (0..40).map(|row| 1 + row / 8).collect(),
        groups: 5,
        personal: PERSONAL,
        common: None,
    };
    let plaintext = block.plaintext(0);
    let (mut decoder, mut rows) = (Decoder::new(), Rows::default());
    decoder.decode(&plaintext, 40, 1 << 20, &mut rows).unwrap();
    let ciphertexts = (0..5).map(|group| decoder.groups().content(group).ciphertext.len()).sum::<usize>();
    let end = plaintext.iter().rposition(|&byte| byte != 0).unwrap() + 1;
    let kept = &plaintext[..end - ciphertexts];
    let has = |bytes: &[u8], word: &[u8]| bytes.windows(word.len()).any(|window| window == word);
    for word in ["a-secret-place", "somebody", "10.9.8.7", "an-actor", "a-stream", "a-payload"] {
        assert!(!has(kept, word.as_bytes()), "{word}");
        assert!(has(&plaintext, word.as_bytes()), "{word}");
    }
}

#[test]
fn damaged_groups_end_in_an_error_or_in_rows() {
    [None, Some(0), Some(3)].into_iter().for_each(ends_in_an_error_or_in_rows);
}

fn ends_in_an_error_or_in_rows(common: Option<u32>) {
    let block = Block { common, ..Block::random(60, 9, PERSONAL) };
    let (plaintext, limit) = (block.plaintext(0), content(&block.rows));
    let (mut decoder, mut rows, mut pieces) = (Decoder::new(), Rows::default(), Rows::default());
    let mut random = Random(3);
    for at in 0..plaintext.len() {
        for change in [1, 0x80, 1 + random.below(255)] {
            let mut damaged = plaintext.clone();
            damaged[at] ^= change.to_le_bytes()[0];
            if decoder.decode(&damaged, 60, limit, &mut rows).is_err() {
                continue;
            }
            assert!(rows.iter().all(|row| Entry::decode(row).is_ok()));
            let mut left = decoder.left();
            for group in 0..decoder.groups().len() {
                let content = decoder.groups().content(group);
                let text = content.ciphertext.to_vec();
                let personal = content.personal;
                let count = (0..60).filter(|&row| decoder.groups().of_row(row) == Some(group)).count();
                if decoder.decode_group(&text, count, personal, &mut left, &mut pieces).is_ok() {
                    assert_eq!(pieces.len(), count);
                    assert!(pieces.iter().all(|piece| RawRow::parse_personal(piece).is_ok()));
                }
            }
        }
    }
}

#[test]
fn groups_pay_from_what_their_block_declared() {
    [None, Some(0), Some(3)].into_iter().for_each(pays);
}

fn pays(common: Option<u32>) {
    let block = Block { common, ..Block::random(60, 9, PERSONAL) };
    let plaintext = block.plaintext(1);
    let (mut decoder, mut rows, mut pieces) = (Decoder::new(), Rows::default(), Rows::default());
    let limit = content(&block.rows);
    let mut all = |limit: usize| {
        decoder.decode(&plaintext, 60, limit, &mut rows)?;
        let mut left = decoder.left();
        for group in 0..block.groups {
            let content = decoder.groups().content(group);
            let text = content.ciphertext.to_vec();
            let count = block.rows_of(group as u64).count();
            decoder.decode_group(&text, count, PERSONAL, &mut left, &mut pieces)?;
        }
        Ok::<usize, crate::DecodeError>(left)
    };
    // To the byte: shared and personal rows together are the rows.
    assert_eq!(all(limit), Ok(0));
    assert_eq!(all(limit + 7), Ok(7));
    assert_eq!(all(limit - 1).unwrap_err().fault, Fault::TooLarge);
}

/// A constant string is there once and in every row: what rows take is counted before room is made for them.
#[test]
fn a_group_of_few_bytes_is_not_many_rows() {
    let place = vec![b'x'; 50_000];
    let row = row(&Entry::new("read", &place).time(1).subject("s"));
    let mut text = Vec::new();
    let rows_of = std::iter::repeat_n(&row[..], 400);
    Encoder::new(Compression::FAST).encode_group(rows_of, PERSONAL, &mut text).unwrap();
    assert!(text.len() < 1000);
    let (mut decoder, mut pieces) = (Decoder::new(), Rows::default());
    // Of each the two lengths, the subjects' count, and the two strings.
    let all = 400 * (3 + place.len() + 1 + 1 + 1);
    for missing in [1, all / 2, all - 100_000] {
        let mut left = all - missing;
        let error = decoder.decode_group(&text, 400, PERSONAL, &mut left, &mut pieces).unwrap_err();
        assert_eq!((error.fault, left), (Fault::TooLarge, all - missing));
        assert!(pieces.is_empty() && pieces.footprint() == 0, "no room was made");
    }
    let mut left = all;
    decoder.decode_group(&text, 400, PERSONAL, &mut left, &mut pieces).unwrap();
    assert_eq!((left, pieces.len()), (0, 400));
}

/// Blocks with groups as our encoder writes them, but that nothing is encrypted.
#[test]
fn pinned() {
    let forms = [None, Some(0), Some(2)];
    let block = |personal| forms.map(|common| Block { common, ..Block::random(24, 6, personal) });
    let blocks = || masks().into_iter().flat_map(block);
    let member = |block: &Block| block.member.iter().map(u64::to_string).collect::<Vec<_>>();
    let made = || {
        let vector = |block: Block| {
            let rows: Vec<String> = block.rows.iter().map(|row| hex(row)).collect();
            let plaintext = hex(&block.plaintext(0));
            json!({ "personal": block.personal, "member": member(&block), "rows": rows, "plaintext": plaintext })
        };
        blocks().map(vector).collect::<Vec<Value>>()
    };
    for (case, block) in cases("groups.json", made).iter().zip(blocks()) {
        assert_eq!(number(&case["personal"]), usize::from(block.personal));
        assert_eq!(case["member"], json!(member(&block)));
        assert!(case["rows"].as_array().unwrap().iter().map(unhex).eq(block.rows.iter().cloned()));
        assert_eq!(hex(&unhex(&case["plaintext"])), hex(&block.plaintext(0)));
    }
}

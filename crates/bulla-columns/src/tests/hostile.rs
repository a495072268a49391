//! Whatever the bytes: rows that are canonical, or an error; and memory within bounds.

use super::*;
use crate::Fault;

/// The memory that a decoder may hold: so many times the content limit, and a little.
const MOST: usize = 24;
const ENOUGH: usize = 64 * 1024;

/// Decodes, and checks what must hold of the result and of the memory taken.
fn check(decoder: &mut Decoder, rows: &mut Rows, plaintext: &[u8], entries: usize, limit: usize) -> bool {
    let result = decoder.decode(plaintext, entries, limit, rows);
    assert!(
        decoder.footprint() <= limit.saturating_mul(MOST).saturating_add(ENOUGH),
        "{} bytes for {limit}",
        decoder.footprint()
    );
    match result {
        Ok(_) => {
            assert_eq!(rows.len(), entries);
            let mut total = 0;
            for row in rows.iter() {
                let entry = Entry::decode(row).unwrap();
                assert_eq!(super::row(&entry), row);
                total += row.len() + ROW_OVERHEAD;
            }
            assert!(total <= limit);
            true
        }
        Err(_) => {
            assert!(rows.is_empty());
            false
        }
    }
}

#[test]
fn flipped_bits_and_replaced_bytes() {
    for (count, level) in [(1, 0), (9, 0), (40, 1), (300, 3)] {
        let rows = mixed_rows(count);
        let limit = content(&rows);
        let plaintext = pad(encode(&rows, level));
        let (mut decoder, mut back) = (Decoder::new(), Rows::default());
        let mut random = Random(9);
        for at in 0..plaintext.len() {
            let changes = [1, 2, 0x40, 0x80, 0xff, 1 + random.below(255)];
            // All of them where a sweep is in full, as `make sweep` has it; otherwise one, in turn.
            let (first, step) = if std::env::var_os("BULLA_SWEEP").is_some() { (0, 1) } else { (at % 6, 6) };
            for change in changes.into_iter().skip(first).step_by(step) {
                let mut damaged = plaintext.clone();
                damaged[at] ^= change.to_le_bytes()[0];
                check(&mut decoder, &mut back, &damaged, count, limit);
            }
        }
    }
}

#[test]
fn truncated_and_extended() {
    let rows = mixed_rows(60);
    let unpadded = encode(&rows, 1);
    let plaintext = pad(unpadded.clone());
    for length in 0..plaintext.len() {
        assert!(decode(&plaintext[..length], 60, content(&rows)).is_err(), "{length}");
    }
    for extra in 1..300 {
        let extended: Vec<u8> = plaintext.iter().copied().chain(std::iter::repeat_n(0, extra)).collect();
        let error = decode(&extended, 60, content(&rows)).unwrap_err();
        assert_eq!(error.fault, Fault::Padding);
    }
}

#[test]
fn every_byte_of_padding_counts() {
    let rows =
        (0..).map(mixed_rows).find(|rows| padme(encode(rows, 0).len()) > encode(rows, 0).len() + 9).unwrap();
    let unpadded = encode(&rows, 0).len();
    let plaintext = pad(encode(&rows, 0));
    for at in unpadded..plaintext.len() {
        for bit in 0..8 {
            let mut damaged = plaintext.clone();
            damaged[at] ^= 1 << bit;
            let error = decode(&damaged, rows.len(), content(&rows)).unwrap_err();
            assert_eq!((error.column, error.fault), ("block", Fault::Padding));
        }
    }
}

#[test]
fn random_bytes() {
    let (mut decoder, mut back) = (Decoder::new(), Rows::default());
    let mut random = Random(10);
    for _ in 0..50_000 {
        let entries = random.below(6) as usize;
        let length = 12 + random.below(60) as usize;
        // Small numbers, so that tags and counts make sense often enough to get further in.
        let mut bytes: Vec<u8> = (0..length).map(|_| random.below(4).to_le_bytes()[0]).collect();
        bytes[..2].copy_from_slice(&[1, entries.to_le_bytes()[0]]);
        check(&mut decoder, &mut back, &bytes, entries, 1000);
    }
}

#[test]
fn grammatical_nonsense() {
    // Valid columns of one block spliced with those of another.
    let (mut decoder, mut back) = (Decoder::new(), Rows::default());
    let mut random = Random(11);
    let blocks: Vec<Vec<u8>> = (0..20).map(|level| encode(&mixed_rows(30), level % 4)).collect();
    for _ in 0..20_000 {
        let (one, other) = (&blocks[random.below(20) as usize], &blocks[random.below(20) as usize]);
        let cut = random.below(one.len() as u64) as usize;
        let resumed = (cut + 8).saturating_sub(random.below(17) as usize).min(other.len());
        let spliced = pad([&one[..cut], &other[resumed..]].concat());
        check(&mut decoder, &mut back, &spliced, 30, 10_000);
    }
}

#[test]
fn declarations_are_not_believed() {
    let (mut decoder, mut back) = (Decoder::new(), Rows::default());
    // 2^60 entries; the commitment says so too, but its content limit does not.
    let mut bytes = vec![1];
    bulla_proof::varint::push(1 << 60, &mut bytes);
    assert!(!check(&mut decoder, &mut back, &bytes, 1 << 60, 1 << 20));
    assert!(!check(&mut decoder, &mut back, &bytes, usize::MAX, usize::MAX));
    // A thousand rows with one payload of 16 MiB, said in a few bytes by a compressor.
    let payload = vec![0; MAX_PAYLOAD];
    let rows = vec![row(&Entry::new("x", "").payload(&payload)); 3];
    let plaintext = pad(encode(&rows, 1));
    assert!(plaintext.len() < 4000);
    assert!(!check(&mut decoder, &mut back, &plaintext, 3, 1 << 20));
    assert!(!check(&mut decoder, &mut back, &plaintext, 3, content(&rows) - 1));
    assert!(check(&mut decoder, &mut back, &plaintext, 3, content(&rows)));
}

/// The head of a block of entries that have 64 subjects each and nothing else.
fn subjects_of(entries: usize) -> Vec<u8> {
    let mut bytes = vec![1];
    push(entries, &mut bytes);
    bytes.extend([0, 0, 0, 0, 1, 0, b'x']);
    bytes.extend([0; 12]);
    bytes.extend([1, 0, 64]);
    bytes
}

fn push(value: usize, bytes: &mut Vec<u8>) {
    bulla_proof::varint::push(value as u64, bytes);
}

/// A column of `count` zeros in the form of bytes.
fn wide(count: usize, width: u8, bytes: &mut Vec<u8>) {
    bytes.extend([5, 0, 1, width, 0]);
    bytes.extend(std::iter::repeat_n(0, count * usize::from(width)));
}

/// A column of `count` such values: a dictionary whose values are runs of runs, and whose indexes are bytes.
fn nested(count: usize, value: u8, bytes: &mut Vec<u8>) {
    bytes.push(4);
    push(count / 2, bytes);
    bytes.push(3);
    push(count / 4, bytes);
    bytes.extend([0, value, 3]);
    push(count / 8, bytes);
    bytes.extend([0, 1, 0, 1]);
    wide(count, 4, bytes);
}

#[test]
fn columns_in_columns_take_little() {
    // The most values for a byte of content are empty subjects; the most room is taken by columns in columns.
    let entries = 10_000;
    let subjects = entries * 64;
    let limit = entries * (2 + 8 + 2 + 1 + 64 + ROW_OVERHEAD) + 1;
    let mut plain = subjects_of(entries);
    plain.push(2);
    nested(subjects, 0, &mut plain);
    // One word, which the last string has.
    let mut words = subjects_of(entries);
    words.extend([3, 1, 0, 1, 0, b'y', 3, 2, 5, 0, 1, 1, 0, 0, 1, 5, 0, 1, 4, 0]);
    let runs = [u32::try_from(subjects).unwrap() - 2, 0].map(u32::to_le_bytes);
    words.extend((0..4).flat_map(|byte| runs.map(|run| run[byte])));
    nested(subjects, 0, &mut words);
    words.extend([0]);
    let (mut decoder, mut back) = (Decoder::new(), Rows::default());
    for plaintext in [pad(plain), pad(words)] {
        assert!(check(&mut decoder, &mut back, &plaintext, entries, limit));
        assert!(decoder.footprint() > limit * 8, "{} times", decoder.footprint() / limit);
    }
    // A dictionary of more strings than any has.
    for (distinct, fault) in [(1 << 16, Fault::Truncated), ((1 << 16) + 1, Fault::Range)] {
        let mut dictionary = subjects_of(entries);
        dictionary.push(1);
        push(distinct, &mut dictionary);
        let error = decode(&dictionary, entries, limit).unwrap_err();
        assert_eq!((error.column, error.fault), ("subject", fault));
    }
    // Wider than any length.
    let mut plain = subjects_of(entries);
    plain.push(2);
    wide(subjects, 5, &mut plain);
    let error = decode(&pad(plain), entries, limit).unwrap_err();
    assert_eq!((error.column, error.fault), ("subject", Fault::Form));
}

#[test]
fn slots_take_little() {
    // Strings of two bytes for each slot: all of them are words, and spelled, in columns in columns.
    let (entries, slots) = (32, 1 << 15);
    let values = entries * slots;
    let mut templates = vec![1];
    push(entries, &mut templates);
    templates.extend([0, 0, 0, 0, 1, 0, b'x']);
    templates.extend([0; 11]);
    templates.extend([1, 4, 1, 0, 1, 0]);
    push(2 * slots, &mut templates);
    templates.push(0);
    templates.extend(vec![0; 2 * slots]);
    templates.extend([0, 0, 0]);
    nested(values, 0, &mut templates);
    nested(values, 2, &mut templates);
    templates.push(0);
    templates.extend(vec![b'y'; 2 * values]);
    templates.push(0);
    let limit = 2 * values + entries * (2 + 8 + 2 + 4 + ROW_OVERHEAD);
    let (mut decoder, mut back) = (Decoder::new(), Rows::default());
    assert!(check(&mut decoder, &mut back, &pad(templates), entries, limit));
    assert!(decoder.footprint() > limit * 12, "{} times", decoder.footprint() / limit);
}

/// Of how many values 17 MiB are there: of a block's data subjects in groups, besides 15 for each entry.
#[test]
fn a_block_s_groups_have_no_more_subjects_than_are_left_of_what_values_may_be() {
    for (groups, most) in [((17 << 20) / 79, true), ((17 << 20) / 79 + 1, false)] {
        let mut plaintext = vec![1];
        push(groups, &mut plaintext);
        push(groups, &mut plaintext);
        plaintext.extend(crate::PERSONAL.to_le_bytes());
        // Each entry in a group of its own.
        plaintext.extend([2, 1, 0, 2]);
        plaintext.extend([0, 1, 0, 1, 0, b'x']);
        plaintext.extend([0; 13 + 2]);
        // Of 64 subjects each, all of them others, and a byte.
        plaintext.extend([0, 64, 2, 0, 0, 2, 0, 1]);
        plaintext.resize(plaintext.len() + groups * 33, 7);
        assert_eq!(decode(&pad(plaintext), groups, 1 << 25).is_ok(), most, "{groups}");
    }
}

/// And of a group in columns, which has as many again, without any for its entries.
#[test]
fn a_group_in_columns_has_as_many_values_as_a_block() {
    for (entries, most) in [((17 << 20) / 65, true), ((17 << 20) / 65 + 1, false)] {
        let subject = bulla_proof::entry::Field::Subject.bit();
        // 64 subjects without a byte each.
        let text = [0, 1, 0, 64, 0, 0];
        let (mut decoder, mut rows) = (Decoder::new(), Rows::default());
        let read = decoder.decode_group(&text, entries, subject, &mut (1 << 25), &mut rows);
        assert_eq!(
            read.map_err(|error| error.fault),
            if most { Ok(()) } else { Err(Fault::TooLarge) },
            "{entries}"
        );
    }
}

/// And of slots' values, each of which takes two.
#[test]
fn slots_are_fewer_than_half_of_what_values_may_be() {
    // 32,767 slots are the most that a shape has room for.
    for (entries, most) in [(271, true), (272, false)] {
        let slots = (1 << 15) - 1;
        let mut templates = vec![1];
        push(entries, &mut templates);
        templates.extend([0, 0, 0, 0, 1, 0, b'x']);
        templates.extend([0; 11]);
        // One column of decimal numbers, one shape.
        templates.extend([1, 4, 1, 1, 1, 0]);
        push(2 * slots, &mut templates);
        templates.push(0);
        templates.extend(vec![0; 2 * slots]);
        // That shape, no words, and zeros; nobody's data.
        templates.extend([0, 0, 0, 0, 0, 0]);
        let read = decode(&pad(templates), entries, 1 << 25).map(|_| ());
        let read = read.map_err(|error| (error.column, error.fault));
        assert_eq!(read, if most { Ok(()) } else { Err(("payload", Fault::TooLarge)) }, "{entries}");
    }
}

/// What a value takes of memory does not depend on how long a row may be.
#[test]
fn values_are_fewer_than_the_longest_row_has_bytes() {
    for (entries, most) in [((17 << 20) / 80, true), ((17 << 20) / 80 + 1, false)] {
        let mut plaintext = subjects_of(entries);
        plaintext.extend([0, 0]);
        assert_eq!(decode(&pad(plaintext), entries, 1 << 25).is_ok(), most);
    }
}

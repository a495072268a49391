//! What the fuzz target `block` runs. Not part of a library: there are no entry points but in tests and under a fuzzer.

use crate::{Compression, Decoder, Encoder, Rows, padme};
use bulla_proof::Entry;
use bulla_proof::entry::RawRow;

/// The plaintext of a block. The first two bytes choose how many entries it is said to have.
pub fn block(bytes: &[u8]) {
    const LIMIT: usize = 1 << 20;
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
    #[test]
    fn the_target_holds_on_its_corpus_and_close_to_it() {
        bulla_testkit::corpus::check(&[("block", super::block)]);
    }
}

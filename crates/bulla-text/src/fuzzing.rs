//! What the fuzz targets `jsonl` and `msgpack` run. Not part of a library: there are no entry points but in tests and under
//! a fuzzer.

use crate::{LineReader, jsonl, msgpack};
use bulla_proof::Entry;

/// Lines of JSON.
pub fn jsonl(bytes: &[u8]) {
    each_line(bytes, |line| {
        let Ok(parsed) = jsonl::parse_line(line) else { return };
        let mut text = Vec::new();
        jsonl::write_unnumbered(&parsed.entry(), &mut text);
        let text = String::from_utf8(text).expect("JSON is UTF-8");
        assert_eq!(jsonl::parse_line(text.trim_end().as_bytes()).as_ref(), Ok(&parsed), "{text}");
    });
}

/// MessagePack entries, one behind the other.
pub fn msgpack(bytes: &[u8]) {
    let mut rest = bytes;
    while !rest.is_empty() {
        let before = rest.len();
        let read = msgpack::read_entry(&mut rest);
        assert!(rest.len() < before, "it goes on");
        let Ok(entry) = read else { continue };
        let mut written = Vec::new();
        msgpack::write_entry(&entry, entry.time, &mut written);
        let mut again = &written[..];
        assert!(msgpack::read_entry(&mut again).is_ok_and(|again| same(&again, &entry)), "{entry:?}");
        assert_eq!(again, b"");
    }
}

/// An entry's lifetime is that of what it was read from, and two of them cannot be compared as they are.
fn same(one: &Entry<'_>, other: &Entry<'_>) -> bool {
    let row = |entry: &Entry<'_>| {
        let mut row = vec![0; entry.measure().expect("what was read is within the limits")];
        entry.encode(0, &mut row);
        row
    };
    (one.time, row(one)) == (other.time, row(other))
}

fn each_line(bytes: &[u8], mut check: impl FnMut(&[u8])) {
    let mut lines = LineReader::with_limit(bytes, 4096);
    while let Some(line) = lines.next_line().expect("reading memory does not fail") {
        if let Ok(text) = line.text {
            check(text);
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_target_holds_on_its_corpus_and_close_to_it() {
        bulla_testkit::corpus::check(&[("jsonl", super::jsonl), ("msgpack", super::msgpack)]);
    }
}

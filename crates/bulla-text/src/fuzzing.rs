//! What the fuzz targets `jsonl` and `combined` run. Not part of a library: there are no entry points but in tests and under
//! a fuzzer.

use crate::{LineReader, combined, jsonl};

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

/// Lines of an access log.
pub fn combined(bytes: &[u8]) {
    each_line(bytes, |line| {
        if let Ok(parsed) = combined::parse_line(line) {
            parsed.entry().measure().expect("a parsed entry is within its limits");
        }
    });
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
        bulla_testkit::corpus::check(&[("jsonl", super::jsonl), ("combined", super::combined)]);
    }
}

//! What the fuzz targets of formats and maps run. Not part of a library: there are no entry points but in tests and under a fuzzer.

use crate::format::access::{Layout, parse_entry};
use crate::format::{Format, FormatOptions, Parsed, Parser};
use crate::framing::{Framing, Limits, Multiline, MultilineRule, Next};
use regex::bytes::Regex;

const LIMITS: Limits = Limits { bytes: 4096, lines: 64 };

/// Records of an access log.
pub fn combined(bytes: &[u8]) {
    each_record(Format::Combined, bytes, |record| {
        if let Ok(parsed) = parse_entry(record, Layout::Combined) {
            parsed.entry().measure().expect("a parsed entry is within its limits");
        }
        let _ = parse_entry(record, Layout::Common);
    });
    parse(Format::Common, bytes);
}

/// Apache's error log.
pub fn apache_error(bytes: &[u8]) {
    parse(Format::ApacheError, bytes);
}

/// Syslog.
pub fn syslog(bytes: &[u8]) {
    parse(Format::Syslog, bytes);
}

/// JSON objects, journald's among them.
pub fn json(bytes: &[u8]) {
    parse(Format::JournalJson, bytes);
    each_record(Format::Json, bytes, |record| {
        let mut parser = Parser::new(Format::Json, &FormatOptions::default());
        let Ok(Parsed::Fields(value)) = parser.parse(record) else { return };
        let mut json = Vec::new();
        value.write_json(&mut json);
        assert_eq!(parser.parse(&json), Ok(Parsed::Fields(value)), "what is written is read back");
    });
}

/// journald's export format.
pub fn journal_export(bytes: &[u8]) {
    parse(Format::JournalExport, bytes);
}

/// `name=value` pairs.
pub fn logfmt(bytes: &[u8]) {
    parse(Format::Logfmt, bytes);
}

/// Columns, and PostgreSQL's.
pub fn csv(bytes: &[u8]) {
    parse(Format::Csv, bytes);
    parse(Format::PostgresCsv, bytes);
}

/// MONITOR of Redis.
pub fn redis_monitor(bytes: &[u8]) {
    parse(Format::RedisMonitor, bytes);
}

/// Maps, and records that they are applied to.
pub fn map(bytes: &[u8]) {
    crate::map::fuzzing::map(bytes);
}

/// Lines that a rule joins, and whole ones.
pub fn raw(bytes: &[u8]) {
    parse(Format::Raw, bytes);
    let pattern = Regex::new(r"^\S").expect("a pattern");
    for rule in [MultilineRule::Begins(pattern.clone()), MultilineRule::Continues(pattern)] {
        let multiline = Some(Multiline { rule, lines: 5, bytes: 200 });
        let parser = Parser::new(Format::Raw, &FormatOptions { multiline, ..FormatOptions::default() });
        records(&parser, bytes, |_| {});
    }
}

fn parse(format: Format, bytes: &[u8]) {
    let mut parser = Parser::new(format, &FormatOptions::default());
    let framing = Parser::new(format, &FormatOptions::default());
    records(&framing, bytes, |record| {
        let _ = parser.parse(record).map_err(|reason| reason.to_string());
    });
    // What is no record of the framing is none of the format, and no harm either.
    let _ = parser.parse(bytes);
}

fn each_record(format: Format, bytes: &[u8], check: impl FnMut(&[u8])) {
    records(&Parser::new(format, &FormatOptions::default()), bytes, check);
}

/// Gives `check` the records, of which all bytes are some part, the same ones if they arrive one by one.
fn records(parser: &Parser, bytes: &[u8], mut check: impl FnMut(&[u8])) {
    let whole = cut(parser, bytes, bytes.len());
    if bytes.len() < 2048 {
        assert_eq!(cut(parser, bytes, 1), whole, "records do not depend on how the bytes arrive");
    }
    whole.into_iter().flatten().for_each(|record| check(&record));
}

/// The records, `None` for those that were refused, shown `step` more bytes at a time.
fn cut(parser: &Parser, bytes: &[u8], step: usize) -> Vec<Option<Vec<u8>>> {
    let mut framing = Framing::new(parser.framing(), LIMITS);
    let (mut used, mut shown, mut records) = (0, 0, Vec::new());
    loop {
        let ends = shown == bytes.len();
        match framing.next(&bytes[used..shown], ends) {
            Next::More if ends => break,
            Next::More => shown = (shown + step.max(1)).min(bytes.len()),
            Next::Passed { consumed } => used += consumed,
            Next::Record { consumed, content } => {
                assert!(consumed > 0 && content.end <= consumed);
                records.push(Some(bytes[used + content.start..used + content.end].to_vec()));
                used += consumed;
            }
            Next::Refused { consumed, .. } => {
                records.push(None);
                used += consumed;
            }
        }
        assert!(used <= shown);
    }
    assert_eq!(used, bytes.len(), "nothing is left");
    records
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_target_holds_on_its_corpus_and_close_to_it() {
        bulla_testkit::corpus::check(&[
            ("apache_error", super::apache_error),
            ("combined", super::combined),
            ("csv", super::csv),
            ("journal_export", super::journal_export),
            ("json", super::json),
            ("logfmt", super::logfmt),
            ("map", super::map),
            ("raw", super::raw),
            ("redis_monitor", super::redis_monitor),
            ("syslog", super::syslog),
        ]);
    }
}

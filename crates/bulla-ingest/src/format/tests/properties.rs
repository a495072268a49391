//! What holds of any bytes.

use super::{Format, FormatOptions, Parsed, Parser};
use crate::format::access::{Layout, parse_entry};
use proptest::collection::vec;
use proptest::prelude::*;

/// A record of each format, which is damaged.
const RECORDS: [(Format, &str); 12] = [
    (Format::Raw, "anything"),
    (Format::Json, r#"{"a":["5ecret",{"b":-1.5e3,"\u00e9":null}],"c":true}"#),
    (
        Format::Combined,
        r#"v:80 5ecret - a b [17/May/2015:12:05:03 +0200] "GET /a b HTTP/1.1" 200 17 "h\"x" "c" 0.5 "y""#,
    ),
    (Format::Common, r#"5ecret id - [17/May/2015:12:05:03 +0200] "GET /a b HTTP/1.1" 200 -"#),
    (
        Format::ApacheError,
        "[Fri Sep 09 10:42:29.902022 2011] [core:error] [pid 3:tid 4] (2)No: [client 5ecret:1] AH1: m, referer: r",
    ),
    (Format::Syslog, r#"<34>1 2003-10-11T22:14:15.003Z h su 7 ID47 [a@1 b="5ecret" c="\""][d] text"#),
    (Format::JournalJson, r#"{"MESSAGE":[104,195],"A":["5ecret",[255]],"B":null}"#),
    (Format::JournalExport, "A=5ecret\nB\n\u{2}\0\0\0\0\0\0\0\u{1}\n\nA=2\n"),
    (Format::Logfmt, r#"a=1 b="5ecret \"\u00e9" c d="#),
    (Format::Csv, "a,\"b \"\"c\",5ecret"),
    (Format::RedisMonitor, r#"1.5 [0 127.0.0.1:1] "SET" "5ecret" "\xff\n""#),
    (
        Format::PostgresCsv,
        r#"t,"5ecret","d",7,"h:1",s,3,"S",t,3/1,0,LOG,0,"AUDIT: SESSION,1,1,READ,SELECT,,,""5ecret"",<none>",,,,,,,,,"p","b",,1"#,
    ),
];

proptest! {
    #[test]
    fn any_bytes_are_a_record_or_refused(bytes in vec(any::<u8>(), 0..300)) {
        for format in Format::ALL {
            let mut parser = Parser::new(format, &FormatOptions::default());
            let _ = parser.parse(&bytes).map_err(|reason| reason.to_string());
            let _ = parser.parse(&bytes).map_err(|reason| reason.to_string());
        }
        let _ = parse_entry(&bytes, Layout::Combined);
        let _ = parse_entry(&bytes, Layout::Common);
    }

    #[test]
    fn a_damaged_record_is_one_or_refused_and_no_reason_repeats_it(
        place in 0..RECORDS.len(), start: prop::sample::Index, end: prop::sample::Index, patch in vec(any::<u8>(), 0..4),
    ) {
        let (format, record) = RECORDS[place];
        let (start, end) = (start.index(record.len()), end.index(record.len()));
        let mut damaged = record.as_bytes().to_vec();
        damaged.splice(start.min(end)..start.max(end).min(start.min(end) + 4), patch);
        let mut parser = Parser::new(format, &FormatOptions::default());
        for _ in 0..2 {
            match parser.parse(&damaged) {
                Ok(Parsed::Fields(fields)) => {
                    let mut json = Vec::new();
                    fields.write_json(&mut json);
                    let read: serde_json::Value = serde_json::from_slice(&json).unwrap();
                    prop_assert!(read.is_object());
                    prop_assert_eq!(fields.clone().into_owned(), fields);
                }
                Ok(Parsed::Header) => {}
                Err(reason) => prop_assert!(!reason.to_string().contains("ecret"), "{reason}"),
            }
        }
        if let Ok(entry) = parse_entry(&damaged, Layout::Combined) {
            prop_assert!(entry.entry().measure().is_ok());
        }
    }
}

#[test]
fn the_records_that_are_damaged_are_ones_before() {
    for (format, record) in RECORDS {
        let parsed = Parser::new(format, &FormatOptions::default()).parse(record.as_bytes()).map(drop);
        assert_eq!(parsed, Ok(()), "{format}");
    }
}

/// Records that make a parser look again and again at what it has seen would take minutes here.
#[test]
fn no_record_takes_more_than_its_length() {
    let long = 1 << 20;
    let head = "1.2.3.4 - a [17/May/2015:12:05:03 +0200] ";
    for (format, record) in [
        (Format::Combined, format!("1.2.3.4 - a {}", "[17/May/2015:12:05:03 +0200 ".repeat(long / 28))),
        (Format::Combined, format!("{}- - ", "a, ".repeat(long / 3))),
        (Format::Combined, format!("{head}\"GET / HTTP/1.1\" 200 1 \"-\" \"{}\"", r#"\""#.repeat(long / 2))),
        (Format::Combined, format!("{head}\"GET / HTTP/1.1\" 200 1 \"-\" \"{}", "\\".repeat(long))),
        (
            Format::Combined,
            format!("{head}\"GET / HTTP/1.1\" 200 1 \"-\" \"-\"{}", " \"a\" b".repeat(long / 6)),
        ),
        (
            Format::ApacheError,
            format!("[Fri Sep 09 10:42:29 2011] [error] {}", "[client a] (1)b: ".repeat(long / 17)),
        ),
        (
            Format::ApacheError,
            format!("[Fri Sep 09 10:42:29 2011] [error] {}", ", referer: ".repeat(long / 11)),
        ),
        (Format::Syslog, format!("<1>1 - h a p m [a {}]", "b=\"\\\\\" ".repeat(long / 7))),
        (Format::Syslog, format!("<1>1 - h a p m [a{}]", " b=\"\"".repeat(long / 5))),
        (
            Format::Syslog,
            format!("<1>1 - h a p m {}", (0..long / 8).map(|n| format!("[a{n}]")).collect::<String>()),
        ),
        (Format::Logfmt, (0..long / 8).map(|n| format!("a{n}=1 ")).collect::<String>()),
        (Format::Logfmt, "a=\"\\\\\" ".repeat(long / 7)),
        (Format::JournalExport, "A=1\n".repeat(long / 4)),
        (Format::Csv, "\"\"\"\",".repeat(16_000)),
        (Format::Csv, format!("\"{}\"", "\"\"".repeat(long / 2))),
        (Format::Csv, ",".repeat(long)),
        (Format::RedisMonitor, format!("1.5 [0 {}", "] ".repeat(long / 2))),
        (Format::RedisMonitor, format!("1.5 [0 lua] {}", "\"\\n\" ".repeat(long / 5))),
        (Format::Json, format!("{{\"a\":{}", "[".repeat(long))),
    ] {
        let _ = Parser::new(format, &FormatOptions::default()).parse(record.as_bytes());
    }
}

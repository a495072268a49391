//! Access logs.

use super::{Format, json, refused};
use crate::format::access::{INVALID, Layout, parse_entry};
use bulla_text::ParsedEntry;

const LINE: &str =
    r#"192.0.2.7 - ada [17/May/2015:12:05:03 +0200] "GET /a b HTTP/1.1" 200 17 "http://h/\"x" "curl \\""#;

fn combined(line: impl AsRef<[u8]>) -> ParsedEntry {
    parse_entry(line.as_ref(), Layout::Combined).unwrap()
}

fn reason(line: impl AsRef<[u8]>) -> String {
    parse_entry(line.as_ref(), Layout::Combined).unwrap_err().to_string()
}

fn payload(line: impl AsRef<[u8]>) -> String {
    String::from_utf8(combined(line).payload.unwrap()).unwrap()
}

#[test]
fn a_line_is_mapped_and_kept_as_written() {
    let payload = r#"{"protocol":"HTTP/1.1","referer":"http://h/\\\"x","agent":"curl \\\\"}"#;
    let expected = ParsedEntry {
        time: Some(1_431_857_103_000_000_000),
        operation: "GET".into(),
        location: Some("/a b".into()),
        actor: Some("ada".into()),
        client: Some("192.0.2.7".into()),
        status: Some(200),
        size: Some(17),
        payload: Some(payload.into()),
        ..ParsedEntry::default()
    };
    assert_eq!(combined(LINE), expected);
    assert_eq!(combined(format!("\u{feff}{LINE}\r")), expected);

    let line = b"h id - [29/Feb/2016:23:59:59 -0030] \"GET /\xff \xfe HTTP/2\" 304 - \"-\" \"\"";
    let payload = r#"{"protocol":"HTTP/2","referer":"-","agent":"","identity":"id"}"#;
    let expected = ParsedEntry {
        time: Some(1_456_792_199_000_000_000),
        operation: "GET".into(),
        location: Some(b"/\xff \xfe".to_vec()),
        client: Some("h".into()),
        status: Some(304),
        payload: Some(payload.into()),
        ..ParsedEntry::default()
    };
    assert_eq!(combined(line), expected);
}

#[test]
fn a_line_gives_its_members_to_a_map() {
    assert_eq!(
        json(Format::Combined, LINE),
        r#"{"client":"192.0.2.7","user":"ada","time":"17/May/2015:12:05:03 +0200","request":"GET /a b HTTP/1.1","#.to_owned()
            + r#""method":"GET","target":"/a b","protocol":"HTTP/1.1","status":200,"size":17,"#
            + r#""referer":"http://h/\\\"x","agent":"curl \\\\"}"#
    );
    // Apache's documentation, "Common Log Format".
    let common = r#"127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326"#;
    let of_common = r#"{"client":"127.0.0.1","user":"frank","time":"10/Oct/2000:13:55:36 -0700","#.to_owned()
        + r#""request":"GET /apache_pb.gif HTTP/1.0","method":"GET","target":"/apache_pb.gif","protocol":"HTTP/1.0","#
        + r#""status":200,"size":2326"#;
    assert_eq!(json(Format::Common, common), of_common.clone() + "}");
    assert_eq!(
        json(Format::Common, format!("{common} 0.5")),
        of_common + r#","extra":["0.5"],"unquoted":["0.5"]}"#
    );
    assert_eq!(refused(Format::Combined, common).to_string(), "the referer is missing");
    let entry = parse_entry(common.as_bytes(), Layout::Common).unwrap();
    assert_eq!(
        (entry.time, entry.payload),
        (Some(971_211_336_000_000_000), Some(br#"{"protocol":"HTTP/1.0"}"#.to_vec()))
    );
}

/// What servers write of requests that were none.
#[test]
fn a_request_that_is_none_is_kept_whole() {
    for (request, status) in [
        ("-", "408"),
        ("", "400"),
        (r"\x16\x03\x01\x02\x00\x01\x00\x01\xFC\x03\x03", "400"),
        (r"\x03\x00\x00\x13\x0E\xE0", "400"),
        ("GET", "400"),
        ("GET HTTP/1.1", "400"),
        ("GET  HTTP/1.1", "400"),
        (" / HTTP/1.1", "400"),
        ("get /", "400"),
        ("GET / HTTP", "400"),
        ("SSH-2.0-Go", "400"),
        (r"\x05\x01\x00 / HTTP/1.1", "400"),
    ] {
        let request = if request == "GET / HTTP" { "G@T / HTTP" } else { request };
        let line = format!(r#"192.0.2.7 - - [17/May/2015:10:05:03 +0000] "{request}" {status} 0 "-" "-""#);
        let entry = combined(&line);
        assert_eq!((entry.operation.as_str(), &entry.location), (INVALID, &None), "{line}");
        assert_eq!(entry.status.unwrap().to_string(), status);
        let written = request.replace('\\', "\\\\");
        assert_eq!(payload(&line), format!(r#"{{"request":"{written}","referer":"-","agent":"-"}}"#));
        let members = json(Format::Combined, &line);
        assert!(members.contains(&format!(r#""request":"{written}","status":{status}"#)), "{members}");
    }
}

#[test]
fn requests_of_other_protocols_and_without_one_are_requests() {
    for (request, operation, location, protocol) in [
        ("GET /", "GET", "/", None),
        ("GET /a b", "GET", "/a b", None),
        ("OPTIONS * HTTP/1.0", "OPTIONS", "*", Some("HTTP/1.0")),
        ("PRI * HTTP/2.0", "PRI", "*", Some("HTTP/2.0")),
        ("DESCRIBE rtsp://h/x RTSP/1.0", "DESCRIBE", "rtsp://h/x", Some("RTSP/1.0")),
        ("CONNECT h:443 HTTP/1.1", "CONNECT", "h:443", Some("HTTP/1.1")),
        ("M-SEARCH * HTTP/1.1", "M-SEARCH", "*", Some("HTTP/1.1")),
        ("GET /http/1.1 x HTTP/3", "GET", "/http/1.1 x", Some("HTTP/3")),
        ("get / HTTP/1.1", "get", "/", Some("HTTP/1.1")),
    ] {
        let line = format!(r#"::1 - - [17/May/2015:10:05:03 +0000] "{request}" 200 - "-" "a""#);
        let entry = combined(&line);
        assert_eq!(
            (entry.operation.as_str(), entry.location.as_deref()),
            (operation, Some(location.as_bytes()))
        );
        let begins =
            protocol.map_or("{\"referer\"".to_owned(), |protocol| format!("{{\"protocol\":\"{protocol}\""));
        assert!(payload(&line).starts_with(&begins), "{}", payload(&line));
    }
}

#[test]
fn what_servers_put_before_and_behind_the_format_is_kept() {
    let middle = r#"[17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1 "-" "a""#;
    for (head, client, actor, more) in [
        ("192.0.2.7 - -", "192.0.2.7", None, ""),
        // Debian's `vhost_combined`.
        ("example.com:443 192.0.2.7 - ada", "192.0.2.7", Some("ada"), r#","vhost":"example.com:443""#),
        ("example.com 192.0.2.7 - john doe", "192.0.2.7", Some("john doe"), r#","vhost":"example.com""#),
        ("192.0.2.7 - john doe", "192.0.2.7", Some("john doe"), ""),
        ("192.0.2.7 - a b [c", "192.0.2.7", Some("a b [c"), ""),
        ("192.0.2.7 - [x]", "192.0.2.7", Some("[x]"), ""),
        ("192.0.2.7 - x [y", "192.0.2.7", Some("x [y"), ""),
        ("192.0.2.7 -  [y ", "192.0.2.7", Some(" [y "), ""),
        ("example.com 192.0.2.7 - x [y", "192.0.2.7", Some("x [y"), r#","vhost":"example.com""#),
        // A name that feigns a time, and the request that would follow it, with the quote as nginx and as Apache write it.
        (
            "192.0.2.7 - x [03/Nov/2026:14:00:05 +0100]",
            "192.0.2.7",
            Some("x [03/Nov/2026:14:00:05 +0100]"),
            "",
        ),
        (
            r"192.0.2.7 - [03/Nov/2026:14:00:05 +0100] \x22GET / HTTP/1.1\x22 200 5",
            "192.0.2.7",
            Some(r"[03/Nov/2026:14:00:05 +0100] \x22GET / HTTP/1.1\x22 200 5"),
            "",
        ),
        (
            r#"192.0.2.7 - x [03/Nov/2026:14:00:05 +0100] \"GET"#,
            "192.0.2.7",
            Some(r#"x [03/Nov/2026:14:00:05 +0100] \"GET"#),
            "",
        ),
        // Apache's empty name.
        (r#"192.0.2.7 - """#, "192.0.2.7", Some(r#""""#), ""),
        // `X-Forwarded-For` in the client's place.
        ("203.0.113.9, 192.0.2.7 - -", "203.0.113.9, 192.0.2.7", None, ""),
        ("2001:db8::7 id -", "2001:db8::7", None, r#","identity":"id""#),
    ] {
        let line = format!("{head} {middle}");
        let entry = combined(&line);
        assert_eq!((entry.client.as_deref(), entry.actor.as_deref()), (Some(client), actor), "{line}");
        assert_eq!(payload(&line), format!(r#"{{"protocol":"HTTP/1.1","referer":"-","agent":"a"{more}}}"#));
    }
    for (extra, list, unquoted) in [
        (" 0.123", r#"["0.123"]"#, r#"["0.123"]"#),
        (
            r#" "203.0.113.9" 0.001 0.002, 0.003 ."#,
            r#"["203.0.113.9","0.001","0.002,","0.003","."]"#,
            r#"["0.001","0.002,","0.003","."]"#,
        ),
        (r#" "" "-""#, r#"["","-"]"#, ""),
        (r#" "a \" b" rt=0.5"#, r#"["a \\\" b","rt=0.5"]"#, r#"["rt=0.5"]"#),
    ] {
        let line = format!("::1 - - {middle}{extra}");
        assert_eq!(
            payload(&line),
            format!(r#"{{"protocol":"HTTP/1.1","referer":"-","agent":"a","extra":{list}}}"#)
        );
        let unquoted = if unquoted.is_empty() { "" } else { &format!(r#","unquoted":{unquoted}"#) };
        let end = format!(r#","agent":"a","extra":{list}{unquoted}}}"#);
        assert!(json(Format::Combined, &line).ends_with(&end), "{end}");
    }
    // A request may hold whatever looks like the end of a time.
    let line = r#"::1 - - [17/May/2015:10:05:03 +0000] "GET /a [03/Nov/2026:14:00:05 +0100] " 200 1 "-" "a""#;
    assert_eq!((combined(line).time, combined(line).actor), (Some(1_431_857_103_000_000_000), None));
    let line = line.replace("10:05:03", "10:05:60");
    assert_eq!(reason(line), "the time is not DD/Mon/YYYY:HH:MM:SS ±HHMM");
    // A space at the end is nothing.
    assert_eq!(payload(format!("::1 - - {middle} ")), r#"{"protocol":"HTTP/1.1","referer":"-","agent":"a"}"#);
    let entry = combined(r#"::1 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" - - "-" "-""#);
    assert_eq!((entry.status, entry.size), (None, None));
    for time in ["17/May/2015:10:05:03.25 +0000", "2015-05-17T12:05:03.25+02:00"] {
        let entry = combined(format!(r#"::1 - - [{time}] "GET / HTTP/1.1" 1 2 "-" "-""#));
        assert_eq!(entry.time, Some(1_431_857_103_250_000_000));
    }
}

#[test]
fn a_line_is_refused_with_the_part_that_is_wrong() {
    let (head, tail) = ("1.2.3.4 - - [17/May/2015:10:05:03 +0000] ", " 200 1 \"-\" \"-\"");
    let bad_time = "the time is not DD/Mon/YYYY:HH:MM:SS ±HHMM";
    let cases = [
        (String::new(), "the line is empty"),
        ("  \r".into(), "the line is empty"),
        (" - - ".into(), "the client address is missing"),
        ("1.2.3.4".into(), "the identity is missing"),
        ("1.2.3.4,".into(), "the identity is missing"),
        ("1.2.3.4 -  [".into(), "the user is missing"),
        ("1.2.3.4 - - ".into(), bad_time),
        ("host:80 1.2.3.4 - - [17/May/2015:10:05:03 +0000] ".into(), "the request is missing"),
        ("1.2.3.4 - - [17/may/2015:10:05:03 +0000] ".into(), bad_time),
        ("1.2.3.4 - - [31/Apr/2015:10:05:03 +0000] ".into(), bad_time),
        ("1.2.3.4 - - [17/May/2015:10:05:60 +0000] ".into(), bad_time),
        (
            "1.2.3.4 - - [01/Jan/2017:00:59:60 +0100] ".into(),
            "the time is a leap second (`:60`), which a time that counts the seconds since 1970 cannot say",
        ),
        ("1.2.3.4 - - [17/May/2015:10:05:03 +2400] ".into(), bad_time),
        ("1.2.3.4 - - [17/May/2015:10:05:03 0000] ".into(), bad_time),
        ("1.2.3.4 - - [17/May/2015:10:05:03. +0000] ".into(), bad_time),
        ("1.2.3.4 - - [17/May/2015:10:05:03 +0000]".into(), bad_time),
        (
            "1.2.3.4 - - [17/May/2300:10:05:03 +0000] ".into(),
            "the time is not between the years 1677 and 2262",
        ),
        (head.into(), "the request is missing"),
        (format!("{head}\"GET / HTTP/1.1\\\" 200 1 "), "the request has no closing quote"),
        (format!("{head}\"GET / HTTP/1.1\"{}", &tail[1..]), "there is no space after the request"),
        (
            format!("{head}\"GET / HTTP/1.1\" ok 1 \"-\" \"-\""),
            "the status is neither - nor a whole number from 0 to 4294967295",
        ),
        (
            format!("{head}\"GET / HTTP/1.1\" 200 +1 \"-\" \"-\""),
            "the size is neither - nor a whole number of at most 64 bits",
        ),
        (
            format!("{head}\"GET / HTTP/1.1\" 200 18446744073709551616 \"-\" \"-\""),
            "the size is neither - nor a whole number of at most 64 bits",
        ),
        (format!("{head}\"GET / HTTP/1.1\" 200 1"), "the referer is missing"),
        (format!("{head}\"GET / HTTP/1.1\" 200 1 \"-\""), "there is no space after the referer"),
        (format!("{head}\"GET / HTTP/1.1\" 200 1 \"-\" -"), "the user agent is missing"),
        (
            format!("{head}\"GET / HTTP/1.1\" 200 1 \"-\" \"Mozilla/5.0"),
            "the user agent has no closing quote",
        ),
        (format!("{head}\"GET / HTTP/1.1\"{tail}x"), "there is no space after the user agent"),
        (
            format!("{head}\"GET / HTTP/1.1\"{tail} \"x"),
            "the part behind those of the format has no closing quote",
        ),
        (format!("{head}\"GET / HTTP/1.1\"{tail}  x"), "the part behind those of the format is missing"),
        (
            format!("{head}\"GET /{} HTTP/1.1\"{tail}", "a".repeat(65536)),
            "`location` is longer than 65536 bytes",
        ),
    ];
    for (line, expected) in cases {
        assert_eq!(reason(&line), expected, "{}", &line[..line.len().min(120)]);
    }
}

#[test]
fn bytes_that_are_not_text_are_refused_in_an_entry_but_in_the_target() {
    let parts = ["client address", "identity", "user", "request", "request", "referer", "user agent"];
    let template = b"1 2 3 [17/May/2015:10:05:03 +0000] \"4 / HTTP/5\" 200 1 \"6\" \"7\"";
    for (place, part) in (b'1'..=b'7').zip(parts) {
        let mut line = template.to_vec();
        let start = if place < b'4' { 0 } else { 35 };
        let place = start + line[start..].iter().position(|&byte| byte == place).unwrap();
        line[place] = 0xff;
        // A map has them.
        json(Format::Combined, &line);
        match part {
            // A protocol's version may be anything behind its first digit.
            "request" if place > 40 => assert_eq!(combined_or_reason(&line), "the request is not UTF-8"),
            _ => assert_eq!(reason(&line), format!("the {part} is not UTF-8")),
        }
    }
}

fn combined_or_reason(line: &[u8]) -> String {
    parse_entry(line, Layout::Combined).map_or_else(|reason| reason.to_string(), |entry| entry.operation)
}

/// The two ways to a time agree: the arithmetic here, and the one of RFC 3339.
#[test]
fn times_are_those_of_the_calendar() {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut rng = bulla_testkit::Rng(19);
    for _ in 0..5000 {
        let (year, month, day) = (1677 + rng.below(587), 1 + rng.below(12), 1 + rng.below(31));
        let (hour, minute, second) = (rng.below(24), rng.below(60), rng.below(60));
        let sign = *rng.one(&['+', '-']);
        let (hours, minutes) = (rng.below(24), rng.below(60));
        let name = MONTHS[usize::try_from(month).unwrap() - 1];
        let line = format!(
            "::1 - - [{day:02}/{name}/{year}:{hour:02}:{minute:02}:{second:02} {sign}{hours:02}{minutes:02}] \"GET / HTTP/1.1\" 1 1 \"-\" \"-\""
        );
        let text = format!(
            "{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{sign}{hours:02}:{minutes:02}"
        );
        let time = parse_entry(line.as_bytes(), Layout::Combined).ok().and_then(|entry| entry.time);
        assert_eq!(time, bulla_text::time::parse_time(&text).ok(), "{text}");
    }
}

use super::zone::{self, MomentError, Zone, ZoneError, parse_moment};
use super::{LineError, LineReader, ParsedEntry, jsonl, lines, time};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use std::collections::VecDeque;
use std::io::{self, Read, Write};

fn json_reason(line: &str) -> String {
    jsonl::parse_line(line.as_bytes()).unwrap_err().to_string()
}

fn time_text(nanoseconds: i64) -> String {
    let mut out = Vec::new();
    time::format_time(nanoseconds, &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn a_json_line_gives_every_field() {
    let line = br#" {"time":"2015-05-17T12:05:03.25+02:00","operation":"read","location":"k\u00e9y","subject":["a",""],
        "controller":"c","processor":"p","purpose":"","actor":"x","client":"::1","stream":"s","status":0,
        "duration":18446744073709551615,"size":0,"flags":4294967295,"payload":"\u0000"} "#;
    let text = |text: &str| Some(text.to_owned());
    let expected = ParsedEntry {
        time: Some(1_431_857_103_250_000_000),
        operation: "read".into(),
        location: Some("kéy".into()),
        subjects: Some(vec!["a".into(), String::new()]),
        controller: text("c"),
        processor: text("p"),
        purpose: text(""),
        actor: text("x"),
        client: text("::1"),
        stream: text("s"),
        status: Some(0),
        duration: Some(u64::MAX),
        size: Some(0),
        flags: Some(u32::MAX),
        payload: Some(vec![0]),
    };
    assert_eq!(jsonl::parse_line(line).unwrap(), expected);
}

#[test]
fn absent_null_and_empty_are_told_apart() {
    let parse = |line: &str| jsonl::parse_line(line.as_bytes()).unwrap();
    let bare = parse(r#"{"operation":"read"}"#);
    assert_eq!(bare, ParsedEntry { operation: "read".into(), ..ParsedEntry::default() });
    let null = r#"{"operation":"read","time":null,"location":null,"location_base64":null,"subject":null,"size":null,
        "actor":null,"payload":null,"payload_base64":null}"#;
    assert_eq!(parse(null), bare);
    assert_eq!(parse("{\"operation\":\"read\",\"subject\":[]}\r").subjects, Some(vec![]));
    assert_eq!(parse(r#"{"operation":"read","payload_base64":""}"#).payload, Some(vec![]));
    assert_eq!(
        parse(r#"{"operation":"read","payload":null,"payload_base64":"/w=="}"#).payload,
        Some(vec![255])
    );
}

#[test]
fn a_json_line_is_refused_with_the_field_and_what_it_takes() {
    let many = format!(r#"{{"operation":"r","subject":[{}""]}}"#, r#""s","#.repeat(64));
    let long = format!(r#"{{"operation":"r","actor":"{}"}}"#, "a".repeat(65537));
    let cases = [
        ("", "the line is empty"),
        (" \t\r", "the line is empty"),
        ("[]", "the line is not a JSON object"),
        (r#""secret""#, "the line is not a JSON object"),
        (r#"{"operation":"r"} secret"#, "the line is not JSON at column 19: trailing characters"),
        (
            r#"{"operation":"r","size":1e999}"#,
            "the line is not JSON at column 29, in `size`: number out of range",
        ),
        (
            r#"{"operation":"r"#,
            "the line is not JSON at column 15, in `operation`: EOF while parsing a string",
        ),
        ("{}", "`operation` is missing or empty"),
        (r#"{"operation":null}"#, "`operation` is missing or empty"),
        (r#"{"operation":""}"#, "`operation` is missing or empty"),
        (r#"{"operation":"r","operation":"r"}"#, "`operation` is given twice"),
        (r#"{"operation":"r","size":null,"size":1}"#, "`size` is given twice"),
        (r#"{"operation":"r","entry":1}"#, "`entry` is assigned by the log and cannot be given"),
        (r#"{"operation":["secret"]}"#, "`operation` must be a string"),
        (r#"{"operation":"r","actor":7654321}"#, "`actor` must be a string"),
        (r#"{"operation":"r","payload":{"secret":1}}"#, "`payload` must be a string"),
        (r#"{"operation":"r","status":"secret"}"#, "`status` must be a whole number from 0 to 4294967295"),
        (r#"{"operation":"r","status":4294967296}"#, "`status` must be a whole number from 0 to 4294967295"),
        (r#"{"operation":"r","flags":-1}"#, "`flags` must be a whole number from 0 to 4294967295"),
        (r#"{"operation":"r","size":1.5}"#, "`size` must be a whole number from 0 to 18446744073709551615"),
        (
            r#"{"operation":"r","duration":18446744073709551616}"#,
            "`duration` must be a whole number from 0 to 18446744073709551615",
        ),
        (r#"{"operation":"r","subject":"a","subject":"b"}"#, "`subject` is given twice"),
        (r#"{"operation":"r","subject":7}"#, "`subject` must be a string or a list of at most 64 strings"),
        (
            r#"{"operation":"r","subject":[null]}"#,
            "`subject` must be a string or a list of at most 64 strings",
        ),
        (&many, "`subject` must be a string or a list of at most 64 strings"),
        (&long, "`actor` is longer than 65536 bytes"),
        (
            r#"{"operation":"r","payload":"a","payload_base64":"YQ=="}"#,
            "`payload` and `payload_base64` are both given",
        ),
        (
            r#"{"operation":"r","location_base64":"YQ==","location":""}"#,
            "`location` and `location_base64` are both given",
        ),
        (
            r#"{"operation":"r","payload_base64":"YQ"}"#,
            "`payload_base64` must be a string of standard base64 with padding",
        ),
        (
            r#"{"operation":"r","location_base64":"YR=="}"#,
            "`location_base64` must be a string of standard base64 with padding",
        ),
        (
            r#"{"operation":"r","time":"2016-12-31T23:59:60Z"}"#,
            "`time` must be no leap second (`:60`), which a time that counts the seconds since 1970 cannot say: give the \
             second before or after it",
        ),
        (
            r#"{"operation":"r","time":"yesterday"}"#,
            "`time` must be an RFC 3339 time such as 2015-05-17T10:05:03.25Z, to the nanosecond, \
             between the years 1677 and 2262",
        ),
    ];
    for (line, reason) in cases {
        assert_eq!(json_reason(line), reason, "{}", &line[..line.len().min(80)]);
    }
    let not_text = jsonl::parse_line(b"{\"operation\":\"r\",\"location\":\"\xff\"}").unwrap_err().to_string();
    assert_eq!(not_text, "the line is not JSON at column 30, in `location`: invalid unicode code point");
    assert!(json_reason(r#"{"operation":"r","payload":"\ud800"}"#).contains("in `payload`"));
}

#[test]
fn an_unknown_name_is_shown_only_when_it_looks_like_one() {
    let reason = json_reason(r#"{"operation":"r","colour":1}"#);
    assert!(
        reason.starts_with("`colour` is not a field; the fields are time, operation, location, "),
        "{reason}"
    );
    for name in ["ada@example.com", "", "\u{1b}[31m", &"a".repeat(33)] {
        let name = serde_json::to_string(name).unwrap();
        let reason = json_reason(&format!("{{{name}:1}}"));
        let start = format!("the name that ends at column {} is not a field", 1 + name.len());
        assert!(reason.starts_with(&start), "{reason}");
    }
}

#[test]
fn a_payload_at_its_limit_is_taken_and_one_byte_more_is_not() {
    let line = |length: usize| format!(r#"{{"operation":"r","payload":"{}"}}"#, "p".repeat(length));
    assert_eq!(jsonl::parse_line(line(16 << 20).as_bytes()).unwrap().payload.unwrap().len(), 16 << 20);
    assert_eq!(json_reason(&line((16 << 20) + 1)), "`payload` is longer than 16777216 bytes");
}

#[test]
fn an_entry_is_written_in_the_order_of_its_fields() {
    let entry = bulla_proof::Entry::new("re\u{1}ad\"\\\n", b"\xff\x00")
        .time(1_431_857_103_000_000_000)
        .subject("s")
        .controller("c")
        .processor("p")
        .purpose("why")
        .actor("a")
        .client("::1")
        .stream("é\u{7f}")
        .status(0)
        .duration(u64::MAX)
        .size(10)
        .flags(3)
        .payload("");
    let mut line = Vec::new();
    jsonl::write_entry(&entry, 42, &mut line);
    let expected = concat!(
        r#"{"entry":42,"time":"2015-05-17T10:05:03Z","operation":"re\u0001ad\"\\\n","location_base64":"/wA=","#,
        r#""subject":"s","controller":"c","processor":"p","purpose":"why","actor":"a","client":"::1","#,
        "\"stream\":\"é\\u007f\",\"status\":0,\"duration\":18446744073709551615,\"size\":10,\"flags\":3,\"payload\":\"\"}\n"
    );
    assert_eq!(String::from_utf8(line).unwrap(), expected);

    let empty =
        bulla_proof::Entry { operation: "r", subjects: Some([].into_iter().collect()), ..Default::default() };
    let mut line = Vec::new();
    jsonl::write_entry(&empty, u64::MAX, &mut line);
    assert_eq!(line, b"{\"entry\":18446744073709551615,\"operation\":\"r\",\"subject\":[]}\n");
}

#[test]
fn times_are_rfc_3339_with_any_offset_to_the_nanosecond() {
    let cases = [
        ("1970-01-01T00:00:00Z", 0),
        ("2015-05-17t10:05:03.25z", 1_431_857_103_250_000_000),
        ("2015-05-17T12:05:03.250000000+02:00", 1_431_857_103_250_000_000),
        ("2015-05-16T10:06:03-23:59", 1_431_857_103_000_000_000),
        ("1969-12-31T23:59:59.999999999-00:00", -1),
        ("2262-04-11T23:47:16.854775807Z", i64::MAX),
        ("1677-09-21T00:12:43.145224192Z", i64::MIN),
        ("1677-09-21T00:13:43.145224192+00:01", i64::MIN),
    ];
    for (text, nanoseconds) in cases {
        assert_eq!(time::parse_time(text), Ok(nanoseconds), "{text}");
    }
    for text in [
        "",
        "2015-05-17",
        "2015-05-17T10:05:03",
        "2015-05-17 10:05:03Z",
        "2015-05-17T10:05Z",
        "2015-05-17T10:05:03.Z",
        "2015-05-17T10:05:03,5Z",
        "2015-05-17T10:05:03.1234567890Z",
        "2015-05-17T10:05:60Z",
        "2015-05-17T23:59:60Z",
        "2016-12-31T23:59:60+01:00",
        "2016-12-31T23:59:61Z",
        "2015-05-17T24:00:00Z",
        "2015-02-29T10:05:03Z",
        "2015-05-17T10:05:03+0200",
        "2015-05-17T10:05:03+02:60",
        "2015-05-17T10:05:03+24:00",
        "2015-05-17T10:05:03Z[UTC]",
        "20150517T100503Z",
        "+002015-05-17T10:05:03Z",
        "２015-05-17T10:05:03Z",
    ] {
        assert_eq!(time::parse_time(text), Err(time::TimeError::Malformed), "{text}");
    }
    for text in ["2262-04-11T23:47:16.854775808Z", "1677-09-21T00:12:43.145224191Z", "0000-01-01T00:00:00Z"] {
        assert_eq!(time::parse_time(text), Err(time::TimeError::OutOfRange), "{text}");
    }
    // RFC 3339's own examples, and one with a fraction.
    for text in ["1990-12-31T23:59:60Z", "1990-12-31T15:59:60-08:00", "2017-01-01t00:59:60.5+01:00"] {
        assert_eq!(time::parse_time(text), Err(time::TimeError::LeapSecond), "{text}");
    }
}

/// 2015-05-17T10:05:03Z, a Sunday.
const NOW: i64 = 1_431_857_103_000_000_000;

fn moment(text: &str, zone: &Zone) -> Result<String, MomentError> {
    parse_moment(text, zone, NOW).map(time_text)
}

#[test]
fn a_moment_is_a_day_or_a_clock_s_time_in_a_zone_or_a_time_with_its_own_offset() {
    let east = Zone::parse("+14:00").unwrap();
    for (text, utc, further_east) in [
        ("now", "2015-05-17T10:05:03Z", "2015-05-17T10:05:03Z"),
        // There it is Monday, five minutes past midnight.
        ("today", "2015-05-17T00:00:00Z", "2015-05-17T10:00:00Z"),
        ("yesterday", "2015-05-16T00:00:00Z", "2015-05-16T10:00:00Z"),
        ("tomorrow", "2015-05-18T00:00:00Z", "2015-05-18T10:00:00Z"),
        ("2015-05-18", "2015-05-18T00:00:00Z", "2015-05-17T10:00:00Z"),
        ("2016-02-29", "2016-02-29T00:00:00Z", "2016-02-28T10:00:00Z"),
        ("2015-05-18T14:00", "2015-05-18T14:00:00Z", "2015-05-18T00:00:00Z"),
        ("2015-05-18 14:00:07.5", "2015-05-18T14:00:07.5Z", "2015-05-18T00:00:07.5Z"),
        ("2015-05-17T10:05:03Z", "2015-05-17T10:05:03Z", "2015-05-17T10:05:03Z"),
        ("2015-05-17T10:05Z", "2015-05-17T10:05:00Z", "2015-05-17T10:05:00Z"),
        ("2015-05-17 10:05:03+02:00", "2015-05-17T08:05:03Z", "2015-05-17T08:05:03Z"),
    ] {
        assert_eq!(moment(text, &Zone::UTC).as_deref(), Ok(utc), "{text}");
        assert_eq!(moment(text, &east).as_deref(), Ok(further_east), "{text}");
    }
    for text in [
        "",
        "Today",
        "today ",
        "last week",
        "2015-02-29",
        "2015-05-18Z",
        "2015-05-18T",
        "2015-05-18T24:00",
        "2015-05-18T1:00",
        "2015-05-18T14",
        "2015-05-18T14:00:",
        "2015-05-18T14:00:07.",
        "2015-05-18T14:00+2",
        "2015-05-18T14:00+02:00x",
        "2015-05-18  14:00",
        "18.05.2015",
        "2015-05-18T23:59:60",
    ] {
        assert_eq!(moment(text, &Zone::UTC), Err(MomentError::Malformed), "{text}");
    }
    for text in ["2300-01-01", "1600-01-01T00:00", "2300-01-01T00:00:00Z"] {
        assert_eq!(moment(text, &Zone::UTC), Err(MomentError::OutOfRange), "{text}");
    }
    for text in ["2016-12-31T23:59:60", "2016-12-31T23:59:60Z", "2017-01-01 05:29:60+05:30"] {
        assert_eq!(moment(text, &Zone::UTC), Err(MomentError::LeapSecond), "{text}");
    }
    assert_eq!(parse_moment("tomorrow", &Zone::UTC, i64::MAX), Err(MomentError::OutOfRange));
    assert_eq!(parse_moment("yesterday", &Zone::UTC, i64::MIN), Err(MomentError::OutOfRange));
    assert_eq!(Zone::parse("utc"), Ok(Zone::UTC));
    for text in
        ["", "Europe/Nowhere", "+1", "+25:00", "+01:00 ", "Etc/Unknown", "../../etc/passwd", "/etc/localtime"]
    {
        assert_eq!(Zone::parse(text), Err(ZoneError), "{text}");
    }
}

#[test]
fn days_are_as_long_as_the_zone_has_them_and_an_hour_that_is_twice_or_never_is_refused() {
    let Ok(berlin) = Zone::parse("Europe/Berlin") else {
        let _ = writeln!(io::stderr(), "not tested: named zones: the system has no database of them");
        return;
    };
    for (text, expected) in [
        ("2026-11-03", "2026-11-02T23:00:00Z"),
        ("2026-07-03", "2026-07-02T22:00:00Z"),
        // Of 23 and of 25 hours.
        ("2026-03-29", "2026-03-28T23:00:00Z"),
        ("2026-03-30", "2026-03-29T22:00:00Z"),
        ("2026-10-25", "2026-10-24T22:00:00Z"),
        ("2026-10-26", "2026-10-25T23:00:00Z"),
        ("2026-10-25T02:30+02:00", "2026-10-25T00:30:00Z"),
    ] {
        assert_eq!(moment(text, &berlin).as_deref(), Ok(expected), "{text}");
    }
    assert_eq!(moment("2026-10-25T02:30", &berlin), Err(MomentError::Twice));
    assert_eq!(moment("2026-03-29T02:30", &berlin), Err(MomentError::Never));
    assert_eq!(Zone::parse("europe/berlin").as_ref(), Ok(&berlin));
    // Clocks were put forward at midnight: the day begins with one o'clock.
    let havana = Zone::parse("America/Havana").unwrap();
    assert_eq!(moment("2026-03-08", &havana).as_deref(), Ok("2026-03-08T05:00:00Z"));
}

#[test]
fn times_are_written_no_longer_than_they_must_be() {
    assert_eq!(time_text(0), "1970-01-01T00:00:00Z");
    assert_eq!(time_text(-1), "1969-12-31T23:59:59.999999999Z");
    assert_eq!(time_text(10_020_000_000), "1970-01-01T00:00:10.02Z");
    assert_eq!(time_text(i64::MIN), "1677-09-21T00:12:43.145224192Z");
    assert_eq!(time_text(i64::MAX), "2262-04-11T23:47:16.854775807Z");
}

/// A source that gives what it is told, in the pieces that it is told.
struct Pieces(VecDeque<io::Result<Vec<u8>>>);

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(piece) = self.0.pop_front() else { return Ok(0) };
        let mut piece = piece?;
        let length = piece.len().min(buffer.len());
        buffer[..length].copy_from_slice(&piece[..length]);
        if piece.len() > length {
            self.0.push_front(Ok(piece.split_off(length)));
        }
        Ok(length)
    }
}

/// Every line of a source, `None` for one that is too long, going on after each interruption.
fn read_all(source: impl Read, limit: usize) -> (Vec<Option<Vec<u8>>>, usize) {
    let mut lines = LineReader::with_limit(source, limit);
    let (mut all, mut interruptions) = (Vec::new(), 0);
    loop {
        match lines.next_line() {
            Ok(None) => return (all, interruptions),
            Ok(Some(line)) => {
                assert_eq!(line.number, all.len() as u64 + 1);
                if let Err(error) = &line.text {
                    assert_eq!(*error, LineError::TooLong { limit });
                }
                all.push(line.text.ok().map(<[u8]>::to_vec));
            }
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::Interrupted);
                interruptions += 1;
            }
        }
    }
}

#[test]
fn a_reader_holds_a_line_at_the_limit_and_skips_one_over_it() {
    let some = |text: &str| Some(text.as_bytes().to_vec());
    let read = |text: &str| read_all(text.as_bytes(), 4).0;
    assert_eq!(read(""), []);
    assert_eq!(read("\n"), [some("")]);
    assert_eq!(read("abcd\nabcde\n\r\nab"), [some("abcd"), None, some("\r"), some("ab")]);
    assert_eq!(read("abcdefghi"), [None]);
    assert_eq!(read("abcdefghi\n"), [None]);
}

#[test]
fn a_line_over_the_limit_is_not_held() {
    let mut lines = LineReader::with_limit(io::repeat(b'a').take(1 << 30).chain(&b"\nb"[..]), 1 << 20);
    assert!(lines.next_line().unwrap().unwrap().text.is_err());
    assert_eq!(lines.next_line().unwrap().unwrap().text.unwrap(), b"b");
    assert!(lines.next_line().unwrap().is_none());
    assert!(lines.held() <= (1 << 20) + (1 << 18));
    assert!(LineReader::new(io::empty()).held() < lines::MAX_LINE);
}

pub(crate) fn entries() -> impl Strategy<Value = ParsedEntry> {
    let text = || option::of("\\PC{0,12}|(?s:.{0,12})");
    let bytes =
        || option::of(prop_oneof![vec(any::<u8>(), 0..24), "(?s:.{0,12})".prop_map(String::into_bytes)]);
    let numbers = (any::<Option<u32>>(), any::<Option<u64>>(), any::<Option<u64>>(), any::<Option<u32>>());
    let strings = (text(), text(), text(), text(), text(), text());
    let subjects = option::of(vec("(?s:.{0,6})", 0..4));
    let head = (any::<Option<i64>>(), "(?s:.{1,8})", bytes(), subjects);
    (head, strings, numbers, bytes()).prop_map(|(head, strings, numbers, payload)| {
        let (time, operation, location, subjects) = head;
        let (controller, processor, purpose, actor, client, stream) = strings;
        let (status, duration, size, flags) = numbers;
        ParsedEntry {
            time,
            operation,
            location,
            subjects,
            controller,
            processor,
            purpose,
            actor,
            client,
            stream,
            status,
            duration,
            size,
            flags,
            payload,
        }
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(entry in entries(), number: u64) {
        let mut line = Vec::new();
        jsonl::write_entry(&entry.entry(), number, &mut line);
        prop_assert_eq!(line.pop(), Some(b'\n'));
        prop_assert!(!line.contains(&b'\n'));
        let parsed: serde_json::Value = serde_json::from_slice(&line).unwrap();
        prop_assert_eq!(&parsed["entry"], number);
        let head = format!("{{\"entry\":{number},");
        let fields = line.strip_prefix(head.as_bytes()).unwrap();
        let mut unnumbered = Vec::new();
        jsonl::write_unnumbered(&entry.entry(), &mut unnumbered);
        prop_assert_eq!(&unnumbered, &[b"{", fields, b"\n"].concat());
        prop_assert_eq!(jsonl::parse_line(unnumbered.trim_ascii_end()).unwrap(), entry);
    }

    #[test]
    fn a_time_is_read_back(nanoseconds: i64, unit in 0_u32..10) {
        let nanoseconds = nanoseconds / 10_i64.pow(unit) * 10_i64.pow(unit);
        prop_assert_eq!(time::parse_time(&time_text(nanoseconds)), Ok(nanoseconds));
    }

    #[test]
    fn random_bytes_are_refused_quietly(bytes in vec(any::<u8>(), 0..200)) {
        let _ = jsonl::parse_line(&bytes).map_err(|error| error.to_string());
        let text = String::from_utf8_lossy(&bytes);
        let _ = zone::parse_moment(&text, &Zone::UTC, NOW);
        let _ = Zone::parse(&text);
    }

    #[test]
    fn a_damaged_line_is_an_entry_or_refused(
        entry in entries(), start: prop::sample::Index, end: prop::sample::Index, patch in vec(any::<u8>(), 0..4),
    ) {
        let mut line = Vec::new();
        jsonl::write_unnumbered(&entry.entry(), &mut line);
        let (start, end) = (start.index(line.len()), end.index(line.len()));
        let mut damaged = line.clone();
        damaged.splice(start.min(end)..start.max(end).min(start.min(end) + 4), patch);
        if let Ok(entry) = jsonl::parse_line(&damaged) {
            prop_assert!(entry.entry().measure().is_ok());
        }
    }

    #[test]
    fn a_refusal_does_not_repeat_a_value(field in 0_usize..17, value in prop_oneof![
        Just(r#""5ecret""#), Just(r#"["5ecret",5]"#), Just(r#"{"5ecret":1}"#), Just("5.123456"), Just("-51234"), Just(r#""5ecret"#),
    ]) {
        let names = super::field::names(true);
        let name = names.split(", ").nth(field).unwrap();
        if let Err(error) = jsonl::parse_line(format!("{{\"{name}\":{value}}}").as_bytes()) {
            let reason = error.to_string();
            prop_assert!(!reason.contains("5ecret") && !reason.contains("5123") && !reason.contains("5.12"), "{reason}");
        }
    }

    #[test]
    fn lines_do_not_depend_on_how_they_arrive(
        text in vec(prop_oneof![3 => Just(b'a'), 1 => Just(b'\n'), 1 => Just(b'\r')], 0..80),
        cuts in vec((0_usize..8, any::<bool>()), 0..40),
    ) {
        let mut pieces = VecDeque::new();
        let (mut rest, mut expected_interruptions) = (&text[..], 0);
        for (length, interrupted) in cuts {
            if interrupted {
                pieces.push_back(Err(io::ErrorKind::Interrupted.into()));
                expected_interruptions += 1;
            }
            let (piece, tail) = rest.split_at(length.min(rest.len()));
            rest = tail;
            if !piece.is_empty() {
                pieces.push_back(Ok(piece.to_vec()));
            }
        }
        pieces.push_back(Ok(rest.to_vec()));
        let mut expected: Vec<_> =
            text.split(|&byte| byte == b'\n').map(|line| (line.len() <= 6).then(|| line.to_vec())).collect();
        if text.is_empty() || text.ends_with(b"\n") {
            expected.pop();
        }
        let (lines, interruptions) = read_all(Pieces(pieces), 6);
        prop_assert_eq!(lines, expected);
        prop_assert_eq!(interruptions, expected_interruptions);
    }
}

#[test]
fn a_line_has_no_character_that_a_terminal_obeys_and_says_the_same() {
    let obeyed = (0..=0x1f_u32)
        .chain(0x7f..=0x9f)
        .chain([0x61c, 0x200e, 0x200f])
        .chain(0x202a..=0x202e)
        .chain(0x2066..=0x2069);
    let obeyed = obeyed.filter_map(char::from_u32).collect::<String>();
    let others =
        "é\u{a0}\u{ad}\u{600}\u{61b}\u{61d}م\u{200b}\u{2010}\u{2029}\u{202f}\u{2065}\u{206a}€\u{10000}";
    let text = obeyed.chars().zip(others.chars().cycle()).flat_map(|(a, b)| [a, b]).collect::<String>();
    assert!(obeyed.chars().all(crate::is_obeyed) && !others.contains(crate::is_obeyed));
    let entry = bulla_proof::Entry::new(&text, &text).subject(&text).actor(&text);
    let mut line = Vec::new();
    jsonl::write_unnumbered(&entry, &mut line);
    let shown = std::str::from_utf8(&line).unwrap();
    assert!(!shown.trim_end_matches('\n').contains(crate::is_obeyed), "{shown:?}");
    assert!(
        shown.contains("\\u009f") && shown.contains("\\u202e") && others.chars().all(|c| shown.contains(c)),
        "{shown}"
    );
    let parsed = jsonl::parse_line(&line).unwrap();
    let again =
        [parsed.operation.as_str(), parsed.actor.as_deref().unwrap(), &parsed.subjects.as_ref().unwrap()[0]];
    assert_eq!(again, [text.as_str(); 3]);
    let value: serde_json::Value = serde_json::from_slice(&line).unwrap();
    assert_eq!(value["operation"], text);
}

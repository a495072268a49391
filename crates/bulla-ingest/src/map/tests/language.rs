//! What maps can say, where the document's examples do not show it, and what is said of those that say it wrong.

use super::*;
use proptest::prelude::*;

/// A map of JSON whose operation is `x`, and whatever else.
fn json(lines: &str) -> Map {
    let toml = format!("format = \"json\"\noperation = \"x\"\n{lines}");
    Map::parse("test", &toml).unwrap_or_else(|error| panic!("{error}\n{toml}"))
}

/// What a map that sets one field makes of `v` there, without what every entry has.
fn given(lines: &str, value: &str) -> String {
    let made = one(&json(lines), &format!("{{\"v\":{value}}}"));
    made.replace("\"operation\":\"x\",", "")
        .replace("{\"operation\":\"x\"}", "{}")
        .replace(",\"operation\":\"x\"", "")
}

#[test]
fn texts_are_of_texts_numbers_and_booleans() {
    for (value, expected) in [
        ("\"ada\"", r#"{"actor":"ada"}"#),
        ("\"\"", r#"{"actor":""}"#),
        ("42", r#"{"actor":"42"}"#),
        ("-1.5", r#"{"actor":"-1.5"}"#),
        ("true", r#"{"actor":"true"}"#),
        ("null", "{}"),
        ("[]", "`actor` would be a list, where one text is wanted (map test, line 3)"),
        ("{}", "`actor` would be an object, where text is wanted (map test, line 3)"),
    ] {
        assert_eq!(given("actor = \"{/v}\"", value), expected, "{value}");
    }
    assert_eq!(given("payload = \"a {/v}\"", r#"{"b":[1,null]}"#), r#"{"payload":"a {\"b\":[1,null]}"}"#);
}

#[test]
fn numbers_are_whole_and_within_their_bounds_and_durations_exact() {
    let status = "`status` must be a whole number from 0 to 4294967295 (map test, line 3)";
    for (value, expected) in [
        ("4294967295", r#"{"status":4294967295}"#),
        ("\"007\"", r#"{"status":7}"#),
        ("4294967296", status),
        ("-1", status),
        ("1.5", status),
        ("\"\"", status),
        ("\"0x1f\"", status),
        ("true", status),
    ] {
        assert_eq!(given("status = \"{/v}\"", value), expected, "{value}");
    }
    assert_eq!(given("size = \"{/v}\"", "18446744073709551615"), r#"{"size":18446744073709551615}"#);
    let duration = "`duration` must be a number of which from 0 to 18446744073709551615 nanoseconds come (map test, line 3)";
    for (unit, value, expected) in [
        ("s", "0.3", r#"{"duration":300000000}"#),
        ("s", "\"1.0000000019\"", r#"{"duration":1000000001}"#),
        ("ms", "1.5", r#"{"duration":1500000}"#),
        ("us", "\"7\"", r#"{"duration":7000}"#),
        ("ns", "18446744073709551615", r#"{"duration":18446744073709551615}"#),
        ("s", "18446744074", duration),
        ("s", "-1", duration),
        ("s", "\"1s\"", duration),
    ] {
        let line = format!("duration = {{ from = \"{{/v}}\", unit = \"{unit}\" }}");
        assert_eq!(given(&line, value), expected, "{value} {unit}");
    }
}

#[test]
fn times_without_a_year_are_the_last_that_is_not_more_than_a_day_ahead() {
    let line = "time = { from = \"{/v}\", format = \"%b %e %H:%M:%S\", zone = \"UTC\" }";
    for (text, expected) in [
        ("Nov 26 10:00:00", "2026-11-26T10:00:00Z"),
        ("Nov 27 10:00:00", "2026-11-27T10:00:00Z"),
        ("Nov 27 10:00:01", "2025-11-27T10:00:01Z"),
        ("Jan  1 00:00:00", "2026-01-01T00:00:00Z"),
        ("Jan 1 00:00:00", "2026-01-01T00:00:00Z"),
        ("Dec 31 23:59:59", "2025-12-31T23:59:59Z"),
        ("Feb 29 00:00:00", "2024-02-29T00:00:00Z"),
    ] {
        assert_eq!(given(line, &format!("\"{text}\"")), format!("{{\"time\":\"{expected}\"}}"), "{text}");
    }
    // Across the turn of the year, from either side.
    let map = json(line);
    let time = |now: &str, text: &str| {
        let now = bulla_text::time::parse_time(now).unwrap();
        let fields = Value::Object(vec![("v".into(), Value::text(text))]);
        map.apply(b"", &fields, &Context { now }).unwrap().time.unwrap()
    };
    let parse = |text| bulla_text::time::parse_time(text).unwrap();
    assert_eq!(time("2026-12-31T23:59:00Z", "Jan  1 00:00:30"), parse("2027-01-01T00:00:30Z"));
    assert_eq!(time("2027-01-01T00:00:30Z", "Dec 31 23:59:00"), parse("2026-12-31T23:59:00Z"));
    // A day of the week says which year it can have been.
    let line = "time = { from = \"{/v}\", format = \"%a %b %e %H:%M\", zone = \"UTC\" }";
    assert_eq!(given(line, "\"Tue Nov 26 09:00\""), r#"{"time":"2024-11-26T09:00:00Z"}"#);
}

#[test]
fn zones_are_the_maps_or_the_users_and_abbreviations_have_to_be_theirs() {
    let read = |zone: &str, text: &str| {
        let line =
            format!("time = {{ from = \"{{/v}}\", format = [\"%F %T %Z\", \"%F %T\"], zone = \"{zone}\" }}");
        given(&line, &format!("\"{text}\""))
    };
    assert_eq!(read("-09:30", "2026-11-26 09:00:00"), r#"{"time":"2026-11-26T18:30:00Z"}"#);
    assert_eq!(read("UTC", "2026-11-26 09:00:00 UTC"), r#"{"time":"2026-11-26T09:00:00Z"}"#);
    let wrong = "`time` ends with the abbreviation of a zone that is not the one of the map's `zone`: set `zone` to the clock's (map \
                 test, line 3)";
    assert_eq!(read("UTC", "2026-11-26 09:00:00 CET"), wrong);
    let mut map = json("time = { from = \"{/v}\", format = \"%F %T\", zone = \"local\" }");
    assert_eq!(
        one(&map, r#"{"v":"2026-11-26 09:00:00"}"#),
        r#"{"time":"2026-11-26T09:00:00Z","operation":"x"}"#
    );
    assert!(map.set_local_zone("+01:00") && !map.set_local_zone("nowhere"));
    assert_eq!(
        one(&map, r#"{"v":"2026-11-26 09:00:00"}"#),
        r#"{"time":"2026-11-26T08:00:00Z","operation":"x"}"#
    );
    if time::read_zone("Europe/Berlin").is_none() {
        println!("not tested: clocks that are put back, because the system knows no time zones");
        return;
    }
    for (text, expected) in [
        ("2026-07-01 09:00:00 CEST", "2026-07-01T07:00:00Z"),
        ("2026-10-25 02:30:00", "2026-10-25T00:30:00Z"),
        ("2026-10-25 02:30:00 CEST", "2026-10-25T00:30:00Z"),
        ("2026-10-25 02:30:00 CET", "2026-10-25T01:30:00Z"),
        ("2026-03-29 02:30:00", "2026-03-29T01:30:00Z"),
    ] {
        assert_eq!(read("Europe/Berlin", text), format!("{{\"time\":\"{expected}\"}}"), "{text}");
    }
    assert_eq!(read("Europe/Berlin", "2026-07-01 09:00:00 CET"), wrong);
}

#[test]
fn leap_seconds_are_refused_and_seconds_that_look_like_them_are_not() {
    let leap = "`time` is a leap second (`:60`), which a time that counts the seconds since 1970 cannot say (map test, line 3)";
    for (format, text, expected) in [
        ("%F %T %z", "2016-12-31 23:59:60 +0000", leap),
        ("%H%M%S %F %z", "235960 2016-12-31 +0000", leap),
        ("%F %T%.f %z", "2016-12-31 23:59:60.5 +0000", leap),
        (
            "%F %T %z",
            "2016-12-31 23:60:59 +0000",
            "`time` is in none of the formats that the map has for it (map test, line 3)",
        ),
        ("%F %T%.f %z", "2016-12-31 23:59:59.60 +0000", r#"{"time":"2016-12-31T23:59:59.6Z"}"#),
        ("%F %T %z", "2016-12-31 23:59:59 +0000", r#"{"time":"2016-12-31T23:59:59Z"}"#),
    ] {
        let line = format!("time = {{ from = \"{{/v}}\", format = \"{format}\" }}");
        assert_eq!(given(&line, &format!("\"{text}\"")), expected, "{text}");
    }
}

#[test]
fn unix_times_are_exact_and_within_range() {
    for (format, value, expected) in [
        ("unix", "\"1339518083.107412\"", r#"{"time":"2012-06-12T16:21:23.107412Z"}"#),
        ("unix", "1339518083.107412", r#"{"time":"2012-06-12T16:21:23.107412Z"}"#),
        ("unix-ms", "1339518083107", r#"{"time":"2012-06-12T16:21:23.107Z"}"#),
        ("unix-ns", "\"-1\"", r#"{"time":"1969-12-31T23:59:59.999999999Z"}"#),
        ("unix", "9999999999999", "`time` is not between the years 1677 and 2262 (map test, line 3)"),
        ("unix", "\"now\"", "`time` is in none of the formats that the map has for it (map test, line 3)"),
    ] {
        let line = format!("time = {{ from = \"{{/v}}\", format = \"{format}\" }}");
        assert_eq!(given(&line, value), expected, "{value}");
    }
}

#[test]
fn subjects_are_those_of_all_places_each_once() {
    for (line, value, expected) in [
        ("subject = \"{/v}\"", r#"["a","b","a",null]"#, r#"{"subject":["a","b"]}"#),
        (
            "subject = [\"{/v/*/id|/v/*/name}\", \"c\"]",
            r#"[{"name":"a"},{"id":"b"}]"#,
            r#"{"subject":["b","c"]}"#,
        ),
        (
            "subject = { from = \"{/v}\", default = \"nobody known\" }",
            "null",
            r#"{"subject":"nobody known"}"#,
        ),
        ("subject = { from = \"{/v}\", table = { a = \"b\" } }", "\"a\"", r#"{"subject":"b"}"#),
        ("subject = []", "1", r#"{"subject":[]}"#),
        (
            "subject = \"{/v}\"",
            "[[1]]",
            "`subject` would be a list, where one text is wanted (map test, line 3)",
        ),
    ] {
        assert_eq!(given(line, value), expected, "{line}");
    }
    let many = format!("[{}]", (0..65).map(|number| number.to_string()).collect::<Vec<_>>().join(","));
    assert_eq!(given("subject = \"{/v}\"", &many), "`subject` names more than 64 data subjects (map test)");
}

#[test]
fn the_rest_is_what_no_field_has_as_it_is() {
    let map = json(
        "actor = \"{/a/name|/a/id}\"\nstatus = { from = \"{/s}\", table = { ok = 0 } }\nclient = \"{/ips/0}\"\npayload = \"{rest}\"",
    );
    for (record, expected) in [
        (r#"{"a":{"name":"n","id":1},"s":"ok","ips":["i"]}"#, r#"{"a":{"id":1},"s":"ok","ips":["i"]}"#),
        (r#"{"a":{"id":1},"s":"no","z":{}}"#, r#"{"s":"no","z":{}}"#),
        (r#"{"a":{},"z":null}"#, r#"{"a":{},"z":null}"#),
    ] {
        let fields = map.explain(record.as_bytes(), &parsed(record), &Context { now: NOW }).entry.unwrap();
        assert_eq!(String::from_utf8(fields.payload.unwrap()).unwrap(), expected, "{record}");
    }
    assert_eq!(one(&map, r#"{"a":{"name":"n"}}"#), r#"{"operation":"x","actor":"n"}"#);
    // A text of which a part is missing is none, and takes nothing.
    let map = json("location = \"{/a}/{/b}\"\npayload = \"{rest}\"");
    assert_eq!(one(&map, r#"{"a":1}"#), r#"{"operation":"x","payload":"{\"a\":1}"}"#);
    let map = json("payload = { members = [\"/a/b\", \"/c\"] }");
    assert_eq!(
        one(&map, r#"{"a":{"b":1,"x":2},"c":[3],"d":4}"#),
        r#"{"operation":"x","payload":"{\"a\":{\"b\":1},\"c\":[3]}"}"#
    );
    assert_eq!(one(&map, r#"{"a":5,"d":4}"#), r#"{"operation":"x"}"#);
}

fn parsed(record: &str) -> Value<'static> {
    let mut parser = Parser::new(Format::Json, &FormatOptions::default());
    match parser.parse(record.as_bytes()).unwrap() {
        Parsed::Fields(fields) => fields.into_owned(),
        Parsed::Header => unreachable!("JSON has no header"),
    }
}

#[test]
fn pointers_are_those_of_rfc_6901() {
    // Section 5.
    let record =
        r#"{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\j":5,"k\"l":6," ":7,"m~n":8}"#;
    let record = parsed(record);
    for (text, expected) in [
        ("/foo/0", Some("bar")),
        ("/", Some("0")),
        ("/a~1b", Some("1")),
        ("/c%d", Some("2")),
        ("/e^f", Some("3")),
        ("/g|h", Some("4")),
        ("/i\\j", Some("5")),
        ("/k\"l", Some("6")),
        ("/ ", Some("7")),
        ("/m~0n", Some("8")),
        ("/foo/2", None),
        ("/foo/00", None),
        ("/foo/-", None),
        ("/foo/bar", None),
        ("/foo/0/1", None),
    ] {
        let found = pointer::Pointer::parse(text).unwrap();
        let found = found.find(&record).map(|value| match value {
            Value::Text(text) => text.to_string(),
            Value::Unsigned(number) => number.to_string(),
            other => panic!("{other:?}"),
        });
        assert_eq!(found.as_deref(), expected, "{text}");
    }
    for wrong in ["", "foo", "/~", "/~2", "/a/b~"] {
        assert!(pointer::Pointer::parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_refusal_names_the_field_and_the_line_and_never_a_value() {
    let secret = "hunter2";
    for line in [
        "time = \"{/v}\"",
        "status = \"{/v}\"",
        "duration = { from = \"{/v}\", unit = \"s\" }",
        "size = \"{/v/0}\"",
        "actor = \"{/w}\"",
    ] {
        let record = format!(r#"{{"v":"{secret}","w":["{secret}"]}}"#);
        let map = json(line);
        let made = one(&map, &record);
        assert!(!made.contains(secret), "{made}");
        let explained = map.explain(record.as_bytes(), &parsed(&record), &Context { now: NOW });
        assert!(
            explained.fields.iter().all(|field| !format!("{:?}", field.outcome).contains(secret)),
            "{explained}"
        );
    }
}

#[test]
fn what_is_unparsed_is_kept_where_the_map_says_so() {
    let map = json("on_unparsed = \"raw\"\nstatus = \"{/v}\"");
    assert_eq!(one(&map, r#"{"v":"x"}"#), r#"{"operation":"unparsed","payload":"{\"v\":\"x\"}"}"#);
    assert_eq!(one(&map, "no JSON"), r#"{"operation":"unparsed","payload":"no JSON"}"#);
    assert_eq!(json("").unparsed(b"x", &Context { now: NOW }), None);
    let long = vec![b'x'; bulla_proof::entry::MAX_PAYLOAD + 1];
    assert_eq!(map.unparsed(&long, &Context { now: NOW }), None);
}

#[test]
fn an_explanation_shows_each_field_with_its_line_and_no_character_that_a_terminal_obeys() {
    let toml = "format = \"json\"\nactor = \"{/who}\"\n\n[[when]]\npresent = \"/did\"\noperation = \"{/did}\"\nstatus = \"{/code}\"\n\
                time = \"{/at}\"\nclient = \"{/ip}\"\n";
    let map = Map::parse("test", toml).unwrap();
    let record = r#"{"did":"read","who":"\u001b[31mada","code":"x","at":"2026-11-26T10:00:00+01:00"}"#;
    let explained = map.explain(record.as_bytes(), &parsed(record), &Context { now: NOW });
    assert_eq!(explained.rule, Some(4));
    assert_eq!(
        explained.to_string(),
        "rule of line 4\n\
         time       line 8    2026-11-26T09:00:00Z\n\
         operation  line 6    read\n\
         actor      line 2    \\u{1b}[31mada\n\
         client     line 9    - (the record has none)\n\
         status     line 7    ! must be a whole number from 0 to 4294967295\n\
         refused: `status` must be a whole number from 0 to 4294967295 (map test, line 7)\n"
    );
    let explained = map.explain(b"{}", &parsed("{}"), &Context { now: NOW });
    assert_eq!(explained.to_string(), "refused: no rule of the map holds for the record (map test)\n");
}

#[test]
fn whatever_is_wrong_with_a_map_is_said_of_its_line_and_column() {
    for (toml, expected) in [
        ("", "test:1:1: `format` is missing: what the records are, one of raw, json,"),
        ("format = \"jsonl\"", "test:1:10: there is no format \"jsonl\"; did you mean \"json\"?"),
        ("format = \"json\"\n", "test:1:1: `operation` is missing, which every entry has: what was done"),
        ("format = \"json\"\noperation = ", "test:2:13: this is no TOML: "),
        ("format = \"json\"\noperation = \"é{/a~}\"", "test:2:18: `~` stands before 0"),
        (
            "format = \"json\"\noperation = 'x'\n[is]\n\"user\" = 1",
            "test:4:1: a JSON pointer begins with `/`, and this names members: `is` = { \"/NAME\" = … }",
        ),
        (
            "format = \"json\"\noperation = 'x'\nmatches = '/a'",
            "test:3:11: `matches` is a string; it has to be a table",
        ),
        (
            "format = \"json\"\noperation = 'x'\nmatches = { '/a' = '(?<raw>a)' }",
            "test:3:20: a group cannot be called `raw`",
        ),
        (
            "format = \"json\"\n[[when]]\noperation = 'x'\n[[when]]\noperation = 'y'",
            "test:2:1: this rule holds for every record",
        ),
        ("format = \"json\"\n[[when]]\nis = { '/a' = 1 }", "test:2:1: `operation` is missing"),
        (
            "format = \"json\"\n[[when]]\nrefuse = 'no'\nactor = 'x'",
            "test:4:9: a rule that refuses makes no entry: `actor` is of no use",
        ),
        (
            "format = \"json\"\nwhen = { is = 1 }",
            "test:2:8: rules are tables, each under a header of its own: [[when]]",
        ),
        (
            "format = \"json\"\n[[when]]\nopration = 'x'",
            "test:3:1: there is no key `opration` in a rule; did you mean `operation`?",
        ),
        (
            "format = \"json\"\noperation = { form = '{/a}' }",
            "test:2:15: there is no key `form` in this field; did you mean `from`?",
        ),
        (
            "format = \"json\"\noperation = { table = { a = 'b' } }",
            "test:2:13: `from` is missing: where the value comes from",
        ),
        (
            "format = \"json\"\noperation = 'x'\npayload = { members = ['/a/*'] }",
            "test:3:24: `*` is each item of a list",
        ),
        (
            "format = \"json\"\noperation = 'x'\npayload = { members = '/a', default = 'x' }",
            "test:3:39: `members` and `default` cannot both be there",
        ),
        (
            "format = \"json\"\noperation = 'x'\nmultiline = { lines = 5 }",
            "test:3:13: `multiline` wants one of these",
        ),
        (
            "format = \"raw\"\noperation = 'x'\nmultiline = { begins = 'a', lines = 0 }",
            "test:3:37: `lines` has to be a whole number from 1 to 100000",
        ),
        (
            "format = \"csv\"\noperation = 'x'\nmultiline = { begins = 'a' }",
            "test:3:13: records of the format \"csv\" say themselves where they end",
        ),
        (
            "format = \"csv\"\noperation = 'x'\ndelimiter = ';;'",
            "test:3:13: `delimiter` has to be one ASCII character",
        ),
        (
            "format = \"json\"\noperation = 'x'\ntime = { from = '{/t}', format = 'yesterday' }",
            "test:3:34: `format` has to be \"rfc3339\"",
        ),
        (
            "format = \"json\"\noperation = 'x'\ntime = { from = '{/t}', format = '%F %Z %T' }",
            "test:3:34: the abbreviation of a zone can be read at the end only",
        ),
        (
            "format = \"json\"\noperation = 'x'\ntime = { from = '{/t}', format = '%F %J' }",
            "test:3:34: there is no conversion `%J` of times",
        ),
    ] {
        let error = Map::parse("test", toml).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{toml}\n{error}\n{expected}");
    }
    let long = format!("format = \"json\" # {}", "x".repeat(1 << 20));
    assert!(Map::parse("test", &long).unwrap_err().to_string().contains("longer than 1048576 bytes"));
}

proptest! {
    /// Whatever text a record holds comes out of a map byte for byte.
    #[test]
    fn text_is_never_rewritten(text in "\\PC*") {
        let fields = Value::Object(vec![("v".into(), Value::text(&text))]);
        let map = json("actor = \"{/v}\"\nlocation = \"a{/v}b\"\nsubject = \"{/v}\"");
        let entry = map.apply(b"", &fields, &Context { now: NOW }).unwrap();
        prop_assert_eq!(entry.actor.as_deref(), Some(&*text));
        prop_assert_eq!(entry.location, Some(format!("a{text}b").into_bytes()));
        prop_assert_eq!(entry.subjects, Some(vec![text]));
    }

    /// Whatever a map is, it is read or refused for something that is in it.
    #[test]
    fn any_text_is_a_map_or_none(line in "\\PC{0,40}") {
        fuzzing::map(format!("format = \"json\"\noperation = \"{{/a}}\"\n{line}\n=====\n{{\"a\":1}}").as_bytes());
    }
}

/// A map that repeats a long record holds no more of it than the field may have, and says so with its line.
#[test]
fn what_is_joined_is_held_up_to_the_limit_of_its_field() {
    let toml = |field: &str, more: &str| {
        format!("format = \"json\"\noperation = \"x\"\n{field} = '{}{more}'", "{raw}".repeat(150))
    };
    let record = format!("{{}}{}", " ".repeat(1 << 20));
    for (field, limit) in [("payload", 16_777_216), ("location", 65_536)] {
        let map = Map::parse("test", &toml(field, "")).unwrap();
        assert_eq!(one(&map, &record), format!("`{field}` is longer than {limit} bytes (map test, line 3)"));
        // Of a place that has nothing there is none of it all, still.
        let map = Map::parse("test", &toml(field, "{/nothing}")).unwrap();
        assert_eq!(one(&map, &record), r#"{"operation":"x"}"#);
        let fits = one(&Map::parse("test", &toml(field, "")).unwrap(), "{}");
        assert_eq!(fits, format!(r#"{{"operation":"x","{field}":"{}"}}"#, "{}".repeat(150)));
    }
}

#[test]
fn a_map_that_can_never_work_is_refused_where_it_says_so() {
    let whole = "this value must be a whole number from 0 to 4294967295";
    let duration = "this value must be a number of which from 0 to 18446744073709551615 nanoseconds come";
    for (format, line, expected) in [
        ("json", r#"status = "ok""#, format!("3:10: {whole}")),
        ("json", "status = 4294967296", format!("3:10: {whole}")),
        ("json", r#"status = { from = "{/a}", table = { a = 1, b = "ok" } }"#, format!("3:48: {whole}")),
        ("json", r#"status = { from = "{/a}", default = "ok" }"#, format!("3:37: {whole}")),
        (
            "json",
            r#"duration = { from = "{/a}", unit = "s", default = "long" }"#,
            format!("3:51: {duration}"),
        ),
        (
            "raw",
            r#"actor = "by {/line}""#,
            "3:14: records of the format \"raw\" have no member `/line`; there are record".to_owned(),
        ),
        (
            "combined",
            r#"actor = "{/user|/clinet}""#,
            "3:17: records of the format \"combined\" have no member `/clinet`; did you mean `/client`?"
                .to_owned(),
        ),
        (
            "common",
            r#"present = "/agnet""#,
            "3:12: records of the format \"common\" have no member `/agnet`; there are ".to_owned(),
        ),
        (
            "syslog",
            r#"matches = { "/mesage" = "x" }"#,
            "3:13: records of the format \"syslog\" have no member `/mesage`; did you mean `/message`?"
                .to_owned(),
        ),
    ] {
        let toml = format!("format = \"{format}\"\noperation = \"x\"\n{line}\n");
        let error = Map::parse("test", &toml).unwrap_err().to_string();
        assert!(error.starts_with(&format!("test:{expected}")), "{line}\n{error}");
    }
    let columns = "format = \"csv\"\ncolumns = [\"who\", \"did\"]\noperation = \"{/dit}\"";
    let error = Map::parse("test", columns).unwrap_err().to_string();
    assert!(error.contains("no member `/dit`; did you mean `/did`?"), "{error}");
    for toml in [
        "format = \"json\"\noperation = \"x\"\nstatus = { from = \"ok\", table = { ok = 0 }, default = 1 }",
        "format = \"json\"\noperation = \"x\"\nduration = { from = \"1.5\", unit = \"s\" }",
        "format = \"csv\"\noperation = \"{/whatever}\"",
        "format = \"syslog\"\noperation = \"{/structured/a@1/b}\"",
    ] {
        Map::parse("test", toml).unwrap();
    }
}

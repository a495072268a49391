//! JSON of any shape, and journald's.

use super::{Format, json, refused};
use crate::Value;
use crate::format::json::MAX_VALUES;

#[test]
fn an_object_of_any_shape_is_read_and_nothing_of_it_is_changed() {
    for record in [
        r#"{}"#,
        r#"{"a":null,"b":[true,false,[],{}],"c":{"d":{"e":"f"}},"":""}"#,
        r#"{"max":18446744073709551615,"min":-9223372036854775808,"zero":0,"half":0.5,"é":"\u0001\"\\"}"#,
    ] {
        assert_eq!(json(Format::Json, record), record);
    }
    assert_eq!(json(Format::Json, " { \"a\" : \"\\u00e9\\ud83d\\ude00\\/\" }\r"), r#"{"a":"é😀/"}"#);
    assert_eq!(json(Format::Json, "\u{feff}{\"a\":1e2}"), r#"{"a":100.0}"#);
}

#[test]
fn what_is_no_object_or_ambiguous_is_refused_without_its_values() {
    for (record, reason) in [
        ("", "the line is empty"),
        ("[1]", "the line is not a JSON object"),
        ("\"secret\"", "the line is not a JSON object"),
        ("secret", "the line is not JSON at column 1: expected value"),
        ("{\"a\":1}{", "the line is not JSON at column 8: trailing characters"),
        ("{\"a\":\"secret", "the line is not JSON at column 12: EOF while parsing a string"),
        ("{\"a\":\"\\ud800\"}", "the line is not JSON at column 13: unexpected end of hex escape"),
        ("{\"a\":1e999}", "the line is not JSON at column 10: number out of range"),
        ("{\"a\":1,\"a\":2}", "a name is given twice: its second one ends at column 10"),
        ("{\"a\":{\"b\":1,\"\\u0062\":2}}", "a name is given twice: its second one ends at column 20"),
        ("{\n\"a\":x}", "the record is not JSON at line 2, column 5: expected value"),
    ] {
        assert_eq!(refused(Format::Json, record).to_string(), reason, "{record}");
    }
    let bytes = refused(Format::Json, b"{\"a\":\"\xff\"}").to_string();
    assert_eq!(bytes, "the line is not JSON at column 7: invalid unicode code point");
}

#[test]
fn how_deep_and_how_much_is_bounded() {
    let nested = |depth: usize| format!("{{\"a\":{}1{}}}", "[".repeat(depth), "]".repeat(depth));
    json(Format::Json, nested(126));
    let reason = refused(Format::Json, nested(127)).to_string();
    assert!(reason.contains("recursion limit exceeded"), "{reason}");
    refused(Format::Json, nested(1_000_000));
    let list = |length: usize| format!("{{\"a\":[{}0]}}", "0,".repeat(length - 1));
    json(Format::Json, list(MAX_VALUES - 1));
    let reason = refused(Format::Json, list(MAX_VALUES)).to_string();
    assert!(reason.starts_with("there are more than 262144 values at column "), "{reason}");
    // As many names, each compared with few others.
    let names = (0..MAX_VALUES - 1).map(|number| format!("\"{number}\":0")).collect::<Vec<_>>().join(",");
    json(Format::Json, format!("{{{names}}}"));
    let twice = refused(Format::Json, format!("{{{names},\"5\":0}}")).to_string();
    assert!(twice.starts_with("a name is given twice: its second one ends at column "), "{twice}");
}

/// `journalctl -o json` of systemd 252, and what its documentation says of fields that are no text or repeat (journalctl(1), "json").
#[test]
fn the_journal_s_json_has_bytes_as_numbers_and_repeats_as_lists() {
    let entry = r#"{"_HOSTNAME":"h","__REALTIME_TIMESTAMP":"1764154800123456","PRIORITY":"6","_PID":"712","SYSLOG_IDENTIFIER":"sshd","MESSAGE":"Accepted publickey for ada"}"#;
    assert_eq!(json(Format::JournalJson, entry), entry);
    let fields = r#"{"MESSAGE":[104,195,169],"RAW":[255,0],"TWICE":["a",[255],"b"],"LONG":null,"NONE":[]}"#;
    assert_eq!(
        json(Format::JournalJson, fields),
        r#"{"MESSAGE":"hé","RAW":[255,0],"TWICE":["a",[255],"b"],"LONG":null,"NONE":[]}"#
    );
    let many = format!("{{\"A\":[{}255]}}", "1,".repeat(2 * MAX_VALUES));
    json(Format::JournalJson, many);
    let reason = refused(Format::JournalJson, r#"{"A":[1,256]}"#).to_string();
    assert!(reason.starts_with("a list of numbers has one that is no byte"), "{reason}");
    let reason = refused(Format::JournalJson, r#"{"A":[1,"a"]}"#).to_string();
    assert!(reason.starts_with("a list of numbers has something else in it"), "{reason}");
}

/// The example of systemd's description of the format (JOURNAL_EXPORT_FORMATS), shortened by fields that are like others.
#[test]
fn the_journal_s_export_has_fields_of_text_and_of_a_length() {
    let text = b"__CURSOR=s=739ad463348b4ceca5a9e69c95a3c93f;i=4ece7;b=6c7c6013a26343b29e964691ff25d04c\n\
        __REALTIME_TIMESTAMP=1342540861416409\n_PID=8278\n\
        MESSAGE=Removed slice [systemd-user-sessions.service].\nTWICE=1\nTWICE=2\nTWICE=3\n";
    assert_eq!(
        json(Format::JournalExport, text),
        r#"{"__CURSOR":"s=739ad463348b4ceca5a9e69c95a3c93f;i=4ece7;b=6c7c6013a26343b29e964691ff25d04c","#
            .to_owned()
            + r#""__REALTIME_TIMESTAMP":"1342540861416409","_PID":"8278","#
            + r#""MESSAGE":"Removed slice [systemd-user-sessions.service].","TWICE":["1","2","3"]}"#
    );
    let binary = b"MESSAGE\n\x07\0\0\0\0\0\0\0foo\nbar\nRAW\n\x01\0\0\0\0\0\0\0\xff\nEMPTY=\n";
    assert_eq!(json(Format::JournalExport, binary), r#"{"MESSAGE":"foo\nbar","RAW":[255],"EMPTY":""}"#);
    assert_eq!(json(Format::JournalExport, b"A=1"), r#"{"A":"1"}"#);
    for (record, reason) in [
        (&b""[..], "the record is empty"),
        (b"=1\n", "there is no name of a field at column 1"),
        (b"A=1\nsecret stuff=1\n", "there is no name of a field at column 5"),
        (
            b"A=1\nMESSAGE\n\x08\0\0\0\0\0\0\0foo\nbar\n",
            "the field does not end where its length says, which begins at column 5",
        ),
        (b"MESSAGE", "the field does not end where its length says, which begins at column 1"),
        (
            b"M\n\xff\xff\xff\xff\xff\xff\xff\xff",
            "the field does not end where its length says, which begins at column 1",
        ),
    ] {
        assert_eq!(refused(Format::JournalExport, record).to_string(), reason);
    }
}

#[test]
fn a_value_is_found_by_its_name_and_owned_when_asked() {
    let Value::Object(members) = serde_free() else { unreachable!() };
    assert_eq!(members.len(), 2);
    assert_eq!(serde_free().get("b"), Some(&Value::List(vec![Value::Bytes((&[255_u8][..]).into())])));
    assert_eq!((serde_free().get("c"), Value::Null.get("a")), (None, None));
    assert_eq!(serde_free().into_owned(), serde_free());
    let mut json = Vec::new();
    Value::List(vec![Value::Float(f64::NAN), Value::Float(1.5), Value::Signed(-1)]).write_json(&mut json);
    assert_eq!(json, b"[null,1.5,-1]");
}

fn serde_free() -> Value<'static> {
    let list = Value::List(vec![Value::from_bytes(b"\xff")]);
    Value::Object(vec![("a".into(), Value::text("x")), ("b".into(), list)])
}

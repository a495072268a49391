//! What commands teach.

use crate::fuzzing::ALL;
use crate::resp::Replies;
use crate::subject::{Answer, JsonPath, Lesson, Taught, Words, says_gone, was_done};

/// The words of a command as they are typed; `<cut>` is one that is not kept as a whole.
struct Typed(Vec<Option<Vec<u8>>>);

fn typed(command: &str) -> Typed {
    let word = |word: &str| (word != "<cut>").then(|| word.as_bytes().to_vec());
    Typed(command.split(' ').map(word).collect())
}

fn name(command: &str) -> String {
    command.split(' ').next().unwrap().to_ascii_lowercase()
}

impl Words for Typed {
    fn count(&self) -> u64 {
        self.0.len() as u64
    }

    fn word(&self, index: u64) -> Option<&[u8]> {
        self.0.get(usize::try_from(index).ok()?)?.as_deref()
    }
}

fn read(lesson: &Lesson, command: &str, key: u64) -> Taught {
    lesson.read(&name(command), key, &typed(command), Answer::Integer(43))
}

fn subject(text: &str) -> Taught {
    Taught::Subject(text.as_bytes().to_vec())
}

#[test]
fn a_field_of_a_hash_says_whose_it_is() {
    let lesson = Lesson::HashField("USR".to_owned());
    for (command, expected) in [
        ("HSET key1 USR ada", subject("ada")),
        ("HSET key1 PUR x USR ada DATA y", subject("ada")),
        ("HSET key1 USR ada USR bob", subject("bob")),
        ("HSET key1 PUR USR ada", Taught::Nothing),
        ("HSET key1 usr ada", Taught::Nothing),
        ("HMSET key1 A b USR ada", subject("ada")),
        ("HSETNX key1 USR ada", subject("ada")),
        ("HSETEX key1 FNX EX 10 FIELDS 2 A b USR ada", subject("ada")),
        ("HSETEX key1 fields 1 USR ada", subject("ada")),
        ("HSETEX key1 EX 10", Taught::Nothing),
        ("HINCRBY key1 USR 1", subject("43")),
        ("HINCRBY key1 N 1", Taught::Nothing),
        ("HINCRBY key1 <cut> 1", Taught::Unknown),
        ("HSET key1", Taught::Nothing),
        ("HSET key1 USR", Taught::Nothing),
        ("HSET key1 USR <cut>", Taught::Unknown),
        ("HSET key1 <cut> x USR ada", Taught::Unknown),
        ("HSET key1 USR ada <cut> x", Taught::Unknown),
        ("SET key1 USR", Taught::Unknown),
        ("SUNIONSTORE key1 a b", Taught::Unknown),
        ("APPEND key1 a", Taught::Nothing),
    ] {
        assert_eq!(read(&lesson, command, 1), expected, "{command}");
    }
    let empty = [&b"hset"[..], b"k", b"USR", b""].map(<[u8]>::to_vec);
    assert_eq!(lesson.read("hset", 1, &Typed(empty.map(Some).to_vec()), Answer::Integer(1)), Taught::Unknown);
}

#[test]
fn a_place_in_json_says_whose_it_is() {
    let lesson = Lesson::Json(JsonPath::parse("$.user.id").unwrap());
    for (command, key, expected) in [
        (r#"SET doc {"user":{"name":"x","id":"ada"},"n":1}"#, 1, subject("ada")),
        (r#"SET doc {"user":{"id":42}} EX 5"#, 1, subject("42")),
        (r#"SET doc {"user":{"id":-7}}"#, 1, subject("-7")),
        (r#"SET doc {"user":{"id":18446744073709551615}}"#, 1, subject("18446744073709551615")),
        (r#"SET doc {"user":{"id":"a\u00e4\n"}}"#, 1, subject("aä\n")),
        (r#"SET doc {"user":{"id":"a"},"user":{"id":"b"}}"#, 1, subject("b")),
        (r#"SET doc {"user":{"id":"a"},"user":7}"#, 1, Taught::Unknown),
        (r#"SET doc {"id":"ada","other":{"user":{"id":"x"}}}"#, 1, Taught::Unknown),
        (r#"SET doc {"user":{"id":18446744073709551616}}"#, 1, Taught::Unknown),
        (r#"SET doc {"user":{"id":1.5}}"#, 1, Taught::Unknown),
        (r#"SET doc {"user":{"id":""}}"#, 1, Taught::Unknown),
        (r#"SET doc {"user":{"id":null}}"#, 1, Taught::Unknown),
        (r#"SET doc {"user":{"id":["ada"]}}"#, 1, Taught::Unknown),
        (r#"SET doc {"user":[{"id":"ada"}]}"#, 1, Taught::Unknown),
        (r#"SET doc {"user":{"id":"ada"}}x"#, 1, Taught::Unknown),
        (r#"SET doc {"user":{"id":"ada"}"#, 1, Taught::Unknown),
        ("SET doc <cut>", 1, Taught::Unknown),
        (r#"SETEX doc 5 {"user":{"id":"ada"}}"#, 1, subject("ada")),
        (r#"SETRANGE doc 0 {"user":{"id":"ada"}}"#, 1, subject("ada")),
        ("SETRANGE doc 0 x", 1, Taught::Unknown),
        ("APPEND doc x", 1, Taught::Nothing),
        (r#"MSET a 1 doc {"user":{"id":"ada"}}"#, 3, subject("ada")),
        (r#"MSET a 1 doc {"user":{"id":"ada"}}"#, 1, Taught::Unknown),
        (r#"JSON.SET doc $ {"user":{"id":"ada"}}"#, 1, subject("ada")),
        (r#"JSON.SET doc . {"user":{"id":"ada"}}"#, 1, subject("ada")),
        (r#"JSON.SET doc $.user {"id":"ada"} XX"#, 1, subject("ada")),
        (r#"JSON.SET doc user {"id":"ada"}"#, 1, subject("ada")),
        (r#"JSON.SET doc .user.id "ada""#, 1, subject("ada")),
        (r#"JSON.SET doc $.user.id {"id":"ada"}"#, 1, Taught::Unknown),
        (r#"JSON.SET doc $.user.id.more "ada""#, 1, Taught::Nothing),
        (r#"JSON.SET doc $.name "ada""#, 1, Taught::Nothing),
        (r#"JSON.SET doc $.name.id "ada""#, 1, Taught::Nothing),
        (r#"JSON.SET doc $..id "ada""#, 1, Taught::Unknown),
        (r#"JSON.SET doc $["user"].id "ada""#, 1, Taught::Unknown),
        (r#"JSON.SET doc $.* "ada""#, 1, Taught::Unknown),
        ("JSON.SET doc $ 1", 1, Taught::Unknown),
        ("JSON.SET doc $.user {}", 1, Taught::Unknown),
        ("JSON.SET doc <cut> {}", 1, Taught::Unknown),
        (r#"JSON.MERGE doc $ {"n":2}"#, 1, Taught::Nothing),
        (r#"JSON.MERGE doc $ {"user":{"id":"bob"}}"#, 1, subject("bob")),
        (r#"JSON.MERGE doc $ {"user":null}"#, 1, Taught::Unknown),
        (r#"JSON.MERGE doc $ {"user":{"id":{}}}"#, 1, Taught::Unknown),
        (r#"JSON.MERGE doc $ {"user":{"name":"x"}}"#, 1, Taught::Nothing),
        (r#"JSON.MSET a $ 1 doc $ {"user":{"id":"ada"}}"#, 4, subject("ada")),
        ("HSET doc user.id ada", 1, Taught::Nothing),
    ] {
        assert_eq!(read(&lesson, command, key), expected, "{command}");
    }
}

#[test]
fn json_that_is_deep_or_long_is_read_once() {
    let lesson = Lesson::Json(JsonPath::parse("$.a.a.id").unwrap());
    for text in ["[".repeat(1 << 20), "{\"a\":".repeat(1 << 18), format!("{{\"b\":{}", "[".repeat(1 << 20))] {
        let words = [b"set".to_vec(), b"k".to_vec(), text.into()];
        assert_eq!(lesson.read("set", 1, &Typed(words.map(Some).to_vec()), Answer::Other), Taught::Unknown);
    }
}

#[test]
fn a_path_is_names_alone() {
    for text in ["", "$", "$.", "user.id", "$.a..b", "$..id", "$.a[0]", "$['a']", "$.*", "$.a.$"] {
        assert!(JsonPath::parse(text).is_err(), "{text}");
    }
    assert!(JsonPath::parse(&format!("${}", ".a".repeat(32))).is_ok());
    assert!(JsonPath::parse(&format!("${}", ".a".repeat(33))).is_err());
}

#[test]
fn whether_a_write_was_done_the_answer_says() {
    for (command, answer, expected) in [
        ("SET k v", Answer::Other, Some(true)),
        ("SET k v NX", Answer::Null, Some(false)),
        ("SET k v xx", Answer::Other, Some(true)),
        ("SET k v GET", Answer::Null, Some(true)),
        ("SET k v NX GET", Answer::Null, Some(true)),
        ("SET k v NX GET", Answer::Other, Some(false)),
        ("SET k v XX GET", Answer::Null, Some(false)),
        ("SET k v XX GET", Answer::Other, Some(true)),
        ("SET k v IFEQ x GET", Answer::Other, None),
        ("SET k v IFEQ x", Answer::Null, Some(false)),
        ("SET get nx", Answer::Other, Some(true)),
        ("JSON.SET k $ 1 NX", Answer::Null, Some(false)),
        ("HSETNX k f v", Answer::Integer(0), Some(false)),
        ("HSETNX k f v", Answer::Integer(1), Some(true)),
        ("SETNX k v", Answer::Integer(0), Some(false)),
        ("COPY a b", Answer::Integer(0), Some(false)),
        ("HSET k f v", Answer::Integer(0), Some(true)),
        ("SETRANGE k 0 value", Answer::Integer(5), Some(true)),
        ("SETRANGE k 0 value", Answer::Integer(6), Some(false)),
        ("SETRANGE k 1 value", Answer::Integer(6), Some(false)),
        ("SETRANGE k 1 <cut>", Answer::Integer(6), Some(false)),
        ("SETRANGE k 0 <cut>", Answer::Integer(6), None),
    ] {
        assert_eq!(was_done(&name(command), &typed(command), answer), expected, "{command}");
    }
    let told = [
        (&b":1\r\n"[..], Answer::Integer(1)),
        (b":-2\r\n", Answer::Integer(-2)),
        (b"$-1\r\n", Answer::Null),
        (b"*-1\r\n", Answer::Null),
        (b"_\r\n", Answer::Null),
        (b"+OK\r\n", Answer::Other),
        (b"+none\r\n", Answer::NoType),
        (b"$4\r\nnone\r\n", Answer::Other),
        (b"$0\r\n\r\n", Answer::Other),
        (b"*0\r\n", Answer::Empty),
        (b"%0\r\n", Answer::Empty),
        (b"*1\r\n:0\r\n", Answer::Other),
    ];
    for (bytes, answer) in told {
        let mut replies = Replies::new(ALL);
        assert!(replies.next(bytes).unwrap().complete);
        let (node, reply) = (&replies.reply().nodes()[0], replies.reply());
        assert_eq!(Answer::of(node, reply.text(node)), answer, "{}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn what_says_that_a_key_is_gone_says_so_of_nothing_that_may_be_there() {
    use Answer::{Empty, Integer, NoType, Null, Other};
    for (command, answer) in [
        ("get", Null),
        ("getex", Null),
        ("getdel", Null),
        ("type", NoType),
        ("hgetall", Empty),
        ("exists", Integer(0)),
        ("hlen", Integer(0)),
        ("ttl", Integer(-2)),
    ] {
        assert!(says_gone(command, answer), "{command}");
    }
    for (command, answer) in [
        // A field, a member or a range that is not there is of a key that may be.
        ("hget", Null),
        ("zscore", Null),
        ("lrange", Empty),
        ("zrange", Empty),
        ("xlen", Integer(0)),
        ("strlen", Integer(0)),
        ("hexists", Integer(0)),
        ("getset", Null),
        ("set", Null),
        ("ttl", Integer(-1)),
        ("ttl", Integer(0)),
        ("hgetall", Other),
        ("get", Other),
        ("persist", Integer(0)),
        ("type", Other),
        ("rename", NoType),
    ] {
        assert!(!says_gone(command, answer), "{command} {answer:?}");
    }
}

//! The fields of an entry in JSON and MessagePack, and what is said of them to a person.

use bulla_proof::entry::MAX_SUBJECTS;

/// A field of the JSON object.
#[derive(Clone, Copy, Debug)]
pub(super) enum Field {
    Time,
    Operation,
    Location,
    LocationBase64,
    Subject,
    Controller,
    Processor,
    Purpose,
    Actor,
    Client,
    Stream,
    Status,
    Duration,
    Size,
    Flags,
    Payload,
    PayloadBase64,
}

pub(super) const STRING: &str = "a string";
const BASE64_STRING: &str = "a string of standard base64 with padding";
const WHOLE_32: &str = "a whole number from 0 to 4294967295";
const WHOLE_64: &str = "a whole number from 0 to 18446744073709551615";

/// Each field with its name and what it takes.
pub(super) const FIELDS: [(&str, Field, &str); 17] = [
    (
        "time",
        Field::Time,
        "an RFC 3339 time such as 2015-05-17T10:05:03.25Z, to the nanosecond, between the years 1677 and 2262",
    ),
    ("operation", Field::Operation, STRING),
    ("location", Field::Location, STRING),
    ("location_base64", Field::LocationBase64, BASE64_STRING),
    ("subject", Field::Subject, "a string or a list of at most 64 strings"),
    ("controller", Field::Controller, STRING),
    ("processor", Field::Processor, STRING),
    ("purpose", Field::Purpose, STRING),
    ("actor", Field::Actor, STRING),
    ("client", Field::Client, STRING),
    ("stream", Field::Stream, STRING),
    ("status", Field::Status, WHOLE_32),
    ("duration", Field::Duration, WHOLE_64),
    ("size", Field::Size, WHOLE_64),
    ("flags", Field::Flags, WHOLE_32),
    ("payload", Field::Payload, STRING),
    ("payload_base64", Field::PayloadBase64, BASE64_STRING),
];

const _: () = assert!(MAX_SUBJECTS == 64, "the text for `subject` names the limit");

/// The names of the fields, for a message: of JSON, or of what has bytes of its own.
pub(super) fn names(is_json: bool) -> String {
    let all = FIELDS.iter().map(|(name, ..)| *name);
    all.filter(|name| is_json || !name.ends_with("_base64")).collect::<Vec<_>>().join(", ")
}

/// A name that is none of a field, where it looks like a name: it may be anything else, which must not be shown.
pub(super) fn presentable(name: &str) -> Option<String> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    ((1..=32).contains(&name.len()) && name.bytes().all(is_word)).then(|| name.to_owned())
}

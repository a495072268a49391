//! The lines of [`jsonl`](crate::jsonl) as a JSON Schema.

use crate::field::{FIELDS, Field};
use bulla_proof::entry::{MAX_PAYLOAD, MAX_STRING, MAX_SUBJECTS};
use serde_json::{Map, Value, json};

/// A JSON Schema (draft 2020-12) of a line that [`parse_line`](crate::jsonl::parse_line) makes an entry of.
///
/// Each line that is an entry is valid under it. What it cannot say is said in descriptions: that lengths count bytes of UTF-8, not characters,
/// that a number is written without a fraction or an exponent, and which times there are.
pub fn of_line() -> Value {
    let properties = FIELDS.iter().map(|(name, field, _)| ((*name).to_owned(), property(*field)));
    let both = |one: &str| {
        let other = format!("{one}_base64");
        json!({ "not": {
            "required": [one, other],
            "properties": { one: { "type": "string" }, (other): { "type": "string" } },
        } })
    };
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "An entry of a Bulla log, as a line of `bulla append`",
        "description": "Absent and null are one thing; empty and 0 are others. Lengths are those in bytes of UTF-8, which a schema cannot count: \
            it counts characters.",
        "type": "object",
        "properties": properties.collect::<Map<_, _>>(),
        "required": ["operation"],
        "additionalProperties": false,
        "allOf": [both("location"), both("payload")],
    })
}

/// What a field may be, and what it is.
fn property(field: Field) -> Value {
    let text =
        |what: &str| json!({ "type": ["string", "null"], "maxLength": MAX_STRING, "description": what });
    let bytes = |most: usize, what: &str| {
        json!({
            "type": ["string", "null"],
            "contentEncoding": "base64",
            "pattern": "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
            "maxLength": most.div_ceil(3) * 4,
            "description": what,
        })
    };
    let number = |most: u64, what: &str| {
        json!({
            "type": ["integer", "null"],
            "minimum": 0,
            "maximum": most,
            "description": format!("{what}. Without a fraction or an exponent"),
        })
    };
    match field {
        Field::Time => json!({
            "type": ["string", "null"],
            "format": "date-time",
            "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})$",
            "description": "When it happened: RFC 3339 with an offset, to the nanosecond, between the years 1677 and 2262, and no leap second. \
                Absent: when it was appended",
        }),
        Field::Operation => json!({
            "type": "string",
            "minLength": 1,
            "maxLength": MAX_STRING,
            "description": "What was done: create, read, write, update, delete, or any word of the source",
        }),
        Field::Location => text("What was touched: a key, a path, a URL. Personal"),
        Field::LocationBase64 => bytes(MAX_STRING, "The location where it is not UTF-8; one of the two"),
        Field::Subject => json!({
            "type": ["string", "array", "null"],
            "maxLength": MAX_STRING,
            "maxItems": MAX_SUBJECTS,
            "items": { "type": "string", "maxLength": MAX_STRING },
            "description": "Whose data it was, one or several: by this somebody's entries are found, and erased. Empty list: nobody's. Personal",
        }),
        Field::Controller => text("Who answers for the processing, as the GDPR has it"),
        Field::Processor => text("Who processed the data"),
        Field::Purpose => text("Why"),
        Field::Actor => text("Who did it, as whoever was authenticated. Personal"),
        Field::Client => text("The address that it came from. Personal"),
        Field::Stream => text("A label, such as the source's name. Personal"),
        Field::Status => number(u32::MAX.into(), "The outcome, by the source's codes"),
        Field::Duration => number(u64::MAX, "How long it took, in nanoseconds"),
        Field::Size => number(u64::MAX, "How many bytes were touched"),
        Field::Flags => number(u32::MAX.into(), "Bits, for the source to say what of"),
        Field::Payload => json!({
            "type": ["string", "null"],
            "maxLength": MAX_PAYLOAD,
            "description": "Anything else; JSON goes there as a string. Personal",
        }),
        Field::PayloadBase64 => bytes(MAX_PAYLOAD, "The payload where it is not UTF-8; one of the two"),
    }
}

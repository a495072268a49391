//! The payload of an entry: what of an operation has no field of its own.

use crate::command::Unknowable;
use crate::session::{Operation, Stage, Target};
use std::fmt::Write;

/// Appends it, as a JSON object.
pub(super) fn describe(operation: &Operation<'_>, claims_count: bool, payload: &mut String) {
    // Nothing is written but to memory.
    let _ = write!(payload, "{{\"command\":\"");
    escape(operation.command, payload);
    let _ = write!(payload, "\",\"database\":{}", operation.database);
    if let Some(code) = operation.error {
        member("error", code, payload);
    }
    if let Some(name) = operation.certificate {
        member("certificate", name, payload);
    }
    if let Some(name) = operation.name {
        member(if claims_count { "name" } else { "claimed_name" }, name, payload);
    }
    if let Some(purpose) = operation.purpose.filter(|_| !claims_count) {
        member("claimed_purpose", purpose, payload);
    }
    match operation.stage {
        Stage::Intended => payload.push_str(",\"stage\":\"intended\""),
        Stage::Begun => payload.push_str(",\"stage\":\"begun\""),
        Stage::Over => {}
    }
    match operation.target {
        Target::Unknowable(class, script) => {
            let class = match class {
                Unknowable::Script => "script",
                Unknowable::Pattern => "pattern",
                Unknowable::Whole => "whole",
                Unknowable::Undescribed => "undescribed",
                Unknowable::TooMany => "too_many",
            };
            member("unknowable", class, payload);
            if let Some(script) = script.and_then(|script| str::from_utf8(script).ok()) {
                member("script", script, payload);
            }
        }
        Target::Unlisted(count, digest) => {
            let _ = write!(payload, ",\"unlisted\":{count}");
            if let Some(digest) = digest.filter(|_| count > 0) {
                member("reply_digest", &hexadecimal(&digest), payload);
            }
        }
        Target::Unaudited => payload.push_str(",\"unaudited\":true"),
        Target::Key { .. } | Target::Server => {}
    }
    payload.push('}');
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn member(name: &str, text: &str, payload: &mut String) {
    let _ = write!(payload, ",\"{name}\":\"");
    escape(text, payload);
    payload.push('"');
}

/// Appends a text as it stands in a string of JSON.
fn escape(text: &str, payload: &mut String) {
    for character in text.chars() {
        match character {
            '"' | '\\' => payload.extend(['\\', character]),
            '\0'..='\x1f' => drop(write!(payload, "\\u{:04x}", u32::from(character))),
            _ => payload.push(character),
        }
    }
}

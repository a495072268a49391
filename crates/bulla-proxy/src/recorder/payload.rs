//! The payload of an entry: what of an operation has no field of its own.

use crate::command::Unknowable;
use crate::resp::{Kind, Node};
use crate::session::{Operation, Stage, Target, Values};
use crate::subject::form::uncut;
use std::fmt::Write;

/// Once the values of one operation take so many bytes, no further one is recorded.
const MOST_OF_VALUES: usize = 1 << 20;

/// Appends it, as a JSON object, with so many bytes of each value.
pub(super) fn describe(
    operation: &Operation<'_>,
    claims_count: bool,
    most: Option<usize>,
    payload: &mut String,
) {
    // Nothing is written but to memory.
    payload.push_str("{\"command\":\"");
    escape(operation.command, payload);
    payload.push_str("\",\"database\":");
    match char::from_digit(operation.database, 10) {
        // As nearly always; formatting takes longer than all the rest.
        Some(digit) => payload.push(digit),
        None => drop(write!(payload, "{}", operation.database)),
    }
    if let Some(code) = operation.error {
        member("error", code, payload);
    }
    if let Some(name) = operation.certificate {
        member("certificate", name, payload);
    }
    if let Some(name) = operation.name {
        member(if claims_count { "name" } else { "claimed_name" }, name, payload);
        payload.push_str(if operation.name_is_cut { ",\"name_cut\":true" } else { "" });
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
            of_script(script, payload);
        }
        Target::Server(script) => of_script(script, payload),
        Target::Unlisted(count, digest) => {
            let _ = write!(payload, ",\"unlisted\":{count}");
            if let Some(digest) = digest.filter(|_| count > 0) {
                member("reply_digest", &hexadecimal(&digest), payload);
            }
        }
        Target::Unaudited => payload.push_str(",\"unaudited\":true"),
        Target::Key { .. } => {}
    }
    if let Some(most) = most {
        values(operation.values, most, payload);
    }
    payload.push('}');
}

/// Appends values in the form that keys have (`%` and two hexadecimal digits for bytes that are not UTF-8), and whether anything of
/// them is missing.
fn values(values: Values<'_>, most: usize, payload: &mut String) {
    let before = payload.len();
    let mut cut = false;
    let mut value = |bytes: &[u8], length: u64| {
        if payload.len() - before > MOST_OF_VALUES {
            cut = true;
            return;
        }
        let kept = &bytes[..bytes.len().min(most)];
        cut |= (kept.len() as u64) < length;
        payload.push_str(if payload.len() == before { ",\"values\":[\"" } else { ",\"" });
        escape(&uncut(kept), payload);
        payload.push('"');
    };
    let mut missing = false;
    match values {
        Values::None => {}
        Values::Carried(arguments, from, to) => {
            for index in from..to.min(arguments.count()) {
                match (arguments.get(index), arguments.argument(index)) {
                    (Some(bytes), Some(argument)) => value(bytes, argument.length),
                    _ => {
                        missing = true;
                        break;
                    }
                }
            }
        }
        Values::Told(reply, from, to) => {
            missing = reply.count() > reply.nodes().len() as u64;
            // A status by itself (`OK`) is the server's word, and nothing that it stores.
            let is_status = |node: &Node| to == from + 1 && node.kind == Kind::Simple;
            for node in reply.nodes().get(from..to).unwrap_or_default() {
                let is_value = !node.is_aggregate() && !matches!(node.kind, Kind::Null | Kind::Error);
                if is_value && !is_status(node) {
                    value(reply.text(node), node.length);
                }
            }
        }
    }
    if payload.len() > before {
        payload.push(']');
    }
    if cut || missing {
        payload.push_str(",\"values_cut\":true");
    }
}

fn of_script(name: Option<&[u8]>, payload: &mut String) {
    if let Some(name) = name.and_then(|name| str::from_utf8(name).ok()) {
        member("script", name, payload);
    }
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
    if !text.bytes().any(|byte| matches!(byte, b'"' | b'\\' | ..=0x1f)) {
        payload.push_str(text);
        return;
    }
    for character in text.chars() {
        match character {
            '"' | '\\' => payload.extend(['\\', character]),
            '\0'..='\x1f' => drop(write!(payload, "\\u{:04x}", u32::from(character))),
            _ => payload.push(character),
        }
    }
}

//! PostgreSQL's `csvlog` and, within its messages, those of pgaudit.

use super::csv::{self, Field};
use super::scan::{address_and_port, decimal};
use crate::value::Members;
use crate::{Refusal, Value};
use std::borrow::Cow;

/// The columns, as the documentation of PostgreSQL names them (20.8.4, "Using CSV-Format Log Output"). Versions 9.0 to 12 have the first
/// 23, version 13 has 24, versions from 14 on have all; and whether a column is a number.
const COLUMNS: [(&str, bool); 26] = [
    ("log_time", false),
    ("user_name", false),
    ("database_name", false),
    ("process_id", true),
    ("connection_from", false),
    ("session_id", false),
    ("session_line_num", true),
    ("command_tag", false),
    ("session_start_time", false),
    ("virtual_transaction_id", false),
    ("transaction_id", true),
    ("error_severity", false),
    ("sql_state_code", false),
    ("message", false),
    ("detail", false),
    ("hint", false),
    ("internal_query", false),
    ("internal_query_pos", true),
    ("context", false),
    ("query", false),
    ("query_pos", true),
    ("location", false),
    ("application_name", false),
    ("backend_type", false),
    ("leader_pid", true),
    ("query_id", true),
];

/// The parts of a message of pgaudit, as its documentation names them ("Format"); the last one only with `pgaudit.log_rows`.
const AUDIT: [(&str, bool); 10] = [
    ("type", false),
    ("statement_id", true),
    ("substatement_id", true),
    ("class", false),
    ("command", false),
    ("object_type", false),
    ("object_name", false),
    ("statement", false),
    ("parameter", false),
    ("rows", true),
];

/// The members of a record.
pub(super) fn members() -> impl Iterator<Item = &'static str> {
    COLUMNS.iter().map(|(name, _)| *name).chain(["client", "port", "audit"])
}

pub(super) fn parse(record: &[u8]) -> Result<Value<'_>, Refusal> {
    let fields = csv::split(&mut csv::reader(b','), record, b',')?;
    if !matches!(fields.len(), 23 | 24 | 26) {
        let reason = format!("there are {} columns, and csvlog has 23, 24 or 26", fields.len());
        return Err(Refusal::new(reason));
    }
    let mut members = Members::with_capacity(30);
    for ((name, is_number), field) in COLUMNS.into_iter().zip(fields) {
        // What is not known is empty without quotes; what is empty has them.
        if field.content.is_empty() && !field.is_quoted {
            continue;
        }
        match name {
            "connection_from" => connection(field, &mut members),
            "message" => message(field, &mut members),
            _ => members.add(name, value(field, is_number)),
        }
    }
    Ok(members.into_object())
}

fn value(field: Field<'_>, is_number: bool) -> Value<'_> {
    let number = || {
        let text = std::str::from_utf8(&field.content).ok()?;
        decimal(text.as_bytes()).map(Value::Unsigned).or_else(|| text.parse().ok().map(Value::Signed))
    };
    match is_number.then(number).flatten() {
        Some(number) => number,
        None => field.into_value(),
    }
}

/// `address:port`, `host:port` or `[local]`.
fn connection<'a>(field: Field<'a>, members: &mut Members<'a>) {
    let (client, port) = match address_and_port(&field.content) {
        Some((client, port)) => (client.to_vec(), Some(port)),
        None => (field.content.to_vec(), None),
    };
    members.add("connection_from", field.into_value());
    members.add("client", Value::from_vec(client));
    members.add_some("port", port.map(Value::Unsigned));
}

/// A message, and what is in it where it is pgaudit's.
fn message<'a>(field: Field<'a>, members: &mut Members<'a>) {
    let audit = match &field.content {
        Cow::Borrowed(message) => audit(message),
        Cow::Owned(message) => audit(message).map(Value::into_owned),
    };
    members.add("message", field.into_value());
    members.add_some("audit", audit);
}

fn audit(message: &[u8]) -> Option<Value<'_>> {
    let parts = message.strip_prefix(b"AUDIT: ")?;
    let parts = csv::split(&mut csv::reader(b','), parts, b',').ok()?;
    if !matches!(parts.len(), 9 | 10) {
        return None;
    }
    let mut members = Members::with_capacity(AUDIT.len());
    for ((name, is_number), part) in AUDIT.into_iter().zip(parts) {
        if !part.content.is_empty() && *part.content != *b"<none>" {
            members.add(name, value(part, is_number));
        }
    }
    Some(members.into_object())
}

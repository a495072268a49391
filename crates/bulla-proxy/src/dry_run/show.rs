//! Rows as people read them, in a table, and the one of their members that programs read in another form.

use super::{Fate, Mapping, Row};
use bulla::text::is_obeyed;
use bulla::text::time::format_time;
use serde::Serializer;
use std::fmt::Write;

/// The heads of the columns: what is longest comes last.
const COLUMNS: [&str; 7] = ["LINE", "DB", "COMMAND", "OPERATION", "FATE", "SUBJECT", "LOCATION"];

/// Rows as a table with a head, each column as wide as what is in it. Whoever has many shows them in several tables.
pub fn table(rows: &[Row]) -> String {
    let cells: Vec<[String; COLUMNS.len()]> = rows.iter().map(cells).collect();
    let width = |column: usize| {
        let cells = cells.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0).max(COLUMNS[column].len())
    };
    let widths: [usize; COLUMNS.len()] = std::array::from_fn(width);
    let mut table = String::new();
    for row in std::iter::once(COLUMNS.map(str::to_owned)).chain(cells) {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
            // Numbers end where they end; a string takes everything.
            let _ = match column {
                0 | 1 => write!(line, "{cell:>width$}  "),
                _ => write!(line, "{cell:<width$}  "),
            };
        }
        table.push_str(line.trim_end());
        table.push('\n');
    }
    table
}

fn cells(row: &Row) -> [String; COLUMNS.len()] {
    let subject = match (&row.subject, row.mapping) {
        (Some(subject), _) => subject.as_str(),
        (None, Some(Mapping::Undecided)) => "(undecided)",
        (None, Some(_)) => "(unmapped)",
        (None, None) => "-",
    };
    let fate = match (row.fate, &row.refused_by) {
        (Fate::Recorded, _) => "recorded".to_owned(),
        (Fate::Refused, None) => "refused".to_owned(),
        (Fate::Refused, Some(by)) => format!("refused by {by}"),
        (Fate::Unseen, _) => "unseen".to_owned(),
    };
    [
        row.line.to_string(),
        row.database.to_string(),
        shown(&row.command),
        shown(&row.operation),
        fate,
        shown(subject),
        shown(row.location.as_deref().unwrap_or("-")),
    ]
}

/// Text without characters that a terminal obeys: whoever chose them is not the one who reads them.
fn shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match is_obeyed(character) {
            true => shown.extend(character.escape_default()),
            false => shown.push(character),
        }
    }
    shown
}

/// A time as JSON has it everywhere: RFC 3339.
pub(super) fn time<S: Serializer>(nanoseconds: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    let mut text = Vec::new();
    format_time(i64::try_from(*nanoseconds).unwrap_or(i64::MAX), &mut text);
    serializer.serialize_str(&String::from_utf8_lossy(&text))
}

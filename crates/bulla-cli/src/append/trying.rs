//! `bulla append --try`: what would go in.

use super::terms::{Terms, now};
use super::{Append, input};
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupt;
use crate::output::{on_line, print, print_json};
use bulla::Entry;
use bulla::text::jsonl;
use bulla_ingest::convert::{Conversion, Converted, Converter, Explained};
use bulla_ingest::follow::Following;
use bulla_ingest::framing::{Record, Records};
use bulla_ingest::map::{Explanation, Outcome, shown_within};
use rustix::termios::tcgetwinsize;
use serde_json::{Map, Value, json};
use std::io::{self, IsTerminal};
use std::sync::Arc;

/// So many records of each input are looked at.
const TRIED: usize = 10;

/// Shows what would become of the first records of each input, and touches no log.
pub(super) fn run(
    append: &Append,
    conversion: &Arc<Conversion>,
    interrupt: &Interrupt,
) -> Result<Exit, Failure> {
    let inputs = match append.follow {
        true => {
            let following = Following::new(&append.files, conversion.clone()).map_err(Failure::usage)?;
            following.paths().into_iter().map(|path| input::Input::find(&path)).collect::<Result<_, _>>()?
        }
        false => input::find(&append.files)?,
    };
    let terms = append.terms(conversion);
    let width = terminal_width();
    let (mut accepted, mut refused, mut objects) = (0_u64, 0_u64, Vec::new());
    for input in &inputs {
        let failed = |error: &io::Error| Failure::io(format!("reading {}", input.name), error);
        let source = input.open(interrupt, None).map_err(|error| failed(&error))?;
        let mut converter = Converter::new(conversion);
        let mut records = Records::new(source, converter.framing_kind());
        let mut left = TRIED;
        while left > 0 {
            let record = match records.next_record() {
                Ok(Some(record)) => record,
                Ok(None) => break,
                Err(_) if interrupt.is_raised() => return Ok(Exit::Interrupted),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(failed(&error)),
            };
            let Some(tried) = Tried::new(&record, &mut converter, &terms) else { continue };
            left -= 1;
            match &tried.entry {
                Ok(_) => accepted += 1,
                Err(_) => refused += 1,
            }
            match append.json {
                true => objects.push(tried.to_json(&input.name, record.number)),
                false => {
                    print(&format!("{}:{}\n{}\n", on_line(&input.name), record.number, tried.to_text(width)))?
                }
            }
        }
    }
    match append.json {
        true => print_json(&json!({ "records": objects, "accepted": accepted, "refused": refused }))?,
        false => {
            print(&format!("{accepted} would go in, {refused} would be refused; nothing was appended\n"))?
        }
    }
    Ok(if refused == 0 { Exit::Done } else { Exit::SomeRefused })
}

/// What would become of a record.
struct Tried {
    /// The entry as `bulla export` would write it, or why there would be none.
    entry: Result<Map<String, Value>, String>,
    /// What its map says, field by field.
    explanation: Option<Explanation>,
    /// What the options give that the record does not.
    completed: Vec<(&'static str, String)>,
}

impl Tried {
    /// `None` of a header.
    fn new(record: &Record<'_>, converter: &mut Converter, terms: &Terms) -> Option<Self> {
        let refused = |reason: String| Tried { entry: Err(reason), explanation: None, completed: Vec::new() };
        let content = match &record.content {
            Ok(content) => *content,
            Err(reason) => return Some(refused(reason.to_string())),
        };
        let (parsed, explanation) = match converter.explain(content, now()) {
            Explained::Whole(Converted::Nothing) => return None,
            Explained::Whole(Converted::Refused(reason)) => return Some(refused(reason)),
            Explained::Whole(Converted::Entry(parsed)) => (parsed, None),
            Explained::ByMap(explanation) => match &explanation.entry {
                Ok(parsed) => (parsed.clone(), Some(explanation)),
                Err(reason) => {
                    let entry = Err(reason.to_string());
                    return Some(Tried { entry, explanation: Some(explanation), completed: Vec::new() });
                }
            },
        };
        let before = parsed.entry();
        let mut entry = parsed.entry();
        if let Err(reason) = terms.complete(&mut entry) {
            return Some(Tried { entry: Err(reason), explanation, completed: Vec::new() });
        }
        let mut completed = Vec::new();
        if let (None, Some(stream)) = (before.stream, entry.stream) {
            completed.push(("stream", stream.to_owned()));
        }
        if let (None, Some(subjects)) = (&before.subjects, &entry.subjects) {
            completed.push(("subject", subjects.iter().copied().collect::<Vec<_>>().join(", ")));
        }
        Some(Tried { entry: Ok(members(&entry)), explanation, completed })
    }

    /// A line for each field; on a terminal of so many columns values end where its lines do.
    fn to_text(&self, width: Option<usize>) -> String {
        let mut text = match (&self.explanation, &self.entry) {
            (Some(explanation), _) => explanation.to_text(width),
            (None, Ok(members)) => members.iter().map(|(name, value)| line(name, value, width)).collect(),
            (None, Err(reason)) => format!("refused: {reason}\n"),
        };
        if self.explanation.is_some() {
            for (field, value) in &self.completed {
                let place = format!("{field:<10} option    ");
                text += &format!("{place}{}\n", shown_within(value, width, place.len()));
            }
        }
        text
    }

    fn to_json(&self, input: &str, line: u64) -> Value {
        let mut object = json!({ "input": input, "line": line });
        match &self.entry {
            Ok(entry) => object["entry"] = json!(entry),
            Err(reason) => object["refused"] = json!(reason),
        }
        if let Some(explanation) = &self.explanation {
            let field = |explained: &bulla_ingest::map::Explained| {
                let mut object = json!({ "field": explained.field, "line": explained.line });
                match &explained.outcome {
                    Outcome::Value(value) => object["value"] = json!(value),
                    Outcome::Absent => {}
                    Outcome::Failed(why) => object["failed"] = json!(why),
                }
                object
            };
            object["fields"] = explanation.fields.iter().map(field).collect();
            if let Some(why) = &explanation.unparsed {
                object["unparsed"] = json!(why.to_string());
            }
        }
        object
    }
}

/// A member of an entry, for a person.
fn line(name: &str, value: &Value, width: Option<usize>) -> String {
    let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let name = format!("{name:<10} ");
    format!("{name}{}\n", shown_within(&value, width, name.len()))
}

/// How many columns standard output has, where it is a terminal.
fn terminal_width() -> Option<usize> {
    let size = io::stdout().is_terminal().then(|| tcgetwinsize(io::stdout()))?.ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// The members of an entry as JSON lines have them.
fn members(entry: &Entry<'_>) -> Map<String, Value> {
    let mut text = Vec::new();
    jsonl::write_entry(entry, 0, &mut text);
    let mut members: Map<String, Value> = serde_json::from_slice(&text).unwrap_or_default();
    members.remove("entry");
    members
}

//! What a proof of an event says; above all the certificate of an erasure.

use super::Check;
use crate::erase::remains;
use crate::exit::{Exit, Failure};
use crate::log_paths::{self, error_in};
use crate::output::{on_line, print, print_json, time};
use crate::verify::parse_key;
use bulla::event::Event;
use bulla::order::{Order, OrderError};
use bulla::proof::CheckedEvent;
use bulla::{ErasureOrder, SignedNote, VerifierKey};
use serde::Serialize;
use serde_json::value::RawValue;

/// A proof of an event that holds.
#[derive(Serialize)]
pub(super) struct Certificate<'a> {
    ok: bool,
    anchored: bool,
    origin: &'a str,
    tree_size: u64,
    root: String,
    frame: u64,
    time: String,
    event: Box<RawValue>,
    /// Whether the erasure key was given, and signed the order.
    ordered: bool,
    /// The data subjects, where the order was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    subjects: Option<Vec<String>>,
    #[serde(skip)]
    told: Event,
    #[serde(skip)]
    order: Option<Order>,
    #[serde(skip)]
    key: Option<VerifierKey>,
}

impl<'a> Certificate<'a> {
    /// What the proof says, and, of an erasure, that it was ordered as the arguments say.
    pub(super) fn read(checked: &CheckedEvent<'a>, arguments: &Check) -> Result<Self, Failure> {
        let violation = |message: String| Failure::new(Exit::Violation, message);
        let commitment = checked.commitment();
        let told = Event::decode(checked.event())?;
        let event = String::from_utf8_lossy(checked.event()).into_owned();
        let event = RawValue::from_string(event).map_err(|error| violation(format!("the event: {error}")))?;
        let key = arguments.erasure_key.as_deref().map(parse_key).transpose()?;
        let order = arguments.order.as_deref().map(|path| {
            let text = log_paths::read_order(path).map_err(|error| Failure::io(path.display(), &error))?;
            ErasureOrder::parse(&text).map_err(|error| error_in(path, error))
        });
        let order = order.transpose()?;
        let ordered = match &told {
            Event::Erased { order, .. } => Some(read_order(order, key.as_ref()).map_err(violation)?),
            _ if key.is_some() || order.is_some() => {
                return Err(Failure::usage("the event is no erasure: nobody ordered it"));
            }
            _ => None,
        };
        if let Some(ordered) = ordered.as_ref().filter(|ordered| ordered.log != commitment.log_id) {
            return Err(violation(format!("the order is for another log, {}", ordered.log)));
        }
        if let Some((order, ordered)) = order.as_ref().zip(ordered.as_ref()) {
            order.check_names(ordered).map_err(|error| violation(error.to_string()))?;
        }
        let subjects = order.map(|order| order.subjects().map(str::to_owned).collect());
        Ok(Certificate {
            ok: true,
            anchored: checked.anchored(),
            origin: &checked.checkpoint().origin,
            tree_size: checked.checkpoint().size,
            root: checked.checkpoint().root.to_base64(),
            frame: commitment.frame,
            time: time(commitment.earliest),
            event,
            ordered: key.is_some(),
            subjects,
            told,
            order: ordered,
            key,
        })
    }

    pub(super) fn print(&self, json: bool) -> Result<(), Failure> {
        if json { print_json(self) } else { print(&self.to_text()) }
    }

    fn to_text(&self) -> String {
        let mut lines = vec![
            ("log", self.origin.to_owned()),
            ("recorded", format!("frame {}, {}; tree size {}", self.frame, self.time, self.tree_size)),
        ];
        let Event::Erased { numbers, remains: left, .. } = &self.told else {
            lines.push(("event", self.event.get().to_owned()));
            return table(&lines);
        };
        let numbers = numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        lines.insert(0, ("erased", format!("data subject {numbers}: what is personal of theirs")));
        if let Some(subjects) = &self.subjects {
            lines.push(("who", subjects.iter().map(|name| on_line(name)).collect::<Vec<_>>().join(", ")));
        }
        if let Some(order) = &self.order {
            let seconds = i64::try_from(order.seconds).unwrap_or(i64::MAX);
            lines.push(("ordered", time(seconds)));
            lines.extend(order.reason.iter().map(|reason| ("reason", reason.clone())));
            let by = self.key.as_ref().map_or_else(
                || "not checked; --erasure-key does".to_owned(),
                |key| format!("signed by {key}"),
            );
            lines.push(("order", by));
        }
        format!("{}what remains:\n{}", table(&lines), remains(left))
    }
}

fn table(lines: &[(&str, String)]) -> String {
    lines.iter().map(|(name, value)| format!("{name:<8}  {value}\n")).collect()
}

/// Reads an order, and checks that `key` signed it where there is one.
fn read_order(note: &str, key: Option<&VerifierKey>) -> Result<Order, String> {
    let order = match key {
        Some(key) => Order::open(note.as_bytes(), key),
        None => SignedNote::parse(note.as_bytes())
            .map_err(OrderError::Note)
            .and_then(|note| Order::parse(note.text)),
    };
    order.map_err(|error| format!("the order: {error}"))
}

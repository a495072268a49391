//! What a proof of an event says; above all the certificate of an erasure.

use super::Check;
use super::hold::{self, Because, Ordered, by_whom};
use super::rekeyed;
use crate::erase::remains;
use crate::exit::{Exit, Failure};
use crate::log_paths::{self, error_in};
use crate::output::{on_line, print, print_json, time};
use crate::verify::parse_key;
use bulla::event::Event;
use bulla::order::{Order, OrderError};
use bulla::proof::CheckedEvent;
use bulla::{ErasureOrder, LogId, SignedNote, VerifierKey};
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
    /// The data subjects, where the order was given, and what happened to them.
    #[serde(skip_serializing_if = "Option::is_none")]
    subjects: Option<Vec<Named>>,
    /// Of a hold or a release: whom, by whom and why, where the order was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    because: Option<Because>,
    #[serde(skip)]
    hold: Option<Ordered>,
    #[serde(skip)]
    log: LogId,
    #[serde(skip)]
    told: Event,
    #[serde(skip)]
    order: Option<Order>,
    #[serde(skip)]
    key: Option<VerifierKey>,
}

/// A data subject whom the order names.
#[derive(Serialize)]
struct Named {
    subject: String,
    /// Whether its keys were destroyed. Otherwise the log knew nobody of that name, and nothing was erased.
    erased: bool,
}

impl Named {
    fn to_text(&self) -> String {
        let outcome = match self.erased {
            true => "erased",
            false => {
                "not erased: nobody was logged by that name, they were erased before, or their key was lost"
            }
        };
        format!("{}: {outcome}", on_line(&self.subject))
    }
}

impl<'a> Certificate<'a> {
    /// What the proof says, and, of an erasure, that it was ordered as the arguments say.
    pub(super) fn read(checked: &CheckedEvent<'a>, arguments: &Check) -> Result<Self, Failure> {
        let violation = |message: String| Failure::new(Exit::Violation, message);
        let commitment = checked.commitment();
        let told = Event::decode(checked.event()).map_err(|error| violation(error.to_string()))?;
        let event = String::from_utf8_lossy(checked.event()).into_owned();
        let event = RawValue::from_string(event).map_err(|error| violation(format!("the event: {error}")))?;
        let key = arguments.erasure_key.as_deref().map(parse_key("--erasure-key")).transpose()?;
        let mut hold = hold::read(&told, commitment.log_id, key.as_ref(), arguments.order.as_deref())?;
        if let Event::Released { held, .. } = told
            && held >= commitment.frame
        {
            let frame = commitment.frame;
            return Err(violation(format!(
                "the event in frame {frame} releases a hold that began in frame {held}: it can have begun before that alone"
            )));
        }
        let rekeyed = match &told {
            Event::Rekeyed(change) => Some(change),
            _ => None,
        };
        if let Some(change) = rekeyed {
            rekeyed::check(change, commitment.log_id, key.as_ref(), arguments.order.as_deref())?;
        }
        let has_own_file = hold.is_some() || rekeyed.is_some();
        let order = arguments.order.as_deref().filter(|_| !has_own_file).map(|path| {
            let text =
                log_paths::read_order(path).map_err(|error| Failure::content(path.display(), &error))?;
            ErasureOrder::parse(&text).map_err(|error| error_in(path, error))
        });
        let order = order.transpose()?;
        let ordered = match &told {
            Event::Erased { order, .. } => Some(read_order(order, key.as_ref()).map_err(violation)?),
            _ if !has_own_file && (key.is_some() || order.is_some()) => {
                return Err(Failure::usage(
                    "the event is no erasure, hold, release or change of the erasure key: nobody ordered it",
                ));
            }
            _ => None,
        };
        let (numbers, carried_out) = match &told {
            Event::Erased { numbers, carried_out, .. } => (&numbers[..], &carried_out[..]),
            _ => (&[][..], &[][..]),
        };
        // The rule that `verify` goes by.
        if let Some(ordered) = &ordered {
            let checked = ordered.check_erasure(commitment.log_id, numbers, carried_out);
            checked.map_err(|error| violation(format!("the erasure: {error}")))?;
        }
        if let (Some(path), Some(order), Some(ordered), Event::Erased { order: note, .. }) =
            (&arguments.order, &order, &ordered, &told)
        {
            let checked = is_order_of(order, (ordered, note), key.as_ref());
            checked.map_err(|error| violation(format!("{}: {error}", path.display())))?;
        }
        let named = |(place, subject): (u32, &str)| Named {
            subject: subject.to_owned(),
            erased: carried_out.binary_search(&place).is_ok(),
        };
        let subjects = order.map(|order| (0..).zip(order.subjects()).map(named).collect());
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
            because: hold.as_mut().and_then(|hold| hold.because.take()),
            hold,
            log: commitment.log_id,
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
        if let Some(hold) = &self.hold {
            return table(&hold.to_lines(lines, self.because.as_ref(), self.key.as_ref()));
        }
        if let Event::Rekeyed(change) = &self.told {
            return table(&rekeyed::to_lines(change, self.log, lines, self.key.is_some()));
        }
        let Event::Erased { numbers, carried_out, remains: left, .. } = &self.told else {
            lines.push(("event", self.event.get().to_owned()));
            return table(&lines);
        };
        let numbers = numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        lines.insert(0, ("erased", format!("data subject {numbers}: what is personal of theirs")));
        lines.extend(self.subjects.iter().flatten().map(|named| ("who", named.to_text())));
        if let Some(order) = &self.order {
            let (done, all) = (carried_out.len(), order.subjects.len());
            if done < all {
                let text =
                    format!("of the {all} names that were ordered {done}; of the others nothing was erased");
                lines.push(("carried out", text));
            }
            lines.push(("ordered", time(order.seconds)));
            lines.extend(order.reason.iter().map(|reason| ("reason", reason.clone())));
            lines.push(("order", by_whom(self.key.as_ref())));
        }
        format!("{}what remains:\n{}", table(&lines), remains(left))
    }
}

fn table(lines: &[(&str, String)]) -> String {
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or_default().max(8);
    lines.iter().map(|(name, value)| format!("{name:<width$}  {value}\n")).collect()
}

/// Reads an order, and checks that `key` signed it where there is one.
fn read_order(note: &str, key: Option<&VerifierKey>) -> Result<Order, String> {
    let order = match key {
        Some(key) => Order::open(note.as_bytes(), key),
        None => SignedNote::parse(note.as_bytes())
            .map_err(OrderError::Note)
            .and_then(|note| Order::parse(note.text)),
    };
    order.map_err(|error| hold::wrong_order(error, note, key))
}

/// Checks that a file is that of the order that an erasure tells of: its own note as well, which `key` signed where there is
/// one and which otherwise has the signature that the log has, whosever that is; and the names beside it.
fn is_order_of(
    file: &ErasureOrder,
    (ordered, note): (&Order, &str),
    key: Option<&VerifierKey>,
) -> Result<(), String> {
    let own = read_order(file.note(), key)?;
    if own != *ordered {
        return Err("it is another order than the one that the certificate tells of".to_owned());
    }
    if key.is_none() && file.note() != note {
        return Err(
            "its signature is another than that of the order that the certificate tells of".to_owned()
        );
    }
    file.check_names(&own).map_err(|error| error.to_string())
}

//! What a proof of a hold, or of a release, says of its order.

use crate::exit::{Exit, Failure};
use crate::log_paths::{self, error_in};
use crate::output::{on_line, time};
use bulla::event::Event;
use bulla::hold_order::{HoldNote, HoldNoteError};
use bulla::{Hash, HoldOrder, LogId, ReleaseOrder, SignedNote, VerifierKey};
use serde::Serialize;
use std::fmt::Display;
use std::path::Path;

/// The order in an event of a hold, or of a release, and what its file says besides, where that was given.
pub(super) struct Ordered {
    what: &'static str,
    number: u64,
    seconds: u64,
    pub(super) because: Option<Because>,
}

/// What the order commits to.
#[derive(Serialize)]
pub(super) struct Because {
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
    by: String,
    reason: String,
}

/// Reads the order of an event, checks that it is one for that, and, where they are there, that `key` signed it and the file is that
/// of this order. None where the event is another one.
pub(super) fn read(
    told: &Event,
    log: LogId,
    key: Option<&VerifierKey>,
    file: Option<&Path>,
) -> Result<Option<Ordered>, Failure> {
    type Check = fn(&HoldNote, LogId) -> Result<Hash, HoldNoteError>;
    let (what, number, note, check): (_, _, _, Check) = match told {
        Event::Held { number, order } => ("held", *number, order, HoldNote::check_hold),
        Event::Released { number, order, .. } => ("released", *number, order, HoldNote::check_release),
        _ => return Ok(None),
    };
    let violation = |message: String| Failure::new(Exit::Violation, message);
    let ordered = open(note, key).map_err(violation)?;
    check(&ordered, log).map_err(|error| violation(format!("the order: {error}")))?;
    let because = file.map(|path| {
        let text = log_paths::read_order(path).map_err(|error| Failure::content(path.display(), &error))?;
        let invalid = |error| error_in(path, error);
        let (own, checked, because) = match told {
            Event::Held { .. } => {
                let file = HoldOrder::parse(&text).map_err(invalid)?;
                (file.note().to_owned(), file.check_note(&ordered), Because::from(&file))
            }
            _ => {
                let file = ReleaseOrder::parse(&text).map_err(invalid)?;
                (file.note().to_owned(), file.check_note(&ordered), Because::from(&file))
            }
        };
        let refused = |why: String| violation(format!("{}: {why}", path.display()));
        if open(&own, key).map_err(refused)? != ordered || (key.is_none() && own != *note) {
            return Err(refused("it is another order than the one that the event has".to_owned()));
        }
        checked.map_err(|error| refused(error.to_string())).map(|()| because)
    });
    Ok(Some(Ordered { what, number, seconds: ordered.seconds, because: because.transpose()? }))
}

impl Ordered {
    /// What the event says, and its order, in lines; `key` is the one that signed it, where that was checked.
    pub(super) fn to_lines(
        &self,
        lines: Vec<(&'static str, String)>,
        because: Option<&Because>,
        key: Option<&VerifierKey>,
    ) -> Vec<(&'static str, String)> {
        let mut all = vec![(self.what, format!("data subject {}", self.number))];
        all.extend(lines);
        if let Some(Because { subject, by, reason }) = because {
            all.extend(subject.iter().map(|subject| ("who", on_line(subject))));
            all.extend([("by", by.clone()), ("reason", reason.clone())]);
        }
        all.push(("ordered", time(self.seconds)));
        all.push(("order", by_whom(key)));
        all
    }
}

impl From<&HoldOrder> for Because {
    fn from(order: &HoldOrder) -> Self {
        let subject = Some(order.subject().to_owned());
        Because { subject, by: order.by().to_owned(), reason: order.reason().to_owned() }
    }
}

impl From<&ReleaseOrder> for Because {
    fn from(order: &ReleaseOrder) -> Self {
        Because { subject: None, by: order.by().to_owned(), reason: order.reason().to_owned() }
    }
}

/// Reads a note, and checks that `key` signed it where there is one.
fn open(note: &str, key: Option<&VerifierKey>) -> Result<HoldNote, String> {
    let read = match key {
        Some(key) => HoldNote::open(note.as_bytes(), key),
        None => SignedNote::parse(note.as_bytes())
            .map_err(HoldNoteError::Note)
            .and_then(|note| HoldNote::parse(note.text)),
    };
    read.map_err(|error| wrong_order(error, note, key))
}

/// What is wrong with an order that may have to be signed with `key`: who signed it is said, too, as far as the note tells.
pub(super) fn wrong_order(error: impl Display, note: &str, key: Option<&VerifierKey>) -> String {
    let read = key.zip(SignedNote::parse(note.as_bytes()).ok());
    read.map_or_else(
        || format!("the order: {error}"),
        |(key, note)| {
            let signed = note.signatures.iter();
            let signed =
                signed.map(|by| format!("{}+{:08x}", on_line(by.name), by.key_id)).collect::<Vec<_>>();
            format!(
                "the order: {error}; it has to be signed with {key}, and names as its signer {}",
                signed.join(", ")
            )
        },
    )
}

/// By whom an order is signed, where that was checked.
pub(super) fn by_whom(key: Option<&VerifierKey>) -> String {
    key.map_or_else(
        || "signature NOT checked: anybody can write an order; --erasure-key checks it".to_owned(),
        |key| format!("signed by {key}"),
    )
}

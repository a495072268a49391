//! [`Summary`]: what is said at the end.

use super::lines::UpTo;
use crate::exit::{Exit, Failure};
use crate::output::{print, print_json};
use bulla::Telemetry;
use bulla::text::spelling::{agreeing, counted};
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct Summary<'a> {
    pub(super) accepted: u64,
    pub(super) refused: u64,
    /// Those that are durable, wherever they stand among the others.
    pub(super) committed: u64,
    /// Those from the first on that are durable without one missing.
    pub(super) durable_prefix: u64,
    pub(super) lost: u64,
    /// Those that were dropped since nothing took what the log writes.
    pub(super) dropped: u64,
    pub(super) up_to: UpTo<'a>,
    pub(super) interrupted: bool,
    /// Lines of a numbered input that the log has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) passed_over: Option<u64>,
    /// The same in words.
    #[serde(skip)]
    pub(super) over: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stats: Option<Telemetry>,
}

impl<'a> Summary<'a> {
    /// Of a run that took no line of its inputs, of which the first has this name.
    pub(super) fn nothing(first: &'a str) -> Self {
        Summary {
            accepted: 0,
            refused: 0,
            committed: 0,
            durable_prefix: 0,
            lost: 0,
            dropped: 0,
            up_to: UpTo::nothing(first),
            interrupted: false,
            passed_over: None,
            over: None,
            error: None,
            stats: None,
        }
    }

    pub(super) fn with_failure(&self, exit: Exit, message: &str, json: bool) -> Failure {
        failure_with((exit, message), self, &self.to_text_of_failure(), json)
    }

    pub(super) fn print(&self, json: bool) -> Result<(), Failure> {
        if json { print_json(self) } else { print(&self.to_text()) }
    }

    fn to_text(&self) -> String {
        let Summary { accepted, refused, committed, dropped, interrupted, up_to, over, .. } = self;
        let prefix = if *interrupted { "interrupted: " } else { "" };
        let dropped = if *dropped > 0 { format!(", {dropped} dropped") } else { String::new() };
        let counts =
            format!("{prefix}{accepted} accepted, {refused} refused, {committed} committed{dropped}\n");
        match (accepted + refused, over) {
            (0, None) => counts,
            (_, over) => format!("{counts}{}{}\n", over.as_deref().unwrap_or_default(), up_to.to_text()),
        }
    }

    /// What can be relied on where something failed.
    pub(super) fn to_text_of_failure(&self) -> String {
        let Summary { accepted, refused, committed, durable_prefix, lost, dropped, up_to, over, .. } = self;
        let mut text = match accepted {
            0 => "no entry was accepted".to_owned(),
            _ => format!(
                "{} {} accepted; at least {durable_prefix} of them, the first, {} committed",
                counted(*accepted, "entry"),
                agreeing(*accepted, "was", "were"),
                agreeing(*durable_prefix, "is", "are")
            ),
        };
        if committed > durable_prefix {
            text += &format!(", and {} that come after one that is not", committed - durable_prefix);
        }
        if *lost > 0 {
            text += &format!("; {lost} {} lost", agreeing(*lost, "was", "were"));
        }
        if *dropped > 0 {
            text += &format!("; {dropped} {} dropped", agreeing(*dropped, "was", "were"));
        }
        if *refused > 0 {
            text += &format!("; {} {} refused", counted(*refused, "line"), agreeing(*refused, "was", "were"));
        }
        format!("{text}\n{}{}", over.as_deref().unwrap_or_default(), up_to.to_text())
    }
}

/// Prints the object of a failure, and gives what standard error is to say: the counts too, whether or not the object could be printed.
pub(super) fn failure_with(
    (exit, message): (Exit, &str),
    object: &impl Serialize,
    counts: &str,
    json: bool,
) -> Failure {
    let unprinted = json.then(|| print_json(object)).and_then(Result::err);
    let unprinted = unprinted.map(|unprinted| format!("\n{}", unprinted.message)).unwrap_or_default();
    Failure { exit, message: format!("{message}{unprinted}\n{}", counts.trim_end()) }
}

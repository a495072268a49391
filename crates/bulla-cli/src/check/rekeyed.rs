//! What a proof of a change of the erasure key says of its order.

use super::hold::by_whom;
use crate::exit::{Exit, Failure};
use crate::log_paths::{self, error_in};
use crate::output::{on_line, time};
use bulla::event::Rekeyed;
use bulla::{ErasureKeyChange, LogId, VerifierKey};
use std::path::Path;

/// Checks the order of an event, where it has one; that `key` signed it, where there is one, and that the file is that of this order.
pub(super) fn check(
    told: &Rekeyed,
    log: LogId,
    key: Option<&VerifierKey>,
    file: Option<&Path>,
) -> Result<(), Failure> {
    let violation = |message: String| Failure::new(Exit::Violation, format!("the change: {message}"));
    let order = told.ordered(log).map_err(violation)?;
    match (&order, key) {
        (Some(order), Some(key)) if order.from != *key => {
            return Err(violation(format!("its order is signed with {}, and not with {key}", order.from)));
        }
        (None, Some(key)) => return Err(violation(format!("it has no order, by {key} or anybody"))),
        _ => {}
    }
    let Some(path) = file else { return Ok(()) };
    let text = log_paths::read_order(path).map_err(|error| Failure::content(path.display(), &error))?;
    let own = ErasureKeyChange::parse(&text).map_err(|error| error_in(path, error))?;
    match own.note() == told.order {
        true => Ok(()),
        false => Err(Failure::new(
            Exit::Violation,
            format!("{}: it is another order than the one that the event has", path.display()),
        )),
    }
}

/// What the event says, and who ordered it, in lines, once it was checked; the key before may be known from elsewhere.
pub(super) fn to_lines(
    told: &Rekeyed,
    log: LogId,
    lines: Vec<(&'static str, String)>,
    is_known: bool,
) -> Vec<(&'static str, String)> {
    let Rekeyed { from, to, .. } = told;
    let mut all = vec![("rekeyed", "the erasure key, with the epoch that follows, if one did".to_owned())];
    all.extend(lines);
    all.extend([("from", on_line(from)), ("to", on_line(to))]);
    match told.ordered(log) {
        Ok(Some(order)) => {
            all.push(("ordered", time(order.seconds)));
            let whose = "; --erasure-key checks that it is the one that counted";
            all.push(("order", by_whom(Some(&order.from)) + if is_known { "" } else { whose }));
        }
        _ => all.push(("order", "no order: whoever verifies has to know the new key".to_owned())),
    }
    all
}

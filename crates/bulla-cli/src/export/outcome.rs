//! What an export says of itself in the end: what it found, what it left out and why, and the exit code for that.

use crate::exit::Exit;
use bulla::{Exported, Query, Redaction, Severity, Unopened};

/// Tells of it; `salvaged` is what a salvage was asked for.
pub(super) fn tell(exported: &Exported, salvaged: Option<&Query>) -> Exit {
    for finding in &exported.findings {
        note!("{finding}");
    }
    for unopened in &exported.unopened {
        note!("{}", no_key(unopened));
    }
    for why in Redaction::ALL {
        tell_withheld(exported.withheld.of(why), why);
    }
    let damaged = exported.left_out > 0
        || exported.findings.iter().any(|finding| finding.severity == Severity::Violation);
    if let Some(query) = salvaged {
        note!("left out: {}", left_out(exported, damaged, query));
    }
    match (damaged || exported.withheld.key_lost > 0, unopened(exported)) {
        (true, _) => Exit::Violation,
        (false, 0) => Exit::Done,
        (false, _) => Exit::Refused,
    }
}

/// Says that so many entries came without their personal fields.
fn tell_withheld(count: u64, why: Redaction) {
    let what = match count {
        0 => return,
        1 => "1 entry came without its personal fields".to_owned(),
        count => format!("{count} entries came without their personal fields"),
    };
    match why {
        Redaction::Erased => note!("{what}: erased"),
        Redaction::NotGiven => note!("{what}: their keys were not given"),
        Redaction::KeyLost => note!(
            "{what}: keys are lost that the log does not say were erased; everything else is as it was logged. \
             Restore the vault from a backup"
        ),
    }
}

/// How many entries were left out for lack of a key.
pub(super) fn unopened(exported: &Exported) -> u64 {
    exported.unopened.iter().map(Unopened::count).sum()
}

fn no_key(Unopened { epochs, entries }: &Unopened) -> String {
    let entries = match entries {
        (first, last) if first == last => format!("entry {first}"),
        (first, last) => format!("entries {first} to {last}"),
    };
    match epochs {
        (first, last) if first == last => {
            format!("no key for {entries}: the identity does not open epoch {first}")
        }
        (first, last) => format!("no key for {entries}: the identity does not open epochs {first} to {last}"),
    }
}

fn left_out(exported: &Exported, damaged: bool, query: &Query) -> String {
    let entries = |count| entries(count, query);
    // Anyone can encrypt to a recipient: without the signature nothing tells an entry from a forged one.
    let doubt = match exported.signed {
        true => "",
        false => "; and no signature vouches for what was written: any of it may be forged",
    };
    match (damaged, exported.left_out, unopened(exported)) {
        (false, _, 0) => "nothing; the log is not damaged".to_owned(),
        (false, _, locked) => format!("{}, for lack of a key; the log is not damaged", entries(locked)),
        (true, 0, 0) => format!("no entry; but the log is damaged, as said above{doubt}"),
        (true, lost, 0) => format!("{}, because of the damage said above{doubt}", entries(lost)),
        (true, 0, locked) => {
            let locked = entries(locked);
            format!("{locked}, for lack of a key; and the log is damaged, as said above{doubt}")
        }
        (true, lost, locked) => {
            let (lost, locked) = (entries(lost), entries(locked));
            format!("{lost}, because of the damage said above; {locked}, for lack of a key{doubt}")
        }
    }
}

/// So many entries. Whether one that was not read meets the query is known only where that asks for nothing but numbers.
fn entries(count: u64, query: &Query) -> String {
    let noun = if count == 1 { "entry" } else { "entries" };
    match (Query { first_entry: None, last_entry: None, ..query.clone() }).is_narrow() {
        false => format!("{count} {noun}"),
        true => format!("up to {count} {noun} that may match"),
    }
}

//! What is said of entries that are asked for, or may be, and whose keys are not there.

use crate::exit::Exit;
use bulla::text::spelling::counted;
use bulla::{RedactedEntries, Redaction, UnreadEvents};
use std::collections::BTreeMap;

/// What became of entries that were given out all the same.
pub(crate) const WITHOUT: &str = "came without personal fields";

const LOST: &str = "keys are lost that the log does not say were erased; everything else is as it was logged. Restore \
                    the vault from a backup";

const UNTOLD: &str = "Restore what is damaged or missing, from a mirror or a copy of its segment, and not the vault: one \
                      from before an erasure has the keys that were destroyed; who was erased, certificates tell";

/// Says `what` became of the entries that are `withheld`, and of how many nobody can tell whether they were asked for. Tells what a
/// command comes to that did with all others what it was asked. `unread` are the events of a damaged log that cannot be read.
pub(crate) fn tell(
    withheld: RedactedEntries,
    what: &str,
    undecided: u64,
    unread: Option<UnreadEvents>,
) -> Exit {
    let untold = unread.map(|unread| format!("whether they were erased cannot be told: {unread}. {UNTOLD}"));
    let lost = untold.as_deref().unwrap_or(LOST);
    for why in Redaction::ALL {
        let because = match why {
            Redaction::Erased => "erased",
            Redaction::NotGiven => "their keys were not given",
            // Nobody was told to destroy them.
            Redaction::KeyLost | Redaction::CannotTell => lost,
        };
        note(withheld.of(why), what, because);
    }
    note(undecided, "may match and cannot be opened", lost);
    match withheld.key_lost + withheld.cannot_tell + undecided {
        0 => Exit::Done,
        _ => Exit::Violation,
    }
}

/// How many entries came without their personal fields, by why.
pub(crate) fn by_why(withheld: RedactedEntries) -> BTreeMap<&'static str, u64> {
    Redaction::ALL.map(|why| (why.name(), withheld.of(why))).into()
}

fn note(count: u64, what: &str, because: &str) {
    match count {
        0 => {}
        count => note!("{} {what}: {because}", counted(count, "entry")),
    }
}

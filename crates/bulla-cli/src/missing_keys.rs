//! What is said of entries that are asked for, or may be, and whose keys are not there.

use crate::exit::Exit;
use bulla::text::spelling::counted;
use bulla::{RedactedEntries, Redaction, UnreadEvents};
use std::collections::BTreeMap;

/// What became of entries that were given out all the same.
pub(crate) const WITHOUT: &str = "came without personal fields";

const LOST: &str = "keys are lost that the log does not say were erased; everything else is as it was logged. Restore \
                    the vault from a backup";

const LOG_OLDER: &str = "their keys are not there, and the vault has followed more frames than the log has: the log is an older copy, or \
                         has lost its end, which may tell that they were erased. Bring back the log that belongs to the vault, and not an \
                         older vault, which may have the keys of whoever was erased since";

/// Why keys may be missing that no event at hand says were erased.
#[derive(Clone, Copy)]
pub(crate) enum WithoutKeys {
    /// They are lost.
    Lost,
    /// The vault followed more of the log than is there, which may tell of erasures.
    LogIsOlder,
    /// The log's seal state covers so many frames, and the newest checkpoint fewer: what lies between may tell of erasures.
    Unpublished(u64),
    /// These events of a damaged log cannot be read, which may tell of erasures.
    Untold(UnreadEvents),
}

impl WithoutKeys {
    /// Of a log that can be read, where the vault followed more than is there if `log_is_older`.
    pub(crate) fn of(log_is_older: bool) -> Self {
        if log_is_older { WithoutKeys::LogIsOlder } else { WithoutKeys::Lost }
    }
}

const UNPUBLISHED: &str = "and the newest checkpoint that is there fewer: what lies between may tell it. Open the log for writing, which publishes \
                           what is there, or bring the newest copy of the log, and not an older vault, which may have the keys of whoever was erased \
                           since";

const UNTOLD: &str = "Restore what is damaged or missing, from a mirror or a copy of its segment, and not the vault: one \
                      from before an erasure has the keys that were destroyed; who was erased, certificates tell";

/// Says `what` became of the entries that are `withheld`, and of how many nobody can tell whether they were asked for. Tells what a
/// command comes to that did with all others what it was asked. `why` is why keys may be missing.
pub(crate) fn tell(withheld: RedactedEntries, what: &str, undecided: u64, why: WithoutKeys) -> Exit {
    let lost = match why {
        WithoutKeys::Lost => LOST.to_owned(),
        WithoutKeys::LogIsOlder => LOG_OLDER.to_owned(),
        WithoutKeys::Unpublished(sealed) => format!(
            "whether they were erased cannot be told: the log's seal state covers {}, {UNPUBLISHED}",
            counted(sealed, "frame")
        ),
        WithoutKeys::Untold(unread) => format!("whether they were erased cannot be told: {unread}. {UNTOLD}"),
    };
    let lost = lost.as_str();
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

//! What a witness tells its operator of requests that it does not cosign: anybody may send these, as often as they like, so each kind of refusal is
//! told of a log once in [`AGAIN`], with how many there were since.

use bulla_crypto::environment::Clock;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Is told in one line what an operator wants to know.
pub type Tell = Arc<dyn Fn(&str) + Send + Sync>;

/// How long the same is not told again of a log.
const AGAIN: Duration = Duration::from_secs(600);
/// Of so many logs that the witness does not know it is told that they asked; what more there are is told once.
const MOST_UNKNOWN: usize = 100;
/// How much of an origin is shown that anybody may have made up, in characters.
const SHOWN: usize = 100;

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Refused {
    /// The witness is not configured for the log.
    Unknown,
    /// None of the log's keys signed the checkpoint.
    Unsigned,
    /// Another tree of the size that was cosigned.
    Conflict,
    /// A tree that is not shown to go on from the one that was cosigned.
    Fork,
    /// By the witness's clock its newest cosignature of the log is of a time to come.
    Clock,
}

/// See the module.
pub(crate) struct Journal {
    tell: Tell,
    clock: Arc<dyn Clock>,
    told: Mutex<BTreeMap<(String, Refused), Told>>,
}

/// What was told last of a refusal: when, by the steady clock, and how often it came since.
struct Told {
    at: u64,
    since: u64,
}

impl Journal {
    pub(crate) fn new(tell: Tell, clock: Arc<dyn Clock>) -> Self {
        Journal { tell, clock, told: Mutex::default() }
    }

    /// Tells whatever is asked for by no stranger.
    pub(crate) fn tell(&self, what: &str) {
        (self.tell)(what);
    }

    /// Tells that a request of a log was refused, unless that was told a short while ago. `what` says it.
    pub(crate) fn refused(&self, origin: &str, why: Refused, what: impl FnOnce() -> String) {
        let now = self.clock.steady();
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let unknown = || told.keys().filter(|(_, why)| *why == Refused::Unknown).count();
        let mut origin = origin.to_owned();
        if why == Refused::Unknown && !told.contains_key(&(origin.clone(), why)) && unknown() >= MOST_UNKNOWN
        {
            // All that are more than these are one, whose name no log has.
            origin.clear();
        }
        let again = u64::try_from(AGAIN.as_nanos()).unwrap_or(u64::MAX);
        let since = match told.get_mut(&(origin.clone(), why)) {
            Some(told) if now.saturating_sub(told.at) < again => {
                told.since = told.since.saturating_add(1);
                return;
            }
            before => before.map_or(0, |told| told.since),
        };
        told.insert((origin.clone(), why), Told { at: now, since: 0 });
        drop(told);
        let mut what = match origin.is_empty() && why == Refused::Unknown {
            true => format!(
                "over {MOST_UNKNOWN} logs asked that this witness is not configured for: of more it is not told"
            ),
            false => what(),
        };
        if since > 0 {
            what += &format!("; {since} more such requests came since that was told last");
        }
        self.tell(&what);
    }
}

/// An origin that anybody may have made up, as it is shown.
pub(crate) fn shown(origin: &str) -> String {
    let mut shown: String = origin.chars().take(SHOWN).flat_map(char::escape_debug).collect();
    if origin.chars().nth(SHOWN).is_some() {
        shown.push('\u{2026}');
    }
    shown
}

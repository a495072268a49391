//! What a witness tells its operator of requests that it does not cosign: anybody may send these, as often as they like, so each kind of refusal is
//! told of a log once in [`AGAIN`], with how many there were since; of trees that it does not cosign, each of them, so that none is hidden
//! behind another.

use bulla_crypto::environment::Clock;
use bulla_proof::hash::Hash;
use bulla_proof::tree::TreeHead;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Is told in one line what an operator wants to know.
pub type Tell = Arc<dyn Fn(&str) + Send + Sync>;

/// How long the same is not told again of a log.
const AGAIN: Duration = Duration::from_secs(600);
/// Of so many logs that the witness does not know it is told that they asked; what more there are is told once.
const MOST_UNKNOWN: usize = 100;
/// So many trees of a log are told apart at a time; what more there are is told once.
const MOST_TREES: usize = 100;
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
    Conflict(Tree),
    /// A tree that is not shown to go on from the one that was cosigned.
    Fork(Tree),
    /// By the witness's clock its newest cosignature of the log is of a time to come.
    Clock,
}

/// A tree that a log has signed. What is beyond [`MOST_TREES`] has none.
type Tree = Option<(u64, Hash)>;

impl Refused {
    pub(crate) fn conflict(head: TreeHead) -> Self {
        Refused::Conflict(Some((head.size, head.root)))
    }

    pub(crate) fn fork(head: TreeHead) -> Self {
        Refused::Fork(Some((head.size, head.root)))
    }

    fn is_of_a_tree(self) -> bool {
        matches!(self, Refused::Conflict(Some(_)) | Refused::Fork(Some(_)))
    }

    /// What is told in its place where there are too many.
    fn of_many(self) -> Self {
        match self {
            Refused::Conflict(_) => Refused::Conflict(None),
            Refused::Fork(_) => Refused::Fork(None),
            other => other,
        }
    }
}

/// See the module.
pub(crate) struct Journal {
    tell: Tell,
    clock: Arc<dyn Clock>,
    told: Mutex<AllTold>,
}

type AllTold = BTreeMap<(String, Refused), Told>;

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
    pub(crate) fn refused(&self, origin: &str, mut why: Refused, what: impl FnOnce() -> String) {
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
        if why.is_of_a_tree() && !told.contains_key(&(origin.clone(), why)) {
            if trees(&told, &origin) >= MOST_TREES {
                told.retain(|(of, why), told| {
                    *of != origin || !why.is_of_a_tree() || now.saturating_sub(told.at) < again
                });
            }
            if trees(&told, &origin) >= MOST_TREES {
                why = why.of_many();
            }
        }
        let since = match told.get_mut(&(origin.clone(), why)) {
            Some(told) if now.saturating_sub(told.at) < again => {
                told.since = told.since.saturating_add(1);
                return;
            }
            before => before.map_or(0, |told| told.since),
        };
        told.insert((origin.clone(), why), Told { at: now, since: 0 });
        drop(told);
        let mut what = match why {
            Refused::Unknown if origin.is_empty() => format!(
                "over {MOST_UNKNOWN} logs asked that this witness is not configured for: of more it is not told"
            ),
            Refused::Conflict(None) | Refused::Fork(None) => format!(
                "over {MOST_TREES} trees that `{origin}` signed were refused within a short time: of more it is not told. The last one: {}",
                what()
            ),
            _ => what(),
        };
        if since > 0 {
            what += &format!("; {since} more such requests came since that was told last");
        }
        self.tell(&what);
    }
}

/// Of how many trees of a log it is known that they were told of.
fn trees(told: &AllTold, origin: &str) -> usize {
    told.keys().filter(|(of, why)| of == origin && why.is_of_a_tree()).count()
}

/// An origin that anybody may have made up, as it is shown.
pub(crate) fn shown(origin: &str) -> String {
    let mut shown: String = origin.chars().take(SHOWN).flat_map(char::escape_debug).collect();
    if origin.chars().nth(SHOWN).is_some() {
        shown.push('\u{2026}');
    }
    shown
}

//! Events: what happened to the log itself, as public JSON in event frames. They hold no personal data.

use super::json;
use super::path::PathId;
use super::segment::{AsideName, SegmentName};
use bulla_crypto::group::PartId;
use bulla_proof::commitment::LogId;
use bulla_proof::hash::Hash;
use bulla_proof::key_order::KeyOrder;
use bulla_proof::note::VerifierKey;
use bulla_proof::order::{MAX_ORDERED, is_ascending};
use bulla_store::{Error, Result, Switch};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fmt;

/// The longest event that is read, in bytes.
pub(crate) const MAX_EVENT: u64 = 1 << 20;

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Event {
    /// A segment counts only up to `offset`, where frame `next_frame` would begin. What follows was torn by a crash, or was written
    /// again to a later segment. Recovery looked at it, and found `length` bytes with this SHA-256.
    Recovered {
        /// The segment's file name.
        segment: String,
        /// The first frame that is read from a later segment.
        next_frame: u64,
        /// Where the trusted bytes end.
        offset: u64,
        /// How many bytes follow.
        length: u64,
        /// Their SHA-256, in hexadecimal.
        sha256: String,
        /// How many of them were frames that are in the log all the same.
        adopted: u64,
    },
    /// A segment could not be written or synced any more. What it holds from `offset` on does not count: its blocks were written
    /// again to a later segment.
    Abandoned {
        /// The segment's file name, or the one under which an opening has set it aside.
        segment: String,
        /// The first frame that is read from a later segment.
        next_frame: u64,
        /// Where the trusted bytes end.
        offset: u64,
        /// What failed.
        reason: String,
    },
    /// What is written goes to another path of the log from here on: the one before failed.
    PathReplaced {
        /// The id of the path before, in hexadecimal: that of the log for its first directory.
        from: String,
        /// The id of the one that takes what is written now, which is another.
        to: String,
        /// What failed.
        reason: String,
    },
    /// Entries that came while nothing took what the log had to write were dropped (`on_failure = "drop"`), before any entry that comes
    /// after this event.
    Dropped(Dropped),
    /// The next epoch may be begun with another `[log]`. If it is begun with the old one all the same, the change
    /// was not carried out, and this counts for nothing any more.
    Configured {
        /// The digest of the `[log]` of the epoch before, in hexadecimal.
        before: String,
        /// The digest of the new one, which is another.
        after: String,
        /// The names of the keys that differ: one at least, each once.
        changed: Vec<String>,
    },
    /// The next epoch may be begun with a `[log]` that has another erasure key.
    Rekeyed(Rekeyed),
    /// The keys of data subjects were destroyed: what is personal in their groups is erased.
    Erased {
        /// The numbers of the data subjects: one at least, strictly ascending.
        numbers: Vec<u64>,
        /// The places in the order's list, from 0, of the names whose keys were destroyed: one at least, strictly ascending.
        /// By the other names the vault knew nobody, and of them nothing was erased.
        carried_out: Vec<u32>,
        /// The order, signed by the erasure key that counts in this frame, as a signed note.
        order: String,
        /// What the erasure does not reach.
        remains: Vec<Remains>,
    },
    /// A data subject was put on hold, and is not to be erased until the hold is released. Of several holds on one data subject
    /// each has an event, in whose frame it is told apart from the others: who holds is in no event.
    Held {
        /// The number of the data subject.
        number: u64,
        /// The order, signed by the erasure key that counts in this frame, as a signed note.
        order: String,
    },
    /// A hold was released.
    Released {
        /// The number of the data subject.
        number: u64,
        /// The frame of the event that told of the hold.
        held: u64,
        /// The order to release it, signed by the erasure key that counts in this frame, as a signed note.
        order: String,
    },
    /// Entries were exported or granted to somebody.
    Exported(ExportRecord),
    /// The log was gone on with as it was found, by `bulla restore --older-log`, though its keys knew of more frames, or nothing told whether
    /// there had been more: what they held was given up, and may have told of erasures.
    Truncated {
        /// How many frames the keys knew of; 0 where nothing told.
        known: u64,
        /// The id of what was given up, in hexadecimal, by which a vault is known that takes it into account.
        id: String,
    },
    /// The writer is at work: a log that promises a heartbeat has one wherever no epoch and no other event came for so long.
    Heartbeat {},
}

/// Entries that were dropped. Which ones they were is personal, and not told: neither streams nor names of those who appended them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dropped {
    /// How many.
    pub entries: u64,
    /// Whether that is all. False where the process died before it could have the log tell: then there were so many at least.
    pub exact: bool,
    /// How many producers appended them; 0 where that is not known.
    pub producers: u64,
    /// How many of them at least are in files of the setting `error_path`.
    pub set_aside: u64,
    /// None was dropped before this time: seconds since the Unix epoch, by the clock of the writing host.
    pub from: u64,
    /// None was dropped after it.
    pub to: u64,
    /// What failed.
    pub reason: String,
}

/// A change of the erasure key, which is one of `[log]`: done with the first epoch that is begun with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rekeyed {
    /// The digest of the `[log]` of the epoch before, in hexadecimal.
    pub before: String,
    /// The digest of the new one, which is another.
    pub after: String,
    /// The erasure key before.
    pub from: String,
    /// The new one, which is another: not the same under another name.
    pub to: String,
    /// The order to change it, by the former key, as a signed note ([`bulla_proof::key_order`]); empty where there is none.
    pub order: String,
}

/// Whether two texts are one key, under whatever names; what is no key is another than any but the same text.
pub(crate) fn is_same_key(one: &str, other: &str) -> bool {
    match (one.parse::<VerifierKey>(), other.parse::<VerifierKey>()) {
        (Ok(one), Ok(other)) => one.is_same_key(&other),
        _ => one == other,
    }
}

impl Rekeyed {
    /// The order, which is signed with the key before; none where nobody ordered it.
    ///
    /// # Errors
    /// What is wrong with it, as an order of this change in this log.
    pub fn ordered(&self, log: LogId) -> Result<Option<KeyOrder>, String> {
        if self.order.is_empty() {
            return Ok(None);
        }
        let order = KeyOrder::open(self.order.as_bytes());
        let order = order.map_err(|error| format!("its order does not hold: {error}"))?;
        if order.log != log {
            return Err(format!("its order is for another log, {}", order.log));
        }
        match order.from.to_string() == self.from && order.to.to_string() == self.to {
            true => Ok(Some(order)),
            false => Err("its order is for other keys".to_owned()),
        }
    }
}

/// That entries were given out: how many and in which form, never which ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportRecord {
    /// How many.
    pub entries: u64,
    /// The names of the filters by which they were chosen: of fields ([`crate::FieldFilters::names`]), `time`, `entries`. Their
    /// values are left out, since those may be personal. Empty where everything was asked for.
    pub filters: Vec<String>,
    /// The form that they were given in, such as `jsonl` or `grant`: up to 32 lower-case letters, digits and hyphens.
    pub format: String,
}

/// The names that filters can have.
pub(crate) const FILTERS: [&str; 15] = [
    "subject",
    "stream",
    "operation",
    "processor",
    "controller",
    "purpose",
    "actor",
    "client",
    "location",
    "status",
    "duration",
    "size",
    "flags",
    "time",
    "entries",
];

impl ExportRecord {
    /// The event that says so.
    ///
    /// # Errors
    /// `Invalid` where a filter or the format is none: an event is public, and has no room for anything else.
    pub(crate) fn event(self) -> Result<Event> {
        self.check().map_err(Error::invalid)?;
        Ok(Event::Exported(self))
    }

    fn check(&self) -> Result<(), String> {
        if !self.filters.iter().all(|filter| FILTERS.contains(&filter.as_str()))
            || !is_each_once(&self.filters)
        {
            return Err(format!("the filters of an export are {}, each once", FILTERS.join(", ")));
        }
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        match (1..=32).contains(&self.format.len()) && self.format.bytes().all(plain) {
            true => Ok(()),
            false => Err("the format of an export is a word of up to 32 letters".to_owned()),
        }
    }
}

/// What an erasure does not reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", try_from = "String")]
#[non_exhaustive]
pub enum Remains {
    /// Of each entry its time, operation, controller, processor, purpose, status, duration, size and flags, under the
    /// number of the data subject.
    SharedFields,
    /// Of a log with `common` in `[log]`: what many groups of a block have in common, which stands outside of them.
    CommonItems,
    /// What was given out before: exports, proofs, grants.
    Copies,
    /// Backups of the key directory from before.
    KeyBackups,
    /// What a medium keeps of blocks that were overwritten or freed.
    Medium,
}

impl TryFrom<String> for Remains {
    type Error = String;

    /// Reads the name as JSON has it. Serde would take an object for it, too.
    fn try_from(name: String) -> Result<Self, Self::Error> {
        let known = Remains::all(true).into_iter().find(|remains| remains.name() == name);
        known.ok_or_else(|| format!("nothing that remains is called `{name}`"))
    }
}

impl Remains {
    fn name(self) -> &'static str {
        match self {
            Remains::SharedFields => "shared-fields",
            Remains::CommonItems => "common-items",
            Remains::Copies => "copies",
            Remains::KeyBackups => "key-backups",
            Remains::Medium => "medium",
        }
    }

    /// All of it, in a log whose groups share what they have in `common`, or in one where they do not.
    pub fn all(common: bool) -> Vec<Remains> {
        use Remains::{CommonItems, Copies, KeyBackups, Medium, SharedFields};
        let all = [SharedFields, CommonItems, Copies, KeyBackups, Medium];
        all.into_iter().filter(|remains| common || *remains != CommonItems).collect()
    }
}

impl fmt::Display for Remains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Remains::SharedFields => {
                "of each entry: time, operation, controller, processor, purpose, status, duration, size and flags, under \
                 the data subject's number"
            }
            Remains::CommonItems => {
                "words and shapes that as many data subjects of a block have in common as `common` says, in which no name of that block's \
                 data subjects stands as a whole, as it is written, but a word of one that others used by itself, too, may: where fewer of those who can still be read have one, somebody who was erased had it, and how long their \
                 ciphertext is may tell who"
            }
            Remains::Copies => "exports, proofs and grants that were given out before",
            Remains::KeyBackups => "backups of the key directory from before, which open what they opened then",
            Remains::Medium => "what a medium keeps of blocks that were overwritten or freed",
        })
    }
}

impl Event {
    /// The body of its frame.
    pub(crate) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("an event has nothing that JSON cannot hold")
    }

    /// Reads the body of an event frame.
    ///
    /// # Errors
    /// `Invalid` where it is not an event of this version, or one of its members is not what `docs/format.md` ("Events") wants.
    pub fn decode(body: &[u8]) -> Result<Self> {
        let invalid = |wrong: String| Error::invalid(format!("the event is not one: {wrong}"));
        let event = json::object::<Event>(body).map_err(|error| invalid(error.to_string()))?;
        event.check().map_err(invalid).map(|()| event)
    }

    /// That its members are what they have to be, which their types do not say.
    fn check(&self) -> Result<(), String> {
        let wrong = match self {
            Event::Abandoned { segment, .. } if AsideName::parse(segment).is_some() => return Ok(()),
            Event::Recovered { segment, .. } | Event::Abandoned { segment, .. }
                if SegmentName::parse(segment).is_none() =>
            {
                "it names no segment"
            }
            Event::PathReplaced { from, to, .. } => match (PathId::parse(from), PathId::parse(to)) {
                (Some(from), Some(to)) if from != to => return Ok(()),
                (Some(_), Some(_)) => "it replaces a path by itself",
                _ => "what it calls a path's id is none",
            },
            Event::Recovered { sha256, .. } if parse_digest(sha256).is_none() => {
                "what it calls a digest is none"
            }
            Event::Truncated { id, .. } if PartId::parse(id).is_none() => "what it calls a part's id is none",
            Event::Erased { numbers, carried_out, remains, .. } => {
                if !is_ascending(numbers) || !is_ascending(carried_out) {
                    "its numbers are none, or do not ascend"
                } else if numbers.len() > MAX_ORDERED || carried_out.len() > MAX_ORDERED {
                    "its numbers are more than an order names"
                } else if !is_each_once(remains) {
                    "it says twice what remains"
                } else {
                    return Ok(());
                }
            }
            Event::Configured { changed, .. } => match self.configures() {
                None => "what it calls a digest of [log] is none",
                Some((before, after)) if before == after => "it tells of a change to what was there",
                Some(_) if !are_keys(changed) => "it names no keys of [log] that can change, each once",
                Some(_) => return Ok(()),
            },
            Event::Rekeyed(Rekeyed { from, to, .. }) => match self.configures() {
                None => "what it calls a digest of [log] is none",
                Some((before, after)) if before == after => "it tells of a change to what was there",
                Some(_) if is_same_key(from, to) => "it changes the erasure key to what it was",
                Some(_) => return Ok(()),
            },
            Event::Exported(record) => return record.check(),
            Event::Dropped(Dropped { from, to, .. }) if from > to => {
                "nothing can have been dropped after one time and before an earlier one"
            }
            Event::Dropped(Dropped { entries, exact, set_aside, .. }) => match (entries, exact) {
                (0, true) => "it tells of entries that were dropped, and there are none",
                _ if set_aside > entries => "more is set aside than was dropped",
                _ => return Ok(()),
            },
            _ => return Ok(()),
        };
        Err(wrong.to_owned())
    }

    /// The name of its kind, as in JSON.
    pub fn kind(&self) -> &'static str {
        match self {
            Event::Recovered { .. } => "recovered",
            Event::Abandoned { .. } => "abandoned",
            Event::PathReplaced { .. } => "path-replaced",
            Event::Dropped(_) => "dropped",
            Event::Configured { .. } => "configured",
            Event::Rekeyed(_) => "rekeyed",
            Event::Erased { .. } => "erased",
            Event::Held { .. } => "held",
            Event::Released { .. } => "released",
            Event::Exported(_) => "exported",
            Event::Truncated { .. } => "truncated",
            Event::Heartbeat {} => "heartbeat",
        }
    }

    /// That another path of the log took over.
    pub(crate) fn path_replaced(Switch { from, to, reason }: Switch) -> Self {
        Event::PathReplaced { from, to, reason }
    }

    /// A change of `[log]`.
    pub(crate) fn configured(before: Hash, after: Hash, changed: Vec<String>) -> Self {
        Event::Configured { before: before.to_string(), after: after.to_string(), changed }
    }

    /// A change of the erasure key in `[log]`.
    pub(crate) fn rekeyed(
        (before, after): (Hash, Hash),
        (from, to): (&VerifierKey, &VerifierKey),
        order: String,
    ) -> Self {
        let (before, after) = (before.to_string(), after.to_string());
        Event::Rekeyed(Rekeyed { before, after, from: from.to_string(), to: to.to_string(), order })
    }

    /// The segment whose end the event explains, and the offset of that end.
    pub(crate) fn explains(&self) -> Option<(&str, u64)> {
        match self {
            Event::Recovered { segment, offset, .. } | Event::Abandoned { segment, offset, .. } => {
                Some((segment, *offset))
            }
            _ => None,
        }
    }

    /// The numbers of the data subjects that it erased.
    pub(crate) fn erases(&self) -> &[u64] {
        match self {
            Event::Erased { numbers, .. } => numbers,
            _ => &[],
        }
    }

    /// The numbers of the data subjects that it names.
    pub(crate) fn subjects(&self) -> &[u64] {
        match self {
            Event::Held { number, .. } | Event::Released { number, .. } => std::slice::from_ref(number),
            _ => self.erases(),
        }
    }

    /// The part of the log that was given up before it, which may have told of erasures.
    pub(crate) fn gives_up(&self) -> Option<PartId> {
        match self {
            Event::Truncated { id, .. } => PartId::parse(id),
            _ => None,
        }
    }

    /// Whether it tells of a hold, or of the release of one.
    pub(crate) fn is_of_hold(&self) -> bool {
        matches!(self, Event::Held { .. } | Event::Released { .. })
    }

    /// The digests of `[log]` from which and to which it allows a change.
    pub(crate) fn configures(&self) -> Option<(Hash, Hash)> {
        match self {
            Event::Configured { before, after, .. } | Event::Rekeyed(Rekeyed { before, after, .. }) => {
                parse_digest(before).zip(parse_digest(after))
            }
            _ => None,
        }
    }
}

/// Whether these are names of keys of `[log]` that can change: one at least, each once.
fn are_keys(names: &[String]) -> bool {
    let is_field = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase());
    let is_key = |name: &String| {
        ["recipients", "heartbeat", "witness_policy"].contains(&name.as_str())
            || name.strip_prefix("fields.").is_some_and(is_field)
    };
    !names.is_empty() && is_each_once(names) && names.iter().all(is_key)
}

fn is_each_once<T: Eq + std::hash::Hash>(list: &[T]) -> bool {
    let mut seen = HashSet::new();
    list.iter().all(|one| seen.insert(one))
}

/// Reads a hash as [`Hash`] displays it, and in no other spelling.
pub(crate) fn parse_digest(text: &str) -> Option<Hash> {
    let mut digest = [0; Hash::LENGTH];
    if !text.is_ascii() || text.len() != 2 * digest.len() {
        return None;
    }
    for (byte, at) in digest.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
    }
    Some(Hash(digest)).filter(|digest| digest.to_string() == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `vectors/events/`.
    fn vectors(name: &str) -> Vec<String> {
        let path = format!("{}/../../vectors/events/{name}.json", env!("CARGO_MANIFEST_DIR"));
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
    }

    #[test]
    fn every_kind_has_its_members_each_once_within_their_limits_and_no_others() {
        let (taken, refused) = (vectors("taken"), vectors("refused"));
        let mut kinds = HashSet::new();
        for body in &taken {
            let event = Event::decode(body.as_bytes()).unwrap_or_else(|error| panic!("{body}: {error}"));
            assert_eq!(Event::decode(&event.encode()).unwrap(), event);
            kinds.insert(std::mem::discriminant(&event));
        }
        assert_eq!(kinds.len(), 12, "one of each kind");
        for body in &refused {
            let error = Event::decode(body.as_bytes()).expect_err(body).to_string();
            assert!(error.starts_with("the event is not one: "), "{error}");
        }
    }
}

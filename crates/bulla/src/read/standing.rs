//! Of data subjects of whom a query found nothing: whether they are known here, so that nobody takes a slip of the pen for
//! "nothing is held on you".

use crate::fields::filter::{TextField, TextFilter};
use crate::scan::erasures::Erased;
use crate::scan::keyless::{Keyless, numbers_of};
use crate::scan::query::Query;
use bulla_crypto::group::GroupKeys;
use bulla_store::Result;
use std::fmt;

/// What can be said of a data subject of whom a query found nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Standing {
    /// They have a number: entries of theirs may be there, and none meets the query.
    Known,
    /// The same, where something that is not signed yet may follow what was read.
    KnownAsSigned,
    /// Nobody here has that name: they were never met, or they were erased. Which of these, nothing can say: events name data
    /// subjects by number, and theirs went with their key.
    NotKnown,
    /// The log has no erasure, and no entry of it names them.
    NeverMet,
    /// Nobody can tell: no vault with everybody's keys is at hand.
    NoVault,
    /// Nobody can tell: the vault lacks keys that were not erased, so that it may be older than the log.
    KeysLost,
    /// Nobody can tell: an event of the log, which is damaged, cannot be read, and it may tell of their erasure.
    EventsUnread,
    /// Nobody can tell from this: the log has no erasure, so nobody has a number, and not all of its entries were asked for.
    NotAllAsked,
    /// Nobody can tell yet: nothing that is signed names them, and something that is not signed yet may follow it, which is not
    /// looked at.
    NotSigned,
}

impl Standing {
    /// The name, as in JSON: all that cannot be told are one.
    pub fn name(self) -> &'static str {
        match self {
            Standing::Known | Standing::KnownAsSigned => "known",
            Standing::NotKnown | Standing::NeverMet => "not-known",
            Standing::NoVault
            | Standing::KeysLost
            | Standing::EventsUnread
            | Standing::NotAllAsked
            | Standing::NotSigned => "cannot-tell",
        }
    }

    /// The same, where something that is not signed yet may follow what was read.
    fn as_signed(self) -> Self {
        match self {
            Standing::Known => Standing::KnownAsSigned,
            Standing::NotKnown | Standing::NeverMet => Standing::NotSigned,
            other => other,
        }
    }
}

impl fmt::Display for Standing {
    /// What follows the name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Standing::Known => "is known here, but no entry of theirs that can be read meets this",
            Standing::KnownAsSigned => {
                "is known here, but no entry of theirs that is signed and can be read meets this"
            }
            Standing::NotKnown => {
                "is not known here: never met, or erased; which of these cannot be told, since events have no names"
            }
            Standing::NeverMet => "is not known here: no entry of the log names them",
            Standing::NoVault => {
                "may be known or not, which cannot be told: no vault with everybody's keys is at hand"
            }
            Standing::KeysLost => {
                "may be known or not, which cannot be told: keys are lost that the log does not say were erased"
            }
            Standing::EventsUnread => {
                "may be known or not, which cannot be told: an event that may tell of their erasure cannot be read"
            }
            Standing::NotAllAsked => {
                "may be known or not, which this cannot tell, since the log has no vault: ask for them with no other filter"
            }
            Standing::NotSigned => {
                "may be known or not, which cannot be told: entries that are not signed yet may name them"
            }
        })
    }
}

/// A data subject that was asked for by name: by a query that found nothing of them, or for their number.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AskedSubject {
    /// As it was asked for.
    pub subject: String,
    /// Their number, where they have one.
    pub number: Option<u64>,
    /// What can be said of them.
    pub standing: Standing,
}

/// Of a query that found nothing in a log.
pub(crate) struct Nothing<'a> {
    pub(crate) query: &'a Query,
    pub(crate) keys: Option<&'a dyn GroupKeys>,
    /// Whether the log has erasure.
    pub(crate) erasure: bool,
    /// Frames that the checkpoint covers.
    pub(crate) size: u64,
    /// Whether every entry under the checkpoint that was asked for was looked at.
    pub(crate) whole: bool,
    /// Whether something that is not signed yet may follow the checkpoint.
    pub(crate) unsigned: bool,
    /// Whether an event that may tell of an erasure cannot be read.
    pub(crate) unread: bool,
    /// Whether such an event is one that the keys do not follow, either.
    pub(crate) withheld: bool,
}

impl Nothing<'_> {
    /// What can be said of the data subjects that were asked for by name; `erased` says whose keys were destroyed.
    ///
    /// # Errors
    /// Where the keys cannot be looked up; as `erased`.
    pub(crate) fn subjects(self, erased: impl Fn() -> Result<Erased>) -> Result<Vec<AskedSubject>> {
        let mut subjects = self.as_far_as_it_is_signed(erased)?;
        for AskedSubject { standing, .. } in &mut subjects {
            let unread = self.unread && *standing == Standing::KeysLost;
            if unread || self.withheld && *standing == Standing::Known {
                *standing = Standing::EventsUnread;
            }
        }
        if self.unsigned {
            subjects.iter_mut().for_each(|subject| subject.standing = subject.standing.as_signed());
        }
        Ok(subjects)
    }

    fn as_far_as_it_is_signed(&self, erased: impl Fn() -> Result<Erased>) -> Result<Vec<AskedSubject>> {
        let names = self.query.fields.texts(TextField::Subject).iter().filter_map(|filter| match filter {
            TextFilter::Is(name) => std::str::from_utf8(name).ok(),
            TextFilter::BeginsWith(_) => None,
        });
        let names = names.collect::<Vec<_>>();
        let Some(keys) = self.keys.filter(|_| !names.is_empty()) else {
            let standing = match (self.erasure, self.whole && self.asks_for_subjects_alone()) {
                (true, _) => Standing::NoVault,
                (false, true) => Standing::NeverMet,
                (false, false) => Standing::NotAllAsked,
            };
            let one = |name: &&str| AskedSubject { subject: (*name).to_owned(), number: None, standing };
            return Ok(names.iter().map(one).collect());
        };
        Ok(look_up(&names, keys, self.size, erased)?.subjects)
    }

    fn asks_for_subjects_alone(&self) -> bool {
        let Query { fields, from, to, first_entry, last_entry } = self.query;
        let besides = from.is_some() || to.is_some() || first_entry.is_some() || last_entry.is_some();
        !besides && fields.names().eq([TextField::Subject.name()])
    }
}

/// Data subjects that were asked for by name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AskedSubjects {
    /// Each of them, as they were asked for.
    pub subjects: Vec<AskedSubject>,
    /// Whether keys are lost that the log does not say were erased: what is told of a number without a key may then be about any of
    /// them, besides what is told of their own.
    pub keys_lost: bool,
}

/// The numbers of data subjects of a log of `size` frames, and what can be said of whoever has none; `erased` says whose keys
/// were destroyed.
///
/// # Errors
/// Where the keys cannot be looked up; as `erased`.
pub(crate) fn look_up(
    names: &[&str],
    keys: &dyn GroupKeys,
    size: u64,
    erased: impl Fn() -> Result<Erased>,
) -> Result<AskedSubjects> {
    let keys_lost = !Keyless::of(keys, &erased)?.is_nobody_below(size);
    let unknown = match (keys.is_complete(), keys_lost) {
        (false, _) => Standing::NoVault,
        (true, true) => Standing::KeysLost,
        (true, false) => Standing::NotKnown,
    };
    let one = |(name, number): (&&str, Option<u64>)| {
        let standing = number.map_or(unknown, |_| Standing::Known);
        AskedSubject { subject: (*name).to_owned(), number, standing }
    };
    let subjects = names.iter().zip(numbers_of(names, keys, erased)?).map(one).collect();
    Ok(AskedSubjects { subjects, keys_lost })
}

/// What is said of them, to follow what says that nothing was found, without names: what an error says is kept where they must not be.
pub(crate) fn summary(subjects: &[AskedSubject]) -> String {
    if let [AskedSubject { standing, .. }] = subjects {
        return format!("; the data subject {standing}");
    }
    let mut told = Vec::<(Standing, Vec<String>)>::new();
    for (AskedSubject { standing, .. }, place) in subjects.iter().zip(1_u64..) {
        match told.iter_mut().find(|(known, _)| known == standing) {
            Some((_, places)) => places.push(place.to_string()),
            None => told.push((*standing, vec![place.to_string()])),
        }
    }
    let each = |(standing, places): (Standing, Vec<String>)| {
        format!("; of the data subjects asked for, each of {} {standing}", places.join(", "))
    };
    told.into_iter().map(each).collect()
}

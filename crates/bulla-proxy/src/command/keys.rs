//! The keys that a specification finds among arguments.

use super::description::{self as flag, Begin, Find, Spec};
use super::effect::{Access, Accesses, KeyUse, Keys};
use super::words::Words;

/// A specification whose flags are understood.
#[derive(Clone, Debug)]
pub(super) struct Place {
    begin: Begin,
    find: Find,
    pub(super) accesses: Accesses,
}

impl Place {
    pub(super) fn of(spec: &Spec) -> Place {
        Place { begin: spec.begin, find: spec.find, accesses: accesses(spec.flags) }
    }

    /// The keys of a command, appended. Where a number of keys is none, or goes beyond the arguments, the command is refused by
    /// the server, and there are none.
    pub(super) fn keys(&self, words: &mut Words<'_>, keys: &mut Keys) {
        if let Some((first, last, step)) = self.range(words) {
            let mut at = first;
            while at <= last && words.has(at) {
                push(keys, at, self.accesses, None);
                at += u64::from(step);
            }
        }
    }

    /// The first and the last argument that may be a key, and the step between.
    fn range(&self, words: &mut Words<'_>) -> Option<(u64, u64, u32)> {
        let begin = match &self.begin {
            Begin::Index(index) => u64::from(*index),
            Begin::Keyword(word, from) => behind(words, word.bytes(), *from)?,
            Begin::Unknown => return None,
        };
        let count = words.count();
        let (first, last, step) = match self.find {
            Find::Range { last, step, .. } if last >= 0 => {
                (begin, begin + u64::from(last.unsigned_abs()), step)
            }
            Find::Range { last, step, limit: 0 } => {
                (begin, count.checked_sub(u64::from(last.unsigned_abs()))?, step)
            }
            Find::Range { last, step, limit } => {
                let part = begin + count.saturating_sub(begin) / u64::from(limit);
                (begin, part.checked_sub(u64::from(last.unsigned_abs()))?, step)
            }
            Find::Number { number, first, step } => {
                let number = u64::try_from(words.number(begin + u64::from(number))?).ok()?;
                let first = begin + u64::from(first);
                (first, first.checked_add(number.checked_sub(1)?.checked_mul(u64::from(step))?)?, step)
            }
            Find::Unknown => return None,
        };
        (first <= last && last < count).then_some((first, last, step))
    }

    /// Whether argument `index` may be a key, known only what comes before it.
    pub(super) fn may_be(&self, before: &mut Words<'_>, index: u64) -> bool {
        let begin = match &self.begin {
            Begin::Index(begin) => u64::from(*begin),
            Begin::Keyword(_, from) => return index > u64::try_from(*from).unwrap_or(1),
            Begin::Unknown => return false,
        };
        let (first, last, step) = match self.find {
            Find::Range { last, step, .. } => {
                (begin, u64::try_from(last).map_or(u64::MAX, |last| begin + last), step)
            }
            Find::Number { number, first, step } => {
                // What is not known yet may be any number.
                let number = before.number(begin + u64::from(number)).map_or(u64::MAX, i64::unsigned_abs);
                let first = begin + u64::from(first);
                (first, first.saturating_add(number.saturating_sub(1).saturating_mul(u64::from(step))), step)
            }
            Find::Unknown => return false,
        };
        (first..=last).contains(&index) && (index - first).is_multiple_of(u64::from(step))
    }
}

/// The argument behind a word that is looked for from an argument on.
fn behind(words: &mut Words<'_>, word: &[u8], from: i32) -> Option<u64> {
    if from < 0 {
        let mut at = words.count().checked_sub(u64::from(from.unsigned_abs()))?;
        while at > 0 && words.has(at) {
            if words.is_bytes(at, word) {
                return Some(at + 1);
            }
            at -= 1;
        }
        return None;
    }
    let mut at = u64::from(from.unsigned_abs());
    while words.has(at) {
        if words.is_bytes(at, word) {
            return Some(at + 1);
        }
        at += 1;
    }
    None
}

/// A use for each way in which a key is used.
pub(super) fn push(keys: &mut Keys, argument: u64, accesses: Accesses, database: Option<u32>) {
    for access in accesses.iter() {
        keys.push(KeyUse { argument, access, database });
    }
}

/// What the flags of a specification say of its keys. Where they say nothing, everything but their end.
fn accesses(flags: u16) -> Accesses {
    let has = |flag: u16| flags & flag != 0;
    let read = if has(flag::ACCESS) { Accesses::READ } else { Accesses::default() };
    if has(flag::RM) {
        read.and(Access::Delete)
    } else if has(flag::OW) {
        read.and(if has(flag::INSERT) && !has(flag::UPDATE) { Access::Create } else { Access::Write })
    } else if has(flag::RW) && has(flag::INSERT | flag::UPDATE) {
        read.and(Access::Write)
    } else if has(flag::RW) && has(flag::DELETE) {
        read.and(Access::Update)
    } else if has(flag::RO) || has(flag::RW) && has(flag::ACCESS) {
        Accesses::READ
    } else {
        Accesses::READ.and(Access::Write)
    }
}

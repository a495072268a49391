//! Whose names are in a group: as many as it has numbers, the same ones in each of its entries, and, where the vault is at hand,
//! those of the people who have the numbers.

use bulla_crypto::group::{GroupKeys, Whose};
use bulla_proof::entry::RawRow;
use bulla_store::Result;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// The names of a group's data subjects, ascending, from the personal fields of its entries; `None` where one entry has others
/// than the first, or there are not `count` of them.
pub(super) fn of_group<'a>(mut pieces: impl Iterator<Item = &'a [u8]>, count: usize) -> Option<Vec<&'a str>> {
    let names = of_entry(pieces.next()?)?;
    let all_the_same = pieces.all(|piece| of_entry(piece).is_some_and(|others| others == names));
    (names.len() == count && all_the_same).then_some(names)
}

fn of_entry(piece: &[u8]) -> Option<Vec<&str>> {
    let names = RawRow::parse_personal(piece).ok()?.subjects?.map(std::str::from_utf8);
    let mut names = names.collect::<std::result::Result<Vec<_>, _>>().ok()?;
    names.sort_unstable();
    names.dedup();
    Some(names)
}

/// The data subjects of a group, as their numbers and as their names.
pub(super) struct Named {
    pub(super) numbers: Vec<u64>,
    pub(super) names: Vec<String>,
}

/// Compares names with numbers, and remembers what it found.
pub(crate) struct Names<'a> {
    keys: &'a dyn GroupKeys,
    known: Mutex<HashMap<u64, String>>,
}

impl<'a> Names<'a> {
    /// The most names that are remembered: a few MiB.
    const MOST: usize = 1 << 16;

    pub(crate) fn new(keys: &'a dyn GroupKeys) -> Self {
        Names { keys, known: Mutex::default() }
    }

    /// Whether each of these groups is of the people whom it names, as far as that can be told.
    ///
    /// # Errors
    /// Where names cannot be looked up.
    pub(super) fn fit(&self, groups: &[Named]) -> Result<bool> {
        let unknown = self.unknown(groups);
        let Some(answers) = self.keys.whose(&unknown)? else { return Ok(true) };
        if answers.contains(&Whose::Others) {
            return Ok(false);
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() + unknown.len() > Self::MOST {
            known.clear();
        }
        for ((_, name), answer) in unknown.into_iter().zip(answers) {
            if let Whose::Number(number) = answer {
                known.insert(number, name.to_owned());
            }
        }
        Ok(true)
    }

    /// The names that nobody has asked for yet. A group has as many as numbers, and each is somebody else's.
    fn unknown<'b>(&self, groups: &'b [Named]) -> Vec<(&'b [u64], &'b str)> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known =
            |group: &Named, name: &String| group.numbers.iter().any(|number| known.get(number) == Some(name));
        let of_group = |group: &'b Named| {
            let names = group.names.iter().filter(|name| !is_known(group, name));
            names.map(|name| (&group.numbers[..], &name[..])).collect::<Vec<_>>()
        };
        groups.iter().flat_map(of_group).collect()
    }
}

//! Which entries lose what is personal when some data subjects are erased, and whose they are besides.

use crate::erase::Hold;
use crate::read::reading::Reading;
use crate::scan::erasures::Erased;
use crate::scan::keyless::Keyless;
use crate::scan::unsigned::unsigned;
use bulla_store::Result;
use bulla_text::spelling::{agreeing, counted};
use std::collections::{BTreeMap, HashMap};
use std::fmt;

/// The most others that are told one by one: a few MiB. Those of them who are held are told all the same.
const MOST_OTHERS: usize = 1 << 16;

/// The entries that lose what is personal with an erasure: of a log's signed frames, each that names somebody who is erased and
/// that can be read until then.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EntriesGoing {
    /// So many frames were looked at: all that the checkpoint covers.
    pub tree_size: u64,
    /// How many entries.
    pub entries: u64,
    /// Of these, the ones that concern others, too, who lose them with it.
    pub shared: u64,
    /// Who these others are, ascending by their numbers; 65,536 of them at most.
    pub others: Vec<OtherSubject>,
    /// Whether these are all of them.
    pub all_others: bool,
    /// The holds on others, all of them. They do not keep these entries.
    pub held_others: Vec<Hold>,
    /// What may go besides; nothing where the counts are those of the erasure.
    pub not_sure: Vec<NotSure>,
}

/// Somebody who loses entries with those who are erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OtherSubject {
    /// The number of the data subject.
    pub number: u64,
    /// How many entries.
    pub entries: u64,
}

/// Why more entries may go than were counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotSure {
    /// A writer has the log open.
    Writer,
    /// So many bytes follow the checkpoint.
    Unsigned(u64),
    /// Keys are lost that the log does not say were erased.
    KeysLost,
    /// Blocks were lost with a path of the log.
    FramesLost,
}

impl fmt::Display for NotSure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Writer => f.write_str(
                "a writer is at work: entries that are not signed yet, or that it appends until then, go with these",
            ),
            Self::Unsigned(bytes) => write!(
                f,
                "{} after the last checkpoint {} not signed: opening the log may take up entries in {}, which go with these",
                counted(*bytes, "byte"),
                agreeing(*bytes, "is", "are"),
                agreeing(*bytes, "it", "them"),
            ),
            Self::KeysLost => f.write_str(
                "keys are lost that the log does not say were erased: entries that nobody can read for that may be theirs",
            ),
            Self::FramesLost => f.write_str(
                "frames of the log were lost with a path: entries of theirs in these go with the others, should the path be found",
            ),
        }
    }
}

/// Whom to count for, and what is known of everybody.
pub(super) struct Subjects<'a> {
    /// Ascending.
    pub(super) numbers: &'a [u64],
    pub(super) erased: &'a Erased,
    pub(super) keyless: &'a Keyless,
    pub(super) holds: &'a [Hold],
}

/// What was found of one of them.
#[derive(Default)]
pub(super) struct Own {
    pub(super) entries: u64,
    /// The first block that names them, whether that can be read or not.
    pub(super) first: Option<u64>,
}

impl Subjects<'_> {
    /// Counts all of it, and for each of them.
    ///
    /// # Errors
    /// As [`Reading::groups_of`].
    pub(super) fn count(&self, reading: &Reading<'_>) -> Result<(EntriesGoing, HashMap<u64, Own>)> {
        let mut going = EntriesGoing {
            tree_size: reading.manifest.size(),
            entries: 0,
            shared: 0,
            others: Vec::new(),
            all_others: true,
            held_others: Vec::new(),
            not_sure: Vec::new(),
        };
        let mut each = self.numbers.iter().map(|number| (*number, Own::default())).collect::<HashMap<_, _>>();
        // Of whoever is held, from the start: however many others there are.
        let mut held = self.holds.iter().map(|hold| (hold.number, 0)).collect::<BTreeMap<u64, u64>>();
        let mut others = BTreeMap::<u64, u64>::new();
        reading.groups_of(self.numbers, |frame, groups| {
            for group in groups {
                let entries = if self.opens(&group.subjects) { group.entries } else { 0 };
                going.entries += entries;
                let mut is_shared = false;
                for number in &group.subjects {
                    if let Some(own) = each.get_mut(number) {
                        own.entries += entries;
                        own.first.get_or_insert(frame);
                        continue;
                    }
                    is_shared = true;
                    if entries == 0 {
                        continue;
                    }
                    if let Some(count) = held.get_mut(number) {
                        *count += entries;
                    }
                    match others.len() < MOST_OTHERS || others.contains_key(number) {
                        true => *others.entry(*number).or_default() += entries,
                        false => going.all_others = false,
                    }
                }
                going.shared += if is_shared { entries } else { 0 };
            }
            Ok(())
        })?;
        let loses = |hold: &&Hold| held.get(&hold.number).is_some_and(|entries| *entries > 0);
        going.held_others = self.holds.iter().filter(loses).cloned().collect();
        going.others = others.into_iter().map(|(number, entries)| OtherSubject { number, entries }).collect();
        match unsigned(&reading.manifest)? {
            None => going.not_sure.push(NotSure::Writer),
            Some((_, 0)) => {}
            Some((_, bytes)) => going.not_sure.push(NotSure::Unsigned(bytes)),
        }
        Ok((going, each))
    }

    /// Whether the group of these can be read: otherwise an erasure takes nothing from it.
    fn opens(&self, subjects: &[u64]) -> bool {
        !self.keyless.are_among(subjects)
            && !subjects.iter().any(|number| self.erased.numbers.contains(number))
    }
}

//! What the groups of a block have in common: the strings of some groups are cut and counted.
//!
//! - What is counted says how many groups have something of which no two have a data subject in common: the caller says which
//!   groups count.
//! - Not all groups of a large block are looked at ([`stride`]). What is common to as many of those as were asked for is common to as
//!   many of all; what only all of them together would have often enough is not found.
//! - The names of all data subjects of the block are noted before, whichever groups are looked at. What is part of one where a text has
//!   it counts for nothing: it is no word that was met, and has no vote on what is in a shape.

use super::cut::{Cut, Filling, LONGEST};
use super::names::{Names, Places};
use super::shape::{Piece, Slot, pieces};
use super::values::{Before, Value, values};
use crate::strings::{Distinct, decimal_length};
use bulla_proof::EntryError;
use bulla_proof::entry::RawRow;
use std::ops::Range;

/// A group with more bytes of strings, or with a longer one, has something to learn from itself, and is written in columns.
const LARGEST_GROUP: usize = 8 * 1024;
/// The longest word or phrase that may be common.
const LONGEST_WORD: usize = 128;
/// The most words of a phrase that may be common itself.
pub(super) const MOST_PARTS: usize = 4;
/// The most entries of whose groups all are looked at, and of how many one is in the largest blocks.
const LOOKED_AT: usize = 2048;
const SPARSEST: usize = 8;

/// Fillings are noted for so many slots in any case, and beyond that for one in so many bytes of strings; what has more is not cut.
const FREE_SLOTS: usize = 1 << 16;
const BYTES_A_SLOT: usize = 4;
/// Once shapes have so many slots together, no new ones are counted.
const MOST_VOTES: usize = 1 << 16;

/// Of so many groups one is looked at, in a block of so many entries in groups.
pub(crate) fn stride(entries: usize) -> usize {
    (entries / LOOKED_AT).clamp(1, SPARSEST)
}

/// Whether a group of these rows is written as records.
pub(super) fn is_small<'a>(
    rows: impl Iterator<Item = &'a [u8]> + Clone,
    personal: u16,
) -> Result<bool, EntryError> {
    // A row is longer than its strings, and most often that says it already.
    let lengths = rows.clone().map(<[u8]>::len);
    if lengths.clone().all(|length| length <= LONGEST) && lengths.sum::<usize>() < LARGEST_GROUP {
        return Ok(true);
    }
    let mut sum = 0;
    for row in rows {
        for (_, value) in values(&RawRow::parse(row)?, personal) {
            match value {
                Value::String(string) if string.len() > LONGEST => return Ok(false),
                Value::String(string) => sum += string.len(),
                Value::Number(_) => {}
            }
        }
    }
    Ok(sum < LARGEST_GROUP)
}

/// What fills a slot for words, as a number of a list. A word or phrase that was counted is its own number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wording {
    Counted(usize),
    /// It was not counted.
    Other,
    /// So many wordings follow, one for each of its words.
    Phrase(usize),
}

const OTHER: u64 = u64::MAX;
const PHRASE: u64 = 1 << 62;

impl Wording {
    fn pack(self) -> u64 {
        match self {
            Wording::Counted(number) => number as u64,
            Wording::Other => OTHER,
            Wording::Phrase(words) => PHRASE | words as u64,
        }
    }

    #[allow(clippy::cast_possible_truncation, reason = "what was packed was as narrow")]
    pub(super) fn unpack(packed: u64) -> Self {
        match packed {
            OTHER => Wording::Other,
            PHRASE.. => Wording::Phrase((packed & !PHRASE) as usize),
            number => Wording::Counted(number as usize),
        }
    }
}

/// In how many groups something occurs, and how often.
#[derive(Clone, Copy, Default)]
pub(super) struct Count {
    pub(super) groups: u32,
    /// The last group that was counted, and one more.
    last: u32,
    pub(super) uses: u32,
}

impl Count {
    #[inline]
    pub(super) fn add(&mut self, group: Group) {
        self.uses += 1;
        if group.counts && self.last != group.number {
            self.last = group.number;
            self.groups += 1;
        }
    }
}

/// The group that is at work: one more than its number, and whether it counts.
#[derive(Clone, Copy)]
pub(super) struct Group {
    pub(super) number: u32,
    pub(super) counts: bool,
}

#[derive(Clone, Copy)]
pub(super) struct Word {
    pub(super) count: Count,
    /// How often a slot would refer to it.
    pub(super) uses: u32,
    /// Of a phrase, its words in the list of parts.
    pub(super) parts: (u32, u32),
}

#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) count: Count,
    /// Where the votes on its fillings are, and how many.
    pub(super) votes: (usize, usize),
    /// Of those strings whose fillings are what was voted for.
    pub(super) fixed: Count,
}

/// What nearly all strings of a shape have in a slot. The most frequent filling wins where it has more than half of the votes.
#[derive(Clone, Copy)]
pub(super) struct Vote {
    pub(super) kind: Slot,
    pub(super) filling: u64,
    pub(super) lead: u32,
    /// How many votes there were.
    pub(super) votes: u32,
    /// How many digits it has, where it is of decimal digits.
    pub(super) digits: u8,
    pub(super) digits_lead: u32,
}

impl Vote {
    fn add(&mut self, filling: u64) {
        self.votes += 1;
        cast(&mut self.filling, &mut self.lead, filling);
        if self.kind == Slot::Decimal {
            cast(&mut self.digits, &mut self.digits_lead, decimal_length(filling));
        }
    }
}

/// Counts a vote for a candidate, who is replaced where others had as many (Boyer and Moore, MJRTY).
fn cast<T: PartialEq>(candidate: &mut T, lead: &mut u32, vote: T) {
    if *candidate == vote {
        *lead += 1;
    } else if *lead == 0 {
        (*candidate, *lead) = (vote, 1);
    } else {
        *lead -= 1;
    }
}

/// See the module. Used again, it keeps its memory.
#[derive(Default)]
pub(crate) struct Survey {
    cut: Cut,
    pub(super) vocabulary: Distinct,
    pub(super) words: Vec<Word>,
    /// The words of phrases.
    pub(super) parts: Vec<u32>,
    pub(super) shapes: Distinct,
    pub(super) counts: Vec<Shape>,
    pub(super) votes: Vec<Vote>,
    /// Of each string that was cut its shape, and whether a number in it is part of a name; and what fills the slots, string after string.
    pub(super) strings: Vec<(u32, bool)>,
    pub(super) fillings: Vec<u64>,
    /// Of each group where its strings end.
    pub(super) groups: Vec<(usize, Group)>,
    /// How many strings were met, and how many bytes of them.
    pub(super) met: (usize, usize),
    pub(super) names: Names,
}

impl Survey {
    /// Forgets the last block.
    pub(super) fn begin(&mut self) {
        let Survey {
            cut: _,
            vocabulary,
            words,
            parts,
            shapes,
            counts,
            votes,
            strings,
            fillings,
            groups,
            met,
            names,
        } = self;
        vocabulary.clear();
        shapes.clear();
        words.clear();
        parts.clear();
        counts.clear();
        votes.clear();
        strings.clear();
        fillings.clear();
        fillings.shrink_to(8 * FREE_SLOTS);
        groups.clear();
        names.clear();
        *met = (0, 0);
    }

    /// Notes the names of this row's data subjects, before anything is counted.
    pub(super) fn name(&mut self, row: &[u8]) -> Result<(), EntryError> {
        RawRow::subjects_of(row)?.into_iter().flatten().for_each(|name| self.names.add(name));
        Ok(())
    }

    /// Counts what a group of these rows has. Where it `counts`, it has no data subject in common with another one that does.
    pub(super) fn add<'a>(
        &mut self,
        rows: impl Iterator<Item = &'a [u8]> + Clone,
        personal: u16,
        counts: bool,
    ) -> Result<(), EntryError> {
        if !is_small(rows.clone(), personal)? {
            return Ok(());
        }
        let number = u32::try_from(self.groups.len() + 1).unwrap_or(u32::MAX);
        let group = Group { number, counts };
        let mut before = Before::default();
        for row in rows {
            let row = &RawRow::parse(row)?;
            let subjects = before.of_subjects(row, personal);
            if let Some(list) = subjects.list.filter(|_| !subjects.is_same) {
                list.for_each(|name| self.string(name, None, group));
            }
            for (field, value) in values(row, personal) {
                match value {
                    Value::String(string) if before.had(field, string) => self.met.0 += 1,
                    Value::String(string) => self.string(string, subjects.first(), group),
                    Value::Number(_) => {}
                }
            }
        }
        self.groups.push((self.strings.len(), group));
        Ok(())
    }

    /// The number of a word, which is new or not; `None` where it is not counted.
    fn word(&mut self, word: &[u8]) -> Option<usize> {
        if word.is_empty() || word.len() > LONGEST_WORD {
            return None;
        }
        let number = self.vocabulary.number(word)?;
        if number == self.words.len() {
            self.words.push(Word { count: Count::default(), uses: 0, parts: (0, 0) });
        }
        Some(number)
    }

    fn string(&mut self, string: &[u8], name: Option<&[u8]>, group: Group) {
        let (strings, bytes) = &mut self.met;
        (*strings, *bytes) = (*strings + 1, *bytes + string.len());
        if self.fillings.len() >= FREE_SLOTS + *bytes / BYTES_A_SLOT {
            return;
        }
        let mut places = self.names.places(string);
        if name.is_none() {
            // A name in the list of data subjects is one of as many as have what it has in common with others.
            places.retain(|place| place.len() < string.len());
        }
        // The name of a JSON object's member stands for itself, and would with what a name has of it.
        if places.iter().any(|place| string[place.clone()].contains(&b'"')) {
            return;
        }
        let mut cut = std::mem::take(&mut self.cut);
        if cut.of(string, name) {
            let shape = match self.votes.len() < MOST_VOTES {
                true => self.shapes.number(&cut.shape),
                false => self.shapes.find(&cut.shape),
            };
            if let Some(shape) = shape {
                self.count(shape, string, &cut, &places, group);
            }
        }
        self.cut = cut;
    }

    fn count(&mut self, shape: usize, string: &[u8], cut: &Cut, names: &Places, group: Group) {
        if shape == self.counts.len() {
            self.begin_shape(&cut.shape);
        }
        self.counts[shape].count.add(group);
        let (first, _) = self.counts[shape].votes;
        let mut has_number = false;
        for (vote, filling) in (first..).zip(&cut.fillings) {
            let (filling, is_name) = match *filling {
                Filling::Words { start, end, count } => {
                    self.wording(string, start..end, count, (names, group))
                }
                Filling::Number { number, at } => {
                    self.fillings.push(number);
                    let is_name = overlaps(names, &(at..at + 1));
                    has_number |= is_name;
                    (number, is_name)
                }
            };
            if !is_name {
                self.votes[vote].add(filling);
            }
        }
        self.strings.push((u32::try_from(shape).unwrap_or(u32::MAX), has_number));
    }

    fn begin_shape(&mut self, shape: &[u8]) {
        let first = self.votes.len();
        for piece in pieces(shape) {
            if let Ok(Piece::Slot(kind)) = piece
                && kind != Slot::Subject
            {
                self.votes.push(Vote { kind, filling: 0, lead: 0, votes: 0, digits: 0, digits_lead: 0 });
            }
        }
        let votes = (first, self.votes.len() - first);
        self.counts.push(Shape { count: Count::default(), votes, fixed: Count::default() });
    }

    /// Notes the words there, so many, and returns how the first of the fillings is noted, and whether a name has some of them.
    fn wording(
        &mut self,
        string: &[u8],
        place: Range<usize>,
        words: usize,
        (names, group): (&Places, Group),
    ) -> (u64, bool) {
        let has_name = overlaps(names, &place);
        let text = &string[place.clone()];
        let whole = if words <= MOST_PARTS && !has_name { self.word(text) } else { None };
        if let Some(number) = whole {
            if words > 1 && self.words[number].parts == (0, 0) {
                self.begin_phrase(number, text);
            }
            self.words[number].count.add(group);
            let (first, end) = self.words[number].parts;
            for part in first..end {
                self.words[self.parts[part as usize] as usize].count.add(group);
            }
        }
        let first = match whole {
            Some(number) => Wording::Counted(number),
            None if words == 1 => Wording::Other,
            None => Wording::Phrase(words),
        };
        self.fillings.push(first.pack());
        if let Wording::Phrase(_) = first {
            let mut at = place.start;
            for word in text.split(|byte| *byte == b' ') {
                let is_name = overlaps(names, &(at..at + word.len()));
                let number = if is_name { None } else { self.word(word) };
                let wording = number.map_or(Wording::Other, Wording::Counted);
                if let Wording::Counted(number) = wording {
                    self.words[number].count.add(group);
                }
                self.fillings.push(wording.pack());
                at += word.len() + 1;
            }
        }
        (first.pack(), has_name)
    }

    fn begin_phrase(&mut self, number: usize, text: &[u8]) {
        let first = self.parts.len();
        for word in text.split(|byte| *byte == b' ') {
            let Some(word) = self.word(word).and_then(|word| u32::try_from(word).ok()) else {
                // The table is full: the phrase is counted as a whole.
                return self.parts.truncate(first);
            };
            self.parts.push(word);
        }
        let place = |at: usize| u32::try_from(at).unwrap_or(0);
        self.words[number].parts = (place(first), place(self.parts.len()));
    }
}

/// Whether some of this is in one of the places.
#[inline]
fn overlaps(places: &Places, part: &Range<usize>) -> bool {
    places.iter().any(|place| place.start < part.end && part.start < place.end)
}

/// Takes what fills a slot from the fillings: one of them, and the words of a phrase.
pub(super) fn take<'f>(vote: &Vote, rest: &mut &'f [u64]) -> &'f [u64] {
    let words = match rest.first().map(|filling| Wording::unpack(*filling)) {
        Some(Wording::Phrase(words)) if vote.kind == Slot::Word => words,
        _ => 0,
    };
    let (taken, behind) = rest.split_at(rest.len().min(1 + words));
    *rest = behind;
    taken
}

//! What the groups of a block have in common: their strings are cut and counted, then the common shapes and words are chosen.
//!
//! - An item is chosen only where it occurs in as many groups as were asked for, no two of which have a data subject in common: the
//!   caller says which groups count.
//! - No word has a data subject's name in it, nor has a shape between its slots, that neither begins nor ends inside of a run.
//! - A slot that nearly always has the same filling is not one: the filling is in the shape. A string that has another there has the
//!   shape with all slots.
//! - Strings are counted in the order in which they are written: what was found out about them stands in lists that both follow.

use super::cut::{Cut, Filling, LONGEST, class};
use super::items::{Items, MOST_ITEMS, MOST_SHAPES};
use super::shape::{MOST_SHAPE, Piece, SLOT, Slot, pieces};
use super::values::{Before, Value, values};
use super::{code, width_among};
use crate::strings::{Distinct, decimal_length, write_decimal, write_hexadecimal};
use bulla_proof::EntryError;
use bulla_proof::entry::{Field, RawRow};
use foldhash::fast::{FixedState, RandomState};
use smallvec::SmallVec;
use std::collections::HashSet;
use std::hash::BuildHasher;
use std::ops::Range;

/// A group with more bytes of strings has something to learn from itself, and is written in columns.
const LARGEST_GROUP: usize = 8 * 1024;
/// The longest word or phrase that may be common.
const LONGEST_WORD: usize = 128;
/// The most words of a phrase that may be common itself.
const MOST_PARTS: usize = 4;
/// A filling is part of a shape where it is that of all strings but one in so many.
const CONSTANT: u32 = 32;
/// A slot has its number of digits in its kind where that is at most so many. What is longer is likely to occur again.
const FIXED_DIGITS: u8 = 4;
/// The most bytes of all shapes together, and of all words.
const SHAPES_TEXT: usize = 1 << 15;
const WORDS_TEXT: usize = 1 << 17;

const NAMES: FixedState = FixedState::with_seed(0x006e_616d_6573);

/// Fillings are noted for so many slots in any case, and beyond that for one in so many bytes of strings; what has more is not cut.
const FREE_SLOTS: usize = 1 << 16;
const BYTES_A_SLOT: usize = 4;
/// In bytes with more places where a name may begin or end nobody looks for one: they are no item.
const MOST_EDGES: usize = 256;
/// Once shapes have so many slots together, no new ones are counted.
const MOST_VOTES: usize = 1 << 16;

/// What there is instead of the number of a string's shape.
pub(super) const UNCUT: u32 = u32::MAX;
pub(super) const SAME: u32 = u32::MAX - 1;
/// Where an item stands that was not chosen.
pub(super) const NOWHERE: u32 = u32::MAX;

/// What fills a slot for a word, as a number of a list: a word that was counted is its own number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wording {
    Counted(usize),
    /// It stands in the string, from one byte to another.
    Spelled(usize, usize),
    /// It stands in the string, from one byte to another, and so many wordings follow, one for each of its words.
    Phrase(usize, usize, usize),
}

const SPELLED: u64 = 1 << 63;
const PHRASE: u64 = 1 << 62;

impl Wording {
    fn pack(self) -> u64 {
        match self {
            Wording::Counted(number) => number as u64,
            Wording::Spelled(start, end) => SPELLED | (start as u64) << 16 | end as u64,
            Wording::Phrase(words, start, end) => {
                PHRASE | (words as u64) << 32 | (start as u64) << 16 | end as u64
            }
        }
    }

    #[allow(clippy::cast_possible_truncation, reason = "what was packed was as narrow")]
    pub(super) fn unpack(packed: u64) -> Self {
        let part = |shift: u32| (packed >> shift & 0xffff) as usize;
        if packed & SPELLED != 0 {
            Wording::Spelled(part(16), part(0))
        } else if packed & PHRASE != 0 {
            Wording::Phrase(part(32), part(16), part(0))
        } else {
            Wording::Counted(packed as usize)
        }
    }
}

/// In how many groups something occurs, and how often.
#[derive(Clone, Copy, Default)]
struct Count {
    groups: u32,
    /// The last group that was counted, and one more.
    last: u32,
    uses: u32,
}

impl Count {
    #[inline]
    fn add(&mut self, group: Group) {
        self.uses += 1;
        if group.counts && self.last != group.number {
            self.last = group.number;
            self.groups += 1;
        }
    }
}

/// The group that is at work: one more than its number, and whether it counts.
#[derive(Clone, Copy)]
struct Group {
    number: u32,
    counts: bool,
}

pub(super) struct Word {
    groups: Count,
    /// How often a slot would refer to it.
    uses: u32,
    /// Of a phrase, its words in the list of parts.
    pub(super) parts: (u32, u32),
    pub(super) position: u32,
}

pub(super) struct Shape {
    count: Count,
    /// Where the votes on its fillings are, and how many.
    pub(super) votes: (usize, usize),
    /// Of those strings whose fillings are what was voted for.
    fixed: Count,
    pub(super) position: u32,
    pub(super) fixed_position: u32,
}

/// What nearly all strings of a shape have in a slot. The most frequent filling wins where it has more than half of the votes.
#[derive(Clone, Copy)]
pub(super) struct Vote {
    filling: u64,
    lead: u32,
    digits: u8,
    digits_lead: u32,
    pub(super) kind: Slot,
    pub(super) fixed: Fixed,
}

/// What became of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fixed {
    Free,
    Constant,
    Digits(u8),
}

impl Vote {
    fn add(&mut self, filling: u64) {
        cast(&mut self.filling, &mut self.lead, filling);
        if self.kind == Slot::Decimal {
            cast(&mut self.digits, &mut self.digits_lead, decimal_length(filling));
        }
    }

    /// What becomes of the slot after so many votes.
    fn decide(&mut self, votes: u32) {
        let wins = |lead: u32| lead >= votes - votes / CONSTANT;
        let spelled =
            self.kind == Slot::Word && !matches!(Wording::unpack(self.filling), Wording::Counted(_));
        self.fixed = if wins(self.lead) && !spelled {
            Fixed::Constant
        } else if self.kind == Slot::Decimal && wins(self.digits_lead) && self.digits <= FIXED_DIGITS {
            Fixed::Digits(self.digits)
        } else {
            Fixed::Free
        };
    }

    /// Whether a filling is what was voted for.
    fn admits(&self, filling: u64) -> bool {
        match self.fixed {
            Fixed::Free => true,
            Fixed::Constant => filling == self.filling,
            Fixed::Digits(digits) => decimal_length(filling) == digits,
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
    /// Of each string its shape.
    pub(super) strings: Vec<u32>,
    /// How many bytes of strings were met.
    met: usize,
    /// In how many groups something has to occur, or 0.
    least: u32,
    /// What fills the slots, string after string.
    pub(super) fillings: Vec<u64>,
    /// Of each group where its strings end; nothing where it is not written as records.
    pub(super) groups: Vec<Option<(usize, bool)>>,
    /// The names of data subjects, by their hashes. Two that have the same one cost a common word, no more.
    names: HashSet<u64, RandomState>,
    /// Which lengths these names have, up to that of the longest item.
    lengths: HashSet<usize, RandomState>,
    items: Items,
}

impl Survey {
    /// Forgets the last block, and begins one in which so many groups have to have what is common; 0 where nothing is to be.
    pub(super) fn begin(&mut self, least: u32) {
        (self.least, self.met) = (least, 0);
        let Survey {
            vocabulary, words, parts, shapes, counts, votes, strings, fillings, groups, names, ..
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
        self.lengths.clear();
        self.items.clear();
    }

    pub(super) fn items(&self) -> &Items {
        &self.items
    }

    /// Counts the next group, of these rows. Where it `counts`, it has no data subject in common with another one that does.
    pub(super) fn add<'a>(
        &mut self,
        rows: impl Iterator<Item = &'a [u8]> + Clone,
        personal: u16,
        counts: bool,
    ) -> Result<(), EntryError> {
        let mut bytes = 0;
        for row in rows.clone() {
            let row = RawRow::parse(row)?;
            for (_, value) in values(&row, personal) {
                if let Value::String(string) = value {
                    bytes += if string.len() > LONGEST { LARGEST_GROUP } else { string.len() };
                }
            }
            row.subjects.into_iter().flatten().for_each(|name| self.name(name));
        }
        if bytes >= LARGEST_GROUP {
            self.groups.push(None);
            return Ok(());
        }
        let number = u32::try_from(self.groups.len() + 1).unwrap_or(u32::MAX);
        let group = Group { number, counts };
        let mut before = Before::default();
        for row in rows {
            let row = RawRow::parse(row)?;
            let subjects = row.subjects.filter(|_| personal & Field::Subject.bit() != 0);
            if let Some(list) = subjects
                && !before.had_subjects(list)
            {
                list.for_each(|name| self.string(name, None, group));
            }
            let name = subjects.and_then(|mut list| list.next());
            for (field, value) in values(&row, personal) {
                match value {
                    Value::String(string) if before.had(field, string) => self.strings.push(SAME),
                    Value::String(string) => self.string(string, name, group),
                    Value::Number(_) => {}
                }
            }
        }
        self.groups.push(Some((self.strings.len(), counts)));
        Ok(())
    }

    fn name(&mut self, name: &[u8]) {
        if self.names.insert(NAMES.hash_one(name)) {
            self.lengths.insert(name.len());
        }
    }

    /// The number of a word, which is new or not; `None` where it is not counted.
    fn word(&mut self, word: &[u8]) -> Option<usize> {
        if word.is_empty() || word.len() > LONGEST_WORD {
            return None;
        }
        let number = self.vocabulary.number(word)?;
        if number == self.words.len() {
            let groups = Count::default();
            self.words.push(Word { groups, uses: 0, parts: (0, 0), position: NOWHERE });
        }
        Some(number)
    }

    fn string(&mut self, string: &[u8], name: Option<&[u8]>, group: Group) {
        if self.least == 0 {
            return self.strings.push(UNCUT);
        }
        self.met += string.len();
        let mut cut = std::mem::take(&mut self.cut);
        let is_cut = self.fillings.len() < FREE_SLOTS + self.met / BYTES_A_SLOT && cut.of(string, name);
        let shape = match self.votes.len() < MOST_VOTES {
            _ if !is_cut => None,
            true => self.shapes.number(&cut.shape),
            false => self.shapes.find(&cut.shape),
        };
        self.strings.push(shape.and_then(|shape| u32::try_from(shape).ok()).unwrap_or(UNCUT));
        if let Some(shape) = shape {
            if shape == self.counts.len() {
                self.begin_shape(&cut);
            }
            self.counts[shape].count.add(group);
            let (first, _) = self.counts[shape].votes;
            for (vote, filling) in (first..).zip(&cut.fillings) {
                let filling = match filling {
                    Filling::Word(place) => self.wording(string, place.clone(), group),
                    Filling::Decimal(number) | Filling::Hexadecimal(number) => {
                        self.fillings.push(*number);
                        *number
                    }
                };
                self.votes[vote].add(filling);
            }
        }
        self.cut = cut;
    }

    fn begin_shape(&mut self, cut: &Cut) {
        let first = self.votes.len();
        for piece in pieces(&cut.shape) {
            let Ok(Piece::Slot(kind)) = piece else { continue };
            if kind != Slot::Subject {
                let vote = Vote { filling: 0, lead: 0, digits: 0, digits_lead: 0, kind, fixed: Fixed::Free };
                self.votes.push(vote);
            }
        }
        self.counts.push(Shape {
            count: Count::default(),
            votes: (first, self.votes.len() - first),
            fixed: Count::default(),
            position: NOWHERE,
            fixed_position: NOWHERE,
        });
    }

    /// Notes a word or phrase, and returns how the first of the fillings is noted.
    fn wording(&mut self, string: &[u8], place: Range<usize>, group: Group) -> u64 {
        let text = &string[place.clone()];
        let words = 1 + text.iter().filter(|byte| **byte == b' ').count();
        if words <= MOST_PARTS
            && let Some(number) = self.word(text)
        {
            if words > 1 && self.words[number].parts == (0, 0) {
                self.begin_phrase(number, text);
            }
            self.count(number, group);
            let (first, end) = self.words[number].parts;
            for part in first..end {
                self.count(self.parts[part as usize] as usize, group);
            }
            self.fillings.push(Wording::Counted(number).pack());
        } else if words == 1 {
            self.fillings.push(Wording::Spelled(place.start, place.end).pack());
        } else {
            let head = self.fillings.len();
            self.fillings.push(Wording::Phrase(words, place.start, place.end).pack());
            let mut start = place.start;
            for word in text.split(|byte| *byte == b' ') {
                let wording = match self.word(word) {
                    Some(number) => {
                        self.count(number, group);
                        Wording::Counted(number)
                    }
                    None => Wording::Spelled(start, start + word.len()),
                };
                self.fillings.push(wording.pack());
                start += word.len() + 1;
            }
            return self.fillings[head];
        }
        self.fillings.last().copied().unwrap_or(0)
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

    fn count(&mut self, word: usize, group: Group) {
        self.words[word].groups.add(group);
    }

    /// Chooses what is common. Everything was added.
    pub(super) fn choose(&mut self) {
        let least = self.least;
        if least == 0 {
            return;
        }
        self.fix(least);
        self.count_uses();
        let shapes = self.choose_shapes(least);
        let words = self.choose_words(least, shapes.len());
        let words = words.iter().map(|word| self.vocabulary.get(*word));
        self.items.fill(shapes.iter().map(Vec::as_slice), words);
    }

    /// Decides on the slots of shapes that may be common.
    fn fix(&mut self, least: u32) {
        for Shape { count, votes: (first, length), .. } in &self.counts {
            if count.groups >= least {
                self.votes[*first..first + length].iter_mut().for_each(|vote| vote.decide(count.uses));
            }
        }
    }

    /// Counts what strings refer to if their shapes are common.
    fn count_uses(&mut self) {
        let Survey { strings, fillings, groups, counts, votes, words, .. } = self;
        let (mut rest, mut at) = (&fillings[..], 0);
        for (number, group) in (1_u32..).zip(groups.iter()) {
            let Some((end, counted)) = *group else { continue };
            for &shape in &strings[at..end] {
                let Some(shape) = counts.get_mut(shape as usize) else { continue };
                let votes = &votes[shape.votes.0..][..shape.votes.1];
                let fixed = admitted(votes, rest);
                if fixed {
                    shape.fixed.add(Group { number, counts: counted });
                }
                for vote in votes {
                    let used = take(vote, &mut rest);
                    if vote.kind == Slot::Word && !(fixed && vote.fixed == Fixed::Constant) {
                        for filling in used {
                            if let Wording::Counted(word) = Wording::unpack(*filling) {
                                words[word].uses += 1;
                            }
                        }
                    }
                }
            }
            at = end;
        }
    }

    /// The shapes that are chosen, in the order of their bytes. Their positions are noted.
    fn choose_shapes(&mut self, least: u32) -> Vec<Vec<u8>> {
        let mut found = Vec::new();
        for number in 0..self.counts.len() {
            let Shape { count, fixed, votes: (first, length), .. } = self.counts[number];
            let is_fixed = self.votes[first..first + length].iter().any(|vote| vote.fixed != Fixed::Free);
            let mut rest = count.uses;
            for as_fixed in [true, false] {
                let count = if as_fixed { fixed } else { count };
                if as_fixed && !is_fixed || count.groups < least || rest < 2 {
                    continue;
                }
                let mut text = Vec::new();
                self.write_shape(number, as_fixed, &mut text);
                // A slot alone is a word, which needs no shape.
                if (1..=MOST_SHAPE).contains(&text.len())
                    && text != [SLOT, Slot::Word.byte()]
                    && !pieces(&text)
                        .any(|piece| matches!(piece, Ok(Piece::Literal(bytes)) if self.has_name(bytes)))
                {
                    let uses = if as_fixed { count.uses } else { rest };
                    rest -= if as_fixed { uses } else { 0 };
                    found.push((uses, text, number, as_fixed));
                }
            }
        }
        found.sort_unstable_by(|one, other| other.0.cmp(&one.0).then_with(|| one.1.cmp(&other.1)));
        found.truncate(MOST_SHAPES);
        let mut room = SHAPES_TEXT;
        found.retain(|(_, text, ..)| {
            let fits = text.len() <= room;
            room -= if fits { text.len() } else { 0 };
            fits
        });
        found.sort_unstable_by(|one, other| one.1.cmp(&other.1));
        let mut shapes = Vec::<Vec<u8>>::new();
        for (_, text, number, as_fixed) in found {
            // Two can have the same bytes: what fills a slot of one is between the slots of the other.
            if shapes.last() != Some(&text) {
                shapes.push(text);
            }
            let shape = &mut self.counts[number];
            let position = if as_fixed { &mut shape.fixed_position } else { &mut shape.position };
            *position = u32::try_from(shapes.len() - 1).unwrap_or(NOWHERE);
        }
        shapes
    }

    /// The words that are chosen, in the order of their bytes. Their positions, behind those of shapes, are noted.
    fn choose_words(&mut self, least: u32, shapes: usize) -> Vec<usize> {
        // A phrase that is not common refers to its words.
        for number in 0..self.words.len() {
            let Word { groups, uses, parts, .. } = self.words[number];
            if groups.groups < least {
                (parts.0..parts.1).for_each(|part| {
                    let word = self.parts[part as usize];
                    self.words[word as usize].uses += uses;
                });
            }
        }
        let is_candidate = |(_, word): &(usize, &Word)| word.groups.groups >= least && word.uses > 1;
        let candidates = self.words.iter().enumerate().filter(is_candidate);
        let mut chosen = candidates.map(|(number, word)| (word.uses, number)).collect::<Vec<_>>();
        chosen.retain(|(_, number)| !self.has_name(self.vocabulary.get(*number)));
        chosen.sort_unstable_by_key(|&(uses, number)| (std::cmp::Reverse(uses), number));
        let mut room = WORDS_TEXT;
        let within = chosen.iter().take_while(|(_, number)| {
            room = room.saturating_sub(self.vocabulary.get(*number).len());
            room > 0
        });
        let most = within.count().min(MOST_ITEMS - shapes);
        chosen.truncate(most);
        chosen.truncate(self.best_number(&chosen, shapes));
        let mut words = chosen.into_iter().map(|(_, number)| number).collect::<Vec<_>>();
        words.sort_unstable_by(|one, other| self.vocabulary.get(*one).cmp(self.vocabulary.get(*other)));
        for (position, &word) in (shapes..).zip(&words) {
            self.words[word].position = u32::try_from(position).unwrap_or(NOWHERE);
        }
        words
    }

    /// How many of the most frequent words make groups shortest: each more may make all references wider.
    fn best_number(&self, words: &[(u32, usize)], shapes: usize) -> usize {
        let codes = self.strings.len() as u64 + words.iter().map(|(uses, _)| u64::from(*uses)).sum::<u64>();
        let spelled = |&(uses, number): &(u32, usize)| {
            u64::from(uses) * (10 + 6 * self.vocabulary.get(number).len() as u64)
        };
        let bits_of = |taken: usize| {
            let width = width_among(shapes + taken + usize::try_from(code::FIRST_ITEM).unwrap_or(0));
            codes * u64::from(width) + words[taken..].iter().map(spelled).sum::<u64>()
        };
        let first = usize::try_from(code::FIRST_ITEM).unwrap_or(0) + shapes;
        let fill = (0..=12).filter_map(|width| (1_usize << width).checked_sub(first));
        let numbers = fill.filter(|taken| *taken < words.len()).chain([words.len()]);
        numbers.min_by_key(|taken| bits_of(*taken)).unwrap_or(0)
    }

    /// Appends the bytes of a shape; those of fixed slots as they are fixed.
    fn write_shape(&self, number: usize, fixed: bool, out: &mut Vec<u8>) {
        let (first, length) = self.counts[number].votes;
        let mut votes = self.votes[first..first + length].iter();
        for piece in pieces(self.shapes.get(number)) {
            match piece {
                Ok(Piece::Literal(bytes)) => out.extend_from_slice(bytes),
                Ok(Piece::Slot(Slot::Subject)) => out.extend([SLOT, Slot::Subject.byte()]),
                Ok(Piece::Slot(slot)) => match votes.next().filter(|_| fixed) {
                    Some(vote) => self.write_slot(vote, out),
                    None => out.extend([SLOT, slot.byte()]),
                },
                Err(_) => {}
            }
        }
    }

    fn write_slot(&self, vote: &Vote, out: &mut Vec<u8>) {
        let start = out.len();
        match (vote.fixed, vote.kind) {
            (Fixed::Constant, Slot::Word) => {
                if let Wording::Counted(word) = Wording::unpack(vote.filling) {
                    out.extend_from_slice(self.vocabulary.get(word));
                }
            }
            (Fixed::Constant, Slot::Hexadecimal { digits, upper }) => {
                out.resize(start + usize::from(digits), 0);
                write_hexadecimal(vote.filling, upper, &mut out[start..]);
            }
            (Fixed::Constant, _) => {
                out.resize(start + usize::from(decimal_length(vote.filling)), 0);
                write_decimal(vote.filling, &mut out[start..]);
            }
            (Fixed::Digits(digits), _) => {
                out.extend([SLOT, Slot::Digits(digits).byte()]);
            }
            (Fixed::Free, slot) => out.extend([SLOT, slot.byte()]),
        }
    }

    /// Whether a data subject's name may stand in these bytes, and neither begins nor ends inside of a run.
    fn has_name(&self, bytes: &[u8]) -> bool {
        let is_run = |at: usize| class(bytes[at]) != 0;
        let is_edge = |at: &usize| *at == 0 || *at == bytes.len() || !is_run(*at) || !is_run(*at - 1);
        let edges = (0..=bytes.len()).filter(is_edge).collect::<SmallVec<[usize; 32]>>();
        if edges.len() > MOST_EDGES {
            return true;
        }
        edges.iter().enumerate().any(|(index, &start)| {
            let ends = edges[index + 1..].iter().filter(|&end| self.lengths.contains(&(end - start)));
            ends.into_iter().any(|&end| self.names.contains(&NAMES.hash_one(&bytes[start..end])))
        })
    }
}

/// Whether what fills a string's slots is what was voted for. The fillings may be followed by others.
pub(super) fn admitted(votes: &[Vote], fillings: &[u64]) -> bool {
    let mut rest = fillings;
    votes.iter().all(|vote| take(vote, &mut rest).first().is_some_and(|filling| vote.admits(*filling)))
}

/// Takes what fills a slot from the fillings: one of them, and the words of a phrase.
pub(super) fn take<'f>(vote: &Vote, rest: &mut &'f [u64]) -> &'f [u64] {
    let words = match rest.first().map(|filling| Wording::unpack(*filling)) {
        Some(Wording::Phrase(words, ..)) if vote.kind == Slot::Word => words,
        _ => 0,
    };
    let (taken, behind) = rest.split_at(rest.len().min(1 + words));
    *rest = behind;
    taken
}

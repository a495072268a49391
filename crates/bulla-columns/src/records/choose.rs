//! Chooses what is common, of what a [`Survey`] counted, and has it ready for whoever writes.
//!
//! - An item is chosen only where it occurs in as many groups as were asked for.
//! - No word has a data subject's name in it, nor has a shape between its slots ([`names`](super::names)); nor is any there because of a part
//!   of a name, which the survey does not count.
//! - A slot that nearly always has the same filling is not one: the filling is in the shape. A string that has another there has the
//!   shape with all slots.

use super::dictionary::Dictionary;
use super::follow::Shapes;
use super::items::{Items, MOST_ITEMS, MOST_SHAPES};
use super::shape::{LONE_WORD, MOST_SHAPE, Piece, SLOT, Slot, pieces};
use super::survey::{Survey, Vote, Word, Wording, take};
use super::{code, width_among};
use crate::strings::{decimal_length, write_decimal, write_hexadecimal};

/// A filling is part of a shape where it is that of all strings but one in so many.
const CONSTANT: u32 = 32;
/// A slot has its number of digits in its kind where that is at most so many. What is longer is likely to occur again.
const FIXED_DIGITS: u8 = 4;
/// The most bytes of all shapes together, and of all words.
const SHAPES_TEXT: usize = 1 << 15;
const WORDS_TEXT: usize = 1 << 17;

/// What is common to the groups of a block. Used again, it keeps its memory.
#[derive(Default)]
pub(super) struct Chosen {
    pub(super) items: Items,
    /// The shapes, by their positions.
    pub(super) shapes: Shapes,
    /// The words, whose positions follow those of the shapes.
    pub(super) words: Dictionary,
    pub(super) shape_items: usize,
}

impl Chosen {
    pub(super) fn clear(&mut self) {
        let Chosen { items, shapes, words, shape_items } = self;
        items.clear();
        shapes.clear();
        words.clear();
        *shape_items = 0;
    }

    /// Replaces what is here by what is common to `least` of the groups that were surveyed, or more.
    pub(super) fn choose(&mut self, survey: &mut Survey, least: u32) {
        let mut choice = Choice { least, decisions: Vec::new(), survey };
        choice.decide();
        choice.count_uses();
        let texts = choice.shapes();
        let shapes = texts.iter().map(Vec::as_slice).collect::<Vec<_>>();
        let words = choice.words(shapes.len());
        let words = words.iter().map(|word| choice.survey.vocabulary.get(*word)).collect::<Vec<_>>();
        self.shape_items = shapes.len();
        self.shapes.fill(&shapes);
        self.words.fill(&words);
        self.items.fill(&shapes, &words);
    }
}

/// What becomes of a slot in the shape that is fixed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Decision {
    Free,
    Constant,
    Digits(u8),
}

impl Decision {
    /// What becomes of it after the votes.
    fn on(vote: &Vote) -> Self {
        let wins = |lead: u32| lead > 0 && lead >= vote.votes - vote.votes / CONSTANT;
        let is_known =
            vote.kind != Slot::Word || matches!(Wording::unpack(vote.filling), Wording::Counted(_));
        if wins(vote.lead) && is_known {
            Decision::Constant
        } else if vote.kind == Slot::Decimal && wins(vote.digits_lead) && vote.digits <= FIXED_DIGITS {
            Decision::Digits(vote.digits)
        } else {
            Decision::Free
        }
    }

    /// Whether a filling is what was voted for, in a string that may have part of a name as a number.
    fn admits(self, vote: &Vote, filling: u64, has_number: bool) -> bool {
        match self {
            Decision::Free => true,
            Decision::Constant => filling == vote.filling && (vote.kind == Slot::Word || !has_number),
            Decision::Digits(digits) => decimal_length(filling) == digits,
        }
    }
}

/// Choosing, at work.
struct Choice<'s> {
    survey: &'s mut Survey,
    least: u32,
    /// By vote.
    decisions: Vec<Decision>,
}

impl Choice<'_> {
    /// Decides on the slots of shapes that may be common. A slot for words alone needs no shape.
    fn decide(&mut self) {
        let Choice { survey, least, decisions } = self;
        decisions.resize(survey.votes.len(), Decision::Free);
        let lone = survey.shapes.find(&LONE_WORD);
        let shapes = survey.counts.iter().enumerate().filter(|(number, _)| lone != Some(*number));
        for (_, shape) in shapes.filter(|(_, shape)| shape.count.groups >= *least) {
            let (first, count) = shape.votes;
            let votes = &survey.votes[first..first + count];
            for (decision, vote) in decisions[first..].iter_mut().zip(votes) {
                *decision = Decision::on(vote);
            }
        }
    }

    /// Counts what strings refer to if their shapes are common.
    fn count_uses(&mut self) {
        let Survey { strings, fillings, groups, counts, votes, words, parts, vocabulary, names, .. } =
            &mut *self.survey;
        let (mut rest, mut at) = (&fillings[..], 0);
        for &(end, group) in groups.iter() {
            for &(shape, has_number) in &strings[at..end] {
                let shape = &mut counts[shape as usize];
                let (first, count) = shape.votes;
                let slots = || votes[first..first + count].iter().zip(&self.decisions[first..first + count]);
                let mut looked_at = rest;
                let is_fixed = slots().all(|(vote, decision)| {
                    let filling = take(vote, &mut looked_at).first();
                    filling.is_some_and(|filling| decision.admits(vote, *filling, has_number))
                });
                if is_fixed {
                    shape.fixed.add(group);
                }
                for (vote, decision) in slots() {
                    let used = take(vote, &mut rest);
                    if vote.kind == Slot::Word && !(is_fixed && *decision == Decision::Constant) {
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
        // A phrase that is not common refers to its words.
        for number in 0..words.len() {
            let Word { count, uses, parts: (first, end) } = words[number];
            if first < end && (count.groups < self.least || names.are_in(vocabulary.get(number))) {
                for part in &parts[first as usize..end as usize] {
                    words[*part as usize].uses += uses;
                }
            }
        }
    }

    /// The shapes that are chosen, in the order of their bytes.
    fn shapes(&self) -> Vec<Vec<u8>> {
        let mut found = Vec::new();
        for (number, shape) in self.survey.counts.iter().enumerate() {
            let (first, count) = shape.votes;
            let is_fixed =
                self.decisions[first..first + count].iter().any(|decision| *decision != Decision::Free);
            let mut rest = shape.count.uses;
            for as_fixed in [true, false] {
                let count = if as_fixed { shape.fixed } else { shape.count };
                if as_fixed && !is_fixed || count.groups < self.least || rest < 2 {
                    continue;
                }
                let mut text = Vec::new();
                self.write_shape(number, as_fixed, &mut text);
                if self.may_be_item(&text) {
                    let uses = if as_fixed { count.uses } else { rest };
                    rest -= if as_fixed { uses } else { 0 };
                    found.push((uses, text));
                }
            }
        }
        found.sort_unstable_by(|one, other| other.0.cmp(&one.0).then_with(|| one.1.cmp(&other.1)));
        found.truncate(MOST_SHAPES);
        let mut room = SHAPES_TEXT;
        found.retain(|(_, text)| {
            let fits = text.len() <= room;
            room -= if fits { text.len() } else { 0 };
            fits
        });
        let mut shapes = found.into_iter().map(|(_, text)| text).collect::<Vec<_>>();
        shapes.sort_unstable();
        // Two can have the same bytes: what fills a slot of one is between the slots of the other.
        shapes.dedup();
        shapes
    }

    /// Whether these bytes are a shape that may be an item.
    fn may_be_item(&self, text: &[u8]) -> bool {
        (1..=MOST_SHAPE).contains(&text.len())
            && text != LONE_WORD
            && !pieces(text)
                .any(|piece| matches!(piece, Ok(Piece::Literal(bytes)) if self.survey.names.are_in(bytes)))
    }

    /// The words that are chosen, in the order of their bytes, where so many shapes are.
    fn words(&self, shapes: usize) -> Vec<usize> {
        let Survey { words, vocabulary, names, .. } = &*self.survey;
        let candidates = words.iter().enumerate();
        let candidates = candidates.filter(|(_, word)| word.count.groups >= self.least && word.uses > 1);
        let mut chosen = candidates.map(|(number, word)| (word.uses, number)).collect::<Vec<_>>();
        chosen.retain(|(_, number)| !names.are_in(vocabulary.get(*number)));
        chosen.sort_unstable_by_key(|&(uses, number)| (std::cmp::Reverse(uses), number));
        let mut room = WORDS_TEXT;
        let within = chosen.iter().take_while(|(_, number)| {
            room = room.saturating_sub(vocabulary.get(*number).len());
            room > 0
        });
        let most = within.count().min(MOST_ITEMS - shapes);
        chosen.truncate(most);
        chosen.truncate(self.best_number(&chosen, shapes));
        let mut words = chosen.into_iter().map(|(_, number)| number).collect::<Vec<_>>();
        words.sort_unstable_by(|one, other| vocabulary.get(*one).cmp(vocabulary.get(*other)));
        words
    }

    /// How many of the most frequent words make groups shortest: each more may make all references wider.
    fn best_number(&self, words: &[(u32, usize)], shapes: usize) -> usize {
        let (strings, _) = self.survey.met;
        let codes = strings as u64 + words.iter().map(|(uses, _)| u64::from(*uses)).sum::<u64>();
        let spelled = |&(uses, number): &(u32, usize)| {
            u64::from(uses) * (10 + 6 * self.survey.vocabulary.get(number).len() as u64)
        };
        let others = shapes + usize::try_from(code::FIRST_ITEM).unwrap_or(0);
        let bits_of = |taken: usize| {
            codes * u64::from(width_among(others + taken)) + words[taken..].iter().map(spelled).sum::<u64>()
        };
        let fill = (0..=12).filter_map(|width| (1_usize << width).checked_sub(others));
        let numbers = fill.filter(|taken| *taken < words.len()).chain([words.len()]);
        numbers.min_by_key(|taken| bits_of(*taken)).unwrap_or(0)
    }

    /// Appends the bytes of a shape; those of fixed slots as they are fixed.
    fn write_shape(&self, number: usize, fixed: bool, out: &mut Vec<u8>) {
        let mut votes = self.survey.counts[number].votes.0..;
        for piece in pieces(self.survey.shapes.get(number)) {
            match piece {
                Ok(Piece::Literal(bytes)) => out.extend_from_slice(bytes),
                Ok(Piece::Slot(Slot::Subject)) => out.extend_from_slice(&[SLOT, Slot::Subject.byte()]),
                Ok(Piece::Slot(slot)) => match votes.next().filter(|_| fixed) {
                    Some(vote) => self.write_slot(&self.survey.votes[vote], self.decisions[vote], out),
                    None => out.extend_from_slice(&[SLOT, slot.byte()]),
                },
                Err(_) => {}
            }
        }
    }

    fn write_slot(&self, vote: &Vote, decision: Decision, out: &mut Vec<u8>) {
        let start = out.len();
        match (decision, vote.kind) {
            (Decision::Constant, Slot::Word) => {
                if let Wording::Counted(word) = Wording::unpack(vote.filling) {
                    out.extend_from_slice(self.survey.vocabulary.get(word));
                }
            }
            (Decision::Constant, Slot::Hexadecimal { digits, upper }) => {
                out.resize(start + usize::from(digits), 0);
                write_hexadecimal(vote.filling, upper, &mut out[start..]);
            }
            (Decision::Constant, _) => {
                out.resize(start + usize::from(decimal_length(vote.filling)), 0);
                write_decimal(vote.filling, &mut out[start..]);
            }
            (Decision::Digits(digits), _) => out.extend_from_slice(&[SLOT, Slot::Digits(digits).byte()]),
            (Decision::Free, slot) => out.extend_from_slice(&[SLOT, slot.byte()]),
        }
    }
}

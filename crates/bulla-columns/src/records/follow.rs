//! Follows strings along the shapes that a block has in common, which are kept as a tree.
//!
//! - A node is bytes that stand for themselves, or a slot; behind it come those nodes that some shape goes on with. What shapes begin
//!   with alike is compared once, and a string is cut only where a slot is.
//! - Bytes are tried before slots, so that a string finds the shape in which most is fixed.
//! - A slot takes what [`Cut`](super::cut::Cut) would put there. Whatever it takes comes back: which shape is found
//!   is a matter of how short the group is, not of what it says.

use super::cut::{LONGEST, is_name};
use super::dictionary::Dictionary;
use super::shape::{LONE_WORD, MOST_DECIMAL, SLOT, Slot, decimal_bits};
use super::window::Window;
use crate::strings::runs::{PARTS, Run, changes, is_in_run};
use crate::strings::{decimal, hexadecimal, shorter};

/// How often a string may turn back to a node that it passed. With more it is not followed: whoever chooses strings shall not choose
/// how long that takes.
const MOST_TURNS: usize = 64;

/// Where a shape ends that is no item: a string that is one word, or some with a space between each two.
const LONE: u32 = u32::MAX;

const ROOT: usize = 0;

#[derive(Clone, Copy)]
enum Step {
    /// So many bytes of the text, from there on.
    Bytes(usize, usize),
    Slot(Slot),
}

#[derive(Clone, Copy)]
struct Node {
    step: Step,
    /// The nodes behind it: bytes, of which no two begin alike, then slots.
    behind: (usize, usize),
    /// The shape that ends here.
    shape: Option<u32>,
}

/// The shapes of a block. Used again, it keeps its memory.
#[derive(Default)]
pub(super) struct Shapes {
    nodes: Vec<Node>,
    text: Vec<u8>,
}

/// What a string was found to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The shape at this position.
    Shape(usize),
    /// Words alone, which fill the only slot.
    Words,
}

/// What fills a slot. A data subject's slot is filled by the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filling {
    /// Words of the path, with a space between each two: the number of the first, and that behind the last.
    Words(u32, u32),
    /// So many decimal digits, and their place among all runs of digits, the shorter ones first.
    Decimal(u8, u64),
    /// A number of so many bits.
    Bits(u64, u32),
}

/// A word of a string: where it is, and the position of the item that it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word {
    start: u16,
    end: u16,
    pub(super) item: Option<u16>,
}

const _: () = assert!(LONGEST <= u16::MAX as usize);

impl Word {
    #[allow(clippy::cast_possible_truncation, reason = "a string that is followed is not that long")]
    #[inline]
    fn new(start: usize, end: usize, item: Option<u16>) -> Self {
        Word { start: start as u16, end: end as u16, item }
    }

    #[inline]
    pub(super) fn start(self) -> usize {
        self.start.into()
    }

    #[inline]
    pub(super) fn end(self) -> usize {
        self.end.into()
    }
}

/// The way of a string along the shapes. Used again, it keeps its memory.
#[derive(Default)]
pub(super) struct Path {
    pub(super) fillings: Vec<Filling>,
    pub(super) words: Vec<Word>,
    turns: Vec<Turn>,
}

/// A node that was passed with others left to try behind it.
#[derive(Clone, Copy)]
struct Turn {
    node: usize,
    next: usize,
    at: usize,
    fillings: usize,
    words: usize,
}

impl Shapes {
    pub(super) fn clear(&mut self) {
        self.nodes.clear();
        self.text.clear();
    }

    /// Replaces what is here by these shapes, which stand in the order of their bytes, each once.
    pub(super) fn fill(&mut self, shapes: &[&[u8]]) {
        self.clear();
        // What is words alone is no item, and in the order of bytes the first.
        let lone = std::iter::once((&LONE_WORD[..], LONE));
        let all = lone.chain(shapes.iter().copied().zip(0..)).collect::<Vec<_>>();
        self.nodes.push(Node { step: Step::Bytes(0, 0), behind: (0, 0), shape: None });
        let mut open = vec![(ROOT, &all[..], 0)];
        while let Some((node, mut shapes, at)) = open.pop() {
            if let Some(((whole, shape), others)) = shapes.split_first()
                && whole.len() == at
            {
                (self.nodes[node].shape, shapes) = (Some(*shape), others);
            }
            let first = self.nodes.len();
            let is_slot = |(shape, _): &(&[u8], u32)| shape[at] == SLOT;
            let (slots, bytes) = shapes.split_at(shapes.partition_point(is_slot));
            for alike in bytes.chunk_by(|(one, _), (other, _)| one[at] == other[at]) {
                let end = at + bytes_alike(&alike[0].0[at..], &alike[alike.len() - 1].0[at..]);
                let start = self.text.len();
                self.text.extend_from_slice(&alike[0].0[at..end]);
                open.push((self.add(Step::Bytes(start, self.text.len())), alike, end));
            }
            // The wider a slot is, the later it is tried: that for words is the first by its byte.
            let slots = slots.chunk_by(|(one, _), (other, _)| one[at + 1] == other[at + 1]);
            for alike in slots.rev() {
                if let Some(slot) = Slot::from_byte(alike[0].0[at + 1]) {
                    open.push((self.add(Step::Slot(slot)), alike, at + 2));
                }
            }
            self.nodes[node].behind = (first, self.nodes.len());
        }
    }

    fn add(&mut self, step: Step) -> usize {
        self.nodes.push(Node { step, behind: (0, 0), shape: None });
        self.nodes.len() - 1
    }

    /// What a string of an entry is, the first of whose data subjects has this name; its fillings are in the path then. `None` where it
    /// has no shape that is here, or it is too long.
    pub(super) fn follow(
        &self,
        string: &[u8],
        name: Option<&[u8]>,
        words: &Dictionary,
        path: &mut Path,
    ) -> Option<Found> {
        path.clear();
        if string.len() > LONGEST || self.nodes.is_empty() {
            return None;
        }
        let text = Text { string, name: name.filter(|name| !name.is_empty()) };
        let (mut node, mut at, mut turns) = (ROOT, 0, 0);
        let mut next = self.nodes[ROOT].behind.0;
        loop {
            let end = self.nodes[node].behind.1;
            let (fillings, of_words) = (path.fillings.len(), path.words.len());
            let fits = (next..end).find_map(|behind| {
                Some((behind, self.step(self.nodes[behind].step, text, at, words, path)?))
            });
            if let Some((behind, to)) = fits {
                if behind + 1 < end {
                    path.turns.push(Turn { node, next: behind + 1, at, fillings, words: of_words });
                }
                (node, at, next) = (behind, to, self.nodes[behind].behind.0);
                match self.nodes[node].shape {
                    Some(LONE) if at == string.len() => return Some(Found::Words),
                    Some(shape) if at == string.len() => return Some(Found::Shape(shape as usize)),
                    _ => {}
                }
            } else {
                let turn = path.turns.pop().filter(|_| turns < MOST_TURNS)?;
                turns += 1;
                (node, next, at) = (turn.node, turn.next, turn.at);
                path.fillings.truncate(turn.fillings);
                path.words.truncate(turn.words);
            }
        }
    }

    /// Where a node ends that begins there, if it does; what fills it is in the path then.
    #[inline]
    fn step(
        &self,
        step: Step,
        Text { string, name }: Text<'_>,
        at: usize,
        words: &Dictionary,
        path: &mut Path,
    ) -> Option<usize> {
        let (filling, end) = match step {
            Step::Bytes(start, end) => {
                let (first, length) = (self.text[start], end - start);
                let is_here = *string.get(at)? == first && string[at..].starts_with(&self.text[start..end]);
                return is_here.then_some(at + length);
            }
            Step::Slot(Slot::Subject) => {
                let name = name.filter(|name| at < string.len() && is_name(string, at, name))?;
                return Some(at + name.len());
            }
            Step::Slot(Slot::Hexadecimal { digits, upper }) => {
                let end = at + usize::from(digits);
                if Window::at(string, at).hexadecimal(upper) < usize::from(digits) {
                    return None;
                }
                (Filling::Bits(hexadecimal(&string[at..end]), 4 * u32::from(digits)), end)
            }
            Step::Slot(Slot::Decimal) => {
                let (digits, number) = decimal_at(string, at)?;
                (Filling::Decimal(digits, number), at + usize::from(digits))
            }
            Step::Slot(Slot::Digits(expected)) => {
                let (digits, number) = decimal_at(string, at).filter(|(digits, _)| *digits == expected)?;
                (Filling::Bits(number - shorter(digits), decimal_bits(digits)), at + usize::from(digits))
            }
            Step::Slot(Slot::Word) => {
                let first = path.words();
                let end = path.take_words(Text { string, name }, at, words)?;
                (Filling::Words(first, path.words()), end)
            }
        };
        path.fillings.push(filling);
        Some(end)
    }
}

/// A string, and the name that may stand in it.
#[derive(Clone, Copy)]
struct Text<'a> {
    string: &'a [u8],
    name: Option<&'a [u8]>,
}

/// The run of decimal digits that starts there: how many, and their place among all runs.
#[inline]
fn decimal_at(string: &[u8], at: usize) -> Option<(u8, u64)> {
    let mut digits = Window::at(string, at).digits();
    if digits == Window::BYTES {
        digits += Window::at(string, at + digits).digits();
    }
    let number = decimal(&string[at..at + digits]).filter(|_| digits > 0)?;
    Some((u8::try_from(digits).ok()?, number))
}

impl Path {
    fn clear(&mut self) {
        let Path { fillings, words, turns } = self;
        fillings.clear();
        words.clear();
        turns.clear();
    }

    fn words(&self) -> u32 {
        u32::try_from(self.words.len()).unwrap_or(u32::MAX)
    }

    /// Takes what fills a slot for words, from there on: a phrase, the part of a run before its digits, or a run of many parts.
    /// Returns where it ends; `None` where there is nothing of the kind, and nothing was taken.
    #[inline]
    fn take_words(
        &mut self,
        Text { string, name }: Text<'_>,
        at: usize,
        words: &Dictionary,
    ) -> Option<usize> {
        let mut word = word_at(string, at, words);
        let has_digits = |word: Word| string.get(word.end()).is_some_and(u8::is_ascii_digit);
        let is_inside = at > 0 && is_in_run(string[at - 1]);
        if is_inside || has_digits(word) {
            let end = end_of_part(string, at, word.end(), is_inside)?;
            self.words.push(Word::new(at, end, words.word(&string[at..end])));
            return Some(end);
        }
        if word.end() == at {
            return None;
        }
        self.words.push(word);
        while string.get(word.end()) == Some(&b' ') {
            let start = word.end() + 1;
            let next = word_at(string, start, words);
            if next.end() == start
                || has_digits(next)
                || name.is_some_and(|name| is_name(string, start, name))
            {
                break;
            }
            self.words.push(next);
            word = next;
        }
        Some(word.end())
    }
}

/// Where that part of a run with digits ends which is a word, whose first letters end there: all of a run of many parts, or one
/// part, of digits where these are too many for a slot of their own.
fn end_of_part(string: &[u8], at: usize, letters: usize, is_inside: bool) -> Option<usize> {
    if !is_inside {
        let end = Run::of(string, at).end;
        if changes(&string[at..end]).len() == PARTS {
            return Some(end);
        }
    }
    if letters > at {
        return Some(letters);
    }
    let digits = string[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    (digits > MOST_DECIMAL.into()).then_some(at + digits)
}

/// The letters from there on.
#[inline]
fn word_at(string: &[u8], start: usize, words: &Dictionary) -> Word {
    let window = Window::at(string, start);
    let length = window.letters();
    if length < Window::BYTES {
        return Word::new(start, start + length, words.short(window.first(length)));
    }
    let mut end = start + length;
    loop {
        let more = Window::at(string, end).letters();
        end += more;
        if more < Window::BYTES {
            return Word::new(start, end, words.word(&string[start..end]));
        }
    }
}

/// How many bytes two strings begin with alike, up to a slot.
fn bytes_alike(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other && **one != SLOT).count()
}

#[cfg(test)]
mod tests {
    use super::super::cut::Cut;
    use super::*;
    use proptest::prelude::*;

    fn follow(shapes: &[Vec<u8>], string: &[u8], name: Option<&[u8]>) -> Option<(Found, Path)> {
        let mut sorted = shapes.iter().map(Vec::as_slice).collect::<Vec<_>>();
        sorted.sort_unstable();
        sorted.dedup();
        let (mut all, mut path) = (Shapes::default(), Path::default());
        all.fill(&sorted);
        let found = all.follow(string, name, &Dictionary::default(), &mut path)?;
        Some((found, path))
    }

    const STRING: &str = "(ann|bo li|customer_|7|0042|9{18,21}|ab12|a1b2c3d4|DEADBEEF01|12ab34cd[0-9a-f]{24}|x1y|[a-z]{15,18}|\u{e9}mile\
        |550e8400-e29b-41d4-a716-4466554400a0| |  |, |\\{\"|\":|\"|-|/|\\.){0,12}";

    proptest! {
        #[test]
        fn a_string_finds_the_shape_that_it_was_cut_into(
            strings in proptest::collection::vec(STRING, 1..20),
            name in "(ann|bo li|ab12)?",
        ) {
            let (mut cut, mut shapes) = (Cut::default(), Vec::new());
            for string in &strings {
                prop_assert!(cut.of(string.as_bytes(), Some(name.as_bytes())));
                if cut.shape != LONE_WORD && !cut.shape.is_empty() {
                    shapes.push(cut.shape.clone());
                }
            }
            for string in &strings {
                prop_assert!(cut.of(string.as_bytes(), Some(name.as_bytes())));
                let found = follow(&shapes, string.as_bytes(), Some(name.as_bytes()));
                prop_assert_eq!(found.is_some(), !string.is_empty(), "{:?} among {:?}", string, shapes);
            }
        }
    }

    #[test]
    fn what_is_fixed_is_tried_before_slots_and_wider_slots_last() {
        let decimal = [b"n=".as_slice(), &[SLOT, Slot::Decimal.byte()], b";"].concat();
        let digits = [b"n=".as_slice(), &[SLOT, Slot::Digits(2).byte()], b";"].concat();
        let word = [b"n=".as_slice(), &[SLOT, Slot::Word.byte()], b";"].concat();
        let shapes = [word, decimal, digits, b"n=17;".to_vec(), b"n=1".to_vec()];
        let mut sorted = shapes.to_vec();
        sorted.sort_unstable();
        let found = |string: &[u8]| match follow(&shapes, string, None) {
            Some((Found::Shape(shape), path)) => Some((sorted[shape].clone(), path.fillings)),
            _ => None,
        };
        assert_eq!(found(b"n=17;"), Some((shapes[3].clone(), vec![])));
        assert_eq!(found(b"n=18;"), Some((shapes[2].clone(), vec![Filling::Bits(18, decimal_bits(2))])));
        assert_eq!(found(b"n=181;"), Some((shapes[1].clone(), vec![Filling::Decimal(3, 110 + 181)])));
        assert_eq!(found(b"n=ab c;"), Some((shapes[0].clone(), vec![Filling::Words(0, 2)])));
        assert_eq!(found(b"n=1"), Some((shapes[4].clone(), vec![])));
        for other in [&b"n=17"[..], b"n=17;;", b"n=", b"", b"m=17;"] {
            assert_eq!(found(other), None, "{other:?}");
        }
    }

    /// Of these shapes each has what the string has, but for the last byte, and only the one that is tried last has all.
    #[test]
    fn a_string_turns_back_only_so_often() {
        let shapes_of = |levels: u32| {
            let of = |number: u32| {
                let mut shape = Vec::new();
                for level in 0..levels {
                    match number >> level & 1 {
                        0 => shape.push(b'1'),
                        _ => shape.extend_from_slice(&[SLOT, Slot::Decimal.byte()]),
                    }
                    shape.push(b',');
                }
                shape.push(if number + 1 == 1 << levels { b'!' } else { b'?' });
                shape
            };
            (0..1 << levels).map(of).collect::<Vec<_>>()
        };
        let string = |levels| ["1,".repeat(levels).as_bytes(), b"!"].concat();
        assert!(follow(&shapes_of(7), &string(7), None).is_some());
        assert!(follow(&shapes_of(8), &string(8), None).is_none());
    }
}

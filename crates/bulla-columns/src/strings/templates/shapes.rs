//! The shapes that were met, and the columns of their slots.
//!
//! Two slots share a column where they are of one kind, stand between the same bytes, and are preceded in their shapes by equally
//! many slots of that kind between those bytes. So paths share a column for their first folders, one for their second ones, and so
//! on; and titles one for their first words, however many words each title has.

use super::distinct::Distinct;
use super::scan::Scan;
use super::{MOST, MOST_TEXT, SLOT};

/// The most shapes that are told apart. Strings of those beyond the first [`MOST`] are taken whole.
const MOST_MET: usize = 4096;

/// After so many shapes for which there was no room, no more are tried.
const MOST_REFUSED: usize = 64;

/// The shapes of a column of strings. Holds only memory to be used again.
#[derive(Default)]
pub(super) struct Shapes {
    met: Distinct,
    /// For each shape that was met, in that order, its number; none where there was no room for it.
    taken: Vec<Option<u8>>,
    /// The shapes one after the other, and the length of each.
    pub(super) text: Vec<u8>,
    pub(super) lengths: Vec<u64>,
    /// The columns of all slots, and where each shape's end.
    slots: Vec<u8>,
    slot_ends: Vec<usize>,
    /// What identifies each column: its kind, the bytes around its slots, and how many such slots stand before.
    places: Vec<[u8; 4]>,
}

impl Shapes {
    pub(super) fn clear(&mut self) {
        self.met.clear();
        self.taken.clear();
        self.text.clear();
        self.lengths.clear();
        self.slots.clear();
        self.slot_ends.clear();
        self.places.clear();
    }

    /// The kinds of the columns.
    pub(super) fn kinds(&self) -> impl ExactSizeIterator<Item = u8> {
        self.places.iter().map(|place| place[0])
    }

    /// The columns of a shape's slots.
    #[inline]
    pub(super) fn slots(&self, shape: u8) -> &[u8] {
        let shape = usize::from(shape);
        let start = if shape == 0 { 0 } else { self.slot_ends[shape - 1] };
        &self.slots[start..self.slot_ends[shape]]
    }

    /// The number of the shape of what was cut, or none where there is no room for it; `None` where there are too many.
    #[inline]
    pub(super) fn number(&mut self, scan: &Scan) -> Option<Option<u8>> {
        let number = self.met.number(&scan.shape)?;
        if number == self.taken.len() {
            if number == MOST_MET {
                return None;
            }
            let taken = self.take(scan);
            self.taken.push(taken);
        }
        Some(self.taken[number])
    }

    /// Adds a shape. There is always room for the shape of one word and for the empty one.
    fn take(&mut self, scan: &Scan) -> Option<u8> {
        let reserved = if scan.is_whole() || scan.shape.is_empty() { 0 } else { 2 };
        let (text, columns) = (self.text.len(), self.places.len());
        let refused = self.taken.len() - self.lengths.len();
        if reserved > 0 && refused >= MOST_REFUSED {
            return None;
        }
        if self.lengths.len() + reserved >= MOST || text + scan.shape.len() + reserved > MOST_TEXT {
            return None;
        }
        let slots = self.slots.len();
        if self.add_slots(&scan.shape, MOST - reserved).is_none() {
            self.text.truncate(text);
            self.slots.truncate(slots);
            self.places.truncate(columns);
            return None;
        }
        self.lengths.push(scan.shape.len() as u64);
        self.slot_ends.push(self.slots.len());
        u8::try_from(self.lengths.len() - 1).ok()
    }

    /// Adds a shape's text, with columns in place of kinds, of which there may be so many.
    fn add_slots(&mut self, shape: &[u8], most: usize) -> Option<()> {
        let first = self.slots.len();
        let (mut before, mut rest) = (SLOT, shape);
        while let Some((&byte, behind)) = rest.split_first() {
            self.text.push(byte);
            (before, rest) =
                (byte, if byte == SLOT { self.add_slot(before, behind, first, most)? } else { behind });
        }
        Some(())
    }

    /// Adds the slot that a kind is of, behind that byte, in the shape whose slots begin at `first`: what is left.
    fn add_slot<'a>(&mut self, before: u8, kind: &'a [u8], first: usize, most: usize) -> Option<&'a [u8]> {
        let (&kind, rest) = kind.split_first()?;
        let place = [kind, before, rest.first().copied().unwrap_or(SLOT)];
        let alike = |column: &&u8| self.places[usize::from(**column)][..3] == place;
        let earlier = u8::try_from(self.slots[first..].iter().filter(alike).count()).ok()?;
        let place = [place[0], place[1], place[2], earlier];
        let known = self.places.iter().position(|known| *known == place);
        let column = known.unwrap_or(self.places.len());
        if column >= most {
            return None;
        }
        if known.is_none() {
            self.places.push(place);
        }
        let column = u8::try_from(column).ok()?;
        self.text.push(column);
        self.slots.push(column);
        Some(rest)
    }
}

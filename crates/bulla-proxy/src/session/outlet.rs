//! [`Outlet`]: bytes that leave in their order, each once it may.
//!
//! Invariants: what leaves was settled, and what it waits for is durable; nothing overtakes what came before it.

use std::collections::VecDeque;

/// An outlet that was emptied keeps no more room than this.
const ROOM_KEPT: usize = 16 << 10;
/// So many bytes that have left are moved out of the way of what follows them.
const MOVED: usize = 64 << 10;

/// How many entries have to be durable, of those that a recorder was given, for something to go on.
pub type Ticket = u64;

/// A place among all bytes that ever came into an outlet.
pub type Place = u64;

/// Bytes on their way to one side.
#[derive(Debug, Default)]
pub struct Outlet {
    bytes: Vec<u8>,
    /// How many of them have left.
    left: usize,
    /// The place of the first of them.
    base: Place,
    /// Up to where bytes may leave, after what, and whether something ends there: the last one says how far anything is settled.
    waits: VecDeque<(Place, Ticket, bool)>,
    /// Up to here nothing is waited for.
    free: Place,
    /// Whether it is within something of which the rest is to come.
    within: bool,
}

impl Outlet {
    /// Appends bytes that may not leave yet.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The place behind all bytes.
    pub fn end(&self) -> Place {
        self.base + self.bytes.len() as u64
    }

    /// Up to where bytes have left.
    pub fn gone(&self) -> Place {
        self.base + self.left as u64
    }

    /// How many bytes have not left.
    pub fn waiting(&self) -> usize {
        self.bytes.len() - self.left
    }

    /// Forgets what came from `place` on, of which nothing is settled.
    pub fn truncate(&mut self, place: Place) {
        self.bytes.truncate(offset(place, self.base));
    }

    /// What stands before `place` may leave once so many entries are durable.
    pub fn settle(&mut self, place: Place, ticket: Ticket) {
        self.settle_to(place, ticket, true);
    }

    /// The same of a place within something that goes on behind it.
    pub fn settle_part(&mut self, place: Place, ticket: Ticket) {
        self.settle_to(place, ticket, false);
    }

    fn settle_to(&mut self, place: Place, ticket: Ticket, ends: bool) {
        match self.waits.back_mut() {
            Some((last, ..)) if *last == place => {}
            Some((last, same, last_ends)) if *same >= ticket => (*last, *last_ends) = (place, ends),
            None if self.free == place => {}
            _ => self.waits.push_back((place, ticket, ends)),
        }
    }

    /// What has not left never does.
    pub fn stop(&mut self) {
        self.waits.clear();
        self.bytes.truncate(self.left);
        self.free = self.end();
    }

    /// What waits never leaves, and neither does what is not settled: these bytes leave in their place, unless they would stand within
    /// something that has begun to.
    pub fn replace_waiting(&mut self, bytes: &[u8]) {
        if !self.within {
            self.waits.clear();
            self.truncate(self.free);
            self.push(bytes);
            self.free = self.end();
        }
    }

    /// Up to where bytes are settled.
    pub fn settled(&self) -> Place {
        self.waits.back().map_or(self.free, |(place, ..)| *place)
    }

    /// What may leave now that so many entries are durable.
    pub fn ready(&mut self, durable: Ticket) -> &[u8] {
        while let Some((place, _, ends)) = self.waits.front().filter(|(_, ticket, _)| *ticket <= durable) {
            (self.free, self.within) = (*place, !ends);
            self.waits.pop_front();
        }
        &self.bytes[self.left..offset(self.free, self.base).max(self.left)]
    }

    /// Whether all has left that is settled.
    pub fn is_drained(&self) -> bool {
        self.waits.is_empty() && self.free <= self.base + self.left as u64
    }

    /// For what the next bytes wait, where they are settled and wait.
    pub fn waits_for(&self) -> Option<Ticket> {
        self.waits.front().map(|(_, ticket, _)| *ticket)
    }

    /// So many of the bytes that were ready have left.
    pub fn leave(&mut self, count: usize) {
        self.left += count;
        if self.left == self.bytes.len() {
            self.base += self.left as u64;
            self.left = 0;
            self.bytes.clear();
            if self.bytes.capacity() > ROOM_KEPT {
                self.bytes = Vec::new();
            }
        } else if self.left >= MOVED && self.left >= self.bytes.len() / 2 {
            self.bytes.drain(..self.left);
            self.base += self.left as u64;
            self.left = 0;
        }
    }
}

fn offset(place: Place, base: Place) -> usize {
    usize::try_from(place.saturating_sub(base)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_leave_in_their_order_once_what_they_wait_for_is_durable() {
        let mut outlet = Outlet::default();
        outlet.push(b"one");
        assert_eq!(outlet.ready(9), b"");
        outlet.settle(outlet.end(), 2);
        outlet.push(b"two");
        outlet.settle(outlet.end(), 1);
        outlet.push(b"three");
        outlet.settle(outlet.end(), 4);
        outlet.push(b"open");
        assert_eq!(outlet.ready(1), b"");
        assert_eq!(outlet.waits_for(), Some(2));
        assert_eq!(outlet.ready(3), b"onetwo");
        assert_eq!(outlet.waits_for(), Some(4));
        outlet.leave(4);
        assert_eq!(outlet.ready(4), b"wothree");
        outlet.truncate(outlet.settled());
        outlet.leave(7);
        assert_eq!((outlet.waiting(), outlet.end()), (0, 11));
        outlet.push(b"more");
        outlet.settle(outlet.end(), 0);
        assert_eq!(outlet.ready(0), b"more");
    }

    #[test]
    fn other_bytes_take_the_place_of_what_waits_but_within_nothing_that_has_begun() {
        let mut outlet = Outlet::default();
        outlet.push(b"one");
        outlet.settle(outlet.end(), 0);
        outlet.push(b"begun");
        outlet.settle_part(outlet.end(), 1);
        outlet.push(b"ended");
        outlet.settle(outlet.end(), 2);
        assert_eq!(outlet.ready(0), b"one");
        let mut begun = Outlet { bytes: outlet.bytes.clone(), waits: outlet.waits.clone(), ..outlet };
        assert_eq!(begun.ready(1), b"onebegun");
        begun.replace_waiting(b"other");
        assert_eq!(begun.ready(1), b"onebegun");
        outlet.replace_waiting(b"other");
        assert_eq!(outlet.ready(0), b"oneother");
        assert!(outlet.waits_for().is_none());
    }
}

//! [`Losses`]: which entries were given tickets, and lost.

use crate::session::Ticket;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// So many runs of lost entries are told apart. Where there are more, the two oldest and all between them count as one: whoever was not told
/// by then that one of them is durable is not told at all.
const MOST: usize = 64;

/// The tickets of entries that were lost, in their order.
#[derive(Default)]
pub struct Losses {
    /// How often any were, so that whoever looks when nothing was lost takes no lock.
    count: AtomicU64,
    /// The ticket before the first, and the last.
    ranges: Mutex<Vec<(Ticket, Ticket)>>,
}

impl Losses {
    /// Those after `before` up to `last` were lost.
    pub(super) fn note(&self, before: Ticket, last: Ticket) {
        if before >= last {
            return;
        }
        let mut ranges = self.ranges.lock().unwrap_or_else(PoisonError::into_inner);
        ranges.push((before, last));
        ranges.sort_unstable();
        if ranges.len() > MOST {
            let (_, last) = ranges.remove(1);
            ranges[0].1 = ranges[0].1.max(last);
        }
        self.count.fetch_add(1, Ordering::Release);
    }

    /// How often any were lost.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// The first one from `ticket` on.
    pub fn first_from(&self, ticket: Ticket) -> Option<Ticket> {
        if self.count() == 0 {
            return None;
        }
        let ranges = self.ranges.lock().unwrap_or_else(PoisonError::into_inner);
        let after = ranges.iter().filter(|(_, last)| *last >= ticket);
        after.map(|(before, _)| ticket.max(before + 1)).min()
    }

    /// Whether the entry of a ticket was lost.
    pub fn has(&self, ticket: Ticket) -> bool {
        self.first_from(ticket) == Some(ticket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_lost_is_told_apart_from_what_was_not() {
        let losses = Losses::default();
        assert_eq!((losses.first_from(0), losses.has(1)), (None, false));
        losses.note(5, 5);
        assert_eq!(losses.count(), 0);
        losses.note(7, 9);
        losses.note(2, 3);
        assert_eq!((losses.first_from(0), losses.first_from(4)), (Some(3), Some(8)));
        assert_eq!(
            [2, 3, 4, 7, 8, 9, 10].map(|ticket| losses.has(ticket)),
            [false, true, false, false, true, true, false]
        );
    }

    #[test]
    fn however_often_something_is_lost_nothing_lost_is_forgotten_and_memory_is_bounded() {
        let losses = Losses::default();
        for number in 0..1000 {
            losses.note(10 * number, 10 * number + 1);
        }
        assert!(losses.ranges.lock().unwrap().len() <= MOST);
        assert!((0..1000).all(|number| losses.has(10 * number + 1)));
        assert!(!losses.has(9_995) && losses.first_from(9_992).is_none());
    }
}

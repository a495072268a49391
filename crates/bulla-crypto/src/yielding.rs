//! Long work that lets other threads go first.
//!
//! Whoever becomes ready on a processor may wait until the slice of the thread that has it is over, which is milliseconds, however nice that thread
//! is. So a thread that nobody waits for gives its processor up at points of its work, of which one each tenth of a millisecond does that.
#![expect(clippy::disallowed_methods, reason = "it is the operating system's time that a slice is of")]

use std::cell::Cell;
use std::time::{Duration, Instant};

/// How long a thread that yields keeps its processor.
const TURN: Duration = Duration::from_micros(100);

/// So many turns of a loop have one point.
const TURNS: usize = 16;

thread_local! {
    /// When this thread got its processor, about; nothing of a thread that keeps it.
    static SINCE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Has this thread let others go first from here on, at each [`point`] at which it has had its processor for long enough.
pub fn begin() {
    SINCE.set(Some(Instant::now()));
}

/// A point of long work. Of a thread that has not begun to yield it does nothing.
#[inline]
pub fn point() {
    if let Some(since) = SINCE.get() {
        pass(since);
    }
}

/// The same in a loop whose turns are short, of which this is the one with that index.
#[inline]
pub fn point_of_loop(index: usize) {
    if index.is_multiple_of(TURNS) {
        point();
    }
}

fn pass(since: Instant) {
    if since.elapsed() >= TURN {
        std::thread::yield_now();
        begin();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_has_begun_yields_and_no_other_one() {
        // Whether it yields within that time: what it does when its turn is over, however often it is interrupted.
        let yields_within = |time: Duration| {
            let (before, end) = (SINCE.get(), Instant::now() + time);
            (0..).take_while(|_| Instant::now() < end).any(|index| {
                point_of_loop(index);
                before != SINCE.get()
            })
        };
        assert!(!yields_within(10 * TURN));
        begin();
        assert!(yields_within(Duration::from_secs(60)));
        assert!(!std::thread::spawn(move || yields_within(10 * TURN)).join().unwrap());
    }
}

//! How long a connection waits for others that have the database.

use bulla_crypto::environment::Interrupt;
use std::sync::Arc;
use std::time::Duration;

/// How long a connection waits for others that are opening, closing or making good what a crash left.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// How long, where nothing rests on it, or somebody has given up.
pub(super) const LITTLE_PATIENCE: Duration = Duration::from_millis(50);
/// The longest pause before it is tried again, in milliseconds, as a power of two.
const LONGEST_PAUSE_LOG2: u32 = 5;

/// Of all connections of a vault and of its replicas. It ends when whoever waits gives up.
#[derive(Default)]
pub(super) struct Patience {
    given_up: Interrupt,
    /// Whether there is no other end to it.
    #[cfg(test)]
    pub(super) endless: std::sync::atomic::AtomicBool,
}

impl Patience {
    /// Nobody waits for long from now on, those who wait already included.
    pub(super) fn give_up(&self) {
        self.given_up.raise();
    }

    /// Waits for one that has the database, `most` at most, each time that it is called: with how often it was called before, of the
    /// same one. False where it is not to be tried again.
    pub(super) fn waiting(self: &Arc<Self>, most: Duration) -> impl FnMut(i32) -> bool + Send + 'static {
        let (patience, mut waited) = (self.clone(), Duration::ZERO);
        move |before| {
            if before == 0 {
                waited = Duration::ZERO;
            }
            let given_up = patience.given_up.is_raised();
            let most = if given_up { most.min(LITTLE_PATIENCE) } else { patience.at_most(most) };
            if waited >= most {
                return false;
            }
            let pause = Duration::from_millis(1 << before.unsigned_abs().min(LONGEST_PAUSE_LOG2));
            waited += pause;
            // One that was raised already ends no short wait.
            let _ = if given_up { Interrupt::default().wait(pause) } else { patience.given_up.wait(pause) };
            true
        }
    }

    #[cfg(not(test))]
    fn at_most(&self, most: Duration) -> Duration {
        most
    }

    #[cfg(test)]
    fn at_most(&self, most: Duration) -> Duration {
        if self.endless.load(std::sync::atomic::Ordering::Relaxed) { Duration::MAX } else { most }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_has_an_end_and_a_near_one_once_that_is_given_up() {
        let patience = Arc::new(Patience::default());
        let times = |most| {
            let mut waiting = patience.waiting(most);
            (0..).take_while(|before| waiting(*before)).count()
        };
        // After 1, 2, 4, 8, 16, 32 ms, and 32 each from then on.
        assert_eq!(times(Duration::from_millis(100)), 8);
        assert_eq!(times(Duration::ZERO), 0);
        patience.give_up();
        assert_eq!(times(PATIENCE), 6);
        assert_eq!(times(Duration::from_millis(3)), 2);
    }

    #[test]
    fn who_has_waited_for_another_one_waits_anew() {
        let patience = Arc::new(Patience::default());
        let mut waiting = patience.waiting(Duration::from_millis(1));
        assert!(waiting(0) && !waiting(1));
        assert!(waiting(0) && !waiting(1));
    }
}

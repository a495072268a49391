//! Trying again what failed: how often, and how long in between.
//!
//! Invariants:
//! - no wait is longer than [`LONGEST`], however often something failed before;
//! - whoever closes the log does not sit out waits: a wait that is under way ends when closing is announced, later ones
//!   are short, and together they take no more than [`CLOSING_IN_ALL`]. Every attempt is made all the same, so closing
//!   gives nothing up that would not have been given up anyway;
//! - a log that is to go on for ever makes further attempts until closing is announced, or it is to go on no longer;
//! - whoever says so has even that end: once attempts are given up, there is no wait and no further attempt at anything.

use bulla_crypto::environment::{Clock, Interrupt, Tell};
use bulla_store::Result;
use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The longest wait between two attempts.
pub(crate) const LONGEST: Duration = Duration::from_secs(1);
/// The longest wait between two attempts once closing is announced.
pub(crate) const CLOSING_LONGEST: Duration = Duration::from_millis(100);
/// All waits together, of all threads, once closing is announced.
pub(crate) const CLOSING_IN_ALL: Duration = Duration::from_secs(1);

/// Is told when a log that goes on for ever has made as many attempts at something that entries wait for as any other would.
pub(crate) trait WatchOutages: Send + Sync {
    /// Nothing takes what is written, for that reason: before the wait for each further attempt.
    fn outage(&self, why: &dyn Display);
    /// Something does again, or it is given up.
    fn over(&self);
}

/// How a log tries again.
pub(crate) struct BackOff {
    clock: Arc<dyn Clock>,
    retries: u32,
    first_delay: Duration,
    closing: Interrupt,
    given_up: Interrupt,
    /// What waits may still take once closing is announced.
    closing_left: Mutex<Duration>,
    teller: Mutex<Option<Tell>>,
    /// Whether attempts end only when closing is announced.
    endless: AtomicBool,
    /// Who is told of outages, and at how many things attempts are made beyond `retries` that entries wait for.
    watch: Mutex<Option<Arc<dyn WatchOutages>>>,
    outages: Mutex<usize>,
}

impl BackOff {
    /// Up to `retries` further attempts, after waits of `first_delay`, twice that, and so on.
    pub(crate) fn new(clock: Arc<dyn Clock>, retries: u32, first_delay: Duration) -> Self {
        let closing_left = Mutex::new(CLOSING_IN_ALL);
        let (closing, given_up) = (Interrupt::default(), Interrupt::default());
        let (teller, endless) = (Mutex::new(None), AtomicBool::new(false));
        let (watch, outages) = (Mutex::new(None), Mutex::new(0));
        BackOff {
            clock,
            retries,
            first_delay,
            closing,
            given_up,
            closing_left,
            teller,
            endless,
            watch,
            outages,
        }
    }

    /// Has attempts end, from now on, only when closing is announced.
    pub(crate) fn go_on_for_ever(&self) {
        self.endless.store(true, Ordering::Relaxed);
    }

    /// Has attempts end, from now on, once they are as many as those of any other log; those that are more end with the one under way.
    pub(crate) fn go_on_no_longer(&self) {
        self.endless.store(false, Ordering::Relaxed);
    }

    /// Whether attempts end only when closing is announced, and it is not yet.
    pub(crate) fn goes_on_for_ever(&self) -> bool {
        self.endless.load(Ordering::Relaxed) && !self.closing.is_raised()
    }

    /// Has `watch` told of outages from now on.
    pub(crate) fn watch_outages(&self, watch: Arc<dyn WatchOutages>) {
        *self.watch.lock().unwrap_or_else(PoisonError::into_inner) = Some(watch);
    }

    fn watch(&self) -> Option<Arc<dyn WatchOutages>> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Has `tell` told, from now on, what failed, once for each thing that is about to be tried again.
    pub(crate) fn when_trying_again(&self, tell: Tell) {
        *self.teller.lock().unwrap_or_else(PoisonError::into_inner) = Some(tell);
    }

    pub(crate) fn tell(&self, why: &dyn Display) {
        let teller = self.teller.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(tell) = teller {
            tell(&why.to_string());
        }
    }

    /// Ends the wait that is under way, and keeps later ones short.
    pub(crate) fn announce_close(&self) {
        self.closing.raise();
    }

    /// Ends the wait that is under way, and has nothing tried again: what fails from now on has failed.
    pub(crate) fn give_up(&self) {
        self.given_up.raise();
        self.closing.raise();
    }

    /// The attempts at one thing.
    pub(crate) fn attempts(&self) -> Attempts<'_> {
        Attempts {
            back_off: self,
            left: self.retries,
            delay: self.first_delay,
            told: false,
            delays_entries: true,
            is_outage: false,
        }
    }

    /// Attempts something until it succeeds, fails in a way that does not pass, or has failed too often.
    ///
    /// # Errors
    /// That of the last attempt.
    pub(crate) fn retry<T, E: Display>(
        &self,
        passes: impl Fn(&E) -> bool,
        attempt: impl FnMut() -> Result<T, E>,
    ) -> Result<T, E> {
        Self::retry_with(self.attempts(), passes, attempt)
    }

    /// The same of something that no entry waits for.
    ///
    /// # Errors
    /// As [`BackOff::retry`].
    pub(crate) fn retry_beside<T, E: Display>(
        &self,
        passes: impl Fn(&E) -> bool,
        attempt: impl FnMut() -> Result<T, E>,
    ) -> Result<T, E> {
        Self::retry_with(Attempts { delays_entries: false, ..self.attempts() }, passes, attempt)
    }

    fn retry_with<T, E: Display>(
        mut attempts: Attempts<'_>,
        passes: impl Fn(&E) -> bool,
        mut attempt: impl FnMut() -> Result<T, E>,
    ) -> Result<T, E> {
        loop {
            match attempt() {
                Err(error) if passes(&error) && attempts.wait_for_next(&error) => {}
                done => return done,
            }
        }
    }

    fn wait(&self, time: Duration) {
        if !self.closing.is_raised() {
            return self.clock.wait(time, &self.closing);
        }
        let mut left = self.closing_left.lock().unwrap_or_else(PoisonError::into_inner);
        let time = time.min(CLOSING_LONGEST).min(*left);
        *left -= time;
        drop(left);
        if !time.is_zero() {
            self.clock.wait(time, &self.given_up);
        }
    }
}

/// See [`BackOff::attempts`].
pub(crate) struct Attempts<'a> {
    back_off: &'a BackOff,
    left: u32,
    delay: Duration,
    /// Whether it was told that there are several.
    told: bool,
    /// Whether entries wait for it.
    delays_entries: bool,
    /// Whether an outage was told of.
    is_outage: bool,
}

impl Attempts<'_> {
    /// After an attempt that failed, which `why` says: waits, longer each time. False where it was the last one.
    pub(crate) fn wait_for_next(&mut self, why: &dyn Display) -> bool {
        if self.back_off.given_up.is_raised() {
            return false;
        }
        let is_endless = self.back_off.goes_on_for_ever();
        match self.left.checked_sub(1) {
            Some(left) => self.left = left,
            None if is_endless => self.tell_outage(why),
            None => return false,
        }
        if !std::mem::replace(&mut self.told, true) {
            self.back_off.tell(why);
        }
        let delay = self.delay.min(LONGEST);
        self.delay = delay.saturating_mul(2);
        self.back_off.wait(delay);
        !self.back_off.given_up.is_raised()
    }

    fn tell_outage(&mut self, why: &dyn Display) {
        let Some(watch) = self.back_off.watch().filter(|_| self.delays_entries) else { return };
        if !std::mem::replace(&mut self.is_outage, true) {
            *self.back_off.outages.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        }
        watch.outage(why);
    }
}

impl Drop for Attempts<'_> {
    fn drop(&mut self) {
        if !self.is_outage {
            return;
        }
        let mut outages = self.back_off.outages.lock().unwrap_or_else(PoisonError::into_inner);
        *outages -= 1;
        let is_over = *outages == 0;
        drop(outages);
        if let Some(watch) = self.back_off.watch().filter(|_| is_over) {
            watch.over();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock on which waiting takes no time, and is told.
    #[derive(Default)]
    struct Told {
        waits: Mutex<Vec<Duration>>,
    }

    impl Clock for Told {
        fn now(&self) -> i64 {
            0
        }

        fn wait(&self, time: Duration, _: &Interrupt) {
            self.waits.lock().unwrap().push(time);
        }
    }

    fn fail_always(back_off: &BackOff) -> u32 {
        let mut attempts = 0;
        let failed = back_off.retry(
            |_| true,
            || {
                attempts += 1;
                Err::<(), _>("it fails")
            },
        );
        assert_eq!(failed, Err("it fails"));
        attempts
    }

    #[test]
    fn waits_double_up_to_a_second() {
        let clock = Arc::new(Told::default());
        let back_off = BackOff::new(clock.clone(), 11, Duration::from_millis(20));
        assert_eq!(fail_always(&back_off), 12);
        let expected = [20, 40, 80, 160, 320, 640, 1000, 1000, 1000, 1000, 1000].map(Duration::from_millis);
        assert_eq!(*clock.waits.lock().unwrap(), expected);
    }

    #[test]
    fn a_first_wait_that_is_set_longer_is_a_second_too() {
        let clock = Arc::new(Told::default());
        fail_always(&BackOff::new(clock.clone(), 2, Duration::MAX));
        assert_eq!(*clock.waits.lock().unwrap(), [LONGEST; 2]);
    }

    #[test]
    fn closing_leaves_a_second_of_short_waits_to_all_that_fails() {
        let clock = Arc::new(Told::default());
        let back_off = BackOff::new(clock.clone(), 1000, Duration::from_millis(20));
        back_off.announce_close();
        assert_eq!(fail_always(&back_off), 1001, "every attempt is made");
        assert_eq!(fail_always(&back_off), 1001);
        let waits = clock.waits.lock().unwrap();
        assert!(waits.iter().all(|&wait| wait <= CLOSING_LONGEST), "{waits:?}");
        assert_eq!(waits.iter().sum::<Duration>(), CLOSING_IN_ALL);
    }

    #[test]
    fn nothing_is_tried_again_once_that_is_given_up() {
        let clock = Arc::new(bulla_crypto::environment::SystemClock);
        let back_off = BackOff::new(clock, u32::MAX, LONGEST);
        let (told, tried) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let failing = scope.spawn(|| {
                let attempt = || {
                    told.send(()).unwrap();
                    Err::<(), _>("it fails")
                };
                back_off.retry(|_| true, attempt)
            });
            tried.recv().unwrap();
            back_off.announce_close();
            tried.recv().unwrap();
            back_off.give_up();
            assert_eq!(failing.join().unwrap(), Err("it fails"));
        });
        assert_eq!(fail_always(&back_off), 1);
    }

    #[test]
    fn a_log_that_goes_on_for_ever_tries_until_it_is_closed() {
        let clock = Arc::new(bulla_crypto::environment::SystemClock);
        let back_off = BackOff::new(clock, 2, Duration::ZERO);
        back_off.go_on_for_ever();
        let (told, tried) = std::sync::mpsc::sync_channel(0);
        std::thread::scope(|scope| {
            let failing = scope.spawn(|| {
                let attempt = || {
                    told.send(()).map_err(|_| "nobody looks any more")?;
                    Err::<(), _>("it fails")
                };
                back_off.retry(|&why| why == "it fails", attempt)
            });
            (0..20).for_each(|_| tried.recv().unwrap());
            back_off.announce_close();
            while tried.recv_timeout(Duration::from_millis(1)).is_ok() || !failing.is_finished() {}
            assert_eq!(failing.join().unwrap(), Err("it fails"));
        });
    }

    /// As often as any other log would have tried, whenever that is said.
    #[test]
    fn a_log_that_goes_on_no_longer_tries_as_often_as_any_other() {
        for tried in [0, 1, 3, 20] {
            let back_off = BackOff::new(Arc::new(Told::default()), 5, Duration::ZERO);
            back_off.go_on_for_ever();
            let mut attempts = 0;
            let attempt = || {
                attempts += 1;
                if attempts >= tried {
                    back_off.go_on_no_longer();
                }
                Err::<(), _>("it fails")
            };
            assert_eq!(back_off.retry(|_| true, attempt), Err("it fails"));
            assert_eq!(attempts, tried.max(6));
        }
    }

    #[test]
    fn what_does_not_pass_is_not_tried_again() {
        let clock = Arc::new(Told::default());
        let back_off = BackOff::new(clock.clone(), 3, Duration::from_millis(20));
        let mut attempts = 0..;
        let failed =
            back_off.retry(|&attempt: &i32| attempt < 1, || Err::<(), i32>(attempts.next().unwrap()));
        assert_eq!(failed, Err(1));
        assert_eq!(clock.waits.lock().unwrap().len(), 1);
    }

    #[test]
    fn what_is_tried_again_is_told_once_and_before_the_wait() {
        let clock = Arc::new(Told::default());
        let back_off = BackOff::new(clock.clone(), 3, Duration::from_millis(20));
        let told = Arc::new(Mutex::new(Vec::new()));
        let tell = {
            let told = told.clone();
            move |why: &str| told.lock().unwrap().push((why.to_owned(), clock.waits.lock().unwrap().len()))
        };
        back_off.when_trying_again(Arc::new(tell));
        fail_always(&back_off);
        fail_always(&back_off);
        assert_eq!(*told.lock().unwrap(), [("it fails".to_owned(), 0), ("it fails".to_owned(), 3)]);
    }

    #[test]
    fn a_wait_that_is_under_way_ends_when_closing_is_announced() {
        let clock = Arc::new(bulla_crypto::environment::SystemClock);
        // The cap alone would let it take half an hour.
        let back_off = BackOff::new(clock, 1800, LONGEST);
        let start = std::time::Instant::now();
        std::thread::scope(|scope| {
            let failing = scope.spawn(|| fail_always(&back_off));
            back_off.announce_close();
            assert_eq!(failing.join().unwrap(), 1801);
        });
        assert!(start.elapsed() < Duration::from_secs(60));
    }
}

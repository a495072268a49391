//! Time: the one place where the engine asks the operating system for it, and waits.
#![expect(clippy::disallowed_methods, reason = "here is where the others go")]

use rustix::time::{ClockId, clock_gettime};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// Wall-clock time, and waiting.
pub trait Clock: Send + Sync {
    /// Nanoseconds since the Unix epoch, UTC.
    fn now(&self) -> i64;
    /// Waits between retries, never per entry. The wait ends early where `interrupt` is raised; a simulated clock, on
    /// which waiting takes no time, need not look at that.
    fn wait(&self, time: Duration, interrupt: &Interrupt);

    /// Nanoseconds from any start, which never go back: for telemetry. A clock may do without.
    fn steady(&self) -> u64 {
        0
    }

    /// Nanoseconds of processor time that this thread has had: for telemetry. A clock may do without.
    fn processor(&self) -> u64 {
        0
    }
}

/// Ends waits early: once it is raised, every wait for it returns at once.
#[derive(Debug, Default)]
pub struct Interrupt {
    raised: Mutex<bool>,
    changed: Condvar,
}

impl Interrupt {
    /// Ends the waits of now and of later.
    pub fn raise(&self) {
        *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Waits for `time` at most. Returns whether this is raised.
    pub fn wait(&self, time: Duration) -> bool {
        let raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(raised, time, |raised| !*raised);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Whether this is raised.
    pub fn is_raised(&self) -> bool {
        *self.raised.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The operating system's clock.
#[derive(Debug)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[inline]
    fn now(&self) -> i64 {
        let now = SystemTime::now();
        match now.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_nanos()).unwrap_or(i64::MAX),
            Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |nanos| -nanos),
        }
    }

    fn wait(&self, time: Duration, interrupt: &Interrupt) {
        interrupt.wait(time);
    }

    #[inline]
    fn steady(&self) -> u64 {
        read(ClockId::Monotonic)
    }

    fn processor(&self) -> u64 {
        read(ClockId::ThreadCPUTime)
    }
}

/// By when somebody outside of this process, a plugin or a peer on a socket, has to have answered. The operating system waits
/// for those, and no simulated clock can.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    /// The point in time after `duration`; none, where that is beyond all time.
    pub fn after(duration: Duration) -> Self {
        Deadline(Instant::now().checked_add(duration))
    }

    /// How much time is left, zero once it has come.
    pub fn left(&self) -> Duration {
        self.0.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()))
    }
}

#[inline]
fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

//! Time: the one place where the engine asks the operating system for it, and waits.

use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, SystemTime};

/// Wall-clock time, and waiting.
pub trait Clock: Send + Sync {
    /// Nanoseconds since the Unix epoch, UTC.
    fn now(&self) -> i64;
    /// Waits: between retries, never per entry.
    fn sleep(&self, duration: Duration);

    /// Nanoseconds from any start, which never go back: for telemetry. A clock may do without.
    fn steady(&self) -> u64 {
        0
    }

    /// Nanoseconds of processor time that this thread has had: for telemetry. A clock may do without.
    fn processor(&self) -> u64 {
        0
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

    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }

    #[inline]
    fn steady(&self) -> u64 {
        read(ClockId::Monotonic)
    }

    fn processor(&self) -> u64 {
        read(ClockId::ThreadCPUTime)
    }
}

#[inline]
fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

//! A producer's clock: a fixed start, and steps that are told to it.

/// 2026-01-01T00:00:00Z, in nanoseconds since the epoch.
pub(crate) const START: i64 = 1_767_225_600_000_000_000;

#[derive(Debug)]
pub(crate) struct Clock(i64);

impl Clock {
    pub(crate) fn new() -> Self {
        Clock(START)
    }

    /// Steps forward and says what time it is then.
    #[inline]
    pub(crate) fn step(&mut self, microseconds: u32) -> i64 {
        self.0 += 1000 * i64::from(microseconds);
        self.0
    }
}

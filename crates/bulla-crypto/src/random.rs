//! Randomness: the one place where the engine asks the operating system for it.
#![expect(clippy::disallowed_methods, reason = "here is where the others go")]

use bulla_store::{Error, Result};

/// A source of random bytes fit for keys.
pub trait Random: Send + Sync {
    /// Fills `bytes`.
    ///
    /// # Errors
    /// Where the operating system has none to give.
    fn fill(&self, bytes: &mut [u8]) -> Result<()>;
}

/// The operating system's random bytes.
#[derive(Debug)]
pub struct SystemRandom;

impl Random for SystemRandom {
    fn fill(&self, bytes: &mut [u8]) -> Result<()> {
        getrandom::fill(bytes).map_err(|error| {
            Error::unavailable(format!("the operating system gave no random bytes: {error}"))
        })
    }
}

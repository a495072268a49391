//! [`Requests`]: the commands in what a client sends.

use super::{Arguments, Limits, Progress, Violation};

/// Cuts what a client sends into commands: arrays of bulk strings, and inline commands.
pub struct Requests {
    limits: Limits,
    arguments: Arguments,
}

impl Requests {
    /// Keeps no more than `limits` of a command. Digests of what is longer than what is kept are under `key`.
    pub fn new(limits: Limits, key: [u8; 32]) -> Self {
        let _ = key;
        Requests { limits, arguments: Arguments::default() }
    }

    /// Goes on with the command at hand. `keep` says, as argument `index` of `length` bytes begins, how many of its first bytes to keep
    /// and whether its digest is wanted should it be longer; it knows the arguments before it.
    ///
    /// # Errors
    /// What comes is no command. The same for all bytes after that.
    pub fn next(
        &mut self,
        bytes: &[u8],
        keep: impl Fn(&Arguments, u64, u64) -> (usize, bool),
    ) -> Result<Progress, Violation> {
        let _ = (bytes, keep, self.limits);
        Err(Violation { what: "nothing is read yet" })
    }

    /// The command at hand, as far as it has come; the whole of it after it was complete, until the next one begins.
    pub fn arguments(&self) -> &Arguments {
        &self.arguments
    }
}

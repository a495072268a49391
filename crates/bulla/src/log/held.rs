//! [`Held`].

use super::{Log, check_owner};
use crate::format::options::Options;
use crate::write::engine::Directories;
use bulla_crypto::environment::Environment;
use bulla_store::{Result, Store};
use std::fmt::{self, Debug};
use std::sync::Arc;

/// The directories of a log that was closed, which nobody else writes until this is dropped: by [`Log::close_holding`]. So whoever opens
/// the log again finds what it had left there, and nobody erased by others.
pub struct Held {
    pub(super) directories: Arc<Directories>,
    pub(super) log: Arc<dyn Store>,
    pub(super) keys: Arc<dyn Store>,
    pub(super) owner: u32,
}

impl Held {
    /// Opens the log again, by the same directories. Producers of the one that was closed should be gone: they keep its memory.
    ///
    /// # Errors
    /// As [`Log::open`]; `Unavailable` for good where one of the directories is not where it was.
    pub fn open(&self, options: Options, environment: Environment) -> Result<Log> {
        check_owner(self.owner)?;
        let (log, keys) = (self.log.clone(), self.keys.clone());
        Log::open_locked(self.directories.clone(), (log, keys), options, environment)?.begin()
    }
}

impl Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Held")
    }
}

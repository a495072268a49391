//! [`Producers`].

use super::{Producer, check_owner};
use crate::fields::CompiledRules;
use crate::write::engine::Engine;
use bulla_store::{Error, ErrorKind, Result};
use std::fmt::{self, Debug};
use std::sync::{Arc, Weak};

/// Makes producers of a log on any thread: by [`Log::producers`](super::Log::producers). It keeps nothing of the log open.
#[derive(Clone)]
pub struct Producers {
    pub(super) engine: Weak<Engine>,
    pub(super) minimise: Option<Arc<CompiledRules>>,
    pub(super) owner: u32,
}

impl Producers {
    /// As [`Log::producer`](super::Log::producer).
    ///
    /// # Errors
    /// As [`Log::producer`](super::Log::producer); `Closed` where the log is gone.
    pub fn producer(&self) -> Result<Producer> {
        check_owner(self.owner)?;
        let gone = || Error::new(ErrorKind::Closed, "the log is closed");
        let engine = self.engine.upgrade().ok_or_else(gone)?;
        Producer::of(&engine, self.minimise.as_ref(), self.owner)
    }
}

impl Debug for Producers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Producers")
    }
}

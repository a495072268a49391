//! [`Closing`].

use crate::write::back_off::BackOff;
use bulla_vault::Vault;
use std::fmt::{self, Debug};
use std::sync::{Arc, Weak};

/// Says from any thread that a log is about to be closed: by [`Log::closing`](super::Log::closing).
#[derive(Clone)]
pub struct Closing {
    pub(super) back_off: Arc<BackOff>,
    /// The log's vault, while that is open.
    pub(super) vault: Weak<Vault>,
}

impl Closing {
    /// Whoever is going to close the log does not want to sit out waits between attempts at what fails. The wait that is
    /// under way ends, later ones are 100 ms at most, and all together take no more than a second. As many attempts are
    /// made as ever, and everything else goes on as before.
    pub fn announce(&self) {
        self.back_off.announce_close();
    }

    /// Whoever is going to close the log does not want anything tried again: the wait that is under way ends, for another
    /// process that has the vault, too, and the log fails at what fails from now on. What it says then of entries is true as ever: those are counted that are durable.
    pub fn give_up(&self) {
        self.back_off.give_up();
        if let Some(vault) = self.vault.upgrade() {
            vault.give_up();
        }
    }
}

impl Debug for Closing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Closing")
    }
}

//! The vault of a log follows its events: it may be a backup from before an erasure that the log tells of.
//!
//! Invariants:
//! - opening a log needs no frame for that which lies on a path that is lost: what an event told that is gone with one nobody can follow, and
//!   that is said;
//! - of a log of which the key directory knows no path that is lost every event is followed, or the log is not opened: nobody who has the
//!   storage alone has an erasure forgotten.

use super::Engine;
use crate::format::event::Event;
use crate::scan::events::{each_event, each_event_left};
use crate::scan::manifest::Manifest;
use crate::scan::snapshot::Snapshot;
use bulla_proof::checkpoint::Checkpoint;
use bulla_proof::tree::TreeHead;
use bulla_store::{Paths, Result};
use bulla_vault::{MAX_ERASED, Vault};

impl Engine {
    /// Erases whom events say that they erased, of frames that the vault has not followed, and whom those say that were `adopted`. Of a log
    /// that has lost a path, as far as it still has them: see [`Engine::each_event_to_follow`].
    pub(super) fn follow(&self, vault: &Vault, adopted: &[u64]) -> Result<()> {
        let mut erased = adopted.to_vec();
        let (follows, snapshot) = (vault.follows()?, Snapshot::of(self.log.clone())?);
        let Checkpoint { size, root, .. } = snapshot.checkpoint;
        if follows.size != size {
            // What it followed of more than there is, may not be of this log.
            let from = if follows.size < size { follows.size } else { 0 };
            let take = |event: Event| erased.extend(event.erases());
            let passed = self.each_event_to_follow(&Manifest::load_to_open(snapshot)?, from, take)?;
            if let Some((first, last)) = passed {
                self.tell_of_paths(&format!(
                    "events in frames {first} to {last} were lost with a path of the log: whether one tells of an erasure that the vault does \
                     not know of, nobody can tell"
                ));
            }
        }
        for numbers in erased.chunks(MAX_ERASED) {
            if let Some(erasure) = vault.begin_erasure_of(numbers)? {
                vault.confirm(erasure.commit()?.destroy()?.numbers())?;
            }
        }
        // Where it followed more, the next checkpoint says of what: with less than the seal state says, it would be older than the log.
        if follows.size < size { vault.follow(TreeHead { size, root }) } else { Ok(()) }
    }

    /// Gives `take` the events from a frame on. Those that a log lacks which has lost a path are passed over; it returns the frames of
    /// the first and the last of them.
    fn each_event_to_follow(
        &self,
        manifest: &Manifest,
        from: u64,
        mut take: impl FnMut(Event),
    ) -> Result<Option<(u64, u64)>> {
        match self.log.paths().is_some_and(Paths::has_lost_one) {
            true => each_event_left(manifest, from, take),
            false => each_event(manifest, from, |_, event| take(event)).map(|()| None),
        }
    }
}

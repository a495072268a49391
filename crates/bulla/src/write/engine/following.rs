//! The vault of a log follows its events: it may be a backup from before an erasure that the log tells of.
//!
//! Invariants:
//! - opening a log needs no event that was lost for good with a path: what it told nobody can follow, and that is said, and noted in the key
//!   directory before the vault follows what comes behind it;
//! - every other event is followed, or the log is not opened, whichever paths are missing: nobody who has the storage alone has an erasure
//!   forgotten.

use super::Engine;
use crate::keys::unfollowed;
use crate::scan::events::each_event;
use crate::scan::manifest::Manifest;
use crate::scan::snapshot::Snapshot;
use crate::scan::unread_events::UnreadEvents;
use bulla_proof::checkpoint::Checkpoint;
use bulla_proof::tree::TreeHead;
use bulla_store::Result;
use bulla_vault::{MAX_ERASED, Vault};

impl Engine {
    /// Erases whom events say that they erased, of frames that the vault has not followed, and whom those say that were `adopted`. Those
    /// that are lost for good are passed over; what comes behind the first of them is looked at again at each opening, until the path that
    /// has it is found.
    pub(super) fn follow(&self, vault: &Vault, adopted: &[u64]) -> Result<()> {
        let mut erased = adopted.to_vec();
        let (follows, snapshot) = (vault.follows()?, Snapshot::of(self.log.clone())?);
        let Checkpoint { size, root, .. } = snapshot.checkpoint;
        let noted = unfollowed::load(&*self.keys)?;
        // What it followed of more than there is, may not be of this log.
        let from = if follows.size <= size { follows.size } else { 0 };
        let from = noted.map_or(from, |noted| noted.min(from));
        let mut passed = None;
        if from < size {
            let manifest = Manifest::load_to_open(snapshot)?;
            each_event(&manifest, from, |_, event| erased.extend(event.erases()))?;
            passed = manifest.lost()?.events_from(from);
        }
        for numbers in erased.chunks(MAX_ERASED) {
            if let Some(erasure) = vault.begin_erasure_of(numbers)? {
                vault.confirm(erasure.commit()?.destroy()?.numbers())?;
            }
        }
        match passed {
            Some(UnreadEvents { first, last }) => {
                if noted != Some(first) {
                    unfollowed::save(&*self.keys, first)?;
                }
                self.tell_of_paths(&format!(
                    "events in frames {first} to {last} were lost with a path of the log: whether one tells of an erasure that the vault does \
                     not know of, nobody can tell, so that nothing is read under its keys"
                ));
            }
            None if noted.is_some() => unfollowed::remove(&*self.keys)?,
            None => {}
        }
        // Where it followed more, the next checkpoint says of what: with less than the seal state says, it would be older than the log.
        if follows.size < size { vault.follow(TreeHead { size, root }) } else { Ok(()) }
    }
}

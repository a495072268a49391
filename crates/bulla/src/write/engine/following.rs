//! The vault of a log follows its events: it may be a backup from before an erasure that the log tells of.
//!
//! Invariants:
//! - a vault from before a part of the log was given up (`bulla restore --older-log`) counts as one that was let pass over lost events, for good;
//!   it says so in the state in which it first knows of that part;
//! - opening a log needs no event that was lost for good with a path: what it told nobody can follow, and that is said, and the vault, with every
//!   copy of it, says so itself from then on, in one record with what it follows behind it;
//! - every other event is followed, or the log is not opened, whichever paths are missing: nobody who has the storage alone has an erasure
//!   forgotten.

use super::{Engine, Vaults};
use crate::scan::events::each_event;
use crate::scan::given_up::Line;
use crate::scan::manifest::Manifest;
use crate::scan::snapshot::Snapshot;
use crate::scan::unread_events::UnreadEvents;
use bulla_crypto::group::{Followed, PartId};
use bulla_proof::checkpoint::Checkpoint;
use bulla_proof::tree::TreeHead;
use bulla_store::Result;
use bulla_vault::{MAX_ERASED, Vault};
use std::collections::BTreeSet;

impl Engine {
    /// Erases whom events say that they erased, of frames that the vault has not followed, and whom those say that were `adopted`. Those
    /// that are lost for good are passed over; what comes behind the first of them is looked at again at each opening, until the path that
    /// has it is found. `line` is how the vault stood to the log when it was looked at; of `parts` the seal
    /// state knows, or an event behind it: the vault knows of these from then on, also of those whose events are lost.
    pub(super) fn follow(
        &self,
        vault: &Vault,
        adopted: &[u64],
        (vaults, line, parts): (Vaults, Line, BTreeSet<PartId>),
    ) -> Result<()> {
        let mut erased = adopted.to_vec();
        let (follows, noted) = (vault.follows()?, vault.unfollowed()?);
        let snapshot = Snapshot::of(self.log.clone())?;
        let Checkpoint { size, root, .. } = snapshot.checkpoint;
        // What it followed of more than is signed may not be of this log, unless recovery has compared it with all that there is: that refuses all but
        // one with which a part is given up.
        let is_own = follows.size <= size || vaults != Vaults::NewerThanLog;
        let from = if is_own { follows.size.min(size) } else { 0 };
        let from = noted.map_or(from, |noted| noted.min(from));
        let mut lost = None;
        if from < size {
            let manifest = Manifest::load_to_open(snapshot)?;
            each_event(&manifest, from, |_, event| erased.extend(event.erases()))?;
            lost = manifest.lost()?.events_from(from);
        }
        for numbers in erased.chunks(MAX_ERASED) {
            if let Some(erasure) = vault.begin_erasure_of(numbers)? {
                vault.confirm(erasure.commit()?.destroy()?.numbers())?;
            }
        }
        // What it passed over in frames that the log has not any more, nothing that is found tells.
        let (noted, mut given_up) = match line {
            Line::Own => (noted, BTreeSet::new()),
            Line::Older(given_up) => (Some(Followed::NOWHERE), given_up),
        };
        given_up.extend(parts);
        let unfollowed =
            noted.filter(|noted| *noted >= size).or(lost.map(|UnreadEvents { first, .. }| first));
        // A vault that has nobody's keys, as one that was made anew, brings nobody back.
        let unfollowed = match unfollowed {
            Some(_) if vault.check(&|_| true, &|_| ())?.people == 0 => None,
            unfollowed => unfollowed,
        };
        if unfollowed.is_some() {
            let which = match lost.filter(|_| unfollowed != Some(Followed::NOWHERE)) {
                Some(UnreadEvents { first, last }) => {
                    format!("events in frames {first} to {last} were lost with a path of the log")
                }
                None => "a part of the log was given up that the vault may not have followed".to_owned(),
            };
            self.tell_of_paths(&format!(
                "{which}: whether one tells of an erasure that the vault does not know of, nobody can tell, so that nothing is read under its \
                 keys"
            ));
        }
        // Where it followed more, the next checkpoint says of what: with less than the seal state says, it would be older than the log.
        let head = if follows.size < size { TreeHead { size, root } } else { follows };
        vault.follow_but(head, unfollowed, &given_up)
    }
}

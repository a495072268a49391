//! Who is held, as the key directory says, beside what the log's signed events tell.

use crate::erase::holds::Holds;
use crate::erase::told_holds::ToldHolds;
use crate::erase::{Hold, HoldDifference, HoldUnderWay};
use crate::keys::seal_state::SealState;
use crate::scan::events::{hold_order, told_holds};
use crate::scan::lost::LostFrames;
use crate::scan::manifest::Manifest;
use crate::scan::paths::open_log;
use crate::scan::snapshot::{Snapshot, unless_gone};
use bulla_proof::order::order_digest;
use bulla_store::{Error, FileSystem, Result, Store};
use std::path::Path;
use std::sync::Arc;

/// The holds of a log.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HeldSubjects {
    /// As the file in the key directory has them, in line with what the log tells.
    pub holds: Vec<Hold>,
    /// How the file differs from what the log tells. Opening the log brings it in line with that.
    pub differences: Vec<HoldDifference>,
    /// What was begun and is not finished, which is no difference.
    pub under_way: Vec<HoldUnderWay>,
    /// Whether the key directory knows of more frames than the log has: what is under way by the file may be what the log told in those,
    /// and the log is older than its keys then, or has lost its end.
    pub ahead: bool,
    /// The frames that were lost with a path: what they told of holds is not known, and whoever is held by one of them in the file stays
    /// so.
    pub lost: LostFrames,
    told: ToldHolds,
}

impl HeldSubjects {
    /// Whether the order to hold or to release that has this public part was carried out in the log, or is under way.
    pub fn has_order(&self, note: &str) -> bool {
        let digest = order_digest(note);
        let in_file = |hold: &Hold| {
            [Some(&hold.order), hold.release.as_ref()]
                .into_iter()
                .flatten()
                .any(|it| order_digest(it) == digest)
        };
        self.told.has_order(&digest) || self.holds.iter().any(in_file)
    }
}

/// The holds of the log in `directory`, whose keys are in `keys`.
///
/// # Errors
/// `Unavailable` where a file cannot be read, where the file of holds is missing and events were lost with a path, or where others hold and
/// release all the time; `Tampered` where the file of holds, or what is read of the log, is damaged.
pub fn holds(directory: impl AsRef<Path>, keys: impl AsRef<Path>) -> Result<HeldSubjects> {
    let log = open_log(directory, Some(keys.as_ref()), &[])?;
    let keys = FileSystem::new(keys.as_ref());
    keys.list("").map_err(|error| Error::io(format!("listing {}", keys.describe("")), error))?;
    unless_gone(&*log, holds_there(&log, &keys))
}

fn holds_there(log: &Arc<dyn Store>, keys: &FileSystem) -> Result<HeldSubjects> {
    let mut file = Holds::load_if_there(keys)?;
    // A writer may hold or release meanwhile. What it has begun is in the file.
    for _ in 0..100 {
        let manifest = Manifest::load(Snapshot::of(log.clone())?)?;
        let told = told_holds(&manifest)?;
        let before = std::mem::replace(&mut file, Holds::load_if_there(keys)?);
        if before == file {
            let (config, lost) = (&manifest.snapshot.config, manifest.lost()?.clone());
            if file.is_none() && !lost.events.is_empty() {
                return Err(Holds::missing(keys));
            }
            let mut file = file.unwrap_or_default();
            // Whoever may not read the seal state goes by what the file has followed.
            let state = SealState::load(keys).ok().filter(|state| state.log == config.id);
            let known = state.map_or(0, |state| state.chain.next_frame()).max(file.told());
            // A writer is ahead of its checkpoint for a moment.
            let ahead = known > manifest.size() && manifest.snapshot.is_quiet()?;
            file.check(keys, config, None)?;
            let (differences, under_way) = file.compare(&told, |frame| hold_order(&manifest, frame))?;
            file.check(keys, config, Some(&told))?;
            return Ok(HeldSubjects { holds: file.into_list(), differences, under_way, ahead, lost, told });
        }
    }
    Err(Error::unavailable("holds change all the time: try again"))
}

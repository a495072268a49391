//! What is said of paths that are not there, or that nobody can look at, and for which of them a log is not gone on with.
//!
//! Invariant: nothing is said to be missing that could not be looked at, so that nobody lets go of a path that is well.

use super::{LogPaths, OnePath};
use crate::format::path::NoPath;
use crate::keys::paths::Fate;
use bulla_store::{Error, MissingPath, Paths, Result};

impl LogPaths {
    /// That each of the paths that are `meant` could be looked at.
    ///
    /// # Errors
    /// `Unavailable`, naming the first of which nobody can tell what it has, or whether it is there.
    pub(super) fn require_looked_at(&self, meant: impl Fn(&OnePath) -> bool) -> Result<()> {
        let state = self.state();
        let unclear = |path: &OnePath| match &path.absent {
            Some(NoPath::Unclear(why)) if meant(path) => Some(Error::unavailable(format!(
                "{}, a path of the log, cannot be looked at: {why}",
                path.store.describe("")
            ))),
            _ => None,
        };
        state.paths.iter().find_map(unclear).map_or(Ok(()), Err)
    }

    /// That each path is there which may hold what no other has; what is said of it names a way out only where the path is not there.
    ///
    /// # Errors
    /// `Unavailable`, naming the first that is not.
    pub(super) fn require_there(&self) -> Result<()> {
        let known = self.state().known.clone();
        let is_left =
            |path: &OnePath| known.iter().any(|known| Some(known.id) == path.id && known.fate == Fate::Left);
        self.require_looked_at(|path| !is_left(path))?;
        let missing = self.missing().into_iter().find(|missing| !missing.left);
        let Some(MissingPath { place, reason, .. }) = missing else { return Ok(()) };
        let way_out = match place == self.first.describe("") {
            true => {
                "go on under the name of another path: `bulla config PATH --keys KEYS set backup_paths PATHS` names the others that \
                 are left (`unset backup_paths`, where none is)"
            }
            false => {
                "`bulla config DIR set backup_paths PATHS` names those that are left (`unset backup_paths`, where none is)"
            }
        };
        Err(Error::unavailable(format!(
            "{place} is a path of the log, and is missing: {reason}. Without it a shorter log could be gone on with: bring it, or \
             mount it; where it is lost for good, {way_out}"
        )))
    }

    /// Says which paths are missing that the log goes on without.
    pub(super) fn tell_left_ones_that_are_missing(&self) {
        let missing = {
            let state = self.state();
            let is_left = |path: &OnePath| {
                state.known.iter().any(|known| Some(known.id) == path.id && known.fate == Fate::Left)
            };
            let of = |(index, path): (usize, &OnePath)| {
                let what = match path.absent.as_ref().filter(|_| is_left(path))? {
                    NoPath::Other(why) => format!("is missing: {why}"),
                    NoPath::Unclear(why) => format!("cannot be looked at: {why}"),
                };
                let place = path.store.describe("");
                Some((index, format!("{place}, a path of the log that was left, {what}")))
            };
            state.paths.iter().enumerate().filter_map(of).collect::<Vec<_>>()
        };
        missing.into_iter().for_each(|(index, what)| self.tell(index, what));
    }
}

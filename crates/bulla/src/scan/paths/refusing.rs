//! What is said of paths that are not there, or that nobody can look at, and for which of them a log is not gone on with.
//!
//! Invariant: nothing is said to be missing that could not be looked at, so that nobody lets go of a path that is well.

use super::histories::{self, Histories};
use super::sealed::{LOOKS, has_frames};
use super::{LogPaths, OnePath, State, not_there};
use crate::format::files as log_files;
use crate::format::path::NoPath;
use crate::keys::files;
use crate::keys::paths::KnownPath;
use crate::keys::seal_state::SealState;
use crate::scan::stored_tree;
use bulla_proof::tile::FULL_WIDTH;
use bulla_proof::tree::TreeHead;
use bulla_store::{Error, ErrorKind, MissingPath, Paths, Result, Store};
use bulla_text::spelling::counted;
use std::ops::Range;

impl LogPaths {
    /// That each of the paths that are `meant` could be looked at.
    ///
    /// # Errors
    /// `Unavailable`, naming the first of which nobody can tell what it has, or whether it is there.
    pub(super) fn require_looked_at(&self, meant: impl Fn(&State, &OnePath) -> bool) -> Result<()> {
        let state = self.state();
        let unclear = |path: &OnePath| match &path.absent {
            Some(NoPath::Unclear(why)) if meant(&state, path) => Some(Error::unavailable(format!(
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
        self.require_looked_at(|state, path| !state.is_left(path))?;
        let missing = self.missing().into_iter().find(|missing| !missing.left);
        let Some(MissingPath { place, reason, .. }) = missing else { return Ok(()) };
        let signed = self.published_frames().unwrap_or(0);
        let elsewhere = self.keys.as_ref().and_then(|keys| signed_elsewhere(self, &**keys, signed));
        if let Some(covered) = elsewhere {
            return Err(Error::unavailable(format!(
                "{place} is a path of the log, and is missing: {reason}. Bring it, or mount it: the newest checkpoint on the other paths \
                 covers {signed} frames, and the log's seal state {covered}. Where it is lost for good, and no other path has the frames \
                 between, what is left is read, and not written to any more, whatever `backup_paths` names: docs/operating.md, \"The path \
                 in use is lost\", says what there is to do then"
            )));
        }
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

    /// As [`Paths::require_named`].
    pub(super) fn require_settings(&self) -> Result<()> {
        let Some(why) = &self.unread_settings else { return Ok(()) };
        Err(Error::unavailable(format!(
            "{why}. It says on which other paths the log lies, so nothing is told of what is here as if it were the log. Until \
             then name those paths with --also; `bulla export --salvage` gives out what is here"
        )))
    }

    /// As [`Paths::out_of_reach`].
    pub(super) fn signed_out_of_reach(&self) -> Result<Option<Range<u64>>> {
        Ok(self.sealed_head()?.and_then(|sealed| self.behind_what_is_signed(sealed)))
    }

    /// The frames of the tree `sealed` behind the newest checkpoint, where no path has what it takes to go on from them.
    fn behind_what_is_signed(&self, sealed: TreeHead) -> Option<Range<u64>> {
        for _ in 0..LOOKS {
            let signed = self.published_frames().unwrap_or(0);
            let writing = self.state().writing;
            // The tree alone is enough to go on from, and not to answer from.
            let lacks_frames = || !writing && signed < sealed.size && !has_frames(self, signed, sealed.size);
            let covered =
                covered_elsewhere(self, sealed, signed).or_else(|| lacks_frames().then_some(sealed.size));
            let covered = covered?;
            if writing {
                return Some(signed..covered);
            }
            // A writer may have signed more meanwhile, and let go of the tree before.
            self.look();
            if self.published_frames().unwrap_or(0) == signed {
                return Some(signed..covered);
            }
        }
        None
    }

    /// The tree that the seal state was written for; `None` where there is none to go by.
    ///
    /// # Errors
    /// As [`Paths::out_of_reach`].
    fn sealed_head(&self) -> Result<Option<TreeHead>> {
        let Some(keys) = &self.keys else { return Ok(None) };
        match self.sealed(&**keys) {
            Ok(sealed) => Ok(Some(sealed.head())),
            Err(error) if error.kind() == ErrorKind::Refused && self.is_alone() => Err(error),
            Err(error) if is_damage(&error) || self.may_lack_frames() => Err(self.untold(&error)),
            Err(_) => Ok(None),
        }
    }

    /// The seal state of the log.
    fn sealed(&self, keys: &dyn Store) -> Result<SealState> {
        let sealed = SealState::load(keys)?;
        match sealed.log == self.log {
            true => Ok(sealed),
            // What is put together of several paths is of the log that the key directory names them for.
            false if self.is_alone() => Err(Error::new(
                ErrorKind::Refused,
                format!(
                    "{} is another log's than {}: bring the key directory of this log, or the log that this one is of; run `bulla verify`",
                    keys.describe(files::SEAL_STATE),
                    self.first.describe("")
                ),
            )),
            false => Err(files::damaged(keys, files::SEAL_STATE, "it is another log's")),
        }
    }

    /// Whether there is, or was, a path that may hold what no other has, and that is not there.
    fn may_lack_frames(&self) -> bool {
        self.unread_settings.is_some()
            || self.has_lost_one()
            || self.missing().iter().any(|missing| !missing.left)
    }

    /// That nobody can tell how far the log had come.
    fn untold(&self, error: &Error) -> Error {
        let which = not_there(self);
        let which = if which.is_empty() { String::new() } else { format!("{which}. ") };
        Error::unavailable(format!(
            "{error}. {which}Without the seal state nobody can tell whether what is there is all of the log, so nothing is told of it \
             as if it were: bring that file, as this host wrote it last, and let this user read it; where there is none any more, \
             docs/operating.md, \"The path in use is lost\", says what there is to do. `bulla verify` tells what the paths that are \
             there have, and `bulla export --salvage` gives it out"
        ))
    }

    /// As [`Paths::another_history`].
    pub(super) fn tell_another_history(&self) -> Option<String> {
        self.contradicts(self.sealed(&**self.keys.as_ref()?).ok()?.head())
    }

    /// That the path in use holds another history than that of the tree `sealed`, in words.
    fn contradicts(&self, sealed: TreeHead) -> Option<String> {
        let (head, place) = {
            let state = self.state();
            let current = &state.paths[state.current];
            (current.head?, current.store.describe(""))
        };
        let state = self.keys.as_ref()?.describe(files::SEAL_STATE);
        (histories::compare(self, sealed, head) == Histories::Two)
            .then(|| histories::another_history(&place, &state, sealed.size.min(head.size)))
    }

    /// That the tiles tell whether the log, where it has more frames than the tree `sealed`, is of the history of that. Beside a writer they may have
    /// been replaced meanwhile.
    ///
    /// # Errors
    /// `Unavailable` where they do not.
    fn require_comparable(&self, sealed: TreeHead) -> Result<()> {
        let is_told = |_: &Self| {
            let state = self.state();
            let head = state.paths[state.current].head;
            drop(state);
            let compared = |head| histories::compare(self, sealed, head) != Histories::Untold;
            Ok(head.is_none_or(|head| head.size <= sealed.size || compared(head)))
        };
        if self.waits_until(is_told)? {
            return Ok(());
        }
        Err(Error::unavailable(format!(
            "the tiles in {} do not tell whether this is the log that the seal state goes with, or another history of it: nothing is told of it; run \
             `bulla verify`; `bulla export --salvage` gives out what is there",
            self.in_use().describe("tile")
        )))
    }

    /// That no frames are [out of reach](Paths::out_of_reach), and that this is [no other history](Paths::another_history). Gives the checkpoint of
    /// which that is so.
    ///
    /// # Errors
    /// `Unavailable`, naming the frames and the paths that are lost, or what keeps that from being told; or the path with another history.
    pub(super) fn require_in_reach(&self) -> Result<Option<Vec<u8>>> {
        let Some(sealed) = self.sealed_head()? else { return Ok(None) };
        if self.is_alone() {
            self.require_own(sealed.size)?;
        }
        let published = || self.state().published.clone();
        for _ in 0..LOOKS {
            let before = published();
            self.require_goes_with(sealed)?;
            // None of it is known of one that was found meanwhile.
            if published() == before {
                return Ok(before);
            }
        }
        Err(Error::unavailable(format!(
            "{} is replaced again and again while it is looked at: try again, and run `bulla verify` where that goes on",
            self.in_use().describe(log_files::CHECKPOINT)
        )))
    }

    /// That a log in one directory is the one that the key directory is of, and has a checkpoint where that says so.
    ///
    /// # Errors
    /// `Tampered` where it is another, or has none: verification says what is wrong with it.
    fn require_own(&self, sealed: u64) -> Result<()> {
        let place = self.first.describe("");
        let checkpoint = self.first.describe(log_files::CHECKPOINT);
        match (&self.own_keys, self.published_frames()) {
            (None, _) => Err(Error::tampered(format!(
                "{place} has no configuration that can be read; run `bulla verify`"
            ))),
            (_, None) if sealed > 0 => Err(Error::tampered(format!(
                "{checkpoint} is missing, or is not signed by the log's key; run `bulla verify`"
            ))),
            _ => Ok(()),
        }
    }

    /// The same of the checkpoint that was found last, or of a newer one.
    fn require_goes_with(&self, sealed: TreeHead) -> Result<()> {
        if let Some(why) = self.contradicts(sealed) {
            return Err(Error::unavailable(format!(
                "{why}. Nothing is told of it as if it were the log: bring the directory that the key directory goes with, and keep this one \
                 aside; docs/operating.md, \"Two histories\", says more; `bulla export --salvage` gives out what is there"
            )));
        }
        self.require_comparable(sealed)?;
        let Some(Range { start: signed, end: covered }) = self.behind_what_is_signed(sealed) else {
            return self.require_published(sealed.size);
        };
        let which = match not_there(self) {
            which if !which.is_empty() => which,
            _ if self.state().paths.len() > 1 => {
                "a path of the log is an older copy of what lay there".to_owned()
            }
            _ => format!(
                "{} is an older copy of the log, or another path of it is missing that nothing in the key directory names",
                self.first.describe("")
            ),
        };
        Err(Error::unavailable(format!(
            "the newest checkpoint on the paths of the log that are there covers {}, and the log's seal state {covered}: {which}. Nothing is \
             told of a part as if it were the log: find the path, and name it again; `bulla verify` tells what the others have, and \
             `bulla export --salvage` gives it out; docs/operating.md, \"The path in use is lost\", says what else there is to do",
            counted(signed, "frame")
        )))
    }

    /// Says which paths are missing that the log goes on without.
    pub(super) fn tell_left_ones_that_are_missing(&self) {
        let missing = {
            let state = self.state();
            let of = |(index, path): (usize, &OnePath)| {
                let what = match path.absent.as_ref().filter(|_| state.is_left(path))? {
                    NoPath::Other(why) => format!("is missing: {why}"),
                    NoPath::Unclear(why) => format!("cannot be looked at: {why}"),
                };
                let place = path.store.describe("");
                Some((index, format!("{place}, a path of the log that was left, {what}")))
            };
            state.paths.iter().enumerate().filter_map(of).collect::<Vec<_>>()
        };
        missing.into_iter().for_each(|(index, what)| self.tell(index, what));
        let Some(tell) = &self.tell else { return };
        // One that is not left is refused.
        let unnamed = self.state().unnamed.clone();
        for KnownPath { place, .. } in unnamed {
            tell(&format!("{place}, a path of the log that was left, is missing: {}", self.why_unnamed()));
        }
    }
}

/// How many frames the seal state in `keys` speaks of, where no path that is there has the tree of those: the newest checkpoint that one has
/// covers `signed` frames, which are fewer.
pub(crate) fn signed_elsewhere(log: &dyn Store, keys: &dyn Store, signed: u64) -> Option<u64> {
    covered_elsewhere(log, SealState::load(keys).ok()?.head(), signed)
}

/// Whether an error of the seal state says that it is there and is none, which is no lack of a permission.
pub(super) fn is_damage(error: &Error) -> bool {
    error.kind() == ErrorKind::Unavailable && error.io_error().is_none()
}

fn covered_elsewhere(log: &dyn Store, of: TreeHead, signed: u64) -> Option<u64> {
    if of.size <= signed {
        return None;
    }
    let width = u64::from(FULL_WIDTH);
    let (index, rest) = (of.size / width, of.size % width);
    let has_list = || match u16::try_from(rest) {
        Ok(rest) if rest > 0 => matches!(stored_tree::read_bundle(log, index, rest), Ok(Some(_))),
        _ => true,
    };
    // A path that was given the tree before it was signed is gone on from.
    let has_tree = matches!(stored_tree::root_at(log, of, of.size), Ok(Some(_))) && has_list();
    (!has_tree).then_some(of.size)
}

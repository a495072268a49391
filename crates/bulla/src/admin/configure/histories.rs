//! Directories that hold another history of the log than the one that is gone on with: a part that was given up, which is found after all. They are
//! neither named as paths nor copied into one.

use crate::format::config::LogConfig;
use crate::format::path::{self, PathId};
use crate::format::segment;
use crate::keys::files;
use crate::keys::paths::{Fate, KnownPath};
use crate::keys::seal_state::SealState;
use crate::scan::checkpoint::read_note;
use crate::scan::paths::{Histories, another_history, compare, head_of, open_path};
use bulla_crypto::environment::Environment;
use bulla_proof::tree::TreeHead;
use bulla_store::{Error, ErrorKind, Result, Store};
use bulla_text::spelling::counted;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The history of the log that is gone on with, as far as anything tells which it is.
pub(super) struct History<'a> {
    config: &'a LogConfig,
    /// The tree that the seal state was written for.
    sealed: Option<TreeHead>,
    /// What that file is called.
    state: String,
    /// Directories that may have the tiles by which trees are compared.
    stores: Vec<Arc<dyn Store>>,
    /// The checkpoints of the paths that the key directory knows, and does not note as lost.
    known: Vec<TreeHead>,
    ids: Vec<PathId>,
}

impl<'a> History<'a> {
    /// That of a log in its own directory, and on the paths that are named before a change, or after it.
    pub(super) fn of(
        (log, keys): (&Arc<dyn Store>, &dyn Store),
        named: &[&[PathBuf]],
        remembered: &[KnownPath],
        (config, environment): (&'a LogConfig, &Environment),
    ) -> Self {
        let id = config.id;
        let is_lost = |id: PathId| remembered.iter().any(|known| known.id == id && known.fate == Fate::Lost);
        let is_known = |id: PathId| remembered.iter().any(|known| known.id == id);
        let sealed = SealState::load(keys).ok().filter(|sealed| sealed.log == id);
        let own = path::read(&**log, id).ok().flatten().unwrap_or(PathId::first_of(id));
        let (mut stores, mut known, mut ids) = (vec![log.clone()], Vec::new(), Vec::new());
        // Until it has been written to, the log's own directory is not noted.
        if !is_lost(own) {
            known.extend(head_of(&**log, &config.own_keys()));
            ids.push(own);
        }
        for place in named.iter().copied().flatten() {
            let store = open_path(place, environment);
            if let Some(of) =
                path::read(&*store, id).ok().flatten().filter(|of| is_known(*of) && !is_lost(*of))
            {
                known.extend(head_of(&*store, &config.own_keys()));
                ids.push(of);
            }
            stores.push(store);
        }
        // One that was made anew from the seal key was written for nothing.
        let sealed = sealed.map(|sealed| sealed.head()).filter(|sealed| sealed.size > 0);
        History { config, sealed, state: keys.describe(files::SEAL_STATE), stores, known, ids }
    }

    /// What is said of the directory in `place` where it holds another history; nothing where it does not. Where the seal state does not tell, one that
    /// the key directory does not know, or has as lost, is compared with those that it knows: where that cannot be told of one of them, it may be
    /// another history. So may one without a checkpoint that the log's key has signed, where it has anything that counts.
    pub(super) fn contradicts(&self, store: &dyn Store, id: Option<PathId>, place: &str) -> Option<String> {
        let is_known = id.is_some_and(|id| self.ids.contains(&id));
        let Some(head) = head_of(store, &self.config.own_keys()) else {
            return (id.is_some() && !is_known && may_count(store)).then(|| {
                format!(
                    "nothing that is there tells whether {place} holds another history of the log: it has no checkpoint that the log's key has signed"
                )
            });
        };
        let compared = |with: TreeHead| {
            let all = std::iter::once(store).chain(self.stores.iter().map(|store| &**store));
            all.map(|store| compare(store, with, head)).find(|found| *found != Histories::Untold)
        };
        if let Some((sealed, found)) = self.sealed.and_then(|sealed| Some((sealed, compared(sealed)?))) {
            let frames = sealed.size.min(head.size);
            return (found == Histories::Two).then(|| another_history(place, &self.state, frames));
        }
        if is_known {
            return None;
        }
        let found = self.known.iter().map(|known| compared(*known)).collect::<Vec<_>>();
        if found.contains(&Some(Histories::Two)) {
            return Some(format!("{place} holds another history of the log than its other paths"));
        }
        let is_untold = if found.is_empty() { self.sealed.is_some() } else { found.contains(&None) };
        is_untold.then(|| {
            format!(
                "nothing that is there tells whether {place} holds another history of the log: its checkpoint covers {}, and files of the tree \
                 (`tile`) are missing or damaged by which that is compared with what the log has",
                counted(head.size, "frame")
            )
        })
    }

    /// Refuses a directory of another history as the log's own, or as a backup path.
    ///
    /// # Errors
    /// `Refused` where it holds one, or may.
    pub(super) fn refuse(&self, store: &dyn Store, id: Option<PathId>, place: &Path) -> Result<()> {
        let Some(why) = self.contradicts(store, id, &place.display().to_string()) else { return Ok(()) };
        Err(Error::new(
            ErrorKind::Refused,
            format!(
                "{why}. One that was given up is no path of the log as it is gone on with: keep that directory aside (`mv`), and do not name it; \
                 docs/operating.md, \"Two histories\", says more. Nothing was changed"
            ),
        ))
    }

    /// Why a directory that holds segments is not let go of as long as it is there.
    pub(super) fn refuse_to_let_go(&self, store: &dyn Store, id: PathId, place: &Path) -> Error {
        if let Some(why) = self.contradicts(store, Some(id), &place.display().to_string()) {
            return Error::new(
                ErrorKind::Refused,
                format!(
                    "{why}. Copy nothing of it into another path: keep that directory aside (`mv`), and leave it out then; docs/operating.md, \"Two \
                     histories\", says more. Nothing was changed"
                ),
            );
        }
        Error::new(
            ErrorKind::Refused,
            format!(
                "{}, a backup path, holds segments of the log, which are not looked for on other paths: copy all that is in it but the file `path` into a \
                 path that stays, unless that is done; then take the directory away (`mv`), and leave it out; or keep it. Nothing was changed",
                place.display()
            ),
        )
    }
}

/// Whether a directory without a checkpoint of the log has segments, or another checkpoint, or one that cannot be read.
fn may_count(store: &dyn Store) -> bool {
    let has_segments = || segment::list(store).map_or(true, |(segments, _)| !segments.is_empty());
    !matches!(read_note(store), Ok(None)) || has_segments()
}

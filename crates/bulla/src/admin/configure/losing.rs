//! What may not be let go of, and what may not count as lost.
//!
//! Invariant: nothing counts as lost that is there, nor because of what a directory says of itself: whoever has the storage of one path
//! could have the key directory note a loss by it, and then take from the others.

use super::histories::History;
use crate::format::config;
use crate::format::files;
use crate::format::path::{self, NoPath, PathId};
use crate::format::segment;
use crate::keys::paths::{Fate, KnownPath};
use crate::scan::paths::{Place, is_same_place, open_path, unlisted};
use bulla_crypto::environment::Environment;
use bulla_proof::commitment::LogId;
use bulla_store::{Error, ErrorKind, Result, Store};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A directory that is to be a backup path.
pub(super) struct Named<'a> {
    pub(super) path: &'a Path,
    pub(super) store: Arc<dyn Store>,
    /// Where it is a path already.
    pub(super) id: Option<PathId>,
}

/// The paths of `before` that are there, and are not to be paths any more.
///
/// # Errors
/// `Refused` where one holds segments: of the log, or of another history of it.
pub(super) fn let_go<'a>(
    (before, after): (&'a [PathBuf], &[PathBuf]),
    (log, history): (&dyn Store, &History<'_>),
    of: LogId,
    environment: &Environment,
) -> Result<Vec<(PathId, &'a Path)>> {
    let mut let_go = Vec::new();
    for path in before.iter().filter(|path| !after.contains(path)) {
        let store = open_path(path, environment);
        // The log's own directory by now: it is not let go of.
        if is_same_place(&*store, log) {
            continue;
        }
        // One that is not there any more cannot be looked at.
        let Ok(Some(id)) = path::read(&*store, of) else { continue };
        let_go.push((id, path.as_path()));
        if !segment::list(&*store)?.0.is_empty() || !segment::list_aside(&*store)?.is_empty() {
            return Err(history.refuse_to_let_go(&*store, id, path));
        }
    }
    Ok(let_go)
}

/// Refuses to have a path that the key directory knows count as lost, or to make another one in its place, as long as its place is named:
/// whoever sets what is set already, at each start of a machine, says nothing of a disk that is not mounted yet. One that counts as lost, and
/// is in `before` all the same, is one that was being left out when that was cut short.
pub(super) fn refuse_in_place_of(
    remembered: &[KnownPath],
    own: PathId,
    (before, named): (&[PathBuf], &[Named<'_>]),
) -> Result<()> {
    let is_there = |id: PathId| id == own || named.iter().any(|named| named.id == Some(id));
    for known in remembered.iter().filter(|known| !is_there(known.id)) {
        let lies_at = |named: &&Named<'_>| {
            let is_meant = known.fate != Fate::Lost
                || named.id.is_none() && before.iter().any(|path| path == named.path);
            is_meant && (Path::new(&known.place) == named.path || Place::of(&*named.store).is(&known.place))
        };
        if let Some(Named { path, .. }) = named.iter().find(lies_at) {
            return Err(refused(
                path,
                &format!(
                    "is where the path {} of the log lies, which is not there: mount its disk. Where it is lost for good, leave it out \
                     of `backup_paths` first, which says so; named again after that, it is a new path. Nothing was changed",
                    known.id
                ),
            ));
        }
    }
    Ok(())
}

/// Refuses a directory with the log in it that is no backup path: its own one, which was lost and is found, most often.
pub(super) fn refuse_own_directory(
    (path, store): (&Path, &dyn Store),
    id: Option<PathId>,
    (log, keys): (&dyn Store, &dyn Store),
    of: LogId,
) -> Result<()> {
    let has_log = || config::load_of_log(store).is_ok_and(|(found, _)| found.id == of);
    if id.is_some() || !has_log() {
        return Ok(());
    }
    let (own, keys) = (log.describe(""), keys.describe(""));
    let shown = path.display();
    Err(refused(
        path,
        &format!(
            "has this log in it and no file `{}`, so it is the log's own directory, or a copy of the log. Where it is the directory that \
             was lost and is found, name it as DIR again, and {own} as a backup path: `bulla config {shown} --keys {keys} set \
             backup_paths PATHS`, with {own} and the others that are left",
            files::PATH
        ),
    ))
}

/// Refuses a log's own directory that says that it is another path: one that is named as well, or one of which the key directory knows nothing.
pub(super) fn refuse_own_id(
    (log, own): (&dyn Store, PathId),
    named: &[Named<'_>],
    remembered: &[KnownPath],
    of: LogId,
) -> Result<()> {
    let shown = log.describe("");
    if own != PathId::first_of(of) && remembered.iter().all(|known| known.id != own) {
        return Err(Error::new(
            ErrorKind::Refused,
            format!("{shown} {}. Nothing was changed", unlisted(own)),
        ));
    }
    named.iter().find(|named| named.id == Some(own)).map_or(Ok(()), |named| {
        Err(refused(
            named.path,
            &format!("and {shown} both say that they are the path {own}: one of them is a copy, or is not what it says. Nothing was changed"),
        ))
    })
}

/// Refuses to have a path count as lost that is there, in the place in which the key directory remembers it, or in whose place the log's own
/// directory is, by another id. One that was never used is not lost with anything.
pub(super) fn refuse_to_lose(
    known: &KnownPath,
    log: &dyn Store,
    of: LogId,
    environment: &Environment,
) -> Result<()> {
    if matches!(known.fate, Fate::Lost | Fate::Spare) {
        return Ok(());
    }
    let place = Path::new(&known.place);
    let store = open_path(place, environment);
    // A link that was put in the place of a path hides it.
    if is_same_place(&*store, log) && Place::of(log).is(&known.place) {
        return Err(Error::new(
            ErrorKind::Refused,
            format!(
                "{} says that it is another path than {}, which the key directory has there: where it is what it was, take its file `{}` \
                 away, or write that id into it again. Nothing was changed",
                known.place,
                known.id,
                files::PATH
            ),
        ));
    }
    let is_there = match id_at(&*store, place, of) {
        Ok(Some(id)) => id == known.id,
        Ok(None) => {
            known.id == PathId::first_of(of)
                && config::load_of_log(&*store).is_ok_and(|(found, _)| found.id == of)
        }
        // It is another log's.
        Err(error) if error.kind() == ErrorKind::Refused => false,
        Err(error) => return Err(error),
    };
    match (is_there, known.id == PathId::first_of(of)) {
        (false, _) => Ok(()),
        (true, true) => Err(Error::new(
            ErrorKind::Refused,
            format!(
                "{}, the log's own directory, is there: name it as DIR. Only where it is not there can it count as lost. Nothing was changed",
                known.place
            ),
        )),
        (true, false) => Err(refused(
            place,
            "is there: name it. Only where it is not there can it count as lost. Nothing was changed",
        )),
    }
}

/// The id of the path in a directory; `None` where it is none, or not there.
///
/// # Errors
/// `Refused` where it is a path of another log; `Unavailable` where nobody can tell.
pub(super) fn id_at(store: &dyn Store, path: &Path, log: LogId) -> Result<Option<PathId>> {
    path::read(store, log).map_err(|why| match why {
        NoPath::Other(why) => refused(path, &format!("cannot be a path of this log: {why}")),
        NoPath::Unclear(why) => {
            Error::unavailable(format!("{}, a backup path, cannot be looked at: {why}", path.display()))
        }
    })
}

pub(super) fn refused(path: &Path, why: &str) -> Error {
    Error::new(ErrorKind::Refused, format!("{}, a backup path, {why}", path.display()))
}

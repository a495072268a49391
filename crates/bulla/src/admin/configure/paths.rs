//! Making backup paths, and letting go of them.

use crate::format::config::LogConfig;
use crate::format::files;
use crate::format::path::{self, PathId};
use crate::format::segment;
use crate::keys::paths::{self as known, KnownPath};
use crate::scan::paths::open_path;
use bulla_crypto::environment::Environment;
use bulla_proof::commitment::LogId;
use bulla_store::{Error, ErrorKind, Result, Store};
use std::path::{Path, PathBuf};

/// What a file system has in its uppermost directory from the beginning.
const LOST_AND_FOUND: &str = "lost+found";

/// Makes the paths of `after` that are none yet, and has the key directory know them; those of `before` that are not among them it
/// lets go of.
///
/// # Errors
/// `Refused` where a directory is not empty, or is a path of another log; where two are
/// the same; and where one holds frames that is not to be a path any more. `Unavailable` where a file cannot be written.
pub(super) fn make(
    (before, after): (&[PathBuf], &[PathBuf]),
    keys: &dyn Store,
    config: &LogConfig,
    environment: &Environment,
) -> Result<()> {
    for path in before.iter().filter(|path| !after.contains(path)) {
        let store = open_path(path, environment);
        // One that is not there any more cannot be looked at.
        let is_path = path::read(&*store, config.id).is_ok_and(|id| id.is_some());
        if is_path && !segment::list(&*store)?.0.is_empty() {
            return Err(refused(
                path,
                "holds frames of the log, of which no other path has a copy: copy all that is in it into a directory that stays, \
                 or keep it",
            ));
        }
    }
    let mut made = Vec::<(PathId, &PathBuf)>::new();
    for path in after {
        let store = open_path(path, environment);
        let id = make_path(&*store, path, config.id, environment)?;
        if made.iter().any(|(other, _)| *other == id) {
            return Err(refused(path, "is named twice"));
        }
        made.push((id, path));
    }
    let remembered = known::load(keys)?;
    let first = remembered.iter().find(|known| known.id == PathId::first_of(config.id));
    let of = |(id, path): (PathId, &PathBuf)| {
        let left = remembered.iter().any(|known| known.id == id && known.left);
        KnownPath { id, left, place: path.display().to_string() }
    };
    let all = first.cloned().into_iter().chain(made.into_iter().map(of)).collect::<Vec<_>>();
    if all == remembered { Ok(()) } else { known::save(keys, &all) }
}

/// Makes a path of a directory that is empty, or not there, and gives its id; that of one which is made already.
fn make_path(store: &dyn Store, path: &Path, log: LogId, environment: &Environment) -> Result<PathId> {
    bulla_store::require_own(store)?;
    let failed = |what: &str| {
        let name = store.describe(what);
        move |error| Error::io(format!("writing {name}"), error)
    };
    store.create_directory("").map_err(failed(""))?;
    match path::read(store, log) {
        Ok(Some(id)) => return Ok(id),
        Ok(None) => {}
        Err(why) => return Err(refused(path, &format!("cannot be a path of this log: {why}"))),
    }
    let items =
        store.list("").map_err(|error| Error::io(format!("listing {}", store.describe("")), error))?;
    let is_ours = |name: &str| {
        // What was begun before, and not finished.
        name == LOST_AND_FOUND || files::DIRECTORIES.contains(&name) || name == format!("{}.tmp", files::PATH)
    };
    if let Some(other) = items.iter().find(|item| !is_ours(&item.name)) {
        return Err(refused(
            path,
            &format!("is not empty, it has `{}`: name a directory of the log's own", other.name),
        ));
    }
    let mut id = [0; 16];
    environment.random.fill(&mut id)?;
    let id = PathId(LogId(id));
    for directory in files::DIRECTORIES {
        store.create_directory(directory).map_err(failed(directory))?;
    }
    let written = bulla_store::write_new(store, files::PATH, path::text(log, id).as_bytes());
    written.map_err(failed(files::PATH))?;
    Ok(id)
}

fn refused(path: &Path, why: &str) -> Error {
    Error::new(ErrorKind::Refused, format!("{}, a backup path, {why}", path.display()))
}

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
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
    (log, keys): (&dyn Store, &dyn Store),
    config: &LogConfig,
    environment: &Environment,
) -> Result<()> {
    for path in before.iter().filter(|path| !after.contains(path)) {
        let store = open_path(path, environment);
        // The log's own directory by now: it is not let go of.
        let directories = store.directory().zip(log.directory());
        if directories.is_some_and(|(path, log)| path.is_same_directory(log).unwrap_or(false)) {
            continue;
        }
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
    let mut stores = Vec::<(Arc<dyn Store>, String)>::new();
    for path in after {
        let store = open_path(path, environment);
        let id = make_path(&*store, path, config.id, environment)?;
        if made.iter().any(|(other, _)| *other == id) {
            return Err(refused(path, "is named twice"));
        }
        made.push((id, path));
        stores.push((store, format!("{}, another backup path", path.display())));
    }
    tell_shared_disks(log, &stores, environment);
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
    require_parent(store, path, environment)?;
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

/// Says which paths are on one file system with the log's directory or with a path before them: they would fail together.
fn tell_shared_disks(log: &dyn Store, paths: &[(Arc<dyn Store>, String)], environment: &Environment) {
    let Some(tell) = &environment.path_replaced else { return };
    let is_shared = |one: &dyn Store, other: &dyn Store| {
        let directories = one.directory().zip(other.directory());
        directories.is_some_and(|(one, other)| one.is_on_same_file_system(other).unwrap_or(false))
    };
    for (index, (store, _)) in paths.iter().enumerate() {
        let before = paths[..index].iter().find(|(other, _)| is_shared(&**store, &**other));
        let other = match is_shared(&**store, log) {
            true => "the log's directory",
            false => match before {
                Some((_, name)) => name,
                None => continue,
            },
        };
        tell(&format!(
            "{} is on one file system with {other}, and they fail together: is its disk mounted?",
            store.describe("")
        ));
    }
}

/// Refuses a directory whose parent is not there: on a disk that is not mounted, it would come to lie on another one.
fn require_parent(store: &dyn Store, path: &Path, environment: &Environment) -> Result<()> {
    let parent = path.parent().filter(|_| store.directory().is_some());
    let missing = parent.filter(|parent| {
        let listed = open_path(parent, environment).list("");
        listed.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    });
    missing.map_or(Ok(()), |parent| {
        Err(refused(
            path,
            &format!(
                "is not made with what is above it: there is no directory {}: is its disk mounted?",
                parent.display()
            ),
        ))
    })
}

fn refused(path: &Path, why: &str) -> Error {
    Error::new(ErrorKind::Refused, format!("{}, a backup path, {why}", path.display()))
}

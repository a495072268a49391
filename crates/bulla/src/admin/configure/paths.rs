//! Making backup paths, and letting go of them.

use crate::format::config::LogConfig;
use crate::format::files;
use crate::format::path::{self, NoPath, PathId};
use crate::format::segment;
use crate::keys::paths::{self as known, Fate, KnownPath};
use crate::scan::checkpoint::read_note;
use crate::scan::paths::{is_same_place, join_paths, open_path, signed_elsewhere};
use bulla_crypto::environment::Environment;
use bulla_proof::commitment::LogId;
use bulla_store::{Error, ErrorKind, Result, Store};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a file system has in its uppermost directory from the beginning.
const LOST_AND_FOUND: &str = "lost+found";

/// Makes the paths of `after` that are none yet, and has the key directory know them; those of `before` that are not among them it
/// lets go of. One that it knows and that is not there any more is lost: what lay there alone is missing in the log, and who opens it has to
/// know why. `log` is the log's own directory.
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
    let mut let_go = Vec::new();
    for path in before.iter().filter(|path| !after.contains(path)) {
        let store = open_path(path, environment);
        // The log's own directory by now: it is not let go of.
        if is_same_place(&*store, log) {
            continue;
        }
        // One that is not there any more cannot be looked at.
        let Ok(Some(id)) = path::read(&*store, config.id) else { continue };
        let_go.push(id);
        if !segment::list(&*store)?.0.is_empty() {
            return Err(refused(
                path,
                "holds frames of the log, of which no other path has a copy: copy all that is in it into a directory that stays, \
                 or keep it",
            ));
        }
    }
    let mut made = Vec::<Made<'_>>::new();
    let mut stores = Vec::<(Arc<dyn Store>, String)>::new();
    for path in after {
        let store = open_path(path, environment);
        let (id, is_new) = make_path(&*store, path, config.id, environment)?;
        if made.iter().any(|other| other.id == id) {
            return Err(refused(path, "is named twice"));
        }
        made.push(Made { id, path, is_new });
        stores.push((store, format!("{}, another backup path", path.display())));
    }
    tell_shared_disks(log, &stores, environment);
    let own = path::read(log, config.id)
        .map_err(|why| Error::unavailable(format!("{}: {why}", log.describe(""))))?;
    let own = own.unwrap_or(PathId::first_of(config.id));
    let remembered = known::load(keys)?;
    let all = known_from_now_on(&remembered, own, &made, &let_go);
    if all == remembered { Ok(()) } else { known::save(keys, &all) }
}

/// Says where the paths that are named now have less of the log than was signed: no writer goes on with that.
pub(super) fn tell_what_is_elsewhere(
    (log, keys): (Arc<dyn Store>, &Arc<dyn Store>),
    config: &LogConfig,
    environment: &Environment,
) {
    // Whatever cannot be read is told by whoever opens the log.
    let Some(tell) = &environment.path_replaced else { return };
    let Ok(log) = join_paths(log, Some(keys), &[], environment) else { return };
    let Ok(note) = read_note(&*log) else { return };
    let signed = match note.map(|note| config.own_keys().open(&note)) {
        Some(Ok(checkpoint)) => checkpoint.size,
        Some(Err(_)) => return,
        None => 0,
    };
    if let Some(covered) = signed_elsewhere(&*log, &**keys, signed) {
        tell(&format!(
            "the newest checkpoint on the paths that are named now covers {signed} frames, and the log's seal state {covered}: no writer \
             goes on with that, unless one of them has the frames between; bring the path that has the rest, or see docs/operating.md, \
             \"The path in use is lost\""
        ));
    }
}

/// A backup path that is named.
struct Made<'a> {
    id: PathId,
    path: &'a PathBuf,
    /// Whether it was none before.
    is_new: bool,
}

/// What the key directory is to remember of a log whose own directory is the path `own`, and whose others are `made`.
fn known_from_now_on(
    remembered: &[KnownPath],
    own: PathId,
    made: &[Made<'_>],
    let_go: &[PathId],
) -> Vec<KnownPath> {
    let of = |&Made { id, path, is_new }: &Made<'_>| {
        let before = remembered.iter().find(|known| known.id == id).map(|known| known.fate);
        let fate = match before {
            Some(fate @ (Fate::Left | Fate::Spare)) => fate,
            None if is_new => Fate::Spare,
            // What nothing is known of, and what was found again, may have been used.
            None | Some(Fate::Kept | Fate::Lost) => Fate::Kept,
        };
        KnownPath { id, fate, place: path.display().to_string() }
    };
    let is_gone = |known: &&KnownPath| {
        let is_named = known.id == own || made.iter().any(|made| made.id == known.id);
        !is_named && known.fate != Fate::Spare && !let_go.contains(&known.id)
    };
    let mut lost = remembered.iter().filter(is_gone).collect::<Vec<_>>();
    // Those that were lost before come first, and are forgotten first.
    lost.sort_by_key(|known| known.fate != Fate::Lost);
    let lost = lost.split_off(lost.len().saturating_sub(known::MOST_LOST)).into_iter();
    let lost = lost.map(|known| KnownPath { fate: Fate::Lost, ..known.clone() });
    let own = remembered.iter().filter(|known| known.id == own).cloned();
    let place = |id: PathId| remembered.iter().position(|known| known.id == id).unwrap_or(usize::MAX);
    let mut all = own.chain(made.iter().map(of)).collect::<Vec<_>>();
    // The path in use stays the first of those that are kept.
    all.sort_by_key(|known| place(known.id));
    all.extend(lost);
    all
}

/// Makes a path of a directory that is empty, or not there, and gives its id; that of one which is made already. Also, whether it was made
/// now.
fn make_path(
    store: &dyn Store,
    path: &Path,
    log: LogId,
    environment: &Environment,
) -> Result<(PathId, bool)> {
    bulla_store::require_own(store)?;
    let failed = |what: &str| {
        let name = store.describe(what);
        move |error| Error::io(format!("writing {name}"), error)
    };
    require_parent(store, path, environment)?;
    store.create_directory("").map_err(failed(""))?;
    match path::read(store, log) {
        Ok(Some(id)) => return Ok((id, false)),
        Ok(None) => {}
        Err(NoPath::Other(why)) => {
            return Err(refused(path, &format!("cannot be a path of this log: {why}")));
        }
        Err(NoPath::Unclear(why)) => {
            let path = path.display();
            return Err(Error::unavailable(format!("{path}, a backup path, cannot be looked at: {why}")));
        }
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
    Ok((id, true))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_stays_known_and_never_grows_without_end() {
        let id = |id: u8| PathId(LogId([id; 16]));
        let known = |of: u8, fate| KnownPath { id: id(of), fate, place: format!("/{of}") };
        let (own, place) = (known(0, Fate::Kept), PathBuf::from("/disk"));
        // One that was there before.
        let made = |of: u8| Made { id: id(of), path: &place, is_new: false };
        let mut remembered = vec![own.clone()];
        for disk in 1..=20 {
            remembered = known_from_now_on(&remembered, own.id, &[made(disk)], &[]);
            let lost = (1..disk).rev().take(known::MOST_LOST).collect::<Vec<_>>().into_iter().rev();
            let mut expected =
                vec![own.clone(), KnownPath { place: "/disk".to_owned(), ..known(disk, Fate::Kept) }];
            expected
                .extend(lost.map(|disk| KnownPath { place: "/disk".to_owned(), ..known(disk, Fate::Lost) }));
            assert_eq!(remembered, expected);
        }
        // One that was looked at before it was left out is not lost, and one that is found is none any more.
        let left = known_from_now_on(&remembered, own.id, &[made(19)], &[id(20)]);
        assert!(left.iter().all(|known| known.id != id(20)));
        assert_eq!(
            left.iter().filter(|known| known.id == id(19)).map(|known| known.fate).collect::<Vec<_>>(),
            [Fate::Kept]
        );
        // Under the name of another path the first one is lost.
        let moved = known_from_now_on(&remembered, id(20), &[], &[]);
        assert!(moved.contains(&known(0, Fate::Lost)) && moved[0].id == id(20), "{moved:?}");
    }

    /// With it no frame can have gone, so that a hole in the log has another reason.
    #[test]
    fn a_path_that_was_never_used_is_not_lost_with_anything() {
        let id = |id: u8| PathId(LogId([id; 16]));
        let places = [PathBuf::from("/used"), PathBuf::from("/spare")];
        let made = |of: u8| Made { id: id(of), path: &places[usize::from(of) - 1], is_new: true };
        let mut remembered = known_from_now_on(&[], id(0), &[made(1), made(2)], &[]);
        assert!(remembered.iter().all(|known| known.fate == Fate::Spare), "{remembered:?}");
        // Named once more each is what it was.
        let named = |of: u8| Made { is_new: false, ..made(of) };
        assert_eq!(known_from_now_on(&remembered, id(0), &[named(1), named(2)], &[]), remembered);
        remembered[0].fate = Fate::Kept;
        let left = known_from_now_on(&remembered, id(0), &[], &[]);
        let lost = KnownPath { fate: Fate::Lost, ..remembered[0].clone() };
        assert_eq!(left, [lost]);
        // One that is there and of which nothing is known may have been used.
        assert_eq!(known_from_now_on(&left, id(0), &[named(2)], &[])[0].fate, Fate::Kept);
    }
}

//! Making backup paths, and letting go of them.

use super::histories::History;
use super::losing::{self, Named, id_at, refused};
use super::{but_noted, found};
use crate::erase::holds::Holds;
use crate::format::config::LogConfig;
use crate::format::files;
use crate::format::path::{self, PathId};
use crate::format::segment;
use crate::keys::paths::{self as known, Fate, KnownPath};
use crate::keys::seal_state::SealState;
use crate::scan::checkpoint::read_note;
use crate::scan::paths::{join_to_write, open_path, signed_elsewhere};
use crate::write::recover;
use bulla_crypto::environment::Environment;
use bulla_proof::commitment::LogId;
use bulla_store::{Error, Result, Store};
use std::fmt;
use std::io;
use std::iter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a file system has in its uppermost directory from the beginning.
const LOST_AND_FOUND: &str = "lost+found";

/// What became of a path of a log when `backup_paths` was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PathChange {
    /// Where it lies, or lay last.
    pub place: String,
    /// Its id, in hexadecimal.
    pub id: String,
    /// What became of it.
    pub outcome: PathOutcome,
}

/// What can become of a path of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PathOutcome {
    /// It was made.
    Made,
    /// It was made before, and the key directory did not know of it, or had it as lost.
    Found,
    /// It is left out, and is not there, or has none of the frames any more that were written to it: it counts as lost for good, with whatever
    /// lay there alone.
    Lost,
    /// It holds no frames, and is none of the log's paths any more.
    LetGo,
}

impl fmt::Display for PathOutcome {
    /// Says it behind the name of the path.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Made => "is made",
            Self::Found => "is a path of the log again",
            Self::Lost => "counts as lost",
            Self::LetGo => "is no path of the log any more",
        })
    }
}

impl PathChange {
    fn new(place: impl ToString, id: PathId, outcome: PathOutcome) -> Self {
        PathChange { place: place.to_string(), id: id.to_string(), outcome }
    }
}

/// Makes the paths of `after` that are none yet, and has the key directory know them; those of `before` that are not among them it
/// lets go of. One that it knows, that is not among them either and is not there any more, or was written to and has no frames, is lost: what
/// lay there alone is missing in the log, and who opens it has to know why. What lies on one that was lost and is found, and the log has
/// gone on without, is set aside there. `log` is the log's own directory. Says what became of which.
///
/// # Errors
/// `Refused` where a directory is not empty, or is a path of another log; where two are
/// the same; where one holds frames that is not to be a path any more, or another history of the log than its seal state goes with; where one that would count as lost is there; where the log's own
/// directory has the id of another path, or one that the key directory does not know; and where one that this knows is not where it lay, and
/// that place is named all the same: its disk may not be mounted. `Unavailable` where a file cannot be written.
pub(super) fn make(
    (before, after): (&[PathBuf], &[PathBuf]),
    (own_directory, keys): (&Arc<dyn Store>, &Arc<dyn Store>),
    config: &LogConfig,
    environment: &Environment,
) -> Result<Vec<PathChange>> {
    let (log, keys) = (&**own_directory, &**keys);
    let remembered = known::load(keys)?;
    let history = History::of((own_directory, keys), &[before, after], &remembered, (config, environment));
    let let_go = losing::let_go((before, after), (log, &history), config.id, environment)?;
    // One that was written to, and has nothing any more, is lost with what lay there.
    let was_used = |id: PathId| {
        remembered.iter().any(|known| known.id == id && matches!(known.fate, Fate::Kept | Fate::Left))
    };
    let (emptied, let_go) = let_go.into_iter().partition::<Vec<_>, _>(|(id, _)| was_used(*id));
    let mut named = Vec::<Named<'_>>::new();
    for path in after {
        let store = open_path(path, environment);
        let id = id_at(&*store, path, config.id)?;
        losing::refuse_own_directory((path, &*store), id, (log, keys), config.id)?;
        named.push(Named { path, store, id });
    }
    let own = path::read(log, config.id)
        .map_err(|why| Error::unavailable(format!("{}: {why}", log.describe(""))))?;
    let own = own.unwrap_or(PathId::first_of(config.id));
    losing::refuse_own_id((log, own), &named, &remembered, config.id)?;
    losing::refuse_in_place_of(&remembered, own, (before, &named))?;
    history.refuse(log, Some(own), Path::new(&log.describe("")))?;
    named.iter().try_for_each(|Named { path, store, id }| history.refuse(&**store, *id, path))?;
    let is_left_out = |known: &&KnownPath| {
        let is_named = known.id == own || named.iter().any(|named| named.id == Some(known.id));
        !is_named && let_go.iter().chain(&emptied).all(|(id, _)| *id != known.id)
    };
    remembered
        .iter()
        .filter(is_left_out)
        .try_for_each(|known| losing::refuse_to_lose(known, log, config.id, environment))?;
    let (mut made, mut changes) = (Vec::<Made<'_>>::new(), Vec::new());
    for Named { path, store, .. } in &named {
        let (id, is_new) = make_path(&**store, path, config.id, environment)?;
        let is_new = is_new || is_unused(&**store, id, &remembered)?;
        if made.iter().any(|other| other.id == id) {
            return Err(refused(path, "is named twice"));
        }
        made.push(Made { id, path, is_new });
        if is_new {
            changes.push(PathChange::new(path.display(), id, PathOutcome::Made));
        }
    }
    tell_shared_disks(log, &named, environment);
    found::set_aside_what_is_superseded(
        (own_directory, own),
        &named,
        (keys, &remembered),
        config,
        environment,
    )?;
    let gone = let_go.iter().map(|(id, _)| *id).collect::<Vec<_>>();
    let before = with_first(&remembered, own, config.id);
    let there = iter::once(log).chain(named.iter().map(|named| &*named.store));
    let signed = signed_frames(there, keys, config);
    let all = known_from_now_on((&before, signed), own, &made, &gone);
    let is_made = |change: &PathChange| changes.iter().any(|made: &PathChange| made.id == change.id);
    let others = differences(&before, &all).filter(|change| !is_made(change)).collect::<Vec<_>>();
    if others.iter().any(|change| change.outcome == PathOutcome::Found) {
        Holds::compare_anew(keys)?;
    }
    let is_first_loss = before.iter().all(|known| known.fate != Fate::Lost)
        && others.iter().any(|change| change.outcome == PathOutcome::Lost);
    if is_first_loss && config.erasure && is_nobody_ever_held(keys, config.id) {
        Holds::begin(keys)?;
    }
    changes.extend(others);
    changes.extend(let_go.iter().map(|(id, path)| PathChange::new(path.display(), *id, PathOutcome::LetGo)));
    if all != remembered
        && let Err(error) = known::save(keys, &all)
    {
        // The file is the new one already where only its name could not be made durable.
        let is_untouched = known::load(keys).is_ok_and(|found| found == remembered);
        return Err(if is_untouched { error } else { but_noted(error, &changes) });
    }
    Ok(changes)
}

/// How many frames are signed, as the seal state and the checkpoints of these paths tell; nothing where no seal state does.
fn signed_frames<'a>(
    paths: impl Iterator<Item = &'a dyn Store>,
    keys: &dyn Store,
    config: &LogConfig,
) -> Option<u64> {
    let state = recover::read_state(keys, config).ok()?;
    let covered = |path| Some(config.own_keys().open(&read_note(path).ok()??).ok()?.size);
    paths.filter_map(covered).chain([state.chain.next_frame()]).max()
}

/// What the key directory takes for lost, and for found, that it did not before.
fn differences<'a>(before: &'a [KnownPath], after: &'a [KnownPath]) -> impl Iterator<Item = PathChange> + 'a {
    let was_lost =
        |id: PathId| before.iter().find(|known| known.id == id).map(|known| known.fate == Fate::Lost);
    after.iter().filter_map(move |known| {
        let outcome = match (was_lost(known.id), known.fate) {
            (Some(false), Fate::Lost) => PathOutcome::Lost,
            (None | Some(true), Fate::Kept | Fate::Left | Fate::Spare) => PathOutcome::Found,
            _ => return None,
        };
        Some(PathChange::new(&known.place, known.id, outcome))
    })
}

/// A backup path that is named.
struct Made<'a> {
    id: PathId,
    path: &'a Path,
    /// Whether it was none before, or none that was ever used or known.
    is_new: bool,
}

/// Whether the seal state says that no event of a hold was ever signed; where it cannot be read, nobody can tell.
fn is_nobody_ever_held(keys: &dyn Store, log: LogId) -> bool {
    SealState::load(keys).is_ok_and(|sealed| sealed.log == log && sealed.holds == 0)
}

/// Says where the paths that are named now have less of the log than was signed: no writer goes on with that.
pub(super) fn tell_what_is_elsewhere(
    (log, keys): (Arc<dyn Store>, &Arc<dyn Store>),
    config: &LogConfig,
    environment: &Environment,
) {
    // Whatever cannot be read is told by whoever opens the log.
    let Some(tell) = &environment.path_replaced else { return };
    let Ok(log) = join_to_write(log, Some(keys), &[], environment) else { return };
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

/// What the key directory remembers, and with it the log's first directory: it took the first frames, whether or not that was noted by then.
/// Where `own`, which is named in its place, is no path that is known, nothing says that it is another one.
fn with_first(remembered: &[KnownPath], own: PathId, log: LogId) -> Vec<KnownPath> {
    let first = PathId::first_of(log);
    let is_known = |id: PathId| remembered.iter().any(|known| known.id == id);
    let mut all = remembered.to_vec();
    if own != first && is_known(own) && !is_known(first) {
        all.push(KnownPath {
            id: first,
            fate: Fate::Kept,
            signed: None,
            place: "the log's first directory".to_owned(),
        });
    }
    all
}

/// What the key directory is to remember of a log of which so many frames are signed, whose own directory is the path `own`, and whose others are `made`.
fn known_from_now_on(
    (remembered, signed): (&[KnownPath], Option<u64>),
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
        KnownPath { id, fate, signed: None, place: path.display().to_string() }
    };
    let is_gone = |known: &&KnownPath| {
        let is_named = known.id == own || made.iter().any(|made| made.id == known.id);
        !is_named && known.fate != Fate::Spare && !let_go.contains(&known.id)
    };
    let mut lost = remembered.iter().filter(is_gone).collect::<Vec<_>>();
    // Those that were lost before come first, and are forgotten first.
    lost.sort_by_key(|known| known.fate != Fate::Lost);
    let lost = lost.split_off(lost.len().saturating_sub(known::MOST_LOST)).into_iter();
    let lost = lost.map(|known| match known.fate {
        Fate::Lost => known.clone(),
        Fate::Kept | Fate::Left | Fate::Spare => KnownPath { fate: Fate::Lost, signed, ..known.clone() },
    });
    let own = remembered.iter().filter(|known| known.id == own).map(|known| match known.fate {
        // It is there.
        Fate::Lost => KnownPath { fate: Fate::Kept, signed: None, ..known.clone() },
        Fate::Kept | Fate::Left | Fate::Spare => known.clone(),
    });
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
    if let Some(id) = id_at(store, path, log)? {
        return Ok((id, false));
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

/// Whether a path was made, and came to nothing: the key directory does not know it, since the change that made it was refused or cut short, and nothing
/// was ever written to it.
fn is_unused(store: &dyn Store, id: PathId, remembered: &[KnownPath]) -> Result<bool> {
    let is_known = remembered.iter().any(|known| known.id == id);
    Ok(!is_known && read_note(store)?.is_none() && segment::list(store)?.0.is_empty())
}

/// Says which paths are on one file system with the log's directory or with a path before them: they would fail together.
fn tell_shared_disks(log: &dyn Store, named: &[Named<'_>], environment: &Environment) {
    let Some(tell) = &environment.path_replaced else { return };
    let is_shared = |one: &dyn Store, other: &dyn Store| {
        let directories = one.directory().zip(other.directory());
        directories.is_some_and(|(one, other)| one.is_on_same_file_system(other).unwrap_or(false))
    };
    for (index, Named { store, .. }) in named.iter().enumerate() {
        let before = named[..index].iter().find(|other| is_shared(&**store, &*other.store));
        let other = match (is_shared(&**store, log), before) {
            (true, _) => "the log's directory".to_owned(),
            (false, Some(other)) => format!("{}, another backup path", other.path.display()),
            (false, None) => continue,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_stays_known_and_never_grows_without_end() {
        let id = |id: u8| PathId(LogId([id; 16]));
        let known = |of: u8, fate| KnownPath { id: id(of), fate, signed: None, place: format!("/{of}") };
        let (own, place) = (known(0, Fate::Kept), Path::new("/disk"));
        // One that was there before.
        let made = |of: u8| Made { id: id(of), path: place, is_new: false };
        let mut remembered = vec![own.clone()];
        for disk in 1..=20 {
            remembered = known_from_now_on((&remembered, None), own.id, &[made(disk)], &[]);
            let lost = (1..disk).rev().take(known::MOST_LOST).collect::<Vec<_>>().into_iter().rev();
            let mut expected =
                vec![own.clone(), KnownPath { place: "/disk".to_owned(), ..known(disk, Fate::Kept) }];
            expected
                .extend(lost.map(|disk| KnownPath { place: "/disk".to_owned(), ..known(disk, Fate::Lost) }));
            assert_eq!(remembered, expected);
        }
        // One that was looked at before it was left out is not lost, and one that is found is none any more.
        let left = known_from_now_on((&remembered, None), own.id, &[made(19)], &[id(20)]);
        assert!(left.iter().all(|known| known.id != id(20)));
        assert_eq!(
            left.iter().filter(|known| known.id == id(19)).map(|known| known.fate).collect::<Vec<_>>(),
            [Fate::Kept]
        );
        // Under the name of another path the first one is lost.
        let moved = known_from_now_on((&remembered, None), id(20), &[], &[]);
        assert!(moved.contains(&known(0, Fate::Lost)) && moved[0].id == id(20), "{moved:?}");
        // Under its own name again it is not.
        let back = known_from_now_on((&moved, None), id(0), &[made(20)], &[]);
        assert!(back.contains(&known(0, Fate::Kept)), "{back:?}");
        let found = differences(&moved, &back).collect::<Vec<_>>();
        assert_eq!(found, [PathChange::new("/0", id(0), PathOutcome::Found)]);
    }

    /// With it no frame can have gone, so that a hole in the log has another reason.
    #[test]
    fn a_path_that_was_never_used_is_not_lost_with_anything() {
        let id = |id: u8| PathId(LogId([id; 16]));
        let places = [PathBuf::from("/used"), PathBuf::from("/spare")];
        let made = |of: u8| Made { id: id(of), path: &places[usize::from(of) - 1], is_new: true };
        let mut remembered = known_from_now_on((&[], None), id(0), &[made(1), made(2)], &[]);
        assert!(remembered.iter().all(|known| known.fate == Fate::Spare), "{remembered:?}");
        // Named once more each is what it was.
        let named = |of: u8| Made { is_new: false, ..made(of) };
        assert_eq!(known_from_now_on((&remembered, None), id(0), &[named(1), named(2)], &[]), remembered);
        remembered[0].fate = Fate::Kept;
        let left = known_from_now_on((&remembered, None), id(0), &[], &[]);
        let lost = KnownPath { fate: Fate::Lost, ..remembered[0].clone() };
        assert_eq!(left, [lost]);
        // One that is there and of which nothing is known may have been used.
        assert_eq!(known_from_now_on((&left, None), id(0), &[named(2)], &[])[0].fate, Fate::Kept);
    }
}

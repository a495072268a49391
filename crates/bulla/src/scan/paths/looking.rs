//! Which of a log's paths are there, how far the log has come on each, and whether each is the path that it says it is.

use super::histories::{self, Histories};
use super::places::Place;
use super::refusing::is_damage;
use super::{LogPaths, OnePath, State, configuration, is_same_place, order};
use crate::format::path::{self, NoPath, PathId};
use crate::format::{config, files, segment};
use crate::keys;
use crate::keys::paths::{self as known, Fate, KnownPath};
use crate::keys::seal_state::SealState;
use crate::scan::checkpoint::read_note;
use bulla_proof::commitment::LogId;
use bulla_proof::tree::TreeHead;
use bulla_store::{Error, PathStanding, PathState, Paths, Result, Store};
use std::io;
use std::sync::Arc;

impl LogPaths {
    /// Which log a path is of, and its id.
    pub(super) fn identify(&self, index: usize, store: &dyn Store) -> Result<PathId, NoPath> {
        let before = self.state().paths[..index].iter().map(|path| path.store.clone()).collect::<Vec<_>>();
        if let Some(other) = before.iter().find(|other| is_same_place(&***other, store)) {
            return Err(NoPath::Other(format!(
                "the directory there is that of {}, another path, as by a link",
                other.describe("")
            )));
        }
        if let Some(id) = path::read(store, self.log)? {
            return Ok(id);
        }
        if index == 0 && is_first(store)? {
            return Ok(PathId::first_of(self.log));
        }
        let no_file = format!("it has no file `{}`", files::PATH);
        Err(match store.list("") {
            Err(error) => NoPath::of(&error),
            Ok(_) if index == 0 => NoPath::Other("there is no log in it".to_owned()),
            Ok(_) if configuration(store).is_some_and(|(config, _)| config.id == self.log) => {
                NoPath::Other(format!(
                    "{no_file}, and is the log's own directory: name it as DIR, and the other paths with --also"
                ))
            }
            Ok(_) => NoPath::Other(format!(
                "{no_file}, which says that it is a path of this log (is the disk mounted?)"
            )),
        })
    }

    /// Whether the log's own directory is all that anything names, now or before.
    pub(super) fn is_alone(&self) -> bool {
        let state = self.state();
        state.paths.len() == 1 && state.known.iter().all(|known| known.id == PathId::first_of(self.log))
    }

    /// Which path there is, and its checkpoint.
    fn look_at(&self, index: usize, store: &dyn Store) -> Result<(PathId, Option<Vec<u8>>), NoPath> {
        let id = match self.identify(index, store) {
            // Nobody looks for anything but the log in its own directory, where it has no other.
            Err(NoPath::Other(_)) if self.is_alone() => PathId::first_of(self.log),
            id => id?,
        };
        if !self.is_alone() {
            require_directories(store)?;
        }
        let unclear = |error: &io::Error| match NoPath::of(error) {
            NoPath::Unclear(why) => Some(NoPath::Unclear(format!("its checkpoint: {why}"))),
            NoPath::Other(_) => None,
        };
        match read_note(store) {
            Ok(note) => Ok((id, note)),
            // What is there is none.
            Err(error) => error.io_error().and_then(unclear).map_or(Ok((id, Some(Vec::new()))), Err),
        }
    }

    /// Looks which paths there are, and how far the log has come on each. The one that has come furthest is the one in use.
    pub(super) fn look(&self) {
        self.judge_again();
        let stores = self.state().paths.iter().map(|path| path.store.clone()).collect::<Vec<_>>();
        let found = stores.iter().enumerate().map(|(index, store)| self.look_at(index, &**store));
        let found = found.collect::<Vec<_>>();
        let has_none = |found: &Result<(PathId, Option<Vec<u8>>), NoPath>| matches!(found, Ok((_, None)));
        // A path is given a checkpoint before its first segment: one that was given both just now has it at the second look.
        let is_bare = |store: &dyn Store| has_segments(store) && matches!(read_note(store), Ok(None));
        let bare = stores.iter().zip(&found).map(|(store, found)| has_none(found) && is_bare(&**store));
        let bare = bare.collect::<Vec<_>>();
        // Whoever is at work has left a path meanwhile, or come back to it.
        let remembered = self.keys.as_ref().and_then(|keys| known::load(&**keys).ok());
        // It is written before any checkpoint over as many frames is.
        let sealed = self.keys.as_ref().map(|keys| SealState::load(&**keys));
        let places = stores.iter().map(|store| Place::of(&**store)).collect::<Vec<_>>();
        let is_alone = self.is_alone();
        let mut state = self.change();
        let State { paths, known, unnamed, .. } = &mut *state;
        if let Some(remembered) = remembered {
            *known = remembered;
        }
        for ((index, path), found) in paths.iter_mut().enumerate().zip(found) {
            path.bare = !is_alone && bare[index];
            path.note = found.as_ref().ok().and_then(|(_, note)| note.clone());
            path.head = path.note.as_deref().and_then(|note| self.head(note));
            path.used |= path.head.is_some();
            path.is_other = false;
            match found {
                Ok((id, _)) => {
                    (path.id, path.absent) = (Some(id), None);
                    path.place = Some(places[index].to_remember());
                }
                Err(why) => {
                    let is_expected =
                        |known: &&KnownPath| places[index].is(&known.place) && known.fate != Fate::Lost;
                    let remembered = known.iter().find(is_expected).map(|known| known.id);
                    let first = (index == 0).then_some(PathId::first_of(self.log));
                    (path.id, path.absent) = (path.id.or(remembered).or(first), Some(why));
                }
            }
        }
        tell_apart(paths, &places, known, (self.log, !is_alone && self.own_keys.is_some()));
        let is_unnamed = |known: &&KnownPath| {
            matches!(known.fate, Fate::Kept | Fate::Left)
                && paths.iter().all(|path| path.id != Some(known.id))
                && places.iter().all(|place| !place.is(&known.place))
        };
        *unnamed = known.iter().filter(is_unnamed).cloned().collect();
        if let Some(Ok(sealed)) = &sealed
            && sealed.log == self.log
        {
            pass_over_other_histories(paths, known, sealed.head());
        }
        let furthest = order(&state.paths, &state.known).next().unwrap_or(0);
        state.current = furthest;
        state.published = state.paths[furthest].note.clone();
        state.paths[furthest].used = true;
        let covered = state.paths[furthest].head.map_or(0, |head| head.size);
        state.outdated = match sealed {
            Some(Ok(sealed)) => sealed.chain.next_frame() < covered,
            Some(Err(error)) => is_damage(&error),
            None => false,
        };
        if let Some((_, text)) = configuration(&*state.paths[furthest].store) {
            state.config = text;
        }
    }

    /// All paths that are named, and those that are lost, each with how it stands; none of a log that has its own directory alone.
    pub(super) fn standings(&self) -> Vec<PathState> {
        if self.is_alone() {
            return Vec::new();
        }
        let state = self.state();
        // Where one is missing that was not left, the log may have come further there.
        let is_known = state.paths.iter().all(|path| path.absent.is_none() || state.is_left(path))
            && state.unnamed.iter().all(|known| state.was_left(known));
        let named = state.paths.iter().enumerate().map(|(index, path)| PathState {
            place: path.store.describe(""),
            id: path.id.map(|id| id.to_string()),
            // Named, it is none that is lost.
            standing: if index == state.current && is_known {
                PathStanding::InUse
            } else if state.is_left(path) {
                PathStanding::Left
            } else {
                PathStanding::Kept
            },
            missing: path.absent.as_ref().map(ToString::to_string),
        });
        let is_named = |id: PathId| state.paths.iter().any(|path| path.id == Some(id));
        let lost = state.known.iter().filter(|known| known.fate == Fate::Lost && !is_named(known.id));
        let lost = lost.map(|known| PathState {
            place: known.place.clone(),
            id: Some(known.id.to_string()),
            standing: PathStanding::Lost,
            missing: None,
        });
        let unnamed = state.unnamed.iter().map(|known| PathState {
            place: known.place.clone(),
            id: Some(known.id.to_string()),
            standing: if state.was_left(known) { PathStanding::Left } else { PathStanding::Kept },
            missing: Some(self.why_unnamed()),
        });
        named.chain(unnamed).chain(lost).collect()
    }

    /// Why a path that the key directory remembers is missing though nobody looked for it.
    pub(super) fn why_unnamed(&self) -> String {
        match self.unread_settings {
            None => {
                format!(
                    "`backup_paths` in {} of the key directory does not name it (bring that file back, or set it again)",
                    keys::files::SETTINGS
                )
            }
            Some(_) => {
                format!("{} of the key directory, which is to name it, cannot be read", keys::files::SETTINGS)
            }
        }
    }

    /// How many paths do not work, of a log that is written.
    pub(super) fn count_failing(&self) -> usize {
        let state = self.state();
        if state.waiting {
            return state.paths.len();
        }
        let fails = |path: &OnePath| path.absent.is_some() || path.lock.is_none() || path.lacking.is_some();
        let others = state.paths.iter().enumerate().filter(|(index, _)| *index != state.current);
        others.filter(|(_, path)| fails(path)).count()
    }

    /// Whether each path is there now, and lists the segments that it has.
    pub(super) fn lists_all(&self) -> bool {
        if self.unread_settings.is_some() || !self.state().unnamed.is_empty() {
            return false;
        }
        let stores = self.state().paths.iter().map(|path| path.store.clone()).collect::<Vec<_>>();
        let is_there = |(index, store): (usize, &Arc<dyn Store>)| {
            let lists = match store.list(files::DIRECTORIES[0]) {
                // One that was never written to.
                Err(error) => error.kind() == io::ErrorKind::NotFound,
                Ok(_) => true,
            };
            lists && self.identify(index, &**store).is_ok() && require_directories(&**store).is_ok()
        };
        stores.iter().enumerate().all(is_there)
    }

    /// That the paths that somebody named by hand are there: all but the first so many, which are the log's own directory and those that
    /// the key directory names.
    pub(super) fn require(&self, of_keys: usize) -> Result<()> {
        let state = self.state();
        let absent = |path: &OnePath| {
            let why = path.absent.as_ref()?;
            Some(Error::unavailable(format!("{} is no path of this log: {why}", path.store.describe(""))))
        };
        state.paths.iter().skip(of_keys).find_map(absent).map_or(Ok(()), Err)
    }

    /// Looks no more where the key directory names a path that is not there and lies in a place that somebody named by hand, which are those behind
    /// the first `of_keys`.
    pub(super) fn leave_empty_places(&self, of_keys: usize) {
        {
            let mut state = self.change();
            let named = state.paths.iter().skip(of_keys).filter_map(|path| path.id).collect::<Vec<_>>();
            let lies_elsewhere = |path: &OnePath| {
                matches!(path.absent, Some(NoPath::Other(_))) && path.id.is_some_and(|id| named.contains(&id))
            };
            if !state.paths.iter().skip(1).any(lies_elsewhere) {
                return;
            }
            let others = state.paths.split_off(1).into_iter();
            state.paths.extend(others.filter(|path| !lies_elsewhere(path)).collect::<Vec<_>>());
            state.current = 0;
        }
        self.look();
    }

    /// Refuses paths that are not what they say they are.
    ///
    /// # Errors
    /// `Tampered`, naming them.
    pub(super) fn require_told_apart(&self) -> Result<()> {
        match self.mismatches().into_iter().chain(self.without_checkpoint()).next() {
            None => Ok(()),
            Some(why) => Err(Error::tampered(format!("{why}; run `bulla verify`"))),
        }
    }

    /// As [`Paths::require_readable`].
    pub(super) fn require_whole(&self) -> Result<Option<Vec<u8>>> {
        if self.state().writing {
            return Ok(None);
        }
        self.require_told_apart()?;
        self.require_named()?;
        let missing = self.missing().into_iter().find(|missing| !missing.left);
        if let Some(missing) = missing {
            let name_it = name_it(missing.place == self.first.describe(""));
            return Err(Error::unavailable(format!(
                "{} is a path of the log, and is missing: {}. It may hold what the others have not, so nothing is told of a part: mount \
                 it, or {name_it}; `bulla verify` tells what the others have, and `bulla export --salvage` gives it out",
                missing.place, missing.reason
            )));
        }
        self.require_in_reach()
    }
}

/// How whoever reads is told where a path is now.
pub(super) fn name_it(is_first: bool) -> &'static str {
    match is_first {
        true => "name as DIR, with --keys, where it is now",
        false => "name with --also, or in `backup_paths`, where it is now",
    }
}

/// Whether a directory has what a log's own directory has at least one of.
///
/// # Errors
/// Where that cannot be told.
fn is_first(store: &dyn Store) -> Result<bool, NoPath> {
    let (config, segments) =
        (store.open(config::FILE).map(drop), store.list(files::DIRECTORIES[0]).map(drop));
    let unclear = |looked: &io::Result<()>| {
        let error = looked.as_ref().err().map(NoPath::of);
        error.filter(|error| matches!(error, NoPath::Unclear(_)))
    };
    match config.is_ok() || segments.is_ok() {
        true => Ok(true),
        false => unclear(&config).or_else(|| unclear(&segments)).map_or(Ok(false), Err),
    }
}

/// Whether a path has frames of the log; where that cannot be read, whoever reads them is told so.
fn has_segments(store: &dyn Store) -> bool {
    segment::list(store).is_ok_and(|(segments, _)| !segments.is_empty())
}

/// That what a path has for the directories of a log are directories: a link in the place of one would be in the way of everything that lies
/// on other paths.
pub(super) fn require_directories(store: &dyn Store) -> Result<(), NoPath> {
    files::DIRECTORIES.iter().try_for_each(|directory| {
        // No file of a log has this name, and looking for it takes no longer, however many there are.
        match store.open(&format!("{directory}/{}", files::PATH)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(match NoPath::of(&error) {
                NoPath::Other(why) => NoPath::Other(format!("`{directory}` in it: {why}")),
                NoPath::Unclear(why) => NoPath::Unclear(format!("`{directory}` in it: {why}")),
            }),
            _ => Ok(()),
        }
    })
}

/// Says of each path, which lies in the place of the same index, whether it can be the one that it says it is: no other place is, and the key
/// directory remembers no other path there, unless that one lies elsewhere now; and the log's own directory is none that its list does not
/// know. And, of a log on several paths whose keys are known, its checkpoint, if it has one, is the log's.
fn tell_apart(
    paths: &mut [OnePath],
    lie: &[Place],
    known: &[KnownPath],
    (log, has_contradicting): (LogId, bool),
) {
    let present = paths.iter().map(|path| path.id.filter(|_| path.absent.is_none())).collect::<Vec<_>>();
    let places = paths.iter().map(|path| path.store.describe("")).collect::<Vec<_>>();
    for (index, path) in paths.iter_mut().enumerate() {
        path.mismatch = None;
        let Some(id) = present[index] else { continue };
        let place = &places[index];
        let twin = (0..index).find(|&other| present[other] == Some(id));
        // Another one may lie where one was that is lost.
        let is_expected =
            |known: &&KnownPath| known.fate != Fate::Lost && known.id != id && lie[index].is(&known.place);
        let expected = known.iter().find(is_expected);
        let expected = expected.filter(|expected| !present.contains(&Some(expected.id)));
        let is_unknown = index == 0 && is_unlisted(id, known, log);
        let which = |id: PathId| {
            if id == PathId::first_of(log) {
                "the log's own directory".to_owned()
            } else {
                format!("the path {id}")
            }
        };
        path.mismatch = match (twin, expected) {
            (Some(twin), _) => Some(format!(
                "{} and {place} both say that they are {}: one of them is a copy, or is not what it says",
                places[twin],
                which(id)
            )),
            (None, Some(expected)) => Some(format!(
                "{place} says that it is {}, and {} is expected there",
                which(id),
                which(expected.id)
            )),
            (None, None) if is_unknown => Some(format!("{place} {}", unlisted(id))),
            // Somebody put it there: what it covered, or what it should have, would be missing without a word.
            (None, None) if has_contradicting && path.note.is_some() && path.head.is_none() => Some(format!(
                "{place}, a path of the log, contradicts the others: its checkpoint is not signed by the log's key"
            )),
            (None, None) => None,
        };
    }
}

/// Finds the paths that hold another history than the one that the key directory's seal state, which was written for the tree `sealed`, goes with, where a path
/// has that one: a part that was given up may cover more frames than the log, or fewer. Where no path has it nothing is passed over, and nobody is
/// answered.
fn pass_over_other_histories(paths: &mut [OnePath], known: &[KnownPath], sealed: TreeHead) {
    let with_state =
        |path: &OnePath| match path.head.filter(|head| path.absent.is_none() && head.size >= sealed.size) {
            Some(head) => histories::compare(&*path.store, sealed, head),
            None => Histories::Untold,
        };
    let front = |paths: &[OnePath]| order(paths, known).next();
    let Some(furthest) = front(paths) else { return };
    match with_state(&paths[furthest]) {
        Histories::One => {}
        Histories::Untold => return,
        Histories::Two => {
            let all = paths.iter().map(with_state).collect::<Vec<_>>();
            if !all.contains(&Histories::One) {
                return;
            }
            paths.iter_mut().zip(all).for_each(|(path, found)| path.is_other = found == Histories::Two);
        }
    }
    let Some((store, log)) =
        front(paths).and_then(|front| Some((paths[front].store.clone(), paths[front].head?)))
    else {
        return;
    };
    let others = paths.iter_mut().filter(|path| path.is_read() && path.compared != path.note);
    for path in others {
        match path.head.map(|head| histories::compare(&*store, log, head)) {
            Some(Histories::Two) => path.is_other = true,
            // It stays one, and is not compared again.
            Some(Histories::One) => path.compared = path.note.clone(),
            Some(Histories::Untold) | None => {}
        }
    }
}

/// Whether the id that a log's own directory has is neither the log's nor one that the key directory's list of paths has: whoever has the storage
/// put it there.
fn is_unlisted(id: PathId, known: &[KnownPath], log: LogId) -> bool {
    id != PathId::first_of(log) && !known.is_empty() && known.iter().all(|known| known.id != id)
}

/// What is said of such a directory.
pub(crate) fn unlisted(id: PathId) -> String {
    format!(
        "has a file `{}` by which it is the path {id}, and the key directory has no such path of the log: take that file away",
        files::PATH
    )
}

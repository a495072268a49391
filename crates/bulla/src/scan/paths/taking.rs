//! Which path takes what is written: another one where one fails, and what of that the key directory notes.

use super::looking::require_directories;
use super::places::Place;
use super::spreading::Lacking;
use super::twins::name_of;
use super::{Files, LogPaths, OnePath, State};
use crate::format::path::PathId;
use crate::format::{config, files};
use crate::keys::paths::{self as known, Fate, KnownPath};
use crate::scan::checkpoint::read_note;
use crate::scan::stored_tree;
use bulla_proof::tree::TreeHead;
use bulla_store::{Error, Lock, MissingPath, PathState, Paths, Result, Store, Switch};
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::{Arc, PoisonError};

/// A path that takes what is written from now on.
struct Taken {
    store: Arc<dyn Store>,
    lock: Arc<dyn Lock>,
    id: PathId,
    /// Where it lies.
    place: String,
    /// Why it lacks a part of the tree.
    lacking: Option<io::Error>,
}

/// Why a checkpoint is not taken for one of the beginning of a log.
enum Unlike {
    /// It is not.
    Other(String),
    /// What tells cannot be read.
    Unclear(Error),
}

impl fmt::Display for Unlike {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unlike::Other(why) => f.write_str(why),
            Unlike::Unclear(error) => write!(f, "its checkpoint cannot be compared: {error}"),
        }
    }
}

impl LogPaths {
    /// Makes one of the paths ready to take what is written.
    ///
    /// # Errors
    /// Why it cannot, in words.
    fn take(&self, index: usize) -> Result<Taken, String> {
        let (store, held, known_id, note) = {
            let path = &self.state().paths[index];
            (path.store.clone(), path.lock.clone(), path.id, path.note.clone())
        };
        let is_in_place = held.as_ref().is_some_and(|lock| lock.is_in_place().unwrap_or(false));
        let (store, held) = match held.filter(|_| is_in_place) {
            Some(lock) => (store, Some(lock)),
            None => {
                // The lock of another directory, or of one that is not there any more, is of no use.
                self.change().paths[index].lock = None;
                let afresh =
                    store.directory().map(|directory| Arc::new(directory.afresh()) as Arc<dyn Store>);
                (afresh.unwrap_or(store), None)
            }
        };
        let id = self.identify(index, &*store).map_err(|why| why.to_string())?;
        if let Some(known) = known_id.filter(|known| *known != id) {
            return Err(format!("it is the path {id}, and the path {known} is expected there"));
        }
        let lock = match held {
            Some(lock) => lock,
            None => {
                bulla_store::require_own(&*store).map_err(|error| error.to_string())?;
                Arc::from(store.lock(files::LOCK).map_err(|error| format!("locking it: {error}"))?)
            }
        };
        require_directories(&*store).map_err(|why| why.to_string())?;
        self.compare_again(&*store, note.as_deref())?;
        let lacking = self
            .prepare(&*store)
            .and_then(|()| self.hand_over(&*store))
            .map_err(|error| format!("writing to it: {error}"))?;
        // One that takes nothing stays what it was: no frame can be lost with it.
        let place = Place::of(&*store).to_remember();
        self.note(|known| set(known, id, &place, Fate::Kept)).map_err(|error| error.to_string())?;
        Ok(Taken { store, lock, id, place, lacking })
    }

    /// That the checkpoint of a path is the one that was there, or is of a beginning of this log.
    fn compare_again(&self, store: &dyn Store, before: Option<&[u8]>) -> Result<(), String> {
        let note = read_note(store).map_err(|error| error.to_string())?;
        let Some(note) = note.filter(|note| Some(&note[..]) != before) else { return Ok(()) };
        let head = self.head(&note).ok_or("its checkpoint is not signed by the log's key")?;
        let published = self.state().published.clone();
        let published =
            published.and_then(|note| self.head(&note)).ok_or("nothing is there to compare it with")?;
        self.compare(head, published).map_err(|why| why.to_string())
    }

    /// That a tree is a beginning of another one, by the tiles.
    fn compare(&self, head: TreeHead, with: TreeHead) -> Result<(), Unlike> {
        if head.size > with.size {
            let why = format!("its checkpoint covers {} frames, and the log has {}", head.size, with.size);
            return Err(Unlike::Other(why));
        }
        match stored_tree::root_at(self, with, head.size) {
            Ok(Some(root)) if root == head.root => Ok(()),
            Ok(Some(_)) => {
                let why = format!("its checkpoint is of {} other frames than the log has", head.size);
                Err(Unlike::Other(why))
            }
            Ok(None) => Err(Unlike::Other(
                "the log's tiles do not tell whether its checkpoint is of this log's beginning".to_owned(),
            )),
            Err(error) => Err(Unlike::Unclear(error)),
        }
    }

    /// The paths that are there and whose checkpoints are not of a beginning of the log, as it is on the one on which it has come furthest.
    fn unlike(&self) -> Vec<(String, Unlike)> {
        let (heads, newest) = {
            let state = self.state();
            let heads = state.paths.iter().filter(|path| path.absent.is_none());
            let of = |path: &OnePath| Some((path.store.describe(""), path.head?, path.is_other));
            (heads.filter_map(of).collect::<Vec<_>>(), state.paths[state.current].head)
        };
        let Some(newest) = newest else { return Vec::new() };
        let unlike = |(place, head, is_other)| match is_other {
            true => {
                let why = "it holds another history of the log than the key directory's seal state goes with"
                    .to_owned();
                Some((place, Unlike::Other(why)))
            }
            false => Some((place, self.compare(head, newest).err()?)),
        };
        heads.into_iter().filter_map(unlike).collect()
    }

    /// Gives a path the log's configuration, where it has another one, and the directories of a log. What a mirror has left there would count in
    /// the place of that with some checkpoint.
    fn prepare(&self, store: &dyn Store) -> std::io::Result<()> {
        match store.remove(config::arriving::NEXT) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            removed => removed.and_then(|()| store.sync_directory(""))?,
        }
        let text = self.config_text();
        if config::read(store).is_ok_and(|found| found == text) {
            return Ok(());
        }
        for directory in files::DIRECTORIES {
            store.create_directory(directory)?;
        }
        bulla_store::replace(store, config::FILE, &text)
    }

    /// The configuration: with settings that somebody has edited meanwhile, where the path in use gives them back. What another path has may be
    /// older.
    fn config_text(&self) -> Vec<u8> {
        let known = self.state().config.clone();
        let digest = |text: &[u8]| config::parse(text).ok().map(|(config, _)| config.digest);
        let edited = config::read(&*self.in_use()).ok().filter(|text| digest(text) == digest(&known));
        edited.unwrap_or(known)
    }

    /// Changes what the key directory remembers, durably.
    fn note(&self, change: impl FnOnce(&mut Vec<KnownPath>)) -> Result<()> {
        let mut noted = self.state().known.clone();
        change(&mut noted);
        let Some(keys) = self.keys.as_ref().filter(|_| noted != self.state().known) else { return Ok(()) };
        known::save(&**keys, &noted)?;
        self.change().known = noted;
        Ok(())
    }
}

/// Notes what became of a path.
fn set(known: &mut Vec<KnownPath>, id: PathId, place: &str, fate: Fate) {
    let path = KnownPath { id, fate, signed: None, place: place.to_owned() };
    match known.iter_mut().find(|known| known.id == id) {
        Some(known) => *known = path,
        None => known.push(path),
    }
}

impl Paths for LogPaths {
    fn turn(&self) -> u64 {
        self.state().turn
    }

    fn current(&self) -> (u64, Arc<dyn Store>) {
        let state = self.state();
        (state.turn, state.paths[state.current].store.clone())
    }

    fn all(&self) -> Vec<Arc<dyn Store>> {
        self.state().paths.iter().map(|path| path.store.clone()).collect()
    }

    fn others(&self) -> usize {
        self.state().paths.len() - 1
    }

    fn fail_over(&self, turn: u64, why: &str) -> bool {
        let _only = self.switching.lock().unwrap_or_else(PoisonError::into_inner);
        let (from, count) = {
            let mut state = self.change();
            if state.turn != turn || !state.writing {
                return state.turn != turn;
            }
            let from = state.current;
            state.paths[from].failed = true;
            (from, state.paths.len())
        };
        // In a ring: else two that fail would take over from each other, and a third one that works never.
        for index in (1..count).map(|step| (from + step) % count) {
            let taken = match self.take(index) {
                Ok(taken) => taken,
                Err(error) => {
                    let place = {
                        let path = &mut self.change().paths[index];
                        path.lacking.get_or_insert_with(Lacking::at_once);
                        path.store.describe("")
                    };
                    self.tell(index, format!("{place} does not take the log: {error}"));
                    continue;
                }
            };
            let mut state = self.change();
            let before = state.paths[from].id.unwrap_or(PathId::first_of(self.log));
            let to = taken.id.to_string();
            state.pending = match state.pending.take() {
                // Nothing was committed on the one that failed now: it is as if it had been passed over.
                Some((first, _)) if first == index => None,
                Some((first, switch)) => Some((first, Switch { to, ..switch })),
                None => Some((from, Switch { from: before.to_string(), to, reason: why.to_owned() })),
            };
            let note = read_note(&*taken.store).ok().flatten().or_else(|| state.paths[index].note.take());
            let head = note.as_deref().and_then(|note| self.head(note));
            state.paths[index] = OnePath {
                id: Some(taken.id),
                lock: Some(taken.lock),
                place: Some(taken.place),
                used: true,
                note,
                head,
                frames: state.paths[index].frames,
                told: state.paths[index].told.take(),
                ..OnePath::new(taken.store)
            };
            // What is signed from now on it is not given.
            state.paths[from].lacking.get_or_insert_with(Lacking::at_once);
            (state.current, state.turn) = (index, turn + 1);
            drop(state);
            taken.lacking.iter().for_each(|error| self.lacks(index, error));
            return true;
        }
        // It goes on trying.
        self.change().paths[from].failed = false;
        false
    }

    fn is_in_use(&self, path: &str) -> bool {
        self.holding(path).is_some_and(|path| Arc::ptr_eq(&path, &self.in_use()))
    }

    fn present(&self) -> Vec<Arc<dyn Store>> {
        self.readable().into_iter().map(|(store, _)| store).collect()
    }

    fn holding(&self, path: &str) -> Option<Arc<dyn Store>> {
        match name_of(path) {
            // Of several the one that is read.
            Some(_) => self.longest_segment(path).ok().map(|(store, _)| store),
            None => {
                self.readable().into_iter().map(|(store, _)| store).find(|store| store.open(path).is_ok())
            }
        }
    }

    fn waits(&self) {
        self.change().waiting = true;
    }

    fn opened(&self, frames: u64) {
        let mut state = self.change();
        state.recovered = true;
        state.paths.iter_mut().for_each(|path| path.frames = frames);
        drop(state);
        // Not before: an opening that is refused changes nothing.
        self.spread_what_is_missing();
    }

    fn takes(&self, turn: u64, frames: u64) -> bool {
        let mut state = self.change();
        if state.turn != turn {
            return false;
        }
        let current = state.current;
        state.paths[current].frames = frames;
        true
    }

    fn committed(&self, turn: u64) {
        let is_told = |state: &State| state.pending.is_none() && !state.waiting || state.turn != turn;
        if is_told(&self.state()) {
            return;
        }
        let what = {
            let mut state = self.change();
            if is_told(&state) {
                return;
            }
            state.waiting = false;
            state.paths.iter_mut().for_each(|path| path.told = None);
            let to = state.paths[state.current].store.describe("");
            match state.pending.take() {
                None => format!("the log goes on in {to}"),
                Some((from, switch)) => {
                    let from = state.paths[from].store.describe("");
                    let what = format!("{from} failed ({}): the log goes on in {to}", switch.reason);
                    state.switches.push(switch);
                    what
                }
            }
        };
        if let Some(tell) = &self.tell {
            tell(&what);
        }
    }

    fn published(&self, turn: u64, checkpoint: &[u8]) -> bool {
        let head = self.head(checkpoint);
        let _only = self.switching.lock().unwrap_or_else(PoisonError::into_inner);
        let paths = {
            let mut state = self.change();
            if state.turn != turn {
                return false;
            }
            (state.published, state.outdated) = (Some(checkpoint.to_owned()), false);
            if let Some((_, edge)) =
                state.next.take_if(|(frames, _)| Some(*frames) == head.map(|head| head.size))
            {
                state.edge = edge;
            }
            let (current, covered) = (state.current, head.map_or(0, |head| head.size));
            let path = &mut state.paths[current];
            (path.note, path.head) = (Some(checkpoint.to_owned()), head);
            let of = |(index, path): (usize, &OnePath)| {
                let fate = if index == current { Fate::Kept } else { Fate::Left };
                let is_known = path.used && (index == current || path.frames <= covered);
                // Where one that is not there lies is known already.
                Some((path.id.filter(|_| is_known)?, path.place.clone(), fate))
            };
            state.paths.iter().enumerate().filter_map(of).collect::<Vec<_>>()
        };
        // Where that cannot be written down, the log asks for a path that it could go without: the next checkpoint tries again.
        let _ = self.note(|known| {
            let is_spare = |known: &[KnownPath], id| {
                known.iter().any(|known| known.id == id && known.fate == Fate::Spare)
            };
            for (id, place, fate) in paths {
                // One that was tried and took nothing has none of the log's frames, whatever it was given.
                if fate == Fate::Left && is_spare(known, id) {
                    continue;
                }
                let before = known.iter().find(|known| known.id == id).map(|known| known.place.clone());
                let Some(place) = place.or(before) else { continue };
                set(known, id, &place, fate);
                // The one in use comes first: a checkpoint that is copied to another path does not tell them apart.
                if fate == Fate::Kept {
                    known.sort_by_key(|known| known.id != id);
                }
            }
        });
        self.committed(turn);
        true
    }

    fn keep_edge(&self, files: Files) {
        self.change().edge = files;
    }

    fn keep_next(&self, turn: u64, frames: u64, files: Files) -> bool {
        // A path that takes over meanwhile has been given what was kept before.
        let _only = self.switching.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.change();
        let has_turn = state.turn == turn;
        if has_turn {
            state.next = Some((frames, files));
        }
        has_turn
    }

    fn has_lost_one(&self) -> bool {
        self.lost_below() > 0
    }

    fn lost_below(&self) -> u64 {
        let state = self.state();
        let is_there =
            |id: PathId| state.paths.iter().any(|path| path.absent.is_none() && path.id == Some(id));
        let lost = state.known.iter().filter(|known| known.fate == Fate::Lost && !is_there(known.id));
        // Nothing is signed of no frame.
        lost.map(|known| known.signed.map_or(u64::MAX, |signed| signed.max(1))).max().unwrap_or(0)
    }

    fn given_up_from(&self, frame: u64) -> Result<()> {
        self.note(|known| {
            for lost in known.iter_mut().filter(|known| known.fate == Fate::Lost) {
                lost.signed = Some(lost.signed.map_or(frame, |signed| signed.min(frame)));
            }
        })
    }

    fn number_lost(&self, frame: u64) -> Result<()> {
        let is_unknown = |known: &&mut KnownPath| known.fate == Fate::Lost && known.signed.is_none();
        self.note(|known| known.iter_mut().filter(is_unknown).for_each(|lost| lost.signed = Some(frame)))
    }

    fn are_all_there(&self) -> bool {
        self.lists_all()
    }

    fn has_published(&self) -> bool {
        let state = self.state();
        state.published.is_some() && state.paths[state.current].note == state.published
    }

    fn spread(&self, files: &[(String, Vec<u8>)]) {
        self.spread_files(files);
    }

    fn look_again(&self) {
        if !self.state().writing {
            self.look();
        }
    }

    fn failing(&self) -> usize {
        self.count_failing()
    }

    fn take_switches(&self) -> Vec<Switch> {
        std::mem::take(&mut self.change().switches)
    }

    fn missing(&self) -> Vec<MissingPath> {
        let state = self.state();
        let missing = state.paths.iter().filter_map(|path| {
            let reason = path.absent.as_ref()?.to_string();
            Some(MissingPath {
                place: path.store.describe(""),
                id: path.id.map(|id| id.to_string()),
                reason,
                left: state.is_left(path),
            })
        });
        let unnamed = state.unnamed.iter().map(|known| MissingPath {
            place: known.place.clone(),
            id: Some(known.id.to_string()),
            reason: self.why_unnamed(),
            left: state.was_left(known),
        });
        missing.chain(unnamed).collect()
    }

    fn require_named(&self) -> Result<()> {
        self.require_settings()
    }

    fn another_history(&self) -> Option<String> {
        self.tell_another_history()
    }

    fn out_of_reach(&self) -> Result<Option<Range<u64>>> {
        self.signed_out_of_reach()
    }

    fn unpublished(&self, covered: u64) -> Result<Option<u64>> {
        self.signed_and_unpublished(covered)
    }

    fn sealed(&self) -> u64 {
        self.signed_frames()
    }

    fn vault_follows(&self) -> u64 {
        LogPaths::vault_follows(self)
    }

    fn states(&self) -> Vec<PathState> {
        self.standings()
    }

    fn mismatches(&self) -> Vec<String> {
        self.state().paths.iter().filter_map(|path| path.mismatch.clone()).collect()
    }

    fn without_checkpoint(&self) -> Vec<String> {
        let without = |path: &OnePath| {
            let place = path.store.describe("");
            path.bare.then(|| format!("{place}, a path of the log, has segments and no checkpoint"))
        };
        self.state().paths.iter().filter_map(without).collect()
    }

    fn require_readable(&self) -> Result<Option<Vec<u8>>> {
        self.require_whole()
    }

    fn contradictions(&self) -> Vec<String> {
        let unlike = self.unlike().into_iter();
        let unlike =
            unlike.map(|(place, why)| format!("{place}, a path of the log, contradicts the others: {why}"));
        unlike.chain(self.differing_segments()).collect()
    }

    fn require_clear(&self) -> Result<()> {
        match self.state().writing {
            true => Ok(()),
            false => self.require_looked_at(|_, _| true),
        }
    }

    fn require_all(&self) -> Result<()> {
        // Who was at work meanwhile has left it otherwise.
        self.look();
        self.require_told_apart()?;
        self.require_settings()?;
        self.require_there()?;
        if let Some((place, why)) = self.unlike().into_iter().next() {
            return Err(match why {
                Unlike::Unclear(_) => Error::unavailable(format!("{place}, a path of the log: {why}")),
                Unlike::Other(why) => Error::tampered(format!(
                    "{place}, a path of the log, contradicts the others: {why}; run `bulla verify`. Where a part of the log that was given up by \
                     `bulla restore --older-log` lies there, keep that directory aside (`mv`), and leave it out of `backup_paths`: \
                     docs/operating.md, \"Two histories\""
                )),
            });
        }
        let differing = self.differing_segment_to_write();
        if let Some(why) = differing.map_err(|error| Error::io("looking at the paths of the log", error))? {
            return Err(Error::tampered(format!(
                "{why}; run `bulla verify`, and take away the one that does not belong there"
            )));
        }
        self.tell_left_ones_that_are_missing();
        self.read_cosigned();
        let (turn, is_locked) = {
            let state = self.state();
            (state.turn, state.paths[state.current].lock.is_some())
        };
        let current = self.in_use();
        // Opening a log syncs its directory before anything else.
        let failed = match current.sync_directory("") {
            _ if !is_locked => Some("it cannot be locked".to_owned()),
            synced => synced.err().map(|error| format!("syncing its directory: {error}")),
        };
        if let Some(why) = failed.filter(|why| !self.fail_over(turn, why)) {
            return Err(Error::unavailable(format!(
                "{}, a path of the log, cannot be written: {why}",
                current.describe("")
            )));
        }
        Ok(())
    }
}

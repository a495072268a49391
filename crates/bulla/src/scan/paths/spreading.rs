//! The tree on every path: full tiles and bundles, which never change, are given to the paths that are not in use as well, so that
//! what is lost with one of them is known to the frame.
//!
//! A path that was not given some, because it failed or was not there, lacks them: it is given them once it takes what is written, when the
//! log is opened, and meanwhile it is tried again with the checkpoints that have new ones, each time after twice as many. What no path
//! gives back by then it goes on without.

use super::{LogPaths, OnePath, State};
use crate::format::files;
use crate::scan::checkpoint::read_note;
use bulla_proof::tile::{self, FULL_WIDTH};
use bulla_store::{Store, path};
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

/// The longest tile or bundle that is read, in bytes.
const LIMIT: u64 = 1 << 20;
/// So many checkpoints with new full tiles are passed over at most, before a path that lacks some is tried again.
const MOST_PASSED: u32 = 64;

/// When a path is tried again that lacks full tiles.
pub(super) struct Lacking {
    /// With which of the checkpoints to come that have new ones.
    due: u32,
    /// With which after that, where it fails then.
    next: u32,
}

impl Lacking {
    /// It is tried with the next one.
    pub(super) fn at_once() -> Self {
        Lacking { due: 1, next: 1 }
    }

    /// That it failed.
    fn failed(&mut self) {
        self.due = self.next;
        self.next = MOST_PASSED.min(self.next * 2);
    }
}

/// What a path is to be given.
enum Given {
    Nothing,
    /// What is new.
    New,
    /// All that it lacks.
    All,
}

impl LogPaths {
    /// Gives the other paths files that never change, which a checkpoint has that is published by now; and those that lack others what they
    /// lack, where it is time.
    pub(super) fn spread_files(&self, files: &[(String, Vec<u8>)]) {
        let Some(size) = self.published_frames() else { return };
        for (index, store) in self.writable() {
            let given = match self.given(index) {
                Given::Nothing => continue,
                Given::New => {
                    files.iter().try_for_each(|(name, content)| write(&*store, name, content)).map(|()| None)
                }
                Given::All => self.fill_up(&*store, size),
            };
            self.was_given(index, given);
        }
    }

    /// Gives each path what it lacks of what the log has signed.
    pub(super) fn spread_what_is_missing(&self) {
        let Some(size) = self.published_frames() else { return };
        for (index, store) in self.writable() {
            // No other path has the newest checkpoint, of a beginning of which they are.
            let is_in_use = index == self.state().current;
            let cosigned = if is_in_use { self.give_cosigned(&*store) } else { Ok(()) };
            let given = cosigned.and_then(|()| self.fill_up(&*store, size));
            self.was_given(index, given);
        }
    }

    /// Gives a path that is about to take what is written all of the tree that was signed last, and the checkpoint over it: should the path
    /// before be lost for good, the log has something signed to go on from, and what witnesses have cosigned of it. An older checkpoint that is
    /// there is replaced; what it needs stays. So is the edge of the tree given of which the seal state may speak by now. Returns why it lacks something, where no path gives
    /// that back.
    ///
    /// # Errors
    /// Where the path does not take it.
    pub(super) fn hand_over(&self, store: &dyn Store) -> io::Result<Option<io::Error>> {
        let (published, edge, next) = {
            let State { published, edge, next, .. } = &*self.state();
            (published.clone(), edge.clone(), next.as_ref().map(|(_, files)| files.clone()))
        };
        for (name, content) in next.iter().flatten() {
            write(store, name, content)?;
        }
        let Some((head, note)) = published.and_then(|note| Some((self.head(&note)?, note))) else {
            return Ok(None);
        };
        for (name, content) in &edge {
            write(store, name, content)?;
        }
        let lacking = self.fill_up(store, head.size)?;
        if read_note(store).is_ok_and(|found| found.as_ref() == Some(&note)) {
            self.give_cosigned(store)?;
            return Ok(lacking);
        }
        if edge.is_empty() {
            // Nobody has it in memory while the log is being opened.
            for name in edge_names(head.size) {
                let Ok(content) = bulla_store::read_small(self, &name, LIMIT) else { return Ok(lacking) };
                write(store, &name, &content)?;
            }
        }
        // Once the checkpoint is there the log can go on from it alone.
        self.give_cosigned(store)?;
        bulla_store::replace(store, files::CHECKPOINT, &note)?;
        Ok(lacking)
    }

    /// How many frames the checkpoint covers that was published last.
    pub(super) fn published_frames(&self) -> Option<u64> {
        let published = self.state().published.clone();
        published.and_then(|note| self.head(&note)).map(|head| head.size)
    }

    /// The paths that are there and are locked, in their places.
    fn writable(&self) -> Vec<(usize, Arc<dyn Store>)> {
        let state = self.state();
        let locked = |(index, path): (usize, &OnePath)| {
            let lock = path.lock.clone().filter(|_| path.absent.is_none())?;
            Some((index, path.store.clone(), lock))
        };
        let locked = state.paths.iter().enumerate().filter_map(locked).collect::<Vec<_>>();
        drop(state);
        let writable = locked.into_iter().filter(|(_, _, lock)| lock.is_in_place().unwrap_or(false));
        writable.map(|(index, store, _)| (index, store)).collect()
    }

    /// What a path is to be given with a checkpoint that has new full tiles.
    fn given(&self, index: usize) -> Given {
        let mut state = self.change();
        let is_in_use = index == state.current;
        match &mut state.paths[index].lacking {
            None if is_in_use => Given::Nothing,
            None => Given::New,
            Some(lacking) => {
                lacking.due = lacking.due.saturating_sub(1);
                if lacking.due == 0 { Given::All } else { Given::Nothing }
            }
        }
    }

    /// Takes in what came of giving a path what it lacks.
    fn was_given(&self, index: usize, given: io::Result<Option<io::Error>>) {
        match given {
            Ok(None) => self.change().paths[index].lacking = None,
            Ok(Some(error)) | Err(error) => self.lacks(index, &error),
        }
    }

    /// Says that a path lacks something.
    pub(super) fn lacks(&self, index: usize, error: &io::Error) {
        let place = {
            let path = &mut self.change().paths[index];
            path.lacking.get_or_insert_with(Lacking::at_once).failed();
            path.store.describe("")
        };
        self.tell(
            index,
            format!("{place} lacks a part of the log's tree, and is given it when that is possible: {error}"),
        );
    }

    /// Gives a path the full tiles and bundles of a tree that it lacks. Returns why it still lacks some, where no path gives those back.
    ///
    /// # Errors
    /// Where the path does not take them.
    fn fill_up(&self, store: &dyn Store, size: u64) -> io::Result<Option<io::Error>> {
        let mut unread = None;
        for name in lacking(store, size)? {
            match bulla_store::read_small(self, &name, LIMIT) {
                Ok(content) => write(store, &name, &content)?,
                Err(error) => unread = unread.or(Some(io::Error::other(error.to_string()))),
            }
        }
        Ok(unread)
    }
}

/// The full tiles and bundles of a tree that are not there. Those that are there are so for good: a name that a failed sync left may not be.
fn lacking(store: &dyn Store, size: u64) -> io::Result<Vec<String>> {
    let bundles = (0..size / u64::from(FULL_WIDTH)).map(|index| tile::entries_path(index, FULL_WIDTH));
    let names = tile::full_tiles_between(0, size).map(|id| id.path()).chain(bundles);
    let (mut directory, mut there) = (String::new(), BTreeSet::new());
    let mut lacking = Vec::new();
    for name in names {
        let above = path::parent(&name);
        if above != directory {
            let items = match store.list(above) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
                Err(error) => return Err(error),
                Ok(items) => {
                    store.sync_directory(above)?;
                    items
                }
            };
            there = items.into_iter().filter(|item| !item.directory).map(|item| item.name).collect();
            above.clone_into(&mut directory);
        }
        if !there.contains(&name[above.len() + 1..]) {
            lacking.push(name);
        }
    }
    Ok(lacking)
}

/// The files beside full tiles and bundles that a checkpoint over a tree needs.
fn edge_names(size: u64) -> Vec<String> {
    let mut names = tile::tiles_for(size).iter().map(|id| id.path()).collect::<Vec<_>>();
    let width = tile::partial_width(size);
    if width > 0 {
        names.push(tile::entries_path(size / u64::from(FULL_WIDTH), width));
    }
    names
}

/// Writes a file durably, with the directories above it.
pub(super) fn write(store: &dyn Store, name: &str, content: &[u8]) -> io::Result<()> {
    let directory = path::parent(name);
    if store.list(directory).is_err() {
        store.create_directory(directory)?;
        let mut above = directory;
        while !above.is_empty() {
            above = path::parent(above);
            store.sync_directory(above)?;
        }
    }
    bulla_store::replace(store, name, content)
}

//! The files of a log's tree as it grows: tiles, partial tiles, and bundles of commitments.
//!
//! Invariants:
//! - every file is written under another name, synced, renamed, and its directory synced: it is there whole, or not at all;
//! - partial forms of a tile stay until the full one is durable and a checkpoint over it was published; on each path until it is durable there,
//!   since the checkpoint of a path that takes nothing any more needs them;
//! - files of a tree that comes to nothing go only once what remains of it lies in files of its own;
//! - of a log on several paths, whatever no published checkpoint covers is kept, until one does: another path that takes over has
//!   none of it.
//!
//! See C2SP tlog-tiles.

use crate::scan::stored_tree;
use bulla_proof::checkpoint::Checkpoint;
use bulla_proof::commitment::Commitment;
use bulla_proof::tile::{self, TileBuilder, TileId, TilePath};
use bulla_proof::tree::{self, TreeHead};
use bulla_store::{Error, Paths, Result, Store};
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

/// See the module.
pub(crate) struct TreeFiles {
    log: Arc<dyn Store>,
    /// Where files are written: the log, or of one on several paths that which takes what is written, in this turn.
    path: Arc<dyn Store>,
    turn: u64,
    tiles: TileBuilder,
    /// The entry bundle that is not full yet.
    bundle: Vec<u8>,
    /// Full tiles and bundles that are not written yet, of a log on several paths those that no published checkpoint covers yet.
    full: Vec<(String, Vec<u8>)>,
    /// How many of them, from the first on, are written on the path.
    written: usize,
    /// Full tiles and bundles whose partial forms can go once a checkpoint is published.
    superseded: Vec<String>,
    directories: HashSet<String>,
}

impl TreeFiles {
    /// Of the tree that the log in `log` has published, with the bundle at its edge.
    pub(crate) fn new(log: Arc<dyn Store>, (tiles, bundle): (TileBuilder, Vec<u8>)) -> Self {
        let (turn, path) = current(&log);
        TreeFiles {
            log,
            path,
            turn,
            tiles,
            bundle,
            full: Vec::new(),
            written: 0,
            superseded: Vec::new(),
            directories: HashSet::new(),
        }
    }

    /// The tree as it is, written or not.
    pub(crate) fn head(&self) -> TreeHead {
        TreeHead { size: self.tiles.size(), root: self.tiles.root() }
    }

    /// The tree as it is, to be grown by somebody else.
    pub(crate) fn tiles(&self) -> TileBuilder {
        self.tiles.clone()
    }

    /// How many full tiles and bundles are to be written.
    pub(crate) fn unwritten(&self) -> usize {
        self.full.len() - self.written
    }

    /// Has files be written to the path that takes what is written by now: all that it has nothing of is to be written there.
    pub(crate) fn keep_up(&mut self) {
        let (turn, path) = current(&self.log);
        if turn != self.turn {
            (self.turn, self.path, self.written) = (turn, path, 0);
            self.directories.clear();
        }
    }

    /// The path that files are written to, and its turn.
    pub(crate) fn path(&self) -> (u64, Arc<dyn Store>) {
        (self.turn, self.path.clone())
    }

    /// Adds a frame to the tree.
    pub(crate) fn push(&mut self, commitment: &[u8; Commitment::LENGTH]) {
        tile::push_bundle_entry(&mut self.bundle, commitment);
        let full = &mut self.full;
        self.tiles.push(tree::leaf_hash(commitment), &mut |id, hashes| {
            full.push((id.path(), tile::encode_tile(hashes)));
        });
        if tile::partial_width(self.tiles.size()) == 0 {
            let index = self.tiles.size() / u64::from(tile::FULL_WIDTH) - 1;
            let path = tile::entries_path(index, tile::FULL_WIDTH);
            self.full.push((path, std::mem::take(&mut self.bundle)));
        }
    }

    /// Writes the full tiles and bundles that are not written yet, durably.
    ///
    /// # Errors
    /// `Unavailable` where one cannot be written. Calling again goes on where it stopped.
    pub(crate) fn write_full(&mut self) -> Result<()> {
        while let Some((path, content)) = self.full.get(self.written).cloned() {
            self.write(&path, &content)?;
            self.written += 1;
        }
        if self.log.paths().is_none() {
            self.superseded.extend(self.full.drain(..).map(|(path, _)| path));
            self.written = 0;
        }
        Ok(())
    }

    /// Writes all that a checkpoint over the tree as it is needs, durably.
    ///
    /// # Errors
    /// As [`TreeFiles::write_full`].
    pub(crate) fn write_all(&mut self) -> Result<()> {
        self.write_full()?;
        for (path, content) in self.edge() {
            self.write(&path, &content)?;
        }
        Ok(())
    }

    /// Full tiles and bundles of a log on several paths that no published checkpoint covers yet, so that the other paths have none of them.
    pub(crate) fn unspread(&self) -> &[(String, Vec<u8>)] {
        &self.full
    }

    /// The files that a checkpoint over the tree as it is needs beside full tiles and bundles.
    pub(crate) fn edge(&self) -> Vec<(String, Vec<u8>)> {
        edge_of(&self.tiles, &self.bundle)
    }

    /// Writes a tile or bundle durably, with the directories above it.
    fn write(&mut self, path: &str, content: &[u8]) -> Result<()> {
        write_in(&*self.path, &mut self.directories, path, content)
    }

    /// Says that a checkpoint over all that was written is published: gives full tiles and bundles to the log's other paths, and
    /// removes partial ones whose full one it covers. One that cannot be removed harms nobody.
    pub(crate) fn published(&mut self) {
        let covered = self.full.drain(..std::mem::take(&mut self.written)).collect::<Vec<_>>();
        if let Some(paths) = self.log.paths().filter(|_| !covered.is_empty()) {
            paths.spread(&covered);
        }
        self.superseded.extend(covered.into_iter().map(|(path, _)| path));
        let stores = self.log.paths().map_or_else(|| vec![self.log.clone()], Paths::present);
        for path in self.superseded.drain(..) {
            for store in &stores {
                remove_partials(&**store, &path, Arc::ptr_eq(store, &self.path));
            }
            self.directories.remove(&format!("{path}.p"));
        }
    }
}

/// The files beside full tiles and bundles of a tree with these tiles, and this bundle at its edge.
fn edge_of(tiles: &TileBuilder, bundle: &[u8]) -> Vec<(String, Vec<u8>)> {
    let partials = tiles.partials().into_iter();
    let mut edge = partials.map(|(id, hashes)| (id.path(), tile::encode_tile(&hashes))).collect::<Vec<_>>();
    let width = tile::partial_width(tiles.size());
    if width > 0 {
        let path = tile::entries_path(tiles.size() / u64::from(tile::FULL_WIDTH), width);
        edge.push((path, bundle.to_vec()));
    }
    edge
}

/// Writes a tile or bundle durably, with the directories above it, but for those that are there for good.
fn write_in(store: &dyn Store, directories: &mut HashSet<String>, path: &str, content: &[u8]) -> Result<()> {
    let failed = |path: &str, error| Error::io(format!("writing {}", store.describe(path)), error);
    let directory = bulla_store::path::parent(path);
    if !directories.contains(directory) {
        store.create_directory(directory).map_err(|error| failed(directory, error))?;
        let mut above = directory;
        while !above.is_empty() {
            above = bulla_store::path::parent(above);
            store.sync_directory(above).map_err(|error| failed(above, error))?;
        }
        directories.insert(directory.to_owned());
    }
    bulla_store::replace(store, path, content).map_err(|error| failed(path, error))
}

/// Removes the partial forms of a tile or bundle on one path, where the full one is there for good, as it is where it was just `written`: the checkpoint of
/// a path that was not given it needs them.
fn remove_partials(store: &dyn Store, full: &str, written: bool) {
    let directory = format!("{full}.p");
    let Ok(items) = store.list(&directory) else { return };
    let is_durable =
        || store.open(full).is_ok() && store.sync_directory(bulla_store::path::parent(full)).is_ok();
    if !written && !is_durable() {
        return;
    }
    for item in items {
        // Nothing but tiles is the log's to remove: whoever controls the storage may have put a link to
        // another directory here.
        let path = format!("{directory}/{}", item.name);
        if tile::parse_path(&path).is_some() || is_unfinished(&path) {
            let _ = store.remove(&path);
        }
    }
    let _ = store.remove_directory(&directory);
}

/// The path that takes what is written to a log, by itself, and its turn.
pub(crate) fn current(log: &Arc<dyn Store>) -> (u64, Arc<dyn Store>) {
    log.paths().map_or_else(|| (0, log.clone()), Paths::current)
}

/// Whether this is the name of a tile or bundle that is being written.
fn is_unfinished(path: &str) -> bool {
    path.strip_suffix(".tmp").is_some_and(|path| tile::parse_path(path).is_some())
}

/// Removes what a writer that was killed left of tiles and bundles that it was writing, at the right edge of a tree of `size`
/// leaves: what it had begun further on, the next checkpoint writes again. One that cannot be removed harms nobody.
pub(crate) fn remove_unfinished(log: &dyn Store, size: u64) {
    let mut edge = vec![tile::entries_path(size / u64::from(tile::FULL_WIDTH), tile::FULL_WIDTH)];
    for level in 0..=7 {
        let at_level = size >> (8 * u32::from(level));
        let index = at_level / u64::from(tile::FULL_WIDTH);
        edge.push(TileId { level, index, width: tile::FULL_WIDTH }.path());
        if level > 0 && at_level == 0 {
            break;
        }
    }
    for full in edge {
        for directory in [bulla_store::path::parent(&full), &format!("{full}.p")] {
            for item in log.list(directory).unwrap_or_default() {
                let path = format!("{directory}/{}", item.name);
                if is_unfinished(&path) {
                    let _ = log.remove(&path);
                }
            }
        }
    }
}

/// Removes what is there of tiles and bundles that a tree with these tiles, and this bundle at its edge, has not got: they are of one that came to nothing.
/// A full one may be all that is left of the partial ones that remain, so these are written first.
///
/// # Errors
/// `Unavailable` where one cannot be written, and as [`remove_beyond`].
pub(crate) fn cut_back(log: &dyn Store, tiles: &TileBuilder, bundle: &[u8]) -> Result<()> {
    let mut directories = HashSet::new();
    for (path, content) in edge_of(tiles, bundle) {
        if stored_tree::read(log, &path)?.as_ref() != Some(&content) {
            write_in(log, &mut directories, &path, &content)?;
        }
    }
    remove_beyond(log, tiles.size())
}

/// Removes what is there of tiles and bundles that a tree of `size` leaves has not got: they are of one that came to nothing.
///
/// # Errors
/// `Unavailable` where the files cannot be listed, or one cannot be removed.
pub(crate) fn remove_beyond(log: &dyn Store, size: u64) -> Result<()> {
    for path in stored_tree::beyond(log, size)? {
        let removed = log.remove(&path);
        removed.map_err(|error| Error::io(format!("removing {}", log.describe(&path)), error))?;
    }
    Ok(())
}

/// Removes, durably, what a path has of a tree with frames that came to nothing, beyond the `covered` ones of its own checkpoint: what is partial,
/// and what is full, unless that, by its name and content, `is_of_log`.
///
/// # Errors
/// `Unavailable` where a file cannot be listed, read or removed.
pub(crate) fn remove_of_another_tree(
    path: &dyn Store,
    covered: u64,
    is_of_log: impl Fn(&str, &[u8]) -> Result<bool>,
) -> Result<()> {
    let mut directories = BTreeSet::new();
    for tile in stored_tree::beyond(path, covered)? {
        let full = if is_full(&tile) { stored_tree::read(path, &tile)? } else { None };
        if full.map_or(Ok(false), |full| is_of_log(&tile, &full))? {
            continue;
        }
        let removed = path.remove(&tile);
        removed.map_err(|error| Error::io(format!("removing {}", path.describe(&tile)), error))?;
        directories.insert(bulla_store::path::parent(&tile).to_owned());
    }
    for directory in directories {
        let synced = path.sync_directory(&directory);
        synced.map_err(|error| Error::io(format!("syncing {}", path.describe(&directory)), error))?;
    }
    Ok(())
}

/// Whether this is the name of a tile or bundle that is full, and written.
fn is_full(path: &str) -> bool {
    let width = match tile::parse_path(path) {
        Some(TilePath::Hashes(id)) => id.width,
        Some(TilePath::Entries { width, .. }) => width,
        None => 0,
    };
    width == tile::FULL_WIDTH
}

/// The partial tiles and the bundle at a tree's right edge, from the log's files, checked against `checkpoint`. Where a partial form is gone, since
/// the full one lies there, it is the beginning of that.
///
/// # Errors
/// `Tampered` where a file is missing or does not hash to the checkpoint's root, `Unavailable` where one cannot be read.
pub(crate) fn load_edge(log: &dyn Store, checkpoint: &Checkpoint) -> Result<(TileBuilder, Vec<u8>)> {
    let size = checkpoint.size;
    let missing = |path: &str| {
        let name = log.describe(path);
        Error::tampered(format!("{name} is missing, or no file of the tree; run `bulla verify`"))
    };
    let damaged =
        |what: &str| Error::tampered(format!("{what} does not belong to the checkpoint; run `bulla verify`"));
    let mut levels = Vec::new();
    for level in 0.. {
        let at_level = size >> (8 * u32::from(level));
        if at_level == 0 {
            break;
        }
        let width = tile::partial_width(at_level);
        levels.push(match width {
            0 => Vec::new(),
            _ => {
                let id = TileId { level, index: at_level / u64::from(tile::FULL_WIDTH), width };
                stored_tree::read_tile(log, id)?.ok_or_else(|| missing(&id.path()))?
            }
        });
        if level == 7 {
            break;
        }
    }
    let tiles = TileBuilder::resume(size, levels).ok_or_else(|| damaged("a tile"))?;
    if tiles.root() != checkpoint.root {
        return Err(damaged(&format!("a tile in {}", log.describe("tile"))));
    }
    let width = tile::partial_width(size);
    if width == 0 {
        return Ok((tiles, Vec::new()));
    }
    let index = size / u64::from(tile::FULL_WIDTH);
    let path = tile::entries_path(index, width);
    let entries = stored_tree::read_bundle(log, index, width)?.ok_or_else(|| missing(&path))?;
    let mut bundle = Vec::new();
    for entry in &entries {
        tile::push_bundle_entry(&mut bundle, entry);
    }
    let leaves = entries.iter().map(|entry| tree::leaf_hash(entry)).collect::<Vec<_>>();
    if tiles.level(0) != leaves {
        return Err(damaged(&log.describe(&path)));
    }
    Ok((tiles, bundle))
}

//! The checkpointer: makes what is durable provable, and publishes it signed.
//!
//! Order, each step durable before the next: tiles and bundles, their directories, the seal state, the pin where the log has one,
//! `checkpoint`.
//! Steps that failed are repeated by the next call; none of them is ever undone. Each file is written under another name,
//! synced, renamed, and its directory synced: without the last step the new name may be lost though the file is not (Pillai
//! et al., *All File Systems Are Not Created Equal*, OSDI 2014).
//!
//! See C2SP tlog-tiles and tlog-checkpoint.

use crate::format::config::{LogConfig, allowed::AllowedConfig};
use crate::keys::seal_state::SealState;
use crate::scan::stored_tree;
use crate::write::commit::Durable;
use crate::write::kept_pin::KeptPin;
use bulla_crypto::group::Subjects;
use bulla_crypto::seal_chain::SealChain;
use bulla_crypto::signing::SigningKey;
use bulla_proof::checkpoint::{Checkpoint, sign_checkpoint};
use bulla_proof::hash::Hash;
use bulla_proof::tile::{self, TileBuilder, TileId};
use bulla_proof::tree::{self, TreeHead};
use bulla_store::{Error, Paths, Result, Store};
use std::collections::HashSet;
use std::io;
use std::sync::Arc;

/// The name of the checkpoint's file.
pub(crate) const FILE: &str = "checkpoint";

/// Why a checkpoint was not published.
enum Unpublished {
    /// A file of the log could not be written.
    Log(Error),
    /// Something else failed: a file of the key directory, the vault, the pin.
    Other(Error),
}

impl Unpublished {
    fn into_error(self) -> Error {
        match self {
            Unpublished::Log(error) | Unpublished::Other(error) => error,
        }
    }
}

impl From<Error> for Unpublished {
    fn from(error: Error) -> Self {
        Unpublished::Other(error)
    }
}

/// See the module.
pub(crate) struct Checkpointer {
    log: Arc<dyn Store>,
    keys: Arc<dyn Store>,
    config: Arc<LogConfig>,
    signing: SigningKey,
    pin: Option<KeptPin>,
    /// Of a log with erasure.
    subjects: Option<Arc<dyn Subjects>>,
    /// Whether `subjects` has carried out all erasures that the log tells of: not before opening the log has seen to it.
    follows: bool,
    /// The number of frames that `subjects` was told of as signed, last.
    followed: u64,
    tiles: TileBuilder,
    /// The entry bundle that is not full yet.
    bundle: Vec<u8>,
    /// Full tiles and bundles that no published checkpoint covers yet.
    full: Vec<(String, Vec<u8>)>,
    /// How many of them, from the first on, are written on the path that the log is written to.
    written: usize,
    /// The turn of that path.
    turn: u64,
    /// Full tiles and bundles whose partial forms can go once a checkpoint is published.
    superseded: Vec<String>,
    directories: HashSet<String>,
    /// The seal chain after the last frame of the tree, which `[log]` may follow, and the number of frames up to the last event
    /// of a hold, where the tree has grown.
    ahead: Option<(SealChain, AllowedConfig, u64)>,
    published: TreeHead,
    /// Which `[log]` may follow what is published.
    terms: AllowedConfig,
}

impl Checkpointer {
    /// A checkpointer of a tree that was published up to what `tiles` and `bundle` hold.
    pub(crate) fn new(
        log: Arc<dyn Store>,
        keys: Arc<dyn Store>,
        config: Arc<LogConfig>,
        (signing, pin): (SigningKey, Option<KeptPin>),
        subjects: Option<Arc<dyn Subjects>>,
        followed: u64,
        (tiles, bundle): (TileBuilder, Vec<u8>),
    ) -> Self {
        let published = TreeHead { size: tiles.size(), root: tiles.root() };
        let terms = AllowedConfig::of(config.digest);
        Checkpointer {
            log,
            keys,
            config,
            signing,
            pin,
            subjects,
            follows: false,
            followed,
            tiles,
            bundle,
            full: Vec::new(),
            written: 0,
            turn: 0,
            superseded: Vec::new(),
            directories: HashSet::new(),
            ahead: None,
            published,
            terms,
        }
    }

    /// The tree that the published checkpoint covers.
    pub(crate) fn published(&self) -> TreeHead {
        self.published
    }

    /// Which `[log]` may follow what the published checkpoint covers.
    pub(crate) fn terms(&self) -> AllowedConfig {
        self.terms
    }

    /// Says that all erasures that the log tells of were carried out, as later ones will be.
    pub(crate) fn follow(&mut self) {
        self.follows = true;
    }

    /// Adds durable frames to the tree.
    pub(crate) fn add(&mut self, durable: Durable) {
        let Durable { commitments, chain, terms, holds } = durable;
        for commitment in &commitments {
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
        assert_eq!(
            chain.next_frame(),
            self.tiles.size(),
            "the seal chain and the tree cover the same frames"
        );
        self.ahead = Some((chain, terms, holds));
    }

    /// Publishes a checkpoint over all that was added. Returns whether there was anything new. Where the path that the log is written
    /// to fails, and another one takes over, it is published there.
    ///
    /// # Errors
    /// `Unavailable` where a file cannot be written. Calling again goes on where it stopped.
    pub(crate) fn publish(&mut self) -> Result<bool> {
        let log = self.log.clone();
        let Some(paths) = log.paths() else { return self.try_publish().map_err(Unpublished::into_error) };
        for _ in 0..paths.others() {
            match self.try_publish() {
                Err(Unpublished::Log(error)) => {
                    // An event tells it: names of directories are the host's affair.
                    let why = error.io_error().map_or_else(String::new, |error| format!(": {error}"));
                    if !paths.fail_over(self.turn, &format!("checkpointing{why}")) {
                        return Err(error);
                    }
                }
                published => return published.map_err(Unpublished::into_error),
            }
        }
        self.try_publish().map_err(Unpublished::into_error)
    }

    fn try_publish(&mut self) -> Result<bool, Unpublished> {
        let size = self.tiles.size();
        let Some((chain, terms, holds)) = self.ahead.clone() else { return Ok(false) };
        let turn = self.log.paths().map_or(0, Paths::turn);
        if std::mem::replace(&mut self.turn, turn) != turn {
            // On the new path is nothing of the tree that is not published yet.
            self.written = 0;
            self.directories.clear();
        }
        while let Some((path, content)) = self.full.get(self.written).cloned() {
            self.write(&path, &content)?;
            self.written += 1;
        }
        for (id, hashes) in self.tiles.partials() {
            self.write(&id.path(), &tile::encode_tile(&hashes))?;
        }
        let width = tile::partial_width(size);
        if width > 0 {
            let path = tile::entries_path(size / u64::from(tile::FULL_WIDTH), width);
            let bundle = self.bundle.clone();
            self.write(&path, &bundle)?;
        }
        let head = TreeHead { size, root: self.tiles.root() };
        let root = head.root;
        let subjects = self.subjects.as_ref().map_or(Ok(0), |subjects| subjects.next_number())?;
        if let Some(subjects) = self.subjects.as_ref().filter(|_| self.follows) {
            subjects.signs(head)?;
            self.followed = size;
        }
        let (log, followed) = (self.config.id, self.followed);
        SealState { log, terms, chain, root, subjects, followed, holds }.save(&*self.keys)?;
        let note = signed_note(&self.config.origin, size, root, &self.signing);
        if let Some(pin) = &mut self.pin {
            pin.advance((&*self.log, &self.config.verifier_key), head, &note)?;
        }
        bulla_store::replace(&*self.log, FILE, note.as_bytes()).map_err(|error| self.failed(FILE, error))?;
        (self.published, self.terms) = (head, terms);
        self.ahead = None;
        let full = std::mem::take(&mut self.full);
        self.written = 0;
        if let Some(paths) = self.log.paths() {
            paths.published(note.as_bytes());
            full.iter().for_each(|(path, content)| paths.spread(path, content));
        }
        self.superseded.extend(full.into_iter().map(|(path, _)| path));
        self.remove_superseded();
        Ok(true)
    }

    fn failed(&self, path: &str, error: io::Error) -> Unpublished {
        Unpublished::Log(Error::io(format!("writing {}", self.log.describe(path)), error))
    }

    /// Writes a tile or bundle durably, with the directories above it.
    fn write(&mut self, path: &str, content: &[u8]) -> Result<(), Unpublished> {
        let directory = bulla_store::path::parent(path);
        if !self.directories.contains(directory) {
            self.log.create_directory(directory).map_err(|error| self.failed(directory, error))?;
            let mut above = directory;
            while !above.is_empty() {
                above = bulla_store::path::parent(above);
                self.log.sync_directory(above).map_err(|error| self.failed(above, error))?;
            }
            self.directories.insert(directory.to_owned());
        }
        bulla_store::replace(&*self.log, path, content).map_err(|error| self.failed(path, error))
    }

    /// Removes partial tiles whose full one is published. One that cannot be removed harms nobody.
    fn remove_superseded(&mut self) {
        for path in self.superseded.drain(..) {
            let directory = format!("{path}.p");
            for item in self.log.list(&directory).unwrap_or_default() {
                // Nothing but tiles is the log's to remove: whoever controls the storage may have put a link to
                // another directory here.
                let path = format!("{directory}/{}", item.name);
                if tile::parse_path(&path).is_some() || is_unfinished(&path) {
                    let _ = self.log.remove(&path);
                }
            }
            let _ = self.log.remove_directory(&directory);
            self.directories.remove(&directory);
        }
    }
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

/// A checkpoint as a signed note.
pub(crate) fn signed_note(origin: &str, size: u64, root: Hash, key: &SigningKey) -> String {
    let checkpoint = Checkpoint { origin: origin.to_owned(), size, root, extensions: Vec::new() };
    sign_checkpoint(&checkpoint, key.verifier(), |text| key.sign(text))
}

/// The partial tiles and the bundle at a tree's right edge, from the log's files, checked against `checkpoint`.
///
/// # Errors
/// `Tampered` where a file is missing or does not hash to the checkpoint's root, `Unavailable` where one cannot be read.
pub(crate) fn load_edge(log: &dyn Store, checkpoint: &Checkpoint) -> Result<(TileBuilder, Vec<u8>)> {
    let size = checkpoint.size;
    let read = |path: String| -> Result<Vec<u8>> {
        let name = log.describe(&path);
        let missing =
            || Error::tampered(format!("{name} is missing, or no file of the tree; run `bulla verify`"));
        stored_tree::read(log, &path)?.ok_or_else(missing)
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
                tile::parse_tile(&read(id.path())?, width).map_err(|_| damaged(&log.describe(&id.path())))?
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
    let path = tile::entries_path(size / u64::from(tile::FULL_WIDTH), width);
    let bundle = read(path.clone())?;
    let entries = tile::parse_bundle(&bundle, width).map_err(|_| damaged(&log.describe(&path)))?;
    let leaves = entries.into_iter().map(tree::leaf_hash).collect::<Vec<_>>();
    if tiles.level(0) != leaves {
        return Err(damaged(&log.describe(&path)));
    }
    Ok((tiles, bundle))
}

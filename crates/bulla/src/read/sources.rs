//! The tree as it is stored: what tiles and bundles say of each frame, and whether they say what the log says.

use crate::error::{Error, Result};
use crate::finding::{Finding, FindingKind, Findings};
use crate::keys;
use crate::store::Store;
use bulla_proof::commitment::Commitment;
use bulla_proof::hash::Hash;
use bulla_proof::tile::{self, FULL_WIDTH, TileId, TilePath};
use bulla_proof::tree;
use std::io;

/// An encoded commitment.
pub(crate) type Encoded = [u8; Commitment::LENGTH];

const WIDTH: u64 = FULL_WIDTH as u64;
/// The largest tile or bundle that is read, in bytes.
const LIMIT: u64 = (2 + Commitment::LENGTH as u64) * WIDTH;

/// What the files of the tree say of 256 frames.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    index: Option<u64>,
    leaves: Option<Vec<Hash>>,
    entries: Option<Vec<Encoded>>,
}

impl Chunk {
    /// The leaf of a frame as the tile has it.
    pub(crate) fn leaf(&self, frame: u64) -> Option<Hash> {
        self.leaves.as_ref()?.get(at(frame)).copied()
    }

    /// The commitment of a frame as the bundle has it.
    pub(crate) fn entry(&self, frame: u64) -> Option<Encoded> {
        self.entries.as_ref()?.get(at(frame)).copied()
    }

    /// Whether it tells nothing of any frame.
    pub(crate) fn is_empty(&self) -> bool {
        self.leaves.is_none() && self.entries.is_none()
    }

    /// Whether it has `frame`.
    pub(crate) fn covers(&self, frame: u64) -> bool {
        self.index == Some(frame / WIDTH)
    }

    /// Loads the chunk of `frame` in a tree of `size`.
    pub(crate) fn load(store: &dyn Store, frame: u64, size: u64) -> Result<Self> {
        let index = frame / WIDTH;
        let width = u16::try_from((size - index * WIDTH).min(WIDTH)).unwrap_or(FULL_WIDTH);
        let leaves = read_tile(store, TileId { level: 0, index, width })?;
        Ok(Chunk { index: Some(index), leaves, entries: read_bundle(store, index, width)? })
    }
}

fn at(frame: u64) -> usize {
    (frame % WIDTH) as usize
}

/// Reads a tile; `None` where it is missing or malformed.
fn read_tile(store: &dyn Store, id: TileId) -> Result<Option<Vec<Hash>>> {
    let full = TileId { width: FULL_WIDTH, ..id };
    if let Some(bytes) = read(store, &id.path())? {
        return Ok(tile::parse_tile(&bytes, id.width).ok());
    }
    // A live writer may have replaced the partial tile by the full one meanwhile.
    let hashes = read(store, &full.path())?.and_then(|bytes| tile::parse_tile(&bytes, FULL_WIDTH).ok());
    Ok(hashes.map(|mut hashes| {
        hashes.truncate(id.width as usize);
        hashes
    }))
}

/// Reads a bundle of commitments; `None` where it is missing or malformed.
fn read_bundle(store: &dyn Store, index: u64, width: u16) -> Result<Option<Vec<Encoded>>> {
    let parse = |bytes: Vec<u8>, stored: u16| -> Option<Vec<Encoded>> {
        let entries = tile::parse_bundle(&bytes, stored).ok()?;
        entries.into_iter().take(width as usize).map(|entry| entry.try_into().ok()).collect()
    };
    if let Some(bytes) = read(store, &tile::entries_path(index, width))? {
        return Ok(parse(bytes, width));
    }
    Ok(read(store, &tile::entries_path(index, FULL_WIDTH))?.and_then(|bytes| parse(bytes, FULL_WIDTH)))
}

/// Reads a file of the tree; `None` where it is missing, no file at all, or too large to be one of the tree's.
fn read(store: &dyn Store, path: &str) -> Result<Option<Vec<u8>>> {
    match keys::read_small(store, path, LIMIT) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) => match error.io_error().map(io::Error::kind) {
            None
            | Some(
                io::ErrorKind::NotFound
                | io::ErrorKind::UnexpectedEof
                | io::ErrorKind::IsADirectory
                | io::ErrorKind::NotADirectory
                | io::ErrorKind::InvalidInput,
            ) => Ok(None),
            Some(_) => Err(error),
        },
    }
}

/// Compares a tile's stored forms, the partial ones that are still there included, with `hashes`.
pub(crate) fn check_tile(
    store: &dyn Store,
    id: TileId,
    hashes: &[Hash],
    findings: &mut Findings,
) -> Result<()> {
    if read_tile(store, id)?.as_deref() != Some(hashes) {
        findings.add(damaged(FindingKind::TileDamaged, &id.path(), id.level, id.index));
    }
    for width in partial_widths(store, &TileId { width: FULL_WIDTH, ..id }.path(), id.width)? {
        let partial = TileId { width, ..id };
        if read_tile(store, partial)?.as_deref() != Some(&hashes[..width as usize]) {
            findings.add(damaged(FindingKind::TileDamaged, &partial.path(), id.level, id.index));
        }
    }
    if id.level == 0 {
        check_bundle(store, id, hashes, findings)?;
    }
    Ok(())
}

/// Compares a bundle's stored forms with the leaves that its entries must have.
fn check_bundle(store: &dyn Store, id: TileId, leaves: &[Hash], findings: &mut Findings) -> Result<()> {
    let full = tile::entries_path(id.index, FULL_WIDTH);
    let mut widths = partial_widths(store, &full, id.width)?;
    widths.push(id.width);
    for width in widths {
        let entries = read_bundle(store, id.index, width)?;
        let matches = entries.is_some_and(|entries| {
            entries.len() == width as usize
                && entries.iter().zip(leaves).all(|(entry, leaf)| tree::leaf_hash(entry) == *leaf)
        });
        if !matches {
            let path = tile::entries_path(id.index, width);
            findings.add(damaged(FindingKind::BundleDamaged, &path, 0, id.index));
        }
    }
    Ok(())
}

fn damaged(kind: FindingKind, path: &str, level: u8, index: u64) -> Finding {
    let span = WIDTH.saturating_pow(u32::from(level) + 1);
    let (first, last) = (index.saturating_mul(span), (index + 1).saturating_mul(span) - 1);
    let mut finding = Finding::new(kind, format!("{path} is missing or not what the log's frames come to"));
    finding.frame = Some(first);
    finding.last_frame = Some(last);
    finding
}

/// The widths, other than `width`, of the partial forms of a tile that lie beside it.
fn partial_widths(store: &dyn Store, full: &str, width: u16) -> Result<Vec<u16>> {
    let directory = format!("{full}.p");
    let items = match store.list(&directory) {
        Ok(items) => items,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::io(format!("listing {}", store.describe(&directory)), error)),
    };
    let widths = items.into_iter().filter_map(|item| item.name.parse().ok());
    Ok(widths.filter(|&other| other < width).collect())
}

/// Tells of files that do not belong to a log. Beside a live writer, files that it is about to rename do.
pub(crate) fn check_files(store: &dyn Store, live: bool, findings: &mut Findings) -> Result<()> {
    let mut unknown = |path: &str| {
        if !(live && path.ends_with(".tmp")) {
            findings.add(Finding::new(FindingKind::UnknownFile, format!("{path} does not belong to a log")));
        }
    };
    const KNOWN: [&str; 5] = [
        crate::config::FILE,
        crate::checkpoint::FILE,
        crate::engine::LOCK,
        crate::segment::DIRECTORY,
        "tile",
    ];
    for item in list(store, "")? {
        if !KNOWN.contains(&item.name.as_str()) {
            unknown(&item.name);
        }
    }
    for other in crate::segment::list(store)?.1 {
        unknown(&format!("{}/{other}", crate::segment::DIRECTORY));
    }
    let mut directories = vec!["tile".to_owned()];
    while let Some(directory) = directories.pop() {
        for item in list(store, &directory)? {
            let path = format!("{directory}/{}", item.name);
            match (item.directory, tile::parse_path(&path)) {
                (true, _) => directories.push(path),
                (false, Some(TilePath::Hashes(_) | TilePath::Entries { .. })) => {}
                (false, None) => unknown(&path),
            }
        }
    }
    Ok(())
}

fn list(store: &dyn Store, directory: &str) -> Result<Vec<crate::store::Item>> {
    match store.list(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        items => items.map_err(|error| Error::io(format!("listing {}", store.describe(directory)), error)),
    }
}

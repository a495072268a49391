//! The tree as it is stored: what tiles and bundles say of each frame, and whether they say what the log says.

use crate::format::files;
use crate::scan::finding::{Finding, FindingKind, Findings};
use bulla_proof::commitment::Commitment;
use bulla_proof::hash::Hash;
use bulla_proof::tile::{self, FULL_WIDTH, TileId, TilePath};
use bulla_proof::tree;
use bulla_store::Store;
use bulla_store::{Error, Result};
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
        self.leaves.as_ref().filter(|_| self.covers(frame))?.get(at(frame)).copied()
    }

    /// The commitment of a frame as the bundle has it.
    pub(crate) fn entry(&self, frame: u64) -> Option<Encoded> {
        self.entries.as_ref().filter(|_| self.covers(frame))?.get(at(frame)).copied()
    }

    /// The commitment of a frame, where tile and bundle agree.
    pub(crate) fn agreed(&self, frame: u64) -> Option<Encoded> {
        self.entry(frame).filter(|entry| self.leaf(frame) == Some(tree::leaf_hash(entry)))
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

/// The nodes over the first `count` bundles, as tiles have them; fewer where one is missing or malformed.
pub(crate) fn nodes(store: &dyn Store, count: u64) -> Result<Vec<Hash>> {
    let mut nodes = Vec::new();
    for index in 0..count.div_ceil(WIDTH) {
        let width = u16::try_from((count - index * WIDTH).min(WIDTH)).unwrap_or(FULL_WIDTH);
        let Some(tile) = read_tile(store, TileId { level: 1, index, width })? else { break };
        nodes.extend(tile);
    }
    Ok(nodes)
}

/// Reads a bundle of commitments; `None` where it is missing or malformed.
pub(crate) fn read_bundle(store: &dyn Store, index: u64, width: u16) -> Result<Option<Vec<Encoded>>> {
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
///
/// # Errors
/// `Unavailable` where the system fails to read it, which says nothing of what is in it.
pub(crate) fn read(store: &dyn Store, path: &str) -> Result<Option<Vec<u8>>> {
    match bulla_store::read_small(store, path, LIMIT) {
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
    let full = TileId { width: FULL_WIDTH, ..id }.path();
    for width in widths(store, &full, id.width)? {
        let stored = read_tile(store, TileId { width, ..id })?;
        let expected = &hashes[..usize::from(width)];
        let differing = stored.map(|stored| differing(expected.iter().zip(&stored).map(|(a, b)| a == b)));
        let path = TileId { width, ..id }.path();
        told(FindingKind::TileDamaged, &path, id, width, differing, findings);
    }
    if id.level > 0 {
        return Ok(());
    }
    for width in widths(store, &tile::entries_path(id.index, FULL_WIDTH), id.width)? {
        let stored = read_bundle(store, id.index, width)?;
        let matches = |(entry, leaf): (&Encoded, &Hash)| tree::leaf_hash(entry) == *leaf;
        let differing = stored.map(|stored| differing(stored.iter().zip(hashes).map(matches)));
        let path = tile::entries_path(id.index, width);
        told(FindingKind::BundleDamaged, &path, id, width, differing, findings);
    }
    Ok(())
}

/// The first and the last that does not match, if any.
fn differing(matches: impl Iterator<Item = bool>) -> Option<(u64, u64)> {
    (0..).zip(matches).filter(|(_, matches)| !matches).fold(None, |range, (at, _)| match range {
        None => Some((at, at)),
        Some((first, _)) => Some((first, at)),
    })
}

/// Tells of a stored form of which some places differ, or which (`None`) cannot be read at all.
fn told(
    kind: FindingKind,
    path: &str,
    id: TileId,
    width: u16,
    differing: Option<Option<(u64, u64)>>,
    findings: &mut Findings,
) {
    let (detail, (first, last)) = match differing {
        Some(None) => return,
        Some(Some(places)) => ("is not what the log's frames come to", places),
        None => ("is missing or malformed", (0, u64::from(width) - 1)),
    };
    let span = WIDTH.saturating_pow(u32::from(id.level));
    let frame = |place: u64| (id.index.saturating_mul(WIDTH).saturating_add(place)).saturating_mul(span);
    let mut finding = Finding::new(kind, format!("{path} {detail}")).frame(frame(first));
    finding.last_frame = Some(frame(last + 1) - 1);
    findings.add(finding);
}

/// `width`, and the widths below it of the partial forms of a tile that lie beside it.
fn widths(store: &dyn Store, full: &str, width: u16) -> Result<Vec<u16>> {
    let directory = format!("{full}.p");
    let mut widths = vec![width];
    let partial = |item: bulla_store::Item| match tile::parse_path(&format!("{directory}/{}", item.name))? {
        TilePath::Hashes(TileId { width, .. }) | TilePath::Entries { width, .. } => Some(width),
    };
    let items = list(store, &directory)?;
    widths.extend(items.into_iter().filter_map(partial).filter(|&other| other < width));
    Ok(widths)
}

/// The indexes of the bundles that are there, in order.
pub(crate) fn bundles(store: &dyn Store) -> Result<Vec<u64>> {
    let mut indexes = Vec::new();
    visit(store, "tile/entries", &mut |path| {
        if let Some(TilePath::Entries { index, .. }) = tile::parse_path(path) {
            indexes.push(index);
        }
    })?;
    indexes.sort_unstable();
    indexes.dedup();
    Ok(indexes)
}

/// Calls `file` with the path of every file in a directory and below.
fn visit(store: &dyn Store, directory: &str, file: &mut dyn FnMut(&str)) -> Result<()> {
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for item in list(store, &directory)? {
            let path = format!("{directory}/{}", item.name);
            match item.directory {
                true => directories.push(path),
                false => file(&path),
            }
        }
    }
    Ok(())
}

/// Tells of files that do not belong to a log whose tree has `size` leaves, and that nothing else looks at.
///
/// Beside a live writer, files that it is about to rename do.
pub(crate) fn check_files(store: &dyn Store, size: u64, live: bool, findings: &mut Findings) -> Result<()> {
    let mut unknown = |path: &str| {
        if !(live && path.ends_with(".tmp")) {
            findings.add(Finding::new(FindingKind::UnknownFile, format!("{path} does not belong to a log")));
        }
    };
    const KNOWN: [&str; 7] = [
        crate::format::config::FILE,
        crate::format::config::LOCK,
        files::CHECKPOINT,
        files::LOCK,
        crate::format::segment::DIRECTORY,
        "tile",
        files::INDEX,
    ];
    for item in list(store, "")? {
        if !KNOWN.contains(&item.name.as_str()) {
            unknown(&item.name);
        }
    }
    for item in list(store, files::INDEX)? {
        let path = format!("{}/{}", files::INDEX, item.name);
        // A link, or what is no file at all: nobody else tells, since nothing rests on the index.
        let is_none = || store.open(&path).is_err_and(|error| error.kind() == io::ErrorKind::InvalidInput);
        if item.directory || files::parse_index_name(&item.name).is_none() || is_none() {
            unknown(&path);
        }
    }
    for other in crate::format::segment::list(store)?.1 {
        unknown(&format!("{}/{other}", crate::format::segment::DIRECTORY));
    }
    visit(store, "tile", &mut |path| {
        let known = match tile::parse_path(path) {
            Some(TilePath::Hashes(id)) => reaches(id, size),
            Some(TilePath::Entries { index, width }) => reaches(TileId { level: 0, index, width }, size),
            None => false,
        };
        if !known {
            unknown(path);
        }
    })
}

/// Whether a tree of `size` leaves has had a tile.
fn reaches(id: TileId, size: u64) -> bool {
    let at_level = size.checked_shr(8 * u32::from(id.level)).unwrap_or(0);
    id.index.saturating_mul(WIDTH).saturating_add(u64::from(id.width)) <= at_level
}

fn list(store: &dyn Store, directory: &str) -> Result<Vec<bulla_store::Item>> {
    match store.list(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        items => items.map_err(|error| Error::io(format!("listing {}", store.describe(directory)), error)),
    }
}

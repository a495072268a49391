//! The tree as it is stored: what tiles and bundles say of each frame, and whether they say what the log says.

use crate::format::files;
use crate::scan::finding::{Finding, FindingKind, Findings};
use bulla_proof::commitment::Commitment;
use bulla_proof::hash::Hash;
use bulla_proof::tile::{self, FULL_WIDTH, TileId, TilePath};
use bulla_proof::tree::{self, TreeHead};
use bulla_store::{Error, Result};
use bulla_store::{Paths, Store};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

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
pub(crate) fn read_tile(store: &dyn Store, id: TileId) -> Result<Option<Vec<Hash>>> {
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
    nodes_or(store, count, |_| Ok(None))
}

/// The same, with the nodes over these bundles from elsewhere where a tile is missing or malformed.
fn nodes_or(
    store: &dyn Store,
    count: u64,
    elsewhere: impl Fn(Range<u64>) -> Result<Option<Vec<Hash>>>,
) -> Result<Vec<Hash>> {
    let mut nodes = Vec::new();
    for index in 0..count.div_ceil(WIDTH) {
        let bundles = index * WIDTH..count.min((index + 1) * WIDTH);
        let width = u16::try_from(bundles.end - bundles.start).unwrap_or(FULL_WIDTH);
        let tile = match read_tile(store, TileId { level: 1, index, width })? {
            None => elsewhere(bundles)?,
            tile => tile,
        };
        let Some(tile) = tile else { break };
        nodes.extend(tile);
    }
    Ok(nodes)
}

/// The leaves of a bundle: as their tile has them, or, where that is missing or malformed, by their commitments.
fn leaves_or_entries(store: &dyn Store, index: u64, width: u16) -> Result<Option<Vec<Hash>>> {
    match read_tile(store, TileId { level: 0, index, width })? {
        None => {
            let entries = read_bundle(store, index, width)?;
            Ok(entries.map(|entries| entries.iter().map(|entry| tree::leaf_hash(entry)).collect()))
        }
        leaves => Ok(leaves),
    }
}

/// The root over the first `size` leaves of the tree `of`, which has so many at least; `None` where the tiles do not come to the
/// root of that tree, so that they say nothing of it.
///
/// # Errors
/// `Unavailable` where a tile cannot be read.
pub(crate) fn root_at(store: &dyn Store, of: TreeHead, size: u64) -> Result<Option<Hash>> {
    let leaves = |index, width| read_tile(store, TileId { level: 0, index, width });
    root_over((of, size), nodes(store, of.size / WIDTH)?, leaves)
}

/// The same, where a tile that is missing or malformed is made up from what is below it, the commitments at last. Where all tiles are there
/// nothing else is read.
///
/// # Errors
/// As [`root_at`].
pub(crate) fn root_at_without_tiles(store: &dyn Store, of: TreeHead, size: u64) -> Result<Option<Hash>> {
    let nodes = nodes_or_below(store, of.size / WIDTH)?;
    root_over((of, size), nodes, |index, width| leaves_or_entries(store, index, width))
}

/// The nodes over the whole bundles of the tree `of`, with tiles made up in the same way; `None` where what is stored does not come to its root, so that
/// it says nothing of it.
///
/// # Errors
/// As [`root_at`].
pub(crate) fn nodes_of(store: &dyn Store, of: TreeHead) -> Result<Option<Vec<Hash>>> {
    let nodes = nodes_or_below(store, of.size / WIDTH)?;
    let root =
        root_over((of, of.size), nodes.clone(), |index, width| leaves_or_entries(store, index, width))?;
    Ok(root.map(|_| nodes))
}

/// Whether a full tile or bundle, by its name and content, is of the tree with these nodes over its whole bundles.
pub(crate) fn is_under(nodes: &[Hash], path: &str, content: &[u8]) -> bool {
    let (level, index, hashes) = match tile::parse_path(path) {
        Some(TilePath::Hashes(id)) => (id.level, id.index, tile::parse_tile(content, FULL_WIDTH).ok()),
        Some(TilePath::Entries { index, .. }) => {
            let entries = tile::parse_bundle(content, FULL_WIDTH).ok();
            (0, index, entries.map(|entries| entries.into_iter().map(tree::leaf_hash).collect()))
        }
        None => return false,
    };
    let span = WIDTH.saturating_pow(u32::from(level));
    let at = |index: u64| usize::try_from(index.saturating_mul(span)).unwrap_or(usize::MAX);
    let under = nodes.get(at(index)..at(index.saturating_add(1)));
    hashes.zip(under).is_some_and(|(hashes, under)| tile::tile_hash(&hashes) == tile::tile_hash(under))
}

/// The nodes over the first `count` bundles, where a tile that is missing or malformed is made up from what is below it.
fn nodes_or_below(store: &dyn Store, count: u64) -> Result<Vec<Hash>> {
    nodes_or(store, count, |bundles| {
        let node =
            |index| Ok(leaves_or_entries(store, index, FULL_WIDTH)?.map(|leaves| tile::tile_hash(&leaves)));
        bundles.map(node).collect()
    })
}

/// The root over the first `size` leaves, by the nodes over whole bundles and the leaves of others.
fn root_over(
    (of, size): (TreeHead, u64),
    mut nodes: Vec<Hash>,
    leaves: impl Fn(u64, u16) -> Result<Option<Vec<Hash>>>,
) -> Result<Option<Hash>> {
    let leaves =
        |index: u64| leaves(index, u16::try_from((of.size - index * WIDTH).min(WIDTH)).unwrap_or(FULL_WIDTH));
    let (whole, bundles) = (of.size / WIDTH, size / WIDTH);
    if !of.size.is_multiple_of(WIDTH) {
        let Some(edge) = leaves(whole)? else { return Ok(None) };
        nodes.push(tile::tile_hash(&edge));
    }
    // Fewer could come to the same root, each of them standing for two.
    if nodes.len() as u64 != of.size.div_ceil(WIDTH) || tile::tile_hash(&nodes) != of.root {
        return Ok(None);
    }
    let rest = (size % WIDTH) as usize;
    let over = usize::try_from(bundles).ok().and_then(|at| nodes.get(at).copied());
    nodes.truncate(usize::try_from(bundles).unwrap_or(usize::MAX));
    if rest > 0 {
        let Some(leaves) = leaves(bundles)?.filter(|leaves| over == Some(tile::tile_hash(leaves))) else {
            return Ok(None);
        };
        let Some(first) = leaves.get(..rest) else { return Ok(None) };
        nodes.push(tile::tile_hash(first));
    }
    Ok(Some(tile::tile_hash(&nodes)))
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
        let expected = &hashes[..usize::from(width)];
        each_form(store, &TileId { width, ..id }.path(), |store, path| {
            let stored = read_tile(store, TileId { width, ..id })?;
            let differing = stored.map(|stored| differing(expected.iter().zip(&stored).map(|(a, b)| a == b)));
            told(FindingKind::TileDamaged, path, id, width, differing, findings);
            Ok(())
        })?;
    }
    if id.level > 0 {
        return Ok(());
    }
    for width in widths(store, &tile::entries_path(id.index, FULL_WIDTH), id.width)? {
        let matches = |(entry, leaf): (&Encoded, &Hash)| tree::leaf_hash(entry) == *leaf;
        each_form(store, &tile::entries_path(id.index, width), |store, path| {
            let stored = read_bundle(store, id.index, width)?;
            let differing = stored.map(|stored| differing(stored.iter().zip(hashes).map(matches)));
            told(FindingKind::BundleDamaged, path, id, width, differing, findings);
            Ok(())
        })?;
    }
    Ok(())
}

/// Calls `check` with the store, and the name of a file for people; of a log on several paths with each of them that has the file.
fn each_form(
    store: &dyn Store,
    path: &str,
    mut check: impl FnMut(&dyn Store, &str) -> Result<()>,
) -> Result<()> {
    let mut holding = store.paths().map_or_else(Vec::new, Paths::present);
    holding.retain(|on_path| on_path.open(path).is_ok());
    if holding.is_empty() {
        return check(store, path);
    }
    holding.iter().try_for_each(|on_path| check(&**on_path, &on_path.describe(path)))
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

/// Of all bundles of which there is a file, the index and the width of the widest, ascending.
pub(crate) fn widest_bundles(store: &dyn Store) -> Result<BTreeMap<u64, u16>> {
    let mut widest = BTreeMap::new();
    visit(store, "tile/entries", &mut |path| {
        if let Some(TilePath::Entries { index, width }) = tile::parse_path(path) {
            let known = widest.entry(index).or_insert(width);
            *known = width.max(*known);
        }
    })?;
    Ok(widest)
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
    const KNOWN: [&str; 12] = [
        crate::format::config::FILE,
        crate::format::config::arriving::NEXT,
        crate::format::config::LOCK,
        files::CHECKPOINT,
        files::WITNESSED,
        files::COSE_CHECKPOINT,
        files::COSIGNED,
        files::LOCK,
        crate::format::segment::DIRECTORY,
        "tile",
        files::INDEX,
        files::PATH,
    ];
    for item in list(store, "")? {
        if !KNOWN.contains(&item.name.as_str()) {
            unknown(&item.name);
        }
    }
    for directory in [files::INDEX, files::COSIGNED] {
        if store.list(directory).is_err_and(|error| error.kind() == io::ErrorKind::NotADirectory) {
            unknown(&format!("{directory}, which is no directory,"));
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
    for item in list(store, files::COSIGNED)? {
        if item.directory || !files::is_cosigned_name(&item.name) {
            unknown(&format!("{}/{}", files::COSIGNED, item.name));
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

/// The paths of tiles and bundles that a tree of `size` leaves has not had yet, and of those that were being written.
pub(crate) fn beyond(store: &dyn Store, size: u64) -> Result<Vec<String>> {
    let mut beyond = Vec::new();
    visit(store, "tile", &mut |path| {
        let finished = path.strip_suffix(".tmp").unwrap_or(path);
        let is_beyond = match tile::parse_path(finished) {
            Some(TilePath::Hashes(id)) => !reaches(id, size),
            Some(TilePath::Entries { index, width }) => !reaches(TileId { level: 0, index, width }, size),
            None => false,
        };
        if is_beyond || finished != path && tile::parse_path(finished).is_some() {
            beyond.push(path.to_owned());
        }
    })?;
    Ok(beyond)
}

/// Whether a tree of `size` leaves has had a tile.
fn reaches(id: TileId, size: u64) -> bool {
    let at_level = size.checked_shr(8 * u32::from(id.level)).unwrap_or(0);
    id.index.saturating_mul(WIDTH).saturating_add(u64::from(id.width)) <= at_level
}

/// What is in a directory; nothing where it is not there, or is none.
fn list(store: &dyn Store, directory: &str) -> Result<Vec<bulla_store::Item>> {
    match store.list(directory) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(Vec::new())
        }
        items => items.map_err(|error| Error::io(format!("listing {}", store.describe(directory)), error)),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use bulla_proof::hash::sha256;
    use bulla_proof::tile::TileBuilder;
    use bulla_testkit::Memory;
    use std::collections::BTreeSet;

    /// The tiles of a tree of `size` leaves, and the root of each size up to that.
    pub(crate) fn stored(size: u64) -> (Memory, Vec<Hash>) {
        let (store, mut tiles, mut roots) = (Memory::new(), TileBuilder::new(), vec![tree::empty_root()]);
        let write = |id: TileId, hashes: &[Hash]| {
            let path = id.path();
            store.create_directory(bulla_store::path::parent(&path)).unwrap();
            bulla_store::replace(&store, &path, &tile::encode_tile(hashes)).unwrap();
        };
        for leaf in 0..size {
            tiles.push(sha256(&[&leaf.to_le_bytes()]), &mut |id, hashes| write(id, hashes));
            roots.push(tiles.root());
        }
        tiles.partials().into_iter().for_each(|(id, hashes)| write(id, &hashes));
        (store, roots)
    }

    pub(crate) fn head(roots: &[Hash], size: u64) -> TreeHead {
        TreeHead { size, root: roots[usize::try_from(size).unwrap()] }
    }

    #[test]
    fn the_root_of_any_earlier_size_is_known_from_the_tiles() {
        for size in [0, 1, 2, 255, 256, 257, 511, 512, 700] {
            let (store, roots) = stored(size);
            for earlier in 0..=size {
                let found = root_at(&store, head(&roots, size), earlier).unwrap();
                assert_eq!(found, Some(head(&roots, earlier).root), "{earlier} of {size}");
            }
        }
        // Where the tiles of level 1 are two.
        let size = 256 * 256 + 300;
        let (store, roots) = stored(size);
        for earlier in [0, 1, 255, 256, 4097, 65535, 65536, 65537, 65791, 65792, 65793, size - 1, size] {
            let found = root_at(&store, head(&roots, size), earlier).unwrap();
            assert_eq!(found, Some(head(&roots, earlier).root), "{earlier} of {size}");
        }
    }

    #[test]
    fn tiles_that_do_not_come_to_the_root_say_nothing() {
        let (store, roots) = stored(700);
        let whole = head(&roots, 700);
        assert_eq!(root_at(&store, TreeHead { root: Hash([7; 32]), ..whole }, 300).unwrap(), None);
        assert_eq!(
            root_at(&store, head(&roots, 699), 300).unwrap(),
            None,
            "the tree has no tile of that size"
        );
        let paths = [(0, 1, 256), (0, 2, 188), (1, 0, 2)]
            .map(|(level, index, width)| TileId { level, index, width }.path());
        for path in &paths {
            let bytes = bulla_store::read_small(&store, path, 1 << 20).unwrap();
            let mut changed = bytes.clone();
            changed[40] ^= 1;
            bulla_store::replace(&store, path, &changed).unwrap();
            assert_eq!(root_at(&store, whole, 300).unwrap(), None, "{path}");
            store.remove(path).unwrap();
            assert_eq!(root_at(&store, whole, 300).unwrap(), None, "{path}");
            bulla_store::replace(&store, path, &bytes).unwrap();
        }
    }

    /// A tree of so many commitments, with its tiles and bundles, and the root of each size up to that.
    fn with_bundles(size: u64) -> (Memory, Vec<Hash>) {
        let (store, mut tiles, mut roots) = (Memory::new(), TileBuilder::new(), vec![tree::empty_root()]);
        let write = |path: &str, bytes: &[u8]| {
            store.create_directory(bulla_store::path::parent(path)).unwrap();
            bulla_store::replace(&store, path, bytes).unwrap();
        };
        let tile = |id: TileId, hashes: &[Hash]| write(&id.path(), &tile::encode_tile(hashes));
        let mut bundle = Vec::new();
        for frame in 0..size {
            let mut entry = [7; Commitment::LENGTH];
            entry[..8].copy_from_slice(&frame.to_le_bytes());
            tile::push_bundle_entry(&mut bundle, &entry);
            tiles.push(tree::leaf_hash(&entry), &mut |id, hashes| tile(id, hashes));
            roots.push(tiles.root());
            let width = u16::try_from(frame % WIDTH + 1).unwrap();
            if width == FULL_WIDTH || frame + 1 == size {
                write(&tile::entries_path(frame / WIDTH, width), &std::mem::take(&mut bundle));
            }
        }
        tiles.partials().into_iter().for_each(|(id, hashes)| tile(id, &hashes));
        (store, roots)
    }

    #[test]
    fn what_a_missing_tile_said_the_bundles_say() {
        for size in [5, 256, 300, 700] {
            let (store, roots) = with_bundles(size);
            let whole = head(&roots, size);
            let says = |earlier: u64| root_at_without_tiles(&store, whole, earlier).unwrap();
            let is_told = |what: &str| {
                for earlier in [0, 1, size / 2, size - 1, size] {
                    assert_eq!(
                        says(earlier),
                        Some(head(&roots, earlier).root),
                        "{earlier} of {size}: {what}"
                    );
                }
            };
            is_told("all there");
            let ids = tile::full_tiles_between(0, size).chain(tile::tiles_for(size));
            let paths = ids.map(|id| id.path()).collect::<BTreeSet<_>>();
            let read = |path: &str| bulla_store::read_small(&store, path, 1 << 20).unwrap();
            for path in &paths {
                let bytes = read(path);
                bulla_store::replace(&store, path, &bytes[1..]).unwrap();
                is_told(&format!("{path} is malformed"));
                store.remove(path).unwrap();
                is_told(path);
                bulla_store::replace(&store, path, &bytes).unwrap();
            }
            paths.iter().for_each(|path| store.remove(path).unwrap());
            is_told("no tile");
            // What is altered says nothing, whichever it is.
            let path = tile::entries_path(0, u16::try_from(size.min(WIDTH)).unwrap());
            let mut bytes = read(&path);
            *bytes.last_mut().unwrap() ^= 1;
            bulla_store::replace(&store, &path, &bytes).unwrap();
            assert_eq!(says(size / 2), None, "{size}");
            store.remove(&path).unwrap();
            assert_eq!(says(size / 2), None, "{size}");
        }
    }

    /// A tile of half as many nodes, each of which stands for two, comes to the same root.
    #[test]
    fn fewer_nodes_than_there_are_say_nothing() {
        let size = 512 * 256 + 5;
        let (store, roots) = stored(size);
        let all = nodes(&store, 512).unwrap();
        let pairs = all.chunks(2).map(|pair| tree::node_hash(&pair[0], &pair[1])).collect::<Vec<_>>();
        let tiles = [0, 1].map(|index| TileId { level: 1, index, width: FULL_WIDTH }.path());
        assert_eq!(root_at(&store, head(&roots, size), 256).unwrap(), Some(head(&roots, 256).root));
        bulla_store::replace(&store, &tiles[0], &tile::encode_tile(&pairs)).unwrap();
        store.remove(&tiles[1]).unwrap();
        assert_eq!(root_at(&store, head(&roots, size), 256).unwrap(), None);
    }
}

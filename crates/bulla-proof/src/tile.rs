//! Tiles and entry bundles: the log's tree as files, as [C2SP tlog-tiles](https://c2sp.org/tlog-tiles) says.
//!
//! A tile of level L holds up to 256 hashes, each of 256^L leaves. A partial tile, of fewer than 256, stands at the
//! right edge of its level and is never hashed into the level above.

mod builder;
mod path;

pub use builder::TileBuilder;
pub use path::{TilePath, entries_path, parse_path};

use crate::hash::Hash;
use crate::tree::{self, LogNodes};
use std::fmt;

/// The width of a full tile, in hashes, and of a full bundle, in entries.
pub const FULL_WIDTH: u16 = 256;

/// How many of `count` hashes or entries lie in the tile that is not full: 0 where the last one is.
pub const fn partial_width(count: u64) -> u16 {
    // The remainder of a division by 256 is the lowest byte.
    count.to_le_bytes()[0] as u16
}
/// The highest level at which a tree of fewer than 2^64 leaves has a tile.
pub const MAX_LEVEL: u8 = 7;
/// The longest entry of a bundle, in bytes.
pub const MAX_BUNDLE_ENTRY: usize = u16::MAX as usize;

/// Where a tile of hashes stands, and how wide it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TileId {
    /// The level, from 0 at the leaves to [`MAX_LEVEL`].
    pub level: u8,
    /// The index of the tile within its level, from the left.
    pub index: u64,
    /// How many hashes it holds, from 1 to [`FULL_WIDTH`].
    pub width: u16,
}

impl TileId {
    /// Whether the tile is full, and so will never change.
    pub const fn is_full(&self) -> bool {
        self.width == FULL_WIDTH
    }

    /// The path of the tile below the log's directory: `tile/<level>/<index>`, and `.p/<width>` after it when
    /// partial.
    pub fn path(&self) -> String {
        path::of_tile(self)
    }
}

/// The partial tiles at the right edge of a tree of `size` leaves, lowest level first: those that a checkpoint of
/// that size needs beside the full ones.
pub fn tiles_for(size: u64) -> Vec<TileId> {
    (0..=MAX_LEVEL)
        .map(|level| TileId { level, index: tile_count(size, level), width: rest(size, level) })
        .filter(|tile| tile.width > 0)
        .collect()
}

/// The full tiles that a tree of `new` leaves has and one of `old` leaves has not, level by level, left to right.
pub fn full_tiles_between(old: u64, new: u64) -> impl Iterator<Item = TileId> {
    (0..=MAX_LEVEL).flat_map(move |level| {
        (tile_count(old, level)..tile_count(new, level)).map(move |index| TileId {
            level,
            index,
            width: FULL_WIDTH,
        })
    })
}

/// The root of a tile's hashes; of a full tile, the hash that stands for it in the level above. The empty tree's
/// root where there are none.
pub fn tile_hash(hashes: &[Hash]) -> Hash {
    tree::reduce(&mut hashes.to_vec(), &LogNodes).unwrap_or_else(tree::empty_root)
}

/// The bytes of a tile: its hashes, one after another.
pub fn encode_tile(hashes: &[Hash]) -> Vec<u8> {
    hashes.iter().flat_map(|hash| hash.0).collect()
}

/// Reads a tile of `width` hashes.
///
/// # Errors
/// [`TileError::Width`] for a width that no tile has, [`TileError::Length`] when the bytes are not that many hashes.
pub fn parse_tile(bytes: &[u8], width: u16) -> Result<Vec<Hash>, TileError> {
    let width = checked_width(width)?;
    if bytes.len() != width * Hash::LENGTH {
        return Err(TileError::Length { found: bytes.len(), expected: width * Hash::LENGTH });
    }
    let (hashes, _) = bytes.as_chunks();
    Ok(hashes.iter().copied().map(Hash).collect())
}

/// Appends an entry to a bundle: its length, two bytes big-endian, and its bytes.
///
/// # Panics
/// When the entry is longer than [`MAX_BUNDLE_ENTRY`]. A commitment never is.
pub fn push_bundle_entry(bundle: &mut Vec<u8>, entry: &[u8]) {
    let length = u16::try_from(entry.len());
    bundle.extend(length.expect("an entry of a bundle has at most 65535 bytes").to_be_bytes());
    bundle.extend(entry);
}

/// Reads a bundle of `width` entries.
///
/// # Errors
/// [`TileError::Width`] for a width that no bundle has, [`TileError::BundleEnds`] and [`TileError::BundleLeftOver`]
/// when the bytes are not that many entries.
pub fn parse_bundle(bytes: &[u8], width: u16) -> Result<Vec<&[u8]>, TileError> {
    let width = checked_width(width)?;
    let mut rest = bytes;
    let mut entries = Vec::with_capacity(width.min(bytes.len() / 2));
    for _ in 0..width {
        let (length, tail) = rest.split_first_chunk().ok_or(TileError::BundleEnds)?;
        let length = usize::from(u16::from_be_bytes(*length));
        let (entry, tail) = tail.split_at_checked(length).ok_or(TileError::BundleEnds)?;
        entries.push(entry);
        rest = tail;
    }
    if rest.is_empty() { Ok(entries) } else { Err(TileError::BundleLeftOver) }
}

/// Why bytes are not a tile or a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TileError {
    /// No tile or bundle has this width.
    Width(u16),
    /// The bytes are not as many as the tile's hashes take.
    Length {
        /// How many bytes there are.
        found: usize,
        /// How many there ought to be.
        expected: usize,
    },
    /// The bundle ends before its last entry does.
    BundleEnds,
    /// The bundle goes on after its last entry.
    BundleLeftOver,
}

impl fmt::Display for TileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Width(width) => write!(f, "a tile's width is from 1 to {FULL_WIDTH}, not {width}"),
            Self::Length { found, expected } => write!(f, "the tile has {found} bytes, not {expected}"),
            Self::BundleEnds => write!(f, "the bundle ends before its last entry does"),
            Self::BundleLeftOver => write!(f, "the bundle has bytes after its last entry"),
        }
    }
}

impl std::error::Error for TileError {}

fn checked_width(width: u16) -> Result<usize, TileError> {
    if (1..=FULL_WIDTH).contains(&width) { Ok(usize::from(width)) } else { Err(TileError::Width(width)) }
}

/// How many full tiles a tree of `size` leaves has at `level`.
fn tile_count(size: u64, level: u8) -> u64 {
    size.checked_shr(8 * (u32::from(level) + 1)).unwrap_or(0)
}

/// How many hashes the partial tile of a tree of `size` leaves has at `level`.
fn rest(size: u64, level: u8) -> u16 {
    u16::from(size.to_le_bytes()[usize::from(level)])
}

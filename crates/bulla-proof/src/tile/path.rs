//! Where a tile is found: `tile/<level>/<index>[.p/<width>]` and `tile/entries/<index>[.p/<width>]`.

use super::{FULL_WIDTH, MAX_LEVEL, TileId};

/// What a path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TilePath {
    /// A tile of hashes.
    Hashes(TileId),
    /// A bundle of entries.
    Entries {
        /// The index of the bundle, from the left.
        index: u64,
        /// How many entries it holds, from 1 to [`FULL_WIDTH`].
        width: u16,
    },
}

/// The path of a bundle of entries: `tile/entries/<index>`, and `.p/<width>` after it when partial.
pub fn entries_path(index: u64, width: u16) -> String {
    format!("tile/entries/{}", index_and_width(index, width))
}

/// Reads a path. `None` for every spelling that [`TileId::path`] and [`entries_path`] do not write, and for a place
/// that no tree of fewer than 2^64 leaves has.
pub fn parse_path(path: &str) -> Option<TilePath> {
    let (level, place) = path.strip_prefix("tile/")?.split_once('/')?;
    let (index, width) = match place.split_once(".p/") {
        Some((index, width)) => (index, parse_decimal(width, u64::from(FULL_WIDTH) - 1)?),
        None => (place, u64::from(FULL_WIDTH)),
    };
    let index = parse_index(index)?;
    let width = u16::try_from(width).ok().filter(|&width| width > 0)?;
    let level = match level {
        "entries" => None,
        level => Some(u8::try_from(parse_decimal(level, u64::from(MAX_LEVEL))?).ok()?),
    };
    if index > u64::MAX.checked_shr(8 * (u32::from(level.unwrap_or(0)) + 1)).unwrap_or(0) {
        return None;
    }
    Some(match level {
        Some(level) => TilePath::Hashes(TileId { level, index, width }),
        None => TilePath::Entries { index, width },
    })
}

pub(super) fn of_tile(tile: &TileId) -> String {
    format!("tile/{}/{}", tile.level, index_and_width(tile.index, tile.width))
}

/// The index in groups of three digits, all but the last after an `x`, and the width of a partial tile.
fn index_and_width(index: u64, width: u16) -> String {
    let mut path = format!("{:03}", index % 1000);
    let mut rest = index / 1000;
    while rest > 0 {
        path = format!("x{:03}/{path}", rest % 1000);
        rest /= 1000;
    }
    if width < FULL_WIDTH { format!("{path}.p/{width}") } else { path }
}

fn parse_index(path: &str) -> Option<u64> {
    let mut groups = path.split('/').peekable();
    let several = path.contains('/');
    let mut index = 0_u64;
    let mut first = true;
    while let Some(group) = groups.next() {
        let digits = if groups.peek().is_some() { group.strip_prefix('x')? } else { group };
        if digits.len() != 3 || (first && several && digits == "000") {
            return None;
        }
        index = index.checked_mul(1000)?.checked_add(digits_value(digits)?)?;
        first = false;
    }
    Some(index)
}

/// A decimal number of at most `limit`, without leading zeroes.
fn parse_decimal(text: &str, limit: u64) -> Option<u64> {
    let canonical = text == "0" || !text.starts_with('0');
    let short = (1..=3).contains(&text.len());
    (canonical && short).then(|| digits_value(text))?.filter(|&value| value <= limit)
}

/// The value of a few decimal digits, and of nothing else.
fn digits_value(digits: &str) -> Option<u64> {
    digits
        .bytes()
        .try_fold(0, |value, digit| digit.is_ascii_digit().then(|| value * 10 + u64::from(digit - b'0')))
}

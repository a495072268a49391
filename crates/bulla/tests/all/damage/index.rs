//! Damage to the index, which only a reader of the log can see, and which is no violation: nothing rests on it.

use super::image::Image;
use super::layout::Layout;
use super::world::Level;
use std::ops::Range;

/// Bytes before a part's ciphertext, and where its length stands in them.
const HEAD: usize = 100;
const LENGTH: Range<usize> = 96..100;
/// What marks a part as one, and the epoch, which is the file's.
const MARK: Range<usize> = 0..16;
const GROUP: Range<usize> = 16..24;
/// The longest ciphertext.
const LONGEST: u32 = 24 << 20;

/// Whether it is a file of the index.
pub(super) fn is_index(path: &str) -> bool {
    path.starts_with("index/")
}

/// What a flip in a file of the index must come to.
pub(super) fn expect(layout: &Layout, path: &str, at: usize, damaged: &Image, level: Level) -> Vec<String> {
    let mut findings = layout.baseline().into_iter().collect::<Vec<_>>();
    if level < Level::Identity {
        return findings;
    }
    let content = damaged.get(path);
    let mut told = |offset: usize| findings.push(format!("index-damaged {path}@{offset}"));
    let word = |at: usize| u32::from_le_bytes(content[at..at + 4].try_into().unwrap());
    let mut start = 0;
    loop {
        let place = at - start;
        let length = word(start + LENGTH.start);
        let end = start + HEAD + length as usize;
        let group = u64::from_le_bytes(content[start + GROUP.start..start + GROUP.end].try_into().unwrap());
        if MARK.contains(&place) || length > LONGEST || end > content.len() || group > u64::MAX / 64 {
            // What follows cannot be told from it any more.
            told(start);
            return findings;
        }
        if place < HEAD || at < end {
            told(start);
            if LENGTH.contains(&place) && end < content.len() {
                told(end);
            }
            return findings;
        }
        start = end;
    }
}

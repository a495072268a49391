//! Texts are cut into words a chunk at a time, whether the words of a chunk are then looked up one by one or side by side.

/// What every word ends with, and has nowhere else.
pub(super) const SEPARATOR: u8 = b' ';
/// How many bytes are searched for separators together.
pub(super) const CHUNK: usize = 64;
/// How many bytes before a chunk are at hand with it: a word's key is made of its last ones.
pub(super) const BEFORE: usize = 8;
/// A text that goes on for longer than about this without a separator is left to compressors.
pub(super) const LONGEST: usize = 256;
/// By how many numbers of words the vector of them grows.
const ROOM: usize = 16 * CHUNK;

/// Makes room behind the `filled` first numbers for those of a chunk's words, and for the few that are written beyond them
/// when eight are written at once.
#[inline]
pub(super) fn make_room(indexes: &mut Vec<u8>, filled: usize) {
    if indexes.len() < filled + CHUNK + BEFORE {
        indexes.resize(filled + ROOM, 0);
    }
}

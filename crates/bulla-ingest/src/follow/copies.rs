//! Which content is that of a source, or a copy of it.

use super::Known;
use super::content::{Content, Node};
use super::label::{self, End, Label, SourceId, TAIL};
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::path::Path;

/// Where to read on, and what the log has beyond.
pub(super) fn resumes(known: &Known) -> (u64, VecDeque<Range<u64>>) {
    let mut ahead: VecDeque<_> = known.ranges.iter().cloned().collect();
    let place = match ahead.front() {
        Some(first) if first.start == 0 => ahead.pop_front().map_or(0, |first| first.end),
        _ => 0,
    };
    (place, ahead)
}

/// Whether this is the content of a source that is not done with, as far as the log has it.
pub(super) fn has_read(known: &Known, label: &Label, content: &mut Content) -> bool {
    let (place, _) = resumes(known);
    let is_same = label.is_of(&known.id, content).unwrap_or(false);
    is_same && label::has_come_to(&known.id, content, place, known.check).unwrap_or(false)
}

/// Whether what is `at` a path is a source of the path `of` that is done with, or a copy of it. A copy has as much as it, or less if the copy was made
/// before all was written; whatever has more, and is not the file itself, is another file that begins alike.
pub(super) fn is_of_finished(
    (of, id, label, end): (&Path, &SourceId, &Label, End),
    (at, content, node): (&Path, &mut Content, Node),
) -> io::Result<bool> {
    if !label.is_of(id, content)? {
        return Ok(false);
    }
    if !content.is_packed() {
        // Writers begin files where they write, and make no copies there.
        if of == at {
            return Ok(false);
        }
        if node == (label.device, label.inode) {
            return Ok(true);
        }
    }
    let tail = usize::try_from(end.length).unwrap_or(TAIL).min(TAIL);
    let mut last = [0; TAIL + 1];
    let read = content.fill(end.length - tail as u64, &mut last[..=tail])?;
    Ok(read < tail || read == tail && label::check(id, &last[..tail]) == end.check)
}

/// Whether a file may be a copy of another one, which may be under way: it has no more, and what it has the other has, too.
pub(super) fn is_part_of(part: &mut Content, of: &mut Content) -> bool {
    let (mut first, mut of_other) = ([0; 4096], [0; 4096]);
    let length = part.fill(0, &mut first).unwrap_or(0);
    let is_alike = length > 0
        && of.fill(0, &mut of_other[..length]).is_ok_and(|read| first[..length] == of_other[..read]);
    is_alike && has_no_more(part, of).unwrap_or(false)
}

/// Whether one content is no longer than another, which may grow meanwhile; also where that cannot be told.
pub(super) fn has_no_more(one: &mut Content, other: &Content) -> io::Result<bool> {
    // First, since a copy follows what it is of.
    let length = one.metadata()?.len();
    Ok(match (one.is_packed(), other.is_packed()) {
        (_, true) => true,
        (true, false) => one.fill(other.metadata()?.len(), &mut [0])? == 0,
        (false, false) => length <= other.metadata()?.len(),
    })
}

/// See [`is_part_of`].
pub(super) fn may_be_part_of(part: &Path, of: &Path) -> bool {
    let (Ok((mut part, _)), Ok((mut of, _))) = (Content::open(part), Content::open(of)) else { return false };
    is_part_of(&mut part, &mut of)
}

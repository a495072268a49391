//! Which content is that of a source, or a copy of it.

use super::Known;
use super::content::node;
use super::content::{Content, Node};
use super::label::{self, End, Label, SourceId, TAIL};
use super::siblings::Directories;
use std::collections::VecDeque;
use std::fs::Metadata;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Where to read on, and what the log has beyond.
pub(super) fn resumes(known: &Known) -> (u64, VecDeque<Range<u64>>) {
    let mut ahead: VecDeque<_> = known.ranges.iter().cloned().collect();
    let place = match ahead.front() {
        Some(first) if first.start == 0 => ahead.pop_front().map_or(0, |first| first.end),
        _ => 0,
    };
    (place, ahead)
}

/// Up to where records of this content became no entries behind what the log has of it, where that is what it was. A file whose end was changed
/// since is read on where the log ends.
pub(super) fn passed_to(known: &Known, content: &mut Content) -> Option<u64> {
    let (place, _) = resumes(known);
    let (range, check) = known.passed.as_ref().filter(|(range, _)| range.start == place)?;
    let has_come = label::has_come_to(&known.id, content, range.end, *check);
    has_come.unwrap_or(false).then_some(range.end)
}

/// Whether this is the content of a source that is not done with, as far as the log has it.
pub(super) fn has_read(known: &Known, label: &Label, content: &mut Content) -> io::Result<bool> {
    let (place, _) = resumes(known);
    Ok(label.is_of(&known.id, content)? && label::has_come_to(&known.id, content, place, known.check)?)
}

/// What came of a look into content, where errors are the system's: what is compressed and broken is not what is looked for.
pub(super) fn or_system_error(looked: io::Result<bool>) -> io::Result<bool> {
    match looked {
        Err(error) if error.raw_os_error().is_none() => Ok(false),
        looked => looked,
    }
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
pub(super) fn is_part_of(part: &mut Content, of: &mut Content) -> io::Result<bool> {
    let (mut first, mut of_other) = ([0; 4096], [0; 4096]);
    let length = part.fill(0, &mut first)?;
    let read = of.fill(0, &mut of_other[..length])?;
    Ok(length > 0 && first[..length] == of_other[..read] && has_no_more(part, of)?)
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

/// Where the content of a source is that the log has.
#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
pub(super) enum Whereabouts {
    /// At this path.
    At(PathBuf, Content, Metadata),
    /// A copy is left that ends before what was read of it.
    Shorter,
    /// Nowhere where it would be looked for.
    Gone,
    /// Something could not be looked at, and why.
    Unsure(String),
}

/// Looks where the content of a source is that is followed by `path`, among files that are not followed.
pub(super) fn search(
    path: &Path,
    known: &Known,
    label: &Label,
    directories: &mut Directories,
    is_followed: impl Fn(&Node) -> bool,
) -> Whereabouts {
    let (mut unsure, mut is_shorter) = (None, false);
    let (place, _) = resumes(known);
    let (found, is_sure) = directories.settle(path, |directories| {
        let siblings = directories.siblings(path).into_iter().map(|sibling| sibling.path);
        // What is at the path itself and is another file is the source if nothing else is: it may just begin alike.
        let places: Vec<_> = siblings.chain(std::iter::once(path.to_owned())).collect();
        (unsure, is_shorter) = (directories.trouble(), false);
        // The file itself rather than a copy of it.
        for is_itself in [true, false] {
            for at in &places {
                let looked = Content::find(at).and_then(|found| {
                    let Some((mut content, metadata)) = found else { return Ok(None) };
                    let fits = (node(&metadata) == (label.device, label.inode)) == is_itself;
                    if !fits || is_followed(&node(&metadata)) {
                        return Ok(None);
                    }
                    if or_system_error(has_read(known, label, &mut content))? {
                        return Ok(Some(Whereabouts::At(at.clone(), content, metadata)));
                    }
                    let ends_before = |content: &mut Content| {
                        Ok(place > 0
                            && at != path
                            && label.is_of(&known.id, content)?
                            && content.fill(place - 1, &mut [0])? == 0)
                    };
                    is_shorter |= or_system_error(ends_before(&mut content))?;
                    Ok(None)
                });
                match looked {
                    Ok(None) => {}
                    Ok(found) => return found,
                    Err(error) => unsure = Some(format!("{}: {error}", at.display())),
                }
            }
        }
        None
    });
    match (found, unsure) {
        (Some(found), _) => found,
        (None, Some(trouble)) => Whereabouts::Unsure(trouble),
        (None, None) if is_sure && is_shorter => Whereabouts::Shorter,
        (None, None) if is_sure => Whereabouts::Gone,
        (None, None) => {
            Whereabouts::Unsure(format!("{}: the directory does not stand still", path.display()))
        }
    }
}

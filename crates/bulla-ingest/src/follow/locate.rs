//! Where the content of a source is by now.

use super::Known;
use super::content::Content;
use super::copies::{has_read, passed_to, resumes};
use super::label::Label;
use super::siblings::Directories;
use std::path::PathBuf;

/// What became of a file that the log has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Located {
    /// It is at this path.
    At {
        /// The path: the one by which it is followed, or one beside it.
        path: PathBuf,
        /// So many bytes of it the log has not, and were not passed; `None` where that takes unpacking.
        lag: Option<u64>,
    },
    /// All is in the log: it was read to its end, or what is left is a copy of less than was read.
    Done,
    /// It is nowhere where it would be looked for.
    Gone,
}

/// Finds the content of a source, as a follower would.
pub fn locate(known: &Known) -> Located {
    let Some(label) = Label::parse(&known.label) else { return Located::Gone };
    if label.finished.is_some() {
        return Located::Done;
    }
    let (place, _) = resumes(known);
    let held = known.ranges.last().map_or(0, |range| range.end).max(place);
    let siblings = Directories::default().siblings(&label.path).into_iter().map(|sibling| sibling.path);
    let mut located = Located::Gone;
    for path in std::iter::once(label.path.clone()).chain(siblings) {
        let Ok((mut content, metadata)) = Content::open(&path) else { continue };
        if has_read(known, &label, &mut content).unwrap_or(false) {
            let held = passed_to(known, &mut content).map_or(held, |passed| passed.max(held));
            let lag = match content.is_packed() {
                true => content.fill(held, &mut [0]).is_ok_and(|read| read == 0).then_some(0),
                false => Some(metadata.len().saturating_sub(held)),
            };
            return Located::At { path, lag };
        }
        let is_of = label.is_of(&known.id, &mut content).unwrap_or(false);
        if is_of
            && path != label.path
            && content.fill(place.saturating_sub(1), &mut [0]).is_ok_and(|read| read == 0)
        {
            located = Located::Done;
        }
    }
    located
}

//! What is said of the paths of a log that lies on several.

use crate::scan::finding::{Finding, FindingKind};
use bulla_store::{MissingPath, PathStanding, Paths, Store};
use bulla_text::spelling::counted;

/// The paths of the log that are not there, and those that are not what they say they are. The frames that lie on one that is missing
/// are told as what they are, missing, as far as they are known.
///
/// A path that the writer has left holds nothing newer than the others, so that it is missing is a notice. Any other may: nobody can say then
/// that this is the log, and a disk that is not mounted cannot be told from one that somebody took away.
pub(super) fn judge(store: &dyn Store) -> impl Iterator<Item = Finding> {
    let (missing, mismatches) =
        store.paths().map_or_else(Default::default, |paths| (paths.missing(), paths.mismatches()));
    let mismatches = mismatches.into_iter().map(|why| Finding::new(FindingKind::PathMismatch, why));
    mismatches.chain(missing.into_iter().map(told_missing)).chain(behind(store))
}

/// Those that are missing of a log that was read all the same.
pub(in crate::read) fn missing(store: &dyn Store) -> impl Iterator<Item = Finding> {
    store.paths().map_or_else(Vec::new, Paths::missing).into_iter().map(told_missing)
}

fn told_missing(MissingPath { place, id, reason, left }: MissingPath) -> Finding {
    let id = id.map_or_else(String::new, |id| format!(", path {id}"));
    let newer = if left { "" } else { "; it may hold newer frames than the others" };
    let finding = Finding::new(FindingKind::PathMissing, format!("{place}{id}, is missing: {reason}{newer}"));
    if left { finding.notice() } else { finding }
}

/// The paths of the log that hold an older checkpoint than the one in use, or one that is not of this log's beginning.
fn behind(store: &dyn Store) -> impl Iterator<Item = Finding> {
    let standings = store.paths().map_or_else(Vec::new, Paths::standings);
    standings.into_iter().filter_map(|PathStanding { place, id, frames }| {
        let what = format!("{place}, path {id},");
        match frames {
            Err(why) => {
                Some(Finding::new(FindingKind::PathMismatch, format!("{what} contradicts the log: {why}")))
            }
            // A path that was never written to has none.
            Ok(None) => None,
            Ok(Some(frames)) => Some(Finding::new(
                FindingKind::PathBehind,
                format!(
                    "{what} holds the checkpoint of the first {} of the log: it was left then",
                    counted(frames, "frame")
                ),
            )),
        }
    })
}

//! What is said of the paths of a log that lies on several.

use crate::format::segment;
use crate::scan::finding::{Finding, FindingKind};
use crate::scan::paths::{not_there, with_way_out};
use crate::scan::unread_events::UnreadEvents;
use bulla_store::{MissingPath, Paths, Store};
use std::collections::HashMap;
use std::ops::Range;

/// The paths of the log that are not there, and those that are not what they say they are, or contradict the others. The frames that lie on one that is missing
/// are told as what they are, missing, as far as they are known.
///
/// A path that the writer has left holds nothing newer than the others, so that it is missing is a notice. Any other may: nobody can say then
/// that this is the log, and a disk that is not mounted cannot be told from one that somebody took away.
pub(super) fn judge(store: &dyn Store) -> impl Iterator<Item = Finding> {
    let judged = |paths: &dyn Paths| (paths.missing(), [paths.mismatches(), paths.contradictions()].concat());
    let (missing, mismatches) = store.paths().map_or_else(Default::default, judged);
    let mismatches = mismatches.into_iter().map(|why| Finding::new(FindingKind::PathMismatch, why));
    mismatches.chain(missing.into_iter().map(told_missing))
}

/// The paths that have lost the checkpoint which says how far the log has come there: as bad as the loss of the log's only one.
pub(super) fn without_checkpoint(store: &dyn Store) -> impl Iterator<Item = Finding> {
    let without = store.paths().map_or_else(Vec::new, Paths::without_checkpoint);
    without.into_iter().map(|what| Finding::new(FindingKind::CheckpointDamaged, what))
}

/// Findings of a log on several paths, with where the segment lies that one is in.
pub(super) fn placed(store: &dyn Store, mut findings: Vec<Finding>) -> Vec<Finding> {
    let present = store.paths().map_or_else(Vec::new, Paths::present);
    if present.len() < 2 {
        return findings;
    }
    let mut known = HashMap::new();
    for finding in &mut findings {
        let Some(path) = finding.segment.as_ref().map(|name| format!("{}/{name}", segment::DIRECTORY)) else {
            continue;
        };
        let places = known.entry(path).or_insert_with_key(|path| {
            let holding = present.iter().filter(|on_path| on_path.open(path).is_ok());
            holding.map(|on_path| on_path.describe("")).collect::<Vec<_>>().join(" and in ")
        });
        if !places.is_empty() {
            finding.detail += &format!(" (the segment lies in {places})");
        }
    }
    findings
}

/// That nobody can tell which paths the log has: see [`Paths::require_named`].
pub(super) fn unnamed(store: &dyn Store) -> impl Iterator<Item = Finding> {
    let named = store.paths().map_or(Ok(()), Paths::require_named);
    named.err().into_iter().map(|error| Finding::new(FindingKind::PathMissing, error.to_string()))
}

/// The frames behind the `signed` ones that no checkpoint covers on the paths that are there, or may be: see [`Paths::out_of_reach`]. Any of
/// them may tell of an erasure. Also what is to be said of them, but of those that are looked for since the seal state is at hand.
pub(super) fn out_of_reach(
    store: &dyn Store,
    signed: u64,
    has_state: bool,
) -> (Option<Finding>, Option<UnreadEvents>) {
    match store.paths().map_or(Ok(None), Paths::out_of_reach) {
        Ok(None) => (None, None),
        Ok(Some(frames)) => {
            let unread = UnreadEvents::of(frames.start, frames.end - 1);
            ((!has_state).then(|| are_out_of_reach(store, frames)), Some(unread))
        }
        Err(error) => {
            let finding = Finding::new(FindingKind::PathMissing, error.to_string());
            (Some(finding), Some(UnreadEvents::from(signed)))
        }
    }
}

fn are_out_of_reach(store: &dyn Store, frames: Range<u64>) -> Finding {
    let detail = "the seal state in the key directory was written for a log that has them signed: no checkpoint that is \
                  there covers them";
    let mut finding = Finding::new(FindingKind::FramesMissing, detail).frame(frames.start);
    finding.last_frame = Some(frames.end - 1);
    finding.where_it_may_be(&with_way_out(&not_there(store)))
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

//! Which vault goes with a log of which parts were given up: that is told by the ids of these parts, never by numbers of frames, which the log
//! has given twice.
//!
//! Invariants:
//! - a vault takes into account each part of which the log tells in frames that it followed: it was marked with the part before the log told;
//! - so where it does not know of one that is told behind these frames, it is from before that part was given up, or of that part;
//! - an event that it passed over is not followed, and none behind it is taken to be.

use crate::format::event::Event;
use crate::scan::events::each_event;
use crate::scan::manifest::Manifest;
use bulla_crypto::group::{Followed, PartId};
use bulla_proof::commitment::Commitment;
use bulla_store::{Error, ErrorKind, Result};
use std::collections::BTreeSet;

/// How a vault stands to the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// It goes with the log.
    Own,
    /// It is an older copy: the log gave parts up since, which may have told of erasures. These are all that it tells of.
    Older(BTreeSet<PartId>),
}

/// The parts that were given up, as events tell in the frames of a manifest from `from` on, with these frames.
///
/// # Errors
/// As [`each_event`].
pub(crate) fn told(manifest: &Manifest, from: u64) -> Result<Vec<(u64, PartId)>> {
    let mut told = Vec::new();
    each_event(manifest, from, |Commitment { frame, .. }, event| {
        told.extend(event.gives_up().map(|id| (*frame, id)));
    })?;
    Ok(told)
}

/// Those of these parts of which nothing told how far they went, under the checkpoint.
///
/// # Errors
/// As [`each_event`].
pub(crate) fn of_unknown_length(manifest: &Manifest) -> Result<BTreeSet<PartId>> {
    let mut told = BTreeSet::new();
    each_event(manifest, 0, |_, event| {
        told.extend(event.gives_up().filter(|_| matches!(event, Event::Truncated { known: 0, .. })));
    })?;
    Ok(told)
}

impl Line {
    /// How the vault `name`, which followed so much, stands to a log that goes on behind `frames`. What it followed of these has been compared
    /// with the log; `told` says which parts of that were given up, as its events tell in frames from one on.
    ///
    /// # Errors
    /// `Refused` where it is of a part that was given up; else as `told`.
    pub(crate) fn of(
        (name, followed): (&str, &Followed),
        frames: u64,
        told: impl Fn(u64) -> Result<BTreeSet<PartId>>,
    ) -> Result<Self> {
        let is_longer = followed.frames > frames;
        let from = if is_longer { 0 } else { followed.unfollowed.unwrap_or(u64::MAX).min(followed.frames) };
        if told(from)?.is_subset(&followed.given_up) {
            return Ok(Line::Own);
        }
        let all = told(0)?;
        match !is_longer && followed.given_up.is_subset(&all) {
            true => Ok(Line::Older(all)),
            false => Err(of_given_up_part(name)),
        }
    }
}

fn of_given_up_part(name: &str) -> Error {
    let message = format!(
        "{name} is of a part of the log that was given up (`bulla restore --older-log`): the log goes on with another vault, and the numbers of \
         this one may be other people's there; bring that one, or, where it is lost, move this one away, and make a new one by \
         `bulla restore --new-vault`"
    );
    Error::new(ErrorKind::Refused, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The event that tells of a part may be one of those that a vault passed over, and behind which it followed others.
    #[test]
    fn what_was_passed_over_is_not_followed() {
        let told = |from| {
            let ids = [(5, PartId([5; 16])), (20, PartId([20; 16]))];
            Ok(ids.into_iter().filter(|(frame, _)| *frame >= from).map(|(_, id)| id).collect())
        };
        let known = BTreeSet::from([PartId([20; 16])]);
        let both = BTreeSet::from([PartId([5; 16]), PartId([20; 16])]);
        let followed = |unfollowed, given_up: &BTreeSet<PartId>| Followed {
            frames: 10,
            unfollowed,
            given_up: given_up.clone(),
            ..Followed::NOTHING
        };
        let line =
            |unfollowed, given_up| Line::of(("vault", &followed(unfollowed, given_up)), 30, told).unwrap();
        assert_eq!(line(None, &known), Line::Own);
        assert_eq!(line(Some(6), &known), Line::Own);
        for passed_over in [5, 4, 0] {
            assert_eq!(line(Some(passed_over), &known), Line::Older(both.clone()));
            assert_eq!(line(Some(passed_over), &both), Line::Own);
        }
        assert_eq!(line(Some(Followed::NOWHERE), &known), Line::Own);
    }
}

//! The events of a log, from its frames.
//!
//! Who was erased, who is held and which `[log]` is allowed rests on all events. So where one is none of this version, nothing that
//! rests on them is answered.

use crate::erase::holds::ToldHolds;
use crate::format::event::Event;
use crate::scan::located::{event_in, verified};
use crate::scan::manifest::{Frames, Manifest};
use bulla_proof::commitment::{Commitment, FrameKind};
use bulla_store::Result;

/// Gives `each` the events in the frames of a manifest from `from` on, with the commitments of their frames.
///
/// # Errors
/// `Tampered` where an event is damaged, missing or none of this version, `Unavailable` where it cannot be read.
pub(crate) fn each_event(
    manifest: &Manifest,
    from: u64,
    mut each: impl FnMut(&Commitment, Event),
) -> Result<()> {
    if from >= manifest.size() {
        return Ok(());
    }
    let mut frames = Frames::from(manifest, from)?;
    while let Some(placed) = frames.next()? {
        if placed.commitment.kind == FrameKind::Event && placed.commitment.frame >= from {
            let located = frames.locate(placed)?;
            each(&located.commitment, event_in(&located)?);
        }
    }
    Ok(())
}

/// What the events under the checkpoint of a log tell of holds.
///
/// # Errors
/// As [`each_event`].
pub(crate) fn told_holds(manifest: &Manifest) -> Result<ToldHolds> {
    let mut told = ToldHolds::default();
    each_event(manifest, 0, |commitment, event| told.take(commitment.frame, commitment.earliest, &event))?;
    Ok(told)
}

/// The commitment and the body of the event in a frame, if there is one.
///
/// # Errors
/// As [`each_event`].
pub(crate) fn event(manifest: &Manifest, frame: u64) -> Result<Option<(Commitment, Vec<u8>)>> {
    if frame >= manifest.size() {
        return Ok(None);
    }
    let mut frames = Frames::from(manifest, frame)?;
    while let Some(placed) = frames.next()? {
        let Commitment { kind, frame: number, .. } = placed.commitment;
        if number >= frame {
            if (number, kind) != (frame, FrameKind::Event) {
                return Ok(None);
            }
            let located = frames.locate(placed)?;
            event_in(&located)?;
            let body = verified(&located)?.into_body();
            return Ok(Some((located.commitment, body)));
        }
    }
    Ok(None)
}

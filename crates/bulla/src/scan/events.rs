//! The events of a log, from its frames.
//!
//! Who was erased, who is held and which `[log]` is allowed rests on all events. So where one is none of this version, nothing that
//! rests on them is answered.

use crate::erase::told_holds::ToldHolds;
use crate::format::event::{Event, MAX_EVENT};
use crate::scan::located::{event_in, verified};
use crate::scan::manifest::{Frames, Manifest, Placed};
use bulla_proof::commitment::{Commitment, FrameKind};
use bulla_store::{Error, Result};

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
    let (mut told, config) = (ToldHolds::default(), &manifest.snapshot.config);
    // What is wrong with one of them is for verification to say.
    each_event(manifest, 0, |commitment, event| {
        let _ = told.take(config, commitment.frame, commitment.earliest, &event);
    })?;
    Ok(told)
}

/// The order in the event of a hold, which is in this frame.
///
/// # Errors
/// As [`each_event`].
pub(crate) fn hold_order(manifest: &Manifest, frame: u64) -> Result<String> {
    let body = event(manifest, frame)?.map(|(_, body)| Event::decode(&body)).transpose()?;
    match body {
        Some(Event::Held { order, .. }) => Ok(order),
        _ => Err(Error::tampered(format!("frame {frame} told of a hold, and does not any more"))),
    }
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

/// An event's frame.
pub(crate) struct Told {
    pub(crate) commitment: Commitment,
    /// What it tells; none where it is too long for an event.
    pub(crate) body: Option<Vec<u8>>,
}

/// What the frame of an event tells, which was met last.
///
/// # Errors
/// As [`each_event`].
pub(crate) fn body_of(frames: &mut Frames<'_>, placed: Placed) -> Result<Told> {
    if placed.commitment.body_length > MAX_EVENT {
        return Ok(Told { commitment: placed.commitment, body: None });
    }
    let located = frames.locate(placed)?;
    let body = Some(verified(&located)?.into_body());
    Ok(Told { commitment: located.commitment, body })
}

//! The events of a log, from its frames.

use crate::erase::holds::ToldHolds;
use crate::format::event::{Event, MAX_EVENT};
use crate::scan::located::verified;
use crate::scan::manifest::{Frames, Manifest, Placed};
use bulla_proof::commitment::{Commitment, FrameKind};
use bulla_store::Result;

/// Gives `each` the events in the frames of a manifest from `from` on, with the numbers of their frames. One that is no
/// event of this version is passed over.
///
/// # Errors
/// `Tampered` where an event is damaged or missing, `Unavailable` where it cannot be read.
pub(crate) fn each_event(manifest: &Manifest, from: u64, mut each: impl FnMut(u64, Event)) -> Result<()> {
    each_body(manifest, from, |commitment, body| {
        if let Ok(event) = Event::decode(&body) {
            each(commitment.frame, event);
        }
    })
}

/// What the events under the checkpoint of a log tell of holds.
///
/// # Errors
/// As [`each_event`].
pub(crate) fn told_holds(manifest: &Manifest) -> Result<ToldHolds> {
    let mut told = ToldHolds::default();
    each_body(manifest, 0, |commitment, body| {
        if let Ok(event) = Event::decode(&body) {
            told.take(commitment.frame, commitment.earliest, &event);
        }
    })?;
    Ok(told)
}

/// The commitment and the body of the event in a frame, if there is one.
///
/// # Errors
/// As [`each_event`].
pub(crate) fn event(manifest: &Manifest, frame: u64) -> Result<Option<(Commitment, Vec<u8>)>> {
    let mut found = None;
    each_body(manifest, frame, |commitment, body| {
        if commitment.frame == frame {
            found = Some((commitment, body));
        }
    })?;
    Ok(found)
}

/// The commitments and bodies of events. What is too long for an event is none.
fn each_body(manifest: &Manifest, from: u64, mut each: impl FnMut(Commitment, Vec<u8>)) -> Result<()> {
    if from >= manifest.size() {
        return Ok(());
    }
    let mut frames = Frames::from(manifest, from)?;
    while let Some(placed) = frames.next()? {
        if placed.commitment.kind == FrameKind::Event && placed.commitment.frame >= from {
            let Told { commitment, body } = body_of(&mut frames, placed)?;
            if let Some(body) = body {
                each(commitment, body);
            }
        }
    }
    Ok(())
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

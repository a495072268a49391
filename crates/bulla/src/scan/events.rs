//! The events of a log, from its frames.
//!
//! Who was erased, who is held and which `[log]` is allowed rests on all events. So where one is none of this version, nothing that
//! rests on them is answered. Those that were lost for good with a path of the log are passed over: [`Manifest::lost`] says which.

use crate::erase::told_holds::ToldHolds;
use crate::format::epoch::EpochBody;
use crate::format::event::{Event, MAX_EVENT};
use crate::scan::erasure_keys::{ErasureKeys, KeyHistory};
use crate::scan::located::event_of;
use crate::scan::lost::LostFrames;
use crate::scan::manifest::{Frames, Manifest, Placed};
use bulla_proof::commitment::{Commitment, FrameKind};
use bulla_proof::note::VerifierKey;
use bulla_store::{Error, ErrorKind, Result};

/// Gives `each` the events in the frames of a manifest from `from` on that are not lost, with the commitments of their frames.
///
/// # Errors
/// `Tampered` where an event is damaged, missing without being lost, or none of this version, `Unavailable` where it cannot be read.
pub(crate) fn each_event(manifest: &Manifest, from: u64, each: impl FnMut(&Commitment, Event)) -> Result<()> {
    if from >= manifest.size() {
        return Ok(());
    }
    each_event_but(manifest, from, manifest.lost()?, each)
}

/// The same of those that are not among the frames of `without`.
///
/// # Errors
/// As [`each_event`].
pub(crate) fn each_event_but(
    manifest: &Manifest,
    from: u64,
    without: &LostFrames,
    mut each: impl FnMut(&Commitment, Event),
) -> Result<()> {
    let mut frames = Frames::from(manifest, from)?;
    while let Some(placed) = frames.next()? {
        let Commitment { kind, frame, .. } = placed.commitment;
        if kind == FrameKind::Event && frame >= from && !without.contains(frame) {
            let commitment = placed.commitment.clone();
            each(&commitment, frames.event(placed)?);
        }
    }
    Ok(())
}

/// What the events under the checkpoint of a log tell of holds.
///
/// # Errors
/// As [`each_event`].
pub(crate) fn told_holds(manifest: &Manifest) -> Result<ToldHolds> {
    let mut of_holds = Vec::new();
    each_event(manifest, 0, |commitment, event| {
        if event.is_of_hold() {
            of_holds.push((commitment.frame, commitment.earliest, event));
        }
    })?;
    let mut told = ToldHolds::without(manifest.lost()?.frames.clone());
    if of_holds.is_empty() {
        return Ok(told);
    }
    let keys = erasure_keys(manifest, &[])?;
    for (frame, seconds, event) in &of_holds {
        // What is wrong with one of them is for verification to say.
        let _ = told.take(manifest.snapshot.config.id, &keys.at(*frame), (*frame, *seconds), event);
    }
    Ok(told)
}

/// Which erasure key counts in which frame, and whether it is trusted where `given` are known from elsewhere. An epoch that is damaged or lost tells none, and
/// neither does what is no event of this version, or is lost.
///
/// # Errors
/// `Tampered` where an event is damaged, or missing without being lost, `Unavailable` where a frame cannot be read.
pub(crate) fn erasure_keys(manifest: &Manifest, given: &[VerifierKey]) -> Result<ErasureKeys> {
    let (mut frames, mut history) = (Frames::new(manifest)?, KeyHistory::default());
    let lost = manifest.lost()?;
    while let Some(placed) = frames.next()? {
        let frame = placed.commitment.frame;
        match placed.commitment.kind {
            FrameKind::Epoch if lost.contains(frame) => history.lose_epoch(frame),
            _ if lost.contains(frame) => {}
            FrameKind::Epoch => match epoch_body(&mut frames, placed) {
                Ok(body) => history.epoch(frame, body.config),
                Err(error) if error.kind() == ErrorKind::Unavailable => return Err(error),
                Err(_) => history.lose_epoch(frame),
            },
            FrameKind::Event => {
                let event = body_of(&mut frames, placed)?.body.map(|body| Event::decode(&body));
                event.into_iter().flatten().for_each(|event| history.event(frame, &event));
            }
            _ => {}
        }
    }
    Ok(history.finish(&manifest.snapshot.config, given))
}

/// What the frame of an epoch tells, which was met last.
///
/// # Errors
/// `Tampered` where it is damaged or none of this version, `Unavailable` where it cannot be read.
pub(crate) fn epoch_body(frames: &mut Frames<'_>, epoch: Placed) -> Result<EpochBody> {
    EpochBody::decode(&frames.read(epoch)?)
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
            let Told { commitment, body } = body_of(&mut frames, placed)?;
            let body = body.unwrap_or_default();
            event_of(&commitment, || Ok(body.clone()))?;
            return Ok(Some((commitment, body)));
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
    let commitment = placed.commitment.clone();
    Ok(Told { commitment, body: Some(frames.read(placed)?) })
}

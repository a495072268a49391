//! The events of a log, from its frames.

use crate::format::config::LogConfig;
use crate::format::event::MAX_EVENT;
use crate::scan::manifest::{Frames, Manifest};
use crate::scan::open::{Located, verified};
use crate::scan::walk::open_segment;
use bulla_proof::commitment::{Commitment, FrameKind};
use bulla_store::Store;
use bulla_store::{Error, Result};

/// Gives `each` the commitments and bodies of the events in the frames of a manifest from `from` on. What is too long for
/// an event is none.
///
/// # Errors
/// `Tampered` where an event is damaged or missing, `Unavailable` where it cannot be read, and what `each` says.
pub(crate) fn each_event(
    manifest: &Manifest,
    store: &dyn Store,
    config: &LogConfig,
    from: u64,
    mut each: impl FnMut(Commitment, Vec<u8>) -> Result<()>,
) -> Result<()> {
    if !manifest.events.iter().any(|&event| event >= from) {
        return Ok(());
    }
    let mut frames = Frames::new(manifest, store, config)?;
    while let Some(placed) = frames.next()? {
        let Commitment { kind, frame, body_length, .. } = placed.commitment;
        if kind != FrameKind::Event || frame < from || body_length > MAX_EVENT {
            continue;
        }
        let gone = || Error::tampered(format!("event frame {frame} is missing; `bulla verify` tells all"));
        let segment = placed.segment.ok_or_else(gone)?;
        let (file, length) = open_segment(store, segment)?;
        if placed.end() > length {
            return Err(gone());
        }
        let (commitment, offset) = (placed.commitment, placed.offset);
        let located = Located { commitment, segment, file, offset, keys: None, foreign: false };
        let body = verified(&located)?.into_body();
        each(located.commitment, body)?;
    }
    Ok(())
}

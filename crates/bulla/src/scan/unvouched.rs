//! How far a log goes of which no checkpoint says so: as its segments and the bundles of its tree tell, of which nobody vouches for anything.

use crate::format::config::LogConfig;
use crate::format::frame::{self, Head};
use crate::format::segment::{self, SegmentName};
use crate::scan::cursor::Cursor;
use crate::scan::stored_tree;
use bulla_proof::commitment::Commitment;
use bulla_proof::tile::FULL_WIDTH;
use bulla_store::{Result, Store};

/// The number of the log's frames, up to the last one of which a segment or a bundle has the commitment.
///
/// # Errors
/// `Unavailable` where a file cannot be read.
pub(crate) fn frames(store: &dyn Store, config: &LogConfig) -> Result<u64> {
    let mut frames = 0;
    for (index, width) in stored_tree::widest_bundles(store)?.into_iter().rev() {
        let last = stored_tree::read_bundle(store, index, width)?.and_then(|bundle| bundle.last().copied());
        let last = last.and_then(|last| Commitment::decode(&last).ok());
        let end = index.saturating_mul(u64::from(FULL_WIDTH)).saturating_add(u64::from(width));
        if last.is_some_and(|last| last.log_id == config.id && last.frame.checked_add(1) == Some(end)) {
            frames = end;
            break;
        }
    }
    for name in segment::list(store)?.0.into_iter().rev() {
        if let Some(last) = last_frame(store, config, name)? {
            return Ok(frames.max(last + 1));
        }
    }
    Ok(frames)
}

/// The number of the last frame of which a segment has all; nothing where it has none of its own.
fn last_frame(store: &dyn Store, config: &LogConfig, name: SegmentName) -> Result<Option<u64>> {
    let mut cursor = Cursor::open(store, name)?;
    let (length, first) = (cursor.length, name.first);
    // No segment has more frames than it has room for, whatever a head says.
    let most = length / frame::HEAD as u64;
    let own = |head: &Head| {
        let Commitment { frame, log_id, .. } = &head.commitment;
        *log_id == config.id && frame.checked_sub(first).is_some_and(|place| place < most)
    };
    let mut last = None;
    loop {
        match cursor.peek()? {
            Some(Ok(head)) => {
                last = last.max(own(&head).then_some(head.commitment.frame));
                cursor.pass(&head);
            }
            Some(Err(_)) => match cursor.find(cursor.offset + 1, own)? {
                Some(offset) => cursor.offset = offset,
                None => return Ok(last),
            },
            None => return Ok(last),
        }
    }
}

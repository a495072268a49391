//! What the log's events tell of holds, and whether whoever may ordered them.
//!
//! Invariants:
//! - a hold counts whatever its order is worth, and a release only where its order holds, so that nobody is taken for released by
//!   mistake;
//! - a hold of which a frame told that is gone for good is neither told of nor contradicted: it counts where the key directory has it;
//! - an order is good for one event.

use super::signed_with::{CountingKey, opened_with_one_of};
use crate::format::event::Event;
use bulla_proof::commitment::LogId;
use bulla_proof::hash::Hash;
use bulla_proof::hold_order::{HoldNote, HoldNoteError};
use bulla_proof::order::order_digest;
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

/// What the log's events tell of holds, in the order of their frames.
#[derive(Clone, Default, Debug)]
pub(crate) struct ToldHolds {
    /// Those that were not released, by the frame of the event.
    pub(super) held: BTreeMap<u64, ToldHold>,
    /// Those that were released, by that frame.
    pub(super) released: BTreeMap<u64, ToldHold>,
    /// The digests of all orders to hold and to release.
    orders: HashSet<Hash>,
    /// The frame behind the last one in which an event may be lost: what came before it is not known.
    lost: u64,
    /// The frames that are gone for good, ascending, with whatever they told.
    gone: Vec<Range<u64>>,
    /// The number of frames up to the last of these events, that one included.
    frames: u64,
}

/// What the event of a hold tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ToldHold {
    pub(super) number: u64,
    pub(super) since: i64,
    /// The digest of its order.
    pub(super) order: Hash,
}

impl ToldHolds {
    /// Of a log of which these frames are gone for good, ascending.
    pub(crate) fn without(gone: Vec<Range<u64>>) -> Self {
        ToldHolds { gone, ..ToldHolds::default() }
    }

    /// Takes in an event of `log` in a frame of this time, where one of `keys` counts. Returns what is wrong with it where it tells
    /// of a hold, or of a release, that was not ordered so.
    pub(crate) fn take(
        &mut self,
        log: LogId,
        keys: &[CountingKey],
        (frame, seconds): (u64, i64),
        event: &Event,
    ) -> Option<String> {
        let taken = match event {
            Event::Held { number, order } => {
                let digest = order_digest(order);
                let told = ToldHold { number: *number, since: seconds, order: digest };
                self.held.insert(frame, told);
                let used = self.use_order(digest);
                ordered(log, keys, order, HoldNote::check_hold).and(used)
            }
            Event::Released { number, held, order } => {
                let ordered = ordered(log, keys, order, HoldNote::check_release);
                let used = self.use_order(order_digest(order));
                ordered.and_then(|hold| used.and_then(|()| self.release(*held, *number, hold)))
            }
            _ => return None,
        };
        self.frames = frame + 1;
        taken.err()
    }

    /// Releases the hold of a frame, where it is on this data subject and by this order.
    fn release(&mut self, held: u64, number: u64, order: Hash) -> Result<(), String> {
        match self.held.get(&held) {
            Some(told) if told.number == number && told.order == order => {
                self.held.remove(&held).and_then(|told| self.released.insert(held, told));
                Ok(())
            }
            Some(_) => Err(format!("its order is about another hold than that of frame {held}")),
            None if self.is_gone(held) => {
                // The key directory may still have it.
                self.released.insert(held, ToldHold { number, since: 0, order });
                Ok(())
            }
            None if held < self.lost => Ok(()),
            None => Err(format!("frame {held} tells of no hold that was not released before")),
        }
    }

    fn use_order(&mut self, digest: Hash) -> Result<(), String> {
        match self.orders.insert(digest) {
            true => Ok(()),
            false => Err("its order was carried out before".to_owned()),
        }
    }

    /// Events before this frame may be lost: nobody is said to be held by what they may have ended.
    pub(crate) fn lose(&mut self, before: u64) {
        self.held.clear();
        self.released.clear();
        self.lost = before;
    }

    /// Whether a frame is gone for good.
    pub(super) fn is_gone(&self, frame: u64) -> bool {
        self.gone.iter().any(|range| range.contains(&frame))
    }

    /// Whether a frame behind this one is gone for good, which may have told of a release.
    pub(super) fn is_one_gone_after(&self, frame: u64) -> bool {
        self.gone.last().is_some_and(|range| range.end > frame + 1)
    }

    /// The number of frames up to the last event of a hold.
    pub(crate) fn frames(&self) -> u64 {
        self.frames
    }

    /// Which of these data subjects are held, and the frames that tell so.
    pub(crate) fn held_of(&self, numbers: &[u64]) -> Vec<(u64, u64)> {
        let held = self.held.iter().map(|(frame, told)| (told.number, *frame));
        held.filter(|(number, _)| numbers.binary_search(number).is_ok()).collect()
    }

    /// Whether an order with this digest was carried out.
    pub(crate) fn has_order(&self, digest: &Hash) -> bool {
        self.orders.contains(digest)
    }
}

/// What the order of an event says, by `check`, where it holds.
fn ordered(
    log: LogId,
    keys: &[CountingKey],
    note: &str,
    check: impl Fn(&HoldNote, LogId) -> Result<Hash, HoldNoteError>,
) -> Result<Hash, String> {
    let note = opened_with_one_of(keys, |key| HoldNote::open(note.as_bytes(), key))?;
    check(&note, log).map_err(|error| format!("its order does not hold: {error}"))
}

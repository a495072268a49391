//! The frames of a log that were lost for good with one of its paths.
//!
//! Invariants:
//! - a frame counts as lost only where the key directory notes a path as lost, every other path is there, and none of them has the frame.
//!   Else it may lie on one that is missing, or somebody who has the storage took it away;
//! - a frame that is there is not lost, however damaged, and wherever it is: names of segments say nothing against that.

use crate::scan::unread_events::UnreadEvents;
use bulla_proof::commitment::{Commitment, FrameKind};
use bulla_proof::order::Order;
use bulla_store::Store;
use bulla_text::spelling::{agreeing, counted};
use std::fmt;
use std::ops::Range;

/// The frames of a log that were lost for good with one of its paths, as far as its checkpoint covers them: see
/// [`lost_frames_of`](crate::lost_frames_of).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LostFrames {
    /// Their numbers, ascending; no two ranges meet.
    pub frames: Vec<Range<u64>>,
    /// The numbers of those that were events, ascending: what they told of holds and erasures is not known.
    pub events: Vec<u64>,
    /// The numbers of those that were blocks, ascending.
    pub(crate) blocks: Vec<u64>,
    /// How many of them were blocks that said which records of which source they had.
    pub(crate) of_sources: u64,
    /// The writing host's clock at the last of the events, in seconds since the Unix epoch.
    pub(crate) last_event: Option<i64>,
}

impl LostFrames {
    /// Whether none is lost.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Whether this frame is lost.
    pub fn contains(&self, frame: u64) -> bool {
        let after = self.frames.partition_point(|range| range.start <= frame);
        after > 0 && frame < self.frames[after - 1].end
    }

    /// What is not known of holds and erasures because of that, as a sentence; none where no event is lost.
    pub fn unknown_events(&self) -> Option<String> {
        let events = self.events.len() as u64;
        let were = agreeing(events, "was an event", "were events");
        let it = agreeing(events, "it", "they");
        (events > 0).then(|| {
            format!("{self}, and {events} of them {were}: what {it} told of holds and erasures is not known")
        })
    }

    /// What becomes of the records of sources that are lost, as a sentence; none where none of these frames had any.
    pub fn unread_sources(&self) -> Option<String> {
        (self.of_sources > 0).then(|| {
            format!("{self}, with records of what is followed: they are read again where the sources still have them")
        })
    }

    /// Whether an event is lost that was made when, or after, an order was given, so that it may tell that this was carried out.
    pub(crate) fn may_tell_of(&self, order: &Order) -> bool {
        let given = i64::try_from(order.seconds).unwrap_or(i64::MAX);
        self.last_event.is_some_and(|last| last >= given)
    }

    /// Those of the events that come from a frame on.
    pub(crate) fn events_from(&self, frame: u64) -> Option<UnreadEvents> {
        let of = self.events.partition_point(|event| *event < frame);
        let (first, last) = (self.events.get(of)?, self.events.last()?);
        Some(UnreadEvents::of(*first, *last))
    }

    /// Takes in a frame that is lost, behind all before.
    pub(crate) fn add(&mut self, commitment: &Commitment) {
        let frame = commitment.frame;
        match self.frames.last_mut() {
            Some(range) if range.end == frame => range.end += 1,
            _ => self.frames.push(frame..frame + 1),
        }
        match commitment.kind {
            FrameKind::Event => {
                self.events.push(frame);
                self.last_event = self.last_event.max(Some(commitment.latest));
            }
            FrameKind::Block => {
                self.blocks.push(frame);
                self.of_sources += u64::from(commitment.sources_length > 0);
            }
            _ => {}
        }
    }
}

impl fmt::Display for LostFrames {
    /// Says which frames were lost.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |range: &Range<u64>| match range.end - range.start {
            1 => range.start.to_string(),
            _ => format!("{} to {}", range.start, range.end - 1),
        };
        let total = self.frames.iter().map(|range| range.end - range.start).sum::<u64>();
        let (first, rest) = self.frames.split_at(self.frames.len().min(MOST_SHOWN));
        let first = first.iter().map(shown).collect::<Vec<_>>().join(", ");
        let more = match rest {
            [] => String::new(),
            rest => format!(" and {} more", counted(rest.len() as u64, "range")),
        };
        let were = agreeing(total, "frame", "frames");
        let was = agreeing(total, "was", "were");
        write!(f, "{were} {first}{more} {was} lost with a path")
    }
}

/// So many ranges are named in a sentence.
const MOST_SHOWN: usize = 8;

/// Whether frames of a log that no path has are lost for good. Whoever comes upon frames that are missing asks this, and nothing else: what is
/// missing otherwise lies on a path that is merely not there, or somebody who has the storage took it away.
pub(crate) fn are_lost(store: &dyn Store) -> bool {
    lost_below(store) > 0
}

/// From which frame on none is lost for good: 0 where no frame is.
pub(crate) fn lost_below(store: &dyn Store) -> u64 {
    store
        .paths()
        .filter(|paths| paths.has_lost_one() && paths.are_all_there())
        .map_or(0, |paths| paths.lost_below())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulla_proof::commitment::LogId;
    use bulla_proof::hash::{Hash, HashId};

    fn lost(frame: u64, kind: FrameKind, sources_length: u32) -> Commitment {
        Commitment {
            kind,
            codec: 1,
            hash: HashId::Sha256,
            content_log2: 4,
            sources_length,
            log_id: LogId([1; 16]),
            frame,
            first_entry: 0,
            entries: 3,
            earliest: 0,
            latest: 7,
            epoch: 0,
            units: 1,
            root: Hash::ZERO,
            body_length: 1000,
            body_digest: Hash::ZERO,
        }
    }

    #[test]
    fn what_is_lost_is_told_by_frames_events_and_records() {
        let mut frames = LostFrames::default();
        assert_eq!((frames.unknown_events(), frames.unread_sources()), (None, None));
        frames.add(&lost(2, FrameKind::Block, 0));
        assert_eq!(frames.to_string(), "frame 2 was lost with a path");
        assert_eq!((frames.unknown_events(), frames.unread_sources()), (None, None));
        frames.add(&lost(3, FrameKind::Event, 0));
        frames.add(&lost(7, FrameKind::Block, 9));
        assert_eq!(frames.frames, [2..4, 7..8]);
        let contained = (0..10).filter(|frame| frames.contains(*frame)).collect::<Vec<_>>();
        assert_eq!(contained, [2, 3, 7]);
        assert_eq!(frames.blocks, [2, 7]);
        assert_eq!(
            frames.unknown_events().unwrap(),
            "frames 2 to 3, 7 were lost with a path, and 1 of them was an event: what it told of holds and erasures is not known"
        );
        assert!(frames.unread_sources().unwrap().contains("are read again"));
        (20..60).step_by(2).for_each(|frame| frames.add(&lost(frame, FrameKind::Block, 0)));
        assert!(frames.to_string().contains(" and 14 ranges more were lost"), "{frames}");
        assert_eq!(frames.last_event, Some(7));
    }
}

//! What a log is without the paths that are found: its tree on the others, as far as the seal state speaks of it, and the frames behind that with which a
//! writer would go on.

use crate::format::config::LogConfig;
use crate::format::event::Event;
use crate::format::frame::Head;
use crate::format::segment::{self, SegmentName};
use crate::keys::seal_state::SealState;
use crate::scan::cursor::Cursor;
use crate::scan::events::each_event_but;
use crate::scan::located::Located;
use crate::scan::lost::LostFrames;
use crate::scan::manifest::{Frames, Manifest};
use crate::scan::snapshot::Snapshot;
use crate::write::recover::{self, lost::furthest_tree};
use bulla_crypto::seal_chain::SealChain;
use bulla_proof::commitment::{Commitment, LogId};
use bulla_store::{Error, ErrorKind, Result, Store};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the log is without the paths that are found.
pub(super) struct Rest {
    pub(super) state: SealState,
    pub(super) manifest: Manifest,
    /// The frames of the tree that no other path has.
    pub(super) missing: LostFrames,
    /// The frames behind the tree with which a writer would go on.
    above: Vec<Commitment>,
    /// The segments whose ends events of those frames explain, and the offsets of these ends.
    explained: Vec<(String, u64)>,
    /// The same of events of the tree, where none is damaged.
    ends: BTreeMap<String, u64>,
    /// The seals behind the last of those frames; nothing where what is signed is missing.
    pub(super) chain: Option<SealChain>,
}

impl Rest {
    /// Reads what `log` has; nothing where it has no frames. Those that are missing there are lost with a path, or may be once what is named is: what a
    /// writer would go on with then.
    ///
    /// # Errors
    /// `Tampered` where its tree is damaged, or what lies behind that; `Refused` where its `[log]` is not what it was written with; `NoKey` where the seal state is missing; `Unavailable` where a file cannot be read.
    pub(super) fn load(log: Arc<dyn Store>, config: &LogConfig, keys: &dyn Store) -> Result<Option<Self>> {
        if segment::list(&*log)?.0.is_empty() && segment::list_aside(&*log)?.is_empty() {
            return Ok(None);
        }
        let name = log.describe("");
        let damaged = |error| damaged(&name, error);
        let mut snapshot = Snapshot::of(log).map_err(damaged)?;
        let state = recover::read_state(keys, config)?;
        snapshot.checkpoint = furthest_tree(&*snapshot.store, snapshot.checkpoint, &state)?;
        let manifest = Manifest::load_to_open(snapshot).map_err(damaged)?;
        let missing = manifest.missing().map_err(damaged)?;
        let Snapshot { store, checkpoint, .. } = &manifest.snapshot;
        let lacks_signed = state.chain.next_frame() > checkpoint.size;
        let (above, explained, chain) =
            match recover::beyond_where(&**store, config, (&state, checkpoint), u64::MAX) {
                Ok(beyond) => (beyond.edge.above()?, beyond.explained, Some(beyond.chain)),
                // It lacks what is signed, so nobody can have gone on with it.
                Err(error) if error.kind() == ErrorKind::Tampered && lacks_signed => Default::default(),
                Err(error) => return Err(damaged(error)),
            };
        let mut ends = BTreeMap::new();
        let take = |_: &Commitment, event: Event| {
            ends.extend(event.explains().map(|(name, end)| (name.to_owned(), end)))
        };
        match each_event_but(&manifest, 0, &missing, take) {
            Err(error) if error.kind() != ErrorKind::Tampered => return Err(error),
            read if read.is_err() => ends.clear(),
            _ => {}
        }
        Ok(Some(Rest { state, manifest, missing, above, explained, ends, chain }))
    }

    /// Whether a segment of a path that is found has, in the place of `frame` or behind it, what no other path has whole of the tree. What stands in its
    /// place is another one, or damaged, and then no reason to do without what is behind.
    pub(super) fn needs(&self, frame: u64, place: &Cursor) -> Result<bool> {
        if self.missing.contains(frame) {
            return Ok(true);
        }
        let failed = Cell::new(None);
        let is_needed = |Head { commitment, .. }: &Head| {
            self.lacks(commitment).unwrap_or_else(|error| {
                failed.set(Some(error));
                true
            })
        };
        let found = place.find(place.offset, is_needed)?;
        failed.into_inner().map_or(Ok(found.is_some()), Err)
    }

    /// Whether it is a frame of the tree that no other path has, whole.
    fn lacks(&self, commitment: &Commitment) -> Result<bool> {
        let frame = commitment.frame;
        let is_of_tree = frame < self.manifest.size() && self.commitment(frame)? == *commitment;
        Ok(is_of_tree && !self.has_sound(frame)?)
    }

    /// Where it lies, for messages.
    pub(super) fn name(&self) -> String {
        self.manifest.snapshot.store.describe("")
    }

    /// Which log it is.
    pub(super) fn log(&self) -> LogId {
        self.manifest.snapshot.config.id
    }

    /// How many frames are signed.
    pub(super) fn signed(&self) -> u64 {
        self.manifest.size().max(self.state.chain.next_frame())
    }

    /// How many frames there are.
    pub(super) fn size(&self) -> u64 {
        self.manifest.size() + self.above.len() as u64
    }

    /// The commitment of one of them.
    pub(super) fn commitment(&self, frame: u64) -> Result<Commitment> {
        let above = frame.checked_sub(self.manifest.size()).and_then(|index| usize::try_from(index).ok());
        match above.and_then(|index| self.above.get(index)) {
            Some(commitment) => Ok(commitment.clone()),
            None => self.manifest.commitment(frame),
        }
    }

    /// Whether another path has it, whole, in bytes that count. Those behind the tree were looked at.
    pub(super) fn has_sound(&self, frame: u64) -> Result<bool> {
        if self.missing.contains(frame) {
            return Ok(false);
        }
        if frame >= self.manifest.size() {
            return Ok(true);
        }
        let mut frames = Frames::from(&self.manifest, frame)?;
        while let Some(placed) = frames.next()? {
            if placed.commitment.frame == frame {
                return match frames.locate(placed) {
                    Err(error) if error.kind() == ErrorKind::Tampered => Ok(false),
                    located => {
                        let located = located?;
                        Ok(!self.is_behind_an_end(&located) && located.verify()?.is_ok())
                    }
                };
            }
        }
        Ok(false)
    }

    /// Whether a frame lies where an event says that a segment has ended: that may be gone, as what a sync that failed has left in memory.
    fn is_behind_an_end(&self, located: &Located) -> bool {
        let segment = located.segment.to_string();
        let explained = self.explained.iter().find(|(name, _)| *name == segment).map(|(_, end)| end);
        explained.or(self.ends.get(&segment)).is_some_and(|end| located.offset >= *end)
    }

    /// Whether it has a segment of this name.
    pub(super) fn has_segment(&self, name: SegmentName) -> Result<bool> {
        Ok(segment::list(&*self.manifest.snapshot.store)?.0.contains(&name))
    }

    /// The number of the first frame that is no more read from this segment, as an event of the tree tells; 0 where none does.
    pub(super) fn counts_to(&self, name: SegmentName) -> Result<u64> {
        let (name, mut to) = (name.to_string(), 0);
        let take = |_: &Commitment, event: Event| match event {
            Event::Recovered { segment, next_frame, .. } | Event::Abandoned { segment, next_frame, .. }
                if segment == name =>
            {
                to = next_frame;
            }
            _ => {}
        };
        match each_event_but(&self.manifest, 0, &self.missing, take) {
            Err(error) if error.kind() == ErrorKind::Tampered => Ok(0),
            read => read.map(|()| to),
        }
    }

    /// Whether an event tells where a segment ends, so that what is behind that is no frame's: duplicates of frames that were taken into other segments
    /// among it.
    ///
    /// # Errors
    /// `Tampered` where no event does that can be read, and one is damaged.
    pub(super) fn explains(&self, name: &str) -> Result<bool> {
        let mut explained = self.explained.iter().any(|(explained, _)| explained == name);
        let explains = |event: Event| event.explains().is_some_and(|(segment, _)| segment == name);
        match each_event_but(&self.manifest, 0, &self.missing, |_, event| explained |= explains(event)) {
            Err(error) if error.kind() == ErrorKind::Tampered && !explained => {
                Err(damaged(&self.name(), error))
            }
            Err(error) if error.kind() != ErrorKind::Tampered => Err(error),
            _ => Ok(explained),
        }
    }

    /// The same, or one may that is damaged.
    pub(super) fn may_explain(&self, name: &str) -> Result<bool> {
        match self.explains(name) {
            Err(error) if error.kind() == ErrorKind::Tampered => Ok(true),
            explains => explains,
        }
    }
}

/// Why nothing is changed while that is damaged.
fn damaged(name: &str, error: Error) -> Error {
    match error.kind() {
        ErrorKind::Tampered => Error::tampered(format!(
            "nothing tells which frames on a path that is found the log has gone on without, since {name} is damaged: {error}. Mend that \
             first, from a copy of the log: a file of its tree is the same on each path that has it"
        )),
        _ => error,
    }
}

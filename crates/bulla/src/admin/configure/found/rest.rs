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
use bulla_proof::commitment::{Commitment, FrameKind, LogId};
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
    /// The same of the events of the tree that can be read.
    ends: BTreeMap<String, u64>,
    /// The frames of the other events of the tree, and what is damaged of them; nothing of those that are missing.
    untold: BTreeMap<u64, Option<String>>,
    /// What an answer since the last decision rests on that one of those may tell otherwise.
    doubt: Cell<Option<Doubt>>,
    /// The seals behind the last of those frames; nothing where what is signed is missing.
    pub(super) chain: Option<SealChain>,
}

/// A frame lies on a path, and an event that cannot be read may tell that it does not count there.
#[derive(Clone, Copy)]
struct Doubt {
    frame: u64,
    event: u64,
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
        let (mut ends, mut untold) = (BTreeMap::new(), BTreeMap::new());
        let mut frames = Frames::new(&manifest)?;
        while let Some(placed) = frames.next()? {
            let Commitment { kind, frame, .. } = placed.commitment;
            if kind != FrameKind::Event {
                continue;
            }
            if missing.contains(frame) {
                untold.insert(frame, None);
                continue;
            }
            match frames.event(placed) {
                Ok(event) => ends.extend(end_in(&event)),
                Err(error) if error.kind() == ErrorKind::Tampered => {
                    untold.insert(frame, Some(error.to_string()));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Some(Rest {
            state,
            manifest,
            missing,
            above,
            explained,
            ends,
            untold,
            doubt: Cell::new(None),
            chain,
        }))
    }

    /// Takes in an event on a path that is found, if it is one of the tree that no other path tells.
    pub(super) fn learn(&mut self, commitment: &Commitment, event: &Event) -> Result<()> {
        let frame = commitment.frame;
        if self.untold.contains_key(&frame) && self.commitment(frame)? == *commitment {
            self.ends.extend(end_in(event));
            self.untold.remove(&frame);
        }
        Ok(())
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

    /// Whether another path has it, whole, in bytes that count, as far as events tell ([`Rest::surely`]). Those behind the tree were looked at.
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
                        let counts = !self.is_behind_an_end(&located) && located.verify()?.is_ok();
                        if counts && let Some((event, _)) = self.untold.range(frame..).next() {
                            self.doubt.set(Some(Doubt { frame, event: *event }));
                        }
                        Ok(counts)
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

    /// What is decided, if that does not rest on bytes of other paths of which a later event may tell that they do not count, or changes nothing.
    ///
    /// # Errors
    /// `Refused` or `Tampered` where it does, and the event is missing, or damaged.
    pub(super) fn surely<T>(
        &self,
        decide: impl FnOnce() -> Result<T>,
        changes: impl FnOnce(&T) -> bool,
    ) -> Result<T> {
        self.doubt.set(None);
        let decided = decide()?;
        match self.doubt.take() {
            Some(doubt) if changes(&decided) => Err(self.nothing_tells(doubt)),
            _ => Ok(decided),
        }
    }

    fn nothing_tells(&self, Doubt { frame, event }: Doubt) -> Error {
        let name = self.name();
        match self.untold.get(&event) {
            Some(Some(damage)) => damaged(&name, Error::tampered(damage)),
            _ => Error::new(
                ErrorKind::Refused,
                format!(
                    "nothing tells whether frame {frame} counts where {name} has it, or on a path that is found: the event in frame {event} may, \
                     and no path that is there has it whole. Name the one that has it in the same change, or mend it; where it is gone for \
                     good, copy the path that is found, and take the segment with frame {frame} away there before you name it"
                ),
            ),
        }
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
        if self.explained.iter().any(|(explained, _)| explained == name) || self.ends.contains_key(name) {
            return Ok(true);
        }
        match self.untold.values().flatten().next() {
            Some(damage) => Err(damaged(&self.name(), Error::tampered(damage))),
            None => Ok(false),
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

/// The segment whose end an event explains, and that end.
fn end_in(event: &Event) -> Option<(String, u64)> {
    event.explains().map(|(name, end)| (name.to_owned(), end))
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

//! The committer: puts sealed frames into segments in the order of their numbers, and makes them durable.
//!
//! Invariants:
//! - a frame is written after all frames before it, into the current segment only;
//! - what was written since the last sync is kept in memory until the next one (not in mode `os`), so that a
//!   segment that fails is abandoned and its unsynced frames go, byte for byte the same, to a new one;
//! - `durable` holds only what a sync has covered: nothing else is acknowledged or signed;
//! - no checkpoint covers what follows an abandoned segment before the event that tells of it is durable: recovery
//!   looks no further back than the checkpoint, so nobody else would tell;
//! - a segment is synced before the next one is begun, so that damage before a later segment cannot be a torn tail;
//! - of a log on several paths a segment, and its name, is written to the path that it was begun on alone, and given up once another one has
//!   taken over; that it has is looked at before anything written to it is told of as durable;
//! - nothing more is acknowledged once the current segment's file was removed, cut or replaced: that is looked at before each
//!   group is written, when a file that was cut has not grown again, and before each sync.
//!
//! **A file whose sync failed is never synced again.** After a failed fsync the page cache tells nothing: Linux marks the pages
//! clean, though the disk has not got them, some file systems bring old content back, and a second fsync succeeds all the
//! same (Rebello et al., *Can Applications Recover from fsync Failures?*, USENIX ATC 2020). So the frames go, from memory, to
//! another file, and where memory has not got them (mode `os`) the log fails.
//!
//! **A new file's directory is synced after the file.** Syncing a file does not make its name durable, and nothing orders the
//! two (Pillai et al., *All File Systems Are Not Created Equal*, OSDI 2014).

mod paths;

use crate::format::config::allowed::AllowedConfig;
use crate::format::epoch;
use crate::format::event::Event;
use crate::format::frame::{self, HEAD};
use crate::format::options::Durability;
use crate::format::sealed::Sealed;
use crate::format::segment::{self, SegmentName};
use crate::write::back_off::BackOff;
use crate::write::telemetry::{Meter, count};
use crate::write::tree_files::current;
use bulla_crypto::environment::Clock;
use bulla_crypto::seal_chain::{Seal, SealChain};
use bulla_proof::commitment::{Commitment, FrameKind};
use bulla_store::{Error, ErrorKind, Paths, Result};
use bulla_store::{Store, StoreFile};
use paths::{TAKEN_OVER, turn_of};
use std::borrow::Cow;
use std::io::{self, IoSlice};
use std::sync::Arc;

/// Where the committer goes on.
pub(crate) enum Start {
    /// In a new segment.
    NewSegment,
    /// At the end of a segment that was closed cleanly, which has this length.
    Extend(SegmentName, u64),
}

/// How the committer behaves when a write fails, and when it syncs.
#[derive(Clone, Debug)]
pub(crate) struct Policy {
    pub(crate) durability: Durability,
    /// Bytes of unsynced frames that are kept at most.
    pub(crate) kept: usize,
    pub(crate) segment_size: u64,
}

/// Frames that became durable, for the checkpoint to cover.
pub(crate) struct Durable {
    pub(crate) commitments: Vec<[u8; Commitment::LENGTH]>,
    /// The seal chain after the last of them.
    pub(crate) chain: SealChain,
    /// Which `[log]` may follow them.
    pub(crate) terms: AllowedConfig,
    /// The number of frames up to the last event of a hold, that one included; 0 where there is none.
    pub(crate) holds: u64,
}

impl Durable {
    /// Adds frames that follow these.
    pub(crate) fn extend(&mut self, later: Durable) {
        let Durable { mut commitments, chain, terms, holds } = later;
        self.commitments.append(&mut commitments);
        (self.chain, self.terms, self.holds) = (chain, terms, holds);
    }
}

struct Segment {
    name: SegmentName,
    /// The turn of the path that it lies on, and what lies there, by itself.
    turn: u64,
    path: Arc<dyn Store>,
    file: Box<dyn StoreFile>,
    /// Where the next frame goes.
    end: u64,
    /// The end of the frames that need not be written again should this segment fail.
    trusted: u64,
    /// Whether a crash may still take its name, because the directory was not synced since it was created.
    unnamed: bool,
    /// Whether [`Committer::became_full`] has said that it is full.
    full: bool,
}

/// A frame as it is written.
struct Framed {
    number: u64,
    epoch: bool,
    head: [u8; HEAD],
    body: Vec<u8>,
    seal: Seal,
}

impl Framed {
    fn length(&self) -> usize {
        HEAD + self.body.len() + frame::SEAL
    }
}

/// See the module.
pub(crate) struct Committer {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    back_off: Arc<BackOff>,
    policy: Policy,
    chain: SealChain,
    terms: AllowedConfig,
    /// The number of frames up to the last event of a hold.
    holds: u64,
    segment: Option<Segment>,
    /// The segment that was given up last: no other one has its name, wherever it lies.
    abandoned: Option<SegmentName>,
    /// The first frame that no sync has covered yet.
    group: u64,
    /// The current epoch's frame, to begin a segment with that continues the epoch.
    epoch_frame: Vec<u8>,
    unsynced: Vec<Framed>,
    unsynced_bytes: usize,
    /// Commitments of the frames that were written and not synced; in mode `os` they are all that is kept of those.
    written: Vec<[u8; Commitment::LENGTH]>,
    durable: Option<Durable>,
    events: Vec<Event>,
    /// The ends of segments that no durable event explains yet: no checkpoint may cover what follows them.
    unexplained: Vec<(String, u64)>,
    /// The ends that events explain which were committed since the last sync.
    explained: Vec<(String, u64)>,
    /// Why nothing is written or synced any more. Frames may be missing in the segment then, which a later sync would declare
    /// durable.
    failure: Option<Cow<'static, str>>,
    meter: Arc<Meter>,
    /// When the work that is under way was begun, and the turn of the path on which something was synced last.
    began: u64,
    synced_in: u64,
    /// The turn of the path that the newest segment was begun on, and the first frame there, until that is asked for.
    turn: u64,
    moved_at: Option<u64>,
}

impl Committer {
    /// A committer that goes on after `chain`, with `terms` and the last event of a hold. `adopted` are commitments that are durable but not signed yet: the
    /// first sync passes them on, so that no checkpoint covers them without the events of their recovery.
    pub(crate) fn new(
        store: Arc<dyn Store>,
        (clock, back_off, meter): (Arc<dyn Clock>, Arc<BackOff>, Arc<Meter>),
        policy: Policy,
        (chain, terms, holds): (SealChain, AllowedConfig, u64),
        start: Start,
        adopted: Vec<[u8; Commitment::LENGTH]>,
    ) -> Result<Self> {
        let segment = match start {
            Start::NewSegment => None,
            Start::Extend(name, end) => {
                let (turn, path) = current(&store);
                let opened = path.open_write(&name.path());
                match opened.and_then(|file| Ok((file.length()?, file))) {
                    // Of a log on several paths the path in use may have the beginning of it alone: the rest lies elsewhere, and stays there.
                    Ok((length, _)) if length != end => None,
                    // Whoever created it may have died before the directory was synced.
                    Ok((_, file)) => Some(Segment {
                        name,
                        turn,
                        path,
                        file,
                        end,
                        trusted: end,
                        unnamed: true,
                        full: false,
                    }),
                    Err(_) if store.paths().is_some() => None,
                    Err(error) => {
                        return Err(Error::io(format!("opening {}", store.describe(&name.path())), error));
                    }
                }
            }
        };
        let synced_in = turn_of(&*store);
        if let Some(paths) = store.paths() {
            paths.opened(chain.next_frame());
        }
        Ok(Committer {
            store,
            clock,
            back_off,
            policy,
            segment,
            abandoned: None,
            group: chain.next_frame(),
            epoch_frame: Vec::new(),
            unsynced: Vec::new(),
            unsynced_bytes: 0,
            written: adopted,
            durable: None,
            chain,
            terms,
            holds,
            events: Vec::new(),
            unexplained: Vec::new(),
            explained: Vec::new(),
            failure: None,
            meter,
            began: 0,
            synced_in,
            turn: synced_in,
            moved_at: None,
        })
    }

    /// Commits frames that follow the last one, of which only the first may be an epoch. Returns whether all frames that
    /// were given so far may be acknowledged.
    ///
    /// # Errors
    /// `Unavailable` where no segment takes them. Nothing more can be committed then.
    pub(crate) fn commit(&mut self, frames: Vec<Sealed>) -> Result<bool> {
        self.unless_failed(|committer| {
            committer.keep_up()?;
            committer.require_in_place()?;
            committer.commit_frames(frames)
        })
    }

    /// Makes everything durable that was committed.
    ///
    /// # Errors
    /// `Unavailable` where no segment can be synced. Nothing more can be committed then.
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.unless_failed(|committer| {
            committer.keep_up()?;
            committer.require_in_place()?;
            committer.sync_written()
        })
    }

    /// Does `work`, unless something failed before. A failure is final, and so is a panic: it is noted before the work, and
    /// taken back after it.
    fn unless_failed<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        match &self.failure {
            Some(failure) => Err(Error::unavailable(failure.clone())),
            None => {
                self.began = self.clock.steady();
                self.failure = Some(Cow::Borrowed("the log panicked while it was committing"));
                let result = work(self);
                self.failure = result.as_ref().err().map(|error| Cow::Owned(error.to_string()));
                result
            }
        }
    }

    fn commit_frames(&mut self, frames: Vec<Sealed>) -> Result<bool> {
        let begins_epoch = frames.first().is_some_and(|frame| frame.commitment.kind == FrameKind::Epoch);
        if begins_epoch && !self.epoch_frame.is_empty() {
            self.sync_written()?;
            self.segment = None;
        }
        let first = self.unsynced.len();
        self.seal(frames);
        self.write(first)?;
        match self.policy.durability {
            Durability::Group => self.sync_written()?,
            Durability::Interval(_) if self.unsynced_bytes > self.policy.kept => self.sync_written()?,
            Durability::Interval(_) => return Ok(false),
            Durability::Os => self.forget(),
        }
        Ok(true)
    }

    /// That the current segment's file is where it was, with all that was written to it. Where it is not, what was
    /// acknowledged is gone, and another segment would not bring it back.
    fn require_in_place(&mut self) -> Result<()> {
        let back_off = self.back_off.clone();
        let mut attempts = back_off.attempts();
        let (name, is_in_place) = loop {
            let turn = self.turn_at_work();
            let Some(segment) = &self.segment else { return Ok(()) };
            let name = self.store.describe(&segment.name.path());
            let error = match segment.file.is_in_place(segment.end) {
                Ok(is_in_place) => break (name, is_in_place),
                Err(error) => error,
            };
            let reason = format!("looking at {}: {error}", segment.name);
            if self.fail_over(turn, &reason) {
                return self.abandon(reason);
            }
            if !attempts.wait_for_next(&reason) {
                return Err(Error::io(format!("looking whether {name} is where it was"), error));
            }
        };
        match is_in_place {
            true => Ok(()),
            false => Err(Error::unavailable(format!(
                "{} was removed, cut or replaced while the log was open: what was acknowledged is not all there any more, \
                 and nothing more is written. Put the file back, from wherever it was moved or a copy of the log; \
                 `bulla verify` tells what is missing",
                name
            ))),
        }
    }

    fn sync_written(&mut self) -> Result<()> {
        if self.written.is_empty() {
            return Ok(());
        }
        let back_off = self.back_off.clone();
        let mut attempts = back_off.attempts();
        let mut untried = self.other_paths();
        loop {
            let turn = self.turn_at_work();
            let reason = match self.sync_segment() {
                // Whoever had another path take over meanwhile found that this one fails.
                Ok(()) if self.policy.durability != Durability::Os && !self.has_turn() => {
                    self.abandon(TAKEN_OVER.to_owned())?;
                    continue;
                }
                Ok(()) => break,
                Err((what, error)) if self.policy.durability == Durability::Os => {
                    let what =
                        format!("{what} failed; what was written since frame {} may be lost", self.group);
                    return Err(Error::io(what, error));
                }
                Err((what, error)) => format!("{what}: {error}"),
            };
            if !self.try_another_path(&mut untried, turn, &reason)
                && !attempts.wait_for_next(&self.untaken(&reason))
            {
                return Err(self.exhausted(&reason));
            }
            self.abandon(reason)?;
        }
        self.forget();
        self.group = self.chain.next_frame();
        let commitments = std::mem::take(&mut self.written);
        let (terms, holds) = (self.terms, self.holds);
        let durable = Durable { commitments, chain: self.chain.clone(), terms, holds };
        match &mut self.durable {
            Some(before) => before.extend(durable),
            None => self.durable = Some(durable),
        }
        let explained = std::mem::take(&mut self.explained);
        self.unexplained.retain(|end| !explained.contains(end));
        Ok(())
    }

    /// The first frame that no sync has covered yet.
    pub(crate) fn synced(&self) -> u64 {
        self.group
    }

    /// Takes what became durable since the last call; nothing while the event of an abandoned segment is not.
    pub(crate) fn take_durable(&mut self) -> Option<Durable> {
        self.durable.take_if(|_| self.unexplained.is_empty())
    }

    /// Whether a checkpoint has to wait for an event to become durable.
    pub(crate) fn withholds(&self) -> bool {
        !self.unexplained.is_empty()
    }

    /// Whether that event was written, so that a sync is all it takes.
    pub(crate) fn wants_sync(&self) -> bool {
        self.withholds() && !self.explained.is_empty()
    }

    /// The first frame on another path than those before, where one has taken over since the last call.
    pub(crate) fn take_moved(&mut self) -> Option<u64> {
        self.moved_at.take()
    }

    /// Takes what happened to segments since the last call.
    pub(crate) fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// Whether the current segment has become full: true once a segment.
    pub(crate) fn became_full(&mut self) -> bool {
        let Some(segment) = &mut self.segment else { return false };
        let full = segment.end >= self.policy.segment_size;
        full && !std::mem::replace(&mut segment.full, full)
    }

    /// Seals and frames what came.
    fn seal(&mut self, frames: Vec<Sealed>) {
        for mut frame in frames {
            let epoch = frame.commitment.kind == FrameKind::Epoch;
            assert_eq!(frame.commitment.frame, self.chain.next_frame(), "frames are committed in order");
            if epoch {
                epoch::set_previous_seal(&mut frame, self.chain.previous());
                self.terms = AllowedConfig::of(epoch::config(&frame));
            }
            if frame.commitment.kind == FrameKind::Event
                && let Ok(event) = Event::decode(&frame.body)
            {
                self.terms.take(&event);
                if event.is_of_hold() {
                    self.holds = frame.commitment.frame + 1;
                }
                self.explained.extend(event.explains().map(|(segment, at)| (segment.to_owned(), at)));
            }
            let seal = self.chain.seal(self.group, &frame.encoded);
            let head = frame::encode_head(&frame.encoded, frame.body.len(), self.group);
            if epoch {
                self.epoch_frame = [&head[..], &frame.body, &seal].concat();
            }
            let framed = Framed { number: frame.commitment.frame, epoch, head, body: frame.body, seal };
            self.written.push(frame.encoded);
            self.unsynced_bytes += framed.length();
            self.unsynced.push(framed);
        }
    }

    /// Lets go of the unsynced frames: they need not be written again.
    fn forget(&mut self) {
        self.unsynced.clear();
        self.unsynced_bytes = 0;
        if let Some(segment) = &mut self.segment {
            segment.trusted = segment.end;
        }
    }

    /// Writes the unsynced frames from index `first` on: with retries, then into a new segment; where another path takes the log, into
    /// one on that at once.
    fn write(&mut self, first: usize) -> Result<()> {
        let back_off = self.back_off.clone();
        let mut attempts = back_off.attempts();
        loop {
            let turn = self.turn_at_work();
            let Err(error) = self.try_write(first) else { return Ok(()) };
            let reason = format!("writing: {error}");
            // Another path may have come back meanwhile, and this one not.
            if self.fail_over(turn, &reason) {
                return self.abandon(reason);
            }
            self.store.paths().into_iter().for_each(Paths::waits);
            if !attempts.wait_for_next(&self.untaken(&reason)) {
                return self.abandon(reason);
            }
        }
    }

    fn try_write(&mut self, first: usize) -> io::Result<()> {
        if self.segment.is_none() {
            self.begin_segment(self.unsynced[first].number)?;
        }
        let segment = self.segment.as_mut().expect("a segment was just begun");
        // Before anything lies there: a path is not left before a checkpoint elsewhere covers what does.
        if self.store.paths().is_some_and(|paths| !paths.takes(segment.turn, self.chain.next_frame())) {
            return Err(io::Error::other(TAKEN_OVER));
        }
        let frames = &self.unsynced[first..];
        let copy = match segment.end == 0 && !frames[0].epoch {
            true => &self.epoch_frame[..],
            false => &[],
        };
        let parts = frames.iter().flat_map(|frame| [&frame.head[..], &frame.body, &frame.seal]);
        let mut buffers = std::iter::once(copy).chain(parts).map(IoSlice::new).collect::<Vec<_>>();
        segment.file.write_at(&mut buffers, segment.end)?;
        let written = copy.len() as u64 + frames.iter().map(|frame| frame.length() as u64).sum::<u64>();
        segment.end += written;
        count(&self.meter.written_bytes, written);
        Ok(())
    }

    /// Creates the segment whose first frame is `first`.
    fn begin_segment(&mut self, first: u64) -> io::Result<()> {
        let (turn, path) = current(&self.store);
        let mut name = free_name(&*self.store, first)?;
        if let Some(abandoned) = self.abandoned.filter(|abandoned| abandoned.first == first) {
            // A path that failed does not tell what lies on it.
            name.generation = name.generation.max(abandoned.generation.saturating_add(1));
        }
        let file = path.create(&name.path())?;
        if std::mem::replace(&mut self.turn, turn) != turn {
            self.moved_at = Some(first);
        }
        count(&self.meter.segments, 1);
        self.segment =
            Some(Segment { name, turn, path, file, end: 0, trusted: 0, unnamed: true, full: false });
        Ok(())
    }

    fn sync_segment(&mut self) -> Result<(), (String, io::Error)> {
        let Some(segment) = &mut self.segment else { return Ok(()) };
        let start = self.clock.steady();
        segment.file.sync().map_err(|error| (format!("syncing {}", segment.name), error))?;
        let now = self.clock.steady();
        let took = now.saturating_sub(start);
        if segment.unnamed {
            let synced = segment.path.sync_directory(segment::DIRECTORY);
            synced.map_err(|error| (format!("syncing the directory of {}", segment.name), error))?;
            segment.unnamed = false;
        }
        if std::mem::replace(&mut self.synced_in, segment.turn) != segment.turn {
            self.meter.failovers.add(now.saturating_sub(self.began));
        }
        self.meter.syncs.add(took);
        if let Some(paths) = self.store.paths() {
            paths.committed(segment.turn);
        }
        Ok(())
    }

    /// Gives the current segment up: every frame that must be written again goes to a new one.
    fn abandon(&mut self, mut reason: String) -> Result<()> {
        if self.policy.durability == Durability::Os {
            // Its earlier frames are not in memory any more, so they must be durable before another segment follows.
            self.sync_segment().map_err(|(what, error)| {
                Error::io(
                    format!("{reason}, then {what}; what was written since frame {} may be lost", self.group),
                    error,
                )
            })?;
        }
        let back_off = self.back_off.clone();
        let mut attempts = back_off.attempts();
        let mut untried = self.other_paths();
        loop {
            if let Some(segment) = self.segment.take() {
                self.abandoned = Some(segment.name);
                if self.is_taken_away(&segment) {
                    continue;
                }
                let next_frame = self.unsynced.first().map_or(self.chain.next_frame(), |frame| frame.number);
                let (segment, offset) = (segment.name.to_string(), segment.trusted);
                self.unexplained.push((segment.clone(), offset));
                count(&self.meter.abandoned, 1);
                self.events.push(Event::Abandoned { segment, next_frame, offset, reason: reason.clone() });
            }
            if self.unsynced.is_empty() {
                return Ok(());
            }
            let turn = self.turn_at_work();
            match self.try_write(0) {
                Ok(()) => return Ok(()),
                Err(error) => reason = format!("writing: {error}"),
            }
            if !self.try_another_path(&mut untried, turn, &reason)
                && !attempts.wait_for_next(&self.untaken(&reason))
            {
                return Err(self.exhausted(&reason));
            }
        }
    }

    fn exhausted(&self, reason: &str) -> Error {
        let directory = self.store.describe(segment::DIRECTORY);
        let frame = self.unsynced.first().map_or(self.group, |frame| frame.number);
        let message = format!("nothing can be committed to {directory} from frame {frame} on: {reason}");
        Error::new(ErrorKind::Unavailable, message)
    }
}

/// The name of a new segment whose first frame is `first`. Of several segments with one first frame the last generation is
/// the one that counts, so this one is of the generation after all that are there. Generations may be missing: a crash
/// may have taken a name.
///
/// # Errors
/// Where the directory cannot be listed, or a file has the last name of them all.
pub(crate) fn free_name(store: &dyn Store, first: u64) -> io::Result<SegmentName> {
    let items = store.list(segment::DIRECTORY)?;
    let names = items.iter().filter_map(|item| SegmentName::parse(&item.name));
    let taken = names.filter(|name| name.first == first).map(|name| name.generation);
    let generation = taken.max().map_or(Some(0), |generation| generation.checked_add(1));
    let generation = generation.ok_or_else(|| {
        let last = SegmentName { first, generation: u32::MAX };
        io::Error::other(format!("{} leaves no name for a new segment", store.describe(&last.path())))
    })?;
    Ok(SegmentName { first, generation })
}

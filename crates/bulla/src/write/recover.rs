//! Recovery: what opening a log for writing finds out, adopts, and leaves behind.
//!
//! Invariants:
//! - a frame above the checkpoint is adopted only if its seal holds, and only once it was written, byte for byte,
//!   into a new segment and synced. What is read back now may never have reached the medium: after a failed `fsync` the
//!   kernel may mark its pages clean, serve them all the same, and never write them (A. Rebello and others, "Can
//!   Applications Recover from fsync Failures?", USENIX ATC 2020);
//! - nothing below the newest anchor (checkpoint, seal state, pin) is ever cut: if it is not there, the log is
//!   tampered with. Of the pin `engine::pins` sees to that, before anything is adopted;
//! - groups were synced in order, so damage before a frame of a later group is no torn tail;
//! - a log goes on only with the `[log]` of its last epoch, or the one that an event since then allows; what allows
//!   it is the seal state, or a frame whose seal holds, never the log's directory alone;
//! - no byte is removed but exact copies of what was adopted: what no frame refers to stays where it is, is made durable, and an
//!   event tells its place, length and digest; only its place, where the medium does not take it or it is too long.
//!
//! A clean log takes the same way: it merely finds nothing to adopt.
//!
//! A name is durable once its directory is synced, and not before (`fsync(2)`, "Description"; T. S. Pillai and others,
//! "All File Systems Are Not Created Equal", OSDI 2014).

mod adopt;
mod lost;

use crate::format::config::{self, LogConfig, allowed::AllowedConfig};
use crate::format::epoch::{EpochBody, MAX_EPOCH};
use crate::format::event::Event;
use crate::format::files;
use crate::format::frame::{self, FrameError, Head};
use crate::format::segment::{self, SegmentName};
use crate::keys::seal_state::SealState;
use crate::scan::cursor::Cursor;
use crate::scan::located::event_in;
use crate::scan::lost::are_lost;
use crate::scan::paths::{self, Histories, not_there};
use crate::scan::stored_tree::Chunk;
use crate::write::commit::Start;
use crate::write::tree_files;
use bulla_crypto::group::PartId;
use bulla_crypto::seal_chain::{Seal, SealChain};
use bulla_proof::checkpoint::Checkpoint;
use bulla_proof::commitment::{Commitment, FrameKind, LogId};
use bulla_proof::hash::Hash;
use bulla_proof::tile::TileBuilder;
use bulla_proof::tree::{self, TreeHead};
use bulla_store::{Error, ErrorKind, Paths, Result, Store};
use bulla_text::spelling::counted;
use lost::furthest_signed;
use std::io;

/// What a log that may be written to goes on with.
pub(crate) struct Recovered {
    pub(crate) next_frame: u64,
    pub(crate) next_entry: u64,
    pub(crate) chain: SealChain,
    /// Which `[log]` may follow.
    pub(crate) terms: AllowedConfig,
    pub(crate) tiles: TileBuilder,
    pub(crate) bundle: Vec<u8>,
    /// Durable frames that no checkpoint covers yet.
    pub(crate) adopted: Vec<[u8; Commitment::LENGTH]>,
    pub(crate) start: Start,
    pub(crate) events: Vec<Event>,
    /// Data subjects that adopted events say were erased.
    pub(crate) erased: Vec<u64>,
    /// The adopted events of entries that were dropped: their frames, and how many entries each tells of.
    pub(crate) dropped: Vec<(u64, u64)>,
    /// The number of frames up to the last event of a hold, that one included; 0 where there is none.
    pub(crate) holds: u64,
    pub(crate) report: Recovery,
}

/// What opening a log found beyond its last checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    /// Frames that were durable and sealed, and were adopted.
    pub frames: u64,
    /// The entries in them.
    pub entries: u64,
    /// Bytes of a torn tail, which were not: nobody had been told that they were durable.
    pub torn_bytes: u64,
    /// Whether `checkpoint.cose` was none that the log's key has signed, and was made anew.
    pub cose_damaged: bool,
}

/// A segment as the scan found it.
struct Scanned {
    /// Where the last sound frame ends.
    cursor: Cursor,
    /// Where the last frame below the checkpoint ends; 0 where there is none but a copied epoch frame.
    kept: u64,
    /// The frames above the checkpoint.
    above: Vec<Head>,
    /// The epoch frame that those continue, if it stands before them: offset and length.
    epoch: Option<(u64, u64)>,
}

/// What lies beyond a checkpoint, and may be gone on with.
pub(crate) struct Survey {
    next: u64,
    next_entry: u64,
    chain: SealChain,
    terms: AllowedConfig,
    explained: Vec<(String, u64)>,
    erased: Vec<u64>,
    given_up: Vec<(u64, PartId)>,
    dropped: Vec<(u64, u64)>,
    holds: u64,
    scanned: Vec<Scanned>,
    /// Segments that nothing leads to any more: frames before theirs were lost with a path, and nobody had signed those.
    unreachable: Vec<SegmentName>,
}

/// The scan's state: what the next frame has to be.
struct Scan<'a> {
    store: &'a dyn Store,
    config: &'a LogConfig,
    state: &'a SealState,
    checkpoint: &'a Checkpoint,
    /// Whether frames that no path has are lost for good.
    lost: bool,
    unreachable: Vec<SegmentName>,
    next: u64,
    next_entry: u64,
    chain: SealChain,
    tree: tree::Frontier,
    /// The tree's root where the seal state ends, once that is known.
    root: Option<Hash>,
    terms: AllowedConfig,
    explained: Vec<(String, u64)>,
    erased: Vec<u64>,
    given_up: Vec<(u64, PartId)>,
    dropped: Vec<(u64, u64)>,
    holds: u64,
}

/// What recovery would go on with. Nothing is written yet, so whoever refuses to go on leaves the log as it is.
pub(crate) struct Found {
    checkpoint: Checkpoint,
    tiles: TileBuilder,
    bundle: Vec<u8>,
    survey: Survey,
    /// What is to be told of segments on other paths than the one in use that are set aside.
    set_aside: Vec<Event>,
    /// The frames that the vault had followed.
    pub(crate) followed: u64,
    pub(crate) report: Recovery,
}

/// Looks at the log in `log`, whose host state is in `keys`, and at what lies beyond its checkpoint.
///
/// # Errors
/// `Tampered` where the log is not what was written, `Refused` where log and keys do not belong together,
/// `Unavailable` where a file cannot be read.
pub(crate) fn find(log: &dyn Store, keys: &dyn Store, config: &LogConfig) -> Result<Found> {
    // A process that died between renaming a file and syncing its directory has left a name that a power cut takes back.
    for store in [log, keys] {
        let synced = store.sync_directory("");
        synced.map_err(|error| Error::io(format!("syncing {}", store.describe("")), error))?;
    }
    let checkpoint = read_checkpoint(log, config)?;
    let state = read_state(keys, config)?;
    let checkpoint = furthest_signed(log, checkpoint, &state);
    let (tiles, bundle) = tree_files::load_edge(log, &checkpoint)?;
    let segments = segment::list(log)?.0;
    let survey = survey(log, config, (&state, &checkpoint), tiles.frontier(), &segments)?;
    let torn = survey.scanned.last().map_or(0, |last| last.cursor.length - last.cursor.offset);
    let report = Recovery {
        frames: survey.above().count() as u64,
        entries: survey.above().map(|head| head.commitment.entries).sum(),
        torn_bytes: torn,
        cose_damaged: false,
    };
    Ok(Found { checkpoint, tiles, bundle, survey, set_aside: Vec::new(), followed: state.followed, report })
}

impl Found {
    /// The tree that the checkpoint covers.
    pub(crate) fn signed(&self) -> TreeHead {
        TreeHead { size: self.checkpoint.size, root: self.checkpoint.root }
    }

    /// How many frames the checkpoint covers.
    pub(crate) fn signed_frames(&self) -> u64 {
        self.checkpoint.size
    }

    /// The parts of the log that were given up, as events tell which no checkpoint covers, with their frames.
    pub(crate) fn given_up(&self) -> &[(u64, PartId)] {
        &self.survey.given_up
    }

    /// The end of the tree that the log would go on with, and the number of its next frame.
    pub(crate) fn edge(&self) -> (Edge, u64) {
        (Edge::of(&self.tiles, &self.survey), self.survey.next)
    }

    /// Sets aside, where it lies, what nothing leads to any more and lies on another path than the one in use, which is none the worse where
    /// that fails.
    ///
    /// # Errors
    /// `Unavailable` where the path that has it does not give it another name.
    pub(crate) fn set_aside_elsewhere(&mut self, log: &dyn Store) -> Result<()> {
        let Some(paths) = log.paths() else { return Ok(()) };
        for name in std::mem::take(&mut self.survey.unreachable) {
            let elsewhere = paths.holding(&name.path()).filter(|_| !paths.is_in_use(&name.path()));
            match elsewhere {
                Some(path) => self.set_aside.push(adopt::set_aside((log, &*path), name, self.survey.next)?),
                None => self.survey.unreachable.push(name),
            }
        }
        Ok(())
    }

    /// Removes what a crash inside an earlier recovery left, and writes anew what is adopted.
    ///
    /// # Errors
    /// `Unavailable` where a file cannot be read or written.
    pub(crate) fn adopt(self, log: &dyn Store, segment_size: u64) -> Result<Recovered> {
        let Found { checkpoint, tiles, bundle, survey, set_aside, report, .. } = self;
        match log.paths().is_some_and(Paths::has_lost_one) {
            // Frames that it had are not gone on with, and what was written of a tree with them is of another one.
            true => tree_files::cut_back(log, &tiles, &bundle)?,
            false => tree_files::remove_unfinished(log, checkpoint.size),
        }
        remove_unfinished(log)?;
        let adopted = survey.above().map(|head| head.encoded).collect();
        let Survey {
            next,
            next_entry,
            chain,
            terms,
            explained,
            erased,
            dropped,
            holds,
            scanned,
            unreachable,
            given_up: _,
        } = survey;
        let mut events = adopt::rewrite(log, &scanned, next, &explained)?;
        let adopts_all = set_aside.is_empty() && unreachable.is_empty();
        events.extend(set_aside);
        for name in unreachable {
            events.push(adopt::set_aside((log, log), name, next)?);
        }
        let start = match scanned.last() {
            Some(last)
                if (report.frames, report.torn_bytes) == (0, 0)
                    && adopts_all
                    && last.kept < segment_size
                    && last.kept == last.cursor.length =>
            {
                Start::Extend(last.cursor.name, last.kept)
            }
            _ => Start::NewSegment,
        };
        Ok(Recovered {
            next_frame: next,
            next_entry,
            chain,
            terms,
            tiles,
            bundle,
            adopted,
            start,
            events,
            erased,
            dropped,
            holds,
            report,
        })
    }
}

/// What opening the log would go on behind.
pub(crate) struct Beyond {
    /// The number of the next frame.
    pub(crate) next: u64,
    /// How many entries the frames have that no checkpoint covers.
    pub(crate) entries: u64,
    /// Data subjects that events which no checkpoint covers say were erased.
    pub(crate) erased: Vec<u64>,
    /// The parts of the log that were given up, as events tell which no checkpoint covers, with their frames.
    pub(crate) given_up: Vec<(u64, PartId)>,
    pub(crate) edge: Edge,
}

/// The end of the tree: what the checkpoint covers, and the frames beyond it that count.
pub(crate) struct Edge {
    tree: tree::Frontier,
    above: Vec<[u8; Commitment::LENGTH]>,
}

impl Edge {
    fn of(tiles: &TileBuilder, survey: &Survey) -> Self {
        Edge { tree: tiles.frontier(), above: survey.above().map(|head| head.encoded).collect() }
    }

    /// The root over the first `size` frames of all; `None` where those end before the checkpoint does, or there are no more.
    pub(crate) fn root_at(&self, size: u64) -> Option<Hash> {
        let mut tree = self.tree.clone();
        let mut above = self.above.iter();
        while tree.size() < size {
            tree.push(tree::leaf_hash(above.next()?));
        }
        (tree.size() == size).then(|| tree.root())
    }
}

/// What opening the log would go on behind. Changes nothing.
///
/// # Errors
/// As [`survey`].
pub(crate) fn beyond(
    log: &dyn Store,
    config: &LogConfig,
    state: &SealState,
    checkpoint: &Checkpoint,
) -> Result<Beyond> {
    let (tiles, _) = tree_files::load_edge(log, checkpoint)?;
    let segments = segment::list(log)?.0;
    let survey = survey(log, config, (state, checkpoint), tiles.frontier(), &segments)?;
    let entries = survey.above().map(|head| head.commitment.entries).sum();
    let edge = Edge::of(&tiles, &survey);
    Ok(Beyond { next: survey.next, entries, erased: survey.erased, given_up: survey.given_up, edge })
}

/// Looks at what lies beyond a checkpoint, with what the writing host knows of the log: which frames count, and that nothing
/// speaks against going on behind them. `tree` is that of the checkpoint. Changes nothing.
///
/// # Errors
/// `Tampered` where the log is not what was written, `Refused` where its `[log]` is not, `Unavailable` where a file cannot be
/// read or is of a newer format version.
pub(crate) fn survey(
    log: &dyn Store,
    config: &LogConfig,
    (state, checkpoint): (&SealState, &Checkpoint),
    tree: tree::Frontier,
    segments: &[SegmentName],
) -> Result<Survey> {
    let signed = TreeHead { size: checkpoint.size, root: checkpoint.root };
    if paths::compare(log, state.head(), signed) == Histories::Two {
        let frames = signed.size.min(state.head().size);
        let why = paths::another_history(&log.describe(""), "the key directory's seal state", frames);
        return Err(paths::refuse_to_write(&why));
    }
    let mut scan = Scan {
        store: log,
        config,
        state,
        checkpoint,
        lost: are_lost(log),
        unreachable: Vec::new(),
        next: 0,
        next_entry: 0,
        chain: state.chain.clone(),
        tree,
        root: (state.chain.next_frame() == checkpoint.size).then_some(checkpoint.root),
        terms: state.terms,
        explained: Vec::new(),
        erased: Vec::new(),
        given_up: Vec::new(),
        dropped: Vec::new(),
        holds: state.holds,
    };
    let scanned = scan.run(segments)?;
    scan.check_anchors()?;
    scan.refuse_later_groups(scanned.last())?;
    scan.check_config()?;
    let Scan {
        next, next_entry, chain, terms, explained, erased, given_up, dropped, holds, unreachable, ..
    } = scan;
    Ok(Survey {
        next,
        next_entry,
        chain,
        terms,
        explained,
        erased,
        given_up,
        dropped,
        holds,
        scanned,
        unreachable,
    })
}

impl Survey {
    /// The frames that no checkpoint covers yet.
    fn above(&self) -> impl Iterator<Item = &Head> {
        self.scanned.iter().flat_map(|segment| &segment.above)
    }

    /// What is wrong with the bytes behind the last frame that counts, where no crash can have left them: it leaves of the frames
    /// of one write what was written, each in its place, and zeros for what was not. Opening cuts them off all the same, and has
    /// the log tell so.
    ///
    /// # Errors
    /// `Unavailable` where the segment cannot be read.
    pub(crate) fn stranger(&self, log: LogId) -> Result<Option<String>> {
        let Some(Scanned { cursor, .. }) = self.scanned.last() else { return Ok(None) };
        match cursor.peek()? {
            None => return Ok(None),
            Some(Err(_)) => {
                let rest = usize::try_from(cursor.length - cursor.offset).unwrap_or(usize::MAX);
                let mut bytes = vec![0; rest.min(frame::HEAD)];
                cursor.file.read_exact_at(&mut bytes, cursor.offset).map_err(|error| cursor.failed(error))?;
                if !frame::may_be_torn(&bytes, log) {
                    return Ok(Some(format!("what follows it at offset {} is no frame", cursor.offset)));
                }
            }
            Some(Ok(head)) => {
                let right = self.chain.clone().seal(head.group, &head.encoded);
                let torn = |stored: Seal| {
                    stored.iter().zip(right).all(|(stored, right)| *stored == right || *stored == 0)
                };
                if self.may_follow(&head, log) && is_sound(cursor, &head)? && !torn(cursor.seal(head.end())?)
                {
                    return Ok(Some(format!("the seal of frame {} does not hold", head.commitment.frame)));
                }
            }
        }
        let strange = |head: &Head| !cursor.is_copy(head) && !self.may_follow(head, log);
        let found = cursor.find(cursor.offset, strange)?;
        Ok(found.map(|offset| {
            format!("at offset {offset} stands the head of a frame that no write of frame {} has", self.next)
        }))
    }

    /// Whether a frame with this head can be of the write that begins with the next frame, where it stands.
    fn may_follow(&self, head: &Head, log: LogId) -> bool {
        let Commitment { frame, first_entry, log_id, .. } = head.commitment;
        let end = self.scanned.last().map(|last| last.cursor.offset);
        let in_order = match end == Some(head.offset) {
            true => (frame, first_entry) == (self.next, self.next_entry),
            false => frame > self.next && first_entry >= self.next_entry,
        };
        in_order && log_id == log && head.group <= self.next
    }
}

/// Reads the published checkpoint and checks its signature.
fn read_checkpoint(log: &dyn Store, config: &LogConfig) -> Result<Checkpoint> {
    let name = log.describe(files::CHECKPOINT);
    let bytes = bulla_store::read_small(log, files::CHECKPOINT, 1 << 20).map_err(|error| {
        match error.io_error().map(io::Error::kind) {
            Some(io::ErrorKind::NotFound) => Error::tampered(format!("{name} is missing")),
            // Larger than any checkpoint.
            None => Error::tampered(error.to_string()),
            Some(_) => error,
        }
    })?;
    config
        .own_keys()
        .open(&bytes)
        .map_err(|error| Error::tampered(format!("{name}: {error}; run `bulla verify`")))
}

fn read_state(keys: &dyn Store, config: &LogConfig) -> Result<SealState> {
    let state = SealState::load(keys)?;
    if state.log != config.id {
        let message = format!("{} belongs to another log, {}", keys.describe(""), state.log);
        return Err(Error::new(ErrorKind::Refused, message));
    }
    Ok(state)
}

/// Removes the segments that a crash inside an earlier recovery left unfinished. Of a log on several paths one may lie on another than the
/// one in use, where it stands in nobody's way: it is removed once that one is opened on.
fn remove_unfinished(log: &dyn Store) -> Result<()> {
    let others = segment::list(log)?.1;
    for other in others.iter().filter(|name| name.ends_with(".seg.tmp")) {
        let path = format!("{}/{other}", segment::DIRECTORY);
        match log.remove(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::io(format!("removing {}", log.describe(&path)), error));
            }
            _ => {}
        }
    }
    Ok(())
}

impl Scan<'_> {
    /// Scans the segments from the one that holds the last frame below all anchors.
    fn run(&mut self, segments: &[SegmentName]) -> Result<Vec<Scanned>> {
        let below = self.anchored().saturating_sub(1);
        // A segment that was passed over for one of the same first frame was told of before any checkpoint.
        let begin = match self.anchored() {
            0 => 0,
            _ => segments.partition_point(|name| name.first <= below).saturating_sub(1),
        };
        let mut scanned = Vec::new();
        self.next = segments.get(begin).map_or(0, |name| name.first);
        if self.next > below {
            self.next = 0;
        }
        for (index, name) in segments.iter().enumerate().skip(begin) {
            if name.first != self.next {
                self.pass_lost(&mut scanned)?;
            }
            if name.first != self.next {
                let is_signed = self.next < self.state.chain.next_frame().max(self.checkpoint.size);
                if !self.lost || is_signed || name.first < self.next {
                    return Err(self.missing(*name));
                }
                self.unreachable = segments[index..].to_vec();
                break;
            }
            let limit = segments.get(index + 1).map(|next| next.first);
            scanned.push(self.segment(*name, limit, below)?);
        }
        self.pass_lost(&mut scanned)?;
        Ok(scanned)
    }

    /// Of a log that has lost a path, goes on behind all that is signed where the last of that lay on it: the tree tells where it ends. What
    /// was `scanned` before it is no place to go on at.
    fn pass_lost(&mut self, scanned: &mut Vec<Scanned>) -> Result<()> {
        if self.lost && self.next < self.anchored() {
            scanned.clear();
            (self.next, self.next_entry) = (self.anchored(), self.entries_before(self.anchored())?);
        }
        Ok(())
    }

    /// How many entries come before a frame, as the tree says.
    fn entries_before(&self, frame: u64) -> Result<u64> {
        let last = Chunk::load(self.store, frame - 1, self.checkpoint.size)?.agreed(frame - 1);
        let last = last.and_then(|entry| Commitment::decode(&entry).ok());
        let last = last.ok_or_else(|| {
            Error::tampered("the tree does not tell how many entries the log has; run `bulla verify`")
        })?;
        Ok(last.first_entry.saturating_add(last.entries))
    }

    /// Reads one segment, up to frame `limit` or the first byte that is not a sound frame.
    fn segment(&mut self, name: SegmentName, limit: Option<u64>, below: u64) -> Result<Scanned> {
        let mut cursor = Cursor::open(self.store, name)?;
        let (mut kept, mut above, mut epoch) = (0, Vec::new(), None);
        while limit.is_none_or(|limit| self.next < limit) {
            let head = match cursor.peek()? {
                Some(Ok(head)) => head,
                Some(Err(FrameError::NewerVersion(version))) => {
                    return Err(Error::unavailable(format!(
                        "{} holds frames of format version {version}; use a newer program",
                        self.store.describe(&name.path())
                    )));
                }
                Some(Err(_)) | None => break,
            };
            let copy = cursor.is_copy(&head);
            if !copy && (head.commitment.frame != self.next || head.commitment.log_id != self.config.id) {
                break;
            }
            let wanted = head.commitment.frame >= below;
            if (copy || wanted) && !is_sound(&cursor, &head)? {
                break;
            }
            if !copy && !self.accept(&cursor, &head)? {
                break;
            }
            cursor.pass(&head);
            let is_above = !copy && head.commitment.frame >= self.checkpoint.size;
            if !copy && !is_above {
                kept = head.end();
            }
            if head.commitment.kind == FrameKind::Epoch && above.is_empty() {
                epoch = (!is_above).then_some((head.offset, head.length()));
            }
            if is_above {
                above.push(head);
            }
        }
        Ok(Scanned { cursor, kept, above, epoch })
    }

    /// Takes the next frame, unless its seal or its place in the numbering is wrong.
    fn accept(&mut self, cursor: &Cursor, head: &Head) -> Result<bool> {
        let body = || cursor.locate(head.commitment.clone(), head.offset).body();
        let Commitment { frame, first_entry, entries, kind, body_length, .. } = head.commitment;
        if frame >= self.state.chain.next_frame() {
            let mut chain = self.chain.clone();
            let seal = chain.seal(head.group, &head.encoded);
            if seal != cursor.seal(head.end())? || first_entry != self.next_entry {
                return Ok(false);
            }
            self.chain = chain;
        }
        if frame >= self.checkpoint.size {
            self.tree.push(tree::leaf_hash(&head.encoded));
            if self.tree.size() == self.state.chain.next_frame() {
                self.root = Some(self.tree.root());
            }
        }
        // What the seal state does not speak of yet: its seal was checked just now.
        let sealed = frame >= self.state.chain.next_frame();
        if kind == FrameKind::Event {
            let event = match event_in(&cursor.locate(head.commitment.clone(), head.offset)) {
                // Verification judges what both anchors cover. An event that is damaged there explains nothing.
                Err(error) if error.kind() == ErrorKind::Tampered && frame < self.anchored() => None,
                event => Some(event?),
            };
            if let Some(event) = event {
                self.take_event(frame, sealed, &event);
            }
        }
        if kind == FrameKind::Epoch && sealed && body_length <= MAX_EPOCH {
            self.terms =
                EpochBody::decode(&body()?).map_or(self.terms, |body| AllowedConfig::of(body.config));
        }
        self.next = frame + 1;
        self.next_entry = first_entry + entries;
        Ok(true)
    }

    /// Takes in what an event says: of `[log]` and of holds one that is `sealed`, of which the seal state does not speak yet.
    fn take_event(&mut self, frame: u64, sealed: bool, event: &Event) {
        self.explained.extend(event.explains().map(|(segment, at)| (segment.to_owned(), at)));
        if sealed {
            self.terms.take(event);
            if event.is_of_hold() {
                self.holds = frame + 1;
            }
        }
        if frame >= self.checkpoint.size {
            self.erased.extend(event.erases());
            self.given_up.extend(event.gives_up().map(|id| (frame, id)));
            if let Event::Dropped(dropped) = event {
                self.dropped.push((frame, dropped.entries));
            }
        }
    }

    /// How many frames both checkpoint and seal state speak of.
    fn anchored(&self) -> u64 {
        self.state.chain.next_frame().min(self.checkpoint.size)
    }

    /// Nothing below an anchor may be missing, and what is there must be what the anchor saw.
    fn check_anchors(&self) -> Result<()> {
        let directory = self.store.describe("");
        for (what, size) in
            [("seal state", self.state.chain.next_frame()), ("checkpoint", self.checkpoint.size)]
        {
            if self.next < size {
                return Err(Error::tampered(format!(
                    "{directory} ends after {}, but its {what} covers {size}: frames are missing or damaged, \
                     or an older copy was restored{}; run `bulla verify`",
                    counted(self.next, "frame"),
                    paths::with_way_out(&self.elsewhere())
                )));
            }
        }
        if self.root.is_some_and(|root| root != self.state.root) {
            return Err(Error::tampered(format!(
                "{directory} is not the log that its seal state describes; run `bulla verify`"
            )));
        }
        Ok(())
    }

    /// `[log]` has to be the one that the log was written with last, or one that an event allows.
    fn check_config(&self) -> Result<()> {
        match self.terms.admit(self.config.digest) {
            true => Ok(()),
            false => Err(config::edited(self.store)),
        }
    }

    /// Damage followed by anything of a later group cannot have been left by a crash.
    fn refuse_later_groups(&self, last: Option<&Scanned>) -> Result<()> {
        let Some(last) = last else { return Ok(()) };
        if self.lost && last.kept == 0 && last.above.is_empty() {
            // It was set aside by a recovery that was cut short, since frames before its own are lost.
            return Ok(());
        }
        let last = &last.cursor;
        let later = |head: &Head| head.commitment.log_id == self.config.id && head.group > self.next;
        match last.find(last.offset, later)? {
            None => Ok(()),
            Some(offset) => Err(Error::tampered(format!(
                "{} is damaged at offset {}, where frame {} should be, yet frames that were written after it was \
                 durable follow at offset {offset}; run `bulla verify`",
                self.store.describe(&last.name.path()),
                last.offset,
                self.next
            ))),
        }
    }

    fn missing(&self, name: SegmentName) -> Error {
        Error::tampered(format!(
            "{} missing or damaged before {}{}; run `bulla verify`",
            match (self.next, name.first.saturating_sub(1)) {
                (first, last) if first == last => format!("frame {first} is"),
                (first, last) => format!("frames {first} to {last} are"),
            },
            self.store.describe(&name.path()),
            self.elsewhere()
        ))
    }

    /// Where what is missing may lie.
    fn elsewhere(&self) -> String {
        let elsewhere = not_there(self.store);
        if elsewhere.is_empty() { elsewhere } else { format!("; {elsewhere}") }
    }
}

/// Whether the body is the one that the commitment says.
fn is_sound(cursor: &Cursor, head: &Head) -> Result<bool> {
    let digest = frame::digest(&*cursor.file, head.body_offset(), head.commitment.body_length);
    Ok(digest.map_err(|error| cursor.failed(error))? == head.commitment.body_digest)
}

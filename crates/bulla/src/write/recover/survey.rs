//! What lies beyond a checkpoint: which frames there count, and that nothing speaks against going on behind them.

use crate::format::config::{self, LogConfig, allowed::AllowedConfig};
use crate::format::epoch::{EpochBody, MAX_EPOCH};
use crate::format::event::Event;
use crate::format::frame::{self, FrameError, Head};
use crate::format::path::{self, PathId};
use crate::format::segment::SegmentName;
use crate::keys::seal_state::SealState;
use crate::scan::cursor::Cursor;
use crate::scan::located::event_in;
use crate::scan::paths::{self, Histories, not_there};
use crate::scan::stored_tree::Chunk;
use bulla_crypto::group::PartId;
use bulla_crypto::seal_chain::{Seal, SealChain};
use bulla_proof::checkpoint::Checkpoint;
use bulla_proof::commitment::{Commitment, FrameKind, LogId};
use bulla_proof::hash::Hash;
use bulla_proof::tree::{self, TreeHead};
use bulla_store::{Error, ErrorKind, Result, Store};
use bulla_text::spelling::counted;
use std::collections::BTreeSet;

/// A segment as the scan found it.
pub(super) struct Scanned {
    /// Where the last sound frame ends.
    pub(super) cursor: Cursor,
    /// Where the last frame below the checkpoint ends; 0 where there is none but a copied epoch frame.
    pub(super) kept: u64,
    /// The frames above the checkpoint.
    pub(super) above: Vec<Head>,
    /// The epoch frame that those continue, if it stands before them: offset and length.
    pub(super) epoch: Option<(u64, u64)>,
}

/// What lies beyond a checkpoint, and may be gone on with.
pub(crate) struct Survey {
    pub(super) next: u64,
    pub(super) next_entry: u64,
    pub(super) chain: SealChain,
    pub(super) terms: AllowedConfig,
    pub(super) explained: Vec<(String, u64)>,
    pub(super) erased: Vec<u64>,
    pub(super) given_up: Vec<(u64, PartId)>,
    pub(super) dropped: Vec<(u64, u64)>,
    pub(super) holds: u64,
    /// The parts that were given up, as the seal state and events behind it tell.
    pub(super) parts: BTreeSet<PartId>,
    pub(super) scanned: Vec<Scanned>,
    /// Segments that nothing leads to any more: frames before theirs were lost with a path, and nobody had signed those.
    pub(super) unreachable: Vec<SegmentName>,
}

/// The scan's state: what the next frame has to be.
struct Scan<'a> {
    store: &'a dyn Store,
    config: &'a LogConfig,
    state: &'a SealState,
    checkpoint: &'a Checkpoint,
    /// From which frame on none that no path has is lost for good; 0 where no frame is.
    lost_below: u64,
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
    parts: BTreeSet<PartId>,
}

/// Looks at what lies beyond a checkpoint, with what the writing host knows of the log: which frames count, and that nothing
/// speaks against going on behind them. `tree` is that of the checkpoint; from frame `lost_below` on none that no path has is lost for good. Changes nothing.
///
/// # Errors
/// `Tampered` where the log is not what was written, `Refused` where its `[log]` is not, `Unavailable` where a file cannot be
/// read or is of a newer format version.
pub(crate) fn survey(
    log: &dyn Store,
    config: &LogConfig,
    (state, checkpoint, lost_below): (&SealState, &Checkpoint, u64),
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
        lost_below,
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
        parts: state.given_up.clone(),
    };
    let scanned = scan.run(segments)?;
    scan.check_anchors()?;
    scan.refuse_later_groups(scanned.last())?;
    scan.check_config()?;
    let Scan {
        next,
        next_entry,
        chain,
        terms,
        explained,
        erased,
        given_up,
        dropped,
        holds,
        parts,
        unreachable,
        ..
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
        parts,
        scanned,
        unreachable,
    })
}

impl Survey {
    /// The frames that no checkpoint covers yet.
    pub(super) fn above(&self) -> impl Iterator<Item = &Head> {
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
                // What was written before the loss was set aside before anything was signed since.
                let signed = self.state.chain.next_frame().max(self.checkpoint.size);
                let may_be_lost = self.lost_below > 0 && signed <= self.lost_below;
                if !may_be_lost || self.next < signed || name.first < self.next {
                    return Err(self.missing(*name));
                }
                self.unreachable = segments[index..].to_vec();
                self.refuse_gap(scanned.last())?;
                break;
            }
            let limit = segments.get(index + 1).map(|next| next.first);
            scanned.push(self.segment(*name, limit, below)?);
        }
        self.pass_lost(&mut scanned)?;
        Ok(scanned)
    }

    /// Of a log that has lost a path, and has signed nothing since, goes on behind all that is signed where the last of that lay on it: the tree tells where it ends. What
    /// was `scanned` before it is no place to go on at.
    fn pass_lost(&mut self, scanned: &mut Vec<Scanned>) -> Result<()> {
        if self.next < self.anchored() && self.anchored() <= self.lost_below {
            self.refuse_later_groups(scanned.last())?;
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
            if !copy && !self.is_as_signed(&head)? {
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
                epoch = (!is_above).then_some(head.clone());
            }
            if is_above {
                above.push(head);
            }
        }
        if let Some(epoch) = epoch.as_ref().filter(|_| !above.is_empty()) {
            self.check_epoch(&cursor, epoch)?;
        }
        let epoch = epoch.map(|epoch| (epoch.offset, epoch.length()));
        Ok(Scanned { cursor, kept, above, epoch })
    }

    /// Whether the last frame of which both anchors speak has the head that the tree has: the numbers of what is written next follow from it.
    fn is_as_signed(&self, head: &Head) -> Result<bool> {
        Ok(head.commitment.frame + 1 != self.anchored() || self.is_leaf(head)?)
    }

    /// Whether a head is the one that the tree has. Without that tile, or above the tree, there is nothing to compare with.
    fn is_leaf(&self, Head { commitment, encoded, .. }: &Head) -> Result<bool> {
        if commitment.frame >= self.checkpoint.size {
            return Ok(true);
        }
        let leaf = Chunk::load(self.store, commitment.frame, self.checkpoint.size)?.leaf(commitment.frame);
        Ok(leaf.is_none_or(|leaf| leaf == tree::leaf_hash(encoded)))
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

    /// That an epoch frame which what is adopted is to begin with is the one that was signed: a copy of a damaged one would stay when that is mended.
    fn check_epoch(&self, cursor: &Cursor, epoch: &Head) -> Result<()> {
        match self.is_leaf(epoch)? && is_sound(cursor, epoch)? {
            true => Ok(()),
            false => Err(Error::tampered(format!(
                "{} is damaged at offset {}, where the epoch of what follows is; run `bulla verify`",
                self.store.describe(&cursor.name.path()),
                epoch.offset
            ))),
        }
    }

    /// Takes in what an event says: of `[log]`, of holds and of parts that were given up one that is `sealed`, of which the seal state does not speak yet.
    fn take_event(&mut self, frame: u64, sealed: bool, event: &Event) {
        self.explained.extend(event.explains().map(|(segment, at)| (segment.to_owned(), at)));
        if sealed {
            self.terms.take(event);
            if event.is_of_hold() {
                self.holds = frame + 1;
            }
            self.parts.extend(event.gives_up());
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
        let last = &last.cursor;
        let later = |head: &Head| head.commitment.log_id == self.config.id && head.group > self.next;
        match last.find(last.offset, later)? {
            None => Ok(()),
            Some(offset) => Err(self.damaged(
                last,
                &format!("yet frames that were written after it was durable follow at offset {offset}"),
            )),
        }
    }

    /// What stands behind the last sound frame of the segment before those to which nothing leads is a write that failed only where a path has failed since
    /// that is lost, and had what comes before them. Else it is damage.
    fn refuse_gap(&self, last: Option<&Scanned>) -> Result<()> {
        match last.map(|last| &last.cursor).filter(|cursor| cursor.offset < cursor.length) {
            Some(cursor) if !self.tell_of_lost_path()? => {
                let following = self
                    .unreachable
                    .first()
                    .map_or_else(String::new, |name| self.store.describe(&name.path()));
                Err(self.damaged(cursor, &format!("yet {following} follows")))
            }
            _ => Ok(()),
        }
    }

    /// Whether an event in the segments to which nothing leads tells that a path took over from one that is not there.
    fn tell_of_lost_path(&self) -> Result<bool> {
        let id_of = |path: &dyn Store| path::read(path, self.config.id);
        let ids = match self.store.paths() {
            None => id_of(self.store).map(|id| vec![id]),
            Some(paths) => paths.present().iter().map(|path| id_of(&**path)).collect(),
        };
        // Of one whose file cannot be read nobody knows.
        let Ok(ids) = ids else { return Ok(false) };
        let first = PathId::first_of(self.config.id);
        let ids = ids.into_iter().map(|id| id.unwrap_or(first).to_string()).collect::<Vec<_>>();
        for name in &self.unreachable {
            let mut cursor = Cursor::open(self.store, *name)?;
            while let Some(Ok(head)) = cursor.peek()? {
                if head.commitment.kind == FrameKind::Event {
                    match event_in(&cursor.locate(head.commitment.clone(), head.offset)) {
                        Ok(Event::PathReplaced { from, .. }) if !ids.contains(&from) => return Ok(true),
                        Err(error) if error.kind() != ErrorKind::Tampered => return Err(error),
                        _ => {}
                    }
                }
                cursor.pass(&head);
            }
        }
        Ok(false)
    }

    /// That a segment is damaged where the next frame should be, since what `follows` tells that no crash left that.
    fn damaged(&self, Cursor { name, offset, .. }: &Cursor, follows: &str) -> Error {
        Error::tampered(format!(
            "{} is damaged at offset {offset}, where frame {} should be, {follows}; run `bulla verify`",
            self.store.describe(&name.path()),
            self.next
        ))
    }

    fn missing(&self, name: SegmentName) -> Error {
        let elsewhere = self.elsewhere();
        let is_signed = self.next < self.state.chain.next_frame();
        Error::tampered(format!(
            "{} missing or damaged before {}{}; run `bulla verify`",
            match (self.next, name.first.saturating_sub(1)) {
                (first, last) if first == last => format!("frame {first} is"),
                (first, last) => format!("frames {first} to {last} are"),
            },
            self.store.describe(&name.path()),
            if is_signed { paths::with_way_out(&elsewhere) } else { elsewhere }
        ))
    }

    /// Where what is missing may lie.
    fn elsewhere(&self) -> String {
        let elsewhere = not_there(self.store);
        if elsewhere.is_empty() { elsewhere } else { format!("; {elsewhere}") }
    }
}

/// Whether the body is the one that the commitment says.
pub(crate) fn is_sound(cursor: &Cursor, head: &Head) -> Result<bool> {
    let digest = frame::digest(&*cursor.file, head.body_offset(), head.commitment.body_length);
    Ok(digest.map_err(|error| cursor.failed(error))? == head.commitment.body_digest)
}

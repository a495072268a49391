//! The walk: every frame of a log in order, where it lies, and what its commitment really is.
//!
//! Three sources say what frame n's commitment is: the segment, the level-0 tile (its hash) and the entry bundle.
//! Where one of them is damaged the other two outvote it, so the walk knows how long the damaged frame is, names
//! it and its entries, and goes on behind it. What was chosen is hashed up to the root, which the signed
//! checkpoint settles: no vote can smuggle a wrong leaf past that.

use crate::config::LogConfig;
use crate::error::{Error, Result};
use crate::event::{Event, MAX_EVENT};
use crate::finding::{Finding, FindingKind, Findings};
use crate::frame::{self, Head, ReadError};
use crate::keys::epoch::EpochKeys;
use crate::keys::recipients::Identity;
use crate::keys::seal_chain::{Seal, SealChain};
use crate::read::open::Located;
use crate::read::sources::{self, Chunk, Encoded};
use crate::seal::epoch::{EpochBody, MAX_EPOCH};
use crate::segment::{self, SegmentName};
use crate::store::{Store, StoreFile};
use bulla_proof::checkpoint::Checkpoint;
use bulla_proof::commitment::{Commitment, FrameKind, LogId};
use bulla_proof::hash::{Hash, sha256};
use bulla_proof::tile::{TileBuilder, TileId};
use bulla_proof::tree;
use std::sync::Arc;

/// The walk over one log.
pub(crate) struct Walk<'a> {
    store: &'a dyn Store,
    config: &'a LogConfig,
    identity: Option<Arc<dyn Identity>>,
    chain: Option<SealChain>,
    size: u64,
    segments: Vec<SegmentName>,
    open: Option<Open>,
    surplus: Vec<Surplus>,
    events: Vec<Event>,
    chunk: Chunk,
    tiles: TileBuilder,
    next: u64,
    next_entry: u64,
    log: Option<LogId>,
    epoch: Option<Epoch>,
    last_seal: Option<Seal>,
    config_told: bool,
    /// Whether frames were skipped of which nothing is left, so that the tree cannot be built.
    cut: bool,
    /// Whether some identity fitted some epoch.
    pub(crate) opened_epochs: u64,
    pub(crate) findings: Findings,
}

/// The segment that is being read.
struct Open {
    index: usize,
    name: SegmentName,
    file: Arc<dyn StoreFile>,
    length: u64,
    /// Where the next frame should be.
    offset: u64,
}

/// Bytes at a segment's end that belong to no frame.
struct Surplus {
    name: SegmentName,
    offset: u64,
    length: u64,
}

impl Surplus {
    fn is_explained_by(&self, event: &Event) -> bool {
        event.explains() == (self.name.to_string().as_str(), self.offset)
    }
}

struct Epoch {
    number: u64,
    keys: Option<Arc<EpochKeys>>,
    /// Length and digest of the whole frame, to compare copies with.
    frame: Option<(u64, Hash)>,
}

/// What follows the frames that the checkpoint covers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tail {
    pub(crate) frames: u64,
    /// Where the first of them, or the first unread byte, is.
    pub(crate) at: Option<(SegmentName, u64)>,
    /// Bytes in them and after them.
    pub(crate) bytes: u64,
}

impl<'a> Walk<'a> {
    /// A walk over the frames that `checkpoint` covers.
    pub(crate) fn new(
        store: &'a dyn Store,
        config: &'a LogConfig,
        checkpoint: &Checkpoint,
        identity: Option<Arc<dyn Identity>>,
        chain: Option<SealChain>,
    ) -> Result<Self> {
        Ok(Walk {
            store,
            config,
            identity,
            chain,
            size: checkpoint.size,
            segments: segment::list(store)?.0,
            open: None,
            surplus: Vec::new(),
            events: Vec::new(),
            chunk: Chunk::default(),
            tiles: TileBuilder::new(),
            next: 0,
            next_entry: 0,
            log: None,
            epoch: None,
            last_seal: None,
            config_told: false,
            cut: false,
            opened_epochs: 0,
            findings: Findings::default(),
        })
    }

    /// Bytes in all segments.
    pub(crate) fn total_bytes(&self) -> Result<u64> {
        let lengths =
            self.segments.iter().map(|name| open_segment(self.store, *name).map(|(_, length)| length));
        lengths.sum()
    }

    /// The next frame that is where it should be; `None` after the last one that the checkpoint covers.
    /// Frames that are missing or damaged are told as findings and passed over.
    pub(crate) fn next(&mut self) -> Result<Option<Located>> {
        while self.next < self.size {
            if let Some(located) = self.step()? {
                return Ok(Some(located));
            }
        }
        Ok(None)
    }

    /// One frame: locates it, settles its commitment, and moves on.
    fn step(&mut self) -> Result<Option<Located>> {
        let frame = self.next;
        if !self.chunk.covers(frame) {
            self.chunk = Chunk::load(self.store, frame, self.size)?;
        }
        self.seek(frame)?;
        if self.skip_void() {
            return Ok(None);
        }
        let head = self.read_head()?;
        let settled = self.settle(frame, head.as_ref().ok().and_then(Option::as_ref));
        self.next += 1;
        let Some(encoded) = settled else {
            self.lose(frame)?;
            return Ok(None);
        };
        self.push_leaf(tree::leaf_hash(&encoded))?;
        let Ok(commitment) = Commitment::decode(&encoded) else {
            self.add(Finding::new(FindingKind::FrameDamaged, "its commitment is not one").frame(frame));
            return Ok(None);
        };
        let located = self.locate(frame, commitment.clone(), &encoded, head)?;
        self.check_numbering(frame, &commitment);
        if let Some(located) = &located {
            self.look_inside(located)?;
        }
        Ok(located.map(|located| Located { keys: self.keys_of(&located.commitment), ..located }))
    }

    /// Passes a stretch of frames of which nothing is left, if it is long: a checkpoint can claim any size, and a
    /// segment's name any number, which must not be counted up to. The tree and the seals end there.
    fn skip_void(&mut self) -> bool {
        const LONG: u64 = 1 << 20;
        let following = self.open.as_ref().map_or(0, |open| open.index + 1);
        let end = self.segments.get(following).map_or(self.size, |name| name.first.min(self.size));
        let read = self.open.as_ref().is_none_or(|open| open.offset >= open.length);
        if !read || !self.chunk.is_empty() || end.saturating_sub(self.next) < LONG {
            return false;
        }
        let detail = "nothing is left of these frames; tiles and seals after them are not checked";
        let mut finding = Finding::new(FindingKind::FramesMissing, detail).frame(self.next);
        finding.last_frame = Some(end - 1);
        self.add(finding);
        self.cut = true;
        self.chain = None;
        self.last_seal = None;
        self.next = end;
        true
    }

    /// Opens the segment that must hold `frame`, unless it is open.
    fn seek(&mut self, frame: u64) -> Result<()> {
        let index = self.segments.partition_point(|name| name.first <= frame).checked_sub(1);
        let current = self.open.as_ref().map(|open| open.index);
        if index == current {
            return Ok(());
        }
        let Some(index) = index else { return Ok(()) };
        self.leave(index)?;
        let name = self.segments[index];
        let (file, length) = open_segment(self.store, name)?;
        self.open = Some(Open { index, name, file, length, offset: 0 });
        self.skip_copy(frame)
    }

    /// Closes the current segment; what is left of it, and segments of which nothing counts, are surplus.
    fn leave(&mut self, index: usize) -> Result<()> {
        let passed = self.open.take().map_or(0, |open| {
            if open.offset < open.length {
                let Open { name, offset, length, .. } = open;
                self.surplus.push(Surplus { name, offset, length: length - offset });
            }
            open.index + 1
        });
        for name in self.segments[passed..index].iter().copied() {
            let (_, length) = open_segment(self.store, name)?;
            if length > 0 {
                self.surplus.push(Surplus { name, offset: 0, length });
            }
        }
        Ok(())
    }

    /// Passes the copy of the epoch frame with which a segment begins that continues an epoch.
    fn skip_copy(&mut self, frame: u64) -> Result<()> {
        const EPOCH: u8 = FrameKind::Epoch as u8;
        let Some(open) = &mut self.open else { return Ok(()) };
        let covered = frame < self.size && self.chunk.covers(frame);
        let kind = self.chunk.entry(frame).filter(|_| covered).map(|entry| entry[1]);
        let head = frame::read_head(&*open.file, 0, open.length);
        let is_copy = match &head {
            Ok(head) => head.commitment.kind == FrameKind::Epoch && head.commitment.frame < open.name.first,
            Err(_) => open.length > 0 && kind.is_some_and(|kind| kind != EPOCH),
        };
        let told = match (is_copy, kind) {
            (true, Some(EPOCH)) => Some("a copy of an epoch frame precedes a segment that begins an epoch"),
            (false, Some(kind)) if kind != EPOCH && open.offset < open.length => {
                Some("the segment does not begin with a copy of its epoch's frame")
            }
            _ => None,
        };
        if let Some(told) = told {
            let name = open.name;
            self.findings.add(Finding::new(FindingKind::FrameDamaged, told).at(name, 0).frame(frame));
        }
        if !is_copy {
            return Ok(());
        }
        let known = self.epoch.as_ref().and_then(|epoch| epoch.frame);
        let length = match (known, &head) {
            (Some((length, _)), _) => length,
            (None, Ok(head)) => head.length(),
            (None, Err(_)) => return Ok(()),
        };
        let length = length.min(open.length);
        let digest = frame::digest(&*open.file, 0, length).map_err(|error| failed(open.name, error))?;
        open.offset = length;
        let name = open.name;
        if known.is_some_and(|(_, original)| original != digest) {
            let epoch = self.epoch.as_ref().map_or(0, |epoch| epoch.number);
            let detail = "the copy of the epoch frame at the segment's beginning differs from the original";
            self.add(Finding::new(FindingKind::FrameDamaged, detail).at(name, 0).frame(epoch));
        }
        Ok(())
    }

    /// What stands where the next frame should be: a head, something unsound (and why), or nothing at all.
    fn read_head(&self) -> Result<Result<Option<Head>, String>> {
        let Some(open) = &self.open else { return Ok(Ok(None)) };
        if open.offset >= open.length {
            return Ok(Ok(None));
        }
        match frame::read_head(&*open.file, open.offset, open.length) {
            Ok(head) => Ok(Ok(Some(head))),
            Err(ReadError::Frame(error)) => Ok(Err(error.to_string())),
            Err(ReadError::Io(error)) => Err(failed(open.name, error)),
        }
    }

    /// The commitment that at least two sources agree on; where no two do, the segment's, or the bundle's.
    fn settle(&self, frame: u64, head: Option<&Head>) -> Option<Encoded> {
        let own = head.filter(|head| head.commitment.frame == frame).map(|head| head.encoded);
        let entry = self.chunk.entry(frame);
        let leaf = self.chunk.leaf(frame);
        let agrees = |encoded: &Encoded| leaf == Some(tree::leaf_hash(encoded));
        own.filter(|own| entry.as_ref() == Some(own) || agrees(own))
            .or(entry.filter(agrees))
            .or(own)
            .or(entry)
    }

    /// No source tells what `frame` was.
    fn lose(&mut self, frame: u64) -> Result<()> {
        let leaf = self.chunk.leaf(frame).unwrap_or(Hash::ZERO);
        self.push_leaf(leaf)?;
        if let Some(chain) = &mut self.chain {
            chain.skip([0; 32]);
        }
        self.last_seal = None;
        let mut finding =
            Finding::new(FindingKind::FramesMissing, "neither the segment nor the tree tells what it was");
        if let Some(open) = &mut self.open {
            finding = finding.at(open.name, open.offset);
            let wanted = frame + 1;
            let found =
                frame::find(&*open.file, open.offset, open.length, |head| head.commitment.frame == wanted);
            open.offset = found.map_err(|error| failed(open.name, error))?.unwrap_or(open.length);
        }
        self.add(finding.frame(frame));
        Ok(())
    }

    /// Checks that the settled frame is where the segment has to have it, and passes it.
    fn locate(
        &mut self,
        frame: u64,
        commitment: Commitment,
        encoded: &Encoded,
        head: Result<Option<Head>, String>,
    ) -> Result<Option<Located>> {
        let told = |kind, detail: &str| {
            Finding::new(kind, detail).frame(frame).entries(commitment.first_entry, commitment.entries)
        };
        let end = |offset: u64| offset.saturating_add(frame::frame_length(&commitment));
        let Some(open) = self.open.as_mut().filter(|open| end(open.offset) <= open.length) else {
            let mut finding = told(FindingKind::FramesMissing, "the segment ends before the frame does");
            if let Some(open) = &mut self.open {
                finding = finding.at(open.name, open.offset);
                open.offset = open.length;
            }
            if let Some(chain) = &mut self.chain {
                chain.skip([0; 32]);
            }
            self.last_seal = None;
            self.add(finding);
            return Ok(None);
        };
        let offset = open.offset;
        open.offset = end(offset);
        let (name, file) = (open.name, open.file.clone());
        let damage = match &head {
            Ok(Some(head)) if head.encoded == *encoded => None,
            Ok(_) => Some("its commitment is not the one in the tree".to_owned()),
            Err(reason) => Some(reason.clone()),
        };
        let seal = frame::read_seal(&*file, end(offset)).map_err(|error| failed(name, error))?;
        if let Some(damage) = damage {
            self.add(told(FindingKind::FrameDamaged, &damage).at(name, offset));
            if let Some(chain) = &mut self.chain {
                chain.skip(seal);
            }
        } else if !self.check_seal(head.ok().flatten().map_or(0, |head| head.group), encoded, seal) {
            self.add(told(FindingKind::SealMismatch, "its seal does not hold").at(name, offset));
        }
        let previous = self.last_seal.replace(seal);
        if commitment.kind == FrameKind::Epoch {
            self.begin_epoch(&commitment, &*file, name, offset, previous)?;
        }
        Ok(Some(Located { commitment, segment: name, file, offset, keys: None }))
    }

    /// Whether a seal holds, where the chain is at hand. The frame before may have a damaged seal of its own: what
    /// that seal should have been counts too.
    fn check_seal(&mut self, group: u64, encoded: &Encoded, seal: Seal) -> bool {
        let Some(chain) = &mut self.chain else { return true };
        let mut other = chain.clone();
        if let Some(stored) = self.last_seal {
            other.set_previous(stored);
        }
        chain.seal(group, encoded) == seal || other.seal(group, encoded) == seal
    }

    /// Takes an epoch frame in: its configuration digest, its link to the frame before, its key.
    fn begin_epoch(
        &mut self,
        commitment: &Commitment,
        file: &dyn StoreFile,
        name: SegmentName,
        offset: u64,
        previous: Option<Seal>,
    ) -> Result<()> {
        let number = commitment.frame;
        let length = frame::frame_length(commitment);
        self.epoch = Some(Epoch { number, keys: None, frame: None });
        if commitment.body_length > MAX_EPOCH {
            let detail = "it is too long to be an epoch frame";
            self.add(Finding::new(FindingKind::EpochInvalid, detail).at(name, offset).frame(number));
            return Ok(());
        }
        let digest = frame::digest(file, offset, length).map_err(|error| failed(name, error))?;
        let body = frame::read_body(file, offset, commitment).map_err(|error| failed(name, error))?;
        if sha256(&[&body]) != commitment.body_digest {
            // Whoever verifies the frame's body tells of it.
            return Ok(());
        }
        let invalid =
            |detail: String| Finding::new(FindingKind::EpochInvalid, detail).at(name, offset).frame(number);
        let body = match EpochBody::decode(&body) {
            Ok(body) => body,
            Err(error) => {
                self.add(invalid(error.to_string()));
                return Ok(());
            }
        };
        if body.config != self.config.digest && !std::mem::replace(&mut self.config_told, true) {
            let detail = "[log] of bulla.toml is not the one that this epoch was begun with";
            self.add(Finding::new(FindingKind::ConfigMismatch, detail).at(name, offset).frame(number));
        }
        let expected = if number == 0 { Some([0; 32]) } else { previous };
        if expected.is_some_and(|seal| seal != body.previous_seal) {
            self.add(invalid("it does not continue from the seal of the frame before it".to_owned()));
        }
        let keys = match self.open_epoch(commitment, &body) {
            Ok(keys) => keys,
            Err(error) => {
                self.add(invalid(error.to_string()));
                None
            }
        };
        self.opened_epochs += u64::from(keys.is_some());
        self.epoch = Some(Epoch { number, keys, frame: Some((length, digest)) });
        Ok(())
    }

    /// Derives an epoch's keys, where there is an identity and it fits.
    fn open_epoch(&self, commitment: &Commitment, body: &EpochBody) -> Result<Option<Arc<EpochKeys>>> {
        let Some(identity) = &self.identity else { return Ok(None) };
        let Some(secret) = identity.unwrap(&body.wrapped)? else { return Ok(None) };
        let keys = EpochKeys::derive(&secret, body.random, commitment.log_id, commitment.frame)?;
        if keys.commitment() != body.key_commitment {
            return Err(Error::tampered("the epoch's key is not the one that it commits to"));
        }
        Ok(Some(Arc::new(keys)))
    }

    fn keys_of(&self, commitment: &Commitment) -> Option<Arc<EpochKeys>> {
        self.epoch.as_ref().filter(|epoch| epoch.number == commitment.epoch)?.keys.clone()
    }

    /// Checks the numbers of a settled commitment against those before it.
    fn check_numbering(&mut self, frame: u64, commitment: &Commitment) {
        let epoch = self.epoch.as_ref().map(|epoch| epoch.number);
        let log = *self.log.get_or_insert(commitment.log_id);
        let wrong = if commitment.frame != frame {
            Some("the frame's number is not its place in the tree")
        } else if commitment.first_entry != self.next_entry {
            Some("its entries do not follow those of the frame before it")
        } else if commitment.kind != FrameKind::Epoch && epoch.is_some_and(|epoch| epoch != commitment.epoch)
        {
            Some("it belongs to another epoch than the frames around it")
        } else if commitment.log_id != log {
            Some("it belongs to another log")
        } else if commitment.hash != self.config.hash && !self.config_told {
            Some("its hash is not the log's")
        } else {
            None
        };
        if let Some(wrong) = wrong {
            let finding = Finding::new(FindingKind::Numbering, wrong).frame(frame);
            self.add(finding.entries(commitment.first_entry, commitment.entries));
        }
        if log != self.config.id && !std::mem::replace(&mut self.config_told, true) {
            let detail = "the log's frames have another id than bulla.toml";
            self.add(Finding::new(FindingKind::ConfigMismatch, detail).frame(frame));
        }
        self.next_entry = commitment.first_entry.saturating_add(commitment.entries);
    }

    /// Keeps what events tell, and tells of gaps.
    fn look_inside(&mut self, located: &Located) -> Result<()> {
        let Located { commitment, segment, offset, .. } = located;
        match commitment.kind {
            FrameKind::Event if commitment.body_length <= MAX_EVENT => {
                let body = frame::read_body(&*located.file, *offset, commitment);
                self.events.extend(Event::decode(&body.map_err(|error| failed(*segment, error))?).ok());
            }
            FrameKind::Gap => {
                let detail = format!("{} entries were lost before they could be sealed", commitment.entries);
                let finding =
                    Finding::new(FindingKind::Gap, detail).at(segment, *offset).frame(commitment.frame);
                self.add(finding.entries(commitment.first_entry, commitment.entries));
            }
            _ => {}
        }
        Ok(())
    }

    fn push_leaf(&mut self, leaf: Hash) -> Result<()> {
        if self.cut {
            return Ok(());
        }
        let mut full = Vec::new();
        self.tiles.push(leaf, &mut |id, hashes| full.push((id, hashes.to_vec())));
        full.into_iter().try_for_each(|(id, hashes)| self.check_tile(id, &hashes))
    }

    fn check_tile(&mut self, id: TileId, hashes: &[Hash]) -> Result<()> {
        sources::check_tile(self.store, id, hashes, &mut self.findings)
    }

    fn add(&mut self, finding: Finding) {
        self.findings.add(finding);
    }

    /// Ends the walk: the tree's right edge and root, what lies beyond the checkpoint, and what lies nowhere.
    pub(crate) fn finish(&mut self, root: Hash) -> Result<Tail> {
        let partials = if self.cut { Vec::new() } else { self.tiles.partials() };
        for (id, hashes) in partials {
            self.check_tile(id, &hashes)?;
        }
        if self.cut || self.tiles.root() != root {
            let detail = "the frames do not have the root that the checkpoint signs";
            self.add(Finding::new(FindingKind::RootMismatch, detail));
        }
        // Nothing vouches for the events of the tail: what lies below the checkpoint only those below it explain.
        self.explain_surplus()?;
        let tail = self.walk_tail()?;
        self.explain_surplus()?;
        Ok(tail)
    }

    /// Counts what follows the frames that the checkpoint covers, as far as it looks sound.
    fn walk_tail(&mut self) -> Result<Tail> {
        let mut tail = Tail::default();
        let covered = self.surplus.len();
        while !self.segments.is_empty() {
            self.seek(self.next)?;
            if self.size == self.next && self.open.is_none() {
                // Nothing is covered yet: the tail is all there is.
                let (file, length) = open_segment(self.store, self.segments[0])?;
                self.open = Some(Open { index: 0, name: self.segments[0], file, length, offset: 0 });
            }
            let Some(Some(head)) = self.read_head()?.ok() else { break };
            let Some(open) = self.open.as_mut().filter(|_| head.commitment.frame == self.next) else { break };
            tail.at.get_or_insert((open.name, open.offset));
            tail.frames += 1;
            tail.bytes += head.length();
            open.offset = head.end();
            if head.commitment.kind == FrameKind::Epoch {
                // Nothing vouches for it yet: a later copy has nothing to be compared with.
                self.epoch = None;
            }
            if head.commitment.kind == FrameKind::Event && head.commitment.body_length <= MAX_EVENT {
                let body = frame::read_body(&*open.file, head.offset, &head.commitment);
                self.events.extend(body.ok().and_then(|body| Event::decode(&body).ok()));
            }
            self.next += 1;
        }
        if let Some(open) = self.open.take() {
            if open.offset < open.length {
                tail.at.get_or_insert((open.name, open.offset));
                tail.bytes += open.length - open.offset;
            }
            for name in self.segments[open.index + 1..].iter().copied() {
                tail.at.get_or_insert((name, 0));
                tail.bytes += open_segment(self.store, name)?.1;
            }
        }
        // What is left between frames of the tail belongs to the tail until recovery, or the writer, tells of it.
        for surplus in self.surplus.split_off(covered) {
            if self.events.iter().any(|event| surplus.is_explained_by(event)) {
                self.surplus.push(surplus);
            } else {
                tail.at.get_or_insert((surplus.name, surplus.offset));
                tail.bytes += surplus.length;
            }
        }
        Ok(tail)
    }

    /// Every byte that belongs to no frame must be explained by an event.
    fn explain_surplus(&mut self) -> Result<()> {
        for surplus in std::mem::take(&mut self.surplus) {
            let Surplus { name, offset, length } = surplus;
            let finding = match self.events.iter().rev().find(|event| surplus.is_explained_by(event)) {
                Some(Event::Abandoned { reason, .. }) => {
                    let detail =
                        format!("{length} bytes count for nothing: the segment was abandoned ({reason})");
                    Finding::new(FindingKind::Abandoned, detail)
                }
                Some(Event::Recovered { length: known, sha256, adopted, .. }) => {
                    let (file, _) = open_segment(self.store, name)?;
                    let digest =
                        frame::digest(&*file, offset, length).map_err(|error| failed(name, error))?;
                    match *known == length && *sha256 == digest.to_string() {
                        true => Finding::new(
                            FindingKind::Abandoned,
                            format!(
                                "{length} bytes count for nothing: left by a crash; {adopted} frames among them \
                                     were adopted into later segments"
                            ),
                        ),
                        false => Finding::new(
                            FindingKind::SurplusBytes,
                            format!(
                                "{length} bytes belong to no frame, and are not those that recovery recorded"
                            ),
                        ),
                    }
                }
                None => Finding::new(
                    FindingKind::SurplusBytes,
                    format!("{length} bytes belong to no frame, and no event explains them"),
                ),
            };
            self.add(finding.at(name, offset));
        }
        Ok(())
    }
}

fn open_segment(store: &dyn Store, name: SegmentName) -> Result<(Arc<dyn StoreFile>, u64)> {
    let path = name.path();
    let file =
        store.open(&path).map_err(|error| Error::io(format!("opening {}", store.describe(&path)), error))?;
    let length = file.length().map_err(|error| failed(name, error))?;
    Ok((Arc::from(file), length))
}

fn failed(name: SegmentName, error: std::io::Error) -> Error {
    Error::io(format!("reading {}", name.path()), error)
}

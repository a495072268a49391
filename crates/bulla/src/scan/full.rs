//! The scan of a whole log, however damaged: every frame in order, where it lies, and what its commitment really is.
//!
//! Three places say what frame n's commitment is: the segment, the level-0 tile (its hash) and the entry bundle.
//! Where one of them is damaged the other two outvote it, so the scan knows how long the damaged frame is, names
//! it and its entries, and goes on behind it. What was chosen is hashed up to the root, which the signed
//! checkpoint settles: no vote can smuggle a wrong leaf past that.
//!
//! Where bytes were added or removed, frames do not lie where the ones before them end: the scan then looks for the
//! next sound head that the tree knows, and goes on there.

mod epochs;
pub(crate) mod orders;
mod position;
mod tail;

use crate::format::config::{LogConfig, allowed::AllowedConfig};
use crate::format::event::{Event, MAX_EVENT};
use crate::format::frame::{self, HEAD, Head};
use crate::format::segment::{self, SegmentName};
use crate::scan::cursor::Cursor;
use crate::scan::erasure_keys::KeyHistory;
use crate::scan::finding::{Finding, FindingKind, Findings};
use crate::scan::located::Located;
use crate::scan::paths::not_there;
use crate::scan::query::Query;
use crate::scan::seals::Seals;
use crate::scan::snapshot::Snapshot;
use crate::scan::stored_tree::{self, Chunk, Encoded};
use crate::scan::unread_events::UnreadEvents;
use crate::scan::unreferenced::Unreferenced;
use bulla_crypto::epoch::EpochKeys;
use bulla_crypto::group::PartId;
use bulla_crypto::recipients::Identity;
use bulla_crypto::seal_chain::{Seal, SealChain};
use bulla_proof::commitment::{Commitment, FrameKind, LogId};
use bulla_proof::hash::{Hash, HashId, sha256};
use bulla_proof::note::VerifierKey;
use bulla_proof::tile::{TileBuilder, TileId};
use bulla_proof::tree::{self, TreeHead};
use bulla_store::{Error, Result, Store};
use std::collections::HashSet;
use std::io;
use std::sync::Arc;
pub(crate) use tail::AtPin;

/// The most unknown leaves that the tree is filled up with; past that it is not followed any more.
const MOST_UNKNOWN: u64 = 1 << 16;

/// The scan of one log.
pub(crate) struct Scan<'a> {
    store: &'a dyn Store,
    config: &'a LogConfig,
    identity: Option<Arc<dyn Identity>>,
    seals: Seals,
    size: u64,
    segments: Vec<SegmentName>,
    open: Option<Open>,
    unreferenced: Vec<Unreferenced>,
    /// The paths of the log on which frames may lie that are not at hand, in words.
    not_there: String,
    /// Segments that are done with, and up to where frames were read from them.
    read_to: Vec<(SegmentName, u64)>,
    /// Those that explain a segment's end.
    events: Vec<Event>,
    /// The numbers of the data subjects that were erased.
    erased: HashSet<u64>,
    /// The frames that tell of a part of the log that was given up, each with its id.
    truncated: Vec<(u64, PartId)>,
    /// The frames that may tell of more.
    unread: Option<UnreadEvents>,
    /// What was ordered, and where events may be lost, in the order of the frames: to be compared with the orders once it is known
    /// which key counted where.
    told: Vec<Told>,
    keys: KeyHistory,
    /// The erasure keys that are known from elsewhere.
    pub(crate) known_keys: Vec<VerifierKey>,
    chunk: Chunk,
    /// The indexes of the bundles that there are, once that is asked.
    bundles: Option<Vec<u64>>,
    tiles: TileBuilder,
    /// Whether so much is unknown that the tree was not followed to its end.
    broken: bool,
    unknown: u64,
    next: u64,
    /// `None` where the frame before is not known.
    next_entry: Option<u64>,
    /// The id and the hash of the first frame, which all have.
    log: Option<(LogId, HashId)>,
    epoch: Option<Epoch>,
    /// Whether another epoch may have begun since, unseen.
    unsure_epoch: bool,
    last: Option<Last>,
    /// Frames of which nothing is known, to be told once it is known which entries they had.
    lost: Option<Finding>,
    /// Which `[log]` may follow the last epoch, and where the first epoch is that had the same one as that.
    terms: Option<(AllowedConfig, Finding)>,
    /// Whether an epoch may have begun since, or an event have allowed another `[log]`, unseen.
    unsure_terms: bool,
    /// That the frames have another id or hash than `bulla.toml`, which most often is edited then.
    foreign: Option<Finding>,
    /// How many frames are known to be there from elsewhere, the root that they have there, and the one that they have here,
    /// once so many were passed.
    known: Option<Known>,
    /// The same of pins.
    pinned: Vec<Known>,
    /// The writing host's clock at the newest epoch or event, in seconds since the Unix epoch.
    pub(crate) signed_time: Option<i64>,
    /// How many epochs the identity opens, and to how many it is a stranger.
    pub(crate) opened_epochs: u64,
    pub(crate) foreign_epochs: u64,
    /// Which entries count as lost.
    pub(crate) asked: Query,
    /// Entries of frames that are not there: as many as can be meant by what is asked.
    pub(crate) lost_entries: u64,
    /// Whether other frames are not there of which nobody can tell how many such entries they had.
    uncounted: bool,
    pub(crate) findings: Findings,
}

/// What bears on who was erased, held and released.
enum Told {
    /// An event of what has to be ordered.
    Ordered(Box<Ordered>),
    /// Events before this frame may be lost.
    Lost { before: u64 },
}

/// An event of what has to be ordered.
struct Ordered {
    event: Event,
    seconds: i64,
    /// Where it is: how to tell of it.
    place: Finding,
}

/// A segment that is being read.
struct Open {
    index: usize,
    /// Where the next frame should be.
    cursor: Cursor,
    /// Where the body of the frame before begins: from there on the next one is looked for where it is not in place.
    low: u64,
    /// The first sound head from some offset on, as it was looked for last.
    searched: Option<(u64, Option<Head>)>,
}

struct Epoch {
    number: u64,
    encoded: Encoded,
    keys: Option<Arc<EpochKeys>>,
    /// The random bytes that its frame shows, where that is sound.
    random: Option<[u8; 32]>,
    /// Whether the identity is found not to be a recipient.
    foreign: bool,
    /// The header's group and the seal of its frame, where that is sound, to compare copies with.
    original: Option<(u64, Seal)>,
    /// Whether the seal of its frame was told to be wrong.
    seal_told: bool,
}

impl Epoch {
    /// One of which nothing more is known than what it is.
    fn new(number: u64, encoded: Encoded) -> Self {
        Epoch { number, encoded, keys: None, random: None, foreign: false, original: None, seal_told: false }
    }
}

/// Frames that are known to be there.
struct Known {
    frames: u64,
    root: Hash,
    found: Option<Hash>,
}

/// The frame that was located last, if it is the one before the next.
struct Last {
    seal: Seal,
    /// The group in its header, where that is sound.
    group: Option<u64>,
    told: bool,
    /// How to tell of its seal.
    finding: Finding,
}

/// Where a frame lies that is not soundly where it should be.
enum Position {
    /// There all the same, damaged.
    Here,
    /// Further on.
    Moved(Box<Head>),
    /// Something else is in its place, up to this offset.
    Gone(u64),
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

impl<'a> Scan<'a> {
    /// A scan of the frames that the checkpoint of `snapshot` covers.
    pub(crate) fn new(
        snapshot: &'a Snapshot,
        identity: Option<Arc<dyn Identity>>,
        chain: Option<SealChain>,
    ) -> Result<Self> {
        let store = &*snapshot.store;
        Ok(Scan {
            store,
            config: &snapshot.config,
            identity,
            seals: Seals::new(chain),
            size: snapshot.checkpoint.size,
            segments: segment::list(store)?.0,
            open: None,
            unreferenced: Vec::new(),
            not_there: not_there(store),
            read_to: Vec::new(),
            events: Vec::new(),
            erased: HashSet::new(),
            truncated: Vec::new(),
            unread: None,
            told: Vec::new(),
            keys: KeyHistory::default(),
            known_keys: Vec::new(),
            chunk: Chunk::default(),
            bundles: None,
            tiles: TileBuilder::new(),
            broken: false,
            unknown: 0,
            next: 0,
            next_entry: Some(0),
            log: None,
            epoch: None,
            unsure_epoch: false,
            last: None,
            lost: None,
            terms: None,
            unsure_terms: false,
            foreign: None,
            known: None,
            pinned: Vec::new(),
            signed_time: None,
            opened_epochs: 0,
            foreign_epochs: 0,
            asked: Query::default(),
            lost_entries: 0,
            uncounted: false,
            findings: Findings::default(),
        })
    }

    /// Has the scan find out whether the log has so many frames at least, and whether those have this root.
    /// Where none of the log's epochs says which `[log]` it may have, `terms` do.
    pub(crate) fn expect(&mut self, frames: u64, root: Hash, terms: AllowedConfig) {
        let found = (frames == 0).then(tree::empty_root);
        self.known = Some(Known { frames, root, found });
        self.terms = (self.size == 0).then(|| {
            let detail =
                "[log] of bulla.toml is not the one that the log was made with, as the seal state has it";
            (terms, Finding::new(FindingKind::ConfigMismatch, detail))
        });
    }

    /// Has the scan find out which root the log's first `frames` frames have, for [`Scan::root_of_pin`] to tell of the pin that was
    /// expected as many calls after the first: how many is what this returns.
    pub(crate) fn expect_pin(&mut self, TreeHead { size: frames, root }: TreeHead) -> usize {
        let found = (frames == 0).then(tree::empty_root);
        self.pinned.push(Known { frames, root, found });
        self.pinned.len() - 1
    }

    /// Bytes in all segments.
    pub(crate) fn total_bytes(&self) -> Result<u64> {
        self.segments.iter().map(|name| self.length_of(*name)).sum()
    }

    /// The numbers of the data subjects that were erased, as the events say that it has passed, which of the frames that it has
    /// passed may tell of more, and those that tell of a part which was given up.
    pub(crate) fn take_erased(&mut self) -> (HashSet<u64>, Option<UnreadEvents>, Vec<(u64, PartId)>) {
        (std::mem::take(&mut self.erased), self.unread, std::mem::take(&mut self.truncated))
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
        let mut head = self.read_head()?;
        let mut settled = self.settle(frame, head.as_ref().ok().and_then(Option::as_ref));
        let mut gone = None;
        let sound = |head: &Head| head.commitment.frame == frame && Some(&head.encoded) == settled.as_ref();
        if !matches!(&head, Ok(Some(head)) if sound(head)) {
            match self.place(frame, settled.as_ref())? {
                Position::Here => {}
                Position::Moved(found) => {
                    self.tell_overlap(found.offset);
                    self.pass_to(found.offset);
                    settled = self.settle(frame, Some(&found));
                    head = Ok(Some(*found));
                }
                Position::Gone(end) => gone = Some(end),
            }
        }
        let Some(encoded) = settled else {
            self.lose(frame)?;
            return Ok(None);
        };
        self.next += 1;
        self.push_leaf(tree::leaf_hash(&encoded))?;
        let Ok(commitment) = Commitment::decode(&encoded) else {
            self.add(Finding::new(FindingKind::FrameDamaged, "its commitment is not one").frame(frame));
            self.pass_malformed(gone)?;
            self.lose_events(frame);
            self.keys.lose_epoch(frame);
            self.leave_uncounted(self.next_entry);
            self.forget(1);
            return Ok(None);
        };
        self.tell_lost(Some(commitment.first_entry));
        if commitment.kind == FrameKind::Epoch {
            self.epoch = Some(Epoch::new(frame, encoded));
            self.unsure_epoch = false;
        }
        if matches!(commitment.kind, FrameKind::Epoch | FrameKind::Event) {
            self.signed_time = Some(commitment.latest);
        }
        let located = match gone {
            None => self.locate(frame, commitment.clone(), &encoded, head)?,
            Some(end) => {
                let detail = "something else is in its place".to_owned();
                self.miss(&commitment, end, |finding| Finding { detail, ..finding });
                None
            }
        };
        self.check_numbering(frame, &commitment);
        if let Some(located) = &located {
            self.look_inside(located)?;
        }
        Ok(located.map(|located| self.with_keys(located)))
    }

    /// The commitment that at least two of the three places agree on; where no two do, the segment's, or the bundle's.
    fn settle(&self, frame: u64, head: Option<&Head>) -> Option<Encoded> {
        let own = head.filter(|head| head.commitment.frame == frame).map(|head| head.encoded);
        let entry = self.chunk.entry(frame);
        let leaf = self.chunk.leaf(frame);
        let agrees = |encoded: &Encoded| leaf == Some(tree::leaf_hash(encoded));
        own.filter(|own| entry.as_ref() == Some(own) || agrees(own))
            .or(self.chunk.agreed(frame))
            .or(own)
            .or(entry)
    }

    /// No source tells what `frame` was. Goes on at the next one that some source knows.
    fn lose(&mut self, frame: u64) -> Result<()> {
        let leaf = self.chunk.leaf(frame);
        let found = self.find_sound(frame + 1)?;
        let next = match leaf {
            Some(_) => frame + 1,
            None => self.next_known(frame, found.as_ref())?,
        };
        let lost = self.lost.get_or_insert_with(|| {
            let detail = "neither the segment nor the tree tells what it was";
            let mut finding = Finding::new(FindingKind::FramesMissing, detail).frame(frame);
            finding.entries = self.next_entry.map(|entry| (entry, entry));
            let finding = match &self.open {
                Some(open) => finding.at(open.cursor.name, open.cursor.offset),
                None => finding,
            };
            finding.unless_elsewhere(&self.not_there)
        });
        lost.last_frame = Some(next - 1);
        if let Some(open) = &mut self.open {
            open.cursor.offset = found.map_or(open.cursor.length, |head| head.offset);
        }
        self.unknown += next - frame;
        self.broken |= self.unknown > MOST_UNKNOWN;
        for _ in frame..if self.broken { frame } else { next } {
            self.push_leaf(leaf.unwrap_or(Hash::ZERO))?;
        }
        self.forget(next - frame);
        self.next_entry = None;
        self.unsure_epoch = true;
        self.keys.lose_epoch(frame);
        self.next = next;
        self.lose_events(frame);
        Ok(())
    }

    /// Tells of the frames of which nothing is known, now that it is known which entry comes after them.
    fn tell_lost(&mut self, next_entry: Option<u64>) {
        let Some(mut lost) = self.lost.take() else { return };
        let first = lost.entries.take().map(|(first, _)| first);
        match first.zip(next_entry) {
            Some((first, next)) if first <= next => {
                lost = lost.entries(first, next - first);
                self.count_lost(first, next - first);
            }
            _ => self.leave_uncounted(first),
        }
        self.add(lost);
    }

    /// A frame is known and not there; the segment goes on at `end`.
    fn miss(&mut self, commitment: &Commitment, end: u64, told: impl FnOnce(Finding) -> Finding) {
        let place = self.open.as_ref().map(|open| (open.cursor.name, open.cursor.offset));
        self.open.iter_mut().for_each(|open| open.cursor.offset = end);
        match commitment.kind {
            FrameKind::Event => self.lose_events(self.next - 1),
            FrameKind::Epoch => {
                self.unsure_terms = true;
                self.keys.lose_epoch(commitment.frame);
            }
            _ => {}
        }
        if self.asked.admits(commitment) {
            self.count_lost(commitment.first_entry, commitment.entries);
        }
        self.forget(1);
        self.add(told(Finding::missing(place, commitment)).unless_elsewhere(&self.not_there));
    }

    fn count_lost(&mut self, first: u64, count: u64) {
        self.lost_entries += self.asked.clip(first, count).map_or(0, |(first, last)| last - first + 1);
    }

    /// Passes frames whose seals are not known.
    fn forget(&mut self, frames: u64) {
        self.seals.pass(frames);
        self.last = None;
    }

    /// Checks that the settled frame is where the segment has to have it, and passes it.
    fn locate(
        &mut self,
        frame: u64,
        commitment: Commitment,
        encoded: &Encoded,
        head: Result<Option<Head>, String>,
    ) -> Result<Option<Located>> {
        let end = |offset: u64| offset.saturating_add(frame::frame_length(&commitment));
        let Some(open) = self.open.as_mut().filter(|open| end(open.cursor.offset) <= open.cursor.length)
        else {
            let rest = self.open.as_ref().map_or(0, |open| open.cursor.length);
            self.miss(&commitment, rest, |finding| finding);
            return Ok(None);
        };
        let offset = open.cursor.offset;
        open.low = offset + HEAD as u64;
        open.cursor.offset = end(offset);
        let cursor = open.cursor.clone();
        let told = |kind, detail: &str| {
            let finding = Finding::new(kind, detail).at(cursor.name, offset).frame(frame);
            finding.entries(commitment.first_entry, commitment.entries)
        };
        let seal = cursor.seal(end(offset))?;
        let [wrong, other] =
            ["its seal does not hold", "the epoch frame after it records another seal"].map(|detail| {
                told(FindingKind::SealMismatch, detail).unless_explained_elsewhere(&self.not_there)
            });
        let (group, damage) = match &head {
            Ok(Some(head)) if head.encoded == *encoded => (Some(head.group), None),
            Ok(_) => (None, Some("its commitment is not the one in the tree")),
            Err(reason) => (None, Some(reason.as_str())),
        };
        let mut seal_told = false;
        match damage {
            Some(damage) => {
                self.add(told(FindingKind::FrameDamaged, damage).unless_explained_elsewhere(&self.not_there));
                // Its group is not known: its own number is as good a guess as any.
                self.seals.check(&[frame], encoded, seal);
            }
            None => {
                seal_told = !self.seals.check(group.as_slice(), encoded, seal);
                if seal_told {
                    self.add(wrong);
                }
            }
        }
        if let Some(epoch) = self.epoch.as_mut().filter(|epoch| epoch.number == frame) {
            epoch.original = group.map(|group| (group, seal));
            epoch.seal_told = seal_told;
        }
        let told_wrong = seal_told || damage.is_some();
        let last = self.last.replace(Last { seal, group, told: told_wrong, finding: other });
        if last.as_ref().and_then(|last| last.group).zip(group).is_some_and(|(before, group)| group < before)
        {
            self.add(told(FindingKind::Numbering, "its group is before that of the frame before it"));
        }
        let located = cursor.locate(commitment, offset);
        if located.commitment.kind == FrameKind::Epoch {
            self.begin_epoch(&located, last)?;
        }
        Ok(Some(located))
    }

    /// Checks the numbers of a settled commitment against those before it.
    fn check_numbering(&mut self, frame: u64, commitment: &Commitment) {
        let epoch = self.epoch.as_ref().filter(|_| !self.unsure_epoch).map(|epoch| epoch.number);
        let (log, hash) = *self.log.get_or_insert((commitment.log_id, commitment.hash));
        let wrong = if commitment.frame != frame {
            Some("the frame's number is not its place in the tree")
        } else if self.next_entry.is_some_and(|next| next != commitment.first_entry) {
            Some("its entries do not follow those of the frame before it")
        } else if commitment.kind != FrameKind::Epoch && epoch.is_some_and(|epoch| epoch != commitment.epoch)
        {
            Some("it belongs to another epoch than the frames around it")
        } else if commitment.log_id != log {
            Some("it belongs to another log")
        } else if commitment.hash != hash && commitment.hash != self.config.hash {
            Some("its hash is not the log's")
        } else {
            None
        };
        if let Some(wrong) = wrong {
            let finding = Finding::new(FindingKind::Numbering, wrong).frame(frame);
            self.add(finding.entries(commitment.first_entry, commitment.entries));
        }
        if (log, hash) != (self.config.id, self.config.hash) && self.foreign.is_none() {
            let detail = "the log's frames have another id or hash than bulla.toml";
            self.foreign = Some(Finding::new(FindingKind::ConfigMismatch, detail).frame(frame));
        }
        self.next_entry = Some(commitment.first_entry.saturating_add(commitment.entries));
    }

    /// Events may be lost in the frames from this one on that were passed: one that allowed another `[log]`, or that released a hold.
    fn lose_events(&mut self, from: u64) {
        self.leave_unread(from);
        self.unsure_terms = true;
        // Of what may be lost one after the other the last says all.
        self.told.pop_if(|told| matches!(told, Told::Lost { .. }));
        self.told.push(Told::Lost { before: self.next });
    }

    /// What the frames from this one on that were passed tell is not known.
    fn leave_unread(&mut self, from: u64) {
        self.unread = Some(UnreadEvents::of(from, self.next - 1).and(self.unread));
    }

    /// Keeps what events tell, and tells of gaps.
    fn look_inside(&mut self, located: &Located) -> Result<()> {
        let Located { commitment, segment, offset, .. } = located;
        let invalid = |detail: String| {
            Finding::new(FindingKind::EventInvalid, detail).at(segment, *offset).frame(commitment.frame)
        };
        match commitment.kind {
            FrameKind::Event if commitment.body_length <= MAX_EVENT => {
                let body = located.body()?;
                // A damaged one explains nothing.
                match Event::decode(&body) {
                    _ if sha256(&[&body]) != commitment.body_digest => self.lose_events(self.next - 1),
                    Ok(event) => {
                        self.take_event(&event);
                        self.keys.event(commitment.frame, &event);
                        self.erased.extend(event.erases());
                        self.truncated.extend(event.gives_up().map(|id| (commitment.frame, id)));
                        match event {
                            Event::Erased { .. } | Event::Held { .. } | Event::Released { .. } => {
                                let place = Finding::new(FindingKind::ErasureUnordered, "");
                                let place = place.at(segment, *offset).frame(commitment.frame);
                                let seconds = commitment.earliest;
                                self.told.push(Told::Ordered(Box::new(Ordered { event, seconds, place })));
                            }
                            event => self.events.push(event),
                        }
                    }
                    Err(error) => {
                        self.leave_unread(self.next - 1);
                        self.add(invalid(error.to_string()));
                    }
                }
            }
            FrameKind::Event => {
                let length = commitment.body_length;
                self.leave_unread(self.next - 1);
                self.add(invalid(format!("it has {length} bytes, and an event has {MAX_EVENT} at most")));
            }
            FrameKind::Gap => {
                let detail = "these entries were lost before they could be sealed";
                let finding =
                    Finding::new(FindingKind::Gap, detail).at(segment, *offset).frame(commitment.frame);
                self.add(finding.entries(commitment.first_entry, commitment.entries));
            }
            _ => {}
        }
        Ok(())
    }

    /// How many bytes a segment has.
    fn length_of(&self, name: SegmentName) -> Result<u64> {
        Ok(self.open_segment(name)?.map_or(0, |cursor| cursor.length))
    }

    /// A segment; nothing where it is past the checkpoint and gone since it was listed: a writer that opens the log may
    /// give it another name.
    fn open_segment(&self, name: SegmentName) -> Result<Option<Cursor>> {
        let gone =
            |error: &Error| error.io_error().is_some_and(|error| error.kind() == io::ErrorKind::NotFound);
        match Cursor::open(self.store, name) {
            Err(error) if name.first >= self.size && gone(&error) => Ok(None),
            opened => opened.map(Some),
        }
    }

    fn push_leaf(&mut self, leaf: Hash) -> Result<()> {
        if self.broken {
            return Ok(());
        }
        let mut full = Vec::new();
        self.tiles.push(leaf, &mut |id, hashes| full.push((id, hashes.to_vec())));
        let (size, known) = (self.tiles.size(), self.known.iter_mut().chain(&mut self.pinned));
        for known in known.filter(|known| known.frames == size) {
            known.found = Some(self.tiles.root());
        }
        full.into_iter().try_for_each(|(id, hashes)| self.check_tile(id, &hashes))
    }

    fn check_tile(&mut self, id: TileId, hashes: &[Hash]) -> Result<()> {
        stored_tree::check_tile(self.store, id, hashes, &mut self.findings)
    }

    fn add(&mut self, finding: Finding) {
        self.findings.add(finding);
    }
}

/// That data subjects were held, each with the frame that tells so, where there are any.
pub(crate) fn held(held: &[(u64, u64)]) -> Option<String> {
    const FEW: usize = 8;
    let each = held.iter().take(FEW).map(|(number, frame)| format!("{number} (frame {frame})"));
    let each = each.collect::<Vec<_>>().join(", ");
    let more = if held.len() > FEW { ", …" } else { "" };
    let detail = format!("it erased data subjects who were held, and not released: {each}{more}");
    (!held.is_empty()).then_some(detail)
}

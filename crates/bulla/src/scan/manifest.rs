//! The signed list of a log's frames, and where each of them lies.
//!
//! The entry bundles hold every frame's commitment. They are hashed up to the root that the checkpoint signs before
//! any of them is believed. What is kept is the node over each bundle, 32 bytes for 256 frames: a bundle that is
//! read again is compared with that, so that a list of any length takes little memory.
//!
//! Frames lie in segments one after the other, so their places follow from their lengths and the segments' names.
//! A place proves nothing: what is read there has to have the digest that the list gives. A segment that ends before
//! one of its frames does, or whose successor is gone, lacks all frames from there on to the next segment: [`Frames::locate`].
//!
//! **Invariant:** there is no manifest of a log whose `[log]` is not the one that its last epoch was begun with, or one that an
//! event since then allows. Whoever reads a log has a manifest of it, so nobody answers by an edited configuration. The one that opening
//! a log has before it begins an epoch ([`Manifest::load_to_open`]) is the exception: recovery has compared `[log]` by then.

use crate::format::config::{self, allowed::AllowedConfig};
use crate::format::epoch::{EpochBody, MAX_EPOCH};
use crate::format::event::Event;
use crate::format::frame;
use crate::format::segment::{self, SegmentName};
use crate::scan::cursor::Cursor;
use crate::scan::finding::{Finding, FindingKind, Findings};
use crate::scan::located::{Located, event_of};
use crate::scan::lost::{LostFrames, are_lost, lost_below};
use crate::scan::paths::not_there;
use crate::scan::snapshot::Snapshot;
use crate::scan::stored_tree;
use bulla_proof::commitment::{Commitment, FrameKind};
use bulla_proof::hash::Hash;
use bulla_proof::tile::{self, FULL_WIDTH};
use bulla_proof::tree;
use bulla_store::Store;
use bulla_store::{Error, Result};
use std::collections::HashSet;
use std::sync::OnceLock;

/// How many frames a bundle lists.
pub(crate) const BUNDLE: u64 = FULL_WIDTH as u64;

/// See the module.
pub(crate) struct Manifest {
    pub(crate) snapshot: Snapshot,
    /// The node over each bundle's frames.
    nodes: Vec<Hash>,
    /// What the last of them say of the log; nothing where there are no frames.
    pub(crate) latest: Option<Latest>,
    /// The frames that were lost with a path, once somebody asked.
    lost: OnceLock<LostFrames>,
}

/// What the newest frames that a checkpoint covers say of the log itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Latest {
    /// The writing host's clock at the last epoch or event, in seconds since the Unix epoch. Blocks have the times of
    /// their entries, which may come from elsewhere.
    pub(crate) time: i64,
    /// Where the last frame ends, as far as the segments' names tell.
    pub(crate) end: (SegmentName, u64),
}

impl Manifest {
    /// Reads the list that the checkpoint of `snapshot`, which is believed, covers.
    ///
    /// # Errors
    /// `Tampered` where a bundle is missing or damaged, the bundles do not have the root that is signed, what the last
    /// epoch and the events since then say cannot be read, or `[log]` is not what they say.
    pub(crate) fn load(snapshot: Snapshot) -> Result<Self> {
        let (manifest, last) = Self::listed(snapshot)?;
        Self::compared(manifest, last)
    }

    /// The same for whoever opens a log to write, and has compared `[log]`: it needs no frame, and the last ones may lie on a path that
    /// is lost.
    ///
    /// # Errors
    /// `Tampered` where a bundle is missing or damaged, or the bundles do not have the root that is signed.
    pub(crate) fn load_to_open(snapshot: Snapshot) -> Result<Self> {
        Ok(Self::listed(snapshot)?.0)
    }

    /// The list, and the last frame's commitment, whatever `[log]` is.
    fn listed(snapshot: Snapshot) -> Result<(Self, Option<stored_tree::Encoded>)> {
        let (store, checkpoint) = (&*snapshot.store, &snapshot.checkpoint);
        let (mut nodes, mut last) = (Vec::new(), None);
        for index in 0..checkpoint.size.div_ceil(BUNDLE) {
            let entries = read_bundle(store, index, checkpoint.size)?;
            last = entries.last().copied();
            nodes.push(node(&entries));
        }
        if tile::tile_hash(&nodes) != checkpoint.root {
            return Err(Error::tampered(format!(
                "the entry bundles in {} do not have the root that the checkpoint signs; run `bulla verify`",
                store.describe("tile/entries")
            )));
        }
        Ok((Manifest { snapshot, nodes, latest: None, lost: OnceLock::new() }, last))
    }

    /// The same as [`Manifest::load`] for whoever looks at the last frames alone: the nodes are taken from the tiles that have them, if those come
    /// to the root that is signed.
    ///
    /// # Errors
    /// As [`Manifest::load`].
    pub(crate) fn load_end(snapshot: Snapshot) -> Result<Self> {
        let (manifest, last) = Self::listed_end(snapshot)?;
        Self::compared(manifest, last)
    }

    /// The same, and the last frame's commitment, whatever `[log]` is.
    fn listed_end(snapshot: Snapshot) -> Result<(Self, Option<stored_tree::Encoded>)> {
        let (store, size) = (&*snapshot.store, snapshot.checkpoint.size);
        let Some(end) = size.checked_sub(1) else { return Self::listed(snapshot) };
        let mut nodes = stored_tree::nodes(store, end / BUNDLE)?;
        let entries = read_bundle(store, end / BUNDLE, size)?;
        nodes.push(node(&entries));
        match tile::tile_hash(&nodes) == snapshot.checkpoint.root {
            true => {
                let manifest = Manifest { snapshot, nodes, latest: None, lost: OnceLock::new() };
                Ok((manifest, entries.last().copied()))
            }
            false => Self::listed(snapshot),
        }
    }

    /// With what the last frames say, which `[log]` has to agree with. `last` is the last frame's commitment.
    fn compared(mut manifest: Self, last: Option<stored_tree::Encoded>) -> Result<Self> {
        let Some(last) = last else { return Ok(manifest) };
        let name = manifest.snapshot.store.describe(config::FILE);
        let (latest, allowed) = manifest.find_latest(&decode(manifest.size() - 1, &last)?)?;
        manifest.latest = Some(latest);
        match allowed {
            true => Ok(manifest),
            false => {
                let detail = format!("[log] of {name} is not the one that the last epoch was begun with");
                let finding = Finding::new(FindingKind::ConfigMismatch, detail);
                Err(Error::tampered(format!("{finding}; `bulla verify` tells all")))
            }
        }
    }

    /// The root of the tree over the first `size` of these frames, which are so many at least.
    ///
    /// # Errors
    /// As [`Manifest::load`].
    pub(crate) fn root_at(&self, size: u64) -> Result<Hash> {
        if size == self.size() {
            return Ok(self.snapshot.checkpoint.root);
        }
        let (bundles, rest) = (size / BUNDLE, (size % BUNDLE) as usize);
        let whole = usize::try_from(bundles).unwrap_or(usize::MAX);
        let mut nodes = self.nodes.iter().copied().take(whole).collect::<Vec<_>>();
        if rest > 0 {
            nodes.push(node(&self.bundle(bundles)?[..rest]));
        }
        Ok(tile::tile_hash(&nodes))
    }

    /// The leaf of the last of the first `size` frames, which are no more than there are; zeros where there are none.
    ///
    /// # Errors
    /// As [`Manifest::load`].
    pub(crate) fn last_leaf(&self, size: u64) -> Result<Hash> {
        let Some(last) = size.checked_sub(1) else { return Ok(Hash::ZERO) };
        Ok(tree::leaf_hash(&self.bundle(last / BUNDLE)?[(last % BUNDLE) as usize]))
    }

    /// What the last frames say, and whether the log may have the `[log]` that it has.
    fn find_latest(&self, last: &Commitment) -> Result<(Latest, bool)> {
        let mut frames = Frames::from(self, last.epoch)?;
        let mut epoch = None;
        while epoch.is_none()
            && let Some(placed) = frames.next()?
        {
            epoch = (placed.commitment.frame == last.epoch).then_some(placed);
        }
        let epoch = epoch.filter(|placed| {
            placed.commitment.kind == FrameKind::Epoch && placed.commitment.body_length <= MAX_EPOCH
        });
        let none = || Error::tampered(format!("frame {} is no epoch's; run `bulla verify`", last.epoch));
        let epoch = epoch.ok_or_else(none)?;
        let end = |placed: &Placed| placed.segment.map(|segment| (segment, placed.end()));
        let mut latest = Latest { time: epoch.commitment.latest, end: end(&epoch).ok_or_else(none)? };
        let at_hand = match self.lost()?.contains(last.epoch) {
            // Where the last frame is lost as well, the segment before it may begin with the copy of an epoch before.
            true => Frames::from(self, last.frame)?.copy_of(last.epoch).ok_or_else(|| {
                Error::tampered(format!(
                    "the last epoch, of frame {}, was lost with a path, so that nobody can tell whether [log] is what it was: open the \
                     log for writing, as `bulla append` does, which begins another one",
                    last.epoch
                ))
            })?,
            false => epoch,
        };
        let body = EpochBody::decode(&frames.read(at_hand)?)?;
        let (mut terms, own) = (AllowedConfig::of(body.config), self.snapshot.config.digest);
        while let Some(placed) = frames.next()? {
            latest.end = end(&placed).unwrap_or(latest.end);
            if placed.commitment.kind != FrameKind::Event {
                continue;
            }
            latest.time = placed.commitment.latest;
            // What events allow matters to a file that has something else than the epoch.
            if body.config != own {
                terms.take(&frames.event(placed)?);
            }
        }
        Ok((latest, terms.admit(own)))
    }

    /// The commitment of a frame.
    pub(crate) fn commitment(&self, frame: u64) -> Result<Commitment> {
        match frame < self.size() {
            true => decode(frame, &self.bundle(frame / BUNDLE)?[(frame % BUNDLE) as usize]),
            false => Err(Error::tampered(format!("frame {frame} is not in the tree; run `bulla verify`"))),
        }
    }

    /// The frames of a log that were lost for good with one of its paths, whatever its `[log]` is.
    ///
    /// # Errors
    /// As [`Manifest::load`], but for what that compares.
    pub(crate) fn lost_of(snapshot: Snapshot) -> Result<LostFrames> {
        Ok(Self::listed_end(snapshot)?.0.lost()?.clone())
    }

    /// The frames of it that were lost for good with a path of the log.
    ///
    /// # Errors
    /// As [`Manifest::load`]; `Unavailable` where a segment cannot be opened.
    pub(crate) fn lost(&self) -> Result<&LostFrames> {
        if let Some(lost) = self.lost.get() {
            return Ok(lost);
        }
        let lost = match lost_below(&*self.snapshot.store) {
            0 => LostFrames::default(),
            end => self.missing_below(end)?,
        };
        Ok(self.lost.get_or_init(|| lost))
    }

    /// The frames of it that no path has which is there, whatever became of them.
    ///
    /// # Errors
    /// As [`Manifest::load`]; `Unavailable` where a segment cannot be opened.
    pub(crate) fn missing(&self) -> Result<LostFrames> {
        self.missing_below(u64::MAX)
    }

    /// The same, as far as they come before a frame.
    fn missing_below(&self, end: u64) -> Result<LostFrames> {
        let store = &*self.snapshot.store;
        let (mut frames, mut open) = (Frames::new(self)?, None::<Cursor>);
        // Those that are not in their places in a segment: they are missing where none behind them is.
        let (mut without, mut missing) = (Vec::new(), Vec::new());
        while let Some(placed) = frames.next()? {
            if open.as_ref().map(|open| open.name) != placed.segment {
                missing.append(&mut without);
                open = placed.segment.map(|name| Cursor::open(store, name)).transpose()?;
            }
            let head = open.as_ref().map(|open| open.peek_at(placed.offset)).transpose()?.flatten();
            match head.is_some_and(|head| head.is_ok_and(|head| head.commitment == placed.commitment)) {
                true => without.clear(),
                false => without.push(placed.commitment),
            }
        }
        missing.append(&mut without);
        self.remove_misplaced(&mut missing)?;
        let mut lost = LostFrames::default();
        missing.iter().filter(|one| one.frame < end).for_each(|commitment| lost.add(commitment));
        Ok(lost)
    }

    /// Removes those of the frames, which are ascending, that lie in a segment where none should be by the names of the others: somebody who has
    /// the storage can give a file such a name, and what lies in another one is not lost by that.
    fn remove_misplaced(&self, missing: &mut Vec<Commitment>) -> Result<()> {
        let store = &*self.snapshot.store;
        let Some(last) = missing.last().map(|last| last.frame) else { return Ok(()) };
        let mut misplaced = HashSet::new();
        for name in segment::list(store)?.0.into_iter().filter(|name| name.first <= last) {
            let mut cursor = Cursor::open(store, name)?;
            while let Some(Ok(head)) = cursor.peek()? {
                let frame = head.commitment.frame;
                let place = missing.binary_search_by_key(&frame, |one| one.frame);
                if place.is_ok_and(|place| missing[place] == head.commitment) && !cursor.is_copy(&head) {
                    misplaced.insert(frame);
                }
                cursor.pass(&head);
            }
        }
        missing.retain(|one| !misplaced.contains(&one.frame));
        Ok(())
    }

    /// How many frames it lists.
    pub(crate) fn size(&self) -> u64 {
        self.snapshot.checkpoint.size
    }

    /// The hashes of all leaves, 32 bytes a frame.
    pub(crate) fn leaves(&self) -> Result<Vec<Hash>> {
        let mut leaves = Vec::new();
        for index in 0..self.nodes.len() as u64 {
            leaves.extend(self.bundle(index)?.iter().map(|entry| tree::leaf_hash(entry)));
        }
        Ok(leaves)
    }

    /// A bundle that was read before.
    fn bundle(&self, index: u64) -> Result<Vec<stored_tree::Encoded>> {
        let store = &*self.snapshot.store;
        let entries = read_bundle(store, index, self.size())?;
        let known = usize::try_from(index).ok().and_then(|index| self.nodes.get(index));
        match known == Some(&node(&entries)) {
            true => Ok(entries),
            false => Err(Error::tampered(format!(
                "{} changed while it was read",
                store.describe(&tile::entries_path(index, FULL_WIDTH))
            ))),
        }
    }
}

fn node(entries: &[stored_tree::Encoded]) -> Hash {
    tile::tile_hash(&entries.iter().map(|entry| tree::leaf_hash(entry)).collect::<Vec<_>>())
}

fn decode(frame: u64, entry: &stored_tree::Encoded) -> Result<Commitment> {
    let none = |error| Error::tampered(format!("the commitment of frame {frame} is not one: {error}"));
    Commitment::decode(entry).map_err(none)
}

fn read_bundle(store: &dyn Store, index: u64, size: u64) -> Result<Vec<stored_tree::Encoded>> {
    let width = u16::try_from((size - index * BUNDLE).min(BUNDLE)).unwrap_or(FULL_WIDTH);
    stored_tree::read_bundle(store, index, width)?.ok_or_else(|| {
        let path = store.describe(&tile::entries_path(index, width));
        Error::tampered(format!("{path} is missing or malformed; run `bulla verify`"))
    })
}

/// A frame of the list, and where it lies.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub(crate) commitment: Commitment,
    /// `None` where no segment begins with it or before it.
    pub(crate) segment: Option<SegmentName>,
    pub(crate) offset: u64,
}

impl Placed {
    pub(crate) fn end(&self) -> u64 {
        self.offset.saturating_add(frame::frame_length(&self.commitment))
    }
}

/// Goes through the list in order.
pub(crate) struct Frames<'a> {
    manifest: &'a Manifest,
    next: u64,
    next_entry: u64,
    bundle: Vec<stored_tree::Encoded>,
    /// Which bundle that is.
    bundled: Option<u64>,
    segments: Vec<SegmentName>,
    /// How many of the segments have been begun, and where in the last of those the next frame lies.
    begun: usize,
    offset: u64,
    /// The frame of the current epoch.
    epoch: Option<Placed>,
    /// Its copy, with which the current segment begins that continues the epoch.
    copy: Option<Placed>,
    /// The segment that was opened last.
    open: Option<Cursor>,
}

impl<'a> Frames<'a> {
    /// From the first one on.
    pub(crate) fn new(manifest: &'a Manifest) -> Result<Self> {
        Ok(Frames {
            manifest,
            next: 0,
            next_entry: 0,
            bundle: Vec::new(),
            bundled: None,
            segments: segment::list(&*manifest.snapshot.store)?.0,
            begun: 0,
            offset: 0,
            epoch: None,
            copy: None,
            open: None,
        })
    }

    /// From the beginning of the segment on that has `frame`: only from there its place can be told.
    pub(crate) fn from(manifest: &'a Manifest, frame: u64) -> Result<Self> {
        let mut frames = Frames::new(manifest)?;
        let before = frames.segments.partition_point(|segment| segment.first <= frame).checked_sub(1);
        let Some(segment) = before.map(|before| frames.segments[before]) else { return Ok(frames) };
        frames.bundled = Some(segment.first / BUNDLE);
        frames.bundle = manifest.bundle(segment.first / BUNDLE)?;
        let first = decode(segment.first, &frames.bundle[(segment.first % BUNDLE) as usize])?;
        (frames.next, frames.next_entry) = (segment.first, first.first_entry);
        if first.kind != FrameKind::Epoch {
            // It begins with a copy of the epoch's frame.
            let commitment = manifest.commitment(first.epoch)?;
            frames.epoch = Some(Placed { commitment, segment: Some(segment), offset: 0 });
            frames.copy.clone_from(&frames.epoch);
        }
        Ok(frames)
    }

    /// The frame of the epoch that the last frame belongs to.
    pub(crate) fn epoch(&self) -> Option<&Placed> {
        self.epoch.as_ref()
    }

    /// The copy of the frame of this epoch, where the current segment begins with that.
    fn copy_of(self, epoch: u64) -> Option<Placed> {
        self.copy.filter(|copy| copy.commitment.frame == epoch)
    }

    /// The same, or its copy with which the current segment begins, where the frame itself was lost with a path.
    ///
    /// # Errors
    /// As [`Manifest::lost`].
    pub(crate) fn epoch_at_hand(&self) -> Result<Option<&Placed>> {
        let Some(epoch) = &self.epoch else { return Ok(None) };
        let is_lost = self.manifest.lost()?.contains(epoch.commitment.frame);
        Ok(self.copy.as_ref().filter(|_| is_lost).or(Some(epoch)))
    }

    /// The commitments of the bundle that holds the last frame, and the number of its first.
    pub(crate) fn bundle(&self) -> (u64, &[stored_tree::Encoded]) {
        (self.next.saturating_sub(1) / BUNDLE * BUNDLE, &self.bundle)
    }

    /// The next frame; `None` after the last one that the checkpoint covers.
    pub(crate) fn next(&mut self) -> Result<Option<Placed>> {
        if self.next == self.manifest.size() {
            return Ok(None);
        }
        if self.bundled != Some(self.next / BUNDLE) {
            self.bundled = Some(self.next / BUNDLE);
            self.bundle = self.manifest.bundle(self.next / BUNDLE)?;
        }
        let frame = self.next;
        let commitment = decode(frame, &self.bundle[(frame % BUNDLE) as usize])?;
        self.check(&commitment)?;
        let begun = self.segments.partition_point(|segment| segment.first <= frame);
        let begins = begun > self.begun;
        if begins {
            self.begun = begun;
            // A segment that continues an epoch begins with a copy of its frame.
            self.offset = match (commitment.kind, &self.epoch) {
                (FrameKind::Epoch, _) | (_, None) => 0,
                (_, Some(epoch)) => frame::frame_length(&epoch.commitment),
            };
        }
        let segment = self.begun.checked_sub(1).and_then(|last| self.segments.get(last)).copied();
        if commitment.kind == FrameKind::Epoch {
            self.copy = None;
        } else if let Some(Placed { commitment, .. }) = self.epoch.as_ref().filter(|_| begins) {
            self.copy = Some(Placed { commitment: commitment.clone(), segment, offset: 0 });
        }
        let placed = Placed { segment, offset: self.offset, commitment };
        self.offset = placed.end();
        self.next += 1;
        self.next_entry = placed.commitment.first_entry + placed.commitment.entries;
        if placed.commitment.kind == FrameKind::Epoch {
            self.epoch = Some(placed.clone());
        }
        Ok(Some(placed))
    }

    /// A frame in the segment that has it.
    ///
    /// # Errors
    /// `Tampered` where none has, told as verification tells of it; `Unavailable` where it cannot be opened.
    pub(crate) fn locate(&mut self, placed: Placed) -> Result<Located> {
        let (located, length) = self.find(&placed)?;
        match located {
            Some(located) => Ok(located),
            None => Err(self.missing(&placed, length)?),
        }
    }

    /// The body of a frame, which is what its commitment says.
    ///
    /// # Errors
    /// As [`Frames::locate`]; `Tampered` where it is damaged: of what a path has that is not there another one may have the remains.
    pub(crate) fn read(&mut self, placed: Placed) -> Result<Vec<u8>> {
        let located = self.locate(placed)?;
        match located.verify()? {
            Ok(verified) => Ok(verified.into_body()),
            Err(unreadable) => {
                let elsewhere = not_there(&*self.manifest.snapshot.store);
                let finding = unreadable.finding(&located).unless_explained_elsewhere(&elsewhere);
                Err(Error::tampered(format!("{finding}; `bulla verify` tells all")))
            }
        }
    }

    /// The event in the frame of one.
    ///
    /// # Errors
    /// As [`Frames::read`]; `Tampered` where it is none of this version.
    pub(crate) fn event(&mut self, placed: Placed) -> Result<Event> {
        let commitment = placed.commitment.clone();
        event_of(&commitment, || self.read(placed))
    }

    /// The same; `None` where none has it. With it comes how long the segment is in which it should be.
    ///
    /// # Errors
    /// As [`Cursor::open`].
    pub(crate) fn find(&mut self, placed: &Placed) -> Result<(Option<Located>, u64)> {
        let opened = self.open.take().filter(|open| Some(open.name) == placed.segment);
        let store = &*self.manifest.snapshot.store;
        let open = match (opened, placed.segment) {
            (Some(open), _) => Some(open),
            (None, Some(segment)) => Some(Cursor::open(store, segment)?),
            (None, None) => None,
        };
        let length = open.as_ref().map_or(0, |open| open.length);
        let open = open.filter(|_| placed.end() <= length);
        let locate = |open| self.open.insert(open).locate(placed.commitment.clone(), placed.offset);
        Ok((open.map(locate), length))
    }

    /// That a segment of `length` bytes has not got a frame, nor those after it.
    fn missing(&self, placed: &Placed, length: u64) -> Result<Error> {
        // Where no path is lost none is blamed, and names tell enough.
        let gone = match are_lost(&*self.manifest.snapshot.store) {
            true => Some(self.manifest.missing()?),
            false => None,
        };
        if let (Some(gone), Some(name)) = (&gone, placed.segment)
            && !gone.contains(placed.commitment.frame)
        {
            return self.misnamed(name, gone);
        }
        let (mut frames, mut findings) = (Frames::new(self.manifest)?, Findings::default());
        let elsewhere = not_there(&*self.manifest.snapshot.store);
        while let Some(other) = frames.next()? {
            let is_gone = gone.as_ref().is_none_or(|gone| gone.contains(other.commitment.frame));
            if other.segment == placed.segment && other.end() > length && is_gone {
                let place = placed.segment.map(|name| (name, other.offset.min(length)));
                findings.add(Finding::missing(place, &other.commitment).unless_elsewhere(&elsewhere));
            }
        }
        let first = findings.finish().into_iter().next();
        let finding =
            first.unwrap_or_else(|| Finding::missing(None, &placed.commitment).unless_elsewhere(&elsewhere));
        Ok(Error::tampered(format!("{finding}; `bulla verify` tells all")))
    }

    /// That a segment should have frames, by its name, that lie in another one; those that are `gone` lie in none.
    fn misnamed(&self, name: SegmentName, gone: &LostFrames) -> Result<Error> {
        let store = &*self.manifest.snapshot.store;
        let (mut frames, open) = (Frames::new(self.manifest)?, Cursor::open(store, name)?);
        let head_at = |offset| Ok::<_, Error>(open.peek_at(offset)?.and_then(std::result::Result::ok));
        let begins_with = head_at(0)?.map(|head| head.commitment);
        let is_of_log =
            |begins: &Commitment| self.manifest.commitment(begins.frame).is_ok_and(|own| own == *begins);
        let mut is_segment = begins_with.as_ref().is_some_and(is_of_log);
        let mut elsewhere = None::<(u64, u64)>;
        while let Some(Placed { commitment, segment, offset }) = frames.next()? {
            let frame = commitment.frame;
            if segment != Some(name) || gone.contains(frame) {
                continue;
            }
            match head_at(offset)?.is_some_and(|head| head.commitment == commitment) {
                true => is_segment = true,
                false => elsewhere = Some((elsewhere.map_or(frame, |(first, _)| first), frame)),
            }
        }
        let lie = match elsewhere {
            Some((first, last)) if first < last => format!("frames {first} to {last} lie"),
            Some((frame, _)) => format!("frame {frame} lies"),
            None => "its frames lie".to_owned(),
        };
        let file = store.describe(&name.path());
        let message = match is_segment {
            true => format!("{lie} in another segment than {file}, which should have them by its name"),
            false => format!(
                "{file} is no segment of the log, or none any more: what it begins with is no frame of it, and {lie} in another segment, and \
                 would have to lie in that one by its name. Move it away from the log's paths"
            ),
        };
        Ok(Error::tampered(format!("{message}; `bulla verify` tells all")))
    }

    /// What the log's key signs is believed, but not beyond what makes sense.
    fn check(&self, commitment: &Commitment) -> Result<()> {
        let epoch = self.epoch.as_ref().map(|epoch| epoch.commitment.frame);
        let follows = commitment.frame == self.next
            && commitment.first_entry == self.next_entry
            && (commitment.kind == FrameKind::Epoch || Some(commitment.epoch) == epoch);
        let config = &self.manifest.snapshot.config;
        let own = commitment.log_id == config.id && commitment.hash == config.hash;
        match (follows, own) {
            (true, true) => Ok(()),
            (false, _) => Err(Error::tampered(format!(
                "the numbers of frame {} do not follow those before it; run `bulla verify`",
                self.next
            ))),
            (_, false) => {
                Err(Error::tampered(format!("frame {} is of another log; run `bulla verify`", self.next)))
            }
        }
    }
}

//! The signed list of a log's frames, and where each of them lies.
//!
//! The entry bundles hold every frame's commitment. They are hashed up to the root that the checkpoint signs before
//! any of them is believed. What is kept is the node over each bundle, 32 bytes for 256 frames: a bundle that is
//! read again is compared with that, so that a list of any length takes little memory.
//!
//! Frames lie in segments one after the other, so their places follow from their lengths and the segments' names.
//! A place proves nothing: what is read there has to have the digest that the list gives. A segment that ends before
//! one of its frames does, or whose successor is gone, lacks all frames from there on to the next segment: [`Frames::locate`].

use crate::format::frame;
use crate::format::segment::{self, SegmentName};
use crate::scan::cursor::Cursor;
use crate::scan::finding::{Finding, Findings};
use crate::scan::located::Located;
use crate::scan::snapshot::Snapshot;
use crate::scan::stored_tree;
use bulla_proof::commitment::{Commitment, FrameKind};
use bulla_proof::hash::Hash;
use bulla_proof::tile::{self, FULL_WIDTH};
use bulla_proof::tree;
use bulla_store::Store;
use bulla_store::{Error, Result};

/// Where a commitment has the kind of its frame.
const KIND: usize = 1;
/// How many frames a bundle lists.
pub(crate) const BUNDLE: u64 = FULL_WIDTH as u64;

/// See the module.
pub(crate) struct Manifest {
    pub(crate) snapshot: Snapshot,
    /// The node over each bundle's frames.
    nodes: Vec<Hash>,
    /// The frames that are events.
    pub(crate) events: Vec<u64>,
}

impl Manifest {
    /// Reads the list that the checkpoint of `snapshot`, which is believed, covers.
    ///
    /// # Errors
    /// `Tampered` where a bundle is missing or damaged, or the bundles do not have the root that is signed.
    pub(crate) fn load(snapshot: Snapshot) -> Result<Self> {
        let (store, checkpoint) = (&*snapshot.store, &snapshot.checkpoint);
        let bundles = checkpoint.size.div_ceil(BUNDLE);
        let (mut nodes, mut events) = (Vec::new(), Vec::new());
        for index in 0..bundles {
            let entries = read_bundle(store, index, checkpoint.size)?;
            let kinds = (index * BUNDLE..).zip(&entries).map(|(frame, entry)| (frame, entry[KIND]));
            events.extend(kinds.filter(|(_, kind)| *kind == FrameKind::Event as u8).map(|(frame, _)| frame));
            nodes.push(node(&entries));
        }
        if tile::tile_hash(&nodes) != checkpoint.root {
            return Err(Error::tampered(format!(
                "the entry bundles in {} do not have the root that the checkpoint signs; run `bulla verify`",
                store.describe("tile/entries")
            )));
        }
        Ok(Manifest { snapshot, nodes, events })
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
    segments: Vec<SegmentName>,
    /// How many of the segments have been begun, and where in the last of those the next frame lies.
    begun: usize,
    offset: u64,
    /// The frame of the current epoch.
    epoch: Option<Placed>,
    /// The segment that was opened last.
    open: Option<Cursor>,
}

impl<'a> Frames<'a> {
    pub(crate) fn new(manifest: &'a Manifest) -> Result<Self> {
        Ok(Frames {
            manifest,
            next: 0,
            next_entry: 0,
            bundle: Vec::new(),
            segments: segment::list(&*manifest.snapshot.store)?.0,
            begun: 0,
            offset: 0,
            epoch: None,
            open: None,
        })
    }

    /// The frame of the epoch that the last frame belongs to.
    pub(crate) fn epoch(&self) -> Option<&Placed> {
        self.epoch.as_ref()
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
        if self.next.is_multiple_of(BUNDLE) {
            self.bundle = self.manifest.bundle(self.next / BUNDLE)?;
        }
        let frame = self.next;
        let commitment = Commitment::decode(&self.bundle[(frame % BUNDLE) as usize]).map_err(|error| {
            Error::tampered(format!("the commitment of frame {frame} is not one: {error}"))
        })?;
        self.check(&commitment)?;
        let begun = self.segments.partition_point(|segment| segment.first <= frame);
        if begun > self.begun {
            self.begun = begun;
            // A segment that continues an epoch begins with a copy of its frame.
            self.offset = match (commitment.kind, &self.epoch) {
                (FrameKind::Epoch, _) | (_, None) => 0,
                (_, Some(epoch)) => frame::frame_length(&epoch.commitment),
            };
        }
        let segment = self.begun.checked_sub(1).and_then(|last| self.segments.get(last)).copied();
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
        let opened = self.open.take().filter(|open| Some(open.name) == placed.segment);
        let store = &*self.manifest.snapshot.store;
        let open = match (opened, placed.segment) {
            (Some(open), _) => Some(open),
            (None, Some(segment)) => Some(Cursor::open(store, segment)?),
            (None, None) => None,
        };
        let length = open.as_ref().map_or(0, |open| open.length);
        let Some(open) = open.filter(|_| placed.end() <= length) else {
            return Err(self.missing(&placed, length)?);
        };
        Ok(self.open.insert(open).locate(placed.commitment, placed.offset))
    }

    /// That a segment of `length` bytes has not got a frame, nor those after it.
    fn missing(&self, placed: &Placed, length: u64) -> Result<Error> {
        let mut frames = Frames::new(self.manifest)?;
        let mut findings = Findings::default();
        while let Some(other) = frames.next()? {
            if other.segment == placed.segment && other.end() > length {
                let place = placed.segment.map(|name| (name, other.offset.min(length)));
                findings.add(Finding::missing(place, &other.commitment));
            }
        }
        let first = findings.finish().into_iter().next();
        let finding = first.unwrap_or_else(|| Finding::missing(None, &placed.commitment));
        Ok(Error::tampered(format!("{finding}; `bulla verify` tells all")))
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

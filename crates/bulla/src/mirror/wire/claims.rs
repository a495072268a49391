//! What a receiver says of what it has, held against the log that it was given: a sender passes on nothing that cannot be so.
//!
//! That it keeps what it was given nobody here can see: `bulla verify`, on its host, tells.
//!
//! Invariants:
//! - no claim of more than the log's checkpoint covers is passed on. A receiver may begin with one, where the log was put back since, and
//!   then has to say why it takes nothing of it;
//! - it has all where it has said that it has what the log had signed when the line began, or more, and that nothing is missing.

use crate::format::{files, frame};
use crate::mirror::Shipped;
use crate::scan::stored_tree;
use bulla_proof::checkpoint::{Checkpoint, MAX_NOTE, SignedNote};
use bulla_proof::commitment::Commitment;
use bulla_proof::tile::FULL_WIDTH;
use bulla_store::{Error, Result, Store};
use bulla_text::spelling::counted;

const BUNDLE: u64 = FULL_WIDTH as u64;

/// How much there is to be had.
#[derive(Clone, Copy, Default)]
struct Own {
    /// Frames that the checkpoint covers, and their entries; nothing where the log's files do not tell these.
    frames: u64,
    entries: Option<u64>,
    /// Bytes of these frames, as far as that was asked; nothing where the log's files do not tell them.
    bytes: Option<u64>,
}

/// See the module.
pub(super) struct Claims<'a> {
    source: &'a dyn Store,
    /// How many frames the log had when the line began; nothing where its checkpoint was none.
    at_first: Option<u64>,
    /// What was seen of it last.
    own: Own,
    /// The last claim, and whether it was of no more than there is.
    last: Option<(Shipped, bool)>,
}

impl<'a> Claims<'a> {
    pub(super) fn new(source: &'a dyn Store) -> Self {
        Claims {
            source,
            at_first: checkpointed(source),
            own: Own { entries: Some(0), bytes: Some(0), ..Own::default() },
            last: None,
        }
    }

    /// Takes in which checkpoint was given out: what it covers can arrive, also where an older one is put back meanwhile.
    pub(super) fn gives(&mut self, checkpoint: &[u8]) {
        if let Some(frames) = size_of(checkpoint).filter(|frames| *frames > self.own.frames) {
            self.own.frames = frames;
            self.own.entries = entries(self.source, frames);
        }
    }

    /// Takes in what the receiver says that it has. Returns whether that can be so.
    ///
    /// # Errors
    /// `Unavailable` where it cannot, and is no beginning.
    pub(super) fn take(&mut self, claim: &Shipped) -> Result<bool> {
        if !self.own.has(claim) {
            self.own.look(self.source);
        }
        if self.own.has(claim) && !self.own.lacks(claim) {
            self.own.bytes = bytes(self.source, self.own.frames);
        }
        let can_be = self.own.has(claim) && self.own.lacks(claim);
        if !can_be && self.last.is_some() {
            return Err(self.untrue(claim));
        }
        self.last = Some((*claim, can_be));
        Ok(can_be)
    }

    /// Whether it can be so that all has arrived, as the receiver says.
    ///
    /// # Errors
    /// `Unavailable` where it cannot.
    pub(super) fn check_done(&self, once: bool) -> Result<()> {
        let untrue = |why: &str| {
            Err(Error::unavailable(format!(
                "the receiver says that all has arrived, {why}: it is not believed"
            )))
        };
        match (&self.last, self.at_first) {
            _ if !once => untrue("and was to go on"),
            (None, _) => untrue("and has not said what"),
            (Some((claim, false)), _) => Err(self.untrue(claim)),
            (Some((claim, true)), Some(frames)) if claim.frames < frames || claim.behind.frames > 0 => {
                let (has, frames) = (counted(claim.frames, "frame"), counted(frames, "frame"));
                untrue(&format!("and that it has {has}, of a log that had {frames} when it began"))
            }
            (Some(_), Some(_)) => Ok(()),
            (Some(_), None) => untrue("of a log that has no checkpoint"),
        }
    }

    fn untrue(&self, claim: &Shipped) -> Error {
        let behind = match claim.behind.frames {
            0 => String::new(),
            frames => format!(" and lacks {}", counted(frames, "frame")),
        };
        Error::unavailable(format!(
            "the receiver says that it has {}, {}{behind}, and the log has signed {}: nothing that it says is believed",
            counted(claim.frames, "frame"),
            counted(claim.entries, "entry"),
            counted(self.own.frames, "frame")
        ))
    }
}

impl Own {
    /// Looks how many frames and entries there are now. A checkpoint that cannot be read covers none.
    fn look(&mut self, source: &dyn Store) {
        /// How often a writer may replace the tree's files while they are read.
        const ATTEMPTS: usize = 4;
        for _ in 0..ATTEMPTS {
            self.frames = checkpointed(source).unwrap_or_default();
            self.entries = entries(source, self.frames);
            if self.entries.is_some() {
                break;
            }
        }
    }

    /// Whether there are as many frames and entries as a receiver has and lacks.
    fn has(&self, Shipped { frames, entries, behind, .. }: &Shipped) -> bool {
        let within = |sum: Option<u64>, most: u64| sum.is_some_and(|sum| sum <= most);
        within(frames.checked_add(behind.frames), self.frames)
            && within(entries.checked_add(behind.entries), self.entries.unwrap_or(u64::MAX))
    }

    /// Whether there are as many bytes as it lacks.
    fn lacks(&self, claim: &Shipped) -> bool {
        self.bytes.is_none_or(|bytes| claim.behind.bytes <= bytes)
    }
}

/// The size that the log's checkpoint says, whoever signed it: that is for the receiver to look at.
fn checkpointed(source: &dyn Store) -> Option<u64> {
    size_of(&bulla_store::read_small(source, files::CHECKPOINT, MAX_NOTE as u64).ok()?)
}

/// The same of these bytes of one.
fn size_of(note: &[u8]) -> Option<u64> {
    let note = SignedNote::parse(note).ok()?;
    Checkpoint::parse(note.text).ok().map(|checkpoint| checkpoint.size)
}

/// How many entries the first `frames` frames have, as the last one's commitment says.
fn entries(source: &dyn Store, frames: u64) -> Option<u64> {
    let Some(last) = frames.checked_sub(1) else { return Some(0) };
    let (index, place) = (last / BUNDLE, last % BUNDLE);
    let bundle = stored_tree::read_bundle(source, index, u16::try_from(place + 1).ok()?).ok()??;
    let commitment = Commitment::decode(bundle.get(usize::try_from(place).ok()?)?).ok()?;
    commitment.first_entry.checked_add(commitment.entries)
}

/// How many bytes the first `frames` frames have, as their commitments say.
fn bytes(source: &dyn Store, frames: u64) -> Option<u64> {
    let mut bytes = 0_u64;
    for index in 0..frames.div_ceil(BUNDLE) {
        let width = (frames - index * BUNDLE).min(BUNDLE);
        for encoded in stored_tree::read_bundle(source, index, u16::try_from(width).ok()?).ok()?? {
            bytes = bytes.saturating_add(frame::frame_length(&Commitment::decode(&encoded).ok()?));
        }
    }
    Some(bytes)
}

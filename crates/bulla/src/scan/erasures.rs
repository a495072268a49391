//! Whose keys were destroyed, as the events in a log say.
//!
//! Invariants:
//! - nobody is taken for erased but by an event under a signed checkpoint, or one that a follower shows as pending;
//! - a key is taken for lost only after the newest events were looked at: those of a checkpoint that was signed after the
//!   key was found missing. An erasure is recorded before the vault lets go of it, so none is overlooked that was at
//!   work meanwhile;
//! - nothing is given out under a key where an event that the keys at hand do not follow cannot be read: it may tell of that key's
//!   erasure.

use crate::format::event::Event;
use crate::scan::events::each_event;
use crate::scan::full::Scan;
use crate::scan::located::{Located, event_in};
use crate::scan::manifest::Manifest;
use crate::scan::redaction::Redaction;
use crate::scan::snapshot::Snapshot;
use crate::scan::trust::Trust;
use crate::scan::unread_events::UnreadEvents;
use bulla_crypto::group::{GroupKeys, PartId};
use bulla_proof::commitment::FrameKind;
use bulla_store::Result;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What the events of some frames say.
#[derive(Clone, Debug, Default)]
pub(crate) struct Erased {
    /// The numbers of the data subjects whose keys were destroyed: 8 bytes for each.
    pub(crate) numbers: HashSet<u64>,
    /// The frames that were looked at.
    pub(crate) frames: Range<u64>,
    /// Those of them that may tell of more, of a log that is damaged.
    pub(crate) unread: Option<UnreadEvents>,
    /// Those of them that tell of a part of the log that was given up, with its id: it may have told of more.
    pub(crate) truncated: Vec<(u64, PartId)>,
}

/// See the module.
pub(crate) struct Erasures<'a> {
    known: Mutex<Erased>,
    load: Box<Load<'a>>,
    /// Whether the keys that are at hand may be of somebody who was erased.
    withholds: bool,
}

/// What the events say in the frames from one on that the newest checkpoint covers.
type Load<'a> = dyn Fn(u64) -> Result<Erased> + Send + Sync + 'a;

impl<'a> Erasures<'a> {
    /// `known` is what has to be known before the first group is opened: the frames that the keys at hand do not follow.
    pub(crate) fn new(known: Erased, load: impl Fn(u64) -> Result<Erased> + Send + Sync + 'a) -> Self {
        Erasures { known: Mutex::new(known), load: Box::new(load), withholds: false }
    }

    /// What all events of a damaged log say, for whoever gives out what is left of it with keys that follow its first `followed` frames; `None`
    /// where it may lack events that they do not follow. `known` has no part that was given up and that they take into account.
    pub(crate) fn of_ruins(known: Erased, followed: Option<u64>) -> Self {
        let truncated = known.truncated.iter().map(|(frame, _)| *frame).max();
        let last = known.unread.map(|unread| unread.last).max(truncated);
        let withholds = followed.is_none_or(|followed| last.is_some_and(|last| last >= followed));
        Erasures { withholds, ..Self::new(known, |_| Ok(Erased::default())) }
    }

    /// Whether keys that are at hand may be of somebody who was erased, so that nothing is given out under them.
    pub(crate) fn withholds(&self) -> bool {
        self.withholds
    }

    /// The frames that may tell of erasures and cannot be read, as far as it had to be looked.
    pub(crate) fn unread(&self) -> Option<UnreadEvents> {
        self.known().unread
    }

    /// Of each of these groups whether the key of one of its subjects was destroyed, as far as is known yet.
    pub(crate) fn are_erased(&self, groups: &[&[u64]]) -> Vec<bool> {
        let known = self.known();
        groups.iter().map(|subjects| known.names_one_of(subjects)).collect()
    }

    /// Of each of these groups, whose keys were found missing, why that is.
    ///
    /// # Errors
    /// Where the log cannot be read.
    pub(crate) fn why(&self, groups: &[&[u64]], keys: &dyn GroupKeys) -> Result<Vec<Redaction>> {
        let mut known = self.known();
        let mut unexplained = !groups.iter().all(|subjects| known.names_one_of(subjects));
        if unexplained && known.frames.start > 0 {
            let all = (self.load)(0)?;
            known.numbers.extend(all.numbers);
            (known.frames, known.unread) = (all.frames, all.unread);
            unexplained = false;
        }
        if unexplained && keys.is_complete() {
            let newer = (self.load)(known.frames.end)?;
            known.numbers.extend(newer.numbers);
            known.frames.end = newer.frames.end;
            known.unread = known.unread.map(|unread| unread.and(newer.unread)).or(newer.unread);
        }
        let missing = match (keys.is_complete(), known.unread) {
            (true, None) => Redaction::KeyLost,
            (true, Some(_)) => Redaction::CannotTell,
            (false, _) => Redaction::NotGiven,
        };
        let why = |subjects: &&[u64]| match known.names_one_of(subjects) {
            true => Redaction::Erased,
            false => missing,
        };
        Ok(groups.iter().map(why).collect())
    }

    /// Takes in what a frame that was just met says, if it is an event.
    ///
    /// # Errors
    /// `Tampered` where it is damaged, or none of this version.
    pub(crate) fn meet(&self, frame: &Located) -> Result<()> {
        if frame.commitment.kind == FrameKind::Event {
            self.known().take_frame(frame)?;
        }
        Ok(())
    }

    fn known(&self) -> MutexGuard<'_, Erased> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Erased {
    /// What a log says from `from` on, as its newest checkpoint has it; that has to be signed as `trust` asks for.
    ///
    /// # Errors
    /// `Tampered` where what is read is damaged, `Unavailable` where it cannot be read.
    pub(crate) fn newest(log: &Snapshot, trust: &Trust, from: u64) -> Result<Self> {
        Self::in_newest(log.renewed(trust)?, from)
    }

    /// The same of the paths that are there, for whoever says which are missing.
    ///
    /// # Errors
    /// As [`Erased::newest`], but for the paths.
    pub(crate) fn newest_in_part(log: &Snapshot, from: u64) -> Result<Self> {
        Self::in_newest(log.renewed_in_part(&Trust::default())?, from)
    }

    fn in_newest(newest: Snapshot, from: u64) -> Result<Self> {
        if newest.checkpoint.size <= from {
            return Ok(Erased { frames: from..from, ..Erased::default() });
        }
        Self::in_manifest(&Manifest::load(newest)?, from)
    }

    /// What the frames of a manifest say from `from` on.
    ///
    /// # Errors
    /// `Tampered` where an event is damaged or none of this version, `Unavailable` where it cannot be read.
    pub(crate) fn in_manifest(manifest: &Manifest, from: u64) -> Result<Self> {
        let end = manifest.size().max(from);
        let mut erased = Erased { frames: from..end, ..Erased::default() };
        each_event(manifest, from, |commitment, event| erased.take_event(commitment.frame, &event))?;
        Ok(erased)
    }

    /// What those frames say that are left of a log, however damaged.
    ///
    /// # Errors
    /// `Unavailable` where a file cannot be read.
    pub(crate) fn in_ruins(log: &Snapshot) -> Result<Self> {
        let mut scan = Scan::new(log, None, None)?;
        while scan.next()?.is_some() {}
        Ok(Self::passed_by(&mut scan, log.checkpoint.size))
    }

    /// What the first `size` frames say, which a scan has passed.
    pub(crate) fn passed_by(scan: &mut Scan<'_>, size: u64) -> Self {
        let (numbers, unread, truncated) = scan.take_erased();
        Erased { numbers, frames: 0..size, unread, truncated }
    }

    fn take_frame(&mut self, frame: &Located) -> Result<()> {
        self.take_event(frame.commitment.frame, &event_in(frame)?);
        Ok(())
    }

    fn take_event(&mut self, frame: u64, event: &Event) {
        self.numbers.extend(event.erases());
        self.truncated.extend(event.gives_up().map(|id| (frame, id)));
    }

    fn names_one_of(&self, subjects: &[u64]) -> bool {
        !self.numbers.is_empty() && subjects.iter().any(|number| self.numbers.contains(number))
    }
}

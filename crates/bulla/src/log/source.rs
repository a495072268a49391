//! [`Source`] and [`Place`].

use super::check_owner;
use crate::format::sources::{CheckedRange, SourceId};
use crate::write::engine::Engine;
use crate::write::engine::sources::Slot;
use crate::write::stage::buffer::StagedPlace;
use bulla_store::{Error, ErrorKind, Result};
use std::fmt::{self, Debug};
use std::ops::Range;
use std::sync::{Arc, Weak};

/// Where entries come from, a file for instance: by [`Log::source`](super::Log::source). Any number of producers may append from it.
#[derive(Clone)]
pub struct Source {
    engine: Weak<Engine>,
    slot: Arc<Slot>,
    owner: u32,
}

/// Where in its source the record stands that an entry is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its range, which is not empty, in a unit of the caller's: bytes, or lines.
    pub range: Range<u64>,
    /// What the caller knows the record again by: of the last record of each range that the log has it comes back.
    pub check: u64,
}

impl Source {
    pub(super) fn new(engine: &Arc<Engine>, slot: Arc<Slot>, owner: u32) -> Self {
        Source { engine: Arc::downgrade(engine), slot, owner }
    }

    /// Which source it is.
    pub fn id(&self) -> SourceId {
        self.slot.id
    }

    /// Says something else of the source from now on: the next block that has something of it says so.
    ///
    /// # Errors
    /// `Invalid` where `label` has more than 4,096 bytes; `Closed` in a forked child.
    pub fn relabel(&self, label: &[u8]) -> Result<()> {
        check_owner(self.owner)?;
        self.engine.upgrade().map_or(Ok(()), |engine| engine.relabel_source(&self.slot, label))
    }

    /// Says that what was read of the source in this range became no entry: what was refused, or is none. The range begins where that of the
    /// last entry ends that was appended, or, where there is none, where reading began; the next entry's range begins there, too. What is said
    /// last counts.
    ///
    /// Blocks say so only with the next entry. Until then [`Source::keep_passed`] has it known when the log is opened again, as
    /// [`SourceState::passed`](crate::SourceState::passed).
    ///
    /// # Errors
    /// `Invalid` where the range is empty, `Refused` where nothing is taken from the source any more, `Closed` in a forked child.
    pub fn pass(&self, place: &Place) -> Result<()> {
        check_owner(self.owner)?;
        let Place { range: Range { start, end }, check } = *place;
        if start >= end {
            return Err(self.misplaced(place));
        }
        let range = CheckedRange { start, end, check };
        self.engine.upgrade().map_or(Ok(()), |engine| engine.pass(&self.slot, range))
    }

    /// Makes durable what this source and all others of the log have [passed](Source::pass), in the file `sources.passed` of the key
    /// directory, where blocks do not say it already.
    ///
    /// That counts only where it goes on from the end of what blocks say of the source: where what was appended before it is lost, or the log
    /// or that file is put back, it is read again.
    ///
    /// # Errors
    /// `Unavailable` where the file cannot be written: what was passed since it was written last is then read again; `Closed` where
    /// the log is closed, and in a forked child.
    pub fn keep_passed(&self) -> Result<()> {
        check_owner(self.owner)?;
        let closed = || Error::new(ErrorKind::Closed, "the log is closed");
        self.engine.upgrade().ok_or_else(closed)?.keep_passed()
    }

    /// Says that the source is over: a block says so that comes after all that was appended from it, and the log then forgets what it has of
    /// it. Nothing is appended from it any more. Whether it has what another thread appends from it at the same moment is not said.
    ///
    /// Where no block comes any more before the log is closed, or the process dies before it, the source is there again when the log
    /// is opened: end it once more.
    ///
    /// In a forked child it does nothing.
    pub fn end(&self) {
        if let Some(engine) = self.engine.upgrade().filter(|_| check_owner(self.owner).is_ok()) {
            engine.end_source(&self.slot);
        }
    }

    /// A place in it as it is staged.
    #[inline]
    pub(super) fn staged(&self, place: &Place, engine: &Arc<Engine>) -> Result<StagedPlace> {
        let Place { range: Range { start, end }, check } = *place;
        if start >= end || !std::ptr::eq(Weak::as_ptr(&self.engine), Arc::as_ptr(engine)) {
            return Err(self.misplaced(place));
        }
        Ok(StagedPlace { source: self.slot.number()?, start, end, check })
    }

    #[cold]
    fn misplaced(&self, place: &Place) -> Error {
        let id = self.id();
        Error::invalid(match place.range.is_empty() {
            true => format!("the place of an entry in source {id} is empty: {:?}", place.range),
            false => format!("source {id} is one of another log, or of this one before it was opened again"),
        })
    }
}

impl Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Source({})", self.id())
    }
}

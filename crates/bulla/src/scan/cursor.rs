//! The one reader of heads: from frame to frame in a segment, each within the bytes that the segment has.
//!
//! The scan of a whole log, its tail, followers and recovery stand on it. It says what stands in the segment and judges
//! nothing: which head is the next frame's, and what follows from one that is not sound, each of them decides.

use super::located::Located;
use crate::format::frame::{self, FrameError, Head, ReadError};
use crate::format::segment::SegmentName;
use bulla_crypto::seal_chain::Seal;
use bulla_proof::commitment::{Commitment, FrameKind};
use bulla_store::{Error, Store, StoreFile};
use std::io;
use std::sync::Arc;

/// A segment that is open for reading, and where in it the next frame should begin.
#[derive(Clone, Debug)]
pub(crate) struct Cursor {
    pub(crate) name: SegmentName,
    pub(crate) file: Arc<dyn StoreFile>,
    /// As it was looked at last. Since then the segment can only have grown.
    pub(crate) length: u64,
    pub(crate) offset: u64,
}

/// What stands where a frame should begin: a sound head, whose frame the segment has all of, or why it is none; nothing
/// where the segment ends.
pub(crate) type Next = Option<Result<Head, FrameError>>;

impl Cursor {
    /// Opens a segment, to read it from its beginning.
    ///
    /// # Errors
    /// `Unavailable` where it cannot be opened.
    pub(crate) fn open(store: &dyn Store, name: SegmentName) -> bulla_store::Result<Self> {
        let path = name.path();
        let opened = store.open(&path);
        let file = opened.map_err(|error| Error::io(format!("opening {}", store.describe(&path)), error))?;
        let mut cursor = Cursor { name, file: Arc::from(file), length: 0, offset: 0 };
        cursor.look_again()?;
        Ok(cursor)
    }

    /// In the segment of a frame, where that ends.
    pub(crate) fn behind(frame: &Located) -> Self {
        let offset = frame.offset + frame::frame_length(&frame.commitment);
        Cursor { name: frame.segment, file: frame.file.clone(), length: offset, offset }
    }

    /// Takes in what a writer has added since.
    pub(crate) fn look_again(&mut self) -> bulla_store::Result<()> {
        self.length = self.file.length().map_err(|error| self.failed(error))?;
        Ok(())
    }

    /// What stands where the next frame should begin.
    ///
    /// # Errors
    /// `Unavailable` where the file cannot be read.
    pub(crate) fn peek(&self) -> bulla_store::Result<Next> {
        self.peek_at(self.offset)
    }

    /// What stands at `offset`.
    ///
    /// # Errors
    /// As [`Cursor::peek`].
    pub(crate) fn peek_at(&self, offset: u64) -> bulla_store::Result<Next> {
        if offset >= self.length {
            return Ok(None);
        }
        match frame::read_head(&*self.file, offset, self.length) {
            Ok(head) => Ok(Some(Ok(head))),
            Err(ReadError::Frame(error)) => Ok(Some(Err(error))),
            Err(ReadError::Io(error)) => Err(self.failed(error)),
        }
    }

    /// Whether this is the copy of the epoch's frame with which a segment begins that continues an epoch: it has no
    /// number of its own, and whoever counts frames passes it over.
    pub(crate) fn is_copy(&self, head: &Head) -> bool {
        head.offset == 0
            && head.commitment.kind == FrameKind::Epoch
            && head.commitment.frame < self.name.first
    }

    /// Goes to the end of the frame with this head.
    pub(crate) fn pass(&mut self, head: &Head) {
        self.offset = head.end();
    }

    /// Where, from `from` on, the first head stands that `wanted` accepts; the segment may lack the rest of its frame.
    ///
    /// # Errors
    /// As [`Cursor::peek`].
    pub(crate) fn find(&self, from: u64, wanted: impl Fn(&Head) -> bool) -> bulla_store::Result<Option<u64>> {
        frame::find(&*self.file, from, self.length, wanted).map_err(|error| self.failed(error))
    }

    /// The seal of the frame that ends at `end`.
    ///
    /// # Errors
    /// As [`Cursor::peek`].
    pub(crate) fn seal(&self, end: u64) -> bulla_store::Result<Seal> {
        frame::read_seal(&*self.file, end).map_err(|error| self.failed(error))
    }

    /// Where the frame that begins here ends by its header alone.
    ///
    /// # Errors
    /// As [`Cursor::peek`].
    pub(crate) fn end_by_header(&self) -> bulla_store::Result<Option<u64>> {
        frame::end_by_header(&*self.file, self.offset, self.length).map_err(|error| self.failed(error))
    }

    /// A frame of this segment.
    pub(crate) fn locate(&self, commitment: Commitment, offset: u64) -> Located {
        let (segment, file) = (self.name, self.file.clone());
        Located { commitment, segment, file, offset, keys: None, foreign: false, epoch_random: None }
    }

    /// That the segment could not be read.
    pub(crate) fn failed(&self, error: io::Error) -> Error {
        Error::io(format!("reading {}", self.name.path()), error)
    }
}

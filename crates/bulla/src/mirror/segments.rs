//! Frames on their way: from the segments of the source, each compared with its commitment, to those of the destination.
//!
//! Invariants:
//! - a frame lies at the destination where it lies at the source: in the segment of that name, at that offset;
//! - before more than [`MOST_UNSYNCED`] bytes of a segment are written that no sync covers, it is synced; it is synced to its end
//!   before the next one is begun. So of the last segment that is there all but its last [`MOST_UNSYNCED`] bytes are durable as they
//!   were written, and of the others all bytes: what lies there is taken for sent, where it is what was signed, and is not read
//!   from the source again;
//! - what is written before it was compared lies beyond the checkpoint, and no checkpoint is published over it unless it was found right.

use super::damaged;
use super::passed::{Passed, Whole};
use crate::format::config::LogConfig;
use crate::format::epoch::MAX_EPOCH;
use crate::format::event::MAX_EVENT;
use crate::format::frame::{self, HEAD, Head, SEAL};
use crate::format::segment::{DIRECTORY, SegmentName};
use crate::scan::finding::{Finding, FindingKind};
use crate::scan::paths::not_there_to_copy;
use crate::scan::stored_tree::Encoded;
use bulla_proof::commitment::{Commitment, FrameKind};
use bulla_proof::hash::{Sha256, sha256};
use bulla_store::{Error, Result, Store, StoreFile};
use std::collections::BTreeSet;
use std::io::{self, IoSlice};
use std::sync::Arc;

/// See the module.
pub(super) const MOST_UNSYNCED: u64 = 64 << 20;
/// So much of a source is read at once.
const PIECE: usize = 1 << 20;

/// See the module.
pub(super) struct Shipment<'a> {
    source: &'a Arc<dyn Store>,
    store: &'a Arc<dyn Store>,
    config: &'a LogConfig,
    most_unsynced: u64,
    /// The segments of the source that were not begun yet, as far as they are known to be some.
    ahead: Vec<SegmentName>,
    /// Where the next frame lies.
    at: Option<(SegmentName, u64)>,
    reading: Option<Reading>,
    writing: Option<Writing>,
    /// The segments beyond the destination's checkpoint that were there at the beginning, and of these, or of new ones, those that
    /// have something now.
    found: Vec<SegmentName>,
    written: BTreeSet<SegmentName>,
}

/// What a frame was that was shipped.
pub(super) struct Sent {
    pub(super) entries: u64,
    pub(super) bytes: u64,
}

impl<'a> Shipment<'a> {
    /// Begins behind the frames that were passed. A sync follows, and followed, after `most_unsynced` bytes at the latest.
    ///
    /// # Errors
    /// `Unavailable` where a directory cannot be read or made.
    pub(super) fn begin(
        (source, store): (&'a Arc<dyn Store>, &'a Arc<dyn Store>),
        config: &'a LogConfig,
        passed: &Passed,
        most_unsynced: u64,
    ) -> Result<Self> {
        let is_ahead = |name: &SegmentName| passed.place.is_none_or(|(last, _)| *name > last);
        let mut ahead = names(&**source)?;
        ahead.retain(is_ahead);
        let failed = |error| Error::io(format!("making {}", store.describe(DIRECTORY)), error);
        store.create_directory(DIRECTORY).and_then(|()| store.sync_directory("")).map_err(failed)?;
        let mut found = names(&**store)?;
        found.retain(is_ahead);
        let (at, written) = (passed.place, BTreeSet::new());
        Ok(Shipment {
            source,
            store,
            config,
            most_unsynced,
            ahead,
            at,
            reading: None,
            writing: None,
            found,
            written,
        })
    }

    /// Ships the next frame, whose commitment was hashed up to the signed root.
    ///
    /// # Errors
    /// `Tampered` where the source does not have the frame, or not as it was signed; `Unavailable` where either side fails.
    pub(super) fn ship(&mut self, passed: &mut Passed, encoded: &Encoded) -> Result<Sent> {
        let not_one = |_| {
            let detail = "its commitment is not one";
            damaged(&Finding::new(FindingKind::FrameDamaged, detail).frame(passed.next))
        };
        let commitment = Commitment::decode(encoded).map_err(not_one)?;
        passed.check(&commitment, self.config)?;
        let (segment, offset) = self.place(passed, &commitment)?;
        let writing = match self.writing.take() {
            Some(writing) if writing.name == segment => writing,
            _ => self.begin_writing(segment, offset)?,
        };
        let writing = self.writing.insert(writing);
        let whole = match writing.taken_up(&commitment, encoded, offset)? {
            Some(whole) => whole,
            None => {
                let reading = match self.reading.take() {
                    Some(reading) if reading.name == segment => reading,
                    _ => Reading::open(&**self.source, segment, &commitment)?,
                };
                let reading = self.reading.insert(reading);
                copy((&**self.source, reading), writing, (&commitment, encoded), offset)?
            }
        };
        let bytes = whole.head.length();
        self.at = Some((segment, whole.head.end()));
        passed.take(whole)?;
        Ok(Sent { entries: commitment.entries, bytes })
    }

    /// Where the next frame lies. Where that begins a segment, the one before it is brought to its end.
    fn place(&mut self, passed: &Passed, commitment: &Commitment) -> Result<(SegmentName, u64)> {
        let frame = commitment.frame;
        let begun = loop {
            let Some(index) = self.ahead.partition_point(|name| name.first <= frame).checked_sub(1) else {
                break None;
            };
            let name = self.ahead[index];
            if is_empty(&**self.source, name)? {
                self.ahead.remove(index);
                continue;
            }
            self.ahead.drain(..=index);
            break Some(name);
        };
        match (begun, self.at) {
            (None, Some(at)) => Ok(at),
            (None, None) => Err(missing(&**self.source, Finding::missing(None, commitment))),
            (Some(name), _) if name.first != frame => {
                let detail =
                    format!("{name} should begin with frame {}, which another segment has", name.first);
                let finding = Finding::new(FindingKind::FramesMissing, detail).at(name, 0).frame(frame);
                Err(missing(&**self.source, finding))
            }
            (Some(name), _) => {
                self.end_writing()?;
                let copy = match (commitment.kind, &passed.epoch) {
                    (FrameKind::Epoch, _) | (_, None) => None,
                    (_, Some((_, bytes))) => Some(bytes),
                };
                let mut writing = self.begin_writing(name, 0)?;
                let length = copy.map_or(0, Vec::len) as u64;
                if let Some(copy) = copy {
                    writing.write(copy, 0)?;
                }
                self.writing = Some(writing);
                Ok((name, length))
            }
        }
    }

    /// Opens a segment of the destination to write from `offset` on, up to which a checkpoint covers it.
    fn begin_writing(&mut self, name: SegmentName, offset: u64) -> Result<Writing> {
        let path = name.path();
        let shown = self.store.describe(&path);
        let failed = |error| Error::io(format!("writing {shown}"), error);
        let file = match self.store.open_write(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.store.create(&path),
            opened => opened,
        };
        let file = file.map_err(failed)?;
        let length = file.length().map_err(failed)?;
        let is_last = self.found.last().is_none_or(|last| *last <= name);
        let synced = if is_last { length.saturating_sub(self.most_unsynced) } else { length };
        self.written.insert(name);
        Ok(Writing {
            name,
            file,
            shown,
            synced: synced.max(offset),
            unsynced: 0,
            most_unsynced: self.most_unsynced,
        })
    }

    /// Cuts the segment that is being written behind its last frame, and syncs it.
    fn end_writing(&mut self) -> Result<()> {
        let Some((writing, (name, end))) = self.writing.take().zip(self.at) else { return Ok(()) };
        debug_assert_eq!(writing.name, name, "frames are written where they lie");
        writing.end(end)
    }

    /// Ends behind the last frame: all of them are durable, by their names too, and segments that are left of another history are
    /// gone.
    ///
    /// # Errors
    /// `Unavailable` where a file cannot be written or removed.
    pub(super) fn finish(mut self, passed: &Passed) -> Result<()> {
        debug_assert_eq!(self.at, passed.place, "what was shipped was passed");
        self.end_writing()?;
        for name in self.found.iter().filter(|name| !self.written.contains(name)) {
            let path = name.path();
            let removed = self.store.remove(&path);
            removed.map_err(|error| Error::io(format!("removing {}", self.store.describe(&path)), error))?;
        }
        let synced = self.store.sync_directory(DIRECTORY);
        synced.map_err(|error| Error::io(format!("syncing {}", self.store.describe(DIRECTORY)), error))
    }
}

/// That the source lacks frames, with the paths that they may lie on.
fn missing(source: &dyn Store, finding: Finding) -> Error {
    damaged(&finding.unless_elsewhere(&not_there_to_copy(source)))
}

/// The names of segments in a store, in order, also of files without a byte, which are none.
fn names(store: &dyn Store) -> Result<Vec<SegmentName>> {
    let items = match store.list(DIRECTORY) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        items => items.map_err(|error| Error::io(format!("listing {}", store.describe(DIRECTORY)), error)),
    };
    let items = items?.into_iter().filter(|item| !item.directory);
    let mut names = items.filter_map(|item| SegmentName::parse(&item.name)).collect::<Vec<_>>();
    names.sort_unstable();
    Ok(names)
}

fn is_empty(store: &dyn Store, name: SegmentName) -> Result<bool> {
    match store.open(&name.path()).and_then(|file| file.length()) {
        Ok(length) => Ok(length == 0),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(Error::io(format!("opening {}", store.describe(&name.path())), error)),
    }
}

/// A segment of the source that is being read, and what was read of it last.
struct Reading {
    name: SegmentName,
    file: Box<dyn StoreFile>,
    shown: String,
    start: u64,
    piece: Vec<u8>,
}

impl Reading {
    fn open(source: &dyn Store, name: SegmentName, commitment: &Commitment) -> Result<Self> {
        let path = name.path();
        let shown = source.describe(&path);
        match source.open(&path) {
            Ok(file) => Ok(Reading { name, file, shown, start: 0, piece: Vec::new() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(missing(source, Finding::missing(None, commitment)))
            }
            Err(error) => Err(Error::io(format!("opening {shown}"), error)),
        }
    }

    /// Some bytes from `offset` on, `most` of them at most; none where the segment ends.
    fn read(&mut self, offset: u64, most: u64) -> Result<&[u8]> {
        let within = offset.checked_sub(self.start).and_then(|at| usize::try_from(at).ok());
        let at = match within.filter(|at| *at < self.piece.len()) {
            Some(at) => at,
            None => {
                self.piece.resize(PIECE, 0);
                let read = self.file.read_at(&mut self.piece, offset);
                let read = read.map_err(|error| Error::io(format!("reading {}", self.shown), error))?;
                self.piece.truncate(read);
                self.start = offset;
                0
            }
        };
        let end = usize::try_from(most)
            .map_or(self.piece.len(), |most| self.piece.len().min(at.saturating_add(most)));
        Ok(&self.piece[at..end])
    }
}

/// A segment of the destination that is being written.
struct Writing {
    name: SegmentName,
    file: Box<dyn StoreFile>,
    shown: String,
    /// Up to here an earlier mirror has synced what is there.
    synced: u64,
    /// Bytes that were written since the last sync, and may be.
    unsynced: u64,
    most_unsynced: u64,
}

impl Writing {
    fn failed(&self, error: io::Error) -> Error {
        Error::io(format!("writing {}", self.shown), error)
    }

    fn write(&mut self, bytes: &[u8], offset: u64) -> Result<()> {
        debug_assert!(bytes.len() as u64 <= self.most_unsynced, "pieces are small");
        if self.unsynced + bytes.len() as u64 > self.most_unsynced {
            self.file.sync().map_err(|error| self.failed(error))?;
            self.unsynced = 0;
        }
        self.unsynced += bytes.len() as u64;
        self.file.write_at(&mut [IoSlice::new(bytes)], offset).map_err(|error| self.failed(error))
    }

    /// The frame at `offset`, where an earlier mirror has brought it there, durably, and it is the one that is wanted.
    fn taken_up(&self, commitment: &Commitment, encoded: &Encoded, offset: u64) -> Result<Option<Whole>> {
        let end = offset.saturating_add(frame::frame_length(commitment));
        if end > self.synced {
            return Ok(None);
        }
        let head = match frame::read_head(&*self.file, offset, self.synced) {
            Ok(head) if head.encoded == *encoded => head,
            Ok(_) | Err(frame::ReadError::Frame(_)) => return Ok(None),
            Err(frame::ReadError::Io(error)) => return Err(self.failed(error)),
        };
        let body = match is_read(commitment) {
            true => {
                Some(frame::read_body(&*self.file, offset, commitment).map_err(|error| self.failed(error))?)
            }
            false => None,
        };
        let digest = match &body {
            Some(body) => Ok(sha256(&[body])),
            None => frame::digest(&*self.file, head.body_offset(), commitment.body_length),
        };
        if digest.map_err(|error| self.failed(error))? != commitment.body_digest {
            return Ok(None);
        }
        let seal = frame::read_seal(&*self.file, end).map_err(|error| self.failed(error))?;
        Ok(Some(Whole { head, seal, body, place: (self.name, end) }))
    }

    /// Cuts what is behind `end`, and syncs the rest.
    fn end(self, end: u64) -> Result<()> {
        let cut = || {
            if self.file.length()? > end {
                self.file.set_length(end)?;
            }
            self.file.sync()
        };
        cut().map_err(|error| self.failed(error))
    }
}

/// Whether what is in the body says something of the frames that follow.
fn is_read(commitment: &Commitment) -> bool {
    match commitment.kind {
        FrameKind::Epoch => commitment.body_length <= MAX_EPOCH,
        FrameKind::Event => commitment.body_length <= MAX_EVENT,
        _ => false,
    }
}

/// Copies a frame, and compares it with its commitment on the way.
fn copy(
    (source, reading): (&dyn Store, &mut Reading),
    writing: &mut Writing,
    (commitment, encoded): (&Commitment, &Encoded),
    offset: u64,
) -> Result<Whole> {
    let (name, length) = (reading.name, frame::frame_length(commitment));
    let at = |kind, detail: &str| {
        let finding = Finding::new(kind, detail).at(name, offset).frame(commitment.frame);
        damaged(&finding.entries(commitment.first_entry, commitment.entries))
    };
    let keeps = is_read(commitment);
    let (mut parsed, mut head, mut body, mut seal) = (None, Vec::new(), Vec::new(), Vec::new());
    let (mut hasher, mut done) = (Sha256::new(), 0);
    while done < length {
        let piece = reading.read(offset + done, length - done)?;
        if piece.is_empty() {
            return Err(missing(source, Finding::missing(Some((name, offset)), commitment)));
        }
        let (mut rest, behind) = (piece, length - SEAL as u64);
        let mut place = done;
        if place < HEAD as u64 {
            let (of_head, more) = rest.split_at(rest.len().min(HEAD - head.len()));
            head.extend_from_slice(of_head);
            (rest, place) = (more, place + of_head.len() as u64);
        }
        if parsed.is_none() && head.len() == HEAD {
            parsed = Some(sound(&head, encoded, offset).map_err(|why| at(FindingKind::FrameDamaged, &why))?);
        }
        let of_body = usize::try_from(behind.saturating_sub(place)).unwrap_or(usize::MAX).min(rest.len());
        let (of_body, of_seal) = rest.split_at(of_body);
        hasher.update(of_body);
        if keeps {
            body.extend_from_slice(of_body);
        }
        seal.extend_from_slice(of_seal);
        writing.write(piece, offset + done)?;
        done += piece.len() as u64;
    }
    if hasher.finish() != commitment.body_digest {
        return Err(at(FindingKind::BodyDamaged, "the body does not have the digest in its commitment"));
    }
    match (parsed, seal.try_into()) {
        (Some(head), Ok(seal)) => {
            Ok(Whole { head, seal, body: keeps.then_some(body), place: (name, offset + length) })
        }
        _ => Err(at(FindingKind::FrameDamaged, "the segment ends inside the frame")),
    }
}

/// The head of a frame with this commitment.
fn sound(bytes: &[u8], encoded: &Encoded, offset: u64) -> Result<Head, String> {
    match frame::parse_head(bytes, offset) {
        Ok(head) if head.encoded == *encoded => Ok(head),
        Ok(_) => Err("its commitment is not the one that was signed".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

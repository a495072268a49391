//! One source: how far it was read, and reading on.
//!
//! Invariants:
//! - `place` is where the next record begins, `claimed` where the range of the last entry that was taken ends: `claimed <= place`, and
//!   between them are records that became no entry;
//! - `tail` is what stands before `place`, so that other content at the same length is noticed.

use super::content::{Content, Node};
use super::label::{BEGINNING, Label, SourceId, TAIL, check, digest};
use super::siblings::modified;
use super::{At, Sink};
use crate::convert::{Conversion, Converted, Converter};
use crate::framing::{Framing, MARK, Next};
use std::collections::VecDeque;
use std::fs::Metadata;
use std::io;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

/// So many bytes are read in a turn, unless a record is longer.
const TURN: usize = 256 * 1024;

/// What the turn of a source came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// There may be more.
    More,
    /// All was read that is there; so many bytes of it are the beginning of a record.
    AtEnd(u64),
    /// It is not what it was: the file was truncated, or has other content.
    Changed,
}

/// What some content is to a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Same {
    /// Something else.
    No,
    /// The same, up to an end before what was read.
    Shorter,
    /// The same, as far as it was read.
    GoesOn,
}

/// Why a turn was broken off.
pub(super) enum Broken<E> {
    Reading(io::Error),
    Sink(E),
}

/// See the module.
pub(super) struct Followed<S> {
    pub(super) id: SourceId,
    pub(super) label: Label,
    /// What the sink knows it by, once it had a record.
    pub(super) handle: Option<S>,
    pub(super) content: Content,
    converter: Converter,
    framing: Framing,
    pub(super) place: u64,
    claimed: u64,
    tail: Vec<u8>,
    /// What the log has beyond: ranges whose records are not appended again.
    ahead: VecDeque<Range<u64>>,
    /// Whether the header is known, where there is one.
    headed: bool,
    /// What was seen of the file when it was read to its end, and when that was.
    seen: (u64, i64),
    /// Since when what is left is the beginning of a record that silence ends; `None` where there is none.
    pub(super) silent_since: Option<i64>,
    /// Whether nothing will be added: a last record needs no end, and then the source is done with.
    pub(super) is_whole: bool,
}

impl<S> Followed<S> {
    /// A source that begins, or goes on, at `place`.
    pub(super) fn new(
        (id, label): (SourceId, Label),
        content: Content,
        conversion: &Arc<Conversion>,
        (place, ahead): (u64, VecDeque<Range<u64>>),
    ) -> io::Result<Self> {
        let converter = Converter::new(conversion);
        let framing = converter.framing();
        let mut followed = Followed {
            id,
            label,
            handle: None,
            headed: !converter.has_header() || place == 0,
            converter,
            framing,
            place,
            claimed: place,
            tail: Vec::new(),
            ahead,
            seen: (0, 0),
            silent_since: None,
            is_whole: content.is_packed(),
            content,
        };
        followed.tail = vec![0; followed.tail_length()];
        let (from, mut tail) = (followed.tail_start(), std::mem::take(&mut followed.tail));
        // So that a copy of it is known before it is read.
        followed.note_beginning()?;
        let read = followed.content.fill(from, &mut tail)?;
        tail.truncate(read);
        followed.tail = tail;
        Ok(followed)
    }

    pub(super) fn node(&self) -> Node {
        (self.label.device, self.label.inode)
    }

    fn tail_length(&self) -> usize {
        usize::try_from(self.place).unwrap_or(TAIL).min(TAIL)
    }

    fn tail_start(&self) -> u64 {
        self.place - self.tail_length() as u64
    }

    /// Whether the file shows nothing that was not seen before.
    pub(super) fn is_as_seen(&self, metadata: &Metadata) -> bool {
        self.seen == (metadata.size(), modified(metadata))
    }

    /// Whether silence ends a record, where the next one would.
    pub(super) fn ends_by_silence(&self) -> bool {
        self.framing.ends_by_silence()
    }

    /// Reads on, and gives the sink what is there. `ends`: what is there is all, so that a last record needs no end.
    ///
    /// # Errors
    /// Those of reading, behind which the source stands where it stood; those of the sink, behind which it is not used any more.
    pub(super) fn turn<T: Sink<Source = S>>(
        &mut self,
        sink: &mut T,
        buffer: &mut Vec<u8>,
        ends: bool,
    ) -> Result<Turn, Broken<T::Error>> {
        let ends = ends || self.is_whole;
        // Before it is read, so that what comes meanwhile is not taken for seen.
        let metadata = self.content.metadata().map_err(Broken::Reading)?;
        if !self.headed {
            self.read_header(buffer).map_err(Broken::Reading)?;
        }
        if !self.begin(sink)? {
            return Ok(Turn::Changed);
        }
        let (from, before) = (self.tail_start(), self.tail.len());
        let mut room = TURN;
        loop {
            if buffer.len() < before + room {
                buffer.resize(before + room, 0);
            }
            let read = self.content.fill(from, &mut buffer[..before + room]).map_err(Broken::Reading)?;
            let bytes = &buffer[..read];
            if bytes.get(..before) != Some(&self.tail[..]) {
                return Ok(Turn::Changed);
            }
            // Nothing was in it when it was looked at.
            let is_all = read < before + room;
            let used =
                if self.handle.is_some() { self.give(bytes, before, is_all && ends, sink)? } else { before };
            self.tail.clear();
            self.tail.extend_from_slice(&bytes[used.saturating_sub(TAIL)..used]);
            match (is_all, used > before) {
                (true, _) => {
                    self.seen = (metadata.size(), modified(&metadata));
                    return Ok(Turn::AtEnd((read - used) as u64));
                }
                (false, true) => return Ok(Turn::More),
                // A record that is longer than what was read.
                (false, false) => room *= 2,
            }
        }
    }

    /// Has the sink know the source, by as much of its beginning as there is. False where the beginning is not what it was.
    fn begin<T: Sink<Source = S>>(&mut self, sink: &mut T) -> Result<bool, Broken<T::Error>> {
        let before = self.label.beginning;
        // Of what comes behind it the bytes before the place tell.
        let is_known = self.label.beginning == 0 || self.place >= self.label.beginning;
        let is_same = is_known || self.label.begins(&self.id, &mut self.content).map_err(Broken::Reading)?;
        if !is_same || !self.note_beginning().map_err(Broken::Reading)? {
            return Ok(false);
        }
        match &self.handle {
            None if self.label.beginning > 0 => {
                self.handle = Some(sink.source(&self.id, &self.label.to_bytes()).map_err(Broken::Sink)?);
            }
            Some(_) if self.label.beginning > before => self.relabel(sink).map_err(Broken::Sink)?,
            _ => {}
        }
        Ok(true)
    }

    /// Notes as much of the beginning as there is. False where it is not what it was.
    pub(super) fn note_beginning(&mut self) -> io::Result<bool> {
        if self.label.beginning == BEGINNING as u64 {
            return Ok(true);
        }
        let mut beginning = [0; BEGINNING];
        let read = self.content.fill(0, &mut beginning)?;
        let before = beginning[..read].get(..usize::try_from(self.label.beginning).unwrap_or(usize::MAX));
        if self.label.beginning > 0
            && before.map(|before| digest(&self.id, before)) != Some(self.label.digest)
        {
            return Ok(false);
        }
        self.label.beginning = read as u64;
        self.label.digest = digest(&self.id, &beginning[..read]);
        Ok(true)
    }

    /// Has the log know what the label says now.
    pub(super) fn relabel<T: Sink<Source = S>>(&mut self, sink: &mut T) -> Result<(), T::Error> {
        match &self.handle {
            Some(handle) => sink.relabel(handle, &self.label.to_bytes()),
            None => Ok(()),
        }
    }

    /// The first record of the file, which names the columns of those that follow.
    fn read_header(&mut self, buffer: &mut Vec<u8>) -> io::Result<()> {
        if buffer.len() < TURN {
            buffer.resize(TURN, 0);
        }
        let read = self.content.fill(0, &mut buffer[..TURN])?;
        let bytes = &buffer[..read];
        if let Next::Record { content, .. } = self.converter.framing().next(bytes, false) {
            // What it is, `convert` knows by itself; of a header that is refused every record is refused, too.
            let _ = self.converter.convert(&bytes[content], 0);
        }
        self.headed = true;
        Ok(())
    }

    /// Gives the sink the records in `bytes` from `used` on, which stands at `place`. Returns where the first record begins that is not all there.
    fn give<T: Sink<Source = S>>(
        &mut self,
        bytes: &[u8],
        mut used: usize,
        ends: bool,
        sink: &mut T,
    ) -> Result<usize, Broken<T::Error>> {
        if self.place == 0 && bytes.starts_with(MARK) {
            used = MARK.len();
            self.place = used as u64;
        }
        loop {
            let rest = &bytes[used..];
            let (consumed, record) = match self.framing.next(rest, ends) {
                Next::More => return Ok(used),
                Next::Passed { consumed } => {
                    used += consumed;
                    self.place += consumed as u64;
                    continue;
                }
                Next::Record { consumed, content } => (consumed, Ok(&rest[content])),
                Next::Refused { consumed, reason } => (consumed, Err(reason.to_string())),
            };
            let end = self.place + consumed as u64;
            if !self.is_taken(end) {
                let at = At { path: &self.label.path, place: self.place };
                let converted = match record {
                    Ok(record) => (self.converter.convert(record, sink.now()), Some(record)),
                    Err(reason) => (Converted::Refused(reason), None),
                };
                match converted {
                    (Converted::Nothing, _) => {}
                    (Converted::Entry(entry), raw) => {
                        let before = used + consumed;
                        let check = check(&self.id, &bytes[before.saturating_sub(TAIL)..before]);
                        let handle = self.handle.as_ref().expect("what has a record has a beginning");
                        let range = self.claimed..end;
                        match sink.append(at, &entry, handle, (range, check)).map_err(Broken::Sink)? {
                            Ok(()) => self.claimed = end,
                            Err(reason) => sink.refuse(at, &reason, raw).map_err(Broken::Sink)?,
                        }
                    }
                    (Converted::Refused(reason), raw) => {
                        sink.refuse(at, &reason, raw).map_err(Broken::Sink)?
                    }
                }
            }
            used += consumed;
            self.place = end;
        }
    }

    /// Whether the log has the record from `place` to `end`.
    fn is_taken(&mut self, end: u64) -> bool {
        while self.ahead.front().is_some_and(|range| range.end <= self.place) {
            self.ahead.pop_front();
        }
        match self.ahead.front() {
            Some(range) if range.start <= self.place && end <= range.end => {
                self.claimed = end;
                true
            }
            _ => false,
        }
    }

    /// What this content is to the source.
    pub(super) fn compare(&self, content: &mut Content) -> io::Result<Same> {
        if !self.label.begins(&self.id, content)? {
            return Ok(Same::No);
        }
        let mut tail = vec![0; self.tail.len()];
        let read = content.fill(self.tail_start(), &mut tail)?;
        Ok(match tail[..read] == self.tail[..] {
            true => Same::GoesOn,
            false if read < tail.len() => Same::Shorter,
            false => Same::No,
        })
    }

    /// Whether this content ends where the source's does.
    pub(super) fn ends_as(&self, content: &mut Content) -> io::Result<bool> {
        let length = self.content.metadata()?.len();
        Ok(content.fill(length, &mut [0])? == 0)
    }
}

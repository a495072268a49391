//! One source: how far it was read, and reading on.
//!
//! Invariants:
//! - `place` is where the next record begins, `claimed` where the range of the last entry that was taken ends: `claimed <= place`, and
//!   between them are records that became no entry;
//! - `tail` is what stands before `place`, so that other content at the same length is noticed.

use super::content::{Content, Node};
use super::label::{BEGINNING, End, Label, SourceId, TAIL, check};
use super::siblings::modified;
use super::{At, Sink, Unit};
use crate::convert::{Conversion, Converted, Converter};
use crate::framing::{Framing, MARK, Next};
use bulla_text::ParsedEntry;
use std::collections::VecDeque;
use std::fs::Metadata;
use std::io;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;

/// So many bytes are read in a turn, unless a record is longer.
const TURN: usize = 256 * 1024;

/// So many records are converted before they are appended.
const TOGETHER: usize = 512;

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

/// What turns of all sources use one after the other.
#[derive(Default)]
pub(super) struct Room {
    bytes: Vec<u8>,
    /// Empty between turns.
    converted: Vec<Record>,
}

impl Room {
    /// Lets go of what a record took that was longer than most are.
    pub(super) fn shrink(&mut self) {
        if self.bytes.len() > 4 * TURN {
            self.bytes = Vec::new();
        }
    }
}

/// A record that is about to be appended.
struct Record {
    place: u64,
    end: u64,
    /// Where it ends in what was read.
    behind: usize,
    /// Its entry, and the record in what was read; `None` where the log has it.
    entry: Option<(ParsedEntry, Range<usize>)>,
}

/// Where a source goes on.
#[derive(Debug, Default)]
pub(super) struct Resumed {
    /// Where the range of the next entry begins.
    pub(super) claimed: u64,
    /// Where the next record begins.
    pub(super) place: u64,
    /// What the log has beyond.
    pub(super) ahead: VecDeque<Range<u64>>,
}

/// See the module.
pub(super) struct Followed<S> {
    pub(super) id: SourceId,
    pub(super) label: Label,
    /// What the sink knows it by, once it had a record.
    pub(super) handle: Option<S>,
    pub(super) content: Content,
    /// Where the file was when it was met, and when that was, if it was empty then.
    pub(super) empty_at: Option<(PathBuf, i64)>,
    converter: Converter,
    framing: Framing,
    pub(super) place: u64,
    claimed: u64,
    /// Where what was passed ended when the sink was told of it last.
    passed: u64,
    tail: Vec<u8>,
    /// What the log has beyond: ranges whose records are not appended again.
    ahead: VecDeque<Range<u64>>,
    /// Whether the header is known, where there is one.
    headed: bool,
    /// What was seen of the file when it was read to its end: its size and when it had been changed.
    seen: (u64, i64),
    /// When that was seen first.
    pub(super) seen_at: i64,
    /// Since when what is left is the beginning of a record that silence ends; `None` where there is none.
    pub(super) silent_since: Option<i64>,
    /// Whether nothing will be added: a last record needs no end, and then the source is done with.
    pub(super) is_whole: bool,
}

impl<S> Followed<S> {
    /// A source that begins, or goes on, there.
    pub(super) fn new(
        (id, label): (SourceId, Label),
        content: Content,
        conversion: &Arc<Conversion>,
        Resumed { claimed, place, ahead }: Resumed,
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
            claimed,
            passed: place,
            tail: Vec::new(),
            ahead,
            seen: (0, 0),
            seen_at: i64::MAX,
            silent_since: None,
            is_whole: content.is_packed(),
            empty_at: None,
            content,
        };
        followed.tail = vec![0; followed.tail_length()];
        let (from, mut tail) = (followed.tail_start(), std::mem::take(&mut followed.tail));
        // So that a copy of it is known before it is read.
        followed.note_content()?;
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
        room: &mut Room,
        ends: bool,
    ) -> Result<Turn, Broken<T::Error>> {
        let ends = ends || self.is_whole;
        // Before it is read, so that what comes meanwhile is not taken for seen.
        let metadata = self.content.metadata().map_err(Broken::Reading)?;
        if !self.headed {
            self.read_header(&mut room.bytes).map_err(Broken::Reading)?;
        }
        if !self.begin(sink)? {
            return Ok(Turn::Changed);
        }
        let (from, before) = (self.tail_start(), self.tail.len());
        let mut length = before + TURN;
        let Room { bytes: buffer, converted } = room;
        loop {
            if buffer.len() < length {
                buffer.resize(length, 0);
            }
            let read = self.content.fill(from, &mut buffer[..length]).map_err(Broken::Reading)?;
            let bytes = &buffer[..read];
            if bytes.get(..before) != Some(&self.tail[..]) {
                return Ok(Turn::Changed);
            }
            // Nothing was in it when it was looked at.
            let is_all = read < length;
            let used = if self.handle.is_some() {
                self.give((bytes, before), is_all && ends, converted, sink)?
            } else {
                before
            };
            self.tail.clear();
            self.tail.extend_from_slice(&bytes[used.saturating_sub(TAIL)..used]);
            match (is_all, used > before) {
                (true, _) => {
                    self.pass(sink).map_err(Broken::Sink)?;
                    let seen = (metadata.size(), modified(&metadata));
                    if self.seen != seen {
                        (self.seen, self.seen_at) = (seen, sink.now());
                    }
                    return Ok(Turn::AtEnd((read - used) as u64));
                }
                (false, true) => {
                    if sink.is_ending() {
                        self.pass(sink).map_err(Broken::Sink)?;
                    }
                    return Ok(Turn::More);
                }
                // A record that is longer than what was read.
                (false, false) => length += length - before,
            }
        }
    }

    /// Tells the sink of records behind the last entry that became none.
    fn pass<T: Sink<Source = S>>(&mut self, sink: &mut T) -> Result<(), T::Error> {
        let Some(handle) = self.handle.as_ref().filter(|_| self.place > self.claimed.max(self.passed)) else {
            return Ok(());
        };
        sink.pass(handle, (self.claimed..self.place, check(&self.id, &self.tail)))?;
        self.passed = self.place;
        Ok(())
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
        if self.label.beginning > 0 && !self.label.begins(&self.id, &mut self.content)? {
            return Ok(false);
        }
        self.note_content()?;
        Ok(true)
    }

    /// Goes on in this content, which is that of the source as far as it goes.
    pub(super) fn adopt(&mut self, content: Content, node: Node) -> io::Result<()> {
        self.content = content;
        (self.label.device, self.label.inode) = node;
        self.note_content()
    }

    /// Notes as much of the beginning as the content has.
    fn note_content(&mut self) -> io::Result<()> {
        let mut beginning = [0; BEGINNING];
        let read = self.content.fill(0, &mut beginning)?;
        self.label.note(&self.id, &beginning[..read]);
        Ok(())
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
    ///
    /// Records are converted before any of them is appended, some at a time: what is refused is refused before the range of an entry passes it,
    /// so that a sink which keeps refused records makes them durable together.
    fn give<T: Sink<Source = S>>(
        &mut self,
        (bytes, mut used): (&[u8], usize),
        ends: bool,
        converted: &mut Vec<Record>,
        sink: &mut T,
    ) -> Result<usize, Broken<T::Error>> {
        if self.place == 0 && bytes.starts_with(MARK) {
            used = MARK.len();
            self.place = used as u64;
        }
        loop {
            let rest = &bytes[used..];
            let (consumed, record) = match self.framing.next(rest, ends) {
                Next::More => {
                    self.append(bytes, converted, sink)?;
                    return Ok(used);
                }
                Next::Passed { consumed } => {
                    used += consumed;
                    self.place += consumed as u64;
                    continue;
                }
                Next::Record { consumed, content } => {
                    (consumed, Ok(used + content.start..used + content.end))
                }
                Next::Refused { consumed, reason } => (consumed, Err(reason.to_string())),
            };
            let (place, end) = (self.place, self.place + consumed as u64);
            used += consumed;
            self.place = end;
            if self.is_taken(place, end) {
                converted.push(Record { place, end, behind: used, entry: None });
                continue;
            }
            let (made, raw) = match record {
                Ok(record) => (self.converter.convert(&bytes[record.clone()], sink.now()), Some(record)),
                Err(reason) => (Converted::Refused(reason), None),
            };
            match made {
                Converted::Nothing => {}
                Converted::Entry(entry) => {
                    let entry = Some((entry, raw.unwrap_or_default()));
                    converted.push(Record { place, end, behind: used, entry });
                }
                Converted::Refused(reason) => {
                    let at = At { path: &self.label.path, place, unit: Unit::Byte };
                    sink.refuse(at, &reason, raw.map(|raw| &bytes[raw])).map_err(Broken::Sink)?;
                }
            }
            if converted.len() >= TOGETHER {
                self.append(bytes, converted, sink)?;
            }
        }
    }

    /// Appends what was converted, out of `bytes`.
    fn append<T: Sink<Source = S>>(
        &mut self,
        bytes: &[u8],
        converted: &mut Vec<Record>,
        sink: &mut T,
    ) -> Result<(), Broken<T::Error>> {
        let handle = self.handle.as_ref().expect("what has a record has a beginning");
        for Record { place, end, behind, entry } in converted.drain(..) {
            let Some((entry, raw)) = entry else {
                self.claimed = end;
                continue;
            };
            let at = At { path: &self.label.path, place, unit: Unit::Byte };
            let check = check(&self.id, &bytes[behind.saturating_sub(TAIL)..behind]);
            match sink.append(at, &entry, handle, (self.claimed..end, check)).map_err(Broken::Sink)? {
                Ok(()) => self.claimed = end,
                Err(reason) => sink.refuse(at, &reason, Some(&bytes[raw])).map_err(Broken::Sink)?,
            }
        }
        Ok(())
    }

    /// Whether the log has the record from `place` to `end`.
    fn is_taken(&mut self, place: u64, end: u64) -> bool {
        while self.ahead.front().is_some_and(|range| range.end <= place) {
            self.ahead.pop_front();
        }
        self.ahead.front().is_some_and(|range| range.start <= place && end <= range.end)
    }

    /// Where it ends, if it ends where it was read to.
    pub(super) fn end(&self) -> End {
        End { length: self.place, check: check(&self.id, &self.tail) }
    }

    /// What this content is to the source.
    pub(super) fn compare(&self, content: &mut Content) -> io::Result<Same> {
        if !self.label.is_of(&self.id, content)? {
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
}

//! Where frames lie: segments, what is left over between frames, and what is found again behind damage.

use super::{Open, Position, Scan};
use crate::format::frame::{self, Head};
use crate::scan::cursor::Cursor;
use crate::scan::finding::Finding;
use crate::scan::stored_tree::{self, Encoded};
use crate::scan::unreferenced::Unreferenced;
use bulla_proof::commitment::Commitment;
use bulla_proof::tile::FULL_WIDTH;
use bulla_proof::tree;
use bulla_store::Result;

impl Scan<'_> {
    /// Opens the segment that must hold `frame`, unless it is open.
    pub(super) fn seek(&mut self, frame: u64) -> Result<()> {
        loop {
            let index = self.segments.partition_point(|name| name.first <= frame).checked_sub(1);
            let current = self.open.as_ref().map(|open| open.index);
            let Some(index) = index.filter(|&index| Some(index) != current) else { return Ok(()) };
            let name = self.segments[index];
            let Some(cursor) = self.open_segment(name)? else {
                self.segments.remove(index);
                continue;
            };
            let length = cursor.length;
            let next = Open { index, cursor, low: 0, searched: None };
            if self.is_intruder(&next, frame)? {
                self.segments.remove(index);
                if length > 0 {
                    self.unreferenced.push(Unreferenced { name, offset: 0, length });
                }
                continue;
            }
            self.leave(index)?;
            self.open = Some(next);
            return self.skip_copy(frame);
        }
    }

    /// Whether a segment holds nothing that its name says, while another one before it has the frame.
    pub(super) fn is_intruder(&self, next: &Open, frame: u64) -> Result<bool> {
        let here = match &self.open {
            Some(open) => matches!(
                open.cursor.peek(),
                Ok(Some(Ok(head))) if head.commitment.frame == frame && self.is_in_tree(&head)
            ),
            None => false,
        };
        let passed = self.open.as_ref().map_or(0, |open| open.index + 1);
        if !here && passed == next.index {
            return Ok(false);
        }
        let plausible = |cursor: &Cursor| {
            let least = cursor.name.first.max(frame);
            cursor.find(0, |head| head.commitment.frame >= least && self.is_in_tree(head))
        };
        if plausible(&next.cursor)?.is_some() {
            return Ok(false);
        }
        if here {
            return Ok(true);
        }
        for &name in &self.segments[passed..next.index] {
            let other = self.open_segment(name)?;
            if other.as_ref().map(plausible).transpose()?.flatten().is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the tree's files say what a head says, or, where they are of other frames, it is of the same log.
    pub(super) fn is_in_tree(&self, head: &Head) -> bool {
        let frame = head.commitment.frame;
        match (self.chunk.entry(frame), self.chunk.leaf(frame)) {
            (None, None) => head.commitment.log_id == self.log.map_or(self.config.id, |(log, _)| log),
            (entry, leaf) => entry == Some(head.encoded) || leaf == Some(tree::leaf_hash(&head.encoded)),
        }
    }

    /// Closes the current segment; what is left of it, and segments of which nothing counts, no frame refers to.
    pub(super) fn leave(&mut self, index: usize) -> Result<()> {
        let passed = self.open.take().map_or(0, |open| {
            if open.cursor.offset < open.cursor.length {
                let Cursor { name, offset, length, .. } = open.cursor;
                self.unreferenced.push(Unreferenced { name, offset, length: length - offset });
            }
            self.read_to.push((open.cursor.name, open.cursor.offset));
            open.index + 1
        });
        for &name in &self.segments[passed..index] {
            let length = self.length_of(name)?;
            if length > 0 {
                self.unreferenced.push(Unreferenced { name, offset: 0, length });
            }
        }
        Ok(())
    }

    /// Moves in the segment to where a frame was found again; to what is passed no frame refers.
    pub(super) fn pass_to(&mut self, offset: u64) {
        if let Some(open) = &mut self.open {
            let passed = offset.checked_sub(open.cursor.offset).filter(|&length| length > 0);
            let (name, from) = (open.cursor.name, open.cursor.offset);
            self.unreferenced.extend(passed.map(|length| Unreferenced { name, offset: from, length }));
            open.cursor.offset = offset;
        }
    }

    /// Passes a frame of which the commitment is none, up to `found`, where the next sound one is that does not follow it by its length,
    /// or else as far as its header says: its bytes belong to it, and to nothing that is not signed.
    pub(super) fn pass_malformed(&mut self, found: Option<u64>) -> Result<()> {
        let Some(open) = &mut self.open else { return Ok(()) };
        if let Some(end) = found.map_or_else(|| open.cursor.end_by_header(), |end| Ok(Some(end)))? {
            open.low = open.cursor.offset + 1;
            open.cursor.offset = end;
        }
        Ok(())
    }

    /// Tells that the frame that was passed last is shorter than it says, where the next one begins at `offset`, within it. Of its body
    /// the digest tells that; of its seal nothing else does whoever has no key for it.
    pub(super) fn tell_overlap(&mut self, offset: u64) {
        let end = self.open.as_ref().map_or(0, |open| open.cursor.offset);
        let Some(missing) = end.checked_sub(offset).filter(|&missing| missing > 0) else { return };
        if let Some(last) = self.last.as_mut().filter(|last| !last.told) {
            last.told = true;
            let detail = format!("the next frame begins {missing} bytes before its end: they are missing");
            let finding = Finding { detail, ..last.finding.clone() };
            self.add(finding);
        }
    }

    /// What stands where the next frame should be: a head, something unsound (and why), or nothing at all.
    pub(super) fn read_head(&self) -> Result<Result<Option<Head>, String>> {
        let Some(open) = &self.open else { return Ok(Ok(None)) };
        Ok(open.cursor.peek()?.transpose().map_err(|error| error.to_string()))
    }

    /// Where a frame is that is not soundly where it should be.
    pub(super) fn place(&mut self, frame: u64, settled: Option<&Encoded>) -> Result<Position> {
        let found = self.find_sound(frame)?;
        let Some(open) = &self.open else { return Ok(Position::Here) };
        let Some(found) = found else {
            // It may lie whole on a path that is not there, and what is here be left over by a crash: the event that says so lies there, too.
            return Ok(match self.not_there.is_empty() {
                true => Position::Here,
                false => Position::Gone(open.cursor.length),
            });
        };
        if found.commitment.frame == frame {
            let same = settled.is_none_or(|settled| *settled == found.encoded || self.is_in_tree(&found));
            return Ok(if same { Position::Moved(Box::new(found)) } else { Position::Here });
        }
        let Some(settled) = settled else { return Ok(Position::Here) };
        // In place where it and the frames after it come to just the bytes up to the next sound one.
        let length =
            |encoded: &Encoded| Commitment::decode(encoded).ok().map(|one| frame::frame_length(&one));
        let mut others = (frame + 1..found.commitment.frame).map(|other| self.chunk.entry(other));
        let span = others.try_fold(length(settled), |span, other| {
            other.map(|other| span.zip(length(&other)).and_then(|(a, b)| a.checked_add(b)))
        });
        let between = found.offset.checked_sub(open.cursor.offset);
        let fits = match span {
            Some(Some(span)) => Some(span) == between,
            _ => length(settled).zip(between).is_some_and(|(length, between)| length <= between),
        };
        Ok(if fits { Position::Here } else { Position::Gone(found.offset) })
    }

    /// The next sound head in the segment, from within the frame before on, that is of `frame` or a later one and that the tree knows.
    pub(super) fn find_sound(&mut self, frame: u64) -> Result<Option<Head>> {
        let Some(open) = &self.open else { return Ok(None) };
        let mut from = open.low;
        match &open.searched {
            Some((searched, None)) if *searched <= from => return Ok(None),
            Some((searched, Some(head))) if *searched <= from && head.offset >= from => {
                if head.commitment.frame >= frame {
                    return Ok(Some(head.clone()));
                }
                from = head.offset + 1;
            }
            _ => {}
        }
        let length = open.cursor.length;
        let wanted = |head: &Head| {
            let number = head.commitment.frame;
            (frame..self.size).contains(&number) && head.end() <= length && self.is_in_tree(head)
        };
        let found = open.cursor.find(from, wanted)?.map(|offset| open.cursor.peek_at(offset)).transpose()?;
        let head = found.flatten().and_then(Result::ok);
        self.open.iter_mut().for_each(|open| open.searched = Some((open.low, head.clone())));
        Ok(head)
    }

    /// The first frame after `frame` of which a segment or a bundle may tell something.
    pub(super) fn next_known(&mut self, frame: u64, found: Option<&Head>) -> Result<u64> {
        if self.bundles.is_none() {
            self.bundles = Some(stored_tree::bundles(self.store)?);
        }
        let bundles = self.bundles.as_deref().unwrap_or_default();
        let width = u64::from(FULL_WIDTH);
        let in_chunk = self.chunk.entry(frame + 1).map(|_| frame + 1);
        let bundle = bundles.get(bundles.partition_point(|index| *index <= frame / width));
        let bundle = bundle.map(|index| index.saturating_mul(width));
        let segment = self.segments.get(self.segments.partition_point(|name| name.first <= frame));
        let segment = segment.map(|name| name.first);
        let head = found.map(|head| head.commitment.frame);
        Ok([in_chunk, bundle, segment, head].into_iter().flatten().fold(self.size, u64::min))
    }
}

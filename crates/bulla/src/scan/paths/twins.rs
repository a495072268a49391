//! Segments of one name that lie on several paths.
//!
//! A writer gives no name twice, so one of them is a copy. Copies that are alike are one segment; so are those of which the longest begins
//! with all of each other one, since a copy may have been made before the segment was written on: the longest is read. Where they differ
//! otherwise, somebody changed one, or put it there to hide another: that is told, and nobody is answered from whichever comes first. Of
//! each frame that one counts which the tree knows, whose body has the digest in its commitment.
//!
//! Invariants:
//! - whoever reads, and whoever writes, goes by the longest: what is cut off from a copy takes nothing away that another one has;
//! - a frame that is whole on any path is read, as long as the segment on the other path that has most of the others leaves its place free;
//! - no body is hashed whose head the tree does not know, and none twice: a file that somebody made costs no more than the log.

use super::LogPaths;
use crate::format::frame::{self, Head, ReadError};
use crate::format::segment::{self, SegmentName};
use crate::scan::stored_tree::Chunk;
use bulla_proof::commitment::Commitment;
use bulla_proof::tree;
use bulla_store::{Store, StoreFile};
use std::collections::{BTreeMap, HashMap};
use std::io::{self, IoSlice};
use std::ops::Range;
use std::sync::{Arc, PoisonError};

/// So much of two files is compared at a time, in bytes.
const PIECE: usize = 256 << 10;

/// What was found of segments of one name, by the name; each with where they lay, and the lengths that they had.
pub(super) type Judged = HashMap<String, (Vec<(String, u64)>, Arc<Choice>)>;

/// What is read of several segments of one name.
#[derive(Debug)]
pub(super) struct Choice {
    /// The one that has most: the longest, where that begins with all of each other one.
    main: usize,
    /// What another one has that this one lacks, by where it begins: where it ends, and which has it.
    pieces: BTreeMap<u64, (u64, usize)>,
    /// The first two of which neither is the beginning of the other.
    differing: Option<(usize, usize)>,
}

/// A segment on one path.
struct Twin {
    store: Arc<dyn Store>,
    file: Box<dyn StoreFile>,
    length: u64,
}

/// What of a segment stands.
#[derive(Default)]
struct Standing {
    /// The frames that the tree knows, whole, in order.
    known: Vec<Range<u64>>,
    /// Bytes in these.
    bytes: u64,
    /// Bytes in frames behind those that the tree has, by their heads.
    behind: u64,
}

impl LogPaths {
    /// Opens a segment for reading.
    pub(super) fn open_segment(&self, path: &str) -> io::Result<Box<dyn StoreFile>> {
        let mut twins = self.twins(path)?;
        if twins.len() == 1 {
            return Ok(twins.remove(0).file);
        }
        let choice = self.choose(path, &twins)?;
        Ok(Box::new(Chosen { choice, files: twins.into_iter().map(|twin| twin.file).collect() }))
    }

    /// The longest of the segments of one name, in a log that is written: whoever writes has refused one of which another is no beginning.
    pub(super) fn longest_segment(&self, path: &str) -> io::Result<(Arc<dyn Store>, Box<dyn StoreFile>)> {
        let mut twins = self.twins(path)?;
        let Twin { store, file, .. } = twins.swap_remove(longest(&twins));
        Ok((store, file))
    }

    /// The segments of one name: one at least, and of several none without a byte, which is no segment.
    fn twins(&self, path: &str) -> io::Result<Vec<Twin>> {
        let (mut twins, mut missing) = (Vec::new(), None);
        for (store, failed) in self.readable_for(path) {
            match store.open(path).and_then(|file| Ok((file.length()?, file))) {
                Ok((length, file)) => twins.push(Twin { store, file, length }),
                Err(error) if failed || is_not_there(&error) => {
                    if missing.is_none() || error.kind() != io::ErrorKind::NotFound {
                        missing = Some(error);
                    }
                }
                // It may be the one that has most.
                Err(error) => return Err(error),
            }
        }
        if twins.iter().any(|twin| twin.length > 0) {
            twins.retain(|twin| twin.length > 0);
        } else {
            twins.truncate(1);
        }
        match twins.is_empty() {
            true => Err(missing.unwrap_or_else(|| io::ErrorKind::NotFound.into())),
            false => Ok(twins),
        }
    }

    /// What is read of segments of one name.
    fn choose(&self, path: &str, twins: &[Twin]) -> io::Result<Arc<Choice>> {
        let found = twins.iter().map(|twin| (twin.store.describe(path), twin.length)).collect::<Vec<_>>();
        let judged = self.judged.lock().unwrap_or_else(PoisonError::into_inner).get(path).cloned();
        if let Some((_, choice)) = judged.filter(|(before, choice)| choice.holds(before, &found)) {
            return Ok(choice);
        }
        let mut choice = Choice { main: longest(twins), pieces: BTreeMap::new(), differing: None };
        for other in (0..twins.len()).filter(|&other| other != choice.main) {
            if !begins_with(&twins[choice.main], &twins[other])? {
                choice.differing = Some((choice.main.min(other), choice.main.max(other)));
                break;
            }
        }
        if choice.differing.is_some() {
            self.compose(path, twins, &mut choice)?;
        }
        let choice = Arc::new(choice);
        let mut judged = self.judged.lock().unwrap_or_else(PoisonError::into_inner);
        judged.insert(path.to_owned(), (found, choice.clone()));
        Ok(choice)
    }

    /// Forgets what was found of segments that differ, which somebody may have mended.
    pub(super) fn judge_again(&self) {
        let mut judged = self.judged.lock().unwrap_or_else(PoisonError::into_inner);
        judged.retain(|_, (_, choice)| choice.differing.is_none());
    }

    /// Puts together what stands of each.
    fn compose(&self, path: &str, twins: &[Twin], choice: &mut Choice) -> io::Result<()> {
        let first = name_of(path).map_or(0, |name| name.first);
        let size = self.published_frames().unwrap_or(0);
        let standing = twins.iter().map(|twin| self.standing(twin, first, size));
        let standing = standing.collect::<io::Result<Vec<_>>>()?;
        // Of those that have as much, the one on the path that comes first.
        let best = (0..twins.len()).rev().max_by_key(|&at| (standing[at].bytes, standing[at].behind));
        choice.main = best.unwrap_or(0);
        let mut taken =
            standing[choice.main].known.iter().map(|at| (at.start, at.end)).collect::<BTreeMap<_, _>>();
        for other in (0..twins.len()).filter(|&other| other != choice.main) {
            for Range { start, end } in standing[other].known.iter().cloned() {
                let is_free = taken.range(..end).next_back().is_none_or(|(_, taken)| *taken <= start);
                if is_free {
                    taken.insert(start, end);
                    choice.pieces.insert(start, (end, other));
                }
            }
        }
        Ok(())
    }

    /// What of a segment stands whose first frame should be `first`, of a log whose tree has `size` frames.
    fn standing(&self, twin: &Twin, first: u64, size: u64) -> io::Result<Standing> {
        let mut standing = Standing::default();
        let (mut offset, mut chunk, mut least) = (0, Chunk::default(), 0);
        let is_ours = |head: &Head| head.commitment.log_id == self.log && head.end() <= twin.length;
        while offset < twin.length {
            let head = match frame::read_head(&*twin.file, offset, twin.length) {
                Ok(head) if is_ours(&head) => head,
                Err(ReadError::Io(error)) => return Err(error),
                Ok(_) | Err(ReadError::Frame(_)) => {
                    match frame::find(&*twin.file, offset + 1, twin.length, is_ours)? {
                        Some(found) => offset = found,
                        None => break,
                    }
                    continue;
                }
            };
            let number = head.commitment.frame;
            if number >= size {
                standing.behind += head.length();
            } else if number >= least {
                if !chunk.covers(number) {
                    chunk = Chunk::load(self, number, size)
                        .map_err(|error| io::Error::other(error.to_string()))?;
                }
                let is_known = chunk.entry(number) == Some(head.encoded)
                    || chunk.leaf(number) == Some(tree::leaf_hash(&head.encoded));
                if !is_known {
                    offset += 1;
                    continue;
                }
                let (body, length) = (head.body_offset(), head.commitment.body_length);
                if frame::digest(&*twin.file, body, length)? == head.commitment.body_digest {
                    standing.bytes += head.length();
                    standing.known.push(head.offset..head.end());
                }
                // Before the first one a copy of the epoch's frame may stand.
                least = (number + 1).max(if number < first { first } else { 0 });
            }
            offset = head.end();
        }
        Ok(standing)
    }

    /// Of each segment that several paths have, where neither is the beginning of the other, a sentence.
    pub(super) fn differing_segments(&self) -> Vec<String> {
        let told = |name: &SegmentName| {
            let path = name.path();
            let twins = self.twins(&path).ok().filter(|twins| twins.len() > 1)?;
            let (one, other) = self.choose(&path, &twins).ok()?.differing?;
            Some(self.differ(&path, &twins[one], &twins[other]))
        };
        // A directory that is not listed is told of by whoever reads the segments.
        self.named_twice().unwrap_or_default().iter().filter_map(told).collect()
    }

    /// The first segment of which the same is to be said to a writer, who reads what the checkpoint does not cover, and of the others only
    /// those that differ in length.
    ///
    /// # Errors
    /// Where a path does not list its segments.
    pub(super) fn differing_segment_to_write(&self) -> io::Result<Option<String>> {
        let size = self.published_frames().unwrap_or(0);
        let twice = self.named_twice()?;
        // What follows the checkpoint lies behind this.
        let read = twice.iter().map(|name| name.first).filter(|first| *first <= size).max().unwrap_or(0);
        Ok(twice.into_iter().find_map(|name| {
            let path = name.path();
            let twins = self.twins(&path).ok()?;
            let main = longest(&twins);
            let differs = |other: &usize| {
                let is_read = name.first >= read || twins[*other].length != twins[main].length;
                is_read && !begins_with(&twins[main], &twins[*other]).unwrap_or(true)
            };
            let other = (0..twins.len()).filter(|other| *other != main).find(differs)?;
            Some(self.differ(&path, &twins[main], &twins[other]))
        }))
    }

    /// A sentence on two segments of one name of which neither is the beginning of the other.
    fn differ(&self, path: &str, one: &Twin, other: &Twin) -> String {
        let size = self.published_frames().unwrap_or(0);
        let is_without = |twin: &Twin| self.is_without_first_frame(path, twin, size).unwrap_or(false);
        let which = match (is_without(one), is_without(other)) {
            (true, false) => Some(one),
            (false, true) => Some(other),
            _ => None,
        };
        let told = which.map_or_else(String::new, |twin| {
            let name = twin.store.describe(path);
            format!(
                ". In the place of the first frame that the tree has there {name} has another one, or none"
            )
        });
        let [one, other] = [one, other].map(|twin| twin.store.describe(path));
        format!(
            "{one} and {other} have one name, and differ: neither is the beginning of the other, so one of them was changed, or put there. \
             What the tree knows is read from either{told}"
        )
    }

    /// Whether a segment has, where a tree of `size` frames has its first one, another one, whole, or nothing; `None` where that cannot be told.
    fn is_without_first_frame(&self, path: &str, twin: &Twin, size: u64) -> Option<bool> {
        let first = name_of(path)?.first;
        let head_at = |offset| frame::read_head(&*twin.file, offset, twin.length).ok();
        let mut head = head_at(0)?;
        if head.commitment.frame < first {
            // The copy of an epoch's frame.
            if head.end() == twin.length {
                return Some(first < size);
            }
            head = head_at(head.end())?;
        }
        let Commitment { frame, log_id, body_length, body_digest, .. } = head.commitment;
        if (frame, log_id) != (first, self.log) || frame >= size {
            return None;
        }
        let of_tree = Chunk::load(self, frame, size).ok()?.agreed(frame)?;
        let is_whole = frame::digest(&*twin.file, head.body_offset(), body_length).ok()? == body_digest;
        Some(is_whole && head.encoded != of_tree)
    }

    /// The names of segments that several paths have, in order.
    fn named_twice(&self) -> io::Result<Vec<SegmentName>> {
        let mut counts = BTreeMap::new();
        for (store, _) in self.readable() {
            let items = match store.list(segment::DIRECTORY) {
                Err(error) if is_not_there(&error) => Vec::new(),
                listed => listed.map_err(|error| {
                    let why = format!("{} cannot be listed: {error}", store.describe(segment::DIRECTORY));
                    io::Error::new(error.kind(), why)
                })?,
            };
            for name in items.iter().filter_map(|item| SegmentName::parse(&item.name)) {
                *counts.entry(name).or_insert(0) += 1;
            }
        }
        Ok(counts.into_iter().filter(|(_, count)| *count > 1).map(|(name, _)| name).collect())
    }
}

/// The name of the segment at a path in the log's directory, if it is one.
pub(super) fn name_of(path: &str) -> Option<SegmentName> {
    SegmentName::parse(path.strip_prefix(segment::DIRECTORY)?.strip_prefix('/')?)
}

/// Whether there is no file, or something else than a file in its place, or above it: whoever put that there could as well have removed it.
pub(super) fn is_not_there(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::InvalidInput | io::ErrorKind::NotADirectory
    )
}

/// The longest of several, and of those that are as long the first.
fn longest(twins: &[Twin]) -> usize {
    (0..twins.len()).rev().max_by_key(|&at| twins[at].length).unwrap_or(0)
}

/// Whether one begins with all bytes of another, which is no longer.
fn begins_with(one: &Twin, other: &Twin) -> io::Result<bool> {
    let (mut left, mut right) = (vec![0; PIECE], vec![0; PIECE]);
    let mut offset = 0;
    while offset < other.length {
        let piece = usize::try_from(other.length - offset).unwrap_or(PIECE).min(PIECE);
        one.file.read_exact_at(&mut left[..piece], offset)?;
        other.file.read_exact_at(&mut right[..piece], offset)?;
        if left[..piece] != right[..piece] {
            return Ok(false);
        }
        offset += piece as u64;
    }
    Ok(true)
}

impl Choice {
    /// Whether it is the choice yet, of segments that have these lengths by now: the longest may have been written on meanwhile, in which
    /// case the others are its beginnings as before.
    fn holds(&self, before: &[(String, u64)], now: &[(String, u64)]) -> bool {
        let holds = |at: usize| {
            let ((place, length), (place_now, length_now)) = (&before[at], &now[at]);
            let has_grown = at == self.main && self.differing.is_none() && length < length_now;
            place == place_now && (length == length_now || has_grown)
        };
        before.len() == now.len() && (0..now.len()).all(holds)
    }
}

/// A segment as it is read of several files of one name.
#[derive(Debug)]
struct Chosen {
    choice: Arc<Choice>,
    files: Vec<Box<dyn StoreFile>>,
}

impl Chosen {
    fn main(&self) -> &dyn StoreFile {
        &*self.files[self.choice.main]
    }
}

impl StoreFile for Chosen {
    fn length(&self) -> io::Result<u64> {
        let last = self.choice.pieces.last_key_value().map_or(0, |(_, (end, _))| *end);
        Ok(self.main().length()?.max(last))
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let pieces = &self.choice.pieces;
        let within = pieces.range(..=offset).next_back().filter(|(_, (end, _))| offset < *end);
        let (file, end) = match within {
            Some((_, (end, which))) => (&*self.files[*which], Some(*end)),
            None => (self.main(), pieces.range(offset..).next().map(|(start, _)| *start)),
        };
        let most = end.map_or(buffer.len(), |end| {
            usize::try_from(end - offset).unwrap_or(usize::MAX).min(buffer.len())
        });
        let read = file.read_at(&mut buffer[..most], offset)?;
        if read == 0 && within.is_none() && end.is_some() {
            // It ends before what another one has further on.
            buffer[..most].fill(0);
            return Ok(most);
        }
        Ok(read)
    }

    fn write_at(&self, _buffers: &mut [IoSlice<'_>], _offset: u64) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn sync(&self) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn set_length(&self, _length: u64) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn next_data(&self, offset: u64) -> io::Result<u64> {
        if self.choice.pieces.is_empty() { self.main().next_data(offset) } else { Ok(offset) }
    }

    fn next_hole(&self, offset: u64) -> io::Result<u64> {
        if self.choice.pieces.is_empty() {
            self.main().next_hole(offset)
        } else {
            Ok(self.length()?.max(offset))
        }
    }
}

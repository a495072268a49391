//! What recovery writes: the frames that it adopts, and the events that tell of the bytes which count for nothing.
//!
//! Invariants:
//! - no frame goes: what is adopted gets a new name, or takes that of a segment which holds nothing else, of those that it has byte for byte;
//! - an event counts the frames in their old place that are in the log, whichever recovery wrote them anew: one that was cut short
//!   has told nobody of those that it did.

use super::survey::{Scanned, is_sound};
use crate::format::event::Event;
use crate::format::frame::{self, Head};
use crate::format::segment::{self, AsideName, SegmentName};
use crate::scan::cursor::Cursor;
use crate::write::commit::free_name;
use bulla_store::{Error, Paths, Result, Store, StoreFile};
use std::collections::HashSet;
use std::io::{self, IoSlice};

/// The most bytes behind the last frame of a segment of which the digest is told: twice the longest frame. Of more an event
/// tells the place alone, so that nobody has to read, and no medium to hold, what somebody made a file long by.
const MOST_KEPT: u64 = 1 << 30;

/// Writes what is adopted anew and durably, and tells of every byte that counts for nothing but those that events have `explained`.
pub(super) fn rewrite(
    log: &dyn Store,
    scanned: &[Scanned],
    next: u64,
    explained: &[(String, u64)],
) -> Result<Vec<Event>> {
    let mut events = Vec::new();
    for (index, segment) in scanned.iter().enumerate() {
        let failed =
            |error| Error::io(format!("recovering {}", log.describe(&segment.cursor.name.path())), error);
        // A segment of which no frame counts any more counts for nothing from its beginning.
        let offset = segment.kept;
        if let Some(first) = segment.above.first() {
            let Cursor { name, file, length, .. } = &segment.cursor;
            if may_be_replaced(log, segment, explained) {
                write_copy((log, *name), &**file, [(0, *length)]).map_err(failed)?;
                continue;
            }
            let name = free_name(log, first.commitment.frame).map_err(failed)?;
            let frames = segment.above.iter().map(|head| (head.offset, head.length()));
            write_copy((log, name), &**file, segment.epoch.into_iter().chain(frames)).map_err(failed)?;
        }
        if segment.cursor.length == offset {
            continue;
        }
        let name = segment.cursor.name.to_string();
        if explained.iter().any(|(segment, at)| *segment == name && *at == offset) {
            continue;
        }
        let later = scanned.get(index + 1).map_or(next, |following| following.cursor.name.first);
        let (adopted, end) = adopted(scanned, segment, later)?;
        if offset == 0 && end == segment.cursor.length && adopted > 0 {
            let reason = "recovering: all of it was written again elsewhere".to_owned();
            events.push(Event::Abandoned { segment: name, next_frame: later, offset, reason });
            continue;
        }
        let next_frame = segment.above.first().map_or(later, |head| head.commitment.frame);
        let length = segment.cursor.length - offset;
        let torn = segment.cursor.length - end;
        if torn > MOST_KEPT {
            let reason = format!(
                "recovering: {torn} bytes that are no frames, more than the {MOST_KEPT} that are looked into"
            );
            events.push(Event::Abandoned { segment: name, next_frame, offset, reason });
            continue;
        }
        events.push(match keep(log, segment, offset) {
            Ok(sha256) => Event::Recovered { segment: name, next_frame, offset, length, sha256, adopted },
            Err(error) => {
                let reason = format!("recovering {length} bytes: {error}");
                Event::Abandoned { segment: name, next_frame, offset, reason }
            }
        });
    }
    Ok(events)
}

/// Gives a segment that nothing leads to any more a name that is no segment's, on the path on which it lies, in front of frame `next`. Nothing in it was
/// acknowledged: see [`Engine`](crate::write::engine::Engine). It needs no room, so a full disk takes it.
pub(super) fn set_aside(path: &dyn Store, segment: SegmentName, next: u64) -> Result<()> {
    let failed = |error| Error::io(format!("setting {} aside", path.describe(&segment.path())), error);
    let items = path.list(segment::DIRECTORY).map_err(failed)?;
    let taken = items.into_iter().map(|item| item.name).collect::<HashSet<_>>();
    let mut names = (0..).map(|number| AsideName { segment, next, number });
    let free = names.find(|name| !taken.contains(&name.to_string())).expect("a directory has fewer names");
    let renamed = path.rename(&segment.path(), &free.path());
    renamed.and_then(|()| path.sync_directory(segment::DIRECTORY)).map_err(failed)
}

/// What tells of the segments that were set aside by this opening, or by one that was cut short, and that no event tells of yet: what is `signed` was
/// told of before.
pub(super) fn tell_of_aside(
    log: &dyn Store,
    (signed, next): (u64, u64),
    explained: &[(String, u64)],
) -> Result<Vec<Event>> {
    let is_untold = |aside: &AsideName| {
        let name = aside.to_string();
        (signed..=next).contains(&aside.next) && explained.iter().all(|(segment, _)| *segment != name)
    };
    let tell = |aside: AsideName| {
        let segment = aside.segment;
        let reason =
            format!("recovering: it was {segment}, and frames before that were lost with a path of the log");
        Event::Abandoned { segment: aside.to_string(), next_frame: next, offset: 0, reason }
    };
    Ok(segment::list_aside(log)?.into_iter().filter(is_untold).map(tell).collect())
}

/// How many frames above the checkpoint a segment holds that are in the log, and where the last of them ends. Some may be read from
/// the segment that begins with frame `later`: a recovery that was cut short had written them there.
fn adopted(scanned: &[Scanned], segment: &Scanned, later: u64) -> Result<(u64, u64)> {
    let mut cursor = segment.cursor.clone();
    let (mut adopted, mut frame) = (segment.above.len() as u64, later);
    while let Some(Ok(head)) = cursor.peek()? {
        let copy = cursor.is_copy(&head);
        if !copy && !is_read(scanned, frame, (&cursor, &head))? || !is_sound(&cursor, &head)? {
            break;
        }
        cursor.pass(&head);
        if !copy {
            (adopted, frame) = (adopted + 1, frame + 1);
        }
    }
    Ok((adopted, cursor.offset))
}

/// Whether it is `frame`, byte for byte as it is read above the checkpoint; its body has the digest that it tells.
fn is_read(scanned: &[Scanned], frame: u64, (cursor, head): (&Cursor, &Head)) -> Result<bool> {
    let found = scanned.iter().find_map(|segment| {
        let index = frame.checked_sub(segment.above.first()?.commitment.frame)?;
        segment.above.get(usize::try_from(index).ok()?).map(|found| (&segment.cursor, found))
    });
    match found {
        Some((other, found)) if found.encoded == head.encoded && found.group == head.group => {
            Ok(other.seal(found.end())? == cursor.seal(head.end())?)
        }
        _ => Ok(false),
    }
}

/// Makes what a segment holds from `offset` on durable, as it is, and gives its SHA-256.
///
/// It may lie in the page cache alone, and after a failed sync no later one writes it (see the module): so it is written
/// again, over itself. Otherwise a power cut could change bytes whose digest an event tells. Where nobody ever wrote there are
/// zeros, whatever happens, and none are written: a file that somebody made long by a hole does not fill the medium.
fn keep(log: &dyn Store, segment: &Scanned, offset: u64) -> io::Result<String> {
    let file = log.open_write(&segment.cursor.name.path())?;
    let sha256 = frame::digest_each(&*file, offset, segment.cursor.length - offset, |at, piece| {
        file.write_at(&mut [IoSlice::new(piece)], at)
    })?;
    file.sync()?;
    Ok(sha256.to_string())
}

/// Whether the copy of a segment may take its name: every byte of it is adopted, it lies where what is adopted is written, no event says that some
/// of it counts for nothing, and no path is lost, on which a copy may lie by a later name: found again, that would take its place. Whichever of the two a
/// power cut leaves there has all that was acknowledged, and a recovery that is cut short again and again, on one path, leaves one copy.
fn may_be_replaced(log: &dyn Store, segment: &Scanned, explained: &[(String, u64)]) -> bool {
    let Cursor { name, length, offset, .. } = &segment.cursor;
    let is_safe_here = |paths: &dyn Paths| paths.is_in_use(&name.path()) && !paths.has_lost_one();
    let is_told = || {
        let name = name.to_string();
        explained.iter().any(|(segment, from)| *segment == name && from < length)
    };
    segment.kept == 0 && offset == length && log.paths().is_none_or(is_safe_here) && !is_told()
}

/// Copies pieces of a segment, by offset and length, into one that gets its name only once it is durable.
fn write_copy(
    (log, name): (&dyn Store, SegmentName),
    from: &dyn StoreFile,
    pieces: impl IntoIterator<Item = (u64, u64)>,
) -> io::Result<()> {
    let path = name.path();
    let temporary = format!("{path}.tmp");
    let file = log.create(&temporary)?;
    let mut end = 0;
    for (offset, length) in pieces {
        let mut copied = 0;
        while copied < length {
            let mut piece = vec![0; usize::try_from(length - copied).unwrap_or(usize::MAX).min(1 << 20)];
            from.read_exact_at(&mut piece, offset + copied)?;
            file.write_at(&mut [IoSlice::new(&piece)], end + copied)?;
            copied += piece.len() as u64;
        }
        end += length;
    }
    file.sync()?;
    log.rename(&temporary, &path)?;
    log.sync_directory(segment::DIRECTORY)
}

//! What lies on a path that was lost and is found, and is named again.
//!
//! Frames that nobody had signed may have lain there when it was lost, and the log has gone on since with other frames of these numbers. A
//! segment counts up to where the next one begins, so those would end what the log has, and stand in the way of it; and what follows signed frames in a
//! segment would be bytes that nothing explains. They are set aside on that path, for people.
//!
//! Invariants:
//! - nothing is touched that the path's own checkpoint covers, nor a frame of the tree that no other path has;
//! - no segment is touched but from a frame on in whose place the log has another one, on another path: what may still be taken up stays, and so does
//!   a damaged segment;
//! - nothing is cut off a segment of which an event explains what is behind its frames: that explains those bytes, and no others;
//! - no frame is removed that does not lie elsewhere on that path, durably. Of the tree there, what may be over frames that are set aside is removed,
//!   but for what the path's own checkpoint covers: whoever has the frames can make it anew;
//! - what is set aside can be cut short anywhere and begun again: what is further behind goes first.

use super::losing::Named;
use crate::format::config::LogConfig;
use crate::format::event::Event;
use crate::format::files;
use crate::format::path::PathId;
use crate::format::segment::{self, SegmentName};
use crate::keys::paths::{Fate, KnownPath};
use crate::scan::checkpoint::read_note;
use crate::scan::cursor::Cursor;
use crate::scan::events::each_event_but;
use crate::scan::lost::LostFrames;
use crate::scan::manifest::Manifest;
use crate::scan::paths::join_paths;
use crate::scan::snapshot::Snapshot;
use crate::scan::stored_tree;
use bulla_crypto::environment::Environment;
use bulla_proof::tile::{self, TilePath};
use bulla_store::{Error, ErrorKind, Result, Store};
use std::collections::BTreeSet;
use std::io::{self, IoSlice};
use std::path::PathBuf;
use std::sync::Arc;

/// So many bytes are copied at a time.
const PIECE: usize = 256 << 10;

/// Sets aside what the log has gone on without on each of its paths, its `own_directory` among them, that is named again after it was lost, or that
/// the key directory does not know; and says so.
///
/// # Errors
/// `Locked` where somebody has such a path locked; `Unavailable` where a file cannot be read, or does not get another name.
pub(super) fn set_aside_what_is_superseded(
    (own_directory, own): (&Arc<dyn Store>, PathId),
    named: &[Named<'_>],
    remembered: &[KnownPath],
    config: &LogConfig,
    environment: &Environment,
) -> Result<()> {
    let fate = |id: PathId| remembered.iter().find(|known| known.id == id).map(|known| known.fate);
    // The log's own directory is not noted before it was written to.
    let own_is_found = fate(own) == Some(Fate::Lost);
    let is_found = |named: &Named<'_>| named.id.is_some_and(|id| matches!(fate(id), None | Some(Fate::Lost)));
    let of_own = own_is_found.then_some(own_directory);
    let found =
        of_own.into_iter().chain(named.iter().filter(|named| is_found(named)).map(|named| &named.store));
    let found = found.cloned().collect::<Vec<_>>();
    // What the log is without them.
    let rest = named.iter().filter(|named| !is_found(named));
    let mut also = rest.clone().map(|named| named.path.to_owned()).collect::<Vec<PathBuf>>();
    let first = match own_is_found {
        false => Some(own_directory.clone()),
        true => rest.map(|named| named.store.clone()).next(),
    };
    let Some(first) = first.filter(|_| !found.is_empty()) else { return Ok(()) };
    if own_is_found {
        also.remove(0);
    }
    let rest =
        join_paths(first, None, &also, environment).and_then(Snapshot::of).and_then(Manifest::load_to_open);
    let rest = match rest {
        // What is wrong with it, whoever reads or opens it is told.
        Err(error) if error.kind() == ErrorKind::Tampered => return Ok(()),
        rest => rest?,
    };
    for path in found {
        set_aside_on(&*path, &rest, config, environment)?;
    }
    Ok(())
}

/// The same on one path.
fn set_aside_on(
    path: &dyn Store,
    rest: &Manifest,
    config: &LogConfig,
    environment: &Environment,
) -> Result<()> {
    let covered = match read_note(path)?.map(|note| config.own_keys().open(&note)) {
        Some(Ok(checkpoint)) => checkpoint.size,
        // It is no path of this log, which is told elsewhere.
        Some(Err(_)) => return Ok(()),
        None => 0,
    };
    let (before, behind) =
        segment::list(path)?.0.into_iter().partition::<Vec<_>, _>(|name| name.first < covered);
    let missing = rest.missing()?;
    let end = match before.last() {
        Some(name) if !is_explained(*name, rest, &missing)? => {
            superseded_end(path, *name, (covered, rest), &missing)?
        }
        _ => None,
    };
    if end.is_none() && behind.iter().all(|name| name.first >= rest.size()) {
        return Ok(());
    }
    let _lock = path.lock(files::LOCK).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => Error::new(
            ErrorKind::Locked,
            format!("{} is locked: another process has that path open", path.describe(files::LOCK)),
        ),
        _ => Error::io(format!("locking {}", path.describe(files::LOCK)), error),
    })?;
    let tell = |from: &str, to: &str| {
        let told = format!(
            "{from} is {} now, and counts for nothing: nobody had signed what lies in it when the path was lost, and the log has gone on with \
             other frames of these numbers",
            path.describe(to)
        );
        environment.path_replaced.iter().for_each(|tell| tell(&told));
    };
    let failed = |name: SegmentName| {
        let what = format!("setting {} aside", path.describe(&name.path()));
        move |error| Error::io(what, error)
    };
    let mut superseded = Vec::new();
    for name in behind {
        // Whatever is written after a frame that came to nothing comes to nothing.
        let is_behind_one = end.is_some() || !superseded.is_empty();
        if is_superseded(path, name, rest, &missing, is_behind_one)? {
            superseded.push(name);
        }
    }
    if end.is_some() || !superseded.is_empty() {
        remove_of_another_tree(path, covered, rest)?;
    }
    for name in superseded.into_iter().rev() {
        let aside = move_aside(path, name).map_err(failed(name))?;
        tell(&path.describe(&name.path()), &aside);
    }
    if let Some((name, offset)) = before.last().copied().zip(end) {
        let aside = cut_off(path, name, offset).map_err(failed(name))?;
        tell(&format!("{} from byte {offset} on", path.describe(&name.path())), &aside);
    }
    Ok(())
}

/// Removes, durably, what a path has of a tree with frames that came to nothing, beyond the `covered` ones of its own checkpoint: what is partial,
/// and what is full, unless the log has the same elsewhere.
fn remove_of_another_tree(path: &dyn Store, covered: u64, rest: &Manifest) -> Result<()> {
    let mut directories = BTreeSet::new();
    for tile in stored_tree::beyond(path, covered)? {
        let log = &*rest.snapshot.store;
        let elsewhere = if is_full(&tile) { stored_tree::read(log, &tile)? } else { None };
        if elsewhere.is_some() && stored_tree::read(path, &tile)? == elsewhere {
            continue;
        }
        let removed = path.remove(&tile);
        removed.map_err(|error| Error::io(format!("removing {}", path.describe(&tile)), error))?;
        directories.insert(bulla_store::path::parent(&tile).to_owned());
    }
    for directory in directories {
        let synced = path.sync_directory(&directory);
        synced.map_err(|error| Error::io(format!("syncing {}", path.describe(&directory)), error))?;
    }
    Ok(())
}

/// Whether this is the name of a tile or bundle that is full, and written.
fn is_full(path: &str) -> bool {
    let width = match tile::parse_path(path) {
        Some(TilePath::Hashes(id)) => id.width,
        Some(TilePath::Entries { width, .. }) => width,
        None => 0,
    };
    width == tile::FULL_WIDTH
}

/// Whether an event of the log tells, or may tell, where a segment ends, so that what is behind that is no frame's: duplicates of frames that were
/// taken into other segments among it.
fn is_explained(name: SegmentName, rest: &Manifest, missing: &LostFrames) -> Result<bool> {
    let (name, mut explained) = (name.to_string(), false);
    let explains = |event: Event| event.explains().is_some_and(|(segment, _)| segment == name);
    match each_event_but(rest, 0, missing, |_, event| explained |= explains(event)) {
        // One that is damaged may.
        Err(error) if error.kind() == ErrorKind::Tampered => Ok(true),
        read => read.map(|()| explained),
    }
}

/// Where in the segment that has the last frame which the path's own checkpoint covers, of so many, the first one stands in whose place the
/// log has another, on another path.
fn superseded_end(
    path: &dyn Store,
    name: SegmentName,
    (covered, rest): (u64, &Manifest),
    missing: &LostFrames,
) -> Result<Option<u64>> {
    let mut cursor = Cursor::open(path, name)?;
    for frame in name.first..rest.size() {
        if let Some(Ok(head)) = cursor.peek()?
            && cursor.is_copy(&head)
        {
            cursor.pass(&head);
        }
        match cursor.peek()? {
            Some(Ok(head)) if head.commitment == rest.commitment(frame)? => cursor.pass(&head),
            Some(_) => return Ok((frame >= covered && !missing.contains(frame)).then_some(cursor.offset)),
            None => return Ok(None),
        }
    }
    Ok(None)
}

/// Whether the log has gone on without a segment of a path, from its first frame or from a later one on, and another path has what of it is in
/// the tree. `is_behind_one`: whether it has without one that was written before.
fn is_superseded(
    path: &dyn Store,
    name: SegmentName,
    rest: &Manifest,
    missing: &LostFrames,
    is_behind_one: bool,
) -> Result<bool> {
    let mut cursor = Cursor::open(path, name)?;
    let mut frame = name.first;
    loop {
        // What the log has no frames for yet may still be taken up, unless frames before it came to nothing.
        if frame >= rest.size() {
            return Ok(is_behind_one && frame == name.first);
        }
        let is_elsewhere = !missing.contains(frame);
        match cursor.peek()? {
            Some(Ok(head)) if cursor.is_copy(&head) => cursor.pass(&head),
            Some(Ok(head)) if head.commitment == rest.commitment(frame)? => {
                if !is_elsewhere {
                    return Ok(false);
                }
                cursor.pass(&head);
                frame += 1;
            }
            Some(Ok(_)) => return Ok(is_elsewhere || is_behind_one),
            // It was cut short, or is damaged.
            Some(Err(_)) => return Ok(is_elsewhere),
            // All of it is in the tree.
            None => return Ok(is_elsewhere && frame == name.first),
        }
    }
}

/// Moves a segment into the directory for those that count for nothing, under a name that is free there.
fn move_aside(path: &dyn Store, name: SegmentName) -> io::Result<String> {
    let aside = free_name(path, &name.to_string())?;
    path.rename(&name.path(), &aside)?;
    path.sync_directory(files::SET_ASIDE)?;
    path.sync_directory(segment::DIRECTORY)?;
    Ok(aside)
}

/// Moves what a segment has from `offset` on into that directory. It has that name there once it is whole.
fn cut_off(path: &dyn Store, name: SegmentName, offset: u64) -> io::Result<String> {
    let aside = free_name(path, &format!("{name}.from-{offset}"))?;
    let part = format!("{aside}.tmp");
    match path.remove(&part) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let (segment, copy) = (path.open_write(&name.path())?, path.create(&part)?);
    let length = segment.length()?;
    let (mut piece, mut copied) = (vec![0; PIECE], 0);
    while offset + copied < length {
        let count = segment.read_at(&mut piece, offset + copied)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        copy.write_at(&mut [IoSlice::new(&piece[..count])], copied)?;
        copied += count as u64;
    }
    copy.sync()?;
    path.rename(&part, &aside)?;
    path.sync_directory(files::SET_ASIDE)?;
    segment.set_length(offset)?;
    segment.sync()?;
    Ok(aside)
}

/// A name in that directory, which is made where it is not there: this one, or with a number behind it where that is taken.
fn free_name(path: &dyn Store, name: &str) -> io::Result<String> {
    path.create_directory(files::SET_ASIDE)?;
    let mut aside = format!("{}/{name}", files::SET_ASIDE);
    let mut number = 1;
    loop {
        match path.open(&aside) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(aside),
            Err(error) => return Err(error),
            Ok(_) => aside = format!("{}/{name}.{number}", files::SET_ASIDE),
        }
        number += 1;
    }
}

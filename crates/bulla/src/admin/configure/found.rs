//! What lies on a path that was lost and is found, and is named again.
//!
//! Frames that nobody had signed may have lain there when it was lost, and the log has gone on since with other frames of these numbers. A
//! segment counts up to where the next one begins, so those would end what the log has, and stand in the way of it; and what follows signed frames in a
//! segment would be bytes that nothing explains. They are set aside on that path, for people.
//!
//! Invariants:
//! - nothing is touched that the path's own checkpoint covers, nor a frame of the log that no other path has, whole;
//! - what the log has is its tree, and behind that the frames with which a writer would go on from the other paths: they may have been acknowledged;
//! - no segment is touched but from a frame on in whose place the log has another one, on another path, or where it is a copy that would end another
//!   segment: what may still be taken up stays, and so does a damaged segment;
//! - an opening without the path that was cut short before it wrote a frame leaves nothing in the way of what the path has;
//! - where nothing tells what the log has, and something lies there that it may have gone on without, the path is not named again;
//! - nothing is cut off a segment of which an event explains what is behind its frames: that explains those bytes, and no others;
//! - no frame is removed that does not lie elsewhere on that path, durably. Of the tree there, what may be over frames that are set aside is removed,
//!   but for what the path's own checkpoint covers: whoever has the frames can make it anew;
//! - what is set aside can be cut short anywhere and begun again: what is further behind goes first.

mod rest;

use super::losing::Named;
use crate::format::config::LogConfig;
use crate::format::files;
use crate::format::frame;
use crate::format::path::PathId;
use crate::format::segment::{self, SegmentName};
use crate::keys::paths::{Fate, KnownPath};
use crate::scan::checkpoint::read_note;
use crate::scan::cursor::Cursor;
use crate::scan::manifest::Manifest;
use crate::scan::paths::join_paths;
use crate::scan::stored_tree;
use bulla_crypto::environment::Environment;
use bulla_proof::commitment::LogId;
use bulla_proof::tile::{self, TilePath};
use bulla_store::{Error, ErrorKind, Lock, Result, Store};
use rest::Rest;
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
/// `Locked` where somebody has such a path locked; `Tampered` where what the other paths have is damaged, so that nothing tells what is to be set aside;
/// `NoKey` where the seal state is missing, without which nobody knows what is gone on with; `Unavailable` where a file cannot be read, or does not get
/// another name.
pub(super) fn set_aside_what_is_superseded(
    (own_directory, own): (&Arc<dyn Store>, PathId),
    named: &[Named<'_>],
    (keys, remembered): (&dyn Store, &[KnownPath]),
    config: &LogConfig,
    environment: &Environment,
) -> Result<()> {
    let fate = |id: PathId| remembered.iter().find(|known| known.id == id).map(|known| known.fate);
    // The log's own directory is not noted before it was written to.
    let own_is_found = fate(own) == Some(Fate::Lost);
    let is_found = |named: &Named<'_>| named.id.is_some_and(|id| matches!(fate(id), None | Some(Fate::Lost)));
    let of_own = own_is_found.then_some(own_directory);
    let stores =
        of_own.into_iter().chain(named.iter().filter(|named| is_found(named)).map(|named| &named.store));
    let mut found = Vec::new();
    for path in stores {
        if let Some(path) = FoundPath::open(path.clone(), config)?
            && path.has_more_than_it_covers()?
        {
            found.push(path);
        }
    }
    // What the log is without them.
    let of_rest = named.iter().filter(|named| !is_found(named)).collect::<Vec<_>>();
    let mut others = of_rest.iter().map(|named| &named.store).collect::<Vec<_>>();
    let mut also = of_rest.iter().map(|named| named.path.to_owned()).collect::<Vec<PathBuf>>();
    if !own_is_found {
        others.insert(0, own_directory);
    } else if !also.is_empty() {
        also.remove(0);
    }
    let Some(first) = others.first().filter(|_| !found.is_empty()) else { return Ok(()) };
    let lost = remembered.iter().any(|known| known.fate == Fate::Lost);
    let load = || Rest::load(join_paths((*first).clone(), None, &also, environment)?, config, (keys, lost));
    let Some(mut rest) = load()? else { return Ok(()) };
    if undo_opening(&others, &found, &rest)? {
        let Some(again) = load()? else { return Ok(()) };
        rest = again;
    }
    found.iter().try_for_each(|path| path.set_aside(&rest, environment))
}

/// What becomes of a segment of a path that is found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SegmentFate {
    /// It is a part of the log, may become one, or only people can tell.
    Stays,
    /// Other paths have all of it, in a segment that it would end.
    IsCopy,
    /// The log has gone on without it, from its first frame or from a later one on, and other paths have what of it is in the log.
    IsSuperseded,
}

/// A path that is found.
struct FoundPath {
    path: Arc<dyn Store>,
    /// The frames that its own checkpoint covers.
    covered: u64,
    /// The segment that has the last of them.
    last: Option<SegmentName>,
    /// The segments behind that one.
    behind: Vec<SegmentName>,
}

impl FoundPath {
    /// Looks at it; nothing where it is no path of this log, which is told elsewhere.
    fn open(path: Arc<dyn Store>, config: &LogConfig) -> Result<Option<Self>> {
        let covered = match read_note(&*path)?.map(|note| config.own_keys().open(&note)) {
            Some(Ok(checkpoint)) => checkpoint.size,
            Some(Err(_)) => return Ok(None),
            None => 0,
        };
        let (before, behind) =
            segment::list(&*path)?.0.into_iter().partition::<Vec<_>, _>(|name| name.first < covered);
        Ok(Some(FoundPath { path, covered, last: before.last().copied(), behind }))
    }

    /// Whether anything lies there behind the frames that its own checkpoint covers.
    fn has_more_than_it_covers(&self) -> Result<bool> {
        let Some(name) = self.last.filter(|_| self.behind.is_empty()) else {
            return Ok(!self.behind.is_empty());
        };
        let (mut cursor, mut frame) = (Cursor::open(&*self.path, name)?, name.first);
        while frame < self.covered
            && let Some(Ok(head)) = cursor.peek()?
        {
            frame += u64::from(!cursor.is_copy(&head));
            cursor.pass(&head);
        }
        Ok(cursor.offset < cursor.length)
    }

    /// Whether it has the frame that another path's segment should begin with.
    fn has(&self, segment: SegmentName) -> Result<bool> {
        for name in self.last.iter().chain(&self.behind).filter(|name| name.first <= segment.first) {
            let mut cursor = Cursor::open(&*self.path, *name)?;
            while let Some(Ok(head)) = cursor.peek()? {
                if head.commitment.frame == segment.first && !cursor.is_copy(&head) {
                    return Ok(true);
                }
                cursor.pass(&head);
            }
        }
        Ok(false)
    }

    /// Sets aside what the log has gone on without.
    fn set_aside(&self, rest: &Rest, environment: &Environment) -> Result<()> {
        let path = &*self.path;
        let end = match self.last {
            Some(name) if !rest.explains(name)? => self.superseded_end(name, rest)?,
            _ => None,
        };
        if end.is_none() && self.behind.iter().all(|name| name.first >= rest.size()) {
            return Ok(());
        }
        let _lock = lock(path)?;
        let tell = |from: &str, to: &str| {
            let told = format!(
                "{from} is {} now, and counts for nothing: the log has gone on with other frames of these numbers since the path was lost, or has \
                 these on another path",
                path.describe(to)
            );
            environment.path_replaced.iter().for_each(|tell| tell(&told));
        };
        let failed = |name: SegmentName| {
            let what = format!("setting {} aside", path.describe(&name.path()));
            move |error| Error::io(what, error)
        };
        let (mut aside, mut comes_to_nothing) = (Vec::new(), end.is_some());
        for name in &self.behind {
            let fate = self.fate(*name, rest, comes_to_nothing)?;
            // Whatever is written after a frame that came to nothing comes to nothing.
            comes_to_nothing |= fate == SegmentFate::IsSuperseded;
            if fate != SegmentFate::Stays {
                aside.push(*name);
            }
        }
        if end.is_none() && aside.is_empty() {
            return Ok(());
        }
        remove_of_another_tree(path, self.covered, &rest.manifest)?;
        for name in aside.into_iter().rev() {
            let aside = move_aside(path, name).map_err(failed(name))?;
            tell(&path.describe(&name.path()), &aside);
        }
        if let Some((name, offset)) = self.last.zip(end) {
            let aside = cut_off(path, name, offset).map_err(failed(name))?;
            tell(&format!("{} from byte {offset} on", path.describe(&name.path())), &aside);
        }
        Ok(())
    }

    /// Where in the segment that has the last frame which the path's own checkpoint covers the first one stands in whose place the log has another, on
    /// another path.
    fn superseded_end(&self, name: SegmentName, rest: &Rest) -> Result<Option<u64>> {
        let mut cursor = Cursor::open(&*self.path, name)?;
        for frame in name.first..rest.size() {
            if let Some(Ok(head)) = cursor.peek()?
                && cursor.is_copy(&head)
            {
                cursor.pass(&head);
            }
            match cursor.peek()? {
                Some(Ok(head)) if head.commitment == rest.commitment(frame)? => cursor.pass(&head),
                Some(_) => {
                    let is_other = frame >= self.covered && !rest.missing.contains(frame);
                    return Ok(is_other.then_some(cursor.offset));
                }
                None => return Ok(None),
            }
        }
        Ok(None)
    }

    /// What becomes of a segment behind the frames that the path's own checkpoint covers. `is_behind_one`: whether the log has gone on without one that
    /// was written before.
    fn fate(&self, name: SegmentName, rest: &Rest, is_behind_one: bool) -> Result<SegmentFate> {
        let superseded =
            |is_superseded| if is_superseded { SegmentFate::IsSuperseded } else { SegmentFate::Stays };
        let mut cursor = Cursor::open(&*self.path, name)?;
        let mut frame = name.first;
        loop {
            let of_log = (frame < rest.size()).then(|| rest.commitment(frame)).transpose()?;
            match (cursor.peek()?, of_log) {
                (Some(Ok(head)), _) if cursor.is_copy(&head) => cursor.pass(&head),
                (Some(Ok(head)), Some(commitment)) if head.commitment == commitment => {
                    if !rest.has_sound(frame)? {
                        return Ok(SegmentFate::Stays);
                    }
                    cursor.pass(&head);
                    frame += 1;
                }
                (None, _) if frame > name.first => {
                    let is_in_place = rest.has_segment_from(name.first)?;
                    return Ok(if is_in_place { SegmentFate::Stays } else { SegmentFate::IsCopy });
                }
                // What the log has no frames for yet may still be taken up, unless frames before it came to nothing.
                (_, None) => return Ok(superseded(is_behind_one && frame == name.first)),
                (Some(Ok(_)), Some(_)) => {
                    return Ok(superseded(is_behind_one || !rest.missing.contains(frame)));
                }
                // It was cut short, is damaged, or has nothing.
                (Some(Err(_)) | None, Some(_)) => return Ok(superseded(!rest.missing.contains(frame))),
            }
        }
    }
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

/// Undoes on the other paths what an opening of the log has begun that was cut short before it wrote a frame: segments get their names back that it gave
/// other ones, since nothing led to them without a path which is found now; and the last one, where its first frame is torn, is set aside where a path that
/// is found has that frame. Says whether there was any.
fn undo_opening(others: &[&Arc<dyn Store>], found: &[FoundPath], rest: &Rest) -> Result<bool> {
    let mut any = false;
    let last = segment::list(&*rest.manifest.snapshot.store)?.0.last().copied();
    for path in others.iter().map(|path| &***path) {
        for name in segment::list(path)?.0.into_iter().filter(|name| name.first >= rest.size()) {
            let mut cursor = Cursor::open(path, name)?;
            if let Some(Ok(head)) = cursor.peek()?
                && cursor.is_copy(&head)
            {
                cursor.pass(&head);
            }
            let failed =
                |error| Error::io(format!("giving {} another name", path.describe(&name.path())), error);
            match cursor.peek()? {
                Some(Ok(head)) if head.commitment.frame > name.first && !rest.explains(name)? => {
                    let _lock = lock(path)?;
                    let all = others.iter().copied().chain(found.iter().map(|found| &found.path));
                    let before = free_of_all(all, head.commitment.frame)?;
                    let renamed = path.rename(&name.path(), &before.path());
                    renamed.and_then(|()| path.sync_directory(segment::DIRECTORY)).map_err(failed)?;
                }
                Some(Err(_)) | None if last == Some(name) && is_torn(&cursor, rest.log())? => {
                    if !found.iter().try_fold(false, |has, found| Ok::<_, Error>(has || found.has(name)?))?
                        || rest.explains(name)?
                    {
                        continue;
                    }
                    let _lock = lock(path)?;
                    move_aside(path, name).map_err(failed)?;
                }
                _ => continue,
            }
            any = true;
        }
    }
    Ok(any)
}

/// A name of a segment that begins with this frame, of a generation after all that these paths have.
fn free_of_all<'a>(paths: impl Iterator<Item = &'a Arc<dyn Store>>, first: u64) -> Result<SegmentName> {
    let mut generation = 0;
    for path in paths {
        let names = segment::list(&**path)?.0.into_iter().filter(|name| name.first == first);
        generation = names.map(|name| name.generation + 1).fold(generation, u32::max);
    }
    Ok(SegmentName { first, generation })
}

/// Whether what stands in a segment where its first frame should be may be what a crash left of the write of that: it has no frame of a later write, each
/// of which waits until the one before is durable.
fn is_torn(cursor: &Cursor, log: LogId) -> Result<bool> {
    let mut bytes =
        vec![0; usize::try_from(cursor.length - cursor.offset).unwrap_or(usize::MAX).min(frame::HEAD)];
    cursor.file.read_exact_at(&mut bytes, cursor.offset).map_err(|error| cursor.failed(error))?;
    let is_later = |head: &frame::Head| head.group > cursor.name.first;
    Ok(frame::may_be_torn(&bytes, log) && cursor.find(cursor.offset, is_later)?.is_none())
}

/// The lock on a path, against who has it open.
fn lock(path: &dyn Store) -> Result<Box<dyn Lock>> {
    path.lock(files::LOCK).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => Error::new(
            ErrorKind::Locked,
            format!("{} is locked: another process has that path open", path.describe(files::LOCK)),
        ),
        _ => Error::io(format!("locking {}", path.describe(files::LOCK)), error),
    })
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
    path.sync_directory("")?;
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

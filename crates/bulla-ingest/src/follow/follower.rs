//! Finds the sources of paths, and has each read on.
//!
//! Invariants: whatever is in `current` and in `nodes` is in `sources`; a source that is in `ready` is there once.

mod beginning;
mod resuming;
mod truncation;

use super::content::{Content, Node, node};
use super::family::Families;
use super::followed::{Broken, Followed, Room, Turn};
use super::label::{Label, SourceId};
use super::names::Found;
use super::siblings::{Directories, directory_of, modified};
use super::watch::Watch;
use super::{Following, Known, Sink};
use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::Metadata;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const SECOND: i64 = 1_000_000_000;

/// All paths are looked at so often, whatever the kernel tells.
const LOOK: i64 = 10 * SECOND;

/// The same where the kernel does not tell of every directory.
const LOOK_UNTOLD: i64 = SECOND;

/// And no more often than this, however many names come and go.
const LOOK_AGAIN: i64 = SECOND / 5;

/// After so long without a change a record ends that otherwise the next one ends.
const SILENCE: i64 = SECOND;

/// After so long without a change a rotated file is done with, unless it is the newest of its path.
const DONE: i64 = 60 * SECOND;

/// What is followed at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Files, rotated ones among them.
    pub files: usize,
    /// Whether there may be something to read at once.
    pub is_behind: bool,
}

/// Names a source within a follower; the later one has the greater number.
type Number = u64;

/// Something that was told of a path.
#[derive(PartialEq, Eq)]
struct Trouble {
    what: String,
    /// Whether something is not read because of it.
    is_unread: bool,
}

/// A source that the log has and that is not followed: it was not found yet, or it is done with.
struct Rest {
    known: Known,
    label: Label,
}

/// See the module.
pub struct Follower<S> {
    following: Following,
    random: Box<dyn FnMut() -> SourceId + Send>,
    sources: HashMap<Number, Followed<S>>,
    next: Number,
    /// The source of the file that is at a path.
    current: HashMap<PathBuf, Number>,
    nodes: HashMap<Node, Number>,
    families: Families<Number>,
    rest: Families<Rest>,
    ready: VecDeque<Number>,
    is_ready: HashSet<Number>,
    watch: Option<Watch>,
    /// When all was looked at, and when that is due again.
    looked: i64,
    due: i64,
    /// The last that was told of a path.
    troubles: HashMap<PathBuf, Trouble>,
    /// Paths of which sources were finished since all was looked at.
    finished: HashSet<PathBuf>,
    /// Paths of which not all could be looked at that nobody has seen, with since when.
    unseen: HashMap<PathBuf, i64>,
    room: Room,
}

impl<S> Follower<S> {
    /// Follows these, where the log has these sources. `random` gives ids, none of them twice.
    pub fn new(following: Following, known: Vec<Known>, random: Box<dyn FnMut() -> SourceId + Send>) -> Self {
        let labelled = known
            .into_iter()
            .filter_map(|known| Label::parse(&known.label).map(|label| Rest { known, label }));
        let mut labelled: Vec<_> = labelled.collect();
        labelled.sort_by_key(|rest| (rest.label.met, rest.known.order));
        let mut rest = Families::default();
        for of in labelled {
            rest.insert(&of.label.path.clone(), of);
        }
        Follower {
            following,
            random,
            sources: HashMap::new(),
            next: 0,
            current: HashMap::new(),
            nodes: HashMap::new(),
            families: Families::default(),
            rest,
            ready: VecDeque::new(),
            is_ready: HashSet::new(),
            watch: Watch::new(),
            looked: i64::MIN,
            due: i64::MIN,
            troubles: HashMap::new(),
            finished: HashSet::new(),
            unseen: HashMap::new(),
            room: Room::default(),
        }
    }

    /// What becomes readable when something changed; `None` where that is found by looking alone.
    pub fn wakes(&self) -> Option<BorrowedFd<'_>> {
        self.watch.as_ref().map(AsFd::as_fd)
    }

    /// What is followed at the moment.
    pub fn state(&self) -> State {
        State { files: self.sources.len(), is_behind: !self.ready.is_empty() }
    }

    /// When to step again though nothing was told, in nanoseconds since the epoch.
    pub fn due(&self) -> i64 {
        self.due
    }

    /// Whether what was read last of some source may be a record, unless it goes on before long.
    pub fn awaits_silence(&self) -> bool {
        self.sources.values().any(|source| source.silent_since.is_some())
    }

    /// How far each source was read: its path, and how many bytes.
    pub fn places(&self) -> impl Iterator<Item = (&Path, u64)> {
        self.sources.values().map(|source| (source.label.path.as_path(), source.place))
    }

    /// What could not be read of what is followed, and why, as the sink was told.
    pub fn unread(&self) -> impl Iterator<Item = &str> {
        let unread = self.troubles.values().filter(|trouble| trouble.is_unread);
        unread.map(|trouble| trouble.what.as_str())
    }

    /// Finds what there is to read, and reads a little of each.
    ///
    /// # Errors
    /// Those of the sink. The follower is of no more use then.
    pub fn step<T: Sink<Source = S>>(&mut self, sink: &mut T) -> Result<State, T::Error> {
        let now = sink.now();
        let hints = self.watch.as_mut().map(Watch::take).unwrap_or_default();
        for path in &hints.changed {
            if let Some(of) = self.current.get(path).copied() {
                self.make_ready(of);
            }
        }
        if hints.renamed {
            self.due = self.due.min(self.looked.saturating_add(LOOK_AGAIN));
        }
        // A clock that was set back is none to wait for.
        if now >= self.due || now < self.looked {
            self.look(sink, now)?;
        }
        // Each once, so that none waits for another that grows as fast as it is read.
        for _ in 0..self.ready.len() {
            if sink.is_ending() {
                break;
            }
            let Some(of) = self.ready.pop_front() else { break };
            self.is_ready.remove(&of);
            self.turn(of, sink, now)?;
        }
        self.room.shrink();
        Ok(self.state())
    }

    fn make_ready(&mut self, of: Number) {
        if self.is_ready.insert(of) {
            self.ready.push_back(of);
        }
    }

    /// Has a source read on.
    fn turn<T: Sink<Source = S>>(&mut self, of: Number, sink: &mut T, now: i64) -> Result<(), T::Error> {
        if self.was_begun_before_it_was_copied(of) {
            self.remove(of);
            return Ok(());
        }
        let Some(source) = self.sources.get_mut(&of) else { return Ok(()) };
        let empty_since = source.empty_at.as_ref().map(|(_, since)| *since);
        if let Some(since) = empty_since.filter(|since| source.label.beginning == 0 && *since < now)
            && source.note_beginning().is_ok()
        {
            // It was empty, and may have been copied and truncated since then: nothing that was read of it would tell.
            let path = source.label.path.clone();
            self.begin_unseen(&path, since, &mut Directories::default(), sink, now);
        }
        let Some(source) = self.sources.get_mut(&of) else { return Ok(()) };
        match source.turn(sink, &mut self.room, false) {
            Ok(Turn::More) => self.make_ready(of),
            Ok(Turn::AtEnd(_)) if source.is_whole => self.finish(of, sink)?,
            Ok(Turn::AtEnd(left)) => {
                source.silent_since = (left > 0 && source.ends_by_silence()).then_some(now);
                if source.silent_since.is_some() {
                    self.due = self.due.min(now.saturating_add(SILENCE));
                }
            }
            Ok(Turn::Changed) => self.truncated(of, sink, now)?,
            Err(Broken::Sink(error)) => return Err(error),
            Err(Broken::Reading(error)) => {
                let path = source.label.path.clone();
                self.trouble(&path, format!("reading {}: {error}", path.display()), sink);
            }
        }
        Ok(())
    }

    /// Whether a file that was empty when it was met has become a copy: it was being made.
    fn was_begun_before_it_was_copied(&mut self, of: Number) -> bool {
        let is_empty = |source: &&Followed<S>| source.label.beginning == 0 && source.empty_at.is_some();
        if self.sources.get(&of).filter(is_empty).is_none() {
            return false;
        }
        let Some(mut source) = self.sources.remove(&of) else { return false };
        let at = source.empty_at.as_ref().map(|(at, _)| at.clone()).unwrap_or_default();
        let metadata = source.content.metadata();
        let is_copy = metadata
            .and_then(|metadata| self.may_be_copy(&at, &mut source.content, &metadata, true))
            .unwrap_or(false);
        self.sources.insert(of, source);
        is_copy
    }

    /// Tells of a trouble with a path, which is not read for it, unless it is what was told of it last.
    fn trouble<T: Sink<Source = S>>(&mut self, path: &Path, what: String, sink: &mut T) {
        self.note(path, Trouble { what, is_unread: true }, sink);
    }

    fn note<T: Sink<Source = S>>(&mut self, path: &Path, trouble: Trouble, sink: &mut T) {
        if self.troubles.get(path) != Some(&trouble) {
            sink.tell(&trouble.what);
            self.troubles.insert(path.to_owned(), trouble);
        }
    }

    /// Looks at every path, and after every source.
    fn look<T: Sink<Source = S>>(&mut self, sink: &mut T, now: i64) -> Result<(), T::Error> {
        let paths = self.paths(sink);
        let is_told = self.watch_all(&paths);
        (self.looked, self.due) = (now, now.saturating_add(if is_told { LOOK } else { LOOK_UNTOLD }));
        let mut directories = Directories::default();
        self.find_renamed(&paths, sink);
        // A file by its own name before whatever leads to it: who can put a link somewhere has no other file taken for it.
        let mut links = Vec::new();
        for path in &paths {
            match std::fs::symlink_metadata(path) {
                Ok(metadata) if metadata.is_symlink() => links.push(path),
                metadata => self.look_at(path, metadata.ok(), &mut directories, sink, now)?,
            }
        }
        for path in links {
            self.look_at(path, std::fs::metadata(path).ok(), &mut directories, sink, now)?;
        }
        for path in std::mem::take(&mut self.finished) {
            self.forget_gone(&path, &mut directories, sink);
        }
        let newest = self.newest_rotated();
        for of in self.sources.keys().copied().collect::<Vec<_>>() {
            self.look_after(of, &newest, sink, now)?;
        }
        Ok(())
    }

    /// The paths that there are, those that there were, and those of which the log has more than is there.
    fn paths<T: Sink<Source = S>>(&mut self, sink: &mut T) -> Vec<PathBuf> {
        let Found { mut paths, missing } = self.following.find();
        for (path, what, is_unread) in missing {
            // One that was there is renamed or removed now and then.
            if self.looked == i64::MIN || path.symlink_metadata().is_ok() {
                self.note(&path, Trouble { what, is_unread }, sink);
            }
        }
        let unfound =
            self.rest.iter().filter(|(_, rest)| rest.label.finished.is_none()).map(|(path, _)| path);
        paths.extend(unfound.filter(|path| self.following.names(path)).map(Path::to_owned));
        paths.extend(self.current.keys().cloned());
        paths.sort_unstable();
        paths.dedup();
        paths
    }

    /// Watches the directories of these paths, and those of what is named. Returns whether the kernel tells of all of them.
    fn watch_all(&mut self, paths: &[PathBuf]) -> bool {
        let of_paths = paths.iter().map(|path| directory_of(path));
        let directories: HashSet<&Path> = self.following.directories().chain(of_paths).collect();
        let Some(watch) = &mut self.watch else { return false };
        let mut is_told = true;
        for directory in directories {
            is_told &= watch.add(directory);
        }
        is_told
    }

    /// Looks whether what is at `path` is what is followed there, and finds what was.
    fn look_at<T: Sink<Source = S>>(
        &mut self,
        path: &Path,
        metadata: Option<Metadata>,
        directories: &mut Directories,
        sink: &mut T,
        now: i64,
    ) -> Result<(), T::Error> {
        if metadata.as_ref().is_some_and(|metadata| !metadata.is_file()) {
            let what = format!("{}: it is no regular file, and is not followed", path.display());
            let is_unread = self.following.is_named(path);
            self.note(path, Trouble { what, is_unread }, sink);
            return Ok(());
        }
        let at = metadata.as_ref().and_then(|metadata| self.nodes.get(&node(metadata))).copied();
        let followed = self.current.get(path).copied();
        let is_there = followed.is_some() && followed == at;
        let mut since = self.unseen.remove(path);
        if !is_there && let Some(of) = followed {
            since = since.into_iter().chain(self.leave(path, of, sink, now)?).min();
        }
        if self.has_rest(path) || !is_there && followed.is_none() {
            since = since.into_iter().chain(self.find_rest(path, directories, sink)?).min();
        }
        // One that was renamed has its name again.
        let returned =
            at.filter(|of| !is_there && self.sources.get(of).is_some_and(|source| source.label.path == path));
        if let Some(of) = returned {
            self.current.insert(path.to_owned(), of);
            self.make_ready(of);
        }
        let mut met = now;
        if let Some(since) = since {
            met = self.begin_unseen(path, since, directories, sink, now).min(since);
        }
        if metadata.is_some() && !self.current.contains_key(path) {
            self.go_on_in_another(path, directories);
            self.go_on_behind_the_end(path, directories, sink);
            if !self.current.contains_key(path) && !self.begin(path, path, sink, met) {
                self.look_again(path, met, now);
            }
        }
        Ok(())
    }

    /// Whether the log has something of this path that was not found yet.
    fn has_rest(&self, path: &Path) -> bool {
        self.rest.related(path).any(|(of, rest)| of == path && rest.label.finished.is_none())
    }

    /// Something beside this path could not be looked at, which may have come since then.
    fn look_again(&mut self, path: &Path, since: i64, now: i64) {
        let unseen = self.unseen.entry(path.to_owned()).or_insert(since);
        *unseen = since.min(*unseen);
        self.due = self.due.min(now.saturating_add(LOOK_UNTOLD));
    }

    /// The file at a path is not that of this source any more, which has another name by now, or none. Returns since when there may be files that
    /// nobody has seen.
    fn leave<T: Sink<Source = S>>(
        &mut self,
        path: &Path,
        of: Number,
        sink: &mut T,
        now: i64,
    ) -> Result<Option<i64>, T::Error> {
        self.current.remove(path);
        let met = self.sources.get(&of).map(|source| source.label.met);
        // It may have been copied and truncated before: then the copy is its content, and none of the files that nobody has seen.
        self.turn(of, sink, now)?;
        Ok(met)
    }

    fn add<T: Sink<Source = S>>(
        &mut self,
        source: io::Result<Followed<S>>,
        path: &Path,
        sink: &mut T,
    ) -> Option<Number> {
        let source = match source {
            Ok(source) => source,
            Err(error) => {
                self.trouble(path, format!("{}: {error}", path.display()), sink);
                return None;
            }
        };
        self.troubles.remove(path);
        Some(self.insert(source))
    }

    fn insert(&mut self, source: Followed<S>) -> Number {
        let of = self.next;
        self.next += 1;
        self.nodes.insert(source.node(), of);
        self.families.insert(&source.label.path, of);
        self.sources.insert(of, source);
        self.make_ready(of);
        of
    }

    fn remove(&mut self, of: Number) -> Option<Followed<S>> {
        let source = self.sources.remove(&of)?;
        self.nodes.remove(&source.node());
        let path = &source.label.path;
        self.families.take(path, |number| *number == of);
        if self.current.get(path) == Some(&of) {
            self.current.remove(path);
        }
        Some(source)
    }

    /// Of each path the newest source of a file that is not at it any more: its writer may not have noticed yet.
    fn newest_rotated(&self) -> HashSet<Number> {
        let mut newest = HashMap::<&Path, Number>::new();
        for (of, source) in &self.sources {
            if self.is_rotated(*of, source) {
                let newest = newest.entry(&source.label.path).or_insert(*of);
                *newest = (*newest).max(*of);
            }
        }
        newest.into_values().collect()
    }

    fn is_rotated(&self, of: Number, source: &Followed<S>) -> bool {
        self.current.get(&source.label.path) != Some(&of)
    }

    /// Looks whether a source has more, or is done with.
    fn look_after<T: Sink<Source = S>>(
        &mut self,
        of: Number,
        newest: &HashSet<Number>,
        sink: &mut T,
        now: i64,
    ) -> Result<(), T::Error> {
        let Some(source) = self.sources.get(&of) else { return Ok(()) };
        let Ok(metadata) = source.content.metadata() else { return Ok(()) };
        let is_as_seen = source.is_as_seen(&metadata);
        let is_old = is_as_seen
            && (now.saturating_sub(modified(&metadata)) > DONE || now.saturating_sub(source.seen_at) > DONE);
        // Whoever writes to a file that is gone may not have noticed yet either.
        let is_done =
            self.is_rotated(of, source) && is_old && (metadata.nlink() == 0 || !newest.contains(&of));
        let Some(source) = self.sources.get_mut(&of) else { return Ok(()) };
        source.is_whole |= is_as_seen && is_done;
        if is_done || !is_as_seen {
            self.make_ready(of);
        } else if source.silent_since.is_some_and(|since| now.saturating_sub(since) >= SILENCE) {
            source.silent_since = None;
            // Whatever else comes of it, the next turn finds.
            if let Err(Broken::Sink(error)) = source.turn(sink, &mut self.room, true) {
                return Err(error);
            }
        }
        Ok(())
    }

    /// A source was read to its end, and nothing more is expected.
    fn finish<T: Sink<Source = S>>(&mut self, of: Number, sink: &mut T) -> Result<(), T::Error> {
        let Some(mut source) = self.remove(of) else { return Ok(()) };
        source.label.finished = Some(source.end());
        source.relabel(sink)?;
        if source.handle.is_some() {
            let (path, label) = (source.label.path.clone(), source.label);
            let known = Known {
                id: source.id,
                label: Vec::new(),
                ranges: Vec::new(),
                check: 0,
                passed: None,
                order: u64::MAX,
            };
            self.finished.insert(path.clone());
            self.rest.insert(&path, Rest { known, label });
        }
        Ok(())
    }

    /// Forgets the sources of this path that are done with and whose content is nowhere any more: nothing could be taken for them.
    fn forget_gone<T: Sink<Source = S>>(&mut self, path: &Path, directories: &mut Directories, sink: &mut T) {
        let mut gone = self.rest.take(path, |rest| rest.label.finished.is_some());
        let mut there = Vec::new();
        let (_, is_sure) =
            directories.settle(path, |directories| {
                let siblings = directories.siblings(path).into_iter().map(|sibling| sibling.path);
                for at in std::iter::once(path.to_owned()).chain(siblings) {
                    let Ok((mut content, _)) = Content::open(&at) else { continue };
                    there.extend(gone.extract_if(.., |rest| {
                        rest.label.is_of(&rest.known.id, &mut content).unwrap_or(true)
                    }));
                }
                None::<()>
            });
        if !is_sure {
            there.append(&mut gone);
        }
        for rest in gone {
            sink.forget(&rest.known.id);
        }
        for rest in there {
            self.rest.insert(path, rest);
        }
    }
}

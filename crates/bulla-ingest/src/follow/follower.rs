//! Finds the sources of paths, and has each read on.
//!
//! Invariants: whatever is in `current` and in `nodes` is in `sources`; a source that is in `ready` is there once.

use super::content::{Content, Node, node};
use super::family::Families;
use super::followed::{Broken, Followed, Resumed, Room, Same, Turn};
use super::label::{self, Label, SourceId};
use super::siblings::{Directories, directory_of, modified};
use super::watch::Watch;
use super::{Following, Known, Sink};
use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::Metadata;
use std::io;
use std::ops::Range;
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
    troubles: HashMap<PathBuf, String>,
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
        if source.label.beginning == 0 && source.label.met < now && source.note_beginning().is_ok() {
            // It was empty, and may have been copied and truncated since then: nothing that was read of it would tell.
            let (path, since) = (source.label.path.clone(), source.label.met);
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
        let at = source.empty_at.clone().unwrap_or_default();
        let is_copy = self.may_be_copy(&at, &mut source.content, true);
        self.sources.insert(of, source);
        is_copy
    }

    /// Tells of a trouble with a path, unless it is what was told of it last.
    fn trouble<T: Sink<Source = S>>(&mut self, path: &Path, what: String, sink: &mut T) {
        if self.troubles.get(path) != Some(&what) {
            sink.tell(&what);
            self.troubles.insert(path.to_owned(), what);
        }
    }

    /// Looks at every path, and after every source.
    fn look<T: Sink<Source = S>>(&mut self, sink: &mut T, now: i64) -> Result<(), T::Error> {
        let paths = self.paths(sink);
        let is_told = self.watch_all(&paths);
        (self.looked, self.due) = (now, now.saturating_add(if is_told { LOOK } else { LOOK_UNTOLD }));
        let mut directories = Directories::default();
        for path in &paths {
            self.look_at(path, &mut directories, sink, now)?;
        }
        let newest = self.newest_rotated();
        for of in self.sources.keys().copied().collect::<Vec<_>>() {
            self.look_after(of, &newest, sink, now)?;
        }
        Ok(())
    }

    /// The paths that there are, those that there were, and those of which the log has more than is there.
    fn paths<T: Sink<Source = S>>(&mut self, sink: &mut T) -> Vec<PathBuf> {
        let (mut paths, mut left_out) = (Vec::new(), HashMap::new());
        for pattern in self.following.patterns.clone() {
            match glob::glob(pattern.as_str()) {
                Ok(found) => {
                    let found = found.filter_map(Result::ok);
                    // Each directory is looked at once, however many files are in it.
                    paths.extend(found.filter(|path| {
                        let directory = directory_of(path).to_owned();
                        let leaves_out = |directory: &PathBuf| self.following.leaves_out(directory);
                        !*left_out.entry(directory).or_insert_with_key(leaves_out)
                    }));
                }
                Err(error) => self.trouble(Path::new(pattern.as_str()), format!("{pattern}: {error}"), sink),
            }
        }
        let unfound = self.rest.iter().filter(|(_, rest)| !rest.label.finished).map(|(path, _)| path);
        paths.extend(unfound.filter(|path| self.following.names(path)).map(Path::to_owned));
        paths.extend(self.current.keys().cloned());
        paths.sort_unstable();
        paths.dedup();
        paths
    }

    /// Watches the directories of these paths, and those of patterns. Returns whether the kernel tells of all of them.
    fn watch_all(&mut self, paths: &[PathBuf]) -> bool {
        let patterns = self.following.patterns.iter().map(|pattern| Path::new(pattern.as_str()));
        let directories: HashSet<&Path> =
            patterns.chain(paths.iter().map(PathBuf::as_path)).map(directory_of).collect();
        let Some(watch) = &mut self.watch else { return false };
        let is_pattern = |directory: &Path| directory.as_os_str().to_string_lossy().contains(['*', '?', '[']);
        let mut is_told = true;
        for directory in directories.into_iter().filter(|directory| !is_pattern(directory)) {
            is_told &= watch.add(directory);
        }
        is_told
    }

    /// Looks whether what is at `path` is what is followed there, and finds what was.
    fn look_at<T: Sink<Source = S>>(
        &mut self,
        path: &Path,
        directories: &mut Directories,
        sink: &mut T,
        now: i64,
    ) -> Result<(), T::Error> {
        let metadata = match std::fs::metadata(path) {
            Ok(metadata) if !metadata.is_file() => {
                self.trouble(
                    path,
                    format!("{}: it is no regular file, and is not followed", path.display()),
                    sink,
                );
                return Ok(());
            }
            metadata => metadata.ok(),
        };
        let of_node = metadata.as_ref().and_then(|metadata| self.nodes.get(&node(metadata))).copied();
        let followed = self.current.get(path).copied();
        let since = match (followed, of_node) {
            (None, _) => self.find_rest(path, directories, sink)?,
            (Some(of), Some(at)) if of == at => return Ok(()),
            (Some(of), _) => self.leave(path, of, sink, now)?,
        };
        let mut met = now;
        if let Some(since) = since {
            met = self.begin_unseen(path, since, directories, sink, now);
        }
        if metadata.is_some() && !self.current.contains_key(path) {
            self.begin(path, path, sink, met);
        }
        Ok(())
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
        let left = self.sources.get(&of).and_then(|source| source.content.metadata().ok());
        Ok(left.map(|metadata| modified(&metadata)).or(met))
    }

    /// Finds the sources of this path that the log has: at the path, beside it under another name, as a copy, or compressed. Returns since when
    /// there may be files that nobody has seen; `None` where the log has nothing of the path.
    fn find_rest<T: Sink<Source = S>>(
        &mut self,
        path: &Path,
        directories: &mut Directories,
        sink: &mut T,
    ) -> Result<Option<i64>, T::Error> {
        let mut since = None::<i64>;
        let mut unseen_since = |moment| since = Some(since.map_or(moment, |since| since.min(moment)));
        for Rest { known, mut label } in self.rest.take(path, |rest| !rest.label.finished) {
            let (place, ahead) = resumes(&known);
            let (found, is_sure) =
                directories.settle(path, |directories| self.find(path, &known, &label, directories));
            if !is_sure {
                // It is looked for again.
                unseen_since(label.met);
                self.rest.insert(path, Rest { known, label });
                continue;
            }
            let shorter = match found {
                None => self.find_shorter(path, &known, &label, directories),
                Some(_) => None,
            };
            if let Some(metadata) = shorter {
                // It was copied before all was written that was read, and then truncated: all of the copy was read.
                unseen_since(modified(&metadata));
                label.finished = true;
                self.rest.insert(path, Rest { known, label });
                continue;
            }
            let Some((at, mut content, metadata)) = found else {
                sink.tell(&format!(
                    "{}: what was read up to byte {place} is neither there nor beside it: what came after that, if anything did, is not in the log",
                    path.display()
                ));
                sink.forget(&known.id);
                unseen_since(label.met);
                continue;
            };
            unseen_since(modified(&metadata));
            (label.device, label.inode) = node(&metadata);
            let passed = passed_to(&known, &mut content);
            let resumed = Resumed { claimed: place, place: passed.unwrap_or(place), ahead };
            let source = Followed::new((known.id, label), content, &self.following.conversion, resumed);
            if let (Some(of), true) = (self.add(source, path, sink), at == path) {
                self.current.insert(path.to_owned(), of);
            }
        }
        // Where all that the log has of the path is done with, whatever came after the last of these was met may be unseen.
        let finished = self.rest.iter().filter(|(of, rest)| *of == path && rest.label.finished);
        Ok(since.or(finished.map(|(_, rest)| rest.label.met).max()))
    }

    /// Finds the content of a source that the log has, and where it is.
    fn find(
        &self,
        path: &Path,
        known: &Known,
        label: &Label,
        directories: &mut Directories,
    ) -> Option<(PathBuf, Content, Metadata)> {
        let siblings = directories.siblings(path).into_iter().map(|sibling| sibling.path);
        let places: Vec<_> = std::iter::once(path.to_owned()).chain(siblings).collect();
        // The file itself rather than a copy of it.
        [true, false].into_iter().find_map(|is_itself| {
            places.iter().find_map(|at| {
                let (mut content, metadata) = Content::open(at).ok()?;
                let fits = (node(&metadata) == (label.device, label.inode)) == is_itself;
                let fits = fits && !self.nodes.contains_key(&node(&metadata));
                (fits && has_read(known, label, &mut content)).then(|| (at.clone(), content, metadata))
            })
        })
    }

    /// Finds a copy of a source that the log has which ends before what was read of it.
    fn find_shorter(
        &self,
        path: &Path,
        known: &Known,
        label: &Label,
        directories: &mut Directories,
    ) -> Option<Metadata> {
        let (place, _) = resumes(known);
        directories.siblings(path).into_iter().find_map(|sibling| {
            let (mut content, metadata) = Content::open(&sibling.path).ok()?;
            let is_same = label.is_of(&known.id, &mut content).ok()?;
            let is_shorter = is_same && place > 0 && content.fill(place - 1, &mut [0]).ok()? == 0;
            (is_shorter && !self.nodes.contains_key(&sibling.node)).then_some(metadata)
        })
    }

    /// Begins to read the files beside `path` that were rotated since then, and that nobody has seen. Returns since when there may be copies of what
    /// is at the path and nobody has seen either: they are left until that is followed, and truncated.
    fn begin_unseen<T: Sink<Source = S>>(
        &mut self,
        path: &Path,
        since: i64,
        directories: &mut Directories,
        sink: &mut T,
        now: i64,
    ) -> i64 {
        let mut copied = now;
        directories.settle(path, |directories| {
            for sibling in directories.siblings(path) {
                if sibling.modified < since || self.nodes.contains_key(&sibling.node) {
                    continue;
                }
                match !self.current.contains_key(path) && begin_alike(path, &sibling.path) {
                    true => copied = copied.min(sibling.modified),
                    false => self.begin(&sibling.path, path, sink, now),
                }
            }
            None::<()>
        });
        copied
    }

    /// Begins to read the file `at`, which belongs to `path`, unless it may be a copy of what is known.
    fn begin<T: Sink<Source = S>>(&mut self, at: &Path, path: &Path, sink: &mut T, met: i64) {
        let (mut content, metadata) = match Content::open(at) {
            Ok(opened) => opened,
            // It is gone again.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => return self.trouble(at, format!("{}: {error}", at.display()), sink),
        };
        if self.nodes.contains_key(&node(&metadata)) || self.may_be_copy(at, &mut content, false) {
            return;
        }
        if !content.is_complete(at) {
            // What it is made of is still there beside it; one that is followed by itself is looked at again.
            if at == path {
                let what = format!(
                    "{}: it is not a whole compressed file yet, as its name says it is",
                    at.display()
                );
                self.trouble(at, what, sink);
            }
            return;
        }
        let (device, inode) = node(&metadata);
        let label = Label {
            path: path.to_owned(),
            device,
            inode,
            met,
            beginning: 0,
            digest: (0, 0),
            lines: Vec::new(),
            finished: false,
        };
        let id = (self.random)();
        let resumed = Resumed::default();
        let mut source = Followed::new((id, label), content, &self.following.conversion, resumed);
        if let Ok(source) = &mut source
            && source.label.beginning == 0
        {
            source.empty_at = Some(at.to_owned());
        }
        if let (Some(of), true) = (self.add(source, path, sink), at == path) {
            self.current.insert(path.to_owned(), of);
        }
    }

    /// Whether a file, which may have been empty when it was met, may be a copy of one beside it, or what that became: as far as both go they are
    /// the same.
    fn may_be_copy(&mut self, at: &Path, content: &mut Content, was_empty: bool) -> bool {
        let mut first = [0; 4096];
        let Ok(length) = content.fill(0, &mut first) else { return false };
        let live: Vec<_> = self.families.related(at).map(|(path, of)| (path.to_owned(), *of)).collect();
        for (path, of) in live {
            let is_current = self.current.get(&path) == Some(&of);
            let Some(source) = self.sources.get_mut(&of).filter(|_| path != at || !is_current) else {
                continue;
            };
            let same = if source.label.beginning > 0 {
                source.compare(content).unwrap_or(Same::No)
            } else {
                Same::No
            };
            let is_copy = match is_current {
                // A copy may be under way, or what it is of be truncated by now.
                true => {
                    let mut other = [0; 4096];
                    let both = source.content.fill(0, &mut other).unwrap_or(0).min(length);
                    same != Same::No || both > 0 && other[..both] == first[..both]
                }
                // Of a file that was renamed nobody makes a copy but a compressed one; what was written to it after that is not in there. And what
                // was empty may be the copy that it was found as.
                false => same != Same::No && (was_empty || content.is_packed()),
            };
            if is_copy {
                return true;
            }
        }
        let mut rest = self.rest.related(at);
        rest.any(|(_, Rest { known, label })| has_read(known, label, content))
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
        let is_old = !newest.contains(&of) && now.saturating_sub(modified(&metadata)) > DONE;
        let is_done = self.is_rotated(of, source) && (metadata.nlink() == 0 || is_old);
        let is_as_seen = source.is_as_seen(&metadata);
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
        source.label.finished = true;
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
            self.forget_gone(&path, sink);
            self.rest.insert(&path, Rest { known, label });
        }
        Ok(())
    }

    /// Forgets the sources of this path that are done with and whose content is nowhere any more: nothing could be taken for them.
    fn forget_gone<T: Sink<Source = S>>(&mut self, path: &Path, sink: &mut T) {
        let mut directories = Directories::default();
        for rest in self.rest.take(path, |rest| rest.label.finished) {
            let is_it = |at: &Path| {
                Content::open(at)
                    .is_ok_and(|(mut content, _)| has_read(&rest.known, &rest.label, &mut content))
            };
            let found = directories.settle(path, |directories| {
                let siblings = directories.siblings(path);
                (is_it(path) || siblings.iter().any(|sibling| is_it(&sibling.path))).then_some(())
            });
            match found {
                (None, true) => sink.forget(&rest.known.id),
                _ => self.rest.insert(path, rest),
            }
        }
    }

    /// The content of a file is not what it was: it was truncated. What was not read yet is in the copy, where there is one.
    fn truncated<T: Sink<Source = S>>(&mut self, of: Number, sink: &mut T, now: i64) -> Result<(), T::Error> {
        let Some(mut source) = self.remove(of) else { return Ok(()) };
        let path = source.label.path.clone();
        let mut directories = Directories::default();
        let mut since = source.label.met;
        let (copy, _) = directories.settle(&path, |directories| {
            directories.siblings(&path).into_iter().rev().find_map(|sibling| {
                let (mut content, metadata) = Content::open(&sibling.path).ok()?;
                let same = source.compare(&mut content).unwrap_or(Same::No);
                // One that was met while it was made is no source of its own.
                let of_node = self.nodes.get(&sibling.node).and_then(|of| self.sources.get(of));
                let is_new = of_node.is_none_or(|source| source.label.beginning == 0);
                (same != Same::No && is_new).then_some((same, content, metadata))
            })
        });
        if let Some(met) = copy.as_ref().and_then(|(_, _, metadata)| self.nodes.get(&node(metadata)).copied())
        {
            self.remove(met);
        }
        match copy {
            // A copy is whole before what it is of is truncated.
            Some((Same::GoesOn, content, metadata)) => {
                since = modified(&metadata);
                if let Err(error) = source.adopt(content, node(&metadata)) {
                    self.trouble(&path, format!("reading the copy of {}: {error}", path.display()), sink);
                }
                source.is_whole = true;
                source.relabel(sink)?;
                self.insert(source);
            }
            // More was read than was copied.
            Some((_, _, metadata)) => {
                since = modified(&metadata);
                let of = self.insert(source);
                self.finish(of, sink)?;
            }
            None => {
                if source.handle.is_some() {
                    sink.tell(&format!(
                        "{}: it was truncated, and no copy is beside it: what it had after byte {}, if anything, is not in the log",
                        path.display(),
                        source.place
                    ));
                    sink.forget(&source.id);
                }
            }
        }
        let met = self.begin_unseen(&path, since, &mut directories, sink, now);
        self.begin(&path, &path, sink, met);
        Ok(())
    }
}

/// Whether two files begin with the same, as far as both go.
fn begin_alike(one: &Path, other: &Path) -> bool {
    let beginning = |path| {
        let mut first = [0; 4096];
        let length =
            Content::open(path).and_then(|(mut content, _)| content.fill(0, &mut first)).unwrap_or(0);
        (first, length)
    };
    let ((first, length), (second, of_other)) = (beginning(one), beginning(other));
    let both = length.min(of_other);
    both > 0 && first[..both] == second[..both]
}

/// Where to read on, and what the log has beyond.
pub(super) fn resumes(known: &Known) -> (u64, VecDeque<Range<u64>>) {
    let mut ahead: VecDeque<_> = known.ranges.iter().cloned().collect();
    let place = match ahead.front() {
        Some(first) if first.start == 0 => ahead.pop_front().map_or(0, |first| first.end),
        _ => 0,
    };
    (place, ahead)
}

/// Up to where records of this content became no entries behind what the log has of it, where that is what it was. A file whose end was changed
/// since is read on where the log ends.
pub(super) fn passed_to(known: &Known, content: &mut Content) -> Option<u64> {
    let (place, _) = resumes(known);
    let (range, check) = known.passed.as_ref().filter(|(range, _)| range.start == place)?;
    let has_come = label::has_come_to(&known.id, content, range.end, *check);
    has_come.unwrap_or(false).then_some(range.end)
}

/// Whether this is the content of a source, as far as the log has it.
pub(super) fn has_read(known: &Known, label: &Label, content: &mut Content) -> bool {
    let (place, _) = resumes(known);
    let is_same = label.is_of(&known.id, content).unwrap_or(false);
    // Of what is done with the beginning is enough: nothing more is read of it.
    is_same && (label.finished || label::has_come_to(&known.id, content, place, known.check).unwrap_or(false))
}

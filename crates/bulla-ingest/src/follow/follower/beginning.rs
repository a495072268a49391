//! Which files are new sources.

use super::{Follower, Rest};
use crate::follow::Sink;
use crate::follow::content::{Content, node};
use crate::follow::copies::{has_no_more, has_read, is_of_finished, is_part_of, or_system_error};
use crate::follow::followed::{Followed, Resumed, Same};
use crate::follow::label::Label;
use crate::follow::siblings::Directories;
use std::fs::Metadata;
use std::io;
use std::path::Path;

impl<S> Follower<S> {
    /// Begins to read the files beside `path` that were rotated since then, and that nobody has seen. Returns since when there may be copies of what
    /// is at the path and nobody has seen either: they are left until that is followed, and truncated.
    pub(super) fn begin_unseen<T: Sink<Source = S>>(
        &mut self,
        path: &Path,
        since: i64,
        directories: &mut Directories,
        sink: &mut T,
        now: i64,
    ) -> i64 {
        let (mut copied, mut is_settled) = (now, true);
        directories.settle(path, |directories| {
            let siblings = directories.siblings(path);
            is_settled = directories.trouble().is_none();
            for sibling in siblings {
                if sibling.modified < since || self.nodes.contains_key(&sibling.node) {
                    continue;
                }
                match !self.current.contains_key(path) && may_be_part_of(&sibling.path, path) {
                    true => copied = copied.min(sibling.modified),
                    false => is_settled &= self.begin(&sibling.path, path, sink, since),
                }
            }
            None::<()>
        });
        if !is_settled {
            self.look_again(path, since, now);
        }
        copied
    }

    /// Begins to read the file `at`, which belongs to `path`, unless it may be a copy of what is known. False where it could not be looked at now.
    pub(super) fn begin<T: Sink<Source = S>>(
        &mut self,
        at: &Path,
        path: &Path,
        sink: &mut T,
        met: i64,
    ) -> bool {
        let found = Content::find(at).and_then(|found| {
            let Some((mut content, metadata)) = found else { return Ok(None) };
            let is_known = self.nodes.contains_key(&node(&metadata))
                || self.may_be_copy(at, &mut content, &metadata, false)?;
            Ok((!is_known).then_some((content, metadata)))
        });
        let (content, metadata) = match found {
            Ok(Some(found)) => found,
            Ok(None) => return true,
            Err(error) => {
                self.trouble(at, format!("{}: {error}", at.display()), sink);
                // What may not be read is not read a moment later either.
                return error.kind() == io::ErrorKind::PermissionDenied;
            }
        };
        if self.sources.len() >= self.following.files {
            let what = format!(
                "{} files are followed, and no more can be open: others wait until some are done with (ulimit -Hn says how many)",
                self.sources.len()
            );
            self.trouble(Path::new(""), what, sink);
            // One at its own path is looked at again in any case.
            return at == path;
        }
        if let Err(why) = self.may_begin(at, path, &content, &metadata) {
            // What a compressed file is made of is still there beside it; one that is followed by itself is looked at again.
            if let Some(why) = why {
                self.trouble(at, format!("{}: {why}", at.display()), sink);
            }
            return true;
        }
        let (device, inode) = node(&metadata);
        let path_of = path.to_owned();
        let (digest, lines) = ((0, 0), Vec::new());
        let label = Label { path: path_of, device, inode, met, beginning: 0, digest, lines, finished: None };
        if !label.has_room() {
            let what = format!("{}: its path is longer than those that can be followed", at.display());
            self.trouble(at, what, sink);
            return true;
        }
        let id = (self.random)();
        let resumed = Resumed::default();
        let mut source = Followed::new((id, label), content, &self.following.conversion, resumed);
        if let Ok(source) = &mut source
            && source.label.beginning == 0
        {
            source.empty_at = Some((at.to_owned(), sink.now()));
        }
        let added = self.add(source, at, sink);
        if let (Some(of), true) = (added, at == path) {
            self.current.insert(path.to_owned(), of);
        }
        added.is_some()
    }

    /// Whether a file may be read as one of this path. Where it may not, the reason, if it is one that somebody should know.
    pub(super) fn may_begin(
        &self,
        at: &Path,
        path: &Path,
        content: &Content,
        metadata: &Metadata,
    ) -> Result<(), Option<&'static str>> {
        match () {
            () if self.following.is_left_out(at, metadata) => {
                Err(Some("it is a file of the log itself, and is not followed"))
            }
            () if content.is_complete(at) => Ok(()),
            () if at == path => Err(Some("it is not a whole compressed file yet, as its name says it is")),
            () => Err(None),
        }
    }

    /// Whether a file, which may have been empty when it was met, may be a copy of one beside it, or what that became: as far as both go they are
    /// the same.
    pub(super) fn may_be_copy(
        &mut self,
        at: &Path,
        content: &mut Content,
        metadata: &Metadata,
        was_empty: bool,
    ) -> io::Result<bool> {
        let live: Vec<_> = self.families.related(at).map(|(path, of)| (path.to_owned(), *of)).collect();
        for (path, of) in live {
            let is_current = self.current.get(&path) == Some(&of);
            let Some(source) = self.sources.get_mut(&of).filter(|_| path != at || !is_current) else {
                continue;
            };
            let mut look = || {
                let is_same = source.label.beginning > 0 && source.compare(content)? != Same::No;
                match is_current {
                    // A copy may be under way.
                    true => Ok(is_same || is_part_of(content, &mut source.content)?),
                    // Of a file that was renamed nobody makes a copy but a compressed one; what was written to it after that is not in there. And
                    // what was empty may be the copy that it was found as.
                    false => Ok(is_same
                        && (was_empty || content.is_packed())
                        && has_no_more(content, &source.content)?),
                }
            };
            if or_system_error(look())? {
                return Ok(true);
            }
        }
        for (path, Rest { known, label }) in self.rest.related(at) {
            let is_it = match label.finished {
                None => has_read(known, label, content),
                Some(end) => is_of_finished((path, &known.id, label, end), (at, content, node(metadata))),
            };
            if or_system_error(is_it)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Whether a file may be a copy of another one, which may be under way.
fn may_be_part_of(part: &Path, of: &Path) -> bool {
    let (Ok((mut part, _)), Ok((mut of, _))) = (Content::open(part), Content::open(of)) else { return false };
    is_part_of(&mut part, &mut of).unwrap_or(false)
}

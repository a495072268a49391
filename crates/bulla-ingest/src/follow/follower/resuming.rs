//! Where a source goes on: in another file, behind its end, under another name, or where the log has it.

use super::{Follower, Number, Rest};
use crate::follow::Sink;
use crate::follow::content::{Content, Node, node};
use crate::follow::copies::{Whereabouts, has_read, passed_to, resumes, search};
use crate::follow::followed::{Followed, Resumed, Same};
use crate::follow::label::{End, Label, has_come_to};
use crate::follow::siblings::{Directories, Sibling, are_related};
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

impl<S> Follower<S> {
    /// Where the file of a source is gone, and another one is in its place with all that was read, and no copy is beside it, then somebody
    /// wrote it anew, as editors do, or put it back: the source goes on in it.
    pub(super) fn go_on_in_another(&mut self, path: &Path, directories: &mut Directories) {
        let of_path: Vec<_> =
            self.families.related(path).filter(|(of, _)| *of == path).map(|(_, of)| *of).collect();
        for of in of_path {
            if !self.current.contains_key(path) {
                self.go_on_in(path, of, directories);
            }
        }
    }

    pub(super) fn go_on_in(&mut self, path: &Path, of: Number, directories: &mut Directories) {
        let Some(source) = self.sources.get_mut(&of) else { return };
        let is_gone = source.content.metadata().is_ok_and(|metadata| metadata.nlink() == 0);
        let goes_on = |at: &Path, source: &mut Followed<S>| {
            let (mut content, metadata) = Content::find(at).ok()??;
            (source.compare(&mut content).ok()? == Same::GoesOn).then_some((content, node(&metadata)))
        };
        let mut is_beside = |source: &mut Followed<S>| {
            directories.siblings(path).iter().any(|sibling| goes_on(&sibling.path, source).is_some())
        };
        if is_gone
            && let Some((content, of_content)) = goes_on(path, source)
            && !self.nodes.contains_key(&of_content)
            && !is_beside(source)
        {
            self.nodes.remove(&source.node());
            if source.adopt(content, of_content).is_ok() {
                self.nodes.insert(of_content, of);
                self.current.insert(path.to_owned(), of);
                self.make_ready(of);
            }
        }
    }

    /// A source that was done with goes on where a file has come to its path that has all of it and has no copy beside it: what was removed was put
    /// back.
    pub(super) fn go_on_behind_the_end<T: Sink<Source = S>>(
        &mut self,
        path: &Path,
        directories: &mut Directories,
        sink: &mut T,
    ) {
        for Rest { known, label } in self.rest.take(path, |rest| rest.label.finished.is_some()) {
            let goes_on = |at: &Path| {
                let (mut content, metadata) = Content::find(at).ok()??;
                let end = label.finished.filter(|_| !content.is_packed())?;
                let is_it = label.is_of(&known.id, &mut content).ok()?
                    && has_come_to(&known.id, &mut content, end.length, end.check).ok()?;
                (is_it && !self.nodes.contains_key(&node(&metadata))).then_some((
                    content,
                    node(&metadata),
                    end,
                ))
            };
            let is_beside = |directories: &mut Directories| {
                let is_it = |sibling: &Sibling| {
                    Content::find(&sibling.path).is_ok_and(|found| {
                        found.is_some_and(|(mut content, _)| {
                            label.is_of(&known.id, &mut content).unwrap_or(true)
                        })
                    })
                };
                directories.siblings(path).iter().any(is_it)
            };
            match goes_on(path).filter(|_| !self.current.contains_key(path) && !is_beside(directories)) {
                Some((content, (device, inode), end)) => {
                    let label = Label { device, inode, finished: None, ..label };
                    let (claimed, ahead) = resumes(&known);
                    let resumed = Resumed { claimed, place: end.length, ahead };
                    let source =
                        Followed::new((known.id, label), content, &self.following.conversion, resumed);
                    if let Some(of) = self.add(source, path, sink) {
                        self.current.insert(path.to_owned(), of);
                    }
                }
                None => self.rest.insert(path, Rest { known, label }),
            }
        }
    }

    /// Finds sources that the log has under paths that they have not any more, and that are not those of rotated files, by the files themselves.
    pub(super) fn find_renamed<T: Sink<Source = S>>(&mut self, paths: &[PathBuf], sink: &mut T) {
        let unfinished = self.rest.iter().filter(|(_, rest)| rest.label.finished.is_none());
        let nodes: HashMap<Node, PathBuf> = unfinished
            .map(|(path, Rest { label, .. })| ((label.device, label.inode), path.to_owned()))
            .collect();
        if nodes.is_empty() {
            return;
        }
        for path in paths.iter().filter(|path| !self.current.contains_key(*path)).collect::<Vec<_>>() {
            let Ok(metadata) = std::fs::metadata(path) else { continue };
            let of_file = node(&metadata);
            // Where it is still under the path that the log has, it is found there.
            let is_there = |of: &Path| {
                self.following.names(of) && std::fs::metadata(of).is_ok_and(|there| node(&there) == of_file)
            };
            let is_renamed = |of: &&PathBuf| !are_related(of, path) && !is_there(of);
            let is_followed = self.nodes.contains_key(&of_file);
            let Some(of) = nodes.get(&of_file).filter(is_renamed).filter(|_| !is_followed) else { continue };
            let is_it = |rest: &Rest| (rest.label.device, rest.label.inode) == of_file;
            for Rest { known, mut label } in self.rest.take(of, is_it) {
                let found = Content::find(path).ok().flatten().filter(|(_, found)| node(found) == of_file);
                let found = found.and_then(|(mut content, _)| {
                    has_read(&known, &label, &mut content).is_ok_and(|is_it| is_it).then_some(content)
                });
                let Some(mut content) = found else {
                    self.rest.insert(of, Rest { known, label });
                    continue;
                };
                label.path.clone_from(path);
                let (claimed, ahead) = resumes(&known);
                let place = passed_to(&known, &mut content).unwrap_or(claimed);
                let resumed = Resumed { claimed, place, ahead };
                let source = Followed::new((known.id, label), content, &self.following.conversion, resumed);
                if let Some(of) = self.add(source, path, sink) {
                    self.current.insert(path.to_owned(), of);
                }
            }
        }
    }

    /// Finds the sources of this path that the log has: at the path, beside it under another name, as a copy, or compressed. Returns since when
    /// there may be files that nobody has seen; `None` where the log has nothing of the path.
    pub(super) fn find_rest<T: Sink<Source = S>>(
        &mut self,
        path: &Path,
        directories: &mut Directories,
        sink: &mut T,
    ) -> Result<Option<i64>, T::Error> {
        let mut since = None::<i64>;
        for Rest { known, mut label } in self.rest.take(path, |rest| rest.label.finished.is_none()) {
            since = since.into_iter().chain([label.met]).min();
            let (place, ahead) = resumes(&known);
            let resumed = Resumed { claimed: place, place, ahead };
            match search(path, &known, &label, directories, |node| self.nodes.contains_key(node)) {
                Whereabouts::At(at, mut content, metadata) => {
                    (label.device, label.inode) = node(&metadata);
                    let place = passed_to(&known, &mut content).unwrap_or(place);
                    let resumed = Resumed { place, ..resumed };
                    let source =
                        Followed::new((known.id, label), content, &self.following.conversion, resumed);
                    if let (Some(of), true) = (self.add(source, path, sink), at == path) {
                        self.current.insert(path.to_owned(), of);
                    }
                }
                // It was copied before all was written that was read, and then truncated: all of the copy was read.
                Whereabouts::Shorter => {
                    label.finished = Some(End { length: place, check: known.check });
                    self.rest.insert(path, Rest { known, label });
                }
                // It is looked for again.
                Whereabouts::Unsure(why) => {
                    let what =
                        format!("{}: what was read up to byte {place} is not found: {why}", path.display());
                    self.rest.insert(path, Rest { known, label });
                    self.trouble(path, what, sink);
                }
                Whereabouts::Gone => {
                    sink.tell(&format!(
                        "{}: what was read up to byte {place} is neither there nor beside it: what came after that, if anything did, is not in the log",
                        path.display()
                    ));
                    sink.forget(&known.id);
                }
            }
        }
        // Where all that the log has of the path is done with, whatever came after the last of these was met may be unseen.
        let finished =
            self.rest.related(path).filter(|(of, rest)| *of == path && rest.label.finished.is_some());
        Ok(since.or(finished.map(|(_, rest)| rest.label.met).max()))
    }
}

//! What becomes of a source whose file was truncated.

use super::{Follower, Number};
use crate::follow::Sink;
use crate::follow::content::{Content, node};
use crate::follow::followed::{Followed, Same};
use crate::follow::siblings::Directories;
use std::io;

impl<S> Follower<S> {
    /// The content of a file is not what it was: it was truncated. What was not read yet is in the copy, where there is one.
    pub(super) fn truncated<T: Sink<Source = S>>(
        &mut self,
        of: Number,
        sink: &mut T,
        now: i64,
    ) -> Result<(), T::Error> {
        let Some(source) = self.sources.get_mut(&of) else { return Ok(()) };
        let (path, since) = (source.label.path.clone(), source.label.met);
        let (mut directories, mut unsure) = (Directories::default(), None);
        let (copy, _) = directories.settle(&path, |directories| {
            let siblings = directories.siblings(&path);
            unsure = directories.trouble();
            siblings.into_iter().rev().find_map(|sibling| {
                let looked = Content::find(&sibling.path).and_then(|found| {
                    let Some((mut content, metadata)) = found else { return Ok(None) };
                    let is_same = or_same(self.sources.get(&of), &mut content)?;
                    Ok(is_same.map(|same| (same, content, metadata)))
                });
                let (same, content, metadata) = looked.unwrap_or_else(|error| {
                    if error.kind() == io::ErrorKind::PermissionDenied {
                        return None;
                    }
                    unsure = Some(format!("{}: {error}", sibling.path.display()));
                    None
                })?;
                // One that was met while it was made is no source of its own.
                let of_node = self.nodes.get(&sibling.node).and_then(|of| self.sources.get(of));
                let is_new = of_node.is_none_or(|source| source.label.beginning == 0);
                is_new.then_some((same, content, metadata))
            })
        });
        if let (None, Some(why)) = (&copy, unsure) {
            // The copy may be what could not be looked at.
            self.trouble(
                &path,
                format!("{}: it was truncated, and a copy is not found: {why}", path.display()),
                sink,
            );
            self.look_again(&path, since, now);
            return Ok(());
        }
        let Some(mut source) = self.remove(of) else { return Ok(()) };
        if let Some(met) = copy.as_ref().and_then(|(_, _, metadata)| self.nodes.get(&node(metadata)).copied())
        {
            self.remove(met);
        }
        match copy {
            // A copy is whole before what it is of is truncated.
            Some((Same::GoesOn, content, metadata)) => {
                if let Err(error) = source.adopt(content, node(&metadata)) {
                    self.trouble(&path, format!("reading the copy of {}: {error}", path.display()), sink);
                }
                source.is_whole = true;
                source.relabel(sink)?;
                self.insert(source);
            }
            // More was read than was copied.
            Some(_) => {
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
        let met = self.begin_unseen(&path, since, &mut directories, sink, now).min(since);
        if !self.begin(&path, &path, sink, met) {
            self.look_again(&path, met, now);
        }
        Ok(())
    }
}

/// What content is to a source, where it is the same; errors are the system's.
fn or_same<S>(source: Option<&Followed<S>>, content: &mut Content) -> io::Result<Option<Same>> {
    let same = source.map_or(Ok(Same::No), |source| source.compare(content));
    match same {
        Err(error) if error.raw_os_error().is_some() => Err(error),
        same => Ok(same.ok().filter(|same| *same != Same::No)),
    }
}

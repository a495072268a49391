//! The files beside a file that may be what it was: what rotation renames, copies and compresses.

use super::content::{Node, node};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Such a file.
#[derive(Clone, Debug)]
pub(super) struct Sibling {
    pub(super) path: PathBuf,
    pub(super) node: Node,
    /// When it was changed last, in nanoseconds since the epoch.
    pub(super) modified: i64,
}

/// What is in directories, each of which is read once, unless it is asked whether it has changed.
#[derive(Default)]
pub(super) struct Directories {
    read: HashMap<PathBuf, Listing>,
    /// What could not be looked at, and why, since somebody asked for it.
    trouble: Option<String>,
}

/// What was in a directory.
#[derive(Debug)]
struct Listing {
    /// Names and inodes, sorted.
    names: Vec<(OsString, u64)>,
    /// When the directory was changed last; `None` where that cannot be known.
    changed: Option<SystemTime>,
    read: SystemTime,
    /// Why something may be there that is not in `names`.
    trouble: Option<String>,
}

/// The clock of a file system may stand still for so long.
const TICK: Duration = Duration::from_millis(50);

/// A directory is read so often, while it changes, before what is looked for in it is given up for now.
const TRIES: usize = 50;

impl Listing {
    fn read(directory: &Path) -> Self {
        let (changed, read) = (changed(directory), SystemTime::now());
        let names = fs::read_dir(directory).and_then(|entries| {
            entries.map(|entry| entry.map(|entry| (entry.file_name(), entry.ino()))).collect()
        });
        let trouble = |error: &io::Error| format!("{}: {error}", directory.display());
        let (mut names, trouble): (Vec<_>, _) = match names {
            Ok(names) => (names, None),
            Err(error) => (Vec::new(), Some(trouble(&error))),
        };
        names.sort_unstable();
        Listing { names, changed, read, trouble }
    }

    /// Whether the directory is surely as it was when it was read.
    fn is_current(&self, directory: &Path) -> bool {
        let is_old = |changed| self.read.duration_since(changed).is_ok_and(|age| age > TICK);
        self.changed.is_some_and(is_old) && self.changed == changed(directory)
    }
}

fn changed(directory: &Path) -> Option<SystemTime> {
    fs::metadata(directory).and_then(|metadata| metadata.modified()).ok()
}

impl Directories {
    /// What is beside `path` under names that rotation gives, with a number, a date or an ending put behind its name or into it: `app.log.1`,
    /// `app.log-20261126.gz`, `app.1.log` beside `app.log`. In the order of their last change.
    pub(super) fn siblings(&mut self, path: &Path) -> Vec<Sibling> {
        let directory = directory_of(path);
        let listing = self.read.entry(directory.to_owned()).or_insert_with(|| Listing::read(directory));
        let trouble = &mut self.trouble;
        *trouble = trouble.take().or_else(|| listing.trouble.clone());
        let Some(name) = path.file_name() else { return Vec::new() };
        let stem = stem(name.as_bytes());
        let first = listing.names.partition_point(|(of, _)| of.as_bytes() < stem);
        let names = listing.names[first..].iter().map(|(of, _)| of);
        let of_stem = names.take_while(|of| of.as_bytes().starts_with(stem));
        let rotated = of_stem.filter(|of| *of != name && is_rotated(name.as_bytes(), of.as_bytes()));
        let mut siblings: Vec<_> = rotated
            .filter_map(|of| {
                let path = directory.join(of);
                Sibling::find(&path).unwrap_or_else(|error| {
                    *trouble = Some(format!("{}: {error}", path.display()));
                    None
                })
            })
            .collect();
        siblings.sort_by(|one, other| (one.modified, &one.path).cmp(&(other.modified, &other.path)));
        siblings
    }

    /// What could not be looked at since this was asked last, and why.
    pub(super) fn trouble(&mut self) -> Option<String> {
        self.trouble.take()
    }
}

impl Directories {
    /// Whether the directory of `path` is not as it was when it was read. From now on it is as it is.
    pub(super) fn has_changed(&mut self, path: &Path) -> bool {
        let directory = directory_of(path);
        match self.read.get(directory) {
            Some(before) if before.is_current(directory) => false,
            _ => {
                let now = Listing::read(directory);
                let is_same = self.read.get(directory).is_some_and(|before| before.names == now.names);
                self.read.insert(directory.to_owned(), now);
                !is_same
            }
        }
    }

    /// What `find` finds, which is asked again while the directory of `path` changes: files that are renamed meanwhile may be seen under no name.
    /// And whether that can be relied upon.
    pub(super) fn settle<T>(
        &mut self,
        path: &Path,
        mut find: impl FnMut(&mut Self) -> Option<T>,
    ) -> (Option<T>, bool) {
        for _ in 0..TRIES {
            if let Some(found) = find(self) {
                return (Some(found), true);
            }
            if !self.has_changed(path) {
                return (None, true);
            }
        }
        (None, false)
    }
}

impl Sibling {
    /// The regular file at a path, if there is one.
    fn find(path: &Path) -> io::Result<Option<Self>> {
        match fs::symlink_metadata(path) {
            Ok(metadata) if metadata.is_file() => Ok(Some(Sibling {
                path: path.to_owned(),
                node: node(&metadata),
                modified: modified(&metadata),
            })),
            Ok(_) => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// When a file was changed last, in nanoseconds since the epoch.
pub(super) fn modified(metadata: &fs::Metadata) -> i64 {
    metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec())
}

/// The directory that a path is in.
pub(super) fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A name up to its first dot that is not at its beginning.
fn stem(name: &[u8]) -> &[u8] {
    let dot = name.iter().skip(1).position(|byte| *byte == b'.');
    &name[..dot.map_or(name.len(), |dot| dot + 1)]
}

/// The path of a file up to where the names of its rotated files may differ.
pub(super) fn stem_of(path: &Path) -> PathBuf {
    let name = path.file_name().map_or(&b""[..], OsStr::as_bytes);
    directory_of(path).join(OsStr::from_bytes(stem(name)))
}

/// What [`stem_of`] may give for the files that one of this path may be a rotated one of.
pub(super) fn stems_within(path: &Path) -> Vec<PathBuf> {
    let name = path.file_name().map_or(&b""[..], OsStr::as_bytes);
    let ends = (1..=name.len()).filter(|end| name.get(*end).is_none_or(|byte| is_behind_stem(*byte)));
    ends.map(|end| directory_of(path).join(OsStr::from_bytes(&name[..end]))).collect()
}

fn is_behind_stem(byte: u8) -> bool {
    matches!(byte, b'.' | b'-' | b'_')
}

/// Whether `name` is that of a rotated file of `base`: what stands behind the stem is what `base` has there, numbers and dates, and endings of
/// compressed and of old files.
fn is_rotated(base: &[u8], name: &[u8]) -> bool {
    let stem = stem(base);
    let (Some(of_base), Some(of_name)) = (base.strip_prefix(stem), name.strip_prefix(stem)) else {
        return false;
    };
    let parts = |rest| <[u8]>::split(rest, |byte| is_behind_stem(*byte)).filter(|part| !part.is_empty());
    let is_date = |part: &[u8]| {
        part.len() <= 20 && part.iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b'T' | b'Z'))
    };
    let is_ending = |part: &[u8]| matches!(part, b"gz" | b"zst" | b"old");
    let is_known = |part: &[u8]| is_date(part) || is_ending(part) || parts(of_base).any(|of| of == part);
    of_name.first().is_none_or(|byte| is_behind_stem(*byte)) && parts(of_name).all(is_known)
}

/// Whether two files of these names may be one and its rotated.
pub(super) fn are_related(one: &Path, other: &Path) -> bool {
    let (Some(first), Some(second)) = (one.file_name(), other.file_name()) else { return false };
    directory_of(one) == directory_of(other) && is_rotated(first.as_bytes(), second.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_rotated_files_are_known() {
        let related = |other: &str| are_related(Path::new("/logs/app.log"), &Path::new("/logs").join(other));
        for name in [
            "app.log.1",
            "app.log-20261126",
            "app.log.2.gz",
            "app.1.log",
            "app-20261126.log",
            "app.log-20261126T101112Z.zst",
            "app.log.old",
            "app.log",
        ] {
            assert!(related(name), "{name}");
        }
        for name in [
            "apples.log",
            "application.log.1",
            "other.log",
            "ap",
            "app-errors.log",
            "app.log.swp",
            "app.conf",
        ] {
            assert!(!related(name), "{name}");
        }
        assert!(!are_related(Path::new("/logs/app.log"), Path::new("/old/app.log.1")));
    }
}

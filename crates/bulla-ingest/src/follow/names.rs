//! Which files are followed: paths, and patterns of paths.

use super::content::{Node, node};
use super::siblings::directory_of;
use crate::convert::Conversion;
use std::collections::{HashMap, HashSet};
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What is followed, and how.
#[derive(Clone, Debug)]
pub struct Following {
    named: Vec<Named>,
    /// Directories of which nothing is followed.
    without: Vec<PathBuf>,
    /// At most so many files are followed at a time.
    pub(super) files: usize,
    pub(super) conversion: Arc<Conversion>,
}

/// What is followed, as an absolute path.
#[derive(Clone, Debug)]
enum Named {
    /// This file.
    Path(PathBuf),
    /// The files whose paths are like this.
    Pattern(glob::Pattern),
}

impl Named {
    fn text(&self) -> &Path {
        match self {
            Named::Path(path) => path,
            Named::Pattern(pattern) => Path::new(pattern.as_str()),
        }
    }
}

/// What is found of what is followed.
#[derive(Default)]
pub(super) struct Found {
    /// Files.
    pub(super) paths: Vec<PathBuf>,
    /// Of what is named, what nothing was found of or could not be looked for, with the reason; and whether it names a file.
    pub(super) missing: Vec<(PathBuf, String, bool)>,
}

impl Following {
    /// Follows what these name: a file that is there, whatever its name; else `*` stands for any characters, `?` for one, `[ab]` for one of these,
    /// and `**` for directories.
    ///
    /// # Errors
    /// A text that says which of them is no pattern, and why.
    pub fn new(sources: &[PathBuf], conversion: Arc<Conversion>) -> Result<Self, String> {
        let named = |source: &PathBuf| {
            let absolute =
                std::path::absolute(source).map_err(|error| format!("{}: {error}", source.display()))?;
            let is_pattern = absolute.as_os_str().as_encoded_bytes().iter().any(|byte| b"*?[".contains(byte));
            if !is_pattern || fs::symlink_metadata(&absolute).is_ok() {
                return Ok(Named::Path(absolute));
            }
            let text =
                absolute.to_str().ok_or_else(|| format!("{}: a pattern is UTF-8", source.display()))?;
            let pattern = glob::Pattern::new(text).map_err(|error| {
                format!("{}: it is not there, and is no pattern: {}", source.display(), error.msg)
            })?;
            Ok(Named::Pattern(pattern))
        };
        let named = sources.iter().map(named).collect::<Result<_, String>>()?;
        Ok(Following { named, without: Vec::new(), files: usize::MAX, conversion })
    }

    /// Follows nothing in these directories, which are absolute paths: what is read there would grow by being read.
    #[must_use]
    pub fn without(self, directories: Vec<PathBuf>) -> Self {
        Following { without: directories, ..self }
    }

    /// Follows no more files than so many at a time: each takes a descriptor.
    #[must_use]
    pub fn at_most(self, files: usize) -> Self {
        Following { files, ..self }
    }

    /// The files that there are of these.
    pub fn paths(&self) -> Vec<PathBuf> {
        let mut paths = self.find().paths;
        paths.retain(|path| path.is_file());
        paths
    }

    /// Looks for what is named.
    pub(super) fn find(&self) -> Found {
        let mut found = Found::default();
        // Each directory is looked at once, however many files are in it.
        let mut left_out = HashMap::new();
        for named in &self.named {
            let before = found.paths.len();
            let mut take = |path: PathBuf| {
                let directory = directory_of(&path).to_owned();
                if !*left_out.entry(directory).or_insert_with_key(|directory| self.leaves_out(directory)) {
                    found.paths.push(path);
                }
            };
            match named {
                Named::Path(path) => match fs::symlink_metadata(path) {
                    Ok(_) => take(path.clone()),
                    Err(error) if error.kind() == ErrorKind::NotFound => {
                        let what =
                            format!("{}: it is not there yet, and is read once it appears", path.display());
                        found.missing.push((path.clone(), what, true));
                    }
                    Err(error) => {
                        found.missing.push((path.clone(), format!("{}: {error}", path.display()), true));
                    }
                },
                Named::Pattern(pattern) => {
                    for path in glob::glob(pattern.as_str()).into_iter().flatten() {
                        match path {
                            Ok(path) => take(path),
                            Err(error) => {
                                let what = format!("{}: {}", error.path().display(), error.error());
                                found.missing.push((error.path().to_owned(), what, true));
                            }
                        }
                    }
                    if found.paths.len() == before {
                        let what =
                            format!("{pattern}: nothing like this is there yet; it is read once it appears");
                        found.missing.push((PathBuf::from(pattern.as_str()), what, false));
                    }
                }
            }
        }
        found
    }

    /// Whether nothing is followed of what is in this directory.
    fn leaves_out(&self, directory: &Path) -> bool {
        let real = directory.canonicalize();
        let is_in = |without: &PathBuf| {
            directory.starts_with(without) || real.as_ref().is_ok_and(|real| real.starts_with(without))
        };
        self.without.iter().any(is_in)
    }

    /// Whether a file, by another name or through a link, is one of a directory of which nothing is followed.
    pub(super) fn is_left_out(&self, path: &Path, metadata: &Metadata) -> bool {
        let is_link = fs::symlink_metadata(path).is_ok_and(|own| own.is_symlink());
        let is_linked = |path: PathBuf| self.leaves_out(directory_of(&path));
        if is_link && path.canonicalize().is_ok_and(is_linked) {
            return true;
        }
        let mut nodes = HashSet::new();
        metadata.nlink() > 1 && {
            self.without.iter().for_each(|directory| collect(directory, &mut nodes));
            nodes.contains(&node(metadata))
        }
    }

    /// Whether a path, which is absolute, is one of those that are followed.
    pub fn names(&self, path: &Path) -> bool {
        let is_named = |named: &Named| match named {
            Named::Path(of) => of == path,
            Named::Pattern(pattern) => pattern.matches_path(path),
        };
        !self.leaves_out(directory_of(path)) && self.named.iter().any(is_named)
    }

    /// Whether this file is named itself, and not by a pattern.
    pub(super) fn is_named(&self, path: &Path) -> bool {
        self.named.iter().any(|named| matches!(named, Named::Path(of) if of == path))
    }

    /// The directories in which files of these appear, as far as they have one name.
    pub(super) fn directories(&self) -> impl Iterator<Item = &Path> {
        let has_one_name = |named: &&Named| match named {
            Named::Path(_) => true,
            Named::Pattern(_) => {
                !directory_of(named.text()).as_os_str().to_string_lossy().contains(['*', '?', '['])
            }
        };
        self.named.iter().filter(has_one_name).map(|named| directory_of(named.text()))
    }
}

/// The files in a directory, and in those in it.
fn collect(directory: &Path, nodes: &mut HashSet<Node>) {
    let entries: io::Result<_> = fs::read_dir(directory);
    for entry in entries.into_iter().flatten().flatten() {
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => collect(&entry.path(), nodes),
            Ok(metadata) => drop(nodes.insert(node(&metadata))),
            Err(_) => {}
        }
    }
}

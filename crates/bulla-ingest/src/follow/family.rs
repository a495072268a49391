//! Which files may be one and its rotated: found by their names, without a look at each other file.

use super::siblings::{are_related, stem_of, stems_within};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Values, each of a file that is followed by some path.
pub(super) struct Families<T> {
    of: HashMap<PathBuf, Vec<(PathBuf, T)>>,
}

impl<T> Default for Families<T> {
    fn default() -> Self {
        Families { of: HashMap::new() }
    }
}

impl<T> Families<T> {
    pub(super) fn insert(&mut self, path: &Path, value: T) {
        self.of.entry(stem_of(path)).or_default().push((path.to_owned(), value));
    }

    /// Takes out those of this path that `takes` says, in the order in which they came.
    pub(super) fn take(&mut self, path: &Path, takes: impl Fn(&T) -> bool) -> Vec<T> {
        let stem = stem_of(path);
        let Some(values) = self.of.get_mut(&stem) else { return Vec::new() };
        let taken =
            values.extract_if(.., |(of, value)| of == path && takes(value)).map(|(_, value)| value).collect();
        if values.is_empty() {
            self.of.remove(&stem);
        }
        taken
    }

    /// Those of whose paths `at` may be a rotated file.
    pub(super) fn related(&self, at: &Path) -> impl Iterator<Item = (&Path, &T)> {
        let related = stems_within(at).into_iter().filter_map(|stem| self.of.get(&stem)).flatten();
        related.filter(move |(path, _)| are_related(path, at)).map(|(path, value)| (path.as_path(), value))
    }

    /// All of them, with their paths.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Path, &T)> {
        self.of.values().flatten().map(|(path, value)| (path.as_path(), value))
    }
}

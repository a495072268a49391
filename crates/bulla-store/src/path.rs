//! Paths of a store: relative, of normal components separated by `/`.

use std::io;

/// The directory that a path is in; the root, which is the empty path, for a single component.
///
/// ```
/// assert_eq!(bulla_store::path::parent("segments/0.seg"), "segments");
/// assert_eq!(bulla_store::path::parent("checkpoint"), "");
/// ```
pub fn parent(path: &str) -> &str {
    split(path).0
}

/// A path as its directory and its last component.
pub fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// `name` inside `directory`.
pub fn join(directory: &str, name: &str) -> String {
    match (directory, name) {
        ("", name) => name.to_owned(),
        (directory, "") => directory.to_owned(),
        (directory, name) => format!("{directory}/{name}"),
    }
}

/// The path and those above it, topmost first, without the root.
pub fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    let end = (!path.is_empty()).then_some(path.len());
    path.match_indices('/').map(|(at, _)| at).chain(end).map(|at| &path[..at])
}

/// Refuses what is not a path of a file or a directory in a store.
pub fn check(path: &str) -> io::Result<()> {
    let normal = |component: &str| !matches!(component, "" | "." | "..") && !component.contains('\0');
    match path.is_empty() || path.split('/').all(normal) {
        true => Ok(()),
        false => Err(invalid(path, "is not a relative path of normal components")),
    }
}

/// Refuses what `check` refuses, and the root.
pub fn check_below_root(path: &str) -> io::Result<()> {
    match path {
        "" => Err(invalid(path, "is the root of the store")),
        path => check(path),
    }
}

fn invalid(path: &str, what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("{path:?} {what}"))
}

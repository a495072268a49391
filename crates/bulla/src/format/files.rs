//! Names of files and directories in a log's directory.

use super::segment;

/// The signed tree head.
pub(crate) const CHECKPOINT: &str = "checkpoint";
/// The writer's lock in the log's directory.
pub(crate) const LOCK: &str = "LOCK";
/// What says of a directory that it is a backup path, and of which log.
pub(crate) const PATH: &str = "path";
/// The directory of index files.
pub(crate) const INDEX: &str = "index";
/// The directories of a log.
pub(crate) const DIRECTORIES: [&str; 3] = [segment::DIRECTORY, "tile", INDEX];

/// The path of an epoch's file of the index.
pub(crate) fn index_path(epoch: u64) -> String {
    format!("{INDEX}/{epoch:020}.idx")
}

/// The epoch whose file of the index has this name; `None` where none has.
pub(crate) fn parse_index_name(name: &str) -> Option<u64> {
    let epoch = name.strip_suffix(".idx")?.parse().ok()?;
    (index_path(epoch).strip_prefix(INDEX)?.strip_prefix('/') == Some(name)).then_some(epoch)
}

//! Names of files and directories in a log's directory.

use super::segment;

/// The signed tree head.
pub(crate) const CHECKPOINT: &str = "checkpoint";
/// The newest signed tree head that witnesses have cosigned.
pub(crate) const WITNESSED: &str = "checkpoint.witnessed";
/// The same head, signed as COSE.
pub(crate) const COSE_CHECKPOINT: &str = "checkpoint.cose";
/// The directory of what each witness has cosigned last.
pub(crate) const COSIGNED: &str = "cosigned";
/// The writer's lock in the log's directory.
pub(crate) const LOCK: &str = "LOCK";
/// What says of a directory that it is a backup path, and of which log.
pub(crate) const PATH: &str = "path";
/// The directory of segments on a path that was lost and is found which count for nothing.
pub(crate) const SET_ASIDE: &str = "set-aside";
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

/// The path of what the witness whose key has this id has cosigned last.
pub(crate) fn cosigned_path(key_id: u32) -> String {
    format!("{COSIGNED}/{key_id:08x}")
}

/// Whether it is the name of such a file.
pub(crate) fn is_cosigned_name(name: &str) -> bool {
    name.len() == 8 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether it is the path of a file with what witnesses have cosigned.
pub(crate) fn is_cosigned_path(path: &str) -> bool {
    let name = path.strip_prefix(COSIGNED).and_then(|rest| rest.strip_prefix('/'));
    path == WITNESSED || name.is_some_and(is_cosigned_name)
}

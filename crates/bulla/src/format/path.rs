//! The file `path` of a backup path, which says that the directory is one, of which log, and under which id events tell of it.
//!
//! A log's first directory has no such file: its id is that of the log. So an empty directory, such as a mount point on which nothing
//! is mounted, is no path of any log.

use super::files;
use bulla_proof::commitment::LogId;
use bulla_store::Store;
use std::fmt;
use std::io;

/// The longest file that is read, in bytes.
const LIMIT: u64 = 1 << 10;

/// What tells a path of a log from the others: 16 random bytes, those of the log's own id for its first directory. Shown as
/// lowercase hex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PathId(pub(crate) LogId);

impl PathId {
    /// The id of the first directory of a log.
    pub(crate) fn first_of(log: LogId) -> Self {
        PathId(log)
    }

    /// Reads 32 lowercase hex digits.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        LogId::parse(text).map(PathId)
    }
}

impl fmt::Display for PathId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The text of the file.
pub(crate) fn text(log: LogId, id: PathId) -> String {
    format!("bulla path v1\n{log}\n{id}\n")
}

fn parse(text: &[u8]) -> Option<(LogId, PathId)> {
    let lines = std::str::from_utf8(text).ok()?.strip_prefix("bulla path v1\n")?.strip_suffix('\n')?;
    let (log, id) = lines.split_once('\n')?;
    Some((LogId::parse(log)?, PathId::parse(id)?))
}

/// Why a directory counts for no path of a log, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoPath {
    /// It is none.
    Other(String),
    /// It could not be looked at, so that nobody can tell.
    Unclear(String),
}

impl NoPath {
    /// What an error says of a directory: that something is not there, or is something else than it has to be, is an answer.
    pub(crate) fn of(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::InvalidInput | io::ErrorKind::NotADirectory => {
                Self::Other(error.to_string())
            }
            _ => Self::Unclear(error.to_string()),
        }
    }
}

impl fmt::Display for NoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other(why) | Self::Unclear(why) => f.write_str(why),
        }
    }
}

/// The id in the file of a directory, which has to be a path of `log`; `None` where there is no such file.
///
/// # Errors
/// Why it is none, or why that cannot be told.
pub(crate) fn read(store: &dyn Store, log: LogId) -> Result<Option<PathId>, NoPath> {
    match bulla_store::read_small(store, files::PATH, LIMIT) {
        Ok(bytes) => match parse(&bytes) {
            Some((of, id)) if of == log => Ok(Some(id)),
            Some((of, _)) => Err(NoPath::Other(format!("it is a path of another log, {of}"))),
            None => Err(NoPath::Other(format!("its file `{}` is damaged", files::PATH))),
        },
        Err(error) => match error.io_error() {
            Some(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Some(error) => Err(NoPath::of(error)),
            None => Err(NoPath::Other(error.to_string())),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_one_spelling_and_is_of_one_log() {
        let (log, id) = (LogId([7; 16]), PathId(LogId([0xab; 16])));
        let text = text(log, id);
        assert_eq!(parse(text.as_bytes()), Some((log, id)));
        for at in 0..text.len() {
            let mut damaged = text.clone().into_bytes();
            damaged[at] = b'!';
            assert_eq!(parse(&damaged), None, "byte {at}");
            assert_eq!(parse(&text.as_bytes()[..at]), None, "{at} bytes");
        }
        assert_eq!(parse(format!("{text}\n").as_bytes()), None);
    }
}

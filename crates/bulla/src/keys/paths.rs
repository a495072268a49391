//! `paths` of the key directory: the ids of the log's paths, and which of them the writer has left.
//!
//! A path that the writer has left holds nothing newer than the others, so a log may be gone on with where it is missing. So:
//!
//! Invariants:
//! - a path is noted as left only once nothing is committed on it any more;
//! - it is used again only once it is noted, durably, as one that is not left.

use crate::format::path::PathId;
use crate::keys::files;
use bulla_store::{Error, Result, Store};

/// The longest file that is read, in bytes.
const LIMIT: u64 = 1 << 16;
const FIRST_LINE: &str = "bulla paths v1\n";

/// A path as the key directory remembers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KnownPath {
    pub(crate) id: PathId,
    pub(crate) left: bool,
    /// Where it lay last, for people.
    pub(crate) place: String,
}

/// What the key directory remembers of a log's paths; nothing where there is no such file.
///
/// # Errors
/// `Unavailable` where it is damaged or cannot be read.
pub(crate) fn load(keys: &dyn Store) -> Result<Vec<KnownPath>> {
    let Some(bytes) = files::read_if_there(keys, files::PATHS, LIMIT)? else { return Ok(Vec::new()) };
    let known = parse(&bytes);
    known.ok_or_else(|| files::damaged(keys, files::PATHS, "it is no list of paths"))
}

/// Writes it down, durably.
///
/// # Errors
/// `Unavailable` where that cannot be written.
pub(crate) fn save(keys: &dyn Store, known: &[KnownPath]) -> Result<()> {
    let written = bulla_store::replace(keys, files::PATHS, text(known).as_bytes());
    written.map_err(|error| Error::io(format!("writing {}", keys.describe(files::PATHS)), error))
}

fn text(known: &[KnownPath]) -> String {
    let line = |path: &KnownPath| {
        let state = if path.left { "left" } else { "kept" };
        // A place is for people: a line end in it is none.
        format!("{} {state} {}\n", path.id, path.place.replace(['\n', '\r'], "?"))
    };
    FIRST_LINE.to_owned() + &known.iter().map(line).collect::<String>()
}

fn parse(bytes: &[u8]) -> Option<Vec<KnownPath>> {
    let lines = std::str::from_utf8(bytes).ok()?.strip_prefix(FIRST_LINE)?;
    let line = |line: &str| {
        let mut words = line.strip_suffix('\n')?.splitn(3, ' ');
        let id = PathId::parse(words.next()?)?;
        let left = match words.next()? {
            "left" => true,
            "kept" => false,
            _ => return None,
        };
        Some(KnownPath { id, left, place: words.next()?.to_owned() })
    };
    lines.split_inclusive('\n').map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulla_proof::commitment::LogId;
    use bulla_testkit::Memory;

    #[test]
    fn what_is_written_down_is_read_back_or_refused_whole() {
        let path =
            |id, left, place: &str| KnownPath { id: PathId(LogId([id; 16])), left, place: place.to_owned() };
        let known = vec![path(1, true, "/var/log/audit"), path(2, false, "/mnt/a b")];
        let keys = Memory::new();
        assert_eq!(load(&keys).unwrap(), []);
        save(&keys, &known).unwrap();
        assert_eq!(load(&keys).unwrap(), known);
        let text = text(&known);
        for at in 0..text.len() {
            // Cut at the end of a line it is a shorter list, which no crash leaves: the file is replaced whole.
            let whole = at >= FIRST_LINE.len() && text.as_bytes()[at - 1] == b'\n';
            assert_eq!(parse(&text.as_bytes()[..at]).is_some(), whole, "{at} bytes");
        }
        save(&keys, &[path(3, false, "/mnt/a\nb")]).unwrap();
        assert_eq!(load(&keys).unwrap(), [path(3, false, "/mnt/a?b")]);
    }
}

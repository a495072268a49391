//! `paths` of the key directory: the ids of the log's paths, which of them the writer has left or has not used yet, and which are lost.
//!
//! A path that the writer has left holds nothing newer than the others, so a log may be gone on with where it is missing. Of a log that
//! has lost a path frames may be gone that nobody has signed, so what lies beyond them is no sign that somebody took them away. So:
//!
//! Invariants:
//! - a path is noted as left only once nothing is committed on it any more;
//! - it is used again only once it is noted, durably, as one that is not left;
//! - it is noted as one that was never used only where it was made just now, and until it is to be written to;
//! - it is noted as lost only where somebody has said that it is no path of the log any more, it was not there to be looked at, and it
//!   was used before: with any other no frame can have gone.

use crate::format::path::PathId;
use crate::keys::files;
use bulla_store::{Error, Result, Store};

/// The longest file that is read, in bytes.
const LIMIT: u64 = 1 << 17;
/// So many lost paths are remembered, those that were lost last. One of them tells what all do.
pub(crate) const MOST_LOST: usize = 8;
const FIRST_LINE: &str = "bulla paths v1\n";

/// What became of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It may hold what no other path has.
    Kept,
    /// It has never taken what is written: it holds no frame.
    Spare,
    /// The writer has left it.
    Left,
    /// It is lost for good, with whatever lay there alone, and is none of the log's paths any more.
    Lost,
}

/// A path as the key directory remembers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KnownPath {
    pub(crate) id: PathId,
    pub(crate) fate: Fate,
    /// Of one that is lost, how many frames were signed when that was said, where it is known: none that was signed later lay there.
    pub(crate) signed: Option<u64>,
    /// Where it lay last, for people.
    pub(crate) place: String,
}

/// What the key directory remembers of a log's paths; nothing where there is no such file.
///
/// # Errors
/// `Unavailable` where it is damaged or cannot be read.
pub(crate) fn load(keys: &dyn Store) -> Result<Vec<KnownPath>> {
    let read = files::read_if_there(keys, files::PATHS, LIMIT).map_err(|error| match error.io_error() {
        Some(_) => Error::unavailable(format!(
            "{error}: it says which paths the log lies on, and which of them are lost: let this user read it, or restore it from a backup"
        )),
        None => error,
    });
    let Some(bytes) = read? else { return Ok(Vec::new()) };
    let known = parse(&bytes);
    known.ok_or_else(|| files::damaged(keys, files::PATHS, "it is no list of paths"))
}

/// Writes it down, durably.
///
/// # Errors
/// `Unavailable` where that cannot be written.
pub(crate) fn save(keys: &dyn Store, known: &[KnownPath]) -> Result<()> {
    files::replace(keys, files::PATHS, text(known).as_bytes())
}

fn text(known: &[KnownPath]) -> String {
    let line = |path: &KnownPath| {
        let fate = match path.fate {
            Fate::Kept => "kept".to_owned(),
            Fate::Spare => "spare".to_owned(),
            Fate::Left => "left".to_owned(),
            Fate::Lost => path.signed.map_or_else(|| "lost".to_owned(), |signed| format!("lost:{signed}")),
        };
        // A place is for people: a line end in it is none.
        format!("{} {fate} {}\n", path.id, path.place.replace(['\n', '\r'], "?"))
    };
    FIRST_LINE.to_owned() + &known.iter().map(line).collect::<String>()
}

fn parse(bytes: &[u8]) -> Option<Vec<KnownPath>> {
    let lines = std::str::from_utf8(bytes).ok()?.strip_prefix(FIRST_LINE)?;
    let line = |line: &str| {
        let mut words = line.strip_suffix('\n')?.splitn(3, ' ');
        let id = PathId::parse(words.next()?)?;
        let (fate, signed) = match words.next()? {
            "kept" => (Fate::Kept, None),
            "spare" => (Fate::Spare, None),
            "left" => (Fate::Left, None),
            "lost" => (Fate::Lost, None),
            lost => {
                let number = lost.strip_prefix("lost:")?;
                let signed = number.parse::<u64>().ok().filter(|signed| signed.to_string() == number)?;
                (Fate::Lost, Some(signed))
            }
        };
        Some(KnownPath { id, fate, signed, place: words.next()?.to_owned() })
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
        let path = |id, fate, place: &str| KnownPath {
            id: PathId(LogId([id; 16])),
            fate,
            signed: None,
            place: place.to_owned(),
        };
        let known = vec![
            path(1, Fate::Left, "/var/log/audit"),
            path(2, Fate::Kept, "/mnt/a b"),
            path(4, Fate::Lost, "/mnt/a b"),
            path(5, Fate::Spare, "/mnt/c"),
            KnownPath { signed: Some(1 << 40), ..path(6, Fate::Lost, "/mnt/d") },
        ];
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
        save(&keys, &[path(3, Fate::Kept, "/mnt/a\nb")]).unwrap();
        assert_eq!(load(&keys).unwrap(), [path(3, Fate::Kept, "/mnt/a?b")]);
    }
}

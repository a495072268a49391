//! `dropping` of the key directory: that a log drops entries, or may, and that no durable event of it tells how many.
//!
//! It is written before the first entry is dropped, and again now and then while more are, so that whoever opens the log after the
//! death of the process knows that some were. It goes once the event is durable.

use crate::keys::files;
use bulla_store::{Result, Store};

/// The longest file that is read, in bytes.
const LIMIT: u64 = 1 << 10;
const FIRST_LINE: &str = "bulla dropping v1\n";

/// What the file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DroppingNote {
    /// The events that tell of these entries are in this frame or a later one, and those of others before it.
    pub after: u64,
    /// None of them was dropped before this time: seconds since the Unix epoch.
    pub from: u64,
    /// So many were when it was written.
    pub entries: u64,
    /// Whether more may have been dropped after it was written.
    pub open: bool,
}

/// What the file says; `None` where there is none.
///
/// # Errors
/// `Unavailable` where it is damaged or cannot be read.
pub fn load(keys: &dyn Store) -> Result<Option<DroppingNote>> {
    let Some(bytes) = files::read_if_there(keys, files::DROPPING, LIMIT)? else { return Ok(None) };
    let note = parse(&bytes);
    note.map(Some)
        .ok_or_else(|| files::damaged(keys, files::DROPPING, "it is no note of entries that were dropped"))
}

/// Writes it down, durably.
///
/// # Errors
/// `Unavailable` where that cannot be written.
pub(crate) fn save(keys: &dyn Store, note: DroppingNote) -> Result<()> {
    files::replace(keys, files::DROPPING, text(note).as_bytes())
}

/// Has there be none any more.
///
/// # Errors
/// `Unavailable` where it cannot be removed.
pub(crate) fn remove(keys: &dyn Store) -> Result<()> {
    files::remove(keys, files::DROPPING)
}

fn text(DroppingNote { after, from, entries, open }: DroppingNote) -> String {
    let state = if open { "open" } else { "over" };
    format!("{FIRST_LINE}{after} {from} {entries} {state}\n")
}

fn parse(bytes: &[u8]) -> Option<DroppingNote> {
    let line = std::str::from_utf8(bytes).ok()?.strip_prefix(FIRST_LINE)?.strip_suffix('\n')?;
    let (numbers, state) = line.rsplit_once(' ')?;
    let mut numbers = numbers.split(' ').map(|word| word.parse::<u64>().ok());
    let note = DroppingNote {
        after: numbers.next()??,
        from: numbers.next()??,
        entries: numbers.next()??,
        open: state == "open",
    };
    // Each note has one spelling.
    (text(note).as_bytes() == bytes).then_some(note)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulla_testkit::Memory;

    #[test]
    fn what_is_noted_is_read_back_or_refused_whole() {
        let keys = Memory::new();
        assert_eq!(load(&keys).unwrap(), None);
        remove(&keys).unwrap();
        let note = DroppingNote { after: 12, from: 1_700_000_000, entries: u64::MAX, open: true };
        save(&keys, note).unwrap();
        assert_eq!(load(&keys).unwrap(), Some(note));
        let text = text(note);
        for at in 0..text.len() {
            assert_eq!(parse(&text.as_bytes()[..at]), None, "{at} bytes");
            let mut damaged = text.clone().into_bytes();
            damaged[at] = b'+';
            assert_eq!(parse(&damaged), None, "byte {at}");
        }
        remove(&keys).unwrap();
        assert_eq!(load(&keys).unwrap(), None);
    }
}

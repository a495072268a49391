//! `unfollowed` of the key directory: that the vault was let pass over events of the log, which were lost for good with a path.
//!
//! What these told nobody can tell, that somebody was erased among it, and the vault may be a backup from before that. It goes on following
//! what comes behind them, so that it does not tell itself what it has not followed.
//!
//! Invariants:
//! - it is noted, durably, before the vault says that it follows what lies behind the first of them;
//! - it is removed only once the vault has followed all events from that frame on.

use crate::keys::files;
use bulla_store::{Result, Store};

/// The longest file that is read, in bytes.
const LIMIT: u64 = 1 << 10;
const FIRST_LINE: &str = "bulla unfollowed v1\n";

/// The frame of the first event that the vault has not followed; `None` where it has followed all up to where it says itself.
///
/// # Errors
/// `Unavailable` where the file is damaged or cannot be read.
pub(crate) fn load(keys: &dyn Store) -> Result<Option<u64>> {
    let Some(bytes) = files::read_if_there(keys, files::UNFOLLOWED, LIMIT)? else { return Ok(None) };
    let frame = parse(&bytes);
    frame.map(Some).ok_or_else(|| {
        files::damaged(keys, files::UNFOLLOWED, "it is no note of events that the vault has not followed")
    })
}

/// Writes it down, durably.
///
/// # Errors
/// `Unavailable` where that cannot be written.
pub(crate) fn save(keys: &dyn Store, frame: u64) -> Result<()> {
    files::replace(keys, files::UNFOLLOWED, text(frame).as_bytes())
}

/// Has there be none any more.
///
/// # Errors
/// `Unavailable` where it cannot be removed.
pub(crate) fn remove(keys: &dyn Store) -> Result<()> {
    files::remove(keys, files::UNFOLLOWED)
}

fn text(frame: u64) -> String {
    format!("{FIRST_LINE}{frame}\n")
}

fn parse(bytes: &[u8]) -> Option<u64> {
    let line = std::str::from_utf8(bytes).ok()?.strip_prefix(FIRST_LINE)?.strip_suffix('\n')?;
    let frame = line.parse::<u64>().ok()?;
    // Each note has one spelling.
    (text(frame).as_bytes() == bytes).then_some(frame)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulla_testkit::Memory;

    #[test]
    fn what_is_noted_is_read_back_or_refused_whole() {
        let keys = Memory::new();
        assert_eq!(load(&keys).unwrap(), None);
        save(&keys, 70).unwrap();
        assert_eq!(load(&keys).unwrap(), Some(70));
        let text = text(70);
        (0..text.len()).for_each(|end| assert_eq!(parse(&text.as_bytes()[..end]), None, "{end} bytes"));
        for other in ["bulla unfollowed v1\n070\n", "bulla unfollowed v1\n+70\n", "bulla unfollowed v2\n70\n"]
        {
            assert_eq!(parse(other.as_bytes()), None, "{other}");
        }
        remove(&keys).unwrap();
        remove(&keys).unwrap();
        assert_eq!(load(&keys).unwrap(), None);
    }
}

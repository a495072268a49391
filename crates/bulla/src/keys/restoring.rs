//! What a key directory that is being taken up did not know when that began: it is kept there until that is done.

use crate::keys::files;
use bulla_store::{Error, Result, Store};

/// The first frame and number that the backup knows nothing of.
#[derive(Clone, Copy)]
pub(crate) struct Unknown {
    pub(crate) frame: u64,
    pub(crate) subject: u64,
    /// Whether a new vault is being made: what there is of a vault may be what came of that.
    pub(crate) new_vault: bool,
    /// Whether the log is gone on with although it ends before what the vault has followed.
    pub(crate) older_log: bool,
}

/// What follows the numbers where a new vault is being made.
const NEW_VAULT: &str = " new-vault";
/// What follows that where the log may end before what the vault has followed.
const OLDER_LOG: &str = " older-log";

/// No vault gives this number, nor one above it.
const END: u64 = 1 << 32;
/// The longest file of them, in bytes.
const MOST: u64 = 64;

impl Unknown {
    /// What is written down in `keys`; `None` where nothing is being taken up.
    ///
    /// # Errors
    /// `Unavailable` where the file is damaged or cannot be read.
    pub(crate) fn load(keys: &dyn Store) -> Result<Option<Self>> {
        let Some(bytes) = files::read_if_there(keys, files::RESTORING, MOST)? else { return Ok(None) };
        let numbers = || {
            let (text, older_log) = without(OLDER_LOG, std::str::from_utf8(&bytes).ok()?.strip_suffix('\n')?);
            let (text, new_vault) = without(NEW_VAULT, text);
            let (frame, subject) = text.split_once(' ')?;
            let (frame, subject) = (frame.parse().ok()?, subject.parse().ok()?);
            let unknown = Unknown { frame, subject, new_vault, older_log };
            // Each has one spelling.
            (subject < END && unknown.text().as_bytes() == &bytes[..]).then_some(unknown)
        };
        let name = keys.describe(files::RESTORING);
        let damaged =
            || Error::unavailable(format!("{name} is damaged: restore the backup again, without it"));
        numbers().map(Some).ok_or_else(damaged)
    }

    /// Writes it down.
    ///
    /// # Errors
    /// `Unavailable` where that cannot be written.
    pub(crate) fn save(&self, keys: &dyn Store) -> Result<()> {
        let written = bulla_store::replace(keys, files::RESTORING, self.text().as_bytes());
        written.map_err(|error| Error::io(format!("writing {}", keys.describe(files::RESTORING)), error))
    }

    fn text(&self) -> String {
        let new_vault = if self.new_vault { NEW_VAULT } else { "" };
        let older_log = if self.older_log { OLDER_LOG } else { "" };
        format!("{} {}{new_vault}{older_log}\n", self.frame, self.subject)
    }
}

/// The text without what it may end with, and whether it did.
fn without<'t>(end: &str, text: &'t str) -> (&'t str, bool) {
    match text.strip_suffix(end) {
        Some(rest) => (rest, true),
        None => (text, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulla_testkit::Memory;

    #[test]
    fn it_has_one_spelling_and_bounds() {
        let keys = Memory::new();
        for (new_vault, older_log) in [(false, false), (true, false), (false, true), (true, true)] {
            let unknown = Unknown { frame: u64::MAX, subject: END - 1, new_vault, older_log };
            unknown.save(&keys).unwrap();
            assert_eq!(Unknown::load(&keys).unwrap().unwrap().text(), unknown.text());
        }
        for text in [
            "2 1",
            "2 1\n\n",
            "02 1\n",
            "2 01\n",
            "+2 1\n",
            "2  1\n",
            " 2 1\n",
            "2 1 \n",
            "2\n",
            "",
            "2 1 older-log new-vault\n",
            "2 1 new-vault new-vault\n",
            "2 4294967296\n",
            "18446744073709551616 1\n",
            "2 1\r\n",
            "2 1 else\n",
        ] {
            bulla_store::replace(&keys, files::RESTORING, text.as_bytes()).unwrap();
            let error = Unknown::load(&keys).map(drop).unwrap_err();
            assert!(error.to_string().contains("restoring is damaged"), "{text:?}: {error}");
        }
    }
}

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
            let text = std::str::from_utf8(&bytes).ok()?.trim_end();
            let (text, older_log) = without(OLDER_LOG, text);
            let (text, new_vault) = without(NEW_VAULT, text);
            let (frame, subject) = text.split_once(' ')?;
            Some(Unknown { frame: frame.parse().ok()?, subject: subject.parse().ok()?, new_vault, older_log })
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
        let new_vault = if self.new_vault { NEW_VAULT } else { "" };
        let older_log = if self.older_log { OLDER_LOG } else { "" };
        let text = format!("{} {}{new_vault}{older_log}\n", self.frame, self.subject);
        let written = bulla_store::replace(keys, files::RESTORING, text.as_bytes());
        written.map_err(|error| Error::io(format!("writing {}", keys.describe(files::RESTORING)), error))
    }
}

/// The text without what it may end with, and whether it did.
fn without<'t>(end: &str, text: &'t str) -> (&'t str, bool) {
    match text.strip_suffix(end) {
        Some(rest) => (rest, true),
        None => (text, false),
    }
}

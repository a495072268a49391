//! Whose a directory is. What root writes into somebody else's directory its owner can neither open nor replace.

use crate::{Error, ErrorKind, Result, Store};
use std::io;

/// Refuses to write as root in a directory that belongs to somebody else: the files would be root's, and whoever the directory
/// belongs to would fail over them later. Reading makes no files, and is nobody's trouble.
///
/// # Errors
/// `Refused`, naming the user, what to do, and the directory; `Unavailable` where nobody says whose it is.
pub fn require_own(store: &dyn Store) -> Result<()> {
    let Some(directory) = store.directory() else { return Ok(()) };
    let owner = match directory.owner() {
        // There is nothing of anybody's.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        owner => {
            owner.map_err(|error| Error::io(format!("looking whose {} is", directory.describe("")), error))?
        }
    };
    match rustix::process::geteuid().is_root() && owner != 0 {
        false => Ok(()),
        true => Err(Error::new(
            ErrorKind::Refused,
            format!(
                "{} belongs to user {owner}, who could not open what root writes there: run the command as that user \
                 (`sudo -u '#{owner}' bulla …`)",
                directory.describe("")
            ),
        )),
    }
}

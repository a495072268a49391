//! A log's keys at rest: the files of the key directory, the seal chain's state, the keys of its pseudonyms, digests
//! and sources, and what a program keeps about data subjects.

pub(crate) mod digest;
pub mod dropping;
pub mod files;
pub(crate) mod own_key;
pub(crate) mod paths;
pub(crate) mod personal;
pub(crate) mod places;
pub(crate) mod pseudonym;
pub mod refusals;
pub(crate) mod restoring;
pub(crate) mod seal_state;
pub mod settings;
pub(crate) mod sources;
pub(crate) mod vault;

pub use bulla_crypto::{epoch, group, identities, plugin, prompt, recipients, seal_chain, signing};

use bulla_store::{Error, ErrorKind, Result};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// The key directory that belongs to a log's directory unless another is named: `DIR.keys`.
#[expect(clippy::disallowed_methods, reason = "it names a directory, and opens none")]
pub fn default_keys(directory: &Path) -> PathBuf {
    if directory.file_name().is_none()
        && let Ok(named) = directory.canonicalize()
        && named.file_name().is_some()
    {
        // `.` and `..` have no name to put anything behind.
        return default_keys(&named);
    }
    let mut name = directory.file_name().map_or_else(OsString::new, OsString::from);
    name.push(".keys");
    directory.with_file_name(name)
}

/// The key directory of a log: the one that was named, or else [`default_keys`].
///
/// # Errors
/// As [`require_named_keys`].
pub fn named_keys(directory: &Path, named: Option<PathBuf>) -> Result<PathBuf> {
    let Some(keys) = named else { return Ok(default_keys(directory)) };
    require_named_keys(&keys)?;
    Ok(keys)
}

/// That a key directory that was named is there. Whoever reads needs none, and goes on without the one that each log has of itself: a slip in
/// a name would be taken for that.
///
/// # Errors
/// `Refused` where nothing is there, `Unavailable` where it is no directory.
#[expect(clippy::disallowed_methods, reason = "it looks whether a directory is there, and opens none")]
pub fn require_named_keys(keys: &Path) -> Result<()> {
    let what = || match keys.as_os_str().is_empty() {
        true => "the key directory \"\"".to_owned(),
        false => format!("the key directory {}", keys.display()),
    };
    match keys.metadata() {
        Ok(found) if !found.is_dir() => Err(Error::io(what(), io::ErrorKind::NotADirectory.into())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Error::new(ErrorKind::Refused, format!("{}: {error}", what())))
        }
        // Whether it can be read is for whoever reads it.
        _ => Ok(()),
    }
}

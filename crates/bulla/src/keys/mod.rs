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

use std::ffi::OsString;
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

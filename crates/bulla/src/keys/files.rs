//! The files of the key directory: their names, and how they are read.
//!
//! One that is damaged is the host's failure (`Unavailable`): it is to be restored, and says nothing against the log. A secret
//! that is missing is a key that is missing (`NoKey`), whoever needs it: only where the whole directory is not there, it may be
//! a disk that is not mounted.

use bulla_store::{Error, ErrorKind, Result, Store};
use std::fmt::Display;
use std::io;

/// The Ed25519 signing key.
pub const SIGNING: &str = "signing.key";
/// The ML-DSA-44 signing key, of a log that signs with one too.
pub const SIGNING_ML_DSA: &str = "signing-ml-dsa.key";
/// The seal chain's current state.
pub const SEAL_STATE: &str = "seal.state";
/// The seal chain's first state, which belongs elsewhere.
pub const SEAL_KEY: &str = "seal.key";
/// The embedded default's age identity.
pub const IDENTITY: &str = "identity.age";
/// The key of the pseudonyms, where a rule for a field makes some.
pub const PSEUDONYM: &str = "pseudonym.key";
/// The key of the digests that stand for what is too long for an entry, where something makes such.
pub const DIGEST: &str = "digest.key";
/// The key of what blocks say of sources, where entries are appended from some.
pub const SOURCES_KEY: &str = "sources.key";
/// What blocks have said of sources, so that not all of them are read again.
pub const SOURCES_STATE: &str = "sources.state";
/// What was read of sources and became no entry, behind what blocks have of them.
pub const SOURCES_PASSED: &str = "sources.passed";
/// The embedded default's erasure key, which orders erasures.
pub const ERASURE_KEY: &str = "erasure.key";
/// An erasure that the log does not tell of yet.
pub const ERASURE: &str = "erasure.pending";
/// A restored key directory is being taken up, and must not be written with before that is done.
pub const RESTORING: &str = "restoring";
/// Settings that name paths, or that what the host promises rests on.
pub const SETTINGS: &str = "settings.toml";
/// Which paths the log has, and which of them the writer has left.
pub const PATHS: &str = "paths";
/// That entries are dropped of which no durable event tells yet.
pub const DROPPING: &str = "dropping";
/// Who must not be erased for now.
pub const HOLDS: &str = "holds";
/// The database of a log with erasure, a directory.
pub const VAULT: &str = "vault";
/// What a program that writes the log keeps about data subjects, where one does: the proxy what values taught it.
pub const LEARNED: &str = "learned";
/// The roots of the vault's keys, a directory.
pub const ROOTS: &str = bulla_vault::ROOTS;
/// Taken by the writer: one key directory serves one writer.
pub const LOCK: &str = "LOCK";

/// Reads a file of the key directory whole.
///
/// # Errors
/// `Unavailable` where it is missing, cannot be read, or is over `limit` bytes.
pub(crate) fn read(keys: &dyn Store, name: &str, limit: u64) -> Result<Vec<u8>> {
    bulla_store::read_small(keys, name, limit).map_err(too_long)
}

/// The same; `None` where there is no such file.
///
/// # Errors
/// As [`read`].
pub(crate) fn read_if_there(keys: &dyn Store, name: &str, limit: u64) -> Result<Option<Vec<u8>>> {
    match read(keys, name, limit) {
        Err(error) if error.io_error().map(io::Error::kind) == Some(io::ErrorKind::NotFound) => Ok(None),
        read => read.map(Some),
    }
}

/// The same of a secret that is only read, and may be a symbolic link.
///
/// # Errors
/// As [`read`].
pub(crate) fn read_secret(keys: &dyn Store, name: &str, limit: u64) -> Result<Vec<u8>> {
    bulla_store::read_secret(keys, name, limit).map_err(too_long)
}

/// Has the error of a secret that is missing say so, and what to do.
pub(crate) fn or_missing<T>(keys: &dyn Store, name: &str, read: Result<T>) -> Result<T> {
    read.map_err(|error| match error.io_error().map(io::Error::kind) {
        Some(io::ErrorKind::NotFound) => {
            let message = format!("{} is missing: restore it from a backup", keys.describe(name));
            Error::new(ErrorKind::NoKey, message)
        }
        _ => error,
    })
}

/// Writes a file of the key directory anew, durably.
///
/// # Errors
/// `Unavailable` where it cannot be written: then it is whole, as it was or as it was to be.
pub(crate) fn replace(keys: &dyn Store, name: &str, content: &[u8]) -> Result<()> {
    let written = bulla_store::replace(keys, name, content);
    written.map_err(|error| Error::io(format!("writing {}", keys.describe(name)), error))
}

/// Has what is found in the key directory stay there, whatever becomes of the machine: an attempt to make it may have failed once it had its name, and
/// what is written under such a key would be lost with it.
///
/// # Errors
/// `Unavailable` where the directory cannot be synced.
pub(crate) fn settle(keys: &dyn Store) -> Result<()> {
    keys.sync_directory("").map_err(|error| Error::io(format!("syncing {}", keys.describe("")), error))
}

/// Has there be no such file in the key directory any more.
///
/// # Errors
/// `Unavailable` where it cannot be removed.
pub(crate) fn remove(keys: &dyn Store, name: &str) -> Result<()> {
    let removed = match keys.remove(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.and_then(|()| keys.sync_directory("")),
    };
    removed.map_err(|error| Error::io(format!("removing {}", keys.describe(name)), error))
}

fn too_long(error: Error) -> Error {
    match error.io_error() {
        Some(_) => error,
        None => Error::unavailable(format!("{error}; restore it from a backup")),
    }
}

/// That a file of the key directory is not what was written there, and why.
pub(crate) fn damaged(keys: &dyn Store, name: &str, why: impl Display) -> Error {
    Error::unavailable(format!("{} is damaged: {why}; restore it from a backup", keys.describe(name)))
}

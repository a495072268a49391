//! The vault of a log, as its configuration and the environment say.

use crate::format::config::LogConfig;
use crate::keys::files;
use bulla_crypto::environment::Environment;
use bulla_proof::commitment::LogId;
use bulla_store::{Error, ErrorKind, FileSystem, Result, Store};
use bulla_vault::{Access, ReplicaLocation, Settings, Vault};
use std::path::PathBuf;
use std::sync::Arc;

/// Whether a log has a vault: one with erasure, unless its data subjects have their keys elsewhere.
pub(crate) fn has_vault(config: &LogConfig, environment: &Environment) -> bool {
    config.erasure && environment.subjects.is_none()
}

/// Opens the vault of a log whose key directory is `keys`, and, to write, its replicas; `None` where it has none.
///
/// # Errors
/// As [`Vault::open`]; `Unavailable` where `keys` is no directory.
pub(crate) fn open_vault(
    config: &LogConfig,
    keys: &dyn Store,
    environment: &Environment,
    access: Access,
    replicas: Vec<ReplicaLocation>,
) -> Result<Option<Vault>> {
    if !has_vault(config, environment) {
        return Ok(None);
    }
    let keys = directory(keys)?;
    let settings = Settings { random: environment.random.clone(), replicas, ..Settings::default() };
    let database = database(keys)?;
    Vault::open_in(Arc::new(keys.clone()), &database, config.id, access, &settings).map(Some)
}

/// Checks where replicas of the vault in `keys` are to be, as opening it to write does.
///
/// # Errors
/// As [`bulla_vault::check_replicas`].
pub(crate) fn check_replicas(keys: &dyn Store, replicas: &[ReplicaLocation]) -> Result<()> {
    bulla_vault::check_replicas(&database(directory(keys)?)?, replicas)
}

/// The same, and checks what is in them, beside the vault in `keys`, or a new one where there is none. Nothing is written.
///
/// # Errors
/// As [`Vault::check_replicas`], or [`bulla_vault::require_empty_replicas`].
pub(crate) fn check_kept_replicas(
    keys: &dyn Store,
    vault: Option<&Vault>,
    replicas: &[ReplicaLocation],
) -> Result<()> {
    check_replicas(keys, replicas)?;
    match vault {
        Some(vault) => vault.check_replicas(replicas),
        None => bulla_vault::require_empty_replicas(replicas),
    }
}

fn directory(keys: &dyn Store) -> Result<&FileSystem> {
    keys.directory().ok_or_else(|| {
        Error::unavailable(format!("{} is no directory that can hold a vault", keys.describe("")))
    })
}

/// Opens the vault in the key directory `keys` to read the log with this id, with none of its replicas.
///
/// # Errors
/// As [`Vault::open`].
pub(crate) fn open_to_read(keys: &FileSystem, log: LogId) -> Result<Vault> {
    Vault::open_in(Arc::new(keys.clone()), &database(keys)?, log, Access::Read, &Settings::default())
}

/// Makes the vault of a new log whose key directory is `keys`.
///
/// # Errors
/// As [`Vault::create`].
pub(crate) fn create_vault(keys: &FileSystem, log: LogId, environment: &Environment) -> Result<()> {
    let settings = Settings { random: environment.random.clone(), ..Settings::default() };
    Vault::create_in(Arc::new(keys.clone()), &database(keys)?, log, &settings)
}

/// Makes an empty vault of a log that lost its own. One that is there was made by an attempt that was cut short.
///
/// # Errors
/// As [`Vault::create`].
pub(crate) fn create_lost_vault(
    config: &LogConfig,
    keys: &dyn Store,
    environment: &Environment,
) -> Result<()> {
    match create_vault(directory(keys)?, config.id, environment) {
        Err(error) if error.kind() == ErrorKind::Refused => Ok(()),
        made => made,
    }
}

/// Where the vault's database is reached, which opens its files by itself: in the key directory that is held, wherever that
/// is by now. None of them may be a link, as nothing may that is written. The path has no links in it: the database would
/// resolve them before it opens anything, and names itself by what comes of that.
#[expect(clippy::disallowed_methods, reason = "it names a directory, and opens none")]
fn database(keys: &FileSystem) -> Result<PathBuf> {
    let failed = |error| Error::io(format!("looking at {}", keys.describe(files::VAULT)), error);
    let directory = keys.held_path().and_then(|path| path.canonicalize()).map_err(failed)?;
    keys.require_plain(files::VAULT).map_err(failed)?;
    Ok(directory.join(files::VAULT))
}

//! The vault of a log, as its configuration and the environment say.

use crate::format::config::LogConfig;
use bulla_crypto::environment::Environment;
use bulla_store::{Error, Result, Store};
use bulla_vault::{Access, ReplicaLocation, Settings, Vault};

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
    let directory = keys.directory().ok_or_else(|| {
        Error::unavailable(format!("{} is no directory that can hold a vault", keys.describe("")))
    })?;
    let settings = Settings { random: environment.random.clone(), replicas, ..Settings::default() };
    Vault::open(directory, config.id, access, &settings).map(Some)
}

//! The vaults that this process has open. Its handles share one: what one of them erases must be in no cache of another.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::{Shared, foreign};
use bulla_store::Result;

static OPEN: Mutex<Vec<(PathBuf, Weak<Shared>)>> = Mutex::new(Vec::new());

/// The vault in `directory`, a canonical path: the one that is open already, or what `open` opens.
///
/// # Errors
/// What `open` says; `Closed` in a forked child, for a vault that its parent has open.
pub(super) fn share(directory: &Path, open: impl FnOnce() -> Result<Shared>) -> Result<Arc<Shared>> {
    let mut vaults = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    vaults.retain(|(_, vault)| vault.strong_count() > 0);
    let found = vaults.iter().find(|(path, _)| path == directory);
    if let Some(vault) = found.and_then(|(_, vault)| vault.upgrade()) {
        return if vault.database.is_ours() { Ok(vault) } else { Err(foreign()) };
    }
    let vault = Arc::new(open()?);
    vaults.push((directory.to_owned(), Arc::downgrade(&vault)));
    Ok(vault)
}

/// Whether this process has the vault in `directory` open.
pub(super) fn is_open(directory: &Path) -> bool {
    let vaults = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    vaults.iter().any(|(path, vault)| path == directory && vault.strong_count() > 0)
}

//! Where a reading command gets the keys of data subjects from: without them what is personal is withheld.

use crate::exit::{Exit, Failure};
use crate::place::Place;
use bulla::config::{self, LogConfig};
use bulla::keys::group::{GroupKeys, SharedOnly};
use bulla::store::FileSystem;
use bulla::vault::{Access, Settings, Vault};
use std::sync::Arc;

/// The arguments of every command that gives out personal fields.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct Personal {
    /// Withhold what is personal, where that needs the keys of data subjects
    #[arg(long)]
    withhold_personal: bool,
}

/// The keys of data subjects, for a log that has such; `None` for one that has not.
pub(crate) fn group_keys(place: &Place, personal: &Personal) -> Result<Option<Arc<dyn GroupKeys>>, Failure> {
    let log = config::load_of_log(&FileSystem::new(place.directory()))?.0;
    if !log.erasure {
        return Ok(None);
    }
    if personal.withhold_personal {
        return Ok(Some(Arc::new(SharedOnly)));
    }
    match vault(place, &log)? {
        Some(vault) => Ok(Some(vault)),
        None => Err(Failure::new(
            Exit::Refused,
            format!(
                "there is no vault in {}, which has the keys of data subjects: name the key directory with --keys, or \
                 read without their personal fields with --withhold-personal",
                place.keys().display()
            ),
        )),
    }
}

/// The vault in the key directory, if there is one. What keeps it from being opened is an error.
pub(crate) fn vault(place: &Place, log: &LogConfig) -> Result<Option<Arc<dyn GroupKeys>>, Failure> {
    let keys = place.keys();
    if !log.erasure || !Vault::is_in(&keys) {
        return Ok(None);
    }
    Ok(Some(Arc::new(Vault::open(&keys, log.id, Access::Read, &Settings::default())?)))
}

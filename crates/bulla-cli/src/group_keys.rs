//! Where a reading command gets the keys of data subjects from: without them what is personal is withheld.

use crate::exit::{Exit, Failure};
use crate::log_paths::{LogPaths, error_in};
use bulla::config::{self, LogConfig};
use bulla::control::Client;
use bulla::keys::group::{self, GroupKeys, GroupSecret, SharedOnly};
use bulla::keys::recipients::IdentityFile;
use bulla::store::FileSystem;
use bulla::vault::{Settings, VaultReader};
use bulla::{ErrorKind, Grant, MAX_GRANT, Result};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The arguments of every command that gives out personal fields.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct Personal {
    /// Withhold what is personal, for which data subjects have keys
    #[arg(long)]
    withhold_personal: bool,

    /// Read with what `bulla grant` put in this file
    #[arg(long, value_name = "FILE", conflicts_with = "withhold_personal")]
    grant: Option<PathBuf>,
}

/// The keys of data subjects, for a log that has such; `None` for one that has not.
pub(crate) fn group_keys(
    place: &LogPaths,
    personal: &Personal,
    identity: &IdentityFile,
) -> Result<Option<Arc<dyn GroupKeys>>, Failure> {
    let log = config::load_of_log(&FileSystem::new(place.directory()))?.0;
    let keys = place.keys();
    if !log.erasure {
        return Ok(None);
    }
    if personal.withhold_personal {
        return Ok(Some(Arc::new(SharedOnly)));
    }
    if let Some(path) = &personal.grant {
        let file = read_grant(path)?;
        let grant = Grant::open(&file, identity, log.id).map_err(|error| error_in(path, error))?;
        return Ok(Some(Arc::new(grant)));
    }
    if !VaultReader::is_in(&keys) {
        let message = format!(
            "there is no vault in {}, which has the keys of data subjects: name the key directory with --keys or a grant \
             with --grant, or read what is not personal with --withhold-personal",
            keys.display()
        );
        return Err(Failure::new(Exit::Refused, message));
    }
    Ok(Some(Arc::new(WhenNeeded { keys, log, source: Mutex::default() })))
}

fn read_grant(path: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |error: io::Error| Failure::io(path.display(), &error);
    let mut file = Vec::new();
    File::open(path).map_err(failed)?.take(MAX_GRANT as u64 + 1).read_to_end(&mut file).map_err(failed)?;
    Ok(file)
}

/// The writer, or else the vault in the key directory, if there is one. What keeps it from being opened is an error.
pub(crate) fn vault(place: &LogPaths, log: &LogConfig) -> Result<Option<Arc<dyn GroupKeys>>> {
    let keys = place.keys();
    if !log.erasure || !VaultReader::is_in(&keys) {
        return Ok(None);
    }
    let keys = WhenNeeded { keys, log: log.clone(), source: Mutex::default() };
    keys.source()?;
    Ok(Some(Arc::new(keys)))
}

/// A writer or a vault that is looked for once it is needed: what is wrong with the log is told before what is wrong with
/// the vault.
struct WhenNeeded {
    keys: PathBuf,
    log: LogConfig,
    source: Mutex<Option<Arc<dyn GroupKeys>>>,
}

impl WhenNeeded {
    /// The writer that has the log open, which gives no key of a data subject away; without one, the vault.
    fn source(&self) -> Result<Arc<dyn GroupKeys>> {
        let mut source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(source) = &*source {
            return Ok(source.clone());
        }
        let writer = Client::connect(&self.keys)?.filter(|writer| writer.status().log == self.log.id);
        let found: Arc<dyn GroupKeys> = match writer {
            Some(writer) => Arc::new(writer),
            None => Arc::new(VaultReader::open(&self.keys, self.log.id, &Settings::default())?),
        };
        Ok(source.insert(found).clone())
    }

    /// Asks again, whoever is there, where the writer let go of the log.
    fn ask<T>(&self, ask: impl Fn(&dyn GroupKeys) -> Result<T>) -> Result<T> {
        match ask(&*self.source()?) {
            Err(error) if error.kind() == ErrorKind::Closed => {
                *self.source.lock().unwrap_or_else(PoisonError::into_inner) = None;
                ask(&*self.source()?)
            }
            answered => answered,
        }
    }
}

impl GroupKeys for WhenNeeded {
    fn number(&self, subject: &str) -> Result<Option<u64>> {
        self.ask(|source| source.number(subject))
    }

    fn secrets(&self, place: group::BlockContext<'_>, groups: &[&[u64]]) -> Result<Vec<Option<GroupSecret>>> {
        self.ask(|source| source.secrets(place, groups))
    }

    fn is_complete(&self) -> bool {
        true
    }

    fn erased_up_to(&self) -> Result<u64> {
        self.ask(|source| source.erased_up_to())
    }
}

//! Where a reading command gets the keys of data subjects from: without them what is personal is withheld.

use crate::exit::{Exit, Failure};
use crate::log_paths::{LogPaths, error_in};
use bulla::config::{self, LogConfig};
use bulla::control::SubjectKeys;
use bulla::keys::group::{GroupKeys, SharedOnly};
use bulla::keys::recipients::IdentityFile;
use bulla::{Grant, MAX_GRANT, Query, Result};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

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

impl Personal {
    /// Refuses to withhold what the query asks for: nobody can tell what is withheld from what is not there.
    pub(crate) fn check(&self, query: &Query) -> Result<(), Failure> {
        match self.withhold_personal && query.asks_for_personal() {
            true => Err(Failure::usage(
                "--withhold-personal withholds subject, stream, actor, client and location: filters for these would pass by without a \
                 word what is there; leave out one or the other",
            )),
            false => Ok(()),
        }
    }
}

/// The keys of data subjects, where there are any; `None` for a log that has none.
pub(crate) fn group_keys(
    place: &LogPaths,
    personal: &Personal,
    identity: &IdentityFile,
) -> Result<Option<Arc<dyn GroupKeys>>, Failure> {
    let log = config::load_of_log(&*place.log()?)?.0;
    let keys = place.keys();
    if personal.withhold_personal {
        return Ok(Some(Arc::new(SharedOnly)));
    }
    if let Some(path) = &personal.grant {
        let file = read_grant(path)?;
        let grant = Grant::open(&file, identity, log.id).map_err(|error| error_in(path, error))?;
        return Ok(Some(Arc::new(grant)));
    }
    // Whatever the configuration says, which may have been edited: what a block needs, it needs.
    match SubjectKeys::in_directory(&keys, log.id) {
        Some(subject_keys) => Ok(Some(Arc::new(subject_keys))),
        None if !log.erasure => Ok(None),
        None => {
            let or = " or a grant with --grant, or read what is not personal with --withhold-personal";
            Err(without_vault(&keys, or))
        }
    }
}

/// What names can be looked up in, for who cannot do without.
pub(crate) fn names(place: &LogPaths) -> Result<Arc<dyn GroupKeys>, Failure> {
    let log = config::load_of_log(&*place.log()?)?.0;
    let keys = place.keys();
    match SubjectKeys::in_directory(&keys, log.id) {
        Some(subject_keys) => Ok(Arc::new(subject_keys)),
        None if !log.erasure => {
            let message = "the log has `erasure = \"off\"`: data subjects have no numbers in it";
            Err(Failure::new(Exit::Refused, message))
        }
        None => Err(without_vault(&keys, "")),
    }
}

fn without_vault(keys: &Path, or: &str) -> Failure {
    let keys = keys.display();
    let message = format!(
        "there is no vault in {keys}, which has the keys of data subjects: name the key directory with --keys{or}"
    );
    Failure::new(Exit::Refused, message)
}

fn read_grant(path: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |error: io::Error| Failure::key_file(path.display(), &error);
    let mut file = Vec::new();
    File::open(path).map_err(failed)?.take(MAX_GRANT as u64 + 1).read_to_end(&mut file).map_err(failed)?;
    Ok(file)
}

/// The writer, or else the vault in the key directory, if there is one. What keeps it from being opened is an error.
pub(crate) fn vault(paths: &LogPaths, log: &LogConfig) -> Result<Option<Arc<dyn GroupKeys>>> {
    let Some(keys) = SubjectKeys::in_directory(paths.keys(), log.id) else {
        return Ok(None);
    };
    keys.check()?;
    Ok(Some(Arc::new(keys)))
}

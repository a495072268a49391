//! Taking up a key directory that was restored from a backup.
//!
//! What a backup of it lacks: the keys of data subjects that were new since then, which are lost with it; and erasures,
//! which the log knows. A number that the log has given must not be given again, to somebody else. How far the numbers
//! went, only the blocks say, and only to whom they open.

use crate::config;
use crate::engine::{self, Engine, Vaults};
use crate::environment::Environment;
use crate::error::{Error, ErrorKind, Result};
use crate::keys::files;
use crate::keys::recipients::Identity;
use crate::keys::seal_chain::SealState;
use crate::log::default_keys;
use crate::options::Options;
use crate::reader::Reader;
use crate::store::{self, FileSystem, Store};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A key directory to be taken up again.
pub struct Restore {
    directory: PathBuf,
    keys: PathBuf,
    identity: Arc<dyn Identity>,
    environment: Environment,
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restored {
    /// How many numbers of data subjects the backup knew nothing of. Their keys are lost.
    pub lost: u64,
}

impl Restore {
    /// The log in `directory`, with its keys in `DIR.keys`, and an identity that opens its blocks.
    pub fn new(directory: impl AsRef<Path>, identity: Arc<dyn Identity>) -> Self {
        let directory = directory.as_ref().to_owned();
        Restore { keys: default_keys(&directory), directory, identity, environment: Environment::default() }
    }

    /// With its keys in another place.
    pub fn keys(mut self, keys: impl AsRef<Path>) -> Self {
        self.keys = keys.as_ref().to_owned();
        self
    }

    /// With another environment.
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self
    }

    /// Takes it up: erases whom the log says that it erased, and goes on with numbers that nobody had. Cut short, it can
    /// be done again; until it is done the log does not open.
    ///
    /// # Errors
    /// `NoKey` where the identity does not open a block that the backup knows nothing of, `Refused` where the log has no
    /// erasure, and so needs none of this; else as [`crate::Log::open`].
    pub fn run(self) -> Result<Restored> {
        let log: Arc<dyn Store> = Arc::new(FileSystem::new(&self.directory));
        let keys: Arc<dyn Store> = Arc::new(FileSystem::new(&self.keys));
        let (config, _) = config::load_of_log(&*log)?;
        if !config.erasure {
            let message = "a log without erasure has no vault that could be older than it: open it as it is";
            return Err(Error::new(ErrorKind::Refused, message));
        }
        let _locks = engine::take_locks(&*log, &*keys)?;
        let state = SealState::load(&*keys)?;
        let from = first_unknown(&*keys, &state)?;
        let engine = Engine::open_as(
            log.clone(),
            keys.clone(),
            Options::default(),
            self.environment,
            Vaults::Restored,
        )?;
        engine.checkpoint(true)?;
        let reader = Reader::open_store(log)?.identity(self.identity);
        let next = reader.snapshot()?.next_subject(from)?.max(state.subjects);
        let before = engine.skip_subjects(next)?;
        engine.drain_and_finish()?;
        let removed = keys.remove(files::RESTORING).and_then(|()| keys.sync_directory(""));
        removed.map_err(|error| Error::io(format!("removing {}", keys.describe(files::RESTORING)), error))?;
        Ok(Restored { lost: next.saturating_sub(before) })
    }
}

/// The first frame that the backup knows nothing of. Opening the log replaces the seal state, which says it: so it is
/// written down first.
fn first_unknown(keys: &dyn Store, state: &SealState) -> Result<u64> {
    let name = keys.describe(files::RESTORING);
    let failed = |error| Error::io(format!("writing {name}"), error);
    if let Ok(bytes) = crate::keys::read_small(keys, files::RESTORING, 64) {
        let frame = std::str::from_utf8(&bytes).ok().and_then(|text| text.trim_end().parse().ok());
        return frame.ok_or_else(|| Error::tampered(format!("{name} is damaged: restore the backup again")));
    }
    let frame = state.chain.next_frame();
    store::replace(keys, files::RESTORING, format!("{frame}\n").as_bytes()).map_err(failed)?;
    Ok(frame)
}

//! Taking up a key directory that was restored from a backup.
//!
//! A backup lacks the keys of data subjects that were new since it was made; those are lost. It also lacks erasures since then, which
//! are carried out again from the log's events. And it does not know which numbers the log gave to data subjects since then, which
//! must not be given to anybody else: only the blocks say how far the numbers went, so somebody has to be able to open them.

use crate::erase::{HoldDifference, ResumedErasure};
use crate::format::config;
use crate::format::options::Options;
use crate::keys::default_keys;
use crate::keys::files;
use crate::keys::restoring::Unknown;
use crate::keys::seal_state::SealState;
use crate::keys::settings::{check_bounds, load, refuse_misplaced};
use crate::read::reader::Reader;
use crate::write::engine::{Directories, Engine, Vaults};
use bulla_crypto::environment::Environment;
use bulla_crypto::recipients::Identity;
use bulla_store::{Error, ErrorKind, Result};
use bulla_store::{FileSystem, Store};
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
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Restored {
    /// How many numbers of data subjects the backup knew nothing of. Their keys are lost.
    pub lost: u64,
    /// How the holds of the backup differed from what the log tells; they were brought in line with it.
    pub hold_differences: Vec<HoldDifference>,
    /// The erasure that the backup had begun, and what came of it.
    pub resumed: Option<ResumedErasure>,
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
        let (log, keys) = (FileSystem::new(&self.directory), FileSystem::new(&self.keys));
        self.run_in(Arc::new(log), Arc::new(keys))
    }

    /// Takes it up in any stores.
    ///
    /// # Errors
    /// As [`Restore::run`].
    pub fn run_in(self, log: Arc<dyn Store>, keys: Arc<dyn Store>) -> Result<Restored> {
        let (config, settings) = config::load_of_log(&*log)?;
        if !config.erasure {
            let message = "a log without erasure has no vault that could be older than it: open it as it is";
            return Err(Error::new(ErrorKind::Refused, message));
        }
        // Before anything is written down: a log whose settings are refused is not being restored.
        refuse_misplaced(&settings, &*log, &*keys)?;
        let host = load(&*keys)?;
        config::check_bounds(&*log, settings)?;
        check_bounds(&*keys, host)?;
        let directories = Directories::lock(&*log, &*keys)?;
        let state = SealState::load(&*keys)?;
        let unknown = first_unknown(&*keys, &state)?;
        let engine = Engine::open_as(
            (log.clone(), keys.clone()),
            &directories,
            Options::default(),
            self.environment,
            Vaults::Restored,
        )?;
        engine.step_checkpoint(true)?;
        let reader = Reader::open_store(log)?.identity(self.identity);
        let next = reader.reading()?.next_subject(unknown.frame)?.max(unknown.subject);
        let before = engine.skip_subjects(next)?;
        // The event gives the log something to sign. Only with the next checkpoint does the seal state say which numbers were
        // skipped.
        engine.rotate()?;
        engine.drain_and_finish()?;
        let removed = keys.remove(files::RESTORING).and_then(|()| keys.sync_directory(""));
        removed.map_err(|error| Error::io(format!("removing {}", keys.describe(files::RESTORING)), error))?;
        let (hold_differences, resumed) = (engine.hold_differences.clone(), engine.resumed.clone());
        Ok(Restored { lost: next.saturating_sub(before), hold_differences, resumed })
    }
}

/// Opening the log replaces the seal state, which says what the backup does not know; so that is written down first. Where an earlier
/// attempt was cut short, another backup may have been put in place since then. Then the earlier frame and the greater number of the two count, so
/// that neither backup is taken to know what it does not.
fn first_unknown(keys: &dyn Store, state: &SealState) -> Result<Unknown> {
    let mut unknown = Unknown { frame: state.chain.next_frame(), subject: state.subjects };
    if let Some(before) = Unknown::load(keys)? {
        unknown.frame = unknown.frame.min(before.frame);
        unknown.subject = unknown.subject.max(before.subject);
    }
    unknown.save(keys)?;
    Ok(unknown)
}

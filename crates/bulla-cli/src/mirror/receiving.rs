//! `bulla mirror --receive`: the side that has the copy.

use super::patient::Patient;
use crate::exit::{Exit, Failure};
use bulla::environment::Environment;
use bulla::mirror::wire::{self, Remote};
use bulla::store::FileSystem;
use bulla::{ErrorKind, VerifierKey};
use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// So long the sender may say nothing: it answers within ten seconds, whatever is asked.
const SILENCE: Duration = Duration::from_secs(60);

/// Has what a sender says on standard input arrive in the directory `path`.
pub(super) fn receive(path: &Path, key: Option<VerifierKey>) -> Result<Exit, Failure> {
    if io::stdin().is_terminal() {
        return Err(Failure::usage("--receive is what `bulla mirror DIR HOST:PATH` runs on the other host"));
    }
    let remote = Remote::connect(Box::new(Patient::new(io::stdin(), SILENCE)), Box::new(io::stdout()))?;
    let clock = Environment::default().clock;
    match wire::receive(&remote, Arc::new(FileSystem::new(path)), key, &*clock) {
        Ok(()) => Ok(Exit::Done),
        // Of what is no failure of the line the sender was told, who says it.
        Err(error) if error.kind() != ErrorKind::Unavailable => Ok(error.kind().into()),
        Err(error) => Err(error.into()),
    }
}

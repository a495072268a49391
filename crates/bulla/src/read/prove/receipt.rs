//! Which tree head a receipt is of: the one that the log's writer has signed as COSE, once it is that of the checkpoint.

use crate::format::config::LogConfig;
use crate::format::files::{CHECKPOINT, COSE_CHECKPOINT};
use crate::read::given::Given;
use crate::scan::cose;
use crate::scan::snapshot::Snapshot;
use bulla_crypto::environment::{Environment, Interrupt};
use bulla_proof::cose::CoseCheckpoint;
use bulla_store::{Error, ErrorKind, Result};
use std::time::Duration;

/// How often both files are read while a writer is between them: as long as two syncs take.
const ATTEMPTS: u32 = 100;
/// The wait between two attempts.
const PAUSE: Duration = Duration::from_millis(20);

/// The head, and the log under the checkpoint that it is the same as.
///
/// # Errors
/// `Refused` where there is none of the newest checkpoint, `Tampered` where it is not the log's, or of another tree of the same size; otherwise as
/// [`Snapshot::trusted`].
pub(super) fn signed_head(given: &Given, config: &LogConfig) -> Result<(CoseCheckpoint, Snapshot)> {
    let clock = Environment::default().clock;
    let name = given.store.describe(COSE_CHECKPOINT);
    for _ in 0..ATTEMPTS {
        let read = cose::read(&*given.store)?;
        let snapshot = Snapshot::trusted(given.store.clone(), config.clone(), &given.trust)?;
        let found = cose::judge(read.clone(), &*given.store, &snapshot.config, &snapshot.checkpoint)?;
        if let Some(finding) = found {
            return Err(Error::tampered(finding.to_string()));
        }
        match read {
            Some(Ok(signed)) if signed.size() == snapshot.checkpoint.size => return Ok((signed, snapshot)),
            // A writer replaces one file after the other.
            _ if snapshot.live => clock.wait(PAUSE, &Interrupt::default()),
            _ => break,
        }
    }
    let message = format!(
        "{name} is not of the newest {CHECKPOINT}: its writer was stopped between both, or is of a release that made none; \
         it is made when the log is opened for writing, as by `bulla append` without any input"
    );
    Err(Error::new(ErrorKind::Refused, message))
}

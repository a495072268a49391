//! Holds: who must not be erased for now, by whose word and why.

use crate::keys::files;
use bulla_store::read_small;
use bulla_store::{Error, ErrorKind, Result};
use bulla_store::{FileSystem, Store};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// A reason not to erase a data subject for now.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Hold {
    /// The number of the data subject.
    pub number: u64,
    /// Who says so. One person or office has at most one hold on a data subject.
    pub by: String,
    /// Why.
    pub reason: String,
    /// Since when, in seconds since the epoch, UTC.
    pub since: i64,
}

/// The holds of the log whose keys are in this directory.
///
/// # Errors
/// Where their file cannot be read.
pub fn holds(keys: impl AsRef<Path>) -> Result<Vec<Hold>> {
    let keys = FileSystem::new(keys.as_ref());
    keys.list("").map_err(|error| Error::io(format!("listing {}", keys.describe("")), error))?;
    Ok(Holds::load(&keys)?.holds)
}

/// All holds of a log, as they lie in the key directory.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Holds {
    pub(crate) holds: Vec<Hold>,
}

const LIMIT: u64 = 64 << 20;
/// The longest `by` and `reason`, in bytes.
const MAX_TEXT: usize = 1024;

impl Holds {
    /// Reads them; none where there is no file.
    ///
    /// # Errors
    /// `Tampered` where the file is damaged: who is held is then unknown, and nobody is erased.
    pub(crate) fn load(keys: &dyn Store) -> Result<Self> {
        let name = keys.describe(files::HOLDS);
        match read_small(keys, files::HOLDS, LIMIT) {
            Err(error) if error.io_error().map(io::Error::kind) == Some(io::ErrorKind::NotFound) => {
                Ok(Holds::default())
            }
            read => serde_json::from_slice(&read?).map_err(|error| {
                Error::tampered(format!("{name} is damaged: {error}; restore it from a backup"))
            }),
        }
    }

    fn save(&self, keys: &dyn Store) -> Result<()> {
        let text =
            serde_json::to_vec_pretty(self).map_err(|_| Error::invalid("the holds do not fit memory"))?;
        if text.len() as u64 > LIMIT {
            return Err(Error::invalid(format!("the holds would take more than {LIMIT} bytes")));
        }
        let written = bulla_store::replace(keys, files::HOLDS, &text);
        written.map_err(|error| Error::io(format!("writing {}", keys.describe(files::HOLDS)), error))
    }

    /// Adds a hold, durably. False where it is there already; with another reason it gets that one.
    ///
    /// # Errors
    /// `Invalid` for a text that is empty or too long, else where the store fails.
    pub(crate) fn add(&mut self, keys: &dyn Store, hold: Hold) -> Result<bool> {
        for (what, text) in [("who holds", &hold.by), ("the reason", &hold.reason)] {
            if text.trim().is_empty() || text.len() > MAX_TEXT || text.contains(|c: char| c.is_control()) {
                let message = format!("{what} has to be told in one line of 1 to {MAX_TEXT} bytes");
                return Err(Error::invalid(message));
            }
        }
        let same = |it: &Hold| it.number == hold.number && it.by == hold.by;
        match self.holds.iter_mut().find(|it| same(it)) {
            Some(held) if held.reason == hold.reason => return Ok(false),
            Some(held) => held.reason = hold.reason,
            None => self.holds.push(hold),
        }
        self.save(keys).map(|()| true)
    }

    /// Removes a hold, durably.
    ///
    /// # Errors
    /// `Refused` where there is none, else where the store fails.
    pub(crate) fn release(&mut self, keys: &dyn Store, number: u64, by: &str) -> Result<()> {
        let before = self.holds.len();
        self.holds.retain(|hold| hold.number != number || hold.by != by);
        if self.holds.len() == before {
            return Err(Error::new(ErrorKind::Refused, format!("there is no such hold by `{by}`")));
        }
        self.save(keys)
    }

    /// Checks that none of these data subjects is held.
    ///
    /// # Errors
    /// `Refused`, saying by whom and why.
    pub(crate) fn refuse(&self, numbers: &[u64]) -> Result<()> {
        let Some(hold) = self.holds.iter().find(|hold| numbers.contains(&hold.number)) else { return Ok(()) };
        let Hold { number, by, reason, .. } = hold;
        Err(Error::new(
            ErrorKind::Refused,
            format!("data subject {number} is held by {by}: {reason}; release the hold first"),
        ))
    }
}

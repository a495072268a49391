//! An erasure that is under way: what the log will record of it is kept in the key directory until the log has it.

use crate::format::config::LogConfig;
use crate::format::event::{Event, Remains};
use crate::format::json;
use crate::keys::files;
use bulla_proof::checkpoint::VerifierKey;
use bulla_proof::hash::{Hash, sha256};
use bulla_proof::order::Order;
use bulla_store::Store;
use bulla_store::{Error, Result};
use bulla_vault::Unconfirmed;
use serde::{Deserialize, Serialize};
use std::io;

/// Written before the keys are destroyed, removed after the event is under a checkpoint.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pending {
    /// The numbers of the data subjects, ascending.
    pub(crate) numbers: Vec<u64>,
    /// The places in the order's list of the names that were theirs, ascending.
    pub(crate) carried_out: Vec<u32>,
    /// The order, a signed note.
    pub(crate) order: String,
}

/// What lies in the key directory, with the digest of the file, which the vault has in its record of the erasure.
pub(crate) struct Written {
    pub(crate) pending: Pending,
    digest: Hash,
}

impl Written {
    /// What the erasure was begun with, or that this is something else: whoever can write the file could otherwise have an erasure
    /// told of by an order for somebody else.
    pub(crate) fn of(self, begun: &Unconfirmed) -> std::result::Result<Pending, String> {
        match self.digest == begun.written && self.pending.numbers == begun.numbers {
            true => Ok(self.pending),
            false => Err("it is not what this erasure was begun with".to_owned()),
        }
    }
}

/// The most bytes of the file: an event is no longer, either.
const LIMIT: u64 = 1 << 20;

impl Pending {
    /// Reads it back, if there is one; where it is damaged, says so.
    ///
    /// # Errors
    /// `Unavailable` where it cannot be read.
    pub(crate) fn load(keys: &dyn Store) -> Result<Option<std::result::Result<Written, String>>> {
        let bytes = match files::read_if_there(keys, files::ERASURE, LIMIT) {
            Err(error) if error.io_error().is_some() => return Err(error),
            Err(_) => return Ok(Some(Err(format!("it is damaged: it has more than {LIMIT} bytes")))),
            Ok(bytes) => bytes,
        };
        let written = |bytes: Vec<u8>| match json::object(&bytes) {
            Ok(pending) => Ok(Written { pending, digest: sha256(&[&bytes]) }),
            Err(error) => Err(format!("it is damaged: {error}")),
        };
        Ok(bytes.map(written))
    }

    /// What the log is to tell of it.
    ///
    /// # Errors
    /// Says what is wrong where no reader would take that: the file lies beside the vault, and nothing vouches for what is in it
    /// but the order's signature.
    pub(crate) fn event(&self, key: &VerifierKey, config: &LogConfig) -> std::result::Result<Event, String> {
        let Pending { numbers, carried_out, order } = self.clone();
        let ordered =
            Order::open(order.as_bytes(), key).map_err(|error| format!("the order in it: {error}"))?;
        ordered
            .check_erasure(config.id, &numbers, &carried_out)
            .map_err(|error| format!("what is in it: {error}"))?;
        let remains = Remains::all(config.common.is_some());
        let event = Event::Erased { numbers, carried_out, order, remains };
        match Event::decode(&event.encode()) {
            Ok(_) => Ok(event),
            Err(error) => Err(format!("what is in it: {error}")),
        }
    }

    /// Makes it durable. Returns the digest of the file.
    ///
    /// # Errors
    /// Where the store fails.
    pub(crate) fn save(&self, keys: &dyn Store) -> Result<Hash> {
        let text = serde_json::to_vec(self).map_err(|_| Error::invalid("the order does not fit memory"))?;
        files::replace(keys, files::ERASURE, &text)?;
        Ok(sha256(&[&text]))
    }

    /// Removes it, once the log has the event.
    ///
    /// # Errors
    /// Where the store fails.
    pub(crate) fn remove(keys: &dyn Store) -> Result<()> {
        match keys.remove(files::ERASURE) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Error::io(format!("removing {}", keys.describe(files::ERASURE)), error))
            }
            _ => Ok(()),
        }
    }
}

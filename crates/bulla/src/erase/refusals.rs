//! Why nobody is erased: what the host says when it is asked to, and whoever looks beforehand says, too.

use crate::format::config::LogConfig;
use bulla_proof::checkpoint::VerifierKey;
use bulla_store::{Error, ErrorKind, Result};
use std::fmt::Display;

/// The key that orders to erase from a log are signed with.
///
/// # Errors
/// `Refused` where nothing of the log can be erased.
pub(crate) fn erasure_key(config: &LogConfig) -> Result<&VerifierKey> {
    if !config.erasure {
        return Err(without_erasure());
    }
    let key = config.erasure_key.as_ref();
    key.ok_or_else(|| refused("the log has no `erasure_key` that could order an erasure"))
}

/// Of a log that has no keys for each data subject.
pub(crate) fn without_erasure() -> Error {
    refused("the log has `erasure = \"off\"`: nothing of it can be erased")
}

/// What is said of somebody whom the vault does not know.
pub(crate) fn nobody_known(keys_lost: bool) -> Error {
    refused(match keys_lost {
        false => {
            "the vault knows nobody of that name: nobody was logged by it, or they were erased before; \
             `bulla events DIR --kind erased` lists erasures, by number"
        }
        true => {
            "the vault knows nobody of that name, who may be known or not, which cannot be told: keys are lost that the log \
             does not say were erased; restore the newest `vault` and `roots`, where there are any that have them"
        }
    })
}

/// What is said of somebody who is held.
pub(crate) fn held(number: u64, by: &str, reason: &str) -> Error {
    refused(&format!("data subject {number} is held by {by}: {reason}; release the hold first"))
}

/// What is said of an order that was given before events were made which are lost; `lost` says which frames those are among.
pub(crate) fn older_than_lost(lost: &dyn Display) -> Error {
    refused(&format!(
        "{lost}: one of them may have told that this order was carried out, which was given before, and whoever has come back since is \
         not to be erased by it: have a new order given"
    ))
}

pub(crate) fn refused(message: &str) -> Error {
    Error::new(ErrorKind::Refused, message)
}

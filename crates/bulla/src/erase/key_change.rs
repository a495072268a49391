//! A change of the key that orders erasures.

use crate::format::config::{self, ERASURE_KEY_SUFFIX, default_origin};
use bulla_crypto::environment::Environment;
use bulla_crypto::signing::SigningKey;
use bulla_proof::checkpoint::VerifierKey;
use bulla_proof::commitment::LogId;
use bulla_proof::key_order::KeyOrder;
use bulla_store::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

/// A change of the key that orders erasures, for [`crate::Configure::erasure_key`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErasureKeyChange {
    to: String,
    /// The order, as a signed note; empty where nobody has the key before any more.
    order: String,
}

impl ErasureKeyChange {
    /// Orders, with the erasure key of `log`, that `to` counts from now on. [`ErasureKeyChange::note`] is public, and has all of it.
    ///
    /// # Errors
    /// `Invalid` where the two keys are one, and where `to` is by its name the key that signs the log's checkpoints.
    pub fn give(key: &SigningKey, log: LogId, to: &VerifierKey, environment: &Environment) -> Result<Self> {
        // An erasure key that was made for a log is named after its origin, and so is a log's own, which is that.
        let origin = key.verifier().name().strip_suffix(ERASURE_KEY_SUFFIX);
        if origin == Some(to.name()) || to.name() == default_origin(log) {
            return Err(config::own_key(to));
        }
        let seconds = environment.clock.now().div_euclid(1_000_000_000).try_into().unwrap_or(0);
        let order = KeyOrder { log, seconds, from: key.verifier().clone(), to: to.clone() };
        let order = order.sign(|text| key.sign(text)).map_err(|error| Error::invalid(error.to_string()))?;
        Ok(ErasureKeyChange { to: to.to_string(), order })
    }

    /// Reads an order that was given elsewhere.
    ///
    /// # Errors
    /// `Invalid` where it is none, or is not signed with the key that it replaces.
    pub fn parse(note: &str) -> Result<Self> {
        let order = KeyOrder::open(note.as_bytes()).map_err(|error| Error::invalid(error.to_string()))?;
        Ok(ErasureKeyChange { to: order.to.to_string(), order: note.to_owned() })
    }

    /// Changes the key to `to` without an order: the key before is lost. Whoever verifies the log takes it for a violation, unless
    /// they know the new key from elsewhere.
    pub fn unordered(to: &VerifierKey) -> Self {
        ErasureKeyChange { to: to.to_string(), order: String::new() }
    }

    /// The key that counts from then on.
    pub fn to(&self) -> &str {
        &self.to
    }

    /// The order, a signed note of [`bulla_proof::key_order`]; empty where there is none.
    pub fn note(&self) -> &str {
        &self.order
    }

    /// The same, read.
    pub(crate) fn key(&self) -> Result<VerifierKey> {
        self.to.parse().map_err(|error| Error::invalid(format!("the erasure key: {error}")))
    }

    /// That the order, where there is one, is for this log, which has the key `from`, and orders this change.
    ///
    /// # Errors
    /// `Refused` where it is not.
    pub(crate) fn check(&self, log: LogId, from: &VerifierKey) -> Result<()> {
        let refused = |why: String| {
            Err(Error::new(ErrorKind::Refused, format!("the order to change the erasure key: {why}")))
        };
        if self.order.is_empty() {
            return Ok(());
        }
        let order = match KeyOrder::open(self.order.as_bytes()) {
            Ok(order) => order,
            Err(error) => return refused(error.to_string()),
        };
        if order.log != log {
            return refused(format!("it is for the log {}, not for {log}", order.log));
        }
        if order.from != *from {
            return refused(format!("it is signed with {}, and has to be signed with {from}", order.from));
        }
        match order.to.to_string() == self.to {
            true => Ok(()),
            false => refused(format!("it is for {}, not for {}", order.to, self.to)),
        }
    }
}

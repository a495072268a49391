//! Keys: the log's signing key, the seal chain, epoch keys, and the recipients they are wrapped to.
//!
//! No key type here implements `Debug` or `Display`, and every one is zeroised when dropped. Those of an epoch live on
//! the heap, where a move copies a pointer, and what computing with them leaves on the stack is overwritten: a host that
//! has closed an epoch has nothing left that opens it.

mod age_file;
pub mod epoch;
pub mod group;
pub mod identities;
pub mod plugin;
pub mod prompt;
pub(crate) mod pseudonym;
pub mod recipients;
pub(crate) mod scrub;
pub mod seal_chain;
pub mod signing;
mod stanza;

/// File names in the key directory.
pub mod files {
    /// The Ed25519 signing key.
    pub const SIGNING: &str = "signing.key";
    /// The seal chain's current state.
    pub const SEAL_STATE: &str = "seal.state";
    /// The seal chain's first state, which belongs elsewhere.
    pub const SEAL_KEY: &str = "seal.key";
    /// The embedded default's age identity.
    pub const IDENTITY: &str = "identity.age";
    /// The key of the pseudonyms, where a rule for a field makes some.
    pub const PSEUDONYM: &str = "pseudonym.key";
    /// The embedded default's erasure key, which orders erasures.
    pub const ERASURE_KEY: &str = "erasure.key";
    /// An erasure that the log does not tell of yet.
    pub const ERASURE: &str = "erasure.pending";
    /// A restored key directory is being taken up, and must not be written with before that is done.
    pub const RESTORING: &str = "restoring";
    /// Who must not be erased for now.
    pub const HOLDS: &str = "holds";
    /// Taken by the writer: one key directory serves one writer.
    pub const LOCK: &str = "LOCK";
}

use crate::error::{Error, Result};
use crate::store::Store;

/// Reads a small file of `store` whole.
///
/// # Errors
/// `Unavailable` where it is missing or cannot be read, `Invalid` where it is over `limit` bytes.
pub(crate) fn read_small(store: &dyn Store, path: &str, limit: u64) -> Result<Vec<u8>> {
    let name = store.describe(path);
    let failed = |error| Error::io(format!("reading {name}"), error);
    let file = store.open(path).map_err(failed)?;
    let length = file.length().map_err(failed)?;
    if length > limit {
        return Err(Error::invalid(format!("{name} has {length} bytes; such a file has at most {limit}")));
    }
    let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
    file.read_exact_at(&mut bytes, 0).map_err(failed)?;
    Ok(bytes)
}

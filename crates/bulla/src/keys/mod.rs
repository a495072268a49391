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

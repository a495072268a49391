//! File names in the key directory.

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
/// Settings that name paths, or that what the host promises rests on.
pub const SETTINGS: &str = "settings.toml";
/// Who must not be erased for now.
pub const HOLDS: &str = "holds";
/// The database of a log with erasure, a directory.
pub const VAULT: &str = "vault";
/// The roots of the vault's keys, a directory.
pub const ROOTS: &str = bulla_vault::ROOTS;
/// Taken by the writer: one key directory serves one writer.
pub const LOCK: &str = "LOCK";

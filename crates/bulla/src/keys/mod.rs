//! A log's keys at rest: the files of the key directory, the seal chain's state, the key of its pseudonyms.

pub mod files;
pub(crate) mod pseudonym;
pub(crate) mod seal_state;
pub(crate) mod vault;

pub use bulla_crypto::{epoch, group, identities, plugin, prompt, recipients, seal_chain, signing};

//! Keys, ciphers and hashes: the seal chain, epoch and group keys, age, signing; and the [`environment`], the only way to
//! time, randomness and the cipher.
//!
//! No key type here implements `Debug` or `Display`, and every one is zeroised when dropped. Those of an epoch live on
//! the heap, where a move copies a pointer, and what computing with them leaves on the stack is overwritten: a host that
//! has closed an epoch has nothing left that opens it.
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests look at disks and clocks"))]

mod age_file;
mod cipher;
pub mod clock;
pub mod environment;
pub mod epoch;
pub mod group;
pub mod hashing;
pub mod identities;
pub mod key_text;
pub mod ml_dsa;
pub mod plugin;
pub mod prompt;
mod random;
pub mod recipients;
pub mod scrub;
pub mod seal_chain;
pub mod secret_line;
pub mod signing;
mod stanza;
pub mod subject;
pub mod yielding;

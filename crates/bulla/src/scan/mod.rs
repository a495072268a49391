//! Reading: untrusted bytes become located frames, then verified ones, then opened blocks, then rows.
//!
//! [`open::Verified`] can only be made from a frame whose body hashes to what the tree's commitment says, and
//! blocks are opened from it alone: nothing can be read that was not verified.

pub(crate) mod carried_out;
pub(crate) mod checkpoint;
pub(crate) mod cose;
pub(crate) mod cosignatures;
pub(crate) mod cursor;
pub(crate) mod earlier;
pub(crate) mod erasure_keys;
pub(crate) mod erasures;
pub(crate) mod events;
pub mod finding;
pub(crate) mod full;
pub(crate) mod given_up;
pub(crate) mod keyless;
pub(crate) mod located;
pub(crate) mod lost;
pub(crate) mod manifest;
pub(crate) mod metered;
pub(crate) mod open;
pub(crate) mod own_keys;
pub(crate) mod paths;
pub(crate) mod pin;
pub(crate) mod pool;
pub(crate) mod query;
pub(crate) mod redaction;
pub(crate) mod seals;
pub(crate) mod snapshot;
pub(crate) mod sources;
pub(crate) mod stored_proof;
pub(crate) mod stored_tree;
pub(crate) mod trust;
pub(crate) mod unread_events;
pub(crate) mod unreferenced;
pub(crate) mod unsigned;
pub(crate) mod unvouched;

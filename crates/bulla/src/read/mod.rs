//! Reading: what verification, queries, exports, followers and proofs make of a log that was scanned.

pub(crate) mod epochs;
pub(crate) mod erasure_preview;
pub(crate) mod events;
pub(crate) mod export;
pub(crate) mod follow;
pub(crate) mod given;
pub(crate) mod grant;
pub(crate) mod holds;
pub(crate) mod info;
pub(crate) mod opened_proof;
pub(crate) mod pins;
pub(crate) mod prove;
pub(crate) mod pseudonyms;
pub(crate) mod reader;
pub(crate) mod reading;
pub(crate) mod rekor;
pub(crate) mod select;
pub(crate) mod sources;
pub(crate) mod standing;
pub(crate) mod verify;

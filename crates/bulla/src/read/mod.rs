//! Reading: what verification, queries, exports, followers and proofs make of a log that was scanned.

pub(crate) mod disclosed;
pub(crate) mod epochs;
pub(crate) mod export;
pub(crate) mod follow;
pub(crate) mod grant;
pub(crate) mod info;
pub(crate) mod prove;
pub(crate) mod pseudonyms;
pub(crate) mod reader;
pub(crate) mod verify;

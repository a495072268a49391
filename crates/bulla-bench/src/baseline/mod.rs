//! What Bulla is compared with.

pub(crate) mod conventional;
mod files;
mod merkle;
mod owned;
pub(crate) mod sqlite;

//! A tamper-evident, encrypted, compressed audit log for systems that handle personal data.

pub mod error;
pub mod store;

pub use bulla_proof::{Entry, EntryError};
pub use error::{Error, ErrorKind, Result};

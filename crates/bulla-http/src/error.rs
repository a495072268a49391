//! Why there is no answer.

use std::fmt;

/// What kind of failure an [`Error`] is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// What the caller gave cannot be used: an address, or certificates.
    Invalid,
    /// The service was not reached, or the connection ended: asking again later may help.
    Unreachable,
    /// The service did not answer in time.
    Timeout,
    /// The service could not show that it is whom the address names.
    Certificate,
    /// What the service answered is no answer, or a longer one than is read.
    Answer,
}

/// Why there is no answer, naming the address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error { kind, message: message.into() }
    }

    /// What kind of failure this is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

//! Why work inside a transaction ends early.

use bulla_store::Error;

pub(super) enum TransactionError {
    /// The memory map has no room for more. After it has grown, the work is done again.
    Full,
    /// The keys at hand do not belong to the snapshot. The work is done again with the keys that do; where there are no others, this
    /// error is what the caller gets.
    Stale(Error),
    Failed(Error),
}

impl From<Error> for TransactionError {
    fn from(error: Error) -> Self {
        TransactionError::Failed(error)
    }
}

impl From<heed::Error> for TransactionError {
    fn from(error: heed::Error) -> Self {
        match error {
            heed::Error::Mdb(heed::MdbError::MapFull) => TransactionError::Full,
            error => TransactionError::Failed(of_heed("the vault", error)),
        }
    }
}

/// An error of LMDB in terms of what the caller can do.
pub(super) fn of_heed(what: &str, error: heed::Error) -> Error {
    use heed::MdbError::{Corrupted, Invalid, PageNotFound, VersionMismatch};
    match error {
        heed::Error::Io(error) => Error::io(what, error),
        heed::Error::Mdb(Corrupted | Invalid | PageNotFound | VersionMismatch) => {
            Error::tampered(format!("{what} is damaged ({error}): restore it from a backup"))
        }
        error => Error::unavailable(format!("{what}: {error}")),
    }
}

impl TransactionError {
    /// The error for a caller who cannot do the work again.
    pub(super) fn into_error(self, what: &str) -> Error {
        match self {
            TransactionError::Full => Error::unavailable(format!("{what}: the map is full")),
            TransactionError::Stale(error) | TransactionError::Failed(error) => error,
        }
    }
}

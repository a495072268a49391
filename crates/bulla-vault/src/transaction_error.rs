//! Why work inside a transaction ends early.

use rusqlite::{Error as Sqlite, ErrorCode};

use bulla_store::Error;

pub(super) enum TransactionError {
    /// The database is not what was written to it.
    Damaged(String),
    /// The keys at hand do not belong to the snapshot. The work is done again with the keys that do; where there are no others,
    /// the database is damaged, in the way that this says.
    Stale(String),
    /// The system failed, with this message of SQLite.
    Medium(String),
    Failed(Error),
}

impl From<Error> for TransactionError {
    fn from(error: Error) -> Self {
        TransactionError::Failed(error)
    }
}

impl From<Sqlite> for TransactionError {
    fn from(error: Sqlite) -> Self {
        match is_of_the_medium(&error) {
            true => TransactionError::Medium(error.to_string()),
            false => TransactionError::Damaged(error.to_string()),
        }
    }
}

/// Whether an error of SQLite says that the system failed. Whatever else it may say, to statements that never change, is that
/// the file holds something else than what was written: a malformed page, a table that is not there, a text for bytes.
fn is_of_the_medium(error: &Sqlite) -> bool {
    use ErrorCode::{
        CannotOpen, DatabaseBusy, DatabaseLocked, DiskFull, FileLockingProtocolFailed, NoLargeFileSupport,
        OperationInterrupted, OutOfMemory, PermissionDenied, ReadOnly, SystemIoFailure,
    };
    matches!(
        error.sqlite_error_code(),
        Some(
            CannotOpen
                | DatabaseBusy
                | DatabaseLocked
                | DiskFull
                | FileLockingProtocolFailed
                | NoLargeFileSupport
                | OperationInterrupted
                | OutOfMemory
                | PermissionDenied
                | ReadOnly
                | SystemIoFailure
        )
    )
}

/// The database is not what was written to it.
pub(super) fn damaged(what: impl Into<String>) -> TransactionError {
    TransactionError::Damaged(what.into())
}

impl TransactionError {
    /// The error for a caller who cannot do the work again, about the database in the file `name`.
    ///
    /// Damage is `Unavailable`, and not `Tampered`: it is the vault's, and says nothing against the log.
    pub(super) fn into_error(self, name: &str) -> Error {
        match self {
            TransactionError::Damaged(what) | TransactionError::Stale(what) => Error::unavailable(format!(
                "{name} is damaged ({what}): restore `vault` and `roots`, both from a replica or both from one backup"
            )),
            TransactionError::Medium(what) => Error::unavailable(format!("{name}: {what}")),
            TransactionError::Failed(error) => error,
        }
    }
}

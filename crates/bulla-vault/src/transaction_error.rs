//! Why work inside a transaction ends early.

use rusqlite::{Error as Sqlite, ErrorCode, ffi};

use super::directory;
use super::patience::PATIENCE;
use bulla_store::Error;

pub(super) enum TransactionError {
    /// The database is not what was written to it.
    Damaged(String),
    /// The keys at hand do not belong to the snapshot. The work is done again with the keys that do; where there are no others,
    /// the database is damaged, in the way that this says.
    Stale(String),
    /// The system failed: in what, and what to do about it.
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
        if is_of_the_medium(&error) {
            return TransactionError::Medium(explained(&error));
        }
        TransactionError::Damaged(match error.sqlite_error_code() {
            // SQLite tells a page that the system failed to read (EIO) in the same way as one that is malformed.
            Some(ErrorCode::DatabaseCorrupt) => {
                format!("{error}, or the medium fails to read it: see the kernel's log, and try again first")
            }
            _ => error.to_string(),
        })
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

/// A failure of the system as SQLite tells it, at which operation on the files it was, and what to do about it.
pub(super) fn explained(error: &Sqlite) -> String {
    let doing = match error {
        Sqlite::SqliteFailure(failure, _) => operation(failure.extended_code),
        _ => None,
    };
    let doing = doing.map_or_else(String::new, |doing| format!(" while {doing}"));
    let advice = match error.sqlite_error_code() {
        Some(ErrorCode::ReadOnly) if is_of_a_journal(error) => {
            ": a file vault.db-journal lies beside it, which is none of its own: remove that".to_owned()
        }
        Some(ErrorCode::DiskFull) => ": make room on its disk".to_owned(),
        Some(ErrorCode::CannotOpen) if directory::lacks_descriptors() => {
            ": this process may have no more files open at once: raise the limit (`ulimit -n`)".to_owned()
        }
        Some(ErrorCode::SystemIoFailure) => {
            ": the operating system refused that; look at the medium (the kernel's log tells of one that fails), at limits on \
             the size of files, and at permissions, and then try again; a writer has to open the log again for that"
                .to_owned()
        }
        Some(
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed,
        ) => format!(
            ": it was tried for up to {} s; another process has it, or the file system fails to lock or unlock files: see who has \
             it open (`fuser`), end that, and try again",
            PATIENCE.as_secs()
        ),
        _ => String::new(),
    };
    format!("{error}{doing}{advice}")
}

/// Whether SQLite would first undo what a file says that was begun: of a vault there is no such file.
fn is_of_a_journal(error: &Sqlite) -> bool {
    matches!(error, Sqlite::SqliteFailure(failure, _) if failure.extended_code == ffi::SQLITE_READONLY_ROLLBACK)
}

/// What SQLite was at, by its extended code.
fn operation(code: i32) -> Option<&'static str> {
    Some(match code {
        ffi::SQLITE_IOERR_READ | ffi::SQLITE_IOERR_SHORT_READ => "reading",
        ffi::SQLITE_IOERR_WRITE => "writing",
        ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC => "syncing",
        ffi::SQLITE_IOERR_TRUNCATE => "setting the length of a file",
        ffi::SQLITE_IOERR_FSTAT | ffi::SQLITE_IOERR_ACCESS => "looking at a file",
        ffi::SQLITE_IOERR_DELETE => "removing a file",
        ffi::SQLITE_IOERR_LOCK
        | ffi::SQLITE_IOERR_RDLOCK
        | ffi::SQLITE_IOERR_UNLOCK
        | ffi::SQLITE_IOERR_CHECKRESERVEDLOCK
        | ffi::SQLITE_IOERR_SHMLOCK => "locking or unlocking",
        ffi::SQLITE_IOERR_SHMOPEN | ffi::SQLITE_IOERR_SHMSIZE | ffi::SQLITE_IOERR_SHMMAP => {
            "making the memory that processes share, vault.db-shm"
        }
        _ => return None,
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Nobody takes an older backup for a fault that passes.
    #[test]
    fn what_may_be_a_medium_that_fails_is_said_beside_the_damage() {
        let error = Sqlite::SqliteFailure(ffi::Error::new(ffi::SQLITE_CORRUPT), None);
        let error = TransactionError::from(error).into_error("keys/vault/vault.db").to_string();
        for told in ["is damaged", "or the medium fails to read it", "try again first", "restore `vault`"] {
            assert!(error.contains(told), "{error}");
        }
    }

    /// In words, with what to do; and never as damage.
    #[test]
    fn a_failure_of_the_system_says_at_what_it_was_and_what_to_do() {
        for (code, told) in [
            (ffi::SQLITE_IOERR_WRITE, ["while writing", "look at the medium"]),
            (ffi::SQLITE_IOERR_READ, ["while reading", "look at the medium"]),
            (ffi::SQLITE_IOERR_FSYNC, ["while syncing", "then try again"]),
            (ffi::SQLITE_IOERR_SHMMAP, ["vault.db-shm", "look at the medium"]),
            (ffi::SQLITE_IOERR_UNLOCK, ["while locking or unlocking", "look at the medium"]),
            (ffi::SQLITE_FULL, ["full", "make room"]),
            (ffi::SQLITE_READONLY_ROLLBACK, ["vault.db-journal", "remove that"]),
            (ffi::SQLITE_PROTOCOL, ["tried for up to 10 s", "see who has it open"]),
            (ffi::SQLITE_BUSY, ["tried for up to 10 s", "see who has it open"]),
        ] {
            let error = TransactionError::from(Sqlite::SqliteFailure(ffi::Error::new(code), None));
            let error = error.into_error("keys/vault/vault.db").to_string();
            let named = error.starts_with("keys/vault/vault.db: ");
            assert!(named && told.iter().all(|told| error.contains(told)), "{code}: {error}");
        }
    }
}

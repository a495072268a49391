//! The vault as its replicas see it, and how far a vault has come.

use std::sync::Arc;

use super::database::Database;
use super::keys::Keys;
use super::record::{Changes, Meta};
use super::roots::Roots;
use super::transaction_error::TransactionError;

/// The vault that is replicated, as it is when its replicas are opened, or take what it has committed.
pub(super) struct Original<'o> {
    pub(super) database: &'o Database,
    pub(super) roots: &'o Roots,
    pub(super) keys: Arc<Keys>,
    pub(super) mark: Mark,
}

/// How far a vault has come. Two vaults of one log with the same mark have the same content.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Mark {
    pub(super) meta: Meta,
    pub(super) changes: Changes,
}

impl Mark {
    /// The mark of a vault; `None` where it was not made to its end.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub(super) fn read(database: &Database) -> Result<Option<Self>, TransactionError> {
        database.read(|txn| {
            let Some(meta) = Meta::peek(txn)? else { return Ok(None) };
            Ok(Some(Mark { meta: meta.content, changes: Changes::peek(txn)? }))
        })
    }

    /// Whether it knows of something that the other one does not.
    pub(super) fn is_ahead_of(&self, other: &Mark) -> bool {
        let Mark { meta, changes } = other;
        self.meta.generation > meta.generation
            || self.meta.next_number > meta.next_number
            || self.changes.count > changes.count
    }
}

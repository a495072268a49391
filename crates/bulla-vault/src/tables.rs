//! The databases of a vault's LMDB environment, by name.

use heed::Database;
use heed::types::Bytes;

/// A database of bytes to bytes.
pub(super) type Table = Database<'static, Bytes, Bytes>;

/// The databases.
pub(super) struct Tables {
    pub(super) meta: Table,
    pub(super) rows: Table,
    pub(super) index: Table,
    pub(super) buckets: Table,
}

/// The name of a database, which is the same in a vault and its replicas.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TableName {
    Meta,
    Rows,
    Index,
    Buckets,
}

impl Tables {
    /// The database of that name.
    pub(super) fn named(&self, name: TableName) -> &Table {
        match name {
            TableName::Meta => &self.meta,
            TableName::Rows => &self.rows,
            TableName::Index => &self.index,
            TableName::Buckets => &self.buckets,
        }
    }
}

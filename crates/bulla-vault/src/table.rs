//! The tables of a vault's database: numbers to bytes, and nothing else.

/// A table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Table {
    /// What the vault is, and how far it has come.
    Records = 1,
    /// Keys and pseudonyms, sixteen neighbouring numbers a row.
    Rows = 2,
    /// From pseudonyms to numbers, 256 rows a bucket.
    Index = 3,
    /// Which bucket of the index a pseudonym belongs to.
    Buckets = 4,
}

/// All of them, in the order in which they are made.
pub(super) const TABLES: [Table; 4] = [Table::Records, Table::Rows, Table::Index, Table::Buckets];

/// A statement about one table.
macro_rules! statement {
    ($table:expr, $before:literal, $after:literal) => {
        match $table {
            Table::Records => concat!($before, "records", $after),
            Table::Rows => concat!($before, "rows", $after),
            Table::Index => concat!($before, "entries", $after),
            Table::Buckets => concat!($before, "buckets", $after),
        }
    };
}

impl Table {
    /// What it is called in the database.
    pub(super) fn name(self) -> &'static str {
        statement!(self, "", "")
    }

    /// How it is made. What the database says of itself is compared with this, byte for byte.
    pub(super) fn schema(self) -> &'static str {
        statement!(self, "CREATE TABLE ", " (id INTEGER PRIMARY KEY, sealed BLOB NOT NULL) STRICT")
    }

    pub(super) fn get(self) -> &'static str {
        statement!(self, "SELECT sealed FROM ", " WHERE id = ?1")
    }

    /// The row with the greatest id that is not above the given one.
    pub(super) fn floor(self) -> &'static str {
        statement!(self, "SELECT id, sealed FROM ", " WHERE id <= ?1 ORDER BY id DESC LIMIT 1")
    }

    pub(super) fn range(self) -> &'static str {
        statement!(self, "SELECT id, sealed FROM ", " WHERE id BETWEEN ?1 AND ?2 ORDER BY id")
    }

    pub(super) fn put(self) -> &'static str {
        statement!(
            self,
            "INSERT INTO ",
            " VALUES (?1, ?2) ON CONFLICT DO UPDATE SET sealed = excluded.sealed"
        )
    }

    pub(super) fn delete_range(self) -> &'static str {
        statement!(self, "DELETE FROM ", " WHERE id BETWEEN ?1 AND ?2")
    }
}

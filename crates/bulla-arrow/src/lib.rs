//! Entries of the Bulla audit log as columns of Arrow arrays: what a query gives ([`Columns`]), and what is appended
//! ([`Rows`]). `docs/operating.md`, "Exports", has the columns.

mod columns;
mod rows;

pub use columns::{Columns, schema};
pub use rows::Rows;

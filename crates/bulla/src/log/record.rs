//! Exports that the log itself tells of.

use crate::control::through_writer;
use crate::format::event::ExportRecord;
use crate::format::options::Options;
use crate::log::Log;
use crate::scan::query::Query;
use bulla_crypto::environment::Environment;
use bulla_store::FileSystem;
use bulla_store::Result;
use std::path::Path;
use std::sync::Arc;

impl ExportRecord {
    /// Of so many entries that a query chose, in this form.
    pub fn new(entries: u64, query: &Query, format: &str) -> Self {
        let besides = [
            ("time", query.from.is_some() || query.to.is_some()),
            ("entries", query.first_entry.is_some() || query.last_entry.is_some()),
        ];
        let besides = besides.into_iter().filter(|(_, used)| *used).map(|(name, _)| name);
        let used = query.fields.names().chain(besides).map(str::to_owned);
        ExportRecord { entries, filters: used.collect(), format: format.to_owned() }
    }
}

/// Records in the log in `directory`, whose keys are in `keys`, that entries of it were given out: through the writer
/// where one has it open, and otherwise by opening it. A published checkpoint covers the record when this returns.
///
/// # Errors
/// `Invalid` where the record is none, else as [`Log::open`] and [`crate::control::Client::connect`].
pub fn record_export(
    directory: impl AsRef<Path>,
    keys: impl AsRef<Path>,
    environment: Environment,
    record: &ExportRecord,
) -> Result<()> {
    let (directory, keys) = (directory.as_ref(), keys.as_ref());
    let alone = || {
        let store = |path| Arc::new(FileSystem::new(path));
        let log = Log::open_stores(store(directory), store(keys), Options::default(), environment.clone())?;
        log.record_export(record)?;
        log.close()
    };
    through_writer(keys, |writer| writer.record_export(record), alone)
}

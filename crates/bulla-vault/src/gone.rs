//! Numbers that nobody has, and why.

use super::record::Skipped;
use super::snapshot::Snapshot;
use super::transaction_error::TransactionError;

/// Why nobody has a number that was given.
pub(super) struct Gone<'g, F> {
    skipped: Skipped,
    erasing: &'g [u64],
    erased: &'g F,
}

impl<'g, F: Fn(u64) -> bool> Gone<'g, F> {
    pub(super) fn read(snapshot: &'g Snapshot<'_>, erased: &'g F) -> Result<Self, TransactionError> {
        let skipped = Skipped::read(snapshot.txn, snapshot.keys)?;
        let erasing = snapshot.erasing.as_ref().filter(|erasing| erasing.erased);
        Ok(Gone { skipped, erasing: erasing.map_or(&[], |erasing| &erasing.numbers), erased })
    }

    /// Whether it was left out, or whoever had it was erased.
    pub(super) fn has(&self, number: u64) -> bool {
        (self.erased)(number)
            || self.erasing.binary_search(&number).is_ok()
            || self.skipped.end_of(number).is_some()
    }
}

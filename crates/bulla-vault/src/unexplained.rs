//! Numbers that nobody has, and nothing says why: what told of their erasure is lost with the newest part of the log.
//!
//! - A number counts as one of these only where row and index agree that nobody has it. Where the index leads to it, its row is older than
//!   the rest; that stays damage, as does a row that is missing or does not open. So it is with a number that the index does not lead to
//!   yet: an erasure has it take in everybody.
//! - They are left out only where somebody says that a part of the log is lost: otherwise they are damage too ([`super::Damage`]).

use std::collections::BTreeSet;
use std::ops::Range;

use super::Vault;
use super::gone::Gone;
use super::index::{self, Bucket};
use super::record::Skipped;
use super::rows::{self, RowOpener};
use super::snapshot::Snapshot;
use super::table::Table;
use super::transaction_error::TransactionError;
use bulla_crypto::group::{Followed, PartId};
use bulla_proof::tree::TreeHead;
use bulla_store::Result;

impl Vault {
    /// What [`Vault::skipped`] says once the unexplained numbers are left out ([`Vault::mark_given_up`]).
    ///
    /// # Errors
    /// As [`Vault::mark_given_up`]; nothing is written.
    pub fn skipped_with_unexplained(&self, erased: &dyn Fn(u64) -> bool) -> Result<Vec<Range<u64>>> {
        self.check_owner()?;
        let skipped = self.shared.snapshot(|snapshot| snapshot.skipped_with_unexplained(erased))?;
        Ok(skipped.into_ranges())
    }

    /// Marks the vault as that with which a part of the log is given up: `given_up` has its id, beside those of the parts that the log tells of.
    /// From then on the vault has followed nothing: what it followed was another log than the one that is left. Events that it passed over stay so
    /// for good ([`Vault::unfollowed`]): whatever they told is lost. So it is with all of that part where the vault `is_behind`. It may be done again.
    ///
    /// With `erased` it also leaves out the numbers that nobody has and nothing says why: where the log has lost what told that they were
    /// erased, it can erase others after this. It says of a number whether the log tells that its key was destroyed. Nobody can tell these
    /// numbers from somebody's whose row was put back to what it was before they came, and the index's row with it. So this is for whoever
    /// knows that a part of the log is lost that the vault had followed.
    ///
    /// # Errors
    /// `Refused` where the parts, or the ranges of numbers to leave out, come to more than the vault can have; `Unavailable` where there are
    /// such numbers and a row of the index is damaged, since then nobody can say of which of them; else where the vault cannot be written.
    pub fn mark_given_up(
        &self,
        given_up: &BTreeSet<PartId>,
        is_behind: bool,
        erased: Option<&dyn Fn(u64) -> bool>,
    ) -> Result<()> {
        self.check_writable()?;
        self.shared.change(|change| {
            if let Some(erased) = erased {
                let skipped = change.snapshot().skipped_with_unexplained(erased)?;
                skipped.write(change.txn, &change.keys)?;
            }
            change.meta.give_up(given_up)?;
            change.meta.follow(TreeHead::empty());
            if is_behind {
                change.meta.unfollowed = Some(Followed::NOWHERE);
            }
            Ok(())
        })
    }
}

impl Snapshot<'_> {
    fn skipped_with_unexplained(&self, erased: &dyn Fn(u64) -> bool) -> Result<Skipped, TransactionError> {
        let mut skipped = Skipped::read(self.txn, self.keys)?;
        skipped.insert(&self.unexplained(erased)?)?;
        Ok(skipped)
    }

    fn unexplained(&self, erased: &dyn Fn(u64) -> bool) -> Result<Skipped, TransactionError> {
        let (gone, mut opener) = (Gone::read(self, &erased)?, RowOpener::new(self.keys));
        let mut found = Skipped::default();
        self.txn.all(Table::Rows, |id, bytes| {
            let Some(row) = opener.open(id, bytes)? else { return Ok(()) };
            let end = rows::first_of(id + 1).min(self.meta.indexed.least());
            let nobodys = (rows::first_of(id)..end).filter(|number| row.pseudonym(*number).is_none());
            for number in nobodys.filter(|number| !gone.has(*number)) {
                found.add(number, number + 1)?;
            }
            Ok(())
        })?;
        if found != Skipped::default() {
            self.each_indexed(|number| found.remove(number))?;
        }
        Ok(found)
    }

    /// Shows `each` the numbers that the index leads to.
    fn each_indexed(&self, mut each: impl FnMut(u64) -> Result<()>) -> Result<(), TransactionError> {
        for bucket in Bucket::all(self.txn, self.keys)? {
            let cipher = index::cipher(self.keys, bucket.id)?;
            for place in 0..=u8::MAX {
                for entry in cipher.read(self.txn, place)? {
                    each(u64::from(entry.number))?;
                }
            }
        }
        Ok(())
    }
}

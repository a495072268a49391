//! Looking somebody up where nobody may be hidden: for a query, a hold, an erasure.
//!
//! Each row is authentic by itself, and so is what it was earlier under the same key. Where such an older row lies among newer ones,
//! somebody is missing in it: while a key counts, people are only added under it. So an answer is whole where
//! - the index leads to everybody who has a row and one of the numbers that it is to lead to, and has an entry for nobody else;
//! - every number that was given has a row with somebody in it, or is known to be nobody's any more.
//!
//! All of it is seen in one pass over all rows, in the transaction that answers. Who appends needs no such answer.

use std::collections::HashMap;

use super::Vault;
use super::damage::Damage;
use super::gone::Gone;
use super::index::{self, Bucket};
use super::pseudonym::Pseudonym;
use super::rows;
use super::snapshot::Snapshot;
use super::transaction_error::{TransactionError, damaged};
use bulla_crypto::group::require_told;
use bulla_store::Result;

impl Vault {
    /// The numbers of `subjects`, in their order; `None` where the vault knows nobody of that name, which is sure then. That
    /// nobody is hidden is established even where none is asked for. `erased` says of a number whether the log tells that its
    /// key was destroyed.
    ///
    /// # Errors
    /// `Erased` while one of them is being erased, or may be, `Unavailable` where the vault is damaged, or some of its rows are older than
    /// others; else where it cannot be read.
    pub fn look_up(&self, subjects: &[&str], erased: impl Fn(u64) -> bool) -> Result<Vec<Option<u64>>> {
        self.check_owner()?;
        let shared = &*self.shared;
        shared.snapshot(|snapshot| {
            let pseudonym = |subject: &&str| Pseudonym::of(subject, shared.log, &snapshot.keys.pseudonym);
            let pseudonyms = subjects.iter().map(pseudonym).collect::<Vec<_>>();
            let mut numbers = HashMap::with_capacity(pseudonyms.len());
            for pseudonym in &pseudonyms {
                numbers.insert(*pseudonym, snapshot.find(*pseudonym)?.map(|subject| subject.number));
            }
            let people = snapshot.people(&numbers, &erased)?;
            let entries = index_entries(snapshot)?;
            if entries != people {
                return Err(damaged(format!(
                    "its index has {entries} entries for {people} data subjects: a row of it is older than the rest"
                )));
            }
            let found = pseudonyms.iter().map(|pseudonym| numbers[pseudonym]).collect::<Vec<_>>();
            if let Some(erasing) = snapshot.erasing.as_ref().filter(|erasing| erasing.erased) {
                require_told(&found, &erasing.numbers, &erased)?;
            }
            Ok(found)
        })
    }
}

impl Snapshot<'_> {
    /// How many people have a row whom the index is to lead to; `asked` is what was found of some.
    ///
    /// # Errors
    /// Where one of these was not found, or somebody is missing whom nothing says to be gone.
    fn people(
        &self,
        asked: &HashMap<Pseudonym, Option<u64>>,
        erased: &impl Fn(u64) -> bool,
    ) -> Result<u64, TransactionError> {
        let Snapshot { txn, meta, keys, .. } = self;
        let gone = Gone::read(self, erased)?;
        let mut people = 0;
        rows::each(txn, keys, meta, |id, row| {
            for number in rows::first_of(id)..rows::first_of(id + 1) {
                let Some(pseudonym) = row.pseudonym(number) else {
                    if number < meta.next_number && !gone.has(number) {
                        return Err(damaged(Damage::Unexplained(number).to_string()));
                    }
                    continue;
                };
                people += u64::from(meta.indexed.has(number, pseudonym.half()));
                if number >= meta.next_number {
                    return Err(damaged(Damage::Beyond(number).to_string()));
                }
                if asked.get(&pseudonym).is_some_and(|found| *found != Some(number)) {
                    return Err(damaged(Damage::Unindexed(number).to_string()));
                }
            }
            Ok(())
        })?;
        Ok(people)
    }
}

/// How many entries the index has.
fn index_entries(snapshot: &Snapshot<'_>) -> Result<u64, TransactionError> {
    let Snapshot { txn, keys, .. } = snapshot;
    let mut entries = 0;
    for bucket in Bucket::all(txn, keys)? {
        entries += index::cipher(keys, bucket.id)?.count(txn)?;
    }
    Ok(entries)
}

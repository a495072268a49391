//! Erasing, step by step, each durable before the next:
//!
//! 0. *begin*: the intention is recorded, with the digest of what was written down of it elsewhere. The subjects are held back: neither cached nor given out.
//! 1. *commit*: root and keys of the next generation are written, fresh ones for the buckets concerned; then, in one
//!    transaction, the subjects' rows and entries go, the rest of their buckets is encrypted anew, and the generation
//!    counts. Until here the erasure can be withdrawn; from here on it is done for whoever opens the vault.
//! 2. *destroy*: the old root and its keys are overwritten and removed, in the replicas too. From here on the erasure also holds
//!    against somebody who reads what is left of old pages, in the database, its log of changes, or on the medium.
//! 3. *confirm*: the record goes, once the log has its own.
//!
//! A crash leaves one of these states: [`Vault::unconfirmed`] says which, and [`Vault::resume_erasure`] or
//! [`Vault::resume_committed`] goes on. Step 2 may come before or after the log's record of the erasure, step 3 only after it; each
//! may be done again.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, PoisonError};

use super::index::{self, Bucket};
use super::keys::{AHEAD, Keys, ROWS_LOG2, row_bucket};
use super::pseudonym::Pseudonym;
use super::record::{Erasing, MAX_ERASED};
use super::rows;
use super::snapshot::Change;
use super::transaction_error::TransactionError;
use super::{Shared, Vault};
use bulla_crypto::group::PartId;
use bulla_proof::hash::Hash;
use bulla_proof::tree::TreeHead;
use bulla_store::{Error, ErrorKind, Result};

/// An erasure that has begun: its subjects are held back, and everything about them is still there.
#[must_use = "its subjects are held back until it is committed or withdrawn"]
pub struct Erasure<'v> {
    vault: &'v Vault,
    numbers: Vec<u64>,
}

/// An erasure that is committed, and whose old root is still there.
#[must_use = "a copy of the vault can undo it until the old root is destroyed"]
pub struct Committed<'v> {
    vault: &'v Vault,
    numbers: Vec<u64>,
}

/// An erasure that is done.
#[derive(Debug)]
pub struct Erased {
    numbers: Vec<u64>,
    generation: u64,
}

/// An erasure that was not confirmed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unconfirmed {
    /// The subjects' numbers.
    pub numbers: Vec<u64>,
    /// Whether it is past the point from which it cannot be withdrawn.
    pub erased: bool,
    /// SHA-256 of what whoever began it had written down of it elsewhere; zeros where they had written down nothing.
    pub written: Hash,
}

impl Vault {
    /// Begins to erase those of `subjects` that the vault knows; `None` where it knows nobody of them.
    ///
    /// # Errors
    /// `Refused` where an erasure of others is not confirmed, or a replica was left out; `Invalid` where they are more than
    /// [`MAX_ERASED`]; else where the vault cannot be written.
    pub fn begin_erasure(&self, subjects: &[&str]) -> Result<Option<Erasure<'_>>> {
        self.check_writable()?;
        let numbers = self.shared.snapshot(|snapshot| {
            let (mut finder, mut numbers) = (snapshot.finder()?, Vec::new());
            for subject in subjects {
                let pseudonym = Pseudonym::of(subject, snapshot.meta.log, &snapshot.keys.pseudonym);
                // Those who are being erased are found as well: to begin again is no error.
                numbers.extend(snapshot.numbers(&mut finder, pseudonym)?);
            }
            Ok(numbers)
        })?;
        self.begin_erasure_of(&numbers)
    }

    /// Begins to erase those of the subjects with `numbers` that the vault has; `None` where it has none of them. A vault that was
    /// restored from a backup follows the log in this way: it erases again whom the log says were erased.
    ///
    /// # Errors
    /// As [`Vault::begin_erasure`].
    pub fn begin_erasure_of(&self, numbers: &[u64]) -> Result<Option<Erasure<'_>>> {
        self.begin_written_erasure(numbers, Hash::ZERO)
    }

    /// The same of an erasure of which more was written down elsewhere: by whose order, and what is to be told of it. The vault keeps
    /// the digest of that, so that it is finished by nothing else: [`Unconfirmed::written`].
    ///
    /// # Errors
    /// As [`Vault::begin_erasure`].
    pub fn begin_written_erasure(&self, numbers: &[u64], written: Hash) -> Result<Option<Erasure<'_>>> {
        self.check_writable()?;
        let mut numbers = numbers.to_vec();
        numbers.sort_unstable();
        numbers.dedup();
        numbers = self.shared.snapshot(|snapshot| {
            let mut known = Vec::with_capacity(numbers.len());
            for number in &numbers {
                let person = rows::get(snapshot.txn, snapshot.keys, &snapshot.meta, *number)?;
                known.extend(person.map(|_| *number));
            }
            Ok(known)
        })?;
        if numbers.len() > MAX_ERASED {
            return Err(Error::invalid(format!("one erasure takes at most {MAX_ERASED} data subjects")));
        }
        if numbers.is_empty() {
            return Ok(None);
        }
        self.shared.replicas().require_all()?;
        self.shared.begin(&numbers, written)?;
        Ok(Some(Erasure { vault: self, numbers }))
    }

    /// The erasure that nobody has confirmed, if there is one.
    ///
    /// # Errors
    /// Where the vault cannot be read.
    pub fn unconfirmed(&self) -> Result<Option<Unconfirmed>> {
        self.check_owner()?;
        let erasing = self.shared.snapshot(|snapshot| Ok(snapshot.erasing.clone()))?;
        Ok(erasing.map(|Erasing { numbers, erased, written }| Unconfirmed { numbers, erased, written }))
    }

    /// Goes on with an erasure that was begun and not committed, after a crash or an error.
    ///
    /// # Errors
    /// Where the vault cannot be read.
    pub fn resume_erasure(&self) -> Result<Option<Erasure<'_>>> {
        self.check_writable()?;
        let begun = self.unconfirmed()?.filter(|erasure| !erasure.erased);
        Ok(begun.map(|Unconfirmed { numbers, .. }| Erasure { vault: self, numbers }))
    }

    /// Goes on with an erasure that was committed and not confirmed, after a crash or an error.
    ///
    /// # Errors
    /// Where the vault cannot be read.
    pub fn resume_committed(&self) -> Result<Option<Committed<'_>>> {
        self.check_writable()?;
        let committed = self.unconfirmed()?.filter(|erasure| erasure.erased);
        Ok(committed.map(|Unconfirmed { numbers, .. }| Committed { vault: self, numbers }))
    }

    /// The log's frames up to which [`Vault::follow`] said that its erasures were followed.
    ///
    /// # Errors
    /// Where the vault cannot be read.
    pub fn follows(&self) -> Result<TreeHead> {
        self.check_owner()?;
        Ok(self.shared.meta()?.follows)
    }

    /// The first of those frames whose event was passed over ([`Vault::follow_but`]), as [`Followed::unfollowed`] has it: who was erased in it, or
    /// in one behind it that was passed over as well, may have a key here.
    ///
    /// # Errors
    /// Where the vault cannot be read.
    ///
    /// [`Followed::unfollowed`]: bulla_crypto::group::Followed::unfollowed
    pub fn unfollowed(&self) -> Result<Option<u64>> {
        self.check_owner()?;
        Ok(self.shared.meta()?.unfollowed)
    }

    /// The parts of the log that were given up ([`Followed::given_up`]): whoever was erased in one of them has no key here, or
    /// [`Vault::unfollowed`] says that nobody can tell.
    ///
    /// # Errors
    /// Where the vault cannot be read.
    ///
    /// [`Followed::given_up`]: bulla_crypto::group::Followed::given_up
    pub fn given_up(&self) -> Result<BTreeSet<PartId>> {
        self.check_owner()?;
        Ok(self.shared.meta()?.given_up)
    }

    /// That these parts of the log can be among those, beside what are.
    ///
    /// # Errors
    /// `Refused` where they come to more than a vault can know of; else where it cannot be read.
    pub fn require_room(&self, given_up: &BTreeSet<PartId>) -> Result<()> {
        self.check_owner()?;
        self.shared.meta()?.give_up(given_up)
    }

    /// Says that whoever was erased in the frames of this tree is erased here, but for what was passed over before. It is of the log as it is
    /// now: what the vault followed of another one, or of more of it than there is, counts no more.
    ///
    /// # Errors
    /// Where the vault cannot be written.
    pub fn follow(&self, head: TreeHead) -> Result<()> {
        self.follow_but(head, self.unfollowed()?, &BTreeSet::new())
    }

    /// Says that whoever was erased in the frames of this tree is erased here, but for what the event of the frame `unfollowed` tells, and
    /// those behind it that are lost as well; with `None`, that nothing is passed over any more. The parts `given_up` of the log are seen to by
    /// that, beside those that were before. All of it is of one state: no copy of the vault says the one without the other.
    ///
    /// # Errors
    /// `Refused` where these parts come to more than a vault can know of, else where it cannot be written.
    pub fn follow_but(
        &self,
        head: TreeHead,
        unfollowed: Option<u64>,
        given_up: &BTreeSet<PartId>,
    ) -> Result<()> {
        self.check_writable()?;
        let meta = self.shared.meta()?;
        if (meta.follows, meta.unfollowed) == (head, unfollowed) && given_up.is_subset(&meta.given_up) {
            return Ok(());
        }
        self.shared.change(|change| {
            change.meta.give_up(given_up)?;
            change.meta.unfollowed = unfollowed;
            change.meta.follow(head);
            Ok(())
        })
    }

    /// Says that the log has recorded that these numbers were erased: the vault forgets about it.
    ///
    /// # Errors
    /// `Refused` where they are not erased, else where the vault cannot be written.
    pub fn confirm(&self, numbers: &[u64]) -> Result<()> {
        self.check_writable()?;
        let mut numbers = numbers.to_vec();
        numbers.sort_unstable();
        let shared = &*self.shared;
        // The root goes first. If the record went first, a crash could leave an old root of which nothing says why it is there.
        shared.destroy_others(shared.generation_now()?)?;
        shared.change(|change| match &change.erasing {
            None => Ok(()),
            Some(erasing) if erasing.erased && erasing.numbers == numbers => {
                Erasing::clear(change.txn, &change.keys)
            }
            Some(erasing) => Err(unconfirmed(erasing).into()),
        })
    }
}

impl<'v> Erasure<'v> {
    /// The numbers, ascending.
    pub fn numbers(&self) -> &[u64] {
        &self.numbers
    }

    /// Erases.
    ///
    /// # Errors
    /// Where the vault cannot be written: [`Vault::unconfirmed`] says whether it was erased.
    pub fn commit(self) -> Result<Committed<'v>> {
        self.vault.shared.commit(&self.numbers)?;
        Ok(Committed { vault: self.vault, numbers: self.numbers })
    }

    /// Takes it back: the subjects are as they were.
    ///
    /// # Errors
    /// Where the vault cannot be written.
    pub fn withdraw(self) -> Result<()> {
        let shared = &*self.vault.shared;
        let withdrawn = shared.change(|change| match &change.erasing {
            Some(erasing) if erasing.erased => Err(unconfirmed(erasing).into()),
            _ => Erasing::clear(change.txn, &change.keys),
        });
        shared.hold_back()?;
        withdrawn
    }
}

impl Committed<'_> {
    /// The numbers, ascending.
    pub fn numbers(&self) -> &[u64] {
        &self.numbers
    }

    /// Destroys the old root, and what the replicas have of it.
    ///
    /// # Errors
    /// Where a file cannot be overwritten or removed. Opening the vault for writing tries again.
    pub fn destroy(self) -> Result<Erased> {
        let shared = &*self.vault.shared;
        let generation = shared.generation_now()?;
        shared.destroy_others(generation)?;
        shared.settle();
        Ok(Erased { numbers: self.numbers, generation })
    }
}

impl Erased {
    /// The numbers, ascending.
    pub fn numbers(&self) -> &[u64] {
        &self.numbers
    }

    /// The generation that came of it.
    pub fn generation(&self) -> u64 {
        self.generation
    }
}

impl Shared {
    fn begin(&self, numbers: &[u64], written: Hash) -> Result<()> {
        let begins = Erasing { numbers: numbers.to_vec(), erased: false, written };
        // This comes before the record. A thread may have read the database before there was a record, and be slow; then this
        // keeps it from putting one of them into the cache.
        self.state.write().unwrap_or_else(PoisonError::into_inner).blocked.extend(numbers);
        self.cache.forget(numbers);
        let begun = self.change(|change| match &change.erasing {
            Some(erasing) if *erasing == begins => Ok(()),
            Some(erasing) => Err(unconfirmed(erasing).into()),
            None => begins.write(change.txn, &change.keys),
        });
        if begun.is_err() {
            self.hold_back()?;
        }
        begun
    }

    /// Holds back those of whom the database says that they are being erased, and nobody else.
    pub(super) fn hold_back(&self) -> Result<()> {
        let erasing = self.snapshot(|snapshot| Ok(snapshot.erasing.clone()))?;
        let blocked = erasing.filter(|erasing| !erasing.erased).map_or(Vec::new(), |erasing| erasing.numbers);
        self.state.write().unwrap_or_else(PoisonError::into_inner).blocked = blocked;
        Ok(())
    }

    fn commit(&self, numbers: &[u64]) -> Result<()> {
        let keys = self.change(|change| match change.erasing.take() {
            Some(erasing) if !erasing.erased && erasing.numbers == numbers => change.erase(erasing),
            Some(erasing) => Err(unconfirmed(&erasing).into()),
            None => Err(Error::new(ErrorKind::Refused, "the erasure was withdrawn").into()),
        })?;
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        state.keys = keys;
        state.blocked.clear();
        *self.unindexed.lock().unwrap_or_else(PoisonError::into_inner) = Arc::default();
        Ok(())
    }
}

/// What lies under the same keys as the subjects that are erased.
struct Concerned {
    numbers: HashSet<u64>,
    rows: BTreeSet<u64>,
    /// The index buckets, by the first prefix of each.
    index: BTreeMap<u16, Bucket>,
}

impl Change<'_, '_> {
    fn erase(&mut self, erasing: Erasing) -> Result<Arc<Keys>, TransactionError> {
        self.index_all()?;
        let numbers = &erasing.numbers;
        let concerned = self.concerned(numbers)?;
        let keys = self.succeed(&concerned)?;
        // An earlier attempt may have left files of the next generation. They are destroyed first: writing new ones replaces
        // their names, and their content would stay on the medium.
        self.shared.destroy_others(self.meta.generation)?;
        self.shared.write_root(&keys)?;
        // In a replica that has failed meanwhile the subjects' keys would stay.
        self.shared.replicas().require_all()?;
        for bucket in concerned.index.values() {
            let into = self.meta.next_bucket;
            self.meta.next_bucket += 1;
            let pair = (&*self.keys, &keys);
            index::rewrite(self.txn, *bucket, pair, into, &concerned.numbers)?;
        }
        for bucket in &concerned.rows {
            rows::rewrite(self.txn, &self.meta, *bucket, (&self.keys, &keys), numbers)?;
        }
        self.meta.generation = keys.generation;
        Erasing { erased: true, ..erasing }.write(self.txn, &keys)?;
        Ok(Arc::new(keys))
    }

    fn concerned(&self, numbers: &[u64]) -> Result<Concerned, TransactionError> {
        let mut concerned =
            Concerned { numbers: HashSet::new(), rows: BTreeSet::new(), index: BTreeMap::new() };
        for number in numbers {
            let Some(person) = rows::get(self.txn, &self.keys, &self.meta, *number)? else { continue };
            let bucket = Bucket::of(self.txn, &self.keys, person.pseudonym.prefix())?;
            concerned.numbers.insert(*number);
            concerned.rows.insert(row_bucket(*number));
            concerned.index.insert(bucket.start, bucket);
        }
        Ok(concerned)
    }

    /// The keys of the next generation: fresh ones for the buckets that are concerned, the same ones for the others in use.
    fn succeed(&self, concerned: &Concerned) -> Result<Keys, TransactionError> {
        let stay = self.buckets()?.into_iter().filter(|bucket| !concerned.index.contains_key(&bucket.start));
        let stay = stay.map(|bucket| bucket.id).collect::<HashSet<_>>();
        let used_rows = self.meta.next_number.div_ceil(1 << ROWS_LOG2);
        let fresh = u32::try_from(concerned.index.len() + AHEAD as usize).unwrap_or(u32::MAX);
        let end = self.meta.next_bucket.checked_add(fresh);
        let end = end.ok_or_else(|| Error::unavailable("no index bucket is left"))?;
        Ok(self.keys.succeeded(
            |bucket| bucket < used_rows && !concerned.rows.contains(&bucket),
            |id| stay.contains(&id),
            self.meta.next_bucket..end,
            &*self.shared.random,
        )?)
    }
}

fn unconfirmed(erasing: &Erasing) -> Error {
    let (numbers, state) = (&erasing.numbers, if erasing.erased { "confirmed" } else { "finished" });
    let some = numbers.iter().take(8).map(u64::to_string).collect::<Vec<_>>().join(", ");
    let more = if numbers.len() > 8 { ", …" } else { "" };
    let message = format!("the erasure of data subjects {some}{more} is not {state} yet: do that first");
    Error::new(ErrorKind::Refused, message)
}

//! Copies of the vault on other disks, kept up to date, so that nobody's key is lost with the vault's disk.
//!
//! - A replica takes a change after the vault: it is never ahead of it.
//! - Whoever is given out is in all replicas that are in use, number and key.
//! - One that fails is left out until the vault is opened again. Until then nobody is erased: they would stay there.
//! - Nobody reads from a replica while there is the vault.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::keys::Keys;
use super::original::{Mark, Original};
use super::record::Changes;
use super::replica::{Replica, ReplicaLocation, check_replicas};
use super::roots::Content;
use super::transaction::Journal;
use super::{Shared, Vault};
use bulla_store::{Error, Result};
use serde::{Deserialize, Serialize};

/// A replica of a vault that is open for writing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaState {
    /// Its directory.
    pub path: String,
    /// Why it was left out; `None` while it has what the vault has.
    pub failure: Option<String>,
}

/// All of them.
#[derive(Default)]
pub(super) struct Replicas {
    all: Vec<Replica>,
    /// Held from before a transaction of the vault until the replicas have it, too.
    turn: Mutex<()>,
    /// The number of changes that they have.
    reached: AtomicU64,
}

impl Vault {
    /// The replicas, where the vault is open for writing.
    pub fn replicas(&self) -> Vec<ReplicaState> {
        let replicas = self.shared.replicas();
        let state = |replica: &Replica| ReplicaState {
            path: replica.name().to_owned(),
            failure: replica.failure().map(str::to_owned),
        };
        replicas.all.iter().map(state).collect()
    }

    /// Checks what is in these replicas, as opening the vault to write does, and writes nothing.
    ///
    /// # Errors
    /// As [`Vault::open`] has of replicas.
    pub fn check_replicas(&self, places: &[ReplicaLocation]) -> Result<()> {
        self.check_owner()?;
        let original = self.shared.original()?;
        check_replicas(original.database.directory(), places)?;
        places.iter().try_for_each(|place| Replica::look(place, &original).map(drop))
    }
}

impl Replicas {
    fn open(places: &[ReplicaLocation], original: &Original<'_>) -> Result<Self> {
        check_replicas(original.database.directory(), places)?;
        // None is written before all of them were looked at: what one of them refuses the vault for leaves the others as they are.
        let looked = places.iter().map(|place| Replica::look(place, original));
        let looked = looked.collect::<Result<Vec<_>>>()?;
        let opened = looked.into_iter().map(|replica| Replica::open(replica, original));
        let all = opened.collect::<Result<_>>()?;
        let reached = AtomicU64::new(original.mark.changes.count);
        Ok(Replicas { all, turn: Mutex::default(), reached })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes to the replicas what the vault has committed, after the changes that were before. The caller holds the turn.
    pub(super) fn follow(&self, original: &Original<'_>, journal: Option<&Journal>, before: Changes) {
        self.each_in_use(|replica| replica.follow(original, journal, before));
        self.reached.store(original.mark.changes.count, Ordering::Release);
    }

    /// Waits until the replicas have everything that a snapshot with these changes shows. False where nobody is at writing it to
    /// them: it was committed though that was told to have failed.
    pub(super) fn wait_for(&self, changes: Changes) -> bool {
        let have = || self.is_empty() || self.reached.load(Ordering::Acquire) >= changes.count;
        have() || {
            drop(self.turn());
            have()
        }
    }

    /// Checks that no replica is left out.
    ///
    /// # Errors
    /// `Unavailable`, saying which one is, and why.
    pub(super) fn require_all(&self) -> Result<()> {
        let failed = self.all.iter().find_map(|replica| Some((replica.name(), replica.failure()?)));
        let Some((name, why)) = failed else { return Ok(()) };
        Err(Error::unavailable(format!(
            "{name}, a replica of the vault, is left out, and whoever is erased now would stay in it ({why}): mend it and \
             open the log again, or take it out of `vault_replicas` and destroy it"
        )))
    }

    #[cfg(test)]
    pub(super) fn make_read_only(&self, index: usize) {
        self.all[index].make_read_only();
    }

    fn each_in_use(&self, work: impl Fn(&Replica) -> Result<()>) {
        for replica in self.all.iter().filter(|replica| replica.failure().is_none()) {
            if let Err(error) = work(replica) {
                replica.leave_out(&error);
            }
        }
    }
}

impl Shared {
    pub(super) fn replicas(&self) -> Arc<Replicas> {
        self.replicas.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Opens the replicas of a vault that is opened for writing.
    ///
    /// # Errors
    /// As [`Replica::look`] and [`Replica::open`].
    pub(super) fn attach(&self, places: &[ReplicaLocation]) -> Result<()> {
        if places.is_empty() {
            return Ok(());
        }
        let replicas = Replicas::open(places, &self.original()?)?;
        *self.replicas.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(replicas);
        Ok(())
    }

    /// The vault as it is now.
    fn original(&self) -> Result<Original<'_>> {
        let mark = self.snapshot(|snapshot| {
            Ok(Mark { meta: snapshot.meta.clone(), changes: Changes::read(snapshot.txn, snapshot.keys)? })
        })?;
        Ok(Original { database: &self.database, roots: &self.roots, keys: self.keys(), mark })
    }

    /// Lets go of them.
    pub(super) fn detach(&self) {
        *self.replicas.write().unwrap_or_else(PoisonError::into_inner) = Arc::default();
    }

    /// Writes root and keys of a new generation, durably.
    ///
    /// # Errors
    /// Where the vault's cannot be written.
    pub(super) fn write_root(&self, keys: &Keys) -> Result<()> {
        self.put(&self.roots.seal(keys)?)
    }

    /// Replaces the keys of a generation, durably.
    ///
    /// # Errors
    /// Where the vault's cannot be written.
    pub(super) fn write_keys(&self, keys: &Keys) -> Result<()> {
        self.put(&[self.roots.seal_keys(keys)?])
    }

    fn put(&self, files: &[Content]) -> Result<()> {
        self.roots.put(files)?;
        self.replicas().each_in_use(|replica| replica.put(files));
        Ok(())
    }

    /// Takes what is left of an erasure out of the logs of changes, of the vault's database and of the replicas' that are in use.
    pub(super) fn settle(&self) {
        self.database.settle();
        self.replicas().all.iter().for_each(Replica::settle);
    }

    /// Destroys what is not of `generation`, in the vault and in every replica, those that were left out too.
    ///
    /// # Errors
    /// Where something may be left. The same call goes on with it.
    pub(super) fn destroy_others(&self, generation: u64) -> Result<()> {
        self.roots.destroy_others(generation)?;
        self.replicas().all.iter().try_for_each(|replica| replica.destroy_others(generation))
    }
}

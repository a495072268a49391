//! The vault: a number and a key for each data subject, which an erasure destroys.
//!
//! - A number is given once. What `resolve` returns is durable, number and key, in every replica that is in use too.
//! - Everything about a person, in every page of the database and of its log of changes, lies under keys that lie under the
//!   root of a generation.
//!   An erasure makes the next generation, with fresh keys for the buckets the person was in, and destroys the old root.
//! - The database says which generation counts; until its transaction is committed nothing is erased, from then on it is.
//! - No text of a subject, and no hash of one that needs no key, is ever written.
//! - A replica is never ahead of the vault. While one is left out, because it failed, nobody is erased.
//! - In the memory of a process a subject that is being erased is neither cached nor given out.
//!
//! One process writes, the one that holds the lock on the key directory; others may read meanwhile ([`VaultReader`]).
//!
//! This is a part of the engine, and by itself it promises nothing: that an erasure was ordered, that the log tells of it, and
//! that no key is in use any more while it is destroyed, is for the engine to see to. It alone takes the steps below; the
//! `bulla` crate passes on the reading side.
//!
//! ```
//! # fn main() -> bulla_store::Result<()> {
//! # let place = tempfile::tempdir().unwrap();
//! # let (keys, log) = (place.path(), bulla_proof::commitment::LogId([7; 16]));
//! use bulla_vault::{Access, Settings, Vault};
//!
//! Vault::create(keys, log, &Settings::default())?;
//! let vault = Vault::open(keys, log, Access::Write, &Settings::default())?;
//! let alice = vault.resolve(&["alice"])?[0].number;
//!
//! let erasure = vault.begin_erasure(&["alice"])?.expect("she is known");
//! // Here the log lets go of what it has sealed half, and of her key.
//! let erased = erasure.commit()?.destroy()?;
//! // Here it records that these numbers were erased.
//! vault.confirm(erased.numbers())?;
//!
//! assert!(vault.key(alice)?.is_none());
//! assert_ne!(vault.resolve(&["alice"])?[0].number, alice);
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests look at disks and clocks"))]

mod arrivals;
mod cache;
mod check;
mod damage;
mod database;
mod differences;
mod directory;
mod erase;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod gone;
mod groups;
mod index;
mod keys;
mod open;
mod original;
mod patience;
mod pseudonym;
mod reader;
mod record;
mod registry;
mod replica;
mod replicas;
mod resolve;
mod root;
mod roots;
mod rows;
mod snapshot;
mod table;
#[cfg(test)]
mod tests;
mod transaction;
mod transaction_error;
mod unexplained;
mod unindexed;
mod whole;

pub use bulla_crypto::subject::{Subject, SubjectKey};
pub use check::Checked;
pub use damage::Damage;
pub use erase::{Committed, Erased, Erasure, Unconfirmed};
pub use open::Settings;
pub use reader::VaultReader;
pub use record::MAX_ERASED;
pub use replica::{MAX_REPLICAS, ReplicaLocation, check_replicas, require_empty_replicas};
pub use replicas::ReplicaState;
pub use root::{AgeRoot, Root, RootFile, RootKey};
pub use roots::DIRECTORY as ROOTS;

use std::fmt::{self, Debug};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use arrivals::Arrivals;
use cache::{Cache, Tag};
use database::Database;
use keys::Keys;
use record::{Changes, Skipped};
use replicas::Replicas;
use roots::Roots;
use unindexed::Unindexed;

use bulla_crypto::environment::Random;
use bulla_proof::commitment::LogId;
use bulla_store::{Error, ErrorKind, Result};
use zeroize::Zeroizing;

/// What a handle may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Everything. Who asks for it holds the lock on the key directory.
    Write,
    /// Look up, beside a process that writes.
    Read,
}

/// A vault that is open. All handles of a process share one.
pub struct Vault {
    shared: Arc<Shared>,
    access: Access,
    /// Whether this handle wrote, and writes no more.
    has_ended: AtomicBool,
}

/// What the handles of a process share.
struct Shared {
    log: LogId,
    database: Database,
    roots: Roots,
    random: Arc<dyn Random>,
    /// The last transaction that this process knows of, and the next number in it: the database never goes back behind either.
    known: Mutex<Known>,
    cache: Cache,
    unindexed: Mutex<Arc<Unindexed>>,
    /// As [`Settings::index_every`].
    index_every: u64,
    arrivals: Arrivals,
    state: RwLock<State>,
    /// Whether a handle may write.
    writing: AtomicBool,
    /// Of that handle.
    replicas: RwLock<Arc<Replicas>>,
}

/// How far a database has come.
#[derive(Clone, Copy, Default)]
struct Known {
    changes: Changes,
    next_number: u64,
}

/// What changes with a generation. Only who holds it may add to the cache, and who changes it takes from the cache what
/// no longer holds.
struct State {
    keys: Arc<Keys>,
    /// The numbers that an erasure begun in this process holds back.
    blocked: Vec<u64>,
}

impl Vault {
    /// The number that the next new subject gets.
    ///
    /// # Errors
    /// Where the vault cannot be read.
    pub fn next_number(&self) -> Result<u64> {
        self.check_owner()?;
        Ok(self.shared.meta()?.next_number)
    }

    /// How often something was erased.
    ///
    /// # Errors
    /// Where the vault cannot be read.
    pub fn generation(&self) -> Result<u64> {
        self.check_owner()?;
        Ok(self.shared.meta()?.generation)
    }

    /// The key that the pseudonyms of fields are made with: the same in every generation.
    ///
    /// # Errors
    /// `Closed` in a forked child.
    pub fn field_pseudonym_key(&self) -> Result<Zeroizing<[u8; 32]>> {
        self.check_owner()?;
        Ok(self.shared.keys().field_pseudonyms())
    }

    /// That the vault is no older than a log that has given out the numbers before `next`.
    ///
    /// # Errors
    /// `Refused` where it is: it would give numbers a second time, to other people.
    pub fn require_at_least(&self, next: u64) -> Result<()> {
        let found = self.next_number()?;
        if found >= next {
            return Ok(());
        }
        let name = self.shared.database.name();
        Err(Error::new(
            ErrorKind::Refused,
            format!(
                "{name} is older than the log: it has given {found} numbers, the log knows {next}; restore the newest \
                 `vault` and `roots`, from one and the same backup, or, where there are none, take these up with `bulla restore`"
            ),
        ))
    }

    /// Gives no number before `next` from now on: where the newest vault is lost for good, an older one serves the log
    /// after this. The keys of subjects that were new since then are lost with it.
    ///
    /// # Errors
    /// `Refused` where `next` is more than the vault can hold, else where it cannot be written.
    pub fn skip_to(&self, next: u64) -> Result<()> {
        self.check_writable()?;
        self.shared.skip_to(next)
    }

    /// The numbers that [`Vault::skip_to`] and [`Vault::mark_given_up`] left out, ascending: nobody has a key of any of them.
    ///
    /// # Errors
    /// Where the vault cannot be read.
    pub fn skipped(&self) -> Result<Vec<Range<u64>>> {
        self.check_owner()?;
        let skipped = self.shared.snapshot(|snapshot| Skipped::read(snapshot.txn, snapshot.keys))?;
        Ok(skipped.into_ranges())
    }

    /// That what is read is still the vault in the key directory: not one that was taken away since, to which nobody adds whoever is
    /// new, and from which no erasure takes anybody.
    ///
    /// # Errors
    /// `NoKey` where it is not; otherwise where that cannot be told.
    pub fn require_in_place(&self) -> Result<()> {
        match self.shared.database.is_in_place()? {
            true => Ok(()),
            false => {
                let message = format!(
                    "the vault {} was replaced, moved or removed while it was read: see that the newest is in its place, and \
                     begin again",
                    self.shared.database.name()
                );
                Err(Error::new(ErrorKind::NoKey, message))
            }
        }
    }

    /// Waits no longer for other processes that have the database, or a replica's: whoever closes the log has given up. What they
    /// keep from being done fails from now on.
    pub fn give_up(&self) {
        self.shared.database.patience().give_up();
    }

    fn check_owner(&self) -> Result<()> {
        match self.shared.database.is_ours() {
            true => Ok(()),
            false => Err(foreign()),
        }
    }

    fn check_writable(&self) -> Result<()> {
        self.check_owner()?;
        match self.access {
            Access::Write if self.has_ended.load(Ordering::Acquire) => {
                Err(Error::new(ErrorKind::Closed, "the log that wrote to this vault was closed"))
            }
            Access::Write => Ok(()),
            Access::Read => Err(Error::new(ErrorKind::Refused, "the vault is open for reading only")),
        }
    }
}

#[cold]
fn foreign() -> Error {
    Error::new(ErrorKind::Closed, "the vault belongs to the process that opened it, not to its child")
}

impl Vault {
    /// Has this handle write no more, so that another may. Whoever looks up with it still can.
    pub fn end_writing(&self) {
        // In a forked child somebody who is not there may hold the lock.
        let wrote = self.access == Access::Write && self.shared.database.is_ours();
        if wrote && !self.has_ended.swap(true, Ordering::AcqRel) {
            self.shared.detach();
            self.shared.writing.store(false, Ordering::Release);
        }
    }
}

impl Drop for Vault {
    fn drop(&mut self) {
        self.end_writing();
    }
}

impl Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vault").field("directory", &self.shared.database.name()).finish_non_exhaustive()
    }
}

impl Shared {
    fn keys(&self) -> Arc<Keys> {
        self.state.read().unwrap_or_else(PoisonError::into_inner).keys.clone()
    }

    /// Takes other keys. What the cache has of another generation may since have been erased.
    fn take(&self, keys: Arc<Keys>) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if keys.generation != state.keys.generation {
            self.cache.clear();
        }
        state.keys = keys;
    }

    /// Gives out subjects that were found in a snapshot of `generation`, and keeps them in the cache. False where an
    /// erasure came in between, so that they have to be looked up again.
    ///
    /// # Errors
    /// `Erased` where one of them is being erased.
    fn admit(&self, generation: u64, found: &[(Tag, Subject)]) -> Result<bool> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        if state.keys.generation != generation {
            return Ok(false);
        }
        if let Some((_, subject)) = found.iter().find(|(_, subject)| state.blocked.contains(&subject.number))
        {
            return Err(resolve::being_erased(subject.number));
        }
        found.iter().for_each(|(tag, subject)| self.cache.keep(*tag, subject));
        Ok(true)
    }
}

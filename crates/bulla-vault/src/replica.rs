//! One replica: a directory that has `vault` and `roots`, as the key directory has.
//!
//! What it holds is good as soon as it is opened. It is made by copying the vault:
//!
//! 1. root and keys of the generation that counts are written;
//! 2. the rows of the database are copied to a file beside, which is synced and renamed;
//! 3. files of other generations are destroyed, as in the vault itself.
//!
//! The pages of a database that is replaced need not be overwritten: everything about a person in them is encrypted under keys
//! that are destroyed with their root.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::database::{Database, FILE};
use super::differences;
use super::directory;
use super::original::{Mark, Original};
use super::record::Changes;
use super::roots::{self, Content, Roots};
use super::transaction::Journal;
use super::transaction_error::{TransactionError, damaged};
use bulla_store::{Error, ErrorKind, Result};
use bulla_store::{FileSystem, Store};

/// The most replicas of a vault.
pub const MAX_REPLICAS: usize = 4;

/// Where a replica lies.
#[derive(Clone, Debug)]
pub struct ReplicaLocation {
    store: Arc<dyn Store>,
    directory: PathBuf,
}

impl ReplicaLocation {
    /// In the directory `path`, which exists.
    pub fn new(path: &Path) -> Self {
        Self::new_in(Arc::new(FileSystem::new(path)), path.join(directory::NAME))
    }

    /// Roots in a store, the database in `directory`.
    pub fn new_in(store: Arc<dyn Store>, directory: PathBuf) -> Self {
        ReplicaLocation { store, directory }
    }

    /// That a replica can be here as far as that can be told without looking into it. Gives where its database is, or would be made,
    /// without links.
    fn check(&self) -> Result<PathBuf> {
        self.store.list("").map_err(missing)?;
        if let Some(files) = self.store.directory() {
            files.require_plain(directory::NAME).map_err(|error| Error::io("its database", error))?;
        }
        let found = without_links(&self.directory)?;
        let is_there = directory::has(&found)?;
        directory::require_blocks(if is_there { &found } else { found.parent().unwrap_or(&found) })?;
        Ok(found)
    }

    fn explain(&self, error: TransactionError) -> Error {
        match error {
            TransactionError::Damaged(what) | TransactionError::Stale(what) => Error::unavailable(format!(
                "{}, a replica of the vault, is damaged ({what}): remove `vault` in it, and it is made anew",
                self.store.describe("")
            )),
            TransactionError::OfVault(error) => Error::new(
                error.kind(),
                format!(
                    "{error}; it was not copied over its replica in {}, which may have that whole, and is as it was",
                    self.store.describe("")
                ),
            ),
            error => self.named(&error.into_error(FILE)),
        }
    }

    fn named(&self, error: &Error) -> Error {
        Error::new(error.kind(), format!("{}, a replica of the vault: {error}", self.store.describe("")))
    }
}

/// Checks where replicas of the vault whose database is in the directory `vault` are to be, as opening the vault does before it makes
/// anything there. What is there already is looked at by opening alone.
///
/// # Errors
/// `Invalid` where they are more than [`MAX_REPLICAS`]; `Unavailable` where one is no directory, or is on a file system with blocks of less
/// than 4,096 bytes; `Refused` where one is named twice, or is the vault itself.
pub fn check_replicas(vault: &Path, places: &[ReplicaLocation]) -> Result<()> {
    if places.len() > MAX_REPLICAS {
        return Err(Error::invalid(format!("a vault has at most {MAX_REPLICAS} replicas")));
    }
    let mut taken = vec![without_links(vault)?];
    for place in places {
        let found = place.check().map_err(|error| place.named(&error))?;
        let why = match taken.iter().position(|taken| *taken == found) {
            None => {
                taken.push(found);
                continue;
            }
            Some(0) => "it is the vault itself: name another directory",
            Some(_) => "it is named twice: name each directory once",
        };
        return Err(place.named(&Error::new(ErrorKind::Refused, why)));
    }
    Ok(())
}

/// Checks that nothing of a vault is in these places, where a new one is to be made that would take its place there.
///
/// # Errors
/// `Refused` where something is; where that cannot be told.
pub fn require_empty_replicas(places: &[ReplicaLocation]) -> Result<()> {
    for place in places {
        let found = [directory::has(&place.directory.join(FILE)), has_roots(&*place.store)];
        for (is_there, what) in found.into_iter().zip([directory::NAME, roots::DIRECTORY]) {
            if is_there.map_err(|error| place.named(&error))? {
                let message = format!(
                    "{what} is there, and would be lost with a new vault: put `vault` and `roots` of the replica in the place of those \
                     in the key directory, or, where they cannot be used, move them away"
                );
                return Err(place.named(&Error::new(ErrorKind::Refused, message)));
            }
        }
    }
    Ok(())
}

fn has_roots(store: &dyn Store) -> Result<bool> {
    match store.list(roots::DIRECTORY) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        items => {
            items.map(|items| !items.is_empty()).map_err(|error| Error::io("listing its `roots`", error))
        }
    }
}

/// Where a directory is, or would be made.
fn without_links(directory: &Path) -> Result<PathBuf> {
    match (directory::has(directory)?, directory.parent(), directory.file_name()) {
        (false, Some(around), Some(name)) => Ok(directory::canonical(around)?.join(name)),
        _ => directory::canonical(directory),
    }
}

/// A replica that was up to date when it was opened.
pub(super) struct Replica {
    name: String,
    roots: Roots,
    directory: PathBuf,
    /// `None` once it is left out.
    database: Mutex<Option<Database>>,
    failure: OnceLock<String>,
    /// The only generation of which there are files, where that is known.
    only: AtomicU64,
}

/// A replica as it was found, before anything is written to it.
pub(super) struct LookedAt<'p> {
    place: &'p ReplicaLocation,
    replica: Replica,
    /// Its database, if it is up to date.
    found: Option<Database>,
}

/// No generation.
const NONE: u64 = u64::MAX;
const TEMPORARY: &str = "vault.db.tmp";

impl Replica {
    /// Looks at what is in `place`, and that the vault may be copied over it, and writes nothing. [`Replica::open`] goes on with it.
    ///
    /// # Errors
    /// `Unavailable` where it is damaged, or the vault is, in what would be copied; `Refused` where it is another log's, or ahead of the
    /// vault.
    pub(super) fn look<'p>(place: &'p ReplicaLocation, original: &Original<'_>) -> Result<LookedAt<'p>> {
        let replica = Self::of(place, original);
        let found = replica.find_own(original).map_err(|error| place.explain(error))?;
        Ok(LookedAt { place, replica, found })
    }

    /// Opens the replica, made anew where it is behind, and made where there is none.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub(super) fn open(
        LookedAt { place, replica, found }: LookedAt<'_>,
        original: &Original<'_>,
    ) -> Result<Self> {
        let made = directory::make(&place.directory)
            .and_then(|()| replica.roots.create())
            .map_err(TransactionError::from)
            .and_then(|()| replica.make(original, found));
        made.map(|()| replica).map_err(|error| place.explain(error))
    }

    fn of(place: &ReplicaLocation, original: &Original<'_>) -> Self {
        let Roots { root, random, .. } = original.roots;
        Replica {
            name: place.store.describe(""),
            roots: Roots { store: place.store.clone(), root: root.clone(), random: random.clone() },
            directory: place.directory.clone(),
            database: Mutex::new(None),
            failure: OnceLock::new(),
            only: AtomicU64::new(NONE),
        }
    }

    /// The database that is there, if it is up to date. Where there is none, there are no roots of other vaults either.
    fn find_own(&self, original: &Original<'_>) -> Result<Option<Database>, TransactionError> {
        let found = self.find(original)?;
        if found.is_none() && !self.has_database() && has_roots(&*self.roots.store)? {
            let files = original.roots.files_of(original.mark.meta.generation)?;
            self.roots.require_own(original.mark.meta.log, &files)?;
        }
        Ok(found)
    }

    /// Gives it what the vault has and it has not: its files of roots, and, unless there is one that is up to date, the database.
    fn make(&self, original: &Original<'_>, found: Option<Database>) -> Result<(), TransactionError> {
        let generation = original.mark.meta.generation;
        for file in original.roots.files_of(generation)? {
            if !self.roots.has(&file) {
                self.roots.put(&[file])?;
            }
        }
        match found {
            Some(database) => *self.database() = Some(database),
            None => self.copy(original.database)?,
        }
        self.only.store(NONE, Ordering::Relaxed);
        Ok(self.destroy_others(generation)?)
    }

    fn has_database(&self) -> bool {
        directory::has(&self.directory.join(FILE)).unwrap_or(false)
    }

    /// The database that is there, if it is up to date.
    fn find(&self, original: &Original<'_>) -> Result<Option<Database>, TransactionError> {
        if !directory::has(&self.directory.join(FILE))? {
            differences::require_whole(original)?;
            return Ok(None);
        }
        let database = Database::open_with(&self.directory, original.database.patience().clone())?;
        let mark = Mark::read(&database)?.ok_or_else(|| damaged("it holds no vault"))?;
        let ours = &original.mark;
        if mark.meta.log != ours.meta.log {
            let message = format!("it is of another log, {}: name another directory", mark.meta.log);
            return Err(Error::new(ErrorKind::Refused, message).into());
        }
        if mark.is_ahead_of(ours) {
            return Err(Error::new(
                ErrorKind::Refused,
                format!(
                    "it is newer than {}, which is from a backup: put `vault` and `roots` of the replica in the place of \
                     those in the key directory",
                    original.database.name()
                ),
            )
            .into());
        }
        // What a medium or a hand has changed since has the same mark; and what is behind is copied over.
        let is_level = mark == *ours;
        let is_same = differences::is_same(original, &database, is_level)?;
        Ok((is_level && is_same).then_some(database))
    }

    /// Copies the vault's database.
    fn copy(&self, vault: &Database) -> Result<(), TransactionError> {
        let mut database = self.database();
        // The database has to be closed before its file is replaced.
        *database = None;
        let temporary = self.directory.join(TEMPORARY);
        // What is damaged then is the vault, and not the replica.
        vault.copy_to(&temporary).map_err(|error| vault.explain(error))?;
        directory::replace_database(&temporary, &self.directory.join(FILE))?;
        directory::sync(self.directory.parent().unwrap_or(&self.directory))?;
        *database = Some(Database::open_with(&self.directory, vault.patience().clone())?);
        Ok(())
    }

    /// That the vault may be copied over what the replica has.
    fn require_replaceable(&self, original: &Original<'_>) -> Result<(), TransactionError> {
        match &*self.database() {
            Some(replica) => differences::is_same(original, replica, false).map(drop),
            None => Ok(()),
        }
    }

    /// Writes what a transaction of the vault wrote after the changes that were `before`, or copies all of the vault after it, where
    /// there is no journal. Where these are not the last ones here, somebody else has changed the replica, or put it back: it
    /// is made anew.
    ///
    /// # Errors
    /// Where it cannot be written; where the vault is damaged in what would be copied, and then the replica is as it was.
    pub(super) fn follow(
        &self,
        original: &Original<'_>,
        journal: Option<&Journal>,
        before: Changes,
    ) -> Result<()> {
        let followed = match journal {
            Some(journal) if self.continued(journal, before)? => Ok(()),
            // What else there is of it may be older as well.
            Some(_) => self.require_replaceable(original).and_then(|()| {
                // The files of roots were read when the vault was opened, or written since.
                original.roots.load(original.mark.meta.log, original.mark.meta.generation)?;
                self.make(original, None)
            }),
            None => self.require_replaceable(original).and_then(|()| self.copy(original.database)),
        };
        followed.map_err(|error| error.into_error(&self.name))
    }

    /// Whether the journal continues what the replica has; then it has that, too.
    fn continued(&self, journal: &Journal, before: Changes) -> Result<bool> {
        let database = self.database();
        let Some(database) = &*database else { return Ok(true) };
        let written = database.write(|txn| {
            let continues = Changes::peek(txn)? == before;
            if continues {
                journal.write(txn)?;
            }
            Ok(continues)
        });
        written.map_err(|error| database.explain(error))
    }

    /// Takes what is left of an erasure out of the log of changes.
    pub(super) fn settle(&self) {
        if let Some(database) = &*self.database() {
            database.settle();
        }
    }

    /// Writes files of its roots.
    ///
    /// # Errors
    /// Where they cannot be written.
    pub(super) fn put(&self, files: &[Content]) -> Result<()> {
        self.only.store(NONE, Ordering::Relaxed);
        self.roots.put(files)
    }

    /// Destroys files of other generations, also where it is left out.
    ///
    /// # Errors
    /// Where one cannot be destroyed.
    pub(super) fn destroy_others(&self, generation: u64) -> Result<()> {
        if self.only.load(Ordering::Relaxed) != generation {
            self.roots.destroy_others(generation)?;
            self.only.store(generation, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Stops using the replica, which has failed. Its directory may still hold keys of subjects, so roots in it are still destroyed.
    pub(super) fn leave_out(&self, error: &Error) {
        let _ = self.failure.set(error.to_string());
        *self.database() = None;
    }

    /// Why it was left out, if it was.
    pub(super) fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    /// The directory, as it was named.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// From now on its medium takes nothing.
    #[cfg(test)]
    pub(super) fn make_read_only(&self) {
        self.database().as_ref().unwrap().make_read_only();
    }

    fn database(&self) -> MutexGuard<'_, Option<Database>> {
        self.database.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn missing(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::NotFound => Error::unavailable(
            "there is no such directory: mount it, make an empty one for a new replica, or take it out of \
             `vault_replicas`",
        ),
        io::ErrorKind::NotADirectory => Error::unavailable("it is no directory: name one"),
        _ => Error::io("listing it", error),
    }
}

//! Making a vault, and opening it.

use std::fmt::{self, Debug};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};

use super::cache::Cache;
use super::directory;
use super::index::Bucket;
use super::keys::{Keys, MAX_ROWS, ROWS_LOG2, row_bucket};
use super::lmdb::Lmdb;
use super::record::Meta;
use super::root::{Root, RootFile};
use super::roots::Roots;
use super::snapshot::{another_log, unfinished};
use super::{Access, ReplicaLocation, Shared, State, Vault, registry};
use bulla_crypto::environment::{Random, SystemRandom};
use bulla_proof::commitment::LogId;
use bulla_store::{Error, ErrorKind, Result};
use bulla_store::{FileSystem, Store};

/// The most replicas of a vault.
pub const MAX_REPLICAS: usize = 4;

/// How a vault is opened.
#[derive(Clone)]
pub struct Settings {
    /// How many subjects are kept in memory, about 150 bytes each (default 65,536).
    pub cache: usize,
    /// How roots are kept (default: as files).
    pub root: Arc<dyn Root>,
    /// Where keys come from.
    pub random: Arc<dyn Random>,
    /// Where replicas are kept while the vault is open for writing, at most [`MAX_REPLICAS`] (default: none).
    pub replicas: Vec<ReplicaLocation>,
    /// Bytes of address space for the database, which grows when it has to (default 16 GiB, of which what is in use
    /// takes memory and disk).
    pub map_size: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            cache: 65_536,
            root: Arc::new(RootFile),
            random: Arc::new(SystemRandom),
            replicas: Vec::new(),
            map_size: 16 << 30,
        }
    }
}

impl Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("cache", &self.cache).finish_non_exhaustive()
    }
}

impl Vault {
    /// Makes an empty vault in the key directory `keys`, which exists. What an attempt left that was cut short is replaced.
    ///
    /// # Errors
    /// `Refused` where there is a vault already, else where it cannot be written.
    pub fn create(keys: &Path, log: LogId, settings: &Settings) -> Result<()> {
        Self::create_in(Arc::new(FileSystem::new(keys)), &keys.join(directory::NAME), log, settings)
    }

    /// Makes an empty vault: roots in the store `keys`, the database in `directory`.
    ///
    /// # Errors
    /// As [`Vault::create`].
    pub fn create_in(keys: Arc<dyn Store>, directory: &Path, log: LogId, settings: &Settings) -> Result<()> {
        directory::make(directory)?;
        let taken = || Error::new(ErrorKind::Refused, format!("{} is a vault already", directory.display()));
        if registry::is_open(&directory::canonical(directory)?) {
            return Err(taken());
        }
        let lmdb = Lmdb::create(directory, settings.map_size)?;
        let made = lmdb.read(Meta::read);
        if made.map_err(|error| error.into_error(lmdb.name()))?.is_some() {
            return Err(taken());
        }
        let roots = Roots::new(keys, settings);
        roots.create()?;
        let keys = Keys::generate(log, &*settings.random)?;
        roots.put(&roots.seal(&keys)?)?;
        directory::sync(directory)?;
        directory::sync(directory.parent().unwrap_or(directory))?;
        // Last: from here on it is a vault.
        let begun = lmdb.write(|_, txn| {
            Bucket { start: 0, id: 0, entries: 0 }.write(txn)?;
            Meta { log, generation: keys.generation, next_number: 0, next_bucket: 1 }.write(txn)
        });
        begun.map_err(|error| error.into_error(lmdb.name()))
    }

    /// Whether there is anything of a vault in the key directory `keys`.
    pub fn is_in(keys: &Path) -> bool {
        directory::has(&keys.join(directory::NAME)).unwrap_or(false)
    }

    /// Opens the vault in the key directory `keys`. Where this process has it open already, the handles share it, with
    /// the settings of the first.
    ///
    /// Opened for writing, what a crash left of an erasure is tidied up; [`Vault::unconfirmed`] tells of one to go on with.
    /// Replicas are brought up to date first, and made where their directories are empty.
    ///
    /// # Errors
    /// `Unavailable` where there is none, `NoKey` where its root is missing, `Refused` where it is another log's,
    /// `Tampered` where it is damaged, `Locked` where this process has a handle that writes already. Of replicas:
    /// `Unavailable` where one is missing, damaged or cannot be written, `Refused` where it is another log's, or newer than
    /// the vault.
    pub fn open(keys: &Path, log: LogId, access: Access, settings: &Settings) -> Result<Self> {
        Self::open_in(Arc::new(FileSystem::new(keys)), &keys.join(directory::NAME), log, access, settings)
    }

    /// Opens a vault: roots in the store `keys`, the database in `directory`.
    ///
    /// # Errors
    /// As [`Vault::open`].
    pub fn open_in(
        keys: Arc<dyn Store>,
        directory: &Path,
        log: LogId,
        access: Access,
        settings: &Settings,
    ) -> Result<Self> {
        let canonical = directory::canonical(directory).map_err(|error| missing(directory, error))?;
        let shared = registry::share(&canonical, || Shared::open(keys, &canonical, log, settings))?;
        if shared.log != log {
            let name = shared.lmdb.name();
            return Err(Error::new(
                ErrorKind::Refused,
                format!("{name} is the vault of another log, {}", shared.log),
            ));
        }
        if access == Access::Write && shared.writing.swap(true, Ordering::AcqRel) {
            let message = format!("{} is open for writing in this process already", shared.lmdb.name());
            return Err(Error::new(ErrorKind::Locked, message));
        }
        let vault = Vault { shared, access };
        if access == Access::Write {
            vault.shared.attach(&settings.replicas)?;
            vault.shared.tidy()?;
            vault.shared.replicas().require_all()?;
        }
        Ok(vault)
    }
}

impl Roots {
    fn new(store: Arc<dyn Store>, settings: &Settings) -> Self {
        Roots { store, root: settings.root.clone(), random: settings.random.clone() }
    }
}

impl Shared {
    fn open(keys: Arc<dyn Store>, directory: &Path, log: LogId, settings: &Settings) -> Result<Self> {
        let lmdb = Lmdb::open(directory, settings.map_size).map_err(|error| missing(directory, error))?;
        let roots = Roots::new(keys, settings);
        let keys = load(&lmdb, &roots, log)?;
        Ok(Shared {
            log,
            lmdb,
            roots,
            random: settings.random.clone(),
            cache: Cache::new(settings.cache, &*settings.random)?,
            state: RwLock::new(State { keys: Arc::new(keys), blocked: Vec::new() }),
            writing: AtomicBool::new(false),
            replicas: RwLock::default(),
        })
    }

    /// After a crash, or none: destroys what is not of the generation that counts, makes spare keys anew, and holds back
    /// whoever is being erased.
    fn tidy(&self) -> Result<()> {
        let keys = self.change(|change| {
            if let Some((last, _)) = change.tables.rows.last(change.txn)?
                && super::rows::parse_number(last)? >= change.meta.next_number
            {
                let message = "the vault has a row beyond its last number: restore it from a backup";
                return Err(Error::tampered(message).into());
            }
            let used = change.buckets()?.iter().map(|bucket| bucket.id).collect::<Vec<_>>();
            let spare_rows = change.meta.next_number.div_ceil(1 << ROWS_LOG2);
            let (keys, next) =
                change.keys.with_fresh_spares(spare_rows, |id| used.contains(&id), &*self.random)?;
            self.write_keys(&keys)?;
            change.meta.next_bucket = next;
            Ok(Arc::new(keys))
        })?;
        self.take(keys.clone());
        self.destroy_others(keys.generation)?;
        self.hold_back()
    }

    pub(super) fn skip_to(&self, next: u64) -> Result<()> {
        if row_bucket(next) >= MAX_ROWS as u64 {
            return Err(Error::new(ErrorKind::Refused, format!("a vault cannot hold {next} subjects")));
        }
        self.change(|change| {
            change.provide(next, 0)?;
            change.meta.next_number = change.meta.next_number.max(next);
            Ok(())
        })
    }
}

/// The keys of the generation that counts.
fn load(lmdb: &Lmdb, roots: &Roots, log: LogId) -> Result<Keys> {
    let meta = || lmdb.read(Meta::read).map_err(|error| error.into_error(lmdb.name()));
    loop {
        let found = meta()?.ok_or_else(|| unfinished(lmdb.name()))?;
        if found.log != log {
            return Err(another_log(lmdb.name(), &found));
        }
        match roots.load(log, found.generation) {
            // A writer has gone on to the next, and destroyed this one.
            Err(_) if meta()?.is_some_and(|now| now.generation != found.generation) => {}
            result => return result,
        }
    }
}

fn missing(directory: &Path, error: Error) -> Error {
    match error.io_error().map(io::Error::kind) {
        Some(io::ErrorKind::NotFound) => unfinished(&directory.display().to_string()),
        _ => error,
    }
}

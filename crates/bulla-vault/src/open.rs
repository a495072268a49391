//! Making a vault, and opening it.

use std::fmt::{self, Debug};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use super::arrivals::Arrivals;
use super::cache::Cache;
use super::database::{Database, FILE};
use super::directory;
use super::index::{Bucket, END, put_in};
use super::keys::{Keys, MAX_ROWS, ROWS_LOG2, row_bucket};
use super::record::{Meta, Skipped};
use super::root::{Root, RootFile};
use super::roots::Roots;
use super::snapshot::{another_log, unfinished};
use super::transaction::ReadTransaction;
use super::transaction_error::TransactionError;
use super::{Access, ReplicaLocation, Shared, State, Vault, record, registry, rows};
use bulla_crypto::environment::{Random, SystemRandom};
use bulla_proof::commitment::LogId;
use bulla_store::{Error, ErrorKind, Result};
use bulla_store::{FileSystem, Store};

/// How a vault is opened.
#[derive(Clone)]
pub struct Settings {
    /// How many subjects are kept in memory, about 70 bytes each (default 262,144).
    pub cache: usize,
    /// After how many new subjects a sixteenth of the index takes in those who are new to it (default 1,024); 0 is all of it, at once.
    pub index_every: u64,
    /// How roots are kept (default: as files).
    pub root: Arc<dyn Root>,
    /// Where keys come from.
    pub random: Arc<dyn Random>,
    /// Where replicas are kept while the vault is open for writing, at most [`crate::MAX_REPLICAS`] (default: none).
    pub replicas: Vec<ReplicaLocation>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            cache: 262_144,
            index_every: if cfg!(test) { 0 } else { 1024 },
            root: Arc::new(RootFile),
            random: Arc::new(SystemRandom),
            replicas: Vec::new(),
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
    /// `Refused` where there is a vault already, `Unavailable` on a file system with blocks of less than 4,096 bytes, else where it
    /// cannot be written.
    pub fn create(keys: &Path, log: LogId, settings: &Settings) -> Result<()> {
        Self::create_in(Arc::new(FileSystem::new(keys)), &keys.join(directory::NAME), log, settings)
    }

    /// Makes an empty vault: roots in the store `keys`, the database in `directory`.
    ///
    /// # Errors
    /// As [`Vault::create`].
    pub fn create_in(keys: Arc<dyn Store>, directory: &Path, log: LogId, settings: &Settings) -> Result<()> {
        directory::make(directory)?;
        directory::require_blocks(directory)?;
        if registry::is_open(&directory::canonical(directory)?) {
            return Err(Error::new(
                ErrorKind::Refused,
                format!(
                    "{}: this process has the vault open that is, or was, in there: close the log, and every producer and reader of it, first",
                    directory.display()
                ),
            ));
        }
        let about = |error: TransactionError| error.into_error(&directory.join(FILE).display().to_string());
        let database = Database::create(directory).map_err(about)?;
        if database.read(Meta::peek).map_err(about)?.is_some() {
            return Err(Error::new(
                ErrorKind::Refused,
                format!("{} is a vault already", directory.display()),
            ));
        }
        let roots = Roots::new(keys, settings);
        roots.create()?;
        let keys = Keys::generate(log, &*settings.random)?;
        roots.put(&roots.seal(&keys)?)?;
        directory::sync(directory)?;
        directory::sync(directory.parent().unwrap_or(directory))?;
        // Last: from here on it is a vault.
        let begun = database.write(|txn| {
            let _empty = put_in(txn, &keys, Bucket { id: 0, start: 0, end: END }, Vec::new())?;
            record::begin(txn, &keys)
        });
        begun.map_err(about)
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
    /// `NoKey` where there is none, or its root is missing, `Refused` where it is another log's, `Unavailable` where it is
    /// damaged, or, to write, on a file system with blocks of less than 4,096 bytes, `Locked` where this process has a handle
    /// that writes already. Of replicas:
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
        let shared = registry::share(&canonical, || Shared::open(keys, directory, log, settings))?;
        if shared.log != log {
            let name = shared.database.name();
            return Err(Error::new(
                ErrorKind::Refused,
                format!("{name} is the vault of another log, {}", shared.log),
            ));
        }
        if access == Access::Write && shared.writing.swap(true, Ordering::AcqRel) {
            let message = format!("{} is open for writing in this process already", shared.database.name());
            return Err(Error::new(ErrorKind::Locked, message));
        }
        let vault = Vault { shared, access, has_ended: AtomicBool::new(false) };
        if access == Access::Write {
            directory::require_blocks(&canonical)?;
        }
        vault.shared.snapshot(|snapshot| {
            record::require_others(snapshot.txn, snapshot.keys)?;
            // What is refused as damaged is not copied over a good replica first.
            if access == Access::Write {
                require_tidy(snapshot.txn, snapshot.keys, &snapshot.meta)?;
            }
            Ok(())
        })?;
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
        let file = directory.join(FILE).display().to_string();
        let database =
            Database::open(directory).map_err(|error| missing(directory, error.into_error(&file)))?;
        let roots = Roots::new(keys, settings);
        let keys = load(&database, &roots, log)?;
        Ok(Shared {
            log,
            database,
            roots,
            random: settings.random.clone(),
            known: Mutex::default(),
            cache: Cache::new(settings.cache, &*settings.random)?,
            unindexed: Mutex::default(),
            index_every: settings.index_every,
            arrivals: Arrivals::default(),
            state: RwLock::new(State { keys: Arc::new(keys), blocked: Vec::new() }),
            writing: AtomicBool::new(false),
            replicas: RwLock::default(),
        })
    }

    /// After a crash, or none: destroys what is not of the generation that counts, makes spare keys anew, and holds back
    /// whoever is being erased.
    fn tidy(&self) -> Result<()> {
        let keys = self.change(|change| {
            let buckets = require_tidy(change.txn, &change.keys, &change.meta)?;
            let used = buckets.iter().map(|bucket| bucket.id).collect::<Vec<_>>();
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
            let from = change.meta.next_number;
            if next > from {
                change.provide(next, 0)?;
                let mut skipped = Skipped::read(change.txn, &change.keys)?;
                skipped.add(from, next)?;
                skipped.write(change.txn, &change.keys)?;
                change.meta.next_number = next;
            }
            Ok(())
        })
    }
}

/// That nothing keeps the vault from being tidied up. Gives the index buckets that are in use.
///
/// # Errors
/// Where the vault is damaged.
fn require_tidy(
    txn: &ReadTransaction<'_>,
    keys: &Keys,
    meta: &Meta,
) -> Result<Vec<Bucket>, TransactionError> {
    rows::require_no_later(txn, keys, meta)?;
    Bucket::all(txn, keys)
}

/// The keys of the generation that counts.
fn load(database: &Database, roots: &Roots, log: LogId) -> Result<Keys> {
    let meta = || database.read(Meta::peek).map_err(|error| database.explain(error));
    loop {
        let found = meta()?.ok_or_else(|| unfinished(database.name()))?.content;
        if found.log != log {
            return Err(another_log(database.name(), &found));
        }
        match roots.load(log, found.generation) {
            // A writer has gone on to the next, and destroyed this one.
            Err(_) if meta()?.is_some_and(|now| now.content.generation != found.generation) => {}
            result => return result,
        }
    }
}

fn missing(directory: &Path, error: Error) -> Error {
    match error.io_error().map(io::Error::kind) {
        Some(io::ErrorKind::NotFound) => {
            let unfinished = unfinished(&directory.display().to_string());
            Error::new(ErrorKind::NoKey, unfinished.to_string())
        }
        _ => error,
    }
}

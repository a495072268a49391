//! The LMDB environment of a vault: four databases, their transactions, and room for them.
//!
//! - No transaction of this process is active while the map changes its size: each runs inside `gate`.
//! - A write transaction that returned is durable: no flag that would put its sync off is ever set.
//! - The environment belongs to the process that opened it: a forked child neither uses nor closes it.
//!
//! LMDB trusts the structure of its own file. What can be told beforehand (a file that was cut off) is refused here;
//! a page that somebody altered by hand may end the process, as LMDB's documentation says.
#![allow(unsafe_code)]

use heed::types::Bytes;
use heed::{CommitOrAbort, CompactionOption, Env, EnvFlags, EnvOpenOptions, MdbError, RoTxn, WithoutTls};
use std::io;
use std::mem::ManuallyDrop;
use std::path::Path;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use super::directory;
use super::tables::{Table, Tables};
use super::transaction_error::{TransactionError, of_heed};
use super::write_transaction::WriteTransaction;
use bulla_store::process;
use bulla_store::{Error, ErrorKind, Result};

/// The open environment.
pub(super) struct Lmdb {
    env: ManuallyDrop<Env<WithoutTls>>,
    pub(super) tables: Tables,
    gate: RwLock<()>,
    owner: u32,
    name: String,
}

/// The most transactions at the same time, of all processes together.
const READERS: u32 = 1024;
const NAMES: [&str; 4] = ["meta", "rows", "index", "buckets"];
const DATABASES: u32 = 4;
/// A multiple of every system's page size.
const PAGES: usize = 1 << 16;
/// How long another handle in this process may take to close the environment before it is opened again.
const CLOSING: Duration = Duration::from_secs(10);

impl Lmdb {
    /// Makes the databases in `directory`, those that are not there yet.
    ///
    /// # Errors
    /// Where LMDB or the file system fails.
    pub(super) fn create(directory: &Path, map_size: usize) -> Result<Self> {
        let env = open(directory, map_size)?;
        let failed = |error| of_heed(&name(directory), error);
        let txn = begin(&env, directory, Env::write_txn)?;
        let made = env.create_databases_and_commit(txn, |opener, txn| {
            let mut create = |name| opener.create_database::<Bytes, Bytes>(txn, Some(name));
            let [meta, rows, index, buckets] = NAMES;
            let made = (create(meta)?, create(rows)?, create(index)?, create(buckets)?);
            Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit(made))
        });
        let tables = made.map_err(failed)?.unwrap_commit();
        Ok(Self::new(env, tables, directory))
    }

    /// Opens the databases in `directory`.
    ///
    /// # Errors
    /// `Tampered` where they are not all there, or the file is not whole; else where LMDB or the file system fails.
    pub(super) fn open(directory: &Path, map_size: usize) -> Result<Self> {
        let data = directory.join("data.mdb");
        let length = || directory::length_of(&data);
        if length()? == 0 {
            // LMDB would take it for a new one.
            return Err(cut_off(&data));
        }
        let env = open(directory, map_size)?;
        let failed = |error| of_heed(&name(directory), error);
        let pages = env.info().last_page_number as u64 + 1;
        let page = u64::from(env.unnamed_database_stat().page_size);
        // Asked for last: a writer may be making it longer, and says so after it has.
        if length()? < pages.saturating_mul(page) {
            return Err(cut_off(&data));
        }
        env.clear_stale_readers().map_err(failed)?;
        Self::with_databases(env, directory)
    }

    /// The same on a medium that takes nothing.
    #[cfg(test)]
    pub(super) fn open_read_only(directory: &Path, map_size: usize) -> Result<Self> {
        let env = open_with(directory, map_size, EnvFlags::READ_ONLY);
        Self::with_databases(env.map_err(|error| of_heed(&name(directory), error))?, directory)
    }

    /// The same, with time for others to do something in the middle of it.
    #[cfg(test)]
    pub(super) fn open_while(directory: &Path, map_size: usize, others: impl FnOnce()) -> Result<Self> {
        let env = open(directory, map_size)?;
        others();
        Self::with_databases(env, directory)
    }

    /// `env` is known to nobody else yet.
    fn with_databases(env: Env<WithoutTls>, directory: &Path) -> Result<Self> {
        let failed = |error| of_heed(&name(directory), error);
        let txn = begin(&env, directory, Env::read_txn)?;
        let opened = env.open_databases_and_commit(txn, |opener, txn| {
            let open = |name| opener.open_database::<Bytes, Bytes>(txn, Some(name));
            let [meta, rows, index, buckets] = NAMES;
            let opened = (open(meta)?, open(rows)?, open(index)?, open(buckets)?);
            Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit(opened))
        });
        let (Some(meta), Some(rows), Some(index), Some(buckets)) = opened.map_err(failed)?.unwrap_commit()
        else {
            return Err(Error::tampered(format!(
                "{} holds no vault, or not all of one: restore it from a backup",
                name(directory)
            )));
        };
        Ok(Self::new(env, (meta, rows, index, buckets), directory))
    }

    fn new(env: Env<WithoutTls>, tables: (Table, Table, Table, Table), directory: &Path) -> Self {
        let (meta, rows, index, buckets) = tables;
        Lmdb {
            env: ManuallyDrop::new(env),
            tables: Tables { meta, rows, index, buckets },
            gate: RwLock::new(()),
            owner: process::id(),
            name: name(directory),
        }
    }

    /// Whether this process opened it.
    pub(super) fn is_ours(&self) -> bool {
        self.owner == process::id()
    }

    /// How the directory is called, for messages.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The size of the map, in bytes.
    pub(super) fn map_size(&self) -> usize {
        self.env.info().map_size
    }

    /// Runs `work` on a snapshot.
    ///
    /// # Errors
    /// What `work` says, or where LMDB fails.
    pub(super) fn read<T>(
        &self,
        work: impl Fn(&Tables, &RoTxn<'_>) -> Result<T, TransactionError>,
    ) -> Result<T, TransactionError> {
        loop {
            let inside = self.gate.read().unwrap_or_else(PoisonError::into_inner);
            match self.env.read_txn() {
                Ok(txn) => return work(&self.tables, &txn),
                Err(heed::Error::Mdb(MdbError::MapResized)) => {}
                Err(error) => return Err(of_heed(&self.name, error).into()),
            }
            drop(inside);
            self.adopt()?;
        }
    }

    /// Runs `work` and makes what it did durable; where there is no room, makes room and runs it again.
    ///
    /// # Errors
    /// What `work` says, and then nothing has changed; or where LMDB fails.
    pub(super) fn write<T>(
        &self,
        work: impl Fn(&Tables, &mut WriteTransaction<'_>) -> Result<T, TransactionError>,
    ) -> Result<T, TransactionError> {
        loop {
            let size = self.map_size();
            match self.try_write(&work) {
                Err(TransactionError::Full) => self.grow(size)?,
                Ok(Some(done)) => return Ok(done),
                Ok(None) => self.adopt()?,
                Err(error) => return Err(error),
            }
        }
    }

    /// `None` where another process has grown the map.
    fn try_write<T>(
        &self,
        work: impl Fn(&Tables, &mut WriteTransaction<'_>) -> Result<T, TransactionError>,
    ) -> Result<Option<T>, TransactionError> {
        let _inside = self.gate.read().unwrap_or_else(PoisonError::into_inner);
        let mut txn = match self.env.write_txn() {
            Ok(txn) => WriteTransaction::new(&self.tables, txn),
            Err(heed::Error::Mdb(MdbError::MapResized)) => return Ok(None),
            Err(error) => return Err(of_heed(&self.name, error).into()),
        };
        let done = work(&self.tables, &mut txn)?;
        txn.commit()?;
        Ok(Some(done))
    }

    /// Copies a snapshot to a file, durably, without what has been freed. What the file was is overwritten.
    ///
    /// # Errors
    /// Where LMDB or the file system fails.
    pub(super) fn copy_to(&self, path: &Path) -> Result<()> {
        let failed = |error| Error::io(format!("writing {}", name(path)), error);
        let mut file = directory::begin_file(path).map_err(failed)?;
        loop {
            let inside = self.gate.read().unwrap_or_else(PoisonError::into_inner);
            match self.env.copy_to_file(&mut file, CompactionOption::Enabled) {
                Ok(()) => return file.sync_all().map_err(failed),
                // Nothing is written before the snapshot is there.
                Err(heed::Error::Mdb(MdbError::MapResized)) => {}
                Err(error) => return Err(of_heed(&format!("writing {}", name(path)), error)),
            }
            drop(inside);
            self.adopt()?;
        }
    }

    /// Doubles the map, unless somebody has done so since it had `size` bytes.
    fn grow(&self, size: usize) -> Result<()> {
        self.resize(|now| (now <= size).then(|| now.saturating_mul(2)))
    }

    /// Takes over the size that another process has given the map.
    fn adopt(&self) -> Result<()> {
        self.resize(|_| Some(0))
    }

    fn resize(&self, choose: impl Fn(usize) -> Option<usize>) -> Result<()> {
        let _alone = self.gate.write().unwrap_or_else(PoisonError::into_inner);
        let Some(size) = choose(self.map_size()) else { return Ok(()) };
        // SAFETY: every transaction of this process runs inside `gate`, which is ours alone now, and none outlives
        // it: `read` and `write` hand them out by reference, `copy_to` ends its own.
        let resized = unsafe { self.env.resize(size) };
        resized.map_err(|error| of_heed(&format!("making room in {}", self.name), error))
    }
}

impl Drop for Lmdb {
    fn drop(&mut self) {
        if !self.is_ours() {
            // Closing would touch the parent's lock file and its table of readers.
            return;
        }
        // SAFETY: dropped here, once, and not used afterwards.
        unsafe { ManuallyDrop::drop(&mut self.env) }
    }
}

fn name(path: &Path) -> String {
    path.display().to_string()
}

fn cut_off(data: &Path) -> Error {
    Error::tampered(format!("{} is not whole: restore it from a backup", name(data)))
}

/// The first transaction of an environment that nobody else knows of: since it was opened another process may have
/// grown the map.
fn begin<'e, T>(
    env: &'e Env<WithoutTls>,
    directory: &Path,
    begin: impl Fn(&'e Env<WithoutTls>) -> heed::Result<T>,
) -> Result<T> {
    loop {
        let resized = match begin(env) {
            // SAFETY: no transaction of this process is active: this would have been the first.
            Err(heed::Error::Mdb(MdbError::MapResized)) => unsafe { env.resize(0) },
            begun => return begun.map_err(|error| of_heed(&name(directory), error)),
        };
        resized.map_err(|error| of_heed(&name(directory), error))?;
    }
}

fn open(directory: &Path, map_size: usize) -> Result<Env<WithoutTls>> {
    let directory = &directory::canonical(directory)?;
    match open_with(directory, map_size, EnvFlags::empty()) {
        Err(heed::Error::EnvAlreadyOpened) => open_after(directory, map_size),
        // Who may read only reads; a write transaction is refused then.
        Err(heed::Error::Io(error)) if may_only_read(&error) => {
            open_with(directory, map_size, EnvFlags::READ_ONLY)
        }
        result => result,
    }
    .map_err(|error| match error {
        heed::Error::EnvAlreadyOpened => Error::new(
            ErrorKind::Locked,
            format!("{} is open in this process by other means: close that first", name(directory)),
        ),
        error => of_heed(&name(directory), error),
    })
}

fn may_only_read(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

/// The last user of it in this process is just closing it.
fn open_after(directory: &Path, map_size: usize) -> heed::Result<Env<WithoutTls>> {
    if let Some(closing) = heed::env_closing_event(directory) {
        closing.wait_timeout(CLOSING);
    }
    open_with(directory, map_size, EnvFlags::empty())
}

fn open_with(directory: &Path, map_size: usize, flags: EnvFlags) -> heed::Result<Env<WithoutTls>> {
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    options.map_size(map_size.next_multiple_of(PAGES)).max_dbs(DATABASES).max_readers(READERS);
    // SAFETY: no flag but `READ_ONLY` is ever given, and that one lifts none of LMDB's guarantees.
    unsafe { options.flags(flags) };
    // SAFETY: the file is mapped, so nobody but LMDB may change it while it is open. It lies in a directory of mode
    // 0700 that belongs to the log's writer; nothing in Bulla reaches it by other means, LMDB's lock file orders the
    // processes that do, and heed refuses a second mapping in this one.
    unsafe { options.open(directory) }
}

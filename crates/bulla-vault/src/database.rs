//! The SQLite database of a vault: its connections, their transactions, and how it is opened without believing it.
//!
//! - A write transaction that returned is durable: the write-ahead log is synced at each commit.
//! - Before anything is read from a file, what it says of itself is compared with what this version makes: no other table, index,
//!   view or trigger is ever in it. What a row holds is authenticated by whoever reads it.
//! - One connection writes; those that read are open for reading only, and change nothing but the shared memory beside the file.
//! - Connections belong to the process that opened them: a forked child neither uses nor closes one.
//! - What a commit that failed has left in the log of changes may be seen after that, and not be on the medium, though syncing it
//!   again succeeds. So nothing is read or written before it was taken into the file, which is synced.
//! - Where the system failed, all of them that nobody uses are closed: they share locks, of which one may be left that could not be let
//!   go of, and only with the last of them does it go.

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, Error as Sqlite, ErrorCode, OpenFlags, Transaction, TransactionBehavior};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::directory::{self, FileId, Stamp};
use super::patience::{LITTLE_PATIENCE, PATIENCE, Patience};
use super::table::TABLES;
use super::transaction::{ReadTransaction, WriteTransaction};
use super::transaction_error::{TransactionError, damaged, explained};
use bulla_store::process;
use bulla_store::{Error, ErrorKind, Result};

/// The open database.
pub(super) struct Database {
    directory: PathBuf,
    name: String,
    file_name: String,
    idle: Mutex<Vec<Reader>>,
    writer: Mutex<Option<Writer>>,
    /// Which file was opened first.
    opened: OnceLock<FileId>,
    patience: Arc<Patience>,
    /// Whether a commit failed, and what it left was not taken into the file since.
    unsynced: AtomicBool,
    owner: u32,
}

/// The connection that writes.
struct Writer {
    connection: Connection,
    /// Which file the log of changes was after the first transaction. It is the same for as long as the connection is open.
    log: Option<FileId>,
}

/// A connection that reads.
struct Reader {
    connection: Connection,
    /// What the file was when it was opened, where the directory takes nothing, not even the memory that processes share: then
    /// nobody else may change the file, and whether somebody did is looked after before and after each transaction.
    frozen: Option<Stamp>,
}

/// What is done once in a transaction. There are many that do, and what is around them is the same code for all.
type Reading<'a> = Box<dyn FnOnce(&ReadTransaction<'_>) -> Result<(), TransactionError> + 'a>;
type Writing<'a> = Box<dyn FnOnce(&mut WriteTransaction<'_>) -> Result<(), TransactionError> + 'a>;

/// Why there is what a transaction gave.
const RAN: &str = "a transaction that succeeds has run";

/// What a connection is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Read,
    Write,
    /// To read where nothing can be written, not even beside the file.
    ReadFrozen,
}

/// The name of the file in its directory.
pub(super) const FILE: &str = "vault.db";
/// The memory that processes share, beside it.
const SHARED: &str = "vault.db-shm";
/// What SQLite keeps beside it: changes that are not in it yet, and where these are.
pub(super) const WAL: &str = "vault.db-wal";
/// What the vault was kept in once.
const LMDB: &str = "data.mdb";

/// "Bull", where a file says whose it is.
const APPLICATION: i32 = 0x4275_6c6c;
/// Version 1 had what the vault follows in a record of its own, version 3 without a root, and version 4 led to everybody by the index.
const VERSION: i32 = 5;
/// The bytes of a page.
const PAGE: u64 = 4096;
/// The most connections that are kept for whoever reads next.
const IDLE: usize = 8;
/// The longest path of a directory, in bytes: SQLite has room for 512, with the names of its files.
const LONGEST_PATH: usize = 480;
/// The longest row, in bytes: twice as long as the record of as many skipped ranges as there can be, than which none is longer.
const LONGEST_ROW: i32 = 1 << 21;

/// What holds on every connection. A page is checked when it is read; none is mapped, since what happens to a mapped file
/// behind the process's back ends the process.
///
/// The pages of the newest people, and of the records, are written again with every group of new people, so the log of changes grows to
/// 8 MiB before it is taken into the file: each of its pages is then written there once for many commits, and without the two syncs
/// that it takes.
const SETTINGS: &str = "
    PRAGMA cell_size_check = ON;
    PRAGMA mmap_size = 0;
    PRAGMA temp_store = MEMORY;
    PRAGMA cache_size = -2048;
    PRAGMA synchronous = FULL;
    PRAGMA secure_delete = ON;
    PRAGMA wal_autocheckpoint = 2048;
    PRAGMA journal_size_limit = 8388608;
";

/// What holds besides of the connection that writes. A transaction writes its rows in the order of their ids, also those of the index when that takes
/// people in, and comes back to no page but the few that lead to them. So a page leaves as the next one comes, and a commit has few left to write:
/// hundreds at once keep a processor from others for a millisecond.
const WRITING: &str = "PRAGMA cache_size = -128;";

impl Database {
    /// Makes the database in `directory`, or goes on where that was cut short.
    ///
    /// # Errors
    /// `Refused` where there is a vault of an earlier version; where there is a database that is damaged; where SQLite or the
    /// file system fails.
    pub(super) fn create(directory: &Path) -> Result<Self, TransactionError> {
        refuse_earlier(directory)?;
        let database = Self::new(directory, Arc::default())?;
        let file = database.file();
        directory::touch(&file)?;
        let connection = connect(&file, Purpose::Write, &database.patience)?;
        if connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0))? == 0 {
            make(&connection)?;
        }
        keep_a_log(&connection)?;
        check(&connection, &file, Purpose::Write)?;
        *database.writer() = Some(Writer { connection, log: None });
        Ok(database)
    }

    /// Opens the database in `directory`.
    ///
    /// # Errors
    /// Where it is damaged; `Refused` where it is a vault of an earlier version; where there is none, SQLite or the file
    /// system fails.
    pub(super) fn open(directory: &Path) -> Result<Self, TransactionError> {
        Self::open_with(directory, Arc::default())
    }

    /// The same, of which connections wait no longer than others that share this patience.
    ///
    /// # Errors
    /// As [`Database::open`].
    pub(super) fn open_with(directory: &Path, patience: Arc<Patience>) -> Result<Self, TransactionError> {
        let database = Self::new(directory, patience)?;
        let file = database.file();
        directory::require_files(&file)?;
        match directory::length_of(&file) {
            // SQLite would take it for a new one.
            Ok(0) => return Err(damaged("it is empty")),
            // SQLite would take what is missing for zeros. A crash may leave such a file, with all that is missing in the log.
            Ok(length) if length % PAGE != 0 && !database.has_changes() => {
                return Err(damaged("it is cut off"));
            }
            Ok(_) => {}
            Err(error) => return Err(refuse_earlier(directory).err().unwrap_or(error).into()),
        }
        let opened = FileId::of(&file)?;
        let reader = database.reader()?;
        database.keep(reader);
        database.opened.get_or_init(|| opened);
        Ok(database)
    }

    fn new(directory: &Path, patience: Arc<Patience>) -> Result<Self> {
        let name = directory::canonical(directory)?;
        if name.as_os_str().len() > LONGEST_PATH {
            let message = format!("{}: SQLite takes paths of {LONGEST_PATH} bytes at most", name.display());
            return Err(Error::unavailable(message));
        }
        Ok(Database {
            directory: directory.to_owned(),
            file_name: name.join(FILE).display().to_string(),
            name: name.display().to_string(),
            idle: Mutex::default(),
            writer: Mutex::default(),
            opened: OnceLock::new(),
            patience,
            unsynced: AtomicBool::new(false),
            owner: process::id(),
        })
    }

    /// Whether this process opened it.
    pub(super) fn is_ours(&self) -> bool {
        self.owner == process::id()
    }

    /// That the file is still the one that was opened. What is written to another, or to one that has no name any more, is in no
    /// vault that anybody will open.
    ///
    /// # Errors
    /// `Unavailable` where it is not, or where that cannot be told.
    pub(super) fn require_in_place(&self) -> Result<()> {
        match self.is_in_place()? {
            true => Ok(()),
            false => Err(self.not_in_place("")),
        }
    }

    /// Whether the file is still the one that was opened.
    ///
    /// # Errors
    /// Where that cannot be told.
    pub(super) fn is_in_place(&self) -> Result<bool> {
        match (self.opened.get(), FileId::of(&self.file())) {
            (Some(opened), Ok(found)) => Ok(*opened == found),
            (None, _) => Ok(true),
            (_, Err(error))
                if error.io_error().is_none_or(|error| error.kind() != io::ErrorKind::NotFound) =>
            {
                Err(error)
            }
            _ => Ok(false),
        }
    }

    /// That a file, the database's own or one with something behind its name, is not the one that was opened.
    fn not_in_place(&self, behind: &str) -> Error {
        Error::unavailable(format!(
            "{}{behind} was replaced, moved or removed while it was open: nobody new gets a key until the one that was opened is \
             back in its place. Without that, stop the writer, and look which vault is the newest",
            self.file_name
        ))
    }

    /// That the content is older than what was there before.
    pub(super) fn went_back(&self) -> Error {
        Error::unavailable(format!(
            "{} went back to an earlier state while it was open, or what lies beside it was cut or removed: nobody new gets a \
             key of it. Stop the writer, and restore `vault` and `roots`, both from a replica or both from the newest backup",
            self.file_name
        ))
    }

    /// How long its connections wait for others.
    pub(super) fn patience(&self) -> &Arc<Patience> {
        &self.patience
    }

    /// The directory that its files are in.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// How the directory is called, for messages.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// What ended work early, for a caller who cannot do it again.
    pub(super) fn explain(&self, error: TransactionError) -> Error {
        error.into_error(&self.file_name)
    }

    /// Runs `work` on a snapshot.
    ///
    /// # Errors
    /// What `work` says, or where SQLite fails.
    pub(super) fn read<T>(
        &self,
        work: impl FnOnce(&ReadTransaction<'_>) -> Result<T, TransactionError>,
    ) -> Result<T, TransactionError> {
        let mut gave = None;
        self.read_once(Box::new(|txn| {
            gave = Some(work(txn)?);
            Ok(())
        }))?;
        Ok(gave.expect(RAN))
    }

    fn read_once(&self, work: Reading<'_>) -> Result<(), TransactionError> {
        if self.unsynced.load(Ordering::Acquire) {
            self.write(|_| Ok(()))?;
        }
        let done = self.read_with(work);
        if matches!(done, Err(TransactionError::Medium(_))) {
            self.idle().clear();
            // One that somebody writes with lets go of it where that fails.
            if let Ok(mut writer) = self.writer.try_lock() {
                writer.take();
            }
        }
        done
    }

    fn read_with(&self, work: Reading<'_>) -> Result<(), TransactionError> {
        let reader = self.reader()?;
        let transaction = reader.connection.unchecked_transaction()?;
        let done = work(&ReadTransaction::new(&transaction));
        drop(transaction);
        if reader.frozen.is_some_and(|then| !self.is_as(then)) {
            let what = format!(
                "{} was changed although it is on a medium that takes nothing here: read it where it is written",
                self.file_name
            );
            return Err(Error::unavailable(what).into());
        }
        done?;
        self.keep(reader);
        Ok(())
    }

    /// Runs `work` and makes what it did durable.
    ///
    /// # Errors
    /// What `work` says, and then nothing has changed; or where SQLite fails.
    pub(super) fn write<T>(
        &self,
        work: impl FnOnce(&mut WriteTransaction<'_>) -> Result<T, TransactionError>,
    ) -> Result<T, TransactionError> {
        let mut gave = None;
        self.write_once(Box::new(|txn| {
            gave = Some(work(txn)?);
            Ok(())
        }))?;
        Ok(gave.expect(RAN))
    }

    fn write_once(&self, work: Writing<'_>) -> Result<(), TransactionError> {
        let log = self.directory.join(WAL);
        let mut slot = self.writer();
        if let Some(Writer { log: Some(opened), .. }) = &*slot
            && FileId::of(&log).ok() != Some(*opened)
        {
            // What is written to it is in no vault that anybody will open.
            return Err(self.not_in_place("-wal").into());
        }
        let mut writer = match slot.take() {
            Some(writer) => writer,
            None => {
                let connected = connect_checked(&self.file(), Purpose::Write, &self.patience);
                Writer { connection: connected.inspect_err(|_| self.idle().clear())?, log: None }
            }
        };
        let done =
            self.make_good(&writer.connection).and_then(|()| self.write_with(&writer.connection, work));
        // One that failed is opened again, so that nothing is left of what failed.
        match done {
            Err(TransactionError::Medium(_) | TransactionError::Damaged(_)) => self.idle().clear(),
            _ => {
                writer.log = writer.log.or_else(|| FileId::of(&log).ok());
                *slot = Some(writer);
            }
        }
        done
    }

    /// Takes what a commit that failed has left into the file, durably.
    fn make_good(&self, connection: &Connection) -> Result<(), TransactionError> {
        if !self.unsynced.load(Ordering::Acquire) {
            return Ok(());
        }
        let blocked = connection.query_row("PRAGMA wal_checkpoint(FULL)", [], |row| row.get::<_, i64>(0))?;
        if blocked != 0 {
            let what = "after a sync that failed its log of changes is to be taken into it, and others read what was before: \
                        try again";
            return Err(TransactionError::Medium(what.to_owned()));
        }
        self.unsynced.store(false, Ordering::Release);
        Ok(())
    }

    fn write_with(&self, connection: &Connection, work: Writing<'_>) -> Result<(), TransactionError> {
        let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
        work(&mut WriteTransaction::new(&transaction))?;
        let committed = transaction.commit();
        if committed.is_err() {
            self.unsynced.store(true, Ordering::Release);
        }
        Ok(committed?)
    }

    /// Copies a snapshot to a new file, durably: its rows, and nothing of what is free. What the file was is gone.
    ///
    /// # Errors
    /// Where this database is damaged, or cannot be read; where the file cannot be written.
    pub(super) fn copy_to(&self, path: &Path) -> Result<(), TransactionError> {
        let writing = |what: String| {
            TransactionError::Failed(Error::unavailable(format!("writing {}: {what}", path.display())))
        };
        let sqlite = |error: Sqlite| writing(explained(&error));
        let begun = directory::begin_file(path);
        begun.map_err(|error| Error::io(format!("writing {}", path.display()), error))?;
        let target = connect(path, Purpose::Write, &self.patience).map_err(sqlite)?;
        // It is synced once, at the end.
        target.execute_batch("PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY").map_err(sqlite)?;
        make(&target).map_err(sqlite)?;
        self.read(|txn| {
            let transaction = target.unchecked_transaction().map_err(sqlite)?;
            let mut into = WriteTransaction::new(&transaction);
            for table in TABLES {
                txn.all(table, |id, row| match into.put(table, id, row) {
                    Err(TransactionError::Medium(what) | TransactionError::Damaged(what)) => {
                        Err(writing(what))
                    }
                    put => put,
                })?;
            }
            transaction.commit().map_err(sqlite)
        })?;
        keep_a_log(&target).map_err(sqlite)?;
        target.close().map_err(|(_, error)| sqlite(error))?;
        Ok(directory::sync_file(path)?)
    }

    /// Takes what was changed from the log of changes into the file, and cuts the log, so that neither has what was there
    /// before. What others are still reading stays until the next time.
    ///
    /// An erasure does not wait for long for those who read what was before it. They keep their state of the database meanwhile, so
    /// that the log of it cannot be cut: that is done later, and what is in it cannot be decrypted any more.
    pub(super) fn settle(&self) {
        let mut writer = self.writer();
        let Some(Writer { connection, .. }) = &mut *writer else { return };
        // It is no more than tidiness: whatever stays lies under keys that are gone.
        let _ = connection.busy_handler(Some(self.patience.waiting(LITTLE_PATIENCE)));
        let _ = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        let _ = connection.busy_handler(Some(self.patience.waiting(PATIENCE)));
    }

    /// From now on its medium takes nothing.
    #[cfg(test)]
    pub(super) fn make_read_only(&self) {
        let connection = connect(&self.file(), Purpose::Read, &self.patience).unwrap();
        *self.writer() = Some(Writer { connection, log: None });
    }

    /// A commit has failed, and the medium with it: all connections are closed, and the log of changes stays as it is.
    #[cfg(test)]
    pub(super) fn fail(&self) {
        let closing = |connection: &Connection| {
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).unwrap();
        };
        let (readers, writer) = (std::mem::take(&mut *self.idle()), self.writer().take());
        readers.iter().for_each(|reader| closing(&reader.connection));
        writer.iter().for_each(|writer| closing(&writer.connection));
        self.unsynced.store(true, Ordering::Release);
    }

    /// How many bytes the log of changes has.
    #[cfg(test)]
    pub(super) fn log_length(&self) -> u64 {
        directory::length_of(&self.directory.join(WAL)).unwrap_or(0)
    }

    /// Whether there are changes that may not be in the file yet.
    fn has_changes(&self) -> bool {
        directory::length_of(&self.directory.join(WAL)).is_ok_and(|length| length > 0)
    }

    fn file(&self) -> PathBuf {
        self.directory.join(FILE)
    }

    fn writer(&self) -> MutexGuard<'_, Option<Writer>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Reader>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, reader: Reader) {
        let mut idle = self.idle();
        if idle.len() < IDLE && reader.connection.is_autocommit() {
            idle.push(reader);
        }
    }

    fn reader(&self) -> Result<Reader, TransactionError> {
        let file = self.file();
        let idle = self.idle().pop();
        match idle {
            Some(Reader { frozen: Some(then), .. }) if !self.is_as(then) => {}
            Some(reader) => return Ok(reader),
            None => {}
        }
        directory::require_room(&self.directory, SHARED)?;
        match connect(&file, Purpose::Read, &self.patience) {
            // Where the directory does take files it is a failure, which may pass, and others may write there.
            Err(error) if is_refused(&error) && directory::takes_nothing(&self.directory) => {
                self.frozen_reader(&file, error)
            }
            connection => {
                let connection = connection?;
                check(&connection, &file, Purpose::Read)?;
                Ok(Reader { connection, frozen: None })
            }
        }
    }

    /// Whether the file is what it was then, and no log of changes has more than it.
    fn is_as(&self, then: Stamp) -> bool {
        Stamp::of(&self.file()).is_ok_and(|now| now == then) && !self.has_changes()
    }

    /// A connection to a file beside which nothing can be written.
    fn frozen_reader(&self, file: &Path, why: Sqlite) -> Result<Reader, TransactionError> {
        if self.has_changes() {
            return Err(Error::unavailable(format!(
                "{}-wal has changes that cannot be read where nothing can be written ({why}): copy the directory to \
                 where that can be done",
                self.file_name
            ))
            .into());
        }
        let then = Stamp::of(file)?;
        let connection = connect_checked(file, Purpose::ReadFrozen, &self.patience)?;
        Ok(Reader { connection, frozen: Some(then) })
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if !self.is_ours() {
            // Closing would let go of what the parent has locked, and take its log of changes away.
            std::mem::forget(std::mem::take(&mut *self.idle()));
            std::mem::forget(self.writer().take());
        }
    }
}

/// The database of an earlier version is not read by this one.
fn refuse_earlier(directory: &Path) -> Result<()> {
    let file = directory.join(LMDB);
    if !directory::has(&file)? || directory::has(&directory.join(FILE))? {
        return Ok(());
    }
    Err(earlier(&file))
}

fn earlier(file: &Path) -> Error {
    Error::new(
        ErrorKind::Refused,
        format!(
            "{} is a vault of an earlier version of Bulla, which this one does not read: export the log with the version \
             that wrote it, and begin a new one",
            file.display()
        ),
    )
}

/// Whether the file, or one beside it, could not be opened or made.
fn is_refused(error: &Sqlite) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly))
}

fn connect_checked(
    file: &Path,
    purpose: Purpose,
    patience: &Arc<Patience>,
) -> Result<Connection, TransactionError> {
    if let (Purpose::Write, Some(directory)) = (purpose, file.parent()) {
        directory::require_room(directory, SHARED)?;
    }
    let connection = connect(file, purpose, patience)?;
    check(&connection, file, purpose)?;
    Ok(connection)
}

/// A connection to a file that is there already.
fn connect(file: &Path, purpose: Purpose, patience: &Arc<Patience>) -> rusqlite::Result<Connection> {
    // A name that begins with "file:" is none then.
    let file = Path::new(".").join(file);
    let mut connection = match purpose {
        Purpose::Write => open(&file, OpenFlags::SQLITE_OPEN_READ_WRITE),
        Purpose::Read => open(&file, OpenFlags::SQLITE_OPEN_READ_ONLY),
        Purpose::ReadFrozen => {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
            open(Path::new(&format!("file:{}?immutable=1", escaped(&file))), flags)
        }
    }?;
    connection.busy_handler(Some(patience.waiting(PATIENCE)))?;
    connection.set_prepared_statement_cache_capacity(32);
    for (what, on) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
        (DbConfig::SQLITE_DBCONFIG_DQS_DDL, false),
        (DbConfig::SQLITE_DBCONFIG_DQS_DML, false),
    ] {
        connection.set_db_config(what, on)?;
    }
    for (limit, value) in [
        (Limit::SQLITE_LIMIT_LENGTH, LONGEST_ROW),
        (Limit::SQLITE_LIMIT_SQL_LENGTH, 1024),
        (Limit::SQLITE_LIMIT_ATTACHED, 0),
        (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
        (Limit::SQLITE_LIMIT_VARIABLE_NUMBER, 8),
        (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 1),
    ] {
        connection.set_limit(limit, value)?;
    }
    connection.execute_batch(SETTINGS)?;
    if purpose == Purpose::Write {
        connection.execute_batch(WRITING)?;
    }
    Ok(connection)
}

fn open(file: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    Connection::open_with_flags(file, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)
}

/// A path in a URI.
fn escaped(path: &Path) -> String {
    use std::fmt::Write;
    use std::os::unix::ffi::OsStrExt;
    let mut text = String::new();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                text.push(char::from(*byte))
            }
            _ => drop(write!(text, "%{byte:02x}")),
        }
    }
    text
}

/// Makes the tables in an empty file.
fn make(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch("PRAGMA page_size = 4096")?;
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    for table in TABLES {
        transaction.execute_batch(table.schema())?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()
}

/// From here on changes are written to a log of their own first, so that others can read meanwhile. The file remembers it.
///
/// The statement runs to its end: SQLite answers before the file remembers, and tells of a write that failed only after that.
fn keep_a_log(connection: &Connection) -> rusqlite::Result<()> {
    let mut statement = connection.prepare("PRAGMA journal_mode = WAL")?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    Ok(())
}

/// That the file says of itself what a vault's says.
fn check(connection: &Connection, file: &Path, purpose: Purpose) -> Result<(), TransactionError> {
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    if number("application_id")? != APPLICATION {
        return Err(damaged("it is no database of a vault"));
    }
    let version = number("user_version")?;
    if (1..VERSION).contains(&version) {
        return Err(earlier(file).into());
    }
    if version != VERSION {
        return Err(damaged(format!("it has version {version}, this version of Bulla knows {VERSION}")));
    }
    if purpose != Purpose::ReadFrozen {
        let mode = connection.pragma_query_value(None, "journal_mode", |row| row.get::<_, String>(0))?;
        if mode != "wal" {
            return Err(damaged("it says that it has no log of changes"));
        }
    }
    let mut statement =
        connection.prepare("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY rowid")?;
    let mut rows = statement.query([])?;
    for table in TABLES {
        let expected = ["table", table.name(), table.name(), table.schema()];
        let row = rows.next()?.ok_or_else(|| damaged(format!("it has no table `{}`", table.name())))?;
        for (column, expected) in expected.into_iter().enumerate() {
            if row.get_ref(column)?.as_str().ok() != Some(expected) {
                return Err(damaged(format!("its table `{}` is another", table.name())));
            }
        }
    }
    match rows.next()? {
        None => Ok(()),
        Some(_) => Err(damaged("it has more in it than a vault's tables")),
    }
}

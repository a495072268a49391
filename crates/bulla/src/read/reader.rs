//! Reading a log: [`Reader`], what it selects, and how that comes out.
//!
//! A reader takes a checkpoint, authenticates the list of frames under it, and then reads only the blocks that a
//! query can concern. Each is checked before anything of it is given out: its digest, its decryption, and that its
//! entries have the root in its commitment. Nobody else's lock is taken; a writer may be at work.

use crate::fields::filter::NotAsLogged;
use crate::format::config::{self, LogConfig};
use crate::read::given::{Given, given};
use crate::read::reading::{Delivery, Keyring, ReadReport, Reading};
use crate::read::select::Matches;
use crate::read::standing::{AskedSubject, AskedSubjects};
use crate::scan::query::Query;
use crate::scan::snapshot::Snapshot;
use crate::scan::unsigned;
use bulla_proof::Entry;
use bulla_store::{Error, ErrorKind, FileSystem, Result, Store};
use std::path::Path;
use std::sync::Arc;

/// How many bytes of rows a selection holds back until all of it is checked. More are read twice.
const HELD: u64 = 16 << 20;

/// A log, as one of its checkpoints has it, to be queried.
///
/// ```
/// # fn main() -> bulla::Result<()> {
/// # let place = tempfile::tempdir().unwrap();
/// # let directory = place.path().join("audit");
/// # let created = bulla::Init::default().create(&directory)?;
/// # let log = bulla::Log::open(&directory, bulla::Options::default())?;
/// # let mut producer = log.producer()?;
/// # producer.append(&bulla::Entry::new("read", "user_42/email").subject("user_42"))?;
/// # drop(producer);
/// # log.close()?;
/// use bulla::{Query, Reader, default_keys};
/// let reader = Reader::open_with_keys(&directory, default_keys(&directory))?.key(created.verifier_key);
/// let read = reader.for_each(&Query::new().subject("user_42"), |number, entry| {
///     println!("{number}: {} {}", entry.operation, String::from_utf8_lossy(entry.location.unwrap_or_default()));
///     Ok(())
/// })?;
/// println!("{} entries, in {} of {} blocks", read.entries, read.blocks_read, read.blocks);
/// # assert_eq!(read.entries, 1);
/// # Ok(())
/// # }
/// ```
pub struct Reader {
    pub(crate) given: Given,
    pub(crate) config: LogConfig,
    held: u64,
    keys: Keyring,
}

given! {
    Reader,
    /// Takes the keys of personal groups from here. Without any, entries that are in a group are refused with `NoKey`;
    /// with [`SharedOnly`](bulla_crypto::group::SharedOnly) what is personal of them is withheld.
}

impl Reader {
    /// A reader of the log in `directory`.
    ///
    /// # Errors
    /// `Unavailable` where there is no log, `Tampered` where its configuration is not one.
    pub fn open(directory: impl AsRef<Path>) -> Result<Self> {
        Self::open_store(Arc::new(FileSystem::new(directory.as_ref())))
    }

    /// A reader of the log in any store.
    ///
    /// # Errors
    /// As [`Reader::open`].
    pub fn open_store(store: Arc<dyn Store>) -> Result<Self> {
        // Whoever reads takes it for a log: what is wrong with the file is wrong with that.
        let (config, _) = config::load(&*store).map_err(|error| match error.kind() {
            ErrorKind::Invalid => Error::tampered(error.to_string()),
            _ => error,
        })?;
        Ok(Reader::with(Given::new(store), config))
    }

    /// A reader of a log with this configuration.
    pub(crate) fn with(given: Given, config: LogConfig) -> Self {
        Reader { given, config, held: HELD, keys: Keyring::default() }
    }

    /// The same log with other things given.
    pub(crate) fn with_given(&self, given: Given) -> Self {
        Reader { given, config: self.config.clone(), held: self.held, keys: Keyring::default() }
    }

    /// How many bytes of rows to hold back, of those that are read to be checked first. What is more is read twice.
    #[doc(hidden)]
    pub fn hold_back(mut self, bytes: u64) -> Self {
        self.held = bytes;
        self
    }

    /// Calls `each` with the number and the content of every entry that meets `query`, in the order of numbers, once
    /// everything that the query reads was checked.
    ///
    /// # Errors
    /// `Tampered` where what it reads is damaged, or the checkpoint is not the log's; `NoKey` without an identity
    /// that opens it; `Unavailable` where a file cannot be read; and whatever `each` returns.
    pub fn for_each(
        &self,
        query: &Query,
        mut each: impl FnMut(u64, &Entry<'_>) -> Result<()>,
    ) -> Result<ReadReport> {
        self.read(
            query,
            Delivery::Checked,
            |matches| matches.to_kept(),
            |kept| kept.iter().try_for_each(|kept| each(kept.number, &kept.entry()?)),
        )
    }

    /// Reads what `query` asks for: `render` makes something of each block's matches, where it has any, on many
    /// threads; `write` gets that in the order of entry numbers, on the calling thread.
    ///
    /// # Errors
    /// As [`Reader::for_each`].
    pub fn read<P: Send>(
        &self,
        query: &Query,
        delivery: Delivery,
        render: impl Fn(&Matches<'_>) -> P + Sync,
        write: impl FnMut(P) -> Result<()>,
    ) -> Result<ReadReport> {
        self.reading()?.read(query, delivery, render, write)
    }

    /// Of a query that found nothing: what can be said of the data subjects that it asked for by name. A name that was misspelt
    /// must not come to "nothing is held on you".
    ///
    /// # Errors
    /// As [`Reader::for_each`].
    pub fn subjects_not_found(&self, query: &Query) -> Result<Vec<AskedSubject>> {
        let reading = self.reading()?;
        let unsigned = unsigned::notice(&reading.manifest)?.is_some();
        reading.subjects_not_found(query, unsigned)
    }

    /// The fields that a query asks for in forms that the rules of the log leave of no value: it finds nothing that was logged under
    /// them, and silence would be taken for an answer.
    pub fn not_as_logged(&self, query: &Query) -> Vec<NotAsLogged> {
        query.fields.not_as_logged(&self.config.fields)
    }

    /// The numbers of data subjects, by name, with the group keys that were given; and what can be said of whoever has none: a name
    /// that was misspelt must not come to "nobody has to do with this".
    ///
    /// # Errors
    /// `NoKey` without group keys; else as [`Reader::for_each`].
    pub fn numbers_of(&self, subjects: &[&str]) -> Result<AskedSubjects> {
        self.reading()?.numbers_of(subjects)
    }

    /// What the current checkpoint covers.
    pub(crate) fn reading(&self) -> Result<Reading<'_>> {
        let Given { store, trust, .. } = &self.given;
        self.reading_of(Snapshot::trusted(store.clone(), self.config.clone(), trust)?)
    }

    /// What the checkpoint of `snapshot`, which is believed, covers.
    pub(crate) fn reading_of(&self, snapshot: Snapshot) -> Result<Reading<'_>> {
        Reading::new(&self.given, &self.keys, self.held, snapshot)
    }
}

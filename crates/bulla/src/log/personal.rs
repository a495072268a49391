//! [`PersonalRecords`].

use super::receipt::Receipt;
use crate::keys::personal::{self, Changes, PersonalFile};
use crate::write::engine::Engine;
use bulla_store::{Error, ErrorKind, Result, process};
use bulla_vault::Subject;
use std::fmt::{self, Debug};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use zeroize::Zeroizing;

/// What a program that writes a log keeps about its data subjects from one run to the next, in one file of the key directory: by
/// [`Log::personal_records`](super::Log::personal_records).
///
/// A record is bytes about one data subject, under a key that follows from that person's. Once the person is erased, here or by whoever
/// has the log later, nobody can read it any more, whatever copies of the file there are. It is for what can be found out again: a file
/// that is damaged is refused as a whole, and [`Restore`](crate::Restore) removes it.
///
/// Keep what [`Log::when_erased`](super::Log::when_erased) names out of what is put: who is erased and comes back has another key, and
/// what was known before would be kept under that.
pub struct PersonalRecords {
    engine: Weak<Engine>,
    digest_key: Zeroizing<[u8; 32]>,
    /// The file, as long as all that was written to it is there for certain.
    file: Option<PersonalFile>,
}

/// What is put into the records or taken out of them.
pub struct PersonalChanges<'c, 'k>(&'c mut Changes<'k>);

/// What reading the records came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PersonalRecordsRead {
    /// Records that were read.
    pub records: u64,
    /// Records of people who have no key any more: who were erased, or whose key was lost.
    pub without_key: u64,
    /// Whether the file ends in changes that were cut short.
    pub torn: bool,
}

impl PersonalRecords {
    pub(super) fn new(engine: &Arc<Engine>, digest_key: Zeroizing<[u8; 32]>) -> Self {
        PersonalRecords { engine: Arc::downgrade(engine), digest_key, file: None }
    }

    /// Reads what was kept before, if anything was: person by person, and each one's records in the order of their ids.
    ///
    /// # Errors
    /// `Unavailable` where the file is damaged, or it or the vault cannot be read; `Closed` where the log is. What was visited by then
    /// is a part, and is not to be relied on.
    pub fn read(&self, visit: &mut dyn FnMut(&[u8])) -> Result<PersonalRecordsRead> {
        let engine = self.engine()?;
        let (store, log) = (&*engine.keys, engine.config().id);
        let Some((read, keys)) = personal::read(store, &self.digest_key, log)? else {
            return Ok(PersonalRecordsRead::default());
        };
        let torn = read.torn;
        let numbers = read.numbers();
        let subjects = engine.vault()?.keys(numbers.iter().copied())?;
        let subjects =
            numbers.into_iter().zip(subjects).filter_map(|(number, key)| Some((number, key?))).collect();
        let mut records = 0;
        let mut counted = |record: &[u8]| {
            records += 1;
            visit(record);
        };
        let without_key = read.open(&keys, (store, &*engine.environment.cipher), &subjects, &mut counted)?;
        Ok(PersonalRecordsRead { records, without_key, torn })
    }

    /// Those of these people whom the log knows by now, in their order. Nobody gets a number by this.
    ///
    /// # Errors
    /// `Erased` while one of them is being erased; else where the vault cannot be read.
    pub fn find(&self, subjects: &[&str]) -> Result<Vec<Option<Subject>>> {
        self.engine()?.vault()?.find_all(subjects)
    }

    /// Has all that was appended to the log so far on the medium, so that everybody whom it names is known.
    ///
    /// # Errors
    /// As [`Receipt::durable`].
    pub fn settle(&self) -> Result<()> {
        let engine = self.engine()?;
        let to = engine.staging.take_all();
        Receipt { engine, from: to, to, dropped: 0, owner: process::id() }.durable()
    }

    /// Whether changes can be appended: the file was created since this was made, and nothing has failed since.
    pub fn can_append(&self) -> bool {
        self.file.is_some()
    }

    /// How many bytes the file has, where changes can be appended.
    pub fn length(&self) -> u64 {
        self.file.as_ref().map_or(0, PersonalFile::length)
    }

    /// Writes the file anew, with what `fill` puts into it and nothing else. It is on the medium when this returns.
    ///
    /// # Errors
    /// As `fill`; `Unavailable` where it cannot be written: then there is what was there, or the new one.
    pub fn create(&mut self, fill: impl FnOnce(&mut PersonalChanges<'_, '_>) -> Result<()>) -> Result<()> {
        self.file = None;
        let engine = self.engine()?;
        engine.require_in_place()?;
        let of_log = (&*self.digest_key, engine.config().id);
        let environment = (&*engine.environment.random, &*engine.environment.cipher);
        let fill = |changes: &mut Changes<'_>| fill(&mut PersonalChanges(changes));
        self.file = Some(PersonalFile::create(&*engine.keys, of_log, environment, fill)?);
        Ok(())
    }

    /// Appends what `fill` changes. It is on the medium when this returns.
    ///
    /// # Errors
    /// As `fill`; `Refused` where nothing [can be appended](PersonalRecords::can_append), `Unavailable` where it cannot be written:
    /// then it has to be created anew.
    pub fn append(&mut self, fill: impl FnOnce(&mut PersonalChanges<'_, '_>) -> Result<()>) -> Result<()> {
        let engine = self.engine()?;
        engine.require_in_place()?;
        let Some(mut file) = self.file.take() else {
            return Err(Error::new(
                ErrorKind::Refused,
                "the file of personal records has to be created anew first",
            ));
        };
        file.append(&*engine.environment.cipher, |changes| fill(&mut PersonalChanges(changes)))?;
        self.file = Some(file);
        Ok(())
    }

    /// Removes the file, if there is one. It can be created again.
    ///
    /// # Errors
    /// `Unavailable` where it cannot be removed.
    pub fn remove(&mut self) -> Result<()> {
        self.file = None;
        let engine = self.engine()?;
        engine.require_in_place()?;
        personal::remove(&*engine.keys)
    }

    fn engine(&self) -> Result<Arc<Engine>> {
        self.engine.upgrade().ok_or_else(|| Error::new(ErrorKind::Closed, "the log is closed"))
    }
}

impl Drop for PersonalRecords {
    fn drop(&mut self) {
        if let Some(engine) = self.engine.upgrade() {
            engine.has_records.store(false, Ordering::Release);
        }
    }
}

impl PersonalChanges<'_, '_> {
    /// Puts a record about `subject` in the place of any that has this id.
    ///
    /// # Errors
    /// `Invalid` where it has more than 1 MiB.
    pub fn put(&mut self, id: u64, subject: &Subject, record: &[u8]) -> Result<()> {
        self.0.put(id, subject, record)
    }

    /// Takes out the record with this id, if there is one.
    pub fn remove(&mut self, id: u64) {
        self.0.remove(id);
    }
}

impl Debug for PersonalRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PersonalRecords").field("can_append", &self.can_append()).finish_non_exhaustive()
    }
}

impl Debug for PersonalChanges<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PersonalChanges")
    }
}

//! Reading with the key directory at hand: its identity, and the keys of data subjects from the writer or the vault.

use super::Client;
use crate::format::config;
use crate::keys::files;
use crate::keys::restoring::Unknown;
use crate::keys::seal_state::SealState;
use crate::keys::vault::open_to_read;
use crate::read::reader::Reader;
use crate::scan::paths::open_log;
use bulla_crypto::group::{BlockContext, Followed, GroupKeys, GroupSecret, Missing, Whose};
use bulla_crypto::identities::{IdentityFile, is_encrypted};
use bulla_proof::commitment::LogId;
use bulla_store::{Error, ErrorKind, FileSystem, Result, Store};
use bulla_vault::Vault;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use zeroize::Zeroizing;

/// The longest identity file that is read, in bytes.
const MAX_IDENTITY: u64 = 1 << 20;

/// The keys of a log's data subjects, from wherever they can be had: the writer that has the log open, which gives no key
/// of a data subject away, and without one the vault in the key directory.
///
/// Both are looked for once a key is needed, so that what is wrong with the log is told before what is wrong with the
/// vault; and again where a writer let go of the log meanwhile.
pub struct SubjectKeys {
    keys: PathBuf,
    log: LogId,
    source: Mutex<Option<Source>>,
}

/// Where keys come from.
#[derive(Clone)]
enum Source {
    Writer(Arc<Client>),
    Vault(Arc<Vault>),
}

impl Source {
    /// Asks for something. Of a vault that was taken away meanwhile no answer counts: it knows of nobody who came since, and their
    /// keys would look lost.
    fn ask<T>(&self, ask: impl Fn(&dyn GroupKeys) -> Result<T>) -> Result<T> {
        match self {
            Source::Writer(writer) => ask(&**writer),
            Source::Vault(vault) => {
                let answered = ask(&**vault);
                vault.require_in_place().and(answered)
            }
        }
    }
}

impl SubjectKeys {
    /// Those of the log with this id, whose key directory is `keys`; `None` where there is nothing of a vault in it.
    pub fn in_directory(keys: impl Into<PathBuf>, log: LogId) -> Option<Self> {
        let keys = keys.into();
        Vault::is_in(&keys).then(|| SubjectKeys { keys, log, source: Mutex::default() })
    }

    /// Finds the writer or opens the vault now.
    ///
    /// # Errors
    /// As [`Client::connect`] and [`Vault::open`].
    pub fn check(&self) -> Result<()> {
        self.source().map(|_| ())
    }

    /// Whether the vault has an erasure that was begun and not brought to an end, which opening the log does. A writer that has the
    /// log open sees to its own.
    ///
    /// # Errors
    /// As [`SubjectKeys::check`].
    pub fn has_unfinished_erasure(&self) -> Result<bool> {
        match self.source()? {
            Source::Writer(_) => Ok(false),
            Source::Vault(vault) => Ok(vault.unconfirmed()?.is_some()),
        }
    }

    fn source(&self) -> Result<Source> {
        let mut source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(source) = &*source {
            return Ok(source.clone());
        }
        let writer = Client::connect(&self.keys)?.filter(|writer| writer.status().log == self.log);
        let found = match writer {
            Some(writer) => Source::Writer(Arc::new(writer)),
            None => Source::Vault(Arc::new(open_to_read(&FileSystem::new(&self.keys), self.log)?)),
        };
        Ok(source.insert(found).clone())
    }

    /// Whether the key directory is older than the log and is being taken up, or was to be.
    fn is_taken_up(&self) -> Result<bool> {
        Unknown::load(&FileSystem::new(&self.keys)).map(|unknown| unknown.is_some())
    }

    /// Asks once more, whoever is there then, where the writer let go of the log.
    fn ask<T>(&self, ask: impl Fn(&dyn GroupKeys) -> Result<T>) -> Result<T> {
        match self.source()?.ask(&ask) {
            Err(error) if error.kind() == ErrorKind::Closed => {
                *self.source.lock().unwrap_or_else(PoisonError::into_inner) = None;
                self.source()?.ask(&ask)
            }
            answered => answered,
        }
    }
}

impl GroupKeys for SubjectKeys {
    fn number(&self, subject: &str) -> Result<Option<u64>> {
        self.ask(|source| source.number(subject))
    }

    fn numbers(&self, subjects: &[&str]) -> Result<Vec<Option<u64>>> {
        self.ask(|source| source.numbers(subjects))
    }

    fn secrets(&self, place: BlockContext<'_>, groups: &[&[u64]]) -> Result<Vec<Option<GroupSecret>>> {
        self.ask(|source| source.secrets(place, groups))
    }

    fn is_complete(&self) -> bool {
        true
    }

    /// A vault that was put in place while a part of the log is being given up with another one may be from before that: nothing is read under it.
    fn erased_up_to(&self) -> Result<Followed> {
        let followed = self.ask(|source| source.erased_up_to())?;
        let store = FileSystem::new(&self.keys);
        let lacks =
            |unknown: &Unknown| unknown.given_up.is_some_and(|part| !followed.given_up.contains(&part.id));
        if let Some(unknown) = Unknown::load(&store)?.filter(lacks) {
            return Err(unknown.unfinished(&store));
        }
        // Without one that can be read the log alone tells.
        let state = SealState::load(&store).ok();
        match state.is_some_and(|state| !state.given_up.is_subset(&followed.given_up)) {
            true => Err(of_older(&store)),
            false => Ok(followed),
        }
    }

    fn missing(&self, from: u64) -> Result<Missing> {
        let before = self.is_taken_up()?;
        let missing = self.ask(|source| source.missing(from))?;
        // Until a restore is done the vault follows the log, and does not know yet which numbers the log gave.
        let frames = if before || self.is_taken_up()? { 0 } else { missing.frames };
        Ok(Missing { frames, ..missing })
    }

    fn whose(&self, asked: &[(&[u64], &str)]) -> Result<Option<Vec<Whose>>> {
        self.ask(|source| source.whose(asked))
    }
}

/// Why nothing is read under a vault that does not know of a part of the log which the seal state knows to be given up.
fn of_older(keys: &dyn Store) -> Error {
    let message = format!(
        "{} does not know of a part of the log that was given up (`bulla restore --older-log`), and {} does: it is an older copy, and whoever was \
         erased since may have a key in it. Bring the newest one; under this one the log is read once it was opened to write with it, or taken up by \
         `bulla restore`",
        keys.describe(files::VAULT),
        keys.describe(files::SEAL_STATE)
    );
    Error::new(ErrorKind::Refused, message)
}

impl Reader {
    /// A reader of the log in `directory` with what its key directory `keys` holds: the identity that `init` made there, and
    /// the keys of data subjects, from the writer that has the log open or from the vault.
    ///
    /// # Errors
    /// As [`Reader::open`]; `NoKey` where the directory holds no identity, or one under a passphrase, which to open is for
    /// [`Reader::identity`], and where the vault of a log with erasure is missing; `Unavailable` where one cannot be read.
    pub fn open_with_keys(directory: impl AsRef<Path>, keys: impl AsRef<Path>) -> Result<Self> {
        let log = open_log(directory, Some(keys.as_ref()), &[])?;
        let (config, _) = config::load_of_log(&*log)?;
        let reader = Self::open_store(log)?.identity(Arc::new(identity_in(keys.as_ref())?));
        // Whatever the configuration says, which may have been edited: what a block needs, it needs.
        match SubjectKeys::in_directory(keys.as_ref(), config.id) {
            Some(subject_keys) => Ok(reader.group_keys(Arc::new(subject_keys))),
            None if !config.erasure => Ok(reader),
            None => {
                let keys = keys.as_ref().display();
                let message = format!("there is no vault in {keys}, which has the keys of data subjects");
                Err(Error::new(ErrorKind::NoKey, message))
            }
        }
    }
}

/// The identity in a key directory, which `init` made there.
///
/// # Errors
/// `NoKey` where there is none, or one under a passphrase; `Invalid` where it is damaged; `Unavailable` where it cannot be read.
pub fn identity_in(keys: &Path) -> Result<IdentityFile> {
    let store = FileSystem::new(keys);
    let name = keys.join(files::IDENTITY);
    let no_key = |what: &str| Error::new(ErrorKind::NoKey, format!("{} {what}", name.display()));
    let bytes = match files::read_secret(&store, files::IDENTITY, MAX_IDENTITY) {
        Err(error) if error.io_error().is_some_and(|error| error.kind() == std::io::ErrorKind::NotFound) => {
            return Err(no_key("is missing: name an identity that opens the log"));
        }
        bytes => Zeroizing::new(bytes?),
    };
    if is_encrypted(&bytes) {
        return Err(no_key("is under a passphrase: decrypt it first"));
    }
    let damaged = |why: &dyn std::fmt::Display| files::damaged(&store, files::IDENTITY, why);
    let text = std::str::from_utf8(&bytes).map_err(|_| damaged(&"it is not text"))?;
    IdentityFile::parse(text).map_err(|error| damaged(&error))
}

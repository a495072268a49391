//! Where a log and its keys lie, and what of the keys is at hand.

use crate::exit::{Exit, Failure};
use bulla::config;
use bulla::keys::files;
use bulla::store::{FileSystem, Store, StoreFile, inside};
use bulla::{ErasureOrder, ErrorKind, Options};
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zeroize::Zeroizing;

/// The bytes of a file that has a secret in it.
pub(crate) type Bytes = Zeroizing<Vec<u8>>;

/// A file with a secret, which the user named or the key directory has.
pub(crate) struct Secret {
    pub(crate) path: PathBuf,
    pub(crate) text: Zeroizing<String>,
    is_named: bool,
}

impl Secret {
    /// What is wrong with its content: a slip of who named it, or else damage to the key directory.
    pub(crate) fn error(&self, error: bulla::Error) -> Failure {
        match self.is_named || error.kind() != ErrorKind::Invalid {
            true => error_in(&self.path, error),
            false => damaged(&self.path, &error),
        }
    }
}

/// That a file of the key directory is not what was written there: the environment's failure.
fn damaged(path: &Path, why: &dyn Display) -> Failure {
    let message = format!("{} is damaged: {why}; restore it from a backup, or remove it", path.display());
    Failure::new(Exit::Environment, message)
}

/// The arguments that every subcommand has.
#[derive(clap::Args, Debug)]
pub(crate) struct LogPaths {
    /// The log's directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// Where its keys and state lie [default: DIR.keys]
    #[arg(long, value_name = "PATH")]
    keys: Option<PathBuf>,

    /// Other paths on which it lies, which whoever reads it has named.
    #[arg(skip)]
    also: Vec<PathBuf>,
}

/// The argument of subcommands that read a log, for one that lies on several paths.
#[derive(clap::Args, Debug)]
pub(crate) struct Also {
    /// Another path that the log lies on; repeatable
    #[arg(long, value_name = "PATH")]
    also: Vec<PathBuf>,
}

impl Also {
    /// The paths that were named.
    pub(crate) fn paths(&self) -> &[PathBuf] {
        &self.also
    }
}

impl LogPaths {
    /// Of a log that a file names.
    #[cfg(feature = "proxy")]
    pub(crate) fn of(directory: PathBuf, keys: Option<PathBuf>) -> Self {
        LogPaths { directory, keys, also: Vec::new() }
    }

    /// With the paths that were named besides.
    pub(crate) fn and(&mut self, also: &Also) {
        self.also.clone_from(&also.also);
    }

    /// The log, with all its paths: those that the key directory names, and those that were named.
    pub(crate) fn log(&self) -> bulla::Result<Arc<dyn Store>> {
        bulla::open_log(self.directory(), Some(&self.keys()), &self.also)
    }

    /// The log with the paths alone that were named.
    pub(crate) fn log_without_keys(&self) -> bulla::Result<Arc<dyn Store>> {
        bulla::open_log(self.directory(), None, &self.also)
    }

    pub(crate) fn directory(&self) -> PathBuf {
        // `.` and `..` have no name that `.keys` could be put behind.
        match self.directory.file_name() {
            Some(_) => self.directory.clone(),
            None => self.directory.canonicalize().unwrap_or_else(|_| self.directory.clone()),
        }
    }

    pub(crate) fn keys(&self) -> PathBuf {
        self.keys.clone().unwrap_or_else(|| bulla::default_keys(&self.directory()))
    }

    /// That a key directory that was named is there; the one that every log has of itself need not be.
    pub(crate) fn check_named_keys(&self) -> Result<(), Failure> {
        let Some(keys) = &self.keys else { return Ok(()) };
        Ok(bulla::require_named_keys(keys)?)
    }

    /// Refuses the keys of another log, to whoever changes what is kept with them, or tells of it as this log's.
    pub(crate) fn refuse_other_keys(&self) -> Result<(), Failure> {
        match self.log().and_then(|log| config::load(&*log)) {
            Ok((log, _)) => Ok(bulla::refuse_other_keys(&FileSystem::new(self.keys()), &log)?),
            // What is wrong with the log is told by what was asked of it.
            Err(_) => Ok(()),
        }
    }

    /// The settings that are kept with the keys; `None` where the key directory is not there, or not this user's to read.
    pub(crate) fn host_settings(&self) -> Result<Option<Options>, Failure> {
        let keys = FileSystem::new(self.keys());
        match keys.list("") {
            Ok(_) => Ok(Some(bulla::keys::settings::load(&keys)?)),
            Err(_) => Ok(None),
        }
    }

    /// That a file to be written lies neither in the log, on whichever of its paths, nor among its keys or their replicas: there it
    /// would be taken for a part of them, or for one that an attacker left.
    pub(crate) fn refuse_inside(&self, file: &Path) -> Result<(), Failure> {
        let mut refused =
            vec![(self.directory(), "is where the log lies"), (self.keys(), "is where its keys lie")];
        refused.extend(self.also.iter().map(|path| (path.clone(), "is where the log lies, too")));
        // Where the settings cannot be read, nothing is known to lie elsewhere: what is wrong with them is told by who needs them.
        let settings = self.host_settings().ok().flatten();
        let mut add = |setting, why| {
            let places = settings.as_ref().map(|settings| places(settings, setting)).unwrap_or_default();
            refused.extend(places.into_iter().map(|path| (path, why)));
        };
        add("backup_paths", "is a path of the log (`backup_paths`)");
        add("vault_replicas", "is where a replica of its vault lies");
        match refused.into_iter().find(|(directory, _)| inside(file, directory)) {
            None => Ok(()),
            Some((directory, why)) => {
                let (file, directory) = (file.display(), directory.display());
                Err(Failure::usage(format!("{file} is inside {directory}, which {why}: write elsewhere")))
            }
        }
    }

    /// Where replicas of the vault lie, as the settings that are kept with the keys say; `None` where those cannot be read.
    pub(crate) fn vault_replicas(&self) -> Result<Option<Vec<PathBuf>>, Failure> {
        Ok(self.host_settings()?.map(|settings| places(&settings, "vault_replicas")))
    }

    /// The paths on which the log goes on where one fails, as the settings that are kept with the keys say; none where those cannot be read.
    pub(crate) fn backup_paths(&self) -> Vec<PathBuf> {
        let settings = self.host_settings().ok().flatten();
        settings.map(|settings| places(&settings, "backup_paths")).unwrap_or_default()
    }

    /// The directory in which the log with this id sets entries aside that it drops, and how many files of it are there, or why that cannot be
    /// known; `None` where nothing is set aside, or the settings that are kept with the keys cannot be read.
    pub(crate) fn set_aside(&self, log: &str) -> Option<(PathBuf, io::Result<usize>)> {
        let path = places(&self.host_settings().ok()??, "error_path").pop()?;
        let items = FileSystem::new(&path).list("");
        let count = items.map(|items| items.iter().filter(|item| item.name.starts_with(log)).count());
        (!matches!(count, Ok(0))).then_some((path, count))
    }

    /// The text of the seal key in `given`, or else of the one in the key directory, if there is one.
    pub(crate) fn seal_key(&self, given: Option<&Path>) -> Result<Option<Secret>, Failure> {
        self.secret(given, files::SEAL_KEY)
    }

    /// What the writing host knows of the log, as it is in the key directory, if it is there.
    pub(crate) fn seal_state(&self) -> Result<Option<(PathBuf, Bytes)>, Failure> {
        const LIMIT: usize = 4 << 10;
        let keys = self.keys();
        let path = keys.join(files::SEAL_STATE);
        let mut bytes = Zeroizing::new(Vec::with_capacity(LIMIT));
        let opened = FileSystem::new(&keys).open(files::SEAL_STATE);
        let read = opened.and_then(|file| Whole { file, at: 0 }.take(LIMIT as u64).read_to_end(&mut bytes));
        match read {
            Ok(_) => Ok(Some((path, bytes))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Failure::io(path.display(), &error)),
        }
    }

    /// The text of the erasure key or of the order in `given`, or else of the key in the key directory, if there is one.
    pub(crate) fn authority(&self, given: Option<&Path>) -> Result<Option<Secret>, Failure> {
        self.read_as(given, files::ERASURE_KEY, (ErasureOrder::MAX_LENGTH, "order"))
    }

    /// A file that is named and is not there is a key that is missing; one that is not named need not be there.
    pub(crate) fn secret(&self, given: Option<&Path>, name: &str) -> Result<Option<Secret>, Failure> {
        self.read_as(given, name, KEY_FILE)
    }

    fn read_as(
        &self,
        given: Option<&Path>,
        name: &str,
        (limit, what): (usize, &str),
    ) -> Result<Option<Secret>, Failure> {
        let (path, read) = match given {
            Some(path) => (path.to_owned(), File::open(path).and_then(|file| read_up_to(file, limit, what))),
            None => {
                let keys = self.keys();
                let opened = FileSystem::new(&keys).open_secret(name);
                (keys.join(name), opened.and_then(|file| read_up_to(Whole { file, at: 0 }, limit, what)))
            }
        };
        match read {
            Ok(text) => Ok(Some(Secret { path, text, is_named: given.is_some() })),
            Err(error) if given.is_none() && error.kind() == io::ErrorKind::InvalidData => {
                Err(damaged(&path, &error))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound && given.is_none() => Ok(None),
            Err(error) => Err(Failure::key_file(path.display(), &error)),
        }
    }
}

/// The places that a setting names.
fn places(settings: &Options, name: &str) -> Vec<PathBuf> {
    let setting = settings.settings().into_iter().find(|setting| setting.name == name);
    setting.map_or_else(Vec::new, |setting| setting.value.split_terminator(',').map(PathBuf::from).collect())
}

/// What is wrong with the content of a file that the user named.
pub(crate) fn error_in(path: &Path, error: bulla::Error) -> Failure {
    let failure = Failure::from(error);
    Failure { message: format!("{}: {}", path.display(), failure.message), ..failure }
}

/// Reads a file that holds a key, as text.
pub(crate) fn read_small(path: &Path) -> io::Result<Zeroizing<String>> {
    read_up_to(File::open(path)?, KEY_FILE.0, KEY_FILE.1)
}

/// Reads a file that holds an order to erase, or the key for one.
pub(crate) fn read_order(path: &Path) -> io::Result<Zeroizing<String>> {
    read_up_to(File::open(path)?, ErasureOrder::MAX_LENGTH, "order")
}

/// The longest file that holds a key, in bytes, and what it is.
const KEY_FILE: (usize, &str) = (64 << 10, "key file");

/// A file of a store, from its beginning to its end.
struct Whole {
    file: Box<dyn StoreFile>,
    at: u64,
}

impl Read for Whole {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

fn read_up_to(file: impl Read, limit: usize, what: &str) -> io::Result<Zeroizing<String>> {
    // With room for all of it from the start: a buffer that grows leaves copies behind.
    let mut text = Zeroizing::new(String::with_capacity(limit + 1));
    let read = file.take(limit as u64 + 1).read_to_string(&mut text).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => io::Error::new(error.kind(), "it is not text"),
        _ => error,
    })?;
    if read > limit {
        let message = format!("it has over {limit} bytes; no {what} has");
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    Ok(text)
}

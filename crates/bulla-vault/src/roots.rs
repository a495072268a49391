//! The directory `roots`: for each generation a root and the keys beneath it.
//!
//! The database says which generation counts. Files of any other generation were either made for one that was never committed, or
//! belong to one that is over. Both kinds are overwritten before they are removed.

use std::io::{self, IoSlice};
use std::sync::Arc;
use zeroize::Zeroizing;

use super::keys::{Keys, MAX_FILE};
use super::root::{Root, RootKey};
use bulla_crypto::environment::Random;
use bulla_proof::commitment::LogId;
use bulla_store::Store;
use bulla_store::read_small;
use bulla_store::{Error, ErrorKind, Result};

const DIRECTORY: &str = "roots";
/// The longest root file: an age file to many recipients.
const MAX_ROOT: u64 = 64 << 10;
/// How many bytes are overwritten at a time.
const STRETCH: usize = 64 << 10;

/// The directory.
pub(super) struct Roots {
    pub(super) store: Arc<dyn Store>,
    pub(super) root: Arc<dyn Root>,
    pub(super) random: Arc<dyn Random>,
}

impl Roots {
    /// Makes the directory.
    ///
    /// # Errors
    /// Where the store fails.
    pub(super) fn create(&self) -> Result<()> {
        let made = self.store.create_directory(DIRECTORY).and_then(|()| self.store.sync_directory(""));
        made.map_err(|error| Error::io(format!("making {}", self.store.describe(DIRECTORY)), error))
    }

    /// That there are files for `generation`: without them nothing that is written can be read again.
    ///
    /// # Errors
    /// `Unavailable` where one is missing.
    pub(super) fn require_in_place(&self, generation: u64) -> Result<()> {
        for path in [root_path(generation), keys_path(generation)] {
            self.store.open(&path).map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => Error::unavailable(format!(
                    "{} was removed while the vault was open: nobody new gets a key until it is back",
                    self.store.describe(&path)
                )),
                _ => Error::io(format!("opening {}", self.store.describe(&path)), error),
            })?;
        }
        Ok(())
    }

    /// Reads the root and the keys of `generation`.
    ///
    /// # Errors
    /// `NoKey` where one of them is missing, and else as `Root` and `Keys` say.
    pub(super) fn load(&self, log: LogId, generation: u64) -> Result<Keys> {
        let path = root_path(generation);
        let file = Zeroizing::new(self.read(&path, MAX_ROOT, generation)?);
        let root = self.root.unwrap(&file, log, generation).map_err(|error| self.about(&path, &error))?;
        self.load_beneath(&root, log, generation)
    }

    /// Reads the keys of `generation`, whose root is known.
    ///
    /// # Errors
    /// As `load`.
    pub(super) fn load_beneath(&self, root: &RootKey, log: LogId, generation: u64) -> Result<Keys> {
        let path = keys_path(generation);
        let file = self.read(&path, MAX_FILE, generation)?;
        Keys::open(&file, log, generation, root).map_err(|error| self.about(&path, &error))
    }

    fn read(&self, path: &str, limit: u64, generation: u64) -> Result<Vec<u8>> {
        read_small(&*self.store, path, limit).map_err(|error| match error.io_error().map(io::Error::kind) {
            Some(io::ErrorKind::NotFound) => self.missing(path, generation),
            // It is too long.
            None => Error::unavailable(format!("{error}: restore it from a backup")),
            _ => error,
        })
    }

    /// The error for a missing file of `generation`. Where there are files of another generation, the vault and its roots were
    /// probably restored from different backups, and the error says so.
    fn missing(&self, path: &str, generation: u64) -> Error {
        let path = self.store.describe(path);
        let others = self.files().unwrap_or_default();
        let other =
            others.into_iter().filter(|file| file.generation != generation).map(|file| file.generation);
        Error::new(
            ErrorKind::NoKey,
            match other.max() {
                Some(other) => format!(
                    "{path} is missing, and there is a root of generation {other}: bring `vault` and `roots` from one and the same backup"
                ),
                None => {
                    format!("{path} is missing: restore it from a backup; without it no subject's key opens")
                }
            },
        )
    }

    fn about(&self, path: &str, error: &Error) -> Error {
        // A damaged file of the key directory says nothing against the log.
        let kind = match error.kind() {
            ErrorKind::Tampered => ErrorKind::Unavailable,
            kind => kind,
        };
        Error::new(kind, format!("{}: {error}", self.store.describe(path)))
    }

    /// The files of a new generation.
    ///
    /// # Errors
    /// Where the root cannot be wrapped, or there is no randomness.
    pub(super) fn seal(&self, keys: &Keys) -> Result<[Content; 2]> {
        let bytes = self.root.wrap(&keys.root, keys.log, keys.generation)?;
        Ok([Content { path: root_path(keys.generation), bytes }, self.seal_keys(keys)?])
    }

    /// The file of the keys of a generation.
    ///
    /// # Errors
    /// Where there is no randomness.
    pub(super) fn seal_keys(&self, keys: &Keys) -> Result<Content> {
        let bytes = Zeroizing::new(keys.seal(&*self.random)?);
        Ok(Content { path: keys_path(keys.generation), bytes })
    }

    /// The files of a generation, as they are.
    ///
    /// # Errors
    /// As `load`, where they cannot be read.
    pub(super) fn files_of(&self, generation: u64) -> Result<[Content; 2]> {
        let read = |path: String, limit| {
            let bytes = Zeroizing::new(self.read(&path, limit, generation)?);
            Ok::<_, Error>(Content { path, bytes })
        };
        Ok([read(root_path(generation), MAX_ROOT)?, read(keys_path(generation), MAX_FILE)?])
    }

    /// Writes files, each durable before the next, in place of those of the same names.
    ///
    /// # Errors
    /// Where the store fails.
    pub(super) fn put(&self, files: &[Content]) -> Result<()> {
        files.iter().try_for_each(|Content { path, bytes }| {
            let replaced = bulla_store::replace(&*self.store, path, bytes);
            replaced.map_err(|error| Error::io(format!("writing {}", self.store.describe(path)), error))
        })
    }

    /// Whether a file of that name is there with exactly this content.
    pub(super) fn has(&self, Content { path, bytes }: &Content) -> bool {
        let found = read_small(&*self.store, path, bytes.len() as u64).map(Zeroizing::new);
        found.is_ok_and(|found| found == *bytes)
    }

    /// Checks, where no database says whose these files are, that none belongs to another log than `log`: a file that is not one of
    /// `known` has to lie beside keys that name this log.
    ///
    /// # Errors
    /// `Refused` where it is not so, and where a file cannot be read.
    pub(super) fn require_own(&self, log: LogId, known: &[Content]) -> Result<()> {
        for file in self.files()?.into_iter().filter(|file| !file.temporary) {
            let path = format!("{DIRECTORY}/{}", file.name);
            if known.iter().any(|known| known.path == path && self.has(known)) {
                continue;
            }
            let keys = read_small(&*self.store, &keys_path(file.generation), MAX_FILE);
            if !keys.is_ok_and(|keys| keys.get(8..24) == Some(&log.0[..])) {
                let message = format!(
                    "it holds {path}, which is not known to be of this log, and no vault: name an empty directory"
                );
                return Err(Error::new(ErrorKind::Refused, message));
            }
        }
        Ok(())
    }

    /// Overwrites and removes what is not of `generation`; roots first, since they are what counts.
    ///
    /// # Errors
    /// Where the store fails; then something may be left, and the same call goes on with it.
    pub(super) fn destroy_others(&self, generation: u64) -> Result<()> {
        let mut files = self.files()?;
        files.retain(|file| file.generation != generation || file.temporary);
        files.sort_by_key(|file| !file.root);
        for file in &files {
            let path = format!("{DIRECTORY}/{}", file.name);
            let destroyed = self.destroy(&path);
            destroyed
                .map_err(|error| Error::io(format!("destroying {}", self.store.describe(&path)), error))?;
        }
        if !files.is_empty() {
            let synced = self.store.sync_directory(DIRECTORY);
            synced
                .map_err(|error| Error::io(format!("syncing {}", self.store.describe(DIRECTORY)), error))?;
        }
        Ok(())
    }

    fn destroy(&self, path: &str) -> io::Result<()> {
        let file = self.store.open_write(path)?;
        let length = file.length()?;
        let mut noise = vec![0; STRETCH];
        let mut offset = 0;
        while offset < length {
            // The bytes are not zeros: a file system may store zeros as a hole, and leave the old content where it was.
            self.random.fill(&mut noise).map_err(|error| io::Error::other(error.to_string()))?;
            let left = usize::try_from(length - offset).map_or(STRETCH, |left| left.min(STRETCH));
            file.write_at(&mut [IoSlice::new(&noise[..left])], offset)?;
            offset += left as u64;
        }
        file.sync()?;
        self.store.remove(path)
    }

    fn files(&self) -> Result<Vec<RootsFile>> {
        let listed = self.store.list(DIRECTORY);
        let listed = listed
            .map_err(|error| Error::io(format!("listing {}", self.store.describe(DIRECTORY)), error))?;
        Ok(listed
            .into_iter()
            .filter(|item| !item.directory)
            .filter_map(|item| RootsFile::parse(item.name))
            .collect())
    }
}

/// A file of the directory, to be written.
pub(super) struct Content {
    path: String,
    bytes: Zeroizing<Vec<u8>>,
}

/// A file of the directory, by its name.
pub(super) struct RootsFile {
    name: String,
    pub(super) generation: u64,
    pub(super) root: bool,
    /// Left over from a write that a crash cut short.
    pub(super) temporary: bool,
}

impl RootsFile {
    pub(super) fn parse(name: String) -> Option<Self> {
        let (whole, temporary) = match name.strip_suffix(".tmp") {
            Some(whole) => (whole, true),
            None => (name.as_str(), false),
        };
        let (number, root) = match whole.strip_suffix(".root") {
            Some(number) => (number, true),
            None => (whole.strip_suffix(".keys")?, false),
        };
        let generation = number.parse::<u64>().ok().filter(|generation| generation.to_string() == number)?;
        Some(RootsFile { generation, root, temporary, name })
    }
}

fn root_path(generation: u64) -> String {
    format!("{DIRECTORY}/{generation}.root")
}

fn keys_path(generation: u64) -> String {
    format!("{DIRECTORY}/{generation}.keys")
}

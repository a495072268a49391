//! A pin: a copy of a log's checkpoint that lies elsewhere, and by which a log that was put back, cut or rewritten is known,
//! also one whose keys were put back with it.
//!
//! Invariants:
//! - a pin is replaced only while its lock is held, and only by the checkpoint of a larger tree that begins with its own: it
//!   never goes back, whoever advances it, and two who do so at once do not undo each other;
//! - it is replaced as every small file is: after a crash it is the old one or the new one, whole;
//! - it is made only where nothing is;
//! - its directory is opened anew each time, by its path: a medium that was mounted again is found, one that is gone is missed.
//!
//! It is a signed note as [C2SP tlog-checkpoint](https://c2sp.org/tlog-checkpoint) has it, byte for byte what `checkpoint` was.

#[cfg(test)]
mod tests;

use crate::format::config::signed::OwnKeys;
use crate::scan::earlier::Earlier;
use bulla_crypto::environment::{Clock, Interrupt};
use bulla_proof::checkpoint::{Checkpoint, MAX_NOTE, SignedNote};
use bulla_proof::tree::TreeHead;
use bulla_store::{Error, ErrorKind, FileSystem, Lock, Result, Store};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How often the lock of a pin is tried for: somebody who advances it holds it for two syncs of its medium.
const LOCK_ATTEMPTS: u32 = 250;
/// The wait between two attempts.
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// See the module.
#[derive(Clone)]
pub(crate) struct Pin {
    path: PathBuf,
    /// Where pins lie, where that is not the file system.
    pins: Option<Arc<dyn Store>>,
    clock: Arc<dyn Clock>,
}

/// What is found at the path of a pin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PinFile {
    Nothing,
    /// A checkpoint of the log.
    Head(TreeHead),
    /// A checkpoint that is not the log's, and why.
    Foreign(String),
}

/// What became of a pin that was to be advanced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Advanced {
    /// It is the checkpoint that it was to be.
    To(TreeHead),
    /// It is further already, and was left so.
    IsAhead(TreeHead),
}

/// A directory, and the name of the pin in it.
struct Place {
    store: Arc<dyn Store>,
    name: String,
}

impl Pin {
    /// The pin at an absolute path; of `pins`, where they do not lie in the file system, the file of this path.
    pub(crate) fn at(path: &Path, pins: Option<Arc<dyn Store>>, clock: Arc<dyn Clock>) -> Self {
        Pin { path: path.to_owned(), pins, clock }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads what is there; `keys` are the log's.
    ///
    /// # Errors
    /// `Refused` where it is no checkpoint, or no file; `Invalid` where the path names none; `Unavailable` where it cannot be read.
    pub(crate) fn read<'a>(&self, keys: impl Into<OwnKeys<'a>>) -> Result<PinFile> {
        self.read_in(&self.place()?, keys.into())
    }

    /// Makes the pin, of the checkpoint `note`.
    ///
    /// # Errors
    /// `Unavailable` where something is there by now, or it cannot be written; `Refused` to root in somebody else's directory.
    pub(crate) fn make(&self, note: &[u8]) -> Result<()> {
        let place = self.place()?;
        let _lock = self.lock(&place)?;
        let made = bulla_store::write_new(&*place.store, &place.name, note);
        made.map_err(|error| Error::io(format!("making the pin {}", self.path.display()), error))
    }

    /// Advances the pin to the checkpoint `note`, which is of the tree `to` of the log in `log`, as its files have it. A pin that is
    /// `known` to be of this log's tree is not compared with it again.
    ///
    /// # Errors
    /// `Tampered` where the pin is of another history than the log; `Unavailable` where it is gone, or cannot be read or written; else as
    /// [`Pin::read`].
    pub(crate) fn advance<'a>(
        &self,
        (log, keys): (&dyn Store, impl Into<OwnKeys<'a>>),
        (to, note): (TreeHead, &[u8]),
        known: Option<TreeHead>,
    ) -> Result<Advanced> {
        let place = self.place()?;
        let _lock = self.lock(&place)?;
        let before = match self.read_in(&place, keys.into())? {
            PinFile::Head(head) => head,
            PinFile::Nothing => return Err(Error::unavailable(self.gone(""))),
            PinFile::Foreign(why) => return Err(Error::new(ErrorKind::Refused, why)),
        };
        if before.size > to.size {
            return Ok(Advanced::IsAhead(before));
        }
        if Some(before) != known {
            self.earlier(before).require_beginning(log, to)?;
        }
        if before != to {
            let written = bulla_store::replace(&*place.store, &place.name, note);
            written.map_err(|error| Error::io(format!("writing the pin {}", self.path.display()), error))?;
        }
        Ok(Advanced::To(to))
    }

    /// The tree that the pin is of, as what the log has to go on from.
    pub(crate) fn earlier(&self, head: TreeHead) -> Earlier {
        Earlier { name: format!("the pin {}", self.path.display()), head }
    }

    /// What is said of a pin that was there before, which `whoever` remembers, as `, and …`.
    pub(crate) fn gone(&self, whoever: &str) -> String {
        format!("the pin {} is gone{whoever}: mount what it lies on, or restore it", self.path.display())
    }

    /// Why a log is refused whose pin is gone, which its keys remember: `remembered` says so, as `, and …`.
    pub(crate) fn refuse_gone(&self, remembered: &str) -> Error {
        let message = format!(
            "{}; where it is lost for good, `bulla config DIR set pin {}` makes it again, of what the log has now",
            self.gone(remembered),
            self.path.display()
        );
        Error::new(ErrorKind::Refused, message)
    }

    fn place(&self) -> Result<Place> {
        let none = || Error::invalid(format!("{} names no file that could be a pin", self.path.display()));
        let text = self.path.to_str().filter(|text| text.starts_with('/')).ok_or_else(none)?;
        if let Some(store) = &self.pins {
            return Ok(Place { store: store.clone(), name: text[1..].to_owned() });
        }
        let name = self.path.file_name().and_then(|name| name.to_str()).filter(|_| !text.ends_with('/'));
        let directory = self.path.parent().ok_or_else(none)?;
        Ok(Place { store: Arc::new(FileSystem::new(directory)), name: name.ok_or_else(none)?.to_owned() })
    }

    fn read_in(&self, Place { store, name }: &Place, keys: OwnKeys<'_>) -> Result<PinFile> {
        let path = self.path.display();
        let none = |why: &dyn std::fmt::Display| {
            Error::new(
                ErrorKind::Refused,
                format!("{path} is no pin, which is a copy of the log's checkpoint: {why}"),
            )
        };
        let bytes = match bulla_store::read_small(&**store, name, MAX_NOTE as u64) {
            Ok(bytes) => bytes,
            Err(error) => match error.io_error().map(io::Error::kind) {
                Some(io::ErrorKind::NotFound) => return Ok(PinFile::Nothing),
                // Too long, a link, a pipe, a directory.
                None | Some(io::ErrorKind::InvalidInput | io::ErrorKind::IsADirectory) => {
                    return Err(none(&error));
                }
                Some(_) => return Err(error),
            },
        };
        let note = SignedNote::parse(&bytes).map_err(|error| none(&error))?;
        let Checkpoint { origin, size, root, .. } =
            Checkpoint::parse(note.text).map_err(|error| none(&error))?;
        let key = keys.ed25519();
        if origin != key.name() {
            let name = key.name();
            return Ok(PinFile::Foreign(format!(
                "the pin {path} is of another log, `{origin}`, and this is `{name}`"
            )));
        }
        Ok(match keys.require_signed(&note) {
            Ok(()) => PinFile::Head(TreeHead { size, root }),
            Err(why) => {
                PinFile::Foreign(format!("the pin {path} is none of the log whose key is {key}: {why}"))
            }
        })
    }

    /// Takes the lock of the pin, a file beside it, for as long as it is read and replaced.
    fn lock(&self, Place { store, name }: &Place) -> Result<Box<dyn Lock>> {
        bulla_store::require_own(&**store)?;
        let path = format!("{name}.lock");
        let failed = |error| Error::io(format!("locking {}", store.describe(&path)), error);
        for _ in 0..LOCK_ATTEMPTS {
            let lock = match store.lock(&path) {
                Ok(lock) => lock,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.clock.wait(LOCK_PAUSE, &Interrupt::default());
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Err(Error::unavailable(format!(
                        "there is no directory for the pin {}: mount what it lies on, or make the directory",
                        self.path.display()
                    )));
                }
                Err(error) => return Err(failed(error)),
            };
            // Otherwise the directory was replaced since it was opened, or somebody removed the lock.
            if lock.is_in_place().map_err(failed)? {
                return Ok(lock);
            }
        }
        Err(Error::unavailable(format!(
            "somebody else holds {}, the lock of the pin, or it was removed: try again",
            store.describe(&path)
        )))
    }
}

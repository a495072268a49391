//! `bulla.toml.next`: the `bulla.toml` that a mirror has for a checkpoint which is still to arrive.
//!
//! A log's configuration and its checkpoint are two files, and no rename replaces both at once. A mirror takes up checkpoints that
//! may be far apart, and `[log]` may have changed between them, so that neither file fits the other's next version. So the
//! configuration that belongs to the next checkpoint lies beside the one that counts, under that checkpoint's size: the rename of
//! `checkpoint` makes it count, and nothing else does.
//!
//! ```text
//! bulla-next-v1 <size of the checkpoint, in decimal> newline
//! the bytes of bulla.toml
//! ```
//!
//! Invariants:
//! - it counts exactly where the checkpoint has that size, and then in the place of `bulla.toml`;
//! - it is removed only where it does not count and there is a `bulla.toml`, or once that has its bytes, durably;
//! - of one that does not count nothing is looked at but its first line, whatever follows, and however long that is.
//!
//! A mirror's first copy has no `bulla.toml` before its first `checkpoint`, and that one makes the file count. So a `checkpoint` beside a file
//! that does not count, and no `bulla.toml`, is nothing that a mirror leaves, wherever it is stopped: it is a log whose `bulla.toml` is gone.
//!
//! Whoever can write to the log's directory can put one there, as they can edit `bulla.toml`: both are held against the digest that
//! the last epoch has.

use super::FILE;
use crate::format::files;
use bulla_proof::checkpoint::{Checkpoint, MAX_NOTE, SignedNote};
use bulla_store::{Error, Result, Store, StoreFile};
use std::io;

/// The name of the file.
pub(crate) const NEXT: &str = "bulla.toml.next";
const MARK: &str = "bulla-next-v1 ";
/// The longest first line, with its newline.
const MOST_LINE: usize = 40;

/// A configuration that begins to count with the checkpoint of some size.
struct Arriving {
    size: u64,
    file: Box<dyn StoreFile>,
    /// Where in the file the configuration begins, and how many bytes it has.
    begin: u64,
    length: u64,
}

impl Arriving {
    /// Looks at the file, where there is one.
    ///
    /// # Errors
    /// `Invalid` where it is none of these, `Unavailable` where it cannot be read.
    fn read(store: &dyn Store) -> Result<Option<Self>> {
        let failed = |error| Error::io(format!("reading {}", store.describe(NEXT)), error);
        let file = match store.open(NEXT) {
            // What is no directory has no such file either: `bulla.toml` tells that it is no log.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            file => file.map_err(failed)?,
        };
        let length = file.length().map_err(failed)?;
        let mut line = vec![0; usize::try_from(length).unwrap_or(MOST_LINE).min(MOST_LINE)];
        file.read_exact_at(&mut line, 0).map_err(failed)?;
        let Some((size, begin)) = first_line(&line) else {
            return Err(Error::invalid(format!(
                "{} is not what a mirror writes: remove it, and run `bulla mirror` again",
                store.describe(NEXT)
            )));
        };
        let begin = begin as u64;
        Ok(Some(Arriving { size, file, begin, length: length - begin }))
    }

    /// Whether the checkpoint that is there is the one with which it counts.
    fn counts(&self, store: &dyn Store) -> Result<bool> {
        Ok(published(store)? == Some(self.size))
    }

    /// The bytes of the configuration.
    ///
    /// # Errors
    /// `Invalid` where it is longer than any is, `Unavailable` where it cannot be read.
    fn text(&self, store: &dyn Store) -> Result<Vec<u8>> {
        super::read_text(&*self.file, (self.begin, self.length), &store.describe(NEXT))
    }
}

/// The size that the first line names, and where the next one begins.
fn first_line(bytes: &[u8]) -> Option<(u64, usize)> {
    let end = bytes.iter().take(MOST_LINE).position(|byte| *byte == b'\n')?;
    let size = std::str::from_utf8(&bytes[..end]).ok()?.strip_prefix(MARK)?;
    let parsed = size.parse::<u64>().ok().filter(|parsed| parsed.to_string() == size)?;
    Some((parsed, end + 1))
}

/// The size of the checkpoint that is there, whoever signed it; nothing where there is none.
fn published(store: &dyn Store) -> Result<Option<u64>> {
    let note = match bulla_store::read_small(store, files::CHECKPOINT, MAX_NOTE as u64) {
        Ok(note) => note,
        Err(error) => match error.io_error().map(io::Error::kind) {
            // What is wrong with it, whoever reads the checkpoint tells.
            None
            | Some(io::ErrorKind::NotFound | io::ErrorKind::InvalidInput | io::ErrorKind::IsADirectory) => {
                return Ok(None);
            }
            Some(_) => return Err(error),
        },
    };
    let parsed = SignedNote::parse(&note).and_then(|note| Checkpoint::parse(note.text));
    Ok(parsed.ok().map(|checkpoint| checkpoint.size))
}

/// The configuration that counts in the place of `bulla.toml`, where one does.
///
/// # Errors
/// `Invalid` where the file is not what a mirror writes, `Unavailable` where it or the checkpoint cannot be read.
pub(super) fn arrived(store: &dyn Store) -> Result<Option<Vec<u8>>> {
    let Some(arriving) = Arriving::read(store)? else { return Ok(None) };
    arriving.counts(store)?.then(|| arriving.text(store)).transpose()
}

/// Whether there is one that counts; false where that cannot be read.
pub(super) fn counts(store: &dyn Store) -> bool {
    let arriving = Arriving::read(store).ok().flatten();
    arriving.is_some_and(|arriving| arriving.counts(store).unwrap_or(false))
}

/// Whether a mirror has begun here whose first checkpoint has not arrived: there is a configuration for one, none that counts, and no
/// checkpoint.
pub(crate) fn has_begun(store: &dyn Store) -> bool {
    is_missing(store, FILE)
        && is_missing(store, files::CHECKPOINT)
        && Arriving::read(store).is_ok_and(|arriving| arriving.is_some())
}

/// Whether there is such a file, of whatever content.
pub(super) fn is_there(store: &dyn Store) -> bool {
    !is_missing(store, NEXT)
}

fn is_missing(store: &dyn Store, path: &str) -> bool {
    store.open(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Has `text` be the configuration from the checkpoint of `size` frames on.
///
/// # Errors
/// Where it cannot be written.
pub(crate) fn announce(store: &dyn Store, size: u64, text: &[u8]) -> io::Result<()> {
    bulla_store::replace(store, NEXT, &encode(size, text))
}

fn encode(size: u64, text: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{MARK}{size}\n").into_bytes();
    bytes.extend_from_slice(text);
    bytes
}

/// For fuzzing: that these bytes are no such file, or one of one spelling.
#[cfg(any(test, fuzzing))]
pub(crate) fn check(bytes: &[u8]) {
    if let Some((size, begin)) = first_line(bytes) {
        assert_eq!(encode(size, &bytes[begin..]), bytes, "it has one spelling");
    }
}

/// Takes up a configuration that counts, as `bulla.toml`, and removes the file: to whoever writes the log, and holds its lock. One whose
/// checkpoint is still to arrive is removed as well, if there is a configuration without it: else it stays, as what is left of a log.
///
/// # Errors
/// As [`arrived`]; `Unavailable` where a file cannot be written.
pub(crate) fn take_up(store: &dyn Store) -> Result<()> {
    let Some(arriving) = Arriving::read(store)? else { return Ok(()) };
    let failed = |error| Error::io(format!("writing {}", store.describe(FILE)), error);
    if arriving.counts(store)? {
        bulla_store::replace(store, FILE, &arriving.text(store)?).map_err(failed)?;
    } else if is_missing(store, FILE) {
        return Ok(());
    }
    store.remove(NEXT).and_then(|()| store.sync_directory("")).map_err(failed)
}

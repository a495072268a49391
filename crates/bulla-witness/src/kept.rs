//! What a witness has signed, kept in two places: in its state, a file for each log with the checkpoint that was cosigned last, and
//! beside its key, one file with the size and root of each log.
//!
//! Invariants:
//! - both are durable before a cosignature is made: first the state, then what is beside the key;
//! - so where the state is further than what is beside the key, as a crash leaves it or an older copy of the latter, the state counts;
//! - and the state is never behind what is beside the key, but where it was lost or an older copy was put in its place: then
//!   nothing is signed;
//! - a key without the file beside it signs nothing, and no key is ever begun with twice.

use bulla_proof::checkpoint::{Checkpoint, parse_size};
use bulla_proof::hash::{Hash, sha256};
use bulla_proof::{CosignerKey, SignedNote};
use bulla_store::{Error, ErrorKind, Result, Store};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io;
use std::sync::Arc;

/// The key, in the key directory.
pub(crate) const KEY: &str = "witness.key";
/// What was signed with it, in the key directory.
pub(crate) const SIGNED: &str = "witness.signed";
/// Whose state it is, in the directory of the state.
const OWNER: &str = "witness";
/// The directory of the logs in that.
const LOGS: &str = "logs";

const OWNER_HEADER: &str = "bulla witness state v1";
const LOG_HEADER: &str = "bulla witness log v1";
const SIGNED_HEADER: &str = "bulla witness signed v1";
/// The largest file of a log, in bytes.
const MOST_LOG: u64 = 128 << 10;
/// The largest file beside a key, in bytes.
const MOST_SIGNED: u64 = 4 << 20;

/// The checkpoint of a log that was cosigned last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) size: u64,
    pub(crate) root: Hash,
    /// The time in the newest cosignature, in seconds since 1970.
    pub(crate) time: u64,
    /// The checkpoint with the log's signature.
    pub(crate) note: String,
}

/// See the module.
pub(crate) struct Kept {
    state: Arc<dyn Store>,
    keys: Arc<dyn Store>,
    /// The name and id of the key: whose files these are.
    owner: String,
    seen: BTreeMap<String, Seen>,
    /// What the file beside the key says.
    signed: BTreeMap<String, (u64, Hash)>,
}

impl Kept {
    /// Begins to keep what a new key signs.
    ///
    /// # Errors
    /// `Refused` where the directory of the state is another witness's, or has seen logs; `Unavailable` where a file cannot be written.
    pub(crate) fn begin(state: &dyn Store, keys: &dyn Store, key: &CosignerKey) -> Result<()> {
        let owner = owner(key);
        if let Some(text) = read(state, OWNER, MOST_LOG)? {
            // A beginning that was cut short before there was a key has signed nothing, and left these two of one key.
            let left = read(keys, SIGNED, MOST_SIGNED)?;
            let of_left = left.and_then(|left| {
                left.strip_prefix(SIGNED_HEADER).map(|rest| format!("{OWNER_HEADER}{rest}"))
            });
            if !list(state)?.is_empty() || of_left.as_ref() != Some(&text) {
                return Err(Error::new(
                    ErrorKind::Refused,
                    format!(
                        "{} is the state of a witness already: a new one begins in an empty directory",
                        state.describe("")
                    ),
                ));
            }
        }
        let failed = |store: &dyn Store, path: &str, error| {
            Error::io(format!("writing {}", store.describe(path)), error)
        };
        for (store, path) in [(keys, ""), (state, ""), (state, LOGS)] {
            store.create_directory(path).map_err(|error| failed(store, path, error))?;
            store.sync_directory("").map_err(|error| failed(store, "", error))?;
        }
        let signed = format!("{SIGNED_HEADER}\nkey {owner}\n");
        bulla_store::replace(keys, SIGNED, signed.as_bytes()).map_err(|error| failed(keys, SIGNED, error))?;
        let mine = owner_file(&owner);
        bulla_store::replace(state, OWNER, mine.as_bytes()).map_err(|error| failed(state, OWNER, error))
    }

    /// Reads what was kept, and holds both places against each other.
    ///
    /// # Errors
    /// `Refused` where the state is missing, of an earlier time or another key's, saying what is demanded; `Tampered` where a file is damaged;
    /// `Unavailable` where one cannot be read.
    pub(crate) fn load(state: &Arc<dyn Store>, keys: &Arc<dyn Store>, key: &CosignerKey) -> Result<Self> {
        let owner = owner(key);
        let signed = load_signed(&**keys, &owner)?;
        let lost = |what: &str| {
            Error::new(
                ErrorKind::Refused,
                format!(
                    "{what}: put back the newest {} that this witness had; where that is lost for good nobody can tell what this key \
                     signed, and a witness begins anew, with a new key and in empty directories (`--new`)",
                    state.describe("")
                ),
            )
        };
        match read(&**state, OWNER, MOST_LOG)? {
            None => return Err(lost(&format!("the state of this witness is not in {}", state.describe("")))),
            Some(text) if text != owner_file(&owner) => {
                return Err(lost(&format!(
                    "{} is the state of another witness than {owner}",
                    state.describe("")
                )));
            }
            Some(_) => {}
        }
        let mut seen = BTreeMap::new();
        for name in list(&**state)? {
            let path = format!("{LOGS}/{name}");
            // A file that was being written when the process ended is of no consequence.
            if name.ends_with(".tmp") {
                continue;
            }
            let damaged = |why: &str| {
                Error::tampered(format!("{}: {why}; it is no state of a log", state.describe(&path)))
            };
            let text = read(&**state, &path, MOST_LOG)?.ok_or_else(|| damaged("it went away"))?;
            let (origin, log) = parse_log(&text, &owner).ok_or_else(|| damaged("it is damaged"))?;
            if name != file_name(&origin) {
                return Err(damaged("it has another log's name"));
            }
            seen.insert(origin, log);
        }
        for (origin, (size, root)) in &signed {
            let demanded = format!(
                "the tree of {size} leaves with the root {} of `{origin}`, or a later one,",
                root.to_base64()
            );
            match seen.get(origin) {
                None => {
                    return Err(lost(&format!(
                        "{demanded} was cosigned, and the state has nothing of that log"
                    )));
                }
                Some(log) if log.size < *size => {
                    return Err(lost(&format!(
                        "{demanded} was cosigned, and the state is of an earlier time: it has {} leaves",
                        log.size
                    )));
                }
                Some(log) if log.size == *size && log.root != *root => {
                    return Err(lost(&format!(
                        "{demanded} was cosigned, and the state has another root, {}",
                        log.root.to_base64()
                    )));
                }
                Some(_) => {}
            }
        }
        Ok(Kept { state: state.clone(), keys: keys.clone(), owner, seen, signed })
    }

    /// What was cosigned last of a log.
    pub(crate) fn seen(&self, origin: &str) -> Option<&Seen> {
        self.seen.get(origin)
    }

    /// Has `seen` durable, in both places, so that it may be signed. Where this fails nothing may be.
    ///
    /// # Errors
    /// `Unavailable` where a file cannot be written.
    pub(crate) fn keep(&mut self, origin: &str, seen: Seen) -> Result<()> {
        let path = log_file(origin);
        let text = format!("{LOG_HEADER}\nkey {}\ntime {}\n\n{}", self.owner, seen.time, seen.note);
        let written = bulla_store::replace(&*self.state, &path, text.as_bytes());
        written.map_err(|error| Error::io(format!("writing {}", self.state.describe(&path)), error))?;
        let head = (seen.size, seen.root);
        self.seen.insert(origin.to_owned(), seen);
        if self.signed.get(origin) == Some(&head) {
            return Ok(());
        }
        let mut signed = self.signed.clone();
        signed.insert(origin.to_owned(), head);
        let mut text = format!("{SIGNED_HEADER}\nkey {}\n", self.owner);
        for (origin, (size, root)) in &signed {
            // Writing to a `String` cannot fail.
            let _ = writeln!(text, "{size} {} {origin}", root.to_base64());
        }
        let written = bulla_store::replace(&*self.keys, SIGNED, text.as_bytes());
        written.map_err(|error| Error::io(format!("writing {}", self.keys.describe(SIGNED)), error))?;
        self.signed = signed;
        Ok(())
    }

    /// Keeps a checkpoint that the log signed and that is of another tree than the one of the same size that was cosigned: the two
    /// together show that the log has two histories. The first such one of a log stays.
    ///
    /// # Errors
    /// `Unavailable` where it cannot be written.
    pub(crate) fn keep_conflict(&self, origin: &str, note: &str) -> Result<()> {
        let path = self.conflict(origin);
        let written = match bulla_store::write_new(&*self.state, &path, note.as_bytes()) {
            // It may be of an attempt that failed once it had its name.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.state.sync_directory(""),
            written => written,
        };
        written.map_err(|error| Error::io(format!("writing {}", self.state.describe(&path)), error))
    }

    /// Where it is kept what was cosigned last of a log, as a person would name it.
    pub(crate) fn describe_log(&self, origin: &str) -> String {
        self.state.describe(&log_file(origin))
    }

    /// Where a conflict of a log is kept, as a person would name it.
    pub(crate) fn describe_conflict(&self, origin: &str) -> String {
        self.state.describe(&self.conflict(origin))
    }

    fn conflict(&self, origin: &str) -> String {
        format!("conflict-{}", file_name(origin))
    }
}

/// Whether a witness was begun with these keys: the file beside the key is there.
pub(crate) fn has_begun(keys: &dyn Store) -> bool {
    !matches!(read(keys, SIGNED, MOST_SIGNED), Ok(None))
}

/// The name and id of a key, which say whose a file is.
fn owner(key: &CosignerKey) -> String {
    format!("{}+{:08x}", key.name(), key.key_id())
}

fn owner_file(owner: &str) -> String {
    format!("{OWNER_HEADER}\nkey {owner}\n")
}

/// The name of a log's file: an origin may be too long for one, or have a slash.
fn file_name(origin: &str) -> String {
    sha256(&[origin.as_bytes()]).to_string()
}

fn log_file(origin: &str) -> String {
    format!("{LOGS}/{}", file_name(origin))
}

fn list(state: &dyn Store) -> Result<Vec<String>> {
    match state.list(LOGS) {
        Ok(items) => Ok(items.into_iter().map(|item| item.name).collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(Error::io(format!("listing {}", state.describe(LOGS)), error)),
    }
}

/// A file of text; `None` where there is none.
fn read(store: &dyn Store, path: &str, most: u64) -> Result<Option<String>> {
    let bytes = match bulla_store::read_small(store, path, most) {
        Err(error) if error.io_error().is_some_and(|error| error.kind() == io::ErrorKind::NotFound) => {
            return Ok(None);
        }
        bytes => bytes?,
    };
    let text = String::from_utf8(bytes);
    text.map(Some).map_err(|_| Error::tampered(format!("{} is not UTF-8", store.describe(path))))
}

fn load_signed(keys: &dyn Store, owner: &str) -> Result<BTreeMap<String, (u64, Hash)>> {
    let name = keys.describe(SIGNED);
    let text = read(keys, SIGNED, MOST_SIGNED)?.ok_or_else(|| {
        Error::new(
            ErrorKind::Refused,
            format!(
                "{name} is missing, which says what was signed with the key beside it: put it back; without it nobody can tell, and a \
                 witness begins anew, with a new key and in empty directories (`--new`)"
            ),
        )
    })?;
    let damaged = || Error::tampered(format!("{name} is damaged: put back the newest copy of it"));
    let mut lines = text.strip_suffix('\n').ok_or_else(damaged)?.split('\n');
    if lines.next() != Some(SIGNED_HEADER) {
        return Err(damaged());
    }
    if lines.next().and_then(|line| line.strip_prefix("key ")) != Some(owner) {
        return Err(Error::new(
            ErrorKind::Refused,
            format!("{name} is of another key than {owner}, which is beside it"),
        ));
    }
    let mut signed = BTreeMap::new();
    for line in lines {
        let mut parts = line.splitn(3, ' ');
        let size = parts.next().and_then(parse_size).ok_or_else(damaged)?;
        let root = parts.next().and_then(Hash::from_base64).ok_or_else(damaged)?;
        let origin = parts.next().filter(|origin| !origin.is_empty()).ok_or_else(damaged)?;
        if signed.insert(origin.to_owned(), (size, root)).is_some() {
            return Err(damaged());
        }
    }
    Ok(signed)
}

fn parse_log(text: &str, owner: &str) -> Option<(String, Seen)> {
    let rest = text.strip_prefix(LOG_HEADER)?.strip_prefix("\nkey ")?.strip_prefix(owner)?;
    let (time, note) = rest.strip_prefix("\ntime ")?.split_once("\n\n")?;
    let time = parse_size(time)?;
    let checkpoint = Checkpoint::parse(SignedNote::parse(note.as_bytes()).ok()?.text).ok()?;
    let seen = Seen { size: checkpoint.size, root: checkpoint.root, time, note: note.to_owned() };
    Some((checkpoint.origin, seen))
}

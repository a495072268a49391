//! By what a source is known again: what the log keeps of it beside its ranges.

use super::content::Content;
use serde::{Deserialize, Serialize};
use siphasher::sip::SipHasher13;
use siphasher::sip128::{Hasher128, SipHasher24};
use std::ffi::OsStr;
use std::hash::Hasher;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What names a source in the log: random, and the key of the digests by which its content is known again. The log
/// keeps it encrypted, beside what it names.
pub type SourceId = [u8; 16];

/// So many bytes at a file's beginning are part of what it is known by, once it has them.
pub(super) const BEGINNING: usize = 1024;

/// Of so many lines in a file's beginning.
const LINES: usize = 64;

/// A log takes no label that has more bytes.
const MOST: usize = 4096;

/// A new label has at most so many bytes more once all is noted in it.
const NOTED: usize = 1024;

/// So many bytes before a place are what the place is known by.
pub(super) const TAIL: usize = 64;

/// What is known of a source beside its id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Label {
    /// The path by which it is followed, also when the file has another name by now.
    #[serde(with = "as_text")]
    pub path: PathBuf,
    /// The file's device and inode.
    pub device: u64,
    /// See `device`.
    pub inode: u64,
    /// When its path was heard of first, in nanoseconds since the epoch: what was rotated there since then is read.
    pub met: i64,
    /// How many of its first bytes `digest` is of.
    pub beginning: u64,
    /// SipHash-2-4-128 of these under the source's id.
    pub digest: (u64, u64),
    /// The same of what each of the lines ends in them, 32 bits of it; of 64 lines at most. By these a copy is known that is shorter.
    pub lines: Vec<u32>,
    /// It was read to its end, which is here, and nothing is expected to come.
    pub finished: Option<End>,
}

/// Where a source ends that is done with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    /// So many bytes it has.
    pub length: u64,
    /// What its end is known by: see [`check`].
    pub check: u64,
}

impl Label {
    /// As the log keeps it.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a label has nothing that JSON has not")
    }

    /// Whether a log takes it, whatever else is noted in it.
    pub(super) fn has_room(&self) -> bool {
        self.to_bytes().len() + NOTED <= MOST
    }

    /// A label as the log keeps it; `None` of anything else, as a later version may write.
    pub fn parse(bytes: &[u8]) -> Option<Label> {
        serde_json::from_slice(bytes).ok()
    }

    /// Takes note of a file's beginning, as much as there is.
    pub(super) fn note(&mut self, id: &SourceId, beginning: &[u8]) {
        self.beginning = beginning.len() as u64;
        self.digest = digest(id, beginning);
        self.lines =
            line_ends(beginning).take(LINES).map(|end| short_digest(id, &beginning[..end])).collect();
    }

    /// Whether `content` is what this label is of, as far as it goes: a copy may end before the beginning does, behind a line.
    pub(super) fn is_of(&self, id: &SourceId, content: &mut Content) -> io::Result<bool> {
        let mut beginning = [0; BEGINNING];
        let read = content.fill(0, &mut beginning)?;
        if read as u64 >= self.beginning {
            return self.begins(id, content);
        }
        let beginning = &beginning[..read];
        let last = line_ends(beginning).enumerate().last();
        Ok(last.is_some_and(|(line, end)| self.lines.get(line) == Some(&short_digest(id, &beginning[..end]))))
    }

    /// Whether `content` has the beginning that this label is of.
    pub(super) fn begins(&self, id: &SourceId, content: &mut Content) -> io::Result<bool> {
        let mut beginning = [0; BEGINNING];
        let length = usize::try_from(self.beginning).unwrap_or(usize::MAX).min(beginning.len());
        let read = content.fill(0, &mut beginning[..length])?;
        Ok(read == length && digest(id, &beginning[..length]) == self.digest)
    }
}

/// Where lines end.
fn line_ends(bytes: &[u8]) -> impl Iterator<Item = usize> {
    bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(place, _)| place + 1)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "32 bits of it are enough beside what else a copy is known by"
)]
fn short_digest(id: &SourceId, beginning: &[u8]) -> u32 {
    digest(id, beginning).0 as u32
}

/// The digest of a file's beginning.
fn digest(id: &SourceId, beginning: &[u8]) -> (u64, u64) {
    let mut hasher = SipHasher24::new_with_key(id);
    hasher.write(beginning);
    let digest = hasher.finish128();
    (digest.h1, digest.h2)
}

/// What a place is known by: a digest of some bytes before it, under the source's id; of a file these are 64 at most.
pub fn check(id: &SourceId, tail: &[u8]) -> u64 {
    let mut hasher = SipHasher13::new_with_key(id);
    hasher.write(tail);
    hasher.finish()
}

/// Whether the bytes before `place` are those that `check` was made of.
pub(super) fn has_come_to(
    id: &SourceId,
    content: &mut Content,
    place: u64,
    expected: u64,
) -> io::Result<bool> {
    if place == 0 {
        return Ok(true);
    }
    let mut tail = [0; TAIL];
    let length = usize::try_from(place).unwrap_or(TAIL).min(TAIL);
    let read = content.fill(place - length as u64, &mut tail[..length])?;
    Ok(read == length && check(id, &tail[..length]) == expected)
}

/// A path as text that stands for it alone.
mod as_text {
    use super::{OsStr, OsStrExt, Path, PathBuf};
    use serde::{Deserialize, Deserializer, Serializer};

    const RAW: &str = "raw:";

    pub(super) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        match path.to_str() {
            Some(text) if !text.starts_with(RAW) => to.serialize_str(text),
            _ => {
                let bytes = path.as_os_str().as_bytes().iter();
                to.serialize_str(&bytes.fold(RAW.to_owned(), |text, byte| text + &format!("{byte:02x}")))
            }
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        let text = String::deserialize(from)?;
        let Some(digits) = text.strip_prefix(RAW) else { return Ok(text.into()) };
        let byte =
            |pair: &[u8]| std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok());
        let bytes: Option<Vec<u8>> = digits.as_bytes().chunks(2).map(byte).collect();
        let bytes = bytes.ok_or_else(|| serde::de::Error::custom("a path in hexadecimal digits"))?;
        Ok(OsStr::from_bytes(&bytes).into())
    }
}

//! The file of personal records: what a program that writes a log keeps about data subjects from one run to the next, each record under
//! a key that follows from its data subject's.
//!
//! Invariants:
//! - what is in a record, its length aside, nobody reads without the key of its data subject: an erasure takes that, and no copy of the
//!   file brings it back;
//! - a file that ends before what it says of itself, or is another than was written, is refused as a whole. A part of it could say what
//!   has long been withdrawn;
//! - what a crash cut off is at most what the head does not cover yet: the changes since the last sync.
//!
//! `docs/format.md` has the bytes.

use crate::keys::files;
use bulla_crypto::environment::{Cipher, Random};
use bulla_crypto::subject::{Secret, Subject, SubjectKey};
use bulla_proof::commitment::LogId;
use bulla_store::{Error, Result, Store, StoreFile};
use hkdf::Hkdf;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::collections::HashMap;
use std::io::{self, IoSlice};
use zeroize::Zeroizing;

const MAGIC: &[u8; 8] = b"bullaPR1";
/// The magic, the log and the random bytes.
const HEADER: usize = 8 + 16 + 32;
/// Where the two heads are: in sectors of their own, so that a write which is cut short spoils one of them at most.
const HEADS: [u64; 2] = [512, 1024];
/// Where a head says that the file ends, the chain's value there, and the head's code.
const HEAD: usize = 8 + 32 + 32;
/// Where the first frame begins.
const FRAMES: u64 = 1536;
/// The longest content of a frame, in bytes; longer changes are split.
const MAX_FRAME: usize = 4 << 20;
/// A frame that has so many bytes takes no further change.
const FULL_FRAME: usize = 1 << 20;
/// The longest content of a record, in bytes.
pub(crate) const MAX_RECORD: usize = 1 << 20;
/// The tag that a record ends with.
const TAG: usize = 16;

/// What identifies a file, and the keys that follow from it.
struct Keys {
    log: LogId,
    random: [u8; 32],
    codes: Zeroizing<[u8; 32]>,
}

/// A file that is open for changes.
pub(crate) struct PersonalFile {
    keys: Keys,
    file: Box<dyn StoreFile>,
    /// The chain's value behind the last frame, and where that ends.
    chain: [u8; 32],
    end: u64,
    /// How many records it was given since it was made.
    given: u64,
    /// Which head is older.
    older: usize,
}

/// What a file has.
#[derive(Default)]
pub(crate) struct Read {
    /// By their ids.
    records: HashMap<u64, Sealed>,
    /// How many there were.
    given: u64,
    /// Whether it ends in changes that are not whole.
    pub(crate) torn: bool,
}

/// A record, as it lies in the file.
struct Sealed {
    /// Which of the records that the file was given it is.
    nonce: u64,
    /// The number of its data subject.
    subject: u64,
    sealed: Box<[u8]>,
}

/// Changes, as they stand in frames.
pub(crate) struct Changes<'a> {
    keys: &'a Keys,
    cipher: &'a dyn Cipher,
    frames: Vec<Vec<u8>>,
    /// How many records the file was given: the nonce of the next one.
    given: u64,
    /// Whose record was put last, and the key of their records.
    last: Option<(u64, Secret)>,
}

impl Keys {
    fn new(digest_key: &[u8; 32], log: LogId, random: [u8; 32]) -> Result<Self> {
        let mut codes = Zeroizing::new([0; 32]);
        let information: [&[u8]; 2] = [b"bulla personal records v1", &log.0];
        let expanded =
            Hkdf::<Sha256>::new(Some(&random), digest_key).expand_multi_info(&information, &mut *codes);
        expanded.map_err(|_| Error::unavailable("HKDF refused its length"))?;
        Ok(Keys { log, random, codes })
    }

    /// The key of the records of one data subject.
    fn of(&self, number: u64, key: &SubjectKey) -> Result<Secret> {
        let information: [&[u8]; 4] =
            [b"bulla personal record v1", &self.log.0, &self.random, &number.to_le_bytes()];
        let hkdf = Hkdf::<Sha256>::from_prk(key.bytes());
        let hkdf = hkdf.map_err(|_| Error::unavailable("HKDF refused its key"))?;
        let mut derived = Secret([0; 32]);
        let expanded = hkdf.expand_multi_info(&information, &mut derived.0);
        expanded.map_err(|_| Error::unavailable("HKDF refused its length"))?;
        Ok(derived)
    }

    fn header(&self) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(MAGIC);
        header[8..24].copy_from_slice(&self.log.0);
        header[24..].copy_from_slice(&self.random);
        header
    }

    /// The chain's value before the first frame.
    fn start(&self) -> Result<[u8; 32]> {
        self.code(0, &[&self.header()])
    }

    /// The chain's value behind a frame.
    fn follow(&self, chain: &[u8; 32], content: &[u8]) -> Result<[u8; 32]> {
        self.code(1, &[chain, content])
    }

    fn head(&self, end: u64, chain: &[u8; 32]) -> Result<[u8; HEAD]> {
        let mut head = [0; HEAD];
        head[..8].copy_from_slice(&end.to_le_bytes());
        head[8..40].copy_from_slice(chain);
        let code = self.code(2, &[&head[..40]])?;
        head[40..].copy_from_slice(&code);
        Ok(head)
    }

    fn code(&self, what: u8, parts: &[&[u8]]) -> Result<[u8; 32]> {
        let mac = <Hmac<Sha256> as KeyInit>::new_from_slice(&*self.codes);
        let mut mac = mac.map_err(|_| Error::unavailable("HMAC refused its key"))?;
        mac.update(&[what]);
        parts.iter().for_each(|part| mac.update(part));
        Ok(mac.finalize().into_bytes().into())
    }
}

impl Changes<'_> {
    /// Adds a record, or replaces the one with this id.
    ///
    /// # Errors
    /// `Invalid` where it is over [`MAX_RECORD`] bytes.
    pub(crate) fn put(&mut self, id: u64, subject: &Subject, content: &[u8]) -> Result<()> {
        if content.len() > MAX_RECORD {
            return Err(Error::invalid(format!("a personal record has at most {MAX_RECORD} bytes")));
        }
        let key = match self.last.take() {
            Some((number, key)) if number == subject.number => key,
            _ => self.keys.of(subject.number, &subject.key)?,
        };
        let mut sealed = content.to_vec();
        self.cipher.seal(&key.0, self.given, &id.to_le_bytes(), &mut sealed)?;
        self.given += 1;
        self.last = Some((subject.number, key));
        let frame = self.frame();
        frame.push(1);
        frame.extend_from_slice(&id.to_le_bytes());
        frame.extend_from_slice(&subject.number.to_le_bytes());
        // It is short, as was just looked at.
        frame.extend_from_slice(&u32::try_from(sealed.len()).unwrap_or(u32::MAX).to_le_bytes());
        frame.extend_from_slice(&sealed);
        Ok(())
    }

    /// Takes a record away, if there is one with this id.
    pub(crate) fn remove(&mut self, id: u64) {
        let frame = self.frame();
        frame.push(0);
        frame.extend_from_slice(&id.to_le_bytes());
    }

    fn frame(&mut self) -> &mut Vec<u8> {
        if self.frames.last().is_none_or(|frame| frame.len() >= FULL_FRAME) {
            self.frames.push(Vec::new());
        }
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }
}

impl PersonalFile {
    /// Writes a new file that has what `fill` puts into it, in the place of any that is there.
    ///
    /// # Errors
    /// As `fill`; `Unavailable` where it cannot be written: then there is the old one, or the new one.
    pub(crate) fn create(
        store: &dyn Store,
        (digest_key, log): (&[u8; 32], LogId),
        (random, cipher): (&dyn Random, &dyn Cipher),
        fill: impl FnOnce(&mut Changes<'_>) -> Result<()>,
    ) -> Result<Self> {
        let mut bytes = [0; 32];
        random.fill(&mut bytes)?;
        let keys = Keys::new(digest_key, log, bytes)?;
        let mut changes = Changes { keys: &keys, cipher, frames: Vec::new(), given: 0, last: None };
        fill(&mut changes)?;
        let Changes { frames, given, .. } = changes;
        let mut chain = keys.start()?;
        let failed = |error| Error::io(format!("writing {}", store.describe(files::LEARNED)), error);
        let temporary = format!("{}.tmp", files::LEARNED);
        let write = || -> io::Result<Box<dyn StoreFile>> {
            match store.remove(&temporary) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            store.create(&temporary)
        };
        let file = write().map_err(failed)?;
        let mut end = FRAMES;
        for frame in frames {
            chain = write_frame(&*file, &keys, (&mut end, chain), &frame)?.map_err(failed)?;
        }
        let mut first = vec![0; usize::try_from(FRAMES).unwrap_or_default()];
        first[..HEADER].copy_from_slice(&keys.header());
        first[512..512 + HEAD].copy_from_slice(&keys.head(end, &chain)?);
        let publish = || {
            file.write_at(&mut [IoSlice::new(&first)], 0)?;
            file.sync()?;
            store.rename(&temporary, files::LEARNED)?;
            store.sync_directory("")
        };
        publish().map_err(failed)?;
        Ok(PersonalFile { keys, file, chain, end, given, older: 1 })
    }

    /// Appends changes. What was appended when this returns is on the medium.
    ///
    /// # Errors
    /// As `fill`; `Unavailable` where it cannot be written. A file of which that was told must be created anew: what of it is on the
    /// medium nobody knows.
    pub(crate) fn append(
        &mut self,
        cipher: &dyn Cipher,
        fill: impl FnOnce(&mut Changes<'_>) -> Result<()>,
    ) -> Result<()> {
        let failed =
            |error| Error::io(format!("writing the file `{}` of the key directory", files::LEARNED), error);
        let mut changes =
            Changes { keys: &self.keys, cipher, frames: Vec::new(), given: self.given, last: None };
        fill(&mut changes)?;
        let Changes { frames, given, .. } = changes;
        self.given = given;
        if frames.is_empty() {
            return Ok(());
        }
        for frame in frames {
            self.chain =
                write_frame(&*self.file, &self.keys, (&mut self.end, self.chain), &frame)?.map_err(failed)?;
        }
        self.file.sync().map_err(failed)?;
        // It covers what is on the medium, and is on it with the next sync: what comes behind it then holds as far as it is whole.
        let head = self.keys.head(self.end, &self.chain)?;
        self.file.write_at(&mut [IoSlice::new(&head)], HEADS[self.older]).map_err(failed)?;
        self.older = 1 - self.older;
        Ok(())
    }

    /// How many bytes it has.
    pub(crate) fn length(&self) -> u64 {
        self.end
    }
}

/// Writes a frame at `end`, which is behind it afterwards; the chain's value there.
fn write_frame(
    file: &dyn StoreFile,
    keys: &Keys,
    (end, chain): (&mut u64, [u8; 32]),
    content: &[u8],
) -> Result<io::Result<[u8; 32]>> {
    let chain = keys.follow(&chain, content)?;
    let length = u32::try_from(content.len())
        .map_err(|_| Error::invalid("a frame of personal records is too long"))?;
    let length = length.to_le_bytes();
    let mut parts = [IoSlice::new(&length), IoSlice::new(content), IoSlice::new(&chain)];
    let written = file.write_at(&mut parts, *end);
    *end += (4 + content.len() + 32) as u64;
    Ok(written.map(|()| chain))
}

/// Reads the file of a log; `None` where there is none.
///
/// # Errors
/// `Unavailable` where it is damaged, or cannot be read.
pub(crate) fn read(
    store: &dyn Store,
    digest_key: &[u8; 32],
    log: LogId,
) -> Result<Option<(Read, PersonalKeys)>> {
    let file = match store.open(files::LEARNED) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(|error| cannot_read(store, error))?,
    };
    let mut begins = [0; HEADER];
    if let Err(error) = file.read_exact_at(&mut begins, 0) {
        return Err(not_whole(store, error));
    }
    if file.length().map_err(|error| cannot_read(store, error))? < FRAMES {
        return Err(not_whole(store, io::ErrorKind::UnexpectedEof.into()));
    }
    if begins[..8] != *MAGIC || begins[8..24] != log.0 {
        return Err(damaged(store, "it does not begin as one of this log"));
    }
    let mut random = [0; 32];
    random.copy_from_slice(&begins[24..]);
    let keys = Keys::new(digest_key, log, random)?;
    let (covered, covered_chain) = newest_head(&*file, &keys)
        .and_then(|head| head.ok_or_else(|| damaged(store, "neither of its heads is what was written")))?;
    let mut read = Read::default();
    let (mut end, mut chain) = (FRAMES, keys.start()?);
    let mut content = Vec::new();
    loop {
        if end == covered && chain != covered_chain {
            return Err(damaged(store, "it is not what its head says"));
        }
        let next = next_frame(&*file, &keys, (end, &chain), &mut content)
            .map_err(|error| cannot_read(store, error))?;
        match next {
            Frame::Whole(after) => {
                chain = after;
                end += (4 + content.len() + 32) as u64;
                read.take(&content).ok_or_else(|| damaged(store, "a change in it has no known form"))?;
            }
            _ if end < covered => {
                return Err(damaged(
                    store,
                    format!(
                        "it ends, or is another, from byte {end} on, and its head says that it has {covered}"
                    ),
                ));
            }
            Frame::None => return Ok(Some((read, PersonalKeys(keys)))),
            Frame::Torn => {
                read.torn = true;
                return Ok(Some((read, PersonalKeys(keys))));
            }
        }
    }
}

/// What there is at a place.
enum Frame {
    /// The end of the file.
    None,
    /// Something else than a frame.
    Torn,
    /// A frame; the chain's value behind it.
    Whole([u8; 32]),
}

fn next_frame(
    file: &dyn StoreFile,
    keys: &Keys,
    (end, chain): (u64, &[u8; 32]),
    content: &mut Vec<u8>,
) -> io::Result<Frame> {
    let left = file.length()?.saturating_sub(end);
    if left == 0 {
        return Ok(Frame::None);
    }
    let mut length = [0; 4];
    if left < 4 + 32 {
        return Ok(Frame::Torn);
    }
    file.read_exact_at(&mut length, end)?;
    let length = u32::from_le_bytes(length);
    if u64::from(length) > left - 36 || length as usize > MAX_FRAME {
        return Ok(Frame::Torn);
    }
    content.resize(length as usize, 0);
    file.read_exact_at(content, end + 4)?;
    let mut code = [0; 32];
    file.read_exact_at(&mut code, end + 4 + u64::from(length))?;
    match keys.follow(chain, content) {
        Ok(expected) if expected == code => Ok(Frame::Whole(code)),
        _ => Ok(Frame::Torn),
    }
}

/// Where the newest head that is whole says that the file ends, and the chain's value there.
fn newest_head(file: &dyn StoreFile, keys: &Keys) -> Result<Option<(u64, [u8; 32])>> {
    let mut newest = None;
    for place in HEADS {
        let mut head = [0; HEAD];
        if file.read_exact_at(&mut head, place).is_err() {
            continue;
        }
        let end = u64::from_le_bytes(head[..8].try_into().unwrap_or_default());
        let chain = head[8..40].try_into().unwrap_or_default();
        if keys.head(end, &chain)? == head {
            newest = newest.max(Some((end, chain)));
        }
    }
    Ok(newest)
}

/// The keys of a file that was read.
pub(crate) struct PersonalKeys(Keys);

impl Read {
    fn take(&mut self, mut content: &[u8]) -> Option<()> {
        while let Some((kind, rest)) = content.split_first() {
            let (id, rest) = number(rest)?;
            content = match kind {
                0 => {
                    self.records.remove(&id);
                    rest
                }
                1 => {
                    let (subject, rest) = number(rest)?;
                    let (length, rest) = rest.split_at_checked(4)?;
                    let length = u32::from_le_bytes(length.try_into().ok()?);
                    let (sealed, rest) = rest.split_at_checked(length as usize)?;
                    self.records.insert(id, Sealed { nonce: self.given, subject, sealed: sealed.into() });
                    self.given += 1;
                    rest
                }
                _ => return None,
            };
        }
        Some(())
    }

    /// The numbers of the data subjects, each once, ascending.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        let mut numbers = self.records.values().map(|record| record.subject).collect::<Vec<_>>();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// What is in the records of those that have a key, by their numbers, and each one's by their ids. How many are of others.
    ///
    /// # Errors
    /// `Unavailable` where one does not decrypt.
    pub(crate) fn open(
        self,
        PersonalKeys(keys): &PersonalKeys,
        (store, cipher): (&dyn Store, &dyn Cipher),
        subjects: &HashMap<u64, SubjectKey>,
        visit: &mut dyn FnMut(&[u8]),
    ) -> Result<u64> {
        let mut records = self.records.into_iter().collect::<Vec<_>>();
        records.sort_unstable_by_key(|(id, record)| (record.subject, *id));
        let (mut gone, mut last) = (0, None::<(u64, Secret)>);
        for (id, Sealed { nonce, subject, sealed }) in records {
            let Some(key) = subjects.get(&subject) else {
                gone += 1;
                continue;
            };
            let mut content = Zeroizing::new(sealed.into_vec());
            let wrong = || {
                damaged(store, format!("record {id} does not decrypt with the key of data subject {subject}"))
            };
            if content.len() < TAG {
                return Err(wrong());
            }
            let own = match last.take() {
                Some((number, own)) if number == subject => own,
                _ => keys.of(subject, key)?,
            };
            cipher.open(&own.0, nonce, &id.to_le_bytes(), &mut content).map_err(|_| wrong())?;
            last = Some((subject, own));
            visit(&content);
        }
        Ok(gone)
    }
}

fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_at_checked(8)?;
    Some((u64::from_le_bytes(number.try_into().ok()?), rest))
}

fn not_whole(store: &dyn Store, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => damaged(store, "it is shorter than its header"),
        _ => cannot_read(store, error),
    }
}

fn cannot_read(store: &dyn Store, error: io::Error) -> Error {
    Error::io(format!("reading {}", store.describe(files::LEARNED)), error)
}

fn damaged(store: &dyn Store, why: impl std::fmt::Display) -> Error {
    Error::unavailable(format!("{} is damaged: {why}", store.describe(files::LEARNED)))
}

/// Removes the file, if there is one: what it says may be of another time than the log.
///
/// # Errors
/// `Unavailable` where it cannot be removed.
pub(crate) fn remove(store: &dyn Store) -> Result<()> {
    files::remove(store, files::LEARNED)
}

#[cfg(test)]
mod tests;

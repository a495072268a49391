//! The key of what blocks say of sources, and what is kept of that from one run to the next.
//!
//! The host that writes has to read after a restart what blocks hold of which source, also of epochs that it has no key of any more.
//! So that is encrypted under a key of the key directory:
//! HKDF-SHA-256(salt = the random bytes of the block's epoch frame, key = the key in `sources.key`,
//! information = "bulla sources v1" ‖ log id ‖ epoch number u64), by AES-256-GCM with the frame's number as nonce and the commitment
//! up to the body's digest as additional data.
//!
//! `sources.state` spares reading all blocks. It is a cache: one that is missing, damaged or of another history is passed over.
//!
//! ```text
//! offset  size  field
//!      0     8  "bullaSR1"
//!      8    32  random
//!     40     …  AES-256-GCM, nonce 0, additional data the 40 bytes before, key = HKDF-SHA-256(salt = random, key = the key in
//!               sources.key, information = "bulla sources state v1" ‖ log id), of:
//!                 u64  how many frames it tells of
//!                 32   the leaf of the last of them, a block that says something; zeros where there is none
//!                 …    the sources (`format/sources/table`)
//! ```
//!
//! `sources.passed` is made in the same way, of "bullaSP1" and "bulla sources passed v1": what became no entry
//! (`format/sources/passed`). Where it is missing or damaged that is read again.

use crate::format::sources::passed::AllPassed;
use crate::format::sources::table::Table;
use crate::format::sources::{self, SourceEntry};
use crate::keys::files;
use crate::keys::own_key::OwnKey;
use bulla_crypto::environment::{AesGcm, Cipher, Random};
use bulla_proof::commitment::{Commitment, LogId};
use bulla_proof::hash::Hash;
use bulla_store::{Error, ErrorKind, Result, Store};
use hkdf::Hkdf;
use sha2::Sha256;
use std::io;
use zeroize::Zeroizing;

const KEY: OwnKey =
    OwnKey { file: files::SOURCES_KEY, what: "key of sources", header: "bulla-sources-key-v1" };
const STATE: Kept =
    Kept { file: files::SOURCES_STATE, magic: b"bullaSR1", information: b"bulla sources state v1" };
const PASSED: Kept =
    Kept { file: files::SOURCES_PASSED, magic: b"bullaSP1", information: b"bulla sources passed v1" };
/// Magic and random bytes.
const HEAD: usize = 40;
/// The longest file of those, in bytes: as many sources as a log has, each with the longest label and some ranges.
const MOST: u64 = 1 << 30;

/// A file that is kept beside the key, under it.
struct Kept {
    file: &'static str,
    magic: &'static [u8; 8],
    information: &'static [u8],
}

/// The key of what the blocks of a log say of sources.
pub(crate) struct SourcesKey(Zeroizing<[u8; 32]>);

/// What the first frames of a log say of sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourcesSoFar {
    /// How many frames.
    pub(crate) frames: u64,
    /// The leaf of the last of them, a block that says something; zeros where there is none.
    pub(crate) leaf: Hash,
    pub(crate) table: Table,
}

impl Default for SourcesSoFar {
    fn default() -> Self {
        SourcesSoFar { frames: 0, leaf: Hash::ZERO, table: Table::default() }
    }
}

impl SourcesKey {
    /// The key of `log`; `None` where it was not made yet, or is missing.
    ///
    /// # Errors
    /// `Unavailable` where it cannot be read or is damaged, `Refused` where it is another log's.
    pub(crate) fn load(keys: &dyn Store, log: LogId) -> Result<Option<Self>> {
        Ok(KEY.load(keys, log)?.map(SourcesKey))
    }

    /// Makes the key of `log`, which has none.
    ///
    /// # Errors
    /// `Unavailable` where it cannot be written.
    pub(crate) fn make(keys: &dyn Store, log: LogId, random: &dyn Random) -> Result<Self> {
        KEY.make(keys, log, random).map(SourcesKey)
    }

    /// That the key is missing although blocks need it: `NoKey`, and `Unavailable` where the whole directory is not there.
    pub(crate) fn missing(keys: &dyn Store) -> Error {
        if keys.list("").is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            return Error::unavailable(format!(
                "there is no directory {}, and blocks of the log say under a key in it what they hold of which source: bring it, mount \
                 it, or name the one that the log has",
                keys.describe("")
            ));
        }
        let message = format!(
            "{} is missing, and blocks of the log say under that key what they hold of which source: restore it from a backup. Where \
             there is none, entries can be appended as ever, but what is followed can be followed into a new log only",
            keys.describe(files::SOURCES_KEY)
        );
        Error::new(ErrorKind::NoKey, message)
    }

    /// The key of the sections of an epoch, whose frame shows these random bytes.
    ///
    /// # Errors
    /// None in practice: the lengths are fixed.
    pub(crate) fn of_epoch(&self, log: LogId, epoch: u64, random: &[u8; 32]) -> Result<Zeroizing<[u8; 32]>> {
        self.derive(random, &[b"bulla sources v1", &log.0, &epoch.to_le_bytes()])
    }

    fn derive(&self, salt: &[u8; 32], information: &[&[u8]]) -> Result<Zeroizing<[u8; 32]>> {
        let mut key = Zeroizing::new([0; 32]);
        Hkdf::<Sha256>::new(Some(salt), &*self.0)
            .expand_multi_info(information, &mut *key)
            .map_err(|_| Error::unavailable("HKDF refused its length"))?;
        Ok(key)
    }

    /// What is kept of the sources of `log`; `None` where there is nothing that could be used.
    ///
    /// # Errors
    /// `Unavailable` where a file is there and cannot be read.
    pub(crate) fn load_state(&self, keys: &dyn Store, log: LogId) -> Result<Option<SourcesSoFar>> {
        let decode = |text: &[u8]| {
            let (frames, rest) = text.split_first_chunk()?;
            let (leaf, table) = rest.split_first_chunk()?;
            let table = Table::decode(table).ok()?;
            Some(SourcesSoFar { frames: u64::from_le_bytes(*frames), leaf: Hash(*leaf), table })
        };
        Ok(self.load_kept(&STATE, keys, log)?.and_then(|text| decode(&text)))
    }

    /// What is kept of what was passed of the sources of `log`; nothing where there is nothing that could be used.
    ///
    /// # Errors
    /// `Unavailable` where a file is there and cannot be read.
    pub(crate) fn load_passed(&self, keys: &dyn Store, log: LogId) -> Result<AllPassed> {
        let text = self.load_kept(&PASSED, keys, log)?;
        Ok(text.and_then(|text| AllPassed::decode(&text).ok()).unwrap_or_default())
    }

    /// Keeps what the first frames of `log` say, atomically and durably.
    ///
    /// # Errors
    /// Where there is no randomness, the cipher refuses, or the store fails.
    pub(crate) fn save_state(
        &self,
        keys: &dyn Store,
        log: LogId,
        state: &SourcesSoFar,
        with: (&dyn Random, &dyn Cipher),
    ) -> Result<()> {
        let mut text = state.frames.to_le_bytes().to_vec();
        text.extend_from_slice(&state.leaf.0);
        state.table.encode(&mut text);
        self.save_kept(&STATE, (keys, log), text, with)
    }

    /// Keeps what was passed of the sources of `log`, atomically and durably.
    ///
    /// # Errors
    /// As [`SourcesKey::save_state`].
    pub(crate) fn save_passed(
        &self,
        keys: &dyn Store,
        log: LogId,
        passed: &AllPassed,
        with: (&dyn Random, &dyn Cipher),
    ) -> Result<()> {
        self.save_kept(&PASSED, (keys, log), passed.encode(), with)
    }

    /// What a file has; `None` where it is not there or none of this log.
    fn load_kept(&self, kept: &Kept, keys: &dyn Store, log: LogId) -> Result<Option<Vec<u8>>> {
        match files::read_if_there(keys, kept.file, MOST) {
            Ok(None) => Ok(None),
            Ok(Some(bytes)) => Ok(self.open_kept(kept, &bytes, log)),
            Err(error) if error.io_error().is_some() => Err(error),
            Err(_) => Ok(None),
        }
    }

    fn open_kept(&self, kept: &Kept, bytes: &[u8], log: LogId) -> Option<Vec<u8>> {
        let (head, text) = bytes.split_at_checked(HEAD)?;
        let random = head.strip_prefix(kept.magic)?.try_into().ok()?;
        let key = self.derive(random, &[kept.information, &log.0]).ok()?;
        let mut text = text.to_vec();
        AesGcm.open(&key, 0, head, &mut text).ok()?;
        Some(text)
    }

    fn save_kept(
        &self,
        kept: &Kept,
        (keys, log): (&dyn Store, LogId),
        mut text: Vec<u8>,
        (random, cipher): (&dyn Random, &dyn Cipher),
    ) -> Result<()> {
        let mut head = [0; HEAD];
        head[..8].copy_from_slice(kept.magic);
        let mut salt = [0; 32];
        random.fill(&mut salt)?;
        head[8..].copy_from_slice(&salt);
        // The key is this file's alone.
        cipher.seal(&*self.derive(&salt, &[kept.information, &log.0])?, 0, &head, &mut text)?;
        files::replace(keys, kept.file, &[&head[..], &text].concat())
    }
}

/// What a block says of sources: `section` are the last bytes of its body, and `key` is that of its epoch.
///
/// Its tag is all that speaks for it, and enough where the commitment is believed: nobody who has no key makes another section for
/// this commitment.
///
/// # Errors
/// `Tampered` where it does not decrypt or is none.
pub(crate) fn open_section(
    key: &[u8; 32],
    commitment: &Commitment,
    section: Vec<u8>,
) -> Result<Vec<SourceEntry>> {
    let frame = commitment.frame;
    read_section(key, commitment, section).map_err(|why| {
        Error::tampered(format!("what frame {frame} says of sources {why}; run `bulla verify`"))
    })
}

/// The same for whoever tells all that is wrong with a log.
///
/// # Errors
/// What is wrong with it, in words that follow "what it says of sources".
pub(crate) fn read_section(
    key: &[u8; 32],
    commitment: &Commitment,
    mut section: Vec<u8>,
) -> std::result::Result<Vec<SourceEntry>, String> {
    AesGcm.open(key, commitment.frame, &commitment.additional_data(), &mut section).map_err(|_| {
        "does not decrypt under the key in `sources.key`: it is damaged, or that is another key".to_owned()
    })?;
    sources::decode(&section).map_err(|error| format!("is malformed: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::sources::{CheckedRange, Ranges, SourceId};
    use bulla_crypto::environment::SystemRandom;
    use bulla_proof::commitment::FrameKind;
    use bulla_proof::hash::HashId;
    use bulla_testkit::Memory;

    const LOG: LogId = LogId([1; 16]);

    fn entry() -> SourceEntry {
        let ranges = Ranges::of(vec![CheckedRange { start: 1, end: 2, check: 3 }]);
        SourceEntry { id: SourceId([4; 16]), label: Some(b"label"[..].into()), ranges }
    }

    fn commitment(sources_length: u32) -> Commitment {
        Commitment {
            kind: FrameKind::Block,
            codec: 1,
            hash: HashId::Sha256,
            content_log2: 4,
            sources_length,
            log_id: LOG,
            frame: 9,
            first_entry: 0,
            entries: 1,
            earliest: 0,
            latest: 0,
            epoch: 7,
            units: 1,
            root: Hash([5; 32]),
            body_length: 1000,
            body_digest: Hash::ZERO,
        }
    }

    /// No storage moves what a block says to another block, another log, another epoch.
    #[test]
    fn a_section_opens_under_its_own_commitment_and_key_alone() {
        let key = SourcesKey::make(&Memory::new(), LOG, &SystemRandom).unwrap();
        let of_epoch = |log, epoch, random| key.of_epoch(log, epoch, &random).unwrap();
        let own = of_epoch(LOG, 7, [6; 32]);
        let text = sources::encode([entry()].iter());
        let sound = commitment(u32::try_from(text.len() + sources::TAG).unwrap());
        let mut section = text;
        AesGcm.seal(&own, sound.frame, &sound.additional_data(), &mut section).unwrap();
        assert_eq!(open_section(&own, &sound, section.clone()).unwrap(), [entry()]);
        // The digest covers the section, and not the other way about.
        let digest = Commitment { body_digest: Hash([8; 32]), ..sound.clone() };
        assert_eq!(open_section(&own, &digest, section.clone()).unwrap(), [entry()]);
        for other in [
            Commitment { frame: 10, ..sound.clone() },
            Commitment { entries: 2, ..sound.clone() },
            Commitment { first_entry: 1, ..sound.clone() },
            Commitment { log_id: LogId([2; 16]), ..sound.clone() },
            Commitment { body_length: 1001, ..sound.clone() },
            Commitment { sources_length: 0, ..sound.clone() },
            Commitment { root: Hash([6; 32]), ..sound.clone() },
        ] {
            let error = open_section(&own, &other, section.clone()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Tampered, "{error}");
        }
        let others =
            [of_epoch(LogId([2; 16]), 7, [6; 32]), of_epoch(LOG, 8, [6; 32]), of_epoch(LOG, 7, [7; 32])];
        assert!(others.iter().all(|other| open_section(other, &sound, section.clone()).is_err()));
    }

    #[test]
    fn what_is_kept_comes_back_to_its_log_alone() {
        let keys = Memory::new();
        let key = SourcesKey::make(&keys, LOG, &SystemRandom).unwrap();
        let mut state = SourcesSoFar { frames: 8, leaf: Hash([9; 32]), table: Table::default() };
        state.table.take(7, entry());
        assert_eq!(key.load_state(&keys, LOG).unwrap(), None);
        key.save_state(&keys, LOG, &state, (&SystemRandom, &AesGcm)).unwrap();
        let loaded = SourcesKey::load(&keys, LOG).unwrap().unwrap();
        assert_eq!(loaded.load_state(&keys, LOG).unwrap(), Some(state));
        assert_eq!(loaded.load_state(&keys, LogId([2; 16])).unwrap(), None);
        let other = SourcesKey::make(&Memory::new(), LOG, &SystemRandom).unwrap();
        assert_eq!(other.load_state(&keys, LOG).unwrap(), None);
    }
}

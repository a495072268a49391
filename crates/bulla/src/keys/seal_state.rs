//! What the writing host keeps of the seal chain.

use crate::format::config::allowed::AllowedConfig;
use crate::keys::files;
use bulla_crypto::group::PartId;
use bulla_crypto::seal_chain::SealChain;
use bulla_proof::commitment::LogId;
use bulla_proof::hash::{Hash, sha256};
use bulla_proof::tree::{self, TreeHead};
use bulla_store::{Error, ErrorKind, Result, Store};
use std::collections::BTreeSet;
use zeroize::Zeroizing;

/// What the writing host keeps of the chain: replaced, durably, before each checkpoint is published.
pub(crate) struct SealState {
    pub(crate) log: LogId,
    /// The digests of `[log]` that the next epoch may have. A configuration that was edited by hand has another one, and is refused.
    pub(crate) terms: AllowedConfig,
    pub(crate) chain: SealChain,
    /// The tree's root over the frames before `chain.next_frame()`.
    pub(crate) root: Hash,
    /// The numbers of data subjects below this one may be in those frames, so a vault that has not given them out is too old.
    pub(crate) subjects: u64,
    /// The number of frames that the vault had followed by then: one that has followed less is older.
    pub(crate) followed: u64,
    /// The number of the frames before `chain.next_frame()` up to the last event of a hold, that one included, or 0: holds that do not go up to there are
    /// not those that the log tells of.
    pub(crate) holds: u64,
    /// The parts of the log that were given up before: a log that tells of another one goes on with another history.
    pub(crate) given_up: BTreeSet<PartId>,
    /// The attempt to give a part up that is not known to be done: what the state speaks of beyond what was left is its own.
    pub(crate) attempt: Option<Attempt>,
}

/// An attempt to give up the newest part of a log, which may be cut short and done again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attempt {
    /// The loss that it gives up, however often it is done again.
    pub(crate) loss: PartId,
    /// The part, by the id that it was given last.
    pub(crate) part: PartId,
}

const MAGIC: &[u8; 8] = b"bullaSS5";
/// What it began with in earlier versions.
const EARLIER: [&[u8; 8]; 4] = [b"bullaSS1", b"bullaSS2", b"bullaSS3", b"bullaSS4"];
/// The longest file that is read, in bytes.
const MOST: u64 = (LENGTH + MOST_PARTS * PART + CHECK) as u64;
/// Without the ids of parts that were given up, in bytes.
const LENGTH: usize = 8 + 16 + 32 + 8 + 32 + 32 + 32 + 32 + 8 + 8 + 8 + 2 * PART;
/// The id of a part, in bytes.
const PART: usize = 16;
/// In the place of the ids of an attempt where there is none.
const NO_ATTEMPT: Attempt = Attempt { loss: PartId([0; PART]), part: PartId([0; PART]) };
/// What it ends with, in bytes.
const CHECK: usize = 32;
/// The most parts of a log that can be given up.
const MOST_PARTS: usize = 1024;

impl SealState {
    /// That of a log without frames.
    pub(crate) fn first(log: LogId, terms: AllowedConfig, chain: SealChain) -> Self {
        let (root, given_up) = (tree::empty_root(), BTreeSet::new());
        SealState { log, terms, chain, root, subjects: 0, followed: 0, holds: 0, given_up, attempt: None }
    }

    /// The tree that it was written for.
    pub(crate) fn head(&self) -> TreeHead {
        TreeHead { size: self.chain.next_frame(), root: self.root }
    }

    /// Writes the state, atomically and durably.
    ///
    /// # Errors
    /// `Refused` where more parts were given up than it has room for; else where the store fails.
    pub(crate) fn save(&self, keys: &dyn Store) -> Result<()> {
        if self.given_up.len() > MOST_PARTS {
            let message = format!(
                "more than {MOST_PARTS} parts of the log were given up: a new log has to go on for it"
            );
            return Err(Error::new(ErrorKind::Refused, message));
        }
        let length = LENGTH + self.given_up.len() * PART + CHECK;
        let mut bytes = Zeroizing::new(Vec::with_capacity(length));
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&self.log.0);
        bytes.extend_from_slice(&self.terms.current.0);
        bytes.extend_from_slice(&*self.chain.encode());
        bytes.extend_from_slice(&self.root.0);
        bytes.extend_from_slice(&self.terms.next.0);
        bytes.extend_from_slice(&self.subjects.to_le_bytes());
        bytes.extend_from_slice(&self.followed.to_le_bytes());
        bytes.extend_from_slice(&self.holds.to_le_bytes());
        let Attempt { loss, part } = self.attempt.unwrap_or(NO_ATTEMPT);
        [loss, part].iter().for_each(|PartId(id)| bytes.extend_from_slice(id));
        self.given_up.iter().for_each(|PartId(id)| bytes.extend_from_slice(id));
        let check = sha256(&[&bytes]);
        bytes.extend_from_slice(&check.0);
        files::replace(keys, files::SEAL_STATE, &bytes)
    }

    /// Reads the state back.
    ///
    /// # Errors
    /// `NoKey` where it is missing, `Unavailable` where it cannot be read or is damaged.
    pub(crate) fn load(keys: &dyn Store) -> Result<Self> {
        let bytes = files::or_missing(keys, files::SEAL_STATE, files::read(keys, files::SEAL_STATE, MOST));
        let bytes = Zeroizing::new(bytes.map_err(|error| match error.kind() {
            ErrorKind::NoKey => Error::new(
                ErrorKind::NoKey,
                format!(
                    "{error}; where there is none, `bulla restore --seal-key` makes it anew from the seal key"
                ),
            ),
            _ => error,
        })?);
        Self::parse(&bytes).map_err(|error| {
            Error::new(error.kind(), format!("{}: {error}", keys.describe(files::SEAL_STATE)))
        })
    }

    /// Reads the state from the bytes of its file.
    ///
    /// # Errors
    /// `Unavailable` where it is damaged: that says nothing of the log.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self> {
        let damaged = || {
            let message = "the seal state is damaged; restore it from a backup, or, where there is none, remove it and have \
                           `bulla restore --seal-key` make it anew from the seal key";
            Error::unavailable(message)
        };
        if bytes.first_chunk().is_some_and(|magic| EARLIER.contains(&magic)) {
            let message = "the seal state is of an earlier version: remove it, and have `bulla restore --seal-key` make it anew from the \
                           seal key";
            return Err(Error::new(ErrorKind::Refused, message));
        }
        let end = bytes.len().checked_sub(CHECK).filter(|end| *end >= LENGTH).ok_or_else(damaged)?;
        let (content, check) = bytes.split_at(end);
        if sha256(&[content]).0 != *check || &content[..8] != MAGIC {
            return Err(damaged());
        }
        let (content, parts) = content.split_at(LENGTH);
        let (parts, []) = parts.as_chunks::<PART>() else { return Err(damaged()) };
        if parts.len() > MOST_PARTS || !parts.is_sorted_by(|one, next| one < next) {
            return Err(damaged());
        }
        let field = |at: usize| -> [u8; 32] { content[at..at + 32].try_into().unwrap_or_default() };
        let number = |at: usize| u64::from_le_bytes(content[at..at + 8].try_into().unwrap_or_default());
        let given_up = parts.iter().map(|id| PartId(*id)).collect::<BTreeSet<_>>();
        let id = |at: usize| PartId(content[at..at + PART].try_into().unwrap_or_default());
        let attempt = Some(Attempt { loss: id(216), part: id(232) }).filter(|attempt| *attempt != NO_ATTEMPT);
        if attempt.is_some_and(|attempt| !given_up.contains(&attempt.part)) {
            return Err(damaged());
        }
        let state = SealState {
            log: LogId(content[8..24].try_into().unwrap_or_default()),
            terms: AllowedConfig { current: Hash(field(24)), next: Hash(field(160)) },
            chain: SealChain::decode(content[56..128].try_into().map_err(|_| damaged())?),
            root: Hash(field(128)),
            subjects: number(192),
            followed: number(200),
            holds: number(208),
            given_up,
            attempt,
        };
        // What the vault has followed was signed, and so was what tells of holds.
        let frames = state.chain.next_frame();
        if state.followed > frames || state.holds > frames { Err(damaged()) } else { Ok(state) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded((followed, holds): (u64, u64), given_up: &[u8], magic: &[u8; 8]) -> Vec<u8> {
        let (keys, chain) = (bulla_testkit::Memory::new(), SealChain::start([7; 32]));
        let terms = AllowedConfig::of(Hash([3; 32]));
        let state =
            SealState { subjects: 5, followed, holds, ..SealState::first(LogId([1; 16]), terms, chain) };
        state.save(&keys).unwrap();
        let mut bytes = files::read(&keys, files::SEAL_STATE, MOST).unwrap();
        bytes[..8].copy_from_slice(magic);
        bytes.truncate(LENGTH);
        bytes.extend_from_slice(given_up);
        let check = sha256(&[&bytes]);
        bytes.extend_from_slice(&check.0);
        bytes
    }

    #[test]
    fn what_counts_frames_counts_no_more_than_there_are() {
        assert_eq!(SealState::parse(&encoded((0, 0), &[], MAGIC)).unwrap().subjects, 5);
        for (followed, holds) in [(1, 0), (0, 1), (u64::MAX, 0), (0, u64::MAX)] {
            let error = SealState::parse(&encoded((followed, holds), &[], MAGIC)).map(drop).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        }
    }

    /// The ids of parts ascend, each once, and there are no more than can be written.
    #[test]
    fn parts_have_one_spelling_and_a_bound() {
        let ids = |count: u16| {
            (0..count).flat_map(|id| [[0; 14].as_slice(), &id.to_be_bytes()].concat()).collect::<Vec<u8>>()
        };
        for count in [0, 1, 2, 1024] {
            let state = SealState::parse(&encoded((0, 0), &ids(count), MAGIC)).unwrap();
            assert_eq!(state.given_up.len(), usize::from(count));
            let keys = bulla_testkit::Memory::new();
            state.save(&keys).unwrap();
            assert_eq!(SealState::load(&keys).unwrap().given_up, state.given_up);
        }
        let twice = [ids(1), ids(1)].concat();
        let descending = [&ids(2)[16..], &ids(1)].concat();
        for wrong in [&twice, &descending, &ids(1025), &ids(2)[1..].to_vec()] {
            let error = SealState::parse(&encoded((0, 0), wrong, MAGIC)).map(drop).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        }
        let mut most = SealState::parse(&encoded((0, 0), &ids(1024), MAGIC)).unwrap();
        most.given_up.insert(PartId([9; 16]));
        assert_eq!(most.save(&bulla_testkit::Memory::new()).unwrap_err().kind(), ErrorKind::Refused);
    }

    #[test]
    fn an_attempt_gives_up_one_of_the_parts() {
        let (keys, id) = (bulla_testkit::Memory::new(), |id| PartId([id; 16]));
        let (chain, given_up) = (SealChain::start([7; 32]), BTreeSet::from([id(1), id(2)]));
        let mut state = SealState::first(LogId([1; 16]), AllowedConfig::of(Hash([3; 32])), chain);
        state.given_up = given_up;
        let of_part = |part| Some(Attempt { loss: id(9), part });
        for attempt in [None, of_part(id(1)), of_part(id(2))] {
            state.attempt = attempt;
            state.save(&keys).unwrap();
            assert_eq!(SealState::load(&keys).unwrap().attempt, attempt);
        }
        state.attempt = of_part(id(3));
        state.save(&keys).unwrap();
        assert_eq!(SealState::load(&keys).map(drop).unwrap_err().kind(), ErrorKind::Unavailable);
    }

    #[test]
    fn one_of_an_earlier_version_is_refused_by_name() {
        for magic in EARLIER {
            let error = SealState::parse(&encoded((0, 0), &[], magic)).map(drop).unwrap_err();
            assert!(
                error.kind() == ErrorKind::Refused && error.to_string().contains("earlier version"),
                "{error}"
            );
        }
        assert_eq!(
            SealState::parse(&encoded((0, 0), &[], b"bullaSSx")).map(drop).unwrap_err().kind(),
            ErrorKind::Unavailable
        );
    }
}

//! The key of a personal group: one set of data subjects in one block.
//!
//! secret = HKDF-Expand(the subjects' keys, "bulla group v1" ‖ log id ‖ epoch's random ‖ frame number ‖ count of
//! subjects ‖ their numbers, 32) (RFC 5869, SHA-256); the key and the commitment to it follow from the secret, as
//! [`bulla_proof::group`] says. All of the subjects' keys are needed for the secret, and it opens that one group: a
//! proof may reveal it, and whoever has it can check the commitment.

use crate::hashing::BulkHmac;
use crate::subject::{Subject, SubjectKey};
use bulla_proof::commitment::LogId;
pub use bulla_proof::group::{GroupKey, GroupSecret};
use bulla_proof::hash::Hash;
use bulla_proof::tree::TreeHead;
use bulla_store::{Error, ErrorKind, Result};
use hkdf::Hkdf;
use sha2::Sha256;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use zeroize::Zeroizing;

/// The block that a group is in.
#[derive(Clone, Copy, Debug)]
pub struct BlockContext<'a> {
    /// The log.
    pub log: LogId,
    /// The random bytes that the block's epoch frame shows.
    pub epoch_random: &'a [u8; 32],
    /// The block's frame.
    pub frame: u64,
}

/// Where the data subjects of a log get their numbers and keys, for whoever writes.
pub trait Subjects: Send + Sync {
    /// The numbers and keys of these subjects, in their order: new ones where they have none. Durable when it returns.
    ///
    /// # Errors
    /// Where a key cannot be made durable; nothing may then be sealed for its subject.
    fn resolve(&self, subjects: &[&str]) -> Result<Vec<Subject>>;

    /// A number above all that were given out so far.
    ///
    /// # Errors
    /// Where that cannot be looked up.
    fn next_number(&self) -> Result<u64>;

    /// Checks that all numbers below `next` were given out.
    ///
    /// # Errors
    /// `Refused` where they were not: this is older than the log.
    fn require_at_least(&self, next: u64) -> Result<()>;

    /// Records that the log is about to sign a checkpoint with this tree head, and that all erasures in its frames were carried out
    /// here. The record is durable when this returns.
    ///
    /// # Errors
    /// Where that cannot be made durable; no checkpoint may then be signed.
    fn signs(&self, _head: TreeHead) -> Result<()> {
        Ok(())
    }

    /// Checks that [`Subjects::signs`] has recorded `frames` frames or more. It is asked when a writer was cut short: no checkpoint
    /// says which numbers were given out for the blocks after those frames.
    ///
    /// # Errors
    /// `Refused` where it was not: this is older than those blocks may be.
    fn require_signed(&self, _frames: u64) -> Result<()> {
        Ok(())
    }
}

/// Where the secrets of groups come from, for whoever reads.
pub trait GroupKeys: Send + Sync {
    /// The number that a data subject has now; `None` where it has none.
    ///
    /// # Errors
    /// Where that cannot be looked up.
    fn number(&self, subject: &str) -> Result<Option<u64>>;

    /// The same of several, in their order. Whoever has to look at everybody, to be sure that nobody is hidden, does so once for
    /// all of them; and also where none is asked for.
    ///
    /// # Errors
    /// As [`GroupKeys::number`].
    fn numbers(&self, subjects: &[&str]) -> Result<Vec<Option<u64>>> {
        subjects.iter().map(|subject| self.number(subject)).collect()
    }

    /// The secrets of groups of one block, each of the subjects with these numbers; `None` where the key of one of them is
    /// not there.
    ///
    /// # Errors
    /// `Erased` while one of them is being erased: until the log says so. Else where that cannot be looked up.
    fn secrets(&self, place: BlockContext<'_>, groups: &[&[u64]]) -> Result<Vec<Option<GroupSecret>>>;

    /// Whether these are the keys of everybody who was not erased. A key that is missing is then lost for good, and not merely
    /// elsewhere.
    fn is_complete(&self) -> bool;

    /// The frames of the log whose erasures were carried out here. Somebody who was erased in a later frame may still have a key
    /// here, which must not be used.
    ///
    /// # Errors
    /// Where that cannot be looked up.
    fn erased_up_to(&self) -> Result<Followed>;

    /// Which numbers, from `from` on, have no key here though groups of the log may have them. A query for a data subject
    /// looks for these groups, since any of them may be what it asks for. Asked where the keys are
    /// [complete](GroupKeys::is_complete); unless it is said here, it is every number, so that a query looks into every group.
    ///
    /// # Errors
    /// Where that cannot be looked up.
    fn missing(&self, from: u64) -> Result<Missing> {
        let _ = from;
        Ok(Missing { numbers: Vec::new(), more: None, given: 0, frames: 0, erasing: Vec::new() })
    }

    /// Of each name, which of the numbers beside it that data subject has; `None` where no names can be told here. So a
    /// verification finds that a group is under the keys of others than it names.
    ///
    /// # Errors
    /// Where that cannot be looked up.
    fn whose(&self, asked: &[(&[u64], &str)]) -> Result<Option<Vec<Whose>>> {
        let _ = asked;
        Ok(None)
    }
}

/// What tells a part of a log that is given up, its newest one, from all others: 16 random bytes, drawn when that is begun. Shown as lowercase
/// hex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartId(pub [u8; 16]);

impl PartId {
    /// Reads 32 lowercase hex digits.
    pub fn parse(text: &str) -> Option<Self> {
        LogId::parse(text).map(|LogId(id)| PartId(id))
    }
}

impl fmt::Display for PartId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        LogId(self.0).fmt(f)
    }
}

/// The first frames of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Followed {
    /// How many.
    pub frames: u64,
    /// The root of the tree over them; `None` where nobody wrote that down.
    pub root: Option<Hash>,
    /// The first of them whose event was passed over, since it was lost with a path: it and those behind it may tell of erasures that were not
    /// carried out. [`Followed::NOWHERE`] where the log has the frames no more that these were in; `None` where none was passed over.
    pub unfollowed: Option<u64>,
    /// The parts of the log that were given up and that these keys take into account: whoever was erased in one has no key here, or nothing is
    /// read under these keys. Where the log tells of another, these are keys from before it was given up, or of that part.
    pub given_up: BTreeSet<PartId>,
}

impl Followed {
    /// None.
    pub const NOTHING: Followed =
        Followed { frames: 0, root: None, unfollowed: None, given_up: BTreeSet::new() };
    /// In the place of a frame, that no frame of the log is that one.
    pub const NOWHERE: u64 = u64::MAX;
}

impl From<TreeHead> for Followed {
    fn from(head: TreeHead) -> Self {
        Followed { frames: head.size, root: Some(head.root), ..Followed::NOTHING }
    }
}

/// Which of some numbers a data subject has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// This one.
    Number(u64),
    /// None: they are other people's.
    Others,
    /// None that is left: the key of one of them is gone, or is being erased.
    Gone,
}

/// Numbers that have no key, those of people who were erased among them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Below `given`, ascending.
    pub numbers: Vec<Range<u64>>,
    /// The number to ask on from, where this is not all of them.
    pub more: Option<u64>,
    /// As many numbers were given here. None from this one on has a key.
    pub given: u64,
    /// The log's frames before this one have no other numbers than these.
    pub frames: u64,
    /// Whose keys are destroyed in an erasure that is not finished: the log may not tell of it yet. They are not among `numbers`.
    pub erasing: Vec<u64>,
}

/// Checks what was found by names: whose key is destroyed in an erasure of which the log does not tell yet is known by no name any
/// more. So where somebody is not found, and `erased` does not say of all these numbers that the log tells of it, nobody can
/// say whether it is one of them.
///
/// # Errors
/// `Erased` where that is so.
pub fn require_told(found: &[Option<u64>], erasing: &[u64], erased: impl Fn(u64) -> bool) -> Result<()> {
    match erasing.iter().find(|number| !erased(**number)) {
        Some(number) if found.contains(&None) => Err(Error::new(
            ErrorKind::Erased,
            format!(
                "data subject {number} is being erased, and the log does not tell of it yet: whether a name that nobody has is \
                 theirs cannot be told until then"
            ),
        )),
        _ => Ok(()),
    }
}

/// Has no key of any data subject: all personal fields are withheld.
#[derive(Clone, Copy, Debug)]
pub struct SharedOnly;

impl GroupKeys for SharedOnly {
    fn number(&self, _: &str) -> Result<Option<u64>> {
        Ok(None)
    }

    fn secrets(&self, _: BlockContext<'_>, groups: &[&[u64]]) -> Result<Vec<Option<GroupSecret>>> {
        Ok(vec![None; groups.len()])
    }

    fn is_complete(&self) -> bool {
        false
    }

    fn erased_up_to(&self) -> Result<Followed> {
        Ok(Followed::NOTHING)
    }
}

impl BlockContext<'_> {
    /// The secret of the group of these subjects, ascending by their numbers, each once.
    ///
    /// # Errors
    /// `Invalid` where there is no subject.
    pub fn secret<'a>(
        self,
        subjects: impl ExactSizeIterator<Item = (u64, &'a SubjectKey)>,
    ) -> Result<GroupSecret> {
        let count = subjects.len();
        let mut keys = Zeroizing::new(Vec::with_capacity(count * 32));
        let mut info = self.info(count);
        for (number, key) in subjects {
            info.extend_from_slice(&number.to_le_bytes());
            keys.extend_from_slice(key.bytes());
        }
        let hkdf =
            Hkdf::<Sha256>::from_prk(&keys).map_err(|_| Error::invalid("a group has no data subject"))?;
        let mut secret = Zeroizing::new([0; GroupSecret::LENGTH]);
        let expanded = hkdf.expand(&info, &mut *secret);
        expanded.map_err(|_| Error::unavailable("HKDF refused its length"))?;
        Ok(GroupSecret::new(*secret))
    }

    /// What follows from the secrets of groups of one data subject each, as [`BlockContext::secret`] and [`GroupSecret::key`], but
    /// side by side.
    pub fn keys_of_singles(self, subjects: &[&Subject]) -> Vec<GroupKey> {
        let hmac = BulkHmac::default();
        let keys = subjects.iter().map(|subject| subject.key.bytes());
        let mut info = self.info(1);
        // The number of the subject, and that of HKDF's block of output.
        info.extend([0; 8]);
        info.push(1);
        let mut messages = info.repeat(subjects.len());
        for (message, subject) in messages.chunks_exact_mut(info.len()).zip(subjects) {
            message[info.len() - 9..info.len() - 1].copy_from_slice(&subject.number.to_le_bytes());
        }
        let secrets = hmac.tags(keys, &messages);
        let keys = hmac.tags(
            secrets.iter().map(|secret| &**secret),
            &[GroupSecret::KEYS, &[1]].concat().repeat(secrets.len()),
        );
        let mut messages =
            Zeroizing::new(Vec::with_capacity(keys.len() * (32 + GroupSecret::KEYS.len() + 1)));
        for key in &keys {
            messages.extend_from_slice(&**key);
            messages.extend_from_slice(GroupSecret::KEYS);
            messages.push(2);
        }
        let commitments = hmac.tags(secrets.iter().map(|secret| &**secret), &messages);
        let commitments = commitments.iter().map(|commitment| Hash(**commitment));
        keys.into_iter().zip(commitments).map(|(key, commitment)| GroupKey { key, commitment }).collect()
    }

    /// With what a secret is derived, up to the numbers of the data subjects, of whom there are so many.
    fn info(self, count: usize) -> Vec<u8> {
        const LABEL: &[u8] = b"bulla group v1";
        let mut info = Vec::with_capacity(LABEL.len() + 16 + 32 + 8 * (2 + count) + 1);
        info.extend_from_slice(LABEL);
        info.extend_from_slice(&self.log.0);
        info.extend_from_slice(self.epoch_random);
        info.extend_from_slice(&self.frame.to_le_bytes());
        info.extend_from_slice(&(count as u64).to_le_bytes());
        info
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The messages are put together here, and by the crate `hkdf` there.
    #[test]
    fn the_keys_of_many_groups_are_those_of_each() {
        let place = BlockContext { log: LogId([7; 16]), epoch_random: &[9; 32], frame: 1 << 40 };
        let subject = |number: u64| Subject { number, key: SubjectKey::from([number.to_le_bytes()[0]; 32]) };
        for count in [0, 1, 6, 7, 50] {
            let subjects = (1..=count).map(|number| subject(number << 20 | number)).collect::<Vec<_>>();
            let keys = place.keys_of_singles(&subjects.iter().collect::<Vec<_>>());
            assert_eq!(keys.len(), subjects.len());
            for (subject, key) in subjects.iter().zip(keys) {
                let expected = place.secret([(subject.number, &subject.key)].into_iter()).unwrap().key();
                assert_eq!((key.key, key.commitment), (expected.key, expected.commitment));
            }
        }
    }
}

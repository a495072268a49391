//! A part of the index, and its bytes.
//!
//! ```text
//! offset  size  field
//!      0     4  "BulI"
//!      4     1  version, 1
//!      5     3  zero
//!      8     8  epoch
//!     16     8  group: the frames are 64 × group to 64 × group + 63
//!     24     8  covered: bit i is set where frame 64 × group + i is covered
//!     32    32  SHA-256 of the covered frames' commitments, one after the other
//!     64    32  random
//!     96     4  length of what follows
//!    100     …  AES-256-GCM of the rest, nonce 0, additional data bytes 0 to 99
//! ```
//!
//! The rest: varint number of tokens; integer column of the first token and the differences between neighbours; integer
//! column of the blocks of each, a bit for each frame of the group; zeros up to the Padmé length.

use super::{GROUP, MAX_TOKENS};
use bulla_columns::{Compression, Fault, IntegerReader, IntegerWriter, padme};
use bulla_crypto::environment::{Cipher, Random};
use bulla_crypto::epoch::EpochKeys;
use bulla_proof::commitment::Commitment;
use bulla_proof::hash::{Hash, Sha256};
use bulla_store::{Error, Result};

const MAGIC: &[u8; 4] = b"BulI";
const VERSION: [u8; 4] = [1, 0, 0, 0];
/// Bytes before the ciphertext.
pub(crate) const HEAD: usize = 100;
/// The most bytes of a ciphertext: two columns of integers that do not compress, and what is around them.
pub(super) const MAX_BODY: u32 = 24 << 20;
const _: () = assert!(MAX_BODY as usize == MAX_TOKENS * 24);

/// What stands before a part's ciphertext.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) epoch: u64,
    pub(crate) group: u64,
    pub(crate) covered: u64,
    digest: Hash,
    random: [u8; 32],
    pub(crate) length: u32,
}

/// Which of a group's blocks have which tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    /// In ascending order.
    pub(crate) tokens: Vec<u64>,
    /// Of each token the blocks that have it.
    pub(crate) blocks: Vec<u64>,
}

impl Head {
    /// Reads what stands before a ciphertext; `None` where it is not that of a part.
    pub(crate) fn parse(bytes: &[u8; HEAD]) -> Option<Self> {
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap_or_default());
        let array = |at: usize| bytes[at..at + 32].try_into().unwrap_or_default();
        let head = Head {
            epoch: word(8),
            group: word(16),
            covered: word(24),
            digest: Hash(array(32)),
            random: array(64),
            length: u32::from_le_bytes(bytes[96..].try_into().unwrap_or_default()),
        };
        let sound = bytes[..4] == *MAGIC && bytes[4..8] == VERSION && head.length <= MAX_BODY;
        (sound && head.group <= u64::MAX / GROUP).then_some(head)
    }

    pub(crate) fn encode(&self) -> [u8; HEAD] {
        let mut bytes = [0; HEAD];
        bytes[..4].copy_from_slice(MAGIC);
        bytes[4..8].copy_from_slice(&VERSION);
        bytes[8..16].copy_from_slice(&self.epoch.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.group.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.covered.to_le_bytes());
        bytes[32..64].copy_from_slice(&self.digest.0);
        bytes[64..96].copy_from_slice(&self.random);
        bytes[96..].copy_from_slice(&self.length.to_le_bytes());
        bytes
    }

    /// Whether the covered frames are of its epoch and have these commitments; `commitment` gives a frame's.
    /// Verification sees an epoch at a time: what it could not compare, a reader must not believe.
    pub(crate) fn is_of<'a>(&self, commitment: impl Fn(u64) -> Option<&'a [u8; Commitment::LENGTH]>) -> bool {
        let frames = (0..GROUP).filter(|bit| self.covered >> bit & 1 == 1);
        let mut hasher = Sha256::new();
        for bit in frames {
            match commitment(self.group * GROUP + bit) {
                Some(commitment) if epoch_of(commitment) == self.epoch => hasher.update(commitment),
                _ => return false,
            }
        }
        hasher.finish() == self.digest
    }
}

/// The epoch that an encoded commitment is of.
fn epoch_of(commitment: &[u8; Commitment::LENGTH]) -> u64 {
    u64::from_le_bytes(commitment[64..72].try_into().unwrap_or_default())
}

impl Part {
    /// The part that says of each covered block, by its bit, which tokens it has.
    pub(crate) fn of<'a>(blocks: impl Iterator<Item = (u64, &'a [u64])>) -> Self {
        let mut pairs = Vec::new();
        for (bit, tokens) in blocks {
            pairs.extend(tokens.iter().map(|&token| (token, 1 << bit)));
        }
        pairs.sort_unstable();
        let mut part = Part::default();
        for (token, block) in pairs {
            match part.blocks.last_mut() {
                Some(blocks) if part.tokens.last() == Some(&token) => *blocks |= block,
                _ => {
                    part.tokens.push(token);
                    part.blocks.push(block);
                }
            }
        }
        part
    }

    /// The blocks that have a token.
    pub(crate) fn having(&self, token: u64) -> u64 {
        self.tokens.binary_search(&token).map_or(0, |at| self.blocks[at])
    }

    /// The tokens of one block.
    pub(crate) fn tokens_of(&self, bit: u64) -> impl Iterator<Item = u64> + '_ {
        let has = move |&(_, &blocks): &(&u64, &u64)| blocks >> bit & 1 == 1;
        self.tokens.iter().zip(&self.blocks).filter(has).map(|(&token, _)| token)
    }

    /// The plaintext.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut differences = Vec::with_capacity(self.tokens.len());
        let mut last = 0;
        for &token in &self.tokens {
            differences.push(token - last);
            last = token;
        }
        let mut writer = IntegerWriter::new(Compression::FAST);
        writer.count(self.tokens.len());
        writer.column(&differences);
        writer.column(&self.blocks);
        let mut plaintext = writer.finish();
        plaintext.resize(padme(plaintext.len()), 0);
        plaintext
    }

    /// Reads a plaintext.
    pub(crate) fn decode(plaintext: &[u8], covered: u64) -> Result<Self, Fault> {
        let mut reader = IntegerReader::new(plaintext);
        let count = reader.count(MAX_TOKENS)?;
        let mut tokens = reader.column(count)?;
        let blocks = reader.column(count)?;
        reader.finish()?;
        let mut last = None::<u64>;
        for token in &mut tokens {
            *token = last.unwrap_or(0).checked_add(*token).ok_or(Fault::Range)?;
            if last.is_some_and(|last| last == *token) {
                return Err(Fault::Range);
            }
            last = Some(*token);
        }
        if blocks.iter().any(|blocks| blocks & !covered != 0 || *blocks == 0) {
            return Err(Fault::Range);
        }
        Ok(Part { tokens, blocks })
    }

    /// The bytes of the part, for the frames of `group` with these commitments, by their bits in ascending order.
    ///
    /// # Errors
    /// Where there is no randomness, or the cipher refuses.
    pub(crate) fn seal(
        &self,
        keys: &EpochKeys,
        group: u64,
        commitments: &[(u64, [u8; Commitment::LENGTH])],
        (random, cipher): (&dyn Random, &dyn Cipher),
    ) -> Result<Vec<u8>> {
        let mut hasher = Sha256::new();
        commitments.iter().for_each(|(_, commitment)| hasher.update(commitment));
        let covered = commitments.iter().fold(0, |covered, (bit, _)| covered | 1 << bit);
        let mut text = self.encode();
        let length = u32::try_from(text.len() + 16).ok().filter(|&length| length <= MAX_BODY);
        let length = length.ok_or_else(|| Error::invalid("a part of the index is too long"))?;
        let digest = hasher.finish();
        let mut head = Head { epoch: keys.number(), group, covered, digest, random: [0; 32], length };
        random.fill(&mut head.random)?;
        let bytes = head.encode();
        // The key is this part's alone.
        cipher.seal(&*keys.index_part(&head.random)?, 0, &bytes, &mut text)?;
        Ok([&bytes[..], &text].concat())
    }

    /// Decrypts a part.
    ///
    /// # Errors
    /// Where it is not one, or another epoch's.
    pub(crate) fn open(
        head: &Head,
        mut text: Vec<u8>,
        keys: &EpochKeys,
        cipher: &dyn Cipher,
    ) -> Result<Self> {
        cipher.open(&*keys.index_part(&head.random)?, 0, &head.encode(), &mut text)?;
        Part::decode(&text, head.covered).map_err(|fault| Error::tampered(fault.to_string()))
    }
}

//! The states of messages that are hashed side by side.

use bulla_proof::hash::Hash;
use sha2::block_api::compress256;
use zeroize::Zeroize;

/// How many messages there are.
pub(super) const LANES: usize = 16;
/// The length of a message's block, in bytes.
pub(super) const BLOCK: usize = 64;

/// The states of all lanes (FIPS 180-4, section 6.2), by word.
#[repr(align(64))]
pub(super) struct States(pub(super) [[u32; LANES]; 8]);

impl Zeroize for States {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

impl States {
    /// H(0) (section 5.3.3), of every lane.
    pub(super) const START: States = States([
        [0x6a09_e667; LANES],
        [0xbb67_ae85; LANES],
        [0x3c6e_f372; LANES],
        [0xa54f_f53a; LANES],
        [0x510e_527f; LANES],
        [0x9b05_688c; LANES],
        [0x1f83_d9ab; LANES],
        [0x5be0_cd19; LANES],
    ]);

    pub(super) fn restart(&mut self, lane: usize) {
        self.0.iter_mut().zip(&States::START.0).for_each(|(word, start)| word[lane] = start[lane]);
    }

    /// Takes blocks into one lane alone.
    pub(super) fn compress_one(&mut self, lane: usize, blocks: &[[u8; BLOCK]]) {
        let mut state = self.0.map(|word| word[lane]);
        compress256(&mut state, blocks);
        self.0.iter_mut().zip(state).for_each(|(word, new)| word[lane] = new);
    }

    pub(super) fn digest(&self, lane: usize) -> Hash {
        let mut digest = [0; Hash::LENGTH];
        let (words, _) = digest.as_chunks_mut();
        words.iter_mut().zip(&self.0).for_each(|(bytes, word)| *bytes = word[lane].to_be_bytes());
        Hash(digest)
    }
}

//! The seal chain: forward-secure MACs over the commitments (after Schneier and Kelsey, 1999).
//!
//! S_0 is random, made at `init`. The MAC key of frame i is HMAC(S_i, "bulla seal v1"); S_{i+1} is
//! HMAC(S_i, "bulla evolve v1"); seal_i is HMAC(MAC key of i, seal_{i-1} ‖ the group's first frame ‖
//! commitment_i), where the seal before frame 0 is zero. All HMAC-SHA-256. Who takes S_i cannot go back to S_{i-1}.

use crate::secret_line;
use bulla_proof::commitment::LogId;
use bulla_store::Result;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// A frame's seal.
pub type Seal = [u8; 32];

/// The chain before frame `next`.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct SealChain {
    state: [u8; 32],
    #[zeroize(skip)]
    next: u64,
    #[zeroize(skip)]
    previous: Seal,
}

impl SealChain {
    /// The length of its encoding, in bytes.
    pub const LENGTH: usize = 8 + 32 + 32;

    /// The chain at its beginning, from S_0.
    pub fn start(state: [u8; 32]) -> Self {
        SealChain { state, next: 0, previous: [0; 32] }
    }

    /// The number of the frame that is sealed next.
    pub fn next_frame(&self) -> u64 {
        self.next
    }

    /// The last frame's seal.
    pub fn previous(&self) -> &Seal {
        &self.previous
    }

    /// Seals the next frame and evolves.
    pub fn seal(&mut self, group: u64, commitment: &[u8]) -> Seal {
        let key = Zeroizing::new(mac(&self.state, &[b"bulla seal v1"]));
        let seal = mac(&key, &[&self.previous, &group.to_le_bytes(), commitment]);
        self.skip(seal);
        seal
    }

    /// The chain as the writing host keeps it: the next frame's number, the state, the last seal.
    pub fn encode(&self) -> Zeroizing<[u8; Self::LENGTH]> {
        let mut bytes = Zeroizing::new([0; Self::LENGTH]);
        bytes[..8].copy_from_slice(&self.next.to_le_bytes());
        bytes[8..40].copy_from_slice(&self.state);
        bytes[40..].copy_from_slice(&self.previous);
        bytes
    }

    /// The chain that was encoded so.
    pub fn decode(bytes: &[u8; Self::LENGTH]) -> Self {
        let part = |at: usize| -> [u8; 32] { bytes[at..at + 32].try_into().expect("32 bytes are 32 bytes") };
        let next = bytes[..8].try_into().expect("8 bytes are 8 bytes");
        SealChain { state: part(8), next: u64::from_le_bytes(next), previous: part(40) }
    }

    /// Takes `seal` for that of the frame before.
    pub fn set_previous(&mut self, seal: Seal) {
        self.previous = seal;
    }

    /// Moves past a frame whose seal is `seal`, without checking it.
    pub fn skip(&mut self, seal: Seal) {
        let next = mac(&self.state, &[b"bulla evolve v1"]);
        self.state.zeroize();
        self.state = next;
        self.next += 1;
        self.previous = seal;
    }
}

fn mac(key: &[u8; 32], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(key).expect("HMAC takes any key");
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

const HEADER: &str = "bulla-seal-key-v1";

/// The text of a seal key file, which holds S_0.
pub fn render_seal_key(log: LogId, state: &[u8; 32]) -> Zeroizing<String> {
    secret_line::render(HEADER, log, state)
}

/// Reads a seal key file of `log`.
///
/// # Errors
/// `Invalid` where it is not one or is damaged, `Refused` where it is another log's.
pub fn parse_seal_key(text: &str, log: LogId) -> Result<SealChain> {
    secret_line::parse("seal key", HEADER, text, log).map(|state| SealChain::start(*state))
}

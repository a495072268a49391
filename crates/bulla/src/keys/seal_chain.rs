//! The seal chain: forward-secure MACs over the commitments (after Schneier and Kelsey, 1999).
//!
//! S_0 is random, made at `init`. The MAC key of frame i is HMAC(S_i, "bulla seal v1"); S_{i+1} is
//! HMAC(S_i, "bulla evolve v1"); seal_i is HMAC(MAC key of i, seal_{i-1} ‖ the group's first frame ‖
//! commitment_i), where the seal before frame 0 is zero. All HMAC-SHA-256. Who takes S_i cannot go back to S_{i-1}.

use crate::config::terms::Terms;
use crate::keys::files;
use bulla_proof::commitment::LogId;
use bulla_proof::hash::{Hash, sha256};
use bulla_store::Store;
use bulla_store::{Error, Result};
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
    /// The chain at its beginning, from S_0.
    pub(crate) fn start(state: [u8; 32]) -> Self {
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

    /// Takes `seal` for that of the frame before.
    pub(crate) fn set_previous(&mut self, seal: Seal) {
        self.previous = seal;
    }

    /// Moves past a frame whose seal is `seal`, without checking it.
    pub(crate) fn skip(&mut self, seal: Seal) {
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

/// What the writing host keeps of the chain: replaced, durably, before each checkpoint is published.
pub(crate) struct SealState {
    pub(crate) log: LogId,
    /// Which `[log]` may follow: an edited configuration is refused.
    pub(crate) terms: Terms,
    pub(crate) chain: SealChain,
    /// The tree's root over the frames before `chain.next_frame()`.
    pub(crate) root: Hash,
    /// The numbers below this one may be in those frames, as numbers of data subjects: a vault has to know them.
    pub(crate) subjects: u64,
}

const MAGIC: &[u8; 8] = b"bullaSS1";
const LENGTH: usize = 8 + 16 + 32 + 8 + 32 + 32 + 32 + 32 + 8;

impl SealState {
    /// Writes the state, atomically and durably.
    ///
    /// # Errors
    /// Where the store fails.
    pub(crate) fn save(&self, keys: &dyn Store) -> Result<()> {
        let mut bytes = Zeroizing::new(Vec::with_capacity(LENGTH + 32));
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&self.log.0);
        bytes.extend_from_slice(&self.terms.current.0);
        bytes.extend_from_slice(&self.chain.next.to_le_bytes());
        bytes.extend_from_slice(&self.chain.state);
        bytes.extend_from_slice(&self.chain.previous);
        bytes.extend_from_slice(&self.root.0);
        bytes.extend_from_slice(&self.terms.next.0);
        bytes.extend_from_slice(&self.subjects.to_le_bytes());
        let check = sha256(&[&bytes]);
        bytes.extend_from_slice(&check.0);
        let written = bulla_store::replace(keys, files::SEAL_STATE, &bytes);
        written.map_err(|error| Error::io(format!("writing {}", keys.describe(files::SEAL_STATE)), error))
    }

    /// Reads the state back.
    ///
    /// # Errors
    /// `Unavailable` where it is missing or cannot be read, `Tampered` where it is damaged.
    pub(crate) fn load(keys: &dyn Store) -> Result<Self> {
        let name = keys.describe(files::SEAL_STATE);
        let bytes = Zeroizing::new(bulla_store::read_small(keys, files::SEAL_STATE, 1024)?);
        let damaged = || Error::tampered(format!("{name} is damaged; restore it from a backup"));
        let (content, check) = bytes.split_at_checked(LENGTH).ok_or_else(damaged)?;
        if sha256(&[content]).0 != *check || &content[..8] != MAGIC {
            return Err(damaged());
        }
        let field = |at: usize| -> [u8; 32] { content[at..at + 32].try_into().unwrap_or_default() };
        Ok(SealState {
            log: LogId(content[8..24].try_into().unwrap_or_default()),
            terms: Terms { current: Hash(field(24)), next: Hash(field(160)) },
            chain: SealChain {
                next: u64::from_le_bytes(content[56..64].try_into().unwrap_or_default()),
                state: field(64),
                previous: field(96),
            },
            root: Hash(field(128)),
            subjects: u64::from_le_bytes(content[192..200].try_into().unwrap_or_default()),
        })
    }
}

/// The text of a seal key file, which holds S_0.
pub(crate) fn render_seal_key(log: LogId, state: &[u8; 32]) -> Zeroizing<String> {
    let state = Zeroizing::new(Hash(*state).to_base64());
    Zeroizing::new(format!("bulla-seal-key-v1 {log} {}\n", state.as_str()))
}

/// Reads a seal key file of `log`.
///
/// # Errors
/// `Invalid` where it is not one, or is another log's.
pub fn parse_seal_key(text: &str, log: LogId) -> Result<SealChain> {
    let mut words = text.split_ascii_whitespace();
    let (Some("bulla-seal-key-v1"), Some(id), Some(state), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(Error::invalid("it is not a seal key (`bulla-seal-key-v1 LOG KEY`)"));
    };
    if LogId::parse(id) != Some(log) {
        return Err(Error::invalid(format!("it is the seal key of another log, {id}")));
    }
    let state =
        Hash::from_base64(state).ok_or_else(|| Error::invalid("its key is not 32 bytes of base64"))?;
    Ok(SealChain::start(state.0))
}

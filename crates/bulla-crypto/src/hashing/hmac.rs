//! HMAC-SHA256 (RFC 2104) of many messages of one length, each under a key of its own.

use super::parallel::Parallel;
use super::states::{BLOCK, LANES, States};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

/// The length of a key and of a tag, in bytes.
const LENGTH: usize = 32;

/// A key, or the tag of a message, which may be a key itself. Overwritten when it is dropped.
pub type Tag = Zeroizing<[u8; LENGTH]>;

/// Makes the tags of many messages: sixteen side by side where the processor has AVX-512, else one after the other.
#[derive(Clone, Copy)]
pub struct BulkHmac {
    parallel: Option<Parallel>,
}

impl Default for BulkHmac {
    fn default() -> Self {
        BulkHmac { parallel: Parallel::detect() }
    }
}

impl BulkHmac {
    #[cfg(test)]
    pub(super) fn with(parallel: Option<Parallel>) -> Self {
        BulkHmac { parallel }
    }

    /// The tag of each message under the key at the same place. `messages` has them one after the other, all of one length.
    pub fn tags<'k>(
        self,
        keys: impl ExactSizeIterator<Item = &'k [u8; LENGTH]>,
        messages: &[u8],
    ) -> Vec<Tag> {
        let mut tags = Vec::with_capacity(keys.len());
        let length = messages.len() / keys.len().max(1);
        let message = |place: usize| &messages[place * length..][..length];
        let mut keys = keys.enumerate();
        loop {
            let mut lanes = [(&[0; LENGTH], &[][..]); LANES];
            let mut count = 0;
            for (lane, (place, key)) in lanes.iter_mut().zip(keys.by_ref()) {
                *lane = (key, message(place));
                count += 1;
            }
            let lanes = &lanes[..count];
            match self.parallel {
                _ if count == 0 => return tags,
                Some(parallel) if count >= super::WORTHWHILE => side_by_side(parallel, lanes, &mut tags),
                _ => tags.extend(lanes.iter().map(|(key, message)| one(key, message))),
            }
        }
    }
}

fn one(key: &[u8; LENGTH], message: &[u8]) -> Tag {
    let mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes any key");
    Zeroizing::new(mac.chain_update(message).finalize().into_bytes().into())
}

/// Appends the tags of up to sixteen messages of one length.
fn side_by_side(parallel: Parallel, lanes: &[(&[u8; LENGTH], &[u8])], tags: &mut Vec<Tag>) {
    // Of lanes without a message nothing is read in the end.
    let mut blocks = Zeroizing::new([[0; BLOCK]; LANES]);
    let mut begin = |pad: u8| {
        let mut states = Zeroizing::new(States::START);
        for (block, (key, _)) in blocks.iter_mut().zip(lanes) {
            *block = [pad; BLOCK];
            block.iter_mut().zip(*key).for_each(|(byte, key)| *byte ^= key);
        }
        parallel.compress(&mut states, &blocks.each_ref());
        states
    };
    let (mut inner, mut outer) = (begin(0x36), begin(0x5c));
    let length = lanes.first().map_or(0, |(_, message)| message.len());
    for start in (0..length + 9).step_by(BLOCK) {
        for (block, (_, message)) in blocks.iter_mut().zip(lanes) {
            pad(message, start, block);
        }
        parallel.compress(&mut inner, &blocks.each_ref());
    }
    for (lane, block) in blocks.iter_mut().enumerate() {
        pad(&inner.digest(lane).0, 0, block);
    }
    parallel.compress(&mut outer, &blocks.each_ref());
    tags.extend((0..lanes.len()).map(|lane| Zeroizing::new(outer.digest(lane).0)));
}

/// The block at `start` of a message and its padding (FIPS 180-4, section 5.1.1), where the message follows a block that is hashed.
fn pad(message: &[u8], start: usize, block: &mut [u8; BLOCK]) {
    let text = message.get(start..).unwrap_or_default();
    let text = &text[..text.len().min(BLOCK)];
    block.fill(0);
    block[..text.len()].copy_from_slice(text);
    if let Some(end) = message.len().checked_sub(start).filter(|end| *end < BLOCK) {
        block[end] = 0x80;
    }
    if message.len() + 9 <= start + BLOCK {
        let bits = (BLOCK + message.len()) as u64 * 8;
        block[BLOCK - 8..].copy_from_slice(&bits.to_be_bytes());
    }
}

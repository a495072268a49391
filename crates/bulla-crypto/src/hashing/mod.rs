//! Hashing in bulk: the units of a block and the tree over them.
//!
//! A block has thousands of messages, none of which waits for another. Where the processor has AVX-512, sixteen go side by side
//! (`parallel`); elsewhere one after the other. The kernel (`compress`) is written once over what its `lanes` can, so that
//! tests run it on every processor.

#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(any(test, target_arch = "x86_64"))]
mod compress;
mod hmac;
#[cfg(any(test, target_arch = "x86_64"))]
mod lanes;
mod parallel;
mod states;
#[cfg(test)]
mod tests;

pub use self::hmac::{BulkHmac, Tag};

use crate::yielding;
use bulla_proof::hash::{Hash, HashId, sha256};
use bulla_proof::tree::Nodes;
use bulla_proof::unit::{BlockNodes, FULL_NODE, LeafCounts, full_node, root_of_top};
use parallel::Parallel;
use states::{BLOCK, LANES, States};
use std::array;
use std::mem::{swap, take};

/// Messages longer than this are hashed by themselves, so that lanes hold little memory.
const LONGEST: usize = 64 << 10;
/// With fewer lanes than this at work, one after the other is as fast.
const WORTHWHILE: usize = 7;

/// Hashes many messages. Holds only memory to be used again.
pub struct BulkHasher {
    /// `None` where the processor cannot, or nobody should know.
    parallel: Option<Parallel>,
    buffers: [Buffers; LANES],
    /// A level of a tree.
    level: Vec<Hash>,
}

impl Default for BulkHasher {
    fn default() -> Self {
        Self::with(Parallel::detect())
    }
}

impl BulkHasher {
    fn with(parallel: Option<Parallel>) -> Self {
        BulkHasher { parallel, buffers: Default::default(), level: Vec::new() }
    }

    /// Appends the digest of each message, in their order. `next` appends the beginning of a message to the empty buffer
    /// that it is given, and returns the rest; `None` where there is none.
    pub fn each<'m>(
        &mut self,
        hash: HashId,
        mut next: impl FnMut(&mut Vec<u8>) -> Option<&'m [u8]>,
        digests: &mut Vec<Hash>,
    ) {
        if let Some(parallel) = self.parallel.filter(|_| hash == HashId::Sha256) {
            return self.side_by_side(parallel, next, digests);
        }
        let beginning = &mut self.buffers[0].beginning;
        beginning.clear();
        while let Some(rest) = next(beginning) {
            digests.push(hash.hash(&[beginning, rest]));
            beginning.clear();
        }
        beginning.shrink_to(LONGEST);
    }

    /// What [`bulla_proof::block_root`] is of `leaves`, of which so many are common items; they are empty afterwards.
    ///
    /// # Panics
    /// When there are fewer than items.
    pub fn block_root(&mut self, hash: HashId, leaves: &mut Vec<Hash>, items: usize) -> Hash {
        let counts = LeafCounts { units: (leaves.len() - items) as u64, items: items as u64 };
        let mut above = take(&mut self.level);
        let one_by_one = BlockNodes(hash);
        while leaves.len() > 1 {
            let (full, last) = leaves.as_chunks();
            above.clear();
            match self.parallel.filter(|_| hash == HashId::Sha256) {
                Some(parallel) => full.chunks(LANES).for_each(|full| {
                    yielding::point();
                    nodes(parallel, full, &mut above);
                }),
                None => above.extend(full.iter().map(|children| one_by_one.node(children))),
            }
            match last {
                [] => {}
                [only] => above.push(*only),
                children => above.push(one_by_one.node(children)),
            }
            swap(leaves, &mut above);
        }
        let top = leaves.pop().unwrap_or_else(|| hash.hash(&[]));
        self.level = above;
        root_of_top(hash, counts, &top)
    }

    /// A lane takes the next message as soon as it is done with one.
    fn side_by_side<'m>(
        &mut self,
        parallel: Parallel,
        mut next: impl FnMut(&mut Vec<u8>) -> Option<&'m [u8]>,
        digests: &mut Vec<Hash>,
    ) {
        let mut lanes = self.buffers.each_mut().map(Lane::new);
        let mut states = States::START;
        let mut more = true;
        loop {
            for (number, lane) in lanes.iter_mut().enumerate() {
                while more && lane.left() == 0 {
                    more = lane.take(&mut next, digests);
                    states.restart(number);
                }
            }
            let busy = || lanes.iter().map(Lane::left).filter(|&left| left > 0);
            if busy().count() < WORTHWHILE {
                break;
            }
            let steps = busy().min().unwrap_or(0);
            for step in 0..steps {
                parallel.compress(&mut states, &array::from_fn(|number| lanes[number].block(step)));
            }
            for (number, lane) in lanes.iter_mut().enumerate() {
                lane.go_on(steps, &states, number, digests);
            }
        }
        for (number, lane) in lanes.iter_mut().enumerate() {
            lane.left_of_parts().for_each(|blocks| states.compress_one(number, blocks));
            lane.go_on(lane.left(), &states, number, digests);
        }
    }
}

/// Appends the nodes above up to sixteen times four children: messages of a byte more than two blocks.
fn nodes(parallel: Parallel, full: &[[Hash; BlockNodes::ARITY]], nodes: &mut Vec<Hash>) {
    if full.len() < WORTHWHILE {
        return nodes.extend(full.iter().map(|children| BlockNodes(HashId::Sha256).node(children)));
    }
    let mut messages = [PADDED_NODE; LANES];
    for (message, children) in messages.iter_mut().zip(full) {
        message.as_flattened_mut()[..FULL_NODE].copy_from_slice(&full_node(children));
    }
    let mut states = States::START;
    for block in 0..PADDED_NODE.len() {
        parallel.compress(&mut states, &messages.each_ref().map(|message| &message[block]));
    }
    nodes.extend((0..full.len()).map(|lane| states.digest(lane)));
}

/// The blocks of a node of four children but for its message: padding, and the length of the message in bits.
const PADDED_NODE: [[u8; BLOCK]; (FULL_NODE + 9).div_ceil(BLOCK)] = {
    let mut blocks = [[0; BLOCK]; _];
    blocks[FULL_NODE / BLOCK][FULL_NODE % BLOCK] = 0x80;
    let [.., high, low] = (FULL_NODE * 8).to_be_bytes();
    let last = blocks.len() - 1;
    [blocks[last][BLOCK - 2], blocks[last][BLOCK - 1]] = [high, low];
    blocks
};

/// What a lane keeps of its message, in whole blocks. Used again.
#[derive(Default)]
struct Buffers {
    beginning: Vec<u8>,
    end: Vec<u8>,
}

/// A message that is being hashed, padded to whole blocks (FIPS 180-4, section 5.1.1).
struct Lane<'b, 'm> {
    buffers: &'b mut Buffers,
    /// What is between beginning and end, where it lies.
    middle: &'m [[u8; BLOCK]],
    /// How many blocks are hashed.
    done: usize,
    /// Where the digest belongs.
    place: usize,
}

impl<'b, 'm> Lane<'b, 'm> {
    /// No message.
    fn new(buffers: &'b mut Buffers) -> Self {
        [&mut buffers.beginning, &mut buffers.end].into_iter().for_each(Vec::clear);
        Lane { buffers, middle: &[], done: 0, place: 0 }
    }

    fn parts(&self) -> [&[[u8; BLOCK]]; 3] {
        [self.buffers.beginning.as_chunks().0, self.middle, self.buffers.end.as_chunks().0]
    }

    /// The blocks that are not done.
    fn left_of_parts(&self) -> impl Iterator<Item = &[[u8; BLOCK]]> {
        let mut done = self.done;
        self.parts().into_iter().map(move |part| {
            let (_, left) = part.split_at(done.min(part.len()));
            done -= part.len() - left.len();
            left
        })
    }

    fn left(&self) -> usize {
        self.parts().map(<[_]>::len).into_iter().sum::<usize>() - self.done
    }

    /// The block so many after those that are done; any where there is none.
    fn block(&self, step: usize) -> &[u8; BLOCK] {
        let [beginning, middle, end] = self.parts();
        let at = self.done + step;
        let behind = at.saturating_sub(beginning.len());
        let block = if at < beginning.len() {
            beginning.get(at)
        } else if behind < middle.len() {
            middle.get(behind)
        } else {
            end.get(behind - middle.len())
        };
        block.unwrap_or(&[0; BLOCK])
    }

    /// Begins with the next message, or hashes it where it is long; false where there is none.
    fn take(
        &mut self,
        next: &mut impl FnMut(&mut Vec<u8>) -> Option<&'m [u8]>,
        digests: &mut Vec<Hash>,
    ) -> bool {
        let Buffers { beginning, end } = &mut *self.buffers;
        (self.middle, self.done, self.place) = (&[], 0, digests.len());
        beginning.clear();
        end.clear();
        let Some(rest) = next(beginning) else {
            beginning.clear();
            return false;
        };
        let length = beginning.len() + rest.len();
        if length > LONGEST {
            digests.push(sha256(&[&take(beginning), rest]));
            return true;
        }
        let missing = beginning.len().next_multiple_of(BLOCK) - beginning.len();
        let (completion, rest) = rest.split_at(missing.min(rest.len()));
        beginning.extend_from_slice(completion);
        let (middle, rest) = rest.as_chunks();
        self.middle = middle;
        let end = if middle.is_empty() { beginning } else { end };
        end.extend_from_slice(rest);
        end.push(0x80);
        end.resize((end.len() + 8).next_multiple_of(BLOCK) - 8, 0);
        end.extend((length as u64 * 8).to_be_bytes());
        digests.push(Hash::ZERO);
        true
    }

    /// So many more blocks are done; after the last, the digest is in its place.
    fn go_on(&mut self, steps: usize, states: &States, number: usize, digests: &mut [Hash]) {
        let left = self.left();
        self.done += steps.min(left);
        if (1..=steps).contains(&left) {
            digests[self.place] = states.digest(number);
        }
    }
}

//! The seals beside the scan: which of them hold, and what the one before may have been.
//!
//! A seal rests on the seal before it. Where that one is damaged, both what is stored and what it should have been
//! count, so that one damaged seal is told once; where the frame before is missing, the next seal cannot be told.
//! A chain that does not begin with the first frame, as the writing host has it, tells nothing of the frames before.

use crate::scan::stored_tree::Encoded;
use bulla_crypto::seal_chain::{Seal, SealChain};

/// See the module.
pub(crate) struct Seals {
    chain: Option<SealChain>,
    /// The number of the next frame.
    next: u64,
    /// What the seal before may have been, the likeliest first; nothing where it is not known.
    previous: Vec<Seal>,
}

impl Seals {
    /// The seals of a log from its beginning, of which a chain tells those from its own on; without one, none is told to be
    /// wrong.
    pub(crate) fn new(chain: Option<SealChain>) -> Self {
        let previous = chain.as_ref().map_or([0; 32], |chain| *chain.previous());
        Seals { chain, next: 0, previous: vec![previous] }
    }

    /// The chain behind the frames that were passed; nothing where it does not reach as far back, or is not known.
    pub(crate) fn chain(&self) -> Option<SealChain> {
        let mut chain = self.chain.clone().filter(|chain| chain.next_frame() == self.next)?;
        chain.set_previous(*self.previous.last()?);
        Some(chain)
    }

    /// Whether the next frame's seal holds for one of `groups`; true where that cannot be told.
    pub(crate) fn check(&mut self, groups: &[u64], encoded: &Encoded, stored: Seal) -> bool {
        self.next += 1;
        let before = |chain: &&mut SealChain| chain.next_frame() < self.next;
        let Some(chain) = self.chain.as_mut().filter(before) else { return true };
        let mut computed = Vec::with_capacity(1);
        let mut evolved = None;
        for previous in &self.previous {
            for &group in groups {
                let mut trial = chain.clone();
                trial.set_previous(*previous);
                computed.push(trial.seal(group, encoded));
                evolved = Some(trial);
            }
        }
        match evolved {
            Some(evolved) => *chain = evolved,
            None => chain.skip(stored),
        }
        let holds = computed.is_empty() || computed.contains(&stored);
        if holds {
            computed.clear();
        }
        computed.truncate(2);
        computed.push(stored);
        self.previous = computed;
        holds
    }

    /// Passes frames of which nothing is known. No log has so many that this takes long, unless none is there.
    pub(crate) fn pass(&mut self, frames: u64) {
        const MOST: u64 = 1 << 20;
        self.next += frames;
        let Some(chain) = &mut self.chain else { return };
        match self.next.saturating_sub(chain.next_frame()) {
            0 => {}
            passed if passed <= MOST => {
                self.previous.clear();
                (0..passed).for_each(|_| chain.skip([0; 32]));
            }
            _ => self.chain = None,
        }
    }
}

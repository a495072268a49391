//! The seals beside the scan: which of them hold, and what the one before may have been.
//!
//! A seal rests on the seal before it. Where that one is damaged, both what is stored and what it should have been
//! count, so that one damaged seal is told once; where the frame before is missing, the next seal cannot be told.

use crate::scan::stored_tree::Encoded;
use bulla_crypto::seal_chain::{Seal, SealChain};

/// See the module.
pub(crate) struct Seals {
    chain: Option<SealChain>,
    /// What the seal before may have been, the likeliest first; nothing where it is not known.
    previous: Vec<Seal>,
}

impl Seals {
    /// The seals of a log from its beginning; without the chain, none is told to be wrong.
    pub(crate) fn new(chain: Option<SealChain>) -> Self {
        Seals { chain, previous: vec![[0; 32]] }
    }

    /// Whether the next frame's seal holds for one of `groups`; true where that cannot be told.
    pub(crate) fn check(&mut self, groups: &[u64], encoded: &Encoded, stored: Seal) -> bool {
        let Some(chain) = &mut self.chain else { return true };
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
        self.previous.clear();
        match &mut self.chain {
            Some(chain) if frames <= MOST => (0..frames).for_each(|_| chain.skip([0; 32])),
            chain => *chain = None,
        }
    }
}

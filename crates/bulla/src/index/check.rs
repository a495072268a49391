//! Verification of the index: does it say what the blocks say?

use super::GROUP;
use super::file::Parts;
use super::part::{Head, Part};
use crate::format::files::{INDEX, index_path};
use crate::scan::finding::{Finding, FindingKind, Findings};
use crate::scan::stored_tree::Encoded;
use bulla_crypto::environment::AesGcm;
use bulla_crypto::epoch::EpochKeys;
use bulla_proof::commitment::Commitment;
use bulla_proof::hash::{Hash, Sha256};
use bulla_store::Store;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a block's tokens come to, so that they need not be kept.
pub(crate) fn digest(tokens: impl Iterator<Item = u64>) -> Hash {
    let mut hasher = Sha256::new();
    tokens.for_each(|token| hasher.update(&token.to_le_bytes()));
    hasher.finish()
}

/// A frame that was verified.
struct Seen {
    commitment: Encoded,
    /// Of a block, what its tokens come to.
    tokens: Option<Hash>,
}

/// The epoch that is being gone through.
struct Epoch {
    keys: Arc<EpochKeys>,
    parts: Parts,
    /// Which of the parts were compared.
    looked_at: Vec<bool>,
}

/// Compares the index with the frames, which it is given in their order.
pub(crate) struct Check<'a> {
    store: &'a dyn Store,
    /// Whether a writer is at work, whose last part may be there by half.
    live: bool,
    epoch: Option<Epoch>,
    group: u64,
    seen: BTreeMap<u64, Seen>,
}

impl<'a> Check<'a> {
    pub(crate) fn new(store: &'a dyn Store, live: bool) -> Self {
        Check { store, live, epoch: None, group: 0, seen: BTreeMap::new() }
    }

    /// Whether there is an index at all.
    pub(crate) fn is_there(&self) -> bool {
        self.store.list(INDEX).is_ok_and(|items| !items.is_empty())
    }

    /// The next frame: its commitment, its epoch's keys, and of a block that was opened what its tokens come to.
    pub(crate) fn add(
        &mut self,
        commitment: &Commitment,
        keys: &Arc<EpochKeys>,
        tokens: Option<Hash>,
        findings: &mut Findings,
    ) {
        let group = commitment.frame / GROUP;
        let same_epoch = self.epoch.as_ref().is_some_and(|epoch| epoch.keys.number() == keys.number());
        if !same_epoch {
            self.finish(findings);
            let parts = Parts::load(self.store, keys.number()).unwrap_or_default();
            let looked_at = vec![false; parts.heads.len()];
            self.epoch = Some(Epoch { keys: keys.clone(), parts, looked_at });
        } else if group != self.group {
            self.finish_group(findings);
        }
        self.group = group;
        self.seen.insert(commitment.frame, Seen { commitment: commitment.encode(), tokens });
    }

    /// All frames were seen.
    pub(crate) fn finish(&mut self, findings: &mut Findings) {
        self.finish_group(findings);
        let Some(epoch) = self.epoch.take() else { return };
        let left = epoch.looked_at.iter().zip(&epoch.parts.heads).filter(|(looked_at, _)| !**looked_at);
        // Of frames that the log has not, or not yet, all there is to see is whether a part is one.
        left.for_each(|(_, (head, offset))| drop(epoch.open(head, *offset, findings)));
        if let Some(damage) = epoch.parts.damage.filter(|damage| !(self.live && damage.torn)) {
            findings.add(damaged(&epoch.keys, damage.offset, "what stands there is no part of the index"));
        }
    }

    /// Compares what was gathered of a group.
    fn finish_group(&mut self, findings: &mut Findings) {
        let seen = std::mem::take(&mut self.seen);
        let Some(epoch) = &mut self.epoch else { return };
        for at in 0..epoch.parts.heads.len() {
            let (head, offset) = &epoch.parts.heads[at];
            if head.group != self.group {
                continue;
            }
            epoch.looked_at[at] = true;
            let part = epoch.open(head, *offset, findings);
            // One that opens and is of other frames is left from a crash that took them.
            let is_of = || head.is_of(|frame| seen.get(&frame).map(|seen| &seen.commitment));
            let Some(part) = part.filter(|_| is_of()) else { continue };
            for (frame, seen) in &seen {
                let bit = frame % GROUP;
                let covers = head.covered >> bit & 1 == 1;
                if covers && seen.tokens.is_some_and(|tokens| tokens != digest(part.tokens_of(bit))) {
                    let detail =
                        format!("{} does not say what the block holds", index_path(epoch.keys.number()));
                    findings.add(Finding::new(FindingKind::IndexMismatch, detail).frame(*frame));
                }
            }
        }
    }
}

impl Epoch {
    fn open(&self, head: &Head, offset: u64, findings: &mut Findings) -> Option<Part> {
        let text = self.parts.read(head, offset).ok();
        let part = text.and_then(|text| Part::open(head, text, &self.keys, &AesGcm).ok());
        if part.is_none() {
            findings.add(damaged(&self.keys, offset, "a part does not open"));
        }
        part
    }
}

fn damaged(keys: &EpochKeys, offset: u64, detail: &str) -> Finding {
    Finding::new(FindingKind::IndexDamaged, detail).at(index_path(keys.number()), offset)
}

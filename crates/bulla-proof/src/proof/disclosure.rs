//! What a proof gives away, frame by frame, and its binary form in the line `extra`.

use super::DISCLOSURE_VERSION;
use super::cursor::{Cursor, MIN_UNIT};
use super::error::{At, FrameProblem, ProofError, UnitProblem};
use super::unit::{DisclosedUnit, push_ascending};
use crate::commitment::{Commitment, FrameKind};
use crate::hash::Hash;
use crate::multiproof::{self, TreeProofError};
use crate::unit::{block_node, root_of_top};
use crate::varint::{self, VarintError};

/// The least that a frame takes.
const MIN_FRAME: usize = Commitment::LENGTH + 1 + MIN_UNIT;

/// The units of one block that are disclosed, and the nodes that prove them in the block's tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisclosedFrame {
    commitment: Commitment,
    units: Vec<DisclosedUnit>,
    nodes: Vec<Hash>,
}

impl DisclosedFrame {
    /// Of the block that `commitment` is of, and that has the unit hashes `all`, discloses `units`, in ascending
    /// order.
    ///
    /// # Errors
    /// Where `units` are none, are not in order, or lie beyond `all`. Whether they are the block's is checked when a
    /// [`Proof`](super::Proof) is made of them.
    pub fn new(
        commitment: Commitment,
        all: &[Hash],
        units: Vec<DisclosedUnit>,
    ) -> Result<Self, TreeProofError> {
        let positions: Vec<u64> = units.iter().map(|unit| unit.position).collect();
        let hash = commitment.hash;
        let nodes = multiproof::prove(all, &positions, |left, right| block_node(hash, left, right))?;
        Ok(DisclosedFrame { commitment, units, nodes })
    }

    /// The frame's commitment.
    pub fn commitment(&self) -> &Commitment {
        &self.commitment
    }

    /// What is disclosed of the block, ascending.
    pub fn units(&self) -> &[DisclosedUnit] {
        &self.units
    }

    /// Checks that the units have the root that the commitment states, the entries times within those that it states, and the
    /// disclosed secrets the commitments that their groups state.
    pub(super) fn verify(&self) -> Result<(), At> {
        let Commitment { hash, units: count, root, .. } = self.commitment;
        let mut scratch = Vec::new();
        let known: Vec<(u64, Hash)> =
            self.units.iter().map(|unit| (unit.position, unit.hash(hash, &mut scratch))).collect();
        let top = multiproof::root(count, &known, &self.nodes, |left, right| block_node(hash, left, right))
            .map_err(FrameProblem::Tree)?;
        if root_of_top(hash, count, &top) != root {
            return Err(FrameProblem::Root.into());
        }
        self.units.iter().enumerate().try_for_each(|(unit, disclosed)| {
            disclosed.verify(&self.commitment).map_err(|problem| At::Unit { unit, problem })
        })
    }

    /// Appends the binary form.
    fn push(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.commitment.encode());
        varint::push(self.units.len() as u64, out);
        let mut next = 0;
        for unit in &self.units {
            push_ascending(unit.position, &mut next, out);
            unit.push(&self.commitment, out);
        }
        self.nodes.iter().for_each(|node| out.extend_from_slice(node.as_bytes()));
    }
}

/// The binary form of all frames.
pub(super) fn encode(frames: &[DisclosedFrame]) -> Vec<u8> {
    let mut out = vec![DISCLOSURE_VERSION];
    frames.iter().for_each(|frame| frame.push(&mut out));
    out
}

/// The binary form, as frames are taken off its front.
pub(super) struct Disclosure<'a> {
    left: Cursor<'a>,
}

impl<'a> Disclosure<'a> {
    pub(super) fn open(bytes: &'a [u8]) -> Result<Self, ProofError> {
        match bytes.split_first() {
            Some((&DISCLOSURE_VERSION, rest)) => Ok(Disclosure { left: Cursor { rest } }),
            Some((&version, _)) => Err(ProofError::Version(version)),
            None => Err(ProofError::NoDisclosure),
        }
    }

    /// Room for as many frames as the bytes can hold.
    pub(super) fn room(&self, several: bool) -> Vec<DisclosedFrame> {
        Vec::with_capacity(if several { self.left.rest.len() / MIN_FRAME } else { 1 })
    }

    /// Takes the frame numbered `number`, which follows `before` in a tree of `size` frames.
    pub(super) fn frame(
        &mut self,
        number: u64,
        before: Option<&DisclosedFrame>,
        size: u64,
    ) -> Result<DisclosedFrame, At> {
        let commitment = self.left.take(Commitment::LENGTH).ok_or(FrameProblem::Truncated)?;
        let commitment = Commitment::decode(commitment).map_err(FrameProblem::Commitment)?;
        let rules = [
            (commitment.frame == number, FrameProblem::Number(commitment.frame)),
            (number < size, FrameProblem::NotInTree { size }),
            (commitment.kind == FrameKind::Block, FrameProblem::Kind(commitment.kind)),
        ];
        first_broken(rules)?;
        if let Some(DisclosedFrame { commitment: before, .. }) = before {
            first_broken([
                (before.frame < number, FrameProblem::Order),
                (before.log_id == commitment.log_id, FrameProblem::OtherLog),
                (before.hash == commitment.hash, FrameProblem::OtherHash),
                (before.first_entry + before.entries <= commitment.first_entry, FrameProblem::Entries),
            ])?;
        }
        let units = self.units(&commitment)?;
        let positions: Vec<u64> = units.iter().map(|unit| unit.position).collect();
        let count = multiproof::count(commitment.units, &positions).map_err(FrameProblem::Tree)?;
        let length = count.checked_mul(Hash::LENGTH).ok_or(FrameProblem::Truncated)?;
        let nodes = self.left.take(length).ok_or(FrameProblem::Truncated)?;
        let (nodes, _) = nodes.as_chunks();
        Ok(DisclosedFrame { commitment, units, nodes: nodes.iter().map(|node| Hash(*node)).collect() })
    }

    /// Checks that nothing is left.
    pub(super) fn close(self) -> Result<(), ProofError> {
        let left = self.left.rest.len();
        if left == 0 { Ok(()) } else { Err(ProofError::LeftOver(left)) }
    }

    fn units(&mut self, commitment: &Commitment) -> Result<Vec<DisclosedUnit>, At> {
        let count = varint::take(&mut self.left.rest).map_err(frame_varint)?;
        if !(1..=commitment.units).contains(&count) {
            return Err(FrameProblem::Units(count).into());
        }
        let count = self.left.room(count, MIN_UNIT).map_err(|_| FrameProblem::Truncated)?;
        let mut units: Vec<DisclosedUnit> = Vec::with_capacity(count);
        for unit in 0..count {
            let next =
                self.left.unit(commitment, units.last()).map_err(|problem| At::Unit { unit, problem })?;
            units.push(next);
        }
        match repeated(&units) {
            Some(unit) => Err(At::Unit { unit, problem: UnitProblem::Repeated }),
            None => Ok(units),
        }
    }
}

/// The first unit that has an entry of one before it: there is none in a block. First entries are known to ascend.
fn repeated(units: &[DisclosedUnit]) -> Option<usize> {
    if units.iter().all(|unit| unit.group().is_none()) {
        return None;
    }
    let numbers = |unit: &DisclosedUnit| unit.entries().len();
    let mut entries = Vec::with_capacity(units.iter().map(numbers).sum());
    for (index, unit) in units.iter().enumerate() {
        entries.extend(unit.entries().iter().map(|entry| (entry.number, index)));
    }
    entries.sort_unstable();
    entries.windows(2).filter(|pair| pair[0].0 == pair[1].0).map(|pair| pair[1].1).min()
}

fn frame_varint(error: VarintError) -> FrameProblem {
    match error {
        VarintError::Truncated => FrameProblem::Truncated,
        VarintError::NotMinimal => FrameProblem::NotMinimal,
    }
}

fn first_broken<const N: usize>(rules: [(bool, FrameProblem); N]) -> Result<(), FrameProblem> {
    rules.into_iter().try_for_each(|(holds, problem)| if holds { Ok(()) } else { Err(problem) })
}

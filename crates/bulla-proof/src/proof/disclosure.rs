//! What a proof gives away, frame by frame, and its binary form in the line `extra`.

use super::DISCLOSURE_VERSION;
use super::cursor::{Cursor, MIN_ITEM, MIN_UNIT};
use super::error::{At, FrameProblem, ProofError, UnitProblem};
use super::unit::{DisclosedItem, DisclosedUnit};
use crate::commitment::{Commitment, FrameKind};
use crate::hash::Hash;
use crate::multiproof::{self, TreeProofError};
use crate::unit::{BlockNodes, LeafCounts, MAX_ITEMS, item_leaf, root_of_top};
use crate::varint::{self, VarintError, push_ascending, push_bytes};

/// The least that a frame takes.
const MIN_FRAME: usize = Commitment::LENGTH + 1 + MIN_UNIT;

/// The units of one block that are disclosed, with the common items that they refer to, and the nodes that prove both in the block's
/// tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisclosedFrame {
    commitment: Commitment,
    units: Vec<DisclosedUnit>,
    /// How many common items the block has.
    item_count: u64,
    items: Vec<DisclosedItem>,
    nodes: Vec<Hash>,
}

impl DisclosedFrame {
    /// Of the block that `commitment` is of, and whose leaves are `all`, its units and behind them its common items, discloses
    /// `units` and `items`, each in ascending order.
    ///
    /// # Errors
    /// Where `units` are none, are not in order, or lie beyond `all`. Whether they are the block's is checked when a
    /// [`Proof`](super::Proof) is made of them.
    pub fn new(
        commitment: Commitment,
        all: &[Hash],
        units: Vec<DisclosedUnit>,
        items: Vec<DisclosedItem>,
    ) -> Result<Self, TreeProofError> {
        let item_count = (all.len() as u64).saturating_sub(commitment.units);
        let mut frame = DisclosedFrame { commitment, units, item_count, items, nodes: Vec::new() };
        frame.nodes = multiproof::prove(all, &frame.positions(), &BlockNodes(frame.commitment.hash))?;
        Ok(frame)
    }

    /// Where what is disclosed stands among the leaves.
    fn positions(&self) -> Vec<u64> {
        let items = self.items.iter().map(|item| self.commitment.units + item.position);
        self.units.iter().map(|unit| unit.position).chain(items).collect()
    }

    fn leaf_counts(&self) -> LeafCounts {
        LeafCounts { units: self.commitment.units, items: self.item_count }
    }

    /// The frame's commitment.
    pub fn commitment(&self) -> &Commitment {
        &self.commitment
    }

    /// What is disclosed of the block, ascending.
    pub fn units(&self) -> &[DisclosedUnit] {
        &self.units
    }

    /// How many common items the block has.
    pub fn item_count(&self) -> u64 {
        self.item_count
    }

    /// Those of them that are disclosed, ascending.
    pub fn items(&self) -> &[DisclosedItem] {
        &self.items
    }

    /// Checks that the units and items have the root that the commitment states, the entries times within those that it states, and the
    /// disclosed secrets the commitments that their groups state.
    pub(super) fn verify(&self) -> Result<(), At> {
        let Commitment { hash, root, first_entry, .. } = self.commitment;
        let mut scratch = Vec::new();
        let units = self.units.iter().map(|unit| unit.hash(hash, first_entry, &mut scratch));
        let items = self.items.iter().map(|item| item_leaf(hash, &item.salt, item.position, &item.bytes));
        let known: Vec<(u64, Hash)> = self.positions().into_iter().zip(units.chain(items)).collect();
        let counts = self.leaf_counts();
        let size = counts.units + counts.items;
        let top =
            multiproof::root(size, &known, &self.nodes, &BlockNodes(hash)).map_err(FrameProblem::Tree)?;
        if root_of_top(hash, counts, &top) != root {
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
        varint::push(self.item_count, out);
        varint::push(self.items.len() as u64, out);
        let mut next = 0;
        for item in &self.items {
            push_ascending(item.position, &mut next, out);
            out.extend_from_slice(&item.salt);
            push_bytes(&item.bytes, out);
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
        let (item_count, items) = self.items(&units)?;
        let mut frame = DisclosedFrame { commitment, units, item_count, items, nodes: Vec::new() };
        let counts = frame.leaf_counts();
        let count = multiproof::count::<BlockNodes>(counts.units + counts.items, &frame.positions());
        let count = count.map_err(FrameProblem::Tree)?;
        let length = count.checked_mul(Hash::LENGTH).ok_or(FrameProblem::Truncated)?;
        let nodes = self.left.take(length).ok_or(FrameProblem::Truncated)?;
        let (nodes, _) = nodes.as_chunks();
        frame.nodes = nodes.iter().map(|node| Hash(*node)).collect();
        Ok(frame)
    }

    /// Takes how many common items the block has, and those that are disclosed with these units.
    fn items(&mut self, units: &[DisclosedUnit]) -> Result<(u64, Vec<DisclosedItem>), At> {
        let count = varint::take(&mut self.left.rest).map_err(frame_varint)?;
        let disclosed = varint::take(&mut self.left.rest).map_err(frame_varint)?;
        let has_secret = units.iter().filter_map(DisclosedUnit::group).any(|group| group.secret.is_some());
        first_broken([
            (count <= MAX_ITEMS as u64, FrameProblem::Items(count)),
            (disclosed <= count && (has_secret || disclosed == 0), FrameProblem::Items(disclosed)),
        ])?;
        let room = self.left.room(disclosed, MIN_ITEM).map_err(|_| FrameProblem::Truncated)?;
        let mut items = Vec::with_capacity(room);
        let mut least = 0;
        for item in 0..room {
            let taken = self.left.item(least, count).map_err(|problem| At::Item { item, problem })?;
            least = taken.position + 1;
            items.push(taken);
        }
        Ok((count, items))
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

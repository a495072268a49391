//! What a proof gives away, frame by frame, and its binary form in the line `extra`.

use super::error::{At, FrameProblem, ProofError, UnitProblem};
use crate::commitment::{Commitment, FrameKind};
use crate::entry::Entry;
use crate::hash::Hash;
use crate::multiproof::{self, TreeProofError};
use crate::unit::{CODEC_ROW, KIND_GROUP, KIND_ROW, SALT_LENGTH, block_node, root_of_top, row_unit};
use crate::varint::{self, VarintError};

/// The version of the binary form.
pub const DISCLOSURE_VERSION: u8 = 1;
/// The least that a unit takes: position, kind, codec, salt, entry, length, and the shortest row.
const MIN_UNIT: usize = 1 + 1 + 1 + SALT_LENGTH + 1 + 1 + 12;
/// The least that a frame takes.
const MIN_FRAME: usize = Commitment::LENGTH + 1 + MIN_UNIT;

/// One entry that is disclosed: everything its unit hashes, and where that stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisclosedUnit {
    /// The unit's position in its block's tree.
    pub position: u64,
    /// The unit's salt.
    pub salt: [u8; SALT_LENGTH],
    /// The entry's number in the log.
    pub entry: u64,
    /// The entry's canonical row.
    pub row: Vec<u8>,
}

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

    /// Checks that the units have the root that the commitment states.
    pub(super) fn verify(&self) -> Result<(), FrameProblem> {
        let Commitment { hash, units: count, root, .. } = self.commitment;
        let unit = |unit: &DisclosedUnit| {
            (unit.position, row_unit(hash, &unit.salt, CODEC_ROW, unit.entry, &unit.row))
        };
        let known: Vec<(u64, Hash)> = self.units.iter().map(unit).collect();
        let top = multiproof::root(count, &known, &self.nodes, |left, right| block_node(hash, left, right))
            .map_err(FrameProblem::Tree)?;
        if root_of_top(hash, count, &top) == root { Ok(()) } else { Err(FrameProblem::Root) }
    }

    /// Appends the binary form. Numbers out of order wrap, and are refused by whoever reads them.
    fn push(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.commitment.encode());
        varint::push(self.units.len() as u64, out);
        let mut next = 0;
        for unit in &self.units {
            varint::push(unit.position.wrapping_sub(next), out);
            next = unit.position.wrapping_add(1);
            out.extend_from_slice(&[KIND_ROW, CODEC_ROW]);
            out.extend_from_slice(&unit.salt);
            varint::push(unit.entry.wrapping_sub(self.commitment.first_entry), out);
            varint::push(unit.row.len() as u64, out);
            out.extend_from_slice(&unit.row);
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
    rest: &'a [u8],
}

impl<'a> Disclosure<'a> {
    pub(super) fn open(bytes: &'a [u8]) -> Result<Self, ProofError> {
        match bytes.split_first() {
            Some((&DISCLOSURE_VERSION, rest)) => Ok(Disclosure { rest }),
            Some((&version, _)) => Err(ProofError::Version(version)),
            None => Err(ProofError::NoDisclosure),
        }
    }

    /// Room for as many frames as the bytes can hold.
    pub(super) fn room(&self, several: bool) -> Vec<DisclosedFrame> {
        Vec::with_capacity(if several { self.rest.len() / MIN_FRAME } else { 1 })
    }

    /// Takes the frame numbered `number`, which follows `before` in a tree of `size` frames.
    pub(super) fn frame(
        &mut self,
        number: u64,
        before: Option<&DisclosedFrame>,
        size: u64,
    ) -> Result<DisclosedFrame, At> {
        let commitment = Commitment::decode(self.bytes(Commitment::LENGTH).ok_or(FrameProblem::Truncated)?)
            .map_err(FrameProblem::Commitment)?;
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
        let nodes = self.bytes(length).ok_or(FrameProblem::Truncated)?;
        let (nodes, _) = nodes.as_chunks();
        Ok(DisclosedFrame { commitment, units, nodes: nodes.iter().map(|node| Hash(*node)).collect() })
    }

    /// Checks that nothing is left.
    pub(super) fn close(self) -> Result<(), ProofError> {
        if self.rest.is_empty() { Ok(()) } else { Err(ProofError::LeftOver(self.rest.len())) }
    }

    fn units(&mut self, commitment: &Commitment) -> Result<Vec<DisclosedUnit>, At> {
        let count = varint::take(&mut self.rest).map_err(frame_varint)?;
        if !(1..=commitment.units).contains(&count) {
            return Err(FrameProblem::Units(count).into());
        }
        let count = usize::try_from(count).ok().filter(|&count| count <= self.rest.len() / MIN_UNIT);
        let count = count.ok_or(FrameProblem::Truncated)?;
        let mut units: Vec<DisclosedUnit> = Vec::with_capacity(count);
        for unit in 0..count {
            let next = self.unit(commitment, units.last()).map_err(|problem| At::Unit { unit, problem })?;
            units.push(next);
        }
        Ok(units)
    }

    fn unit(
        &mut self,
        commitment: &Commitment,
        before: Option<&DisclosedUnit>,
    ) -> Result<DisclosedUnit, UnitProblem> {
        let distance = self.varint()?;
        let position = before.map_or(0, |before| before.position + 1).checked_add(distance);
        let position = position.filter(|&position| position < commitment.units);
        let position = position.ok_or(UnitProblem::Position)?;
        match self.bytes(2) {
            Some(&[KIND_ROW, CODEC_ROW]) => {}
            Some(&[KIND_ROW, codec]) => return Err(UnitProblem::Codec(codec)),
            Some(&[KIND_GROUP, _]) => return Err(UnitProblem::Group),
            Some(&[kind, _]) => return Err(UnitProblem::Kind(kind)),
            _ => return Err(UnitProblem::Truncated),
        }
        let salt = self.bytes(SALT_LENGTH).and_then(|salt| salt.try_into().ok());
        let salt = salt.ok_or(UnitProblem::Truncated)?;
        let offset = self.varint()?;
        if offset >= commitment.entries {
            return Err(UnitProblem::Entry);
        }
        // A commitment's entries do not run past the last number.
        let entry = commitment.first_entry + offset;
        if before.is_some_and(|before| before.entry >= entry) {
            return Err(UnitProblem::Order);
        }
        let length = usize::try_from(self.varint()?).map_err(|_| UnitProblem::Truncated)?;
        let row = self.bytes(length).ok_or(UnitProblem::Truncated)?;
        Entry::decode(row).map_err(UnitProblem::Row)?;
        Ok(DisclosedUnit { position, salt, entry, row: row.to_vec() })
    }

    fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(bytes)
    }

    fn varint(&mut self) -> Result<u64, UnitProblem> {
        varint::take(&mut self.rest).map_err(|error| match error {
            VarintError::Truncated => UnitProblem::Truncated,
            VarintError::NotMinimal => UnitProblem::NotMinimal,
        })
    }
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

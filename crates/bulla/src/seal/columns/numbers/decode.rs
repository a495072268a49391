//! Reads columns of integers. No more values are made, at any depth, than the column has, and of runs and
//! dictionaries no more than half as many: all that nests in a column takes room for two more of it at most.

use super::super::bitpack::unpack;
use super::super::blob::BlobDecoder;
use super::super::error::Fault;
use super::super::input::Input;
use super::{BYTES, CHUNK, CONSTANT, DELTA, DEPTH, DICTIONARY, PACKED, RUNS, unzigzag};

/// Reads columns of integers. Holds only memory to be used again.
#[derive(Default)]
pub(in super::super) struct NumberDecoder {
    spare: Vec<Vec<u64>>,
    planes: Vec<u8>,
}

impl NumberDecoder {
    /// Reads a column of `count` values, replacing `out`.
    pub(in super::super) fn decode(
        &mut self,
        input: &mut Input<'_>,
        count: usize,
        blobs: &mut BlobDecoder,
        out: &mut Vec<u64>,
    ) -> Result<(), Fault> {
        self.column(input, count, 0, blobs, out)
    }

    /// How much memory is held, in bytes.
    #[cfg(test)]
    pub(in super::super) fn footprint(&self) -> usize {
        self.spare.iter().map(Vec::capacity).sum::<usize>() * 8 + self.planes.capacity()
    }

    fn column(
        &mut self,
        input: &mut Input<'_>,
        count: usize,
        depth: u32,
        blobs: &mut BlobDecoder,
        out: &mut Vec<u64>,
    ) -> Result<(), Fault> {
        out.clear();
        if count == 0 {
            return Ok(());
        }
        let form = input.byte()?;
        if depth == DEPTH && matches!(form, DELTA | RUNS | DICTIONARY) {
            return Err(Fault::Form);
        }
        match form {
            CONSTANT => out.resize(count, input.varint()?),
            PACKED => read_packed(input, count, out)?,
            DELTA => {
                let first = input.varint()?;
                self.column(input, count - 1, depth + 1, blobs, out)?;
                let mut value = first;
                for slot in out.iter_mut() {
                    let difference = unzigzag(*slot);
                    *slot = value;
                    value = value.wrapping_add(difference);
                }
                out.push(value);
            }
            RUNS => {
                let runs = input.count(1, (count / 2).max(1))?;
                let mut heads = self.spare.pop().unwrap_or_default();
                let mut lengths = self.spare.pop().unwrap_or_default();
                self.column(input, runs, depth + 1, blobs, &mut heads)?;
                self.column(input, runs, depth + 1, blobs, &mut lengths)?;
                join_runs(&heads, &lengths, count, out)?;
                self.spare.push(lengths);
                self.spare.push(heads);
            }
            DICTIONARY => {
                let size = input.count(1, (count / 2).max(1))?;
                let mut distinct = self.spare.pop().unwrap_or_default();
                self.column(input, size, depth + 1, blobs, &mut distinct)?;
                self.column(input, count, depth + 1, blobs, out)?;
                for slot in out.iter_mut() {
                    let value = usize::try_from(*slot).ok().and_then(|index| distinct.get(index));
                    *slot = *value.ok_or(Fault::Range)?;
                }
                self.spare.push(distinct);
            }
            BYTES => {
                let (base, scale) = (input.varint()?, input.varint()?);
                let width = usize::from(input.byte()?);
                if !(1..=8).contains(&width) {
                    return Err(Fault::Form);
                }
                self.planes.clear();
                self.planes.resize(count * width, 0);
                blobs.decode(input, &mut self.planes)?;
                out.resize(count, 0);
                for plane in self.planes.chunks_exact(count).rev() {
                    out.iter_mut()
                        .zip(plane)
                        .for_each(|(value, &byte)| *value = *value << 8 | u64::from(byte));
                }
                out.iter_mut().for_each(|value| *value = base.wrapping_add(scale.wrapping_mul(*value)));
            }
            _ => return Err(Fault::Form),
        }
        Ok(())
    }
}

fn read_packed(input: &mut Input<'_>, count: usize, out: &mut Vec<u64>) -> Result<(), Fault> {
    let (base, scale) = (input.varint()?, input.varint()?);
    out.resize(count, 0);
    for chunk in out.chunks_mut(CHUNK) {
        let offset = input.varint()?;
        let width = u32::from(input.byte()?);
        unpack(input, width, base.wrapping_add(scale.wrapping_mul(offset)), scale, chunk)?;
    }
    Ok(())
}

fn join_runs(heads: &[u64], lengths: &[u64], count: usize, out: &mut Vec<u64>) -> Result<(), Fault> {
    for (&head, &length) in heads.iter().zip(lengths) {
        let length = usize::try_from(length).map_err(|_| Fault::Range)?;
        if length >= count - out.len() {
            return Err(Fault::Range);
        }
        out.resize(out.len() + length + 1, head);
    }
    if out.len() == count { Ok(()) } else { Err(Fault::Range) }
}

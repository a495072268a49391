//! Reads columns of integers within bounded memory. A nested column has at most as many values as the one around it; those that
//! hold runs or distinct values have at most half as many. All nested columns together therefore take at most as much memory
//! as the outermost one, and vectors are made for exactly the values that the caller has paid for.

use super::super::bitpack::unpack;
use super::super::blob::BlobDecoder;
use super::super::error::Fault;
use super::super::input::Input;
use super::{BYTES, CHUNK, CONSTANT, DELTA, DEPTH, DICTIONARY, PACKED, RUNS, unzigzag};

/// Reads columns of integers. Holds only memory to be used again.
#[derive(Default)]
pub(crate) struct NumberDecoder {
    spare: Vec<Vec<u64>>,
    planes: Vec<u8>,
    /// How many bytes of each value form 5 may have.
    widest: usize,
}

/// The most bytes of a value that is [narrow](NumberDecoder::decode_narrow).
const NARROW: usize = 4;

impl NumberDecoder {
    /// Reads a column of `count` values, replacing `out`.
    pub(crate) fn decode(
        &mut self,
        input: &mut Input<'_>,
        count: usize,
        blobs: &mut BlobDecoder,
        out: &mut Vec<u64>,
    ) -> Result<(), Fault> {
        self.widest = 8;
        self.column(input, count, 0, blobs, out)
    }

    /// Reads a column of lengths or of indexes of strings, replacing `out`. There can be many more of these than rows; but they,
    /// and the differences between them, take fewer bytes than other integers can, and a column that claims more is refused.
    pub(crate) fn decode_narrow(
        &mut self,
        input: &mut Input<'_>,
        count: usize,
        blobs: &mut BlobDecoder,
        out: &mut Vec<u64>,
    ) -> Result<(), Fault> {
        self.widest = NARROW;
        self.column(input, count, 0, blobs, out)
    }

    /// How much memory is held, in bytes.
    #[cfg(test)]
    pub(crate) fn footprint(&self) -> usize {
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
        out.reserve_exact(count);
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
                self.column(input, runs, depth + 1, blobs, out)?;
                let mut lengths = self.spare.pop().unwrap_or_default();
                self.column(input, runs, depth + 1, blobs, &mut lengths)?;
                spread_runs(&lengths, count, out)?;
                self.spare.push(lengths);
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
                if !(1..=self.widest).contains(&width) {
                    return Err(Fault::Form);
                }
                self.planes.clear();
                self.planes.reserve_exact(count * width);
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

/// Spreads the values of runs, which stand at the start of `out`, to `count` values in the same memory. It goes from the last run
/// to the first: a run begins at or behind the place of its value, so no value is overwritten before it is read.
fn spread_runs(lengths: &[u64], count: usize, out: &mut Vec<u64>) -> Result<(), Fault> {
    let mut left = (count - lengths.len()) as u64;
    for &length in lengths {
        left = left.checked_sub(length).ok_or(Fault::Range)?;
    }
    if left > 0 {
        return Err(Fault::Range);
    }
    out.resize(count, 0);
    let mut end = count;
    for (run, &length) in lengths.iter().enumerate().rev() {
        // The lengths were checked above to add up to `count`, the length of a vector.
        let start = end - usize::try_from(length).map_err(|_| Fault::Range)? - 1;
        let value = out[run];
        out[start..end].fill(value);
        end = start;
    }
    Ok(())
}

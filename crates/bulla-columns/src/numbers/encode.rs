//! Chooses a column's form and writes it. The choice depends on the values alone.

use super::super::bitpack::{pack, width_of};
use super::super::blob::BlobEncoder;
use super::super::table::{MAX_DISTINCT, Table, hash_number, is_hopeless};
use super::survey::{Survey, compresses, delta_looks_smaller};
use super::{BYTES, CHUNK, CONSTANT, DELTA, DEPTH, DICTIONARY, PACKED, RUNS, zigzag};
use bulla_proof::varint;

/// A column shorter than this, in bytes, is not worth a compressor's attention.
const COMPRESSIBLE: usize = 64;
/// How many values stand for a column when the compressor's gain is estimated.
const SAMPLE: usize = 1024;

/// Writes columns of integers. Holds only memory to be used again.
#[derive(Default)]
pub(crate) struct NumberEncoder {
    table: Table,
    spare: Vec<Vec<u64>>,
    planes: Vec<u8>,
}

/// Which forms may be tried: none that nests columns below [`DEPTH`], and no dictionary for the indexes of a dictionary.
#[derive(Clone, Copy)]
struct Allowed {
    depth: u32,
    dictionary: bool,
}

impl NumberEncoder {
    /// Appends a column of `values`.
    pub(crate) fn encode(&mut self, values: &[u64], blobs: &mut BlobEncoder, out: &mut Vec<u8>) {
        self.column(values, Allowed { depth: 0, dictionary: true }, blobs, out);
    }

    /// Appends a column of indexes of distinct values, in which every index below their count occurs.
    pub(crate) fn encode_indexes(&mut self, indexes: &[u64], blobs: &mut BlobEncoder, out: &mut Vec<u8>) {
        self.column(indexes, Allowed { depth: 0, dictionary: false }, blobs, out);
    }

    fn column(&mut self, values: &[u64], allowed: Allowed, blobs: &mut BlobEncoder, out: &mut Vec<u8>) {
        if values.is_empty() {
            return;
        }
        let survey = Survey::of(values);
        if survey.least == survey.most {
            out.push(CONSTANT);
            varint::push(survey.least, out);
            return;
        }
        let start = out.len();
        let nested = Allowed { depth: allowed.depth + 1, dictionary: true };
        let mut first = self.spare.pop().unwrap_or_default();
        let mut second = self.spare.pop().unwrap_or_default();
        let form = self.choose(values, &survey, allowed, &mut first, &mut second);
        match form {
            DELTA => {
                out.push(DELTA);
                varint::push(values[0], out);
                self.column(&first, nested, blobs, out);
            }
            RUNS => {
                cut_into_runs(values, &mut first, &mut second);
                out.push(RUNS);
                varint::push(first.len() as u64, out);
                self.column(&first, nested, blobs, out);
                self.column(&second, nested, blobs, out);
            }
            DICTIONARY => {
                out.push(DICTIONARY);
                varint::push(first.len() as u64, out);
                self.column(&first, Allowed { dictionary: false, ..nested }, blobs, out);
                self.column(&second, Allowed { dictionary: false, ..nested }, blobs, out);
            }
            _ => write_packed(values, &survey, out),
        }
        if matches!(form, PACKED | RUNS) {
            self.compress_instead(values, &survey, start, blobs, out);
        }
        self.spare.push(second);
        self.spare.push(first);
    }

    /// The cheapest form, without trying a compressor. For a delta it leaves the differences in `first`; for a dictionary the
    /// distinct values in `first` and their indexes in `second`.
    fn choose(
        &mut self,
        values: &[u64],
        survey: &Survey,
        allowed: Allowed,
        first: &mut Vec<u64>,
        second: &mut Vec<u64>,
    ) -> u8 {
        if allowed.depth == DEPTH {
            return PACKED;
        }
        let mut best = (survey.packed, PACKED);
        if survey.runs <= values.len() / 2 {
            best = best.min((survey.runs_cost(values.len()), RUNS));
        }
        let delta_cost = if delta_looks_smaller(values, survey.least) {
            first.clear();
            first.extend(values.windows(2).map(|pair| zigzag(pair[0], pair[1])));
            let cost = Survey::of(first).cost(first.len());
            1 + varint::length(values[0]) + cost
        } else {
            usize::MAX
        };
        best = best.min((delta_cost, DELTA));
        // A dictionary's indexes take a bit or more each, and finding out takes time.
        if allowed.dictionary && best.0 > values.len() / 4 + 32 {
            let mut distinct = self.spare.pop().unwrap_or_default();
            if self.number(values, survey.width(), &mut distinct, second) {
                best = best.min((survey.dictionary_cost(values.len(), distinct.len()), DICTIONARY));
            }
            if best.1 == DICTIONARY {
                std::mem::swap(first, &mut distinct);
            }
            self.spare.push(distinct);
        }
        best.1
    }

    /// Numbers the distinct values. Gives up where that cannot be smaller than `width` bits a value.
    fn number(
        &mut self,
        values: &[u64],
        width: u32,
        distinct: &mut Vec<u64>,
        indexes: &mut Vec<u64>,
    ) -> bool {
        let limit = (values.len() / 2).min(MAX_DISTINCT).min(1 << (width.clamp(1, 18) - 1));
        self.table.clear();
        distinct.clear();
        indexes.clear();
        for &value in values {
            let Some(index) = self.table.number(hash_number(value), |index| distinct[index] == value) else {
                return false;
            };
            if index == distinct.len() {
                distinct.push(value);
            }
            indexes.push(index as u64);
            if distinct.len() > limit || is_hopeless(indexes.len(), distinct.len()) {
                return false;
            }
        }
        true
    }

    /// Replaces the form written from `start` on by the compressed one where that is smaller.
    fn compress_instead(
        &mut self,
        values: &[u64],
        survey: &Survey,
        start: usize,
        blobs: &mut BlobEncoder,
        out: &mut Vec<u8>,
    ) {
        let written = out.len() - start;
        if !blobs.compresses() || written < COMPRESSIBLE {
            return;
        }
        let reduced = |value: &u64| survey.scale.divide(value - survey.least);
        let width = survey.width().div_ceil(8) as usize;
        let from = values.len().saturating_sub(SAMPLE) / 2;
        let sample = values[from..].iter().take(SAMPLE).map(reduced);
        if !compresses(sample, width, (written * 8 / values.len()) as u64) {
            return;
        }
        self.planes.clear();
        self.planes.resize(values.len() * width, 0);
        for (index, value) in values.iter().map(reduced).enumerate() {
            for (plane, byte) in value.to_le_bytes().into_iter().take(width).enumerate() {
                self.planes[plane * values.len() + index] = byte;
            }
        }
        let end = out.len();
        out.push(BYTES);
        varint::push(survey.least, out);
        varint::push(survey.scale.factor(), out);
        out.push(u8::try_from(width).unwrap_or(8));
        blobs.encode(&self.planes, out);
        if out.len() - end + written / 32 < written {
            out.drain(start..end);
        } else {
            out.truncate(end);
        }
    }
}

fn write_packed(values: &[u64], survey: &Survey, out: &mut Vec<u8>) {
    out.push(PACKED);
    varint::push(survey.least, out);
    varint::push(survey.scale.factor(), out);
    for (chunk, &(low, high)) in values.chunks(CHUNK).zip(&survey.chunks) {
        let width = width_of(survey.scale.divide(high - low));
        varint::push(survey.scale.divide(low - survey.least), out);
        out.push(u8::try_from(width).unwrap_or(64));
        pack(chunk.iter().map(|value| survey.scale.divide(value - low)), width, out);
    }
}

fn cut_into_runs(values: &[u64], heads: &mut Vec<u64>, lengths: &mut Vec<u64>) {
    heads.clear();
    lengths.clear();
    for run in values.chunk_by(|a, b| a == b) {
        heads.push(run[0]);
        lengths.push(run.len() as u64 - 1);
    }
}

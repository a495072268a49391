//! Chooses whether strings are written in templates, and writes them.

use super::super::super::blob::BlobEncoder;
use super::super::super::numbers::NumberEncoder;
use super::super::plain::Texts;
use super::super::{PLAIN, TEMPLATES};
use super::kind::Kind;
use super::split::Split;
use bulla_proof::varint;

/// Fewer strings than this have too little in common to be worth templates.
const FEWEST: usize = 64;
/// Strings that are longer than this on average are left to compressors.
const LONGEST: usize = 1024;
/// On a sample of so many strings templates are compared with a compressor.
const SAMPLE: usize = 256;
/// On a sample of so many words of a column it is estimated whether it has many different ones.
const DISTINCT: usize = 512;

/// Writes strings in templates. Holds only memory to be used again.
#[derive(Default)]
pub(crate) struct Templates {
    split: Split,
    /// For each word that was met, one more than its number in the dictionary; 0 for a word that is spelled.
    numbers: Vec<u32>,
    values: Vec<u64>,
    texts: Texts,
}

impl Templates {
    /// Appends a column of `strings`, with its form, where templates make it at least a tenth smaller than plain, and says whether it
    /// did. A sample from the middle is written both ways first; where the sample is all of the strings, the better of the two is
    /// what is appended.
    pub(crate) fn encode(
        &mut self,
        strings: &[&[u8]],
        numbers: &mut NumberEncoder,
        blobs: &mut BlobEncoder,
        out: &mut Vec<u8>,
    ) -> bool {
        let total: usize = strings.iter().map(|string| string.len()).sum();
        if strings.len() < FEWEST || total > strings.len() * LONGEST {
            return false;
        }
        let sample = &strings[strings.len().saturating_sub(SAMPLE) / 2..];
        let sample = &sample[..sample.len().min(SAMPLE)];
        let sampled: usize = sample.iter().map(|string| string.len()).sum();
        if sampled > sample.len() * LONGEST {
            return false;
        }
        let start = out.len();
        let Some(dictionary) = self.encode_all(sample, numbers, blobs, out) else { return false };
        let end = out.len();
        out.push(PLAIN);
        self.plain(sample, numbers, blobs, out);
        let plain = (out.len() - end) as u64;
        let pays = |length: usize, plain: u64| (length as u64) < plain - plain / 10;
        let pay = pays(end - start, plain);
        if sample.len() == strings.len() {
            let worse = if pay { end..out.len() } else { start..end };
            out.drain(worse);
            blobs.account.dictionaries += if pay { dictionary } else { 0 };
            return true;
        }
        out.truncate(start);
        if !pay {
            return false;
        }
        let length = self.encode_all(strings, numbers, blobs, out);
        if self.split.is_large() {
            *self = Templates::default();
        }
        // The sample promised this, but the other strings may be different.
        if length.is_none() || !pays(out.len() - start, plain * total as u64 / sampled.max(1) as u64) {
            out.truncate(start);
            return false;
        }
        blobs.account.dictionaries += length.unwrap_or_default();
        true
    }

    /// Appends a column of `strings`, and returns how many bytes of it are shapes and dictionary. `None`, with nothing appended, where
    /// the strings cannot be split well.
    pub(super) fn encode_all(
        &mut self,
        strings: &[&[u8]],
        numbers: &mut NumberEncoder,
        blobs: &mut BlobEncoder,
        out: &mut Vec<u8>,
    ) -> Option<usize> {
        let total = strings.iter().map(|string| string.len()).sum();
        self.split.split(strings, total).then(|| self.write(numbers, blobs, out))
    }

    fn plain(
        &mut self,
        strings: &[&[u8]],
        numbers: &mut NumberEncoder,
        blobs: &mut BlobEncoder,
        out: &mut Vec<u8>,
    ) {
        self.texts.clear();
        strings.iter().for_each(|string| self.texts.push(string));
        self.texts.write(numbers, blobs, out);
    }

    /// Appends what was split, and returns how many bytes of it are shapes and dictionary.
    fn write(&mut self, numbers: &mut NumberEncoder, blobs: &mut BlobEncoder, out: &mut Vec<u8>) -> usize {
        let start = out.len();
        let shapes = &self.split.shapes;
        out.push(TEMPLATES);
        varint::push(shapes.kinds().len() as u64, out);
        out.extend(shapes.kinds());
        varint::push(shapes.lengths.len() as u64, out);
        numbers.encode(&shapes.lengths, blobs, out);
        blobs.encode(&shapes.text, out);
        let mut dictionary = out.len() - start;
        numbers.encode_indexes(&self.split.indexes, blobs, out);
        let start = out.len();
        self.number_words();
        varint::push(self.texts.lengths.len() as u64, out);
        self.texts.write(numbers, blobs, out);
        dictionary += out.len() - start;
        self.write_columns(numbers, blobs, out);
        dictionary
    }

    /// Numbers the words that occur more than once: these make the dictionary, and are collected in `texts`.
    fn number_words(&mut self) {
        let Templates { split, numbers, texts, .. } = self;
        texts.clear();
        numbers.clear();
        for (word, &count) in split.words.occurrences.iter().enumerate() {
            if count > 1 {
                texts.push(split.words.known(word));
            }
            let number = if count > 1 { texts.lengths.len() } else { 0 };
            numbers.push(u32::try_from(number).expect("a dictionary is smaller than its table"));
        }
    }

    /// Appends the columns, then the words that are spelled.
    fn write_columns(&mut self, numbers: &mut NumberEncoder, blobs: &mut BlobEncoder, out: &mut Vec<u8>) {
        let Templates { split, numbers: known, values, texts } = self;
        texts.clear();
        for (kind, column) in split.shapes.kinds().zip(&split.columns) {
            if kind != Kind::Word.byte() {
                numbers.encode(&column.values, blobs, out);
                continue;
            }
            values.clear();
            for &value in &column.values {
                let (word, number) = split.words.get(value);
                let number = number.map_or(0, |number| known[number]);
                if number == 0 {
                    texts.push(word);
                }
                values.push(u64::from(number));
            }
            if !blobs.is_patient() && are_many(values) {
                numbers.encode_indexes(values, blobs, out);
            } else {
                numbers.encode(values, blobs, out);
            }
        }
        texts.write(numbers, blobs, out);
    }
}

/// Whether so many words of a sample from the middle are different that a dictionary of their numbers is not worth trying.
fn are_many(values: &[u64]) -> bool {
    let from = values.len().saturating_sub(DISTINCT) / 2;
    let mut met = [false; 8 * DISTINCT];
    let sample = values[from..].iter().take(DISTINCT);
    let different = sample.filter(|&&value| {
        let place = usize::try_from(value % (8 * DISTINCT) as u64).unwrap_or(0);
        !std::mem::replace(&mut met[place], true)
    });
    different.count() > DISTINCT / 2
}

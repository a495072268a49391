//! Byte strings through a general codec: `tag | bytes`, the length being known from elsewhere.
//!
//! | tag | codec | bytes |
//! |---|---|---|
//! | 0 | raw | as they are |
//! | 1 | LZ4 block | varint length, then that many bytes |
//! | 2 | one zstd frame | varint length, then that many bytes |
//! | 3 | one zstd frame with [`TABLES`], without its magic number | varint length, not above what it holds, then that many bytes |
//!
//! An empty string takes no bytes at all, not even a tag. A string of up to [`SMALL`] bytes is compressed with the tables, one
//! of up to [`SAMPLE`] bytes with zstd. For a longer one a sample of that length from its middle is compressed first, and
//! decides: it stays raw unless zstd saves 3 %, and up to level [`LZ4_LEVELS`] LZ4 is taken in place of zstd where it is at
//! most 8 % larger.

use super::Compression;
use super::error::Fault;
use super::input::Input;
use crate::account::{Account, Task};
use bulla_proof::varint;
use lz4_flex::block::{CompressTable, compress_into_with_table, decompress_into, get_maximum_output_size};
use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::{CParameter, compress_bound, find_frame_compressed_size};

pub(super) const RAW: u8 = 0;
pub(super) const LZ4: u8 = 1;
pub(super) const ZSTD: u8 = 2;
pub(super) const TABLED: u8 = 3;

const SMALLEST: usize = 64;
/// A blob of up to this length is too short for zstd to fit entropy tables to it: fixed ones do as well, and take no space.
const SMALL: usize = 1024;
const SAMPLE: usize = 8 * 1024;
const LZ4_LEVELS: i32 = 3;
/// A zstd dictionary of entropy tables, and of eight zeros.
const TABLES: &[u8] = include_bytes!("tables.zdict");
/// How every zstd frame begins. Frames with the tables are stored without it, since they are short and it would show.
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

pub(super) struct BlobEncoder {
    level: i32,
    /// `None` at level 0, and where zstd has no memory.
    zstd: Option<Compressor<'static>>,
    tabled: Option<Compressor<'static>>,
    /// One table for each size class: what LZ4 makes of a blob must not depend on the blobs before it.
    small: CompressTable,
    large: CompressTable,
    /// What each codec made last.
    lz4_made: Vec<u8>,
    zstd_made: Vec<u8>,
    pub(super) account: Account,
}

impl BlobEncoder {
    pub(super) fn new(compression: Compression) -> Self {
        let zstd = |dictionary| {
            let mut zstd = Compressor::with_dictionary(compression.level(), dictionary).ok()?;
            // The frame needs no checksum, since the block is authenticated; no length, since the column says it; and no
            // dictionary id, since there is only one.
            for parameter in [
                CParameter::ChecksumFlag(false),
                CParameter::ContentSizeFlag(false),
                CParameter::DictIdFlag(false),
            ] {
                zstd.set_parameter(parameter).ok()?;
            }
            Some(zstd)
        };
        let compresses = compression.level() > 0;
        BlobEncoder {
            level: compression.level(),
            zstd: compresses.then(|| zstd(&[])).flatten(),
            tabled: compresses.then(|| zstd(TABLES)).flatten(),
            small: CompressTable::small(),
            large: CompressTable::large(),
            lz4_made: Vec::new(),
            zstd_made: Vec::new(),
            account: Account::default(),
        }
    }

    /// Whether size counts for more than time.
    pub(super) fn is_patient(&self) -> bool {
        self.level > LZ4_LEVELS
    }

    /// Whether blobs are compressed at all.
    pub(super) fn compresses(&self) -> bool {
        self.zstd.is_some()
    }

    /// Appends `blob`.
    pub(super) fn encode(&mut self, blob: &[u8], out: &mut Vec<u8>) {
        if blob.is_empty() {
            return;
        }
        if self.zstd.is_none() || blob.len() < SMALLEST {
            out.push(RAW);
            return out.extend_from_slice(blob);
        }
        let before = self.account.turn_to(Some(Task::Compress));
        self.encode_smaller(blob, out);
        self.account.turn_to(before);
    }

    /// Appends a blob in which hardly anything occurs twice. Where speed counts, no codec is tried on it.
    pub(super) fn store(&mut self, blob: &[u8], out: &mut Vec<u8>) {
        if self.is_patient() {
            return self.encode(blob, out);
        }
        if !blob.is_empty() {
            out.push(RAW);
            out.extend_from_slice(blob);
        }
    }

    fn encode_smaller(&mut self, blob: &[u8], out: &mut Vec<u8>) {
        let tag = if blob.len() <= SMALL {
            TABLED
        } else if blob.len() <= SAMPLE {
            ZSTD
        } else {
            self.choose(blob)
        };
        let saves = |stored: usize| stored + stored / 32 < blob.len();
        if tag != RAW && self.compress(tag, blob).is_some_and(saves) {
            let made = self.made(tag);
            out.push(tag);
            varint::push(made.len() as u64, out);
            out.extend_from_slice(made);
        } else {
            out.push(RAW);
            out.extend_from_slice(blob);
        }
    }

    /// The codec that does best on a sample from the middle.
    fn choose(&mut self, blob: &[u8]) -> u8 {
        let start = (blob.len() - SAMPLE) / 2;
        let sample = &blob[start..start + SAMPLE];
        let Some(zstd) = self.compress(ZSTD, sample) else { return RAW };
        if zstd + zstd / 32 >= sample.len() {
            return RAW;
        }
        let stands_in = |lz4: usize| lz4 <= zstd + zstd * 8 / 100;
        if self.level <= LZ4_LEVELS && self.compress(LZ4, sample).is_some_and(stands_in) { LZ4 } else { ZSTD }
    }

    fn made(&self, tag: u8) -> &[u8] {
        match tag {
            LZ4 => &self.lz4_made,
            TABLED => &self.zstd_made[MAGIC.len()..],
            _ => &self.zstd_made,
        }
    }

    /// Compresses; the length, or `None` when it cannot.
    fn compress(&mut self, tag: u8, bytes: &[u8]) -> Option<usize> {
        if tag == LZ4 {
            self.lz4_made.resize(get_maximum_output_size(bytes.len()), 0);
            let table = if bytes.len() < usize::from(u16::MAX) { &mut self.small } else { &mut self.large };
            let length = compress_into_with_table(bytes, &mut self.lz4_made, table).ok()?;
            self.lz4_made.truncate(length);
        } else {
            let zstd = if tag == TABLED { &mut self.tabled } else { &mut self.zstd };
            self.zstd_made.resize(compress_bound(bytes.len()), 0);
            let length = zstd.as_mut()?.compress_to_buffer(bytes, self.zstd_made.as_mut_slice()).ok()?;
            self.zstd_made.truncate(length);
        }
        Some(self.made(tag).len())
    }
}

#[derive(Default)]
pub(super) struct BlobDecoder {
    zstd: Option<Decompressor<'static>>,
    tabled: Option<Decompressor<'static>>,
    /// A frame that was stored without its magic number, with it. A frame that is longer than what it holds is refused, so that
    /// this copy, too, is paid for from the content limit.
    frame: Vec<u8>,
}

impl BlobDecoder {
    /// Reads a blob that is exactly as long as `target`.
    pub(super) fn decode(&mut self, input: &mut Input<'_>, target: &mut [u8]) -> Result<(), Fault> {
        if target.is_empty() {
            return Ok(());
        }
        let length = match input.byte()? {
            RAW => {
                target.copy_from_slice(input.bytes(target.len())?);
                return Ok(());
            }
            LZ4 => {
                let stored = Self::stored(input, usize::MAX)?;
                decompress_into(stored, target).map_err(|_| Fault::Codec)?
            }
            ZSTD => decompress(&mut self.zstd, &[], Self::stored(input, usize::MAX)?, target)?,
            TABLED => {
                self.frame.clear();
                self.frame.extend_from_slice(&MAGIC);
                self.frame.extend_from_slice(Self::stored(input, target.len())?);
                decompress(&mut self.tabled, TABLES, &self.frame, target)?
            }
            _ => return Err(Fault::Form),
        };
        if length == target.len() { Ok(()) } else { Err(Fault::Codec) }
    }

    fn stored<'a>(input: &mut Input<'a>, most: usize) -> Result<&'a [u8], Fault> {
        let length = input.count(1, most)?;
        input.bytes(length)
    }
}

/// Decompresses exactly one frame; the length.
fn decompress(
    zstd: &mut Option<Decompressor<'static>>,
    dictionary: &[u8],
    frame: &[u8],
    target: &mut [u8],
) -> Result<usize, Fault> {
    if find_frame_compressed_size(frame) != Ok(frame.len()) {
        return Err(Fault::Codec);
    }
    if zstd.is_none() {
        *zstd = Decompressor::with_dictionary(dictionary).ok();
    }
    let zstd = zstd.as_mut().ok_or(Fault::Codec)?;
    zstd.decompress_to_buffer(frame, target).map_err(|_| Fault::Codec)
}

//! Byte strings through a general codec: `tag | bytes`, the length being known from elsewhere.
//!
//! | tag | codec | bytes |
//! |---|---|---|
//! | 0 | raw | as they are |
//! | 2 | one zstd frame | varint length, not above what it holds, then that many bytes |
//! | 3 | one zstd frame with [`TABLES`], without its magic number | the same |
//!
//! Tag 1 was another codec's before version 1 was frozen, and is given to no other.
//!
//! An empty string takes no bytes at all, not even a tag. A string of up to [`SMALL`] bytes is compressed with the tables, a
//! longer one with zstd alone. It stays raw unless that saves 3 %; of one that is longer than [`SAMPLE`] bytes, as many from its
//! middle are compressed first, and it also stays raw where they do not save as much.

use super::Compression;
use super::error::Fault;
use super::input::Input;
use crate::account::{Account, Task};
use bulla_proof::varint;
use zstd::bulk::Compressor;
use zstd::zstd_safe::{CParameter, DCtx, InBuffer, OutBuffer, ResetDirective, compress_bound};

pub(super) const RAW: u8 = 0;
pub(super) const ZSTD: u8 = 2;
pub(super) const TABLED: u8 = 3;

const SMALLEST: usize = 64;
/// A blob of up to this length is too short for zstd to fit entropy tables to it: fixed ones do as well, and take no space.
const SMALL: usize = 1024;
const SAMPLE: usize = 8 * 1024;
/// Up to this level time counts for more than size.
const HASTY_LEVELS: i32 = 3;
/// A zstd dictionary of entropy tables, and of eight zeros.
const TABLES: &[u8; TABLES_LENGTH + ZEROS] = include_bytes!("tables.zdict");
const TABLES_LENGTH: usize = 155;
const ZEROS: usize = 8;
/// The same with as many other bytes between the tables and the zeros as the tables have, of a value that they have not got.
const APART: [u8; TABLES_LENGTH * 2 + ZEROS] = apart();
/// How every zstd frame begins. Frames with the tables are stored without it, since they are short and it would show.
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// What follows it: that the frame states no length of its content, and has no checksum and no dictionary's number.
const DESCRIPTOR: u8 = 0;
/// And then the size of its window, of which this is the least there is.
const SMALLEST_WINDOW: usize = 1024;
/// No block of a frame holds more, nor more than its window (RFC 8878, Block_Maximum_Size).
const LARGEST_BLOCK: usize = 128 * 1024;
/// The binary logarithm of a window that has room for the content of any block of a log.
const LARGEST_WINDOW_LOG: u32 = 25;

pub(super) struct BlobEncoder {
    level: i32,
    /// `None` at level 0, and where zstd has no memory.
    zstd: Option<Compressor<'static>>,
    tabled: Option<Compressor<'static>>,
    /// What was compressed last.
    made: Vec<u8>,
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
            // Of that zstd takes as much as the content needs.
            zstd.set_parameter(CParameter::WindowLog(LARGEST_WINDOW_LOG)).ok()?;
            Some(zstd)
        };
        let compresses = compression.level() > 0;
        BlobEncoder {
            level: compression.level(),
            zstd: compresses.then(|| zstd(&[])).flatten(),
            tabled: compresses.then(|| zstd(TABLES)).flatten(),
            made: Vec::new(),
            account: Account::default(),
        }
    }

    /// Whether size counts for more than time.
    pub(super) fn is_patient(&self) -> bool {
        self.level > HASTY_LEVELS
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
        let tag = if blob.len() <= SMALL { TABLED } else { ZSTD };
        let middle = &blob[blob.len().saturating_sub(SAMPLE) / 2..][..blob.len().min(SAMPLE)];
        let promises = middle.len() == blob.len() || self.compress(tag, middle).is_some();
        match promises.then(|| self.compress(tag, blob)).flatten() {
            Some(made) => {
                out.push(tag);
                varint::push(made.len() as u64, out);
                out.extend_from_slice(made);
            }
            None => {
                out.push(RAW);
                out.extend_from_slice(blob);
            }
        }
    }

    /// The bytes compressed, unless that fails, or saves too little.
    fn compress(&mut self, tag: u8, bytes: &[u8]) -> Option<&[u8]> {
        let (zstd, left_out) = match tag {
            TABLED => (&mut self.tabled, MAGIC.len()),
            _ => (&mut self.zstd, 0),
        };
        self.made.resize(compress_bound(bytes.len()), 0);
        let length = zstd.as_mut()?.compress_to_buffer(bytes, self.made.as_mut_slice()).ok()?;
        let made = &self.made[left_out..length];
        (made.len() + made.len() / 32 < bytes.len()).then_some(made)
    }
}

const fn apart() -> [u8; TABLES_LENGTH * 2 + ZEROS] {
    const OTHER: u8 = 0xff;
    let mut apart = [0; TABLES_LENGTH * 2 + ZEROS];
    let mut at = 0;
    while at < TABLES_LENGTH {
        assert!(TABLES[at] != OTHER);
        apart[at] = TABLES[at];
        apart[TABLES_LENGTH + at] = OTHER;
        at += 1;
    }
    apart
}

#[derive(Default)]
pub(super) struct BlobDecoder {
    zstd: Option<DCtx<'static>>,
    tabled: Option<DCtx<'static>>,
    apart: Option<DCtx<'static>>,
    /// A frame that was stored without its magic number, with it. This copy, too, is paid for from the content limit, since
    /// no frame is longer than what it holds.
    frame: Vec<u8>,
    /// What that holds, once more.
    again: Vec<u8>,
}

impl BlobDecoder {
    /// Reads a blob that is exactly as long as `target`.
    pub(super) fn decode(&mut self, input: &mut Input<'_>, target: &mut [u8]) -> Result<(), Fault> {
        if target.is_empty() {
            return Ok(());
        }
        match input.byte()? {
            RAW => target.copy_from_slice(input.bytes(target.len())?),
            ZSTD => decompress(&mut self.zstd, &[], stored(input, target.len())?, target)?,
            TABLED => {
                self.frame.clear();
                self.frame.extend_from_slice(&MAGIC);
                self.frame.extend_from_slice(stored(input, target.len())?);
                decompress(&mut self.tabled, TABLES, &self.frame, target)?;
                // A frame may copy the dictionary's zeros, and nothing that is before them. zstd, which keeps a dictionary as a whole,
                // does copy what is there: its tables, or what `APART` has in their place.
                self.again.resize(target.len(), 0);
                decompress(&mut self.apart, &APART, &self.frame, &mut self.again)?;
                if self.again != *target {
                    return Err(Fault::Codec);
                }
            }
            _ => return Err(Fault::Form),
        }
        Ok(())
    }
}

/// Compressed bytes, and how many: no more than what they hold.
fn stored<'a>(input: &mut Input<'a>, most: usize) -> Result<&'a [u8], Fault> {
    let length = input.count(1, most)?;
    input.bytes(length)
}

/// Decompresses exactly one frame, which has to fill `target`. Up to one block's length, the window that it asks for is not allocated:
/// what it reaches back to is in `target`. What is longer zstd decompresses piece by piece, as it looks then alone at how long a block comes
/// out.
fn decompress(
    zstd: &mut Option<DCtx<'static>>,
    dictionary: &[u8],
    frame: &[u8],
    target: &mut [u8],
) -> Result<(), Fault> {
    let window = window_of(target.len());
    let head = [DESCRIPTOR, window_descriptor(window)];
    let blocks = frame.strip_prefix(&MAGIC).and_then(|rest| rest.strip_prefix(&head));
    if !blocks.is_some_and(|blocks| are_blocks(blocks, window.min(LARGEST_BLOCK))) {
        return Err(Fault::Codec);
    }
    if zstd.is_none() {
        *zstd = decompressor(dictionary);
    }
    let filled = zstd.as_mut().and_then(|zstd| fill(zstd, frame, target));
    if filled == Some(target.len()) { Ok(()) } else { Err(Fault::Codec) }
}

/// `None` where zstd has no memory.
fn decompressor(dictionary: &[u8]) -> Option<DCtx<'static>> {
    let mut zstd = DCtx::try_create()?;
    zstd.load_dictionary(dictionary).ok()?;
    Some(zstd)
}

/// How many bytes the frame has filled, unless it is none, or has more.
fn fill(zstd: &mut DCtx<'static>, frame: &[u8], target: &mut [u8]) -> Option<usize> {
    if target.len() <= LARGEST_BLOCK {
        return zstd.decompress(target, frame).ok();
    }
    zstd.reset(ResetDirective::SessionOnly).ok()?;
    let (mut input, mut output) = (InBuffer::around(frame), OutBuffer::around(target));
    let left = zstd.decompress_stream(&mut output, &mut input).ok()?;
    (left == 0).then(|| output.pos())
}

/// The only window that a frame may have whose content is so long: the least that has room for all of it. What reached further
/// back some decoders would refuse, and others take, or find other bytes there.
fn window_of(length: usize) -> usize {
    length.next_power_of_two().max(SMALLEST_WINDOW)
}

/// How RFC 8878 writes a window whose size is a power of two.
fn window_descriptor(window: usize) -> u8 {
    u8::try_from((window / SMALLEST_WINDOW).ilog2() << 3).unwrap_or(u8::MAX)
}

/// Whether these are blocks of zstd up to a last one, which ends them, and each is as long as one may be: decoders differ in which
/// others they take.
fn are_blocks(mut rest: &[u8], longest: usize) -> bool {
    const RAW: u32 = 0;
    const RUN: u32 = 1;
    const COMPRESSED: u32 = 2;
    while let Some((&[a, b, c], body)) = rest.split_first_chunk() {
        let head = u32::from_le_bytes([a, b, c, 0]);
        let (kind, length) = (head >> 1 & 3, (head >> 3) as usize);
        let stored = match kind {
            RAW => length,
            RUN => 1,
            COMPRESSED if length > 0 => length,
            _ => return false,
        };
        let Some(after) = body.get(stored..).filter(|_| length <= longest) else { return false };
        if head & 1 == 1 {
            return after.is_empty();
        }
        rest = after;
    }
    false
}

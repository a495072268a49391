//! Which of the encodings in `docs/format-columns.md` the blocks of a log have, told from their bytes by that document
//! alone; and entries that reach every one of them.

use super::image::Image;
use super::layout::{BLOCK, EPOCH, Frame, HEAD, Layout, SEAL};
use crate::register::ByName;
use bulla::environment::{AesGcm, Cipher, apply_key_stream};
use bulla::keys::group::{BlockContext, GroupKeys};
use bulla::{Entry, Producer};
use bulla_proof::commitment::LogId;
use bulla_proof::hash::sha256;
use hkdf::Hkdf;
use sha2::Sha256;
use std::collections::BTreeSet;

/// What a tag is of, and the tag.
pub(crate) type Encoding = (&'static str, u8);

const PRESENCE: &str = "presence";
const INTEGERS: &str = "integers";
const STRINGS: &str = "strings";
const BLOB: &str = "blob";
/// How a group is written, and which common items a block has.
pub(crate) const GROUP: &str = "group";
pub(crate) const ITEMS: &str = "items";
const RECORDS: u8 = 1;

/// A codec that no blob has.
const RESERVED: Encoding = (BLOB, 1);

/// All that there are.
pub(crate) fn every() -> BTreeSet<Encoding> {
    let kinds = [(PRESENCE, 2), (INTEGERS, 5), (STRINGS, 4), (BLOB, 3)];
    let tags = kinds.into_iter().flat_map(|(kind, last)| (0..=last).map(move |tag| (kind, tag)));
    tags.filter(|&tag| tag != RESERVED).collect()
}

/// As many of these entries in one block reach every encoding, in about two thousand bytes.
pub(crate) const ENTRIES: u64 = 128;

/// An entry whose fields go through as many columns as there are encodings.
pub(crate) fn append(producer: &mut Producer, number: u64) {
    let noise = sha256(&[b"noise", &number.to_le_bytes()]).0;
    let subject = format!("subject {}", noise[0] % 12);
    // Lengths and bytes of what differs each time: text, for zstd, in a group for its tables.
    let location = format!("{subject}/folder/{number}/{}", "x".repeat(usize::from(noise[1] % 4)));
    // One long run: zstd.
    let run = "x".repeat(1200);
    // A text of two words.
    let words = (0..64).map(|at| if noise[at / 8] >> (at % 8) & 1 == 0 { "the" } else { "data" });
    let words = words.collect::<Vec<_>>().join(" ");
    // Of one shape, and never the same: templates.
    let stream =
        format!("order/{number}/{:02x}{:02x}{:02x}{:02x}", noise[10], noise[11], noise[12], noise[13]);
    let mut entry = Entry::new("read", &location).subject(&subject).processor("shop").stream(&stream);
    // A few wide values in no order: a dictionary.
    entry = entry.status([200, 404, 1 << 30][usize::from(noise[2] % 3)]);
    // Few changes: runs.
    entry = entry.duration([90_001, 5, 1 << 40, 77][(number / 40 % 4) as usize]);
    // Short and even: packed.
    entry = entry.size(u64::from(noise[3] % 8));
    // All over the lower byte, hardly ever anything in the upper one: bytes.
    let flags = u32::from(noise[4]) + if number.is_multiple_of(16) { 60_000 } else { 0 };
    entry = entry.flags(flags);
    if number.is_multiple_of(3) {
        entry = entry.client("192.0.2.7");
    }
    if number.is_multiple_of(ENTRIES) {
        entry = entry.actor(&words).client(&run);
    }
    producer.append(&entry).unwrap();
}

/// The encodings in the blocks of a log whose epoch keys are wrapped by [`super::world::Mask`], and those in the groups
/// of data subjects whose keys are [`ByName`]'s.
pub(crate) fn reached(image: &Image, layout: &Layout) -> (BTreeSet<Encoding>, BTreeSet<Encoding>) {
    let (mut reached, mut in_groups) = (BTreeSet::new(), BTreeSet::new());
    for block in layout.counted().filter(|frame| frame.kind == BLOCK) {
        let (plaintext, place) = decrypted(image, layout, block);
        let mut columns = Columns { rest: &plaintext, reached };
        let groups = columns.block(block.entries);
        in_groups.extend(columns.reached.iter().filter(|encoding| encoding.0 == ITEMS));
        assert!(columns.rest.iter().all(|&byte| byte == 0), "what is left is padding");
        reached = columns.reached;
        for group in groups {
            let secrets = ByName.secrets(place, &[&group.subjects]).unwrap();
            let key = secrets[0].as_ref().unwrap().key();
            assert_eq!(key.commitment.as_bytes()[..], group.commitment);
            let mut text = group.ciphertext;
            apply_key_stream(&key.key, &mut text);
            let form = text[0] & 1;
            in_groups.insert((GROUP, form));
            if form == RECORDS {
                continue;
            }
            let mut columns = Columns { rest: &text[1..], reached: in_groups };
            fields(group.personal).for_each(|bit| columns.field(bit, group.entries));
            assert!(columns.rest.is_empty(), "a group has no padding");
            in_groups = columns.reached;
        }
    }
    (reached, in_groups)
}

/// The dictionary of the codec with tables, as the document has it.
fn tables() -> Vec<u8> {
    let document = include_str!("../../../../../docs/format-columns.md");
    let (_, blobs) = document.split_once("\n## Blob\n").unwrap();
    let digits = blobs.split("```").nth(1).unwrap().split_whitespace().collect::<String>();
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(byte).collect()
}

/// The plaintext of a block, by `docs/format.md`, "Epochs" and "Bodies".
fn decrypted<'a>(image: &'a Image, layout: &Layout, block: &Frame) -> (Vec<u8>, BlockContext<'a>) {
    let frame = |frame: &Frame| &image.get(&format!("segments/{}", frame.segment))[frame.offset..frame.end()];
    let epoch = layout.frame(block.epoch);
    assert_eq!(epoch.kind, EPOCH);
    let epoch = frame(epoch);
    let body = &epoch[HEAD..epoch.len() - SEAL];
    let key = body[136..].iter().map(|byte| byte ^ 0xa5).collect::<Vec<_>>();
    let log = epoch[24 + 8..].first_chunk().unwrap();
    let epoch_random = body[4..].first_chunk().unwrap();
    let mut body_key = [0; 32];
    Hkdf::<Sha256>::new(Some(epoch_random), &key)
        .expand_multi_info(&[b"bulla body key v1", log, &block.epoch.to_le_bytes()], &mut body_key)
        .unwrap();
    let block_bytes = frame(block);
    // A sources section is no part of what is encrypted under this key.
    let sources = u32::from_le_bytes([block_bytes[24 + 5], block_bytes[24 + 6], block_bytes[24 + 7], 0]);
    let mut text = block_bytes[HEAD..block_bytes.len() - SEAL - sources as usize].to_vec();
    AesGcm.open(&body_key, block.number, &block_bytes[24..24 + 120], &mut text).unwrap();
    (text, BlockContext { log: LogId(*log), epoch_random, frame: block.number })
}

/// What a block keeps of a group.
struct Group {
    entries: usize,
    personal: u16,
    subjects: Vec<u64>,
    commitment: Vec<u8>,
    ciphertext: Vec<u8>,
}

/// The optional columns of these fields, in order.
fn fields(bits: u16) -> impl Iterator<Item = u32> {
    (0..13).filter(move |bit| bits >> bit & 1 == 1)
}

/// Columns as they are read one after the other.
struct Columns<'a> {
    rest: &'a [u8],
    reached: BTreeSet<Encoding>,
}

impl Columns<'_> {
    fn block(&mut self, entries: u64) -> Vec<Group> {
        assert_eq!(self.bytes(1), [1], "the layout version");
        assert_eq!(self.varint(), entries);
        let count = entries as usize;
        let groups = self.varint() as usize;
        let (mut personal, mut members) = (0, Vec::new());
        if groups > 0 {
            personal = u16::from_le_bytes(self.bytes(2).try_into().unwrap());
            members = self.integers(count);
        }
        let of_group = |group: usize| members.iter().filter(|&&member| member == group as u64).count();
        self.integers(count);
        self.strings(count);
        for bit in fields(u16::MAX) {
            self.field(bit, if personal >> bit & 1 == 1 { of_group(0) } else { count });
        }
        for kind in if groups > 0 { 0..2 } else { 0..0 } {
            let items = self.varint() as usize;
            let lengths = self.integers(items);
            self.blob(lengths.iter().sum::<u64>() as usize);
            if items > 0 {
                self.reached.insert((ITEMS, kind));
            }
        }
        let counts = self.integers(groups);
        let mut subjects = self.integers(counts.iter().sum::<u64>() as usize).into_iter();
        let lengths = self.integers(groups);
        let commitments = self.bytes(32 * groups);
        let group = |(index, length): (usize, &u64)| Group {
            entries: of_group(index + 1),
            personal,
            subjects: subjects.by_ref().take(counts[index] as usize).collect(),
            commitment: commitments[32 * index..][..32].to_vec(),
            ciphertext: self.bytes(*length as usize),
        };
        lengths.iter().enumerate().map(group).collect()
    }

    /// An optional column of `count` entries.
    fn field(&mut self, bit: u32, count: usize) {
        let (texts, numbers) = ([0, 1, 2, 7, 8, 9, 10, 11], [3, 4, 5, 6]);
        let present = match self.tag(PRESENCE) {
            0 => return,
            1 => count,
            _ => self.blob(count.div_ceil(8)).iter().map(|byte| byte.count_ones() as usize).sum(),
        };
        if texts.contains(&bit) {
            self.strings(present);
        } else {
            let counts = self.integers(present);
            if !numbers.contains(&bit) {
                self.strings(counts.iter().sum::<u64>() as usize);
            }
        }
    }

    fn integers(&mut self, count: usize) -> Vec<u64> {
        if count == 0 {
            return Vec::new();
        }
        match self.tag(INTEGERS) {
            0 => vec![self.varint(); count],
            1 => self.packed(count),
            2 => {
                let mut values = vec![self.varint()];
                for difference in self.integers(count - 1) {
                    let step = difference >> 1 ^ (difference & 1).wrapping_neg();
                    values.push(values[values.len() - 1].wrapping_add(step));
                }
                values
            }
            3 => {
                let runs = self.varint() as usize;
                let (values, lengths) = (self.integers(runs), self.integers(runs));
                let runs = values.into_iter().zip(lengths);
                runs.flat_map(|(value, more)| vec![value; more as usize + 1]).collect()
            }
            4 => {
                let distinct = self.varint() as usize;
                let distinct = self.integers(distinct);
                self.integers(count).into_iter().map(|index| distinct[index as usize]).collect()
            }
            _ => {
                let (base, scale, width) = (self.varint(), self.varint(), usize::from(self.bytes(1)[0]));
                let planes = self.blob(count * width);
                let byte =
                    |place: usize, plane: usize| u64::from(planes[plane * count + place]) << (8 * plane);
                let value = |place| (0..width).map(|plane| byte(place, plane)).sum::<u64>();
                (0..count).map(|place| base.wrapping_add(scale.wrapping_mul(value(place)))).collect()
            }
        }
    }

    fn packed(&mut self, count: usize) -> Vec<u64> {
        let (base, scale) = (self.varint(), self.varint());
        let mut values = Vec::new();
        while values.len() < count {
            let chunk = (count - values.len()).min(512);
            let (offset, width) = (self.varint(), usize::from(self.bytes(1)[0]));
            let bytes = self.bytes((chunk * width).div_ceil(8));
            let bit = |place: usize| u64::from(bytes[place / 8] >> (place % 8) & 1);
            for place in 0..chunk {
                let value = (0..width).map(|at| bit(place * width + at) << at).sum::<u64>();
                values.push(base.wrapping_add(scale.wrapping_mul(offset.wrapping_add(value))));
            }
        }
        values
    }

    fn strings(&mut self, count: usize) {
        if count == 0 {
            return;
        }
        match self.tag(STRINGS) {
            0 => {
                let length = self.varint() as usize;
                self.blob(length);
            }
            1 => {
                let distinct = self.varint() as usize;
                self.plain(distinct);
                self.integers(count);
            }
            3 => {
                let words = self.varint() as usize;
                self.plain(words);
                let numbers = self.integers(count).iter().sum::<u64>() as usize;
                self.plain(count);
                match self.bytes(1)[0] {
                    9 => drop(self.blob(numbers)),
                    width => drop(self.bytes((numbers * usize::from(width)).div_ceil(8))),
                }
            }
            4 => self.templates(count),
            _ => drop(self.plain(count)),
        }
    }

    fn plain(&mut self, count: usize) -> Vec<Vec<u8>> {
        let lengths = self.integers(count);
        let together = self.blob(lengths.iter().sum::<u64>() as usize);
        let mut rest = &together[..];
        let string = |length: u64| rest.split_off(..length as usize).unwrap().to_vec();
        lengths.into_iter().map(string).collect()
    }

    fn templates(&mut self, count: usize) {
        let columns = self.varint() as usize;
        let kinds = self.bytes(columns);
        let size = self.varint() as usize;
        let shapes = self.plain(size);
        let mut lengths = vec![0; columns];
        for index in self.integers(count) {
            let mut shape = shapes[index as usize].iter();
            while shape.by_ref().any(|&byte| byte == 0) {
                lengths[usize::from(*shape.next().unwrap())] += 1;
            }
        }
        let words = self.varint() as usize;
        self.plain(words);
        let mut spelled = 0;
        for (kind, length) in kinds.into_iter().zip(lengths) {
            let zeros = self.integers(length).into_iter().filter(|&value| value == 0);
            spelled += if kind == 0 { zeros.count() } else { 0 };
        }
        self.plain(spelled);
    }

    fn blob(&mut self, length: usize) -> Vec<u8> {
        if length == 0 {
            return Vec::new();
        }
        let tag = self.tag(BLOB);
        let stored = if tag == 0 { length } else { self.varint() as usize };
        let stored = self.bytes(stored);
        let content = match tag {
            0 => stored,
            3 => {
                let frame = [&[0x28, 0xb5, 0x2f, 0xfd], &stored[..]].concat();
                let mut zstd = zstd::bulk::Decompressor::with_dictionary(&tables()).unwrap();
                zstd.decompress(&frame, length).unwrap()
            }
            _ => zstd::bulk::decompress(&stored, length).unwrap(),
        };
        assert_eq!(content.len(), length);
        content
    }

    fn tag(&mut self, kind: &'static str) -> u8 {
        let tag = self.bytes(1)[0];
        assert!(every().contains(&(kind, tag)), "{kind} {tag}");
        self.reached.insert((kind, tag));
        tag
    }

    fn varint(&mut self) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let byte = self.bytes(1)[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        value
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        let (bytes, rest) = self.rest.split_at(count);
        self.rest = rest;
        bytes.to_vec()
    }
}

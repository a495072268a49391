//! Lengths and sizes that lie: a clear finding, at once, and no memory beyond what the files have.

use super::image::Image;
use super::layout::{BLOCK, Frame, HEAD, Layout, SEAL};
use super::world::{Level, Made, Mask, RECIPIENT, environment, in_tree, large, signed, small};
use bulla::environment::{AesGcm, Cipher};
use bulla::keys::signing::SigningKey;
use bulla::{Entry, Export, Init, Log, Options, Result, VerifierKey, Verify};
use bulla_columns::padme;
use bulla_proof::commitment::{Commitment, MAX_CONTENT_LOG2};
use bulla_proof::hash::sha256;
use bulla_proof::varint;
use bulla_testkit::Memory;
use bulla_testkit::allocator::most_held;
use bulla_testkit::{alone, is_alone};
use std::fs::OpenOptions;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The most that is held at once: half of the shortest length that is claimed here, so that room made for any of them
/// is too much. What is used is the 256 KiB through which surplus is digested, and pieces of the files as they are.
const MOST: usize = 512 << 10;

/// The head of a frame that claims a body of that length, its checksum right.
fn claim(head: &mut [u8], length: u64) {
    head[8..12].copy_from_slice(&u32::try_from(length).unwrap().to_le_bytes());
    head[24 + 112..24 + 120].copy_from_slice(&length.to_le_bytes());
    let crc = crc32c::crc32c(&head[..20]);
    head[20..24].copy_from_slice(&crc.to_le_bytes());
}

/// The work is done at once and holds at most so many bytes.
fn bounded<T>(what: &str, bytes: usize, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let (result, held) = most_held(work);
    println!("held {held} bytes: {what}");
    assert!(start.elapsed() < Duration::from_secs(60), "{what} took {:?}", start.elapsed());
    assert!(held <= bytes, "{what} held {held} bytes, not {bytes} at most");
    result
}

/// Runs a test of this module where memory is its own: verification has threads, so that it can only be weighed in a
/// process in which nothing else is at work.
fn weighed(test: &str, work: impl FnOnce()) {
    if is_alone() {
        return work();
    }
    let output = alone(Command::new("env"), &format!("damage::hostile::{test}")).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && told.contains("1 passed"), "{told}{error}");
    let held =
        told.lines().filter_map(|line| line.strip_prefix("held ")?.split(' ').next()?.parse::<u64>().ok());
    println!("{test}: {:?} bytes at most", held.max());
}

/// The log with one frame that claims `length`; in the tree's files too where `everywhere`.
fn with_claim(made: &Made, size: u64, frame: &Frame, length: u64, everywhere: bool) -> Image {
    let path = format!("segments/{}", frame.segment);
    let mut content = made.image.get(&path).to_vec();
    claim(&mut content[frame.offset..frame.offset + 176], length);
    let commitment = content[frame.offset + 24..frame.offset + 176].to_vec();
    let image = made.image.with(&path, content);
    if everywhere { in_tree(image, size, frame.number, &commitment) } else { image }
}

/// AES-GCM that remembers the key of bodies.
#[derive(Default)]
struct Recorder(Mutex<[u8; 32]>);

impl Cipher for Recorder {
    fn seal(&self, key: &[u8; 32], frame: u64, additional: &[u8], text: &mut Vec<u8>) -> Result<()> {
        if additional.len() == Commitment::ADDITIONAL_DATA_LENGTH {
            *self.0.lock().unwrap() = *key;
        }
        AesGcm.seal(key, frame, additional, text)
    }

    fn open(&self, key: &[u8; 32], frame: u64, additional: &[u8], text: &mut Vec<u8>) -> Result<()> {
        AesGcm.open(key, frame, additional, text)
    }
}

/// When the entry of the block that [`signed_as`] replaces was, in whole seconds.
pub(crate) const SECOND: i64 = 1_800_000_000;

/// A log whose block of one entry was replaced by what `change` makes of its plaintext and commitment, by somebody who has the
/// key of its epoch, and the one that signs.
pub(crate) fn signed_as(change: impl FnOnce(&mut Vec<u8>, &mut Commitment)) -> Made {
    let (log, keys, recorder) = (Memory::new(), Memory::new(), Arc::new(Recorder::default()));
    let environment = environment(11, recorder.clone());
    let init = Init::default().erasure(false).origin("example.com/hostile").recipient(RECIPIENT);
    let key = init.create_in(&log, &keys, &environment).unwrap().verifier_key;
    let options = Options::default().memory(64 << 20).writers(1);
    let open =
        Log::open_stepped(Arc::new(log.clone()), Arc::new(keys.clone()), options, environment).unwrap();
    let mut producer = open.producer().unwrap();
    producer.append(&Entry::new("read", "it").time(SECOND * 1_000_000_000)).unwrap();
    drop(producer);
    open.close().unwrap();
    let image = Image::of_store(&log);
    let layout = Layout::of(&image);
    let frame = layout.counted().last().unwrap();
    let path = format!("segments/{}", frame.segment);
    let segment = image.get(&path);
    let mut content = segment[..frame.offset + HEAD].to_vec();
    let mut body = segment[frame.offset + HEAD..frame.end() - SEAL].to_vec();
    let mut commitment = Commitment::decode(&content[frame.offset + 24..]).unwrap();
    let key_of_bodies = *recorder.0.lock().unwrap();
    AesGcm.open(&key_of_bodies, frame.number, &commitment.additional_data(), &mut body).unwrap();
    change(&mut body, &mut commitment);
    commitment.body_length = body.len() as u64 + 16;
    AesGcm.seal(&key_of_bodies, frame.number, &commitment.additional_data(), &mut body).unwrap();
    commitment.body_digest = sha256(&[&body]);
    content[frame.offset + 24..].copy_from_slice(&commitment.encode());
    claim(&mut content[frame.offset..], commitment.body_length);
    content.extend_from_slice(&body);
    content.extend_from_slice(&[0; SEAL]);
    let image = in_tree(image.with(&path, content), layout.size, frame.number, &commitment.encode());
    let keys = Image::of_store(&keys);
    let text = |path: &str| String::from_utf8(keys.get(path).to_vec()).unwrap();
    let signing = SigningKey::parse(&text("signing.key")).unwrap();
    let image = signed(image, layout.size, &key, &signing);
    Made { image, key, seal_key: text("seal.key") }
}

/// The same of so many entries, all of time 0, and of as many units, whose root is not theirs.
fn with_block(plaintext: Vec<u8>, entries: u64, content_log2: u8) -> Made {
    signed_as(|text, commitment| {
        *text = plaintext;
        let before = commitment.clone();
        *commitment = Commitment { content_log2, entries, units: entries, earliest: 0, latest: 0, ..before };
    })
}

/// A column of `count` zeros that takes as much room as can be: a dictionary whose values are runs of runs, and whose
/// indexes are bytes.
fn nested(count: usize, bytes: &mut Vec<u8>) {
    bytes.push(4);
    varint::push(count as u64 / 2, bytes);
    bytes.push(3);
    varint::push(count as u64 / 4, bytes);
    bytes.extend([0, 0, 3]);
    varint::push(count as u64 / 8, bytes);
    bytes.extend([0, 1, 0, 1, 5, 0, 1, 4, 2]);
    let mut zstd = zstd::bulk::Compressor::new(1).unwrap();
    zstd.set_parameter(zstd::zstd_safe::CParameter::ContentSizeFlag(false)).unwrap();
    // It takes as much of that as the content needs.
    zstd.set_parameter(zstd::zstd_safe::CParameter::WindowLog(27)).unwrap();
    let zeros = zstd.compress(&vec![0; count * 4]).unwrap();
    varint::push(zeros.len() as u64, bytes);
    bytes.extend(zeros);
}

/// A block of as many empty subjects as one may have, said in as little and read with as much as can be: docs/operating.md
/// and docs/format-columns.md say what a reader holds.
#[test]
fn a_block_of_nothing_is_read_in_bounded_memory() {
    weighed("a_block_of_nothing_is_read_in_bounded_memory", a_block_of_nothing_holds_little);
}

fn a_block_of_nothing_holds_little() {
    const MIB: usize = 1 << 20;
    let entries = 17 * MIB / 80;
    let subjects = entries * 64;
    let mut plaintext = vec![1];
    varint::push(entries as u64, &mut plaintext);
    plaintext.extend([0, 0, 0, 0, 1, 0, b'x']);
    plaintext.extend([0; 12]);
    // Words, of which the last string has one.
    plaintext.extend([1, 0, 64, 3, 1, 0, 1, 0, b'y', 3, 2, 5, 0, 1, 1, 0, 0, 1, 5, 0, 1, 4, 0]);
    let runs = [u32::try_from(subjects).unwrap() - 2, 0].map(u32::to_le_bytes);
    plaintext.extend((0..4).flat_map(|byte| runs.map(|run| run[byte])));
    nested(subjects, &mut plaintext);
    plaintext.push(0);
    plaintext.resize(padme(plaintext.len()), 0);
    let file = plaintext.len();
    assert!(file < MIB / 8, "{file} bytes");
    let made = with_block(plaintext, entries as u64, MAX_CONTENT_LOG2);
    let frame = Layout::of(&made.image).counted().last().unwrap().clone();
    let told = bounded("a block of nothing", 512 * MIB, || made.findings(&made.image, Level::Identity));
    // It was decoded: only its units are wrong.
    assert!(told.contains(&frame.finding("units-mismatch")), "{told:#?}");
    let export = Export::open_store(Arc::new(made.image.clone())).unwrap();
    let export = export.identity(Arc::new(Mask)).salvage(true);
    let mut out = Vec::new();
    let report = bounded("its salvage", 512 * MIB, || export.run(&mut out)).unwrap();
    assert_eq!((report.entries, out.len()), (0, 0));
}

#[test]
fn lengths_that_lie() {
    weighed("lengths_that_lie", lengths_that_lie_hold_little);
}

fn lengths_that_lie_hold_little() {
    let made = small();
    let layout = Layout::of(&made.image);
    for frame in layout.counted() {
        for length in [0, 1 << 20, (1 << 29) - 1, 1 << 29, (1 << 29) + 1, u64::from(u32::MAX)] {
            if length == (frame.length - HEAD - SEAL) as u64 {
                continue;
            }
            for level in Level::ALL {
                let what = format!("{length} bytes claimed by frame {}", frame.number);
                let image = with_claim(&made, layout.size, frame, length, false);
                let told = bounded(&what, MOST, || made.findings(&image, level));
                assert!(told.contains(&frame.finding("frame-damaged")), "{what}: {told:#?}");
                assert!(!told.iter().any(|text| text.starts_with("frames-missing")), "{what}: {told:#?}");
                let image = with_claim(&made, layout.size, frame, length, true);
                let told = bounded(&what, MOST, || made.findings(&image, level));
                assert!(told.contains(&"root-mismatch".to_owned()), "{what}: {told:#?}");
            }
        }
    }
}

#[test]
fn sizes_that_lie() {
    weighed("sizes_that_lie", sizes_that_lie_hold_little);
}

fn sizes_that_lie_hold_little() {
    for made in [small(), large()] {
        let text = String::from_utf8(made.image.get("checkpoint").to_vec()).unwrap();
        let size = text.lines().nth(1).unwrap().to_owned();
        for claimed in [1 << 20, 1 << 32, 1 << 60, u64::MAX] {
            let forged = text.replacen(&format!("\n{size}\n"), &format!("\n{claimed}\n"), 1).into_bytes();
            let mut image = made.image.with("checkpoint", forged);
            for far in [false, true] {
                if far {
                    // Names that lead far away too.
                    image.put(&format!("segments/{:020}.seg", claimed - 2), vec![0; 4000]);
                    image.put("tile/entries/x999/x999/x999/000", vec![1; 39_424]);
                }
                let what = format!("{claimed} frames claimed");
                let report = bounded(&what, MOST, || made.verify(&image, Level::Identity)).unwrap();
                let told = |kind: &str| report.findings.iter().any(|finding| finding.kind.name() == kind);
                assert!(!report.ok && told("checkpoint-damaged") && told("frames-missing"), "{what}");
                assert!(report.findings.len() < 1000, "{what}: {}", report.findings.len());
            }
        }
    }
}

/// Files that are longer than any such file, without taking the room.
#[test]
fn files_that_are_far_too_long() {
    weighed("files_that_are_far_too_long", files_that_are_far_too_long_hold_little);
}

fn files_that_are_far_too_long_hold_little() {
    let made = small();
    let layout = Layout::of(&made.image);
    let key: &VerifierKey = &made.key;
    for path in made.image.paths() {
        let place = tempfile::tempdir().unwrap();
        made.image.write_to(place.path());
        let length = if path.ends_with(".seg") { 1 << 28 } else { 1 << 40 };
        OpenOptions::new().write(true).open(place.path().join(&path)).unwrap().set_len(length).unwrap();
        let report =
            bounded(&path, MOST, || Verify::open(place.path()).unwrap().key(key.clone()).run()).unwrap();
        let kinds = report.findings.iter().map(|finding| finding.kind.name()).collect::<Vec<_>>();
        let expected = match path.as_str() {
            // Nobody without an identity looks into the index.
            path if path == "LOCK" || path.starts_with("index/") => "gap",
            "checkpoint" => "checkpoint-damaged",
            "checkpoint.cose" => "cose-mismatch",
            "bulla.toml" => "config-damaged",
            _ if path.starts_with("tile/entries") => "bundle-damaged",
            _ if path.starts_with("tile") => "tile-damaged",
            // An abandoned segment may go on with anything.
            _ if path.ends_with("00.seg") => "abandoned",
            _ if path.ends_with(&layout.counted().last().unwrap().segment) => "unsigned-tail",
            _ => "surplus-bytes",
        };
        assert!(kinds.contains(&expected), "{path}: {kinds:?}");
    }
    assert!(layout.counted().any(|frame| frame.kind == BLOCK));
}

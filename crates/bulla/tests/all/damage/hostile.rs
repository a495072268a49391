//! Lengths and sizes that lie: a clear finding, at once, and no memory beyond what the files have.

use super::image::Image;
use super::layout::{BLOCK, Frame, HEAD, Layout, SEAL};
use super::world::{Level, Made, large, small};
use crate::allocator::most_held;
use crate::workshop::{alone, is_alone};
use bulla::{VerifierKey, Verify};
use bulla_proof::tree::leaf_hash;
use std::fs::OpenOptions;
use std::process::Command;
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
    let mut image = made.image.with(&path, content);
    if everywhere {
        let (tile, bundle) = (format!("tile/0/000.p/{size}"), format!("tile/entries/000.p/{size}"));
        let place = usize::try_from(frame.number).unwrap();
        let mut hashes = image.get(&tile).to_vec();
        hashes[place * 32..][..32].copy_from_slice(&leaf_hash(&commitment).0);
        image.put(&tile, hashes);
        let mut entries = image.get(&bundle).to_vec();
        entries[place * 154 + 2..][..152].copy_from_slice(&commitment);
        image.put(&bundle, entries);
    }
    image
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
            "bulla.toml" => "config-damaged",
            _ if path.starts_with("tile/entries") => "bundle-damaged",
            _ if path.starts_with("tile") => "tile-damaged",
            // An abandoned segment may go on with anything.
            _ if path.ends_with("00.seg") => "abandoned",
            _ if path.ends_with(&layout.counted().last().unwrap().segment) => "unclosed",
            _ => "surplus-bytes",
        };
        assert!(kinds.contains(&expected), "{path}: {kinds:?}");
    }
    assert!(layout.counted().any(|frame| frame.kind == BLOCK));
}

//! The kinds of finding that nothing else here produces, and the document's list of all of them.

use super::layout::{EPOCH, EVENT, Frame, HEAD, Layout};
use super::world::{Level, Made, Mask, World, in_tree, short, small};
use bulla::keys::epoch::EpochSecret;
use bulla::keys::recipients::Identity;
use bulla::{FindingKind, Result, Severity, Verify};
use bulla_proof::commitment::Commitment;
use bulla_proof::hash::sha256;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Unwraps every epoch's key to another one.
struct Mistaken;

impl Identity for Mistaken {
    fn unwrap(&self, wrapped: &[u8]) -> Result<Option<EpochSecret>> {
        let mut wrapped = wrapped.to_vec();
        wrapped[0] ^= 1;
        Mask.unwrap(&wrapped)
    }
}

#[test]
fn a_key_that_an_epoch_does_not_commit_to() {
    let made = small();
    let layout = Layout::of(&made.image);
    let verify = Verify::open_store(Arc::new(made.image.clone())).unwrap().key(made.key.clone());
    let report = verify.identity(Arc::new(Mistaken)).run().unwrap();
    let told = report.findings.iter().map(short).collect::<BTreeSet<_>>();
    let epochs = layout.counted().filter(|frame| frame.kind == EPOCH).collect::<Vec<_>>();
    assert!(epochs.len() > 2);
    for epoch in epochs {
        assert!(told.contains(&epoch.finding("epoch-invalid")), "{told:#?}");
    }
    assert!(!report.ok && told.iter().any(|text| text.starts_with("not-opened")), "{told:#?}");
    assert_eq!(
        report.findings.iter().find(|one| one.severity == Severity::Violation).map(|one| one.frame),
        Some(Some(0))
    );
}

#[test]
fn the_body_of_an_epoch_that_is_none() {
    let made = small();
    let layout = Layout::of(&made.image);
    let epoch = layout.counted().rfind(|frame| frame.kind == EPOCH).unwrap();
    let path = format!("segments/{}", epoch.segment);
    let mut content = made.image.get(&path).to_vec();
    let head = epoch.offset + 24..epoch.offset + HEAD;
    let body = head.end..epoch.end() - super::layout::SEAL;
    // A version that there is not.
    content[body.start] ^= 0x80;
    let mut commitment = Commitment::decode(&content[head.clone()]).unwrap();
    commitment.body_digest = sha256(&[&content[body]]);
    content[head].copy_from_slice(&commitment.encode());
    let image = in_tree(made.image.with(&path, content), layout.size, epoch.number, &commitment.encode());
    for level in Level::ALL {
        let told = made.findings(&image, level);
        assert!(told.contains(&epoch.finding("epoch-invalid")), "{level:?}: {told:#?}");
        assert!(!told.iter().any(|text| text.starts_with("body-damaged")), "{level:?}: {told:#?}");
    }
}

#[test]
fn the_body_of_an_event_that_is_none() {
    let made = small();
    let layout = Layout::of(&made.image);
    let events = || layout.counted().filter(|frame| frame.kind == EVENT);
    // A kind that there is not.
    is_no_event(&made, &layout, events().next_back().unwrap(), |body| {
        assert!(body.starts_with(b"{\"event\":\""));
        body[10] ^= 2;
    });
    // A change of `[log]` without two digests, or without a key that changed.
    let (one, other) = ("0a".repeat(32), "b0".repeat(32));
    for (before, changed) in [("zz", "\"recipients\""), (&one, "")] {
        let text = format!(
            "{{\"event\":\"configured\",\"before\":\"{before}\",\"after\":\"{other}\",\"changed\":[{changed}]}}"
        );
        is_no_event(&made, &layout, events().max_by_key(|frame| frame.length).unwrap(), |body| {
            // JSON may have spaces at its end.
            body.fill(b' ');
            body[..text.len()].copy_from_slice(text.as_bytes());
        });
    }
    assert!(!made.findings(&made.image, Level::Public).iter().any(|text| text.starts_with("event-invalid")));
}

/// The log with another body in an event's frame, whose tree has that, is found to have no event there.
fn is_no_event(made: &Made, layout: &Layout, event: &Frame, change: impl FnOnce(&mut [u8])) {
    let path = format!("segments/{}", event.segment);
    let mut content = made.image.get(&path).to_vec();
    let head = event.offset + 24..event.offset + HEAD;
    let body = head.end..event.end() - super::layout::SEAL;
    change(&mut content[body.clone()]);
    let mut commitment = Commitment::decode(&content[head.clone()]).unwrap();
    commitment.body_digest = sha256(&[&content[body]]);
    content[head].copy_from_slice(&commitment.encode());
    let image = in_tree(made.image.with(&path, content), layout.size, event.number, &commitment.encode());
    for level in Level::ALL {
        let told = made.findings(&image, level);
        assert!(told.contains(&event.finding("event-invalid")), "{level:?}: {told:#?}");
    }
}

#[test]
fn a_group_is_not_before_that_of_the_frame_before_it() {
    let made = small();
    let layout = Layout::of(&made.image);
    let group = |frame: &Frame| {
        let content = made.image.get(&format!("segments/{}", frame.segment));
        u64::from_le_bytes(content[frame.offset + 12..][..8].try_into().unwrap())
    };
    let frames = layout.counted().collect::<Vec<_>>();
    let mut tried = 0;
    for [before, frame] in frames.array_windows().filter(|[before, _]| group(before) > 0) {
        for (claimed, found) in [(group(before) - 1, true), (group(before), false), (frame.number, false)] {
            let path = format!("segments/{}", frame.segment);
            let mut content = made.image.get(&path).to_vec();
            let header = &mut content[frame.offset..][..24];
            header[12..20].copy_from_slice(&claimed.to_le_bytes());
            let crc = crc32c::crc32c(&header[..20]);
            header[20..].copy_from_slice(&crc.to_le_bytes());
            let told = made.findings(&made.image.with(&path, content), Level::Public);
            assert_eq!(told.contains(&frame.finding("numbering")), found, "{claimed}: {told:#?}");
            tried += 1;
        }
    }
    assert!(tried > 12, "{tried}");
}

#[test]
fn findings_of_neighbours_that_are_alike_are_one_that_says_of_how_many_and_up_to_which() {
    let mut world = World::new(3);
    let log = world.open();
    world.block(&log, 1);
    for rows in [2, 3, 4] {
        world.gap(&log, rows);
    }
    world.block(&log, 1);
    world.gap(&log, 5);
    log.close().unwrap();
    let made = world.made();
    let report = made.verify(&made.image, Level::Public).unwrap();
    let told =
        report.findings.iter().map(|one| (one.kind, one.frame, one.last_frame, one.entries, one.count));
    let gap = FindingKind::Gap;
    let expected = [(gap, Some(2), Some(4), Some((1, 9)), 3), (gap, Some(6), Some(6), Some((11, 15)), 1)];
    assert_eq!(told.collect::<Vec<_>>(), expected);
}

#[test]
fn findings_past_the_most_that_are_listed_are_counted() {
    const MOST: usize = 10_000;
    let made = small();
    let baseline = made.findings(&made.image, Level::Public).len();
    let mut image = made.image.clone();
    (0..MOST + 7).for_each(|number| image.put(&format!("stray-{number}"), Vec::new()));
    let report = made.verify(&image, Level::Public).unwrap();
    assert_eq!(report.findings.len(), MOST + 1);
    let last = report.findings.last().unwrap();
    let told = format!("{} more findings are not listed", baseline + 7);
    assert_eq!((last.kind, &last.detail), (FindingKind::MoreFindings, &told));
    // Nothing but notices is listed, yet what is left out could be anything.
    assert!(!report.ok && report.findings[..MOST].iter().all(|one| one.severity == Severity::Notice));
}

/// `docs/format.md`, "Findings", has each kind once, with its severity, and no other.
#[test]
fn the_document_lists_every_kind() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/format.md")).unwrap();
    let section = text.split("\n## ").find(|section| section.starts_with("Findings\n")).unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    let mut listed = rows
        .map(|row| {
            let (name, rest) = row.split_once("` | ").unwrap();
            (name.to_owned(), rest.split(' ').next().unwrap().to_owned())
        })
        .collect::<Vec<_>>();
    let mut known = FindingKind::ALL
        .map(|kind| {
            let letter = if kind.severity() == Severity::Violation { "V" } else { "N" };
            (kind.name().to_owned(), letter.to_owned())
        })
        .to_vec();
    listed.sort();
    known.sort();
    assert_eq!(listed, known);
}

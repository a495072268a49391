//! The kinds of finding that nothing else here produces, and the document's list of all of them.

use super::layout::{EPOCH, EVENT, Frame, HEAD, Layout};
use super::world::{Level, Made, Mask, in_tree, short, small};
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

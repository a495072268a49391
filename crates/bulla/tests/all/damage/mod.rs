//! Damage: whatever happens to a log's files is found at the level that can find it, and named.

mod config;
mod encodings;
mod hostile;
pub(crate) mod image;
mod layout;
mod note;
mod scale;
mod structure;
mod sweep;
mod tail;
pub(crate) mod world;

use layout::{BLOCK, EPOCH, EVENT, GAP, Layout};
use bulla_proof::tile::parse_path;
use std::collections::BTreeSet;
use world::{Level, large, small, whole};

#[test]
fn undamaged_logs_verify_at_every_level() {
    for made in [small(), large(), whole()] {
        let layout = Layout::of(&made.image);
        for level in Level::ALL {
            let report = made.verify(&made.image, level).unwrap();
            assert!(report.ok, "{level:?}: {:#?}", report.findings);
            assert_eq!(report.anchored, level >= Level::Key);
            assert_eq!((report.tree_size, report.entries), (layout.size, layout.entries().len() as u64));
            assert_eq!(
                made.findings(&made.image, level).into_iter().collect::<BTreeSet<_>>(),
                layout.baseline()
            );
        }
    }
}

/// What the sweep is for is there.
#[test]
fn the_whole_log_has_everything() {
    let made = whole();
    let layout = Layout::of(&made.image);
    assert_eq!(encodings::reached(&made.image, &layout), encodings::every());
    let kinds = layout.counted().map(|frame| frame.kind).collect::<BTreeSet<_>>();
    assert_eq!(kinds, BTreeSet::from([BLOCK, EPOCH, EVENT, GAP]));

    let segments = layout.segments();
    println!("{} bytes, {} frames: {:#?}", made.image.bytes(), layout.size, made.image.paths());
    println!("{:?}", segments.iter().map(|(name, frames)| (name, frames.len(), frames.last().unwrap().end(), frames[0].kind, frames[0].copy)).collect::<Vec<_>>());
    println!("{:?} {:?}", layout.surplus, layout.counted().filter(|frame| frame.kind != GAP).map(|frame| (frame.number, frame.kind, frame.length, frame.entries)).collect::<Vec<_>>());
    let _ = parse_path("x");
}

//! Damage: whatever happens to a log's files is found at the level that can find it, and named.

mod config;
mod encodings;
pub(crate) mod hostile;
pub(crate) mod image;
mod index;
mod kinds;
pub(crate) mod layout;
mod note;
mod scale;
mod structure;
mod sweep;
mod tail;
pub(crate) mod world;

use layout::{BLOCK, EPOCH, EVENT, Frame, GAP, Layout};
use std::collections::BTreeSet;
use world::{Level, grouped, large, small, whole};

#[test]
fn undamaged_logs_verify_at_every_level() {
    for made in [small(), large(), whole(), grouped()] {
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
    assert_eq!(encodings::reached(&made.image, &layout), (encodings::every(), BTreeSet::new()));
    let kinds = layout.counted().map(|frame| frame.kind).collect::<BTreeSet<_>>();
    assert_eq!(kinds, BTreeSet::from([BLOCK, EPOCH, EVENT, GAP]));

    let segments = layout.segments().into_values().collect::<Vec<_>>();
    let epochs = |frames: &[&Frame]| frames.iter().filter(|frame| frame.kind == EPOCH && !frame.copy).count();
    assert!(segments.iter().any(|frames| epochs(frames) == 2 && !frames[0].copy), "one that was extended");
    assert!(segments.iter().any(|frames| frames[0].copy), "one that goes on with an epoch");
    let full = segments.windows(2).filter(|pair| pair[0].last().unwrap().end() >= 64 << 10);
    assert!(full.clone().any(|pair| !pair[1][0].copy), "one that was closed because it was full");
    assert!(epochs(&layout.counted().collect::<Vec<_>>()) >= 4);
    let last = segments.last().unwrap();
    assert!(
        last.last().unwrap().end() < 64 << 10 && last[0].number > 0,
        "one that is open: nothing closed it"
    );

    let explained =
        layout.surplus.iter().map(|(segment, at)| layout.explained(segment, *at).unwrap().recorded);
    assert_eq!(explained.collect::<BTreeSet<_>>(), BTreeSet::from([false, true]), "abandoned, and recovered");

    let size = layout.size - 256;
    let paths = made.image.paths();
    let tiles = ["tile/0/000".to_owned(), format!("tile/0/001.p/{size}"), "tile/1/000.p/1".to_owned()];
    let bundles = ["tile/entries/000".to_owned(), format!("tile/entries/001.p/{size}")];
    for path in tiles.iter().chain(&bundles) {
        assert!(paths.contains(path), "{path}");
    }
    let partial = paths.iter().filter(|path| path.starts_with("tile/0/001.p/"));
    assert!(partial.count() > 1, "of sizes signed before");
}

#[test]
fn the_log_with_groups_has_every_kind_of_them() {
    let made = grouped();
    let (_, in_groups) = encodings::reached(&made.image, &Layout::of(&made.image));
    // Records, which refer to shapes and to words; and a group with a long string, in columns.
    for kind in [encodings::GROUP, encodings::ITEMS] {
        assert!([(kind, 0), (kind, 1)].iter().all(|tag| in_groups.contains(tag)), "{in_groups:?}");
    }
    // Lengths of a few strings are the only integers in a group, and are packed unless all are the same. Few strings are not
    // written in templates, nor, of fewer than ten, in a dictionary.
    let others = encodings::every().into_iter();
    let others = others.filter(|it| it.0 != "integers" && ![("strings", 1), ("strings", 4)].contains(it));
    assert_eq!(others.filter(|encoding| !in_groups.contains(encoding)).collect::<Vec<_>>(), []);
}

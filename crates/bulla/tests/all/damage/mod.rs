//! Damage: whatever happens to a log's files is found at the level that can find it, and named.

mod hostile;
pub(crate) mod image;
mod layout;
mod scale;
mod structure;
mod sweep;
mod tail;
pub(crate) mod world;

use layout::Layout;
use world::{Level, large, small};

#[test]
fn undamaged_logs_verify_at_every_level() {
    for made in [small(), large()] {
        let layout = Layout::of(&made.image);
        for level in Level::ALL {
            let report = made.verify(&made.image, level).unwrap();
            assert!(report.ok, "{level:?}: {:#?}", report.findings);
            assert_eq!(report.anchored, level >= Level::Key);
            assert_eq!((report.tree_size, report.entries), (layout.size, layout.entries().len() as u64));
            assert_eq!(
                made.findings(&made.image, level).into_iter().collect::<std::collections::BTreeSet<_>>(),
                layout.baseline()
            );
        }
    }
}

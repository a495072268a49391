//! A query holds little, however much there is to read.

use super::world::{Row, World, answer};
use crate::helpers::Rng;
use bulla::{Delivery, Matches, Options, Query, Step};
use bulla_testkit::Memory;
use bulla_testkit::allocator::most_held;
use bulla_testkit::{alone, is_alone};
use std::process::Command;
use std::sync::Arc;

const MIB: usize = 1 << 20;

/// Weighed in a process in which nothing else is at work.
fn in_a_process(test: &str, work: impl FnOnce()) {
    if is_alone() {
        return work();
    }
    let output = alone(Command::new("env"), &format!("reader::memory::{test}")).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && text.contains("1 passed"), "{text}{:?}", output.stderr);
}

/// 80 MiB of rows in blocks of one, a few of them of a subject.
fn log() -> (World, Arc<Memory>) {
    let store = Arc::new(Memory::new());
    let mut world = World::on(store.clone(), Arc::new(Memory::new()), 51);
    let mut rng = Rng(51);
    let log = world.open_with(Options::default().block_size(MIB));
    for block in 0..80 {
        let rows = (0..16).map(|row| {
            let subject = if block % 20 == 5 && row == 3 { "rare" } else { "common" };
            Row::new(0, "read").subject(subject).noise(&mut rng, 64 << 10)
        });
        let rows = rows.collect::<Vec<_>>();
        world.block(&log, rows, 1);
        world.rows.clear();
        while log.step(Step::Seal).unwrap() {}
    }
    log.close().unwrap();
    (world, store)
}

#[test]
fn a_query_with_few_matches_holds_few_blocks() {
    in_a_process("a_query_with_few_matches_holds_few_blocks", || {
        let (world, store) = log();
        // Once without the index, so that it reads everything and makes the index up; then with it.
        store_without_index(&store);
        for blocks in [80, 4] {
            let query = Query::new().subject("rare");
            let reader = world.reader((*store).clone());
            let ((found, report), held) = most_held(|| answer(&reader, &query).unwrap());
            assert_eq!((found.len(), report.blocks_read), (4, blocks));
            assert!(held < 14 * MIB, "{blocks} blocks: {} KiB", held >> 10);
            assert!(held > MIB, "nothing was weighed: {held}");
        }
    });
}

fn store_without_index(store: &Memory) {
    use bulla::store::Store;
    for item in store.list("index").unwrap() {
        store.remove(&format!("index/{}", item.name)).unwrap();
    }
}

#[test]
fn what_is_held_back_is_bounded() {
    in_a_process("what_is_held_back_is_bounded", || {
        let (world, store) = log();
        let payloads = |matches: &Matches<'_>| {
            matches.iter().map(|(_, entry)| entry.payload.unwrap().to_vec()).collect::<Vec<_>>()
        };
        for (delivery, held_back, most) in [
            (Delivery::Checked, 8 * MIB, 8 + 32),
            (Delivery::Checked, 64 * MIB, 64 + 32),
            (Delivery::Discardable, 64 * MIB, 32),
        ] {
            let reader = world.reader((*store).clone()).hold_back(held_back as u64);
            let mut given = 0;
            let take = |pieces: Vec<Vec<u8>>| {
                given += pieces.len();
                Ok(())
            };
            let (report, held) = most_held(|| reader.read(&Query::new(), delivery, payloads, take).unwrap());
            assert_eq!((report.entries, given), (1280, 1280));
            assert!(held < most * MIB, "{delivery:?}, {held_back}: {} KiB", held >> 10);
        }
    });
}

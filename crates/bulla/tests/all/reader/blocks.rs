//! A query reads the blocks that the index and the commitments leave, and no others.

use super::world::{Row, World, answer, blocks, frames, index_files, without_index};
use crate::damage::image::Image;
use bulla::{Options, Query, TextField};
use bulla_proof::commitment::FrameKind;

/// Blocks of the log.
const BLOCKS: u64 = 150;
const SECOND: i64 = 1_000_000_000;

/// What the rows of block `k` can be found by. No row has all of it.
fn rows(k: u64) -> Vec<Row> {
    let time = 100 * k as i64 * SECOND;
    let first =
        Row::new(time, ["read", "write", "delete"][(k % 3) as usize]).subject(&format!("user_{}", k % 7));
    let second = Row::new(time + 5 * SECOND, "login").processor(&format!("processor {}", k % 5));
    let third = Row::new(time + 9 * SECOND + 999_999_999, "login").subject("everybody");
    let first = if k.is_multiple_of(4) { first } else { first.stream("web") };
    let second = if k == 40 { second.stream("default") } else { second.stream("web") };
    vec![first, second, if k % 50 == 17 { third.subject("rare") } else { third }.stream("web")]
}

fn log() -> (World, Image) {
    let mut world = World::new(11);
    for blocks in [0..70, 70..80, 80..BLOCKS] {
        let log = world.open_with(Options::default());
        for k in blocks {
            world.block(&log, rows(k), 1);
        }
        log.close().unwrap();
    }
    let image = world.image();
    (world, image)
}

/// A log in which the segment is full after a while.
fn rotated() -> (World, Image) {
    let (mut world, mut rng) = (World::new(12), crate::helpers::Rng(12));
    let log = world.open();
    for k in 0..40 {
        let rows = rows(k).into_iter().map(|row| row.noise(&mut rng, 2000)).collect();
        world.block(&log, rows, 1);
    }
    log.close().unwrap();
    let image = world.image();
    (world, image)
}

/// Asserts that `query` reads those of the blocks that `may` have something, and how many entries it finds.
fn check(world: &World, image: &Image, query: &Query, may: impl Fn(u64) -> bool) -> u64 {
    let total = blocks(image).len() as u64;
    let (found, report) = answer(&world.reader(image.clone()), query).unwrap();
    assert_eq!(
        found.iter().map(|(number, _)| *number).collect::<Vec<_>>(),
        world.expected(query),
        "{query:?}"
    );
    let expected = (0..total).filter(|&k| may(k)).count() as u64;
    assert_eq!((report.blocks_read, report.blocks), (expected, total), "{query:?}");
    report.entries
}

#[test]
fn a_query_reads_the_blocks_that_the_index_leaves_and_no_others() {
    let (world, image) = log();
    let epochs = frames(&image).iter().filter(|frame| frame.kind == FrameKind::Epoch).count();
    assert_eq!((epochs, index_files(&image).len()), (3, 3));
    let q = Query::new;
    assert_eq!(check(&world, &image, &q(), |_| true), 3 * BLOCKS);
    assert_eq!(check(&world, &image, &q().subject("rare"), |k| k % 50 == 17), 3);
    assert_eq!(check(&world, &image, &q().subject("everybody"), |_| true), BLOCKS);
    assert_eq!(check(&world, &image, &q().subject("user_"), |_| false), 0);
    assert_eq!(check(&world, &image, &q().subject("web"), |_| false), 0);
    for k in 0..7 {
        assert!(check(&world, &image, &q().subject(format!("user_{k}")), |other| other % 7 == k) > 20);
    }
    assert_eq!(check(&world, &image, &q().operation("write"), |k| k % 3 == 1), 50);
    assert_eq!(check(&world, &image, &q().processor("processor 4"), |k| k % 5 == 4), 30);
    // An absent stream is `default`, and so is one of that name.
    assert_eq!(check(&world, &image, &q().stream("default"), |k| k % 4 == 0 || k == 40), 39);
    assert_eq!(check(&world, &image, &q().stream("web"), |_| true), 3 * BLOCKS - 39);
}

#[test]
fn criteria_intersect() {
    let (world, image) = log();
    let query = Query::new().subject("user_3").operation("delete");
    assert_eq!(check(&world, &image, &query, |k| k % 7 == 3 && k % 3 == 2), 7);
    // Both are in those blocks, in different rows.
    let query = Query::new().subject("user_3").processor("processor 1");
    assert_eq!(check(&world, &image, &query, |k| k % 7 == 3 && k % 5 == 1), 0);
    let query = Query::new().subject("user_3").from(7000 * SECOND).to(12_000 * SECOND);
    assert_eq!(check(&world, &image, &query, |k| k % 7 == 3 && (70..120).contains(&k)), 7);
    let query = query.entries(250..=300).operation("read");
    assert_eq!(check(&world, &image, &query, |k| k % 21 == 3 && (83..=100).contains(&k)), 1);
}

#[test]
fn several_values_are_looked_up_and_beginnings_of_values_are_not() {
    let (world, image) = log();
    let query = Query::new().subject("user_3").subject("rare").subject("nobody");
    assert_eq!(check(&world, &image, &query, |k| k % 7 == 3 || k % 50 == 17), 24);
    let query = query.operation("delete").operation("write");
    check(&world, &image, &query, |k| (k % 7 == 3 || k % 50 == 17) && k % 3 != 0);
    // Any block may have what begins so, and what the index does not have.
    let query = Query::new().subject("rare").begins_with(TextField::Subject, "user_3");
    check(&world, &image, &query, |_| true);
    check(&world, &image, &Query::new().actor("ada"), |_| true);
    // Other fields still narrow that down.
    let query = Query::new().begins_with(TextField::Subject, "user_").operation("write");
    check(&world, &image, &query, |k| k % 3 == 1);
}

#[test]
fn times_and_numbers_are_pruned_by_commitments_alone() {
    let (world, image) = log();
    for image in [&image, &without_index(&image)] {
        let q = Query::new;
        assert_eq!(check(&world, image, &q().entries(31..=36), |k| (10..=12).contains(&k)), 6);
        assert_eq!(check(&world, image, &q().entries(449..=9000), |k| k == 149), 1);
        assert_eq!(check(&world, image, &q().entries(450..=9000), |_| false), 0);
        #[allow(clippy::reversed_empty_ranges)]
        let none = q().entries(36..=31);
        assert_eq!(check(&world, image, &none, |_| false), 0);
        // Block 10 is of the seconds 1000 to 1009.
        let seconds = |from: i64, to: i64| q().from(from * SECOND).to(to * SECOND);
        assert_eq!(check(&world, image, &seconds(1000, 1010), |k| k == 10), 3);
        assert_eq!(check(&world, image, &seconds(910, 1000), |_| false), 0);
        assert_eq!(check(&world, image, &seconds(910, 1000).to(1000 * SECOND + 1), |k| k == 10), 1);
        assert_eq!(check(&world, image, &seconds(1009, 1100), |k| k == 10), 1);
        assert_eq!(check(&world, image, &seconds(1010, 1100), |_| false), 0);
        assert_eq!(check(&world, image, &q().to(i64::MIN), |_| false), 0);
        assert_eq!(check(&world, image, &q().from(i64::MAX), |_| false), 0);
    }
}

#[test]
fn what_was_read_is_told_to_the_byte() {
    for (world, image) in [log(), rotated()] {
        let read = |query: &Query| answer(&world.reader(image.clone()), query).unwrap().1;
        // Checkpoint and bundles, those three times, and what the last epoch's frame says of `[log]`.
        let bundle = format!("tile/entries/000.p/{}", frames(&image).len());
        let last = frames(&image).into_iter().rfind(|frame| frame.kind == FrameKind::Epoch).unwrap();
        let base = image.get("checkpoint").len() + 3 * image.get(&bundle).len() + last.body_length as usize;
        let nothing = read(&Query::new().to(i64::MIN));
        assert_eq!((nothing.bytes_read, nothing.blocks_read), (base as u64, 0));

        let blocks = blocks(&image);
        let frames = frames(&image);
        let epoch = |number: u64| frames[number as usize].body_length;
        let one = read(&Query::new().entries(33..=33));
        assert_eq!(one.bytes_read, base as u64 + epoch(blocks[11].epoch) + blocks[11].body_length);

        let bodies = |of: FrameKind| {
            frames.iter().filter(|frame| frame.kind == of).map(|frame| frame.body_length).sum::<u64>()
        };
        let epochs = base as u64 + bodies(FrameKind::Epoch);
        assert_eq!(read(&Query::new()).bytes_read, epochs + bodies(FrameKind::Block));

        // Of the index, all parts: each is of frames of the log.
        let index = index_files(&image).iter().map(|path| image.get(path).len() as u64).sum::<u64>();
        assert_eq!(read(&Query::new().subject("nobody")).bytes_read, epochs + index);
        let rare =
            blocks.iter().enumerate().filter(|(k, _)| k % 50 == 17).map(|(_, block)| block.body_length);
        assert_eq!(read(&Query::new().subject("rare")).bytes_read, epochs + index + rare.sum::<u64>());
    }
}

#[test]
fn segments_by_rotation_are_read_like_any_other() {
    let (world, image) = rotated();
    let segments = image.paths().iter().filter(|path| path.ends_with(".seg")).count();
    assert!(segments > 2 && index_files(&image).len() == segments, "{segments}");
    assert_eq!(check(&world, &image, &Query::new().subject("rare"), |k| k % 50 == 17), 1);
    assert_eq!(check(&world, &image, &Query::new().operation("write"), |k| k % 3 == 1), 13);
}

#[test]
fn a_log_without_entries_has_none_to_give() {
    let world = World::new(3);
    // No frame at all, then an epoch's alone.
    for opened in [false, true] {
        if opened {
            world.open().close().unwrap();
        }
        let image = world.image();
        assert_eq!(frames(&image).len(), usize::from(opened));
        for query in [Query::new(), Query::new().subject("user_1")] {
            let (found, report) = answer(&world.reader(image.clone()), &query).unwrap();
            assert_eq!((found.len(), report.blocks, report.blocks_read), (0, 0, 0));
        }
    }
}

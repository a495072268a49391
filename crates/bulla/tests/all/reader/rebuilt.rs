//! A reader that had to read blocks makes up what the index lacks.

use super::world::{Row, World, answer, index_files, without_index, writable};
use bulla::store::Store;
use bulla::{FindingKind, Query, ReadReport, Severity};
use bulla_testkit::Memory;

/// Blocks of each of the log's two epochs: more than one part covers.
const BLOCKS: u64 = 70;

fn log() -> World {
    let mut world = World::new(21);
    for _ in 0..2 {
        let log = world.open();
        for block in 0..BLOCKS {
            let row = Row::new(0, "read").subject(&format!("user_{block}")).subject("all");
            world.block(&log, vec![row], 1);
        }
        log.close().unwrap();
    }
    world
}

fn read(world: &World, store: &Memory, query: &Query) -> ReadReport {
    let (found, report) = answer(&world.reader(store.clone()), query).unwrap();
    let numbers = found.into_iter().map(|(number, _)| number).collect::<Vec<_>>();
    assert_eq!(numbers, world.expected(query), "{query:?}");
    report
}

fn has_index(store: &Memory) -> bool {
    store.list("index").is_ok_and(|items| !items.is_empty())
}

#[test]
fn a_missing_index_is_made_up_by_the_query_that_missed_it() {
    let world = log();
    let store = writable(&without_index(&world.image()));
    let query = Query::new().subject("user_5");
    // What needs no index makes none.
    read(&world, &store, &Query::new().entries(0..=20));
    assert!(!has_index(&store));
    assert_eq!(read(&world, &store, &query).blocks_read, 2 * BLOCKS);
    assert_eq!(read(&world, &store, &query).blocks_read, 2);
    assert_eq!(world.verify(store.clone()).run().unwrap().findings, []);
    let image = crate::damage::image::Image::of_store(&store);
    assert_eq!(index_files(&image), index_files(&world.image()));
}

#[test]
fn what_is_made_up_is_what_was_read() {
    let world = log();
    let store = writable(&without_index(&world.image()));
    // Of the second epoch alone, a piece at a time.
    for first in [100, 90, 70] {
        let query = Query::new().subject("all").entries(first..=first + 9);
        assert_eq!(read(&world, &store, &query).blocks_read, 10);
        let query = Query::new().subject("nobody").entries(first..=first + 9);
        assert_eq!(read(&world, &store, &query).blocks_read, 0);
    }
    assert_eq!(read(&world, &store, &Query::new().subject("nobody")).blocks_read, 2 * BLOCKS - 30);
    assert_eq!(read(&world, &store, &Query::new().subject("nobody")).blocks_read, 0);
    assert_eq!(world.verify(store).run().unwrap().findings, []);
}

#[test]
fn damage_is_made_good_with_the_parts_around_it_kept() {
    let world = log();
    let image = world.image();
    for path in index_files(&image) {
        let length = image.get(&path).len();
        for at in (0..length).step_by(23).chain([length - 1]) {
            let store = writable(&image.flipped(&path, at, |byte| !byte));
            let found = world.verify(store.clone()).run().unwrap().findings;
            assert!(
                !found.is_empty() && found.iter().all(|one| one.kind == FindingKind::IndexDamaged),
                "{found:?}"
            );
            assert!(found.iter().all(|one| one.severity == Severity::Notice));
            let query = Query::new().subject("user_5");
            let report = read(&world, &store, &query);
            assert!(report.blocks_read > 2 && report.blocks_read <= BLOCKS + 1, "{path} at {at}: {report:?}");
            assert_eq!(read(&world, &store, &query).blocks_read, 2, "{path} at {at}");
            let found = world.verify(store).run().unwrap().findings;
            assert!(found.is_empty(), "{path} at {at}: {found:?}");
        }
    }
}

#[test]
fn nothing_is_made_up_beside_a_writer() {
    let world = log();
    let store = writable(&without_index(&world.image()));
    let query = Query::new().subject("user_5");
    let writer = store.lock("LOCK").unwrap();
    for _ in 0..2 {
        assert_eq!(read(&world, &store, &query).blocks_read, 2 * BLOCKS);
        assert!(!has_index(&store));
    }
    drop(writer);
    read(&world, &store, &query);
    assert!(has_index(&store));
}

#[test]
fn nothing_fails_where_nothing_can_be_written() {
    let world = log();
    // An image takes no writes.
    let image = without_index(&world.image());
    for _ in 0..2 {
        let (found, report) = answer(&world.reader(image.clone()), &Query::new().subject("user_5")).unwrap();
        assert_eq!((found.len(), report.blocks_read), (2, 2 * BLOCKS));
    }
}

#[test]
fn a_query_that_meets_damage_leaves_no_index_of_it() {
    let world = log();
    let image = without_index(&world.image());
    let (path, at) = super::world::body_of(&image, &super::world::blocks(&image)[3]);
    let store = writable(&image.flipped(&path, at, |byte| !byte));
    assert!(answer(&world.reader(store.clone()), &Query::new().subject("user_5")).is_err());
    assert!(!has_index(&store));
}

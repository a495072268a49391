//! Whatever the index says or does not say, the answer is the same.

use super::world::{
    Row, World, answer, exported, index_files, some_log, some_query, without_index, writable,
};
use crate::damage::image::Image;
use crate::helpers::{Rng, in_full};
use bulla::Query;
use proptest::prelude::*;

/// The answer on each of these images is the one on the first, which is `world`'s; more blocks may be read for it.
fn check_alike(world: &World, image: &Image, others: &[Image], queries: &[Query]) {
    let all = exported(image, &world.key, false);
    for query in queries {
        let numbers = world.expected(query);
        let expected = all.iter().filter(|(number, _)| numbers.binary_search(number).is_ok()).cloned();
        let expected = expected.collect::<Vec<_>>();
        let (found, first) = answer(&world.reader(image.clone()), query).unwrap();
        assert_eq!(found, expected, "{query:?}");
        for (at, other) in others.iter().enumerate() {
            let (found, report) = answer(&world.reader(other.clone()).threads(1), query).unwrap();
            assert_eq!(found, expected, "{query:?}, image {at}");
            assert!(report.blocks_read >= first.blocks_read, "{query:?}, image {at}");
            assert!(report.blocks_read <= first.blocks, "{query:?}, image {at}");
        }
    }
}

/// Index files exchanged among epochs.
fn swapped(image: &Image) -> Image {
    let files = index_files(image);
    let contents = files.iter().map(|path| image.get(path).to_vec()).collect::<Vec<_>>();
    let next = contents.into_iter().cycle().skip(1);
    files.iter().zip(next).fold(image.clone(), |image, (path, content)| image.with(path, content))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if in_full() { 24 } else { 12 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_query_is_answered_as_by_looking_at_every_entry(seed in any::<u64>()) {
        let world = some_log(seed);
        let image = world.image();
        let mut rng = Rng(!seed);
        let queries = (0..8).map(|_| some_query(&mut rng, world.rows.len() as u64)).collect::<Vec<_>>();
        let foreign = some_log(seed ^ 1).image();
        let mut mixed = without_index(&image);
        for path in index_files(&foreign) {
            mixed.put(&path, foreign.get(&path).to_vec());
        }
        let others = [without_index(&image), swapped(&image), mixed];
        check_alike(&world, &image, &others, &queries);

        // What a reader makes up says what the writer said.
        let store = writable(&without_index(&image));
        let (_, report) = answer(&world.reader(store.clone()), &Query::new().operation("none")).unwrap();
        prop_assert_eq!(report.blocks_read, report.blocks);
        for query in &queries {
            let (found, read) = answer(&world.reader(store.clone()), query).unwrap();
            let (expected, first) = answer(&world.reader(image.clone()), query).unwrap();
            prop_assert_eq!(found, expected);
            prop_assert_eq!(read.blocks_read, first.blocks_read, "{:?}", query);
        }
        prop_assert_eq!(world.verify(store).run().unwrap().findings, []);
    }
}

/// Two epochs of two blocks each.
fn small_log() -> World {
    let mut world = World::new(5);
    for epoch in 0..2 {
        let log = world.open();
        for block in 0..2 {
            let subject = format!("user_{epoch}{block}");
            let row = Row::new(epoch * 10, ["read", "write"][block]).subject(&subject);
            world.block(&log, vec![row, Row::new(7, "login").stream("web")], 1);
        }
        log.close().unwrap();
    }
    world
}

fn queries() -> [Query; 5] {
    let q = Query::new;
    [
        q().subject("user_00"),
        q().subject("user_11"),
        q().operation("write"),
        q().stream("web").operation("login"),
        q().subject("nobody"),
    ]
}

#[test]
fn no_byte_of_the_index_changes_an_answer() {
    let world = small_log();
    let image = world.image();
    let mut damaged = Vec::new();
    for path in index_files(&image) {
        for at in 0..image.get(&path).len() {
            damaged.extend([0x01, 0x80, 0xff].map(|change| image.flipped(&path, at, |byte| byte ^ change)));
        }
    }
    assert!(damaged.len() > 600, "{}", damaged.len());
    check_alike(&world, &image, &damaged, &queries());
}

#[test]
fn no_cut_or_end_of_the_index_changes_an_answer() {
    let world = small_log();
    let image = world.image();
    let mut damaged = Vec::new();
    for path in index_files(&image) {
        let content = image.get(&path);
        damaged.extend((0..content.len()).map(|end| image.with(&path, content[..end].to_vec())));
        damaged.push(image.with(&path, [content, content].concat()));
        damaged.push(image.with(&path, [content, &[0; 300]].concat()));
        damaged.push(image.with(&path, [&[0; 300], content].concat()));
    }
    check_alike(&world, &image, &damaged, &queries());
}

#[test]
fn an_index_that_is_no_file_changes_no_answer() {
    let world = small_log();
    let image = world.image();
    let mut broken = without_index(&image);
    for path in index_files(&image) {
        broken.put(&format!("{path}/within"), Vec::new());
    }
    check_alike(&world, &image, &[broken, without_index(&image).with("index", Vec::new())], &queries());
}

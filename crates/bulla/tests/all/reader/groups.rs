//! Logs whose entries are grouped by their data subjects: the same answers as of any other log, as long as the keys
//! are there.

use super::world::*;
use crate::damage::world::Mask;
use crate::helpers::{Rng, in_full};
use bulla::keys::group::SharedOnly;
use bulla::{ErrorKind, Export, Query, RedactedEntries};
use proptest::prelude::*;
use std::sync::Arc;

pub(super) fn log(seed: u64, blocks: u64) -> World {
    let mut rng = Rng(seed);
    let mut world = World::grouped(seed);
    for epoch in 0..2 {
        let log = world.open();
        for _ in 0..blocks / 2 + epoch {
            let rows = (0..1 + rng.below(60)).map(|_| varied(&mut rng)).collect();
            world.block(&log, rows, 1 + rng.below(3) as usize);
        }
        log.close().unwrap();
    }
    world
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if in_full() { 20 } else { 10 }))]

    #[test]
    fn any_query_is_answered_as_by_looking_at_every_entry(seed in any::<u64>()) {
        let world = log(seed, 6);
        let image = world.image();
        let mut rng = Rng(seed ^ 1);
        let queries = (0..12).map(|_| some_query(&mut rng, world.rows.len() as u64)).collect::<Vec<_>>();
        for query in queries.iter().chain([&Query::new()]) {
            let expected = world.expected(query);
            for image in [&image, &without_index(&image)] {
                let (found, report) = answer(&world.reader(image.clone()), query).unwrap();
                prop_assert_eq!(found.iter().map(|(number, _)| *number).collect::<Vec<_>>(), &expected[..]);
                prop_assert_eq!(report.withheld.total(), 0);
            }
        }
    }
}

#[test]
fn a_log_with_groups_verifies() {
    let world = log(3, 8);
    let report = world.verify(world.image()).run().unwrap();
    assert!(report.ok && report.findings.is_empty(), "{:?}", report.findings);
    assert_eq!(report.entries, world.rows.len() as u64);
}

#[test]
fn a_subject_s_entries_are_found_in_the_blocks_that_have_some() {
    let mut world = World::grouped(5);
    let log = world.open();
    for block in 0..20 {
        let rows = (0..10).map(|row| Row::new(row, "read").subject(&format!("user_{}", block % 5))).collect();
        world.block(&log, rows, 1);
    }
    log.close().unwrap();
    let (found, report) = answer(&world.reader(world.image()), &Query::new().subject("user_3")).unwrap();
    assert_eq!((found.len(), report.blocks_read, report.blocks), (40, 4, 20));
    let (found, report) = answer(&world.reader(world.image()), &Query::new().subject("nobody")).unwrap();
    assert_eq!((found.len(), report.blocks_read), (0, 0));
}

#[test]
fn without_keys_nothing_is_given_out_and_with_none_on_purpose_what_is_shared() {
    let world = log(7, 4);
    let error = answer(&reader(world.image(), &world.key), &Query::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoKey, "{error}");
    let shared = reader(world.image(), &world.key).group_keys(Arc::new(SharedOnly));
    let (found, report) = answer(&shared, &Query::new()).unwrap();
    assert_eq!(found.len(), world.rows.len());
    let concerned = world.rows.iter().filter(|row| row.subjects.iter().flatten().count() > 0).count();
    assert_eq!(report.withheld, RedactedEntries { not_given: concerned as u64, ..Default::default() });
    for name in ["usér_3", "location"] {
        let has = |(_, line): &&(u64, Vec<u8>)| String::from_utf8_lossy(line).contains(name);
        assert_eq!(found.iter().any(|one| has(&one)), name == "location", "{name}");
    }
}

#[test]
fn whose_key_is_gone_is_not_found_and_everybody_else_is() {
    let world = log(11, 8);
    let all = Query::new();
    let (before, _) = answer(&world.reader(world.image()), &all).unwrap();
    let gone = world.expected(&Query::new().subject("user_1"));
    world.register.as_ref().unwrap().lose("user_1");
    let (after, report) = answer(&world.reader(world.image()), &all).unwrap();
    let lost = RedactedEntries { key_lost: gone.len() as u64, ..Default::default() };
    assert_eq!((after.len(), report.withheld), (before.len(), lost));
    for ((number, line), (_, was)) in after.iter().zip(&before) {
        match gone.contains(number) {
            true => assert!(!String::from_utf8_lossy(line).contains("location"), "{number}"),
            false => assert_eq!(line, was),
        }
    }
    let (found, _) = answer(&world.reader(world.image()), &Query::new().subject("user_1")).unwrap();
    assert!(found.is_empty());
    assert!(world.verify(world.image()).run().unwrap().ok, "every hash stands");
}

#[test]
fn an_export_says_where_personal_fields_are_withheld() {
    let world = log(17, 4);
    let export = Export::open_store(Arc::new(world.image())).unwrap().key(world.key.clone());
    let mut out = Vec::new();
    export.identity(Arc::new(Mask)).group_keys(Arc::new(SharedOnly)).run(&mut out).unwrap();
    let lines = out.split_inclusive(|&byte| byte == b'\n').map(|line| serde_json::from_slice(line).unwrap());
    let withheld = lines.filter(|line: &serde_json::Value| line["withheld"] == "not-given").count();
    let concerned = world.rows.iter().filter(|row| row.subjects.iter().flatten().count() > 0).count();
    assert_eq!(withheld, concerned);
}

//! What somebody with the log's directory alone can put into it: another `[log]`, and files among the segments.

use super::world::{Row, World, answer, reader};
use crate::damage::image::Image;
use crate::damage::world::Mask;
use bulla::keys::group::{GroupKeys, SharedOnly};
use bulla::{ErrorKind, Export, FindingKind, Query, Reader, Result, info_of};
use std::sync::Arc;

/// A log with erasure, in two segments.
fn grouped(seed: u64) -> World {
    let mut world = World::grouped(seed);
    for _ in 0..2 {
        let log = world.open();
        world.block(&log, (0..4).map(|row| Row::new(0, "read").subject(&format!("user_{row}"))).collect(), 1);
        log.rotate().unwrap();
        world.block(&log, vec![Row::new(0, "write").subject("user_1")], 1);
        log.close().unwrap();
    }
    world
}

/// Every way to read a log, with these keys of data subjects.
fn readings(
    world: &World,
    image: &Image,
    keys: Option<Arc<dyn GroupKeys>>,
) -> Vec<(&'static str, Result<()>)> {
    let reader = || -> Reader {
        let reader = reader(image.clone(), &world.key);
        keys.iter().fold(reader, |reader, keys| reader.group_keys(keys.clone()))
    };
    let export = |query: Query| {
        let export =
            Export::open_store(Arc::new(image.clone())).unwrap().identity(Arc::new(Mask)).query(query);
        let export = keys.iter().fold(export, |export, keys| export.group_keys(keys.clone()));
        let mut out = Vec::new();
        let exported = export.run(&mut out).map(|_| ());
        assert!(exported.is_ok() || out.is_empty(), "something was given out before the refusal");
        exported
    };
    let subject = || Query::new().subject("user_1");
    vec![
        ("query", answer(&reader(), &subject()).map(|_| ())),
        ("query of all", answer(&reader(), &Query::new()).map(|_| ())),
        ("export", export(Query::new())),
        ("export of somebody", export(subject())),
        ("prove", reader().prove(&subject()).map(|_| ())),
        ("event", reader().prove_event(0).map(|_| ())),
        ("grant", reader().grant(&subject()).map(|_| ())),
        ("tail", reader().follow(&subject()).map(|_| ())),
        ("consistency", reader().prove_consistency(image.get("checkpoint")).map(|_| ())),
        ("info", info_of(Arc::new(image.clone())).map(|_| ())),
    ]
}

#[test]
fn no_reader_answers_by_an_edited_configuration() {
    let world = grouped(81);
    let image = world.image();
    let text = String::from_utf8(image.get("bulla.toml").to_vec()).unwrap();
    let edits = [
        ("erasure = \"on\"", "erasure = \"off\""),
        ("# What", "# That"),
        ("\n[settings]\n", "\n[log.fields]\nclient = \"drop\"\n\n[settings]\n"),
    ];
    let every_keys: [Option<Arc<dyn GroupKeys>>; 3] =
        [None, Some(Arc::new(SharedOnly)), Some(world.register.clone().unwrap())];
    for (from, to) in edits {
        assert!(text.contains(from), "{text}");
        let edited = image.with("bulla.toml", text.replacen(from, to, 1).into_bytes());
        for keys in &every_keys {
            for (what, read) in readings(&world, &edited, keys.clone()) {
                let error = read.expect_err(what);
                assert_eq!(error.kind(), ErrorKind::Tampered, "{what}: {error}");
                assert!(error.to_string().contains("config-mismatch"), "{what}: {error}");
            }
        }
        let report = world.verify(edited.clone()).run().unwrap();
        let told = report.findings.iter().any(|finding| finding.kind == FindingKind::ConfigMismatch);
        assert!(!report.ok && told, "{:#?}", report.findings);
        // What is salvaged is said to be vouched for by nobody.
        let salvage = Export::open_store(Arc::new(edited)).unwrap().identity(Arc::new(Mask)).salvage(true);
        assert!(!salvage.group_keys(Arc::new(SharedOnly)).run(&mut Vec::new()).unwrap().signed);
    }
    let settings = image.with("bulla.toml", format!("{text}\nlinger = \"9 ms\"\n").into_bytes());
    let keys = world.register.clone().unwrap();
    for (what, read) in
        readings(&world, &settings, Some(keys)).into_iter().filter(|(what, _)| *what != "event")
    {
        read.unwrap_or_else(|error| panic!("[settings] are free: {what}: {error}"));
    }
}

/// Who has no keys of data subjects cannot know that a group is not somebody's.
#[test]
fn a_grouped_block_is_never_read_as_nothing_there() {
    let world = grouped(82);
    for image in [world.image(), super::world::without_index(&world.image())] {
        let without_keys = reader(image.clone(), &world.key);
        for query in [Query::new().subject("user_1"), Query::new().subject("nobody"), Query::new()] {
            let error = answer(&without_keys, &query).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NoKey, "{query:?}: {error}");
        }
        // With keys it is known.
        let (found, _) = answer(&world.reader(image.clone()), &Query::new().subject("nobody")).unwrap();
        assert!(found.is_empty());
    }
}

/// A file without a byte is no segment, for anybody, wherever its name stands.
#[test]
fn an_empty_file_among_the_segments_counts_for_nothing() {
    let world = grouped(83);
    let image = world.image();
    let keys: Arc<dyn GroupKeys> = world.register.clone().unwrap();
    let segments = image.paths().into_iter().filter(|path| path.ends_with(".seg")).collect::<Vec<_>>();
    assert!(segments.len() > 1, "{segments:?}");
    let frames = super::world::frames(&image).len() as u64;
    let before = answer(&world.reader(image.clone()), &Query::new()).unwrap().0;
    let mut names =
        vec![format!("{frames:020}.seg"), format!("{:020}.seg", frames + 7), format!("{:020}.seg", u64::MAX)];
    for frame in 0..frames {
        // Between two frames of a segment, and before and behind one that begins there.
        names.extend([
            format!("{frame:020}.seg"),
            format!("{frame:020}-1.seg"),
            format!("{frame:020}-99.seg"),
        ]);
    }
    let mut count = 0;
    for name in names.iter().filter(|name| !segments.contains(&format!("segments/{name}"))) {
        let with = image.with(&format!("segments/{name}"), Vec::new());
        for (what, read) in readings(&world, &with, Some(keys.clone())) {
            let refused = read.err().filter(|_| what != "event");
            assert!(refused.is_none(), "{what} with {name}: {refused:?}");
        }
        let read = answer(&world.reader(with.clone()), &Query::new()).unwrap().0;
        assert_eq!(read, before, "{name}");
        let report = world.verify(with.clone()).group_keys(keys.clone()).run().unwrap();
        assert_eq!((report.ok, &report.findings[..]), (true, &[][..]), "{name}");
        assert_eq!(info_of(Arc::new(with.clone())).unwrap().segments, segments.len() as u64, "{name}");
        // The writer goes on as well, and what it wrote is read.
        let moved = world.again(&with);
        let log = moved.open();
        drop(log.producer().unwrap());
        log.close().unwrap_or_else(|error| panic!("append with {name}: {error}"));
        let report = world.verify(moved.image()).run().unwrap();
        assert!(report.ok && report.tree_size > frames, "{name}: {:#?}", report.findings);
        count += 1;
    }
    assert!(count > 20, "{count}");
}

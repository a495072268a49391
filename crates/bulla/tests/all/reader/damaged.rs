//! Damage where a query reads: nothing is given out. Damage elsewhere: nothing is amiss.

use super::world::{
    Answer, Row, World, answer, blocks, body_of, exported, frames, index_files, reader, some_log,
    without_index,
};
use crate::damage::image::Image;
use crate::damage::world::{self, Made, Mask};
use crate::lying;
use bulla::environment::KeyWrap;
use bulla::keys::epoch::EpochSecret;
use bulla::keys::recipients::Identity;
use bulla::store::{Item, Lock, Store, StoreFile};
use bulla::{Delivery, ErrorKind, FindingKind, Matches, Query, Reader, Result, Verify};
use bulla_proof::commitment::{Commitment, FrameKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Two epochs of three blocks of two entries each.
fn log() -> (World, Image) {
    let mut world = World::new(31);
    for epoch in 0..2 {
        let log = world.open();
        for block in 0..3 {
            let row = Row::new(0, "read").subject("all").subject(&format!("user_{}", epoch * 3 + block));
            world.block(&log, vec![row.clone(), row], 1);
        }
        log.close().unwrap();
    }
    let image = world.image();
    (world, image)
}

/// The entries of a block.
fn of(block: &Commitment) -> Query {
    Query::new().entries(block.first_entry..=block.first_entry + block.entries - 1)
}

/// Runs a query that has to fail, with nothing given out, however little is held back.
fn refused(world: &World, image: &Image, query: &Query) -> bulla::Error {
    let mut errors = Vec::new();
    for held in [0, 1 << 20] {
        let reader = world.reader(image.clone()).hold_back(held);
        let error = reader.for_each(query, |number, _| panic!("entry {number} was given out")).unwrap_err();
        let message = error.to_string();
        errors.push(error);
        assert_eq!(message, errors[0].to_string());
    }
    errors.remove(0)
}

#[test]
fn damage_in_a_body_is_met_by_who_reads_it_and_by_nobody_else() {
    let (world, image) = log();
    let blocks = blocks(&image);
    for block in &blocks {
        let (segment, at) = body_of(&image, block);
        let name = segment.strip_prefix("segments/").unwrap();
        for place in (at..at + block.body_length as usize).step_by(7) {
            let damaged = image.flipped(&segment, place, |byte| byte ^ 0x10);
            for query in [of(block), Query::new(), Query::new().subject("all")] {
                let error = refused(&world, &damaged, &query);
                assert_eq!(error.kind(), ErrorKind::Tampered, "{error}");
                let frame = format!("frame {}", block.frame);
                assert!(error.to_string().contains(name) && error.to_string().contains(&frame), "{error}");
            }
            for other in blocks.iter().filter(|other| *other != block) {
                let (found, _) = answer(&world.reader(damaged.clone()), &of(other)).unwrap();
                assert_eq!(found, answer(&world.reader(image.clone()), &of(other)).unwrap().0);
            }
        }
    }
}

/// The last one says which `[log]` the log has, which everybody reads.
#[test]
fn damage_in_an_epoch_is_met_by_who_reads_a_block_of_it() {
    let (world, image) = log();
    let blocks = blocks(&image);
    let epochs = frames(&image).into_iter().filter(|frame| frame.kind == FrameKind::Epoch);
    let epochs = epochs.collect::<Vec<_>>();
    let last = epochs.last().unwrap().frame;
    for epoch in epochs {
        let (segment, at) = body_of(&image, &epoch);
        for place in (at..at + epoch.body_length as usize).step_by(11) {
            let damaged = image.flipped(&segment, place, |byte| byte ^ 0x10);
            for block in &blocks {
                match block.epoch == epoch.frame || epoch.frame == last {
                    true => assert_eq!(refused(&world, &damaged, &of(block)).kind(), ErrorKind::Tampered),
                    false => drop(answer(&world.reader(damaged.clone()), &of(block)).unwrap()),
                }
            }
        }
    }
}

#[test]
fn who_throws_away_after_an_error_gets_the_blocks_before_it() {
    let (world, image) = log();
    let blocks = blocks(&image);
    let (segment, at) = body_of(&image, &blocks[4]);
    let damaged = image.flipped(&segment, at, |byte| !byte);
    let mut given = 0;
    let count = |matches: &Matches<'_>| matches.len();
    let error = world.reader(damaged).read(&Query::new(), Delivery::Discardable, count, |entries| {
        given += entries;
        Ok(())
    });
    assert_eq!((error.unwrap_err().kind(), given), (ErrorKind::Tampered, 8));
}

#[test]
fn what_is_too_much_to_be_held_back_is_read_twice_and_is_the_same() {
    let world = some_log(77);
    // Without an index, so that all blocks are read for some queries, and those with matches once more.
    let image = without_index(&world.image());
    let bundle = image.get(&format!("tile/entries/000.p/{}", frames(&image).len())).len() as u64;
    for query in [Query::new(), Query::new().operation("read"), Query::new().subject("user_1")] {
        let once = answer(&world.reader(image.clone()), &query).unwrap();
        let matching = blocks(&image).into_iter().filter(|block| {
            let numbers = block.first_entry..block.first_entry + block.entries;
            once.0.iter().any(|(number, _)| numbers.contains(number))
        });
        let again = bundle + matching.map(|block| block.body_length).sum::<u64>();
        for held in [0, 100, 5_000] {
            let (found, report) = answer(&world.reader(image.clone()).hold_back(held), &query).unwrap();
            assert_eq!((&found, report.blocks_read), (&once.0, once.1.blocks_read), "{held}");
            let twice = report.bytes_read - once.1.bytes_read;
            assert!(twice == again || (held > 0 && twice == 0), "{held}: {twice} of {again}");
        }
    }
}

#[test]
fn a_block_without_matches_is_not_rendered() {
    let (world, image) = log();
    for delivery in [Delivery::Checked, Delivery::Discardable] {
        for held in [0, 1 << 20] {
            let mut pieces = Vec::new();
            let render = |matches: &Matches<'_>| matches.iter().map(|(number, _)| number).collect::<Vec<_>>();
            // The index leaves all blocks: the numbers do not.
            let query = Query::new().subject("all").entries(3..=4);
            let reader = world.reader(image.clone()).hold_back(held);
            reader
                .read(&query, delivery, render, |piece| {
                    pieces.push(piece);
                    Ok(())
                })
                .unwrap();
            assert_eq!(pieces, [[3], [4]]);
            let none = Query::new().subject("all").operation("read").from(1).to(2);
            reader.read(&none, delivery, render, |piece| panic!("{piece:?}")).unwrap();
        }
    }
}

#[test]
fn the_list_of_frames_is_authenticated_before_it_is_believed() {
    let (world, image) = log();
    let query = Query::new().subject("user_4");
    let expected = answer(&world.reader(image.clone()), &query).unwrap();
    for path in image.paths() {
        let bundle = path == format!("tile/entries/000.p/{}", frames(&image).len());
        let step = if bundle || path == "checkpoint" { 1 } else { 37 };
        if index_files(&image).contains(&path)
            || path.ends_with(".seg")
            || path == "bulla.toml"
            || path == "LOCK"
        {
            continue;
        }
        for at in (0..image.get(&path).len()).step_by(step) {
            let damaged = image.flipped(&path, at, |byte| byte ^ 0x01);
            match step {
                1 => assert_eq!(refused(&world, &damaged, &query).kind(), ErrorKind::Tampered, "{path}@{at}"),
                // Tiles are not read.
                _ => assert_eq!(answer(&world.reader(damaged), &query).unwrap().0, expected.0, "{path}@{at}"),
            }
        }
        if step == 1 {
            let error = refused(&world, &image.without(&path), &query);
            assert_eq!(error.kind(), ErrorKind::Tampered);
            assert!(error.to_string().contains(&path), "{error}");
        }
    }
}

struct Stranger;

impl Identity for Stranger {
    fn unwrap(&self, _: &[u8]) -> Result<Option<EpochSecret>> {
        Ok(None)
    }
}

struct Mistaken;

impl Identity for Mistaken {
    fn unwrap(&self, _: &[u8]) -> Result<Option<EpochSecret>> {
        Ok(Some(EpochSecret::from([7; 32])))
    }
}

#[test]
fn keys_of_others_open_nothing() {
    let (world, image) = log();
    let other = some_log(4);
    let kind =
        |reader: Reader| reader.for_each(&Query::new(), |_, _| panic!("given out")).unwrap_err().kind();
    assert_eq!(kind(reader(image.clone(), &other.key)), ErrorKind::Tampered, "another log's key");
    let store = || Reader::open_store(Arc::new(image.clone())).unwrap().key(world.key.clone());
    assert_eq!(kind(store()), ErrorKind::NoKey, "no identity");
    assert_eq!(kind(store().identity(Arc::new(Stranger))), ErrorKind::NoKey, "not a recipient's");
    assert_eq!(
        kind(store().identity(Arc::new(Mistaken))),
        ErrorKind::Tampered,
        "a key that was not committed to"
    );
    assert!(Mask.wrap(&[], &[7; 32], Duration::ZERO).is_ok());
}

#[test]
fn files_of_another_log_are_refused() {
    let (world, image) = log();
    let (mut other, foreign) = (World::new(32), Image::default());
    let log = other.open();
    (0..6).for_each(|_| other.block(&log, vec![Row::new(0, "read").subject("all"); 2], 1));
    log.close().unwrap();
    drop(foreign);
    let foreign = other.image();
    let segment = "segments/00000000000000000000.seg";
    let bundle = |image: &Image| format!("tile/entries/000.p/{}", frames(image).len());
    for (path, from) in [
        (segment.to_owned(), segment.to_owned()),
        ("checkpoint".to_owned(), "checkpoint".to_owned()),
        (bundle(&image), bundle(&foreign)),
    ] {
        let mixed = image.with(&path, foreign.get(&from).to_vec());
        assert_eq!(refused(&world, &mixed, &Query::new()).kind(), ErrorKind::Tampered, "{path}");
    }
    // All of it is a log, but not the one whose key was given.
    assert_eq!(refused(&world, &foreign, &Query::new()).kind(), ErrorKind::Tampered);
    assert_eq!(answer(&other.reader(foreign), &Query::new()).unwrap().0.len(), 12);
}

/// Thirty blocks in several segments.
fn of_segments(seed: u64) -> (World, Image, Vec<String>) {
    let mut world = World::new(seed);
    let mut rng = crate::helpers::Rng(seed);
    let log = world.open();
    for _ in 0..30 {
        let row = Row::new(0, "read").noise(&mut rng, 8000);
        world.block(&log, vec![row], 1);
    }
    log.close().unwrap();
    let image = world.image();
    let segments = image.paths().into_iter().filter(|path| path.ends_with(".seg")).collect::<Vec<_>>();
    assert!(segments.len() > 3);
    (world, image, segments)
}

/// Asks for each block of a log of which a segment ends at `cut`, or is gone: what is not whole is refused, and called
/// what `verify` calls it, in the same place.
fn check_cut(world: &World, image: &Image, segment: &str, cut: Option<usize>) {
    let damaged = match cut {
        Some(cut) => image.with(segment, image.get(segment)[..cut].to_vec()),
        None => image.without(segment),
    };
    let report = world.verify(damaged.clone()).run().unwrap();
    let told = report.findings.iter().filter(|finding| finding.kind == FindingKind::FramesMissing);
    let told = told.collect::<Vec<_>>();
    assert_eq!(told.len(), 1, "{:#?}", report.findings);
    let what = format!("{segment} cut to {cut:?}");
    let frames = frames(image);
    let is_whole = |frame: &Commitment| {
        let (path, at) = body_of(image, frame);
        path != segment || cut.is_some_and(|cut| at + frame.body_length as usize + 32 <= cut)
    };
    let mut refused = 0;
    // Everybody reads what the last epoch says of `[log]`.
    let last = &frames[frames.last().unwrap().epoch as usize];
    for block in blocks(image) {
        let epoch = &frames[block.epoch as usize];
        let missing = [last, epoch, &block].into_iter().find(|frame| !is_whole(frame));
        match answer(&world.reader(damaged.clone()), &of(&block)) {
            Ok((found, _)) => assert!(missing.is_none() && found.len() == 1, "{what}"),
            Err(error) => {
                let frame = missing.expect(&what).frame;
                assert!((told[0].frame.unwrap()..=told[0].last_frame.unwrap()).contains(&frame), "{what}");
                assert_eq!(error.kind(), ErrorKind::Tampered);
                assert_eq!(error.to_string(), format!("{}; `bulla verify` tells all", told[0]), "{what}");
                refused += 1;
            }
        }
    }
    assert!(refused > 0, "{what}");
}

#[test]
fn a_cut_or_missing_segment_is_named_as_verification_names_it() {
    let (world, image, segments) = of_segments(33);
    for segment in &segments {
        let length = image.get(segment).len();
        for cut in [0, 100, length / 2, length - 33, length - 1] {
            check_cut(&world, &image, segment, Some(cut));
        }
        check_cut(&world, &image, segment, None);
        let error = refused(&world, &image.without(segment), &Query::new());
        assert!(error.to_string().contains("frames-missing"), "{segment}: {error}");
    }
}

#[test]
fn several_missing_segments_are_one_gap_of_the_segment_before() {
    let (world, image, segments) = of_segments(35);
    let damaged = image.without(&segments[1]).without(&segments[2]);
    let report = world.verify(damaged.clone()).run().unwrap();
    assert_eq!(report.findings.len(), 1, "{:#?}", report.findings);
    let error = refused(&world, &damaged, &Query::new());
    assert_eq!(error.to_string(), format!("{}; `bulla verify` tells all", report.findings[0]));
    let name = segments[0].strip_prefix("segments/").unwrap();
    assert_eq!(report.findings[0].segment.as_deref(), Some(name));
    assert_eq!(report.findings[0].offset, Some(image.get(&segments[0]).len() as u64));
}

#[test]
fn what_lies_before_a_missing_segment_is_given_out_first() {
    let (world, image, segments) = of_segments(36);
    let before = blocks(&image).into_iter().filter(|block| body_of(&image, block).0 < segments[2]).count();
    let mut given = 0;
    let count = |matches: &Matches<'_>| matches.len();
    let reader = world.reader(image.without(&segments[2]));
    let error = reader.read(&Query::new(), Delivery::Discardable, count, |entries| {
        given += entries;
        Ok(())
    });
    assert_eq!((error.unwrap_err().kind(), given), (ErrorKind::Tampered, before));
}

#[test]
fn a_cut_or_missing_segment_of_any_kind_is_named() {
    for made in [world::small(), world::whole()] {
        let image = &made.image;
        for segment in image.paths().into_iter().filter(|path| path.ends_with(".seg")) {
            let content = image.get(&segment);
            let cut = |at: usize| image.with(&segment, content[..at].to_vec());
            for (damaged, alike) in [
                (cut(content.len() * 3 / 4), true),
                (image.without(&segment), true),
                // Verification may find frames of it where they had lain before the segment was begun.
                (cut(1), false),
            ] {
                let report = made.verify(&damaged, world::Level::Key).unwrap();
                let told = report.findings.iter().filter(|one| one.kind == FindingKind::FramesMissing);
                let told = told.map(|one| format!("{one}; `bulla verify` tells all")).collect::<Vec<_>>();
                let refused = answer(&reader(damaged, &made.key), &Query::new()).map(|_| ()).err();
                let refused = refused.map(|error| error.to_string());
                match alike {
                    true => assert_eq!(refused.into_iter().collect::<Vec<_>>(), told),
                    false => {
                        let (refused, name) = (refused.unwrap(), segment.strip_prefix("segments/").unwrap());
                        // Not behind its end, where there is a copy of an epoch's frame to pass.
                        let places =
                            [0, 1].map(|at| format!("violation frames-missing in {name} at offset {at},"));
                        assert!(places.iter().any(|place| refused.starts_with(place)), "{refused}");
                    }
                }
            }
        }
    }
}

/// The entries of a whole log, which a reader and a salvage agree on.
///
/// Also how many blocks the index spared somebody.
fn check_complete(made: &Made, image: &Image) -> (Answer, u64) {
    let (found, report) = answer(&reader(image.clone(), &made.key), &Query::new()).unwrap();
    assert_eq!(report.blocks, report.blocks_read);
    assert_eq!(found, exported(image, &made.key, true));
    let has = |line: &[u8], subject: &str| {
        let line: serde_json::Value = serde_json::from_slice(line).unwrap();
        match &line["subject"] {
            serde_json::Value::String(one) => one == subject,
            serde_json::Value::Array(all) => all.iter().any(|one| one == subject),
            _ => false,
        }
    };
    let mut most = 0;
    for subject in (0..8).map(|user| format!("user_{user}")) {
        let query = Query::new().subject(&subject);
        let (some, report) = answer(&reader(image.clone(), &made.key), &query).unwrap();
        let expected = found.iter().filter(|(_, line)| has(line, &subject)).cloned().collect::<Vec<_>>();
        assert_eq!(some, expected, "{subject}");
        most = most.max(report.blocks - report.blocks_read);
    }
    (found, most)
}

#[test]
fn a_log_of_every_kind_of_segment_is_read_completely() {
    for made in [world::small(), world::whole(), world::large()] {
        let (found, spared) = check_complete(&made, &made.image);
        assert_eq!(found, exported(&made.image, &made.key, false));
        assert!(spared > 0, "the index is of use");
    }
}

#[test]
fn a_log_that_was_not_closed_is_read_up_to_its_checkpoint() {
    let mut made_by = world::World::new(41);
    let log = made_by.open();
    made_by.block(&log, 9);
    made_by.block(&log, 3);
    log.flush().unwrap();
    made_by.block(&log, 5);
    made_by.die(log, 2, 100);
    let unclosed = made_by.made();
    let (found, _) = answer(&reader(unclosed.image.clone(), &unclosed.key), &Query::new()).unwrap();
    assert_eq!(found.len(), 12);
    made_by.open().close().unwrap();
    let recovered = made_by.made();
    let (all, _) = check_complete(&recovered, &recovered.image);
    assert_eq!((all.len(), &all[..12]), (19, &found[..]));
}

#[test]
fn a_block_that_is_not_what_was_signed_is_not_read() {
    let workshop = lying::lied_to();
    let reader = || {
        let reader = Reader::open_store(Arc::new(workshop.store.clone())).unwrap();
        reader.identity(workshop.identity()).threads(2)
    };
    for block in 0..lying::BLOCKS as u64 {
        let first = block * lying::ENTRIES;
        let query = Query::new().entries(first..=first + lying::ENTRIES - 1);
        match block == lying::LIE as u64 {
            false => assert_eq!(answer(&reader(), &query).unwrap().0.len() as u64, lying::ENTRIES),
            true => {
                let error = reader().for_each(&query, |_, _| panic!("given out")).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Tampered);
                assert!(error.to_string().contains(FindingKind::UnitsMismatch.name()), "{error}");
                assert_eq!(reader().prove(&query).unwrap_err().kind(), ErrorKind::Tampered);
            }
        }
    }
    assert!(Verify::open_store(Arc::new(workshop.store.clone())).is_ok());
}

/// An image of which one file is another one from the second time on that it is opened.
#[derive(Debug)]
struct Changing(Image, Image, String, AtomicU64);

impl Store for Changing {
    fn open(&self, path: &str) -> std::io::Result<Box<dyn StoreFile>> {
        let again = path == self.2 && self.3.fetch_add(1, Ordering::Relaxed) > 0;
        if again { self.1.open(path) } else { self.0.open(path) }
    }

    fn create(&self, path: &str) -> std::io::Result<Box<dyn StoreFile>> {
        self.0.create(path)
    }

    fn open_write(&self, path: &str) -> std::io::Result<Box<dyn StoreFile>> {
        self.0.open_write(path)
    }

    fn rename(&self, from: &str, to: &str) -> std::io::Result<()> {
        self.0.rename(from, to)
    }

    fn remove(&self, path: &str) -> std::io::Result<()> {
        self.0.remove(path)
    }

    fn list(&self, directory: &str) -> std::io::Result<Vec<Item>> {
        self.0.list(directory)
    }

    fn create_directory(&self, path: &str) -> std::io::Result<()> {
        self.0.create_directory(path)
    }

    fn remove_directory(&self, path: &str) -> std::io::Result<()> {
        self.0.remove_directory(path)
    }

    fn sync_directory(&self, path: &str) -> std::io::Result<()> {
        self.0.sync_directory(path)
    }

    fn lock(&self, path: &str) -> std::io::Result<Box<dyn Lock>> {
        self.0.lock(path)
    }

    fn is_locked(&self, path: &str) -> std::io::Result<bool> {
        self.0.is_locked(path)
    }

    fn describe(&self, path: &str) -> String {
        self.0.describe(path)
    }
}

#[test]
fn a_list_that_changes_after_it_was_authenticated_is_refused() {
    let (world, image) = log();
    let bundle = format!("tile/entries/000.p/{}", frames(&image).len());
    // The times of the last frame: nothing else would notice.
    let at = image.get(&bundle).len() - 152 + 48;
    let changed = image.flipped(&bundle, at, |byte| byte ^ 1);
    let store = Changing(image.clone(), changed, bundle, AtomicU64::new(0));
    let error = world.reader(store).for_each(&Query::new().to(0), |_, _| Ok(())).unwrap_err();
    assert!(error.kind() == ErrorKind::Tampered && error.to_string().contains("changed"), "{error}");
}

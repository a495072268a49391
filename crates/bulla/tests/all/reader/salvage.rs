//! Salvage of what a query asks for: what comes out, and what counts as left out, of which reason.

use super::world::{Answer, Row, World, blocks, body_of, entry_number, frames, some_log, some_query};
use crate::damage::image::Image;
use crate::damage::world::Mask;
use crate::helpers::Rng;
use bulla::keys::epoch::EpochSecret;
use bulla::keys::recipients::Identity;
use bulla::{Export, Exported, FindingKind, Query, Result, Severity, Unopened};
use bulla_proof::commitment::{Commitment, FrameKind};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Opens all epochs but those with these wrapped keys.
#[derive(Clone, Default)]
struct Without(Vec<Vec<u8>>);

impl Without {
    fn epochs(image: &Image, which: &[u64]) -> Self {
        let epochs = frames(image).into_iter().filter(|frame| which.contains(&frame.frame));
        let wrapped = epochs.map(|epoch| {
            assert_eq!(epoch.kind, FrameKind::Epoch);
            let (path, at) = body_of(image, &epoch);
            image.get(&path)[at + 136..at + epoch.body_length as usize].to_vec()
        });
        Without(wrapped.collect())
    }
}

impl Identity for Without {
    fn unwrap(&self, wrapped: &[u8]) -> Result<Option<EpochSecret>> {
        if self.0.iter().any(|known| known == wrapped) { Ok(None) } else { Mask.unwrap(wrapped) }
    }
}

fn salvage(world: &World, image: &Image, identity: &Without, query: &Query) -> (Exported, Answer) {
    let export = Export::open_store(Arc::new(image.clone())).unwrap().key(world.key.clone());
    let export = export.identity(Arc::new(identity.clone())).query(query.clone()).salvage(true);
    let mut out = Vec::new();
    let exported = export.run(&mut out).unwrap();
    let lines = out.split_inclusive(|&byte| byte == b'\n');
    let answer = lines.map(|line| (entry_number(line), line.to_vec())).collect::<Answer>();
    assert_eq!(exported.entries, answer.len() as u64);
    (exported, answer)
}

fn range(block: &Commitment) -> RangeInclusive<u64> {
    block.first_entry..=block.first_entry + block.entries - 1
}

/// How many entries of a block may meet a query, to whoever sees its commitment alone.
fn may_match(block: &Commitment, query: &Query) -> u64 {
    let second = |time: i64| i128::from(time.div_euclid(1_000_000_000));
    let early = query.to.is_some_and(|to| i128::from(block.earliest) > second(to - 1));
    let late = query.from.is_some_and(|from| i128::from(block.latest) < second(from));
    if early || late {
        return 0;
    }
    let numbers = query.first_entry.unwrap_or(0)..=query.last_entry.unwrap_or(u64::MAX);
    range(block).filter(|number| numbers.contains(number)).count() as u64
}

#[test]
fn what_a_query_cannot_mean_does_not_count_as_left_out() {
    let mut spared = 0;
    for seed in 0..12 {
        let world = some_log(seed);
        let whole = world.image();
        let mut rng = Rng(seed + 1000);
        let blocks = blocks(&whole);
        let (mut image, mut lost) = (whole.clone(), BTreeSet::new());
        for block in &blocks {
            if rng.below(4) == 0 {
                let (path, at) = body_of(&whole, block);
                image = image.flipped(&path, at + rng.below(block.body_length) as usize, |byte| byte ^ 4);
                lost.insert(block.frame);
            }
        }
        let segments = whole.paths().into_iter().filter(|path| path.ends_with(".seg")).collect::<Vec<_>>();
        if segments.len() > 2 {
            // Without the last one no block loses its epoch.
            let gone = segments.last().unwrap();
            lost.extend(
                blocks.iter().filter(|block| body_of(&whole, block).0 == *gone).map(|block| block.frame),
            );
            image = image.without(gone);
        }
        for _ in 0..12 {
            let query = some_query(&mut rng, world.rows.len() as u64);
            let damaged = blocks.iter().filter(|block| lost.contains(&block.frame));
            let expected = damaged.clone().map(|block| may_match(block, &query)).sum::<u64>();
            spared += damaged.clone().map(|block| block.entries).sum::<u64>() - expected;
            let (exported, answer) = salvage(&world, &image, &Without::default(), &query);
            assert_eq!((exported.left_out, exported.unopened), (expected, vec![]), "{seed}: {query:?}");
            assert!(exported.signed);
            let gone = damaged.flat_map(range).collect::<BTreeSet<_>>();
            let meant = world.expected(&query);
            let (missing, found) = meant.iter().partition::<Vec<u64>, _>(|number| gone.contains(number));
            assert_eq!(answer.iter().map(|(number, _)| *number).collect::<Vec<_>>(), found, "{query:?}");
            assert!(missing.len() as u64 <= exported.left_out);
            let numbers_alone = Query { first_entry: None, last_entry: None, ..query } == Query::new();
            assert!(!numbers_alone || missing.len() as u64 == exported.left_out);
        }
    }
    assert!(spared > 1000, "{spared}");
}

/// Three epochs of three blocks of two entries each, a second apart.
fn log() -> (World, Image, Vec<u64>) {
    let mut world = World::new(51);
    for _ in 0..3 {
        let log = world.open();
        for _ in 0..3 {
            let time = world.rows.len() as i64 * 1_000_000_000;
            world.block(&log, vec![Row::new(time, "read"), Row::new(time, "write")], 1);
        }
        log.close().unwrap();
    }
    let image = world.image();
    let epochs = frames(&image).into_iter().filter(|frame| frame.kind == FrameKind::Epoch);
    let epochs = epochs.map(|epoch| epoch.frame).collect();
    (world, image, epochs)
}

#[test]
fn times_that_nobody_signed_rule_nothing_out() {
    let (world, image, _) = log();
    let (path, at) = body_of(&image, &blocks(&image)[4]);
    let damaged = image.flipped(&path, at, |byte| byte ^ 1);
    let signature = image.get("checkpoint").len() - 9;
    let unsigned = damaged.flipped("checkpoint", signature, |byte| if byte == b'A' { b'B' } else { b'A' });
    let late = Query::new().from(15_000_000_000);
    for (image, signed, left_out) in [(&damaged, true, 0), (&unsigned, false, 2)] {
        let (exported, answer) = salvage(&world, image, &Without::default(), &late);
        assert_eq!((exported.signed, exported.left_out, answer.len()), (signed, left_out, 2));
    }
    let (exported, _) = salvage(&world, &unsigned, &Without::default(), &Query::new().entries(10..=17));
    assert_eq!(exported.left_out, 0, "a number is what the frame says it is");
}

#[test]
fn a_key_that_is_missing_is_no_damage() {
    let (world, image, epochs) = log();
    let [first, second, third] = epochs[..] else { panic!("{epochs:?}") };
    let unopened = |epochs, entries| Unopened { epochs, entries };
    for (without, query, expected) in [
        (&[][..], Query::new(), vec![]),
        (&[second], Query::new(), vec![unopened((second, second), (6, 11))]),
        (&[first, second], Query::new(), vec![unopened((first, second), (0, 11))]),
        (
            &[first, third],
            Query::new(),
            vec![unopened((first, first), (0, 5)), unopened((third, third), (12, 17))],
        ),
        (&[second], Query::new().entries(7..=8), vec![unopened((second, second), (7, 8))]),
        (&[second], Query::new().entries(12..=13), vec![]),
        (&[second], Query::new().to(6_000_000_000), vec![]),
        (
            &[second],
            Query::new().from(8_000_000_000).operation("read"),
            vec![unopened((second, second), (8, 11))],
        ),
    ] {
        let identity = Without::epochs(&image, without);
        let (exported, answer) = salvage(&world, &image, &identity, &query);
        assert_eq!((exported.left_out, &exported.unopened), (0, &expected), "{without:?}, {query:?}");
        assert_eq!((exported.findings, exported.signed), (vec![], true));
        let locked = |number: u64| {
            blocks(&image)
                .iter()
                .any(|block| without.contains(&block.epoch) && range(block).contains(&number))
        };
        let readable = world.expected(&query).into_iter().filter(|number| !locked(*number));
        assert_eq!(
            answer.iter().map(|(number, _)| *number).collect::<Vec<_>>(),
            readable.collect::<Vec<_>>()
        );
    }
}

#[test]
fn damage_is_damage_with_and_without_a_key() {
    let (world, image, epochs) = log();
    let identity = Without::epochs(&image, &epochs[1..2]);
    let blocks = blocks(&image);
    // In a block that nobody here could read; in one that could be read; in an epoch that could be opened.
    let epoch = frames(&image).into_iter().find(|frame| frame.frame == epochs[2]).unwrap();
    for (frame, left_out, unopened) in [(&blocks[4], 2, 4), (&blocks[0], 2, 6), (&epoch, 6, 6)] {
        let (path, at) = body_of(&image, frame);
        let damaged = image.flipped(&path, at + 1, |byte| byte ^ 1);
        let (exported, _) = salvage(&world, &damaged, &identity, &Query::new());
        let locked = exported.unopened.iter().map(Unopened::count).sum::<u64>();
        assert_eq!((exported.left_out, locked), (left_out, unopened));
        let kinds = exported.findings.iter().map(|finding| (finding.kind, finding.severity));
        let kinds = kinds.collect::<BTreeSet<_>>();
        assert!(kinds.contains(&(FindingKind::BodyDamaged, Severity::Violation)), "{kinds:?}");
        let unread = kinds.contains(&(FindingKind::NotOpened, Severity::Violation));
        assert_eq!(unread, frame.kind == FrameKind::Epoch, "{kinds:?}");
    }
}

#[test]
fn where_no_checkpoint_holds_segments_and_tree_say_how_far_the_log_goes() {
    let (world, image, _) = log();
    let signed = String::from_utf8(image.get("checkpoint").to_vec()).unwrap();
    let frames = frames(&image).len();
    let of = |size: u64| {
        let other = signed.replacen(&format!("\n{frames}\n"), &format!("\n{size}\n"), 1);
        assert!(other != signed);
        image.with("checkpoint", other.into_bytes())
    };
    let bare = |image: &Image| {
        let tree = image.paths().into_iter().filter(|path| path.starts_with("tile/"));
        tree.fold(image.clone(), |image, path| image.without(&path))
    };
    let ruined = [0, 1, 5, frames as u64 + 1, 300, 1 << 40].map(of).into_iter();
    let ruined = ruined.chain([
        image.without("checkpoint"),
        image.with("checkpoint", b"nothing".to_vec()),
        image.with("checkpoint", vec![b'x'; 2 << 20]),
    ]);
    let (path, at) = body_of(&image, &blocks(&image)[4]);
    let last = image.paths().into_iter().filter(|path| path.starts_with("segments/")).max().unwrap();
    for (index, ruined) in ruined.enumerate() {
        for ruined in [ruined.clone(), bare(&ruined)] {
            let (exported, answer) = salvage(&world, &ruined, &Without::default(), &Query::new());
            assert_eq!((exported.left_out, answer.len(), exported.signed), (0, 18, false), "{index}");
            let kinds = exported.findings.iter().map(|finding| finding.kind).collect::<Vec<_>>();
            assert!(kinds.contains(&FindingKind::CheckpointDamaged), "{index}: {kinds:?}");
            assert!(!kinds.contains(&FindingKind::RootMismatch), "{index}: {kinds:?}");
            assert!(!kinds.contains(&FindingKind::FramesMissing), "{index}: {kinds:?}");
            let damaged = ruined.flipped(&path, at, |byte| byte ^ 1);
            let (exported, answer) = salvage(&world, &damaged, &Without::default(), &Query::new());
            assert_eq!((exported.left_out, answer.len()), (2, 16), "{index}");
        }
        // What no segment has any more the tree tells of.
        let (exported, answer) = salvage(&world, &ruined.without(&last), &Without::default(), &Query::new());
        assert!(exported.left_out > 0, "{index}");
        assert_eq!(exported.left_out + answer.len() as u64, 18, "{index}");
    }
}

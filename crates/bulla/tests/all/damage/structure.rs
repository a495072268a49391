//! Damage that moves, removes or adds bytes: truncation, deletion, duplication, exchange, replay.

use super::image::Image;
use super::layout::{BLOCK, EPOCH, Frame, HEAD, Layout, SEAL, range};
use super::world::{Level, Made, Mask, World, large, small};
use bulla::{ErrorKind, Export, Exported};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What an export gave: entry numbers, and what it says of itself.
fn export(image: &Image, salvage: bool) -> (bulla::Result<Exported>, BTreeSet<u64>) {
    let mut out = Vec::new();
    let export = Export::open_store(Arc::new(image.clone())).unwrap().identity(Arc::new(Mask));
    let exported = export.salvage(salvage).run(&mut out);
    let number =
        |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["entry"].as_u64().unwrap();
    (exported, String::from_utf8(out).unwrap().lines().map(number).collect())
}

/// The log is refused, an export of it writes nothing, and salvage gives all entries but those of `lost`, the frames
/// that are named, and says how many those are. `others` are the kinds of finding that may come with it.
fn check(made: &Made, image: &Image, lost: &BTreeSet<u64>, others: &[&str], what: &str) {
    let layout = Layout::of(&made.image);
    for level in Level::ALL {
        let report = made.verify(image, level).unwrap();
        let findings = made.findings(image, level);
        assert!(!report.ok, "{what}, {level:?}");
        let mut named = BTreeSet::new();
        for finding in &report.findings {
            let kind = finding.kind.name();
            match kind {
                "frames-missing" | "frame-damaged" | "body-damaged"
                    if finding.entries.is_some() || !others.contains(&kind) =>
                {
                    named.extend(finding.frame.unwrap()..=finding.last_frame.unwrap());
                }
                "gap" | "abandoned" => {}
                kind => assert!(others.contains(&kind), "{what}, {level:?}: {findings:#?}"),
            }
        }
        assert_eq!(&named, lost, "{what}, {level:?}: {findings:#?}");
    }
    salvaged(image, &layout, lost, what);
}

fn salvaged(image: &Image, layout: &Layout, lost: &BTreeSet<u64>, what: &str) {
    let (refused, written) = export(image, false);
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Tampered, "{what}");
    assert_eq!(written, BTreeSet::new(), "{what}");
    let gone = layout.counted().filter(|frame| lost.contains(&frame.number) && frame.kind == BLOCK);
    let gone = gone.flat_map(range).collect::<BTreeSet<_>>();
    let (exported, written) = export(image, true);
    let exported = exported.unwrap();
    assert_eq!(written, &layout.entries() - &gone, "{what}");
    assert_eq!((exported.entries, exported.left_out), (written.len() as u64, gone.len() as u64), "{what}");
}

fn path(segment: &str) -> String {
    format!("segments/{segment}")
}

/// The numbers of the frames of a segment that count and meet a condition.
fn numbers(layout: &Layout, segment: &str, wanted: impl Fn(&Frame) -> bool) -> BTreeSet<u64> {
    let frames = layout.counted().filter(|frame| frame.segment == segment && wanted(frame));
    frames.map(|frame| frame.number).collect()
}

/// The frames of a segment that lie, as they were, in what the segment before it was abandoned or recovered with.
fn spare(made: &Made, layout: &Layout, segment: &str) -> BTreeSet<u64> {
    let segments = layout.segments().into_keys().collect::<Vec<_>>();
    let index = segments.iter().position(|name| name == segment).unwrap();
    let before = index.checked_sub(1).map(|before| &segments[before]);
    let Some((name, offset)) = layout.surplus.iter().find(|(name, _)| Some(name) == before) else {
        return BTreeSet::new();
    };
    let (left, content) = (&made.image.get(&path(name))[*offset..], made.image.get(&path(segment)));
    let mut at = 0;
    let mut spare = BTreeSet::new();
    for frame in layout.counted().filter(|frame| frame.segment == segment) {
        if left.get(at..at + frame.length) != Some(&content[frame.offset..frame.end()]) {
            break;
        }
        at += frame.length;
        spare.insert(frame.number);
    }
    spare
}

/// Adds the blocks that cannot be opened because the frame of their epoch is lost.
fn with_unopened(layout: &Layout, mut lost: BTreeSet<u64>) -> BTreeSet<u64> {
    let epochs =
        lost.iter().filter(|number| layout.frame(**number).kind == EPOCH).copied().collect::<Vec<_>>();
    lost.extend(epochs.iter().flat_map(|&epoch| layout.unopened(epoch)));
    lost
}

#[test]
fn truncated_anywhere() {
    for made in [small(), large()] {
        let layout = Layout::of(&made.image);
        let several = layout.size > 100;
        for (segment, frames) in layout.segments() {
            let content = made.image.get(&path(&segment));
            let mut cuts = BTreeSet::new();
            for frame in frames.iter().filter(|frame| !several || frame.number % 37 < 2) {
                let inside = [0, 1, 23, 24, HEAD, HEAD + 1, frame.length - SEAL, frame.length - 1];
                cuts.extend(inside.map(|at| frame.offset + at));
            }
            for cut in cuts {
                let image = made.image.with(&path(&segment), content[..cut].to_vec());
                let mut lost = numbers(&layout, &segment, |frame| frame.end() > cut);
                let own = frames.iter().find(|frame| !frame.copy).unwrap();
                if cut < own.offset + HEAD {
                    lost = &lost - &spare(&made, &layout, &segment);
                }
                let unopened = with_unopened(&layout, lost.clone());
                let what = format!("{segment} cut to {cut}");
                for level in Level::ALL {
                    let report = made.verify(&image, level).unwrap();
                    assert!(!report.ok, "{what}");
                    let missing = report.findings.iter().filter(|one| one.kind.name() == "frames-missing");
                    let missing = missing.flat_map(|one| one.frame.unwrap()..=one.last_frame.unwrap());
                    let missing = missing.collect::<BTreeSet<_>>();
                    assert_eq!(missing, lost, "{what}, {level:?}: {:#?}", made.findings(&image, level));
                    let others = [
                        "frames-missing",
                        "frame-damaged",
                        "surplus-bytes",
                        "not-opened",
                        "gap",
                        "abandoned",
                    ];
                    let other = report.findings.iter().find(|one| !others.contains(&one.kind.name()));
                    assert_eq!(other, None, "{what}, {level:?}");
                }
                if !several || cut % 3 == 0 {
                    salvaged(&image, &layout, &unopened, &what);
                }
            }
        }
    }
}

#[test]
fn files_that_are_missing() {
    for made in [small(), large()] {
        let layout = Layout::of(&made.image);
        for path in made.image.paths() {
            let image = made.image.without(&path);
            let findings = made.findings(&image, Level::Identity);
            let Some(segment) = path.strip_prefix("segments/") else {
                let told = |kind: &str| findings.iter().any(|text| text.starts_with(kind));
                match path.as_str() {
                    // What is missing of the index is read from the blocks; the head as COSE a crash may have kept from being made.
                    _ if ["LOCK", "checkpoint.cose"].contains(&&*path) || path.starts_with("index/") => {
                        assert_eq!(findings.into_iter().collect::<BTreeSet<_>>(), layout.baseline())
                    }
                    "bulla.toml" => assert_eq!(findings, ["config-damaged"]),
                    "checkpoint" => assert_eq!(findings, ["checkpoint-damaged"]),
                    // Partial tiles of sizes signed before are kept for others; nothing rests on them.
                    _ if !is_current(&path, layout.size) => {
                        assert_eq!(
                            findings.into_iter().collect::<BTreeSet<_>>(),
                            layout.baseline(),
                            "{path}"
                        );
                    }
                    _ if path.starts_with("tile/entries") => {
                        assert!(told("bundle-damaged f"), "{findings:#?}")
                    }
                    _ => assert!(told("tile-damaged f"), "{findings:#?}"),
                }
                continue;
            };
            let spare = spare(&made, &layout, segment);
            let lost = &numbers(&layout, segment, |_| true) - &spare;
            let what = format!("without {path}");
            let missing = layout.told(&lost, "frames-missing").len();
            let told = findings.iter().filter(|text| text.starts_with("frames-missing")).collect::<Vec<_>>();
            assert_eq!(told.len(), missing, "neighbours are told together: {findings:#?}");
            match lost.first().zip(lost.last()) {
                Some((first, last)) => {
                    assert!(told[0].contains(&format!("f{first}-{last}")), "{findings:#?}")
                }
                // All of it was left where it came from too; an event says that nothing there counts.
                None => {
                    assert!(findings.iter().any(|text| text.starts_with("surplus-bytes")), "{findings:#?}")
                }
            }
            salvaged(&image, &layout, &with_unopened(&layout, lost), &what);
        }
    }
}

fn is_current(path: &str, size: u64) -> bool {
    use bulla_proof::tile::{TileId, TilePath, parse_path};
    let (level, width) = match parse_path(path).unwrap() {
        TilePath::Hashes(TileId { level, width, .. }) => (level, width),
        TilePath::Entries { width, .. } => (0, width),
    };
    width == 256 || u64::from(width) == (size >> (8 * u32::from(level))) % 256
}

#[test]
fn bytes_added_and_removed_between_frames() {
    for made in [small(), large()] {
        let layout = Layout::of(&made.image);
        let frames = layout.frames.iter().filter(|frame| layout.size < 100 || frame.number % 41 == 0);
        for frame in frames.filter(|frame| !frame.copy) {
            let content = made.image.get(&path(&frame.segment));
            let insert = |at: usize, bytes: &[u8]| {
                let bytes = [&content[..at], bytes, &content[at..]].concat();
                made.image.with(&path(&frame.segment), bytes)
            };
            let own = |lost: bool| if lost { BTreeSet::from([frame.number]) } else { BTreeSet::new() };
            let what = format!("frame {} of {}", frame.number, frame.segment);
            // Before a frame, whatever it is: that many bytes too much, and every frame still there.
            for bytes in [&b"x"[..], &[0; 300], &content[frame.offset..frame.end()], &content[..300]] {
                let image = insert(frame.offset, bytes);
                let replayed = bytes == &content[frame.offset..frame.end()];
                let others =
                    ["surplus-bytes", "frame-damaged", "seal-mismatch", "unsigned-tail", "tail-damaged"];
                // Where nothing that counts follows, a frame twice is as good as the second one appended: to a
                // segment that was abandoned there, of which nobody vouches for the rest.
                let last = layout
                    .surplus
                    .iter()
                    .any(|(segment, at)| (segment, *at) == (&frame.segment, frame.end()));
                if last && replayed {
                    continue;
                }
                // The last of all once more is past the checkpoint: nobody has signed it, and no crash leaves it.
                if replayed && frame.number + 1 == layout.size {
                    assert!(made.verify(&image, Level::Key).unwrap().ok, "{what}");
                    let told = made.findings(&image, Level::SealKey);
                    assert!(told.iter().any(|text| text.starts_with("tail-damaged")), "{what}: {told:#?}");
                    continue;
                }
                // Its own head before a frame passes for it; its body does not.
                if frame.offset == 0 && bytes.len() == 300 && bytes.starts_with(b"Bulf") {
                    assert!(made.findings(&image, Level::Public).contains(&frame.finding("body-damaged")));
                    continue;
                }
                check(&made, &image, &own(false), &others, &format!("{} bytes before {what}", bytes.len()));
            }
            // Inside its body: that frame, and no other.
            if frame.kind == BLOCK {
                let image = insert(frame.offset + HEAD + 1, b"x");
                check(
                    &made,
                    &image,
                    &own(true),
                    &["surplus-bytes", "seal-mismatch", "unsigned-tail", "tail-damaged"],
                    &format!("a byte in {what}"),
                );
                // A frame that is cut out.
                let bytes = [&content[..frame.offset], &content[frame.end()..]].concat();
                let image = made.image.with(&path(&frame.segment), bytes);
                check(
                    &made,
                    &image,
                    &own(true),
                    &["surplus-bytes", "unsigned-tail", "tail-damaged"],
                    &format!("without {what}"),
                );
                // A byte missing from its middle.
                let bytes =
                    [&content[..frame.offset + HEAD + 1], &content[frame.offset + HEAD + 2..]].concat();
                let image = made.image.with(&path(&frame.segment), bytes);
                let others = ["surplus-bytes", "seal-mismatch", "unsigned-tail", "tail-damaged"];
                check(&made, &image, &own(true), &others, &format!("a byte less in {what}"));
            }
        }
    }
}

/// What a frame's digest covers ends where its seal begins: that the seal is not whole has to be seen by whoever has no key for it.
#[test]
fn bytes_that_are_missing_of_a_seal_are_a_violation_at_every_level() {
    for made in [small(), large()] {
        let layout = Layout::of(&made.image);
        let frames = layout.frames.iter().filter(|frame| layout.size < 100 || frame.number % 41 == 0);
        for frame in frames {
            let content = made.image.get(&path(&frame.segment));
            let of_surplus = layout.surplus.contains(&(frame.segment.clone(), frame.end()));
            for (from, to) in [(0, 1), (0, SEAL), (SEAL - 1, SEAL), (SEAL - 8, SEAL), (5, 9)] {
                let seal = frame.end() - SEAL;
                let bytes = [&content[..seal + from], &content[seal + to..]].concat();
                let image = made.image.with(&path(&frame.segment), bytes);
                // Of what counts for nothing behind a frame bytes come in their place: then the seal is a wrong one, as others are.
                let levels = if of_surplus { &[Level::SealKey][..] } else { &Level::ALL };
                for &level in levels {
                    let report = made.verify(&image, level).unwrap();
                    let what = format!("bytes {from} to {to} of the seal of frame {}", frame.number);
                    assert!(!report.ok, "{what} in {}, {level:?}", frame.segment);
                    let told = report.findings.iter().any(|one| one.frame == Some(frame.number));
                    assert!(told || frame.copy, "{what}: {:?}", report.findings);
                }
            }
        }
    }
}

#[test]
fn appended_garbage_and_files_that_do_not_belong() {
    let made = small();
    let layout = Layout::of(&made.image);
    for (segment, frames) in layout.segments() {
        let content = made.image.get(&path(&segment));
        let last = layout.counted().last().unwrap().segment == segment;
        for more in [&b"?"[..], &content[..500], &content[frames[1].offset..frames[1].end()]] {
            let image = made.image.with(&path(&segment), [content, more].concat());
            let findings = made.findings(&image, Level::Public).into_iter().collect::<BTreeSet<_>>();
            let new = findings.difference(&layout.baseline()).cloned().collect::<Vec<_>>();
            let explained = layout.surplus.iter().find(|(name, _)| *name == segment);
            let expected = match explained {
                None if last => {
                    let place = format!("{segment}@{} f{}-{}", content.len(), layout.size, layout.size);
                    // Whoever has the seal key knows that no crash leaves that.
                    let told = made.findings(&image, Level::SealKey);
                    assert!(told.contains(&format!("tail-damaged {place}")), "{told:#?}");
                    vec![format!("unsigned-tail {place}")]
                }
                None => vec![format!("surplus-bytes {segment}@{}", content.len())],
                Some((_, offset)) if segment.ends_with("07.seg") => {
                    vec![format!("surplus-bytes {segment}@{offset}")]
                }
                // Nobody vouches for what an abandoned segment goes on with.
                Some(_) => Vec::new(),
            };
            assert_eq!(new, expected, "{segment}, {} bytes", more.len());
        }
    }
    let others = |path: &str| made.findings(&made.image.with(path, b"hello".to_vec()), Level::Public);
    for path in [
        "notes.txt",
        "segments/x",
        "tile/x",
        "tile/0/000.p/007",
        "tile/0/000.p/+5",
        "tile/0/001",
        "tile/0/000.p/255",
        "tile/4/000",
    ] {
        let told = others(path);
        assert!(told.contains(&"unknown-file".to_owned()), "{path}: {told:#?}");
        assert!(made.verify(&made.image.with(path, b"hello".to_vec()), Level::Public).unwrap().ok, "{path}");
    }
    // A segment that nobody asked for, wherever it sorts, hides nothing.
    for name in [
        "00000000000000000003.seg",
        "00000000000000000000-1.seg",
        "00000000000000000010-4.seg",
        "00000000000000000008.seg",
    ] {
        for bytes in [
            b"hello".to_vec(),
            Vec::new(),
            made.image.get("segments/00000000000000000000.seg")[..2000].to_vec(),
        ] {
            let replay = bytes.len() > 5;
            let image = made.image.with(&path(name), bytes);
            let expected = format!("surplus-bytes {name}@0");
            let told = made.findings(&image, Level::Identity).into_iter().collect::<BTreeSet<_>>();
            let new = told.difference(&layout.baseline()).cloned().collect::<Vec<_>>();
            if image.get(&path(name)).is_empty() {
                assert_eq!(new, Vec::<String>::new(), "an empty segment {name}");
            } else if !replay || ["00000000000000000010-4.seg", "00000000000000000008.seg"].contains(&name) {
                assert_eq!(new, [expected], "{name}");
                salvaged(&image, &layout, &BTreeSet::new(), name);
            }
        }
    }
    let beyond = others("segments/00000000000000000099.seg");
    assert!(
        beyond.iter().any(|text| text.starts_with("unsigned-tail 00000000000000000099.seg@0")),
        "{beyond:#?}"
    );
}

#[test]
fn frames_and_segments_exchanged() {
    let made = small();
    let layout = Layout::of(&made.image);
    let frames = layout.counted().filter(|frame| frame.kind == BLOCK).collect::<Vec<_>>();
    for pair in frames.windows(2).filter(|pair| pair[0].segment == pair[1].segment) {
        let [a, b] = [pair[0], pair[1]];
        let content = made.image.get(&path(&a.segment));
        let bytes = [
            &content[..a.offset],
            &content[b.offset..b.end()],
            &content[a.end()..b.offset],
            &content[a.offset..a.end()],
            &content[b.end()..],
        ];
        let image = made.image.with(&path(&a.segment), bytes.concat());
        for level in Level::ALL {
            let report = made.verify(&image, level).unwrap();
            assert!(!report.ok);
            let named = report.findings.iter().filter_map(|one| one.frame).collect::<Vec<_>>();
            assert!(
                named.contains(&a.number) || named.contains(&b.number),
                "{level:?}: {:#?}",
                report.findings
            );
            let strangers = report.findings.iter().filter(|one| {
                !matches!(
                    one.kind.name(),
                    "gap" | "abandoned" | "surplus-bytes" | "not-opened" | "unsigned-tail"
                ) && one.frame.is_none_or(|frame| frame < a.number || frame > b.number)
            });
            assert_eq!(strangers.count(), 0, "{level:?}: {:#?}", made.findings(&image, level));
        }
        let (refused, written) = export(&image, false);
        assert!(refused.is_err() && written.is_empty());
    }
    let segments = layout.segments().into_keys().collect::<Vec<_>>();
    for pair in segments.windows(2) {
        let (a, b) = (path(&pair[0]), path(&pair[1]));
        let image = made.image.with(&a, made.image.get(&b).to_vec()).with(&b, made.image.get(&a).to_vec());
        for level in Level::ALL {
            assert!(!made.verify(&image, level).unwrap().ok, "{a} and {b}");
        }
        let (refused, written) = export(&image, false);
        assert!(refused.is_err() && written.is_empty());
    }
}

/// The same keys, other content: every place of the one log refuses what is of the other.
#[test]
fn from_another_log_of_the_same_keys() {
    let (made, other) = (small(), {
        let mut world = World::new(1);
        let log = world.open();
        world.block(&log, 4);
        world.block(&log, 40);
        log.close().unwrap();
        let log = world.open();
        world.block(&log, 5);
        log.close().unwrap();
        world.made()
    });
    assert_eq!(made.image.get("bulla.toml"), other.image.get("bulla.toml"));
    let segment = "segments/00000000000000000000.seg";
    let image = made.image.with(segment, other.image.get(segment).to_vec());
    for level in Level::ALL {
        let report = made.verify(&image, level).unwrap();
        assert!(!report.ok, "{:#?}", report.findings);
    }
    // An older state of the log, whole, is sound in itself: only what is kept elsewhere can tell.
    for level in Level::ALL {
        assert!(other.verify(&other.image, level).unwrap().ok);
    }
    // An older checkpoint of the same log: what it does not cover counts as a tail.
    let mut world = World::new(1);
    let log = world.open();
    world.block(&log, 3);
    log.flush().unwrap();
    let older = world.made();
    world.block(&log, 3);
    log.flush().unwrap();
    log.close().unwrap();
    let newer = world.made();
    let image = newer.image.with("checkpoint", older.image.get("checkpoint").to_vec());
    let findings = newer.findings(&image, Level::Key);
    assert!(findings.iter().any(|text| text.starts_with("unsigned-tail")), "{findings:#?}");
}

/// Two and three sources at once: what is left still tells, and what nothing tells is named with its entries.
#[test]
fn several_sources_at_once() {
    let made = small();
    let layout = Layout::of(&made.image);
    let width = layout.size;
    let (tile, bundle) = (format!("tile/0/000.p/{width}"), format!("tile/entries/000.p/{width}"));
    for frame in layout.counted() {
        let segment = path(&frame.segment);
        let place = usize::try_from(frame.number).unwrap();
        let in_segment = |image: &Image| image.flipped(&segment, frame.offset + 3, |byte| !byte);
        let in_tile = |image: &Image| image.flipped(&tile, place * 32, |byte| !byte);
        let in_bundle = |image: &Image| image.flipped(&bundle, place * 154 + 2 + 30, |byte| !byte);
        for image in [in_tile(&in_bundle(&made.image)), in_segment(&in_tile(&made.image))] {
            let report = made.verify(&image, Level::Identity).unwrap();
            assert!(!report.ok);
            let named = report.findings.iter().any(|one| one.frame == Some(frame.number));
            assert!(named, "{:#?}", report.findings);
        }
        // Nothing tells what the frame was; the one after it is found again.
        let image = in_segment(&made.image).without(&tile).without(&bundle);
        for level in Level::ALL {
            let report = made.verify(&image, level).unwrap();
            let missing = report.findings.iter().filter(|one| one.kind.name() == "frames-missing");
            let missing = missing.collect::<Vec<_>>();
            assert_eq!(missing.len(), 1, "{:#?}", report.findings);
            assert_eq!((missing[0].frame, missing[0].last_frame), (Some(frame.number), Some(frame.number)));
            let entries =
                frame.entries.checked_sub(1).map(|more| (frame.first_entry, frame.first_entry + more));
            if frame.number + 1 < layout.size {
                assert_eq!(missing[0].entries, entries, "{:#?}", report.findings);
            }
            let numbering = report.findings.iter().find(|one| one.kind.name() == "numbering");
            assert_eq!(numbering, None, "{:#?}", report.findings);
        }
    }
}

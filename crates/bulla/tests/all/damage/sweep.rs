//! Every byte of every file, flipped: with each change at the level that finds it, and at all levels where a sweep is in
//! full.

use super::image::Image;
use super::layout::Layout;
use super::world::{Level, Made, grouped, in_full, short, small, whole};
use super::{config, index, note};
use crate::helpers::in_full as swept_in_full;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// One damaged byte.
#[derive(Clone, Debug)]
struct Flip {
    path: String,
    at: usize,
    to: u8,
    level: Level,
}

const SMALL_FILES: [&str; 2] = ["bulla.toml", "checkpoint"];

/// What a verification of one damaged byte must tell, and nothing else.
fn expect(made: &Made, layout: &Layout, flip: &Flip, damaged: &Image) -> Vec<String> {
    let Flip { path, at, level, .. } = flip;
    let mut expected = match path.as_str() {
        "checkpoint" => note::expect(made, layout, damaged.get(path), *level),
        "bulla.toml" => config::expect(made, layout, damaged.get(path), *level),
        _ if index::is_index(path) => index::expect(layout, path, *at, damaged, *level),
        _ => match path.strip_prefix("segments/") {
            Some(segment) => layout.expect_in_segment(segment, *at, *level).into_iter().collect(),
            None => layout.expect_in_tree(path, *at).into_iter().collect(),
        },
    };
    expected.sort();
    expected
}

/// The lowest level at which a damaged byte is found, by the threat model; nothing where none finds it.
fn found_at(made: &Made, layout: &Layout, path: &str, at: usize, to: u8) -> Option<Level> {
    match path.strip_prefix("segments/") {
        Some(segment) => layout.found_at(segment, at),
        None if path == "bulla.toml" => {
            let damaged = made.image.flipped(path, at, |_| to);
            config::is_found(made, at, damaged.get(path)).then_some(Level::Public)
        }
        None if index::is_index(path) => Some(Level::Identity),
        None => Some(Level::Public),
    }
}

/// Verifies the log with one flip: what that tells, or how it is not what it must tell.
fn try_one(made: &Made, layout: &Layout, baseline: &BTreeSet<String>, flip: &Flip) -> Result<String, String> {
    let damaged = made.image.flipped(&flip.path, flip.at, |_| flip.to);
    let tell = if SMALL_FILES.contains(&flip.path.as_str()) { in_full } else { short };
    let mut told = made.findings_as(&damaged, flip.level, tell);
    told.sort();
    let expected = expect(made, layout, flip, &damaged);
    if told != expected {
        let only = |a: &[String], b: &[String]| {
            a.iter().filter(|text| !b.contains(text)).cloned().collect::<Vec<_>>()
        };
        return Err(format!("{flip:?}: told {:?}, not {:?}", only(&told, &expected), only(&expected, &told)));
    }
    let found = found_at(made, layout, &flip.path, flip.at, flip.to);
    if told.iter().ne(baseline) != found.is_some_and(|least| flip.level >= least) {
        return Err(format!("{flip:?}: told {told:?}, but the threat model has it found at {found:?}"));
    }
    let new = told.iter().find(|text| !baseline.contains(*text));
    Ok(new.map_or("nothing", |text| text.split([' ', ':']).next().unwrap_or_default()).to_owned())
}

/// Verifies the log with each flip; returns how many there were, by the kind of finding that told of them.
fn sweep(made: &Made, layout: &Layout, flips: &[Flip]) -> BTreeMap<String, usize> {
    let next = AtomicUsize::new(0);
    let (found, wrong) = (Mutex::new(BTreeMap::new()), Mutex::new(Vec::new()));
    let baseline = layout.baseline();
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut mine = BTreeMap::<String, usize>::new();
                while let Some(flip) = flips.get(next.fetch_add(1, Ordering::Relaxed)) {
                    match try_one(made, layout, &baseline, flip) {
                        Ok(by) => *mine.entry(format!("{:?}: {by}", flip.level)).or_default() += 1,
                        Err(why) => wrong.lock().unwrap().push(why),
                    }
                }
                for (by, count) in mine {
                    *found.lock().unwrap().entry(by).or_default() += count;
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        flips.len(),
        wrong[..wrong.len().min(60)].join("\n")
    );
    found.into_inner().unwrap()
}

/// The changes of one byte: one bit, in turn; every 16th place also all bits, and to the extremes. In the small files
/// each of the bits: what comes of them differs.
fn changes(path: &str, at: usize, was: u8) -> Vec<u8> {
    let mut values = vec![was ^ (1 << (at % 8))];
    if SMALL_FILES.contains(&path) {
        values.extend((0..8).map(|bit| was ^ (1 << bit)));
    }
    if at % 16 == at / 16 % 16 {
        values.extend([!was, 0x00, 0xff].into_iter().filter(|&value| value != was));
    }
    values.sort_unstable();
    values.dedup();
    values
}

/// Every byte of every file: where it is, and what it is changed to.
fn bytes(made: &Made) -> impl Iterator<Item = (String, usize, Vec<u8>)> {
    made.image.paths().into_iter().flat_map(|path| {
        let content = made.image.get(&path).to_vec();
        let changed = move |(at, was)| (path.clone(), at, changes(&path, at, was));
        content.into_iter().enumerate().map(changed).collect::<Vec<_>>()
    })
}

#[test]
fn every_byte_at_every_level() {
    at_levels(&small(), &Level::ALL);
}

/// A byte of a group's ciphertext is a byte of its block: frame and entries are named. The levels between open no block, and
/// see of groups what public data shows.
#[test]
fn every_byte_of_a_log_with_groups() {
    at_levels(&grouped(), &[Level::Public, Level::Identity]);
}

fn at_levels(made: &Made, levels: &[Level]) {
    let layout = Layout::of(&made.image);
    let mut flips = Vec::new();
    for (path, at, changes) in bytes(made) {
        for to in changes_of(&path, changes) {
            let least = found_at(made, &layout, &path, at, to).unwrap_or(Level::Identity);
            let levels = if swept_in_full() { levels } else { &[least] };
            flips.extend(levels.iter().map(|&level| Flip { path: path.clone(), at, to, level }));
        }
    }
    let found = sweep(made, &layout, &flips);
    println!("swept: {} bytes, {} verifications", made.image.bytes(), flips.len());
    println!("{found:#?}");
    assert_all_visited(made, &flips);
    assert!(!swept_in_full() || flips.len() > levels.len() * made.image.bytes());
}

/// Of the changes of a byte those that are tried: one, unless the file is small or the sweep is in full.
fn changes_of(path: &str, mut changes: Vec<u8>) -> Vec<u8> {
    if !swept_in_full() && !SMALL_FILES.contains(&path) {
        changes.truncate(1);
    }
    changes
}

fn assert_all_visited(made: &Made, flips: &[Flip]) {
    let changed = flips.iter().map(|flip| (&flip.path, flip.at)).collect::<BTreeSet<_>>();
    assert_eq!(changed.len(), made.image.bytes());
}

/// How many bytes of the whole log share one that is verified at all levels.
const SHARE: usize = 32;

/// How many frames that are alike share the verifications of their bytes at more levels than the one that finds them.
const ALIKE: u64 = 8;

/// A byte that is changed: where it is, to what, and whether that is verified at one level alone.
type Swept = (String, usize, Vec<u8>, bool);

/// The bytes of a log: all of them. Frames that are like their neighbours, in segments and in the tree, differ from them in
/// number, time and secrets alone, and the same code looks at each: so each place in them is verified at several levels in
/// every eighth, and in each frame every eighth place, and all others at the level that finds them.
fn shared_out(made: &Made, layout: &Layout) -> Vec<Swept> {
    let alike = layout.alike();
    let mut places = BTreeSet::new();
    let mut swept = Vec::new();
    for (path, at, changes) in bytes(made) {
        let like = layout.place(&path, at).filter(|(frame, _)| alike.contains(frame));
        let once = like.is_some_and(|(frame, place)| !(frame + place as u64).is_multiple_of(ALIKE));
        if let Some((_, place)) = like.filter(|_| !once) {
            places.insert((path.split('/').next().map(str::to_owned), place));
        }
        swept.push((path, at, changes, once));
    }
    // Each place of a frame, and of a commitment in a bundle.
    let length = layout.frame(*alike.first().unwrap()).length;
    assert!(alike.len() > 200 && places.len() == length + 154, "{} places", places.len());
    swept
}

/// Every byte of the log that has everything: at the lowest level that finds it. In full, but of most frames that are like
/// others, where there is a level below also at that one, which does not, and every so often at all levels.
#[test]
fn bytes_of_the_whole_log_at_the_level_that_finds_them() {
    let made = whole();
    let layout = Layout::of(&made.image);
    let mut flips = Vec::new();
    let mut unfound = 0;
    for (path, at, changes, once) in shared_out(&made, &layout) {
        let several = path == "checkpoint";
        let changes = if SMALL_FILES.contains(&path.as_str()) { changes } else { changes[..1].to_vec() };
        for to in changes {
            let least = found_at(&made, &layout, &path, at, to);
            unfound += usize::from(least.is_none());
            let mut levels = vec![least.unwrap_or(Level::Identity)];
            let once = once || !swept_in_full();
            match least {
                _ if once => {}
                Some(Level::SealKey) => levels.push(Level::Key),
                None => levels.push(Level::Public),
                _ => {}
            }
            if several && swept_in_full() || !once && at % SHARE == at / SHARE % SHARE {
                levels.extend(Level::ALL);
            }
            levels.sort();
            levels.dedup();
            flips.extend(levels.into_iter().map(|level| Flip { path: path.clone(), at, to, level }));
        }
    }
    let found = sweep(&made, &layout, &flips);
    println!(
        "swept: {} bytes, {} verifications, {unfound} changes that nothing finds",
        made.image.bytes(),
        flips.len()
    );
    println!("{found:#?}");
    assert_all_visited(&made, &flips);
}

//! Every byte of every file, flipped: with each change at the level that finds it, and at all levels where a sweep is in
//! full. With each change several bytes are flipped at once, where what is told shows each of them; in full one by one.

use super::image::Image;
use super::layout::{BLOCK, Layout};
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
const BUNDLES: &str = "tile/entries/";

/// What a verification of one damaged byte must tell, and nothing else.
fn expect(made: &Made, layout: &Layout, flip: &Flip, damaged: &Image) -> Vec<String> {
    let Flip { path, at, level, .. } = flip;
    let mut expected = match path.as_str() {
        "checkpoint" => note::expect(made, layout, damaged.get(path), *level),
        "bulla.toml" => config::expect(made, layout, damaged.get(path), *level),
        "checkpoint.cose" => {
            layout.baseline().into_iter().chain(["cose-mismatch".to_owned()]).collect::<Vec<_>>()
        }
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
    Ok(new.map_or_else(|| "nothing".to_owned(), |text| kind(text)))
}

/// A byte of a log in which several are damaged at once: those of one lane never are.
type Lane = (String, u64);

/// The lane of a flip that is told of whatever else is damaged: of a block, which is told of by itself; and of a tile or a
/// bundle, of which the first frame and the last that differ are told.
fn lane(layout: &Layout, flip: &Flip) -> Option<Lane> {
    let (frame, place) = layout.place(&flip.path, flip.at)?;
    if flip.path.starts_with("segments/") {
        return (layout.frame(frame).kind == BLOCK).then(|| (flip.path.clone(), frame));
    }
    let spoils_all = flip.path.starts_with(BUNDLES) && place < 2;
    (!spoils_all).then(|| (flip.path.clone(), frame % 256 / 128))
}

/// The flips, as they are verified: one by one where a sweep is in full. In short those of different lanes together, of blocks
/// as far apart as there can be some in each verification.
fn together<'a>(layout: &Layout, flips: &'a [Flip]) -> Vec<Vec<&'a Flip>> {
    if swept_in_full() {
        return flips.iter().map(|flip| vec![flip]).collect();
    }
    let apart = (layout.size / 8).max(3);
    let mut groups = Vec::new();
    let mut lanes = BTreeMap::<Level, [BTreeMap<Lane, Vec<&Flip>>; 2]>::new();
    for flip in flips {
        match lane(layout, flip) {
            Some(lane) => {
                let tree = usize::from(!flip.path.starts_with("segments/"));
                lanes.entry(flip.level).or_default()[tree].entry(lane).or_default().push(flip);
            }
            None => groups.push(vec![flip]),
        }
    }
    let rounds = |lanes: &[&Vec<&'a Flip>]| {
        let most = lanes.iter().map(|lane| lane.len()).max().unwrap_or_default();
        (0..most)
            .map(|at| lanes.iter().filter_map(|lane| lane.get(at).copied()).collect())
            .collect::<Vec<_>>()
    };
    for [blocks, tree] in lanes.into_values() {
        let class = |class| {
            let lanes = blocks.iter().filter(move |((_, frame), _)| frame % apart == class);
            rounds(&lanes.map(|(_, flips)| flips).collect::<Vec<_>>())
        };
        let mut of_blocks = (0..apart).flat_map(class).collect::<Vec<Vec<_>>>();
        let of_tree = rounds(&tree.values().collect::<Vec<_>>());
        of_blocks.resize(of_blocks.len().max(of_tree.len()), Vec::new());
        for (group, more) in of_blocks.iter_mut().zip(of_tree) {
            group.extend(more);
        }
        groups.extend(of_blocks);
    }
    groups
}

/// Verifies the log with several flips: by which kind of finding each is told of, if that is what is told of each alone and
/// nothing else. Otherwise nothing follows.
fn try_together(
    made: &Made,
    layout: &Layout,
    baseline: &BTreeSet<String>,
    flips: &[&Flip],
) -> Option<Vec<String>> {
    let mut damaged = made.image.clone();
    let mut expected = baseline.iter().cloned().collect::<Vec<_>>();
    let mut frames = BTreeMap::<&str, (u64, u64)>::new();
    let mut by = Vec::new();
    for flip in flips {
        damaged = damaged.flipped(&flip.path, flip.at, |_| flip.to);
        let (frame, _) = layout.place(&flip.path, flip.at)?;
        match flip.path.strip_prefix("segments/") {
            None => {
                let (first, last) = frames.entry(&flip.path).or_insert((frame, frame));
                (*first, *last) = (frame.min(*first), frame.max(*last));
            }
            Some(segment) => {
                let alone = layout.expect_in_segment(segment, flip.at, flip.level);
                let new = alone.difference(baseline).cloned().collect::<Vec<_>>();
                let least = layout.found_at(segment, flip.at)?;
                if new.len() != 1 || flip.level < least || !alone.is_superset(baseline) {
                    return None;
                }
                by.push(kind(&new[0]));
                expected.extend(new);
            }
        }
    }
    for (path, (first, last)) in frames {
        let of = if path.starts_with(BUNDLES) { "bundle-damaged" } else { "tile-damaged" };
        by.extend(flips.iter().filter(|flip| flip.path == path).map(|_| of.to_owned()));
        expected.push(format!("{of} f{first}-{last}"));
    }
    let mut told = made.findings_as(&damaged, flips[0].level, short);
    told.sort();
    expected.sort();
    (told == expected).then_some(by)
}

/// The kind of a finding.
fn kind(finding: &str) -> String {
    finding.split([' ', ':']).next().unwrap_or_default().to_owned()
}

/// What a sweep has found: how many flips, by the kind of finding that told of them, and in how many verifications.
#[derive(Debug, Default)]
struct Found {
    verifications: usize,
    by: BTreeMap<String, usize>,
    wrong: Vec<String>,
}

impl Found {
    /// Verifies the log with flips: together, and halves of them where that does not tell of each what it should.
    fn find(&mut self, made: &Made, layout: &Layout, baseline: &BTreeSet<String>, flips: &[&Flip]) {
        self.verifications += 1;
        let found = match flips {
            [flip] => try_one(made, layout, baseline, flip).map(|by| Some(vec![by])),
            _ => Ok(try_together(made, layout, baseline, flips)),
        };
        match found {
            Err(why) => self.wrong.push(why),
            Ok(Some(kinds)) => {
                for by in kinds {
                    *self.by.entry(format!("{:?}: {by}", flips[0].level)).or_default() += 1;
                }
            }
            Ok(None) => {
                let (some, others) = flips.split_at(flips.len() / 2);
                self.find(made, layout, baseline, some);
                self.find(made, layout, baseline, others);
            }
        }
    }

    fn add(&mut self, other: Found) {
        self.verifications += other.verifications;
        for (by, count) in other.by {
            *self.by.entry(by).or_default() += count;
        }
        self.wrong.extend(other.wrong);
    }
}

/// Verifies the log with each flip.
fn sweep(made: &Made, layout: &Layout, flips: &[Flip]) -> Found {
    let groups = together(layout, flips);
    assert_eq!(groups.iter().map(Vec::len).sum::<usize>(), flips.len());
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Found::default());
    let baseline = layout.baseline();
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut mine = Found::default();
                while let Some(flips) = groups.get(next.fetch_add(1, Ordering::Relaxed)) {
                    mine.find(made, layout, &baseline, flips);
                }
                found.lock().unwrap().add(mine);
            });
        }
    });
    let found = found.into_inner().unwrap();
    let wrong = &found.wrong;
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        flips.len(),
        wrong[..wrong.len().min(60)].join("\n")
    );
    assert_eq!(found.by.values().sum::<usize>(), flips.len());
    found
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
        // What comes of the bits of a small file differs, but not from log to log.
        let each_bit = SMALL_FILES.contains(&path.as_str()) && levels.len() == Level::ALL.len();
        for to in changes_of(changes, each_bit) {
            let least = found_at(made, &layout, &path, at, to).unwrap_or(Level::Identity);
            let levels = if swept_in_full() { levels } else { &[least] };
            flips.extend(levels.iter().map(|&level| Flip { path: path.clone(), at, to, level }));
        }
    }
    let found = sweep(made, &layout, &flips);
    println!(
        "swept: {} bytes, {} flips, {} verifications",
        made.image.bytes(),
        flips.len(),
        found.verifications
    );
    println!("{:#?}", found.by);
    assert_all_visited(made, &flips);
    assert!(!swept_in_full() || flips.len() > levels.len() * made.image.bytes());
}

/// Of the changes of a byte those that are tried: one, unless the sweep is in full.
fn changes_of(mut changes: Vec<u8>, each_bit: bool) -> Vec<u8> {
    if !swept_in_full() && !each_bit {
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
const ALIKE: u64 = 16;

/// A byte that is changed: where it is, to what, and whether that is verified at one level alone.
type Swept = (String, usize, Vec<u8>, bool);

/// The bytes of a log: all of them. Frames that are like their neighbours, in segments and in the tree, differ from them in
/// number, time and secrets alone, and the same code looks at each: so each place in them is verified at several levels in
/// every sixteenth, and in each frame every sixteenth place; all others at the level that finds them where a
/// sweep is in full, and else not at all.
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
        if !once || swept_in_full() {
            swept.push((path, at, changes, once));
        }
    }
    // Each place of a frame, and of a commitment in a bundle.
    let length = layout.frame(*alike.first().unwrap()).length;
    assert!(alike.len() > 200 && places.len() == length + 154, "{} places", places.len());
    swept
}

/// The bytes of the log that has everything: at the lowest level that finds each. In full every one of them, and but of most
/// frames that are like others, where there is a level below also at that one, which does not, and every so often at all
/// levels.
#[test]
fn bytes_of_the_whole_log_at_the_level_that_finds_them() {
    let made = whole();
    let layout = Layout::of(&made.image);
    let mut flips = Vec::new();
    let mut unfound = 0;
    for (path, at, changes, once) in shared_out(&made, &layout) {
        // In short every ninth: of a small log, whose frames are of all kinds as well, each is changed.
        if !swept_in_full() && !at.is_multiple_of(9) && path != "checkpoint" {
            continue;
        }
        let several = path == "checkpoint";
        let each_bit = swept_in_full() && SMALL_FILES.contains(&path.as_str());
        let changes = if each_bit { changes } else { changes[..1].to_vec() };
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
        "swept: {} bytes, {} flips, {} verifications, {unfound} changes that nothing finds",
        made.image.bytes(),
        flips.len(),
        found.verifications
    );
    println!("{:#?}", found.by);
    if swept_in_full() {
        assert_all_visited(&made, &flips);
    }
}

//! Every byte of every file, flipped.

use super::image::Image;
use super::layout::Layout;
use super::world::{Level, Made, large, small};
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

/// What a verification of one damaged byte must tell.
enum Expected {
    Exactly(BTreeSet<String>),
    /// At least one finding of these kinds, or an error that refuses the log.
    Some(&'static [&'static str]),
}

fn expect(made: &Made, layout: &Layout, flip: &Flip, damaged: &Image) -> Expected {
    let Flip { path, at, level, .. } = flip;
    if let Some(segment) = path.strip_prefix("segments/") {
        return Expected::Exactly(layout.expect_in_segment(segment, *at, *level));
    }
    if path.starts_with("tile/") {
        return Expected::Exactly(layout.expect_in_tree(path, *at));
    }
    if path == "checkpoint" {
        return Expected::Some(&["checkpoint-damaged"]);
    }
    assert_eq!(path, "bulla.toml");
    let text = made.image.get(path);
    let settings = text.windows(12).position(|window| window == b"\n[settings]\n").unwrap() + 1;
    let kinds: &[&str] = &["config-damaged", "config-mismatch", "checkpoint-damaged"];
    if *at >= settings + 11 && bulla::config::parse(damaged.get(path)).is_ok() {
        return Expected::Exactly(layout.baseline());
    }
    Expected::Some(kinds)
}

/// Verifies the log with each flip; returns how many there were, by the kind of finding that told of them.
fn sweep(made: &Made, flips: &[Flip]) -> BTreeMap<String, usize> {
    let layout = Layout::of(&made.image);
    let next = AtomicUsize::new(0);
    let (found, wrong) = (Mutex::new(BTreeMap::new()), Mutex::new(Vec::new()));
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut mine = BTreeMap::<String, usize>::new();
                while let Some(flip) = flips.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let damaged = made.image.flipped(&flip.path, flip.at, |_| flip.to);
                    let findings = made.findings(&damaged, flip.level);
                    let told = findings.iter().cloned().collect::<BTreeSet<_>>();
                    let by = match expect(made, &layout, flip, &damaged) {
                        Expected::Exactly(expected) => {
                            if told != expected || findings.len() != told.len() {
                                let (only, missing) =
                                    (told.difference(&expected), expected.difference(&told));
                                let only = only.collect::<Vec<_>>();
                                let text =
                                    format!("{flip:?}: told {only:?}, not {:?}", missing.collect::<Vec<_>>());
                                wrong.lock().unwrap().push(text);
                            }
                            let mut new = told.difference(&layout.baseline()).cloned().collect::<Vec<_>>();
                            new.sort();
                            new.first().map_or("nothing", |text| text.split(' ').next().unwrap()).to_owned()
                        }
                        Expected::Some(kinds) => {
                            let refused = |text: &String| text.starts_with("error");
                            let one = told.iter().find(|text| {
                                refused(text) || kinds.iter().any(|kind| text.starts_with(kind))
                            });
                            let Some(one) = one else {
                                wrong.lock().unwrap().push(format!("{flip:?}: only {told:?}"));
                                continue;
                            };
                            one.split(' ')
                                .take(if refused(one) { 2 } else { 1 })
                                .collect::<Vec<_>>()
                                .join(" ")
                        }
                    };
                    *mine.entry(format!("{:?}: {by}", flip.level)).or_default() += 1;
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

/// The changes of one byte: one bit, in turn; every 16th place also all bits, and to the extremes.
fn changes(at: usize, was: u8) -> Vec<u8> {
    let mut values = vec![was ^ (1 << (at % 8))];
    if at % 16 == at / 16 % 16 {
        values.extend([!was, 0x00, 0xff].into_iter().filter(|&value| value != was));
        values.sort_unstable();
        values.dedup();
    }
    values
}

#[test]
fn every_byte_at_every_level() {
    let made = small();
    let mut flips = Vec::new();
    for path in made.image.paths() {
        for (at, &was) in made.image.get(&path).iter().enumerate() {
            for to in changes(at, was) {
                flips.extend(Level::ALL.map(|level| Flip { path: path.clone(), at, to, level }));
            }
        }
    }
    let found = sweep(&made, &flips);
    println!("{} bytes, {} verifications: {found:#?}", made.image.bytes(), flips.len());
    assert!(flips.len() > 4 * made.image.bytes());
}

/// Every byte again, of a log with full and partial tiles. Whoever has the log's key has the public level too.
#[test]
fn a_log_of_several_tiles() {
    let made = large();
    let mut flips = Vec::new();
    for path in made.image.paths() {
        for (at, &was) in made.image.get(&path).iter().enumerate() {
            flips.push(Flip { path: path.clone(), at, to: was ^ (1 << (at % 8)), level: Level::Key });
        }
    }
    let found = sweep(&made, &flips);
    println!("{} bytes, {} verifications: {found:#?}", made.image.bytes(), flips.len());
}

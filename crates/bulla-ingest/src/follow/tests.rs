//! Each line once, whatever is done to the files and to whoever follows them.

mod alike;

use super::*;
use crate::convert::Conversion;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

/// A log of which the newest entries may be lost, and others in a gap.
#[derive(Default)]
struct Log {
    entries: Vec<Kept>,
    labels: HashMap<SourceId, Vec<u8>>,
    refused: Vec<String>,
    told: Vec<String>,
    forgotten: Vec<SourceId>,
    passed: HashMap<SourceId, (Range<u64>, u64)>,
    /// It ends once so many records were refused.
    ends_at: Option<usize>,
    now: i64,
}

struct Kept {
    id: SourceId,
    label: Vec<u8>,
    place: Range<u64>,
    check: u64,
    operation: String,
}

impl Sink for Log {
    type Source = SourceId;
    type Error = std::convert::Infallible;

    fn now(&self) -> i64 {
        self.now
    }

    fn is_ending(&self) -> bool {
        self.ends_at.is_some_and(|at| self.refused.len() >= at)
    }

    fn source(&mut self, id: &SourceId, label: &[u8]) -> Result<SourceId, Self::Error> {
        self.labels.insert(*id, label.to_vec());
        Ok(*id)
    }

    fn relabel(&mut self, source: &SourceId, label: &[u8]) -> Result<(), Self::Error> {
        self.labels.insert(*source, label.to_vec());
        Ok(())
    }

    fn append(
        &mut self,
        _: At<'_>,
        entry: &ParsedEntry,
        id: &SourceId,
        (place, check): (Range<u64>, u64),
    ) -> Result<Result<(), String>, Self::Error> {
        let (id, label) = (*id, self.labels[id].clone());
        self.entries.push(Kept { id, label, place, check, operation: entry.operation.clone() });
        Ok(Ok(()))
    }

    fn refuse(&mut self, at: At<'_>, reason: &str, _: Option<&[u8]>) -> Result<(), Self::Error> {
        self.refused.push(format!("{}: {reason}", at.place));
        Ok(())
    }

    fn pass(&mut self, id: &SourceId, place: (Range<u64>, u64)) -> Result<(), Self::Error> {
        self.passed.insert(*id, place);
        Ok(())
    }

    fn forget(&mut self, id: &SourceId) {
        self.forgotten.push(*id);
    }

    fn tell(&mut self, what: &str) {
        self.told.push(what.to_owned());
    }
}

impl Log {
    /// What it has of its sources.
    fn known(&self) -> Vec<Known> {
        let mut known = BTreeMap::<SourceId, Known>::new();
        for (order, kept) in self.entries.iter().enumerate() {
            let of = known.entry(kept.id).or_insert_with(|| Known {
                id: kept.id,
                label: Vec::new(),
                ranges: Vec::new(),
                check: 0,
                passed: None,
                order: 0,
            });
            of.label.clone_from(&kept.label);
            of.order = order as u64;
            of.ranges.push(kept.place.clone());
        }
        for of in known.values_mut() {
            of.ranges.sort_by_key(|range| range.start);
            of.ranges = of.ranges.drain(..).fold(Vec::new(), |mut merged: Vec<Range<u64>>, range| {
                match merged.last_mut().filter(|last| last.end == range.start) {
                    Some(last) => last.end = range.end,
                    None => merged.push(range),
                }
                merged
            });
            let ends = |kept: &&Kept| kept.id == of.id && kept.place.end == of.ranges[0].end;
            of.check = self.entries.iter().find(ends).expect("a range ends with a record").check;
            let goes_on =
                |place: &&(Range<u64>, u64)| of.ranges.iter().any(|range| range.end == place.0.start);
            of.passed = self.passed.get(&of.id).filter(goes_on).cloned();
        }
        for (id, place) in &self.passed {
            let unknown = || Known {
                id: *id,
                label: self.labels[id].clone(),
                ranges: Vec::new(),
                check: 0,
                passed: Some(place.clone()),
                order: 0,
            };
            known.entry(*id).or_insert_with(unknown);
        }
        known.into_values().filter(|known| !self.forgotten.contains(&known.id)).collect()
    }

    fn operations(&self) -> Vec<&str> {
        self.entries.iter().map(|kept| kept.operation.as_str()).collect()
    }
}

/// A directory with a log file that somebody writes and rotates, and somebody who follows it.
struct World {
    directory: TempDir,
    log: Log,
    follower: Option<Follower<SourceId>>,
    patterns: Vec<&'static str>,
    ids: u64,
    written: u64,
    /// Lines that were written between a copy and the truncation.
    may_be_lost: BTreeSet<u64>,
    /// What the writer writes to.
    file: File,
}

impl World {
    fn new(patterns: &[&'static str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = File::create(directory.path().join("app.log")).unwrap();
        let log = Log { now: 1_000 * 1_000_000_000, ..Log::default() };
        World {
            directory,
            log,
            follower: None,
            patterns: patterns.to_vec(),
            ids: 0,
            written: 0,
            may_be_lost: BTreeSet::new(),
            file,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&mut self, lines: u64) {
        for _ in 0..lines {
            self.written += 1;
            writeln!(self.file, "{{\"operation\":\"n{}\"}}", self.written).unwrap();
        }
    }

    fn follower(&mut self) -> &mut Follower<SourceId> {
        if self.follower.is_none() {
            let patterns: Vec<_> = self.patterns.iter().map(|pattern| self.path(pattern)).collect();
            let following = Following::new(&patterns, Arc::new(Conversion::Entries)).unwrap();
            self.ids += 1_000_000;
            let mut next = self.ids;
            let random = move || {
                next += 1;
                u128::from(next).to_le_bytes()
            };
            self.follower = Some(Follower::new(following, self.log.known(), Box::new(random)));
        }
        self.follower.as_mut().unwrap()
    }

    /// Reads until nothing is left that is known of.
    fn catch_up(&mut self) {
        self.follower();
        for _ in 0..5 {
            // All is looked at.
            self.log.now += 11 * 1_000_000_000;
            while self.follower.as_mut().unwrap().step(&mut self.log).unwrap().is_behind {}
        }
    }

    fn step(&mut self) {
        self.follower();
        self.log.now += 300_000_000;
        self.follower.as_mut().unwrap().step(&mut self.log).unwrap();
    }

    /// Whoever follows ends, and so many of the newest entries are lost; of the rest one in the middle may be. The first is left: a log that knows
    /// nothing of a path does not look what was rotated there.
    fn kill(&mut self, lost: usize, gap: Option<usize>) {
        self.follower = None;
        let left = self.log.entries.len().saturating_sub(lost).max(1);
        self.log.entries.truncate(left);
        if let Some(gap) = gap.filter(|_| left > 1) {
            self.log.entries.remove(1 + gap % (left - 1));
        }
    }

    /// Makes room for one more rotated file.
    fn shift(&self) {
        for number in (1..40).rev() {
            for ending in ["", ".gz"] {
                let of = |number: u32| self.path(&format!("app.log.{number}{ending}"));
                if of(number).exists() {
                    fs::rename(of(number), of(number + 1)).unwrap();
                }
            }
        }
    }

    fn rename(&mut self) {
        self.shift();
        fs::rename(self.path("app.log"), self.path("app.log.1")).unwrap();
        self.file = File::create(self.path("app.log")).unwrap();
    }

    fn copy_and_truncate(&mut self) {
        self.copy_and_truncate_late(0, false);
    }

    /// Between the copy and the truncation so many lines are written, which whoever rotates loses; they may be read before that.
    fn copy_and_truncate_late(&mut self, between: u64, are_read: bool) {
        self.shift();
        fs::copy(self.path("app.log"), self.path("app.log.1")).unwrap();
        self.may_be_lost.extend(self.written + 1..=self.written + between);
        self.write(between);
        if are_read {
            self.step();
        }
        self.file.set_len(0).unwrap();
        self.file = OpenOptions::new().append(true).open(self.path("app.log")).unwrap();
    }

    /// The copy is seen while it is made, also by whoever begins to follow just then.
    fn copy_slowly_and_truncate(&mut self, kills: bool) {
        self.shift();
        let whole = fs::read(self.path("app.log")).unwrap();
        for part in [0, whole.len() / 2, whole.len()] {
            fs::write(self.path("app.log.1"), &whole[..part]).unwrap();
            if kills {
                self.kill(0, None);
            }
            self.step();
        }
        self.file.set_len(0).unwrap();
        self.file = OpenOptions::new().append(true).open(self.path("app.log")).unwrap();
    }

    fn compress(&mut self, number: u32) {
        let from = self.path(&format!("app.log.{number}"));
        if !from.exists() {
            return;
        }
        let to = File::create(self.path(&format!("app.log.{number}.gz"))).unwrap();
        let mut packed = flate2::write::GzEncoder::new(to, flate2::Compression::fast());
        packed.write_all(&fs::read(&from).unwrap()).unwrap();
        let to = packed.finish().unwrap();
        to.set_modified(fs::metadata(&from).unwrap().modified().unwrap()).unwrap();
        fs::remove_file(from).unwrap();
    }

    fn check(&self) {
        let mut found: Vec<u64> =
            self.log.operations().iter().map(|operation| operation[1..].parse().unwrap()).collect();
        found.sort_unstable();
        let is_there = |line: &u64| !self.may_be_lost.contains(line) || found.binary_search(line).is_ok();
        let wanted: Vec<u64> = (1..=self.written).filter(is_there).collect();
        assert_eq!(found, wanted, "{:?}", self.log.told);
        assert_eq!(self.log.refused, Vec::<String>::new());
    }
}

#[test]
fn lines_are_read_as_they_come_and_none_twice() {
    let mut world = World::new(&["app.log"]);
    for _ in 0..3 {
        world.write(100);
        world.catch_up();
    }
    world.check();
    assert_eq!(world.log.entries[0].place.start, 0);
}

#[test]
fn what_is_refused_is_refused_once_where_the_log_has_all_before_it() {
    let mut world = World::new(&["app.log"]);
    world.write(100);
    writeln!(world.file, "bad").unwrap();
    world.catch_up();
    for _ in 0..3 {
        world.kill(0, None);
        world.catch_up();
    }
    assert_eq!(world.log.refused.len(), 1);
    // The next entry is of what was passed, too.
    let [end, passed] = [world.log.entries[99].place.end, fs::metadata(world.path("app.log")).unwrap().len()];
    world.kill(0, None);
    world.write(1);
    world.catch_up();
    assert_eq!((world.log.entries[100].place.start, passed), (end, end + 4));
    // What was passed counts no more where an entry before it was lost.
    writeln!(world.file, "worse").unwrap();
    world.catch_up();
    world.kill(1, None);
    world.catch_up();
    assert_eq!(world.log.refused.len(), 4);
    // A file whose end was changed since is the same, up to there.
    world.kill(0, None);
    let content = fs::read_to_string(world.path("app.log")).unwrap();
    fs::write(world.path("app.log"), content.replace("worse", "other")).unwrap();
    world.catch_up();
    assert_eq!(world.log.refused.len(), 5);
    world.log.refused.clear();
    world.check();
    assert_eq!((&world.log.told, &world.log.forgotten), (&Vec::new(), &Vec::new()));
}

/// All that was refused is passed, also where whoever follows is told to end while it reads.
#[test]
fn an_end_amid_a_file_has_nothing_refused_again() {
    let mut world = World::new(&["app.log"]);
    (0..60_000).for_each(|line| writeln!(world.file, "bad {line}").unwrap());
    for at in [1, 40_000] {
        world.log.ends_at = Some(at);
        world.step();
        assert!((at..60_000).contains(&world.log.refused.len()), "{}", world.log.refused.len());
        world.kill(0, None);
    }
    world.log.ends_at = None;
    world.catch_up();
    assert_eq!(world.log.refused.len(), 60_000);
}

#[test]
fn a_line_without_its_end_waits_for_it() {
    let mut world = World::new(&["app.log"]);
    write!(world.file, "{{\"operation\":").unwrap();
    world.catch_up();
    assert_eq!(world.log.operations(), Vec::<&str>::new());
    writeln!(world.file, "\"n1\"}}").unwrap();
    world.written = 1;
    world.catch_up();
    world.check();
}

#[test]
fn rotation_by_rename_loses_nothing_and_the_old_file_may_go_on_for_a_while() {
    let mut world = World::new(&["app.log"]);
    world.write(10);
    world.catch_up();
    world.write(5);
    let old = world.file.try_clone().unwrap();
    world.rename();
    world.catch_up();
    // The writer has not noticed yet.
    let new = std::mem::replace(&mut world.file, old);
    world.write(5);
    world.catch_up();
    world.file = new;
    world.write(5);
    world.catch_up();
    world.check();
    assert_eq!(world.log.told, Vec::<String>::new());
}

#[test]
fn what_was_rotated_while_nobody_followed_is_read_behind_what_was_followed() {
    for compressed in [false, true] {
        let mut world = World::new(&["app.log"]);
        world.write(10);
        world.catch_up();
        world.kill(3, None);
        for _ in 0..3 {
            world.write(10);
            world.rename();
        }
        world.write(10);
        if compressed {
            (1..4).for_each(|number| world.compress(number));
        }
        world.catch_up();
        world.check();
        assert_eq!(world.log.told, Vec::<String>::new());
    }
}

#[test]
fn a_copy_before_a_truncation_has_what_was_not_read() {
    let mut world = World::new(&["app.log"]);
    world.write(10);
    world.catch_up();
    world.write(7);
    world.copy_and_truncate();
    world.write(3);
    world.catch_up();
    world.check();
    // And where the file has grown beyond the place by then.
    world.write(1);
    world.copy_and_truncate();
    world.write(500);
    world.catch_up();
    world.check();
    assert_eq!(world.log.told, Vec::<String>::new());
}

#[test]
fn a_copy_that_ends_before_what_was_read_is_not_read_again() {
    for follows in [true, false] {
        let mut world = World::new(&["app.log"]);
        world.write(10);
        world.catch_up();
        world.copy_and_truncate_late(3, true);
        if follows {
            world.write(1);
            world.catch_up();
        }
        world.kill(0, None);
        world.write(5);
        world.catch_up();
        world.kill(0, None);
        world.compress(1);
        world.write(5);
        world.catch_up();
        world.check();
        assert_eq!(world.log.told, Vec::<String>::new());
    }
}

#[test]
fn a_copy_that_was_met_while_it_was_made_is_not_read() {
    for part in [0, 19, 500] {
        let mut world = World::new(&["app.log"]);
        world.write(300);
        world.catch_up();
        let whole = fs::read(world.path("app.log")).unwrap();
        fs::write(world.path("app.log.1"), b"").unwrap();
        world.kill(0, None);
        world.step();
        fs::write(world.path("app.log.1"), &whole[..part]).unwrap();
        world.step();
        fs::write(world.path("app.log.1"), &whole).unwrap();
        world.step();
        world.file.set_len(0).unwrap();
        world.file = OpenOptions::new().append(true).open(world.path("app.log")).unwrap();
        world.write(3);
        world.catch_up();
        world.kill(0, None);
        world.catch_up();
        world.check();
        assert_eq!(world.log.told, Vec::<String>::new());
    }
}

#[test]
fn what_was_rotated_after_all_that_the_log_has_was_done_with_is_read() {
    let mut world = World::new(&["app.log"]);
    world.write(10);
    world.catch_up();
    world.copy_and_truncate();
    // The next entry is of another path, so that the log knows that this one is done with.
    world.catch_up();
    let id = world.log.entries[0].id;
    let label = world.log.labels[&id].clone();
    assert!(Label::parse(&label).unwrap().finished.is_some());
    world.log.entries.iter_mut().for_each(|kept| kept.label.clone_from(&label));
    world.kill(0, None);
    world.write(10);
    world.rename();
    world.write(10);
    world.rename();
    world.catch_up();
    world.check();
}

#[test]
fn what_is_being_compressed_is_not_read_again() {
    for written in [0, 3, 30, 400] {
        for kills in [false, true] {
            let mut world = World::new(&["app.log"]);
            world.write(2000);
            world.catch_up();
            world.write(10);
            world.rename();
            let whole = fs::read(world.path("app.log.1")).unwrap();
            let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            packed.write_all(&whole).unwrap();
            let packed = packed.finish().unwrap();
            fs::write(world.path("app.log.1.gz"), &packed[..written]).unwrap();
            if kills {
                world.kill(0, None);
            }
            world.write(3);
            world.catch_up();
            fs::write(world.path("app.log.1.gz"), &packed).unwrap();
            fs::remove_file(world.path("app.log.1")).unwrap();
            world.write(3);
            world.catch_up();
            world.kill(0, None);
            world.catch_up();
            world.check();
            assert_eq!(world.log.told, Vec::<String>::new());
        }
    }
}

#[test]
fn what_was_written_to_a_file_after_it_was_compressed_is_in_it_alone() {
    for kills in [false, true] {
        let mut world = World::new(&["app.log"]);
        world.write(300);
        world.catch_up();
        let old = world.file.try_clone().unwrap();
        world.rename();
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(&fs::read(world.path("app.log.1")).unwrap()).unwrap();
        let new = std::mem::replace(&mut world.file, old);
        world.write(5);
        world.file = new;
        world.step();
        world.catch_up();
        fs::write(world.path("app.log.1.gz"), packed.finish().unwrap()).unwrap();
        fs::remove_file(world.path("app.log.1")).unwrap();
        if kills {
            world.kill(0, None);
        }
        world.write(5);
        world.catch_up();
        world.check();
    }
}

#[test]
fn a_truncation_without_a_copy_is_told() {
    let mut world = World::new(&["app.log"]);
    world.write(10);
    world.catch_up();
    world.file.set_len(0).unwrap();
    world.file = OpenOptions::new().append(true).open(world.path("app.log")).unwrap();
    world.write(2);
    world.catch_up();
    world.check();
    assert_eq!(world.log.told.len(), 1, "{:?}", world.log.told);
    assert!(world.log.told[0].contains("truncated"), "{:?}", world.log.told);
}

#[test]
fn what_a_gap_took_is_read_again_and_nothing_behind_it() {
    let mut world = World::new(&["app.log"]);
    world.write(100);
    world.catch_up();
    world.kill(0, Some(40));
    world.catch_up();
    world.check();
    assert_eq!(world.log.operations().last(), Some(&"n42"));
}

#[test]
fn patterns_that_name_rotated_files_too_read_nothing_twice() {
    let mut world = World::new(&["app*"]);
    for round in 0..4 {
        world.write(10);
        world.catch_up();
        world.write(1);
        if round % 2 == 0 {
            world.copy_and_truncate()
        } else {
            world.rename()
        }
        world.catch_up();
    }
    world.kill(0, None);
    world.catch_up();
    (1..4).for_each(|number| world.compress(number));
    world.catch_up();
    world.kill(0, None);
    world.write(1);
    world.catch_up();
    world.check();
}

#[test]
fn a_file_that_goes_is_read_to_its_end_without_one() {
    let mut world = World::new(&["app.log"]);
    world.write(10);
    world.catch_up();
    write!(world.file, "{{\"operation\":\"n11\"}}").unwrap();
    world.written = 11;
    fs::remove_file(world.path("app.log")).unwrap();
    // Its writer may not have noticed.
    world.catch_up();
    assert_eq!(world.follower().state().files, 1);
    world.log.now += 61 * 1_000_000_000;
    world.catch_up();
    world.check();
    assert_eq!(world.follower().state().files, 0);
}

#[derive(Clone, Debug)]
enum Deed {
    Write(u64),
    Step,
    CatchUp,
    Rename,
    CopyAndTruncate,
    CopyAndTruncateLate(u64, bool),
    CopySlowlyAndTruncate(bool),
    Compress(u32),
    Kill(usize, Option<usize>),
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        4 => (1..60_u64).prop_map(Deed::Write),
        3 => Just(Deed::Step),
        1 => Just(Deed::CatchUp),
        1 => Just(Deed::Rename),
        1 => Just(Deed::CopyAndTruncate),
        1 => (1..20_u64, any::<bool>()).prop_map(|(between, are_read)| Deed::CopyAndTruncateLate(between, are_read)),
        1 => any::<bool>().prop_map(Deed::CopySlowlyAndTruncate),
        1 => (1..4_u32).prop_map(Deed::Compress),
        1 => (0..30_usize, proptest::option::of(0..1000_usize)).prop_map(|(lost, gap)| Deed::Kill(lost, gap)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, max_shrink_iters: 2000, ..ProptestConfig::default() })]

    #[test]
    fn each_line_is_there_once(deeds in proptest::collection::vec(deed(), 1..30), all in any::<bool>()) {
        let mut world = World::new(if all { &["app*"] } else { &["app.log"] });
        // Somebody follows from the beginning on.
        world.write(1);
        world.catch_up();
        for deed in deeds {
            match deed {
                Deed::Write(lines) => world.write(lines),
                Deed::Step => world.step(),
                Deed::CatchUp => world.catch_up(),
                Deed::Rename => world.rename(),
                Deed::CopyAndTruncate => world.copy_and_truncate(),
                Deed::CopyAndTruncateLate(between, are_read) => world.copy_and_truncate_late(between, are_read),
                Deed::CopySlowlyAndTruncate(kills) => world.copy_slowly_and_truncate(kills),
                Deed::Compress(number) => world.compress(number),
                Deed::Kill(lost, gap) => world.kill(lost, gap),
            }
        }
        world.catch_up();
        world.check();
    }
}

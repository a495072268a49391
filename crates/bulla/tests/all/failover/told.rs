//! What is told of paths that are missing or lost, and of what lay there.

use super::world::World;
use bulla::store::{PathStanding, PathState};
use bulla::{Finding, FindingKind};
use bulla_testkit::fault::Fault;

/// A log that went from `audit` to `backup` and back, with entries in frames of their own on both.
fn there_and_back() -> World {
    let world = World::new(&["/backup"]);
    let log = world.open();
    world.append_each(&log, 0..4);
    world.machine.fail_below("audit", Fault::NoSpace);
    world.append_each(&log, 4..8);
    log.flush().unwrap();
    world.machine.heal();
    world.machine.fail_below("backup", Fault::NoSpace);
    world.append_each(&log, 8..12);
    log.close().unwrap();
    world.machine.heal();
    world.check(12);
    world
}

fn missing_frames(world: &World) -> Vec<Finding> {
    let findings = world.verify().findings.into_iter();
    findings.filter(|finding| finding.kind == FindingKind::FramesMissing).collect()
}

/// A segment that is whole is not what lacks frames which lay on a path that is gone.
#[test]
fn frames_of_a_path_that_is_gone_are_missing_there_and_in_no_other_segment() {
    let world = there_and_back();
    world.destroy("backup");
    let told = |why: &str, of: &[bulla::Result<()>]| {
        let missing = missing_frames(&world);
        assert!(!missing.is_empty());
        for finding in &missing {
            assert_eq!((&finding.segment, finding.offset), (&None, None), "{finding}");
            assert!(finding.detail.starts_with("no segment that is at hand has it"), "{finding}");
            assert!(finding.detail.contains(why), "{finding}");
        }
        for asked in of {
            let error = asked.as_ref().unwrap_err().to_string();
            assert!(error.contains(why) && !error.contains(".seg"), "{error}");
            assert_eq!(error.matches("a path of the log").count(), 1, "{error}");
        }
    };
    told("backup, a path of the log that was left, is missing", &[world.exported(), world.events()]);
    world.configure(&[]).unwrap();
    // Events go by what is left, once somebody has said that a path is lost.
    told("a path of the log, is lost", &[world.exported()]);
    world.events().unwrap();
}

/// Where all paths are there, it is the segment that was cut.
#[test]
fn a_segment_that_was_cut_is_named_as_long_as_all_paths_are_there() {
    let world = there_and_back();
    let segments = world.files_below("backup").into_iter().filter(|(name, _)| name.ends_with(".seg"));
    let (name, content) = segments.max_by_key(|(_, content)| content.len()).unwrap();
    world.machine.overwrite(&format!("backup/{name}"), &content[..content.len() / 2]);
    let missing = missing_frames(&world);
    assert!(!missing.is_empty());
    for finding in missing {
        assert_eq!(finding.segment, Some(name.trim_start_matches("segments/").to_owned()), "{finding}");
        assert!(finding.detail.contains("the segment lies in backup"), "{finding}");
    }
}

fn standings(world: &World) -> Vec<(String, PathStanding, bool)> {
    let of = |path: PathState| (path.place, path.standing, path.missing.is_some());
    bulla::info_of(world.log()).unwrap().paths.into_iter().map(of).collect()
}

#[test]
fn how_each_path_stands_is_told() {
    use PathStanding::{InUse, Kept, Left, Lost};
    let of = |place: &str, standing, missing| (place.to_owned(), standing, missing);
    let world = World::new(&["/backup", "/other"]);
    let never = [of("audit", InUse, false), of("backup", Kept, false), of("other", Kept, false)];
    assert_eq!(standings(&world), never);
    let log = world.open();
    assert_eq!(log.telemetry().failing_paths, 0);
    world.append_each(&log, 0..4);
    log.flush().unwrap();
    world.machine.fail_below("audit", Fault::NoSpace);
    world.append_each(&log, 4..8);
    log.flush().unwrap();
    assert_eq!(log.telemetry().failing_paths, 1);
    world.machine.fail_below("backup", Fault::NoSpace);
    world.append_each(&log, 8..12);
    log.flush().unwrap();
    assert_eq!((log.telemetry().failing_paths, log.telemetry().failovers.count), (2, 2));
    log.close().unwrap();
    world.machine.heal();
    let moved = [of("audit", Left, false), of("backup", Left, false), of("other", InUse, false)];
    assert_eq!(standings(&world), moved);

    world.destroy("backup");
    assert_eq!(standings(&world)[1], of("backup", Left, true));
    let log = world.open();
    assert_eq!(log.telemetry().failing_paths, 1);
    log.close().unwrap();
    // Without the one in use nobody knows which it is.
    let lying_there = world.files_below("other");
    world.destroy("other");
    let gone = [of("audit", Left, false), of("backup", Left, true), of("other", Kept, true)];
    assert_eq!(standings(&world), gone);
    world.put_back("other", &lying_there);
    world.configure(&["/other"]).unwrap();
    assert_eq!(standings(&world)[2], of("backup", Lost, false));
    let log = world.open();
    assert_eq!(log.telemetry().failing_paths, 0);
    log.close().unwrap();
    // Of a log that has one path there is nothing to tell.
    let world = World::new(&[]);
    assert_eq!(standings(&world), []);
    assert_eq!(world.open().telemetry().failing_paths, 0);
}

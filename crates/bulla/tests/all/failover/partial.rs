//! A log of which a path is missing, or is not what it says: nobody answers from a part as if it were the whole.

use super::world::World;
use crate::crash::world::OpenWrap;
use bulla::mirror::Mirror;
use bulla::{Entry, ErrorKind, Export, FindingKind, Query, Reader, Result, Severity};
use bulla_testkit::fault::Fault;
use std::sync::Arc;

/// A log that has gone on in `backup`, with 20 entries on either path, and `other`, which was never used.
fn moved_on() -> World {
    let world = World::new(&["/backup", "/other"]);
    let log = world.open();
    world.append(&log, 0..20);
    log.flush().unwrap();
    world.machine.fail_below("audit", Fault::NoSpace);
    world.append(&log, 20..40);
    log.close().unwrap();
    world.machine.heal();
    world.check(40);
    world
}

/// What whoever reads the log gets, by how it is read.
fn readings(world: &World) -> Vec<(&'static str, Result<()>)> {
    let reader = || Reader::open_store(world.log()).unwrap().identity(Arc::new(OpenWrap));
    let export = |query: Query| {
        let export = Export::open_store(world.log()).unwrap().identity(Arc::new(OpenWrap));
        export.query(query).run(&mut Vec::new()).map(|_| ())
    };
    let copy = world.machine.store("copy");
    vec![
        ("query", reader().for_each(&Query::new(), |_, _: &Entry<'_>| Ok(())).map(|_| ())),
        ("follow", reader().follow(&Query::new()).map(|_| ())),
        ("events", reader().events(|_| Ok(())).map(|_| ())),
        ("export", export(Query::new())),
        ("export of some", export(Query::new().entries(0..=9))),
        (
            "mirror",
            Mirror::open_stores(world.log(), Arc::new(copy), None)
                .and_then(|mut mirror| mirror.poll(|_| {}))
                .map(|_| ()),
        ),
    ]
}

#[test]
fn whoever_reads_is_told_where_a_path_is_missing_that_may_hold_more() {
    let world = moved_on();
    let lying_there = world.files_below("backup");
    world.destroy("backup");
    for (what, outcome) in readings(&world) {
        let error = outcome.err().unwrap_or_else(|| panic!("{what}"));
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{what}: {error}");
        let told = error.to_string();
        assert!(
            told.contains("backup is a path of the log, and is missing") && told.contains("--also"),
            "{what}: {told}"
        );
    }
    // What is left is given out to whoever asks for that, and nobody is told that it is the log.
    assert_eq!(world.salvaged(), (0..20).collect());
    let report = world.verify();
    let missing = report.findings.iter().find(|finding| finding.kind == FindingKind::PathMissing).unwrap();
    assert!(!report.ok && missing.severity == Severity::Violation, "{:#?}", report.findings);
    let info = bulla::info_of(world.log()).unwrap();
    assert_eq!(info.entries, 20);
    let [missing] = &info.missing_paths[..] else { panic!("{:?}", info.missing_paths) };
    assert!(missing.place.contains("backup") && !missing.left, "{missing:?}");

    world.put_back("backup", &lying_there);
    for (what, outcome) in readings(&world) {
        outcome.unwrap_or_else(|error| panic!("{what}: {error}"));
    }
    world.check(40);
}

/// A mirror that has all is not ended for good by a disk that is not mounted: it goes on once that is back.
#[test]
fn a_mirror_waits_for_a_path_that_is_missing() {
    let world = moved_on();
    let mirror = |world: &World| {
        let mut mirror =
            Mirror::open_stores(world.log(), Arc::new(world.machine.store("copy")), None).unwrap();
        mirror.poll(|_| {})
    };
    let shipped = mirror(&world).unwrap();
    let lying_there = world.files_below("backup");
    world.destroy("backup");
    assert_eq!(mirror(&world).unwrap_err().kind(), ErrorKind::Unavailable);
    world.put_back("backup", &lying_there);
    assert_eq!(mirror(&world).unwrap().frames, shipped.frames);
}

/// A path that the writer has left holds nothing newer: the frames that lay there are missing, and told as that.
#[test]
fn what_the_writer_has_left_may_be_missing() {
    let world = moved_on();
    let log = world.open();
    world.append(&log, 40..60);
    log.close().unwrap();
    world.destroy("audit");
    let newest = Export::open_store(world.log()).unwrap().identity(Arc::new(OpenWrap));
    let exported = newest.query(Query::new().entries(50..=59)).run(&mut Vec::new()).unwrap();
    assert_eq!(exported.entries, 10);
    let [missing] = &exported.missing_paths[..] else { panic!("{:?}", exported.missing_paths) };
    assert!(missing.left, "{missing:?}");
    let told = exported.findings.iter().find(|finding| finding.kind == FindingKind::PathMissing);
    assert_eq!(told.map(|finding| finding.severity), Some(Severity::Notice));
    // What lay there is asked for in vain, and no part of it is given out as the whole.
    let error = Export::open_store(world.log())
        .unwrap()
        .identity(Arc::new(OpenWrap))
        .run(&mut Vec::new())
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Tampered, "{error}");
}

/// Whoever holds one path copies the id of another to it: that would have hidden what lies on the other.
#[test]
fn two_places_that_say_they_are_one_path_are_a_violation_and_both_are_read() {
    for (from, to) in [("backup", "audit"), ("other", "audit"), ("backup", "other"), ("other", "backup")] {
        let world = moved_on();
        let id = world.machine.read(&format!("{from}/path")).unwrap();
        world.machine.overwrite(&format!("{to}/path"), &id);
        // Without keys, in whatever order they are named.
        for also in [["/backup", "/other"], ["/other", "/backup"]] {
            let report = world.verify_with_also(&also);
            let violations = report.findings.iter().filter(|finding| finding.severity == Severity::Violation);
            let kinds = violations.map(|finding| finding.kind).collect::<Vec<_>>();
            assert_eq!(kinds, [FindingKind::PathMismatch], "{from} to {to}: {:#?}", report.findings);
            assert!(!report.ok && report.entries >= 40, "{from} to {to}");
        }
        assert!(!world.verify().ok);
        for (what, outcome) in readings(&world) {
            let error = outcome.err().unwrap_or_else(|| panic!("{what}: {from} to {to}"));
            assert_eq!(error.kind(), ErrorKind::Tampered, "{what}: {error}");
        }
        assert_eq!(world.salvaged(), (0..40).collect(), "{from} to {to}");
        assert_eq!(world.try_open().err().unwrap().kind(), ErrorKind::Tampered);
    }
}

/// An id that the keys do not know, in the place of one that they do.
#[test]
fn another_id_than_the_keys_remember_there_is_a_violation() {
    let world = moved_on();
    let text = String::from_utf8(world.machine.read("backup/path").unwrap()).unwrap();
    let id = world.id("backup");
    world.machine.overwrite("backup/path", text.replace(&id, &"ab".repeat(16)).as_bytes());
    let report = world.verify();
    let found = report.findings.iter().find(|finding| finding.kind == FindingKind::PathMismatch).unwrap();
    assert!(!report.ok && found.detail.contains(&id), "{:#?}", report.findings);
    assert_eq!(world.try_open().err().unwrap().kind(), ErrorKind::Tampered);
}

#[test]
fn a_path_that_is_named_twice_is_one() {
    let world = moved_on();
    let report = world.verify_with_also(&["/backup", "/other", "/backup"]);
    assert!(report.ok, "{:#?}", report.findings);
}

/// Disks may change their places, and a log is opened by the name of any of its paths.
#[test]
fn paths_may_lie_elsewhere_than_they_did() {
    let world = moved_on();
    let (backup, other) = (world.files_below("backup"), world.files_below("other"));
    world.put_back("backup", &other);
    world.put_back("other", &backup);
    world.check(40);
    let log = world.open();
    world.append(&log, 40..60);
    log.close().unwrap();
    world.check(60);
}

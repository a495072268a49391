//! A log whose newest part is lost for good, and what that told of whom it erased.

use super::restore_stops::{STEPS, begin};
use super::restored::{erase, kept, put_back, replace};
use super::states::write_pending;
use super::world::{World, copy, copy_into};
use bulla::event::Event;
use bulla::{FindingKind, Log, Options, Restore, ResumedErasure, Severity};
use bulla_vault::Access;
use std::collections::BTreeSet;

/// A log whose newest part is lost for good, and with it what told that `user_7`, whose entry is left, and `user_30` were erased. Vault and
/// roots are of that time.
pub(super) fn without_its_newest_part(world: World) -> World {
    world.append(0..20);
    let (log, keys) = (copy(&world.directory), copy(&world.keys()));
    world.append(20..50);
    erase(&world, "user_7");
    erase(&world, "user_30");
    let newer = copy(&world.keys());
    replace(log.path(), &world.directory);
    replace(keys.path(), &world.keys());
    put_back(newer.path(), &world.keys(), &["vault", "roots"]);
    world
}

/// That somebody beside those can be erased, with a certificate, and that `user_7` is the only one whose key is lost.
pub(super) fn is_gone_on_with(world: &World, what: &str) {
    let log =
        Log::open(&world.directory, Options::default()).unwrap_or_else(|error| panic!("{what}: {error}"));
    let order = world.order(&["user_8", "user_31", "user_7"]);
    let erasure = log.erase(&order).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!((erasure.numbers, erasure.unknown), (vec![8, 31], vec!["user_7".to_owned()]), "{what}");
    assert!(erasure.keys_lost, "{what}");
    log.close().unwrap();
    let certificate = world.reader().prove_event(erasure.frame).unwrap();
    certificate.verify(Some(&world.key)).unwrap_or_else(|error| panic!("{what}: {error}"));
    let report = world.verified();
    let violations = report.findings.iter().filter(|finding| finding.severity == Severity::Violation);
    let kinds = violations.map(|finding| finding.kind).collect::<Vec<_>>();
    assert_eq!(kinds, [FindingKind::KeyLost], "{what}: {report:?}");
    assert_eq!(world.entries().1, [7, 8], "{what}");
    let told = world.events().into_iter().flat_map(|(_, event)| match event {
        Event::Erased { numbers, .. } => numbers,
        _ => Vec::new(),
    });
    let told = told.collect::<BTreeSet<_>>();
    let checked = world.vault(Access::Read).check(&|number| told.contains(&number), &|_| ()).unwrap();
    assert_eq!((checked.damage, checked.more), (Vec::new(), 0), "{what}");
}

#[test]
fn whose_erasure_was_told_in_a_part_that_is_lost_is_a_lost_key_and_others_can_be_erased() {
    let world = without_its_newest_part(World::new());
    let restore = || Restore::new(&world.directory, world.identity()).older_log();
    let before = kept(&world.keys());
    // Of `user_30` no entry is left.
    assert_eq!(restore().look().unwrap().lost, 1);
    assert!(before == kept(&world.keys()), "something was written");
    assert_eq!(restore().run().unwrap().lost, 1);
    assert!(!Restore::new(&world.directory, world.identity()).look().unwrap().needed);
    is_gone_on_with(&world, "restored");
}

#[test]
fn a_replica_is_told_whose_erasure_a_lost_part_of_the_log_told_of() {
    let world = World::new();
    let replica = world.with_replica();
    let world = without_its_newest_part(world);
    let restore = || Restore::new(&world.directory, world.identity());
    assert_eq!(restore().older_log().run().unwrap().lost, 1);
    for name in ["vault", "roots"] {
        std::fs::remove_dir_all(world.keys().join(name)).unwrap();
        copy_into(&replica.join(name), &world.keys().join(name));
    }
    is_gone_on_with(&world, "replica");
}

/// The last erasure of the lost part was cut short, and taking the log up finishes it: the log tells of it, and that key is not lost.
#[test]
fn an_erasure_that_is_finished_is_no_lost_key_where_a_part_of_the_log_is_lost() {
    for step in STEPS {
        let world = without_its_newest_part(World::new());
        write_pending(&world, &world.order(&["user_9"]), 9);
        begin(&world, &[9], step);
        let restore = || Restore::new(&world.directory, world.identity()).older_log();
        assert_eq!(restore().look().unwrap().lost, 1, "{step}");
        let restored = restore().run().unwrap();
        assert_eq!(restored.resumed, Some(ResumedErasure::Finished { numbers: vec![9] }), "{step}");
        assert_eq!(restored.lost, 1, "{step}");
        let log = Log::open(&world.directory, Options::default()).unwrap();
        assert_eq!(log.erase(&world.order(&["user_10"])).unwrap().numbers, [10], "{step}");
        log.close().unwrap();
    }
}

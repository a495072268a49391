//! A mirror that is stopped at any of its operations, by a kill or a power cut, or whose medium fails.

use super::{Source, files, is_sound};
use crate::helpers::{in_turn, one_in, strikes};
use crate::policy::witness;
use bulla::mirror::Mirror;
use bulla::store::Store;
use bulla::{ErrorKind, Verify, default_keys};
use bulla_testkit::fault::{Fault, Faults};
use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::sync::Arc;

const COPY: &str = "copy";
const UNSYNCED: u64 = 4 << 10;

fn ship(source: &Source, from: &Path, machine: &Faults) -> bulla::Result<bulla::mirror::Shipped> {
    let destination: Arc<dyn Store> = Arc::new(machine.store(COPY));
    // So little that segments have several syncs, and whoever goes on has something to take up.
    let mirror = Mirror::open_stores(files(from), destination, Some(source.key.clone()))?;
    mirror.unsynced_at_most(UNSYNCED).poll(|_| {})
}

/// The size of the tree that a verification without a violation finds at the destination; nothing where it says that there is no log yet.
fn verified(source: &Source, machine: &Faults, what: &str) -> Option<u64> {
    let verify = Verify::open_store(Arc::new(machine.store(COPY)));
    match verify.and_then(|verify| verify.key(source.key.clone()).run()) {
        Ok(report) => {
            is_sound(&report, what);
            // Nor is it less witnessed than it was.
            let policy = source.policy.clone().unwrap();
            let verify = Verify::open_store(Arc::new(machine.store(COPY))).unwrap().policy(policy);
            is_sound(&verify.key(source.key.clone()).run().unwrap(), what);
            Some(report.tree_size)
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{what}: {error}");
            let none = ["no such directory", "it has no bulla.toml", "its first checkpoint has not arrived"];
            assert!(none.iter().any(|why| error.to_string().contains(why)), "{what}: {error}");
            None
        }
    }
}

/// The size that the checkpoint says which readers see at the destination.
fn size_of(machine: &Faults) -> Option<u64> {
    let note = machine.read(&format!("{COPY}/checkpoint"))?;
    String::from_utf8(note).unwrap().lines().nth(1).unwrap().parse().ok()
}

/// The size of the tree of a log that is sound.
fn size(source: &Source, directory: &Path) -> u64 {
    source.verify(directory).run().unwrap().tree_size
}

/// That whatever an interrupted mirror has left verifies under the old checkpoint or the new one, and is gone on with.
fn survives(source: &Source, machine: &Faults, (old, new): (Option<u64>, u64), what: &str) {
    let found = verified(source, machine, what);
    assert!(found == old || found == Some(new), "{what}: {found:?} is neither {old:?} nor {new}");
    let shipped = ship(source, &source.directory, machine);
    assert_eq!(shipped.unwrap_or_else(|error| panic!("{what}: {error}")).frames, new, "{what}");
    assert_eq!(verified(source, machine, what), Some(new), "{what}");
    let copy = Verify::open_store(Arc::new(machine.store(COPY))).unwrap();
    // Seals are in no commitment: of what was taken up they tell whether all of it was durable.
    let seal_key = fs::read_to_string(default_keys(&source.directory).join("seal.key")).unwrap();
    let report = copy.key(source.key.clone()).seal_key(&seal_key).unwrap().strict(true).run().unwrap();
    assert!(report.findings.is_empty(), "{what}: {:?}", report.findings);
    let cosigned = [1, 2].map(|seed| format!("cosigned/{:08x}", witness(seed).1.key_id()));
    for name in
        ["checkpoint.cose", "checkpoint.witnessed"].into_iter().chain(cosigned.iter().map(|name| &name[..]))
    {
        let of_source = fs::read(source.directory.join(name)).unwrap();
        assert_eq!(machine.read(&format!("{COPY}/{name}")), Some(of_source), "{what}: {name}");
    }
}

/// A machine that has a mirror of what the log was earlier, or, of a first one, nothing.
fn before(source: &Source, earlier: Option<&Path>) -> Faults {
    let machine = Faults::new();
    machine.store("").create_directory("").unwrap();
    if let Some(earlier) = earlier {
        ship(source, earlier, &machine).unwrap();
    }
    machine
}

/// Every so many operations of a mirror that ships the log to a machine as it was `before`.
fn each_operation(nth: usize, first: bool, act: impl Fn(&Source, &Faults, u64, &str, (Option<u64>, u64))) {
    let (source, earlier) = Source::witnessed();
    let earlier = (!first).then_some(&*earlier);
    let sizes = (earlier.map(|earlier| size(&source, earlier)), size(&source, &source.directory));
    let base = before(&source, earlier);
    let whole = base.kill();
    let from = whole.operations();
    ship(&source, &source.directory, &whole).unwrap();
    let trace = whole.trace();
    let last = whole.operations();
    assert!(last - from > 30, "{}", last - from);
    // Beginning and end are what is special: between them frame after frame is written.
    let special = (from..last).filter(|at| at - from < 12 || last - at < 75).collect::<Vec<_>>();
    let between = (from..last).filter(|at| !special.contains(at));
    for at in special.iter().copied().chain(one_in(nth, between)) {
        let line = trace.iter().find(|line| line.split(' ').next() == Some(&at.to_string()));
        act(&source, &base.kill(), at, line.map_or("", String::as_str), sizes);
    }
}

fn stopped_anywhere(first: bool) {
    each_operation(40, first, |source, machine, at, line, sizes| {
        machine.stop_at(at);
        // What is done after the checkpoint was published only gives back space, and its failure is nobody's.
        let shipped = ship(source, &source.directory, machine);
        assert!(machine.stopped());
        if shipped.is_ok() {
            assert_eq!(size_of(machine), Some(sizes.1), "what is said to be there is there: {line}");
        }
        survives(source, &machine.kill(), sizes, &format!("killed at {line}"));
        for seed in in_turn(&[0, 1, 2, 3, 4, 5, 6, 7], at) {
            survives(source, &machine.crash(seed), sizes, &format!("power cut {seed} at {line}"));
        }
    });
}

#[test]
fn a_first_mirror_that_is_stopped_anywhere_is_none_yet_or_verifies_and_is_gone_on_with() {
    stopped_anywhere(true);
}

#[test]
fn a_mirror_that_is_stopped_anywhere_verifies_and_is_gone_on_with() {
    stopped_anywhere(false);
}

#[test]
fn what_was_durable_by_then_is_not_sent_again() {
    let (source, _) = Source::witnessed();
    let base = before(&source, None);
    let writes = |machine: &Faults| {
        let of_segments = |line: &&String| line.contains(" Write ") && line.contains("/segments/");
        machine.trace().iter().filter(of_segments).count()
    };
    let whole = base.kill();
    ship(&source, &source.directory, &whole).unwrap();
    let trace = whole.trace();
    let published = trace.iter().find(|line| line.contains("Rename copy/checkpoint.tmp")).unwrap();
    let machine = base.kill();
    machine.stop_at(published.split(' ').next().unwrap().parse().unwrap());
    ship(&source, &source.directory, &machine).unwrap_err();
    for next in [machine.kill(), machine.crash(0), machine.crash(7)] {
        ship(&source, &source.directory, &next).unwrap();
        let (again, all) = (writes(&next), writes(&whole));
        assert!(all > 200 && again < all / 4, "{again} of {all} writes");
        assert!(verified(&source, &next, "gone on with").is_some());
    }
}

#[test]
fn a_mirror_whose_medium_fails_says_so_and_is_as_it_was() {
    let (tried, failed) = (Cell::new(0), Cell::new(0));
    each_operation(90, false, |source, machine, at, line, sizes| {
        for fault in in_turn(&Fault::ALL, at).into_iter().filter(|fault| strikes(*fault, line)) {
            let machine = machine.kill();
            machine.fail_at(at, fault);
            let what = format!("{fault:?} at {line}");
            tried.set(tried.get() + 1);
            // Where something is done only to give back space, its failure is nobody's.
            if let Err(error) = ship(source, &source.directory, &machine) {
                assert_eq!(error.kind(), ErrorKind::Unavailable, "{what}: {error}");
                failed.set(failed.get() + 1);
            }
            machine.heal();
            survives(source, &machine.crash(at), sizes, &format!("{what}, and then a power cut"));
            survives(source, &machine, sizes, &what);
        }
    });
    assert!(tried.get() > 15 && failed.get() > 10, "{} tried, {} failed", tried.get(), failed.get());
}

#[test]
fn a_disk_that_is_full_leaves_the_mirror_as_it_was() {
    let (source, earlier) = Source::witnessed();
    let sizes = (Some(size(&source, &earlier)), size(&source, &source.directory));
    let machine = before(&source, Some(&earlier));
    let used =
        machine.files().into_iter().filter_map(|path| machine.read(&path)).map(|file| file.len() as u64);
    machine.limit_space(used.sum::<u64>() + 30_000);
    let error = ship(&source, &source.directory, &machine).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("writing"), "{error}");
    assert_eq!(verified(&source, &machine, "full"), sizes.0);
    machine.heal();
    survives(&source, &machine, sizes, "with room again");
}

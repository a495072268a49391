//! Small files that are replaced whole, on a disk that loses what was not synced.

use crate::Memory;
use crate::fault::{Fault, Faults};
use bulla_store::{Store, replace, write_new};
use std::io;

const OLD: &[u8] = b"the old content, which is longer than a few bytes";
const SEEDS: u64 = 48;

fn new_content() -> Vec<u8> {
    (0..3000).map(|i| u8::try_from(i % 251).unwrap()).collect()
}

fn machine_with(old: Option<&[u8]>) -> Faults {
    let machine = Faults::new();
    machine.store("").create_directory("log").unwrap();
    machine.store("").sync_directory("").unwrap();
    if let Some(old) = old {
        replace(&machine.store("log"), "file", old).unwrap();
    }
    machine
}

/// Stops at every operation of `write`, cuts the power in many ways, and repeats the write on what is left.
fn at_every_crash(old: Option<&[u8]>, write: fn(&dyn Store, &str, &[u8]) -> io::Result<()>) {
    let new = new_content();
    let whole = machine_with(old);
    let start = whole.operations();
    write(&whole.store("log"), "file", &new).unwrap();
    let (mut olds, mut news) = (0, 0);
    for stop in start..=whole.operations() {
        let machine = machine_with(old);
        machine.stop_at(stop);
        let acknowledged = write(&machine.store("log"), "file", &new).is_ok();
        assert_eq!(acknowledged, stop == whole.operations());
        let images = (0..SEEDS).map(|seed| machine.crash(seed)).chain([machine.kill()]);
        for image in images {
            let found = image.read("log/file");
            if acknowledged {
                assert_eq!(found.as_deref(), Some(&new[..]), "stop {stop}: {:#?}", image.trace());
            } else if found.as_deref() == Some(&new) {
                news += 1;
            } else {
                assert_eq!(found.as_deref(), old, "stop {stop}: {:#?}", image.trace());
                olds += 1;
                write(&image.store("log"), "file", &new).unwrap();
                assert_eq!(image.crash(0).read("log/file").as_deref(), Some(&new[..]));
                assert_eq!(image.store("log").list("").unwrap().len(), 1, "nothing is left over");
            }
        }
    }
    assert!(olds > 0 && news > 0, "{olds} {news}");
}

#[test]
fn a_crash_leaves_the_old_or_the_new_content() {
    at_every_crash(Some(OLD), replace);
}

#[test]
fn a_crash_leaves_the_new_content_or_nothing() {
    at_every_crash(None, replace);
    at_every_crash(None, write_new);
}

#[test]
fn a_fault_leaves_the_old_or_the_new_content() {
    let new = new_content();
    for fault in Fault::ALL {
        let mut failures = 0;
        for number in 0..12 {
            let machine = machine_with(Some(OLD));
            machine.fail_at(machine.operations() + number, fault);
            let result = replace(&machine.store("log"), "file", &new);
            failures += usize::from(result.is_err());
            for seed in 0..SEEDS {
                let found = machine.crash(seed).read("log/file").unwrap();
                assert!(found == new || (found == OLD && result.is_err()), "{fault:?} at {number}");
            }
            machine.heal();
            replace(&machine.store("log"), "file", &new).unwrap();
            assert_eq!(machine.crash(0).read("log/file").unwrap(), new);
        }
        assert!(failures > 0, "{fault:?} never struck");
    }
}

#[test]
fn a_taken_name_is_kept() {
    let store = Memory::new();
    write_new(&store, "file", OLD).unwrap();
    let error = write_new(&store, "file", b"new").unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    let mut content = [0; OLD.len()];
    store.open("file").unwrap().read_exact_at(&mut content, 0).unwrap();
    assert_eq!(content, OLD);
    store.create_directory("directory").unwrap();
    let error = write_new(&store, "directory", b"new").unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
}

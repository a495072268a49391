//! Small files that are there whole, in their old or their new form, whatever happens.
//!
//! The content goes to a file beside it, is synced, takes the name, and the directory is synced. Who calls sees to it
//! that nobody else writes the same path meanwhile; the lock on the log does.

use std::io::{self, IoSlice};

use super::{Store, parent};

/// Gives `path` this content. After an error, or a crash, it has the old one or the new one; after `Ok` the new one,
/// durably.
pub fn replace(store: &dyn Store, path: &str, content: &[u8]) -> io::Result<()> {
    let temporary = format!("{path}.tmp");
    let result = write_synced(store, &temporary, content).and_then(|()| store.rename(&temporary, path));
    if let Err(error) = result {
        // Only to give back the space: what is left over is removed by the next attempt, too.
        let _ = store.remove(&temporary);
        return Err(error);
    }
    store.sync_directory(parent(path))
}

/// The same for a name that is free; `AlreadyExists` where it is taken, also where the taken name is not durable yet.
pub fn write_new(store: &dyn Store, path: &str, content: &[u8]) -> io::Result<()> {
    match store.open(path) {
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(error) if error.kind() == io::ErrorKind::IsADirectory => Err(io::ErrorKind::AlreadyExists.into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => replace(store, path, content),
        Err(error) => Err(error),
    }
}

fn write_synced(store: &dyn Store, path: &str, content: &[u8]) -> io::Result<()> {
    match store.remove(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = store.create(path)?;
    file.write_at(&mut [IoSlice::new(content)], 0)?;
    file.sync()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Memory;
    use crate::store::fault::{Fault, Faults};

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
}

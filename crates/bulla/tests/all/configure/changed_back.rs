//! A log whose `[log]` is changed and changed back while it is read: the file is what it was, and goes with no checkpoint of the time between.

use super::{Made, person};
use crate::helpers::refuse_writes;
use bulla::store::{Item, Store, StoreFile};
use bulla::{ErrorKind, Reader, Verify};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A log that is in its second state once its configuration or checkpoint was opened so often, and in its third after so many times more.
#[derive(Debug)]
struct Moving {
    states: [Arc<dyn Store>; 3],
    times: [usize; 2],
    opened: AtomicUsize,
}

impl Moving {
    fn now(&self) -> &dyn Store {
        let opened = self.opened.load(Ordering::Relaxed);
        &*self.states[self.times.iter().filter(|times| opened >= **times).count()]
    }
}

impl Store for Moving {
    fn open(&self, path: &str) -> io::Result<Box<dyn StoreFile>> {
        let file = self.now().open(path);
        if matches!(path, "bulla.toml" | "checkpoint") {
            self.opened.fetch_add(1, Ordering::Relaxed);
        }
        file
    }

    fn list(&self, directory: &str) -> io::Result<Vec<Item>> {
        self.now().list(directory)
    }

    fn is_locked(&self, path: &str) -> io::Result<bool> {
        self.now().is_locked(path)
    }

    fn describe(&self, path: &str) -> String {
        self.now().describe(path)
    }

    refuse_writes!();
}

#[test]
fn no_moment_between_two_changes_is_told_as_damage() {
    let made = Made::filled();
    let state = |made: &Made| -> Arc<dyn Store> { Arc::new(made.killed().machine.store("audit")) };
    let first = state(&made);
    made.change(&[&made.owner, &person()]).unwrap();
    let second = state(&made);
    made.change(&[&made.owner]).unwrap();
    let states = [first, second, state(&made)];
    let looked = |times: [usize; 2], verifies: bool| {
        let moving = Arc::new(Moving { states: states.clone(), times, opened: AtomicUsize::new(0) });
        let done = match verifies {
            true => Verify::open_store(moving.clone()).and_then(Verify::run).map(|report| report.ok),
            false => {
                Reader::open_store(moving.clone()).and_then(|reader| reader.events(|_| Ok(()))).map(|()| true)
            }
        };
        (done, moving.opened.load(Ordering::Relaxed))
    };
    for verifies in [false, true] {
        let (whole, most) = looked([usize::MAX; 2], verifies);
        assert!(whole.unwrap() && most > 2, "{most}");
        for first in 0..=most {
            for second in first..=most + 3 {
                match looked([first, second], verifies).0 {
                    Ok(sound) => assert!(sound, "{verifies}, {first}, {second}"),
                    Err(error) => {
                        assert_eq!(
                            error.kind(),
                            ErrorKind::Unavailable,
                            "{verifies}, {first}, {second}: {error}"
                        );
                    }
                }
            }
        }
    }
}

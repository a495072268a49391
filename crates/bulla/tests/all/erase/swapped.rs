//! Who has the storage can give out another file at each time that one is opened. Whatever is read of a log is judged by the checkpoint that it was
//! read under, and not by the one that lies there a moment before or after.

use super::older_log::before_an_erasure;
use super::restored::put_back;
use super::world::World;
use crate::helpers::refuse_writes;
use bulla::environment::Environment;
use bulla::store::{FileSystem, Item, Store, StoreFile};
use bulla::{ErrorKind, Export, Query, join_paths};
use bulla_vault::Access;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// A log of which one file is that of another directory at some of the times that it is opened.
#[derive(Debug)]
struct Swapped {
    log: FileSystem,
    other: FileSystem,
    file: &'static str,
    times: Range<usize>,
    opened: AtomicUsize,
}

impl Store for Swapped {
    fn open(&self, path: &str) -> io::Result<Box<dyn StoreFile>> {
        let swapped = path == self.file && self.times.contains(&self.opened.fetch_add(1, Ordering::Relaxed));
        if swapped { self.other.open(path) } else { self.log.open(path) }
    }

    fn list(&self, directory: &str) -> io::Result<Vec<Item>> {
        self.log.list(directory)
    }

    fn is_locked(&self, path: &str) -> io::Result<bool> {
        self.log.is_locked(path)
    }

    fn describe(&self, path: &str) -> String {
        self.log.describe(path)
    }

    refuse_writes!();
}

/// What an export of some of the log, or of all, gives out of such a log, and how often the file was opened.
fn exported(
    world: &World,
    (file, other): (&'static str, &FileSystem),
    times: Range<usize>,
    all: bool,
) -> (bulla::Result<String>, usize) {
    let log = FileSystem::new(&world.directory);
    let swapped = Arc::new(Swapped { log, other: other.clone(), file, times, opened: AtomicUsize::new(0) });
    let keys: Arc<dyn Store> = Arc::new(FileSystem::new(world.keys()));
    let mut out = Vec::new();
    let mut export = || {
        let log = join_paths(swapped.clone(), Some(&keys), &[], &Environment::default())?;
        let export = Export::open_store(log)?.key(world.key.clone()).identity(world.identity());
        let query = if all { Query::new() } else { Query::new().entries(0..=1_000_000) };
        export.group_keys(Arc::new(world.vault(Access::Read))).query(query).run(&mut out).map(drop)
    };
    let done = export();
    (done.map(|()| String::from_utf8(out).unwrap()), swapped.opened.load(Ordering::Relaxed))
}

#[test]
fn a_checkpoint_that_is_swapped_for_an_older_one_at_any_moment_hides_nothing() {
    let (newest, older, older_keys) = before_an_erasure();
    let older = FileSystem::new(older.path());
    let under_older = newest.copied();
    put_back(older_keys.path(), &under_older.keys(), &["vault", "roots"]);
    for all in [false, true] {
        let (whole, opened) = exported(&newest, ("checkpoint", &older), 0..0, all);
        let whole = whole.unwrap();
        assert!(whole.contains("user_8\"") && !whole.contains("user_7\""), "{whole}");
        assert!(opened > 2, "{opened}");
        let times = (0..opened)
            .flat_map(|first| [first..first + 1, first..first + 2, first..usize::MAX, 0..first + 1]);
        let times = times.collect::<Vec<_>>();
        // Those that refuse look again for a while.
        thread::scope(|scope| {
            for times in times {
                let (newest, under_older, older, whole) = (&newest, &under_older, &older, &whole);
                scope.spawn(move || {
                    for world in [newest, under_older] {
                        match exported(world, ("checkpoint", older), times.clone(), all).0 {
                            Ok(given) => {
                                assert_eq!(given.lines().count(), whole.lines().count(), "{times:?}");
                                assert!(!given.contains("user_7\""), "{times:?}: {given}");
                            }
                            Err(error) => assert!(
                                matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Tampered),
                                "{times:?}: {error}"
                            ),
                        }
                    }
                });
            }
        });
    }
}

/// A log whose configuration cannot be read as it is opened is compared with the seal state all the same, once it can be.
#[test]
fn a_configuration_that_is_away_for_a_moment_hides_nothing() {
    let (newest, older, older_keys) = before_an_erasure();
    let nothing = tempfile::tempdir().unwrap();
    let nothing = FileSystem::new(nothing.path());
    let opened = exported(&newest, ("bulla.toml", &nothing), 0..0, false).1;
    put_back(older.path(), &newest.directory, &["checkpoint"]);
    put_back(older_keys.path(), &newest.keys(), &["vault", "roots"]);
    thread::scope(|scope| {
        for last in 0..opened {
            let (newest, nothing) = (&newest, &nothing);
            scope.spawn(move || {
                let given = exported(newest, ("bulla.toml", nothing), 0..last, false).0;
                assert!(given.is_err(), "{last}: {given:?}");
            });
        }
    });
}

//! What every store must do, and what only the file system can.

mod allocator;
mod atomic;
mod links;

use std::fs;
use std::io::{self, IoSlice};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use proptest::prelude::*;

use crate::Memory;
use crate::fault::Faults;
use bulla_store::path::parent;
use bulla_store::*;

/// Runs `check` on an empty store of every kind, whose root exists.
fn on_every_store(check: fn(&dyn Store)) {
    let directory = tempfile::tempdir().unwrap();
    for store in stores(directory.path()) {
        check(&*store);
    }
}

fn stores(directory: &Path) -> [Box<dyn Store>; 5] {
    let stores: [Box<dyn Store>; 5] = [
        Box::new(FileSystem::new(directory.join("root"))),
        Box::new(FileSystem::without_openat2(directory.join("fallback"))),
        Box::new(Memory::new()),
        Box::new(Faults::new().store("")),
        Box::new(Faults::new().store("a/root")),
    ];
    for store in &stores {
        store.create_directory("").unwrap();
    }
    stores
}

fn write(file: &dyn StoreFile, content: &[u8], offset: u64) {
    file.write_at(&mut [IoSlice::new(content)], offset).unwrap();
}

fn content(store: &dyn Store, path: &str) -> io::Result<Vec<u8>> {
    let file = store.open(path)?;
    let mut content = vec![0; usize::try_from(file.length()?).unwrap()];
    file.read_exact_at(&mut content, 0)?;
    Ok(content)
}

fn kind<T>(result: io::Result<T>) -> io::ErrorKind {
    result.err().unwrap().kind()
}

fn names(store: &dyn Store, directory: &str) -> Vec<String> {
    store.list(directory).unwrap().into_iter().map(|item| item.name).collect()
}

#[test]
fn what_is_written_is_read() {
    on_every_store(|store| {
        let file = store.create("file").unwrap();
        file.write_at(&mut [IoSlice::new(b"one "), IoSlice::new(b""), IoSlice::new(b"two")], 0).unwrap();
        write(&*file, b"three", 10);
        file.sync().unwrap();
        assert_eq!(file.length().unwrap(), 15);
        assert_eq!(content(store, "file").unwrap(), b"one two\0\0\0three");

        let mut buffer = [9; 4];
        assert_eq!(file.read_at(&mut buffer, 13).unwrap(), 2);
        assert_eq!(buffer, *b"ee\x09\x09");
        assert_eq!(file.read_at(&mut buffer, 15).unwrap(), 0);
        assert_eq!(file.read_at(&mut buffer, 1000).unwrap(), 0);
        assert_eq!(kind(file.read_exact_at(&mut buffer, 12)), io::ErrorKind::UnexpectedEof);

        file.set_length(5).unwrap();
        file.set_length(7).unwrap();
        assert_eq!(content(store, "file").unwrap(), b"one t\0\0");
        file.write_at(&mut [], 100).unwrap();
        file.write_at(&mut [IoSlice::new(b"")], 100).unwrap();
        assert_eq!(file.length().unwrap(), 7, "writing nothing extends nothing");
        assert!(file.write_at(&mut [IoSlice::new(b"x")], u64::MAX).is_err());
    });
}

#[test]
fn more_vectors_than_the_system_takes_at_once_are_written() {
    on_every_store(|store| {
        let bytes: Vec<[u8; 3]> =
            (0..3000_u16).map(|i| [i.to_le_bytes()[0], i.to_le_bytes()[1], 7]).collect();
        let mut buffers: Vec<IoSlice<'_>> = bytes.iter().map(|bytes| IoSlice::new(bytes)).collect();
        let file = store.create("file").unwrap();
        file.write_at(&mut buffers, 5).unwrap();
        assert_eq!(content(store, "file").unwrap()[5..], bytes.concat());
    });
}

#[test]
fn files_are_created_once_and_opened_as_asked() {
    on_every_store(|store| {
        drop(store.create("file").unwrap());
        assert_eq!(kind(store.create("file")), io::ErrorKind::AlreadyExists);
        assert_eq!(kind(store.open("missing")), io::ErrorKind::NotFound);
        assert_eq!(kind(store.open_write("missing")), io::ErrorKind::NotFound);
        assert_eq!(kind(store.create("missing/file")), io::ErrorKind::NotFound);
        assert_eq!(kind(store.open("file/below")), io::ErrorKind::NotADirectory);

        let reader = store.open("file").unwrap();
        assert!(reader.write_at(&mut [IoSlice::new(b"x")], 0).is_err());
        assert!(reader.set_length(0).is_err());
        write(&*store.open_write("file").unwrap(), b"x", 0);
        assert_eq!(reader.length().unwrap(), 1, "handles see each other's writes");

        store.create_directory("directory").unwrap();
        assert_eq!(kind(store.open("directory")), io::ErrorKind::IsADirectory);
        assert_eq!(kind(store.open_write("directory")), io::ErrorKind::IsADirectory);
        assert_eq!(kind(store.create("directory")), io::ErrorKind::AlreadyExists);
    });
}

#[test]
fn renaming_replaces_and_removing_removes() {
    on_every_store(|store| {
        store.create_directory("d").unwrap();
        let file = store.create("a").unwrap();
        write(&*file, b"a", 0);
        write(&*store.create("d/b").unwrap(), b"b", 0);
        let replaced = store.open("d/b").unwrap();
        store.rename("a", "d/b").unwrap();
        assert_eq!(names(store, ""), ["d"]);
        assert_eq!(content(store, "d/b").unwrap(), b"a");
        write(&*file, b"more", 1);
        assert_eq!(content(store, "d/b").unwrap(), b"amore", "a handle follows its file");
        let mut byte = [0];
        replaced.read_exact_at(&mut byte, 0).unwrap();
        assert_eq!(byte, *b"b", "a handle keeps a file without a name");

        store.rename("d/b", "d/b").unwrap();
        assert_eq!(kind(store.rename("missing", "x")), io::ErrorKind::NotFound);
        assert_eq!(kind(store.rename("d/b", "missing/x")), io::ErrorKind::NotFound);
        store.create_directory("empty").unwrap();
        assert_eq!(kind(store.rename("d/b", "empty")), io::ErrorKind::IsADirectory);
        assert!(store.rename("d/b", "d").is_err());
        assert!(store.remove("d").is_err());
        store.remove("d/b").unwrap();
        assert_eq!(kind(store.remove("d/b")), io::ErrorKind::NotFound);
        assert_eq!(kind(store.open("d/b")), io::ErrorKind::NotFound);
    });
}

#[test]
fn directories_are_listed_sorted_and_removed_empty() {
    on_every_store(|store| {
        store.create_directory("").unwrap();
        store.create_directory("d/e/f").unwrap();
        store.create_directory("d/e").unwrap();
        for path in ["d/b", "d/a", "d/e-", "d/e.x", "d/e/deep", "z"] {
            store.create(path).unwrap();
        }
        let item = |name: &str, directory| Item { name: name.to_owned(), directory };
        let expected =
            [item("a", false), item("b", false), item("e", true), item("e-", false), item("e.x", false)];
        assert_eq!(store.list("d").unwrap(), expected);
        assert_eq!(names(store, ""), ["d", "z"]);
        assert_eq!(names(store, "d/e/f"), [""; 0]);
        assert_eq!(kind(store.list("missing")), io::ErrorKind::NotFound);
        assert_eq!(kind(store.list("z")), io::ErrorKind::NotADirectory);
        for path in ["", "d", "d/e"] {
            store.sync_directory(path).unwrap();
        }
        assert_eq!(kind(store.sync_directory("missing")), io::ErrorKind::NotFound);
        assert_eq!(kind(store.sync_directory("z")), io::ErrorKind::NotADirectory);
        assert!(store.create_directory("z").is_err());
        assert!(store.create_directory("z/below").is_err());

        assert_eq!(kind(store.remove_directory("d/e")), io::ErrorKind::DirectoryNotEmpty);
        assert_eq!(kind(store.remove_directory("missing")), io::ErrorKind::NotFound);
        assert_eq!(kind(store.remove_directory("z")), io::ErrorKind::NotADirectory);
        store.remove_directory("d/e/f").unwrap();
        assert_eq!(kind(store.list("d/e/f")), io::ErrorKind::NotFound);
        assert_eq!(names(store, "d/e"), ["deep"]);
    });
}

#[test]
fn a_lock_has_one_holder() {
    on_every_store(|store| {
        assert!(!store.is_locked("LOCK").unwrap());
        let guard = store.lock("LOCK").unwrap();
        assert!(store.is_locked("LOCK").unwrap());
        assert_eq!(kind(store.lock("LOCK")), io::ErrorKind::WouldBlock);
        let _other = store.lock("OTHER").unwrap();
        drop(guard);
        assert!(!store.is_locked("LOCK").unwrap());
        drop(store.lock("LOCK").unwrap());
        assert_eq!(names(store, ""), ["LOCK", "OTHER"]);
        assert_eq!(kind(store.lock("missing/LOCK")), io::ErrorKind::NotFound);
    });
}

#[test]
fn paths_stay_inside() {
    on_every_store(|store| {
        for path in ["/etc", "..", "a/../b", "./a", "a/.", "a//b", "a/", "/", "nul\0"] {
            let errors = [
                store.create(path).err(),
                store.open(path).err(),
                store.open_write(path).err(),
                store.rename(path, "x").err(),
                store.rename("x", path).err(),
                store.remove(path).err(),
                store.list(path).err(),
                store.create_directory(path).err(),
                store.remove_directory(path).err(),
                store.sync_directory(path).err(),
                store.lock(path).err(),
                store.is_locked(path).err(),
            ];
            for error in errors {
                let error = error.unwrap();
                assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{path:?} {error}");
                assert!(error.to_string().contains(&format!("{path:?}")), "{error}");
            }
        }
        assert_eq!(kind(store.create("")), io::ErrorKind::InvalidInput);
        assert_eq!(kind(store.remove_directory("")), io::ErrorKind::InvalidInput);
        drop(store.create("..a").unwrap());
    });
}

#[test]
fn a_missing_root_is_not_found() {
    let directory = tempfile::tempdir().unwrap();
    let missing: [Box<dyn Store>; 2] =
        [Box::new(FileSystem::new(directory.path().join("a/b"))), Box::new(Faults::new().store("a/b"))];
    for store in missing {
        assert_eq!(kind(store.list("")), io::ErrorKind::NotFound);
        assert_eq!(kind(store.create("file")), io::ErrorKind::NotFound);
        store.create_directory("d").unwrap();
        assert_eq!(names(&*store, ""), ["d"]);
    }
}

#[test]
fn the_parent_of_a_path() {
    assert_eq!(parent("a/b/c"), "a/b");
    assert_eq!(parent("a"), "");
    assert_eq!(parent(""), "");
    assert_eq!(path::ancestors("a/b/c").collect::<Vec<_>>(), ["a", "a/b", "a/b/c"]);
    assert_eq!(path::ancestors("").count(), 0);
}

#[test]
fn the_file_system_keeps_others_out() {
    let directory = tempfile::tempdir().unwrap();
    let store = FileSystem::new(directory.path().join("above/root"));
    store.create_directory("d/e").unwrap();
    store.create("d/file").unwrap();
    drop(store.lock("LOCK").unwrap());
    let mode = |path: &str| fs::metadata(store.describe(path)).unwrap().permissions().mode() & 0o7777;
    for path in ["", "d", "d/e"] {
        assert_eq!(mode(path), 0o700, "{path:?}");
    }
    assert_eq!(mode("d/file"), 0o600);
    assert_eq!(mode("LOCK"), 0o600);
    assert_eq!(store.describe("d/file"), directory.path().join("above/root/d/file").to_str().unwrap());
}

#[test]
fn the_file_system_reports_what_is_neither_file_nor_directory() {
    use std::os::unix::ffi::OsStrExt;

    let directory = tempfile::tempdir().unwrap();
    let store = FileSystem::new(directory.path());
    store.create_directory("d").unwrap();
    symlink("d", directory.path().join("link")).unwrap();
    let pipe = directory.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let item = |name: &str, directory| Item { name: name.to_owned(), directory };
    assert_eq!(store.list("").unwrap(), [item("d", true), item("link", false), item("pipe", false)]);
    assert_eq!(kind(store.open("link")), io::ErrorKind::InvalidInput);
    assert_eq!(kind(store.open("pipe")), io::ErrorKind::InvalidInput, "and it does not block");
    assert_eq!(kind(store.is_locked("pipe")), io::ErrorKind::InvalidInput);

    fs::write(directory.path().join("d").join(std::ffi::OsStr::from_bytes(b"\xff")), "").unwrap();
    assert_eq!(store.list("d").unwrap(), [item("\u{fffd}", false)], "a foreign name is no error");
}

#[test]
fn a_lock_of_the_file_system_holds_between_stores() {
    let directory = tempfile::tempdir().unwrap();
    let [one, two] = [FileSystem::new(directory.path()), FileSystem::new(directory.path())];
    let guard = one.lock("LOCK").unwrap();
    assert_eq!(kind(two.lock("LOCK")), io::ErrorKind::WouldBlock);
    assert!(two.is_locked("LOCK").unwrap());
    drop(guard);
    two.lock("LOCK").unwrap();
}

#[derive(Clone, Debug)]
enum Step {
    Create(usize),
    Write(usize, u16, Vec<u8>),
    SetLength(usize, u16),
    Rename(usize, usize),
    Remove(usize),
    CreateDirectory(usize),
    RemoveDirectory(usize),
}

const PATHS: [&str; 7] = ["a", "b", "d", "d/a", "d/e", "d/e/a", "d/e/b"];

fn step() -> impl Strategy<Value = Step> {
    let path = || 0..PATHS.len();
    prop_oneof![
        path().prop_map(Step::Create),
        (path(), 0..2000_u16, prop::collection::vec(any::<u8>(), 0..700))
            .prop_map(|(path, offset, data)| Step::Write(path, offset, data)),
        (path(), 0..2000_u16).prop_map(|(path, length)| Step::SetLength(path, length)),
        (path(), path()).prop_map(|(from, to)| Step::Rename(from, to)),
        path().prop_map(Step::Remove),
        path().prop_map(Step::CreateDirectory),
        path().prop_map(Step::RemoveDirectory),
    ]
}

fn take(store: &dyn Store, step: &Step) -> bool {
    match step {
        Step::Create(path) => store.create(PATHS[*path]).map(drop),
        Step::Write(path, offset, data) => store
            .open_write(PATHS[*path])
            .and_then(|file| file.write_at(&mut [IoSlice::new(data)], u64::from(*offset))),
        Step::SetLength(path, length) => {
            store.open_write(PATHS[*path]).and_then(|file| file.set_length(u64::from(*length)))
        }
        // The contract is about files only.
        Step::Rename(from, to) if store.open(PATHS[*from]).is_ok() => store.rename(PATHS[*from], PATHS[*to]),
        Step::Rename(..) => return false,
        Step::Remove(path) => store.remove(PATHS[*path]),
        Step::CreateDirectory(path) => store.create_directory(PATHS[*path]),
        Step::RemoveDirectory(path) => store.remove_directory(PATHS[*path]),
    }
    .is_ok()
}

/// All that a store holds.
fn everything(store: &dyn Store) -> Vec<(String, Option<Vec<u8>>)> {
    let mut found = Vec::new();
    let mut directories = vec![String::new()];
    while let Some(directory) = directories.pop() {
        for item in store.list(&directory).unwrap() {
            let path = path::join(&directory, &item.name);
            found.push((path.clone(), (!item.directory).then(|| content(store, &path).unwrap())));
            if item.directory {
                directories.push(path);
            }
        }
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn stores_behave_alike(steps in prop::collection::vec(step(), 1..40)) {
        let directory = tempfile::tempdir().unwrap();
        let stores = stores(directory.path());
        for step in &steps {
            let results: Vec<bool> = stores.iter().map(|store| take(&**store, step)).collect();
            prop_assert!(results.iter().all(|result| *result == results[0]), "{step:?} {results:?}");
        }
        for store in &stores[1..] {
            prop_assert_eq!(everything(&**store), everything(&*stores[0]));
        }
    }

    /// Whatever was done: a power cut that loses nothing leaves what was cached, one that loses all that it may
    /// leaves what was last synced, and none loses what is synced.
    #[test]
    fn a_power_cut_loses_only_what_was_not_synced(
        before in prop::collection::vec(step(), 0..30),
        after in prop::collection::vec(step(), 0..30),
        seed in any::<u64>(),
    ) {
        let machine = Faults::new();
        let store = machine.store("");
        for step in &before {
            take(&store, step);
        }
        let held = everything(&store);
        prop_assert_eq!(&everything(&machine.crash(seed & !7 | 1).store("")), &held);
        prop_assert_eq!(&everything(&machine.kill().store("")), &held);
        let directories = held.iter().filter(|(_, content)| content.is_none());
        for directory in directories.map(|(path, _)| path.as_str()).chain([""]) {
            store.sync_directory(directory).unwrap();
        }
        for (path, _) in held.iter().filter(|(_, content)| content.is_some()) {
            store.open(path).unwrap().sync().unwrap();
        }
        prop_assert_eq!(&everything(&machine.crash(seed).store("")), &held);

        for step in &after {
            take(&store, step);
        }
        prop_assert_eq!(&everything(&machine.crash(seed & !7).store("")), &held);
        prop_assert_eq!(&everything(&machine.kill().crash(seed & !7).store("")), &held);
        prop_assert_eq!(&everything(&machine.crash(seed & !7 | 1).store("")), &everything(&store));
        let images = [machine.crash(seed), machine.crash(seed)].map(|image| everything(&image.store("")));
        prop_assert_eq!(&images[0], &images[1], "one seed, one image");
        prop_assert_eq!(&everything(&machine.crash(seed).crash(!seed).store("")), &images[0]);
    }
}

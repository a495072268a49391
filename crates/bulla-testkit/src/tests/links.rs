//! What the file system's store does about symbolic links, and about a directory that goes elsewhere.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{content, kind, names, write};
use crate::{alone, is_alone};
use bulla_store::*;

/// With the kernel's help, and without.
const WAYS: [fn(PathBuf) -> FileSystem; 2] =
    [|root| FileSystem::new(root), |root| FileSystem::without_openat2(root)];

/// Every name below a directory, and what it is: a file's content, or where a link points to.
fn everything(directory: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_symlink() {
            found.push((path.clone(), format!("-> {}", fs::read_link(&path).unwrap().display())));
        } else if path.is_dir() {
            found.extend(everything(&path));
            found.push((path, String::new()));
        } else {
            found.push((path.clone(), fs::read_to_string(&path).unwrap()));
        }
    }
    found.sort();
    found
}

#[test]
fn no_link_below_the_root_is_followed() {
    for way in WAYS {
        let place = tempfile::tempdir().unwrap();
        let (root, outside) = (place.path().join("root"), place.path().join("outside"));
        fs::create_dir_all(root.join("inside")).unwrap();
        fs::create_dir_all(outside.join("d/empty")).unwrap();
        fs::write(outside.join("file"), "theirs").unwrap();
        fs::write(root.join("own"), "own").unwrap();
        symlink(outside.join("d"), root.join("absolute")).unwrap();
        symlink("../../outside/d", root.join("inside/relative")).unwrap();
        symlink("inside", root.join("within")).unwrap();
        symlink(outside.join("file"), root.join("file")).unwrap();
        symlink(outside.join("made"), root.join("dangling")).unwrap();
        symlink("/proc/self/root", root.join("magic")).unwrap();
        let before = everything(place.path());
        let store = way(root.clone());
        let refused = |link: &str, error: Option<io::Error>| {
            let error = error.unwrap();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{link}: {error}");
            assert!(error.to_string().contains(&format!("`{link}` is a symbolic link")), "{link}: {error}");
        };

        for link in ["absolute", "inside/relative", "within", "magic"] {
            let below = |name: &str| format!("{link}/{name}");
            refused(link, store.create(&below("made")).err());
            refused(link, store.open(&below("file")).err());
            refused(link, store.open_write(&below("file")).err());
            refused(link, store.rename("own", &below("made")).err());
            refused(link, store.rename(&below("file"), "own").err());
            refused(link, store.remove(&below("file")).err());
            refused(link, store.list(link).err());
            refused(link, store.list(&below("empty")).err());
            refused(link, store.create_directory(&below("made")).err());
            refused(link, store.create_directory(link).err());
            refused(link, store.remove_directory(&below("empty")).err());
            refused(link, store.sync_directory(link).err());
            refused(link, store.lock(&below("LOCK")).err());
            refused(link, store.is_locked(&below("LOCK")).err());
            refused(link, replace(&store, &below("made"), b"").err());
        }
        for link in ["file", "dangling", "within"] {
            refused(link, store.open(link).err());
            refused(link, store.open_write(link).err());
            refused(link, store.lock(link).err());
            refused(link, store.is_locked(link).err());
            refused(link, write_new(&store, link, b"").err());
            assert_eq!(kind(store.create(link)), io::ErrorKind::AlreadyExists);
        }
        let directories = store.list("").unwrap().into_iter().filter(|item| item.directory);
        assert_eq!(
            directories.map(|item| item.name).collect::<Vec<_>>(),
            ["inside"],
            "a link is no directory"
        );
        refused("absolute", store.require_plain("").err());
        refused("inside/relative", store.require_plain("inside").err());
        refused("within", store.require_plain("within").err());
        store.require_plain("missing").unwrap();
        assert_eq!(everything(place.path()), before, "nothing was written, removed or made anywhere");

        // What has the name of a link is the link.
        store.rename("own", "file").unwrap();
        store.remove("dangling").unwrap();
        assert!(store.remove_directory("within").is_err());
        assert_eq!(fs::read_to_string(root.join("file")).unwrap(), "own");
        assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "theirs");
        assert!(!root.join("dangling").is_symlink());
    }
}

#[test]
fn a_secret_may_be_a_link_as_mounted_secrets_are() {
    for way in WAYS {
        let place = tempfile::tempdir().unwrap();
        let (root, mounted) = (place.path().join("root"), place.path().join("mounted"));
        fs::create_dir_all(mounted.join("..2026")).unwrap();
        fs::create_dir(&root).unwrap();
        fs::write(mounted.join("..2026/signing.key"), "secret").unwrap();
        symlink("..2026", mounted.join("..data")).unwrap();
        symlink("..data/signing.key", mounted.join("signing.key")).unwrap();
        symlink(mounted.join("signing.key"), root.join("signing.key")).unwrap();
        symlink(&mounted, root.join("directory")).unwrap();
        let store = way(root.clone());
        assert_eq!(read_secret(&store, "signing.key", 100).unwrap(), b"secret");
        assert_eq!(kind(store.open_secret("missing")), io::ErrorKind::NotFound);
        assert_eq!(kind(store.open_secret("directory")), io::ErrorKind::IsADirectory);
        assert_eq!(kind(store.open_secret("../mounted/signing.key")), io::ErrorKind::InvalidInput);
        assert!(store.open_secret("signing.key").unwrap().set_length(0).is_err());
        assert!(read_secret(&store, "signing.key", 5).is_err());
        let error = read_small(&store, "signing.key", 100).unwrap_err().to_string();
        assert!(error.contains(root.join("signing.key").to_str().unwrap()), "{error}");
        assert!(error.contains("`signing.key` is a symbolic link"), "{error}");
    }
}

#[test]
fn a_store_holds_the_directory_that_it_found() {
    for way in WAYS {
        let place = tempfile::tempdir().unwrap();
        let [real, other, named] = ["real", "other", "named"].map(|name| place.path().join(name));
        fs::create_dir(&real).unwrap();
        fs::create_dir(&other).unwrap();
        symlink(&real, &named).unwrap();
        let store = way(named.clone());
        store.create_directory("d").unwrap();

        // The link that the user named is followed, and only once.
        fs::remove_file(&named).unwrap();
        symlink(&other, &named).unwrap();
        write(&*store.create("d/one").unwrap(), b"1", 0);
        // The directory goes elsewhere, and another one comes in its place.
        fs::rename(&real, place.path().join("moved")).unwrap();
        fs::create_dir_all(real.join("d")).unwrap();
        store.rename("d/one", "d/two").unwrap();
        replace(&store, "three", b"3").unwrap();
        store.create_directory("e/f").unwrap();
        store.create_directory("").unwrap();
        drop(store.lock("LOCK").unwrap());
        let held = store.held_path().unwrap();
        fs::write(held.join("four"), "4").unwrap();

        assert_eq!(names(&store, ""), ["LOCK", "d", "e", "four", "three"]);
        assert_eq!(content(&store, "d/two").unwrap(), b"1");
        assert_eq!(fs::canonicalize(&held).unwrap(), place.path().canonicalize().unwrap().join("moved"));
        assert_eq!(everything(&real), [(real.join("d"), String::new())]);
        assert_eq!(everything(&other), []);
        assert_eq!(store.describe("d"), named.join("d").to_str().unwrap(), "it keeps its name");
    }
}

#[test]
fn a_store_that_was_not_there_is_held_once_it_is() {
    for way in WAYS {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("above/root");
        let store = way(root.clone());
        assert_eq!(kind(store.held_path()), io::ErrorKind::NotFound);
        assert_eq!(kind(store.open("file")), io::ErrorKind::NotFound);
        store.create_directory("").unwrap();
        fs::rename(&root, place.path().join("moved")).unwrap();
        store.create("file").unwrap();
        assert!(place.path().join("moved/file").exists() && !root.exists());

        // A file, or a link to nowhere, is no directory.
        fs::write(&root, "").unwrap();
        assert_eq!(kind(way(root.clone()).list("")), io::ErrorKind::NotADirectory);
        assert!(way(root.clone()).create_directory("").is_err());
        let dangling = place.path().join("dangling");
        symlink("nowhere", &dangling).unwrap();
        assert!(way(dangling).create_directory("").is_err());
        assert!(!place.path().join("nowhere").exists());
    }
}

#[test]
fn a_lock_tells_whether_its_file_is_where_it_was() {
    for way in WAYS {
        let place = tempfile::tempdir().unwrap();
        let [real, named, away] = ["real", "named", "away"].map(|name| place.path().join(name));
        fs::create_dir(&real).unwrap();
        symlink(&real, &named).unwrap();
        let store = way(named.clone());
        let lock = store.lock("LOCK").unwrap();
        let in_place = || lock.is_in_place().unwrap();
        assert!(in_place());

        fs::rename(&real, &away).unwrap();
        assert!(!in_place(), "moved");
        fs::create_dir(&real).unwrap();
        assert!(!in_place(), "another directory is there");
        drop(way(real.clone()).lock("LOCK").unwrap());
        assert!(!in_place(), "another lock is there");
        fs::remove_dir_all(&real).unwrap();
        fs::rename(&away, &real).unwrap();
        assert!(in_place(), "it is back");

        fs::rename(real.join("LOCK"), &away).unwrap();
        assert!(!in_place(), "the lock alone was removed");
        fs::write(real.join("LOCK"), "").unwrap();
        assert!(!in_place(), "the lock alone was replaced");
        fs::remove_file(real.join("LOCK")).unwrap();
        symlink(&away, real.join("LOCK")).unwrap();
        assert!(!in_place(), "a link to it is another file");
        fs::remove_file(real.join("LOCK")).unwrap();
        fs::rename(&away, real.join("LOCK")).unwrap();
        assert!(in_place());

        fs::remove_file(&named).unwrap();
        assert!(!in_place(), "the link that was named is gone");
        symlink("named", &named).unwrap();
        assert!(!in_place(), "it leads to itself");
        fs::remove_file(&named).unwrap();
        fs::write(&named, "").unwrap();
        assert!(!in_place(), "it is a file");
    }
}

#[test]
fn a_relative_path_stays_what_it_was_when_the_process_goes_elsewhere() {
    if !is_alone() {
        let test = "tests::links::a_relative_path_stays_what_it_was_when_the_process_goes_elsewhere";
        let output = alone(Command::new("env"), test).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
        return;
    }
    for way in WAYS {
        let place = tempfile::tempdir().unwrap();
        let [here, there] = ["here", "there"].map(|name| place.path().join(name));
        fs::create_dir_all(here.join("early")).unwrap();
        fs::create_dir(&there).unwrap();
        std::env::set_current_dir(&here).unwrap();
        let [early, late] = ["early", "../here/above/late"].map(|name| way(name.into()));
        let lock = early.lock("LOCK").unwrap();
        std::env::set_current_dir(&there).unwrap();

        early.create("file").unwrap();
        assert!(here.join("early/file").exists());
        assert!(lock.is_in_place().unwrap());
        late.create_directory("d").unwrap();
        assert!(here.join("above/late/d").exists());
        assert!(everything(&there).is_empty());
        fs::rename(&here, place.path().join("moved")).unwrap();
        assert!(lock.is_in_place().unwrap(), "what the path is relative to was moved with it");
        fs::rename(place.path().join("moved/early"), place.path().join("moved/other")).unwrap();
        assert!(!lock.is_in_place().unwrap());
        std::env::set_current_dir("/").unwrap();
    }
}

//! Where a mirror may be written: directories with something else in them, links, locks, and directories that are moved.

use super::{Source, append, is_sound};
use crate::second_reader::second_reader;
use bulla::mirror::Mirror;
use bulla::{ErrorKind, Log};
use std::fs;
use std::os::unix::fs::symlink;

#[test]
fn a_directory_with_something_else_in_it_is_left_alone() {
    let (source, _) = Source::eventful();
    let place = tempfile::tempdir().unwrap();
    let to = place.path().join("home");
    fs::create_dir(&to).unwrap();
    fs::write(to.join("letters"), "private").unwrap();
    let refused = source.ship(&to).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Refused);
    assert!(refused.to_string().contains("it has `letters`"), "{refused}");
    assert_eq!(fs::read_dir(&to).unwrap().count(), 1);
    fs::remove_file(to.join("letters")).unwrap();
    source.ship(&to).unwrap();
    is_sound(&source.verify(&to).run().unwrap(), "in a directory that was there, and empty");
}

#[test]
fn two_mirrors_into_one_directory_and_a_writer_there_keep_each_other_out() {
    let (source, _) = Source::eventful();
    let place = tempfile::tempdir().unwrap();
    let to = place.path().join("copy");
    let mut first = source.mirror(&to).unwrap();
    let second = source.mirror(&to).map(drop).unwrap_err();
    assert_eq!(second.kind(), ErrorKind::Locked, "{second}");
    first.poll(|_| {}).unwrap();
    assert_eq!(source.mirror(&to).map(drop).unwrap_err().kind(), ErrorKind::Locked);
    drop(first);
    // A log that is written is nobody's destination.
    let log = source.open();
    let other = Mirror::open(&to, &source.directory, None).map(drop).unwrap_err();
    assert_eq!(other.kind(), ErrorKind::Locked, "{other}");
    drop(log);
}

#[test]
fn no_link_at_the_destination_is_followed() {
    let (source, earlier) = Source::eventful();
    for name in ["segments", "tile", "checkpoint", "checkpoint.cose", "bulla.toml", "bulla.toml.next", "LOCK"]
    {
        let place = tempfile::tempdir().unwrap();
        let (to, elsewhere) = (place.path().join("copy"), place.path().join("elsewhere"));
        Mirror::open(&earlier, &to, None).unwrap().poll(|_| {}).unwrap();
        let path = to.join(name);
        match fs::rename(&path, &elsewhere) {
            Ok(()) => {}
            Err(_) => fs::write(&elsewhere, "somebody's").unwrap(),
        }
        symlink(&elsewhere, &path).unwrap();
        let listed = |path: &std::path::Path| match path.is_dir() {
            true => fs::read_dir(path).unwrap().count(),
            false => fs::read(path).unwrap().len(),
        };
        let before = listed(&elsewhere);
        let shipped = Mirror::open(&source.directory, &to, None).and_then(|mut mirror| mirror.poll(|_| {}));
        assert_eq!(listed(&elsewhere), before, "{name}");
        assert!(shipped.is_err(), "{name}");
    }
}

#[test]
fn a_destination_that_is_moved_is_not_written_to_any_more() {
    let source = Source::new();
    let log = source.open();
    append(&log, 2);
    log.flush().unwrap();
    let place = tempfile::tempdir().unwrap();
    let (to, moved) = (place.path().join("copy"), place.path().join("moved"));
    let mut mirror = source.mirror(&to).unwrap();
    mirror.poll(|_| {}).unwrap();
    fs::rename(&to, &moved).unwrap();
    append(&log, 2);
    log.flush().unwrap();
    let before = fs::read(moved.join("checkpoint")).unwrap();
    let error = mirror.poll(|_| {}).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("was replaced or moved"), "{error}");
    assert_eq!(fs::read(moved.join("checkpoint")).unwrap(), before);
    assert!(!to.exists());
    is_sound(&source.verify(&moved).run().unwrap(), "moved");
    assert_eq!(mirror.poll(|_| {}).unwrap_err().kind(), ErrorKind::Closed);
    drop(log);
}

#[test]
fn a_mirror_whose_configuration_has_arrived_is_one_to_readers_and_writers_before_it_is_taken_up() {
    // As a kill leaves it between the two renames.
    let (source, earlier) = Source::eventful();
    let place = tempfile::tempdir().unwrap();
    let to = place.path().join("copy");
    Mirror::open(&earlier, &to, None).unwrap().poll(|_| {}).unwrap();
    let old = fs::read(to.join("bulla.toml")).unwrap();
    source.ship(&to).unwrap();
    let new = fs::read(to.join("bulla.toml")).unwrap();
    assert_ne!(old, new);
    let size = fs::read_to_string(to.join("checkpoint")).unwrap().lines().nth(1).unwrap().to_owned();
    let next = [format!("bulla-next-v1 {size}\n").as_bytes(), &new].concat();
    fs::write(to.join("bulla.toml"), &old).unwrap();
    fs::write(to.join("bulla.toml.next"), &next).unwrap();
    is_sound(&source.verify(&to).run().unwrap(), "between the renames");
    assert!(second_reader_agrees(&source, &to), "the second reader");
    // A writer takes it up.
    super::copy_into(&bulla::default_keys(&source.directory), &bulla::default_keys(&to));
    let log = Log::open(&to, Source::options()).unwrap();
    append(&log, 1);
    log.close().unwrap();
    assert_eq!(fs::read(to.join("bulla.toml")).unwrap(), new);
    assert!(!to.join("bulla.toml.next").exists());
    is_sound(&source.verify(&to).run().unwrap(), "gone on with");
    // Of another checkpoint it counts for nothing; what is no such file is damage.
    let other = [b"bulla-next-v1 1\n".as_slice(), &old].concat();
    fs::write(to.join("bulla.toml.next"), other).unwrap();
    is_sound(&source.verify(&to).run().unwrap(), "of another checkpoint");
    assert!(second_reader_agrees(&source, &to), "the second reader");
    fs::write(to.join("bulla.toml.next"), "anything").unwrap();
    assert_eq!(super::found(&source, &to), ["config-damaged"]);
    assert!(!second_reader_agrees(&source, &to), "the second reader");
}

/// Whether the second reader finds no violation in `directory`.
fn second_reader_agrees(source: &Source, directory: &std::path::Path) -> bool {
    second_reader(&source.key).arg("--").arg(directory).output().unwrap().status.success()
}

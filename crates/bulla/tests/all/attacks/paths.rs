//! Attacks by who controls the storage of one of a log's several paths. Whoever verifies names all of them, on the host by its keys.

use super::Level::{Host, Pin, Public};
use super::scene::{Scene, State::Paths};
use super::{Attack, Read, Writer};
use bulla::ErrorKind;
use std::fs;

const NOTHING: Attack = Attack { state: Paths, ..super::NOTHING };

fn copy(scene: &Scene, from: &str, to: &str) {
    fs::copy(scene.beside(from), scene.beside(to)).unwrap();
}

pub(super) const ATTACKS: &[Attack] = &[
    Attack {
        name: "the file `path` of a backup path with newer frames, copied to the log's directory",
        carry_out: |scene| copy(scene, "second/path", "audit/path"),
        found: &[(Public, &["path-mismatch"]), (Host, &["path-mismatch", "path-mismatch"])],
        exported: Read::Fails(ErrorKind::Tampered),
        queried: Read::Fails(ErrorKind::Tampered),
        writer: Writer::Fails(ErrorKind::Tampered),
        pinned: Writer::Fails(ErrorKind::Tampered),
        ..NOTHING
    },
    Attack {
        name: "the same, copied to another backup path",
        carry_out: |scene| copy(scene, "second/path", "third/path"),
        found: &[(Public, &["path-mismatch"])],
        exported: Read::Fails(ErrorKind::Tampered),
        queried: Read::Fails(ErrorKind::Tampered),
        writer: Writer::Fails(ErrorKind::Tampered),
        pinned: Writer::Fails(ErrorKind::Tampered),
        ..NOTHING
    },
    Attack {
        name: "the file `path` of another one, copied to the backup path with newer frames",
        carry_out: |scene| copy(scene, "third/path", "second/path"),
        found: &[(Public, &["path-mismatch"]), (Host, &["path-mismatch", "path-mismatch"])],
        exported: Read::Fails(ErrorKind::Tampered),
        queried: Read::Fails(ErrorKind::Tampered),
        writer: Writer::Fails(ErrorKind::Tampered),
        pinned: Writer::Fails(ErrorKind::Tampered),
        ..NOTHING
    },
    Attack {
        name: "another id in the file `path` of a backup path",
        carry_out: |scene| {
            let path = scene.beside("second/path");
            let text = fs::read_to_string(&path).unwrap();
            let id = text.lines().nth(2).unwrap();
            fs::write(&path, text.replace(id, &"ab".repeat(16))).unwrap();
        },
        found: &[(Host, &["path-mismatch"])],
        exported: Read::Fails(ErrorKind::Tampered),
        queried: Read::Fails(ErrorKind::Tampered),
        writer: Writer::Fails(ErrorKind::Tampered),
        pinned: Writer::Fails(ErrorKind::Tampered),
        ..NOTHING
    },
    Attack {
        name: "a backup path with newer frames, taken away",
        carry_out: |scene| fs::rename(scene.beside("second"), scene.beside("away")).unwrap(),
        found: &[(Public, &["error: Unavailable"]), (Host, &["frames-missing f16-20", "path-missing"])],
        exported: Read::Fails(ErrorKind::Unavailable),
        queried: Read::Fails(ErrorKind::Unavailable),
        writer: Writer::Fails(ErrorKind::Unavailable),
        pinned: Writer::Fails(ErrorKind::Unavailable),
        ..NOTHING
    },
    Attack {
        name: "a backup path that was never used, taken away",
        carry_out: |scene| fs::rename(scene.beside("third"), scene.beside("away")).unwrap(),
        found: &[(Public, &["error: Unavailable"]), (Host, &["path-missing"])],
        exported: Read::Fails(ErrorKind::Unavailable),
        queried: Read::Fails(ErrorKind::Unavailable),
        writer: Writer::Fails(ErrorKind::Unavailable),
        pinned: Writer::Fails(ErrorKind::Unavailable),
        ..NOTHING
    },
    Attack {
        name: "a symbolic link to the log's directory in the place of a backup path with newer frames",
        carry_out: |scene| {
            fs::rename(scene.beside("second"), scene.beside("away")).unwrap();
            std::os::unix::fs::symlink("audit", scene.beside("second")).unwrap();
        },
        found: &[(Host, &["frames-missing f16-20", "path-missing"]), (Pin, &["pin-mismatch f16-20"])],
        exported: Read::Fails(ErrorKind::Unavailable),
        queried: Read::Fails(ErrorKind::Unavailable),
        writer: Writer::Fails(ErrorKind::Unavailable),
        pinned: Writer::Fails(ErrorKind::Unavailable),
        ..NOTHING
    },
    Attack {
        name: "a symbolic link to another backup path in the place of one that was never used",
        carry_out: |scene| {
            fs::rename(scene.beside("third"), scene.beside("away")).unwrap();
            std::os::unix::fs::symlink("second", scene.beside("third")).unwrap();
        },
        found: &[(Host, &["path-missing"])],
        exported: Read::Fails(ErrorKind::Unavailable),
        queried: Read::Fails(ErrorKind::Unavailable),
        writer: Writer::Fails(ErrorKind::Unavailable),
        pinned: Writer::Fails(ErrorKind::Unavailable),
        ..NOTHING
    },
    Attack {
        name: "a symbolic link in the place of a backup path's `segments`",
        carry_out: |scene| scene.link(&scene.beside("third/segments")),
        found: &[(Public, &["error: Unavailable"]), (Host, &["path-missing"])],
        exported: Read::Fails(ErrorKind::Unavailable),
        queried: Read::Fails(ErrorKind::Unavailable),
        writer: Writer::Fails(ErrorKind::Unavailable),
        pinned: Writer::Fails(ErrorKind::Unavailable),
        ..NOTHING
    },
    Attack {
        name: "a backup path put back to what it was before it was written to",
        carry_out: |scene| {
            fs::remove_file(scene.beside("second/checkpoint")).unwrap();
            for directory in ["segments", "tile", "index"] {
                fs::remove_dir_all(scene.beside("second").join(directory)).unwrap();
                fs::create_dir(scene.beside("second").join(directory)).unwrap();
            }
        },
        found: &[(Host, &["frames-missing f16-20"]), (Pin, &["pin-mismatch f16-20"])],
        exported: Read::Fails(ErrorKind::Unavailable),
        queried: Read::Fails(ErrorKind::Unavailable),
        writer: Writer::Fails(ErrorKind::Tampered),
        pinned: Writer::Fails(ErrorKind::Tampered),
        ..NOTHING
    },
];

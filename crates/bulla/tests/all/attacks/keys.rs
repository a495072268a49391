//! Attacks on the key directory, and those by whoever has keys of it.

use super::Controls::{Both, Keys};
use super::Level::{Host, Identity, Pin, Seal};
use super::scene::{ORIGIN, State::Open};
use super::{Attack, Read, Writer};
use crate::erase::world::copy_into;
use bulla::{ErrorKind, Init};
use std::fs;

const NOTHING: Attack = Attack { controls: Keys, ..super::NOTHING };

pub(super) const ATTACKS: &[Attack] = &[
    Attack {
        name: "the last blocks cut off, and the rest signed with a stolen key",
        controls: Both,
        carry_out: |scene| scene.sign_shortened(12),
        found: &[(Host, &["frames-missing f12-13"]), (Pin, &["pin-mismatch f12-13"])],
        exported: Read::Fails(ErrorKind::Unavailable),
        queried: Read::Fails(ErrorKind::Unavailable),
        writer: Writer::Fails(ErrorKind::Tampered),
        pinned: Writer::Fails(ErrorKind::Tampered),
        ..NOTHING
    },
    Attack {
        name: "a block's body replaced, and all signed with a stolen key",
        controls: Both,
        carry_out: |scene| scene.sign_altered(4),
        found: &[
            (Seal, &["seal-mismatch 0.seg f4-4 e5-6"]),
            (Host, &["seal-mismatch 0.seg f4-4 e5-6", "root-mismatch"]),
            (Pin, &["pin-mismatch f0-13"]),
            (Identity, &["block-invalid 0.seg f4-4 e5-6"]),
        ],
        exported: Read::Fails(ErrorKind::Unavailable),
        queried: Read::Fails(ErrorKind::Unavailable),
        writer: Writer::Fails(ErrorKind::Tampered),
        pinned: Writer::Fails(ErrorKind::Tampered),
        ..NOTHING
    },
    Attack {
        name: "`seal.state` removed",
        carry_out: |scene| fs::remove_file(scene.keys().join("seal.state")).unwrap(),
        writer: Writer::Fails(ErrorKind::NoKey),
        pinned: Writer::Fails(ErrorKind::NoKey),
        ..NOTHING
    },
    Attack {
        name: "a bit of `seal.state`",
        carry_out: |scene| scene.flip("../audit.keys/seal.state", 70),
        found: &[(Host, &["error: Unavailable"])],
        writer: Writer::Fails(ErrorKind::Unavailable),
        pinned: Writer::Fails(ErrorKind::Unavailable),
        ..NOTHING
    },
    Attack {
        name: "`signing.key` of another log",
        carry_out: |scene| {
            let other = scene.beside("other");
            Init::default().origin(ORIGIN).create(&other).unwrap();
            fs::copy(scene.beside("other.keys/signing.key"), scene.keys().join("signing.key")).unwrap();
        },
        writer: Writer::Fails(ErrorKind::Refused),
        pinned: Writer::Fails(ErrorKind::Refused),
        ..NOTHING
    },
    Attack {
        name: "the vault removed",
        carry_out: |scene| {
            for part in ["vault", "roots"] {
                let path = scene.keys().join(part);
                fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path)).unwrap();
            }
        },
        found: &[(Identity, &["error: NoKey"])],
        exported: Read::Fails(ErrorKind::NoKey),
        queried: Read::Fails(ErrorKind::NoKey),
        writer: Writer::Fails(ErrorKind::NoKey),
        pinned: Writer::Fails(ErrorKind::NoKey),
        ..NOTHING
    },
    Attack {
        name: "the vault put back to an earlier time",
        carry_out: |scene| {
            let older = scene.beside("older");
            copy_into(&scene.earlier_path("early/audit.keys"), &older);
            for part in ["vault", "roots"] {
                let (from, to) = (older.join(part), scene.keys().join(part));
                let _ = fs::remove_dir_all(&to).or_else(|_| fs::remove_file(&to));
                fs::rename(from, to).unwrap();
            }
        },
        found: &[(Identity, &["key-lost 8.seg f11-11 e13-13"])],
        exported: Read::KeysLost,
        queried: Read::KeysLost,
        writer: Writer::Fails(ErrorKind::Refused),
        pinned: Writer::Fails(ErrorKind::Refused),
        ..NOTHING
    },
    Attack {
        name: "the key directory replaced by a copy under its writer",
        state: Open,
        carry_out: |scene| {
            let away = scene.beside("away");
            fs::rename(scene.keys(), &away).unwrap();
            copy_into(&away, &scene.keys());
        },
        writer: Writer::Fails(ErrorKind::Unavailable),
        pinned: Writer::Fails(ErrorKind::Unavailable),
        ..NOTHING
    },
    Attack {
        name: "a symbolic link in the place of `seal.state`",
        carry_out: |scene| scene.link(&scene.keys().join("seal.state")),
        writer: Writer::Fails(ErrorKind::Unavailable),
        pinned: Writer::Fails(ErrorKind::Unavailable),
        ..NOTHING
    },
];

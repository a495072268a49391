//! Other histories of a log than its own: earlier ones that are put back, second ones, and logs of the same name.

use super::Controls::{Both, Keys};
use super::Level::{Host, Identity, Key, Pin, Public, Seal};
use super::scene::{ORIGIN, Scene, State::Open, block};
use super::{Attack, NOTHING, Read, Writer};
use crate::erase::world::copy_into;
use crate::stolen_keys;
use bulla::{ErrorKind, Init, Log};
use std::fs;

/// A log of the same name that its recipient can read, without any key of the log's own. Its keys lie beside it.
fn made_again(scene: &Scene) {
    let recipients = bulla::info(&scene.directory).unwrap().recipients;
    let other = scene.beside("other");
    let init = Init::default().origin(ORIGIN);
    recipients.iter().fold(init, Init::recipient).create(&other).unwrap();
    let log = Log::open(&other, scene.options()).unwrap();
    block(&mut log.producer().unwrap(), &["ann", "bob", "nobody"]);
    log.close().unwrap();
    fs::remove_dir_all(&scene.directory).unwrap();
    copy_into(&other, &scene.directory);
}

pub(super) const ATTACKS: &[Attack] = &[
    Attack {
        name: "the log put back to an earlier time",
        carry_out: |scene| scene.put_back("audit", "early"),
        found: &[(Host, &["frames-missing f3-13"]), (Pin, &["pin-mismatch f3-13"])],
        exported: Read::Fails(ErrorKind::Unavailable),
        queried: Read::Fails(ErrorKind::Unavailable),
        writer: Writer::Fails(ErrorKind::Tampered),
        pinned: Writer::Fails(ErrorKind::Tampered),
        ..NOTHING
    },
    Attack {
        name: "the log put back to when it was empty",
        carry_out: |scene| scene.put_back("audit", "empty"),
        found: &[(Host, &["frames-missing f0-13"]), (Pin, &["pin-mismatch f0-13"])],
        exported: Read::Fails(ErrorKind::Unavailable),
        queried: Read::Fails(ErrorKind::Unavailable),
        writer: Writer::Fails(ErrorKind::Tampered),
        pinned: Writer::Fails(ErrorKind::Tampered),
        ..NOTHING
    },
    Attack {
        name: "the log put back under its writer",
        state: Open,
        carry_out: |scene| scene.put_back("audit", "early"),
        found: &[(Host, &["frames-missing f3-15"]), (Pin, &["pin-mismatch f3-13"])],
        exported: Read::Fails(ErrorKind::Unavailable),
        queried: Read::Fails(ErrorKind::Unavailable),
        writer: Writer::Fails(ErrorKind::Unavailable),
        pinned: Writer::Fails(ErrorKind::Unavailable),
        ..NOTHING
    },
    Attack {
        name: "the keys put back to an earlier time",
        controls: Keys,
        carry_out: |scene| scene.put_back("audit.keys", "early"),
        found: &[(Identity, &["key-lost 8.seg f11-11 e13-13"])],
        exported: Read::KeysLost,
        queried: Read::KeysLost,
        writer: Writer::Fails(ErrorKind::Refused),
        pinned: Writer::Fails(ErrorKind::Refused),
        ..NOTHING
    },
    Attack {
        name: "log and keys put back to one earlier time",
        controls: Both,
        carry_out: |scene| {
            scene.put_back("audit", "early");
            scene.put_back("audit.keys", "early");
        },
        found: &[(Pin, &["pin-mismatch f3-13"])],
        exported: Read::Others,
        queried: Read::Others,
        pinned: Writer::Fails(ErrorKind::Tampered),
        ..NOTHING
    },
    Attack {
        name: "log, keys and the pin put back to one earlier time",
        controls: Both,
        carry_out: |scene| {
            scene.put_back("audit", "early");
            scene.put_back("audit.keys", "early");
            fs::copy(scene.path("checkpoint"), &scene.pin).unwrap();
        },
        exported: Read::Others,
        queried: Read::Others,
        elsewhere: "a verifier's own pin; a checkpoint that somebody kept",
        ..NOTHING
    },
    Attack {
        name: "a shorter second history, signed with a stolen key",
        controls: Both,
        carry_out: |scene| {
            scene.put_back("audit", "early");
            scene.put_back("audit.keys", "early");
            scene.go_on(1);
        },
        found: &[(Pin, &["pin-mismatch f5-13"])],
        exported: Read::Others,
        queried: Read::Others,
        pinned: Writer::Fails(ErrorKind::Tampered),
        ..NOTHING
    },
    Attack {
        name: "a longer second history, signed with a stolen key",
        controls: Both,
        carry_out: |scene| {
            scene.put_back("audit", "early");
            scene.put_back("audit.keys", "early");
            scene.go_on(20);
        },
        found: &[(Pin, &["pin-mismatch f0-13"])],
        exported: Read::Others,
        queried: Read::Others,
        pinned: Writer::Fails(ErrorKind::Tampered),
        ..NOTHING
    },
    Attack {
        name: "a second history of which `checkpoint.cose` alone is left",
        controls: Both,
        carry_out: |scene| {
            let (log, keys) = (scene.beside("own"), scene.beside("own.keys"));
            copy_into(&scene.directory, &log);
            copy_into(&scene.keys(), &keys);
            scene.put_back("audit", "early");
            scene.put_back("audit.keys", "early");
            scene.go_on(4);
            fs::copy(scene.path("checkpoint.cose"), log.join("checkpoint.cose")).unwrap();
            for (own, place) in [(log, scene.directory.clone()), (keys, scene.keys())] {
                fs::remove_dir_all(&place).unwrap();
                fs::rename(own, place).unwrap();
            }
        },
        found: &[(Public, &["cose-mismatch"])],
        exported: Read::Fails(ErrorKind::Tampered),
        writer: Writer::Fails(ErrorKind::Tampered),
        pinned: Writer::Fails(ErrorKind::Tampered),
        ..NOTHING
    },
    Attack {
        name: "a second history from the beginning, signed with a stolen key",
        controls: Both,
        carry_out: |scene| {
            scene.put_back("audit", "empty");
            scene.put_back("audit.keys", "empty");
            scene.go_on(20);
        },
        found: &[(Pin, &["pin-mismatch f0-13"])],
        exported: Read::Others,
        queried: Read::Others,
        pinned: Writer::Fails(ErrorKind::Tampered),
        ..NOTHING
    },
    Attack {
        name: "a second history in the storage, the host's keys as they were",
        controls: Both,
        carry_out: |scene| {
            let keys = scene.beside("own.keys");
            copy_into(&scene.keys(), &keys);
            scene.put_back("audit", "early");
            scene.put_back("audit.keys", "early");
            scene.go_on(20);
            fs::remove_dir_all(scene.keys()).unwrap();
            fs::rename(keys, scene.keys()).unwrap();
        },
        found: &[
            (Host, &["root-mismatch"]),
            (Pin, &["pin-mismatch f0-13"]),
            (Identity, &["key-lost 0.seg f4-23 e5-43"]),
        ],
        exported: Read::Fails(ErrorKind::Unavailable),
        queried: Read::Fails(ErrorKind::Unavailable),
        writer: Writer::Fails(ErrorKind::Tampered),
        pinned: Writer::Fails(ErrorKind::Tampered),
        ..NOTHING
    },
    Attack {
        name: "what is older rewritten, with all keys as they are now",
        controls: Both,
        carry_out: |scene| {
            let state = stolen_keys::forged(&scene.earlier_path("early"), &scene.beside(""));
            scene.put_back("audit", "early");
            scene.put_back("audit.keys", "early");
            fs::write(scene.keys().join("seal.state"), state).unwrap();
            scene.go_on(20);
        },
        found: &[(Seal, &["seal-mismatch 0.seg f3-23 e5-44"]), (Pin, &["pin-mismatch f0-13"])],
        exported: Read::Others,
        queried: Read::Others,
        pinned: Writer::Fails(ErrorKind::Tampered),
        ..NOTHING
    },
    Attack {
        name: "entries appended with stolen keys, the host's as they were",
        controls: Both,
        carry_out: |scene| {
            let keys = scene.beside("own.keys");
            copy_into(&scene.keys(), &keys);
            scene.go_on(1);
            fs::remove_dir_all(scene.keys()).unwrap();
            fs::rename(keys, scene.keys()).unwrap();
        },
        found: &[(Identity, &["key-lost 8.seg f15-15 e17-17"])],
        writer: Writer::Fails(ErrorKind::Refused),
        pinned: Writer::Fails(ErrorKind::Refused),
        ..NOTHING
    },
    Attack {
        name: "entries appended with stolen keys, the host's put in their place",
        controls: Both,
        carry_out: |scene| scene.go_on(1),
        elsewhere: "nothing: from the theft on the log is the thief's",
        ..NOTHING
    },
    Attack {
        name: "a log made again under the same name",
        carry_out: |scene| made_again(scene),
        found: &[
            (Key, &["key-mismatch"]),
            (Seal, &["key-mismatch", "key-mismatch"]),
            (Host, &["key-mismatch", "key-mismatch", "key-mismatch"]),
            (Pin, &["key-mismatch", "pin-mismatch"]),
            (Identity, &["block-invalid 0.seg f1-1 e0-2", "key-mismatch"]),
        ],
        exported: Read::Fails(ErrorKind::Tampered),
        queried: Read::Fails(ErrorKind::Tampered),
        writer: Writer::Fails(ErrorKind::Refused),
        pinned: Writer::Fails(ErrorKind::Refused),
        ..NOTHING
    },
    Attack {
        name: "a log made again under the same name, with its keys",
        controls: Both,
        carry_out: |scene| {
            made_again(scene);
            fs::remove_dir_all(scene.keys()).unwrap();
            copy_into(&scene.beside("other.keys"), &scene.keys());
        },
        found: &[
            (Key, &["key-mismatch"]),
            (Seal, &["key-mismatch", "key-mismatch"]),
            (Pin, &["key-mismatch", "pin-mismatch"]),
            (Identity, &["error: Refused"]),
        ],
        exported: Read::Fails(ErrorKind::Refused),
        queried: Read::Fails(ErrorKind::Refused),
        pinned: Writer::Fails(ErrorKind::Refused),
        ..NOTHING
    },
];

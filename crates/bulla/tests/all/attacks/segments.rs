//! Attacks on segments below the checkpoint, by whoever has the storage.

use super::Level::{Identity, Public, Seal};
use super::{Attack, NOTHING, Read, Writer};
use crate::damage::layout::HEAD;
use bulla::ErrorKind;
use std::fs;

pub(super) const ATTACKS: &[Attack] = &[
    Attack {
        name: "a bit of a frame's header",
        carry_out: |scene| scene.flip_frame(2, 9),
        found: &[(Public, &["frame-damaged 0.seg f2-2 e3-4"])],
        exported: Read::Fails(ErrorKind::Tampered),
        ..NOTHING
    },
    Attack {
        name: "a bit of a block's commitment",
        carry_out: |scene| scene.flip_frame(2, 24 + 100),
        found: &[(Public, &["frame-damaged 0.seg f2-2 e3-4"])],
        exported: Read::Fails(ErrorKind::Tampered),
        ..NOTHING
    },
    Attack {
        name: "a bit of a block's body",
        carry_out: |scene| scene.flip_body(4),
        found: &[(Public, &["body-damaged 0.seg f4-4 e5-6"])],
        exported: Read::Fails(ErrorKind::Tampered),
        queried: Read::Fails(ErrorKind::Tampered),
        ..NOTHING
    },
    Attack {
        name: "a bit of a block's seal",
        carry_out: |scene| scene.flip_frame(4, -1),
        found: &[(Seal, &["seal-mismatch 0.seg f4-4 e5-6"])],
        ..NOTHING
    },
    Attack {
        name: "a bit of the seal of a block before an epoch",
        carry_out: |scene| scene.flip_frame(2, -1),
        found: &[(Public, &["seal-mismatch 0.seg f2-2 e3-4"])],
        exported: Read::Fails(ErrorKind::Tampered),
        ..NOTHING
    },
    Attack {
        name: "a bit of an event's body",
        carry_out: |scene| scene.flip_body(5),
        found: &[
            (Public, &["body-damaged 0.seg f5-5"]),
            (Identity, &["key-lost 0.seg f4-4 e6-6", "body-damaged 0.seg f5-5"]),
        ],
        exported: Read::Fails(ErrorKind::Tampered),
        queried: Read::Fails(ErrorKind::Tampered),
        ..NOTHING
    },
    Attack {
        name: "a bit of the key that an epoch's frame wraps",
        carry_out: |scene| scene.flip_frame(3, (HEAD + 140) as isize),
        found: &[
            (Public, &["body-damaged 0.seg f3-3"]),
            (
                Identity,
                &["body-damaged 0.seg f3-3", "not-opened 0.seg f4-4 e5-6", "not-opened 0.seg f6-7 e7-9"],
            ),
        ],
        exported: Read::Fails(ErrorKind::Tampered),
        queried: Read::Fails(ErrorKind::Tampered),
        ..NOTHING
    },
    Attack {
        name: "a block removed",
        carry_out: |scene| scene.replace_frame(6, &[]),
        found: &[(Public, &["frames-missing 0.seg f6-6 e7-8"])],
        exported: Read::Fails(ErrorKind::Tampered),
        queried: Read::Fails(ErrorKind::Tampered),
        ..NOTHING
    },
    Attack {
        name: "two blocks exchanged",
        carry_out: |scene| {
            let (one, other) = (scene.bytes_of(6), scene.bytes_of(7));
            scene.replace_frame(6, &[]);
            let content = scene.read(&scene.segment(6));
            let at = scene.frame(6).offset;
            assert_eq!(content[at..], other);
            scene.write(&scene.segment(6), &[&content[..at], &other, &one].concat());
        },
        found: &[(Public, &["frames-missing 0.seg f6-6 e7-8", "surplus-bytes 0.seg"])],
        exported: Read::Fails(ErrorKind::Tampered),
        queried: Read::Fails(ErrorKind::Tampered),
        ..NOTHING
    },
    Attack {
        name: "a block put in a second time",
        carry_out: |scene| scene.replace_frame(4, &scene.bytes_of(4).repeat(2)),
        found: &[(Public, &["surplus-bytes 0.seg"])],
        exported: Read::Fails(ErrorKind::Tampered),
        queried: Read::Fails(ErrorKind::Tampered),
        ..NOTHING
    },
    Attack {
        name: "a block in the place of another",
        carry_out: |scene| scene.replace_frame(6, &scene.bytes_of(4)),
        found: &[(Public, &["frames-missing 0.seg f6-6 e7-8"])],
        exported: Read::Fails(ErrorKind::Tampered),
        queried: Read::Fails(ErrorKind::Tampered),
        ..NOTHING
    },
    Attack {
        name: "bytes put between two frames",
        carry_out: |scene| scene.replace_frame(4, &[b"hidden", &scene.bytes_of(4)[..]].concat()),
        found: &[(Public, &["surplus-bytes 0.seg"])],
        exported: Read::Fails(ErrorKind::Tampered),
        queried: Read::Fails(ErrorKind::Tampered),
        ..NOTHING
    },
    Attack {
        name: "the last block cut off",
        carry_out: |scene| scene.replace_frame(13, &[]),
        found: &[(Public, &["frames-missing 8.seg f13-13 e16-16"])],
        exported: Read::Fails(ErrorKind::Tampered),
        queried: Read::Fails(ErrorKind::Tampered),
        writer: Writer::Fails(ErrorKind::Tampered),
        pinned: Writer::Fails(ErrorKind::Tampered),
        ..NOTHING
    },
    Attack {
        name: "half of the last block cut off",
        carry_out: |scene| scene.replace_frame(13, &scene.bytes_of(13)[..100]),
        found: &[(Public, &["frames-missing 8.seg f13-13 e16-16"])],
        exported: Read::Fails(ErrorKind::Tampered),
        queried: Read::Fails(ErrorKind::Tampered),
        writer: Writer::Fails(ErrorKind::Tampered),
        pinned: Writer::Fails(ErrorKind::Tampered),
        ..NOTHING
    },
    Attack {
        name: "a segment removed",
        carry_out: |scene| fs::remove_file(scene.path(&scene.segment(0))).unwrap(),
        found: &[(Public, &["frames-missing f0-7 e0-9"])],
        exported: Read::Fails(ErrorKind::Tampered),
        queried: Read::Fails(ErrorKind::Tampered),
        ..NOTHING
    },
    Attack {
        name: "a segment made empty",
        carry_out: |scene| scene.write(&scene.segment(0), &[]),
        found: &[(Public, &["frames-missing f0-7 e0-9"])],
        exported: Read::Fails(ErrorKind::Tampered),
        queried: Read::Fails(ErrorKind::Tampered),
        ..NOTHING
    },
    Attack {
        name: "the newest segment removed",
        carry_out: |scene| fs::remove_file(scene.path(&scene.segment(8))).unwrap(),
        found: &[(Public, &["frames-missing 0.seg f8-13 e10-16"])],
        exported: Read::Fails(ErrorKind::Tampered),
        queried: Read::Fails(ErrorKind::Tampered),
        writer: Writer::Fails(ErrorKind::Tampered),
        pinned: Writer::Fails(ErrorKind::Tampered),
        ..NOTHING
    },
    Attack {
        name: "two segments exchanged",
        carry_out: |scene| {
            let (one, other) = (scene.segment(0), scene.segment(8));
            let (first, second) = (scene.read(&one), scene.read(&other));
            scene.write(&one, &second);
            scene.write(&other, &first);
        },
        found: &[(Public, &["frames-missing 0.seg f0-7 e0-9", "surplus-bytes 8.seg"])],
        exported: Read::Fails(ErrorKind::Tampered),
        queried: Read::Fails(ErrorKind::Tampered),
        writer: Writer::Fails(ErrorKind::Tampered),
        pinned: Writer::Fails(ErrorKind::Tampered),
        ..NOTHING
    },
    Attack {
        name: "a segment under another name",
        carry_out: |scene| {
            let other = scene.path("segments/00000000000000000009.seg");
            fs::rename(scene.path(&scene.segment(8)), other).unwrap();
        },
        found: &[(Public, &["frames-missing 0.seg f8-8"])],
        exported: Read::Fails(ErrorKind::Tampered),
        queried: Read::Fails(ErrorKind::Tampered),
        ..NOTHING
    },
    Attack {
        name: "a symbolic link in the place of a segment",
        carry_out: |scene| scene.link(&scene.path(&scene.segment(0))),
        found: &[(Public, &["error: Unavailable"])],
        exported: Read::Fails(ErrorKind::Unavailable),
        queried: Read::Fails(ErrorKind::Unavailable),
        writer: Writer::Fails(ErrorKind::Unavailable),
        pinned: Writer::Fails(ErrorKind::Unavailable),
        ..NOTHING
    },
    Attack {
        name: "a directory in the place of a segment",
        carry_out: |scene| {
            let path = scene.path(&scene.segment(0));
            fs::remove_file(&path).unwrap();
            fs::create_dir(path).unwrap();
        },
        found: &[(Public, &["frames-missing f0-7 e0-9", "told: unknown-file"])],
        exported: Read::Fails(ErrorKind::Tampered),
        queried: Read::Fails(ErrorKind::Tampered),
        ..NOTHING
    },
    Attack {
        name: "a symbolic link in the place of `segments`",
        carry_out: |scene| scene.link(&scene.path("segments")),
        found: &[(Public, &["error: Unavailable"])],
        exported: Read::Fails(ErrorKind::Unavailable),
        queried: Read::Fails(ErrorKind::Unavailable),
        writer: Writer::Fails(ErrorKind::Unavailable),
        pinned: Writer::Fails(ErrorKind::Unavailable),
        ..NOTHING
    },
];

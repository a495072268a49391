//! Attacks on what follows the checkpoint, which nobody has signed yet.

use super::Level::{Public, Seal};
use super::scene::State::{Closed, Killed};
use super::{Attack, Writer};
use bulla::ErrorKind;

const NOTHING: Attack = Attack { state: Killed, ..super::NOTHING };

pub(super) const ATTACKS: &[Attack] = &[
    Attack {
        name: "unsigned: all frames cut off",
        carry_out: |scene| {
            for frame in [13, 12, 11] {
                scene.replace_frame(frame, &[]);
            }
        },
        elsewhere: "who was acknowledged an entry as durable",
        ..NOTHING
    },
    Attack {
        name: "unsigned: half of the last frame cut off",
        carry_out: |scene| scene.replace_frame(13, &scene.bytes_of(13)[..200]),
        found: &[(Public, &["told: unsigned-tail 8.seg f11-12"])],
        elsewhere: "who was acknowledged an entry as durable",
        ..NOTHING
    },
    Attack {
        name: "unsigned: a bit of the first frame's body",
        carry_out: |scene| scene.flip_body(11),
        found: &[(Public, &["told: unsigned-tail 8.seg f11-13"]), (Seal, &["tail-damaged 8.seg f11-13"])],
        writer: Writer::Fails(ErrorKind::Tampered),
        pinned: Writer::Fails(ErrorKind::Tampered),
        ..NOTHING
    },
    Attack {
        name: "unsigned: a bit of the first frame's seal",
        carry_out: |scene| scene.flip_frame(11, -1),
        found: &[(Public, &["told: unsigned-tail 8.seg f11-13"]), (Seal, &["tail-damaged 8.seg f11-13"])],
        writer: Writer::Fails(ErrorKind::Tampered),
        pinned: Writer::Fails(ErrorKind::Tampered),
        ..NOTHING
    },
    Attack {
        name: "unsigned: a bit of the last frame's seal",
        carry_out: |scene| scene.flip_frame(13, -1),
        found: &[(Public, &["told: unsigned-tail 8.seg f11-13"]), (Seal, &["tail-damaged 8.seg f11-13"])],
        ..NOTHING
    },
    Attack {
        name: "unsigned: a byte of the last frame's seal made zero, as a torn write leaves it",
        carry_out: |scene| {
            let bytes = scene.bytes_of(13);
            scene.replace_frame(13, &[&bytes[..bytes.len() - 1], &[0]].concat());
        },
        found: &[(Public, &["told: unsigned-tail 8.seg f11-13"])],
        elsewhere: "who was acknowledged an entry as durable",
        ..NOTHING
    },
    Attack {
        name: "unsigned: the first frame removed",
        carry_out: |scene| scene.replace_frame(11, &[]),
        found: &[(Public, &["told: unsigned-tail 8.seg f11-11"]), (Seal, &["tail-damaged 8.seg f11-11"])],
        writer: Writer::Fails(ErrorKind::Tampered),
        pinned: Writer::Fails(ErrorKind::Tampered),
        ..NOTHING
    },
    Attack {
        name: "unsigned: the first two frames exchanged",
        carry_out: |scene| {
            let (one, other) = (scene.bytes_of(11), scene.bytes_of(12));
            scene.replace_frame(12, &[]);
            scene.replace_frame(11, &[other, one].concat());
        },
        found: &[(Public, &["told: unsigned-tail 8.seg f11-11"]), (Seal, &["tail-damaged 8.seg f11-11"])],
        writer: Writer::Fails(ErrorKind::Tampered),
        pinned: Writer::Fails(ErrorKind::Tampered),
        ..NOTHING
    },
    Attack {
        name: "unsigned: a signed frame put in once more",
        carry_out: |scene| scene.replace_frame(13, &[scene.bytes_of(13), scene.bytes_of(10)].concat()),
        found: &[(Public, &["told: unsigned-tail 8.seg f11-13"]), (Seal, &["tail-damaged 8.seg f11-13"])],
        ..NOTHING
    },
    Attack {
        name: "bytes added behind a log that was closed",
        state: Closed,
        carry_out: |scene| {
            let (segment, content) = (scene.segment(13), scene.read(&scene.segment(13)));
            scene.write(&segment, &[&content[..], b"hello"].concat());
        },
        found: &[(Public, &["told: unsigned-tail 8.seg f14-14"]), (Seal, &["tail-damaged 8.seg f14-14"])],
        ..NOTHING
    },
];

//! Attacks on what a log has beside its segments, by whoever has the storage.

use super::Level::{Identity, Key, Public, Seal};
use super::scene::State::Open;
use super::{Attack, NOTHING, Read, Writer};
use crate::erase::world::copy_into;
use bulla::ErrorKind;
use std::fs;

/// Changes `bulla.toml`.
fn edit(scene: &super::Scene, from: &str, to: &str) {
    let text = String::from_utf8(scene.read("bulla.toml")).unwrap();
    assert!(text.contains(from), "{text}");
    scene.write("bulla.toml", text.replacen(from, to, 1).as_bytes());
}

pub(super) const ATTACKS: &[Attack] = &[
    Attack {
        name: "a bit of the tile of the signed size",
        carry_out: |scene| scene.flip("tile/0/000.p/14", 32 * 4),
        found: &[(Public, &["tile-damaged f4-4"])],
        exported: Read::Fails(ErrorKind::Tampered),
        writer: Writer::Fails(ErrorKind::Tampered),
        pinned: Writer::Fails(ErrorKind::Tampered),
        ..NOTHING
    },
    Attack {
        name: "the tile of the signed size removed",
        carry_out: |scene| fs::remove_file(scene.path("tile/0/000.p/14")).unwrap(),
        found: &[(Public, &["tile-damaged f0-13"])],
        exported: Read::Fails(ErrorKind::Tampered),
        writer: Writer::Fails(ErrorKind::Tampered),
        pinned: Writer::Fails(ErrorKind::Tampered),
        ..NOTHING
    },
    Attack {
        name: "a bit of the bundle of the signed size",
        carry_out: |scene| scene.flip("tile/entries/000.p/14", 154 * 4 + 60),
        found: &[(Public, &["bundle-damaged f4-4"])],
        exported: Read::Fails(ErrorKind::Tampered),
        queried: Read::Fails(ErrorKind::Tampered),
        writer: Writer::Fails(ErrorKind::Tampered),
        pinned: Writer::Fails(ErrorKind::Tampered),
        ..NOTHING
    },
    Attack {
        name: "a tile of an older size removed",
        carry_out: |scene| fs::remove_file(scene.path("tile/0/000.p/3")).unwrap(),
        elsewhere: "nothing has to: nobody needs it any more",
        ..NOTHING
    },
    Attack {
        name: "a symbolic link in the place of a tile",
        carry_out: |scene| scene.link(&scene.path("tile/0/000.p/14")),
        found: &[(Public, &["tile-damaged f0-13"])],
        exported: Read::Fails(ErrorKind::Tampered),
        writer: Writer::Fails(ErrorKind::Tampered),
        pinned: Writer::Fails(ErrorKind::Tampered),
        ..NOTHING
    },
    Attack {
        name: "a letter of the checkpoint's signature",
        carry_out: |scene| {
            let mut note = scene.read("checkpoint");
            let at = note.len() - 20;
            note[at] = if note[at] == b'A' { b'B' } else { b'A' };
            scene.write("checkpoint", &note);
        },
        found: &[(Public, &["checkpoint-damaged"]), (Key, &["checkpoint-damaged", "key-mismatch"])],
        exported: Read::Fails(ErrorKind::Tampered),
        queried: Read::Fails(ErrorKind::Tampered),
        writer: Writer::Fails(ErrorKind::Tampered),
        pinned: Writer::Fails(ErrorKind::Tampered),
        ..NOTHING
    },
    Attack {
        name: "the checkpoint removed",
        carry_out: |scene| fs::remove_file(scene.path("checkpoint")).unwrap(),
        found: &[(Public, &["checkpoint-damaged"])],
        exported: Read::Fails(ErrorKind::Tampered),
        queried: Read::Fails(ErrorKind::Tampered),
        writer: Writer::Fails(ErrorKind::Tampered),
        pinned: Writer::Fails(ErrorKind::Tampered),
        ..NOTHING
    },
    Attack {
        name: "an older checkpoint put back",
        carry_out: |scene| {
            let older = scene.earlier("early/audit/checkpoint");
            scene.write("checkpoint", &older);
        },
        found: &[(
            Public,
            &[
                "told: unsigned-tail 0.seg f3-13",
                "told: unknown-file",
                "told: unknown-file",
                "told: unknown-file",
                "told: unknown-file",
                "told: unknown-file",
                "told: unknown-file",
                "told: unknown-file",
                "told: unknown-file",
                "told: unknown-file",
                "told: unknown-file",
            ],
        )],
        exported: Read::Fails(ErrorKind::Unavailable),
        queried: Read::Fails(ErrorKind::Unavailable),
        elsewhere: "nothing has to: what was signed is there, and the next writer signs it again",
        ..NOTHING
    },
    Attack {
        name: "a symbolic link in the place of the checkpoint",
        carry_out: |scene| scene.link(&scene.path("checkpoint")),
        found: &[(Public, &["error: Unavailable"])],
        exported: Read::Fails(ErrorKind::Unavailable),
        queried: Read::Fails(ErrorKind::Unavailable),
        writer: Writer::Fails(ErrorKind::Unavailable),
        pinned: Writer::Fails(ErrorKind::Unavailable),
        ..NOTHING
    },
    Attack {
        name: "a value of `[log]` in `bulla.toml`",
        carry_out: |scene| edit(scene, "\ncommon = 16", "\ncommon = 8"),
        found: &[(Public, &["config-mismatch 0.seg f0-0"])],
        exported: Read::Fails(ErrorKind::Tampered),
        queried: Read::Fails(ErrorKind::Tampered),
        writer: Writer::Fails(ErrorKind::Refused),
        pinned: Writer::Fails(ErrorKind::Refused),
        ..NOTHING
    },
    Attack {
        name: "another recipient in `[log]`",
        carry_out: |scene| {
            let (_, recipient) = bulla::keys::identities::generate();
            let text = String::from_utf8(scene.read("bulla.toml")).unwrap();
            let own = text.split('"').find(|word| word.starts_with("age1")).unwrap().to_owned();
            edit(scene, &own, &recipient);
        },
        found: &[(Public, &["config-mismatch 0.seg f0-0"])],
        exported: Read::Fails(ErrorKind::Tampered),
        queried: Read::Fails(ErrorKind::Tampered),
        writer: Writer::Fails(ErrorKind::Refused),
        pinned: Writer::Fails(ErrorKind::Refused),
        ..NOTHING
    },
    Attack {
        name: "`bulla.toml` removed",
        carry_out: |scene| fs::remove_file(scene.path("bulla.toml")).unwrap(),
        found: &[(Public, &["config-damaged"])],
        exported: Read::Fails(ErrorKind::Tampered),
        queried: Read::Fails(ErrorKind::Tampered),
        writer: Writer::Fails(ErrorKind::Tampered),
        pinned: Writer::Fails(ErrorKind::Tampered),
        ..NOTHING
    },
    Attack {
        name: "`bulla.toml` made one that is to arrive with another checkpoint",
        carry_out: |scene| {
            let text = scene.read("bulla.toml");
            scene.write("bulla.toml.next", &[b"bulla-next-v1 7\n", &text[..]].concat());
            fs::remove_file(scene.path("bulla.toml")).unwrap();
        },
        found: &[(Public, &["config-damaged"])],
        exported: Read::Fails(ErrorKind::Tampered),
        queried: Read::Fails(ErrorKind::Tampered),
        writer: Writer::Fails(ErrorKind::Tampered),
        pinned: Writer::Fails(ErrorKind::Tampered),
        ..NOTHING
    },
    Attack {
        name: "a bit of `checkpoint.cose`",
        carry_out: |scene| scene.flip("checkpoint.cose", 60),
        found: &[(Public, &["cose-mismatch"])],
        exported: Read::Fails(ErrorKind::Tampered),
        mended: true,
        elsewhere: "the writer makes it anew, and says so: it is no evidence of anything",
        ..NOTHING
    },
    Attack {
        name: "a value of `[settings]` that no promise rests on",
        carry_out: |scene| edit(scene, "\n[settings]", "\n[settings]\ncompression = 3"),
        elsewhere: "nothing has to: it is free",
        ..NOTHING
    },
    Attack {
        name: "a value of `[settings]` that a promise rests on",
        carry_out: |scene| edit(scene, "\n[settings]", "\n[settings]\ndurability = \"os\""),
        writer: Writer::Fails(ErrorKind::Refused),
        pinned: Writer::Fails(ErrorKind::Refused),
        ..NOTHING
    },
    Attack {
        name: "a bit of a file of the index",
        carry_out: |scene| {
            let part = scene.files_in("index").remove(0);
            let at = scene.read(&part).len() / 2;
            scene.flip(&part, at);
        },
        found: &[(Identity, &["told: index-damaged index/00000000000000000000.idx"])],
        elsewhere: "nothing has to: queries read the blocks",
        ..NOTHING
    },
    Attack {
        name: "the index removed",
        carry_out: |scene| fs::remove_dir_all(scene.path("index")).unwrap(),
        elsewhere: "nothing has to: queries read the blocks",
        ..NOTHING
    },
    Attack {
        name: "a file of another name added",
        carry_out: |scene| scene.write("notes.txt", b"hello"),
        found: &[(Public, &["told: unknown-file"])],
        elsewhere: "nothing has to: it counts for nothing",
        ..NOTHING
    },
    Attack {
        name: "a directory added among the segments",
        carry_out: |scene| fs::create_dir(scene.path("segments/00000000000000000005.seg")).unwrap(),
        found: &[(Public, &["told: unknown-file"])],
        elsewhere: "nothing has to: it counts for nothing",
        ..NOTHING
    },
    Attack {
        name: "an empty segment added",
        carry_out: |scene| scene.write("segments/00000000000000000005.seg", b""),
        elsewhere: "nothing has to: it counts for nothing, to anybody",
        ..NOTHING
    },
    Attack {
        name: "a segment of other bytes added",
        carry_out: |scene| scene.write("segments/00000000000000000005.seg", b"hello"),
        found: &[(Public, &["surplus-bytes 5.seg"])],
        exported: Read::Fails(ErrorKind::Tampered),
        queried: Read::Fails(ErrorKind::Tampered),
        ..NOTHING
    },
    Attack {
        name: "a segment added behind the checkpoint",
        carry_out: |scene| scene.write("segments/00000000000000000099.seg", b"hello"),
        found: &[(Public, &["told: unsigned-tail 99.seg f14-14"]), (Seal, &["tail-damaged 99.seg f14-14"])],
        writer: Writer::Fails(ErrorKind::Tampered),
        pinned: Writer::Fails(ErrorKind::Tampered),
        ..NOTHING
    },
    Attack {
        name: "`LOCK` removed",
        carry_out: |scene| fs::remove_file(scene.path("LOCK")).unwrap(),
        elsewhere: "nothing has to: the next writer makes it",
        ..NOTHING
    },
    Attack {
        name: "a symbolic link in the place of `LOCK`",
        carry_out: |scene| scene.link(&scene.path("LOCK")),
        found: &[(Public, &["error: Unavailable"])],
        exported: Read::Fails(ErrorKind::Unavailable),
        queried: Read::Fails(ErrorKind::Unavailable),
        writer: Writer::Fails(ErrorKind::Unavailable),
        pinned: Writer::Fails(ErrorKind::Unavailable),
        ..NOTHING
    },
    Attack {
        name: "`LOCK` replaced under its writer",
        state: Open,
        carry_out: |scene| {
            fs::remove_file(scene.path("LOCK")).unwrap();
            scene.write("LOCK", b"");
        },
        writer: Writer::Fails(ErrorKind::Unavailable),
        pinned: Writer::Fails(ErrorKind::Unavailable),
        ..NOTHING
    },
    Attack {
        name: "the directory replaced by a copy under its writer",
        state: Open,
        carry_out: |scene| {
            let away = scene.beside("away");
            fs::rename(&scene.directory, &away).unwrap();
            copy_into(&away, &scene.directory);
        },
        writer: Writer::Fails(ErrorKind::Unavailable),
        pinned: Writer::Fails(ErrorKind::Unavailable),
        ..NOTHING
    },
    Attack {
        name: "the segment that is written removed under its writer",
        state: Open,
        carry_out: |scene| {
            let newest = scene.files_in("segments").pop().unwrap();
            fs::remove_file(scene.path(&newest)).unwrap();
        },
        found: &[(Public, &["frames-missing 0.seg f8-15 e10-17"])],
        exported: Read::Fails(ErrorKind::Tampered),
        queried: Read::Fails(ErrorKind::Tampered),
        writer: Writer::Fails(ErrorKind::Unavailable),
        pinned: Writer::Fails(ErrorKind::Unavailable),
        ..NOTHING
    },
];

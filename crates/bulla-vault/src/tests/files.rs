//! The files of keys and roots: missing, foreign, damaged.

use super::*;
use bulla_crypto::environment::Environment;
use bulla_crypto::identities::{self, IdentityFile};
use keys::Keys;
use root::RootKey;
use std::fs;
use std::os::unix::fs::PermissionsExt;

fn keys() -> Keys {
    Keys::generate(LOG, &SystemRandom).unwrap()
}

#[test]
fn a_file_system_with_small_blocks_is_refused_by_name() {
    let directory = Path::new("/mnt/small/audit.keys/vault");
    for size in [0, 4096, 8192, 65_536, 1 << 20] {
        directory::require_block_size(directory, size).unwrap();
    }
    for size in [512, 1024, 2048] {
        let error = directory::require_block_size(directory, size).unwrap_err();
        let (kind, text) = (error.kind(), error.to_string());
        assert_eq!(kind, ErrorKind::Unavailable, "{text}");
        for told in ["/mnt/small/audit.keys/vault", &format!("blocks of {size} bytes"), "mkfs.ext4 -b 4096"] {
            assert!(text.contains(told), "{text}");
        }
    }
    // The one that this runs on is asked.
    let world = World::new();
    directory::require_blocks(&world.file("vault")).unwrap();
    let missing = directory::require_blocks(&world.file("nowhere")).unwrap_err();
    assert!(missing.to_string().contains("nowhere"), "{missing}");
}

#[test]
fn a_file_of_keys_is_read_back() {
    let made = keys();
    let more = made.extended(200, 500, &SystemRandom).unwrap();
    for keys in [made, more] {
        let file = keys.seal(&SystemRandom).unwrap();
        let read = Keys::open(&file, LOG, 0, &keys.root).unwrap();
        assert!(read.is_same(&keys) && read.pseudonym.0 == keys.pseudonym.0);
        assert_ne!(file, keys.seal(&SystemRandom).unwrap(), "no two files have one key");
        assert!(keys.rows.iter().all(|key| !file.windows(32).any(|found| found == key.0)));
    }
}

#[test]
fn every_byte_of_a_file_of_keys_counts() {
    let keys = keys();
    let file = keys.seal(&SystemRandom).unwrap();
    for place in 0..file.len() {
        for bit in [0x01, 0x80] {
            let mut altered = file.clone();
            altered[place] ^= bit;
            assert!(Keys::open(&altered, LOG, 0, &keys.root).is_err(), "byte {place}");
        }
    }
    for length in 0..file.len() {
        assert!(Keys::open(&file[..length], LOG, 0, &keys.root).is_err(), "{length} bytes");
    }
    let longer = [&file[..], &[0]].concat();
    assert!(Keys::open(&longer, LOG, 0, &keys.root).is_err());
    // Counts that would take memory are compared with the length first.
    for at in [32, 36] {
        let mut huge = file.clone();
        huge[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(Keys::open(&huge, LOG, 0, &keys.root).err().unwrap().kind(), ErrorKind::Tampered);
    }
}

#[test]
fn a_file_of_keys_belongs_to_one_root_log_and_generation() {
    let keys = keys();
    let file = keys.seal(&SystemRandom).unwrap();
    let error = |log, generation, root: &RootKey| Keys::open(&file, log, generation, root).err().unwrap();
    let other = error(LogId([1; 16]), 0, &keys.root);
    assert_eq!((other.kind(), other.to_string().contains("another log")), (ErrorKind::Refused, true));
    let other = error(LOG, 1, &keys.root);
    assert_eq!((other.kind(), other.to_string().contains("generation 0")), (ErrorKind::Refused, true));
    let other = error(LOG, 0, &RootKey::new([0; 32]));
    assert_eq!((other.kind(), other.to_string().contains("another root")), (ErrorKind::Tampered, true));
}

#[test]
fn a_root_file_is_a_line_that_says_whose_it_is() {
    let root = RootKey::new([7; 32]);
    let file = RootFile.wrap(&root, LOG, 12).unwrap();
    let text = std::str::from_utf8(&file).unwrap();
    assert_eq!(text, format!("bulla-vault-root-v1 {LOG} 12 BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=\n"));
    assert_eq!(RootFile.unwrap(&file, LOG, 12).unwrap().0.0, [7; 32]);
    let kind = |text: &str| RootFile.unwrap(text.as_bytes(), LOG, 12).err().unwrap().kind();
    assert_eq!(kind(&text.replace(" 12 ", " 13 ")), ErrorKind::Refused);
    assert_eq!(kind(&text.replace("5a5a5a", "5a5a5b")), ErrorKind::Refused);
    let broken = [
        "",
        "\n",
        text.trim_end(),
        &text.replace("-v1", "-v2"),
        &text.replace("BwcH", "Bw"),
        &text.replace("BwcH", "Bw!H"),
        &text.replace(' ', "  "),
        &format!("{text}{text}"),
    ];
    for broken in broken {
        assert_eq!(kind(broken), ErrorKind::Tampered, "{broken:?}");
    }
    assert_eq!(RootFile.unwrap(&[0xff, b'\n'], LOG, 12).err().unwrap().kind(), ErrorKind::Tampered);
}

/// A root wrapped to an identity: without it the vault does not open.
#[test]
fn a_root_may_be_an_age_file() {
    let (text, recipient) = identities::generate();
    let (other, _) = identities::generate();
    let settings = |identity: &str| Settings {
        root: Arc::new(AgeRoot {
            key_wrap: Environment::default().key_wrap,
            recipients: vec![recipient.clone()],
            limit: std::time::Duration::from_secs(30),
            identity: Arc::new(IdentityFile::parse(identity).unwrap()),
        }),
        ..Settings::default()
    };
    let world = World::with(settings(&text));
    let vault = world.open();
    fill(&vault, "s", 5);
    vault.confirm(erase(&vault, &["s3"]).unwrap().unwrap().numbers()).unwrap();
    drop(vault);
    assert!(fs::read(world.file("roots/1.root")).unwrap().starts_with(b"age-encryption.org/v1"));
    let world = World { settings: settings(&other), ..world };
    let (kind, message) = world.refusal();
    assert_eq!((kind, message.contains("roots/1.root: it is wrapped to another")), (ErrorKind::NoKey, true));
    let world = World { settings: settings(&text), ..world };
    assert_eq!(number(&world.open(), "s4"), 4);
}

#[test]
fn what_is_missing_is_named() {
    let place = tempfile::tempdir().unwrap();
    let none = World { place, settings: Settings::default() };
    let (kind, message) = none.refusal();
    assert_eq!((kind, message.contains("vault holds no vault")), (ErrorKind::NoKey, true), "{message}");

    for (name, kind) in [
        ("roots/0.root", ErrorKind::NoKey),
        ("roots/0.keys", ErrorKind::NoKey),
        ("vault/vault.db", ErrorKind::NoKey),
        ("vault", ErrorKind::NoKey),
    ] {
        let world = World::new();
        fill(&world.open(), "s", 3);
        match world.file(name).is_dir() {
            true => fs::remove_dir_all(world.file(name)).unwrap(),
            false => fs::remove_file(world.file(name)).unwrap(),
        }
        let (found, message) = world.refusal();
        assert_eq!(found, kind, "{name}: {message}");
        let name = name.trim_end_matches("/vault.db");
        assert!(message.contains(name) && message.contains("restore it from a backup"), "{name}: {message}");
    }
}

#[test]
fn what_is_foreign_is_named() {
    let world = World::new();
    let error = Vault::open(world.path(), LogId([9; 16]), Access::Write, &world.settings).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.to_string().contains("vault of another log, 5a5a"), "{error}");

    // Vault and roots of different times.
    let vault = world.open();
    fill(&vault, "s", 3);
    drop(vault);
    let old = tempfile::tempdir().unwrap();
    copy(world.path(), old.path());
    let vault = world.open();
    vault.confirm(erase(&vault, &["s1"]).unwrap().unwrap().numbers()).unwrap();
    drop(vault);
    let mixed = World { place: tempfile::tempdir().unwrap(), settings: world.settings.clone() };
    copy(&old.path().join("vault"), &mixed.file("vault"));
    copy(&world.file("roots"), &mixed.file("roots"));
    let (kind, message) = mixed.refusal();
    assert_eq!(kind, ErrorKind::NoKey);
    assert!(message.contains("0.root is missing, and there is a root of generation 1: bring"), "{message}");
    assert!(mixed.file("roots/1.root").exists(), "what may be the right one is not destroyed");

    // A root that only has the right name.
    fs::rename(mixed.file("roots/1.root"), mixed.file("roots/0.root")).unwrap();
    let (kind, message) = mixed.refusal();
    assert_eq!(
        (kind, message.contains("0.root: it is the root of generation 1")),
        (ErrorKind::Refused, true)
    );
    let other = World::new();
    fs::copy(other.file("roots/0.root"), mixed.file("roots/0.root")).unwrap();
    fs::rename(mixed.file("roots/1.keys"), mixed.file("roots/0.keys")).unwrap();
    let (kind, message) = mixed.refusal();
    assert_eq!(
        (kind, message.contains("0.keys: it holds the keys of generation 1")),
        (ErrorKind::Refused, true)
    );
    fs::copy(old.path().join("roots/0.keys"), mixed.file("roots/0.keys")).unwrap();
    let (kind, message) = mixed.refusal();
    assert_eq!(
        (kind, message.contains("0.keys: it is damaged, or belongs to another root")),
        (ErrorKind::Unavailable, true)
    );
}

#[test]
fn only_files_of_generations_are_destroyed() {
    let world = World::new();
    for name in ["7.root", "7.keys.tmp", "0.root.tmp", "07.root", "x.root", "0.root.bak", "notes"] {
        fs::write(world.file("roots").join(name), b"something").unwrap();
    }
    drop(world.open());
    let left = FileSystem::new(world.file("roots")).list("").unwrap();
    let left = left.into_iter().map(|item| item.name).collect::<Vec<_>>();
    assert_eq!(left, ["0.keys", "0.root", "0.root.bak", "07.root", "notes", "x.root"]);
}

#[test]
fn only_the_owner_may_look() {
    let world = World::new();
    let vault = world.open();
    fill(&vault, "s", 1);
    let mode = |name: &str| fs::metadata(world.file(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!([mode("vault"), mode("roots")], [0o700; 2]);
    let files =
        ["vault/vault.db", "vault/vault.db-wal", "vault/vault.db-shm", "roots/0.root", "roots/0.keys"];
    assert_eq!(files.map(mode), [0o600; 5]);
    // What lies beside the database while it is open is taken into it at the end.
    drop(vault);
    assert!(!world.file(files[1]).exists() && !world.file(files[2]).exists());
}

/// What is written to a file that has no name any more nobody reads again.
#[test]
fn nobody_new_gets_a_number_of_a_vault_whose_files_were_replaced_or_removed_meanwhile() {
    type Attack = fn(&World);
    let attacks: [(&str, Attack, &str); 7] = [
        ("vault.db", |world| fs::remove_file(world.file("vault/vault.db")).unwrap(), ""),
        ("vault.db", |world| fs::rename(world.file("vault"), world.file("away")).unwrap(), "vault"),
        (
            "vault.db",
            |world| {
                // The same bytes in another file, as a backup's are.
                fs::copy(world.file("vault/vault.db"), world.file("copy")).unwrap();
                fs::rename(world.file("copy"), world.file("vault/vault.db")).unwrap();
            },
            "",
        ),
        (
            "roots/0.root",
            |world| fs::rename(world.file("roots/0.root"), world.file("away")).unwrap(),
            "roots/0.root",
        ),
        (
            "vault.db-wal",
            |world| fs::rename(world.file("vault/vault.db-wal"), world.file("away")).unwrap(),
            "vault/vault.db-wal",
        ),
        // What is not in the database yet is gone.
        ("vault.db", |world| fs::write(world.file("vault/vault.db-wal"), b"").unwrap(), ""),
        (
            "vault.db",
            |world| {
                // Somebody restores in place, beside the writer.
                for name in ["vault.db", "vault.db-wal", "vault.db-shm"] {
                    let old = fs::read(world.file("first").join(name)).unwrap();
                    fs::write(world.file("vault").join(name), old).unwrap();
                }
            },
            "",
        ),
    ];
    for (named, attack, back) in attacks {
        let world = World::new();
        let vault = world.open();
        number(&vault, "first");
        copy(&world.file("vault"), &world.file("first"));
        let known = number(&vault, "known");
        attack(&world);
        assert!(vault.resolve(&["new"]).is_err());
        for _ in 0..2 {
            let error = vault.resolve(&["new"]).map(|_| ()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
            assert!(error.to_string().contains(named) && error.to_string().contains("nobody new"), "{error}");
            assert!(vault.follow(head(7)).is_err(), "no checkpoint is signed over it");
        }
        assert_eq!(number(&vault, "known"), known, "whoever has a key in memory");
        if !back.is_empty() {
            fs::rename(world.file("away"), world.file(back)).unwrap();
            assert_eq!(number(&vault, "new"), known + 1);
            vault.follow(head(7)).unwrap();
        }
    }
}

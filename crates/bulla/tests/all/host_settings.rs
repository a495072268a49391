//! Whoever keeps the log's directory can write to its files, and have the host do nothing by that but refuse.

use crate::erase::world::{World, copy};
use bulla::store::FileSystem;
use bulla::{Configure, ErrorKind, ExportRecord, Log, Options, Query, Restore, environment::Environment};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Puts a line where anybody can who has the log's directory.
fn put(world: &World, line: &str) {
    let file = world.directory.join("bulla.toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{text}{line}\n")).unwrap();
}

fn is_empty(directory: &Path) -> bool {
    fs::read_dir(directory).unwrap().next().is_none()
}

#[test]
fn two_words_in_the_logs_file_never_have_the_vault_copied() {
    let world = World::new();
    world.append(0..20);
    let disk = world.directory.with_file_name("disk");
    fs::create_dir(&disk).unwrap();
    put(&world, &format!("vault_replicas = [\"{}\"]", disk.display()));
    let before = copy(&world.keys());
    let record = ExportRecord::new(1, &Query::new(), "jsonl");
    let recipient = "age1a37dpy8amjrxz7sc0jj3j4ys3mtqp9m9tmcan64s6g0w6qq20pnqvxphr3";
    let recipients = Configure::default().add_recipients([recipient]).unwrap();
    let ways: [(&str, &dyn Fn() -> bulla::Result<()>); 5] = [
        ("opening", &|| Log::open(&world.directory, Options::default()).map(drop)),
        ("with options", &|| Log::open(&world.directory, Options::default().writers(1)).map(drop)),
        ("restoring", &|| Restore::new(&world.directory, world.identity()).run().map(drop)),
        ("a change", &|| recipients.apply(&world.directory).map(drop)),
        ("an export", &|| {
            bulla::record_export(&world.directory, world.keys(), Environment::default(), &record)
        }),
    ];
    for (what, way) in ways {
        let error = way().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{what}: {error}");
        for told in ["`vault_replicas`", "bulla.toml", "settings.toml", "bulla config"] {
            assert!(error.to_string().contains(told), "{what}: {told}: {error}");
        }
        assert!(is_empty(&disk), "{what}");
    }
    // It was refused before anything was changed.
    let state = |keys: &Path| fs::read(keys.join("seal.state")).unwrap();
    assert!(state(before.path()) == state(&world.keys()) && !world.keys().join("restoring").exists());
    // A change of something else neither follows nor moves it.
    Configure::default().set("linger", "7 ms").unwrap().apply(&world.directory).unwrap();
    assert!(is_empty(&disk));
    assert_eq!(Log::open(&world.directory, Options::default()).unwrap_err().kind(), ErrorKind::Refused);
    // Reading rests on none of it.
    assert_eq!(world.entries().0.len(), 20);
    assert!(world.verified().ok && is_empty(&disk));
    Configure::default().unset("vault_replicas").unwrap().apply(&world.directory).unwrap();
    world.append(20..40);
    assert!(world.verified().ok && is_empty(&disk));
}

/// Each by its name, and whatever its value.
#[test]
fn whatever_a_promise_rests_on_is_refused_there() {
    let world = World::new();
    for line in [
        "memory = \"64 MiB\"",
        "segment_size = \"1 GiB\"",
        "linger = \"5 ms\"",
        "append_timeout = \"10 s\"",
        "checkpoint_interval = \"1 h\"",
        "plugin_timeout = \"30 s\"",
        "durability = \"os\"",
        "vault_replicas = []",
    ] {
        let file = world.directory.join("bulla.toml");
        let text = fs::read_to_string(&file).unwrap();
        let line = line.replace("1 h\"", "60 min\"");
        put(&world, &line);
        let name = line.split(' ').next().unwrap();
        let error = Log::open(&world.directory, Options::default()).unwrap_err();
        assert!(
            error.kind() == ErrorKind::Refused && error.to_string().contains(&format!("`{name}`")),
            "{error}"
        );
        let configure = match name {
            "vault_replicas" => Configure::default().unset(name),
            _ => {
                let value = line.split('"').nth(1).unwrap();
                Configure::default().set(name, value)
            }
        };
        configure.unwrap().apply(&world.directory).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), text, "it is moved");
        Log::open(&world.directory, Options::default()).unwrap().close().unwrap();
    }
    let keys = FileSystem::new(world.keys());
    let moved = bulla::keys::settings::load(&keys).unwrap();
    let options = Options::default().with_host(moved).settings();
    let of = |name: &str| options.iter().find(|setting| setting.name == name).unwrap().value.clone();
    assert_eq!((of("durability"), of("checkpoint_interval")), ("os".to_owned(), "3600 s".to_owned()));
    // What no promise rests on stays where it is.
    for line in [
        "block_size = 65536",
        "writers = 1",
        "profile = \"fast\"",
        "compression = 3",
        "retries = 1",
        "retry_delay = \"1 ms\"",
    ] {
        put(&world, line);
    }
    Log::open(&world.directory, Options::default()).unwrap().close().unwrap();
}

#[test]
fn the_key_directorys_settings_are_read_strictly() {
    let world = World::new();
    let file = world.keys().join("settings.toml");
    for (text, said) in [
        ("[settings]\nlingr = \"5 ms\"\n", "lingr"),
        ("[settings]\nlinger = 5\n", "linger"),
        ("[settings]\nlinger = \"5 ms\"\nlinger = \"6 ms\"\n", "linger"),
        ("linger = \"5 ms\"\n", "linger"),
        ("[settings]\n[more]\n", "more"),
        ("[settings]\nwriters = 2\n", "`writers`, which belongs in [settings] of bulla.toml"),
        ("[settings", "settings.toml"),
    ] {
        fs::write(&file, text).unwrap();
        let error = Log::open(&world.directory, Options::default()).unwrap_err();
        let told = error.to_string();
        assert!(
            error.kind() == ErrorKind::Unavailable && told.contains(said) && told.contains("settings.toml"),
            "{error}"
        );
    }
    fs::write(&file, [0xff]).unwrap();
    assert_eq!(Log::open(&world.directory, Options::default()).unwrap_err().kind(), ErrorKind::Unavailable);
    fs::write(&file, vec![b'#'; 2 << 20]).unwrap();
    assert!(Log::open(&world.directory, Options::default()).is_err());
    fs::remove_file(&file).unwrap();
    Configure::default().set("linger", "7 ms").unwrap().apply(&world.directory).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    // No link is followed.
    let elsewhere = world.directory.with_file_name("elsewhere.toml");
    let before = fs::read(&file).unwrap();
    fs::rename(&file, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &file).unwrap();
    let error = Configure::default().set("linger", "8 ms").unwrap().apply(&world.directory).unwrap_err();
    assert!(
        error.kind() == ErrorKind::Unavailable
            && error.to_string().contains("`settings.toml` is a symbolic link"),
        "{error}"
    );
    assert_eq!(fs::read(&elsewhere).unwrap(), before);
}

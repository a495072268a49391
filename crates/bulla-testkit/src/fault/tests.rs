use std::collections::BTreeSet;
use std::io::{self, IoSlice};

use super::{Fault, FaultStore, Faults};
use bulla_store::{Store, StoreFile};

const SEEDS: u64 = 1024;

fn write(file: &dyn StoreFile, content: &[u8], offset: u64) -> io::Result<()> {
    file.write_at(&mut [IoSlice::new(content)], offset)
}

/// A machine with a file in a directory, all of it durable.
fn machine_with(content: &[u8]) -> (Faults, FaultStore, Box<dyn StoreFile>) {
    let machine = Faults::new();
    let store = machine.store("log");
    store.create_directory("").unwrap();
    let file = store.create("file").unwrap();
    write(&*file, content, 0).unwrap();
    file.sync().unwrap();
    store.sync_directory("").unwrap();
    (machine, store, file)
}

/// What the file can be after a power cut.
fn images(machine: &Faults, path: &str) -> BTreeSet<Option<Vec<u8>>> {
    (0..SEEDS).map(|seed| machine.crash(seed).read(path)).collect()
}

fn only(content: &[u8]) -> BTreeSet<Option<Vec<u8>>> {
    BTreeSet::from([Some(content.to_vec())])
}

#[test]
fn synced_content_with_a_synced_name_is_never_lost() {
    let (machine, ..) = machine_with(b"content");
    assert_eq!(images(&machine, "log/file"), only(b"content"));
}

#[test]
fn a_name_that_is_not_synced_can_be_lost() {
    let (machine, store, _) = machine_with(b"");
    let file = store.create("other").unwrap();
    write(&*file, b"content", 0).unwrap();
    file.sync().unwrap();
    assert_eq!(images(&machine, "log/other"), BTreeSet::from([None, Some(b"content".to_vec())]));
    store.sync_directory("").unwrap();
    assert_eq!(images(&machine, "log/other"), only(b"content"));
}

#[test]
fn a_directory_that_is_not_synced_can_be_lost_with_what_is_in_it() {
    let (machine, store, _) = machine_with(b"");
    store.create_directory("d").unwrap();
    let file = store.create("d/file").unwrap();
    file.sync().unwrap();
    store.sync_directory("d").unwrap();
    assert_eq!(images(&machine, "log/d/file").len(), 2);
    store.sync_directory("").unwrap();
    assert_eq!(images(&machine, "log/d/file"), only(b""));
}

#[test]
fn content_that_is_not_synced_is_kept_lost_torn_or_zeroed() {
    let (machine, _, file) = machine_with(&[1; 512]);
    write(&*file, &[2; 2048], 256).unwrap();
    let images = images(&machine, "log/file");
    let mut kept = vec![1; 256];
    kept.resize(256 + 2048, 2);
    let mut zeroed = vec![1; 512];
    zeroed.resize(256 + 2048, 0);
    assert!(images.contains(&Some(vec![1; 512])), "lost");
    assert!(images.contains(&Some(kept)), "kept");
    assert!(images.contains(&Some(zeroed)), "only the length is kept");
    let has = |what: fn(&[u8]) -> bool| images.iter().flatten().any(|image| what(image));
    assert!(has(|image| image.len() % 512 > 0 && image.ends_with(&[2])), "a prefix");
    assert!(
        has(|image| image.len() == 2304 && image[512..1024] == [0; 512] && image[1024..1536] == [2; 512]),
        "any sectors"
    );
    for image in images.iter().flatten() {
        assert_eq!(image[..256], [1; 256], "what was not written stands");
        assert!(image[256..512].iter().all(|byte| matches!(byte, 1 | 2)));
        assert!(image[512..].iter().all(|byte| matches!(byte, 0 | 2)));
    }
}

#[test]
fn changes_survive_in_any_order() {
    let (machine, _, file) = machine_with(b"----");
    write(&*file, b"aa", 0).unwrap();
    write(&*file, b"bb", 1).unwrap();
    let images = images(&machine, "log/file");
    for possible in [b"----", b"aa--", b"-bb-", b"abb-", b"aab-"] {
        assert!(images.contains(&Some(possible.to_vec())), "{possible:?}");
    }
}

#[test]
fn a_rename_is_whole_or_not() {
    let (machine, store, _) = machine_with(b"old");
    let file = store.create("new").unwrap();
    write(&*file, b"new", 0).unwrap();
    file.sync().unwrap();
    store.rename("new", "file").unwrap();
    let pairs: BTreeSet<_> =
        (0..SEEDS).map(|seed| machine.crash(seed)).map(|m| (m.read("log/file"), m.read("log/new"))).collect();
    let [old, new] = [Some(b"old".to_vec()), Some(b"new".to_vec())];
    assert_eq!(pairs, BTreeSet::from([(old.clone(), None), (old, new.clone()), (new, None)]));
}

#[test]
fn a_rename_between_directories_is_durable_by_halves() {
    let moved = |sync: &str| {
        let (machine, store, _) = machine_with(b"content");
        store.create_directory("d").unwrap();
        store.sync_directory("").unwrap();
        store.rename("file", "d/file").unwrap();
        store.sync_directory(sync).unwrap();
        (images(&machine, "log/file"), images(&machine, "log/d/file"))
    };
    let content = Some(b"content".to_vec());
    let either = BTreeSet::from([None, content.clone()]);
    assert_eq!(moved("d"), (either.clone(), BTreeSet::from([content])));
    assert_eq!(moved(""), (BTreeSet::from([None]), either));
}

#[test]
fn eight_seeds_reach_the_extremes() {
    let (machine, store, file) = machine_with(b"old");
    write(&*file, b"new content", 0).unwrap();
    write(&*store.create("other").unwrap(), b"other", 0).unwrap();
    let found = |seed: u64| {
        let image = machine.crash(seed);
        [image.read("log/file"), image.read("log/other")]
            .map(|content| content.map(|content| String::from_utf8(content).unwrap()))
    };
    let some = |content: &str| Some(content.to_owned());
    for seed in [0, 800] {
        assert_eq!(found(seed), [some("old"), None]);
        assert_eq!(found(seed + 1), [some("new content"), some("other")]);
        assert_eq!(found(seed + 2), [some("old"), some("")]);
        assert_eq!(found(seed + 3), [some("new content"), None]);
        assert_eq!(found(seed + 4), [some("old\0\0\0\0\0\0\0\0"), some("\0\0\0\0\0")]);
    }
}

#[test]
fn the_same_seed_gives_the_same_image() {
    let run = || {
        let (machine, store, file) = machine_with(&[1; 5000]);
        for number in 0..40_u8 {
            write(&*file, &[number; 700], u64::from(number) * 300).unwrap();
            store.create(&format!("file {number}")).unwrap();
        }
        machine
    };
    let [one, two] = [run(), run()];
    assert_eq!(one.trace(), two.trace());
    let image = |machine: &Faults, seed| {
        let machine = machine.crash(seed);
        machine.files().iter().map(|path| (path.clone(), machine.read(path))).collect::<Vec<_>>()
    };
    for seed in 0..SEEDS {
        assert_eq!(image(&one, seed), image(&two, seed));
    }
    let different: BTreeSet<_> = (0..SEEDS).map(|seed| image(&one, seed)).collect();
    assert!(different.len() > 40, "{}", different.len());
}

#[test]
fn a_killed_process_leaves_the_cache() {
    let (machine, store, file) = machine_with(b"old");
    let _guard = store.lock("LOCK").unwrap();
    write(&*file, b"new", 0).unwrap();
    let killed = machine.kill();
    assert_eq!(killed.read("log/file").unwrap(), b"new");
    assert!(!killed.store("log").is_locked("LOCK").unwrap());
    assert!(store.is_locked("LOCK").unwrap(), "the old machine goes on");
    assert_eq!(killed.crash(0).read("log/file").unwrap(), b"old", "a later power cut loses it");
    killed.store("log").open_write("file").unwrap().sync().unwrap();
    assert_eq!(killed.crash(0).read("log/file").unwrap(), b"new", "unless it is synced there");
    assert_eq!(machine.crash(0).read("log/file").unwrap(), b"old", "and only there");
}

#[test]
fn the_machine_stops_at_the_operation() {
    let (machine, store, file) = machine_with(b"old");
    let next = machine.operations();
    machine.stop_at(next + 1);
    write(&*file, b"new", 0).unwrap();
    assert!(!machine.stopped());
    let error = store.create("other").err().unwrap();
    assert_eq!(error.to_string(), "the machine stopped");
    assert!(machine.stopped());
    assert!(file.read_at(&mut [0], 0).is_err());
    assert!(file.length().is_err() && file.sync().is_err() && store.list("").is_err());
    assert!(store.open("file").is_err() && store.lock("LOCK").is_err() && store.is_locked("LOCK").is_err());
    assert_eq!(machine.operations(), next + 2);
    assert_eq!(machine.crash(1).files(), ["log/file"], "it did not happen");
    assert_eq!(machine.crash(1).store("log").list("").unwrap().len(), 1, "a new machine runs");
}

#[test]
fn a_write_where_the_machine_stops_is_whole_partial_or_missing() {
    let found: BTreeSet<usize> = (0..40)
        .map(|skipped| {
            let (machine, store, file) = machine_with(b"");
            (0..skipped).for_each(|_| store.sync_directory("").unwrap());
            machine.stop_at(machine.operations());
            write(&*file, &[1; 100], 0).unwrap_err();
            assert_eq!(machine.crash(0).read("log/file").unwrap(), b"");
            machine.kill().read("log/file").unwrap().len()
        })
        .collect();
    assert!(found.contains(&0) && found.contains(&100) && found.len() > 2, "{found:?}");
}

#[test]
fn writes_fail_as_asked() {
    let attempt = |fault| {
        let (machine, _, file) = machine_with(b"----");
        machine.fail_at(0, fault);
        write(&*file, b"++++", 0).unwrap_err();
        let found = machine.read("log/file").unwrap();
        assert_eq!(machine.crash(0).read("log/file").unwrap(), b"----", "{fault:?} syncs nothing");
        write(&*file, b"2222", 0).unwrap();
        file.sync().unwrap();
        assert_eq!(images(&machine, "log/file"), only(b"2222"), "{fault:?} strikes once");
        found
    };
    assert_eq!(attempt(Fault::WriteFails), b"----");
    assert_eq!(attempt(Fault::WritePersistsButFails), b"++++");
    assert_ne!(attempt(Fault::WriteTearsAndFails), b"++++");
    assert_ne!(attempt(Fault::NoSpace), b"++++");
}

#[test]
fn names_fail_as_asked() {
    let (machine, store, _) = machine_with(b"");
    machine.fail_at(0, Fault::NameFails);
    assert!(store.rename("file", "other").is_err());
    assert_eq!(machine.files(), ["log/file"]);
    machine.fail_at(0, Fault::NamePersistsButFails);
    assert!(store.rename("file", "other").is_err());
    assert_eq!(machine.files(), ["log/other"]);
    machine.fail_at(0, Fault::NoSpace);
    store.rename("other", "file").unwrap();
    assert_eq!(store.create("more").err().unwrap().kind(), io::ErrorKind::StorageFull);
}

#[test]
fn a_failed_sync_gives_up_what_was_not_synced() {
    let (machine, _, file) = machine_with(b"----");
    write(&*file, b"aaaa", 0).unwrap();
    machine.fail_at(0, Fault::SyncFails);
    file.sync().unwrap_err();
    assert_eq!(machine.read("log/file").unwrap(), b"aaaa", "reads still see it");
    assert_eq!(machine.kill().read("log/file").unwrap(), b"aaaa");
    write(&*file, b"b", 3).unwrap();
    file.sync().unwrap();
    assert_eq!(images(&machine, "log/file"), only(b"---b"), "a later sync does not bring it back");
}

#[test]
fn a_sync_can_persist_and_fail() {
    let (machine, store, file) = machine_with(b"----");
    write(&*file, b"aaaa", 0).unwrap();
    machine.fail_at(0, Fault::SyncPersistsButFails);
    file.sync().unwrap_err();
    assert_eq!(images(&machine, "log/file"), only(b"aaaa"));
    store.create("other").unwrap();
    machine.fail_at(0, Fault::SyncPersistsButFails);
    store.sync_directory("").unwrap_err();
    assert_eq!(images(&machine, "log/other"), only(b""));
}

#[test]
fn a_failed_sync_of_a_directory_can_be_repeated() {
    let (machine, store, _) = machine_with(b"");
    store.create("other").unwrap();
    machine.fail_at(0, Fault::SyncFails);
    store.sync_directory("").unwrap_err();
    assert_eq!(machine.crash(0).read("log/other"), None);
    store.sync_directory("").unwrap();
    assert_eq!(images(&machine, "log/other"), only(b""));
}

#[test]
fn a_fault_waits_for_what_it_can_strike() {
    let (machine, store, file) = machine_with(b"");
    let next = machine.operations();
    machine.fail_at(next + 2, Fault::SyncFails);
    file.sync().unwrap();
    write(&*file, b"1", 0).unwrap();
    write(&*file, b"2", 0).unwrap();
    store.create("other").unwrap();
    file.sync().unwrap_err();
    file.sync().unwrap();
}

#[test]
fn lasting_faults_last_until_healed() {
    let (machine, store, file) = machine_with(b"");
    machine.fail_from(machine.operations() + 1, Fault::WriteFails);
    write(&*file, b"1", 0).unwrap();
    for _ in 0..3 {
        write(&*file, b"2", 0).unwrap_err();
        file.set_length(0).unwrap_err();
        file.sync().unwrap();
    }
    machine.heal();
    write(&*file, b"3", 0).unwrap();

    let other = machine.store("logs");
    other.create_directory("").unwrap();
    machine.fail_below("log", Fault::NameFails);
    assert!(store.create("other").is_err() && store.create_directory("d").is_err());
    other.create("other").unwrap();
}

#[test]
fn space_ends() {
    let (machine, store, file) = machine_with(b"12345");
    machine.limit_space(10);
    let other = store.create("other").unwrap();
    write(&*other, b"abc", 0).unwrap();
    let error = write(&*other, b"defg", 3).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert_eq!(machine.read("log/other").unwrap(), b"abcde", "what fits is written");
    write(&*file, b"54321", 0).unwrap();
    assert_eq!(file.set_length(6).unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert_eq!(write(&*file, b"x", 7).unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert_eq!(file.length().unwrap(), 5);
    store.remove("other").unwrap();
    write(&*file, b"67890", 5).unwrap();
    machine.heal();
    write(&*file, b"more", 10).unwrap();
}

#[test]
fn damage_is_durable_and_not_counted() {
    let (machine, store, file) = machine_with(b"content");
    write(&*file, b"C", 0).unwrap();
    let operations = machine.operations();
    machine.overwrite("log/file", b"damage");
    machine.overwrite("elsewhere/new", b"planted");
    assert_eq!(machine.files(), ["elsewhere/new", "log/file"]);
    assert_eq!(images(&machine, "log/file"), only(b"damage"));
    assert_eq!(images(&machine, "elsewhere/new"), only(b"planted"));
    assert_eq!(file.length().unwrap(), 6);
    assert!(machine.remove_file("log/file") && !machine.remove_file("log/file"));
    assert_eq!(images(&machine, "log/file"), BTreeSet::from([None]));
    assert!(store.list("").unwrap().is_empty());
    assert_eq!(machine.operations(), operations);
}

#[test]
fn stores_of_one_machine_share_its_counter() {
    let machine = Faults::new();
    let [log, keys] = [machine.store("audit"), machine.store("audit.keys")];
    log.create_directory("").unwrap();
    keys.create_directory("").unwrap();
    log.create("file").unwrap();
    drop(keys.lock("LOCK").unwrap());
    drop(keys.lock("LOCK").unwrap());
    assert_eq!(machine.operations(), 4, "{:#?}", machine.trace());
    assert_eq!(machine.files(), ["audit.keys/LOCK", "audit/file"]);
    assert_eq!(keys.describe("LOCK"), "audit.keys/LOCK");
    assert_eq!(machine.trace()[2], "2 Create audit/file");
}

#[test]
fn a_crash_keeps_the_directory_of_a_store() {
    let machine = Faults::new();
    machine.store("a/log").create_directory("d").unwrap();
    assert!(machine.crash(0).store("a/log").list("").unwrap().is_empty());
}

#[test]
fn what_other_losses_made_impossible_is_skipped() {
    let last_change_only = 5;
    let (machine, store, _) = machine_with(b"old");
    store.remove("file").unwrap();
    store.create("file").unwrap();
    assert_eq!(machine.crash(last_change_only).read("log/file").unwrap(), b"old", "the name was never free");

    store.create_directory("d").unwrap();
    store.create("d/file").unwrap();
    store.sync_directory("").unwrap();
    store.sync_directory("d").unwrap();
    store.remove("d/file").unwrap();
    store.remove_directory("d").unwrap();
    assert!(machine.crash(last_change_only).read("log/d/file").is_some(), "the directory was never empty");
}

#[test]
fn synced_names_stay_whatever_they_were_before() {
    let (machine, store, _) = machine_with(b"content");
    store.rename("file", "other").unwrap();
    store.sync_directory("").unwrap();
    store.rename("other", "file").unwrap();
    store.sync_directory("").unwrap();
    assert_eq!(images(&machine, "log/file"), only(b"content"));
    assert_eq!(images(&machine, "log/other"), BTreeSet::from([None]));
}

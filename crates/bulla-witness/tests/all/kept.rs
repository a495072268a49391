//! That a witness goes on where it was, and does not start where what it signed may be forgotten.

use crate::world::{Log, ORIGIN, World, cosigned};
use bulla_proof::CosignatureAlgorithm::Ed25519;
use bulla_store::{ErrorKind, FileSystem, Store};
use bulla_testkit::Memory;
use bulla_witness::Witness;
use std::sync::Arc;

/// Copies all files of a store.
fn copy(from: &dyn Store) -> Arc<dyn Store> {
    let to = Memory::new();
    let mut directories = vec![String::new()];
    while let Some(directory) = directories.pop() {
        to.create_directory(&directory).unwrap();
        for item in from.list(&directory).unwrap() {
            let path = if directory.is_empty() { item.name } else { format!("{directory}/{}", item.name) };
            match item.directory {
                true => directories.push(path),
                false => {
                    let content = bulla_store::read_small(from, &path, 1 << 20).unwrap();
                    bulla_store::replace(&to, &path, &content).unwrap();
                }
            }
        }
    }
    Arc::new(to)
}

#[test]
fn a_witness_goes_on_where_it_was() {
    let (world, key) = World::begun(Ed25519);
    let log = Log::new(ORIGIN, 0, 30);
    for size in [4, 11, 30] {
        let witness = world.open(&[&log]).unwrap();
        assert_eq!(witness.key(), &key);
        let old = witness.logs()[0].1.unwrap_or(0) as usize;
        cosigned(&witness.add_checkpoint(&log.request(old, size)), &key, &log.note(size));
        assert_eq!(witness.add_checkpoint(&log.request(0, size)).body, format!("{size}\n"));
    }
    assert_eq!(world.open(&[&log]).unwrap().logs(), [(ORIGIN.to_owned(), Some(30))]);
}

#[test]
fn a_state_that_is_lost_or_of_an_earlier_time_is_refused_and_what_is_demanded_is_said() {
    let (world, _) = World::begun(Ed25519);
    let log = Log::new(ORIGIN, 0, 30);
    let (begun, begun_keys) = (copy(&*world.state), copy(&*world.keys));
    world.open(&[&log]).unwrap().add_checkpoint(&log.request(0, 4));
    let earlier = copy(&*world.state);
    world.open(&[&log]).unwrap().add_checkpoint(&log.request(4, 11));
    let demanded = format!("the tree of 11 leaves with the root {} of `{ORIGIN}`", log.root(11).to_base64());
    for (state, why) in [
        (
            begun.clone(),
            format!("{demanded}, or a later one, was cosigned, and the state has nothing of that log"),
        ),
        (
            earlier,
            format!(
                "{demanded}, or a later one, was cosigned, and the state is of an earlier time: it has 4 leaves"
            ),
        ),
        (Arc::new(Memory::new()) as Arc<dyn Store>, "the state of this witness is not in".to_owned()),
    ] {
        let of = World::of(state, world.keys.clone());
        let refused = of.open(&[&log]).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Refused);
        assert!(refused.to_string().contains(&why), "{refused}");
        assert!(refused.to_string().contains("--new"), "{refused}");
        // Nor does it begin anew with the key that signed.
        assert_eq!(of.begin(Ed25519).unwrap_err().kind(), ErrorKind::Refused);
    }
    let (other, _) = World::begun(Ed25519);
    let foreign = World::of(other.state, world.keys.clone());
    assert!(foreign.open(&[&log]).unwrap_err().to_string().contains("the state of another witness"));
    // Of another history, at the same size: the same key signed it, elsewhere.
    let fork = Log::new(ORIGIN, 1, 30);
    let elsewhere = World::of(copy(&*begun), copy(&*begun_keys));
    assert_eq!(elsewhere.open(&[&fork]).unwrap().add_checkpoint(&fork.request(0, 11)).status, 200);
    let forked = World::of(elsewhere.state, world.keys.clone());
    let refused = forked.open(&[&log]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Refused);
    let why = format!(
        "{demanded}, or a later one, was cosigned, and the state has another root, {}",
        fork.root(11).to_base64()
    );
    assert!(refused.to_string().contains(&why), "{refused}");
    assert_eq!(world.open(&[&log]).unwrap().logs()[0].1, Some(11), "the newest state is taken up");
}

#[test]
fn a_key_directory_that_is_put_back_does_not_lower_the_state() {
    let (world, _) = World::begun(Ed25519);
    let log = Log::new(ORIGIN, 0, 30);
    world.open(&[&log]).unwrap().add_checkpoint(&log.request(0, 4));
    let keys = copy(&*world.keys);
    world.open(&[&log]).unwrap().add_checkpoint(&log.request(4, 11));
    let put_back = World::of(world.state.clone(), keys);
    let witness = put_back.open(&[&log]).unwrap();
    assert_eq!(witness.add_checkpoint(&log.request(4, 12)).body, "11\n");
    assert_eq!(witness.add_checkpoint(&log.request(11, 12)).status, 200);
    drop(witness);
    // One that says of no log that it was cosigned is the earliest there is.
    let name = "witness.signed";
    let signed = String::from_utf8(bulla_store::read_small(&*put_back.keys, name, 1 << 20).unwrap()).unwrap();
    let empty: String = signed.split_inclusive('\n').take(2).collect();
    bulla_store::replace(&*put_back.keys, name, empty.as_bytes()).unwrap();
    assert_eq!(put_back.open(&[&log]).unwrap().add_checkpoint(&log.request(0, 12)).body, "12\n");
}

#[test]
fn a_key_without_what_says_what_it_signed_is_refused() {
    let (world, _) = World::begun(Ed25519);
    let log = Log::new(ORIGIN, 0, 30);
    world.keys.remove("witness.signed").unwrap();
    let refused = world.open(&[&log]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Refused);
    assert!(refused.to_string().contains("witness.signed"), "{refused}");
    assert_eq!(world.begin(Ed25519).unwrap_err().kind(), ErrorKind::Refused);
    world.keys.remove("witness.key").unwrap();
    let missing = world.open(&[&log]).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NoKey);
    assert!(missing.to_string().contains("`--new` begins a witness"), "{missing}");

    // Where the key alone is missing it is to be put back: a new witness is refused there.
    let (world, key) = World::begun(Ed25519);
    assert_eq!(Witness::key_in(&*world.keys).unwrap(), key);
    drop(world.open(&[&log]).unwrap().add_checkpoint(&log.request(0, 4)));
    world.keys.remove("witness.key").unwrap();
    let missing = world.open(&[&log]).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NoKey);
    assert!(missing.to_string().contains("put the key back"), "{missing}");
    assert_eq!(world.begin(Ed25519).unwrap_err().kind(), ErrorKind::Refused);
}

#[test]
fn a_new_witness_begins_in_empty_directories_alone() {
    let (world, first) = World::begun(Ed25519);
    assert_eq!(world.begin(Ed25519).unwrap_err().kind(), ErrorKind::Refused);
    let other_keys = World::of(world.state.clone(), Arc::new(Memory::new()));
    let refused = other_keys.begin(Ed25519).unwrap_err();
    assert!(refused.to_string().contains("is the state of a witness already"), "{refused}");
    let (_, second) = World::begun(Ed25519);
    assert!(!first.is_same_key(&second), "each has a key of its own");
}

#[test]
fn a_log_with_other_keys_than_it_had_is_refused() {
    let (world, _) = World::begun(Ed25519);
    let log = Log::new(ORIGIN, 0, 30);
    world.open(&[&log]).unwrap().add_checkpoint(&log.request(0, 4));
    let mut other = Log::new(ORIGIN, 0, 30);
    other.key = bulla_crypto::signing::SigningKey::from_seed(ORIGIN, &[4; 32]).unwrap();
    let refused = world.open(&[&other]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Refused);
    world.open(&[&log, &other]).unwrap();
    // A log that is not configured any more is remembered.
    let unrelated = Log::new("example.com/other", 0, 3);
    drop(world.open(&[&unrelated]).unwrap());
    assert_eq!(world.open(&[&log]).unwrap().logs()[0].1, Some(4));
}

#[test]
fn two_processes_are_not_one_witness() {
    let (world, _) = World::begun(Ed25519);
    let log = Log::new(ORIGIN, 0, 30);
    let _first = world.open(&[&log]).unwrap();
    assert_eq!(world.open(&[&log]).unwrap_err().kind(), ErrorKind::Locked);
    // Nor with a state each: both would sign with one key.
    let other = World::of(copy(&*world.state), world.keys.clone());
    assert_eq!(other.open(&[&log]).unwrap_err().kind(), ErrorKind::Locked);
}

#[test]
fn a_directory_that_was_moved_and_replaced_is_not_signed_in() {
    for moved in ["keys", "state"] {
        let place = tempfile::tempdir().unwrap();
        let store = |name: &str| -> Arc<dyn Store> {
            let store = FileSystem::new(place.path().join(name));
            store.create_directory("").unwrap();
            Arc::new(store)
        };
        let world = World::of(store("state"), store("keys"));
        let key = world.begin(Ed25519).unwrap();
        let log = Log::new(ORIGIN, 0, 30);
        let witness = world.open(&[&log]).unwrap();
        cosigned(&witness.add_checkpoint(&log.request(0, 10)), &key, &log.note(10));
        let (here, there) = (place.path().join(moved), place.path().join("old"));
        std::fs::rename(&here, &there).unwrap();
        std::fs::create_dir(&here).unwrap();
        for file in std::fs::read_dir(&there).unwrap().map(Result::unwrap) {
            if file.file_type().unwrap().is_file() {
                std::fs::copy(file.path(), here.join(file.file_name())).unwrap();
            }
        }
        assert_eq!(witness.add_checkpoint(&log.request(10, 20)).status, 500, "{moved}");
    }
}

#[test]
fn every_damaged_byte_of_what_is_kept_is_refused_or_of_no_consequence() {
    let (world, _) = World::begun(Ed25519);
    let log = Log::new(ORIGIN, 0, 30);
    world.open(&[&log]).unwrap().add_checkpoint(&log.request(0, 11));
    let name = format!("logs/{}", world.state.list("logs").unwrap()[0].name);
    for (in_state, path) in
        [(true, name.as_str()), (true, "witness"), (false, "witness.signed"), (false, "witness.key")]
    {
        let store = if in_state { &world.state } else { &world.keys };
        let content = bulla_store::read_small(&**store, path, 1 << 20).unwrap();
        for at in 0..content.len() {
            let mut damaged = content.clone();
            damaged[at] ^= 1;
            let (state, keys) = (copy(&*world.state), copy(&*world.keys));
            bulla_store::replace(if in_state { &*state } else { &*keys }, path, &damaged).unwrap();
            if let Ok(witness) = World::of(state, keys).open(&[&log]) {
                // Such as a digit of a time. It has forgotten nothing.
                assert_eq!(witness.logs()[0].1, Some(11), "{path}, byte {at}");
            }
        }
    }
}

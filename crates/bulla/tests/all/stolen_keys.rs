//! Whoever takes the key directory at some time, the seal key being elsewhere, can write what comes after the last replacement of the seal state as
//! they like, and nothing that came before it: whoever has the seal key finds it.

use crate::pin::{World, append, violations};
use bulla::{Log, Options, Report, Verify, default_keys};
use sha2::{Digest, Sha256};
use std::fs;
use std::ops::Range;
use std::path::Path;

/// Where the state of the seal chain is in `seal.state`, which ends with a digest of all that precedes (docs/format.md, The seal chain).
const STATE: Range<usize> = 64..96;

fn options() -> Options {
    Options::default().memory(64 << 20).writers(1)
}

/// Verifies with the public key, and with the seal key where it is given.
fn verify(world: &World, seal_key: Option<&str>) -> Report {
    let verify = Verify::open(&world.directory).unwrap().key(world.key.clone());
    let verify = match seal_key {
        Some(key) => verify.seal_key(key).unwrap(),
        None => verify,
    };
    verify.run().unwrap()
}

/// A log that was written up to some time and then on, with what both directories were at either; and the seal key, which was moved away at once.
fn log_at_two_times() -> (World, String, tempfile::TempDir, tempfile::TempDir) {
    let world = World::new();
    let keys = default_keys(&world.directory);
    let seal_key = fs::read_to_string(keys.join("seal.key")).unwrap();
    fs::remove_file(keys.join("seal.key")).unwrap();
    append(&Log::open(&world.directory, options()).unwrap(), 5);
    let before = world.backup();
    append(&Log::open(&world.directory, options()).unwrap(), 5);
    let stolen = world.backup();
    (world, seal_key, before, stolen)
}

/// The seal state of the first directory, in which the state of the chain is that of the second. All but that state stands in the log, or follows
/// from what does.
pub(crate) fn forged(before: &Path, stolen: &Path) -> Vec<u8> {
    let read = |place: &Path| fs::read(place.join("audit.keys/seal.state")).unwrap();
    let (mut state, later) = (read(before), read(stolen));
    assert_ne!(state[STATE], later[STATE], "each frame has the chain go on");
    state[STATE].copy_from_slice(&later[STATE]);
    let (body, digest) = state.split_last_chunk_mut::<32>().unwrap();
    *digest = Sha256::digest(&*body).into();
    state
}

#[test]
fn what_came_before_the_seal_state_was_replaced_cannot_be_rewritten_with_stolen_keys() {
    let (world, seal_key, before, stolen) = log_at_two_times();
    assert!(verify(&world, Some(&seal_key)).ok);
    let original = verify(&world, None).tree_size;
    let state = forged(before.path(), stolen.path());

    // The thief has the storage, in which older copies may be left, and the keys as they are now.
    world.put_back(before.path());
    fs::write(default_keys(&world.directory).join("seal.state"), state).unwrap();
    append(&Log::open(&world.directory, options()).unwrap(), 9);

    let report = verify(&world, None);
    assert!(
        report.ok && report.tree_size > original,
        "signed with the log's own key: {:#?}",
        report.findings
    );
    let report = verify(&world, Some(&seal_key));
    assert_eq!(violations(&report), ["seal-mismatch"].into(), "{:#?}", report.findings);
}

/// Else the test above would find something else.
#[test]
fn what_comes_after_keys_were_stolen_is_the_thief_s() {
    let (world, seal_key, before, _) = log_at_two_times();
    world.put_back(before.path());
    append(&Log::open(&world.directory, options()).unwrap(), 9);
    assert!(verify(&world, Some(&seal_key)).ok);
}

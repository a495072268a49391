//! What the log's own key has signed of another history lies beside `checkpoint`, with cosignatures of whom a policy asks for or of nobody.

use super::{KEPT, World, cosign, identity, violations, witness};
use crate::witnesses;
use bulla::keys::signing::SigningKey;
use bulla::policy::Policy;
use bulla::{Entry, FindingKind, Log, Options, Query, Reader, Verify};
use bulla_proof::checkpoint::{Checkpoint, sign_checkpoint};
use bulla_proof::hash::Hash;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;

/// A checkpoint of so many frames that the log never had, signed by its key.
fn another(directory: &Path, origin: &str, frames: u64) -> String {
    let key = fs::read_to_string(bulla::default_keys(directory).join("signing.key")).unwrap();
    let key = SigningKey::parse(&key).unwrap();
    let other = Checkpoint::new(origin, frames, Hash([7; 32]));
    sign_checkpoint(&other, key.verifier(), |text| key.sign(text))
}

#[test]
fn it_is_found_however_much_it_covers_and_whoever_has_cosigned_either() {
    let world = World::new();
    world.append(3);
    let lines = [1, 2].map(|seed| format!("witness W{seed} {}\n", witness(seed).1)).concat();
    let either = format!("log {}\n{lines}group G any W1 W2\nquorum G\n", world.key);
    let either: Policy = either.parse().unwrap();
    let cosigned = world.cosigned(&[2]);
    fs::write(world.path("checkpoint"), &cosigned).unwrap();
    let frames = world.verify(&either).tree_size;
    assert!(frames > 3);
    for (size, seeds) in (1..=frames + 2).flat_map(|size| [(size, &[1][..]), (size, &[])]) {
        let other = another(&world.directory, "example.com/audit", size);
        fs::write(world.path(KEPT), cosign(&other, seeds)).unwrap();
        let found = [FindingKind::WitnessMismatch];
        assert_eq!(violations(&world.verify(&either)), found, "{size} by {seeds:?}");
        let by_key = Verify::open(&world.directory).unwrap().key(world.key.clone()).run().unwrap();
        assert_eq!(violations(&by_key), found, "{size} by {seeds:?}, without a policy");
        let reader =
            Reader::open(&world.directory).unwrap().policy(either.clone()).identity(identity(&world));
        let refused = reader.prove(&Query::new()).map(drop).unwrap_err();
        assert_eq!(refused.kind(), bulla::ErrorKind::Tampered, "{size} by {seeds:?}: {refused}");
        let refused = reader.follow(&Query::new()).map(drop).unwrap_err();
        assert_eq!(refused.kind(), bulla::ErrorKind::Tampered, "{size} by {seeds:?}: {refused}");
    }
    // What the log itself has signed before is none.
    fs::write(world.path(KEPT), &cosigned).unwrap();
    assert!(world.verify(&either).ok);
    // Nor is what is not signed by its key, or no file.
    let foreign = cosigned.replace("\n\u{2014} example.com/audit ", "\n\u{2014} example.com/other ");
    fs::write(world.path(KEPT), foreign).unwrap();
    assert!(world.verify(&either).ok);
    fs::remove_file(world.path(KEPT)).unwrap();
    fs::create_dir(world.path(KEPT)).unwrap();
    assert!(Verify::open(&world.directory).unwrap().key(world.key.clone()).run().unwrap().ok);
}

#[test]
fn it_is_found_in_the_files_of_the_witnesses_that_the_log_asks() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("audit");
    let asked = witness(1).1;
    let nowhere: SocketAddr = "127.0.0.1:1".parse().unwrap();
    let key = witnesses::init(&directory, &witnesses::policy(&[("w", &asked, nowhere)], "all"));
    let log = Log::open(&directory, Options::default()).unwrap();
    log.producer().unwrap().append(&Entry::new("read", "key")).unwrap();
    log.close().unwrap();
    let verify = || violations(&Verify::open(&directory).unwrap().key(key.clone()).run().unwrap());
    assert_eq!(verify(), []);
    fs::create_dir_all(directory.join("cosigned")).unwrap();
    let file = directory.join(format!("cosigned/{:08x}", asked.key_id()));
    fs::write(&file, another(&directory, "example.com/log", 2)).unwrap();
    assert_eq!(verify(), [FindingKind::WitnessMismatch]);
    // In a copy that was made beside a writer it may be newer than the frames.
    fs::write(&file, another(&directory, "example.com/log", 9)).unwrap();
    assert_eq!(verify(), []);
    fs::copy(directory.join("checkpoint"), &file).unwrap();
    assert_eq!(verify(), []);
}

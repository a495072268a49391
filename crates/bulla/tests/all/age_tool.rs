//! Somebody else's tool opens an epoch: the `age` command unwraps the key, and its commitment is in the frame.

use bulla::keys::epoch::{EpochKeys, EpochSecret};
use bulla::{Init, Log, Options, default_keys};
use bulla_proof::Commitment;
use std::process::Command;

#[test]
fn the_age_command_unwraps_an_epoch_key() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("audit");
    Init::default().create(&directory).unwrap();
    Log::open(&directory, Options::default()).unwrap().close().unwrap();

    let segment = std::fs::read(directory.join("segments/00000000000000000000.seg")).unwrap();
    let commitment = Commitment::decode(&segment[24..176]).unwrap();
    let body = &segment[176..176 + usize::try_from(commitment.body_length).unwrap()];
    let wrapped = place.path().join("key.age");
    std::fs::write(&wrapped, &body[136..]).unwrap();

    let identity = default_keys(&directory).join("identity.age");
    let age = Command::new("age").arg("--decrypt").arg("--identity").arg(identity).arg(&wrapped).output();
    let age = age.expect("the `age` command is missing; `make test` installs it (Debian's package `age`)");
    assert!(age.status.success(), "{}", String::from_utf8_lossy(&age.stderr));
    let secret = EpochSecret::from(<[u8; 32]>::try_from(age.stdout).expect("an epoch key has 32 bytes"));

    let random = body[4..36].try_into().unwrap();
    let keys = EpochKeys::derive(&secret, random, commitment.log_id, commitment.frame).unwrap();
    assert_eq!(keys.commitment().as_bytes(), &body[36..68]);
}

//! Reading with the key directory at hand.

use super::{Place, append, plain};
use bulla::{ErrorKind, Init, Query, Reader};

fn count(place: &Place, subject: &str) -> u64 {
    let reader = Reader::open_with_keys(place.audit(), place.keys()).unwrap();
    let read = reader.for_each(&Query::new().subject(subject), |_, _| Ok(())).unwrap();
    assert_eq!(read.withheld.total(), 0, "what is personal is there");
    read.entries
}

#[test]
fn everything_is_read_beside_a_writer_and_without_one() {
    let place = Place::new(Init::default().erasure(true));
    let log = place.open();
    append(&log, 200);
    log.flush().unwrap();
    let beside = count(&place, "user_7");
    log.close().unwrap();
    assert!(beside > 0);
    assert_eq!(count(&place, "user_7"), beside);
}

/// What a reader holds of a writer is no more than a way to ask: that one may go, and the vault is opened instead.
#[test]
fn a_writer_may_go_between_two_questions() {
    let place = Place::new(Init::default().erasure(true));
    let log = place.open();
    append(&log, 200);
    log.flush().unwrap();
    let reader = Reader::open_with_keys(place.audit(), place.keys()).unwrap();
    let count = || reader.for_each(&Query::new().subject("user_7"), |_, _| Ok(())).unwrap().entries;
    let before = count();
    log.close().unwrap();
    assert_eq!(count(), before);
}

#[test]
fn what_is_missing_is_named() {
    let place = Place::new(plain());
    assert!(
        Reader::open_with_keys(place.audit(), place.keys()).is_ok(),
        "a log without erasure has no vault"
    );
    std::fs::remove_file(place.keys().join("identity.age")).unwrap();
    let error = Reader::open_with_keys(place.audit(), place.keys()).err().unwrap();
    assert!(error.kind() == ErrorKind::NoKey && error.to_string().contains("identity.age"), "{error}");
    std::fs::write(place.keys().join("identity.age"), "age-encryption.org/v1\n").unwrap();
    let error = Reader::open_with_keys(place.audit(), place.keys()).err().unwrap();
    assert!(error.kind() == ErrorKind::NoKey && error.to_string().contains("passphrase"), "{error}");

    let place = Place::new(Init::default().erasure(true));
    std::fs::rename(place.keys().join("vault"), place.keys().join("elsewhere")).unwrap();
    let error = Reader::open_with_keys(place.audit(), place.keys()).err().unwrap();
    assert!(error.kind() == ErrorKind::NoKey && error.to_string().contains("vault"), "{error}");
}

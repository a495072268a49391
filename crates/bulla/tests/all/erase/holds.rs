//! Who is held is not erased, and it is told by whom and why.

use super::world::World;
use bulla::{ErrorKind, Log, Options};

#[test]
fn whoever_is_held_is_not_erased() {
    let world = World::new();
    world.append(0..60);
    let log = Log::open(&world.directory, Options::default()).unwrap();
    assert!(log.hold("user_7", "legal", "case 4711").unwrap());
    assert!(!log.hold("user_7", "legal", "case 4711").unwrap(), "it is so already");
    assert!(log.hold("user_7", "finance", "until 2031").unwrap());
    log.close().unwrap();

    let log = Log::open(&world.directory, Options::default()).unwrap();
    let refused = |expected: &str| {
        let error = log.erase(&world.order(&["user_8", "user_7"])).unwrap_err();
        assert!(error.kind() == ErrorKind::Refused && error.to_string().contains(expected), "{error}");
    };
    refused("held by legal: case 4711");
    log.release("user_7", "legal").unwrap();
    refused("held by finance: until 2031");
    assert!(world.entries().1.is_empty(), "nobody of that order was erased");
    let error = log.release("user_7", "legal").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    log.release("user_7", "finance").unwrap();
    assert_eq!(log.erase(&world.order(&["user_8", "user_7"])).unwrap().numbers.len(), 2);
    log.close().unwrap();
    assert!(world.verified().ok);
}

#[test]
fn a_hold_says_whose_it_is_and_why() {
    let world = World::new();
    world.append(0..60);
    let log = Log::open(&world.directory, Options::default()).unwrap();
    for (by, reason) in [("", "why"), ("who", ""), ("who", "two\nlines"), ("who", &"r".repeat(1025))] {
        assert_eq!(log.hold("user_7", by, reason).unwrap_err().kind(), ErrorKind::Invalid);
    }
    assert_eq!(log.hold("nobody", "who", "why").unwrap_err().kind(), ErrorKind::Refused);
    log.close().unwrap();
}

/// Who is held is unknown then: better nobody is erased.
#[test]
fn nobody_is_erased_while_the_holds_are_damaged() {
    let world = World::new();
    world.append(0..60);
    std::fs::write(world.keys().join("holds"), "{").unwrap();
    let log = Log::open(&world.directory, Options::default()).unwrap();
    let error = log.erase(&world.order(&["user_7"])).unwrap_err();
    assert!(error.kind() == ErrorKind::Tampered && error.to_string().contains("holds"), "{error}");
    log.close().unwrap();
    assert!(world.entries().1.is_empty());
}

//! Following with an identity that opens some epochs and not others.

use super::numbers;
use crate::damage::world::environment;
use bulla::environment::{AesGcm, Environment, KeyWrap};
use bulla::keys::epoch::EpochSecret;
use bulla::keys::recipients::Identity;
use bulla::{Configure, Entry, Error, ErrorKind, Follow, Init, Log, Options, Query, Reader, Result, Step};
use bulla_testkit::fault::Faults;
use std::sync::Arc;
use std::time::Duration;

const FIRST: &str = "age1wwwqy5ealr6ts9hg0jj3pgglvfz8zv7n70c57vmgwygh0g39s4tqxqgw8j";
const SECOND: &str = "age1a37dpy8amjrxz7sc0jj3j4ys3mtqp9m9tmcan64s6g0w6qq20pnqvxphr3";

/// Wraps a key by a mask, under the names of those who may have it.
struct Named;

impl KeyWrap for Named {
    fn wrap(&self, recipients: &[String], key: &[u8; 32], _: Duration) -> Result<Vec<u8>> {
        Ok(key.iter().map(|byte| byte ^ 0xa5).chain(recipients.concat().into_bytes()).collect())
    }
}

/// One of them.
struct One(&'static str);

impl Identity for One {
    fn unwrap(&self, wrapped: &[u8]) -> Result<Option<EpochSecret>> {
        let (key, names) = wrapped.split_first_chunk::<32>().unwrap();
        let named = names.windows(self.0.len()).any(|name| name == self.0.as_bytes());
        Ok(named.then(|| EpochSecret::from(key.map(|byte| byte ^ 0xa5))))
    }
}

/// A log whose recipients change.
struct World {
    machine: Faults,
    environment: Environment,
}

impl World {
    /// For [`FIRST`] to read.
    fn new(seed: u64) -> Self {
        let (machine, environment) = (Faults::new(), environment(seed, Arc::new(AesGcm)));
        let world = World { machine, environment: Environment { key_wrap: Arc::new(Named), ..environment } };
        let init = Init::default().erasure(false).origin("example.com/epochs").recipient(FIRST);
        let (log, keys) = (world.machine.store("audit"), world.machine.store("audit.keys"));
        init.create_in(&log, &keys, &world.environment).unwrap();
        world
    }

    fn open(&self) -> Log {
        let options = Options::default().memory(64 << 20).writers(1);
        let (log, keys) = (self.machine.store("audit"), self.machine.store("audit.keys"));
        Log::open_stepped(Arc::new(log), Arc::new(keys), options, self.environment.clone()).unwrap()
    }

    /// From now on for `recipient` alone.
    fn change(&self, recipient: &str) {
        let (log, keys) = (self.machine.store("audit"), self.machine.store("audit.keys"));
        let configure = Configure::default().recipients([recipient.to_owned()]).unwrap();
        configure.apply_in(Arc::new(log), Arc::new(keys), &self.environment).unwrap();
    }

    fn reader(&self) -> Reader {
        Reader::open_store(Arc::new(self.machine.store("audit"))).unwrap()
    }

    /// Three entries for the first to read and two for the second, all under a checkpoint.
    fn changed(seed: u64) -> Self {
        let world = World::new(seed);
        let log = world.open();
        block(&log, 3);
        log.close().unwrap();
        world.change(SECOND);
        let log = world.open();
        block(&log, 2);
        log.close().unwrap();
        world
    }
}

fn block(log: &Log, entries: u32) {
    let mut producer = log.producer().unwrap();
    for _ in 0..entries {
        producer.append(&Entry::new("read", "key")).unwrap();
    }
    let _ = producer.flush().unwrap();
    while log.step(Step::Seal).unwrap() {}
    log.step(Step::Commit).unwrap();
}

/// What a look gives out, and where it went wrong, what then.
fn look(follow: &mut Follow<'_>) -> (Vec<u64>, Result<bool>) {
    let mut given = Vec::new();
    let polled = follow.poll(|followed| {
        given.push(followed.number);
        Ok(())
    });
    (given, polled.map(|polled| polled.ended))
}

/// The refusal that a reader of everything gets.
#[track_caller]
fn is_refused(reader: &Reader, refused: Result<bool>, first_entry: u64) {
    let read = |error: Error| (error.kind(), error.to_string());
    let refused = refused.map_err(read).unwrap_err();
    assert_eq!(refused.0, ErrorKind::NoKey);
    assert!(refused.1.contains(&format!("which begins with entry {first_entry}: ")), "{}", refused.1);
    assert_eq!(reader.for_each(&Query::new(), |_, _| Ok(())).map_err(read).unwrap_err(), refused);
}

#[test]
fn who_was_taken_off_gets_what_comes_before_and_is_refused_at_what_comes_after() {
    let world = World::changed(51);
    let reader = world.reader().identity(Arc::new(One(FIRST)));
    let mut follow = reader.follow(&Query::new()).unwrap();
    let (given, refused) = look(&mut follow);
    assert_eq!(given, numbers(0..3));
    is_refused(&reader, refused, 3);
}

#[test]
fn who_was_added_is_refused_at_what_came_before_and_gets_what_comes_after() {
    let world = World::changed(52);
    let reader = world.reader().identity(Arc::new(One(SECOND)));
    let (given, refused) = look(&mut reader.follow(&Query::new()).unwrap());
    assert_eq!(given, numbers(0..0));
    is_refused(&reader, refused, 0);
    let query = Query { first_entry: Some(3), ..Query::new() };
    let mut follow = reader.follow(&query).unwrap();
    assert_eq!((look(&mut follow).0, follow.opens_current_epoch().unwrap()), (numbers(3..5), true));
    let log = world.open();
    block(&log, 1);
    assert_eq!(look(&mut follow).0, numbers(5..6));
}

#[test]
fn the_blocks_that_are_needed_decide_and_not_the_epochs() {
    let world = World::new(53);
    let reader = world.reader().identity(Arc::new(One(FIRST)));
    let log = world.open();
    block(&log, 3);
    log.flush().unwrap();
    let mut all = reader.follow(&Query::new()).unwrap();
    let mut some = reader.follow(&Query::new().entries(1..=3)).unwrap();
    assert_eq!(look(&mut all).0, numbers(0..3));
    assert_eq!(look(&mut some).0, numbers(1..3));
    assert!(all.opens_current_epoch().unwrap());
    block(&log, 1);
    log.close().unwrap();
    // Epochs and the event of the change need no key, and neither does whoever asks for nothing of their blocks.
    world.change(SECOND);
    let log = world.open();
    assert_eq!(look(&mut some).0, numbers(3..4));
    assert!(!some.opens_current_epoch().unwrap());
    block(&log, 2);
    assert!(look(&mut some).1.unwrap(), "it has ended");
    // One look that meets both: the last block for the first to read, and pending blocks for somebody else.
    let (given, refused) = look(&mut all);
    assert_eq!(given, numbers(3..4));
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::NoKey);
}

#[test]
fn pending_or_covered_is_all_the_same() {
    for covered in [false, true] {
        let world = World::new(54);
        let log = world.open();
        block(&log, 3);
        log.close().unwrap();
        world.change(SECOND);
        let log = world.open();
        let reader = world.reader().identity(Arc::new(One(FIRST)));
        let mut follow = reader.follow(&Query::new()).unwrap();
        assert_eq!(look(&mut follow).0, numbers(0..3));
        assert!(!look(&mut follow).1.unwrap());
        block(&log, 1);
        if covered {
            log.flush().unwrap();
        }
        let (given, refused) = look(&mut follow);
        assert_eq!(given, numbers(0..0));
        let refused = refused.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::NoKey);
        assert!(refused.to_string().contains("which begins with entry 3: "), "{refused}");
    }
}

#[test]
fn an_epoch_that_it_opens_again_goes_on() {
    let world = World::changed(55);
    world.change(FIRST);
    let reader = world.reader().identity(Arc::new(One(FIRST)));
    let query = Query { first_entry: Some(5), ..Query::new() };
    let mut follow = reader.follow(&query).unwrap();
    let log = world.open();
    block(&log, 2);
    assert_eq!(look(&mut follow).0, numbers(5..7));
}

#[test]
fn without_an_identity_it_is_refused_once_there_is_something_to_read() {
    let world = World::new(56);
    let log = world.open();
    log.flush().unwrap();
    let reader = world.reader();
    let mut follow = reader.follow(&Query::new()).unwrap();
    assert!(!look(&mut follow).1.unwrap());
    block(&log, 1);
    assert_eq!(look(&mut follow).1.unwrap_err().kind(), ErrorKind::NoKey);
}

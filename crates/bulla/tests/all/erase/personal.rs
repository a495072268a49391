//! What a program keeps about data subjects is there the next time, and goes with them.

use super::restored::erase;
use super::world::World;
use bulla::{Log, Options, PersonalRecords, PersonalRecordsRead, Restore, default_keys};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

const PEOPLE: [&str; 3] = ["user_7", "user_8", "user_9"];

fn open(world: &World) -> (Log, PersonalRecords) {
    let log = Log::open(&world.directory, Options::default()).unwrap();
    let records = log.personal_records().unwrap().unwrap();
    (log, records)
}

/// Keeps one record of each, which has their name, in a new file.
fn keep(records: &mut PersonalRecords) {
    let found = records.find(&PEOPLE).unwrap();
    let put = |changes: &mut bulla::PersonalChanges<'_, '_>| {
        let people = PEOPLE.iter().zip(&found).zip(0..);
        people
            .into_iter()
            .try_for_each(|((name, subject), id)| changes.put(id, subject.as_ref().unwrap(), name.as_bytes()))
    };
    records.create(put).unwrap();
}

fn read(records: &PersonalRecords) -> (Vec<String>, PersonalRecordsRead) {
    let mut names = Vec::new();
    let read = records.read(&mut |record| names.push(String::from_utf8(record.to_vec()).unwrap())).unwrap();
    assert_eq!(read.records, names.len() as u64);
    (names, read)
}

fn kept_world() -> World {
    let world = World::new();
    world.append(0..50);
    let (log, mut records) = open(&world);
    assert_eq!(read(&records), (Vec::new(), PersonalRecordsRead::default()));
    keep(&mut records);
    log.close().unwrap();
    world
}

#[test]
fn what_is_kept_is_there_the_next_time_and_changes_are_kept_with_it() {
    let world = kept_world();
    let (log, mut records) = open(&world);
    assert_eq!(read(&records).0, PEOPLE);
    assert!(log.personal_records().unwrap().is_none(), "one has them");
    // Who opens it anew begins with a file of their own.
    assert!(!records.can_append() && records.append(|_| Ok(())).is_err());
    keep(&mut records);
    let length = records.length();
    records
        .append(|changes| {
            changes.remove(1);
            Ok(())
        })
        .unwrap();
    assert!(records.length() > length);
    assert_eq!(read(&records).0, ["user_7", "user_9"]);
    log.close().unwrap();
    assert_eq!(records.find(&["user_7"]).map(drop).unwrap_err().kind(), bulla::ErrorKind::Closed);
    let (_log, records) = open(&world);
    assert_eq!(read(&records).0, ["user_7", "user_9"]);
}

#[test]
fn whoever_is_looked_for_and_is_not_known_stays_unknown() {
    let world = World::new();
    world.append(0..50);
    let (_log, records) = open(&world);
    for _ in 0..2 {
        let found = records.find(&["user_7", "nobody", "user_7"]).unwrap();
        assert!(found[0].is_some() && found[1].is_none());
        assert_eq!(found[0].as_ref().unwrap().number, found[2].as_ref().unwrap().number);
    }
}

#[test]
fn an_erasure_is_told_before_it_is_acknowledged_and_takes_what_is_kept_with_it() {
    let world = kept_world();
    let older = std::fs::read(world.keys().join("learned")).unwrap();
    let (log, mut records) = open(&world);
    let told = Arc::new(Mutex::new(Vec::<String>::new()));
    let telling = told.clone();
    log.when_erased(move |names| telling.lock().unwrap().extend(names.iter().map(|name| (*name).to_owned())));
    keep(&mut records);
    log.erase(&world.order(&["user_8", "nobody"])).unwrap();
    // Of a list that is signed nobody knows the order.
    told.lock().unwrap().sort();
    assert_eq!(*told.lock().unwrap(), ["nobody", "user_8"]);
    assert!(log.erase(&world.order(&["nobody"])).is_err());
    assert_eq!(told.lock().unwrap().len(), 2, "who is not erased is not named");
    let without = read(&records);
    assert_eq!((without.0, without.1.without_key), (vec!["user_7".to_owned(), "user_9".to_owned()], 1));
    // The person comes back, as somebody new, and the old file with her.
    let mut producer = log.producer().unwrap();
    producer.append(&bulla::Entry::new("read", "x").subject("user_8")).unwrap();
    producer.flush().unwrap().durable().unwrap();
    drop(producer);
    log.close().unwrap();
    std::fs::write(world.keys().join("learned"), older).unwrap();
    let (_log, records) = open(&world);
    assert!(records.find(&["user_8"]).unwrap()[0].is_some());
    assert_eq!(read(&records).0, ["user_7", "user_9"]);
}

#[test]
fn whoever_is_erased_is_nobody_yet_when_that_is_told() {
    let world = World::new();
    let (log, records) = open(&world);
    let told = Arc::new(Mutex::new(Vec::new()));
    let (telling, records) = (told.clone(), Arc::new(records));
    let looking = records.clone();
    log.when_erased(move |names| telling.lock().unwrap().push(looking.find(names).unwrap()[0].is_some()));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut producer = log.producer().unwrap();
            while !stop.load(Ordering::Relaxed) {
                producer.append(&bulla::Entry::new("read", "x").subject("user_8")).unwrap();
                producer.flush().unwrap().durable().unwrap();
            }
        });
        for _ in 0..10 {
            // Nobody of that name was sealed since the last time.
            while log.erase(&world.order(&["user_8"])).is_err() {}
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(*told.lock().unwrap(), [false; 10]);
    // It holds the log no longer than it is open.
    drop(records);
    log.close().unwrap();
}

#[test]
fn an_erasure_takes_what_is_kept_while_nobody_has_it_open() {
    let world = kept_world();
    erase(&world, "user_7");
    let (_log, records) = open(&world);
    let (names, told) = read(&records);
    assert_eq!(
        (names, told.without_key, told.torn),
        (vec!["user_8".to_owned(), "user_9".to_owned()], 1, false)
    );
}

#[test]
fn a_restored_key_directory_keeps_nothing_that_may_be_out_of_date() {
    let world = kept_world();
    let backup = super::world::copy(&world.keys());
    world.append(50..60);
    std::fs::remove_dir_all(world.keys()).unwrap();
    super::world::copy_into(backup.path(), &world.keys());
    let identity = world.identity();
    assert!(world.keys().join("learned").exists());
    Restore::new(&world.directory, identity).run().unwrap();
    assert!(!default_keys(&world.directory).join("learned").exists());
    let (_log, records) = open(&world);
    assert_eq!(read(&records).0, [""; 0]);
}

#[test]
fn a_log_without_erasure_keeps_nothing_and_one_that_is_replaced_is_not_written() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("audit");
    bulla::Init::default().erasure(false).create(&directory).unwrap();
    let log = Log::open(&directory, Options::default()).unwrap();
    assert!(log.personal_records().unwrap().is_none());

    let world = kept_world();
    let (_log, mut records) = open(&world);
    std::fs::rename(world.keys(), world.keys().with_file_name("moved")).unwrap();
    std::fs::create_dir(world.keys()).unwrap();
    let error = records.create(|_| Ok(())).unwrap_err();
    assert!(error.to_string().contains("was replaced or moved"), "{error}");
    assert_eq!(std::fs::read_dir(world.keys()).unwrap().count(), 0);
}

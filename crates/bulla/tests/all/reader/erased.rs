//! What is personal and cannot be read any more: erased where the log says so, otherwise lost.

use super::world::*;
use crate::damage::image::Image;
use crate::damage::world::Mask;
use crate::follow::Switch;
use crate::register::Register;
use bulla::event::Event;
use bulla::keys::group::{BlockContext, Followed, GroupKeys, GroupSecret, Missing, SharedOnly, Subjects};
use bulla::store::Store;
use bulla::{
    ErrorKind, Export, FindingKind, Log, Query, ReadReport, Reader, RedactedEntries, Redaction, Result,
    Standing, Step, TextField, Verify,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// The entries of each of three people in a block, and one of two of them.
const OF_EACH: u64 = 4;

fn block(world: &mut World, log: &Log) {
    let mut rows =
        (0..3 * OF_EACH).map(|n| Row::new(0, "read").subject(&format!("user_{}", n % 3))).collect::<Vec<_>>();
    rows.push(Row::new(0, "read").subject("user_0").subject("user_1"));
    world.block(log, rows, 1);
}

/// The event of an erasure. Every world here has the same key for that.
fn event(numbers: &[u64]) -> Event {
    let order = World::grouped(1).order(numbers.len());
    let carried_out = (0..).take(numbers.len()).collect();
    Event::Erased { numbers: numbers.to_vec(), carried_out, order, remains: Vec::new() }
}

/// The log records an erasure, under a checkpoint.
fn record(log: &Log, numbers: &[u64]) {
    log.record(event(numbers)).unwrap();
    drain(log);
    log.step(Step::Checkpoint).unwrap();
}

fn log(blocks: usize) -> (World, Log) {
    let mut world = World::grouped(1);
    let log = world.open();
    (0..blocks).for_each(|_| block(&mut world, &log));
    log.step(Step::Checkpoint).unwrap();
    (world, log)
}

fn read(reader: &Reader) -> ReadReport {
    answer(reader, &Query::new()).unwrap().1
}

fn erased(erased: u64) -> RedactedEntries {
    RedactedEntries { erased, ..Default::default() }
}

fn key_lost(key_lost: u64) -> RedactedEntries {
    RedactedEntries { key_lost, ..Default::default() }
}

fn verify(world: &World, image: Image) -> bulla::Report {
    let keys: Arc<dyn GroupKeys> = world.register.clone().unwrap();
    world.verify(image).group_keys(keys).run().unwrap()
}

#[test]
fn a_key_that_is_gone_is_lost_until_the_log_says_that_it_was_destroyed() {
    let (world, log) = log(2);
    let number = world.register.as_ref().unwrap().lose("user_1");
    let gone = 2 * (OF_EACH + 1);
    assert_eq!(read(&world.reader(world.image())).withheld, key_lost(gone));
    let report = verify(&world, world.image());
    let found = report.findings.iter().map(|finding| (finding.kind, finding.frame, finding.entries));
    // From her first entry of the first block to her last one of the second.
    let expected = [(FindingKind::KeyLost, Some(1), Some((1, 25)))];
    assert_eq!(found.collect::<Vec<_>>(), expected);
    assert_eq!((report.ok, report.erased), (false, Some(0)));
    assert_eq!(report.findings[0].last_frame, Some(2));

    // Of somebody else that says nothing of her.
    record(&log, &[number + 1000]);
    assert_eq!(read(&world.reader(world.image())).withheld, key_lost(gone));
    // Neither does an event that no checkpoint covers.
    log.record(event(&[number])).unwrap();
    drain(&log);
    assert_eq!(read(&world.reader(world.image())).withheld, key_lost(gone));
    log.step(Step::Checkpoint).unwrap();
    assert_eq!(read(&world.reader(world.image())).withheld, erased(gone));
    let report = verify(&world, world.image());
    assert_eq!((report.findings.len(), report.erased), (0, Some(gone)), "{:?}", report.findings);
    log.close().unwrap();
    assert_eq!(read(&world.reader(world.image())).withheld, erased(gone));
}

#[test]
fn a_query_says_of_how_many_entries_it_cannot_be_told_since_their_keys_are_lost() {
    let (mut world, log) = log(2);
    world.block(&log, vec![Row::new(0, "read").subject("user_2").stream("s"), Row::new(0, "write")], 1);
    log.step(Step::Checkpoint).unwrap();
    let number = world.register.as_ref().unwrap().lose("user_1");
    let gone = 2 * (OF_EACH + 1);
    let whole = || Query::new();
    let cases = [
        // Nobody knows who they are: they may be anybody's, whom the vault knows under another number, too.
        (whole().subject("user_1"), 0, gone),
        (whole().subject("nobody"), 0, gone),
        (whole().subject("user_2"), 2 * OF_EACH + 1, gone),
        (whole().stream("default"), 2 * 2 * OF_EACH + 1, gone),
        (whole().stream("s"), 1, gone),
        (whole().subject("user_1").operation("read"), 0, gone),
        // So it is of every field that is personal, of several names and of their beginnings.
        (whole().subject("user_1").subject("user_2"), 2 * OF_EACH + 1, gone),
        (whole().begins_with(TextField::Subject, "user_"), 4 * OF_EACH + 1, gone),
        (whole().begins_with(TextField::Location, "1"), 6, gone),
        (whole().actor("ada"), 0, gone),
        (whole().client("192.0.2.1").operation("read"), 0, gone),
        (whole().client("192.0.2.1").operation("write"), 0, 0),
        (whole().actor("ada").status(404), 0, 0),
        (whole().purpose("support"), 0, 0),
        // The fields that are shared rule them out.
        (whole().subject("user_1").operation("write"), 0, 0),
        (whole().subject("user_1").from(1), 0, 0),
        (whole().subject("user_1").entries(0..=1), 0, 1),
        (whole().subject("user_1").entries(0..=0), 0, 0),
        (whole().operation("read"), 2 * (3 * OF_EACH + 1) + 1, 0),
        (whole(), 2 * (3 * OF_EACH + 1) + 2, 0),
    ];
    // With an index, and without one; what is held back, and what is read twice.
    for image in [world.image(), without_index(&world.image())] {
        for (query, entries, undecided) in &cases {
            for held in [0, 1 << 20] {
                let reader = world.reader(image.clone()).hold_back(held);
                let read = answer(&reader, query).unwrap().1;
                assert_eq!((read.entries, read.undecided), (*entries, *undecided), "{query:?}");
            }
            let export = Export::open_store(Arc::new(image.clone())).unwrap().identity(Arc::new(Mask));
            let export =
                export.group_keys(world.register.clone().unwrap()).query(query.clone()).salvage(true);
            let exported = export.run(&mut Vec::new()).unwrap();
            assert_eq!((exported.entries, exported.undecided), (*entries, *undecided), "{query:?}");
            let query = &Query { first_entry: Some(query.first_entry.unwrap_or(0)), ..query.clone() };
            let (reader, mut followed) = (world.reader(image.clone()), 0);
            let polled = reader.follow(query).unwrap().poll(|_| {
                followed += 1;
                Ok(())
            });
            assert_eq!((followed, polled.unwrap().undecided), (*entries, *undecided), "{query:?}");
        }
    }
    let nothing =
        |error: bulla::Error| (error.kind(), error.to_string().contains(&format!("{gone} of its entries")));
    let reader = world.reader(world.image());
    assert_eq!(nothing(reader.prove(&cases[0].0).unwrap_err()), (ErrorKind::Tampered, true));
    assert_eq!(nothing(reader.grant(&cases[0].0).unwrap_err()), (ErrorKind::Tampered, true));

    // Whoever has the keys of some only is not told that they are lost.
    let shared = reader_of(&world).group_keys(Arc::new(SharedOnly));
    assert_eq!(answer(&shared, &cases[0].0).unwrap().1.undecided, 0);
    record(&log, &[number]);
    log.close().unwrap();
    let read = answer(&world.reader(world.image()), &cases[0].0).unwrap().1;
    assert_eq!(
        (read.entries, read.undecided, read.blocks_read),
        (0, 0, 0),
        "she was erased, and is not looked for"
    );
    assert_eq!(
        nothing(world.reader(world.image()).prove(&cases[0].0).unwrap_err()),
        (ErrorKind::Refused, false)
    );
}

/// Keys of everybody, of which nobody is looked for among all.
struct OfGroups(Arc<Register>);

impl GroupKeys for OfGroups {
    fn number(&self, _: &str) -> Result<Option<u64>> {
        Err(bulla::Error::unavailable("its row 9 does not open"))
    }

    fn secrets(&self, place: BlockContext<'_>, groups: &[&[u64]]) -> Result<Vec<Option<GroupSecret>>> {
        self.0.secrets(place, groups)
    }

    fn is_complete(&self) -> bool {
        true
    }

    fn erased_up_to(&self) -> Result<Followed> {
        self.0.erased_up_to()
    }

    fn missing(&self, _: u64) -> Result<Missing> {
        Err(bulla::Error::unavailable("its row 9 does not open"))
    }
}

#[test]
fn a_query_that_names_nobody_needs_the_keys_of_the_groups_that_it_meets_alone() {
    let (mut world, log) = log(2);
    world.block(&log, vec![Row::new(0, "read").subject("user_2").stream("s"), Row::new(0, "write")], 1);
    log.close().unwrap();
    world.register.as_ref().unwrap().lose("user_1");
    let keys = Arc::new(OfGroups(world.register.clone().unwrap()));
    for image in [world.image(), without_index(&world.image())] {
        let reader = reader(image, &world.key).group_keys(keys.clone());
        let stream = |stream: &str| answer(&reader, &Query::new().stream(stream)).unwrap().1;
        let gone = 2 * (OF_EACH + 1);
        assert_eq!((stream("s").entries, stream("s").undecided), (1, gone));
        assert_eq!((stream("default").entries, stream("default").undecided), (2 * 2 * OF_EACH + 1, gone));
        let mut followed = 0;
        let query = Query::new().stream("s");
        let polled = reader.follow(&query).unwrap().poll(|_| {
            followed += 1;
            Ok(())
        });
        assert_eq!((followed, polled.unwrap().undecided), (1, gone));
        let named = answer(&reader, &Query::new().subject("user_2")).unwrap_err();
        assert!(named.to_string().contains("row 9"), "{named}");
    }
}

#[test]
fn of_whom_nothing_is_found_it_is_told_whether_they_are_known_as_far_as_anybody_can() {
    let (world, log) = log(2);
    let register = world.register.clone().unwrap();
    let standings = |keys: Arc<dyn GroupKeys>, salvage: bool, query: Query| {
        let export = Export::open_store(Arc::new(world.image())).unwrap().identity(Arc::new(Mask));
        let export = export.group_keys(keys.clone()).query(query.clone()).salvage(salvage);
        let exported = export.run(&mut Vec::new()).unwrap();
        let subjects =
            exported.subjects.into_iter().map(|one| (one.subject, one.standing)).collect::<Vec<_>>();
        assert_eq!(exported.entries > 0, subjects.is_empty(), "{query:?}");
        if exported.entries == 0 {
            let told = reader_of(&world).group_keys(keys).subjects_not_found(&query).unwrap();
            assert_eq!(told.into_iter().map(|one| (one.subject, one.standing)).collect::<Vec<_>>(), subjects);
        }
        subjects.into_iter().map(|(_, standing)| standing).collect::<Vec<_>>()
    };
    let asked = |names: &[&str]| names.iter().fold(Query::new(), |query, name| query.subject(*name));
    let shared: Arc<dyn GroupKeys> = Arc::new(SharedOnly);
    for salvage in [false, true] {
        let told = |query| standings(register.clone(), salvage, query);
        assert_eq!(told(asked(&["user_1", "nobody"])), []);
        assert_eq!(told(asked(&["nobody"])), [Standing::NotKnown]);
        let nothing = asked(&["user_1", "nobody"]).operation("write");
        assert_eq!(told(nothing.clone()), [Standing::Known, Standing::NotKnown]);
        assert_eq!(told(nothing.begins_with(TextField::Subject, "x")), [Standing::Known, Standing::NotKnown]);
        assert_eq!(standings(shared.clone(), salvage, asked(&["user_1"])), [Standing::NoVault]);
    }
    // Whoever has no number may have had one that was lost, and a vault that is older than the log may not know them yet.
    let number = register.lose("user_1");
    assert_eq!(standings(register.clone(), false, asked(&["user_1"])), [Standing::KeysLost]);
    assert_eq!(
        standings(register.clone(), false, asked(&["nobody"]).operation("write")),
        [Standing::KeysLost]
    );
    let nothing = asked(&["user_0"]).operation("write");
    assert_eq!(standings(register.clone(), false, nothing), [Standing::Known]);
    record(&log, &[number]);
    log.close().unwrap();
    assert_eq!(standings(register.clone(), false, asked(&["user_1"])), [Standing::NotKnown]);
    register.frames.store(2, Ordering::Relaxed);
    assert_eq!(standings(register, false, asked(&["user_1"])), [Standing::KeysLost]);
}

#[test]
fn a_log_without_a_vault_tells_whom_it_never_met_where_all_of_it_was_asked() {
    let mut world = World::new(4);
    let log = world.open();
    for name in ["ada", "bob"] {
        world.block(&log, vec![Row::new(0, "read").subject(name)], 1);
    }
    log.close().unwrap();
    let image = world.image();
    let standing = |image: &Image, query: Query| {
        let export = Export::open_store(Arc::new(image.clone())).unwrap().identity(Arc::new(Mask));
        let exported = export.salvage(true).query(query).run(&mut Vec::new()).unwrap();
        exported.subjects.into_iter().map(|one| one.standing).collect::<Vec<_>>()
    };
    assert_eq!(standing(&image, Query::new().subject("nobody")), [Standing::NeverMet]);
    assert_eq!(standing(&image, Query::new().subject("ada")), []);
    for narrow in [Query::new().operation("write"), Query::new().from(1), Query::new().entries(0..=9)] {
        assert_eq!(standing(&image, narrow.subject("nobody")), [Standing::NotAllAsked]);
    }
    // What is damaged may have named them.
    let block = blocks(&image).pop().unwrap();
    let (path, at) = body_of(&image, &block);
    let damaged = image.flipped(&path, at, |byte| byte ^ 1);
    assert_eq!(standing(&damaged, Query::new().subject("nobody")), [Standing::NotAllAsked]);
}

fn reader_of(world: &World) -> Reader {
    reader(world.image(), &world.key)
}

#[test]
fn keys_from_before_somebody_was_new_are_looked_for_where_they_may_be() {
    let (mut world, old) = (World::grouped(3), Register::default());
    let log = world.open();
    let row = |name: &str| Row::new(0, "read").subject(name);
    world.block(&log, vec![row("old"), row("other")], 1);
    world.block(&log, vec![row("old"), row("other")], 1);
    world.block(&log, vec![row("old"), row("new")], 1);
    world.block(&log, vec![Row::new(0, "read")], 1);
    world.block(&log, vec![row("new"), row("other")], 1);
    log.close().unwrap();
    let register = world.register.clone().unwrap();
    let (mut names, number) = (["old", "other"], |name: &str| register.number_of(name));
    names.sort_by_key(|name| number(name));
    Subjects::resolve(&old, &names).unwrap();
    // It was copied after the second block.
    old.frames.store(3, Ordering::Relaxed);
    let reader = reader_of(&world).group_keys(Arc::new(old));
    let read = |subject: &str| {
        let read = answer(&reader, &Query::new().subject(subject)).unwrap().1;
        (read.entries, read.undecided, read.blocks_read)
    };
    assert_eq!(read("new"), (0, 2, 2));
    assert_eq!(read("old"), (3, 2, 4));
    assert_eq!(
        answer(&world.reader(world.image()), &Query::new().subject("nobody")).unwrap().1.blocks_read,
        0
    );
}

#[test]
fn a_key_that_came_back_is_not_used_once_the_log_says_that_it_was_destroyed() {
    let (mut world, log) = log(1);
    let register = world.register.clone().unwrap();
    let gone = OF_EACH + 1;
    record(&log, &[register.number_of("user_1")]);
    block(&mut world, &log);
    log.close().unwrap();
    // In both blocks: a number is given once, so the second one was written by a host that did not know.
    assert_eq!(read(&world.reader(world.image())).withheld, erased(2 * gone));
    assert_eq!(verify(&world, world.image()).erased, Some(2 * gone));
    let (found, _) = answer(&world.reader(world.image()), &Query::new().subject("user_1")).unwrap();
    assert!(found.is_empty());
    // Keys that follow the log so far are trusted to have no key that it erased.
    register.follows.store(3, Ordering::Relaxed);
    assert_eq!(read(&world.reader(world.image())).withheld, RedactedEntries::default());
    register.follows.store(2, Ordering::Relaxed);
    assert_eq!(read(&world.reader(world.image())).withheld, erased(2 * gone));
}

#[test]
fn without_everybodys_keys_what_is_missing_is_erased_or_not_given() {
    let (world, log) = log(1);
    record(&log, &[world.register.as_ref().unwrap().number_of("user_0")]);
    let shared = reader(world.image(), &world.key).group_keys(Arc::new(SharedOnly));
    let expected = RedactedEntries { erased: OF_EACH + 1, not_given: 2 * OF_EACH, ..Default::default() };
    assert_eq!(read(&shared).withheld, expected);
    let report = world.verify(world.image()).group_keys(Arc::new(SharedOnly)).run().unwrap();
    assert!(report.ok, "what was not given is not lost: {:?}", report.findings);
}

/// A vault from which somebody is erased while it is read.
struct Meanwhile {
    register: Arc<Register>,
    log: Mutex<Log>,
    done: AtomicBool,
}

impl GroupKeys for Meanwhile {
    fn number(&self, subject: &str) -> Result<Option<u64>> {
        self.register.number(subject)
    }

    fn secrets(&self, place: BlockContext<'_>, groups: &[&[u64]]) -> Result<Vec<Option<GroupSecret>>> {
        let log = self.log.lock().unwrap();
        if !self.done.swap(true, Ordering::Relaxed) {
            record(&log, &[self.register.lose("user_1")]);
        }
        self.register.secrets(place, groups)
    }

    fn is_complete(&self) -> bool {
        true
    }

    fn erased_up_to(&self) -> Result<Followed> {
        self.register.erased_up_to()
    }

    fn missing(&self, from: u64) -> Result<Missing> {
        self.register.missing(from)
    }
}

#[test]
fn who_is_erased_while_somebody_reads_is_erased_and_not_lost() {
    // With everything of the log known before, and with nothing.
    for follows in [0, 3] {
        let made = || {
            let (world, log) = log(2);
            let register = world.register.clone().unwrap();
            register.follows.store(follows, Ordering::Relaxed);
            (
                world.store,
                Arc::new(Meanwhile { register, log: Mutex::new(log), done: AtomicBool::new(false) }),
            )
        };
        let (store, keys) = made();
        let reader = Reader::open_store(store).unwrap().identity(Arc::new(Mask)).group_keys(keys);
        assert_eq!(read(&reader).withheld, erased(2 * (OF_EACH + 1)), "{follows}");
        let (store, keys) = made();
        let verify = Verify::open_store(store).unwrap().identity(Arc::new(Mask)).group_keys(keys);
        let report = verify.run().unwrap();
        assert_eq!((report.ok, report.erased), (true, Some(2 * (OF_EACH + 1))), "{:?}", report.findings);
    }
}

#[test]
fn a_damaged_log_still_says_who_was_erased() {
    let (mut world, log) = log(1);
    let number = world.register.as_ref().unwrap().lose("user_1");
    record(&log, &[number]);
    block(&mut world, &log);
    log.close().unwrap();
    let image = world.image();
    let bundles = image.paths().into_iter().filter(|path| path.starts_with("tile/entries"));
    let damaged = bundles.fold(image, |image, bundle| image.without(&bundle));
    let report = verify(&world, damaged.clone());
    assert!(
        report.findings.iter().all(|finding| finding.kind == FindingKind::BundleDamaged),
        "{:?}",
        report.findings
    );
    assert_eq!((report.ok, report.erased), (false, Some(OF_EACH + 1)));

    let export = Export::open_store(Arc::new(damaged)).unwrap().identity(Arc::new(Mask)).salvage(true);
    let mut out = Vec::new();
    let exported = export.group_keys(world.register.clone().unwrap()).run(&mut out).unwrap();
    assert_eq!((exported.entries, exported.withheld), (2 * (3 * OF_EACH + 1), erased(OF_EACH + 1)));
}

#[test]
fn an_event_that_is_damaged_ends_a_query_that_needs_it() {
    let (world, log) = log(1);
    record(&log, &[world.register.as_ref().unwrap().number_of("user_1")]);
    log.close().unwrap();
    let image = world.image();
    let event = &frames(&image)[2];
    let (path, at) = body_of(&image, event);
    let damaged = image.flipped(&path, at + 12, |byte| byte ^ 1);
    let error = answer(&world.reader(damaged.clone()), &Query::new()).unwrap_err();
    assert!(error.to_string().contains("frame 2"), "{error}");
    world.register.as_ref().unwrap().follows.store(3, Ordering::Relaxed);
    assert_eq!(read(&world.reader(damaged)).withheld, RedactedEntries::default());
}

#[test]
fn who_follows_a_log_sees_why_fields_are_withheld() {
    let (mut world, log) = log(1);
    let store: Arc<dyn Store> = world.store.clone();
    let register = world.register.clone().unwrap();
    let reader = Reader::open_store(store).unwrap().identity(Arc::new(Mask)).group_keys(register.clone());
    let mut follow = reader.follow(&Query::new()).unwrap();
    let mut poll = || {
        let mut withheld = Vec::new();
        follow
            .poll(|followed| {
                assert_eq!(followed.withheld.is_some(), followed.entry.location.is_none());
                withheld.extend(followed.withheld);
                Ok(())
            })
            .unwrap();
        withheld
    };
    assert_eq!(poll(), []);
    // Her key is still here, and the log says that it was destroyed.
    record(&log, &[register.number_of("user_1")]);
    block(&mut world, &log);
    assert_eq!(poll(), [Redaction::Erased; OF_EACH as usize + 1]);
    register.lose("user_2");
    block(&mut world, &log);
    let of = |why| move |withheld: &[Redaction]| withheld.iter().filter(|one| **one == why).count() as u64;
    let withheld = poll();
    assert_eq!(of(Redaction::Erased)(&withheld), OF_EACH + 1);
    assert_eq!(of(Redaction::KeyLost)(&withheld), 0, "she has got another number");
}

/// What nobody has signed may yet be replaced: of that nothing is told before a checkpoint covers it.
#[test]
fn of_pending_entries_whose_keys_are_lost_it_is_told_once_they_are_covered_and_never_if_they_are_replaced() {
    let (mut world, log) = log(1);
    let signed = world.image();
    block(&mut world, &log);
    let first = OF_EACH * 3 + 1;
    world.register.as_ref().unwrap().lose("user_1");
    let pending = world.image();
    // The first block's are said to be lost as well, and are not asked for here.
    for (query, undecided, key_lost) in
        [(Query::new().subject("user_1"), OF_EACH + 1, 0), (Query::new(), 0, OF_EACH + 1)]
    {
        let query = &Query { first_entry: Some(first), ..query };
        let look = |follow: &mut bulla::Follow<'_>| follow.poll(|_| Ok(())).unwrap();
        // Another writer found nothing of it, and wrote something else there.
        let store = Switch::of(pending.clone());
        let reader = world.reader(store.clone());
        let mut follow = reader.follow(query).unwrap();
        let polled = look(&mut follow);
        assert_eq!((polled.undecided, polled.key_lost), (0, 0), "{query:?}");
        let mut other = world.again(&signed);
        let again = other.open();
        other.block(&again, vec![Row::new(0, "read").subject("user_2")], 1);
        again.step(Step::Checkpoint).unwrap();
        store.set(other.image());
        let polled = look(&mut follow);
        assert_eq!((polled.lost_from, polled.undecided, polled.key_lost), (Some(first), 0, 0), "{query:?}");

        // It is signed as it is.
        let store = Switch::of(pending.clone());
        let reader = world.reader(store.clone());
        let mut follow = reader.follow(query).unwrap();
        look(&mut follow);
        let signed = world.again(&pending);
        let again = signed.open();
        again.step(Step::Commit).unwrap();
        again.step(Step::Checkpoint).unwrap();
        store.set(signed.image());
        let polled = look(&mut follow);
        assert_eq!(
            (polled.lost_from, polled.undecided, polled.key_lost),
            (None, undecided, key_lost),
            "{query:?}"
        );
        assert_eq!((look(&mut follow).undecided, look(&mut follow).key_lost), (0, 0), "{query:?}");
    }
}

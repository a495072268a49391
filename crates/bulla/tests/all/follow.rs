//! Following a log: every entry once, in order, marked until it is signed; what a crash takes is told.

mod epochs;
mod time;

use crate::damage::image::Image;
use crate::damage::layout::{BLOCK, EPOCH, HEAD, Layout};
use crate::damage::world::{Mask, World};
use crate::helpers::refuse_writes;
use bulla::store::{Item, Store, StoreFile};
use bulla::{ErrorKind, Polled, Query, Reader, Step};
use bulla_proof::hash::sha256;
use bulla_testkit::Memory;
use std::fmt::Debug;
use std::io;
use std::sync::{Arc, Mutex};

/// A store that can be exchanged for another one, as a machine's is when it starts again.
#[derive(Clone, Debug)]
pub(crate) struct Switch(Arc<Mutex<Arc<dyn Store>>>);

impl Switch {
    fn to(world: &World) -> Self {
        Switch::of(world.machine.store("audit"))
    }

    pub(crate) fn of(store: impl Store + 'static) -> Self {
        Switch(Arc::new(Mutex::new(Arc::new(store))))
    }

    pub(crate) fn set(&self, store: impl Store + 'static) {
        *self.0.lock().unwrap() = Arc::new(store);
    }

    fn now(&self) -> Arc<dyn Store> {
        self.0.lock().unwrap().clone()
    }
}

impl Store for Switch {
    fn open(&self, path: &str) -> io::Result<Box<dyn StoreFile>> {
        self.now().open(path)
    }

    fn list(&self, directory: &str) -> io::Result<Vec<Item>> {
        self.now().list(directory)
    }

    fn is_locked(&self, path: &str) -> io::Result<bool> {
        self.now().is_locked(path)
    }

    fn describe(&self, path: &str) -> String {
        self.now().describe(path)
    }

    refuse_writes!();
}

fn reader(store: &Switch) -> Reader {
    Reader::open_store(Arc::new(store.clone())).unwrap().identity(Arc::new(Mask))
}

/// The numbers that a look gives out, those of pending entries apart.
fn poll(follow: &mut bulla::Follow<'_>) -> (Vec<u64>, Vec<u64>, Polled) {
    let (mut signed, mut pending) = (Vec::new(), Vec::new());
    let polled = follow.poll(|followed| {
        assert!(followed.pending || pending.is_empty(), "what is pending comes last");
        if followed.pending { &mut pending } else { &mut signed }.push(followed.number);
        Ok(())
    });
    (signed, pending, polled.unwrap())
}

fn numbers(range: std::ops::Range<u64>) -> Vec<u64> {
    range.collect()
}

#[test]
fn entries_come_once_marked_until_a_checkpoint_covers_them() {
    let mut world = World::new(11);
    let log = world.open();
    world.block(&log, 3);
    log.flush().unwrap();
    world.block(&log, 2);
    let store = Switch::to(&world);
    let reader = reader(&store);
    let mut follow = reader.follow(&Query::new()).unwrap();
    let none = Vec::<u64>::new();
    let polled = |covered| Polled { covered, ..Polled::default() };
    assert_eq!(poll(&mut follow), (numbers(0..3), numbers(3..5), polled(3)));
    assert_eq!(poll(&mut follow), (none.clone(), none.clone(), polled(3)));
    world.block(&log, 1);
    assert_eq!(poll(&mut follow), (none.clone(), numbers(5..6), polled(3)));
    // What was shown is not shown again when it is signed; what is new by then is no longer pending.
    log.step(Step::Checkpoint).unwrap();
    assert_eq!(poll(&mut follow), (none.clone(), none.clone(), polled(6)));
    world.block(&log, 4);
    world.gap(&log, 2);
    log.step(Step::Checkpoint).unwrap();
    world.block(&log, 1);
    assert_eq!(poll(&mut follow), (numbers(6..10), numbers(12..13), polled(12)));
}

#[test]
fn only_what_is_signed_where_that_is_asked_for() {
    let mut world = World::new(12);
    let log = world.open();
    world.block(&log, 3);
    let store = Switch::to(&world);
    let reader = reader(&store);
    let mut follow = reader.follow(&Query::new()).unwrap().signed_only(true);
    assert_eq!(poll(&mut follow).0, numbers(0..0));
    log.step(Step::Checkpoint).unwrap();
    world.block(&log, 3);
    let (signed, pending, _) = poll(&mut follow);
    assert_eq!((signed, pending), (numbers(0..3), numbers(0..0)));
}

#[test]
fn across_rotation_reopening_and_abandoned_segments() {
    let mut world = World::new(13);
    let mut log = world.open();
    let store = Switch::to(&world);
    let reader = reader(&store);
    let mut follow = reader.follow(&Query::new()).unwrap();
    let mut seen = Vec::new();
    for round in 0..120 {
        match round % 12 {
            3 => world.abandon(&log, 7),
            5 => {
                log.close().unwrap();
                log = world.open();
            }
            7 => {
                let old = world.machine.clone();
                world.die(log, 2, if round > 60 { 100 } else { 0 });
                drop(old);
                log = world.open();
                store.set(world.machine.store("audit"));
            }
            // Enough for several segments of 64 KiB.
            _ => world.block(&log, 60),
        }
        if round % 2 == 0 {
            log.step(Step::Checkpoint).unwrap();
        }
        let (signed, pending, polled) = poll(&mut follow);
        assert_eq!(polled.lost_from, None, "round {round}: what was synced is never lost");
        seen.extend(signed.into_iter().chain(pending));
        assert_eq!(seen, numbers(0..seen.len() as u64), "round {round}");
    }
    log.flush().unwrap();
    let (signed, pending, _) = poll(&mut follow);
    seen.extend(signed.into_iter().chain(pending));
    let mut all = Vec::new();
    reader
        .for_each(&Query::new(), |number, _| {
            all.push(number);
            Ok(())
        })
        .unwrap();
    assert_eq!(seen, all);
    assert!(world.machine.files().iter().filter(|path| path.ends_with(".seg")).count() > 20);
}

#[test]
fn what_a_crash_took_is_told_and_what_came_in_its_place_is_shown() {
    let mut world = World::new(14);
    let log = world.open();
    world.block(&log, 3);
    log.flush().unwrap();
    let segment = "audit/segments/00000000000000000000.seg";
    let kept = world.machine.read(segment).unwrap().len();
    world.block(&log, 2);
    let store = Switch::to(&world);
    let reader = reader(&store);
    let mut follow = reader.follow(&Query::new()).unwrap();
    let (signed, pending, _) = poll(&mut follow);
    assert_eq!((signed, pending), (numbers(0..3), numbers(3..5)));
    // The power goes, and the medium had lied about its sync.
    world.machine = world.machine.kill();
    drop(log);
    let mut content = world.machine.read(segment).unwrap();
    content.truncate(kept);
    world.machine.overwrite(segment, &content);
    let log = world.open();
    store.set(world.machine.store("audit"));
    world.block(&log, 4);
    log.flush().unwrap();
    let (signed, pending, polled) = poll(&mut follow);
    assert_eq!(polled, Polled { covered: 7, lost_from: Some(3), ..Polled::default() });
    assert_eq!((signed, pending), (numbers(3..7), numbers(0..0)));
    world.block(&log, 1);
    assert_eq!(poll(&mut follow).1, numbers(7..8));
}

#[test]
fn it_begins_where_it_is_told_and_shows_what_it_is_asked_for() {
    let mut world = World::new(15);
    let log = world.open();
    world.block(&log, 30);
    log.flush().unwrap();
    let store = Switch::to(&world);
    let reader = reader(&store);
    let query = Query { first_entry: Some(10), ..Query::new().subject("user_3") };
    let mut follow = reader.follow(&query).unwrap();
    let expected = |range: std::ops::Range<u64>| range.filter(|number| number % 7 == 3).collect::<Vec<_>>();
    assert_eq!(poll(&mut follow).0, expected(10..30));
    world.block(&log, 30);
    assert_eq!(poll(&mut follow).1, expected(30..60));
}

#[test]
fn a_log_that_was_cut_or_rewritten_is_tampered() {
    let mut world = World::new(16);
    let log = world.open();
    world.block(&log, 3);
    log.flush().unwrap();
    let before = world.made().image;
    world.block(&log, 3);
    log.flush().unwrap();
    let store = Switch::to(&world);
    let reader = reader(&store);
    let mut follow = reader.follow(&Query::new()).unwrap();
    poll(&mut follow);
    let message = |follow: &mut bulla::Follow<'_>| {
        let error = follow.poll(|_| Ok(())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Tampered);
        error.to_string()
    };
    // The log as it was before.
    store.set(before.clone());
    assert!(message(&mut follow).starts_with("the log was cut"));
    // The log as it was before, gone on differently with the same keys.
    let other = World::new(16);
    let log = other.open();
    let mut other = other;
    for _ in 0..4 {
        other.block(&log, 2);
    }
    log.flush().unwrap();
    store.set(other.machine.store("audit"));
    assert!(message(&mut follow).starts_with("the log was rewritten"));
    // No log at all any more.
    store.set(Memory::new());
    assert!(follow.poll(|_| Ok(())).is_err());
}

/// A frame that nobody sealed: after the last one of a log whose entries are so many, of garbage whose digest it has.
fn forged(image: &Image, kind: u8, entries: u64) -> Vec<u8> {
    let last = Layout::of(image).frames.last().unwrap().clone();
    let content = image.get(&format!("segments/{}", last.segment));
    let (mut head, body) = (content[last.offset..last.offset + HEAD].to_vec(), [7; 300]);
    (head[5], head[25]) = (kind, kind);
    let number = last.number + 1;
    for (at, value) in [(48, number), (56, entries), (136, 300)] {
        head[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
    head[8..12].copy_from_slice(&300u32.to_le_bytes());
    head[144..176].copy_from_slice(&sha256(&[&body]).0);
    if kind == EPOCH {
        // No entries, no units: neither content nor root, and the epoch is its own.
        head[26] = 0;
        head[28] = 0;
        head[64..72].fill(0);
        head[88..96].copy_from_slice(&number.to_le_bytes());
        head[96..136].fill(0);
    }
    let crc = crc32c::crc32c(&head[..20]);
    head[20..24].copy_from_slice(&crc.to_le_bytes());
    [&head[..], &body, &[9; 32]].concat()
}

#[test]
fn what_nobody_signed_is_waited_at_and_ends_nothing_whatever_it_is() {
    for kind in [BLOCK, EPOCH] {
        let mut world = World::new(17);
        let log = world.open();
        world.block(&log, 3);
        log.flush().unwrap();
        let store = Switch::to(&world);
        let reader = reader(&store);
        let mut follow = reader.follow(&Query::new()).unwrap();
        assert_eq!(poll(&mut follow).0, numbers(0..3));
        let image = world.made().image;
        let path = format!("segments/{}", Layout::of(&image).frames[0].segment);
        let tail = [image.get(&path), &forged(&image, kind, 3)].concat();
        world.machine.overwrite(&format!("audit/{path}"), &tail);
        let killed = world.machine.kill();
        let doubted = Polled { covered: 3, doubted_from: Some(2), ..Polled::default() };
        for _ in 0..3 {
            assert_eq!(poll(&mut follow), (vec![], vec![], doubted), "{kind}");
        }
        // The writer's own frame in that place is followed.
        world.block(&log, 2);
        let sound = Polled { covered: 3, ..Polled::default() };
        assert_eq!(poll(&mut follow), (vec![], numbers(3..5), sound), "{kind}");
        drop(log);

        // Whoever begins now is told the same, and where only signed entries count there is nothing to doubt.
        world.machine = killed;
        store.set(world.machine.store("audit"));
        let mut follow = reader.follow(&Query::new()).unwrap();
        assert_eq!(poll(&mut follow), (numbers(0..3), vec![], doubted), "{kind}");
        let mut signed = reader.follow(&Query::new()).unwrap().signed_only(true);
        assert_eq!(poll(&mut signed).2, sound);
        // Opening the log cuts the forged frame off, and what is signed in its place is shown.
        let log = world.open();
        world.block(&log, 2);
        log.flush().unwrap();
        let (shown, pending, polled) = poll(&mut follow);
        assert_eq!((shown.len(), pending, polled.doubted_from), (2, vec![], None), "{kind}");
    }
}

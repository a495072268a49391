//! What goes on while a log is read: a writer that comes at any moment, keys that go between two passes, and a store, an
//! identity or keys that panic.

use super::world::{Row, World, entry_number};
use crate::damage::world::Mask;
use crate::register::Register;
use bulla::keys::epoch::EpochSecret;
use bulla::keys::group::{BlockContext, Followed, GroupKeys, GroupSecret, Missing};
use bulla::keys::recipients::Identity;
use bulla::store::{Item, Lock, Store, StoreFile};
use bulla::{ErrorKind, Export, FindingKind, Log, Query, Reader, Result, Verify};
use std::fmt::{self, Debug};
use std::io::{self, IoSlice};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

type Hook = dyn Fn() + Send + Sync;

/// A store that calls a hook before everything that is read of it.
#[derive(Clone)]
struct Hooked {
    store: Arc<dyn Store>,
    hook: Arc<Hook>,
}

impl Debug for Hooked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hooked")
    }
}

impl Store for Hooked {
    fn create(&self, path: &str) -> io::Result<Box<dyn StoreFile>> {
        self.store.create(path)
    }

    fn open(&self, path: &str) -> io::Result<Box<dyn StoreFile>> {
        (self.hook)();
        let (file, hook) = (self.store.open(path)?, self.hook.clone());
        Ok(Box::new(HookedFile { file, hook }))
    }

    fn open_write(&self, path: &str) -> io::Result<Box<dyn StoreFile>> {
        self.store.open_write(path)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.store.rename(from, to)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.store.remove(path)
    }

    fn list(&self, directory: &str) -> io::Result<Vec<Item>> {
        (self.hook)();
        self.store.list(directory)
    }

    fn create_directory(&self, path: &str) -> io::Result<()> {
        self.store.create_directory(path)
    }

    fn remove_directory(&self, path: &str) -> io::Result<()> {
        self.store.remove_directory(path)
    }

    fn sync_directory(&self, path: &str) -> io::Result<()> {
        self.store.sync_directory(path)
    }

    fn lock(&self, path: &str) -> io::Result<Box<dyn Lock>> {
        self.store.lock(path)
    }

    fn is_locked(&self, path: &str) -> io::Result<bool> {
        (self.hook)();
        self.store.is_locked(path)
    }

    fn describe(&self, path: &str) -> String {
        self.store.describe(path)
    }
}

struct HookedFile {
    file: Box<dyn StoreFile>,
    hook: Arc<Hook>,
}

impl Debug for HookedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HookedFile")
    }
}

impl StoreFile for HookedFile {
    fn length(&self) -> io::Result<u64> {
        (self.hook)();
        self.file.length()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        (self.hook)();
        self.file.read_at(buffer, offset)
    }

    fn write_at(&self, buffers: &mut [IoSlice<'_>], offset: u64) -> io::Result<()> {
        self.file.write_at(buffers, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.file.set_length(length)
    }
}

/// A log of some blocks, of which the last ones are signed by nobody where its writer was killed, and how many entries are
/// signed.
fn left(killed: bool) -> (World, u64) {
    let mut world = World::new(71);
    let log = world.open();
    for _ in 0..4 {
        let rows = (0..3).map(|_| Row::new(0, "read")).collect();
        world.block(&log, rows, 1);
    }
    let entries = world.rows.len() as u64;
    match killed {
        false => log.close().unwrap(),
        true => {
            log.flush().unwrap();
            for _ in 0..2 {
                world.block(&log, vec![Row::new(0, "read")], 1);
            }
            // The next one adopted that, and could not sign it: what it copied lies in a segment of its own, which whoever comes now
            // copies once more and removes.
            world = world.killed(log);
            world = world.cut_short();
        }
    }
    (world, entries)
}

/// What a writer does once it has come.
#[derive(Clone, Copy, Debug)]
enum Visit {
    /// It is at work still, and no checkpoint covers what it wrote.
    Stays,
    /// It has closed the log again.
    Leaves,
}

/// Reads a log of which a writer comes to at the `moment`th look. `None` where there are not so many.
fn visited<T>(moment: usize, visit: Visit, killed: bool, read: impl FnOnce(Hooked) -> T) -> Option<(T, u64)> {
    let (world, entries) = left(killed);
    let rows = world.rows.len();
    let (looks, store) = (AtomicUsize::new(0), world.store.clone());
    let guest = Arc::new(Mutex::new((world, None::<Log>)));
    let hook = {
        let guest = guest.clone();
        move || {
            if looks.fetch_add(1, Ordering::Relaxed) != moment {
                return;
            }
            let (world, log) = &mut *guest.lock().unwrap();
            let writer = world.open();
            world.block(&writer, vec![Row::new(0, "write"), Row::new(0, "write")], 1);
            match visit {
                Visit::Stays => *log = Some(writer),
                Visit::Leaves => writer.close().unwrap(),
            }
        }
    };
    let result = read(Hooked { store, hook: Arc::new(hook) });
    let came = guest.lock().unwrap().0.rows.len() > rows;
    came.then_some((result, entries))
}

#[test]
fn a_log_that_a_writer_opens_meanwhile_is_not_unclosed() {
    for visit in [Visit::Stays, Visit::Leaves] {
        let (mut moments, mut pending) = (0, 0);
        for identity in [false, true] {
            let verify = |store: Hooked| {
                let verify = Verify::open_store(Arc::new(store)).unwrap().threads(1);
                let verify = if identity { verify.identity(Arc::new(Mask)) } else { verify };
                verify.run().unwrap()
            };
            let mut moment = 0;
            while let Some((report, entries)) = visited(moment, visit, false, verify) {
                assert_eq!(report.findings, [], "{visit:?} at {moment}, {identity}");
                assert!(report.entries >= entries, "{visit:?} at {moment}, {identity}");
                pending += u64::from(report.pending > 0);
                moment += 1;
            }
            moments += moment;
        }
        assert!(moments > 40 && pending > 0, "{visit:?}: {moments}, {pending}");
    }
}

/// The writer before was killed: the one that comes adopts what that one left, and removes what it has copied.
#[test]
fn a_killed_log_that_a_writer_opens_meanwhile_is_sound() {
    for visit in [Visit::Stays, Visit::Leaves] {
        let (mut moment, mut unsigned) = (0, 0);
        // The seal state is read before, as the command does.
        let verify = |state: Vec<u8>| {
            move |store: Hooked| {
                let verify = Verify::open_store(Arc::new(store)).unwrap().threads(1);
                verify.seal_state(&state).unwrap().run().unwrap()
            }
        };
        while let Some((report, entries)) = visited(moment, visit, true, verify(left(true).0.seal_state())) {
            assert!(report.ok, "{visit:?} at {moment}: {:#?}", report.findings);
            assert!(report.entries >= entries, "{visit:?} at {moment}");
            // The tail is told where the writer came once nobody was looking any more.
            unsigned += report.findings.iter().filter(|one| one.kind == FindingKind::UnsignedTail).count();
            moment += 1;
        }
        assert!(moment > 20 && unsigned < moment / 2, "{visit:?}: {moment}, {unsigned}");
        let report = verify(left(true).0.seal_state())(Hooked {
            store: left(true).0.store.clone(),
            hook: Arc::new(|| {}),
        });
        let tails = report.findings.iter().filter(|one| one.kind == FindingKind::UnsignedTail);
        assert_eq!(tails.count(), 1, "{:#?}", report.findings);
    }
}

#[test]
fn an_export_beside_a_writer_that_comes_is_of_what_was_verified() {
    for visit in [Visit::Stays, Visit::Leaves] {
        let (mut moment, mut told) = (0, 0);
        let export = |store: Hooked| {
            let mut out = Vec::new();
            let export = Export::open_store(Arc::new(store)).unwrap().identity(Arc::new(Mask)).threads(1);
            let exported = export.run(&mut out).unwrap();
            let numbers = out.split_inclusive(|&byte| byte == b'\n').map(entry_number).collect::<Vec<_>>();
            (exported, numbers)
        };
        while let Some(((exported, numbers), entries)) = visited(moment, visit, false, export) {
            assert!(numbers.iter().copied().eq(0..exported.entries), "{visit:?} at {moment}");
            assert!(exported.entries >= entries, "{visit:?} at {moment}");
            // At most that what it has not signed yet was not looked at.
            let kinds = exported.findings.iter().map(|finding| finding.kind).collect::<Vec<_>>();
            assert!(
                kinds.is_empty() || kinds == [FindingKind::UnsignedTail],
                "{visit:?} at {moment}: {kinds:?}"
            );
            told += kinds.len();
            moment += 1;
        }
        assert!(moment > 40 && told > 0, "{moment}, {told}");
    }
}

/// Keys that are there for so many looks.
struct Fading {
    register: Arc<Register>,
    left: AtomicUsize,
}

impl GroupKeys for Fading {
    fn number(&self, subject: &str) -> Result<Option<u64>> {
        self.register.number(subject)
    }

    fn secrets(&self, place: BlockContext<'_>, groups: &[&[u64]]) -> Result<Vec<Option<GroupSecret>>> {
        let take = |left: usize| left.checked_sub(1);
        match self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
            Ok(_) => self.register.secrets(place, groups),
            Err(_) => Ok(groups.iter().map(|_| None).collect()),
        }
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
fn what_is_read_twice_is_what_was_counted_or_an_error() {
    let mut world = World::grouped(72);
    let log = world.open();
    for _ in 0..6 {
        let rows = (0..4).map(|row| Row::new(0, "read").subject(&format!("user_{row}"))).collect();
        world.block(&log, rows, 1);
    }
    log.close().unwrap();
    let register = world.register.clone().unwrap();
    for query in [Query::new(), Query::new().subject("user_1"), Query::new().stream("default")] {
        let (mut refused, mut complete) = (0, 0);
        for left in 0..=14 {
            let keys = Fading { register: register.clone(), left: AtomicUsize::new(left) };
            // Nothing is held back, so that everything is read twice.
            let reader = world.reader(world.image()).group_keys(Arc::new(keys)).threads(1).hold_back(0);
            let (mut given, mut withheld) = (0, 0);
            let each = |_, entry: &bulla::Entry<'_>| {
                given += 1;
                withheld += u64::from(entry.subjects.is_none());
                Ok(())
            };
            match reader.for_each(&query, each) {
                Ok(report) => {
                    assert_eq!(
                        (report.entries, report.withheld.total()),
                        (given, withheld),
                        "{query:?}, {left}"
                    );
                    complete += 1;
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
                    assert!(error.to_string().contains("was counted"), "{error}");
                    refused += 1;
                }
            }
        }
        // Keys that go before the first pass, or after the last one, change nothing between them.
        assert!(refused >= 5 && complete >= 4, "{query:?}: {refused}, {complete}");
    }
}

/// Panics wherever it is asked by another thread.
struct Fearful(ThreadId);

impl Identity for Fearful {
    fn unwrap(&self, _: &[u8]) -> Result<Option<EpochSecret>> {
        panic!("an identity gave up")
    }
}

impl GroupKeys for Fearful {
    fn number(&self, _: &str) -> Result<Option<u64>> {
        Ok(Some(0))
    }

    fn secrets(&self, _: BlockContext<'_>, _: &[&[u64]]) -> Result<Vec<Option<GroupSecret>>> {
        assert_eq!(thread::current().id(), self.0, "keys gave up");
        Ok(Vec::new())
    }

    fn is_complete(&self) -> bool {
        true
    }

    fn erased_up_to(&self) -> Result<Followed> {
        Ok(Followed::NOTHING)
    }
}

/// Who panics, and what is read with it.
type Case = (&'static str, Arc<dyn Store>, Arc<dyn Identity>, Arc<dyn GroupKeys>);

#[test]
fn a_panic_of_whatever_is_read_with_is_an_error() {
    let mut world = World::grouped(73);
    let log = world.open();
    for _ in 0..5 {
        world.block(&log, vec![Row::new(0, "read").subject("user_1")], 1);
    }
    log.close().unwrap();
    let here = thread::current().id();
    let sound: Arc<dyn Store> = Arc::new(world.image());
    let hook: Arc<Hook> = Arc::new(move || assert_eq!(thread::current().id(), here, "a store gave up"));
    let unsound: Arc<dyn Store> = Arc::new(Hooked { store: sound.clone(), hook });
    let register = world.register.clone().unwrap();
    let fearful = || Arc::new(Fearful(here));
    let cases: [Case; 3] = [
        ("a store", unsound, Arc::new(Mask), register.clone()),
        ("an identity", sound.clone(), fearful(), register),
        ("keys", sound, Arc::new(Mask), fearful()),
    ];
    for (name, store, identity, keys) in cases {
        // Whoever panics does so on a thread that reads; of one alone there is none.
        for threads in [2, 3] {
            let verify = Verify::open_store(store.clone()).unwrap().threads(threads);
            let verified = verify.identity(identity.clone()).group_keys(keys.clone()).run().map(|_| ());
            let export = |query: Query, salvage: bool| {
                let export = Export::open_store(store.clone()).unwrap().threads(threads).salvage(salvage);
                let export = export.identity(identity.clone()).group_keys(keys.clone()).query(query);
                export.run(&mut Vec::new()).map(|_| ())
            };
            let reader = Reader::open_store(store.clone()).unwrap().threads(threads);
            let reader = reader.identity(identity.clone()).group_keys(keys.clone());
            let answered = reader.for_each(&Query::new().subject("user_1"), |_, _| Ok(())).map(|_| ());
            let exported = [
                export(Query::new(), false),
                export(Query::new().operation("read"), false),
                export(Query::new(), true),
            ];
            for result in [verified, answered].into_iter().chain(exported) {
                let error = result.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Unavailable, "{name}: {error}");
                let told = error.to_string();
                assert!(told.contains(&format!("{name} gave up")) && told.contains("frame "), "{told}");
            }
        }
    }
}

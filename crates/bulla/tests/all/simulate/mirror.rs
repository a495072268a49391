//! A mirror, on a machine of its own, whose operations are interleaved with the log's: it runs in a thread that goes on by so many operations
//! whenever it is told to, and else waits; so what happens follows from the seed all the same.
//!
//! - It verifies at every instant, whatever stops it and wherever.
//! - Its checkpoint is one that the log published, and it never goes back.
//! - Once nothing fails it ends as the log is.

use super::life::Life;
use super::outcome::{Outcome, checkpoint_of, must, sound};
use bulla::mirror::{Mirror, Shipped};
use bulla::store::{FileSystem, Item, Lock, Store, StoreFile};
use bulla::{ErrorKind, Severity, VerifierKey, Verify};
use bulla_testkit::fault::{Fault, Faults};
use std::io::{self, IoSlice};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

/// See the module.
pub(super) struct Mirrored {
    machine: Faults,
    /// One that is open, and does nothing.
    idle: Option<(Mirror, Arc<Turns>)>,
    run: Option<Run>,
    /// How many frames it has shown.
    frames: u64,
    /// Whether something was to fail on its machine since that was started.
    troubled: bool,
}

type Outcomes = (bulla::Result<Shipped>, Option<Mirror>);

/// One that is shipping.
struct Run {
    turns: Arc<Turns>,
    thread: JoinHandle<Outcomes>,
}

/// Says that the thread has ended, however it has.
struct Ended(Arc<Turns>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.ended();
    }
}

/// How far the thread may go.
#[derive(Debug, Default)]
struct Turns {
    state: Mutex<Turn>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Turn {
    /// So many operations may be done.
    granted: u64,
    /// Whether the thread waits, or has ended.
    waits: bool,
    /// Whether nothing comes from the source any more.
    cut: bool,
    /// Whether nothing is waited for any more.
    free: bool,
}

impl Turns {
    /// Waits until one more operation may be done; an error where it is one on the source, which is gone.
    fn pass(&self, of_source: bool) -> io::Result<()> {
        let mut turn = self.state.lock().expect("nothing panics here");
        while turn.granted == 0 && !turn.free {
            turn.waits = true;
            self.changed.notify_all();
            turn = self.changed.wait(turn).expect("nothing panics here");
        }
        turn.granted = turn.granted.saturating_sub(1);
        match turn.cut && of_source {
            true => Err(io::ErrorKind::ConnectionReset.into()),
            false => Ok(()),
        }
    }

    fn begin(&self) {
        *self.state.lock().expect("nothing panics here") = Turn::default();
    }

    fn ended(&self) {
        let mut turn = self.state.lock().expect("nothing panics here");
        (turn.waits, turn.free) = (true, true);
        self.changed.notify_all();
    }

    /// Has the thread do so many operations, and waits until it has; true where it has ended by then.
    fn grant(&self, operations: u64) -> bool {
        let mut turn = self.state.lock().expect("nothing panics here");
        (turn.granted, turn.waits) = (operations, turn.free);
        self.changed.notify_all();
        while !turn.waits {
            turn = self.changed.wait(turn).expect("nothing panics here");
        }
        turn.free
    }

    /// Lets the thread go to its end, without the source where that is `cut`.
    fn let_go(&self, cut: bool) {
        let mut turn = self.state.lock().expect("nothing panics here");
        (turn.cut, turn.free) = (cut, true);
        self.changed.notify_all();
    }
}

impl Mirrored {
    pub(super) fn new() -> Self {
        let machine = Faults::new();
        Mirrored { machine, idle: None, run: None, frames: 0, troubled: false }
    }

    fn destination(&self) -> Arc<dyn Store> {
        Arc::new(self.machine.store("copy"))
    }

    /// Begins to ship what there is.
    fn start(&mut self, source: Arc<dyn Store>, key: VerifierKey) {
        let (idle, turns) =
            self.idle.take().map_or_else(Default::default, |(idle, turns)| (Some(idle), turns));
        turns.begin();
        let (ends, destination) = (turns.clone(), self.destination());
        let ship = move || {
            let _ended = Ended(ends.clone());
            let opened = idle.map_or_else(
                || {
                    let of_source =
                        |store, of_source| Arc::new(Turned { store, turns: ends.clone(), of_source });
                    let stores = (of_source(source, true), of_source(destination, false));
                    Mirror::open_stores(stores.0, stores.1, Some(key))
                        .map(|mirror| mirror.unsynced_at_most(1 << 20))
                },
                Ok,
            );
            let outcome = opened.and_then(|mut mirror| Ok((mirror.poll(|_| {})?, mirror)));
            match outcome {
                Ok((shipped, mirror)) => (Ok(shipped), Some(mirror)),
                Err(error) => (Err(error), None),
            }
        };
        self.run = Some(Run { turns, thread: std::thread::spawn(ship) });
    }
}

impl Drop for Mirrored {
    fn drop(&mut self) {
        if let Some(Run { turns, thread }) = self.run.take() {
            turns.let_go(true);
            let _ = thread.join();
        }
    }
}

impl Life {
    /// The mirror goes on by some operations, or something happens to it.
    pub(super) fn step_mirror(&mut self) -> Outcome {
        if self.beside.detached.is_some() {
            return Ok(());
        }
        match self.beside.rng.below(20) {
            0 => self.crash_mirror(),
            1 => {
                let Some(mirror) = &mut self.beside.mirror else { return Ok(()) };
                let at = mirror.machine.operations() + self.beside.rng.below(30);
                let fault = *self.beside.rng.one(&Fault::ALL);
                mirror.machine.fail_at(at, fault);
                mirror.troubled = true;
                self.say("the mirror's machine fails", (at, fault));
                Ok(())
            }
            _ => {
                let most = *self.beside.rng.one(&[4, 60, 600]);
                let operations = 1 + self.beside.rng.below(most);
                self.ship(operations)
            }
        }
    }

    fn ship(&mut self, operations: u64) -> Outcome {
        // Where publishing it failed once it had its name, nobody has looked at it yet.
        self.model.note_checkpoint(&self.host)?;
        let source = self.host.joined()?;
        let key = self.whose.key.clone();
        let Some(mirror) = &mut self.beside.mirror else { return Ok(()) };
        if mirror.run.is_none() {
            mirror.start(source, key);
        }
        let ended = mirror.run.as_ref().is_some_and(|run| run.turns.grant(operations));
        let verify = self.beside.rng.below(6) == 0;
        if ended {
            self.end_run()?;
        }
        if verify || ended { self.check_mirror() } else { Ok(()) }
    }

    /// Takes what came of shipping.
    fn end_run(&mut self) -> Outcome {
        let Some(mirror) = &mut self.beside.mirror else { return Ok(()) };
        let Some(Run { turns, thread }) = mirror.run.take() else { return Ok(()) };
        let cut = turns.state.lock().map_err(|_| "a panic")?.cut;
        let (shipped, idle) = thread.join().map_err(|_| "the mirror panicked".to_owned())?;
        mirror.idle = idle.map(|mirror| (mirror, turns));
        let (frames, troubled) = (mirror.frames, mirror.troubled || cut || mirror.machine.stopped());
        self.say("shipped", shipped.as_ref().map(|shipped| shipped.frames));
        match shipped {
            Ok(shipped) => {
                must!(shipped.frames >= frames, "the mirror had {frames} frames, and has {}", shipped.frames);
                self.beside.mirror.iter_mut().for_each(|mirror| mirror.frames = shipped.frames);
                Ok(())
            }
            Err(error) => {
                let passes = error.kind() == ErrorKind::Unavailable && (troubled || self.host.stopped());
                must!(passes, "shipping: {:?}: {error}", error.kind());
                Ok(())
            }
        }
    }

    /// The mirror's machine stops: the process dies, or the power is cut.
    fn crash_mirror(&mut self) -> Outcome {
        let cut = (self.beside.rng.below(3) > 0).then(|| self.beside.rng.next());
        self.say("the mirror stops", cut);
        let Some(mirror) = &mut self.beside.mirror else { return Ok(()) };
        let left = match cut {
            None => mirror.machine.kill(),
            Some(seed) => mirror.machine.crash(seed),
        };
        mirror.machine.stop_at(mirror.machine.operations());
        if let Some(run) = &mirror.run {
            run.turns.let_go(true);
        }
        self.end_run()?;
        let Some(mirror) = &mut self.beside.mirror else { return Ok(()) };
        (mirror.idle, mirror.machine, mirror.troubled) = (None, left, false);
        self.check_mirror()
    }

    /// The host that the mirror reads from is another now: it hears nothing more of the one before.
    pub(super) fn cut_line(&mut self) -> Outcome {
        let Some(mirror) = &mut self.beside.mirror else { return Ok(()) };
        if let Some(run) = &mirror.run {
            run.turns.let_go(true);
        }
        self.end_run()?;
        let Some(mirror) = &mut self.beside.mirror else { return Ok(()) };
        mirror.idle = None;
        self.check_mirror()
    }

    /// What is at the destination now verifies, and is what the log published.
    fn check_mirror(&mut self) -> Outcome {
        let Some(mirror) = &mut self.beside.mirror else { return Ok(()) };
        let verify = Verify::open_store(mirror.destination());
        let verified = verify.and_then(|verify| {
            verify.key(self.whose.key.clone()).threads(1).clock(self.host.clock.clone()).run()
        });
        match verified {
            Ok(report) => {
                let violation =
                    report.findings.iter().find(|finding| finding.severity == Severity::Violation);
                must!(violation.is_none() && report.anchored, "the mirror: {violation:?}");
                let note = mirror.machine.read("copy/checkpoint").ok_or("the mirror has no checkpoint")?;
                let checkpoint = checkpoint_of(&note)?;
                let published = self.model.published.contains_key(&(checkpoint.size, checkpoint.root));
                must!(published, "the mirror has {} frames, which were never published", checkpoint.size);
                let size = checkpoint.size;
                must!(size >= mirror.frames, "the mirror had {} frames, and has {size}", mirror.frames);
                // A name whose directory is not synced, as that failed or the mirror was stopped before, goes with a power cut.
                if size > mirror.frames
                    && let Some(note) = mirror.machine.crash(0).read("copy/checkpoint")
                {
                    mirror.frames = mirror.frames.max(checkpoint_of(&note)?.size);
                }
                Ok(())
            }
            Err(error) => {
                let is_none = error.kind() == ErrorKind::Unavailable && mirror.frames == 0;
                must!(is_none, "the mirror: {:?}: {error}", error.kind());
                Ok(())
            }
        }
    }

    /// Where nothing fails, the mirror ends as the log is.
    pub(super) fn finish_mirror(&mut self) -> Outcome {
        let Some(mirror) = &mut self.beside.mirror else { return Ok(()) };
        if let Some(run) = &mirror.run {
            run.turns.let_go(false);
        }
        self.end_run()?;
        let source = self.host.joined()?;
        let Some(mirror) = &mut self.beside.mirror else { return Ok(()) };
        mirror.idle = None;
        mirror.machine = mirror.machine.kill();
        let opened = Mirror::open_stores(source.clone(), mirror.destination(), Some(self.whose.key.clone()));
        sound("shipping at last", opened.and_then(|mut mirror| mirror.poll(|_| {})))?;
        let note = mirror.machine.read("copy/checkpoint").ok_or("the mirror has no checkpoint")?;
        let own = super::observed::checkpoint(&self.host)?.0;
        let config = mirror.machine.read("copy/bulla.toml");
        must!(checkpoint_of(&note)? == own, "the mirror has another checkpoint than {own:?}");
        must!(config == self.host.read_of_log("bulla.toml").ok(), "the mirror has another configuration");
        self.check_mirror()?;
        let Some(mirror) = &mut self.beside.mirror else { return Ok(()) };
        mirror.machine = mirror.machine.crash(self.beside.rng.next());
        self.check_mirror()
    }
}

/// A store each of whose operations waits for its turn.
#[derive(Debug)]
struct Turned {
    store: Arc<dyn Store>,
    turns: Arc<Turns>,
    of_source: bool,
}

#[derive(Debug)]
struct TurnedFile {
    file: Box<dyn StoreFile>,
    turns: Arc<Turns>,
    of_source: bool,
}

impl Turned {
    fn file(&self, file: Box<dyn StoreFile>) -> Box<dyn StoreFile> {
        Box::new(TurnedFile { file, turns: self.turns.clone(), of_source: self.of_source })
    }

    fn pass(&self) -> io::Result<()> {
        self.turns.pass(self.of_source)
    }
}

impl Store for Turned {
    fn create(&self, path: &str) -> io::Result<Box<dyn StoreFile>> {
        self.pass()?;
        Ok(self.file(self.store.create(path)?))
    }

    fn open(&self, path: &str) -> io::Result<Box<dyn StoreFile>> {
        self.pass()?;
        Ok(self.file(self.store.open(path)?))
    }

    fn open_write(&self, path: &str) -> io::Result<Box<dyn StoreFile>> {
        self.pass()?;
        Ok(self.file(self.store.open_write(path)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.pass()?;
        self.store.rename(from, to)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.pass()?;
        self.store.remove(path)
    }

    fn list(&self, directory: &str) -> io::Result<Vec<Item>> {
        self.pass()?;
        self.store.list(directory)
    }

    fn create_directory(&self, path: &str) -> io::Result<()> {
        self.pass()?;
        self.store.create_directory(path)
    }

    fn remove_directory(&self, path: &str) -> io::Result<()> {
        self.pass()?;
        self.store.remove_directory(path)
    }

    fn sync_directory(&self, path: &str) -> io::Result<()> {
        self.pass()?;
        self.store.sync_directory(path)
    }

    fn lock(&self, path: &str) -> io::Result<Box<dyn Lock>> {
        self.pass()?;
        self.store.lock(path)
    }

    fn is_locked(&self, path: &str) -> io::Result<bool> {
        self.pass()?;
        self.store.is_locked(path)
    }

    fn directory(&self) -> Option<&FileSystem> {
        self.store.directory()
    }

    fn paths(&self) -> Option<&dyn bulla::store::Paths> {
        self.store.paths()
    }

    fn describe(&self, path: &str) -> String {
        self.store.describe(path)
    }
}

impl StoreFile for TurnedFile {
    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.turns.pass(self.of_source)?;
        self.file.read_at(buffer, offset)
    }

    fn write_at(&self, buffers: &mut [IoSlice<'_>], offset: u64) -> io::Result<()> {
        self.turns.pass(self.of_source)?;
        self.file.write_at(buffers, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.turns.pass(self.of_source)?;
        self.file.sync()
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.turns.pass(self.of_source)?;
        self.file.set_length(length)
    }
}

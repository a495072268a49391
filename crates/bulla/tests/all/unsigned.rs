//! What follows the checkpoint: said to be signed by nobody, bound by the keys that are at hand, and as old as it is.

use crate::damage::image::Image;
use crate::damage::layout::{HEAD, Layout, SEAL};
use crate::damage::world::{Level, Mask, RECIPIENT, World, environment};
use bulla::environment::{AesGcm, Clock, Environment, Interrupt};
use bulla::event::Event;
use bulla::{
    Configure, Entry, ErrorKind, Export, Finding, FindingKind, Init, Log, Options, Reader, Report, Result,
    Severity, Step, Verify, info_of,
};
use bulla_testkit::Memory;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

/// The kinds of the violations in a report.
fn violations(report: &Report) -> BTreeSet<&'static str> {
    let violations = report.findings.iter().filter(|finding| finding.severity == Severity::Violation);
    violations.map(|finding| finding.kind.name()).collect()
}

/// What a report tells of a tail that nobody has signed.
fn unsigned(report: &Report) -> Option<&Finding> {
    report.findings.iter().find(|finding| finding.kind == FindingKind::UnsignedTail)
}

/// A killed log, what its writing host keeps of it, and where in its last segment what is not signed begins.
struct Killed {
    world: World,
    state: Vec<u8>,
    path: String,
    from: usize,
}

/// Two signed blocks, then a gap and three blocks that are not.
fn killed(seed: u64) -> Killed {
    let mut world = World::new(seed);
    let log = world.open();
    world.block(&log, 3);
    world.block(&log, 1);
    log.flush().unwrap();
    world.gap(&log, 2);
    world.block(&log, 2);
    world.block(&log, 2);
    world.die(log, 2, 0);
    let image = world.made().image;
    let state = world.machine.read("audit.keys/seal.state").unwrap();
    let first = Layout::of(&image).counted().nth(3).unwrap().clone();
    Killed { world, state, path: format!("segments/{}", first.segment), from: first.offset }
}

impl Killed {
    /// What a verification says of these files with the seal key, the seal state or both.
    fn with_keys(&self, image: &Image) -> Vec<Report> {
        let made = self.world.made();
        let verify = || Verify::open_store(Arc::new(image.clone())).unwrap().key(made.key.clone()).threads(1);
        let sealed = || verify().seal_key(&made.seal_key).unwrap();
        let each =
            [sealed(), verify().seal_state(&self.state).unwrap(), sealed().seal_state(&self.state).unwrap()];
        each.map(|verify| verify.run().unwrap()).into()
    }

    /// Whether the log opens with these files in the place of its own, and if not, why.
    fn opens(&self, image: &Image) -> Result<()> {
        let mut world = self.world.copy();
        world.put(image);
        world.try_open().map(drop)
    }

    /// Tells that it is the notice at every level, and that the log opens.
    fn is_notice(&self, image: &Image, what: &str) {
        let made = self.world.made();
        let public = [Level::Public, Level::Key].map(|level| made.verify(image, level).unwrap());
        for report in public.into_iter().chain(self.with_keys(image)) {
            assert!(report.ok, "{what}: {:#?}", report.findings);
        }
        self.opens(image).unwrap();
    }

    /// Tells that it is the notice without keys, and with them a violation of this kind.
    fn is_bound(&self, image: &Image, kind: &str, what: &str) {
        let made = self.world.made();
        let public = made.verify(image, Level::Key).unwrap();
        assert!(public.ok && unsigned(&public).is_some(), "{what}: {:#?}", public.findings);
        for report in self.with_keys(image) {
            assert_eq!(violations(&report), BTreeSet::from([kind]), "{what}: {:#?}", report.findings);
        }
    }
}

#[test]
fn a_log_whose_writer_was_killed_is_sound_up_to_its_checkpoint() {
    let killed = killed(51);
    let made = killed.world.made();
    let whole = made.image.get(&killed.path).to_vec();
    // Wherever the last write was cut.
    for cut in killed.from..=whole.len() {
        let image = made.image.with(&killed.path, whole[..cut].to_vec());
        if cut % 7 == 0 || cut > whole.len() - 300 {
            killed.is_notice(&image, &format!("cut to {cut}"));
        }
    }
    // Of a write that was not finished there are zeros.
    for from in [killed.from, killed.from + 5, killed.from + 190, whole.len() - 300, whole.len() - 7] {
        let mut torn = whole.clone();
        torn[from..].fill(0);
        killed.is_notice(&made.image.with(&killed.path, torn), &format!("zeros from {from}"));
    }
    let report = made.verify(&made.image, Level::Identity).unwrap();
    let told = unsigned(&report).unwrap();
    let bytes = whole.len() - killed.from;
    let said = format!("verified up to frame 2; {bytes} bytes after it are not signed yet");
    assert!(told.detail.starts_with(&said), "{told}");
    assert!(told.detail.contains("whoever holds the storage may have written or shortened them"), "{told}");
    assert_eq!((told.severity, told.frame, told.last_frame), (Severity::Notice, Some(3), Some(6)));
    // Nobody is shown an entry of it.
    let mut out = Vec::new();
    let export = Export::open_store(Arc::new(made.image.clone())).unwrap().identity(Arc::new(Mask));
    assert_eq!(export.run(&mut out).unwrap().entries, 4);
}

#[test]
fn who_knows_that_the_log_was_closed_is_told_of_any_tail() {
    let killed = killed(52);
    let made = killed.world.made();
    let strict = |image: &Image| {
        let verify = Verify::open_store(Arc::new(image.clone())).unwrap().key(made.key.clone());
        verify.strict(true).run().unwrap()
    };
    assert_eq!(violations(&strict(&made.image)), BTreeSet::from(["unclosed"]));
    let whole = made.image.get(&killed.path);
    for cut in [killed.from + 1, whole.len() - 1] {
        let image = made.image.with(&killed.path, whole[..cut].to_vec());
        assert_eq!(violations(&strict(&image)), BTreeSet::from(["unclosed"]), "cut to {cut}");
    }
    assert!(strict(&made.image.with(&killed.path, whole[..killed.from].to_vec())).ok);
    // A lock that somebody holds does not make it the work of a writer.
    let mut world = World::new(53);
    let log = world.open();
    world.block(&log, 1);
    let verify = |strict: bool| {
        Verify::open_store(Arc::new(world.machine.store("audit"))).unwrap().strict(strict).run().unwrap()
    };
    assert!(verify(false).ok && verify(false).pending > 0);
    assert_eq!(violations(&verify(true)), BTreeSet::from(["unclosed"]));
}

#[test]
fn with_keys_a_tail_is_judged_as_opening_would() {
    let killed = killed(54);
    let made = killed.world.made();
    let whole = made.image.get(&killed.path).to_vec();
    let layout = Layout::of(&made.image);
    let tail = layout.counted().filter(|frame| frame.number > 2).collect::<Vec<_>>();
    let with = |content: Vec<u8>| made.image.with(&killed.path, content);
    let flipped = |at: usize| made.image.flipped(&killed.path, at, |byte| byte ^ 1);
    // Damage that a later group follows.
    for frame in &tail[..tail.len() - 1] {
        for at in [0, 21, HEAD - 1, HEAD + 1, frame.length - 1].map(|at| frame.offset + at) {
            let image = flipped(at.min(frame.end() - 1));
            killed.is_bound(&image, "tail-damaged", &format!("byte {at} of frame {}", frame.number));
            assert_eq!(killed.opens(&image).unwrap_err().kind(), ErrorKind::Tampered);
        }
        let cut = [&whole[..frame.offset], &whole[frame.end()..]].concat();
        killed.is_bound(&with(cut), "tail-damaged", &format!("without frame {}", frame.number));
    }
    // The last frame: a seal that fails, bytes that no write of a frame leaves, a frame that was there before.
    let last = tail.last().unwrap();
    killed.is_bound(&flipped(last.end() - SEAL), "tail-damaged", "a seal");
    killed.is_bound(&flipped(last.offset + 24 + 80), "tail-damaged", "a root that was not sealed");
    killed.is_bound(&flipped(last.offset), "tail-damaged", "no mark");
    killed.is_bound(&with([&whole[..], b"?"].concat()), "tail-damaged", "garbage");
    let again = &whole[last.offset..last.end()];
    killed.is_bound(&with([&whole[..], again].concat()), "tail-damaged", "a frame twice");
    for zeros in [1, HEAD, 5000, 3 << 20] {
        let behind = |frame: &[u8]| with([&whole[..], &vec![0; zeros], frame].concat());
        killed.is_bound(&behind(again), "tail-damaged", &format!("a frame twice, behind {zeros} zeros"));
        let epoch = layout.frame(0);
        let first = &made.image.get(&format!("segments/{}", epoch.segment))[epoch.offset..epoch.end()];
        killed.is_bound(&behind(first), "tail-damaged", &format!("the first frame, behind {zeros} zeros"));
        killed.is_bound(&behind(&again[..HEAD]), "tail-damaged", &format!("a head, behind {zeros} zeros"));
    }
    // The next frame, whole, anywhere but where it would have been written.
    let moved = [&whole[..last.offset], &[0; 300], again].concat();
    killed.is_bound(&with(moved), "tail-damaged", "the next frame behind zeros");
    // What a crash can leave of the last frame is no violation: its body was not written whole.
    killed.is_notice(&flipped(last.offset + HEAD + 1), "a torn body");
    // A segment that begins beyond the end.
    let far = made.image.with("segments/00000000000000000099.seg", b"garbage".to_vec());
    killed.is_bound(&far, "tail-damaged", "a segment beyond the end");
    assert_eq!(killed.opens(&far).unwrap_err().kind(), ErrorKind::Tampered);
}

#[test]
fn frames_of_a_write_whose_beginning_never_reached_the_medium_are_no_violation() {
    let mut world = World::new(58);
    let log = world.open();
    world.block(&log, 3);
    log.flush().unwrap();
    for rows in [2, 1, 3] {
        world.seal(&log, rows);
    }
    world.die(log, 1, 0);
    let made = world.made();
    let state = world.machine.read("audit.keys/seal.state").unwrap();
    let layout = Layout::of(&made.image);
    let write = layout.counted().filter(|frame| frame.number > 1).collect::<Vec<_>>();
    let [first, second, _, _] = write[..] else { panic!("{} frames in the write", write.len()) };
    let (path, from) = (format!("segments/{}", first.segment), first.offset);
    let whole = made.image.get(&path).to_vec();
    let killed = Killed { world, state, path, from };
    let without = |range: std::ops::Range<usize>| {
        let mut torn = whole.clone();
        torn[range].fill(0);
        torn
    };
    for range in [from..first.end(), from..second.end(), from..from + HEAD, from + HEAD..second.offset + 9] {
        let what = format!("zeros in {range:?}");
        killed.is_notice(&made.image.with(&killed.path, without(range)), &what);
    }
}

#[test]
fn what_the_seal_state_knows_of_has_to_be_there() {
    let mut world = World::new(55);
    let log = world.open();
    world.block(&log, 2);
    log.flush().unwrap();
    let older = world.made();
    world.block(&log, 2);
    log.flush().unwrap();
    world.block(&log, 1);
    world.die(log, 1, 0);
    let (made, state) = (world.made(), world.machine.read("audit.keys/seal.state").unwrap());
    let verify = |image: &Image| {
        let verify = Verify::open_store(Arc::new(image.clone())).unwrap().key(made.key.clone());
        verify.seal_state(&state).unwrap().run().unwrap()
    };
    assert!(verify(&made.image).ok, "{:#?}", verify(&made.image).findings);
    // An older copy is sound in itself.
    assert!(older.verify(&older.image, Level::Identity).unwrap().ok);
    assert_eq!(violations(&verify(&older.image)), BTreeSet::from(["frames-missing"]));
    // With the frames, and an older checkpoint, all is there: the writer was killed before it published the newer one.
    let mut unpublished = made.image.clone();
    unpublished.put("checkpoint", older.image.get("checkpoint").to_vec());
    assert!(verify(&unpublished).ok, "{:#?}", verify(&unpublished).findings);
    let layout = Layout::of(&made.image);
    let known = layout.frame(2);
    let path = format!("segments/{}", known.segment);
    let cut = unpublished.with(&path, made.image.get(&path)[..known.end() - 1].to_vec());
    assert_eq!(violations(&verify(&cut)), BTreeSet::from(["frames-missing"]));
    // Another frame in its place.
    let other = unpublished.flipped(&path, known.offset + 24 + 80, |byte| byte ^ 1);
    assert_eq!(violations(&verify(&other)), BTreeSet::from(["root-mismatch"]));
    // The state of another log, and none.
    let mut foreign = World::new(56);
    let log = foreign.open();
    foreign.block(&log, 1);
    log.close().unwrap();
    let foreign = foreign.machine.read("audit.keys/seal.state").unwrap();
    let open = || Verify::open_store(Arc::new(made.image.clone())).unwrap();
    let report = open().seal_state(&foreign).unwrap().run().unwrap();
    assert_eq!(violations(&report), BTreeSet::from(["key-mismatch"]));
    assert_eq!(open().seal_state(b"none").err().map(|error| error.kind()), Some(ErrorKind::Unavailable));
}

/// Copies as docs/operating.md says, while the log goes on: at every step of a writer that commits, signs, abandons a segment,
/// rotates and closes, the checkpoint; and the rest at every later one.
#[test]
fn a_copy_made_beside_a_writer_is_sound() {
    let mut world = World::new(57);
    let mut moments = vec![world.made().image];
    let log = world.open();
    for step in 0..9 {
        match step {
            3 => world.gap(&log, 2),
            5 => world.abandon(&log, 1),
            7 => drop(log.rotate().unwrap()),
            _ => world.block(&log, 2),
        }
        moments.push(world.made().image);
        if step % 2 == 0 {
            log.flush().unwrap();
            moments.push(world.made().image);
        }
    }
    log.close().unwrap();
    moments.push(world.made().image);
    let made = world.made();
    let (mut copies, mut tails) = (0, 0);
    for (at, early) in moments.iter().enumerate() {
        for late in &moments[at..] {
            let mut copy = late.clone();
            for path in ["checkpoint", "bulla.toml"] {
                copy.put(path, early.get(path).to_vec());
            }
            // What is copied last may be cut anywhere.
            let last = copy.paths().into_iter().rfind(|path| path.ends_with(".seg"));
            let signed = last.as_ref().filter(|path| early.paths().contains(path));
            let signed = signed.map_or(0, |path| early.get(path).len());
            let length = last.as_ref().map_or(0, |path| copy.get(path).len());
            for cut in [length, signed + length.saturating_sub(signed) / 2] {
                let copy = match &last {
                    Some(path) => copy.with(path, copy.get(path)[..cut].to_vec()),
                    None => copy.clone(),
                };
                for level in [Level::Public, Level::Key] {
                    let report = made.verify(&copy, level).unwrap();
                    assert!(report.ok, "{at}, cut to {cut}: {:#?}", report.findings);
                    tails += u64::from(unsigned(&report).is_some());
                }
                copies += 1;
            }
        }
    }
    assert!(copies > 100 && tails > 50, "{copies}, {tails}");
}

const SECOND: i64 = 1_000_000_000;
const START: i64 = 1_800_000_000;

/// A clock that is set.
struct Set(AtomicI64);

impl Set {
    fn to(&self, seconds: i64) {
        self.0.store(seconds * SECOND, Ordering::Relaxed);
    }
}

impl Clock for Set {
    fn now(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }

    fn wait(&self, _: Duration, _: &Interrupt) {}
}

/// A log that promises a heartbeat every so many seconds, or none, its keys, and the writing host's clock.
struct Beating {
    store: Arc<Memory>,
    keys: Arc<Memory>,
    clock: Arc<Set>,
    environment: Environment,
}

impl Beating {
    fn new(heartbeat: Option<u64>) -> Self {
        let (store, keys) = (Arc::new(Memory::new()), Arc::new(Memory::new()));
        let clock = Arc::new(Set(AtomicI64::new(START * SECOND)));
        let environment = Environment { clock: clock.clone(), ..environment(61, Arc::new(AesGcm)) };
        let init = Init::default().erasure(false).recipient(RECIPIENT);
        let init = heartbeat.into_iter().fold(init, |init, time| init.heartbeat(Duration::from_secs(time)));
        init.create_in(&*store, &*keys, &environment).unwrap();
        Beating { store, keys, clock, environment }
    }

    fn options() -> Options {
        Options::default().memory(64 << 20).writers(1)
    }

    fn stepped(&self) -> Log {
        let (store, keys) = (self.store.clone(), self.keys.clone());
        Log::open_stepped(store, keys, Self::options(), self.environment.clone()).unwrap()
    }

    /// Commits and signs what was asked for.
    fn settle(log: &Log) {
        while log.step(Step::Seal).unwrap() {}
        log.step(Step::Commit).unwrap();
        log.step(Step::Checkpoint).unwrap();
    }

    fn newer_than(&self, seconds: u64, now: i64) -> Result<Report> {
        let verify = Verify::open_store(self.store.clone()).unwrap().newer_than(Duration::from_secs(seconds));
        verify.clock(Arc::new(Set(AtomicI64::new(now * SECOND)))).run()
    }

    fn signed_time(&self) -> Option<i64> {
        info_of(self.store.clone()).unwrap().signed_time
    }
}

#[test]
fn a_heartbeat_comes_where_no_epoch_and_no_event_came_for_so_long() {
    let log = Beating::new(Some(60));
    assert_eq!(log.signed_time(), None);
    let open = log.stepped();
    Beating::settle(&open);
    assert_eq!(log.signed_time(), Some(START));
    log.clock.to(START + 59);
    assert!(!open.step(Step::Heartbeat).unwrap());
    // Entries are of other clocks.
    let mut producer = open.producer().unwrap();
    producer.append(&Entry::new("read", "it").time((START + 900) * SECOND)).unwrap();
    let _ = producer.flush().unwrap();
    Beating::settle(&open);
    assert_eq!(log.signed_time(), Some(START));
    log.clock.to(START + 60);
    assert!(open.step(Step::Heartbeat).unwrap());
    assert!(!open.step(Step::Heartbeat).unwrap(), "one is enough");
    assert_eq!(log.signed_time(), Some(START), "it is asked for, and not signed yet");
    Beating::settle(&open);
    assert_eq!(log.signed_time(), Some(START + 60));
    let report = Verify::open_store(log.store.clone()).unwrap().run().unwrap();
    assert_eq!((report.ok, report.signed_time), (true, Some(START + 60)));
    let mut told = Vec::new();
    let listed = Reader::open_store(log.store.clone()).unwrap().events(|logged| {
        told.push((logged.time, logged.event.unwrap()));
        Ok(())
    });
    listed.unwrap();
    assert_eq!(told, [(START + 60, Event::Heartbeat {})]);
    // An epoch is as good as one; a clock that was put back does not silence it.
    log.clock.to(START + 100);
    open.rotate().unwrap();
    log.clock.to(START + 159);
    assert!(!open.step(Step::Heartbeat).unwrap());
    log.clock.to(START - 5000);
    assert!(open.step(Step::Heartbeat).unwrap());
    drop(producer);
    open.close().unwrap();
    assert_eq!(log.signed_time(), Some(START - 5000));
}

#[test]
fn a_log_that_ceased_to_follow_is_stale() {
    let log = Beating::new(Some(60));
    assert_eq!(
        violations(&log.newer_than(600, START).unwrap()),
        BTreeSet::from(["stale"]),
        "nothing is signed"
    );
    log.stepped().close().unwrap();
    for (now, stale) in
        [(START, false), (START + 600, false), (START + 601, true), (START - 600, false), (START - 601, true)]
    {
        let report = log.newer_than(600, now).unwrap();
        assert_eq!(violations(&report).contains("stale"), stale, "{now}: {:#?}", report.findings);
        assert_eq!(report.ok, !stale);
    }
    // What is asked for has to be more than what is promised.
    for seconds in [1, 60] {
        let refused = log.newer_than(seconds, START).unwrap_err();
        assert!(
            refused.kind() == ErrorKind::Invalid && refused.to_string().contains("every 60 s"),
            "{refused}"
        );
    }
    let silent = Beating::new(None);
    let open = silent.stepped();
    silent.clock.to(START + 100_000);
    assert!(!open.step(Step::Heartbeat).unwrap(), "off by default");
    open.close().unwrap();
    let refused = silent.newer_than(600, START).unwrap_err();
    assert!(
        refused.kind() == ErrorKind::Invalid && refused.to_string().contains("no heartbeat"),
        "{refused}"
    );
    // The promise cannot be taken back by who holds the storage, nor made in the place of the writer.
    for (log, from, to) in
        [(&log, "heartbeat = \"60 s\"\n", ""), (&silent, "erasure = ", "heartbeat = \"5 s\"\nerasure = ")]
    {
        let image = Image::of_store(&*log.store);
        let text = String::from_utf8(image.get("bulla.toml").to_vec()).unwrap();
        assert!(text.contains(from), "{text}");
        let edited = Arc::new(image.with("bulla.toml", text.replacen(from, to, 1).into_bytes()));
        let report =
            Verify::open_store(edited.clone()).unwrap().newer_than(Duration::from_secs(600)).run().unwrap();
        assert!(violations(&report).contains("config-mismatch"), "{:#?}", report.findings);
        assert_eq!(info_of(edited).unwrap_err().kind(), ErrorKind::Tampered);
    }
}

#[test]
fn a_heartbeat_is_changed_as_part_of_the_log() {
    let log = Beating::new(None);
    log.stepped().close().unwrap();
    let set = |value: &str| {
        let configure = Configure::default().set("log.heartbeat", value).unwrap();
        configure.apply_in(log.store.clone(), log.keys.clone(), &log.environment).unwrap()
    };
    let changed = set("2 min");
    assert!(changed.log.is_some() && changed.keys == ["heartbeat"], "{changed:?}");
    assert_eq!(info_of(log.store.clone()).unwrap().heartbeat, Some(Duration::from_secs(120)));
    assert!(!set("120 s").changed);
    // Of a log at work it counts at once.
    let open = log.stepped();
    log.clock.to(START + 30);
    assert!(!open.step(Step::Heartbeat).unwrap());
    open.configure(&Configure::default().set("log.heartbeat", "10 s").unwrap()).unwrap();
    log.clock.to(START + 40);
    assert!(open.step(Step::Heartbeat).unwrap());
    open.close().unwrap();
    let off = Configure::default().unset("log.heartbeat").unwrap();
    off.apply_in(log.store.clone(), log.keys.clone(), &log.environment).unwrap();
    assert_eq!(info_of(log.store.clone()).unwrap().heartbeat, None);
    assert!(Verify::open_store(log.store.clone()).unwrap().run().unwrap().ok);
    for value in ["0 s", "999 ms", "25 h", "often", "60"] {
        let refused = Configure::default().set("log.heartbeat", value).unwrap_err();
        assert!(
            refused.kind() == ErrorKind::Invalid && refused.to_string().contains("heartbeat"),
            "{refused}"
        );
    }
    let init = Init::default().erasure(false).heartbeat(Duration::from_millis(999));
    let refused = init.create_in(&Memory::new(), &Memory::new(), &log.environment).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
}

/// The thread that signs does it by itself, in every mode.
#[test]
fn a_log_with_threads_beats_by_itself() {
    use bulla::Durability::{Group, Interval, Os};
    let modes = [Group, Interval(Duration::from_secs(3600)), Os];
    let logs = modes.map(|mode| {
        let log = Beating::new(Some(1));
        let options = Beating::options().durability(mode).checkpoint_interval(Duration::from_secs(3600));
        let (store, keys) = (log.store.clone(), log.keys.clone());
        let open = Log::open_stores(store, keys, options, log.environment.clone()).unwrap();
        open.flush().unwrap();
        log.clock.to(START + 5);
        (log, open)
    });
    let deadline = Instant::now() + Duration::from_secs(60);
    for (log, open) in logs {
        while log.signed_time() != Some(START + 5) {
            assert!(Instant::now() < deadline, "no heartbeat within a minute");
            std::thread::sleep(Duration::from_millis(20));
        }
        open.close().unwrap();
    }
}

//! The world around a log under test, and what must hold of the log in it.

use super::scenario::{ELSEWHERE, PIN, place};
use crate::helpers::Rng;
use crate::register::ByName;
use bulla::environment::{AesGcm, Cipher, Clock, Environment, Interrupt, KeyWrap, Random, apply_key_stream};
use bulla::keys::epoch::EpochSecret;
use bulla::keys::recipients::Identity;
use bulla::store::Store;
use bulla::text::jsonl;
use bulla::{Entry, Export, FindingKind, Place, Severity, VerifierKey, Verify};
use bulla_proof::{Checkpoint, Frontier, Hash, SignedNote, tile, tree};
use bulla_testkit::fault::Faults;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A result whose error says what must hold and does not.
pub(crate) type Outcome<T = ()> = Result<T, String>;

/// Fails with a message unless a condition holds.
macro_rules! must {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err(format!($($message)+));
        }
    };
}
pub(crate) use must;

/// A clock that goes on by a millisecond whenever it is asked, and on which waiting takes no time.
struct SimulatedClock(AtomicI64);

impl Clock for SimulatedClock {
    fn now(&self) -> i64 {
        self.0.fetch_add(1_000_000, Ordering::Relaxed)
    }

    fn wait(&self, _: Duration, _: &Interrupt) {}
}

struct SeededRandom(Mutex<Rng>);

impl Random for SeededRandom {
    fn fill(&self, bytes: &mut [u8]) -> bulla::Result<()> {
        let mut rng = self.0.lock().expect("nothing panics here");
        bytes.fill_with(|| (rng.next() >> 32) as u8);
        Ok(())
    }
}

/// Keys, and the frames they were used for.
type Used = HashSet<([u8; 32], u64)>;

/// AES-256-GCM that remembers every key and nonce it was used with: none may come twice, in any future of a log.
#[derive(Clone, Default)]
pub(crate) struct Recorder {
    used: Arc<Mutex<Used>>,
    repeated: Arc<Mutex<Vec<u64>>>,
}

impl Recorder {
    /// Another recorder that knows what this one knows.
    pub(super) fn fork(&self) -> Recorder {
        let used = self.used.lock().expect("nothing panics here").clone();
        Recorder { used: Arc::new(Mutex::new(used)), repeated: Arc::default() }
    }

    pub(crate) fn check(&self) -> Outcome {
        let repeated = self.repeated.lock().expect("nothing panics here");
        must!(repeated.is_empty(), "a key and nonce were used twice, for frames {repeated:?}");
        Ok(())
    }
}

impl Cipher for Recorder {
    fn seal(&self, key: &[u8; 32], frame: u64, additional: &[u8], text: &mut Vec<u8>) -> bulla::Result<()> {
        if !self.used.lock().expect("nothing panics here").insert((*key, frame)) {
            self.repeated.lock().expect("nothing panics here").push(frame);
        }
        AesGcm.seal(key, frame, additional, text)
    }

    fn open(&self, key: &[u8; 32], frame: u64, additional: &[u8], text: &mut Vec<u8>) -> bulla::Result<()> {
        AesGcm.open(key, frame, additional, text)
    }

    fn seal_group(&self, key: &[u8; 32], text: &mut [u8]) -> bulla::Result<()> {
        // No frame has this number, and a group's key no second group.
        if !self.used.lock().expect("nothing panics here").insert((*key, u64::MAX)) {
            self.repeated.lock().expect("nothing panics here").push(u64::MAX);
        }
        apply_key_stream(key, text);
        Ok(())
    }
}

/// Wraps keys without any secrecy, fast and always the same.
pub(crate) struct OpenWrap;

impl KeyWrap for OpenWrap {
    fn wrap(&self, _: &[String], key: &[u8; 32], _: Duration) -> bulla::Result<Vec<u8>> {
        Ok(key.iter().map(|byte| !byte).collect())
    }
}

impl Identity for OpenWrap {
    fn unwrap(&self, wrapped: &[u8]) -> bulla::Result<Option<EpochSecret>> {
        let mut key = [0; 32];
        key.iter_mut().zip(wrapped).for_each(|(key, byte)| *key = !byte);
        Ok(Some(EpochSecret::from(key)))
    }
}

pub(super) fn environment(seed: u64, recorder: &Recorder) -> Environment {
    Environment {
        clock: Arc::new(SimulatedClock(AtomicI64::new(1_700_000_000_000_000_000))),
        random: Arc::new(SeededRandom(Mutex::new(Rng(seed)))),
        cipher: Arc::new(recorder.clone()),
        key_wrap: Arc::new(OpenWrap),
        subjects: Some(Arc::new(ByName)),
        trying_again: None,
        pins: None,
        path_replaced: None,
        backup_paths: None,
    }
}

/// How many entries of each producer.
pub(super) type Counts = BTreeMap<String, u64>;

/// What happened to a log so far: what it must still hold. A clone is another future of it.
#[derive(Clone)]
pub(super) struct History {
    pub(super) seed: u64,
    /// The longest payload of most entries.
    pub(super) payload: u64,
    pub(super) recorder: Recorder,
    /// What was appended.
    pub(super) appended: Counts,
    /// What was acknowledged in a way that survives the end of the process.
    pub(super) written: Counts,
    /// What was acknowledged in a way that survives a power cut.
    pub(super) synced: Counts,
    /// How many entries a session, by the names of its producers, had counted as durable: a power cut takes none of them.
    pub(super) counted: Counts,
    /// Every checkpoint that anybody could have seen.
    pub(super) published: BTreeSet<(u64, Hash)>,
    sessions: u64,
    /// Whether the log is opened with a pin, which lies on another disk of the machine.
    pub(super) pinned: bool,
}

impl History {
    pub(super) fn new(seed: u64, payload: u64) -> History {
        History {
            seed,
            payload,
            recorder: Recorder::default(),
            appended: Counts::new(),
            written: Counts::new(),
            synced: Counts::new(),
            counted: Counts::new(),
            published: BTreeSet::new(),
            sessions: 0,
            pinned: false,
        }
    }

    /// Another future, in which other keys are drawn.
    pub(super) fn fork(&self, seed: u64) -> History {
        History { seed, recorder: self.recorder.fork(), ..self.clone() }
    }

    /// All that a log's files are examined against.
    pub(super) fn state(&self) -> String {
        let History { appended, written, counted, published, sessions, .. } = self;
        let used = self.recorder.used.lock().expect("nothing panics here");
        let used = used.iter().collect::<BTreeSet<_>>();
        format!("{appended:?} {written:?} {counted:?} {published:?} {sessions} {used:?}")
    }

    /// The power was cut.
    pub(super) fn power_cut(&mut self) {
        self.written = self.synced.clone();
    }

    /// A number for the next session: names of producers never come twice.
    pub(super) fn begin_session(&mut self) -> u64 {
        self.sessions += 1;
        self.sessions
    }

    /// Takes down the checkpoint that `machine` shows.
    pub(super) fn note_checkpoint(&mut self, machine: &Faults) {
        if let Some(note) = machine.read("audit/checkpoint") {
            let parsed = SignedNote::parse(&note).and_then(|note| Checkpoint::parse(note.text));
            let checkpoint = parsed.expect("a published checkpoint is whole");
            self.published.insert((checkpoint.size, checkpoint.root));
        }
    }

    /// Calls `take` with entry `index` of producer `name`: always the same one.
    pub(super) fn with_entry<T>(&self, name: &str, index: u64, take: impl FnOnce(&Entry<'_>) -> T) -> T {
        let mut rng = Rng(index << 32 | 7);
        name.bytes()
            .for_each(|byte| rng.0 = rng.0.rotate_left(8) ^ u64::from(byte).wrapping_mul(0x9e37_79b9));
        let length = match rng.below(12) {
            0 => self.payload + rng.below(3 * self.payload),
            _ => rng.below(self.payload + 1),
        };
        // Base 64 of random bytes: it does not compress, and is text in an export.
        const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let payload: Vec<u8> = (0..length).map(|_| DIGITS[(rng.next() >> 58) as usize]).collect();
        let location = format!("{name} {index}");
        let subject = format!("user_{}", index % 3);
        let entry = Entry::new("read", &location).subject(&subject).payload(&payload);
        take(&entry.time(1_700_000_000_000_000_000 + index as i64 * 1_000_003))
    }

    /// What verification may say of the log before it is opened again, with everything that the host has at hand: no
    /// violation, whatever the crash left.
    pub(super) fn check_unopened(&self, machine: &Faults) -> Outcome {
        let state = machine.read("audit.keys/seal.state").ok_or("the seal state is gone")?;
        let seal_key = String::from_utf8(machine.read("audit.keys/seal.key").ok_or("no seal key")?);
        let verify = Verify::open_store(Arc::new(machine.store("audit")))
            .and_then(|verify| verify.seal_key(&seal_key.unwrap_or_default())?.seal_state(&state));
        let mut verify = verify.map_err(|error| error.to_string())?;
        if self.pinned && machine.read(&format!("{ELSEWHERE}{PIN}")).is_some() {
            verify = verify.known_pin(PIN).pins_in(Arc::new(machine.store(ELSEWHERE)));
        }
        let report =
            verify.key(verifier_key(machine)?).threads(1).run().map_err(|error| error.to_string())?;
        let violation = report.findings.iter().find(|finding| finding.severity == Severity::Violation);
        must!(violation.is_none(), "before opening: {violation:?}\n{:#?}", report.findings);
        must!(report.anchored, "before opening: the checkpoint is not the log's");
        // Otherwise whoever takes the host could rewrite what was signed last.
        let next = u64::from_le_bytes(state[56..64].try_into().map_err(|_| "the seal state is short")?);
        must!(next >= report.tree_size, "the checkpoint covers {}, the seal state {next}", report.tree_size);
        Ok(())
    }

    /// What must hold of a log that was closed. What it holds now, it must hold for ever.
    pub(super) fn check_closed(&mut self, machine: &Faults) -> Outcome {
        self.note_checkpoint(machine);
        let store = Arc::new(machine.store("audit"));
        let key = verifier_key(machine)?;
        let seal_key = String::from_utf8(machine.read("audit.keys/seal.key").ok_or("no seal key")?);
        let verify = Verify::open_store(store.clone()).and_then(|verify| {
            verify.key(key.clone()).threads(1).seal_key(&seal_key.unwrap_or_default())?.run()
        });
        let report = verify.map_err(|error| error.to_string())?;
        must!(report.ok && report.anchored && report.pending == 0, "verify: {:#?}", report.findings);
        let allowed = [FindingKind::Abandoned, FindingKind::UnknownFile];
        let strange = report.findings.iter().find(|finding| !allowed.contains(&finding.kind));
        must!(strange.is_none(), "verify: {strange:?}");

        let mut out = Vec::new();
        let export = Export::open_store(store)
            .map(|export| export.key(key).identity(Arc::new(OpenWrap)).group_keys(Arc::new(ByName)));
        let exported = export.and_then(|export| export.run(&mut out)).map_err(|error| error.to_string())?;
        must!(exported.left_out == 0 && exported.entries == report.entries, "left out: {exported:?}");
        let counts = self.check_lines(&out)?;
        must!(counts.values().sum::<u64>() == report.entries, "some entries were not exported");
        for (name, &count) in &self.written {
            let found = counts.get(name).copied().unwrap_or_default();
            must!(found >= count, "{count} entries of {name} were acknowledged, {found} are there");
        }
        for (session, &count) in &self.counted {
            let of_session = counts.iter().filter(|(name, _)| name.starts_with(session));
            let found = of_session.map(|(_, count)| count).sum::<u64>();
            must!(found >= count, "{count} entries of session {session} were durable, {found} are there");
        }
        check_sources(machine, &counts)?;
        self.check_published(machine, report.tree_size)?;
        self.recorder.check()?;
        self.written.clone_from(&counts);
        self.synced = counts;
        Ok(())
    }

    /// What must hold once the power is cut, of a log for which [`History::check_closed`] held: nothing else where it
    /// left every file as it was.
    pub(super) fn check_after_power_cut(&mut self, machine: &Faults) -> Outcome {
        let after = machine.crash(0);
        let paths = after.files();
        let same = |path: &String| after.read(path) == machine.read(path);
        if paths == machine.files() && paths.iter().all(same) { Ok(()) } else { self.check_closed(&after) }
    }

    /// Exported entries are those that were appended, each once, in the order of each producer, without holes.
    fn check_lines(&self, out: &[u8]) -> Outcome<Counts> {
        let mut counts = Counts::new();
        let mut expected = Vec::new();
        for (number, line) in out.split_inclusive(|byte| *byte == b'\n').enumerate() {
            let text = String::from_utf8_lossy(line);
            let location = text.split_once("\"location\":\"").and_then(|(_, rest)| rest.split_once('"'));
            let name = location.and_then(|(location, _)| location.rsplit_once(' ')).map(|(name, _)| name);
            let name = name.ok_or_else(|| format!("line {number} is strange: {text}"))?;
            let index = counts.entry(name.to_owned()).or_default();
            expected.clear();
            self.with_entry(name, *index, |entry| jsonl::write_entry(entry, number as u64, &mut expected));
            must!(expected == line, "entry {number} should be entry {index} of {name}, is {text}");
            *index += 1;
            let appended = self.appended.get(name).copied().unwrap_or_default();
            must!(*index <= appended, "{name} appended {appended} entries only");
        }
        Ok(counts)
    }

    /// Every checkpoint that was ever seen is of a prefix of the log.
    fn check_published(&self, machine: &Faults, size: u64) -> Outcome {
        let last = self.published.last().map_or(0, |(size, _)| *size);
        must!(last <= size, "a checkpoint of size {last} was published, now it is {size}");
        let mut tree = Frontier::new();
        let mut published = self.published.iter().peekable();
        for index in 0.. {
            let width = size.saturating_sub(index * 256).min(256) as u16;
            let bundle = match width {
                0 => Vec::new(),
                _ => {
                    machine.read(&format!("audit/{}", tile::entries_path(index, width))).ok_or("no bundle")?
                }
            };
            let entries = if width == 0 {
                Vec::new()
            } else {
                tile::parse_bundle(&bundle, width).map_err(|e| e.to_string())?
            };
            for entry in entries.into_iter().map(Some).chain([None]) {
                while let Some((at, root)) = published.next_if(|(at, _)| *at == tree.size()) {
                    must!(tree.root() == *root, "the checkpoint of size {at} is not of this log");
                }
                entry.into_iter().for_each(|entry| tree.push(tree::leaf_hash(entry)));
            }
            if width < 256 {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// What the log says of its source is what its entries are of, whether what is kept of that is at hand or all blocks are asked: never
/// one record more, never one less.
fn check_sources(machine: &Faults, counts: &Counts) -> Outcome {
    let of_name = |(name, count): (&String, &u64)| {
        (0..*count).filter_map(|index| place(name, index)).collect::<Vec<_>>()
    };
    let mut places = counts.iter().flat_map(of_name).collect::<Vec<_>>();
    places.sort_by_key(|place| place.range.start);
    let mut expected = Vec::<Place>::new();
    for place in places {
        match expected.last_mut() {
            Some(last) if last.range.end == place.range.start => {
                *last = Place { range: last.range.start..place.range.end, ..place };
            }
            _ => expected.push(place),
        }
    }
    for kept in [true, false] {
        let machine = machine.kill();
        let keys = machine.store("audit.keys");
        if !kept && machine.read("audit.keys/sources.state").is_some() {
            keys.remove("sources.state").map_err(|error| error.to_string())?;
        }
        let sources = bulla::sources_of(Arc::new(machine.store("audit")), &keys);
        let sources = sources.map_err(|error| format!("sources (kept: {kept}): {error}"))?;
        must!(sources.len() <= 1, "there are {} sources", sources.len());
        let found = sources.iter().flat_map(|source| {
            let places = source.ranges.iter().zip(&source.checks);
            places.map(|(range, check)| Place { range: range.clone(), check: *check })
        });
        let found = found.collect::<Vec<_>>();
        must!(found == expected, "sources (kept: {kept}): {found:?}, and entries are of {expected:?}");
        let is_labelled = sources.iter().all(|source| source.label.starts_with(b"session "));
        must!(is_labelled, "sources (kept: {kept}): {sources:?}");
    }
    Ok(())
}

fn verifier_key(machine: &Faults) -> Outcome<VerifierKey> {
    let config = bulla::config::load(&machine.store("audit")).map_err(|error| error.to_string())?;
    Ok(config.0.verifier_key)
}

/// The end of a machine's trace, for a person.
pub(super) fn tail(machine: &Faults) -> String {
    let trace = machine.trace();
    trace[trace.len().saturating_sub(40)..].join("\n")
}

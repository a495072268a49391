//! Logs to be damaged, made by the engine step by step from fixed randomness and time, and how they are verified.

use super::encodings;
use super::image::Image;
use crate::register::ByName;
use bulla::environment::{AesGcm, Cipher, Clock, Environment, Interrupt, KeyWrap, Random};
use bulla::event::Event;
use bulla::keys::epoch::EpochSecret;
use bulla::keys::recipients::Identity;
use bulla::keys::signing::SigningKey;
use bulla::store::Store;
use bulla::{
    Entry, Finding, FindingKind, Init, Log, Options, Place, Producer, Report, Result, SourceId, Step,
    VerifierKey, Verify,
};
use bulla_proof::checkpoint::{Checkpoint, sign_checkpoint};
use bulla_proof::cose::CoseCheckpoint;
use bulla_proof::hash::{Hash, sha256};
use bulla_proof::tree::{Frontier, leaf_hash};
use bulla_testkit::fault::{Fault, Faults};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// Some age recipient: the tests' own wrapping does not look at it.
pub(crate) const RECIPIENT: &str = "age1wwwqy5ealr6ts9hg0jj3pgglvfz8zv7n70c57vmgwygh0g39s4tqxqgw8j";

/// Wraps a key by a mask.
pub(crate) struct Mask;

impl KeyWrap for Mask {
    fn wrap(&self, _: &[String], key: &[u8; 32], _: Duration) -> Result<Vec<u8>> {
        Ok(key.iter().map(|byte| byte ^ 0xa5).collect())
    }
}

impl Identity for Mask {
    fn unwrap(&self, wrapped: &[u8]) -> Result<Option<EpochSecret>> {
        let key = wrapped.iter().map(|byte| byte ^ 0xa5).collect::<Vec<_>>();
        Ok(<[u8; 32]>::try_from(key).ok().map(EpochSecret::from))
    }
}

/// Bytes that follow from a seed.
struct Seeded(u64, AtomicU64);

impl Random for Seeded {
    fn fill(&self, bytes: &mut [u8]) -> Result<()> {
        for piece in bytes.chunks_mut(32) {
            let number = self.1.fetch_add(1, Ordering::Relaxed);
            let hash = sha256(&[&self.0.to_le_bytes(), &number.to_le_bytes()]);
            piece.copy_from_slice(&hash.0[..piece.len()]);
        }
        Ok(())
    }
}

/// A clock that moves by a bit with each look.
struct Ticking(AtomicI64);

impl Clock for Ticking {
    fn now(&self) -> i64 {
        self.0.fetch_add(1_234_567, Ordering::Relaxed)
    }

    fn wait(&self, duration: Duration, _: &Interrupt) {
        self.0.fetch_add(i64::try_from(duration.as_nanos()).unwrap(), Ordering::Relaxed);
    }
}

/// AES-GCM that can be told to refuse.
#[derive(Default)]
struct Refusing(AtomicBool);

impl Cipher for Refusing {
    fn seal(&self, key: &[u8; 32], frame: u64, additional: &[u8], text: &mut Vec<u8>) -> Result<()> {
        match self.0.load(Ordering::Relaxed) {
            true => Err(Event::decode(b"refused, as told").unwrap_err()),
            false => AesGcm.seal(key, frame, additional, text),
        }
    }

    fn open(&self, key: &[u8; 32], frame: u64, additional: &[u8], text: &mut Vec<u8>) -> Result<()> {
        AesGcm.open(key, frame, additional, text)
    }
}

/// A log and what its owner keeps elsewhere.
#[derive(Clone)]
pub(crate) struct Made {
    pub(crate) image: Image,
    pub(crate) key: VerifierKey,
    pub(crate) seal_key: String,
}

/// A machine with a log on it.
pub(crate) struct World {
    pub(crate) machine: Faults,
    environment: Environment,
    refusing: Arc<Refusing>,
    key: VerifierKey,
    entries: u64,
}

/// Fixed randomness and time.
pub(crate) fn environment(seed: u64, cipher: Arc<dyn Cipher>) -> Environment {
    Environment {
        clock: Arc::new(Ticking(AtomicI64::new(1_700_000_000_000_000_000))),
        random: Arc::new(Seeded(seed, AtomicU64::new(0))),
        cipher,
        key_wrap: Arc::new(Mask),
        subjects: None,
        trying_again: None,
        pins: None,
        path_replaced: None,
        backup_paths: None,
    }
}

impl World {
    pub(crate) fn new(seed: u64) -> World {
        World::with_erasure(seed, false)
    }

    /// With a log whose entries are grouped by their data subjects.
    fn grouped(seed: u64) -> World {
        World::with_erasure(seed, true)
    }

    fn with_erasure(seed: u64, erasure: bool) -> World {
        let machine = Faults::new();
        let refusing = Arc::new(Refusing::default());
        let environment =
            Environment { subjects: Some(Arc::new(ByName)), ..environment(seed, refusing.clone()) };
        let init = Init::default()
            .origin("example.com/damage")
            .recipient(RECIPIENT)
            .erasure(erasure)
            .common(Some(8));
        let created =
            init.create_in(&machine.store("audit"), &machine.store("audit.keys"), &environment).unwrap();
        World { machine, environment, refusing, key: created.verifier_key, entries: 0 }
    }

    pub(crate) fn open(&self) -> Log {
        self.try_open().unwrap()
    }

    pub(crate) fn try_open(&self) -> Result<Log> {
        let options = Options::default().segment_size(64 << 10).memory(64 << 20).writers(1);
        let (log, keys) = (self.machine.store("audit"), self.machine.store("audit.keys"));
        Log::open_stepped(Arc::new(log), Arc::new(keys), options, self.environment.clone())
    }

    /// The same log on a machine of its own, where nobody has it open.
    pub(crate) fn copy(&self) -> World {
        let (environment, refusing, key) =
            (self.environment.clone(), self.refusing.clone(), self.key.clone());
        World { machine: self.machine.kill(), environment, refusing, key, entries: self.entries }
    }

    /// Puts these files in the place of the log's own.
    pub(crate) fn put(&mut self, image: &Image) {
        for path in self.machine.files().iter().filter(|path| path.starts_with("audit/")) {
            self.machine.remove_file(path);
        }
        for path in image.paths() {
            self.machine.overwrite(&format!("audit/{path}"), image.get(&path));
        }
    }

    /// Appends and seals a block of `rows` entries, without committing it.
    pub(crate) fn seal(&mut self, log: &Log, rows: u64) {
        self.seal_with(log, rows, append);
    }

    fn seal_with(&mut self, log: &Log, rows: u64, append: impl Fn(&mut Producer, u64)) {
        let mut producer = log.producer().unwrap();
        for _ in 0..rows {
            append(&mut producer, self.entries);
            self.entries += 1;
        }
        let _ = producer.flush().unwrap();
        while log.step(Step::Seal).unwrap() {}
    }

    /// Appends, seals and commits a block.
    pub(crate) fn block(&mut self, log: &Log, rows: u64) {
        self.seal(log, rows);
        log.step(Step::Commit).unwrap();
        self.drain(log);
    }

    /// A block that has every encoding of columns.
    pub(crate) fn block_of_every_encoding(&mut self, log: &Log) {
        self.seal_with(log, encodings::ENTRIES, encodings::append);
        log.step(Step::Commit).unwrap();
        self.drain(log);
    }

    /// Blocks that are as short as can be.
    pub(crate) fn short_blocks(&mut self, log: &Log, count: u64) {
        for _ in 0..count {
            self.seal_with(log, 1, |producer, _| producer.append(&Entry::new("read", "")).unwrap());
            log.step(Step::Commit).unwrap();
            self.drain(log);
        }
    }

    /// Seals and commits what is asked for by now, such as events.
    pub(crate) fn drain(&self, log: &Log) {
        while log.step(Step::Seal).unwrap() {
            log.step(Step::Commit).unwrap();
        }
    }

    /// A block whose entries are about nobody, about one and about several.
    fn block_of_groups(&mut self, log: &Log, rows: u64) {
        self.seal_with(log, rows, append_of_group);
        log.step(Step::Commit).unwrap();
        self.drain(log);
    }

    /// A block whose entries come from a source.
    fn block_of_source(&mut self, log: &Log, rows: u64) {
        let source = log.source(SourceId([3; 16]), b"access.log").unwrap();
        self.seal_with(log, rows, |producer, number| {
            let location = format!("user_{number}/email");
            let entry = Entry::new("read", &location).subject("user");
            producer
                .append_from(&entry, &source, &Place { range: number..number + 1, check: number })
                .unwrap();
        });
        log.step(Step::Commit).unwrap();
        self.drain(log);
    }

    /// A gap in place of a block.
    pub(crate) fn gap(&mut self, log: &Log, rows: u64) {
        self.refusing.0.store(true, Ordering::Relaxed);
        self.block(log, rows);
        self.refusing.0.store(false, Ordering::Relaxed);
    }

    /// The next sync fails, so that the segment is abandoned while a block is committed.
    pub(crate) fn abandon(&mut self, log: &Log, rows: u64) {
        self.machine.fail_at(self.machine.operations(), Fault::SyncFails);
        self.block(log, rows);
    }

    /// The process dies with a block in the log that no checkpoint covers, and `torn` bytes of the next.
    pub(crate) fn die(&mut self, log: Log, rows: u64, torn: usize) {
        self.block(&log, rows);
        self.machine = self.machine.kill();
        drop(log);
        if torn > 0 {
            let segments = self.machine.files().into_iter().filter(|path| path.ends_with(".seg"));
            let last = segments.max().unwrap();
            let mut content = self.machine.read(&last).unwrap();
            // As a write leaves it that was cut: the beginning of a frame.
            let head = content[..torn].to_vec();
            content.extend(head);
            self.machine.overwrite(&last, &content);
        }
    }

    /// The process dies with everything under a checkpoint: nothing ends the segment that it was writing.
    fn leave_open(&mut self, log: Log) {
        log.flush().unwrap();
        self.machine = self.machine.kill();
        drop(log);
    }

    pub(crate) fn made(&self) -> Made {
        let seal_key = self.machine.read("audit.keys/seal.key").unwrap();
        Made {
            image: Image::of(&self.machine, "audit"),
            key: self.key.clone(),
            seal_key: String::from_utf8(seal_key).unwrap(),
        }
    }
}

/// An entry whose fields differ enough from one to the next for every kind of column.
pub(crate) fn append(producer: &mut Producer, number: u64) {
    let subject = format!("user_{}", number % 7);
    let location = format!("{subject}/email/{number}");
    let payload = sha256(&[&number.to_le_bytes()]).0;
    let mut entry = Entry::new(["read", "write", "delete"][(number / 5 % 3) as usize], &location);
    entry = entry.subject(&subject).processor("shop").duration(number * number * 977);
    if !number.is_multiple_of(3) {
        entry = entry.purpose("support").status(200).size(number % 2 * 4096).payload(&payload);
    }
    if number.is_multiple_of(4) {
        entry = entry.client("192.0.2.7").flags(number as u32);
    }
    producer.append(&entry).unwrap();
}

/// An entry that is about nobody, one, two or three.
fn append_of_group(producer: &mut Producer, number: u64) {
    let location = format!("folder/{number}");
    let mut entry = Entry::new("read", &location).processor("shop");
    let people = ["alice", "bob", "carol"];
    for person in people.iter().cycle().skip((number / 4 % 3) as usize).take((number % 4) as usize) {
        entry = entry.subject(person);
    }
    if number.is_multiple_of(3) {
        entry = entry.client("192.0.2.7").payload(b"personal");
    }
    producer.append(&entry).unwrap();
}

/// A log with erasure: groups of one data subject and of several, of one entry and of many, entries in no group, and nearly
/// every encoding in groups.
pub(crate) fn grouped() -> Made {
    let mut world = World::grouped(8);
    let log = world.open();
    world.block_of_groups(&log, 20);
    log.flush().unwrap();
    log.close().unwrap();
    let log = world.open();
    world.block_of_source(&log, 2);
    world.block_of_groups(&log, 2);
    world.block_of_every_encoding(&log);
    log.close().unwrap();
    world.made()
}

/// A log with all that a log can have: epochs by reopening, an extended segment, an abandoned one, a recovered one
/// with a torn tail, copies of epoch frames, an event of each kind, a gap, a block with a sources section, and signed sizes whose partial tiles are
/// still there.
pub(crate) fn small() -> Made {
    let mut world = World::new(1);
    let log = world.open();
    world.block(&log, 3);
    world.block(&log, 40);
    log.flush().unwrap();
    log.close().unwrap();
    // Extends the segment by an epoch.
    let log = world.open();
    world.block(&log, 1);
    world.gap(&log, 2);
    world.block(&log, 1);
    log.flush().unwrap();
    // Goes to a segment that begins with a copy.
    world.abandon(&log, 2);
    world.block(&log, 1);
    log.flush().unwrap();
    world.block(&log, 1);
    world.die(log, 2, 100);
    let log = world.open();
    assert_eq!((log.recovery().frames, log.recovery().entries, log.recovery().torn_bytes), (2, 3, 100));
    world.block(&log, 2);
    log.close().unwrap();
    let log = world.open();
    world.block_of_source(&log, 1);
    log.close().unwrap();
    world.made()
}

/// A log with all of that at once, every encoding of columns, more than 256 frames, and so tiles of level 0 full and
/// partial, one of level 1 partial, a segment that was closed because it was full, and one that nobody closed. Most of
/// them are short.
pub(crate) fn whole() -> Made {
    let mut world = World::new(7);
    let log = world.open();
    world.block(&log, 3);
    world.block_of_every_encoding(&log);
    log.flush().unwrap();
    log.close().unwrap();
    // Extends the segment by an epoch.
    let log = world.open();
    world.block(&log, 1);
    world.gap(&log, 2);
    // Goes to a segment that begins with a copy.
    world.abandon(&log, 2);
    world.block(&log, 1);
    log.flush().unwrap();
    world.block(&log, 1);
    world.die(log, 2, 100);
    let log = world.open();
    world.block(&log, 2);
    // Fills the segment, so that the next one begins an epoch.
    world.short_blocks(&log, 245);
    log.flush().unwrap();
    world.short_blocks(&log, 15);
    log.flush().unwrap();
    world.block(&log, 1);
    log.close().unwrap();
    // Full and partial.
    let log = world.open();
    world.block_of_source(&log, 1);
    world.leave_open(log);
    world.made()
}

/// A log of more than 256 frames: tiles of level 0 full and partial, of level 1 partial, segments by rotation.
pub(crate) fn large() -> Made {
    let mut world = World::new(2);
    let log = world.open();
    for number in 0..280 {
        world.block(&log, 1 + number % 2);
        if number % 90 == 80 {
            log.flush().unwrap();
        }
    }
    log.close().unwrap();
    world.made()
}

/// What a verification is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Public,
    Key,
    SealKey,
    Identity,
}

impl Level {
    pub(crate) const ALL: [Level; 4] = [Level::Public, Level::Key, Level::SealKey, Level::Identity];
}

impl Made {
    pub(crate) fn verify(&self, image: &Image, level: Level) -> Result<Report> {
        self.verify_store(Arc::new(image.clone()), level)
    }

    pub(crate) fn verify_store(&self, store: Arc<dyn Store>, level: Level) -> Result<Report> {
        let mut verify = Verify::open_store(store)?.threads(1);
        if level >= Level::Key {
            verify = verify.key(self.key.clone());
        }
        if level >= Level::SealKey {
            verify = verify.seal_key(&self.seal_key)?;
        }
        if level >= Level::Identity {
            verify = verify.identity(Arc::new(Mask)).group_keys(Arc::new(ByName));
        }
        verify.run()
    }

    /// The findings of a verification, in short.
    pub(crate) fn findings(&self, image: &Image, level: Level) -> Vec<String> {
        self.findings_as(image, level, short)
    }

    /// The findings of a verification, each told in some way.
    pub(crate) fn findings_as(
        &self,
        image: &Image,
        level: Level,
        tell: fn(&Finding) -> String,
    ) -> Vec<String> {
        match self.verify(image, level) {
            Ok(report) => {
                assert_eq!(report.ok, report.findings.iter().all(|f| f.severity == bulla::Severity::Notice));
                report.findings.iter().map(tell).collect()
            }
            Err(error) => vec![format!("error {:?}: {error}", error.kind())],
        }
    }
}

/// A finding without its detail: `kind segment@offset frames entries`.
pub(crate) fn short(finding: &Finding) -> String {
    let mut text = finding.kind.name().to_owned();
    if let Some(segment) = &finding.segment {
        text += &format!(" {segment}@{}", finding.offset.unwrap_or_default());
    }
    if let (Some(first), Some(last)) = (finding.frame, finding.last_frame) {
        text += &format!(" f{first}-{last}");
    }
    if let Some((first, last)) = finding.entries {
        text += &format!(" e{first}-{last}");
    }
    text
}

/// A finding as [`short`] has it; with its detail where it has no place, but for what a parser of TOML says.
pub(crate) fn in_full(finding: &Finding) -> String {
    match (&finding.segment, finding.frame, finding.kind) {
        (None, None, FindingKind::ConfigDamaged) => {
            assert!(finding.detail.starts_with("bulla.toml: "), "{}", finding.detail);
            short(finding)
        }
        (None, None, kind) => format!("{kind}: {}", finding.detail),
        _ => short(finding),
    }
}

/// The log with another commitment in the tree's files, of which there are only the first.
pub(crate) fn in_tree(mut image: Image, size: u64, frame: u64, commitment: &[u8]) -> Image {
    let (tile, bundle) = (format!("tile/0/000.p/{size}"), format!("tile/entries/000.p/{size}"));
    let place = usize::try_from(frame).unwrap();
    let mut hashes = image.get(&tile).to_vec();
    hashes[place * 32..][..32].copy_from_slice(&leaf_hash(commitment).0);
    image.put(&tile, hashes);
    let mut entries = image.get(&bundle).to_vec();
    entries[place * 154 + 2..][..152].copy_from_slice(commitment);
    image.put(&bundle, entries);
    image
}

/// The log with a checkpoint of what the tree's files come to, of which there are only the first.
pub(crate) fn signed(mut image: Image, size: u64, key: &VerifierKey, signing: &SigningKey) -> Image {
    let mut tree = Frontier::new();
    let leaves = image.get(&format!("tile/0/000.p/{size}")).chunks(32);
    leaves.for_each(|leaf| tree.push(Hash(leaf.try_into().unwrap())));
    let checkpoint = Checkpoint::new(key.name(), size, tree.root());
    let note = sign_checkpoint(&checkpoint, key, |text| signing.sign(text));
    image.put("checkpoint", note.into_bytes());
    let cose = CoseCheckpoint::sign(&checkpoint, key, |bytes| signing.sign(bytes));
    image.put("checkpoint.cose", cose.render());
    image
}

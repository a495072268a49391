//! Verification: is this log what was written, and where is it not?
//!
//! Levels, each with what it needs: public data alone (frames, tree, checkpoint agree); the log's key (and it is
//! the log of that key); the seal key (nothing was rewritten on the writing host); an identity (every block
//! decrypts, decodes, and its entries have the root that was committed to).
//!
//! What follows the checkpoint nobody has signed: it is no violation, but where the seal key or the seal state is at hand,
//! which judge it as opening the log would, or where the caller knows that the log was closed.

mod age;
mod frame;
mod paths;
mod sources;
mod tail;
mod witness;

use crate::format::config::{self, LogConfig};
use crate::format::files;
use crate::format::frame::frame_length;
use crate::index;
use crate::keys::seal_state::SealState;
use crate::keys::sources::SourcesKey;
use crate::read::given::{Given, Progress, given};
use crate::read::pins::{Asked, PinReport, Pins};
use crate::scan::cose;
use crate::scan::cosignatures::{self, SignedHead};
use crate::scan::erasures::{Erased, Erasures};
use crate::scan::finding::{Finding, FindingKind, Findings, Severity};
use crate::scan::full::Scan;
use crate::scan::located::{Located, most_memory};
use crate::scan::open::names::Names;
use crate::scan::open::{Asks, BlockOpener, Opening};
use crate::scan::own_keys;
use crate::scan::paths::not_there;
use crate::scan::pool::{self, Job};
use crate::scan::snapshot::Snapshot;
use crate::scan::stored_tree;
use crate::scan::trust::Witnessed;
use crate::scan::unread_events::UnreadEvents;
use age::Age;
use bulla_crypto::environment::{Clock, Environment};
use bulla_crypto::group::GroupKeys;
use bulla_crypto::seal_chain::{SealChain, parse_seal_key};
use bulla_proof::commitment::FrameKind;
use bulla_proof::hash::Hash;
use bulla_store::{Error, ErrorKind, Result};
use bulla_store::{FileSystem, Store};
use frame::{Outcome, Wants, With, check_frame};
pub(super) use paths::missing as missing_paths;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tail::{Judging, judge_tail};
pub use witness::{WitnessReport, WitnessSeen};

/// A verification, to be given what it may use and then run.
///
/// ```
/// # let place = tempfile::tempdir().unwrap();
/// # let directory = place.path().join("audit");
/// # let created = bulla::Init::default().create(&directory).unwrap();
/// let report = bulla::Verify::open(&directory)?.key(created.verifier_key).run()?;
/// assert!(report.ok && report.anchored);
/// # Ok::<(), bulla::Error>(())
/// ```
pub struct Verify {
    given: Given,
    config: Result<LogConfig>,
    chain: Option<SealChain>,
    state: Option<SealState>,
    sources: Option<SourcesKey>,
    /// What was given and is another log's.
    foreign: Vec<String>,
    strict: bool,
    newer_than: Option<Duration>,
    clock: Arc<dyn Clock>,
    asked_pins: Vec<Asked>,
    /// Where pins lie, where that is not the file system.
    pins: Option<Arc<dyn Store>>,
    /// Whether a checkpoint that the log's key has not signed says nothing of how far the log goes.
    salvage: bool,
}

given! {
    Verify,
    /// Opens every personal group of the blocks that are opened too, with keys from here. One whose key is lost is a
    /// violation; one that was erased is none.
}

/// What a verification found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// Whether there is no violation among the findings.
    pub ok: bool,
    /// Whether the checkpoint is signed by the key that was given: not merely self-consistent.
    pub anchored: bool,
    /// Entries in the blocks that the checkpoint covers.
    pub entries: u64,
    /// Blocks that it covers.
    pub blocks: u64,
    /// Frames that it covers.
    pub tree_size: u64,
    /// The root that it signs.
    pub root: Hash,
    /// Entries whose personal fields are erased, of the blocks that opened. Nothing where nobody can tell: of a log with erasure
    /// without an identity, or without all keys of its data subjects, or with an event that cannot be read.
    pub erased: Option<u64>,
    /// Frames past it, while a writer is at work.
    pub pending: u64,
    /// The writing host's clock at the newest epoch or event that it covers, in seconds since the Unix epoch. Nothing where
    /// it covers none.
    pub signed_time: Option<i64>,
    /// Who has seen how much of it, where a policy was given and is met: see [`Verify::policy`].
    pub witnessed: Option<WitnessReport>,
    /// What became of the pin that was to be advanced: see [`Verify::pin`]. Nothing where none was given, or no checkpoint can be read.
    pub pin: Option<PinReport>,
    /// What was found, in the order of frames.
    pub findings: Vec<Finding>,
}

impl Verify {
    /// A verification of the log in `directory`.
    ///
    /// # Errors
    /// `Unavailable` where there is no log, or one of a newer format version.
    pub fn open(directory: impl AsRef<Path>) -> Result<Self> {
        Self::open_store(Arc::new(FileSystem::new(directory.as_ref())))
    }

    /// A verification of the log in any store.
    ///
    /// # Errors
    /// As [`Verify::open`].
    pub fn open_store(store: Arc<dyn Store>) -> Result<Self> {
        let config = match config::load(&*store) {
            Err(error) if error.kind() != ErrorKind::Invalid => return Err(error),
            loaded => loaded.map(|(config, _)| config),
        };
        Ok(Verify {
            given: Given::new(store),
            config,
            chain: None,
            state: None,
            sources: None,
            foreign: Vec::new(),
            strict: false,
            newer_than: None,
            clock: Environment::default().clock,
            asked_pins: Vec::new(),
            pins: None,
            salvage: false,
        })
    }

    /// Checks the seals too, from the text of a seal key file. That it is another log's is a violation, as it is of
    /// [`Verify::key`]: the log may have been put in the place of the one that it is of.
    ///
    /// # Errors
    /// `Invalid` where it is none.
    pub fn seal_key(mut self, text: &str) -> Result<Self> {
        if let Ok(config) = &self.config {
            match parse_seal_key(text, config.id) {
                Err(error) if error.kind() == ErrorKind::Refused => {
                    self.foreign.push(format!("a seal key was given, and {error}"));
                }
                parsed => self.chain = Some(parsed?),
            }
        }
        Ok(self)
    }

    /// Whether it has a seal key of this log.
    pub fn checks_seals(&self) -> bool {
        self.chain.is_some()
    }

    /// Binds the log to what its writing host knows of it, from the bytes of `seal.state` in the key directory: so many
    /// frames have to be there, and to be those that it was written for; what follows the checkpoint has to be what the
    /// writer, or a crash, leaves. To be read before this verification runs, where a writer may be at work.
    ///
    /// # Errors
    /// `Unavailable` where it is damaged, which says nothing of the log. That it is another log's is a violation.
    pub fn seal_state(mut self, bytes: &[u8]) -> Result<Self> {
        let state = SealState::parse(bytes)?;
        match &self.config {
            Ok(config) if state.log != config.id => {
                let foreign = format!("a seal state was given, and it is that of another log, {}", state.log);
                self.foreign.push(foreign);
            }
            Ok(_) => self.state = Some(state),
            Err(_) => {}
        }
        Ok(self)
    }

    /// Checks what blocks say of sources too, with the key of that in the key directory `keys`; where that has none, it is not checked.
    ///
    /// # Errors
    /// `Unavailable` where the key cannot be read or is damaged, which says nothing of the log. That it is another log's is a violation.
    pub fn sources_key(mut self, keys: &dyn Store) -> Result<Self> {
        if let Ok(config) = &self.config {
            match SourcesKey::load(keys, config.id) {
                Err(error) if error.kind() == ErrorKind::Refused => {
                    self.foreign.push(format!("a key of sources was given, and {error}"));
                }
                loaded => self.sources = loaded?,
            }
        }
        Ok(self)
    }

    /// Whether it has a key of this log's sources.
    pub fn checks_sources(&self) -> bool {
        self.sources.is_some()
    }

    /// Takes whatever follows the checkpoint for a violation: for whoever knows that the log was closed.
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// Takes it for a violation where the newest epoch or event that the checkpoint covers was committed longer ago than
    /// this, by the writing host's clock: of a log that promises a heartbeat. With [`Verify::policy`] also where fewer witnesses than it asks
    /// for have cosigned the log since, by their own clocks.
    pub fn newer_than(mut self, age: Duration) -> Self {
        self.newer_than = Some(age);
        self
    }

    /// What tells the time for [`Verify::newer_than`] (default: the operating system's clock).
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Binds the log to a pin, a copy of its checkpoint that lies elsewhere: so many frames have to be there, and to be those. Where
    /// no violation is found the pin is advanced to the checkpoint that was verified, with [`Verify::policy`] to the newest one that is
    /// witnessed as that asks for, and never back; where nothing is at the path it is
    /// made, if it is known whose the log is: by [`Verify::key`] or [`Verify::seal_state`]. What became of it is in [`Report::pin`].
    /// One pin is advanced at a time: another one that is given takes its place.
    pub fn pin(mut self, path: impl AsRef<Path>) -> Self {
        self.asked_pins.retain(|asked| !asked.advances());
        self.asked_pins.push(Asked::advancing(path.as_ref()));
        self
    }

    /// Binds the log to a pin that is known to have been made, as the key directory remembers one, and leaves it as it is. That it is
    /// gone is `Refused`, and it is not made again by [`Verify::pin`] either.
    pub fn known_pin(mut self, path: impl AsRef<Path>) -> Self {
        self.asked_pins.push(Asked::known(path.as_ref()));
        self
    }

    /// Where pins lie, by their paths without the first `/`, in place of the file system.
    pub fn pins_in(mut self, pins: Arc<dyn Store>) -> Self {
        self.pins = Some(pins);
        self
    }

    /// Goes as far as segments and tree tell of frames, where no checkpoint is signed by the log's key.
    pub(crate) fn salvaging(self) -> Self {
        Verify { salvage: true, ..self }
    }

    /// Given what an export was given.
    pub(crate) fn with(self, given: Given) -> Self {
        Verify { given, ..self }
    }

    /// Verifies.
    ///
    /// # Errors
    /// `Unavailable` where a file cannot be read, `NoKey` where the identity opens nothing of the log, `Refused` where a pin is none,
    /// or is gone; `Invalid` where a pin is to be made and it is not known whose the log is, and where
    /// [`Verify::newer_than`] was asked for of a log that promises no heartbeat, or none within that time. Everything that
    /// is wrong with the log itself is a finding.
    pub fn run(self) -> Result<Report> {
        self.examine().map(|(report, _)| report)
    }

    /// Verifies, and gives what it was verified against and what was seen, where there is a checkpoint.
    pub(crate) fn examine(self) -> Result<(Report, Option<Examined>)> {
        let Verify {
            given,
            config,
            chain,
            state,
            sources,
            foreign,
            strict,
            newer_than,
            clock,
            asked_pins,
            pins,
            salvage,
        } = self;
        let config = match config {
            Ok(config) => config,
            Err(error) => {
                let finding = Finding::new(FindingKind::ConfigDamaged, error.to_string());
                return Ok((Report::of(vec![finding]), None));
            }
        };
        let mut findings = Findings::default();
        foreign.into_iter().for_each(|what| findings.add(Finding::new(FindingKind::KeyMismatch, what)));
        let whose = (config.own_keys(), given.trust.names_log() || state.is_some());
        let (pins, misfits) = Pins::read(&*given.store, asked_pins, pins.as_ref(), whose, &clock)?;
        misfits.into_iter().for_each(|misfit| findings.add(misfit));
        let mut signed = cosignatures::signed_heads(&*given.store, &config)?;
        let salvaged = salvage.then(|| config.clone());
        let mut snapshot = Snapshot::examine(given.store.clone(), config, &given.trust, &mut findings)?;
        paths::without_checkpoint(&*given.store).for_each(|finding| findings.add(finding));
        if let Some(config) = salvaged
            && findings.has(FindingKind::CheckpointDamaged)
        {
            let config = snapshot.map_or(config, |snapshot| snapshot.config);
            snapshot = Some(Snapshot::untold(given.store.clone(), config)?);
        }
        let Some(snapshot) = snapshot else {
            let of_paths = paths::judge(&*given.store).chain(paths::unnamed(&*given.store));
            of_paths.for_each(|finding| findings.add(finding));
            return Ok((Report::of(findings.finish()), None));
        };
        let Snapshot { store, config, checkpoint, live, .. } = &snapshot;
        if !findings.has(FindingKind::CheckpointDamaged) {
            let misfit = cose::judge(cose::read(&**store)?, &**store, config, checkpoint)?;
            misfit.into_iter().for_each(|misfit| findings.add(misfit));
        }
        paths::judge(&**store).for_each(|finding| findings.add(finding));
        paths::unnamed(&**store).for_each(|finding| findings.add(finding));
        // The scan looks for what a seal state was given of.
        let (untold, out_of_reach) = paths::out_of_reach(&**store, checkpoint.size, state.is_some());
        untold.into_iter().for_each(|finding| findings.add(finding));
        let identity = given.identity.clone();
        let mut index = index::Check::new(&**store, *live);
        let wants = match identity {
            None => Wants::Digests,
            Some(_) if index.is_there() => Wants::Tokens,
            Some(_) => Wants::Bodies,
        };
        let keys = given.group_keys.clone().filter(|_| identity.is_some());
        let keys = keys.map(|keys| own_keys::in_ruins(keys, &snapshot)).transpose()?;
        let keys = keys.as_deref();
        // Who is hidden from queries in the vault is looked for, whether or not a group shows it.
        keys.map(|keys| keys.numbers(&[])).transpose()?;
        let erasures = keys.map(|keys| erasures(keys, &snapshot)).transpose()?;
        let personal = keys.zip(erasures.as_ref());
        let names = keys.map(Names::new);
        let personal = personal.map(|(keys, erasures)| {
            let names = names.as_ref();
            Opening { keys, erasures, asked: &|_| true, names }
        });
        let chain = chain.or_else(|| state.as_ref().map(|state| state.chain.clone()));
        let mut scan = Scan::new(&snapshot, identity, chain)?;
        if let Some(state) = &state {
            scan.expect(state.chain.next_frame(), state.root, state.terms);
        }
        pins.expect(&mut scan);
        // That one may have taken the place of an older one since.
        if let Some(Witnessed { head, note: Some(_), .. }) = snapshot.witnessed
            && signed.iter().all(|signed| signed.head != head)
        {
            signed.push(SignedHead { path: files::WITNESSED.to_owned(), head });
        }
        let places = signed.iter().map(|signed| scan.expect_pin(signed.head)).collect::<Vec<_>>();
        scan.known_keys.clone_from(&given.erasure_keys);
        scan.findings = findings;
        let total = scan.total_bytes()?;
        let mut report = Report::of(Vec::new());
        let can_tell = !config.erasure || keys.is_some_and(GroupKeys::is_complete);
        report.erased = can_tell.then_some(0);
        let (mut found, mut seen, mut done) = (Findings::default(), Vec::new(), 0);
        let (mut unasked, mut said) = (Findings::default(), sources::Sum::default());
        let not_there = not_there(&**store);
        let with =
            With { wants, asks: Asks::of(config), personal: personal.as_ref(), sources: sources.as_ref() };
        let next = || {
            let Some(frame) = scan.next()? else { return Ok(None) };
            seen.push(frame.commitment.leaf());
            let weight = most_memory(&frame.commitment);
            Ok(Some(Job { frame: frame.commitment.frame, weight, item: frame }))
        };
        let work = |opener: &mut BlockOpener, frame: Located| {
            let outcome = check_frame(opener, &frame, &with)?;
            Ok((frame, outcome))
        };
        pool::in_order(given.threads, next, work, |(frame, outcome): (Located, Outcome)| {
            if let Some(unreadable) = outcome.unasked {
                unasked.add(unreadable.finding(&frame));
            }
            let wrong = outcome.sources.and_then(|of_block| said.take(&frame, of_block));
            wrong.into_iter().for_each(|wrong| found.add(wrong));
            let tokens = match outcome.checked {
                Ok(checked) => {
                    report.erased = report.erased.map(|erased| erased + checked.erased);
                    let unread = erasures.as_ref().and_then(Erasures::unread).or(out_of_reach);
                    checked.lost.into_iter().for_each(|lost| found.add(lost.finding(&frame, unread)));
                    checked.tokens
                }
                Err(unreadable) => {
                    let finding = unreadable.finding(&frame);
                    // Where another path took over, an event tells from where on a segment does not count.
                    found.add(match finding.kind {
                        FindingKind::BodyDamaged => finding.unless_explained_elsewhere(&not_there),
                        _ => finding,
                    });
                    None
                }
            };
            if let Some(keys) = &frame.keys {
                index.add(&frame.commitment, keys, tokens, &mut found);
            }
            done += frame_length(&frame.commitment);
            if frame.commitment.kind == FrameKind::Block {
                report.blocks += 1;
                report.entries += frame.commitment.entries;
            }
            given.tell(Progress { done, total, entries: report.entries });
            Ok(())
        })?;
        index.finish(&mut found);
        scan.findings.extend(found);
        let tail = scan.finish(snapshot.is_told.then_some(checkpoint.root))?;
        // An edited configuration does not say what the log asked for.
        if !scan.findings.has(FindingKind::ConfigMismatch) {
            scan.findings.extend(unasked);
        }
        let mut files = Findings::default();
        let size = if *live { u64::MAX } else { checkpoint.size };
        stored_tree::check_files(&**store, size, *live, &mut files)?;
        // Looked at last: what a writer did, or left to do, that opened the log meanwhile is nobody's leftover.
        let quiet = snapshot.is_quiet()?;
        if !quiet && !*live {
            files = Findings::default();
            stored_tree::check_files(&**store, u64::MAX, true, &mut files)?;
        }
        scan.findings.extend(files);
        // Of a log that is damaged the damage is told: it may be what keeps the identity from opening anything.
        let opened_none = scan.foreign_epochs > 0 && scan.opened_epochs == 0;
        if opened_none && !scan.findings.has_violation_besides(FindingKind::NotOpened) {
            let message =
                format!("the identity opens no epoch of {}: it is not a recipient", store.describe(""));
            return Err(Error::new(ErrorKind::NoKey, message));
        }
        // Beside a writer, frames past the checkpoint may be about to lie elsewhere.
        if quiet || state.as_ref().is_some_and(|state| state.chain.next_frame() <= checkpoint.size) {
            scan.check_known();
        }
        let misfits = pins.judge(&scan, (&snapshot, &given.trust), quiet, &*clock)?;
        misfits.into_iter().for_each(|misfit| scan.findings.add(misfit));
        report.pending = if quiet { 0 } else { tail.frames };
        if let Some(finding) = judge_tail(&tail, &scan, &snapshot, state, Judging { quiet, strict })? {
            scan.findings.add(finding);
        }
        report.signed_time = scan.signed_time;
        if let Some(age) = newer_than {
            let witnessed = snapshot.witnessed.as_ref().and_then(|witnessed| witnessed.time);
            let age = Age { age, time: scan.signed_time, witnessed, now: clock.now() };
            let stale = age.judge(config.heartbeat);
            match stale {
                // An edited configuration promises nothing.
                Err(_) if scan.findings.has_violation() => {}
                stale => stale?.into_iter().for_each(|finding| scan.findings.add(finding)),
            }
        }
        for (signed, place) in signed.iter().zip(places) {
            let misfit = witness::mismatch(signed, &scan, place);
            misfit.into_iter().for_each(|misfit| scan.findings.add(misfit));
        }
        if let Some(witnessed) = &snapshot.witnessed {
            if !scan.findings.has(FindingKind::WitnessMismatch) {
                let unwitnessed = witness::unwitnessed(witnessed, checkpoint.size, strict);
                unwitnessed.into_iter().for_each(|finding| scan.findings.add(finding));
            }
            let asked = given.trust.policy.as_ref().is_some_and(|policy| policy.asks_for_witnesses());
            report.witnessed = Some(WitnessReport::of(witnessed, asked));
        }
        report.anchored = snapshot.anchored;
        let erased = Erased::passed_by(&mut scan, checkpoint.size);
        let is_told = erased.unread.or(out_of_reach).is_none();
        report.erased = report.erased.filter(|_| !config.erasure || is_told);
        report.tree_size = checkpoint.size;
        report.root = checkpoint.root;
        let (pin, misfit) = pins.advance(&snapshot, !scan.findings.has_violation());
        misfit.into_iter().for_each(|misfit| scan.findings.add(misfit));
        report.pin = pin;
        report.conclude(paths::placed(&**store, std::mem::take(&mut scan.findings).finish()));
        Ok((report, Some(Examined { snapshot: snapshot.clone(), frames: seen, erased, out_of_reach })))
    }
}

/// What a verification looked at.
pub(crate) struct Examined {
    pub(crate) snapshot: Snapshot,
    /// The leaf of every frame that was found: whoever reads the log again knows whether it is the same one.
    pub(crate) frames: Vec<Hash>,
    /// Whose keys were destroyed.
    pub(crate) erased: Erased,
    /// The frames behind these that were signed, which no checkpoint that is there covers: any may tell of more who were.
    pub(crate) out_of_reach: Option<UnreadEvents>,
}

impl Report {
    /// A report that has got no further than these findings.
    fn of(findings: Vec<Finding>) -> Self {
        let mut report = Report {
            ok: false,
            anchored: false,
            entries: 0,
            blocks: 0,
            tree_size: 0,
            root: Hash::ZERO,
            erased: None,
            pending: 0,
            signed_time: None,
            witnessed: None,
            pin: None,
            findings: Vec::new(),
        };
        report.conclude(findings);
        report
    }

    fn conclude(&mut self, findings: Vec<Finding>) {
        self.ok = findings.iter().all(|finding| finding.severity != Severity::Violation);
        self.findings = findings;
    }
}

/// Whose keys were destroyed: of a log that is damaged, as far as it tells.
fn erasures<'a>(keys: &dyn GroupKeys, log: &'a Snapshot) -> Result<Erasures<'a>> {
    let load = move |from| match Erased::newest_in_part(log, from) {
        Err(error) if error.kind() == ErrorKind::Tampered => Erased::in_ruins(log),
        erased => erased,
    };
    let known = load(own_keys::followed(keys, log.checkpoint.size)?.unwrap_or(0))?;
    Ok(Erasures::new(known, load))
}

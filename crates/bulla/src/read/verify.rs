//! Verification: is this log what was written, and where is it not?
//!
//! Levels, each with what it needs: public data alone (frames, tree, checkpoint agree); the log's key (and it is
//! the log of that key); the seal key (nothing was rewritten on the writing host); an identity (every block
//! decrypts, decodes, and its entries have the root that was committed to).

use crate::format::config::{self, LogConfig};
use crate::index;
use crate::scan::checkpoint::{Signed, is_live, read_checkpoint};
use crate::scan::erasures::{Erased, Erasures};
use crate::scan::finding::{Finding, FindingKind, Findings, Severity};
use crate::scan::open::{BlockOpener, Located, Opening, Unreadable, most_memory};
use crate::scan::pipeline::MOST_WEIGHT;
use crate::scan::sources;
use crate::scan::walk::{Tail, Walk};
use crate::scan::withheld::Withheld;
use bulla_crypto::group::GroupKeys;
use bulla_crypto::recipients::Identity;
use bulla_crypto::seal_chain::{SealChain, parse_seal_key};
use bulla_proof::checkpoint::{Checkpoint, VerifierKey};
use bulla_proof::commitment::FrameKind;
use bulla_proof::hash::{Hash, sha256};
use bulla_store::{Error, ErrorKind, Result};
use bulla_store::{FileSystem, Store};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// How far a verification or an export has come.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Bytes of segments done; of a query, frames.
    pub done: u64,
    /// Bytes of segments in all; of a query, frames.
    pub total: u64,
    /// Entries done.
    pub entries: u64,
}

/// Told of progress, from one thread.
pub(crate) type OnProgress = Box<dyn Fn(Progress) + Send + Sync>;

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
    store: Arc<dyn Store>,
    config: Result<LogConfig>,
    key: Option<VerifierKey>,
    chain: Option<SealChain>,
    identity: Option<Arc<dyn Identity>>,
    group_keys: Option<Arc<dyn GroupKeys>>,
    threads: Option<usize>,
    progress: OnProgress,
}

/// What a verification found.
#[derive(Clone, Debug)]
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
    /// Entries whose personal fields are erased, as far as groups were opened.
    pub erased: u64,
    /// Frames past it, while a writer is at work.
    pub pending: u64,
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
            store,
            config,
            key: None,
            chain: None,
            identity: None,
            group_keys: None,
            threads: None,
            progress: Box::new(|_| {}),
        })
    }

    /// Checks that it is the log of this key.
    pub fn key(mut self, key: VerifierKey) -> Self {
        self.key = Some(key);
        self
    }

    /// Checks the seals too, from the text of a seal key file.
    ///
    /// # Errors
    /// `Invalid` where it is none, or another log's.
    pub fn seal_key(mut self, text: &str) -> Result<Self> {
        if let Ok(config) = &self.config {
            self.chain = Some(parse_seal_key(text, config.id)?);
        }
        Ok(self)
    }

    /// Opens every block too, with this identity.
    pub fn identity(mut self, identity: Arc<dyn Identity>) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Opens every personal group of the blocks that are opened too, with keys from here. One whose key is lost is a
    /// violation; one that was erased is none.
    pub fn group_keys(mut self, keys: Arc<dyn GroupKeys>) -> Self {
        self.group_keys = Some(keys);
        self
    }

    /// How many threads to use (default: the processors there are).
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads.max(1));
        self
    }

    /// Calls `progress` now and then.
    pub fn progress(mut self, progress: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.progress = Box::new(progress);
        self
    }

    /// Verifies.
    ///
    /// # Errors
    /// `Unavailable` where a file cannot be read, `NoKey` where the identity opens nothing of the log. Everything
    /// that is wrong with the log itself is a finding.
    pub fn run(self) -> Result<Report> {
        self.examine().map(|(report, _)| report)
    }

    /// Verifies, and gives what it was verified against and what was seen, where there is a checkpoint.
    pub(crate) fn examine(self) -> Result<(Report, Option<Examined>)> {
        let Verify { store, config, key, chain, identity, group_keys, threads, progress } = self;
        let threads = threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
        let mut config = match config {
            Ok(config) => config,
            Err(error) => {
                let finding = Finding::new(FindingKind::ConfigDamaged, error.to_string());
                return Ok((Report::of(vec![finding]), None));
            }
        };
        // Before anything is read: what a writer adds meanwhile is pending, not unclosed.
        let live = is_live(&*store)?;
        let mut findings = Findings::default();
        let mut read = read_checkpoint(&*store, &config, key.as_ref(), &mut findings)?;
        // Who changes `[log]` meanwhile changes both: what was read of one has to be of the other's time.
        for _ in 0..ATTEMPTS {
            let Some((now, _)) = config::load(&*store).ok().filter(|(now, _)| now.digest != config.digest)
            else {
                break;
            };
            (config, findings) = (now, Findings::default());
            read = read_checkpoint(&*store, &config, key.as_ref(), &mut findings)?;
        }
        let Some(read) = read else {
            return Ok((Report::of(findings.finish()), None));
        };
        let Signed { checkpoint, anchored, .. } = read;
        let mut index = index::Check::new(&*store, live);
        let wants = match identity {
            None => Wants::Digests,
            Some(_) if index.is_there() => Wants::Tokens,
            Some(_) => Wants::Bodies,
        };
        let keys = group_keys.as_deref().filter(|_| config.erasure && identity.is_some());
        let erasures = keys.map(|keys| erasures(keys, &*store, &config, checkpoint.clone())).transpose()?;
        let personal = keys.zip(erasures.as_ref());
        let personal = personal.map(|(keys, erasures)| Opening { keys, erasures, subject: None });
        let mut walk = Walk::new(&*store, &config, &checkpoint, identity, chain)?;
        walk.findings = findings;
        let total = walk.total_bytes()?;
        let mut report = Report::of(Vec::new());
        let mut batches = Vec::new();
        let mut done = 0;
        loop {
            let batch = take_batch(&mut walk)?;
            if batch.is_empty() {
                break;
            }
            batches.push(fingerprint(&batch));
            for (frame, outcome) in batch.iter().zip(check_batch(&batch, wants, personal.as_ref(), threads)?)
            {
                let tokens = match outcome {
                    Ok(checked) => {
                        report.erased += checked.erased;
                        if let Some(lost) = checked.lost {
                            walk.findings.add(lost.finding(frame));
                        }
                        checked.tokens
                    }
                    Err(unreadable) => {
                        walk.findings.add(unreadable.finding(frame));
                        None
                    }
                };
                if let Some(keys) = &frame.keys {
                    index.add(&frame.commitment, keys, tokens, &mut walk.findings);
                }
                done += crate::format::frame::frame_length(&frame.commitment);
                if frame.commitment.kind == FrameKind::Block {
                    report.blocks += 1;
                    report.entries += frame.commitment.entries;
                }
            }
            progress(Progress { done, total, entries: report.entries });
        }
        index.finish(&mut walk.findings);
        let tail = walk.finish(checkpoint.root)?;
        let size = if live { u64::MAX } else { checkpoint.size };
        sources::check_files(&*store, size, live, &mut walk.findings)?;
        // Of a log that is damaged the damage is told: it may be what keeps the identity from opening anything.
        let opened_none = walk.foreign_epochs > 0 && walk.opened_epochs == 0;
        if opened_none && !walk.findings.has_violation_besides(FindingKind::NotOpened) {
            let message =
                format!("the identity opens no epoch of {}: it is not a recipient", store.describe(""));
            return Err(Error::new(ErrorKind::NoKey, message));
        }
        report.pending = if live { tail.frames } else { 0 };
        if !live && let Some(finding) = unclosed(&tail, checkpoint.size) {
            walk.findings.add(finding);
        }
        report.anchored = anchored;
        report.tree_size = checkpoint.size;
        report.root = checkpoint.root;
        report.conclude(std::mem::take(&mut walk.findings).finish());
        let erased = Erased { numbers: walk.take_erased(), frames: 0..checkpoint.size };
        drop(walk);
        Ok((report, Some(Examined { checkpoint, batches, erased })))
    }
}

/// How often the configuration may change while it is read.
const ATTEMPTS: usize = 16;

/// What a verification looked at.
pub(crate) struct Examined {
    pub(crate) checkpoint: Checkpoint,
    /// The [`fingerprint`] of every batch: whoever reads the log again knows whether it is the same one.
    pub(crate) batches: Vec<Hash>,
    /// Whose keys were destroyed.
    pub(crate) erased: Erased,
}

/// What the frames of a batch are, down to their bodies.
pub(crate) fn fingerprint(batch: &[Located]) -> Hash {
    let commitments = batch.iter().map(|frame| frame.commitment.encode()).collect::<Vec<_>>();
    sha256(&[commitments.as_flattened()])
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
            erased: 0,
            pending: 0,
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

/// Frames for the threads to work on: bounded in number, in what reading them may take, and in what they hold.
pub(crate) fn take_batch(walk: &mut Walk<'_>) -> Result<Vec<Located>> {
    const FRAMES: usize = 4096;
    /// What is made of a whole batch may be in memory at once.
    const CONTENT: u64 = 128 << 20;
    let mut batch = Vec::new();
    let (mut weight, mut content) = (0, 0);
    while batch.len() < FRAMES && weight < MOST_WEIGHT && content < CONTENT {
        let Some(frame) = walk.next()? else { break };
        weight += most_memory(&frame.commitment);
        content += 1 << frame.commitment.content_log2;
        batch.push(frame);
    }
    Ok(batch)
}

/// How far the frames of a batch are looked into.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wants {
    /// To the digests of their bodies.
    Digests,
    /// To the entries of blocks.
    Bodies,
    /// To what the index has to say of those.
    Tokens,
}

/// What a frame is found to be.
type Outcome = Result<Checked, Unreadable>;

/// A frame that is what its commitment says.
#[derive(Default)]
struct Checked {
    /// Of a block, with [`Wants::Tokens`], what its tokens come to.
    tokens: Option<Hash>,
    /// Entries whose personal fields are erased.
    erased: u64,
    lost: Option<Lost>,
}

/// Entries whose keys are lost: the first, and how many there are up to the last, others among them.
struct Lost {
    first: u64,
    span: u64,
}

impl Lost {
    fn finding(&self, frame: &Located) -> Finding {
        let detail = "the keys of some of these entries' data subjects are lost: the vault has not got them, and no \
                      event of the log tells of their erasure";
        let finding = Finding::new(FindingKind::KeyLost, detail).at(frame.segment, frame.offset);
        finding.frame(frame.commitment.frame).entries(self.first, self.span)
    }
}

/// Whose keys were destroyed: of a log that is damaged, as far as it tells.
fn erasures<'a>(
    keys: &dyn GroupKeys,
    store: &'a dyn Store,
    config: &'a LogConfig,
    checkpoint: Checkpoint,
) -> Result<Erasures<'a>> {
    let load = move |from| match Erased::newest(store, config, None, from) {
        Err(error) if error.kind() == ErrorKind::Tampered => Erased::in_ruins(store, config, &checkpoint),
        erased => erased,
    };
    let known = load(keys.erased_up_to()?)?;
    Ok(Erasures::new(known, load))
}

/// Checks frames in parallel; outcomes in their order.
fn check_batch(
    batch: &[Located],
    wants: Wants,
    personal: Option<&Opening<'_>>,
    threads: usize,
) -> Result<Vec<Outcome>> {
    in_parallel(batch, threads, |opener, frame| check_frame(opener, frame, wants, personal))
}

fn check_frame(
    opener: &mut BlockOpener,
    frame: &Located,
    wants: Wants,
    personal: Option<&Opening<'_>>,
) -> Result<Outcome> {
    let verified = match frame.verify()? {
        Ok(verified) => verified,
        Err(unreadable) => return Ok(Err(unreadable)),
    };
    if wants == Wants::Digests || frame.commitment.kind != FrameKind::Block {
        return Ok(Ok(Checked::default()));
    }
    let Some(keys) = &frame.keys else {
        let detail = match frame.foreign {
            true => "the identity does not open its epoch",
            false => "there is no key for it: its epoch's frame is damaged",
        };
        return Ok(Err(Unreadable { kind: FindingKind::NotOpened, detail: detail.to_owned() }));
    };
    let mut opened = opener.open(verified, keys).and_then(|()| opener.check_units(&frame.commitment, keys));
    if let Some(personal) = personal.filter(|_| opened.is_ok() && !opener.groups().is_empty()) {
        opened = opener.open_groups(&frame.commitment, keys, personal)?;
    }
    let checked = |()| {
        let tokens = (wants == Wants::Tokens).then(|| {
            index::digest(index::tokens(keys, opener.shared_rows().iter(), opener.groups()).into_iter())
        });
        let (erased, lost) = count_withheld(opener, frame.commitment.first_entry);
        Checked { tokens, erased, lost }
    };
    Ok(opened.map(checked))
}

/// The entries of the block opened last whose personal fields are erased, and those whose keys are lost.
fn count_withheld(opener: &BlockOpener, first_entry: u64) -> (u64, Option<Lost>) {
    let (mut erased, mut lost) = (0, None::<Lost>);
    for (number, row) in (first_entry..).zip(0..opener.shared_rows().len()) {
        match opener.withheld(row) {
            Some(Withheld::Erased) => erased += 1,
            Some(Withheld::KeyLost) => {
                let lost = lost.get_or_insert(Lost { first: number, span: 0 });
                lost.span = number - lost.first + 1;
            }
            Some(Withheld::NotGiven) | None => {}
        }
    }
    (erased, lost)
}

/// Applies `work` to every item, on several threads; results in the items' order. The first error ends it.
#[expect(clippy::disallowed_methods, reason = "threads that end before the call does")]
pub(crate) fn in_parallel<T: Sync, R: Send, W: Default>(
    items: &[T],
    threads: usize,
    work: impl Fn(&mut W, &T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    if threads == 1 {
        let mut memory = W::default();
        return items.iter().map(|item| work(&mut memory, item)).collect();
    }
    let next = AtomicUsize::new(0);
    let results = Mutex::new((0..items.len()).map(|_| None).collect::<Vec<Option<Result<R>>>>());
    std::thread::scope(|scope| {
        for _ in 0..threads.min(items.len()) {
            scope.spawn(|| {
                let mut memory = W::default();
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(index) else { break };
                    let result = work(&mut memory, item);
                    results.lock().unwrap_or_else(PoisonError::into_inner)[index] = Some(result);
                }
            });
        }
    });
    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.into_iter().flatten().collect()
}

fn unclosed(tail: &Tail, size: u64) -> Option<Finding> {
    let (segment, offset) = tail.at.filter(|_| tail.bytes > 0)?;
    let detail = format!(
        "{} frames and {} bytes in all follow the last checkpoint, and no writer is at work: open the log to recover it",
        tail.frames, tail.bytes
    );
    let mut finding = Finding::new(FindingKind::Unclosed, detail).at(segment, offset).frame(size);
    finding.last_frame = Some(size + tail.frames.saturating_sub(1));
    Some(finding)
}

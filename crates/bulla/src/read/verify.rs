//! Verification: is this log what was written, and where is it not?
//!
//! Levels, each with what it needs: public data alone (frames, tree, checkpoint agree); the log's key (and it is
//! the log of that key); the seal key (nothing was rewritten on the writing host); an identity (every block
//! decrypts, decodes, and its entries have the root that was committed to).

use crate::format::config::{self, LogConfig};
use crate::format::frame::frame_length;
use crate::index;
use crate::read::given::{Given, Progress, given};
use crate::scan::erasures::{Erased, Erasures};
use crate::scan::finding::{Finding, FindingKind, Findings, Severity};
use crate::scan::full::{Scan, Tail};
use crate::scan::located::{Located, Unreadable, most_memory};
use crate::scan::open::{BlockOpener, Opening};
use crate::scan::pool::{self, Job};
use crate::scan::redaction::Redaction;
use crate::scan::snapshot::Snapshot;
use crate::scan::stored_tree;
use bulla_crypto::group::GroupKeys;
use bulla_crypto::seal_chain::{SealChain, parse_seal_key};
use bulla_proof::commitment::FrameKind;
use bulla_proof::hash::Hash;
use bulla_store::{Error, ErrorKind, Result};
use bulla_store::{FileSystem, Store};
use std::path::Path;
use std::sync::Arc;

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
        Ok(Verify { given: Given::new(store), config, chain: None })
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

    /// Given what an export was given.
    pub(crate) fn with(self, given: Given) -> Self {
        Verify { given, ..self }
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
        let Verify { given, config, chain } = self;
        let config = match config {
            Ok(config) => config,
            Err(error) => {
                let finding = Finding::new(FindingKind::ConfigDamaged, error.to_string());
                return Ok((Report::of(vec![finding]), None));
            }
        };
        let mut findings = Findings::default();
        let snapshot = Snapshot::examine(given.store.clone(), config, given.key.as_ref(), &mut findings)?;
        let Some(snapshot) = snapshot else {
            return Ok((Report::of(findings.finish()), None));
        };
        let Snapshot { store, config, checkpoint, live, .. } = &snapshot;
        let identity = given.identity.clone();
        let mut index = index::Check::new(&**store, *live);
        let wants = match identity {
            None => Wants::Digests,
            Some(_) if index.is_there() => Wants::Tokens,
            Some(_) => Wants::Bodies,
        };
        let keys = given.group_keys.as_deref().filter(|_| config.erasure && identity.is_some());
        let erasures = keys.map(|keys| erasures(keys, &snapshot)).transpose()?;
        let personal = keys.zip(erasures.as_ref());
        let personal = personal.map(|(keys, erasures)| Opening { keys, erasures, subject: None });
        let mut scan = Scan::new(&snapshot, identity, chain)?;
        scan.findings = findings;
        let total = scan.total_bytes()?;
        let mut report = Report::of(Vec::new());
        let (mut found, mut seen, mut done) = (Findings::default(), Vec::new(), 0);
        let next = || {
            let Some(frame) = scan.next()? else { return Ok(None) };
            seen.push(frame.commitment.leaf());
            let weight = most_memory(&frame.commitment);
            Ok(Some(Job { frame: frame.commitment.frame, weight, item: frame }))
        };
        let work = |opener: &mut BlockOpener, frame: Located| {
            let outcome = check_frame(opener, &frame, wants, personal.as_ref())?;
            Ok((frame, outcome))
        };
        pool::in_order(given.threads, next, work, |(frame, outcome): (Located, Outcome)| {
            let tokens = match outcome {
                Ok(checked) => {
                    report.erased += checked.erased;
                    checked.lost.into_iter().for_each(|lost| found.add(lost.finding(&frame)));
                    checked.tokens
                }
                Err(unreadable) => {
                    found.add(unreadable.finding(&frame));
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
        let tail = scan.finish(checkpoint.root)?;
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
        report.pending = if quiet { 0 } else { tail.frames };
        if quiet && let Some(finding) = unclosed(&tail, checkpoint.size) {
            scan.findings.add(finding);
        }
        report.anchored = snapshot.anchored;
        report.tree_size = checkpoint.size;
        report.root = checkpoint.root;
        report.conclude(std::mem::take(&mut scan.findings).finish());
        let erased = Erased { numbers: scan.take_erased(), frames: 0..checkpoint.size };
        Ok((report, Some(Examined { snapshot: snapshot.clone(), frames: seen, erased })))
    }
}

/// What a verification looked at.
pub(crate) struct Examined {
    pub(crate) snapshot: Snapshot,
    /// The leaf of every frame that was found: whoever reads the log again knows whether it is the same one.
    pub(crate) frames: Vec<Hash>,
    /// Whose keys were destroyed.
    pub(crate) erased: Erased,
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

/// How far frames are looked into.
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
fn erasures<'a>(keys: &dyn GroupKeys, log: &'a Snapshot) -> Result<Erasures<'a>> {
    let load = move |from| match Erased::newest(log, None, from) {
        Err(error) if error.kind() == ErrorKind::Tampered => Erased::in_ruins(log),
        erased => erased,
    };
    let known = load(keys.erased_up_to()?)?;
    Ok(Erasures::new(known, load))
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
            Some(Redaction::Erased) => erased += 1,
            Some(Redaction::KeyLost) => {
                let lost = lost.get_or_insert(Lost { first: number, span: 0 });
                lost.span = number - lost.first + 1;
            }
            Some(Redaction::NotGiven) | None => {}
        }
    }
    (erased, lost)
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

//! A log at one checkpoint, being read: which blocks a query needs, and what they give.
//!
//! Invariants:
//! - nothing is given out but of blocks that were checked; of those that are held back, once all were;
//! - what is read twice is the same: the second pass goes to the blocks that had something, whatever an index says by
//!   then, and gives the rows that were counted, with the personal fields that they had, or fails.

mod groups;

use crate::index::{self, Gathered, Indexed, Lookup, Named, Rebuild};
use crate::read::given::{Given, Progress};
use crate::read::select::{Asked, Mark, Matches, Memory, Selected, Selection, asked_for, open_checked};
use crate::read::standing::{AskedSubject, AskedSubjects, Nothing, look_up, summary};
use crate::scan::erasures::{Erased, Erasures};
use crate::scan::events::epoch_body;
use crate::scan::keyless::Keyless;
use crate::scan::located::{Located, most_memory};
use crate::scan::manifest::{Frames, Manifest, Placed};
use crate::scan::metered::Metered;
use crate::scan::open::{Asks, BlockOpener};
use crate::scan::own_keys;
use crate::scan::pool::{self, Job};
use crate::scan::query::Query;
use crate::scan::redaction::RedactedEntries;
use crate::scan::snapshot::{Snapshot, unless_gone};
use crate::scan::unsigned::not_looked_at;
use bulla_crypto::epoch::EpochKeys;
use bulla_crypto::group::GroupKeys;
use bulla_proof::checkpoint::Checkpoint;
use bulla_proof::commitment::{Commitment, FrameKind};
use bulla_proof::hash::Hash;
use bulla_store::{Error, ErrorKind, Result};
use bulla_text::spelling::agreeing;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// See the module.
pub(crate) struct Reading<'a> {
    given: &'a Given,
    keys: &'a Keyring,
    held: u64,
    pub(crate) manifest: Manifest,
    meter: Metered,
}

/// The keys of epochs that were opened, by the epochs' numbers.
#[derive(Default)]
pub(crate) struct Keyring(Mutex<HashMap<u64, Arc<EpochKeys>>>);

/// What one block gave.
struct Found<P> {
    frame: u64,
    selected: Option<Selected<P>>,
    undecided: u64,
    /// What the index should have said of it.
    gathered: Option<Gathered>,
}

/// A block that has to be read.
struct Candidate {
    frame: Located,
    indexed: Indexed,
}

/// A block that had something, as the first pass counted it.
struct Counted {
    frame: u64,
    mark: Mark,
}

/// What is said of keys that are missing, and what to do.
const KEYS_LOST: &str = "keys are lost that the log does not say were erased. Restore the vault from a backup; of a log that has lost \
                         events, or was gone on with by `restore --older-log`, these may have told of an erasure";

/// The same where the keys that were given followed more of the log than is there.
const LOG_OLDER: &str = "their keys are not there, and the vault has followed more frames than the log has: the log is an older copy, or has \
                         lost its end, which may tell that they were erased. Bring back the log that belongs to the vault, and not an \
                         older vault, which may have the keys of whoever was erased since";

/// What a query read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadReport {
    /// Entries that met the query.
    pub entries: u64,
    /// Of those, the ones whose personal fields could not be given out.
    pub withheld: RedactedEntries,
    /// Entries of which nobody can tell whether they met the query. It asks for something personal, and keys of theirs are
    /// lost: missing, though the log tells of no erasure. As far as their other fields tell, they met it.
    pub undecided: u64,
    /// Where keys are missing: whether those that were given followed more of the log than is there. Then the log is an older copy, or has
    /// lost its end, which may tell of erasures, and the log is to be brought back, not an older vault.
    pub log_is_older: bool,
    /// Blocks that were read for it.
    pub blocks_read: u64,
    /// Blocks that the checkpoint covers.
    pub blocks: u64,
    /// Bytes that were read from the log's files.
    pub bytes_read: u64,
    /// Frames that the checkpoint covers.
    pub tree_size: u64,
    /// The root that the checkpoint signs, which everything that was read is under.
    pub root: Hash,
}

impl ReadReport {
    /// Refuses what a query gave where something is missing that nobody asked to have destroyed.
    ///
    /// # Errors
    /// `Tampered` where keys are lost that the log does not say were erased: then entries came without their personal fields, or nobody
    /// can tell whether they met the query.
    pub fn check_keys(&self) -> Result<()> {
        let (without, undecided) = (self.withheld.key_lost, self.undecided);
        match without + undecided {
            0 => Ok(()),
            _ => Err(Error::tampered(format!(
                "{without} entries came without personal fields, and {undecided} more may match and cannot be opened: {}",
                self.why_without_keys()
            ))),
        }
    }

    /// What is said where it found nothing of any use; `subjects` are whom it asked for, and `unsigned` is whether something
    /// that is not signed yet may follow.
    pub(crate) fn found_nothing(&self, nothing: String, subjects: &[AskedSubject], unsigned: bool) -> Error {
        let mut nothing = nothing + &summary(subjects);
        if unsigned {
            nothing = nothing + "; " + &not_looked_at(self.tree_size);
        }
        let (lost, meet) = match (self.undecided, self.withheld.key_lost) {
            (0, 0) => return Error::new(ErrorKind::Refused, nothing),
            (0, lost) => (lost, agreeing(lost, "meets that", "meet that")),
            (lost, _) => (lost, "may"),
        };
        Error::tampered(format!(
            "{nothing}; but {lost} of its entries {meet}, and cannot be opened: {}",
            self.why_without_keys()
        ))
    }

    fn why_without_keys(&self) -> &'static str {
        if self.log_is_older { LOG_OLDER } else { KEYS_LOST }
    }
}

/// When what was read is given out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Delivery {
    /// Once all of it was checked: nothing is given out of a log that is damaged where the query reads.
    #[default]
    Checked,
    /// As it comes, each block once it was checked: for a destination that throws everything away after an error.
    /// Whatever lies before what failed has been given out.
    Discardable,
}

impl<'a> Reading<'a> {
    /// A reading of what the checkpoint of `snapshot`, which is believed, covers.
    pub(crate) fn new(given: &'a Given, keys: &'a Keyring, held: u64, snapshot: Snapshot) -> Result<Self> {
        let meter = Metered::new(snapshot.store.clone());
        let manifest = Manifest::load(Snapshot { store: Arc::new(meter.clone()), ..snapshot });
        let manifest = unless_gone(&*given.store, manifest)?;
        Ok(Reading { given, keys, held, manifest, meter })
    }

    /// The keys of data subjects that were given, as far as they are this log's.
    ///
    /// # Errors
    /// As [`own_keys::of`].
    pub(crate) fn group_keys(&self) -> Result<Option<Arc<dyn GroupKeys>>> {
        self.given.group_keys.clone().map(|keys| own_keys::of(keys, &self.manifest)).transpose()
    }

    /// Whether the keys that were given followed more of the log than is there, so that nothing of that is believed.
    fn is_older_than_keys(&self) -> Result<bool> {
        let Some(given) = &self.given.group_keys else { return Ok(false) };
        // A vault may follow more meanwhile: what is looked up later is no less.
        let given = given.erased_up_to()?.frames;
        let own = self.group_keys()?.map(|keys| keys.erased_up_to()).transpose()?;
        Ok(own.is_some_and(|own| own.frames < given))
    }

    /// Whose keys were destroyed: at first as far as the keys at hand do not follow it.
    pub(crate) fn erasures(&self) -> Result<Erasures<'a>> {
        let (snapshot, given) = (self.manifest.snapshot.clone(), self.given);
        let known = match self.group_keys()? {
            Some(keys) => {
                let followed = own_keys::require_followed(&self.manifest, &*keys)?;
                Erased::in_manifest(&self.manifest, followed)?
            }
            None => Erased::default(),
        };
        Ok(Erasures::new(known, move |from| Erased::newest(&snapshot, &given.trust, from)))
    }

    /// As [`asked_for`], with the keys at hand.
    pub(crate) fn asked_for(&self, query: &Query) -> Result<(Keyless, Named)> {
        asked_for(query, self.group_keys()?.as_deref(), || Erased::in_manifest(&self.manifest, 0))
    }

    /// Of a query that found nothing, what can be said of the data subjects that it asked for; `unsigned` is whether something
    /// that is not signed yet may follow.
    ///
    /// # Errors
    /// Where the keys cannot be looked up.
    pub(crate) fn subjects_not_found(&self, query: &Query, unsigned: bool) -> Result<Vec<AskedSubject>> {
        let Snapshot { config, checkpoint, .. } = &self.manifest.snapshot;
        let keys = self.group_keys()?;
        let nothing = Nothing {
            query,
            keys: keys.as_deref(),
            erasure: config.erasure,
            size: checkpoint.size,
            whole: true,
            unsigned,
            unread: false,
            withheld: false,
        };
        nothing.subjects(|| Erased::in_manifest(&self.manifest, 0))
    }

    /// As [`crate::Reader::numbers_of`].
    pub(crate) fn numbers_of(&self, subjects: &[&str]) -> Result<AskedSubjects> {
        let without = || Error::new(ErrorKind::NoKey, "the numbers of data subjects are in the vault alone");
        let keys = self.group_keys()?.ok_or_else(without)?;
        let size = self.manifest.snapshot.checkpoint.size;
        look_up(subjects, &*keys, size, || Erased::in_manifest(&self.manifest, 0))
    }

    /// As [`crate::Reader::read`].
    pub(crate) fn read<P: Send>(
        &self,
        query: &Query,
        delivery: Delivery,
        render: impl Fn(&Matches<'_>) -> P + Sync,
        write: impl FnMut(P) -> Result<()>,
    ) -> Result<ReadReport> {
        unless_gone(&*self.given.store, self.read_there(query, delivery, render, write))
    }

    fn read_there<P: Send>(
        &self,
        query: &Query,
        delivery: Delivery,
        render: impl Fn(&Matches<'_>) -> P + Sync,
        mut write: impl FnMut(P) -> Result<()>,
    ) -> Result<ReadReport> {
        let Checkpoint { size: tree_size, root, .. } = self.manifest.snapshot.checkpoint;
        let mut withheld = RedactedEntries::default();
        let mut report = ReadReport {
            entries: 0,
            withheld,
            undecided: 0,
            log_is_older: false,
            blocks_read: 0,
            blocks: 0,
            bytes_read: 0,
            tree_size,
            root,
        };
        let erasures = self.erasures()?;
        let (keyless, named) = self.asked_for(query)?;
        let keys = self.group_keys()?;
        let asks = Asks::of(&self.manifest.snapshot.config);
        let asked = Asked::new(query, keys.as_deref(), &erasures, &keyless, &named, asks);
        let mut held = Vec::new();
        let (mut entries, mut size) = (0, 0);
        // What was counted, and whether what was held back became too much.
        let (mut counted, overflown) = (Vec::new(), AtomicBool::new(false));
        let unless_too_much =
            |matches: &Matches<'_>| (!overflown.load(Ordering::Relaxed)).then(|| render(matches));
        let undecided = self.select(&asked, &mut report, &unless_too_much, |frame, selected| {
            entries += selected.entries;
            withheld.add(selected.withheld);
            match (delivery, selected.piece) {
                (Delivery::Discardable, Some(piece)) => return write(piece),
                (Delivery::Checked, Some(piece)) => held.push(piece),
                (_, None) => {}
            }
            counted.push(Counted { frame, mark: selected.mark });
            size += selected.bytes;
            if size > self.held && delivery == Delivery::Checked {
                held = Vec::new();
                overflown.store(true, Ordering::Relaxed);
            }
            Ok(())
        })?;
        (report.entries, report.withheld, report.undecided) = (entries, withheld, undecided);
        report.log_is_older = withheld.key_lost + undecided > 0 && self.is_older_than_keys()?;
        if overflown.into_inner() {
            self.read_again(&asked, &counted, &render, write)?;
        } else {
            held.into_iter().try_for_each(write)?;
        }
        report.bytes_read = self.meter.read() + self.manifest.snapshot.note.len() as u64;
        Ok(report)
    }

    /// Reads the blocks that what is asked for can concern, and gives what they have to `found`, with their numbers. Tells how
    /// many entries are undecided.
    fn select<P: Send>(
        &self,
        asked: &Asked<'_>,
        report: &mut ReadReport,
        render: &(impl Fn(&Matches<'_>) -> P + Sync),
        mut found: impl FnMut(u64, Selected<P>) -> Result<()>,
    ) -> Result<u64> {
        let mut frames = Frames::new(&self.manifest)?;
        let store = &*self.manifest.snapshot.store;
        let mut lookup = Lookup::new(store, asked.query, asked.named, asked.keyless);
        let next = || {
            while let Some(placed) = frames.next()? {
                let commitment = &placed.commitment;
                report.blocks += u64::from(commitment.kind == FrameKind::Block);
                if !asked.query.admits(commitment) {
                    continue;
                }
                let keys = self.keys(&mut frames)?;
                let indexed = lookup.look(commitment, &keys, frames.bundle());
                if indexed != Indexed::Without {
                    report.blocks_read += 1;
                    return candidate(&mut frames, placed, keys, indexed).map(Some);
                }
            }
            Ok(None)
        };
        let mut rebuild = Rebuild::new(&*self.given.store);
        let mut undecided = 0;
        self.examine(next, asked, render, |one| {
            rebuild.add(one.gathered);
            undecided += one.undecided;
            one.selected.map_or(Ok(()), |selected| found(one.frame, selected))
        })?;
        rebuild.finish();
        Ok(undecided)
    }

    /// Reads the blocks that were counted once more, and gives out what they have.
    fn read_again<P: Send>(
        &self,
        asked: &Asked<'_>,
        counted: &[Counted],
        render: &(impl Fn(&Matches<'_>) -> P + Sync),
        mut write: impl FnMut(P) -> Result<()>,
    ) -> Result<()> {
        let mut frames = Frames::new(&self.manifest)?;
        let (mut given, mut taken) = (counted.iter(), counted.iter());
        let next = || {
            let Some(Counted { frame, .. }) = given.next() else { return Ok(None) };
            while let Some(placed) = frames.next()? {
                if placed.commitment.frame == *frame {
                    let keys = self.keys(&mut frames)?;
                    return candidate(&mut frames, placed, keys, Indexed::Candidate).map(Some);
                }
            }
            Err(changed(*frame))
        };
        self.examine(next, asked, render, |one| {
            let same = taken.next().zip(one.selected);
            let same = same.filter(|(counted, selected)| counted.mark == selected.mark);
            same.map_or_else(|| Err(changed(one.frame)), |(_, selected)| write(selected.piece))
        })
    }

    /// Reads candidates on many threads, and gives `take` what they gave, in order.
    fn examine<P: Send>(
        &self,
        next: impl FnMut() -> Result<Option<Job<Candidate>>>,
        asked: &Asked<'_>,
        render: &(impl Fn(&Matches<'_>) -> P + Sync),
        mut take: impl FnMut(Found<P>) -> Result<()>,
    ) -> Result<()> {
        let (given, total) = (self.given, self.manifest.size());
        let mut entries = 0;
        let work = |memory: &mut Memory, candidate: Candidate| examine(memory, &candidate, asked, render);
        pool::in_order(given.threads, next, work, |one: Found<P>| {
            entries += one.selected.as_ref().map_or(0, |selected| selected.entries);
            given.tell(Progress { done: one.frame + 1, total, entries });
            take(one)
        })?;
        given.tell(Progress { done: total, total, entries });
        Ok(())
    }

    /// The keys of the epoch that the last frame belongs to.
    fn keys(&self, frames: &mut Frames<'_>) -> Result<Arc<EpochKeys>> {
        let Some(epoch) = frames.epoch_at_hand()?.cloned() else {
            return Err(Error::tampered("a block comes before any epoch"));
        };
        let number = epoch.commitment.frame;
        let mut known = self.keys.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(keys) = known.get(&number) {
            return Ok(keys.clone());
        }
        // Before anything is read for it.
        self.given.identity_at_hand()?;
        let commitment = epoch.commitment.clone();
        let body = epoch_body(frames, epoch)?;
        let keys = self.given.unlock(&commitment, &body)?;
        Ok(known.entry(number).or_insert(Arc::new(keys)).clone())
    }

    /// Gives `take` the numbers of the data subjects of each group in the blocks from frame `from` on that are not lost.
    ///
    /// # Errors
    /// `NoKey` where the identity does not open one of them; else as reading them.
    pub(crate) fn each_group(&self, from: u64, mut take: impl FnMut(&[u64])) -> Result<()> {
        let (mut frames, lost) = (Frames::new(&self.manifest)?, self.manifest.lost()?);
        let (mut opener, asks) = (BlockOpener::default(), Asks::of(&self.manifest.snapshot.config));
        while let Some(placed) = frames.next()? {
            let Commitment { kind, frame, .. } = placed.commitment;
            if kind != FrameKind::Block || frame < from || lost.contains(frame) {
                continue;
            }
            let keys = Some(self.keys(&mut frames)?);
            let located = Located { keys, ..frames.locate(placed)? };
            open_checked(&mut opener, &located, asks)?;
            let groups = opener.groups();
            (0..groups.len()).for_each(|group| take(groups.content(group).subjects));
        }
        Ok(())
    }
}

fn candidate(
    frames: &mut Frames<'_>,
    placed: Placed,
    keys: Arc<EpochKeys>,
    indexed: Indexed,
) -> Result<Job<Candidate>> {
    let (frame, weight) = (placed.commitment.frame, most_memory(&placed.commitment));
    let located = Located { keys: Some(keys), ..frames.locate(placed)? };
    Ok(Job { frame, weight, item: Candidate { frame: located, indexed } })
}

/// Checks a block and finds what matches.
fn examine<P>(
    memory: &mut Memory,
    Candidate { frame, indexed }: &Candidate,
    asked: &Asked<'_>,
    render: &impl Fn(&Matches<'_>) -> P,
) -> Result<Found<P>> {
    let Selection { selected, undecided } = memory.select(frame, asked, render)?;
    let gathered = frame.keys.as_ref().filter(|_| *indexed == Indexed::Uncovered).map(|keys| Gathered {
        commitment: frame.commitment.encode(),
        frame: frame.commitment.frame,
        keys: keys.clone(),
        tokens: index::tokens(keys, memory.opener.shared_rows().iter(), memory.opener.groups()),
    });
    Ok(Found { frame: frame.commitment.frame, selected, undecided, gathered })
}

/// What was counted is not what is there to be given out: the bytes are those that were checked, so it is the keys of
/// data subjects that have changed.
fn changed(frame: u64) -> Error {
    Error::unavailable(format!(
        "what was counted in frame {frame} cannot be given out any more: keys of data subjects went, or came, \
         meanwhile; ask again"
    ))
}

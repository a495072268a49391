//! Reading a log: [`Reader`], what it selects, and how that comes out.
//!
//! A reader takes a checkpoint, authenticates the list of frames under it, and then reads only the blocks that a
//! query can concern. Each is checked before anything of it is given out: its digest, its decryption, and that its
//! entries have the root in its commitment. Nobody else's lock is taken; a writer may be at work.

mod whole;

use crate::format::config::{self, LogConfig};
use crate::format::epoch::EpochBody;
use crate::format::segment::SegmentName;
use crate::index::{self, Gathered, Indexed, Lookup, Rebuild};
use crate::read::verify::{OnProgress, Progress};
use crate::scan::checkpoint::{Signed, trusted_checkpoint};
use crate::scan::erasures::{Erased, Erasures};
use crate::scan::finding::Finding;
use crate::scan::manifest::{self, Frames, Manifest, Placed};
use crate::scan::metered::Metered;
use crate::scan::open::{BlockOpener, Located, Opening, most_memory, verified};
use crate::scan::pipeline;
use crate::scan::query::Query;
use crate::scan::walk::open_segment;
use crate::scan::withheld::{Withheld, WithheldEntries};
use bulla_crypto::epoch::EpochKeys;
use bulla_crypto::group::GroupKeys;
use bulla_crypto::recipients::Identity;
use bulla_proof::Entry;
use bulla_proof::checkpoint::{Checkpoint, VerifierKey};
use bulla_proof::commitment::{Commitment, FrameKind};
use bulla_proof::hash::Hash;
use bulla_store::{Error, ErrorKind, Result};
use bulla_store::{FileSystem, Store, StoreFile};
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// How many bytes of rows a selection holds back until all of it is checked. More are read twice.
const HELD: u64 = 16 << 20;
/// What a row that is held back counts besides its bytes: it is small beside what holds it.
const ROW: u64 = 64;

/// A log, as one of its checkpoints has it, to be queried.
///
/// ```
/// # fn main() -> bulla::Result<()> {
/// # let place = tempfile::tempdir().unwrap();
/// # let directory = place.path().join("audit");
/// # let created = bulla::Init::default().create(&directory)?;
/// # let log = bulla::Log::open(&directory, bulla::Options::default())?;
/// # let mut producer = log.producer()?;
/// # producer.append(&bulla::Entry::new("read", "user_42/email").subject("user_42"))?;
/// # drop(producer);
/// # log.close()?;
/// # let identity = std::fs::read_to_string(bulla::default_keys(&directory).join("identity.age")).unwrap();
/// # let identity = std::sync::Arc::new(bulla::keys::recipients::IdentityFile::parse(&identity)?);
/// use bulla::vault::{Settings, VaultReader};
/// use bulla::{Query, Reader};
/// let vault = VaultReader::open(&bulla::default_keys(&directory), created.id, &Settings::default())?;
/// let reader = Reader::open(&directory)?.key(created.verifier_key).identity(identity).group_keys(std::sync::Arc::new(vault));
/// let read = reader.for_each(&Query::new().subject("user_42"), |number, entry| {
///     println!("{number}: {} {}", entry.operation, String::from_utf8_lossy(entry.location.unwrap_or_default()));
///     Ok(())
/// })?;
/// println!("{} entries, in {} of {} blocks", read.entries, read.blocks_read, read.blocks);
/// # assert_eq!(read.entries, 1);
/// # Ok(())
/// # }
/// ```
pub struct Reader {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) config: LogConfig,
    pub(crate) key: Option<VerifierKey>,
    pub(crate) identity: Option<Arc<dyn Identity>>,
    pub(crate) group_keys: Option<Arc<dyn GroupKeys>>,
    threads: usize,
    progress: OnProgress,
    held: u64,
    keys: Mutex<HashMap<u64, Arc<EpochKeys>>>,
}

/// What a query read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadReport {
    /// Entries that met the query.
    pub entries: u64,
    /// Of those, the ones whose personal fields could not be given out.
    pub withheld: WithheldEntries,
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

/// The entries of one block that meet a query, one at least, in the order of their numbers.
pub struct Matches<'a> {
    pub(crate) opener: &'a BlockOpener,
    pub(crate) commitment: &'a Commitment,
    /// Which rows of the block they are.
    pub(crate) rows: &'a [u32],
}

impl<'a> Matches<'a> {
    /// The entries, with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u64, Entry<'a>)> + '_ {
        // They were decoded once before, to see whether they match.
        self.rows().filter_map(|(number, row)| Some((number, Entry::decode(row).ok()?)))
    }

    /// Their canonical rows, with their numbers.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (u64, &'a [u8])> + '_ {
        let (rows, first) = (self.opener.rows(), self.commitment.first_entry);
        self.rows.iter().map(move |&row| (first + u64::from(row), &rows[row as usize]))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Why the personal fields of the entry with this number are missing, if they are.
    pub fn withheld(&self, number: u64) -> Option<Withheld> {
        let row = usize::try_from(number.checked_sub(self.commitment.first_entry)?).ok()?;
        self.opener.withheld(row)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// When what was read is given out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delivery {
    /// Once all of it was checked: nothing is given out of a log that is damaged where the query reads.
    #[default]
    Checked,
    /// As it comes, each block once it was checked: for a destination that throws everything away after an error.
    /// Whatever lies before what failed has been given out.
    Discardable,
}

impl Reader {
    /// A reader of the log in `directory`.
    ///
    /// # Errors
    /// `Unavailable` where there is no log, `Tampered` where its configuration is not one.
    pub fn open(directory: impl AsRef<Path>) -> Result<Self> {
        Self::open_store(Arc::new(FileSystem::new(directory.as_ref())))
    }

    /// A reader of the log in any store.
    ///
    /// # Errors
    /// As [`Reader::open`].
    pub fn open_store(store: Arc<dyn Store>) -> Result<Self> {
        // Whoever reads takes it for a log: what is wrong with the file is wrong with that.
        let (config, _) = config::load(&*store).map_err(|error| match error.kind() {
            ErrorKind::Invalid => Error::tampered(error.to_string()),
            _ => error,
        })?;
        Ok(Reader {
            store,
            config,
            key: None,
            identity: None,
            group_keys: None,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            progress: Box::new(|_| {}),
            held: HELD,
            keys: Mutex::default(),
        })
    }

    /// Requires the log to be this key's. Without one, the key that the log itself names is believed.
    pub fn key(mut self, key: VerifierKey) -> Self {
        self.key = Some(key);
        self
    }

    /// Reads with this identity.
    pub fn identity(mut self, identity: Arc<dyn Identity>) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Takes the keys of personal groups from here. Without any, entries that are in a group are refused with `NoKey`;
    /// with [`SharedOnly`](bulla_crypto::group::SharedOnly) what is personal of them is withheld.
    pub fn group_keys(mut self, keys: Arc<dyn GroupKeys>) -> Self {
        self.group_keys = Some(keys);
        self
    }

    /// How many threads to use (default: the processors there are).
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads.max(1);
        self
    }

    /// How many bytes of rows to hold back, of those that are read to be checked first. What is more is read twice.
    #[doc(hidden)]
    pub fn hold_back(mut self, bytes: u64) -> Self {
        self.held = bytes;
        self
    }

    /// Calls `progress` now and then.
    pub fn progress(mut self, progress: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.progress = Box::new(progress);
        self
    }

    /// Calls `each` with the number and the content of every entry that meets `query`, in the order of numbers, once
    /// everything that the query reads was checked.
    ///
    /// # Errors
    /// `Tampered` where what it reads is damaged, or the checkpoint is not the log's; `NoKey` without an identity
    /// that opens it; `Unavailable` where a file cannot be read; and whatever `each` returns.
    pub fn for_each(
        &self,
        query: &Query,
        mut each: impl FnMut(u64, &Entry<'_>) -> Result<()>,
    ) -> Result<ReadReport> {
        let own = |matches: &Matches<'_>| {
            matches.rows().map(|(number, row)| (number, row.to_vec())).collect::<Vec<_>>()
        };
        self.read(query, Delivery::Checked, own, |rows| {
            rows.iter().try_for_each(|(number, row)| {
                let entry = Entry::decode(row)
                    .map_err(|error| Error::tampered(format!("entry {number}: {error}")))?;
                each(*number, &entry)
            })
        })
    }

    /// Reads what `query` asks for: `render` makes something of each block's matches, where it has any, on many
    /// threads; `write` gets that in the order of entry numbers, on the calling thread.
    ///
    /// # Errors
    /// As [`Reader::for_each`].
    pub fn read<P: Send>(
        &self,
        query: &Query,
        delivery: Delivery,
        render: impl Fn(&Matches<'_>) -> P + Sync,
        write: impl FnMut(P) -> Result<()>,
    ) -> Result<ReadReport> {
        self.snapshot()?.read(query, delivery, render, write)
    }

    /// What the current checkpoint covers.
    pub(crate) fn snapshot(&self) -> Result<Snapshot<'_>> {
        let store = Metered::new(self.store.clone());
        let Signed { checkpoint, note, .. } = trusted_checkpoint(&store, &self.config, self.key.as_ref())?;
        let manifest = Manifest::load(&store, checkpoint)?;
        Ok(Snapshot { reader: self, store, manifest, note })
    }

    /// Whom to read as.
    ///
    /// # Errors
    /// `NoKey` where nobody was named.
    pub(crate) fn identity_at_hand(&self) -> Result<&dyn Identity> {
        let without = || Error::new(ErrorKind::NoKey, "reading entries needs an identity that opens the log");
        self.identity.as_deref().ok_or_else(without)
    }

    /// The keys of an epoch, which a block is needed of.
    ///
    /// # Errors
    /// `NoKey` where `identity` is not among those whom it was begun for.
    pub(crate) fn unlock(
        &self,
        identity: &dyn Identity,
        commitment: &Commitment,
        body: &EpochBody,
    ) -> Result<EpochKeys> {
        body.unlock(commitment, identity)?.ok_or_else(|| {
            let Commitment { frame, first_entry, .. } = commitment;
            let message = format!(
                "the identity does not open epoch {frame} of {}, which begins with entry {first_entry}: it is not a \
                 recipient of it; read with one that is, or ask for entries of other epochs",
                self.store.describe("")
            );
            Error::new(ErrorKind::NoKey, message)
        })
    }
}

/// A log at one checkpoint.
pub(crate) struct Snapshot<'a> {
    pub(crate) reader: &'a Reader,
    pub(crate) store: Metered,
    pub(crate) manifest: Manifest,
    /// The checkpoint as a signed note.
    pub(crate) note: Vec<u8>,
}

/// What one block gave.
struct Found<P> {
    frame: u64,
    selected: Option<Selected<P>>,
    /// What the index should have said of it.
    gathered: Option<Gathered>,
}

impl<'a> Snapshot<'a> {
    /// Whose keys were destroyed: at first as far as the keys at hand do not follow it.
    pub(crate) fn erasures(&self) -> Result<Erasures<'a>> {
        let Reader { config, key, group_keys, store, .. } = self.reader;
        let known = match group_keys.as_ref().filter(|_| config.erasure) {
            Some(keys) => Erased::in_manifest(&self.manifest, &self.store, config, keys.erased_up_to()?)?,
            None => Erased::default(),
        };
        Ok(Erasures::new(known, move |from| Erased::newest(&**store, config, key.as_ref(), from)))
    }

    /// As [`Reader::read`].
    pub(crate) fn read<P: Send>(
        &self,
        query: &Query,
        delivery: Delivery,
        render: impl Fn(&Matches<'_>) -> P + Sync,
        mut write: impl FnMut(P) -> Result<()>,
    ) -> Result<ReadReport> {
        let Checkpoint { size: tree_size, root, .. } = self.manifest.checkpoint;
        let mut withheld = WithheldEntries::default();
        let mut report =
            ReadReport { entries: 0, withheld, blocks_read: 0, blocks: 0, bytes_read: 0, tree_size, root };
        let mut held = Vec::new();
        let (mut entries, mut size) = (0, 0);
        // Which frames have matches, and whether what was held back became too much.
        let (mut matching, overflown) = (Vec::new(), AtomicBool::new(false));
        let unless_too_much =
            |matches: &Matches<'_>| (!overflown.load(Ordering::Relaxed)).then(|| render(matches));
        self.scan(query, &mut report, None, &unless_too_much, |frame, selected| {
            entries += selected.entries;
            withheld.add(selected.withheld);
            match (delivery, selected.piece) {
                (Delivery::Discardable, Some(piece)) => return write(piece),
                (Delivery::Checked, Some(piece)) => held.push(piece),
                (_, None) => {}
            }
            matching.push(frame);
            size += selected.bytes;
            if size > self.reader.held && delivery == Delivery::Checked {
                held = Vec::new();
                overflown.store(true, Ordering::Relaxed);
            }
            Ok(())
        })?;
        (report.entries, report.withheld) = (entries, withheld);
        if overflown.into_inner() {
            let again = &mut { report };
            self.scan(query, again, Some(&matching), &render, |_, selected| write(selected.piece))?;
        } else {
            held.into_iter().try_for_each(write)?;
        }
        report.bytes_read = self.store.read();
        Ok(report)
    }

    /// Reads the blocks that `query` can concern, or of those the ones in `only`, and gives what they have to `found`,
    /// with their numbers.
    fn scan<P: Send>(
        &self,
        query: &Query,
        report: &mut ReadReport,
        only: Option<&[u64]>,
        render: &(impl Fn(&Matches<'_>) -> P + Sync),
        mut found: impl FnMut(u64, Selected<P>) -> Result<()>,
    ) -> Result<()> {
        let Reader { config, progress, threads, .. } = self.reader;
        let mut frames = Frames::new(&self.manifest, &self.store, config)?;
        let mut files = Files::default();
        let erasures = self.erasures()?;
        let asked = Asked::new(query, self.reader.group_keys.as_deref(), &erasures)?;
        let mut lookup = Lookup::new(&self.store, query, asked.number);
        let total = self.manifest.checkpoint.size;
        let mut entries = 0;
        let next = || {
            while let Some(placed) = frames.next()? {
                if placed.commitment.kind != FrameKind::Block {
                    continue;
                }
                report.blocks += 1;
                let frame = placed.commitment.frame;
                if only.is_some_and(|only| only.binary_search(&frame).is_err())
                    || !query.admits(&placed.commitment)
                {
                    continue;
                }
                let keys = self.keys(&frames, &mut files)?;
                let indexed = lookup.look(&placed.commitment, &keys, frames.bundle());
                if indexed == Indexed::Without {
                    continue;
                }
                report.blocks_read += 1;
                let weight = most_memory(&placed.commitment);
                let frame = self.locate(&mut files, placed, Some(keys))?;
                return Ok(Some((Candidate { frame, indexed }, weight)));
            }
            Ok(None)
        };
        let mut rebuild = Rebuild::new(&*self.reader.store, only.is_none());
        let work =
            |memory: &mut Memory, candidate: Candidate| self.examine(memory, &candidate, &asked, render);
        pipeline::in_order(*threads, next, work, |mut one: Found<P>| {
            entries += one.selected.as_ref().map_or(0, |selected| selected.entries);
            progress(Progress { done: one.frame + 1, total, entries });
            rebuild.add(one.gathered.take());
            one.selected.map_or(Ok(()), |selected| found(one.frame, selected))
        })?;
        rebuild.finish();
        progress(Progress { done: total, total, entries });
        Ok(())
    }

    /// Checks a block and finds what matches.
    fn examine<P>(
        &self,
        memory: &mut Memory,
        Candidate { frame, indexed }: &Candidate,
        asked: &Asked<'_>,
        render: &impl Fn(&Matches<'_>) -> P,
    ) -> Result<Found<P>> {
        let selected = memory.select(frame, asked, render)?;
        let gathered = frame.keys.as_ref().filter(|_| *indexed == Indexed::Uncovered).map(|keys| Gathered {
            commitment: frame.commitment.encode(),
            frame: frame.commitment.frame,
            keys: keys.clone(),
            tokens: index::tokens(keys, memory.opener.shared_rows().iter(), memory.opener.groups()),
        });
        Ok(Found { frame: frame.commitment.frame, selected, gathered })
    }

    /// A frame in the segment that has it.
    pub(crate) fn locate(
        &self,
        files: &mut Files,
        placed: Placed,
        keys: Option<Arc<EpochKeys>>,
    ) -> Result<Located> {
        let found = placed.segment.map(|name| Ok((name, files.open(&self.store, name)?))).transpose()?;
        let length = found.as_ref().map_or(0, |(_, (_, length))| *length);
        let Some((segment, (file, _))) = found.filter(|_| placed.end() <= length) else {
            return Err(self.missing(&placed, length)?);
        };
        let Placed { commitment, offset, .. } = placed;
        Ok(Located { commitment, segment, file, offset, keys, foreign: false })
    }

    /// That the segment of `length` bytes in which a frame should be has not got it, nor those after it.
    fn missing(&self, placed: &Placed, length: u64) -> Result<Error> {
        let frames = Frames::new(&self.manifest, &self.store, &self.reader.config)?;
        let all = manifest::missing(frames, placed.segment, length)?;
        let finding = all.unwrap_or_else(|| Finding::missing(None, &placed.commitment));
        Ok(Error::tampered(format!("{finding}; `bulla verify` tells all")))
    }

    /// The keys of the current epoch.
    pub(crate) fn keys(&self, frames: &Frames<'_>, files: &mut Files) -> Result<Arc<EpochKeys>> {
        let Some(epoch) = frames.epoch() else {
            return Err(Error::tampered("a block comes before any epoch"));
        };
        let number = epoch.commitment.frame;
        let mut known = self.reader.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(keys) = known.get(&number) {
            return Ok(keys.clone());
        }
        let identity = self.reader.identity_at_hand()?;
        let body = self.epoch_body(epoch, files)?;
        let keys = self.reader.unlock(identity, &epoch.commitment, &body)?;
        Ok(known.entry(number).or_insert(Arc::new(keys)).clone())
    }

    /// What an epoch's frame says.
    pub(crate) fn epoch_body(&self, epoch: &Placed, files: &mut Files) -> Result<EpochBody> {
        let located = self.locate(files, epoch.clone(), None)?;
        EpochBody::decode(&verified(&located)?.into_body())
    }
}

/// A block that has to be read.
struct Candidate {
    frame: Located,
    indexed: Indexed,
}

/// What of a block met a query.
pub(crate) struct Selected<P> {
    /// How many entries, one at least.
    pub(crate) entries: u64,
    /// How many of them without their personal fields.
    pub(crate) withheld: WithheldEntries,
    /// Bytes of their rows, and of what holds them.
    bytes: u64,
    /// What was made of them.
    pub(crate) piece: P,
}

/// A query, and what opens the groups that it concerns.
pub(crate) struct Asked<'a> {
    query: &'a Query,
    keys: Option<&'a dyn GroupKeys>,
    erasures: &'a Erasures<'a>,
    /// The number of the data subject that it asks for, where there is such a one.
    number: Option<u64>,
}

impl<'a> Asked<'a> {
    pub(crate) fn new(
        query: &'a Query,
        keys: Option<&'a dyn GroupKeys>,
        erasures: &'a Erasures<'a>,
    ) -> Result<Self> {
        let number = match (&query.subject, keys) {
            (Some(subject), Some(keys)) => keys.number(subject)?,
            _ => None,
        };
        Ok(Asked { query, keys, erasures, number })
    }

    /// Opens those groups of a block, which was opened, that can have what is asked for.
    fn open_groups(&self, opener: &mut BlockOpener, frame: &Located) -> Result<()> {
        let Some(epoch) = frame.keys.as_ref().filter(|_| !opener.groups().is_empty()) else { return Ok(()) };
        let Some(keys) = self.keys else {
            let message = format!(
                "the personal fields in frame {} are encrypted for each data subject: reading them needs the keys \
                 of data subjects",
                frame.commitment.frame
            );
            return Err(Error::new(ErrorKind::NoKey, message));
        };
        if self.query.subject.is_some() && self.number.is_none() {
            return Ok(());
        }
        let opening = Opening { keys, erasures: self.erasures, subject: self.number };
        let opened = opener.open_groups(&frame.commitment, epoch, &opening)?;
        opened.map_err(|unreadable| unreadable.error(frame))
    }
}

/// Memory that a thread uses again from block to block.
#[derive(Default)]
pub(crate) struct Memory {
    opener: BlockOpener,
    rows: Vec<u32>,
}

impl Memory {
    /// Opens a block, all checks done, and renders what of it meets `query`, if anything does.
    pub(crate) fn select<P>(
        &mut self,
        frame: &Located,
        asked: &Asked<'_>,
        render: &impl Fn(&Matches<'_>) -> P,
    ) -> Result<Option<Selected<P>>> {
        open_checked(&mut self.opener, frame)?;
        asked.open_groups(&mut self.opener, frame)?;
        self.rows.clear();
        let first_entry = frame.commitment.first_entry;
        let (mut bytes, mut withheld) = (0, WithheldEntries::default());
        for ((number, row), index) in (first_entry..).zip(self.opener.rows().iter()).zip(0..) {
            let entry =
                Entry::decode(row).map_err(|error| Error::tampered(format!("entry {number}: {error}")))?;
            let why = self.opener.withheld(index as usize);
            if asked.query.matches(number, &entry) && (why.is_none() || asked.query.asks_nothing_personal()) {
                self.rows.push(index);
                withheld.count(why);
                bytes += row.len() as u64 + ROW;
            }
        }
        let matches = Matches { opener: &self.opener, commitment: &frame.commitment, rows: &self.rows };
        let selected =
            || Selected { entries: matches.len() as u64, withheld, bytes, piece: render(&matches) };
        Ok((!matches.is_empty()).then(selected))
    }
}

/// The segment that was opened last.
#[derive(Default)]
pub(crate) struct Files {
    last: Option<(SegmentName, Opened)>,
}

/// A segment's file, and how long it was when it was opened: since then it can only have grown.
type Opened = (Arc<dyn StoreFile>, u64);

impl Files {
    fn open(&mut self, store: &dyn Store, segment: SegmentName) -> Result<Opened> {
        match &self.last {
            Some((name, opened)) if *name == segment => Ok(opened.clone()),
            _ => {
                let opened = open_segment(store, segment)?;
                self.last = Some((segment, opened.clone()));
                Ok(opened)
            }
        }
    }
}

/// Opens a block, all checks done.
fn open_checked(opener: &mut BlockOpener, frame: &Located) -> Result<()> {
    let verified = verified(frame)?;
    let Some(keys) = &frame.keys else { return Err(Error::new(ErrorKind::NoKey, "no key opens the block")) };
    let opened = opener.open(verified, keys).and_then(|()| opener.check_units(&frame.commitment, keys));
    opened.map_err(|unreadable| unreadable.error(frame))
}

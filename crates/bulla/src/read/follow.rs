//! Following a log: its entries as they are committed, each with whether a checkpoint covers it yet.
//!
//! With a policy, "a checkpoint covers" says here: one that witnesses have cosigned as it asks for.
//!
//! Invariants:
//! - an entry that is not marked as pending lies in a frame under a signed root, to which every frame since the
//!   beginning was hashed;
//! - what a checkpoint covers later is compared with what was shown before it did. Where a crash took something that
//!   was shown as pending, that is told, and what came in its place is shown;
//! - a log that was cut or rewritten below a checkpoint that was seen is `Tampered`;
//! - no look goes by a checkpoint that covers less than the key directory's seal state speaks of, so that nothing ends without what was put
//!   away since the log began to be followed;
//! - nothing that no checkpoint covers is: anybody can have put it there. What is no frame is waited at until a checkpoint
//!   tells what stands in its place;
//! - an epoch is opened once a block of it is needed, and not before: who does not read it is refused there, after
//!   everything that comes earlier;
//! - what is bounded by time ends at a look that began after the time was over and found nothing left to wait for: the
//!   clock is read before the log.

use crate::format::epoch::EpochBody;
use crate::format::frame::Head;
use crate::format::segment;
use crate::index::Named;
use crate::read::given::Given;
use crate::read::reader::Reader;
use crate::read::reading::{Delivery, ReadReport, Reading};
use crate::read::select::{Asked, Kept, Matches, Memory, Selection};
use crate::scan::checkpoint::believed_head;
use crate::scan::cursor::Cursor;
use crate::scan::erasures::Erasures;
use crate::scan::events::epoch_body;
use crate::scan::keyless::Keyless;
use crate::scan::located::Located;
use crate::scan::manifest::Frames;
use crate::scan::open::Asks;
use crate::scan::query::Query;
use crate::scan::redaction::Redaction;
use crate::scan::snapshot::{replaced, require_readable, unless_gone};
use crate::scan::unsigned::not_those;
use bulla_crypto::environment::{Clock, Environment};
use bulla_crypto::epoch::EpochKeys;
use bulla_proof::Entry;
use bulla_proof::commitment::{Commitment, FrameKind};
use bulla_proof::hash::Hash;
use bulla_proof::tile;
use bulla_proof::tree::{Frontier, TreeHead};
use bulla_store::{Error, ErrorKind, Paths, Result};
use bulla_text::spelling::counted;
use std::sync::{Arc, OnceLock};

/// How long after a time, in nanoseconds, what was logged before it is taken to be committed: entries get their time as
/// they are appended, and wait for company before they are sealed and synced.
const SETTLING: i64 = 2_000_000_000;

/// Follows a log from where it was when it began.
///
/// **Epochs that the identity does not open.** What it can read is given out. Where a block is needed that it cannot
/// (one whose public numbers and times the query admits), [`Follow::poll`] ends with `NoKey`, as [`Reader::read`] does,
/// once everything before that block was given out. Blocks that the query rules out need no key: whoever reads only a
/// part of a log follows it with [`Query::entries`], [`Query::from`] or [`Query::to`].
///
/// **Where it ends.** A query with a last entry has ended once a checkpoint covers that entry. One with [`Query::to`] has
/// ended at the first look, at least two seconds after that time, for which a checkpoint covers every committed block
/// that can hold an earlier entry; all those have been given out then. It cannot know of entries that are committed
/// later with an earlier time: such as were given one by their source, or waited longer than that in a writer.
/// [`Polled::ended`] tells of either.
///
/// ```
/// # fn main() -> bulla::Result<()> {
/// # let place = tempfile::tempdir().unwrap();
/// # let directory = place.path().join("audit");
/// # bulla::Init::default().create(&directory)?;
/// # let log = bulla::Log::open(&directory, bulla::Options::default())?;
/// # let identity = std::fs::read_to_string(bulla::default_keys(&directory).join("identity.age")).unwrap();
/// # let identity = std::sync::Arc::new(bulla::keys::recipients::IdentityFile::parse(&identity)?);
/// use bulla::{Entry, Query, Reader};
/// let reader = Reader::open(&directory)?.identity(identity);
/// let mut follow = reader.follow(&Query::new().operation("delete"))?;
/// let mut producer = log.producer()?;
/// producer.append(&Entry::new("delete", "user_42/email"))?;
/// producer.flush()?.durable()?;
/// let mut seen = 0;
/// follow.poll(|followed| {
///     println!("{}: {} {}", followed.number, followed.entry.operation, if followed.pending { "pending" } else { "" });
///     seen += 1;
///     Ok(())
/// })?;
/// assert_eq!(seen, 1);
/// # Ok(())
/// # }
/// ```
pub struct Follow<'a> {
    reader: &'a Reader,
    query: Query,
    /// What was committed when it began, until that was given out.
    history: Option<Reading<'a>>,
    /// The tree that a checkpoint was seen to sign, and the leaves of the frames that were seen after it.
    tree: Frontier,
    pending: Vec<Pending>,
    tip: Tip,
    signed_only: bool,
    clock: Arc<dyn Clock>,
    erasures: Erasures<'a>,
    keyless: Keyless,
    named: Named,
    /// Of this look: what a checkpoint covers.
    settled: Unsettled,
    /// Whether the keys followed more of the log than was there at first, and some are missing.
    log_is_older: bool,
    memory: Memory,
}

/// Where the next frame is looked for, and what it has to be.
#[derive(Clone, Default)]
struct Tip {
    cursor: Option<Cursor>,
    frame: u64,
    entry: u64,
    /// The current epoch.
    epoch: Option<Arc<Epoch>>,
    /// The leaf of what stands here as the next frame, and is none.
    doubted: Option<Hash>,
}

/// An epoch, as its frame has it. That may be gone from its place by the time that a block needs it.
struct Epoch {
    commitment: Commitment,
    body: EpochBody,
    /// Once it was opened.
    keys: OnceLock<Arc<EpochKeys>>,
}

/// A frame that was passed, and its epoch.
struct Passed {
    frame: Located,
    epoch: Option<Arc<Epoch>>,
}

/// An entry, as it is followed.
#[derive(Debug)]
#[non_exhaustive]
pub struct Followed<'a> {
    /// Its number.
    pub number: u64,
    /// What it says.
    pub entry: Entry<'a>,
    /// Why it comes without its personal fields, if it does.
    pub withheld: Option<Redaction>,
    /// Whether no signed checkpoint covers it yet: it was written, and a crash can still take it. With a policy, whether none
    /// does that is witnessed.
    pub pending: bool,
}

/// What a look at a log that is followed came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Polled {
    /// Entries of the log that a checkpoint covers.
    pub covered: u64,
    /// The first entry that was shown as pending and then taken by a crash. What was shown from it on does not count;
    /// what the log has in its place has been given out since.
    pub lost_from: Option<u64>,
    /// The frame from which on what no checkpoint covers is not given out, since what stands in its place is none: whoever
    /// holds the log's directory can put it there.
    pub doubted_from: Option<u64>,
    /// Entries that were passed by, though they may have met the query: see [`ReadReport::undecided`]. Those of this look that
    /// a checkpoint covers, and those that were passed by as pending and are covered since: what was pending may yet be replaced,
    /// and is no entry of the log before.
    ///
    /// [`ReadReport::undecided`]: crate::ReadReport::undecided
    pub undecided: u64,
    /// Entries that were given out as pending without their personal fields, since their keys are lost, and that a checkpoint
    /// covers since.
    pub key_lost: u64,
    /// Where keys are missing: whether those that were given followed more of the log than was there when it began to be followed, as
    /// [`ReadReport::log_is_older`](crate::ReadReport::log_is_older).
    pub log_is_older: bool,
    /// Whether everything that is asked for was given out and is covered by a checkpoint, and nothing more is to come:
    /// see [`Follow`].
    pub ended: bool,
}

/// A frame that was seen and that no checkpoint covered then.
struct Pending {
    leaf: Hash,
    first_entry: u64,
    /// Whether the query admits it.
    wanted: bool,
    /// What is to be told of it once a checkpoint covers it.
    unsettled: Unsettled,
}

/// Entries whose keys are lost.
#[derive(Clone, Copy, Default)]
struct Unsettled {
    /// Which were passed by, though they may have met the query.
    undecided: u64,
    /// Which were given out without what is personal.
    key_lost: u64,
}

impl Unsettled {
    fn of(pending: &[Pending]) -> Self {
        pending.iter().fold(Unsettled::default(), |sum, Pending { unsettled, .. }| Unsettled {
            undecided: sum.undecided + unsettled.undecided,
            key_lost: sum.key_lost + unsettled.key_lost,
        })
    }
}

impl Reader {
    /// Follows the log: first the entries that meet `query` and are committed already, then those to come.
    ///
    /// # Errors
    /// As [`Reader::read`]; but that the identity opens what is read is seen once it is read.
    pub fn follow(&self, query: &Query) -> Result<Follow<'_>> {
        unless_gone(&*self.given.store, self.follow_there(query))
    }

    fn follow_there(&self, query: &Query) -> Result<Follow<'_>> {
        let reading = self.reading()?;
        let mut leaves = reading.manifest.leaves()?;
        let tip = Tip::after(&reading)?;
        leaves.truncate(believed(&reading));
        let (erasures, (keyless, named)) = (reading.erasures()?, reading.asked_for(query)?);
        Ok(Follow {
            reader: self,
            query: query.clone(),
            history: Some(reading),
            tree: tree_of(leaves),
            pending: Vec::new(),
            tip,
            signed_only: false,
            clock: Environment::default().clock,
            erasures,
            keyless,
            named,
            settled: Unsettled::default(),
            log_is_older: false,
            memory: Memory::default(),
        })
    }
}

impl Follow<'_> {
    /// Whether to give out entries only once a checkpoint covers them.
    pub fn signed_only(mut self, signed_only: bool) -> Self {
        self.signed_only = signed_only;
        self
    }

    /// What tells whether the query's time is over (default: the operating system's clock).
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Whether the identity opens the epoch that the log is in. If not, the next block that is needed ends it.
    ///
    /// # Errors
    /// `Tampered` where the epoch's key is not what its frame says; whatever the identity fails with.
    pub fn opens_current_epoch(&self) -> Result<bool> {
        let Some(epoch) = &self.tip.epoch else { return Ok(true) };
        match epoch.keys(&self.reader.given) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NoKey => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Gives out what has been committed since the last call, in order. Does not wait, but for some seconds where the log's seal state
    /// speaks of more than its checkpoint covers: for the writer that is about to publish that.
    ///
    /// # Errors
    /// `Unavailable` where no writer does, as after an older checkpoint, or an older copy of the log, was put back;
    /// `Tampered` where the log was cut or rewritten, or what a checkpoint covers is damaged where it is read; `NoKey` where a block is needed
    /// whose epoch the identity does not open; otherwise as [`Reader::read`]; and whatever `each` returns. What was
    /// given out before an error counts. To go on after one, follow anew from the entry after: this may have passed
    /// some by.
    pub fn poll(&mut self, each: impl FnMut(&Followed<'_>) -> Result<()>) -> Result<Polled> {
        unless_gone(&*self.reader.given.store, self.poll_there(each))
    }

    fn poll_there(&mut self, mut each: impl FnMut(&Followed<'_>) -> Result<()>) -> Result<Polled> {
        let over = self.is_over();
        self.settled = Unsettled::default();
        if let Some(reading) = self.history.take()
            && let Some(query) = up_to(&self.query, self.tip.entry)
        {
            let ReadReport { undecided, log_is_older, .. } = give_out(&reading, &query, &mut each)?;
            self.settled.undecided += undecided;
            self.log_is_older |= log_is_older;
        }
        let TreeHead { size, root } = self.head()?;
        if size < self.tree.size() {
            let (before, now) = (self.tree.size(), counted(size, "frame"));
            let message =
                format!("the log was cut: it has {now}, and its key signed {before} of them before");
            return Err(Error::tampered(message));
        }
        let shown = self.pending.len();
        let mut covered = Vec::new();
        while self.tip.frame < size {
            let Some(frame) = self.advance(false)? else { break };
            covered.push(frame);
        }
        let mut lost_from = None;
        match self.grown(size, root) {
            Some(tree) => {
                let frames = usize::try_from(size - self.tree.size()).unwrap_or(usize::MAX);
                self.settle(frames);
                self.pending.drain(..frames);
                self.tree = tree;
                for frame in covered {
                    let found = self.look_into(frame)?;
                    self.show(found, false, &mut each)?;
                }
            }
            None => lost_from = self.begin_again(shown, &mut each)?,
        }
        let covered = self.pending.first().map_or(self.tip.entry, |pending| pending.first_entry);
        while !self.signed_only {
            let before = self.tip.clone();
            let Some(frame) = self.advance(true)? else { break };
            let leaf = frame.frame.commitment.leaf();
            match self.look_into(frame) {
                Err(error) if error.kind() == ErrorKind::Tampered => {
                    self.pending.pop();
                    self.tip = Tip { doubted: Some(leaf), ..before };
                    break;
                }
                found => self.show(found?, true, &mut each)?,
            }
        }
        let doubted_from = self.tip.doubted.map(|_| self.tip.frame);
        let last_covered = self.query.last_entry.is_some_and(|last| covered > last);
        let ended = last_covered || over && self.is_settled()?;
        let Unsettled { undecided, key_lost } = self.settled;
        let log_is_older = self.log_is_older;
        Ok(Polled { covered, lost_from, doubted_from, undecided, key_lost, log_is_older, ended })
    }

    /// The tree that is believed by now. Of a log whose seal state speaks of more than its checkpoint covers a writer is waited for, which is
    /// about to publish that.
    ///
    /// # Errors
    /// `Unavailable` where none does: an older checkpoint was put back, or an older copy of the log.
    fn head(&self) -> Result<TreeHead> {
        let Given { store, trust, .. } = &self.reader.given;
        let sealed = store.paths().map_or(0, Paths::sealed);
        let (believed, signed) = believed_head(&**store, &self.reader.config, trust)?;
        // That is told as what it is.
        let was_cut = believed.size < self.tree.size();
        if was_cut || signed >= sealed {
            return Ok(believed);
        }
        if let Some(paths) = store.paths() {
            paths.look_again();
            if paths.unpublished(signed)?.is_some() {
                require_readable(&**store)?;
            }
        }
        match believed_head(&**store, &self.reader.config, trust)? {
            (believed, signed) if signed >= sealed => Ok(believed),
            _ => Err(replaced(&**store, "one that covers less")),
        }
    }

    /// Whether the query's time has been over for long enough.
    fn is_over(&self) -> bool {
        self.query.to.is_some_and(|to| self.clock.now() >= to.saturating_add(SETTLING))
    }

    /// Whether a checkpoint covers all that is committed and that the query admits.
    fn is_settled(&self) -> Result<bool> {
        let mut settled = !self.pending.iter().any(|pending| pending.wanted);
        let mut ahead = self.tip.clone();
        while settled && let Some(passed) = ahead.pass(self.reader, true)? {
            settled = !self.query.admits(&passed.frame.commitment);
        }
        Ok(settled)
    }

    /// The tree with the frames that a checkpoint of `size` covers, if it has that root.
    fn grown(&self, size: u64, root: Hash) -> Option<Frontier> {
        let mut tree = self.tree.clone();
        for pending in &self.pending {
            if tree.size() < size {
                tree.push(pending.leaf);
            }
        }
        (tree.size() == size && tree.root() == root).then_some(tree)
    }

    /// Goes on from what the checkpoint lists: frames were lost, of which the first `shown` that were pending had been
    /// shown, or they are not where they were looked for.
    fn begin_again(
        &mut self,
        shown: usize,
        each: &mut impl FnMut(&Followed<'_>) -> Result<()>,
    ) -> Result<Option<u64>> {
        let reading = self.reader.reading()?;
        let mut leaves = reading.manifest.leaves()?;
        leaves.truncate(believed(&reading));
        let known = usize::try_from(self.tree.size()).unwrap_or(usize::MAX);
        let before = leaves.get(..known).map(tile::tile_hash);
        if before != Some(self.tree.root()) {
            let message =
                format!("the log was rewritten: its first {} signed before", not_those(self.tree.size()));
            return Err(Error::tampered(message));
        }
        let pending = self.pending[..shown].iter().zip(&leaves[known..]);
        let agree = pending.take_while(|(pending, leaf)| pending.leaf == **leaf).count();
        let first = self.pending.get(agree).map_or(self.tip.entry, |pending| pending.first_entry);
        let first_entry = Some(self.query.first_entry.unwrap_or(0).max(first));
        let tip = Tip::after(&reading)?;
        self.settle(agree);
        if let Some(query) = up_to(&Query { first_entry, ..self.query.clone() }, tip.entry) {
            self.settled.undecided += give_out(&reading, &query, each)?.undecided;
        }
        self.tip = tip;
        (self.erasures, (self.keyless, self.named)) = (reading.erasures()?, reading.asked_for(&self.query)?);
        self.tree = tree_of(leaves);
        self.pending.clear();
        Ok((agree < shown).then_some(first))
    }

    /// A checkpoint covers the first of the frames that were pending: what was to be told of them then is so.
    fn settle(&mut self, frames: usize) {
        let Unsettled { undecided, key_lost } =
            Unsettled::of(&self.pending[..frames.min(self.pending.len())]);
        self.settled.undecided += undecided;
        self.settled.key_lost += key_lost;
    }

    /// Passes the next frame, if it is there: with `whole`, once its body is.
    fn advance(&mut self, whole: bool) -> Result<Option<Passed>> {
        let Some(passed) = self.tip.pass(self.reader, whole)? else { return Ok(None) };
        let commitment = &passed.frame.commitment;
        let (leaf, wanted) = (commitment.leaf(), self.query.admits(commitment));
        let (first_entry, unsettled) = (commitment.first_entry, Unsettled::default());
        self.pending.push(Pending { leaf, first_entry, wanted, unsettled });
        Ok(Some(passed))
    }

    /// What a frame that was passed has of what is asked for.
    ///
    /// # Errors
    /// `Tampered` where it is not what it says.
    fn look_into(&mut self, Passed { frame, epoch }: Passed) -> Result<Selection<Vec<Kept>>> {
        self.erasures.meet(&frame)?;
        if !self.query.admits(&frame.commitment) {
            return Ok(Selection { selected: None, undecided: 0 });
        }
        let epoch = epoch.ok_or_else(|| Error::tampered("a block comes before any epoch"))?;
        let frame = Located { keys: Some(epoch.keys(&self.reader.given)?), ..frame };
        let keys = self.reader.given.group_keys.as_deref();
        let asks = Asks::of(&self.reader.config);
        let asked = Asked::new(&self.query, keys, &self.erasures, &self.keyless, &self.named, asks);
        self.memory.select(&frame, &asked, &|matches: &Matches<'_>| matches.to_kept())
    }

    fn show(
        &mut self,
        Selection { selected, undecided }: Selection<Vec<Kept>>,
        pending: bool,
        each: &mut impl FnMut(&Followed<'_>) -> Result<()>,
    ) -> Result<()> {
        let rows = selected.map(|selected| selected.piece).unwrap_or_default();
        match self.pending.last_mut().filter(|_| pending) {
            Some(last) => {
                let key_lost =
                    rows.iter().filter(|row| row.withheld == Some(Redaction::KeyLost)).count() as u64;
                last.unsettled = Unsettled { undecided, key_lost };
            }
            None => self.settled.undecided += undecided,
        }
        show(&rows, pending, each)
    }
}

impl Epoch {
    fn new(commitment: Commitment, body: EpochBody) -> Self {
        Epoch { commitment, body, keys: OnceLock::new() }
    }

    /// Its keys, which a block is needed of.
    fn keys(&self, given: &Given) -> Result<Arc<EpochKeys>> {
        if let Some(keys) = self.keys.get() {
            return Ok(keys.clone());
        }
        let keys = given.unlock(&self.commitment, &self.body)?;
        Ok(self.keys.get_or_init(|| Arc::new(keys)).clone())
    }
}

impl Tip {
    /// Where the frame after those is to come that are believed by a checkpoint.
    fn after(reading: &Reading<'_>) -> Result<Self> {
        let mut frames = Frames::new(&reading.manifest)?;
        let mut tip = Tip::default();
        let size = reading.manifest.snapshot.believed_frames();
        while tip.frame < size
            && let Some(placed) = frames.next()?
        {
            tip.frame += 1;
            tip.entry += placed.commitment.entries;
            if tip.frame == size {
                tip.cursor = Some(Cursor::behind(&frames.locate(placed)?));
            }
        }
        if let Some(epoch) = frames.epoch().cloned() {
            let commitment = epoch.commitment.clone();
            tip.epoch = Some(Arc::new(Epoch::new(commitment, epoch_body(&mut frames, epoch)?)));
        }
        Ok(tip)
    }

    /// Goes past the next frame, if it is there: with `whole`, once its body is. What is none is not passed.
    fn pass(&mut self, reader: &Reader, whole: bool) -> Result<Option<Passed>> {
        let Some(frame) = self.find(reader)? else { return Ok(None) };
        let commitment = &frame.commitment;
        let epoch = commitment.kind == FrameKind::Epoch;
        if whole && self.doubted == Some(commitment.leaf()) {
            return Ok(None);
        }
        if whole || epoch {
            let Ok(verified) = frame.verify()? else { return Ok(None) };
            if epoch {
                let Ok(body) = EpochBody::decode(&verified.into_body()) else {
                    self.doubted = Some(commitment.leaf());
                    return Ok(None);
                };
                self.epoch = Some(Arc::new(Epoch::new(commitment.clone(), body)));
            }
        }
        self.cursor = Some(Cursor::behind(&frame));
        self.frame += 1;
        self.entry += commitment.entries;
        self.doubted = None;
        Ok(Some(Passed { frame, epoch: self.epoch.clone() }))
    }

    /// The next frame, if its head is there: where the last one ended, or in a later segment.
    fn find(&mut self, reader: &Reader) -> Result<Option<Located>> {
        let is_next = |head: &Head| {
            let Commitment { frame, first_entry, log_id, .. } = head.commitment;
            (frame, first_entry, log_id) == (self.frame, self.entry, reader.config.id)
        };
        if let Some(cursor) = &mut self.cursor {
            cursor.look_again()?;
            if let Some(Ok(head)) = cursor.peek()?
                && is_next(&head)
            {
                return Ok(Some(cursor.locate(head.commitment, head.offset)));
            }
        }
        let current = self.cursor.as_ref().map(|current| current.name);
        let segments = segment::list_behind(&*reader.given.store, current)?.0;
        let last = segments.partition_point(|segment| segment.first <= self.frame).checked_sub(1);
        let Some(segment) = last.map(|last| segments[last]) else { return Ok(None) };
        let mut cursor = Cursor::open(&*reader.given.store, segment)?;
        while let Some(Ok(head)) = cursor.peek()? {
            if is_next(&head) {
                return Ok(Some(cursor.locate(head.commitment, head.offset)));
            }
            if head.commitment.frame >= self.frame {
                break;
            }
            // A copy of the epoch's frame, or one that was seen where it had lain before.
            cursor.pass(&head);
        }
        Ok(None)
    }
}

/// How many frames of a reading are believed.
fn believed(reading: &Reading<'_>) -> usize {
    usize::try_from(reading.manifest.snapshot.believed_frames()).unwrap_or(usize::MAX)
}

/// The query for entries before `end` alone, if there are any.
fn up_to(query: &Query, end: u64) -> Option<Query> {
    let last = end.checked_sub(1)?;
    let last_entry = Some(query.last_entry.map_or(last, |asked| asked.min(last)));
    Some(Query { last_entry, ..query.clone() })
}

fn tree_of(leaves: Vec<Hash>) -> Frontier {
    leaves.into_iter().fold(Frontier::new(), |mut tree, leaf| {
        tree.push(leaf);
        tree
    })
}

fn show(kept: &[Kept], pending: bool, each: &mut impl FnMut(&Followed<'_>) -> Result<()>) -> Result<()> {
    kept.iter().try_for_each(|kept| {
        let Kept { number, withheld, .. } = *kept;
        each(&Followed { number, entry: kept.entry()?, withheld, pending })
    })
}

/// Gives out what a checkpoint covers.
fn give_out(
    reading: &Reading<'_>,
    query: &Query,
    each: &mut impl FnMut(&Followed<'_>) -> Result<()>,
) -> Result<ReadReport> {
    reading.read(query, Delivery::Discardable, |matches| matches.to_kept(), |kept| show(&kept, false, each))
}

//! Following a log: its entries as they are committed, each with whether a checkpoint covers it yet.
//!
//! Invariants:
//! - an entry that is not marked as pending lies in a frame under a signed root, to which every frame since the
//!   beginning was hashed;
//! - what a checkpoint covers later is compared with what was shown before it did. Where a crash took something that
//!   was shown as pending, that is told, and what came in its place is shown;
//! - a log that was cut or rewritten below a checkpoint that was seen is `Tampered`.

use crate::error::{Error, ErrorKind, Result};
use crate::frame::{self, Head, ReadError};
use crate::keys::epoch::EpochKeys;
use crate::query::Query;
use crate::read::manifest::Frames;
use crate::read::open::Located;
use crate::read::walk::open_segment;
use crate::reader::{Delivery, Files, Matches, Memory, Reader, Snapshot, trusted_checkpoint};
use crate::seal::epoch::EpochBody;
use crate::segment::{self, SegmentName};
use crate::store::StoreFile;
use bulla_proof::Entry;
use bulla_proof::commitment::FrameKind;
use bulla_proof::hash::Hash;
use bulla_proof::tile;
use bulla_proof::tree::Frontier;
use std::sync::Arc;

/// Follows a log from where it was when it began.
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
    history: Option<Snapshot<'a>>,
    /// The tree that a checkpoint was seen to sign, and the leaves of the frames that were seen after it.
    tree: Frontier,
    pending: Vec<Pending>,
    tip: Tip,
    signed_only: bool,
    memory: Memory,
}

/// Where the next frame is looked for, and what it has to be.
#[derive(Default)]
struct Tip {
    segment: Option<(SegmentName, Arc<dyn StoreFile>)>,
    offset: u64,
    frame: u64,
    entry: u64,
    /// The keys of the current epoch.
    keys: Option<Arc<EpochKeys>>,
}

/// An entry, as it is followed.
#[derive(Debug)]
pub struct Followed<'a> {
    /// Its number.
    pub number: u64,
    /// What it says.
    pub entry: Entry<'a>,
    /// Whether no signed checkpoint covers it yet: it was written, and a crash can still take it.
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
}

/// A frame that was seen and that no checkpoint covered then.
struct Pending {
    leaf: Hash,
    first_entry: u64,
}

impl Reader {
    /// Follows the log: first the entries that meet `query` and are committed already, then those to come.
    ///
    /// # Errors
    /// As [`Reader::read`].
    pub fn follow(&self, query: &Query) -> Result<Follow<'_>> {
        let snapshot = self.snapshot()?;
        let leaves = snapshot.manifest.leaves(&snapshot.store)?;
        let tip = Tip::after(&snapshot)?;
        Ok(Follow {
            reader: self,
            query: query.clone(),
            history: Some(snapshot),
            tree: tree_of(leaves),
            pending: Vec::new(),
            tip,
            signed_only: false,
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

    /// Gives out what has been committed since the last call, in order. Does not wait.
    ///
    /// # Errors
    /// `Tampered` where the log was cut or rewritten, or is damaged where it is read; otherwise as [`Reader::read`];
    /// and whatever `each` returns.
    pub fn poll(&mut self, mut each: impl FnMut(&Followed<'_>) -> Result<()>) -> Result<Polled> {
        if let Some(snapshot) = self.history.take() {
            give_out(&snapshot, &self.query, &mut each)?;
        }
        let signed = trusted_checkpoint(&*self.reader.store, &self.reader.config, self.reader.key.as_ref())?;
        let (size, root) = (signed.checkpoint.size, signed.checkpoint.root);
        if size < self.tree.size() {
            let (before, now) = (self.tree.size(), size);
            let message =
                format!("the log was cut: it has {now} frames, and its key signed {before} of them before");
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
                self.pending.drain(..frames);
                self.tree = tree;
                covered.into_iter().try_for_each(|frame| self.show(frame, false, &mut each))?;
            }
            None => lost_from = self.begin_again(shown, &mut each)?,
        }
        let covered = self.pending.first().map_or(self.tip.entry, |pending| pending.first_entry);
        while !self.signed_only
            && let Some(frame) = self.advance(true)?
        {
            self.show(frame, true, &mut each)?;
        }
        Ok(Polled { covered, lost_from })
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
        let snapshot = self.reader.snapshot()?;
        let leaves = snapshot.manifest.leaves(&snapshot.store)?;
        let known = usize::try_from(self.tree.size()).unwrap_or(usize::MAX);
        let before = leaves.get(..known).map(tile::tile_hash);
        if before != Some(self.tree.root()) {
            let message =
                format!("the log was rewritten: its first {known} frames are not those signed before");
            return Err(Error::tampered(message));
        }
        let pending = self.pending[..shown].iter().zip(&leaves[known..]);
        let agree = pending.take_while(|(pending, leaf)| pending.leaf == **leaf).count();
        let first = self.pending.get(agree).map_or(self.tip.entry, |pending| pending.first_entry);
        let first_entry = Some(self.query.first_entry.unwrap_or(0).max(first));
        give_out(&snapshot, &Query { first_entry, ..self.query.clone() }, each)?;
        self.tip = Tip::after(&snapshot)?;
        self.tree = tree_of(leaves);
        self.pending.clear();
        Ok((agree < shown).then_some(first))
    }

    /// Passes the next frame, if it is there: with `whole`, once its body is.
    fn advance(&mut self, whole: bool) -> Result<Option<Located>> {
        let Some(frame) = self.tip.find(self.reader)? else { return Ok(None) };
        let commitment = &frame.commitment;
        let epoch = commitment.kind == FrameKind::Epoch;
        if whole || epoch {
            let Ok(verified) = frame.verify()? else { return Ok(None) };
            if epoch {
                let body = EpochBody::decode(&verified.into_body())?;
                let Some(identity) = &self.reader.identity else { return Err(no_key(commitment.frame)) };
                let keys = body.unlock(commitment, &**identity)?.ok_or_else(|| no_key(commitment.frame))?;
                self.tip.keys = Some(Arc::new(keys));
            }
        }
        self.pending.push(Pending { leaf: commitment.leaf(), first_entry: commitment.first_entry });
        self.tip.offset = frame.offset + frame::frame_length(commitment);
        self.tip.frame += 1;
        self.tip.entry += commitment.entries;
        Ok(Some(Located { keys: self.tip.keys.clone(), ..frame }))
    }

    fn show(
        &mut self,
        frame: Located,
        pending: bool,
        each: &mut impl FnMut(&Followed<'_>) -> Result<()>,
    ) -> Result<()> {
        if !self.query.admits(&frame.commitment) {
            return Ok(());
        }
        match self.memory.select(&frame, &self.query, &own)? {
            Some(selected) => show_rows(&selected.piece, pending, each),
            None => Ok(()),
        }
    }
}

impl Tip {
    /// Where the frame after those of a checkpoint is to come.
    fn after(snapshot: &Snapshot<'_>) -> Result<Self> {
        let mut frames = Frames::new(&snapshot.manifest, &snapshot.store, &snapshot.reader.config)?;
        let mut tip = Tip::default();
        while let Some(placed) = frames.next()? {
            tip.frame += 1;
            tip.entry += placed.commitment.entries;
            tip.offset = placed.end();
            if tip.frame == snapshot.manifest.checkpoint.size {
                let mut files = Files::default();
                tip.keys = Some(snapshot.keys(&frames, &mut files)?);
                let last = snapshot.locate(&mut files, placed, None)?;
                tip.segment = Some((last.segment, last.file));
            }
        }
        Ok(tip)
    }

    /// The next frame, if its head is there: where the last one ended, or in a later segment.
    fn find(&mut self, reader: &Reader) -> Result<Option<Located>> {
        if let Some((segment, file)) = &self.segment
            && let Some(head) = self.head(reader, &**file, self.offset)?
        {
            return Ok(Some(located(head, *segment, file)));
        }
        let segments = segment::list(&*reader.store)?.0;
        let last = segments.partition_point(|segment| segment.first <= self.frame).checked_sub(1);
        let Some(segment) = last.map(|last| segments[last]) else { return Ok(None) };
        if self.segment.as_ref().is_some_and(|(current, _)| *current >= segment) {
            return Ok(None);
        }
        let (file, length) = open_segment(&*reader.store, segment)?;
        let mut offset = 0;
        while let Some(head) = read_head(&*file, offset, length)? {
            if head.commitment.frame == self.frame {
                let found = self.head(reader, &*file, offset)?;
                let found = found.map(|head| located(head, segment, &file));
                if found.is_some() {
                    self.segment = Some((segment, file));
                }
                return Ok(found);
            }
            if head.commitment.frame > self.frame {
                break;
            }
            // A copy of the epoch's frame, or one that was seen where it had lain before.
            offset = head.end();
        }
        Ok(None)
    }

    /// The head at `offset`, if it is the next frame's.
    fn head(&self, reader: &Reader, file: &dyn StoreFile, offset: u64) -> Result<Option<Head>> {
        let length = file.length().map_err(|error| Error::io("looking at a segment", error))?;
        let is_next = |head: &Head| {
            let commitment = &head.commitment;
            commitment.frame == self.frame
                && commitment.first_entry == self.entry
                && commitment.log_id == reader.config.id
        };
        Ok(read_head(file, offset, length)?.filter(is_next))
    }
}

/// A head, where one is there that can be read by now.
fn read_head(file: &dyn StoreFile, offset: u64, length: u64) -> Result<Option<Head>> {
    match frame::read_head(file, offset, length) {
        Ok(head) => Ok(Some(head)),
        Err(ReadError::Frame(_)) => Ok(None),
        Err(ReadError::Io(error)) => Err(Error::io("reading a segment", error)),
    }
}

fn located(head: Head, segment: SegmentName, file: &Arc<dyn StoreFile>) -> Located {
    let (commitment, file) = (head.commitment, file.clone());
    Located { commitment, segment, file, offset: head.offset, keys: None, foreign: false }
}

fn tree_of(leaves: Vec<Hash>) -> Frontier {
    leaves.into_iter().fold(Frontier::new(), |mut tree, leaf| {
        tree.push(leaf);
        tree
    })
}

/// The rows of the matches, with their numbers.
fn own(matches: &Matches<'_>) -> Vec<(u64, Vec<u8>)> {
    matches.rows().map(|(number, row)| (number, row.to_vec())).collect()
}

fn show_rows(
    rows: &[(u64, Vec<u8>)],
    pending: bool,
    each: &mut impl FnMut(&Followed<'_>) -> Result<()>,
) -> Result<()> {
    rows.iter().try_for_each(|(number, row)| {
        let entry =
            Entry::decode(row).map_err(|error| Error::tampered(format!("entry {number}: {error}")))?;
        each(&Followed { number: *number, entry, pending })
    })
}

/// Gives out what a checkpoint covers.
fn give_out(
    snapshot: &Snapshot<'_>,
    query: &Query,
    each: &mut impl FnMut(&Followed<'_>) -> Result<()>,
) -> Result<()> {
    snapshot.read(query, Delivery::Discardable, own, |rows| show_rows(&rows, false, each)).map(|_| ())
}

fn no_key(epoch: u64) -> Error {
    Error::new(ErrorKind::NoKey, format!("following the log needs an identity that opens epoch {epoch}"))
}

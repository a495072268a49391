//! Proofs of entries, and that the log only grew, as files for whoever has the log's key.
//!
//! What they prove, and what not, is in `docs/format.md`, "Proofs".

mod disclose;
mod receipt;
mod under;

use crate::read::opened_proof::most_opened;
use crate::read::reader::Reader;
use crate::read::reading::{Delivery, ReadReport, Reading};
use crate::read::select::Matches;
use crate::scan::events;
use crate::scan::finding::Finding;
use crate::scan::manifest::Manifest;
use crate::scan::query::Query;
use crate::scan::snapshot::unless_gone;
use crate::scan::unsigned::{self, not_those};
use bulla_proof::consistency::prove_consistency;
use bulla_proof::multiproof;
use bulla_proof::note::SignedNote;
use bulla_proof::proof::{ConsistencyProof, DisclosedFrame, DisclosedUnit, EventProof, Proof, Receipt};
use bulla_proof::tree::{LogNodes, TreeHead};
use bulla_proof::{Checkpoint, Hash, ProofError, TreeProofError, tile};
use bulla_store::{Error, ErrorKind, Result};
use bulla_text::spelling::counted;
use std::fmt;

/// A proof of the entries that meet a query.
#[derive(Clone)]
#[non_exhaustive]
pub struct Proven {
    /// The file: text, or a receipt. It is as confidential as what it discloses, and not printed by [`Debug`](fmt::Debug).
    pub file: Vec<u8>,
    /// What it discloses: so many units.
    pub units: u64,
    /// So many entries those have.
    pub entries: u64,
    /// Of those, the numbers of the entries that did not meet the query, ascending. A group is proven as a whole: they are of the
    /// same data subjects and in the same block as one that did.
    pub others: Vec<u64>,
    /// Of those, the ones whose personal fields the file does not open: nobody has their keys any more.
    pub withheld: u64,
    /// What was read for it, and how many entries met the query.
    pub read: ReadReport,
    /// What may follow that is not signed yet, and was not looked at.
    pub unsigned: Option<Finding>,
    /// Frames that the checkpoint of the proof covers: fewer than were read, where witnesses have cosigned that one last.
    pub tree_size: u64,
    /// The root that it signs.
    pub root: Hash,
}

impl fmt::Debug for Proven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Proven { file: _, units, entries, others, withheld, read, unsigned, tree_size, root } = self;
        let mut shown = f.debug_struct("Proven");
        shown
            .field("units", units)
            .field("entries", entries)
            .field("others", others)
            .field("withheld", withheld);
        shown.field("read", read).field("unsigned", unsigned);
        shown.field("tree_size", tree_size).field("root", root).finish_non_exhaustive()
    }
}

impl Reader {
    /// Proves that the log holds the entries that meet `query`, to whoever has the log's key and the proof alone.
    /// The proof discloses those entries, and of others no more than that there are so many; but an entry that is in a
    /// group discloses the group: all entries of the same data subjects in its block, and the secret that opens it,
    /// where the keys are at hand.
    ///
    /// It is made under the newest checkpoint. With a policy ([`Reader::policy`]) it is the newest one that is witnessed as that asks for, and
    /// without one, of a log that asks witnesses itself, the newest one that enough of these have cosigned, if that covers the entries:
    /// [`Reader::unwitnessed`] tells.
    ///
    /// # Errors
    /// `Refused` where a policy is given and its witnesses have not cosigned so much yet; where no entry meets the query (`Tampered` where that cannot be told, since keys are lost), and where what the groups
    /// hold is more than a file of its length is trusted with, so that nobody would open it; otherwise as [`Reader::read`].
    pub fn prove(&self, query: &Query) -> Result<Proven> {
        unless_gone(&*self.given.store, self.prove_there(query))
    }

    fn prove_there(&self, query: &Query) -> Result<Proven> {
        let (reader, witnesses) = self.proving()?;
        reader.prove_in(reader.reading()?, query, |manifest, leaves, frames| {
            let positions = frames.iter().map(|frame| frame.commitment().frame).collect::<Vec<_>>();
            let needed = positions.last().map_or(0, |last| last + 1);
            let under = under::choose(witnesses.as_ref(), manifest, needed)?;
            let nodes = multiproof::prove(under.leaves(leaves), &positions, &LogNodes)
                .map_err(|error| impossible(&error))?;
            let proof = Proof::new(&under.note, nodes, frames).map_err(|error| unsound(&error))?;
            Ok((proof.render().into_bytes(), under.head))
        })
    }

    /// The same as a receipt of RFC 9942, which is no text: of the tree head that the log's writer has signed as COSE.
    ///
    /// # Errors
    /// `Refused` where that head is not there, or not of the newest checkpoint: whoever opens the log for writing makes it again. Otherwise
    /// as [`Reader::prove`].
    pub fn prove_as_receipt(&self, query: &Query) -> Result<Proven> {
        unless_gone(&*self.given.store, self.receipt_there(query))
    }

    fn receipt_there(&self, query: &Query) -> Result<Proven> {
        let (signed, snapshot) = receipt::signed_head(&self.given, &self.config)?;
        self.prove_in(self.reading_of(snapshot)?, query, |manifest, leaves, frames| {
            let Checkpoint { size, root, .. } = manifest.snapshot.checkpoint;
            let receipt = Receipt::new(&signed, leaves, frames).map_err(|error| unsound(&error))?;
            Ok((receipt.render(), TreeHead { size, root }))
        })
    }

    /// Proves what meets `query` with the file that `make` makes of the frames, in the tree over these leaves.
    fn prove_in(
        &self,
        reading: Reading<'_>,
        query: &Query,
        make: impl FnOnce(&Manifest, &[Hash], Vec<DisclosedFrame>) -> Result<(Vec<u8>, TreeHead)>,
    ) -> Result<Proven> {
        let (mut frames, mut others, mut opened) = (Vec::<DisclosedFrame>::new(), Vec::new(), 0);
        let of_block = |matches: &Matches<'_>| {
            let Matches { opener, commitment, rows, .. } = matches;
            let frame = disclose::disclose(opener, commitment, rows)?;
            Ok((disclose::others(&frame, rows), disclose::opened_length(opener, &frame), frame))
        };
        let read = reading.read(query, Delivery::Discardable, of_block, |disclosed| {
            let (others_of_block, opened_of_block, frame): (Vec<u64>, usize, _) = disclosed?;
            others.extend(others_of_block);
            opened += opened_of_block;
            frames.push(frame);
            Ok(())
        })?;
        let unsigned = unsigned::notice(&reading.manifest)?;
        if frames.is_empty() {
            let log = self.given.store.describe("");
            let nothing = format!("nothing to prove: no entry of {log} meets that");
            let subjects = reading.subjects_not_found(query, unsigned.is_some())?;
            return Err(read.found_nothing(nothing, &subjects, unsigned.is_some()));
        }
        let leaves = reading.manifest.leaves()?;
        let all = || frames.iter().flat_map(DisclosedFrame::units);
        let closed = |unit: &&DisclosedUnit| unit.group().is_some_and(|group| group.secret.is_none());
        let (units, entries) = (all().count() as u64, all().map(entries_of).sum());
        let withheld = all().filter(closed).map(entries_of).sum();
        let (file, TreeHead { size: tree_size, root }) = make(&reading.manifest, &leaves, frames)?;
        let most = most_opened(file.len());
        if opened > most {
            let message = format!(
                "the proof would be a file of {} bytes that opens to {opened}, and whoever checks one trusts it with {most} at most: \
                 prove fewer entries at a time",
                file.len()
            );
            return Err(Error::new(ErrorKind::Refused, message));
        }
        Ok(Proven { file, units, entries, others, withheld, read, unsigned, tree_size, root })
    }

    /// Proves that the log holds the event in this frame: of an erasure, its certificate. Under which checkpoint, [`Reader::prove`] says.
    ///
    /// # Errors
    /// `Refused` where a policy is given and its witnesses have not cosigned so much yet; where the checkpoint covers no such frame, or it is of no event; otherwise as [`Reader::read`].
    pub fn prove_event(&self, frame: u64) -> Result<EventProof> {
        unless_gone(&*self.given.store, self.event_there(frame))
    }

    fn event_there(&self, frame: u64) -> Result<EventProof> {
        let (reader, witnesses) = self.proving()?;
        let reading = reader.reading()?;
        let Some((commitment, body)) = events::event(&reading.manifest, frame)? else {
            let message = format!("frame {frame} of {} is of no event", self.given.store.describe(""));
            return Err(Error::new(ErrorKind::Refused, message));
        };
        let leaves = reading.manifest.leaves()?;
        let under = under::choose(witnesses.as_ref(), &reading.manifest, frame + 1)?;
        let nodes = multiproof::prove(under.leaves(&leaves), &[frame], &LogNodes)
            .map_err(|error| impossible(&error))?;
        EventProof::new(&under.note, nodes, commitment, body).map_err(|error| unsound(&error))
    }

    /// Proves that the log begins with everything that `old`, an earlier checkpoint of it as a signed note, covers. Under which later
    /// checkpoint, [`Reader::prove`] says.
    ///
    /// # Errors
    /// `Refused` where a policy is given and its witnesses have not cosigned so much yet;
    /// `Invalid` where `old` is no checkpoint of this log; `Tampered` where the log does not begin with what it
    /// covers: then history was rewritten, or cut.
    pub fn prove_consistency(&self, old: &[u8]) -> Result<String> {
        unless_gone(&*self.given.store, self.consistency_there(old))
    }

    fn consistency_there(&self, old: &[u8]) -> Result<String> {
        let foreign = |reason: String| Error::invalid(format!("the old checkpoint: {reason}"));
        let note = SignedNote::parse(old).map_err(|error| foreign(error.to_string()))?;
        let earlier = Checkpoint::parse(note.text).map_err(|error| foreign(error.to_string()))?;
        if earlier.origin != self.config.origin {
            return Err(foreign(format!("it is of `{}`, not of `{}`", earlier.origin, self.config.origin)));
        }
        note.verify(&self.config.verifier_key).map_err(|error| foreign(error.to_string()))?;
        let (reader, witnesses) = self.proving()?;
        let reading = reader.reading()?;
        let now = &reading.manifest.snapshot.checkpoint;
        if earlier.size > now.size {
            let (old, new) = (earlier.size, counted(now.size, "frame"));
            let message = format!("the log was cut: it has {new}, and its key signed {old} of them before");
            return Err(Error::tampered(message));
        }
        let leaves = reading.manifest.leaves()?;
        let (before, _) = leaves.split_at(usize::try_from(earlier.size).unwrap_or(leaves.len()));
        if tile::tile_hash(before) != earlier.root {
            let message =
                format!("the log was rewritten: its first {} signed then", not_those(before.len() as u64));
            return Err(Error::tampered(message));
        }
        let under = under::choose(witnesses.as_ref(), &reading.manifest, earlier.size)?;
        let nodes =
            prove_consistency(under.leaves(&leaves), earlier.size).map_err(|error| impossible(&error))?;
        let proof = ConsistencyProof::new(old, &under.note, nodes).map_err(|error| unsound(&error))?;
        Ok(proof.render())
    }
}

fn entries_of(unit: &DisclosedUnit) -> u64 {
    unit.entries().len() as u64
}

/// Everything that goes into a proof was checked before.
fn impossible(error: &TreeProofError) -> Error {
    Error::tampered(format!("no proof can be made: {error}; run `bulla verify`"))
}

fn unsound(error: &ProofError) -> Error {
    Error::tampered(format!("no proof can be made: {error}; run `bulla verify`"))
}

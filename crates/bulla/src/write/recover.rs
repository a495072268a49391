//! Recovery: what opening a log for writing finds out, adopts, and leaves behind.
//!
//! Invariants:
//! - a frame above the checkpoint is adopted only if its seal holds, and only once it was written, byte for byte,
//!   into a new file and synced. What is read back now may never have reached the medium: after a failed `fsync` the
//!   kernel may mark its pages clean, serve them all the same, and never write them (A. Rebello and others, "Can
//!   Applications Recover from fsync Failures?", USENIX ATC 2020);
//! - nothing below the newest anchor (checkpoint, seal state, pin) is ever cut: if it is not there, the log is
//!   tampered with. Of the pin `engine::pins` sees to that, before anything is adopted;
//! - groups were synced in order, so damage before a frame of a later group is no torn tail;
//! - a log goes on only with the `[log]` of its last epoch, or the one that an event since then allows; what allows
//!   it is the seal state, or a frame whose seal holds, never the log's directory alone;
//! - no byte is removed: what no frame refers to stays where it is, is made durable, and an event tells its place, length and digest; only its place,
//!   where all of it was written again, the medium does not take it, or it is too long. A segment that is adopted whole is replaced by its copy, so
//!   that a recovery which is cut short again and again, on one path, leaves one.
//!
//! A clean log takes the same way: it merely finds nothing to adopt.
//!
//! A name is durable once its directory is synced, and not before (`fsync(2)`, "Description"; T. S. Pillai and others,
//! "All File Systems Are Not Created Equal", OSDI 2014).

mod adopt;
pub(crate) mod earlier;
pub(crate) mod lost;
mod survey;

use crate::format::config::{LogConfig, allowed::AllowedConfig};
use crate::format::event::Event;
use crate::format::files;
use crate::format::segment::{self, SegmentName};
use crate::keys::seal_state::{Attempt, SealState};
use crate::scan::lost::lost_below;
use crate::write::commit::Start;
use crate::write::tree_files;
use bulla_crypto::group::PartId;
use bulla_crypto::seal_chain::SealChain;
use bulla_proof::checkpoint::Checkpoint;
use bulla_proof::commitment::Commitment;
use bulla_proof::hash::Hash;
use bulla_proof::tile::TileBuilder;
use bulla_proof::tree::{self, TreeHead};
use bulla_store::{Error, ErrorKind, Paths, Result, Store};
use lost::furthest_signed;
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use survey::Survey;
pub(crate) use survey::{is_sound, survey};

/// What a log that may be written to goes on with.
pub(crate) struct Recovered {
    pub(crate) next_frame: u64,
    pub(crate) next_entry: u64,
    pub(crate) chain: SealChain,
    /// Which `[log]` may follow.
    pub(crate) terms: AllowedConfig,
    pub(crate) tiles: TileBuilder,
    pub(crate) bundle: Vec<u8>,
    /// Durable frames that no checkpoint covers yet.
    pub(crate) adopted: Vec<[u8; Commitment::LENGTH]>,
    pub(crate) start: Start,
    pub(crate) events: Vec<Event>,
    /// Data subjects that adopted events say were erased.
    pub(crate) erased: Vec<u64>,
    /// The adopted events of entries that were dropped: their frames, and how many entries each tells of.
    pub(crate) dropped: Vec<(u64, u64)>,
    /// The number of frames up to the last event of a hold, that one included; 0 where there is none.
    pub(crate) holds: u64,
    /// The parts of the log that were given up, as the seal state and events behind it tell.
    pub(crate) parts: BTreeSet<PartId>,
    pub(crate) report: Recovery,
}

/// What opening a log found beyond its last checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    /// Frames that were durable and sealed, and were adopted.
    pub frames: u64,
    /// The entries in them.
    pub entries: u64,
    /// Bytes of a torn tail, which were not: nobody had been told that they were durable.
    pub torn_bytes: u64,
    /// Whether `checkpoint.cose` was none that the log's key has signed, and was made anew.
    pub cose_damaged: bool,
}

/// What recovery would go on with. Nothing is written yet, so whoever refuses to go on leaves the log as it is.
pub(crate) struct Found {
    checkpoint: Checkpoint,
    tiles: TileBuilder,
    bundle: Vec<u8>,
    survey: Survey,
    /// The frames that the vault had followed.
    pub(crate) followed: u64,
    /// The attempt to give a part up of which the seal state does not know that it is done, and the parts of which it knows.
    pub(crate) attempt: (Option<Attempt>, BTreeSet<PartId>),
    pub(crate) report: Recovery,
}

/// Looks at the log in `log`, whose host state is in `keys`, and at what lies beyond its checkpoint.
///
/// # Errors
/// `Tampered` where the log is not what was written, `Refused` where log and keys do not belong together,
/// `Unavailable` where a file cannot be read.
pub(crate) fn find(log: &dyn Store, keys: &dyn Store, config: &LogConfig) -> Result<Found> {
    // A process that died between renaming a file and syncing its directory has left a name that a power cut takes back.
    for store in [log, keys] {
        let synced = store.sync_directory("");
        synced.map_err(|error| Error::io(format!("syncing {}", store.describe("")), error))?;
    }
    let checkpoint = read_checkpoint(log, config)?;
    let state = read_state(keys, config)?;
    let checkpoint = furthest_signed(log, checkpoint, &state)?;
    let (tiles, bundle) = tree_files::load_edge(log, &checkpoint)?;
    let segments = segment::list(log)?.0;
    let survey = survey(log, config, (&state, &checkpoint, lost_below(log)), tiles.frontier(), &segments)?;
    let torn = survey.scanned.last().map_or(0, |last| last.cursor.length - last.cursor.offset);
    let report = Recovery {
        frames: survey.above().count() as u64,
        entries: survey.above().map(|head| head.commitment.entries).sum(),
        torn_bytes: torn,
        cose_damaged: false,
    };
    let SealState { followed, attempt, given_up, .. } = state;
    let attempt = (attempt, given_up);
    Ok(Found { checkpoint, tiles, bundle, survey, followed, attempt, report })
}

impl Found {
    /// The tree that the checkpoint covers.
    pub(crate) fn signed(&self) -> TreeHead {
        TreeHead { size: self.checkpoint.size, root: self.checkpoint.root }
    }

    /// How many frames the checkpoint covers.
    pub(crate) fn signed_frames(&self) -> u64 {
        self.checkpoint.size
    }

    /// The parts of the log that were given up, as events tell which no checkpoint covers, with their frames.
    pub(crate) fn given_up(&self) -> &[(u64, PartId)] {
        &self.survey.given_up
    }

    /// The parts of the log that were given up, as the seal state and events behind it tell.
    pub(crate) fn parts(&self) -> &BTreeSet<PartId> {
        &self.survey.parts
    }

    /// The end of the tree that the log would go on with, and the number of its next frame.
    pub(crate) fn edge(&self) -> (Edge, u64) {
        (Edge::of(&self.tiles, &self.survey), self.survey.next)
    }

    /// Sets aside, where it lies, what nothing leads to any more and lies on another path than the one in use, which is none the worse where
    /// that fails.
    ///
    /// # Errors
    /// `Unavailable` where the path that has it does not give it another name.
    pub(crate) fn set_aside_elsewhere(&self, log: &dyn Store) -> Result<()> {
        let Some(paths) = log.paths().filter(|_| !self.survey.unreachable.is_empty()) else { return Ok(()) };
        let in_use = paths.current().1;
        for path in paths.present().iter().filter(|path| !Arc::ptr_eq(path, &in_use)) {
            set_aside_on(&**path, &self.survey.unreachable, self.survey.next)?;
        }
        Ok(())
    }

    /// Removes what a crash inside an earlier recovery left, and writes anew what is adopted.
    ///
    /// # Errors
    /// `Unavailable` where a file cannot be read or written.
    pub(crate) fn adopt(self, log: &dyn Store, segment_size: u64) -> Result<Recovered> {
        let Found { checkpoint, tiles, bundle, survey, report, .. } = self;
        let has_lost_path = log.paths().is_some_and(Paths::has_lost_one);
        match has_lost_path {
            // Frames that it had are not gone on with, and what was written of a tree with them is of another one.
            true => tree_files::cut_back(log, &tiles, &bundle)?,
            false => tree_files::remove_unfinished(log, checkpoint.size),
        }
        remove_unfinished(log)?;
        let adopted = survey.above().map(|head| head.encoded).collect();
        let Survey {
            next,
            next_entry,
            chain,
            terms,
            explained,
            erased,
            dropped,
            holds,
            parts,
            scanned,
            unreachable,
            given_up: _,
        } = survey;
        let mut events = adopt::rewrite(log, &scanned, next, &explained)?;
        if has_lost_path {
            // What lies on other paths has another name by now.
            set_aside_on(log, &unreachable, next)?;
            events.extend(adopt::tell_of_aside(log, (checkpoint.size, next), &explained)?);
        }
        let start = match scanned.last() {
            Some(last)
                if (report.frames, report.torn_bytes) == (0, 0)
                    && last.kept < segment_size
                    && last.kept == last.cursor.length =>
            {
                Start::Extend(last.cursor.name, last.kept)
            }
            _ => Start::NewSegment,
        };
        Ok(Recovered {
            next_frame: next,
            next_entry,
            chain,
            terms,
            tiles,
            bundle,
            adopted,
            start,
            events,
            erased,
            dropped,
            holds,
            parts,
            report,
        })
    }
}

/// What opening the log would go on behind.
pub(crate) struct Beyond {
    /// The number of the next frame.
    pub(crate) next: u64,
    /// How many entries the frames have that no checkpoint covers.
    pub(crate) entries: u64,
    /// Data subjects that events which no checkpoint covers say were erased.
    pub(crate) erased: Vec<u64>,
    /// The parts of the log that were given up, as events tell which no checkpoint covers, with their frames.
    pub(crate) given_up: Vec<(u64, PartId)>,
    /// The segments whose ends those of the newest events explain that were looked at, and the offsets of these ends.
    pub(crate) explained: Vec<(String, u64)>,
    pub(crate) edge: Edge,
    /// The seals behind the last of the frames.
    pub(crate) chain: SealChain,
}

/// The end of the tree: what the checkpoint covers, and the frames beyond it that count.
pub(crate) struct Edge {
    tree: tree::Frontier,
    above: Vec<[u8; Commitment::LENGTH]>,
}

impl Edge {
    fn of(tiles: &TileBuilder, survey: &Survey) -> Self {
        Edge { tree: tiles.frontier(), above: survey.above().map(|head| head.encoded).collect() }
    }

    /// The commitments of the frames beyond the checkpoint.
    ///
    /// # Errors
    /// `Tampered` where one is none, which a survey lets none be.
    pub(crate) fn above(&self) -> Result<Vec<Commitment>> {
        let decoded = self.above.iter().map(|encoded| Commitment::decode(encoded));
        decoded.collect::<std::result::Result<_, _>>().map_err(|error| Error::tampered(error.to_string()))
    }

    /// The root over the first `size` frames of all; `None` where those end before the checkpoint does, or there are no more.
    pub(crate) fn root_at(&self, size: u64) -> Option<Hash> {
        let mut tree = self.tree.clone();
        let mut above = self.above.iter();
        while tree.size() < size {
            tree.push(tree::leaf_hash(above.next()?));
        }
        (tree.size() == size).then(|| tree.root())
    }
}

/// What opening the log would go on behind. Changes nothing.
///
/// # Errors
/// As [`survey`].
pub(crate) fn beyond(
    log: &dyn Store,
    config: &LogConfig,
    state: &SealState,
    checkpoint: &Checkpoint,
) -> Result<Beyond> {
    beyond_where(log, config, (state, checkpoint), lost_below(log))
}

/// The same of a log of which from frame `lost_below` on none that no path has is lost for good.
///
/// # Errors
/// As [`survey`].
pub(crate) fn beyond_where(
    log: &dyn Store,
    config: &LogConfig,
    (state, checkpoint): (&SealState, &Checkpoint),
    lost_below: u64,
) -> Result<Beyond> {
    let (tiles, _) = tree_files::load_edge(log, checkpoint)?;
    let segments = segment::list(log)?.0;
    let survey = survey(log, config, (state, checkpoint, lost_below), tiles.frontier(), &segments)?;
    let entries = survey.above().map(|head| head.commitment.entries).sum();
    let edge = Edge::of(&tiles, &survey);
    let Survey { next, erased, given_up, explained, chain, .. } = survey;
    Ok(Beyond { next, entries, erased, given_up, explained, edge, chain })
}

/// Reads the published checkpoint and checks its signature.
fn read_checkpoint(log: &dyn Store, config: &LogConfig) -> Result<Checkpoint> {
    let name = log.describe(files::CHECKPOINT);
    let bytes = bulla_store::read_small(log, files::CHECKPOINT, 1 << 20).map_err(|error| {
        match error.io_error().map(io::Error::kind) {
            Some(io::ErrorKind::NotFound) => Error::tampered(format!("{name} is missing")),
            // Larger than any checkpoint.
            None => Error::tampered(error.to_string()),
            Some(_) => error,
        }
    })?;
    config
        .own_keys()
        .open(&bytes)
        .map_err(|error| Error::tampered(format!("{name}: {error}; run `bulla verify`")))
}

/// Reads the seal state of a log.
///
/// # Errors
/// As [`SealState::load`]; `Refused` where it is another log's.
pub(crate) fn read_state(keys: &dyn Store, config: &LogConfig) -> Result<SealState> {
    let state = SealState::load(keys)?;
    if state.log != config.id {
        let message = format!("{} belongs to another log, {}", keys.describe(""), state.log);
        return Err(Error::new(ErrorKind::Refused, message));
    }
    Ok(state)
}

/// Sets aside those of the segments that lie on a path.
fn set_aside_on(path: &dyn Store, unreachable: &[SegmentName], next: u64) -> Result<()> {
    if unreachable.is_empty() {
        return Ok(());
    }
    let there = segment::list(path)?.0;
    let lies_there = |name: &&SegmentName| unreachable.contains(name);
    there.iter().filter(lies_there).try_for_each(|name| adopt::set_aside(path, *name, next))
}

/// Removes the segments that a crash inside an earlier recovery left unfinished. Of a log on several paths one may lie on another than the
/// one in use, where it stands in nobody's way: it is removed once that one is opened on.
fn remove_unfinished(log: &dyn Store) -> Result<()> {
    let others = segment::list(log)?.1;
    for other in others.iter().filter(|name| name.ends_with(".seg.tmp")) {
        let path = format!("{}/{other}", segment::DIRECTORY);
        match log.remove(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::io(format!("removing {}", log.describe(&path)), error));
            }
            _ => {}
        }
    }
    Ok(())
}

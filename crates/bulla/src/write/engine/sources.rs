//! Sources: where entries come from, as far as the log is told, and what its durable blocks hold of each.
//!
//! A log that nobody follows sources into has none of this but an empty cell. The first who asks for a source has what the log says
//! of all of them read, under a checkpoint that covers whatever was in the log when it was opened; what came since says nothing, since
//! nobody had a source.
//!
//! Invariants:
//! - the table says only what is durable, of frames in their order: what a sync has covered is taken in after it was delivered to the
//!   checkpointer, and before anybody is told that it is durable;
//! - a source has one number as long as the log is open, and no two have the same;
//! - `sources.state` says what a published checkpoint covers, so whoever reads it under a later one finds its last frame there.

use super::Engine;
use super::locks::{Guard, Rank, RankedMutex};
use crate::format::sources::passed::{AllPassed, Passed};
use crate::format::sources::table::{Known, SourceState};
use crate::format::sources::{
    self, CheckedRange, MAX_LABEL, MAX_SOURCES_OF_LOG, Ranges, SourceEntry, SourceId, bound_labels,
};
use crate::keys::files;
use crate::keys::sources::{SourcesKey, SourcesSoFar};
use crate::scan::manifest::Manifest;
use crate::scan::snapshot::Snapshot;
use crate::scan::sources::SourcesRead;
use crate::write::seal::Section;
use crate::write::stage::buffer::StagedPlace;
use crate::write::stage::queue::{StagedPosition, Steady};
use bulla_crypto::epoch::EpochKeys;
use bulla_proof::commitment::Commitment;
use bulla_proof::hash::Hash;
use bulla_store::{Error, ErrorKind, Result};
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

/// So many separate ranges are known of a source before nothing more is taken from it.
const MAX_RANGES: usize = 4096;
/// So many are known of all sources together before nothing more is taken from those that have more than their share.
const MAX_RANGES_OF_LOG: usize = 1 << 20;
/// What each source's share of them is.
const SHARE: usize = MAX_RANGES_OF_LOG / MAX_SOURCES_OF_LOG;
/// The least time between two writings of `sources.state` while the log is open, in nanoseconds.
const STATE_INTERVAL: Steady = 60_000_000_000;

/// Nothing speaks against appending from a source.
const OPEN: u8 = 0;
/// It has ended.
const ENDED: u8 = 1;
/// Too many separate ranges are known of it.
const SCATTERED: u8 = 2;

/// A source, as those share it who append from it.
#[derive(Debug)]
pub(crate) struct Slot {
    number: u32,
    pub(crate) id: SourceId,
    /// Why nothing is taken from it any more.
    refuses: AtomicU8,
}

impl Slot {
    /// Its number in rows.
    ///
    /// # Errors
    /// `Refused` where nothing is taken from it any more.
    #[inline]
    pub(crate) fn number(&self) -> Result<u32> {
        match self.refuses.load(Ordering::Relaxed) {
            OPEN => Ok(self.number),
            why => Err(self.refusal(why)),
        }
    }

    #[cold]
    fn refusal(&self, why: u8) -> Error {
        let message = match why {
            ENDED => format!("source {} has ended", self.id),
            _ => format!(
                "the log has too many separate ranges of source {}: begin each where the last one that was taken ended, and end \
                 sources that are over",
                self.id
            ),
        };
        Error::new(ErrorKind::Refused, message)
    }
}

/// What a block holds of one source.
pub(crate) struct BlockSource {
    entry: SourceEntry,
    /// The number of its slot, and of its label where the block has that.
    slot: u32,
    label: u64,
}

/// What a frame that was committed holds of sources.
pub(super) struct SourcedFrame {
    pub(super) frame: u64,
    leaf: Hash,
    sources: Vec<BlockSource>,
}

impl SourcedFrame {
    pub(super) fn new(commitment: &Commitment, sources: Vec<BlockSource>) -> Self {
        SourcedFrame { frame: commitment.frame, leaf: commitment.leaf(), sources }
    }
}

/// See the module.
pub(crate) struct Sources {
    tracked: OnceLock<Tracked>,
    /// Held while what the log says is read for the first time, and while `sources.passed` is written.
    files: RankedMutex<()>,
}

/// Sources of a log that has some.
struct Tracked {
    key: SourcesKey,
    state: RankedMutex<State>,
}

struct State {
    slots: HashMap<u32, Registered, RandomState>,
    by_id: HashMap<SourceId, u32, RandomState>,
    /// The number of the next source.
    next: u32,
    /// Sources of which no durable block holds anything yet.
    unknown: usize,
    /// Those that have ended, of which no durable block says so yet. Blocks say so whose slices all come after the one at this position:
    /// then no row that was staged before is in them or comes after them.
    ending: BTreeMap<u32, StagedPosition>,
    durable: SourcesSoFar,
    /// Whether `durable` says something else than `sources.state`, and when that was written, or first could have been.
    changed: bool,
    saved: Steady,
    /// What was passed, and of that what `sources.passed` says.
    passed: AllPassed,
    kept: AllPassed,
}

struct Registered {
    slot: Arc<Slot>,
    label: Arc<[u8]>,
    /// How often the label was another one, and which of those is what durable blocks say.
    version: u64,
    carried: u64,
    /// Whether it is among the sources of which durable blocks hold something, and no longer among those that are unknown.
    counted: bool,
}

impl Sources {
    pub(super) fn new() -> Self {
        Sources { tracked: OnceLock::new(), files: RankedMutex::new(Rank::Sources, ()) }
    }
}

impl Tracked {
    fn lock(&self) -> Guard<'_, State> {
        self.state.lock()
    }
}

impl State {
    /// The source with this id, with this label from now on.
    fn register(&mut self, id: SourceId, label: Arc<[u8]>) -> Result<Arc<Slot>> {
        if let Some(number) = self.by_id.get(&id) {
            let registered = self.slots.get_mut(number).expect("every source has a slot");
            if registered.slot.refuses.load(Ordering::Relaxed) == ENDED {
                return Err(registered.slot.refusal(ENDED));
            }
            registered.relabel(label);
            return Ok(registered.slot.clone());
        }
        let known = self.durable.table.get(id);
        if known.is_none() && self.durable.table.len() + self.unknown >= MAX_SOURCES_OF_LOG {
            let message =
                format!("the log has {MAX_SOURCES_OF_LOG} sources already: end those that are over");
            return Err(Error::invalid(message));
        }
        let next = self.next.checked_add(1).ok_or_else(|| {
            Error::unavailable("the log has given out all numbers of sources: open it again")
        })?;
        let number = std::mem::replace(&mut self.next, next);
        let scattered = known.is_some_and(|known| self.is_scattered(known));
        let refuses = AtomicU8::new(if scattered { SCATTERED } else { OPEN });
        let slot = Arc::new(Slot { number, id, refuses });
        let carried = u64::from(known.is_some_and(|known| known.label == label));
        let counted = known.is_some();
        self.unknown += usize::from(!counted);
        self.by_id.insert(id, number);
        self.slots.insert(number, Registered { slot: slot.clone(), label, version: 1, carried, counted });
        Ok(slot)
    }

    fn relabel(&mut self, slot: &Slot, label: Arc<[u8]>) {
        if let Some(registered) = self.slots.get_mut(&slot.number) {
            registered.relabel(label);
        }
    }

    /// What a block says of sources of which it has these ranges, and whose first slice has this position.
    fn of_block(&self, found: Vec<(u32, Ranges)>, first: StagedPosition) -> Vec<BlockSource> {
        // One that has ended and is forgotten is not known again by rows that were staged at that very moment.
        let held = found.into_iter().filter_map(|(number, ranges)| {
            let Registered { slot, label, version, carried, .. } = self.slots.get(&number)?;
            let label = (carried < version).then(|| label.clone());
            Some(BlockSource {
                entry: SourceEntry { id: slot.id, label, ranges },
                slot: number,
                label: *version,
            })
        });
        let mut sources = held.collect::<Vec<_>>();
        if !self.ending.is_empty() {
            // Of which the block holds something all the same, a later one says that it has ended.
            let held = sources.iter().map(|source| source.slot).collect::<BTreeSet<_>>();
            let ending = self.ending.iter().filter(|(number, last)| **last < first && !held.contains(number));
            let ending = ending.filter_map(|(number, _)| self.slots.get(number));
            sources.extend(ending.map(|Registered { slot, .. }| BlockSource {
                entry: SourceEntry { id: slot.id, label: None, ranges: Ranges::default() },
                slot: slot.number,
                label: 0,
            }));
        }
        sources.sort_unstable_by_key(|source| source.entry.id);
        sources
    }

    /// Takes in what a durable frame holds.
    fn take(&mut self, SourcedFrame { frame, leaf, sources }: SourcedFrame) {
        for BlockSource { entry, slot, label } in sources {
            let (id, has_label, ended) = (entry.id, entry.label.is_some(), entry.ranges.is_empty());
            self.durable.table.take(frame, entry);
            // Where it has ended, several blocks may have said so before one of them was durable, and the id may be another's by then.
            let Some(registered) = self.slots.get_mut(&slot) else { continue };
            self.unknown -= usize::from(!std::mem::replace(&mut registered.counted, true));
            if ended {
                self.slots.remove(&slot);
                self.by_id.remove(&id);
                self.ending.remove(&slot);
                continue;
            }
            if has_label {
                // Not the newest that was said: a block before this one may be sealed after it.
                registered.carried = label;
            }
            if let Some(known) = self.durable.table.get(id)
                && self.is_scattered(known)
            {
                let refuses = &self.slots[&slot].slot.refuses;
                let _ = refuses.compare_exchange(OPEN, SCATTERED, Ordering::Relaxed, Ordering::Relaxed);
            }
        }
        (self.durable.frames, self.durable.leaf) = (frame + 1, leaf);
        self.changed = true;
    }

    /// What is to be kept of what was passed; `None` where that is what is kept.
    fn unkept_passed(&mut self) -> Option<AllPassed> {
        self.passed.retain_current(&self.durable.table);
        for (id, passed) in &mut self.passed.0 {
            // Of a source that nobody has asked for yet it is as it was read.
            if let Some(registered) = self.by_id.get(id).and_then(|number| self.slots.get(number)) {
                let is_known = self.durable.table.get(*id).is_some();
                passed.label = (!is_known).then(|| registered.label.clone());
            }
        }
        (self.passed != self.kept).then(|| self.passed.clone())
    }

    fn is_scattered(&self, known: &Known) -> bool {
        let share = if self.durable.table.ranges() > MAX_RANGES_OF_LOG { SHARE } else { MAX_RANGES };
        known.ranges.len() > share
    }
}

impl Registered {
    fn relabel(&mut self, label: Arc<[u8]>) {
        if self.label != label {
            self.label = label;
            self.version += 1;
        }
    }
}

/// Gathers the places of a block's rows.
#[derive(Default)]
pub(super) struct PlacesOfBlock {
    sources: Vec<(u32, Vec<CheckedRange>)>,
    by_number: HashMap<u32, usize, RandomState>,
    /// Where the source of the last row is.
    last: Option<(u32, usize)>,
}

impl PlacesOfBlock {
    /// Adds the place of the next row.
    pub(super) fn add(&mut self, place: &StagedPlace) {
        let at = match self.last {
            Some((number, at)) if number == place.source => at,
            _ => *self.by_number.entry(place.source).or_insert_with(|| {
                self.sources.push((place.source, Vec::new()));
                self.sources.len() - 1
            }),
        };
        self.last = Some((place.source, at));
        let ranges = &mut self.sources[at].1;
        match ranges.last_mut() {
            Some(last) if last.end == place.start => (last.end, last.check) = (place.end, place.check),
            _ => {
                let StagedPlace { start, end, check, .. } = *place;
                ranges.push(CheckedRange { start, end, check });
            }
        }
    }

    fn finish(self) -> Vec<(u32, Ranges)> {
        self.sources.into_iter().map(|(number, ranges)| (number, Ranges::of(ranges))).collect()
    }
}

impl Engine {
    /// What the log says of sources as it is published, and the key of that, where it was made already. Who is first to ask has a
    /// checkpoint cover what was in the log when it was opened.
    ///
    /// # Errors
    /// As [`scan::sources::read`](crate::scan::sources::read), and where no checkpoint can be published.
    fn read_sources(&self) -> Result<SourcesRead> {
        let opened = self.opened_at;
        if self.published().size < opened {
            // The epoch that opening began is the first frame behind those.
            let frame = Arc::new(OnceLock::from(opened));
            self.wait_for_checkpoint(&frame)?;
        }
        let published = self.published();
        let manifest = Manifest::load_end(Snapshot::of(self.log.clone())?)?;
        if manifest.size() < published.size || manifest.root_at(published.size)? != published.root {
            let directory = self.log.describe("");
            let message =
                format!("{directory} does not have the checkpoint that was published; run `bulla verify`");
            return Err(Error::tampered(message));
        }
        crate::scan::sources::read(&manifest, &*self.keys)
    }

    /// Has the log keep account of sources from now on.
    fn track_sources(&self) -> Result<&Tracked> {
        if let Some(tracked) = self.sources.tracked.get() {
            return Ok(tracked);
        }
        let _files = self.sources.files.lock();
        if let Some(tracked) = self.sources.tracked.get() {
            return Ok(tracked);
        }
        let SourcesRead { key, so_far: durable, kept, passed } = self.read_sources()?;
        let key = match key {
            Some(key) => {
                files::settle(&*self.keys)?;
                key
            }
            None => {
                self.require_in_place()?;
                SourcesKey::make(&*self.keys, self.identity.log, &*self.environment.random)?
            }
        };
        let state = State {
            slots: HashMap::default(),
            by_id: HashMap::default(),
            next: 0,
            unknown: 0,
            ending: BTreeMap::new(),
            changed: durable.frames != kept,
            durable,
            saved: self.environment.clock.steady(),
            kept: passed.clone(),
            passed,
        };
        Ok(self.sources.tracked.get_or_init(|| Tracked { key, state: RankedMutex::new(Rank::Leaf, state) }))
    }

    /// The source with this id, which is labelled so from now on.
    ///
    /// # Errors
    /// `Invalid` where the label is too long or there are too many sources; `Refused` where the source has ended and no durable block
    /// says so yet; else as [`Engine::read_sources`].
    pub(crate) fn source(&self, id: SourceId, label: &[u8]) -> Result<Arc<Slot>> {
        check_label(label)?;
        self.track_sources()?.lock().register(id, label.into())
    }

    /// What durable blocks hold of sources.
    ///
    /// # Errors
    /// As [`Engine::read_sources`].
    pub(crate) fn source_states(&self) -> Result<Vec<SourceState>> {
        match self.sources.tracked.get() {
            Some(tracked) => {
                let state = tracked.lock();
                Ok(state.passed.states(&state.durable.table))
            }
            None => {
                let read = self.read_sources()?;
                Ok(read.passed.states(&read.so_far.table))
            }
        }
    }

    /// Labels a source anew.
    ///
    /// # Errors
    /// `Invalid` where the label is too long.
    pub(crate) fn relabel_source(&self, slot: &Slot, label: &[u8]) -> Result<()> {
        check_label(label)?;
        if let Some(tracked) = self.sources.tracked.get() {
            tracked.lock().relabel(slot, label.into());
        }
        Ok(())
    }

    /// What is in this range of a source became no entry. It is known once [`Engine::keep_passed`] has kept it.
    ///
    /// # Errors
    /// `Refused` where nothing is taken from the source any more.
    pub(crate) fn pass(&self, slot: &Slot, range: CheckedRange) -> Result<()> {
        slot.number()?;
        if let Some(tracked) = self.sources.tracked.get() {
            tracked.lock().passed.0.insert(slot.id, Passed { label: None, range });
        }
        Ok(())
    }

    /// Keeps in `sources.passed` what was passed of all sources and blocks do not say yet, where that is another than it has.
    ///
    /// # Errors
    /// `Unavailable` where it cannot be written, or the log is not at its place any more.
    pub(crate) fn keep_passed(&self) -> Result<()> {
        let Some(tracked) = self.sources.tracked.get() else { return Ok(()) };
        // What is kept later is never overtaken by what was kept before.
        let _files = self.sources.files.lock();
        let Some(passed) = tracked.lock().unkept_passed() else { return Ok(()) };
        self.require_in_place()?;
        let with = (&*self.environment.random, &*self.environment.cipher);
        tracked.key.save_passed(&*self.keys, self.identity.log, &passed, with)?;
        tracked.lock().kept = passed;
        Ok(())
    }

    /// Has blocks to come say that a source has ended.
    pub(crate) fn end_source(&self, slot: &Slot) {
        let Some(tracked) = self.sources.tracked.get() else { return };
        if slot.refuses.swap(ENDED, Ordering::Relaxed) == ENDED {
            return;
        }
        let last = self.staging.queue_all();
        let mut state = tracked.lock();
        state.ending.insert(slot.number, last);
        state.passed.0.remove(&slot.id);
    }

    /// What a block says of sources, from the places of its rows and the position of its first slice, and as its sealer is given it.
    pub(super) fn section_of(
        &self,
        places: PlacesOfBlock,
        first: StagedPosition,
        keys: &EpochKeys,
    ) -> Result<(Vec<BlockSource>, Option<Section>)> {
        let Some(tracked) = self.sources.tracked.get() else { return Ok((Vec::new(), None)) };
        let found = places.finish();
        let mut sources = tracked.lock().of_block(found, first);
        if sources.is_empty() {
            return Ok((sources, None));
        }
        bound_labels(&mut sources.iter_mut().map(|source| &mut source.entry).collect::<Vec<_>>());
        let text = sources::encode(sources.iter().map(|source| &source.entry));
        let key = tracked.key.of_epoch(self.identity.log, keys.number(), keys.random())?;
        Ok((sources, Some(Section { text, key })))
    }

    /// Takes in what frames hold that a sync has covered by now.
    pub(super) fn take_durable_sources(&self, sourced: impl ExactSizeIterator<Item = SourcedFrame>) {
        let Some(tracked) = self.sources.tracked.get().filter(|_| sourced.len() > 0) else { return };
        let mut state = tracked.lock();
        sourced.for_each(|sourced| state.take(sourced));
    }

    /// What is to be kept of sources once a checkpoint covers it, where enough time has passed, or the log is being closed.
    pub(super) fn unsaved_sources(&self, closing: bool) -> Option<SourcesSoFar> {
        let tracked = self.sources.tracked.get()?;
        let now = self.environment.clock.steady();
        let mut state = tracked.lock();
        if !state.changed || !closing && now.saturating_sub(state.saved) < STATE_INTERVAL {
            return None;
        }
        state.saved = now;
        Some(state.durable.clone())
    }

    /// Keeps that, if the published checkpoint covers it. It is only a cache: what cannot be written is written another time.
    pub(super) fn save_sources(&self, unsaved: &SourcesSoFar) {
        let Some(tracked) = self.sources.tracked.get() else { return };
        let with = (&*self.environment.random, &*self.environment.cipher);
        let save = || tracked.key.save_state(&*self.keys, self.identity.log, unsaved, with);
        if unsaved.frames <= self.published().size && save().is_ok() {
            let mut state = tracked.lock();
            state.changed = state.durable.frames != unsaved.frames;
        }
    }
}

fn check_label(label: &[u8]) -> Result<()> {
    match label.len() <= MAX_LABEL {
        true => Ok(()),
        false => Err(Error::invalid(format!("the label of a source has more than {MAX_LABEL} bytes"))),
    }
}

#[cfg(test)]
mod tests;

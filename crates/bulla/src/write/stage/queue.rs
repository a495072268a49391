//! The staging queue: the pool of buffers, the queue of published rows, and the numbers of what leaves it.
//!
//! Invariants:
//! - slices leave the queue in the order in which they entered it, and get their numbers as they leave, under the
//!   same mutex: a producer's entries keep their order, and numbers have no holes;
//! - at most half of the buffers belong to producers, so that a waiting producer always gets one in the end;
//! - references to buffers are dropped under the mutex only, so exactly one holder finds itself the last and
//!   returns the buffer to the pool;
//! - no row is older than the date of its slice: the time at which its producer's buffer was looked at before. So no clock is asked
//!   for a row, and the date is earlier than the row by the time between two looks at most;
//! - in an outage rows are dropped from the first one on for which there is no space, whoever appends them, until it ends. What ends it has
//!   the sequencer told of them under the same mutex, so that no row which comes after them has a number before that.
#![expect(clippy::disallowed_methods, reason = "producers wait for space by the operating system's clock")]

use super::block_size::{BlockOutcome, BlockSizeController};
use super::buffer::{Buffer, Mark, Slice, StagedPlace, Writer, overhead};
use super::dropping::DroppedRows;
use super::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Nanoseconds of a clock that never goes back, of which a log has one.
pub(crate) type Steady = u64;

/// Gives frames their numbers, and has frames of its own to number: epochs and events. It lives under the queue's mutex.
pub(crate) trait AssignFrames {
    /// What a writer needs to know of a frame to seal it.
    type Assignment;
    /// A frame other than a block that waits for its number.
    fn control(&mut self) -> Option<Self::Assignment>;
    /// Whether there is one.
    fn has_control(&self) -> bool;
    /// Whether another block may be numbered now.
    fn admits(&self) -> bool;
    /// The number of a block of so many entries and bytes of rows, of which none is older than `since`.
    fn block(&mut self, entries: u64, bytes: usize, since: Steady) -> Self::Assignment;
    /// What the clock says.
    fn now(&self) -> Steady;
    /// The time of day: seconds since the Unix epoch.
    fn seconds(&self) -> i64;
}

/// Room for so many buffers in lists is made at the start, so that handing a buffer over allocates nothing later.
const MOST_ROOM: usize = 8192;

/// Bounds on what is staged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) buffers: usize,
    pub(crate) buffer_size: usize,
    pub(crate) large_rows: usize,
    /// Bytes of rows that make a full block, at least and at most: see [`super::block_size`].
    pub(crate) block_size: usize,
    pub(crate) most_block_size: usize,
}

/// Why a producer gets no space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoSpace {
    Timeout,
    Closed,
    Failed,
    /// The row was dropped in this outage, and is counted.
    Dropped(OutageNumber),
}

/// Tells the outages of a log apart: a later one has a larger number.
pub(crate) type OutageNumber = u64;

/// How long to wait for space: in real time, as condition variables know no other.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wait {
    Never,
    Until(Instant),
    Forever,
}

impl Wait {
    /// For so long from now.
    pub(crate) fn lasting(time: Duration) -> Self {
        Instant::now().checked_add(time).map_or(Wait::Forever, Wait::Until)
    }
}

/// Names a producer of this queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProducerId(usize);

/// The position of a slice in the queue, counted from 1 since the log was opened: what receipts wait for.
pub(crate) type StagedPosition = u64;

/// The slices of one block.
pub(crate) struct Batch {
    pub(crate) slices: Vec<Slice>,
    pub(crate) bytes: usize,
    pub(crate) entries: u64,
    /// The position of the last slice.
    pub(crate) last: StagedPosition,
    /// No row is older.
    pub(crate) since: Steady,
}

impl Batch {
    /// The position of the first slice.
    pub(crate) fn first(&self) -> StagedPosition {
        self.last + 1 - self.slices.len() as StagedPosition
    }
}

/// How producers waited for memory.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Waited {
    /// How often.
    pub(crate) count: u64,
    /// All of them together.
    pub(crate) time: Duration,
    /// The longest.
    pub(crate) longest: Duration,
}

impl Waited {
    /// Adds a part of one wait, of which there was `before`.
    fn add(&mut self, part: Duration, before: &mut Duration) {
        self.count += u64::from(before.is_zero());
        *before += part.max(Duration::from_nanos(1));
        self.time += part;
        self.longest = self.longest.max(*before);
    }
}

/// How much is staged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Depth {
    /// Bytes of rows that wait for a block.
    pub(crate) staged: usize,
    /// Buffers that are not in the pool.
    pub(crate) buffers: usize,
    pub(crate) waits: Waited,
    /// Entries that were taken since the log was opened.
    pub(crate) taken: u64,
    /// No row that waits for a block is older; `None` where none waits.
    pub(crate) since: Option<Steady>,
}

/// What a writer is given to do.
pub(crate) enum Work<T> {
    Control(T),
    Block(T, Batch),
}

struct Held {
    buffer: Arc<Buffer>,
    taken: Mark,
    /// When it was looked at: what is not taken is younger.
    looked: Steady,
}

impl Held {
    /// What was published and is not taken.
    fn published(&self) -> u64 {
        u64::from(self.buffer.mark().entries - self.taken.entries)
    }
}

/// A slice, and the date that none of its rows is older than.
struct Queued {
    slice: Slice,
    since: Steady,
}

struct State<N> {
    sequencer: N,
    block_size: BlockSizeController,
    free: Vec<Arc<Buffer>>,
    /// Buffers made so far.
    made: usize,
    large: usize,
    producers: Vec<Option<Held>>,
    vacant: Vec<usize>,
    queue: VecDeque<Queued>,
    queued: usize,
    /// Slices, and the entries in them, that were queued.
    pushed: StagedPosition,
    pushed_entries: u64,
    /// How many blocks are being sealed.
    sealing: usize,
    /// Somebody asked for what is queued: it is sealed now, whether it fills a block or not.
    flush_requested: bool,
    /// What is queued has waited long enough: it is sealed as soon as no other block is.
    linger_expired: bool,
    /// Entries that were queued since that was said last.
    arrived: u64,
    /// How many producers wait for space.
    waiting: usize,
    waits: Waited,
    closed: bool,
    failed: bool,
    /// The outage in which nothing takes what the log writes, so that rows without space are dropped.
    outage: Option<OutageNumber>,
    /// For each of `producers` the last outage in which a row of the one that has that place now was dropped.
    dropped_in: Vec<Option<OutageNumber>>,
    /// The rows that were, in this outage.
    dropped: Option<DroppedRows>,
}

/// See the module.
pub(crate) struct StagingQueue<N> {
    bounds: Bounds,
    state: Mutex<State<N>>,
    /// Signalled when a writer may find something to seal.
    work_ready: Condvar,
    /// Signalled when a producer may find a buffer.
    freed: Condvar,
}

impl<N: AssignFrames> StagingQueue<N> {
    pub(crate) fn new(bounds: Bounds, sequencer: N) -> Self {
        let state = State {
            sequencer,
            block_size: BlockSizeController::new(bounds.block_size, bounds.most_block_size),
            free: Vec::with_capacity(bounds.buffers.min(MOST_ROOM)),
            made: 0,
            large: 0,
            producers: Vec::new(),
            vacant: Vec::new(),
            queue: VecDeque::with_capacity(bounds.buffers.min(MOST_ROOM / 2) * 2),
            queued: 0,
            pushed: 0,
            pushed_entries: 0,
            sealing: 0,
            flush_requested: false,
            linger_expired: false,
            arrived: 0,
            waiting: 0,
            waits: Waited::default(),
            closed: false,
            failed: false,
            outage: None,
            dropped_in: Vec::new(),
            dropped: None,
        };
        StagingQueue { bounds, state: Mutex::new(state), work_ready: Condvar::new(), freed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State<N>> {
        // Nothing that runs under this mutex can panic between two steps of a change, so its state is whole even where
        // it is poisoned.
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Registers a producer. Returns its name and the last position in the queue that cannot be its own; `None` where half
    /// of the buffers are taken already.
    pub(crate) fn register(&self) -> Option<(ProducerId, StagedPosition)> {
        let mut state = self.lock();
        if state.producers.len() - state.vacant.len() >= (self.bounds.buffers / 2).max(1) {
            return None;
        }
        let id = state.vacant.pop().unwrap_or_else(|| {
            state.producers.push(None);
            state.dropped_in.push(None);
            state.producers.len() - 1
        });
        state.dropped_in[id] = None;
        Some((ProducerId(id), state.pushed))
    }

    /// Queues what a producer has published, and ends it.
    pub(crate) fn retire(&self, id: ProducerId, writer: Option<Writer>) {
        let mut state = self.lock();
        drop(writer);
        let now = state.sequencer.now();
        self.push_published(&mut state, id.0, now);
        self.give_up(&mut state, id.0);
        state.vacant.push(id.0);
        self.wake(&state);
    }

    /// Queues what a producer has published, and gives it an empty buffer. The row that it is for may be dropped in an outage where
    /// `may_drop` says so.
    ///
    /// # Errors
    /// Where no buffer comes free in time, or the log takes no more. What was published is queued all the same.
    pub(crate) fn exchange(
        &self,
        id: ProducerId,
        full: Option<Writer>,
        wait: Wait,
        may_drop: bool,
    ) -> Result<Writer, NoSpace> {
        let mut state = self.lock();
        drop(full);
        let now = state.sequencer.now();
        self.push_published(&mut state, id.0, now);
        self.give_up(&mut state, id.0);
        self.wake(&state);
        let is_free = |state: &State<N>| !state.free.is_empty() || state.made < self.bounds.buffers;
        let mut state = self.wait_for(state, wait, may_drop.then_some(id), is_free)?;
        let looked = state.sequencer.now();
        let mut buffer = state.free.pop().unwrap_or_else(|| {
            state.made += 1;
            Arc::new(Buffer::new(self.bounds.buffer_size))
        });
        let writer = Writer::new(&mut buffer).expect("a pooled buffer has one holder");
        state.producers[id.0] = Some(Held { buffer, taken: Mark::default(), looked });
        Ok(writer)
    }

    /// Queues one row that is larger than a buffer, after what the producer has published.
    ///
    /// # Errors
    /// As [`StagingQueue::exchange`]; the row is then not taken.
    pub(crate) fn push_large(
        &self,
        id: ProducerId,
        length: usize,
        place: Option<&StagedPlace>,
        encode: impl FnOnce(&mut [u8]),
        wait: Wait,
        may_drop: bool,
    ) -> Result<(), NoSpace> {
        let size = length + overhead(place);
        assert!(size > self.bounds.buffer_size, "a row that fits a buffer of the pool");
        let state = self.lock();
        let fits = |state: &State<N>| state.large == 0 || state.large + size <= self.bounds.large_rows;
        let mut state = self.wait_for(state, wait, may_drop.then_some(id), fits)?;
        state.large += size;
        let since = state.sequencer.now();
        drop(state);
        let mut buffer = Arc::new(Buffer::new(size));
        Writer::new(&mut buffer).expect("a new buffer has one holder").push(length, place, encode);
        let mut state = self.lock();
        if let Some(refusal) = state.refuses() {
            // It was closed meanwhile, and the writers that would have to seal the row may have ended already.
            state.large -= size;
            return Err(refusal);
        }
        self.push_published(&mut state, id.0, since);
        let (slice, _) = Slice::beyond(&buffer, Mark::default());
        drop(buffer);
        self.push(&mut state, Queued { slice, since });
        self.wake(&state);
        Ok(())
    }

    /// Queues what a producer has published, and has the whole queue sealed without waiting for more.
    /// Returns the position of the last slice of the queue, which covers what was published.
    ///
    /// # Errors
    /// Where the log takes no more: nobody may be left then who would seal it.
    pub(crate) fn flush(&self, id: ProducerId) -> Result<StagedPosition, NoSpace> {
        let mut state = self.lock();
        if let Some(refusal) = state.refuses() {
            return Err(refusal);
        }
        let now = state.sequencer.now();
        self.push_published(&mut state, id.0, now);
        state.flush_requested = !state.queue.is_empty();
        let pushed = state.pushed;
        self.wake_after(state);
        Ok(pushed)
    }

    /// Queues what every producer has published, and has the whole queue sealed without waiting for more.
    /// Returns the position of the last slice.
    pub(crate) fn take_all(&self) -> StagedPosition {
        let mut state = self.lock();
        self.push_all(&mut state);
        self.request_flush(&mut state);
        state.pushed
    }

    /// Queues what every producer has published. Returns the position of the last slice: what is published from now on comes after it.
    pub(crate) fn queue_all(&self) -> StagedPosition {
        let mut state = self.lock();
        self.push_all(&mut state);
        let pushed = state.pushed;
        self.wake_after(state);
        pushed
    }

    /// Queues what every producer has published, to be sealed as soon as no other block is being sealed: what has
    /// waited for so long can wait that much longer, and a second writer at work would take a processor from the
    /// producers. Returns how many entries were queued since this was done last.
    pub(crate) fn expire_linger(&self) -> u64 {
        let mut state = self.lock();
        self.push_all(&mut state);
        state.linger_expired = !state.queue.is_empty();
        let arrived = std::mem::take(&mut state.arrived);
        self.wake_after(state);
        arrived
    }

    /// Refuses what is appended from now on and lets the writers run dry.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        self.refuse(&mut state);
    }

    /// Refuses what is appended from now on, because nothing can be committed any more.
    pub(crate) fn fail(&self) {
        let mut state = self.lock();
        state.failed = true;
        self.refuse(&mut state);
    }

    /// Closes the producers' buffers too: otherwise a producer would learn of the end only when its buffer is full.
    fn refuse(&self, state: &mut State<N>) {
        state.producers.iter().flatten().for_each(|held| held.buffer.close());
        self.push_all(state);
        self.work_ready.notify_all();
        self.freed.notify_all();
    }

    /// Has rows for which there is no space be dropped from now on, in this outage.
    pub(crate) fn begin_outage(&self, outage: OutageNumber) {
        self.lock().outage = Some(outage);
        self.freed.notify_all();
    }

    /// Has rows wait for space again. Where some were dropped, `tell` has the sequencer told, before any row that comes after them is
    /// numbered.
    pub(crate) fn end_outage<T>(&self, tell: impl FnOnce(&mut N, DroppedRows) -> T) -> Option<T> {
        let mut state = self.lock();
        state.outage = None;
        let dropped = state.dropped.take()?;
        let told = tell(&mut state.sequencer, dropped);
        drop(state);
        self.freed.notify_all();
        self.work_ready.notify_all();
        Some(told)
    }

    /// How many rows were dropped in the outage that there is.
    pub(crate) fn dropped(&self) -> u64 {
        self.lock().dropped.as_ref().map_or(0, DroppedRows::entries)
    }

    /// Counts a row that is dropped. With the first one all producers lose their buffers' space: what they append from now on is dropped
    /// as well, so that it does not come before the word of that.
    fn drop_row(&self, state: &mut State<N>, id: ProducerId, outage: OutageNumber) {
        if state.dropped.is_none() {
            state.producers.iter().flatten().for_each(|held| held.buffer.close());
            self.push_all(state);
            self.request_flush(state);
        }
        let seconds = state.sequencer.seconds();
        let is_first = state.dropped_in[id.0].replace(outage) != Some(outage);
        state.dropped.get_or_insert_with(|| DroppedRows::beginning(seconds)).add(is_first, seconds);
    }

    /// Looks at the sequencer.
    pub(crate) fn look_at_sequencer<T>(&self, look: impl FnOnce(&N) -> T) -> T {
        look(&self.lock().sequencer)
    }

    /// Changes the sequencer, then lets the writers look again where they may find something else than before.
    pub(crate) fn with_sequencer<T>(&self, change: impl FnOnce(&mut N) -> T) -> T {
        let mut state = self.lock();
        let result = change(&mut state.sequencer);
        let admitted = self.is_work_ready(&state) && state.sequencer.admits();
        // Of a log that is closed they look for the end, too.
        let ready = admitted || state.sequencer.has_control() || state.closed;
        drop(state);
        if ready {
            self.work_ready.notify_all();
        }
        result
    }

    /// The next piece of work: waits for it when `block`; `None` when there is none (now, or ever again).
    pub(crate) fn take(&self, block: bool) -> Option<Work<N::Assignment>> {
        let mut state = self.lock();
        loop {
            if state.failed {
                return None;
            }
            if let Some(assignment) = state.sequencer.control() {
                return Some(Work::Control(assignment));
            }
            if self.is_work_ready(&state) && state.sequencer.admits() {
                return Some(self.take_block(&mut state));
            }
            if !block || (state.closed && state.queue.is_empty()) {
                return None;
            }
            state = self.work_ready.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }

    /// Gives the buffers of a sealed block back, and learns what came of it.
    pub(crate) fn release(&self, batch: Batch, made: BlockOutcome) {
        let mut state = self.lock();
        state.sealing -= 1;
        state.block_size.learn(batch.bytes, batch.entries, made);
        for slice in batch.slices {
            self.put_back(&mut state, slice.into_buffer());
        }
        // Whoever sealed this block looks for the next one when it has passed this one on, and takes what only lingered.
        // A block that somebody waits for, or that is full, does not wait for that: another writer is woken.
        if self.is_block_wanted(&state) {
            self.work_ready.notify_one();
        }
    }

    /// How much is staged, and how often producers had to wait.
    pub(crate) fn depth(&self) -> Depth {
        let state = self.lock();
        let published = || state.producers.iter().flatten().filter(|held| held.published() > 0);
        let queued = state.queue.iter().map(|queued| queued.since);
        Depth {
            staged: state.queued,
            buffers: state.made - state.free.len(),
            waits: state.waits,
            taken: state.pushed_entries + published().map(Held::published).sum::<u64>(),
            since: queued.chain(published().map(|held| held.looked)).min(),
        }
    }

    /// Whether nothing is staged and every buffer is back.
    #[cfg(test)]
    pub(crate) fn is_at_rest(&self) -> bool {
        let state = self.lock();
        let empty = state.queue.is_empty() && state.queued == 0;
        empty && state.free.len() == state.made && state.large == 0 && state.waiting == 0
    }

    /// Whether a writer that asks now is given a block.
    fn is_work_ready(&self, state: &State<N>) -> bool {
        self.is_block_wanted(state) || state.linger_expired && state.sealing == 0 && !state.queue.is_empty()
    }

    /// Whether somebody waits for what is queued, or it is enough for a block. While a block is being sealed it has to be
    /// enough for two: one would be better off with the writer that is awake already.
    fn is_block_wanted(&self, state: &State<N>) -> bool {
        let waited_for = state.flush_requested || state.closed || state.waiting > 0;
        let blocks = if state.sealing == 0 { 1 } else { 2 };
        !state.queue.is_empty() && (waited_for || state.queued >= blocks * state.block_size.bytes())
    }

    fn take_block(&self, state: &mut State<N>) -> Work<N::Assignment> {
        let mut batch = Batch { slices: Vec::new(), bytes: 0, entries: 0, last: 0, since: Steady::MAX };
        let target = state.block_size.bytes();
        while let Some(Queued { slice, since }) = state.queue.front() {
            let full = batch.bytes + slice.bytes() > target + self.bounds.buffer_size;
            if !batch.slices.is_empty() && (full || batch.bytes >= target) {
                break;
            }
            batch.bytes += slice.bytes();
            batch.entries += u64::from(slice.entries());
            batch.since = batch.since.min(*since);
            batch.slices.extend(state.queue.pop_front().map(|queued| queued.slice));
        }
        state.queued -= batch.bytes;
        batch.last = state.pushed - state.queue.len() as u64;
        state.sealing += 1;
        if state.queue.is_empty() {
            (state.flush_requested, state.linger_expired) = (false, false);
        }
        self.wake(state);
        Work::Block(state.sequencer.block(batch.entries, batch.bytes, batch.since), batch)
    }

    fn push_all(&self, state: &mut State<N>) {
        let now = state.sequencer.now();
        (0..state.producers.len()).for_each(|index| self.push_published(state, index, now));
    }

    /// Queues what a producer published since it was last asked, which it is `now`.
    fn push_published(&self, state: &mut State<N>, index: usize, now: Steady) {
        let Some(held) = &mut state.producers[index] else { return };
        let since = std::mem::replace(&mut held.looked, now);
        if held.buffer.mark() == held.taken {
            return;
        }
        let slice;
        (slice, held.taken) = Slice::beyond(&held.buffer, held.taken);
        self.push(state, Queued { slice, since });
    }

    fn push(&self, state: &mut State<N>, queued: Queued) {
        let entries = u64::from(queued.slice.entries());
        state.queued += queued.slice.bytes();
        state.arrived += entries;
        state.pushed_entries += entries;
        state.pushed += 1;
        state.queue.push_back(queued);
    }

    fn request_flush(&self, state: &mut State<N>) {
        state.flush_requested = !state.queue.is_empty();
        self.wake(state);
    }

    fn wake(&self, state: &State<N>) {
        if self.is_work_ready(state) {
            self.work_ready.notify_one();
        }
    }

    /// The same once the mutex is let go of, which whoever wakes wants.
    fn wake_after(&self, state: MutexGuard<'_, State<N>>) {
        let ready = self.is_work_ready(&state);
        drop(state);
        if ready {
            self.work_ready.notify_one();
        }
    }

    /// Takes its buffer from a producer.
    fn give_up(&self, state: &mut State<N>, index: usize) {
        if let Some(held) = state.producers[index].take() {
            self.put_back(state, held.buffer);
        }
    }

    /// Lets go of a reference to a buffer. Whoever lets go of the last one returns the buffer to the pool.
    fn put_back(&self, state: &mut State<N>, mut buffer: Arc<Buffer>) {
        if Arc::get_mut(&mut buffer).is_none() {
            return;
        }
        if buffer.length() == self.bounds.buffer_size {
            state.free.push(buffer);
        } else {
            state.large -= buffer.length();
        }
        if state.waiting > 0 {
            self.freed.notify_all();
        }
    }

    fn wait_for<'a>(
        &self,
        mut state: MutexGuard<'a, State<N>>,
        wait: Wait,
        may_drop: Option<ProducerId>,
        ready: impl Fn(&State<N>) -> bool,
    ) -> Result<MutexGuard<'a, State<N>>, NoSpace> {
        let mut waited = Duration::ZERO;
        loop {
            if let Some(refusal) = state.refuses() {
                return Err(refusal);
            }
            if let Some((id, outage)) = may_drop.zip(state.outage)
                && (state.dropped.is_some() || !ready(&state))
            {
                self.drop_row(&mut state, id, outage);
                return Err(NoSpace::Dropped(outage));
            }
            // What is not dropped waits until those that were are told of: it comes after them.
            if ready(&state) && !(state.outage.is_some() && state.dropped.is_some()) {
                return Ok(state);
            }
            let left = match wait {
                Wait::Never => Duration::ZERO,
                Wait::Until(deadline) => deadline.saturating_duration_since(Instant::now()),
                Wait::Forever => Duration::MAX,
            };
            if left.is_zero() {
                // What is queued is sealed, so that the next attempt may find space.
                self.request_flush(&mut state);
                return Err(NoSpace::Timeout);
            }
            state.waiting += 1;
            self.work_ready.notify_one();
            let start = Instant::now();
            let (guard, _) =
                self.freed.wait_timeout(state, left).unwrap_or_else(std::sync::PoisonError::into_inner);
            state = guard;
            state.waiting -= 1;
            state.waits.add(start.elapsed(), &mut waited);
        }
    }
}

impl<N> State<N> {
    fn refuses(&self) -> Option<NoSpace> {
        match (self.failed, self.closed) {
            (true, _) => Some(NoSpace::Failed),
            (_, true) => Some(NoSpace::Closed),
            _ => None,
        }
    }
}

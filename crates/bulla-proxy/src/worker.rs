//! [`Worker`]: what the connections of one thread have in common.
//!
//! Each worker has a recorder of its own, and a task that wakes whoever waits for entries to be durable, and sends what they wait for
//! on its way: see [`CommitDelay`].

use crate::accepting::NotAccepted;
use crate::config::{Mode, Unrecordable};
use crate::counters::{Counters, RefusedConnection};
use crate::defect;
use crate::metrics::Histogram;
use crate::recorder::{Durable, Recorder, Renewal};
use crate::session::Ticket;
use crate::settings::Settings;
use crate::warnings::{Kind, Warnings};
use bulla::environment::Clock;
use std::cell::{Cell, RefCell, RefMut};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Waker;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// So many bytes are read at once.
const READ: usize = 64 << 10;
/// So long after it had no memory the log is asked again; and so long after it took nothing.
const FULL: Duration = Duration::from_millis(2);
const TAKES_NOTHING: Duration = Duration::from_secs(1);

/// What all workers have in common.
pub(crate) struct Shared {
    pub(crate) counters: Arc<Counters>,
    pub(crate) warnings: Arc<Warnings>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Shared {
    /// Counts a defect of the proxy by which something ended, and warns of the first one.
    pub(crate) fn failed(&self, what: &str) {
        defect::report(&self.counters, &self.warnings, what);
    }

    /// Counts that a client could not be accepted, and warns of the first one. Whether it is to be waited before the next.
    pub(crate) fn not_accepted(&self, why: NotAccepted, error: &std::io::Error) -> bool {
        let kind = match why {
            NotAccepted::Interrupted => return false,
            NotAccepted::Client => Kind::Aborted,
            NotAccepted::Short | NotAccepted::Socket => Kind::NotAccepted,
        };
        self.counters.not_accepted.add(1);
        self.warnings.once(kind, || format!("a client could not be accepted: {error}"));
        why == NotAccepted::Short
    }

    /// Counts a connection that was refused, and warns of the first one of its kind.
    pub(crate) fn refused(&self, why: RefusedConnection, what: impl FnOnce() -> String) {
        let kind = match why {
            RefusedConnection::ProxyHeader => Kind::ProxyHeader,
            RefusedConnection::Tls => Kind::Tls,
            RefusedConnection::HandshakeTimeout => Kind::HandshakeTimeout,
        };
        self.counters.refused(why).add(1);
        self.warnings.once(kind, what);
    }
}

/// Delays the next sync until it is worth it, by who waits for entries to be durable, of all workers together: group commit.
///
/// Connections that a sync released are soon back with their next commands. Whoever came while it went on would, sent on its way at once,
/// be alone in the next one, and those that were released in the one after it: each would wait for two. So the next group waits until as
/// many are there as were before, for a part of the time at most that a sync takes.
#[derive(Default)]
pub(crate) struct CommitDelay {
    waiting: AtomicUsize,
    /// How many are expected to wait before it is worth a sync.
    expected: AtomicUsize,
    /// Has every worker send what it has.
    complete: Vec<Arc<Notify>>,
}

/// Delaying a sync is not worth it where a sync is faster than this, which is what timers can tell.
const FAST: u64 = 1_000_000;

impl CommitDelay {
    /// Of workers that are told in this way that they have something to do.
    pub(crate) fn new(workers: Vec<Arc<Notify>>) -> Self {
        CommitDelay { complete: workers, ..CommitDelay::default() }
    }

    fn wait(&self) {
        let waiting = self.waiting.fetch_add(1, Ordering::Relaxed) + 1;
        if waiting == self.expected.load(Ordering::Relaxed) {
            self.complete.iter().for_each(|worker| worker.notify_one());
        }
    }

    fn release(&self, count: usize) {
        let before = self.waiting.fetch_sub(count, Ordering::Relaxed);
        // Clients that have left are waited for a few times more, and less each time, until only those are that come.
        let expected = self.expected.load(Ordering::Relaxed);
        self.expected.store(before.max(expected - expected.div_ceil(4)), Ordering::Relaxed);
    }

    fn is_complete(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) >= self.expected.load(Ordering::Relaxed)
    }
}

/// Whoever waits for entries to be durable.
struct Waiting {
    /// Until so many are.
    ticket: Ticket,
    waker: Waker,
    awaited: Awaited,
    /// Since when, by the steady clock.
    since: u64,
}

/// The ticket for which a connection waits to be woken; 0 where it waits for none, as once it was woken.
pub(crate) type Awaited = Rc<Cell<Ticket>>;

/// See the module.
pub(crate) struct Worker {
    pub(crate) shared: Arc<Shared>,
    settings: RefCell<Arc<Settings>>,
    /// How often they have changed.
    generation: Cell<u64>,
    recorder: RefCell<Recorder>,
    durable: Arc<Durable>,
    /// Room for what is read, until the session has taken it.
    room: RefCell<Box<[u8]>>,
    /// Who waits until so many entries are durable.
    waiting: RefCell<Vec<Waiting>>,
    /// How long they waited.
    waits: Arc<Histogram>,
    delay: Arc<CommitDelay>,
    /// Has something to say: more is durable, or somebody waits for it.
    changed: Arc<Notify>,
    /// Who waits for memory of the log.
    paused: RefCell<Vec<Waker>>,
    /// Which time it is, from 1 on, that the log has none.
    wants: Cell<u64>,
    /// Has something to say: the log does not take everything.
    retry: Notify,
    /// Whether a defect has ended what all its connections need.
    is_defective: Cell<bool>,
}

impl Worker {
    /// With these settings, which records with `recorder`. The recorder has `changed` notified.
    pub(crate) fn new(
        shared: Arc<Shared>,
        settings: Arc<Settings>,
        recorder: Recorder,
        delay: Arc<CommitDelay>,
        changed: Arc<Notify>,
        waits: Arc<Histogram>,
    ) -> Self {
        Worker {
            shared,
            settings: RefCell::new(settings),
            generation: Cell::new(0),
            durable: recorder.durable().clone(),
            recorder: RefCell::new(recorder),
            room: RefCell::new(vec![0; READ].into_boxed_slice()),
            waiting: RefCell::default(),
            waits,
            delay,
            changed,
            paused: RefCell::default(),
            wants: Cell::new(1),
            retry: Notify::new(),
            is_defective: Cell::new(false),
        }
    }

    /// The settings at present.
    pub(crate) fn settings(&self) -> Arc<Settings> {
        self.settings.borrow().clone()
    }

    /// From now on these are the settings, for entries at once.
    pub(crate) fn adopt(&self, settings: Arc<Settings>) {
        self.recorder().adopt(settings.recording.clone());
        *self.settings.borrow_mut() = settings;
        self.generation.set(self.generation.get() + 1);
    }

    /// Lets go of a log that has failed for good, or records in another one.
    pub(crate) fn renew(&self, renewal: Renewal) {
        self.recorder().renew(renewal);
        // Whoever waits looks what became of that.
        self.changed.notify_one();
        self.request_retry();
    }

    /// A defect has ended what all its connections need.
    pub(crate) fn set_defective(&self) {
        self.is_defective.set(true);
    }

    /// Whether that is so.
    pub(crate) fn is_defective(&self) -> bool {
        self.is_defective.get()
    }

    /// Which settings these are: another number with every change.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.get()
    }

    /// A steady clock's nanoseconds.
    pub(crate) fn now(&self) -> u64 {
        self.shared.clock.steady()
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    pub(crate) fn recorder(&self) -> RefMut<'_, Recorder> {
        self.recorder.borrow_mut()
    }

    /// The recorder, for what came just now.
    pub(crate) fn recorder_now(&self) -> RefMut<'_, Recorder> {
        let mut recorder = self.recorder();
        recorder.go_on();
        recorder
    }

    pub(crate) fn room(&self) -> RefMut<'_, Box<[u8]>> {
        self.room.borrow_mut()
    }

    /// Up to which ticket whatever waits may go on, but for what was lost: as far as entries are durable, or where nothing waits for
    /// that, as far as the log has taken them. Without end where the log takes nothing, and commands may pass without.
    pub(crate) fn released(&self) -> Ticket {
        let (settings, recorder) = (self.settings.borrow(), self.recorder.borrow());
        match (settings.unrecordable, settings.context.mode) {
            (Unrecordable::Pass, _) if !recorder.is_taking() => Ticket::MAX,
            (_, Mode::Async) => recorder.taken(),
            (_, Mode::BeforeReply | Mode::BeforeSend) => self.durable.ticket(),
        }
    }

    /// The same for something that waits for the tickets from `first` on: no further than to one that was lost.
    pub(crate) fn released_for(&self, first: Option<Ticket>, released: Ticket) -> Ticket {
        let lost =
            first.filter(|_| self.heeds_losses()).and_then(|first| self.durable.losses().first_from(first));
        lost.map_or(released, |lost| released.min(lost - 1))
    }

    /// Up to which ticket entries are durable, but for what was lost.
    pub(crate) fn durable_up_to(&self) -> Ticket {
        self.durable.ticket()
    }

    /// Whether the entry that is waited for was lost, and may not be.
    pub(crate) fn has_lost(&self, ticket: Ticket) -> bool {
        self.heeds_losses() && self.durable.losses().has(ticket)
    }

    fn heeds_losses(&self) -> bool {
        self.durable.losses().count() > 0 && self.settings.borrow().unrecordable == Unrecordable::Refuse
    }

    /// Whether entries wait for memory of the log, so that nothing may come that makes more.
    pub(crate) fn is_full(&self) -> bool {
        self.recorder.borrow().is_full()
    }

    /// Whether something is to be tried again ([`Worker::retry`]).
    pub(crate) fn has_to_retry(&self) -> bool {
        self.recorder.borrow().has_to_retry()
    }

    /// Wakes somebody once the log has memory again. `known` is the time of want for which it is known already.
    pub(crate) fn wake_when_not_full(&self, waker: &Waker, known: &mut u64) {
        if *known != self.wants.get() {
            *known = self.wants.get();
            self.paused.borrow_mut().push(waker.clone());
        }
    }

    /// Says that something may have to be tried again.
    pub(crate) fn request_retry(&self) {
        if self.has_to_retry() {
            self.retry.notify_one();
        }
    }

    /// Tries again what the log did not take, as long as that is so. Never ends.
    pub(crate) async fn retry(self: Rc<Self>) {
        loop {
            self.retry.notified().await;
            while self.has_to_retry() {
                tokio::time::sleep(if self.is_full() { FULL } else { TAKES_NOTHING }).await;
                self.recorder().try_again();
                if !self.is_full() {
                    self.wants.set(self.wants.get() + 1);
                    self.paused.take().into_iter().for_each(Waker::wake);
                }
                self.changed.notify_one();
            }
        }
    }

    /// Has the log take what it takes, for a worker that ends.
    pub(crate) fn finish(&self) {
        self.recorder().finish();
    }

    /// Wakes a connection once so many entries are durable, unless it waits for that already, and sees to it that they become so.
    pub(crate) fn wake_at(&self, ticket: Ticket, awaited: &Awaited, waker: &Waker) {
        if awaited.replace(ticket) == ticket {
            return;
        }
        let (awaited, waker, since) = (awaited.clone(), waker.clone(), self.now());
        self.waiting.borrow_mut().push(Waiting { ticket, waker, awaited, since });
        self.delay.wait();
        self.changed.notify_one();
    }

    /// Wakes those who wait, and sends what they wait for on its way. Never ends.
    pub(crate) async fn tell_durable(self: Rc<Self>) {
        // When the last group went on its way, how long it took, and until when the next one is delayed.
        let (mut sent, mut took, mut until) = (None, 0, None::<Instant>);
        loop {
            let late = match until {
                None => {
                    self.changed.notified().await;
                    false
                }
                Some(until) => tokio::time::timeout_at(until, self.changed.notified()).await.is_err(),
            };
            // Those who are ready to record more come first: one sync serves them, too.
            tokio::task::yield_now().await;
            if !self.durable.is_on_its_way()
                && let Some(sent) = sent.take()
            {
                took = self.now().saturating_sub(sent);
            }
            self.recorder().look_at_failures();
            self.request_retry();
            self.wake();
            if self.waiting.borrow().is_empty() || self.durable.is_on_its_way() {
                until = None;
            } else if late || took < FAST || self.delay.is_complete() {
                (sent, until) = (Some(self.now()), None);
                self.recorder().flush();
            } else if until.is_none() {
                until = Some(Instant::now() + Duration::from_nanos(took / 2));
            }
        }
    }

    /// Wakes those whose wait is over.
    fn wake(&self) {
        let released = self.released();
        let mut waiting = self.waiting.borrow_mut();
        let before = waiting.len();
        let now = self.now();
        waiting.retain(|Waiting { ticket, waker, awaited, since }| {
            let waits = *ticket > released && !self.has_lost(*ticket);
            if !waits {
                self.waits.observe(Duration::from_nanos(now.saturating_sub(*since)));
                // What is awaited may have to be awaited again, where the log took nothing for a while.
                if awaited.get() == *ticket {
                    awaited.set(0);
                }
                waker.wake_by_ref();
            }
            waits
        });
        if waiting.len() < before {
            self.delay.release(before - waiting.len());
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Nobody else waits for those of a worker that is no more.
        self.delay.release(self.waiting.borrow().len());
    }
}

#[cfg(test)]
mod tests;

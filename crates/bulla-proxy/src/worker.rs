//! [`Worker`]: what the connections of one thread have in common.
//!
//! Each worker has a recorder of its own, and a task that wakes whoever waits for entries to be durable: replies of many
//! connections wait for one sync.

use crate::config::{Unrecordable, Upstream};
use crate::counters::Counters;
use crate::recorder::{Durable, Recorder};
use crate::session::{self, Ticket};
use bulla::environment::Clock;
use std::cell::{RefCell, RefMut};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;
use tokio::sync::Notify;

/// So many bytes are read at once.
const READ: usize = 64 << 10;

/// What all workers have in common.
pub(crate) struct Shared {
    pub(crate) upstream: Upstream,
    pub(crate) connect_timeout: Duration,
    pub(crate) idle_timeout: Option<Duration>,
    pub(crate) drain_timeout: Duration,
    pub(crate) unrecordable: Unrecordable,
    pub(crate) counters: Arc<Counters>,
    pub(crate) clock: Arc<dyn Clock>,
}

/// See the module.
pub(crate) struct Worker {
    pub(crate) shared: Arc<Shared>,
    pub(crate) context: Rc<session::Context>,
    recorder: RefCell<Recorder>,
    durable: Arc<Durable>,
    /// Room for what is read, until the session has taken it.
    room: RefCell<Box<[u8]>>,
    /// Who waits until so many entries are durable.
    waiting: RefCell<Vec<(Ticket, Waker)>>,
    /// Has something to say: more is durable, or somebody waits for it.
    changed: Arc<Notify>,
}

impl Worker {
    /// Of this context, which records with `recorder`. The recorder has `changed` notified.
    pub(crate) fn new(
        shared: Arc<Shared>,
        context: session::Context,
        recorder: Recorder,
        changed: Arc<Notify>,
    ) -> Self {
        Worker {
            shared,
            context: Rc::new(context),
            durable: recorder.durable().clone(),
            recorder: RefCell::new(recorder),
            room: RefCell::new(vec![0; READ].into_boxed_slice()),
            waiting: RefCell::default(),
            changed,
        }
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

    pub(crate) fn room(&self) -> RefMut<'_, Box<[u8]>> {
        self.room.borrow_mut()
    }

    /// How many entries are durable, or as good as that: where the log has failed, and commands may pass without.
    pub(crate) fn durable(&self) -> Ticket {
        match self.shared.unrecordable {
            Unrecordable::Pass if self.durable.has_failed() => Ticket::MAX,
            _ => self.durable.ticket(),
        }
    }

    /// Whether what is waited for will never be durable.
    pub(crate) fn has_failed(&self) -> bool {
        self.durable.has_failed()
    }

    /// Wakes somebody once so many entries are durable, and sees to it that they become so.
    pub(crate) fn wake_at(&self, ticket: Ticket, waker: &Waker) {
        self.waiting.borrow_mut().push((ticket, waker.clone()));
        self.changed.notify_one();
    }

    /// Wakes those who wait, and sends what they wait for on its way. Never ends.
    pub(crate) async fn tell_durable(self: Rc<Self>) {
        loop {
            self.changed.notified().await;
            // Those who are ready to record more come first: one sync serves them, too.
            tokio::task::yield_now().await;
            let durable = if self.has_failed() { Ticket::MAX } else { self.durable() };
            self.waiting.borrow_mut().retain(|(ticket, waker)| {
                let waits = *ticket > durable;
                if !waits {
                    waker.wake_by_ref();
                }
                waits
            });
            if !self.waiting.borrow().is_empty() {
                self.recorder().flush();
            }
        }
    }
}

//! [`Post`]: a thread that serves clients, whatever becomes of its worker.
//!
//! A worker that a defect ended is followed by another one, which serves those who come from then on, and tells of what is missing.

use crate::clients::{self, Client};
use crate::defect::caught;
use crate::ending::Ending;
use crate::metrics::Histogram;
use crate::recorder::{Recorder, Renewal};
use crate::reopening::Current;
use crate::settings::Settings;
use crate::worker::{CommitDelay, Shared, Worker};
use bulla::Producer;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::LocalSet;

/// So long after a worker has ended by a defect there is another one: whatever it does again by itself, it does not do all the time.
const PAUSE: Duration = Duration::from_millis(100);

/// See the module.
pub(crate) struct Post {
    pub(crate) shared: Arc<Shared>,
    pub(crate) runtime: Runtime,
    pub(crate) clients: mpsc::UnboundedReceiver<Client>,
    pub(crate) settings: watch::Receiver<Arc<Settings>>,
    pub(crate) stopped: watch::Receiver<Ending>,
    /// The log, whichever it is.
    pub(crate) log: Arc<Current>,
    /// What becomes of the producer of its worker.
    pub(crate) renewals: mpsc::UnboundedReceiver<Renewal>,
    /// Has its worker send what it has.
    pub(crate) changed: Arc<Notify>,
    pub(crate) delay: Arc<CommitDelay>,
    pub(crate) waits: Arc<Histogram>,
}

impl Post {
    /// Serves clients until no more can come and none is left. `producer` is for the first worker.
    pub(crate) fn hold(mut self, producer: Producer) {
        let mut producer = Some(producer);
        while !self.work(producer) {
            self.runtime.block_on(async { tokio::time::sleep(PAUSE).await });
            // Where the log is gone, another may come.
            producer = self.log.producers().producer().ok();
        }
    }

    /// Has a worker serve clients; whether it came to its end.
    fn work(&mut self, producer: Option<Producer>) -> bool {
        let Post { shared, runtime, clients, renewals, settings, stopped, changed, delay, waits, .. } = self;
        let (nudge, current) = (changed.clone(), settings.borrow_and_update().clone());
        let (recording, clock) = (current.recording.clone(), shared.clock.clone());
        let recorder = Recorder::new(producer, recording, clock, move || nudge.notify_one());
        let (delay, waits) = (delay.clone(), waits.clone());
        let worker = Worker::new(shared.clone(), current, recorder, delay, changed.clone(), waits);
        let serving = clients::run(worker, (clients, renewals), settings.clone(), stopped.clone());
        match caught(|| LocalSet::new().block_on(runtime, serving)) {
            Ok(done) => done.is_ok(),
            Err(_) => {
                shared.failed("a thread that serves clients");
                false
            }
        }
    }
}

//! [`Reopening`]: has the log opened again that has failed for good, and all who record record in it.
//!
//! Invariants: whoever records lets go of the log before it is opened again, and says what it has not told of; the first entry that the log
//! is given then says how many that are, of all of them.

use crate::defect::caught;
use crate::ending::Ending;
use crate::keeper::{Renewal as OfKeeper, forgetting};
use crate::logs::Logs;
use crate::recorder::Renewal;
use crate::subject::Learned;
use crate::warnings::Kind;
use crate::worker::Shared;
use bulla::{Entry, Error, Log, Producers, Result, Watch};
use std::sync::mpsc::Sender;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, watch};

/// It is looked so often whether the log has failed.
const LOOK: Duration = Duration::from_millis(200);
/// So long after that it is opened again, and then after twice as long each time, but for the last.
const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);
/// So long a worker may take to let go of the log.
const PATIENCE: Duration = Duration::from_secs(10);

/// By what whoever makes producers or looks at the log does so, whichever it is at present.
pub(crate) struct Current(RwLock<(Watch, Producers)>);

impl Current {
    pub(crate) fn new(log: &Log) -> Current {
        Current(RwLock::new((log.watch(), log.producers())))
    }

    pub(crate) fn watch(&self) -> Watch {
        self.0.read().unwrap_or_else(PoisonError::into_inner).0.clone()
    }

    pub(crate) fn producers(&self) -> Producers {
        self.0.read().unwrap_or_else(PoisonError::into_inner).1.clone()
    }

    fn set(&self, log: &Log) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = (log.watch(), log.producers());
    }
}

/// See the module.
pub(crate) struct Reopening {
    pub(crate) runtime: Runtime,
    pub(crate) logs: Arc<Logs>,
    pub(crate) current: Arc<Current>,
    pub(crate) workers: Vec<mpsc::UnboundedSender<Renewal>>,
    pub(crate) keeper: Option<Sender<OfKeeper>>,
    pub(crate) learned: Arc<Learned>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) stopped: watch::Receiver<Ending>,
}

impl Reopening {
    /// Does so until the proxy ends.
    pub(crate) fn run(mut self) {
        while !self.ends_within(LOOK) {
            let Some(why) = self.current.watch().failure() else { continue };
            self.shared.counters.log_failed.add(1);
            let told = format!("the log has failed, and it is tried to open it again: {why}");
            self.shared.warnings.tell(Kind::LogFailed, &told);
            if !self.open_again() {
                return;
            }
            self.shared.counters.log_failed.subtract(1);
            self.shared.counters.log_reopened.add(1);
            self.shared.warnings.tell(
                Kind::LogReopened,
                "the log takes entries again, and an entry `gap` says what is missing",
            );
        }
    }

    /// Tries that until it has succeeded; not where the proxy is to end.
    fn open_again(&mut self) -> bool {
        let (mut distance, mut is_told) = (FIRST, false);
        loop {
            if self.ends_within(distance) {
                return false;
            }
            let opened = caught(|| self.reopen()).unwrap_or_else(|_| {
                self.shared.failed("the opening of the log");
                Err(Error::unavailable("the proxy has a defect"))
            });
            match opened {
                Ok(()) => return true,
                Err(error) if !is_told => {
                    is_told = true;
                    self.shared
                        .warnings
                        .tell(Kind::LogFailed, &format!("the log cannot be opened again yet: {error}"));
                }
                Err(_) => {}
            }
            distance = (distance * 2).min(LONGEST);
        }
    }

    fn reopen(&self) -> Result<()> {
        let (release, released) = std::sync::mpsc::channel();
        for worker in &self.workers {
            // One that has ended has let go of it.
            let _ = worker.send(Renewal::Release(release.clone()));
        }
        drop(release);
        if released.recv_timeout(PATIENCE) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            return Err(Error::unavailable(
                "a thread that records does not let go of the log that has failed",
            ));
        }
        let counters = &self.shared.counters;
        self.logs.reopen(counters, |log, lost| {
            log.when_erased(forgetting(&self.learned));
            // Before anything is told: nothing fails behind that.
            let producers = self.workers.iter().map(|_| log.producer()).collect::<Result<Vec<_>>>()?;
            let untold = counters.orphaned.take();
            tell(log, untold, lost).inspect_err(|_| counters.orphaned.add(untold))?;
            counters.recorded.add(1);
            counters.untold.subtract(untold);
            self.current.set(log);
            self.keep_in(log);
            for (worker, producer) in self.workers.iter().zip(producers) {
                let _ = worker.send(Renewal::Have(producer));
            }
            Ok(())
        })
    }

    /// Has what values teach kept in this log from now on.
    fn keep_in(&self, log: &Log) {
        let Some(keeper) = &self.keeper else { return };
        let renewed = log.personal_records().map(|records| {
            if let Some(records) = records {
                let is_somebody_erased = log.resumed_erasure().is_some();
                // Its thread is there as long as this.
                let _ = keeper.send(OfKeeper { records, is_somebody_erased });
            }
        });
        if let Err(error) = renewed {
            self.shared.counters.unkept.add(1);
            let told = || {
                format!("what values teach cannot be written down, and would be lost with the proxy: {error}")
            };
            self.shared.warnings.once(Kind::Unkept, told);
        }
    }

    /// Waits so long; whether the proxy is to end before that.
    fn ends_within(&mut self, time: Duration) -> bool {
        let Reopening { runtime, stopped, .. } = self;
        runtime
            .block_on(async { tokio::time::timeout(time, stopped.wait_for(Ending::has_begun)).await.is_ok() })
    }
}

/// Has the log tell how much is missing, before anything else.
fn tell(log: &Log, untold: u64, lost: u64) -> Result<()> {
    let payload = format!("{{\"unrecorded\":{untold},\"lost_at_most\":{lost}}}");
    let mut producer = log.producer()?;
    producer.append(&Entry { operation: "gap", payload: Some(payload.as_bytes()), ..Entry::default() })?;
    producer.flush()?.durable()
}

//! [`Renewal`]: a log that has failed for good, and another one in its place.

use super::Recorder;
use bulla::{Error, Producer};
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;

/// What a recorder is to do with its producer.
pub(crate) enum Renewal {
    /// To let go of it. Whoever waits for that hears of it by this being dropped.
    Release(Sender<()>),
    /// To have this one.
    Have(Producer),
}

impl Recorder {
    /// Does what it is to do.
    pub(crate) fn renew(&mut self, renewal: Renewal) {
        match renewal {
            Renewal::Release(released) => {
                self.release();
                drop(released);
            }
            Renewal::Have(producer) => self.have(producer),
        }
    }

    /// Lets go of the log, which has failed for good. What is not told of, whoever opens it again tells.
    fn release(&mut self) {
        if self.is_full() {
            self.give_up(&Error::unavailable("the log has failed"));
        }
        let Recorder { recording, durable, log, .. } = self;
        let counters = &recording.counters;
        log.producer = None;
        log.stop_taking(counters);
        durable.losses.note(durable.ticket(), log.recorded);
        self.flushed = log.recorded;
        counters
            .orphaned
            .add(log.missing.take().unwrap_or(0) + durable.told_in_vain.swap(0, Ordering::AcqRel));
    }

    /// Records in another log from now on, once it has let go of the one that it had.
    fn have(&mut self, producer: Producer) {
        if self.log.producer.is_some() {
            // It was begun with one of that log.
            return;
        }
        let Recorder { recording, durable, log, failures_seen, .. } = self;
        log.patience = patience(&producer);
        log.producer = Some(producer);
        // What was under way to the other one is lost, and noted.
        durable.ticket.fetch_max(log.recorded, Ordering::AcqRel);
        durable.on_its_way.store(false, Ordering::Release);
        *failures_seen = durable.failures.load(Ordering::Acquire);
        // That it takes entries again has not to be found out.
        log.missing = log.missing.filter(|missing| *missing > 0);
        if !std::mem::replace(&mut log.takes, true) {
            recording.counters.taking_nothing.subtract(1);
        }
    }
}

/// How long a log may have no memory, in nanoseconds.
pub(super) fn patience(producer: &Producer) -> u64 {
    u64::try_from(producer.append_timeout().as_nanos()).unwrap_or(u64::MAX)
}

//! [`Missing`]: what the log of a proxy that ends does not tell, and telling it.
//!
//! A log that failed takes nothing more until it is opened again. So it is opened once more, for the one entry that says how much
//! is missing; where that fails, too, whoever reads standard error is told.

use bulla::text::spelling::{agreeing, counted};
use bulla::{Entry, Log};

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(super) struct Missing {
    /// Operations that the log did not take, and of which no `gap` tells.
    pub(super) untold: u64,
    /// Entries that it took and that were not durable when it failed. Some may be all the same.
    pub(super) lost_at_most: u64,
}

impl Missing {
    /// Has the log tell, once `open` has opened it again, and says how that went. What it does not tell, even so.
    pub(super) fn tell(mut self, open: impl FnOnce() -> bulla::Result<Log>) -> Missing {
        let Missing { untold, lost_at_most } = self;
        if untold == 0 && lost_at_most == 0 {
            return self;
        }
        let what = format!(
            "{} {} not recorded, and of the last entries up to {lost_at_most} {} lost",
            counted(untold, "operation"),
            agreeing(untold, "was", "were"),
            agreeing(lost_at_most, "is", "are")
        );
        match open().and_then(|log| append(log, self)) {
            Ok(()) => {
                note!("{what}: the log takes entries again, and an entry `gap` says so");
                self = Missing { untold: 0, lost_at_most: 0 };
            }
            Err(error) => note!("{what}, and the log does not say so: {error}"),
        }
        self
    }
}

fn append(log: Log, missing: Missing) -> bulla::Result<()> {
    let Missing { untold, lost_at_most } = missing;
    let payload = format!("{{\"unrecorded\":{untold},\"lost_at_most\":{lost_at_most}}}");
    let mut producer = log.producer()?;
    producer.append(&Entry { operation: "gap", payload: Some(payload.as_bytes()), ..Entry::default() })?;
    drop(producer);
    log.close()
}

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
        let Some(what) = self.in_words() else { return self };
        match open().and_then(|log| append(log, self)) {
            Ok(()) => {
                note!("{what}: the log takes entries again, and an entry `gap` says so");
                self = Missing { untold: 0, lost_at_most: 0 };
            }
            Err(error) => note!("{what}, and the log does not say so: {error}"),
        }
        self
    }

    /// What is missing, where anything is.
    fn in_words(self) -> Option<String> {
        let Missing { untold, lost_at_most } = self;
        let unrecorded =
            format!("{} {} not recorded", counted(untold, "operation"), agreeing(untold, "was", "were"));
        let lost =
            format!("of the last entries up to {lost_at_most} {} lost", agreeing(lost_at_most, "is", "are"));
        match (untold, lost_at_most) {
            (0, 0) => None,
            (0, _) => Some(lost),
            (_, 0) => Some(unrecorded),
            _ => Some(format!("{unrecorded}, and {lost}")),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_missing_is_not_told_of() {
        for (untold, lost_at_most, expected) in [
            (0, 0, None),
            (1, 0, Some("1 operation was not recorded")),
            (0, 200, Some("of the last entries up to 200 are lost")),
            (2, 1, Some("2 operations were not recorded, and of the last entries up to 1 is lost")),
        ] {
            assert_eq!(Missing { untold, lost_at_most }.in_words().as_deref(), expected);
        }
    }
}

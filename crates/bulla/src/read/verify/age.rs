//! How new the newest signature has to be of a log that promises a heartbeat.

use crate::format::options::format_age;
use crate::scan::finding::{Finding, FindingKind};
use bulla_store::{Error, Result};
use std::time::Duration;

/// How old the newest signature may be, and how old it is.
pub(super) struct Age {
    pub(super) age: Duration,
    /// In seconds.
    pub(super) time: Option<i64>,
    /// In nanoseconds.
    pub(super) now: i64,
}

impl Age {
    /// What there is to tell, where it is too old for a log that promises a heartbeat.
    pub(super) fn judge(&self, heartbeat: Option<Duration>) -> Result<Option<Finding>> {
        let Some(heartbeat) = heartbeat else {
            return Err(Error::invalid(
                "the log promises no heartbeat (`log.heartbeat`), so an old signature may only mean that nothing happened: \
                 how new it is cannot be asked",
            ));
        };
        if self.age <= heartbeat {
            return Err(Error::invalid(format!(
                "the log promises a heartbeat every {}: ask for a signature that is newer than a longer time",
                format_age(heartbeat)
            )));
        }
        let age = i64::try_from(self.age.as_secs()).unwrap_or(i64::MAX);
        let passed = self.time.map(|time| self.now.div_euclid(1_000_000_000).saturating_sub(time));
        let detail = match passed {
            // Whose clock is wrong is not known; a signature from the future says nothing of now.
            Some(passed) if passed < -age => {
                format!("the newest epoch or event that is signed is {} s in the future", -passed)
            }
            Some(passed) if passed > age => format!(
                "the newest epoch or event that is signed is {passed} s old, and the log promises one every {}",
                format_age(heartbeat)
            ),
            Some(_) => return Ok(None),
            None => "no epoch or event is signed".to_owned(),
        };
        Ok(Some(Finding::new(FindingKind::Stale, detail)))
    }
}

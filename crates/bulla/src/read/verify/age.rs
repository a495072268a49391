//! How new the newest signature has to be of a log that promises a heartbeat, and the newest of its witnesses.

use crate::format::options::format_age;
use crate::scan::finding::{Finding, FindingKind};
use bulla_store::{Error, Result};
use std::time::Duration;

/// How old the newest signature may be, and how old it is.
pub(super) struct Age {
    pub(super) age: Duration,
    /// In seconds.
    pub(super) time: Option<i64>,
    /// In seconds, since when as many witnesses have cosigned the log as a policy asks for; nothing where none does.
    pub(super) witnessed: Option<u64>,
    /// In nanoseconds.
    pub(super) now: i64,
}

impl Age {
    /// What there is to tell, where it is too old for a log that promises a heartbeat, of which each witness is asked to cosign.
    pub(super) fn judge(&self, heartbeat: Option<Duration>) -> Result<Vec<Finding>> {
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
        let now = self.now.div_euclid(1_000_000_000);
        let passed = self.time.map(|time| now.saturating_sub(time));
        let signed = match passed {
            // Whose clock is wrong is not known; a signature from the future says nothing of now.
            Some(passed) if passed < -age => {
                Some(format!("the newest epoch or event that is signed is {} s in the future", -passed))
            }
            Some(passed) if passed > age => Some(format!(
                "the newest epoch or event that is signed is {passed} s old, and the log promises one every {}",
                format_age(heartbeat)
            )),
            Some(_) => None,
            None => Some("no epoch or event is signed".to_owned()),
        };
        // By the clocks of others, which may be wrong as well; one who states no time says nothing of now.
        let witnessed = self.witnessed.and_then(|time| match i64::try_from(time).map(|time| now.saturating_sub(time)) {
            Ok(passed) if time > 0 && passed < -age => {
                Some(format!("what as many witnesses as the policy asks for have cosigned, they did {} s in the future", -passed))
            }
            Ok(passed) if time > 0 && passed <= age => None,
            Ok(passed) if time > 0 => Some(format!(
                "what as many witnesses as the policy asks for have cosigned, they did {passed} s ago: they are not asked, do not answer, or \
                 refuse what follows"
            )),
            _ => Some("the witnesses that the policy asks for state no time".to_owned()),
        });
        Ok(signed
            .into_iter()
            .chain(witnessed)
            .map(|detail| Finding::new(FindingKind::Stale, detail))
            .collect())
    }
}

//! [`Terms`]: what becomes of a line before it is appended.

use bulla::Entry;
use bulla_ingest::convert::Conversion;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// What becomes of a line, and of its entry, before it is appended.
#[derive(Debug)]
pub(super) struct Terms {
    pub(super) conversion: Arc<Conversion>,
    pub(super) stream: Option<String>,
    pub(super) subject_from: Option<SubjectFrom>,
}

impl Terms {
    pub(super) fn complete<'a>(&'a self, entry: &mut Entry<'a>) -> Result<(), String> {
        entry.stream = entry.stream.or(self.stream.as_deref());
        if let (None, Some(field)) = (&entry.subjects, self.subject_from) {
            entry.subjects = field.of(entry)?.map(|subject| [subject].into_iter().collect());
        }
        Ok(())
    }
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
pub(super) enum SubjectFrom {
    Client,
    Actor,
    Location,
    Controller,
    Processor,
    Purpose,
    Stream,
}

impl SubjectFrom {
    fn of<'a>(self, entry: &Entry<'a>) -> Result<Option<&'a str>, String> {
        Ok(match self {
            SubjectFrom::Client => entry.client,
            SubjectFrom::Actor => entry.actor,
            SubjectFrom::Controller => entry.controller,
            SubjectFrom::Processor => entry.processor,
            SubjectFrom::Purpose => entry.purpose,
            SubjectFrom::Stream => entry.stream,
            SubjectFrom::Location => {
                let location = entry.location.map(std::str::from_utf8).transpose();
                // Without its data subject the entry could not be found for them, nor erased.
                location
                    .map_err(|_| "`location` is not UTF-8, so it cannot be the data subject".to_owned())?
            }
        })
    }
}

/// The time, in nanoseconds since the epoch.
pub(super) fn now() -> i64 {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

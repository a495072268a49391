//! [`State`]: what the log has said of batches.

use crate::socket::wire::Acknowledgement;
use bulla_store::{Error, ErrorKind, Result};
use std::sync::{Arc, OnceLock};

/// Batches of which some entries were refused and that are remembered one by one.
const REMEMBERED: usize = 64;

/// Why nothing more will be acknowledged: what was found out first.
pub(super) type Failure = OnceLock<(ErrorKind, String)>;

pub(super) fn error_of((kind, message): &(ErrorKind, String)) -> Error {
    Error::new(*kind, message.clone())
}

/// What the log has said.
#[derive(Default)]
pub(super) struct State {
    pub(super) acknowledged: u64,
    pub(super) failure: Arc<Failure>,
    refused: Vec<RefusedBatches>,
    pub(super) tells: Vec<Tell>,
    /// Whether the connection's thread is telling what is known of some.
    pub(super) is_telling: bool,
}

/// How many entries were refused, and why the first was.
pub(super) struct Refused {
    entries: u64,
    reason: String,
}

impl Refused {
    fn into_error(self) -> Error {
        let Refused { entries, reason } = self;
        let text = if entries == 1 { "an entry was".to_owned() } else { format!("{entries} entries were") };
        Error::invalid(format!("{text} refused, the others are durable: {reason}"))
    }
}

/// What is not durable of producers that have come to their end: for whoever closes their connection.
#[derive(Default)]
pub(super) struct NotDurable {
    /// Why it is not known of some entries that they are: the first failure.
    failure: Option<Error>,
    refused: Option<Refused>,
}

impl NotDurable {
    /// Adds what came of one producer.
    pub(super) fn add(&mut self, failed: Result<()>, refused: Option<Refused>) {
        if let Err(error) = failed {
            self.failure.get_or_insert(error);
        }
        match (&mut self.refused, refused) {
            (Some(all), Some(refused)) => all.entries += refused.entries,
            (None, refused) => self.refused = refused,
            (Some(_), None) => {}
        }
    }

    /// What is to be said of all of them. Where one failed, nothing is said of the others' being durable.
    pub(super) fn into_result(self) -> Result<()> {
        match (self.failure, self.refused) {
            (Some(failure), _) => Err(failure),
            (None, Some(refused)) => Err(refused.into_error()),
            (None, None) => Ok(()),
        }
    }
}

/// Batches from the first to the last of which so many entries were refused, and why the first was.
struct RefusedBatches {
    first: u64,
    last: u64,
    entries: u64,
    reason: String,
}

pub(super) struct Tell {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) tell: Box<dyn FnOnce(Result<()>) + Send>,
}

impl State {
    /// What of batches behind `from` up to `to` was refused.
    pub(super) fn refused(&self, from: u64, to: u64) -> Option<Refused> {
        let mut those =
            self.refused.iter().filter(|refused| refused.last > from && refused.first <= to).peekable();
        let reason = those.peek()?.reason.clone();
        let entries = those.map(|refused| refused.entries).sum::<u64>();
        Some(Refused { entries, reason })
    }

    /// What is to be said of batches behind `from` up to `to`, of which entries were refused.
    pub(super) fn refusal(&self, from: u64, to: u64) -> Option<Error> {
        self.refused(from, to).map(Refused::into_error)
    }

    /// What came of the batches behind `from` up to `to`, where that is known.
    pub(super) fn outcome(&self, from: u64, to: u64) -> Option<Result<()>> {
        if self.acknowledged >= to {
            return Some(self.refusal(from, to).map_or(Ok(()), Err));
        }
        self.failure.get().map(|failure| Err(error_of(failure)))
    }

    pub(super) fn take(&mut self, acknowledgement: Acknowledgement) {
        if let Some(failure) = acknowledgement.error {
            let error = failure.into_error();
            let _ = self.failure.set((error.kind(), error.to_string()));
            return;
        }
        self.acknowledged = acknowledgement.batch;
        if acknowledgement.refused > 0 {
            let (first, entries) = (acknowledgement.batch, acknowledgement.refused);
            let reason =
                acknowledgement.reasons.into_iter().next().map_or(String::new(), |first| first.reason);
            self.refused.push(RefusedBatches { first, last: first, entries, reason });
            if self.refused.len() > REMEMBERED {
                // Whoever asks of one of these is told of both: of neither would not be true.
                let second = self.refused.remove(1);
                self.refused[0].last = second.last;
                self.refused[0].entries += second.entries;
            }
        }
    }
}

//! Where a producer appends: the log is this process's, or another's.

use crate::receipt::Receipted;
use bulla::socket::RemoteProducer;
use bulla::{BatchError, Entry};

/// Where a producer appends.
pub(crate) enum Way {
    Here(bulla::Producer),
    Elsewhere(RemoteProducer),
}

impl Way {
    pub(crate) fn append(&mut self, entry: &Entry<'_>) -> bulla::Result<()> {
        match self {
            Way::Here(producer) => producer.append(entry),
            Way::Elsewhere(producer) => producer.append(entry),
        }
    }

    pub(crate) fn try_append(&mut self, entry: &Entry<'_>) -> bulla::Result<()> {
        match self {
            Way::Here(producer) => producer.try_append(entry),
            Way::Elsewhere(producer) => producer.try_append(entry),
        }
    }

    pub(crate) fn append_batch(&mut self, entries: &[Entry<'_>]) -> Result<(), BatchError> {
        match self {
            Way::Here(producer) => producer.append_batch(entries),
            Way::Elsewhere(producer) => producer.append_batch(entries),
        }
    }

    pub(crate) fn flush(&mut self) -> bulla::Result<Receipted> {
        Ok(match self {
            Way::Here(producer) => Receipted::Here(producer.flush()?),
            Way::Elsewhere(producer) => Receipted::Elsewhere(producer.flush()?),
        })
    }
}

//! A producer: one thread's way into a log.

use crate::entry::{bulla_entry, list};
use crate::handles::{Table, number, to_handle};
use crate::receipt::{self, Receipted, bulla_receipt};
use crate::status::{Failed, bulla_status, give, guarded};
use bulla::socket::RemoteProducer;
use bulla::{BatchError, Entry, Error, Producer};

/// One thread's way into a log. Its entries keep their order. Two threads must not use it at once: one of them is refused.
pub struct bulla_producer {
    _opaque: [u8; 0],
}

/// Where a producer appends.
pub(crate) enum Way {
    Here(Producer),
    Elsewhere(RemoteProducer),
}

impl Way {
    fn append(&mut self, entry: &Entry<'_>) -> bulla::Result<()> {
        match self {
            Way::Here(producer) => producer.append(entry),
            Way::Elsewhere(producer) => producer.append(entry),
        }
    }

    fn try_append(&mut self, entry: &Entry<'_>) -> bulla::Result<()> {
        match self {
            Way::Here(producer) => producer.try_append(entry),
            Way::Elsewhere(producer) => producer.try_append(entry),
        }
    }

    fn append_batch(&mut self, entries: &[Entry<'_>]) -> Result<(), BatchError> {
        match self {
            Way::Here(producer) => producer.append_batch(entries),
            Way::Elsewhere(producer) => producer.append_batch(entries),
        }
    }
}

static PRODUCERS: Table<Way> = Table::new("producer", 2);

pub(crate) fn add(way: Way) -> *mut bulla_producer {
    to_handle(PRODUCERS.add(way))
}

/// Stages an entry: copies it. Where the memory for entries is full it waits, as long as `append_timeout` says, but not in what
/// `bulla_receipt_notify` calls. What it points to is not needed any more when this returns.
///
/// Returns `BULLA_INVALID` where a field breaks a limit or is not UTF-8, `BULLA_TIMEOUT` where memory stayed full, `BULLA_CLOSED` or the
/// log's failure where nothing can be appended any more. The entry is then not staged, and nothing else is affected.
///
/// # Safety
/// `entry` is an entry that nobody changes meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_append(
    producer: *mut bulla_producer,
    entry: *const bulla_entry,
) -> bulla_status {
    // SAFETY: by this function's contract, which is the same.
    unsafe { stage(producer, entry, Way::append) }
}

/// Stages an entry as `bulla_append` does, but never waits: `BULLA_TIMEOUT` at once where there is no memory, or, of a log that another
/// process has open, where that has not taken what was staged before.
///
/// # Safety
/// As `bulla_append`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_try_append(
    producer: *mut bulla_producer,
    entry: *const bulla_entry,
) -> bulla_status {
    // SAFETY: by this function's contract, which is the same.
    unsafe { stage(producer, entry, Way::try_append) }
}

/// Stages an entry in one of the two ways.
///
/// # Safety
/// As `bulla_append`.
unsafe fn stage(
    producer: *mut bulla_producer,
    entry: *const bulla_entry,
    append: impl FnOnce(&mut Way, &Entry<'_>) -> bulla::Result<()>,
) -> bulla_status {
    guarded(|| {
        let mut way = PRODUCERS.get(number(producer))?;
        // SAFETY: it is null, or an entry, by this function's contract.
        let entry = unsafe { entry.as_ref() }.ok_or_else(|| Error::invalid("`entry` is null"))?;
        // SAFETY: as above.
        let entry = unsafe { entry.get()? };
        Ok(append(&mut way, &entry)?)
    })
}

/// Stages so many entries, one after the other, at one time where they have none. `staged`, unless it is null, gets how many
/// were staged, from the first on, whatever is returned: a broken limit is found before any is.
///
/// # Safety
/// `entries` has `count` entries that nobody changes meanwhile; `staged` is null or a place for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_append_batch(
    producer: *mut bulla_producer,
    entries: *const bulla_entry,
    count: usize,
    staged: *mut usize,
) -> bulla_status {
    guarded(|| {
        let tell = |number| {
            if !staged.is_null() {
                // SAFETY: it is a place for a number, by this function's contract.
                unsafe { staged.write(number) };
            }
        };
        tell(0);
        let mut way = PRODUCERS.get(number(producer))?;
        // SAFETY: there are so many, by this function's contract.
        let given = unsafe { list(entries, count, "entries")? };
        let mut batch = Vec::with_capacity(count);
        for (index, entry) in given.iter().enumerate() {
            // SAFETY: as above.
            batch.push(unsafe { entry.get() }.map_err(|failed| of_batch(failed, index))?);
        }
        match way.append_batch(&batch) {
            Ok(()) => {
                tell(count);
                Ok(())
            }
            Err(BatchError { staged, error, .. }) => {
                tell(staged);
                Err(error.into())
            }
        }
    })
}

/// Which entry of a batch it is that cannot be taken, as where it breaks a limit.
#[cold]
fn of_batch(failed: Failed, index: usize) -> Failed {
    match failed {
        Failed::Error(error) => {
            let message = format!("entry {index} of the batch: {error}; none of it was staged");
            Error::new(error.kind(), message).into()
        }
        other => other,
    }
}

/// Has everything that this producer appended written without waiting for more. `receipt`, unless it is null, gets a receipt for it,
/// to be freed with `bulla_receipt_free`.
///
/// # Safety
/// `receipt` is null or a place for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_producer_flush(
    producer: *mut bulla_producer,
    receipt: *mut *mut bulla_receipt,
) -> bulla_status {
    guarded(|| {
        if !receipt.is_null() {
            // SAFETY: it is a place for a handle, by this function's contract.
            unsafe { give(receipt, std::ptr::null_mut(), "receipt")? };
        }
        let mut way = PRODUCERS.get(number(producer))?;
        let flushed = match &mut *way {
            Way::Here(producer) => Receipted::Here(producer.flush()?),
            Way::Elsewhere(producer) => Receipted::Elsewhere(producer.flush()?),
        };
        match receipt.is_null() {
            true => Ok(()),
            // SAFETY: as above.
            false => unsafe { give(receipt, receipt::add(flushed), "receipt") },
        }
    })
}

/// Closes a producer: what it staged is written as what any other did. The handle is gone whatever this returns, but `BULLA_IN_USE`, where
/// another thread uses it, or `BULLA_CLOSED` in a forked child: then it is as it was.
#[unsafe(no_mangle)]
pub extern "C" fn bulla_producer_close(producer: *mut bulla_producer) -> bulla_status {
    guarded(|| {
        drop(PRODUCERS.remove(number(producer))?);
        Ok(())
    })
}

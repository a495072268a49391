//! A receipt: what a flush covered, and how far it has come.

use crate::handles::{Table, number, to_handle};
use crate::status::{bulla_status, code, give, guarded, message, text};
use bulla::socket::RemoteReceipt;
use bulla::{Error, Receipt, Result};
use std::ffi::{c_char, c_void};
use std::time::Duration;

/// What a flush covered, and how far it has come. Any thread may use it.
pub struct bulla_receipt {
    _opaque: [u8; 0],
}

#[derive(Clone)]
pub(crate) enum Receipted {
    Here(Receipt),
    Elsewhere(RemoteReceipt),
}

static RECEIPTS: Table<Receipted> = Table::new("receipt", 3);

pub(crate) fn add(receipt: Receipted) -> *mut bulla_receipt {
    to_handle(RECEIPTS.add(receipt))
}

/// Waits until the entries are durable: synced to the medium, or in durability mode `os` given to the operating system. A reader gives them
/// only once a signed checkpoint covers them: `bulla_receipt_checkpointed`.
///
/// Returns the failure that keeps them from it; of a log that another process has open, `BULLA_INVALID` where that refused some, the others being durable.
#[unsafe(no_mangle)]
pub extern "C" fn bulla_receipt_wait(receipt: *mut bulla_receipt) -> bulla_status {
    guarded(|| {
        match RECEIPTS.copy(number(receipt))? {
            Receipted::Here(receipt) => receipt.durable()?,
            Receipted::Elsewhere(receipt) => receipt.durable()?,
        }
        Ok(())
    })
}

/// As `bulla_receipt_wait`, for so many milliseconds at most; `durable` gets whether that was long enough. With 0 it only looks.
///
/// # Safety
/// `durable` is a place for a truth value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_receipt_poll(
    receipt: *mut bulla_receipt,
    milliseconds: u64,
    durable: *mut bool,
) -> bulla_status {
    guarded(|| {
        // SAFETY: by this function's contract.
        unsafe { give(durable, false, "durable")? };
        let timeout = Duration::from_millis(milliseconds);
        let is_durable = match RECEIPTS.copy(number(receipt))? {
            Receipted::Here(receipt) => receipt.durable_within(timeout)?,
            Receipted::Elsewhere(receipt) => receipt.durable_within(timeout)?,
        };
        // SAFETY: as above.
        unsafe { give(durable, is_durable, "durable") }
    })
}

/// Waits until a signed checkpoint covers the entries, which is when readers give them. Of a log that another process has open nobody here can
/// tell: that one signs after `checkpoint_interval`.
#[unsafe(no_mangle)]
pub extern "C" fn bulla_receipt_checkpointed(receipt: *mut bulla_receipt) -> bulla_status {
    guarded(|| match RECEIPTS.copy(number(receipt))? {
        Receipted::Here(receipt) => Ok(receipt.checkpointed()?),
        Receipted::Elsewhere(_) => Err(Error::invalid(
            "another process has this log open, and signs it: wait for the entries to be durable",
        )
        .into()),
    })
}

/// What a receipt came to. `message` is empty where `status` is `BULLA_OK`, and gone when the callback returns.
pub type bulla_told =
    Option<unsafe extern "C" fn(context: *mut c_void, status: bulla_status, message: *const c_char)>;

/// What is told later.
struct Later(bulla_told, *mut c_void);

// SAFETY: whoever gives a callback says that any thread may call it with its context.
unsafe impl Send for Later {}

impl Later {
    fn tell(self, outcome: Result<()>) {
        let Later(told, context) = self;
        let (status, message) = match &outcome {
            Ok(()) => (bulla_status::BULLA_OK, text("")),
            Err(error) => (code(error), text(&message(error))),
        };
        if let Some(told) = told {
            // SAFETY: by the contract of `bulla_receipt_notify`.
            unsafe { told(context, status, message.as_ptr()) };
        }
    }
}

/// Has `told` called once, with what `bulla_receipt_wait` would return: by this thread where that is known already, else by a thread of the
/// library, which goes on when it returns; so it must wait for nothing of the log. It is called though the receipt be freed meanwhile. Where
/// this returns anything but `BULLA_OK` it is not called.
///
/// # Safety
/// Any thread may call `told` with `context`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bulla_receipt_notify(
    receipt: *mut bulla_receipt,
    told: bulla_told,
    context: *mut c_void,
) -> bulla_status {
    guarded(|| {
        if told.is_none() {
            return Err(Error::invalid("`told` is null").into());
        }
        let later = Later(told, context);
        match RECEIPTS.copy(number(receipt))? {
            Receipted::Here(receipt) => receipt.when_durable(move |outcome| later.tell(outcome))?,
            Receipted::Elsewhere(receipt) => receipt.when_durable(move |outcome| later.tell(outcome))?,
        }
        Ok(())
    })
}

/// Frees a receipt, also while others wait for it. What it is about becomes durable all the same. The handle is gone whatever this returns, but
/// `BULLA_CLOSED` in a forked child, or `BULLA_IN_USE`, which is tried for a moment first: then it is as it was.
#[unsafe(no_mangle)]
pub extern "C" fn bulla_receipt_free(receipt: *mut bulla_receipt) -> bulla_status {
    guarded(|| {
        drop(RECEIPTS.remove(number(receipt))?);
        Ok(())
    })
}

//! What a call came to: a code, and the message of the last one that failed.

use bulla::{Error, ErrorKind};
use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a call came to, and what the caller can do about it. `bulla_message` says in words what it was.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum bulla_status {
    /// It is done.
    BULLA_OK = 0,
    /// The input or an option is wrong, or a handle is: correct it.
    BULLA_INVALID = 1,
    /// The memory for staged entries stayed full: try again, or slow down.
    BULLA_TIMEOUT = 2,
    /// The log of this producer is closed, or the handle came along into a forked child: open it anew, or connect.
    BULLA_CLOSED = 3,
    /// Another process has the log open: connect to it with `bulla_connect`, or stop it.
    BULLA_LOCKED = 4,
    /// The environment failed (I/O, a full disk, a missing path): mend it, then open the log again.
    BULLA_UNAVAILABLE = 5,
    /// The log is not what was written: run `bulla verify`. Or a proof does not hold.
    BULLA_TAMPERED = 6,
    /// The data subject was erased: nobody can read this any more.
    BULLA_ERASED = 7,
    /// No key at hand opens this: bring the right identity.
    BULLA_NO_KEY = 8,
    /// It is not allowed, or not found.
    BULLA_REFUSED = 9,
    /// A callback of the caller returned something else than 0, which ended the call.
    BULLA_STOPPED = 10,
    /// A defect of the library. Handles of the call are not to be used any more but to close them.
    BULLA_PANICKED = 11,
    /// Another thread uses the handle just now, and only one may: it is as it was.
    BULLA_IN_USE = 12,
}

/// What a call fails with.
pub(crate) enum Failed {
    Error(Error),
    Stopped,
    /// A thing of this kind.
    InUse(&'static str),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Failed::Error(error)
    }
}

pub(crate) type Outcome<T = ()> = Result<T, Failed>;

/// The code of an error.
pub(crate) fn code(error: &Error) -> bulla_status {
    match error.kind() {
        ErrorKind::Invalid => bulla_status::BULLA_INVALID,
        ErrorKind::Timeout => bulla_status::BULLA_TIMEOUT,
        ErrorKind::Closed => bulla_status::BULLA_CLOSED,
        ErrorKind::Locked => bulla_status::BULLA_LOCKED,
        ErrorKind::Tampered => bulla_status::BULLA_TAMPERED,
        ErrorKind::Erased => bulla_status::BULLA_ERASED,
        ErrorKind::NoKey => bulla_status::BULLA_NO_KEY,
        ErrorKind::Refused => bulla_status::BULLA_REFUSED,
        _ => bulla_status::BULLA_UNAVAILABLE,
    }
}

/// The message of an error, with what a program in C would do.
pub(crate) fn message(error: &Error) -> String {
    match error.kind() {
        ErrorKind::Locked => {
            format!(
                "{error}; where that process listens (`bulla append --listen`, `bulla_listen`), `bulla_connect` reaches it"
            )
        }
        _ => error.to_string(),
    }
}

thread_local! {
    static MESSAGE: RefCell<CString> = RefCell::default();
}

/// What a call was refused or failed for that returned something else than `BULLA_OK`, the last of this thread: UTF-8, which is valid
/// until this thread calls the library again. Empty before the first.
#[unsafe(no_mangle)]
pub extern "C" fn bulla_message() -> *const c_char {
    // A thread that is ending may have none any more.
    MESSAGE.try_with(|kept| kept.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

pub(crate) fn text(message: &str) -> CString {
    CString::new(message.replace('\0', "\u{fffd}")).unwrap_or_default()
}

fn note(message: &str) {
    // A thread that is ending may have no place for it any more.
    let _ = MESSAGE.try_with(|kept| kept.replace(text(message)));
}

/// Makes the code of what a call came to. Nothing unwinds out of it.
pub(crate) fn guarded(call: impl FnOnce() -> Outcome) -> bulla_status {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => bulla_status::BULLA_OK,
        Ok(Err(Failed::Error(error))) => {
            note(&message(&error));
            code(&error)
        }
        Ok(Err(Failed::InUse(kind))) => {
            note(&format!("another thread uses this {kind} just now"));
            bulla_status::BULLA_IN_USE
        }
        Ok(Err(Failed::Stopped)) => {
            note("a callback ended the call");
            bulla_status::BULLA_STOPPED
        }
        Err(_) => {
            note("a defect of the library: it panicked");
            bulla_status::BULLA_PANICKED
        }
    }
}

/// Writes what a call gives back, which has to have a place.
///
/// # Safety
/// `place` is null, or a place for a `T`.
pub(crate) unsafe fn give<T>(place: *mut T, value: T, name: &str) -> Outcome {
    if place.is_null() {
        return Err(Error::invalid(format!("`{name}` is null")).into());
    }
    // SAFETY: it is a place for a `T`, by the contract of the function that C called.
    unsafe { place.write(value) };
    Ok(())
}

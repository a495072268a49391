//! What is told of receipts: the thread that tells is one that everybody else waits for, so whoever is told must not wait.

use bulla_store::{Error, Result};
use std::cell::Cell;

thread_local! {
    static IS_TELLING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is telling somebody of a receipt.
pub(crate) fn is_telling() -> bool {
    IS_TELLING.get()
}

/// Tells somebody of a receipt.
pub(crate) fn tell(told: impl FnOnce()) {
    /// A panic ends the telling, too.
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            IS_TELLING.set(self.0);
        }
    }
    let _before = Before(IS_TELLING.replace(true));
    told();
}

/// Refuses to wait while this thread is telling.
pub(crate) fn check_may_wait() -> Result<()> {
    match is_telling() {
        false => Ok(()),
        true => Err(Error::invalid(
            "what is told of a receipt cannot wait for what the log does, which goes on only when it returns: wait in another thread",
        )),
    }
}

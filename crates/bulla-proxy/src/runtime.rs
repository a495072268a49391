//! The runtime of one thread.

use bulla::{Error, ErrorKind, Result};
use tokio::runtime::{Builder, Runtime};

/// One more of them.
///
/// # Errors
/// `Unavailable` where there are no descriptors left for it.
pub(crate) fn new() -> Result<Runtime> {
    Builder::new_current_thread().enable_all().build().map_err(|error| {
        let message = format!("starting the proxy: {error}; look at the limit on open files (`ulimit -n`)");
        Error::new(ErrorKind::Unavailable, message)
    })
}

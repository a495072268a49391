//! Threads of the proxy, each of which is joined.
#![expect(clippy::disallowed_methods, reason = "the one place where the proxy starts threads")]

use crate::defect;
use bulla::{Error, ErrorKind, Result};
use std::thread::{Builder, JoinHandle};

/// Starts a thread of this name; `what` it is for says the error. Whatever panics in `run` is caught and told of in there.
///
/// # Errors
/// `Unavailable` where there can be no more threads.
pub(crate) fn start(name: String, what: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    let run = || {
        defect::catch_all();
        run();
    };
    Builder::new().name(name).spawn(run).map_err(|error| {
        let message =
            format!("starting a thread {what}: {error}; look at the limit on threads (`ulimit -u`)");
        Error::new(ErrorKind::Unavailable, message)
    })
}

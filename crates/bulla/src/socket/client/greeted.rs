//! [`Greeted`]: who listens there.

use crate::control::link::Link;
use crate::format::json;
use crate::socket::messages::Messages;
use crate::socket::wire::{Greeting, VERSION};
use crate::socket::{PATIENCE, listener};
use bulla_store::{Error, Result};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// The longest message that is read.
const LONGEST: usize = 64 << 10;
/// The shortest wait for a greeting: on a busy machine whoever is well may take as long.
const SHORTEST: Duration = Duration::from_secs(1);

/// A connection on which the server has said who it is.
pub(super) struct Greeted {
    pub(super) link: Link,
    pub(super) messages: Messages,
    pub(super) greeting: Greeting,
}

impl Greeted {
    pub(super) fn connect(path: &Path, timeout: Duration) -> Result<Self> {
        let mut is_gone = false;
        let deadline = Instant::now() + timeout.clamp(SHORTEST, PATIENCE);
        let link = match Link::to_listener(listener::connect(path, deadline)?) {
            Ok(link) => link,
            // It may have greeted this client before it went. Who greets the next one is another process, to which it passed its socket on.
            Err(_) => Link::to_listener(listener::connect(path, deadline)?).unwrap_or_else(|socket| {
                is_gone = true;
                Link::new(socket, None)
            }),
        };
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::TimedOut if is_gone => Error::unavailable(format!(
                "{}: what listened there is gone, and a process that it had forked off has its socket and answers nobody: end that one",
                path.display()
            )),
            _ => Error::io(format!("connecting to {}", path.display()), error),
        };
        let mut messages = Messages::new(LONGEST);
        while !messages.is_next_here() {
            if !messages.fill(&link, Some(deadline)).map_err(failed)? {
                return Err(Error::unavailable(format!(
                    "{}: what listened there has ended, or is just ending: connect again once it has been started anew",
                    path.display()
                )));
            }
        }
        let body = messages.take().map_err(failed)?.unwrap_or_default();
        let greeting = json::object::<Greeting>(body).map_err(|_| strange(path))?;
        if let Some(failure) = greeting.error {
            return Err(failure.into_error());
        }
        if greeting.version != VERSION || greeting.window == 0 {
            return Err(strange(path));
        }
        Ok(Greeted { link, messages, greeting })
    }
}

fn strange(path: &Path) -> Error {
    Error::unavailable(format!(
        "{}: what listens there is no log, or of another version of Bulla",
        path.display()
    ))
}

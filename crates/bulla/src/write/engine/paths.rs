//! A log on several paths: recovering on another one, and what is told of those that took over.

use super::Engine;
use crate::format::config::LogConfig;
use crate::format::event::Event;
use crate::write::recover::{self, Found, Recovered};
use bulla_store::{ErrorKind, Paths, Result, Store};

/// Adopts what was found, on another path where the one that is written to fails.
///
/// # Errors
/// As [`Found::adopt`] and [`recover::find`].
pub(super) fn adopt(
    mut found: Found,
    (log, keys): (&dyn Store, &dyn Store),
    config: &LogConfig,
    segment_size: u64,
) -> Result<Recovered> {
    let mut untried = log.paths().map_or(0, Paths::others);
    loop {
        let turn = log.paths().map_or(0, Paths::turn);
        found.set_aside_elsewhere(log)?;
        let error = match found.adopt(log, segment_size) {
            Err(error) if error.kind() == ErrorKind::Unavailable && untried > 0 => error,
            adopted => {
                // What was adopted lies there.
                let moved =
                    log.paths().filter(|_| adopted.as_ref().is_ok_and(|adopted| !adopted.adopted.is_empty()));
                moved.into_iter().for_each(|paths| paths.committed(turn));
                return adopted;
            }
        };
        let why = error.io_error().map_or_else(String::new, |error| format!(": {error}"));
        if !log.paths().is_some_and(|paths| paths.fail_over(turn, &format!("recovering{why}"))) {
            return Err(error);
        }
        untried -= 1;
        found = recover::find(log, keys, config)?;
    }
}

impl Engine {
    /// Asks for the events of the paths that took over, and for an epoch, which begins after every failure: also where `moved` says that what is
    /// written has another turn than before, though the path that takes it is the one that failed.
    pub(super) fn tell_switches(&self, moved: bool) -> Result<()> {
        let switches = self.log.paths().map(Paths::take_switches).unwrap_or_default();
        if switches.is_empty() && !moved {
            return Ok(());
        }
        self.staging.with_sequencer(|sequencer| {
            for switch in switches {
                sequencer.request_event(Event::path_replaced(switch));
            }
            sequencer.request_epoch(&*self.environment.random)
        })
    }
}

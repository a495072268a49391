//! The ways from a client to the server.

use super::audited::{Audit, Audited, Ended, ReplyMode, Rule};
use super::haproxy::Haproxy;
use super::server::Server;
use super::setup::Setup;
use crate::outcome::{Failure, Outcome};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What stands between client and server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Way {
    /// Nothing.
    Direct,
    /// A relay of TCP that looks at nothing: what having a process in between takes.
    Haproxy,
    Proxy(Audit),
}

impl Way {
    pub(crate) const fn proxy(mode: ReplyMode, rule: Option<Rule>, erasure: bool) -> Self {
        Way::Proxy(Audit { mode, rule, erasure })
    }
}

/// A way that is open.
pub(crate) enum Route {
    Direct(u16),
    Haproxy(Haproxy),
    Proxy(Box<Audited>),
}

impl Route {
    pub(crate) fn open(way: Way, server: &Server, setup: &Setup, place: &Path) -> Result<Self, Failure> {
        Ok(match way {
            Way::Direct => Route::Direct(server.port()),
            Way::Haproxy => Route::Haproxy(Haproxy::start(server.port(), place)?),
            Way::Proxy(audit) => Route::Proxy(Box::new(Audited::start(audit, server.port(), setup, place)?)),
        })
    }

    /// Where clients connect to, at 127.0.0.1.
    pub(crate) fn port(&self) -> u16 {
        match self {
            Route::Direct(port) => *port,
            Route::Haproxy(haproxy) => haproxy.port(),
            Route::Proxy(audited) => audited.port(),
        }
    }

    /// Ends it. A log has to have so many entries by then; what they take is told.
    pub(crate) fn close(self, entries: u64, outcome: &mut Outcome) -> Result<Option<Ended>, Failure> {
        match self {
            Route::Direct(_) | Route::Haproxy(_) => Ok(None),
            Route::Proxy(audited) => {
                let ended = audited.end()?;
                ended.check(entries)?;
                ended.tell(outcome);
                Ok(Some(ended))
            }
        }
    }
}

//! [`Warnings`]: what an operator should know of, most of it told once. How often it happens, counters say.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Of what a warning is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A PROXY header is missing, must not be there, or says nothing that can be believed.
    ProxyHeader,
    /// There was no agreeing on TLS with a client.
    Tls,
    /// A client took too long before its first command.
    HandshakeTimeout,
    /// The server cannot be reached.
    Unreachable,
    /// There were more clients than there may be.
    TooManyClients,
    /// What came was no protocol that is known.
    NotFollowed,
    /// The server sends clients to another one.
    Redirect,
    /// The log does not take entries.
    Unrecorded,
    /// What values taught before could not be read, or not all of it.
    Recalled,
    /// What values teach cannot be written down.
    Unkept,
    /// What values taught is forgotten for want of room.
    LearnedFull,
    /// No client could be accepted, for want of something.
    NotAccepted,
    /// A client was gone before it could be accepted.
    Aborted,
    /// The same of whoever asks for metrics.
    MetricsNotAccepted,
    /// No client comes any more where clients came.
    ListenerFailed,
    /// Nobody comes any more where metrics are served.
    MetricsFailed,
    /// The log has failed for good, or cannot be opened again yet.
    LogFailed,
    /// It was opened again.
    LogReopened,
    /// Something ended by a defect of the proxy.
    Failed,
}

impl Kind {
    /// How many kinds there are.
    const COUNT: usize = Kind::Failed as usize + 1;

    /// In one word, for programs.
    pub fn name(self) -> &'static str {
        match self {
            Kind::ProxyHeader => "proxy_header",
            Kind::Tls => "tls",
            Kind::HandshakeTimeout => "handshake_timeout",
            Kind::Unreachable => "unreachable",
            Kind::TooManyClients => "too_many_clients",
            Kind::NotFollowed => "not_followed",
            Kind::Redirect => "redirect",
            Kind::Unrecorded => "unrecorded",
            Kind::Recalled => "recalled",
            Kind::Unkept => "unkept",
            Kind::LearnedFull => "learned_full",
            Kind::NotAccepted => "not_accepted",
            Kind::Aborted => "aborted",
            Kind::MetricsNotAccepted => "metrics_not_accepted",
            Kind::ListenerFailed => "listener_failed",
            Kind::MetricsFailed => "metrics_failed",
            Kind::LogFailed => "log_failed",
            Kind::LogReopened => "log_reopened",
            Kind::Failed => "failed",
        }
    }
}

/// Is told a warning, in words. It is called by threads that have clients to serve, and does not keep them.
pub type Warn = Arc<dyn Fn(Kind, &str) + Send + Sync>;

/// See the module.
pub struct Warnings {
    warn: Warn,
    told: [AtomicBool; Kind::COUNT],
}

impl Warnings {
    /// Has `warn` called.
    pub fn new(warn: Warn) -> Self {
        Warnings { warn, told: Default::default() }
    }

    /// Tells, however often that was done before.
    pub fn tell(&self, kind: Kind, what: &str) {
        (self.warn)(kind, what);
    }

    /// Warns, unless that was done before.
    pub fn once(&self, kind: Kind, what: impl FnOnce() -> String) {
        if !self.told[kind as usize].swap(true, Ordering::Relaxed) {
            (self.warn)(kind, &what());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_names_every_kind() {
        const DOCUMENT: &str = include_str!("../../../docs/json.md");
        let list = DOCUMENT
            .split("metrics have the numbers. They are ")
            .nth(1)
            .unwrap()
            .split(".\n")
            .next()
            .unwrap();
        let named = list.split('`').skip(1).step_by(2).collect::<Vec<_>>();
        let all = [
            Kind::ProxyHeader,
            Kind::Tls,
            Kind::HandshakeTimeout,
            Kind::Unreachable,
            Kind::TooManyClients,
            Kind::NotFollowed,
            Kind::Redirect,
            Kind::Unrecorded,
            Kind::Recalled,
            Kind::Unkept,
            Kind::LearnedFull,
            Kind::NotAccepted,
            Kind::Aborted,
            Kind::MetricsNotAccepted,
            Kind::ListenerFailed,
            Kind::MetricsFailed,
            Kind::LogFailed,
            Kind::LogReopened,
            Kind::Failed,
        ];
        assert_eq!(all.len(), Kind::COUNT, "a kind is missing in this test");
        assert_eq!(named, all.map(Kind::name));
    }
}

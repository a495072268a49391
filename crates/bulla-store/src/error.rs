//! The one public error.

use std::{fmt, io};

/// What the caller can do about an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The input or an option is wrong: correct it.
    Invalid,
    /// The memory for staged entries stayed full for the append timeout: try again, or slow down.
    Timeout,
    /// The log is closed, or the handle is in a forked child: open it anew.
    Closed,
    /// Another writer holds the log: stop that one first.
    Locked,
    /// The environment failed (I/O, disk full, a path is missing): mend it, then open the log again.
    Unavailable,
    /// The log is not what was written: run `bulla verify`; it opens for reading only.
    Tampered,
    /// The data subject was erased: nobody can read this any more.
    Erased,
    /// No key at hand opens this: bring the right identity.
    NoKey,
    /// It is not allowed, or not found.
    Refused,
}

/// What became of what was asked for, of an operation that failed all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// It is done: something failed after that.
    Done,
    /// It may be done, or not.
    Unknown,
}

/// What went wrong, naming the thing. [`Error::kind`] tells what to do.
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<io::Error>,
    effect: Option<Effect>,
}

/// A result with Bulla's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of this kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error { kind, message: message.into(), source: None, effect: None }
    }

    /// `Invalid`: what was given is wrong.
    pub fn invalid(message: impl Into<String>) -> Self {
        Error::new(ErrorKind::Invalid, message)
    }

    /// `Tampered`: the log is not what was written.
    pub fn tampered(message: impl Into<String>) -> Self {
        Error::new(ErrorKind::Tampered, message)
    }

    /// `Unavailable`: the environment failed.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Error::new(ErrorKind::Unavailable, message)
    }

    /// An I/O error on `what`, as a person would name it: `Unavailable`.
    pub fn io(what: impl fmt::Display, source: io::Error) -> Self {
        Error { kind: ErrorKind::Unavailable, message: what.to_string(), source: Some(source), effect: None }
    }

    /// The same error, after what it means for whoever asked for something larger.
    #[must_use]
    pub fn after(mut self, what: impl fmt::Display) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }

    /// The same error, of what failed only after the operation had done what it was asked, which `what` says.
    #[must_use]
    pub fn but_done(self, what: impl fmt::Display) -> Self {
        self.after(format!("it is done: {what}; what failed after that")).with_effect(Effect::Done)
    }

    /// The same error, of an operation that may have done what it was asked, or not: `what` says what that is, and who tells.
    #[must_use]
    pub fn but_maybe_done(self, what: impl fmt::Display) -> Self {
        self.after(format!("it may be done: {what}; what failed")).with_effect(Effect::Unknown)
    }

    /// The same error, which says in its words already what became of what was asked for.
    #[must_use]
    pub fn with_effect(self, effect: Effect) -> Self {
        Error { effect: Some(effect), ..self }
    }

    /// What became of what was asked for; `None` where nothing came of it, or the operation tells that in words alone.
    pub fn effect(&self) -> Option<Effect> {
        self.effect
    }

    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The operating system's error beneath it, if there is one.
    pub fn io_error(&self) -> Option<&io::Error> {
        self.source.as_ref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.kind)
    }
}

impl std::error::Error for Error {
    /// What lies beneath the operating system's error, which is part of the message already: whoever prints a chain of
    /// sources prints nothing twice.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().and_then(std::error::Error::source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;

    #[test]
    fn what_was_done_is_told_before_what_failed_and_kept() {
        let error = || Error::io("reading x", io::Error::other("the disk is gone"));
        assert_eq!(error().effect(), None);
        let done = error().but_done("x is made").after("opening y");
        assert_eq!(done.effect(), Some(Effect::Done));
        let told = "opening y: it is done: x is made; what failed after that: reading x: the disk is gone";
        assert_eq!(done.to_string(), told);
        assert_eq!(done.io_error().map(ToString::to_string).as_deref(), Some("the disk is gone"));
        let unknown = error().but_maybe_done("`look` tells whether x is made");
        assert_eq!((unknown.kind(), unknown.effect()), (ErrorKind::Unavailable, Some(Effect::Unknown)));
        let told = "it may be done: `look` tells whether x is made; what failed: reading x: the disk is gone";
        assert_eq!(unknown.to_string(), told);
    }

    #[test]
    fn a_chain_of_sources_tells_everything_once() {
        let error = Error::io("reading x", io::Error::other("the disk is gone"));
        let mut chain = vec![error.to_string()];
        let mut next = error.source();
        while let Some(source) = next {
            chain.push(source.to_string());
            next = source.source();
        }
        assert_eq!(chain, ["reading x: the disk is gone"]);
        assert_eq!(error.io_error().map(ToString::to_string).as_deref(), Some("the disk is gone"));
    }
}

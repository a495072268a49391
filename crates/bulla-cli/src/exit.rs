//! How the command ends: the one place that knows the exit codes.

use crate::escaped::on_line;
use bulla::ErrorKind;
use std::fmt::Display;
use std::io;
use std::process::ExitCode;

/// The exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Done = 0,
    Violation = 1,
    Usage = 2,
    SomeRefused = 3,
    Environment = 4,
    Refused = 5,
    Interrupted = 130,
}

impl Exit {
    /// All of them, with what they mean.
    pub(crate) const ALL: [(Exit, &str); 7] = [
        (Exit::Done, "Done."),
        (
            Exit::Violation,
            "An integrity violation was found: the log is not what was written, or keys are lost.",
        ),
        (Exit::Usage, "The command line, a setting or a file that was named is not what it has to be."),
        (Exit::SomeRefused, "Done, but some of the input was refused; what, is told."),
        (
            Exit::Environment,
            "The environment failed: a disk, a file of the key directory, a limit, a time-out.",
        ),
        (
            Exit::Refused,
            "Refused: a key is missing, a data subject is erased or held, nothing was found, two things do not belong together.",
        ),
        (Exit::Interrupted, "Interrupted, after what was begun was brought to an end."),
    ];
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

impl From<ErrorKind> for Exit {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Invalid => Exit::Usage,
            ErrorKind::Tampered => Exit::Violation,
            ErrorKind::Erased | ErrorKind::NoKey | ErrorKind::Refused => Exit::Refused,
            // Timeout, Closed, Locked, Unavailable; and what a later library may add.
            _ => Exit::Environment,
        }
    }
}

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) message: String,
}

impl Failure {
    /// The message is one line, whatever names are in it.
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Failure { exit, message: on_line(&message.into()) }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Failure::new(Exit::Usage, message)
    }

    /// Of what failed only after the command had done what it was asked, which `what` says: as [`bulla::Error::but_done`].
    pub(crate) fn but_done(self, what: impl Display) -> Self {
        let message = format!("it is done: {what}; what failed after that: {}", self.message);
        Failure { message, ..self }
    }

    /// An I/O error on the file of a key: one that is not there is a key that is missing.
    pub(crate) fn key_file(what: impl Display, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Failure::new(Exit::Refused, format!("{what}: {error}")),
            _ => Failure::content(what, error),
        }
    }

    /// An I/O error on a file that was named; where what is in it was read and cannot be what it has to hold, another file was meant.
    pub(crate) fn content(what: impl Display, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::InvalidData => Failure::usage(format!("{what}: {error}")),
            _ => Failure::io(what, error),
        }
    }

    /// An I/O error on `what`.
    pub(crate) fn io(what: impl Display, error: &io::Error) -> Self {
        Failure::new(Exit::Environment, format!("{what}: {error}"))
    }
}

impl From<bulla::Error> for Failure {
    fn from(error: bulla::Error) -> Self {
        let exit = error.kind().into();
        match error.kind() {
            // Whoever was erased is simply not found: this is an erasure at work.
            ErrorKind::Erased => Failure::new(exit, format!("{error}; try again in a moment")),
            _ => Failure::new(exit, error.to_string()),
        }
    }
}

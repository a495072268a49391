//! What is wrong with a policy.

use super::{MAX_OF_EACH, MAX_POLICY};
use crate::note::NoteError;
use std::fmt;

/// Why a policy is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyError {
    /// The number of the line, from 1; 0 where it is the whole file.
    pub line: usize,
    /// What is wrong there.
    pub problem: PolicyProblem,
}

/// What is wrong with a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyProblem {
    /// It is longer than [`MAX_POLICY`].
    TooLong,
    /// The last line does not end.
    NoNewline,
    /// There is a control character that is neither tab nor newline.
    Control,
    /// A line that is no comment is not UTF-8.
    NotText,
    /// The first word is none that a line begins with.
    Word(String),
    /// The line has too few or too many words: how such a line is written.
    Form(&'static str),
    /// A key is refused.
    Key(NoteError),
    /// Another log has that key.
    SameLog,
    /// The witness with that name has that key.
    SameWitness(String),
    /// The witness with that name has the key of a log: its signature would count as that of somebody who has seen the log.
    OwnWitness(String),
    /// The name is defined already, or is `none`.
    Name(String),
    /// No witness or group above has that name.
    Unknown(String),
    /// That name is a member of a group already.
    SecondGroup(String),
    /// The number of a group is not from 1 to that of its members, which this is.
    Threshold(usize),
    /// There are more than [`MAX_OF_EACH`] such lines.
    TooMany,
    /// There is another quorum above.
    SecondQuorum,
    /// There is no quorum.
    NoQuorum,
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}: ", self.line)?;
        }
        self.problem.fmt(f)
    }
}

impl fmt::Display for PolicyProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => write!(f, "the policy is longer than {} MiB", MAX_POLICY >> 20),
            Self::NoNewline => write!(f, "the last line has no newline; the file may be cut off"),
            Self::Control => write!(f, "there is a control character other than tab and newline"),
            Self::NotText => write!(f, "it is not UTF-8"),
            Self::Word(word) => {
                write!(f, "a line begins with `log`, `witness`, `group`, `quorum` or `#`, not with `{word}`")
            }
            Self::Form(form) => write!(f, "such a line is written `{form}`"),
            Self::Key(NoteError::VerifierKey) => write!(
                f,
                "the key is malformed, its id is not that of its name and key, or it is of a type that does not belong \
                 there: a log's is 0x01 or 0x06, a witness's is 0x04 or 0x06"
            ),
            Self::Key(error) => error.fmt(f),
            Self::SameLog => write!(f, "there is a log with the same key above"),
            Self::SameWitness(name) => write!(f, "the witness `{name}` above has the same key"),
            Self::OwnWitness(name) => {
                write!(
                    f,
                    "the witness `{name}` has the key of a log of this policy: what a log signs itself nobody else has seen"
                )
            }
            Self::Name(name) if name == "none" => write!(f, "`none` names no witness and no group"),
            Self::Name(name) => write!(f, "there is another `{name}` above"),
            Self::Unknown(name) => write!(f, "there is no witness or group `{name}` above"),
            Self::SecondGroup(name) => write!(f, "`{name}` is already a member of a group"),
            Self::Threshold(members) => {
                write!(
                    f,
                    "how many of its members a group needs is `any`, `all` or a number from 1 to {members}"
                )
            }
            Self::TooMany => write!(f, "there are more than {MAX_OF_EACH} of its kind"),
            Self::SecondQuorum => write!(f, "there is another quorum above"),
            Self::NoQuorum => write!(f, "it has no line `quorum NAME`, or `quorum none`"),
        }
    }
}

impl std::error::Error for PolicyError {}

//! Why the personal fields of an entry are not given out.

use std::fmt;

/// Why the personal fields of an entry are not given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Redaction {
    /// The log says that the key of one of its data subjects was destroyed.
    Erased,
    /// The key of one of its data subjects is not where it should be, and the log says of no erasure: nobody can read
    /// the fields any more, and nobody is known to have asked for that.
    KeyLost,
    /// The keys at hand are not everybody's: somebody else may have this one.
    NotGiven,
    /// Of a log that is damaged: an event that may tell of an erasure cannot be read, and the key is not there, or is one that was
    /// there before that event.
    CannotTell,
}

impl Redaction {
    /// All of them.
    pub const ALL: [Redaction; 4] =
        [Redaction::Erased, Redaction::KeyLost, Redaction::NotGiven, Redaction::CannotTell];

    /// The name, as in what an export says of an entry.
    pub fn name(self) -> &'static str {
        match self {
            Redaction::Erased => "erased",
            Redaction::KeyLost => "key-lost",
            Redaction::NotGiven => "not-given",
            Redaction::CannotTell => "cannot-tell",
        }
    }
}

impl fmt::Display for Redaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How many entries come without their personal fields, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RedactedEntries {
    /// [`Redaction::Erased`].
    pub erased: u64,
    /// [`Redaction::KeyLost`].
    pub key_lost: u64,
    /// [`Redaction::NotGiven`].
    pub not_given: u64,
    /// [`Redaction::CannotTell`].
    pub cannot_tell: u64,
}

impl RedactedEntries {
    /// All of them.
    pub fn total(self) -> u64 {
        self.erased + self.key_lost + self.not_given + self.cannot_tell
    }

    /// Those for this reason.
    pub fn of(self, why: Redaction) -> u64 {
        match why {
            Redaction::Erased => self.erased,
            Redaction::KeyLost => self.key_lost,
            Redaction::NotGiven => self.not_given,
            Redaction::CannotTell => self.cannot_tell,
        }
    }

    /// One more entry, if it is withheld.
    pub(crate) fn count(&mut self, why: Option<Redaction>) {
        match why {
            Some(Redaction::Erased) => self.erased += 1,
            Some(Redaction::KeyLost) => self.key_lost += 1,
            Some(Redaction::NotGiven) => self.not_given += 1,
            Some(Redaction::CannotTell) => self.cannot_tell += 1,
            None => {}
        }
    }

    pub(crate) fn add(&mut self, others: Self) {
        self.erased += others.erased;
        self.key_lost += others.key_lost;
        self.not_given += others.not_given;
        self.cannot_tell += others.cannot_tell;
    }
}

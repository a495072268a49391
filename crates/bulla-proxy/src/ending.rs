//! [`Ending`]: how far the proxy is on its way to its end.

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ending {
    /// Nobody asked for it.
    NotYet,
    /// No client is accepted any more; those that are there have their time for what they began.
    Draining,
    /// That time is over.
    AtOnce,
}

impl Ending {
    /// Whether no client is accepted any more.
    pub(crate) fn has_begun(&self) -> bool {
        *self >= Ending::Draining
    }

    /// Whether nobody is waited for any more.
    pub(crate) fn is_at_once(&self) -> bool {
        *self == Ending::AtOnce
    }
}

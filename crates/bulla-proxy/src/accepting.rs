//! What it means that a client cannot be accepted, and how long it is waited then.

use rustix::io::Errno;
use std::io;
use std::time::Duration;

/// Why a client cannot be accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotAccepted {
    /// A signal came: it is tried again at once.
    Interrupted,
    /// This client is gone, or the network to it: the next one may be accepted at once.
    Client,
    /// There is none left of something, such as descriptors: it is there again in a while.
    Short,
    /// No client comes there ever again: it is no socket that listens.
    Socket,
}

impl NotAccepted {
    /// By the error of accept(2), which says what of the network an error may be, and that one of these is no reason to stop.
    pub(crate) fn by(error: &io::Error) -> Self {
        match Errno::from_io_error(error) {
            Some(Errno::INTR) => NotAccepted::Interrupted,
            Some(
                Errno::CONNABORTED
                | Errno::CONNRESET
                | Errno::HOSTDOWN
                | Errno::HOSTUNREACH
                | Errno::NETDOWN
                | Errno::NETUNREACH
                | Errno::NONET
                | Errno::NOPROTOOPT
                | Errno::OPNOTSUPP
                | Errno::PERM
                | Errno::PROTO
                | Errno::TIMEDOUT,
            ) => NotAccepted::Client,
            Some(Errno::BADF | Errno::FAULT | Errno::INVAL | Errno::NOTSOCK) => NotAccepted::Socket,
            _ => NotAccepted::Short,
        }
    }
}

/// How long it is waited where something is short: longer each time, until a client is accepted.
pub(crate) struct Pauses(Duration);

/// The first pause, and the longest.
const FIRST: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_secs(1);

impl Default for Pauses {
    fn default() -> Self {
        Pauses(FIRST)
    }
}

impl Pauses {
    /// The pause that comes next.
    pub(crate) fn next(&mut self) -> Duration {
        let next = self.0;
        self.0 = (next * 2).min(LONGEST);
        next
    }

    /// A client was accepted.
    pub(crate) fn end(&mut self) {
        *self = Pauses::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_is_told_from_what_does_not() {
        for (error, expected) in [
            (Errno::INTR, NotAccepted::Interrupted),
            (Errno::CONNABORTED, NotAccepted::Client),
            (Errno::PROTO, NotAccepted::Client),
            (Errno::PERM, NotAccepted::Client),
            (Errno::MFILE, NotAccepted::Short),
            (Errno::NFILE, NotAccepted::Short),
            (Errno::NOBUFS, NotAccepted::Short),
            (Errno::NOMEM, NotAccepted::Short),
            (Errno::BADF, NotAccepted::Socket),
            (Errno::INVAL, NotAccepted::Socket),
            (Errno::NOTSOCK, NotAccepted::Socket),
        ] {
            assert_eq!(NotAccepted::by(&error.into()), expected, "{error}");
        }
        assert_eq!(NotAccepted::by(&io::Error::other("what no system says")), NotAccepted::Short);
    }

    #[test]
    fn pauses_grow_to_a_second_until_somebody_is_accepted() {
        let mut pauses = Pauses::default();
        let all = (0..10).map(|_| pauses.next()).collect::<Vec<_>>();
        assert!(all[0] == FIRST && all.is_sorted() && all[9] == LONGEST, "{all:?}");
        pauses.end();
        assert_eq!(pauses.next(), FIRST);
    }
}

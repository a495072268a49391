//! The order of the locks of a log that is written.
//!
//! A thread that holds a lock takes only locks of a later rank, so no two threads can wait for each other:
//!
//! | Rank | Locks | What is done under it |
//! |---|---|---|
//! | `Erasing` | `Engine::erasing` | a whole erasure or hold, or change of the erasure key: files are written and checkpoints waited for |
//! | `Changing` | `Engine::changing` | a whole rotation or change of `[log]`: the same |
//! | `Sources` | that in [`Sources`](super::sources::Sources) | what the log says of sources is read for the first time: a checkpoint is waited for, files are read |
//! | `SerialStages` | `Engine::serial` | of a log without threads: a step of the committer or the checkpointer, or draining all of it. Where there are threads it is held for a moment, to give the stages to them and to get them back |
//! | `Dropping` | that in [`Dropping`](super::dropping::Dropping) | what an outage has the log drop is noted in the key directory, and an event asked for |
//! | `Sealing` | `Engine::sealing` | for reading: a block is grouped and sealed; for writing: keys of data subjects are destroyed, whoever asked for it is told their names (`Log::when_erased`), and the event that tells of it is queued |
//! | `Leaf` | `Engine::witnesses`, and those in [`StagingQueue`](crate::write::stage::queue::StagingQueue), [`CommitQueue`](super::committing::CommitQueue), [`CheckpointQueue`](super::checkpointing::CheckpointQueue), [`Progress`](super::progress::Progress), [`Sources`](super::sources::Sources) and [`BackOff`](crate::write::back_off::BackOff) | a few fields are read or changed, and waiting threads woken; no other lock is taken, no file touched |
//!
//! The index and the vault have locks of their own, which are taken after these and under which none of these is taken.
//!
//! Debug builds assert the order, but for the staging queue and the back-off, whose sources stand alone.

use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    Erasing,
    Changing,
    Sources,
    SerialStages,
    Dropping,
    Sealing,
    Leaf,
}

#[cfg(debug_assertions)]
thread_local! {
    /// The rank of the lock that this thread took last and still holds.
    static HELD: std::cell::Cell<Option<Rank>> = const { std::cell::Cell::new(None) };
}

/// Says, in debug builds, that this thread holds a lock of some rank. Such values are dropped in the reverse of the order in
/// which they were made, as the guards beside them are.
pub(super) struct Held {
    #[cfg(debug_assertions)]
    before: Option<Rank>,
}

impl Rank {
    /// To be called before a lock of this rank is taken.
    pub(super) fn hold(self) -> Held {
        #[cfg(debug_assertions)]
        {
            let before = HELD.get();
            assert!(before < Some(self), "a lock of rank {self:?} is taken under one of rank {before:?}");
            HELD.set(Some(self));
            Held { before }
        }
        #[cfg(not(debug_assertions))]
        Held {}
    }
}

#[cfg(debug_assertions)]
impl Drop for Held {
    fn drop(&mut self) {
        HELD.set(self.before);
    }
}

/// A mutex with its rank. It is of no matter to it that somebody panicked under it: nothing that runs under a mutex of
/// rank `Leaf` can panic between two steps of a change, and the stages under `SerialStages` refuse to go on by themselves.
pub(super) struct RankedMutex<T> {
    rank: Rank,
    value: Mutex<T>,
}

/// See [`RankedMutex`].
pub(super) struct Guard<'a, T> {
    value: MutexGuard<'a, T>,
    held: Held,
}

impl<T> RankedMutex<T> {
    pub(super) fn new(rank: Rank, value: T) -> Self {
        RankedMutex { rank, value: Mutex::new(value) }
    }

    pub(super) fn lock(&self) -> Guard<'_, T> {
        let held = self.rank.hold();
        Guard { value: self.value.lock().unwrap_or_else(PoisonError::into_inner), held }
    }
}

impl<T> Guard<'_, T> {
    /// Lets go of the lock until `changed` is notified.
    pub(super) fn wait(self, changed: &Condvar) -> Self {
        let Guard { value, held } = self;
        Guard { value: changed.wait(value).unwrap_or_else(PoisonError::into_inner), held }
    }

    /// Lets go of the lock until `changed` is notified, for `time` at most.
    pub(super) fn wait_timeout(self, changed: &Condvar, time: Duration) -> Self {
        let Guard { value, held } = self;
        let (value, _) = changed.wait_timeout(value, time).unwrap_or_else(PoisonError::into_inner);
        Guard { value, held }
    }

    /// Lets go of the lock until `changed` is notified and `idle` does not hold any more, for `time` at most.
    pub(super) fn wait_while(
        self,
        changed: &Condvar,
        time: Duration,
        idle: impl FnMut(&mut T) -> bool,
    ) -> Self {
        let Guard { value, held } = self;
        let (value, _) =
            changed.wait_timeout_while(value, time, idle).unwrap_or_else(PoisonError::into_inner);
        Guard { value, held }
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(debug_assertions)]
    fn a_lock_of_an_earlier_rank_is_not_taken_under_a_later_one() {
        let early = RankedMutex::new(Rank::SerialStages, ());
        let late = RankedMutex::new(Rank::Leaf, ());
        {
            let _early = early.lock();
            drop(late.lock());
            drop(late.lock());
        }
        let refused = std::thread::scope(|scope| {
            scope
                .spawn(|| {
                    let _late = late.lock();
                    drop(early.lock());
                })
                .join()
        });
        refused.unwrap_err();
        // What was held when it panicked was let go of.
        drop(early.lock());
    }
}

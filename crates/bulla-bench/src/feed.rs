//! Where producers take their entries from.

use crate::arena::{Arena, Cursor, Lengths};
use crate::knobs::{Amount, Knobs};
use crate::outcome::Failure;
use crate::process;
use bulla_proof::Entry;
use bulla_workload::{Generator, Workload};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Entries between looks at the clock.
const BETWEEN_LOOKS: u64 = 64;

/// The entries of a run: held in memory, or made in flight.
pub(crate) struct Source {
    workload: Workload,
    seed: u64,
    arena: Option<Arena>,
    lengths: Lengths,
}

/// One producer's entries.
pub(crate) enum Feed<'a> {
    Held(Cursor<'a>),
    Made(Box<Generator>),
}

impl Source {
    pub(crate) fn new(workload: Workload, knobs: &Knobs) -> Self {
        let arena = (!knobs.in_flight)
            .then(|| Arena::of(workload, knobs.seed, knobs.producers, knobs.share().entries()));
        let lengths = arena.as_ref().map_or_else(|| Lengths::of(workload, knobs.seed), Arena::lengths);
        Source { workload, seed: knobs.seed, arena, lengths }
    }

    pub(crate) fn workload(&self) -> Workload {
        self.workload
    }

    pub(crate) fn lengths(&self) -> Lengths {
        self.lengths
    }

    /// How many of so many entries are not the same as before.
    pub(crate) fn draws(&self, entries: u64) -> u64 {
        self.arena.as_ref().map_or(entries, |arena| entries.min(arena.entries()))
    }

    /// What it takes of memory, in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.arena.as_ref().map_or(0, Arena::size)
    }

    pub(crate) fn feed(&self, producer: u32) -> Feed<'_> {
        match &self.arena {
            Some(arena) => Feed::Held(arena.cursor(producer)),
            None => Feed::Made(Box::new(self.workload.generator(self.seed, producer))),
        }
    }

    /// Processor time that it takes to come by an entry, in nanoseconds.
    pub(crate) fn cost(&self) -> f64 {
        const LEAST: Duration = Duration::from_millis(50);
        let mut feed = self.feed(0);
        let (start, mut entries) = (process::thread_cpu(), 0);
        loop {
            for _ in 0..BETWEEN_LOOKS {
                black_box(&feed.next_entry());
            }
            entries += BETWEEN_LOOKS;
            let taken = process::thread_cpu() - start;
            if taken >= LEAST {
                return taken.as_nanos() as f64 / entries as f64;
            }
        }
    }
}

impl Feed<'_> {
    #[inline]
    pub(crate) fn next_entry(&mut self) -> Entry<'_> {
        match self {
            Feed::Held(cursor) => cursor.next_entry(),
            Feed::Made(generator) => generator.next_entry(),
        }
    }

    /// Appends entries until there are so many, or that time is over; how many those were.
    pub(crate) fn drive(
        &mut self,
        amount: Amount,
        mut append: impl FnMut(&Entry<'_>) -> Result<(), Failure>,
    ) -> Result<u64, Failure> {
        let start = Instant::now();
        let mut entries = 0;
        loop {
            let round = match amount {
                Amount::Entries(all) => BETWEEN_LOOKS.min(all - entries),
                Amount::Time(time) if start.elapsed() < time => BETWEEN_LOOKS,
                Amount::Time(_) => 0,
            };
            if round == 0 {
                return Ok(entries);
            }
            for _ in 0..round {
                append(&self.next_entry())?;
            }
            entries += round;
        }
    }
}

//! Handles: numbers that C carries about, and what they stand for.
//!
//! Invariants:
//! - a number stands for one thing, ever: it has the kind of thing, the place in its table, and how often that was taken before;
//! - places are never given back to the system, so that looking at one is safe whatever number is asked for;
//! - whoever uses a thing has its place locked, without waiting: a handle that two threads use at once is refused to one of them.

#![forbid(unsafe_code)]

use crate::status::{Failed, Outcome};
use bulla::Error;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

/// Chunks of a table, of which each has twice the places of the one before, at most.
const CHUNKS: usize = 27;
/// Places of the first chunk.
const FIRST: usize = 16;

/// How often a place is taken.
const MAX_TURN: u32 = (1 << 28) - 1;

/// How often it is looked again whether a place is locked.
const TRIES: u32 = 10_000;

/// Things of one kind.
pub(crate) struct Table<T> {
    /// What it is a table of, for whoever made a mistake.
    kind: &'static str,
    /// The same in the numbers, so that those of one table are none of another: 1 to 15.
    tag: u64,
    chunks: [OnceLock<Chunk<T>>; CHUNKS],
    free: Mutex<Free>,
}

/// Places that are made together.
type Chunk<T> = Box<[Mutex<Place<T>>]>;

struct Place<T> {
    /// How often it was taken.
    turn: u32,
    thing: Option<T>,
}

struct Free {
    places: Vec<u32>,
    /// How many were ever taken.
    used: u32,
}

/// A thing in use. Its place is locked.
pub(crate) struct Used<'a, T>(MutexGuard<'a, Place<T>>);

impl<T> std::ops::Deref for Used<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.thing.as_ref().expect("what is in use is there")
    }
}

impl<T> std::ops::DerefMut for Used<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.thing.as_mut().expect("what is in use is there")
    }
}

impl<T> Table<T> {
    pub(crate) const fn new(kind: &'static str, tag: u64) -> Self {
        assert!(0 < tag && tag < 16);
        let free = Mutex::new(Free { places: Vec::new(), used: 0 });
        Table { kind, tag, chunks: [const { OnceLock::new() }; CHUNKS], free }
    }

    /// The number of a thing.
    pub(crate) fn add(&self, thing: T) -> u64 {
        let index = {
            let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
            free.places.pop().unwrap_or_else(|| {
                free.used += 1;
                free.used - 1
            })
        };
        let (chunk, place) = split(index);
        let places = self.chunks[chunk].get_or_init(|| {
            (0..FIRST << chunk).map(|_| Mutex::new(Place { turn: 0, thing: None })).collect()
        });
        let mut place = places[place].lock().unwrap_or_else(PoisonError::into_inner);
        place.turn += 1;
        place.thing = Some(thing);
        self.tag << 60 | u64::from(place.turn) << 32 | u64::from(index)
    }

    /// The thing of this number, as long as what is returned lives.
    pub(crate) fn get(&self, number: u64) -> Outcome<Used<'_, T>> {
        self.place(number).map(Used)
    }

    /// A copy of the thing of this number, which many threads may ask for at once.
    pub(crate) fn copy(&self, number: u64) -> Outcome<T>
    where
        T: Clone,
    {
        let mut tries = 0;
        loop {
            match self.get(number) {
                // Copying takes no longer than an instant. In a forked child whoever has it locked may never come back.
                Err(Failed::InUse(_)) if tries < TRIES => {
                    tries += 1;
                    std::thread::yield_now();
                }
                got => return got.map(|thing| thing.clone()),
            }
        }
    }

    /// Takes the thing away: its number stands for nothing from now on.
    pub(crate) fn remove(&self, number: u64) -> Outcome<T> {
        let mut place = self.place(number)?;
        let thing = place.thing.take().expect("it was looked at");
        let index = index(number);
        // A place that was taken so often is not taken again: its numbers would be those of before.
        if place.turn < MAX_TURN {
            drop(place);
            self.free.lock().unwrap_or_else(PoisonError::into_inner).places.push(index);
        }
        Ok(thing)
    }

    fn place(&self, number: u64) -> Outcome<MutexGuard<'_, Place<T>>> {
        if number == 0 {
            return Err(Error::invalid(format!("the {} is null", self.kind)).into());
        }
        let (chunk, place) = split(index(number));
        let gone = || {
            Error::invalid(format!("this is no {} any more: it was closed, or is something else", self.kind))
        };
        if number >> 60 != self.tag {
            return Err(gone().into());
        }
        let places = self.chunks.get(chunk).and_then(OnceLock::get).ok_or_else(gone)?;
        let place = match places[place].try_lock() {
            Ok(place) => place,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Err(Failed::InUse(self.kind)),
        };
        match place.turn == turn(number) && place.thing.is_some() {
            true => Ok(place),
            false => Err(gone().into()),
        }
    }
}

/// The handle of a number, as C has it.
pub(crate) fn to_handle<T>(number: u64) -> *mut T {
    const { assert!(usize::BITS == 64, "a handle has 64 bits") };
    #[allow(clippy::cast_possible_truncation, reason = "they are as many")]
    std::ptr::without_provenance_mut(number as usize)
}

/// The number of a handle.
pub(crate) fn number<T>(handle: *const T) -> u64 {
    handle.addr() as u64
}

#[allow(clippy::cast_possible_truncation, reason = "the lower half")]
fn index(number: u64) -> u32 {
    number as u32
}

#[allow(clippy::cast_possible_truncation, reason = "the upper half, less the kind")]
fn turn(number: u64) -> u32 {
    (number >> 32) as u32 & MAX_TURN
}

/// The chunk of a place, and the place in it.
fn split(index: u32) -> (usize, usize) {
    let shifted = index as usize + FIRST;
    let chunk = (shifted.ilog2() - FIRST.ilog2()) as usize;
    (chunk, shifted - (FIRST << chunk))
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "a test has threads")]
mod tests {
    use super::*;

    fn refused<T>(outcome: Outcome<T>) -> bool {
        matches!(outcome, Err(Failed::Error(_)))
    }

    #[test]
    fn a_number_stands_for_one_thing_ever() {
        let table = Table::new("thing", 15);
        // Over several chunks, and taken again and again.
        let numbers = (0..100).map(|thing| table.add(thing)).collect::<Vec<_>>();
        for (thing, number) in numbers.iter().enumerate() {
            assert!(table.copy(*number).is_ok_and(|there| there == thing));
        }
        // The first of another kind has the place and the turn of the first of this one.
        let others = Table::new("other", 1);
        let other = others.add(0);
        assert!(
            refused(table.get(other))
                && refused(others.get(numbers[0]))
                && refused(others.remove(numbers[0]))
        );
        let mut gone = Vec::new();
        for number in numbers {
            assert!(
                table.remove(number).is_ok() && refused(table.remove(number)) && refused(table.copy(number))
            );
            gone.push(number);
            let next = table.add(1000);
            assert!(!gone.contains(&next) && refused(table.get(number)));
            assert!(table.remove(next).is_ok_and(|thing| thing == 1000));
            gone.push(next);
        }
        for made_up in
            [0, 1, u64::MAX, u64::from(u32::MAX), 1 << 32, 2 << 32 | 50, to_handle::<u8>(7).addr() as u64]
        {
            assert!(refused(table.get(made_up)), "{made_up:x}");
        }
        assert_eq!(number(to_handle::<u8>(u64::MAX)), u64::MAX);
    }

    #[test]
    fn what_is_used_is_refused_to_another_and_copied_once_it_is_free() {
        let table = Table::new("thing", 15);
        let number = table.add(1);
        let used = table.get(number);
        assert!(used.is_ok() && matches!(table.remove(number), Err(Failed::InUse("thing"))));
        assert!(matches!(table.copy(number), Err(Failed::InUse("thing"))), "it waits, and not for ever");
        drop(used);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    (0..1000).for_each(|_| assert!(table.copy(number).is_ok_and(|thing| thing == 1)))
                });
            }
        });
        assert!(table.remove(number).is_ok());
    }
}

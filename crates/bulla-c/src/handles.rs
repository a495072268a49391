//! Handles: numbers that C carries about, and what they stand for.
//!
//! Invariants:
//! - a number stands for one thing, ever: it has the kind of thing, the place in its table, and how often that was taken before;
//! - places are never given back to the system, so that looking at one is safe whatever number is asked for;
//! - whoever uses a thing has its place locked, without waiting: a handle that two threads use at once is refused to one of them;
//! - nothing here waits for a lock: in a forked child whoever had it at the time of the fork is missing, and it is never let go;
//! - a thing belongs to the process that added it: a forked child is refused before anything of it is looked at, and never drops it.
#![allow(unsafe_code)]

use crate::status::{Failed, Outcome};
use bulla::store::process;
use bulla::{Error, ErrorKind};
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

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
    /// The first place of each chunk; null before that is made.
    chunks: [AtomicPtr<Place<T>>; CHUNKS],
    /// The first of the places that are free, in its lower half as [`Place::next`] has it; in its upper half how often that changed.
    free: AtomicU64,
    /// How many places were ever taken.
    used: AtomicU32,
    /// What the pointers point to.
    places: PhantomData<Box<[Place<T>]>>,
}

struct Place<T> {
    /// Of a place that is free: the one that is free behind it, counted from 1; 0 where there is none.
    next: AtomicU32,
    /// The process that took it last; 0 where none did.
    owner: AtomicU32,
    /// Whether it is locked. It is no `Mutex`, which lets go at some expense, for the sake of those who wait: here nobody does.
    locked: AtomicBool,
    /// Only to whoever has it locked.
    kept: UnsafeCell<Kept<T>>,
}

// SAFETY: one thread at a time has what is kept, which may go from one to another.
unsafe impl<T: Send> Sync for Place<T> {}

struct Kept<T> {
    /// How often the place was taken.
    turn: u32,
    thing: Option<T>,
}

/// A place that is locked as long as this lives. It goes between threads, and is shared by them, as what is kept is: a reference to a
/// place alone would let threads share what only one at a time may have.
struct Locked<'a, T>(&'a Place<T>, PhantomData<&'a mut Kept<T>>);

impl<T> Deref for Locked<'_, T> {
    type Target = Kept<T>;

    #[inline]
    fn deref(&self) -> &Kept<T> {
        // SAFETY: whoever has this is the only one that has it locked.
        unsafe { &*self.0.kept.get() }
    }
}

impl<T> DerefMut for Locked<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Kept<T> {
        // SAFETY: as above, and nobody else has this.
        unsafe { &mut *self.0.kept.get() }
    }
}

impl<T> Drop for Locked<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.0.locked.store(false, Ordering::Release);
    }
}

/// A thing in use. Its place is locked.
pub(crate) struct Used<'a, T>(Locked<'a, T>);

impl<T> Deref for Used<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.thing.as_ref().expect("what is in use is there")
    }
}

impl<T> DerefMut for Used<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.thing.as_mut().expect("what is in use is there")
    }
}

impl<T> Place<T> {
    fn new() -> Self {
        Place {
            next: AtomicU32::new(0),
            owner: AtomicU32::new(0),
            locked: AtomicBool::new(false),
            kept: UnsafeCell::new(Kept { turn: 0, thing: None }),
        }
    }

    /// Locks it, unless it is locked.
    #[inline]
    fn try_lock(&self) -> Option<Locked<'_, T>> {
        let locked = self.locked.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        locked.is_ok().then(|| Locked(self, PhantomData))
    }
}

impl<T> Table<T> {
    pub(crate) const fn new(kind: &'static str, tag: u64) -> Self {
        assert!(0 < tag && tag < 16);
        Table {
            kind,
            tag,
            chunks: [const { AtomicPtr::new(ptr::null_mut()) }; CHUNKS],
            free: AtomicU64::new(0),
            used: AtomicU32::new(0),
            places: PhantomData,
        }
    }

    /// The number of a thing.
    pub(crate) fn add(&self, thing: T) -> u64 {
        loop {
            let index = self.take();
            let place = self.make(index);
            // Somebody may look at it just now by a number of before, and may be missing in a forked child: then it stays unused.
            let Some(mut kept) = retried(|| place.try_lock()) else { continue };
            kept.turn += 1;
            kept.thing = Some(thing);
            place.owner.store(process::id(), Ordering::Release);
            return self.tag << 60 | u64::from(kept.turn) << 32 | u64::from(index);
        }
    }

    /// The thing of this number, as long as what is returned lives.
    #[inline]
    pub(crate) fn get(&self, number: u64) -> Outcome<Used<'_, T>> {
        self.lock(number).map(Used)
    }

    /// A copy of the thing of this number, which many threads may ask for at once.
    pub(crate) fn copy(&self, number: u64) -> Outcome<T>
    where
        T: Clone,
    {
        Ok(self.lock_soon(number).map(Used)?.clone())
    }

    /// Takes the thing away: its number stands for nothing from now on, unless somebody uses it for longer than it takes to copy it.
    pub(crate) fn remove(&self, number: u64) -> Outcome<T> {
        let mut kept = self.lock_soon(number)?;
        let thing = kept.thing.take().expect("it was looked at");
        // A place that was taken so often is not taken again: its numbers would be those of before.
        if kept.turn < MAX_TURN {
            drop(kept);
            self.give_back(index(number));
        }
        Ok(thing)
    }

    #[inline]
    fn lock(&self, number: u64) -> Outcome<Locked<'_, T>> {
        let place = if number >> 60 == self.tag { self.place(index(number)) } else { None };
        let place = place.ok_or_else(|| self.gone(number))?;
        let owner = place.owner.load(Ordering::Acquire);
        if owner != process::id() && owner != 0 {
            return Err(self.foreign());
        }
        let kept = place.try_lock().ok_or(Failed::InUse(self.kind))?;
        match kept.turn == turn(number) && kept.thing.is_some() {
            true => Ok(kept),
            false => Err(self.gone(number)),
        }
    }

    /// The same, also where somebody copies it just now, which takes no longer than an instant.
    fn lock_soon(&self, number: u64) -> Outcome<Locked<'_, T>> {
        let locked = retried(|| match self.lock(number) {
            Err(Failed::InUse(_)) => None,
            locked => Some(locked),
        });
        locked.unwrap_or(Err(Failed::InUse(self.kind)))
    }

    #[cold]
    fn gone(&self, number: u64) -> Failed {
        let message = match number {
            0 => format!("the {} is null", self.kind),
            _ => format!("this is no {} any more: it was closed, or is something else", self.kind),
        };
        Error::invalid(message).into()
    }

    #[cold]
    fn foreign(&self) -> Failed {
        let message = format!(
            "the {} belongs to the process that made it, not to its child: a child connects to the log (`bulla_connect`), or opens it anew to read",
            self.kind
        );
        Error::new(ErrorKind::Closed, message).into()
    }

    /// Takes a place that is free, or one that never was taken.
    fn take(&self) -> u32 {
        let mut free = self.free.load(Ordering::Acquire);
        while let Some(first) = low(free).checked_sub(1) {
            let after = changed(free, self.make(first).next.load(Ordering::Relaxed));
            match self.free.compare_exchange_weak(free, after, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return first,
                Err(now) => free = now,
            }
        }
        self.used.fetch_add(1, Ordering::Relaxed)
    }

    fn give_back(&self, index: u32) {
        let next = &self.make(index).next;
        let mut free = self.free.load(Ordering::Relaxed);
        loop {
            next.store(low(free), Ordering::Relaxed);
            let after = changed(free, index + 1);
            match self.free.compare_exchange_weak(free, after, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => free = now,
            }
        }
    }

    /// A place; `None` before its chunk is made.
    #[inline]
    fn place(&self, index: u32) -> Option<&Place<T>> {
        let (chunk, at) = split(index);
        let first = self.chunks.get(chunk)?.load(Ordering::Acquire);
        if first.is_null() {
            return None;
        }
        // SAFETY: `make` put it there, the first of so many places, which are never freed.
        Some(unsafe { &std::slice::from_raw_parts(first, FIRST << chunk)[at] })
    }

    /// A place, whose chunk is made now where nobody did. That is no `OnceLock`: others would wait for whoever makes it.
    fn make(&self, index: u32) -> &Place<T> {
        if let Some(place) = self.place(index) {
            return place;
        }
        let (chunk, _) = split(index);
        let made = (0..FIRST << chunk).map(|_| Place::<T>::new()).collect::<Box<[_]>>();
        let made = Box::into_raw(made);
        let first = &self.chunks[chunk];
        if first.compare_exchange(ptr::null_mut(), made.cast(), Ordering::AcqRel, Ordering::Acquire).is_err()
        {
            // SAFETY: it came from a box, and nobody else has it, since another thread's is kept.
            drop(unsafe { Box::from_raw(made) });
        }
        self.place(index).expect("it was made")
    }
}

/// What `look` finds once it does, which is an instant away as a rule.
#[inline]
fn retried<R>(mut look: impl FnMut() -> Option<R>) -> Option<R> {
    for _ in 0..TRIES {
        if let Some(found) = look() {
            return Some(found);
        }
        std::thread::yield_now();
    }
    None
}

/// The list of free places once it begins with `first`, as [`Place::next`] has it. How often it changed tells it from one that began with the
/// same before.
fn changed(free: u64, first: u32) -> u64 {
    (free >> 32).wrapping_add(1) << 32 | u64::from(first)
}

#[allow(clippy::cast_possible_truncation, reason = "the lower half")]
fn low(number: u64) -> u32 {
    number as u32
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

fn index(number: u64) -> u32 {
    low(number)
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

    #[test]
    fn what_another_copies_just_now_is_removed_all_the_same() {
        let table = Table::new("thing", 15);
        let until = |seen: &AtomicBool| {
            while !seen.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
        };
        let removed_at_once = (0..100).filter(|_| {
            let number = table.add(1);
            let (held, removing) = (AtomicBool::new(false), AtomicBool::new(false));
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let used = table.get(number);
                    held.store(true, Ordering::Release);
                    until(&removing);
                    // As long as a copy takes, and somewhat more.
                    (0..1000).for_each(|_| std::hint::spin_loop());
                    drop(used);
                });
                until(&held);
                removing.store(true, Ordering::Release);
                match table.remove(number) {
                    Ok(_) => true,
                    Err(Failed::InUse(_)) => false,
                    Err(_) => panic!("it is there"),
                }
            })
        });
        // Whoever copies may be without a processor for longer than is tried, now and then.
        assert!(removed_at_once.count() > 50);
    }

    #[test]
    fn many_threads_add_and_remove_and_each_number_is_its_own() {
        let table = Table::new("thing", 15);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let table = &table;
                scope.spawn(move || {
                    let mut there = Vec::new();
                    for round in 0..20_000_usize {
                        there.push((table.add((thread, round)), round));
                        if round % 7 != 0 {
                            let (number, kept) = there.swap_remove(round % there.len());
                            assert!(table.remove(number).is_ok_and(|thing| thing == (thread, kept)));
                        }
                    }
                    for (number, round) in there {
                        assert!(table.copy(number).is_ok_and(|thing| thing == (thread, round)));
                    }
                });
            }
        });
    }

    /// So a forked child finds it where threads that it has not got were at work.
    #[test]
    fn what_nobody_lets_go_of_is_not_waited_for() {
        let table = Table::new("thing", 15);
        let numbers = (0..3).map(|thing| table.add(thing)).collect::<Vec<_>>();
        let place = table.place(1).unwrap();
        let held = place.try_lock();
        assert!(held.is_some());
        // It is free, and somebody looked at it.
        table.give_back(1);
        let next = table.add(7);
        assert!(index(next) == 3 && table.copy(next).is_ok_and(|thing| thing == 7));
        assert!(matches!(table.copy(numbers[1]), Err(Failed::InUse(_))));
        // That it is another process's is said first.
        place.owner.store(process::id() + 1, Ordering::Release);
        let closed =
            |outcome| matches!(outcome, Err(Failed::Error(error)) if error.kind() == ErrorKind::Closed);
        assert!(closed(table.copy(numbers[1])) && closed(table.remove(numbers[1])));
        drop(held);
    }
}

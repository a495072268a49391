//! Subjects that were met lately, so that sealing need not ask the database.
//!
//! - It never holds more than its capacity. Where there is no room, the clock algorithm drops a subject that nobody asked for since
//!   the clock's hand passed it last.
//! - No text of a subject is in it, only a 128-bit tag under a key that the process has made for itself.
//! - A look-up takes the lock of one shard, shared with other look-ups, and neither allocates nor calls the system. Whoever looks up
//!   many keeps the locks that it took ([`Cache::look`]), and has some of them looked for before what was found is looked at
//!   ([`Look::each`]): the processor then fetches what it needs for several of them at a time.

use hashbrown::HashTable;
use siphasher::sip128::{Hasher128, SipHasher24};
use std::hash::Hasher;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

use bulla_crypto::environment::Random;
use bulla_crypto::subject::Subject;
use bulla_store::Result;

/// Stands for a subject's text in this process.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Tag {
    /// Says which shard the tag belongs to, and where it is looked for there.
    high: u64,
    low: u64,
}

/// The cache.
pub(super) struct Cache {
    key: [u8; 16],
    shards: Box<[RwLock<Shard>]>,
}

/// Look-ups, which keep the locks of the shards that they looked into. Whoever has one of these waits for no other lock: where a
/// shard's cannot be had at once, it lets go of all of them first. Two of these, and two who write, would else wait for each
/// other.
pub(super) struct Look<'a> {
    cache: &'a Cache,
    shards: [Option<RwLockReadGuard<'a, Shard>>; SHARDS],
}

/// So many look-ups go on at a time.
const AT_A_TIME: usize = 16;

impl Look<'_> {
    /// Gives `met` the subject of each name, or none where it is not here, in their order and as long as it says to go on.
    pub(super) fn each(&mut self, subjects: &[&str], mut met: impl FnMut(Option<&Subject>) -> bool) {
        let mut room = [Tag { high: 0, low: 0 }; AT_A_TIME];
        for subjects in subjects.chunks(AT_A_TIME) {
            let tags = &mut room[..subjects.len()];
            for (tag, subject) in tags.iter_mut().zip(subjects) {
                *tag = self.cache.tag(subject);
                self.enter(self.cache.shard_of(*tag));
            }
            // A lock that was let go of for another one is taken again, and the place in its shard may be another by then.
            let slots = self.slots(tags);
            let go_on = match slots {
                Some(slots) => slots[..tags.len()].iter().all(|slot| met(slot.map(Slot::ask))),
                None => tags.iter().all(|tag| met(self.get(*tag))),
            };
            if !go_on {
                return;
            }
        }
    }

    /// Where the subjects of these tags are, if all of their shards are locked.
    fn slots(&self, tags: &[Tag]) -> Option<[Option<&Slot>; AT_A_TIME]> {
        let mut slots = [None; AT_A_TIME];
        for (slot, tag) in slots.iter_mut().zip(tags) {
            let shard = self.shards[self.cache.shard_of(*tag)].as_ref()?;
            *slot = shard.place(*tag).map(|place| &shard.slots[place]);
        }
        // The keys lie elsewhere: from here on they come all at once, and not each when it is taken.
        for slot in slots.iter().flatten() {
            black_box(slot.subject.key.bytes()[0]);
        }
        Some(slots)
    }

    /// The subject of a tag, if it is here.
    fn get(&mut self, tag: Tag) -> Option<&Subject> {
        let shard = self.cache.shard_of(tag);
        self.enter(shard);
        self.shards[shard].as_ref()?.get(tag)
    }

    /// Takes the lock of a shard, where that is not done.
    #[inline]
    fn enter(&mut self, shard: usize) {
        if self.shards[shard].is_some() {
            return;
        }
        let lock = &self.cache.shards[shard];
        let guard = match lock.try_read() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                self.shards = [const { None }; SHARDS];
                read(lock)
            }
        };
        self.shards[shard] = Some(guard);
    }
}

/// The most shards. Hardly more threads than that seal at the same time.
const SHARDS: usize = 64;

impl Cache {
    /// A cache of up to `capacity` subjects.
    ///
    /// # Errors
    /// Where there is no randomness.
    pub(super) fn new(capacity: usize, random: &dyn Random) -> Result<Self> {
        let mut key = [0; 16];
        random.fill(&mut key)?;
        let shards = SHARDS.min(capacity).max(1);
        let of = |shard| capacity / shards + usize::from(shard < capacity % shards);
        Ok(Cache { key, shards: (0..shards).map(|shard| RwLock::new(Shard::new(of(shard)))).collect() })
    }

    /// The tag of a subject.
    pub(super) fn tag(&self, subject: &str) -> Tag {
        let mut hasher = SipHasher24::new_with_key(&self.key);
        hasher.write(subject.as_bytes());
        let hash = hasher.finish128();
        Tag { high: hash.h1, low: hash.h2 }
    }

    /// The subject of a tag, if it is here.
    pub(super) fn get(&self, tag: Tag) -> Option<Subject> {
        read(&self.shards[self.shard_of(tag)]).get(tag).cloned()
    }

    /// Begins many look-ups.
    pub(super) fn look(&self) -> Look<'_> {
        Look { cache: self, shards: [const { None }; SHARDS] }
    }

    /// Keeps a subject, dropping another where there is no room.
    pub(super) fn keep(&self, tag: Tag, subject: &Subject) {
        write(&self.shards[self.shard_of(tag)]).keep(tag, subject);
    }

    /// Drops the subjects of these numbers.
    pub(super) fn forget(&self, numbers: &[u64]) {
        self.shards.iter().for_each(|shard| write(shard).retain(|number| !numbers.contains(&number)));
    }

    /// Drops everything.
    pub(super) fn clear(&self) {
        self.shards.iter().for_each(|shard| write(shard).retain(|_| false));
    }

    pub(super) fn shard_of(&self, tag: Tag) -> usize {
        let shards = self.shards.len() as u64;
        usize::try_from(tag.high % shards).unwrap_or_default()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.shards.iter().map(|shard| read(shard).slots.len()).sum()
    }
}

fn read(shard: &RwLock<Shard>) -> RwLockReadGuard<'_, Shard> {
    shard.read().unwrap_or_else(PoisonError::into_inner)
}

fn write(shard: &RwLock<Shard>) -> RwLockWriteGuard<'_, Shard> {
    shard.write().unwrap_or_else(PoisonError::into_inner)
}

/// A part of the cache, with a clock of its own. Neighbours share no cache line.
#[repr(align(128))]
struct Shard {
    /// The places in `slots`.
    table: HashTable<u32>,
    slots: Vec<Slot>,
    capacity: usize,
    hand: usize,
}

struct Slot {
    tag: Tag,
    subject: Subject,
    /// Whether somebody asked for it since the hand passed.
    used: AtomicBool,
}

impl Slot {
    fn ask(&self) -> &Subject {
        // What is written is everybody's.
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
        &self.subject
    }
}

impl Shard {
    fn new(capacity: usize) -> Self {
        Shard {
            table: HashTable::new(),
            slots: Vec::new(),
            capacity: capacity.min(u32::MAX as usize),
            hand: 0,
        }
    }

    #[inline]
    fn get(&self, tag: Tag) -> Option<&Subject> {
        Some(self.slots[self.place(tag)?].ask())
    }

    fn place(&self, tag: Tag) -> Option<usize> {
        let found = self.table.find(tag.low, |place| self.slots[*place as usize].tag == tag);
        found.map(|place| *place as usize)
    }

    fn keep(&mut self, tag: Tag, subject: &Subject) {
        if self.capacity == 0 {
            return;
        }
        let slot = Slot { tag, subject: subject.clone(), used: AtomicBool::new(false) };
        if let Some(place) = self.place(tag) {
            self.slots[place] = slot;
        } else if self.slots.len() < self.capacity {
            self.slots.push(slot);
            self.enter(self.slots.len() - 1);
        } else {
            let place = self.turn();
            self.leave(place);
            self.slots[place] = slot;
            self.enter(place);
        }
    }

    /// The place whose subject makes room: the first that was not asked for since the hand passed it last.
    fn turn(&mut self) -> usize {
        loop {
            let place = self.hand % self.slots.len();
            self.hand = place + 1;
            if !std::mem::take(self.slots[place].used.get_mut()) {
                return place;
            }
        }
    }

    fn enter(&mut self, place: usize) {
        let Shard { table, slots, .. } = self;
        let rehash = |place: &u32| slots[*place as usize].tag.low;
        // It fits, because the capacity is limited.
        let number = u32::try_from(place).unwrap_or(u32::MAX);
        table.insert_unique(slots[place].tag.low, number, rehash);
    }

    fn leave(&mut self, place: usize) {
        let found = self.table.find_entry(self.slots[place].tag.low, |at| *at as usize == place);
        if let Ok(entry) = found {
            entry.remove();
        }
    }

    fn retain(&mut self, keep: impl Fn(u64) -> bool) {
        let before = self.slots.len();
        self.slots.retain(|slot| keep(slot.subject.number));
        if self.slots.len() < before {
            self.table.clear();
            self.hand = 0;
            (0..self.slots.len()).for_each(|place| self.enter(place));
        }
    }
}

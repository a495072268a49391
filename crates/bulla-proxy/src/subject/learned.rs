//! [`Learned`]: whose data keys are whose names do not say.
//!
//! Invariants:
//! - it takes no more than the memory that it was given, by its own count of bytes; what is forgotten for want of room is counted, and
//!   the least lately taught or asked for goes first;
//! - what was taught of a key last is what is answered; of a key that was deleted, or written over by a value that does not say,
//!   nothing is.
//!
//! It lives in memory: after a restart nobody is known until keys are written again. Every change is made by one method that is told all of it
//! (`teach`, `forget_key`, `forget_subject`, `forget_database`, `forget_all`, `rename`, `copy`, `swap_databases`), and
//! [`Learned::for_each`] gives what there is. So whoever keeps it across restarts writes a record a call, encrypted under a key of the
//! log's key directory, plays the records back through the same methods, and after `forget_subject` writes anew what is left.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// What one key takes beside its bytes and its subject's: two allocations and a place in a table that is half full.
const OVERHEAD: usize = 112;

/// Keys and whose data they are.
pub struct Learned {
    generations: RwLock<Generations>,
    /// The most bytes of one generation.
    most: usize,
    dropped: AtomicU64,
}

#[derive(Default)]
struct Generations {
    /// What was taught or asked for since the other one was full.
    young: Generation,
    old: Generation,
}

#[derive(Default)]
struct Generation {
    databases: HashMap<u32, HashMap<Box<[u8]>, Box<str>>>,
    bytes: usize,
}

impl Learned {
    /// Has room for about `bytes` of keys and subjects.
    pub fn new(bytes: usize) -> Self {
        Learned { generations: RwLock::default(), most: bytes / 2, dropped: AtomicU64::new(0) }
    }

    /// Whose data a key is. `false` where it is larger than all the room there is, and so is not kept.
    pub fn teach(&self, database: u32, key: &[u8], subject: &str) -> bool {
        let full = {
            let mut generations = self.write();
            generations.take(database, key);
            self.put(&mut generations, database, key.into(), subject.into())
        };
        full.is_none_or(|dropped| {
            self.dropped.fetch_add(dropped.count(), Ordering::Relaxed);
            dropped.bytes <= self.most
        })
    }

    /// Whose data a key is, where that was taught.
    pub fn lookup(&self, database: u32, key: &[u8]) -> Option<String> {
        {
            let generations = self.read();
            if let Some(subject) = generations.young.get(database, key) {
                return Some(subject.to_owned());
            }
            generations.old.get(database, key)?;
        }
        let mut generations = self.write();
        let (key, subject) = generations.take(database, key)?;
        let told = subject.to_string();
        let full = self.put(&mut generations, database, key, subject);
        drop(generations);
        self.dropped.fetch_add(full.map_or(0, |dropped| dropped.count()), Ordering::Relaxed);
        Some(told)
    }

    /// The key was deleted, or what it is of is no longer known.
    pub fn forget_key(&self, database: u32, key: &[u8]) {
        self.write().take(database, key);
    }

    /// The person was erased. How many keys were theirs.
    pub fn forget_subject(&self, subject: &str) -> u64 {
        let mut generations = self.write();
        let Generations { young, old } = &mut *generations;
        [young, old].into_iter().map(|generation| generation.forget_subject(subject)).sum()
    }

    /// All keys of a database were deleted.
    pub fn forget_database(&self, database: u32) {
        let mut generations = self.write();
        let Generations { young, old } = &mut *generations;
        for generation in [young, old] {
            let keys = generation.databases.remove(&database).unwrap_or_default();
            generation.bytes -= keys.iter().map(|(key, subject)| cost(key, subject)).sum::<usize>();
        }
    }

    /// All keys were deleted.
    pub fn forget_all(&self) {
        let all = std::mem::take(&mut *self.write());
        drop(all);
    }

    /// A key was given another name or moved to another database, over whatever was there.
    pub fn rename(&self, from: (u32, &[u8]), to: (u32, &[u8])) {
        self.replace(from, to, true);
    }

    /// A key was copied over whatever was there.
    pub fn copy(&self, from: (u32, &[u8]), to: (u32, &[u8])) {
        self.replace(from, to, false);
    }

    /// Two databases took each other's place.
    pub fn swap_databases(&self, one: u32, other: u32) {
        let mut generations = self.write();
        let Generations { young, old } = &mut *generations;
        for generation in [young, old] {
            let (first, second) = (generation.databases.remove(&one), generation.databases.remove(&other));
            generation.databases.extend(second.map(|keys| (one, keys)));
            // Of one and the same database there is nothing left to be put back by now.
            generation.databases.extend(first.map(|keys| (other, keys)));
        }
    }

    /// All that was taught: database, key, subject. Nothing can be taught meanwhile.
    pub fn for_each(&self, visit: &mut dyn FnMut(u32, &[u8], &str)) {
        let generations = self.read();
        for (database, keys) in generations.young.databases.iter().chain(&generations.old.databases) {
            for (key, subject) in keys {
                visit(*database, key, subject);
            }
        }
    }

    /// Of how many keys it is known.
    pub fn count(&self) -> u64 {
        let generations = self.read();
        generations.young.count() + generations.old.count()
    }

    /// How many keys were forgotten for want of room.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    fn replace(&self, from: (u32, &[u8]), to: (u32, &[u8]), moved: bool) {
        if from == to {
            return;
        }
        let mut generations = self.write();
        let known = match moved {
            true => generations.take(from.0, from.1).map(|(_, subject)| subject),
            false => {
                let Generations { young, old } = &*generations;
                young.get(from.0, from.1).or_else(|| old.get(from.0, from.1)).map(Box::from)
            }
        };
        generations.take(to.0, to.1);
        let full = known.and_then(|subject| self.put(&mut generations, to.0, to.1.into(), subject));
        drop(generations);
        self.dropped.fetch_add(full.map_or(0, |dropped| dropped.count()), Ordering::Relaxed);
    }

    /// Puts a key that neither generation has into the young one, and gives what had to go for it.
    fn put(
        &self,
        generations: &mut Generations,
        database: u32,
        key: Box<[u8]>,
        subject: Box<str>,
    ) -> Option<Generation> {
        let cost = cost(&key, &subject);
        let mut full = None;
        if cost > self.most {
            let mut refused = Generation::default();
            refused.put(database, key, subject);
            return Some(refused);
        }
        if generations.young.bytes + cost > self.most {
            let young = std::mem::take(&mut generations.young);
            full = Some(std::mem::replace(&mut generations.old, young));
        }
        generations.young.put(database, key, subject);
        full
    }

    fn read(&self) -> RwLockReadGuard<'_, Generations> {
        self.generations.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Generations> {
        self.generations.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Generations {
    fn take(&mut self, database: u32, key: &[u8]) -> Option<(Box<[u8]>, Box<str>)> {
        self.young.take(database, key).or_else(|| self.old.take(database, key))
    }
}

impl Generation {
    fn get(&self, database: u32, key: &[u8]) -> Option<&str> {
        self.databases.get(&database)?.get(key).map(|subject| &**subject)
    }

    fn put(&mut self, database: u32, key: Box<[u8]>, subject: Box<str>) {
        self.bytes += cost(&key, &subject);
        self.databases.entry(database).or_default().insert(key, subject);
    }

    fn take(&mut self, database: u32, key: &[u8]) -> Option<(Box<[u8]>, Box<str>)> {
        let taken = self.databases.get_mut(&database)?.remove_entry(key)?;
        self.bytes -= cost(&taken.0, &taken.1);
        Some(taken)
    }

    fn forget_subject(&mut self, subject: &str) -> u64 {
        let (mut keys, mut bytes) = (0, 0);
        for database in self.databases.values_mut() {
            database.retain(|key, known| {
                let theirs = **known == *subject;
                keys += u64::from(theirs);
                bytes += if theirs { cost(key, known) } else { 0 };
                !theirs
            });
        }
        self.bytes -= bytes;
        keys
    }

    fn count(&self) -> u64 {
        self.databases.values().map(|keys| keys.len() as u64).sum()
    }
}

fn cost(key: &[u8], subject: &str) -> usize {
    key.len() + subject.len() + OVERHEAD
}

/// Keys and subjects are somebody's data.
impl std::fmt::Debug for Learned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Learned({} keys)", self.count())
    }
}

//! [`Learned`]: whose data keys are whose names do not say.
//!
//! Invariants:
//! - it takes no more than the memory that it was given, by its own count of bytes; what is forgotten for want of room is counted, and
//!   the least lately taught or asked for goes first;
//! - what was taught of a key last is what is answered; of a key that was deleted, or written over by a value that does not say,
//!   nothing is;
//! - of a key nothing is answered where nobody can know what was last: see [`Recent`];
//! - of a person who was erased nothing is answered, and nothing is given out to be kept.
//!
//! It lives in memory. Whoever keeps it across restarts ([`Learned::begin_keeping`]) is told what has changed ([`Learned::unkept`]): lessons by
//! an id that no other lesson of this process has, so that one which holds no more is taken back by its id alone, which says nothing of
//! anybody. Where much has changed at once, all of it is given out anew.

use super::recent::{Change, Recent, Span};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// What one key takes beside its bytes and its subject's: two allocations and a place in a table that is half full.
const OVERHEAD: usize = 128;
/// Where what changed takes more bytes, all is given out anew.
const MOST_CHANGES: usize = 16 << 20;

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
    /// How many lessons there ever were: the id of the next one.
    lessons: u64,
    /// What has changed since it was asked last; `None` where nobody asks.
    changes: Option<Changes>,
    /// What became of keys of which nothing is known, or that were copied.
    recent: Recent,
}

/// What one key was taught.
struct Known {
    subject: Box<str>,
    lesson: u64,
    /// When it was said last, and by whom.
    change: Change,
}

/// What has changed, as far as that is less than all.
#[derive(Default)]
struct Changes {
    taught: Vec<(u32, Box<[u8]>, u64)>,
    forgotten: Vec<u64>,
    bytes: usize,
    all: bool,
}

/// Whose data a key is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownKey {
    /// The lesson by which that is known.
    pub lesson: u64,
    /// The key's database.
    pub database: u32,
    /// The key.
    pub key: Box<[u8]>,
    /// Whose data it is.
    pub subject: Box<str>,
}

/// What has changed since it was asked last.
#[derive(Debug, Default)]
pub struct Unkept {
    /// Whether `known` is all there is, and nothing else holds any more.
    pub all: bool,
    /// What is known by lessons since then.
    pub known: Vec<KnownKey>,
    /// The lessons that hold no more.
    pub forgotten: Vec<u64>,
}

#[derive(Default)]
struct Generation {
    databases: HashMap<u32, HashMap<Box<[u8]>, Known>>,
    bytes: usize,
}

impl Learned {
    /// Has room for about `bytes` of keys and subjects.
    pub fn new(bytes: usize) -> Self {
        Learned { generations: RwLock::default(), most: bytes / 2, dropped: AtomicU64::new(0) }
    }

    /// Whose data a key is, as was said by a command in this span. Whether it is contested: another command may have changed the key after
    /// that, and it is to be forgotten once this one is recorded ([`Learned::forget_contested`]).
    pub fn teach(&self, database: u32, key: &[u8], subject: &str, span: Span) -> bool {
        let mut generations = self.write();
        let before = generations.take(database, key);
        let contested = generations.contest(database, key, span);
        let (key, known, contested) = match before {
            // What was known before is no lesson, whichever of both was last.
            Some((key, known)) if *known.subject == *subject => {
                (key, Known { change: known.change.followed_by(span), ..known }, contested)
            }
            before => {
                let known = before.map(|(_, known)| known);
                let last = known.as_ref().map(|known| known.change);
                generations.forgets(known);
                let contested = contested || last.is_some_and(|last| last.is_contested_by(span));
                let change = last.map_or_else(|| span.into(), |last| last.followed_by(span));
                (key.into(), generations.teaches(database, key, subject.into(), change), contested)
            }
        };
        let change = if contested { known.change.contested() } else { known.change };
        let full = self.put(&mut generations, database, key, Known { change, ..known });
        drop(generations);
        self.dropped.fetch_add(full.map_or(0, |dropped| dropped.count()), Ordering::Relaxed);
        contested
    }

    /// Whose data a key is, where that was taught.
    pub fn lookup(&self, database: u32, key: &[u8]) -> Option<String> {
        {
            let generations = self.read();
            if let Some(known) = generations.young.get(database, key) {
                return Some(known.subject.to_string());
            }
            generations.old.get(database, key)?;
        }
        let mut generations = self.write();
        let (key, known) = generations.take(database, key)?;
        let told = known.subject.to_string();
        let full = self.put(&mut generations, database, key, known);
        drop(generations);
        self.dropped.fetch_add(full.map_or(0, |dropped| dropped.count()), Ordering::Relaxed);
        Some(told)
    }

    /// The key was deleted in this span, or what it is of is no longer known.
    pub fn forget_key(&self, database: u32, key: &[u8], span: Span) {
        let mut generations = self.write();
        generations.contest(database, key, span);
        generations.unlearn(database, key, span);
    }

    /// The same where it is contested whose data a key is, of which a command in this span said something.
    pub fn forget_contested(&self, database: u32, key: &[u8], span: Span) {
        let mut generations = self.write();
        if generations.get(database, key).is_some_and(|known| known.change.is_contested_by(span)) {
            generations.unlearn(database, key, span);
        }
    }

    /// There was no such key any more when a command was carried out in this span. What another connection said of the key after that command
    /// came may be of a later one, and is not forgotten.
    pub fn forget_gone(&self, database: u32, key: &[u8], span: Span) {
        let mut generations = self.write();
        if generations.get(database, key).is_some_and(|known| known.change.is_before(span)) {
            let taken = generations.take(database, key);
            generations.forgets(taken.map(|(_, known)| known));
        }
    }

    /// The person was erased. How many keys were theirs.
    pub fn forget_subject(&self, subject: &str) -> u64 {
        let mut generations = self.write();
        let Generations { young, old, .. } = &mut *generations;
        let keys = [young, old].into_iter().map(|generation| generation.forget_subject(subject)).sum();
        generations.changed(keys > 0);
        keys
    }

    /// All keys of a database were deleted in this span.
    pub fn forget_database(&self, database: u32, span: Span) {
        let mut generations = self.write();
        generations.change_all(span, |of| of == database);
        let Generations { young, old, .. } = &mut *generations;
        for generation in [young, old] {
            let keys = generation.databases.remove(&database).unwrap_or_default();
            generation.bytes -= keys.iter().map(|(key, known)| cost(key, &known.subject)).sum::<usize>();
        }
    }

    /// All keys were deleted in this span.
    pub fn forget_all(&self, span: Span) {
        let mut generations = self.write();
        generations.change_all(span, |_| true);
        let all = (std::mem::take(&mut generations.young), std::mem::take(&mut generations.old));
        drop(generations);
        drop(all);
    }

    /// What was known before could not be read: nothing is known.
    pub fn forget_recalled(&self) {
        let mut generations = self.write();
        generations.changed(true);
        let all = (std::mem::take(&mut generations.young), std::mem::take(&mut generations.old));
        drop(generations);
        drop(all);
    }

    /// A key was copied over whatever was there. Whether it is contested whose data that is, as [`Learned::teach`] says.
    pub fn copy(&self, from: (u32, &[u8]), to: (u32, &[u8]), span: Span) -> bool {
        if from == to {
            return false;
        }
        let mut generations = self.write();
        let known = generations.get(from.0, from.1).map(|known| (known.subject.clone(), known.change));
        let mut contested = generations.contest(from.0, from.1, span);
        contested |= generations.contest(to.0, to.1, span);
        contested |= known.as_ref().is_some_and(|(_, last)| last.is_contested_by(span));
        contested |= generations.unlearn(to.0, to.1, span);
        if let Some((_, last)) = &known {
            generations.recent.remember(from.0, from.1, *last);
        }
        // Whoever turns out to have changed the first one at the same time may have changed what is there now.
        generations.recent.note(from.0, from.1, span, Some((to.0, to.1.into())));
        let full = known.and_then(|(subject, _)| {
            let change = Change::from(span);
            let change = if contested { change.contested() } else { change };
            let known = generations.teaches(to.0, to.1, subject, change);
            self.put(&mut generations, to.0, to.1.into(), known)
        });
        drop(generations);
        self.dropped.fetch_add(full.map_or(0, |dropped| dropped.count()), Ordering::Relaxed);
        contested
    }

    /// Two databases took each other's place in this span.
    pub fn swap_databases(&self, one: u32, other: u32, span: Span) {
        let mut generations = self.write();
        generations.change_all(span, |of| of == one || of == other);
        // Nobody can tell in which of both these were changed.
        let mut contested = Vec::<Box<[u8]>>::new();
        generations.for_each(&mut |_, key, known| {
            let recent = &generations.recent;
            let contests = || [one, other].into_iter().any(|database| recent.contests(database, key, span));
            if known.change.is_contested_by(span) || contests() {
                contested.push(key.into());
            }
        });
        for key in contested {
            generations.forget(one, &key);
            generations.forget(other, &key);
        }
        let Generations { young, old, .. } = &mut *generations;
        for generation in [young, old] {
            let (first, second) = (generation.databases.remove(&one), generation.databases.remove(&other));
            generation.databases.extend(second.map(|keys| (one, keys)));
            // Of one and the same database there is nothing left to be put back by now.
            generation.databases.extend(first.map(|keys| (other, keys)));
        }
    }

    /// All that is known: database, key, subject. Nothing can be taught meanwhile.
    pub fn for_each(&self, visit: &mut dyn FnMut(u32, &[u8], &str)) {
        self.read().for_each(&mut |database, key, known| visit(database, key, &known.subject));
    }

    /// Has `fill` teach what was known before. Nobody is forgotten meanwhile: who is erased is forgotten after it.
    pub fn fill<T>(&self, fill: impl FnOnce(&mut dyn FnMut(u32, &[u8], &str)) -> T) -> T {
        let mut generations = self.write();
        let mut full = 0;
        let filled = fill(&mut |database, key, subject| {
            let before = generations.take(database, key);
            generations.forgets(before.map(|(_, known)| known));
            let known = generations.teaches(database, key, subject.into(), Change::default());
            full +=
                self.put(&mut generations, database, key.into(), known).map_or(0, |dropped| dropped.count());
        });
        drop(generations);
        self.dropped.fetch_add(full, Ordering::Relaxed);
        filled
    }

    /// From now on somebody asks what has changed. The first answer has all there is.
    pub fn begin_keeping(&self) {
        self.write().changes = Some(Changes { all: true, ..Changes::default() });
    }

    /// The next answer has all there is.
    pub fn keep_all_anew(&self) {
        self.write().changed(true);
    }

    /// What has changed since this was asked last; `None` where that is nothing.
    pub fn unkept(&self) -> Option<Unkept> {
        let changes = self.write().changes.as_mut().map(std::mem::take)?;
        let Changes { taught, forgotten, all, .. } = changes;
        let mut known = Vec::new();
        let generations = self.read();
        if all {
            generations.for_each(&mut |database, key, it| {
                let (key, subject) = (key.into(), it.subject.clone());
                known.push(KnownKey { lesson: it.lesson, database, key, subject });
            });
        } else {
            for (database, key, lesson) in taught {
                // What was learned and forgotten since then nobody has to know.
                if let Some(it) = generations.get(database, &key).filter(|it| it.lesson == lesson) {
                    let subject = it.subject.clone();
                    known.push(KnownKey { lesson, database, key, subject });
                }
            }
        }
        let is_any = all || !known.is_empty() || !forgotten.is_empty();
        is_any.then_some(Unkept { all, known, forgotten })
    }

    /// Leaves of these what is still known, by the same lesson.
    pub fn retain_known(&self, known: &mut Vec<KnownKey>) {
        let generations = self.read();
        let is_known =
            |it: &KnownKey| generations.get(it.database, &it.key).is_some_and(|now| now.lesson == it.lesson);
        known.retain(is_known);
    }

    /// These are among what has changed, as far as they are still known.
    pub fn keep_later(&self, known: Vec<KnownKey>) {
        let mut generations = self.write();
        known.into_iter().for_each(|it| generations.taught(it.database, &it.key, it.lesson));
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

    /// Puts a key that neither generation has into the young one, and gives what had to go for it.
    fn put(
        &self,
        generations: &mut Generations,
        database: u32,
        key: Box<[u8]>,
        known: Known,
    ) -> Option<Generation> {
        let cost = cost(&key, &known.subject);
        let mut full = None;
        if cost > self.most {
            let mut refused = Generation::default();
            generations.forgets_lesson(known.lesson);
            refused.put(database, key, known);
            return Some(refused);
        }
        if generations.young.bytes + cost > self.most {
            let young = std::mem::take(&mut generations.young);
            let dropped = std::mem::replace(&mut generations.old, young);
            generations.changed(dropped.bytes > 0);
            full = Some(dropped);
        }
        generations.young.put(database, key, known);
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
    fn get(&self, database: u32, key: &[u8]) -> Option<&Known> {
        self.young.get(database, key).or_else(|| self.old.get(database, key))
    }

    fn take(&mut self, database: u32, key: &[u8]) -> Option<(Box<[u8]>, Known)> {
        self.young.take(database, key).or_else(|| self.old.take(database, key))
    }

    /// Whether a command in this span was carried out at the same time as another one that changed the key, or may have been. Where that one
    /// copied it, nothing is known of the copy from now on.
    fn contest(&mut self, database: u32, key: &[u8], span: Span) -> bool {
        let all = self.recent.contests_all(span);
        if !all && !self.recent.contests(database, key, span) {
            return false;
        }
        let mut copies = Vec::new();
        self.recent.contest(database, key, span, &mut copies);
        if all {
            // It may have been in another database at that time.
            let databases = self.young.databases.keys().chain(self.old.databases.keys());
            for other in databases.copied().filter(|other| *other != database).collect::<Vec<_>>() {
                self.forget(other, key);
                self.recent.contest(other, key, span, &mut copies);
            }
            if !copies.is_empty() {
                // Nobody can tell in which database a copy is by now.
                self.forget_everything();
            }
        }
        while let Some((database, key)) = copies.pop() {
            self.forget(database, &key);
            self.recent.contest(database, &key, span, &mut copies);
        }
        true
    }

    /// Nothing is known of a key from this span on. Whether that is contested by what was known.
    fn unlearn(&mut self, database: u32, key: &[u8], span: Span) -> bool {
        let last = self.forget(database, key);
        if let Some(last) = last {
            self.recent.remember(database, key, last);
        }
        self.recent.note(database, key, span, None);
        last.is_some_and(|last| last.is_contested_by(span))
    }

    /// Nothing is known of a key any more. When it last was.
    fn forget(&mut self, database: u32, key: &[u8]) -> Option<Change> {
        let (_, known) = self.take(database, key)?;
        let change = known.change;
        self.forgets(Some(known));
        Some(change)
    }

    /// Nothing is known of any key. That there were changes of them is not forgotten.
    fn forget_everything(&mut self) {
        self.changed(true);
        let mut last = 0;
        self.for_each(&mut |_, _, known| last = last.max(known.change.answered));
        self.recent.forget_up_to(last);
        (self.young, self.old) = Default::default();
    }

    /// All keys of such databases were changed in this span. Where others were at the same time, nothing is known of any key.
    fn change_all(&mut self, span: Span, is_it: impl Fn(u32) -> bool) {
        self.changed(true);
        if self.recent.contests_all(span) {
            self.forget_everything();
        }
        let mut contested = false;
        self.for_each(&mut |database, _, known| {
            contested |= is_it(database) && known.change.is_contested_by(span);
        });
        self.recent.note_all(span, contested);
    }

    fn for_each(&self, visit: &mut dyn FnMut(u32, &[u8], &Known)) {
        for (database, keys) in self.young.databases.iter().chain(&self.old.databases) {
            keys.iter().for_each(|(key, known)| visit(*database, key, known));
        }
    }

    /// What a key is to be known by from a new lesson on.
    fn teaches(&mut self, database: u32, key: &[u8], subject: Box<str>, change: Change) -> Known {
        let lesson = self.lessons;
        self.lessons += 1;
        self.taught(database, key, lesson);
        Known { subject, lesson, change }
    }

    fn taught(&mut self, database: u32, key: &[u8], lesson: u64) {
        self.changes(key.len() + size_of::<(u32, Box<[u8]>, u64)>(), |changes| {
            changes.taught.push((database, key.into(), lesson));
        });
    }

    fn forgets(&mut self, known: Option<Known>) {
        if let Some(known) = known {
            self.forgets_lesson(known.lesson);
        }
    }

    fn forgets_lesson(&mut self, lesson: u64) {
        self.changes(size_of::<u64>(), |changes| changes.forgotten.push(lesson));
    }

    /// Takes down a change of so many bytes, unless all is given out anew.
    fn changes(&mut self, bytes: usize, change: impl FnOnce(&mut Changes)) {
        let Some(changes) = self.changes.as_mut().filter(|changes| !changes.all) else { return };
        changes.bytes += bytes;
        match changes.bytes > MOST_CHANGES {
            true => self.changed(true),
            false => change(changes),
        }
    }

    /// More has changed than is taken down one by one, if so much is so.
    fn changed(&mut self, much: bool) {
        if let Some(changes) = self.changes.as_mut().filter(|_| much) {
            *changes = Changes { all: true, ..Changes::default() };
        }
    }
}

impl Generation {
    fn get(&self, database: u32, key: &[u8]) -> Option<&Known> {
        self.databases.get(&database)?.get(key)
    }

    fn put(&mut self, database: u32, key: Box<[u8]>, known: Known) {
        self.bytes += cost(&key, &known.subject);
        self.databases.entry(database).or_default().insert(key, known);
    }

    fn take(&mut self, database: u32, key: &[u8]) -> Option<(Box<[u8]>, Known)> {
        let taken = self.databases.get_mut(&database)?.remove_entry(key)?;
        self.bytes -= cost(&taken.0, &taken.1.subject);
        Some(taken)
    }

    fn forget_subject(&mut self, subject: &str) -> u64 {
        let (mut keys, mut bytes) = (0, 0);
        for database in self.databases.values_mut() {
            database.retain(|key, known| {
                let theirs = *known.subject == *subject;
                keys += u64::from(theirs);
                bytes += if theirs { cost(key, &known.subject) } else { 0 };
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

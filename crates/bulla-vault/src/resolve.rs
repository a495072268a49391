//! From a subject to number and key, from a number to the key.

use std::collections::HashMap;
use std::collections::hash_map::Entry::Vacant;
use std::ops::Range;
use std::sync::Arc;
use zeroize::Zeroizing;

use super::cache::Tag;
use super::index::{self, Entry, IndexRows};
use super::pseudonym::{Pseudonym, Pseudonyms};
use super::record::{Changes, SIXTEENTHS, Skipped, sixteenth};
use super::rows::{self, Person};
use super::snapshot::{Change, Snapshot};
use super::transaction_error::{TransactionError, damaged};
use super::unindexed::Unindexed;
use super::{Access, Shared, Vault};
use bulla_crypto::group::{Missing, Whose};
use bulla_crypto::subject::{Secret, Subject, SubjectKey};
use bulla_crypto::yielding;
use bulla_store::{Error, ErrorKind, Result};

impl Vault {
    /// Numbers and keys of `subjects`, in their order. Those that the vault does not know yet get one, all of them in one
    /// transaction, which is durable when this returns.
    ///
    /// # Errors
    /// `Erased` where one of them is being erased: once that is done, the same person gets a new number. Else where
    /// the vault cannot be read or written.
    pub fn resolve(&self, subjects: &[&str]) -> Result<Vec<Subject>> {
        let mut found = Vec::with_capacity(subjects.len());
        self.resolve_into(subjects, &mut found)?;
        Ok(found)
    }

    /// As [`Vault::resolve`], but appends to `found`. Where all of them are cached and `found` has the room, nothing is allocated.
    ///
    /// # Errors
    /// As [`Vault::resolve`]; `found` may then have some of them.
    pub fn resolve_into(&self, subjects: &[&str], found: &mut Vec<Subject>) -> Result<()> {
        self.check_writable()?;
        let before = found.len();
        self.shared.cache.look().each(subjects, |cached| {
            found.extend(cached.cloned());
            cached.is_some()
        });
        match &subjects[found.len() - before..] {
            [] => Ok(()),
            rest => self.shared.resolve_slowly(rest, found),
        }
    }

    /// Number and key of a subject that the vault knows.
    ///
    /// # Errors
    /// `Erased` while the subject is being erased, else where the vault cannot be read.
    pub fn find(&self, subject: &str) -> Result<Option<Subject>> {
        self.check_owner()?;
        let shared = &*self.shared;
        // A handle that reads does not trust the cache: another process, which writes, may have erased the subject.
        let tag = shared.cache.tag(subject);
        if self.access == Access::Write
            && let Some(cached) = shared.cache.get(tag)
        {
            return Ok(Some(cached));
        }
        let (_, found) = shared.snapshot(|snapshot| {
            let pseudonym = Pseudonym::of(subject, shared.log, &snapshot.keys.pseudonym);
            Ok((snapshot.meta.generation, snapshot.find(pseudonym)?))
        })?;
        Ok(found)
    }

    /// Numbers and keys of those of the subjects that the vault knows, in their order. Who is not known stays so.
    ///
    /// # Errors
    /// `Erased` while one of them is being erased, else where the vault cannot be read.
    pub fn find_all(&self, subjects: &[&str]) -> Result<Vec<Option<Subject>>> {
        self.check_owner()?;
        let shared = &*self.shared;
        let cached = |subject: &&str| match self.access {
            Access::Write => shared.cache.get(shared.cache.tag(subject)),
            Access::Read => None,
        };
        let cached = subjects.iter().map(cached).collect::<Vec<_>>();
        if cached.iter().all(Option::is_some) {
            return Ok(cached);
        }
        shared.snapshot(|snapshot| {
            let (of, mut finder) =
                (Pseudonyms::new(shared.log, &snapshot.keys.pseudonym), snapshot.finder()?);
            let found = |(subject, cached): (&&str, &Option<Subject>)| match cached {
                Some(cached) => Ok(Some(cached.clone())),
                None => snapshot.find_with(&mut finder, of.of(subject)),
            };
            subjects.iter().zip(&cached).map(found).collect()
        })
    }

    /// The key of the subject that has `number`; `None` where nobody has it, or nobody has it any more.
    ///
    /// # Errors
    /// `Erased` while the subject is being erased, else where the vault cannot be read.
    pub fn key(&self, number: u64) -> Result<Option<SubjectKey>> {
        Ok(self.keys([number].into_iter())?.pop().flatten())
    }

    /// The keys of the subjects that have these numbers, all as of one moment; `None` as [`Vault::key`].
    ///
    /// # Errors
    /// As [`Vault::key`].
    pub fn keys(&self, numbers: impl Iterator<Item = u64> + Clone) -> Result<Vec<Option<SubjectKey>>> {
        self.check_owner()?;
        self.shared.snapshot(|snapshot| {
            let key = |number| Ok(snapshot.person(number)?.map(|person| SubjectKey::new(person.key)));
            numbers.clone().map(key).collect()
        })
    }
}

impl Vault {
    /// Of each name which of the numbers beside it that data subject has, as [`GroupKeys::whose`].
    ///
    /// # Errors
    /// Where the vault cannot be read.
    ///
    /// [`GroupKeys::whose`]: bulla_crypto::group::GroupKeys::whose
    pub fn whose(&self, asked: &[(&[u64], &str)]) -> Result<Vec<Whose>> {
        self.check_owner()?;
        let shared = &*self.shared;
        shared.snapshot(|snapshot| {
            let whose = |(numbers, name): &(&[u64], &str)| {
                let pseudonym = Pseudonym::of(name, shared.log, &snapshot.keys.pseudonym);
                snapshot.whose(numbers, pseudonym)
            };
            asked.iter().map(whose).collect()
        })
    }
}

/// The most rows, and ranges that were left out, that are looked at before it is told who is missing: a message of the control
/// socket has room for as many ranges as can be in them.
const LOOKED_AT: u64 = if cfg!(test) { 2 } else { 1 << 11 };

impl Vault {
    /// The numbers from `from` on that nobody has, as [`GroupKeys::missing`]: who was erased had one, and those that were left out
    /// may be a person's whose key was lost. One whose erasure the log may not tell of yet is not among them.
    ///
    /// # Errors
    /// Where the vault cannot be read.
    ///
    /// [`GroupKeys::missing`]: bulla_crypto::group::GroupKeys::missing
    pub fn missing(&self, from: u64) -> Result<Missing> {
        self.check_owner()?;
        self.shared.snapshot(|snapshot| snapshot.missing(from))
    }
}

impl Snapshot<'_> {
    fn missing(&self, from: u64) -> Result<Missing, TransactionError> {
        let (given, frames) = (self.meta.next_number, self.meta.follows.size);
        let skipped = Skipped::read(self.txn, self.keys)?;
        let erasing = self.erasing.as_ref().map_or(&[][..], |erasing| &erasing.numbers);
        let mut numbers = Vec::<Range<u64>>::new();
        let mut add = |first: u64, end: u64| match numbers.last_mut().filter(|last| last.end == first) {
            Some(last) => last.end = end,
            None => numbers.push(first..end),
        };
        let (mut next, mut room) = (from, LOOKED_AT);
        while next < given && room > 0 {
            // There are no rows where numbers were left out, however many they are.
            if let Some(end) = skipped.end_of(next) {
                let end = end.min(given);
                add(next, end);
                (next, room) = (end, room - 1);
                continue;
            }
            let end = rows::end_of(next).min(given);
            let there = rows::there(self.txn, self.keys, &self.meta, next)?;
            for number in (next..end).filter(|number| !there(*number) && !erasing.contains(number)) {
                add(number, number + 1);
            }
            (next, room) = (end, room - 1);
        }
        let erased = self.erasing.as_ref().filter(|erasing| erasing.erased);
        let erasing = erased.map_or_else(Vec::new, |erasing| erasing.numbers.clone());
        Ok(Missing { numbers, more: (next < given).then_some(next), given, frames, erasing })
    }

    fn whose(&self, numbers: &[u64], pseudonym: Pseudonym) -> Result<Whose, TransactionError> {
        let mut gone = false;
        for &number in numbers {
            let erasing = self.erasing.as_ref().is_some_and(|erasing| erasing.holds_back(number));
            let person = if erasing { None } else { self.person(number)? };
            match person {
                Some(person) if person.pseudonym == pseudonym => return Ok(Whose::Number(number)),
                person => gone |= person.is_none(),
            }
        }
        Ok(if gone { Whose::Gone } else { Whose::Others })
    }

    /// Who has a number that is not being erased.
    fn person(&self, number: u64) -> Result<Option<Person>, TransactionError> {
        if self.erasing.as_ref().is_some_and(|erasing| erasing.holds_back(number)) {
            return Err(being_erased(number).into());
        }
        rows::get(self.txn, self.keys, &self.meta, number)
    }

    pub(super) fn find(&self, pseudonym: Pseudonym) -> Result<Option<Subject>, TransactionError> {
        self.find_with(&mut self.finder()?, pseudonym)
    }

    /// Those who have these pseudonyms, in their order; `None` where one of them is nobody's.
    fn find_all(&self, pseudonyms: &[Pseudonym]) -> Result<Option<Vec<Subject>>, TransactionError> {
        let mut finder = self.finder()?;
        let find = |(place, pseudonym): (usize, &Pseudonym)| {
            yielding::point_of_loop(place);
            self.find_with(&mut finder, *pseudonym)
        };
        pseudonyms.iter().enumerate().map(find).collect()
    }

    /// What looks for people in this state of the vault.
    ///
    /// # Errors
    /// Where the database cannot be read.
    pub(super) fn finder(&self) -> Result<Finder, TransactionError> {
        let unindexed = Unindexed::of(self.unindexed, self.txn, self.keys, &self.meta)?;
        Ok(Finder { unindexed, index: IndexRows::default() })
    }

    fn find_with(
        &self,
        finder: &mut Finder,
        pseudonym: Pseudonym,
    ) -> Result<Option<Subject>, TransactionError> {
        for number in finder.unindexed.find(pseudonym.half(), &self.meta) {
            if let Some(found) = self.is_of(number, pseudonym)? {
                return Ok(Some(found));
            }
        }
        for number in finder.index.find(self.txn, self.keys, pseudonym)? {
            if let Some(found) = self.is_of(number, pseudonym)? {
                return Ok(Some(found));
            }
        }
        finder.unindexed.require_all()?;
        Ok(None)
    }

    /// Whoever has `number`, if that is their pseudonym; it begins as theirs does.
    fn is_of(&self, number: u64, pseudonym: Pseudonym) -> Result<Option<Subject>, TransactionError> {
        match self.person(number)? {
            Some(person) if person.pseudonym == pseudonym => {
                Ok(Some(Subject { number, key: SubjectKey::new(person.key) }))
            }
            // Somebody else, whose pseudonym begins as this one.
            Some(person) if person.pseudonym.half() == pseudonym.half() => Ok(None),
            _ => Err(damaged(format!("its index leads to number {number}, which is not that person's"))),
        }
    }

    /// The numbers of all who have this pseudonym, those who are being erased too.
    pub(super) fn numbers(
        &self,
        finder: &mut Finder,
        pseudonym: Pseudonym,
    ) -> Result<Vec<u64>, TransactionError> {
        let mut numbers = finder.unindexed.find(pseudonym.half(), &self.meta).collect::<Vec<_>>();
        numbers.extend(finder.index.find(self.txn, self.keys, pseudonym)?);
        let mut found = Vec::new();
        for number in numbers {
            let person = rows::get(self.txn, self.keys, &self.meta, number)?;
            found.extend(person.filter(|person| person.pseudonym == pseudonym).map(|_| number));
        }
        if found.is_empty() {
            finder.unindexed.require_all()?;
        }
        Ok(found)
    }
}

/// Looks for people: among those whom the index does not lead to yet, and in the index, of which each row is read once.
pub(super) struct Finder {
    unindexed: Arc<Unindexed>,
    index: IndexRows,
}

impl Shared {
    /// As [`Vault::resolve_into`], where not all of them are cached.
    #[cold]
    fn resolve_slowly(&self, subjects: &[&str], found: &mut Vec<Subject>) -> Result<()> {
        let mut cached = Vec::with_capacity(subjects.len());
        self.cache.look().each(subjects, |subject| {
            cached.push(subject.cloned());
            true
        });
        let unknown = subjects.iter().zip(&cached).filter(|(_, cached)| cached.is_none());
        let unknown = unknown.map(|(subject, _)| *subject).collect::<Vec<_>>();
        let mut looked_up = self.look_up(&unknown)?.into_iter();
        found.extend(cached.into_iter().filter_map(|cached| cached.or_else(|| looked_up.next())));
        Ok(())
    }

    /// Numbers and keys of `subjects`, in their order, from the database, to which those are added that it does not know.
    fn look_up(&self, subjects: &[&str]) -> Result<Vec<Subject>> {
        loop {
            let keys = self.keys();
            let of = Pseudonyms::new(self.log, &keys.pseudonym);
            let pseudonyms = subjects.iter().map(|subject| of.of(subject)).collect::<Vec<_>>();
            let (mut generation, known, changes) = self.snapshot(|snapshot| {
                let known = snapshot.find_all(&pseudonyms)?;
                Ok((snapshot.meta.generation, known, Changes::read(snapshot.txn, snapshot.keys)?))
            })?;
            let known = match known {
                Some(known) => {
                    if !self.replicas().wait_for(changes) {
                        self.change(|_| Ok(()))?;
                    }
                    known
                }
                None => {
                    let given;
                    (generation, given) = self.add(pseudonyms)?;
                    given
                }
            };
            let tagged = subjects.iter().map(|subject| self.cache.tag(subject)).zip(known);
            let tagged = tagged.collect::<Vec<(Tag, Subject)>>();
            if self.admit(generation, &tagged)? {
                return Ok(tagged.into_iter().map(|(_, subject)| subject).collect());
            }
        }
    }
}

impl Change<'_, '_> {
    /// The subjects with these pseudonyms, in their order, from the vault as it is now or as somebody new.
    pub(super) fn resolve(&mut self, pseudonyms: &[Pseudonym]) -> Result<Vec<Subject>, TransactionError> {
        let mut met = HashMap::with_capacity(pseudonyms.len());
        let mut new = Vec::new();
        // Another thread may have added a subject between our snapshot and our turn to write.
        let snapshot = self.snapshot();
        let mut finder = snapshot.finder()?;
        for (place, pseudonym) in pseudonyms.iter().enumerate() {
            yielding::point_of_loop(place);
            let Vacant(vacant) = met.entry(*pseudonym) else { continue };
            let found = snapshot.find_with(&mut finder, *pseudonym)?;
            if found.is_none() {
                new.push(*pseudonym);
            }
            vacant.insert(found);
        }
        for (pseudonym, subject) in new.iter().zip(self.add(&new, &finder.unindexed)?) {
            met.insert(*pseudonym, Some(subject));
        }
        let given = pseudonyms.iter().map(|pseudonym| met.get(pseudonym).cloned().flatten());
        let given = given.collect::<Option<Vec<_>>>();
        given.ok_or_else(|| Error::unavailable("the vault gave somebody no number").into())
    }

    /// Gives the next numbers to people who are new; `unindexed` has those whom the index does not lead to before that.
    fn add(&mut self, new: &[Pseudonym], unindexed: &Unindexed) -> Result<Vec<Subject>, TransactionError> {
        let first = self.meta.next_number;
        let end = first + new.len() as u64;
        if end > u64::from(u32::MAX) + 1 {
            return Err(Error::new(ErrorKind::Refused, "the vault has given its last number").into());
        }
        if end == first {
            return Ok(Vec::new());
        }
        self.provide(end - 1, 0)?;
        let people = self.people(new)?;
        rows::append(self.txn, &self.keys, &self.meta, &people)?;
        self.meta.next_number = end;
        let due = self.due(first);
        if due.contains(&true) {
            let new = (first..).zip(new).map(|(number, pseudonym)| Entry::of(number, *pseudonym));
            self.index(&due, unindexed.entries(&self.meta).chain(new).collect())?;
        }
        let given = |(number, person): (u64, Person)| Subject { number, key: SubjectKey::new(person.key) };
        Ok((first..).zip(people).map(given).collect())
    }

    /// Which sixteenths of the index are to take people in once the numbers from `first` on were given: one after the other, each time
    /// that so many more were.
    fn due(&self, first: u64) -> [bool; SIXTEENTHS] {
        let mut due = [self.shared.index_every == 0; SIXTEENTHS];
        let turn = |number: u64| number.checked_div(self.shared.index_every).unwrap_or_default();
        let turns = turn(first)..turn(self.meta.next_number);
        for turn in turns.take(SIXTEENTHS) {
            due[usize::try_from(turn % SIXTEENTHS as u64).unwrap_or_default()] = true;
        }
        due
    }

    /// Has the index lead to everybody.
    ///
    /// # Errors
    /// Where the vault is damaged, or cannot be written.
    pub(super) fn index_all(&mut self) -> Result<(), TransactionError> {
        let unindexed = self.snapshot().finder()?.unindexed;
        unindexed.require_all()?;
        self.index(&[true; SIXTEENTHS], unindexed.entries(&self.meta).collect())
    }

    /// Has those sixteenths of the index that are `due` lead to everybody; `entries` are those whom it does not lead to.
    fn index(&mut self, due: &[bool; SIXTEENTHS], mut entries: Vec<Entry>) -> Result<(), TransactionError> {
        entries.retain(|entry| due[sixteenth(entry.half)]);
        // In the order of the index's buckets.
        entries.sort_unstable();
        let mut index = IndexRows::default();
        for (place, entry) in entries.into_iter().enumerate() {
            yielding::point_of_loop(place);
            index.insert(self.txn, &self.keys, entry)?;
        }
        let mut crowded = index.write(self.txn)?;
        while let Some(bucket) = crowded.pop() {
            let id = self.meta.next_bucket;
            self.meta.next_bucket =
                id.checked_add(2).ok_or_else(|| Error::unavailable("no index bucket is left"))?;
            self.provide(self.meta.next_number.saturating_sub(1), self.meta.next_bucket)?;
            crowded.extend(index::split(self.txn, &self.keys, bucket, [id, id + 1])?);
        }
        for (indexed, _) in self.meta.indexed.0.iter_mut().zip(due).filter(|(_, due)| **due) {
            *indexed = self.meta.next_number;
        }
        Ok(())
    }

    /// People with these pseudonyms, and fresh keys.
    fn people(&self, pseudonyms: &[Pseudonym]) -> Result<Vec<Person>, TransactionError> {
        let mut keys = Zeroizing::new(vec![0; pseudonyms.len() * 32]);
        self.shared.random.fill(&mut keys)?;
        let person =
            |(key, pseudonym): (&[u8; 32], &Pseudonym)| Person { key: Secret(*key), pseudonym: *pseudonym };
        Ok(keys.as_chunks().0.iter().zip(pseudonyms).map(person).collect())
    }
}

pub(super) fn being_erased(number: u64) -> Error {
    let message =
        format!("data subject {number} is being erased; once that is done the person can get a new number");
    Error::new(ErrorKind::Erased, message)
}

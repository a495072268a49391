//! From a subject to number and key, from a number to the key.

use std::collections::HashMap;
use std::collections::hash_map::Entry::Vacant;
use std::ops::Range;
use zeroize::Zeroizing;

use super::cache::Tag;
use super::index::{self, Entry, IndexRows};
use super::pseudonym::{Pseudonym, Pseudonyms};
use super::record::{Changes, Skipped};
use super::rows::{self, Person};
use super::snapshot::{Change, Snapshot};
use super::transaction_error::{TransactionError, damaged};
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
            let (of, mut index) =
                (Pseudonyms::new(shared.log, &snapshot.keys.pseudonym), IndexRows::default());
            let found = |(subject, cached): (&&str, &Option<Subject>)| match cached {
                Some(cached) => Ok(Some(cached.clone())),
                None => snapshot.find_in(&mut index, of.of(subject)),
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
        self.find_in(&mut IndexRows::default(), pseudonym)
    }

    /// Those who have these pseudonyms, in their order; `None` where one of them is nobody's.
    fn find_all(&self, pseudonyms: &[Pseudonym]) -> Result<Option<Vec<Subject>>, TransactionError> {
        let mut index = IndexRows::default();
        let find = |(place, pseudonym): (usize, &Pseudonym)| {
            yielding::point_of_loop(place);
            self.find_in(&mut index, *pseudonym)
        };
        pseudonyms.iter().enumerate().map(find).collect()
    }

    fn find_in(
        &self,
        index: &mut IndexRows,
        pseudonym: Pseudonym,
    ) -> Result<Option<Subject>, TransactionError> {
        for number in index.find(self.txn, self.keys, pseudonym)? {
            match self.person(number)? {
                Some(person) if person.pseudonym == pseudonym => {
                    return Ok(Some(Subject { number, key: SubjectKey::new(person.key) }));
                }
                // Somebody else, whose pseudonym begins as this one.
                Some(person) if person.pseudonym.half() == pseudonym.half() => {}
                _ => {
                    return Err(damaged(format!(
                        "its index leads to number {number}, which is not that person's"
                    )));
                }
            }
        }
        Ok(None)
    }
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
        let (mut index, mut new) = (IndexRows::default(), Vec::new());
        let mut met = HashMap::with_capacity(pseudonyms.len());
        // Another thread may have added a subject between our snapshot and our turn to write.
        let snapshot = Snapshot {
            txn: self.txn,
            meta: self.meta.clone(),
            keys: &self.keys,
            erasing: self.erasing.clone(),
        };
        for (place, pseudonym) in pseudonyms.iter().enumerate() {
            yielding::point_of_loop(place);
            let Vacant(vacant) = met.entry(*pseudonym) else { continue };
            let found = snapshot.find_in(&mut index, *pseudonym)?;
            if found.is_none() {
                new.push(*pseudonym);
            }
            vacant.insert(found);
        }
        for (pseudonym, subject) in new.iter().zip(self.add(&new, index)?) {
            met.insert(*pseudonym, Some(subject));
        }
        let given = pseudonyms.iter().map(|pseudonym| met.get(pseudonym).cloned().flatten());
        let given = given.collect::<Option<Vec<_>>>();
        given.ok_or_else(|| Error::unavailable("the vault gave somebody no number").into())
    }

    /// Gives the next numbers to people who are new; `index` has the rows that they will be found by.
    fn add(&mut self, new: &[Pseudonym], mut index: IndexRows) -> Result<Vec<Subject>, TransactionError> {
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
        for (place, (number, pseudonym)) in (first..).zip(new).enumerate() {
            yielding::point_of_loop(place);
            let entry = Entry { half: pseudonym.half(), number: u32::try_from(number).unwrap_or(u32::MAX) };
            index.insert(self.txn, &self.keys, entry)?;
        }
        let mut crowded = index.write(self.txn)?;
        while let Some(bucket) = crowded.pop() {
            let id = self.meta.next_bucket;
            self.meta.next_bucket =
                id.checked_add(2).ok_or_else(|| Error::unavailable("no index bucket is left"))?;
            self.provide(end - 1, self.meta.next_bucket)?;
            crowded.extend(index::split(self.txn, &self.keys, bucket, [id, id + 1])?);
        }
        let given = |(number, person): (u64, Person)| Subject { number, key: SubjectKey::new(person.key) };
        Ok((first..).zip(people).map(given).collect())
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

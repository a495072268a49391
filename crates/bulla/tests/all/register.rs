//! Vaults in memory.

use bulla::Result;
use bulla::keys::group::{BlockContext, Followed, GroupKeys, GroupSecret, Missing, Subjects};
use bulla_proof::hash::sha256;
use bulla_vault::{Subject, SubjectKey};
use std::collections::{BTreeSet, HashMap};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers in the order in which data subjects are met, keys that follow from the names.
pub(crate) struct Register {
    known: Mutex<Known>,
    /// Up to which frame it says that it follows the log's erasures.
    pub(crate) follows: AtomicU64,
    /// Before which frame it says that it has given all numbers.
    pub(crate) frames: AtomicU64,
}

impl Default for Register {
    fn default() -> Self {
        Register { known: Mutex::default(), follows: AtomicU64::new(0), frames: AtomicU64::new(u64::MAX) }
    }
}

#[derive(Default)]
struct Known {
    names: Vec<String>,
    numbers: HashMap<String, u64>,
    /// Those whose keys are gone.
    gone: BTreeSet<u64>,
}

impl Register {
    /// The key of a subject is gone. Gives the number that it had.
    pub(crate) fn lose(&self, name: &str) -> u64 {
        let mut known = self.known.lock().unwrap();
        let number = known.numbers.remove(name).unwrap();
        known.gone.insert(number);
        number
    }

    /// The number of a subject.
    pub(crate) fn number_of(&self, name: &str) -> u64 {
        self.known.lock().unwrap().numbers[name]
    }
}

impl Subjects for Register {
    fn resolve(&self, subjects: &[&str]) -> Result<Vec<Subject>> {
        let mut known = self.known.lock().unwrap();
        let mut number = |name: &str| match known.numbers.get(name) {
            Some(&number) => number,
            None => {
                let number = known.names.len() as u64;
                known.names.push(name.to_owned());
                known.numbers.insert(name.to_owned(), number);
                number
            }
        };
        Ok(subjects.iter().map(|name| Subject { number: number(name), key: key(name) }).collect())
    }

    fn next_number(&self) -> Result<u64> {
        Ok(self.known.lock().unwrap().names.len() as u64)
    }

    fn require_at_least(&self, _: u64) -> Result<()> {
        Ok(())
    }
}

impl GroupKeys for Register {
    fn number(&self, subject: &str) -> Result<Option<u64>> {
        Ok(self.known.lock().unwrap().numbers.get(subject).copied())
    }

    fn secrets(&self, place: BlockContext<'_>, groups: &[&[u64]]) -> Result<Vec<Option<GroupSecret>>> {
        groups.iter().map(|subjects| self.secret(place, subjects)).collect()
    }

    fn is_complete(&self) -> bool {
        true
    }

    fn erased_up_to(&self) -> Result<Followed> {
        Ok(Followed { frames: self.follows.load(Ordering::Relaxed), ..Followed::NOTHING })
    }

    fn missing(&self, from: u64) -> Result<Missing> {
        let known = self.known.lock().unwrap();
        // One at a time, as a vault that is asked for more than it tells at once.
        let mut gone = known.gone.range(from..);
        let numbers = gone.next().map(|number| *number..number + 1).into_iter().collect();
        let (more, given) = (gone.next().copied(), known.names.len() as u64);
        let frames = self.frames.load(Ordering::Relaxed);
        Ok(Missing { numbers, more, given, frames, erasing: Vec::new() })
    }
}

impl Register {
    fn secret(&self, place: BlockContext<'_>, subjects: &[u64]) -> Result<Option<GroupSecret>> {
        let known = self.known.lock().unwrap();
        let name = |number: &u64| known.names.get(*number as usize).filter(|_| !known.gone.contains(number));
        let Some(names) = subjects.iter().map(name).collect::<Option<Vec<_>>>() else { return Ok(None) };
        let keys = names.into_iter().map(|name| key(name)).collect::<Vec<_>>();
        place.secret(subjects.iter().copied().zip(&keys)).map(Some)
    }
}

/// Numbers that follow from the names, and keys from the numbers: nothing has to be kept, whatever crashes.
pub(crate) struct ByName;

impl ByName {
    fn number_of(name: &str) -> u64 {
        let digest = sha256(&[b"subject number", name.as_bytes()]).0;
        u64::from_le_bytes(*digest.first_chunk().unwrap())
    }
}

impl Subjects for ByName {
    fn resolve(&self, subjects: &[&str]) -> Result<Vec<Subject>> {
        let resolve = |name: &&str| {
            let number = Self::number_of(name);
            Subject { number, key: key(&number.to_string()) }
        };
        Ok(subjects.iter().map(resolve).collect())
    }

    fn next_number(&self) -> Result<u64> {
        Ok(0)
    }

    fn require_at_least(&self, _: u64) -> Result<()> {
        Ok(())
    }
}

impl GroupKeys for ByName {
    fn number(&self, subject: &str) -> Result<Option<u64>> {
        Ok(Some(Self::number_of(subject)))
    }

    fn secrets(&self, place: BlockContext<'_>, groups: &[&[u64]]) -> Result<Vec<Option<GroupSecret>>> {
        groups.iter().map(|subjects| self.secret(place, subjects)).collect()
    }

    fn is_complete(&self) -> bool {
        true
    }

    fn erased_up_to(&self) -> Result<Followed> {
        Ok(Followed::NOTHING)
    }
}

impl ByName {
    fn secret(&self, place: BlockContext<'_>, subjects: &[u64]) -> Result<Option<GroupSecret>> {
        let keys = subjects.iter().map(|number| key(&number.to_string())).collect::<Vec<_>>();
        place.secret(subjects.iter().copied().zip(&keys)).map(Some)
    }
}

fn key(name: &str) -> SubjectKey {
    SubjectKey::from(sha256(&[b"subject key", name.as_bytes()]).0)
}

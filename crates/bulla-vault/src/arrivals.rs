//! Subjects that are new to the vault, of several threads, in one transaction: while one thread's is being made durable, others
//! gather, and whoever's turn is next adds all of theirs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Shared;
use super::pseudonym::Pseudonym;
use bulla_crypto::subject::Subject;
use bulla_store::Result;

/// Those who wait for their turn.
#[derive(Default)]
pub(super) struct Arrivals {
    waiting: Mutex<Vec<Arc<Arrival>>>,
    turn: Mutex<()>,
}

/// Subjects that a thread has met, some of which may be new.
struct Arrival {
    pseudonyms: Vec<Pseudonym>,
    /// What somebody else's turn has brought; nothing where the thread has to see to it itself.
    given: Mutex<Option<Given>>,
}

/// Subjects, and the generation that they were given out in.
pub(super) type Given = (u64, Vec<Subject>);

impl Arrivals {
    fn waiting(&self) -> MutexGuard<'_, Vec<Arc<Arrival>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps everybody waiting until the guard is dropped.
    pub(super) fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many wait.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.waiting().len()
    }
}

impl Arrival {
    fn given(&self) -> MutexGuard<'_, Option<Given>> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// The subjects with these pseudonyms, those that are new among them with numbers and keys that are durable.
    ///
    /// # Errors
    /// `Erased` where one of them is being erased, else where the vault cannot be written.
    pub(super) fn add(&self, pseudonyms: Vec<Pseudonym>) -> Result<Given> {
        let mine = Arc::new(Arrival { pseudonyms, given: Mutex::default() });
        self.arrivals.waiting().push(mine.clone());
        let _turn = self.arrivals.turn();
        if let Some(given) = mine.given().take() {
            return Ok(given);
        }
        let mut together = std::mem::take(&mut *self.arrivals.waiting());
        together.retain(|other| !Arc::ptr_eq(other, &mine));
        if !together.is_empty() {
            let all = std::iter::once(&mine).chain(&together).map(|arrival| &arrival.pseudonyms[..]);
            // Where it fails, each adds its own: what is wrong with one of them is no reason to refuse another.
            if let Ok((generation, given)) = self.add_all(&all.collect::<Vec<_>>()) {
                let mut given = given.into_iter();
                let of_mine = given.next().unwrap_or_default();
                for (other, given) in together.iter().zip(given) {
                    *other.given() = Some((generation, given));
                }
                return Ok((generation, of_mine));
            }
        }
        let (generation, given) = self.add_all(&[&mine.pseudonyms])?;
        Ok((generation, given.into_iter().flatten().collect()))
    }

    fn add_all(&self, all: &[&[Pseudonym]]) -> Result<(u64, Vec<Vec<Subject>>)> {
        self.change(|change| {
            let mut given = change.resolve(&all.concat())?.into_iter();
            let given = all.iter().map(|these| given.by_ref().take(these.len()).collect()).collect();
            Ok((change.meta.generation, given))
        })
    }
}

//! Work on one state of the database, with the keys that belong to it.

use std::sync::{Arc, Mutex, PoisonError};

use super::index::Bucket;
use super::keys::{Keys, row_bucket};
use super::original::{Mark, Original};
use super::record::{Changes, Erasing, Meta};
use super::transaction::{ReadTransaction, WriteTransaction};
use super::transaction_error::TransactionError;
use super::unindexed::Unindexed;
use super::{Known, Shared};
use bulla_store::{Error, ErrorKind, Result};

/// How many erasures by another process a look-up tolerates, looking again after each, before it gives up.
const ATTEMPTS: usize = 64;

/// A state of the database that others do not change.
pub(super) struct Snapshot<'s> {
    pub(super) txn: &'s ReadTransaction<'s>,
    pub(super) meta: Meta,
    pub(super) keys: &'s Keys,
    pub(super) erasing: Option<Erasing>,
    /// What the process has of those whom the index does not lead to, of this state or another.
    pub(super) unindexed: &'s Mutex<Arc<Unindexed>>,
}

/// A change of the database that nobody sees before it is durable.
pub(super) struct Change<'s, 'e> {
    pub(super) shared: &'s Shared,
    pub(super) txn: &'s mut WriteTransaction<'e>,
    pub(super) meta: Meta,
    pub(super) keys: Arc<Keys>,
    pub(super) erasing: Option<Erasing>,
}

impl Shared {
    /// What the vault says of itself.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub(super) fn meta(&self) -> Result<Meta> {
        self.snapshot(|snapshot| Ok(snapshot.meta.clone()))
    }

    /// Runs `work` on a snapshot.
    ///
    /// # Errors
    /// What `work` says, or where the vault cannot be read.
    pub(super) fn snapshot<T>(
        &self,
        work: impl Fn(&Snapshot<'_>) -> Result<T, TransactionError>,
    ) -> Result<T> {
        self.with_keys(|keys| {
            let known = self.known();
            self.database.read(|txn| {
                let (meta, erasing) = self.records(txn, keys, known)?;
                work(&Snapshot { txn, meta, keys, erasing, unindexed: &self.unindexed })
            })
        })
    }

    /// Runs `work` and makes durable what it did, in the replicas too.
    ///
    /// # Errors
    /// What `work` says, and then nothing has changed; or where the vault cannot be written.
    pub(super) fn change<T>(
        &self,
        work: impl Fn(&mut Change<'_, '_>) -> Result<T, TransactionError>,
    ) -> Result<T> {
        let replicas = self.replicas();
        let _turn = replicas.turn();
        self.database.require_in_place()?;
        self.roots.require_in_place(self.keys().generation)?;
        let (done, (mark, keys), before, journal) = self.with_keys(|_| {
            let known = self.known();
            self.database.write(|txn| {
                if !replicas.is_empty() {
                    txn.keep_journal();
                }
                // The keys are taken only now: somebody else may have changed something before it was our turn.
                let keys = self.keys();
                let (meta, erasing) = self.records(txn, &keys, known)?;
                let mut change = Change { shared: self, txn, meta, keys, erasing };
                let done = work(&mut change)?;
                let Change { txn, meta, keys, .. } = change;
                meta.write(txn, &keys)?;
                let before = Changes::read(txn, &keys)?;
                let changes = before.next(&*self.random)?;
                changes.write(txn, &keys)?;
                Ok((done, (Mark { meta, changes }, keys), before, txn.take_journal()))
            })
        })?;
        self.note(Known { changes: mark.changes, next_number: mark.meta.next_number });
        let original = Original { database: &self.database, roots: &self.roots, keys, mark };
        replicas.follow(&original, journal.as_ref(), before);
        Ok(done)
    }

    /// The last transaction that this process knows of. Whoever asks before a transaction begins sees that one in it, or a later one.
    fn known(&self) -> Known {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, found: Known) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if found.changes.count > known.changes.count {
            *known = found;
        }
    }

    /// What the vault says of itself, which is no older than what was `known`.
    fn records(
        &self,
        txn: &ReadTransaction<'_>,
        keys: &Keys,
        known: Known,
    ) -> Result<(Meta, Option<Erasing>), TransactionError> {
        let meta = Meta::peek(txn)?.ok_or_else(|| unfinished(self.database.name()))?;
        if meta.content.log != self.log {
            return Err(another_log(self.database.name(), &meta.content).into());
        }
        if meta.content.generation != keys.generation {
            return Err(TransactionError::Stale("its generations follow each other too fast".to_owned()));
        }
        let (changes, meta) = (Changes::read(txn, keys)?, meta.vouched(keys)?);
        let Known { changes: before, next_number } = known;
        let is_before =
            changes.count < before.count || changes.count == before.count && changes.tag != before.tag;
        // Records are authentic each by itself, and may be older than one another.
        if is_before || meta.next_number < next_number {
            return Err(self.database.went_back().into());
        }
        self.note(Known { changes, next_number: meta.next_number });
        let erasing = Erasing::read(txn, keys, meta.next_number)?;
        Ok((meta, erasing))
    }

    fn with_keys<T>(&self, work: impl Fn(&Keys) -> Result<T, TransactionError>) -> Result<T> {
        let mut why = None;
        for _ in 0..ATTEMPTS {
            let keys = self.keys();
            match work(&keys) {
                Ok(done) => return Ok(done),
                Err(stale @ TransactionError::Stale(_)) => {
                    if !self.reload(&keys)? {
                        return Err(self.database.explain(stale));
                    }
                    why = Some(stale);
                }
                Err(error) => return Err(self.database.explain(error)),
            }
        }
        let why = why.map(|error| self.database.explain(error));
        Err(why.unwrap_or_else(|| Error::unavailable("the vault is being changed too fast")))
    }

    /// Reads the keys of the generation that counts now, and says whether they are others than `old`.
    fn reload(&self, old: &Arc<Keys>) -> Result<bool> {
        for _ in 0..ATTEMPTS {
            let generation = self.generation_now()?;
            let read = match generation == old.generation {
                true => self.roots.load_beneath(&old.root, self.log, generation),
                false => self.roots.load(self.log, generation),
            };
            match read {
                Ok(keys) if keys.is_same(old) => return Ok(!Arc::ptr_eq(&self.keys(), old)),
                Ok(keys) => {
                    self.take(Arc::new(keys));
                    return Ok(true);
                }
                // A writer may have gone on to the next generation just now, and destroyed this root.
                Err(_) if self.generation_now()? != generation => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    pub(super) fn generation_now(&self) -> Result<u64> {
        let read = self.database.read(|txn| {
            let meta = Meta::peek(txn)?.ok_or_else(|| unfinished(self.database.name()))?;
            Ok(meta.content.generation)
        });
        read.map_err(|error| self.database.explain(error))
    }
}

impl Change<'_, '_> {
    /// What it changes, as it is so far.
    pub(super) fn snapshot(&self) -> Snapshot<'_> {
        Snapshot {
            txn: self.txn,
            meta: self.meta.clone(),
            keys: &self.keys,
            erasing: self.erasing.clone(),
            unindexed: &self.shared.unindexed,
        }
    }

    /// Makes sure that there is a key for the row of `number` and for every index bucket before `buckets`. The keys are durable
    /// when this returns, since nothing may be written under a key that a crash could take.
    pub(super) fn provide(&mut self, number: u64, buckets: u32) -> Result<(), TransactionError> {
        let next = self.keys.index.last().map_or(0, |(id, _)| id.saturating_add(1));
        let rows = row_bucket(number) + 1;
        if rows <= self.keys.rows.len() as u64 && buckets <= next {
            return Ok(());
        }
        let keys = self.keys.extended(rows, buckets, &*self.shared.random)?;
        self.shared.write_keys(&keys)?;
        self.keys = Arc::new(keys);
        self.shared.take(self.keys.clone());
        Ok(())
    }

    /// The index buckets that are in use.
    pub(super) fn buckets(&self) -> Result<Vec<Bucket>, TransactionError> {
        Bucket::all(self.txn, &self.keys)
    }
}

/// The vault was not made to its end.
pub(super) fn unfinished(name: &str) -> Error {
    Error::unavailable(format!(
        "{name} holds no vault: restore it from a backup or a replica, with `roots`; a `vault.db` that is there is damaged; where \
         there is no other, `bulla restore --new-vault` goes on without those who are in it"
    ))
}

pub(super) fn another_log(name: &str, meta: &Meta) -> Error {
    Error::new(ErrorKind::Refused, format!("{name} is the vault of another log, {}", meta.log))
}

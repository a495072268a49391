//! [`Keeper`]: has what values taught outlive the proxy.
//!
//! Invariants:
//! - what is kept of a person lies under a key that goes with the person ([`PersonalRecords`]), and whoever the log erases is forgotten
//!   before the erasure is acknowledged;
//! - nobody becomes known to the log by this: a lesson waits until an entry of that person is sealed, which the command that taught it has;
//! - nothing is written by whoever teaches or asks. What has changed is written together, a second later at most, and at the end.

use crate::counters::Counters;
use crate::defect::{self, caught};
use crate::subject::{KnownKey, Learned, Unkept};
use crate::thread;
use crate::warnings::{Kind, Warnings};
use bulla::{Error, ErrorKind, Log, PersonalChanges, PersonalRecords, PersonalRecordsRead, Result};
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

/// What has changed is written so long after the last time.
const INTERVAL: Duration = Duration::from_secs(1);
/// A file that has grown by so many bytes, and to twice what it was made with, is made anew.
const GROWTH: u64 = 4 << 20;

/// So often what is written at the end is written again because somebody was erased meanwhile.
const MOST_ERASURES: usize = 100;

/// The records of a log that was opened again, for what was kept in it before.
pub(crate) struct Renewal {
    pub(crate) records: PersonalRecords,
    /// Whether opening it went on with an erasure, of which nobody was told.
    pub(crate) is_somebody_erased: bool,
}

/// See the module. When it is dropped, all is written.
pub(crate) struct Keeper {
    ended: Option<mpsc::Sender<Renewal>>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Reads what was kept before, and keeps what is learned from now on. Where the log has no vault nothing is kept, and what is learned
    /// goes with the proxy.
    ///
    /// # Errors
    /// As [`Log::personal_records`]; `Unavailable` where there is no thread for it.
    pub(crate) fn start(
        log: &Log,
        learned: &Arc<Learned>,
        counters: &Arc<Counters>,
        warnings: &Arc<Warnings>,
    ) -> Result<Keeper> {
        log.when_erased(forgetting(learned));
        let Some(records) = log.personal_records()? else {
            return Ok(Keeper { ended: None, thread: None });
        };
        recall(&records, learned, warnings);
        learned.begin_keeping();
        let mut keeping = Keeping {
            records,
            learned: learned.clone(),
            counters: counters.clone(),
            warnings: warnings.clone(),
            made_with: 0,
        };
        let (ended, end) = mpsc::channel::<Renewal>();
        let run = move || {
            loop {
                match end.recv_timeout(INTERVAL) {
                    Ok(renewal) => keeping.unless_defective(|keeping| keeping.renew(renewal)),
                    Err(RecvTimeoutError::Timeout) => keeping.unless_defective(|keeping| {
                        keeping.keep();
                    }),
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
            keeping.unless_defective(Keeping::keep_all);
        };
        let thread = thread::start("bulla-learned".to_owned(), "for what values teach", run)?;
        Ok(Keeper { ended: Some(ended), thread: Some(thread) })
    }
}

impl Keeper {
    /// By what it is told of another log, if it keeps anything. It ends once that is gone, too.
    pub(crate) fn renewals(&self) -> Option<mpsc::Sender<Renewal>> {
        self.ended.clone()
    }
}

/// Has whoever is erased forgotten.
pub(crate) fn forgetting(learned: &Arc<Learned>) -> impl Fn(&[&str]) + Send + Sync + 'static {
    let learned = Arc::downgrade(learned);
    move |names| {
        if let Some(learned) = learned.upgrade() {
            for name in names {
                learned.forget_subject(name);
            }
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.ended = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Has `learned` know what was kept. Where that cannot be read, nothing is known, and an operator is told.
fn recall(records: &PersonalRecords, learned: &Learned, warnings: &Warnings) {
    let recalled = learned.fill(|teach| {
        let mut unreadable = false;
        let read = records.read(&mut |record| match decode(record) {
            Some((database, key, subject)) => teach(database, key, subject),
            None => unreadable = true,
        });
        match read {
            Ok(_) if unreadable => Err(Error::unavailable("a record in it is none that a proxy wrote")),
            read => read,
        }
    });
    match recalled {
        Ok(PersonalRecordsRead { torn: true, .. }) => warnings.once(Kind::Recalled, || {
            "the file `learned` of the key directory ends in changes that were cut short: what values taught, or had forgotten, in the \
             last moments before the proxy was killed or the power failed is as it was before"
                .to_owned()
        }),
        Ok(_) => {}
        Err(error) => {
            learned.forget_recalled();
            warnings.once(Kind::Recalled, || {
                format!(
                    "what values taught before cannot be read, and the keys are nobody's until their values are written again: {error}"
                )
            });
        }
    }
}

/// What the thread has.
struct Keeping {
    records: PersonalRecords,
    learned: Arc<Learned>,
    counters: Arc<Counters>,
    warnings: Arc<Warnings>,
    /// How long the file was when it was made.
    made_with: u64,
}

impl Keeping {
    /// Keeps in another log, all of it.
    fn renew(&mut self, Renewal { records, is_somebody_erased }: Renewal) {
        self.records = records;
        self.made_with = 0;
        if is_somebody_erased {
            self.forget_unknown();
        }
        self.learned.keep_all_anew();
    }

    /// Forgets whom the log does not know, as whoever is erased, and those of whom it has no entry. Where it cannot say whom it knows, all.
    fn forget_unknown(&mut self) {
        let mut subjects = BTreeSet::new();
        self.learned.for_each(&mut |_, _, subject| {
            subjects.insert(subject.to_owned());
        });
        let names = subjects.iter().map(String::as_str).collect::<Vec<_>>();
        let known = self.records.find(&names).unwrap_or_default();
        for (index, name) in names.into_iter().enumerate() {
            if known.get(index).is_none_or(Option::is_none) {
                self.learned.forget_subject(name);
            }
        }
    }

    /// Keeps what has changed, as `keep` does. Where a defect ends that, what of it was written nobody knows.
    fn unless_defective<T>(&mut self, keep: impl FnOnce(&mut Keeping) -> T) {
        if caught(|| keep(self)).is_err() {
            defect::report(&self.counters, &self.warnings, "the keeping of what values teach");
            self.learned.keep_all_anew();
        }
    }

    /// Writes what has changed, as far as the log knows whom it is about. Whether that was in the way of an erasure, and is to be done again.
    fn keep(&mut self) -> bool {
        let dropped = self.learned.dropped();
        if dropped > 0 {
            self.warnings.once(Kind::LearnedFull, || {
                "there is more to learn of whose data keys are than `limits.learned` has room for: what was asked for least lately is \
                 forgotten, and its keys are nobody's until their values are written again"
                    .to_owned()
            });
        }
        let Some(mut unkept) = self.learned.unkept() else { return false };
        let is_long = self.records.length() > 2 * self.made_with + GROWTH;
        if !unkept.all && (is_long || !self.records.can_append()) {
            self.learned.keep_all_anew();
            unkept = self.learned.unkept().unwrap_or_default();
        }
        let Err(error) = self.write(unkept) else { return false };
        // What of it was written nobody knows.
        self.learned.keep_all_anew();
        if error.kind() == ErrorKind::Erased {
            return true;
        }
        self.counters.unkept.add(1);
        self.warnings.once(Kind::Unkept, || {
            format!("what values teach cannot be written down, and would be lost with the proxy: {error}")
        });
        false
    }

    /// The same at the end, once nothing is learned any more: what waits for its entries, too.
    fn keep_all(&mut self) {
        // Where this fails, the log says so.
        let _ = self.records.settle();
        // Each time somebody else is being erased, which is a matter of a moment.
        (0..MOST_ERASURES).any(|_| !self.keep());
    }

    fn write(&mut self, Unkept { all, known, forgotten }: Unkept) -> Result<()> {
        let (mut names, mut of_name) = (Vec::<&str>::new(), HashMap::new());
        for it in &known {
            if let Entry::Vacant(vacant) = of_name.entry(&*it.subject) {
                vacant.insert(names.len());
                names.push(&it.subject);
            }
        }
        let found = self.records.find(&names)?;
        let subject_of = of_name.into_iter().filter_map(|(name, place)| Some((name, found[place].clone()?)));
        let subject_of =
            subject_of.map(|(name, subject)| (name.to_owned(), subject)).collect::<HashMap<_, _>>();
        let is_found = |it: &KnownKey| subject_of.contains_key(&*it.subject);
        let (mut known, later) = known.into_iter().partition::<Vec<_>, _>(is_found);
        // Somebody may have been erased since then, and be somebody else now.
        self.learned.retain_known(&mut known);
        self.learned.keep_later(later);
        // One key after the other: each is derived once.
        known.sort_unstable_by(|one, other| one.subject.cmp(&other.subject));
        let mut record = Vec::new();
        let is_empty = known.is_empty();
        let fill = |changes: &mut PersonalChanges<'_, '_>| {
            for it in &known {
                encode(it, &mut record);
                changes.put(it.lesson, &subject_of[&*it.subject], &record)?;
            }
            forgotten.iter().for_each(|lesson| changes.remove(*lesson));
            Ok(())
        };
        if all && is_empty {
            self.records.remove()
        } else if all {
            self.records.create(fill)?;
            self.made_with = self.records.length();
            Ok(())
        } else {
            self.records.append(fill)
        }
    }
}

/// A record: database u32 ‖ length of the subject u32 ‖ subject ‖ key.
fn encode(known: &KnownKey, record: &mut Vec<u8>) {
    record.clear();
    record.extend_from_slice(&known.database.to_le_bytes());
    // A subject is no longer than a field of an entry.
    record.extend_from_slice(&u32::try_from(known.subject.len()).unwrap_or(u32::MAX).to_le_bytes());
    record.extend_from_slice(known.subject.as_bytes());
    record.extend_from_slice(&known.key);
}

fn decode(record: &[u8]) -> Option<(u32, &[u8], &str)> {
    let (database, rest) = record.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let (subject, key) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    Some((u32::from_le_bytes(*database), key, std::str::from_utf8(subject).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subject::Span;
    use bulla::{Entry as LogEntry, Init, Options};
    use std::path::Path;

    /// A log that knows these people.
    fn log(directory: &Path, people: &[&str]) -> Log {
        Init::default().create(directory).unwrap();
        let log = Log::open(directory, Options::default()).unwrap();
        let mut producer = log.producer().unwrap();
        for person in people {
            producer.append(&LogEntry::new("read", "key").subject(person)).unwrap();
        }
        producer.flush().unwrap().durable().unwrap();
        log
    }

    #[test]
    fn where_an_erasure_was_finished_of_which_nobody_was_told_those_are_known_whom_the_log_knows() {
        for (is_somebody_erased, bob) in [(false, Some("bob")), (true, None)] {
            let folder = tempfile::tempdir().unwrap();
            let before = log(&folder.path().join("before"), &["ada", "bob"]);
            let again = log(&folder.path().join("again"), &["ada"]);
            let learned = Arc::new(Learned::new(1 << 20));
            for (key, subject, came) in [(b"key1", "ada", 1), (b"key2", "bob", 3)] {
                learned.teach(0, key, subject, Span { came, answered: came + 1, connection: 1 });
            }
            let mut keeping = Keeping {
                records: before.personal_records().unwrap().unwrap(),
                learned: learned.clone(),
                counters: Arc::default(),
                warnings: Arc::new(Warnings::new(Arc::new(|_, _| {}))),
                made_with: 0,
            };
            let records = again.personal_records().unwrap().unwrap();
            keeping.renew(Renewal { records, is_somebody_erased });
            let known = [b"key1", b"key2"].map(|key| learned.lookup(0, key));
            assert_eq!(known.each_ref().map(Option::as_deref), [Some("ada"), bob]);
        }
    }
}

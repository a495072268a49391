//! The witness itself, without a network.

use crate::answer::Answer;
use crate::journal::{Journal, Refused, Tell, shown};
use crate::kept::{self, KEY, Kept, Seen};
use crate::key::WitnessKey;
use crate::request::Request;
use bulla_crypto::environment::{Clock, Random};
use bulla_proof::checkpoint::Checkpoint;
use bulla_proof::consistency::verify_consistency;
use bulla_proof::tree::{self, MAX_SIZE, TreeHead};
use bulla_proof::{CosignatureAlgorithm, CosignerKey, LogKey, NoteError, SignedNote};
use bulla_store::{Error, ErrorKind, Lock, Result, Store};
use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::io;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use zeroize::Zeroizing;

/// The most logs that a witness is configured for.
pub const MOST_LOGS: usize = 1000;
/// The file that is locked while a witness runs, in the directory of its state.
const LOCK: &str = "LOCK";
/// The same in that of its key, which may be one with the other.
const KEYS_LOCK: &str = "witness.lock";
/// The longest key file, in bytes.
const MOST_KEY: u64 = 4096;
/// By how many seconds the clock may be behind the newest cosignature, whose time is then signed again: clocks that are kept right are put
/// back by less.
const MOST_BEHIND: u64 = 60;

/// The keys of each log, by its origin.
type Logs = BTreeMap<String, Vec<LogKey>>;

/// A witness at work: its key, the logs that it cosigns for, and what it has seen of them. One at a time has the directories of the
/// key and of the state, which are locked.
pub struct Witness {
    key: WitnessKey,
    /// The keys of each log, by its origin.
    logs: RwLock<Logs>,
    clock: Arc<dyn Clock>,
    journal: Journal,
    /// Held while a request is judged, kept and signed: so no other can come between.
    kept: Mutex<Kept>,
    /// Of the directories of the key and of the state, in this order.
    locks: [(Arc<dyn Store>, Box<dyn Lock>); 2],
}

impl Witness {
    /// Begins a new witness: makes its key in `keys`, and an empty state. Returns the public half of the key, which those who rely on the
    /// witness need.
    ///
    /// # Errors
    /// `Refused` where there is a key already, or a state; `Invalid` for a name that cannot name a key; `Unavailable` where a file cannot be
    /// written.
    pub fn begin(
        name: &str,
        algorithm: CosignatureAlgorithm,
        state: &dyn Store,
        keys: &dyn Store,
        random: &dyn Random,
    ) -> Result<CosignerKey> {
        let mut seed = Zeroizing::new([0; 32]);
        random.fill(&mut *seed)?;
        let key = WitnessKey::from_seed(name, algorithm, &seed)?;
        match keys.open_secret(KEY) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::io(format!("looking for {}", keys.describe(KEY)), error)),
            Ok(_) => {
                let message = format!(
                    "{} is there already: a witness goes on with its key and its state, or begins with a new key in an empty directory",
                    keys.describe(KEY)
                );
                return Err(Error::new(ErrorKind::Refused, message));
            }
        }
        Kept::begin(state, keys, key.public())?;
        // The key comes last: with it there is what says that it has signed nothing.
        let written = bulla_store::write_new(keys, KEY, key.render().as_bytes());
        written.map_err(|error| Error::io(format!("writing {}", keys.describe(KEY)), error))?;
        Ok(key.public().clone())
    }

    /// Opens a witness that was begun. `logs` are the keys of the logs that it cosigns for; several of one origin are the keys of one
    /// log.
    ///
    /// # Errors
    /// `Invalid` for more than [`MOST_LOGS`] logs, none, or a key that is given twice; `NoKey` where the witness's key is missing, `Locked`
    /// where another process has the key or the state, `Refused` where the state is lost, of an earlier time, another key's, or of a log with other
    /// keys; `Tampered` where a file is damaged, `Unavailable` where one cannot be read.
    pub fn open(
        (state, keys): (Arc<dyn Store>, Arc<dyn Store>),
        logs: Vec<LogKey>,
        clock: Arc<dyn Clock>,
        tell: Tell,
    ) -> Result<Self> {
        let by_origin = by_origin(logs)?;
        let key = load_key(&*keys)?;
        // Whoever has the key signs: two that keep what they signed in two places would sign two histories.
        let keys_lock = lock(&*keys, KEYS_LOCK).map_err(|(error, _)| error)?;
        let state_lock = lock(&*state, LOCK).map_err(|(error, kind)| match kind {
            // Without a directory there is nothing to lock: what was kept is lost, and that is what is told.
            io::ErrorKind::NotFound => Kept::load(&state, &keys, key.public()).err().unwrap_or(error),
            _ => error,
        })?;
        let kept = Kept::load(&state, &keys, key.public())?;
        require_known(&kept, &by_origin)?;
        let journal = Journal::new(tell, clock.clone());
        let locks = [(keys, keys_lock), (state, state_lock)];
        Ok(Witness { key, logs: RwLock::new(by_origin), clock, journal, kept: Mutex::new(kept), locks })
    }

    /// The public half of the key that lies in `keys`, of a witness that need not run.
    ///
    /// # Errors
    /// `NoKey` where the key is missing, `Invalid` where it is none, `Unavailable` where it cannot be read.
    pub fn key_in(keys: &dyn Store) -> Result<CosignerKey> {
        load_key(keys).map(|key| key.public().clone())
    }

    /// Has it cosign for these logs from now on, and for no others. What it has seen of those that are left out stays.
    ///
    /// # Errors
    /// As [`Witness::open`] for what is wrong with the keys of logs; then nothing changes.
    pub fn set_logs(&self, logs: Vec<LogKey>) -> Result<()> {
        let by_origin = by_origin(logs)?;
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        require_known(&kept, &by_origin)?;
        *self.logs.write().unwrap_or_else(PoisonError::into_inner) = by_origin;
        Ok(())
    }

    /// The public half of the witness's key.
    pub fn key(&self) -> &CosignerKey {
        self.key.public()
    }

    /// The origins of the logs that it cosigns for, and the size of the tree of each that it cosigned last.
    pub fn logs(&self) -> Vec<(String, Option<u64>)> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let logs = self.logs.read().unwrap_or_else(PoisonError::into_inner);
        logs.keys().map(|origin| (origin.clone(), kept.seen(origin).map(|seen| seen.size))).collect()
    }

    /// Answers a request with this body: C2SP tlog-witness, `add-checkpoint`. Each is judged, kept and signed before the
    /// next one.
    pub fn add_checkpoint(&self, body: &[u8]) -> Answer {
        match Request::parse(body) {
            Ok(request) => self.judge(&request).unwrap_or_else(|refused| refused),
            Err(why) => Answer::refused(400, why),
        }
    }

    fn judge(&self, request: &Request<'_>) -> Result<Answer, Answer> {
        let malformed = |error: NoteError| Answer::refused(400, &error.to_string());
        let note = SignedNote::parse(request.note).map_err(malformed)?;
        let origin = note.text.split('\n').next().unwrap_or_default();
        let keys = self.logs.read().unwrap_or_else(PoisonError::into_inner).get(origin).cloned();
        let keys = keys.ok_or_else(|| {
            self.journal.refused(origin, Refused::Unknown, || {
                format!("`{}` asked, a log that this witness is not configured for (`logs`)", shown(origin))
            });
            Answer::refused(404, "this witness does not know that log")
        })?;
        let signed = signed_by(&note, &keys).map_err(|error| {
            self.journal.refused(origin, Refused::Unsigned, || {
                format!("a checkpoint of `{origin}` was refused that no key which `logs` has of it signed: {error}")
            });
            Answer::refused(403, &format!("no key of this log has signed the checkpoint: {error}"))
        })?;
        let checkpoint = Checkpoint::parse(note.text).map_err(malformed)?;
        let (size, root) = (checkpoint.size, checkpoint.root);
        if size > MAX_SIZE || request.old_size > size {
            return Err(Answer::refused(400, "the tree is smaller than the old one, or too large"));
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = kept.seen(origin);
        let (old_size, old_root, old_time) =
            seen.map_or((0, tree::empty_root(), 0), |seen| (seen.size, seen.root, seen.time));
        if request.old_size != old_size {
            return Err(Answer::conflict(old_size));
        }
        if size == old_size && root != old_root {
            if seen.is_some() {
                self.tell_conflict(&kept, origin, &signed, TreeHead { size, root });
            }
            let why = format!(
                "the tree of {size} leaves has another root than the one that was seen, or than an empty tree has"
            );
            return Err(Answer::refused(422, &why));
        }
        if let Err(error) = verify_consistency(old_size, &old_root, size, &root, &request.proof) {
            // Of the tree that was cosigned, or with no tree before it, the proof alone is wrong: anybody can send that.
            if old_size > 0 && size > old_size {
                self.journal.refused(origin, Refused::fork(TreeHead { size, root }), || {
                    format!(
                        "a checkpoint that `{origin}` signed was refused: nothing shows that its tree of {size} leaves begins with the one of \
                         {old_size} that was cosigned ({error}). Its root is {}: where the log has that tree, only the request was wrong",
                        root.to_base64()
                    )
                });
            }
            return Err(Answer::refused(422, &format!("the consistency proof does not hold: {error}")));
        }
        let time = self.time_after(old_time, &kept, origin)?;
        // What cannot be signed is not kept either.
        self.key().message(note.text, time).map_err(malformed)?;
        let failed = |error: &Error| {
            self.journal.tell(&format!("nothing is cosigned of `{origin}`: {error}"));
            Answer::refused(500, "the witness could not keep what it would have signed")
        };
        self.require_in_place().map_err(|error| failed(&error))?;
        kept.keep(origin, Seen { size, root, time, note: signed }).map_err(|error| failed(&error))?;
        self.key.cosign(note.text, time).map(Answer::cosigned).map_err(|error| failed(&error))
    }

    /// The time to sign, which is never earlier than the one that was signed before. Where that is yet to come, by far, one of the two is
    /// false, and so would be what is signed.
    fn time_after(&self, before: u64, kept: &Kept, origin: &str) -> Result<u64, Answer> {
        let now = u64::try_from(self.clock.now().div_euclid(1_000_000_000)).unwrap_or(0);
        let behind = before.saturating_sub(now);
        if behind <= MOST_BEHIND {
            return Ok(now.max(before));
        }
        self.journal.refused(origin, Refused::Clock, || {
            format!(
                "nothing is cosigned of `{origin}`: this host's clock is {behind} s behind the time of the newest cosignature ({before}, in {}): \
                 it is wrong now, or was then; docs/operating.md, \"A clock that was ahead\", has what to do",
                kept.describe_log(origin)
            )
        });
        Err(Answer::refused(500, "the witness's clock is behind the time of its own newest cosignature"))
    }

    fn tell_conflict(&self, kept: &Kept, origin: &str, note: &str, head: TreeHead) {
        let place = match kept.keep_conflict(origin, note) {
            Ok(()) => format!("the first such one is in {}", kept.describe_conflict(origin)),
            Err(error) => format!("it could not be kept: {error}"),
        };
        self.journal.refused(origin, Refused::conflict(head), || {
            format!(
                "`{origin}` has two histories: it signed another tree of {} leaves than the one that was cosigned; {place}",
                head.size
            )
        });
    }

    /// Refuses to go on where the directory of the key or of the state was moved or replaced: what was kept there is in nobody's sight, and
    /// the copy of a key that is in its place may be signed with elsewhere.
    fn require_in_place(&self) -> Result<()> {
        self.locks.iter().try_for_each(|(store, lock)| {
            let place = store.describe("");
            match lock.is_in_place() {
                Ok(true) => Ok(()),
                Ok(false) => Err(Error::unavailable(format!(
                    "{place} was moved or replaced: start the witness again where it belongs"
                ))),
                Err(error) => Err(Error::io(format!("looking at {place}"), error)),
            }
        })
    }
}

/// Takes the lock of one of a witness's directories. With an error comes the kind of what the store said.
fn lock(store: &dyn Store, name: &str) -> Result<Box<dyn Lock>, (Error, io::ErrorKind)> {
    store.lock(name).map_err(|error| {
        let kind = error.kind();
        let error = match kind {
            io::ErrorKind::WouldBlock => Error::new(
                ErrorKind::Locked,
                format!("another process is the witness in {}", store.describe("")),
            ),
            _ => Error::io(format!("locking {}", store.describe(name)), error),
        };
        (error, kind)
    })
}

/// The checkpoint with the signatures of these keys alone, of which there has to be one at least.
fn signed_by(note: &SignedNote<'_>, keys: &[LogKey]) -> Result<String, NoteError> {
    let mut any = false;
    for key in keys {
        match key.verify(note) {
            Ok(()) => any = true,
            Err(NoteError::NotSigned) => {}
            // One that does not hold makes all of the note suspect: C2SP signed-note.
            Err(error) => return Err(error),
        }
    }
    if !any {
        return Err(NoteError::NotSigned);
    }
    let of_keys = |name: &str, id: u32| {
        keys.iter().any(|key| match key {
            LogKey::Ed25519(key) => (key.name(), key.key_id()) == (name, id),
            LogKey::MlDsa44(key) => (key.name(), key.key_id()) == (name, id),
        })
    };
    let signatures = note.signatures.iter().filter(|signature| of_keys(signature.name, signature.key_id));
    let signatures = signatures.cloned().collect();
    Ok(SignedNote { text: note.text, signatures }.to_string())
}

/// The keys of logs by their origins.
fn by_origin(logs: Vec<LogKey>) -> Result<Logs> {
    let mut by_origin = Logs::new();
    for key in logs {
        if by_origin.values().flatten().any(|other| other.is_same_key(&key)) {
            return Err(Error::invalid(format!("the log's key {key} is given twice")));
        }
        by_origin.entry(key.name().to_owned()).or_default().push(key);
    }
    if by_origin.is_empty() {
        return Err(Error::invalid("a witness has to be told the keys of the logs that it cosigns for"));
    }
    if by_origin.len() > MOST_LOGS {
        return Err(Error::invalid(format!("a witness cosigns for at most {MOST_LOGS} logs")));
    }
    Ok(by_origin)
}

/// That what was cosigned last of each log is signed with one of its keys.
fn require_known(kept: &Kept, logs: &Logs) -> Result<()> {
    for (origin, keys) in logs {
        let Some(seen) = kept.seen(origin) else { continue };
        let unsigned = |_| {
            let message = format!(
                "the checkpoint of `{origin}` that was cosigned last is signed with none of the keys that are given for that log: give \
                 the key, too, that it had then"
            );
            Error::new(ErrorKind::Refused, message)
        };
        let note = SignedNote::parse(seen.note.as_bytes()).map_err(unsigned)?;
        signed_by(&note, keys).map_err(unsigned)?;
    }
    Ok(())
}

fn load_key(keys: &dyn Store) -> Result<WitnessKey> {
    let name = keys.describe(KEY);
    let text = bulla_store::read_secret(keys, KEY, MOST_KEY).map_err(|error| {
        match error.io_error().is_some_and(|error| error.kind() == io::ErrorKind::NotFound) {
            true if kept::has_begun(keys) => Error::new(
                ErrorKind::NoKey,
                format!(
                    "{name} is missing, the witness's key, and what was signed with it is there: put the key back; where it is lost for good a \
                     witness begins anew, with a new key and in empty directories (`--new`)"
                ),
            ),
            true => Error::new(
                ErrorKind::NoKey,
                format!("{name} is missing, the witness's key: `--new` begins a witness"),
            ),
            false => error,
        }
    });
    let text = Zeroizing::new(text?);
    let damaged = |why: &dyn fmt::Display| Error::invalid(format!("{name}: {why}"));
    let text = std::str::from_utf8(&text).map_err(|_| damaged(&"it is not text"))?;
    WitnessKey::parse(text).map_err(|error| damaged(&error))
}

impl Debug for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Witness").field("key", self.key()).finish_non_exhaustive()
    }
}

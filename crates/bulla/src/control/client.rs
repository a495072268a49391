//! The other processes' side: a client of the writer that has a log open.
#![expect(
    clippy::disallowed_methods,
    reason = "how long a writer may take to answer, and a pause before it is asked again"
)]

use super::link::Link;
use super::message::{Answer, LIMIT, MAX_GROUPS, Request, Response, Status, decode, encode, error};
use super::server::PATIENCE;
use super::{SOCKET, socket};
use crate::admin::configure::{Configure, Configured};
use crate::erase::{Erasure, ErasureOrder, HoldOrder, ReleaseOrder};
use crate::format::event::ExportRecord;
use bulla_crypto::group::{BlockContext, Followed, GroupKeys, GroupSecret, Missing, PartId, Whose};
use bulla_proof::hash::Hash;
use bulla_store::{Error, ErrorKind, Result};
use std::cell::Cell;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The wait before the writer is asked again, where it has too many connections, or does not listen.
const PAUSE: Duration = Duration::from_millis(20);
/// How long a writer is waited for that has the lock and does not listen.
const HANDOVER: Duration = Duration::from_secs(2);
/// Bytes of groups, or of names, that are asked for at once.
const BATCH: usize = LIMIT / 4;
/// The most digits that a number has, and a comma.
const DIGITS: usize = 21;
/// The most bytes that a byte of a name becomes in JSON.
const ESCAPED: usize = 6;

/// A writer in another process, which has a log open. As [`GroupKeys`] it opens groups without giving keys away.
///
/// ```
/// # fn main() -> bulla::Result<()> {
/// # let place = tempfile::tempdir().unwrap();
/// # let directory = place.path().join("audit");
/// # bulla::Init::default().create(&directory)?;
/// use bulla::control::Client;
/// let keys = bulla::default_keys(&directory);
/// assert!(Client::connect(&keys)?.is_none(), "nobody writes");
///
/// let log = bulla::Log::open(&directory, bulla::Options::default())?;
/// let writer = Client::connect(&keys)?.expect("somebody does now");
/// assert_eq!(writer.status().process, std::process::id());
/// writer.rotate()?;
/// log.close()
/// # }
/// ```
pub struct Client {
    keys: PathBuf,
    status: Status,
    /// Held while a request is under way: a client has one connection at a time, since there are few for all clients.
    turn: Mutex<()>,
}

/// How long an answer may take.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answered {
    /// The writer has it at hand.
    Soon,
    /// The writer has to do it and have it durable, which takes as long as the medium, or a plugin, takes.
    Done,
}

impl Client {
    /// The writer that listens in the key directory `keys`; `None` where none does.
    ///
    /// # Errors
    /// `Refused` where it does not take requests from this user, `Unavailable` where it does not answer.
    pub fn connect(keys: impl AsRef<Path>) -> Result<Option<Client>> {
        let keys = keys.as_ref().to_owned();
        match ask(&keys, &Request::Status, Answered::Soon) {
            Ok(Answer::Status(status)) => Ok(Some(Client { keys, status, turn: Mutex::default() })),
            Ok(_) => Err(strange()),
            Err(error) if error.kind() == ErrorKind::Closed => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What the writer said of itself when it was asked first.
    pub fn status(&self) -> &Status {
        &self.status
    }

    /// As [`crate::Log::configure`].
    ///
    /// # Errors
    /// As there; `Closed` where the writer let go of the log before it answered.
    pub fn configure(&self, configure: &Configure) -> Result<Configured> {
        match self.ask(&Request::Configure(configure.clone()), Answered::Done)? {
            Answer::Configured(done) => Ok(done.into()),
            _ => Err(strange()),
        }
    }

    /// As [`crate::Log::rotate`].
    ///
    /// # Errors
    /// As there; `Closed` where the writer let go of the log before it answered.
    pub fn rotate(&self) -> Result<u64> {
        match self.ask(&Request::Rotate, Answered::Done)? {
            Answer::Epoch(number) => Ok(number),
            _ => Err(strange()),
        }
    }

    /// As [`crate::Log::record_export`].
    ///
    /// # Errors
    /// As there; `Closed` where the writer let go of the log before it answered.
    pub fn record_export(&self, record: &ExportRecord) -> Result<()> {
        match self.ask(&Request::RecordExport(record.clone()), Answered::Done)? {
            Answer::Recorded => Ok(()),
            _ => Err(strange()),
        }
    }

    /// As [`crate::Log::erase`].
    ///
    /// # Errors
    /// As there; `Closed` where the writer let go of the log before it answered: opening the log goes on then.
    pub fn erase(&self, order: &ErasureOrder) -> Result<Erasure> {
        self.erased(&Request::Erase(order.clone()))
    }

    /// As [`crate::Log::erase_only`].
    ///
    /// # Errors
    /// As there; `Closed` where the writer let go of the log before it answered: opening the log goes on then.
    pub fn erase_only(&self, order: &ErasureOrder, numbers: &[u64]) -> Result<Erasure> {
        self.erased(&Request::EraseOnly { order: order.clone(), numbers: numbers.to_vec() })
    }

    fn erased(&self, request: &Request) -> Result<Erasure> {
        match self.ask(request, Answered::Done)? {
            Answer::Erased(erasure) => Ok(erasure),
            _ => Err(strange()),
        }
    }

    /// As [`crate::Log::hold`].
    ///
    /// # Errors
    /// As there; `Closed` where the writer let go of the log before it answered.
    pub fn hold(&self, order: &HoldOrder) -> Result<bool> {
        match self.ask(&Request::Hold(order.clone()), Answered::Done)? {
            Answer::Held(added) => Ok(added),
            _ => Err(strange()),
        }
    }

    /// As [`crate::Log::release`].
    ///
    /// # Errors
    /// As there; `Closed` where the writer let go of the log before it answered.
    pub fn release(&self, order: &ReleaseOrder) -> Result<()> {
        match self.ask(&Request::Release(order.clone()), Answered::Done)? {
            Answer::Released => Ok(()),
            _ => Err(strange()),
        }
    }

    fn ask(&self, request: &Request, answered: Answered) -> Result<Answer> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        ask(&self.keys, request, answered)
    }

    /// The numbers of as many data subjects as one message takes. The writer looks at everybody, which takes as long as it takes.
    fn some_numbers(&self, subjects: &[&str]) -> Result<Vec<Option<u64>>> {
        let request =
            Request::Numbers { subjects: subjects.iter().map(|subject| (*subject).to_owned()).collect() };
        match self.ask(&request, Answered::Done)? {
            Answer::Numbers(numbers) if numbers.len() == subjects.len() => Ok(numbers),
            _ => Err(strange()),
        }
    }

    /// The secrets of as many groups as one message takes.
    fn some_secrets(&self, place: BlockContext<'_>, groups: &[&[u64]]) -> Result<Vec<Option<GroupSecret>>> {
        let request = Request::Secrets {
            log: place.log,
            epoch_random: *place.epoch_random,
            frame: place.frame,
            groups: groups.iter().map(|group| group.to_vec()).collect(),
        };
        match self.ask(&request, Answered::Soon)? {
            Answer::Secrets(secrets) if secrets.len() == groups.len() => {
                Ok(secrets.into_iter().map(|secret| secret.map(|secret| secret.0)).collect())
            }
            _ => Err(strange()),
        }
    }
}

impl GroupKeys for Client {
    fn number(&self, subject: &str) -> Result<Option<u64>> {
        Ok(self.some_numbers(&[subject])?.pop().flatten())
    }

    fn numbers(&self, subjects: &[&str]) -> Result<Vec<Option<u64>>> {
        if subjects.is_empty() {
            return self.some_numbers(subjects);
        }
        let mut numbers = Vec::with_capacity(subjects.len());
        for batch in batches(subjects, |subject| bytes_of_name(subject)) {
            numbers.extend(self.some_numbers(batch)?);
        }
        Ok(numbers)
    }

    fn secrets(&self, place: BlockContext<'_>, groups: &[&[u64]]) -> Result<Vec<Option<GroupSecret>>> {
        let mut secrets = Vec::with_capacity(groups.len());
        for batch in batches(groups, |group| bytes_of(group)) {
            secrets.extend(self.some_secrets(place, batch)?);
        }
        Ok(secrets)
    }

    fn is_complete(&self) -> bool {
        true
    }

    fn erased_up_to(&self) -> Result<Followed> {
        match self.ask(&Request::ErasedUpTo, Answered::Soon)? {
            Answer::ErasedUpTo { frames, root, unfollowed, given_up } => {
                let given_up = given_up.into_iter().map(PartId).collect();
                Ok(Followed { frames, root: Some(Hash(root)), unfollowed, given_up })
            }
            _ => Err(strange()),
        }
    }

    fn missing(&self, from: u64) -> Result<Missing> {
        match self.ask(&Request::Missing { from }, Answered::Soon)? {
            Answer::Missing(missing) => Ok(missing.into()),
            _ => Err(strange()),
        }
    }

    fn whose(&self, asked: &[(&[u64], &str)]) -> Result<Option<Vec<Whose>>> {
        let mut whose = Vec::with_capacity(asked.len());
        for batch in batches(asked, |(numbers, name)| bytes_of(numbers) + bytes_of_name(name)) {
            let owned = batch.iter().map(|(numbers, name)| (numbers.to_vec(), (*name).to_owned()));
            match self.ask(&Request::Whose { asked: owned.collect() }, Answered::Soon)? {
                Answer::Whose(answers) if answers.len() == batch.len() => {
                    whose.extend(answers.into_iter().map(Whose::from));
                }
                _ => return Err(strange()),
            }
        }
        Ok(Some(whose))
    }
}

/// What is asked for in runs that one message takes, by the bytes that each item takes at most.
pub(super) fn batches<T>(mut asked: &[T], bytes_of: impl Fn(&T) -> usize) -> impl Iterator<Item = &[T]> {
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = |item: &&T| {
            bytes += bytes_of(item);
            bytes <= BATCH
        };
        let count = asked.iter().take(MAX_GROUPS).take_while(fits).count();
        let (batch, rest) = asked.split_at(count.max(1).min(asked.len()));
        asked = rest;
        Some(batch).filter(|batch| !batch.is_empty())
    })
}

/// The bytes that a group's numbers take in a message, at most.
pub(super) fn bytes_of(group: &[u64]) -> usize {
    3 + DIGITS * group.len()
}

/// The bytes that a name takes in a message, at most.
pub(super) fn bytes_of_name(name: &str) -> usize {
    8 + ESCAPED * name.len()
}

/// Asks on a connection of its own. None is kept open between requests, since the writer would have to keep it, too.
fn ask(keys: &Path, request: &Request, answered: Answered) -> Result<Answer> {
    let message = encode(request)?;
    let until = Instant::now() + PATIENCE;
    loop {
        match respond(keys, &message, answered)? {
            Some(Response::Answer(answer)) => return Ok(answer),
            Some(Response::Error { kind, text, effect }) => return Err(error(&kind, text, effect)),
            Some(Response::Busy) if Instant::now() < until => sleep(PAUSE),
            None if Instant::now() < until => sleep(PAUSE),
            Some(Response::Busy) => {
                return Err(Error::new(ErrorKind::Timeout, "the writer is busy with other requests"));
            }
            None => {
                return Err(Error::new(
                    ErrorKind::Timeout,
                    "the writer lets nobody in: it is busy with other requests, is stopped, or was killed, and processes that it had forked off have its socket",
                ));
            }
        }
    }
}

/// The response; `None` where the queue before the socket is full.
fn respond(keys: &Path, message: &[u8], answered: Answered) -> Result<Option<Response>> {
    let path = keys.join(SOCKET);
    let failed = |error| Error::io(format!("asking the writer at {}", path.display()), error);
    // What another process says is nobody's mistake here.
    let unknown = |error: Error| match error.kind() {
        ErrorKind::Invalid => Error::unavailable(format!(
            "what answers at {} is no writer of this version of Bulla ({error}): look which process has that socket",
            path.display()
        )),
        _ => error,
    };
    let link = match socket::connect(keys) {
        // A child of a writer that was killed answers nobody.
        Ok(Some(socket)) => Link::to_listener(socket).map_err(|_| gone())?,
        Ok(None) => return Err(gone()),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let soon = Instant::now().checked_add(PATIENCE);
    // Sending may fail where the writer turns this client away: it has sent an answer then, which is read all the same.
    let sent = link.send(message, soon);
    let deadline = if answered == Answered::Soon { soon } else { None };
    match link.receive(deadline) {
        Ok(Some(response)) => decode(&response).map(Some).map_err(unknown),
        Ok(None) => Err(gone()),
        Err(error) if is_end(&error) => Err(gone()),
        Err(error) => Err(failed(sent.err().unwrap_or(error))),
    }
}

fn is_end(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset)
}

fn gone() -> Error {
    Error::new(ErrorKind::Closed, "the writer let go of the log before it answered")
}

fn strange() -> Error {
    Error::unavailable("the writer's answer is none to what it was asked")
}

/// Has the writer do something, where one has the log open, or else does it `alone`, which takes the lock. A writer may
/// come or go in between: each of the two is tried again then, for some 2 s, since one that is opening the log, or closing it, has the
/// lock and does not listen. Where a writer let go of the log before it answered, it may have done what is then done alone.
///
/// # Errors
/// As what was tried last; `Locked` also says why the writer that has the log could not be asked.
pub fn through_writer<T>(
    keys: impl AsRef<Path>,
    ask: impl Fn(&Client) -> Result<T>,
    alone: impl FnMut() -> Result<T>,
) -> Result<T> {
    let mut until = None;
    through_writer_with(keys.as_ref(), ask, alone, || {
        let goes_on = Instant::now() < *until.get_or_insert_with(|| Instant::now() + HANDOVER);
        if goes_on {
            sleep(PAUSE);
        }
        goes_on
    })
}

/// Whether the process that listened is gone, and others that it had forked off have its socket. Whoever connects waits for nobody, and takes the place
/// of another, of which there are few.
fn is_orphaned(keys: &Path) -> bool {
    let connected = socket::connect(keys).ok().flatten();
    connected.is_some_and(|socket| Link::to_listener(socket).is_err())
}

/// The same, which has `pause` wait before it tries again, and say whether it may.
pub(super) fn through_writer_with<T>(
    keys: &Path,
    ask: impl Fn(&Client) -> Result<T>,
    mut alone: impl FnMut() -> Result<T>,
    mut pause: impl FnMut() -> bool,
) -> Result<T> {
    let unasked = Cell::new(None);
    let ask_writer = || match Client::connect(keys) {
        Ok(Some(writer)) => match ask(&writer) {
            Err(error) if error.kind() == ErrorKind::Closed => Ok(None),
            done => done.map(Some),
        },
        Ok(None) => Ok(None),
        // The socket cannot be reached, so the lock has to say whether there is a writer.
        Err(error) if error.kind() == ErrorKind::Unavailable => {
            unasked.set(Some(error));
            Ok(None)
        }
        Err(error) => Err(error),
    };
    if let Some(done) = ask_writer()? {
        return Ok(done);
    }
    loop {
        let locked = match alone() {
            Err(error) if error.kind() == ErrorKind::Locked => error,
            done => return done,
        };
        // Whoever answered, if wrongly, is there.
        if unasked.take().is_none() && is_orphaned(keys) {
            let orphans = "that writer is gone, and processes that it had forked off have its lock: end them";
            return Err(Error::new(ErrorKind::Locked, format!("{locked}; {orphans}")));
        }
        if let Some(done) = ask_writer()? {
            return Ok(done);
        }
        match unasked.take() {
            Some(why) => {
                return Err(Error::new(ErrorKind::Locked, format!("{locked}; it cannot be asked: {why}")));
            }
            None if pause() => {}
            None => return Err(locked),
        }
    }
}

//! [`Listen`] and [`Listening`]: the side of the process that has the log open.
#![expect(clippy::disallowed_methods, reason = "a thread for each socket")]

use super::datagrams::{Datagrams, Holds};
use super::intake::{AsSent, Counters, Counts, Intake};
use super::listener::Listener;
use super::serve::Service;
use crate::control::link::Stop;
use crate::log::Log;
use crate::write::telling;
use bulla_store::{Error, Result, process};
use bulla_text::spelling::counted;
use rustix::net::SocketType;
use rustix::process::{Resource, getrlimit};
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

/// Clients at once, unless it is said otherwise.
const CLIENTS: usize = 64;
/// Descriptors of a client: one that is read, and one that is written.
const OF_CLIENT: u64 = 2;
/// Those of the log, its vault and its paths, of whoever reads or erases meanwhile, and of the process itself.
const RESERVED: u64 = 128;
/// The sockets' owner alone may connect.
const MODE: u32 = 0o600;

/// How a log listens for entries of other processes.
///
/// ```
/// # fn main() -> bulla::Result<()> {
/// # let place = tempfile::tempdir().unwrap();
/// # let (directory, path) = (place.path().join("audit"), place.path().join("audit.sock"));
/// # bulla::Init::default().create(&directory)?;
/// use bulla::socket::{Connection, Listen};
/// use bulla::{Entry, Log, Options};
/// let log = Log::open(&directory, Options::default())?;
/// let listening = Listen::default().stream(&path).start(&log)?;
///
/// // In other processes, as many as there are:
/// let connection = Connection::open(&path)?;
/// let mut producer = connection.producer()?;
/// producer.append(&Entry::new("read", "user_42/email").subject("user_42"))?;
/// producer.flush()?.durable()?;
/// drop(producer);
/// connection.close()?;
///
/// assert_eq!(listening.stop().accepted, 1);
/// log.close()
/// # }
/// ```
#[must_use = "nothing listens before `start`"]
pub struct Listen {
    stream: Option<PathBuf>,
    datagrams: Option<PathBuf>,
    records: Option<PathBuf>,
    mode: u32,
    pub(super) clients: usize,
    pub(super) peer_is_actor: bool,
    pub(super) intake: Arc<dyn Intake>,
}

impl Default for Listen {
    fn default() -> Self {
        let intake = Arc::new(AsSent);
        Listen {
            stream: None,
            datagrams: None,
            records: None,
            mode: MODE,
            clients: CLIENTS,
            peer_is_actor: false,
            intake,
        }
    }
}

impl Listen {
    /// Takes batches at `path`, and acknowledges each once it is durable.
    pub fn stream(mut self, path: impl AsRef<Path>) -> Self {
        self.stream = Some(path.as_ref().to_owned());
        self
    }

    /// Takes batches at `path`, each in a datagram, and acknowledges none.
    pub fn datagrams(mut self, path: impl AsRef<Path>) -> Self {
        self.datagrams = Some(path.as_ref().to_owned());
        self
    }

    /// Takes records at `path`, each in a datagram that is nothing else, as programs send them to `/dev/log`: what [`Intake::parse_record`] makes
    /// of one is an entry. None is acknowledged.
    pub fn records(mut self, path: impl AsRef<Path>) -> Self {
        self.records = Some(path.as_ref().to_owned());
        self
    }

    /// Who may connect, as the mode of the sockets (default 0600).
    pub fn mode(mut self, mode: u32) -> Self {
        self.mode = mode;
        self
    }

    /// Clients of the stream socket at once (default 64): more are turned away. Each has a producer, and takes two descriptors: the limit
    /// on open files has to have room for them, and for 128 more.
    pub fn clients(mut self, clients: usize) -> Self {
        self.clients = clients;
        self
    }

    /// Has every entry's actor be who the kernel says sent it, `uid:` and the user's number, whatever it claims.
    pub fn peer_is_actor(mut self, is_it: bool) -> Self {
        self.peer_is_actor = is_it;
        self
    }

    /// What becomes of entries before they are appended.
    pub fn intake(mut self, intake: Arc<dyn Intake>) -> Self {
        self.intake = intake;
        self
    }

    /// Listens for entries of `log` from now on.
    ///
    /// # Errors
    /// `Invalid` for a mode or number out of range, for no socket at all, and where something else lies at a path; `Locked`
    /// where somebody listens there; `Unavailable` where the process may have too few files open for so many clients, and else.
    pub fn start(self, log: &Log) -> Result<Listening> {
        if self.stream.is_none() && self.datagrams.is_none() && self.records.is_none() {
            return Err(Error::invalid("there is no socket to listen at"));
        }
        if self.mode > 0o777 {
            return Err(Error::invalid(format!("{:o} is no mode of a socket: 0 to 777", self.mode)));
        }
        if self.clients == 0 {
            return Err(Error::invalid("listening needs room for a client"));
        }
        if self.stream.is_some() {
            require_descriptors(self.clients, getrlimit(Resource::Nofile).current)?;
        }
        let sockets = [
            (&self.stream, SocketType::STREAM),
            (&self.datagrams, SocketType::DGRAM),
            (&self.records, SocketType::DGRAM),
        ];
        let sockets = sockets.map(|(path, kind)| path.as_deref().map(|path| (path, kind)));
        let [stream, datagrams, records] = Listener::bind_all(sockets, self.mode)?;
        let failed = |error| Error::io("starting to listen", error);
        let stop = Arc::new(Stop::new().map_err(failed)?);
        let counters = Arc::new(Counters::default());
        let mut listening = Listening {
            stop: stop.clone(),
            counters: counters.clone(),
            parts: Vec::new(),
            owner: process::id(),
        };
        let service = Arc::new(Service {
            clients: self.clients,
            peer_is_actor: self.peer_is_actor,
            intake: self.intake,
            origin: log.origin(),
            producers: log.producers(),
            stop,
            counters,
            large: Arc::default(),
        });
        for (listener, holds) in [(datagrams, Holds::Batch), (records, Holds::Record)] {
            let Some(listener) = listener else { continue };
            let from = Datagrams::new(&service, log.producer()?, holds);
            listening.run("bulla-datagrams", listener, move |socket| from.receive(socket)).map_err(failed)?;
        }
        if let Some(listener) = stream {
            let accept = move |socket: &_| service.accept(socket);
            listening.run("bulla-listen", listener, accept).map_err(failed)?;
        }
        Ok(listening)
    }
}

/// That clients leave to the log the descriptors that it needs, where the process may have `limit` of them: one that finds none left when
/// it is to go on by another path stands still until clients leave.
fn require_descriptors(clients: usize, limit: Option<u64>) -> Result<()> {
    let needed = (clients as u64).saturating_mul(OF_CLIENT).saturating_add(RESERVED);
    match limit {
        Some(limit) if limit < needed => Err(Error::unavailable(format!(
            "this process may have {limit} open files, and {}, the log and the rest need {needed}: raise that (`ulimit -n`, \
             `LimitNOFILE=` of systemd), or listen for fewer clients",
            counted(clients as u64, "client")
        ))),
        _ => Ok(()),
    }
}

impl fmt::Debug for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Listen { stream, datagrams, records, mode, clients, .. } = self;
        write!(f, "Listen({stream:?}, {datagrams:?}, {records:?}, {mode:o}, {clients} clients)")
    }
}

/// A log that listens. It is stopped before the log is closed.
pub struct Listening {
    stop: Arc<Stop>,
    counters: Arc<Counters>,
    parts: Vec<(Arc<Listener>, JoinHandle<()>)>,
    owner: u32,
}

impl Listening {
    /// The sockets that are listened at, for a process that forks: a child of it has copies of them, and as long as one is open clients can
    /// connect, although nobody answers them.
    pub fn sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.parts.iter().map(|(listener, _)| listener.socket.as_fd())
    }

    fn run(
        &mut self,
        name: &str,
        listener: Listener,
        serve: impl FnOnce(&std::os::fd::OwnedFd) + Send + 'static,
    ) -> std::io::Result<()> {
        let listener = Arc::new(listener);
        let listening = listener.clone();
        let thread =
            std::thread::Builder::new().name(name.to_owned()).spawn(move || serve(&listening.socket));
        let thread = thread.inspect_err(|_| listener.remove())?;
        self.parts.push((listener, thread));
        Ok(())
    }

    /// What was counted so far.
    pub fn counts(&self) -> Counts {
        self.counters.read()
    }

    /// Takes nothing more: batches that were read are acknowledged once they are durable, datagrams that have come are appended. Clients
    /// then see the end of their connection.
    pub fn stop(mut self) -> Counts {
        self.end();
        self.counters.read()
    }

    fn end(&mut self) {
        if self.owner != process::id() {
            // A forked child has a copy of this, and none of its threads: it must not stop its parent's.
            return std::mem::forget(std::mem::take(&mut self.parts));
        }
        self.stop.set();
        for (listener, thread) in self.parts.drain(..) {
            // Nobody is to find it who would then wait for an answer.
            listener.remove();
            // It ends by itself where what it waits for waits for this thread.
            if !telling::is_telling() {
                drop(thread.join());
            }
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.end();
    }
}

impl fmt::Debug for Listening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Listening({:?})", self.counts())
    }
}

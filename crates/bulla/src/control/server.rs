//! The writer's side: a thread that accepts connections, and one for each connection.
//!
//! Times are real ones, which the environment's clock has no part in: a client is another process, and what is waited for is a
//! socket.
#![expect(
    clippy::disallowed_methods,
    reason = "a thread for the socket and one for each connection, and how long a peer may take"
)]

use super::handle::handle;
use super::link::{Link, Served, Stop, stop_listening};
use super::message::{Answer, Request, Response, decode, encode};
use super::peer;
use super::socket::Listener;
use crate::write::engine::Engine;
use bulla_store::{Error, ErrorKind, FileSystem, Result, Store};
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with};
use rustix::process::{Uid, geteuid};
use std::io;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Connections at once.
pub(super) const CONNECTIONS: usize = 8;
/// How long a message may take to arrive, counted from the end of the one before it, and how long to be sent.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// The wait after a connection could not be accepted, for want of file descriptors say.
const PAUSE: Duration = Duration::from_millis(100);

/// Listens until it is stopped.
pub(crate) struct Server {
    listener: Arc<Listener>,
    stop: Arc<Stop>,
    acceptor: JoinHandle<()>,
}

/// What all connections share.
struct Service {
    handle: Box<dyn Fn(Request) -> Result<Answer> + Send + Sync>,
    stop: Arc<Stop>,
    patience: Duration,
}

impl Server {
    /// Listens in `directory`, which is held, for what is asked of `engine`. The caller holds the locks.
    ///
    /// # Errors
    /// `Unavailable` where the socket cannot be made.
    pub(crate) fn start(engine: &Arc<Engine>, directory: &FileSystem) -> Result<Self> {
        let engine = engine.clone();
        Self::serve(directory, PATIENCE, move |request| handle(&engine, request))
    }

    pub(super) fn serve(
        directory: &FileSystem,
        patience: Duration,
        handle: impl Fn(Request) -> Result<Answer> + Send + Sync + 'static,
    ) -> Result<Self> {
        let failed = |error| Error::io(format!("making {}", directory.describe(super::SOCKET)), error);
        let stop = Arc::new(Stop::new().map_err(failed)?);
        let listener = Arc::new(Listener::new(directory).map_err(failed)?);
        let service = Arc::new(Service { handle: Box::new(handle), stop: stop.clone(), patience });
        let listening = listener.clone();
        let acceptor = thread::Builder::new().name("bulla-control".to_owned());
        let acceptor =
            acceptor.spawn(move || service.accept(&listening.socket)).inspect_err(|_| listener.remove());
        Ok(Server { listener, stop, acceptor: acceptor.map_err(failed)? })
    }

    /// Ends all connections; requests that are being carried out are carried out first.
    pub(crate) fn stop(self) {
        self.stop.set();
        drop(self.acceptor.join());
        self.listener.remove();
    }
}

impl Service {
    fn accept(self: Arc<Self>, listener: &OwnedFd) {
        let mut connections = Vec::new();
        // Each connection holds a reference to this: they are counted by it.
        let taken = Arc::new(());
        while self.stop.wait_for(listener) {
            match accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(socket) => {
                    connections.retain(|connection: &JoinHandle<()>| !connection.is_finished());
                    connections.extend(self.begin(Served::new(socket, Some(self.stop.clone())), &taken));
                }
                Err(Errno::WOULDBLOCK | Errno::INTR | Errno::CONNABORTED) => {}
                // For one, the process may have too many files open: that passes.
                Err(_) => drop(self.stop.wait(PAUSE)),
            }
        }
        stop_listening(listener);
        connections.into_iter().for_each(|connection| drop(connection.join()));
    }

    /// Serves a connection in a thread of its own, unless it is turned away.
    fn begin(self: &Arc<Self>, link: Served, taken: &Arc<()>) -> Option<JoinHandle<()>> {
        if let Err(error) = check_peer(link.socket()) {
            self.respond(&link, &error.into());
            return None;
        }
        if Arc::strong_count(taken) > CONNECTIONS {
            self.respond(&link, &Response::Busy);
            return None;
        }
        let (service, taken) = (self.clone(), taken.clone());
        let thread = thread::Builder::new().name("bulla-control".to_owned());
        let spawned = thread.spawn(move || {
            while service.serve(&link) {}
            // The count goes down before the client sees the end, so that it can connect again at once.
            drop(taken);
            drop(link);
        });
        spawned.ok()
    }

    /// Answers one request; whether another may follow.
    fn serve(&self, link: &Link) -> bool {
        if self.stop.wait(Duration::ZERO) {
            return false;
        }
        let request = match link.receive(self.deadline()) {
            Ok(Some(message)) => decode::<Request>(&message),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                Err(Error::invalid("the message is too long"))
            }
            Ok(None) | Err(_) => return false,
        };
        match request {
            Ok(request) => {
                let done = catch_unwind(AssertUnwindSafe(|| (self.handle)(request)));
                let panicked = done.is_err();
                let done = done.unwrap_or_else(|_| Err(Error::unavailable("the writer panicked over this")));
                self.respond(link, &done.map_or_else(Response::from, Response::Answer)) && !panicked
            }
            // Where this was no message, nobody can tell where the next one would begin.
            Err(error) => {
                self.respond(link, &error.into());
                false
            }
        }
    }

    /// Whether it was taken.
    fn respond(&self, link: &Link, response: &Response) -> bool {
        let message = encode(response).or_else(|error| encode(&Response::from(error)));
        message.is_ok_and(|message| link.send(&message, self.deadline()).is_ok())
    }

    fn deadline(&self) -> Option<Instant> {
        Instant::now().checked_add(self.patience)
    }
}

/// That the process that connected may ask.
fn check_peer(socket: &OwnedFd) -> Result<()> {
    let peer = peer::of_connection(socket).map_err(|error| Error::io("asking who connected", error))?;
    admit(Uid::from_raw(peer.user), geteuid())
}

/// The writer's own user can read the key directory anyway, and so can root.
pub(super) fn admit(peer: Uid, own: Uid) -> Result<()> {
    match peer == own || peer.is_root() {
        true => Ok(()),
        false => {
            let (peer, own) = (peer.as_raw(), own.as_raw());
            let message =
                format!("the writer takes requests from user {own} and from root, not from user {peer}");
            Err(Error::new(ErrorKind::Refused, message))
        }
    }
}

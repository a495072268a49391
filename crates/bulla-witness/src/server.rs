//! A witness over HTTP/1.1: `POST /add-checkpoint`, with TLS or behind a proxy that has it.
//!
//! Neither how many connect nor what one may send or how long it may take is up to who connects: [`CONNECTIONS`], [`HEAD`],
//! [`MOST`](crate::request::MOST), [`TIME`], [`IDLE`]. Nobody is asked who they are: the log's signature is what counts.
#![expect(clippy::disallowed_methods, reason = "the threads of the connections")]

mod connection;
#[cfg(test)]
mod tests;
mod tls;

#[cfg(test)]
use crate::Answer;
use crate::Witness;
use crate::journal::Tell;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
pub use tls::Tls;

/// How many connections are served at once. Those that come then wait until one ends.
pub const CONNECTIONS: usize = 64;
/// The longest head of a request, in bytes.
pub const HEAD: usize = 8 << 10;
/// How long a request may take from its first byte to the last of the answer, and agreeing on TLS.
pub const TIME: Duration = Duration::from_secs(10);
/// How long a connection is kept for the next request.
pub const IDLE: Duration = Duration::from_secs(30);

/// How long connections that are being served have when the server ends.
const LAST: Duration = Duration::from_secs(5);
/// How long to wait where no connection can be accepted, as there are no descriptors left.
const PAUSE: Duration = Duration::from_millis(100);

/// For fuzzing: that the head of a request says where its body ends, or is refused, or is not there yet.
#[cfg(any(test, fuzzing))]
pub(crate) fn check_head(bytes: &[u8]) {
    connection::check_head(bytes);
}

/// Listens for requests to a witness.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<Tls>,
    stopped: UnixStream,
    stop: Stop,
}

/// Ends a server from any thread.
#[derive(Clone, Debug)]
pub struct Stop {
    stop: Arc<UnixStream>,
    places: Arc<Places>,
}

/// The places that there are for connections, [`CONNECTIONS`] of them.
#[derive(Debug, Default)]
struct Places {
    now: Mutex<Now>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Now {
    taken: usize,
    /// Nobody gets one any more.
    stopped: bool,
}

/// A connection's place among them, which it gives back when it ends.
struct Taken(Arc<Places>);

impl Server {
    /// Listens on an address, with TLS or without.
    ///
    /// # Errors
    /// It cannot be listened on: something else does, or it is none of this machine.
    pub fn listen(address: SocketAddr, tls: Option<Tls>) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (stopped, stop) = UnixStream::pair()?;
        let stop = Stop { stop: Arc::new(stop), places: Arc::default() };
        Ok(Server { listener, address, tls, stopped, stop })
    }

    /// Where it listens: with port 0 the operating system chose one.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// By what another thread can end it.
    pub fn stopper(&self) -> Stop {
        self.stop.clone()
    }

    /// Serves until it is stopped. Requests that are under way then have 5 seconds to end.
    ///
    /// # Errors
    /// Where it can listen no more.
    pub fn run(self, witness: &Arc<Witness>, tell: &Tell) -> io::Result<()> {
        let places = &self.stop.places;
        while !places.now().stopped {
            let mut looked_at =
                [PollFd::new(&self.listener, PollFlags::IN), PollFd::new(&self.stopped, PollFlags::IN)];
            match poll(&mut looked_at, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            match self.listener.accept() {
                Ok((stream, _)) => self.serve(stream, witness),
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                // Of one that went away before it was accepted.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    tell(&format!("a connection could not be accepted: {error}"));
                    std::thread::sleep(PAUSE);
                }
            }
        }
        places.wait_until_given_back(LAST);
        Ok(())
    }

    /// Gives a connection to a thread of its own, once there is a place. One that still waits when the server is stopped is closed.
    fn serve(&self, stream: TcpStream, witness: &Arc<Witness>) {
        let Some(place) = self.stop.places.take() else { return };
        let (witness, tls) = (witness.clone(), self.tls.clone());
        let serve = move || {
            // The connection is closed before its place is given back.
            let (place, stream) = (place, stream);
            let crowded = || place.0.now().taken > CONNECTIONS / 2;
            // Whoever asked knows by what has not come.
            let _ = connection::serve(&stream, tls.as_ref(), &witness, &crowded);
        };
        // Where there is no thread for it, the connection is closed with what was to run.
        let _ = std::thread::Builder::new().name("bulla-witness".to_owned()).spawn(serve);
    }
}

impl Stop {
    /// Ends the server: it accepts no more connections.
    pub fn stop(&self) {
        self.places.now().stopped = true;
        self.places.changed.notify_all();
        // It ends already where the other side is gone.
        let _ = rustix::io::write(&*self.stop, &[0]);
    }
}

impl Places {
    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place, once there is one: each is given back after [`TIME`] and [`IDLE`] at the latest, where others wait. None, once nobody
    /// gets one any more.
    fn take(self: &Arc<Self>) -> Option<Taken> {
        let wait = |now: &mut Now| now.taken >= CONNECTIONS && !now.stopped;
        let mut now = self.changed.wait_while(self.now(), wait).unwrap_or_else(PoisonError::into_inner);
        if now.stopped {
            return None;
        }
        now.taken += 1;
        Some(Taken(self.clone()))
    }

    /// Waits until all are given back, for `time` at most.
    fn wait_until_given_back(&self, time: Duration) {
        drop(self.changed.wait_timeout_while(self.now(), time, |now| now.taken > 0));
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.0.now().taken -= 1;
        self.0.changed.notify_all();
    }
}

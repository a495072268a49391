//! What a connection of the stream socket is served by: a thread that reads and appends, and one that acknowledges.
#![expect(
    clippy::disallowed_methods,
    reason = "two threads for each connection, and how long a client may take"
)]

use super::intake::{Counters, Intake, Peer, Sent, count};
use super::messages::{Large, Messages};
use super::wire::{Acknowledgement, Failure, Form, Greeting, REASONS, Refusal, VERSION, framed};
use super::{GRACE, MAX_MESSAGE, PATIENCE, WINDOW};
use crate::control::link::{Link, Served, Stop, stop_listening};
use crate::control::peer;
use crate::log::{Producer, Producers, Receipt};
use bulla_proof::Entry;
use bulla_store::{Error, ErrorKind, Result};
use bulla_text::msgpack;
use rustix::io::Errno;
use rustix::net::{Shutdown, SocketFlags, accept_with, shutdown};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The wait after a connection could not be accepted, for want of file descriptors say.
const PAUSE: Duration = Duration::from_millis(100);
/// Batches that are here are appended before any of them is flushed, as long as they have fewer entries than so many.
const TOGETHER: u64 = 4096;

/// What all connections share.
pub(super) struct Service {
    pub(super) clients: usize,
    pub(super) peer_is_actor: bool,
    pub(super) intake: Arc<dyn Intake>,
    pub(super) origin: String,
    pub(super) producers: Producers,
    pub(super) stop: Arc<Stop>,
    pub(super) counters: Arc<Counters>,
    pub(super) large: Arc<Large>,
}

/// A batch that was looked at. Its entries are durable, but for those that were refused, once `covered` is; nothing is known of them
/// where that is an error.
struct Batch {
    acknowledgement: Acknowledgement,
    covered: Result<Receipt>,
}

impl Service {
    /// Accepts connections until the log listens no more, and waits for those that there are.
    pub(super) fn accept(self: Arc<Self>, listener: &OwnedFd) {
        let mut connections = Vec::new();
        while self.stop.wait_for(listener) {
            match accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(socket) => {
                    connections.retain(|connection: &JoinHandle<()>| !connection.is_finished());
                    match self.begin(socket, connections.len()) {
                        Some(connection) => connections.push(connection),
                        None => count(&self.counters.turned_away, 1),
                    }
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
    fn begin(self: &Arc<Self>, socket: OwnedFd, connected: usize) -> Option<JoinHandle<()>> {
        let admitted = if connected < self.clients {
            peer_of(&socket).and_then(|peer| Ok((peer, self.producers.producer()?)))
        } else {
            Err(Error::unavailable(format!("{connected} clients are connected already")))
        };
        let link = Served::with_grace(socket, self.stop.clone(), GRACE);
        let (peer, producer) = match admitted {
            Ok(admitted) => admitted,
            Err(error) => {
                drop(link.put(&framed(&self.greeting(Some(&error))), Some(Instant::now())));
                return None;
            }
        };
        let service = self.clone();
        let thread = thread::Builder::new().name("bulla-client".to_owned());
        let spawned = thread.spawn(move || service.serve(&link, peer, producer)).ok()?;
        count(&self.counters.clients, 1);
        Some(spawned)
    }

    fn greeting(&self, error: Option<&Error>) -> Greeting {
        Greeting {
            version: VERSION,
            origin: self.origin.clone(),
            window: WINDOW,
            max_message: MAX_MESSAGE,
            error: error.map(Failure::from),
        }
    }

    fn serve(&self, link: &Link, peer: Peer, producer: Producer) {
        let Ok(socket) = link.socket().try_clone() else { return };
        if link.put(&framed(&self.greeting(None)), deadline()).is_err() {
            return;
        }
        let (batches, looked_at) = mpsc::sync_channel::<Batch>(WINDOW);
        thread::scope(|scope| {
            let acknowledging = thread::Builder::new().name("bulla-acks".to_owned());
            let acknowledging = acknowledging.spawn_scoped(scope, || {
                acknowledge(looked_at, link);
                // What reads has nobody left to tell anything.
                let _ = shutdown(link.socket(), Shutdown::Read);
            });
            if acknowledging.is_ok() {
                let reading = Link::new(socket, Some(self.stop.clone()));
                self.take(&reading, peer, producer, batches);
            }
        });
    }

    /// Reads and appends batches until there are no more.
    fn take(&self, link: &Link, peer: Peer, mut producer: Producer, batches: mpsc::SyncSender<Batch>) {
        let mut messages = Messages::new(MAX_MESSAGE);
        let mut number = 0;
        // Those that were appended and not flushed.
        let mut together = Vec::<Acknowledgement>::new();
        let mut entries = 0;
        // Whoever sends without a pause is not waited for, which is where a wait would end.
        while !self.stop.wait(Duration::ZERO) {
            let read = messages.next(link, &self.large);
            let body = match &read {
                Ok(Some(message)) => Ok(message.body),
                Ok(None) => break,
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => break,
                Err(error) => Err(unread(error)),
            };
            number += 1;
            let mut acknowledgement = Acknowledgement { batch: number, ..Acknowledgement::default() };
            let appended = body.and_then(|body| self.append(body, peer, &mut producer, &mut acknowledgement));
            drop(read);
            entries += acknowledgement.accepted;
            let goes_on = appended.is_ok();
            if let Err(error) = &appended {
                acknowledgement.error = Some(error.into());
            }
            together.push(acknowledgement);
            if goes_on && messages.is_next_here() && entries < TOGETHER && together.len() < WINDOW {
                continue;
            }
            entries = 0;
            if !hand_over(&mut together, &mut producer, &batches) || !goes_on {
                return;
            }
        }
        hand_over(&mut together, &mut producer, &batches);
    }

    /// Appends the entries of a batch, and says what became of them.
    ///
    /// # Errors
    /// `Invalid` where it is no batch; the log's, where that takes nothing more.
    pub(super) fn append(
        &self,
        body: &[u8],
        peer: Peer,
        producer: &mut Producer,
        acknowledgement: &mut Acknowledgement,
    ) -> Result<()> {
        let form = body.first().and_then(|byte| Form::of(*byte)).ok_or_else(|| {
            Error::invalid("a batch begins with `L` for lines or `M` for MessagePack (docs/socket.md)")
        })?;
        count(&self.counters.batches, 1);
        let appended = self.append_each(form, body, peer, producer, acknowledgement);
        // Once a batch: all clients count in the same place.
        count(&self.counters.accepted, acknowledgement.accepted);
        appended
    }

    /// Appends a record that a datagram has, and says what became of it.
    ///
    /// # Errors
    /// The log's, where that takes nothing more.
    pub(super) fn append_record(
        &self,
        record: &[u8],
        peer: Peer,
        producer: &mut Producer,
        acknowledgement: &mut Acknowledgement,
    ) -> Result<()> {
        let actor = self.peer_is_actor.then(|| format!("uid:{}", peer.user));
        let parsed = self.intake.parse_record(record);
        let read = parsed.as_ref().map(|parsed| parsed.entry()).map_err(Clone::clone);
        let mut taking = Taking { service: self, peer, actor: actor.as_deref(), producer, acknowledgement };
        let appended = taking.take(1, read, Some(record));
        count(&self.counters.accepted, acknowledgement.accepted);
        appended
    }

    fn append_each(
        &self,
        form: Form,
        body: &[u8],
        peer: Peer,
        producer: &mut Producer,
        acknowledgement: &mut Acknowledgement,
    ) -> Result<()> {
        let actor = self.peer_is_actor.then(|| format!("uid:{}", peer.user));
        let mut taking = Taking { service: self, peer, actor: actor.as_deref(), producer, acknowledgement };
        let mut rest = &body[1..];
        let mut place = 0;
        while !rest.is_empty() {
            place += 1;
            match form {
                Form::MessagePack => {
                    let read = msgpack::read_entry(&mut rest).map_err(|error| error.to_string());
                    taking.take(place, read, None)?;
                }
                Form::Lines => {
                    let end = rest.iter().position(|byte| *byte == b'\n');
                    let line = &rest[..end.unwrap_or(rest.len())];
                    rest = end.map_or(&[], |end| &rest[end + 1..]);
                    let parsed = self.intake.parse(line);
                    taking.take(
                        place,
                        parsed.as_ref().map(|parsed| parsed.entry()).map_err(Clone::clone),
                        Some(line),
                    )?;
                }
            }
        }
        Ok(())
    }
}

/// What takes the entries of one batch.
struct Taking<'a> {
    service: &'a Service,
    peer: Peer,
    actor: Option<&'a str>,
    producer: &'a mut Producer,
    acknowledgement: &'a mut Acknowledgement,
}

impl<'a> Taking<'a> {
    /// Appends an entry, waiting for memory as long as it takes, or counts it as refused.
    fn take<'e>(&mut self, place: u64, read: Result<Entry<'e>, String>, raw: Option<&[u8]>) -> Result<()>
    where
        'a: 'e,
    {
        let (service, actor) = (self.service, self.actor);
        let completed = read.and_then(|entry| {
            let mut entry = entry;
            service.intake.complete(&mut entry)?;
            entry.actor = actor.or(entry.actor);
            Ok(entry)
        });
        let reason = match completed {
            Ok(entry) => loop {
                match self.producer.append(&entry) {
                    Ok(()) => {
                        self.acknowledgement.accepted += 1;
                        return Ok(());
                    }
                    Err(error) if error.kind() == ErrorKind::Invalid => break error.to_string(),
                    // A medium that is slow is waited for; one that fails says so by itself.
                    Err(error)
                        if error.kind() == ErrorKind::Timeout && !service.stop.wait(Duration::ZERO) => {}
                    Err(error) => return Err(error),
                }
            },
            Err(reason) => reason,
        };
        count(&service.counters.refused, 1);
        let sent = Sent { from: self.peer, batch: self.acknowledgement.batch, entry: place };
        service.intake.refused(sent, &reason, raw);
        self.acknowledgement.refused += 1;
        if self.acknowledgement.reasons.len() < REASONS {
            self.acknowledgement.reasons.push(Refusal { entry: place, reason });
        }
        Ok(())
    }
}

/// Flushes what was appended, and hands the batches to what acknowledges them; false where that has ended.
fn hand_over(
    together: &mut Vec<Acknowledgement>,
    producer: &mut Producer,
    batches: &mpsc::SyncSender<Batch>,
) -> bool {
    let flushed = producer.flush();
    let mut told = together.drain(..).map(|acknowledgement| {
        let covered = match &flushed {
            Ok(receipt) => Ok(receipt.clone()),
            Err(error) => Err(Error::new(error.kind(), error.to_string())),
        };
        batches.send(Batch { acknowledgement, covered }).is_ok()
    });
    told.all(|sent| sent)
}

/// Acknowledges batches, each once it is durable, up to one of which that is not known.
fn acknowledge(batches: mpsc::Receiver<Batch>, link: &Link) {
    for Batch { mut acknowledgement, covered } in batches {
        if let Err(error) = covered.and_then(|receipt| receipt.durable()) {
            acknowledgement.error.get_or_insert_with(|| Failure::from(&error));
        }
        if acknowledgement.error.is_some() {
            // What of it is durable nobody knows here.
            acknowledgement.accepted = 0;
        }
        let told = link.put(&framed(&acknowledgement), deadline());
        if told.is_err() || acknowledgement.error.is_some() {
            return;
        }
    }
}

/// Why a batch could not be read, for whoever sent it.
fn unread(error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::InvalidData => {
            Error::invalid(format!("a message has {MAX_MESSAGE} bytes at most: send smaller batches"))
        }
        io::ErrorKind::TimedOut => {
            Error::invalid(format!("a message took more than {} s to come", PATIENCE.as_secs()))
        }
        io::ErrorKind::UnexpectedEof => Error::invalid("the connection ended within a message"),
        _ => Error::unavailable(format!("reading from the client: {error}")),
    }
}

fn peer_of(socket: &OwnedFd) -> Result<Peer> {
    let peer = peer::of_connection(socket).map_err(|error| Error::io("asking who connected", error))?;
    Ok(peer.into())
}

fn deadline() -> Option<Instant> {
    Instant::now().checked_add(PATIENCE)
}

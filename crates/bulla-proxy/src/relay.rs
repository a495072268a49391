//! [`Relay`]: moves the bytes of one [`Session`] between its two sides.
//!
//! Invariants:
//! - nothing is read that the session has no room for, so what comes too fast waits where it comes from;
//! - a side that has ended is told to the other one only once all that came before it has left.

use crate::counters::RefusedConnection;
use crate::entrance::{FirstBytes, refusal};
use crate::session::{Ended, Session, Ticket};
use crate::stream::Stream;
use crate::worker::Worker;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// See the module.
pub(crate) struct Relay {
    client: Side,
    server: Side,
    session: Session,
    first_bytes: FirstBytes,
    worker: Rc<Worker>,
    /// Of which of the worker's settings the session knows.
    generation: u64,
    /// For what this waits already.
    awaited: Ticket,
    /// The last time of want of memory of which it waits for the end.
    paused_in: u64,
    /// Whether anything came or left since it was asked last.
    active: bool,
    /// Nothing new is begun.
    draining: bool,
}

/// A connection, and how far it is.
struct Side {
    stream: Stream,
    /// Nothing comes any more.
    ended: bool,
    /// Nothing can leave any more.
    shut: bool,
    /// Something left that the stream may still hold.
    unflushed: bool,
}

impl Side {
    fn new(stream: Stream) -> Self {
        Side { stream, ended: false, shut: false, unflushed: false }
    }

    /// Gives `take` what comes next. Whether anything did.
    fn read(
        &mut self,
        cx: &mut Context<'_>,
        worker: &Worker,
        take: impl FnOnce(&[u8]) -> Result<(), Ended>,
    ) -> Result<bool, Ended> {
        let mut room = worker.room();
        let mut buffer = ReadBuf::new(&mut room);
        match Pin::new(&mut self.stream).poll_read(cx, &mut buffer) {
            Poll::Pending => Ok(false),
            Poll::Ready(Ok(())) if !buffer.filled().is_empty() => take(buffer.filled()).map(|()| true),
            // Whoever is reset says nothing more either.
            Poll::Ready(_) => {
                self.ended = true;
                Ok(true)
            }
        }
    }

    /// Lets bytes leave; how many did.
    fn write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> usize {
        if bytes.is_empty() || self.shut {
            return 0;
        }
        match Pin::new(&mut self.stream).poll_write(cx, bytes) {
            Poll::Pending => 0,
            Poll::Ready(Ok(0) | Err(_)) => {
                self.shut = true;
                0
            }
            Poll::Ready(Ok(count)) => {
                self.unflushed = true;
                count
            }
        }
    }

    fn flush(&mut self, cx: &mut Context<'_>) {
        if self.unflushed && Pin::new(&mut self.stream).poll_flush(cx).is_ready() {
            self.unflushed = false;
        }
    }

    fn poll_shut(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.shut {
            // That the other side is gone already changes nothing.
            let _ = ready!(Pin::new(&mut self.stream).poll_shutdown(cx));
            self.shut = true;
        }
        Poll::Ready(())
    }
}

impl Relay {
    pub(crate) fn new(
        client: Stream,
        server: Stream,
        session: Session,
        first_bytes: FirstBytes,
        worker: Rc<Worker>,
    ) -> Self {
        let (client, server, generation) = (Side::new(client), Side::new(server), worker.generation());
        Relay {
            client,
            server,
            session,
            first_bytes,
            worker,
            generation,
            awaited: 0,
            paused_in: 0,
            active: true,
            draining: false,
        }
    }

    /// Relays until one side has ended, or both have to.
    ///
    /// # Errors
    /// Why this ends the connection.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Ended>> {
        while self.step(cx)? {
            self.active = true;
        }
        self.worker.look_after();
        self.client.flush(cx);
        self.server.flush(cx);
        if self.client.shut {
            return Poll::Ready(Ok(()));
        }
        if self.is_over() {
            ready!(self.client.poll_shut(cx));
            return Poll::Ready(Ok(()));
        }
        if self.client.ended && self.session.is_taken() && self.session.to_server.is_drained() {
            let _ = self.server.poll_shut(cx);
        }
        self.wait(cx)
    }

    /// From now on the connection ends as soon as everything that came is answered.
    pub(crate) fn drain(&mut self) {
        self.draining = true;
    }

    /// Whether nothing came or left since this was asked last, and the client waits for nothing.
    pub(crate) fn is_idle(&mut self) -> bool {
        !std::mem::take(&mut self.active) && self.session.is_idle() && !self.session.listens()
    }

    /// Whether the client sent what is no command.
    pub(crate) fn is_violated(&self) -> bool {
        self.session.is_violated()
    }

    /// Tells the client, as far as it takes that at once, that what it waits for was not recorded.
    pub(crate) fn tell_unrecorded(&mut self, cx: &mut Context<'_>) {
        let Relay { client, session, worker, .. } = self;
        let come = worker.come_for(session.to_client.waits_for(), worker.come());
        session.to_client.ready(come);
        session.tell_unrecorded();
        client.write(cx, session.to_client.ready(come));
        client.flush(cx);
    }

    /// The connection ended: what was not answered is recorded as such. The client's side, for whoever has told it something.
    pub(crate) fn end(mut self) -> Stream {
        let now = self.worker.now();
        self.session.end(now, &mut *self.worker.recorder_now());
        self.worker.look_after();
        self.client.stream
    }

    /// Moves what can be moved. Whether anything could.
    fn step(&mut self, cx: &mut Context<'_>) -> Result<bool, Ended> {
        let rests = self.draining && self.session.is_idle();
        let Relay { client, server, session, first_bytes, worker, generation, .. } = self;
        if *generation != worker.generation() {
            *generation = worker.generation();
            session.adopt(&worker.settings().context);
        }
        let now = worker.now();
        let counters = worker.counters();
        let mut moved = false;
        let waits = worker.is_full() && session.intends_entries();
        if !client.ended && !rests && !waits && session.wants_client() {
            moved |= client.read(cx, worker, |bytes| {
                counters.from_clients.add(bytes.len() as u64);
                let taken = first_bytes
                    .then(bytes, |bytes| session.from_client(bytes, now, &mut *worker.recorder_now()));
                taken.unwrap_or_else(|error| {
                    worker.shared.refused(RefusedConnection::ProxyHeader, || error.to_string());
                    session.refuse(&refusal(&error));
                    Ok(())
                })
            })?;
        }
        let come = worker.come();
        let come_for_server = worker.come_for(session.to_server.waits_for(), come);
        let written = server.write(cx, session.to_server.ready(come_for_server));
        session.to_server.leave(written);
        moved |= written > 0;
        let waits = worker.is_full() && session.awaits_entries();
        if !server.ended && !waits && session.wants_server() {
            moved |= server.read(cx, worker, |bytes| {
                counters.from_server.add(bytes.len() as u64);
                session.from_server(bytes, now, &mut *worker.recorder_now())
            })?;
        }
        let come_for_client = worker.come_for(session.to_client.waits_for(), worker.come());
        let written = client.write(cx, session.to_client.ready(come_for_client));
        session.to_client.leave(written);
        moved |= written > 0;
        Ok(moved && !client.shut)
    }

    fn is_over(&self) -> bool {
        let answered = self.session.to_client.is_drained();
        let rests = self.session.is_idle() && self.session.to_server.is_drained();
        self.session.is_over() || self.server.ended && answered || self.draining && rests
    }

    /// Sees to it that this is woken once what it waits for is durable, or there is memory for what it would record.
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Ended>> {
        if self.worker.is_full() {
            self.worker.wake_when_not_full(cx.waker(), &mut self.paused_in);
        }
        let tickets = [self.session.to_server.waits_for(), self.session.to_client.waits_for()];
        if tickets.into_iter().flatten().any(|ticket| self.worker.has_lost(ticket)) {
            return Poll::Ready(Err(Ended::Unrecorded));
        }
        // Whatever waits for nothing, waits for the side that it goes to.
        let come = self.worker.come();
        let ticket = tickets.into_iter().flatten().filter(|ticket| *ticket > come).min();
        if let Some(ticket) = ticket.filter(|ticket| *ticket != self.awaited) {
            self.worker.wake_at(ticket, cx.waker());
            self.awaited = ticket;
        }
        Poll::Pending
    }
}

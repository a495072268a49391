//! [`Relay`]: moves the bytes of one [`Session`] between its two sides.
//!
//! Invariants:
//! - nothing is read that the session has no room for, so what comes too fast waits where it comes from;
//! - whoever has said that nothing more comes is gone once nothing moves for [`PATIENCE`], though that is still to be read;
//! - a side that has ended is told to the other one only once all that came before it has left.

use crate::counters::RefusedConnection;
use crate::entrance::{FirstBytes, refusal};
use crate::session::{Ended, Session};
use crate::stream::Stream;
use crate::worker::{Awaited, Worker};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// Where `idle_timeout` is not shorter.
const PATIENCE: Duration = Duration::from_secs(10);

/// See the module.
pub(crate) struct Relay {
    client: Side,
    server: Side,
    session: Session,
    first_bytes: FirstBytes,
    worker: Rc<Worker>,
    /// Of which of the worker's settings the session knows.
    generation: u64,
    awaited: Awaited,
    /// The last time of want of memory of which it waits for the end.
    paused_in: u64,
    /// Whether anything came or left since it was asked last.
    active: bool,
    /// Nothing new is begun.
    draining: bool,
    /// When to look whether the client is gone, where nothing was read from it some time.
    unread: Option<Pin<Box<Sleep>>>,
    /// Whether anything came or left, or could have been read, since that began.
    moved: bool,
}

/// A connection, and how far it is.
struct Side {
    stream: Stream,
    /// Nothing comes any more.
    ended: bool,
    /// Nothing comes before the connection is polled again, and it will be woken for that.
    awaited: bool,
    /// Nothing can leave any more.
    shut: bool,
    /// Something left that the stream may still hold.
    unflushed: bool,
}

impl Side {
    fn new(stream: Stream) -> Self {
        Side { stream, ended: false, awaited: false, shut: false, unflushed: false }
    }

    /// Gives `take` what comes next. Whether anything did.
    fn read(
        &mut self,
        cx: &mut Context<'_>,
        worker: &Worker,
        take: impl FnOnce(&[u8]) -> Result<(), Ended>,
    ) -> Result<bool, Ended> {
        if self.awaited {
            return Ok(false);
        }
        let mut room = worker.room();
        let mut buffer = ReadBuf::new(&mut room);
        match Pin::new(&mut self.stream).poll_read(cx, &mut buffer) {
            Poll::Pending => {
                self.awaited = true;
                Ok(false)
            }
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
            awaited: Awaited::default(),
            paused_in: 0,
            active: true,
            draining: false,
            unread: None,
            moved: true,
        }
    }

    /// Relays until one side has ended, or both have to.
    ///
    /// # Errors
    /// Why this ends the connection.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Ended>> {
        (self.client.awaited, self.server.awaited) = (false, false);
        let stepped = loop {
            match self.step(cx) {
                Ok(true) => (self.active, self.moved) = (true, true),
                stepped => break stepped,
            }
        };
        self.worker.request_retry();
        self.client.flush(cx);
        self.server.flush(cx);
        stepped?;
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
        if self.is_gone(cx) {
            return Poll::Ready(Ok(()));
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
        let released = worker.released_for(session.to_client.waits_for(), worker.released());
        session.to_client.ready(released);
        session.tell_unrecorded();
        client.write(cx, session.to_client.ready(released));
        client.flush(cx);
    }

    /// The connection ended: what was not answered is recorded as such. The client's side, for whoever has told it something.
    pub(crate) fn end(mut self) -> Stream {
        let now = self.worker.now();
        self.session.end(now, &mut *self.worker.recorder_now());
        self.worker.request_retry();
        self.client.stream
    }

    /// Moves what can be moved. Whether anything could.
    fn step(&mut self, cx: &mut Context<'_>) -> Result<bool, Ended> {
        if self.generation != self.worker.generation() {
            self.generation = self.worker.generation();
            self.session.adopt(&self.worker.settings().context);
        }
        let reads_client = self.reads_client();
        let Relay { client, server, session, first_bytes, worker, .. } = self;
        let counters = worker.counters();
        let mut moved = false;
        if reads_client {
            moved |= client.read(cx, worker, |bytes| {
                counters.from_clients.add(bytes.len() as u64);
                let now = worker.now();
                let taken = first_bytes
                    .then(bytes, |bytes| session.from_client(bytes, now, &mut *worker.recorder_now()));
                taken.unwrap_or_else(|error| {
                    worker.shared.refused(RefusedConnection::ProxyHeader, || error.to_string());
                    session.refuse(&refusal(&error));
                    Ok(())
                })
            })?;
        }
        let released = worker.released();
        let released_to_server = worker.released_for(session.to_server.waits_for(), released);
        let written = server.write(cx, session.to_server.ready(released_to_server));
        session.to_server.leave(written);
        moved |= written > 0;
        let waits = worker.is_full() && session.awaits_entries();
        let mut came = Ok(false);
        if !server.ended && !waits && session.wants_server() {
            came = server.read(cx, worker, |bytes| {
                counters.from_server.add(bytes.len() as u64);
                // Not before it came: what the server did in between would seem to have been done after the reply.
                let now = worker.now();
                session.from_server(bytes, now, &mut *worker.recorder_now())
            });
        }
        let released_to_client = worker.released_for(session.to_client.waits_for(), worker.released());
        let written = client.write(cx, session.to_client.ready(released_to_client));
        session.to_client.leave(written);
        // What was answered before the connection has to end has left by now, as far as it waits for nothing.
        moved |= came? || written > 0;
        Ok(moved && !client.shut)
    }

    /// Whether more is read from the client.
    fn reads_client(&self) -> bool {
        let rests = self.draining && self.session.has_begun_nothing();
        let waits = self.worker.is_full() && self.session.intends_entries();
        !self.client.ended && !rests && !waits && self.session.wants_client()
    }

    /// Whether the client has left while nothing is read from it, so that its end is not. One that only says nothing more gets what it
    /// waits for as long as anything moves.
    fn is_gone(&mut self, cx: &mut Context<'_>) -> bool {
        if self.client.ended || self.reads_client() {
            self.moved = true;
            return false;
        }
        let worker = &self.worker;
        let patience = || worker.settings().limits.idle_timeout.map_or(PATIENCE, |idle| idle.min(PATIENCE));
        let unread = self.unread.get_or_insert_with(|| Box::pin(sleep(patience())));
        while unread.as_mut().poll(cx).is_ready() {
            if !std::mem::take(&mut self.moved) && self.client.stream.is_read_closed() {
                return true;
            }
            unread.as_mut().reset(Instant::now() + patience());
        }
        false
    }

    fn is_over(&self) -> bool {
        let answered = self.session.to_client.is_drained();
        let rests = self.session.has_begun_nothing() && self.session.to_server.is_drained();
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
        let ticket = self.session.ticket();
        if ticket > 0 && ticket <= self.worker.durable_up_to() && !self.worker.has_lost(ticket) {
            // Of old losses not each is known later on.
            self.session.forget_ticket();
        }
        // Whatever waits for nothing, waits for the side that it goes to.
        let released = self.worker.released();
        if let Some(ticket) = tickets.into_iter().flatten().filter(|ticket| *ticket > released).min() {
            self.worker.wake_at(ticket, &self.awaited, cx.waker());
        }
        Poll::Pending
    }
}

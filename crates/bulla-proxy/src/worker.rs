//! [`Worker`]: what the connections of one thread have in common, and the thread.
//!
//! Each worker has a recorder of its own, and a task that wakes whoever waits for entries to be durable: replies of many
//! connections wait for one sync.

use crate::config::{Unrecordable, Upstream};
use crate::counters::Counters;
use crate::recorder::{Durable, Recorder};
use crate::relay::Relay;
use crate::session::{self, Session, Ticket};
use crate::stream::Stream;
use crate::upstream;
use bulla::environment::Clock;
use std::cell::{RefCell, RefMut};
use std::future::{pending, poll_fn};
use std::net::TcpStream;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinSet;

/// So many bytes are read at once.
const READ: usize = 64 << 10;

/// What all workers have in common.
pub(crate) struct Shared {
    pub(crate) upstream: Upstream,
    pub(crate) connect_timeout: Duration,
    pub(crate) idle_timeout: Option<Duration>,
    pub(crate) drain_timeout: Duration,
    pub(crate) unrecordable: Unrecordable,
    pub(crate) counters: Arc<Counters>,
    pub(crate) clock: Arc<dyn Clock>,
}

/// A client that was accepted.
pub(crate) struct Client {
    pub(crate) stream: Accepted,
    /// Its address.
    pub(crate) address: String,
    pub(crate) counted: Counted,
}

/// A stream that no runtime knows yet.
pub(crate) enum Accepted {
    Tcp(TcpStream),
    Unix(std::os::unix::net::UnixStream),
}

/// Counts a client for as long as it is there.
pub(crate) struct Counted(pub(crate) Arc<Counters>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.clients.subtract(1);
    }
}

/// See the module.
pub(crate) struct Worker {
    shared: Arc<Shared>,
    context: Rc<session::Context>,
    recorder: RefCell<Recorder>,
    durable: Arc<Durable>,
    /// Room for what is read, until the session has taken it.
    room: RefCell<Box<[u8]>>,
    /// Who waits until so many entries are durable.
    waiting: RefCell<Vec<(Ticket, Waker)>>,
    /// Has something to say: more is durable, or somebody waits for it.
    changed: Arc<Notify>,
}

impl Worker {
    /// Serves clients until no more can come and none is left, or those that are have had their time.
    pub(crate) async fn run(
        self,
        mut clients: mpsc::UnboundedReceiver<Client>,
        stopped: watch::Receiver<bool>,
    ) {
        let worker = Rc::new(self);
        let mut tasks = JoinSet::new();
        let mut durability = pin!(worker.clone().tell_durable());
        let mut more = true;
        while more || !tasks.is_empty() {
            tokio::select! {
                client = clients.recv(), if more => match client {
                    Some(client) => drop(tasks.spawn_local(serve(worker.clone(), client, stopped.clone()))),
                    None => more = false,
                },
                _ = tasks.join_next(), if !tasks.is_empty() => {}
                () = &mut durability => {}
            }
        }
    }

    /// Of this context, which records with `recorder`. The recorder has `changed` notified.
    pub(crate) fn new(
        shared: Arc<Shared>,
        context: session::Context,
        recorder: Recorder,
        changed: Arc<Notify>,
    ) -> Self {
        Worker {
            shared,
            context: Rc::new(context),
            durable: recorder.durable().clone(),
            recorder: RefCell::new(recorder),
            room: RefCell::new(vec![0; READ].into_boxed_slice()),
            waiting: RefCell::default(),
            changed,
        }
    }

    /// A steady clock's nanoseconds.
    pub(crate) fn now(&self) -> u64 {
        self.shared.clock.steady()
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    pub(crate) fn recorder(&self) -> RefMut<'_, Recorder> {
        self.recorder.borrow_mut()
    }

    pub(crate) fn room(&self) -> RefMut<'_, Box<[u8]>> {
        self.room.borrow_mut()
    }

    /// How many entries are durable, or as good as that: where the log has failed, and commands may pass without.
    pub(crate) fn durable(&self) -> Ticket {
        match self.shared.unrecordable {
            Unrecordable::Pass if self.durable.has_failed() => Ticket::MAX,
            _ => self.durable.ticket(),
        }
    }

    /// Whether what is waited for will never be durable.
    pub(crate) fn has_failed(&self) -> bool {
        self.durable.has_failed()
    }

    /// Wakes somebody once so many entries are durable, and sees to it that they become so.
    pub(crate) fn wake_at(&self, ticket: Ticket, waker: &Waker) {
        self.waiting.borrow_mut().push((ticket, waker.clone()));
        self.changed.notify_one();
    }

    /// Wakes those who wait, and sends what they wait for on its way. Never ends.
    async fn tell_durable(self: Rc<Self>) {
        loop {
            self.changed.notified().await;
            // Those who are ready to record more come first: one sync serves them, too.
            tokio::task::yield_now().await;
            let durable = if self.has_failed() { Ticket::MAX } else { self.durable() };
            self.waiting.borrow_mut().retain(|(ticket, waker)| {
                let waits = *ticket > durable;
                if !waits {
                    waker.wake_by_ref();
                }
                waits
            });
            if !self.waiting.borrow().is_empty() {
                self.recorder().flush();
            }
        }
    }
}

/// Serves one client from its first byte to its last.
async fn serve(worker: Rc<Worker>, client: Client, stopped: watch::Receiver<bool>) {
    let Client { stream, address, counted } = client;
    let stream = match stream {
        Accepted::Tcp(stream) => tokio::net::TcpStream::from_std(stream).and_then(Stream::tcp),
        Accepted::Unix(stream) => tokio::net::UnixStream::from_std(stream).map(Stream::Unix),
    };
    // Whoever is gone already wants nothing.
    if let Ok(stream) = stream {
        relay(worker, stream, &address, stopped).await;
    }
    drop(counted);
}

/// Relays between a client, over whatever it came, and the server.
async fn relay<C>(worker: Rc<Worker>, mut client: C, address: &str, mut stopped: watch::Receiver<bool>)
where
    C: AsyncRead + AsyncWrite + Unpin,
{
    let shared = worker.shared.clone();
    let server = match upstream::connect(&shared.upstream.place, shared.connect_timeout).await {
        Ok(server) => server,
        Err(_) => {
            shared.counters.unreachable.add(1);
            let told = b"-BULLA the server behind the proxy cannot be reached\r\n";
            let _ = poll_fn(|cx| Pin::new(&mut client).poll_write(cx, told)).await;
            return;
        }
    };
    let session = Session::new(worker.context.clone(), address);
    let mut relay = Relay::new(client, server, session, worker.clone());
    let mut draining = false;
    let ended = loop {
        let limit = if draining { Some(shared.drain_timeout) } else { shared.idle_timeout };
        let time = async {
            match limit {
                Some(limit) => tokio::time::sleep(limit).await,
                None => pending().await,
            }
        };
        tokio::select! {
            ended = poll_fn(|cx| relay.poll(cx)) => break ended,
            _ = stopped.wait_for(|stopped| *stopped), if !draining => {
                draining = true;
                relay.drain();
            }
            () = time => if draining || relay.is_idle() {
                break Ok(());
            }
        }
    };
    if matches!(ended, Err(session::Ended::ServerNotFollowed(_))) {
        shared.counters.not_followed.add(1);
    }
    relay.end();
}

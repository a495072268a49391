//! Clients, from the first byte of each to its last, on the thread of a [`Worker`].

use crate::counters::Counters;
use crate::relay::Relay;
use crate::session::{Ended, Session};
use crate::stream::Stream;
use crate::upstream;
use crate::worker::Worker;
use std::future::{pending, poll_fn};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

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
    Unix(UnixStream),
}

/// Counts a client for as long as it is there.
pub(crate) struct Counted(pub(crate) Arc<Counters>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.clients.subtract(1);
    }
}

/// Serves clients until no more can come and none is left, or those that are have had their time.
pub(crate) async fn run(
    worker: Worker,
    mut clients: mpsc::UnboundedReceiver<Client>,
    stopped: watch::Receiver<bool>,
) {
    let worker = Rc::new(worker);
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
    if relay.is_violated() || matches!(ended, Err(Ended::ServerNotFollowed(_))) {
        shared.counters.not_followed.add(1);
    }
    relay.end();
}

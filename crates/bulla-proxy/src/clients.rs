//! Clients, from the first byte of each to its last, on the thread of a [`Worker`].

use crate::counters::Counters;
use crate::defect::{Defect, caught, caught_within};
use crate::ending::Ending;
use crate::entrance::{Accepted, Entered, NotEntered, enter};
use crate::recorder::Renewal;
use crate::relay::Relay;
use crate::session::{Ended, Session};
use crate::settings::Settings;
use crate::stream::Stream;
use crate::upstream;
use crate::warnings::Kind;
use crate::worker::Worker;
use std::future::{pending, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// So long a client that was told something may take to end its side.
const FAREWELL: Duration = Duration::from_secs(1);

/// A client that was accepted.
pub(crate) struct Client {
    pub(crate) stream: Accepted,
    pub(crate) counted: Counted,
}

/// Counts a client for as long as it is there.
pub(crate) struct Counted(pub(crate) Arc<Counters>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.clients.subtract(1);
    }
}

/// Serves clients until no more can come and none is left, or those that are have had their time.
///
/// # Errors
/// What all of them need ended by a defect. So did their connections then, each of which has recorded what was under way.
pub(crate) async fn run(
    worker: Worker,
    (clients, renewals): (&mut mpsc::UnboundedReceiver<Client>, &mut mpsc::UnboundedReceiver<Renewal>),
    mut settings: watch::Receiver<Arc<Settings>>,
    mut stopped: watch::Receiver<Ending>,
) -> Result<(), Defect> {
    let worker = Rc::new(worker);
    let (end, ending) = watch::channel(*stopped.borrow_and_update());
    let mut tasks = JoinSet::new();
    let mut durability = pin!(worker.clone().tell_durable());
    let mut again = pin!(worker.clone().retry());
    let mut time_is_over = pin!(time_is_over(worker.clone(), stopped.clone()));
    let mut more = true;
    worker.request_retry();
    while more || !tasks.is_empty() {
        let sound = !worker.is_defective();
        let done = tokio::select! {
            client = clients.recv(), if more => {
                match client {
                    Some(client) => drop(tasks.spawn_local(serve(worker.clone(), client, ending.clone()))),
                    None => more = false,
                }
                Ok(())
            }
            Ok(()) = settings.changed(), if sound => {
                let settings = settings.borrow_and_update().clone();
                caught(|| worker.adopt(settings))
            }
            Some(renewal) = renewals.recv(), if sound => caught(|| worker.renew(renewal)),
            Ok(()) = stopped.changed(), if sound => {
                let told = *stopped.borrow_and_update();
                end.send_modify(|ending| *ending = told.max(*ending));
                Ok(())
            }
            () = time_is_over.as_mut(), if !end.borrow().is_at_once() => {
                end.send_replace(Ending::AtOnce);
                Ok(())
            }
            ended = tasks.join_next(), if !tasks.is_empty() => {
                if let Some(Err(_)) = ended {
                    worker.shared.failed("a connection");
                }
                Ok(())
            }
            done = caught_within(durability.as_mut()), if sound => done,
            done = caught_within(again.as_mut()), if sound => done,
        };
        if done.is_err() {
            worker.shared.failed("a thread that serves clients");
            worker.set_defective();
            more = false;
            end.send_replace(Ending::AtOnce);
        }
    }
    let finished = caught(|| worker.finish());
    if worker.is_defective() { Err(Defect) } else { finished }
}

/// Waits until the clients of a proxy that is ending have had their time.
async fn time_is_over(worker: Rc<Worker>, mut stopped: watch::Receiver<Ending>) {
    match stopped.wait_for(Ending::has_begun).await {
        Ok(_) => {}
        Err(_) => pending().await,
    }
    tokio::time::sleep(worker.settings().limits.drain_timeout).await;
}

/// Serves one client from its first byte to its last.
async fn serve(worker: Rc<Worker>, client: Client, mut stopped: watch::Receiver<Ending>) {
    let Client { stream, counted } = client;
    let settings = worker.settings();
    let entered = tokio::select! {
        // Who has to say nothing first is in, and what it sent is answered.
        biased;
        entered = enter(stream, &settings) => entered,
        _ = stopped.wait_for(Ending::has_begun) => Err(NotEntered::Gone),
    };
    match entered {
        Ok(entered) => relay(worker, entered, stopped).await,
        Err(NotEntered::Refused(why, what)) => worker.shared.refused(why, || what),
        // Whoever is gone already wants nothing.
        Err(NotEntered::Gone) => {}
    }
    drop(counted);
}

/// Relays between a client, over whatever it came, and the server.
async fn relay(worker: Rc<Worker>, entered: Entered, mut stopped: watch::Receiver<Ending>) {
    let Entered { stream: mut client, address, certificate, first_bytes } = entered;
    let shared = worker.shared.clone();
    let settings = worker.settings();
    let connecting =
        upstream::connect(&settings.place, settings.connector.as_ref(), settings.limits.connect_timeout);
    let connected = tokio::select! {
        connected = connecting => connected,
        _ = stopped.wait_for(Ending::is_at_once) => {
            if !worker.is_defective() {
                shared.counters.cut_off.add(1);
            }
            return;
        }
    };
    let server = match connected {
        Ok(server) => server,
        Err(error) => {
            shared.counters.unreachable.add(1);
            shared.warnings.once(Kind::Unreachable, || format!("the server cannot be reached: {error}"));
            tell(&mut client, b"-BULLA the server behind the proxy cannot be reached\r\n").await;
            leave(client).await;
            return;
        }
    };
    let session = Session::new(settings.context.clone(), &address, certificate.as_deref());
    drop(settings);
    let mut relay = Relay::new(client, server, session, first_bytes, worker.clone());
    // What has come by now is taken before that is looked at.
    stopped.mark_changed();
    let mut ending = Ending::NotYet;
    let ended = loop {
        if ending.is_at_once() {
            if worker.is_defective() {
                break Err(Ended::Defect);
            }
            shared.counters.cut_off.add(1);
            break Ok(());
        }
        let draining = ending.has_begun();
        if draining {
            relay.drain();
        }
        let limit = worker.settings().limits.idle_timeout.filter(|_| !draining);
        let time = async {
            match limit {
                Some(limit) => tokio::time::sleep(limit).await,
                None => pending().await,
            }
        };
        tokio::select! {
            // The relay is what mostly has something to do.
            biased;
            ended = poll_fn(|cx| poll_caught(&mut relay, cx)) => break ended,
            Ok(()) = stopped.changed() => ending = *stopped.borrow_and_update(),
            () = time => if relay.is_idle() {
                break Ok(());
            }
        }
    };
    if relay.is_violated() || matches!(ended, Err(Ended::ServerNotFollowed(_) | Ended::NotItsReply)) {
        shared.counters.not_followed.add(1);
        shared.warnings.once(Kind::NotFollowed, || match &ended {
            Err(Ended::ServerNotFollowed(violation)) => {
                format!("{address}: what the server sent is no reply: {violation}")
            }
            Err(Ended::NotItsReply) => {
                format!("{address}: the server answered a command with what cannot be its reply")
            }
            _ => format!("{address}: what came is no command"),
        });
    }
    if ended == Err(Ended::Defect) {
        shared.failed("a connection");
    }
    let is_unrecorded = ended == Err(Ended::Unrecorded);
    if is_unrecorded {
        let told = poll_fn(|cx| {
            relay.tell_unrecorded(cx);
            Poll::Ready(())
        });
        told.await;
    }
    let is_drained = ending == Ending::Draining && ended.is_ok();
    let client = relay.end();
    if is_unrecorded || is_drained {
        leave(client).await;
    }
}

/// Polls a connection, which ends where that finds a defect.
fn poll_caught(relay: &mut Relay, cx: &mut Context<'_>) -> Poll<Result<(), Ended>> {
    caught(|| relay.poll(cx)).unwrap_or(Poll::Ready(Err(Ended::Defect)))
}

/// Tells a client why it is closed, as far as it takes that at once.
async fn tell(client: &mut Stream, told: &[u8]) {
    let _ = poll_fn(|cx| {
        let written = Pin::new(&mut *client).poll_write(cx, told);
        let _ = Pin::new(&mut *client).poll_flush(cx);
        written
    })
    .await;
}

/// Leaves a client that was told something, and may have sent more: a connection that is closed with something unread in it is reset, and
/// a reset may take along what was told. It has a moment to end its side.
async fn leave(mut client: Stream) {
    let leaving = async {
        client.shutdown().await?;
        let mut room = [0; 4096];
        while client.read(&mut room).await? > 0 {}
        std::io::Result::Ok(())
    };
    // Whoever takes longer, or is gone already, is left all the same.
    let _ = tokio::time::timeout(FAREWELL, leaving).await;
}

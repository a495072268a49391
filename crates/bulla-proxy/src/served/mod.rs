//! Metrics and health over HTTP/1.1: `/metrics` for Prometheus, `/healthz` says that the proxy runs, `/readyz` whether it
//! serves clients.
//!
//! A connection is one request and its response. Neither how many there are nor what one may send or how long it may take is up
//! to who connects: [`CONNECTIONS`], [`HELD`], [`HEAD`], [`TIME`]. There is no TLS and nobody is asked who they are: what is served is
//! numbers alone, on the address that the configuration names, which its example has on the loopback interface.

#[cfg(test)]
mod tests;

use crate::accepting::{NotAccepted, Pauses};
use crate::defect::caught_within;
use crate::metrics::{self, Metric};
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

/// How many connections are served at once. Where there are so many, those that come wait until one ends, or has been there for [`HELD`].
pub const CONNECTIONS: usize = 16;
/// How long a connection keeps its place when others wait. What comes in one piece is answered at once.
pub const HELD: Duration = Duration::from_millis(100);
/// The longest head of a request, in bytes.
pub const HEAD: usize = 8 << 10;
/// How long a connection may take as a whole.
pub const TIME: Duration = Duration::from_secs(5);

/// The most fields in the head of a request.
const FIELDS: usize = 64;
/// How much of what comes behind a request is read, so that the response is not lost with it.
const REST: u64 = 64 << 10;
/// How long to wait before it is listened anew, where the socket has failed.
const PAUSE: Duration = Duration::from_secs(1);

/// What is told of the proxy.
pub trait Observed: Send + Sync + 'static {
    /// All that is counted.
    fn metrics(&self) -> Vec<Metric>;

    /// Whether clients are served.
    ///
    /// # Errors
    /// Why not, in one line.
    fn ready(&self) -> Result<(), String>;

    /// Is told that somebody who asks could not be accepted.
    fn not_accepted(&self, error: &io::Error);

    /// Is told that nobody can come any more where metrics are served, until it is listened there anew.
    fn not_listening(&self, error: &io::Error);

    /// Is told that an answer ended by a defect.
    fn defective(&self);
}

/// Where metrics and health are served.
pub struct Served {
    listener: TcpListener,
    address: SocketAddr,
}

impl Served {
    /// Listens on an address. Needs a runtime of tokio.
    ///
    /// # Errors
    /// It cannot be listened on: something else does, or it is none of this machine.
    pub async fn listen(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await.map_err(|error| {
            io::Error::new(error.kind(), format!("metrics cannot be served on `metrics`, {address}: {error}"))
        })?;
        let address = listener.local_addr()?;
        Ok(Served { listener, address })
    }

    /// Where it listens: with port 0 the operating system chose one.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until it is dropped, which ends what is being served.
    pub async fn run(mut self, observed: Arc<dyn Observed>) {
        let mut connections = JoinSet::new();
        // Those that are served, as they came, and until when they keep their place.
        let mut held = VecDeque::<(AbortHandle, Instant)>::new();
        let mut pauses = Pauses::default();
        loop {
            let stream = match self.listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    match NotAccepted::by(&error) {
                        NotAccepted::Interrupted => {}
                        NotAccepted::Client => observed.not_accepted(&error),
                        NotAccepted::Short => {
                            observed.not_accepted(&error);
                            tokio::time::sleep(pauses.next()).await;
                        }
                        NotAccepted::Socket => {
                            observed.not_listening(&error);
                            self = self.listen_anew().await;
                        }
                    }
                    continue;
                }
            };
            pauses.end();
            while connections.try_join_next().is_some() {}
            while connections.len() >= CONNECTIONS {
                held.retain(|(connection, _)| !connection.is_finished());
                let Some((oldest, until)) = held.front() else { break };
                if tokio::time::timeout_at(*until, connections.join_next()).await.is_err() {
                    oldest.abort();
                    connections.join_next().await;
                }
            }
            held.retain(|(connection, _)| !connection.is_finished());
            let observed = Arc::clone(&observed);
            let connection = connections.spawn(async move {
                if caught_within(pin!(serve(stream, &*observed, TIME))).await.is_err() {
                    observed.defective();
                }
            });
            held.push_back((connection, Instant::now() + HELD));
        }
    }

    /// Listens at the same address again, once that can be.
    async fn listen_anew(self) -> Served {
        let Served { listener, address } = self;
        drop(listener);
        loop {
            tokio::time::sleep(PAUSE).await;
            if let Ok(listener) = TcpListener::bind(address).await {
                return Served { listener, address };
            }
        }
    }
}

/// Serves one request, and nothing where it takes longer or the client goes away.
async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, observed: &dyn Observed, time: Duration) {
    // Whoever asked knows by what has not come.
    let _ = tokio::time::timeout(time, answer(stream, observed)).await;
}

async fn answer(mut stream: impl AsyncRead + AsyncWrite + Unpin, observed: &dyn Observed) -> io::Result<()> {
    let mut head = Vec::with_capacity(1024);
    let response = loop {
        if let Some(response) = respond(&head, observed) {
            break response;
        }
        let room = (HEAD + 1 - head.len()) as u64;
        if (&mut stream).take(room).read_buf(&mut head).await? == 0 {
            return Ok(());
        }
    };
    stream.write_all(&response).await?;
    stream.shutdown().await?;
    // A connection that is closed with something unread in it is reset, and the response with it.
    tokio::io::copy(&mut stream.take(REST), &mut tokio::io::sink()).await?;
    Ok(())
}

/// The response to a request that begins with these bytes; `None` while its head is not there as a whole.
fn respond(bytes: &[u8], observed: &dyn Observed) -> Option<Vec<u8>> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    match request.parse(bytes) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) if bytes.len() <= HEAD => return None,
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            return Some(response(
                TOO_LARGE,
                TEXT,
                "the head of a request has at most 8 KiB and 64 fields\n",
                true,
            ));
        }
        Err(_) => return Some(response(BAD_REQUEST, TEXT, "this is no request of HTTP/1.1\n", true)),
    }
    let hosts = request.headers.iter().filter(|field| field.name.eq_ignore_ascii_case("host")).count();
    // RFC 9112, section 3.2; HTTP/1.0 has no such field.
    if hosts > 1 || hosts == 0 && request.version == Some(1) {
        return Some(response(BAD_REQUEST, TEXT, "a request of HTTP/1.1 has one field `Host`\n", true));
    }
    let with_body = match request.method {
        Some("GET") => true,
        Some("HEAD") => false,
        _ => return Some(response(NOT_ALLOWED, TEXT, "there is GET and HEAD, and no other method\n", true)),
    };
    let (status, kind, body) = resource(request.path.unwrap_or_default(), observed);
    Some(response(status, kind, &body, with_body))
}

const TEXT: &str = "text/plain; charset=utf-8";
const OK: &str = "200 OK";
const BAD_REQUEST: &str = "400 Bad Request";
const NOT_FOUND: &str = "404 Not Found";
const NOT_ALLOWED: &str = "405 Method Not Allowed\r\nAllow: GET, HEAD";
const TOO_LARGE: &str = "431 Request Header Fields Too Large";
const UNAVAILABLE: &str = "503 Service Unavailable";

/// What is at a target: status, type, body.
fn resource(target: &str, observed: &dyn Observed) -> (&'static str, &'static str, String) {
    // A target with a scheme names the host before the path: RFC 9112, section 3.2.2.
    let path = match target.strip_prefix("http://") {
        Some(rest) => rest.find('/').map_or("/", |at| &rest[at..]),
        None => target,
    };
    match path.split_once('?').map_or(path, |(path, _)| path) {
        "/metrics" => (OK, metrics::CONTENT_TYPE, metrics::exposition(&observed.metrics())),
        "/healthz" => (OK, TEXT, "ok\n".to_owned()),
        "/readyz" => match observed.ready() {
            Ok(()) => (OK, TEXT, "ready\n".to_owned()),
            Err(why) => (UNAVAILABLE, TEXT, format!("not ready: {why}\n")),
        },
        _ => (NOT_FOUND, TEXT, "there is /metrics, /healthz and /readyz\n".to_owned()),
    }
}

fn response(status: &str, kind: &str, body: &str, with_body: bool) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n",
        body.len()
    );
    [head.as_str(), if with_body { body } else { "" }].concat().into_bytes()
}

//! What comes of a connection before its first command: a PROXY header, and TLS.
//!
//! Where a client has to say something first (a header, or the beginning of TLS), it has the configured time for it. Where it has
//! not, nothing is waited for: a client that says nothing is one all the same, and a header that it must not send is found in its
//! first bytes, whenever they come ([`FirstBytes`]).

use crate::counters::RefusedConnection;
use crate::proxy_header::{Expected, HeaderError, MOST, Source};
use crate::settings::Settings;
use crate::stream::{Stream, Tcp};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A stream that no runtime knows yet.
pub(crate) enum Accepted {
    Tcp(TcpStream, SocketAddr),
    Unix(UnixStream),
}

/// A client that may send commands.
pub(crate) struct Entered {
    pub(crate) stream: Stream,
    /// Its address, as entries have it.
    pub(crate) address: String,
    /// Whose certificate it has shown to own.
    pub(crate) certificate: Option<String>,
    pub(crate) first_bytes: FirstBytes,
}

/// Why a client may not.
pub(crate) enum NotEntered {
    /// It is refused, for this.
    Refused(RefusedConnection, String),
    /// It is gone already.
    Gone,
}

/// A client on a Unix socket has this in the place of an address.
const UNIX: &str = "unix";
/// And this one for whom a peer comes that cannot say for whom.
const UNKNOWN: &str = "unknown";

/// Lets a client in, once it has said what it has to.
pub(crate) async fn enter(accepted: Accepted, settings: &Settings) -> Result<Entered, NotEntered> {
    let (stream, peer) = match accepted {
        Accepted::Unix(stream) => {
            let stream = tokio::net::UnixStream::from_std(stream).map(Stream::Unix)?;
            return Ok(Entered {
                stream,
                address: UNIX.to_owned(),
                certificate: None,
                first_bytes: FirstBytes::default(),
            });
        }
        Accepted::Tcp(stream, peer) => (stream, peer),
    };
    let stream = tokio::net::TcpStream::from_std(stream).and_then(Tcp::new)?;
    let expected = Expected::of(&settings.proxy_protocol, peer.ip());
    if expected == Expected::Refused && settings.acceptor.is_none() {
        let (stream, address) = (Stream::Tcp(stream), in_entries(peer));
        return Ok(Entered { stream, address, certificate: None, first_bytes: FirstBytes::default() });
    }
    let entered =
        tokio::time::timeout(settings.limits.handshake_timeout, agree(stream, peer, expected, settings));
    entered.await.unwrap_or_else(|_| {
        let what = "a client has not said for whom it comes, or not agreed on TLS, within `limits.handshake_timeout`";
        Err(NotEntered::Refused(RefusedConnection::HandshakeTimeout, what.to_owned()))
    })
}

/// The header and TLS, as far as there has to be either.
async fn agree(
    mut stream: Tcp,
    peer: SocketAddr,
    expected: Expected,
    settings: &Settings,
) -> Result<Entered, NotEntered> {
    let source = match header(&mut stream, expected).await {
        Ok(source) => source,
        Err(HeaderFailure::Gone) => return Err(NotEntered::Gone),
        Err(HeaderFailure::Wrong(error)) => {
            if settings.acceptor.is_none() {
                // Whoever does not read it is closed all the same.
                let _ = stream.write_all(refusal(&error).as_bytes()).await;
            }
            return Err(NotEntered::Refused(RefusedConnection::ProxyHeader, format!("{peer}: {error}")));
        }
    };
    let address = match source {
        Source::Peer => in_entries(peer),
        Source::Client(address) => in_entries(address),
        Source::Unix => UNIX.to_owned(),
        Source::Unknown => UNKNOWN.to_owned(),
    };
    let first_bytes = FirstBytes::Passed;
    let Some(acceptor) = &settings.acceptor else {
        return Ok(Entered { stream: Stream::Tcp(stream), address, certificate: None, first_bytes });
    };
    match acceptor.accept(stream).await {
        Ok((stream, established)) => {
            let stream = Stream::OfClient(Box::new(stream));
            let certificate = established.map(|established| established.name);
            Ok(Entered { stream, address, certificate, first_bytes })
        }
        Err(error) => Err(NotEntered::Refused(RefusedConnection::Tls, format!("{address}: {error}"))),
    }
}

/// An address as entries have it: one of IPv4 as such, also where it came, or was said, as one of IPv6 (`::ffff:192.0.2.1`).
fn in_entries(address: SocketAddr) -> String {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => SocketAddr::from((ip, address.port())).to_string(),
        IpAddr::V6(_) => address.to_string(),
    }
}

enum HeaderFailure {
    Wrong(HeaderError),
    Gone,
}

/// For whom a peer comes. What is behind the header is put back.
async fn header(stream: &mut Tcp, expected: Expected) -> Result<Source, HeaderFailure> {
    let mut bytes = Vec::new();
    loop {
        match expected.read(&bytes) {
            Ok(Some(header)) => {
                bytes.drain(..header.length);
                stream.put_back(bytes);
                return Ok(header.source);
            }
            Ok(None) => {}
            Err(error) => return Err(HeaderFailure::Wrong(error)),
        }
        // With so many bytes it is known.
        let room = MOST.saturating_sub(bytes.len()) as u64;
        match stream.take(room).read_buf(&mut bytes).await {
            Ok(0) | Err(_) => return Err(HeaderFailure::Gone),
            Ok(_) => {}
        }
    }
}

/// What a client is told whose header is wrong.
pub(crate) fn refusal(error: &HeaderError) -> String {
    format!("-BULLA {error}\r\n")
}

impl From<std::io::Error> for NotEntered {
    /// Of a socket that has ended, or of which there are too many.
    fn from(_: std::io::Error) -> Self {
        NotEntered::Gone
    }
}

/// The first bytes of a client that must not send a PROXY header: those that could begin one are held back until it is known.
pub(crate) enum FirstBytes {
    Held(Vec<u8>),
    Passed,
}

impl Default for FirstBytes {
    fn default() -> Self {
        FirstBytes::Held(Vec::new())
    }
}

impl FirstBytes {
    /// Takes what came next, and gives `pass` what is known to be the client's.
    ///
    /// # Errors
    /// A header; in the inner result what `pass` says.
    pub(crate) fn then<E>(
        &mut self,
        bytes: &[u8],
        pass: impl FnOnce(&[u8]) -> Result<(), E>,
    ) -> Result<Result<(), E>, HeaderError> {
        let FirstBytes::Held(held) = self else { return Ok(pass(bytes)) };
        let told = match held.is_empty() {
            true => Expected::Refused.read(bytes)?,
            false => {
                held.extend_from_slice(bytes);
                Expected::Refused.read(held)?
            }
        };
        match (told, held.is_empty()) {
            (None, true) => held.extend_from_slice(bytes),
            (None, false) => {}
            (Some(_), true) => {
                *self = FirstBytes::Passed;
                return Ok(pass(bytes));
            }
            (Some(_), false) => {
                let held = std::mem::take(held);
                *self = FirstBytes::Passed;
                return Ok(pass(&held));
            }
        }
        Ok(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_ipv4_is_written_in_one_way() {
        for (address, expected) in [
            ("192.0.2.1:7", "192.0.2.1:7"),
            ("[::ffff:192.0.2.1]:7", "192.0.2.1:7"),
            ("[2001:db8::1]:7", "[2001:db8::1]:7"),
            ("[fe80::1%3]:7", "[fe80::1%3]:7"),
            ("[::1]:7", "[::1]:7"),
        ] {
            assert_eq!(in_entries(address.parse().unwrap()), expected);
        }
    }

    /// What passes of bytes that come in pieces of a size.
    fn passed(bytes: &[u8], size: usize) -> Result<Vec<u8>, HeaderError> {
        let (mut first, mut passed) = (FirstBytes::default(), Vec::new());
        for piece in bytes.chunks(size) {
            let told = first.then(piece, |bytes| {
                passed.extend_from_slice(bytes);
                Ok::<_, ()>(())
            })?;
            told.unwrap();
        }
        Ok(passed)
    }

    #[test]
    fn what_begins_like_a_header_and_is_none_passes_as_it_came() {
        for size in 1..20 {
            for text in ["PING\r\n", "PROXIMITY x\r\n", "\r\n\r\nPING\r\n", "*1\r\n$4\r\nPING\r\n"] {
                assert_eq!(passed(text.as_bytes(), size).unwrap(), text.as_bytes(), "{size}");
            }
            for text in [&b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n"[..], b"\r\n\r\n\0\r\nQUIT\n\x21\x11"] {
                assert!(passed(text, size).unwrap_err().what.contains("must not send any"), "{size}");
            }
        }
    }
}

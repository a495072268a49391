//! [`Stream`]: a connection, over whatever it goes.

use rustix::net::sockopt;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf, Ready};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::{client, server};

/// After so long without a word it is asked whether the other side is still there, as the server asks by its default.
const SILENCE: Duration = Duration::from_secs(300);

/// A connection.
pub(crate) enum Stream {
    /// Over TCP.
    Tcp(Tcp),
    /// Over a Unix socket.
    Unix(UnixStream),
    /// Over TLS, with a client.
    OfClient(Box<server::TlsStream<Tcp>>),
    /// Over TLS, with the server.
    ToServer(Box<client::TlsStream<Tcp>>),
}

/// A connection over TCP, of which some bytes may have been read already.
pub(crate) struct Tcp {
    stream: TcpStream,
    /// What comes before all that the stream still has.
    before: Vec<u8>,
}

impl Tcp {
    /// A connection whose bytes leave as soon as they can, and whose other side is asked now and then whether it is still there.
    pub(crate) fn new(stream: TcpStream) -> io::Result<Tcp> {
        stream.set_nodelay(true)?;
        sockopt::set_tcp_keepidle(&stream, SILENCE)?;
        sockopt::set_tcp_keepintvl(&stream, SILENCE / 3)?;
        sockopt::set_tcp_keepcnt(&stream, 3)?;
        sockopt::set_socket_keepalive(&stream, true)?;
        Ok(Tcp { stream, before: Vec::new() })
    }

    /// Puts back bytes that were read, before those that nobody has read.
    pub(crate) fn put_back(&mut self, mut bytes: Vec<u8>) {
        bytes.append(&mut self.before);
        self.before = bytes;
    }
}

impl Stream {
    /// Whether the other side has said that nothing more comes, or was reset, though what came before may not have been read.
    pub(crate) fn is_read_closed(&self) -> bool {
        match self {
            Stream::Tcp(tcp) => is_closed(tcp.stream.ready(Interest::READABLE)),
            Stream::Unix(unix) => is_closed(unix.ready(Interest::READABLE)),
            Stream::OfClient(tls) => is_closed(tls.get_ref().0.stream.ready(Interest::READABLE)),
            Stream::ToServer(tls) => is_closed(tls.get_ref().0.stream.ready(Interest::READABLE)),
        }
    }
}

/// Whether reading is known to come to an end, as far as is known now.
fn is_closed(ready: impl Future<Output = io::Result<Ready>>) -> bool {
    let now = pin!(ready).poll(&mut Context::from_waker(Waker::noop()));
    matches!(now, Poll::Ready(Ok(ready)) if ready.is_read_closed())
}

impl AsyncRead for Tcp {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Tcp { stream, before } = self.get_mut();
        if before.is_empty() {
            return Pin::new(stream).poll_read(cx, buffer);
        }
        let count = before.len().min(buffer.remaining());
        buffer.put_slice(&before[..count]);
        before.drain(..count);
        if before.is_empty() {
            *before = Vec::new();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Tcp {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Tcp(stream) => Pin::new(stream).poll_read(cx, buffer),
            Stream::Unix(stream) => Pin::new(stream).poll_read(cx, buffer),
            Stream::OfClient(stream) => Pin::new(stream).poll_read(cx, buffer),
            Stream::ToServer(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::OfClient(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::ToServer(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Unix(stream) => Pin::new(stream).poll_flush(cx),
            Stream::OfClient(stream) => Pin::new(stream).poll_flush(cx),
            Stream::ToServer(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::OfClient(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::ToServer(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[tokio::test]
    async fn a_side_that_is_gone_without_a_word_is_noticed_and_one_that_ended_before_it_is_read() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let tcp = Tcp::new(stream).unwrap();
        assert!(sockopt::socket_keepalive(&tcp.stream).unwrap());
        assert_eq!(sockopt::tcp_keepidle(&tcp.stream).unwrap(), SILENCE);
        let mut other = listener.accept().unwrap().0;
        std::io::Write::write_all(&mut other, b"unread").unwrap();
        let stream = Stream::Tcp(tcp);
        let Stream::Tcp(tcp) = &stream else { unreachable!() };
        tcp.stream.readable().await.unwrap();
        assert!(!stream.is_read_closed());
        drop(other);
        while !stream.is_read_closed() {
            tokio::task::yield_now().await;
        }
    }
}

//! [`Stream`]: a connection, over whatever it goes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::{client, server};

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
    /// A connection whose bytes leave as soon as they can.
    pub(crate) fn new(stream: TcpStream) -> io::Result<Tcp> {
        stream.set_nodelay(true)?;
        Ok(Tcp { stream, before: Vec::new() })
    }

    /// Puts back bytes that were read, before those that nobody has read.
    pub(crate) fn put_back(&mut self, mut bytes: Vec<u8>) {
        bytes.append(&mut self.before);
        self.before = bytes;
    }
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

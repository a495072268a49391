//! The server: connections to it, and what it says of itself before the first client comes.

use crate::command::{CommandTable, NoTable};
use crate::config::{Upstream, UpstreamPlace};
use crate::resp::{Limits, Replies, Reply, write_command};
use crate::stream::{Stream, Tcp};
use crate::tls::Connector;
use bulla::{Error, ErrorKind};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

/// The longest file with a password, in bytes.
const MAX_PASSWORD: usize = 64 << 10;

/// Connects to the server, and agrees with it on TLS where that is configured.
pub(crate) async fn connect(
    place: &UpstreamPlace,
    connector: Option<&Connector>,
    timeout: Duration,
) -> io::Result<Stream> {
    let connecting = async {
        let stream = match place {
            UpstreamPlace::Tcp(host, port) => Tcp::new(TcpStream::connect((host.as_str(), *port)).await?)?,
            UpstreamPlace::Unix(path) => return UnixStream::connect(path).await.map(Stream::Unix),
        };
        match connector {
            None => Ok(Stream::Tcp(stream)),
            Some(connector) => {
                let agreed = connector.connect(stream).await.map_err(io::Error::other)?;
                Ok(Stream::ToServer(Box::new(agreed)))
            }
        }
    };
    tokio::time::timeout(timeout, connecting).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// What a server says of itself.
pub(crate) struct Described {
    /// Its commands.
    pub(crate) table: CommandTable,
    /// Why they are not what the server said, if so.
    pub(crate) pinned: Option<NoTable>,
}

/// Asks the server for its commands, over a connection of the proxy's own.
///
/// # Errors
/// The server cannot be reached, does not let the proxy in, or is one of a cluster.
pub(crate) async fn describe(
    upstream: &Upstream,
    connector: Option<&Connector>,
    timeout: Duration,
) -> bulla::Result<Described> {
    let asking = async {
        let mut stream = connect(&upstream.place, connector, timeout)
            .await
            .map_err(|error| unreachable(upstream, &error))?;
        if let Some(file) = &upstream.password_file {
            log_in(&mut stream, upstream, file).await?;
        }
        let hello = ask(&mut stream, &[b"HELLO", b"2"], CommandTable::REPLY, upstream).await?;
        if mode(&hello).is_some_and(|mode| mode == b"cluster") {
            let message = format!(
                "{} is in cluster mode, where each key lies on another server: the proxy stands before one server alone",
                name(upstream)
            );
            return Err(Error::new(ErrorKind::Refused, message));
        }
        let reply = ask(&mut stream, &[b"COMMAND"], CommandTable::REPLY, upstream).await?;
        let mut table = CommandTable::from_reply(&reply);
        if let Ok(table) = &mut table {
            let names = table.names().map(str::as_bytes);
            let words = [&b"COMMAND"[..], b"INFO"].into_iter().chain(names).collect::<Vec<_>>();
            let reply = ask(&mut stream, &words, CommandTable::REPLY, upstream).await?;
            settle(table, &reply, upstream)?;
        }
        Ok(table)
    };
    // What is asked is short, and its answer is not long.
    let asked = tokio::time::timeout(timeout.saturating_mul(2), asking).await;
    match asked.unwrap_or_else(|_| Err(unreachable(upstream, &io::ErrorKind::TimedOut.into())))? {
        Ok(table) => Ok(Described { table, pinned: None }),
        Err(error @ (NoTable::WithoutKeys | NoTable::Refused(_))) => {
            if let NoTable::Refused(code) = &error
                && code == "NOAUTH"
            {
                let message = format!(
                    "{} wants a password: name its file with `upstream.password_file`, and `upstream.user`",
                    name(upstream)
                );
                return Err(Error::new(ErrorKind::Refused, message));
            }
            Ok(Described { table: CommandTable::pinned(), pinned: Some(error) })
        }
        Err(error) => Err(Error::new(ErrorKind::Unavailable, format!("{}: {error}", name(upstream)))),
    }
}

/// Takes from the table the names that the server gave to other commands, or to none.
fn settle(table: &mut CommandTable, reply: &Reply, upstream: &Upstream) -> bulla::Result<()> {
    table.settle_names(reply).map_err(|error| {
        let message = format!("{} does not tell which names its commands have: {error}", name(upstream));
        Error::new(ErrorKind::Refused, message)
    })
}

async fn log_in(stream: &mut Stream, upstream: &Upstream, file: &std::path::Path) -> bulla::Result<()> {
    #[expect(clippy::disallowed_methods, reason = "a password is no part of a log, and lies in no store")]
    let password = std::fs::read(file).map_err(|error| {
        Error::new(ErrorKind::Unavailable, format!("`upstream.password_file` {}: {error}", file.display()))
    })?;
    let password = password.strip_suffix(b"\n").unwrap_or(&password);
    let password = password.strip_suffix(b"\r").unwrap_or(password);
    if password.is_empty() || password.len() > MAX_PASSWORD {
        let message = format!(
            "`upstream.password_file` {} has no password in it, or one of more than {MAX_PASSWORD} bytes",
            file.display()
        );
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    let user = upstream.user.as_ref().map(|user| user.as_bytes());
    let words = [Some(&b"AUTH"[..]), user, Some(password)].into_iter().flatten().collect::<Vec<_>>();
    let reply = ask(stream, &words, CommandTable::REPLY, upstream).await?;
    match reply.nodes().first().and_then(|node| reply.error_code(node)) {
        None => Ok(()),
        Some(code) => {
            let who = upstream.user.as_deref().unwrap_or("the default user");
            let message = format!(
                "{} does not let {who} in with the password of {}: {code}",
                name(upstream),
                file.display()
            );
            Err(Error::new(ErrorKind::Refused, message))
        }
    }
}

/// The reply to one command.
async fn ask(
    stream: &mut Stream,
    words: &[&[u8]],
    limits: Limits,
    upstream: &Upstream,
) -> bulla::Result<Reply> {
    let mut bytes = Vec::new();
    write_command(words, &mut bytes);
    let failed = |error: io::Error| unreachable(upstream, &error);
    let mut sent = 0;
    while sent < bytes.len() {
        let rest = &bytes[sent..];
        sent += poll_fn(|cx| Pin::new(&mut *stream).poll_write(cx, rest)).await.map_err(failed)?;
    }
    poll_fn(|cx| Pin::new(&mut *stream).poll_flush(cx)).await.map_err(failed)?;
    let mut replies = Replies::new(limits);
    let mut room = vec![0; 64 << 10];
    loop {
        let mut buffer = ReadBuf::new(&mut room);
        poll_fn(|cx| Pin::new(&mut *stream).poll_read(cx, &mut buffer)).await.map_err(failed)?;
        if buffer.filled().is_empty() {
            return Err(failed(io::ErrorKind::UnexpectedEof.into()));
        }
        let mut rest = buffer.filled();
        while !rest.is_empty() {
            let progress = replies.next(rest).map_err(|violation| {
                let message = format!("{} is no Redis or Valkey server: {violation}", name(upstream));
                Error::new(ErrorKind::Refused, message)
            })?;
            if progress.complete {
                return Ok(replies.reply().clone());
            }
            rest = &rest[progress.consumed..];
        }
    }
}

/// What a server says in its reply to `HELLO` of how it runs; nothing where it does not know that command.
fn mode(hello: &Reply) -> Option<&[u8]> {
    let mut values = hello.children(0).map(|(_, node)| hello.text(node));
    values.find(|name| *name == b"mode")?;
    values.next()
}

/// How a message names the server.
pub(crate) fn name(upstream: &Upstream) -> String {
    match &upstream.place {
        UpstreamPlace::Tcp(host, port) if host.contains(':') => format!("the server [{host}]:{port}"),
        UpstreamPlace::Tcp(host, port) => format!("the server {host}:{port}"),
        UpstreamPlace::Unix(path) => format!("the server {}", path.display()),
    }
}

fn unreachable(upstream: &Upstream, error: &io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, format!("{} cannot be reached: {error}", name(upstream)))
}

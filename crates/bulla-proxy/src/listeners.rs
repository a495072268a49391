//! [`Listeners`]: where clients come.
#![expect(clippy::disallowed_methods, reason = "the file of a Unix socket is no part of a log")]

use crate::accepting::{NotAccepted, Pauses};
use crate::clients::{Client, Counted};
use crate::config::{Config, Limits, UpstreamPlace};
use crate::ending::Ending;
use crate::entrance::Accepted;
use crate::settings::Settings;
use crate::warnings::Kind;
use crate::worker::Shared;
use bulla::{Error, ErrorKind, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::fs::Permissions;
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::Poll;
use tokio::net::{TcpListener, UnixListener, UnixSocket};
use tokio::sync::{mpsc, watch};

/// Where clients come.
pub(crate) struct Listeners {
    tcp: Option<TcpListener>,
    unix: Option<(UnixListener, SocketFile)>,
    pub(crate) address: Option<SocketAddr>,
}

/// The file of a Unix socket, which goes when nobody listens there any more.
struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Listeners {
    /// Begins to listen.
    ///
    /// # Errors
    /// `Unavailable` where an address cannot be listened at.
    pub(crate) async fn bind(config: &Config) -> Result<Listeners> {
        let failed = |place: String, error: std::io::Error| {
            let what_to_do = match error.kind() {
                std::io::ErrorKind::AddrInUse => {
                    "; end what is there, or name another place in `[listen]` of the configuration"
                }
                _ => "",
            };
            Error::new(ErrorKind::Unavailable, format!("listening at {place}: {error}{what_to_do}"))
        };
        let tcp = match config.listen.address {
            Some(address) => {
                let bound = bind_tcp(address, config.listen.more_ports).await;
                Some(bound.map_err(|error| failed(address.to_string(), error))?)
            }
            None => None,
        };
        let unix = match &config.listen.unix {
            Some(path) => {
                remove_left_over(path, &config.upstream.place);
                let bound = bind_unix(path, config.listen.unix_mode);
                Some(bound.map_err(|error| failed(path.display().to_string(), error))?)
            }
            None => None,
        };
        let address = tcp.as_ref().and_then(|tcp| tcp.local_addr().ok());
        Ok(Listeners { tcp, unix, address })
    }

    /// Accepts clients until the proxy is stopped, and gives them to the workers in turn.
    ///
    /// # Errors
    /// `Unavailable` where nobody can come any more at one of the places.
    pub(crate) async fn accept(
        self,
        workers: &[mpsc::UnboundedSender<Client>],
        settings: watch::Receiver<Arc<Settings>>,
        shared: Arc<Shared>,
        mut stopped: watch::Receiver<Ending>,
    ) -> Result<()> {
        let counters = &shared.counters;
        let mut turns = workers.iter().cycle();
        let mut pauses = Pauses::default();
        loop {
            let accepted = tokio::select! {
                accepted = self.accept_tcp() => accepted.map_err(|error| (error, self.tcp_place())),
                accepted = self.accept_unix() => accepted.map_err(|error| (error, self.unix_place())),
                _ = stopped.wait_for(Ending::has_begun) => return Ok(()),
            };
            let stream = match accepted {
                Ok(stream) => stream,
                Err((error, place)) => {
                    let why = NotAccepted::by(&error);
                    if why == NotAccepted::Socket {
                        return Err(no_more(&place, &error));
                    }
                    let pause = shared.not_accepted(why, &error).then(|| pauses.next());
                    if let Some(pause) = pause {
                        // Whoever has it end has not to wait.
                        let _ = tokio::time::timeout(pause, stopped.wait_for(Ending::has_begun)).await;
                    }
                    continue;
                }
            };
            pauses.end();
            counters.accepted.add(1);
            let most = settings.borrow().limits.clients.unwrap_or(Limits::CLIENTS) as u64;
            if counters.clients.get() >= most {
                counters.turned_away.add(1);
                let told = || {
                    format!(
                        "there are {most} clients, and no more are taken: as many as `limits.clients` says, or as there are open files for, \
                         of which each takes two"
                    )
                };
                shared.warnings.once(Kind::TooManyClients, told);
                if settings.borrow().acceptor.is_none() {
                    turn_away(&stream);
                }
                continue;
            }
            counters.clients.add(1);
            let mut client = Client { stream, counted: Counted(counters.clone()) };
            for worker in turns.by_ref().take(workers.len()) {
                match worker.send(client) {
                    Ok(()) => break,
                    // A worker ends after this alone, unless its log is gone: the others go on.
                    Err(mpsc::error::SendError(back)) => {
                        client = back;
                        shared.failed("a thread that serves clients");
                    }
                }
            }
        }
    }
}

impl Listeners {
    async fn accept_tcp(&self) -> std::io::Result<Accepted> {
        let Some(tcp) = &self.tcp else { return std::future::pending().await };
        let (stream, address) = tcp.accept().await?;
        Ok(Accepted::Tcp(stream.into_std().map_err(std::io::Error::other)?, address))
    }

    async fn accept_unix(&self) -> std::io::Result<Accepted> {
        let Some((unix, _)) = &self.unix else { return std::future::pending().await };
        let accepted = std::future::poll_fn(|context| match unix.poll_accept(context) {
            Poll::Pending if is_shut(unix) => Poll::Ready(Err(Errno::INVAL.into())),
            accepted => accepted,
        });
        let (stream, _) = accepted.await?;
        Ok(Accepted::Unix(stream.into_std().map_err(std::io::Error::other)?))
    }

    fn tcp_place(&self) -> String {
        self.address.map_or_else(String::new, |address| address.to_string())
    }

    fn unix_place(&self) -> String {
        self.unix.as_ref().map_or_else(String::new, |(_, file)| file.0.display().to_string())
    }
}

/// Whether a socket was shut (shutdown(2), by any process that has it, too), so that nobody comes there any more. Where accept(2) does not
/// block, one of Unix does not say that: nobody is there, and it is ready for ever.
fn is_shut(listener: &UnixListener) -> bool {
    let shut = PollFlags::RDHUP | PollFlags::HUP;
    let mut looked = [PollFd::new(listener, shut)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut looked, Some(&at_once)).is_ok() && looked[0].revents().intersects(shut)
}

fn no_more(place: &str, error: &std::io::Error) -> Error {
    Error::unavailable(format!("listening at {place}: {error}: no client comes there any more"))
}

/// Begins to listen at an address, or at the first one that is free of so many ports behind it.
async fn bind_tcp(mut address: SocketAddr, more_ports: u16) -> std::io::Result<TcpListener> {
    let last = address.port().saturating_add(more_ports);
    loop {
        match TcpListener::bind(address).await {
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse && address.port() < last => {
                address.set_port(address.port() + 1);
            }
            bound => return bound,
        }
    }
}

/// Begins to listen on a Unix socket. Nobody comes before it has its permissions: it does not listen until then.
fn bind_unix(path: &Path, mode: u32) -> std::io::Result<(UnixListener, SocketFile)> {
    const WAITING: u32 = 1024;
    let socket = UnixSocket::new_stream()?;
    socket.bind(path)?;
    let file = SocketFile(path.to_owned());
    std::fs::set_permissions(path, Permissions::from_mode(mode))?;
    Ok((socket.listen(WAITING)?, file))
}

fn turn_away(stream: &Accepted) {
    const TOLD: &[u8] = b"-ERR max number of clients reached\r\n";
    // It does not block, and whoever cannot be told is closed all the same.
    let _ = match stream {
        Accepted::Tcp(stream, _) => (&*stream).write(TOLD),
        Accepted::Unix(stream) => (&*stream).write(TOLD),
    };
}

/// Removes the socket of a proxy that was killed: one at which nobody listens. That of the server stays whatever it is.
fn remove_left_over(path: &Path, server: &UpstreamPlace) {
    let is_servers = matches!(server, UpstreamPlace::Unix(its) if its == path);
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    let refused = || {
        let connected = std::os::unix::net::UnixStream::connect(path);
        connected.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
    };
    if !is_servers && is_socket && refused() {
        let _ = std::fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::CommandTable;
    use crate::counters::Counters;
    use crate::settings::Lasting;
    use crate::subject::Learned;
    use crate::warnings::Warnings;
    use bulla::environment::Environment;
    use rustix::io::dup;
    use rustix::net::{Shutdown, shutdown};
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    /// What accepting needs besides listeners.
    struct Needs {
        config: Config,
        settings: watch::Receiver<Arc<Settings>>,
        shared: Arc<Shared>,
        _renewed: watch::Sender<Arc<Settings>>,
        _folder: tempfile::TempDir,
    }

    fn needs() -> Needs {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let text =
            format!("[log]\ndirectory = \"audit\"\n[listen]\naddress = \"127.0.0.1:0\"\nunix = {socket:?}\n");
        let config = Config::parse(text.as_bytes()).unwrap();
        let (counters, warnings) = (Arc::<Counters>::default(), Arc::new(Warnings::new(Arc::new(|_, _| {}))));
        let lasting = Lasting {
            table: CommandTable::pinned(),
            digest_key: [0; 32],
            learned: Arc::new(Learned::new(1 << 20)),
            counters: counters.clone(),
            warnings: warnings.clone(),
        };
        let (renewed, settings) = watch::channel(Arc::new(Settings::new(&config, &lasting).unwrap()));
        let clock = Environment::default().clock;
        let shared = Arc::new(Shared { counters, warnings, clock });
        Needs { config, settings, shared, _renewed: renewed, _folder: folder }
    }

    #[test]
    fn clients_of_a_thread_that_has_failed_are_served_by_the_others() {
        let Needs { config, settings, shared, .. } = &needs();
        let (_stop, stopped) = watch::channel(Ending::NotYet);
        let (serves, mut served) = mpsc::unbounded_channel();
        let (failed, _) = mpsc::unbounded_channel();
        crate::runtime::new().unwrap().block_on(async {
            let listeners = Listeners::bind(config).await.unwrap();
            let workers = [failed, serves];
            let mut accept =
                std::pin::pin!(listeners.accept(&workers, settings.clone(), shared.clone(), stopped));
            for _ in 0..4 {
                let _client = UnixStream::connect(config.listen.unix.as_ref().unwrap()).unwrap();
                tokio::select! {
                    _ = &mut accept => panic!("nobody stopped it"),
                    client = served.recv() => assert!(client.is_some()),
                }
            }
        });
        assert!(shared.counters.failed.get() > 0 && shared.counters.accepted.get() == 4);
    }

    /// Has a socket shut by whoever has it besides, while clients are waited for: what that ends with names the socket's place.
    fn ends_once_shut(socket: impl FnOnce(&Listeners) -> (OwnedFd, String)) {
        let Needs { config, settings, shared, .. } = &needs();
        let (_stop, stopped) = watch::channel(Ending::NotYet);
        let (serves, _served) = mpsc::unbounded_channel();
        let (place, accepted) = crate::runtime::new().unwrap().block_on(async {
            let listeners = Listeners::bind(config).await.unwrap();
            let (socket, place) = socket(&listeners);
            let workers = [serves];
            let accepting = listeners.accept(&workers, settings.clone(), shared.clone(), stopped);
            let accepting = tokio::time::timeout(Duration::from_secs(10), accepting);
            let (accepted, ()) =
                tokio::join!(accepting, async { shutdown(&socket, Shutdown::Both).unwrap() });
            (place, accepted.expect("it goes on, though nobody can come"))
        });
        let error = accepted.unwrap_err();
        assert!(error.kind() == ErrorKind::Unavailable && error.to_string().contains(&place), "{error}");
        assert_eq!(shared.counters.not_accepted.get(), 0);
    }

    #[test]
    fn a_socket_at_which_nobody_can_come_any_more_ends_the_accepting_and_is_named() {
        // accept(2) answers EINVAL.
        ends_once_shut(|listeners| (dup(listeners.tcp.as_ref().unwrap()).unwrap(), listeners.tcp_place()));
        // It answers EAGAIN, though the socket is ready.
        ends_once_shut(|listeners| {
            let (unix, _) = listeners.unix.as_ref().unwrap();
            (dup(unix).unwrap(), listeners.unix_place())
        });
    }
}

//! [`Proxy`]: listens, and has workers relay.
#![expect(clippy::disallowed_methods, reason = "the threads of a proxy, each of which is joined")]

use crate::clients::{self, Accepted, Client, Counted};
use crate::command::NoTable;
use crate::config::{Config, UpstreamPlace};
use crate::counters::Counters;
use crate::recorder::{Recorder, Recording};
use crate::session;
use crate::subject::{Learned, Rules};
use crate::upstream::{self, Described};
use crate::worker::{Gathering, Shared, Worker};
use bulla::environment::Environment;
use bulla::{Error, ErrorKind, Log, Result};
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime::Runtime;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::LocalSet;

/// A proxy that serves clients, on threads of its own. It ends when it is asked to ([`Stop::stop`]) or dropped.
pub struct Proxy {
    address: Option<SocketAddr>,
    counters: Arc<Counters>,
    pinned: Option<NoTable>,
    stop: Stop,
    threads: Vec<JoinHandle<()>>,
}

/// By what another thread can have a proxy end.
#[derive(Clone)]
pub struct Stop(Arc<watch::Sender<bool>>);

impl Stop {
    /// No client is accepted any more; those that are there have the configured time for what they began.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Proxy {
    /// Connects to the server, listens, and serves clients from now on; what they do is recorded in `log`.
    ///
    /// # Errors
    /// `Unavailable` where the server cannot be reached or an address not be listened at, `Refused` where the server does not let the
    /// proxy in or is one of a cluster, `Invalid` for what this cannot do yet that is configured; as [`Log::producer`].
    pub fn start(config: &Config, log: &Log, environment: &Environment) -> Result<Proxy> {
        refuse_unfinished(config)?;
        let mut digest_key = [0; 32];
        environment.random.fill(&mut digest_key)?;
        let runtime = runtime()?;
        let Described { table, pinned } =
            runtime.block_on(upstream::describe(&config.upstream, config.limits.connect_timeout))?;
        let counters = Arc::<Counters>::default();
        let rules = Rules::new(config.rules.clone(), config.default_subject.clone(), digest_key);
        let learns = rules.learns();
        let recording = Arc::new(Recording {
            rules,
            learned: Learned::new(config.limits.learned),
            unrecordable: config.unrecordable,
            claims: config.claims.clone(),
            counters: counters.clone(),
        });
        let shared = Arc::new(Shared {
            upstream: config.upstream.clone(),
            connect_timeout: config.limits.connect_timeout,
            idle_timeout: config.limits.idle_timeout,
            drain_timeout: config.limits.drain_timeout,
            unrecordable: config.unrecordable,
            counters: counters.clone(),
            clock: environment.clock.clone(),
        });
        let listeners = runtime.block_on(Listeners::bind(config))?;
        let (stop, stopped) = watch::channel(false);
        let mut proxy = Proxy {
            address: listeners.address,
            counters: counters.clone(),
            pinned,
            stop: Stop(Arc::new(stop)),
            threads: Vec::new(),
        };
        let workers =
            config.workers.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, Into::into));
        let changed = (0..workers).map(|_| Arc::new(Notify::new())).collect::<Vec<_>>();
        let gathering = Arc::new(Gathering::new(changed.clone()));
        let mut senders = Vec::new();
        for (number, changed) in changed.into_iter().enumerate() {
            let nudge = changed.clone();
            let recorder = Recorder::new(log, recording.clone(), move || nudge.notify_one())?;
            let context = session::Context {
                table: table.clone(),
                policy: config.policy,
                limits: config.limits,
                mode: config.mode,
                unfollowable: config.unfollowable,
                learns,
                digest_key,
            };
            let runtime = self::runtime()?;
            let (sender, accepted) = mpsc::unbounded_channel();
            senders.push(sender);
            let (shared, stopped, gathering) = (shared.clone(), stopped.clone(), gathering.clone());
            proxy.spawn(format!("bulla-proxy-{number}"), move || {
                let worker = Worker::new(shared, context, recorder, gathering, changed);
                LocalSet::new().block_on(&runtime, clients::run(worker, accepted, stopped));
            })?;
        }
        let clients = config.limits.clients as u64;
        proxy.spawn("bulla-accept".to_owned(), move || {
            runtime.block_on(listeners.accept(&senders, clients, counters, stopped));
        })?;
        Ok(proxy)
    }

    /// Where clients come over TCP.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// What is counted.
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Why the server's commands are taken to be those of Redis 7.0, where the server did not tell them.
    pub fn pinned(&self) -> Option<&NoTable> {
        self.pinned.as_ref()
    }

    /// By what another thread can have this end.
    pub fn stopper(&self) -> Stop {
        self.stop.clone()
    }

    /// Waits until it was stopped, and the last client is gone.
    pub fn join(mut self) {
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }

    fn spawn(&mut self, name: String, run: impl FnOnce() + Send + 'static) -> Result<()> {
        let thread = std::thread::Builder::new().name(name).spawn(run).map_err(|error| {
            let message = format!(
                "starting a thread of the proxy: {error}; look at the limit on threads (`ulimit -u`)"
            );
            Error::new(ErrorKind::Unavailable, message)
        })?;
        self.threads.push(thread);
        Ok(())
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop.stop();
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

/// What is configured and not built is refused, not passed by.
fn refuse_unfinished(config: &Config) -> Result<()> {
    let unfinished = [
        ("listen.tls", config.listen.tls.is_some()),
        ("listen.proxy_protocol", !config.listen.proxy_protocol.is_empty()),
        ("upstream.tls", config.upstream.tls.is_some()),
        ("record_values", config.record_values.is_some()),
        ("metrics", config.metrics.is_some()),
    ];
    match unfinished.iter().find(|(_, configured)| *configured) {
        Some((key, _)) => {
            let message = format!("`{key}` is not built yet: leave it out");
            Err(Error::new(ErrorKind::Invalid, message))
        }
        None => Ok(()),
    }
}

fn runtime() -> Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| {
        let message = format!("starting the proxy: {error}; look at the limit on open files (`ulimit -n`)");
        Error::new(ErrorKind::Unavailable, message)
    })
}

/// Where clients come.
struct Listeners {
    tcp: Option<TcpListener>,
    unix: Option<(UnixListener, SocketFile)>,
    address: Option<SocketAddr>,
}

/// The file of a Unix socket, which goes when nobody listens there any more.
struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Listeners {
    async fn bind(config: &Config) -> Result<Listeners> {
        let failed = |place: String, error: std::io::Error| {
            Error::new(ErrorKind::Unavailable, format!("listening at {place}: {error}"))
        };
        let tcp = match config.listen.address {
            Some(address) => {
                Some(TcpListener::bind(address).await.map_err(|error| failed(address.to_string(), error))?)
            }
            None => None,
        };
        let unix = match &config.listen.unix {
            Some(path) => {
                remove_left_over(path, &config.upstream.place);
                let listener =
                    UnixListener::bind(path).map_err(|error| failed(path.display().to_string(), error))?;
                Some((listener, SocketFile(path.clone())))
            }
            None => None,
        };
        let address = tcp.as_ref().and_then(|tcp| tcp.local_addr().ok());
        Ok(Listeners { tcp, unix, address })
    }

    /// Accepts clients until the proxy is stopped, and gives them to the workers in turn.
    async fn accept(
        self,
        workers: &[mpsc::UnboundedSender<Client>],
        most: u64,
        counters: Arc<Counters>,
        mut stopped: watch::Receiver<bool>,
    ) {
        let tcp = async || match &self.tcp {
            Some(tcp) => {
                let (stream, address) = tcp.accept().await?;
                Ok((Accepted::Tcp(stream.into_std()?), address.to_string()))
            }
            None => std::future::pending().await,
        };
        let unix = async || match &self.unix {
            Some((unix, _)) => {
                let (stream, _) = unix.accept().await?;
                Ok((Accepted::Unix(stream.into_std()?), "unix".to_owned()))
            }
            None => std::future::pending().await,
        };
        for worker in workers.iter().cycle() {
            let accepted: std::io::Result<_> = tokio::select! {
                accepted = tcp() => accepted,
                accepted = unix() => accepted,
                _ = stopped.wait_for(|stopped| *stopped) => return,
            };
            let Ok((stream, address)) = accepted else {
                // Of files there are none left, or the client is gone: the next one may have more luck, a little later.
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
                continue;
            };
            counters.accepted.add(1);
            if counters.clients.get() >= most {
                counters.turned_away.add(1);
                turn_away(&stream);
                continue;
            }
            counters.clients.add(1);
            // A worker ends after this alone.
            let _ = worker.send(Client { stream, address, counted: Counted(counters.clone()) });
        }
    }
}

fn turn_away(stream: &Accepted) {
    const TOLD: &[u8] = b"-ERR max number of clients reached\r\n";
    // It does not block, and whoever cannot be told is closed all the same.
    let _ = match stream {
        Accepted::Tcp(stream) => (&*stream).write(TOLD),
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

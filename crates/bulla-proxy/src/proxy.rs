//! [`Proxy`]: listens, and has workers relay.

use crate::command::NoTable;
use crate::config::Config;
use crate::counters::Counters;
use crate::crew::Post;
use crate::defect::caught;
use crate::ending::Ending;
use crate::keeper::Keeper;
use crate::listeners::Listeners;
use crate::logs::Logs;
use crate::metrics::Histogram;
use crate::observation::{MetricsServer, Observation, Serving};
use crate::reopening::{Current, Reopening};
use crate::settings::{Lasting, Settings, connector};
use crate::subject::Learned;
use crate::thread;
use crate::upstream::{self, Described};
use crate::warnings::{Kind, Warn, Warnings};
use crate::worker::{CommitDelay, Shared};
use bulla::environment::Environment;
use bulla::{Error, ErrorKind, Log, Result};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use tokio::sync::{Notify, mpsc, watch};

/// A proxy that serves clients, on threads of its own. It ends when it is asked to ([`Stop::stop`]) or dropped,
/// and where clients can come no more at one of its places.
pub struct Proxy {
    address: Option<SocketAddr>,
    counters: Arc<Counters>,
    pinned: Option<NoTable>,
    stop: Stop,
    reload: Reload,
    threads: Vec<JoinHandle<()>>,
    /// Why it stopped by itself, if it did.
    failure: Arc<Mutex<Option<Error>>>,
    /// Of what values taught.
    keeper: Option<Keeper>,
    metrics: Option<Serving>,
}

/// By what another thread can have a proxy end.
#[derive(Clone)]
pub struct Stop(Arc<watch::Sender<Ending>>);

impl Stop {
    /// No client is accepted any more; those that are there have the configured time for what they began.
    pub fn stop(&self) {
        self.0.send_if_modified(|ending| {
            let begins = !ending.has_begun();
            *ending = (*ending).max(Ending::Draining);
            begins
        });
    }

    /// The same, and whoever still waits for something is cut off at once.
    pub fn cut_off(&self) {
        self.0.send_replace(Ending::AtOnce);
    }
}

/// By what another thread can give a proxy another configuration.
#[derive(Clone)]
pub struct Reload(Arc<Reloading>);

struct Reloading {
    /// The one that it has.
    config: Mutex<Config>,
    lasting: Lasting,
    renewed: watch::Sender<Arc<Settings>>,
    stopped: watch::Receiver<Ending>,
}

impl Reload {
    /// Whether the proxy is about to end, so that no other configuration matters any more.
    pub fn is_too_late(&self) -> bool {
        self.0.stopped.borrow().has_begun()
    }

    /// From now on the proxy does what this configuration says. Rules, claims, policy and what becomes of commands that cannot be
    /// recorded hold at once, for clients that are there, too; limits on what is kept of commands, TLS and PROXY headers for those
    /// that come. The files that it names are read anew.
    ///
    /// # Errors
    /// `Refused` where something is another than it was that cannot change while the proxy runs; `Invalid` for a file that is not
    /// what it has to be. Nothing is changed then.
    pub fn reload(&self, config: &Config) -> Result<()> {
        let Reloading { config: current, lasting, renewed, .. } = &*self.0;
        let mut current = current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = current.fixed_difference(config) {
            let message = format!(
                "`{key}` cannot change while the proxy runs: end it and start it again, or leave `{key}` as it was"
            );
            return Err(Error::new(ErrorKind::Refused, message));
        }
        let settings = Settings::new(config, lasting)?;
        *current = config.clone();
        renewed.send_replace(Arc::new(settings));
        Ok(())
    }
}

impl Proxy {
    /// Connects to the server, listens, and serves clients from now on; what they do is recorded in `log`.
    ///
    /// # Errors
    /// `Unavailable` where the server cannot be reached or an address not be listened at, `Refused` where the server does not let the
    /// proxy in or is one of a cluster, `Invalid` for what this cannot do yet that is configured; as [`Log::producer`].
    pub fn start(config: &Config, log: &Log, environment: &Environment) -> Result<Proxy> {
        Proxy::start_warning(config, log, environment, Arc::new(|_, _| {}))
    }

    /// The same, and `warn` is told what an operator should know of, each once.
    ///
    /// # Errors
    /// As [`Proxy::start`].
    pub fn start_warning(config: &Config, log: &Log, environment: &Environment, warn: Warn) -> Result<Proxy> {
        Proxy::start_with(config, (log, None), environment, warn)
    }

    /// The same with a log that is opened again where it fails for good.
    ///
    /// # Errors
    /// As [`Proxy::start`].
    pub fn start_reopening(
        config: &Config,
        logs: &Arc<Logs>,
        environment: &Environment,
        warn: Warn,
    ) -> Result<Proxy> {
        let started = logs.with(|log| Proxy::start_with(config, (log, Some(logs)), environment, warn));
        started.unwrap_or_else(|| Err(Error::new(ErrorKind::Closed, "the log is closed")))
    }

    fn start_with(
        config: &Config,
        (log, logs): (&Log, Option<&Arc<Logs>>),
        environment: &Environment,
        warn: Warn,
    ) -> Result<Proxy> {
        let digest_key = *log.digest_key()?;
        let runtime = crate::runtime::new()?;
        let connector = connector(config)?;
        let described =
            upstream::describe(&config.upstream, connector.as_ref(), config.limits.connect_timeout);
        let Described { table, pinned } = runtime.block_on(described)?;
        let counters = Arc::<Counters>::default();
        let learned = Arc::new(Learned::new(config.limits.learned));
        let warnings = Arc::new(Warnings::new(warn));
        let keeper = Some(Keeper::start(log, &learned, &counters, &warnings)?);
        let lasting = Lasting {
            table,
            digest_key,
            learned: learned.clone(),
            counters: counters.clone(),
            warnings: warnings.clone(),
        };
        let settings = Arc::new(Settings::new(config, &lasting)?);
        let (renewed, settings) = watch::channel(settings);
        let shared =
            Arc::new(Shared { counters: counters.clone(), warnings, clock: environment.clock.clone() });
        let listeners = runtime.block_on(Listeners::bind(config))?;
        let metrics = config.metrics.map(MetricsServer::listen).transpose()?;
        let (stop, stopped) = watch::channel(Ending::NotYet);
        let mut proxy = Proxy {
            address: listeners.address,
            counters,
            pinned,
            stop: Stop(Arc::new(stop)),
            reload: Reload(Arc::new(Reloading {
                config: Mutex::new(config.clone()),
                lasting,
                renewed,
                stopped: stopped.clone(),
            })),
            threads: Vec::new(),
            failure: Arc::default(),
            keeper,
            metrics: None,
        };
        let current = Arc::new(Current::new(log));
        let counted = (proxy.counters.clone(), learned);
        let mut observation = Observation::new(counted, current.clone(), settings.clone(), stopped.clone());
        let workers =
            config.workers.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, Into::into));
        let changed = (0..workers).map(|_| Arc::new(Notify::new())).collect::<Vec<_>>();
        let delay = Arc::new(CommitDelay::new(changed.clone()));
        let (mut senders, mut renewing) = (Vec::new(), Vec::new());
        for (number, changed) in changed.into_iter().enumerate() {
            let waits = Arc::<Histogram>::default();
            observation.observe(waits.clone());
            let (sender, clients) = mpsc::unbounded_channel();
            senders.push(sender);
            let (renewal, renewals) = mpsc::unbounded_channel();
            renewing.push(renewal);
            let post = Post {
                shared: shared.clone(),
                runtime: crate::runtime::new()?,
                clients,
                settings: settings.clone(),
                stopped: stopped.clone(),
                log: current.clone(),
                renewals,
                changed,
                delay: delay.clone(),
                waits,
            };
            let producer = log.producer()?;
            proxy.spawn(format!("bulla-proxy-{number}"), move || post.hold(producer))?;
        }
        proxy.metrics = metrics.map(|metrics| metrics.serve(observation)).transpose()?;
        if let Some(logs) = logs {
            let reopening = Reopening {
                runtime: crate::runtime::new()?,
                logs: logs.clone(),
                current,
                workers: renewing,
                keeper: proxy.keeper.as_ref().and_then(Keeper::renewals),
                shared: shared.clone(),
                learned: settings.borrow().recording.learned.clone(),
                stopped: stopped.clone(),
            };
            proxy.spawn("bulla-reopen".to_owned(), move || reopening.run())?;
        }
        let (stop, failure) = (proxy.stop.clone(), proxy.failure.clone());
        proxy.spawn("bulla-accept".to_owned(), move || {
            let accepting = listeners.accept(&senders, settings, shared.clone(), stopped);
            let accepted = caught(|| runtime.block_on(accepting)).unwrap_or_else(|_| {
                shared.failed("the thread that accepts clients");
                Err(Error::unavailable("clients are accepted no more, by a defect of the proxy"))
            });
            if let Err(error) = accepted {
                shared.warnings.once(Kind::ListenerFailed, || format!("{error}: the proxy ends"));
                *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                stop.stop();
            }
        })?;
        Ok(proxy)
    }

    /// Where clients come over TCP.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Where metrics and health are served.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref().map(|metrics| metrics.address)
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

    /// By what another thread can give this another configuration.
    pub fn reloader(&self) -> Reload {
        self.reload.clone()
    }

    /// Waits until it was stopped, and the last client is gone.
    ///
    /// # Errors
    /// `Unavailable` where it stopped by itself, since clients could come no more where they came.
    pub fn join(mut self) -> Result<()> {
        self.wait();
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }

    /// Waits until its threads have ended. What it tells of itself it tells to the end.
    fn wait(&mut self) {
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
        self.keeper = None;
        self.metrics = None;
    }

    fn spawn(&mut self, name: String, run: impl FnOnce() + Send + 'static) -> Result<()> {
        self.threads.push(thread::start(name, "of the proxy", run)?);
        Ok(())
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop.stop();
        self.wait();
    }
}

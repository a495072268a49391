//! [`Observation`]: what is told of the proxy over HTTP, and the thread that tells it.

use crate::config::Unrecordable;
use crate::counters::{Counter, Counters, RefusedCommand, RefusedConnection};
use crate::defect::{self, caught_within};
use crate::ending::Ending;
use crate::metrics::{Distribution, Histogram, Metric, Value};
use crate::reopening::Current;
use crate::served::{Observed, Served};
use crate::settings::Settings;
use crate::subject::Learned;
use crate::thread;
use crate::warnings::{Kind, Warnings};
use bulla::{Error, ErrorKind, Result};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::runtime::Runtime;
use tokio::sync::watch;

/// See the module.
pub(crate) struct Observation {
    counters: Arc<Counters>,
    learned: Arc<Learned>,
    log: Arc<Current>,
    settings: watch::Receiver<Arc<Settings>>,
    stopped: watch::Receiver<Ending>,
    /// Of each worker.
    waits: Vec<Arc<Histogram>>,
}

/// What is counted and never becomes less: its name, what it is, and where it is counted.
type Counted = (&'static str, &'static str, fn(&Counters) -> &Counter);

const COUNTED: [Counted; 19] = [
    ("bulla_proxy_connections_total", "Connections that were accepted.", |it| &it.accepted),
    (
        "bulla_proxy_turned_away_total",
        "Connections that were turned away because there were too many clients.",
        |it| &it.turned_away,
    ),
    ("bulla_proxy_not_accepted_total", "How often no client could be accepted.", |it| &it.not_accepted),
    (
        "bulla_proxy_metrics_not_accepted_total",
        "How often nobody who asks for metrics could be accepted.",
        |it| &it.metrics_not_accepted,
    ),
    (
        "bulla_proxy_failed_total",
        "Connections, and clients of a thread, that ended by a defect of the proxy.",
        |it| &it.failed,
    ),
    ("bulla_proxy_unreachable_total", "Connections for which the server could not be reached.", |it| {
        &it.unreachable
    }),
    (
        "bulla_proxy_not_followed_total",
        "Connections that ended because what came was no protocol that is known.",
        |it| &it.not_followed,
    ),
    ("bulla_proxy_unaudited_total", "Connections that nobody audits from some point on.", |it| &it.unaudited),
    ("bulla_proxy_cut_off_total", "Clients that were cut off when the proxy ended.", |it| &it.cut_off),
    ("bulla_proxy_client_bytes_total", "Bytes that came from clients.", |it| &it.from_clients),
    ("bulla_proxy_server_bytes_total", "Bytes that came from the server.", |it| &it.from_server),
    (
        "bulla_proxy_redirects_total",
        "Answers that send clients to another server (MOVED, ASK, SENTINEL).",
        |it| &it.redirects,
    ),
    ("bulla_proxy_recorded_total", "Entries that the log was given.", |it| &it.recorded),
    ("bulla_proxy_unmapped_total", "Entries with a key of which no rule says whose data it is.", |it| {
        &it.unmapped
    }),
    ("bulla_proxy_unrecorded_total", "Operations that the log did not take.", |it| &it.unrecorded),
    (
        "bulla_proxy_unknown_total",
        "Entries of operations of which nobody knows whether they were carried out.",
        |it| &it.unknown,
    ),
    ("bulla_proxy_learned_unkept_total", "How often what values teach could not be written down.", |it| {
        &it.unkept
    }),
    (
        "bulla_proxy_log_reopened_total",
        "How often the log was opened again that had failed for good.",
        |it| &it.log_reopened,
    ),
    ("bulla_proxy_memory_waits_total", "How often entries began to wait for memory of the log.", |it| {
        &it.waits
    }),
];

impl Observation {
    /// Of a proxy without workers.
    pub(crate) fn new(
        (counters, learned): (Arc<Counters>, Arc<Learned>),
        log: Arc<Current>,
        settings: watch::Receiver<Arc<Settings>>,
        stopped: watch::Receiver<Ending>,
    ) -> Self {
        Observation { counters, learned, log, settings, stopped, waits: Vec::new() }
    }

    /// Has one worker more observed.
    pub(crate) fn observe(&mut self, waits: Arc<Histogram>) {
        self.waits.push(waits);
    }

    fn warnings(&self) -> Arc<Warnings> {
        self.settings.borrow().recording.warnings.clone()
    }

    fn of_proxy(&self, metrics: &mut Vec<Metric>) {
        let counters = &*self.counters;
        metrics.extend(COUNTED.map(|(name, help, of)| counter(name, help, &[], of(counters).get())));
        metrics.push(gauge(
            "bulla_proxy_untold",
            "Operations that the log did not take, and of which no entry `gap` tells yet.",
            counters.untold.get(),
        ));
        metrics.push(gauge(
            "bulla_proxy_lost_at_most",
            "Entries that a log which failed for good had taken and may have lost, and of which no entry `gap` tells yet.",
            counters.lost_at_most.get(),
        ));
        metrics.push(gauge(
            "bulla_proxy_log_failed",
            "1 while the log has failed for good and is not opened again, else 0.",
            counters.log_failed.get(),
        ));
        metrics.push(gauge("bulla_proxy_clients", "Clients that are connected.", counters.clients.get()));
        metrics.push(gauge(
            "bulla_proxy_learned_keys",
            "Keys of which values taught whose data they are.",
            self.learned.count(),
        ));
        metrics.push(counter(
            "bulla_proxy_learned_dropped_total",
            "Keys of which that was forgotten for want of room (`limits.learned`).",
            &[],
            self.learned.dropped(),
        ));
        let (name, help) = (
            "bulla_proxy_refused_connections_total",
            "Connections that were refused before their first command.",
        );
        let refused = RefusedConnection::ALL.into_iter().zip(&REFUSED_CONNECTIONS);
        metrics.extend(refused.map(|(why, labels)| counter(name, help, labels, counters.refused(why).get())));
        let (name, help) = ("bulla_proxy_refused_commands_total", "Commands that were refused.");
        let refused = RefusedCommand::ALL.into_iter().zip(&REFUSED_COMMANDS);
        let refused =
            refused.map(|(why, labels)| counter(name, help, labels, counters.refused_command(why).get()));
        metrics.extend(refused);
        let mut waits = Distribution::default();
        self.waits.iter().for_each(|histogram| waits.add(&histogram.distribution()));
        metrics.push(Metric {
            name: "bulla_proxy_durability_wait_seconds",
            help: "How long replies (before-reply) or commands (before-send) waited for entries to be durable.",
            labels: &[],
            value: Value::Histogram(waits),
        });
    }

    fn of_log(&self, metrics: &mut Vec<Metric>) {
        let watch = self.log.watch();
        let Some(log) = watch.telemetry() else { return };
        let counts = [
            ("bulla_log_durable_total", "Entries that are durable.", log.entries),
            ("bulla_log_lost_total", "Entries that were accepted and then lost.", log.lost),
            ("bulla_log_dropped_total", "Entries that were dropped since nothing took the log.", log.dropped),
            ("bulla_log_written_bytes_total", "Bytes that were written to segments.", log.written_bytes),
            ("bulla_log_syncs_total", "Syncs of segments.", log.syncs.count),
            ("bulla_log_checkpoints_total", "Checkpoints that were published.", log.checkpoints.count),
            ("bulla_log_abandoned_total", "Segments that were given up.", log.abandoned),
            (
                "bulla_log_failovers_total",
                "How often the log went on on another path because one failed.",
                log.failovers.count,
            ),
        ];
        metrics.extend(counts.map(|(name, help, count)| counter(name, help, &[], count)));
        let left_out = watch.vault_replicas().iter().filter(|it| it.failure.is_some()).count();
        let gauges = [
            (
                "bulla_log_durable_prefix",
                "Entries that are durable without one missing before them.",
                log.durable_prefix,
            ),
            ("bulla_log_staged_bytes", "Bytes of entries that wait to be sealed.", log.queues.staged_bytes),
            (
                "bulla_log_in_flight_bytes",
                "Bytes of entries that are not committed yet.",
                log.queues.in_flight_bytes,
            ),
            (
                "bulla_log_replicas_left_out",
                "Replicas of the vault that were left out because they failed.",
                left_out as u64,
            ),
            (
                "bulla_log_failing_paths",
                "Paths of the log that are missing, or failed when they were written to last.",
                log.failing_paths,
            ),
        ];
        metrics.extend(gauges.map(|(name, help, value)| gauge(name, help, value)));
        metrics.push(gauge(
            "bulla_log_pending_entries",
            "Entries that were accepted and are not durable yet.",
            log.queues.pending_entries,
        ));
        metrics.push(Metric {
            name: "bulla_log_lag_seconds",
            help: "Age of the oldest entry that was accepted and is not durable yet; 0 where there is none.",
            labels: &[],
            value: Value::Gauge(log.queues.lag.as_secs_f64()),
        });
    }
}

impl Observed for Observation {
    fn metrics(&self) -> Vec<Metric> {
        let mut metrics = Vec::new();
        self.of_proxy(&mut metrics);
        self.of_log(&mut metrics);
        metrics
    }

    fn ready(&self) -> Result<(), String> {
        if self.stopped.borrow().has_begun() {
            return Err("the proxy ends, and takes no more clients".to_owned());
        }
        let refuses = self.settings.borrow().unrecordable == Unrecordable::Refuse;
        let fails = self.counters.taking_nothing.get() > 0 || self.log.watch().telemetry().is_none();
        if refuses && fails {
            let failed = self.counters.log_failed.get() > 0;
            let why = if failed {
                "the log has failed, and is not opened again yet"
            } else {
                "the log takes no entries"
            };
            return Err(why.to_owned());
        }
        Ok(())
    }

    fn not_accepted(&self, error: &io::Error) {
        self.counters.metrics_not_accepted.add(1);
        let told = || format!("whoever asks for metrics could not be accepted: {error}");
        self.warnings().once(Kind::MetricsNotAccepted, told);
    }

    fn not_listening(&self, error: &io::Error) {
        self.counters.metrics_not_accepted.add(1);
        let told =
            || format!("metrics are not served: {error}: it is tried every second to listen there again");
        self.warnings().once(Kind::MetricsFailed, told);
    }

    fn defective(&self) {
        defect::report(&self.counters, &self.warnings(), "an answer to whoever asks for metrics");
    }
}

type Labels = [(&'static str, &'static str); 1];

/// The label of each reason, in the order of the reasons.
const REFUSED_CONNECTIONS: [Labels; RefusedConnection::ALL.len()] = {
    let mut labels = [[("reason", "")]; RefusedConnection::ALL.len()];
    let mut at = 0;
    while at < labels.len() {
        labels[at] = [("reason", RefusedConnection::ALL[at].name())];
        at += 1;
    }
    labels
};

/// See [`REFUSED_CONNECTIONS`].
const REFUSED_COMMANDS: [Labels; RefusedCommand::ALL.len()] = {
    let mut labels = [[("reason", "")]; RefusedCommand::ALL.len()];
    let mut at = 0;
    while at < labels.len() {
        labels[at] = [("reason", RefusedCommand::ALL[at].name())];
        at += 1;
    }
    labels
};

fn counter(
    name: &'static str,
    help: &'static str,
    labels: &'static [(&'static str, &'static str)],
    count: u64,
) -> Metric {
    Metric { name, help, labels, value: Value::Counter(count) }
}

#[allow(clippy::cast_precision_loss, reason = "a gauge is a floating-point number")]
fn gauge(name: &'static str, help: &'static str, value: u64) -> Metric {
    Metric { name, help, labels: &[], value: Value::Gauge(value as f64) }
}

/// Listens where metrics are served.
pub(crate) struct MetricsServer {
    runtime: Runtime,
    served: Served,
    address: SocketAddr,
}

/// Tells what is observed, until it is dropped.
pub(crate) struct Serving {
    /// Where.
    pub(crate) address: SocketAddr,
    ended: Option<watch::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl MetricsServer {
    /// Begins to listen.
    ///
    /// # Errors
    /// `Unavailable` where the address cannot be listened at.
    pub(crate) fn listen(address: SocketAddr) -> Result<MetricsServer> {
        let unavailable = |error: std::io::Error| Error::new(ErrorKind::Unavailable, error.to_string());
        let runtime = crate::runtime::new()?;
        let served = runtime.block_on(Served::listen(address)).map_err(unavailable)?;
        let address = served.address();
        Ok(MetricsServer { runtime, served, address })
    }

    /// Tells whoever asks what is observed.
    ///
    /// # Errors
    /// `Unavailable` where there is no thread for it.
    pub(crate) fn serve(self, observation: Observation) -> Result<Serving> {
        let MetricsServer { runtime, served, address } = self;
        let (ended, mut end) = watch::channel(());
        let run = move || {
            runtime.block_on(async {
                let observation = Arc::new(observation);
                let serving = pin!(served.run(observation.clone()));
                tokio::select! {
                    Err(_) = caught_within(serving) => observation.defective(),
                    // Nothing is ever sent.
                    _ = end.changed() => {}
                }
            });
        };
        let thread = thread::start("bulla-metrics".to_owned(), "for metrics", run)?;
        Ok(Serving { address, ended: Some(ended), thread: Some(thread) })
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.ended = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::CommandTable;
    use crate::config::Config;
    use crate::metrics::{exposition, format};
    use crate::settings::Lasting;
    use bulla::environment::Environment;
    use bulla::{Entry, Init, Log, Options};
    use bulla_testkit::Memory;

    #[test]
    fn what_is_told_is_what_every_reader_of_the_format_takes_and_nothing_is_left_out() {
        let (store, keys) = (Arc::new(Memory::new()), Arc::new(Memory::new()));
        Init::default().erasure(false).create_in(&*store, &*keys, &Environment::default()).unwrap();
        // Nothing becomes durable by itself.
        let log = Log::open_stepped(store, keys, Options::default(), Environment::default()).unwrap();
        log.producer().unwrap().append(&Entry::new("read", "here")).unwrap();
        let counters = Arc::<Counters>::default();
        let learned = Arc::new(Learned::new(1 << 20));
        let lasting = Lasting {
            table: CommandTable::pinned(),
            digest_key: [0; 32],
            learned: learned.clone(),
            counters: counters.clone(),
            warnings: Arc::new(Warnings::new(Arc::new(|_, _| {}))),
        };
        let config = Config::parse(b"[log]\ndirectory = \"audit\"\n").unwrap();
        let (_renewed, settings) = watch::channel(Arc::new(Settings::new(&config, &lasting).unwrap()));
        let (_stop, stopped) = watch::channel(Ending::NotYet);
        let observation =
            Observation::new((counters.clone(), learned), Arc::new(Current::new(&log)), settings, stopped);
        counters.refused_command(RefusedCommand::Limit).add(7);
        counters.lost_at_most.add(9);
        let samples = format::read(&exposition(&observation.metrics())).unwrap();
        for why in RefusedCommand::ALL {
            let series = format!("bulla_proxy_refused_commands_total{{reason=\"{}\"}}", why.name());
            let expected = if why == RefusedCommand::Limit { 7.0 } else { 0.0 };
            assert_eq!(samples[&series], expected, "{series}");
        }
        assert_eq!(samples["bulla_proxy_lost_at_most"], 9.0);
        assert_eq!((samples["bulla_log_durable_total"], samples["bulla_log_pending_entries"]), (0.0, 1.0));
        assert!(samples["bulla_log_lag_seconds"] > 0.0, "{samples:?}");
        assert_eq!(observation.ready(), Ok(()));
        log.close().unwrap();
        assert_eq!(observation.ready(), Err("the log takes no entries".to_owned()));
        // What of the log is gone is not told as nothing.
        let samples = format::read(&exposition(&observation.metrics())).unwrap();
        assert!(!samples.contains_key("bulla_log_durable_total"));
    }
}

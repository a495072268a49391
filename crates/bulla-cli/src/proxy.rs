//! `bulla proxy`.

mod advice;
mod descriptors;
mod dry_run;
mod embedded;
mod missing;
mod reloading;
mod server;

use crate::append::{open, open_with, tell_opened};
use crate::exit::{Exit, Failure};
use crate::interrupt::{Interrupt, no_room};
use crate::log_paths::LogPaths;
use crate::output::{note_in_objects, note_object, on_line, print, print_json};
use crate::teller::Teller;
use crate::terminal::telling_environment;
use bulla::text::spelling::{agreeing, counted};
use bulla::{Log, Options};
use bulla_proxy::config::{self, Config, Mode};
use bulla_proxy::counters::Counters;
use bulla_proxy::defect::keep_messages_back;
use bulla_proxy::logs::Logs;
use bulla_proxy::proxy::{Proxy as Relaying, Stop};
use bulla_proxy::service::{ServiceManager, State};
use bulla_proxy::warnings::{Kind, Warn};
use embedded::Embedded;
use missing::Missing;
use reloading::HangUps;
use serde_json::{Value, json};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

/// The longest configuration that is looked at, in bytes.
const MAX_CONFIGURATION: u64 = 2 << 20;

/// How often what the log cannot write is tried again, unless its settings say: with waits of up to a second, a quarter of an hour. A disk
/// that is full for a while is no reason to go without a log until somebody starts the proxy anew.
const RETRIES: u32 = 1000;
/// So many entries make a block that waits for more no longer than it has to. What a reply waits for is flushed, and waits for none.
const ENOUGH: u32 = 2048;

/// Stand before a Redis or Valkey server, and record what clients do to personal data.
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "\
bulla proxy <FILE> [--dry-run <CAPTURE>] [--json]
       bulla proxy --embedded [DIR] [--json]
       bulla proxy --example",
    after_help = "\
Bytes are relayed as they are; each key that a command uses becomes an entry. What the server does
by itself (expiry, eviction) and what clients keep in memory nobody sees here. Nothing but the proxy
may reach the server. Where other machines can reach the proxy, give it TLS (`[listen.tls]`): what
they send, passwords too, can be read on the way without. SIGTERM or SIGINT: no more clients are
accepted, and those that are there have `limits.drain_timeout` for what they began; then the log is
closed. SIGHUP: FILE is read anew.

Examples:
  bulla proxy --embedded trial
  bulla proxy --example > proxy.toml; bulla proxy proxy.toml"
)]
pub(crate) struct Proxy {
    /// The configuration, in TOML
    #[arg(value_name = "FILE", required_unless_present_any = ["example", "embedded"])]
    file: Option<PathBuf>,

    /// A first try: start an installed redis-server or valkey-server on a private socket, with a
    /// log, rules and its data in DIR (without it `embedded`); it ends with the proxy
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = "embedded", conflicts_with = "file")]
    embedded: Option<PathBuf>,

    /// Print a configuration that has every key and says what each does
    #[arg(long, conflicts_with_all = ["file", "embedded", "json", "dry_run"])]
    example: bool,

    /// Serve nobody: show what would be recorded of what `redis-cli MONITOR` printed (`-`: standard input)
    #[arg(long, value_name = "CAPTURE", requires = "file", conflicts_with = "embedded")]
    dry_run: Option<PathBuf>,

    /// At the end, print what was counted as one JSON object; each line on standard error is one, too
    #[arg(long)]
    json: bool,
}

/// What a signal is to end.
enum Phase {
    /// There is nothing yet.
    Starting,
    /// The log is open, and nobody is served. Whether a signal has asked for the end.
    Open(Arc<Logs>, bool),
    Serving(Stop, Arc<Logs>, Arc<ServiceManager>),
    Draining(Stop, Arc<Logs>),
}

impl Phase {
    /// What follows when a signal came. `ends` is set where another one is to end the process.
    fn after_signal(&self, ends: &AtomicBool) -> Phase {
        match self {
            Phase::Starting => std::process::exit(Exit::Interrupted as i32),
            Phase::Open(logs, asked) => {
                match asked {
                    false => {
                        note!(
                            "no client is accepted: it ends as soon as it has started, at another signal at once"
                        );
                        logs.announce();
                    }
                    true => {
                        note!("what the log cannot write is not tried again; another signal ends it at once");
                        logs.give_up();
                    }
                }
                ends.store(*asked, Ordering::Relaxed);
                Phase::Open(logs.clone(), true)
            }
            Phase::Serving(stop, logs, manager) => {
                note!("no more clients are accepted; another signal ends those that are there");
                stop.stop();
                reloading::tell(manager, State::Stopping, "clients end what they began");
                logs.announce();
                Phase::Draining(stop.clone(), logs.clone())
            }
            Phase::Draining(stop, logs) => {
                note!(
                    "clients that still wait for something are cut off, and what the log cannot write is not tried again; another signal \
                     ends it at once"
                );
                stop.cut_off();
                logs.give_up();
                ends.store(true, Ordering::Relaxed);
                Phase::Draining(stop.clone(), logs.clone())
            }
        }
    }
}

impl Proxy {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        if self.example {
            print(config::EXAMPLE)?;
            return Ok(Exit::Done);
        }
        if self.json {
            note_in_objects();
        }
        if let (Some(capture), Some(file)) = (&self.dry_run, &self.file) {
            return dry_run::show(&read(file)?, capture, self.json);
        }
        keep_messages_back(|what| note!("{what}"));
        let manager = Arc::new(service_manager());
        let phase = Arc::new(Mutex::new(Phase::Starting));
        let of_signals = phase.clone();
        let _interrupt = Interrupt::on_each_but_hang_up(move |ends| {
            let mut phase = of_signals.lock().unwrap_or_else(PoisonError::into_inner);
            *phase = phase.after_signal(ends);
        })?;
        let hang_ups = HangUps::await_them()?;
        let embedded = self.embedded.as_deref().map(Embedded::prepare).transpose()?;
        let file = embedded.as_ref().map(Embedded::config).or_else(|| self.file.clone()).unwrap_or_default();
        let mut config = read_to_serve(&file)?;
        advice::tell_plain_listener(&config);
        if let Some(embedded) = &embedded {
            embedded.check(&config)?;
        }
        let place = LogPaths::of(config.log.directory.clone(), config.log.keys.clone());
        place.check_named_keys()?;
        let teller = Teller::start()?;
        let environment = telling_environment(teller.tell());
        // Where no reply waits for entries, what makes the replies goes first.
        let options = Options::default().default_retries(RETRIES).enough_entries(ENOUGH);
        let options = options.yielding(config.mode == Mode::Async);
        let log = open_with(&place, options.clone(), environment.clone())?;
        tell_control(&log);
        let opened_again = |log: &Log| {
            tell_opened(log);
            tell_control(log);
        };
        let logs = Arc::new(Logs::new(log, options, environment.clone(), opened_again));
        set(&phase, Phase::Open(logs.clone(), false));
        let server = embedded.as_ref().map(|embedded| embedded.start(&mut config)).transpose()?;
        let proxy = Relaying::start_reopening(&config, &logs, &environment, warn(self.json)?)?;
        if let Some(why) = proxy.pinned() {
            note!("the commands are taken to be those of Redis 7.0: {why}");
        }
        if let (Some(embedded), Some(server)) = (&embedded, &server) {
            embedded.tell(server, &config, proxy.address());
        }
        let tcp = proxy.address().map(|address| address.to_string());
        let unix = config.listen.unix.as_ref().map(|path| path.display().to_string());
        let places = [tcp, unix].into_iter().flatten().collect::<Vec<_>>().join(" and ");
        let counters = proxy.counters().clone();
        if let Some(address) = proxy.metrics_address() {
            note!("metrics are at http://{address}/metrics");
        }
        {
            // Held until it is told that clients are served: that they are not any more is told after that.
            let mut phase = phase.lock().unwrap_or_else(PoisonError::into_inner);
            note!("listening at {places}");
            let serving = Phase::Serving(proxy.stopper(), logs.clone(), manager.clone());
            reloading::tell(&manager, State::Ready, "clients are served");
            let asked = matches!(*phase, Phase::Open(_, true));
            *phase = if asked { serving.after_signal(&AtomicBool::new(false)) } else { serving };
        }
        hang_ups.have_reloaded(file.clone(), proxy.reloader(), manager);
        let ended = proxy.join();
        drop(server);
        let (lost_at_most, closed) = logs.close(&counters);
        let missing = Missing { untold: counters.untold.get(), lost_at_most };
        let missing = missing.tell(|| open(&place, environment));
        // What became of the log matters more.
        self.tell(&counters, missing, closed.and(ended))
    }

    /// Tells what was counted, once all is over.
    fn tell(
        &self,
        counters: &Counters,
        missing: Missing,
        closed: bulla::Result<()>,
    ) -> Result<Exit, Failure> {
        match self.json {
            true => print_json(&told(counters, missing, closed.as_ref().err()))?,
            false if closed.is_err() => {}
            false => {
                let (entries, clients) = (counters.recorded.get(), counters.accepted.get());
                note!("{} of {}", counted(entries, "entry"), counted(clients, "client"));
            }
        }
        closed?;
        match counters.cut_off.get() {
            0 => Ok(Exit::Done),
            count => {
                let (were, they) = (agreeing(count, "was", "were"), agreeing(count, "it", "they"));
                note!("{} {were} cut off while {they} waited for something", counted(count, "client"));
                Ok(Exit::Interrupted)
            }
        }
    }
}

fn set(phase: &Mutex<Phase>, to: Phase) {
    *phase.lock().unwrap_or_else(PoisonError::into_inner) = to;
}

/// Says where a log has no control socket.
fn tell_control(log: &Log) {
    if let Some(failure) = log.control_failure() {
        note!("whatever needs the log has to wait until this ends: {failure}");
    }
}

/// Whoever started this, if it wants to be told how it is.
fn service_manager() -> ServiceManager {
    let socket = std::env::var_os("NOTIFY_SOCKET");
    ServiceManager::new(socket.as_deref()).unwrap_or_else(|error| {
        note!("the service manager is not told anything: NOTIFY_SOCKET: {error}");
        ServiceManager::nobody()
    })
}

/// Tells warnings on standard error, as text or as one JSON object each, in a thread of its own: those that warn have clients to serve.
fn warn(json: bool) -> Result<Warn, Failure> {
    let (warned, told) = mpsc::sync_channel::<(Kind, String)>(16);
    let tell = move || {
        for (kind, what) in told {
            match json {
                true => note_object(json!({ "warning": kind.name(), "message": what })),
                false => note!("{}", on_line(&what)),
            }
        }
    };
    let thread = std::thread::Builder::new().name("bulla-warned".to_owned()).spawn(tell);
    thread.map_err(|error| no_room("starting a thread", &error))?;
    Ok(Arc::new(move |kind, what: &str| drop(warned.try_send((kind, what.to_owned())))))
}

/// Reads the configuration of a proxy that serves clients, and says what an operator should know of it.
fn read_to_serve(file: &Path) -> Result<Config, Failure> {
    let mut config = read(file)?;
    descriptors::provide(&mut config)?;
    advice::tell(file, &config);
    Ok(config)
}

fn read(file: &Path) -> Result<Config, Failure> {
    let failed = |error| Failure::io(format!("reading {}", file.display()), &error);
    let opened = std::fs::File::open(file).map_err(failed)?;
    let mut bytes = Vec::new();
    opened.take(MAX_CONFIGURATION).read_to_end(&mut bytes).map_err(failed)?;
    Config::parse(&bytes).map_err(|error| Failure::usage(format!("{}: {error}", file.display())))
}

fn told(counters: &Counters, missing: Missing, failure: Option<&bulla::Error>) -> Value {
    let mut told = json!({
        "clients": counters.accepted.get(),
        "recorded": counters.recorded.get(),
        "unmapped": counters.unmapped.get(),
        "unrecorded": counters.unrecorded.get(),
        "untold": missing.untold,
        "lost_at_most": missing.lost_at_most,
        "cut_off": counters.cut_off.get(),
    });
    if let Some(failure) = failure {
        told["error"] = failure.to_string().into();
    }
    told
}

//! How many commands a second there are with as many clients as can be: `redis-benchmark`, fifty connections, `SET` and `GET` of 64
//! bytes on 100,000 keys.

use super::figure::{COMMAND_RATE, SYNC};
use super::process::installed;
use super::server::Server;
use super::setup::Setup;
use super::sync;
use super::way::{ReplyMode, Route, Way};
use crate::outcome::{Failure, Outcome};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::process::Command;

/// Clients at once.
pub(crate) const CONNECTIONS: u32 = 50;
/// Keys that are drawn from.
pub(super) const KEYS: u32 = 100_000;
/// Bytes of a value.
pub(super) const VALUE: usize = 64;

/// What is sent which way.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Throughput {
    pub(crate) way: Way,
    /// Commands of a client at once.
    pub(crate) pipeline: u32,
    /// Of `SET`, and of `GET`, each.
    pub(crate) commands: u64,
    pub(crate) setup: Setup,
}

/// Commands a second.
pub(super) struct Rates {
    pub(super) set: f64,
    pub(super) get: f64,
}

impl Rates {
    /// Of as many of one as of the other.
    pub(super) fn both(&self) -> f64 {
        2.0 / (1.0 / self.set + 1.0 / self.get)
    }
}

pub(crate) fn run(run: &Throughput, place: &Path) -> Result<Outcome, Failure> {
    let Throughput { way, pipeline, commands, setup } = run;
    setup.apply()?;
    let server = Server::start(place)?;
    let route = Route::open(*way, &server, setup, place)?;
    let commands = commands.next_multiple_of((*pipeline).into());
    let rates = load(route.port(), commands, *pipeline)?;
    let entries = carried_out(&server, commands)?;
    let mut outcome = Outcome::default();
    outcome.set("set_per_second", rates.set);
    outcome.set("get_per_second", rates.get);
    outcome.set(COMMAND_RATE, rates.both());
    route.close(entries, &mut outcome)?;
    let waits = matches!(way, Way::Proxy(audit) if audit.mode == ReplyMode::BeforeReply);
    if let Some(block) = outcome.get("written_bytes_per_sync").filter(|_| waits) {
        outcome.set(SYNC, sync::median(place, block, server.port())?);
    }
    Ok(outcome)
}

/// What `redis-benchmark` reaches with so many of each command, which are a multiple of its pipeline.
pub(super) fn load(port: u16, commands: u64, pipeline: u32) -> Result<Rates, Failure> {
    let mut command = Command::new(installed("redis-benchmark")?);
    command.args(["-t", "set,get", "--csv", "-p", &port.to_string(), "-c", &CONNECTIONS.to_string()]);
    command.args(["-r", &KEYS.to_string(), "-d", &VALUE.to_string()]);
    command.args(["-n", &commands.to_string(), "-P", &pipeline.to_string()]);
    let output = command.output()?;
    let (text, error) = (String::from_utf8(output.stdout)?, String::from_utf8_lossy(&output.stderr));
    match rates(&text).filter(|_| output.status.success()) {
        Some(rates) => Ok(rates),
        None => Err(format!("redis-benchmark ended with {}: {text}{error}", output.status).into()),
    }
}

fn rates(csv: &str) -> Option<Rates> {
    let of = |command: &str| {
        let line = csv.lines().find_map(|line| line.strip_prefix(&format!("\"{command}\",\"")))?;
        line.split('"').next()?.parse::<f64>().ok().filter(|rate| *rate > 0.0)
    };
    Some(Rates { set: of("SET")?, get: of("GET")? })
}

/// How many commands the server carried out that leave an entry: those that were asked for, and the looks at the configuration
/// that `redis-benchmark` begins with.
pub(super) fn carried_out(server: &Server, commands: u64) -> Result<u64, Failure> {
    let (set, get) = (server.calls("set")?, server.calls("get")?);
    match (set, get) == (commands, commands) {
        true => Ok(set + get + server.calls("config|get")?),
        false => Err(format!("the server carried out {set} SET and {get} GET, of {commands} each").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_redis_benchmark_prints_is_read() {
        let csv = "\"test\",\"rps\",\"avg_latency_ms\"\n\"SET\",\"20000.00\",\"2.8\"\n\"GET\",\"60000.00\",\"1.2\"\n";
        let rates = rates(csv).unwrap();
        assert_eq!((rates.set, rates.get, rates.both()), (20_000.0, 60_000.0, 30_000.0));
        assert!(super::rates("\"test\",\"rps\"\n\"SET\",\"20000.00\"\n").is_none());
    }
}

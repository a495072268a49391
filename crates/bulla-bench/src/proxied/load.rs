//! The load: `redis-benchmark`, fifty connections, `SET` and `GET` of 64 bytes on 100,000 keys.

use super::process::installed;
use crate::outcome::Failure;
use std::process::Command;

/// Clients at once.
pub(crate) const CONNECTIONS: u32 = 50;
/// Keys that are drawn from.
pub(super) const KEYS: u32 = 100_000;
/// Bytes of a value.
pub(super) const VALUE: usize = 64;

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

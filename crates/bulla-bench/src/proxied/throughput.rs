//! How many commands a second there are by each way, under a load that waits for nothing but replies.

use super::audited::ReplyMode;
use super::figure::{COMMAND_RATE, SYNC};
use super::load::load;
use super::server::Server;
use super::setup::Setup;
use super::sync;
use super::way::{Route, Way};
use crate::outcome::{Failure, Outcome};
use serde::{Deserialize, Serialize};
use std::path::Path;

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

/// How many commands the server carried out that leave an entry: those that were asked for, and the looks at the configuration
/// that `redis-benchmark` begins with.
fn carried_out(server: &Server, commands: u64) -> Result<u64, Failure> {
    let (set, get) = (server.calls("set")?, server.calls("get")?);
    match (set, get) == (commands, commands) {
        true => Ok(set + get + server.calls("config|get")?),
        false => Err(format!("the server carried out {set} SET and {get} GET, of {commands} each").into()),
    }
}

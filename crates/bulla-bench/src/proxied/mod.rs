//! The proxy, measured from outside: a client, a server, and what stands between them, as processes that share some processors.
//!
//! Every run starts a server of its own and ends it, and counts afterwards: what the client sent, what the server carried out by its
//! own statistics, and what the log has are one number, or the run fails.

mod audited;
mod client;
pub(crate) mod gdprbench;
mod haproxy;
pub(crate) mod latency;
mod load;
pub(crate) mod memory;
mod process;
mod server;
mod setup;
mod sync;
pub(crate) mod throughput;
mod way;

pub(crate) use audited::{Audit, ReplyMode, Rule};
pub(crate) use load::CONNECTIONS;
pub(crate) use process::Running;
pub(crate) use setup::Setup;
pub(crate) use way::Way;

/// Names of figures.
pub(crate) mod figure {
    /// Of `SET` and `GET` alike.
    pub(crate) const COMMAND_RATE: &str = "commands_per_second";
    /// What making a block durable takes.
    pub(crate) const SYNC: &str = "sync_us_median";
    /// Of a role's operations.
    pub(crate) const COMPLETION: &str = "completion_seconds";
    pub(crate) const COMMANDS: &str = "commands";
}

//! The descriptors of this process. A client takes two, one to it and one to the server; a log that finds none left fails for good.
//!
//! So there are as many as the process may have, and clients never get those that the log needs.

use crate::exit::{Exit, Failure};
use bulla_proxy::config::{Config, Limits};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Those of the log, its vault and its replicas, of whoever reads or erases meanwhile, of metrics and of the command itself.
const RESERVED: u64 = 128;
/// Those by which each thread that relays waits.
const OF_WORKER: u64 = 4;
const OF_CLIENT: u64 = 2;

/// The last `limits.clients` that was said to be too many: whoever reloads a file with the same one knows.
static TOLD: AtomicUsize = AtomicUsize::new(0);

/// Has the process have as many as it may, and lets in as many clients as there are descriptors for. Where `limits.clients` asks for more,
/// that is said; where nobody asks, there are as many as there may be by default, or as there can be.
pub(super) fn provide(config: &mut Config) -> Result<(), Failure> {
    let limit = raise();
    let workers = config.workers.or_else(|| std::thread::available_parallelism().ok().map(Into::into));
    let reserved = RESERVED + OF_WORKER * workers.unwrap_or(1) as u64;
    let room = limit.saturating_sub(reserved) / OF_CLIENT;
    if room == 0 {
        let message = format!(
            "this process may have {limit} open files, and the log and {} need {reserved} of them: raise that \
             (`ulimit -Hn`, `LimitNOFILE=` of systemd)",
            bulla::text::spelling::counted(workers.unwrap_or(1) as u64, "worker")
        );
        return Err(Failure::new(Exit::Environment, message));
    }
    let room = usize::try_from(room).unwrap_or(usize::MAX);
    let asked = config.limits.clients;
    let too_many = asked.filter(|clients| *clients > room);
    if let Some(clients) = too_many.filter(|clients| TOLD.swap(*clients, Ordering::Relaxed) != *clients) {
        note!(
            "`limits.clients` is {clients}, and the {limit} open files that this process may have at most are enough for {room}, at \
             {OF_CLIENT} each: raise that (`ulimit -Hn`, `LimitNOFILE=` of systemd), or lower `limits.clients`"
        );
    }
    config.limits.clients = Some(asked.unwrap_or(Limits::CLIENTS).min(room));
    Ok(())
}

/// Raises the limit as far as anybody may; what it is then.
fn raise() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let may_be_raised = current.is_some() && current != maximum;
    let raised = may_be_raised && setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_ok();
    (if raised { maximum } else { current }).unwrap_or(u64::MAX)
}

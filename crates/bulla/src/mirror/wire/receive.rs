//! The destination's side of the line.

use super::message::{LONGEST_WAIT, Request};
use super::remote::Remote;
use crate::mirror::Mirror;
use bulla_crypto::environment::Clock;
use bulla_proof::checkpoint::VerifierKey;
use bulla_store::{Error, ErrorKind, Result, Store};
use std::sync::Arc;
use std::time::Duration;

/// So long it is waited for news at once; the line is not silent for longer.
const WAIT: Duration = Duration::from_millis(LONGEST_WAIT as u64);
/// While frames arrive the sender is told of it so often.
const TOLD_EVERY: i64 = 500_000_000;

/// Mirrors the log at the other end of a line into `destination`: until all has arrived that is there, where the sender asks for that,
/// else until the line ends. With `key`, the log has to be signed by that, whatever the sender says.
///
/// # Errors
/// As [`Mirror::open`] and [`Mirror::poll`], which the sender is told, too; `Unavailable` where the line fails.
pub fn receive(
    remote: &Remote,
    destination: Arc<dyn Store>,
    key: Option<VerifierKey>,
    clock: &dyn Clock,
) -> Result<()> {
    let received = follow(remote, destination, key, clock);
    if let Err(error) = &received {
        // Where the line is what failed, nobody hears it.
        let _ = remote.tell(&Request::Failed { kind: error.kind(), message: error.to_string() });
    }
    received
}

fn follow(
    remote: &Remote,
    destination: Arc<dyn Store>,
    key: Option<VerifierKey>,
    clock: &dyn Clock,
) -> Result<()> {
    let key = agreed(key, &remote.key)?;
    let mut mirror = Mirror::open_stores(Arc::new(remote.clone()), destination, key)?;
    remote.tell_state(mirror.shipped())?;
    loop {
        let (mut told, mut unheard) = (clock.now(), Ok(()));
        let shipped = mirror.poll(|shipped| {
            if unheard.is_ok() && clock.now() - told >= TOLD_EVERY {
                told = clock.now();
                unheard = remote.tell_state(*shipped);
            }
        })?;
        unheard.and_then(|()| remote.tell_state(shipped))?;
        if remote.once {
            return remote.tell(&Request::Done);
        }
        remote.wait(WAIT)?;
    }
}

/// The key that both sides name, or one of them.
fn agreed(own: Option<VerifierKey>, senders: &str) -> Result<Option<VerifierKey>> {
    let wrong = |error| Error::invalid(format!("the sender's key is none: {error}"));
    let senders = match senders {
        "" => None,
        key => Some(key.parse::<VerifierKey>().map_err(wrong)?),
    };
    match (own, senders) {
        (Some(own), Some(senders)) if !own.is_same_key(&senders) => Err(Error::new(
            ErrorKind::Refused,
            format!("the sender has a log of the key {senders}, and this receiver takes one of {own} alone"),
        )),
        (own, senders) => Ok(own.or(senders)),
    }
}

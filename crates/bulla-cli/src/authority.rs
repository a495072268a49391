//! By whose word somebody is erased, held or released, or another key orders that: with the log's erasure key, or by an order that was
//! made with it.

use crate::exit::{Exit, Failure};
use crate::log_paths::LogPaths;
use bulla::keys::{files, signing::SigningKey};
use std::path::{Path, PathBuf};

/// What was named as the authority.
pub(crate) enum Authority<T> {
    /// The key: an order is made with it.
    Key(Box<SigningKey>),
    /// An order that was made elsewhere, and its file.
    Order(T, PathBuf),
}

/// The authority in the file that was given, or else the key in the key directory; `parse` reads an order. `otherwise` is what can be
/// done where there is neither.
pub(crate) fn authority<T>(
    place: &LogPaths,
    (given, otherwise): (Option<&Path>, &str),
    parse: impl FnOnce(&str) -> bulla::Result<T>,
) -> Result<Authority<T>, Failure> {
    let Some(authority) = place.authority(given)? else {
        let message = format!(
            "{} is not there: name the log's erasure key, or an order made with it, with --authority{otherwise}",
            place.keys().join(files::ERASURE_KEY).display()
        );
        return Err(Failure::new(Exit::Refused, message));
    };
    if authority.text.starts_with("PRIVATE+KEY+") {
        let key = SigningKey::parse(&authority.text).map_err(|error| authority.error(error))?;
        return Ok(Authority::Key(Box::new(key)));
    }
    let order = parse(&authority.text).map_err(|error| {
        let message = format!("it is neither the log's erasure key nor an order made with it ({error})");
        authority.error(bulla::Error::invalid(message))
    })?;
    Ok(Authority::Order(order, authority.path))
}

/// Of a log that has no keys for each data subject.
pub(crate) fn without_erasure() -> Failure {
    Failure::new(Exit::Refused, "the log has `erasure = \"off\"`: nothing of it can be erased")
}

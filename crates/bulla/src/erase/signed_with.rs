//! With which of the keys that count an order was signed, and whether whoever reads knows that key.

use bulla_proof::note::VerifierKey;
use std::fmt::Display;

/// An erasure key that counts in a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CountingKey {
    pub(crate) key: VerifierKey,
    /// Whether it was given by whoever reads, or one that was given handed over to it; of every key where none was given.
    pub(crate) is_trusted: bool,
}

/// Opens the order of an event with one of the keys that count in its frame.
///
/// # Errors
/// What is wrong with the order, where none of them signed it, or only one that is not trusted.
pub(crate) fn opened_with_one_of<T, E: Display>(
    keys: &[CountingKey],
    open: impl Fn(&VerifierKey) -> Result<T, E>,
) -> Result<T, String> {
    let (mut why, mut untrusted) = ("the log has no key that could order it".to_owned(), None);
    for CountingKey { key, is_trusted } in keys {
        match open(key) {
            Ok(order) if *is_trusted => return Ok(order),
            Ok(_) => untrusted = Some(key),
            Err(error) => why = format!("its order does not hold: {error}"),
        }
    }
    Err(untrusted.map_or(why, |key| {
        format!(
            "its order is signed with {key}, which is none of the erasure keys that were given, and none that one of them \
             handed over to; if whoever answers for erasures says that it counted, give it with --erasure-key, too"
        )
    }))
}

//! With which of the keys that count an order was signed.

use bulla_proof::note::VerifierKey;
use std::fmt::Display;

/// Opens the order of an event with one of the keys that count in its frame.
///
/// # Errors
/// What is wrong with the order, where none of them signed it.
pub(crate) fn opened_with_one_of<T, E: Display>(
    keys: &[VerifierKey],
    open: impl Fn(&VerifierKey) -> Result<T, E>,
) -> Result<T, String> {
    let mut why = "the log has no key that could order it".to_owned();
    for key in keys {
        match open(key) {
            Ok(order) => return Ok(order),
            Err(error) => why = format!("its order does not hold: {error}"),
        }
    }
    Err(why)
}

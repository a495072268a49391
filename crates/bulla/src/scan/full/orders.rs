//! Whether erasures were ordered by whoever may.

use crate::format::config::LogConfig;
use bulla_proof::hash::{Hash, sha256};
use bulla_proof::note::SignedNote;
use bulla_proof::order::Order;
use std::collections::HashMap;

/// The orders that were met: by each, who was erased.
#[derive(Default)]
pub(super) struct Orders(HashMap<Hash, Vec<u64>>);

impl Orders {
    /// What is wrong with an erasure of these data subjects by this order, if anything is.
    ///
    /// An order says of how many, not of whom: it is good for so many, once. That it is told of twice, with the same
    /// numbers, is what a crash leaves.
    pub(super) fn objection(&mut self, config: &LogConfig, numbers: &[u64], note: &str) -> Option<String> {
        let Some(key) = &config.erasure_key else {
            return Some("the log has no key that could order an erasure".to_owned());
        };
        let order = match Order::open(note.as_bytes(), key) {
            Ok(order) => order,
            Err(error) => return Some(format!("its order does not hold: {error}")),
        };
        // Not the whole note: anybody can put another signature beneath it.
        let text = SignedNote::parse(note.as_bytes()).map_or(note, |note| note.text);
        if order.log != config.id {
            return Some(format!("its order is for another log, {}", order.log));
        }
        if numbers.len() > order.subjects.len() {
            let (erased, ordered) = (numbers.len(), order.subjects.len());
            return Some(format!("it erased {erased} data subjects, and {ordered} were ordered"));
        }
        let before = self.0.entry(sha256(&[text.as_bytes()])).or_insert_with(|| numbers.to_vec());
        (before != numbers).then(|| "its order was carried out before, for others".to_owned())
    }
}

//! Whether erasures were ordered by whoever may.

use crate::erase::key::erasure_key;
use crate::format::config::LogConfig;
use bulla_proof::hash::Hash;
use bulla_proof::order::{Order, order_digest};
use std::collections::HashMap;

/// The orders that were met: by each, who was erased, and by which of its names.
#[derive(Default)]
pub(crate) struct Orders(HashMap<Hash, (Vec<u64>, Vec<u32>)>);

impl Orders {
    /// What is wrong with an erasure of these data subjects, by which these names of the order were carried out, if anything is.
    ///
    /// An order says of how many, not of whom: it is good for so many, once. That it is told of twice, with the same
    /// numbers by the same names, is no second erasure.
    pub(crate) fn objection(
        &mut self,
        config: &LogConfig,
        frame: u64,
        (numbers, carried_out): (&[u64], &[u32]),
        note: &str,
    ) -> Option<String> {
        let Some(key) = erasure_key(config, frame) else {
            return Some("the log has no key that could order an erasure".to_owned());
        };
        let order = match Order::open(note.as_bytes(), key) {
            Ok(order) => order,
            Err(error) => return Some(format!("its order does not hold: {error}")),
        };
        if let Err(error) = order.check_erasure(config.id, numbers, carried_out) {
            return Some(error.to_string());
        }
        let told = (numbers.to_vec(), carried_out.to_vec());
        let before = self.0.entry(order_digest(note)).or_insert_with(|| told.clone());
        (*before != told).then(|| "its order was carried out before, for others".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::init::Init;
    use crate::erase::ErasureOrder;
    use crate::format::config;
    use bulla_crypto::environment::Environment;
    use bulla_crypto::signing::SigningKey;
    use bulla_proof::commitment::LogId;
    use bulla_store::FileSystem;

    /// What an event says of whom, and what is objected to that.
    #[test]
    fn an_erasure_that_is_not_what_was_ordered_is_objected_to() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("audit");
        let created = Init::default().create(&directory).unwrap();
        let key = std::fs::read_to_string(place.path().join("audit.keys/erasure.key")).unwrap();
        let key = SigningKey::parse(&key).unwrap();
        let (config, _) = config::load(&FileSystem::new(&directory)).unwrap();
        let order = |key: &SigningKey, log| {
            let given = ErasureOrder::give(key, log, &["a", "b"], None, &Environment::default());
            given.unwrap().note().to_owned()
        };
        let other = SigningKey::from_seed("example.com/erasure", &zeroize::Zeroizing::new([1; 32])).unwrap();
        let good = order(&key, created.id);
        let objection = |numbers: &[u64], carried_out: &[u32], note: &str| {
            Orders::default().objection(&config, 9, (numbers, carried_out), note).unwrap_or_default()
        };
        assert_eq!(objection(&[7, 8], &[0, 1], &good), "");
        assert_eq!(objection(&[7], &[1], &good), "");
        for (numbers, carried_out, note, said) in [
            (&[7][..], &[0][..], "an order", "does not hold"),
            (&[7], &[0], &order(&other, created.id), "does not hold"),
            (&[7], &[0], &order(&key, LogId([1; 16])), "for another log"),
            (&[7, 8], &[0], &good, "it erased 2 data subjects, and carried out 1"),
            (&[7], &[2], &good, "no ascending list of some of the 2"),
            (&[7], &[], &good, "no ascending list"),
            (&[], &[0], &good, "do not ascend"),
            (&[8, 7], &[0, 1], &good, "do not ascend"),
        ] {
            let told = objection(numbers, carried_out, note);
            assert!(told.contains(said), "{numbers:?} {carried_out:?}: {told}");
        }
        let unable = config::LogConfig { erasure_key: None, ..config.clone() };
        assert!(Orders::default().objection(&unable, 9, (&[7], &[0]), &good).is_some());
    }
}

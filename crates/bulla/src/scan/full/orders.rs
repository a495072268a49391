//! Whether erasures were ordered by whoever may.

use super::{Ordered, Scan, Told, held};
use crate::erase::signed_with::{CountingKey, opened_with_one_of};
use crate::erase::told_holds::ToldHolds;
use crate::format::event::Event;
use crate::scan::erasure_keys::Objection;
use crate::scan::finding::{Finding, FindingKind};
use bulla_proof::commitment::LogId;
use bulla_proof::hash::Hash;
use bulla_proof::order::{Order, order_digest};
use std::collections::HashMap;

impl Scan<'_> {
    /// Compares erasures, holds and releases with their orders, and changes of the erasure key with theirs: all frames were passed, so
    /// that it is known which key counted in which.
    pub(super) fn check_orders(&mut self) {
        let keys = std::mem::take(&mut self.keys).finish(self.config, &self.known_keys);
        let (mut orders, mut holds) = (Orders::default(), ToldHolds::default());
        for told in std::mem::take(&mut self.told) {
            match told {
                Told::Lost { before } => holds.lose(before),
                Told::Ordered(ordered) => {
                    let Ordered { event, seconds, place } = *ordered;
                    let frame = place.frame.unwrap_or_default();
                    let counting = keys.at(frame);
                    let unordered = holds.take(self.config.id, &counting, (frame, seconds), &event);
                    let unordered = unordered.map(|detail| (FindingKind::HoldUnordered, detail));
                    let mut objections = Vec::from_iter(unordered);
                    if let Event::Erased { numbers, carried_out, order, .. } = &event {
                        let erased = (&numbers[..], &carried_out[..]);
                        let unordered = orders.objection(self.config.id, &counting, erased, order);
                        let held = held(&holds.held_of(numbers));
                        objections.extend(unordered.map(|detail| (FindingKind::ErasureUnordered, detail)));
                        objections.extend(held.map(|detail| (FindingKind::ErasedWhileHeld, detail)));
                    }
                    for (kind, detail) in objections {
                        self.add(Finding { kind, detail, ..place.clone() });
                    }
                }
            }
        }
        for Objection { frame, detail, is_vouched_for } in keys.objections() {
            let finding = Finding::new(FindingKind::ErasureKeyUnordered, detail).frame(*frame);
            self.add(if *is_vouched_for { finding.notice() } else { finding });
        }
        for detail in keys.mismatches() {
            self.add(Finding::new(FindingKind::KeyMismatch, detail));
        }
    }
}

/// The orders that were met: by each, who was erased, and by which of its names.
#[derive(Default)]
pub(crate) struct Orders(HashMap<Hash, (Vec<u64>, Vec<u32>)>);

impl Orders {
    /// What is wrong with an erasure of these data subjects of `log`, where one of `keys` counts, by which these names of the order
    /// were carried out, if anything is.
    ///
    /// An order says of how many, not of whom: it is good for so many, once. That it is told of twice, with the same
    /// numbers by the same names, is no second erasure.
    pub(crate) fn objection(
        &mut self,
        log: LogId,
        keys: &[CountingKey],
        (numbers, carried_out): (&[u64], &[u32]),
        note: &str,
    ) -> Option<String> {
        let order = match opened_with_one_of(keys, |key| Order::open(note.as_bytes(), key)) {
            Ok(order) => order,
            Err(why) => return Some(why),
        };
        if let Err(error) = order.check_erasure(log, numbers, carried_out) {
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
            let keys = config.erasure_key.clone().map(|key| CountingKey { key, is_trusted: true });
            let erased = (numbers, carried_out);
            Orders::default().objection(created.id, keys.as_slice(), erased, note).unwrap_or_default()
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
        // Whichever of several keys signed it, if that one is trusted.
        let several = |keys: &[(&SigningKey, bool)]| {
            let counting = |(key, trusted): &(&SigningKey, bool)| CountingKey {
                key: key.verifier().clone(),
                is_trusted: *trusted,
            };
            let keys = keys.iter().map(counting).collect::<Vec<_>>();
            Orders::default().objection(created.id, &keys, (&[7], &[0]), &good)
        };
        assert_eq!(several(&[(&other, true), (&key, true)]), None);
        assert_eq!(several(&[(&key, true), (&other, false)]), None);
        assert!(several(&[]).unwrap().contains("no key"));
        assert!(several(&[(&other, true)]).unwrap().contains("does not hold"));
        for keys in [[(&key, false), (&other, true)], [(&other, true), (&key, false)]] {
            assert!(several(&keys).unwrap().contains("none of the erasure keys that were given"));
        }
    }
}

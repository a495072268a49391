//! Which erasure key counts in a frame of a log: with it the orders are signed that the events of that frame tell of.
//!
//! A `[log]` has one key, and an epoch has one `[log]`. What the keys were is told by the events that change them, and what the
//! last one is by `bulla.toml`: so it is known from the end on, and orders are judged once all frames were passed. Invariants:
//! - a change is done with the first epoch that is begun with it, and only that;
//! - what a change, or the file, tells of a key does not reach across an epoch that is damaged or missing.

use crate::format::config::LogConfig;
use crate::format::event::{Event, Rekeyed};
use bulla_proof::commitment::LogId;
use bulla_proof::hash::Hash;
use bulla_proof::key_order::KeyOrder;
use bulla_proof::note::VerifierKey;

/// What frames tell of erasure keys, as they are passed in their order.
#[derive(Debug)]
pub(crate) struct KeyHistory {
    spans: Vec<Span>,
    changes: Vec<Change>,
    /// The `[log]` of the last epoch, where that is known.
    current: Option<Hash>,
    /// The `[log]` that an event since then allows, and how that changes the key, if it does.
    announced: Option<(Hash, Option<(u64, Rekeyed)>)>,
}

/// Frames in which one key counts.
#[derive(Debug, Default)]
struct Span {
    first: u64,
    /// The key, as the change says with which they begin.
    starts: Option<String>,
    /// The key, as the change says that comes after them, or the file.
    ends: Option<String>,
}

/// A change that was done.
#[derive(Debug)]
struct Change {
    /// The frame of its event.
    frame: u64,
    told: Rekeyed,
    /// The span that begins with it.
    span: usize,
}

/// The erasure keys of a log.
#[derive(Debug)]
pub(crate) struct ErasureKeys {
    log: LogId,
    spans: Vec<Span>,
    changes: Vec<Change>,
    present: Option<String>,
    /// Whether the file's `[log]` is the one of the last epoch.
    is_settled: bool,
}

/// What is wrong with a change of the erasure key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Objection {
    /// The frame of its event.
    pub(crate) frame: u64,
    pub(crate) detail: String,
    /// Whether a key from elsewhere vouches for it.
    pub(crate) is_vouched_for: bool,
}

impl Default for KeyHistory {
    fn default() -> Self {
        KeyHistory { spans: vec![Span::default()], changes: Vec::new(), current: None, announced: None }
    }
}

impl KeyHistory {
    /// An event in a frame. One that is damaged may have announced a change, of which the next epoch shows.
    pub(crate) fn event(&mut self, frame: u64, event: &Event) {
        if let Some((before, after)) = event.configures()
            && Some(before) == self.current
        {
            let rekeyed = match event {
                Event::Rekeyed(rekeyed) => Some((frame, rekeyed.clone())),
                _ => None,
            };
            self.announced = Some((after, rekeyed));
        }
    }

    /// An epoch, with the digest of its `[log]`.
    pub(crate) fn epoch(&mut self, frame: u64, digest: Hash) {
        let announced = self.announced.take();
        let before = self.current.replace(digest);
        if before == Some(digest) {
            return;
        }
        match announced.filter(|(after, _)| *after == digest) {
            Some((_, Some((event, told)))) => {
                self.spans.last_mut().into_iter().for_each(|span| span.ends = Some(told.from.clone()));
                self.spans.push(Span { first: frame, starts: Some(told.to.clone()), ends: None });
                self.changes.push(Change { frame: event, told, span: self.spans.len() - 1 });
            }
            Some((_, None)) => {}
            None => self.begin(frame),
        }
    }

    /// A frame that is or may be an epoch's, whose `[log]` nothing tells.
    pub(crate) fn lose_epoch(&mut self, frame: u64) {
        (self.current, self.announced) = (None, None);
        self.begin(frame);
    }

    fn begin(&mut self, frame: u64) {
        match self.spans.last() {
            Some(span) if span.first == frame => {}
            _ => self.spans.push(Span { first: frame, ..Span::default() }),
        }
    }

    /// What the keys were, once all frames were passed.
    pub(crate) fn finish(mut self, config: &LogConfig) -> ErasureKeys {
        let present = config.erasure_key.as_ref().map(ToString::to_string);
        let is_settled = self.current == Some(config.digest);
        let told = match self.announced.take().filter(|(after, _)| *after == config.digest) {
            // The file was replaced, and no epoch was begun with it.
            Some((_, Some((_, told)))) => Some(told.from),
            Some((_, None)) => present.clone(),
            None => present.clone().filter(|_| is_settled),
        };
        self.spans.last_mut().into_iter().for_each(|span| span.ends = told.clone());
        ErasureKeys { log: config.id, spans: self.spans, changes: self.changes, present, is_settled }
    }
}

impl ErasureKeys {
    /// The key that counts in a frame; where an epoch is damaged or missing, and none reaches it, the nearest on either side.
    pub(crate) fn at(&self, frame: u64) -> Vec<VerifierKey> {
        let after = self.spans.partition_point(|span| span.first <= frame).max(1);
        let (before, after) = self.spans.split_at(after);
        let Some((span, before)) = before.split_last() else { return Vec::new() };
        let keys = match span.starts.as_ref().or(span.ends.as_ref()) {
            Some(key) => vec![key],
            None => {
                let before = before.iter().rev().find_map(|span| span.ends.as_ref().or(span.starts.as_ref()));
                let after = after.iter().find_map(|span| span.starts.as_ref().or(span.ends.as_ref()));
                before.into_iter().chain(after.or(self.present.as_ref())).collect()
            }
        };
        // What is no key signs nothing.
        keys.into_iter().filter_map(|key| key.parse().ok()).collect()
    }

    /// What is wrong with the changes. `known` is a key that is known from elsewhere.
    pub(crate) fn objections(&self, known: Option<&VerifierKey>) -> Vec<Objection> {
        let known = known.map(ToString::to_string);
        let vouched = self.changes.iter().rposition(|change| Some(&change.told.to) == known.as_ref());
        let mut objections = Vec::new();
        for (place, change) in self.changes.iter().enumerate() {
            let frame = change.frame;
            if let Some(detail) = self.lie(place, change) {
                objections.push(Objection { frame, detail, is_vouched_for: false });
            } else if let Err(why) = self.check_order(&change.told) {
                let is_vouched_for = vouched >= Some(place);
                let detail = format!("it changes the erasure key to {}, and {why}", change.told.to);
                objections.push(Objection { frame, detail, is_vouched_for });
            }
        }
        objections
    }

    /// Whether a key is one that counts, or did.
    pub(crate) fn knows(&self, key: &VerifierKey) -> bool {
        let key = key.to_string();
        self.present.as_ref() == Some(&key)
            || self.changes.iter().any(|change| change.told.from == key || change.told.to == key)
    }

    /// What a change says of the keys before and after it that is not so.
    fn lie(&self, place: usize, change: &Change) -> Option<String> {
        let Rekeyed { from, to, .. } = &change.told;
        let (before, after) = (&self.spans[change.span - 1], &self.spans[change.span]);
        if before.starts.as_ref().is_some_and(|counted| counted != from) {
            return Some(format!("it changes the erasure key from {from}, which did not count"));
        }
        if self.changes[..place].iter().any(|earlier| earlier.told.from == *to) {
            return Some(format!("it changes the erasure key to {to}, which was replaced before"));
        }
        let is_last = change.span + 1 == self.spans.len();
        if is_last && self.is_settled && after.starts != self.present {
            return Some(format!("it changes the erasure key to {to}, and [log] has another"));
        }
        None
    }

    fn check_order(&self, Rekeyed { from, to, order, .. }: &Rekeyed) -> Result<(), String> {
        if order.is_empty() {
            return Err("nobody with the key before it has ordered that".to_owned());
        }
        let order =
            KeyOrder::open(order.as_bytes()).map_err(|error| format!("its order does not hold: {error}"))?;
        if order.log != self.log {
            return Err(format!("its order is for another log, {}", order.log));
        }
        match order.from.to_string() == *from && order.to.to_string() == *to {
            true => Ok(()),
            false => Err("its order is for other keys".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::init::Init;
    use crate::format::config;
    use bulla_crypto::signing::SigningKey;
    use bulla_store::FileSystem;

    fn digest(number: u8) -> Hash {
        Hash([number; 32])
    }

    fn key(number: u8) -> VerifierKey {
        SigningKey::from_seed("example.com/erasure", &[number; 32]).unwrap().verifier().clone()
    }

    /// That the next epoch may have another digest and key; without keys, another digest.
    fn change(before: u8, after: u8, keys: Option<(u8, u8)>) -> Event {
        let digests = (digest(before), digest(after));
        match keys {
            Some((from, to)) => Event::rekeyed(digests, (&key(from), &key(to)), String::new()),
            None => Event::configured(digests.0, digests.1, vec!["recipients".to_owned()]),
        }
    }

    /// The configuration of a log of this digest and key.
    fn config(of: u8, erasure_key: u8) -> LogConfig {
        let place = tempfile::tempdir().unwrap();
        Init::default().create(place.path().join("audit")).unwrap();
        let (config, _) = config::load(&FileSystem::new(place.path().join("audit"))).unwrap();
        LogConfig { digest: digest(of), erasure_key: Some(key(erasure_key)), ..config }
    }

    #[test]
    fn each_frame_has_the_key_of_its_epoch_also_where_a_change_was_not_done() {
        let mut history = KeyHistory::default();
        history.epoch(0, digest(1));
        history.event(3, &change(1, 2, Some((1, 9))));
        history.epoch(4, digest(1));
        history.event(6, &change(1, 2, Some((1, 2))));
        history.epoch(8, digest(2));
        history.event(10, &change(2, 3, None));
        history.epoch(11, digest(3));
        // From a [log] that the log has not got: without effect.
        history.event(12, &change(2, 4, Some((2, 3))));
        history.event(13, &change(3, 5, Some((2, 3))));
        let keys = history.finish(&config(5, 3));
        for (frame, number) in [(0, 1), (5, 1), (7, 1), (8, 2), (11, 2), (20, 2)] {
            assert_eq!(keys.at(frame), [key(number)], "{frame}");
        }
        let objections = keys.objections(None);
        assert_eq!(
            objections.iter().map(|wrong| wrong.frame).collect::<Vec<_>>(),
            [6],
            "the one that was done"
        );
        assert!(keys.objections(Some(&key(2))).iter().all(|wrong| wrong.is_vouched_for));
        assert!(keys.knows(&key(1)) && keys.knows(&key(3)) && !keys.knows(&key(9)));
    }

    #[test]
    fn no_key_reaches_across_an_epoch_that_is_lost() {
        let mut history = KeyHistory::default();
        history.epoch(0, digest(1));
        history.event(1, &change(1, 2, Some((1, 2))));
        history.epoch(2, digest(2));
        history.lose_epoch(5);
        history.lose_epoch(7);
        history.epoch(9, digest(6));
        history.event(10, &change(6, 7, Some((4, 5))));
        history.epoch(12, digest(7));
        let keys = history.finish(&config(7, 5));
        for (frame, numbers) in
            [(1, &[1][..]), (4, &[2]), (5, &[2, 4]), (8, &[2, 4]), (9, &[4]), (11, &[4]), (12, &[5])]
        {
            assert_eq!(
                keys.at(frame),
                numbers.iter().map(|number| key(*number)).collect::<Vec<_>>(),
                "{frame}"
            );
        }
    }

    #[test]
    fn what_a_change_says_that_is_not_so_is_objected_to_whoever_vouches() {
        let wrong = |keys: [(u8, u8); 2], present: u8| {
            let mut history = KeyHistory::default();
            history.epoch(0, digest(1));
            history.event(1, &change(1, 2, Some(keys[0])));
            history.epoch(2, digest(2));
            history.event(3, &change(2, 3, Some(keys[1])));
            history.epoch(4, digest(3));
            let objections = history.finish(&config(3, present)).objections(Some(&key(keys[1].1)));
            objections
                .into_iter()
                .filter(|wrong| !wrong.is_vouched_for)
                .map(|wrong| wrong.detail)
                .collect::<Vec<_>>()
        };
        assert!(wrong([(1, 2), (2, 3)], 3).is_empty());
        for (keys, present, why) in [
            ([(1, 2), (4, 3)], 3, "which did not count"),
            ([(1, 2), (2, 1)], 1, "which was replaced before"),
            ([(1, 2), (2, 3)], 4, "and [log] has another"),
        ] {
            let details = wrong(keys, present);
            assert!(details.len() == 1 && details[0].contains(why), "{details:?}");
        }
    }
}

//! Which erasure key counts in a frame of a log: with it the orders are signed that the events of that frame tell of.
//!
//! A `[log]` has one key, and an epoch has one `[log]`. What the keys were is told by the events that change them, and what the
//! last one is by `bulla.toml`: so it is known from the end on, and orders are judged once all frames were passed. Invariants:
//! - a change is done with the first epoch that is begun with it, and only that;
//! - what a change, or the file, tells of a key does not reach across an epoch that is damaged or missing;
//! - where keys are known from elsewhere, trust goes from them forward alone: a key says who comes after it, and not who was
//!   before it;
//! - a key that was replaced does not come back, whatever name it comes under.

use crate::erase::signed_with::CountingKey;
use crate::format::config::LogConfig;
use crate::format::event::{Event, Rekeyed, is_same_key};
use bulla_proof::commitment::LogId;
use bulla_proof::hash::Hash;
use bulla_proof::note::VerifierKey;
use std::collections::BTreeSet;

/// What frames tell of erasure keys, as they are passed in their order.
#[derive(Clone, Debug)]
pub(crate) struct KeyHistory {
    spans: Vec<Span>,
    changes: Vec<Change>,
    /// The `[log]` of the last epoch, where that is known.
    current: Option<Hash>,
    /// The `[log]` that an event since then allows, and how that changes the key, if it does.
    announced: Option<(Hash, Option<(u64, Rekeyed)>)>,
}

/// Frames in which one key counts.
#[derive(Clone, Debug, Default)]
struct Span {
    first: u64,
    /// The key, as the change says with which they begin.
    starts: Option<String>,
    /// The key, as the change says that comes after them, or the file.
    ends: Option<String>,
}

/// A change of the key.
#[derive(Clone, Debug)]
struct Change {
    /// The frame of its event.
    frame: u64,
    told: Rekeyed,
    /// The span that begins with it, once it is done.
    span: usize,
}

/// The erasure keys of a log.
#[derive(Debug)]
pub(crate) struct ErasureKeys {
    log: LogId,
    spans: Vec<Span>,
    /// Those that were done.
    changes: Vec<Change>,
    /// One that an event allows, and with which no epoch was begun yet: the file may have the key before or after it.
    announced: Option<Change>,
    present: Option<String>,
    /// Whether the file's `[log]` has the key of the last epoch: it is that one's, or an event that changes no key allows it.
    has_last: bool,
    /// Whether the file's `[log]` is the one that the announced change allows.
    has_announced: bool,
    /// The keys that are known from elsewhere; where there are none, the log's own word is taken.
    given: BTreeSet<String>,
    /// Those, and each that a trusted one handed over to.
    trusted: BTreeSet<String>,
    objections: Vec<Objection>,
}

/// What is wrong with a change of the erasure key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Objection {
    /// The frame of its event.
    pub(crate) frame: u64,
    pub(crate) detail: String,
    /// Whether the key that it changes to is known from elsewhere.
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

    /// What the keys were, once all frames were passed, to somebody who knows those that are `given` from elsewhere.
    pub(crate) fn finish(mut self, config: &LogConfig, given: &[VerifierKey]) -> ErasureKeys {
        let present = config.erasure_key.as_ref().map(ToString::to_string);
        let is_settled = self.current == Some(config.digest);
        let is_replaced = self.announced.as_ref().is_some_and(|(after, _)| *after == config.digest);
        let announced = self.announced.take().and_then(|(_, rekeyed)| rekeyed);
        let is_rekeyed = announced.is_some();
        let told = match &announced {
            // The file was replaced, and no epoch was begun with it.
            Some((_, told)) if is_replaced => Some(told.from.clone()),
            _ => present.clone().filter(|_| is_replaced || is_settled),
        };
        self.spans.last_mut().into_iter().for_each(|span| span.ends = told.clone());
        let given = given.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
        let span = self.spans.len();
        let keys = ErasureKeys {
            log: config.id,
            spans: self.spans,
            changes: self.changes,
            announced: announced.map(|(frame, told)| Change { frame, told, span }),
            present,
            has_last: is_settled || (is_replaced && !is_rekeyed),
            has_announced: is_replaced && is_rekeyed,
            trusted: given.clone(),
            given,
            objections: Vec::new(),
        };
        keys.judged()
    }
}

impl ErasureKeys {
    /// The key that counts in a frame; where an epoch is damaged or missing, and none reaches it, the nearest on either side.
    pub(crate) fn at(&self, frame: u64) -> Vec<CountingKey> {
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
        let counting =
            |key: &String| Some(CountingKey { key: key.parse().ok()?, is_trusted: self.trusts(key) });
        keys.into_iter().filter_map(counting).collect()
    }

    /// What is wrong with the changes that were done, and with one that only the file has yet.
    pub(crate) fn objections(&self) -> &[Objection] {
        &self.objections
    }

    /// What is wrong with the log's key and those that are known from elsewhere, beside each other.
    pub(crate) fn mismatches(&self) -> Vec<String> {
        let unknown = self.given.iter().filter(|key| !self.has_or_had(key));
        let unknown = unknown
            .map(|key| format!("the erasure key that was given, {key}, is none that the log has or had"));
        let untrusted = self.present.iter().filter(|key| !self.trusts(key)).map(|key| {
            format!(
                "the log's erasure key, {key}, is none of those that were given, and none that one of them handed over to"
            )
        });
        unknown.chain(untrusted).collect()
    }

    /// Follows the changes from the keys that are known from elsewhere on.
    fn judged(mut self) -> Self {
        for (place, change) in self.changes.iter().enumerate() {
            let Rekeyed { from, to, .. } = &change.told;
            let is_given = self.given.contains(to);
            let (detail, is_vouched_for) = match (self.lie(place, change), self.check_order(&change.told)) {
                (Some(lie), _) => (lie, false),
                (None, Err(why)) if is_given => {
                    (format!("it changes the erasure key to {to}, and {why}"), true)
                }
                (None, Err(why)) => {
                    let detail = format!(
                        "it changes the erasure key to {to}, and {why}; if whoever answers for erasures says that this was \
                         meant, give that key with --erasure-key, and those that counted before it, too"
                    );
                    (detail, false)
                }
                (None, Ok(())) if self.trusts(from) => {
                    self.trusted.insert(to.clone());
                    continue;
                }
                (None, Ok(())) if is_given => continue,
                (None, Ok(())) => {
                    let detail = format!(
                        "it changes the erasure key to {to}, and is ordered with a key that is neither among those given nor \
                         handed over to by one of them, {from}; if whoever answers for erasures says that these counted, give \
                         them with --erasure-key, too"
                    );
                    (detail, false)
                }
            };
            self.objections.push(Objection { frame: change.frame, detail, is_vouched_for });
        }
        if let Some(change) = &self.announced {
            match self.lie(self.changes.len(), change) {
                // The file has it already, and the next epoch will.
                Some(detail) if self.has_announced => {
                    self.objections.push(Objection { frame: change.frame, detail, is_vouched_for: false });
                }
                Some(_) => {}
                None if self.check_order(&change.told).is_ok() && self.trusts(&change.told.from) => {
                    self.trusted.insert(change.told.to.clone());
                }
                None => {}
            }
        }
        self
    }

    fn trusts(&self, key: &String) -> bool {
        self.given.is_empty() || self.trusted.contains(key)
    }

    /// Whether a key is one that counts, did, or is about to.
    fn has_or_had(&self, key: &String) -> bool {
        let mut changes = self.changes.iter().chain(&self.announced);
        self.present.as_ref() == Some(key)
            || changes.any(|change| change.told.from == *key || change.told.to == *key)
    }

    /// What a change, before which there were so many, says of the keys before and after it that is not so.
    fn lie(&self, place: usize, change: &Change) -> Option<String> {
        let Rekeyed { from, to, .. } = &change.told;
        let (before, after) = self.spans.split_at(change.span);
        if before.last()?.starts.as_ref().is_some_and(|counted| counted != from) {
            return Some(format!("it changes the erasure key from {from}, which did not count"));
        }
        if self.changes[..place].iter().any(|earlier| is_same_key(&earlier.told.from, to)) {
            return Some(format!("it changes the erasure key to {to}, which was replaced before"));
        }
        let another = Some(format!("it changes the erasure key to {to}, and [log] has another"));
        match after {
            [last] if self.has_last && last.starts != self.present => another,
            [] if self.has_announced && self.present.as_ref() != Some(to) => another,
            _ => None,
        }
    }

    fn check_order(&self, told: &Rekeyed) -> Result<(), String> {
        match told.ordered(self.log)? {
            Some(_) => Ok(()),
            None => Err("nobody with the key before it has ordered that".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::init::Init;
    use crate::format::config;
    use bulla_crypto::signing::SigningKey;
    use bulla_proof::key_order::KeyOrder;
    use bulla_store::FileSystem;

    const LOG: LogId = LogId([7; 16]);

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

    /// The same, ordered with the key before.
    fn ordered(before: u8, after: u8, (from, to): (u8, u8)) -> Event {
        let signing = SigningKey::from_seed("example.com/erasure", &[from; 32]).unwrap();
        let order = KeyOrder { log: LOG, seconds: 0, from: key(from), to: key(to) };
        let note = order.sign(|text| signing.sign(text)).unwrap();
        Event::rekeyed((digest(before), digest(after)), (&key(from), &key(to)), note)
    }

    /// The numbers of the keys that count in a frame, and whether each is trusted.
    fn at(keys: &ErasureKeys, frame: u64) -> Vec<(u8, bool)> {
        let number = |counting: &CountingKey| (0..=u8::MAX).find(|number| key(*number) == counting.key);
        keys.at(frame).iter().map(|counting| (number(counting).unwrap(), counting.is_trusted)).collect()
    }

    /// The frames of the changes that are objected to.
    fn frames(keys: &ErasureKeys) -> Vec<u64> {
        keys.objections().iter().map(|wrong| wrong.frame).collect()
    }

    fn given(numbers: &[u8]) -> Vec<VerifierKey> {
        numbers.iter().map(|number| key(*number)).collect()
    }

    /// The configuration of a log of this digest and key.
    fn config(of: u8, erasure_key: u8) -> LogConfig {
        let place = tempfile::tempdir().unwrap();
        Init::default().create(place.path().join("audit")).unwrap();
        let (config, _) = config::load(&FileSystem::new(place.path().join("audit"))).unwrap();
        LogConfig { id: LOG, digest: digest(of), erasure_key: Some(key(erasure_key)), ..config }
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
        let keys = history.finish(&config(5, 3), &[]);
        for (frame, number) in [(0, 1), (5, 1), (7, 1), (8, 2), (11, 2), (20, 2)] {
            assert_eq!(at(&keys, frame), [(number, true)], "{frame}");
        }
        assert_eq!(frames(&keys), [6], "the one that was done");
        assert!(keys.mismatches().is_empty());
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
        let keys = history.finish(&config(7, 5), &[]);
        for (frame, numbers) in
            [(1, &[1][..]), (4, &[2]), (5, &[2, 4]), (8, &[2, 4]), (9, &[4]), (11, &[4]), (12, &[5])]
        {
            assert_eq!(
                at(&keys, frame),
                numbers.iter().map(|number| (*number, true)).collect::<Vec<_>>(),
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
            let given = keys.iter().map(|(_, to)| key(*to)).collect::<Vec<_>>();
            let keys = history.finish(&config(3, present), &given);
            let wrong = keys.objections().iter().filter(|wrong| !wrong.is_vouched_for);
            wrong.map(|wrong| wrong.detail.clone()).collect::<Vec<_>>()
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

    #[test]
    fn a_key_that_was_replaced_does_not_come_back_under_another_name() {
        let renamed = VerifierKey::new("example.com/officer", *key(1).public_key()).unwrap();
        let mut history = KeyHistory::default();
        history.epoch(0, digest(1));
        history.event(1, &ordered(1, 2, (1, 2)));
        history.epoch(2, digest(2));
        history.event(3, &Event::rekeyed((digest(2), digest(3)), (&key(2), &renamed), String::new()));
        history.epoch(4, digest(3));
        let config = LogConfig { erasure_key: Some(renamed.clone()), ..config(3, 1) };
        let keys = history.finish(&config, &[key(1), renamed]);
        let [wrong] = keys.objections() else { panic!("{keys:?}") };
        assert!(wrong.frame == 3 && wrong.detail.contains("which was replaced before"), "{wrong:?}");
        assert!(!wrong.is_vouched_for);
    }

    /// Keys 1, 2, 3 and 4, each from an epoch on; the change from 2 to 3 was ordered by nobody.
    #[test]
    fn trust_goes_forward_from_the_keys_that_are_given() {
        let keys = |numbers: &[u8]| {
            let mut history = KeyHistory::default();
            history.epoch(0, digest(1));
            history.event(1, &ordered(1, 2, (1, 2)));
            history.epoch(2, digest(2));
            history.event(3, &change(2, 3, Some((2, 3))));
            history.epoch(4, digest(3));
            history.event(5, &ordered(3, 4, (3, 4)));
            history.epoch(6, digest(4));
            history.finish(&config(4, 4), &given(numbers))
        };
        let all = |numbers: &[u8]| {
            let keys = keys(numbers);
            let trusted = [0, 2, 4, 6].map(|frame| at(&keys, frame)[0].1);
            let wrong = keys.objections().iter().map(|wrong| (wrong.frame, wrong.is_vouched_for));
            (trusted, wrong.collect::<Vec<_>>(), keys.mismatches().len())
        };
        let (yes, no) = (true, false);
        assert_eq!(all(&[]), ([yes; 4], vec![(3, no)], 0));
        assert_eq!(all(&[1]), ([yes, yes, no, no], vec![(3, no), (5, no)], 1));
        assert_eq!(all(&[2]), ([no, yes, no, no], vec![(3, no), (5, no)], 1));
        assert_eq!(all(&[3]), ([no, no, yes, yes], vec![(1, no), (3, yes)], 0));
        assert_eq!(all(&[4]), ([no, no, no, yes], vec![(1, no), (3, no)], 0));
        assert_eq!(all(&[1, 3]), ([yes; 4], vec![(3, yes)], 0));
        assert_eq!(all(&[1, 3, 9]), ([yes; 4], vec![(3, yes)], 1));
        assert_eq!(all(&[9]), ([no; 4], vec![(1, no), (3, no), (5, no)], 2));
        let keys = keys(&[2]);
        let [unordered, untrusted] = keys.objections() else { panic!("{keys:?}") };
        assert!(
            unordered.detail.contains("nobody with the key before")
                && unordered.detail.contains("--erasure-key")
        );
        assert!(untrusted.detail.contains("neither among those given nor handed over to"), "{untrusted:?}");
    }

    #[test]
    fn a_file_that_was_replaced_and_has_another_key_than_the_events_say_is_objected_to() {
        let wrong = |event: Event, file: u8| {
            let mut history = KeyHistory::default();
            history.epoch(0, digest(1));
            history.event(1, &ordered(1, 2, (1, 2)));
            history.epoch(2, digest(2));
            history.event(3, &event);
            let [taken, known] = [&[][..], &[1]].map(|numbers| {
                let keys = history.clone().finish(&config(3, file), &given(numbers));
                let about = |wrong: &Objection| (wrong.frame, wrong.detail.contains("[log] has another"));
                keys.objections().iter().map(about).collect::<Vec<_>>()
            });
            assert_eq!(taken, known);
            taken
        };
        // Under the guise of another change, the key of before or a third one.
        for file in [1, 9] {
            assert_eq!(wrong(change(2, 3, None), file), [(1, true)]);
        }
        // Another one than was ordered: that of before the last one, the last one itself, or a third one.
        for file in [1, 2, 9] {
            assert_eq!(wrong(ordered(2, 3, (2, 3)), file), [(3, true)]);
        }
        assert_eq!(wrong(change(2, 3, None), 2), []);
        assert_eq!(wrong(ordered(2, 3, (2, 3)), 3), []);
        assert_eq!(wrong(ordered(2, 3, (9, 3)), 3), [(3, false)], "from a key that did not count");
        // What only an event says is no change yet.
        assert_eq!(wrong(ordered(2, 4, (9, 3)), 2), []);
    }

    #[test]
    fn a_change_that_is_under_way_hands_over_where_it_is_in_order_and_either_key_is_known() {
        let keys = |event: Event, file: (u8, u8), numbers: &[u8]| {
            let mut history = KeyHistory::default();
            history.epoch(0, digest(1));
            history.event(1, &ordered(1, 2, (1, 2)));
            history.epoch(2, digest(2));
            history.event(3, &event);
            history.finish(&config(file.0, file.1), &given(numbers))
        };
        let (before, after) = ((2, 2), (3, 3));
        for file in [before, after] {
            for numbers in [&[][..], &[1], &[2], &[2, 3]] {
                let keys = keys(ordered(2, 3, (2, 3)), file, numbers);
                assert_eq!(keys.mismatches(), [""; 0], "{file:?} {numbers:?}");
                assert_eq!(at(&keys, 3), [(2, true)]);
            }
        }
        let mismatches = |event: Event, file, numbers: &[u8]| keys(event, file, numbers).mismatches();
        // The key that is to count does not say that the one before it did.
        assert_eq!(mismatches(ordered(2, 3, (2, 3)), before, &[3]).len(), 1);
        assert!(mismatches(ordered(2, 3, (2, 3)), after, &[3]).is_empty());
        // Nobody ordered it, or with a key that was replaced.
        assert_eq!(mismatches(change(2, 3, Some((2, 3))), after, &[2]).len(), 1);
        assert_eq!(mismatches(ordered(2, 3, (1, 3)), after, &[1]).len(), 1);
        assert_eq!(mismatches(ordered(2, 3, (2, 3)), after, &[9]).len(), 2);
    }
}

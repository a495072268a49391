//! The cache against a model of the clock that counts.

use super::*;
use bulla_crypto::subject::Secret;
use proptest::prelude::*;

fn subject(number: u64) -> Subject {
    Subject { number, key: SubjectKey::new(Secret([0; 32])) }
}

/// One clock, in the simplest way: names, whether they were asked for, and the hand.
#[derive(Default)]
struct Model {
    slots: Vec<(u64, bool)>,
    hand: usize,
}

impl Model {
    fn get(&mut self, number: u64) -> bool {
        let slot = self.slots.iter_mut().find(|slot| slot.0 == number);
        slot.map(|slot| slot.1 = true).is_some()
    }

    fn keep(&mut self, number: u64, capacity: usize) {
        if let Some(slot) = self.slots.iter_mut().find(|slot| slot.0 == number) {
            slot.1 = false;
        } else if self.slots.len() < capacity {
            self.slots.push((number, false));
        } else if capacity > 0 {
            loop {
                let at = self.hand % capacity;
                self.hand = at + 1;
                if !self.slots[at].1 {
                    self.slots[at] = (number, false);
                    return;
                }
                self.slots[at].1 = false;
            }
        }
    }

    fn forget(&mut self, numbers: &[u64]) {
        let before = self.slots.len();
        self.slots.retain(|slot| !numbers.contains(&slot.0));
        if self.slots.len() < before {
            self.hand = 0;
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Get(u64),
    Keep(u64),
    Forget(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..24_u64).prop_map(Step::Get),
        6 => (0..24_u64).prop_map(Step::Keep),
        1 => (0..24_u64).prop_map(Step::Forget),
    ];
    prop::collection::vec(step, 0..300)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Shards are clocks of their own, so the model has one for each.
    #[test]
    fn it_holds_what_the_model_holds(capacity in 0..12_usize, steps in steps()) {
        let cache = Cache::new(capacity, &SystemRandom).unwrap();
        let shards = capacity.clamp(1, 64);
        let mut models = (0..shards).map(|_| Model::default()).collect::<Vec<_>>();
        let of = |shard: usize| capacity / shards + usize::from(shard < capacity % shards);
        for step in steps {
            let (Step::Get(number) | Step::Keep(number) | Step::Forget(number)) = step;
            let tag = cache.tag(&number.to_string());
            let shard = cache.shard_of(tag);
            match step {
                Step::Get(_) => {
                    let found = cache.get(tag).map(|subject| subject.number);
                    prop_assert_eq!(found, models[shard].get(number).then_some(number));
                }
                Step::Keep(_) => {
                    cache.keep(tag, &subject(number));
                    models[shard].keep(number, of(shard));
                }
                Step::Forget(_) => {
                    cache.forget(&[number]);
                    models[shard].forget(&[number]);
                }
            }
            prop_assert_eq!(cache.len(), models.iter().map(|model| model.slots.len()).sum::<usize>());
            prop_assert!(cache.len() <= capacity);
        }
    }
}

#[test]
fn what_is_asked_for_outlives_what_is_not() {
    let cache = Cache::new(640, &SystemRandom).unwrap();
    let hot = (0..64).map(|number| (cache.tag(&number.to_string()), number)).collect::<Vec<_>>();
    hot.iter().for_each(|(tag, number)| cache.keep(*tag, &subject(*number)));
    let mut lost = 0;
    for number in 64..20_000_u64 {
        cache.keep(cache.tag(&number.to_string()), &subject(number));
        lost += hot.iter().filter(|(tag, _)| cache.get(*tag).is_none()).count();
        for (tag, number) in &hot {
            if cache.get(*tag).is_none() {
                cache.keep(*tag, &subject(*number));
            }
        }
    }
    // A shard of ten may by chance have many hot ones; nearly none is ever lost.
    assert!(lost < 64, "{lost}");
    assert_eq!(cache.len(), 640);
}

#[test]
fn keys_leave_the_memory_with_the_last_of_them() {
    let cache = Cache::new(4, &SystemRandom).unwrap();
    let tag = cache.tag("alice");
    let alice = subject(1);
    cache.keep(tag, &alice);
    assert_eq!(alice.key.holders(), 2);
    cache.forget(&[1]);
    assert_eq!(alice.key.holders(), 1);
    assert!(cache.get(tag).is_none());
}

/// Those who look up keep locks of several shards, which they take in the order of their names, while others wait for the same locks
/// to write.
#[test]
fn whoever_looks_up_many_and_whoever_keeps_many_do_not_wait_for_each_other_for_ever() {
    const ROUNDS: u64 = 2_000;
    const NAMES: u64 = 128;
    let cache = Cache::new(NAMES as usize, &SystemRandom).unwrap();
    let names = (0..NAMES).map(|number| number.to_string()).collect::<Vec<_>>();
    let (cache, names) = (&cache, &names);
    let turned = |round: u64| (0..NAMES).map(move |at| (at * 2 * round + at + round) % NAMES);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let asked = turned(round + thread).map(|number| &*names[number as usize]);
                    cache.look().each(&asked.collect::<Vec<_>>(), |_| true);
                }
            });
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    for number in turned(round + thread) {
                        cache.keep(cache.tag(&names[number as usize]), &subject(number));
                    }
                }
            });
        }
    });
}

#[test]
fn many_are_told_in_their_order_as_long_as_that_is_wanted() {
    let cache = Cache::new(10_000, &SystemRandom).unwrap();
    let names = (0..50_u64).map(|number| number.to_string()).collect::<Vec<_>>();
    for number in (0..50).filter(|number| number % 3 > 0) {
        cache.keep(cache.tag(&names[number as usize]), &subject(number));
    }
    let asked = names.iter().map(|name| &**name).collect::<Vec<_>>();
    for most in 1..=50 {
        let mut told = Vec::new();
        cache.look().each(&asked, |subject| {
            told.push(subject.map(|subject| subject.number));
            told.len() < most
        });
        let expected = (0..50).map(|number| Some(number).filter(|number| number % 3 > 0));
        assert_eq!(told, expected.take(most).collect::<Vec<_>>());
    }
}

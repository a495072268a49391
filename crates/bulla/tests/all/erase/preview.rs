//! What an erasure would do, told beforehand: against what it does, and against the clock of the writing host.

use super::world::World;
use bulla::environment::{Clock, Environment, Interrupt};
use bulla::keys::signing::SigningKey;
use bulla::store::FileSystem;
use bulla::{Entry, ErasureOrder, ErrorKind, FirstMet, Log, Options};
use bulla_vault::Access;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// Whoever loses entries with these, and how many; counted from the rows.
fn going(gone: &[&str], range: std::ops::Range<u64>, erased: &[&str]) -> (u64, u64, BTreeMap<String, u64>) {
    let (mut entries, mut shared, mut others) = (0, 0, BTreeMap::new());
    for number in range {
        let subjects = World::subjects(number);
        let among = |names: &[&str]| subjects.iter().any(|subject| names.contains(&&subject[..]));
        if !among(gone) || among(erased) {
            continue;
        }
        entries += 1;
        let left = subjects.iter().filter(|subject| !gone.contains(&&subject[..])).collect::<Vec<_>>();
        shared += u64::from(!left.is_empty());
        left.into_iter().for_each(|other| *others.entry(other.clone()).or_default() += 1);
    }
    (entries, shared, others)
}

#[test]
fn a_preview_counts_what_the_erasure_takes_over_many_blocks_and_epochs() {
    let world = World::new();
    (0..4).for_each(|part| world.append(part * 500..part * 500 + 500));
    let mut erased = Vec::new();
    for gone in [&["user_7"][..], &["user_10", "user_20"], &["user_0", "user_30", "user_41"]] {
        let order = world.order(gone);
        let before = world.entries().0.len() as u64;
        let preview = world.reader().preview_erasure(&order, &[]).unwrap();
        assert!(preview.refusal().is_none() && preview.numbers.len() == gone.len());
        let told = preview.going.unwrap();
        let (entries, shared, others) = going(gone, 0..2000, &erased);
        assert_eq!((told.entries, told.shared, told.all_others), (entries, shared, true));
        let mut counts = told.others.iter().map(|other| other.entries).collect::<Vec<_>>();
        let mut expected = others.into_values().collect::<Vec<_>>();
        counts.sort_unstable();
        expected.sort_unstable();
        assert_eq!(counts, expected);
        assert!(told.not_sure.is_empty(), "{told:?}");
        let log = Log::open(&world.directory, Options::default()).unwrap();
        // Of others nobody is erased.
        let refused = log.erase_only(&order, &[u64::MAX]).unwrap_err();
        assert!(
            refused.kind() == ErrorKind::Refused && refused.to_string().contains("nobody is erased"),
            "{refused}"
        );
        assert_eq!(log.erase_only(&order, &preview.numbers).unwrap().numbers, preview.numbers);
        log.close().unwrap();
        assert_eq!(before - world.entries().0.len() as u64, entries);
        erased.extend(gone);
        let again = world.reader().preview_erasure(&order, &[]).unwrap();
        assert_eq!(again.before.as_ref().map(|before| &before.numbers), Some(&preview.numbers));
        assert!(again.refusal().is_none() && again.known_again().is_empty() && again.going.is_none());
    }
}

/// Keys are destroyed, and the log does not tell of it before it is opened.
#[test]
fn what_goes_with_an_erasure_that_is_under_way_is_not_counted_for_another() {
    let world = World::new();
    world.append(0..100);
    let order = world.order(&["user_7"]);
    let number = world.vault(Access::Read).find("user_7").unwrap().unwrap().number;
    super::states::write_pending(&world, &order, number);
    let _ = world.begin_erasure(&world.vault(Access::Write), &[number]).commit().unwrap();
    let other = world.order(&["user_20"]);
    let preview = || world.reader().preview_erasure(&other, &[]).unwrap().going.unwrap();
    let told = preview();
    let (entries, shared, others) = going(&["user_20"], 0..100, &["user_7"]);
    assert_eq!((told.entries, told.shared, told.others.len()), (entries, shared, others.len()), "{told:?}");
    assert!(going(&["user_20"], 0..100, &[]).0 > entries);
    Log::open(&world.directory, Options::default()).unwrap().close().unwrap();
    let after = preview();
    assert_eq!((after.entries, after.shared, after.others), (entries, shared, told.others));
}

#[test]
fn who_is_known_again_is_told_when_an_order_is_given_again() {
    let world = World::new();
    world.append(0..60);
    let order = world.order(&["user_7", "nobody yet"]);
    let log = Log::open(&world.directory, Options::default()).unwrap();
    let erasure = log.erase(&order).unwrap();
    assert!(erasure.unknown == ["nobody yet"] && erasure.known_again.is_empty());
    let mut producer = log.producer().unwrap();
    for subject in ["user_7", "nobody yet"] {
        producer.append(&Entry::new("read", "place").subject(subject)).unwrap();
    }
    producer.flush().unwrap().checkpointed().unwrap();
    drop(producer);
    let again = log.erase(&order).unwrap();
    assert!(again.before && again.numbers == erasure.numbers && again.frame == erasure.frame);
    let known = again.known_again.iter().map(|known| &known.subject[..]).collect::<Vec<_>>();
    assert_eq!(known, ["user_7", "nobody yet"]);
    assert!(again.known_again.iter().all(|known| !erasure.numbers.contains(&known.number)));
    assert_eq!(world.reader().preview_erasure(&order, &[]).unwrap().known_again(), again.known_again);
    log.close().unwrap();
}

struct Set(AtomicI64);

impl Clock for Set {
    fn now(&self) -> i64 {
        self.0.load(Ordering::Relaxed) * 1_000_000_000
    }

    fn wait(&self, _: Duration, _: &Interrupt) {}
}

/// What the host's clock says of people who were met at other times: in an epoch, behind it, in later ones.
#[test]
fn whether_somebody_came_since_an_order_is_told_by_the_host_s_clock_alone() {
    let world = World::new();
    let clock = Arc::new(Set(AtomicI64::new(0)));
    let environment = Environment { clock: clock.clone(), ..Environment::default() };
    let at = |seconds: i64, subjects: &[&str]| {
        clock.0.store(seconds, Ordering::Relaxed);
        let stores = [&world.directory, &world.keys()].map(|path| Arc::new(FileSystem::new(path)));
        let [log, keys] = stores;
        let log = Log::open_stores(log, keys, Options::default(), environment.clone()).unwrap();
        let mut producer = log.producer().unwrap();
        for &subject in subjects {
            // The times of entries are their source's.
            producer.append(&Entry::new("read", "place").subject(subject).time(1)).unwrap();
        }
        drop(producer);
        log.close().unwrap();
    };
    let key = std::fs::read_to_string(world.keys().join("erasure.key")).unwrap();
    let key = SigningKey::parse(&key).unwrap();
    let names = ["ada", "bob", "eve"];
    let ordered = |seconds: i64| {
        clock.0.store(seconds, Ordering::Relaxed);
        ErasureOrder::give(&key, world.id, &names, None, &environment).unwrap()
    };
    let told = |seconds: i64| {
        let preview = world.reader().preview_erasure(&ordered(seconds), &[]).unwrap();
        let each = preview.subjects.into_iter().map(|subject| match subject.first_met {
            Some(FirstMet::Before) => "before",
            Some(FirstMet::Since) => "since",
            Some(FirstMet::CannotTell(_)) => "cannot tell",
            _ => "not counted",
        });
        each.collect::<Vec<_>>()
    };
    at(1000, &["ada"]);
    at(2000, &["ada", "bob"]);
    at(3000, &["bob", "eve"]);
    assert_eq!(told(500), ["since", "since", "since"]);
    assert_eq!(told(1500), ["cannot tell", "since", "since"]);
    // In the second in which an epoch began nothing is before it or after it.
    assert_eq!(told(2000), ["cannot tell", "cannot tell", "since"]);
    assert_eq!(told(2500), ["before", "cannot tell", "since"]);
    assert_eq!(told(3500), ["before", "before", "cannot tell"]);
    at(4000, &[]);
    assert_eq!(told(3500), ["before", "before", "cannot tell"]);
    assert_eq!(told(4500), ["before", "before", "before"]);
    // Without an identity nobody can say.
    let reader =
        bulla::Reader::open(&world.directory).unwrap().group_keys(Arc::new(world.vault(Access::Read)));
    let preview = reader.preview_erasure(&ordered(4500), &[]).unwrap();
    assert!(preview.numbers.len() == 3 && preview.subjects.iter().all(|subject| subject.first_met.is_none()));
    assert_eq!(preview.not_counted.as_deref(), Some("no identity is at hand"));
    // A clock that was put back says nothing of what is between.
    at(100, &["ada"]);
    assert_eq!(told(1500), ["cannot tell", "cannot tell", "cannot tell"]);
}

/// So many frames a certificate shows to be older than the erasure.
#[test]
fn a_certificate_covers_every_frame_before_its_own() {
    let world = World::new();
    for part in 0..5 {
        world.append(part * 60..part * 60 + 60);
        let log = Log::open(&world.directory, Options::default()).unwrap();
        let frame = log.erase(&world.order(&[&format!("user_{}", part + 1)])).unwrap().frame;
        log.close().unwrap();
        let proof = world.reader().prove_event(frame).unwrap();
        let mut next = 0;
        for (frames, _) in proof.verify(Some(&world.key)).unwrap().before() {
            assert!(frames.start == next && frames.end > next, "{frames:?} after {next}");
            next = frames.end;
        }
        assert_eq!(next, frame);
        assert!(world.reader().certified(proof.render().as_bytes()).is_ok());
    }
}

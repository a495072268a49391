//! What is drawn, counted.

use crate::{generator, rows};
use bulla_workload::{Generator, Workload, gdpr::BATCH, gdpr::Gdpr, gdpr::Vocabulary};
use std::collections::{HashMap, HashSet};

const ENTRIES: usize = 100_000;

/// What a field of the entries is, and how often.
fn count<K: Eq + std::hash::Hash>(
    workload: Workload,
    mut field: impl FnMut(&bulla_proof::Entry<'_>) -> K,
) -> HashMap<K, usize> {
    let mut generator = generator(workload);
    let mut counts = HashMap::new();
    for _ in 0..ENTRIES {
        *counts.entry(field(&generator.next_entry())).or_default() += 1;
    }
    counts
}

/// So many different values, and none far from its share: within six standard deviations.
#[track_caller]
fn assert_uniform<K>(counts: &HashMap<K, usize>, values: usize) {
    assert_eq!(counts.len(), values);
    let expected = ENTRIES as f64 / values as f64;
    for &count in counts.values() {
        assert!((count as f64 - expected).abs() < 6.0 * expected.sqrt(), "{count}, not about {expected}");
    }
}

fn text(bytes: Option<&[u8]>) -> String {
    String::from_utf8(bytes.unwrap().to_vec()).unwrap()
}

#[test]
fn a_request_is_uniform_in_every_field() {
    let web = Workload::Web;
    assert_uniform(&count(web, |entry| entry.operation.to_owned()), 16);
    assert_uniform(&count(web, |entry| entry.status), 16);
    assert_uniform(&count(web, |entry| entry.flags), 256);
    assert_uniform(&count(web, |entry| text(entry.location)), 1000);
    assert_uniform(&count(web, |entry| entry.client.unwrap().to_owned()), 5000);
    assert_uniform(&count(web, |entry| entry.size.unwrap() >> 8), 256);
    assert_uniform(&count(web, |entry| entry.duration.unwrap() / 256_000_000), 256);
    assert!(count(web, |entry| entry.duration.unwrap() % 1_000_000).len() == 1);
    let mut before = 1_767_225_600_000_000_000;
    let steps = count(web, |entry| entry.time.unwrap() - std::mem::replace(&mut before, entry.time.unwrap()));
    assert_uniform(&steps, 2);
    assert!(steps.contains_key(&0) && steps.contains_key(&1000));
}

#[test]
fn a_request_of_a_subject_is_the_same_request() {
    let (mut plain, mut subjects) = (generator(Workload::Web), generator(Workload::WebSubjects));
    for _ in 0..1000 {
        let (plain, mut entry) = (plain.next_entry(), subjects.next_entry());
        assert_eq!(entry.subjects.take().unwrap().as_slice(), [plain.client.unwrap()]);
        assert_eq!(entry, plain);
    }
}

#[test]
fn adversarial_locations_hardly_repeat() {
    let locations = count(Workload::WebAdversarial, |entry| text(entry.location));
    assert!(locations.len() > ENTRIES * 95 / 100, "{}", locations.len());
    let addresses = locations.keys().filter(|location| location.starts_with("http://")).count();
    assert!(addresses.abs_diff(locations.len() / 2) < locations.len() / 50);
    let clients = count(Workload::WebAdversarial, |entry| entry.client.unwrap().to_owned());
    assert_uniform(&clients, 5000);
    assert_eq!(clients.keys().filter(|client| client.contains(':')).count(), 500);
}

#[test]
fn an_operation_on_personal_data_is_as_published() {
    let gdpr = Workload::Gdpr;
    assert_uniform(&count(gdpr, |entry| entry.operation.to_owned()), 4);
    assert_uniform(&count(gdpr, |entry| entry.controller.unwrap().to_owned()), 10);
    assert_uniform(&count(gdpr, |entry| entry.processor.unwrap().to_owned()), 20);
    assert_uniform(&count(gdpr, |entry| entry.subjects.as_ref().unwrap()[0].to_owned()), 1000);
    assert_uniform(&count(gdpr, |entry| text(entry.location).split('/').nth(2).unwrap().to_owned()), 10);
    let mut generator = generator(gdpr);
    for _ in 0..1000 {
        let entry = generator.next_entry();
        let subject = entry.subjects.as_ref().unwrap()[0];
        assert_eq!(text(entry.location).split('/').nth(1), Some(subject));
        assert_eq!(entry.payload.unwrap().len(), 4096);
    }
}

#[test]
fn words_follow_zipfs_law() {
    for (workload, words) in [(Workload::Gdpr, 2), (Workload::Gdpr50, 50)] {
        let mut generator = generator(workload);
        let mut counts = HashMap::<String, f64>::new();
        for _ in 0..500 {
            let entry = generator.next_entry();
            // The last word may be cut.
            let (payload, _) = std::str::from_utf8(entry.payload.unwrap()).unwrap().rsplit_once(' ').unwrap();
            payload.split(' ').for_each(|word| *counts.entry(word.to_owned()).or_default() += 1.0);
        }
        let total = counts.values().sum::<f64>();
        let weights = (1..=words).map(|rank| 1.0 / f64::from(rank));
        let mut shares = counts.into_values().map(|count| count / total).collect::<Vec<_>>();
        shares.sort_by(|one, other| other.total_cmp(one));
        assert_eq!(shares.len(), weights.clone().count());
        for (share, weight) in shares.into_iter().zip(weights.clone()) {
            let expected = weight / weights.clone().sum::<f64>();
            let deviation = (expected * (1.0 - expected) / total).sqrt();
            assert!((share - expected).abs() < 6.0 * deviation, "{share}, not about {expected}");
        }
    }
}

#[test]
fn streams_take_turns_by_batches() {
    let mut gdpr = Gdpr::new(Vocabulary::Two, 1, 15).streams(1024);
    for expected in ["stream_960", "stream_961"] {
        for _ in 0..BATCH {
            assert_eq!(gdpr.next_entry().stream, Some(expected));
        }
    }
    let mut one = Gdpr::new(Vocabulary::Two, 1, 15).streams(1);
    assert!((0..=BATCH).all(|_| one.next_entry().stream == Some("stream_0")));
}

#[test]
fn events_have_their_shapes_and_lengths() {
    assert_uniform(&count(Workload::Json, |entry| entry.operation.to_owned()), 20);
    let mut shortest = HashMap::<String, usize>::new();
    let lengths = count(Workload::Json, |entry| {
        let payload = text(entry.payload);
        assert!((200..=600).contains(&payload.len()), "{} bytes: {payload}", payload.len());
        assert!(!payload.contains(['<', '>']), "{payload}");
        let length = shortest.entry(entry.operation.to_owned()).or_insert(usize::MAX);
        *length = payload.len().min(*length);
        payload.len()
    });
    println!("{} to {} bytes, {shortest:?}", lengths.keys().min().unwrap(), lengths.keys().max().unwrap());
}

#[test]
fn a_line_of_the_integrity_benchmark_has_28_bytes() {
    let mut generator = generator(Workload::Integrity);
    for _ in 0..1000 {
        let entry = generator.next_entry();
        assert_eq!(entry.payload.unwrap().len(), 28, "{}", text(entry.payload));
    }
}

#[test]
fn a_change_names_its_person_and_says_what_was_changed() {
    let tenants = Workload::Tenants;
    assert_uniform(&count(tenants, |entry| entry.operation.to_owned()), 4);
    assert_uniform(&count(tenants, |entry| entry.processor.unwrap().to_owned()), 3);
    assert_uniform(&count(tenants, |entry| entry.purpose.unwrap().to_owned()), 3);
    assert_uniform(&count(tenants, |entry| entry.subjects.as_ref().unwrap()[0].to_owned()), 8192);
    assert_uniform(&count(tenants, |entry| text(entry.location).split('/').nth(1).unwrap().to_owned()), 5);
    let word = |place| {
        move |entry: &bulla_proof::Entry<'_>| text(entry.payload).split(' ').nth(place).unwrap().to_owned()
    };
    assert_uniform(&count(tenants, word(3)), 1000);
    assert_uniform(&count(tenants, word(5)), 1000);
    assert_uniform(&count(tenants, word(8)), 3);
    let mut generator = generator(tenants);
    for _ in 0..1000 {
        let entry = generator.next_entry();
        assert_eq!(text(entry.location).split('/').next(), Some(entry.subjects.as_ref().unwrap()[0]));
        let (payload, words) = (text(entry.payload), [3, 5, 8].map(|place| word(place)(&entry)));
        let [from, to, form] = words.each_ref().map(|word| word.trim_end_matches(','));
        assert_eq!(payload, format!("value changed from {from} to {to} by form {form}, checked"));
        assert_eq!(entry.time, None);
    }
}

#[test]
fn entropies_are_those_of_the_distributions() {
    for (workload, expected) in [
        // 4 + 4 + log2 1000 + log2 5000 + 41 bits.
        (Workload::Web, 8.906),
        (Workload::WebSubjects, 8.906),
        (Workload::WebAdversarial, 10.199),
        // log2 10^4 + 3 + log2 10^6 bits.
        (Workload::Integrity, 4.528),
        // 15 + log2 (5 * 3 * 3 * 3) + 2 log2 1000 bits.
        (Workload::Tenants, 5.252),
        // 2 + log2 (1000 * 10 * 10 * 20 * 64) bits, and 4096 / (13/3) words of 0.9183 bits.
        (Workload::Gdpr, (2.0 + 26.932 + 4096.0 * 3.0 / 13.0 * 0.918_296) / 8.0),
    ] {
        let found = workload.entropy_per_entry();
        assert!((found - expected).abs() < 0.001, "{workload}: {found}, not {expected}");
    }
    for workload in Workload::ALL {
        let mean = rows(&mut generator(workload), 1000).len() as f64 / 1000.0;
        assert!(workload.entropy_per_entry() < mean, "{workload}");
    }
}

#[test]
fn entries_tell_of_what_they_drew_of_the_pools() {
    for (workload, locations) in [(Workload::Web, 1000), (Workload::WebAdversarial, 1_300_000)] {
        let share = |entries| workload.pool_bytes_in(entries) / workload.pool_bytes();
        let mut generator = generator(workload);
        let drawn = (0..locations).map(|_| text(generator.next_entry().location)).collect::<HashSet<_>>();
        assert!((share(locations) - drawn.len() as f64 / locations as f64).abs() < 0.03, "{workload}");
        assert!(share(0) == 0.0 && share(100 * locations) > 0.999_999, "{workload}");
    }
    assert_eq!(Workload::Gdpr.pool_bytes_in(1000), 0.0);
}

#[test]
fn generators_are_ready_to_be_moved_between_threads() {
    fn assert_send<T: Send>() {}
    assert_send::<Generator>();
}

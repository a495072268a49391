//! A file of personal records gives back what was put into it, or says that it is damaged, and nothing else.

use super::*;
use bulla_crypto::environment::{AesGcm, SystemRandom};
use bulla_testkit::Memory;
use proptest::prelude::*;
use serde_json::Value;
use std::collections::BTreeMap;

const LOG: LogId = LogId([1; 16]);
const DIGEST_KEY: [u8; 32] = [9; 32];

fn key(number: u64) -> SubjectKey {
    SubjectKey::from([u8::try_from(number).unwrap() + 100; 32])
}

fn subject(number: u64) -> Subject {
    Subject { number, key: key(number) }
}

/// What is kept: by id, whose and what.
type Kept = BTreeMap<u64, (u64, String)>;

/// Puts, or takes away, the record with an id.
#[derive(Clone, Debug)]
enum Step {
    Put(u64, u64, String),
    Remove(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0_u64..8, 0_u64..3, "[a-z]{0,9}").prop_map(|(id, number, content)| Step::Put(id, number, content)),
        1 => (0_u64..8).prop_map(Step::Remove),
    ]
}

fn fill(steps: &[Step], changes: &mut Changes<'_>) -> Result<()> {
    for step in steps {
        match step {
            // A record says of whom it is, so that one that is taken for another's is seen.
            Step::Put(id, number, content) => {
                changes.put(*id, &subject(*number), record(*number, content).as_bytes())?
            }
            Step::Remove(id) => changes.remove(*id),
        }
    }
    Ok(())
}

fn record(number: u64, content: &str) -> String {
    format!("{number} {content}")
}

fn carry_out(steps: &[Step], kept: &mut Kept) {
    for step in steps {
        match step {
            Step::Put(id, number, content) => drop(kept.insert(*id, (*number, content.clone()))),
            Step::Remove(id) => drop(kept.remove(id)),
        }
    }
}

fn create(store: &Memory, steps: &[Step]) -> PersonalFile {
    let environment: (&dyn Random, &dyn Cipher) = (&SystemRandom, &AesGcm);
    PersonalFile::create(store, (&DIGEST_KEY, LOG), environment, |changes| fill(steps, changes)).unwrap()
}

fn bytes(store: &Memory) -> Vec<u8> {
    bulla_store::read_small(store, files::LEARNED, 1 << 30).unwrap()
}

/// What is read with the keys of these: the records, how many are without a key, and whether the end is torn.
fn read_with(bytes: &[u8], people: &[u64]) -> Result<(Vec<String>, u64, bool)> {
    let store = Memory::new();
    bulla_store::replace(&store, files::LEARNED, bytes).unwrap();
    let (read, keys) = read(&store, &DIGEST_KEY, LOG)?.unwrap();
    let torn = read.torn;
    let subjects = people.iter().map(|number| (*number, key(*number))).collect();
    let mut records = Vec::new();
    let mut visit = |record: &[u8]| records.push(String::from_utf8(record.to_vec()).unwrap());
    let gone = read.open(&keys, (&store, &AesGcm), &subjects, &mut visit)?;
    Ok((records, gone, torn))
}

fn told(kept: &Kept) -> Vec<String> {
    let mut records = kept.iter().map(|(id, (number, content))| (*number, *id, content)).collect::<Vec<_>>();
    records.sort();
    records.into_iter().map(|(number, _, content)| record(number, content)).collect()
}

const EVERYBODY: [u64; 3] = [0, 1, 2];

#[test]
fn nothing_of_a_record_is_read_without_the_key_of_its_data_subject_nor_in_clear() {
    let store = Memory::new();
    let put = |id, number, content: &str| Step::Put(id, number, content.to_owned());
    let mut file = create(&store, &[put(1, 0, "adas key"), put(2, 1, "bobs key")]);
    file.append(&AesGcm, |changes| fill(&[put(3, 0, "another key")], changes)).unwrap();
    assert_eq!(file.length(), bytes(&store).len() as u64);
    let (records, without, torn) = read_with(&bytes(&store), &[1, 2]).unwrap();
    assert_eq!((records, without, torn), (vec!["1 bobs key".to_owned()], 2, false));
    assert!(!String::from_utf8_lossy(&bytes(&store)).contains("key"));
    // The key of somebody else opens nothing, whatever number it is said to have.
    let read = read(&store, &DIGEST_KEY, LOG).unwrap().unwrap();
    let wrong = [(0, key(1)), (1, key(1))].into_iter().collect();
    let error = read.0.open(&read.1, (&store, &AesGcm), &wrong, &mut |_| ()).unwrap_err();
    assert!(
        error.to_string().contains("record 1 does not decrypt with the key of data subject 0"),
        "{error}"
    );
}

#[test]
fn a_file_is_byte_for_byte_the_other_implementation_s() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/personal/personal.json");
    let vector: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let unhex = |value: &Value| -> Vec<u8> {
        let text = value.as_str().unwrap();
        (0..text.len() / 2).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap()).collect()
    };
    let thirty_two = |value: &Value| <[u8; 32]>::try_from(unhex(value)).unwrap();
    let log = LogId(unhex(&vector["log_id"]).try_into().unwrap());
    let digest_key = thirty_two(&vector["digest_key"]);
    let subjects = vector["subjects"].as_array().unwrap().iter();
    let subjects =
        subjects.map(|it| (it["number"].as_u64().unwrap(), SubjectKey::from(thirty_two(&it["key"]))));
    let subjects = subjects.collect::<HashMap<_, _>>();
    let fill = |steps: &Value, changes: &mut Changes<'_>| {
        for step in steps.as_array().unwrap() {
            let id = step["id"].as_u64().unwrap();
            match step["subject"].as_u64() {
                Some(number) => {
                    let subject = Subject { number, key: subjects[&number].clone() };
                    changes.put(id, &subject, step["text"].as_str().unwrap().as_bytes())?;
                }
                None => changes.remove(id),
            }
        }
        Ok(())
    };
    struct Same([u8; 32]);
    impl Random for Same {
        fn fill(&self, bytes: &mut [u8]) -> Result<()> {
            bytes.copy_from_slice(&self.0);
            Ok(())
        }
    }
    let store = Memory::new();
    let random = Same(thirty_two(&vector["random"]));
    let made = |changes: &mut Changes<'_>| fill(&vector["made"], changes);
    let mut file = PersonalFile::create(&store, (&digest_key, log), (&random, &AesGcm), made).unwrap();
    for steps in vector["appended"].as_array().unwrap() {
        file.append(&AesGcm, |changes| fill(steps, changes)).unwrap();
    }
    assert!(bytes(&store) == unhex(&vector["file"]));
    let (read, keys) = read(&store, &digest_key, log).unwrap().unwrap();
    let mut records = Vec::new();
    let mut visit = |record: &[u8]| records.push(String::from_utf8(record.to_vec()).unwrap());
    read.open(&keys, (&store, &AesGcm), &subjects, &mut visit).unwrap();
    let expected = vector["records"].as_array().unwrap().iter().map(|it| it.as_str().unwrap());
    assert_eq!(records, expected.collect::<Vec<_>>());
}

#[test]
fn one_of_another_log_or_under_another_key_is_refused() {
    let store = Memory::new();
    create(&store, &[Step::Put(1, 0, "x".to_owned())]);
    for (key, log) in [(DIGEST_KEY, LogId([2; 16])), ([8; 32], LOG)] {
        let error = read(&store, &key, log).map(drop).unwrap_err();
        assert!(error.to_string().contains("learned is damaged"), "{error}");
    }
    assert!(read(&Memory::new(), &DIGEST_KEY, LOG).unwrap().is_none());
}

#[test]
fn equal_records_differ_in_every_file_and_every_place() {
    let (first, second) = (Memory::new(), Memory::new());
    let twice = [Step::Put(1, 0, "the same".to_owned()), Step::Put(2, 0, "the same".to_owned())];
    create(&first, &twice);
    create(&second, &twice);
    let sealed = |store: &Memory| {
        let all = bytes(store);
        let records = &all[1540..all.len() - 32];
        let (one, other) = records.split_at(records.len() / 2);
        [one[21..].to_vec(), other[21..].to_vec()]
    };
    let [a, b] = sealed(&first);
    let [c, d] = sealed(&second);
    assert_eq!(a.len(), "0 the same".len() + TAG);
    assert!(a != b && a != c && b != d && a[..8] != b[..8]);
}

#[test]
fn more_than_a_frame_takes_is_split_and_a_record_has_a_bound() {
    let store = Memory::new();
    let long = "x".repeat(MAX_RECORD - 2);
    let steps = (0..5).map(|id| Step::Put(id, 0, long.clone())).collect::<Vec<_>>();
    let mut file = create(&store, &steps);
    let (records, ..) = read_with(&bytes(&store), &EVERYBODY).unwrap();
    assert!(records.len() == 5 && records.iter().all(|record| record.len() == MAX_RECORD));
    let too_long = file.append(&AesGcm, |changes| changes.put(9, &subject(0), &vec![0; MAX_RECORD + 1]));
    assert_eq!(too_long.unwrap_err().kind(), bulla_store::ErrorKind::Invalid);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Cut off anywhere or changed anywhere, a file says what it said, or is refused by its name. Where the newest head is the damage,
    /// what it covers is whole all the same.
    #[test]
    fn damage_is_named_or_of_no_consequence(
        first in proptest::collection::vec(step(), 0..8),
        more in proptest::collection::vec(proptest::collection::vec(step(), 1..4), 0..4),
        change in 1_u8..,
    ) {
        let store = Memory::new();
        let mut file = create(&store, &first);
        let mut kept = Kept::new();
        carry_out(&first, &mut kept);
        for steps in &more {
            file.append(&AesGcm, |changes| fill(steps, changes)).unwrap();
            carry_out(steps, &mut kept);
        }
        let whole = bytes(&store);
        prop_assert_eq!(read_with(&whole, &EVERYBODY).unwrap(), (told(&kept), 0, false));
        let mut changed = whole.clone();
        let mut refused = 0;
        for at in 0..whole.len() {
            changed[at] ^= change;
            for (what, bytes) in [("changed", &changed[..]), ("cut off", &whole[..at])] {
                match read_with(bytes, &EVERYBODY) {
                    Ok((records, _, torn)) => prop_assert!(records == told(&kept) && !torn, "{} at {}", what, at),
                    Err(error) => {
                        prop_assert!(error.to_string().contains("learned is damaged: "), "{}", error);
                        refused += 1;
                    }
                }
            }
            changed[at] ^= change;
        }
        // All but what was changed between the header and the frames: nobody reads what is between the heads, and one head is enough.
        prop_assert!(refused >= whole.len() + HEADER + (whole.len() - 1536), "{} of {}", refused, whole.len());
    }

    /// Of changes that no head covers yet, as a crash leaves them, those before the damage count, in their order, and never others.
    #[test]
    fn of_a_torn_end_what_is_whole_counts(
        first in proptest::collection::vec(step(), 0..6),
        more in proptest::collection::vec(proptest::collection::vec(step(), 1..3), 1..3),
        change in 1_u8..,
    ) {
        let store = Memory::new();
        let mut file = create(&store, &first);
        let mut kept = Kept::new();
        carry_out(&first, &mut kept);
        let covered = bytes(&store);
        let (mut states, mut ends) = (vec![told(&kept)], vec![covered.len()]);
        for steps in &more {
            file.append(&AesGcm, |changes| fill(steps, changes)).unwrap();
            carry_out(steps, &mut kept);
            states.push(told(&kept));
            ends.push(usize::try_from(file.length()).unwrap());
        }
        // The heads as they were: the crash came before a later one was on the medium.
        let mut torn = bytes(&store);
        torn[..1536].copy_from_slice(&covered[..1536]);
        prop_assert_eq!(read_with(&torn, &EVERYBODY).unwrap(), (states.last().unwrap().clone(), 0, false));
        for at in covered.len()..torn.len() {
            let whole = ends.iter().rposition(|end| *end <= at).unwrap();
            let cut_off = read_with(&torn[..at], &EVERYBODY).unwrap();
            prop_assert_eq!(cut_off, (states[whole].clone(), 0, ends[whole] < at));
            let mut changed = torn.clone();
            changed[at] ^= change;
            prop_assert_eq!(read_with(&changed, &EVERYBODY).unwrap(), (states[whole].clone(), 0, true));
        }
    }
}

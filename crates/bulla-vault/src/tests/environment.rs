//! The environment against maps in memory, while its own map grows under readers.

use super::super::lmdb::Lmdb;
use super::super::tables::TableName;
use super::super::transaction_error::TransactionError;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

type Model = BTreeMap<[u8; 8], Vec<u8>>;

/// SplitMix64.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

const PARTS: [TableName; 4] = [TableName::Meta, TableName::Rows, TableName::Index, TableName::Buckets];

fn content(lmdb: &Lmdb) -> Vec<Model> {
    let read = lmdb.read(|tables, txn| {
        let mut content = Vec::new();
        for part in PARTS {
            let items = tables.named(part).iter(txn)?.collect::<Result<Vec<_>, _>>()?;
            content.push(
                items.into_iter().map(|(key, value)| (key.try_into().unwrap(), value.to_vec())).collect(),
            );
        }
        Ok(content)
    });
    read.map_err(|stop: TransactionError| stop.into_error("model")).unwrap()
}

#[test]
fn it_holds_what_a_map_holds_however_often_it_grows() {
    let place = tempfile::tempdir().unwrap();
    let mut lmdb = Lmdb::create(place.path(), 1 << 17).unwrap();
    let other = tempfile::tempdir().unwrap();
    let replica = Lmdb::create(other.path(), 1 << 17).unwrap();
    let first_size = lmdb.map_size();
    let mut models = vec![Model::new(); 4];
    let mut state = 1;
    for round in 0..60_u64 {
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            // What was there before the round is seen by all who read meanwhile, or what is there after it.
            let before = models.clone();
            let readers = (0..2).map(|_| {
                scope.spawn(|| {
                    let mut seen = Vec::new();
                    while !done.load(Ordering::Relaxed) {
                        seen.push(content(&lmdb));
                        seen.dedup();
                    }
                    seen
                })
            });
            let readers = readers.collect::<Vec<_>>();
            let changes = (0..40)
                .map(|_| {
                    let key = (next(&mut state) % 500).to_be_bytes();
                    let value = vec![key[7]; (next(&mut state) % 1500) as usize];
                    ((next(&mut state) % 4) as usize, key, (next(&mut state) % 4 != 3).then_some(value))
                })
                .collect::<Vec<_>>();
            let written = lmdb.write(|_, txn| {
                txn.keep_journal();
                for (table, key, value) in &changes {
                    match value {
                        Some(value) => txn.put(PARTS[*table], key, value)?,
                        None => txn.delete(PARTS[*table], key)?,
                    }
                }
                Ok(txn.take_journal().unwrap())
            });
            let journal = written.map_err(|error| error.into_error("model")).unwrap();
            let written = replica.write(|_, txn| journal.write(txn));
            written.map_err(|error| error.into_error("model")).unwrap();
            for (table, key, value) in changes {
                match value {
                    Some(value) => drop(models[table].insert(key, value)),
                    None => drop(models[table].remove(&key)),
                }
            }
            done.store(true, Ordering::Relaxed);
            for reader in readers {
                let seen = reader.join().unwrap();
                assert!(seen.iter().all(|seen| *seen == before || *seen == models), "round {round}");
            }
        });
        assert_eq!(content(&lmdb), models, "round {round}");
        assert_eq!(content(&replica), models, "what was written again in round {round}");
        if round % 20 == 19 {
            drop(lmdb);
            lmdb = Lmdb::open(place.path(), 1 << 17).unwrap();
            assert_eq!(content(&lmdb), models, "opened again in round {round}");
        }
    }
    assert!(lmdb.map_size() >= 4 * first_size, "it grew: {} bytes", lmdb.map_size());
}

const GROWN: &str = "BULLA_VAULT_GROWN";

/// Not a test of its own: another process, which makes the database larger than any map of the tests.
#[test]
fn grows() {
    let Ok(directory) = std::env::var(GROWN) else { return };
    let lmdb = Lmdb::open(Path::new(&directory), 1 << 20).unwrap();
    let written = lmdb.write(|_, txn| {
        (0..1000_u64).try_for_each(|key| txn.put(TableName::Rows, &key.to_be_bytes(), &[7; 1500]))
    });
    written.map_err(|stop| stop.into_error("model")).unwrap();
}

fn grow(directory: &Path) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let test = "tests::environment::grows";
    let ran = command.args(["--exact", test]).env(GROWN, directory).output().unwrap();
    let text = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
fn opening_follows_a_map_that_another_process_grows_meanwhile() {
    let place = tempfile::tempdir().unwrap();
    drop(Lmdb::create(place.path(), 1 << 16).unwrap());
    let lmdb = Lmdb::open_while(place.path(), 1 << 16, || grow(place.path())).unwrap();
    assert_eq!(content(&lmdb)[1].len(), 1000);
}

#[test]
fn copying_follows_a_map_that_another_process_has_grown() {
    let place = tempfile::tempdir().unwrap();
    let lmdb = Lmdb::create(place.path(), 1 << 16).unwrap();
    grow(place.path());
    let copy = tempfile::tempdir().unwrap();
    lmdb.copy_to(&copy.path().join("data.mdb")).unwrap();
    assert_eq!(content(&Lmdb::open(copy.path(), 1 << 16).unwrap())[1].len(), 1000);
}

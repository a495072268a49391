//! The database against maps in memory, beside readers, and what a crash may leave of its files.

use super::super::database::{Database, FILE, WAL};
use super::super::table::{TABLES, Table};
use super::super::transaction_error::TransactionError;
use super::{copy, in_turn};
use bulla_store::{Error, ErrorKind};
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

type Model = BTreeMap<u64, Vec<u8>>;

/// SplitMix64.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

fn explained<T>(result: Result<T, TransactionError>) -> T {
    result.map_err(|error| error.into_error("model")).unwrap()
}

fn create(directory: &Path) -> Database {
    explained(Database::create(directory))
}

fn try_content(database: &Database) -> Result<Vec<Model>, TransactionError> {
    database.read(|txn| {
        let mut content = Vec::new();
        for table in TABLES {
            let mut model = Model::new();
            txn.all(table, |id, row| {
                model.insert(id, row.to_vec());
                Ok(())
            })?;
            content.push(model);
        }
        Ok(content)
    })
}

fn content(database: &Database) -> Vec<Model> {
    explained(try_content(database))
}

/// What the files in a directory say, as somebody finds them who was not there before.
fn found(directory: &Path) -> Vec<Model> {
    content(&explained(Database::open(directory)))
}

#[test]
fn it_holds_what_maps_hold_beside_its_readers() {
    let place = tempfile::tempdir().unwrap();
    let mut database = create(place.path());
    let other = tempfile::tempdir().unwrap();
    let replica = create(other.path());
    let mut models = vec![Model::new(); 4];
    let mut state = 1;
    for round in 0..40_u64 {
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            // What was there before the round is seen by all who read meanwhile, or what is there after it.
            let before = models.clone();
            let readers = (0..2).map(|_| {
                scope.spawn(|| {
                    let mut seen = Vec::new();
                    while !done.load(Ordering::Relaxed) {
                        seen.push(content(&database));
                        seen.dedup();
                    }
                    seen
                })
            });
            let readers = readers.collect::<Vec<_>>();
            let changes = (0..40)
                .map(|_| {
                    let id = next(&mut state) % 500;
                    let row = vec![id as u8; (next(&mut state) % 1500) as usize];
                    ((next(&mut state) % 4) as usize, id, (next(&mut state) % 4 != 3).then_some(row))
                })
                .collect::<Vec<_>>();
            let written = database.write(|txn| {
                txn.keep_journal();
                for (table, id, row) in &changes {
                    match row {
                        Some(row) => txn.put(TABLES[*table], *id, row)?,
                        None => txn.delete_range(TABLES[*table], *id..=*id + 5)?,
                    }
                }
                Ok(txn.take_journal().unwrap())
            });
            let journal = explained(written);
            explained(replica.write(|txn| journal.write(txn)));
            for (table, id, row) in changes {
                match row {
                    Some(row) => drop(models[table].insert(id, row)),
                    None => models[table].retain(|other, _| !(id..=id + 5).contains(other)),
                }
            }
            done.store(true, Ordering::Relaxed);
            for reader in readers {
                let seen = reader.join().unwrap();
                assert!(seen.iter().all(|seen| *seen == before || *seen == models), "round {round}");
            }
        });
        assert!(content(&database) == models, "round {round}");
        assert!(content(&replica) == models, "what was written again in round {round}");
        let floor = |id| explained(database.read(|txn| txn.floor(Table::Rows, id)));
        let expected = |id| models[1].range(..=id).next_back().map(|(id, row)| (*id, row.clone()));
        assert!([0, 250, u64::MAX].into_iter().all(|id| floor(id) == expected(id)));
        if round % 20 == 19 {
            drop(database);
            database = explained(Database::open(place.path()));
            assert!(content(&database) == models, "opened again in round {round}");
        }
    }
}

/// A work that fails leaves nothing, and the next one is none the worse.
#[test]
fn work_that_fails_changes_nothing() {
    let place = tempfile::tempdir().unwrap();
    let database = create(place.path());
    let failed = database.write(|txn| {
        txn.put(Table::Rows, 1, b"one")?;
        Err::<(), _>(Error::invalid("enough").into())
    });
    assert_eq!(failed.err().unwrap().into_error("model").to_string(), "enough");
    assert!(content(&database).iter().all(BTreeMap::is_empty));
    explained(database.write(|txn| txn.put(Table::Rows, 2, b"two")));
    assert_eq!(content(&database)[1].len(), 1);
}

/// A database in a state in which its log of changes has several transactions, and what was true after each.
fn with_a_log() -> (tempfile::TempDir, Database, Vec<Vec<Model>>) {
    let place = tempfile::tempdir().unwrap();
    drop(create(place.path()));
    let database = explained(Database::open(place.path()));
    let mut states = vec![content(&database)];
    for round in 0..8_u64 {
        explained(database.write(|txn| {
            for id in round * 3..round * 3 + 9 {
                txn.put(Table::Rows, id, &vec![round as u8 + 1; 700])?;
            }
            txn.put(Table::Records, 1, &round.to_le_bytes())
        }));
        states.push(content(&database));
    }
    (place, database, states)
}

/// A power cut while the log is written: whatever of its end is missing, or is noise, a state that was true is found, and the last
/// where all of it is there.
#[test]
fn a_log_that_was_cut_off_is_a_state_that_was_true() {
    let (place, database, states) = with_a_log();
    let cut = tempfile::tempdir().unwrap();
    let whole = std::fs::read(place.path().join(WAL)).unwrap();
    let mut seen = 0;
    for (step, length) in (0..=whole.len()).rev().step_by(1031).enumerate() {
        for noise in in_turn(0..=1, step as u64) {
            let directory = cut.path().join(format!("{length}-{noise}"));
            copy(place.path(), &directory);
            let mut log = whole[..length].to_vec();
            if noise == 1 {
                log.resize(whole.len(), 0x5a);
            }
            std::fs::write(directory.join(WAL), log).unwrap();
            let found = found(&directory);
            let state = states.iter().position(|state| *state == found);
            assert!(state.is_some_and(|state| length < whole.len() || state == states.len() - 1), "{length}");
            seen |= 1 << state.unwrap();
            std::fs::remove_dir_all(directory).unwrap();
        }
    }
    assert_eq!(seen, (1 << states.len()) - 1, "each state was found");
    drop(database);
}

/// A power cut while the log is taken into the file: whichever of its pages were written, old or new, the last state is found, since the
/// log is there until all of them are.
#[test]
fn a_file_that_was_written_in_part_is_made_good_from_the_log() {
    let (place, database, states) = with_a_log();
    let log = std::fs::read(place.path().join(WAL)).unwrap();
    let old = std::fs::read(place.path().join(FILE)).unwrap();
    database.settle();
    let new = std::fs::read(place.path().join(FILE)).unwrap();
    assert!(old != new && database.log_length() == 0);
    let pages = new.len() / 4096;
    let cut = tempfile::tempdir().unwrap();
    let mut state = 7;
    for _ in 0..40 {
        let mut mixed = Vec::new();
        for page in 0..pages {
            let range = page * 4096..(page + 1) * 4096;
            match old.get(range.clone()).filter(|_| next(&mut state).is_multiple_of(2)) {
                Some(old) => mixed.extend_from_slice(old),
                None => mixed.extend_from_slice(&new[range]),
            }
        }
        let directory = cut.path().join(next(&mut state).to_string());
        std::fs::create_dir(&directory).unwrap();
        std::fs::write(directory.join(FILE), &mixed[..mixed.len() - (next(&mut state) % 3) as usize * 4096])
            .unwrap();
        std::fs::write(directory.join(WAL), &log).unwrap();
        assert!(found(&directory) == states[states.len() - 1]);
    }
}

/// Making it is done all over where it was cut short.
#[test]
fn making_it_goes_on_where_it_was_cut_short() {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join(FILE), b"").unwrap();
    drop(create(place.path()));
    assert!(found(place.path()).iter().all(BTreeMap::is_empty));
    drop(create(place.path()));
    std::fs::write(place.path().join(FILE), b"something else, which is no database".repeat(40)).unwrap();
    assert!(matches!(Database::create(place.path()), Err(TransactionError::Damaged(_))));
}

/// What a file says of itself is compared with what a vault's says before anything of it is used.
#[test]
fn a_file_with_another_schema_is_refused() {
    let changes = [
        "PRAGMA application_id = 7",
        "PRAGMA user_version = 6",
        "CREATE TABLE more (id INTEGER PRIMARY KEY)",
        "CREATE VIEW more AS SELECT 1",
        "CREATE INDEX more ON rows (sealed)",
        "CREATE TRIGGER more AFTER INSERT ON rows BEGIN DELETE FROM records; END",
        "DROP TABLE buckets",
        "ALTER TABLE rows ADD COLUMN more BLOB",
        "ALTER TABLE rows RENAME TO people",
        "PRAGMA journal_mode = DELETE",
    ];
    for change in changes {
        let place = tempfile::tempdir().unwrap();
        drop(create(place.path()));
        let connection = rusqlite::Connection::open(place.path().join(FILE)).unwrap();
        connection.execute_batch(change).unwrap();
        drop(connection);
        assert!(matches!(Database::open(place.path()), Err(TransactionError::Damaged(_))), "{change}");
        assert!(
            matches!(Database::create(place.path()), Err(TransactionError::Damaged(_)))
                || change.contains("journal")
        );
    }
}

/// A row that holds something else than bytes, or more than any vault's.
#[test]
fn a_row_that_is_none_is_refused() {
    let place = tempfile::tempdir().unwrap();
    drop(create(place.path()));
    let connection = rusqlite::Connection::open(place.path().join(FILE)).unwrap();
    connection.execute_batch("INSERT INTO rows VALUES (1, zeroblob(3000000)), (-1, zeroblob(9))").unwrap();
    drop(connection);
    let database = explained(Database::open(place.path()));
    assert!(matches!(database.read(|txn| txn.get(Table::Rows, 1)), Err(TransactionError::Damaged(_))));
    let floor = database.read(|txn| txn.floor(Table::Rows, 0));
    assert!(matches!(floor, Err(TransactionError::Damaged(_))));
}

/// What may pass is a failure: a reader that took the file for one that nobody can change would not see what is changed after.
#[test]
fn what_cannot_be_opened_where_files_can_be_made_is_not_read() {
    let (place, database, states) = with_a_log();
    drop(database);
    let shared = place.path().join("vault.db-shm");
    std::os::unix::fs::symlink("missing/too", &shared).unwrap();
    let error = Database::open(place.path()).err().unwrap().into_error("it");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    std::fs::remove_file(&shared).unwrap();
    assert!(found(place.path()) == states[states.len() - 1]);
}

/// Where nothing can be written, not even beside the file, it is read all the same; unless somebody writes it from elsewhere.
#[test]
fn it_is_read_where_nothing_can_be_written() {
    let (place, database, states) = with_a_log();
    let last = &states[states.len() - 1];
    let closed = |directory: &Path, mode| {
        std::fs::set_permissions(directory, PermissionsExt::from_mode(mode)).unwrap();
    };
    closed(place.path(), 0o500);
    if std::fs::write(place.path().join("probe"), b"").is_ok() {
        std::fs::remove_file(place.path().join("probe")).unwrap();
        closed(place.path(), 0o700);
        println!("not tested: whoever runs this may write everywhere");
        return;
    }
    assert!(found(place.path()) == *last, "beside a writer");
    closed(place.path(), 0o700);
    drop(database);

    closed(place.path(), 0o500);
    let frozen = explained(Database::open(place.path()));
    assert!(content(&frozen) == *last);
    let refused = frozen.write(|txn| txn.put(Table::Rows, 1, b"new"));
    assert_eq!(refused.err().unwrap().into_error("it").kind(), ErrorKind::Unavailable);
    closed(place.path(), 0o700);
    explained(explained(Database::open(place.path())).write(|txn| txn.put(Table::Rows, 99, b"new")));
    closed(place.path(), 0o500);
    assert!(content(&frozen)[1].contains_key(&99), "it was written in between");
    closed(place.path(), 0o700);
    let frozen = {
        closed(place.path(), 0o500);
        let frozen = explained(Database::open(place.path()));
        closed(place.path(), 0o700);
        frozen
    };
    let writer = explained(Database::open(place.path()));
    explained(writer.write(|txn| txn.put(Table::Rows, 98, b"new")));
    closed(place.path(), 0o500);
    assert!(content(&frozen)[1].contains_key(&98), "it was written in between, into the log of changes");
    closed(place.path(), 0o700);
    // The last to close it removes the log of changes, if it may write.
    drop(frozen);
    drop(writer);
    std::fs::write(place.path().join(WAL), vec![1; 100]).unwrap();
    closed(place.path(), 0o500);
    let refused = Database::open(place.path()).err().unwrap().into_error("it").to_string();
    assert!(refused.contains("copy the directory to where that can be done"), "{refused}");
    closed(place.path(), 0o700);
}

/// The database of an earlier version is refused by name, and left alone.
#[test]
fn a_vault_in_lmdb_is_refused_by_name() {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("data.mdb"), b"pages").unwrap();
    for refused in [Database::open(place.path()), Database::create(place.path())] {
        let error = refused.err().unwrap().into_error("it");
        assert_eq!(error.kind(), ErrorKind::Refused);
        assert!(error.to_string().contains("data.mdb is a vault of an earlier version"), "{error}");
    }
    assert!(!place.path().join(FILE).exists());
}

/// So is one in SQLite whose records were others.
#[test]
fn a_vault_with_the_records_of_an_earlier_version_is_refused_by_name() {
    let place = tempfile::tempdir().unwrap();
    drop(create(place.path()));
    let connection = rusqlite::Connection::open(place.path().join(FILE)).unwrap();
    connection.execute_batch("PRAGMA user_version = 3").unwrap();
    drop(connection);
    for refused in [Database::open(place.path()), Database::create(place.path())] {
        let error = refused.err().unwrap().into_error("it");
        assert_eq!(error.kind(), ErrorKind::Refused);
        assert!(error.to_string().contains("vault.db is a vault of an earlier version"), "{error}");
    }
}

/// A directory whose name is none that SQLite would take as it is.
#[test]
fn odd_names_of_directories_are_names() {
    let place = tempfile::tempdir().unwrap();
    for name in ["file:x?mode=memory", "a b%41#c", ":memory:", "ä\u{1f980}"] {
        let directory = place.path().join(name);
        std::fs::create_dir(&directory).unwrap();
        explained(create(&directory).write(|txn| txn.put(Table::Rows, 1, name.as_bytes())));
        assert_eq!(found(&directory)[1][&1], name.as_bytes());
        assert!(directory.join(FILE).metadata().unwrap().len() > 0);
    }
    let mut long = place.path().to_owned();
    (0..3).for_each(|_| long.push("x".repeat(200)));
    std::fs::create_dir_all(&long).unwrap();
    let refused = Database::create(&long).err().unwrap().into_error("it");
    assert!(refused.to_string().contains("480 bytes at most"), "{refused}");
}

/// `.cargo/config.toml` has it left out: so nothing that somebody put into a file can reach it.
#[test]
fn what_no_vault_uses_of_sqlite_is_not_there() {
    let connection = rusqlite::Connection::open_in_memory().unwrap();
    for statement in [
        "SELECT json('{}')",
        "SELECT load_extension('x')",
        "SELECT soundex('x')",
        "SELECT count(*) FROM dbstat",
        "CREATE VIRTUAL TABLE x USING fts3(y)",
        "CREATE VIRTUAL TABLE x USING fts5(y)",
        "CREATE VIRTUAL TABLE x USING rtree(y, z, w)",
    ] {
        let error = connection.execute_batch(statement).unwrap_err().to_string();
        assert!(error.contains("no such"), "{statement}: {error}");
    }
}

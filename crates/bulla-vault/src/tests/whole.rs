//! Looking somebody up where nobody may be hidden: rows that are authentic, and older than the rest.

use super::*;
use std::collections::HashSet;
use table::Table;

type Rows = Vec<(Table, u64, Vec<u8>)>;

/// All rows of people and of the index.
fn rows(vault: &Vault) -> Rows {
    let read = vault.shared.snapshot(|it| {
        let mut rows = Vec::new();
        for table in [Table::Rows, Table::Index] {
            it.txn.all(table, |id, row| {
                rows.push((table, id, row.to_vec()));
                Ok(())
            })?;
        }
        Ok(rows)
    });
    read.unwrap()
}

/// Puts rows in behind the vault's back.
fn put(vault: &Vault, rows: &[(Table, u64, Vec<u8>)]) {
    let put = vault
        .shared
        .database
        .write(|txn| rows.iter().try_for_each(|(table, id, row)| txn.put(*table, *id, row)));
    put.map_err(|error| error.into_error("test")).unwrap();
}

fn nobody(_: u64) -> bool {
    false
}

fn assert_damaged(error: &Error, what: &str) {
    let text = error.to_string();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{text}");
    assert!(text.contains("vault.db is damaged (") && text.contains(what), "{text}");
    assert!(text.contains("restore `vault` and `roots`"), "{text}");
}

/// A vault without a cache, and what rows of it were before somebody new came.
fn with_somebody_new() -> (World, Vault, Rows, Rows) {
    let world = World::with(Settings { cache: 0, ..Settings::default() });
    let vault = world.open();
    fill(&vault, "s", 40);
    let before = rows(&vault);
    assert_eq!(number(&vault, "new"), 40);
    let now = rows(&vault);
    let older = before.into_iter().filter(|row| !now.contains(row)).collect::<Vec<_>>();
    let newer =
        now.into_iter().filter(|(table, id, _)| older.iter().any(|row| (row.0, row.1) == (*table, *id)));
    let newer = newer.collect::<Vec<_>>();
    assert_eq!(older.iter().map(|row| row.0).collect::<Vec<_>>(), [Table::Rows, Table::Index]);
    (world, vault, older, newer)
}

#[test]
fn who_is_known_is_looked_up_as_they_are_found_and_others_are_not() {
    let world = World::new();
    let vault = world.open();
    assert_eq!(vault.look_up(&["nobody"], nobody).unwrap(), [None]);
    // More than one bucket of the index, and of rows.
    fill(&vault, "s", 9000);
    assert_eq!(
        vault.look_up(&["s7", "nobody", "s8999", "s7"], nobody).unwrap(),
        [Some(7), None, Some(8999), Some(7)]
    );
    assert_eq!(vault.look_up(&[], nobody).unwrap(), []);
}

#[test]
fn an_older_row_of_the_index_hides_nobody() {
    let (_world, vault, older, newer) = with_somebody_new();
    put(&vault, &older[1..]);
    assert!(vault.find("new").unwrap().is_none(), "an append does not look at everybody");
    let look_up = |name| vault.look_up(&[name], nobody);
    assert_damaged(&look_up("new").unwrap_err(), "its index does not lead to number 40");
    // Neither is it believed of others.
    assert_damaged(&look_up("s1").unwrap_err(), "its index has 40 entries for 41 data subjects");
    assert_damaged(&look_up("nobody").unwrap_err(), "its index has 40 entries for 41 data subjects");
    assert_damaged(&vault.look_up(&[], nobody).unwrap_err(), "its index has 40 entries for 41 data subjects");
    // Where a writer has given somebody a second number, that is seen whatever the index says.
    assert_eq!(number(&vault, "new"), 41);
    assert_damaged(&look_up("new").unwrap_err(), "its index does not lead to number 40");
    put(&vault, &newer[1..]);
    assert_damaged(&look_up("new").unwrap_err(), "its index does not lead to number 41");
}

#[test]
fn an_older_row_of_people_hides_nobody() {
    let (_world, vault, older, newer) = with_somebody_new();
    put(&vault, &older);
    assert!(vault.find("new").unwrap().is_none());
    for name in ["new", "s1", "nobody"] {
        let error = vault.look_up(&[name], nobody).unwrap_err();
        assert_damaged(&error, "nobody has number 40, and nothing says that they were erased");
    }
    let found = vault.check(&nobody, &|_| ()).unwrap().damage;
    assert_eq!(found, [Damage::Unexplained(40)]);
    // Whom the log says was erased is not missed.
    assert_eq!(vault.look_up(&["new", "s1"], |number| number == 40).unwrap(), [None, Some(1)]);
    put(&vault, &newer);
    assert_eq!(vault.look_up(&["new"], nobody).unwrap(), [Some(40)]);
}

/// A vault, and what it was earlier: whatever row of that is put back, whoever asks for anybody is told.
#[test]
fn every_older_row_is_found() {
    let (_world, vault) = {
        let world = World::with(Settings { cache: 0, ..Settings::default() });
        let vault = world.open();
        fill(&vault, "s", 100);
        (world, vault)
    };
    let before = rows(&vault);
    fill(&vault, "t", 60);
    let now = rows(&vault);
    let mut tried = 0;
    for older in before.iter().filter(|row| !now.contains(row)) {
        put(&vault, std::slice::from_ref(older));
        assert_eq!(vault.look_up(&["s1"], nobody).unwrap_err().kind(), ErrorKind::Unavailable, "{older:?}");
        put(&vault, &now);
        tried += 1;
    }
    assert!(tried > 30, "{tried}");
    assert_eq!(vault.look_up(&["s1"], nobody).unwrap(), [Some(1)]);
}

/// Whatever of a vault is put back to what it was before somebody came, records included: the vault is damaged, or it finds them, or it
/// says that somebody is missing, or it says as the older one did how far it has come, and whoever reads looks at the log from there on.
#[test]
fn no_mixture_of_an_older_vault_and_a_newer_one_hides_anybody() {
    // The index leads to them, or not yet.
    for index_every in [0, 1000] {
        let (damaged, missing, older) = mixtures(index_every);
        assert!(damaged > 0 && missing > 0 && older > 0, "{damaged} {missing} {older}");
    }
}

/// Tries them in a vault whose index takes people in so often. Returns how many were damaged, lacked somebody, and were the older one, by
/// what they say.
fn mixtures(index_every: u64) -> (u32, u32, u32) {
    let world = World::with(Settings { cache: 0, index_every, ..Settings::default() });
    let vault = world.open();
    fill(&vault, "s", 40);
    vault.follow(head(3)).unwrap();
    let tables = || kept(world.path(), &FileSystem::new(world.path())).0;
    let before = tables();
    assert_eq!(number(&vault, "new"), 40);
    vault.follow(head(7)).unwrap();
    drop(vault);
    let now = tables();
    let mut differing = Vec::new();
    for (table, (before, now)) in table::TABLES.into_iter().zip(before.iter().zip(&now)) {
        let pairs = before.iter().zip(now).inspect(|(older, newer)| assert_eq!(older.0, newer.0));
        differing.extend(pairs.filter(|(older, newer)| older != newer).map(|pair| (table, pair)));
    }
    let places = differing.iter().map(|(table, ((id, _), _))| (*table, *id)).collect::<Vec<_>>();
    let places = match &places[..] {
        [places @ .., (Table::Index, _)] if index_every == 0 => places,
        places => places,
    };
    let [records @ .., (Table::Rows, 2)] = places else { panic!("{places:?}") };
    assert_eq!(records, [(Table::Records, 1), (Table::Records, 4)]);
    let (mut damaged, mut missing, mut older) = (0, 0, 0);
    for chosen in 0..1_u32 << differing.len() {
        let database = Database::open(&world.path().join("vault")).map_err(|error| error.into_error("test"));
        let put = database.unwrap().write(|txn| {
            differing.iter().enumerate().try_for_each(|(place, (table, (older, newer)))| {
                let (id, row) = if chosen >> place & 1 == 1 { older } else { newer };
                txn.put(*table, *id, row)
            })
        });
        put.map_err(|error| error.into_error("test")).unwrap();
        let vault = Vault::open(world.path(), LOG, Access::Read, &world.settings).unwrap();
        let state = (vault.next_number().unwrap(), vault.follows().unwrap().size);
        assert!([(40, 3), (41, 7)].contains(&state), "{chosen:b}: {state:?}");
        for everybody_may_be_erased in [false, true] {
            match vault.look_up(&["new"], |_| everybody_may_be_erased).map(|found| found[0]) {
                Ok(Some(number)) => assert_eq!(number, 40, "{chosen:b}"),
                Ok(None) if state == (40, 3) => older += 1,
                Ok(None) => {
                    assert!(everybody_may_be_erased, "{chosen:b}");
                    let found = vault.missing(40).unwrap().numbers;
                    assert_eq!(found, std::slice::from_ref(&(40..41)), "{chosen:b}");
                    missing += 1;
                }
                Err(error) => {
                    assert_damaged(&error, "");
                    damaged += 1;
                }
            }
        }
    }
    (damaged, missing, older)
}

/// All of an older vault but the record that counts changes, in the place of one that is open.
#[test]
fn an_older_vault_is_not_believed_while_a_newer_one_is_open() {
    let world = World::with(Settings { cache: 0, ..Settings::default() });
    let vault = world.open();
    fill(&vault, "s", 40);
    let all = |vault: &Vault| {
        let record =
            |it: &snapshot::Snapshot<'_>| Ok((Table::Records, 1, it.txn.get(Table::Records, 1)?.unwrap()));
        rows(vault).into_iter().chain([vault.shared.snapshot(record).unwrap()]).collect::<Vec<_>>()
    };
    let before = all(&vault);
    assert_eq!(number(&vault, "new"), 40);
    put(&vault, &before);
    let errors = [
        vault.look_up(&["new"], nobody).err(),
        vault.find("new").err(),
        vault.resolve(&["new"]).err(),
        vault.next_number().err(),
    ];
    for error in errors {
        let text = error.unwrap().to_string();
        assert!(text.contains("went back to an earlier state"), "{text}");
    }
}

#[test]
fn who_was_erased_or_left_out_is_not_missed() {
    let world = World::with(Settings { cache: 0, ..Settings::default() });
    let vault = world.open();
    fill(&vault, "s", 40);
    vault.skip_to(1000).unwrap();
    fill(&vault, "t", 5);
    let erasure = vault.begin_erasure(&["s3", "s20"]).unwrap().unwrap();
    let error = vault.look_up(&["s3"], nobody).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Erased, "{error}");
    assert_eq!(vault.look_up(&["s4", "t4"], nobody).unwrap(), [Some(4), Some(1004)]);
    let erased = erasure.commit().unwrap().destroy().unwrap();
    // The log may not tell of it yet, and the vault says so: of a name that nobody has it cannot be told whose it was.
    assert_eq!(vault.look_up(&["s4", "t4"], nobody).unwrap(), [Some(4), Some(1004)]);
    for name in ["s3", "somebody else"] {
        let error = vault.look_up(&["s4", name], |number| number == 3).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Erased, "{error}");
        assert!(error.to_string().contains("20 is being erased"), "{error}");
    }
    assert_eq!(vault.look_up(&["s3", "s4"], |number| number == 3 || number == 20).unwrap(), [None, Some(4)]);
    vault.confirm(erased.numbers()).unwrap();
    assert_damaged(&vault.look_up(&["s4"], nobody).unwrap_err(), "nobody has number 3");
    let told = HashSet::from([3, 20]);
    assert_eq!(vault.look_up(&["s3", "s4"], |number| told.contains(&number)).unwrap(), [None, Some(4)]);
    assert_eq!(vault.check(&|number| told.contains(&number), &|_| ()).unwrap().damage, []);
}

#[test]
fn rows_that_are_missing_or_beyond_the_last_number_are_told() {
    for (next, what) in [(40, "number 40 is beyond the last"), (80, "of its rows 3 to 4 one is missing")] {
        let (_world, vault, ..) = with_somebody_new();
        vault
            .shared
            .change(|it| {
                (it.meta.next_number, it.meta.indexed) = (next, record::Indexed::up_to(next.min(41)));
                Ok(())
            })
            .unwrap();
        assert_damaged(&vault.look_up(&["s1"], |_| true).unwrap_err(), what);
    }
    let (_world, vault, ..) = with_somebody_new();
    let taken = vault.shared.database.write(|txn| txn.delete_range(Table::Rows, 1..=1));
    taken.map_err(|error| error.into_error("test")).unwrap();
    assert_damaged(&vault.look_up(&["s1"], |_| true).unwrap_err(), "of its rows 1 to 1 one is missing");
}

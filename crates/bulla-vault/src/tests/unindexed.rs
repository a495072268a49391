//! People whom the index does not lead to yet: found by their rows, taken in together, and by an erasure.

use super::*;
use bulla_testkit::sweep::in_full;
use table::Table;

/// A vault without a cache, of whose index a sixteenth takes people in after so many new ones.
fn world(index_every: u64) -> World {
    World::with(Settings { cache: 0, index_every, ..Settings::default() })
}

fn meta(vault: &Vault) -> record::Meta {
    vault.shared.meta().unwrap()
}

fn rows(vault: &Vault, table: Table) -> Vec<(u64, Vec<u8>)> {
    let read = vault.shared.snapshot(|it| {
        let mut rows = Vec::new();
        it.txn.all(table, |id, row| {
            rows.push((id, row.to_vec()));
            Ok(())
        })?;
        Ok(rows)
    });
    read.unwrap()
}

fn put(vault: &Vault, id: u64, row: &[u8]) {
    let put = vault.shared.database.write(|txn| txn.put(Table::Rows, id, row));
    put.map_err(|error| error.into_error("test")).unwrap();
}

/// That these people have the numbers from 0 on in their order, by every way there is to look for them, and that the vault is whole.
fn assert_found(vault: &Vault, names: &[String]) {
    let names = names.iter().map(String::as_str).collect::<Vec<_>>();
    let numbers = (0..names.len() as u64).map(Some).collect::<Vec<_>>();
    let number = |subject: Option<Subject>| subject.map(|subject| subject.number);
    assert_eq!(names.iter().map(|name| number(vault.find(name).unwrap())).collect::<Vec<_>>(), numbers);
    assert_eq!(vault.find_all(&names).unwrap().into_iter().map(number).collect::<Vec<_>>(), numbers);
    assert_eq!(vault.look_up(&names, |_| false).unwrap(), numbers);
    assert_eq!(vault.look_up(&["nobody"], |_| false).unwrap(), [None]);
    let resolved = vault.resolve(&names).unwrap();
    assert_eq!(resolved.into_iter().map(|subject| Some(subject.number)).collect::<Vec<_>>(), numbers);
    assert_eq!(meta(vault).next_number, names.len() as u64, "nobody was taken for somebody new");
    let checked = vault.check(&|_| false, &|_| ()).unwrap();
    assert_eq!((checked.people, checked.damage, checked.more), (names.len() as u64, vec![], 0));
}

#[test]
fn people_are_found_before_the_index_leads_to_them_and_after() {
    for index_every in [0, 1, 2, 3, 7, 40, 1000] {
        let world = world(index_every);
        let (mut vault, mut names) = (world.open(), Vec::new());
        for step in 0..12 {
            let new = (0..1 + step * 7 % 13).map(|at| format!("{step} {at}")).collect::<Vec<_>>();
            let before = meta(&vault);
            names.extend(new.iter().cloned());
            vault.resolve(&new.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
            let after = meta(&vault);
            let due = |sixteenth| {
                index_every == 0
                    || (before.next_number + 1..=after.next_number)
                        .any(|given| given % index_every == 0 && (given / index_every - 1) % 16 == sixteenth)
            };
            for (sixteenth, (before, indexed)) in (0..).zip(before.indexed.0.iter().zip(after.indexed.0)) {
                assert_eq!(indexed, if due(sixteenth) { after.next_number } else { *before });
            }
            assert_found(&vault, &names);
            if step % 3 == 2 {
                // What the process knew of them is gone.
                drop(vault);
                vault = world.open();
                assert_found(&vault, &names);
            }
        }
    }
}

#[test]
fn numbers_that_were_left_out_are_between_those_who_are_found_by_their_rows() {
    let world = world(1000);
    let vault = world.open();
    fill(&vault, "s", 20);
    vault.skip_to(100).unwrap();
    fill(&vault, "t", 20);
    drop(vault);
    let vault = world.open();
    assert_eq!(meta(&vault).indexed, record::Indexed::up_to(0));
    assert_eq!(vault.find("s19").unwrap().unwrap().number, 19);
    assert_eq!(vault.find("t0").unwrap().unwrap().number, 100);
    vault.skip_to(5000).unwrap();
    assert_eq!(number(&vault, "u"), 5000);
    assert_eq!(vault.find("t19").unwrap().unwrap().number, 119);
    assert_eq!(vault.check(&|_| false, &|_| ()).unwrap().damage, []);
}

#[test]
fn an_erasure_has_the_index_take_everybody_in() {
    let world = world(1000);
    let vault = world.open();
    fill(&vault, "s", 40);
    assert_eq!(meta(&vault).indexed, record::Indexed::up_to(0));
    vault.confirm(erase(&vault, &["s3", "s39"]).unwrap().unwrap().numbers()).unwrap();
    assert_eq!(meta(&vault).indexed, record::Indexed::up_to(40));
    fill(&vault, "t", 5);
    for (name, found) in [("s3", None), ("s39", None), ("s4", Some(4)), ("t0", Some(40))] {
        assert_eq!(vault.find(name).unwrap().map(|subject| subject.number), found, "{name}");
    }
    assert_eq!(number(&vault, "s3"), 45);
    assert_eq!(vault.check(&|number| [3, 39].contains(&number), &|_| ()).unwrap().damage, []);
    assert!(vault.find("s3").unwrap().is_some());
    // In the process that did it nothing is kept of who is gone.
    let kept = vault.shared.unindexed.lock().unwrap().clone();
    assert_eq!(kept.entries(&meta(&vault)).count(), 6);
}

#[test]
fn where_a_row_is_damaged_nobody_is_said_to_be_unknown_and_others_are_found() {
    let world = world(1000);
    let vault = world.open();
    fill(&vault, "s", 31);
    vault.shared.change(|change| change.index_all()).unwrap();
    fill(&vault, "t", 30);
    assert_eq!((meta(&vault).indexed, meta(&vault).next_number), (record::Indexed::up_to(31), 61));
    drop(vault);
    // The row of numbers 48 to 63, which has whoever is from t17 on.
    let vault = world.open();
    let (_, sound) = rows(&vault, Table::Rows).pop().unwrap();
    let mut damaged = sound.clone();
    damaged[5] ^= 1;
    put(&vault, 3, &damaged);
    for (name, number) in [("s0", 0), ("s30", 30), ("t0", 31), ("t16", 47)] {
        assert_eq!(vault.find(name).unwrap().unwrap().number, number);
        assert_eq!(vault.resolve(&[name]).unwrap()[0].number, number);
    }
    for name in ["t17", "nobody"] {
        for refused in [
            vault.find(name).map(drop),
            vault.resolve(&[name]).map(drop),
            vault.begin_erasure(&[name]).map(drop),
            vault.look_up(&[name], |_| false).map(drop),
        ] {
            let error = refused.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unavailable);
            assert!(error.to_string().contains("its row 3, numbers 48 to 63, does not open"), "{error}");
        }
    }
    // Once it is put right, the same process finds everybody.
    put(&vault, 3, &sound);
    assert_eq!(vault.find("t29").unwrap().unwrap().number, 60);
    assert_eq!(vault.find("nobody").unwrap().map(|subject| subject.number), None);
}

/// A number that the index does not lead to is nobody's only where its row is older than the rest: nobody was erased since.
#[test]
fn a_number_that_the_index_does_not_lead_to_is_never_unexplained() {
    let world = world(1000);
    let vault = world.open();
    fill(&vault, "s", 10);
    let (id, older) = rows(&vault, Table::Rows).pop().unwrap();
    assert_eq!(number(&vault, "new"), 10);
    drop(vault);
    let vault = world.open();
    put(&vault, id, &older);
    let told = "nobody has number 10, and nothing says";
    assert_eq!(vault.skipped_with_unexplained(&|_| false).unwrap(), []);
    vault.mark_given_up(&BTreeSet::new(), false, Some(&|_| false)).unwrap();
    assert_eq!(vault.skipped().unwrap(), []);
    let error = vault.look_up(&["new"], |_| false).unwrap_err();
    assert!(error.to_string().contains(told), "{error}");
    assert_eq!(vault.check(&|_| false, &|_| ()).unwrap().damage, [Damage::Unexplained(10)]);
}

#[test]
fn a_transaction_that_fails_leaves_nobody_in_memory_whom_the_vault_does_not_have() {
    let world = world(1);
    let vault = world.open();
    fill(&vault, "s", 3);
    let failed = vault.shared.change(|change| {
        let of = |name: &str| pseudonym::Pseudonym::of(name, LOG, &change.keys.pseudonym);
        let pseudonyms = (0..9).map(|at| of(&format!("t{at}"))).collect::<Vec<_>>();
        change.resolve(&pseudonyms)?;
        Err::<(), _>(Error::unavailable("it fails").into())
    });
    assert!(failed.unwrap_err().to_string().contains("it fails"));
    assert_eq!(vault.find("t0").unwrap().map(|subject| subject.number), None);
    assert_eq!(number(&vault, "t8"), 3);
    assert_found(&vault, &["s0", "s1", "s2", "t8"].map(str::to_owned));
}

/// Whoever still reads an older state does not find whom a newer one has, which is in memory by then, and takes nothing for damaged.
#[test]
fn an_older_state_has_nobody_of_a_newer_one() {
    let world = world(1000);
    let vault = world.open();
    fill(&vault, "s", 3);
    let before = vault.shared.snapshot(|it| {
        assert!(it.finder().is_ok());
        assert_eq!(number(&vault, "new"), 3);
        assert_eq!(vault.find("new").unwrap().unwrap().number, 3);
        let of = |name: &str| pseudonym::Pseudonym::of(name, LOG, &it.keys.pseudonym);
        let numbers = it.numbers(&mut it.finder()?, of("new"))?;
        Ok((it.find(of("new"))?.map(|subject| subject.number), numbers, it.find(of("s2"))?.is_some()))
    });
    assert_eq!(before.unwrap(), (None, vec![], true));
}

/// Threads that look and add at the same time, over states of which each may see an older one.
#[test]
fn threads_find_whom_others_add() {
    let rounds = if in_full() { 400 } else { 40 };
    let world = world(3);
    let vault = world.open();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let vault = &vault;
            scope.spawn(move || {
                for round in 0..rounds {
                    let names = [format!("{thread} {round}"), format!("all {round}")];
                    let names = names.each_ref().map(String::as_str);
                    let given = vault.resolve(&names).unwrap();
                    for (name, subject) in names.iter().zip(&given) {
                        assert_eq!(vault.find(name).unwrap().unwrap().number, subject.number);
                    }
                }
            });
        }
    });
    assert_eq!(meta(&vault).next_number, 5 * rounds);
    assert_eq!(vault.check(&|_| false, &|_| ()).unwrap().damage, []);
}

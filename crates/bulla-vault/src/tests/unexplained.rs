//! Numbers of which nothing says any more why nobody has them: where they are left out, and where they stay damage.

use super::*;
use bulla_crypto::group::{Followed, GroupKeys};
use record::{MAX_GIVEN_UP, MAX_SKIPPED, Skipped};
use table::Table;

fn nobody(_: u64) -> bool {
    false
}

fn damage(vault: &Vault) -> Vec<Damage> {
    vault.check(&nobody, &|_| ()).unwrap().damage
}

fn with_uncached(settings: Settings) -> World {
    World::with(Settings { cache: 0, ..settings })
}

/// Forty people, of whom these were erased, which the log tells no more.
fn erased_without_a_word(world: &World, subjects: &[&str]) -> Vault {
    let vault = world.open();
    fill(&vault, "s", 40);
    vault.confirm(erase(&vault, subjects).unwrap().unwrap().numbers()).unwrap();
    vault
}

fn put(vault: &Vault, rows: &[(Table, u64, Vec<u8>)]) {
    let put = vault
        .shared
        .database
        .write(|txn| rows.iter().try_for_each(|(table, id, row)| txn.put(*table, *id, row)));
    put.map_err(|error| error.into_error("test")).unwrap();
}

fn rows(vault: &Vault, table: Table) -> Vec<(Table, u64, Vec<u8>)> {
    let read = vault.shared.snapshot(|it| {
        let mut rows = Vec::new();
        it.txn.all(table, |id, row| {
            rows.push((table, id, row.to_vec()));
            Ok(())
        })?;
        Ok(rows)
    });
    read.unwrap()
}

fn record_of_skipped(vault: &Vault) -> Vec<(Table, u64, Vec<u8>)> {
    rows(vault, Table::Records).into_iter().filter(|(_, id, _)| *id == 5).collect()
}

#[test]
fn whose_erasure_nothing_tells_of_is_left_out_and_others_can_be_erased_after_that() {
    let world = with_uncached(Settings::default());
    let vault = erased_without_a_word(&world, &["s3", "s20", "s21", "s30"]);
    // The log still tells of one of them.
    let told = |number: u64| number == 30;
    let error = vault.look_up(&["s4"], told).unwrap_err();
    assert!(error.to_string().contains("nobody has number 3, and nothing says"), "{error}");
    let expected = [3..4, 20..22];
    assert_eq!(vault.skipped_with_unexplained(&told).unwrap(), expected);
    assert_eq!(vault.skipped().unwrap(), [], "to look changes nothing");
    for again in [false, true] {
        leave_out(&vault, &told).unwrap();
        assert_eq!(vault.skipped().unwrap(), expected, "{again}");
    }
    assert_eq!(vault.look_up(&["s4", "s3"], told).unwrap(), [Some(4), None]);
    assert_eq!(damage(&vault), [Damage::Unexplained(30)], "who is not left out is missed as before");

    // A number below the greatest that were skipped is one more.
    vault.skip_to(1000).unwrap();
    vault.confirm(erase(&vault, &["s4", "s39"]).unwrap().unwrap().numbers()).unwrap();
    leave_out(&vault, &told).unwrap();
    drop(vault);
    let vault = world.open();
    assert_eq!(vault.skipped().unwrap(), [3..5, 20..22, 39..1000]);
    assert_eq!(vault.look_up(&["s5"], told).unwrap(), [Some(5)]);
    assert_eq!((number(&vault, "s4"), number(&vault, "s5")), (1000, 5), "who is back is somebody else");
    assert_sound(&vault);
}

/// The whole row is nobody's then, and the rows beside it are somebody's.
#[test]
fn all_numbers_of_a_row_can_be_left_out() {
    let world = with_uncached(Settings::default());
    let names = (16..32).map(|number| format!("s{number}")).collect::<Vec<_>>();
    let vault = erased_without_a_word(&world, &names.iter().map(String::as_str).collect::<Vec<_>>());
    leave_out(&vault, &nobody).unwrap();
    assert_eq!(vault.skipped().unwrap(), std::slice::from_ref(&(16..32)));
    vault.confirm(erase(&vault, &["s15", "s32"]).unwrap().unwrap().numbers()).unwrap();
    assert_eq!(damage(&vault), [Damage::Unexplained(15), Damage::Unexplained(32)]);
}

#[test]
fn where_nothing_is_unexplained_nobody_is_left_out() {
    let world = with_uncached(Settings::default());
    let vault = world.open();
    fill(&vault, "s", 40);
    // Neither who is being erased, nor who was erased and is not confirmed yet: the vault itself says why they are gone.
    let erasure = vault.begin_erasure(&["s3"]).unwrap().unwrap();
    leave_out(&vault, &nobody).unwrap();
    let erased = erasure.commit().unwrap().destroy().unwrap();
    leave_out(&vault, &nobody).unwrap();
    assert_eq!(vault.skipped().unwrap(), []);
    vault.confirm(erased.numbers()).unwrap();
    assert_eq!(damage(&vault), [Damage::Unexplained(3)]);
    let reader = Vault::open(world.path(), LOG, Access::Read, &world.settings).unwrap();
    assert_eq!(leave_out(&reader, &nobody).unwrap_err().kind(), ErrorKind::Refused);
    assert_eq!(reader.skipped_with_unexplained(&nobody).unwrap(), std::slice::from_ref(&(3..4)));
}

/// What is authentic, and older than the rest, excuses nobody who is missing.
#[test]
fn whom_the_index_leads_to_is_not_left_out() {
    let world = with_uncached(Settings::default());
    let vault = erased_without_a_word(&world, &["s3"]);
    let before = rows(&vault, Table::Rows);
    assert_eq!(number(&vault, "new"), 40);
    put(&vault, &before);
    leave_out(&vault, &nobody).unwrap();
    assert_eq!(vault.skipped().unwrap(), std::slice::from_ref(&(3..4)));
    let found = damage(&vault);
    assert_eq!(found, [Damage::Unexplained(40), Damage::Misled(40)]);
    assert!(vault.look_up(&["s4"], nobody).is_err());
}

#[test]
fn rows_that_are_missing_or_do_not_open_stay_damage() {
    let world = with_uncached(Settings::default());
    let vault = erased_without_a_word(&world, &["s3", "s20"]);
    put(&vault, &[(Table::Rows, 0, vec![7; rows::ROW])]);
    let taken = vault.shared.database.write(|txn| txn.delete_range(Table::Rows, 2..=2));
    taken.map_err(|error| error.into_error("test")).unwrap();
    leave_out(&vault, &nobody).unwrap();
    assert_eq!(vault.skipped().unwrap(), std::slice::from_ref(&(20..21)));
    assert_eq!(damage(&vault), [Damage::Row(0), Damage::Missing(2)]);
}

/// Nobody can say then whom it leads to.
#[test]
fn where_a_row_of_the_index_does_not_open_nobody_is_left_out() {
    let world = with_uncached(Settings::default());
    let vault = erased_without_a_word(&world, &["s3"]);
    let index = rows(&vault, Table::Index).pop().unwrap();
    put(&vault, &[(Table::Index, index.1, vec![7; index.2.len()])]);
    for error in
        [leave_out(&vault, &nobody).unwrap_err(), vault.skipped_with_unexplained(&nobody).unwrap_err()]
    {
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(error.to_string().contains("vault.db is damaged (its row 255 of index bucket"), "{error}");
    }
    assert_eq!(vault.skipped().unwrap(), []);
}

/// The record from before is authentic too: with it the numbers are missed again, and in another vault it is damage.
#[test]
fn an_older_record_of_what_was_left_out_is_noticed() {
    let world = with_uncached(Settings::default());
    let vault = erased_without_a_word(&world, &["s3"]);
    let before = record_of_skipped(&vault);
    leave_out(&vault, &nobody).unwrap();
    let now = record_of_skipped(&vault);
    assert_eq!(damage(&vault), []);
    put(&vault, &before);
    assert_eq!(damage(&vault), [Damage::Unexplained(3)]);
    assert!(vault.look_up(&["s4"], nobody).is_err());
    let other = with_uncached(Settings::default());
    let others = erased_without_a_word(&other, &["s3"]);
    put(&others, &now);
    let error = others.look_up(&["s4"], nobody).unwrap_err();
    assert!(error.to_string().contains("vault.db is damaged (its record Skipped"), "{error}");
}

#[test]
fn a_replica_has_what_was_left_out() {
    let replica = tempfile::tempdir().unwrap();
    let replicas = vec![ReplicaLocation::new(replica.path())];
    let world = with_uncached(Settings { replicas, ..Settings::default() });
    let vault = erased_without_a_word(&world, &["s3"]);
    leave_out(&vault, &nobody).unwrap();
    drop(vault);
    let place = tempfile::tempdir().unwrap();
    copy(replica.path(), place.path());
    let taken_up = World { place, settings: Settings::default() }.open();
    assert_eq!(taken_up.skipped().unwrap(), std::slice::from_ref(&(3..4)));
    assert_eq!(damage(&taken_up), []);
}

/// More than a record can have: refused before anything is written.
#[test]
fn more_ranges_than_there_can_be_are_refused() {
    let world = with_uncached(Settings::default());
    let vault = erased_without_a_word(&world, &["s3"]);
    let most = (0..MAX_SKIPPED as u64).map(|range| (100 + 2 * range, 101 + 2 * range)).collect();
    vault.shared.change(|change| Skipped(Vec::clone(&most)).write(change.txn, &change.keys)).unwrap();
    let before = record_of_skipped(&vault);
    for error in
        [leave_out(&vault, &nobody).unwrap_err(), vault.skipped_with_unexplained(&nobody).unwrap_err()]
    {
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        assert!(error.to_string().contains("a vault can leave out 65536 ranges of numbers"), "{error}");
    }
    assert!(record_of_skipped(&vault) == before);
}

#[test]
fn ranges_are_joined_and_divided() {
    let mut skipped = Skipped(vec![(5, 9), (20, 30)]);
    skipped.insert(&Skipped(vec![(0, 2), (9, 11), (25, 40), (41, 42)])).unwrap();
    assert_eq!(skipped.0, [(0, 2), (5, 11), (20, 40), (41, 42)]);
    for number in [1, 2, 5, 8, 39, 41] {
        skipped.remove(number).unwrap();
    }
    assert_eq!(skipped.0, [(0, 1), (6, 8), (9, 11), (20, 39)]);
    let numbers = (0..50).filter(|number| skipped.end_of(*number).is_some()).collect::<Vec<_>>();
    assert!(numbers.into_iter().eq([0, 6, 7, 9, 10].into_iter().chain(20..39)));
    assert_eq!(Skipped::decode(&skipped.encode()), Some(skipped.clone()));
    assert!(
        skipped.covers(6, 8) && !skipped.covers(6, 9) && skipped.covers(20, 39) && !skipped.covers(19, 39)
    );
}

#[test]
fn what_was_passed_over_stays_so_for_good_once_the_log_lacks_it() {
    let world = World::new();
    let vault = world.open();
    let up_to = |vault: &Vault| {
        let Followed { frames, root, unfollowed, .. } = vault.erased_up_to().unwrap();
        assert_eq!((Some(head(frames).root), vault.unfollowed().unwrap()), (root, unfollowed));
        (frames, unfollowed)
    };
    vault.follow_but(head(7), Some(5), &parts(0)).unwrap();
    vault.follow(head(9)).unwrap();
    drop(vault);
    let vault = world.open();
    assert_eq!(up_to(&vault), (9, Some(5)));
    vault.follow_but(head(9), None, &parts(0)).unwrap();
    vault.follow(head(12)).unwrap();
    assert_eq!(up_to(&vault), (12, None));
    vault.follow_but(head(12), Some(5), &parts(0)).unwrap();
    leave_out(&vault, &nobody).unwrap();
    assert_eq!(vault.unfollowed().unwrap(), Some(Followed::NOWHERE));
    vault.follow(head(20)).unwrap();
    assert_eq!(up_to(&vault), (20, Some(Followed::NOWHERE)));
}

/// A copy from before does not say it, whatever it is told of the log later.
#[test]
fn a_vault_says_which_parts_of_the_log_were_given_up() {
    let world = World::new();
    let vault = world.open();
    vault.follow(head(9)).unwrap();
    vault.mark_given_up(&parts(2), false, None).unwrap();
    assert_eq!((vault.follows().unwrap(), vault.unfollowed().unwrap()), (TreeHead::empty(), None));
    vault.follow(head(5)).unwrap();
    drop(vault);
    let vault = world.open();
    assert_eq!((vault.given_up().unwrap(), vault.follows().unwrap()), (parts(2), head(5)));
    assert_eq!(vault.erased_up_to().unwrap().given_up, parts(2));
    // What it is told of one later stays beside what it knows, and goes with what it follows.
    vault.follow_but(head(5), None, &BTreeSet::from([PartId([2; 16])])).unwrap();
    assert_eq!(vault.given_up().unwrap(), parts(3));
    vault.mark_given_up(&parts(1), true, None).unwrap();
    vault.follow(head(7)).unwrap();
    assert_eq!((vault.given_up().unwrap(), vault.unfollowed().unwrap()), (parts(3), Some(Followed::NOWHERE)));
}

#[test]
fn a_vault_knows_of_no_more_parts_than_its_record_holds() {
    let world = World::new();
    let vault = world.open();
    let most = u8::try_from(MAX_GIVEN_UP).unwrap();
    vault.require_room(&parts(most)).unwrap();
    vault.mark_given_up(&parts(most), false, None).unwrap();
    for refused in [
        vault.require_room(&parts(most + 1)),
        vault.mark_given_up(&parts(most + 1), true, None),
        vault.follow_but(head(9), Some(Followed::NOWHERE), &parts(most + 1)),
    ] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Refused);
    }
    assert_eq!((vault.given_up().unwrap(), vault.unfollowed().unwrap()), (parts(most), None));
    assert_eq!(vault.follows().unwrap(), TreeHead::empty());
}

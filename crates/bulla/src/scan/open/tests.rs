//! A block as it is sealed is the block as it is opened, with the keys of all of its groups, of some, of none.

use super::world::{World, nobody};
use super::*;
use crate::format::groups::{Grouping, SubjectSet};
use bulla_columns::Compression;
use bulla_crypto::group::GroupKey;
use bulla_proof::Entry;
use bulla_proof::hash::HashId;
use bulla_proof::unit::{self, GroupContent};
use std::collections::BTreeSet;

#[test]
fn with_all_keys_the_rows_come_out() {
    for count in [1, 3, 4, 50, 700] {
        let world = World::new(count);
        let opener = world.open_groups(None);
        assert!(opener.rows().iter().eq(world.rows.iter().map(Vec::as_slice)), "{count}");
        assert!((0..world.rows.len()).all(|row| opener.withheld(row).is_none()));
    }
}

#[test]
fn times_are_those_of_all_rows_also_of_those_in_groups_that_nobody_opens() {
    // The last row is the latest, and in a group; its time is shared.
    let mut rows = world::rows(8);
    for (row, second) in rows.iter_mut().zip(-3_i64..) {
        let time = second * 1_000_000_000 + 999_999_999;
        row[2..10].copy_from_slice(&time.to_le_bytes());
    }
    let mut world = World::of(rows);
    assert!(!world.subjects(7).is_empty());
    assert_eq!((world.sealed.commitment.earliest, world.sealed.commitment.latest), (-3, 4));
    for (earliest, latest) in [(-3, 4), (-3, 3), (-2, 4), (-4, 4), (-3, 5), (0, 0)] {
        world.sign_times(earliest, latest);
        let opened = world.try_open(&mut BlockOpener::default()).map_err(|error| error.kind);
        let expected = if (earliest, latest) == (-3, 4) { Ok(()) } else { Err(FindingKind::UnitsMismatch) };
        assert_eq!(opened, expected, "{earliest} to {latest}");
    }
}

#[test]
fn a_set_of_subjects_is_one_group_and_one_unit() {
    let world = World::new(700);
    let (opener, commitment) = world.open();
    let sets = (0..700).map(|row| world.subjects(row).into_iter().collect::<BTreeSet<_>>());
    let (alone, grouped): (Vec<_>, Vec<_>) = sets.partition(BTreeSet::is_empty);
    let distinct = grouped.into_iter().collect::<BTreeSet<_>>();
    assert_eq!(opener.groups().len(), distinct.len());
    assert_eq!(commitment.units, (alone.len() + distinct.len()) as u64);
    assert!(!opener.items().is_empty());
    assert_eq!(opener.leaves(&commitment).0.len() as u64, commitment.units + opener.items().len() as u64);
}

#[test]
fn groups_are_refused_in_a_log_without_erasure() {
    let world = World::new(50);
    let check = |groups| world.open().0.check_asked(Asks { groups, ungrouped: true, items: true });
    assert!(check(true).is_ok());
    let refused = check(false).unwrap_err();
    assert_eq!(refused.kind, FindingKind::BlockInvalid);
    let without = world::rows(50).into_iter().filter(|row| Entry::decode(row).unwrap().subjects.is_none());
    let opener = World::of(without.collect()).open().0;
    assert!(
        opener.groups().is_empty()
            && opener.check_asked(Asks { groups: false, ungrouped: true, items: false }).is_ok()
    );
}

#[test]
fn who_is_named_in_no_group_is_refused_in_a_log_with_erasure() {
    let asks = Asks { groups: true, ungrouped: false, items: true };
    let mut world = World::new(50);
    // Some entries name nobody, in a list without a name or without a list.
    assert!(world.open().0.check_asked(asks).is_ok());
    world.regroup(|grouping| *grouping = Grouping::NONE);
    let refused = world.open().0.check_asked(asks).unwrap_err();
    assert_eq!(refused.kind, FindingKind::BlockInvalid);
    assert!(refused.detail.contains("names data subjects"), "{}", refused.detail);
    let without = Asks { groups: false, ungrouped: true, items: false };
    assert!(world.open().0.check_asked(without).is_ok() && world.open().0.check_asked(Asks::ALL).is_ok());
}

#[test]
fn common_items_are_refused_in_a_log_that_asks_for_none() {
    let mut world = World::new(700);
    let asked = |items| Asks { groups: true, ungrouped: false, items };
    let check = |world: &World| [true, false].map(|items| world.open().0.check_asked(asked(items)));
    let [Ok(()), Err(refused)] = check(&world) else { panic!("it has some") };
    assert_eq!(refused.kind, FindingKind::BlockInvalid);
    assert!(refused.detail.contains("common items"), "{}", refused.detail);
    world.regroup(|grouping| grouping.common = 0);
    assert!(check(&world).iter().all(Result::is_ok));
}

#[test]
fn without_a_key_what_is_shared_comes_out_and_the_rest_stands() {
    let mut world = World::new(300);
    world.register.erased.insert("user_2".to_owned());
    let opener = world.open_groups(None);
    for row in 0..300 {
        let concerned = world.subjects(row).contains(&"user_2".to_owned());
        assert_eq!(opener.withheld(row), concerned.then_some(Redaction::KeyLost), "{row}");
        if !concerned {
            assert_eq!(opener.rows()[row], world.rows[row]);
            continue;
        }
        let (left, whole) = (opener.rows().entry(row).unwrap(), Entry::decode(&world.rows[row]).unwrap());
        let shared = Entry { location: None, payload: None, stream: None, subjects: None, ..whole };
        assert_eq!(left, shared);
    }
}

#[test]
fn one_subject_s_groups_alone_are_opened() {
    let world = World::new(300);
    let number = world.register.number("user_2").unwrap();
    let opener = world.open_groups(number);
    for row in 0..300 {
        let subjects = world.subjects(row);
        let left_out = !subjects.is_empty() && !subjects.contains(&"user_2".to_owned());
        assert_eq!(opener.withheld(row), left_out.then_some(Redaction::NotGiven), "{row}");
    }
}

#[test]
fn another_key_or_another_place_opens_nothing() {
    let world = World::new(40);
    let (mut opener, mut commitment) = world.open();
    commitment.frame += 1;
    let erasures = nobody();
    let opening = Opening { keys: &world.register, erasures: &erasures, asked: &|_| true, names: None };
    let opened = opener.open_groups(&commitment, &world.keys, &opening).unwrap();
    let error = opened.unwrap_err();
    assert_eq!(error.kind, FindingKind::BlockInvalid);
    assert!(error.detail.contains("commits to"), "{}", error.detail);
}

/// What opening all groups comes to, where names are compared with numbers or are not.
fn opened(world: &World, compared: bool) -> Result<(), String> {
    let (mut opener, commitment) = world.open();
    let (erasures, names) = (nobody(), Names::new(&world.register));
    let names = compared.then_some(&names);
    let opening = Opening { keys: &world.register, erasures: &erasures, asked: &|_| true, names };
    // Twice: what was found the first time is remembered.
    let mut opened = || opener.open_groups(&commitment, &world.keys, &opening).unwrap();
    let first = opened().map_err(|error| error.detail);
    assert_eq!(opened().map_err(|error| error.detail), first);
    first
}

#[test]
fn every_entry_of_a_group_is_of_its_data_subjects_and_of_no_others() {
    let mut world = World::new(60);
    assert_eq!(opened(&world, true), Ok(()));
    // Of two groups with as many data subjects each, an entry of one is in the other.
    world.regroup(|grouping| {
        let alike = |one: u64, other: u64| {
            let [one, other] =
                [one, other].map(|group| grouping.sets[usize::try_from(group).unwrap() - 1].numbers.len());
            one == other
        };
        let of = |group| grouping.member.iter().position(|member| *member == group).unwrap();
        let pairs = (1..5).flat_map(|one| (one + 1..6).map(move |other| (one, other)));
        let (one, other) = pairs.into_iter().find(|(one, other)| alike(*one, *other)).unwrap();
        let last = grouping.member.iter().rposition(|member| *member == other).unwrap();
        assert!(of(one) < of(other) && of(other) < last);
        grouping.member[last] = one;
    });
    for compared in [false, true] {
        let detail = opened(&world, compared).unwrap_err();
        assert!(detail.contains("other data subjects than the group is"), "{detail}");
    }
}

#[test]
fn a_block_has_one_group_for_each_set_of_data_subjects() {
    let mut world = World::new(60);
    world.regroup(|grouping| {
        let group = grouping.member.iter().find(|group| **group != 0).copied().unwrap();
        let last = grouping.member.iter().rposition(|member| *member == group).unwrap();
        let set = &grouping.sets[usize::try_from(group).unwrap() - 1];
        let key = GroupKey { key: set.key.key.clone(), commitment: set.key.commitment };
        let again = SubjectSet { numbers: set.numbers.clone(), key };
        grouping.member[last] = grouping.sets.len() as u64 + 1;
        grouping.sets.push(again);
    });
    let refused = world.try_open(&mut BlockOpener::default()).unwrap_err();
    assert_eq!(refused.kind, FindingKind::BlockInvalid);
    assert!(refused.detail.contains("of the same data subjects"), "{}", refused.detail);
}

#[test]
fn a_group_under_the_keys_of_others_than_it_names_is_found_where_names_can_be_told() {
    let mut world = World::new(60);
    world.regroup(|grouping| {
        let of_one = |at: &usize| grouping.sets[*at].numbers.len() == 1;
        let [one, other] = [0, 1].map(|nth| (0..grouping.sets.len()).filter(of_one).nth(nth).unwrap());
        grouping.sets.swap(one, other);
    });
    assert_eq!(opened(&world, false), Ok(()), "nobody can tell");
    let detail = opened(&world, true).unwrap_err();
    assert!(detail.contains("other data subjects than it names"), "{detail}");
}

#[test]
fn the_frame_depends_on_rows_keys_and_numbers_alone() {
    let world = World::new(90);
    let again = World::seal(&world.rows, &world.register, &world.keys, Compression::FAST);
    assert_eq!((again.body, again.encoded), (world.sealed.body, world.sealed.encoded));
}

#[test]
fn a_unit_of_a_group_binds_its_entries_subjects_and_bytes() {
    let world = World::new(60);
    let (opener, _) = world.open();
    let content = opener.groups().content(0);
    let rows = [(7, &b"one"[..]), (9, b"other")];
    let unit = |rows: &[(u64, &[u8])], content: GroupContent<'_>| {
        unit::group_unit(HashId::Sha256, &[1; 16], rows.iter().copied(), &content, &mut Vec::new())
    };
    let base = unit(&rows, content);
    let (subjects, commitment) = ([content.subjects, &[77]].concat(), Hash([1; 32]));
    for other in [
        unit(&[(8, b"one"), (9, b"other")], content),
        unit(&[(7, b"on"), (9, b"eother")], content),
        unit(&[(7, b"one")], content),
        unit(&rows, GroupContent { personal: 0, ..content }),
        unit(&rows, GroupContent { subjects: &subjects, ..content }),
        unit(&rows, GroupContent { ciphertext: &content.ciphertext[1..], ..content }),
        unit(&rows, GroupContent { commitment: &commitment, ..content }),
    ] {
        assert_ne!(base, other);
    }
}

/// Everybody of a block is erased in turn: nothing that only they had is left in it, and what is common stays as it was. How much
/// that tells is in docs/format.md, "Common items", and so it is here: of a word that just as many have as must, that one of those
/// who are erased had it.
#[test]
fn of_whoever_is_erased_nothing_remains_but_what_others_have_too() {
    const PEOPLE: u64 = 24;
    const COMMON: u32 = 8;
    let own =
        |person: u64| [format!("own{person}word"), format!("/of{person}/"), format!("person_{person}_")];
    let rows = (0..PEOPLE).flat_map(|person| {
        (0..2).map(move |turn| {
            let [word, path, name] = own(person);
            // Eight refer to the word "scarce" and the others to "plenty", which is in the shape of all besides.
            let scarce = if person < COMMON.into() { "scarce" } else { "plenty" };
            let payload =
                format!("{{\"what\":\"{scarce}\",\"note\":\"plenty\",\"own\":\"{word}\",\"turn\":{turn}}}");
            let entry = Entry::new("read", &path).time(0).subject(&name).payload(&payload);
            let mut row = vec![0; entry.measure().unwrap()];
            entry.encode(0, &mut row);
            row
        })
    });
    let mut world = World::of(rows.collect());
    world.regroup(|grouping| grouping.common = COMMON);
    let has = |bytes: &[u8], word: &str| bytes.windows(word.len()).any(|part| part == word.as_bytes());
    let of_all = world.open_groups(None);
    let items = of_all.items().iter().map(<[u8]>::to_vec).collect::<Vec<_>>();
    let position = |word: &str| items.iter().position(|item| item[1..] == *word.as_bytes()).unwrap();
    let users = |opener: &BlockOpener, item: usize| {
        let uses = |group: &usize| opener.items_of(&[*group]).unwrap().contains(&item);
        (0..opener.groups().len()).filter(uses).count()
    };
    assert_eq!((users(&of_all, position("scarce")), users(&of_all, position("plenty"))), (8, 16));
    for person in 0..PEOPLE {
        let name = own(person)[2].clone();
        world.register.erased = BTreeSet::from([name.clone()]);
        let opener = world.open_groups(None);
        // All that anybody can still read: the block's rows with what opens of its groups, and the common items.
        let mut left = opener.rows().iter().flatten().copied().collect::<Vec<_>>();
        left.extend(opener.items().iter().flatten());
        for other in 0..PEOPLE {
            assert!(own(other).iter().all(|word| has(&left, word) == (other != person)), "{person} {other}");
        }
        assert!(opener.items().iter().eq(items.iter().map(Vec::as_slice)), "the items are what they were");
        // What remains of them, to the byte: their entries' shared rows.
        let theirs = (0..world.rows.len()).filter(|row| world.subjects(*row).contains(&name));
        for row in theirs {
            assert_eq!(opener.rows()[row], opener.shared_rows()[row]);
            assert!(opener.withheld(row).is_some());
        }
        // Of the eight one is missing, which tells that they had the word.
        let had_it = person < COMMON.into();
        let left = (users(&opener, position("scarce")), users(&opener, position("plenty")));
        assert_eq!(left, if had_it { (7, 16) } else { (8, 15) });
    }
}

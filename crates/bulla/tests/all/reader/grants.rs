//! Grants: an auditor reads the groups of what was asked for, field by field, and of no other group anything personal.

use super::groups::log;
use super::world::*;
use crate::helpers::Rng;
use bulla::keys::identities::generate;
use bulla::keys::plugin::DEFAULT_TIMEOUT;
use bulla::keys::recipients::{Age, IdentityFile};
use bulla::{ErrorKind, Grant, Query};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The block of an entry, and whom it is about.
type Group = (u64, BTreeSet<String>);

/// Of each entry its group, if it is in one.
fn groups(world: &World) -> BTreeMap<u64, Option<Group>> {
    let blocks = blocks(&world.image());
    let group = |(number, row): (u64, usize)| {
        let after = blocks.partition_point(|block| block.first_entry <= number);
        let subjects = world.rows[row].subjects.iter().flatten().cloned().collect::<BTreeSet<_>>();
        (number, (!subjects.is_empty()).then_some((blocks[after - 1].frame, subjects)))
    };
    world.numbers().into_iter().map(group).collect()
}

/// As somebody else gets it.
fn handed_over(world: &World, grant: &Grant) -> bulla::Result<Grant> {
    let (identity, recipient) = generate();
    let file = grant.seal(&[recipient], &Age::default(), DEFAULT_TIMEOUT).unwrap();
    let log = blocks(&world.image())[0].log_id;
    let (stranger, _) = generate();
    let refused = Grant::open(&file, &IdentityFile::parse(&stranger).unwrap(), log).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NoKey);
    Grant::open(&file, &IdentityFile::parse(&identity).unwrap(), log)
}

#[test]
fn a_grant_opens_the_groups_of_what_was_asked_for_and_no_other() {
    let (mut opened, mut closed, mut nothing) = (0, 0, 0);
    for seed in 0..12 {
        let world = log(seed, 5);
        let (image, groups, mut rng) = (world.image(), groups(&world), Rng(seed));
        let (all, _) = answer(&world.reader(image.clone()), &Query::new()).unwrap();
        for _ in 0..6 {
            let query = some_query(&mut rng, world.rows.len() as u64);
            let met = world.expected(&query).into_iter().filter_map(|number| groups[&number].clone());
            let met = met.collect::<BTreeSet<_>>();
            let granted = match world.reader(image.clone()).grant(&query) {
                Err(error) => {
                    assert_eq!((error.kind(), met.len()), (ErrorKind::Refused, 0), "{query:?}: {error}");
                    nothing += 1;
                    continue;
                }
                Ok(granted) => granted,
            };
            let is_met = |number: &u64| groups[number].as_ref().is_some_and(|group| met.contains(group));
            let entries = all.iter().filter(|(number, _)| is_met(number)).count() as u64;
            assert_eq!((granted.groups, granted.entries), (met.len() as u64, entries), "{query:?}");
            assert!(granted.asked <= granted.entries && granted.asked <= granted.read.entries);

            let grant = Arc::new(handed_over(&world, &granted.grant).unwrap());
            let auditor = reader(image.clone(), &world.key).group_keys(grant);
            let (seen, report) = answer(&auditor, &Query::new()).unwrap();
            for ((number, line), (_, whole)) in seen.iter().zip(&all) {
                let given = groups[number].is_none() || is_met(number);
                assert_eq!(line == whole, given, "{query:?}: {number}");
                assert_eq!(String::from_utf8_lossy(line).contains("location"), given);
            }
            assert_eq!((seen.len(), report.withheld.total()), (all.len(), report.withheld.not_given));
            // The same query finds what was granted of it, under the names that people have.
            assert_eq!(
                answer(&auditor, &query).unwrap().0.len() as u64,
                expected_of(&world, &query, &groups, &met)
            );
            opened += entries;
            closed += report.withheld.not_given;
        }
    }
    assert!(opened > 500 && closed > 1000 && nothing > 0, "{opened}, {closed}, {nothing}");
}

/// How many entries meet the query as far as the grant opens them.
fn expected_of(
    world: &World,
    query: &Query,
    groups: &BTreeMap<u64, Option<Group>>,
    met: &BTreeSet<Group>,
) -> u64 {
    let readable = |number: &u64| groups[number].as_ref().is_none_or(|group| met.contains(group));
    let shared = !query.asks_for_personal();
    world.expected(query).iter().filter(|number| readable(number) || shared).count() as u64
}

#[test]
fn a_grant_is_for_one_log_and_says_nothing_that_is_secret() {
    let world = log(3, 4);
    let granted = world.reader(world.image()).grant(&Query::new().operation("read")).unwrap();
    let (identity, recipient) = generate();
    let identity = IdentityFile::parse(&identity).unwrap();
    let file = granted.grant.seal(&[recipient], &Age::default(), DEFAULT_TIMEOUT).unwrap();
    let other = Grant::open(&file, &identity, bulla_proof::commitment::LogId([1; 16])).unwrap_err();
    assert_eq!(other.kind(), ErrorKind::Refused, "{other}");
    let log = blocks(&world.image())[0].log_id;
    let cut = Grant::open(&file[..file.len() - 1], &identity, log).unwrap_err();
    assert_eq!(cut.kind(), ErrorKind::Tampered, "{cut}");
    // What does not begin as a grant is another file.
    for other in [&file[..10], b""] {
        assert_eq!(Grant::open(other, &identity, log).unwrap_err().kind(), ErrorKind::Invalid);
    }
    let shown = format!("{granted:?}");
    assert!(shown.contains("groups") && !shown.contains("user_1") && shown.len() < 500, "{shown}");
    let error = world.reader(world.image()).grant(&Query::new().subject("nobody")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
}

//! Which entries of a block form which personal group: one for each set of data subjects.

use crate::format::groups::{Grouping, SubjectSet};
use bulla_crypto::group::{BlockContext, Subjects};
use bulla_crypto::yielding;
use bulla_proof::entry::{Field, RawRow};
use bulla_store::{Error, Result};
use bulla_vault::Subject;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use smallvec::SmallVec;

/// Of so many groups keys are derived at once.
const KEYS: usize = 64;

/// The data subjects of one entry, as indices into the list of all that were met.
type Set = SmallVec<[u32; 2]>;

/// Groups `rows`, whose data subjects `subjects` knows.
///
/// # Errors
/// Where bytes are no row, and as [`Subjects::resolve`].
pub(crate) fn group(rows: &[&[u8]], place: BlockContext<'_>, subjects: &dyn Subjects) -> Result<Grouping> {
    if !rows.iter().any(|row| has_subjects(row)) {
        return Ok(Grouping::NONE);
    }
    let mut met = Met::default();
    let mut sets = Vec::with_capacity(rows.len());
    for (index, row) in rows.iter().enumerate() {
        yielding::point_of_loop(index);
        sets.push(met.add(row)?);
    }
    let known = subjects.resolve(&met.names)?;
    let mut grouping = Grouping::NONE;
    let (mut groups, mut distinct) = (HashMap::<Set, u64, RandomState>::default(), Vec::new());
    grouping.member.reserve_exact(rows.len());
    for mut set in sets {
        if set.is_empty() {
            grouping.member.push(0);
            continue;
        }
        // Sets are ordered by number, so that the same data subjects make the same set in whatever order they are named.
        set.sort_unstable_by_key(|&place| known[place as usize].number);
        set.dedup();
        let next = groups.len() as u64 + 1;
        let group = *groups.entry_ref(&set).or_insert_with(|| next);
        if group == next {
            distinct.push(set);
        }
        grouping.member.push(group);
    }
    grouping.sets = keyed(place, &distinct, &known)?;
    Ok(grouping)
}

fn has_subjects(row: &[u8]) -> bool {
    RawRow::presence_of(row) & Field::Subject.bit() != 0
}

/// The groups of these sets, with their keys.
fn keyed(place: BlockContext<'_>, sets: &[Set], known: &[Subject]) -> Result<Vec<SubjectSet>> {
    let single = |set: &Set| match set[..] {
        [only] => Some(&known[only as usize]),
        _ => None,
    };
    let singles = sets.iter().filter_map(single).collect::<Vec<_>>();
    let mut keys = singles.chunks(KEYS).flat_map(|singles| {
        yielding::point();
        place.keys_of_singles(singles)
    });
    let keyed = |set: &Set| {
        let of_set = || set.iter().map(|&place| &known[place as usize]);
        let numbers = of_set().map(|subject| subject.number).collect::<SmallVec<_>>();
        if !numbers.is_sorted_by(|one, next| one < next) {
            return Err(Error::tampered("two data subjects have one number"));
        }
        let key = match single(set).and_then(|_| keys.next()) {
            Some(key) => key,
            None => place.secret(of_set().map(|subject| (subject.number, &subject.key)))?.key(),
        };
        Ok(SubjectSet { numbers, key })
    };
    sets.iter().map(keyed).collect()
}

/// The data subjects that were met, each once.
#[derive(Default)]
struct Met<'a> {
    names: Vec<&'a str>,
    places: HashMap<&'a str, u32, RandomState>,
}

impl<'a> Met<'a> {
    fn add(&mut self, row: &'a [u8]) -> Result<Set> {
        let subjects = RawRow::subjects_of(row).map_err(|error| Error::invalid(error.to_string()))?;
        subjects
            .into_iter()
            .flatten()
            .map(|subject| {
                let subject = std::str::from_utf8(subject);
                let subject = subject.map_err(|_| Error::invalid("a data subject is not UTF-8"))?;
                let next =
                    u32::try_from(self.names.len()).map_err(|_| Error::invalid("too many subjects"))?;
                let place = *self.places.entry(subject).or_insert(next);
                if place == next {
                    self.names.push(subject);
                }
                Ok(place)
            })
            .collect()
    }
}

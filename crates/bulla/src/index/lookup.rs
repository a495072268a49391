//! Looking a query up: which blocks need not be read.

use super::file::Parts;
use super::part::Part;
use super::{GROUP, GROUPED, Searched, token};
use crate::fields::filter::TextField;
use crate::scan::keyless::Keyless;
use crate::scan::query::Query;
use crate::scan::stored_tree::Encoded;
use bulla_crypto::environment::AesGcm;
use bulla_crypto::epoch::EpochKeys;
use bulla_proof::commitment::Commitment;
use bulla_store::Store;

/// Looks blocks up in the order of their frames.
pub(crate) struct Lookup<'a> {
    store: &'a dyn Store,
    /// Of each the values that a block can have, one at least, to hold what is wanted.
    wanted: Vec<Vec<Value>>,
    /// The parts of the epoch that was looked at last.
    epoch: Option<(u64, Parts)>,
    group: Option<Group>,
}

/// A value that tells of something wanted.
struct Value {
    field: Searched,
    value: Vec<u8>,
    /// In blocks from this frame on.
    from: u64,
}

/// What the parts of one group say.
struct Group {
    epoch: u64,
    number: u64,
    covered: u64,
    /// Blocks that can hold all that is wanted.
    hits: u64,
}

/// What is known of the data subjects that a query asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// Groups of these numbers are theirs, and no others.
    Numbers(Vec<u64>),
    /// Nothing, since there are no keys that could tell, or no names: any group can be theirs.
    Unknown,
}

/// What the index says of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Indexed {
    /// It has nothing that is wanted.
    Without,
    /// It may have.
    Candidate,
    /// Nothing.
    Uncovered,
}

impl<'a> Lookup<'a> {
    /// Looks up what `query` asks for; of data subjects it is `named` which groups can be theirs. So can be groups of `keyless`.
    /// What a value begins with cannot be looked up.
    pub(crate) fn new(store: &'a dyn Store, query: &Query, named: &Named, keyless: &Keyless) -> Self {
        let value = |field, value: &[u8]| Value { field, value: value.to_vec(), from: 0 };
        let number = |number: u64| value(Searched::Number, &number.to_le_bytes());
        let grouped = |from| Value { from, ..value(Searched::Grouped, GROUPED) };
        let one_of = |field, searched| {
            let values = query.fields.values(field)?;
            Some(values.into_iter().map(|text| value(searched, text)).collect::<Vec<_>>())
        };
        let mut wanted = Vec::new();
        if let Some(mut values) = one_of(TextField::Subject, Searched::Subject) {
            values.push(grouped(keyless.first_frame()));
            match named {
                Named::Numbers(numbers) => values.extend(numbers.iter().copied().map(number)),
                Named::Unknown => values.push(grouped(0)),
            }
            match keyless.listed() {
                Some(numbers) => values.extend(numbers.map(number)),
                None => values.push(grouped(0)),
            }
            wanted.push(values);
        }
        if let Some(mut values) = one_of(TextField::Stream, Searched::Stream) {
            values.push(grouped(0));
            wanted.push(values);
        }
        wanted.extend(one_of(TextField::Operation, Searched::Operation));
        wanted.extend(one_of(TextField::Processor, Searched::Processor));
        Lookup { store, wanted, epoch: None, group: None }
    }

    /// Looks up which blocks have groups of one of these numbers.
    pub(crate) fn of_numbers(store: &'a dyn Store, numbers: &[u64]) -> Self {
        let value =
            |number: &u64| Value { field: Searched::Number, value: number.to_le_bytes().to_vec(), from: 0 };
        Lookup { store, wanted: vec![numbers.iter().map(value).collect()], epoch: None, group: None }
    }

    /// What the index says of the block with this commitment; `bundle` has the commitments of the frames around it,
    /// and the number of the first of those.
    pub(crate) fn look(
        &mut self,
        commitment: &Commitment,
        keys: &EpochKeys,
        bundle: (u64, &[Encoded]),
    ) -> Indexed {
        if self.wanted.is_empty() {
            return Indexed::Candidate;
        }
        let (epoch, number, bit) = (commitment.epoch, commitment.frame / GROUP, commitment.frame % GROUP);
        if self.group.as_ref().is_none_or(|group| (group.epoch, group.number) != (epoch, number)) {
            self.group = Some(self.load(epoch, number, keys, bundle));
        }
        match &self.group {
            Some(group) if group.covered >> bit & 1 == 1 => match group.hits >> bit & 1 {
                1 => Indexed::Candidate,
                _ => Indexed::Without,
            },
            _ => Indexed::Uncovered,
        }
    }

    fn load(
        &mut self,
        epoch: u64,
        number: u64,
        keys: &EpochKeys,
        (first, bundle): (u64, &[Encoded]),
    ) -> Group {
        if self.epoch.as_ref().is_none_or(|(known, _)| *known != epoch) {
            // An index that cannot be read tells nothing.
            self.epoch = Some((epoch, Parts::load(self.store, epoch).unwrap_or_default()));
        }
        let mut group = Group { epoch, number, covered: 0, hits: 0 };
        let Some((_, parts)) = &self.epoch else { return group };
        for (head, offset) in parts.heads.iter().filter(|(head, _)| head.group == number) {
            let commitment = |frame: u64| bundle.get(usize::try_from(frame.checked_sub(first)?).ok()?);
            if !head.is_of(commitment) {
                continue;
            }
            let part =
                parts.read(head, *offset).ok().and_then(|text| Part::open(head, text, keys, &AesGcm).ok());
            let Some(part) = part else { continue };
            let having = |values: &Vec<Value>| {
                values.iter().fold(0, |any, value| any | value.blocks(&part, keys, number))
            };
            group.covered |= head.covered;
            group.hits |= self.wanted.iter().map(having).fold(head.covered, |hits, having| hits & having);
        }
        group
    }
}

impl Value {
    /// The blocks of a part, of the group with this number, that have it and count.
    fn blocks(&self, part: &Part, keys: &EpochKeys, group: u64) -> u64 {
        match u32::try_from(self.from.saturating_sub(group * GROUP)) {
            Ok(before) if before < u64::BITS => {
                part.having(token(keys, self.field, &self.value)) & u64::MAX << before
            }
            _ => 0,
        }
    }
}

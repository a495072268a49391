//! Looking a query up: which blocks need not be read.

use super::file::Parts;
use super::part::Part;
use super::{GROUP, GROUPED, Searched, token};
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
    wanted: Vec<Vec<(Searched, Vec<u8>)>>,
    /// The parts of the epoch that was looked at last.
    epoch: Option<(u64, Parts)>,
    group: Option<Group>,
}

/// What the parts of one group say.
struct Group {
    epoch: u64,
    number: u64,
    covered: u64,
    /// Blocks that can hold all that is wanted.
    hits: u64,
}

/// What is known of the data subject that a query asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// Groups of this number are theirs.
    Number(u64),
    /// No group is.
    Nobody,
    /// Nothing, since there are no keys that could tell: any group can be theirs.
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
    /// Looks up what `query` asks for; of a data subject it is `named` which groups can be theirs.
    pub(crate) fn new(store: &'a dyn Store, query: &Query, named: Named) -> Self {
        let value = |field, value: &str| (field, value.as_bytes().to_vec());
        let mut wanted = Vec::new();
        if let Some(subject) = &query.subject {
            let group = match named {
                Named::Number(number) => Some((Searched::Number, number.to_le_bytes().to_vec())),
                Named::Nobody => None,
                Named::Unknown => Some((Searched::Grouped, GROUPED.to_vec())),
            };
            wanted.push([value(Searched::Subject, subject)].into_iter().chain(group).collect());
        }
        if let Some(stream) = &query.stream {
            wanted.push(vec![value(Searched::Stream, stream), (Searched::Grouped, GROUPED.to_vec())]);
        }
        wanted.extend(query.operation.iter().map(|operation| vec![value(Searched::Operation, operation)]));
        wanted.extend(query.processor.iter().map(|processor| vec![value(Searched::Processor, processor)]));
        Lookup { store, wanted, epoch: None, group: None }
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
            let having = |values: &Vec<(Searched, Vec<u8>)>| {
                values.iter().fold(0, |any, (field, value)| any | part.having(token(keys, *field, value)))
            };
            group.covered |= head.covered;
            group.hits |= self.wanted.iter().map(having).fold(head.covered, |hits, having| hits & having);
        }
        group
    }
}

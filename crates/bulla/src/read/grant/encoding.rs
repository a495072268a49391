//! What the file of a grant holds, once it is decrypted. It has one spelling.
//!
//! **Invariant:** room is made for no more than the bytes that are left can fill.

use super::{Grant, Group};
use bulla_proof::commitment::LogId;
use bulla_proof::entry::{MAX_STRING, MAX_SUBJECTS};
use bulla_proof::group::GroupSecret;
use bulla_proof::varint;
use std::collections::BTreeMap;
use zeroize::Zeroizing;

pub(super) const MAGIC: &[u8; 4] = b"BulG";
const VERSION: u8 = 1;
/// The least that a group takes: frame, count of subjects, one, and the secret.
const MIN_GROUP: usize = 3 + GroupSecret::LENGTH;

impl Grant {
    pub(crate) fn encode(&self) -> Zeroizing<Vec<u8>> {
        let group = |group: &Group| MIN_GROUP + varint::MAX_LENGTH * (1 + group.subjects.len());
        let groups = self.groups.iter().map(group).sum::<usize>();
        let names = self.subjects.keys().map(|name| name.len() + 2 * varint::MAX_LENGTH).sum::<usize>();
        // With room for all of it from the start: a buffer that grows leaves copies behind.
        let mut out = Zeroizing::new(Vec::with_capacity(64 + groups + names));
        out.extend_from_slice(MAGIC);
        out.push(VERSION);
        out.extend_from_slice(&self.log.0);
        out.extend_from_slice(&self.tree_size.to_le_bytes());
        varint::push(self.subjects.len() as u64, &mut out);
        for (name, number) in &self.subjects {
            varint::push(name.len() as u64, &mut out);
            out.extend_from_slice(name.as_bytes());
            varint::push(*number, &mut out);
        }
        varint::push(self.groups.len() as u64, &mut out);
        let mut frame = 0;
        for group in &self.groups {
            varint::push(group.frame - frame, &mut out);
            frame = group.frame;
            varint::push(group.subjects.len() as u64, &mut out);
            let mut least = 0;
            for &number in &group.subjects {
                varint::push(number - least, &mut out);
                least = number.saturating_add(1);
            }
            out.extend_from_slice(group.secret.as_bytes());
        }
        out
    }

    /// `None` where the bytes are no grant, or not the one spelling of one.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = Input { rest: bytes };
        if input.array::<4>()? != *MAGIC || input.array::<1>()? != [VERSION] {
            return None;
        }
        let (log, tree_size) = (LogId(input.array()?), u64::from_le_bytes(input.array()?));
        let subjects = input.subjects()?;
        let groups = input.groups(tree_size)?;
        input.rest.is_empty().then_some(Grant { log, tree_size, groups, subjects })
    }
}

/// What is left of a grant.
struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    /// Names ascend, each once.
    fn subjects(&mut self) -> Option<BTreeMap<String, u64>> {
        let mut subjects = BTreeMap::new();
        for _ in 0..self.varint()? {
            let length = usize::try_from(self.varint()?).ok().filter(|&length| length <= MAX_STRING)?;
            let name = std::str::from_utf8(self.take(length)?).ok()?;
            if subjects.last_key_value().is_some_and(|(last, _): (&String, _)| last.as_str() >= name) {
                return None;
            }
            subjects.insert(name.to_owned(), self.varint()?);
        }
        Some(subjects)
    }

    /// Groups ascend by frame and subjects, each once.
    fn groups(&mut self, tree_size: u64) -> Option<Vec<Group>> {
        let count = usize::try_from(self.varint()?).ok()?;
        if count > self.rest.len() / MIN_GROUP {
            return None;
        }
        let mut groups = Vec::<Group>::with_capacity(count);
        let mut frame = 0_u64;
        for _ in 0..count {
            frame = frame.checked_add(self.varint()?).filter(|&frame| frame < tree_size)?;
            let group = Group { frame, subjects: self.numbers()?, secret: GroupSecret::new(self.array()?) };
            if groups.last().is_some_and(|last| last.place() >= group.place()) {
                return None;
            }
            groups.push(group);
        }
        Some(groups)
    }

    /// Numbers ascend, each once.
    fn numbers(&mut self) -> Option<Vec<u64>> {
        let count = usize::try_from(self.varint()?).ok()?;
        if !(1..=MAX_SUBJECTS).contains(&count) {
            return None;
        }
        let (mut numbers, mut least) = (Vec::with_capacity(count), Some(0_u64));
        for _ in 0..count {
            let number = least?.checked_add(self.varint()?)?;
            least = number.checked_add(1);
            numbers.push(number);
        }
        Some(numbers)
    }

    fn varint(&mut self) -> Option<u64> {
        varint::take(&mut self.rest).ok()
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*bytes)
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant() -> Grant {
        let mut next = 0;
        let mut group = |frame, subjects: &[u64]| {
            next += 1;
            let secret = GroupSecret::new([next; GroupSecret::LENGTH]);
            Group { frame, subjects: subjects.to_vec(), secret }
        };
        let groups = vec![group(3, &[0]), group(3, &[0, 7]), group(3, &[7]), group(300, &[u64::MAX])];
        let subjects =
            [("ada", 7), ("", 0), ("bob", u64::MAX)].map(|(name, number)| (name.to_owned(), number));
        Grant { log: LogId([9; 16]), tree_size: 301, groups, subjects: subjects.into() }
    }

    #[test]
    fn what_was_encoded_decodes_and_has_one_spelling() {
        let bytes = grant().encode();
        let decoded = Grant::decode(&bytes).unwrap();
        assert_eq!(
            (decoded.log, decoded.tree_size, &decoded.subjects),
            (LogId([9; 16]), 301, &grant().subjects)
        );
        assert!(
            decoded
                .groups
                .iter()
                .zip(grant().groups)
                .all(|(one, other)| { one.place() == other.place() && one.secret == other.secret })
        );
        assert_eq!(decoded.encode(), bytes);
        // 4 + 1 + 16 + 8, then nothing but names, numbers and secrets.
        let names = 1 + (1 + 1) + (1 + 3 + 1) + (1 + 3 + 10);
        let groups = 1 + 3 * 2 + (2 + 1) + 1 + 2 + 1 + 10 + 4 * 32;
        assert_eq!(bytes.len(), 29 + names + groups);
        for end in 0..bytes.len() {
            assert!(Grant::decode(&bytes[..end]).is_none(), "cut at {end}");
        }
        assert!(Grant::decode(&[&bytes[..], &[0]].concat()).is_none());
    }

    #[test]
    fn what_is_out_of_order_twice_or_too_much_is_no_grant() {
        let broken = |change: fn(&mut Grant)| {
            let mut grant = grant();
            change(&mut grant);
            Grant::decode(&grant.encode()).is_none()
        };
        assert!(!broken(|_| {}));
        assert!(broken(|grant| grant.groups.swap(0, 1)), "not in order");
        assert!(broken(|grant| grant.groups[1].subjects = vec![0]), "twice");
        assert!(broken(|grant| grant.groups[0].subjects = Vec::new()), "nobody's");
        assert!(broken(|grant| grant.groups[1].subjects = (0..65).collect()), "too many subjects");
        assert!(broken(|grant| grant.tree_size = 300), "beyond the tree");
        assert!(broken(|grant| grant.subjects.extend([("x".repeat(MAX_STRING + 1), 1)])), "too long a name");
        // Many groups, and no bytes for them.
        let start = grant().encode()[..29].to_vec();
        for count in [1_u64 << 20, u64::MAX] {
            let mut many = [&start[..], &[0]].concat();
            varint::push(count, &mut many);
            assert!(Grant::decode(&many).is_none());
        }
    }
}

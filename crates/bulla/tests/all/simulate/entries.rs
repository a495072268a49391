//! The entries that a simulation appends: each follows from its producer and its place among that one's, so that whoever reads the
//! log can say which one it is, and what of it has to be there.

use super::host::HostClock;
use super::outcome::{Outcome, must};
use crate::helpers::Rng;
use bulla::Entry;

/// The names of data subjects, of which a log knows some.
pub(super) const NAMES: [&str; 8] =
    ["user_1", "user_2", "Jos\u{e9}", "a name with spaces", "0", "user_10", "last", "user_1 "];

/// Which entry it is: of which producer, and which of that one's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Id {
    pub(super) producer: u64,
    pub(super) index: u64,
}

impl Id {
    fn packed(self) -> u64 {
        self.producer << 32 | self.index
    }

    /// The entry that has this duration: it stays when what is personal is erased.
    pub(super) fn of(entry: &Entry<'_>) -> Outcome<Self> {
        let packed = entry.duration.ok_or("an entry has no duration")?;
        Ok(Id { producer: packed >> 32, index: packed & 0xffff_ffff })
    }
}

/// An entry's content.
pub(super) struct Made {
    id: Id,
    time: Option<i64>,
    operation: &'static str,
    location: String,
    /// Whose it is, by their places in [`NAMES`]; `None` where the field is absent.
    subjects: Option<Vec<usize>>,
    purpose: Option<&'static str>,
    stream: Option<&'static str>,
    status: Option<u32>,
    payload: Option<Vec<u8>>,
}

impl Made {
    /// The entry `id` of the simulation with this seed; payloads have up to about so many bytes, few of them more.
    pub(super) fn new(seed: u64, payload: u64, id: Id) -> Self {
        let mut rng = Rng(seed ^ id.packed().wrapping_mul(0x9e37_79b9_7f4a_7c15));
        // Neighbours differ from the first draw on.
        rng.next();
        let subjects = match rng.below(10) {
            0 => None,
            1 => Some(Vec::new()),
            2..=6 => Some(vec![rng.below(8) as usize]),
            count => Some((0..count - 5).map(|_| rng.below(8) as usize).collect::<Vec<_>>()),
        };
        let subjects = subjects.map(|mut subjects| {
            // Who is named twice is another matter.
            subjects.sort_unstable();
            subjects.dedup();
            subjects
        });
        let length = match rng.below(12) {
            0 => payload + rng.below(3 * payload),
            _ => rng.below(payload + 1),
        };
        let payload = (rng.below(5) > 0).then(|| (0..length).map(|_| (rng.next() >> 32) as u8).collect());
        let at = HostClock::START + id.index as i64 * 1_000_003 - rng.below(3_000_000_000) as i64;
        Made {
            id,
            time: (rng.below(4) > 0).then_some(at),
            operation: rng.one::<&str>(&["read", "write", "delete", "GET"]),
            location: format!("p{} {}", id.producer, id.index),
            subjects,
            purpose: *rng.one(&[None, Some(""), Some("support"), Some("billing")]),
            stream: *rng.one(&[None, Some("a"), Some("b")]),
            status: (rng.below(2) == 0).then(|| rng.below(600) as u32),
            payload,
        }
    }

    pub(super) fn entry(&self) -> Entry<'_> {
        let mut entry = Entry::new(self.operation, &self.location);
        entry.time = self.time;
        entry.subjects =
            self.subjects.as_ref().map(|subjects| subjects.iter().map(|name| NAMES[*name]).collect());
        entry.purpose = self.purpose;
        entry.stream = self.stream;
        entry.status = self.status;
        entry.duration = Some(self.id.packed());
        entry.payload = self.payload.as_deref();
        entry
    }

    pub(super) fn id(&self) -> Id {
        self.id
    }

    /// Whose it is, by their places in [`NAMES`].
    pub(super) fn subjects(&self) -> &[usize] {
        self.subjects.as_deref().unwrap_or_default()
    }

    /// That `found` is this entry, whole or without what is personal. Says whether it is whole.
    pub(super) fn check(&self, found: &Entry<'_>) -> Outcome<bool> {
        let mut expected = self.entry();
        // The writer's clock gave the time where there was none.
        expected.time = self.time.or(found.time);
        let whole = found.location.is_some();
        if !whole {
            must!(!self.subjects().is_empty(), "{:?} is nobody's, and its personal fields are gone", self.id);
            (expected.location, expected.subjects, expected.stream, expected.payload) =
                (None, None, None, None);
        }
        must!(row(found) == row(&expected), "{:?} should be {expected:?}, is {found:?}", self.id);
        Ok(whole)
    }
}

/// An entry has one row, and a row is of one entry.
fn row(entry: &Entry<'_>) -> Vec<u8> {
    let mut row = vec![0; entry.measure().unwrap()];
    entry.encode(entry.time.unwrap(), &mut row);
    row
}

//! `integrity`: the lines of the log integrity benchmark, of about 28 bytes, each the payload of an entry.
//!
//! A line is `user_<4 digits> <verb of 4 letters> record_<6 digits>`, 28 bytes; time steps by a millisecond. The
//! entropy of an entry in bits is `log₂ 10⁴ + log₂ 8 + log₂ 10⁶`.

use crate::clock::Clock;
use crate::digits::padded;
use crate::entropy::uniform;
use crate::random::{Random, field, lower, scale, upper};
use bulla_proof::Entry;

const VERBS: [&str; 8] = ["read", "edit", "copy", "move", "open", "lock", "sign", "send"];
const USERS: u32 = 10_000;
const RECORDS: u32 = 1_000_000;
const STEP: u32 = 1000;

pub(crate) fn entropy_per_entry() -> f64 {
    [USERS, 8, RECORDS].map(uniform).iter().sum::<f64>() / 8.0
}

/// One producer's entries.
#[derive(Debug)]
pub struct Integrity {
    random: Random,
    clock: Clock,
    line: Vec<u8>,
}

impl Integrity {
    /// The entries of producer number `producer`.
    pub fn new(seed: u64, producer: u32) -> Self {
        Integrity { random: Random::for_producer(seed, producer), clock: Clock::new(), line: Vec::new() }
    }

    /// The next entry.
    #[inline]
    pub fn next_entry(&mut self) -> Entry<'_> {
        let (who, what) = (self.random.next(), self.random.next());
        self.line.clear();
        self.line.extend_from_slice(b"user_");
        padded(scale(upper(who), USERS).into(), 4, &mut self.line);
        self.line.push(b' ');
        self.line.extend_from_slice(VERBS[field(who, 0, 8)].as_bytes());
        self.line.extend_from_slice(b" record_");
        padded(scale(lower(what), RECORDS).into(), 6, &mut self.line);
        Entry {
            time: Some(self.clock.step(STEP)),
            operation: "log",
            payload: Some(&self.line),
            ..Entry::default()
        }
    }
}

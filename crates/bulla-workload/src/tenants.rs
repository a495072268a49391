//! `tenants`: a log of what is changed of many people, each of whom it says little about.
//!
//! Each entry is an operation on one of five attributes of one of 8,192 people, by one of 3 processors, for one of 3
//! purposes, with a sentence that says what was changed: some 90 bytes in all. It has no time: whoever appends it says
//! when that was.
//!
//! The entropy of an entry in bits is `log₂ 4 + log₂ 8192 + log₂ 5 + log₂ 3 + log₂ 3 + 2 · log₂ 1000 + log₂ 3` for
//! operation, person, attribute, processor, purpose, the values before and after, and the form.

use crate::digits::decimal;
use crate::entropy::uniform;
use crate::gdpr::numbered;
use crate::pool::Pool;
use crate::random::{Random, field, index_below, lower, scale, upper};
use bulla_proof::Entry;
use smallvec::smallvec;

/// The people that entries are about.
pub const PEOPLE: u32 = 8192;

const OPERATIONS: [&str; 4] = ["create", "read", "update", "delete"];
const ATTRIBUTES: [&str; 5] = ["email", "phone", "address", "profile", "consent"];
const PROCESSORS: [&str; 3] = ["crm", "billing", "support"];
const PURPOSES: [&str; 3] = ["service", "contract", "legal obligation"];
const FORMS: [&str; 3] = ["A", "B", "C"];
const VALUES: u32 = 1000;

pub(crate) fn entropy_per_entry() -> f64 {
    [4, PEOPLE, 5, 3, 3, VALUES, VALUES, 3].map(uniform).iter().sum::<f64>() / 8.0
}

/// One producer's entries.
#[derive(Debug)]
pub struct Tenants {
    random: Random,
    people: Pool,
    location: Vec<u8>,
    payload: Vec<u8>,
}

impl Tenants {
    /// The entries of producer number `producer`.
    pub fn new(seed: u64, producer: u32) -> Self {
        Tenants {
            random: Random::for_producer(seed, producer),
            people: numbered("user", 1, PEOPLE),
            location: Vec::new(),
            payload: Vec::new(),
        }
    }

    /// The next entry.
    #[inline]
    pub fn next_entry(&mut self) -> Entry<'_> {
        let [who, by, values, what] = std::array::from_fn(|_| self.random.next());
        let subject = self.people.choose(upper(who));
        self.location.clear();
        self.location.extend_from_slice(subject.as_bytes());
        self.location.push(b'/');
        self.location.extend_from_slice(one_of(&ATTRIBUTES, lower(who)).as_bytes());

        self.payload.clear();
        self.payload.extend_from_slice(b"value changed from ");
        decimal(scale(upper(values), VALUES).into(), &mut self.payload);
        self.payload.extend_from_slice(b" to ");
        decimal(scale(lower(values), VALUES).into(), &mut self.payload);
        self.payload.extend_from_slice(b" by form ");
        self.payload.extend_from_slice(one_of(&FORMS, upper(what)).as_bytes());
        self.payload.extend_from_slice(b", checked");
        Entry {
            operation: OPERATIONS[field(what, 0, 4)],
            location: Some(&self.location),
            subjects: Some(smallvec![subject]),
            processor: Some(one_of(&PROCESSORS, upper(by))),
            purpose: Some(one_of(&PURPOSES, lower(by))),
            payload: Some(&self.payload),
            ..Entry::default()
        }
    }
}

fn one_of(choices: &[&'static str], random: u32) -> &'static str {
    choices[index_below(random, choices.len())]
}

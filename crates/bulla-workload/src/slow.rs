//! `slow`: what a log sees when little happens: accesses to personal data, ten a second from each of 100 producers.
//! Pacing them is the caller's matter; their times are paced already.
//!
//! Each entry is an operation on one attribute of one of 1,000 users, as in [`gdpr`](crate::gdpr), for one of 8
//! purposes, by one of 20 services, from one of 200 addresses, with the size of what was touched, and without the
//! content. Time steps by 0 to 199,999 microseconds.
//!
//! The entropy of an entry in bits is `log₂ 4 + log₂ 1000 + log₂ 10 + log₂ 8 + log₂ 20 + log₂ 200 + log₂ 4096 +
//! log₂ 200,000` for operation, user, attribute, purpose, actor, client, size and time.

use crate::clock::Clock;
use crate::entropy::uniform;
use crate::gdpr::{numbered, write_location};
use crate::pool::Pool;
use crate::random::{Random, field, lower, scale, upper};
use bulla_proof::Entry;
use smallvec::smallvec;

const OPERATIONS: [&str; 4] = ["create", "read", "update", "delete"];
const PURPOSES: [&str; 8] = [
    "support",
    "billing",
    "fulfilment",
    "marketing",
    "security",
    "analytics",
    "legal obligation",
    "research",
];
const USERS: u32 = 1000;
const SERVICES: u32 = 20;
const CLIENTS: u32 = 200;
const SIZES: u32 = 4096;
const STEP: u32 = 200_000;

pub(crate) fn entropy_per_entry() -> f64 {
    [4, USERS, 10, 8, SERVICES, CLIENTS, SIZES, STEP].map(uniform).iter().sum::<f64>() / 8.0
}

/// One producer's entries.
#[derive(Debug)]
pub struct Slow {
    random: Random,
    clock: Clock,
    users: Pool,
    services: Pool,
    clients: Pool,
    location: Vec<u8>,
}

impl Slow {
    /// The entries of producer number `producer`.
    pub fn new(seed: u64, producer: u32) -> Self {
        Slow {
            random: Random::for_producer(seed, producer),
            clock: Clock::new(),
            users: numbered("user", 1, USERS),
            services: numbered("service", 1, SERVICES),
            clients: Pool::collect((1..=CLIENTS).map(|host| format!("10.0.0.{host}"))),
            location: Vec::new(),
        }
    }

    /// The next entry.
    #[inline]
    pub fn next_entry(&mut self) -> Entry<'_> {
        let (who, by, bits) = (self.random.next(), self.random.next(), self.random.next());
        let subject = self.users.choose(upper(who));
        write_location(subject, lower(who), &mut self.location);
        Entry {
            time: Some(self.clock.step(scale(upper(bits), STEP))),
            operation: OPERATIONS[field(bits, 0, 4)],
            location: Some(&self.location),
            subjects: Some(smallvec![subject]),
            purpose: Some(PURPOSES[field(bits, 2, 8)]),
            actor: Some(self.services.choose(upper(by))),
            client: Some(self.clients.choose(lower(by))),
            size: Some(field(bits, 5, SIZES) as u64),
            ..Entry::default()
        }
    }
}

//! The workloads by name, and a generator of any of them.

use crate::gdpr::{Gdpr, Vocabulary};
use crate::integrity::Integrity;
use crate::json::Json;
use crate::slow::Slow;
use crate::tenants::Tenants;
use crate::web::{Traffic, Web};
use bulla_proof::Entry;
use std::fmt;

/// A kind of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Workload {
    Gdpr,
    Gdpr50,
    Json,
    Web,
    WebSubjects,
    WebAdversarial,
    Integrity,
    Slow,
    Tenants,
}

impl Workload {
    /// Every workload.
    pub const ALL: [Workload; 9] = [
        Workload::Gdpr,
        Workload::Gdpr50,
        Workload::Json,
        Workload::Web,
        Workload::WebSubjects,
        Workload::WebAdversarial,
        Workload::Integrity,
        Workload::Slow,
        Workload::Tenants,
    ];

    /// Its name, as on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Workload::Gdpr => "gdpr",
            Workload::Gdpr50 => "gdpr-50",
            Workload::Json => "json",
            Workload::Web => "web",
            Workload::WebSubjects => "web-subjects",
            Workload::WebAdversarial => "web-adversarial",
            Workload::Integrity => "integrity",
            Workload::Slow => "slow",
            Workload::Tenants => "tenants",
        }
    }

    /// What it is, in a few words.
    pub const fn about(self) -> &'static str {
        match self {
            Workload::Gdpr => "operations on personal data, 4096 bytes of two words",
            Workload::Gdpr50 => "the same, of fifty words",
            Workload::Json => "an application's events, 200 to 600 bytes of JSON",
            Workload::Web => "requests for 1,000 paths from 5,000 addresses",
            Workload::WebSubjects => "the same, the address as data subject",
            Workload::WebAdversarial => "requests for 1,300,000 long locations",
            Workload::Integrity => "lines of 28 bytes",
            Workload::Slow => "accesses to personal data without their content",
            Workload::Tenants => "changes to the data of 8,192 people, without times",
        }
    }

    /// A generator of the entries of producer number `producer`.
    ///
    /// The same arguments give the same entries; different producers share the seed's pools and have streams of
    /// random numbers that do not overlap. It takes time in proportion to `producer`, a microsecond each.
    pub fn generator(self, seed: u64, producer: u32) -> Generator {
        match self {
            Workload::Gdpr => Generator::Gdpr(Gdpr::new(Vocabulary::Two, seed, producer)),
            Workload::Gdpr50 => Generator::Gdpr(Gdpr::new(Vocabulary::Fifty, seed, producer)),
            Workload::Json => Generator::Json(Json::new(seed, producer)),
            Workload::Web => Generator::Web(Web::new(Traffic::Plain, seed, producer)),
            Workload::WebSubjects => Generator::Web(Web::new(Traffic::Subjects, seed, producer)),
            Workload::WebAdversarial => Generator::Web(Web::new(Traffic::Adversarial, seed, producer)),
            Workload::Integrity => Generator::Integrity(Integrity::new(seed, producer)),
            Workload::Slow => Generator::Slow(Slow::new(seed, producer)),
            Workload::Tenants => Generator::Tenants(Tenants::new(seed, producer)),
        }
    }

    /// The entropy of an entry in bytes, by the formula of the workload's module.
    pub fn entropy_per_entry(self) -> f64 {
        match self {
            Workload::Gdpr => Vocabulary::Two.entropy_per_entry(),
            Workload::Gdpr50 => Vocabulary::Fifty.entropy_per_entry(),
            Workload::Json => crate::json::entropy_per_entry(),
            Workload::Web => Traffic::Plain.entropy_per_entry(),
            Workload::WebSubjects => Traffic::Subjects.entropy_per_entry(),
            Workload::WebAdversarial => Traffic::Adversarial.entropy_per_entry(),
            Workload::Integrity => crate::integrity::entropy_per_entry(),
            Workload::Slow => crate::slow::entropy_per_entry(),
            Workload::Tenants => crate::tenants::entropy_per_entry(),
        }
    }

    /// The part of [`Workload::pool_bytes`] that so many entries are expected to tell of: what was never chosen is in none.
    pub fn pool_bytes_in(self, entries: u64) -> f64 {
        let drawn = match self {
            Workload::Web => Traffic::Plain.drawn(entries),
            Workload::WebSubjects => Traffic::Subjects.drawn(entries),
            Workload::WebAdversarial => Traffic::Adversarial.drawn(entries),
            Workload::Gdpr | Workload::Gdpr50 | Workload::Json => 0.0,
            Workload::Integrity | Workload::Slow | Workload::Tenants => 0.0,
        };
        drawn * self.pool_bytes()
    }

    /// The entropy in bytes of what is drawn once from the seed: of the pools as sets, since the order in them says
    /// nothing. Names and words that are the same for every seed are not in it: a few kilobytes at most.
    pub fn pool_bytes(self) -> f64 {
        match self {
            Workload::Web => Traffic::Plain.pool_bytes(),
            Workload::WebSubjects => Traffic::Subjects.pool_bytes(),
            Workload::WebAdversarial => Traffic::Adversarial.pool_bytes(),
            Workload::Gdpr | Workload::Gdpr50 | Workload::Json => 0.0,
            Workload::Integrity | Workload::Slow | Workload::Tenants => 0.0,
        }
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// One producer's entries of any workload, without end.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum Generator {
    Gdpr(Gdpr),
    Json(Json),
    Web(Web),
    Integrity(Integrity),
    Slow(Slow),
    Tenants(Tenants),
}

impl Generator {
    /// The next entry; it borrows from the generator.
    #[inline]
    pub fn next_entry(&mut self) -> Entry<'_> {
        match self {
            Generator::Gdpr(gdpr) => gdpr.next_entry(),
            Generator::Json(json) => json.next_entry(),
            Generator::Web(web) => web.next_entry(),
            Generator::Integrity(integrity) => integrity.next_entry(),
            Generator::Slow(slow) => slow.next_entry(),
            Generator::Tenants(tenants) => tenants.next_entry(),
        }
    }
}

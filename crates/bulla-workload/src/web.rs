//! `web`, `web-subjects` and `web-adversarial`: a web server's requests, as Loggr is measured with.
//!
//! Each entry has one of 16 verbs, one of 16 status codes, a location and a client from their pools, a duration of 0
//! to 65,535 milliseconds, a size of 0 to 65,535 bytes and 8 bits of flags. Time steps by 0 or 1 microsecond. With
//! [`Traffic::Subjects`] the client is the data subject too.
//!
//! The entropy of an entry in bits is `log₂ 16 + log₂ 16 + log₂ locations + log₂ clients + 16 + 16 + 8 + 1`; the
//! subject follows from the client. It is exact.
//!
//! The pools: 1,000 paths, half `/path_<4 digits>.<png|pdf|html|jpeg>` and half `/<section>/<page>.html` of 20 to 40
//! characters, and 5,000 random IPv4 addresses; or [`Traffic::Adversarial`], 1,300,000 locations, which are made anew
//! from their numbers and take no memory, and 5,000 addresses of which every tenth is a MAC address.

mod adversarial;
mod paths;

use crate::clock::Clock;
use crate::entropy::{order, uniform};
use crate::pool::Pool;
use crate::random::{Random, field, lower, scale, upper};
use adversarial::Locations;
use bulla_proof::Entry;
use smallvec::smallvec;

const VERBS: [&str; 16] = [
    "GET",
    "POST",
    "PUT",
    "DELETE",
    "HEAD",
    "OPTIONS",
    "PATCH",
    "SEARCH",
    "REPORT",
    "MOVE",
    "COPY",
    "LOCK",
    "UNLOCK",
    "MKCOL",
    "PROPFIND",
    "UNCHECKOUT",
];
const STATUS_CODES: [u32; 16] =
    [200, 201, 202, 204, 206, 301, 302, 304, 400, 401, 403, 404, 409, 429, 500, 503];
const CLIENTS: u32 = 5000;
/// Every so many-th client of adversarial traffic has a MAC address.
const MAC_ADDRESS: u32 = 10;
const MILLISECOND: u64 = 1_000_000;

/// What the requests are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// 1,000 paths.
    Plain,
    /// The same, and the client is the data subject.
    Subjects,
    /// 1,300,000 long locations.
    Adversarial,
}

impl Traffic {
    pub(crate) fn entropy_per_entry(self) -> f64 {
        ([16, 16, self.locations(), CLIENTS].map(uniform).iter().sum::<f64>() + 16.0 + 16.0 + 8.0 + 1.0) / 8.0
    }

    fn locations(self) -> u32 {
        match self {
            Traffic::Plain | Traffic::Subjects => paths::COUNT,
            Traffic::Adversarial => adversarial::COUNT,
        }
    }

    /// The share of the pools that so many entries are expected to have drawn: that of the locations, which are most of it.
    pub(crate) fn drawn(self, entries: u64) -> f64 {
        1.0 - (1.0 - 1.0 / f64::from(self.locations())).powf(entries as f64)
    }

    pub(crate) fn pool_bytes(self) -> f64 {
        let (clients, macs) = (f64::from(CLIENTS), f64::from(CLIENTS / MAC_ADDRESS));
        let bits = match self {
            Traffic::Plain | Traffic::Subjects => paths::pool_entropy() + 32.0 * clients,
            Traffic::Adversarial => adversarial::pool_entropy() + 32.0 * (clients - macs) + 48.0 * macs,
        };
        (bits - order(CLIENTS)) / 8.0
    }
}

/// One producer's entries.
#[derive(Debug)]
pub struct Web {
    random: Random,
    clock: Clock,
    locations: LocationSource,
    clients: Pool,
    with_subject: bool,
}

#[derive(Debug)]
enum LocationSource {
    Pool(Pool),
    Made(Box<Locations>),
}

impl Web {
    /// The entries of producer number `producer`.
    pub fn new(traffic: Traffic, seed: u64, producer: u32) -> Self {
        let pools = &mut Random::for_pools(seed);
        let locations = match traffic {
            Traffic::Plain | Traffic::Subjects => LocationSource::Pool(paths::draw(pools)),
            Traffic::Adversarial => LocationSource::Made(Box::new(Locations::new(pools))),
        };
        let clients = Pool::draw(CLIENTS, pools, |number, random| match traffic {
            Traffic::Adversarial if number % MAC_ADDRESS == 0 => mac_address(random),
            _ => ip_address(random),
        });
        Web {
            random: Random::for_producer(seed, producer),
            clock: Clock::new(),
            locations,
            clients,
            with_subject: traffic == Traffic::Subjects,
        }
    }

    /// The next entry.
    #[inline]
    pub fn next_entry(&mut self) -> Entry<'_> {
        let (numbers, choices) = (self.random.next(), self.random.next());
        let location = match &mut self.locations {
            LocationSource::Pool(paths) => paths.choose(lower(choices)).as_bytes(),
            LocationSource::Made(locations) => locations.make(scale(lower(choices), adversarial::COUNT)),
        };
        let client = self.clients.choose(upper(choices));
        Entry {
            time: Some(self.clock.step((numbers & 1) as u32)),
            operation: VERBS[field(numbers, 1, 16)],
            location: Some(location),
            subjects: self.with_subject.then(|| smallvec![client]),
            client: Some(client),
            status: Some(STATUS_CODES[field(numbers, 5, 16)]),
            duration: Some((numbers >> 9 & 0xffff) * MILLISECOND),
            size: Some(numbers >> 25 & 0xffff),
            flags: Some((numbers >> 41 & 0xff) as u32),
            ..Entry::default()
        }
    }
}

fn ip_address(random: &mut Random) -> String {
    std::net::Ipv4Addr::from(upper(random.next())).to_string()
}

fn mac_address(random: &mut Random) -> String {
    let [bytes @ .., _, _] = random.next().to_be_bytes();
    bytes.map(|byte| format!("{byte:02x}")).join(":")
}

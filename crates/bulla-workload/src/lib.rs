//! The workloads that Bulla is measured with, generated from a seed: the same seed gives the same bytes for ever.
//!
//! | [`Workload`] | Its entries | Time steps by, in microseconds |
//! |---|---|---|
//! | `gdpr`, `gdpr-50` | [`gdpr`]: an operation on a person's data, 4096 bytes of words | 0 to 63 |
//! | `json` | [`json`]: an application's event, 200 to 600 bytes of JSON | 0 to 999 |
//! | `web`, `web-subjects`, `web-adversarial` | [`web`]: a request to a server | 0 or 1 |
//! | `integrity` | [`integrity`]: a line of 28 bytes | 1000 |
//! | `slow` | [`slow`]: an access to a person's data | 0 to 199,999 |
//! | `tenants` | [`tenants`]: a change to a person's data, for a log of very many people | has none |
//!
//! All choices are independent and, unless said otherwise, uniform. Every producer's clock starts at
//! 2026-01-01T00:00:00Z and takes a step before each entry that has a time. An entry borrows from its generator: none allocates.
//!
//! ```
//! use bulla_workload::{Workload, text};
//!
//! let mut generator = Workload::Web.generator(1, 0);
//! let (mut rows, mut plain) = (0, 0);
//! for number in 0..1000 {
//!     let entry = generator.next_entry();
//!     rows += entry.measure().unwrap();
//!     plain += text::length(&entry, number);
//! }
//! assert!(1000.0 * Workload::Web.entropy_per_entry() < rows as f64 && rows < plain);
//! ```
//!
//! [`gdprbench`] is no workload of a log: it is what clients ask of a store whose proxy makes the entries.
//!
//! # Entropy
//!
//! [`Workload::entropy_per_entry`] is the Shannon entropy of an entry, from the distributions it is drawn from: no
//! lossless encoding of one producer's entries, in their order, takes fewer bytes an entry on average. What is
//! drawn once from the seed, and then chosen from, is [`Workload::pool_bytes`], paid once a log. Several producers
//! at once add what their interleaving says, which is not in it.
//!
//! A choice of `n` is a draw of 32 bits scaled to `n`, so that a probability is off by less than 2⁻³²: too little to
//! measure, and left out of the figures.
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests look at disks and clocks"))]
#![forbid(unsafe_code)]

mod calendar;
mod clock;
mod digits;
mod entropy;
pub mod gdpr;
pub mod gdprbench;
pub mod integrity;
pub mod json;
mod phrases;
mod pool;
mod random;
pub mod slow;
pub mod tenants;
pub mod text;
pub mod web;
mod word;
mod workload;

pub use workload::{Generator, Workload};

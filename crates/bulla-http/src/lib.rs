//! Requests to services of others: witnesses, transparency logs, time-stamp authorities.
//!
//! A [`Client`] reaches what an [`Address`] names and nothing else: over TLS 1.2 or 1.3, with a certificate of an authority that the
//! system or the caller trusts, without following redirects and whatever proxies the environment names. What
//! comes back is bounded in bytes ([`Options::body`]) and in time ([`Options::total`]), and so is what is waited for. Without TLS it
//! speaks to this machine alone, and that only where the caller says so ([`Options::plain_loopback`]).
//! Built without the feature `client`, which drags in TLS, it asks nobody: [`Client::new`] says so.
//!
//! ```no_run
//! use bulla_http::{Address, Client, Options};
//!
//! let options = Options::default();
//! let address = Address::parse("https://witness.example/add-checkpoint", &options)?;
//! let answer = Client::new(&options)?.post(&address, "text/plain", b"old 0\n\n")?;
//! println!("{}: {} bytes", answer.status, answer.body.len());
//! # Ok::<(), bulla_http::Error>(())
//! ```
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests have servers and threads of their own"))]

mod address;
mod answer;
#[cfg(feature = "client")]
mod client;
mod error;
#[cfg(not(feature = "client"))]
mod nobody;
mod options;

pub use address::Address;
pub use answer::{Answer, MOST_HEADERS};
#[cfg(feature = "client")]
pub use client::Client;
pub use error::{Error, ErrorKind};
#[cfg(not(feature = "client"))]
pub use nobody::Client;
pub use options::{Options, Roots};

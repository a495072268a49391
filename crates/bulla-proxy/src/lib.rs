//! What a proxy before a Redis or Valkey server has to know, to record every operation on personal data in a Bulla log with no change to
//! the server or its clients. The proxy itself is not here yet.
//!
//! Bytes are parsed beside a stream that is relayed as it is ([`resp`]); what a command touches, and in
//! which role, is read from the server's own table of commands ([`command`]); whose data it is, rules say ([`subject`]),
//! which are a part of the configuration ([`config`]).
#![warn(clippy::print_stderr, clippy::print_stdout)]

pub mod command;
pub mod config;
pub mod dry_run;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod metrics;
pub mod monitor;
pub mod proxy_header;
pub mod resp;
pub mod served;
pub mod service;
pub mod subject;
pub mod tls;
#[cfg(test)]
mod world;

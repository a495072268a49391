//! The proxy before a Redis or Valkey server: it records every operation on personal data in a Bulla log, with no change to the server or
//! its clients.
//!
//! Bytes are parsed beside a stream that is relayed as it is ([`resp`]); what a command touches, and in
//! which role, is read from the server's own table of commands ([`command`]); whose data it is, rules say ([`subject`]),
//! which are a part of the configuration ([`config`]). A [`session`] is one connection without I/O: what is passed on, refused in its
//! place, and recorded. A [`recorder`] makes entries of operations, for all connections of one thread. A [`proxy`] has the threads.
#![warn(clippy::print_stderr, clippy::print_stdout)]

mod accepting;
mod clients;
pub mod command;
pub mod config;
pub mod counters;
mod crew;
pub mod defect;
pub mod dry_run;
mod ending;
mod entrance;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod keeper;
mod listeners;
pub mod logs;
pub mod metrics;
pub mod monitor;
mod observation;
pub mod proxy;
pub mod proxy_header;
pub mod recorder;
mod relay;
mod reopening;
pub mod resp;
mod runtime;
pub mod served;
pub mod service;
pub mod session;
mod settings;
mod stream;
pub mod subject;
mod thread;
pub mod tls;
mod upstream;
pub mod warnings;
mod worker;
#[cfg(test)]
mod world;

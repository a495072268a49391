//! The proxy before a running `redis-server`: what comes back is what the server says, and what is recorded is what was done.
#![allow(clippy::disallowed_methods, reason = "tests start servers and threads, and read files")]
#![allow(clippy::unwrap_used)]

mod channels;
mod defects;
mod edges;
mod ends;
mod entering;
mod entries;
mod faults;
mod large;
mod learned;
mod redirects;
mod refusals;
mod reopening;
mod stopping;
mod unchanged;
mod world;

//! The proxy before a running `redis-server`: what comes back is what the server says, and what is recorded is what was done.

mod channels;
mod ends;
mod entries;
mod large;
mod refusals;
mod world;

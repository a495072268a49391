//! What tests put in the place of a disk: [`Memory`], which keeps files in memory, and [`fault::Faults`], a simulated
//! machine that loses at a crash what was not synced and fails on request.
//!
//! Both stores are a [`Store`](bulla_store::Store), and both are held to the same tests as the file system. [`allocator`] counts memory,
//! [`alone`] runs a test in a process of its own, [`unsynced`] fails the syncs of a program, [`second_reader`] runs another
//! implementation, and [`RedisServer`] is a server for what stands before one.
//! Nothing here is part of a released library.

pub mod allocator;
mod alone;
mod content;
pub mod corpus;
pub mod fault;
mod memory;
mod redis;
mod rng;
mod second_reader;
pub mod sweep;
#[cfg(test)]
mod tests;
mod unsynced;

pub use alone::{ALONE, alone, is_alone};
pub use memory::Memory;
pub use redis::RedisServer;
pub use rng::Rng;
pub use second_reader::{second_reader, second_readers_python};
pub use unsynced::unsynced;

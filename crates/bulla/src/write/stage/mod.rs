//! Staging: producers' buffers, and how they pass to the writers that seal.
//!
//! A producer writes rows into a buffer that only it writes to, and publishes how far it got with one atomic
//! store. Everybody else reads only below that mark, so a buffer that is being written can be queued in
//! parts (on flush, after `linger`) without its owner noticing. The mutex of [`queue`] is taken once a buffer, never once an entry.

pub(crate) mod block_size;
pub(crate) mod buffer;
pub(crate) mod dropping;
pub(crate) mod queue;
pub(crate) mod sync;
#[cfg(test)]
mod tests;

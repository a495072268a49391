//! Staging: producers' buffers, and how they pass to the writers.
//!
//! A producer writes rows into a buffer that only it writes to, and publishes how far it got with one atomic
//! store. Everybody else reads only below that mark, so a buffer that is being written can be handed over in
//! parts (on flush, after `linger`) without its owner noticing. The mutex of [`handover`] is taken once a buffer.

pub(crate) mod buffer;
pub(crate) mod handover;
pub(crate) mod sync;
pub(crate) mod target;
#[cfg(test)]
mod tests;

//! The sources of `src/write/stage`, on loom's primitives.

#[path = "../../../src/write/stage/block_size.rs"]
pub(crate) mod block_size;
#[path = "../../../src/write/stage/buffer.rs"]
pub(crate) mod buffer;
#[path = "../../../src/write/stage/dropping.rs"]
pub(crate) mod dropping;
#[path = "../../../src/write/stage/queue.rs"]
pub(crate) mod queue;

/// What `src/write/stage/sync.rs` gives, of loom.
mod sync {
    #![allow(unsafe_code)]

    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    pub(crate) use loom::sync::{Arc, Condvar, Mutex, MutexGuard};

    use loom::cell::UnsafeCell;
    use std::ops::Range;

    /// Bytes that loom watches one by one: it panics where two accesses to one of them race.
    pub(crate) struct Cells(Vec<UnsafeCell<u8>>);

    // SAFETY: as in `src/write/stage/sync.rs`; and loom runs one thread at a time.
    unsafe impl Sync for Cells {}

    impl Cells {
        pub(crate) fn new(length: usize) -> Self {
            Cells((0..length).map(|_| UnsafeCell::new(0)).collect())
        }

        pub(crate) fn length(&self) -> usize {
            self.0.len()
        }

        /// # Safety
        /// Nobody else reads or writes these bytes meanwhile; loom checks it.
        pub(crate) unsafe fn write<T>(&self, range: Range<usize>, fill: impl FnOnce(&mut [u8]) -> T) -> T {
            let mut bytes = vec![0; range.len()];
            let result = fill(&mut bytes);
            for (cell, byte) in self.0[range].iter().zip(bytes) {
                // SAFETY: loom hands out a valid pointer, and has checked that nobody else has one.
                cell.with_mut(|pointer| unsafe { *pointer = byte });
            }
            result
        }

        /// # Safety
        /// Nobody writes these bytes while the slice lives; loom checks it up to the last use of the buffer,
        /// because whoever resets the buffer has to come after every reader.
        pub(crate) unsafe fn read(&self, range: Range<usize>) -> &[u8] {
            // SAFETY: loom hands out a valid pointer, and has checked that nobody writes.
            let bytes = self.0[range].iter().map(|cell| cell.with(|pointer| unsafe { *pointer }));
            bytes.collect::<Vec<u8>>().leak()
        }
    }
}

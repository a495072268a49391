//! The primitives that [`super::buffer`] and [`super::queue`] stand on. The model test puts loom's here.
#![allow(unsafe_code)]

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use std::cell::UnsafeCell;
use std::ops::Range;

/// Bytes that one thread writes while others read what was written before.
pub(crate) struct Cells(Box<[UnsafeCell<u8>]>);

// SAFETY: the callers of `write` and `read` see to it that no byte is written while anything else touches it.
unsafe impl Sync for Cells {}

impl Cells {
    pub(crate) fn new(length: usize) -> Self {
        Cells((0..length).map(|_| UnsafeCell::new(0)).collect())
    }

    pub(crate) fn length(&self) -> usize {
        self.0.len()
    }

    /// Lets `fill` write the bytes of `range`.
    ///
    /// # Safety
    /// Nobody else reads or writes these bytes meanwhile.
    #[inline]
    pub(crate) unsafe fn write<T>(&self, range: Range<usize>, fill: impl FnOnce(&mut [u8]) -> T) -> T {
        let cells = &self.0[range];
        // SAFETY: `UnsafeCell<u8>` has the layout of `u8`, the slice is in bounds, and the caller has it alone.
        fill(unsafe { std::slice::from_raw_parts_mut(UnsafeCell::raw_get(cells.as_ptr()), cells.len()) })
    }

    /// The bytes of `range`.
    ///
    /// # Safety
    /// Nobody writes these bytes while the slice lives.
    #[inline]
    pub(crate) unsafe fn read(&self, range: Range<usize>) -> &[u8] {
        let cells = &self.0[range];
        // SAFETY: `UnsafeCell<u8>` has the layout of `u8`, the slice is in bounds, and nobody writes to it.
        unsafe { std::slice::from_raw_parts(UnsafeCell::raw_get(cells.as_ptr()), cells.len()) }
    }
}

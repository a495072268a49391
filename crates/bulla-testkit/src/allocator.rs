//! An allocator for test binaries: the system's, counting what each thread asks of it and has held at most, and, in a
//! process that says so, how much all threads hold.
//!
//! A test binary installs it:
//!
//! ```
//! #[global_allocator]
//! static ALLOCATOR: bulla_testkit::allocator::Counting = bulla_testkit::allocator::Counting;
//! ```
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

thread_local! {
    // Neither of them is made or dropped by code that could allocate.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    /// Bytes that this thread holds now, and held at most.
    static HELD: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

/// While it is off, counting costs other tests no memory that threads share.
static WEIGHING: AtomicBool = AtomicBool::new(false);
/// Bytes held since weighing began; what was held before and is given back since makes it wrap.
static HELD_BY_ALL: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

/// How often this thread has asked for memory so far.
pub fn allocations() -> u64 {
    ALLOCATIONS.get()
}

/// What `work` returns, and the most bytes that this thread held at once during it, above what it held before.
pub fn most_held_here<T>(work: impl FnOnce() -> T) -> (T, usize) {
    HELD.set((0, 0));
    let value = work();
    (value, HELD.get().1)
}

/// What `work` returns, and the most bytes that all threads together held at once during it, above what they held
/// before. Whatever was asked for counts, whether it was touched or not. For a process in which nothing else is at work.
///
/// # Panics
/// Where somebody is weighing already.
pub fn most_held<T>(work: impl FnOnce() -> T) -> (T, usize) {
    assert!(!WEIGHING.swap(true, Ordering::SeqCst), "one at a time");
    HELD_BY_ALL.store(0, Ordering::SeqCst);
    MOST.store(0, Ordering::SeqCst);
    let result = work();
    WEIGHING.store(false, Ordering::SeqCst);
    (result, MOST.load(Ordering::SeqCst))
}

fn count(more: usize, less: usize) {
    let (held, most) = HELD.get();
    let held = held.saturating_add(more).saturating_sub(less);
    HELD.set((held, most.max(held)));
    if more > 0 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
    }
}

fn weigh(more: usize, less: usize) {
    if !WEIGHING.load(Ordering::Relaxed) {
        return;
    }
    let change = more.wrapping_sub(less);
    let held = HELD_BY_ALL.fetch_add(change, Ordering::SeqCst).wrapping_add(change);
    // Below what was held before counts as nothing.
    if held.cast_signed() > 0 {
        MOST.fetch_max(held, Ordering::SeqCst);
    }
}

/// See the module.
#[derive(Debug)]
pub struct Counting;

// SAFETY: everything is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        weigh(layout.size(), 0);
        // SAFETY: the caller's promise is the one that is asked for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        weigh(layout.size(), 0);
        // SAFETY: the caller's promise is the one that is asked for.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Old and new may both be there for a while; large ones are moved without that.
        count(size, 0);
        count(0, layout.size());
        weigh(size, layout.size());
        // SAFETY: the caller's promise is the one that is asked for.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(0, layout.size());
        weigh(0, layout.size());
        // SAFETY: the caller's promise is the one that is asked for.
        unsafe { System.dealloc(pointer, layout) }
    }
}

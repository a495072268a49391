//! The allocator of this test binary: the system's, counting what each thread asks of it, and, in a process that says
//! so, how much all of them hold.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

thread_local! {
    /// Neither made nor dropped by code that could allocate.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// Off, it costs other tests no shared memory on their way.
static WEIGHING: AtomicBool = AtomicBool::new(false);
/// Bytes held since weighing began; what was held before and is given back since makes it wrap.
static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

/// How often this thread has asked for memory so far.
pub(crate) fn allocations() -> u64 {
    ALLOCATIONS.get()
}

/// The most bytes that all threads together held at once during `work`, above what they held before. Whatever was
/// asked for counts, whether it was touched or not. For a process in which nothing else is at work.
pub(crate) fn most_held<T>(work: impl FnOnce() -> T) -> (T, usize) {
    assert!(!WEIGHING.swap(true, Ordering::SeqCst), "one at a time");
    HELD.store(0, Ordering::SeqCst);
    MOST.store(0, Ordering::SeqCst);
    let result = work();
    WEIGHING.store(false, Ordering::SeqCst);
    (result, MOST.load(Ordering::SeqCst))
}

fn count() {
    ALLOCATIONS.set(ALLOCATIONS.get() + 1);
}

fn weigh(more: usize, less: usize) {
    if !WEIGHING.load(Ordering::Relaxed) {
        return;
    }
    let change = more.wrapping_sub(less);
    let held = HELD.fetch_add(change, Ordering::SeqCst).wrapping_add(change);
    // Below what was held before counts as nothing.
    if held.cast_signed() > 0 {
        MOST.fetch_max(held, Ordering::SeqCst);
    }
}

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: everything is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        weigh(layout.size(), 0);
        // SAFETY: the caller's promise is the one that is asked for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        weigh(layout.size(), 0);
        // SAFETY: the caller's promise is the one that is asked for.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        weigh(size, layout.size());
        // SAFETY: the caller's promise is the one that is asked for.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        weigh(0, layout.size());
        // SAFETY: the caller's promise is the one that is asked for.
        unsafe { System.dealloc(pointer, layout) }
    }
}

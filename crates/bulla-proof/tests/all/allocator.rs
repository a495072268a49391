//! The allocator of this test binary: the system's, telling how much each thread has held at most.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Bytes held now and at most. Neither made nor dropped by code that could allocate.
    static HELD: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

/// What `work` returns, and how many bytes this thread held at most during it beyond what it held before.
pub(crate) fn most_held<T>(work: impl FnOnce() -> T) -> (T, usize) {
    HELD.set((0, 0));
    let value = work();
    (value, HELD.get().1)
}

fn count(more: usize, less: usize) {
    let (held, most) = HELD.get();
    let held = held.saturating_add(more).saturating_sub(less);
    HELD.set((held, most.max(held)));
}

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: everything is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller's promise is the one that is asked for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller's promise is the one that is asked for.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Old and new may both be there for a while.
        count(size, 0);
        count(0, layout.size());
        // SAFETY: the caller's promise is the one that is asked for.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: the caller's promise is the one that is asked for.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[test]
fn what_is_held_at_most_is_counted_and_nothing_is_made_of_nothing() {
    let (kept, most) = most_held(|| {
        let content = (0..1 << 16).map(|i| (i % 251) as u8).collect::<Vec<_>>();
        drop(content.clone());
        content
    });
    assert!(kept.iter().zip(0..).all(|(&byte, i)| usize::from(byte) == i % 251), "memory is what it was");
    assert_eq!(most, 2 << 16);
    assert_eq!(most_held(|| ()).1, 0);
}

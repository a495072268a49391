//! Which process this is, cheaply enough to ask at every entry: a log belongs to the process that opened it, and
//! a handle that came along into a forked child refuses to work there.
//!
//! It is no number of the kernel's: a child in another namespace of processes can have its parent's. Processes are counted
//! instead, each from its parent on. A child finds the count as it was at the fork, and nothing on a page that the kernel
//! wipes there (`MADV_WIPEONFORK`, Linux 4.14), however the child was made; so it counts on. Where no such page is
//! offered every question is a system call, and the number is the kernel's.
#![allow(unsafe_code)]

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// The page, or [`NONE`]; null before anybody asked. It is no `OnceLock`: a child that was forked off while another thread had that would
/// wait for ever.
static PAGE: AtomicPtr<AtomicU32> = AtomicPtr::new(ptr::null_mut());

/// What stands for a page where there is none to be had: always 0.
static NONE: AtomicU32 = AtomicU32::new(0);

/// The last number that was given, to this process or to one that it comes from.
static LAST: AtomicU32 = AtomicU32::new(0);

/// A number that this process has, and none that it comes from. It says nothing to other processes, which may have the same.
#[inline]
pub fn id() -> u32 {
    // SAFETY: it is null, or was put there by `make`: both a page and a static are there for good.
    match unsafe { PAGE.load(Ordering::Acquire).as_ref() } {
        Some(kept) => match kept.load(Ordering::Relaxed) {
            0 => keep(kept),
            id => id,
        },
        None => make(),
    }
}

/// Makes the page. Where threads do so at once the first counts, and the others' are left unused.
#[cold]
fn make() -> u32 {
    let made = ptr::from_ref(map().unwrap_or(&NONE)).cast_mut();
    let _ = PAGE.compare_exchange(ptr::null_mut(), made, Ordering::AcqRel, Ordering::Acquire);
    id()
}

#[cold]
fn keep(kept: &AtomicU32) -> u32 {
    match ptr::eq(kept, &NONE) {
        true => std::process::id(),
        false => number(kept, &LAST),
    }
}

/// Gives this process the number after `last`, unless another thread has given it one.
fn number(kept: &AtomicU32, last: &AtomicU32) -> u32 {
    let next = last.fetch_add(1, Ordering::Relaxed) + 1;
    match kept.compare_exchange(0, next, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => next,
        Err(given) => given,
    }
}

#[cfg(target_os = "linux")]
fn map() -> Option<&'static AtomicU32> {
    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
    const LENGTH: usize = 4096;
    // SAFETY: a new mapping, of which nobody knows; the kernel chooses where.
    let page = unsafe {
        mmap_anonymous(std::ptr::null_mut(), LENGTH, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
    };
    let page = page.ok()?;
    // SAFETY: the advice is about that mapping alone.
    if unsafe { madvise(page, LENGTH, Advice::LinuxWipeOnFork) }.is_err() {
        // SAFETY: nobody has a reference to the mapping.
        let _ = unsafe { munmap(page, LENGTH) };
        return None;
    }
    // SAFETY: the page is aligned, zeroed, never unmapped from here on, and accessed as this atomic only. That a
    // child finds zero there is a change that no thread of the child can have seen happen.
    Some(unsafe { AtomicU32::from_ptr(page.cast()) })
}

#[cfg(not(target_os = "linux"))]
fn map() -> Option<&'static AtomicU32> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_has_another_number_than_all_that_it_comes_from_whatever_the_kernel_calls_it() {
        let (page, last) = (AtomicU32::new(0), AtomicU32::new(0));
        let parent = number(&page, &last);
        // As a child that is forked off then finds them.
        let (childs_page, childs_last) = (AtomicU32::new(0), AtomicU32::new(last.load(Ordering::Relaxed)));
        let child = number(&childs_page, &childs_last);
        let grandchild = number(&AtomicU32::new(0), &AtomicU32::new(childs_last.load(Ordering::Relaxed)));
        assert!(parent != 0 && child != parent, "{parent} {child}");
        assert!(grandchild != child && grandchild != parent, "{parent} {child} {grandchild}");
        // Where two threads ask first they are told the same.
        assert_eq!(number(&page, &last), parent);
        assert_eq!((id(), id()), (id(), id()));
    }
}

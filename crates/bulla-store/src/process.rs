//! Which process this is, cheaply enough to ask at every entry: a log belongs to the process that opened it, and
//! a handle that came along into a forked child refuses to work there.
//!
//! The id is kept on a page of its own that the kernel wipes in a child (`MADV_WIPEONFORK`, Linux 4.14), however
//! the child was made. Where that is not offered every question is a system call.
#![allow(unsafe_code)]

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// The page, or [`NONE`]; null before anybody asked. It is no `OnceLock`: a child that was forked off while another thread had that would
/// wait for ever.
static PAGE: AtomicPtr<AtomicU32> = AtomicPtr::new(ptr::null_mut());

/// What stands for a page where there is none to be had: always 0.
static NONE: AtomicU32 = AtomicU32::new(0);

/// The id of this process.
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
    let id = std::process::id();
    if !ptr::eq(kept, &NONE) {
        kept.store(id, Ordering::Relaxed);
    }
    id
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

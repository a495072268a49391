//! Which process this is, cheaply enough to ask at every entry: a log belongs to the process that opened it, and
//! a handle that came along into a forked child refuses to work there.
//!
//! The id is kept on a page of its own that the kernel wipes in a child (`MADV_WIPEONFORK`, Linux 4.14), however
//! the child was made. Where that is not offered every question is a system call.
#![allow(unsafe_code)]

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// The page, once it was asked for; `None` where there is none to be had.
static PAGE: OnceLock<Option<&'static AtomicU32>> = OnceLock::new();

/// The id of this process.
#[inline]
pub fn id() -> u32 {
    match PAGE.get_or_init(map) {
        Some(kept) => match kept.load(Ordering::Relaxed) {
            0 => keep(kept),
            id => id,
        },
        None => std::process::id(),
    }
}

#[cold]
fn keep(kept: &AtomicU32) -> u32 {
    let id = std::process::id();
    kept.store(id, Ordering::Relaxed);
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

//! The Bulla audit log for programs in C, and in whatever calls C: what is behind `include/bulla.h`, which `cbindgen` writes from
//! this, and a test holds to it. `docs/c.md` is the reference.
//!
//! Invariants:
//! - nothing unwinds into C: whatever panics is [`bulla_status::BULLA_PANICKED`];
//! - a handle is no pointer but a number that is looked up (`handles`): one that was closed, is of another kind or was made up is
//!   refused, and never followed;
//! - what C gives is only read while it is called, and copied where that does not do; texts are checked as UTF-8.
#![allow(unsafe_code, reason = "a boundary to C reads what C points to")]
#![allow(non_camel_case_types, reason = "names as C has them")]

mod entry;
#[cfg(feature = "read")]
mod evidence;
mod handles;
mod log;
mod producer;
#[cfg(feature = "read")]
mod read;
mod receipt;
mod status;

pub use entry::*;
#[cfg(feature = "read")]
pub use evidence::*;
pub use log::*;
pub use producer::*;
#[cfg(feature = "read")]
pub use read::*;
pub use receipt::*;
pub use status::*;

/// The version of this interface. It grows where a program that was compiled before would break.
pub const BULLA_ABI_VERSION: u32 = 1;

/// The version of this interface that the library has, to be compared with `BULLA_ABI_VERSION`, the header's. Opening and connecting
/// compare them, too.
#[unsafe(no_mangle)]
pub extern "C" fn bulla_abi_version() -> u32 {
    BULLA_ABI_VERSION
}

/// The version of the library, as text that is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn bulla_version() -> *const std::ffi::c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

//! What a computation with keys leaves on the stack, overwritten.
//!
//! Ciphers and hashes keep states and round keys in their frames, and values are copied when they are moved; nothing
//! clears that when a function returns. A host that is to forget the keys of an epoch that it closed must not find
//! them there.

/// How much of the stack is overwritten: far more than wrapping a key takes, and microseconds of work.
const DEEP: usize = 128 << 10;
/// The same for a single call of a cipher.
const SHALLOW: usize = 16 << 10;

/// Runs `work`, and then overwrites the part of the stack that it used. What it returns should own its secrets through
/// a pointer.
#[inline(never)]
pub fn scrubbed<T>(work: impl FnOnce() -> T) -> T {
    let result = apart(work);
    overwrite::<DEEP>();
    result
}

/// The same for `work` that calls a cipher and does nothing else, which may be often.
#[inline(never)]
pub fn scrubbed_cipher<T>(work: impl FnOnce() -> T) -> T {
    let result = apart(work);
    overwrite::<SHALLOW>();
    result
}

/// In a frame of its own, so that all of it lies below the caller's.
#[inline(never)]
fn apart<T>(work: impl FnOnce() -> T) -> T {
    work()
}

#[inline(never)]
fn overwrite<const DEPTH: usize>() {
    // That somebody looks at it keeps it from being left out; the test of a writer's memory shows that it is not.
    // By a mutable reference: zeros that cannot change would be a constant elsewhere.
    let mut area = [0u8; DEPTH];
    std::hint::black_box(&mut area);
}

//! Overwrites what a computation with keys leaves on the stack.
//!
//! Ciphers and hashes keep states and round keys in their frames, and values are copied when they are moved; nothing
//! clears that when a function returns. A host that is to forget the keys of an epoch that it closed must not find
//! them there.

/// How much of the stack is overwritten: far more than wrapping a key takes, and microseconds of work.
const DEEP: usize = 128 << 10;
/// How much is overwritten after a single call of a cipher.
const SHALLOW: usize = 16 << 10;

/// Runs `work`, and then overwrites the part of the stack that it used. What it returns should own its secrets through
/// a pointer.
#[inline(never)]
pub fn scrubbed<T>(work: impl FnOnce() -> T) -> T {
    let result = apart(work);
    overwrite::<DEEP>();
    result
}

/// As [`scrubbed`], but for `work` that only calls a cipher: less is overwritten, so that it can be done often.
#[inline(never)]
pub fn scrubbed_cipher<T>(work: impl FnOnce() -> T) -> T {
    let result = apart(work);
    overwrite::<SHALLOW>();
    result
}

/// Runs `work` in a stack frame of its own, so that everything it uses lies below the caller's frame.
#[inline(never)]
fn apart<T>(work: impl FnOnce() -> T) -> T {
    work()
}

#[inline(never)]
fn overwrite<const DEPTH: usize>() {
    // `black_box` may read and write the area as far as the compiler knows, so it has to be on the stack and to be zeroed. With a
    // shared reference the compiler could pass a constant instead. The test of a writer's memory shows that it works.
    let mut area = [0u8; DEPTH];
    std::hint::black_box(&mut area);
}

//! The published ratios of zlib, on what the thesis compresses: the serialised entries of a batch of 2048.

use crate::{generator, rows};
use bulla_workload::Workload;

const BATCH: usize = 2048;

#[test]
fn two_words_compress_as_published() {
    check(Workload::Gdpr, [(1, 9.15), (4, 13.74), (9, 20.65)]);
}

#[test]
fn fifty_words_compress_as_published() {
    check(Workload::Gdpr50, [(1, 3.5)]);
}

/// Within 5 %.
#[track_caller]
fn check<const LEVELS: usize>(workload: Workload, published: [(i32, f64); LEVELS]) {
    let rows = rows(&mut generator(workload), BATCH);
    for (level, published) in published {
        let ratio = rows.len() as f64 / compressed_length(&rows, level) as f64;
        println!("{workload}, zlib level {level}: {ratio:.2}x, published {published}x");
        assert!(
            (ratio / published - 1.0).abs() < 0.05,
            "{workload}, level {level}: {ratio:.2}, not {published}"
        );
    }
}

/// How long zlib makes it: its own code, since others that write the same format compress otherwise.
#[allow(unsafe_code)]
fn compressed_length(plain: &[u8], level: i32) -> usize {
    let mut compressed = vec![0_u8; 2 * plain.len()];
    let mut length = compressed.len() as libz_sys::uLongf;
    // SAFETY: both pointers are of slices of the lengths beside them, and `length` is there to be written.
    let status = unsafe {
        libz_sys::compress2(
            compressed.as_mut_ptr(),
            &mut length,
            plain.as_ptr(),
            plain.len() as libz_sys::uLong,
            level,
        )
    };
    assert_eq!(status, libz_sys::Z_OK);
    usize::try_from(length).unwrap()
}

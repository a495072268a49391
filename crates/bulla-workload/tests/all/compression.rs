//! The published ratios of zlib, on what the thesis compresses: the serialised entries of a batch of 2048.

use crate::{generator, rows};
use bulla_workload::Workload;
use std::io::Write;
use std::process::{Command, Stdio};

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
        let ratio = rows.len() as f64 / compressed(&rows, level).len() as f64;
        println!("{workload}, zlib level {level}: {ratio:.2}x, published {published}x");
        assert!(
            (ratio / published - 1.0).abs() < 0.05,
            "{workload}, level {level}: {ratio:.2}, not {published}"
        );
    }
}

#[test]
fn what_zlib_wrote_another_zlib_reads() {
    const READ: &str = "import sys, zlib; sys.stdout.buffer.write(zlib.decompress(sys.stdin.buffer.read()))";
    let rows = rows(&mut generator(Workload::Gdpr50), 20);
    for level in [1, 4, 9] {
        let mut python = Command::new("python3");
        python.args(["-c", READ]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut python = python.spawn().unwrap();
        python.stdin.take().unwrap().write_all(&compressed(&rows, level)).unwrap();
        assert!(python.wait_with_output().unwrap().stdout == rows, "level {level}");
    }
}

/// What zlib makes of it: its own code, since others that write the same format compress otherwise.
#[allow(unsafe_code)]
fn compressed(plain: &[u8], level: i32) -> Vec<u8> {
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
    compressed.truncate(usize::try_from(length).unwrap());
    compressed
}
